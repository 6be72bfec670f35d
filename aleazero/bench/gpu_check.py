"""`make gpu-check`: repeats what was measured on one H200, and fails where a figure is below its recorded floor.

    python -m aleazero.bench.gpu_check            measures for a few minutes; 1 if a figure is too low, 2 without a GPU
    python -m aleazero.bench.gpu_check --small    takes the same steps in tiny sizes on any machine; compares nothing
Needs the core dependencies alone. The figures, their commands and their floors are in `gpu_floors.toml`; what counts as
too low is decided by `gate.py`, and how the figures are timed by `measure.py`.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import shlex
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import jax

from aleazero.bench import profiles
from aleazero.bench.__main__ import parse_options
from aleazero.bench.cases import Options, Unsuited
from aleazero.bench.gate import Floors, GateError, Measure, Say, measure_size, measure_twice
from aleazero.bench.measure import Ratio
from aleazero.bench.suite import KINDS
from aleazero.core.compilation import set_up_compiling
from aleazero.core.devices import use_every_core
from aleazero.core.errors import explained

FLOORS = Path(__file__).with_name("gpu_floors.toml")
SMALL_BATCH, SMALL_BUDGET, SMALL_ROWS = 8, 4, 1024
_PROGRAM = ["alea", "bench"]


@dataclasses.dataclass(frozen=True)
class Figure:
    """Something that was measured on a GPU."""

    name: str
    command: str  # that measured it: `alea bench ...`
    floor: float  # units a second
    tolerance: float  # the share below the floor that is still fine
    source: str  # the page where it is recorded
    case: str = ""  # of those that the command times; empty: the first

    @property
    def options(self) -> Options:
        """What the command measures."""
        words = shlex.split(self.command)
        return parse_options(words[len(_PROGRAM) :])


@dataclasses.dataclass(frozen=True)
class Recorded:
    """The figures of one kind of GPU."""

    device: str
    figures: tuple[Figure, ...]

    def floors(self) -> Floors:
        """The least that each figure may be, in units of what was recorded."""
        ones = {figure.name: 1.0 for figure in self.figures}
        return Floors(ones, tolerances={figure.name: figure.tolerance for figure in self.figures})

    def groups(self, small: bool) -> dict[Options, list[Figure]]:
        """The figures by what measures them: one command may time several."""
        groups: dict[Options, list[Figure]] = {}
        for figure in self.figures:
            groups.setdefault(shrink(figure.options) if small else figure.options, []).append(figure)
        return groups


def read_figures(path: Path = FLOORS) -> Recorded:
    """Read the recorded figures."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
        figures = tuple(Figure(name, **given) for name, given in found["figures"].items())
        recorded = Recorded(str(found["device"]), figures)
        good = all(figure.floor > 0 and 0 <= figure.tolerance < 1 for figure in figures)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GateError(f"{path} holds no recorded figures ({error!r}); restore it from the repository") from error
    if not figures or not good:
        raise GateError(f"{path}: every floor must be positive and every tolerance in [0, 1)")
    return recorded


def shrink(options: Options) -> Options:
    """Return the same benchmark in a size that takes seconds on a CPU."""
    sets = tuple("selfplay.num_games=8" if text.startswith("selfplay.num_games=") else text for text in options.sets)
    return dataclasses.replace(
        options,
        batch_sizes=(SMALL_BATCH,),
        num_simulations=options.num_simulations and (SMALL_BUDGET,),
        rows=options.rows and (SMALL_ROWS,),
        sets=sets,
    )


def measure_figures(options: Options, figures: Sequence[Figure]) -> dict[str, Ratio]:
    """Measure what the options say once; return each figure beside what was recorded of it."""
    size = measure_size(KINDS[options.kind], options)
    found = {}
    for figure in figures:
        rate = size.rates[figure.case] if figure.case else size.rate
        speeds = (speed / figure.floor for speed in (rate.per_second, rate.low, rate.high))
        found[figure.name] = Ratio("recorded", *speeds)
    return found


def run(path: Path, say: Say, *, small: bool) -> int:
    """Measure every figure and say how it is; return the exit code."""
    recorded = read_figures(path)
    if jax.default_backend() == "cpu" and not small:
        raise Unsuited(
            f"found no GPU: run this on an {recorded.device} with JAX for CUDA (pip install 'aleazero[cuda]'), "
            "or pass --small to take its steps on a CPU"
        )
    device = profiles.hardware().name
    compares = not small and device == recorded.device
    if not compares:
        why = "sizes are tiny" if small else f"the floors are an {recorded.device}'s"
        say(f"measured on {device}; {why}, so the comparison does not apply and cannot fail")
    say(_row("figure", "floor", "now", "ratio", ""))
    floors, problems = recorded.floors(), 0
    for options, figures in recorded.groups(small).items():
        group: Measure = functools.partial(measure_figures, options, figures)
        found = measure_twice(floors, group, say) if compares else group()
        for figure in figures:
            ratio = found[figure.name]
            low = compares and floors.low(figure.name, ratio)
            problems += low
            verdict = ("TOO LOW" if low else "ok") if compares else ""
            now = f"{ratio.ratio * figure.floor:,.0f}"
            say(_row(figure.name, f"{figure.floor:,.0f}", now, f"{ratio.ratio:.3g}", verdict))
    if problems:
        say(f"{problems} of {len(recorded.figures)} figures are below their floors by more than is tolerated")
    return 1 if problems else 0


def _row(name: str, floor: str, now: str, ratio: str, verdict: str) -> str:
    return f"{name:48}{floor:>14}{now:>14}{ratio:>10}  {verdict}".rstrip()


def main(arguments: list[str] | None = None) -> int:
    """Run a command line; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m aleazero.bench.gpu_check", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--small", action="store_true", help="tiny sizes, on any machine; compares nothing")
    given = parser.parse_args(arguments)
    set_up_compiling()
    use_every_core()
    return explained("gpu-check", lambda: run(FLOORS, lambda line: print(line, flush=True), small=given.small))


if __name__ == "__main__":
    sys.exit(main())
