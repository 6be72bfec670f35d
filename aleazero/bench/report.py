"""What a benchmark found, as JSON, as a table and as a picture. Knows no kind in particular."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aleazero.bench.cases import BenchError
from aleazero.bench.measure import Size, in_words
from aleazero.bench.memory import GB
from aleazero.core.errors import MissingExtra
from aleazero.core.files import replace_file
from aleazero.observe.plot import Curve, Panel, write_svg
from aleazero.observe.png import write_png

if TYPE_CHECKING:
    from rich.table import Table

JSON_NAME, PNG_NAME, SVG_NAME = "bench.json", "bench.png", "bench.svg"


@dataclasses.dataclass(frozen=True)
class Report:
    """All that a run found."""

    kind: str
    game: str
    counted: str  # what a unit is
    hardware: str
    backend: str
    versions: dict[str, str]
    settings: dict[str, Any]
    command: str
    sizes: list[Size]
    best: Size  # the size that the figures in front are of
    peer: str | None = None
    profile: Path | None = None  # where one was written
    commit: str | None = None  # of the package, short; None where it does not run from a checkout
    dirty: bool | None = None  # whether its files differ from that commit's

    def as_json(self) -> dict[str, Any]:
        """One object; the best size's figures are in front."""
        rate = self.best.rate
        front: dict[str, Any] = {
            "kind": self.kind,
            "game": self.game,
            "batch": self.best.batch,
            "throughput": rate.per_second,
            "throughput_low": rate.low,
            "throughput_high": rate.high,
            "unit": f"{rate.unit}/s",
            "steady": rate.steady,
            "counted": self.counted,
        }
        for case, ratio in list(self.best.ratios.items())[:1]:  # the others are among the sizes
            front |= {"peer": self.peer, "compared": case, "ratio": ratio.ratio}
            front |= {"ratio_low": ratio.low, "ratio_high": ratio.high}
        return front | {
            "hardware": self.hardware,
            "backend": self.backend,
            "versions": self.versions,
            "commit": self.commit,
            "dirty": self.dirty,
            "settings": self.settings,
            "command": self.command,
            "profile": str(self.profile) if self.profile else None,
            "sizes": [_size(size) for size in self.sizes],
        }

    def panels(self) -> list[Panel]:
        """Throughput and memory against batch size."""
        measured = [size for size in self.sizes if size.problem is None]
        batches = [float(size.batch) for size in measured]
        names = dict.fromkeys(name for size in measured for name in size.rates)
        rates = {name: [size.rates[name] for size in measured] for name in names}
        curves = [
            Curve(
                f"{name} ({found[0].unit})",
                batches,
                [rate.per_second for rate in found],
                [rate.low for rate in found],
                [rate.high for rate in found],
            )
            for name, found in rates.items()
        ]
        used = [size.memory for size in measured if size.memory]
        held = [
            Curve("in use", batches, [memory.in_use / GB for memory in used]),
            Curve("peak", batches, [memory.peak / GB for memory in used]),
        ]
        source = used[0].source if used else ""
        return [
            Panel("Throughput", "batch size", "per second", curves, log_x=True, log_y=True),
            Panel(f"Memory ({source})", "batch size", "GB", held, log_x=True, log_y=True),
        ]

    def table(self) -> Table:
        """For a terminal."""
        from rich.table import Table

        title = f"{self.kind} of {self.game}, {self.hardware}"
        table = Table(title=title, caption=self.counted, title_justify="left", caption_justify="left")
        table.add_column("batch", justify="right")
        table.add_column("case")
        shown = [
            name
            for name, rows in _COLUMNS.items()
            if any(rows(size, case) for size in self.sizes for case in size.rates)
        ]
        for name in shown:
            table.add_column(name, justify="right", no_wrap=True)
        for size in self.sizes:
            if size.problem:
                table.add_row(f"{size.batch:,}", "not measured")
            for number, case in enumerate(size.rates):
                batch = f"{size.batch:,}" if number == 0 else ""
                table.add_row(
                    batch, f"{case} ({size.rates[case].unit})", *(_COLUMNS[name](size, case) for name in shown)
                )
        return table

    def remarks(self) -> list[str]:
        """What the table has no place for."""
        said = [in_words(size) for size in self.sizes if size.problem]
        for size in self.sizes:
            for name, value in size.facts.items():
                said.append(f"batch {size.batch}: {name.replace('_', ' ')} {value:.4g}")
        unsteady = [size.batch for size in self.sizes for rate in size.rates.values() if not rate.steady]
        if unsteady:
            batches = ", ".join(map(str, dict.fromkeys(unsteady)))
            said.append(
                f"not steady at batch {batches}: the median is not known to 5 %. Measure longer (--duration) on a "
                "quiet machine; ratios within one run hold better than rates"
            )
        return said

    def write(self, folder: Path, *, force: bool) -> None:
        """The JSON and the picture; over others only by `force`."""
        refuse_to_overwrite(folder, force=force)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(folder / JSON_NAME, (strict_json(self.as_json(), indent=2) + "\n").encode())
            self._draw(folder)
        except OSError as error:
            raise BenchError(f"the results could not be written to {folder}: {error}; name another --out") from error

    def _draw(self, folder: Path) -> None:
        """Draw the curves: as a PNG, or as an SVG where Pillow is not installed."""
        title = f"{self.kind} of {self.game}"
        try:
            write_png(folder / PNG_NAME, self.panels(), title)
        except MissingExtra:
            write_svg(folder / SVG_NAME, self.panels(), title)


