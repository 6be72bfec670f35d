"""The rules' own look at slabs: every way to lie about a position is found in the row that lies."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

from aleazero.runtimes.legal import LegalCheck
from aleazero.runtimes.slabs import BadSlab
from tests.runtimes import wire
from tests.runtimes.support import programs, quick_programs  # noqa: F401 - fixtures

pytestmark = pytest.mark.usefixtures("quick_programs")
AT = (3, 1)


def copy_of(case: str) -> dict[str, np.ndarray]:
    return {name: array.copy() for name, array in wire.played(case).slabs[0].items()}


def finding(case: str, slab: dict[str, np.ndarray]) -> BadSlab:
    with pytest.raises(BadSlab) as caught:
        LegalCheck(wire.played(case).game, rows=2**30)(slab, "laptop")
    assert caught.value.worker == "laptop"
    return caught.value


def taken_square(slab: dict[str, np.ndarray]) -> None:
    free = set(slab["actions"][AT].tolist())
    slab["actions"][AT][-1] = next(square for square in range(9) if square not in free)


def played_elsewhere(slab: dict[str, np.ndarray]) -> None:
    free = set(slab["actions"][AT].tolist())
    slab["action"][AT] = next(square for square in range(9) if square not in free)


def listed_twice(slab: dict[str, np.ndarray]) -> None:
    places = np.flatnonzero(slab["actions"][AT] >= 0)
    slab["actions"][AT][places[1]] = slab["actions"][AT][places[0]]


def other_player(slab: dict[str, np.ndarray]) -> None:
    slab["to_play"][AT] ^= 1


def finished_game(slab: dict[str, np.ndarray]) -> None:
    game = wire.played("tictactoe").game
    state = game.init(jax.random.key(0))
    for action in (0, 3, 1, 4, 2):
        state = game.apply_action(state, np.int32(action))
    slab["state"][AT], slab["to_play"][AT] = np.asarray(game.pack(state)), int(state.to_play)
    slab["actions"][AT], slab["action"][AT] = -1, -1


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        (taken_square, "illegal", "not legal"),
        (played_elsewhere, "illegal", "not legal"),
        (listed_twice, "illegal", "twice"),
        (other_player, "state", "turn"),
        (finished_game, "state", "over"),
    ],
)
def test_a_lie_is_found_where_it_is(change: Callable[[dict[str, np.ndarray]], None], reason: str, words: str) -> None:
    slab = copy_of("tictactoe")
    change(slab)
    bad = finding("tictactoe", slab)
    assert bad.reason == reason
    assert words in bad.detail
    assert "[3, 1]" in bad.detail


def test_bits_that_no_state_packs_to_are_found() -> None:
    """A packed state of booleans ends with bits that nothing sets."""
    slab = copy_of("tictactoe")
    last = slab["state"].shape[-1] - 1
    slab["state"][(*AT, last)] |= 1
    bad = finding("tictactoe", slab)
    assert (bad.reason, "none of the game's" in bad.detail) == ("state", True)


def test_actions_before_a_roll_are_found() -> None:
    slab = copy_of("turns")
    slab["actions"][(*AT, 0)] = 0
    assert finding("turns", slab).reason == "illegal"


def test_a_sample_finds_one_lie_as_often_as_it_looks() -> None:
    slab = copy_of("tictactoe")
    other_player(slab)
    rows = slab["to_play"].size
    check = LegalCheck(wire.played("tictactoe").game, rows=rows // 4, seed=1)
    found = 0
    for _ in range(200):
        try:
            check(slab)
        except BadSlab as bad:
            found += "[3, 1]" in bad.detail
    assert 30 <= found <= 70  # 50 expected; 3.3 standard deviations either way
