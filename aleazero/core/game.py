"""The game contract: what rules must provide so that search, learning, matches and bridges can use them.

A game is written in JAX as functions of one state; callers batch them with `vmap`. The laws each function keeps are
stated beside it and asserted by `aleazero.games.conformance.check_game`. A game that cannot be traced implements
`HostGame` instead: the same words as batched numpy functions.
Knows nothing of search, networks or any particular game.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import GameContractError, NotationError, UnknownName
from aleazero.core.packing import pack_tree, packed_bytes, unpack_tree
from aleazero.core.scopes import part
from aleazero.core.struct import struct


@runtime_checkable
class State(Protocol):
    """The fields every state has; a game adds its own. Shapes are those of one state, before `vmap`."""

    to_play: Array  # [] int: who acts next; at a chance state, who acted last
    is_chance: Array  # [] bool: nature acts next
    terminated: Array  # [] bool: the rules ended the game
    rewards: Array  # [players] float32: points the last transition paid
    returns: Array  # [players] float32: points paid since the start


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One way a game can end, seen from one player's side."""

    name: str
    points: float


WIN_DRAW_LOSS = (Outcome("win", 1.0), Outcome("draw", 0.0), Outcome("loss", -1.0))
WIN_LOSS = (Outcome("win", 1.0), Outcome("loss", -1.0))

Chance = Literal["none", "explicit", "sampled"]


@dataclasses.dataclass(frozen=True)
class GameSpec:
    """The static facts of a game."""

    name: str
    version: int  # raised whenever states, actions or observations change their meaning
    num_players: int
    num_actions: int  # A
    max_legal: int  # K: the length of legal_list; no reachable state has more legal actions
    observation_shape: tuple[int, ...]
    outcomes: tuple[Outcome, ...]  # empty where a game has no finite set of outcomes
    max_plies: int  # moves (players' and nature's) after which play stops a game: truncated, without an outcome
    chance: Chance = "none"
    num_chance_outcomes: int = 0  # C; 0 unless chance is "explicit"
    afterstate_values: bool = False  # networks may be evaluated at chance states
    phase_input: int | None = None  # a flag among the observation's numbers, which of two phases it is
    # every action as a move on the observation's board: source, target (row by row), and which of those it is that have
    # both in common; empty where actions are no such moves
    moves: tuple[tuple[int, int, int], ...] = ()

    def __post_init__(self) -> None:
        problems = []
        if self.num_players not in (1, 2):
            problems.append(f"num_players is {self.num_players}; 1 or 2 are supported")
        if not 0 < self.max_legal <= self.num_actions:
            problems.append(f"max_legal is {self.max_legal}; it must be in 1..num_actions ({self.num_actions})")
        if self.num_actions > np.iinfo(np.int16).max:
            problems.append(f"num_actions is {self.num_actions}; actions are int16")
        if (self.chance == "explicit") != (self.num_chance_outcomes > 0):
            problems.append(f"chance is {self.chance!r} but num_chance_outcomes is {self.num_chance_outcomes}")
        if self.outcomes and max(abs(o.points) for o in self.outcomes) <= 0:
            problems.append("every outcome has zero points")
        if self.moves and len(self.moves) != self.num_actions:
            problems.append(f"moves has {len(self.moves)} entries; num_actions is {self.num_actions}")
        if problems:
            raise GameContractError("spec", f"game {self.name!r}: " + "; ".join(problems))

    @property
    def scale(self) -> float:
        """The largest number of points a game can bring; values are points over this."""
        return max((abs(o.points) for o in self.outcomes), default=1.0)


@struct
class FlatPlays:
    """A chunk of whole-turn plays of a batch of states, flattened (see `Game.plays`)."""

    owner: Array  # [M] int32: the lane each play belongs to
    afterstates: Any  # [M, ...]: the position each play leaves, before nature acts
    count: Array  # [] int32: how many of the M rows are filled
    cursor: Any  # where the next call goes on
    done: Array  # [] bool: every cursor is done


@dataclasses.dataclass(frozen=True)
class Symmetry:
    """A way to turn a position round that changes nothing: what is true of one is true of the other.

    `actions[a]` is the name in the turned position of action `a`. With `swaps_seats` the players change seats too:
    values stay the same from to_play's side, and change sign from seat 0's.
    """

    name: str
    turn: Callable[[Any], Any]  # state -> state
    actions: tuple[int, ...]  # [A]
    swaps_seats: bool = False


