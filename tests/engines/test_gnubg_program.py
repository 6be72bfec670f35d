"""Debian's GNU Backgammon as a child: agreement with gnubg-nn, strictness, and every way it can go away."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from aleazero.engines import EngineError
from aleazero.engines import gnubg_program as module
from aleazero.engines.gnubg import Gnubg, candidates
from aleazero.engines.gnubg_program import GnubgProgram, _after, _fibs
from tests.engines.test_gnubg import IMPOSSIBLE, NO_ENTRY, ONE_PLAY, START, is_among, played, position, side, wander

ROOT = Path(__file__).parents[2]
MISSING = importlib.util.find_spec("gnubg_nn") is None or not (shutil.which("gnubg") or module.DEBIAN_PLACE.exists())
engines = pytest.mark.skipif(MISSING, reason="Debian's gnubg or gnubg-nn is not installed")
THREE_ONE = (START[None], np.array([[3, 1]]))


@pytest.fixture(scope="module")
def referee() -> Generator[GnubgProgram, None, None]:
    with GnubgProgram(candidates, 0) as engine:
        yield engine


def is_gone(pid: int) -> bool:
    """Neither running nor a zombie."""
    return not Path(f"/proc/{pid}").exists()


def comes_true(test: Callable[[], bool]) -> bool:
    end = time.monotonic() + 60
    while time.monotonic() < end and not test():
        time.sleep(0.02)
    return test()


def children() -> set[str]:
    return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[None, None, None]:
    """No process, zombie or not, and no folder stays behind."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    before = children()
    yield
    assert children() == before
    assert not list(place.iterdir())


# ---- answers


@engines
def test_threads_that_ask_at_once_get_their_own_answers(referee: GnubgProgram) -> None:
    boards = [START, ONE_PLAY, NO_ENTRY]
    alone = [referee.probabilities(board[None]) for board in boards]
    with ThreadPoolExecutor(6) as pool:
        found = pool.map(lambda board: referee.probabilities(board[None]), boards * 10)
        np.testing.assert_array_equal(np.array(list(found)), np.array(alone * 10))


@engines
def test_both_engines_agree_on_0_ply(referee: GnubgProgram) -> None:
    boards, dice = wander(60, seed=20)
    chosen = referee.choose(boards, dice)  # the plays are matched with gnubg-nn's inside
    same = (chosen == Gnubg(0).choose(boards, dice)).all((1, 2))
    assert same.mean() >= 0.9
    values = [Gnubg().after_equities(after) for after in (Gnubg(0).choose(boards, dice), chosen)]
    assert (values[0] - values[1]).max() < 0.02
    assert np.abs(referee.equities(boards) - Gnubg().equities(boards)).max() < 0.05
    assert np.abs(referee.probabilities(boards) - Gnubg().probabilities(boards)).mean() < 0.003


@engines
@pytest.mark.parametrize(("ply", "number"), [(1, 25), (2, 4)])
def test_both_engines_mean_the_same_by_a_ply(ply: int, number: int) -> None:
    boards, dice = wander(number, seed=21)
    with GnubgProgram(candidates, ply) as referee:
        values = referee.equities(boards)
        chosen = referee.choose(boards, dice)
    gaps = [np.abs(values - Gnubg().equities(boards, other)).mean() for other in (0, 1, 2)]
    assert np.argmin(gaps) == ply
    assert gaps[ply] < 0.005
    best = Gnubg(ply).choose(boards, dice)
    assert (chosen == best).all((1, 2)).mean() >= 0.75
    assert (Gnubg(ply).after_equities(best) - Gnubg(ply).after_equities(chosen)).max() < 0.03


