"""Pictures taken apart again: a valid file, curves where they belong, letters that can be told apart."""

from __future__ import annotations

import math
import string
import struct
import zlib
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.observe.plot import COLOURS, Curve, Panel
from aleazero.observe.png import Canvas, _letter, encode, png, write_png


def decode(data: bytes) -> np.ndarray:
    """`[height, width, 3]` of a PNG without filters, every checksum verified."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts, names = 8, {}, []
    while at < len(data):
        (size,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size]) == (zlib.crc32(kind + body),)
        names.append(kind)
        parts[kind] = body
        at += 12 + size
    assert names == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert (depth, colour, rest) == (8, 2, [0, 0, 0])
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def places(pixels: np.ndarray, colour: str) -> np.ndarray:
    """`[n, 2]`: where a colour stands, row and column."""
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return np.argwhere((pixels == wanted).all(-1))


def test_pixels_come_back() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 3)).astype(np.uint8)
    assert np.array_equal(decode(encode(pixels)), pixels)


def test_a_rising_curve_rises(tmp_path: Path) -> None:
    panel = Panel("Speed", "batch", "per second", [Curve("", [1, 10, 100], [1, 10, 100])], log_x=True, log_y=True)
    write_png(tmp_path / "a.png", [panel], "title")
    line = places(decode((tmp_path / "a.png").read_bytes()), COLOURS[0])
    left, right = line[line[:, 1].argmin()], line[line[:, 1].argmax()]
    assert right[1] - left[1] > 500
    assert left[0] - right[0] > 300
    middle = line[np.abs(line[:, 1] - (left[1] + right[1]) // 2) < 3]  # on two logarithmic axes it is straight
    assert abs(middle[:, 0].mean() - (left[0] + right[0]) / 2) < 4


def test_each_curve_has_its_colour_and_the_next_panel_its_place() -> None:
    curves = [Curve("one", [1, 2], [1, 1]), Curve("two", [1, 2], [2, 2])]
    alone = decode(png([Panel("a", "x", "y", curves)]))
    both = decode(png([Panel("a", "x", "y", curves), Panel("b", "x", "y", curves[:1])]))
    assert both.shape[1] == 2 * alone.shape[1]
    assert np.array_equal(both[:, : alone.shape[1]], alone)
    assert len(places(alone, COLOURS[1]))
    assert not len(places(both[:, alone.shape[1] :], COLOURS[1]))


def test_intervals_are_shaded_and_what_cannot_be_drawn_is_left_out() -> None:
    plain = Curve("", [1, 2, 3], [2, 2, 2])
    wide = Curve("", [1, 2, 3], [2, 2, 2], [1, 1, 1], [3, 3, 3])
    axes = {"title": "", "x_label": "", "y_label": "", "y_range": (0.0, 4.0)}
    inked = [(decode(png([Panel(curves=[curve], **axes)])) != 255).any(-1).sum() for curve in (plain, wide)]  # type: ignore[arg-type]
    assert inked[1] - inked[0] > 50_000
    gaps = Curve("", [0, 1, 2], [math.nan, 5, 0])
    assert len(places(decode(png([Panel("", "", "", [gaps], log_x=True, log_y=True)])), COLOURS[0]))
    assert not len(places(decode(png([Panel("", "", "", [])])), COLOURS[0]))


def test_letters_can_be_told_apart() -> None:
    known = string.ascii_letters + string.digits + ".,:;()/%_<>'#+-= "
    drawn = {letter: _letter(letter).tobytes() for letter in known}
    assert len(set(drawn.values())) == len(known)
    assert _letter("é").tobytes() == _letter("~").tobytes() not in drawn.values()
    assert not _letter(" ").any()


def test_words_turn_and_keep_to_their_anchor() -> None:
    def box(**how: object) -> tuple[int, int, int, int]:
        canvas = Canvas(300, 300)
        canvas.text("HHH", 150, 150, (0, 0, 0), **how)  # type: ignore[arg-type]
        rows, columns = np.nonzero((canvas.pixels == 0).all(-1))
        return rows.min(), rows.max(), columns.min(), columns.max()

    top, bottom, left, right = box()
    assert (left, bottom, bottom - top) == (150, 149, 13)
    assert box(anchor=1.0)[3] < 150 <= right
    middle = box(anchor=0.5)
    assert abs((middle[2] + middle[3]) / 2 - 149) < 3
    top, bottom, left, right = box(turned=True)
    assert (right, right - left) == (149, 13)
    assert bottom < 150


@given(
    st.tuples(*[st.floats(-500, 500)] * 4),
    st.floats(1, 20),
)
@settings(max_examples=30)
def test_drawing_never_leaves_the_sheet(ends: tuple[float, ...], width: float) -> None:
    canvas = Canvas(40, 30)
    canvas.line(ends[:2], ends[2:], (0, 0, 0), width)  # type: ignore[arg-type]
    canvas.text("word", *ends[:2], (9, 9, 9))
    canvas.band(sorted(ends[:2]), [ends[2]] * 2, [ends[3]] * 2, (5, 5, 5))
    assert canvas.pixels.shape == (30, 40, 3)


def test_the_same_panels_give_the_same_bytes() -> None:
    panel = Panel("a", "x", "y", [Curve("one", [1, 2], [1, 3])])
    assert png([panel], "t") == png([panel], "t")
