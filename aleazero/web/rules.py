"""A game's functions, compiled once, for one position at a time on the host; and the actions of a whole turn.

What nature does is named by seed and move, as in `alea play`: a move that is taken back changes nothing of it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import ConfigError, GameContractError
from aleazero.core.game import Game
from aleazero.core.keys import Role, lane_keys
from aleazero.games.registry import GYM_PREFIX, make_game
from aleazero.play.rollout import draw

ROWS, PAIRS = 32, 128  # positions, and moves in them, looked at together
_lock = threading.Lock()


def playable(name: str) -> Game:
    """The game of a name; ConfigError where it cannot be played on a page."""
    game = None if name.startswith(GYM_PREFIX) else make_game(name)  # a name of Gymnasium's can import any module
    if not isinstance(game, Game):
        raise ConfigError(f"game {name!r} runs on the host: play it in the terminal, alea play {name}")
    return game


class Rules:
    """Plain answers about single states, which are trees of numpy arrays."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self._init = jax.jit(lambda seed: game.init(lane_keys(seed, Role.INIT, 0, jnp.arange(1))[0]))
        self._legal = jax.jit(game.legal_list)
        self._apply = jax.jit(game.apply_action)
        self._settle = jax.jit(self._draw, static_argnums=3)
        self._many_legal = jax.jit(jax.vmap(game.legal_list))
        self._many_after = jax.jit(self._branch)
        self._pack = jax.jit(game.pack)
        self._pack_all = jax.jit(jax.vmap(game.pack))
        self._chance = jax.jit(game.apply_chance)

    def first(self, seed: int) -> Any:
        """A first state, before nature's first move."""
        return _host(self._init(np.uint32(seed)))

    def legal(self, state: Any) -> list[int]:
        """The legal actions, in the order of the list."""
        return [int(action) for action in np.asarray(self._legal(state)) if action >= 0]

    def apply(self, state: Any, action: int) -> Any:
        """The state after a legal action."""
        return _host(self._apply(state, np.int32(action)))

    def settle(self, state: Any, seed: int, move: int, opening: bool = False) -> tuple[Any, int]:
        """The state after nature's move, if it is to move, and what it drew; -1 for nothing."""
        role = Role.OPENING if opening else Role.CHANCE
        after, outcome = self._settle(state, np.uint32(seed), np.int32(move), int(role))
        return _host(after), int(outcome)

    def roll(self, state: Any, outcome: int) -> Any:
        """The state after what nature is said to have drawn."""
        return _host(self._chance(state, np.int32(outcome)))

    def pack_all(self, states: Any) -> np.ndarray:
        """`[n, P]` uint8 of states `[n]`; computed for a few sizes alone."""
        count = len(states.to_play)
        size = 1 << (count - 1).bit_length()
        rows = np.minimum(np.arange(size), count - 1)
        return np.asarray(self._pack_all(jax.tree.map(lambda x: np.asarray(x)[rows], states)))[:count]

    def turn_to(self, state: Any, left: Any) -> list[int]:
        """The actions of a whole turn that leaves a given state."""
        wanted = np.asarray(self._pack(left))
        found = self.find_turn(state, lambda packed: (packed == wanted).all(-1))
        if found is None:
            where = self.game.notation.format_state(state)
            raise GameContractError("turn", f"no turn leads to what the player wants in {where!r}")
        return found

    def find_turn(self, state: Any, wanted: Callable[[np.ndarray], np.ndarray]) -> list[int] | None:
        """The actions of a turn that leaves what is `wanted`, `[n]` bool of packed states `[n, P]`; None: no turn.

        Found level by level, many positions at once.
        """
        seat = int(state.to_play)
        paths: list[list[int]] = [[]]
        level = jax.tree.map(lambda x: np.asarray(x)[None], state)
        met: set[bytes] = set()
        while paths:
            following: list[list[int]] = []
            parts = []
            for rows, actions, after, packed in self._after_all(level, len(paths)):
                going = ~(after.is_chance | after.terminated | (after.to_play != seat))
                right = wanted(packed)[: len(rows)]
                if right.any():
                    number = int(right.argmax())
                    return [*paths[rows[number]], int(actions[number])]
                kept = []
                for number, row in enumerate(packed[: len(rows)]):
                    found = row.tobytes()
                    if found not in met:
                        met.add(found)
                        if going[number]:
                            kept.append(number)
                            following.append([*paths[rows[number]], int(actions[number])])
                if kept:
                    parts.append(jax.tree.map(lambda x, kept=kept: x[kept], after))
            paths = following
            if parts:
                level = jax.tree.map(lambda *x: np.concatenate(x), *parts) if parts[1:] else parts[0]
        return None

    def _after_all(self, level: Any, count: int) -> Iterator[tuple[np.ndarray, np.ndarray, Any, np.ndarray]]:
        """What the legal actions of `count` positions lead to, up to `PAIRS` at a time: whose, which, and where."""
        for first in range(0, count, ROWS):
            places = np.minimum(np.arange(first, first + ROWS), count - 1)
            states = jax.tree.map(lambda x, places=places: x[places], level)
            legal = np.asarray(self._many_legal(states))[: count - first]
            owners, edges = np.nonzero(legal >= 0)
            for start in range(0, len(owners), PAIRS):
                rows = owners[start : start + PAIRS]
                actions = legal[rows, edges[start : start + PAIRS]].astype(np.int32)
                spare = (0, PAIRS - len(rows))  # one shape
                after, packed = self._many_after(states, np.pad(rows, spare, "edge"), np.pad(actions, spare, "edge"))
                yield rows + first, actions, jax.tree.map(np.asarray, after), np.asarray(packed)

    def _branch(self, states: Any, rows: Array, actions: Array) -> tuple[Any, Array]:
        after = jax.vmap(self.game.apply_action)(jax.tree.map(lambda x: x[rows], states), actions)
        return after, jax.vmap(self.game.pack)(after)

    def _draw(self, state: Any, seed: Array, move: Array, role: int) -> tuple[Any, Array]:
        keys = lane_keys(seed, Role(role), move, jnp.arange(1))
        after, outcomes = draw(self.game, jax.tree.map(lambda x: jnp.asarray(x)[None], state), keys)
        return jax.tree.map(lambda x: x[0], after), outcomes[0]


def rules_of(game: Game) -> Rules:
    """The same object each time, whoever asks first."""
    with _lock:
        return _rules(game)


@functools.cache
def _rules(game: Game) -> Rules:
    return Rules(game)


def _host(state: Any) -> Any:
    """Copies: a view would keep the device's buffers, which are many times as large as what is in them."""
    return jax.tree.map(np.array, state)
