"""The same panels as in `plot.py`, as a PNG: for places that show no SVG. Needs numpy and the standard library alone.

Lines are smoothed, letters are drawn from dots. The same panels give the same bytes.
Knows nothing of runs and reports.
"""

from __future__ import annotations

import functools
import itertools
import math
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from aleazero.core.files import replace_file
from aleazero.observe.plot import COLOURS, Curve, Panel, linear_ticks, log_ticks, short_number, usable

_WIDTH, _HEIGHT = 560, 340  # of the area that curves are drawn in
_LEFT, _RIGHT, _TOP, _BOTTOM = 110, 30, 50, 80  # from there to the edges of the panel
_TITLE, _LEGEND_ROW = 50, 24
_DOT = 2  # pixels of a letter's dot
_ADVANCE = 6 * _DOT  # from one letter to the next
_LINE, _BAND = 3.0, 0.18  # width of a line; how much of its colour a band has
_WHITE, _GREY, _SOFT, _BLACK = (255, 255, 255), (227, 231, 235), (89, 99, 110), (31, 35, 40)

# Five dots wide, seven high and two below the line; one letter beside the other, in the order of the first text.
_LETTERS = (
    (
        "ABCDEFGHIJKLM",
        ".###. ####. .###. ####. ##### ##### .###. #...# .###. ..### #...# #.... #...#",
        "#...# #...# #...# #...# #.... #.... #...# #...# ..#.. ...#. #..#. #.... ##.##",
        "#...# #...# #.... #...# #.... #.... #.... #...# ..#.. ...#. #.#.. #.... #.#.#",
        "##### ####. #.... #...# ####. ####. #.### ##### ..#.. ...#. ##... #.... #.#.#",
        "#...# #...# #.... #...# #.... #.... #...# #...# ..#.. ...#. #.#.. #.... #...#",
        "#...# #...# #...# #...# #.... #.... #...# #...# ..#.. #..#. #..#. #.... #...#",
        "#...# ####. .###. ####. ##### #.... .###. #...# .###. .##.. #...# ##### #...#",
    ),
    (
        "NOPQRSTUVWXYZ",
        "#...# .###. ####. .###. ####. .#### ##### #...# #...# #...# #...# #...# #####",
        "##..# #...# #...# #...# #...# #.... ..#.. #...# #...# #...# #...# #...# ....#",
        "#.#.# #...# #...# #...# #...# #.... ..#.. #...# #...# #...# .#.#. .#.#. ...#.",
        "#.#.# #...# ####. #...# ####. .###. ..#.. #...# #...# #.#.# ..#.. ..#.. ..#..",
        "#..## #...# #.... #.#.# #.#.. ....# ..#.. #...# .#.#. #.#.# .#.#. ..#.. .#...",
        "#...# #...# #.... #..#. #..#. ....# ..#.. #...# .#.#. ##.## #...# ..#.. #....",
        "#...# .###. #.... .##.# #...# ####. ..#.. .###. ..#.. #...# #...# ..#.. #####",
    ),
    (
        "abcdefghijklm",
        "..... #.... ..... ....# ..... ..##. ..... #.... ..#.. ...#. #.... .##.. .....",
        "..... #.... ..... ....# ..... .#... ..... #.... ..... ..... #.... ..#.. .....",
        ".###. ####. .###. .#### .###. ####. .#### ####. .##.. ..##. #..#. ..#.. ##.#.",
        "....# #...# #.... #...# #...# .#... #...# #...# ..#.. ...#. #.#.. ..#.. #.#.#",
        ".#### #...# #.... #...# ##### .#... #...# #...# ..#.. ...#. ##... ..#.. #.#.#",
        "#...# #...# #.... #...# #.... .#... #...# #...# ..#.. ...#. #.#.. ..#.. #.#.#",
        ".#### ####. .###. .#### .###. .#... .#### #...# .###. ...#. #..#. .###. #.#.#",
        "..... ..... ..... ..... ..... ..... ....# ..... ..... ...#. ..... ..... .....",
        "..... ..... ..... ..... ..... ..... .###. ..... ..... ###.. ..... ..... .....",
    ),
    (
        "nopqrstuvwxyz",
        "..... ..... ..... ..... ..... ..... .#... ..... ..... ..... ..... ..... .....",
        "..... ..... ..... ..... ..... ..... .#... ..... ..... ..... ..... ..... .....",
        "####. .###. ####. .#### #.##. .#### ####. #...# #...# #...# #...# #...# #####",
        "#...# #...# #...# #...# ##..# #.... .#... #...# #...# #.#.# .#.#. #...# ...#.",
        "#...# #...# #...# #...# #.... .###. .#... #...# .#.#. #.#.# ..#.. #...# ..#..",
        "#...# #...# #...# #...# #.... ....# .#... #..## .#.#. #.#.# .#.#. #...# .#...",
        "#...# .###. ####. .#### #.... ####. ..##. .##.# ..#.. .#.#. #...# .#### #####",
        "..... ..... #.... ....# ..... ..... ..... ..... ..... ..... ..... ....# .....",
        "..... ..... #.... ....# ..... ..... ..... ..... ..... ..... ..... .###. .....",
    ),
    (
        "0123456789+-=",
        ".###. ..#.. .###. .###. ...#. ##### .###. ##### .###. .###. ..... ..... .....",
        "#...# .##.. #...# #...# ..##. #.... #.... ....# #...# #...# ..#.. ..... .....",
        "#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...# ..#.. ..... #####",
        "#.#.# ..#.. ..##. ..##. #..#. ....# ####. ..#.. .###. .#### ##### ##### .....",
        "##..# ..#.. .#... ....# ##### ....# #...# ..#.. #...# ....# ..#.. ..... #####",
        "#...# ..#.. #.... #...# ...#. #...# #...# ..#.. #...# ....# ..#.. ..... .....",
        ".###. .###. ##### .###. ...#. .###. .###. ..#.. .###. .###. ..... ..... .....",
    ),
    (
        ".,:;()/%_<>'#",
        "..... ..... ..... ..... ...#. .#... ....# ##..# ..... ...#. .#... ..#.. .#.#.",
        "..... ..... ..... ..... ..#.. ..#.. ....# ##..# ..... ..#.. ..#.. ..#.. .#.#.",
        "..... ..... ..#.. ..#.. .#... ...#. ...#. ...#. ..... .#... ...#. ..... #####",
        "..... ..... ..... ..... .#... ...#. ..#.. ..#.. ..... #.... ....# ..... .#.#.",
        "..... ..... ..... ..... .#... ...#. .#... .#... ..... .#... ...#. ..... #####",
        "..... ..#.. ..#.. ..#.. ..#.. ..#.. #.... #..## ..... ..#.. ..#.. ..... .#.#.",
        "..#.. ..#.. ..... ..#.. ...#. .#... #.... #..## ##### ...#. .#... ..... .#.#.",
        "..... .#... ..... .#... ..... ..... ..... ..... ..... ..... ..... ..... .....",
    ),
)

