"""What every command answers with `--json`: its keys with their types, and its exit code. Values are not frozen.

A command that takes `--json` and has no file in `json/` fails a test here. Where a command is expensive to run, the
test that runs it anyway compares its answer (`ELSEWHERE`).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import pytest

os.environ.setdefault("ALEA_BALATRO_PLAIN", "1")  # the same functions, nothing to compile

from aleazero import export
from aleazero.bridges import balatrobot
from aleazero.cli.main import app, run
from aleazero.games.balatro import fuzz, measure
from aleazero.games.balatro.contest import numbered_seeds
from aleazero.games.registry import make_game
from aleazero.models.build import ModelConfig, build_model
from tests.bridges.live_game import LiveGame
from tests.cli.conftest import TINY, surroundings  # noqa: F401 - fixture
from tests.frozen.shape import HERE, check_file, shape_of
from tests.monitor.test_services import STAND_IN, put
from tests.runtimes.support import quick_programs  # noqa: F401 - fixture

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/balatro"
START = "4HPwATDgc/ABMA"  # of backgammon: the first position
LAST = "XGID=-A-----------------o------:0:0:1:31:0:0:0:0:0"  # a turn before the end
HOST = (
    "--preset classic --set total_rows=48 --set model.width=16 --set selfplay.num_games=2 "
    "--set selfplay.moves_per_rollout=8 --set learn.batch_size=8 --set ppo.epochs=1 --set evaluate.games=2"
)


class Case(NamedTuple):
    """A command line without `--json`, and what is particular about its answer."""

    line: str
    code: int = 0
    maps: tuple[str, ...] = ()  # where keys are data
    loose: tuple[str, ...] = ()  # what depends on the machine
    missing: str = ""  # the package that it needs beside ours


# In braces: the places that `places` makes. The name of a case is its command, and after it what is special.
CASES: dict[str, Case] = {
    "games": Case("games"),
    "games-coverage": Case("games balatro --coverage"),
    "show": Case("show tictactoe"),
    "show-chance": Case("show pig '34-50+12 1?'"),
    "doctor": Case("doctor balatro"),
    "train": Case(
        "train tictactoe --preset quick --runs {tmp} --set total_rows=256 --set evaluate.opponents=random {sets}"
    ),
    "train-print-config": Case("train tictactoe --preset quick --print-config"),
    "status": Case("status tiny --runs {runs}", maps=("losses",)),
    "runs-list": Case("runs list --runs {runs}"),
    "runs-compare": Case("runs compare tiny other --runs {runs} --out {tmp}/compare.svg"),
    "runs-elo": Case("runs elo tiny --runs {runs} --games 2 --search search=none --opening-plies 2"),
    "runs-resume": Case("runs resume tiny --runs {copy}"),
    "export": Case("export tiny --runs {runs} --out {tmp}/net"),
    "export-onnx": Case("export tiny --runs {runs} --out {tmp}/onnx --format onnx", missing="onnx"),
    "eval": Case("eval tictactoe --player random --games 40"),
    "eval-sprt": Case("eval tictactoe --player solver --games 4 --sprt 0,100"),
    "eval-backgammon": Case(
        "eval backgammon --player pubeval --opponent pubeval --games 4 --luck none", missing="gnubg_nn"
    ),
    "eval-balatro": Case("eval balatro --player random --seeds 2 --beside random"),
    "rate": Case("rate tictactoe --player run:tiny,search=none --runs {runs}"),
    "rate-connect_four": Case("rate connect_four --player random --positions 2"),
    "rate-backgammon": Case("rate backgammon --player pubeval --positions 3", missing="gnubg_nn"),
    "hint": Case("hint backgammon --position-id " + START + " --dice 31 --player path:{backgammon} --count 2"),
    "hint-rollout": Case("hint backgammon --xgid " + LAST + " --player path:{backgammon} --rollout 36"),
    "openings": Case("openings backgammon --player path:{backgammon} --beside path:{backgammon}"),
    "bench": Case(
        "bench game-env --game tictactoe --batch-sizes 4 --duration 3",
        maps=("sizes[].rates", "versions"),
        loose=("commit", "dirty"),
    ),
    "bench-selfplay-balatro": Case("bench selfplay --game balatro --games 2 " + HOST),
    "replay": Case("replay balatro {run}"),
    "verify": Case("verify balatro {vectors}"),
    "verify-wrong": Case("verify balatro {wrong}", code=1),
    "balatro-live": Case("balatro live {live} --seed ALEEB"),
    "balatro-bench": Case("balatro bench --seconds 0.02 --rounds 1"),
    "balatro-fuzz": Case("balatro fuzz --decisions 20 --sample 0", maps=("broken",)),
    "graph-build": Case("graph build"),
    "graph-query": Case("graph query synergies Baron"),
    "graph-embed": Case("graph embed"),
    "monitor-up": Case("monitor up --runs {desk}"),
    "monitor-down": Case("monitor down --runs {desk}"),
}
ELSEWHERE = {
    "eval-luck": "tests/cli/test_evaluate.py",
    "experiment": "tests/test_experiment.py",
    "monitor-send": "tests/cli/test_desk.py",
    "rate-chess": "tests/cli/test_chess.py",
    "rate-chess-judge": "tests/cli/test_chess.py",
    "ray-head": "tests/cli/test_ray.py",
    "ray-status": "tests/cli/test_ray.py",
    "ray-stop": "tests/cli/test_ray.py",
    "ray-worker": "tests/cli/test_ray.py",
    "runs-worst": "tests/cli/test_train.py",
    "status-head": "tests/cli/test_cluster.py",
    "train-profile": "tests/cli/test_train.py",
    "worker-token": "tests/cli/test_cluster.py",
}


def commands() -> list[tuple[str, ...]]:
    """Return the words of every command that takes `--json`, from the command tree itself."""

    def walk(tree: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if tree.default_command is not None:
            options = {name for argument in tree.assemble_argument_collection() for name in argument.names}
            if "--json" in options:
                yield words
        for name in tree:
            if not name.startswith("-"):
                yield from walk(tree[name], (*words, name))

    return sorted(walk(app, ()))


def test_every_command_with_json_has_its_shape_here() -> None:
    known = {"-".join(words) for words in commands()}
    shapes = {*CASES, *ELSEWHERE}
    without = {name for name in known if not any(shape == name or shape.startswith(f"{name}-") for shape in shapes)}
    assert not without, "no case freezes what these commands answer"
    assert {path.stem for path in (HERE / "json").glob("*.txt")} == shapes
    for shape, file in ELSEWHERE.items():
        assert f'"json/{shape}.txt"' in (ROOT / file).read_text(), f"{file} does not compare {shape}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, quick_programs: None) -> Path:  # noqa: F811
    """What commands are given: a folder of runs, networks, and files of Balatro. No test may change it."""
    root = tmp_path_factory.mktemp("made")
    line = ["train", "tictactoe", "--preset", "quick", "--runs", str(root / "runs"), "--name", "tiny", "--json"]
    with contextlib.redirect_stdout(io.StringIO()):
        assert run([*line, *(word for key, value in TINY.items() for word in ("--set", f"{key}={value}"))]) == 0
    shutil.copytree(root / "runs" / "tiny", root / "runs" / "other")
    game = make_game("backgammon")
    model = build_model(ModelConfig(width=8, blocks=1, policy=False), game.spec)
    export.write(root / "backgammon", model, jax.jit(model.init)(jax.random.key(5)), {})
    played = {"game": "balatro", "deck": "Red Deck", "stake": "White", "seed": "ALEEB", "last_ante": 8}
    (root / "run.json").write_text(json.dumps({**played, "version": 1, "actions": [560, 0]}))
    content = json.loads((GOLDEN / "rng.json").read_text())
    content["vectors"] = content["vectors"][:3]
    for name, change in (("vectors", 0.0), ("wrong", 1e-9)):
        content["vectors"][1]["random"][0] += change
        (root / name).mkdir()
        (root / name / "rng.json").write_text(json.dumps(content))
    return root


@pytest.fixture
def places(made: Path, tmp_path: Path) -> dict[str, object]:
    """What stands in place of the names in braces."""
    names = ("runs", "backgammon", "vectors", "wrong")
    sets = " ".join(f"--set {key}={value}" for key, value in TINY.items() if key not in ("total_rows",))
    return {
        **{name: made / name for name in names},
        **{"tmp": tmp_path, "sets": sets, "run": made / "run.json"},
    }


@pytest.fixture
def prepared(
    places: dict[str, object], made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], str]]:
    """Give the command line of a case, once what it needs is there."""
    with contextlib.ExitStack() as stack:

        def live() -> None:
            monkeypatch.setattr(balatrobot, "MOST", 3)
            places["live"] = stack.enter_context(LiveGame()).url

        def few_runs() -> None:
            monkeypatch.setattr(measure, "LANES", 6)
            monkeypatch.setattr(measure, "_many_seeds", lambda: numbered_seeds(100, 1))
            monkeypatch.setattr(measure, "cores", lambda: 2)
            counted = measure.runs_per_hour
            monkeypatch.setattr(measure, "runs_per_hour", lambda runs, rounds: counted(dict.fromkeys(runs, 2), rounds))

        def few_decisions() -> None:
            monkeypatch.setattr(fuzz, "RUNS", 2)
            monkeypatch.setattr(fuzz, "STEPS", 10)

        def copy() -> None:
            places["copy"] = tmp_path / "copy"
            shutil.copytree(made / "runs", tmp_path / "copy")

        needs = {"balatro-live": live, "balatro-bench": few_runs, "balatro-fuzz": few_decisions, "runs-resume": copy}

        def line_of(name: str) -> str:
            needs.get(name, lambda: None)()
            return CASES[name].line.format(**places)

        yield line_of


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("monitor")])
def test_the_answer_has_its_shape(
    name: str, prepared: Callable[[str], str], capsys: pytest.CaptureFixture[str], regenerate: bool
) -> None:
    case = CASES[name]
    if case.missing:
        pytest.importorskip(case.missing)
    check(name, answer(prepared(name), case.code, capsys), regenerate)


def answer(line: str, code: int, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the one object that a command prints."""
    capsys.readouterr()
    ended = run([*shlex.split(line), "--json"])
    printed = capsys.readouterr()
    assert ended == code, printed.err
    assert printed.out.count("\n") == 1
    found: dict[str, Any] = json.loads(printed.out)
    return found


