"""Balatro over the Model Context Protocol: tools to see, ask and act, over stdio or streamable HTTP.

Malformed calls and illegal actions are answered by an error that a client can read, and change nothing. Over HTTP
every request brings a token, and only this machine is answered unless told otherwise. A run is named by what
`balatro_start` answers; without a name the newest is meant. A live game is acted on by one call at a time, and a call
that names the position it is for is refused in another. Knows tables; neither their rules nor who plays.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import secrets
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations
from pydantic import Field

from aleazero import __version__
from aleazero.bridges import balatro_advice, balatro_table
from aleazero.bridges.advisor import policy_of
from aleazero.bridges.balatro_advice import MOST_FUTURES, Choose
from aleazero.bridges.balatro_table import Simulated, Table
from aleazero.core.errors import AleaError, ConfigError, NotationError
from aleazero.games.balatro.engine import Batch

PATH = "/mcp"
OWN_NAMES = ("127.0.0.1", "localhost", "::1")
MOST_RUNS = 64  # in memory; the one that was not used for longest is forgotten
SLOW = 3.0  # seconds of a first look at a live game after which whoever asked may have gone
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")
_SEES = ToolAnnotations(read_only_hint=True)
INSTRUCTIONS = (
    "Balatro, an unofficial simulator. Start a run with balatro_start, look at it with balatro_state, ask "
    "balatro_legal_actions or balatro_advise what can be done, and do it with balatro_act. Cards are named by their "
    "places in the hand, from 0."
)

Run = Annotated[str | None, Field(description="Which run, by what balatro_start answered; the newest if left out.")]
Cards = Annotated[list[int], Field(max_length=24, description="Places of cards in the hand, from 0.")]
Action = Annotated[int | None, Field(description="An action's number, from balatro_legal_actions.")]
Position = Annotated[str | None, Field(description="Of the last answer: in any other nothing is done.")]
What = Annotated[
    Literal["play", "discard", "act"], Field(description="Play or discard cards, or take an action by its number.")
]
Futures = Annotated[int, Field(ge=1, le=MOST_FUTURES, description="How many futures each action is tried in.")]


class Runs:
    """The runs that clients play; with a live game that one alone, which cannot be started anew from here."""

    def __init__(self, live: Table | None = None) -> None:
        self._live = live
        self._runs: OrderedDict[str, Table] = OrderedDict()
        self._newest = "live"
        self._lock = threading.Lock()
        if live is not None:
            self._runs["live"] = live

    def start(self, seed: str, deck: str, stake: str, last_ante: int) -> tuple[str, Table]:
        """A new run and its name."""
        if self._live is not None:
            raise ConfigError("a live game is played here: start its runs in the game")
        with self._lock:
            name, table = secrets.token_urlsafe(8), Simulated(seed, deck, stake, last_ante)
            self._runs[name], self._newest = table, name
            while len(self._runs) > MOST_RUNS:
                self._runs.popitem(last=False)
            return name, table

    @contextmanager
    def using(self, name: str | None, acting: bool = False) -> Iterator[tuple[str, Table]]:
        """A run, for one at a time; who wants to act on a live game does not wait for another."""
        if not self._lock.acquire(blocking=self._live is None or not acting):
            raise ConfigError("another call is still under way: look at balatro_state first")
        try:
            if not self._runs:
                raise ConfigError("there is no run yet: call balatro_start")
            found = name or self._newest
            if found not in self._runs:
                raise ConfigError(f"there is no run {found[:40]!r}: it was forgotten, or never started")
            self._runs.move_to_end(found)
            yield found, self._runs[found]
        finally:
            self._lock.release()


def _position(batch: Batch) -> str:
    return hashlib.sha256(batch.snapshot()[0]).hexdigest()[:16]


@contextmanager
def _told() -> Iterator[None]:
    """What the user can act on is told to the client."""
    try:
        yield
    except AleaError as error:
        raise ToolError(str(error)) from error


def make_server(player: Choose, live: Table | None = None) -> MCPServer[Any]:
    """A server whose advice is this player's."""
    server: MCPServer[Any] = MCPServer(
        "aleazero-balatro", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    runs = Runs(live)
    imagined = policy_of(player)
    sees = None if live is not None else _SEES  # a look at a live game may cash out a round

    def answer(name: str, batch: Batch, snapshot: bool, **more: Any) -> dict[str, Any]:
        found = {"run": name, "position": _position(batch), **balatro_table.view(batch), **more}
        return {**found, "snapshot": batch.snapshot()[0].hex()} if snapshot else found

    @server.tool()
    def balatro_start(
        seed: Annotated[str, Field(min_length=1, max_length=8, description="Of the run, as the game writes it.")],
        deck: str = "Red Deck",
        stake: str = "White",
        last_ante: Annotated[int, Field(ge=8, le=12)] = 8,
        snapshot: Annotated[bool, Field(description="Answer with the whole record, for an environment.")] = False,
    ) -> dict[str, Any]:
        """Begins a run and answers with what is seen of it, and its name."""
        with _told():
            name, table = runs.start(seed, deck, stake, last_ante)
            return answer(name, table.see(), snapshot)

    @server.tool(annotations=sees)
    def balatro_state(run: Run = None) -> dict[str, Any]:
        """What is seen of the run: phase, blind, hand, jokers, shop, and the same as text."""
        with _told(), runs.using(run) as (name, table):
            return answer(name, table.see(), False)

    @server.tool(annotations=sees)
    def balatro_legal_actions(
        run: Run = None,
        everything: Annotated[bool, Field(description="List every play and discard, too: some hundreds.")] = False,
    ) -> dict[str, Any]:
        """What can be done now, by number and in words."""
        with _told(), runs.using(run) as (name, table):
            batch = table.see()
            return {"run": name, "position": _position(batch), **balatro_table.legal(batch, everything)}

    @server.tool()
    def balatro_act(
        what: What = "act",
        cards: Cards | None = None,
        action: Action = None,
        run: Run = None,
        position: Position = None,
        snapshot: bool = False,
    ) -> dict[str, Any]:
        """Plays or discards cards, or takes an action (on cards, where it needs any); answers with what is seen then.

        What is not legal changes nothing, and the answer says why.
        """
        with _told(), runs.using(run, acting=True) as (name, table):
            started = time.monotonic()
            before = table.see()
            if live is not None and time.monotonic() - started > SLOW:
                raise NotationError("the live game was away, and nothing was done: look at balatro_state first")
            if position not in (None, _position(before)):
                raise NotationError("the run is in another position by now: look at balatro_state first")
            taken = balatro_table.actions_for(before, what, cards or (), action)
            beaten = int(before.states["beaten"][0])
            for one in taken:
                table.act(one)
            after = table.see()
            return answer(name, after, snapshot, gained=int(after.states["beaten"][0]) - beaten)

    @server.tool(annotations=sees)
    def balatro_advise(run: Run = None, futures: Futures = balatro_advice.FUTURES) -> dict[str, Any]:
        """What to do, the best first, each with reasons, the chance to win the run and to beat one more blind."""
        with _told(), runs.using(run) as (name, table):
            batch = table.see().copy()
        with _told():
            tried = balatro_advice.advise(batch, player, futures, plays_on=imagined)
            return {"run": name, "position": _position(batch), "advice": balatro_advice.as_data(tried)}

    @server.tool(annotations=sees)
    def balatro_explain_score(cards: Cards, run: Run = None) -> dict[str, Any]:
        """What playing these cards would score, line by line; nothing is played, and chances are drawn anew."""
        with _told(), runs.using(run) as (name, table):
            batch = table.see()
            taken = balatro_table.actions_for(batch, "play", cards)
            return {"run": name, **balatro_table.explain(batch, taken)}

    @server.tool(annotations=sees)
    def balatro_simulate(
        what: What = "act",
        cards: Cards | None = None,
        action: Action = None,
        run: Run = None,
        futures: Futures = balatro_advice.FUTURES,
    ) -> dict[str, Any]:
        """Tries one decision in futures drawn anew, a baseline playing on: chances to win and to beat the blind."""
        with _told(), runs.using(run) as (name, table):
            batch = table.see().copy()
        with _told():
            taken = balatro_table.actions_for(batch, what, cards or (), action)
            (tried,) = balatro_advice.simulate(batch, [taken], imagined, futures)
            return {"run": name, **balatro_advice.as_data([tried])[0]}

    return server


class _TokenDoor:
    """Before every request: a token, and of a page no other site's."""

    def __init__(self, app: Any, token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            kind, _, given = headers.get(b"authorization", b"").partition(b" ")
            if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
                body = json.dumps({"error": "a token is needed: Authorization: Bearer TOKEN"}).encode()
                told = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
                await send({"type": "http.response.start", "status": 401, "headers": told})
                await send({"type": "http.response.body", "body": body})
                return
        await self._app(scope, receive, send)


def serve_http(
    server: MCPServer[Any], host: str, port: int, token: str | None, ready: Callable[[str, str], None]
) -> None:
    """Answers until it is interrupted; `ready` hears the address and the token once somebody can come."""
    if not 0 <= port < 2**16:
        raise ConfigError(f"port is {port}; it must be in 0..{2**16 - 1} (0: any that is free)")
    if token is not None and not _TOKEN.fullmatch(token):
        raise ConfigError("token is too simple: at least 16 letters, digits, - and _; leave it out to have one made")
    used = token or secrets.token_urlsafe(24)
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}; name another --host or --port") from error
    bound = listening.getsockname()[1]
    own = host in OWN_NAMES
    names = [f"{name}:{bound}" for name in ("127.0.0.1", "localhost", "[::1]")]
    safety = TransportSecuritySettings(enable_dns_rebinding_protection=own, allowed_hosts=names if own else [])
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, transport_security=safety, max_request_body_size=1 << 20
    )
    shown = f"[{host}]" if ":" in host else host

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready(f"http://{shown}:{bound}{PATH}", used)

    config = uvicorn.Config(
        _TokenDoor(app, used), log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=2
    )
    try:
        Server(config).run(sockets=[listening])
    finally:
        listening.close()


def serve_stdio(server: MCPServer[Any]) -> None:
    """Answers on standard input and output until the input ends."""
    logging.getLogger("mcp").setLevel(logging.WARNING)
    server.run("stdio")
