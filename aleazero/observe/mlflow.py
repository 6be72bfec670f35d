"""A run in MLflow: its settings as parameters, its reports as metrics, its checkpoints and curves as artifacts, and its
best weights as a version of a registered model, with the alias `champion` where none before them was better.

A resumed run goes on with the same MLflow run. Is called from a `Follower`'s thread only, so it may take its time and
may fail. Knows reports as records; how weights are exported is handed in.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aleazero.observe.follow import Record, Refused
from aleazero.observe.mlflow_client import CHAMPION, connect, import_mlflow
from aleazero.observe.reports import metrics_of

_log = logging.getLogger(__name__)

MOST_METRICS, MOST_PARAMS = 1000, 100  # that MLflow takes at once
LONGEST_VALUE, LONGEST_KEY = 5900, 240
MOST_SCORED = 16  # matches that are remembered
_ENDS = {"done": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}
_NOT_IN_KEYS = re.compile(r"[^\w\-. /:]")


@dataclasses.dataclass(frozen=True)
class MlflowPlan:
    """What is to be told, and where."""

    uri: str
    artifacts: str | None  # where a new experiment keeps its files; None: where the server likes
    experiment: str
    run_name: str
    params: Mapping[str, str]
    tags: Mapping[str, str]
    checkpoints: Path  # where the run has them
    first_files: Sequence[Path]  # kept when the run begins: its settings
    last_files: Sequence[Path]  # kept when it ends, those that are there: its curves, its log
    checkpoint_steps: int  # between two checkpoints that are kept; 0: none
    model: str  # the registered model
    judge: str  # the opponent whose match says which weights are best; "": nobody does
    export: Callable[[int, Path], None]  # writes the network of a step into a folder


class MlflowBackend:
    """One MLflow run."""

    name = "MLflow"

    def __init__(self, plan: MlflowPlan) -> None:
        self._plan = plan
        self._client: Any = None
        self._entities: Any = None
        # uri, run_id, status, kept_step, scored, registered; and the same of `others`, where it was sent before
        self.state: dict[str, Any] = {}

    def open(self) -> bool:
        """Makes the run, or finds the one that `state` names; whether all is to be sent, as to another server."""
        self._client, self._entities = connect(self._plan.uri), import_mlflow().entities
        fresh = self.state.get("uri") != self._plan.uri
        if fresh:
            self._turn_to(self._plan.uri)
        if "run_id" not in self.state or not self._found():
            fresh = True
            made = self._client.create_run(self._experiment(), run_name=self._plan.run_name, tags=dict(self._plan.tags))
            self._forget()
            self.state |= {"uri": self._plan.uri, "run_id": made.info.run_id}
        self._log_params()
        for path in self._plan.first_files:
            self._client.log_artifact(self._id, str(path))
        return fresh

    def send(self, records: list[Record]) -> None:
        """Metrics first, then what comes with files."""
        metrics = [metric for record in records for metric in self._metrics(record)]
        for start in range(0, len(metrics), MOST_METRICS):
            self._taken(self._client.log_batch, self._id, metrics=metrics[start : start + MOST_METRICS])
        for record in records:
            if record["kind"] == "checkpoint" and record.get("saved"):
                self._keep_checkpoint(record)
            elif record["kind"] == "eval" and record["opponent"] == self._plan.judge:
                self._note_best(record)
            elif record["kind"] == "run":
                self.state["status"] = _ENDS.get(record["status"], "KILLED")
            elif record["kind"] == "alarm":
                self._client.set_tag(self._id, f"alarm.{_key(record['name'])}", record["message"][:LONGEST_VALUE])

    def close(self) -> None:
        """Keeps the last files, registers the best weights and says how the run ended."""
        for path in self._plan.last_files:
            if path.exists():
                self._client.log_artifact(self._id, str(path))
        self._register()
        self._client.set_terminated(self._id, self.state.get("status", "KILLED"))

    # ---- parts

    def _turn_to(self, uri: str) -> None:
        """What is known of the run at another server, in place of what is known of it here, which is kept."""
        others = {**self.state.pop("others", {})}
        if "uri" in self.state:
            others[self.state["uri"]] = dict(self.state)
        self._forget()
        self.state |= {**others.pop(uri, {}), "others": others}

    def _forget(self) -> None:
        others = self.state.get("others", {})
        self.state.clear()
        self.state["others"] = others

    @property
    def _id(self) -> str:
        return str(self.state["run_id"])

    def _found(self) -> bool:
        """Whether the server knows our run; then it is running again."""
        try:
            found = self._client.get_run(self._id)
        except self._mistake as error:
            if _code(error) != "RESOURCE_DOES_NOT_EXIST":
                raise
            _log.warning("MLflow does not know run %s any more; a new one is begun", self._id)
            return False
        if found.info.lifecycle_stage == "deleted":
            self._client.restore_run(self._id)
        self._client.update_run(self._id, status="RUNNING")
        return True

    @property
    def _mistake(self) -> type[Exception]:
        return import_mlflow().exceptions.MlflowException

    def _experiment(self) -> str:
        name = self._plan.experiment
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self._client.create_experiment(name, artifact_location=self._plan.artifacts))
            except self._mistake as error:
                if _code(error) != "RESOURCE_ALREADY_EXISTS":  # another run may have been faster
                    raise
                found = self._client.get_experiment_by_name(name)
        return str(found.experiment_id)

    def _log_params(self) -> None:
        """Settings; what a resumed run has changed becomes a tag, since parameters are for good."""
        known = self._client.get_run(self._id).data.params
        given = {key: value[:LONGEST_VALUE] for key, value in self._plan.params.items()}
        fresh = [self._entities.Param(key, value) for key, value in given.items() if key not in known]
        for start in range(0, len(fresh), MOST_PARAMS):
            self._client.log_batch(self._id, params=fresh[start : start + MOST_PARAMS])
        for key, value in given.items():
            if key in known and known[key] != value:
                self._client.set_tag(self._id, f"resumed.{key}", value)

    def _metrics(self, record: Record) -> Iterator[Any]:
        middle = f"/{record['opponent']}" if record["kind"] == "eval" else ""
        numbers = metrics_of(record)
        if record["kind"] == "learn":
            numbers["learn/weights_version"] = record["step"]
        for name, value in numbers.items():
            kind, _, rest = name.partition("/")
            key = _key(f"{kind}{middle}/{rest}")
            yield self._entities.Metric(key, float(value), int(record["time"] * 1000), record["step"])

    def _keep_checkpoint(self, record: Record) -> None:
        every, step = self._plan.checkpoint_steps, record["step"]
        if not every or step // every <= self.state.get("kept_step", -1) // every:
            return
        with tempfile.TemporaryDirectory() as folder:
            try:
                # Linked before they are sent: the run drops old checkpoints whenever it likes.
                shutil.copytree(
                    self._plan.checkpoints / Path(record["path"]).name, Path(folder) / "it", copy_function=_link
                )
            except (OSError, shutil.Error):
                _log.info("the checkpoint of step %d was dropped before MLflow could have it", step)
                return
            self._client.log_artifacts(self._id, str(Path(folder) / "it"), f"checkpoints/{step:012d}")
        self.state["kept_step"] = step

    def _note_best(self, record: Record) -> None:
        """The best matches, best first: the weights of some may be in no checkpoint. The last match is always there."""
        found = {key: record[key] for key in ("step", "score", "opponent", "games")}
        others = [match for match in self.state.get("scored", []) if match["step"] != found["step"]]
        others = sorted(others, key=_merit, reverse=True)[: MOST_SCORED - 1]
        self.state["scored"] = sorted([*others, found], key=_merit, reverse=True)

    def _register(self) -> None:
        """A version of the model of the run's best weights; the champion if the one before scored no better."""
        best, model = self._keep_best(), self._plan.model
        if best is None:
            return
        path = _champion_path(best)
        try:
            self._client.create_registered_model(model)
        except self._mistake as error:
            if _code(error) != "RESOURCE_ALREADY_EXISTS":
                raise
        source = f"{self._client.get_run(self._id).info.artifact_uri}/{path}"
        tags = {**self._plan.tags, **{key: str(value) for key, value in best.items()}}
        version = self._client.create_model_version(model, source, self._id, tags=tags).version
        self.state["registered"] = best["step"]
        if self._better(best):
            self._client.set_registered_model_alias(model, CHAMPION, version)
            _log.info("version %s of %s is its champion: registry:%s@%s", version, model, model, CHAMPION)

    def _keep_best(self) -> Mapping[str, Any] | None:
        """The best match whose weights are there, once they are kept; None where they were before, or none are."""
        for best in self.state.get("scored", []):
            if self.state.get("registered") == best["step"]:
                return None
            with tempfile.TemporaryDirectory() as folder:
                try:
                    self._plan.export(best["step"], Path(folder))
                except Exception as error:  # in no checkpoint, or in one that is gone
                    _log.warning("the weights of step %d are not registered: %s", best["step"], error)
                    continue
                self._client.log_artifacts(self._id, folder, _champion_path(best))
                return dict(best)
        return None

    def _better(self, best: Mapping[str, Any]) -> bool:
        try:
            champion = self._client.get_model_version_by_alias(self._plan.model, CHAMPION)
        except self._mistake as error:
            if _code(error) not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
                raise  # not knowing the champion is not having none
            return True
        if champion.tags.get("opponent") != best["opponent"]:
            return True  # scores against different opponents do not compare; the newer judge counts
        return best["score"] >= float(champion.tags.get("score", "-inf"))

    def _taken(self, call: Callable[..., Any], *args: Any, **options: Any) -> None:
        """A call whose content may be refused for good."""
        try:
            call(*args, **options)
        except self._mistake as error:
            if _code(error) in ("INVALID_PARAMETER_VALUE", "BAD_REQUEST"):
                raise Refused(str(error)) from error
            raise


def _merit(match: Mapping[str, Any]) -> tuple[float, int]:
    return match["score"], match["step"]


def _champion_path(match: Mapping[str, Any]) -> str:
    return f"{CHAMPION}/{match['step']:012d}"


def _code(error: Exception) -> str:
    return str(getattr(error, "error_code", ""))


def _key(text: str) -> str:
    """A name that MLflow takes."""
    return _NOT_IN_KEYS.sub("_", text)[:LONGEST_KEY]


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
