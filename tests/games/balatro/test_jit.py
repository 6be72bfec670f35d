from __future__ import annotations

import os
import re
import subprocess
import sys
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


PROGRAM = """
import resource, sys
from aleazero.games.balatro import jit
assert not jit.PLAIN
if sys.argv[1] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
sys.path.insert(0, sys.argv[2])
import some
print(some.add(2, 3))
"""


def test_a_damaged_cache_and_one_without_room_are_compiled_anew(tmp_path: Path) -> None:
    (tmp_path / "some.py").write_text(
        "from aleazero.games.balatro.jit import entry\n@entry\ndef add(a, b):\n    return a + b\n"
    )
    environment = {**os.environ, "ALEA_BALATRO_CACHE": str(tmp_path / "cache"), "ALEA_BALATRO_PLAIN": "0"}

    def run(how: str) -> tuple[str, str]:
        command = [sys.executable, "-c", PROGRAM, how, str(tmp_path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip(), done.stderr

    answer, said = run("full")
    assert answer == "5"
    assert "compiled code is not kept" in said
    assert run("room") == ("5", "")
    for path in (tmp_path / "cache").rglob("*.nb*"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    answer, said = run("room")
    assert answer == "5"
    assert "is damaged, and made anew" in said
    assert run("room") == ("5", ""), "and is whole again"


@pytest.mark.long
def test_compiling_takes_less_than_ninety_seconds_and_reading_it_back_less_than_three() -> None:
    times = measure.compiling()
    assert times["first_use"]["cpu_seconds"] < 90
    assert times["cached"]["cpu_seconds"] < 3
