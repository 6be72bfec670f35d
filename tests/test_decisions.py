"""Labelled decisions: what plays cost, files in and out, decisions from whole games, labels by judges."""

from __future__ import annotations

import json

import jax.numpy as jnp
import numpy as np
import pytest

from aleazero import decisions as decided
from aleazero.core.errors import ConfigError, GameContractError, MissingExtra
from aleazero.games.backgammon.boards import afterstates, rolled, to_boards
from aleazero.games.registry import make_game
from aleazero.play.ratings import clustered_interval, t_quantile
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compile")]

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


def costly(costs, games=None) -> list[decided.Decision]:
    games = [None] * len(costs) if games is None else games
    return [decision(equity=np.array([0.5, 0.5 - cost]), game=game) for cost, game in zip(costs, games, strict=True)]


def test_decisions_of_unknown_games_count_as_independent():
    found = decided.error_rate(Stubborn(RUN), costly([0.0, 0.1, 0.2, 0.3]))
    spread = t_quantile(3) * np.std([0.0, 0.1, 0.2, 0.3], ddof=1) / 2
    lost = found.lost
    assert (lost.value, lost.low, lost.high) == pytest.approx((0.15, 0.15 - spread, 0.15 + spread))
    assert found.games is None


def test_decisions_of_one_game_do_not():
    """Two games, in one of which everything is easy: four decisions say no more of other games than two."""
    costs, games = [0.0, 0.0, 0.2, 0.2], [3, 3, 8, 8]
    found = decided.error_rate(Stubborn(RUN), costly(costs, games))
    assert found.games == 2
    assert found.lost == clustered_interval(np.array(costs), np.array(games))
    apart = decided.error_rate(Stubborn(RUN), costly(costs, [1, 2, 3, 4])).lost
    assert found.lost.high - found.lost.low > 5 * (apart.high - apart.low)
    assert decided.error_rate(Stubborn(RUN), costly([0.0, 0.1], [4, None])).games is None


def test_plays_made_are_judged_as_they_were():
    """Whatever the player would do if it were asked again."""
    made = [decision(made=0, game=1), decision(made=1, game=2)]
    found = decided.own_error_rate(made)
    assert (found.lost.value, found.decisions, found.outside, found.games) == (pytest.approx(0.075), 2, 0, 2)


def test_the_noise_of_a_judge_does_not_pass_for_errors():
    """The best of noisy values is too high, one that is chosen apart too low; what is taken is far nearer."""
    rng = np.random.default_rng(0)
    truth = np.sort(rng.uniform(-0.06, 0, (20_000, 4)), -1)[:, ::-1]
    halves = truth[:, None] + rng.normal(0, 0.01, (20_000, 2, 4))
    made = rng.integers(0, 2, 20_000)
    right = (truth[:, 0] - truth[np.arange(20_000), made]).mean()
    noisy = [decision(equity=both.mean(0), halves=both) for both in halves]
    taken = np.mean([decided.cost(one, play) for one, play in zip(noisy, made, strict=True)])
    plain = [decision(equity=both.mean(0)) for both in halves]
    naive = np.mean([decided.cost(one, play) for one, play in zip(plain, made, strict=True)])
    apart = 3 * taken - 2 * naive
    assert naive - right > 0.001
    assert right - apart > 0.001
    assert abs(taken - right) < (naive - right) / 4


def test_a_play_outside_costs_as_much_as_the_worst_by_halves_too():
    both = decision(halves=np.array([[0.10, 0.05], [0.22, -0.03]]))
    assert decided.cost(both, None) == decided.cost(both, 1) == pytest.approx((2 * 0.15 + (0.05 + 0.25) / 2) / 3)
    assert decided.cost(both, 0) == 0


def test_a_file_is_read_as_it_was_written(tmp_path):
    file = tmp_path / "decisions.jsonl"
    decided.write(file, [decision(), decision(dice=np.array([6, 6]))])
    first, second = decided.read(file)
    for name in ("board", "dice", "after", "equity"):
        assert np.array_equal(getattr(first, name), getattr(decision(), name))
    assert second.dice.tolist() == [6, 6]
    assert (first.halves, first.game, first.made) == (None, None, None)
    halves = np.array([[0.1, 0.0], [0.22, 0.02]])
    decided.write(file, [decision(halves=halves, game=7)])
    (third,) = decided.read(file)
    assert third.game == 7
    np.testing.assert_array_equal(third.halves, halves)


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        decided.write(tmp_path / "absent" / "file", [decision()])


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
    "game is -1": json.dumps(entry(game=-1)),
    "game is 'one'": json.dumps(entry(game="one")),
    "halves must be": json.dumps(entry(candidates=[{"after": POINT.tolist(), "equity": 0.1, "halves": [0.1, 0.3]}])),
    "halves must be two numbers": json.dumps(entry(candidates=[{"after": POINT.tolist(), "equity": 0, "halves": [0]}])),
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


# ---- decisions that are met


