"""Values of pieces learned from nothing; files of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from aleazero.classical.alphabeta import worth_of
from aleazero.classical.values import Values, ValuesError, learn, load, save

FEW = ((1, 60), (2, 30))


@pytest.fixture(scope="module")
def learned() -> Values:
    return learn(7, 2, FEW)


@pytest.mark.slow
def test_queens_are_worth_more_than_rooks_and_those_more_than_others_from_nothing() -> None:
    _, pawn, knight, bishop, rook, queen, _ = worth_of(learn(8, 2, ((1, 600), (1, 400))).table())
    assert queen > rook > max(knight, bishop, pawn)
    assert min(pawn, knight, bishop) > 0


@pytest.mark.slow
def test_they_do_not_depend_on_who_played_which_game(learned: Values) -> None:
    alone = learn(7, 1, FEW)
    np.testing.assert_array_equal(alone.squares, learned.squares)
    assert alone.tempo == learned.tempo
    other = learn(8, 2, FEW)
    assert not np.array_equal(other.squares, learned.squares)


def test_both_sides_see_the_same_values(learned: Values) -> None:
    table = learned.table()
    turned = -table[:, ::-1][:, :, np.arange(64) ^ 56]
    np.testing.assert_array_equal(table, turned)
    assert not table[:, 6].any()  # no piece


def test_values_come_back_from_a_file(learned: Values, tmp_path: Path) -> None:
    save(learned, tmp_path / "values.safetensors", {"seed": "7"})
    again = load(tmp_path / "values.safetensors")
    np.testing.assert_allclose(again.squares, learned.squares, atol=1e-6)
    assert again.tempo == pytest.approx(learned.tempo, abs=1e-6)


@pytest.mark.parametrize("content", [b"", b"something else", b"\0" * 64])
def test_a_file_that_holds_no_values_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "values.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValuesError, match=r"values\.safetensors"):
        load(path)


def test_files_that_are_missing_misshapen_or_not_finite_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValuesError, match="nowhere"):
        load(tmp_path / "nowhere")
    path = tmp_path / "values.safetensors"
    save(Values(np.zeros((2, 5, 64)), 0.0), path, {})
    with pytest.raises(ValuesError, match="no values of pieces"):
        load(path)
    save(Values(np.full((2, 6, 64), np.nan), 0.0), path, {})
    with pytest.raises(ValuesError, match="no numbers"):
        load(path)


@pytest.mark.parametrize(
    ("given", "said"),
    [((), "--out"), (("--out", "x", "--threads", "0"), "at least 1"), (("--out", "nowhere/x"), "no folder nowhere")],
)
def test_the_command_says_what_is_wrong_before_it_plays(given: tuple[str, ...], said: str) -> None:
    command = [sys.executable, "-m", "aleazero.classical", *given]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert told.returncode == 2
    assert said in told.stderr
