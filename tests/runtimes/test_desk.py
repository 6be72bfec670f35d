"""A run and the desk: what MLflow holds of it equals its own record, killed and resumed it is one run, and its best
weights play by the registry's name.
"""

from __future__ import annotations

import json
import math
import signal
import urllib.request
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from aleazero.cli.main import run as alea
from aleazero.core.errors import ConfigError, MissingExtra, UnknownName
from aleazero.core.settings import flatten
from aleazero.observe.endpoint import EndpointError
from aleazero.observe.mlflow_client import connect, local_uri
from aleazero.observe.reports import metrics_of
from aleazero.observe.settings import ObserveConfig
from aleazero.players import make_player
from aleazero.runs import RunFolder
from aleazero.runtimes.desk import MetricsPage, need_extras, run_targets, targets_folder
from aleazero.runtimes.start import start
from tests.runtimes.support import (  # noqa: F401 - fixtures
    Children,
    programs,
    quick_programs,
    shared_parts,
    statuses,
    tiny,
    write_config,
)

pytest.importorskip("mlflow")
pytest.importorskip("prometheus_client")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*deprecated.*", "ignore::ResourceWarning"),
]

DESK = (
    *("observe.mlflow=local", "observe.prometheus=true", "observe.metrics_port=0"),
    *("evaluate.opponents=random", "evaluate.every_rows=1280", "observe.mlflow_checkpoint_steps=50"),
)


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("MLFLOW_TRACKING_URI", "ALEA_MLFLOW_URL", "ALEA_RUNS"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, quick_programs: None) -> Path:  # noqa: F811
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aleazero.runtimes.start.build_parts", shared_parts)
        assert start(tiny(*DESK), root, name="it", quiet=True).status == "done"
    return root


def the_run(root: Path) -> tuple[Any, Any]:
    """MLflow's client, and the one run it knows."""
    client = connect(local_uri(root))
    (experiment,) = [found for found in client.search_experiments() if found.name == "tictactoe"]
    (run,) = client.search_runs([experiment.experiment_id])
    return client, run


def test_mlflow_holds_all_settings_and_every_number_of_the_record(trained: Path) -> None:
    client, run = the_run(trained)
    folder = RunFolder(trained / "it")
    assert run.info.status == "FINISHED"
    assert run.data.params == {path: str(value) for path, value in flatten(folder.read_config()).items()}
    expected: dict[str, list[tuple[int, float]]] = {}
    for record in folder.read_reports():
        middle = "/random" if record["kind"] == "eval" else ""
        for name, value in metrics_of(record).items():
            kind, _, rest = name.partition("/")
            expected.setdefault(f"{kind}{middle}/{rest}", []).append((record["step"], value))
    assert set(expected) <= set(run.data.metrics)
    assert {"learn/loss", "learn/losses/policy", "eval/random/score", "replay/rows_held"} <= set(expected)
    for name in ("learn/loss", "selfplay/games", "replay/rows_held", "eval/random/score"):
        history = [(point.step, point.value) for point in client.get_metric_history(run.info.run_id, name)]
        # Two reports of one step, millisecond and value are one point.
        assert set(history) == set(expected[name])
    artifacts = {entry.path for entry in client.list_artifacts(run.info.run_id)}
    assert artifacts == {"config.toml", "curves.svg", "alea.log", "checkpoints", "champion"}
    assert len(client.list_artifacts(run.info.run_id, "checkpoints")) >= 2


