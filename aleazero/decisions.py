"""Backgammon decisions and what plays give away in them: labelled files, labels by GNU Backgammon, error rates.

A decision is a position with dice and some plays with their equities; what a play costs is the best one's equity less
its own. Files are JSON Lines:
    {"position": [[25 opponent], [25 mover]], "dice": [a, b], "candidates": [{"after": [[25], [25]], "equity": e}, ...]}
with `after` in the same point of view. Labels are made as players' errors are usually measured: among the eight best
plays within 0.16 points at 0-ply, and the play made, by GNU Backgammon at 2-ply.
Knows players that play whole turns; nothing of matches.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.core.errors import ConfigError
from aleazero.core.game import Game
from aleazero.core.keys import Role, lane_keys
from aleazero.core.struct import where_lanes
from aleazero.games.backgammon.boards import rolled, to_boards, to_dice
from aleazero.play.match import TurnPlayer
from aleazero.play.ratings import Interval
from aleazero.play.rollout import draw

MOST, WITHIN = 8, 0.16  # candidates judged, and how far below the best at 0-ply they may be
JUDGE_PLY = 2
GAMES = 64  # played at once to meet decisions
BATCH = 256  # decisions asked about at once
_Z = 1.96


@dataclasses.dataclass(frozen=True)
class Decision:
    """One position, and what some plays are worth there."""

    board: np.ndarray  # [2, 25]
    dice: np.ndarray  # [2]
    after: np.ndarray  # [k, 2, 25]
    equity: np.ndarray  # [k]: points for the mover


@dataclasses.dataclass(frozen=True)
class ErrorRate:
    """What a player gives away per unforced decision."""

    lost: Interval  # points
    decisions: int
    outside: int  # plays that were not among the candidates; they cost the gap to the worst


def error_rate(player: TurnPlayer, decisions: Sequence[Decision], seed: int = 0) -> ErrorRate:
    """How much the player's plays cost in labelled decisions."""
    lost, outside = [], 0
    for number, first in enumerate(range(0, len(decisions), BATCH)):
        part = decisions[first : first + BATCH]
        rows = np.minimum(np.arange(BATCH), len(part) - 1)  # one shape: players compile once
        boards, dice = (np.stack([getattr(d, name) for d in part])[rows] for name in ("board", "dice"))
        states = rolled(boards, dice, np.zeros(BATCH, int))
        keys = lane_keys(jnp.uint32(seed), Role.MATCH, number, jnp.arange(BATCH))
        made = to_boards(player.turn(states, jnp.asarray(np.arange(BATCH) < len(part)), keys))
        for decision, after in zip(part, made, strict=False):
            same = (decision.after == after).all((1, 2))
            outside += not same.any()
            worth = decision.equity[same][0] if same.any() else decision.equity.min()
            lost.append(float(decision.equity.max() - worth))
    return ErrorRate(_mean(np.array(lost)), len(lost), outside)


def _mean(values: np.ndarray) -> Interval:
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    mean, spread = float(values.mean()), _Z * deviation / math.sqrt(len(values))
    return Interval(mean, mean - spread, mean + spread)


# ---- decisions from a player's own games


def own_decisions(game: Game, player: TurnPlayer, count: int, seed: int) -> Iterator[tuple[np.ndarray, ...]]:
    """`count` unforced decisions of the player's games against itself: board, dice, and the position it left."""
    from aleazero.engines.gnubg import candidates

    rng, found = np.random.default_rng(seed), 0
    roll = jax.jit(lambda states, keys: draw(game, states, keys)[0])
    states, move = jax.vmap(game.init)(lane_keys(jnp.uint32(seed), Role.INIT, 0, jnp.arange(GAMES))), 0
    everyone = jnp.ones(GAMES, bool)
    while found < count:
        states = roll(states, lane_keys(jnp.uint32(seed), Role.CHANCE, move, jnp.arange(GAMES)))
        after = player.turn(states, everyone, lane_keys(jnp.uint32(seed), Role.MATCH, move, jnp.arange(GAMES)))
        boards, dice, left = to_boards(states), to_dice(states), to_boards(after)
        for lane in np.flatnonzero(rng.random(GAMES) < 0.25):  # few of each game: neighbours are much alike
            if found < count and len(candidates(boards[lane], dice[lane])) > 1:
                found += 1
                yield boards[lane], dice[lane], left[lane]
        move += 1
        fresh = jax.vmap(game.init)(lane_keys(jnp.uint32(seed), Role.INIT, move, jnp.arange(GAMES)))
        states = where_lanes(after.terminated, fresh, after)


