"""The documents say what is there: every module is listed, every link leads somewhere, every example runs."""

from __future__ import annotations

import contextlib
import io
import re
import time
from pathlib import Path

import pytest

from aleazero.result_record import read_record

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURE = ROOT / "docs" / "1-architecture.md"
GUIDE = ROOT / "docs" / "2-adding-a-game.md"
NOT_OURS = {"build", "dist", "__pycache__", "node_modules"}  # and whatever begins with a dot
SECONDS = 30

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(\s*([^)\s]+)[^)]*\)")
HEADING = re.compile(r"^#+\s+(.+?)\s*$", re.MULTILINE)


def ours(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return not any(part.startswith(".") or part in NOT_OURS for part in parts)


def documents() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.md") if ours(path))


def anchors(text: str) -> set[str]:
    """The names under which headings can be linked to."""
    plain = [re.sub(r"[^\w\- ]", "", title.lower()) for title in HEADING.findall(FENCED.sub("", text))]
    return {title.replace(" ", "-") for title in plain}


def broken_links(path: Path) -> list[str]:
    prose = re.sub(r"`[^`\n]*`", "", FENCED.sub("", path.read_text("utf-8")))
    wrong = []
    for link in LINK.findall(prose):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name) if name else path
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            wrong.append(link)
    return wrong


def examples(path: Path) -> list[tuple[int, str, str | None]]:
    """Python blocks: the line each begins on, its code, and the text block right behind it, if there is one."""
    text = path.read_text("utf-8")
    blocks = list(FENCED.finditer(text))
    found = []
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] != "python":
            continue
        printed = None
        if following and following[1] == "text" and not text[block.end() : following.start()].strip():
            printed = following[2]
        found.append((text.count("\n", 0, block.start(2)), block[2], printed))
    return found


def test_every_module_is_listed_and_every_listed_module_exists():
    listed = re.findall(r"^\| `(aleazero/[\w/]+\.py)` \|", ARCHITECTURE.read_text("utf-8"), re.MULTILINE)
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / "aleazero").rglob("*.py") if ours(path)}
    assert sorted(listed) == sorted(there)  # also: none is listed twice


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_paths_in_backticks_exist(path):
    named = re.findall(r"`((?:aleazero|tests|docs|scripts)/[\w./-]+)`", path.read_text("utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    assert broken_links(path) == []


def test_a_broken_link_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A b\n[one](page.md#a-b) [two](gone.md) [three](#c) [four](https://x.y) `[five](no)`\n")
    assert broken_links(page) == ["gone.md", "#c"]


def test_the_guides_examples_run_and_print_what_it_says():
    started = time.process_time()  # of this process: a busy machine makes nobody's guide longer
    namespace = {"__name__": "guide"}
    blocks = examples(GUIDE)
    assert len(blocks) > 4
    for line, code, printed in blocks:
        out = io.StringIO()
        # Empty lines in front, so that a traceback names the line of the document.
        program = compile("\n" * line + code, str(GUIDE), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(out):
            exec(program, namespace)
        if printed is not None:
            assert out.getvalue() == printed, f"the block at line {line} prints something else"
    assert time.process_time() - started < SECONDS


def test_records_of_results_can_be_read_and_were_made_from_a_commit() -> None:
    files = sorted((ROOT / "docs" / "results" / "records").glob("*.json"))
    assert files
    for file in files:
        record = read_record(file)
        assert record["commit"], file
        assert record["dirty"] is False, file
