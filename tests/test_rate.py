"""Exact judging against plain loops over the solvers and the rules."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aleazero import rate as module
from aleazero.core.errors import ConfigError, GameContractError
from aleazero.core.game import Game
from aleazero.games.registry import make_game
from aleazero.games.wander import wander
from aleazero.judges import exact_judge
from aleazero.models.build import ModelConfig, build_model
from aleazero.play.ratings import wilson
from aleazero.players import NetworkPlayer, make_player
from aleazero.rate import Positions, pig_turns, rate, solved_positions
from aleazero.search.settings import SearchConfig
from aleazero.solvers import tictactoe

pytestmark = pytest.mark.slow


@dataclasses.dataclass(frozen=True)
class FirstLegal:
    """Plays the legal action with the smallest number."""

    game: Game
    name: str = "first"

    def choose(self, states: Any, lanes: Array, keys: Array) -> Any:
        legal = np.asarray(jax.jit(jax.vmap(self.game.legal_list))(states))
        return np.where(legal >= 0, legal, 99).min(-1)


@dataclasses.dataclass(frozen=True)
class Stubborn:
    """Plays one action, legal or not."""

    action: int
    name: str = "stubborn"

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        return jnp.full(lanes.shape, self.action)


def game_called(name: str) -> Game:
    game = make_game(name)
    assert isinstance(game, Game)
    return game


def one(positions: Positions, row: int) -> Any:
    return jax.tree.map(lambda x: x[row], positions.states)


@pytest.mark.parametrize(("name", "count"), [("tictactoe", None), ("pig", 500), ("connect_four", 60)])
def test_positions_are_states_of_the_game_with_a_value_for_each_legal_move(name: str, count: int | None) -> None:
    game = game_called(name)
    positions = solved_positions(game, count, seed=1)
    legal = np.asarray(jax.jit(jax.vmap(game.legal_list))(positions.states))
    mask = (legal[:, :, None] == np.arange(game.spec.num_actions)).any(1)
    assert (mask == ~np.isnan(positions.values)).all()
    assert mask.any(-1).all()
    like = jax.tree.map(lambda x: (x.shape, x.dtype), game.state_like)
    for row in range(0, len(mask), len(mask) // 8):
        state = one(positions, row)
        assert jax.tree.map(lambda x: (x.shape, x.dtype), state) == like
        again = game.notation.parse_state(game.notation.format_state(state))
        assert jax.tree.all(jax.tree.map(lambda x, y: bool((x == y).all()), state, again))


def test_tictactoe_has_every_position_where_somebody_is_to_play() -> None:
    game = game_called("tictactoe")
    positions = solved_positions(game)
    assert len(positions.values) == 4520
    boards = np.asarray(positions.states.board)
    assert len({board.tobytes() for board in boards}) == 4520
    some = solved_positions(game, 100, seed=3)
    assert len(some.values) == 100
    other = solved_positions(game, 100, seed=4)
    assert (np.asarray(some.states.board) != np.asarray(other.states.board)).any()


def test_pigs_positions_are_those_that_play_can_reach() -> None:
    pairs = {(int(mine), int(turn)) for mine, turn in pig_turns()}
    assert {(0, 0), (0, 105), (97, 8), (98, 6), (99, 6), (2, 2)} <= pairs
    assert not {(1, 0), (0, 1), (98, 1), (98, 7), (99, 7), (0, 106), (100, 0)} & pairs
    steps = jax.tree.map(np.asarray, wander(game_called("pig"), lanes=64, plies=400).state)
    decides = ~steps.is_chance & ~steps.terminated
    mine = np.take_along_axis(steps.scores, steps.to_play[..., None].astype(int), -1)[..., 0]
    assert {*zip(mine[decides].tolist(), steps.turn_points[decides].tolist(), strict=True)} <= pairs


def test_pigs_positions_are_distinct_and_of_both_seats() -> None:
    states = jax.tree.map(np.asarray, solved_positions(game_called("pig"), 4000, seed=2).states)
    rows = np.concatenate([states.scores, states.turn_points[:, None], states.to_play[:, None]], -1)
    assert len(np.unique(rows, axis=0)) == 4000
    assert 0.45 < states.to_play.mean() < 0.55
    assert states.scores.max() == 99
    assert 1 not in states.scores


def test_connect_fours_positions_come_by_phase() -> None:
    game = game_called("connect_four")
    everything = solved_positions(game)
    assert {phase: len(rows) for phase, rows in everything.phases.items()} == {
        "late": 1000,
        "middle": 1000,
        "early": 500,
    }
    stones = (np.asarray(everything.states.board) >= 0).sum((1, 2))
    assert stones[everything.phases["late"]].min() >= 28
    middle = stones[everything.phases["middle"]]
    assert (middle.min(), middle.max()) == (14, 27)
    assert stones[everything.phases["early"]].max() <= 13
    few = solved_positions(game, 20)
    for phase, rows in few.phases.items():
        assert len(rows) == 20
        whole = np.asarray(everything.states.board)[everything.phases[phase][:20]]
        assert (np.asarray(few.states.board)[rows] == whole).all()
    late = few.phases["late"]
    judge = exact_judge(game)
    assert judge is not None
    exact = judge(jax.tree.map(lambda x: np.asarray(x)[late], few.states))
    assert np.array_equal(few.values[late], exact.astype(np.float64), equal_nan=True)


def test_wrong_moves_are_counted_as_a_plain_loop_counts_them() -> None:
    game = game_called("tictactoe")
    wrong = lost = 0
    boards = [board for board in tictactoe.reachable() if not np.isnan(tictactoe.solve_moves(board[None])).all()]
    for board in boards:
        values = tictactoe.solve_moves(board[None])[0]
        gives = np.nanmax(values) - values[np.flatnonzero(board == -1)[0]]
        wrong += gives > 0
        lost += gives
    found = rate(game, FirstLegal(game), solved_positions(game)).overall
    share = wilson(int(wrong), len(boards))
    assert (found.value, found.low, found.high) == (share.value, share.low, share.high)
    assert found.decisions == len(boards)
    assert found.points_lost == pytest.approx(lost / len(boards))
    assert found.value_error is None


@pytest.mark.parametrize("name", ["tictactoe", "pig"])
def test_the_solver_makes_no_wrong_move_and_random_makes_many(name: str) -> None:
    game = game_called(name)
    positions = solved_positions(game, 1500, seed=5)  # more than a batch
    solver = rate(game, make_player("solver", game), positions).overall
    assert (solver.value, solver.low, solver.decisions) == (0.0, 0.0, 1500)
    assert 0.0 < solver.high < 0.01
    assert rate(game, make_player("random", game), positions).overall.value > 0.1


def test_phases_are_judged_by_their_own_positions() -> None:
    game = game_called("connect_four")
    positions = solved_positions(game, 50)
    found = rate(game, FirstLegal(game), positions)
    assert {phase: wrong.decisions for phase, wrong in found.phases.items()} == dict.fromkeys(positions.phases, 50)
    for phase, rows in positions.phases.items():
        part = Positions(jax.tree.map(lambda x, rows=rows: x[rows], positions.states), positions.values[rows], {})
        assert rate(game, FirstLegal(game), part).overall == found.phases[phase]
    counts = [wrong.value * wrong.decisions for wrong in found.phases.values()]
    assert found.overall.value * 150 == pytest.approx(sum(counts))
    assert len(set(counts)) > 1


def test_a_networks_value_is_compared_with_the_best_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    game = game_called("tictactoe")
    model = build_model(ModelConfig(kind="mlp", width=8, blocks=1), game.spec)
    weights = jax.jit(model.init)(jax.random.key(1))
    player = NetworkPlayer(game, model, weights, SearchConfig(kind="direct"), "net")
    positions = solved_positions(game, 30, seed=1)
    monkeypatch.setattr(module, "BATCH", 7)  # the last batch has two positions and five that do not count
    found = rate(game, player, positions).overall
    values = jax.jit(lambda states: model.evaluate(weights, jax.vmap(game.observe)(states)).value)(positions.states)
    exact = tictactoe.solve(np.asarray(positions.states.board))
    assert found.value_error == pytest.approx(float(np.abs(np.asarray(values) - exact).mean()), abs=1e-6)
    actions = np.asarray(player.choose(positions.states, jnp.ones(30, bool), jax.random.split(jax.random.key(0), 30)))
    lost = exact - positions.values[np.arange(30), actions]
    assert (found.value, found.decisions) == (np.mean(lost > 0), 30)


@pytest.mark.parametrize("action", [4, -1, 9])
def test_an_illegal_move_is_named_with_its_position(action: int) -> None:
    game = game_called("tictactoe")
    with pytest.raises(GameContractError, match=rf"'stubborn' chose action {action}, which is not legal in '[XO./]+'"):
        rate(game, Stubborn(action), solved_positions(game))


def test_what_cannot_be_judged_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"quoridor is not solved.*connect_four, pig, tictactoe"):
        solved_positions(game_called("quoridor"))
    with pytest.raises(ConfigError, match="positions is 0"):
        solved_positions(game_called("pig"), 0)
