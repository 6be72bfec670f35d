"""Endpoints for tests: one that answers what it is told to answer, as late as it is told to; one that drips."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ChatEndpoint:
    """`answer(question)` gives the content of the message; bytes are sent as they are."""

    def __init__(self, answer: Callable[[str], str | bytes], seconds: float = 0.0, status: int = 200) -> None:
        self.questions: list[str] = []
        self.headers: list[dict[str, str]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.headers.append(dict(self.headers))
                endpoint.questions.append(asked["messages"][-1]["content"])
                time.sleep(seconds)
                said = answer(endpoint.questions[-1])
                body = said if isinstance(said, bytes) else _wrapped(said)
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # whoever asked has hung up

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1/chat/completions"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def __enter__(self) -> ChatEndpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _wrapped(content: str) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()


@contextlib.contextmanager
def dripping(start: bytes = b"HTTP/1.1 200 OK\r\n", drop: bytes = b"x: y\r\n") -> Iterator[str]:
    """The URL of an endpoint that answers one request drop by drop, for ten seconds or until it is hung up on."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def answer() -> None:
            caller, _ = door.accept()
            with caller, contextlib.suppress(OSError):
                caller.sendall(start)
                for _ in range(90):
                    time.sleep(0.11)
                    caller.sendall(drop)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{door.getsockname()[1]}/"
        thread.join()
