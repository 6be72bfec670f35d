"""Alpha-beta joined to states of chess: the same moves, a policy that sums to one, and whole runs taught by it."""

from __future__ import annotations

import functools
from typing import Any

import chess
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.assemble import Parts, build_parts
from aleazero.chess_teacher import EDGES, LOOKED_THROUGH, make_search
from aleazero.config import resolve
from aleazero.core.errors import AleaError
from aleazero.core.keys import Role, lane_keys
from aleazero.games.registry import make_game
from aleazero.games.wander import wander
from aleazero.players import make_player
from aleazero.search.settings import SearchConfig, make_knobs
from tests.games.chess.support import GAME, TACTICAL, action_of, batched, parse, stacked
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compile")]
SMALL = (
    *("model.width=8", "model.blocks=1", "search.max_simulations=2", "selfplay.num_games=4", "total_rows=2048"),
    *("selfplay.moves_per_rollout=8", "replay.capacity_rows=4096", "replay.min_rows=32", "learn.batch_size=16"),
    "selfplay.starts=[]",
)
MANY = 64  # positions that are looked at together


def parts_of(*changes: str) -> Parts:
    return build_parts(resolve("chess", preset="taught", environ={}, assignments=[*SMALL, *changes]))


def keys(count: int, move: int = 0) -> Any:
    return lane_keys(jnp.uint32(0), Role.SEARCH, move, jnp.arange(count))


@functools.cache
def program() -> Any:
    search = make_search("classical:depth=2", GAME)
    return jax.jit(lambda states, keys, knobs: search.run(None, (), states, keys, knobs))  # type: ignore[arg-type]


def looked(states: Any, temperature: float = 0.0) -> Any:
    """What it finds; by one program, of as many positions."""
    count = states.to_play.shape[0]
    assert count <= MANY
    rows = np.minimum(np.arange(MANY), count - 1)
    padded = jax.tree.map(lambda x: np.asarray(x)[rows], states)
    found = program()(padded, keys(MANY), make_knobs(SearchConfig(), temperature=temperature))
    return jax.tree.map(lambda x: np.asarray(x)[:count], found)


def test_it_knows_every_legal_move_of_both_sides_and_its_policy_is_one() -> None:
    steps = wander(GAME, lanes=6, plies=90, seed=3)
    some = jax.tree.map(lambda x: x[20::10].reshape(-1, *x.shape[2:]), (steps.state, steps.legal))
    odd = stacked([jax.tree.map(np.asarray, parse(fen)) for fen in TACTICAL])
    states = jax.tree.map(lambda x, y: np.concatenate([x, y]), some[0], odd)
    legal = np.concatenate([some[1], batched("legal_list")(odd)])
    found = looked(states)
    for lane, listed in enumerate(legal):
        wanted = {int(action) for action in listed if action >= 0}
        told = [int(action) for action in found.actions[lane] if action >= 0]
        assert len(told) == len(set(told)) == min(len(wanted), EDGES)
        assert set(told) <= wanted
        assert int(found.action[lane]) == told[int(found.policy[lane].argmax())]
    assert {int(seat) for seat in states.to_play} == {0, 1}
    np.testing.assert_allclose(found.policy.sum(-1), 1, atol=1e-5)
    assert not found.policy[found.actions < 0].any()
    assert (np.abs(found.values) <= 1).all()


def test_the_better_move_is_likelier_and_what_is_played_follows_the_temperature() -> None:
    fen = "rnb1kbnr/pppp1ppp/8/4p1q1/4P3/3P4/PPP2PPP/RNBQKBNR w KQkq - 1 3"  # a queen hangs
    states = stacked([jax.tree.map(np.asarray, parse(fen))] * MANY)
    best = action_of(chess.Board(fen), chess.Move.from_uci("c1g5"))
    found = looked(states)
    assert set(found.action.tolist()) == {best}
    assert found.policy[0, 0] > 0.9
    assert found.values[0, 0] == found.values[0].max() > 0.3
    start = batched("init")(keys(MANY))
    assert len(set(looked(start).action.tolist())) == 1
    assert len(set(looked(start, temperature=1.0).action.tolist())) > 3