def test_the_champion_plays_by_name_with_the_runs_best_weights(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from aleazero.games.tictactoe import TicTacToe

    records = [record for record in RunFolder(trained / "it").read_reports() if record["kind"] == "eval"]
    best = max(records, key=lambda record: (record["score"], record["step"]))
    game = TicTacToe()
    champion: Any = make_player("registry:tictactoe@champion,search=none", game, trained)
    same: Any = make_player(f"run:it@{best['step']},search=none", game, trained)
    for left, right in zip(jax.tree.leaves(champion.weights), jax.tree.leaves(same.weights), strict=True):
        np.testing.assert_array_equal(left, right)
    with pytest.raises(UnknownName, match="champion"):
        make_player("registry:tictactoe@champoin", game, trained)
    match = ["eval", "tictactoe", "--player", "registry:tictactoe@best", "--games", "2", "--runs", str(trained)]
    assert alea(match) == 2
    assert "alias of the registered model 'tictactoe' 'best': known: champion" in capsys.readouterr().err


def test_a_run_that_has_ended_well_is_not_scraped_any_more(trained: Path) -> None:
    assert list(targets_folder(trained).iterdir()) == []


def test_killed_and_resumed_it_is_one_run_and_its_metrics_are_served_meanwhile(
    tmp_path: Path,
    programs: Path,  # noqa: F811
) -> None:
    children, folder = Children(programs), RunFolder(tmp_path / "runs" / "it")
    root = folder.path.parent
    config = tiny(*DESK, "total_rows=100000000", "checkpoint.every_rows=1280", "observe.every_seconds=0.1")
    state = folder.path / "mlflow.json"

    def sent() -> int:
        return json.loads(state.read_text())["sent"]["metrics.jsonl"]["bytes"] if state.exists() else 0

    child = children.start(
        write_config(config, tmp_path / "it.toml"), "--preset", "quick", "--name", "it", "--runs", root
    )
    child.wait_for(lambda: sent() > 0, "something sent")
    child.wait_for(lambda: any(folder.checkpoints.glob("0*")), "a checkpoint")
    (target,) = json.loads((targets_folder(root) / "it.json").read_text())
    token = target["labels"].pop("__param_token")
    assert target["labels"] == {"run": "it", "game": "tictactoe", "role": "train"}
    with urllib.request.urlopen(f"http://{target['targets'][0]}/metrics?token={token}", timeout=30) as answer:
        assert b"alea_games_total" in answer.read()
    child.kill()
    _, before = the_run(root)
    child = children.start("--resume", "it", "--runs", root)  # while the first one's sender may still be at work
    child.wait_for(lambda: statuses(folder)[-1] == "resumed", "going on")
    child.send(signal.SIGINT)
    code, printed = child.finish()
    assert code == 0, printed
    client, after = the_run(root)  # there is still only one
    assert after.info.run_id == before.info.run_id
    assert after.info.status == "KILLED"  # stopped, not finished
    points = client.get_metric_history(after.info.run_id, "selfplay/games")
    kept = {record["step"] for record in folder.read_reports() if record["kind"] == "selfplay"}
    assert kept <= {point.step for point in points}
    assert all(math.isfinite(point.value) for point in points)


def test_extras_that_are_missing_are_named_before_a_run_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aleazero.runtimes.desk.find_spec", lambda name: None)
    for setting, extra in (("observe.prometheus=true", "track"), ("observe.wandb=offline", "wandb")):
        with pytest.raises(MissingExtra, match=rf"aleazero\[{extra}\]"):
            need_extras(tiny(setting).observe)
    with pytest.raises(MissingExtra, match="prometheus-client"):
        start(tiny("observe.prometheus=true"), tmp_path, name="it", quiet=True)
    assert list(tmp_path.iterdir()) == []


def test_a_run_does_not_depend_on_telling_prometheus(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / ".desk").write_text("no folder")
    page = MetricsPage(ObserveConfig(metrics_port=0), run_targets(tmp_path, "it"), {"run": "it"})
    page.close()
    assert "Prometheus is not told where metrics are" in caplog.text


def test_an_address_that_is_not_ours_is_said_before_there_is_a_run() -> None:
    with pytest.raises(EndpointError, match=r"cannot listen on 192\.0\.2\.1"):
        need_extras(ObserveConfig(prometheus=True, metrics_bind="192.0.2.1"))


def test_where_no_boards_can_be_written_is_said_before_there_is_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TENSORBOARD_LOG_DIR", str(tmp_path / "file" / "boards"))
    with pytest.raises(ConfigError, match="TENSORBOARD_LOG_DIR"):
        need_extras(ObserveConfig())
