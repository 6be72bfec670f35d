"""Pgx environments as games: `pgx:othello`, `pgx:backgammon` and the others listed in `FACTS`.

Deterministic environments are taken as they are. Those that roll inside `step` (backgammon) become games with sampled
chance: the random stream is part of the state, and a search reseeds it before looking ahead. Environments with hidden
cards are not offered: a search over their full state would see the other player's hand.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import MissingExtra, UnknownName
from aleazero.core.game import WIN_DRAW_LOSS, WIN_LOSS, Game, GameSpec, Outcome
from aleazero.core.packing import pack_tree, unpack_tree
from aleazero.core.struct import struct

_BACKGAMMON = tuple(
    Outcome(f"{'wins' if sign > 0 else 'loses'} {name}", sign * points)
    for sign in (1, -1)
    for points, name in ((1, "single"), (2, "gammon"), (3, "backgammon"))
)


@dataclasses.dataclass(frozen=True)
class Facts:
    """What an environment does not say of itself."""

    outcomes: tuple[Outcome, ...] = WIN_DRAW_LOSS
    max_plies: int = 1000
    max_legal: int | None = None  # None: as many as there are actions
    sampled: bool = False


FACTS = {
    "animal_shogi": Facts(max_plies=256),
    # Fifteen checkers stand on at most fifteen points and at most two different dice can be played.
    "backgammon": Facts(outcomes=_BACKGAMMON, max_plies=4000, max_legal=30, sampled=True),
    "chess": Facts(max_plies=512, max_legal=218),
    "connect_four": Facts(max_plies=42),
    "gardner_chess": Facts(max_plies=256),
    "go_19x19": Facts(outcomes=WIN_LOSS, max_plies=722),
    "go_9x9": Facts(outcomes=WIN_LOSS, max_plies=162),
    "hex": Facts(outcomes=WIN_LOSS, max_plies=122),
    "othello": Facts(max_plies=128),
    "shogi": Facts(max_plies=1000, max_legal=593),
    "tic_tac_toe": Facts(max_plies=9),
}


@struct
class PgxState:
    """A Pgx state without its observation; fields as in `core.game.State`."""

    to_play: Array
    is_chance: Array
    terminated: Array
    rewards: Array
    returns: Array
    inner: Any  # the environment's state; its observation is left empty and computed again when asked for
    stream: Array  # [2] uint32: key data of the random stream; [0] where the environment has none


class PgxGame(Game):
    """One Pgx environment behind the game contract."""

    def __init__(self, name: str) -> None:
        if name not in FACTS:
            raise UnknownName("Pgx environment", name, FACTS)
        try:
            import pgx
        except ImportError as error:
            raise MissingExtra(f"game 'pgx:{name}'", "pgx", "games") from error
        self.env = pgx.make(name)
        self.facts = FACTS[name]
        first = jax.eval_shape(self.env.init, jax.random.key(0))  # nothing is compiled to learn a shape
        num_actions = int(first.legal_action_mask.shape[0])
        self.spec = GameSpec(
            name=f"pgx:{name}",
            version=1,
            num_players=int(self.env.num_players),
            num_actions=num_actions,
            max_legal=self.facts.max_legal or num_actions,
            observation_shape=tuple(first.observation.shape),
            outcomes=self.facts.outcomes,
            max_plies=self.facts.max_plies,
            chance="sampled" if self.facts.sampled else "none",
        )

    def init(self, key: Array) -> PgxState:
        """The environment's first state; its stream starts from the same key."""
        # Outside of jit some environments leave Python numbers in their first state.
        inner = jax.tree.map(jnp.asarray, self.env.init(jax.random.wrap_key_data(jax.random.key_data(key))))
        stream = jax.random.key_data(jax.random.fold_in(key, 1)) if self.facts.sampled else jnp.zeros(0, jnp.uint32)
        return self._state(inner, inner.rewards, stream)

    def legal_list(self, state: PgxState) -> Array:
        """The environment only has a mask, so the list is made from it: place k holds the k-th legal action."""
        spec = self.spec
        mask = state.inner.legal_action_mask & ~state.terminated
        if spec.max_legal == spec.num_actions:
            return jnp.where(mask, jnp.arange(spec.num_actions, dtype=jnp.int16), jnp.int16(-1))
        # How many places come before the k-th legal action: a count of comparisons, cheaper than a sort or a
        # scatter. The running count is a product with a triangle of ones (exact: all numbers are small).
        upto = mask.astype(jnp.float32) @ jnp.asarray(np.triu(np.ones((spec.num_actions,) * 2, np.float32)))
        places = jnp.arange(spec.max_legal, dtype=jnp.float32)
        index = (upto[None, :] <= places[:, None]).sum(-1, dtype=jnp.int16)
        return jnp.where(places < upto[-1], index, jnp.int16(-1))

    def apply_action(self, state: PgxState, action: Array) -> PgxState:
        """One step; what it rolls comes from the state's own stream."""
        if not self.facts.sampled:
            inner = self.env.step(state.inner, action)
            return self._state(inner, state.returns + inner.rewards, state.stream)
        now, then = jax.random.split(jax.random.wrap_key_data(state.stream))
        inner = self.env.step(state.inner, action, now)
        return self._state(inner, state.returns + inner.rewards, jax.random.key_data(then))

    def reseed(self, state: PgxState, key: Array) -> PgxState:
        """The same position, other dice to come."""
        if not self.facts.sampled:
            return state
        return dataclasses.replace(state, stream=jax.random.key_data(key))

    def observe(self, state: PgxState) -> Array:
        """The environment's own observation for the player to play."""
        return self.env.observe(state.inner).astype(jnp.float32)

    def pack(self, state: PgxState) -> Array:
        """The environment's state, the returns and the stream; the mask travels as bits, the rest is read back.

        The mask is kept because only the environment's `step` can make it.
        """
        return pack_tree((state.inner, state.returns, state.stream))

    def unpack(self, row: Array) -> PgxState:
        """The state of a packed row."""
        like = self.state_like
        inner, returns, stream = unpack_tree(row, (like.inner, like.returns, like.stream))
        return self._state(inner, returns, stream)

    def _state(self, inner: Any, returns: Array, stream: Array) -> PgxState:
        return PgxState(
            to_play=inner.current_player.astype(jnp.int8),
            is_chance=jnp.bool_(False),
            terminated=inner.terminated,
            rewards=inner.rewards,
            returns=returns,
            inner=inner.replace(observation=jnp.zeros(0, jnp.float32)),
            stream=stream,
        )
