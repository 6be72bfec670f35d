"""Chess moves and what they give away: a player's choices in positions that are still open, judged by Stockfish.

Positions come from games that Stockfish with one node plays against itself, some of its moves drawn by lot, one from
each game; they are open if the judge gives neither side nearly everything. They are the same for the same seed and
judge, so that players can be compared position by position. What a move gives away is the expected score of the best
one less its own, both as the judge sees them: it looks as far at a move alone as at all of them, so that a move as good
as its own may cost a little, by chance. Knows players by what they choose; nothing of matches and runs.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.chess_players import ChessLine, StockfishPlayer, make
from aleazero.core.keys import Role, lane_keys
from aleazero.core.struct import where_lanes
from aleazero.games.chess.compiled import legal_actions
from aleazero.games.chess.game import Chess, ChessState
from aleazero.play.match import Player
from aleazero.play.ratings import Interval, clustered_interval
from aleazero.suites import choices

METRIC = "score_lost"
JUDGE = "stockfish:nodes=20000"
POSITIONS = 400
LANES = 128  # games played at once
MOVERS = "eps8"  # who plays them
OPENING = 6  # plies at random
FIRST, LAST = 8, 70  # plies after which a game is looked at
OPEN = 0.08  # of the score is left for either side, at least
BLUNDER = 0.2  # of the score given away in one move


@dataclasses.dataclass(frozen=True)
class Met:
    """A position, and the judge's move there with its expected score."""

    state: ChessState  # in numpy
    best: int
    worth: float


@dataclasses.dataclass(frozen=True)
class Lost:
    """What a player's moves give away."""

    score: Interval  # a move, on average
    blunders: float  # share of the moves that give away `BLUNDER` or more
    each: np.ndarray  # [n]
    chosen: tuple[int, ...]


def open_positions(game: Chess, judge: StockfishPlayer, count: int, seed: int) -> list[Met]:
    """So many positions with a choice, in the order of their games."""
    found: list[Met] = []
    batch = 0
    while len(found) < count:
        for state in _drawn(game, seed, batch):
            if len(found) < count and len(legal_actions(game, state)) > 1:
                best = judge.lines(state, 1)[0]
                if OPEN <= _score(best) <= 1 - OPEN:
                    found.append(Met(state, best.actions[0], _score(best)))
        batch += 1
    return found


def score_lost(game: Chess, judge: StockfishPlayer, player: Player, met: list[Met], seed: int) -> Lost:
    """What the player's moves in these positions give away."""
    chosen = choices(game, player, [one.state for one in met], seed)
    each = np.array([_given_away(judge, one, action) for one, action in zip(met, chosen, strict=True)])
    return Lost(clustered_interval(each, np.arange(len(each))), float((each >= BLUNDER).mean()), each, tuple(chosen))


def _given_away(judge: StockfishPlayer, met: Met, action: int) -> float:
    """Nothing by the judge's own move, nor by one that it finds better when it looks at that alone."""
    return 0.0 if action == met.best else max(met.worth - _score(judge.lines(met.state, 1, action)[0]), 0.0)


def _score(line: ChessLine) -> float:
    win, draw, _ = line.chances
    return win + draw / 2


def _drawn(game: Chess, seed: int, batch: int) -> list[ChessState]:
    """Positions of games played now, one of each that lasted so long."""
    movers, openers = make(MOVERS, [], game, MOVERS), make("eps100", [], game, "eps100")
    until = np.random.default_rng([seed, batch]).integers(FIRST, LAST + 1, LANES)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), LANES))
    found: dict[int, ChessState] = {}
    for ply in range(LAST + 1):
        host: ChessState = jax.tree.map(np.asarray, states)
        for lane in np.flatnonzero(~host.terminated & (until == ply)):
            found[int(lane)] = jax.tree.map(lambda x, lane=lane: x[lane], host)
        going = ~host.terminated & (until > ply)
        if not going.any():
            break
        keys = lane_keys(jnp.uint32(seed), Role.OPENING, batch * (LAST + 1) + ply, jnp.arange(LANES))
        actions = (openers if ply < OPENING else movers).choose(states, jnp.asarray(going), keys)
        states = _step(game)(states, actions, jnp.asarray(going))
    return [found[lane] for lane in sorted(found)]


@functools.cache
def _step(game: Chess) -> Any:
    """`(states, actions, going)`: the states after actions in lanes that go on."""

    def step(states: ChessState, actions: Array, going: Array) -> ChessState:
        return where_lanes(going, jax.vmap(game.apply_action)(states, actions), states)

    return jax.jit(step)
