"""Names that scripts, dashboards and settings files rely on: of metrics, of players, of settings, of variables.

The texts beside this file are the names. A change of any of them breaks scripts and settings of users.
`tests/cli/test_desk.py` compares the keys that a real MLflow gets.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import re
import shlex
import tomllib
import typing
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import jax
import pytest

os.environ.setdefault("ALEA_BALATRO_PLAIN", "1")  # the same functions, nothing to compile

from aleazero.bridges.advisor import split_player
from aleazero.cli.main import run
from aleazero.config import NOT_SETTINGS, RunConfig, resolve
from aleazero.core.errors import AleaError
from aleazero.core.game import HostGame
from aleazero.core.settings import build, describe, flatten, load_file, to_toml
from aleazero.games.balatro.contest import make_chooser
from aleazero.games.registry import game_names, make_game
from aleazero.host_players import is_network, player_of
from aleazero.observe.jsonl import read_jsonl
from aleazero.observe.prometheus import PrometheusSink
from aleazero.observe.reports import Report, metrics_of
from aleazero.observe.tensorboard import TensorboardSink
from aleazero.players import make_player
from aleazero.result_record import describe as describe_player
from tests.cli.conftest import TINY, surroundings  # noqa: F401 - fixture
from tests.frozen.shape import check_file

pytestmark = pytest.mark.slow

HOST_GAME = "balatro"
PRESETS = Path(str(resources.files("aleazero"))) / "presets"
SETS = {  # of the smallest run of each algorithm; what it plays and learns is no matter
    "search": ("tictactoe", "quick", TINY),
    "turns": (
        "backgammon",
        "quick",
        {
            **{"total_rows": 1024, "model.width": 16, "selfplay.num_games": 8, "selfplay.moves_per_rollout": 16},
            **{"replay.capacity_rows": 512, "replay.min_rows": 200, "learn.batch_size": 32, "evaluate.opponents": ""},
            "observe.every_seconds": 0,
        },
    ),
    "ppo": (
        HOST_GAME,
        "classic",
        {
            **{"total_rows": 48, "model.width": 16, "selfplay.num_games": 2, "selfplay.moves_per_rollout": 8},
            **{"learn.batch_size": 8, "ppo.epochs": 1, "evaluate.games": 2, "evaluate.every_rows": 0},
            **{"rewards.progress": 0.5, "rewards.ante_growth": 0.25, "rewards.win": 1, "rewards.money": 0.1},
            "observe.every_seconds": 0,
        },
    ),
}
ALGORITHMS = tuple(SETS)
TIMED = ("hardware", "profile")  # reports that come with time, not with what a run does


def plain(game: str) -> str:
    """Return a game's name as part of a file's."""
    return re.sub(r"\W", "_", game)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: one of each algorithm, and `net`, the export of the first one."""
    root = tmp_path_factory.mktemp("runs")
    jax.config.update("jax_disable_most_optimizations", True)
    for name, (game, preset, settings) in SETS.items():
        line = ["train", game, "--preset", preset, "--runs", str(root), "--name", name, "--json", "--device", "cpu"]
        with contextlib.redirect_stdout(io.StringIO()):
            assert run([*line, *(word for key, value in settings.items() for word in ("--set", f"{key}={value}"))]) == 0
    with contextlib.redirect_stdout(io.StringIO()):
        assert run(["export", "search", "--runs", str(root), "--out", str(root / "net"), "--json"]) == 0
    jax.config.update("jax_disable_most_optimizations", False)
    return root


# ---- metrics


def example(kind: type[Report]) -> Report:
    """Return a report with something in every field."""
    values = {int: 3, float: 0.5, str: "text", bool: True, dict: {"entry": 0.5}}
    hints = typing.get_type_hints(kind)
    return kind(**{field.name: values[_plain(hints[field.name])] for field in dataclasses.fields(kind)})


