"""A measurement in chunks: every chunk is played, and counted once, whoever comes and goes."""

from __future__ import annotations

import random
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aleazero.runtimes.redis.evaluation import LEND_SECONDS, PREVIOUS, Chunk, Evaluation


def evaluation(
    pairs: int = 40, previous: int = -1, opponents: tuple[str, ...] = ("random", "gnubg:ply=0")
) -> Evaluation:
    return Evaluation(9, 100, 1.0, [*opponents, PREVIOUS], previous=previous, pairs=pairs, seed=3)


def played(chunk: Chunk) -> list[list[float]]:
    """Points that say which chunk they are of."""
    return [[chunk.number + row / 100, -1.0] for row in range(chunk.pairs)]


def test_a_match_is_cut_into_chunks_of_one_size() -> None:
    job = evaluation(previous=4)
    assert job.opponents == ["random", "gnubg:ply=0", PREVIOUS]
    assert [chunk.pairs for chunk in job.chunks] == [16] * 9
    assert [chunk.number for chunk in job.chunks] == list(range(9))
    assert {chunk.against for chunk in job.chunks[:6]} == {-1}
    assert {chunk.against for chunk in job.chunks[6:]} == {4}
    assert len({chunk.seed for chunk in job.chunks}) == 9, "every chunk has other games"
    assert evaluation(pairs=3).chunks[0].pairs == 3
    assert PREVIOUS not in evaluation().opponents


@given(st.integers(1, 60), st.integers(0, 10**6))
def test_every_game_counts_once_whoever_comes_and_goes(pairs: int, seed: int) -> None:
    draw = random.Random(seed)
    job, now, sent = evaluation(pairs, opponents=("random",)), 0.0, []
    late: list[tuple[str, Chunk]] = []
    while not job.done(["random"]):
        now += draw.choice([0.5, 30.0, LEND_SECONDS + 1])
        worker = draw.choice(["a", "b", "c"])
        job.take_back([w for w in ("a", "b", "c") if draw.random() < 0.7], now)
        chunk = job.hand_out(worker, ["random"], now)
        if draw.random() < 0.3 and chunk is not None:
            late.append((worker, chunk))
        for _, result in ([(worker, chunk)] if chunk and draw.random() < 0.6 else []) + (
            [late.pop()] if late and draw.random() < 0.3 else []
        ):
            if job.take(result.number, played(result), None):
                sent.append(result.number)
        if draw.random() < 0.2:
            job = Evaluation.of(msgpack.unpackb(msgpack.packb(job.state())))  # the head was killed
    assert sorted(sent) == [chunk.number for chunk in job.chunks]
    (match,) = job.matches()
    wanted = np.array([row for chunk in job.chunks for row in played(chunk)])[:pairs]
    np.testing.assert_array_equal(match.points, wanted)


def test_nobody_gets_what_another_has_or_what_it_cannot_play() -> None:
    job = evaluation()
    first, second = job.hand_out("a", ["random"], 0.0), job.hand_out("b", ["random"], 0.0)
    assert first is not None
    assert second is not None
    assert (first.number, second.number) == (0, 1)
    assert job.hand_out("a", ["random"], 1.0) == first, "it has one already"
    job.hand_out("c", ["random"], 1.0)
    assert job.hand_out("d", ["random"], 1.0) is None
    assert (job.hand_out("d", ["gnubg:ply=0"], 1.0) or first).opponent == "gnubg:ply=0"


def test_a_loan_runs_out() -> None:
    job = evaluation(pairs=16, opponents=("random",))
    chunk = job.hand_out("a", ["random"], 0.0)
    job.take_back(["a", "b"], LEND_SECONDS - 1)
    assert job.hand_out("b", ["random"], LEND_SECONDS - 1) is None
    job.take_back(["a", "b"], LEND_SECONDS + 1)
    assert job.hand_out("b", ["random"], LEND_SECONDS + 1) == chunk
    job.take_back(["a"], LEND_SECONDS + 2)
    assert job.hand_out("a", ["random"], LEND_SECONDS + 2) == chunk, "whoever is dead has nothing"


def test_what_nobody_can_play_is_left_out() -> None:
    job = evaluation(pairs=16)
    assert not job.done(["random"])
    assert job.take(0, played(job.chunks[0]), None)
    assert job.done(["random"])
    assert not job.done(["random", "gnubg:ply=0"])
    assert [match.opponent for match in job.matches()] == ["random"]


@pytest.mark.parametrize(
    ("number", "points"),
    [
        (-1, [[0.0, 0.0]] * 16),
        (2, [[0.0, 0.0]] * 16),
        (True, [[0.0, 0.0]] * 16),
        ("0", [[0.0, 0.0]] * 16),
        (0, [[0.0, 0.0]] * 15),
        (0, [[0.0]] * 16),
        (0, [[0.0, float("nan")]] * 16),
        (0, [["1", 0.0]] * 16),
        (0, None),
    ],
)
def test_results_that_are_none_are_not_counted(number: Any, points: Any) -> None:
    job = evaluation(pairs=16)
    assert not job.take(number, points, None)
    assert job.results == {}


def test_games_that_were_stopped_and_luck_come_through() -> None:
    job = evaluation(pairs=2, opponents=("random",))
    assert job.take(0, [[None, 1.0], [0.5, -1.0]], [[0.1, 0.2], [0.3, None]])
    (match,) = job.matches()
    np.testing.assert_array_equal(match.points, [[np.nan, 1.0], [0.5, -1.0]])
    assert match.luck is not None
    np.testing.assert_array_equal(match.luck, [[0.1, 0.2], [0.3, np.nan]])
