"""Stockfish as a program: real processes, real faults."""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import chess
import pytest

from aleazero.core.errors import ConfigError
from aleazero.engines import EngineError, stockfish
from aleazero.engines.stockfish import DEBIAN_PLACE, Stockfish, Strength

FENS = [
    chess.STARTING_FEN,
    "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4",  # Qxf7 mates
    "4k3/1P6/8/8/8/8/K5p1/7R b - - 0 1",
    "8/P7/8/8/8/8/8/k1K5 w - - 0 1",
]
needs_program = pytest.mark.skipif(not DEBIAN_PLACE.exists(), reason="Debian's stockfish is not installed")


@pytest.fixture(scope="module")
def engine() -> Iterator[Stockfish]:
    with Stockfish(Strength(nodes=100), processes=2) as made:
        yield made


def program(path: Path, text: str) -> str:
    """A script in place of the engine."""
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return str(path)


@needs_program
def test_moves_are_legal_and_the_same_each_time(engine: Stockfish) -> None:
    moves = engine.choose(FENS)
    for fen, move in zip(FENS, moves, strict=True):
        assert chess.Board(fen).is_legal(chess.Move.from_uci(move))
    assert moves[1] == "h5f7"
    assert moves[3] == "a7a8q"
    assert engine.choose(FENS[::-1]) == moves[::-1]  # neither the order nor the process matters
    assert engine.choose([]) == []
    assert engine.name.startswith("Stockfish")
    assert len(engine.processes) == 2


@needs_program
def test_lines_are_legal_ranked_and_say_their_chances() -> None:
    with Stockfish(Strength(nodes=2000)) as engine:
        found = engine.lines(FENS[0], 5)
        assert len({line.moves[0] for line in found}) == 5
        for line in found:
            board = chess.Board()
            for move in line.moves:
                board.push_uci(move)
            assert sum(line.chances) == pytest.approx(1)
        assert found[0].chances[0] - found[0].chances[2] >= found[-1].chances[0] - found[-1].chances[2]
        assert engine.lines(FENS[1], 3)[0].chances == (1, 0, 0)  # mates
        (only,) = engine.lines(FENS[1], 3, only="a2a3")
        assert only.moves[0] == "a2a3"
        assert len(engine.lines(FENS[0], 1)) == 1
        assert engine.choose([FENS[1]]) == ["h5f7"]


@needs_program
def test_threads_that_ask_at_once_get_their_own_answers() -> None:
    with Stockfish(Strength(nodes=300), timeout=5) as engine:
        alone = [engine.choose([fen])[0] for fen in FENS]
        lines = engine.lines(FENS[1], 3)
        with ThreadPoolExecutor(8) as pool:
            moves = pool.map(lambda fen: engine.choose([fen])[0], FENS * 8)
            others = [pool.submit(engine.lines, FENS[1], 3) for _ in range(8)]
            assert list(moves) == alone * 8
            assert all(other.result() == lines for other in others)
        assert len(engine.processes) == 1


@needs_program
def test_many_lines_at_a_great_depth_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stockfish, "MOST_NODES", 20_000)
    with Stockfish(Strength(depth=20)) as engine:
        began = time.monotonic()
        assert len(engine.lines(FENS[0], 50)) == 20
        assert time.monotonic() - began < 15


@needs_program
def test_it_ends_with_its_owner() -> None:
    with Stockfish(Strength(nodes=1), processes=2) as engine:
        engine.choose(FENS)
        running = engine.processes
    assert engine.processes == []
    for process in running:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
    other = Stockfish(Strength(nodes=1))
    other.choose(FENS[:1])
    (process,) = other.processes
    del other
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@needs_program
def test_killed_in_the_middle_it_says_so_and_starts_anew() -> None:
    with Stockfish(Strength(nodes=1)) as engine:
        engine.choose(FENS[:1])
        os.kill(engine.processes[0], signal.SIGKILL)
        time.sleep(0.1)
        with pytest.raises(EngineError, match=r"Stockfish .* was killed by SIGKILL when asked"):
            engine.choose(FENS[:1])
        assert engine.processes == []
        assert chess.Board().is_legal(chess.Move.from_uci(engine.choose(FENS[:1])[0]))


def test_absent() -> None:
    with pytest.raises(EngineError, match=r"Stockfish is not at /nowhere/stockfish: .* apt-get install stockfish"):
        Stockfish(Strength(nodes=1), program="/nowhere/stockfish")


def test_programs_that_are_none(tmp_path: Path) -> None:
    for name, script, words in (
        ("silent", "sleep 60\n", "did not answer within 0.3 s when asked 'uci'"),
        ("gone", "exit 3\n", "ended with status 3"),
        ("odd", "while read l; do echo uciok; echo readyok; echo bestmove '(none)'; done\n", "which is no move"),
    ):
        with (
            Stockfish(Strength(nodes=1), timeout=0.3, program=program(tmp_path / name, script)) as engine,
            pytest.raises(EngineError, match=words),
        ):
            engine.choose(FENS[:1])
        assert engine.processes == []
    script = "while read l; do echo uciok; echo readyok; echo bestmove e2e4; done\n"
    with (
        Stockfish(Strength(nodes=1), timeout=0.3, program=program(tmp_path / "curt", script)) as engine,
        pytest.raises(EngineError, match="said nothing of moves"),
    ):
        engine.lines(FENS[0], 2)


def test_strengths_are_checked() -> None:
    assert Strength(skill=0, depth=1).go == "go depth 1"
    assert Strength(nodes=5, depth=3).go == "go depth 3 nodes 5"
    with pytest.raises(ConfigError, match=r"skill is 21.*depth is 0"):
        Strength(skill=21, depth=0)
    with pytest.raises(ConfigError, match="neither depth nor nodes"):
        Strength()
