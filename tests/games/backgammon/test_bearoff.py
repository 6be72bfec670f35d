from __future__ import annotations

import functools
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.struct import replace
from aleazero.games.backgammon import bearoff
from aleazero.games.backgammon.bearoff import AfterRoll, Bearoff, BearoffError, BeforeRoll, known_outcomes, over_rolls
from aleazero.games.backgammon.bearoff_build import ROLLS, WAYS, how_many, plays, positions, rank
from aleazero.games.backgammon.board import PLACES, Board, planes, points_won
from aleazero.games.backgammon.game import OUTCOMES
from aleazero.games.backgammon.game import ROLLS as GAME_ROLLS

pytestmark = pytest.mark.usefixtures("quick_compile")

Checkers = tuple[int, ...]  # the points they stand on, ascending


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def tables(home: Path) -> Bearoff:
    return bearoff.load(home / ".cache" / "aleazero" / "bearoff-1")


@pytest.fixture(scope="module")
def everything() -> np.ndarray:
    return positions(15)


def some_of(everything: np.ndarray, number: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return everything[rng.integers(1, len(everything), number)]


# ---- an independent reference: checkers as a sorted tuple of points, plays by brute force, plain recursion


def slow_plays(checkers: Checkers, dice: tuple[int, int]) -> set[Checkers]:
    orders = [dice * 2] if dice[0] == dice[1] else [dice, dice[::-1]]
    return set().union(*(slow_sequence(checkers, order) for order in orders))


@functools.cache
def slow_sequence(checkers: Checkers, dice: tuple[int, ...]) -> frozenset[Checkers]:
    if not dice or not checkers:
        return frozenset([checkers])
    found: set[Checkers] = set()
    for i, point in enumerate(checkers):
        if point >= dice[0] or point == checkers[-1]:
            rest = [*checkers[:i], *checkers[i + 1 :]]
            rest += [point - dice[0]] * (point > dice[0])
            found |= slow_sequence(tuple(sorted(rest)), dice[1:])
    return frozenset(found)


@functools.cache
def slow_rolls(checkers: Checkers, until: int) -> tuple[float, ...]:
    """Chances to need 0, 1, 2, ... rolls until at most so many checkers are left, played for the least mean."""
    if len(checkers) <= until:
        return (1.0,)
    chances = [0.0] * 40
    for (a, b), ways in zip(ROLLS, WAYS, strict=True):
        options = [slow_rolls(after, until) for after in slow_plays(checkers, (a, b))]
        best = min(options, key=lambda option: sum(n * chance for n, chance in enumerate(option)))
        for n, chance in enumerate(best):
            chances[n + 1] += ways / 36 * chance
    while chances[-1] == 0.0:
        chances.pop()
    return tuple(chances)


@functools.cache
def slow_win(on_roll: Checkers, other: Checkers) -> float:
    if not other:
        return 0.0
    return sum(
        ways / 36 * max(1.0 - slow_win(other, after) if after else 1.0 for after in slow_plays(on_roll, roll))
        for roll, ways in zip(ROLLS, WAYS, strict=True)
    )


def checkers_of(counts: np.ndarray) -> Checkers:
    return tuple(point for point, number in enumerate(counts, 1) for _ in range(number))


# ---- numbers by hand


def one(point: int, number: int = 1) -> list[int]:
    return [number * (p == point) for p in range(1, 7)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "chances"),
    [
        (one(1, 0), {0: 1.0}),
        (one(1), {1: 1.0}),
        (one(6), {1: 27 / 36, 2: 9 / 36}),
        (one(1, 2), {1: 1.0}),
        (one(6, 2), {1: 4 / 36}),  # 3-3 and higher doubles
        (one(1, 15), {4: 6**-4, 8: (5 / 6) ** 7}),  # four doubles; no double in seven rolls
    ],
)
def test_rolls_to_bear_off_by_hand(tables: Bearoff, counts: list[int], chances: dict[int, float]) -> None:
    found = tables.one_sided(counts)
    for rolls, chance in chances.items():
        assert found[rolls] == pytest.approx(chance, abs=1e-6)