class Notation(abc.ABC):
    """Text in and out, on the host, one concrete state at a time. Raises NotationError, saying what and why."""

    @abc.abstractmethod
    def format_action(self, state: Any, action: int) -> str:
        """The move's name in this state."""

    @abc.abstractmethod
    def parse_action(self, state: Any, text: str) -> int:
        """The legal action a text names."""

    def parse_moves(self, state: Any, text: str) -> list[int]:
        """The actions a text names: one, or several where people write whole turns."""
        return [self.parse_action(state, text)]

    def turns(self, state: Any) -> list[tuple[list[int], Any]]:
        """Where people write whole turns: every distinct one, as its actions and the state it leaves."""
        return []

    def format_turn(self, state: Any, actions: list[int]) -> str:
        """The name of a turn that begins in this state."""
        return " ".join(self.format_action(state, action) for action in actions)

    @abc.abstractmethod
    def format_state(self, state: Any) -> str:
        """The position on one line; `parse_state` reads it back to an equal state."""

    @abc.abstractmethod
    def parse_state(self, text: str) -> Any:
        """The position a text describes."""

    @abc.abstractmethod
    def draw(self, state: Any) -> str:
        """The position for a person to look at."""

    def format_chance(self, state: Any, outcome: int) -> str:
        """The name of what nature does."""
        return str(outcome)

    def explain(self) -> str:
        """How moves and positions are written, in a sentence or two."""
        return ""


_TRACED = (
    "init", "legal_list", "apply_action", "observe", "chance_probs", "apply_chance", "reseed", "pack", "unpack",
)  # fmt: skip


class Game(abc.ABC):
    """The rules of one game, as pure JAX functions of one state."""

    spec: GameSpec

    def __init_subclass__(cls, **more: Any) -> None:
        """Names what the rules compute, whoever asks for it and whoever wrote them: a trace can then tell it apart."""
        super().__init_subclass__(**more)
        for name in _TRACED:
            if inspect.isfunction(cls.__dict__.get(name)):
                setattr(cls, name, part("rules")(cls.__dict__[name]))

    @abc.abstractmethod
    def init(self, key: Array) -> Any:
        """A first state. May be a chance state (an opening roll that decides who starts)."""

    @abc.abstractmethod
    def legal_list(self, state: Any) -> Array:
        """`[K]` int16: each legal action once, -1 in the other places (anywhere); all -1 at chance and terminal states.

        Built by the rules directly: a list made from a mask costs many times more.
        """

    @abc.abstractmethod
    def apply_action(self, state: Any, action: Array) -> Any:
        """The state after a legal action. Deterministic; the result may be a chance state."""

    @abc.abstractmethod
    def observe(self, state: Any) -> Array:
        """What the network sees, always from to_play's side."""

    def chance_probs(self, state: Any) -> Array:
        """`[C]` float32, summing to one where `state.is_chance`."""
        raise GameContractError("chance_probs", f"game {self.spec.name!r} has no explicit chance")

    def apply_chance(self, state: Any, outcome: Array) -> Any:
        """The state after nature's move: never itself a chance state, so one draw follows one action."""
        raise GameContractError("apply_chance", f"game {self.spec.name!r} has no explicit chance")

    def reseed(self, state: Any, key: Array) -> Any:
        """The same position with a fresh random stream; needed where chance is "sampled".

        A search reseeds its roots before it looks ahead, so that it never sees the dice the game will really roll.
        """
        if self.spec.chance == "sampled":
            raise GameContractError("reseed", f"game {self.spec.name!r} samples chance but cannot be reseeded")
        return state

    @part("rules")
    def pack(self, state: Any) -> Array:
        """The state as `[P]` uint8, without anything that can be computed again (observations, masks)."""
        return pack_tree(state)

    @part("rules")
    def unpack(self, row: Array) -> Any:
        """The state of a packed row: equal, leaf for leaf, to the one packed, but for `forgotten` fields."""
        return unpack_tree(row, self.state_like)

    forgotten: tuple[str, ...] = ()
    """Fields of a state that a packed row leaves out, because whoever walks through rows can give them back.

    Nothing else of a state, what can be done in it and what is seen of it depend on them; what follows from it may.
    """

    position_key: Callable[[Any], Array] | None = None
    """Optional, with the two below, where it matters which positions were there before: `position_key(state) -> [2]`
    uint32, the first eight bytes of a packed row. Equal where two positions of a game count as the same."""

    past_keys: Callable[[Any], Array] | None = None
    """`past_keys(state) -> [H, 2]` uint32: keys of earlier positions that may come again; zeros elsewhere.

    Forgotten by `pack`. A search reads them at its roots.
    """

    seen_before: Callable[[Any, Array], Any] | None = None
    """`seen_before(state, times) -> state`, where the position of a state was there `times` before.

    For states that come from `apply_action` on an unpacked one: the caller counts the state's key among those on the
    way to it, the root's `past_keys` included. With a whole state `apply_action` counts by itself.
    """

    wins_in_one: Callable[[Any], Array] | None = None
    """Optional: `wins_in_one(state) -> []` bool, whether an action of to_play ends the game with all that it can bring.

    For games where that is cheaper than an evaluation; a search that proves things asks it of every leaf.
    """

    plays: Callable[[Any, Any], FlatPlays] | None = None
    """Optional, batch: `plays(states, cursor) -> FlatPlays`, the distinct whole-turn plays of every lane, streamed.

    The first cursor comes from `plays_start(states)`, the next from the chunk before, until `done`. Every chunk has
    the same shapes, so a caller can loop on the device. Chunk size changes speed, never results.
    """

    plays_start: Callable[[Any], Any] | None = None

    ending: Callable[[Any, Any], tuple[Array, Array]] | None = None
    """Optional: `ending(tables, state) -> (known, chances [O])`, where tables of the rules' own know how a game ends.

    Of a state that nature acts in after a play: whether it is known, and to_play's chance of each outcome under best
    play. The tables are `ending_tables()`, an argument so that no compiled program holds them.
    """

    def ending_tables(self) -> Any:
        """What `ending` looks things up in: a tree of arrays, worked out or read when it is asked for."""
        raise GameContractError("ending_tables", f"game {self.spec.name!r} has no tables of endings")

    @property
    def num_later_outcomes(self) -> int:
        """Chance outcomes that can follow a play: the first so many; others are for a first state alone."""
        return self.spec.num_chance_outcomes

    symmetries: tuple[Symmetry, ...] = ()

    starts: Mapping[str, Callable[[Array], Any]] = MappingProxyType({})
    """Optional, by name: `start(key) -> state`, other positions to begin a game of self-play at.

    Each is a position that play can reach, where the game goes on.
    """

    @property
    def notation(self) -> Notation:
        """How people write this game."""
        return IndexNotation(self)

    @functools.cached_property
    def state_like(self) -> Any:
        """The shapes and dtypes of a state."""
        return jax.eval_shape(self.init, jax.random.key(0))

    @functools.cached_property
    def packed_size(self) -> int:
        """P: bytes in a packed row."""
        if type(self).pack is Game.pack:
            return packed_bytes(self.state_like)
        return int(jax.eval_shape(self.pack, self.state_like).shape[0])


