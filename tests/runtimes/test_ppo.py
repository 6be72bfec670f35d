"""PPO runs: they learn, they go on exactly, they say what is wrong."""

from __future__ import annotations

import json
import mmap
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.assemble_ppo import build_ppo_parts
from aleazero.config import RunConfig, resolve
from aleazero.core.errors import ConfigError
from aleazero.core.settings import Layer, build, parse_assignments
from aleazero.observe.alarms import alarms_of
from aleazero.observe.hardware import most_resident_bytes, resident_bytes
from aleazero.observe.reports import AlarmReport, EvalReport, LearnReport, PpoReport, SelfPlayReport
from aleazero.play.fragments import Played
from aleazero.ppo_memory import worked_out_bytes
from aleazero.runs import new_run
from aleazero.runtimes.local import LocalRun, TrainingStopped
from aleazero.runtimes.ppo import ppo_run
from aleazero.runtimes.ppo_play import HostPlay
from aleazero.runtimes.start import resume, start
from tests.observe import examples
from tests.runtimes.support import Recorder, StopAfter, differences, newest, programs, quick_programs  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_programs")]

TINY = (
    *("algorithm=ppo", "total_rows=1024", "model.kind=mlp", "model.width=16", "model.blocks=1", "model.value=twohot"),
    *("selfplay.num_games=8", "selfplay.moves_per_rollout=16", "replay.log=false"),
    *("learn.batch_size=32", "learn.ema=0", "ppo.epochs=2", "learn.learning_rate.warmup_rows=0"),
    *("evaluate.opponents=nobody", "evaluate.games=4", "evaluate.every_rows=0", "checkpoint.every_rows=256"),
    "observe.every_seconds=0",
)


def tiny(*assignments: str) -> RunConfig:
    """Eight iterations of 128 rows, 8 updates each."""
    layers = [Layer("tests", {"game": "gym:CartPole-v1"}), parse_assignments(TINY), parse_assignments(assignments)]
    return build(RunConfig, layers)


def run_of(root: Path, name: str, sink: Recorder | None = None, *assignments: str) -> LocalRun:
    """A run that remembers."""
    parts = build_ppo_parts(tiny("model.history=2", *assignments))
    return ppo_run(parts, new_run(root, name, "x"), sink or Recorder())


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not(tmp_path):
    whole = run_of(tmp_path, "whole")
    assert whole.train(StopAfter()) == "done"
    halves = run_of(tmp_path, "halves")
    assert halves.train(StopAfter(3)) == "stopped"
    again = ppo_run(halves.parts, halves.folder, Recorder())
    again.resume(newest(halves.folder), "exact")
    assert again.train(StopAfter()) == "done"
    one, other = newest(whole.folder), newest(halves.folder)
    assert one.step == other.step == 64
    assert differences(one, other) == []
    assert float(one.arrays["optimiser/kl_weight"]) != 0.2  # it has moved, and is kept
    for name in ("bytes", "past"):
        np.testing.assert_array_equal(one.arrays[f"games/{name}"], other.arrays[f"games/{name}"])


def test_from_weights_games_begin_anew_and_counts_go_on(tmp_path):
    first = run_of(tmp_path, "it")
    first.train(StopAfter(2))
    again = ppo_run(first.parts, first.folder, Recorder())
    again.resume(newest(first.folder), "weights")
    assert (again.learner.steps, again.producer.rows) == (16, 256)
    assert again.train(StopAfter()) == "done"
    assert again.learner.steps == 64


def test_a_run_that_is_stopped_says_which_weights_were_measured_best(tmp_path):
    run = run_of(tmp_path, "it", None, "evaluate.every_rows=256")
    assert run.train(StopAfter(3)) == "stopped"
    assert (run.learner.steps, run.best_step) == (24, 16)
    again = ppo_run(run.parts, run.folder, Recorder())
    again.resume(newest(run.folder), "exact")
    assert again.best_step == 16


def test_reports_say_what_was_seen(tmp_path):
    sink = Recorder()
    run_of(tmp_path, "it", sink).train(StopAfter())
    played, learned, followed = sink.of(SelfPlayReport), sink.of(LearnReport), sink.of(PpoReport)
    assert followed[-1].step == 64
    assert sum(report.finished for report in played) == played[-1].games > 10
    assert set(learned[-1].losses) == {"policy", "value"}
    last = followed[-1]
    assert last.rewards == {"points": 1.0}
    assert 0 < last.entropy < np.log(2)
    assert 10 < last.mean_points < 200
    assert 2**20 < last.memory_bytes < last.memory_cap_bytes == 8 * 2**30
    match = sink.of(EvalReport)[-1]
    assert (match.opponent, match.games, match.score) == ("nobody", 4, 0.0)
    assert match.strength == match.points_per_game > 5