Colour = tuple[int, int, int]
Scale = Callable[[float], float]  # from values to pixels


def write_png(path: Path, panels: Sequence[Panel], title: str = "") -> None:
    """Draws the panels beside one another into a file that is written whole or not at all."""
    replace_file(path, png(panels, title))


def png(panels: Sequence[Panel], title: str = "") -> bytes:
    """The bytes of the drawing."""
    legend = max((len(_shown(panel)) for panel in panels), default=0) * _LEGEND_ROW
    across = _LEFT + _WIDTH + _RIGHT
    canvas = Canvas(max(len(panels), 1) * across, _TITLE + _TOP + legend + _HEIGHT + _BOTTOM)
    canvas.text(title, _LEFT, 34, _BLACK)
    for number, panel in enumerate(panels):
        _draw_panel(canvas, panel, number * across + _LEFT, _TITLE, _TITLE + _TOP + legend)
    return encode(canvas.pixels)


def encode(pixels: np.ndarray) -> bytes:
    """`[height, width, 3]` uint8 as a PNG."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], 1)  # 0: no filter
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


class Canvas:
    """A white sheet to draw on. What falls outside it is left out."""

    def __init__(self, width: int, height: int) -> None:
        self.pixels = np.full((height, width, 3), 255, np.uint8)

    def text(self, text: str, x: float, y: float, colour: Colour, *, anchor: float = 0.0, turned: bool = False) -> None:
        """Letters on a line at `y`; `anchor` 0.5 centres them on `x`, 1 ends them there. Turned: from the bottom up."""
        dots = np.concatenate([_letter(letter) for letter in text], 1) if text else np.zeros((9, 0), bool)
        ink = np.repeat(np.repeat(dots, _DOT, 0), _DOT, 1)
        base = 7 * _DOT
        if turned:
            ink = np.rot90(ink)
            left, top = round(x) - base, round(y - ink.shape[0] * (1 - anchor))
        else:
            left, top = round(x - ink.shape[1] * anchor), round(y) - base
        self._blend(left, top, ink.astype(np.float32), colour)

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: Colour, width: float = 1.0) -> None:
        """A smooth line with round ends."""
        reach = math.ceil(width / 2) + 1
        left, right = (round(f(start[0], end[0])) + s * reach for f, s in ((min, -1), (max, 1)))
        top, bottom = (round(f(start[1], end[1])) + s * reach for f, s in ((min, -1), (max, 1)))
        y, x = np.mgrid[top : bottom + 1, left : right + 1].astype(np.float32)
        dx, dy = end[0] - start[0], end[1] - start[1]
        along = np.clip(((x - start[0]) * dx + (y - start[1]) * dy) / max(dx * dx + dy * dy, 1e-9), 0.0, 1.0)
        away = np.hypot(x - start[0] - along * dx, y - start[1] - along * dy)
        self._blend(left, top, np.clip(width / 2 + 0.5 - away, 0.0, 1.0), colour)

    def band(self, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], colour: Colour) -> None:
        """A translucent area between two lines, column by column."""
        columns = np.arange(math.ceil(xs[0]), math.floor(xs[-1]) + 1)
        if not len(columns):
            return
        one, other = np.interp(columns, xs, lows), np.interp(columns, xs, highs)
        upper, lower = np.minimum(one, other), np.maximum(one, other)
        top, bottom = math.floor(upper.min()), math.ceil(lower.max())
        rows = np.arange(top, bottom + 1)[:, None]
        self._blend(int(columns[0]), top, _BAND * ((rows >= upper) & (rows <= lower)), colour)

    def _blend(self, left: int, top: int, ink: np.ndarray, colour: Colour) -> None:
        """Lays colour over the sheet, as much of it as `ink` `[h, w]` says."""
        height, width, _ = self.pixels.shape
        rows = slice(max(top, 0), min(top + ink.shape[0], height))
        columns = slice(max(left, 0), min(left + ink.shape[1], width))
        if rows.start >= rows.stop or columns.start >= columns.stop:
            return
        ink = ink[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left, None]
        under = self.pixels[rows, columns].astype(np.float32)
        self.pixels[rows, columns] = np.rint(under + ink * (np.asarray(colour, np.float32) - under)).astype(np.uint8)


def _draw_panel(canvas: Canvas, panel: Panel, left: int, title_at: int, top: int) -> None:
    canvas.text(panel.title, left, title_at + 24, _BLACK)
    for row, (number, label) in enumerate(_shown(panel)):
        y = title_at + _TOP + row * _LEGEND_ROW
        canvas.line((left, y - 7), (left + 28, y - 7), _colour(number), _LINE)
        canvas.text(label, left + 40, y, _SOFT)
    points = panel.points()
    bottom = top + _HEIGHT
    if not points:
        canvas.text("no data", left + _WIDTH / 2, top + _HEIGHT / 2, _SOFT, anchor=0.5)
        return
    x_ticks = (log_ticks if panel.log_x else linear_ticks)(min(x for x, _ in points), max(x for x, _ in points))
    low, high = panel.y_range or (min(y for _, y in points), max(y for _, y in points))
    y_ticks = (log_ticks if panel.log_y else linear_ticks)(low, high)
    across = functools.partial(_place, ticks=x_ticks, log=panel.log_x, start=left, end=left + _WIDTH)
    up = functools.partial(_place, ticks=y_ticks, log=panel.log_y, start=bottom, end=top)
    for value in y_ticks:
        canvas.line((left, up(value)), (left + _WIDTH, up(value)), _GREY)
        canvas.text(short_number(value), left - 10, up(value) + 7, _SOFT, anchor=1.0)
    for value in x_ticks:
        canvas.line((across(value), bottom), (across(value), bottom + 6), _SOFT)
        canvas.text(short_number(value), across(value), bottom + 26, _SOFT, anchor=0.5)
    canvas.line((left, bottom), (left + _WIDTH, bottom), _SOFT)
    canvas.text(panel.x_label, left + _WIDTH / 2, bottom + 56, _SOFT, anchor=0.5)
    canvas.text(panel.y_label, left - 84, top + _HEIGHT / 2, _SOFT, anchor=0.5, turned=True)
    for number, curve in enumerate(panel.curves):
        _draw_curve(canvas, curve, _colour(number), panel, across, up)


def _draw_curve(canvas: Canvas, curve: Curve, colour: Colour, panel: Panel, across: Scale, up: Scale) -> None:
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
    for start, end in itertools.pairwise(zip(xs, ys, strict=True)):
        canvas.line(start, end, colour, _LINE)
    for x, y in zip(xs, ys, strict=True):
        canvas.line((x, y), (x, y), colour, 3 * _LINE)


def _place(value: float, ticks: list[float], log: bool, start: float, end: float) -> float:
    low, high, here = (math.log10(each) if log else each for each in (ticks[0], ticks[-1], value))
    return start + (here - low) / (high - low) * (end - start)


def _shown(panel: Panel) -> list[tuple[int, str]]:
    return [(number, curve.label) for number, curve in enumerate(panel.curves) if curve.label]


def _colour(number: int) -> Colour:
    text = COLOURS[number % len(COLOURS)]
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


@functools.cache
def _letter(letter: str) -> np.ndarray:
    """`[9, 6]` bool, the gap to the next included; a frame for letters that are not there."""
    dots = np.zeros((9, 6), bool)
    for names, *rows in _LETTERS:
        place = names.find(letter)
        if place >= 0:
            for y, row in enumerate(rows):
                dots[y, :5] = [dot == "#" for dot in row[6 * place : 6 * place + 5]]
            return dots
    if letter != " ":
        dots[:7, :5] = True
        dots[1:6, 1:4] = False
    return dots
