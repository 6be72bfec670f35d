"""Charts taken apart again: what is drawn, where, and that nothing else is."""

from __future__ import annotations

import itertools
import math
import random
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from aleazero.core.errors import AleaError
from aleazero.observe.plot import Curve, Panel, linear_ticks, log_ticks, short_number, svg, write_svg

NAN, INF = math.nan, math.inf
numbers = st.floats(-1e300, 1e300)


def _draw(*curves: Curve, **options: object) -> ElementTree.Element:
    return ElementTree.fromstring(svg([Panel("Title", "across", "up", curves, **options)]))  # type: ignore[arg-type]


def _all(drawing: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return drawing.findall(f".//{{http://www.w3.org/2000/svg}}{name}")


def _points(element: ElementTree.Element) -> list[tuple[float, float]]:
    return [tuple(map(float, pair.split(","))) for pair in element.attrib["points"].split()]  # type: ignore[misc]


def _lines(drawing: ElementTree.Element) -> list[list[tuple[float, float]]]:
    return [_points(element) for element in _all(drawing, "polyline")]


def _texts(drawing: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in _all(drawing, "text")]


@settings(deadline=None)
@given(low=numbers, high=numbers)
def test_ticks_cover_the_range_evenly(low, high):
    low, high = min(low, high), max(low, high)
    ticks = linear_ticks(low, high)
    assert 2 <= len(ticks) <= 12
    assert ticks[0] <= low <= high <= ticks[-1]
    steps = [after - before for before, after in itertools.pairwise(ticks)]
    assert min(steps) > 0
    assert max(steps) == pytest.approx(min(steps), rel=1e-4)


@settings(deadline=None)
@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-3, 1e6))
def test_ticks_waste_little_and_are_short(low, span):
    ticks = linear_ticks(low, low + span)
    step = ticks[1] - ticks[0]
    assert any(step / 10.0**power == pytest.approx(factor, rel=1e-4) for factor in (1, 2, 5) for power in range(-5, 7))
    assert ticks[0] > low - step * 1.0001
    assert ticks[-1] < low + span + step * 1.0001
    assert 4 <= len(ticks) <= 11
    assert all(tick == float(f"{tick:.12g}") for tick in ticks), "no 0.30000000000000004"
    drawing = _draw(Curve("", [0, 1], [low, low + span]))
    labels = [text.text for text in _all(drawing, "text") if text.attrib["text-anchor"] == "end"]
    assert len(set(labels)) == len(labels) == len(ticks)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.1, 0.3, [0.1, 0.15, 0.2, 0.25, 0.3]),
        (-3, 11, [-4, -2, 0, 2, 4, 6, 8, 10, 12]),
        (0, 80_000, [0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000, 80_000]),
        (5, 5, [4.4, 4.6, 4.8, 5.0, 5.2, 5.4, 5.6]),
        (0, 0, [-1, -0.5, 0, 0.5, 1]),
    ],
)
def test_ticks_are_those_a_person_would_draw(low, high, ticks):
    assert linear_ticks(low, high) == ticks


@settings(deadline=None)
@given(low=st.floats(1e-300, 1e300), factor=st.floats(1, 1e30))
def test_logarithmic_ticks_cover_the_range(low, factor):
    high = low * factor
    assume(high <= 1e300)
    ticks = log_ticks(low, high)
    assert 2 <= len(ticks) <= 12
    assert ticks[0] <= low * (1 + 1e-12)
    assert ticks[-1] >= high * (1 - 1e-12)
    assert all(after / before >= 1.9999 for before, after in itertools.pairwise(ticks))


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (10, 100_000, [10, 100, 1000, 10_000, 100_000]),
        (3, 40, [2, 5, 10, 20, 50]),
        (1, 1, [1, 2]),
        (0.03, 0.03, [0.02, 0.05]),
        (1e-9, 1e9, [1e-9, 1e-6, 1e-3, 1, 1e3, 1e6, 1e9]),
    ],
)
def test_logarithmic_ticks_are_those_a_person_would_draw(low, high, ticks):
    assert log_ticks(low, high) == ticks


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (950, "950"),
        (1000, "1k"),
        (1250, "1.25k"),
        (10_000, "10k"),
        (999_499, "999k"),
        (999_999, "1M"),
        (-2_500_000, "-2.5M"),
        (3e9, "3G"),
        (4e12, "4T"),
        (1e15, "1e+15"),
        (0.05, "0.05"),
        (0.00001234, "1.23e-05"),
    ],
)
def test_numbers_in_little_room(value, text):
    assert short_number(value) == text


