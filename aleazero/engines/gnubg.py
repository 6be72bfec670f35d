"""GNU Backgammon in this process, by the package gnubg-nn: GNU at 0, 1 and 2 plies, GNU with noise, and pubeval.

Plies are counted as GNU counts them: at 0 the network judges the position itself; each ply more averages over the 21
rolls, each answered by the play that is best at 0-ply. At 1 and 2 plies a move is chosen among the best candidates of
the ply below (GNU's move filter). Values are expected points of a cubeless money game.

The library is silent, needs no random numbers for any of this, and gives the same answer whatever it was asked before.
It is not shared between threads at work: it holds the interpreter's lock. To use more cores, start processes; engines
can be pickled. An impossible position crashes it, so nothing reaches it unchecked.
Does not know states, seats, matches or the cube.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from aleazero.core.errors import MissingExtra
from aleazero.engines import EngineError

CHECKERS = 15
MAX_PLY = 2
PROBLEMS_SHOWN = 8
_POINTS = np.array([2.0, 1.0, 1.0, -1.0, -1.0])  # what win, win gammon, win backgammon, lose ..., lose ... add to -1


@dataclasses.dataclass(frozen=True)
class Gnubg:
    """GNU Backgammon at some ply. `noise` is the deviation, in points, of what is added to each play's 0-ply equity.

    The noise is a function of seed, position, dice and play, so that a match can be repeated.
    """

    ply: int = 0
    noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        problems = []
        if self.ply not in range(MAX_PLY + 1):
            problems.append(f"ply is {self.ply!r}; it must be 0 to {MAX_PLY}")
        if not 0 <= self.noise < float("inf"):
            problems.append(f"noise is {self.noise!r}; it must be a number of points from 0 on")
        elif self.noise and self.ply:
            problems.append(f"noise is {self.noise!r} at ply {self.ply!r}; noise is for ply 0")
        _raise(problems)
        _library()

    def choose(self, boards: np.ndarray, dice: np.ndarray) -> np.ndarray:
        """`[n, 2, 25]`: the positions it leaves (the mover still in row 1) from `[n, 2, 25]` with dice `[n, 2]`."""
        boards, dice = check(boards, dice)
        find = _library().best_move
        asked = zip(boards.tolist(), dice.tolist(), strict=True)
        if self.noise:
            keys = [self._noisy(board, roll) for board, roll in asked]
        else:
            # Without `b` there is no position; it is written from the opponent's side.
            keys = [find(board, *roll, n=int(self.ply), b=1)[1] for board, roll in asked]
        return _decode(keys)[:, ::-1]

    def probabilities(self, boards: np.ndarray, ply: int | None = None) -> np.ndarray:
        """`[n, 5]`: chances that the mover, on roll, wins, wins at least a gammon, a backgammon, loses a gammon, ..."""
        boards, _ = check(boards)
        return self._probabilities(boards, ply)

    def equities(self, boards: np.ndarray, ply: int | None = None) -> np.ndarray:
        """`[n]`: expected points of the mover, who is on roll; at this engine's ply if none is given."""
        return equity_of(self.probabilities(boards, ply))

    def after_equities(self, after: np.ndarray, ply: int | None = None) -> np.ndarray:
        """`[n]`: expected points of the mover, who has just moved; exact where the game is over."""
        after, _ = check(after, over=True)
        value = won_points(after).astype(np.float64)
        going = value == 0
        value[going] = -equity_of(self._probabilities(after[going, ::-1], ply))
        return value

    def _probabilities(self, boards: np.ndarray, ply: int | None) -> np.ndarray:
        ply = self.ply if ply is None else ply
        if ply not in range(MAX_PLY + 1):
            raise EngineError(f"ply is {ply!r}; it must be 0 to {MAX_PLY}")
        judge = _library().probabilities
        return np.array([judge(board, int(ply)) for board in boards.tolist()], np.float64).reshape(-1, 5)

    def _noisy(self, board: list[list[int]], dice: list[int]) -> str:
        """The key of the position left, from the opponent's side."""
        scored = _scored(board, dice)
        if not scored:
            return _library().best_move(board, *dice, b=1)[1]
        here = f"{self.seed} {_library().key_of_board(board)} {dice}"
        return max(scored, key=lambda play: play[1] + self.noise * _normal(f"{here} {play[0]}"))[0]


