"""A game served over MCP, as the environment's `mcp_client`: calls that wait, on a loop of their own.

    with McpGame("http://127.0.0.1:8765/mcp", token) as game:
        env = BalatroEnv({"mcp_client": game})

A server may also be a command whose standard streams are spoken to. Knows MCP; nothing of games.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from aleazero.core.errors import AleaError, MissingExtra

try:
    import httpx2
    import mcp
    from mcp.client.stdio import StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client
except ImportError as missing:
    raise MissingExtra("a game over MCP", "mcp", "balatro") from missing

T = TypeVar("T")
SECONDS = 30.0  # that a call may take


class McpError(AleaError):
    """A server that cannot be reached, or refuses a call; the message is the server's."""


class McpGame:
    """A connection to one server."""

    def __init__(self, server: str | Sequence[str], token: str | None = None, seconds: float = SECONDS) -> None:
        """`server` is a URL, or the words of a command."""
        self._server, self._token, self._seconds = server, token, seconds
        self._run: str | None = None  # the one begun last, which is meant where none is named
        self._position: str | None = None  # of it, as last told: nothing is done in another
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mcp client", daemon=True)
        self._thread.start()
        self._calls: asyncio.Queue[tuple[str, dict[str, Any], asyncio.Future[Any]] | None]
        self._opened: asyncio.Future[None]
        try:
            self._wait(self._start())
        except BaseException:
            self._end_loop()
            raise

    def __enter__(self) -> McpGame:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What a tool answers; McpError with the server's words where it refuses."""
        return self._wait(self._ask(name, dict(arguments)))

    def start(self, **arguments: Any) -> dict[str, Any]:
        """A run begun: `seed`, and perhaps `deck`, `stake`, `last_ante`."""
        return self.call_tool("balatro_start", arguments)

    def close(self) -> None:
        """Hangs up."""
        if self._thread.is_alive():
            self._wait(self._stop())
            self._end_loop()

    # ---- on the loop

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        job = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return job.result(self._seconds + 5.0)
        except TimeoutError as error:
            job.cancel()
            raise McpError(f"the server did not answer in {self._seconds:g} s") from error

    async def _start(self) -> None:
        self._calls, self._opened = asyncio.Queue(), self._loop.create_future()
        self._task = self._loop.create_task(self._converse())
        await self._opened

    async def _converse(self) -> None:
        """One task enters and leaves the connection, as its scopes must be."""
        try:
            async with (
                httpx2.AsyncClient(headers=self._headers(), timeout=self._seconds) as http,
                mcp.Client(self._target(http), read_timeout_seconds=self._seconds) as client,
            ):
                self._opened.set_result(None)
                while (call := await self._calls.get()) is not None:
                    name, arguments, answer = call
                    try:
                        answer.set_result(await client.call_tool(name, arguments))
                    except Exception as error:  # whatever it is, the caller is told
                        answer.set_exception(McpError(f"{name} failed: {_words(error)}"))
        except Exception as error:
            if not self._opened.done():
                self._opened.set_exception(McpError(f"the MCP server cannot be reached: {_words(error)}"))

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def _target(self, http: Any) -> Any:
        if isinstance(self._server, str):
            return streamable_http_client(self._server, http_client=http)
        return StdioServerParameters(command=self._server[0], args=list(self._server[1:]), env=dict(os.environ))

    async def _ask(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if self._task.done():
            raise McpError("the connection to the MCP server has ended")
        if name in ("balatro_start", "balatro_act"):
            arguments = {"snapshot": True, **arguments}
        if name != "balatro_start" and self._run is not None:
            arguments = {"run": self._run, **arguments}
        own = arguments.get("run") == self._run
        if name == "balatro_act" and own and self._position is not None:
            arguments = {"position": self._position, **arguments}
        answer: asyncio.Future[Any] = self._loop.create_future()
        await self._calls.put((name, arguments, answer))
        done, _ = await asyncio.wait({answer, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if answer not in done:
            raise McpError("the connection to the MCP server has ended")
        found = answer.result()
        if found.is_error:
            raise McpError(" ".join(part.text for part in found.content if hasattr(part, "text")) or f"{name} failed")
        if not isinstance(found.structured_content, dict):
            raise McpError(f"{name} answered with no data")
        content: dict[str, Any] = found.structured_content
        if name == "balatro_start":
            self._run = content.get("run")
        if own or name == "balatro_start":
            self._position = content.get("position", self._position)
        return content

    async def _stop(self) -> None:
        await self._calls.put(None)
        await asyncio.wait({self._task}, timeout=self._seconds)

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(self._seconds)
        self._loop.close()


def _words(error: BaseException) -> str:
    """The innermost reason, where groups wrap it."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