def test_more_digits_tell_near_ticks_apart():
    assert [short_number(value, 10) for value in (100_000, 100_200, 100_400)] == ["100k", "100.2k", "100.4k"]


@settings(deadline=None)
@given(
    xs=st.lists(st.integers(-1000, 1000), min_size=2, max_size=30, unique=True),
    ys=st.lists(st.integers(-1000, 1000), min_size=30, max_size=30, unique=True),
)
def test_larger_values_lie_further_right_and_higher(xs, ys):
    ys = ys[: len(xs)]
    (line,) = _lines(_draw(Curve("a", xs, ys)))
    by_x = [point[0] for _, point in sorted(zip(xs, line, strict=True))]
    by_y = [point[1] for _, point in sorted(zip(ys, line, strict=True))]
    assert by_x == sorted(by_x)
    assert by_y == sorted(by_y, reverse=True)
    assert all(0 <= x <= 384 and 0 <= y <= 220 for x, y in line)


def test_points_lie_exactly_where_the_ticks_say():
    (line,) = _lines(_draw(Curve("a", [0, 50, 100], [0.0, 1.0, 0.25])))
    assert line == [(0, 220), (192, 0), (384, 165)]
    (line,) = _lines(_draw(Curve("a", [1, 10, 10_000], [0, 1, 0]), log_x=True))
    assert [x for x, _ in line] == [0, 96, 384]
    (line,) = _lines(_draw(Curve("a", [0, 1, 2], [1, 100, 10_000]), log_y=True))
    assert [y for _, y in line] == [220, 110, 0]


def test_the_axes_are_labelled():
    texts = _texts(_draw(Curve("a curve", [0, 1e6], [0, 1])))
    assert texts[0] == "Title"
    assert {"across", "up", "a curve", "0", "0.2", "0.8", "1", "200k", "1M"} <= set(texts)


def test_crowded_tick_labels_are_left_out_but_not_their_ticks():
    drawing = _draw(Curve("", [100_000.0, 100_001.6], [0, 1]))
    ticks = [path for path in _all(drawing, "path") if path.attrib["d"].endswith("v4")]
    labels = [text for text in _texts(drawing) if text.endswith("k")]
    assert len(ticks) == 9
    assert labels == ["100k", "100.0004k", "100.0008k", "100.0012k", "100.0016k"]


def test_an_interval_is_a_translucent_band():
    curve = Curve("a", [0, 10, 20], [0.5, 0.5, 0.5], low=[0.25, 0.0, 0.25], high=[0.75, 1.0, 0.75])
    drawing = _draw(curve)
    (band,) = _all(drawing, "polygon")
    assert _points(band) == [(0, 55), (192, 0), (384, 55), (384, 165), (192, 220), (0, 165)]
    assert 0 < float(band.attrib["fill-opacity"]) < 0.5
    (line,) = _all(drawing, "polyline")
    assert band.attrib["fill"] == line.attrib["stroke"]


def test_the_band_counts_for_the_range():
    assert "2" in _texts(_draw(Curve("a", [0, 1], [1, 1], low=[0, 0], high=[2, 2])))


