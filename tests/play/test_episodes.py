"""Episodes: games followed by hand, every row in one place, and slabs that come twice, late or not at all."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.core.records import Trajectory
from aleazero.games.tictactoe import TicTacToe
from aleazero.play.episodes import Episode, EpisodeAssembler, EpisodeError
from tests.games.conftest import quick_compile  # noqa: F401
from tests.play.test_rollout import DIRECT, machine, pace, play

LANES = np.array([4, 9, 2])
FIELDS = [field.name for field in dataclasses.fields(Trajectory) if field.name != "resign"]


def history(ended: np.ndarray, truncated: np.ndarray) -> Trajectory:
    """A trajectory `[T, B]` whose every row is unlike any other."""
    moves, lanes = ended.shape
    number = np.arange(moves * lanes).reshape(moves, lanes)
    fields: dict[str, Any] = {
        "state": np.stack([number % 256, number // 256], -1).astype(np.uint8),
        "to_play": (number % 2).astype(np.int8),
        "actions": np.stack([number, number + 1], -1).astype(np.int16),
        "policy": np.full((moves, lanes, 2), 0.5, np.float16),
        "action": number.astype(np.int16),
        "opinion": (number[..., None] / 7).astype(np.float16),
        "value": (number / 3).astype(np.float32),
        "searched": number % 3 == 0,
        "random": number % 5 == 0,
        "ended": ended,
        "settled": np.zeros_like(ended),
        "truncated": truncated,
        "points": np.where(ended, 1.0, 0.0).astype(np.float32),
        "fingerprint": number.astype(np.uint32),
    }
    return Trajectory(**fields)


def part(whole: Trajectory, start: int, end: int) -> Trajectory:
    return jax.tree.map(lambda field: field[start:end], whole)


def assert_moves(episode: Episode, whole: Trajectory, lane: int, start: int, end: int) -> None:
    for name in FIELDS:
        held, played = getattr(episode.moves, name), getattr(whole, name)[start:end, lane]
        assert isinstance(held, np.ndarray)
        assert held.dtype == played.dtype
        np.testing.assert_array_equal(held, played, err_msg=f"{name} of {episode.id}")


def by_hand(whole: Trajectory) -> list[tuple[int, int, int]]:
    """Lane, first move and end of every game that is over, lane by lane."""
    games = []
    for lane in range(whole.ended.shape[1]):
        start = 0
        for t in range(len(whole.ended)):
            if whole.ended[t, lane] or whole.truncated[t, lane]:
                games.append((lane, start, t + 1))
                start = t + 1
    return games


def some_history(seed: int = 0, moves: int = 40, share: float = 0.25) -> Trajectory:
    over = np.random.default_rng(seed).random((2, moves, len(LANES))) < share / 2
    return history(over[0], over[1] & ~over[0])


@st.composite
def histories(draw: st.DrawFn) -> tuple[Trajectory, list[int]]:
    """A trajectory, and where it is cut into slabs."""
    cuts = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    share = draw(st.sampled_from([0.0, 0.1, 0.5, 0.9]))
    return some_history(draw(st.integers(0, 2**16)), sum(cuts), share), cuts


@settings(deadline=None, max_examples=60)
@given(histories())
def test_every_row_is_in_one_episode_or_waits(made: tuple[Trajectory, list[int]]) -> None:
    whole, cuts = made
    assembler = EpisodeAssembler(7, LANES)
    found, start = [], 0
    for moves in cuts:
        new = assembler.add(start, part(whole, start, start + moves))
        start += moves
        found += new
        # Complete games come out at once, not later.
        assert sorted(e.id for e in found) == sorted(
            f"7-{LANES[lane]}-{first}" for lane, first, _ in by_hand(part(whole, 0, start))
        )
    rows = {lane: np.zeros(start, int) for lane in LANES}
    for episode in found:
        seed, lane, first = (int(word) for word in episode.id.split("-"))
        assert seed == 7
        place = LANES.tolist().index(lane)
        assert_moves(episode, whole, place, first, first + len(episode))
        over = episode.moves.ended | episode.moves.truncated
        assert over.tolist() == [False] * (len(episode) - 1) + [True]
        rows[lane][first : first + len(episode)] += 1
    for place, lane in enumerate(LANES):
        waiting = int(assembler.pending[place])
        assert rows[lane].tolist() == [1] * (start - waiting) + [0] * waiting


def test_what_waits_comes_out_when_its_game_ends() -> None:
    over = np.zeros((9, 3), bool)
    over[[1, 8], 0] = True  # a game of two, then one of seven over three slabs; the other lanes go on
    whole = history(over, np.zeros_like(over))
    assembler = EpisodeAssembler(0, LANES)
    assert assembler.pending.tolist() == [0, 0, 0]
    (short,) = assembler.add(0, part(whole, 0, 3), version=5)
    assert_moves(short, whole, 0, 0, 2)
    assert assembler.pending.tolist() == [1, 3, 3]
    assert assembler.add(3, part(whole, 3, 6), version=6) == []
    (long,) = assembler.add(6, part(whole, 6, 9), version=8)
    assert_moves(long, whole, 0, 2, 9)
    assert (short.id, long.id) == ("0-4-0", "0-4-2")
    assert (short.version, long.version) == (5, 5)  # of the first move
    assert assembler.pending.tolist() == [0, 9, 9]


def test_a_game_that_begins_with_a_slab_has_its_version() -> None:
    over = np.zeros((4, 3), bool)
    over[[1, 3]] = True
    whole = history(over, np.zeros_like(over))
    assembler = EpisodeAssembler(0, LANES)
    assert {e.version for e in assembler.add(0, part(whole, 0, 2), version=1)} == {1}
    assert {e.version for e in assembler.add(2, part(whole, 2, 4), version=2)} == {2}


def test_a_slab_that_comes_twice_counts_once() -> None:
    whole = some_history()
    once, twice = EpisodeAssembler(0, LANES), EpisodeAssembler(0, LANES)
    for start in range(0, 40, 8):
        slab = part(whole, start, start + 8)
        wanted = once.add(start, slab)
        assert [e.id for e in twice.add(start, slab)] == [e.id for e in wanted]
        assert twice.add(start, slab) == []
        assert twice.add(0, part(whole, 0, 8)) == []
    assert once.pending.tolist() == twice.pending.tolist()


@pytest.mark.parametrize("start", [9, 4])
def test_a_gap_or_an_overlap_is_an_error(start: int) -> None:
    whole = some_history()
    assembler = EpisodeAssembler(0, LANES)
    assembler.add(0, part(whole, 0, 8))
    with pytest.raises(EpisodeError, match=f"a slab of moves {start} to {start + 7} was added; the next one begins"):
        assembler.add(start, part(whole, start, start + 8))
    # Nothing of it was taken.
    late, fresh = assembler.add(8, part(whole, 8, 16)), EpisodeAssembler(0, LANES)
    fresh.add(0, part(whole, 0, 8))
    assert [e.id for e in late] == [e.id for e in fresh.add(8, part(whole, 8, 16))]


def test_games_whose_beginning_is_missing_are_left_out() -> None:
    whole = some_history()
    assembler = EpisodeAssembler(0, LANES)
    found = assembler.add(8, part(whole, 8, 24)) + assembler.add(24, part(whole, 24, 40))
    # A game that happens to begin with the first slab cannot be told from one that goes on.
    wanted = [f"0-{LANES[lane]}-{start}" for lane, start, _ in by_hand(whole) if start > 8]
    assert sorted(episode.id for episode in found) == sorted(wanted)
    assert whole.ended[7].any() | whole.truncated[7].any()


def test_another_number_of_lanes_is_an_error() -> None:
    with pytest.raises(EpisodeError, match="a slab of 3 lanes was added; this assembler is for 2"):
        EpisodeAssembler(0, LANES[:2]).add(0, some_history())


@pytest.mark.usefixtures("quick_compile")
def test_games_of_a_real_rollout() -> None:
    made, lanes = machine(TicTacToe, DIRECT, 10, 3), np.arange(400)
    _, whole = play(made, 2, lanes.tolist(), pace(DIRECT))
    assembler, found = EpisodeAssembler(1, lanes), []
    for start in range(0, 20, 4):
        found += assembler.add(start, part(whole, start, start + 4))
    assert len(found) > 400
    assert len({episode.id for episode in found}) == len(found)
    rows = np.concatenate([episode.moves.state for episode in found])
    boards = iter(np.asarray(jax.jit(jax.vmap(made.rollout.game.unpack))(rows).board).tolist())
    for episode in found:
        board, points = [-1] * 9, 0.0
        for t in range(len(episode)):
            assert next(boards) == board
            assert episode.moves.to_play[t] == t % 2
            board[int(episode.moves.action[t])] = t % 2
        lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
        for seat, sign in ((0, 1.0), (1, -1.0)):
            points += sign * any(all(board[square] == seat for square in line) for line in lines)
        assert episode.moves.ended[-1]
        assert episode.moves.points[-1] == points
        assert points or -1 not in board
