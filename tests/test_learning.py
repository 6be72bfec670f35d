"""It learns tic-tac-toe and Connect Four, small enough for two cores, from nothing to good play; `-m long`: more seeds.

Thresholds lie well below what every seed reached when they were set, and well above what an untrained network does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from aleazero.config import RunConfig
from aleazero.core.game import Game
from aleazero.core.settings import Layer, build, parse_assignments
from aleazero.games.registry import make_game
from aleazero.observe.jsonl import read_jsonl
from aleazero.play.match import play_match
from aleazero.play.ratings import results_from_points, score_interval
from aleazero.players import make_player
from aleazero.rate import rate, solved_positions
from aleazero.runtimes.start import Finished, Stopping, resume, start
from tests.runtimes.support import StopAfter, differences, newest

pytestmark = pytest.mark.slow
SEEDS = (0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2)))

COMMON = (
    *("model.kind=mlp", "model.width=64", "search.kind=gumbel", "selfplay.num_games=128", "replay.rows_per_new_row=4"),
    *("learn.batch_size=256", "learn.ema=0.98", "learn.learning_rate.end=3e-4", "learn.learning_rate.warmup_rows=5000"),
    *("evaluate.every_rows=0", "evaluate.games=200", "checkpoint.every_rows=1000000", "observe.every_seconds=0"),
)
TICTACTOE = (
    *("total_rows=60000", "model.blocks=1", "search.max_simulations=8", "learn.learning_rate.start=5e-3"),
    *("selfplay.moves_per_rollout=9", "selfplay.random_plies=4", "replay.capacity_rows=30000"),
    "evaluate.opponents=solver",
)
CONNECT_FOUR = (
    *("total_rows=100000", "model.blocks=1", "search.max_simulations=16", "learn.learning_rate.start=3e-3"),
    *("selfplay.moves_per_rollout=14", "selfplay.random_plies=8", "replay.capacity_rows=60000"),
    *("replay.min_rows=4000", "targets.td_lambda=0.95", "evaluate.opponents="),
)


def rules(name: str) -> Game:
    game = make_game(name)
    assert isinstance(game, Game)
    return game


def learn(game: str, settings: tuple[str, ...], seed: int, root: Path) -> Finished:
    layers = [Layer("tests", {"game": game, "seed": seed}), parse_assignments(COMMON), parse_assignments(settings)]
    finished = start(build(RunConfig, layers), root, name="it", quiet=True)
    assert finished.status == "done"
    alarms = [report for report in read_jsonl(finished.folder.metrics_file) if report["kind"] == "alarm"]
    assert not [alarm for alarm in alarms if alarm["level"] == "stop"]
    return finished


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Finished]:
    """A run that learns tic-tac-toe with a seed; seldom more than one."""
    return functools.cache(lambda seed: learn("tictactoe", TICTACTOE, seed, tmp_path_factory.mktemp("tictactoe")))


def losses(finished: Finished) -> list[float]:
    return [report["loss"] for report in read_jsonl(finished.folder.metrics_file) if report["kind"] == "learn"]


@pytest.mark.parametrize("seed", SEEDS)
def test_tictactoe_is_played_perfectly_and_known_almost_by_heart(seed: int, learned: Callable[[int], Finished]) -> None:
    finished = learned(seed)
    # Nobody beats the solver, so a score of one half is 200 games without a loss.
    assert [(match.opponent, match.games, match.score) for match in finished.ratings] == [("solver", 200, 0.5)]
    game = rules("tictactoe")
    alone = rate(game, make_player("run:it,search=none", game, finished.folder.path.parent), solved_positions(game))
    assert alone.overall.decisions == 4520
    assert alone.overall.value <= 0.03
    assert alone.overall.value_error is not None
    assert alone.overall.value_error <= 0.25
    told = losses(finished)
    assert sum(told[-5:]) / 5 < 0.8 * told[0]


def test_a_run_as_people_run_it_can_be_stopped_and_resumed_without_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learned: Callable[[int], Finished]
) -> None:
    """With all optimisations, unlike the other tests of this."""
    whole = learned(0)
    with monkeypatch.context() as patch:
        patch.setattr(Stopping, "stop_requested", StopAfter(8).stop_requested)
        assert start(whole.folder.read_config(), tmp_path, name="it", quiet=True).status == "stopped"
    finished = resume("it", tmp_path, seconds=1e6, quiet=True)
    assert finished.status == "done"
    assert differences(newest(finished.folder), newest(whole.folder)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_connect_four_is_learned_from_nothing(seed: int, tmp_path: Path) -> None:
    finished = learn("connect_four", CONNECT_FOUR, seed, tmp_path)
    game = rules("connect_four")
    alone = make_player("run:it,search=none", game, tmp_path)
    match = play_match(game, alone, make_player("random", game), pairs=150, seed=1)
    assert score_interval(results_from_points(match.points)).value >= 0.90  # untrained: about 0.7
    early = rate(game, alone, solved_positions(game)).phases["early"]
    assert early.value <= 0.38  # untrained: about 0.45
    told = losses(finished)
    assert sum(told[-5:]) / 5 < 0.9 * told[0]
