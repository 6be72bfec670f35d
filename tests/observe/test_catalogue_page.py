"""The table of metrics in the documentation is the catalogue's."""

from __future__ import annotations

from pathlib import Path

from aleazero.observe.catalogue import CATALOGUE, as_table

PAGE = Path(__file__).parents[2] / "docs" / "7-operations.md"
MARK = "<!-- written from the catalogue: pytest --regenerate tests/observe/test_catalogue_page.py -->\n"


def test_the_table_is_current(regenerate: bool) -> None:
    text = PAGE.read_text("utf-8")
    before, mark, table = text.partition(MARK)
    assert mark
    if regenerate:
        PAGE.write_text(before + MARK + "\n" + as_table(), "utf-8")
        return
    assert table.strip() == as_table().strip()
    assert table.count("| `alea_") == len(CATALOGUE)
