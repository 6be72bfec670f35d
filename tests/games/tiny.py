"""Games as small as can be that keep the contract, to test its checker with; broken.py breaks them.

Dash is a race in which a turn is two moves. Drift is Dash with the die rolled inside `apply_action`, so that its
random stream must be reseeded. TurnDash is Dash with whole-turn plays. Climb is a game for one on the host.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import NotationError
from aleazero.core.game import (
    WIN_LOSS,
    FlatPlays,
    Game,
    GameSpec,
    HostGame,
    HostStatus,
    IndexNotation,
    Notation,
    Symmetry,
)
from aleazero.core.keys import mix, unit
from aleazero.core.struct import replace, struct, where_lanes

GOAL = 3
MOVES = 2  # in a turn


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


class Alike:
    """Games of one kind play alike: they are equal, so that `wander`, which keeps a program per game, keeps one."""

    kind: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and self.kind == other.kind

    def __hash__(self) -> int:
        return hash(self.kind)


class Dash(Alike, Game):
    """A die says 1 or 2; twice a turn a token of your choice goes so far; both tokens home wins."""

    kind = "dash"
    spec = GameSpec(
        name="dash",
        version=1,
        num_players=2,
        num_actions=2,
        max_legal=2,
        observation_shape=(6,),
        outcomes=WIN_LOSS,
        max_plies=60,
        chance="explicit",
        num_chance_outcomes=2,
    )

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


@struct
class DriftState:
    """As DashState, and where the dice come from."""

    to_play: Array
    is_chance: Array
    terminated: Array
    rewards: Array
    returns: Array
    tokens: Array
    die: Array
    moves_left: Array
    stream: Array  # [] uint32


class Drift(Dash):
    """Dash with sampled chance: the die is rolled when a turn ends. It declares no symmetries and no notation."""

    kind = "drift"
    symmetries = ()
    spec = dataclasses.replace(Dash.spec, name="drift", chance="sampled", num_chance_outcomes=0)

    def init(self, key: Array) -> DriftState:
        """The first die comes from the key."""
        return self.roll(DriftState(**vars(super().init(key)), stream=jax.random.key_data(key)[0]))

    def apply_action(self, state: DriftState, action: Array) -> DriftState:
        """A move, and the other player's roll where it ends the turn."""
        after = super().apply_action(state, action)
        return where_lanes(after.is_chance, self.roll(after), after)

    def roll(self, state: DriftState) -> DriftState:
        """A die from the stream."""
        two = unit(mix(state.stream, jnp.uint32(1))) < 0.25
        rolled = self.apply_chance(state, two.astype(jnp.int8))
        return replace(rolled, stream=mix(state.stream, jnp.uint32(2)))

    def reseed(self, state: DriftState, key: Array) -> DriftState:
        """Other dice to come."""
        return replace(state, stream=jax.random.key_data(key)[0])

    @property
    def notation(self) -> Notation:
        return IndexNotation(self)


class TurnDash(Dash):
    """Dash with whole-turn plays: pairs of moves are tried in order, a cursor per lane says which comes next."""

    symmetries = ()
    pairs = np.array([(first, second) for first in range(2) for second in range(2)])  # [Q, 2]

    def __init__(self, chunk: int) -> None:
        self.chunk = chunk  # M
        self.plays = jax.jit(self._plays)
        self.plays_start = lambda states: jnp.zeros(states.to_play.shape, jnp.int32)

    def _plays(self, states: DashState, cursor: Array) -> FlatPlays:
        lanes, pairs = len(states.to_play), len(self.pairs)
        ends, new = jax.vmap(self._turns)(states)
        left = (new & (jnp.arange(pairs)[None] >= cursor[:, None])).reshape(-1)
        place = jnp.cumsum(left) - 1  # where in the stream each play comes
        now = left & (place < self.chunk)
        # Row i of the chunk holds the play that comes i-th; places past the chunk are dropped.
        rows = (
            jnp.zeros(self.chunk, jnp.int32)
            .at[jnp.where(now, place, self.chunk)]
            .set(jnp.arange(lanes * pairs), mode="drop")
        )
        later = (left & ~now).reshape(lanes, pairs)
        onward = jnp.where(later.any(-1), later.argmax(-1), pairs)
        return FlatPlays(
            owner=rows // pairs,
            afterstates=jax.tree.map(lambda x: x.reshape(lanes * pairs, *x.shape[2:])[rows], ends),
            count=now.sum(),
            cursor=onward.astype(jnp.int32),
            done=~later.any(),
        )

    def _turns(self, state: DashState) -> tuple[DashState, Array]:
        """Where every pair of moves leads, `[Q, ...]`, and which of them are plays not met before, `[Q]`."""

        def turn(pair: Array) -> tuple[DashState, Array]:
            once = self.apply_action(state, pair[0])
            twice = self.apply_action(once, pair[1])
            over = once.is_chance | once.terminated
            may = (self.legal_list(state) == pair[0]).any() & (over | (self.legal_list(once) == pair[1]).any())
            return where_lanes(over, once, twice), may

        ends, may = jax.vmap(turn)(jnp.asarray(self.pairs))
        rows = jax.vmap(self.pack)(ends)
        same = (rows[:, None] == rows[None, :]).all(-1)
        before = jnp.asarray(np.tri(len(self.pairs), k=-1, dtype=bool))
        return ends, may & ~(same & before & may[None, :]).any(-1)


