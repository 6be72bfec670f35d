"""The operations desk of one process of a run: the sinks that its settings ask for, joined.

Knows every sink by name and none of them inside.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax

from aleazero import __version__, export
from aleazero import checkpoint as checkpoints
from aleazero.assemble_ppo import parts_of
from aleazero.config import RunConfig
from aleazero.core.errors import AleaError, ConfigError, MissingExtra
from aleazero.core.settings import flatten
from aleazero.observe.console import ConsoleSink
from aleazero.observe.endpoint import Endpoint
from aleazero.observe.hardware import HardwareSampler
from aleazero.observe.jsonl import JsonlSink
from aleazero.observe.mlflow_client import artifacts_of, local_artifacts, local_uri, need_mlflow
from aleazero.observe.prometheus import PATH, PrometheusSink
from aleazero.observe.reports import EvalReport, Report
from aleazero.observe.settings import DESK, MLFLOW_LOCAL, ObserveConfig
from aleazero.observe.sink import Fanout, Sink
from aleazero.observe.targets import Target, write_targets
from aleazero.observe.tensorboard import TensorboardSink
from aleazero.players import find_checkpoint
from aleazero.registry import models_of_mlflow
from aleazero.runs import RunFolder
from aleazero.runtimes.sender import Order, Sender
from aleazero.shelf import Shelf

logger = logging.getLogger(__name__)

TENSORBOARD_VARIABLE = "TENSORBOARD_LOG_DIR"  # where set, every run has a folder of its name there


def need_extras(settings: ObserveConfig) -> None:
    """Says what the sinks asked for do not have, before a run is made."""
    if settings.prometheus and find_spec("prometheus_client") is None:
        raise MissingExtra("metrics for Prometheus", "prometheus-client", "track")
    if settings.prometheus:
        Endpoint({}, 0, settings.metrics_bind).close()  # an address that is not ours is said before there is a run
    if settings.mlflow:
        need_mlflow()
    if settings.wandb != "off" and find_spec("wandb") is None:
        raise MissingExtra("Weights & Biases", "wandb", "wandb")
    if shared := os.environ.get(TENSORBOARD_VARIABLE):
        try:
            Path(shared).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{TENSORBOARD_VARIABLE} is {shared!r}, where nothing can be written: {error}") from error


def need_ray() -> None:
    """Says what has to be installed for a run on Ray."""
    if find_spec("ray") is None:
        raise MissingExtra("a run on Ray", "ray", "cluster")


def need_rllib() -> None:
    """Says what has to be installed for a run by RLlib."""
    needed = {"ray": "ray", "torch": "torch", "gymnasium": "gymnasium", "pandas": "pandas", "pyarrow": "pyarrow"}
    needed |= {"tree": "dm-tree", "lz4": "lz4", "ormsgpack": "ormsgpack"}
    missing = [package for module, package in needed.items() if find_spec(module) is None]
    if missing:
        raise MissingExtra("a run by RLlib", ", ".join(missing), "rllib")


def journal_alone(config: RunConfig, folder: RunFolder, root: Path, quiet: bool, sends: bool = True) -> Fanout:
    """The journal, and how busy this machine is: for a process whose reports another one shows and sends."""
    fanout = Fanout([JsonlSink(folder.metrics_file)])
    if config.observe.hardware_seconds:
        fanout.add(HardwareSampler(fanout, config.observe.hardware_seconds))
    return fanout


def open_sinks(config: RunConfig, folder: RunFolder, root: Path, quiet: bool, sends: bool = True) -> Fanout:
    """Where a run's reports go. `root` is where runs are kept; `sends`: to services elsewhere, too."""
    fanout = journal_alone(config, folder, root, quiet)  # the first one: others read what it writes
    add_sinks(fanout, config, folder, root, quiet, sends)
    return fanout


def add_sinks(fanout: Fanout, config: RunConfig, folder: RunFolder, root: Path, quiet: bool, sends: bool) -> None:
    """All that a run's settings ask for beside its journal."""
    settings = config.observe
    shared = os.environ.get(TENSORBOARD_VARIABLE)
    if settings.tensorboard or shared:
        fanout.add(TensorboardSink(Path(shared) / folder.name if shared else folder.path / "tensorboard"))
    if not quiet:
        fanout.add(ConsoleSink(every_seconds=settings.every_seconds))
    if settings.prometheus:
        labels = {"run": folder.name, "game": config.game, "role": "train"}
        fanout.add(MetricsPage(settings, run_targets(root, folder.name), labels))
    for order in orders(config, folder, root) if sends else ():
        fanout.add(Sender(order))


def targets_folder(root: Path) -> Path:
    """Where runs below a root say where their metrics are served."""
    return root / DESK / "targets"


def run_targets(root: Path, run: str) -> Path:
    """Where the process that trains a run says where its metrics are."""
    return targets_folder(root) / f"{run}.json"


