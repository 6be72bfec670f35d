"""Decisions judged exactly, in the games that are solved: how often a player's move gives something away.

    tictactoe       every position where somebody is to play
    pig             positions drawn uniformly from all that play can reach
    connect_four    the labelled positions that come with the package, by phase

A wrong move is one that is worth less than the best: where games are won, drawn or lost, one that changes which.
Knows players by what they choose, and networks by their opinion too; nothing of matches and runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.core.errors import ConfigError, GameContractError
from aleazero.core.game import Game
from aleazero.core.keys import Role, lane_keys
from aleazero.core.opinions import expected_value
from aleazero.games.connect_four import ConnectFour, ConnectFourState
from aleazero.games.pig import GOAL, Pig, PigState
from aleazero.games.tictactoe import TicTacToe, TicTacToeState
from aleazero.judges import exact_judge
from aleazero.play.match import Player
from aleazero.play.ratings import wilson
from aleazero.players import NetworkPlayer

METRIC = "wrong_moves"
BATCH = 1024  # positions asked about at once
PIG_POSITIONS = 10_000
PHASES = {"late": 28, "middle": 14, "early": 0}  # of Connect Four: stones from which on, and up to the one before

_NOTHING = 1e-9  # exact values of moves that are worth the same may differ by the last bits


@dataclasses.dataclass(frozen=True)
class Positions:
    """Decision positions and the exact value of every move there."""

    states: Any  # [n] decision states, in numpy
    values: np.ndarray  # [n, A] float64: for the player to play, in points; NaN where illegal
    phases: dict[str, np.ndarray]  # by name: the rows `[m]` that belong to it; empty where a game has no phases


@dataclasses.dataclass(frozen=True)
class Wrong:
    """How many decisions were wrong, and the 95 % interval of their share."""

    value: float
    low: float
    high: float
    decisions: int
    points_lost: float  # per decision, against the best move
    value_error: float | None  # mean |the network's value - the exact one|; None for players that are no networks


@dataclasses.dataclass(frozen=True)
class Rating:
    """A player judged by all positions, and by those of each phase."""

    overall: Wrong
    phases: dict[str, Wrong]


def solved_positions(game: Game, count: int | None = None, seed: int = 0) -> Positions:
    """The positions that players of a game are judged by.

    Args:
        game: a solved one.
        count: how many: at random in tic-tac-toe and Pig, the first of each phase in Connect Four; None for all
            there are, in Pig for `PIG_POSITIONS`.
        seed: of the random ones.
    """
    make = _POSITIONS.get(type(game))
    if make is None:
        solved = ", ".join(sorted(known.spec.name for known in _POSITIONS))
        raise ConfigError(f"{game.spec.name} is not solved, so nothing judges its moves exactly; solved are: {solved}")
    if count is not None and count < 1:
        raise ConfigError(f"positions is {count}; it must be at least 1")
    return make(game, count, seed)


def rate(game: Game, player: Player, positions: Positions, seed: int = 0) -> Rating:
    """What the player's moves in these positions are worth, a move each."""
    actions, opinions = [], []
    network = player if isinstance(player, NetworkPlayer) else None
    for number, (states, lanes) in enumerate(_batches(positions.states)):
        keys = lane_keys(jnp.uint32(seed), Role.MATCH, number, jnp.arange(len(lanes)))
        actions.append(np.asarray(player.choose(states, jnp.asarray(lanes), keys))[lanes])
        if network is not None:
            opinions.append(np.asarray(expected_value(game.spec, network.opinion(states)))[lanes])
    chosen = np.concatenate(actions)
    lost = _points_lost(game, player, positions, chosen)
    error = None
    if network is not None:
        error = np.abs(np.concatenate(opinions) - np.nanmax(positions.values, -1) / game.spec.scale)
    phases = {
        name: _judge(lost[rows], None if error is None else error[rows]) for name, rows in positions.phases.items()
    }
    return Rating(_judge(lost, error), phases)


def _judge(lost: np.ndarray, error: np.ndarray | None) -> Wrong:
    share = wilson(int((lost > _NOTHING).sum()), len(lost))
    mean_error = None if error is None else float(error.mean())
    return Wrong(share.value, share.low, share.high, len(lost), float(lost.mean()), mean_error)