class HostGame(abc.ABC):
    """Rules that run on the host: batches of states in numpy, stepped in place of being traced.

    `states` is whatever the game likes (a structure of arrays); lanes are its first axis. Chance is always "sampled":
    the random stream lives in the states.
    """

    spec: GameSpec

    @abc.abstractmethod
    def init_batch(self, seeds: np.ndarray) -> Any:
        """First states for seeds `[B]` uint64; the same seed gives the same game."""

    @abc.abstractmethod
    def step_batch(self, states: Any, actions: np.ndarray, lanes: np.ndarray | None = None) -> Any:
        """States after legal actions `[B]`; with `lanes` `[B]` bool only those move. The argument is unchanged."""

    @abc.abstractmethod
    def legal_actions(self, states: Any) -> np.ndarray:
        """`[B, A]` bool; all False where terminated."""

    @abc.abstractmethod
    def observe(self, states: Any) -> np.ndarray:
        """`[B, ...]` from to_play's side."""

    def observe_into(self, states: Any, out: np.ndarray) -> None:
        """`observe` written over `out`; a game may save itself the copy."""
        out[:] = self.observe(states)

    @abc.abstractmethod
    def status(self, states: Any) -> HostStatus:
        """Who acts, what ended, what was paid."""

    def measures(self, states: Any) -> dict[str, np.ndarray]:
        """Numbers `[B]` by name that describe positions, for rewards and reports; none unless a game has some."""
        return {}

    def put(self, states: Any, lanes: np.ndarray, fresh: Any) -> Any:
        """The states with `fresh` in the lanes of these numbers `[n]`. The arguments are unchanged."""
        rows = list(self.snapshot(states))
        for lane, row in zip(lanes, self.snapshot(fresh), strict=True):
            rows[lane] = row
        return self.restore(rows)

    def take(self, states: Any, lanes: np.ndarray) -> Any:
        """The states of these lanes `[n]`, each as often as it is named."""
        rows = self.snapshot(states)
        return self.restore([rows[lane] for lane in lanes])

    def advance(self, states: Any, actions: np.ndarray, lanes: np.ndarray | None = None) -> Any:
        """`step_batch` for who needs the states before it no more: a game may change them in place."""
        return self.step_batch(states, actions, lanes)

    def renew(self, states: Any, lanes: np.ndarray, seeds: np.ndarray) -> Any:
        """The states with new games of seeds `[n]` in lanes `[n]`, for who needs those before no more, as `advance`."""
        return self.put(states, lanes, self.init_batch(seeds))

    def teacher(self, name: str) -> Callable[[Any, int], np.ndarray]:
        """A baseline to learn from: `choose(states, word) -> actions [B]`, which follow from the two."""
        raise UnknownName(f"teacher of {self.spec.name}", name, [])

    def seen_by(self, kind: str, graph: str = "none") -> HostGame:
        """The game with the observations that networks of a kind (`model.kind`) are made for.

        `graph` (`model.graph`) says which numbers of a knowledge graph follow them, in games that have one.
        """
        return self

    def for_practice(self) -> HostGame:
        """The same game with seeds to train on, which are none of those that ratings are made with."""
        return self

    @abc.abstractmethod
    def reseed(self, states: Any, seeds: np.ndarray) -> Any:
        """The same positions with fresh random streams."""

    @abc.abstractmethod
    def snapshot(self, states: Any) -> list[bytes]:
        """Each lane as bytes, random stream included."""

    @abc.abstractmethod
    def restore(self, rows: Sequence[bytes]) -> Any:
        """The states that `snapshot` saved."""