def test_first_checker_by_hand(tables: Bearoff) -> None:
    # Fifteen on the 6 point: eleven rolls with a 6, 5-1, 4-2, 3-3 and 2-2; no larger die helps.
    assert tables.first_off(one(6, 15))[1] == pytest.approx(17 / 36, abs=1e-6)
    assert tables.first_off([3, 0, 12, 0, 0, 0])[1] == pytest.approx(35 / 36, abs=1e-6)  # all but 2-2
    assert tables.first_off(one(6, 14)).tolist() == [1.0, *[0.0] * 9]


def test_outcomes_by_hand(tables: Bearoff) -> None:
    def is_close(value: BeforeRoll | AfterRoll, wanted: list[float]) -> bool:
        (found,) = jax.tree.leaves(value)
        return bool(np.abs(found - np.array(wanted)).max() < 1e-6)

    assert is_close(tables.before_roll(one(6), one(6)), [13 / 16, 0, 0, 3 / 16, 0, 0])
    assert is_close(tables.after_roll(one(6), one(6)), [3 / 16, 0, 0, 13 / 16, 0, 0])
    # I need one roll: a gammon unless the other side, which rolls first, bears one off at once.
    assert is_close(tables.after_roll(one(1), one(6, 15)), [17 / 36, 19 / 36, 0, 0, 0, 0])
    # It finishes at once (27/36), or after I had one roll.
    lost = 27 / 36 + 9 / 36 * 19 / 36
    assert is_close(tables.after_roll(one(6, 15), one(6)), [0, 0, 0, 1 - lost, lost, 0])
    assert is_close(tables.after_roll(one(1, 0), one(6, 15)), [0, 1, 0, 0, 0, 0])
    assert is_close(tables.after_roll(one(1, 0), one(6, 14)), [1, 0, 0, 0, 0, 0])


def test_best_play_by_hand(tables: Bearoff) -> None:
    # 5-1 from the 6 point with one checker more on the 1 point: clear the 1 point, or run off with the other.
    left, value = tables.best_play([1, 0, 0, 0, 0, 1], one(1), (5, 1))
    assert left.tolist() == one(1)
    assert value.moved.tolist() == [0, 0, 0, 1, 0, 0]
    assert tables.best_play([2, 0, 0, 0, 0, 0], one(1), (1, 2))[1].moved.tolist() == [1, 0, 0, 0, 0, 0]


# ---- against the reference


def test_numbers_of_positions() -> None:
    everything = positions(15)
    assert len(everything) == how_many(15) == 54_264
    assert (rank(everything) == np.arange(54_264)).all()
    assert (np.diff(everything.sum(1)) >= 0).all()  # a table for few checkers is the head of one for many
    assert (np.asarray(jax.jit(rank)(jnp.asarray(everything))) == np.arange(54_264)).all()


def test_plays_equal_the_reference(everything: np.ndarray) -> None:
    for i, counts in enumerate(some_of(everything, 60, seed=3)):
        for roll in ROLLS[i % 3 :: 3]:
            assert {checkers_of(after) for after in plays(counts, roll)} == slow_plays(checkers_of(counts), roll)


def test_one_sided_equals_the_reference(tables: Bearoff, everything: np.ndarray) -> None:
    for counts in everything[: how_many(4)]:
        wanted = slow_rolls(checkers_of(counts), 0)
        found = tables.one_sided(counts)
        assert np.abs(found[: len(wanted)] - wanted).max() < 1e-6
        assert not found[len(wanted) :].any()


def test_first_off_equals_the_reference(everything: np.ndarray, tmp_path: Path) -> None:
    checkers = 4
    small = bearoff._tables(tmp_path, checkers, 1)
    assert not small.first_off[0].any()
    full = everything[how_many(checkers - 1) : how_many(checkers)]
    for counts, found in zip(full, small.first_off[1:], strict=True):
        wanted = 1.0 - np.cumsum(slow_rolls(checkers_of(counts), checkers - 1))
        assert wanted[-1] == pytest.approx(0.0, abs=1e-9)
        assert np.abs(wanted[:-1] - found[: len(wanted) - 1]).max() < 1e-6
        assert not found[len(wanted) - 1 :].any()


