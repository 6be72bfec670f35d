"""The replay log against real faults: tails torn at every byte, flipped bits, SIGKILL in mid-write, a full disk."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from aleazero.replay.log import BackgroundLog, ReplayLog, ReplayLogError

ROOT = Path(__file__).resolve().parent.parent.parent
DTYPES = ["bool", "float16", "float32", "float64", *(f"{kind}{n}" for kind in ("int", "uint") for n in (8, 16, 32, 64))]


def slab(number: int) -> dict[str, np.ndarray]:
    """The record of a number, which no other number has."""
    return {"rows": np.arange(number, number + 12, dtype=np.uint16).reshape(3, 4), "count": np.array(number, np.int32)}


def check(log: ReplayLog, first: int, stop: int) -> None:
    """The records are there, in order, and are the ones their numbers say."""
    records = list(log.read(first, stop))
    assert [number for number, _ in records] == list(range(first, stop))
    for number, arrays in records:
        wanted = slab(number)
        assert sorted(arrays) == sorted(wanted)
        for name, array in wanted.items():
            assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
            assert np.array_equal(arrays[name], array)


def write(folder: Path, first: int, stop: int, segment_bytes: int = 10**6) -> ReplayLog:
    log = ReplayLog(folder, segment_bytes)
    for number in range(first, stop):
        log.append(number, slab(number))
    log.close()
    return log


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("segment-*.log"))


@pytest.fixture
def record_bytes(tmp_path: Path) -> int:
    """The size of one record of `slab`."""
    write(tmp_path / "sized", 0, 1)
    return segments(tmp_path / "sized")[0].stat().st_size


@pytest.fixture
def three_a_segment(tmp_path: Path, record_bytes: int) -> Iterator[ReplayLog]:
    """Records 0 to 9 in segments that begin with 0, 3, 6 and 9."""
    log = write(tmp_path / "log", 0, 10, 3 * record_bytes)
    yield log
    log.close()


def test_records_come_back_from_the_log_and_from_the_log_opened_again(tmp_path: Path) -> None:
    log = write(tmp_path / "new" / "log", 0, 5)
    for each in (log, ReplayLog(tmp_path / "new" / "log")):
        assert (each.first_number, each.next_number) == (0, 5)
        check(each, 0, 5)
        check(each, 2, 4)
        check(each, 5, 5)


@settings(max_examples=40, deadline=None)
@given(
    arrays=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
        st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0))),
        max_size=4,
    )
)
def test_any_arrays_come_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, np.ndarray]
) -> None:
    log = ReplayLog(tmp_path_factory.mktemp("log"))
    log.append(0, arrays)
    log.append(1, {name: array.T for name, array in arrays.items()})
    log.close()
    (_, plain), (_, turned) = log.read(0, 2)
    assert sorted(plain) == sorted(turned) == sorted(arrays)
    for name, array in arrays.items():
        for back, wanted in ((plain[name], array), (turned[name], array.T)):
            assert (back.dtype, back.shape, back.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())


def test_segments_roll_over_and_are_named_by_their_first_record(
    three_a_segment: ReplayLog, tmp_path: Path, record_bytes: int
) -> None:
    paths = segments(tmp_path / "log")
    assert [path.name for path in paths] == [f"segment-{first:012d}.log" for first in (0, 3, 6, 9)]
    assert [path.stat().st_size // record_bytes for path in paths] == [3, 3, 3, 1]
    check(ReplayLog(tmp_path / "log"), 0, 10)


def test_a_record_larger_than_a_segment_gets_one_of_its_own(tmp_path: Path) -> None:
    check(write(tmp_path, 0, 3, segment_bytes=1), 0, 3)
    assert len(segments(tmp_path)) == 3


def test_numbers_must_follow_one_another(three_a_segment: ReplayLog) -> None:
    for number in (9, 11, 0):
        with pytest.raises(ReplayLogError, match=f"record {number} cannot be appended .* the next one is 10"):
            three_a_segment.append(number, slab(number))
    check(three_a_segment, 0, 10)


def test_dtypes_that_cannot_be_read_back_are_refused_by_name(tmp_path: Path) -> None:
    log = ReplayLog(tmp_path)
    wrong: dict[str, Any] = {"ok": np.zeros(1), "half": jnp.zeros(1, jnp.bfloat16), "text": np.array(["a"])}
    with pytest.raises(ReplayLogError, match="half is bfloat16, text is <U1"):
        log.append(0, wrong)
    assert log.next_number == 0


@pytest.mark.parametrize(
    ("number", "firsts"),
    [(0, [0, 3, 6, 9]), (2, [0, 3, 6, 9]), (3, [3, 6, 9]), (5, [3, 6, 9]), (9, [9]), (10, [9]), (99, [9])],
)
def test_drop_before_deletes_segments_that_nobody_needs(
    three_a_segment: ReplayLog, tmp_path: Path, number: int, firsts: list[int]
) -> None:
    three_a_segment.drop_before(number)
    assert [int(path.stem[-12:]) for path in segments(tmp_path / "log")] == firsts
    for log in (three_a_segment, ReplayLog(tmp_path / "log")):
        assert (log.first_number, log.next_number) == (firsts[0], 10)
        check(log, firsts[0], 10)
        if firsts[0]:
            with pytest.raises(ReplayLogError, match=f"record {firsts[0] - 1} is missing: .*log begins with"):
                log.read(firsts[0] - 1, 10)
    three_a_segment.append(10, slab(10))
    check(three_a_segment, firsts[0], 11)


@pytest.mark.parametrize("number", range(11))
def test_truncate_then_append_continues(three_a_segment: ReplayLog, tmp_path: Path, number: int) -> None:
    three_a_segment.truncate(number)
    for log in (three_a_segment, ReplayLog(tmp_path / "log")):
        assert log.next_number == number
        check(log, 0, number)
        with pytest.raises(ReplayLogError, match=f"record {number} is missing"):
            log.read(0, number + 1)
    for more in range(number, 12):
        three_a_segment.append(more, slab(more))
    three_a_segment.flush()
    check(three_a_segment, 0, 12)
    check(ReplayLog(tmp_path / "log"), 0, 12)


def test_truncating_everything_left_remembers_the_next_number(three_a_segment: ReplayLog, tmp_path: Path) -> None:
    three_a_segment.drop_before(7)
    three_a_segment.truncate(6)
    assert ReplayLog(tmp_path / "log").next_number == 6
    three_a_segment.append(6, slab(6))
    check(three_a_segment, 6, 7)


def test_truncating_to_where_the_log_does_not_reach(three_a_segment: ReplayLog, tmp_path: Path) -> None:
    three_a_segment.drop_before(3)
    for number in (2, 11):
        with pytest.raises(ReplayLogError, match=f"cannot be truncated to {number}: it begins with record 3, and 10"):
            three_a_segment.truncate(number)
    check(three_a_segment, 3, 10)
    empty = ReplayLog(tmp_path / "empty")
    empty.truncate(0)
    with pytest.raises(ReplayLogError, match="cannot be truncated to 1"):
        empty.truncate(1)


def test_a_tail_torn_at_any_byte_is_ignored_and_written_over(tmp_path: Path, record_bytes: int) -> None:
    write(tmp_path / "log", 0, 3)
    path = segments(tmp_path / "log")[0]
    whole = path.read_bytes()
    for length in range(2 * record_bytes, 3 * record_bytes):
        path.write_bytes(whole[:length])
        log = ReplayLog(tmp_path / "log")
        assert path.stat().st_size == length  # opening changes nothing
        assert log.next_number == 2
        check(log, 0, 2)
        if length % 16 == 0:
            log.truncate(2)
            assert path.stat().st_size == 2 * record_bytes
        log.append(2, slab(2))
        log.close()
        assert path.read_bytes() == whole


def test_zeros_that_a_loss_of_power_left_are_a_torn_tail(tmp_path: Path, record_bytes: int) -> None:
    write(tmp_path / "log", 0, 3)
    path = segments(tmp_path / "log")[0]
    path.write_bytes(path.read_bytes()[: 2 * record_bytes] + bytes(5000))
    check(ReplayLog(tmp_path / "log"), 0, 2)
    check(write(tmp_path / "log", 2, 4), 0, 4)


def test_an_empty_last_segment_tells_the_next_number(three_a_segment: ReplayLog, tmp_path: Path) -> None:
    three_a_segment.drop_before(9)
    segments(tmp_path / "log")[0].write_bytes(b"")
    assert ReplayLog(tmp_path / "log").next_number == 9


def test_a_flipped_bit_anywhere_is_found_and_the_record_is_named(tmp_path: Path, record_bytes: int) -> None:
    log = write(tmp_path / "log", 0, 4)
    path = segments(tmp_path / "log")[0]
    whole = path.read_bytes()
    for byte in range(record_bytes, 2 * record_bytes):
        damaged = bytearray(whole)
        damaged[byte] ^= 1 << (byte % 8)
        path.write_bytes(damaged)
        for each in (log, ReplayLog(tmp_path / "log")):
            check(each, 0, 1)
            with pytest.raises(ReplayLogError, match=f"record 1 is (missing or )?damaged: {path}"):
                list(each.read(0, 4))
        check(log, 2, 4)


def test_a_record_in_the_place_of_another_is_found(tmp_path: Path, record_bytes: int) -> None:
    log = write(tmp_path / "log", 0, 3)
    path = segments(tmp_path / "log")[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:record_bytes] + whole[2 * record_bytes :] + whole[record_bytes : 2 * record_bytes])
    assert ReplayLog(tmp_path / "log").next_number == 1
    with pytest.raises(ReplayLogError, match="record 1 is damaged"):
        list(log.read(0, 3))


def test_damage_in_an_old_segment_matters_only_where_it_is_needed(
    three_a_segment: ReplayLog, tmp_path: Path, record_bytes: int
) -> None:
    old = segments(tmp_path / "log")[1]
    old.write_bytes(old.read_bytes()[: record_bytes + 10])
    log = ReplayLog(tmp_path / "log")
    assert log.next_number == 10
    check(log, 6, 10)
    check(log, 0, 4)
    with pytest.raises(ReplayLogError, match=f"record 4 is missing or damaged: {old} has intact records 3 to 3"):
        log.read(0, 10)
    with pytest.raises(ReplayLogError, match=f"record 4 is missing or damaged: {old}"):
        log.truncate(5)
    log.truncate(6)
    assert log.next_number == 6
    log.close()


def test_a_segment_deleted_behind_our_back(three_a_segment: ReplayLog, tmp_path: Path) -> None:
    segments(tmp_path / "log")[1].unlink()
    with pytest.raises(ReplayLogError, match=r"record 3 cannot be read from .*segment-000000000003"):
        list(three_a_segment.read(0, 10))


# Kills and a full disk, for real.

APPENDER = f"""
import sys
from pathlib import Path
import numpy as np
from aleazero.replay.log import ReplayLog, ReplayLogError

