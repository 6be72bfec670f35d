"""Self-play on the device: B games at once under one compiled function; a game that ends makes room for the next.

Every lane's randomness is named by seed, role, move and lane, so a game does not depend on the games beside it, on
the number of devices, or on how many moves are played in one call. A search that keeps its trees from move to move
does so within one call alone: nothing of a tree is in a checkpoint, none is older than the weights, and a run goes on
after a stop as it would have without. Only then do games depend on how many moves a call has.
Knows the game contract, a search and a network's signature; not what the trajectories are for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.game import Game
from aleazero.core.keys import Role, gumbel_noise, lane_keys, lane_words, mix, role_key, unit
from aleazero.core.records import NOT_RESIGNED, RESIGNED, RIGHT, WRONG, Evaluate, Opine, Trajectory, Weights
from aleazero.core.schedule import Schedule
from aleazero.core.scopes import part
from aleazero.core.struct import replace, struct, where_lanes

STRONGEST_TASTE = 4.0  # how much a game's random moves follow its taste, at most; at least not at all


@dataclasses.dataclass(frozen=True)
class SelfPlayConfig:
    """How games are played to learn from. The budget of a full search is `search.max_simulations`."""

    num_games: int = 256  # played at once: lanes; 0, by PPO: as many as fit ppo.memory_gb
    moves_per_rollout: int = 16  # T: moves between two looks at new weights
    starts: tuple[str, ...] = ()  # where games begin: at the game's named starts, each as often; none: as the rules say
    start_fraction: float = 1.0  # the share of games that begin there; the others begin where the rules say
    start_plies: int | None = None  # games that begin there are cut after so many plies; None: played to the end
    rest_while_training: bool = False  # far workers wait while an epoch is trained: one device can then serve both
    random_plies: int = 0  # each game begins with 0 to this many random moves
    # A game is given up when for so many moves in a row the search gives one side no more than -resign: 0: never. Some
    # games are played on all the same, to see how often that side would not have lost.
    resign: float = 0.0
    resign_moves: int = 6
    resign_check: float = 0.1  # share of the games
    epsilon: float = 0.0  # share of the other moves that are random all the same; what the search found is learned
    # Who plays and opines in the run's place: a network (run:NAME, path:FOLDER, bundled); chess: classical:depth=2
    teacher: str | None = None
    every_roll: bool = False  # expectimax: look at all rolls before one is drawn, so that opinions are their mean
    full_search_fraction: float = 1.0  # share of moves that get the full budget; only their policies are learned
    fast_simulations: int = 8  # the budget of the other moves
    temperature: Schedule = Schedule(1.0)
    temperature_epochs: int = 0  # the temperature is at its end after so many epochs; 0: it goes by rows
    # After this many plies of a game the best move is played: nothing is drawn, and Gumbel's root has no noise.
    temperature_plies: int | None = None
    exploration: float = 1.25
    noise_fraction: float = 0.25
    noise_alpha: float = 0.5
    gumbel_scale: float = 1.0
    max_considered: int = 16

    def problems(self) -> list[str]:
        """What is wrong with it."""
        least = {"num_games": 0, "moves_per_rollout": 1, "random_plies": 0, "fast_simulations": 1}
        least |= {"temperature_epochs": 0, "resign_moves": 1}
        found = [
            f"{n} is {getattr(self, n)}; it must be at least {v}" for n, v in least.items() if getattr(self, n) < v
        ]
        for name in ("epsilon", "resign"):
            if not 0 <= getattr(self, name) < 1:
                found.append(f"{name} is {getattr(self, name)}; it must be in [0, 1)")
        if not 0 <= self.resign_check <= 1:
            found.append(f"resign_check is {self.resign_check}; it must be in 0..1")
        for name in ("full_search_fraction", "start_fraction"):
            if not 0 < getattr(self, name) <= 1:
                found.append(f"{name} is {getattr(self, name)}; it must be in (0, 1]")
        if self.start_plies is not None and self.start_plies < 1:
            found.append(f"start_plies is {self.start_plies}; it must be at least 1")
        if self.start_plies is not None and not self.starts:
            found.append(f"start_plies is {self.start_plies}; it is for games that begin at other starts: name one")
        if len(set(self.starts)) < len(self.starts):
            found.append(f"starts is {list(self.starts)}; it names one of them twice")
        if self.temperature_plies is not None and self.temperature_plies < 0:
            found.append(f"temperature_plies is {self.temperature_plies}; it must not be negative")
        return found


@struct
class Doubt:
    """What a game that may be given up remembers, `[B]` lanes."""

    moves: Array  # [B] int32: in a row in which one side was seen to lose: below 0 seat 0, above 0 seat 1
    loser: Array  # [B] int8: the seat that would have given up, in a game that is played on; -1: neither yet


@struct
class Games:
    """Games in flight, `[B]` lanes: all that is needed to go on with them."""

    states: Any  # decision states
    ply: Array  # [B] int32: moves, nature's included, since the game began; more where the game will be cut early
    openings: Array  # [B] int32: random moves still to be played
    taste: Array  # [B] uint32: which actions this game's random moves prefer
    fingerprint: Array  # [B] uint32: of the moves so far
    doubt: Doubt | None = None  # where games may be given up


@struct
class Pace:
    """Numbers that may change from rollout to rollout without a recompilation."""

    knobs: Any  # the search's
    fast_simulations: Array  # [] int32
    full_search_fraction: Array  # [] float32
    temperature_plies: Array  # [] int32


class SearchLike(Protocol):
    """What a rollout needs of a search."""

    def run(self, evaluate: Evaluate, weights: Weights, states: Any, keys: Array, knobs: Any) -> Any:
        """Searches decision states."""


@runtime_checkable
class KeepingSearch(Protocol):
    """What a rollout needs of a search that keeps its trees from move to move."""

    def nothing(self, lanes: int) -> Any:
        """What is kept before a first move."""

    def go_on(
        self, kept: Any, evaluate: Evaluate, weights: Weights, states: Any, keys: Array, knobs: Any
    ) -> tuple[Any, Any]:
        """Searches decision states from what is kept: what it found, and its trees."""

    def follow(self, tree: Any, action: Array, outcome: Array, going: Array) -> Any:
        """What is kept of trees once actions `[B]` are played and nature has drawn outcomes `[B]` (-1: none).

        Nothing in lanes whose game is not `going` on.
        """


@dataclasses.dataclass(frozen=True)
class GivingUp:
    """When a game is given up, for games of two players who win or lose all."""

    below: float  # 0 < below < 1: a side that the search gives no more than -below is seen to lose
    moves: int  # in a row
    check: float  # share of games that are played on
    points: float  # what the winner gets

    def none(self, lanes: Array) -> Doubt:
        """Of games that have just begun."""
        return Doubt(jnp.zeros(lanes.shape, jnp.int32), jnp.full(lanes.shape, -1, jnp.int8))

    def judge(self, games: Games, value: Array, ended: Array, truncated: Array, points: Array) -> tuple[Doubt, Array]:
        """Doubts after a move, and what `Trajectory.resign` says of it; `value` `[B]` is for to_play before it.

        Sides agree: each move's value is its own player's, and all of a row must say the same.
        """
        assert games.doubt is not None
        of_seat_0 = jnp.where(games.states.to_play == 0, value, -value)
        side = jnp.where(of_seat_0 <= -self.below, -1, jnp.where(of_seat_0 >= self.below, 1, 0))
        before = games.doubt.moves
        moves = jnp.where(side == 0, 0, jnp.where(jnp.sign(before) == side, before, 0) + side)
        lost = (jnp.abs(moves) >= self.moves) & ~ended
        plays_on = unit(mix(games.taste, jnp.uint32(self.moves))) < self.check
        unknown = games.doubt.loser < 0
        loser = jnp.where(lost & plays_on & unknown, (moves > 0).astype(jnp.int8), games.doubt.loser)
        held = jnp.where(loser == 0, points < 0, points > 0)  # what was thought of it
        checked = jnp.where(ended & (loser >= 0), jnp.where(held, RIGHT, WRONG), NOT_RESIGNED)
        resign = jnp.where(lost & ~plays_on & ~truncated, RESIGNED, checked)
        return Doubt(moves, loser), resign.astype(jnp.int8)


@dataclasses.dataclass(frozen=True)
class Rollout:
    """Self-play of one game by one search and network. Holds no arrays."""

    game: Game
    search: SearchLike | KeepingSearch
    evaluate: Evaluate
    opine: Opine
    moves: int  # T
    random_plies: int
    epsilon: float = 0.0
    giving_up: GivingUp | None = None
    other_start: Callable[[Array], Any] | None = None  # of one state, from a key
    other_fraction: float = 1.0  # the share of games that begin there
    other_plies: int | None = None  # how long they go on; None: to the end

    def start(self, seed: Array, lanes: Array) -> Games:
        """First games for lanes `[B]` (their own numbers)."""
        return self._fresh(seed, jnp.uint32(0), lanes)

    def run(
        self, weights: Weights, games: Games, pace: Pace, seed: Array, first: Array, lanes: Array
    ) -> tuple[Games, Trajectory]:
        """T moves of every lane; `first` is the number of the first of them, uint32, in the life of the run."""
        nothing = self.search.nothing(lanes.shape[0]) if isinstance(self.search, KeepingSearch) else ()

        def move(carry: tuple[Games, Any], number: Array) -> tuple[tuple[Games, Any], Trajectory]:
            return self._move(weights, *carry, pace, seed, number, lanes)

        (games, _), rows = jax.lax.scan(move, (games, nothing), first + jnp.arange(self.moves, dtype=jnp.uint32))
        return games, rows

    def _move(
        self, weights: Weights, games: Games, kept: Any, pace: Pace, seed: Array, number: Array, lanes: Array
    ) -> tuple[tuple[Games, Any], Trajectory]:
        game, states = self.game, games.states
        full, knobs, keys = self.set_out(games, pace, seed, number, lanes)
        if isinstance(self.search, KeepingSearch):
            found, tree = part("search")(self.search.go_on)(kept, self.evaluate, weights, states, keys, knobs)
        else:
            found = part("search")(self.search.run)(self.evaluate, weights, states, keys, knobs)
        opinion = self.opine(weights, jax.vmap(game.observe)(states))
        going, over, drew, row = self.finish(games, found, opinion, full, seed, number, lanes)
        if isinstance(self.search, KeepingSearch):
            kept = part("search")(self.search.follow)(tree, row.action.astype(jnp.int32), drew, ~over)
        return (going, kept), row

    def set_out(self, games: Games, pace: Pace, seed: Array, number: Array, lanes: Array) -> tuple[Array, Any, Array]:
        """Before a move's search: whether it gets the full budget, its knobs, and a key for every lane."""
        full = jax.random.uniform(role_key(seed, Role.BUDGET, number)) < pace.full_search_fraction
        by_lot = games.ply < pace.temperature_plies
        knobs = dataclasses.replace(
            pace.knobs,
            simulations=jnp.where(full, pace.knobs.simulations, pace.fast_simulations),
            temperature=jnp.where(by_lot, pace.knobs.temperature, 0.0),
            gumbel_scale=jnp.where(by_lot, pace.knobs.gumbel_scale, 0.0),
        )
        return full, knobs, lane_keys(seed, Role.SEARCH, number, lanes)

    def finish(
        self, games: Games, found: Any, opinion: Array, full: Array, seed: Array, number: Array, lanes: Array
    ) -> tuple[Games, Array, Array, Trajectory]:
        """After it: the games that go on, those that were over `[B]`, nature's outcomes `[B]`, and the move's row."""
        game, states = self.game, games.states
        at_random, action = games.openings > 0, found.action
        if self.random_plies or self.epsilon:
            any_keys = lane_keys(seed, Role.ACTION, number, lanes)
            drawn = random_actions(game, states, any_keys, games.taste)
            if self.epsilon:
                strays = unit(lane_words(any_keys, 1)[0]) < self.epsilon
                drawn = jnp.where(at_random, drawn, random_actions(game, states, any_keys))
                at_random |= strays
            action = jnp.where(at_random, drawn, action)
        after, drew = act(game, states, action, lane_keys(seed, Role.CHANCE, number, lanes))
        ply = games.ply + 1 + (drew >= 0)
        truncated = ~after.terminated & (ply >= game.spec.max_plies)
        value, ended, points = improved_value(found), after.terminated, after.returns[:, 0]
        doubt, resign = games.doubt, None
        if self.giving_up is not None:
            doubt, resign = self.giving_up.judge(games, value, ended, truncated, points)
            gone = resign == RESIGNED
            ended, truncated = ended | gone, truncated & ~gone
            points = jnp.where(gone, self.giving_up.points * jnp.sign(doubt.moves), points)
        over = ended | truncated
        fingerprint = mix(mix(games.fingerprint, action + 1), drew + 1)
        row = Trajectory(
            state=jax.vmap(game.pack)(states),
            to_play=states.to_play.astype(jnp.int8),
            actions=found.actions,
            policy=found.policy.astype(jnp.float16),
            action=action.astype(jnp.int16),
            opinion=opinion.astype(jnp.float16),
            value=value,
            searched=jnp.broadcast_to(full, at_random.shape),
            random=at_random,
            ended=ended,
            settled=jnp.zeros_like(at_random),
            truncated=truncated,
            points=jnp.where(ended, points, 0.0),
            fingerprint=fingerprint,
            resign=resign,
        )
        going = Games(after, ply, jnp.maximum(games.openings - 1, 0), games.taste, fingerprint, doubt)
        return where_lanes(over, self._fresh(seed, number + 1, lanes), going), over, drew, row

    def _fresh(self, seed: Array, number: Array, lanes: Array) -> Games:
        """A new game in every lane, as it would begin before move `number`."""
        games = begin(self, seed, number, lanes)
        settled, drew = draw(self.game, games.states, lane_keys(seed, Role.OPENING, number, lanes))
        fingerprint = mix(games.fingerprint, drew + 1)
        doubt = None if self.giving_up is None else self.giving_up.none(lanes)
        return replace(games, states=settled, ply=games.ply + (drew >= 0), fingerprint=fingerprint, doubt=doubt)


