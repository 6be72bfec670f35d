"""The UCI engine: spoken to line by line, and played through its program by python-chess with clocks."""

from __future__ import annotations

import contextlib
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import chess
import chess.engine
import jax
import pytest

from aleazero.bridges.uci import UciEngine
from aleazero.games.chess.game import Chess
from aleazero.games.registry import make_game

SIMULATIONS = 512
MATE_IN_ONE = "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"
STOCKFISH = "/usr/games/stockfish"


class Table:
    """An engine and all that it has said."""

    def __init__(self, game: Chess, weights: str = "untrained", simulations: int = SIMULATIONS) -> None:
        self.said: list[str] = []
        self._more = threading.Condition()
        self.engine = UciEngine(game, self._hear, weights=weights, simulations=simulations)

    def _hear(self, line: str) -> None:
        with self._more:
            self.said.append(line)
            self._more.notify_all()

    def send(self, *lines: str) -> list[str]:
        """What is said while these lines are handled."""
        first = len(self.said)
        for line in lines:
            assert self.engine.handle(line)
        return self.said[first:]

    def ask(self, *lines: str, until: str = "bestmove", seconds: float = 60.0) -> list[str]:
        """What is said up to a line that begins so."""
        first, end = len(self.said), time.monotonic() + seconds
        for line in lines:
            assert self.engine.handle(line)
        with self._more:
            while not any(line.startswith(until) for line in self.said[first:]):
                assert self._more.wait(end - time.monotonic()), self.said[first:]
            return self.said[first:]


