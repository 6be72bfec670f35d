"""Trains tic-tac-toe from nothing but its rules, in one file: read this first.

    python examples/train_tictactoe.py            about a minute on two cores
    python examples/train_tictactoe.py --help

It joins the package's parts by hand, in the order in which a position travels:

    game -> network -> search -> self-play -> targets -> replay -> update -> back to self-play
                                                                          -> a match against the exact solver

`alea train tictactoe --preset quick` joins the same parts (`aleazero/assemble.py`) and adds what a real run needs:
settings, checkpoints, resuming, reports, alarms, several devices. Nothing of that is here.

Axes in comments: B games played side by side, T moves of a rollout, n positions.
"""

from __future__ import annotations

import argparse
import functools
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.compilation import set_up_compiling
from aleazero.core.keys import Role, role_key
from aleazero.core.opinions import expected_value
from aleazero.core.records import Trajectory, Weights
from aleazero.core.schedule import Schedule
from aleazero.games.tictactoe import TicTacToe
from aleazero.learn.losses import LossConfig, make_batch, make_loss
from aleazero.learn.targets import Span, TargetConfig, Targets, opinions, value_targets
from aleazero.learn.update import LearnConfig, LearnerState, UpdateStats, make_update
from aleazero.learn.update import start as start_learning
from aleazero.models.build import ModelConfig, build_model
from aleazero.play.match import play_match
from aleazero.play.ratings import results_from_points, tally
from aleazero.play.rollout import Games, Pace, Rollout
from aleazero.players import NetworkPlayer, make_player
from aleazero.rate import Positions, solved_positions
from aleazero.replay import ring as rings
from aleazero.replay.ring import ReplayConfig, Ring
from aleazero.search.build import build_search
from aleazero.search.settings import SearchConfig, make_knobs

# ---- 1. The game
#
# Rules are pure functions of one state: `init`, `legal_list`, `apply_action`, `observe`, `pack`. A batch of games is
# the same functions under `jax.vmap`. The spec holds the facts that everything else is built from: 9 actions, at most
# 9 plies, and three ways to end (win, draw, loss) with their points.

GAME = TicTacToe()
SPEC = GAME.spec

# ---- 2. The network
#
# A residual MLP that sees a board from the side of the player to move. It has two heads: a logit for every action, and
# a distribution over the three outcomes. A model holds no weights; they are arguments of every function that uses them.

MODEL = build_model(ModelConfig(kind="mlp", width=128, blocks=2), SPEC)

# ---- 3. The search
#
# It looks at 16 positions ahead, with the network as their judge, and returns a move and an improved policy. This is
# the teacher: the network learns to say at once what the search found out by looking. Gumbel's rule makes good policies
# of few simulations. A config gives the compiled program its shape; knobs are numbers that may change at any time.

SEARCH = SearchConfig(kind="gumbel", max_simulations=16)

# ---- 4. Self-play
#
# B games at once, T moves of each in one call: everything below `Rollout.run` is one compiled program, and a game that
# ends makes room for the next. Each game opens with 0 to 4 random moves. Two players who always play well would only
# ever show each other a few games, and learn nothing of the positions where mistakes lead.

B, T = 128, 9
ROLLOUT = Rollout(
    game=GAME,
    search=build_search(GAME, SEARCH),
    evaluate=MODEL.evaluate,  # what the search asks: logits and an expected value
    opine=MODEL.opinion,  # what is recorded for the targets: the distribution over outcomes
    moves=T,
    random_plies=4,
)
LANES = jnp.arange(B, dtype=jnp.uint32)  # the games' own numbers: their randomness is named by them


def pace() -> Pace:
    """The knobs of self-play: every move gets the whole budget. (A real run may vary all of these as it goes on.)"""
    return Pace(
        knobs=make_knobs(SEARCH, temperature=1.0),
        fast_simulations=jnp.int32(SEARCH.max_simulations),
        full_search_fraction=jnp.float32(1.0),
        temperature_plies=jnp.int32(SPEC.max_plies),
    )


