"""Who may ask what: the door before every request. Knows HTTP; nothing of games.

- Without a token only this machine's own names are answered, so that no other site's name can be made to point here.
- With a token every request must bring it, in a cookie or as `Authorization: Bearer`.
- What changes something, and every WebSocket, must come from the page itself: another origin is refused.
- A body may be so large and no larger, and must come in time.
Every answer says that the page loads nothing from anywhere else.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

COOKIE = "alea_token"
LARGEST_BODY = 1 << 20
BODY_SECONDS = 30.0
OWN_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Guard:
    """Stands before an ASGI application."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if scope["type"] == "http" and self._token and (brought := self._brought(scope)):
            await _welcome(send, brought)
            return
        problem = self._problem(scope, headers)
        if problem is not None:
            await _refuse(scope, receive, send, *problem)
            return
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return
        await self._pass_on(scope, headers, receive, _with_headers(send))

    def _brought(self, scope: Scope) -> str | None:
        """The token in the address of the first page, if it is the right one: from then on a cookie holds it."""
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        right = scope["method"] == "GET" and scope["path"] == "/" and self._is_right(given)
        return given if right else None

    def _problem(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if self._token is None and _name_of(host) not in OWN_NAMES:
            return 421, f"this server answers to localhost, not to {host[:80]!r}"
        if self._token is not None and not self._is_right(_token_in(headers)):
            return 401, "a token is needed: open the address that alea web has printed"
        if scope["type"] == "websocket" or scope["method"] not in _SAFE:
            origin = headers.get("origin")
            foreign = origin is not None and _place_of(origin) != host.lower()
            if foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
                return 403, "another site cannot ask for this"
        return None

    def _is_right(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    async def _pass_on(self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send) -> None:
        told = headers.get("content-length", "0")
        if not told.isdecimal() or int(told) > LARGEST_BODY:
            await _refuse(scope, receive, send, 413, f"a request may have {LARGEST_BODY} bytes at most")
            return
        if scope["method"] in _SAFE:
            await self._app(scope, receive, send)
            return
        body, more = b"", True
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return
                    body, more = body + message.get("body", b""), message.get("more_body", False)
                    if len(body) > LARGEST_BODY:
                        await _refuse(scope, receive, send, 413, f"a request may have {LARGEST_BODY} bytes at most")
                        return
        except TimeoutError:
            await _refuse(scope, receive, send, 408, "the request took too long to arrive")
            return
        given = False

        async def replay() -> MutableMapping[str, Any]:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)


def _name_of(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _place_of(origin: str) -> str | None:
    """Host and port; None where it is no address."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _token_in(headers: dict[str, str]) -> str:
    kind, _, given = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return given.strip()
    try:
        cookie = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookie[COOKIE].value if COOKIE in cookie else ""


def _with_headers(send: Send) -> Send:
    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            more = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await send(message)

    return sent


async def _welcome(send: Send, token: str) -> None:
    cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000"
    headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, why: str) -> None:
    if scope["type"] == "websocket":
        await receive()  # the request to connect, which is answered now
        await send({"type": "websocket.close", "code": 1008, "reason": why})
        return
    import json

    body = json.dumps({"detail": why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await _with_headers(send)({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