@pytest.fixture(scope="module")
def compiled_programs(compiled: Path) -> Iterator[Path]:
    """What is compiled here, quickly, is kept, so that the program started below need not do it again."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield compiled
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="module")
def table(compiled_programs: Path) -> Iterator[Table]:
    game = make_game("chess")
    assert isinstance(game, Chess)
    made = Table(game)
    assert made.send("isready") == ["readyok"]
    yield made
    made.engine.close()


@pytest.fixture(autouse=True)
def fresh(table: Table) -> None:
    table.engine.close()
    table.send("ucinewgame", "position startpos", "setoption name MultiPV value 1")
    table.send("setoption name UCI_LimitStrength value false", "setoption name Move Overhead value 50")


def test_it_introduces_itself(table: Table) -> None:
    said = table.send("uci")
    assert said[0].startswith("id name AleaZero")
    assert said[-1] == "uciok"
    names = [line.split(" type ")[0].removeprefix("option name ") for line in said if line.startswith("option")]
    assert names == ["Threads", "Weights", "Simulations", "MultiPV", "Move Overhead", "UCI_LimitStrength", "UCI_Elo"]


def test_a_search_of_so_many_nodes(table: Table) -> None:
    *infos, best = table.ask("position startpos moves e2e4 e7e5", "go nodes 40")
    board = chess.Board()
    for text in ("e2e4", "e7e5"):
        board.push_uci(text)
    words = infos[-1].split()
    assert words[words.index("nodes") + 1] == "40"
    assert {"score", "nps", "time", "depth", "seldepth", "pv"} <= set(words)
    line = words[words.index("pv") + 1 :]
    assert best == f"bestmove {line[0]}"
    assert len(line) == int(words[words.index("depth") + 1])
    for text in line:
        assert board.is_legal(chess.Move.from_uci(text))
        board.push_uci(text)


def test_mates_are_found_counted_and_played(table: Table) -> None:
    *infos, best = table.ask(f"position fen {MATE_IN_ONE}", "go")
    assert best == "bestmove h5f7"
    assert "score mate 1 " in infos[-1]
    # Black can only go to h7 and back into the next check: mated whatever it does, on the second move at the latest.
    *infos, best = table.ask("position fen 7k/8/5KQ1/8/8/8/8/8 w - - 0 1", "go")
    assert best in ("bestmove g6g7", "bestmove g6e8", "bestmove g6h5", "bestmove g6h6")
    assert "score mate 1 " in infos[-1]
    # The side that is to be mated sees it with the other sign.
    *infos, _ = table.ask("position fen 7k/8/5KQ1/8/8/8/8/8 b - - 0 1", "go")
    assert "bestmove (none)" in table.said[-1]
    assert infos[-1] == "info depth 0 score cp 0"  # stalemate
    *infos, _ = table.ask("position fen 6k1/8/5K2/8/8/8/8/7Q b - - 0 1", "go nodes 128")
    assert "score mate -" in infos[-1]


def test_several_lines_and_chosen_moves(table: Table) -> None:
    *infos, best = table.ask("setoption name MultiPV value 3", "go nodes 60")
    last = infos[-3:]
    assert [line.split("multipv ")[1][0] for line in last] == ["1", "2", "3"]
    firsts = [line.split(" pv ")[1].split()[0] for line in last]
    assert len(set(firsts)) == 3
    assert best == f"bestmove {firsts[0]}"
    *_, best = table.ask("go nodes 30 searchmoves a2a3 h2h4")
    assert best in ("bestmove a2a3", "bestmove h2h4")
    said = table.ask("go nodes 30 searchmoves e2e5 zz a2a3")
    assert said[-1] == "bestmove a2a3"
    assert sum("searchmoves" in line for line in said) == 2


def test_stop_and_infinite(table: Table) -> None:
    first = len(table.said)
    table.send("go infinite nodes 128")
    time.sleep(1.5)  # longer than so many simulations take: it waits to be told
    assert not any(line.startswith("bestmove") for line in table.said[first:])
    assert table.send("isready") == ["readyok"]  # while it thinks
    said = table.send("position startpos moves e2e4", "go", "setoption name MultiPV value 2")
    assert sum("ignored while a search runs" in line for line in said) == 3
    assert table.ask("stop")[-1].startswith("bestmove")
    # A program may send the next position before the move has come.
    table.send("go infinite")
    said = table.ask("stop", "position startpos moves e2e4", "go nodes 1")
    assert said[-1].startswith("bestmove")
    assert not any("error" in line for line in said)


def test_the_next_command_may_follow_a_move_at_once(table: Table) -> None:
    said: list[str] = []

    def hear(line: str) -> None:
        """Answers from within, while the thread that says the move still runs."""
        said.append(line)
        if line.startswith("bestmove") and len(said) < 400:
            answers.append(threading.Thread(target=table.engine.handle, args=("position startpos moves e2e4",)))
            answers[-1].start()
            time.sleep(0.01)

    answers: list[threading.Thread] = []
    before, table.engine._say_line = table.engine._say_line, hear
    try:
        for _ in range(5):
            table.engine.handle("position startpos")
            table.engine.handle("go nodes 1")
            table.engine._wait()
            answers[-1].join()
            assert table.engine._moves == ["e2e4"]
    finally:
        table.engine._say_line = before
    assert not any("error" in line for line in said)


def nodes(line: str) -> int:
    words = line.split()
    return int(words[words.index("nodes") + 1])


def test_time_is_kept(table: Table) -> None:
    """There is room for more simulations than can be made in the time: nothing but the clock ends these searches."""
    table.send("setoption name Move Overhead value 0")
    for limit in ("movetime 150", "wtime 0 btime 0", "wtime 60 btime 60", "wtime -5 btime 5"):
        *infos, best = table.ask("ucinewgame", f"go {limit}")
        assert best != "bestmove (none)"
        assert nodes(infos[-1]) < SIMULATIONS


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is all there is")
def test_threads_are_as_many_as_are_wanted(table: Table) -> None:
    def cores() -> set[int]:
        found = set[int]()
        for task in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):  # it has ended since
                found |= os.sched_getaffinity(int(task))
        return found

    every = os.sched_getaffinity(0)
    table.send("setoption name Threads value 1")
    try:
        table.ask("go nodes 8")
        assert len(cores()) == 1
    finally:
        table.send(f"setoption name Threads value {len(every)}")
    assert cores() == every


def test_limited_strength_looks_at_less(table: Table) -> None:
    table.send("setoption name UCI_LimitStrength value true", "setoption name UCI_Elo value 1760")
    assert " nodes 32 " in table.ask("go")[-2]  # a sixteenth of 512
    table.send("setoption name UCI_Elo value 800")
    assert " nodes 0 " in table.ask("go")[-2]


def test_the_tree_is_kept_along_the_game(table: Table) -> None:
    first = table.ask("position startpos", "go nodes 128")
    line = first[-2].split(" pv ")[1].split()
    table.ask(f"position startpos moves {line[0]} {line[1]}", "go nodes 1")
    look = table.engine._thinker.look()  # type: ignore[union-attr]
    assert sum(one.visits for one in look.lines(64)) > 2  # of one simulation, and those that are kept
    table.send("ucinewgame")
    table.ask("go nodes 1")
    look = table.engine._thinker.look()  # type: ignore[union-attr]
    assert sum(one.visits for one in look.lines(64)) == 1


def test_games_go_on_after_a_draw_that_nobody_claimed(table: Table) -> None:
    shuffle = "g1f3 g8f6 f3g1 f6g8 " * 3
    assert table.ask(f"position startpos moves {shuffle}", "go nodes 8")[-1] != "bestmove (none)"
    said = table.ask(f"position startpos moves {shuffle} e2e4", "go nodes 8")  # and beyond it
    assert not any("error" in line for line in said)
    fifty = "position fen 4k3/8/8/8/8/8/4R3/4K3 b - - 100 90"
    assert chess.Board(fifty.removeprefix("position fen ")).is_legal(
        chess.Move.from_uci(table.ask(fifty, "go nodes 8")[-1].split()[1])
    )
    bare = "position fen 4k3/8/8/8/8/8/8/4K3 w - - 0 1 moves e1e2 e8e7"
    said = table.ask(bare, "go nodes 8")
    assert said[-1].startswith("bestmove e2")
    assert table.ask("position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "go")[-1] == "bestmove (none)"


@pytest.mark.parametrize(
    "line",
    [
        "",
        "   ",
        "nonsense",
        "position",
        "position fen",
        "position fen 8/8/8/8/8/8/8/8 w - - 0 1",
        "position fen rnbqkbnr/pppppppp/8/8/8/P7/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "position fen 4k3/4R3/8/8/8/8/8/4K3 w - - 0 1",
        "position startpos moves e2e5",
        "position startpos moves e2e4 e7e5 e1e3",
        "position startpos moves e7e8q e2e4",
        "position startpos moves e2e4q",
        "position startpos moves xyzzy",
        "setoption",
        "setoption name",
        "setoption name Hash value 12",
        "setoption name Simulations value -1",
        "setoption name Simulations value 1e3",
        "setoption name Weights value /nowhere/at/all",
        "setoption name Weights value run:nobody",
        "debug maybe",
        "stop",
        "ponderhit",
        "\N{SNOWMAN} \0 \x1b[2J",
        "x" * 100_000,
    ],
)
def test_the_loop_outlives_every_line(table: Table, line: str) -> None:
    table.send("position startpos moves d2d4")
    said = table.send(line)
    assert all(one.startswith("info string error: ") and "\n" not in one for one in said)
    if line.startswith(("position", "setoption", "nonsense", "x")):
        assert len(said) == 1
    assert table.engine.options.simulations == SIMULATIONS
    assert table.send("isready") == ["readyok"]
    move = table.ask("go nodes 4")[-1].split()[1]
    board = chess.Board()
    board.push_uci("d2d4")
    assert board.is_legal(chess.Move.from_uci(move))  # the position before is still there


def test_random_bytes_do_not_end_it(table: Table) -> None:
    lots = random.Random(7)
    words = b"go position startpos moves e2e4 stop setoption name value nodes 3".split()
    lines = [b" ".join(lots.choices([*words, lots.randbytes(5)], k=lots.randint(1, 6))) + b"\n" for _ in range(60)]
    lines += [b"stop\n", b"isready\n"]
    first = len(table.said)
    table.engine.run(lines)
    said = table.said[first:]
    assert "readyok" in said
    known = ("go", "position", "stop", "setoption")
    commands = [next((word for word in line.decode("utf-8", "replace").split() if word in known), "") for line in lines]
    ignored = sum("go is ignored" in line for line in said)
    answers = sum(line.startswith("bestmove") for line in said)
    assert answers == commands.count("go") - ignored, "one answer to each search"
    assert answers >= 3


def test_counts_of_other_programs_are_taken(table: Table) -> None:
    board = chess.Board("4k3/8/8/8/8/8/4R3/4K3 b - - 0 1")
    for counts in ("130 90", "0 0", "5 70000"):
        said = table.ask(f"position fen 4k3/8/8/8/8/8/4R3/4K3 b - - {counts}", "go nodes 4")
        assert not any("error" in line for line in said)
        assert board.is_legal(chess.Move.from_uci(said[-1].split()[1]))


def test_a_move_in_the_position_before_a_refused_one_says_so(table: Table) -> None:
    said = table.ask("position fen 8/8/8/8/8/8/8/8 w - - 0 1", "go nodes 4")
    assert sum("refused; this is a move in the one before" in line for line in said) == 1
    assert not any("refused" in line for line in table.ask("position startpos", "go nodes 4"))


def test_the_end_of_the_input_still_brings_a_move(table: Table) -> None:
    for last in ([], [b"quit\n"]):
        first = len(table.said)
        table.engine.run([b"position startpos\n", b"go infinite\n", *last])
        assert table.said[first:][-1].startswith("bestmove ")
        assert sum(line.startswith("bestmove") for line in table.said[first:]) == 1


def test_a_search_that_fails_still_brings_a_move(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(size: int) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(table.engine._make_thinker(), "grow", fail)
    said = table.ask("go nodes 10")
    assert "out of memory" in said[-2]
    assert chess.Board().is_legal(chess.Move.from_uci(said[-1].split()[1]))
    monkeypatch.undo()
    assert " nodes 10 " in table.ask("go nodes 10")[-2]  # and the next one goes well


def test_without_a_network_it_says_so(table: Table) -> None:
    alone = Table(make_game("chess"), weights="")  # type: ignore[arg-type]
    ready = alone.send("isready")
    assert ready[-1] == "readyok"
    assert "there is no network: setoption name Weights" in ready[0]
    said = alone.ask("go nodes 5")
    assert said[-1] == "bestmove (none)"
    assert "there is no network" in said[-2]


# ---- through its program


def start(
    compiled_programs: Path, simulations: int = SIMULATIONS, weights: str = "untrained"
) -> chess.engine.SimpleEngine:
    command = [sys.executable, "-m", "aleazero.cli.main", "uci", "--device", "cpu", "--weights", weights]
    as_here = {"JAX_COMPILATION_CACHE_DIR": str(compiled_programs), "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    environment = {**os.environ, **as_here}
    return chess.engine.SimpleEngine.popen_uci(
        [*command, "--simulations", str(simulations)], timeout=120, env=environment
    )


def play_with_clock(
    engine: chess.engine.SimpleEngine, seat: bool, other: chess.engine.SimpleEngine | None, seed: int, clock: float
) -> chess.Board:
    """One game; the engine's flag must not fall, and python-chess refuses a move that is not legal."""
    board, gain, lots = chess.Board(), 0.05, random.Random(seed)
    for _ in range(6):
        board.push(lots.choice(list(board.legal_moves)))
    left, game = clock, object()
    while not board.is_game_over(claim_draw=True):
        if board.turn != seat:
            moves = list(board.legal_moves)
            move = other.play(board, chess.engine.Limit(nodes=1)).move if other else lots.choice(moves)
            assert move is not None
            board.push(move)
            continue
        limit = chess.engine.Limit(white_clock=left, black_clock=left, white_inc=gain, black_inc=gain)
        if not board.move_stack[7:]:
            engine.ping()  # all is compiled before the clock runs
        began = time.monotonic()
        found = engine.play(board, limit, game=game)
        left += gain - (time.monotonic() - began)
        assert left > 0, f"lost on time at move {board.fullmove_number}"
        assert found.move is not None
        board.push(found.move)
    return board


def test_python_chess_plays_it_with_clocks(table: Table, compiled_programs: Path) -> None:
    engine = start(compiled_programs)
    try:
        assert engine.id["name"].startswith("AleaZero")
        info = engine.analyse(chess.Board(MATE_IN_ONE), chess.engine.Limit(nodes=100), multipv=2)
        assert info[0]["score"].white() == chess.engine.Mate(1)
        assert play_with_clock(engine, chess.WHITE, None, seed=1, clock=8.0).is_game_over(claim_draw=True)
    finally:
        engine.quit()
    assert engine.returncode.result(10) == 0


@pytest.mark.long  # python -m pytest tests/bridges/test_uci.py -m long
@pytest.mark.skipif(not Path(STOCKFISH).exists(), reason="Debian's stockfish is not installed")
def test_twenty_games_against_stockfish(compiled_programs: Path) -> None:
    engine, other = start(compiled_programs, weights="bundled"), chess.engine.SimpleEngine.popen_uci(STOCKFISH)
    try:
        for number in range(20):
            board = play_with_clock(engine, number % 2 == 0, other, seed=number // 2, clock=20.0)
            print(number + 1, board.result(claim_draw=True), board.fullmove_number, "moves", flush=True)
    finally:
        engine.quit()
        other.quit()
