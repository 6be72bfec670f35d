"""Every kind runs for real, in its smallest version: what it reports, what it writes, what it refuses."""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from aleazero.bench import measure, memory, profiles, searches, suite
from aleazero.bench.__main__ import _parser, main
from aleazero.bench.cases import BenchError, Case, Options, Setup, Unsuited, game_of
from aleazero.bench.command import read_options
from aleazero.bench.measure import Rate, Size
from aleazero.bench.profiles import ProfileError
from aleazero.bench.report import Report
from aleazero.bench.suite import KINDS, Outcome, command_line, run
from aleazero.bench.timing import Timing
from aleazero.core.errors import ConfigError, MissingExtra, UnknownName

TINY = ("model.width=8", "model.blocks=1", "search.kind=direct", "selfplay.num_games=8", "selfplay.moves_per_rollout=4")


def bench(kind: str, game: str = "tictactoe", **options: Any) -> Outcome:
    outcome = run(Options(kind, game, **{"batch_sizes": (4,), **options}))
    written = json.loads((outcome.folder / "bench.json").read_text())
    assert written == json.loads(json.dumps(outcome.report.as_json()))
    assert (outcome.folder / "bench.png").read_bytes().startswith(b"\x89PNG")
    assert (written["kind"], written["game"], written["batch"]) == (kind, game, outcome.report.best.batch)
    assert written["throughput_low"] <= written["throughput"] <= written["throughput_high"]
    assert outcome.exit_code == 0
    return outcome


# ---- kinds


def test_rules_beside_pgx(data: Path) -> None:
    outcome = bench("game-env", compare="pgx", batch_sizes=(8, 4))
    report = outcome.report.as_json()
    assert outcome.folder.parent == data / "bench"
    assert [size["batch"] for size in report["sizes"]] == [4, 8]
    assert report["unit"] == "steps/s"
    assert report["peer"] == "pgx"
    assert report["ratio_low"] <= report["ratio"] <= report["ratio_high"]
    first = report["sizes"][0]
    assert set(first["rates"]) == {"ours", "pgx"}
    assert 6.5 < first["facts"]["steps_per_game"] < 9
    assert first["memory"]["peak"] >= first["memory"]["in_use"] > 10**8
    assert [panel.title.split()[0] for panel in outcome.report.panels()] == ["Throughput", "Memory"]


def test_a_search_beside_mctx_on_the_same_rules_with_our_own_figure_beside() -> None:
    outcome = bench("mcts", num_simulations=(2,), width=8, blocks=1, compare="mctx")
    size = outcome.report.best
    names = ["puct 2", "network", "puct 2, Pgx rules", "mctx puct 2", "network, Pgx rules"]
    assert list(size.rates) == names
    assert set(size.shares) == {"puct 2", "puct 2, Pgx rules"}
    assert {case: ratio.peer for case, ratio in size.ratios.items()} == {"puct 2, Pgx rules": "mctx puct 2"}
    report = outcome.report.as_json()
    assert (report["peer"], report["compared"]) == ("mctx", "puct 2, Pgx rules")
    assert report["unit"] == "simulations/s"


def test_boards_can_be_seen_by_a_cnn() -> None:
    options = Options("network", "tictactoe", network="cnn", width=8, blocks=1)
    setup = Setup(options, game_of("connect_four"), memory.room(None))
    _, weights = searches._bare_network(setup, setup.game.spec)
    assert weights["stem"]["kernel"].shape[:2] == (3, 3)
    with pytest.raises(ConfigError, match="not \\[rows, columns, planes\\]"):
        searches._bare_network(setup, game_of("backgammon").spec)
    with pytest.raises(ConfigError, match="--network is 'rnn'; allowed: mlp, cnn"):
        bench("network", network="rnn")
    with pytest.raises(ConfigError, match="leave --network, --width and --blocks out"):
        bench("network", network="cnn", player="bundled")


def test_a_pgx_game_is_compared_as_it_is_with_our_rules_beside() -> None:
    options = Options("mcts", "pgx:backgammon", compare="mctx")
    setup = Setup(options, game_of("pgx:backgammon"), memory.room(None))
    assert [(suffix, game.spec.name) for suffix, game in searches._tables(setup)] == [
        ("", "pgx:backgammon"),
        (", our rules", "backgammon"),
    ]
    ours = dataclasses.replace(setup, game=game_of("backgammon"))
    assert [game.spec.name for _, game in searches._tables(ours)] == ["backgammon", "pgx:backgammon"]


