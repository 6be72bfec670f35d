"""A replay log in several segments, with every dtype that it may hold: read and written as it was."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frozen.support import (
    REPLAY,
    ReplayLog,
    expect_none,
    log_records,
    misfits,
    read_json,
    row_digests,
    shape_text,
    write_log,
)


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    facts = read_json(REPLAY / "log.json")
    assert isinstance(facts, dict)
    return facts


def test_records_are_read_row_by_row(kept: dict[str, Any], tmp_path: Path) -> None:
    log = ReplayLog(Path(shutil.copytree(REPLAY / "log", tmp_path / "log")))
    assert (log.first_number, log.next_number) == (0, 5)
    for number, record in log.read(0, 5):
        expect_none(misfits({name: shape_text(array) for name, array in record.items()}, kept["fields"]))
        assert row_digests(record) == kept["rows"][number]
        assert int(record["source"]) == number % 2


def test_the_same_records_are_written_to_the_same_bytes(kept: dict[str, Any], tmp_path: Path) -> None:
    segments = log_records(REPLAY / "log")
    assert {name: len(records) for name, records in segments.items()} == kept["segments"]
    records = [record for found in segments.values() for record in found]
    write_log(tmp_path / "log", records, kept["segment_bytes"])
    again = log_records(tmp_path / "log")
    assert list(again) == list(segments)
    for name, found in again.items():
        for one, other in zip(found, segments[name], strict=True):
            assert {key: shape_text(array) for key, array in one.items()} == kept["fields"]
            assert row_digests(one) == row_digests(other)
        assert (tmp_path / "log" / name).read_bytes() == (REPLAY / "log" / name).read_bytes()


def test_a_log_is_appended_to(kept: dict[str, Any], tmp_path: Path) -> None:
    """A resumed run writes behind what an earlier version wrote."""
    folder = Path(shutil.copytree(REPLAY / "log", tmp_path / "log"))
    (*_, last) = log_records(folder).values()
    log = ReplayLog(folder)
    log.append(5, last[-1])
    log.close()
    numbers = [row_digests(record) for found in log_records(folder).values() for record in found]
    assert numbers == [*kept["rows"], kept["rows"][-1]]
    np.testing.assert_array_equal(next(ReplayLog(folder).read(5, 6))[1]["of_int64"], last[-1]["of_int64"])