class Beginning(Protocol):
    """What is needed to begin games: every kind of rollout has it."""

    @property
    def game(self) -> Game:
        """The rules."""

    @property
    def random_plies(self) -> int:
        """Each game begins with 0 to this many random moves."""

    @property
    def other_start(self) -> Callable[[Array], Any] | None:
        """Where a share of the games begins."""

    @property
    def other_fraction(self) -> float:
        """That share."""

    @property
    def other_plies(self) -> int | None:
        """How long those games go on; None: to the end."""


@part("rules")
def begin(of: Beginning, seed: Array, number: Array, lanes: Array) -> Games:
    """A new game in every lane, as it would begin before move `number`; nature has not moved yet."""
    states = jax.vmap(of.game.init)(lane_keys(seed, Role.INIT, number, lanes))
    length, taste, where = lane_words(lane_keys(seed, Role.TASTE, number, lanes), 3)
    ply = jnp.zeros(lanes.shape, jnp.int32)
    if of.other_start is not None:
        elsewhere = unit(where) < of.other_fraction
        others = jax.vmap(of.other_start)(lane_keys(seed, Role.START, number, lanes))
        states = where_lanes(elsewhere, others, states)
        if of.other_plies is not None:
            ply = jnp.where(elsewhere, max(of.game.spec.max_plies - of.other_plies, 0), ply)
    return Games(
        states=states,
        ply=ply,
        openings=(unit(length) * (of.random_plies + 1)).astype(jnp.int32),
        taste=taste,
        fingerprint=jnp.zeros(lanes.shape, jnp.uint32),
    )


