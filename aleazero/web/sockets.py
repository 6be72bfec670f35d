"""WebSockets on which only the server speaks: how it notices that a visitor has left. Knows nothing of what is said."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fastapi import WebSocket, WebSocketDisconnect

MOST_REASON = 120  # bytes; the protocol allows 123
_LEFT = (WebSocketDisconnect, RuntimeError)


@contextlib.asynccontextmanager
async def watching(socket: WebSocket) -> AsyncIterator[asyncio.Task[None]]:
    """A task that is done when the visitor has left; to have written to one who has is no error."""
    gone = asyncio.create_task(_until_gone(socket))
    try:
        with contextlib.suppress(*_LEFT):
            yield gone
    finally:
        gone.cancel()


async def _until_gone(socket: WebSocket) -> None:
    with contextlib.suppress(*_LEFT):
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass


async def not_there(socket: WebSocket, why: str) -> None:
    """Says that there is nothing to look at; to one who was let in, for a browser tells nobody why it was refused."""
    await socket.accept()
    with contextlib.suppress(*_LEFT):
        await socket.close(4404, why.encode()[:MOST_REASON].decode(errors="ignore"))
