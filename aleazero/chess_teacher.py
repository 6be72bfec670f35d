"""Alpha-beta as a teacher and a player of chess: `classical:depth=3`, and `;values=FILE` for values of one's own.

Joins `aleazero.classical`, which knows plain boards, to states of chess. To self-play it is a search like any other; it
asks no network: the host is called from the compiled program, and every core looks at its share of the lanes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.devices import cores
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.core.game import Game
from aleazero.core.records import Evaluate, Prediction, Weights
from aleazero.games.chess.actions import ACTION_OF
from aleazero.games.chess.bits import planes
from aleazero.games.chess.board import BISHOP, CODES, KINDS, KNIGHT, ROOK, swapped
from aleazero.play.portions import in_portions
from aleazero.play.spread import Spread
from aleazero.search.build import SearchResult
from aleazero.search.settings import Knobs, SearchConfig, playing_knobs

if TYPE_CHECKING:
    from aleazero.classical.looking import AlphaBeta

KIND = "classical"
OPTIONS = ("depth", "values")
DEPTH, DEEPEST = 3, 6
SOFTNESS = 0.06  # log odds: a move that gives away so much is played 1/e times as often
MARGIN = 5 * SOFTNESS  # what gives away more is not told apart from what gives away most
EDGES = 64  # moves that are told of, the best ones
LOOKED_THROUGH = 8  # best moves that are tried for whether the position they lead to was there before
MOST_TEACHERS = 4  # kept


@dataclasses.dataclass(frozen=True, eq=False)
class TaughtSearch:
    """What alpha-beta finds, as a search's result: a policy over moves by what they are worth."""

    game: Game
    look: AlphaBeta

    def run(self, evaluate: Evaluate, weights: Weights, states: Any, keys: Array, knobs: Knobs) -> SearchResult:
        """Looks at decision states `[B]`; neither evaluator nor weights are asked."""
        lanes = states.to_play.shape[0]
        shapes = (jax.ShapeDtypeStruct((lanes, EDGES), jnp.int16), jax.ShapeDtypeStruct((lanes, EDGES), jnp.float32))
        actions, odds = jax.pure_callback(self._ask, shapes, *jax.vmap(_plain)(states))
        there = actions >= 0
        odds = jnp.where(self._repeats(states, actions), 0.0, odds)
        scores = jnp.where(there, odds / SOFTNESS, -jnp.inf)
        policy = jax.nn.softmax(scores)
        values = jnp.where(there, jnp.tanh(odds / 2), 0.0)
        temperature = jnp.broadcast_to(knobs.temperature, (lanes,))[:, None]
        noise = jax.vmap(lambda key: jax.random.gumbel(key, (EDGES,)))(keys)
        edge = jnp.argmax(jnp.where(there, scores + temperature * noise, -jnp.inf), -1)
        return SearchResult(
            action=jnp.take_along_axis(actions, edge[:, None], -1)[:, 0].astype(jnp.int32),
            edge=edge.astype(jnp.int32),
            actions=actions,
            policy=policy,
            visits=there.astype(jnp.float32),
            values=values,
            priors=jnp.where(there, policy, -1.0),
            value=(policy * values).sum(-1),
            raw_value=values.max(-1),
            evaluations=jnp.zeros(lanes, jnp.int32),
        )

    def _ask(self, pieces: Any, sides: Any, castling: Any, passing: Any, clock: Any) -> tuple[np.ndarray, np.ndarray]:
        from aleazero.classical.looking import Boards

        boards = Boards(*(np.asarray(x) for x in (pieces, sides, castling, passing, clock)))
        sharing = len(jax.local_devices()) if jax.default_backend() == "cpu" else 1
        moves, odds = self.look.look(boards, EDGES, max(cores() // sharing, 1))
        return _actions_of(moves, boards.sides), odds

    def _repeats(self, states: Any, actions: Array) -> Array:
        """`[B, E]`: whether one of the best moves leads to where the game was before, which is as good as a draw."""

        def of_one(state: Any, some: Array) -> Array:
            return jax.vmap(lambda action: self.game.apply_action(state, action).repeats > 0)(some)

        some = jnp.maximum(actions[:, :LOOKED_THROUGH], 0).astype(jnp.int32)
        found = jax.vmap(of_one)(states, some)
        return jnp.pad(found, ((0, 0), (0, EDGES - LOOKED_THROUGH)))


@dataclasses.dataclass(frozen=True, eq=False)
class ClassicalPlayer:
    """Alpha-beta at the board. Deterministic."""

    search: TaughtSearch
    name: str

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        """The best moves of the lanes that wait for one."""
        chosen: Array = in_portions(self._choose, (states, keys), lanes)
        return chosen

    def _choose(self, batch: tuple[Any, Array]) -> Array:
        spread = Spread.of(batch[1].shape[0])
        return _chooser(self.search, spread)(*(spread.lanes(part) for part in batch))


def is_classical(text: str) -> bool:
    """Whether a player's string is one of these."""
    return text.strip().partition(":")[0] == KIND


def make(text: str, game: Game) -> ClassicalPlayer:
    """The player that a string names."""
    return ClassicalPlayer(make_search(text, game), text)


def make_search(text: str, game: Game) -> TaughtSearch:
    """The search that a string names."""
    if game.spec.name != "chess":
        raise ConfigError(f"player {text!r}: {KIND} plays chess, not {game.spec.name}")
    problems, depth, path = [], str(DEPTH), ""
    for part in filter(None, text.strip().partition(":")[2].split(";")):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in OPTIONS:
            problems.append(str(UnknownName("option", key, OPTIONS)))
        elif key == "depth":
            depth = value
        else:
            path = value
    if depth not in map(str, range(1, DEEPEST + 1)):
        problems.append(f"depth is {depth!r}; it must be in 1..{DEEPEST}")
    if problems:
        raise ConfigError("\n".join(f"player {text!r}: {problem}" for problem in problems))
    return _search(game, int(depth), path)


@functools.lru_cache(maxsize=MOST_TEACHERS)
def _search(game: Game, depth: int, path: str) -> TaughtSearch:
    from aleazero.classical import values
    from aleazero.classical.looking import AlphaBeta

    shipped = Path(str(resources.files("aleazero") / "data" / "chess_values.safetensors"))
    return TaughtSearch(game, AlphaBeta(values.load(Path(path) if path else shipped), depth, MARGIN))


@functools.lru_cache(maxsize=MOST_TEACHERS)
def _chooser(search: TaughtSearch, spread: Spread) -> Callable[[Any, Array], Array]:
    def run(states: Any, keys: Array) -> Array:
        return search.run(_nobody, (), states, keys, playing_knobs(SearchConfig())).action

    return jax.jit(spread.function(run, 0, 0))


def _nobody(weights: Weights, observations: Array) -> Prediction:
    raise AssertionError("alpha-beta asks no network")


_KIND_OF_CODE = np.zeros(8, np.int8)
_KIND_OF_CODE[[CODES[kind] for kind in KINDS]] = range(1, 7)


def _plain(state: Any) -> tuple[Array, Array, Array, Array, Array]:
    """A state's board, side to move, rights, square in passing and clock, as White sees them."""
    board, black = state.board, state.to_play == 1
    bits = [
        planes(each).astype(jnp.int32) << place
        for place, each in enumerate((board.diagonal, board.straight, board.steps))
    ]
    kinds = jnp.asarray(_KIND_OF_CODE)[sum(bits)]
    relative = jnp.where(planes(board.own), kinds, -kinds)
    pieces = jnp.where(black, -relative[::-1], relative).reshape(64)
    castling = jnp.where(black, swapped(state.castling), state.castling).astype(jnp.int32)
    passing = jnp.where(state.ep < 0, -1, state.ep + jnp.where(black, 16, 40))
    return pieces, state.to_play.astype(jnp.int32), castling, passing, state.clock


def _action_table() -> np.ndarray:
    """`[8, 64, 64]` int16: actions by what a pawn becomes, source and target, as the mover sees them."""
    table = np.full((8, 64, 64), -1, np.int16)
    classical = {0: 0, KNIGHT: 2, BISHOP: 3, ROOK: 4}
    for (source, target, promotion), action in ACTION_OF.items():
        table[classical[promotion], source, target] = action
    table[5] = table[0]  # a queen
    return table


_ACTIONS = _action_table()


def _actions_of(moves: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """Moves `[B, E]` of `classical` as actions of the side to move; -1 where there is none."""
    turn = np.where(sides == 1, 56, 0)[:, None]
    there = np.maximum(moves, 0)
    found = _ACTIONS[there >> 12, (there & 63) ^ turn, (there >> 6 & 63) ^ turn]
    return np.where(moves >= 0, found, -1).astype(np.int16)
