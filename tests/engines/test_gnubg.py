"""GNU Backgammon in-process: what a ply is, whose side a position is from, noise that repeats, and bad input."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.core.errors import MissingExtra
from aleazero.engines import EngineError
from aleazero.engines.gnubg import Gnubg, Pubeval, _normal, candidates, check, move, ranked, won_points

library = pytest.mark.skipif(importlib.util.find_spec("gnubg_nn") is None, reason="gnubg-nn is not installed")
HOME = [0, 0, 0, 0, 0, 5, 0, 3, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0]
START = np.array([HOME, HOME])
ROLLS = [(a, b, 1 if a == b else 2) for a in range(1, 7) for b in range(1, a + 1)]


def side(**points: int) -> list[int]:
    """`side(p6=2, bar=1)`."""
    own = [0] * 25
    for name, number in points.items():
        own[24 if name == "bar" else int(name[1:]) - 1] = number
    return own


def position(opponent: list[int], mover: list[int]) -> np.ndarray:
    return np.array([opponent, mover])


def wander(count: int, seed: int = 0, strong: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Positions and dice from games of random and GNU's moves mixed."""
    rng = np.random.default_rng(seed)
    boards: list[np.ndarray] = []
    rolls: list[np.ndarray] = []
    board = START
    while len(boards) < count:
        dice = rng.integers(1, 7, 2)
        boards.append(board)
        rolls.append(dice)
        if rng.random() < strong:
            after = Gnubg().choose(board[None], dice[None])[0]
        else:
            after = rng.choice(candidates(board, dice))
        board = START if won_points(after[None])[0] else after[::-1]
    return np.array(boards), np.array(rolls)


def is_among(after: np.ndarray, plays: np.ndarray) -> bool:
    return bool((plays == after).all((1, 2)).any())


def played(board: np.ndarray, *steps: tuple[int, int]) -> np.ndarray:
    after = board.copy()
    move(after, [(source - 1, target - 1) for source, target in steps])
    return after


NO_ENTRY = position(side(p1=2, p2=2, p3=2, p4=2, p5=2, p6=2, p7=3), side(bar=1, p6=14))
ONE_PLAY = position(side(p1=2, p2=2, p4=4, p5=3, p9=1, p14=1, p16=1, p17=1), side(p6=4, p13=4, p22=2, bar=5))


# ---- plies


@library
def test_a_ply_is_the_mean_over_21_rolls_of_the_play_that_is_best_at_0_ply() -> None:
    gnu = Gnubg()
    boards, _ = wander(40, seed=3)
    for board in boards[[0, 11, 25, 39]]:
        one = two = 0.0
        for a, b, weight in ROLLS:
            plays = candidates(board, np.array([a, b]))
            now = gnu.after_equities(plays, 0)
            best = now.argmax()
            one += weight * now[best] / 36
            two += weight * gnu.after_equities(plays[best : best + 1], 1)[0] / 36
        assert gnu.equities(board[None], 1)[0] == pytest.approx(one, abs=1e-5)
        assert gnu.equities(board[None], 2)[0] == pytest.approx(two, abs=1e-5)


@library
def test_0_ply_plays_what_it_judges_best() -> None:
    boards, dice = wander(150, seed=4)
    chosen = Gnubg().after_equities(Gnubg(0).choose(boards, dice))
    best = [Gnubg().after_equities(candidates(*decision)).max() for decision in zip(boards, dice, strict=True)]
    assert chosen == pytest.approx(np.array(best), abs=1e-6)


@library
@pytest.mark.parametrize(("ply", "number"), [(1, 25), (2, 4)])
def test_deeper_plies_play_the_best_of_the_filtered_plays(ply: int, number: int) -> None:
    boards, dice = wander(number, seed=5)
    gnu = Gnubg(ply)
    chosen = gnu.choose(boards, dice)
    for board, roll, after in zip(boards, dice, chosen, strict=True):
        plays, _ = ranked(board, roll)
        assert is_among(after, plays[:8])
        # The filter of 2-ply keeps fewer; what is surely in it is the best play at 0-ply.
        kept = plays[:8] if ply == 1 else plays[:1]
        assert gnu.after_equities(after[None])[0] >= gnu.after_equities(kept).max() - 1e-6


