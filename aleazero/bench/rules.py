"""Random play by the rules alone: how fast it goes, and positions from the middle of games for the other kinds.

A step is one action of a player, drawn uniformly from the legal ones. Nature's answer, and the first state of the next
game where one ends, belong to the step. Draws are cheap hashes of (lane, step), the same for us and for our peers, so
that the rules are timed and not a generator of random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.bench import peers, spiel
from aleazero.bench.cases import Case, Cases, Kind, Setup, number_of, steps_per_call
from aleazero.bench.memory import bytes_of
from aleazero.bench.timing import Timing
from aleazero.core.game import Game
from aleazero.core.keys import Role, lane_keys, mix, unit
from aleazero.core.struct import struct, where_lanes

MIDDLE = 40  # random steps before positions are taken
_ACTION, _OUTCOME, _STREAM = 1, 2, 3  # counters of a lane's draws in one step
_LOW_BITS = (1 << 15) - 1  # actions are int16


@struct
class Lanes:
    """Games in flight, and what has happened in them."""

    states: Any  # [B], decision states
    games: Array  # [B] int32: games ended
    draws: Array  # [B] int32: chance outcomes drawn


def draw_action(legal: Array, words: Array) -> Array:
    """`[B]` int32: one of the legal actions in each list `[B, K]`, from words `[B]`.

    Each gets a random number of 17 bits and the greatest wins, in one pass. Of equal numbers the higher action wins,
    which happens once in thousands of draws.
    """
    places = jnp.arange(legal.shape[-1], dtype=jnp.uint32)
    lots = mix(words[:, None], places[None]) & jnp.uint32(~_LOW_BITS & 0xFFFFFFFF)
    ranked = jnp.where(legal >= 0, lots | legal.astype(jnp.uint32), 0)
    return (ranked.max(-1) & _LOW_BITS).astype(jnp.int32)


def draw_outcome(probs: Array, words: Array) -> Array:
    """`[B]` int32: chance outcomes by their probabilities `[B, C]`, from words `[B]`."""
    triangle = jnp.asarray(np.triu(np.ones((probs.shape[-1],) * 2, np.float32)))
    upto = jnp.matmul(probs, triangle, precision=jax.lax.Precision.HIGHEST)  # fewer bits would load the dice
    return (upto <= unit(words)[:, None] * upto[:, -1:]).sum(-1, dtype=jnp.int32)


def begin(game: Game, numbers: Array) -> Lanes:
    """First decision states of lanes `[B]` uint32."""
    states = _settle(game, _first(game, numbers), mix(numbers, jnp.uint32(0)))[0]
    return Lanes(states, jnp.zeros(numbers.shape, jnp.int32), jnp.zeros(numbers.shape, jnp.int32))


def play(game: Game, lanes: Lanes, numbers: Array, first: Array, steps: int) -> Lanes:
    """`steps` random steps of every lane; `first` is the number of the first of them, uint32."""
    first_states = _first(game, numbers)

    def step(lanes: Lanes, number: Array) -> tuple[Lanes, None]:
        words = mix(numbers, number)
        fresh = _other_dice(game, first_states, words)
        action = draw_action(jax.vmap(game.legal_list)(lanes.states), mix(words, jnp.uint32(_ACTION)))
        after = jax.vmap(game.apply_action)(lanes.states, action)
        over = after.terminated
        states, drew = _settle(game, where_lanes(over, fresh, after), mix(words, jnp.uint32(_OUTCOME)))
        return Lanes(states, lanes.games + over, lanes.draws + drew), None

    return jax.lax.scan(step, lanes, first + jnp.arange(steps, dtype=jnp.uint32))[0]


def middle_game(game: Game, batch: int, seed: int = 0) -> Any:
    """Decision states `[B]` some way into games of random play."""
    numbers = mix(jnp.uint32(seed), jnp.arange(batch, dtype=jnp.uint32))

    def wander(numbers: Array) -> Any:
        return play(game, begin(game, numbers), numbers, jnp.uint32(1), MIDDLE).states

    return jax.jit(wander)(numbers)


def _first(game: Game, numbers: Array) -> Any:
    return jax.vmap(game.init)(lane_keys(0, Role.INIT, 0, numbers))


def _other_dice(game: Game, states: Any, words: Array) -> Any:
    """First states whose random streams are no other game's, where the rules draw from one."""
    if game.spec.chance != "sampled":
        return states
    data = jnp.stack([mix(words, jnp.uint32(counter)) for counter in (_STREAM, _STREAM + 1)], -1)
    return jax.vmap(game.reseed)(states, jax.random.wrap_key_data(data))


