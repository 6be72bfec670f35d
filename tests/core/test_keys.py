"""Keys by name: what they depend on, what they do not, and the cheap words made from them."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.keys import Role, gumbel_noise, lane_keys, lane_words, mix, role_key, unit

MANY = 1 << 16


def data(keys: jax.Array) -> list[tuple[int, ...]]:
    return [tuple(row) for row in np.asarray(jax.random.key_data(keys)).reshape(-1, 2).tolist()]


def words(count: int = MANY, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).integers(0, 2**32, count, np.uint32))


def test_a_lane_key_does_not_depend_on_the_batch():
    whole = data(lane_keys(5, Role.CHANCE, 3, jnp.arange(40)))
    assert data(lane_keys(5, Role.CHANCE, 3, jnp.array([17]))) == [whole[17]]
    assert data(lane_keys(5, Role.CHANCE, 3, jnp.array([39, 2, 17]))) == [whole[39], whole[2], whole[17]]


def test_a_compiled_key_is_the_same_key():
    compiled = jax.jit(lambda seed, move, lanes: lane_keys(seed, Role.SEARCH, move, lanes))
    assert data(compiled(5, 3, jnp.arange(4))) == data(lane_keys(5, Role.SEARCH, 3, jnp.arange(4)))


def test_seed_role_move_and_lane_each_change_the_key():
    named = itertools.product(range(3), Role, range(3))
    keys = [key for seed, role, move in named for key in data(lane_keys(seed, role, move, jnp.arange(3)))]
    assert len(set(keys)) == len(keys) == 3 * len(Role) * 3 * 3


def test_a_role_key_is_the_seed_folded_with_role_and_move():
    expected = jax.random.fold_in(jax.random.fold_in(jax.random.key(9), 2), 4)
    assert data(role_key(9, Role.CHANCE, 4)) == data(expected)
    assert data(role_key(9, Role.CHANCE)) == data(role_key(9, Role.CHANCE, 0))


def test_the_numbers_of_roles_are_fixed():
    assert {role.name: role.value for role in Role} == {
        "INIT": 0,
        "SEARCH": 1,
        "CHANCE": 2,
        "ACTION": 3,
        "WEIGHTS": 4,
        "REPLAY": 5,
        "MATCH": 6,
        "TEST": 7,
        "OPENING": 8,
        "BUDGET": 9,
        "AUGMENT": 10,
        "TASTE": 11,
        "START": 12,
        "ENDING": 13,
    }


def test_lane_words_differ_and_do_not_depend_on_the_batch():
    keys = lane_keys(1, Role.SEARCH, 0, jnp.arange(500))
    drawn = np.asarray(lane_words(keys, 3))
    assert drawn.shape == (3, 500)
    assert drawn.dtype == np.uint32
    assert len(set(drawn.reshape(-1).tolist())) == 1500
    assert np.array_equal(lane_words(keys[7:9], 3), drawn[:, 7:9])


def test_lane_words_read_every_part_of_a_key():
    rows = np.array([[1, 2], [1, 3], [4, 2]], np.uint32)
    drawn = np.asarray(lane_words(jax.random.wrap_key_data(jnp.asarray(rows)), 1))[0]
    assert len(set(drawn.tolist())) == 3


@pytest.mark.parametrize("flipped", ["word", "counter"])
def test_mix_spreads_every_bit(flipped):
    """Flipping one bit of either argument flips about half of the result's, whichever bit it was."""
    word, counter = words(4096), words(4096, seed=1)
    for bit in (0, 1, 7, 15, 16, 30, 31):
        mask = jnp.uint32(1 << bit)
        other = mix(word ^ mask, counter) if flipped == "word" else mix(word, counter ^ mask)
        changed = np.bitwise_count(np.asarray(other ^ mix(word, counter)))
        assert 15 < changed.mean() < 17, bit
        assert changed.min() > 0, bit


def test_mix_counts_without_repeating():
    drawn = np.asarray(mix(jnp.uint32(12345), jnp.arange(MANY)))
    assert len(set(drawn.tolist())) == MANY  # a fixed word: every counter its own result
    bits = np.unpackbits(drawn.view(np.uint8))
    assert abs(bits.mean() - 0.5) < 0.002


def test_unit_is_exact_and_below_one():
    ends = unit(jnp.array([0, 255, 256, 2**32 - 1], jnp.uint32))
    assert ends.tolist() == [0.0, 0.0, 2.0**-24, 1 - 2.0**-24]
    assert ends.dtype == jnp.float32


def test_unit_is_uniform():
    drawn = np.asarray(unit(mix(jnp.uint32(7), jnp.arange(MANY))))
    counts = np.histogram(drawn, 16, (0, 1))[0]
    expected = MANY / 16
    assert ((counts - expected) ** 2 / expected).sum() < 40  # chi-square, 15 degrees: 1 in 2,000 is above
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.02


def test_gumbel_noise_has_its_distribution():
    noise = np.asarray(gumbel_noise(words(4096), 16))
    assert noise.shape == (4096, 16)
    assert np.isfinite(noise).all()
    assert abs(noise.mean() - np.euler_gamma) < 0.02
    assert abs(noise.var() - np.pi**2 / 6) < 0.05
    assert abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 0.06


def test_gumbel_noise_draws_from_logits():
    wanted = np.array([0.6, 0.3, 0.1], np.float32)
    noise = np.asarray(gumbel_noise(words(), 3))
    drawn = (np.log(wanted)[None] + noise).argmax(-1)
    assert np.bincount(drawn, minlength=3) / MANY == pytest.approx(wanted, abs=0.01)


def test_gumbel_noise_does_not_depend_on_how_much_is_drawn():
    few, many = gumbel_noise(words(8), 3), gumbel_noise(words(8), 9)
    assert np.array_equal(few, many[:, :3])
