"""The Pgx adapter beside Pgx itself: Othello, which is deterministic, and backgammon, which rolls inside `step`."""

from __future__ import annotations

import random
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest

from aleazero.core.errors import MissingExtra, UnknownName
from aleazero.core.game import legal_mask
from aleazero.core.keys import Role, role_key
from aleazero.games.conformance import check_game
from aleazero.games.pgx import FACTS, PgxGame
from aleazero.games.registry import make_game
from aleazero.games.wander import wander
from tests.games.follow import assert_equal_states, compiled

pytestmark = pytest.mark.usefixtures("quick_compile")
OTHELLO, BACKGAMMON = make_game("pgx:othello"), make_game("pgx:backgammon")
PLIES = {"pgx:othello": 64, "pgx:backgammon": 60}
COND = "apply_action uses cond, which under vmap costs both branches"


def listed(game: Any, state: Any) -> list[int]:
    return [int(action) for action in np.asarray(compiled(game, "legal_list")(state)) if action >= 0]


def rows(states: Any) -> Any:
    """`[T, B]` states as one batch."""
    return jax.tree.map(lambda x: x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]), states)


def middle(game: Any) -> Any:
    """A position from the middle of a random game."""
    return jax.tree.map(lambda x: x[25, 0], wander(game, lanes=2, plies=PLIES[game.spec.name]).state)


def test_othello_agrees_with_pgx_move_for_move():
    rng, step = random.Random(3), jax.jit(pgx.make("othello").step)
    key = role_key(3, Role.INIT)
    theirs, ours = jax.jit(pgx.make("othello").init)(key), compiled(OTHELLO, "init")(key)
    total = np.zeros(2)
    for _ in range(OTHELLO.spec.max_plies):
        assert int(ours.to_play) == int(theirs.current_player)
        assert np.array_equal(compiled(OTHELLO, "observe")(ours), theirs.observation)
        legal = listed(OTHELLO, ours)
        assert legal == np.flatnonzero(theirs.legal_action_mask).tolist()
        action = jnp.int32(rng.choice(legal))
        theirs, ours = step(theirs, action), compiled(OTHELLO, "apply_action")(ours, action)
        total += np.asarray(theirs.rewards)
        assert np.array_equal(ours.rewards, theirs.rewards)
        assert np.array_equal(ours.returns, total)
        assert bool(ours.terminated) == bool(theirs.terminated)
        assert not bool(ours.is_chance)
        if bool(theirs.terminated):
            break
    assert bool(ours.terminated)
    assert sorted(ours.returns.tolist()) in ([-1, 1], [0, 0])
    assert listed(OTHELLO, ours) == []  # Pgx calls every action legal here


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "warnings"),
    [(OTHELLO, (COND,)), (BACKGAMMON, (COND, "no game ended in 60 plies of random play"))],
    ids=lambda value: value.spec.name if isinstance(value, PgxGame) else "",
)
def test_keeps_the_contract(game, warnings):
    report = check_game(game, lanes=2, plies=PLIES[game.spec.name])
    assert report.warnings == warnings
    assert (report.games > 0) == (len(warnings) == 1)


def test_what_pgx_does_not_say_of_itself():
    assert OTHELLO.spec.chance == "none"
    assert OTHELLO.spec.num_actions == OTHELLO.spec.max_legal == pgx.make("othello").num_actions == 65
    assert OTHELLO.spec.observation_shape == pgx.make("othello").observation_shape
    assert BACKGAMMON.spec.chance == "sampled"
    assert BACKGAMMON.spec.num_actions == 26 * 6
    assert BACKGAMMON.spec.max_legal == 30
    assert sorted(outcome.points for outcome in BACKGAMMON.spec.outcomes) == [-3, -2, -1, 1, 2, 3]
    assert BACKGAMMON.spec.scale == 3


def test_backgammon_lists_the_legal_actions_of_its_mask():
    states = rows(wander(BACKGAMMON, lanes=2, plies=PLIES["pgx:backgammon"]).state)
    masks = np.asarray(states.inner.legal_action_mask)
    counts = masks.sum(-1)
    assert counts.min() >= 1
    assert counts.max() <= BACKGAMMON.spec.max_legal
    assert len(set(counts.tolist())) > 5
    lists = jax.jit(jax.vmap(BACKGAMMON.legal_list))(states)
    assert np.array_equal(legal_mask(lists, BACKGAMMON.spec.num_actions), masks)
    assert np.array_equal(lists >= 0, np.arange(30)[None] < counts[:, None])


