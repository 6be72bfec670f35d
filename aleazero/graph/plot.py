"""Pictures of the joker graph as SVG, with nothing but the standard library and NumPy: one joker's, or a map of all.

The map puts jokers with similar numbers (`embed`) near one another; colours are what they give. A joker's picture has
what it needs, makes and gives around it, and around those the jokers it shares them with. The same graph gives the
same picture.
"""

from __future__ import annotations

import math
from xml.sax.saxutils import escape

import numpy as np

from aleazero.games.balatro import embedding, facts
from aleazero.graph.model import Graph
from aleazero.observe.plot import COLOURS

_SIZE = 1000
_GIVES = ("chips", "mult", "xmult", "money", "retrigger")  # with a colour of their own; others share the last
_STYLE = (
    ".s{fill:#fff}.t{fill:#1f2328;font:11px sans-serif}.l{stroke:#9aa4ae;stroke-width:1}"
    "@media (prefers-color-scheme:dark){.s{fill:#0d1117}.t{fill:#f0f6fc}.l{stroke:#59636e}}"
)


def map_svg(graph: Graph) -> str:
    """All jokers."""
    order = _flat(embedding.table("graph")[1:]).argsort(0).argsort(0)  # places by rank: names have room
    places = 40 + order / len(order) * (_SIZE - 160)
    marks = [
        _dot(float(x), float(y), _colour(graph, name), name)
        for name, (x, y) in zip(graph.names("Joker"), places, strict=True)
    ]
    legend = [_dot(20 + 110 * k, _SIZE - 24, COLOURS[k], name) for k, name in enumerate((*_GIVES, "something else"))]
    return _sheet("The jokers, similar ones near one another", [*marks, *legend])


def joker_svg(graph: Graph, name: str) -> str:
    """One joker and what is near it."""
    facts.number("jokers", name)
    near = [edge for edge in graph.edges if edge.source == ("Joker", name) and edge.kind != "ACTS"]
    centre = (_SIZE / 2, _SIZE / 2)
    drawn: list[str] = []
    around = _ring(centre, 170, len(near))
    for edge, (x, y) in zip(near, around, strict=True):
        drawn += [_line(centre, (x, y), edge.kind.lower()), _dot(x, y, COLOURS[4], edge.target[1])]
    others = sorted(
        {
            (edge.source[1], mine.target)
            for mine in near
            for edge in graph.edges
            if edge.target == mine.target and edge.source != ("Joker", name) and edge.kind in ("NEEDS", "FEEDS")
        }
    )
    names = sorted({joker for joker, _ in others})
    outer = dict(zip(names, _ring(centre, 390, len(names)), strict=True))
    spots = {edge.target: spot for edge, spot in zip(near, around, strict=True)}
    drawn += [_line(spots[target], outer[joker], "") for joker, target in others]
    drawn += [_dot(*outer[joker], _colour(graph, joker), joker) for joker in names]
    return _sheet(name, [*drawn, _dot(*centre, COLOURS[1], name)])


def _flat(numbers: np.ndarray) -> np.ndarray:
    """`[n, 2]`: along the two directions in which the numbers differ most."""
    middle = numbers.astype(np.float64) - numbers.mean(0)
    _, _, directions = np.linalg.svd(middle, full_matrices=False)
    first = directions[:2]
    first = first * np.where(first[np.arange(2), np.abs(first).argmax(1)] < 0, -1.0, 1.0)[:, None]
    return np.asarray(middle @ first.T)


def _colour(graph: Graph, joker: str) -> str:
    given = [edge.target[1] for edge in graph.edges if edge.source == ("Joker", joker) and edge.kind == "GIVES"]
    return COLOURS[next((k for k, name in enumerate(_GIVES) if name in given), len(_GIVES))]


def _ring(centre: tuple[float, float], radius: float, count: int) -> list[tuple[float, float]]:
    turns = [2 * math.pi * k / max(count, 1) for k in range(count)]
    return [(centre[0] + radius * math.cos(a), centre[1] + radius * math.sin(a)) for a in turns]


def _dot(x: float, y: float, colour: str, name: str) -> str:
    text = f'<text class="t" x="{x + 7:.1f}" y="{y + 4:.1f}">{escape(name)}</text>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>{text}'


def _line(a: tuple[float, float], b: tuple[float, float], name: str) -> str:
    middle = f'<text class="t" x="{(a[0] + b[0]) / 2:.1f}" y="{(a[1] + b[1]) / 2:.1f}">{escape(name)}</text>'
    drawn = f'<line class="l" x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"/>'
    return drawn + (middle if name else "")


def _sheet(title: str, drawn: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}"><style>{_STYLE}</style>'
        f'<rect class="s" width="100%" height="100%"/><text class="t" x="20" y="24">{escape(title)}</text>'
        + "".join(drawn)
        + "</svg>\n"
    )