@pytest.mark.parametrize("gap", [NAN, INF, -INF])
def test_what_is_not_finite_leaves_a_gap(gap):
    ys = [0, 1, gap, gap, 1, 0, gap, 0.5]
    drawing = _draw(Curve("a", range(8), ys, low=[y - 0.1 for y in ys], high=[y + 0.1 for y in ys]))
    lines = [line for line in _all(drawing, "polyline") if line.attrib.get("fill") == "none"]
    assert [len(_points(line)) for line in lines] == [2, 2]
    (dot,) = _all(drawing, "circle")  # a point that stands alone
    assert len(_all(drawing, "polygon")) == 2
    (bar,) = [_points(line) for line in _all(drawing, "polyline") if line.attrib.get("fill") != "none"]
    assert bar[0][0] == bar[1][0] == float(dot.attrib["cx"])
    assert bar[0][1] < float(dot.attrib["cy"]) < bar[1][1]


def test_a_gap_in_x_is_a_gap_and_one_in_the_interval_only_there():
    drawing = _draw(Curve("a", [0, 1, NAN, 3, 4], [0, 1, 0, 1, 0]))
    assert [len(line) for line in _lines(drawing)] == [2, 2]
    drawing = _draw(Curve("a", range(4), [0, 1, 0, 1], low=[0, 0, NAN, 0], high=[1, 1, 1, 1]))
    assert 4 in [len(line) for line in _lines(drawing)]
    assert [len(_points(band)) for band in _all(drawing, "polygon")] == [4]


def test_what_is_not_positive_is_a_gap_on_a_logarithmic_axis():
    drawing = _draw(Curve("a", range(5), [1, 10, 0, -1, 100]), log_y=True)
    assert [len(line) for line in _lines(drawing)] == [2]
    assert len(_all(drawing, "circle")) == 1


@pytest.mark.parametrize(
    "curves", [[], [Curve("a", [], [])], [Curve("a", [1], [NAN])], [Curve("a", [INF], [1])]], ids=str
)
def test_a_panel_without_points_says_so(curves):
    assert "no data" in _texts(_draw(*curves))


def test_no_panels_are_no_data():
    assert "no data" in _texts(ElementTree.fromstring(svg([])))


def test_a_panel_with_points_does_not():
    assert "no data" not in _texts(_draw(Curve("a", [1], [1])))


def test_a_fixed_range_is_shown_and_what_leaves_it_is_cut_off():
    drawing = _draw(Curve("a", [0, 1, 2], [0.5, 3.0, 1e308]), y_range=(0, 1))
    assert {"0", "1"} <= set(_texts(drawing))
    assert "1.2" not in _texts(drawing)
    (line,) = _lines(drawing)
    assert [y for _, y in line[:2]] == [110, -440]
    # Drawn inside a nested drawing, which cuts off what lies outside of it.
    (area,) = _all(drawing, "svg")
    assert len(area.findall("{http://www.w3.org/2000/svg}polyline")) == 1
    assert area.attrib["viewBox"] == "-4 -4 392 228"


@pytest.mark.parametrize("y_range", [(1, 0), (1, 1), (0, NAN), (INF, 3)])
def test_a_range_that_is_none_is_refused(y_range):
    with pytest.raises(AleaError, match=r"panel 'Title' has y_range .*low < high"):
        _draw(y_range=y_range)


def test_a_logarithmic_range_must_be_positive():
    with pytest.raises(AleaError, match="positive"):
        _draw(y_range=(0, 1), log_y=True)


def test_lengths_that_differ_are_refused():
    with pytest.raises(AleaError, match=r"curve 'a' has lengths \{'x': 2, 'y': 1\}"):
        Curve("a", [1, 2], [1])
    with pytest.raises(AleaError, match="'low': 1"):
        Curve("a", [1, 2], [1, 2], [0], [3, 3])
    with pytest.raises(AleaError, match="both or neither"):
        Curve("a", [1], [1], low=[0])


NASTY = """<b> & "quotes" 'x' \x00\x1b ]]> \ud800"""


def test_text_is_escaped():
    panel = Panel(NASTY, NASTY, NASTY, [Curve(NASTY, [1, 2], [1, 2])])
    drawing = ElementTree.fromstring(svg([panel], NASTY).encode("utf-8"))
    clean = NASTY.replace("\x00", " ").replace("\x1b", " ").replace("\ud800", " ")
    assert _texts(drawing).count(clean) == 5