def test_numbers_that_are_none_stop_it(tmp_path):
    rates = ("learn.learning_rate.start=1e30", "learn.learning_rate.end=1e30")
    with pytest.raises(TrainingStopped, match="non-finite"):
        run_of(tmp_path, "it", None, *rates).train(StopAfter())


def test_the_command_starts_and_resumes_it(tmp_path):
    config = tiny("total_rows=512")
    finished = start(config, tmp_path, name="it", seconds=None, quiet=True)
    assert finished.status == "done"
    assert finished.ratings[0].opponent == "nobody"
    more = resume("it", tmp_path, "exact", ["total_rows=768"], quiet=True)
    assert more.status == "done"
    kinds = {json.loads(line)["kind"] for line in (tmp_path / "it" / "metrics.jsonl").read_text().splitlines()}
    assert {"ppo", "learn", "selfplay", "eval", "checkpoint"} <= kinds


def test_cartpole_is_learned_a_little(tmp_path):
    """The small version: random play stands for 22 moves."""
    sizes = ("total_rows=12288", "model.width=32", "selfplay.num_games=16", "selfplay.moves_per_rollout=64")
    rates = ("learn.batch_size=128", "ppo.epochs=8", "learn.learning_rate.start=3e-3", "learn.learning_rate.end=1e-3")
    config = tiny(*sizes, *rates, "evaluate.games=20", "ppo.value_clip=0")
    run = ppo_run(build_ppo_parts(config), new_run(tmp_path, "it", "x"), Recorder())
    run.train(StopAfter())
    assert run.last_eval[0].points_per_game > 100


# ---- device games, against past selves

BOARD = (
    *("total_rows=1024", "model.width=16", "model.blocks=1", "selfplay.num_games=16", "selfplay.moves_per_rollout=8"),
    *("learn.batch_size=64", "ppo.epochs=1", "ppo.opponents=2", "ppo.opponents_every=2", "evaluate.games=4"),
    *("evaluate.opponents=random", "evaluate.every_rows=0", "observe.every_seconds=0"),
)


def board_run(root: Path, name: str, *assignments: str) -> LocalRun:
    config = resolve("tictactoe", preset="ppo", assignments=[*BOARD, *assignments], environ={})
    return ppo_run(build_ppo_parts(config), new_run(root, name, "x"), Recorder())


def test_a_run_against_past_selves_goes_on_as_if_it_had_not_stopped(tmp_path):
    whole = board_run(tmp_path, "whole")
    assert whole.train(StopAfter()) == "done"
    halves = board_run(tmp_path, "halves")
    assert halves.train(StopAfter(3)) == "stopped"
    again = ppo_run(halves.parts, halves.folder, Recorder())
    again.resume(newest(halves.folder), "exact")
    assert again.train(StopAfter()) == "done"
    one, other = newest(whole.folder), newest(halves.folder)
    assert one.step == other.step == 16
    assert differences(one, other) == []
    selves = [name for name in one.arrays if name.startswith("selves/")]
    assert selves
    for name in selves:
        kept = one.arrays[name]
        np.testing.assert_array_equal(kept, other.arrays[name])
        assert kept.shape[0] == 2
    assert any((one.arrays[name][0] != one.arrays[name][1]).any() for name in selves)  # of different times
    assert whole.last_eval[0].opponent == "random"


@pytest.mark.long
def test_tictactoe_is_learned_against_past_selves(tmp_path):
    """Random play against random play scores a half; a policy that has learned loses little."""
    config = resolve("tictactoe", preset="ppo", assignments=["total_rows=98304", "evaluate.games=200",
                     "evaluate.opponents=random", "evaluate.every_rows=0", "model.blocks=1"], environ={})  # fmt: skip
    run = ppo_run(build_ppo_parts(config), new_run(tmp_path, "it", "x"), Recorder())
    assert run.train(StopAfter()) == "done"
    assert run.last_eval[0].score_low > 0.75


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("ppo.opponents=0", "is for two, who need some"),
        ("ppo.opponents=3", "a multiple of ppo.opponents"),
        ("evaluate.opponents=randm", "unknown player"),
        ("rewards.win=1", "does not measure 'won'"),
        ("model.history=1", "leave it 0"),
    ],
)
def test_settings_of_device_games_that_do_not_fit_are_refused(tmp_path, assignment, said):
    with pytest.raises(ConfigError, match=said):
        board_run(tmp_path, "it", assignment)