@functools.partial(jax.jit, donate_argnums=1)  # the games before these moves are not needed any more
def play(weights: Weights, games: Games, seed: Array, first: Array) -> tuple[Games, Trajectory]:
    """T moves of every game; `first` is the number of the first of them in the life of this program."""
    return ROLLOUT.run(weights, games, pace(), seed, first, LANES)


# ---- 5. Targets and replay
#
# A trajectory `[T, B]` is raw: packed states, the search's policies, and how games ended. What the value head should
# have said in a position is only known when its game is over: here simply the outcome, seen by the player who was to
# move. The ring holds the newest slabs of T x B rows. It writes targets when a slab with the end of a game comes in, up
# to REACH slabs back; rows of games that are not over yet wait, and cannot be drawn.

TARGETS = TargetConfig(td_lambda=1.0)
REPLAY = ReplayConfig(capacity_rows=40_000)  # small, so that what the first, ignorant networks played is soon forgotten
SLABS = REPLAY.capacity_rows // (T * B)
REACH = -(-SPEC.max_plies // T) + 1  # how many slabs the longest game can lie across


def make_targets(span: dict[str, Array]) -> Targets:
    """Value targets for the last REACH slabs, joined to one span of moves."""
    return value_targets(SPEC, TARGETS, Span(**span))


@functools.partial(jax.jit, donate_argnums=0)  # so the ring is written in place and never copied
def remember(ring: Ring, slab: Trajectory, slot: Array) -> Ring:
    """Writes a slab over the oldest one, and the targets of all games that ended in it."""
    slots = (slot + 1 - REACH + jnp.arange(REACH)) % SLABS  # of the slabs its games lie across, this one last
    predicted = expected_value(SPEC, slab.opinion.astype(jnp.float32))
    thought = opinions(SPEC, TARGETS, slab.opinion, slab.value)  # only of use where td_lambda is below 1
    return rings.insert(ring, slab, thought, predicted, slots, make_targets)


# ---- 6. Learning
#
# Cross-entropy with the search's policy and with the outcome; AdamW; and a moving average of the weights, which is what
# plays. Rows are turned by a random symmetry of the board after they are drawn: one position teaches eight (and with
# the seats swapped, sixteen). Every row played is drawn about four times before it is overwritten; with many more the
# network would learn these games by heart, and not the game.

LEARN = LearnConfig(batch_size=256, ema=0.98)
ROWS_PER_NEW_ROW = 4
UPDATES = ROWS_PER_NEW_ROW * T * B // LEARN.batch_size  # for each slab that comes in: 18
RATE = Schedule(start=2e-3, end=1e-4, shape="cosine")  # schedules count rows, never seconds

UPDATE = make_update(
    LEARN,
    make_loss(GAME, LossConfig(), MODEL.apply),
    prepare=functools.partial(make_batch, GAME, augment=True),  # unpacks states, turns them, makes observations
)


@functools.partial(jax.jit, donate_argnums=0)
def learn(
    state: LearnerState, ring: Ring, newest: Array, held: Array, rate: Array, seed: Array, first: Array
) -> tuple[LearnerState, UpdateStats]:
    """UPDATES batches, drawn uniformly from the `held` slabs that end with slot `newest`, an update each."""

    def one(state: LearnerState, number: Array) -> tuple[LearnerState, UpdateStats]:
        rows = rings.draw(ring, REPLAY, LEARN.batch_size, seed, number, newest, held)
        return UPDATE(state, rows, rate, role_key(seed, Role.AUGMENT, number))

    return jax.lax.scan(one, state, first + jnp.arange(UPDATES, dtype=jnp.uint32))


# ---- 7. Measuring
#
# Loss curves prove little: a network can agree with a search that is wrong. Tic-tac-toe is solved, so the truth is at
# hand. The solver shares no code with the rules, so one also tests the other.


@jax.jit
def raw_moves(weights: Weights, states: Any) -> Array:
    """`[n]`: the network's own first choice among the legal actions, without any search."""
    logits = MODEL.evaluate(weights, jax.vmap(GAME.observe)(states)).logits
    legal = jax.vmap(GAME.legal_list)(states)  # in this game every action has its own place; -1 where it is illegal
    return jnp.where(legal >= 0, logits, -jnp.inf).argmax(-1)


def optimal_share(weights: Weights, positions: Positions) -> float:
    """Of all positions that play can reach: how often the raw move is worth as much as the best one."""
    moves = np.asarray(raw_moves(weights, positions.states))
    worth = np.take_along_axis(positions.values, moves[:, None], -1)[:, 0]
    return float((worth == np.nanmax(positions.values, -1)).mean())


def against_the_solver(weights: Weights, games: int, seed: int) -> str:
    """The network with its search against perfect play, every opening from both seats. A perfect result: no loss."""
    player = NetworkPlayer(GAME, MODEL, weights, SEARCH, "trained")
    result = play_match(GAME, player, make_player("solver", GAME), pairs=games // 2, seed=seed)
    count = tally(results_from_points(result.points))
    return f"{count.wins} won, {count.draws} drawn, {count.losses} lost"


# ---- 8. The loop


def train(iterations: int, seed_number: int, positions: Positions) -> Weights:
    """Plays, remembers and learns in turn; returns the weights that play."""
    seed = jnp.uint32(seed_number)
    games = jax.jit(ROLLOUT.start)(seed, LANES)
    state = start_learning(LEARN, MODEL.init(role_key(seed, Role.WEIGHTS)))
    slab_shapes = jax.eval_shape(play, state.average, games, seed, jnp.uint32(0))[1]  # traced, not run
    ring = rings.make_ring(slab_shapes, SLABS)
    began = time.perf_counter()
    print("iteration     rows  policy loss  value loss  optimal raw moves  seconds")
    for iteration in range(iterations):
        # Play. Randomness is named (seed, purpose, move, game), never chained, so nothing else could change it.
        games, slab = play(state.average, games, seed, jnp.uint32(iteration * T))

        # Remember. The ring is a circle of slots: the newest slab takes the place of the oldest.
        slot = jnp.int32(iteration % SLABS)
        ring = remember(ring, slab, slot)

        # Learn. The learning rate is an argument: a schedule never compiles anything anew.
        held = jnp.int32(min(iteration + 1, SLABS))
        rate = jnp.float32(RATE.at(iteration, iterations))
        state, stats = learn(state, ring, slot, held, rate, seed, jnp.uint32(iteration * UPDATES))

        # Look, now and then: what is fetched from the device makes the program wait for it.
        if iteration % 10 == 0 or iteration == iterations - 1:
            terms = {name: float(values.mean()) for name, values in stats.measures.terms.items()}
            share = optimal_share(state.average, positions)
            print(
                f"{iteration:9}  {(iteration + 1) * T * B:7,}  {terms['policy']:11.3f}  {terms['value']:10.3f}"
                f"  {share:17.2%}  {time.perf_counter() - began:7.1f}",
                flush=True,
            )
    return state.average


def main() -> None:
    """Trains and measures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--iterations", type=int, default=130, help=f"each plays {T * B} rows (default: 130)")
    parser.add_argument("--games", type=int, default=1000, help="against the solver (default: 1000)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.iterations < 1 or given.games < 2 or not 0 <= given.seed < 2**32:
        parser.error("iterations must be at least 1, games at least 2, and the seed in 0..4294967295")
    set_up_compiling()  # the second start compiles nothing
    positions = solved_positions(GAME)
    weights = train(given.iterations, given.seed, positions)
    count = len(positions.values)
    print(f"against the exact solver: {against_the_solver(weights, given.games, given.seed)}")
    print(f"optimal raw moves: {optimal_share(weights, positions):.2%} of {count} positions")


if __name__ == "__main__":
    main()
