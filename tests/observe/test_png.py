"""Pictures taken apart again: a valid file, curves and labels where they belong."""

from __future__ import annotations

import dataclasses
import io
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from aleazero.core.errors import MissingExtra
from aleazero.observe.plot import COLOURS, Curve, Panel
from aleazero.observe.png import png, write_png


def decode(data: bytes) -> np.ndarray:
    """Return the pixels `[height, width, 3]`."""
    image = Image.open(io.BytesIO(data))
    assert image.format == "PNG"
    return np.asarray(image.convert("RGB"))


def places(pixels: np.ndarray, colour: str) -> np.ndarray:
    """`[n, 2]`: where a colour stands, row and column."""
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return np.argwhere((pixels == wanted).all(-1))


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


def test_labels_are_written_where_they_belong() -> None:
    def ink(**labels: str) -> np.ndarray:
        plain = Panel("", "", "", [Curve("", [1, 2], [1, 2])])
        return np.argwhere(decode(png([dataclasses.replace(plain, **labels)])) != decode(png([plain])))

    up, across = ink(y_label="a label of y"), ink(x_label="a label of x")
    assert np.ptp(up[:, 0]) > 3 * np.ptp(up[:, 1]) > 0, "turned"
    assert np.ptp(across[:, 1]) > 3 * np.ptp(across[:, 0]) > 0
    assert up[:, 1].max() < across[:, 1].min()
    assert across[:, 0].min() > up[:, 0].max()


def test_without_pillow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r"a picture as PNG needs pillow.*aleazero\[track\]"):
        png([])


def test_the_same_panels_give_the_same_bytes() -> None:
    panel = Panel("a", "x", "y", [Curve("one", [1, 2], [1, 3])])
    assert png([panel], "t") == png([panel], "t")
