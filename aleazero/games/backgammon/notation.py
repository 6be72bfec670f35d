"""How people write backgammon: moves as `8/5` or `bar/22*`, positions as XGID or as GNU Backgammon's position ID.

Points are numbered from the side of whoever moves. Seat 0 is X and, in an XGID, the player below (capital letters).
A position in the middle of a turn is an XGID with `+N` behind it: N moves are left of the dice shown.
On the host, one position at a time; numbers of checkers are `[26]` in the places of `board.py`.
"""

from __future__ import annotations

import base64
import dataclasses
import itertools
import re
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.core.errors import NotationError
from aleazero.core.game import Notation
from aleazero.games.backgammon.board import CHECKERS, PLACES, planes

if TYPE_CHECKING:
    from aleazero.games.backgammon.game import Backgammon, BackgammonState

OFF, MY_BAR = 0, 25
_XGID_END = ":0:0:0:0:0"  # no scores, no Jacoby, money play
_TURNS = {"1": 0, "-1": 1}


@dataclasses.dataclass(frozen=True)
class Position:
    """Checkers, dice and turn, as plain numbers."""

    mine: np.ndarray  # [26]: of the player whose turn it is or, before a roll, was; its places
    theirs: np.ndarray  # [26]: of the other one, in the same places
    to_play: int
    dice: tuple[int, int] = (0, 0)  # larger first
    left: int = 0
    opening: bool = False

    def problems(self) -> list[str]:
        """What cannot be on a board."""
        found = []
        for seat, side, bar in ((self.to_play, self.mine, 0), (1 - self.to_play, self.theirs, MY_BAR)):
            if side.sum() > CHECKERS:
                found.append(f"{'XO'[seat]} has {side.sum()} checkers; there are {CHECKERS}")
            if side[bar]:
                found.append(f"{'XO'[seat]} has a checker on the other player's bar")
            if not side.any() and max(self.dice):
                found.append(f"{'XO'[seat]} has won: there are no dice to play")
        both = np.flatnonzero((self.mine > 0) & (self.theirs > 0))
        if both.size:
            found.append(f"both players have checkers on point {both[0]}")
        if not self.mine.any() and not self.theirs.any():
            found.append("both players have borne off all checkers")
        if self.opening and not np.array_equal(self.mine, self.theirs[::-1]):
            found.append("before the opening roll the position is the same for both players; else the turn is 1 or -1")
        return found