@pytest.mark.parametrize("count", [0, 1, 29, 30])
def test_a_list_holds_as_many_as_the_bound_allows(count):
    state, rng = compiled(BACKGAMMON, "init")(role_key(0, Role.INIT)), np.random.default_rng(count)
    chosen = np.sort(rng.choice(BACKGAMMON.spec.num_actions, count, replace=False))
    mask = jnp.zeros(BACKGAMMON.spec.num_actions, bool).at[chosen].set(True)
    marked = state.__class__(**vars(state) | {"inner": state.inner.replace(legal_action_mask=mask)})
    assert listed(BACKGAMMON, marked) == chosen.tolist()


def test_reseeding_changes_what_is_to_come_and_nothing_else():
    state = middle(BACKGAMMON)
    one, two = (compiled(BACKGAMMON, "reseed")(state, role_key(seed, Role.SEARCH)) for seed in (1, 2))
    assert not np.array_equal(one.stream, state.stream)
    assert not np.array_equal(one.stream, two.stream)
    assert_equal_states(one.__class__(**vars(one) | {"stream": state.stream}), state)

    def futures(start: Any) -> list[bytes]:
        """What a fixed way of choosing meets: the observations of the next plies."""
        seen = []
        for _ in range(6):
            start = compiled(BACKGAMMON, "apply_action")(start, jnp.int32(listed(BACKGAMMON, start)[0]))
            seen.append(np.asarray(compiled(BACKGAMMON, "observe")(start)).tobytes())
        return seen

    first, second = futures(one), futures(two)
    assert first != second
    assert futures(compiled(BACKGAMMON, "reseed")(two, role_key(1, Role.SEARCH))) == first


def test_every_step_goes_on_with_fresh_randomness():
    streams = np.asarray(wander(BACKGAMMON, lanes=2, plies=PLIES["pgx:backgammon"]).state.stream)
    assert len({row.tobytes() for row in streams.reshape(-1, 2)}) == streams[..., 0].size


def test_a_deterministic_environment_has_no_stream():
    state = middle(OTHELLO)
    assert state.stream.shape == (0,)
    assert_equal_states(OTHELLO.reseed(state, role_key(1, Role.SEARCH)), state)


@pytest.mark.parametrize("game", [OTHELLO, BACKGAMMON], ids=lambda game: game.spec.name)
def test_packing_leaves_observations_out(game):
    states = rows(wander(game, lanes=2, plies=PLIES[game.spec.name]).after)
    packed = jax.jit(jax.vmap(game.pack))(states)
    assert packed.shape == (len(states.to_play), game.packed_size)
    assert states.inner.observation.shape == (len(states.to_play), 0)
    assert game.packed_size < 300
    assert len({row.tobytes() for row in np.asarray(packed)}) > 50
    back = jax.jit(jax.vmap(game.unpack))(packed)
    assert_equal_states(back, states)


def test_a_state_made_outside_of_jit_packs_too():
    state = OTHELLO.init(role_key(0, Role.INIT))
    text = OTHELLO.notation.format_state(state)
    assert OTHELLO.notation.format_state(OTHELLO.notation.parse_state(text)) == text
    assert "inner.current_player: " in OTHELLO.notation.draw(state)


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_holdem", "sparrow_mahjong", "bridge_bidding"])
def test_games_with_hidden_cards_are_refused(name):
    with pytest.raises(UnknownName, match=f"unknown Pgx environment '{name}'") as caught:
        make_game(f"pgx:{name}")
    assert str(caught.value).endswith("known: " + ", ".join(sorted(FACTS)))


def test_a_near_miss_is_recognised():
    with pytest.raises(UnknownName, match="did you mean 'othello'"):
        make_game("pgx:othelo")


def test_without_pgx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgx", None)  # as if it were not installed
    with pytest.raises(MissingExtra, match=r"game 'pgx:hex' needs pgx.*pip install 'aleazero\[games\]'"):
        PgxGame("hex")
