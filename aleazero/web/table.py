"""A table: one game, who sits where, every move so far, and what a visitor sees of it.

All of it follows from a `Record`, a line of JSON: the moves are played again from the seed. So a table outlives the
server, and a move that is taken back changes nothing that nature has in store.
Where a game has whole turns, a person makes them step by step and then ends them; until then any step can be undone.
A turn's time is told to it: it has no clock of its own to look at.
Knows the rules and notation of games; not who thinks for a player, and nothing of the network.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import secrets
from typing import Any

import jax.numpy as jnp
import numpy as np

from aleazero.core.errors import AleaError, NotationError
from aleazero.core.game import outcome_index
from aleazero.web.clock import Clock
from aleazero.web.faces import face_of
from aleazero.web.rules import playable, rules_of

HUMAN = "human"
MOST_TURNS = 4000


class NotNow(AleaError):  # noqa: N818 - it says when, not what went wrong
    """What was asked for is possible at another time: it is not that seat's turn, or the game is over."""


@dataclasses.dataclass(frozen=True)
class Record:
    """All that is kept of a table."""

    game: str
    seats: tuple[str, str]  # "human", or a player's string
    seed: int
    start: str | None = None  # a position to begin at
    turns: tuple[tuple[int, ...], ...] = ()  # that are over
    begun: tuple[int, ...] = ()  # the steps of the one that is not
    resigned: int | None = None  # a seat
    length: int = 0  # points of the match; 0: a single game
    score: tuple[int, int] = (0, 0)  # before this game
    clock: Clock | None = None
    late: int | None = None  # the seat whose time was up

    def to_json(self) -> str:
        """One line."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> Record:
        """The record of a line; ValueError, KeyError or TypeError where there is none."""
        given = json.loads(text)
        return Record(
            game=str(given["game"]),
            seats=(str(given["seats"][0]), str(given["seats"][1])),
            seed=int(given["seed"]),
            start=None if given["start"] is None else str(given["start"]),
            turns=tuple(tuple(int(action) for action in turn) for turn in given["turns"]),
            begun=tuple(int(action) for action in given["begun"]),
            resigned=None if given["resigned"] is None else int(given["resigned"]),
            length=int(given["length"]),
            score=(int(given["score"][0]), int(given["score"][1])),
            clock=Clock.from_json(given["clock"]) if given.get("clock") else None,
            late=None if given.get("late") is None else int(given["late"]),
        )


@dataclasses.dataclass(frozen=True)
class Played:
    """A turn that is over."""

    seat: int
    name: str
    chance: str  # what nature had drawn before it, if it had
    steps: list[dict[str, Any]]  # places, as `Face.places` gives them
    actions: tuple[int, ...]


class Table:
    """One game."""

    def __init__(self, record: Record) -> None:
        """Plays the record's moves; AleaError where it is no record of a game."""
        self._restore(record)

    def _restore(self, record: Record) -> None:
        self.game = playable(record.game)
        self.rules, self.face, self.notation = rules_of(self.game), face_of(self.game), self.game.notation
        self.record = dataclasses.replace(record, turns=(), begun=())
        self.played: list[Played] = []
        self._plies = 0
        self._legal: tuple[Any, list[int]] = (None, [])  # a state, and what is legal in it
        self._line: list[Any] = []  # the states of the turn, one more than its steps
        self._begin()
        for turn in record.turns:
            self._advance(turn)
            self.end_turn()
        self._advance(record.begun)

    # ---- what is known

    @property
    def to_play(self) -> int:
        """The seat whose turn it is, also where its turn waits to be ended."""
        return int(self.state.to_play)

    @property
    def waits(self) -> bool:
        """The turn is complete and waits to be ended."""
        return bool(self.record.begun) and self._turn_is_complete()

    @property
    def over(self) -> bool:
        """Nobody will move any more."""
        given_up = self.record.resigned is not None or self.record.late is not None
        return given_up or (not self.record.begun and self._stopped())

    @property
    def player(self) -> str:
        """Who is to play: "human" or a player's string."""
        return self.record.seats[self.to_play]

    @property
    def points(self) -> tuple[float, float]:
        """What the game has brought either seat."""
        if self.record.resigned is not None:
            return (-1.0, 1.0) if self.record.resigned == 0 else (1.0, -1.0)
        if self.record.late is not None:
            if not self.face.can_win(self.state, 1 - self.record.late):
                return 0.0, 0.0
            return (-1.0, 1.0) if self.record.late == 0 else (1.0, -1.0)
        return float(self.state.returns[0]), float(self.state.returns[1])

    def moves(self) -> list[dict[str, Any]]:
        """The legal actions, with names and places."""
        if self.over or self._turn_is_complete():
            return []
        return [
            {"action": action, "name": self.face.name(self.state, action), **self.face.places(self.state, action)}
            for action in self._legal_in(self.state)
        ]

    def starts(self) -> list[Any]:
        """Where every turn that is over began; played again, for a hall full of tables keeps none of these states."""
        again, found = Table(dataclasses.replace(self.record, turns=(), begun=(), resigned=None, late=None)), []
        for turn in self.played:
            found.append(again.state)
            again._advance(turn.actions)
            again.end_turn()
        return found

    def copy(self) -> Table:
        """A table of its own: nothing that is done here is seen there."""
        other = copy.copy(self)
        other.played, other._line = list(self.played), list(self._line)
        return other

    def steps(self, state: Any, actions: list[int] | tuple[int, ...]) -> list[dict[str, Any]]:
        """The places of actions that are made one after the other."""
        found = []
        for number, action in enumerate(actions):
            found.append(self.face.places(state, action))
            if number + 1 < len(actions):
                state = self.rules.apply(state, action)
        return found

    # ---- what can be done

    def step(self, actions: list[int]) -> None:
        """Makes steps of the turn; all of them are legal, or none is made. Ends a turn that has only one."""
        if self.over:
            raise NotNow("the game is over; begin another one")
        self._advance(tuple(actions))
        if actions and (self.game.plays is None or bool(self.state.terminated)):
            self.end_turn()

    def read(self, text: str) -> list[int]:
        """The actions that a text means in the game's notation."""
        if self.over or self._turn_is_complete():
            raise NotNow("there is nothing to move here: the turn or the game is over")
        return self.notation.parse_moves(self.state, text)

    def end_turn(self) -> None:
        """Ends a complete turn: nature moves, and the other side is to play."""
        if not self.waits:
            raise NotNow("the turn is not complete: there are steps to make")
        actions = self.record.begun
        name = self.notation.format_turn(self._start, list(actions))
        steps = self._steps_so_far()
        self.played.append(Played(int(self._start.to_play), name, self._chance, steps, actions))
        self.record = dataclasses.replace(self.record, turns=(*self.record.turns, actions), begun=())
        self._plies += 1
        self._settle(self.state, len(self.played) - 1, opening=False)

    def take_back(self, people: frozenset[int] | None = None) -> None:
        """Undoes a step of the turn; if there is none, everything since a person's last turn, and that turn too."""
        seats = frozenset(seat for seat in (0, 1) if self.record.seats[seat] == HUMAN) if people is None else people
        record = self.record
        if record.clock is not None and (self.over or not record.begun):
            raise NotNow("with a clock nothing is taken back but steps of a turn that is not over")
        if record.resigned is not None:
            record = dataclasses.replace(record, resigned=None)
        elif record.begun:
            self._line.pop()
            self.state = self._line[-1]
            self.record = dataclasses.replace(record, begun=record.begun[:-1])
            return
        else:
            mine = [number for number, turn in enumerate(self.played) if turn.seat in seats]
            if not mine:
                raise NotNow("there is no move of yours to take back")
            record = dataclasses.replace(record, turns=record.turns[: mine[-1]])
        self._restore(record)

    def resign(self, seat: int) -> None:
        """Gives the game up."""
        if self.over:
            raise NotNow("the game is over already")
        self.record = dataclasses.replace(self.record, resigned=seat)

    def next_game(self) -> None:
        """The match's next game, or another game between the same players."""
        if not self.over:
            raise NotNow("the game is not over yet")
        score = self.score
        done = self.record.length and max(score) >= self.record.length
        fresh = dataclasses.replace(
            self.record,
            seed=secrets.randbits(31),
            turns=(),
            begun=(),
            resigned=None,
            late=None,
            clock=self.record.clock and Clock.of(self.record.clock.seconds, self.record.clock.increment),
            score=(0, 0) if done or not self.record.length else score,
        )
        self._restore(fresh)

    # ---- time

    def count(self, turns: int, now: float) -> None:
        """What has been done since there were so many turns, told to the clock; a person's time begins at once."""
        clock = self.record.clock
        if clock is None:
            return
        if len(self.played) > turns:
            last = self.played[-1].seat
            clock = clock.pressed(last, now, first=len(self.played) == 1)
        self.record = dataclasses.replace(self.record, clock=clock.stopped(self.to_play, now) if self.over else clock)
        if self.player == HUMAN:
            self.start_clock(now)

    def start_clock(self, now: float) -> None:
        """Time runs for whoever is to play, from the second turn on."""
        clock = self.record.clock
        if clock is not None and self.played and not self.over:
            self.record = dataclasses.replace(self.record, clock=clock.started(now))

    def notice(self, now: float) -> bool:
        """Ends the game if the time of whoever is to play is up; whether it is."""
        clock = self.record.clock
        if clock is None or self.over or not clock.has_fallen(self.to_play, now):
            return False
        self.record = dataclasses.replace(self.record, late=self.to_play, clock=clock.stopped(self.to_play, now))
        return True

    def time_left(self, now: float) -> dict[str, Any] | None:
        """What a page shows of the clock."""
        clock = self.record.clock
        if clock is None:
            return None
        running = None if clock.since is None or self.over else self.to_play
        left = [round(seconds, 3) for seconds in clock.remaining(self.to_play, now)]
        return {"left": left, "running": running, "seconds": clock.seconds, "increment": clock.increment}

    @property
    def score(self) -> tuple[int, int]:
        """The match's, with this game if it is over."""
        one, two = self.record.score
        if not self.over:
            return one, two
        won = self.points
        return one + max(int(won[0]), 0), two + max(int(won[1]), 0)

    # ---- what is seen

    def view(self) -> dict[str, Any]:
        """Everything a page needs."""
        record, mine = self.record, self.player == HUMAN
        return {
            "game": record.game,
            "seats": list(record.seats),
            "to_play": self.to_play,
            "over": self.over,
            "result": self._result() if self.over else None,
            "board": self.face.board(self.state),
            "chance": self._chance,
            "moves": self.moves() if mine else [],
            "steps": self._steps_so_far(),
            "waits": self.waits and mine,
            "can_take_back": self._can_take_back(),
            "history": [{"seat": turn.seat, "name": turn.name, "chance": turn.chance} for turn in self.played],
            "last": self.played[-1].steps if self.played else [],
            "position": self.notation.format_state(self.state),
            "match": {"length": record.length, "score": list(self.score)},
        }

    def _can_take_back(self) -> bool:
        record = self.record
        if record.clock is not None:
            return bool(record.begun) and not self.over
        if record.resigned is not None:
            return True
        return bool(record.begun) or any(record.seats[turn.seat] == HUMAN for turn in self.played)

    def _result(self) -> dict[str, Any]:
        points = self.points
        winner = None if points[0] == points[1] else int(points[1] > points[0])
        name = "stopped without a result"
        if self.record.resigned is not None:
            name = "resigned"
        elif self.record.late is not None:
            name = "on time" if winner is not None else "draw: time is up, and the other side cannot win"
        elif bool(self.state.terminated):
            best = jnp.float32(max(points))
            outcomes = self.game.spec.outcomes
            name = outcomes[int(outcome_index(self.game.spec, best))].name if outcomes else f"{max(points):g} points"
        return {"winner": winner, "points": max(points), "name": name}

    # ---- inside

    def _begin(self) -> None:
        record = self.record
        if record.start is None:
            self._settle(self.rules.first(record.seed), 0, opening=True)
            return
        self._settle(self.notation.parse_state(record.start), 0, opening=True)

    def _settle(self, state: Any, move: int, opening: bool) -> None:
        after, outcome = self.rules.settle(state, self.record.seed, move, opening)
        self._chance = self.notation.format_chance(state, outcome) if outcome >= 0 else self.face.drawn(after)
        self._plies += outcome >= 0
        self.state = self._start = after
        self._line = [after]

    def _advance(self, actions: tuple[int, ...]) -> None:
        """Makes steps of the turn, or none of them where one is not legal."""
        line = [self.state]
        for action in actions:
            if self._ended(line[-1]) or action not in self._legal_in(line[-1]):
                raise NotationError(f"action {action} is not legal in {self.notation.format_state(line[-1])!r}")
            line.append(self.rules.apply(line[-1], action))
        self._line += line[1:]
        self.state = line[-1]
        self.record = dataclasses.replace(self.record, begun=(*self.record.begun, *actions))

    def _legal_in(self, state: Any) -> list[int]:
        if self._legal[0] is not state:
            self._legal = (state, self.rules.legal(state))
        return self._legal[1]

    def _steps_so_far(self) -> list[dict[str, Any]]:
        return [self.face.places(state, act) for state, act in zip(self._line, self.record.begun, strict=False)]

    def _ended(self, state: Any) -> bool:
        other = int(state.to_play) != int(self._start.to_play)
        return bool(state.is_chance) or bool(state.terminated) or other

    def _turn_is_complete(self) -> bool:
        return bool(self.record.begun) and (self.game.plays is None or self._ended(self.state))

    def _stopped(self) -> bool:
        limit = min(self.game.spec.max_plies, MOST_TURNS)
        return bool(np.asarray(self.state.terminated)) or self._plies >= limit