def _plain(hint: Any) -> type:
    """Return the type of a report's field: of a union the one beside None, of literals that of the first."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return type(typing.get_args(hint)[0])
    if origin is not None and type(None) in typing.get_args(hint):
        return next(kind for kind in typing.get_args(hint) if kind is not type(None))
    return typing.cast("type", origin or hint)


def examples() -> list[Report]:
    kinds = sorted(Report.__subclasses__(), key=lambda kind: kind.kind)
    return [example(kind) for kind in kinds]


def test_every_report_has_the_fields_that_it_had(regenerate: bool) -> None:
    lines = []
    for report in examples():
        fields = {name: _plain(hint).__name__ for name, hint in typing.get_type_hints(type(report)).items()}
        lines += [f"{report.kind}/{name}: {fields[name]}" for name in report.as_dict() if name != "kind"]
    check_file("metrics/reports.txt", "\n".join(lines), regenerate)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_run_reports_what_it_reported(algorithm: str, runs: Path, regenerate: bool) -> None:
    """The metrics of a real run: entries such as `losses/policy` are named by code that no class shows."""
    records = [record for record in read_jsonl(runs / algorithm / "metrics.jsonl") if record["kind"] not in TIMED]
    assert {"run", "selfplay", "learn", "checkpoint"} <= {record["kind"] for record in records}
    for record in records:
        record.pop("antes", None)  # named by how far the games got
    names = {name for record in records for name in metrics_of(record)}
    check_file(f"metrics/{algorithm}.txt", "\n".join(sorted(names)), regenerate)


def test_a_report_in_the_file_is_what_its_class_says(runs: Path) -> None:
    """So that the fields that are kept above are those that programs read from metrics.jsonl."""
    fields = {report.kind: {*report.as_dict(), "time"} for report in examples()}
    for algorithm in ALGORITHMS:
        for record in read_jsonl(runs / algorithm / "metrics.jsonl"):
            assert set(record) == fields[record["kind"]]


def test_tags_of_tensorboard(tmp_path: Path, regenerate: bool) -> None:
    protocol = pytest.importorskip("tensorboardX.proto.event_pb2")
    sink = TensorboardSink(tmp_path)
    for report in examples():
        sink.emit(report)
    sink.close()
    tags, data = [], next(tmp_path.glob("events.out.tfevents.*")).read_bytes()
    while data:  # records: a length, its checksum, a message, its checksum
        length = int.from_bytes(data[:8], "little")
        event = protocol.Event()
        event.ParseFromString(data[12 : 12 + length])
        tags += [value.tag for value in event.summary.value]
        data = data[16 + length :]
    check_file("metrics/tensorboard.txt", "\n".join(sorted(tags)), regenerate)


def test_metrics_of_prometheus_and_their_labels(tmp_path: Path, regenerate: bool) -> None:
    pytest.importorskip("prometheus_client")
    sink = PrometheusSink()
    for report in examples():
        sink.emit(dataclasses.replace(report, **_entries(report)))
    page = sink.page()[1].decode()
    labels: dict[str, set[str]] = {}
    for name, text in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", page, re.MULTILINE):
        labels.setdefault(name, set()).update(re.findall(r"(?:^|,)([a-z]+)=", text))
    kinds = re.findall(r"^# TYPE (\w+) (\w+)$", page, re.MULTILINE)
    lines = [f"{name} {kind} {' '.join(sorted(labels[name]))}".rstrip() for name, kind in sorted(kinds)]
    check_file("metrics/prometheus.txt", "\n".join(lines), regenerate)
    assert run(["monitor", "dashboards", str(tmp_path)]) == 0
    assert in_files(tmp_path) <= labels.keys(), "the examples leave metrics out that dashboards show"


def _entries(report: Report) -> dict[str, Any]:
    """Return the entries of a report that metrics ask for by name."""
    named = {
        "losses": ("policy", "value"),
        "outcomes": ("win", "draw", "loss"),
        "details": ("mean_ante", "ante1_clear"),
    }
    return {field: dict.fromkeys(keys, 0.5) for field, keys in named.items() if hasattr(report, field)}


def in_files(folder: Path) -> set[str]:
    """Return the metrics that the files of a folder name."""
    return {name for file in folder.iterdir() for name in re.findall(r"\balea_\w+", file.read_text())}


def test_dashboards_and_alerts(tmp_path: Path, capsys: pytest.CaptureFixture[str], regenerate: bool) -> None:
    assert run(["monitor", "dashboards", str(tmp_path)]) == 0
    capsys.readouterr()
    alerts = re.findall(r'"alert": "(\w+)"', (tmp_path / "rules.yml").read_text())
    assert alerts
    lines = [f"file {file.name}" for file in sorted(tmp_path.iterdir())]
    lines += [f"alert {name}" for name in sorted(alerts)] + sorted(in_files(tmp_path))
    check_file("metrics/dashboards.txt", "\n".join(lines), regenerate)


# ---- players


# {net}: an exported network of the game in the line. Every kind of player is here with each of its options.
PLAYERS: Mapping[str, tuple[str, ...]] = {
    "tictactoe": (
        *("random", "solver", "run:search", "run:search@best", "run:search@{step}", "path:{net}"),
        *("registry:tictactoe", "registry:tictactoe@1", "run:search,search=gumbel", "run:search,search=mcts"),
        *("run:search,search=none", "run:search,sims=5", "run:search,search=mcts,sims=5,prior_temperature=2.5"),
        *(" run:search@best, search = gumbel , sims = 7 ", "run:{net}/../search"),
    ),
    "connect_four": ("random", "solver", "bundled", "bundled,sims=8", "bundled,search=mcts"),
    "pig": ("random", "solver"),
    "backgammon": (
        *("random", "bundled", "bundled,ply=1", "bundled,search=expectimax,ply=2", "bundled,endings=network"),
        *("bundled,endings=exact", "run:turns", "run:turns,ply=1", "pubeval"),
        *("gnubg", "gnubg:ply=2", "gnubg:ply=0;noise=0.06", "gnubg:ply=1;engine=nn"),
        "gnubg:ply=2;engine=debian",
    ),
    "chess": (
        *("random", "bundled", "bundled,search=mcts,sims=16", "stockfish:nodes=100", "stockfish:depth=1"),
        *("stockfish:skill=0,depth=1", "stockfish:skill=0;depth=1", "stockfish:nodes=1,depth=2,skill=20"),
        *("eps0", "eps15", "eps100", "classical", "classical:depth=2", "classical:depth=2;values={values}"),
    ),
    "chess:history=2": ("random", "eps15"),
    "quoridor": ("random", "shortest", "shortest:walls"),
    "pgx:othello": ("random",),
    HOST_GAME: (
        *("random", "greedy", "expectimax", "bundled", "run:ppo", "run:ppo@best", "bundled,search"),
        *("bundled,search,candidates=2,samples=3,depth=4", "run:ppo,depth=4"),
        "greedy,advisor=http://127.0.0.1:8080/v1,advisor_model=m,advisor_seconds=2.5,advisor_budget=7",
    ),
}
REFUSED: Mapping[str, tuple[str, ...]] = {
    "tictactoe": (
        *("", "human", "randm", "random:1", "random,sims=4", "solver,sims=4", "bundled", "bundled:1", "run", "run:"),
        *("run:nobody", "run:search@7", "run:search@newest", "path:", "path:{net}/none", "registry:"),
        *("registry:nobody", "registry:tictactoe@9"),
        *("run:search,search=alphabeta", "run:search,search=expectimax", "run:search,sims=0"),
        *("run:search,sims=x", "run:search,ply=1", "run:search,endings=exact", "run:search,prior_temperature=x"),
        *("run:search,search=none,prior_temperature=2", "run:search,simulations=4", "run:search,search", "run:turns"),
        *("gnubg", "pubeval", "stockfish:nodes=1", "eps15", "classical", "shortest"),
    ),
    "pig": ("bundled",),
    "quoridor": ("solver", "bundled", "shortest:wall", "shortest,sims=4"),
    "backgammon": (
        *("solver", "bundled,sims=4", "bundled,search=gumbel", "bundled,ply=3", "bundled,endings=none"),
        "pubeval:ply=0",
        *("gnubg:ply=3", "gnubg:noise=-1", "gnubg:ply=1;noise=0.1", "gnubg:engine=nnn", "gnubg:plies=1", "gnubg,ply=1"),
    ),
    "chess": (
        *("solver", "stockfish", "stockfish:skill=3", "stockfish:skill=21,depth=1", "stockfish:nodes=x", "eps101"),
        *("stockfish:time=1", "eps15,depth=1", "eps", "classical:depth=0", "classical:depth=7", "classical,depth=1"),
        "classical:plies=1",
    ),
    HOST_GAME: (
        *("solver", "gredy", "greedy,search", "run:search", "run:nobody", "bundled:1", "bundled,sims=4", "run:ppo@7"),
        *("bundled,search,depth=0", "bundled,search,depth=x", "greedy,advisor", "greedy,advisor_model=m"),
        *(
            "greedy,advisor=ftp://x",
            "greedy,advisor=http://x/v1,advisor_seconds=x",
            "greedy,advisor=http://x/v1,advise=1",
        ),
    ),
}


@pytest.fixture
def written(runs: Path) -> dict[str, str]:
    """What stands in place of the names in braces."""
    steps = sorted(int(path.name) for path in (runs / "search" / "checkpoints").iterdir())
    values = Path(str(resources.files("aleazero"))) / "data" / "chess_values.safetensors"
    return {"net": str(runs / "net"), "step": str(steps[0]), "values": str(values)}


def load(text: str, game: str, runs: Path) -> dict[str, Any]:
    """Return what a player string says, as the program has understood it."""
    rules = make_game(game)
    if not isinstance(rules, HostGame):
        return _of_two(make_player(text, rules, runs))
    name, advisor = split_player(text)
    asked = {f"advisor.{key}": value for key, value in dataclasses.asdict(advisor).items()} if advisor else {}
    if not is_network(name):
        make_chooser(name, 0, 1)
        return {"plays": "alone", "rule": name, **asked}
    choose = player_of(name, game, runs)(0)
    looks = getattr(getattr(choose, "__self__", None), "config", None)
    return {"plays": "alone", "network": True, **(dataclasses.asdict(looks) if looks else {}), **asked}


def _of_two(player: Any) -> dict[str, Any]:
    """Return what a player of a game for two is, by what its parts are called today."""
    found: dict[str, Any] = {"plays": "whole turns" if hasattr(player, "turn") else "moves"}
    if hasattr(player, "weights"):
        found["network"] = True
    search = getattr(player, "search", None)
    for owner, fields in (
        (search, ("kind", "max_simulations", "prior_temperature", "try_all", "prove")),
        (getattr(search, "look", None), ("depth",)),
        (getattr(getattr(player, "engine", None), "strength", None), ("skill", "depth", "nodes")),
        (getattr(player, "engine", None), ("ply", "noise", "_ply", "_noise")),
        (player, ("ply", "random", "walls", "slow")),
    ):
        found |= {field.strip("_"): getattr(owner, field) for field in fields if hasattr(owner, field)}
    if hasattr(player, "endings"):
        found["endings"] = player.endings is not None
    if hasattr(player, "engine"):
        found["engine"] = str(describe_player(player)["engine"]).split()[0]  # without its version
    return found


def need(game: str) -> None:
    """Skip where what a game or its engines need is not installed."""
    packages = {"backgammon": "gnubg_nn", "pgx": "pgx", "gym": "gymnasium"}
    if package := packages.get(game.partition(":")[0]):
        pytest.importorskip(package)
    for program in {"backgammon": ("gnubg",), "chess": ("stockfish",)}.get(game.partition(":")[0], ()):
        if not (Path("/usr/games") / program).exists():
            pytest.skip(f"Debian's {program} is not installed")


@pytest.mark.parametrize("game", PLAYERS)
def test_players_are_what_they_were(game: str, runs: Path, written: dict[str, str], regenerate: bool) -> None:
    need(game)
    lines = []
    for text in PLAYERS[game]:
        said = load(text.format(**written), game, runs)
        lines.append(f"{text}: {', '.join(f'{key}={value}' for key, value in said.items())}")
    check_file(f"players/{plain(game)}.txt", "\n".join(lines), regenerate)


@pytest.mark.parametrize(("game", "text"), [(game, text) for game, texts in REFUSED.items() for text in texts])
def test_what_is_no_player_is_refused(game: str, text: str, runs: Path, written: dict[str, str]) -> None:
    with pytest.raises(AleaError):
        load(text.format(**written), game, runs)


@pytest.mark.parametrize(
    ("game", "judge"),
    [
        *(
            ("backgammon", "gnubg"),
            ("backgammon", "rollout"),
            ("backgammon", "rollout:games=36;plies=1;player=bundled"),
        ),
        *(("chess", "stockfish:nodes=100"), ("chess", "stockfish:depth=1")),
    ],
)
def test_judges_are_known(game: str, judge: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is judged: the number of positions is wrong, and is all that is."""
    need(game)
    assert run(["rate", game, "--player", "random", "--judge", judge, "--positions", "0"]) == 2
    assert [line.partition(" is ")[0] for line in capsys.readouterr().err.splitlines()] == ["alea: positions"]