def check(name: str, found: dict[str, Any], regenerate: bool) -> None:
    case = CASES[name]
    head = f"alea {case.line} --json\nexit code {case.code}\n\n"
    check_file(f"json/{name}.txt", head + shape_of(found, case.maps, case.loose), regenerate)


def test_the_desk_s_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], regenerate: bool
) -> None:
    """Of those on the path, which are a Grafana that is a stand-in."""
    pytest.importorskip("psutil")
    (tmp_path / "bin").mkdir()
    put(tmp_path / "bin", "grafana-server", STAND_IN.format(python=sys.executable))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    try:
        check("monitor-up", answer(f"monitor up --runs {tmp_path}", 0, capsys), regenerate)
    finally:
        found = answer(f"monitor down --runs {tmp_path}", 0, capsys)
    check("monitor-down", found, regenerate)


# ---- exit codes: 0 done, 1 failed, 2 misuse


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_misuse_answers_nothing(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "--json", "--no-such-option"]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("show", 2),  # an argument is missing
        ("shwo tictactoe", 2),  # no such command
        ("show tictactwo", 2),  # no such name
        ("show tictactoe XXX/XXX/XXX", 2),  # no such position
        ("train tictactoe --set learn.batch_size=many", 2),  # no such value
        ("eval tictactoe --player run:nothing --runs {runs}", 2),  # no such run
        ("train tictactoe --preset quick --runs {runs} --name tiny {sets}", 1),  # there is one already
        (
            "eval tictactoe --player path:{damaged},search=none --games 2",
            1,
        ),  # its files are not those that were written
        ("balatro live http://127.0.0.1:1 --give-up 0.05", 1),  # nothing answers
    ],
)
def test_exit_codes_of_mistakes(
    line: str, code: int, places: dict[str, object], made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made / "backgammon", tmp_path / "damaged")
    weights = tmp_path / "damaged" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    assert run([*shlex.split(line.format(**places, damaged=tmp_path / "damaged")), "--json"]) == code
    printed = capsys.readouterr()
    assert printed.err
    assert "Traceback" not in printed.err