def test_a_move_back_to_where_the_game_was_is_a_draw_to_it() -> None:
    """White is a rook ahead and would shuffle for ever."""
    board = chess.Board("7k/6pp/8/8/8/8/5PPP/R5K1 w - - 0 1")
    state = parse(board.fen())
    batch = stacked([jax.tree.map(np.asarray, state)])
    first = looked(batch)
    apply = jax.jit(GAME.apply_action)
    for name in ("a1a2", "h8g8", "a2a1", "g8h8"):
        state = apply(state, action_of(board, chess.Move.from_uci(name)))
        board.push_uci(name)
    again = looked(stacked([jax.tree.map(np.asarray, state)]))
    assert int(state.repeats) == 1
    before = {int(action): float(value) for action, value in zip(first.actions[0], first.values[0], strict=True)}
    after = {int(action): float(value) for action, value in zip(again.actions[0], again.values[0], strict=True)}
    there = action_of(board, chess.Move.from_uci("a1a2"))
    assert after[there] == 0.0 or there not in again.actions[0, :LOOKED_THROUGH]
    back = [int(action) for action in again.actions[0, :LOOKED_THROUGH] if bool(apply(state, int(action)).repeats)]
    assert all(after[action] == 0.0 != before[action] for action in back)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("classical:depth=0", "depth is '0'; it must be in 1..6"),
        ("classical:depth=deep", "depth is 'deep'"),
        ("classical:ply=2", "unknown option 'ply'"),
        ("classical:values=nowhere", "no values in nowhere"),
        ("classical:depth=2,sims=4", "takes no search"),
    ],
)
def test_what_is_wrong_with_its_string_is_said(text: str, said: str) -> None:
    with pytest.raises(AleaError, match=said):
        make_player(text, GAME)


def test_it_plays_chess_alone() -> None:
    with pytest.raises(AleaError, match="classical plays chess, not tictactoe"):
        make_player("classical", make_game("tictactoe"))  # type: ignore[arg-type]
    with pytest.raises(AleaError, match="classical plays chess, not tictactoe"):
        build_parts(resolve("tictactoe", preset="quick", environ={}, assignments=["selfplay.teacher=classical"]))


def test_it_plays_in_a_run_s_place_and_what_it_finds_is_what_the_run_learns() -> None:
    parts = parts_of()
    play, own, begun = parts.make_play(), parts.start_learning().weights, parts.start_games()
    games, slab = play(own, jax.tree.map(jnp.copy, begun), parts.pace(0), jnp.uint32(0))
    # Whatever the run itself has learned; and the same again.
    _, other = play(jax.tree.map(lambda w: w - 1.0, own), begun, parts.pace(0), jnp.uint32(0))
    jax.tree.map(np.testing.assert_array_equal, slab, other)
    last = jax.tree.map(lambda x: x[-1], slab)
    states = batched("unpack")(last.state)
    assert len({row.tobytes() for row in np.asarray(last.state)}) == len(last.state)
    found = looked(states)
    np.testing.assert_array_equal(last.actions, found.actions)
    np.testing.assert_allclose(last.policy, found.policy, atol=1e-3)
    np.testing.assert_allclose(np.asarray(slab.opinion, np.float32), 1 / 3, atol=1e-3)  # it has none of its own
    assert games.ply.max() > 0


def test_players_by_string_choose_for_the_lanes_that_wait() -> None:
    player: Any = make_player("classical:depth=1", GAME)
    fen = "4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1"
    states = stacked([jax.tree.map(np.asarray, parse(fen))] * 3)
    chosen = np.asarray(player.choose(states, jnp.array([True, False, True]), keys(3)))
    takes = action_of(chess.Board(fen), chess.Move.from_uci("e4d5"))
    assert chosen.tolist() == [takes, 0, takes]
