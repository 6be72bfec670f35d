"""`make bench-check`: fails when our speed beside our peers' falls below its recorded floor by more than the noise.

    python -m aleazero.bench.gate             measures, and compares with floors.toml; 1 if a ratio is too low
    python -m aleazero.bench.gate --record    measures, and writes floors.toml anew: review it as a diff
Ratios are taken within the rounds of one interleaved run on the CPU, so that a slow minute hits both sides; a ratio is
too low only if the upper end of its 95 % interval is, and only if it is so twice. Knows which cases there are; how they
are timed is `measure.py`'s.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import jax

from aleazero.bench import memory, profiles
from aleazero.bench.cases import BenchError, Cases, Kind, Options, Setup, Unsuited, game_of
from aleazero.bench.measure import Ratio, Size, measure
from aleazero.bench.rules import GAME_ENV
from aleazero.bench.searches import STOCHASTIC_MCTS, search_cases
from aleazero.core.compilation import set_up_compiling
from aleazero.core.devices import use_every_core
from aleazero.core.errors import AleaError
from aleazero.core.files import replace_file
from aleazero.games.registry import PGX_PREFIX

FLOORS = Path(__file__).with_name("floors.toml")
TOLERANCE = 0.15  # machines differ a little even in ratios
RECORDINGS = 3
RULES_BATCH, SEARCH_BATCH, SIMULATIONS = 8192, 64, 32

Say = Callable[[str], None]
Measure = Callable[[], dict[str, Ratio]]  # cases that are measured together, by name


class GateError(BenchError):
    """The gate cannot be passed, or cannot be asked."""


@dataclasses.dataclass(frozen=True)
class Floors:
    """How fast we must be, as ratios by case."""

    floors: dict[str, float]
    tolerance: float = TOLERANCE
    tolerances: Mapping[str, float] = dataclasses.field(default_factory=dict)  # of cases that have their own

    def low(self, name: str, found: Ratio) -> bool:
        """Whether a ratio is too low, whatever the noise."""
        return found.high < self.floors[name] * (1 - self.tolerances.get(name, self.tolerance))


def check(floors: Floors, groups: Mapping[str, Measure], say: Say) -> list[str]:
    """Measures every group and says how it went; returns what is too low. A group that fails is measured once more."""
    problems = []
    for group in groups.values():
        for name, ratio in measure_twice(floors, group, say).items():
            said = in_words(name, ratio, floors.floors[name])
            say(f"{'TOO LOW' if floors.low(name, ratio) else 'ok     '} {said}")
            if floors.low(name, ratio):
                problems.append(said)
    return problems


def measure_twice(floors: Floors, group: Measure, say: Say) -> dict[str, Ratio]:
    """Measures a group, and once more if a ratio is too low; returns each case's better ratio."""
    found = group()
    unknown = [name for name in found if name not in floors.floors]
    if unknown:
        raise GateError(f"no floor is recorded for {', '.join(unknown)}: record it with --record")
    low = [name for name, ratio in found.items() if floors.low(name, ratio)]
    for name in low:
        say(f"low     {in_words(name, found[name], floors.floors[name])}; measured once more")
    if not low:
        return found
    again = group()
    return {name: max(ratio, again[name], key=lambda ratio: ratio.high) for name, ratio in found.items()}


def in_words(name: str, found: Ratio, floor: float | None = None) -> str:
    """A case, what was measured and what it is held to."""
    held = "" if floor is None else f", floor {floor:.3g}"
    return f"{name}: {found.ratio:.3g} ({found.low:.3g} to {found.high:.3g}){held}"


# ---- the file


