"""Compare what a program says with a file that is kept: texts, and the shape of an answer in JSON."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_WORDS = {bool: "true or false", int: "integer", float: "number", str: "text", type(None): "null"}


def check_file(name: str, text: str, regenerate: bool) -> None:
    """Assert that `text` is what the file `name` beside this module holds; write it if `regenerate` is set."""
    path = HERE / name
    text = text.rstrip("\n") + "\n"
    if regenerate:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    kept = path.read_text("utf-8") if path.exists() else ""
    diff = difflib.unified_diff(kept.splitlines(), text.splitlines(), str(name), "now", lineterm="", n=1)
    assert kept == text, "\n".join(["a frozen format has changed; see CONTRIBUTING.md", *diff])


def shape_of(answer: Any, maps: Collection[str] = (), loose: Collection[str] = ()) -> str:
    """Return one line for each key of an answer, sorted: where it is, and the types that were seen there.

    The elements of a list share one line, as in `games[].name`. At the places in `maps` keys are data, written `*`;
    those in `loose` depend on the machine, and their types are left out.
    """
    found: dict[str, set[str]] = {}
    _walk(answer, "", found, maps)
    found |= {place: {"any"} for place in loose if place in found}
    return "\n".join(f"{place}: {' or '.join(sorted(kinds))}" for place, kinds in sorted(found.items()))


def _walk(value: Any, place: str, found: dict[str, set[str]], maps: Collection[str]) -> None:
    if isinstance(value, Mapping):
        if place:
            found.setdefault(place, set()).add("object" if value else "empty object")
        for key, inner in value.items():
            name = "*" if place in maps else key
            _walk(inner, f"{place}.{name}" if place else name, found, maps)
    elif isinstance(value, list):
        found.setdefault(place, set()).add("list" if value else "empty list")
        for inner in value:
            _walk(inner, f"{place}[]", found, maps)
    else:
        found.setdefault(place, set()).add(_WORDS[type(value)])