def test_colours_repeat_with_dashes_and_the_legend_wraps():
    drawing = _draw(*(Curve(f"curve number {number}", [0, 1], [0, number]) for number in range(20)))
    looks = [(line.attrib["stroke"], line.attrib.get("stroke-dasharray")) for line in _all(drawing, "polyline")]
    assert len(set(looks)) == 20
    legend = [element for element in _all(drawing, "text") if (element.text or "").startswith("curve number")]
    assert len(legend) == 20
    assert len({(element.attrib["x"], element.attrib["y"]) for element in legend}) == 20
    assert max(float(element.attrib["x"]) for element in legend) < 466
    (area,) = _all(drawing, "svg")
    assert float(area.attrib["y"]) > max(float(element.attrib["y"]) for element in legend)


def test_a_label_longer_than_the_panel_is_shortened():
    (label,) = [text for text in _texts(_draw(Curve("x" * 500, [0], [0]))) if text.startswith("xx")]
    assert label.endswith("…")
    assert len(label) < 70


def test_panels_stand_side_by_side_and_wrap():
    panels = [Panel(f"panel {number}", "", "", [Curve("a", [0, 1], [0, 1])]) for number in range(5)]
    drawing = ElementTree.fromstring(svg(panels, "a run"))
    places = [re.findall(r"[\d.]+", group.attrib["transform"]) for group in _all(drawing, "g")]
    assert len({tuple(place) for place in places}) == 5
    assert [len([1 for x, _ in places if x == column]) for column in ("0", "488")] == [3, 2]
    assert drawing.attrib["viewBox"] == f"0 0 {drawing.attrib['width']} {drawing.attrib['height']}"
    assert int(drawing.attrib["width"]) == 976
    assert max(float(y) for _, y in places) + 200 < int(drawing.attrib["height"])


def test_a_long_line_is_thinned_without_losing_its_peaks():
    dice = random.Random(0)
    ys = [dice.random() for _ in range(50_000)]
    ys[12_345], ys[40_000] = 7.0, -7.0
    (line,) = _lines(_draw(Curve("a", range(50_000), ys)))
    assert len(line) <= 4 * 386
    assert line == sorted(line, key=lambda point: point[0])
    (whole,) = _lines(_draw(Curve("a", [0, 49_999, 25_000], [ys[0], ys[-1], 7.0]), Curve("", [], [])))
    assert line[0][0] == whole[0][0]
    assert line[-1][0] == whole[1][0]
    peak, pit = min(y for _, y in line), max(y for _, y in line)
    (few,) = _lines(_draw(Curve("a", [0, 1], [7.0, -7.0])))
    assert (peak, pit) == (few[0][1], few[1][1])


def test_the_file_is_written_whole_and_the_same_every_time(tmp_path: Path):
    panels = [Panel("Score", "rows", "score", [Curve("a", [1, 2, 3], [0.1, NAN, 0.3], [0, 0, 0], [1, 1, 1])])]
    write_svg(tmp_path / "a.svg", panels, "a run")
    write_svg(tmp_path / "b.svg", panels, "a run")
    write_svg(tmp_path / "b.svg", panels, "a run")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.svg", "b.svg"]


def _luminance(colour: str) -> float:
    """Of a colour as `#rrggbb`, as WCAG 2 defines it."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_light_and_dark_readers_can_both_read_it():
    drawing = _draw(*(Curve(f"{number}", [0, 1], [0, number]) for number in range(8)))
    lines = {line.attrib["stroke"] for line in _all(drawing, "polyline")}
    assert len(lines) == 8
    (style,) = _all(drawing, "style")
    light, dark = (style.text or "").split("@media (prefers-color-scheme: dark)")
    for theme in (light, dark):
        colours = dict(re.findall(r"\.az-(\w+) { \w+: (#\w{6}) }", theme))
        assert _contrast(colours["strong"], colours["sheet"]) >= 7
        assert _contrast(colours["soft"], colours["sheet"]) >= 4.5
        assert min(_contrast(line, colours["sheet"]) for line in lines) >= 3
        assert _contrast(colours["grid"], colours["sheet"]) > 1.1
