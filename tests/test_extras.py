"""Every extra can be installed from wheels where docs/install.md says so; nothing is installed to see it."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aleazero.cli.options import need_redis
from aleazero.core.errors import MissingExtra

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
PLATFORMS = {
    "Linux x86-64": "x86_64-manylinux_2_31",
    "Linux arm64": "aarch64-manylinux_2_31",
    "macOS arm64": "aarch64-apple-darwin",
    "Windows": "x86_64-pc-windows-msvc",
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def old_names() -> set[str]:
    """Return the extras that only stand for another one."""
    return {name for name, needs in EXTRAS.items() if not needs or re.fullmatch(r"aleazero\[\w+\]", needs[0])}


def missing_on(extra: str, platform: str, python: str) -> bool:
    """Return whether the table says that an extra has no wheels there."""
    rows = [[cell.strip() for cell in line.split("|")] for line in (ROOT / "docs/install.md").read_text().splitlines()]
    (where_not,) = [row[-2] for row in rows if len(row) > 4 and row[1] == f"`{extra}`"]
    return any(place in where_not for place in (platform, f"Python {python}"))


def resolve(extras: list[str], platform: str, python: str) -> subprocess.CompletedProcess[str]:
    """Look for wheels of everything that the extras need."""
    what = [word for extra in extras for word in ("--extra", extra)]
    where = ["--python-version", python, "--python-platform", PLATFORMS[platform], "--only-binary", ":all:"]
    uv = Path(sys.executable).with_name("uv")
    command = [uv, "pip", "compile", "pyproject.toml", *what, *where, "--no-header", "--quiet"]
    newest = os.environ | {"MACOSX_DEPLOYMENT_TARGET": "15.0"}
    return subprocess.run(command, cwd=ROOT, env=newest, capture_output=True, text=True, check=False)


PLACES = list(itertools.product(PLATFORMS, PYTHONS))
NOWHERE = (
    ("cuda", "macOS arm64", "3.13"),
    ("gnubg", "Linux x86-64", "3.14"),
    ("cuda", "Windows", "3.13"),
    ("gnubg", "Linux arm64", "3.13"),
    ("tpu", "Linux arm64", "3.13"),
    ("tpu", "macOS arm64", "3.13"),
    ("tpu", "Windows", "3.13"),
)
# Every platform and every Python once.
FEW = list(zip(PLATFORMS, PYTHONS, strict=True))


@pytest.mark.parametrize(
    ("places", "nowhere"),
    [
        pytest.param(FEW, NOWHERE[:2], id="few"),
        pytest.param(PLACES, NOWHERE, id="all", marks=pytest.mark.long),
    ],
)
def test_every_extra_resolves_where_the_table_says_so_and_nowhere_else(
    places: list[tuple[str, str]], nowhere: tuple[tuple[str, str, str], ...]
) -> None:
    """The resolver waits for the index most of the time, so all questions are asked at once."""
    there = {
        place: [extra for extra in EXTRAS if extra not in old_names() and not missing_on(extra, *place)]
        for place in places
    }
    with ThreadPoolExecutor(len(places)) as pool:
        found = {place: pool.submit(resolve, extras, *place) for place, extras in there.items()}
        missing = {(extra, *place): pool.submit(resolve, [extra], *place) for extra, *place in nowhere}
        for (platform, python), done in found.items():
            assert "all" in there[platform, python]
            assert done.result().returncode == 0, f"{platform}, {python}: {done.result().stderr}"
            newest = r"^jax==0\.10\.2$" if python == "3.11" else r"^jax==0\.12\."
            assert re.search(newest, done.result().stdout, re.MULTILINE)
        for (extra, *place), done in missing.items():
            assert missing_on(extra, *place)
            assert done.result().returncode != 0, f"{extra} has wheels for {place}: say so in docs/install.md"


def test_the_table_has_a_row_for_each_extra_and_names_the_old_ones() -> None:
    text = (ROOT / "docs/install.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == EXTRAS.keys() - old_names()
    assert all(f"`{name}`" in text for name in old_names())


def test_every_extra_that_a_message_names_brings_the_package() -> None:
    sources = [path.read_text() for path in (ROOT / "aleazero").rglob("*.py")]
    typed = {name for text in sources for name in re.findall(r"aleazero\[(\w+)\]", text)}
    assert typed <= EXTRAS.keys() - old_names()
    said = {pair for text in sources for pair in re.findall(r'MissingExtra\([^\n]*"([\w-]+)", "(\w+)"\)', text)}
    assert len(said) > 10
    for package, extra in said:
        assert package in {re.split(r"[<>=;\[ ]", needed)[0] for needed in EXTRAS[extra]}, (package, extra)


@pytest.mark.parametrize("package", ["redis", "msgpack", "backports" if sys.version_info < (3, 14) else "compression"])
def test_a_run_over_redis_names_the_extra_whichever_package_is_missing(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"{package}.*pip install 'aleazero\[cluster\]'"):
        need_redis()