def test_two_sided_equals_the_reference(tables: Bearoff, everything: np.ndarray) -> None:
    mine, theirs = some_of(everything[: how_many(3)], 300, seed=1), some_of(everything[: how_many(3)], 300, seed=2)
    found = tables.before_roll(mine, theirs).on_roll
    wanted = [slow_win(checkers_of(a), checkers_of(b)) for a, b in zip(mine, theirs, strict=True)]
    assert np.abs(found[:, 0] - np.array(wanted)).max() < 1e-6
    assert tables.exact(mine, theirs).all()


def test_large_positions_follow_from_the_best_plays(tables: Bearoff, everything: np.ndarray) -> None:
    counts = everything[-15_504:]
    for position in some_of(counts, 25, seed=4):
        wanted = np.zeros(24)
        for roll, ways in zip(ROLLS, WAYS, strict=True):
            after = np.array([np.bincount(c, minlength=7)[1:] for c in slow_plays(checkers_of(position), roll)])
            chances = tables.one_sided(after).astype(np.float64)
            wanted[1:] += ways / 36 * chances[(chances @ np.arange(24)).argmin()][:-1]
        assert np.abs(tables.one_sided(position) - wanted).max() < 1e-6


def test_before_a_roll_is_the_mean_of_the_best_plays(tables: Bearoff, everything: np.ndarray) -> None:
    mine, theirs = some_of(everything[: how_many(6)], 40, seed=5), some_of(everything[: how_many(6)], 40, seed=6)
    for a, b in zip(mine, theirs, strict=True):
        best = np.stack([tables.best_play(a, b, roll)[1].moved for roll in ROLLS])
        assert np.abs(over_rolls(AfterRoll(best)).on_roll - tables.before_roll(a, b).on_roll).max() < 1e-6


# ---- what must hold everywhere


def test_distributions(tables: Bearoff, everything: np.ndarray) -> None:
    for chances in (tables.one_sided(everything), tables.first_off(everything)):
        assert (chances >= 0).all()
        assert np.abs(chances.sum(-1, dtype=np.float64) - 1.0).max() < 1e-6
    assert tables.tables.all_off.shape == (54_264, 24)
    assert tables.tables.first_off.shape == (1 + 15_504, 10)


def test_a_checker_less_is_never_worse(tables: Bearoff, everything: np.ndarray) -> None:
    few = everything[: how_many(6)]
    wins = np.asarray(tables.tables.two_sided)
    mean = tables.tables.all_off.sum(1, dtype=np.float64)
    for point in range(6):
        has = everything[:, point] > 0
        fewer = rank(everything[has] - np.eye(6, dtype=np.int32)[point])
        assert (mean[fewer] <= mean[has]).all()
        has = few[:, point] > 0
        fewer = rank(few[has] - np.eye(6, dtype=np.int32)[point])
        assert (wins[fewer] >= wins[has]).all()
        assert (wins[1:, fewer] <= wins[1:, has]).all()


def test_the_one_sided_assumption_costs_little(tables: Bearoff, everything: np.ndarray) -> None:
    few = everything[1 : how_many(6)]
    assumed = Bearoff(replace(tables.tables, two_sided=tables.tables.two_sided[:1, :1]))
    exact, race = (of.before_roll(few[:, None], few[None, ::3]).on_roll[..., 0] for of in (tables, assumed))
    error = np.abs(exact - race)
    assert error.max() < 0.0140
    assert error.mean() < 0.0009
    two = how_many(2) - 1
    assert error[:two, : two // 3].max() < 1e-6  # two checkers leave no choice that matters


def test_values_before_and_after_a_roll_do_not_mix(tables: Bearoff) -> None:
    before, after = tables.before_roll(one(6), one(5)), tables.after_roll(one(5), one(6))
    assert isinstance(before, BeforeRoll)
    assert isinstance(after, AfterRoll)
    assert (after.turned().on_roll == before.on_roll).all()
    assert (before.turned().moved == after.moved).all()
    with pytest.raises(AttributeError, match="moved"):
        over_rolls(before)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="AfterRoll"):
        jax.tree.map(jnp.add, before, after)
    with pytest.raises(TypeError):
        before < after  # type: ignore[operator]  # noqa: B015