def _settle(game: Game, states: Any, words: Array) -> tuple[Any, Array]:
    """States after nature has moved where it is to, and where it did."""
    if game.spec.chance != "explicit":
        return states, jnp.zeros(words.shape, bool)
    outcomes = draw_outcome(jax.vmap(game.chance_probs)(states), words)
    drawn = states.is_chance
    return where_lanes(drawn, jax.vmap(game.apply_chance)(states, outcomes), states), drawn


class Playing:
    """Random play that goes on from call to call."""

    def __init__(self, setup: Setup, name: str, carry: Any, play: Callable[[Any, Array, int], Any], batch: int) -> None:
        """`play(carry, first, steps)` makes so many steps; `carry.games` counts the games that have ended."""
        self.steps, self.calls = steps_per_call(batch), 0
        self.carry = carry
        steps = self.steps

        def some(carry: Any, first: Array) -> Any:
            return play(carry, first, steps)

        self.program = setup.compile(f"batch {batch} ({name})", some, carry, number_of(0), donate=(0,))

    def call(self, number: int) -> Any:
        """The next steps."""
        self.carry = self.program.run(self.carry, number_of(self.calls * self.steps))
        self.calls += 1
        return self.carry.games


def _build(setup: Setup, batch: int) -> Cases:
    game = setup.game
    setup.room.check(f"batch {batch}", 2 * batch * bytes_of(game.state_like))
    numbers = jnp.arange(batch, dtype=jnp.uint32)
    ours = Playing(
        setup,
        "ours",
        jax.jit(lambda numbers: begin(game, numbers))(numbers),
        lambda carry, first, steps: play(game, carry, numbers, first, steps),
        batch,
    )
    peer = setup.options.compare
    cases = [Case("ours", "steps", ours.steps * batch, ours.call, ours.program.seconds, peer=peer)]
    if peer == "pgx":
        theirs = Playing(setup, peer, *peers.pgx_play(game.spec.name, numbers, draw_action), batch)
        cases.append(Case(peer, "steps", theirs.steps * batch, theirs.call, theirs.program.seconds))
    elif peer == "open_spiel":
        cases.append(spiel.random_play(game.spec.name))

    def facts(timings: Mapping[str, Timing]) -> dict[str, float]:
        made = ours.calls * ours.steps * batch
        draws, ended = (int(np.asarray(x, np.int64).sum()) for x in (ours.carry.draws, ours.carry.games))
        found = {"draws_per_step": draws / made} if game.spec.chance == "explicit" else {}
        return found | ({"steps_per_game": made / ended} if ended else {})

    return Cases(tuple(cases), facts)


def _misfit(setup: Setup) -> str | None:
    if setup.options.compare == "pgx":
        peers.need("pgx")
        return peers.no_twin(setup.game.spec.name)
    if setup.options.compare == "open_spiel":
        spiel.need()
        return spiel.no_such_game(setup.game.spec.name)
    return None


GAME_ENV = Kind(
    name="game-env",
    measures="the rules alone: random actions, games that end begin anew",
    counted="a step is one action of a player, drawn uniformly, with nature's answer and the next game's first state",
    takes=(),
    peers=("pgx", "open_spiel"),
    default_sizes=lambda setup: (256, 1024) if jax.default_backend() == "cpu" else (1024, 8192),
    misfit=_misfit,
    build=_build,
)
