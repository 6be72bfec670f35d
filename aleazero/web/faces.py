"""Positions and moves as a page shows them: named places, what stands there, and between which places a move goes.

Every board is a set of places (squares, points, columns, walls). A move has a place it goes `to`, perhaps one it comes
`from`, and where several moves share both, a `choice` to tell them apart. A move without places is a button.
Places lie as on the table, whoever is to move: the page turns the board. On the host, one position at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aleazero.core.game import Game

Board = dict[str, Any]
Move = dict[str, Any]  # from, to, choice: texts or None


class Face:
    """What is common: a drawing in letters, moves as buttons. Games with a board of their own say more."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def board(self, state: Any) -> Board:
        """What stands where."""
        return {"kind": "text", "text": self.game.notation.draw(state)}

    def drawn(self, state: Any) -> str:
        """What nature has drawn, where a position says so itself."""
        return ""

    def places(self, state: Any, action: int) -> Move:
        """Where a move goes."""
        return {"from": None, "to": None, "choice": None}

    def name(self, state: Any, action: int) -> str:
        """A move's name in a list of legal ones; quick to tell."""
        return self.game.notation.format_action(state, action)

    def can_win(self, state: Any, seat: int) -> bool:
        """Whether a seat could still win if the other one never moved again: it may not, on time, where it cannot."""
        return True


class TicTacToeFace(Face):
    """Nine squares, `a1` to `c3`."""

    def board(self, state: Any) -> Board:
        """Signs by square, from a3 along the rows."""
        return {"kind": "tictactoe", "cells": "".join("XO."[int(c)] for c in np.asarray(state.board))}

    def places(self, state: Any, action: int) -> Move:
        """The square."""
        return {"from": None, "to": self.name(state, action), "choice": None}


class ConnectFourFace(Face):
    """Seven columns, `1` to `7`."""

    def board(self, state: Any) -> Board:
        """Signs by row from the top."""
        rows = ["".join("XO."[int(c)] for c in row) for row in np.asarray(state.board)[::-1]]
        return {"kind": "connect_four", "rows": rows}

    def places(self, state: Any, action: int) -> Move:
        """The column."""
        return {"from": None, "to": str(int(action) + 1), "choice": None}


class QuoridorFace(Face):
    """Squares `a1` to `i9` and walls `a1h` to `h8v`."""

    def board(self, state: Any) -> Board:
        """Pawns, walls, and walls that are left."""
        pawns, left, walls, *_ = _quoridor(self.game.notation.format_state(state))
        return {"kind": "quoridor", "pawns": pawns, "walls": walls, "left": left}

    def places(self, state: Any, action: int) -> Move:
        """A square comes from the pawn's; a wall from nowhere."""
        name = self.name(state, action)
        pawn = _quoridor(self.game.notation.format_state(state))[0][int(state.to_play)]
        return {"from": pawn if len(name) == 2 else None, "to": name, "choice": None}


def _quoridor(text: str) -> tuple[list[str], list[int], list[str]]:
    """Pawns, walls left and walls of a position as the notation writes it."""
    one, two, left_one, left_two, walls, _ = text.split()
    return [one, two], [int(left_one), int(left_two)], [] if walls == "-" else walls.split(",")


class ChessFace(Face):
    """Squares `a1` to `h8`; promotions are choices."""

    def board(self, state: Any) -> Board:
        """Pieces from a1 on, as in FEN, and the king that is in check."""
        from aleazero.games.chess.fen import attacked, read, square_name

        here = read(state)
        king = here.pieces.index("Kk"[here.to_play])
        check = square_name(king) if attacked(here.pieces, king, by=1 - here.to_play) else None
        return {"kind": "chess", "pieces": here.pieces, "check": check}

    def places(self, state: Any, action: int) -> Move:
        """From square to square."""
        name = self.name(state, action)
        return {"from": name[:2], "to": name[2:4], "choice": name[4:] or None}

    def can_win(self, state: Any, seat: int) -> bool:
        """Not with the king alone."""
        from aleazero.games.chess.fen import read

        mine = [letter for letter in read(state).pieces if letter != "." and letter.isupper() == (seat == 0)]
        return len(mine) > 1

    def name(self, state: Any, action: int) -> str:
        """UCI: SAN asks the rules again for every move."""
        return self.game.notation.format_uci(state, action)  # type: ignore[attr-defined]


class BackgammonFace(Face):
    """Points `1` to `24` as seat 0 counts them, `bar0`, `bar1`, `off0` and `off1`."""

    def board(self, state: Any) -> Board:
        """Checkers by point, positive for seat 0; bars, borne off, pips; dice that are left."""
        from aleazero.games.backgammon.notation import read

        here = read(state)
        sides = (here.mine, here.theirs) if here.to_play == 0 else (here.theirs[::-1], here.mine[::-1])
        places = np.arange(26)
        dice = [d for d in here.dice if d] if here.dice[0] != here.dice[1] else [here.dice[0]] * here.left
        return {
            "kind": "backgammon",
            "points": (sides[0] - sides[1])[1:25].tolist(),
            "bar": [int(sides[0][25]), int(sides[1][0])],
            "off": [15 - int(side.sum()) for side in sides],
            "pips": [int((sides[0] * places).sum()), int((sides[1] * places[::-1]).sum())],
            "left": [int(d) for d in dice],
        }

    def drawn(self, state: Any) -> str:
        """The dice, larger first."""
        larger, smaller = sorted((int(die) for die in np.asarray(state.dice)), reverse=True)
        return f"{larger}{smaller}" if smaller else ""

    def places(self, state: Any, action: int) -> Move:
        """From point to point; a checker that two dice can take off has the die as choice."""
        from aleazero.games.backgammon.game import FACES, PASS

        if action == PASS:
            return {"from": None, "to": None, "choice": None}
        seat, source = int(state.to_play), int(action) // FACES + 1
        die = int(action) % FACES + 1
        target = max(source - die, 0)

        def place(number: int) -> str:
            if number in (0, 25):
                return f"off{seat}" if number == 0 else f"bar{seat}"
            return str(number if seat == 0 else 25 - number)

        return {"from": place(source), "to": place(target), "choice": str(die) if target == 0 else None}


FACES: dict[str, Callable[[Game], Face]] = {
    "backgammon": BackgammonFace,
    "chess": ChessFace,
    "connect_four": ConnectFourFace,
    "quoridor": QuoridorFace,
    "tictactoe": TicTacToeFace,
}


def face_of(game: Game) -> Face:
    """How a game is shown; in letters where it has no board of its own."""
    return FACES.get(game.spec.name, Face)(game)
