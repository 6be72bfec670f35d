"""Options that several commands have, as the command tree reads them. Imports nothing heavy: `--help` shows them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from aleazero.core.errors import AleaError, MissingExtra

Json = Annotated[bool, Parameter(name="--json", negative="", help="One JSON object on standard output.")]

Runs = Annotated[Path | None, Parameter(name="--runs", help="Where runs are kept (ALEA_RUNS; else ./runs).")]
Sets = Annotated[
    list[str] | None, Parameter(name="--set", negative="", help="A setting, as in learn.batch_size=256; repeatable.")
]
Seconds = Annotated[float | None, Parameter(name="--seconds", help="Stop after so many, with a checkpoint.")]
Profile = Annotated[
    bool,
    Parameter(
        name="--profile",
        negative="",
        help="Once it learns, trace a few iterations, say where the time goes, and stop with a checkpoint.",
    ),
]
Device = Annotated[
    Literal["auto", "cpu", "cuda", "tpu", "metal"],
    Parameter(name="--device", env_var="ALEA_DEVICE", help="Where to compute; auto leaves it to JAX."),
]
Player = Annotated[
    str,
    Parameter(
        help="random, solver, bundled, run:NAME[@STEP], path:FOLDER or registry:NAME[@ALIAS]; networks with how they "
        "search, as in run:NAME,search=mcts,sims=64."
    ),
]
Seed = Annotated[int, Parameter(help="Of everything random.")]
GameName = Annotated[str, Parameter(help="A game's name.")]
Record = Annotated[
    Path | None, Parameter(name="--record", help="Write the result, and all that is needed to believe it, as JSON.")
]
Force = Annotated[bool, Parameter(name="--force", negative="", help="Write the record over one that is there.")]
RunName = Annotated[str, Parameter(help="A run's name, or its folder.")]
SomeRun = Annotated[str | None, Parameter(help="A run's name, or its folder; the active one if left out.")]


def compute_on(device: str) -> None:
    """Before anything else: modules that commands import may already compute."""
    from aleazero.cli.device import choose

    choose(device)


def need_redis() -> None:
    """Raise `MissingExtra` if a package that runs over Redis need is not installed."""
    for package in ("redis", "msgpack", "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"):
        try:
            importlib.import_module(package)
        except ImportError:
            if package == "compression.zstd":
                raise AleaError("this Python was built without zstd, which runs over Redis need: use another") from None
            raise MissingExtra("a run on many machines", package, "cluster") from None
