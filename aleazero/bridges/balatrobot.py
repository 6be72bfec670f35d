"""A live game of Balatro, played through BalatroBot's JSON-RPC.

The live game is the truth: it is looked at before every decision. Where it stops answering, the bridge pauses and
looks again until it is back. **Nothing is ever done twice**: a request that broke off is not sent again. Once the game
is back and at rest, its state says whether the action was taken; if it was not, whoever plays decides anew. What the
game refuses was not done, and is asked for again a few times: it may have been busy.
Knows BalatroBot's words over HTTP (`balatrobot_state` reads what it tells); nothing of who plays.
"""

from __future__ import annotations

import http.client
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from aleazero.bridges.balatro_advice import Choose
from aleazero.bridges.balatro_table import check
from aleazero.bridges.balatrobot_state import MENU, PAID, PHASES, method_of, read
from aleazero.bridges.post import post
from aleazero.core.errors import AleaError, ConfigError, NotationError
from aleazero.games.balatro import actions, facts, text
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.layout import P_OVER

PORT = 12346  # BalatroBot's own
LARGEST = 8 << 20  # bytes of an answer
MOST = 5000  # decisions of a run
LEAST = 1.0  # second for a look, however little time is left
TRIES = 5  # of an action in the same position, where it is refused or the connection breaks


class Lost(AleaError):  # noqa: N818 - as the other errors that name what is wrong
    """The live game did not answer: what was asked may have been done or not."""


class Refused(AleaError):  # noqa: N818
    """The live game answered with an error: nothing was done."""


class NotTaken(NotationError):  # noqa: N818
    """The connection broke before the action was taken; the game is back, and whoever plays decides anew."""


@dataclass(frozen=True)
class Patience:
    """How long the bridge waits, in seconds."""

    answer: float = 30.0  # for an answer: animations take their time
    pause: float = 1.0  # between two looks at a game that does not answer
    rest: float = 5.0  # for which a state must stay the same to be trusted after a break
    give_up: float = 600.0  # for the game to come back


class Rpc:
    """JSON-RPC 2.0 over HTTP, one request at a time, none of them repeated."""

    def __init__(self, url: str, seconds: float) -> None:
        wanted = f"write http://HOST:PORT, as in http://127.0.0.1:{PORT}"
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            port = parts.port or PORT
        except ValueError:
            raise ConfigError(f"live is no address with a port that can be: {wanted}") from None
        if parts.scheme != "http" or not parts.hostname:
            raise ConfigError(f"live names no host over http: {wanted}")
        self.address = f"{parts.hostname}:{port}"
        self._url, self._seconds, self._id = f"http://{_host(parts.hostname)}:{port}{parts.path or '/'}", seconds, 0

    def call(self, method: str, parameters: dict[str, Any] | None = None, seconds: float | None = None) -> Any:
        """What a method answers; Lost where nothing or nonsense comes back, Refused where it is an error."""
        self._id += 1
        asked = {"jsonrpc": "2.0", "method": method, "id": self._id}
        body = json.dumps({**asked, "params": parameters} if parameters else asked)
        within = self._seconds if seconds is None else min(seconds, self._seconds)
        try:
            told = json.loads(post(self._url, body, {"Content-Type": "application/json"}, within, LARGEST)[1])
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            raise Lost(f"the live game at {self.address} does not answer: {type(error).__name__}: {error}") from error
        wrong = not isinstance(told, dict) or told.get("id") != self._id
        if wrong or ("result" not in told and told.get("error") is None):
            raise Lost(f"the live game at {self.address} answered {method} with what is no answer to it")
        if told.get("error") is not None:
            error_ = told["error"] if isinstance(told["error"], dict) else {}
            raise Refused(f"the live game refused {method}: {str(error_.get('message', told['error']))[:300]}")
        return told["result"]