# ---- settings


def presets() -> Iterator[tuple[str, str]]:
    """Give every game with each of its presets; of families of games one game."""
    families = {"gym": "gym:CartPole-v1", "general": "pgx:othello"}
    for file in sorted(PRESETS.glob("*.toml")):
        game = families.get(file.stem, file.stem)
        yield from ((game, preset) for preset in tomllib.loads(file.read_text("utf-8")))


def place(game: str, preset: str) -> str:
    return f"settings/{plain(game)}-{preset}.toml"


@pytest.mark.parametrize(("game", "preset"), list(presets()))
def test_settings_of_a_preset(
    game: str, preset: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, regenerate: bool
) -> None:
    if ":" in game:
        need(game)
    assert run(["train", game, "--preset", preset, "--print-config"]) == 0
    shown = capsys.readouterr().out
    check_file(place(game, preset), shown, regenerate)
    (tmp_path / "again.toml").write_text(shown)
    assert build(RunConfig, [load_file(tmp_path / "again.toml")]) == resolve(game, preset=preset, environ={})


def test_every_game_has_its_presets_here() -> None:
    assert set(game_names()) <= {game for game, _ in presets()}
    kept = {path.name for path in (Path(__file__).parent / "settings").glob("*-*.toml")}
    assert kept == {Path(place(game, preset)).name for game, preset in presets()}


