"""Backgammon decisions and what plays give away in them: labelled files, labels by a judge, error rates.

A decision is a position with dice and some plays with their equities; what a play costs is the best one's equity less
its own. Files are JSON Lines:
    {"position": [[25 opponent], [25 mover]], "dice": [a, b], "candidates": [{"after": [[25], [25]], "equity": e}, ...]}
with `after` in the same point of view; a line may name its "game", and a candidate its "halves" (see `Decision`).
Labels are made as players' errors are usually measured: among the eight best plays within 0.16 points at 0-ply, and the
play made; by GNU Backgammon at 2-ply, or by whoever else says what positions are worth.
Decisions of one game depend on each other: intervals take only games for independent.
Knows players that play whole turns; nothing of matches and rollouts.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.devices import cores
from aleazero.core.errors import ConfigError, GameContractError
from aleazero.core.game import Game
from aleazero.core.keys import Role, lane_keys
from aleazero.core.struct import where_lanes
from aleazero.games.backgammon.boards import rolled, to_boards, to_dice
from aleazero.play.match import TurnPlayer
from aleazero.play.ratings import Interval, clustered_interval
from aleazero.play.rollout import draw

MOST, WITHIN = 8, 0.16  # candidates judged, and how far below the best at 0-ply they may be
JUDGE_PLY = 2
GAMES = 64  # played at once to meet decisions
SHARE = 0.25  # of a game's decisions that are judged, at most: neighbours are much alike
BATCH = 256  # decisions asked about at once

Ranked = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""`ranked(board [2, 25], dice [2])` -> what every play leaves `[k, 2, 25]` and its 0-ply equity `[k]`, best first."""
Worth = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""`worth(after [n, 2, 25], decision [n])` -> `[1, n]` equities; or `[2, n]`, independent estimates of a noisy judge."""


@dataclasses.dataclass(frozen=True)
class Met:
    """An unforced decision of a game, and how it was played."""

    board: np.ndarray  # [2, 25]
    dice: np.ndarray  # [2]
    made: np.ndarray  # [2, 25]: what was left
    game: int


@dataclasses.dataclass(frozen=True)
class Decision:
    """One position, and what some plays are worth there."""

    board: np.ndarray  # [2, 25]
    dice: np.ndarray  # [2]
    after: np.ndarray  # [k, 2, 25]
    equity: np.ndarray  # [k]: points for the mover
    halves: np.ndarray | None = None  # [2, k]: of a noisy judge, by either half of its games; their mean is `equity`
    game: int | None = None  # which game it comes from, where that is known
    made: int | None = None  # which candidate was played when the decision was met


@dataclasses.dataclass(frozen=True)
class ErrorRate:
    """What a player gives away per unforced decision."""

    lost: Interval  # points
    decisions: int
    outside: int  # plays that were not among the candidates; they cost the gap to the worst
    games: int | None  # that the decisions come from; None where that is not known of all


def own_error_rate(decisions: Sequence[Decision]) -> ErrorRate:
    """What the plays cost that were made when the decisions were met."""
    assert all(decision.made is not None for decision in decisions)
    return _rate(decisions, [decision.made for decision in decisions])


def error_rate(player: TurnPlayer, decisions: Sequence[Decision], seed: int = 0) -> ErrorRate:
    """What the player's plays cost in labelled decisions."""
    made: list[int | None] = []
    for number, first in enumerate(range(0, len(decisions), BATCH)):
        part = decisions[first : first + BATCH]
        rows = np.minimum(np.arange(BATCH), len(part) - 1)  # one shape: players compile once
        boards, dice = (np.stack([getattr(d, name) for d in part])[rows] for name in ("board", "dice"))
        states = rolled(boards, dice, np.zeros(BATCH, int))
        keys = lane_keys(jnp.uint32(seed), Role.MATCH, number, jnp.arange(BATCH))
        left = to_boards(player.turn(states, jnp.asarray(np.arange(BATCH) < len(part)), keys))
        made += [_place(decision.after, after) for decision, after in zip(part, left, strict=False)]
    return _rate(decisions, made)


def cost(decision: Decision, made: int | None) -> float:
    """What a candidate gives away, or a play outside (None): the gap to the worst.

    Where the judge is noisy, the best of several plays looks better than it is: with noise of variance v in the
    difference of two plays, and gaps that are as likely anywhere near zero, by v / 2 times their density. One that is
    chosen by one half of the games and judged by the other looks worse, by v times that: so two parts of the first and
    one of the second are taken.
    """
    play = int(decision.equity.argmin()) if made is None else made
    lost = float(decision.equity.max() - decision.equity[play])
    if decision.halves is None:
        return lost
    one, two = decision.halves
    apart = (two[one.argmax()] - two[play] + one[two.argmax()] - one[play]) / 2
    return (2 * lost + float(apart)) / 3


def _rate(decisions: Sequence[Decision], made: Sequence[int | None]) -> ErrorRate:
    lost = np.array([cost(decision, play) for decision, play in zip(decisions, made, strict=True)])
    # One whose game nobody knows stands for itself.
    games = [-1 - number if d.game is None else d.game for number, d in enumerate(decisions)]
    known = None if min(games) < 0 else len(set(games))
    return ErrorRate(clustered_interval(lost, np.array(games)), len(lost), sum(play is None for play in made), known)


def _place(after: np.ndarray, left: np.ndarray) -> int | None:
    """Which of the candidates `[k, 2, 25]` a position is."""
    same = np.flatnonzero((after == left).all((1, 2)))
    return int(same[0]) if same.size else None


# ---- decisions from a player's own games