def test_a_search_with_chance_nodes() -> None:
    options = {"num_simulations": (2,), "width": 8, "blocks": 1, "sets": ("search.chance=exact",)}
    size = bench("stochastic-mcts", "pig", **options).report.best
    assert list(size.rates) == ["puct 2", "network"]
    assert size.shares["puct 2"].ratio == pytest.approx(
        size.rates["puct 2"].per_second / size.rates["network"].per_second, rel=0.5
    )


def test_whole_turns() -> None:
    outcome = bench("expectimax", "backgammon", batch_sizes=(1,), width=8, blocks=1)
    size = outcome.report.best
    assert size.rate.unit == "turns"
    assert size.facts["milliseconds"] == pytest.approx(1000 / size.rate.per_second)


def test_the_network_with_what_it_sees() -> None:
    size = bench("network", features=True, width=8, blocks=1).report.best
    assert [(name, rate.unit) for name, rate in size.rates.items()] == [
        ("features and network", "positions"),
        ("network", "evaluations"),
    ]
    assert 0 <= size.facts["features_share"] < 1


@pytest.mark.parametrize(("game", "says"), [("backgammon", [(3, 6)]), ("connect_four", [(3, 7), (3,)])])
def test_a_players_network_says_all_that_it_has_to_say(game: str, says: list[tuple[int, ...]]) -> None:
    """Outcomes alone where it has no policy, else logits and a value."""
    setup = Setup(Options("network", game, player="bundled"), game_of(game), memory.room(None))
    judge, weights = searches._judge(setup)
    seen = jax.ShapeDtypeStruct((3, *setup.game.spec.observation_shape), np.float32)
    assert [leaf.shape for leaf in jax.tree.leaves(jax.eval_shape(judge, weights, seen))] == says


def test_updates() -> None:
    size = bench("train-step", preset="quick", sets=(*TINY, "learn.updates_per_call=2")).report.best
    assert size.rate.unit == "rows"


def test_draws_and_insertions_of_rings_side_by_side() -> None:
    size = bench("replay", preset="quick", sets=TINY, rows=(200, 1000)).report.best
    assert list(size.rates) == ["drawn 192", "drawn 992", "inserted 192", "inserted 992"]
    assert set(size.facts) == {"drawing, last over first", "inserting, last over first"}


def test_self_play_end_to_end() -> None:
    outcome = bench("selfplay", preset="quick", sets=TINY, batch_sizes=(16,))
    size = outcome.report.best
    assert size.rate.unit == "rows"
    assert 5 <= size.rate.per_second / size.facts["games_per_second"] <= 9  # moves of a game of tic-tac-toe
    assert outcome.report.settings == {"preset": "quick", "sets": list(TINY)}


def test_cost_along_a_series() -> None:
    def case(name: str, budget: int, seconds: float) -> tuple[Case, Timing]:
        made = Case(name, "simulations", 10 * budget, lambda number: None, series=(name.rpartition(" ")[0], budget))
        return made, Timing(name, 0.0, (seconds,))

    found = [case("puct 32", 32, 1.0), case("puct 8", 8, 0.5), case("mctx puct 32", 32, 8.0)]
    timings = {timing.name: timing for _, timing in found}
    assert searches._growth([made for made, _ in found], timings) == {"growth of puct": 0.5}


# ---- profiles


def test_discover_then_validate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "GROWS", 1000.0)  # everything is flat
    found = bench("game-env", batch_sizes=None, discover=True)
    assert {8, 16, 32} <= {size.batch for size in found.report.sizes}
    path = profiles.place("game-env", "tictactoe", "standard", profiles.hardware())
    assert found.report.profile == path
    kept = profiles.load(path)
    assert kept.batch == found.report.best.batch
    assert set(kept.sizes) == {str(size.batch) for size in found.report.sizes}
    with pytest.raises(ProfileError, match="--force"):
        run(Options("game-env", "tictactoe", discover=True))

    def saved(factor: float) -> None:
        sizes = {batch: [factor * x for x in figures] for batch, figures in kept.sizes.items()}
        profiles.save(path, dataclasses.replace(kept, sizes=sizes), force=True)

    saved(100.0)
    slower = run(Options("game-env", "tictactoe", validate=True))
    assert slower.report.best.batch == kept.batch
    assert slower.verdict is not None
    assert (slower.verdict.word, slower.exit_code) == ("slower", 1)
    saved(0.01)
    faster = run(Options("game-env", "tictactoe", validate=True, batch_sizes=(8,)))
    assert faster.verdict is not None
    assert (faster.verdict.word, faster.exit_code) == ("faster", 0)
    with pytest.raises(ConfigError, match=r"the profile has no batch 5; it has .*8"):
        run(Options("game-env", "tictactoe", validate=True, batch_sizes=(5,)))