def read_floors(path: Path) -> Floors:
    """The recorded floors."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
        floors = Floors({name: float(floor) for name, floor in found["floors"].items()}, float(found["tolerance"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GateError(f"{path} holds no floors ({error!r}): record them with --record") from error
    if not (0 <= floors.tolerance < 1 and all(floor > 0 for floor in floors.floors.values())):
        raise GateError(f"{path}: floors must be positive and the tolerance in [0, 1); record them with --record")
    return floors


def record(path: Path, groups: Mapping[str, Measure], where: str, say: Say) -> None:
    """Measures every group several times and writes as floors what each time reached."""
    lines = []
    for group in groups.values():
        times = [group() for _ in range(RECORDINGS)]
        for name in times[0]:
            least = min((found[name] for found in times), key=lambda ratio: ratio.ratio)
            say(f"recorded {in_words(name, least)}, the least of {', '.join(f'{t[name].ratio:.3g}' for t in times)}")
            lines.append(f'"{name}" = {least.ratio:.3g}')
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    text = f"""\
# What `make bench-check` holds our speed to: ratios within one interleaved run on the CPU. It fails where the upper end
# of what is measured lies, twice, below floor * (1 - tolerance). A floor is the least of {RECORDINGS} medians, each of
# one measurement. To renew them, because a ratio has risen or a fall is wanted: `make bench-floors`, on a quiet
# machine. Recorded on {today}: {where}.
tolerance = {TOLERANCE}

[floors]
"""
    replace_file(path, (text + "\n".join(lines) + "\n").encode())


# ---- the cases


def measure_rules() -> dict[str, Ratio]:
    """Our backgammon rules beside Pgx's."""
    size = measure_size(GAME_ENV, Options(GAME_ENV.name, "backgammon", compare="pgx"), RULES_BATCH)
    return {f"backgammon rules beside pgx, batch {RULES_BATCH}": size.ratios["ours"]}


def measure_searches() -> dict[str, Ratio]:
    """Our searches beside mctx's on Pgx's backgammon, and our share of the network alone with our own rules."""
    options = Options(STOCHASTIC_MCTS.name, "backgammon", compare="mctx", num_simulations=(SIMULATIONS,))
    size = measure_size(dataclasses.replace(STOCHASTIC_MCTS, build=_build_searches), options, SEARCH_BATCH)
    setting = f"{SIMULATIONS} simulations, batch {SEARCH_BATCH}"
    return {
        f"gumbel beside mctx, pgx:backgammon, {setting}": size.ratios[f"gumbel {SIMULATIONS}, Pgx rules"],
        f"puct beside mctx, pgx:backgammon, {setting}": size.ratios[f"puct {SIMULATIONS}, Pgx rules"],
        f"puct beside the network alone, backgammon, {setting}": size.shares[f"puct {SIMULATIONS}"],
    }


def _build_searches(setup: Setup, batch: int) -> Cases:
    """Fewer than `alea bench` would compile: a gate must be quick."""
    shared = search_cases(setup, game_of(f"{PGX_PREFIX}backgammon"), ", Pgx rules", ("gumbel", "puct"), batch)
    return Cases((*shared, *search_cases(setup, setup.game, "", ("puct",), batch)))


def measure_size(kind: Kind, options: Options, batch: int | None = None) -> Size:
    """Measures one batch size: `batch`, or the first that the options or the kind name."""
    setup = Setup(options, game_of(options.game), memory.room(None))
    if misfit := kind.misfit(setup):
        raise Unsuited(misfit)
    size = measure(kind, setup, batch or (options.batch_sizes or kind.default_sizes(setup))[0])
    if size.problem:
        raise GateError(size.problem)
    return size


GROUPS: dict[str, Measure] = {"rules": measure_rules, "searches": measure_searches}


def main(arguments: list[str] | None = None) -> int:
    """Runs a command line; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m aleazero.bench.gate", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write the floors anew")
    parser.add_argument("--floors", type=Path, default=FLOORS, metavar="FILE")
    given = parser.parse_args(arguments)
    jax.config.update("jax_platforms", "cpu")
    set_up_compiling()
    use_every_core()
    try:
        if given.record:
            record(given.floors, GROUPS, str(profiles.hardware()), _print)
            return 0
        problems = check(read_floors(given.floors), GROUPS, _print)
    except AleaError as error:
        print(f"bench-check: {error}", file=sys.stderr)
        return 1
    for problem in problems:
        print(f"bench-check: too slow twice: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
