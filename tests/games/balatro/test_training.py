"""What training asks of Balatro: views, measures, teachers, seeds apart; networks that fit the game."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.assemble_ppo import build_ppo_parts
from aleazero.config import resolve
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.games.balatro import actions, embedding, entities, layout, observe
from aleazero.games.balatro.engine import Batch, EngineError, seed_rows, seed_text
from aleazero.games.balatro.game import Balatro
from aleazero.host_players import host_game
from aleazero.models import balatro as networks
from aleazero.models.build import ModelConfig, build_model
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")

SEEDS = np.array([3, 2**63 + 5], np.uint64)


def seeds_of(batch: Batch) -> list[str]:
    return [bytes(g.seed[: int(g.seed_length)].astype(np.uint8)).decode() for g in batch.states]


def test_training_and_rating_have_no_seed_in_common():
    game = Balatro()
    assert [len(seed) for seed in seeds_of(game.init_batch(SEEDS))] == [8, 8]
    assert [len(seed) for seed in seeds_of(game.for_practice().init_batch(SEEDS))] == [7, 7]
    parts = build_ppo_parts(resolve("balatro", preset="classic", environ={}))
    assert (parts.game.seed_length, parts.rollout.game.seed_length) == (8, 7)


def test_networks_know_the_games_ranges_and_rows():
    table = [(name, last - first + 1) for name, first, last, _ in actions.action_table()]
    assert table[:2] == [("play", len(networks.SUBSETS)), ("discard", len(networks.SUBSETS))]
    assert [(name, count) for name, count, _, _ in networks.ACTIONS] == table[2:]
    places = [[int(mask) >> i & 1 for i in range(8)] for mask in actions.SUBSETS]
    np.testing.assert_array_equal(networks.SUBSETS, places)
    assert {name: entities.shape_of(name) for name in entities.ENTITIES} == networks.ROWS
    assert {
        "balatro": Balatro().spec.observation_shape[0],
        "balatro_rows": Balatro(rows=True).spec.observation_shape[0],
    } == networks.INPUTS
    for name, kinds in networks.KINDS.items():
        columns = entities.ENTITIES[name][1]
        assert len(kinds) == len(columns)
        for kind, (_, least, most) in zip(kinds, columns, strict=True):
            assert not kind or (least, kind) == (0, most + 1)


def test_rows_are_the_table_and_then_every_things_row():
    game = Balatro(rows=True)
    states = game.step_batch(game.init_batch(SEEDS), np.full(2, actions.A_SELECT_BLIND))
    seen = game.observe(states)
    whole = observe.observe_batch(states)["game_state"]
    np.testing.assert_array_equal(seen[:, :50], whole)
    hand = seen[:, 50 : 50 + 24 * 11].reshape(2, 24, 11)
    np.testing.assert_array_equal(hand[:, :, 0].sum(1), states.states["hand_count"])
    assert game.seen_by("balatro_rows") is game
    assert game.seen_by("balatro").spec.observation_shape == (1458,)


@functools.cache
def network(kind):
    """A network's program, its weights, and what it sees in two games when the first blind begins."""
    game = host_game("balatro", kind)
    model = build_model(ModelConfig(kind=kind, width=16, blocks=1, value="twohot"), game.spec)
    seen = game.observe(game.step_batch(game.init_batch(SEEDS), np.full(2, actions.A_SELECT_BLIND)))
    return jax.jit(model.evaluate), jax.jit(model.init)(jax.random.key(0)), np.asarray(seen)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["balatro", "balatro_rows"])
def test_networks_speak_of_every_action(kind):
    evaluate, weights, seen = network(kind)
    found = jax.device_get(evaluate(weights, seen))
    assert found.logits.shape == (2, 1000)
    assert np.isfinite(found.logits).all()
    assert (np.abs(found.value) < 5).all()


def test_a_card_counts_wherever_it_lies():
    """What plays are worth follows cards when two change places, but for what a place itself is worth."""
    evaluate, weights, seen = network("balatro_rows")
    weights = weights | {"hand_place": jnp.zeros_like(weights["hand_place"])}
    seen = seen[:1]
    hand = seen[:, 50 : 50 + 24 * 11].reshape(1, 24, 11).copy()
    hand[:, [0, 3]] = hand[:, [3, 0]]
    subset = {tuple(row): i for i, row in enumerate(networks.SUBSETS.astype(int))}
    swapped = networks.SUBSETS.astype(int).copy()
    swapped[:, [0, 3]] = swapped[:, [3, 0]]
    moved = [subset[tuple(row)] for row in swapped]
    promised = seen[:, -2 * len(moved) :].reshape(1, 2, -1)[:, :, np.argsort(moved)].reshape(1, -1)
    kept = seen[:, 50 + 24 * 11 : -2 * len(moved)]
    other = np.concatenate([seen[:, :50], hand.reshape(1, -1), kept, promised], 1)
    one, two = np.asarray(evaluate(weights, np.concatenate([seen, other])).logits)
    np.testing.assert_allclose(two[moved], one[: len(moved)], atol=1e-5)
    assert np.abs(one[:8] - one[0]).max() > 1e-6


def test_a_graphs_numbers_are_zeros_without_a_graph():
    spec = Balatro().spec
    wide = build_model(ModelConfig(kind="balatro", width=16, graph_width=4, value="twohot"), spec)
    seen = jnp.ones((1, 1458))
    weights = jax.jit(wide.init)(jax.random.key(0))
    assert weights["trunk_0"]["kernel"].shape[0] == 128 + 256 + 50 + 4
    told = build_model(
        ModelConfig(kind="balatro", width=16, graph_width=4, graph="graph", value="twohot"), Balatro(graph="graph").spec
    )
    silent = wide.apply(weights, seen).logits
    for places, heard in ((slice(0), False), (slice(4), True), (slice(4, 128), False)):
        numbers = jnp.zeros((1, 128)).at[:, places].set(1.0)
        said = told.apply(weights, jnp.concatenate([seen, numbers], 1)).logits
        assert bool((said != silent).any()) is heard
    with pytest.raises(ConfigError, match="graph_width"):
        build_model(ModelConfig(kind="mlp", graph_width=4, value="twohot"), spec)


