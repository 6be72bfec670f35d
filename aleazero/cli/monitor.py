"""`alea monitor`: starts and stops the desk's programs, and says where they are."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from aleazero.cli.answer import print_json
from aleazero.cli.common import active_run
from aleazero.core.errors import ConfigError
from aleazero.monitor.dashboards import dashboard_files
from aleazero.monitor.programs import Desk
from aleazero.monitor.rules import alert_rules
from aleazero.monitor.services import Service
from aleazero.monitor.services import down as stop
from aleazero.monitor.services import up as start
from aleazero.observe.catalogue import prefix_problems
from aleazero.observe.endpoint import LOOPBACK
from aleazero.runs import RunError, runs_root


def up(bind: str, prefix: str, http_sd: tuple[str, ...], runs: Path | None, as_json: bool) -> int:
    """Starts the desk."""
    _check(prefix)
    desk = Desk(runs_root(runs), bind, prefix, http_sd)
    services = start(desk)
    if as_json:
        print_json({"services": [dataclasses.asdict(service) for service in services]})
        return 0
    _tell(services)
    if any(service.name == "grafana" and service.url for service in services):
        print(f"Grafana: user admin, password in {desk.password_file}")
    if bind not in (LOOPBACK, "localhost", "::1"):
        print(
            f"alea: whoever reaches {bind} can read Prometheus and read and change MLflow: they ask for no password",
            file=sys.stderr,
        )
    return 0


def down(runs: Path | None, as_json: bool) -> int:
    """Stops the desk."""
    services = stop(Desk(runs_root(runs), LOOPBACK, "alea"))
    if as_json:
        print_json({"services": [dataclasses.asdict(service) for service in services]})
    elif services:
        _tell(services)
    else:
        print("nothing runs")
    return 0


def send(name: str | None, seconds: float, runs: Path | None, as_json: bool) -> int:
    """Sends what a run that nobody trains has kept back."""
    from aleazero.runtimes.desk import need_extras, orders
    from aleazero.runtimes.sender import send_rest

    root = runs_root(runs)
    folder = active_run(root, name)
    config = folder.read_config()
    if not config.observe.mlflow and config.observe.wandb == "off":
        raise ConfigError(f"run {folder.name!r} tells nobody: observe.mlflow is empty and observe.wandb is off")
    need_extras(config.observe)
    with folder.held():
        if not folder.metrics_file.exists():
            raise RunError(f"run {folder.name!r} has no reports yet")
        drained = [send_rest(order, seconds) for order in orders(config, folder, root)]  # every one gets its try
    sent = all(drained)
    if as_json:
        print_json({"run": folder.name, "sent": sent})
    elif sent:
        print(f"everything of {folder.name} is sent")
    return 0 if sent else 1


def write(folder: Path, prefix: str) -> int:
    """Writes dashboards and rules."""
    _check(prefix)
    files = {**dashboard_files(prefix), "rules.yml": alert_rules(prefix)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
            print(folder / name)
    except OSError as error:
        raise ConfigError(f"{str(folder)!r} cannot be written to: {error}; name another folder") from error
    return 0


def _tell(services: Sequence[Service]) -> None:
    for service in services:
        print(f"{service.name}: {service.url + ' ' if service.url else ''}{service.said}")


def _check(prefix: str) -> None:
    problems = prefix_problems(prefix)
    if problems:
        raise ConfigError("\n".join(problems))
