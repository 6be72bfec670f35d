"""Chess beside python-chess, which is the referee here: batches of games, and every node of a tree counted."""

from __future__ import annotations

import collections
import functools
from typing import Any

import chess
import jax
import jax.numpy as jnp
import numpy as np

from aleazero.games.chess.actions import ACTION_OF, MOVES
from aleazero.games.chess.board import CODES
from aleazero.games.chess.game import Chess

GAME = Chess()
STARTPOS = chess.STARTING_FEN
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
# Castling, pins, captures in passing (also ones that would uncover a check), promotions, checks of every kind.
TACTICAL = (
    KIWIPETE,
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
    "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
    "1r2k1r1/8/8/8/8/8/8/R3K2R b KQ - 0 1",
    "8/8/8/K1pP3q/8/8/8/4k3 w - c6 0 2",
    "8/5bk1/8/2Pp4/8/1K6/8/8 w - d6 0 1",
    "8/8/1k6/2b5/2pP4/8/5K2/8 b - d3 0 1",
    "8/8/8/1k6/3Pp3/8/8/4KQ2 b - d3 0 1",
    "4k3/1P6/8/8/8/8/K5p1/7R b - - 0 1",
    "3k4/3p4/8/K1P4r/8/8/8/8 b - - 0 1",
    "q3k2r/8/8/8/3N4/8/8/R3K2Q b k - 5 5",
)
# Endings, close to every way a game ends.
ENDINGS = (
    "8/8/4k3/8/8/3QK3/8/8 w - - 88 100",
    "8/8/4k3/8/2b5/3NK3/8/8 b - - 0 100",
    "8/8/4k3/8/2b1B3/4K3/6P1/8 w - - 10 60",
    "7k/8/6K1/8/8/8/8/R7 w - - 0 1",
    "k7/8/1K6/8/8/8/7q/8 w - - 0 1",
    "8/1P4k1/8/8/8/8/1p4K1/8 w - - 0 1",
    "4k3/8/8/8/8/8/4n3/4K2N w - - 95 90",
    "8/8/8/3k4/8/3K4/3R4/3r4 w - - 0 1",
    "7k/8/5KQ1/8/8/8/8/8 w - - 0 1",
    "8/8/8/8/8/2k1q3/8/K7 b - - 0 1",
    "k7/8/KQ6/8/8/8/8/8 w - - 0 1",
    "8/8/8/8/8/kq6/8/K7 b - - 0 1",
)
# Counts of moves that are known. python-chess's package brings no perft files (they are in its repository alone), so
# these are positions that engines are commonly tested with, as in the Chess Programming Wiki's "Perft Results": the
# start, its positions 2 (Kiwipete) to 6, one of promotions and one of castling; and the position with the most moves.
# The test counts the first levels with python-chess too.
PERFT = {
    STARTPOS: (20, 400, 8_902, 197_281),
    KIWIPETE: (48, 2_039, 97_862),
    TACTICAL[1]: (14, 191, 2_812, 43_238),
    TACTICAL[2]: (6, 264, 9_467),
    TACTICAL[3]: (44, 1_486, 62_379),
    TACTICAL[4]: (46, 2_079, 89_890),
    TACTICAL[5]: (24, 496, 9_483, 182_838),
    TACTICAL[6]: (26, 568, 13_744),
    # Most moves of any position.
    "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1": (218, 99),
}


@functools.cache
def batched(name: str) -> Any:
    return jax.jit(jax.vmap(getattr(GAME, name)))


@functools.cache
def single(name: str) -> Any:
    return jax.jit(getattr(GAME, name))


def parse(text: str) -> Any:
    return GAME.notation.parse_state(text)


def stacked(states: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *states)


def lane(states: Any, number: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[number], states)


def starts(fens: list[str]) -> Any:
    """A batch of states from FENs, each read once."""
    read = {fen: jax.tree.map(np.asarray, parse(fen)) for fen in set(fens)}
    return stacked([read[fen] for fen in fens])


_PROMOTIONS = {None: 0, chess.QUEEN: 0} | {
    kind: CODES[letter] for letter, kind in (("n", chess.KNIGHT), ("b", chess.BISHOP), ("r", chess.ROOK))
}


def action_of(board: chess.Board, move: chess.Move) -> int:
    """Our number of python-chess's move."""
    turn = 0 if board.turn else 56
    return ACTION_OF[move.from_square ^ turn, move.to_square ^ turn, _PROMOTIONS[move.promotion]]


