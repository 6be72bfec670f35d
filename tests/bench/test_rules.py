"""Random play is fair and by the rules, ours and Pgx's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.bench import peers, rules
from aleazero.core.game import Game
from aleazero.core.keys import mix
from aleazero.games.registry import make_game


def game_of(name: str) -> Game:
    game = make_game(name)
    assert isinstance(game, Game)
    return game


def words(count: int) -> jax.Array:
    return mix(jnp.uint32(7), jnp.arange(count, dtype=jnp.uint32))


def test_actions_are_drawn_uniformly_from_the_legal_ones() -> None:
    legal = jnp.array([-1, 3, -1, 150, 0, 32767, -1, 7], jnp.int16)
    count = 60_000
    drawn = np.asarray(jax.jit(rules.draw_action)(jnp.tile(legal, (count, 1)), words(count)))
    found, times = np.unique(drawn, return_counts=True)
    assert found.tolist() == [0, 3, 7, 150, 32767]
    expected = count / 5
    assert ((times - expected) ** 2 / expected).sum() < 18.5  # chi-square, 4 degrees of freedom, 0.1 %


def test_outcomes_follow_their_probabilities() -> None:
    probs = np.array([0.0, 0.5, 0.0, 0.2, 0.3, 0.0], np.float32)
    count = 60_000
    drawn = np.asarray(jax.jit(rules.draw_outcome)(jnp.tile(jnp.asarray(probs), (count, 1)), words(count)))
    times = np.bincount(drawn, minlength=6)
    assert times[[0, 2, 5]].tolist() == [0, 0, 0]
    expected = count * probs[probs > 0]
    assert ((times[probs > 0] - expected) ** 2 / expected).sum() < 13.9  # 2 degrees of freedom, 0.1 %


def test_a_step_is_an_action_with_natures_answer() -> None:
    """Pig, step by step on the host: the same states, and every draw counted."""
    game = game_of("pig")
    numbers = jnp.arange(4, dtype=jnp.uint32)
    lanes = rules.begin(game, numbers)
    assert not np.asarray(lanes.states.is_chance).any()
    rolls = np.zeros(4, int)
    many = jax.jit(lambda lanes, first: rules.play(game, lanes, numbers, first, 12))(lanes, jnp.uint32(3))
    step = jax.jit(lambda lanes, first: rules.play(game, lanes, numbers, first, 1))
    listed = jax.jit(jax.vmap(game.legal_list))
    acted = jax.jit(lambda states, actions: jax.vmap(game.apply_action)(states, actions))
    for number in range(3, 15):
        legal = listed(lanes.states)
        actions = rules.draw_action(legal, mix(mix(numbers, jnp.uint32(number)), jnp.uint32(1)))
        after = acted(lanes.states, actions)
        rolls += np.asarray(after.is_chance)
        lanes = step(lanes, jnp.uint32(number))
        stayed = ~np.asarray(after.is_chance | after.terminated)
        for mine, theirs in zip(jax.tree.leaves(after), jax.tree.leaves(lanes.states), strict=True):
            assert np.array_equal(np.asarray(mine)[stayed], np.asarray(theirs)[stayed])
    assert rolls.sum() > 0
    assert np.asarray(lanes.draws).tolist() == rolls.tolist()  # no game of Pig ends in so few
    for one, other in zip(jax.tree.leaves(many), jax.tree.leaves(lanes), strict=True):
        assert np.array_equal(one, other)


def random_length(name: str, steps: int) -> float:
    """Steps a game of random play takes, in ours and by Pgx."""
    numbers = jnp.arange(512, dtype=jnp.uint32)
    if name.startswith("pgx "):
        lanes, play = peers.pgx_play(name.removeprefix("pgx "), numbers, rules.draw_action)
    else:
        game = game_of(name)
        lanes = rules.begin(game, numbers)  # type: ignore[assignment]

        def play(lanes, first, steps):  # type: ignore[no-untyped-def]
            return rules.play(game, lanes, numbers, first, steps)

    done = jax.jit(lambda lanes: play(lanes, jnp.uint32(0), steps))(lanes)
    return steps * 512 / int(done.games.sum())


@pytest.mark.parametrize("name", ["tictactoe", "pgx tictactoe", "pgx:tic_tac_toe"])
def test_random_tic_tac_toe_is_as_long_as_it_must_be(name: str) -> None:
    """7.626 moves: 5 x 0.0952 + 6 x 0.0881 + 7 x 0.2667 + 8 x 0.1952 + 9 x 0.3548, from the tree of all games."""
    assert random_length(name, 400) == pytest.approx(7.63, abs=0.06)


def test_streams_of_random_numbers_do_not_start_again_with_a_game() -> None:
    """In games that draw inside the step, two games of one lane must not meet the same dice."""
    game = game_of("pgx:backgammon")
    numbers = jnp.arange(3, dtype=jnp.uint32)
    first = jax.eval_shape(lambda n: jax.vmap(game.init)(jax.vmap(jax.random.key)(n)), numbers)
    assert first.stream.shape == (3, 2)
    one, other = (
        np.asarray(rules._other_dice(game, _states_like(first), mix(numbers, jnp.uint32(n))).stream) for n in (1, 2)
    )
    assert (one != other).any(-1).all()
    assert len({row.tobytes() for row in one}) == 3


def _states_like(shapes):  # type: ignore[no-untyped-def]
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def test_the_middle_of_a_game_is_neither_its_start_nor_its_end() -> None:
    game = game_of("connect_four")
    states = rules.middle_game(game, 64)
    assert not np.asarray(states.terminated).any()
    pack = jax.jit(jax.vmap(game.pack))
    packed = np.asarray(pack(states))
    assert len(np.unique(packed, axis=0)) > 50
    assert np.array_equal(packed, pack(rules.middle_game(game, 64)))
    assert not np.array_equal(packed, pack(rules.middle_game(game, 64, seed=1)))


def test_twins() -> None:
    assert peers.twin("tictactoe") == "tic_tac_toe"
    assert peers.twin("pgx:othello") == "othello"
    assert peers.twin("pig") is None
    assert peers.our_twin("pgx:backgammon") == "backgammon"
    assert peers.our_twin("backgammon") is None
    assert peers.our_twin("pgx:othello") is None
    assert "Pgx has no pig" in str(peers.no_twin("pig"))
    assert peers.no_twin("backgammon") is None
