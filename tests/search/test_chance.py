"""Nature's moves: draws that follow the probabilities, expectations that equal exact ones, no clairvoyance."""

from __future__ import annotations

import dataclasses
import functools
import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aleazero.core.game import Game
from aleazero.core.keys import mix
from aleazero.core.records import Evaluate, Prediction
from aleazero.core.struct import replace
from aleazero.doctor.checks import Patient, one_ply_expectimax
from aleazero.doctor.evaluators import OPINIONATED, UNDECIDED, hashed
from aleazero.doctor.recount import recount
from aleazero.games.backgammon.game import Backgammon
from aleazero.games.pig import Pig
from aleazero.search.build import Search, build_search
from aleazero.search.chance import draw
from aleazero.search.settings import SearchConfig, make_knobs
from aleazero.search.tree import Tree
from aleazero.solvers.pig import win_table
from tests.games.backgammon import reference
from tests.games.tiny import Dash, Drift
from tests.search.support import keys, patient, positions, run, states_of

PROBS = np.array([0.5, 0.0, 0.3, 0.15, 0.05], np.float32)


@pytest.mark.parametrize("evenly", [True, False])
@pytest.mark.parametrize("visit", [0, 1, 7])
def test_every_visit_alone_follows_the_probabilities(evenly: bool, visit: int) -> None:
    count = 40000
    words = jax.random.bits(jax.random.key(visit), (count,), jnp.uint32)
    drawn = draw(words, jnp.full(count, visit), jnp.tile(PROBS, (count, 1)), evenly=evenly)
    shares = np.bincount(np.asarray(drawn), minlength=5) / count
    np.testing.assert_allclose(shares, PROBS, atol=0.01)
    assert shares[1] == 0


def test_even_visits_together_follow_the_probabilities_closely() -> None:
    """After n visits each outcome has its share to within two, where independent draws wander by the root of n."""
    visits = 400
    far = {}
    for evenly in (True, False):
        words = mix(jnp.uint32(5), jnp.arange(64, dtype=jnp.uint32))
        once = functools.partial(draw, words, probs=jnp.tile(PROBS, (64, 1)), evenly=evenly)
        drawn = np.asarray(jax.jit(jax.vmap(lambda visit, once=once: once(jnp.full(64, visit))))(jnp.arange(visits)))
        counts = np.stack([(drawn == outcome).cumsum(0) for outcome in range(5)], -1)  # [visits, lanes, outcomes]
        expected = np.arange(1, visits + 1)[:, None, None] * PROBS
        far[evenly] = np.abs(counts - expected).max()
    assert far[True] <= 3
    assert far[False] > 10


