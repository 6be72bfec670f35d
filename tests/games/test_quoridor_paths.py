"""How far it is to the goal in Quoridor, beside a plain search for it; and the players that go by it."""

from __future__ import annotations

import collections
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.errors import ConfigError
from aleazero.games.quoridor import paths, rules
from aleazero.games.quoridor.game import Quoridor
from aleazero.games.registry import make_game
from aleazero.play.match import play_match
from aleazero.play.rollout import random_actions
from aleazero.players import make_player

pytestmark = pytest.mark.usefixtures("quick_compile")
GAME = Quoridor()
SNAKE = "e1 e9 0 1 a1h,c1h,e1h,g1h,b2h,d2h,f2h,h2h,a4h,c4h,e4h,g4h,b6h,d6h,f6h,h6h,a8h,c8h,e8h 1"


def parse(text: str) -> rules.State:
    return GAME.notation.parse_state(text)


def plain(walls: np.ndarray) -> np.ndarray:
    """Steps to the top row, square by square."""
    shut = np.asarray(rules.shut_off(jnp.asarray(walls)))
    far = np.full(81, 99)
    waiting = collections.deque(range(72, 81))
    far[72:] = 0
    while waiting:
        square = waiting.popleft()
        for way, step in enumerate((9, 1, -9, -1)):
            if not shut[way, square] and far[square + step] == 99:
                far[square + step] = far[square] + 1
                waiting.append(square + step)
    return far


@pytest.mark.slow
def test_distances_are_those_of_a_plain_search() -> None:
    states = jax.jit(jax.vmap(GAME.init))(jax.random.split(jax.random.key(0), 16))
    step = jax.jit(lambda s, k: jax.vmap(GAME.apply_action)(s, random_actions(GAME, s, k)))
    far = jax.jit(jax.vmap(paths.distances))
    for ply in range(14):
        states = step(states, jax.random.split(jax.random.key(ply), 16))
        walls = np.asarray(states.walls)
        assert np.array_equal(far(states.walls), [plain(each) for each in walls])


def test_the_way_through_a_maze_is_found() -> None:
    state = parse(SNAKE)
    me, you = np.asarray(jax.jit(paths.both)(state.walls, state.pawns))
    assert (me, you) == (plain(np.asarray(state.walls))[4], plain(np.asarray(state.walls)[:, ::-1, ::-1])[4])
    assert me > 30


@jax.jit
def look(state: rules.State) -> Any:
    """Where a walker and a racer go, what is legal, and how far it is for who is to play and for the other one."""
    facing = rules.facing(state)
    return paths.walk(state), paths.race(state), GAME.legal_list(state), paths.both(facing.walls, facing.pawns)


act = jax.jit(rules.apply_action)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("position", "walks", "races"),
    [
        ("e1 e9 10 10 - 1", "e2", "e2"),
        ("e1 e9 10 10 - 2", "e8", "e8"),
        ("e1 c4 10 10 - 1", "e2", None),  # behind: a wall
        ("e1 e4 10 10 - 1", "e2", "e2"),  # behind, but every wall would hinder both
        ("e1 e9 9 10 e1h 1", None, None),
    ],
)
def test_it_goes_where_the_goal_is_nearest_and_hinders_when_behind(
    position: str, walks: str | None, races: str | None
) -> None:
    state = parse(position)
    walk, race, legal, lengths = jax.device_get(look(state))
    if walks:
        assert GAME.notation.format_action(state, int(walk)) == walks
    if races:
        assert GAME.notation.format_action(state, int(race)) == races
    elif walks:  # a wall that costs the opponent a step at least
        assert race >= rules.SQUARES
        after = look(act(state, np.int16(race)))[3]
        assert after[0] > lengths[1]
    assert {int(walk), int(race)} <= set(legal.tolist())


@pytest.mark.slow
def test_the_players_beat_random_and_hindering_beats_walking() -> None:
    shortest, walls = make_player("shortest", GAME), make_player("shortest:walls", GAME)
    assert play_match(GAME, shortest, make_player("random", GAME), pairs=4, seed=0).points.mean() > 0.9
    assert play_match(GAME, walls, shortest, pairs=4, seed=0, opening_plies=4).points.mean() > 0


@pytest.mark.slow
def test_games_with_scattered_pawns_go_on_and_either_seat_moves() -> None:
    states = jax.jit(jax.vmap(GAME.starts["scattered"]))(jax.random.split(jax.random.key(0), 500))
    assert not bool(states.terminated.any())
    assert bool((states.pawns[:, 0] != states.pawns[:, 1]).all())
    assert set(np.asarray(states.to_play).tolist()) == {0, 1}
    assert set(np.asarray(states.pawns[:, 0]).tolist()) == set(range(72))
    assert set(np.asarray(states.pawns[:, 1]).tolist()) == set(range(9, 81))
    pack = jax.jit(GAME.pack)
    for lane in range(3):
        state = jax.tree.map(lambda x, lane=lane: np.asarray(x)[lane], states)
        again = parse(GAME.notation.format_state(state))
        assert np.array_equal(pack(again), pack(state))


@pytest.mark.parametrize(
    ("text", "game", "said"),
    [
        ("shortest", "tictactoe", "plays quoridor, not tictactoe"),
        ("shortest:fast", "quoridor", "write shortest, or shortest:walls"),
        ("shortest,sims=4", "quoridor", "write shortest, or shortest:walls"),
    ],
)
def test_what_is_wrong_with_one_is_said(text: str, game: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_player(text, make_game(game))
