"""Networks by name from a model registry: `NAME[@ALIAS]`, where the alias is `champion` if left out.

The registry is the MLflow server that ALEA_MLFLOW_URL (or MLFLOW_TRACKING_URI) names; else what lies beside the runs:
MLflow's database if it has the model, or the shelf of files (`aleazero.shelf`). What is registered is a folder as
`aleazero.export` writes it, with its checksums. Knows no game.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from aleazero.core.errors import AleaError, ConfigError, MissingExtra, UnknownName
from aleazero.observe.mlflow_client import CHAMPION, connect, import_mlflow, local_uri
from aleazero.observe.settings import DESK
from aleazero.shelf import Shelf, shelves

logger = logging.getLogger(__name__)

URL_VARIABLE = "ALEA_MLFLOW_URL"


class RegistryError(AleaError):
    """The registry cannot be asked."""


def registered_folder(text: str, root: Path) -> Path:
    """The folder of an exported network, fetched if it is elsewhere, from `NAME[@ALIAS]`."""
    name, _, alias = text.partition("@")
    if not name:
        raise ConfigError(f"'registry:{text}' names no model; write registry:NAME[@ALIAS]")
    server = os.environ.get(URL_VARIABLE) or os.environ.get("MLFLOW_TRACKING_URI")
    uri = server or local_uri(root)
    if not server:
        shelved, known = shelves(root), models_of_mlflow(root)
        if name in shelved and name not in known:
            return Shelf(root, name).folder(alias or CHAMPION)
        if not known and not shelved:
            raise ConfigError(
                f"'registry:{text}': nothing is registered beside the runs in {root}: train a run that is measured "
                f"(evaluate.opponents) to its end, or name a server by {URL_VARIABLE}"
            )
        if name not in known:
            raise UnknownName("registered model", name, sorted({*known, *shelved}))
    mlflow = import_mlflow()
    try:
        client = connect(uri)
        version = _version(client, name, alias or CHAMPION)
        target = (root / DESK / "registry" / name / str(version.version)).resolve()
        if version.source.startswith("file://"):
            return Path(mlflow.artifacts.download_artifacts(artifact_uri=version.source))
        target.mkdir(parents=True, exist_ok=True)
        return Path(
            mlflow.artifacts.download_artifacts(artifact_uri=version.source, dst_path=str(target), tracking_uri=uri)
        )
    except mlflow.exceptions.MlflowException as error:
        raise RegistryError(
            f"'registry:{text}' cannot be had from {uri}: {str(error).partition(chr(10))[0]}"
        ) from error


def models_of_mlflow(root: Path) -> list[str]:
    """Those in MLflow's database beside the runs; none where there is none, or no MLflow to read it with."""
    path = root / DESK / "mlflow.db"
    if not path.exists():
        return []
    try:
        mlflow = import_mlflow()
    except MissingExtra as error:
        logger.warning("the models in %s are not looked at: %s", path, error)
        return []
    try:
        return [str(model.name) for model in connect(local_uri(root)).search_registered_models(max_results=1000)]
    except mlflow.exceptions.MlflowException as error:
        raise RegistryError(f"{path} cannot be read: {str(error).partition(chr(10))[0]}") from error


def _version(client: Any, name: str, alias: str) -> Any:
    models = {model.name: model for model in client.search_registered_models(max_results=1000)}
    if name not in models:
        raise UnknownName("registered model", name, models)
    aliases = {str(key): value for key, value in models[name].aliases.items()}
    if alias not in aliases:
        raise UnknownName(f"alias of the registered model {name!r}", alias, aliases or ["none is set"])
    return client.get_model_version(name, aliases[alias])