@dataclasses.dataclass
class ClimbStates:
    """A batch of climbs; every field is `[B]`."""

    height: np.ndarray
    turns: np.ndarray
    stream: np.ndarray  # uint64
    rewards: np.ndarray  # float32
    returns: np.ndarray


class Climb(HostGame):
    """Step up by one, or, once off the ground, jump by a die that drops you on a one; ten high in twelve turns wins."""

    spec = GameSpec(
        name="climb",
        version=1,
        num_players=1,
        num_actions=2,
        max_legal=2,
        observation_shape=(2,),
        outcomes=WIN_LOSS,
        max_plies=12,
        chance="sampled",
    )
    saved = ("height", "turns", "stream", "rewards", "returns")

    def init_batch(self, seeds: np.ndarray) -> ClimbStates:
        nothing = np.zeros(len(seeds), np.int64)
        unpaid = np.zeros(len(seeds), np.float32)
        return ClimbStates(nothing, nothing.copy(), seeds.copy(), unpaid, unpaid.copy())

    def step_batch(self, states: ClimbStates, actions: np.ndarray, lanes: np.ndarray | None = None) -> ClimbStates:
        lanes = np.ones(len(actions), bool) if lanes is None else lanes
        stream = states.stream * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        face = (stream >> np.uint64(33)).astype(np.int64) % 6 + 1
        jumped = np.where(face == 1, 0, states.height + face)
        height = np.where(actions == 1, jumped, states.height + 1)
        turns = states.turns + 1
        rewards = np.where(height >= 10, 1, np.where(turns >= 12, -1, 0)).astype(np.float32)
        after = ClimbStates(height, turns, stream, rewards, states.returns + rewards)
        pick = functools.partial(np.where, lanes)
        return ClimbStates(**{name: pick(new, getattr(states, name)) for name, new in vars(after).items()})

    def legal_actions(self, states: ClimbStates) -> np.ndarray:
        going = ~self.status(states).terminated
        return np.stack([going, going & (states.height > 0)], -1)

    def observe(self, states: ClimbStates) -> np.ndarray:
        return np.stack([states.height, states.turns], -1).astype(np.float32) / 12

    def status(self, states: ClimbStates) -> HostStatus:
        over = (states.height >= 10) | (states.turns >= 12)
        return HostStatus(np.zeros(len(over), int), over, states.rewards[:, None], states.returns[:, None])

    def reseed(self, states: ClimbStates, seeds: np.ndarray) -> ClimbStates:
        return dataclasses.replace(states, stream=seeds.copy())

    def snapshot(self, states: ClimbStates) -> list[bytes]:
        fields = [getattr(states, name) for name in self.saved]
        return [b"".join(field[lane].tobytes() for field in fields) for lane in range(len(states.height))]

    def restore(self, rows: Sequence[bytes]) -> ClimbStates:
        blank = self.init_batch(np.zeros(len(rows), np.uint64))
        layout = np.dtype([(name, getattr(blank, name).dtype) for name in self.saved])
        table = np.frombuffer(b"".join(rows), layout)
        return dataclasses.replace(blank, **{name: table[name].copy() for name in self.saved})