def test_orders_are_those_of_the_game() -> None:
    assert ROLLS == GAME_ROLLS
    assert bearoff._OUTCOME_POINTS.tolist() == [outcome.points for outcome in OUTCOMES]
    swapped = [OUTCOMES[i] for i in bearoff._OTHER_SIDE]
    assert [outcome.points for outcome in swapped] == [-outcome.points for outcome in OUTCOMES]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.one_sided([0, 0, 0, 0, 0, 16]), "16"),
        (lambda t: t.one_sided([0, 0, 0, 0, 2, -1]), "-1"),
        (lambda t: t.one_sided([1, 2, 3]), r"\(3,\)"),
        (lambda t: t.one_sided([0.5] * 6), "float64"),
        (lambda t: t.before_roll([0] * 6, [0] * 6), "both sides"),
        (lambda t: t.best_play(one(1), one(1), (7, 1)), "7"),
        (lambda t: t.best_play([one(1)], one(1), (2, 1)), r"\(1, 6\)"),
    ],
)
def test_impossible_positions_are_refused(tables: Bearoff, call: Callable[[Bearoff], Any], message: str) -> None:
    with pytest.raises(BearoffError, match=message):
        call(tables)


# ---- in compiled programs


def board_of(mine: np.ndarray, theirs: np.ndarray) -> Board:
    """Of checkers on own points 1 to 24 and the bar, `[B, 25]` each."""
    counts = np.zeros((2, len(mine), PLACES), int)
    counts[0, :, 1:] = mine
    counts[1, :, :25] = theirs[:, ::-1]  # their bar is bit 0, their point 1 bit 24
    return jax.tree.map(jnp.asarray, Board(planes(counts[0]), planes(counts[1])))


