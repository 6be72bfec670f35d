"""Line charts as SVG, with nothing but the standard library: curves, intervals as bands, several panels on a sheet.

The same panels give the same bytes. The sheet brings its own background and follows the reader's light or dark theme.
Knows nothing of runs and reports.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from aleazero.core.errors import AleaError
from aleazero.core.files import replace_file

_COLUMNS = 2
_WIDTH, _HEIGHT = 384, 220  # of the area that curves are drawn in
_LEFT, _RIGHT, _TOP, _BOTTOM = 82, 22, 40, 52  # from there to the edges of the panel
_SHEET_TITLE = 40
_LEGEND_ROW = 17
_CHARACTER = 6.4  # about the width of one in the small text
_PAD = 4  # around the area, so that a line along its edge keeps its width
_THIN_ABOVE = 1000  # points of an unbroken line: more than there are pixels to show them
_TICK_DIGITS = 12  # tell any two ticks apart that `linear_ticks` gives
_LIMIT = 1e300  # beyond it differences overflow

# Neither too light for the light sheet nor too dark for the dark one: each has a contrast of 3 and more to both.
COLOURS = ("#3b82c4", "#d96a24", "#1f9a72", "#c2569b", "#8a6fd1", "#a88420", "#1c96b0", "#d1495b")
_DASHES = ("", "6 3", "2 3")  # once through the colours, the next dash

_STYLE = """
.az-sheet { fill: #ffffff } .az-strong { fill: #1f2328 } .az-soft { fill: #59636e }
.az-grid { stroke: #e3e7eb } .az-axis { stroke: #9aa4ae }
@media (prefers-color-scheme: dark) {
.az-sheet { fill: #0d1117 } .az-strong { fill: #f0f6fc } .az-soft { fill: #9aa4ae }
.az-grid { stroke: #262c34 } .az-axis { stroke: #59636e }
}
"""

Point = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Curve:
    """A line, with an interval around it where `low` and `high` are given. What is not finite leaves a gap."""

    label: str
    x: Sequence[float]  # [n]
    y: Sequence[float]  # [n]
    low: Sequence[float] | None = None  # [n]
    high: Sequence[float] | None = None  # [n]

    def __post_init__(self) -> None:
        lengths = {
            name: len(values) for name in ("x", "y", "low", "high") if (values := getattr(self, name)) is not None
        }
        if len(set(lengths.values())) > 1 or (self.low is None) != (self.high is None):
            raise AleaError(
                f"curve {self.label!r} has lengths {lengths}: x and y must be equally long, and so must low and high, "
                "given both or neither"
            )


@dataclasses.dataclass(frozen=True)
class Panel:
    """One pair of axes with its curves. On a logarithmic axis what is not positive leaves a gap."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    log_x: bool = False
    log_y: bool = False
    y_range: tuple[float, float] | None = None  # shown whatever the curves hold; they are cut off beyond

    def __post_init__(self) -> None:
        if self.y_range is None:
            return
        low, high = self.y_range
        if not (usable(low, self.log_y) and usable(high, self.log_y) and low < high):
            positive = " and positive, as the axis is logarithmic" if self.log_y else ""
            raise AleaError(
                f"panel {self.title!r} has y_range {self.y_range}: it must be (low, high) with low < high, "
                f"both finite{positive}"
            )

    def points(self) -> list[Point]:
        """All that its axes can show, ends of intervals included."""
        return [
            (x, y)
            for curve in self.curves
            for values in (curve.y, curve.low, curve.high)
            if values is not None
            for x, y in zip(curve.x, values, strict=True)
            if usable(x, self.log_x) and usable(y, self.log_y)
        ]


def write_svg(path: Path, panels: Sequence[Panel], title: str = "") -> None:
    """Draws the panels, two in a row, into a file that is written whole or not at all."""
    replace_file(path, svg(panels, title).encode("utf-8"))


def svg(panels: Sequence[Panel], title: str = "") -> str:
    """The text of the drawing."""
    shown = list(panels) or [Panel("", "", "", [])]
    columns = min(len(shown), _COLUMNS)
    width = columns * (_LEFT + _WIDTH + _RIGHT)
    top = _SHEET_TITLE if title else 0
    body: list[str] = []
    for start in range(0, len(shown), columns):
        row = shown[start : start + columns]
        legend = max(len(_legend_rows(panel)) for panel in row) * _LEGEND_ROW
        for column, panel in enumerate(row):
            body.append(f'<g transform="translate({column * (_LEFT + _WIDTH + _RIGHT)} {top})">')
            body += _draw_panel(panel, _TOP + legend)
            body.append("</g>")
        top += _TOP + legend + _HEIGHT + _BOTTOM
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" viewBox="0 0 {width} {top}" role="img"'
    )
    return "\n".join(
        [
            f'{head} font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="11">',
            f"<title>{_text(title or ', '.join(panel.title for panel in panels) or 'no data')}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="az-sheet" width="{width}" height="{top}" rx="6"/>',
            *([_label(title, _LEFT, 28, "strong", size=16, weight="600")] if title else []),
            *body,
            "</svg>\n",
        ]
    )


def short_number(value: float, digits: int = 3) -> str:
    """A number in little room: 950, 1.25k, 10k, 1M."""
    rounded = float(f"{value:.{digits}g}")  # first, or 999,999 would become 1000k
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size <= abs(rounded) < 1e15:
            return f"{rounded / size:.{digits}g}{unit}"
    return f"{rounded:.{digits}g}"


def linear_ticks(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, evenly spaced, from at or below `low` to at or above `high`."""
    low, high = max(low, -_LIMIT), min(high, _LIMIT)
    largest = max(abs(low), abs(high))
    if high - low <= largest * 1e-9:  # a level line; and closer together, neighbouring ticks could be the same float
        low, high = low - (0.1 * largest or 1.0), high + (0.1 * largest or 1.0)
    raw = max((high - low) / 8, 1e-300)
    power = math.floor(math.log10(raw))
    factor, power = next(
        (factor, power + shift)
        for factor, shift in ((1, 0), (2, 0), (5, 0), (1, 1), (2, 1))
        if factor * 10.0 ** (power + shift) >= raw * (1 - 1e-9)  # ends that are themselves rounded
    )

    def tick(count: int) -> float:
        # Division of integers rounds once: 3 tenths are 0.3, not 0.30000000000000004.
        return float(count * factor * 10**power) if power >= 0 else count * factor / 10**-power

    first, last = round(low / tick(1)), round(high / tick(1))
    first -= tick(first) > low
    last += tick(last) < high
    return [tick(count) for count in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten from at or below `low` to at or above `high`, with 2 and 5 times each where there are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    if last - first > 2:
        stride = math.ceil((last - first) / 8)
        return [10.0**power for power in range(first, last + stride, stride)]
    ticks = [float(f"{factor}e{power}") for power in range(first, last) for factor in (1, 2, 5)] + [10.0**last]
    while len(ticks) > 2 and ticks[1] <= low:
        ticks.pop(0)
    while len(ticks) > 2 and ticks[-2] >= high:
        ticks.pop()
    return ticks


@dataclasses.dataclass(frozen=True)
class _Axis:
    """From values to pixels: the first tick at `start`, the last at `end`."""

    ticks: list[float]
    log: bool
    start: float
    end: float

    def place(self, value: float) -> float:
        low, high, here = (math.log10(each) if self.log else each for each in (self.ticks[0], self.ticks[-1], value))
        pixel = self.start + (here - low) / (high - low) * (self.end - self.start)
        return min(max(pixel, -9999.0), 9999.0)  # only what is cut off anyway


def _axis(values: Sequence[float], log: bool, start: float, end: float) -> _Axis:
    ticks = log_ticks if log else linear_ticks
    return _Axis(ticks(min(values), max(values)), log, start, end)


def usable(value: float, log: bool) -> bool:
    """Whether an axis can show it."""
    return math.isfinite(value) and abs(value) <= _LIMIT and (not log or value >= 1 / _LIMIT)


def _draw_panel(panel: Panel, top: float) -> list[str]:
    """A panel at the origin, its area `top` pixels down."""
    drawn = [_label(panel.title, _LEFT, 24, "strong", size=13, weight="600"), *_draw_legend(panel)]
    points = panel.points()
    if not points:
        frame = f'x="{_LEFT}" y="{_n(top)}" width="{_WIDTH}" height="{_HEIGHT}"'
        drawn.append(f'<rect class="az-grid" fill="none" {frame}/>')
        drawn.append(_label("no data", _LEFT + _WIDTH / 2, top + _HEIGHT / 2, "soft", anchor="middle", size=13))
        return drawn
    across = _axis([x for x, _ in points], panel.log_x, 0, _WIDTH)
    up = _axis(panel.y_range or [y for _, y in points], panel.log_y, _HEIGHT, 0)
    drawn += _draw_axes(panel, across, up, top)
    # A drawing within the drawing cuts off what leaves the area.
    size = f'width="{_WIDTH + 2 * _PAD}" height="{_HEIGHT + 2 * _PAD}"'
    view = f'viewBox="{-_PAD} {-_PAD} {_WIDTH + 2 * _PAD} {_HEIGHT + 2 * _PAD}"'
    drawn.append(f'<svg x="{_LEFT - _PAD}" y="{_n(top - _PAD)}" {size} {view}>')
    for number, curve in enumerate(panel.curves):
        drawn += _draw_band(curve, number, across, up)
    for number, curve in enumerate(panel.curves):
        drawn += _draw_curve(curve, number, across, up)
    drawn.append("</svg>")
    return drawn


def _draw_axes(panel: Panel, across: _Axis, up: _Axis, top: float) -> list[str]:
    """Grid, ticks and what the axes mean."""
    bottom, middle = top + _HEIGHT, top + _HEIGHT / 2
    drawn = []
    for value in up.ticks:
        y = top + up.place(value)
        drawn.append(f'<path class="az-grid" d="M{_LEFT} {_n(y)}h{_WIDTH}"/>')
        drawn.append(_label(short_number(value, _TICK_DIGITS), _LEFT - 8, y + 4, "soft", anchor="end"))
    labels = [short_number(value, _TICK_DIGITS) for value in across.ticks]
    room = _WIDTH / (len(labels) - 1)
    stride = max(1, math.ceil((max(map(len, labels)) * _CHARACTER + 8) / room))
    for number, (value, label) in enumerate(zip(across.ticks, labels, strict=True)):
        x = _LEFT + across.place(value)
        drawn.append(f'<path class="az-axis" d="M{_n(x)} {_n(bottom)}v4"/>')
        if number % stride == 0:
            drawn.append(_label(label, x, bottom + 17, "soft", anchor="middle"))
    drawn.append(f'<path class="az-axis" d="M{_LEFT} {_n(bottom)}h{_WIDTH}"/>')
    drawn.append(_label(panel.x_label, _LEFT + _WIDTH / 2, bottom + 36, "soft", anchor="middle"))
    turn = f' transform="rotate(-90 14 {_n(middle)})"'
    drawn.append(_label(panel.y_label, 14, middle, "soft", anchor="middle", more=turn))
    return drawn


def _draw_curve(curve: Curve, number: int, across: _Axis, up: _Axis) -> list[str]:
    """A line for every run of points without a gap, a dot for a point that stands alone."""
    colour, dash = _look(number)
    drawn = []
    for run in _runs(curve.x, [curve.y], across, up):
        line = _thin([(x, ys[0]) for x, ys in run])
        if len(line) == 1:
            drawn.append(f'<circle fill="{colour}" cx="{_n(line[0][0])}" cy="{_n(line[0][1])}" r="2.5"/>')
            continue
        style = f'fill="none" stroke="{colour}" stroke-width="1.8" stroke-linejoin="round" stroke-linecap="round"{dash}'
        drawn.append(f'<polyline {style} points="{_points(line)}"/>')
    return drawn


def _draw_band(curve: Curve, number: int, across: _Axis, up: _Axis) -> list[str]:
    """The interval: a translucent area for every run of points without a gap, a bar for a point that stands alone."""
    if curve.low is None or curve.high is None:
        return []
    colour, _ = _look(number)
    drawn = []
    for run in _runs(curve.x, [curve.low, curve.high], across, up):
        upper, lower = [(x, ys[1]) for x, ys in run], [(x, ys[0]) for x, ys in run]
        if len(run) == 1:
            bar = f'stroke="{colour}" stroke-opacity="0.45" stroke-width="1.8"'
            drawn.append(f'<polyline {bar} points="{_points(upper + lower)}"/>')
        else:
            drawn.append(f'<polygon fill="{colour}" fill-opacity="0.18" points="{_points(upper + lower[::-1])}"/>')
    return drawn


def _runs(
    xs: Sequence[float], columns: Sequence[Sequence[float]], across: _Axis, up: _Axis
) -> Iterator[list[tuple[float, tuple[float, ...]]]]:
    """Stretches of neighbouring points that can all be drawn, in pixels: x and one y for each column."""
    run: list[tuple[float, tuple[float, ...]]] = []
    for x, *ys in zip(xs, *columns, strict=True):
        if usable(x, across.log) and all(usable(y, up.log) for y in ys):
            run.append((across.place(x), tuple(up.place(y) for y in ys)))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _thin(line: list[Point]) -> list[Point]:
    """A long line with only the first, lowest, highest and last point of every pixel column: it looks the same."""
    if len(line) <= _THIN_ABOVE:
        return line
    columns: list[list[Point]] = []
    for point in line:
        if not columns or round(columns[-1][-1][0]) != round(point[0]):
            columns.append([])
        columns[-1].append(point)
    kept = []
    for column in columns:
        heights = [y for _, y in column]
        places = {0, heights.index(min(heights)), heights.index(max(heights)), len(column) - 1}
        kept += [column[place] for place in sorted(places)]
    return kept


def _legend_rows(panel: Panel) -> list[list[tuple[int, str, float]]]:
    """What stands in each row of the legend: the curve's number, its label and where it begins."""
    rows: list[list[tuple[int, str, float]]] = []
    x = float(_WIDTH)
    for number, curve in enumerate(panel.curves):
        if not curve.label:
            continue
        longest = int((_WIDTH - 24) / _CHARACTER)
        label = curve.label if len(curve.label) <= longest else curve.label[: longest - 1] + "…"
        room = 24 + len(label) * _CHARACTER + 14
        if x + room - 14 > _WIDTH:
            rows.append([])
            x = 0.0
        rows[-1].append((number, label, x))
        x += room
    return rows


def _draw_legend(panel: Panel) -> list[str]:
    drawn = []
    for row, entries in enumerate(_legend_rows(panel)):
        y = _TOP + row * _LEGEND_ROW
        for number, label, x in entries:
            colour, dash = _look(number)
            line = f'd="M{_n(_LEFT + x)} {y}h18" stroke="{colour}" stroke-width="2.4"{dash}'
            drawn += [f"<path {line}/>", _label(label, _LEFT + x + 24, y + 4, "soft")]
    return drawn


def _look(number: int) -> tuple[str, str]:
    """The colour of a curve, and its dashes as an attribute."""
    dash = _DASHES[number // len(COLOURS) % len(_DASHES)]
    return COLOURS[number % len(COLOURS)], f' stroke-dasharray="{dash}"' if dash else ""


def _label(
    text: str, x: float, y: float, tone: str, *, anchor: str = "start", size: int = 11, weight: str = "", more: str = ""
) -> str:
    bold = f' font-weight="{weight}"' if weight else ""
    place = f'x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}" font-size="{size}"'
    return f'<text class="az-{tone}" {place}{bold}{more}>{_text(text)}</text>'


def _text(text: str) -> str:
    """Escaped, and without the control characters that XML has no way to write."""
    return escape("".join(letter if letter.isprintable() else " " for letter in text))


def _points(line: Sequence[Point]) -> str:
    return " ".join(f"{_n(x)},{_n(y)}" for x, y in line)


def _n(value: float) -> str:
    """A pixel: two places at most, no needless zeros, no minus zero."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
