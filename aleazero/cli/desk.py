"""`alea monitor`, and the options by which a run tells others of itself. Nothing heavy is imported for `--help`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from aleazero.cli.options import Json, Runs, SomeRun

monitor_app = App(name="monitor", help="Prometheus, Grafana and MLflow's page for the runs on this machine.")


@Parameter(name="*")
@dataclasses.dataclass(frozen=True)
class Telling:
    """Whom a run tells of itself; each is a setting of `observe` too."""

    metrics: Annotated[bool, Parameter(negative="", help="Serve metrics to Prometheus.")] = False
    metrics_port: Annotated[int | None, Parameter(help="On this port (9200), or the next free one.")] = None
    metrics_prefix: Annotated[str | None, Parameter(help="Of the metrics' names (alea).")] = None
    mlflow: Annotated[
        str | None, Parameter(help="Record the run in MLflow: local, or a server's http://HOST:PORT.")
    ] = None
    wandb: Annotated[Literal["offline", "online"] | None, Parameter(help="Record the run in Weights & Biases.")] = None

    def assignments(self) -> list[str]:
        """As settings."""
        given = {
            "prometheus": "true" if self.metrics or self.metrics_port is not None or self.metrics_prefix else None,
            "metrics_port": self.metrics_port,
            "metrics_prefix": self.metrics_prefix,
            "mlflow": self.mlflow,
            "wandb": self.wandb,
        }
        return [f"observe.{name}={value}" for name, value in given.items() if value is not None]


@monitor_app.command
def up(
    *,
    bind: Annotated[str, Parameter(help="The address to listen on; 0.0.0.0 for the whole network.")] = "127.0.0.1",
    metrics_prefix: Annotated[str, Parameter(help="Of the metrics' names, as the runs have it.")] = "alea",
    http_sd: Annotated[
        list[str] | None, Parameter(negative="", help="Where a head says who serves metrics; repeatable.")
    ] = None,
    runs: Runs = None,
    as_json: Json = False,
) -> int:
    """Start what is installed of Prometheus (9090), Grafana (3000) and MLflow's page (5000), with dashboards."""
    from aleazero.cli import monitor as command

    return command.up(bind, metrics_prefix, tuple(http_sd or ()), runs, as_json)


@monitor_app.command
def down(*, runs: Runs = None, as_json: Json = False) -> int:
    """Stop them."""
    from aleazero.cli import monitor as command

    return command.down(runs, as_json)


@monitor_app.command
def send(
    name: SomeRun = None,
    *,
    seconds: Annotated[float, Parameter(help="How long to try.")] = 60.0,
    runs: Runs = None,
    as_json: Json = False,
) -> int:
    """Send what MLflow or Weights & Biases could not take while a run was training."""
    from aleazero.cli import monitor as command

    return command.send(name, seconds, runs, as_json)


@monitor_app.command
def dashboards(
    folder: Annotated[Path, Parameter(help="Where to write them.")],
    *,
    metrics_prefix: Annotated[str, Parameter(help="Of the metrics' names.")] = "alea",
) -> int:
    """Write the dashboards and the alert rules as files, for a Grafana and a Prometheus of your own."""
    from aleazero.cli import monitor as command

    return command.write(folder, metrics_prefix)