def head_targets(root: Path, run: str) -> Path:
    """Where a run's head says the same of itself and of the workers. (No run's name has a tilde.)"""
    return targets_folder(root) / f"{run}~head.json"


class MetricsPage:
    """A sink that serves metrics, and a file that tells Prometheus where. A process that is killed leaves the file."""

    def __init__(self, settings: ObserveConfig, file: Path, labels: dict[str, str]) -> None:
        self._sink: Sink
        page = PrometheusSink(settings.metrics_prefix)
        self._sink, self._file = page, file
        self._endpoint = Endpoint({PATH: page.page}, settings.metrics_port, settings.metrics_bind)
        try:
            write_targets(file, [Target(self._endpoint.address, labels, self._endpoint.token)])
        except OSError as error:  # a run does not depend on who looks at it
            logger.warning("Prometheus is not told where metrics are: %s", error)
        logger.info("metrics: http://%s%s", self._endpoint.address, PATH)

    def emit(self, report: Report) -> None:
        """Takes the report's numbers."""
        self._sink.emit(report)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """Stops serving; Prometheus forgets the run, which has come to a good end."""
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)
        self._endpoint.close()


def orders(config: RunConfig, folder: RunFolder, root: Path) -> list[Order]:
    """What is to be sent to services elsewhere, each by a process of its own."""
    settings, plans = config.observe, []
    params = {path: str(value) for path, value in flatten(config).items()}
    tags = {"run": folder.name, "game": config.game, "aleazero": __version__}
    local = settings.mlflow == MLFLOW_LOCAL
    if settings.mlflow:
        mlflow: dict[str, Any] = {
            "uri": local_uri(root) if local else settings.mlflow,
            "artifacts": local_artifacts(root) if local else artifacts_of(settings.mlflow),
            "experiment": config.game,
            "run_name": folder.name,
            "params": params,
            "tags": tags,
            "first_files": [str(folder.config_file.resolve())],
            "last_files": [str(path.resolve()) for path in (folder.path / "curves.svg", folder.log_file)],
            "checkpoint_steps": settings.mlflow_checkpoint_steps,
            "model": settings.mlflow_model or model_name(config),
            "judge": config.evaluate.opponents[0] if config.evaluate.opponents else "",
        }
        plans.append(("mlflow", mlflow))
    if settings.wandb != "off":
        names = {"project": settings.wandb_project, "run_name": folder.name, "mode": settings.wandb}
        plans.append(("wandb", {**names, "params": params, "tags": list(tags.values())}))
    where = (str(folder.path.resolve()), str(root.resolve()))
    return [
        Order(service, *where, plan, settings.json_logs, settings.log_level)  # type: ignore[arg-type]
        for service, plan in plans
    ]


def model_name(config: RunConfig) -> str:
    """The registered model of a game's networks, and what runs of it are called."""
    return re.sub(r"[:/=]", "_", config.game)


def write_network(folder: Path, root: Path, step: int, into: Path) -> None:
    """Exports the weights that a run played with at a step."""
    run = RunFolder(folder)
    parts = parts_of(run.read_config(), root)
    found = find_checkpoint(run, str(step))
    weights = checkpoints.restore(found, "average", jax.eval_shape(parts.model.init, jax.random.key(0)))
    facts = {"run": run.name, "step": step, "rows": found.facts["rows"], "package_version": __version__}
    export.write(into, parts.model, weights, facts)


def register(config: RunConfig, folder: RunFolder, root: Path) -> None:
    """A run that is done puts its best weights, by its matches against its first opponent, on the shelf.

    Not where MLflow is told: that has a registry. What cannot be registered is said, and no failure of the run.
    """
    judges = config.evaluate.opponents
    if config.observe.mlflow or not config.observe.register or not judges:
        return
    there = set(folder.steps())
    matches = [r for r in folder.read_reports() if r["kind"] == EvalReport.kind and r["opponent"] == judges[0]]
    matches = [record for record in matches if record["step"] in there]
    if not matches:
        return
    best = max(matches, key=lambda record: (record["score"], record["step"]))
    match = {key: best[key] for key in ("opponent", "score", "games", "step")} | {"run": folder.name}
    shelf = Shelf(root, model_name(config))
    try:
        version = shelf.add(lambda into: write_network(folder.path, root, best["step"], into), match)
        hidden = shelf.name in models_of_mlflow(root)
    except (AleaError, OSError) as error:
        logger.warning("the weights of step %d are not registered: %s", best["step"], error)
        return
    if hidden:
        logger.warning("step %d is version %d of %s on the shelf, but registry:%s means MLflow's model of that name; "
                       "train with --mlflow local to register it there", best["step"], version, shelf.name,
                       shelf.name)  # fmt: skip
        return
    champion = " and its champion" if shelf.champion == version else ""
    logger.info("step %d is version %d of %s%s: registry:%s@%d", best["step"], version, shelf.name, champion,
                shelf.name, version)  # fmt: skip
