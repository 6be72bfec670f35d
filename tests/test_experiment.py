"""Experiments: a real one, stopped and killed on its way; the statistics on made-up curves; files that are wrong."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aleazero import __version__
from aleazero import checkpoint as checkpoints
from aleazero.cli.experiment import report
from aleazero.cli.main import run
from aleazero.core.errors import ConfigError
from aleazero.core.settings import fingerprint
from aleazero.experiment import statistics
from aleazero.experiment.clock import Clock, read_clock
from aleazero.experiment.plan import WRONG_MOVES, Measure, read_plan
from aleazero.experiment.result import Done, summarise
from aleazero.experiment.run import ExperimentError, measurements, run_experiment
from aleazero.experiment.statistics import Series
from aleazero.observe.jsonl import read_jsonl
from aleazero.play.ratings import Interval
from aleazero.runs import RunFolder
from tests.frozen.shape import check_file, shape_of

pytestmark = pytest.mark.slow

os.environ.setdefault("ALEA_BALATRO_PLAIN", "1")  # the same functions, nothing to compile
ROOT = Path(__file__).parents[1]
T_3, T_2 = 4.302652730, 12.706204736  # Student's t at 97.5 %: three seeds, two seeds (from printed tables)
SECONDS = 300.0  # no step of the real experiment takes as long

# Without a search, so that it compiles in seconds; the variants share their compiled programs.
TINY = """
name = "tiny"
game = "tictactoe"
preset = "quick"
seeds = [0, 1]
measure = ["random"]
rate = true
[base]
total_rows = 4_096
search = { kind = "direct" }
model = { kind = "mlp", width = 16, blocks = 0 }
selfplay = { num_games = 32, moves_per_rollout = 8 }
replay = { capacity_rows = 4_096, min_rows = 256 }
loss.augment = false
learn = { batch_size = 64, updates_per_call = 4 }
evaluate = { every_rows = 2_048, games = 20 }
checkpoint.every_rows = 1_024
[variants.still]
learn.learning_rate = { start = 0.0, end = 0.0 }
[variants.learning]
"""
SCORE = "score against random"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's runs, and no cache of compiled programs that tests to come would find switched on."""
    monkeypatch.delenv("ALEA_RUNS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)


# ---- the real one


class Command:
    """`alea experiment` as a process of its own, on one folder."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.file, self.out = folder / "tiny.toml", folder / "out"
        self.file.write_text(TINY)
        self._environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "JAX_PLATFORMS": "cpu",
            "JAX_COMPILATION_CACHE_DIR": str(cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # compiling is nearly all that these runs do
        }

    def begin(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "aleazero.cli.main", "experiment", str(self.file), "--out", str(self.out)]
        return subprocess.Popen(
            [*command, *options], env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def kill_in(self, name: str) -> None:
        """Runs until the run `name` has a checkpoint, and no further."""
        process = self.begin()
        end = time.monotonic() + SECONDS
        while not checkpoints.steps(self.out / "runs" / name / "checkpoints"):
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                pytest.fail(f"{name} never saved: {process.communicate()}")
            time.sleep(0.005)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL

    def statuses(self, name: str) -> list[str]:
        records = read_jsonl(self.out / "runs" / name / "metrics.jsonl")
        return [record["status"] for record in records if record["kind"] == "run"]

    def metrics(self, name: str) -> bytes:
        return (self.out / "runs" / name / "metrics.jsonl").read_bytes()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Command, dict[str, Any]]:
    """The experiment, killed in its second run, and then run to its end."""
    command = Command(tmp_path_factory.mktemp("experiment"), tmp_path_factory.getbasetemp() / "compiled")
    command.kill_in("learning-s0")
    assert command.statuses("still-s0") == ["started", "done"]
    assert command.statuses("learning-s0") == ["started"]
    assert not (command.out / "result.json").exists()
    done_before = command.metrics("still-s0")

    process = command.begin("--json")
    printed, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    assert command.metrics("still-s0") == done_before  # what is done is not repeated
    assert command.statuses("learning-s0") == ["started", "resumed", "done"]
    assert command.statuses("still-s1") == command.statuses("learning-s1") == ["started", "done"]
    return command, json.loads(printed)


def test_the_result_says_what_was_run(tiny: tuple[Command, dict[str, Any]]) -> None:
    command, result = tiny
    assert json.loads((command.out / "result.json").read_text()) == result
    assert (result["name"], result["game"], result["seeds"]) == ("tiny", "tictactoe", [0, 1])
    assert result["version"] == __version__
    assert result["command"] == f"alea experiment {command.file} --out {command.out}"
    assert [run["run"] for run in result["runs"]] == ["still-s0", "learning-s0", "still-s1", "learning-s1"]
    plan = read_plan(command.file)
    for entry in result["runs"]:
        config = plan.config(entry["variant"], entry["seed"])
        assert entry["config"] == fingerprint(config)
        newest = checkpoints.newest(command.out / "runs" / entry["run"] / "checkpoints", pytest.fail)
        assert newest is not None
        assert newest.facts["config"] == entry["config"]
        assert entry["rows"] == newest.facts["rows"] == 4_096
    assert len({entry["config"] for entry in result["runs"]}) == 4


def test_the_result_is_what_the_runs_reported(tiny: tuple[Command, dict[str, Any]]) -> None:
    command, result = tiny
    scores: dict[str, list[list[float]]] = {}
    for variant, seed in itertools.product(("still", "learning"), (0, 1)):
        records = read_jsonl(command.out / "runs" / f"{variant}-s{seed}" / "metrics.jsonl")
        matches = [record for record in records if record["kind"] == "eval"]
        assert [match["rows"] for match in matches] == [2048, 4096]
        scores.setdefault(variant, []).append([match["score"] for match in matches])
        (entry,) = (run for run in result["runs"] if run["run"] == f"{variant}-s{seed}")
        assert entry["measures"][SCORE]["value"] == scores[variant][-1]
        assert entry["compile_seconds"] > 0
        told = next(record for record in reversed(records) if record["kind"] == "run")
        assert entry["seconds"] + entry["compile_seconds"] == pytest.approx(told["seconds"])
        seconds = entry["measures"][SCORE]["seconds"]
        assert 0 < seconds[0] <= seconds[-1] <= entry["seconds"]
    for variant, table in scores.items():
        found = result["variants"][variant]["measures"][SCORE]
        assert found["curves"]["rows"]["x"] == [2048, 4096]
        np.testing.assert_allclose(found["curves"]["rows"]["mean"], np.mean(table, 0))
        assert found["final"]["value"] == pytest.approx(np.mean([row[-1] for row in table]))
    difference = result["variants"]["learning"]["measures"][SCORE]["difference"]
    by_seed = [a[-1] - b[-1] for a, b in zip(scores["learning"], scores["still"], strict=True)]
    assert difference["value"] == pytest.approx(np.mean(by_seed))
    assert difference["high"] - difference["value"] >= T_2 * np.std(by_seed, ddof=1) / math.sqrt(2) - 1e-9
    assert "difference" not in result["variants"]["still"]["measures"][SCORE]
    wrong = [result["variants"][name]["measures"][WRONG_MOVES]["final"]["value"] for name in ("still", "learning")]
    assert all(0.05 < share < 0.8 for share in wrong)  # neither perfect nor worse than any random network
    assert wrong[0] != wrong[1]


def test_the_plot_has_every_variant_in_both_panels(tiny: tuple[Command, dict[str, Any]]) -> None:
    texts = [element.text for element in ET.parse(tiny[0].out / "curves.svg").iter() if element.text]
    assert texts.count("still") == texts.count("learning") == 2
    assert texts.count(SCORE) == 2
    assert {"tiny", "rows played"} <= set(texts)


def test_a_finished_experiment_is_only_reported(
    tiny: tuple[Command, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, result = tiny
    file = tmp_path / "again.toml"
    file.write_text(without(TINY, "rate = true"))  # which takes its time, and is no part of the runs' settings
    names = [run["run"] for run in result["runs"]]
    before = {name: command.metrics(name) for name in names}
    assert run(["experiment", str(file), "--out", str(command.out)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("was done before") == 4
    assert {name: command.metrics(name) for name in names} == before
    final = result["variants"]["learning"]["measures"][SCORE]["final"]
    assert f"{final['value']:.3f} ({final['low']:.3f} to {final['high']:.3f})" in printed
    assert str(command.out / "curves.svg") in printed


def test_runs_of_other_settings_are_not_taken_for_ours(
    tiny: tuple[Command, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, _ = tiny
    other = tmp_path / "other.toml"
    other.write_text(TINY.replace("batch_size = 64", "batch_size = 32"))
    assert run(["experiment", str(other), "--out", str(command.out)]) == 2
    said = capsys.readouterr().err
    assert said.count("learn.batch_size is 64, the file says 32") == 4  # every run, at once
    assert "--out" in said


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    (tmp_path / "out").write_text("a file")
    assert run(["experiment", str(tmp_path / "tiny.toml"), "--out", str(tmp_path / "out")]) == 1
    assert f"could not make {tmp_path / 'out' / 'runs'}" in capsys.readouterr().err


def test_a_stop_ends_the_experiment_and_not_only_its_run(tmp_path: Path) -> None:
    file, out = tmp_path / "tiny.toml", tmp_path / "out"
    file.write_text(TINY)
    first = RunFolder(out / "runs" / "still-s0")

    def stop() -> None:  # as `alea runs stop` does
        while not first.metrics_file.exists():
            time.sleep(0.005)
        first.stop_file.touch()

    with ThreadPoolExecutor(1) as thread:
        stopped = thread.submit(stop)
        with pytest.raises(ExperimentError, match="stopped in run still-s0; the same command goes on"):
            run_experiment(read_plan(file), out, "", lambda line: None)
        stopped.result()
    assert [path.name for path in (out / "runs").iterdir()] == ["still-s0"]
    assert not (out / "result.json").exists()


# ---- statistics


def series(value: Sequence[float], rows: Sequence[float], seconds: Sequence[float], noise: float = 0.0) -> Series:
    """A run whose measurements have this standard error."""
    half = 1.959963985 * noise
    numbers = np.array(value, np.float64)
    return Series(np.array(rows, float), np.array(seconds, float), numbers, numbers - half, numbers + half)


def test_an_interval_is_students_t_over_seeds() -> None:
    runs = [series([v], [10], [1]) for v in (0.5, 0.7, 0.9)]
    half = T_3 * 0.2 / math.sqrt(3)
    found = statistics.final(runs)
    assert (found.value, found.high - found.value) == pytest.approx((0.7, half))
    bounded = statistics.final(runs, (0.0, 1.0))
    assert (bounded.low, bounded.high) == pytest.approx((0.7 - half, 1.0))


def test_seeds_that_agree_do_not_make_matches_exact() -> None:
    found = statistics.final([series([1.0], [10], [1], noise=0.03)] * 4)
    assert found.high - found.value == pytest.approx(1.959963985 * 0.03 / 2)
    wide = [series([v], [10], [1], noise=0.03) for v in (0.2, 0.8)]
    assert statistics.final(wide).high - 0.5 == pytest.approx(T_2 * 0.6 / 2)  # not both


def test_one_seed_has_the_interval_of_its_match_and_shows_no_difference() -> None:
    alone = dataclasses.replace(series([0.9], [10], [1]), low=np.array([0.8]), high=np.array([0.95]))
    assert statistics.final([alone]) == Interval(0.9, 0.8, 0.95)
    band = statistics.mean_curve([alone], "rows")
    assert (band.low[0], band.high[0]) == (0.8, 0.95)
    difference = statistics.final_difference([alone], [series([0.1], [10], [1])])
    assert (difference.value, difference.low, difference.high) == (pytest.approx(0.8), -math.inf, math.inf)
    assert statistics.verdict(difference, True) == "no difference shown"


def test_differences_are_paired_by_seed() -> None:
    """Seeds far apart from one another, and a variant that is better by about 0.1 in each of them."""
    base = [series([v], [10], [1]) for v in (0.1, 0.5, 0.8)]
    better = [series([v], [10], [1]) for v in (0.2, 0.61, 0.89)]
    found = statistics.final_difference(better, base)
    gaps = np.array([0.1, 0.11, 0.09])
    assert found.value == pytest.approx(0.1)
    assert found.value - found.low == pytest.approx(T_3 * gaps.std(ddof=1) / math.sqrt(3))
    assert statistics.verdict(found, True) == "helps"
    assert statistics.verdict(found, False) == "hurts"
    assert statistics.verdict(statistics.final_difference(base, better), True) == "hurts"
    mixed = statistics.final_difference([*better[:2], base[0]], [*base[:2], better[2]])
    assert statistics.verdict(mixed, True) == "no difference shown"


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.2), (-0.2, 0.0), (-0.1, 0.1), (math.nan, math.nan)])
def test_an_interval_that_holds_0_shows_nothing(low: float, high: float) -> None:
    assert statistics.verdict(Interval(0.05, low, high), True) == "no difference shown"


def test_a_variant_is_also_compared_at_equal_seconds() -> None:
    """At the end it is ahead; but it took twice as long, and was behind when the other was done."""
    base = [series([0.0, 0.8], [0, 100], [0, 10]), series([0.0, 0.82], [0, 100], [0, 11])]
    slow = [series([0.0, 1.0], [0, 100], [0, 20]), series([0.0, 1.0], [0, 100], [0, 20])]
    assert statistics.final_difference(slow, base).value == pytest.approx(0.19)
    seconds, found = statistics.difference_in_time(slow, base) or (0.0, Interval(0, 0, 0))
    assert seconds == 10
    by_seed = np.array([0.5 - 0.8, 0.5 - 0.82 * 10 / 11])
    assert found.value == pytest.approx(by_seed.mean())
    assert found.high - found.value == pytest.approx(T_2 * by_seed.std(ddof=1) / math.sqrt(2))
    late = [series([0.5, 0.6], [50, 100], [30, 40])] * 2
    assert statistics.difference_in_time(late, base) is None


def increasing(low: float) -> st.SearchStrategy[list[float]]:
    gaps = st.lists(st.floats(0.5, 9.0), min_size=1, max_size=6)
    return gaps.map(lambda found: np.cumsum([low, *found]).tolist())


@given(st.lists(increasing(1.0), min_size=2, max_size=4), st.integers(0, 2**32 - 1))
def test_a_mean_curve_is_the_mean_of_the_curves_wherever_all_of_them_are(xs: list[list[float]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    xs = [[x + shift for x in line] for line, shift in zip(xs, rng.uniform(0, 0.5, len(xs)), strict=True)]
    runs = [series(rng.uniform(size=len(x)).tolist(), x, x) for x in xs]
    first, last = max(x[0] for x in xs), min(x[-1] for x in xs)
    for axis in ("rows", "seconds"):
        band = statistics.mean_curve(runs, axis)
        assert (band.x[0], band.x[-1]) == (first, last)
        at = np.linspace(first, last, 57)
        mean = np.mean([np.interp(at, x, run.value) for x, run in zip(xs, runs, strict=True)], 0)
        np.testing.assert_allclose(np.interp(at, band.x, band.mean), mean, atol=1e-12)
        here = np.array([np.interp(band.x, x, run.value) for x, run in zip(xs, runs, strict=True)])
        tail = {2: 12.706204736, 3: 4.302652730, 4: 3.182446305}[len(runs)]
        np.testing.assert_allclose(band.high - band.mean, tail * here.std(0, ddof=1) / math.sqrt(len(runs)), atol=1e-9)


def test_curves_that_never_meet_have_no_mean() -> None:
    band = statistics.mean_curve([series([0.1, 0.2], [1, 2], [1, 2]), series([0.3, 0.4], [1, 2], [5, 6])], "seconds")
    assert len(band.x) == len(band.mean) == len(band.low) == 0


# ---- reports and clocks


def match(rows: int, seconds: float, score: float, opponent: str = "random", **more: Any) -> dict[str, Any]:
    ends = {"score_low": score - 0.1, "score_high": score + 0.1, "points_low": None, "points_high": None}
    return {
        "kind": "eval", "rows": rows, "seconds": seconds, "time": 1000 + seconds, "opponent": opponent,
        "score": score, "points_per_game": 2 * score - 1, **ends, **more,
    }  # fmt: skip


def test_of_a_run_that_went_back_the_later_measurements_count() -> None:
    records = [
        {"kind": "run", "status": "started", "time": 1000, "seconds": 0.0},
        match(10, 5.0, 0.5),
        match(10, 5.1, 0.9, opponent="solver"),
        match(20, 30.0, 0.6),
        match(20, 12.0, 0.7, time=1100),
        match(30, 25.0, 0.8, time=1200),
        match(40, 31.0, 0.85, time=1300),
    ]
    still = Clock(((1000.0, 0.0),), ())
    found = measurements(records, Measure("", "score", "random"), still)
    assert found.rows.tolist() == [10, 20, 30, 40]
    assert found.value.tolist() == [0.5, 0.7, 0.8, 0.85]
    assert found.seconds.tolist() == [5.0, 12.0, 25.0, 31.0]
    assert found.high.tolist() == pytest.approx([0.6, 0.8, 0.9, 0.95])
    points = measurements(records, Measure("", "points", "random"), still)
    assert points.value.tolist() == pytest.approx([0.0, 0.4, 0.6, 0.7])
    assert points.low.tolist() == [-math.inf] * 4  # null: the match says nothing of the spread
    backwards = measurements([match(10, 30.0, 0.5), match(20, 12.0, 0.6)], Measure("", "score", "random"), still)
    assert backwards.seconds.tolist() == [30.0, 30.0]


def test_the_clock_leaves_out_what_was_compiled_and_counts(tmp_path: Path) -> None:
    """Killed at second 50 of its first stretch; its checkpoint was of second 20. Some times lie within others."""
    spans = [(981, 990), (1006, 1010), (1007, 1008), (1009, 1011), (1018, 1040), (1112, 1115), (1113, 1114)]
    file = tmp_path / "compiled.jsonl"
    file.write_text("".join(json.dumps({"time": stop, "seconds": stop - start}) + "\n" for start, stop in spans))
    records = [
        {"kind": "run", "status": "started", "time": 1000.0, "seconds": 0.0},
        {"kind": "eval", "time": 1015.0, "seconds": 15.0},
        {"kind": "run", "status": "resumed", "time": 1100.0, "seconds": 20.0},
        {"kind": "run", "status": "done", "time": 1120.0, "seconds": 40.0},
    ]
    clock = read_clock(records, file)
    assert clock.seconds({"time": 1005.0, "seconds": 5.0}) == 5.0  # before it began is before it counts
    assert clock.seconds(records[1]) == 15.0 - 5.0
    assert clock.seconds({"time": 1105.0, "seconds": 25.0}) == 25.0 - 5.0 - 2.0  # of the 22 two before the checkpoint
    assert clock.seconds(records[3]) == 40.0 - 5.0 - 2.0 - 3.0
    assert read_clock(records, tmp_path / "none.jsonl").seconds(records[3]) == 40.0


def made_up(tmp_path: Path, scores: dict[str, list[float]], noise: float = 0.0) -> dict[str, Any]:
    """The result of runs with these last scores, without any run."""
    seeds = len(next(iter(scores.values())))
    file = tmp_path / "made_up.toml"
    text = without(TINY, "rate = true").replace("seeds = [0, 1]", f"seeds = {list(range(seeds))}")
    file.write_text(f"{text}learn.clip = inf\n")
    plan = read_plan(file)
    done = [
        Done(name, seed, f"{name}-s{seed}", "0" * 16, 20, 2.0, 1.0, {SCORE: series([0.5, s], [10, 20], [1, 2], noise)})
        for name, found in scores.items()
        for seed, s in enumerate(found)
    ]
    return summarise(plan, done, "alea experiment made_up.toml")


def test_help_is_claimed_only_where_the_interval_excludes_0(tmp_path: Path) -> None:
    shown = report(made_up(tmp_path, {"still": [0.5, 0.6, 0.7], "learning": [0.8, 0.91, 0.99]}))
    assert any(line.startswith("learning helps, compared with still at the end: +0.300") for line in shown)
    shown = report(made_up(tmp_path, {"still": [0.5, 0.6, 0.7], "learning": [0.9, 0.5, 0.9]}))
    assert any(line.startswith("learning: no difference shown, compared with still") for line in shown)
    assert not any("helps" in line or "hurts" in line for line in shown)
    shown = report(made_up(tmp_path, {"still": [0.8, 0.9], "learning": [0.2, 0.3]}, noise=0.01))
    assert any(line.startswith("learning hurts") for line in shown)


def test_the_result_has_its_shape(tmp_path: Path, regenerate: bool) -> None:
    result = made_up(tmp_path, {"still": [0.5, 0.6, 0.7], "learning": [0.8, 0.91, 0.99]})
    names = ("runs[].measures", "variants", "variants.*.measures")
    check_file("json/experiment.txt", shape_of({**result, "settings": {}}, names), regenerate)


def test_a_single_seed_is_reported_and_claims_nothing(tmp_path: Path) -> None:
    result = made_up(tmp_path, {"still": [0.2], "learning": [0.9]}, noise=0.01)
    assert json.loads(json.dumps(result, allow_nan=False)) == result  # what JSON cannot say is not in it
    assert result["settings"]["variants"]["learning"] == {"learn": {"clip": "inf"}}
    assert result["variants"]["learning"]["measures"][SCORE]["difference"]["low"] is None
    shown = "\n".join(report(result))
    assert "as there is one seed" in shown
    assert "+0.700 (no interval)" in shown
    assert "learning: no difference shown" in shown


# ---- files


def without(text: str, *lines: str) -> str:
    for line in lines:
        assert line in text
        text = text.replace(line, "")
    return text


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda t: t.replace("seeds =", "seed ="), ["unknown key seed", "[base]", "seeds is missing"]),
        (lambda t: t.replace("[variants.", "[varaints."), ["unknown key varaints", "did you mean variants?"]),
        (lambda t: without(t, "[variants.learning]"), ["variants", ": 1; write two or more"]),
        (lambda t: t.replace("[0, 1]", "[0, 0, -1, 4294967296]"), ["seeds names 0 more", "has -1", "has 4294967296"]),
        (lambda t: t.replace("[0, 1]", "[]"), ["seeds is empty"]),
        (lambda t: t.replace("batch_size", "bach_size"), ["did you mean learn.batch_size?", "[base]"]),
        (lambda t: t + "learn.learning_rat.start = 1.0", ["learn.learning_rate", "[variants.learning]"]),
        (lambda t: t + "seed = 3", ["[variants.learning] sets seed"]),
        (lambda t: t + 'evaluate.opponents = ["solver"]', ["[variants.learning] sets evaluate.opponents", "measure"]),
        (lambda t: t + "learn.learning_rate = { start = 0.0, end = 0.0 }", ["still", "the same settings"]),
        (lambda t: t + "replay.capacity_rows = 300", ["variant learning: replay.capacity_rows is 300"]),
        (lambda t: t + "selfplay.exploration = -1.0", ["variant learning: exploration is -1.0"]),
        (lambda t: t.replace('"random"', '"randm"'), ["unknown player 'randm': did you mean 'random'"]),
        (lambda t: t.replace('measure = ["random"]', 'measure = "random"'), ["measure is 'random'", "a list"]),
        (lambda t: t.replace('"tictactoe"', '"tictacto"'), ["did you mean 'tictactoe'"]),
        (lambda t: t.replace('"tictactoe"', '"quoridor"').replace("4_096", "90_000"), ["quoridor is not solved"]),
        (lambda t: t.replace('"quick"', '"quik"'), ["unknown preset 'quik'"]),
        (lambda t: t.replace('"tiny"', '"../tiny"'), ["name is '../tiny'"]),
        (lambda t: t.replace("[variants.learning]", '[variants."a/b"]'), ["'a/b' is no name"]),
        (lambda t: without(t, "[base]").replace("total_rows", "base = 3\ntotal_rows"), ["base", "3; it must be a t"]),
        (lambda t: t + "= 3", ["line"]),
    ],
)  # fmt: skip
def test_a_wrong_file_is_explained(edit: Callable[[str], str], said: list[str], tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(edit(TINY))
    with pytest.raises(ConfigError) as refused:
        read_plan(file)
    assert [text for text in said if text not in str(refused.value)] == []


def test_all_problems_are_said_at_once_and_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong.toml"
    text = TINY.replace("preset", "preste").replace("[0, 1]", "[-1]").replace('"random"', '"nobody"')
    file.write_text(text.replace("width = 16", "widht = 16") + "learn.clip = 0.0\n")
    assert run(["experiment", str(file), "--out", str(tmp_path / "out")]) == 2
    lines = capsys.readouterr().err.splitlines()
    for part in ("did you mean preset?", "seeds has -1", "did you mean model.width?", "clip is 0.0"):
        assert len([line for line in lines if part in line]) <= 1, lines  # what all variants share is said once
        assert any(part in line for line in lines), (part, lines)
    assert not (tmp_path / "out").exists()


def test_an_opponent_that_is_a_run_is_found_where_runs_are_kept(
    tiny: tuple[Command, dict[str, Any]], tmp_path: Path
) -> None:
    file = tmp_path / "against.toml"
    file.write_text(TINY.replace('["random"]', '["run:still-s0@4,search=none", "random"]'))
    root = tiny[0].out / "runs"
    step = checkpoints.steps(root / "still-s0" / "checkpoints")[-1]
    file.write_text(file.read_text().replace("@4", f"@{step}"))
    plan = read_plan(file, root)
    assert [measure.name for measure in plan.measures[:2]] == [f"score against run:still-s0@{step},search=none", SCORE]
    expected = f"run:{(root / 'still-s0').resolve()}@{step},search=none"
    assert plan.configs["still"].evaluate.opponents == (expected, "random")
    assert plan.measures[0].opponent == expected
    with pytest.raises(ConfigError, match="still-s0"):
        read_plan(file, tmp_path)


@pytest.mark.parametrize("file", sorted((ROOT / "examples" / "experiments").glob("*.toml")), ids=lambda file: file.stem)
def test_the_examples_could_start(file: Path) -> None:
    assert len(read_plan(file).seeds) > 1


# ---- games for one


GRAPH_PLAN = ROOT / "docs" / "results" / "experiments" / "balatro-graph.toml"


def test_the_graphs_plan_can_be_run(tmp_path: Path) -> None:
    plan = read_plan(GRAPH_PLAN)
    assert {name: config.model.graph for name, config in plan.configs.items()} == {
        name: name for name in ("none", "graph", "permuted", "random")
    }
    assert {config.model.graph_width for config in plan.configs.values()} == {128}
    assert [measure.name for measure in plan.measures] == ["points", "wins", "mean ante", "ante-1 clear"]
    (tmp_path / "rated.toml").write_text(GRAPH_PLAN.read_text().replace("[0, 1, 2]", "[0]\nrate = true"))
    with pytest.raises(ConfigError, match="solved"):
        read_plan(tmp_path / "rated.toml")


@pytest.mark.long
def test_games_for_one_are_compared_by_their_points(tmp_path: Path) -> None:
    """The same file, made tiny, to its end."""
    tiny = GRAPH_PLAN.read_text()[: GRAPH_PLAN.read_text().index("[variants.permuted]")]
    for old, new in (
        ("[0, 1, 2]", "[0]"),
        ("1_000_000", "256"),
        ("width = 256", "width = 8"),
        ("num_games = 128, moves_per_rollout = 64", "num_games = 8, moves_per_rollout = 32"),
        ("batch_size = 1024", "batch_size = 128"),
        ("every_rows = 250_000, games = 1000", "every_rows = 0, games = 2"),
        ("every_rows = 500_000", "every_rows = 256"),
    ):
        assert old in tiny
        tiny = tiny.replace(old, new)
    (tmp_path / "tiny.toml").write_text(tiny)
    result = run_experiment(read_plan(tmp_path / "tiny.toml"), tmp_path / "out", "", lambda line: None)
    graph = result["variants"]["graph"]["measures"]["points"]
    assert graph["difference"]["verdict"]
    assert graph["final"]["value"] >= 0.0