def move_of(board: chess.Board, action: int) -> chess.Move:
    """python-chess's move of our number."""
    source, target, kind = MOVES[action]
    turn = 0 if board.turn else 56
    source, target = source ^ turn, target ^ turn
    promotion = next((k for k, code in _PROMOTIONS.items() if k and kind and code == kind), None)
    if not kind and board.piece_type_at(source) == chess.PAWN and target // 8 in (0, 7):
        promotion = chess.QUEEN
    return chess.Move(source, target, promotion)


class Referee:
    """One game by python-chess, with every rule that ends it."""

    def __init__(self, fen: str) -> None:
        self.board = chess.Board(fen)
        self.times = collections.Counter([self.key()])

    def key(self) -> Any:
        return self.board._transposition_key()

    def legal(self) -> list[int]:
        return sorted(action_of(self.board, move) for move in self.board.legal_moves)

    def push(self, action: int) -> None:
        move = move_of(self.board, action)
        assert self.board.is_legal(move)
        self.board.push(move)
        self.times[self.key()] += 1

    def end(self) -> tuple[str, list[float]] | None:
        """Why the game is over, and the points; None while it goes on."""
        board = self.board
        if board.is_checkmate():
            return "mate", [-1.0, 1.0] if board.turn else [1.0, -1.0]
        ends = {
            "stalemate": board.is_stalemate(),
            "material": board.is_insufficient_material(),
            "fifty": board.halfmove_clock >= 100,
            "threefold": self.times[self.key()] >= 3,
        }
        why = next((name for name, ended in ends.items() if ended), None)
        if why == "threefold":
            assert board.is_repetition(3)
        return (why, [0.0, 0.0]) if why else None


def assert_games_agree(fens: list[str], plies: int, seed: int, back: float = 0.0) -> collections.Counter[str]:
    """Plays a game from each FEN at random and compares everything at every ply; how often games ended, by reason.

    With probability `back` a piece goes back where it came from, if it can: so positions come again.
    """
    draw, states = np.random.default_rng(seed), starts(fens)
    games, reasons = [Referee(fen) for fen in fens], collections.Counter[str]()
    live, before = set(range(len(fens))), np.zeros((2, len(fens)), int)
    for ply in range(plies):
        lists = np.asarray(batched("legal_list")(states))
        host = jax.tree.map(np.asarray, states)
        actions = np.zeros(len(fens), np.int32)
        for number in sorted(live):
            game, where = games[number], f"game {number}, ply {ply}: {games[number].board.fen()}"
            legal = [int(action) for action in lists[number] if action >= 0]
            over = game.end()
            assert bool(host.terminated[number]) == (over is not None), f"{where} {over}"
            assert int(host.repeats[number]) == min(game.times[game.key()] - 1, 2), where
            assert int(host.clock[number]) == game.board.halfmove_clock, where
            if over:
                reasons[over[0]] += 1
                assert host.returns[number].tolist() == over[1], where
                assert legal == [], where
                live.remove(number)
                continue
            assert len(legal) == len(set(legal)), where
            assert sorted(legal) == game.legal(), where
            source, target, _ = MOVES[before[ply % 2, number]]
            undo = ACTION_OF[target, source, 0]
            actions[number] = undo if undo in legal and draw.random() < back else draw.choice(legal)
            game.push(int(actions[number]))
        if not live:
            break
        before[ply % 2] = actions
        states = batched("apply_action")(states, jnp.asarray(actions))
    return reasons


@functools.cache
def _rows() -> tuple[Any, Any]:
    def listed(row: Any) -> Any:
        return GAME.legal_list(GAME.unpack(row))

    def moved(row: Any, action: Any) -> Any:
        return GAME.pack(GAME.apply_action(GAME.unpack(row), action))

    return jax.jit(jax.vmap(listed)), jax.jit(jax.vmap(moved))


def perft(fen: str, depth: int) -> list[int]:
    """How many ways there are to move 1 to `depth` times, level by level."""
    listed, moved = _rows()
    rows, found = np.asarray(single("pack")(parse(fen)))[None], []
    for level in range(depth):
        legal = in_chunks(listed, rows)
        lanes, places = np.nonzero(legal >= 0)
        found.append(len(lanes))
        if level + 1 < depth:
            rows = in_chunks(moved, rows[lanes], legal[lanes, places].astype(np.int32))
    return found


def in_chunks(function: Any, *arrays: np.ndarray, size: int = 2048) -> np.ndarray:
    """A compiled function of batches of one size, over arrays of any length."""
    parts = []
    for at in range(0, len(arrays[0]), size):
        chunk = [array[at : at + size] for array in arrays]
        number = len(chunk[0])
        chunk = [np.concatenate([part, np.repeat(part[:1], size - number, 0)]) for part in chunk]
        parts.append(np.asarray(function(*chunk))[:number])
    return np.concatenate(parts)