@engines
def test_every_kind_of_move_is_understood(referee: GnubgProgram) -> None:
    wins = position(side(p1=15), side(p1=1, p2=1))
    hits = position(side(p3=1, p6=5, p8=3, p13=4, p24=2), side(p6=5, p8=3, p13=5, bar=2))
    boards = np.array([NO_ENTRY, ONE_PLAY, wins, hits, START])
    after = referee.choose(boards, np.array([[3, 1], [5, 3], [1, 2], [6, 3], [3, 1]]))
    expected = [NO_ENTRY, played(ONE_PLAY, (25, 22)), played(wins, (1, 0), (2, 0)), played(hits, (25, 22))]
    assert np.array_equal(after, np.array([*expected, played(START, (8, 5), (6, 5))]))
    assert after[3, 0, 24] == 1  # the blot it hit


@engines
def test_values_after_a_play(referee: GnubgProgram) -> None:
    won = position(side(p1=14, bar=1), side())
    lopsided = position(side(p1=1), side(p6=15))
    value = referee.after_equities(np.array([won, START, lopsided]))
    assert value[0] == 3.0
    assert value[1] == -referee.equities(START[None])[0]
    assert value[2] == -2.0  # the opponent, on roll, bears off its last checker and wins a gammon
    assert referee.equities(lopsided[None])[0] == pytest.approx(-1 - 19 / 36, abs=1e-4)
    assert referee.equities(START[None][:0]).shape == (0,)
    assert referee.choose(START[None][:0], np.zeros((0, 2), int)).shape == (0, 2, 25)


@engines
def test_the_users_home_does_not_matter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    with GnubgProgram(candidates, 0) as referee:
        assert np.array_equal(referee.choose(*THREE_ONE)[0], played(START, (8, 5), (6, 5)))
    assert not list(tmp_path.iterdir())


def test_boards_as_fibs_writes_them() -> None:
    board = position(side(p1=2, p7=3, bar=1), side(p6=4, p13=5, bar=2))
    fields = _fibs(board, np.array([6, 2])).split(":")
    places = [int(text) for text in fields[6:32]]
    assert places == [-1] + [0] * 5 + [4] + [0] * 6 + [5] + [0] * 4 + [-3] + [0] * 5 + [-2, 2]
    assert fields[:6] == ["board", "mover", "opponent", "0", "0", "0"]
    assert fields[32:35] == ["1", "6", "2"]
    assert fields[45:49] == ["4", "9", "2", "1"]  # borne off, on the bar
    assert len(fields) == 53


def test_what_is_no_move_is_not_guessed_at() -> None:
    for answer, steps in (("", []), ("8/5 6/5 ", [(8, 5), (6, 5)])):
        after = _after(START, answer)
        assert after is not None
        assert np.array_equal(after, played(START, *steps))
    for answer in ("beaver", "Error: syntax error", "8/5 6", "26/20", "5/8", "8/8", "0/3", "bar/22", "8/5/3", "8-5"):
        assert _after(START, answer) is None


# ---- strictness


@engines
def test_an_answer_that_is_no_legal_play_fails_and_says_why() -> None:
    with GnubgProgram(lambda board, dice: candidates(board, dice)[:0], 0) as referee:
        with pytest.raises(EngineError, match=r"'8/5 6/5 ', which leaves .* which none of 0 plays does.*dice \[3, 1\]"):
            referee.choose(*THREE_ONE)
        referee.equities(START[None])  # it still answers


@engines
def test_bad_positions_are_refused_before_they_are_sent(referee: GnubgProgram) -> None:
    boards = np.array(list(IMPOSSIBLE.values()))
    with pytest.raises(EngineError) as error:
        referee.choose(boards, np.full((len(boards), 2), 7))
    assert all(text in str(error.value) for text in list(IMPOSSIBLE)[:6])
    with pytest.raises(EngineError, match="the mover has 16 checkers"):
        referee.equities(boards)
    assert is_among(referee.choose(*THREE_ONE)[0], candidates(START, np.array([3, 1])))


def test_ply_out_of_range() -> None:
    with pytest.raises(EngineError, match="ply is 3; it must be 0 to 2"):
        GnubgProgram(candidates, 3)


# ---- ways to go away