@dataclasses.dataclass(frozen=True)
class HostStatus:
    """The fields of `State` for a batch of host states."""

    to_play: np.ndarray  # [B] int
    terminated: np.ndarray  # [B] bool
    rewards: np.ndarray  # [B, players] float32
    returns: np.ndarray  # [B, players] float32
    # [B] bool: of the terminated, games that were stopped where they might have gone on; None: the rules ended all.
    stopped: np.ndarray | None = None


def legal_mask(legal: Array, num_actions: int) -> Array:
    """`[..., A]` bool from legal lists `[..., K]`: the mask is derived from the list, not the other way round."""
    actions = jax.lax.broadcasted_iota(legal.dtype, (*legal.shape, num_actions), legal.ndim)
    return (legal[..., None] == actions).any(-2)


def seat_sign(to_play: Array) -> Array:
    """+1.0 where seat 0 is to play, -1.0 where seat 1 is: turns to_play's view into seat 0's and back."""
    return 1.0 - 2.0 * to_play.astype(jnp.float32)


def outcome_index(spec: GameSpec, points: Array) -> Array:
    """Which outcome a player's final points are, `[...]` int32: the nearest of the game's outcomes."""
    table = jnp.asarray([o.points for o in spec.outcomes], jnp.float32)
    away = jnp.abs(points[..., None] - table.reshape(*[1] * points.ndim, -1))
    return jnp.argmin(away, -1).astype(jnp.int32)


class IndexNotation(Notation):
    """The notation of a game that brings none: actions by number, positions as hexadecimal packed rows."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def format_action(self, state: Any, action: int) -> str:
        """The action's number."""
        return str(int(action))

    def parse_action(self, state: Any, text: str) -> int:
        """A legal action's number."""
        legal = sorted(int(a) for a in np.asarray(self.game.legal_list(state)) if a >= 0)
        if not text.strip().isdecimal() or int(text) not in legal:
            raise NotationError(f"move {text!r} is not legal here: legal are {', '.join(map(str, legal)) or 'none'}")
        return int(text)

    def format_state(self, state: Any) -> str:
        """The packed row in hexadecimal."""
        return bytes(np.asarray(self.game.pack(state))).hex()

    def parse_state(self, text: str) -> Any:
        """The state of a packed row in hexadecimal."""
        try:
            row = bytes.fromhex(text.strip())
        except ValueError as error:
            raise NotationError(f"position {text!r} is not hexadecimal: {error}") from error
        if len(row) != self.game.packed_size:
            raise NotationError(f"position has {len(row)} bytes; {self.game.spec.name} needs {self.game.packed_size}")
        return self.game.unpack(jnp.frombuffer(row, jnp.uint8))

    def draw(self, state: Any) -> str:
        """Field by field."""
        leaves = jax.tree_util.tree_flatten_with_path(state)[0]
        names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
        return "\n".join(f"{name}: {np.asarray(leaf).tolist()}" for name, (_, leaf) in zip(names, leaves, strict=True))

    def explain(self) -> str:
        """Numbers."""
        return "Moves are action numbers; positions are packed rows in hexadecimal."