@pytest.mark.slow
def test_exact_values_equal_expectimax() -> None:
    states = states_of("pig", "10-20+5 1", "40-90+8 2", "95-98+2 1", "0-0+3 2")
    game, evaluate = patient("pig").game, patient("pig").evaluate
    legal = np.asarray(jax.jit(jax.vmap(game.legal_list))(states))
    result = run("pig", states, 2, chance="exact", exploration=1e6, loudness=UNDECIDED)
    assert (np.asarray(result.visits)[:, :2] == 1).all()
    expected = one_ply_expectimax(game, evaluate, states, legal)
    np.testing.assert_allclose(np.asarray(result.values)[:, :2], expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("chance", ["sampled", pytest.param("exact", marks=pytest.mark.long)])
def test_with_perfect_values_pig_is_played_perfectly(chance: Any) -> None:
    """An evaluator that knows the truth: the search agrees with it, who acts next depending on the die."""
    from aleazero.solvers.pig import solve, solve_moves

    table = jnp.asarray(win_table(), jnp.float32)

    def knows(weights: object, seen: jax.Array) -> Prediction:
        mine, yours, turn = (jnp.round(100 * seen[:, i]).astype(jnp.int32) for i in range(3))
        value = 2 * table[jnp.minimum(mine, 99), jnp.minimum(yours, 99), jnp.minimum(turn, 105)] - 1
        return Prediction(jnp.zeros((seen.shape[0], 2)), value)

    mine, yours, turn = np.meshgrid([0, 30, 60, 80, 95], [0, 40, 90], [8, 15, 20, 25, 30], indexing="ij")
    mine, yours, turn = mine.ravel(), yours.ravel(), turn.ravel()
    keep = mine + turn < 100
    mine, yours, turn = mine[keep], yours[keep], turn[keep]
    states = states_of("pig", *[f"{a}-{b}+{c} 1" for a, b, c in zip(mine, yours, turn, strict=True)])
    config = SearchConfig(max_simulations=400, chance=chance)
    search = build_search(patient("pig").game, config)
    # Actions often differ by a few hundredths: more exploration than that would average over bad play. Single draws
    # are noisier than that, so that sampled chance needs more of it than exact chance does.
    knobs = make_knobs(config, exploration=0.1 if chance == "exact" else 0.3)
    result = jax.jit(lambda s, k: search.run(knows, (), s, k, knobs))(states, keys(len(mine)))
    values = solve_moves(mine, yours, turn)
    lost = values.max(-1) - values[np.arange(len(mine)), np.asarray(result.action)]
    assert lost.max() < (0.02 if chance == "exact" else 0.05), lost
    assert lost.mean() < 0.005, lost.mean()
    best = np.asarray(result.values)[np.arange(len(mine)), np.asarray(result.edge)]
    assert np.abs(best - solve(mine, yours, turn)).mean() < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("name", ["drift", pytest.param("pgx:backgammon", marks=pytest.mark.long)])
def test_a_search_never_sees_the_dice_to_come(name: str) -> None:
    """Where chance is sampled, what the game will really roll leaves no trace in the search."""
    who = Patient(Drift()) if name == "drift" else patient(name)
    states, reseed = who.positions(who.decides, "none", 8), jax.jit(jax.vmap(who.game.reseed))
    fortunes = [reseed(states, keys(8, seed)) for seed in (1, 2)]
    first, second = (who.run(s, 48)[2] for s in fortunes)
    np.testing.assert_array_equal(first.visits, second.visits)
    np.testing.assert_array_equal(first.value, second.value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gumbel", pytest.param("puct", marks=pytest.mark.long)])
def test_afterstates_can_be_evaluated_themselves(kind: Any) -> None:
    """Where networks may judge chance states, a new one is a leaf of its own: one node, one evaluation."""

    class JudgedPig(Pig):
        spec = dataclasses.replace(Pig.spec, afterstate_values=True)

    game = JudgedPig()
    config, evaluate = SearchConfig(kind=kind, max_simulations=64, chance="afterstate"), hashed(game)
    search, tree = grown(game, config, evaluate, positions("pig"))
    assert search.plan.slabs == 1
    assert recount(search.plan, tree, evaluate, OPINIONATED) == []
    assert (np.asarray(tree.turn)[1:65] == 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("chance", [pytest.param("sampled", marks=pytest.mark.long), "afterstate"])
def test_networks_judge_chance_states_only_where_that_is_asked(chance: Any) -> None:
    """Backgammon, whose networks may: this evaluator says 0.99 of every chance state, and of nothing else."""
    game, rng = Backgammon(), random.Random(1)
    states = reference.states([reference.drawn(rng, "anywhere") for _ in range(8)], reference.rolls(rng, 8))
    plain, one = hashed(game), jax.tree.map(lambda x: np.asarray(x[0]), states)
    rolling, observe = replace(one, is_chance=np.bool_(True)), jax.jit(game.observe)
    (is_chance,) = np.flatnonzero(np.asarray(observe(one)) != np.asarray(observe(rolling)))

    def evaluate(weights: Array, seen: Array) -> Prediction:
        found = plain(weights, seen)
        return Prediction(found.logits, jnp.where(seen[:, is_chance] > 0, 0.99, 0.5 * found.value))

    config = SearchConfig(max_simulations=40, chance=chance, max_edges=4)
    search, tree = grown(game, config, evaluate, states)
    assert (search.plan.num_outcomes, search.plan.num_edges) == (21, 21)  # and not the opening's thirty
    turn, raw, live = (np.asarray(x) for x in (tree.turn, tree.raw, tree.lineage.any(-1)))
    assert (live & (turn == 0)).sum() > 40
    judged = np.isclose(np.abs(raw), 0.99)
    np.testing.assert_array_equal(judged, live & (turn == 0) & (chance == "afterstate"))
    if chance == "sampled":
        assert recount(search.plan, tree, evaluate, OPINIONATED) == []


class OddStart(Dash):
    """Dash whose first roll has two outcomes of its own, as backgammon's has fifteen."""

    kind = "odd start"
    spec = dataclasses.replace(Dash.spec, num_chance_outcomes=4)
    num_later_outcomes = 2

    def chance_probs(self, state: Any) -> Array:
        first = (state.die == 0)[None]
        return jnp.where(first, jnp.array([0.0, 0.0, 0.5, 0.5]), jnp.array([0.75, 0.25, 0.0, 0.0]))

    def apply_chance(self, state: Any, outcome: Array) -> Any:
        return super().apply_chance(state, outcome % 2)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"chance": "exact"}, {"chance_draw": "random"}], ids=["exact", "random draws"])
def test_outcomes_of_a_first_roll_take_no_room_in_a_tree(settings: Any) -> None:
    """Nor do they where chance is sampled, here by independent draws: then too the books are kept."""
    game = OddStart()
    first = jax.jit(jax.vmap(lambda key, outcome: game.apply_chance(game.init(key), outcome)))
    states = first(keys(4), jnp.array([2, 3, 2, 3]))
    search, tree = grown(game, SearchConfig(max_simulations=40, **settings), hashed(game), states)
    assert search.plan.num_edges == 2
    assert recount(search.plan, tree, hashed(game), OPINIONATED) == []
    assert (np.asarray(tree.turn)[np.asarray(tree.lineage.any(-1))] == 0).sum() > 20


def grown(game: Game, config: SearchConfig, evaluate: Evaluate, states: Any) -> tuple[Search, Tree]:
    search, knobs = build_search(game, config), make_knobs(config)
    grow = jax.jit(
        lambda s, k: search.grow(evaluate, OPINIONATED, search.plant(evaluate, OPINIONATED, s, k, knobs), knobs)
    )
    return search, grow(states, keys(states.to_play.shape[0]))


@pytest.mark.slow
def test_above_a_chance_node_the_expectation_is_passed_on() -> None:
    """The second visit ends in one outcome, but the root is told what all of them are worth together."""
    states = states_of("pig", "0-0+0 1", "30-40+0 2", "95-10+0 1")
    one, two = (run("pig", states, budget, chance="exact") for budget in (1, 2))
    expected = np.asarray(one.values)[:, 0]
    np.testing.assert_allclose(np.asarray(two.values)[:, 0], expected, atol=1e-5)
    np.testing.assert_allclose(3 * np.asarray(two.value) - 2 * np.asarray(one.value), expected, atol=1e-5)