@library
@pytest.mark.parametrize("ply", [0, 1, 2])
def test_openings_that_everybody_knows(ply: int) -> None:
    known = {
        (3, 1): [(8, 5), (6, 5)],
        (2, 4): [(8, 4), (6, 4)],
        (6, 1): [(13, 7), (8, 7)],
        (5, 3): [(8, 3), (6, 3)],
    }
    after = Gnubg(ply).choose(np.repeat(START[None], len(known), 0), np.array(list(known)))
    for got, steps in zip(after, known.values(), strict=True):
        assert np.array_equal(got, played(START, *steps))


@library
def test_values_are_the_movers_in_points() -> None:
    nearly_won = position(side(p23=1, p20=14), side(p1=2))
    gnu = Gnubg()
    assert gnu.equities(nearly_won[None])[0] == pytest.approx(3.0)  # every roll bears off both: a backgammon
    assert gnu.after_equities(nearly_won[None])[0] > 1.5
    # The opponent bears off next; 19 of 36 rolls take no checker off the six point, and lose a gammon.
    assert gnu.equities(position(side(p1=1), side(p6=15))[None])[0] == pytest.approx(-1 - 19 / 36)
    chances = gnu.probabilities(START[None], 2)[0]
    assert 0.51 < chances[0] < 0.54
    assert gnu.equities(START[None], 2)[0] == pytest.approx(2 * chances[0] - 1 + chances[1:3].sum() - chances[3:].sum())
    assert Gnubg(1).equities(START[None])[0] == gnu.equities(START[None], 1)[0] != gnu.equities(START[None], 0)[0]


def test_points_of_games_just_won() -> None:
    finished = {
        1: [side(p1=1), side(p24=14), side(p1=13, bar=1)],
        2: [side(p6=15), side(p18=1, p1=14)],
        3: [side(p19=1, p1=14), side(p24=15), side(p1=14, bar=1)],
    }
    for points, losers in finished.items():
        after = np.array([position(loser, side()) for loser in losers])
        assert won_points(after).tolist() == [points] * len(losers)
    assert won_points(START[None]).tolist() == [0]


@library
def test_finished_games_are_worth_their_points_at_every_ply() -> None:
    after = np.array([position(side(p6=14), side()), position(side(p1=14, bar=1), side()), START])
    for ply in (0, 1, 2):
        value = Gnubg().after_equities(after, ply)
        assert value[:2].tolist() == [1.0, 3.0]
        assert value[2] == -Gnubg().equities(START[None], ply)[0]


# ---- plays


@library
def test_plays_are_from_the_movers_side() -> None:
    board = position(side(p4=1, p6=5, p8=3, p13=4, p24=2), side(p6=5, p8=3, p13=5, bar=2))
    plays = candidates(board, np.array([3, 4]))
    assert is_among(played(board, (25, 21), (25, 22)), plays)
    assert played(board, (25, 21))[0].tolist() == side(bar=1, p6=5, p8=3, p13=4, p24=2)
    assert (plays[:, 1].sum(1) == 15).all()
    assert (plays[:, 0].sum(1) == 15).all()
    assert not plays[:, 1, 24].any()  # both must come in
    assert len(np.unique(plays.reshape(len(plays), -1), axis=0)) == len(plays)


@library
def test_where_one_die_only_can_be_played_it_is_the_higher() -> None:
    either_but_not_both = position(side(p6=2, p8=2, p14=2, p15=2), side(p24=1))
    assert candidates(either_but_not_both, np.array([1, 6]))[:, 1].tolist() == [side(p18=1)]


@library
def test_without_a_choice_every_engine_plays_what_must_be() -> None:
    for engine in (Gnubg(0), Gnubg(1), Gnubg(2), Gnubg(0, 0.3), Pubeval()):
        after = engine.choose(np.array([NO_ENTRY, ONE_PLAY]), np.array([[3, 1], [5, 3]]))
        assert np.array_equal(after[0], NO_ENTRY)
        assert np.array_equal(after[1], played(ONE_PLAY, (25, 22)))


@library
def test_a_forced_play_is_ranked_with_its_value() -> None:
    for board, dice, steps in ((NO_ENTRY, [6, 6], []), (ONE_PLAY, [3, 5], [(25, 22)])):
        plays, equities = ranked(board, np.array(dice))
        assert np.array_equal(plays, played(board, *steps)[None])
        assert equities == pytest.approx(Gnubg().after_equities(plays))