class BackgammonNotation(Notation):
    """`8/5`, `bar/22*`, `6/off`; XGID and position ID."""

    def __init__(self, game: Backgammon) -> None:
        self.game = game

    # ---- moves

    def format_action(self, state: Any, action: int) -> str:
        """One checker's move, with a star if it hits."""
        if int(action) == self.game.spec.num_actions - 1:
            return "pass"
        here = read(state)
        (source, target), die = _ends(action), int(action) % 6 + 1
        name = f"{_place(source)}/{_place(target)}" + "*" * bool(target > OFF and here.theirs[target] == 1)
        # Where either die takes a checker off, the larger one is named; what is left to play is another die.
        either = target == OFF and source <= here.dice[1] < die and here.mine.sum() > 1
        return f"{name}:{die}" if either else name

    def parse_action(self, state: Any, text: str) -> int:
        """The move of one checker by one die: `4/off` by the smaller one that does it, `4/off:6` by the other."""
        if bool(state.terminated) or bool(state.is_chance):
            raise NotationError(
                f"move {text!r} is not possible: " + ("the game is over" if state.terminated else "roll first")
            )
        legal = {self.format_action(state, a): a for a in _legal(self.game, state)}
        word = _tidy(text)
        for name, action in legal.items():
            if _tidy(name) == word:
                return action
        if not re.fullmatch(r"pass|(bar|\d+)/(off(:[1-6])?|\d+)", word):
            raise NotationError(f"move {text!r} is not written as one checker's move, as in 8/5, bar/22 or 6/off")
        raise NotationError(f"move {text!r} is not possible here; possible: {', '.join(legal)}")

    def parse_moves(self, state: Any, text: str) -> list[int]:
        """The actions of a whole turn, `8/5 6/5`, or of the part of one that is written."""
        try:
            return [self.parse_action(state, text)]
        except NotationError:
            hops = _read_turn(text)
            if not hops or bool(state.terminated) or bool(state.is_chance):
                raise
        ways = self._ways(state, hops)
        if ways:  # hits on the way need not be written, but where there is a choice none is meant
            return min(ways, key=lambda way: way[0])[1]
        turns = self.turns(state)
        shown = ", ".join(self.format_turn(state, actions) for actions, _ in turns[:8])
        shown += f" and {len(turns) - 8} more" if len(turns) > 8 else ""
        raise NotationError(f"turn {text!r} is not possible here; possible: {shown}")

    def _ways(self, state: Any, hops: list[tuple[int, int]]) -> list[tuple[int, list[int]]]:
        """The actions that move checkers from place to place as written, in any order; with the number of hits."""
        if not hops or len(hops) > int(state.left):  # nothing is left where the turn is over
            return [] if hops else [(0, [])]
        found, theirs = [], read(state).theirs
        for action in _legal(self.game, state):
            source, target = _ends(action)
            for hop in {hop for hop in hops if hop[0] == source and hop[1] <= target}:
                rest = [(target, hop[1])] if target > hop[1] else []
                rest += hops[: hops.index(hop)] + hops[hops.index(hop) + 1 :]
                hit = int(target > OFF and theirs[target] == 1)
                after = self._ways(_apply(self.game, state, action), rest)
                found += [(hits + hit, [action, *actions]) for hits, actions in after]
        return found

    def turns(self, state: Any) -> list[tuple[list[int], Any]]:
        """Every distinct turn from a decision state: its actions, and the state it leaves."""
        found: dict[bytes, tuple[list[int], Any]] = {}
        met = set()
        waiting: list[tuple[list[int], Any]] = [([], state)]
        while waiting:
            actions, here = waiting.pop()
            key = bytes(np.asarray(_jitted(self.game, "pack")(here)))
            if actions and (bool(here.is_chance) or bool(here.terminated)):
                found.setdefault(key, (actions, here))
            elif key not in met:
                met.add(key)
                waiting += [([*actions, a], _apply(self.game, here, a)) for a in reversed(_legal(self.game, here))]
        return list(found.values())

    def format_turn(self, state: Any, actions: list[int]) -> str:
        """A whole turn, checker by checker, as players write it: `24/18*/13`, `8/5(2)`."""
        runs: list[list[tuple[int, bool]]] = []  # places of one checker; whether it hit there
        for action in actions:
            if int(action) == self.game.spec.num_actions - 1:
                return "pass"
            here = read(state)
            source, target = _ends(action)
            hits = target > OFF and here.theirs[target] == 1
            run = next((r for r in runs if r[-1][0] == source), None)
            if run is None:
                run = [(source, False)]
                runs.append(run)
            run.append((target, bool(hits)))
            state = _apply(self.game, state, action)
        written: dict[str, int] = {}
        for run in sorted(runs, key=lambda r: [*(-place for place, _ in r), 1]):  # who goes on, before who stays
            # Off by both dice, where one would do, is told from that by the stop on the way.
            all_stops = run[-1][0] == OFF and run[0][0] <= max(int(action) % 6 + 1 for action in actions)
            stops = [run[0], *[stop for stop in run[1:-1] if stop[1] or all_stops], run[-1]]
            name = "/".join(_place(place) + "*" * hit for place, hit in stops)
            written[name] = written.get(name, 0) + 1
        return " ".join(name + (f"({number})" if number > 1 else "") for name, number in written.items())

    # ---- positions

    def format_state(self, state: Any) -> str:
        """An XGID; `+N` behind it in the middle of a turn."""
        here = read(state)
        seat = here.to_play
        below = here.mine if seat == 0 else here.theirs[::-1]
        above = here.theirs if seat == 0 else here.mine[::-1]
        letters = "".join(_letter(int(b), int(a)) for b, a in zip(below, above, strict=True))
        waits = bool(state.is_chance)
        turn = 0 if here.opening else (1 if (1 - seat if waits else seat) == 0 else -1)
        whole = 4 if here.dice[0] == here.dice[1] else 2
        rest = f" +{here.left}" if max(here.dice) and here.left != whole else ""
        return f"XGID={letters}:0:0:{turn}:{here.dice[0]}{here.dice[1]}{_XGID_END}{rest}"

    def parse_state(self, text: str) -> BackgammonState:
        """An XGID, or a position ID with `:31` behind it if dice are rolled (X is to play)."""
        try:
            found = _read_xgid(text) if "=" in text or text.count(":") > 1 else _read_position_id(text)
            problems = found.problems()
            if problems:
                raise NotationError("; ".join(problems))
            return make_state(self.game, found)
        except NotationError as error:
            raise NotationError(f"position {text!r}: {error}") from None

    def format_chance(self, state: Any, outcome: int) -> str:
        """The dice, larger first."""
        from aleazero.games.backgammon.game import MIXED, ROLLS

        if not bool(state.opening):
            return "{}{}".format(*ROLLS[int(outcome)])
        return "{}{}".format(*ROLLS[int(outcome) % MIXED]) + f", {'XO'[int(outcome) // MIXED]} starts"

    def draw(self, state: Any) -> str:
        """The board as the player to play sees it; X is seat 0."""
        here = read(state)
        marks = "XO" if here.to_play == 0 else "OX"

        def half(points: range, top: bool) -> list[str]:
            rows = []
            for level in range(5):
                cells = []
                for point in points:
                    number, mark = max((int(here.mine[point]), marks[0]), (int(here.theirs[point]), marks[1]))
                    shown = str(number) if level == 4 and number > 5 else mark if number > level else " "
                    cells.append(f" {shown} ")
                bar = (int(here.theirs[0]), marks[1]) if top else (int(here.mine[MY_BAR]), marks[0])
                middle = str(bar[0]) if level == 4 and bar[0] > 5 else bar[1] if bar[0] > level else " "
                rows.append("|" + "".join(cells[:6]) + f"| {middle} |" + "".join(cells[6:]) + "|")
            return rows if top else rows[::-1]

        def numbers(points: range) -> str:
            cells = [f"{p:>2} " for p in points]
            return " " + "".join(cells[:6]) + "     " + "".join(cells[6:])

        off = [CHECKERS - int(side.sum()) for side in (here.mine, here.theirs)]
        pips = [int((here.mine * np.arange(PLACES)).sum()), int((here.theirs * np.arange(PLACES)[::-1]).sum())]
        above, below = range(13, 25), range(12, 0, -1)
        lines = [
            numbers(above),
            *half(above, True),
            "|" + " " * 18 + "|BAR|" + " " * 18 + "|",
            *half(below, False),
            numbers(below),
            f"{marks[0]}: {pips[0]} pips, {off[0]} off   {marks[1]}: {pips[1]} pips, {off[1]} off",
        ]
        if max(here.dice):
            dice = [d for d in here.dice if d] if here.dice[0] != here.dice[1] else [here.dice[0]] * here.left
            lines.append(f"{marks[0]} to play {' '.join(map(str, dice))}")
        elif here.opening:
            lines.append("the opening roll decides who starts")
        return "\n".join(lines)

    def explain(self) -> str:
        """Moves and positions."""
        return (
            "Moves are from point to point, counted from your side: 8/5 6/5, bar/22, 6/off; a whole turn or one "
            "checker at a time. Positions are XGIDs, or GNU Backgammon's position IDs with the dice behind a colon."
        )