def test_known_outcomes_on_boards(tables: Bearoff, everything: np.ndarray) -> None:
    small = everything[: how_many(6)]
    mine = np.concatenate([some_of(everything, 300, 7), some_of(small, 300, 8), everything[:1], everything[:1]])
    theirs = np.concatenate([some_of(everything, 300, 9), some_of(small, 300, 10), everything[-1:], everything[5:6]])
    mine[:100], theirs[100:200] = some_of(everything[-15_504:], 100, 11), some_of(everything[-15_504:], 100, 12)
    mine[100:200], theirs[:100] = some_of(everything[:100], 100, 13), some_of(everything[:100], 100, 14)
    run = jax.jit(known_outcomes)
    board = board_of(*(np.pad(side, ((0, 0), (0, 19))) for side in (mine, theirs)))
    known, value = run(tables.arrays(), board)
    assert isinstance(value, AfterRoll)
    assert known.all()
    wanted = tables.after_roll(mine, theirs).moved
    assert value.moved.dtype == jnp.float32
    assert np.abs(value.moved - wanted).max() < 1e-6
    assert np.abs(value.moved.sum(-1) - 1.0).max() < 1e-6
    assert (wanted[:200, [1, 4]].sum(-1) > 0.0).mean() > 0.1  # gammons are among them
    # Finished games, as the rules have them.
    over = np.asarray(points_won(board))
    assert over[-2:].tolist() == [2, 1]
    assert value.moved[-2:].tolist() == [[0, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("place", [6, 12, 23, 24])  # indices: the 7, 13 and 24 points, the bar
@pytest.mark.parametrize("side", [0, 1])
def test_a_checker_outside_home_is_unknown(tables: Bearoff, place: int, side: int) -> None:
    counts = np.zeros((2, 1, 25), int)
    counts[:, 0, 2] = 3
    counts[side, 0, place] = 1
    known, value = jax.jit(known_outcomes)(tables.arrays(), board_of(*counts))
    assert not known.any()
    assert not value.moved.any()


# ---- against GNU Backgammon's databases


@pytest.fixture(scope="module")
def gnubg_folder() -> Path:
    gnubg_nn = pytest.importorskip("gnubg_nn")
    return Path(gnubg_nn.__file__).parent / "data"


def test_one_sided_agrees_with_gnubg(tables: Bearoff, everything: np.ndarray, gnubg_folder: Path) -> None:
    """All 54,264 positions, both distributions; gnubg keeps every chance as one of 65,535 parts.

    Its rounding adds up to 2e-4 in the mean number of rolls, and where two plays are closer than that it may choose
    another: 3e-3 in a single chance then.
    """
    raw, number = (gnubg_folder / "gnubg_os0.bd").read_bytes(), how_many(15)
    fields = [("at", "<u4"), ("many", "u1"), ("first", "u1"), ("many_first", "u1"), ("first_first", "u1")]
    index = np.frombuffer(raw, np.dtype(fields), number, 40)
    parts = np.frombuffer(raw, "<u2", offset=40 + index.nbytes)
    many, many_first = index["many"].astype(int), index["many_first"].astype(int)

    def spread(many: np.ndarray, skipped: np.ndarray, at: np.ndarray) -> np.ndarray:
        rows = np.repeat(np.arange(number), many)
        nth = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        chances = np.zeros((number, 24))
        chances[rows, skipped[rows] + nth] = parts[at[rows] + nth] / 65535
        return chances[rank(everything[:, ::-1])]  # its points are numbered the other way round

    gnubg = spread(many, index["first"], index["at"])
    error = np.abs(gnubg - tables.one_sided(everything))
    assert error.max() < 3e-3
    assert np.quantile(error.max(1), 0.99) < 6e-5
    assert error[: how_many(8)].max() < 4e-5
    assert np.abs((gnubg - tables.one_sided(everything)) @ np.arange(24)).max() < 2e-4
    gnubg = spread(many_first, index["first_first"], index["at"] + many)
    full = slice(how_many(14), None)
    assert np.abs(gnubg[full, :10] - tables.first_off(everything[full])).max() < 3e-5


def test_two_sided_agrees_with_gnubg(tables: Bearoff, everything: np.ndarray, gnubg_folder: Path) -> None:
    """All 853,776 pairs; gnubg keeps equities in steps of 3e-5, and rounds them again at every move."""
    number = how_many(6)
    raw = (gnubg_folder / "gnubg_ts0.bd").read_bytes()
    gnubg = np.frombuffer(raw, "<u2", offset=40).reshape(number, number, 4)[:, :, 0] / 65535
    order = rank(everything[:number, ::-1])
    error = np.abs(gnubg[np.ix_(order, order)] - tables.tables.two_sided)[1:, 1:]
    assert error.max() < 6e-5
    assert error.mean() < 2.5e-5


def test_evaluations_agree_with_gnubg(tables: Bearoff, everything: np.ndarray) -> None:
    """What gnubg's evaluator says before a roll, from both of its databases.

    Gammons are compared where the loser has checkers on more than two points: its evaluator takes some rare positions
    (3 on the 1 point and 12 on the 3 point, which bear nothing off with 2-2) for safe, against its own database.
    """
    gnubg_nn = pytest.importorskip("gnubg_nn")
    mine, theirs = some_of(everything, 400, 15), some_of(everything, 400, 16)
    mine[:100], theirs[:100] = some_of(everything[: how_many(6)], 100, 17), some_of(everything[: how_many(6)], 100, 18)
    mine[100:200], theirs[200:300] = some_of(everything[:800], 100, 19), some_of(everything[:800], 100, 20)
    spread = everything[-15_504:][(everything[-15_504:] > 0).sum(1) > 2]
    theirs[100:200], mine[200:300] = some_of(spread, 100, 21), some_of(spread, 100, 22)
    boards = np.pad(np.stack([theirs, mine], 1), ((0, 0), (0, 0), (0, 19)))
    gnubg = np.array([gnubg_nn.probabilities(board.tolist(), 0) for board in boards])
    found = tables.before_roll(mine, theirs).on_roll
    assert np.abs(gnubg[:, 0] - found[:, :3].sum(1)).max() < 1e-4
    assert np.abs(gnubg[:, [1, 3]] - found[:, [1, 4]]).max() < 1e-3
    assert (gnubg[:, [1, 3]] > 0.01).sum() > 20
    for counts in some_of(everything, 100, 23):
        chances = np.array(gnubg_nn.bearoff_probabilities(tuple(counts.tolist())))
        assert np.abs(tables.one_sided(counts)[1 : len(chances) + 1] - chances).max() < 3e-3


# ---- files


def test_the_default_folder(tables: Bearoff, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise AssertionError("computed anew")

    monkeypatch.setattr(bearoff, "solve", refuse)
    for name, value in (("HOME", home), ("XDG_CACHE_HOME", home / ".cache"), ("ALEA_CACHE", home / ".cache/aleazero")):
        for other in ("ALEA_CACHE", "XDG_CACHE_HOME"):
            monkeypatch.delenv(other, raising=False)
        monkeypatch.setenv("HOME", "/nowhere")
        monkeypatch.setenv(name, str(value))
        found = bearoff.load().tables.all_off
        assert isinstance(found, np.memmap)
        assert Path(str(found.filename)).parent == home / ".cache" / "aleazero" / "bearoff-1"


@pytest.mark.parametrize("fault", ["bit", "cut", "gone", "manifest", "other sizes", "no entry"])
def test_a_damaged_file_is_named_and_made_anew(fault: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = bearoff._tables(tmp_path, 3, 2)
    assert bearoff._tables(tmp_path, 3, 2).two_sided.tolist() == whole.two_sided.tolist()
    assert not caplog.records
    (victim,) = tmp_path.glob("two_sided-*.npy")
    data = victim.read_bytes()
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    victim.unlink()  # the maps of `whole` keep the file that was
    if fault == "bit":
        victim.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    elif fault == "cut":
        victim.write_bytes(data[:-40])
    elif fault != "gone":
        victim.write_bytes(data)
        victim = tmp_path / "manifest.json"
        del manifest["files"]["first_off"]
        torn = {
            "manifest": "{",
            "other sizes": json.dumps({**manifest, "checkers": 4}),
            "no entry": json.dumps(manifest),
        }
        victim.write_text(torn[fault])
    with caplog.at_level(logging.WARNING):
        again = bearoff._tables(tmp_path, 3, 2)
    assert [str(victim) in record.message for record in caplog.records] == [True]
    for name in ("all_off", "first_off", "two_sided"):
        assert (getattr(again, name) == getattr(whole, name)).all()
    caplog.clear()
    bearoff._tables(tmp_path, 3, 2)
    assert not caplog.records


def test_where_nothing_can_be_written_tables_stay_in_memory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    found = bearoff._tables(tmp_path / "file" / "bearoff", 2, 1)
    assert found.two_sided.shape == (7, 7)
    assert "ALEA_CACHE" in caplog.text


def test_processes_build_at_once(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys; from aleazero.games.backgammon import bearoff\n"
        "folder = pathlib.Path(sys.argv[1]); print('ready', flush=True); sys.stdin.readline()\n"
        "print(bearoff._tables(folder / 'tables', 5, 3).two_sided.sum(dtype='f8'))"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with (tmp_path / "errors").open("w") as errors:
        builders = [
            subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
            for _ in range(2)
        ]
        assert [builder.stdout.readline() for builder in builders if builder.stdout] == ["ready\n"] * 2
        for builder in builders:
            assert builder.stdin is not None
            builder.stdin.write("\n")
            builder.stdin.flush()
        answers = [builder.communicate()[0] for builder in builders]
    assert (tmp_path / "errors").read_text() == ""
    whole = bearoff._read(tmp_path / "tables", 5, 3)
    assert [float(answer) for answer in answers] == [whole.two_sided.sum(dtype="f8")] * 2
    assert len(list((tmp_path / "tables").iterdir())) == 4  # no unfinished file


def test_writers_of_different_tables_do_not_mix(tmp_path: Path) -> None:
    writing = threading.Event()
    writing.set()

    def write(number: float) -> None:
        for _ in range(12):
            bearoff._write(tmp_path, 3, 2, {name: np.full((50, 50), number) for name in bearoff._NAMES})

    def read() -> None:
        while writing.is_set():
            found = bearoff._read(tmp_path, 3, 2)
            seen.append(
                {float(value) for table in (found.all_off, found.first_off, found.two_sided) for value in table[0]}
            )

    seen: list[set[float]] = []
    write(1.0)
    writers = [threading.Thread(target=write, args=(number,)) for number in (1.0, 2.0)]
    reader = threading.Thread(target=read)
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    writing.clear()
    reader.join()
    assert seen
    assert all(len(values) == 1 for values in seen)
