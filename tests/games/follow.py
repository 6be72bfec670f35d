"""Random play beside a reference: plain Python rules that share nothing with the game but its action numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.core.game import Game
from aleazero.games.wander import Steps


class Reference(Protocol):
    """What plain Python says of one game as it goes on."""

    mover: int
    rolling: bool  # nature acts next

    def legal(self) -> set[int]: ...
    def act(self, action: int) -> None: ...
    def roll(self, outcome: int) -> None: ...
    def points(self) -> list[float] | None:
        """The final points, or None while the game goes on."""

    def fields(self) -> dict[str, Any]:
        """The game's own fields of the state, as numbers and nested lists."""


def assert_follows(steps: Steps, start: Callable[[], Reference]) -> int:
    """Plays every lane again by the reference; returns how many games ended."""
    plies, lanes = steps.action.shape
    host = jax.tree.map(np.asarray, steps)
    ended = 0
    for lane in range(lanes):
        game = start()
        for ply in range(plies):
            where = f"ply {ply} of lane {lane}"
            if host.ply[ply, lane] == 0:
                game = start()
            assert_same(jax.tree.map(lambda x, at=(ply, lane): x[at], host.state), game, where)
            listed = [int(a) for a in host.legal[ply, lane] if a >= 0]
            assert sorted(listed) == sorted(game.legal()), where
            if game.rolling:
                game.roll(int(host.outcome[ply, lane]))
            else:
                game.act(int(host.action[ply, lane]))
            assert_same(jax.tree.map(lambda x, at=(ply, lane): x[at], host.after), game, f"after {where}")
            ended += game.points() is not None
    return ended


def assert_same(state: Any, game: Reference, where: str) -> None:
    points = game.points()
    assert bool(state.terminated) == (points is not None), where
    assert state.returns.tolist() == (points or [0.0, 0.0]), where
    assert state.rewards.tolist() == (points or [0.0, 0.0]), where
    assert bool(state.is_chance) == game.rolling, where
    if points is None:
        assert int(state.to_play) == game.mover, where
    for name, value in game.fields().items():
        assert np.asarray(getattr(state, name)).tolist() == value, f"{name} at {where}"


@functools.cache
def compiled(game: Game, name: str) -> Any:
    """A game's function, compiled once for all tests."""
    return jax.jit(getattr(game, name))


def play(game: Game, state: Any, *moves: str) -> Any:
    """The state after moves in the game's notation."""
    for move in moves:
        action = game.notation.parse_action(state, move)
        state = compiled(game, "apply_action")(state, jnp.int32(action))
    return state


def legal_moves(game: Game, state: Any) -> list[str]:
    """The legal moves in the game's notation."""
    listed = np.asarray(compiled(game, "legal_list")(state))
    return [game.notation.format_action(state, int(action)) for action in listed if action >= 0]


def assert_equal_states(one: Any, two: Any) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for (path, a), b in zip(jax.tree_util.tree_flatten_with_path(one)[0], jax.tree.leaves(two), strict=True):
        assert a.dtype == b.dtype, path
        assert np.array_equal(a, b), f"{jax.tree_util.keystr(path)}: {a} and {b}"
