from __future__ import annotations

import re
from pathlib import Path

import pytest

from aleazero.games.balatro import jit, measure

FOLDER = Path(jit.__file__).parent


def test_what_is_left_out_of_the_hash_has_nothing_to_do_with_compiled_code() -> None:
    kept = [path for path in FOLDER.glob("*.py") if path.name not in jit.UNCOMPILED]
    for name in jit.UNCOMPILED:
        source = (FOLDER / name).read_text("utf-8")
        assert not re.search(r"^@(jit|entry)\b", source, re.MULTILINE), name
        module = name.removesuffix(".py")
        # Verifying vectors imports inside functions, for speed; nothing else may read from these.
        readers = [
            path.name
            for path in kept
            if re.search(rf"^from aleazero\.games\.balatro\.{module} import", path.read_text("utf-8"), re.MULTILINE)
            or re.search(
                rf"^from aleazero\.games\.balatro import .*\b{module}\b", path.read_text("utf-8"), re.MULTILINE
            )
        ]
        assert readers == [], name


def test_the_hash_is_of_the_engine_s_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("jit.py", "rounds.py", "text.py"):
        (tmp_path / name).write_text((FOLDER / name).read_text("utf-8"), "utf-8")
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "jit.py"))
    fresh = jit.source_hash.__wrapped__
    first = fresh()
    (tmp_path / "text.py").write_text("# other words\n", "utf-8")
    assert fresh() == first
    (tmp_path / "rounds.py").write_text("# other rules\n", "utf-8")
    assert fresh() != first


@pytest.mark.long
def test_compiling_takes_less_than_ninety_seconds_and_reading_it_back_less_than_three() -> None:
    times = measure.compiling()
    assert times["first_use"]["cpu_seconds"] < 90
    assert times["cached"]["cpu_seconds"] < 3