def test_a_profile_is_compared_with_under_its_own_settings() -> None:
    path = profiles.place("network", "tictactoe", None, profiles.hardware())
    figures = {"4": [1.0, 1.0, 1.0]}
    where = profiles.hardware()
    kept = profiles.Profile(where.name, where.jax_version, "tictactoe", "network", {"width": 8}, 4, "x", figures, "")
    profiles.save(path, kept, force=False)
    outcome = run(Options("network", "tictactoe", validate=True, width=8))
    assert outcome.report.settings == {"width": 8}
    with pytest.raises(ConfigError, match="--blocks is 2, and the profile was made with None"):
        run(Options("network", "tictactoe", validate=True, blocks=2))


# ---- bad input


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (Options("mtcs"), UnknownName, "did you mean 'mcts'"),
        (Options("mcts", "tictactoo"), UnknownName, "did you mean 'tictactoe'"),
        (Options("mcts", "backgammon"), Unsuited, "measured by stochastic-mcts"),
        (Options("stochastic-mcts", "tictactoe"), Unsuited, "measured by mcts"),
        (Options("stochastic-mcts", "pgx:backgammon"), Unsuited, "drawn inside the step"),
        (Options("expectimax", "connect_four"), Unsuited, "no whole turns to choose from: measure mcts"),
        (Options("game-env", "pig", compare="pgx"), Unsuited, "Pgx has no pig"),
        (Options("game-env", compare="mctx"), ConfigError, "peers of game-env: pgx, open_spiel"),
        (Options("network", compare="pgx"), ConfigError, "nobody else's does the same"),
        (Options("network", validate=True), ProfileError, "no profile 'backgammon-network' of this machine"),
        (Options("network", discover=True, validate=True), ConfigError, "give one of them"),
        (Options("network", discover=True, batch_sizes=(1,)), ConfigError, "chooses the batch sizes itself"),
        (Options("game-env", validate=True, compare="pgx"), ConfigError, "leave --compare out"),
        (Options("network", player="bundled", width=3), ConfigError, "has a shape"),
        (Options("network", "pig", player="bundled"), ConfigError, "no network for pig"),
        (Options("stochastic-mcts", player="bundled"), Unsuited, "has no policy"),
        (Options("selfplay", "tictactoe", preset="quik"), Unsuited, "quick"),
        (Options("selfplay", "tictactoe", sets=("learn.batch=3",)), Unsuited, "learn.batch"),
        (Options("mcts", "tictactoe", sets=("model.width=3",)), ConfigError, "--set is for the search here"),
        (Options("mcts", "tictactoe", sets=("search.chanse=exact",)), ConfigError, "chance"),
        (Options("mcts", "tictactoe", sets=("search.chance=exact",)), ConfigError, "no chance states"),
        (Options("network", batch_sizes=(0,)), ConfigError, "whole numbers from 1 on"),
        (Options("network", duration=0.0), ConfigError, "--duration is 0.0; it must be at least"),
        (Options("network", memory_limit=-1.0), ConfigError, "--memory-limit is -1.0"),
        (Options("mcts", "tictactoe", search=("uct",)), ConfigError, "--search is 'uct'"),
    ],
)
def test_bad_input_says_what_to_do(options: Options, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        run(options)
    assert words in str(caught.value)


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        run(Options("game-env", features=True, rows=(1,), tolerance=3.0, num_simulations=(0,)))
    lines = str(caught.value).splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("--num-simulations does not apply to game-env")


def test_a_batch_that_does_not_fit_says_what_to_do() -> None:
    with pytest.raises(BenchError, match=r"batch 2000000000 needs .*smaller batch.*--discover"):
        run(Options("game-env", "tictactoe", batch_sizes=(2_000_000_000,)))


def test_a_duration_too_short_says_what_to_do() -> None:
    with pytest.raises(BenchError, match=r"batch 200000: 0\.05 s are too short to measure.*--duration"):
        run(Options("game-env", "tictactoe", batch_sizes=(200_000,), duration=0.05))


@pytest.mark.parametrize(("peer", "words"), [("mctx", "aleazero[peers]"), ("open_spiel", "aleazero[peers]")])
def test_a_peer_that_is_not_installed_says_what_to_install(
    peer: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("mctx", "pyspiel"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises((MissingExtra, BenchError)) as caught:
        run(Options("mcts", "tictactoe", compare=peer))
    assert words in str(caught.value)


def test_results_say_which_commit_they_are_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def checkout(package: Path) -> tuple[str | None, bool | None]:
        asked.append(package)
        return ("0123456789abcdef" * 2, True) if len(asked) == 1 else (None, None)

    monkeypatch.setattr(suite, "checkout", checkout)
    options = Options("game-env", "tictactoe", batch_sizes=(4,), out=tmp_path / "out", force=True)
    for commit, dirty in (("0123456789ab", True), (None, None)):
        run(options)
        written = json.loads((tmp_path / "out" / "bench.json").read_text())
        assert (written["commit"], written["dirty"]) == (commit, dirty)
    assert (asked[0] / "bench" / "suite.py").is_file()


def test_without_pillow_the_picture_is_an_svg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    size = Size(4, {"ours": Rate("steps", 3.0, 2.0, 4.0, True, 7, 0.0)}, memory=memory.Memory(1, 1, "device"))
    Report("game-env", "pig", "", "", "cpu", {}, {}, "", [size], size).write(tmp_path / "here", force=False)
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"bench.json", "bench.svg"}


def test_results_are_not_overwritten_unasked(tmp_path: Path) -> None:
    size = Size(4, {"ours": Rate("steps", 3.0, 2.0, math.inf, True, 7, 0.0)}, memory=memory.Memory(1, 1, "device"))
    report = Report("game-env", "pig", "", "", "cpu", {}, {}, "", [size, Size(8, problem="too large")], size)
    report.write(tmp_path / "here", force=False)
    written = (tmp_path / "here" / "bench.json").read_text()
    assert json.loads(written)["throughput_high"] is None  # no reader of JSON takes Infinity
    assert json.loads(written)["sizes"][1] == {"batch": 8, "problem": "too large"}
    with pytest.raises(BenchError, match=r"holds bench\.json and bench\.png already.*--force"):
        dataclasses.replace(report, game="other").write(tmp_path / "here", force=False)
    assert (tmp_path / "here" / "bench.json").read_text() == written
    dataclasses.replace(report, game="other").write(tmp_path / "here", force=True)
    assert json.loads((tmp_path / "here" / "bench.json").read_text())["game"] == "other"
    (tmp_path / "file").write_text("")
    with pytest.raises(BenchError, match="name another --out"):
        report.write(tmp_path / "file" / "here", force=False)


# ---- the other command line


def test_a_command_line_gives_the_same_options_again() -> None:
    options = Options(
        "mcts",
        "pgx:othello",
        batch_sizes=(1, 4),
        validate=True,
        duration=2.5,
        memory_limit=3.0,
        num_simulations=(32, 200),
        search=("puct", "gumbel"),
        network="cnn",
        width=8,
        blocks=2,
        preset="quick",
        sets=("a.b=1 2", "c=3"),
        rows=(7,),
        tolerance=0.2,
        features=True,
    )
    words = shlex.split(command_line(options))
    assert words[:3] == ["alea", "bench", "mcts"]
    given = vars(_parser().parse_args(words[2:]))
    for name in ("json", "verbose"):
        given.pop(name)
    assert read_options(**given) == options


def test_every_kind_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _parser().parse_args(["--help"])
    said = capsys.readouterr().out
    assert all(name in said for name in KINDS)


def test_the_module_runs_and_reports_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["network", "--game", "tictactoe", "--single-batch", "4", "--width", "8", "--json", "--verbose"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["kind"] == "network"
    assert "batch 4:" in printed.err
    assert main(["nothing"]) == 2
    assert "unknown kind of benchmark" in capsys.readouterr().err
    assert main(["network", "--validate"]) == 1
    assert main(["network", "--batch-sizes", "1", "--single-batch", "2"]) == 2
