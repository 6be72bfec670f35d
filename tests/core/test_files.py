"""Files that are there whole or not at all."""

from __future__ import annotations

import concurrent.futures
import stat
from pathlib import Path

import pytest

from aleazero.core.files import replace_file


def test_a_file_is_replaced_with_the_mode_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "token"
    for content in (b"old", b"new"):
        replace_file(path, content, mode=0o600)
        assert path.read_bytes() == content
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_replacement_that_fails_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b"old")
    with pytest.raises(TypeError):
        replace_file(path, "no bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_several_may_write_one_file_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    contents = [bytes([number]) * 10_000 for number in range(16)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: replace_file(path, content), contents))
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]
