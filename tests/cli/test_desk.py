"""Whom a run tells, from the command line; sending what could not be sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from aleazero.cli.main import run
from aleazero.observe.mlflow_client import connect, local_uri
from tests.cli.conftest import Alea
from tests.frozen.shape import check_file, shape_of


def test_options_are_settings(alea: Alea) -> None:
    command = ["train", "tictactoe", "--preset", "quick", "--print-config"]
    plain = alea(*command)["observe"]
    assert (plain["prometheus"], plain["mlflow"], plain["wandb"]) == (False, "", "off")
    told = ["--metrics", "--metrics-prefix", "bgai", "--mlflow", "http://desk:5000", "--wandb", "offline"]
    observe = alea(*command, *told)["observe"]
    assert (observe["prometheus"], observe["metrics_port"], observe["metrics_prefix"]) == (True, 9200, "bgai")
    assert (observe["mlflow"], observe["wandb"]) == ("http://desk:5000", "offline")
    assert alea(*command, "--metrics-port", 9300)["observe"] == {**plain, "prometheus": True, "metrics_port": 9300}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--metrics-prefix", "9a-b"], "metrics_prefix is '9a-b'"),
        (["--metrics-port", "70000"], "metrics_port is 70000"),
        (["--mlflow", "ftp://x"], "mlflow is 'ftp://x'; write 'local', http://HOST:PORT"),
        (["--wandb", "of"], "offline"),
        (["--set", "observe.hardware_seconds=-1"], "hardware_seconds is -1"),
        (["--set", "observe.mlflow_model=a/b"], "mlflow_model is 'a/b'"),
    ],
)
def test_misuse_exits_with_2(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", "tictactoe", "--preset", "quick", "--runs", str(tmp_path), *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*deprecated.*", "ignore::ResourceWarning")
def test_what_was_not_sent_is_sent_later_once(
    runs: Path,
    alea: Alea,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    regenerate: bool,
) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert run(["monitor", "send", "tiny", "--runs", str(runs)]) == 2
    assert "observe.mlflow is empty" in capsys.readouterr().err
    config = runs / "tiny" / "config.toml"
    config.write_text(config.read_text().replace('mlflow = ""', 'mlflow = "local"'))
    for _ in range(2):
        told = alea("monitor", "send", "tiny", "--runs", runs)
        assert told == {"run": "tiny", "sent": True}
    check_file("json/monitor-send.txt", shape_of(told), regenerate)
    client = connect(local_uri(runs))
    (experiment,) = [found for found in client.search_experiments() if found.name == "tictactoe"]
    (sent,) = client.search_runs([experiment.experiment_id])
    assert (sent.info.status, sent.data.tags["run"]) == ("FINISHED", "tiny")
    champion = client.get_model_version_by_alias("tictactoe", "champion")
    assert champion.run_id == sent.info.run_id
    named = {
        "metric": sent.data.metrics,
        "parameter": sent.data.params,
        "tag": sent.data.tags,
        "version": champion.tags,
    }
    lines = [f"{kind} {key}" for kind, keys in named.items() for key in sorted(keys)]
    others = ("metric hardware/", "tag mlflow.")  # what comes with time, and MLflow's own
    check_file("metrics/mlflow.txt", "\n".join(line for line in lines if not line.startswith(others)), regenerate)
    config.write_text(config.read_text().replace('mlflow = "local"', 'mlflow = "http://127.0.0.1:9"'))
    assert run(["monitor", "send", "tiny", "--seconds", "5", "--runs", str(runs)]) == 1