def improved_value(found: Any) -> Array:
    """`[B]`: what the search's policy is worth by the search's values, for to_play.

    Nearer to the best move's value than the mean over all visits, which counts the tries of bad moves.
    """
    policy = jnp.where(found.visits > 0, found.policy, 0.0)
    total = policy.sum(-1)
    return jnp.where(total > 0, (policy * found.values).sum(-1) / jnp.maximum(total, 1e-9), found.value)


@part("rules")
def act(game: Game, states: Any, actions: Array, keys: Array) -> tuple[Any, Array]:
    """The decision states `[B]` after actions and nature's answers, and the outcomes drawn (-1 where none was)."""
    return draw(game, jax.vmap(game.apply_action)(states, actions), keys)


@part("rules")
def draw(game: Game, states: Any, keys: Array) -> tuple[Any, Array]:
    """Lets nature move where it is to act: the states, and the outcomes drawn (-1 where none was)."""
    nothing = jnp.full(states.terminated.shape, -1, jnp.int32)
    if game.spec.chance != "explicit":
        return states, nothing
    chances = jnp.log(jax.vmap(game.chance_probs)(states))
    outcomes = jax.vmap(jax.random.categorical)(keys, chances).astype(jnp.int32)
    rolls = states.is_chance & ~states.terminated
    return where_lanes(rolls, jax.vmap(game.apply_chance)(states, outcomes), states), jnp.where(rolls, outcomes, -1)


@part("rules")
def random_actions(game: Game, states: Any, keys: Array, taste: Array | None = None) -> Array:
    """`[B]` int32: legal actions of decision states, uniformly at random.

    With a `taste` `[B]` each lane prefers some actions to others, more or less strongly, and the same ones in all its
    moves: so random play also leads to where one kind of move is made again and again.
    """
    legal = jax.vmap(game.legal_list)(states)
    score = jax.vmap(lambda key: jax.random.gumbel(key, legal.shape[1:]))(keys)
    if taste is not None:
        strength = STRONGEST_TASTE * unit(mix(taste, jnp.uint32(game.spec.num_actions)))
        liking = strength[:, None] * gumbel_noise(taste, game.spec.num_actions)
        score = score + jnp.take_along_axis(liking, jnp.maximum(legal, 0).astype(jnp.int32), -1)
    place = jnp.argmax(jnp.where(legal >= 0, score, -jnp.inf), -1)
    return jnp.take_along_axis(legal, place[:, None], -1)[:, 0].astype(jnp.int32)
