"""Draws the panels of `plot.py` as a PNG, for places that show no SVG. Needs Pillow.

Everything is drawn larger and then reduced, which smooths lines. The same panels give the same bytes.
"""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aleazero.core.errors import MissingExtra
from aleazero.core.files import replace_file
from aleazero.observe.plot import COLOURS, Curve, Panel, linear_ticks, log_ticks, short_number, usable

if TYPE_CHECKING:
    from PIL import ImageDraw

_WIDTH, _HEIGHT = 560, 340  # of the area that curves are drawn in
_LEFT, _RIGHT, _TOP, _BOTTOM = 110, 30, 50, 80  # from there to the edges of the panel
_TITLE, _LEGEND_ROW = 50, 24
_FONT = 16
_LINE, _BAND = 3.0, 0.18  # width of a line; how much of its colour a band has
_FINER = 3  # times as large as the picture, while it is drawn
_GREY, _SOFT, _BLACK = "#e3e7eb", "#59636e", "#1f2328"

Scale = Callable[[float], float]  # from values to pixels


def write_png(path: Path, panels: Sequence[Panel], title: str = "") -> None:
    """Draw the panels beside one another into a file that is written whole or not at all."""
    replace_file(path, png(panels, title))


def png(panels: Sequence[Panel], title: str = "") -> bytes:
    """Return the bytes of the drawing."""
    legend = max((len(_shown(panel)) for panel in panels), default=0) * _LEGEND_ROW
    across = _LEFT + _WIDTH + _RIGHT
    canvas = _Canvas(max(len(panels), 1) * across, _TITLE + _TOP + legend + _HEIGHT + _BOTTOM)
    canvas.text(title, _LEFT, 34, _BLACK)
    for number, panel in enumerate(panels):
        _draw_panel(canvas, panel, number * across + _LEFT, _TITLE, _TITLE + _TOP + legend)
    return canvas.png()


class _Canvas:
    """A white sheet to draw on, in pixels of the picture."""

    def __init__(self, width: int, height: int) -> None:
        try:
            from PIL import Image, ImageDraw, ImageFont
        except ImportError as error:
            raise MissingExtra("a picture as PNG", "pillow", "track") from error
        self._size = width, height
        self._image = Image.new("RGB", (width * _FINER, height * _FINER), "white")
        self._pen: ImageDraw.ImageDraw = ImageDraw.Draw(self._image, "RGBA")
        self._font = ImageFont.load_default(_FONT * _FINER)

    def text(self, text: str, x: float, y: float, colour: str, *, anchor: str = "l", turned: bool = False) -> None:
        """Write on a line at `y`; anchor "m" centres it on `x`, "r" ends it there. Turned: upwards, centred on `y`."""
        if not turned:
            self._pen.text((x * _FINER, y * _FINER), text, colour, self._font, anchor=f"{anchor}s")
            return
        from PIL import Image, ImageDraw

        ink = Image.new("L", (math.ceil(self._font.getlength(text)) or 1, 2 * _FONT * _FINER))
        ImageDraw.Draw(ink).text((0, _FONT * _FINER), text, 255, self._font, anchor="ls")
        ink = ink.rotate(90, expand=True)
        left, top = round((x - _FONT) * _FINER), round(y * _FINER - ink.height / 2)
        self._image.paste(colour, (left, top), ink)

    def line(self, points: Sequence[tuple[float, float]], colour: str, width: float = 1.0) -> None:
        """Draw lines from point to point."""
        fine = [(x * _FINER, y * _FINER) for x, y in points]
        self._pen.line(fine, colour, round(width * _FINER), joint="curve")

    def dot(self, x: float, y: float, colour: str, radius: float) -> None:
        """Draw a filled circle."""
        self._pen.circle((x * _FINER, y * _FINER), radius * _FINER, colour)

    def band(self, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], colour: str) -> None:
        """Fill the area between two lines with a translucent colour."""
        edge = [*zip(xs, lows, strict=True), *reversed(list(zip(xs, highs, strict=True)))]
        if len(edge) > 2:
            self._pen.polygon([(x * _FINER, y * _FINER) for x, y in edge], f"{colour}{round(255 * _BAND):02x}")

    def png(self) -> bytes:
        """Return the picture as the bytes of a file."""
        file = io.BytesIO()
        self._image.reduce(_FINER).save(file, "PNG", optimize=True)
        return file.getvalue()


def _draw_panel(canvas: _Canvas, panel: Panel, left: int, title_at: int, top: int) -> None:
    canvas.text(panel.title, left, title_at + 24, _BLACK)
    for row, (number, label) in enumerate(_shown(panel)):
        y = title_at + _TOP + row * _LEGEND_ROW
        canvas.line([(left, y - 6), (left + 28, y - 6)], COLOURS[number % len(COLOURS)], _LINE)
        canvas.text(label, left + 40, y, _SOFT)
    points = panel.points()
    bottom = top + _HEIGHT
    if not points:
        canvas.text("no data", left + _WIDTH / 2, top + _HEIGHT / 2, _SOFT, anchor="m")
        return
    x_ticks = (log_ticks if panel.log_x else linear_ticks)(min(x for x, _ in points), max(x for x, _ in points))
    low, high = panel.y_range or (min(y for _, y in points), max(y for _, y in points))
    y_ticks = (log_ticks if panel.log_y else linear_ticks)(low, high)
    across = functools.partial(_place, ticks=x_ticks, log=panel.log_x, start=left, end=left + _WIDTH)
    up = functools.partial(_place, ticks=y_ticks, log=panel.log_y, start=bottom, end=top)
    for value in y_ticks:
        canvas.line([(left, up(value)), (left + _WIDTH, up(value))], _GREY)
        canvas.text(short_number(value), left - 10, up(value) + 7, _SOFT, anchor="r")
    for value in x_ticks:
        canvas.line([(across(value), bottom), (across(value), bottom + 6)], _SOFT)
        canvas.text(short_number(value), across(value), bottom + 26, _SOFT, anchor="m")
    canvas.line([(left, bottom), (left + _WIDTH, bottom)], _SOFT)
    canvas.text(panel.x_label, left + _WIDTH / 2, bottom + 56, _SOFT, anchor="m")
    canvas.text(panel.y_label, left - 84, top + _HEIGHT / 2, _SOFT, turned=True)
    for number, curve in enumerate(panel.curves):
        _draw_curve(canvas, curve, COLOURS[number % len(COLOURS)], panel, across, up)


def _draw_curve(canvas: _Canvas, curve: Curve, colour: str, panel: Panel, across: Scale, up: Scale) -> None:
    low, high = (curve.y if values is None else values for values in (curve.low, curve.high))
    rows = [
        (across(x), *(up(value) for value in values))
        for x, *values in zip(curve.x, curve.y, low, high, strict=True)
        if usable(x, panel.log_x) and all(usable(value, panel.log_y) for value in values)
    ]
    if not rows:
        return
    xs, ys, lows, highs = zip(*rows, strict=True)
    canvas.band(xs, lows, highs, colour)
    canvas.line(list(zip(xs, ys, strict=True)), colour, _LINE)
    for x, y in zip(xs, ys, strict=True):
        canvas.dot(x, y, colour, 1.5 * _LINE)


def _place(value: float, ticks: list[float], log: bool, start: float, end: float) -> float:
    low, high, here = (math.log10(each) if log else each for each in (ticks[0], ticks[-1], value))
    return start + (here - low) / (high - low) * (end - start)


def _shown(panel: Panel) -> list[tuple[int, str]]:
    return [(number, curve.label) for number, curve in enumerate(panel.curves) if curve.label]
