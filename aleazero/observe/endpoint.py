"""A small HTTP server for what others come to fetch: metrics, and lists of who serves them.

It answers GET on a few fixed paths, each from a thread of its own, and nothing else. Who asks for `?token=` of another
server, which had this port before, gets 404: its pages are not ours. A client that is slow, or says nothing, holds up
nobody and is dropped after a while. Knows nothing of what it serves.
"""

from __future__ import annotations

import errno
import http.server
import logging
import secrets
import socket
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from aleazero.core.errors import AleaError

_log = logging.getLogger(__name__)

# Of a role's metrics; the next free one where it is taken.
PORTS = {"game": 9100, "train": 9200, "eval": 9300, "head": 9400}
LOOPBACK = "127.0.0.1"
EVERYWHERE = ("", "0.0.0.0")  # what to bind to, to be heard in every network
TOKEN = "token"  # the parameter of a request
TRIES = 100
CLIENT_SECONDS = 10.0  # until a client that says nothing is dropped

Page = Callable[[], tuple[str, bytes]]  # the type of the content, and the content


class EndpointError(AleaError):
    """Nothing can be served here."""


class Endpoint:
    """Serves pages by path until it is closed, on the port asked for or the next free one (0: any)."""

    def __init__(self, pages: Mapping[str, Page], port: int, bind: str = LOOPBACK) -> None:
        self.token = secrets.token_hex(8)  # tells it from others that serve here before or after
        self._server = _listen(_handler_of(dict(pages), self.token), port, bind)
        self.bind, self.port = bind, int(self._server.server_address[1])
        if port and self.port != port:
            _log.warning("port %d is taken; %s is served on port %d", port, ", ".join(pages), self.port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="endpoint", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where programs on this machine find it."""
        return f"{in_url(LOOPBACK if self.bind in EVERYWHERE else self.bind)}:{self.port}"

    def close(self) -> None:
        """Stops; closing twice is closing once."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


def in_url(host: str) -> str:
    """A host as addresses have it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def family_of(host: str) -> socket.AddressFamily:
    """What kind of socket listens there."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # nobody waits for a client that is slow
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], handler: type[http.server.BaseHTTPRequestHandler]) -> None:
        self.address_family = family_of(address[0])
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Without the look-up of the host's name in the standard library's, which can take seconds."""
        super(http.server.HTTPServer, self).server_bind()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""
        _log.debug("a client failed: %s", client_address, exc_info=True)


def _listen(handler: type[http.server.BaseHTTPRequestHandler], port: int, bind: str) -> _Server:
    tries = range(port, min(port + TRIES, 65536)) if port else (0,)
    for number in tries:
        try:
            return _Server((bind, number), handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise EndpointError(
                    f"cannot listen on {bind}:{number}: {error}; name another address or port"
                ) from error
    raise EndpointError(f"ports {port} to {tries[-1]} are all taken on {bind}; name another one")


def _handler_of(pages: dict[str, Page], token: str) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = CLIENT_SECONDS

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            page = pages.get(path)
            if page is None:
                self.send_error(404, explain=f"served here: {', '.join(pages)}")
                return
            if any(asked != token for asked in urllib.parse.parse_qs(query).get(TOKEN, ())):
                self.send_error(404, explain="another process serves here now")
                return
            kind, body = page()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """A scrape every few seconds is no news."""

    return Handler