class LiveTable:
    """A live run, as a table."""

    def __init__(self, url: str, say: Callable[[str], None], patience: Patience | None = None) -> None:
        self._patience = patience or Patience()
        self._rpc, self._say = Rpc(url, self._patience.answer), say
        self._selected: set[int] = set()  # places of the hand: BalatroBot takes them with the action
        self._hand: list[Any] = []  # that they were selected in
        self._state: dict[str, Any] = {}

    # ---- Table

    def see(self) -> Batch:
        """The run as the game tells it now; waits while the game does not answer, or is busy."""
        self._state = self._settled()
        hand = _hand_of(self._state)
        if hand != self._hand:
            self._hand, self._selected = hand, set()
        return read(self._state, sorted(self._selected))

    def act(self, action: int) -> None:
        """Takes an action, once; NotTaken where the connection broke before it was taken."""
        batch = self.see()
        check(batch, action)
        name, place = text.split(action)
        if name == "toggle":
            self._selected ^= {place}
            return
        self._do(*method_of(batch, action))

    # ---- runs

    def start(self, seed: str | None, deck: str, stake: str) -> bool:
        """Begins a run where the game is in its menu; False where a run is on already, which is gone on with."""
        self._state = self._settled(menu=True)
        if self._state["state"] != MENU:
            return False
        words = {"deck": deck.removesuffix(" Deck").upper(), "stake": stake.upper()}
        facts.number("decks", deck)
        facts.number("stakes", stake)
        self._do("start", {**words, **({"seed": seed} if seed else {})})
        return True

    # ---- the connection

    def _do(self, method: str, parameters: dict[str, Any]) -> None:
        """One request, sent once."""
        before = self._state
        try:
            self._rpc.call(method, parameters)
        except Refused as error:
            raise NotationError(str(error)) from error
        except Lost as error:
            self._say(f"{error}; paused")
            now = self._back()
            if method != "start" and _run_of(now) != _run_of(before):
                raise ConfigError("the live game is back with another run: begin again") from error
            if now == before:
                raise NotTaken(f"{method} was not taken: the connection broke before it") from error
            self._say(f"the live game is back; {method} was taken")

    def _settled(self, menu: bool = False) -> dict[str, Any]:
        """The state once something can be decided; a round that is over is cashed out."""
        until = time.monotonic() + self._patience.give_up
        asked, why = False, ""  # whether it was told to cash out, and why it did not
        while True:
            state = self._look(until)
            if state["state"] in PHASES or (menu and state["state"] == MENU):
                return state
            if state["state"] == MENU:
                raise ConfigError("the live game is in its menu: no run is on")
            if state["state"] == PAID and not asked:
                asked, why = True, self._cash_out(state)
            else:
                self._wait(until, why or f"the live game stays in state {state['state']!r}")
                asked = asked and not why  # what was refused is asked for again; what was taken is waited for

    def _cash_out(self, state: dict[str, Any]) -> str:
        """Asks for it; why it was not done, or nothing where it was taken."""
        self._state = state
        try:
            self._do("cash_out", {})
        except NotationError as error:  # refused, or not taken: the game is looked at again
            return str(error)
        return ""

    def pause(self) -> None:
        """Lets a game that refused something come to itself."""
        time.sleep(self._patience.pause)

    def _look(self, until: float) -> dict[str, Any]:
        """A state, however long it takes."""
        said = False
        while True:
            try:
                state = self._rpc.call("gamestate", seconds=max(LEAST, until - time.monotonic()))
                if isinstance(state, dict) and isinstance(state.get("state"), str):
                    if said:
                        self._say("the live game is back")
                    return state
                raise Lost("the live game tells no state")
            except (Lost, Refused) as error:
                if not said:
                    self._say(f"{error}; paused")
                said = True
                self._wait(until, str(error))

    def _back(self) -> dict[str, Any]:
        """The state once the game answers again and has been at rest: what was under way is done by then."""
        until = time.monotonic() + self._patience.give_up
        state = self._look(until)
        since = time.monotonic()
        while time.monotonic() - since < self._patience.rest or not _at_rest(state):
            self._wait(until, "the live game does not come to rest", min(self._patience.pause, self._patience.rest / 4))
            now = self._look(until)
            if now != state:
                state, since = now, time.monotonic()
        return state

    def _wait(self, until: float, why: str, seconds: float | None = None) -> None:
        if time.monotonic() > until:
            raise AleaError(f"given up after {self._patience.give_up:g} s: {why}")
        time.sleep(self._patience.pause if seconds is None else seconds)


def play_live(table: LiveTable, choose: Choose, say: Callable[[str], None], most: int | None = None) -> dict[str, Any]:
    """Plays a live run to its end.

    Where the game refuses an action, it is asked again; where it goes on refusing, another one is chosen.
    """
    most = MOST if most is None else most
    refused: Counter[int] = Counter()
    decisions, breaks, here, last = 0, 0, 0, b""  # `here`: breaks in this position
    again: int | None = None  # what was refused, and is to be tried again
    while True:
        batch = table.see()
        g = batch.states[0]
        if int(g.phase) == P_OVER or int(g.won) or decisions >= most:
            end = {"won": bool(g.won), "ante": int(g.ante), "decisions": decisions}
            return {**end, "breaks": breaks, "stopped": int(g.phase) != P_OVER and not int(g.won)}
        now = batch.snapshot()[0]
        if now != last:
            refused, here, again, last = Counter(), 0, None, now
        left_out = [action for action, times in refused.items() if times >= TRIES]
        action = _choice(batch, choose, left_out, decisions) if again is None else again
        words, again = text.describe(g, action), None
        try:
            table.act(action)
        except NotTaken as error:
            breaks, here = breaks + 1, here + 1
            if here >= TRIES:
                raise AleaError(f"given up: {here} times in the same position, {error}") from error
            continue
        except NotationError as error:
            refused[action] += 1
            if refused[action] == 1:
                say(str(error))
            again = action if refused[action] < TRIES else None
            table.pause()
            continue
        decisions += 1
        say(f"ante {int(g.ante)}, {words}")


def _choice(batch: Batch, choose: Choose, refused: Iterable[int], move: int) -> int:
    for action in refused:
        batch.masks[0, action] = False
    if not batch.masks[0].any():
        raise AleaError("the live game refuses everything that could be done")
    action = int(choose(batch, move)[0])
    if batch.masks[0, action]:
        return action
    # A baseline may insist on what was refused: what leads on then, and nothing that uses, sells or skips.
    leads_on = (actions.A_LEAVE_SHOP, actions.A_SELECT_BLIND, *range(actions.A_PLAY, actions.A_DISCARD))
    for other in leads_on:
        if batch.masks[0, other]:
            return other
    raise AleaError(f"the live game refuses {text.describe(batch.states[0], action)}, and nothing else leads on")


def _host(name: str) -> str:
    return f"[{name}]" if ":" in name else name


def _hand_of(state: dict[str, Any]) -> list[Any]:
    hand = state.get("hand")
    cards = hand.get("cards") if isinstance(hand, dict) else None
    return [card.get("id") for card in cards if isinstance(card, dict)] if isinstance(cards, list) else []


def _run_of(state: dict[str, Any]) -> tuple[Any, ...]:
    return state.get("seed"), state.get("deck"), state.get("stake")


def _at_rest(state: dict[str, Any]) -> bool:
    return state["state"] in (*PHASES, PAID, MENU)