@library
def test_ranked_plays_are_all_plays_with_their_values() -> None:
    last = position(side(p1=15), side(p1=1, p2=1))  # one play wins a gammon, one does not win yet
    boards, dice = wander(30, seed=6)
    for board, roll in [*zip(boards, dice, strict=True), (last, np.array([1, 2]))]:
        plays, equities = ranked(board, roll)
        every = candidates(board, roll)
        assert len(plays) == len(every)
        assert all(is_among(play, every) for play in plays)
        assert (np.diff(equities) <= 0).all()
        assert equities == pytest.approx(Gnubg().after_equities(plays), abs=1e-6)
    assert equities[0] == 2.0


@st.composite
def possible(draw: st.DrawFn) -> np.ndarray:
    board = np.zeros((2, 25), np.int64)
    for row in draw(st.permutations([0, 1])):
        for place in draw(st.lists(st.integers(0, 24), min_size=1, max_size=15)):
            if place == 24 or not board[1 - row, 23 - place]:
                board[row, place] += 1
        board[row, 24] += not board[row].any()
    return board


@library
@settings(max_examples=60, deadline=None)
@given(possible(), st.tuples(st.integers(1, 6), st.integers(1, 6)))
def test_every_engine_plays_legally_anywhere(board: np.ndarray, dice: tuple[int, int]) -> None:
    plays = candidates(board, np.array(dice))
    for engine in (Gnubg(0), Gnubg(1), Gnubg(0, 0.5), Pubeval()):
        assert is_among(engine.choose(board[None], np.array([dice]))[0], plays)
    assert np.array_equal(np.unique(plays, axis=0), np.unique(candidates(board, np.array(dice[::-1])), axis=0))


@library
def test_a_batch_is_its_rows() -> None:
    boards, dice = wander(20, seed=7)
    for engine in (Gnubg(0), Gnubg(0, 0.1), Pubeval()):
        together = engine.choose(boards, dice)
        alone = [engine.choose(b[None], d[None])[0] for b, d in zip(boards, dice, strict=True)]
        assert np.array_equal(together, np.array(alone))
        assert engine.choose(boards[:0], dice[:0]).shape == (0, 2, 25)
    assert Gnubg().equities(boards[:0]).shape == (0,)


# ---- weaker rungs


@library
def test_noise_repeats_and_costs_what_it_should() -> None:
    boards, dice = wander(200, seed=8, strong=0.9)
    exact = Gnubg().after_equities(Gnubg().choose(boards, dice))

    def loss(engine: Gnubg | Pubeval) -> float:
        return float((exact - Gnubg().after_equities(engine.choose(boards, dice))).mean())

    noisy = Gnubg(0, 0.1, seed=3)
    assert np.array_equal(noisy.choose(boards, dice), Gnubg(0, 0.1, seed=3).choose(boards[:, :, :], dice[:, ::-1]))
    assert not np.array_equal(noisy.choose(boards, dice), Gnubg(0, 0.1, seed=4).choose(boards, dice))
    assert loss(Gnubg(0, 1e-9)) < 1e-6
    assert 0.015 < loss(noisy) < 0.06
    assert loss(Gnubg(0, 0.02)) < loss(noisy) < loss(Gnubg(0, 0.5))
    assert 0.01 < loss(Pubeval()) < 0.08


def test_noise_is_standard_normal() -> None:
    draws = np.array([_normal(str(i)) for i in range(4000)])
    assert abs(draws.mean()) < 0.06
    assert draws.std() == pytest.approx(1.0, abs=0.05)
    assert abs((np.abs(draws) < 1).mean() - 0.683) < 0.03


# ---- bad input

IMPOSSIBLE = {
    "the mover has 16 checkers": position(HOME, side(p6=16)),
    "the opponent has 17 checkers": position(side(bar=17), HOME),
    "the opponent has -1 checkers on a point": position(side(p3=-1, p4=3), HOME),
    "both sides have checkers on the mover's point 6": position(side(p19=2), side(p6=2)),
    "both sides have borne off all checkers": position(side(), side()),
    "the game is over: the mover has no checkers left": position(HOME, side()),
    "the game is over: the opponent has no checkers left": position(side(), HOME),
}


