"""Who serves metrics, in the two ways in which Prometheus asks: a file it watches (`file_sd`), a page (`http_sd`).

Knows nothing of runs and workers: labels are handed in.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from aleazero.core.files import replace_file
from aleazero.observe.endpoint import LOOPBACK, TOKEN, Endpoint

PATH = "/targets"
_PARAMETER = f"__param_{TOKEN}"  # Prometheus makes it a part of what it asks for, and no label


@dataclasses.dataclass(frozen=True)
class Target:
    """One endpoint, and the labels that all its metrics get: `run`, `game`, `role`, ..."""

    address: str  # host:port
    labels: Mapping[str, str]
    token: str = ""  # the endpoint's; whoever has its port after it refuses to answer in its name


def targets_json(targets: Iterable[Target]) -> bytes:
    """Targets as Prometheus reads them."""
    listed = [{"targets": [target.address], "labels": _labels(target)} for target in targets]
    return json.dumps(listed, indent=1).encode() + b"\n"


def write_targets(path: Path, targets: Iterable[Target]) -> None:
    """Writes a `file_sd` file, whole or not at all; Prometheus sees the change within a moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, targets_json(targets))


def read_targets(path: Path) -> list[Target]:
    """Those of a `file_sd` file that we wrote; none where there is none."""
    try:
        found = json.loads(path.read_text("utf-8"))
        return [_target(address, dict(entry["labels"])) for entry in found for address in entry["targets"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _labels(target: Target) -> dict[str, str]:
    return {**target.labels, _PARAMETER: target.token} if target.token else dict(target.labels)


def _target(address: str, labels: dict[str, str]) -> Target:
    token = labels.pop(_PARAMETER, "")
    return Target(address, labels, token)


class TargetServer:
    """Serves `http_sd` on `/targets`: whatever `targets` gives when it is asked."""

    def __init__(self, targets: Callable[[], Iterable[Target]], port: int, bind: str = LOOPBACK) -> None:
        self._endpoint = Endpoint({PATH: lambda: ("application/json", targets_json(targets()))}, port, bind)

    @property
    def url(self) -> str:
        """What `http_sd_configs` has as its `url`."""
        return f"http://{self._endpoint.address}{PATH}"

    def close(self) -> None:
        """Stops; closing twice is closing once."""
        self._endpoint.close()
