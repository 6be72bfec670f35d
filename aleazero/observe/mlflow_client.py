"""How MLflow is met: with short timeouts, few retries, no word to its makers, and no chatter on standard error.

Imports MLflow, which takes about a second: call it where that does not matter. Knows no run.
"""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aleazero.core.errors import MissingExtra
from aleazero.observe.settings import DESK

CHAMPION = "champion"
TIMEOUT_SECONDS = 10
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": str(TIMEOUT_SECONDS),
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "0",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}


def need_mlflow() -> None:
    """Says what to install where MLflow is not there; imports nothing."""
    for module, package in (("mlflow", "mlflow-skinny"), ("sqlalchemy", "sqlalchemy"), ("alembic", "alembic")):
        if find_spec(module) is None:
            raise MissingExtra("MLflow", package, "track")


def local_uri(root: Path) -> str:
    """The database of all runs below a root."""
    return f"sqlite:///{(root / DESK / 'mlflow.db').resolve()}"


def local_artifacts(root: Path) -> str:
    """Where their files go."""
    return (root / DESK / "mlartifacts").resolve().as_uri()


def artifacts_of(uri: str) -> str | None:
    """Where files go: beside a database, and not wherever the process happens to be; None: as a server likes."""
    if not uri.startswith("sqlite:///"):
        return None
    return (Path(uri.removeprefix("sqlite:///")).resolve().parent / "mlartifacts").as_uri()


def import_mlflow() -> Any:
    """The module, quiet."""
    need_mlflow()
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name in ("alembic", "mlflow"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of ours there is none to see in its imports
        module = import_module("mlflow")
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        return module


def connect(uri: str) -> Any:
    """A client of a tracking server, or of a database, for tracking and for the registry."""
    mlflow = import_mlflow()
    if uri.startswith("sqlite:///"):
        path = Path(uri.removeprefix("sqlite:///"))
        if not path.exists():
            _make_database(mlflow, path)
    return mlflow.MlflowClient(tracking_uri=uri, registry_uri=uri)


def _make_database(mlflow: Any, path: Path) -> None:
    """All tables or none: a process that is killed while MLflow makes them would leave a file that nobody can use."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    try:
        uri = f"sqlite:///{fresh}"
        mlflow.MlflowClient(tracking_uri=uri, registry_uri=uri).search_experiments(max_results=1)
        with contextlib.suppress(FileExistsError):  # another run may have been faster
            os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
