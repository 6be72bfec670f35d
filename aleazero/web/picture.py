"""Boards as SVG, for documents: the same positions that the page draws, without a browser.

Takes what `faces.py` says stands where, from seat 0's side. Knows no rules.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

LIGHT, DARK, INK, PAPER = "#ece3d0", "#a98a6b", "#2a2723", "#fbfaf7"
SEATS = (("#f4efe4", "#4a4438"), ("#38322c", "#d8cdbb"))  # fill and edge of either seat's pieces
_BASE = "M22 88 L24 78 Q50 70 76 78 L78 88 Z"
_PIECES = {  # in a box of 100 by 100, as in frontend/src/boards/chess.ts
    "p": ["M34 76 Q44 60 40 48 L60 48 Q56 60 66 76 Z", "M50 22 a14 14 0 1 1 -0.1 0 Z"],
    "r": [
        "M32 74 L35 44 L65 44 L68 74 Z",
        "M28 44 L28 22 L38 22 L38 30 L45 30 L45 22 L55 22 L55 30 L62 30 L62 22 L72 22 L72 44 Z",
    ],
    "n": ["M34 76 Q34 58 48 48 L34 50 L26 44 L40 24 L44 14 L52 22 Q76 30 70 76 Z"],
    "b": [
        "M36 76 Q44 66 42 58 L58 58 Q56 66 64 76 Z",
        "M50 18 Q72 38 60 58 L40 58 Q28 38 50 18 Z",
        "M50 8 a6 6 0 1 1 -0.1 0 Z",
    ],
    "q": [
        "M30 76 L20 34 L36 52 L42 24 L50 50 L58 24 L64 52 L80 34 L70 76 Z",
        *(f"M{x} {y} a5 5 0 1 1 -0.1 0 Z" for x, y in ((20, 26), (42, 15), (58, 15), (80, 26))),
    ],
    "k": [
        "M32 76 Q14 54 30 42 Q44 36 50 52 Q56 36 70 42 Q86 54 68 76 Z",
        "M46 36 L46 26 L38 26 L38 18 L46 18 L46 10 L54 10 L54 18 L62 18 L62 26 L54 26 L54 36 Z",
    ],
}


def picture(board: dict[str, Any]) -> str:
    """The board as an SVG document."""
    size, parts = _BOARDS.get(board["kind"], _text)(board)
    left, top, width, height = size
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left} {top} {width} {height}" font-family="sans-serif">'
    back = f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="{PAPER}"/>'
    return "\n".join([head, back, *parts, "</svg>", ""])


Drawn = tuple[tuple[int, int, int, int], list[str]]


def _tag(name: str, text: str | None = None, **attributes: Any) -> str:
    given = " ".join(f'{key.replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items())
    return f"<{name} {given}/>" if text is None else f"<{name} {given}>{escape(text)}</{name}>"


def _words(x: float, y: float, text: Any, fill: str = "#55595f", size: int = 17) -> str:
    return _tag("text", str(text), x=x, y=y, text_anchor="middle", font_size=size, fill=fill)


def _text(board: dict[str, Any]) -> Drawn:
    lines = str(board.get("text", "")).splitlines()
    parts = [
        _tag("text", line, x=10, y=24 + 20 * row, font_family="monospace", font_size=16, fill=INK)
        for row, line in enumerate(lines)
    ]
    return (0, 0, 20 + 10 * max(map(len, lines), default=1), 20 + 20 * len(lines)), parts


def _tictactoe(board: dict[str, Any]) -> Drawn:
    parts = []
    for at in (100, 200):
        parts += [_tag("path", d=f"M{at} 12 V288 M12 {at} H288", stroke="#77736b", stroke_width=4)]
    for place, mark in enumerate(board["cells"]):
        x, y = 50 + 100 * (place % 3), 50 + 100 * (place // 3)
        if mark == "X":
            cross = f"M{x - 28} {y - 28} l56 56 m0 -56 l-56 56"
            parts.append(_tag("path", d=cross, stroke="#1f5f8b", stroke_width=10, stroke_linecap="round"))
        elif mark == "O":
            parts.append(_tag("circle", cx=x, cy=y, r=30, fill="none", stroke="#b57400", stroke_width=10))
    return (0, 0, 300, 300), parts


def _connect_four(board: dict[str, Any]) -> Drawn:
    parts = [_tag("rect", x=0, y=40, width=700, height=600, rx=18, fill="#2d5f93")]
    for row, marks in enumerate(board["rows"]):
        for column, mark in enumerate(marks):
            fill = {"X": "#f2c230", "O": "#c43d3d"}.get(mark, PAPER)
            parts.append(_tag("circle", cx=50 + 100 * column, cy=90 + 100 * row, r=40, fill=fill))
    parts += [_words(50 + 100 * column, 28, column + 1) for column in range(7)]
    return (0, 0, 700, 640), parts


def _quoridor(board: dict[str, Any]) -> Drawn:
    parts = [
        _tag("rect", x=76 * column, y=76 * row, width=60, height=60, rx=6, fill=LIGHT)
        for row in range(9)
        for column in range(9)
    ]
    for i in range(9):
        parts += [_words(76 * i + 30, 688, "abcdefghi"[i]), _words(-14, 76 * (8 - i) + 36, i + 1)]
    for wall in board["walls"]:
        x, y = 76 * "abcdefgh".index(wall[0]), 76 * (8 - int(wall[1]))
        box = (x, y + 60, 136, 16) if wall[2] == "h" else (x + 60, y, 16, 136)
        parts.append(_tag("rect", x=box[0], y=box[1], width=box[2], height=box[3], rx=5, fill="#7a3b20"))
    for seat, pawn in enumerate(board["pawns"]):
        x, y = 76 * "abcdefghi".index(pawn[0]) + 30, 76 * (9 - int(pawn[1])) + 30
        fill, edge = SEATS[seat]
        parts.append(_tag("circle", cx=x, cy=y, r=22, fill=fill, stroke=edge, stroke_width=3))
    left = "walls left: {} and {}".format(*board["left"])
    return (-30, -10, 728, 740), [*parts, _words(334, 718, left)]


def _chess(board: dict[str, Any]) -> Drawn:
    parts = []
    for place, letter in enumerate(board["pieces"]):
        column, row = place % 8, 7 - place // 8
        fill = LIGHT if (column + place // 8) % 2 else DARK
        parts.append(_tag("rect", x=100 * column, y=100 * row, width=100, height=100, fill=fill))
        if letter != ".":
            fill, edge = ("#fffdf6", INK) if letter.isupper() else ("#2d2a27", "#f1e9da")
            shapes = "".join(_tag("path", d=d) for d in (*_PIECES[letter.lower()], _BASE))
            group = f'<g transform="translate({100 * column} {100 * row})" fill="{fill}" stroke="{edge}" '
            parts.append(f'{group}stroke-width="3" stroke-linejoin="round">{shapes}</g>')
    for i in range(8):
        parts += [_words(50 + 100 * i, 824, "abcdefgh"[i]), _words(-14, 57 + 100 * i, 8 - i)]
    return (-28, -4, 832, 836), parts


def _backgammon(board: dict[str, Any]) -> Drawn:
    width, height = 12 * 70 + 64 + 86, 720
    parts = [
        _tag("rect", x=0, y=0, width=width, height=height, rx=10, fill="#cfb994", stroke="#5d4a33", stroke_width=4),
        _tag("rect", x=420, y=0, width=64, height=height, fill="#7b6347"),
        _tag("rect", x=904, y=0, width=86, height=height, fill="#a58a66"),
    ]

    def stack(x: int, edge: int, way: int, count: int, seat: int) -> None:
        gap = min(60.0, 250 / max(count - 1, 1))
        for i in range(count):
            y = edge + way * (33 + i * gap)
            parts.append(_tag("circle", cx=x, cy=y, r=31, fill=SEATS[seat][0], stroke=SEATS[seat][1], stroke_width=2.5))
            if i == count - 1 and count > 5:
                parts.append(_words(x, y + 8, count, SEATS[seat][1], 22))

    for point, held in enumerate(board["points"], 1):
        low = point <= 12
        column = 12 - point if low else point - 13
        x, edge = 35 + 70 * column + (64 if column >= 6 else 0), height if low else 0
        tip = height - 290 if low else 290
        fill = "#9c4f3c" if point % 2 else "#e9dcc0"
        parts.append(_tag("path", d=f"M{x - 32} {edge} H{x + 32} L{x} {tip} Z", fill=fill))
        parts.append(_words(x, height + 20 if low else -8, point))
        stack(x, edge, -1 if low else 1, abs(held), int(held < 0))
    for seat in (0, 1):
        way = 1 - 2 * seat
        stack(452, height // 2 + 40 * way, way, board["bar"][seat], seat)
        for i in range(board["off"][seat]):
            y = height - 20 - 20 * i if seat == 0 else 4 + 20 * i
            parts.append(
                _tag("rect", x=914, y=y, width=66, height=16, rx=4, fill=SEATS[seat][0], stroke=SEATS[seat][1])
            )
        parts.append(_words(947, height + 20 if seat == 0 else -8, f"{'XO'[seat]} {board['pips'][seat]}"))
    for i, die in enumerate(board["left"]):
        x = 694 + 62 * i - 31 * (len(board["left"]) - 1)
        parts.append(_tag("rect", x=x - 26, y=height / 2 - 26, width=52, height=52, rx=9, fill="#fffdf6", stroke=INK))
        parts.append(_words(x, height / 2 + 11, die, INK, 32))
    return (-4, -26, width + 8, height + 52), parts


_BOARDS: dict[str, Callable[[dict[str, Any]], Drawn]] = {
    "backgammon": _backgammon,
    "chess": _chess,
    "connect_four": _connect_four,
    "quoridor": _quoridor,
    "tictactoe": _tictactoe,
}