@dataclasses.dataclass(frozen=True)
class Pubeval:
    """Tesauro's public linear evaluator of 1993, as gnubg-nn has it."""

    def __post_init__(self) -> None:
        _library()

    def choose(self, boards: np.ndarray, dice: np.ndarray) -> np.ndarray:
        """`[n, 2, 25]`: the positions it leaves, as `Gnubg.choose`."""
        boards, dice = check(boards, dice)
        find = _library().pub_best_move
        after = boards.copy()
        for row, board, roll in zip(after, boards.tolist(), dice.tolist(), strict=True):
            steps = find(board, *roll)  # from, to, from, to, ...: points count from 0, the bar is 24, off is -1
            move(row, zip(steps[::2], steps[1::2], strict=True))
        return after


def candidates(board: np.ndarray, dice: np.ndarray) -> np.ndarray:
    """`[k, 2, 25]`: what every distinct legal play leaves; a forced pass leaves the position itself."""
    boards, rolls = check(np.asarray(board)[None], np.asarray(dice)[None])
    keys = _library().moves(boards[0].tolist(), *rolls[0].tolist())  # written from the mover's side
    return _decode(keys) if keys else boards


def ranked(board: np.ndarray, dice: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`[k, 2, 25], [k]`: what every legal play leaves and its 0-ply equity for the mover, best first."""
    boards, rolls = check(np.asarray(board)[None], np.asarray(dice)[None])
    scored = _scored(boards[0].tolist(), rolls[0].tolist())
    if not scored:
        after = candidates(board, dice)
        return after, Gnubg().after_equities(after)
    scored = sorted(scored, key=lambda play: -play[1])
    return _decode([key for key, _ in scored])[:, ::-1], np.array([equity for _, equity in scored])


# ---- positions, for whatever engine


def check(boards: np.ndarray, dice: np.ndarray | None = None, *, over: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Positions and dice as int64, the larger die first; every problem is in the error.

    With `over` the mover may have borne off everything: the position is one that a play has left.
    """
    boards, problems = np.asarray(boards), []
    if boards.ndim != 3 or boards.shape[1:] != (2, 25) or not np.issubdtype(boards.dtype, np.integer):
        problems.append(
            f"positions are {boards.dtype} {list(boards.shape)}; they must be whole numbers [n, 2, 25]: opponent, mover"
        )
    else:
        boards = boards.astype(np.int64)
        problems += _position_problems(boards, over)
    rolls = np.zeros((0, 2), np.int64) if dice is None else np.asarray(dice)
    if rolls.ndim != 2 or rolls.shape[1:] != (2,) or not np.issubdtype(rolls.dtype, np.integer):
        problems.append(f"dice are {rolls.dtype} {list(rolls.shape)}; they must be whole numbers [n, 2]")
    else:
        rolls = -np.sort(-rolls.astype(np.int64), axis=1)
        wrong = np.flatnonzero(((rolls < 1) | (rolls > 6)).any(1))
        problems += [f"dice {i}: {rolls[i].tolist()}; a die shows 1 to 6" for i in wrong]
        if dice is not None and len(rolls) != len(boards):
            problems.append(f"there are {len(boards)} positions and {len(rolls)} rolls; each position needs one")
    _raise(problems)
    return boards, rolls


def equity_of(probabilities: np.ndarray) -> np.ndarray:
    """`[n]`: expected points from the five probabilities `[n, 5]`."""
    return probabilities @ _POINTS - 1


def won_points(after: np.ndarray) -> np.ndarray:
    """`[n]`: 1, 2 or 3 where the mover has just won a single game, a gammon or a backgammon; 0 where it has not."""
    opponent = after[:, 0]
    gammon = opponent.sum(1) == CHECKERS
    backgammon = gammon & (opponent[:, 18:].sum(1) > 0)  # in the winner's home or on the bar
    return np.where(after[:, 1].any(1), 0, 1 + gammon + backgammon)


def move(board: np.ndarray, steps: Iterable[tuple[int, int]]) -> None:
    """Moves checkers of the mover on a `[2, 25]` board, in place: `(from, to)` counted from 0, bar 24, off below 0.

    The order of the steps does not matter; whether they are legal is not asked.
    """
    for source, target in steps:
        board[1, source] -= 1
        if target >= 0:
            board[1, target] += 1
            if board[0, 23 - target] == 1:
                board[0, 23 - target] = 0
                board[0, 24] += 1


def _position_problems(boards: np.ndarray, over: bool) -> list[str]:
    totals = boards.sum(2)
    shared = (boards[:, 0, :24] > 0) & (boards[:, 1, 23::-1] > 0)
    wrong = (boards < 0).any((1, 2)) | (totals > CHECKERS).any(1) | shared.any(1) | (totals[:, 0] == 0)
    if not over:
        wrong |= totals[:, 1] == 0
    problems = []
    for i in np.flatnonzero(wrong):
        found = []
        for name, side in zip(("opponent", "mover"), boards[i], strict=True):
            if (side < 0).any():
                found.append(f"the {name} has {side.min()} checkers on a point")
            elif side.sum() > CHECKERS:
                found.append(f"the {name} has {side.sum()} checkers; there are {CHECKERS}")
        if shared[i].any():
            found.append(f"both sides have checkers on the mover's point {24 - np.flatnonzero(shared[i])[0]}")
        if not totals[i].any():
            found.append("both sides have borne off all checkers")
        elif not totals[i, 0] or (not over and not totals[i, 1]):
            found.append(f"the game is over: the {'mover' if totals[i, 0] else 'opponent'} has no checkers left")
        problems += [f"position {i}: {text}" for text in found]
    return problems


def _raise(problems: Sequence[str]) -> None:
    if problems:
        more = len(problems) - PROBLEMS_SHOWN
        raise EngineError("\n".join([*problems[:PROBLEMS_SHOWN], *([f"and {more} more"] if more > 0 else [])]))


# ---- the library


def _library() -> Any:
    try:
        return importlib.import_module("gnubg_nn")
    except ImportError as error:
        raise MissingExtra("GNU Backgammon", "gnubg-nn", "gnubg") from error


def _scored(board: list[list[int]], dice: list[int]) -> list[tuple[str, float]]:
    """What plays leave, as keys from the opponent's side, and their 0-ply equities; empty if there is no choice."""
    library = _library()
    # With a single play the library lists numbers that it never computed (and from 1 ply on it crashes).
    if len(library.moves(board, *dice)) < 2:
        return []
    return [(key, equity) for key, _, _, equity in library.best_move(board, *dice, list=1)[1]]


def _decode(keys: Sequence[str]) -> np.ndarray:
    """`[n, 2, 25]` from keys: 20 letters for 10 bytes; for every place a one per checker, then a zero."""
    nibbles = np.frombuffer("".join(keys).encode("ascii"), np.uint8).reshape(-1, 20) - np.uint8(ord("A"))
    octets = (nibbles[:, ::2] << 4 | nibbles[:, 1::2]).astype(np.uint8)
    bits = np.unpackbits(octets, axis=1, bitorder="little")  # [n, 80]
    place = np.cumsum(1 - bits.astype(np.int64), axis=1)  # zeros so far
    cells = place + 81 * np.arange(len(bits))[:, None]
    counts = np.bincount(cells[bits == 1], minlength=81 * len(bits))
    return counts.reshape(-1, 81)[:, :50].reshape(-1, 2, 25)


def _normal(text: str) -> float:
    """A standard normal number that is a function of a text."""
    bits = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 12
    return statistics.NormalDist().inv_cdf((bits + 0.5) / 2**52)  # 52 bits and a half: never 0 nor 1
