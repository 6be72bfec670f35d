from __future__ import annotations

import json
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aleazero.core.errors import ConfigError
from aleazero.games.balatro import keys, rng
from aleazero.games.balatro.layout import OK, RECORD, STREAMS, new_batch
from aleazero.games.balatro.vectors_rng import differences, seeded_batch

VECTORS = json.loads((Path(__file__).parents[2] / "golden/balatro/rng.json").read_text())["vectors"]


def test_every_vector_is_met_to_the_last_bit() -> None:
    assert len(VECTORS) == 100
    assert [line for vector in VECTORS for line in differences(vector)] == []


@given(st.floats(0, 1, exclude_max=True))
def test_rounding_is_that_of_printing_and_reading_back(x: float) -> None:
    exact = Decimal(x).quantize(Decimal("1e-13"), ROUND_HALF_EVEN)
    assert rng.round13(x) == float(exact)


def test_an_intermediate_zero_gives_nan_as_in_the_game() -> None:
    letters = np.array(list(b"erratic7LB2WVPK"), np.int64)
    assert np.isnan(rng.hash_bytes(letters, len(letters)))
    game = seeded_batch("7LB2WVPK")[0]
    draws = [rng.roll(game, keys.K_ERRATIC) for _ in range(3)]
    assert draws[0] == draws[1] == draws[2]
    assert 0 <= draws[0] < 1


def test_names_of_streams() -> None:
    assert keys.spelled(keys.K_SHOP_TYPE, 3) == "cdt3"
    assert keys.spelled(int(keys.RARITY[keys.S_SHO]), 1) == "rarity1sho"
    assert keys.spelled(int(keys.JOKER[keys.S_BUF, 2]), 4) == "Joker3buf4"
    assert keys.spelled(keys.K_LEGENDARY, 4) == "Joker4"
    names = {keys.spelled(key, 1) for key in range(keys.NUM_KEYS)}
    assert len(names) == keys.NUM_KEYS


def test_a_resample_is_a_stream_of_its_own_that_goes_on() -> None:
    game = seeded_batch("7LB2WVPK")[0]
    letters = np.array(list(b"Voucher1_resample27LB2WVPK"), np.int64)
    first = rng.stream(game, keys.K_VOUCHER, 2)
    start = rng.advance(rng.hash_bytes(letters, len(letters)))
    assert first == (start + float(game.hashed_seed)) / 2
    assert rng.stream(game, keys.K_VOUCHER, 2) == (rng.advance(start) + float(game.hashed_seed)) / 2
    assert rng.stream(game, keys.K_VOUCHER, 3) not in (first,)


def test_old_antes_are_forgotten_and_others_go_on() -> None:
    game, twin = seeded_batch("ALEEB")[0], seeded_batch("ALEEB")[0]
    for ante in range(1, 5):
        for state in (game, twin):
            state.ante = ante
            rng.roll(state, keys.K_SHOP_TYPE)
            rng.roll(state, keys.K_BOSS)
    rng.forget_old_streams(game)
    assert (int(twin.streams), int(game.streams)) == (5, 4)
    for ante in (2, 3, 4):
        game.ante = twin.ante = ante
        assert rng.roll(game, keys.K_SHOP_TYPE) == rng.roll(twin, keys.K_SHOP_TYPE)
    assert rng.roll(game, keys.K_BOSS) == rng.roll(twin, keys.K_BOSS)


def test_too_many_streams_raise_an_error_flag() -> None:
    game = seeded_batch("ALEEB")[0]
    for times in range(STREAMS):
        rng.stream(game, keys.K_TAG, times + 2)
    assert int(game.error) == OK
    rng.stream(game, keys.K_BOSS, 0)
    assert int(game.error) != OK


@pytest.mark.parametrize(("typed", "read"), [("2k9h9hn", "2K9H9HN"), (" AB0 ", "ABO"), ("11111111", "11111111")])
def test_seeds_are_read_as_the_game_reads_them(typed: str, read: str) -> None:
    assert rng.check_seed(typed) == read


@pytest.mark.parametrize("seed", ["", "123456789", "AB-C", "ÄB"])
def test_bad_seeds_are_rejected_with_the_alphabet(seed: str) -> None:
    with pytest.raises(ConfigError, match="123456789ABC"):
        rng.check_seed(seed)


def test_a_game_fits_six_kilobytes() -> None:
    assert RECORD.itemsize <= 6 * 1024
    assert new_batch(4096).nbytes < 100e6
