"""How long the UCI engine may think; no search is run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aleazero.bridges.uci_limits import LEAST_ELO, MOST_ELO, Limits, limited, parse_go
from aleazero.bridges.uci_options import Options, parse_option
from aleazero.core.errors import NotationError


def test_words_behind_go() -> None:
    words = "wtime 1000 btime 2000 winc 10 binc 20 movestogo 5 nodes 7 mate 2 depth 9"
    limits, problems = parse_go(words.split())
    assert problems == []
    assert limits == Limits(1000, 2000, 10, 20, movestogo=5, depth=9, nodes=7, mate=2)
    assert parse_go(["infinite"]) == (Limits(infinite=True), [])
    moves = parse_go(["searchmoves", "e2e4", "d2d4", "movetime", "50"])
    assert moves == (Limits(movetime=50, searchmoves=("e2e4", "d2d4")), [])


def test_what_is_wrong_is_said_and_the_rest_is_used() -> None:
    limits, problems = parse_go(["wtime", "soon", "btime", "5", "nonsense", "nodes"])
    assert limits == Limits(btime=5)
    assert len(problems) == 3
    assert parse_go(["wtime", "-300"]) == (Limits(wtime=0), [])  # some programs send it: the flag is about to fall
    assert parse_go(["nodes", "9" * 30])[1]
    assert parse_go(["nodes", "\N{SUPERSCRIPT TWO}"])[1]


@given(st.lists(st.text(max_size=8) | st.sampled_from(["wtime", "nodes", "infinite", "searchmoves", "movetime", "-5"])))
def test_any_words_are_answered(words: list[str]) -> None:
    limits, _ = parse_go(words)
    seconds = limits.seconds(0, 0.05)
    assert seconds is None or seconds >= 0


@given(st.integers(0, 10**7), st.integers(0, 10**5), st.integers(0, 60), st.integers(0, 1))
def test_a_move_takes_at_most_half_of_the_clock(left: int, gained: int, moves: int, seat: int) -> None:
    limits = Limits(left, left, gained, gained, movestogo=moves or None)
    seconds = limits.seconds(seat, 0.05)
    assert seconds is not None
    assert 0 <= seconds <= left / 2000
    many, clock = 0.0, left / 1000
    for _ in range(moves):  # played to the last move before the next time control, the clock never runs out
        used = Limits(int(1000 * clock), int(1000 * clock), movestogo=moves).seconds(seat, 0.0)
        assert used is not None
        many += used
        clock -= used
    assert clock >= 0
    assert many <= left / 1000


def test_each_side_has_its_own_clock() -> None:
    limits = Limits(wtime=31_000, btime=62_000)
    assert limits.seconds(0, 0.0) == pytest.approx(1.0)
    assert limits.seconds(1, 0.0) == pytest.approx(2.0)
    assert Limits(movetime=500).seconds(0, 0.1) == pytest.approx(0.4)
    assert Limits(nodes=5).seconds(0, 0.1) is None
    assert Limits(wtime=5, infinite=True).seconds(0, 0.1) is None


def test_strength_halves_step_by_step() -> None:
    assert limited(800, MOST_ELO) == 800
    assert limited(800, MOST_ELO - 160) == 400
    assert limited(800, MOST_ELO - 1280) == 3
    assert limited(800, LEAST_ELO) == 0
    assert [limited(800, elo) for elo in range(800, 2401, 50)] == sorted(limited(800, e) for e in range(800, 2401, 50))


def test_options_are_checked() -> None:
    options = Options(cores=2, threads=2, weights="")
    for line, field, value in (
        ("name MultiPV value 3", "multi_pv", 3),
        ("name Move Overhead value 100", "overhead", 100),
        ("name UCI_LimitStrength value true", "limit_strength", True),
        ("name uci_elo value 1200", "elo", 1200),
        ("name Threads value 1", "threads", 1),
    ):
        options.put(*parse_option(line))
        assert getattr(options, field) == value
    for line in ("name MultiPV value 0", "name Threads value 3", "name UCI_LimitStrength value maybe", "name UCI_Elo"):
        with pytest.raises(NotationError, match="it must be"):
            options.put(*parse_option(line))
    for line in ("MultiPV 3", "name Hash value 16", "", "value 3"):
        with pytest.raises(NotationError):
            parse_option(line)
    assert "option name Weights type string default <empty>" in options.lines()
