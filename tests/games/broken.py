"""Small games to test the contract checker with: correct ones here, broken ones by subclassing them in the tests.

Dash is a race in which a turn is two moves, as small as a game with dice, whole-turn plays and a player who moves
twice can be. Drift is the same with the dice inside `apply_action`, so that its random stream must be reseeded.
"""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import NotationError
from aleazero.core.game import WIN_LOSS, Game, GameSpec, Notation, Symmetry
from aleazero.core.struct import replace, struct

GOAL = 3
MOVES = 2  # in a turn
SHAPES = dict(version=1, num_players=2, num_actions=2, max_legal=2, observation_shape=(6,), max_plies=60)


@struct
class DashState:
    """A position; fields as in `core.game.State`, and the race."""

    to_play: Array
    is_chance: Array
    terminated: Array
    rewards: Array
    returns: Array
    tokens: Array  # [2, 2] int8: how far each seat's two tokens are
    die: Array  # [] int8: how far every move of this turn goes
    moves_left: Array  # [] int8


class Dash(Game):
    """A die says 1 or 2; twice a turn a token of your choice goes so far; both tokens home wins."""

    spec = GameSpec(name="dash", outcomes=WIN_LOSS, chance="explicit", num_chance_outcomes=2, **SHAPES)
    chunk = 3  # rows in a chunk of plays

    def init(self, key: Array) -> DashState:
        """The die is in the air; seat 0 will be to play."""
        return DashState(
            to_play=jnp.int8(1),
            is_chance=jnp.bool_(True),
            terminated=jnp.bool_(False),
            rewards=jnp.zeros(2),
            returns=jnp.zeros(2),
            tokens=jnp.zeros((2, 2), jnp.int8),
            die=jnp.int8(0),
            moves_left=jnp.int8(0),
        )

    def legal_list(self, state: DashState) -> Array:
        """The tokens that are not home."""
        may = (state.tokens[state.to_play] < GOAL) & ~state.is_chance & ~state.terminated
        return jnp.where(may, jnp.arange(2, dtype=jnp.int16), jnp.int16(-1))

    def apply_action(self, state: DashState, action: Array) -> DashState:
        """One of the turn's moves; after the last the die is in the air."""
        mine = jnp.arange(2)[:, None] == state.to_play
        chosen = mine & (jnp.arange(2)[None] == action)
        tokens = jnp.minimum(state.tokens + jnp.where(chosen, state.die, 0), GOAL).astype(jnp.int8)
        home = (tokens == GOAL).all(-1)
        points = home.astype(jnp.float32) - home[::-1].astype(jnp.float32)
        left = state.moves_left - 1
        return replace(
            state,
            is_chance=(left == 0) & ~home.any(),
            terminated=home.any(),
            rewards=points,
            returns=points,
            tokens=tokens,
            moves_left=left.astype(jnp.int8),
        )

    def chance_probs(self, state: DashState) -> Array:
        """A one is likelier than a two."""
        return jnp.array([0.75, 0.25], jnp.float32)

    def apply_chance(self, state: DashState, outcome: Array) -> DashState:
        """The other player's turn begins."""
        return replace(
            state,
            to_play=1 - state.to_play,
            is_chance=jnp.bool_(False),
            die=(outcome + 1).astype(jnp.int8),
            moves_left=jnp.int8(MOVES),
        )

    def observe(self, state: DashState) -> Array:
        """My tokens, yours, the die and the moves left."""
        seats = jnp.where(state.to_play == 0, state.tokens, state.tokens[::-1])
        rest = jnp.stack([state.die, state.moves_left])
        return jnp.concatenate([seats.reshape(4), rest]).astype(jnp.float32)

    @property
    def notation(self) -> Notation:
        return DashNotation()

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:  # type: ignore[override]
        return (
            Symmetry("tokens", lambda state: replace(state, tokens=state.tokens[:, ::-1]), (1, 0)),
            Symmetry("seats", swap_seats, (0, 1), swaps_seats=True),
        )


def swap_seats(state: Any) -> Any:
    return replace(
        state,
        to_play=1 - state.to_play,
        rewards=state.rewards[::-1],
        returns=state.returns[::-1],
        tokens=state.tokens[::-1],
    )


class DashNotation(Notation):
    """Moves `first` and `second`; positions `01-22 die 1 left 2 player 1`."""

    def format_action(self, state: Any, action: int) -> str:
        return ("first", "second")[action]

    def parse_action(self, state: Any, text: str) -> int:
        return ("first", "second").index(text)

    def format_state(self, state: Any) -> str:
        one, two = ("".join(str(int(place)) for place in tokens) for tokens in np.asarray(state.tokens))
        air = " rolling" if bool(state.is_chance) else ""
        return f"{one}-{two} die {int(state.die)} left {int(state.moves_left)} player {int(state.to_play) + 1}{air}"

    def parse_state(self, text: str) -> Any:
        found = re.fullmatch(r"(\d)(\d)-(\d)(\d) die (\d) left (\d) player (\d)( rolling)?", text)
        if not found:
            raise NotationError(f"position {text!r} is not one of Dash")
        *tokens, die, left, player = (int(word) for word in found.groups()[:7])
        return replace(
            Dash().init(jax.random.key(0)),
            to_play=jnp.int8(player - 1),
            is_chance=jnp.bool_(bool(found[8])),
            tokens=jnp.array(tokens, jnp.int8).reshape(2, 2),
            die=jnp.int8(die),
            moves_left=jnp.int8(left),
        )

    def draw(self, state: Any) -> str:
        return self.format_state(state)