def label(positions: Sequence[tuple[np.ndarray, ...]], processes: int | None = None) -> list[Decision]:
    """The positions of `own_decisions` as decisions judged by GNU Backgammon, on several processes."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes or os.cpu_count(), mp_context=context) as pool:
        return list(pool.map(_label, positions, chunksize=4))


def _label(position: tuple[np.ndarray, ...]) -> Decision:
    from aleazero.engines.gnubg import Gnubg, ranked

    board, dice, made = position
    after, equity = ranked(board, dice)
    kept = (equity >= equity[0] - WITHIN) & (np.arange(len(equity)) < MOST)
    kept |= (after == made).all((1, 2))
    return Decision(board, dice, after[kept], Gnubg().after_equities(after[kept], JUDGE_PLY))


# ---- files


def read(file: Path) -> list[Decision]:
    """The decisions of a file; every wrong line is named."""
    decisions, problems = [], []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"decisions {file}: {error}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                decisions.append(_read(json.loads(line)))
            except (ValueError, KeyError, TypeError) as error:
                problems.append(f"decisions {file}, line {number}: {_why(error)}")
    if not decisions and not problems:
        problems.append(f"decisions {file}: there are none")
    if problems:
        raise ConfigError("\n".join(problems[:10] + [f"and {len(problems) - 10} more"] * (len(problems) > 10)))
    return decisions


def write(file: Path, decisions: Sequence[Decision]) -> None:
    """A file of decisions."""
    lines = []
    for decision in decisions:
        plays = zip(decision.after.tolist(), decision.equity.tolist(), strict=True)
        entry: dict[str, Any] = {"position": decision.board.tolist(), "dice": decision.dice.tolist()}
        lines.append(json.dumps(entry | {"candidates": [{"after": a, "equity": e} for a, e in plays]}))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _read(entry: Any) -> Decision:
    board, dice = np.asarray(entry["position"]), np.sort(np.asarray(entry["dice"]))[::-1]
    after = np.asarray([play["after"] for play in entry["candidates"]])
    equity = np.asarray([play["equity"] for play in entry["candidates"]], np.float64)
    if not len(after):
        raise ValueError("there are no candidates")
    for name, positions in (("position", board[None]), ("after", after)):
        if positions.shape[1:] != (2, 25) or not np.issubdtype(positions.dtype, np.integer):
            raise ValueError(f"{name} must be two lists of 25 whole numbers: opponent, mover")
        if (positions < 0).any() or (positions.sum(-1) > 15).any():
            raise ValueError(f"{name} has a side with more than 15 checkers, or fewer than none on a point")
        if ((positions[:, 0, :24][:, ::-1] > 0) & (positions[:, 1, :24] > 0)).any():
            raise ValueError(f"{name} has a point that both sides hold")
    if not board.any(-1).all():
        raise ValueError("position is of a game that is over")
    if dice.shape != (2,) or not np.issubdtype(dice.dtype, np.integer) or not ((dice >= 1) & (dice <= 6)).all():
        raise ValueError(f"dice are {entry['dice']}; they must be two numbers from 1 to 6")
    if not np.isfinite(equity).all() or (np.abs(equity) > 3).any():
        raise ValueError("an equity is not a number of points from -3 to 3")
    return Decision(board, dice, after, equity)


def _why(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
