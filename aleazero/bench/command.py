"""What both command lines of the benchmarks share: options from texts, and the printing of what was found."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from aleazero.bench.cases import Options, numbers
from aleazero.core.devices import use_every_core
from aleazero.core.errors import ConfigError

_WIDTH = 150  # where the output is no terminal
_LISTS = ("batch_sizes", "num_simulations", "rows")


def read_options(*, single_batch: int | None, **given: Any) -> Options:
    """Options from what a command line gives: lists are texts with commas, or None."""
    if single_batch is not None and given["batch_sizes"] is not None:
        raise ConfigError("--batch-sizes and --single-batch: give one of them")
    for name in _LISTS:
        given[name] = None if given[name] is None else numbers(given[name])
    if given["search"] is not None:
        given["search"] = tuple(part.strip() for part in given["search"].split(","))
    if single_batch is not None:
        given["batch_sizes"] = (single_batch,)
    return Options(**given | {"sets": tuple(given["sets"] or ())})


def show(options: Options, *, as_json: bool, verbose: bool) -> int:
    """Measures, and prints a table or one JSON object; returns the exit code."""
    from rich.console import Console

    from aleazero.bench.report import strict_json
    from aleazero.bench.suite import run

    def say(line: str) -> None:
        if verbose:
            print(line, file=sys.stderr, flush=True)

    use_every_core()
    outcome = run(options, say)
    if as_json:
        verdict = {"verdict": dataclasses.asdict(outcome.verdict)} if outcome.verdict else {}
        print(strict_json(outcome.report.as_json() | verdict | {"folder": str(outcome.folder)}))
        return outcome.exit_code
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _WIDTH)
    console.print(outcome.report.table())
    for line in outcome.report.remarks():
        console.print(line, soft_wrap=True)
    if outcome.report.profile:
        console.print(f"best batch: {outcome.report.best.batch}, kept in {outcome.report.profile}", soft_wrap=True)
    if outcome.verdict:
        console.print(str(outcome.verdict))
    console.print(f"written to {outcome.folder}", soft_wrap=True)
    return outcome.exit_code