{inspect.getsource(slab)}
log = ReplayLog(Path(sys.argv[1]), 3000)
while True:
    number = log.next_number
    log.append(number, slab(number))
    if number % 5 == 0:
        log.flush()
        print(number, flush=True)
"""

FULL_DISK = f"""
import resource, sys
from pathlib import Path
import numpy as np
from aleazero.replay.log import ReplayLog, ReplayLogError

{inspect.getsource(slab)}
log = ReplayLog(Path(sys.argv[1]))
log.append(0, slab(0))
log.append(1, slab(1))
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, hard))
for attempt in range(2):
    try:
        log.append(2, {{"large": np.zeros(5_000, np.int8)}})
    except ReplayLogError as error:
        print(error)
    assert log.next_number == 2
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
log.append(2, slab(2))
log.close()
"""


def start(script: str, folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", script, str(folder)], env=environment, stdout=-1, text=True)


def test_what_was_flushed_survives_a_kill(tmp_path: Path) -> None:
    flushed = -1
    for _ in range(5):
        with start(APPENDER, tmp_path) as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            time.sleep(random.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
            said = [int(line) for line in process.stdout.read().splitlines()]
        assert process.returncode == -signal.SIGKILL
        flushed = max(flushed, *said, 0)
        log = ReplayLog(tmp_path)
        assert log.next_number > flushed
        check(log, 0, log.next_number)
    assert flushed > 0
    assert len(segments(tmp_path)) > 1


def test_a_full_disk_names_the_record_and_leaves_the_others(tmp_path: Path) -> None:
    with start(FULL_DISK, tmp_path) as process:
        out, _ = process.communicate()
    assert process.returncode == 0
    lines = out.splitlines()
    assert len(lines) == 2
    assert all("could not write record 2 " in line and "File too large" in line for line in lines)
    check(ReplayLog(tmp_path), 0, 3)


# The thread.


@pytest.fixture
def background(tmp_path: Path) -> Iterator[BackgroundLog]:
    background = BackgroundLog(ReplayLog(tmp_path, 2000), queue_records=2)
    yield background
    with contextlib.suppress(ReplayLogError):
        background.close()


def test_the_thread_writes_numpy_arrays_jax_arrays_and_what_functions_make(
    background: BackgroundLog, tmp_path: Path
) -> None:
    for number in range(0, 30, 3):
        background.append(number, slab(number))
        background.append(number + 1, {name: jnp.asarray(array) for name, array in slab(number + 1).items()})
        background.append(number + 2, functools.partial(slab, number + 2))
    background.flush()
    log = ReplayLog(tmp_path)
    assert log.next_number == 30
    check(log, 0, 30)


def test_append_waits_only_when_the_queue_is_full(background: BackgroundLog) -> None:
    gate, done = threading.Event(), threading.Event()

    def slow() -> dict[str, np.ndarray]:
        gate.wait()
        return slab(0)

    background.append(0, slow)
    background.append(1, slab(1))
    background.append(2, slab(2))  # one in the thread's hands and two in the queue: none of them has waited

    def one_more() -> None:
        background.append(3, slab(3))
        done.set()

    writer = threading.Thread(target=one_more)
    writer.start()
    waited = not done.wait(0.1)
    gate.set()
    assert waited
    assert done.wait(60)
    writer.join()
    background.flush()


def test_flush_waits_for_the_slowest(background: BackgroundLog, tmp_path: Path) -> None:
    def slow() -> dict[str, np.ndarray]:
        time.sleep(0.1)
        return slab(0)

    background.append(0, slow)
    background.flush()
    check(ReplayLog(tmp_path), 0, 1)


def fail() -> dict[str, np.ndarray]:
    raise ValueError("the device is gone")


def append_until_refused(background: BackgroundLog, first: int) -> None:
    for number in range(first, first + 1000):
        background.append(number, slab(number))
        time.sleep(0.001)


@pytest.mark.parametrize("call", ["append", "flush", "close"])
def test_an_error_in_the_thread_is_raised_by_the_next_call(
    background: BackgroundLog, tmp_path: Path, call: str
) -> None:
    background.append(0, slab(0))
    background.append(1, fail)
    calls = {
        "append": lambda: append_until_refused(background, 2),
        "flush": background.flush,
        "close": background.close,
    }
    with pytest.raises(ReplayLogError, match="record 1 was not written in the background: the device is gone") as e:
        calls[call]()
    assert isinstance(e.value.__cause__, ValueError)
    log = ReplayLog(tmp_path)
    assert log.next_number == 1
    check(log, 0, 1)


def test_after_an_error_nothing_blocks_and_nothing_more_is_written(background: BackgroundLog, tmp_path: Path) -> None:
    background.append(0, fail)
    with pytest.raises(ReplayLogError, match="record 0"):
        append_until_refused(background, 1)
    with pytest.raises(ReplayLogError, match="record 0"):
        background.flush()
    with pytest.raises(ReplayLogError, match="record 0"):
        background.close()
    assert ReplayLog(tmp_path).next_number == 0


def test_a_wrong_number_surfaces_too(background: BackgroundLog) -> None:
    background.append(5, slab(5))
    with pytest.raises(ReplayLogError, match=r"record 5 .*the next one is 0"):
        background.flush()


def test_close_writes_what_is_queued_and_ends_the_thread(tmp_path: Path) -> None:
    background = BackgroundLog(ReplayLog(tmp_path))
    for number in range(4):
        background.append(number, slab(number))
    background.close()
    background.close()
    assert "replay-log" not in {thread.name for thread in threading.enumerate()}
    check(ReplayLog(tmp_path), 0, 4)
    with pytest.raises(ReplayLogError, match="closed"):
        background.append(4, slab(4))
    with pytest.raises(ReplayLogError, match="closed"):
        background.flush()


def test_the_log_may_be_pruned_between_a_flush_and_the_next_append(tmp_path: Path) -> None:
    log = ReplayLog(tmp_path, segment_bytes=1)
    background = BackgroundLog(log)
    for number in range(6):
        background.append(number, slab(number))
    background.flush()
    log.drop_before(4)
    background.append(6, slab(6))
    background.close()
    check(log, 4, 7)
    assert log.first_number == 4