@pytest.fixture
def untouchable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library whose every use is an AttributeError."""
    monkeypatch.setitem(sys.modules, "gnubg_nn", types.ModuleType("gnubg_nn"))


@pytest.mark.usefixtures("untouchable")
def test_impossible_positions_are_all_named_and_never_reach_the_library() -> None:
    boards, dice = np.array(list(IMPOSSIBLE.values())), np.full((len(IMPOSSIBLE), 2), 3)
    questions = [Gnubg().choose, Pubeval().choose, Gnubg(0, 0.1).choose]
    for ask in [*questions, lambda boards, _: Gnubg().equities(boards)]:
        with pytest.raises(EngineError) as error:
            ask(boards, dice)
        assert len(str(error.value).split("\n")) == len(IMPOSSIBLE)
        for i, text in enumerate(IMPOSSIBLE):
            assert f"position {i}: {text}" in str(error.value)


@pytest.mark.usefixtures("untouchable")
def test_only_the_mover_may_have_finished_in_a_position_that_is_left() -> None:
    for text in ("both sides have borne off", "the opponent has no checkers"):
        board = next(board for name, board in IMPOSSIBLE.items() if text in name)
        with pytest.raises(EngineError, match=text):
            Gnubg().after_equities(board[None])


@pytest.mark.usefixtures("untouchable")
def test_dice_and_shapes_are_checked_with_the_positions() -> None:
    with pytest.raises(EngineError) as error:
        Gnubg().choose(IMPOSSIBLE["the mover has 16 checkers"][None], np.array([[7, 0], [1, 1]]))
    assert str(error.value).split("\n") == [
        "position 0: the mover has 16 checkers; there are 15",
        "dice 0: [7, 0]; a die shows 1 to 6",
        "there are 1 positions and 2 rolls; each position needs one",
    ]
    with pytest.raises(EngineError) as error:
        Gnubg().choose(START.astype(float), np.array([3, 1]))
    assert "positions are float64 [2, 25]" in str(error.value)
    assert "dice are int64 [2]" in str(error.value)
    with pytest.raises(EngineError, match=r"dice 0: \[3, -1\]"):
        candidates(START, np.array([-1, 3]))


def test_many_problems_are_counted() -> None:
    with pytest.raises(EngineError) as error:
        check(np.zeros((20, 2, 25), np.int64))
    assert str(error.value).endswith("\nand 12 more")


@pytest.mark.usefixtures("untouchable")
def test_settings_out_of_range_are_all_named() -> None:
    with pytest.raises(EngineError, match=r"(?s)ply is 3; .*noise is -1"):
        Gnubg(3, -1)
    with pytest.raises(EngineError, match="noise is for ply 0"):
        Gnubg(1, 0.1)
    with pytest.raises(EngineError, match="noise is nan"):
        Gnubg(0, float("nan"))
    for ply in (3, -7):
        with pytest.raises(EngineError, match=f"ply is {ply}; it must be 0 to 2"):
            Gnubg().equities(START[None], ply)


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gnubg_nn", None)
    for ask in (Gnubg, Pubeval, lambda: candidates(START, np.array([3, 1])), lambda: ranked(START, np.array([3, 1]))):
        with pytest.raises(MissingExtra, match=r"gnubg-nn.*pip install 'aleazero\[gnubg\]'"):
            ask()


def test_importing_the_engines_imports_no_engine() -> None:
    program = "import sys, aleazero.engines.gnubg, aleazero.engines.gnubg_program; sys.exit('gnubg_nn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@library
def test_engines_travel_to_other_processes() -> None:
    boards, dice = wander(5, seed=9)
    for engine in (Gnubg(0, 0.1, 7), Pubeval()):
        assert np.array_equal(pickle.loads(pickle.dumps(engine.choose))(boards, dice), engine.choose(boards, dice))


@library
def test_answers_do_not_depend_on_what_was_asked_before(tmp_path: Path) -> None:
    boards, dice = wander(60, seed=10)
    program = (
        "import numpy as np; from aleazero.engines.gnubg import Gnubg\n"
        "np.save('told.npy', Gnubg().equities(np.load('asked.npy')[::-1], 1)[::-1])\n"
    )
    np.save(tmp_path / "asked.npy", boards)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True)
    Gnubg(1).choose(boards[:5], dice[:5])
    assert np.array_equal(np.load(tmp_path / "told.npy"), Gnubg().equities(boards, 1))
