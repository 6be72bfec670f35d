"""Tactics that the rules alone can prove: mates in one and two, and moves that are the only ones not to be mated next.

The set that comes with the package (`data/chess_tactics.epd`) is what `shipped` makes; nothing in it is copied.
Knows no network and no search.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aleazero.games.chess.compiled import compiled
from aleazero.games.chess.game import Chess
from aleazero.games.chess.mates import Prover, generate, played, prover

MOST_DEFENCES = 3  # moves that hold, in a position where most do not
LEAST_MOVES = 8
_SEED = 2026


def shipped(game: Chess, each: int = 60) -> str:
    """EPD: `each` mates in one, mates in two and defences."""
    lines = [
        f'{problem.epd} id "mate in {moves}, {number}";'
        for moves in (1, 2)
        for number, problem in enumerate(generate(game, moves, each, _SEED), 1)
    ]
    return "".join(f"{line}\n" for line in [*lines, *defences(game, each, _SEED)])


def defences(game: Chess, count: int, seed: int = 0) -> list[str]:
    """EPD lines of positions where few moves keep the other side from mating at once, and at least one does."""
    rules, found = prover(game), dict[str, str]()
    for rows in played(game, seed):
        for row, keys in _holding(rules, rows):
            state = compiled(game, "unpack")(row)
            fen = " ".join(game.notation.format_state(state).split()[:4])
            names = " ".join(game.notation.format_action(state, action) for action in keys)
            found.setdefault(fen, f'{fen} bm {names}; id "defence, {len(found) + 1}";')
            if len(found) == count:
                return list(found.values())
    raise AssertionError("play goes on for ever")


def _holding(rules: Prover, rows: np.ndarray) -> Iterator[tuple[np.ndarray, list[int]]]:
    """Positions `[P]` among `[n, P]` with the few moves after which no mate in one follows."""
    owners, chosen, after, over, _ = rules.replies(rows)
    total = np.bincount(owners, minlength=len(rows))
    live = np.flatnonzero(~over)
    holds = np.ones(len(owners), bool)
    holds[live] = [not mates for mates in rules.mates_in_one(after[live])]
    good = np.bincount(owners[holds], minlength=len(rows))
    for number in np.flatnonzero((good > 0) & (good <= MOST_DEFENCES) & (total >= LEAST_MOVES)):
        yield rows[number], chosen[holds & (owners == number)].tolist()
