"""Result records, one of each kind: read as they were, and written with the same keys and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.frozen.support import (
    RECORD_COMMANDS,
    RECORDS,
    RecordError,
    expect_none,
    kinds,
    make_record,
    misfits,
    near,
    read_json,
    read_record,
)

pytestmark = pytest.mark.slow

KINDS = sorted(path.stem for path in RECORDS.glob("*.json"))
ELSEWHERE = ("version", "commit", "dirty", "time", "hardware")  # of the program and the machine that measured


def test_there_is_one_of_each_kind() -> None:
    assert KINDS == sorted(RECORD_COMMANDS) == ["eval", "openings", "rate"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_is_read(kind: str) -> None:
    record = read_record(RECORDS / f"{kind}.json")
    assert record == read_json(RECORDS / f"{kind}.json")
    assert (record["kind"], record["schema"]) == (kind, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_is_written_as_it_was(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = read_json(RECORDS / f"{kind}.json"), make_record(tmp_path, kind)
    expect_none(misfits(layout(new), layout(old)))
    for record in (new, old):
        for key in ELSEWHERE:
            del record[key]
        for player in record["players"].values():
            del player["config"]  # of all settings: a new setting changes it
    expect_none(near(new, old))


def layout(record: dict[str, Any]) -> dict[str, str]:
    """Return the keys of a record with their types; a package without a checkout has no commit."""
    return kinds(record) | ({"commit": "text", "dirty": "boolean"} if record["commit"] is None else {})


def test_a_record_of_another_schema_is_refused_by_name(tmp_path: Path) -> None:
    text = (RECORDS / "eval.json").read_text()
    (tmp_path / "later.json").write_text(text.replace('"schema": 1', '"schema": 2'))
    with pytest.raises(RecordError, match="schema is 2; this version reads 1"):
        read_record(tmp_path / "later.json")