@pytest.mark.long
def test_tictactoe_hardly_loses_to_the_solver(tmp_path):
    """The preset: the policy alone, without a search."""
    config = resolve("tictactoe", preset="ppo", assignments=["evaluate.every_rows=0"], environ={})
    finished = start(config, tmp_path, name="it", seconds=None, quiet=True)
    against = {report.opponent: report for report in finished.ratings}
    assert against["random"].score > 0.9
    assert against["solver"].score > 0.45


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_cartpole_is_solved(tmp_path, seed):
    """At least 475 of 500 points in under three minutes on two cores."""
    config = resolve("gym:CartPole-v1", preset="quick", assignments=[f"seed={seed}"], environ={})
    finished = start(config, tmp_path, name="it", seconds=180, quiet=True)
    assert finished.status == "done"
    assert finished.ratings[0].points_per_game >= 475


LARGE = ("selfplay.moves_per_rollout=2048", "total_rows=20000000", "ppo.memory_gb=2")


def test_a_cap_that_is_too_small_says_what_fits():
    with pytest.raises(
        ConfigError, match=r"ppo.memory_gb is 2; 8192 games .* selfplay.num_games = (\d+) fits"
    ) as error:
        build_ppo_parts(tiny(*LARGE, "selfplay.num_games=8192"))
    fits = int(str(error.value).split("num_games = ")[1].split()[0])
    build_ppo_parts(tiny(*LARGE, f"selfplay.num_games={fits}"))
    with pytest.raises(ConfigError, match="fits"):
        build_ppo_parts(tiny(*LARGE, f"selfplay.num_games={fits + 1}"))
    with pytest.raises(ConfigError, match=r"memory_gb = 1\.\d+ is enough") as error:
        build_ppo_parts(tiny("ppo.memory_gb=0.5"))
    enough = str(error.value).split("memory_gb = ")[1].split()[0]
    build_ppo_parts(tiny(f"ppo.memory_gb={enough}"))


def test_as_many_games_as_fit_are_played_where_nobody_says_how_many(tmp_path, caplog):
    games = build_ppo_parts(tiny(*LARGE, "selfplay.num_games=0")).config.selfplay.num_games
    assert games > 100
    assert games % 8 == 0
    assert f"selfplay.num_games is {games}: as many as fit" in caplog.text
    build_ppo_parts(tiny(*LARGE, f"selfplay.num_games={games}"))
    with pytest.raises(ConfigError, match="fits"):
        build_ppo_parts(tiny(*LARGE, f"selfplay.num_games={games + 8}"))
    # No more than it plays in all; what was found is what a run goes on with.
    finished = start(tiny("selfplay.num_games=0", "total_rows=128"), tmp_path, name="it", quiet=True)
    assert finished.folder.read_config().selfplay.num_games == 8
    with pytest.raises(ConfigError, match="an iteration has"):
        build_ppo_parts(tiny("selfplay.num_games=0", "total_rows=512", "learn.batch_size=1024"))
    with pytest.raises(ConfigError, match="num_games is 0; it must be at least 1"):
        resolve("tictactoe", preset="quick", assignments=["selfplay.num_games=0"], environ={})


def test_on_a_cpu_a_large_minibatch_is_cut_up_to_fit(caplog):
    sizes = ("model.width=512", "learn.batch_size=131072", "selfplay.num_games=2048", "selfplay.moves_per_rollout=64")
    parts = build_ppo_parts(tiny(*sizes, "total_rows=1000000", "ppo.memory_gb=4"))
    rows = parts.config.ppo.cached_rows
    worked = worked_out_bytes(parts.model, parts.game.spec)
    assert 0 < rows * worked <= 2**30 < 2 * rows * worked
    assert f"ppo.cached_rows is {rows}" in caplog.text
    assert build_ppo_parts(tiny(*sizes, "total_rows=1000000", "ppo.memory_gb=64")).config.ppo.cached_rows == 0


