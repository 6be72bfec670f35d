"""Labelled decisions: what plays cost, files in and out, labels by GNU Backgammon."""

from __future__ import annotations

import json

import jax.numpy as jnp
import numpy as np
import pytest

from aleazero import decisions as decided
from aleazero.core.errors import ConfigError
from aleazero.games.backgammon.boards import afterstates, rolled, to_boards
from aleazero.games.registry import make_game

START = np.zeros((2, 25), int)
for point, number in ((24, 2), (13, 5), (8, 3), (6, 5)):
    START[:, point - 1] = number


def played(*steps: tuple[int, int]) -> np.ndarray:
    """The start after the mover's steps from point to point."""
    after = START.copy()
    for source, target in steps:
        after[1, source - 1] -= 1
        after[1, target - 1] += 1
    return after


POINT = played((8, 5), (6, 5))
RUN = played((24, 20))
SPLIT = played((24, 23), (24, 21))


class Stubborn:
    """Leaves the same position whatever it is asked."""

    name = "stubborn"

    def __init__(self, after: np.ndarray) -> None:
        self.after, self.asked = after, []

    def turn(self, states, lanes, keys):
        self.asked += to_boards(states)[np.asarray(lanes)].tolist()
        return afterstates(np.broadcast_to(self.after, (len(lanes), 2, 25)), np.asarray(states.to_play))


def decision(**changes) -> decided.Decision:
    fields = {
        "board": START,
        "dice": np.array([3, 1]),
        "after": np.stack([POINT, RUN]),
        "equity": np.array([0.16, 0.01]),
    }
    return decided.Decision(**(fields | changes))


@pytest.mark.parametrize(("made", "lost", "outside"), [(POINT, 0.0, 0), (RUN, 0.15, 0), (SPLIT, 0.15, 1)])
def test_a_play_costs_the_gap_to_the_best_and_one_outside_the_gap_to_the_worst(made, lost, outside):
    found = decided.error_rate(Stubborn(made), [decision()])
    assert found.lost.value == pytest.approx(lost)
    assert (found.decisions, found.outside) == (1, outside)


def test_every_decision_is_asked_once_whatever_the_batch():
    player = Stubborn(POINT)
    count = decided.BATCH + 3
    found = decided.error_rate(player, [decision()] * count)
    assert found.decisions == count == len(player.asked)
    assert player.asked[0] == START.tolist()


def test_the_interval_is_that_of_a_mean():
    worth = [np.array([0.5, 0.5 - cost]) for cost in (0.0, 0.1, 0.2, 0.3)]
    found = decided.error_rate(Stubborn(RUN), [decision(equity=equity) for equity in worth]).lost
    spread = 1.96 * np.std([0.0, 0.1, 0.2, 0.3], ddof=1) / 2
    assert (found.value, found.low, found.high) == pytest.approx((0.15, 0.15 - spread, 0.15 + spread))


def test_a_file_is_read_as_it_was_written(tmp_path):
    file = tmp_path / "decisions.jsonl"
    decided.write(file, [decision(), decision(dice=np.array([6, 6]))])
    first, second = decided.read(file)
    for name in ("board", "dice", "after", "equity"):
        assert np.array_equal(getattr(first, name), getattr(decision(), name))
    assert second.dice.tolist() == [6, 6]


def entry(**changes) -> dict:
    candidates = [{"after": POINT.tolist(), "equity": 0.1}]
    return {"position": START.tolist(), "dice": [1, 3], "candidates": candidates} | changes


def crowded() -> list:
    board = START.copy()
    board[1, 0] = 1
    return board.tolist()


def shared() -> list:
    board = START.copy()
    board[1, 5] -= 1
    board[1, 0] += 1
    return board.tolist()


BAD = {
    "no JSON": "{",
    "'dice' is missing": json.dumps({k: v for k, v in entry().items() if k != "dice"}),
    "dice are [0, 7]": json.dumps(entry(dice=[0, 7])),
    "no candidates": json.dumps(entry(candidates=[])),
    "two lists of 25": json.dumps(entry(position=[[0] * 24, [0] * 24])),
    "more than 15": json.dumps(entry(position=crowded())),
    "both sides hold": json.dumps(entry(position=shared())),
    "over": json.dumps(entry(position=[[0] * 25, START[1].tolist()])),
    "not a number of points": json.dumps(entry(candidates=[{"after": POINT.tolist(), "equity": 3.5}])),
}


@pytest.mark.parametrize("says", BAD)
def test_a_bad_line_is_named(tmp_path, says):
    file = tmp_path / "decisions.jsonl"
    file.write_text(json.dumps(entry()) + "\n" + BAD[says] + "\n")
    expected = "line 2: Expecting" if says == "no JSON" else f"line 2: .*{says}".replace("[", r"\[").replace("]", r"\]")
    with pytest.raises(ConfigError, match=expected):
        decided.read(file)


def test_all_bad_lines_are_named_and_a_missing_or_empty_file_is_too(tmp_path):
    file = tmp_path / "decisions.jsonl"
    file.write_text("{}\n" * 12)
    with pytest.raises(ConfigError, match=r"line 1: (.|\n)*line 10: (.|\n)*and 2 more"):
        decided.read(file)
    file.write_text("\n")
    with pytest.raises(ConfigError, match="there are none"):
        decided.read(file)
    with pytest.raises(ConfigError, match="No such file"):
        decided.read(tmp_path / "absent")


def test_labels_are_gnu_backgammons_and_hold_the_play_made():
    gnubg = pytest.importorskip("aleazero.engines.gnubg")
    pytest.importorskip("gnubg_nn")
    worst = gnubg.ranked(START, np.array([3, 1]))[0][-1]
    (labelled,) = decided.label([(START, np.array([3, 1]), worst)], processes=1)
    best = labelled.after[labelled.equity.argmax()]
    assert np.array_equal(best, POINT)  # every book says so
    assert (labelled.after == worst).all((1, 2)).any()
    assert len(labelled.equity) <= decided.MOST + 1
    assert labelled.equity == pytest.approx(gnubg.Gnubg().after_equities(labelled.after, 2))


def test_own_decisions_are_unforced_positions_of_the_players_games():
    pytest.importorskip("gnubg_nn")
    from aleazero.engines.gnubg import candidates
    from aleazero.players import make_player

    game = make_game("backgammon")
    found = list(decided.own_decisions(game, make_player("pubeval", game), 20, seed=1))
    assert len(found) == 20
    for board, dice, after in found:
        plays = candidates(board, dice)
        assert len(plays) > 1
        assert (plays == after).all((1, 2)).any()


def test_states_of_decisions_have_the_dice_to_play():
    states = rolled(START[None], np.array([[1, 3]]), np.zeros(1, int))
    assert np.array_equal(to_boards(states)[0], START)
    assert states.dice.tolist() == [[3, 1]]
    assert states.left.tolist() == [2]
    assert not bool(jnp.any(states.is_chance))
