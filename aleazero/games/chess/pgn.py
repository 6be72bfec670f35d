"""Games as PGN, with what the players thought as comments; positions that were learned worst as FEN.

A comment is `[%eval 0.35]`: pawns from White's side, as chess programs read it. On the host. Knows neither matches nor
runs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jax
import numpy as np

from aleazero.games.chess.compiled import after, compiled
from aleazero.games.chess.fen import STARTPOS, format_fen, read
from aleazero.games.chess.uci import centipawns

if TYPE_CHECKING:
    from aleazero.games.chess.game import Chess, ChessState

_WIDTH = 80
_GLUE = "\N{NO-BREAK SPACE}"  # keeps a comment on one line; not in what is written
_ROSTER = {"Event": "?", "Site": "?", "Date": "????.??.??", "Round": "?", "White": "?", "Black": "?"}


def pgn_of(
    game: Chess,
    start: ChessState,
    actions: Sequence[int],
    evaluations: Sequence[float | None] | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    result: str | None = None,
) -> str:
    """A game from `start`.

    Args:
        game: the rules.
        start: where it began; its FEN is written unless it is the first position.
        actions: the moves.
        evaluations: the value, in [-1, 1], that each mover gave its position; None where it said nothing.
        headers: further tags, and those of the roster.
        result: `1-0`, `0-1`, `1/2-1/2` or `*`; by the rules if left out, `*` where they say nothing.
    """
    values = list(evaluations) if evaluations is not None else [None] * len(actions)
    words, state = [], start
    for ply, (action, value) in enumerate(zip(actions, values, strict=True)):
        seat, number = int(state.to_play), int(state.number)
        if seat == 0 or ply == 0 or values[ply - 1] is not None:
            words.append(f"{number}." if seat == 0 else f"{number}...")
        words.append(game.notation.format_action(state, action))
        if value is not None:
            words.append(f"{{[%eval{_GLUE}{centipawns(value if seat == 0 else -value) / 100:.2f}]}}")
        state = after(game, state, action)
    ended = result or result_of(state)
    tags = {**_ROSTER, **(headers or {}), "Result": ended}
    fen = format_fen(read(start)).partition(" seen ")[0].partition(" after ")[0]
    if fen != STARTPOS:
        tags |= {"SetUp": "1", "FEN": fen}
    lines = [f'[{name} "{_escaped(value)}"]' for name, value in tags.items()]
    text = textwrap.fill(" ".join([*words, ended]), _WIDTH, break_long_words=False, break_on_hyphens=False)
    text = text.replace(_GLUE, " ")
    return "\n".join([*lines, "", text, ""])


def result_of(state: ChessState) -> str:
    """How a game that stands so has ended; `*` if it has not."""
    if not bool(state.terminated):
        return "*"
    points = float(state.returns[0])
    return "1/2-1/2" if points == 0 else "1-0" if points > 0 else "0-1"


def worst_positions(game: Chess, rows: np.ndarray, losses: np.ndarray, count: int) -> list[str]:
    """The `count` packed positions `[n, P]` of the greatest loss `[n]`, worst first, as EPD: `FEN c0 "loss 2.310";`."""
    finite = np.where(np.isnan(losses), -np.inf, losses)
    order = np.argsort(-finite, kind="stable")[:count]
    lines = []
    for row in order[np.isfinite(finite[order])]:
        position = read(jax.tree.map(np.asarray, compiled(game, "unpack")(rows[row])))
        fields = format_fen(position).split()
        lines.append(f'{" ".join(fields[:4])} hmvc {fields[4]}; fmvn {fields[5]}; c0 "loss {losses[row]:.3f}";')
    return lines


def _escaped(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text).replace("\\", "\\\\").replace('"', '\\"')
