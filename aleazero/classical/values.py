"""What a piece is worth on a square, early and late in a game: learned from nothing, by games and how they end.

Generation after generation plays against itself with what it knows and fits its values to the games, by steps down the
log loss of predicting the winner from quiet positions. The first knows nothing and plays at random but for mates that
it sees; that a queen is worth more than a pawn is found from its games. No value is given by hand.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from aleazero.classical.alphabeta import worth_of
from aleazero.classical.board import empty
from aleazero.classical.games import MOST_PLIES, STOPPED, play_game
from aleazero.classical.jit import jit
from aleazero.core.errors import AleaError
from aleazero.core.files import replace_file

_log = logging.getLogger(__name__)

KINDS = 6  # of pieces
# Depth and games of every generation.
GENERATIONS = (*3 * ((1, 3000),), *2 * ((1, 6000),), *3 * ((2, 4000),))
NOISE = 0.05  # on what moves are worth, so that no two games are alike
OPENING = 10  # random moves a game begins with, at most
PASSES = 8  # over the positions of the last two generations
RATE, DECAY = 0.05, 0.02


class ValuesError(AleaError):
    """A file of values cannot be used."""


@dataclasses.dataclass(frozen=True)
class Values:
    """What pieces are worth, as log odds of winning."""

    squares: np.ndarray  # [2, 6, 64]: early and late, by kind and square, as its owner sees the board from White's side
    tempo: float  # what it is worth to be to move

    @classmethod
    def nothing(cls) -> Values:
        """Before anything is known."""
        return cls(np.zeros((2, KINDS, 64)), 0.0)

    def table(self) -> np.ndarray:
        """`[2, 13, 64]` by piece + 6, for White, as positions sum them up."""
        table = np.zeros((2, 2 * KINDS + 1, 64))
        for kind in range(KINDS):
            table[:, 1 + KINDS + kind] = self.squares[:, kind]
            table[:, KINDS - 1 - kind] = -self.squares[:, kind][:, np.arange(64) ^ 56]
        return table


@dataclasses.dataclass(frozen=True)
class _Positions:
    """Quiet positions and how their games ended."""

    boards: np.ndarray  # [N, 64] int8
    sides: np.ndarray  # [N] int8: who is to move
    results: np.ndarray  # [N]: for White
    games: np.ndarray  # how every game ended


def learn(seed: int, threads: int, generations: tuple[tuple[int, int], ...] = GENERATIONS) -> Values:
    """Values from nothing. The same for a seed, however many threads play."""
    values, before = Values.nothing(), None
    for number, (depth, games) in enumerate(generations):
        began = time.monotonic()
        played = _play(values, depth, games, seed * 1_000 + number, threads)
        both = [played] if before is None else [before, played]
        values, loss = _fitted(values, both, seed * 1_000 + number)
        before = played
        shares = [float((played.games == end).mean()) for end in (1.0, 0.5, 0.0)]
        pieces = ", ".join(f"{value:.2f}" for value in worth_of(values.table())[1:])
        _log.info(
            "generation %d, depth %d: %d games (won %.0f %%, drawn %.0f %%, lost %.0f %%), %d quiet positions, log "
            "loss %.3f, pieces %s; %.0f s",
            number, depth, games, *(100 * share for share in shares), len(played.results), loss, pieces,
            time.monotonic() - began,
        )  # fmt: skip
    return values


def _play(values: Values, depth: int, games: int, seed: int, threads: int) -> _Positions:
    table = values.table()
    worth = worth_of(table)

    def some(first: int) -> list[tuple[float, np.ndarray, np.ndarray]]:
        at, boards, sides = empty(), np.zeros((MOST_PLIES, 64), np.int8), np.zeros(MOST_PLIES, np.int8)
        found = []
        for game in range(first, games, threads):
            lot = (seed * 1_000_003 + game) % 2**32
            end, kept = play_game(at, table, worth, values.tempo, depth, NOISE, OPENING, lot, boards, sides)
            found.append((end, boards[:kept].copy(), sides[:kept].copy()))
        return found

    with ThreadPoolExecutor(threads) as pool:
        shares = list(pool.map(some, range(threads)))
    # In the order of the games, whoever played them: what is fitted does not depend on the threads.
    played = [shares[game % threads][game // threads] for game in range(games)]
    ended = [(end, boards, sides) for end, boards, sides in played if end != STOPPED]
    if not ended:
        raise ValuesError(f"none of {games} games came to an end")
    return _Positions(
        np.concatenate([boards for _, boards, _ in ended]),
        np.concatenate([sides for _, _, sides in ended]),
        np.concatenate([np.full(len(sides), end) for end, _, sides in ended]),
        np.array([end for end, _, _ in played]),
    )


def _fitted(values: Values, played: list[_Positions], seed: int) -> tuple[Values, float]:
    boards, sides = (np.concatenate([getattr(some, name) for some in played]) for name in ("boards", "sides"))
    results = np.concatenate([some.results for some in played])
    lots, loss = np.random.default_rng(seed), 0.0
    squares, tempo, slopes = values.squares.copy(), np.array([values.tempo]), np.ones_like(values.squares)
    for number in range(PASSES):
        order = lots.permutation(len(results))
        loss = _descend(squares, tempo, slopes, boards, sides, results, order, RATE / (1 + number))
        squares += DECAY * (squares.mean(-1, keepdims=True) - squares)
    return Values(squares, float(tempo[0])), loss


@jit
def _descend(
    squares: Any, tempo: Any, slopes: Any, boards: Any, sides: Any, results: Any, order: Any, rate: float
) -> float:
    """One pass of steps down the log loss, in place; the mean loss met. `slopes`: sums of squares, as in Adagrad."""
    total = 0.0
    places, kinds, signs = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64)
    for row in order:
        count = 0
        for square in range(64):
            piece = boards[row, square]
            if piece != 0:
                kinds[count] = abs(piece) - 1
                places[count] = square if piece > 0 else square ^ 56
                signs[count] = 1.0 if piece > 0 else -1.0
                count += 1
        early = (count - 2) / 30
        mover = 1.0 if sides[row] == 0 else -1.0
        score = mover * tempo[0]
        for i in range(count):
            kind, place = kinds[i], places[i]
            score += signs[i] * (early * squares[0, kind, place] + (1 - early) * squares[1, kind, place])
        chance = 1.0 / (1.0 + np.exp(-score))
        error = chance - results[row]
        total -= results[row] * np.log(chance + 1e-9) + (1 - results[row]) * np.log(1 - chance + 1e-9)
        tempo[0] -= 0.01 * rate * error * mover
        for i in range(count):
            kind, place = kinds[i], places[i]
            for phase in range(2):
                slope = error * signs[i] * (early if phase == 0 else 1 - early)
                slopes[phase, kind, place] += slope * slope
                squares[phase, kind, place] -= rate * slope / np.sqrt(slopes[phase, kind, place])
    return total / len(order)


def save(values: Values, path: Path, facts: dict[str, str]) -> None:
    """Writes values, whole or not at all."""
    from safetensors.numpy import save as to_bytes

    arrays = {"squares": values.squares.astype(np.float32), "tempo": np.array([values.tempo], np.float32)}
    replace_file(path, to_bytes(arrays, facts))


def load(path: Path) -> Values:
    """Values that were saved."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    try:
        arrays = from_bytes(path.read_bytes())
    except OSError as error:
        raise ValuesError(f"no values in {path}: {error.strerror}") from None
    except SafetensorError as error:
        raise ValuesError(f"{path} holds no values: {error}") from None
    squares, tempo = arrays.get("squares"), arrays.get("tempo")
    if squares is None or tempo is None or squares.shape != (2, KINDS, 64) or tempo.shape != (1,):
        raise ValuesError(f"{path} holds no values of pieces; python -m aleazero.classical makes them")
    if not (np.isfinite(squares).all() and np.isfinite(tempo).all()):
        raise ValuesError(f"{path} holds values that are no numbers")
    return Values(squares.astype(np.float64), float(tempo[0]))