def test_what_a_gradient_takes_is_no_more_than_is_counted():
    """By the compiler's own account of two sizes, so that what does not grow with the rows is left out."""
    parts = build_ppo_parts(tiny())
    weights = jax.eval_shape(parts.model.init, jax.random.key(0))

    def taken(count: int) -> int:
        seen = jax.ShapeDtypeStruct((count, *parts.game.spec.observation_shape), jnp.float32)

        def loss(weights, seen):
            output = parts.model.apply(weights, seen)
            return (jax.nn.log_softmax(output.logits) ** 2).sum() + (jax.nn.log_softmax(output.value) ** 2).sum()

        return jax.jit(jax.grad(loss)).lower(weights, seen).compile().memory_analysis().temp_size_in_bytes

    each = (taken(4096) - taken(2048)) / 2048
    counted = worked_out_bytes(parts.model, parts.game.spec)
    assert counted / 4 < each < counted


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("rewards.wim=1", "rewards.win"),
        ("rewards.money=1", "does not measure"),
        ("model.value=scalar", "model.value 'twohot'"),
        ("replay.log=true", "replay.log must be false"),
        ("producers.workers=2", "plays in threads"),
        ("learn.batch_size=4096", "an iteration has"),
        ("evaluate.opponents=random", "write 'nobody'"),
        ("model.kind=balatro", "sees 1458 numbers of Balatro"),
        ("ppo.clip=0", "clip is 0"),
        ("ppo.opponents=2", "is for one, who has none"),
        ("ppo.teacher=greedy", "give both, or neither"),
        ("model.history=-1", "history is -1"),
    ],
)
def test_settings_that_do_not_fit_are_refused(assignment, said):
    with pytest.raises(ConfigError, match=said):
        build_ppo_parts(tiny(assignment))


def test_the_horizon_grows_when_enough_games_reach_it(tmp_path):
    run = run_of(tmp_path, "it", None)
    player = run.producer
    assert isinstance(player, HostPlay)
    player.horizon = 2
    reached = Played(1, 10, 0, 1.0, 1.0, 1.0, {}, np.zeros(13, int), 10, 2)
    for _ in range(6):  # 1 - 0.9 ** 6 is below a half
        player._grow(reached)
    assert player.horizon == 2
    player._grow(reached)
    assert (player.horizon, player.facts()["reached"]) == (3, 0.0)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, []),
        ({"kl": 0.11}, ["policy moves too far"]),
        ({"kl": 0.11, "kl_target": 0.0}, []),
        ({"memory_bytes": 90}, []),
        ({"memory_bytes": 91}, ["memory near its cap"]),
    ],
)
def test_alarms(changes, names):
    assert [alarm.name for alarm in alarms_of(examples.ppo(**changes))] == names


def _held(size: int) -> np.ndarray:
    """Memory that this process did not have before, where `np.ones` may be given what was freed."""
    array = np.frombuffer(mmap.mmap(-1, size), np.uint8)
    array[:] = 1
    return array


def test_resident_memory_is_this_process():
    before = resident_bytes()
    held = _held(40 * 2**20)
    assert resident_bytes() - before > 20 * 2**20
    assert held.sum() > 0


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the system keeps no count to begin anew")
def test_what_was_held_between_two_reports_is_seen():
    """An update's room is taken and given back before anybody looks."""
    most_resident_bytes()
    before = resident_bytes()
    assert _held(200 * 2**20).any()
    assert most_resident_bytes() - before > 100 * 2**20
    assert most_resident_bytes() - before < 100 * 2**20


def test_the_alarm_comes_when_a_report_sees_the_cap_near(tmp_path, monkeypatch):
    """Said once, before the cap is reached, and kept in what the run says of itself."""
    held = iter([4 * 2**30, *[int(7.5 * 2**30)] * 100])
    monkeypatch.setattr("aleazero.runtimes.ppo.most_resident_bytes", lambda: next(held))
    sink = Recorder()
    run_of(tmp_path, "it", sink, "total_rows=512").train(StopAfter())
    assert len(sink.of(PpoReport)) > 2
    told = [report for report in sink.of(AlarmReport) if report.name == "memory near its cap"]
    assert [report.rows for report in told] == [sink.of(PpoReport)[1].rows]
    assert "7.50 GiB of the 8.00" in told[0].message