def refuse_to_overwrite(folder: Path, *, force: bool) -> None:
    """Raises where there are results already and nobody says that they may go."""
    taken = [name for name in (JSON_NAME, PNG_NAME, SVG_NAME) if (folder / name).exists()]
    if taken and not force:
        raise BenchError(f"{folder} holds {' and '.join(taken)} already: name another --out, or give --force")


def strict_json(value: Any, indent: int | None = None) -> str:
    """JSON that any reader takes: null for numbers it cannot write."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: plain(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [plain(inner) for inner in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps(plain(value), allow_nan=False, indent=indent)


def _spread(size: Size, case: str) -> str:
    rate = size.rates[case]
    return f"{(rate.high - rate.low) / 2 / rate.per_second:.1%}" + ("" if rate.steady else " !")


def _share(size: Size, case: str) -> str:
    return f"{size.shares[case].ratio:.3f}" if case in size.shares else ""


def _ratio(size: Size, case: str) -> str:
    ratio = size.ratios.get(case)
    return f"{ratio.ratio:.2f} ({ratio.low:.2f} to {ratio.high:.2f})" if ratio else ""


def _memory(size: Size, case: str) -> str:
    if size.memory is None or case != next(iter(size.rates)):
        return ""
    bound = "<= " if size.peak_is_bound else ""
    return f"{size.memory.in_use / GB:.2f} / {bound}{size.memory.peak / GB:.2f}"


_COLUMNS: dict[str, Callable[[Size, str], str]] = {
    "per second": lambda size, case: f"{size.rates[case].per_second:,.0f}",
    "+-": _spread,
    "of the limit": _share,
    "times the peer": _ratio,
    "GB used / peak": _memory,
    "compile s": lambda size, case: f"{size.rates[case].compile_seconds:.1f}",
}


def _size(size: Size) -> dict[str, Any]:
    if size.problem:
        return {"batch": size.batch, "problem": size.problem}
    assert size.memory is not None
    return {
        "batch": size.batch,
        "rates": {name: dataclasses.asdict(rate) for name, rate in size.rates.items()},
        "of_limit": {name: share.ratio for name, share in size.shares.items()},
        "ratios": {name: dataclasses.asdict(ratio) for name, ratio in size.ratios.items()},
        "facts": size.facts,
        "memory": {**dataclasses.asdict(size.memory), "peak_is_bound": size.peak_is_bound},
    }