def test_a_graphs_numbers_follow_the_observation():
    plain = Balatro()
    batch = plain.init_batch(SEEDS)
    batch.states["joker"][0, 0], batch.states["joker_count"][0] = 3, 1
    for kind in ("graph", "permuted", "random"):
        game = host_game("balatro", "balatro", kind)
        assert game.spec.observation_shape == (1458 + 128,)
        assert game.for_practice().spec.observation_shape == (1458 + 128,)
        seen = game.observe(batch)
        np.testing.assert_array_equal(seen[:, :1458], plain.observe(batch))
        np.testing.assert_allclose(seen[0, 1458:], embedding.table(kind)[3], rtol=1e-6)
        assert not seen[1, 1458:].any()
        config = ModelConfig(kind="balatro", width=16, graph_width=128, graph=kind, value="twohot")
        model = build_model(config, game.spec)
        assert jax.eval_shape(model.init, jax.random.key(0))["trunk_0"]["kernel"].shape[0] == 128 + 256 + 50 + 128
        with pytest.raises(ConfigError, match="1458"):
            build_model(dataclasses.replace(config, graph="none"), game.spec)
    with pytest.raises(ConfigError, match="graph_width = 128"):
        build_model(ModelConfig(kind="balatro", graph="graph", value="twohot"), game.spec)


def test_measures_and_lanes():
    game = Balatro()
    states = game.step_batch(game.init_batch(SEEDS), np.full(2, actions.A_SELECT_BLIND))
    found = game.measures(states)
    assert found["ante"].tolist() == [1, 1]
    assert found["progress"].tolist() == [0, 0]
    played = game.step_batch(states, np.array([0, 0]))
    assert (game.measures(played)["progress"] > 0).all()
    both = game.put(states, np.array([1]), game.take(played, np.array([0])))
    assert game.snapshot(both) == [game.snapshot(states)[0], game.snapshot(played)[0]]
    np.testing.assert_array_equal(game.legal_actions(both)[1], game.legal_actions(played)[0])
    again = game.take(played, np.array([1, 1, 0]))
    assert game.snapshot(again) == [game.snapshot(played)[i] for i in (1, 1, 0)]


def test_a_run_that_needs_more_room_than_there_is_ends():
    """Training goes on with another; an action that is not legal is still an error."""
    game = Balatro(rows=True)
    full, chosen = game.init_batch(SEEDS), np.full(2, actions.A_SELECT_BLIND)
    full.states["stream_key"][1] = 10**9  # all in use: the deck cannot be shuffled
    after = game.step_batch(full, chosen)
    assert after.states["error"].tolist() == [0, layout.ERR_STREAMS]
    assert game.status(after).terminated.tolist() == [False, True]
    assert game.legal_actions(after).any(1).tolist() == [True, False]
    assert game.status(game.restore(game.snapshot(after))).terminated.tolist() == [False, True]
    new = game.renew(after, np.array([1]), SEEDS[:1])
    assert game.status(new).terminated.tolist() == [False, False]
    with pytest.raises(EngineError, match="not legal"):
        game.step_batch(new, np.array([999, 999]))


def test_what_is_seen_can_be_written_where_it_is_wanted():
    for game in (Balatro(rows=True), Balatro()):
        states = game.step_batch(game.init_batch(SEEDS), np.full(2, actions.A_SELECT_BLIND))
        room = np.full((4, *game.spec.observation_shape), 7, np.float32)
        game.observe_into(states, room[1:3])
        np.testing.assert_array_equal(room[1:3], game.observe(states))
        assert (room[[0, 3]] == 7).all()


def test_teachers_choose_what_is_legal_and_the_same_again():
    game = Balatro()
    states = game.init_batch(SEEDS)
    choose = game.teacher("greedy")
    for word in range(4):
        chosen = choose(states, word)
        np.testing.assert_array_equal(chosen, choose(states, word))
        assert game.legal_actions(states)[np.arange(2), chosen].all()
        states = game.step_batch(states, chosen)
    with pytest.raises(UnknownName, match="expectimax"):
        game.teacher("expectimaxx")


def test_presets_fit_and_the_classic_one_is_what_it_says():
    for preset in ("quick", "tuned", "standard", "strong"):
        build_ppo_parts(resolve("balatro", preset=preset, environ={}))
    classic = resolve("balatro", preset="classic", environ={})
    play, learn = classic.selfplay, classic.learn
    assert play.num_games * play.moves_per_rollout == 4000
    assert (learn.batch_size, learn.clip, learn.learning_rate.at(1000, 4000)) == (128, 0.5, 5e-5)
    ppo = classic.ppo
    assert (ppo.gamma, ppo.gae_lambda, ppo.clip, ppo.value_clip) == (0.99, 0.95, 0.2, 10)
    assert (ppo.entropy.start, ppo.epochs, ppo.kl_target, ppo.memory_gb) == (0.01, 30, 0.02, 8)


def test_many_numbers_are_spelled_as_one_is():
    numbers = np.array([0, 1, 34, 35, 2**40 + 17, 2**63 + 5, 2**64 - 1], np.uint64)
    spelled = [bytes(row.astype(np.uint8)).decode() for row in seed_rows(numbers)]
    assert spelled == [seed_text(int(number)) for number in numbers]