def own_decisions(game: Game, player: TurnPlayer, count: int, seed: int) -> list[Met]:
    """`count` unforced decisions, drawn at random from whole games of the player against itself, in random order."""
    size, found = min(GAMES, count), []  # type: int, list[Met]
    batch = 0
    while len(found) * SHARE < count:
        found += _whole_games(game, player, seed, np.arange(batch * size, (batch + 1) * size))
        batch += 1
    chosen = np.random.default_rng(seed).choice(len(found), count, replace=False)
    return [found[place] for place in chosen]  # so that the first few of them are as good a sample


def _whole_games(game: Game, player: TurnPlayer, seed: int, numbers: np.ndarray) -> list[Met]:
    """Every unforced decision of some games, played to their end."""
    roll, choices = _compiled(game)
    word, lanes = jnp.uint32(seed), jnp.asarray(numbers, jnp.uint32)
    states, found = jax.vmap(game.init)(lane_keys(word, Role.INIT, 0, lanes)), []
    for move in range(game.spec.max_plies):
        states = roll(states, lane_keys(word, Role.CHANCE, move, lanes))
        going = ~states.terminated
        if not bool(going.any()):
            break
        after = player.turn(states, going, lane_keys(word, Role.MATCH, move, lanes))
        after = where_lanes(going, after, states)
        boards, dice, left = to_boards(states), to_dice(states), to_boards(after)
        for lane in np.flatnonzero(np.asarray(going) & (np.asarray(choices(states)) > 1)):
            found.append(Met(boards[lane], dice[lane], left[lane], int(numbers[lane])))
        states = after
    return found


@functools.cache
def _compiled(game: Game) -> tuple[Callable[..., Any], Callable[..., Array]]:
    """Nature's move, and how many plays states have."""

    def choices(states: Any) -> Array:
        assert game.plays is not None
        assert game.plays_start is not None

        def count(carry: tuple[Array, Any, Array]) -> tuple[Array, Any, Array]:
            number, cursor, _ = carry
            chunk = game.plays(states, cursor)  # type: ignore[misc]
            real = jnp.arange(chunk.owner.shape[0]) < chunk.count
            return number.at[chunk.owner].add(real.astype(jnp.int32)), chunk.cursor, chunk.done

        start = (jnp.zeros(states.to_play.shape, jnp.int32), game.plays_start(states), jnp.bool_(False))
        number: Array = jax.lax.while_loop(lambda carry: ~carry[2], count, start)[0]
        return number

    return jax.jit(lambda states, keys: draw(game, states, keys)[0]), jax.jit(choices)


# ---- labels


def label(met: Sequence[Met], processes: int | None = None) -> list[Decision]:
    """Decisions judged by GNU Backgammon at 2-ply, on several processes."""
    import multiprocessing

    from aleazero.engines.gnubg import Gnubg

    Gnubg()  # says what is missing before anything is started
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes or cores(), mp_context=context) as pool:
        return list(pool.map(_by_gnubg, met, chunksize=4))


def _by_gnubg(met: Met) -> Decision:
    from aleazero.engines.gnubg import Gnubg, ranked

    return label_by([met], ranked, lambda after, _: Gnubg().after_equities(after, JUDGE_PLY)[None])[0]


def label_by(met: Sequence[Met], ranked: Ranked, worth: Worth) -> list[Decision]:
    """Decisions judged by whoever ranks plays at 0-ply and says what the best of them are worth."""
    listed, made = [], []
    for one in met:
        after, place = _shortlist(one, *ranked(one.board, one.dice))
        listed.append(after)
        made.append(place)
    sizes = [len(after) for after in listed]
    equities = worth(np.concatenate(listed), np.repeat(np.arange(len(listed)), sizes))
    decisions = []
    for one, after, place, mine in zip(met, listed, made, np.split(equities, np.cumsum(sizes)[:-1], 1), strict=True):
        halves = mine if len(mine) > 1 else None
        decisions.append(Decision(one.board, one.dice, after, mine.mean(0), halves, one.game, place))
    return decisions


def _shortlist(met: Met, after: np.ndarray, equity: np.ndarray) -> tuple[np.ndarray, int]:
    """The candidates `[k, 2, 25]` among all plays, and which of them was made."""
    place = _place(after, met.made)
    if place is None:
        raise GameContractError(
            "decisions", f"a play that leaves {met.made.tolist()} is not legal in {met.board.tolist()} with {met.dice}"
        )
    kept = (equity >= equity[0] - WITHIN) & (np.arange(len(equity)) < MOST)
    kept[place] = True
    return after[kept], int(kept[:place].sum())


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
        candidates = [{"after": after, "equity": equity} for after, equity in plays]
        if decision.halves is not None:
            candidates = [
                {**one, "halves": halves} for one, halves in zip(candidates, decision.halves.T.tolist(), strict=True)
            ]
        entry: dict[str, Any] = {"position": decision.board.tolist(), "dice": decision.dice.tolist()}
        entry |= {} if decision.game is None else {"game": decision.game}
        lines.append(json.dumps(entry | {"candidates": candidates}))
    try:
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"decisions {file}: {error}") from error


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
    game = entry.get("game")
    if game is not None and (type(game) is not int or game < 0):
        raise ValueError(f"game is {game!r}; it must be a whole number from 0 on, or left out")
    return Decision(board, dice, after, equity, _read_halves(entry["candidates"], equity), game)


def _read_halves(candidates: Any, equity: np.ndarray) -> np.ndarray | None:
    given = [play["halves"] for play in candidates if "halves" in play]
    if not given:
        return None
    halves = np.asarray(given, np.float64).T
    if halves.shape != (2, len(equity)) or not np.allclose(halves.mean(0), equity, rtol=0, atol=1e-4):
        raise ValueError("halves must be two numbers for every candidate, with its equity as their mean")
    return halves


def _why(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
