"""Plays for GNU Backgammon, as its external player: boards as FIBS writes them in, moves out, over TCP.

What GNU Backgammon 1.07 does, found by asking it: for each decision it sends one line, `board:` and fields, then a NUL.
Its player 1 has the positive numbers and moves down from 24, player 0 has the negative ones, and the turn (1 or -1)
says who is asked; but with the flag of a double set, who has doubled. It asks with no dice where one might double,
and also where nothing can move. The answer is a line: `8/5 6/5`, counted from the mover's side (nothing for a pass),
`roll`, or `take` or `drop`. What it cannot read or play it takes for a pass, without a word.
We never double, and give up a doubled game where the player expects to lose more than half a point.
"""

from __future__ import annotations

import dataclasses
import logging
import socketserver
import threading
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.core.errors import AleaError, NotationError
from aleazero.core.game import Game
from aleazero.core.keys import Role, lane_keys
from aleazero.engine_players import EnginePlayer
from aleazero.engines.gnubg import Gnubg
from aleazero.engines.gnubg_program import GnubgProgram
from aleazero.games.backgammon.board import CHECKERS, PLACES
from aleazero.games.backgammon.boards import to_boards
from aleazero.games.backgammon.notation import Position, make_state
from aleazero.players import AnyPlayer, TurnNetworkPlayer, whole_turn

LONGEST_LINE = 1024  # bytes; GNU Backgammon's have about 150, and more with long names
_FIELDS = 45  # up to the bars' places; what follows adds nothing
_BOARD, _TURN, _DICE, _DOUBLED, _COLOUR, _DIRECTION = 6, 32, 33, 40, 41, 42
_DROP_BELOW = -0.5  # points: at the double of these a drop, -1, is better

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Question:
    """What a line asks."""

    position: Position  # before a roll `to_play` is the one who does not roll, as if it had moved last
    doubled: bool  # whether the cube is offered to `to_play`


def parse_board(line: str) -> Question:
    """What a `board:` line asks; seats are players 1 and 0 of GNU Backgammon, in this order."""
    fields = line.split(":")
    if fields[0] != "board":
        raise NotationError(f"{_short(line)} is not understood: a line begins with board:")
    if len(fields) < _FIELDS:
        raise NotationError(f"{_short(line)} has {len(fields)} fields; a board has at least {_FIELDS}")
    try:
        numbers = dict(enumerate(map(int, fields[3:_FIELDS]), 3))
    except ValueError as error:
        raise NotationError(f"{_short(line)}: {error}") from None
    problems = _problems(numbers)
    if not problems:
        position = _position(numbers)
        problems = position.problems()
        if not problems and not (position.mine.any() and position.theirs.any()):
            problems = ["the game is over"]
    if problems:
        raise NotationError(f"{_short(line)}: " + "; ".join(problems))
    return Question(position, bool(numbers[_DOUBLED]))


def _problems(numbers: Mapping[int, int]) -> list[str]:
    """What is wrong with single fields."""
    found = []
    most = max(abs(numbers[_BOARD + place]) for place in range(PLACES))
    if most > CHECKERS:
        found.append(f"there are {most} checkers on a point")
    if numbers[_TURN] not in (1, -1):
        found.append(f"the turn is {numbers[_TURN]}; it must be 1 or -1")
    dice = numbers[_DICE], numbers[_DICE + 1]
    if dice != (0, 0) and not all(1 <= die <= 6 for die in dice):
        found.append(f"the dice are {dice[0]} and {dice[1]}; a die shows 1 to 6, and before a roll both are 0")
    if numbers[_COLOUR] * numbers[_DIRECTION] != -1:
        found.append("positive numbers move down: colour and direction must be 1 and -1, or -1 and 1")
    return found


def _position(numbers: Mapping[int, int]) -> Position:
    board = np.array([numbers[_BOARD + place] for place in range(PLACES)])
    sides = [np.maximum(board, 0), np.maximum(-board, 0)]
    dice = numbers[_DICE], numbers[_DICE + 1]
    rolled = dice != (0, 0)
    seat = 0 if (numbers[_TURN] == 1) == rolled else 1
    mine, theirs = sides if seat == 0 else [side[::-1] for side in reversed(sides)]
    left = 0 if not rolled else 4 if dice[0] == dice[1] else 2
    return Position(mine, theirs, seat, (max(dice), min(dice)), left)


class Answerer:
    """One player's answers; for several threads, one at a time."""

    def __init__(self, game: Game, player: AnyPlayer) -> None:
        self._game, self._player = game, player
        self._lock = threading.Lock()
        self._asked = 0

    def answer(self, line: str) -> str:
        """The answer to a line; NotationError if it is no question."""
        question = parse_board(line)
        states = jax.tree.map(lambda x: x[None], make_state(self._game, question.position))  # type: ignore[arg-type]
        with self._lock:
            if question.doubled:
                return "take" if self._worth(states) >= _DROP_BELOW else "drop"
            return "roll" if bool(states.is_chance[0]) else self._move(states)

    def _move(self, states: Any) -> str:
        keys = lane_keys(jnp.uint32(0), Role.MATCH, jnp.uint32(self._asked), jnp.arange(1))
        self._asked += 1
        actions = whole_turn(self._game, self._player, states, keys)
        state = jax.tree.map(lambda x: x[0], states)
        name = self._game.notation.format_turn(state, actions)
        return "" if name == "pass" else name

    def _worth(self, states: Any) -> float:
        """The points that the player expects before the other one's roll; 0 if it has no opinion."""
        if isinstance(self._player, TurnNetworkPlayer):
            return float(self._player.judge(states).value[0]) * self._game.spec.scale
        if isinstance(self._player, EnginePlayer) and isinstance(self._player.engine, Gnubg | GnubgProgram):
            return float(self._player.engine.after_equities(to_boards(states))[0])
        return 0.0


class ExternalServer(socketserver.ThreadingTCPServer):
    """Answers every connection, each in a thread; `serve_forever` and `shutdown` are the socket server's."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, host: str, port: int, answerer: Answerer) -> None:
        self.answerer = answerer
        super().__init__((host, port), _Connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that fails is logged; the others go on."""
        log.exception("the connection of %s failed", client_address)


class _Connection(socketserver.StreamRequestHandler):
    server: ExternalServer

    def handle(self) -> None:
        log.info("%s is connected", self.client_address)
        try:
            while raw := self.rfile.readline(LONGEST_LINE):
                if not self._respond(raw):
                    break
        except ConnectionError as error:
            log.info("%s is gone: %s", self.client_address, error)

    def _respond(self, raw: bytes) -> bool:
        """Answers a line; False if the connection cannot go on."""
        line = raw.decode("utf-8", "replace").strip("\0\r\n ")
        whole = raw.endswith(b"\n")
        if not line or (not whole and len(raw) < LONGEST_LINE):
            return whole  # an empty line, or the rest of one that was never ended
        try:
            if not whole:
                raise NotationError(f"{_short(line)} is too long: a line has less than {LONGEST_LINE} bytes")
            said = self.server.answerer.answer(line)
        except NotationError as error:
            log.warning("%s: %s", self.client_address, error)
            said = f"Error: {error}"
        except AleaError as error:
            # An answer of any kind would be taken for a pass; a closed connection stops the game.
            log.error("%s: %s", self.client_address, error)
            return False
        self.wfile.write(said.encode("ascii", "replace") + b"\n")
        return whole


def _short(line: str) -> str:
    return repr(line if len(line) <= 80 else line[:80] + "...")