# ---- positions and states


def read(state: Any) -> Position:
    """The position of a state."""
    mine, theirs = (_counts(np.asarray(side)) for side in (state.mine, state.theirs))
    dice = tuple(int(d) for d in np.asarray(state.dice))
    return Position(mine, theirs, int(state.to_play), dice, int(state.left), bool(state.opening))  # type: ignore[arg-type]


def _counts(side: np.ndarray) -> np.ndarray:
    """`[26]` from planes `[4]`; in numpy, for it is asked at every step of a turn."""
    bits = (side[:, None] >> np.arange(PLACES, dtype=np.uint32)) & 1
    return (bits.astype(np.int64) << np.arange(4)[:, None]).sum(0)


def make_state(game: Backgammon, position: Position) -> BackgammonState:
    """The state of a position; the game is over where a side has no checkers left."""
    from aleazero.games.backgammon.game import state_of

    if not position.theirs.any():  # the other one has won, and moved last
        position = dataclasses.replace(
            position, mine=position.theirs[::-1], theirs=position.mine[::-1], to_play=1 - position.to_play
        )
    mine, theirs = (jnp.asarray(np.stack(planes(side))) for side in (position.mine, position.theirs))
    return state_of(
        mine,
        theirs,
        jnp.int8(position.to_play),
        jnp.asarray(position.dice, jnp.int8),
        jnp.int8(position.left),
        jnp.bool_(position.opening),
    )


def position_id(mine: np.ndarray, theirs: np.ndarray) -> str:
    """GNU Backgammon's position ID of `[25]` numbers of checkers (own points 1 to 24, bar); `mine` rolls."""
    bits = "".join("1" * int(n) + "0" for side in (theirs, mine) for n in side)
    number = int(bits.ljust(80, "0")[::-1], 2)
    return base64.b64encode(number.to_bytes(10, "little")).decode().rstrip("=")


def from_position_id(text: str) -> tuple[np.ndarray, np.ndarray]:
    """`mine, theirs`, each `[25]` as in `position_id`."""
    if not re.fullmatch(r"[A-Za-z0-9+/]{14}", text):
        raise NotationError("a position ID has 14 letters, digits, + and /")
    raw = base64.b64decode(text + "==")
    bits = bin(int.from_bytes(raw, "little") | 1 << 80)[:2:-1]
    sides = bits.split("0")
    if len(sides) < 50 or any(sides[50:]):
        raise NotationError("no position ID: it does not hold two sides of 25 places")
    if base64.b64encode(raw).decode().rstrip("=") != text:
        raise NotationError("no position ID: its last letter holds more than the ten bytes of a position")
    numbers = np.array([len(run) for run in sides[:50]])
    return numbers[25:], numbers[:25]