@engines
@pytest.mark.usefixtures("nothing_left")
def test_killed_in_the_middle_is_an_error_that_says_so() -> None:
    with GnubgProgram(candidates, 0, timeout=60) as referee:
        referee.choose(*THREE_ONE)
        assert referee.process is not None
        pid = referee.process.pid
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(EngineError, match=rf"process {pid}\) was killed by SIGKILL when asked 'board:mover"):
            referee.choose(*THREE_ONE)
        assert is_gone(pid)
        with pytest.raises(EngineError, match="not running"):
            referee.equities(START[None])


@engines
@pytest.mark.usefixtures("nothing_left")
def test_a_program_that_hangs_is_given_up() -> None:
    with GnubgProgram(candidates, 0, timeout=2.0) as referee:
        assert referee.process is not None
        os.kill(referee.process.pid, signal.SIGSTOP)
        begun = time.monotonic()
        with pytest.raises(EngineError, match=r"did not answer within 2 s when asked 'evaluation"):
            referee.equities(START[None])
        assert time.monotonic() - begun < 6


@engines
@pytest.mark.usefixtures("nothing_left")
def test_an_interrupted_question_is_never_answered_later() -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with GnubgProgram(candidates, 0) as referee:
            assert referee.process is not None
            os.kill(referee.process.pid, signal.SIGSTOP)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                referee.equities(START[None])
            with pytest.raises(EngineError, match="not running"):
                referee.equities(START[None, ::-1])
    finally:
        signal.signal(signal.SIGALRM, before)


@engines
@pytest.mark.usefixtures("nothing_left")
def test_it_ends_with_the_block_and_can_be_started_anew() -> None:
    engine = GnubgProgram(candidates, 0)
    with pytest.raises(EngineError, match="not running"):
        engine.choose(*THREE_ONE)
    pids = []
    for _ in range(2):
        with engine as referee, contextlib.suppress(ZeroDivisionError):
            assert referee.process is not None
            pids.append(referee.process.pid)
            referee.choose(*THREE_ONE)
            raise ZeroDivisionError
    assert len(set(pids)) == 2
    assert all(is_gone(pid) for pid in pids)


@engines
@pytest.mark.usefixtures("nothing_left")
def test_it_ends_when_nobody_holds_it_any_more() -> None:
    engine = GnubgProgram(candidates, 0).__enter__()
    assert engine.process is not None
    pid = engine.process.pid
    assert not is_gone(pid)
    del engine
    assert is_gone(pid)


@engines
def test_it_does_not_outlive_us(tmp_path: Path) -> None:
    program = (
        "import os, signal\n"
        "from aleazero.engines.gnubg_program import GnubgProgram\n"
        "engine = GnubgProgram(lambda board, dice: board[None], 0).__enter__()\n"
        "print(engine.process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert comes_true(lambda: is_gone(int(done.stdout)))
    assert comes_true(lambda: not list(tmp_path.iterdir()))


def test_not_installed_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module, "DEBIAN_PLACE", tmp_path / "gnubg")
    with pytest.raises(EngineError, match=r"not at .*gnubg: on Debian and Ubuntu, apt-get install gnubg"):
        GnubgProgram(candidates).__enter__()


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("#!/bin/sh\nexec sleep 60", r"did not within 0\.5 s when asked 'to listen'"),
        (
            "#!/bin/sh\necho no data files; exit 3",
            r"ended with status 3 when asked 'to listen'; it said: 'no data",
        ),
        ("#!/bin/sh\necho Waiting for a connection; exec sleep 60", "is not reachable .*refused"),
        ("not a program", r"gnubg cannot be started: .*Exec format error"),
    ],
)
def test_a_program_that_does_not_start_says_what_it_said(script: str, error: str, tmp_path: Path) -> None:
    impostor = tmp_path / "gnubg"
    impostor.write_text(script + "\n")
    impostor.chmod(0o755)
    with pytest.raises(EngineError, match=error):
        GnubgProgram(candidates, timeout=0.5, program=str(impostor)).__enter__()
