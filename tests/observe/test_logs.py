"""What `aleazero` logs: to the run's file in words or JSON, warnings to standard error, and nothing left behind."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import time
from collections.abc import Iterator

import pytest

from aleazero.core.errors import UnknownName
from aleazero.observe.logs import configure_logging
from tests.observe.test_jsonl import no_file_longer_than

LOGGER = logging.getLogger("aleazero.somewhere")


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """Every test leaves the logger as it was, or fails."""
    logger = logging.getLogger("aleazero")
    before = logger.level, logger.propagate, list(logger.handlers)
    yield
    assert (logger.level, logger.propagate, logger.handlers) == before


def test_text_for_people(tmp_path, capsys):
    path = tmp_path / "alea.log"
    path.write_text("from an earlier stretch\n")
    undo = configure_logging(path, json_lines=False, level="info")
    LOGGER.debug("too small")
    LOGGER.info("began with %d games", 64)
    LOGGER.warning("é is slow")
    undo()
    LOGGER.error("after the end")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "from an earlier stretch"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO aleazero\.somewhere: began with 64 games", lines[1])
    assert lines[2].endswith(" WARNING aleazero.somewhere: é is slow")
    assert len(lines) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[0].endswith(" WARNING aleazero.somewhere: é is slow")
    assert "began" not in said.err


def test_json_lines(tmp_path):
    path = tmp_path / "alea.log"
    undo = configure_logging(path, json_lines=True, level="DEBUG")
    before = time.time()
    LOGGER.debug("two\nlines and a %s", '"quote"')
    try:
        raise ValueError("the cause")
    except ValueError:
        LOGGER.exception("it failed")
    undo()
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert before - 1 <= first.pop("time") <= time.time()
    assert first == {"level": "DEBUG", "logger": "aleazero.somewhere", "message": 'two\nlines and a "quote"'}
    assert (second["level"], second["message"]) == ("ERROR", "it failed")
    assert second["traceback"].endswith("ValueError: the cause")


def test_configuring_twice_says_everything_once(tmp_path, capsys):
    first, second = tmp_path / "first.log", tmp_path / "second.log"
    undo_first = configure_logging(first, json_lines=False, level="INFO")
    for _ in range(2):
        undo = configure_logging(second, json_lines=False, level="INFO")
    undo_first()  # no longer its to undo
    LOGGER.warning("once")
    assert first.read_text() == ""
    assert second.read_text().count("once") == 1
    assert capsys.readouterr().err.count("once") == 1
    undo()
    undo()


def test_a_root_handler_does_not_repeat_it(tmp_path):
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    logging.getLogger().addHandler(handler)
    try:
        undo = configure_logging(None, json_lines=False, level="INFO")
        LOGGER.warning("for aleazero")
        undo()
        LOGGER.warning("for the root again")
    finally:
        logging.getLogger().removeHandler(handler)
    assert heard.getvalue() == "for the root again\n"


def test_without_a_file_warnings_go_where_standard_error_is_at_the_time(monkeypatch):
    undo = configure_logging(None, json_lines=True, level="INFO")
    replaced = io.StringIO()
    monkeypatch.setattr(sys, "stderr", replaced)
    LOGGER.warning("to the new one")
    LOGGER.info("nowhere")
    undo()
    assert [json.loads(line)["message"] for line in replaced.getvalue().splitlines()] == ["to the new one"]


def test_the_level_holds_for_standard_error_too(capsys):
    undo = configure_logging(None, json_lines=False, level="ERROR")
    LOGGER.warning("below")
    LOGGER.error("above")
    undo()
    assert "below" not in (said := capsys.readouterr().err)
    assert "above" in said


def test_an_unknown_level_changes_nothing(tmp_path, capsys):
    undo = configure_logging(tmp_path / "alea.log", json_lines=False, level="INFO")
    with pytest.raises(UnknownName, match="unknown log level 'WARN': did you mean 'WARNING'"):
        configure_logging(None, json_lines=False, level="WARN")
    LOGGER.info("still here")
    undo()
    assert "still here" in (tmp_path / "alea.log").read_text()


def test_a_full_disk_costs_lines_and_is_said_once(tmp_path, capsys):
    path = tmp_path / "alea.log"
    undo = configure_logging(path, json_lines=False, level="INFO")
    LOGGER.info("before")
    with no_file_longer_than(path.stat().st_size):
        for _ in range(3):
            LOGGER.info("while it is full")
    LOGGER.info("after")
    with no_file_longer_than(path.stat().st_size):
        LOGGER.info("again")
        undo()  # with nothing that could fail now
    assert [line.rpartition(" ")[2] for line in path.read_text().splitlines()] == ["before", "after"]
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "alea.log cannot be written to" in said[0]