def settings() -> Iterator[tuple[str, str, Any]]:
    """Give every setting's path, what it takes, and its default; tables that are absent by default, and theirs, too."""
    for path, _, default in describe(RunConfig):
        hint: Any = RunConfig
        for part in path.split("."):
            hint = typing.get_type_hints(next(kind for kind in (*typing.get_args(hint), hint) if _is_table(kind)))[part]
        yield path, _words(hint), default


def _is_table(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind)


def _words(hint: Any) -> str:
    """Return a type in words that are the same in every Python."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return "one of " + " ".join(map(str, inner))
    if origin is tuple:
        return f"list of {_words(inner[0])}"
    if origin is not None:
        return " or ".join(_words(each) for each in inner)
    return {type(None): "none"}.get(hint, hint.__name__)


def test_every_setting_with_its_default_and_type(regenerate: bool) -> None:
    lines = []
    for path, words, default in settings():
        shown = "must be given" if default is dataclasses.MISSING else json.dumps(default, default=str)
        lines.append(f"{path}: {words} = {shown}")
    check_file("settings/all.txt", "\n".join(lines), regenerate)


@pytest.mark.parametrize("suffix", ["toml", "yaml"])
def test_a_file_with_every_setting_loads(suffix: str) -> None:
    """Both files say the same, and leave nothing out."""
    folder = Path(__file__).parent / "settings"
    wanted = tomllib.loads((folder / "everything.toml").read_text("utf-8"))
    config = build(RunConfig, [load_file(folder / f"everything.{suffix}")])
    assert tomllib.loads(to_toml(config)) == wanted
    assert {path for path, _, _ in settings()} == _leaves(wanted)


def _leaves(tree: Mapping[str, Any], path: str = "") -> set[str]:
    found = set()
    for key, value in tree.items():
        here = f"{path}.{key}" if path else key
        found |= _leaves(value, here) if isinstance(value, dict) else {here}
    return found


# Every name that RLlib has or had for a setting, with a value that no preset has.
RLLIB = (
    *("num_workers=3", "num_rollout_workers=3", "num_env_runners=3", "num_envs_per_worker=5"),
    *("num_envs_per_env_runner=5", "rollout_fragment_length=77", "num_workers=2 train_batch_size=2000"),
    *(
        "num_workers=2 train_batch_size_per_learner=2000",
        "sgd_minibatch_size=96",
        "minibatch_size=96",
        "num_sgd_iter=9",
    ),
    *("num_epochs=9", "lr=0.125", "grad_clip=0.75", "gamma=0.5", "lambda=0.5", "lambda_=0.5", "clip_param=0.375"),
    *("vf_clip_param=3.5", "vf_loss_coeff=0.625", "entropy_coeff=0.875", "kl_coeff=0.625", "kl_target=0.875"),
    *("num_gpus=0.25", "num_gpus_per_learner=0.25", "num_gpus_per_worker=0.25", "num_gpus_per_env_runner=0.25"),
)


def test_names_of_rllib_are_settings(tmp_path: Path, regenerate: bool) -> None:
    """By themselves, and in a table of a settings file."""

    def changed(**given: Any) -> str:
        read = resolve(HOST_GAME, preset="classic", environ={}, note=lambda note: None, **given)
        return " ".join(f"{path}={value}" for path, value in flatten(read).items() if value != plainly[path])

    plainly = flatten(resolve(HOST_GAME, preset="classic", assignments=["runtime=rllib"], environ={}))
    lines = []
    for text in RLLIB:
        table = "\n".join(part.replace("=", " = ") for part in text.split())
        (tmp_path / "it.toml").write_text(f'runtime = "rllib"\n[rllib]\n{table}\n')
        said = changed(assignments=["runtime=rllib", *text.split()])
        filed = changed(file=tmp_path / "it.toml")
        assert said
        lines.append(f"{text}: {said}" + (f"; in a file: {filed}" if filed != said else ""))
    check_file("settings/rllib.txt", "\n".join(lines), regenerate)


# ---- variables


def test_environment_variables(tmp_path: Path, regenerate: bool) -> None:
    """Those that the program names, wherever it does; settings have one each besides, as ALEA_LEARN__BATCH_SIZE."""
    package = Path(str(resources.files("aleazero")))
    named = {name for file in package.rglob("*.py") for name in re.findall(r"\bALEA_[A-Z_]*[A-Z]\b", file.read_text())}
    assert set(NOT_SETTINGS) <= named
    check_file("variables.txt", "\n".join(sorted(named)), regenerate)


def test_a_variable_is_a_setting(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in {"ALEA_SEED": "7", "ALEA_LEARN__BATCH_SIZE": "96", "alea_search__kind": "puct"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ALEA_DATA", "elsewhere")
    monkeypatch.setenv("ALEA_REDIS_URL", "elsewhere")
    assert run(["train", "tictactoe", "--preset", "quick", "--print-config", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["seed"], shown["learn"]["batch_size"], shown["search"]["kind"]) == (7, 96, "puct")


def test_where_runs_and_profiles_are(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ALEA_RUNS", str(runs))
    monkeypatch.setenv("ALEA_DEVICE", "cpu")
    assert run(shlex.split("runs list --json")) == 0
    assert {each["name"] for each in json.loads(capsys.readouterr().out)["runs"]} == set(ALGORITHMS)
    monkeypatch.setenv("ALEA_DEVICE", "abacus")
    assert run(shlex.split("eval tictactoe --player random --games 2")) == 2
    assert "abacus" in capsys.readouterr().err