def test_own_decisions_are_unforced_and_from_all_of_many_games():
    pytest.importorskip("gnubg_nn")
    from aleazero.engines.gnubg import candidates
    from aleazero.players import make_player

    game = make_game("backgammon")
    player = make_player("pubeval", game)
    found = decided.own_decisions(game, player, 24, seed=1)
    assert len(found) == 24
    assert len({met.game for met in found}) > 10
    for met in found:
        plays = candidates(met.board, met.dice)
        assert len(plays) > 1
        assert (plays == met.made).all((1, 2)).any()
    left = [int(met.board.sum()) for met in found]
    assert max(left) == 30
    assert min(left) < 26  # some are near the end
    assert np.mean([np.array_equal(met.board, START) for met in found]) < 0.2
    again = decided.own_decisions(game, player, 24, seed=1)
    assert all(np.array_equal(a.board, b.board) and a.game == b.game for a, b in zip(found, again, strict=True))


def test_more_games_are_played_where_more_decisions_are_wanted(monkeypatch):
    batches = []

    def games(game, player, seed, numbers):
        batches.append(numbers.tolist())
        return [decided.Met(START, np.array([3, 1]), POINT, int(number)) for number in numbers for _ in range(20)]

    monkeypatch.setattr(decided, "GAMES", 8)
    monkeypatch.setattr(decided, "_whole_games", games)
    found = decided.own_decisions(make_game("backgammon"), Stubborn(POINT), 100, seed=0)
    assert len(found) == 100
    assert batches == [list(range(8)), list(range(8, 16)), list(range(16, 24))]  # a quarter of 480 is enough
    assert len({met.game for met in found}) > 20
    assert len({met.game for met in found[:40]}) > 15  # in any order: a part of them is a sample too
    counts = np.bincount([met.game for met in found])
    assert counts.max() < 15  # drawn at random


# ---- labels


def met(made=POINT) -> decided.Met:
    return decided.Met(START, np.array([3, 1]), made, 5)


def plays(count: int) -> np.ndarray:
    """Distinct positions; whether they could be left does not matter."""
    after = np.tile(START, (count, 1, 1))
    after[:, 1, 12] -= 1
    after[np.arange(count), 1, np.arange(count) % 24] += 1
    return after


@pytest.mark.parametrize(
    ("gap", "made", "kept"),
    [
        (0.01, 0, list(range(8))),  # the eight best
        (0.01, 11, [*range(8), 11]),  # and the one made
        (0.05, 0, [0, 1, 2, 3]),  # within 0.16
        (0.05, 2, [0, 1, 2, 3]),
        (1.0, 4, [0, 4]),
    ],
)
def test_the_best_plays_within_reach_and_the_one_made_are_judged(gap, made, kept):
    after = plays(12)
    asked = []

    def worth(positions, decisions):
        asked.append((positions, decisions))
        return np.arange(len(positions))[None] / 100

    ranked = lambda board, dice: (after, 0.3 - gap * np.arange(12))  # noqa: E731
    found = decided.label_by([met(after[made]), met(after[0])], ranked, worth)
    ((positions, decisions),) = asked  # all at once
    assert len(found) == 2
    assert np.array_equal(found[0].after, after[kept])
    assert np.array_equal(positions[: len(kept)], after[kept])
    assert decisions.tolist() == [0] * len(kept) + [1] * (len(positions) - len(kept))
    assert np.array_equal(found[0].after[found[0].made], after[made])
    assert found[0].equity.tolist() == [n / 100 for n in range(len(kept))]
    assert found[1].equity[0] == len(kept) / 100
    assert (found[0].game, found[0].halves) == (5, None)


def test_a_noisy_judges_halves_are_kept():
    after = plays(3)
    ranked = lambda board, dice: (after, np.array([0.1, 0.05, 0.0]))  # noqa: E731
    worth = lambda positions, decisions: np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])  # noqa: E731
    (found,) = decided.label_by([met(after[1])], ranked, worth)
    assert found.equity == pytest.approx([0.2, 0.2, 0.2])
    assert found.halves.tolist() == [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]]
    assert found.made == 1


def test_a_play_that_is_not_legal_is_an_error():
    ranked = lambda board, dice: (plays(3), np.zeros(3))  # noqa: E731
    with pytest.raises(GameContractError, match="is not legal in"):
        decided.label_by([met(SPLIT)], ranked, lambda positions, decisions: np.zeros((1, len(positions))))


def test_labels_are_gnu_backgammons_and_hold_the_play_made():
    gnubg = pytest.importorskip("aleazero.engines.gnubg")
    pytest.importorskip("gnubg_nn")
    worst = gnubg.ranked(START, np.array([3, 1]))[0][-1]
    (labelled,) = decided.label([met(worst)], processes=1)
    best = labelled.after[labelled.equity.argmax()]
    assert np.array_equal(best, POINT)  # every book says so
    assert np.array_equal(labelled.after[labelled.made], worst)
    assert len(labelled.equity) <= decided.MOST + 1
    assert labelled.equity == pytest.approx(gnubg.Gnubg().after_equities(labelled.after, 2))


def test_labels_need_gnu_backgammon(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gnubg_nn", None)
    with pytest.raises(MissingExtra, match="aleazero\\[gnubg\\]"):
        decided.label([met()], processes=1)


def test_states_of_decisions_have_the_dice_to_play():
    states = rolled(START[None], np.array([[1, 3]]), np.zeros(1, int))
    assert np.array_equal(to_boards(states)[0], START)
    assert states.dice.tolist() == [[3, 1]]
    assert states.left.tolist() == [2]
    assert not bool(jnp.any(states.is_chance))