def _read_position_id(text: str) -> Position:
    name, _, dice = text.strip().partition(":")
    mine, theirs = from_position_id(name.strip())
    larger, smaller = _read_dice(dice) if dice else (0, 0)
    own = np.concatenate([[0], mine])
    other = np.concatenate([theirs[::-1], [0]])
    if larger:
        return Position(own, other, 0, (larger, smaller), 4 if larger == smaller else 2)
    return Position(other[::-1], own[::-1], 1)  # X rolls, so O moved last


def _read_xgid(text: str) -> Position:
    body, _, rest = text.strip().partition("+")
    fields = body.strip().removeprefix("XGID=").split(":")
    if len(fields) < 5:
        raise NotationError("an XGID has at least five fields: board, cube, owner, turn, dice")
    board, _, _, turn, dice = fields[:5]
    if len(board) != PLACES or re.search(r"[^-a-oA-O]", board):
        raise NotationError(f"the board of an XGID has {PLACES} of the signs -, A to O and a to o")
    below = np.array([ord(c) - 64 if c.isupper() else 0 for c in board])
    above = np.array([ord(c) - 96 if c.islower() else 0 for c in board])
    opening = turn == "0"
    if not opening and turn not in _TURNS:
        raise NotationError(f"the turn of an XGID is 1 or -1, not {turn!r}")
    larger, smaller = (0, 0) if dice == "00" else _read_dice(dice, partly=bool(rest))
    seat = 0 if opening else _TURNS[turn] if larger else 1 - _TURNS[turn]
    left = 0 if not larger else 4 if larger == smaller else 2
    if opening and larger:
        raise NotationError("before the opening roll there are no dice")
    if rest:
        most = 3 if left == 4 else 1 if larger and not smaller else 0
        if not rest.strip().isdecimal() or not 1 <= int(rest) <= most:
            raise NotationError(f"+{rest}: it follows a double, as in 33 +2, or one die and a zero, as in 50 +1")
        left = int(rest)
    mine, theirs = (below, above) if seat == 0 else (above[::-1], below[::-1])
    return Position(mine, theirs, seat, (larger, smaller), left, opening)


def _read_dice(text: str, partly: bool = False) -> tuple[int, int]:
    found = re.fullmatch(r"\s*([1-6])\s*([0-6])\s*" if partly else r"\s*([1-6])\s*([1-6])\s*", text)
    if not found:
        raise NotationError(f"dice {text!r} are not two numbers from 1 to 6, as in 31")
    one, two = int(found[1]), int(found[2])
    return max(one, two), min(one, two)


def _letter(below: int, above: int) -> str:
    return chr(64 + below) if below else chr(96 + above) if above else "-"


# ---- moves as text


def _place(place: int) -> str:
    return {OFF: "off", MY_BAR: "bar"}.get(place, str(place))


def _ends(action: int) -> tuple[int, int]:
    """Where an action's checker comes from and goes to."""
    source = int(action) // 6 + 1
    return source, max(source - int(action) % 6 - 1, OFF)


def _tidy(text: str) -> str:
    word = text.strip().lower().rstrip("*")
    return re.sub(r"^25/", "bar/", re.sub(r"/0$", "/off", word))


def _read_turn(text: str) -> list[tuple[int, int]]:
    """`8/5 6/5(2)` as hops from place to place; empty if it is not written like that."""
    hops: list[tuple[int, int]] = []
    for word in text.strip().lower().replace(",", " ").split():
        found = re.fullmatch(r"((?:bar|\d+)(?:/(?:off|\d+)\*?)+)(?:\((\d)\))?", word)
        if not found:
            return []
        names = [stop.rstrip("*") for stop in found[1].split("/")]
        stops = [{"bar": MY_BAR, "off": OFF}.get(name) if not name.isdecimal() else int(name) for name in names]
        if any(stop is None or stop > MY_BAR for stop in stops):
            return []
        hops += list(itertools.pairwise(stops)) * int(found[2] or 1)  # type: ignore[arg-type]
    return hops


# ---- the game's functions, compiled once


def _legal(game: Backgammon, state: Any) -> list[int]:
    return sorted(int(a) for a in np.asarray(_jitted(game, "legal_list")(state)) if a >= 0)


def _apply(game: Backgammon, state: Any, action: int) -> Any:
    return _jitted(game, "apply_action")(state, np.int32(action))


def _jitted(game: Backgammon, name: str) -> Any:
    compiled = game.__dict__.setdefault("_compiled", {})
    if name not in compiled:
        compiled[name] = jax.jit(getattr(game, name))
    return compiled[name]