def _points_lost(game: Game, player: Player, positions: Positions, chosen: np.ndarray) -> np.ndarray:
    """`[n]`: what each move gives away; a move that is none ends the judging."""
    inside = (chosen >= 0) & (chosen < game.spec.num_actions)
    worth = np.take_along_axis(positions.values, np.where(inside, chosen, 0)[:, None], -1)[:, 0]
    illegal = np.flatnonzero(~inside | np.isnan(worth))
    if illegal.size:
        row = int(illegal[0])
        where = game.notation.format_state(jax.tree.map(lambda x: x[row], positions.states))
        raise GameContractError(
            "rate", f"player {player.name!r} chose action {chosen[row]}, which is not legal in {where!r}"
        )
    lost: np.ndarray = np.nanmax(positions.values, -1) - worth
    return lost


def _batches(states: Any) -> Iterator[tuple[Any, np.ndarray]]:
    """Batches of one shape, so that players compile once; the last is filled up with rows that do not count."""
    count = len(states.to_play)
    size = min(BATCH, count)
    for first in range(0, count, size):
        rows = np.minimum(np.arange(first, first + size), count - 1)
        yield jax.tree.map(lambda x, rows=rows: jnp.asarray(x[rows]), states), np.arange(first, first + size) < count


# ---- the positions of each game


def _tictactoe(game: Game, count: int | None, seed: int) -> Positions:
    from aleazero.solvers.tictactoe import reachable

    judge = exact_judge(game)
    assert judge is not None
    boards: Any = reachable()
    states = TicTacToeState(**_decision((boards >= 0).sum(-1) % 2), board=boards)
    values = judge(states).astype(np.float64)
    rows = np.flatnonzero(~np.isnan(values).all(-1))  # somebody can play
    if count is not None and count < len(rows):
        rows = np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))
    return Positions(jax.tree.map(lambda x: x[rows], states), values[rows], {})


def _pig(game: Game, count: int | None, seed: int) -> Positions:
    judge = exact_judge(game)
    assert judge is not None
    turns = pig_turns()
    scores = np.array([score for score in range(GOAL) if score != 1])  # no turn brings a single point
    sizes = (len(turns), len(scores), 2)
    rng = np.random.default_rng(seed)
    total = int(np.prod(sizes))
    drawn = rng.choice(total, min(count or PIG_POSITIONS, total), replace=False)
    turn, yours, seat = np.unravel_index(drawn, sizes)
    mine, points = turns[turn].T
    ordered: Any = np.stack([mine, scores[yours]], -1)
    ordered = np.where(seat[:, None] == 0, ordered, ordered[:, ::-1]).astype(np.int16)
    turn_points: Any = points.astype(np.int16)
    states = PigState(**_decision(seat), scores=ordered, turn_points=turn_points)
    return Positions(states, judge(states).astype(np.float64), {})


def pig_turns() -> np.ndarray:
    """`[n, 2]` int: the score of the player to play and the points of the turn, as they can come together.

    A turn's points are sums of 2 to 6, and a player who has enough to win must hold.
    """
    pairs = []
    for mine in (score for score in range(GOAL) if score != 1):
        points = {0}
        for turn in range(GOAL - mine):
            if turn in points:
                points |= {turn + face for face in range(2, 7)}
        pairs += [(mine, turn) for turn in sorted(points)]
    return np.array(pairs)


def _connect_four(game: Game, count: int | None, seed: int) -> Positions:
    file = resources.files("aleazero") / "data" / "connect_four_solved.npz"
    with file.open("rb") as opened, np.load(opened) as labelled:
        boards, values, stones = labelled["boards"], labelled["values"], labelled["stones"]
    chosen: list[np.ndarray] = []
    phases: dict[str, np.ndarray] = {}
    above, placed = 42, 0
    for name, least in PHASES.items():
        rows = np.flatnonzero((stones >= least) & (stones < above))[:count]
        phases[name] = np.arange(placed, placed + len(rows))
        chosen.append(rows)
        above, placed = least, placed + len(rows)
    kept = np.concatenate(chosen)
    states = ConnectFourState(**_decision(stones[kept] % 2), board=boards[kept])
    exact = values[kept].astype(np.float64)
    return Positions(states, np.where(exact < -1, np.nan, exact), phases)


def _decision(to_play: np.ndarray) -> dict[str, Any]:
    """The fields that all states have, for positions where these seats `[n]` are to play: nothing was paid yet."""
    count = len(to_play)
    return {
        "to_play": to_play.astype(np.int8),
        "is_chance": np.zeros(count, bool),
        "terminated": np.zeros(count, bool),
        "rewards": np.zeros((count, 2), np.float32),
        "returns": np.zeros((count, 2), np.float32),
    }


_POSITIONS: dict[type[Game], Callable[[Game, int | None, int], Positions]] = {
    TicTacToe: _tictactoe,
    Pig: _pig,
    ConnectFour: _connect_four,
}
