"""The programs of the desk, Prometheus, Grafana and the MLflow page: which are here, how each is started or had.

Writes what each needs to know into the desk's folder. Starts nothing: that is `services`.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from aleazero.core.files import replace_file
from aleazero.monitor.dashboards import DATASOURCE, dashboard_files
from aleazero.monitor.panels import dashboards
from aleazero.monitor.rules import alert_rules, prometheus_settings
from aleazero.observe.endpoint import in_url
from aleazero.observe.mlflow_client import local_artifacts, local_uri
from aleazero.observe.settings import DESK

PORTS = {"prometheus": 9090, "grafana": 3000, "mlflow": 5000}
HOW_TO_GET = {
    "prometheus": "apt-get install prometheus, or https://prometheus.io/download",
    "grafana": "https://grafana.com/docs/grafana/latest/setup-grafana/installation",
    "mlflow": "pip install mlflow (the page; recording needs only aleazero[track])",
}


@dataclasses.dataclass(frozen=True)
class Desk:
    """Where everything is, and how it is to be reached."""

    root: Path  # of the runs
    bind: str
    prefix: str
    http_sd: tuple[str, ...] = ()  # addresses of heads that say who serves metrics

    @property
    def folder(self) -> Path:
        """What the desk keeps."""
        return (self.root / DESK).resolve()

    @property
    def targets(self) -> Path:
        """Where runs say where their metrics are."""
        return self.folder / "targets"

    @property
    def password_file(self) -> Path:
        """Grafana's, for the user `admin`."""
        return self.folder / "grafana" / "password"


@dataclasses.dataclass(frozen=True)
class Program:
    """How to start one."""

    command: Sequence[str]
    ready: str  # a path that answers once it is up
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


def find_program(name: str, desk: Desk, port: int, prometheus_url: str) -> Program | None:
    """How a program is started here, with all that it needs written down; None where it is not installed."""
    if name == "prometheus":
        return _prometheus(desk, port)
    return _grafana(desk, port, prometheus_url) if name == "grafana" else _mlflow(desk, port)


def _prometheus(desk: Desk, port: int) -> Program | None:
    found = shutil.which("prometheus")
    if found is None:
        return None
    folder = desk.folder / "prometheus"
    folder.mkdir(parents=True, exist_ok=True)
    desk.targets.mkdir(parents=True, exist_ok=True)
    _write(folder / "rules.yml", alert_rules(desk.prefix))
    _write(folder / "prometheus.yml", prometheus_settings(desk.targets, folder / "rules.yml", desk.http_sd))
    command = [
        *(found, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"),
        f"--web.listen-address={in_url(desk.bind)}:{port}",
    ]
    return Program(command, "/-/ready")


def _grafana(desk: Desk, port: int, prometheus_url: str) -> Program | None:
    server, combined = shutil.which("grafana-server"), shutil.which("grafana")
    if server is None and combined is None:
        return None
    folder = desk.folder / "grafana"
    write_provisioning(folder, desk.prefix, prometheus_url)
    password = keep_password(desk.password_file)
    homes = [path for path in ("/usr/share/grafana", "/opt/homebrew/share/grafana") if Path(path).is_dir()]
    home = [f"--homepath={homes[0]}"] if homes else []
    given = {
        "GF_SERVER_HTTP_ADDR": desk.bind,
        "GF_SERVER_HTTP_PORT": str(port),
        "GF_PATHS_DATA": str(folder / "data"),
        "GF_PATHS_LOGS": str(folder / "logs"),
        "GF_PATHS_PROVISIONING": str(folder / "provisioning"),
        "GF_SECURITY_ADMIN_USER": "admin",
        # The value itself: names that end in __FILE are read by the Docker image alone, not by the server.
        "GF_SECURITY_ADMIN_PASSWORD": password,
        "GF_AUTH_ANONYMOUS_ENABLED": "false",
        "GF_USERS_ALLOW_SIGN_UP": "false",
        "GF_ANALYTICS_REPORTING_ENABLED": "false",
        "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH": str(folder / "dashboards" / f"{dashboards()[0].uid}.json"),
    }
    command = [server, *home] if server else [str(combined), "server", *home]
    return Program(command, "/api/health", given)


def _mlflow(desk: Desk, port: int) -> Program | None:
    try:
        importlib.metadata.version("mlflow")  # the small client alone has no page
    except importlib.metadata.PackageNotFoundError:
        return None
    stores = ["--backend-store-uri", local_uri(desk.root), "--artifacts-destination", local_artifacts(desk.root)]
    command = [sys.executable, "-m", "mlflow", "server", *stores, "--host", desk.bind, "--port", str(port)]
    return Program(command, "/health", {"MLFLOW_DISABLE_TELEMETRY": "true"})


def write_provisioning(folder: Path, prefix: str, prometheus_url: str) -> None:
    """Grafana's files: the data source, where dashboards are, and the dashboards."""
    source = {
        **{"name": "Prometheus (alea)", "uid": DATASOURCE, "type": "prometheus", "access": "proxy"},
        **{"url": prometheus_url, "isDefault": True, "editable": False},
    }
    provider = {
        **{"name": "alea", "folder": "Alea", "type": "file", "allowUiUpdates": False},
        "options": {"path": str((folder / "dashboards").resolve())},
    }
    files = {f"dashboards/{name}": text for name, text in dashboard_files(prefix).items()}
    files["provisioning/datasources/alea.yaml"] = json.dumps({"apiVersion": 1, "datasources": [source]}, indent=1)
    files["provisioning/dashboards/alea.yaml"] = json.dumps({"apiVersion": 1, "providers": [provider]}, indent=1)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        _write(folder / name, text)


def keep_password(path: Path) -> str:
    """The password in a file that only its owner reads; a new one, made at random, where there is none."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, secrets.token_urlsafe(18).encode(), mode=0o600)
    os.chmod(path, 0o600)
    return path.read_text("utf-8").strip()


def _write(path: Path, text: str) -> None:
    replace_file(path, text.encode())
