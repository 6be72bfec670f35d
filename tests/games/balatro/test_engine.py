"""The engine as a whole: actions and masks, replay, snapshots, reseeding, errors, laws, coverage, verification."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aleazero.core.errors import ConfigError, UnknownName
from aleazero.games.balatro import actions, facts, invariants, rounds
from aleazero.games.balatro.coverage import coverage
from aleazero.games.balatro.engine import Batch, EngineError, random_words, replay, seed_text
from aleazero.games.balatro.env import observe_all
from aleazero.games.balatro.layout import F_FACE_DOWN, P_OVER
from aleazero.games.balatro.observe import observe_batch
from aleazero.games.balatro.verify import verify

GOLDEN = Path(__file__).parents[2] / "golden/balatro"


def _wander(seed: str, steps: int) -> tuple[Batch, list[int]]:
    rng = np.random.default_rng(3)
    batch, moves = Batch.start([seed]), []
    for _ in range(steps):
        legal = np.flatnonzero(batch.masks[0])
        if not len(legal):
            break
        moves.append(int(rng.choice(legal)))
        batch.step(np.array([moves[-1]]))
    return batch, moves


def test_actions_are_ranges_without_gaps() -> None:
    table = actions.action_table()
    assert table[0][1:3] == (0, 217)
    assert table[1][1:3] == (218, 435)
    assert all(after[1] == before[2] + 1 for before, after in pairwise(table))
    assert table[-1][2] < actions.NUM_ACTIONS
    assert actions.action_name(0) == "play 0"
    assert actions.action_name(999) == "unused 999"
    bits = [bin(int(b)).count("1") for b in actions.SUBSETS]
    assert len(set(actions.SUBSETS.tolist())) == 218
    assert (min(bits), max(bits)) == (1, 5)


def test_a_run_is_replayed_from_its_seed_and_actions() -> None:
    batch, moves = _wander("ALEEB", 60)
    assert replay("ALEEB", moves).snapshot() == batch.snapshot()
    assert replay("ALEEC", moves[:1]).snapshot() != replay("ALEEB", moves[:1]).snapshot()


def test_snapshots_go_on_as_the_games_they_were_taken_of() -> None:
    batch, _ = _wander("2K9H9HN", 12)
    again = Batch.restore(batch.snapshot())
    assert np.array_equal(again.masks, batch.masks)
    legal = np.flatnonzero(batch.masks[0])
    if len(legal):
        batch.step(legal[:1])
        again.step(legal[:1])
    assert again.snapshot() == batch.snapshot()


def hidden_hand(boss: str, plays: int = 0) -> Batch:
    """Of the first seed whose hand has some face down."""
    for number in range(1000):
        batch = Batch.start([seed_text(number * 7919)])
        g = batch.states[0]
        g.blind, g.boss = 2, facts.number("blinds", boss)
        rounds.start_blind(g)
        g.target = 1e9
        for _ in range(plays):
            rounds.play(g, 0b11111)
        if any(hidden for _, _, hidden in fronts(g)):
            return Batch(batch.states)
    raise AssertionError(boss)


def fronts(g: Any) -> list[tuple[int, int, bool]]:
    held = [int(c) for c in g.hand[: int(g.hand_count)]]
    return [(int(g.rank[c]), int(g.suit[c]), bool(int(g.card_flags[c]) & F_FACE_DOWN)) for c in held]


@pytest.mark.parametrize(("boss", "plays"), [("The House", 0), ("The Mark", 0), ("The Fish", 1), ("The Wheel", 1)])
def test_reseeding_exchanges_what_lies_face_down_and_shows_nothing(boss: str, plays: int) -> None:
    batch = hidden_hand(boss, plays)
    seen, before = observe_all(batch, None), fronts(batch.states[0])
    down = [place for place, (_, _, hidden) in enumerate(before) if hidden]
    assert down
    found: list[set[tuple[int, int]]] = [set() for _ in before]
    for number in range(30):
        other = batch.copy()
        other.reseed(np.array([number]))
        g = other.states[0]
        assert invariants.broken_law(g) == 0
        for name, rows in observe_all(other, None).items():
            np.testing.assert_array_equal(rows, seen[name], err_msg=name)
        for place, (rank, suit, hidden) in enumerate(fronts(g)):
            assert hidden == (place in down)
            found[place].add((rank, suit))
            assert boss != "The Mark" or not hidden or 11 <= rank <= 13, "The Mark hides faces"
    for place, cards_there in enumerate(found):
        assert (len(cards_there) > 5) == (place in down)


def test_reseeding_keeps_what_is_seen_and_changes_what_comes() -> None:
    batch = Batch.start(["ALEEB"])
    batch.step(np.array([actions.A_SELECT_BLIND]))
    other = batch.copy()
    other.reseed(np.array([99], np.uint64))
    a, b = batch.states[0], other.states[0]
    assert a.hand.tolist() == b.hand.tolist()
    assert sorted(a.draw_pile[:44].tolist()) == sorted(b.draw_pile[:44].tolist())
    assert a.draw_pile[:44].tolist() != b.draw_pile[:44].tolist()
    assert np.array_equal(batch.masks, other.masks)


def test_an_illegal_action_is_named() -> None:
    batch = Batch.start(["ALEEB"])
    with pytest.raises(EngineError, match=r"leave_shop.*not legal"):
        batch.step(np.array([actions.A_LEAVE_SHOP]))


def test_actions_that_are_none_change_nothing() -> None:
    batch = Batch.start(["ALEEB", "ALEEB"])
    before = batch.snapshot()
    start = actions.A_SELECT_BLIND
    for chosen, why in (
        ([start, 1000], "game 1: action 1000; actions are 0 to 999"),
        ([1000 + start, start], f"game 0: action {1000 + start}"),
        ([start - 1000, start], f"game 0: action {start - 1000}"),
        ([start], r"shape \(1,\)"),
        ([start] * 3, "2 games"),
        ([float(start)] * 2, "integers"),
    ):
        with pytest.raises(EngineError, match=why):
            batch.step(np.array(chosen))
        with pytest.raises(EngineError):
            batch.step(np.array([start, start]), np.array([True]))
        assert batch.snapshot() == before
    batch.step(np.array([start, -5]), np.array([True, False]))  # nobody asks for the second
    with pytest.raises(EngineError, match="action 1560"):
        replay("ALEEB", [start, 1560])


def test_threads_and_antes_that_are_none_are_refused() -> None:
    for threads in (0, -1):
        with pytest.raises(ConfigError, match=f"threads is {threads}; at least 1"):
            Batch.start(["ALEEB"], threads=threads)
    for ante in (0, 13, 99):
        with pytest.raises(ConfigError, match=f"last_ante is {ante}"):
            Batch.start(["ALEEB"], last_ante=ante)
    with pytest.raises(ConfigError, match="5 is no text"):
        Batch.start(["ALEEB", 5])  # type: ignore[list-item]


def test_bad_names_and_seeds() -> None:
    with pytest.raises(UnknownName, match="Plasma Deck"):
        Batch.start(["ALEEB"], deck="Plasma")
    with pytest.raises(ConfigError, match="characters of"):
        Batch.start(["AL!EB"])
    assert len({seed_text(i) for i in range(500)}) == 500


def test_only_moving_lanes_move() -> None:
    batch = Batch.start(["ALEEB", "2K9H9HN"])
    before = batch.snapshot()
    batch.step(np.full(2, actions.A_SELECT_BLIND), np.array([True, False]))
    after = batch.snapshot()
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_runs_begin_anew_in_their_lanes_as_they_would_elsewhere() -> None:
    batch = Batch.start(["ALEEB", "2K9H9HN", "11111111"], threads=2)
    batch.wander(60)
    kept, mask = batch.snapshot()[1], batch.masks[1].copy()
    batch.restart(np.array([2, 0]), ["TUTORIAL", "7"], "Blue Deck", "Gold", 12)
    fresh = Batch.start(["TUTORIAL", "7"], "Blue Deck", "Gold", 12)
    assert [batch.snapshot()[lane] for lane in (2, 0)] == fresh.snapshot()
    assert np.array_equal(batch.masks[[2, 0]], fresh.masks)
    assert (batch.snapshot()[1], batch.over.tolist()) == (kept, [False, bool(batch.over[1]), False])
    assert np.array_equal(batch.masks[1], mask)


def test_lanes_say_when_they_are_over() -> None:
    batch = Batch.start([seed_text(number) for number in range(12)])
    words = random_words(12, 1)
    for _ in range(200):
        chosen, moving = batch.random_actions(words)
        batch.step(chosen, moving)
        assert np.array_equal(batch.over, batch.states["phase"] == P_OVER)
    assert batch.over.any()
    assert np.array_equal(batch.copy().over, batch.over)
    assert np.array_equal(Batch.restore(batch.snapshot()).over, batch.over)


def test_what_is_seen_may_be_written_over_what_was() -> None:
    batch = Batch.start(["ALEEB", "2K9H9HN"])
    before = observe_batch(batch)
    batch.wander(40)
    for name, array in observe_batch(batch).items():
        assert np.array_equal(observe_batch(batch, before)[name], array)
    assert not np.array_equal(before["game_state"], observe_batch(Batch.start(["ALEEB", "2K9H9HN"]))["game_state"])


def test_charmed_random_play_breaks_no_law() -> None:
    for deck, stake in (("Red Deck", "White"), ("Erratic Deck", "Gold"), ("Plasma Deck", "Orange")):
        batch = Batch.start(["ALEEB"], deck, stake, 12)
        made, laws = batch.wander(60, 5, charmed=True)
        assert made > 20
        assert [invariants.LAWS[int(law)] for law in laws] == ["all is well"]
        assert batch.states["error"].tolist() == [0]


def test_laws_notice_what_is_wrong() -> None:
    batch = Batch.start(["ALEEB"])
    batch.step(np.array([actions.A_SELECT_BLIND]))
    g = batch.states[0]
    assert invariants.broken_law(g) == 0
    g.hand[0] = g.hand[1]
    assert invariants.broken_law(g) in (2, 3)
    g.hand_count = 0
    assert invariants.broken_law(g) != 0


def test_coverage_counts_everything() -> None:
    assert {c.kind: c.working for c in coverage()} == {c.kind: len(facts.table(c.kind)) for c in coverage()}


def test_verify_names_kinds_rates_and_differences(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "rng.json", tmp_path)
    scores = json.loads((GOLDEN / "scores.json").read_text())
    scores["unanimous"] = scores["unanimous"][:10]
    scores["unanimous"][3]["expected"]["score"] += 1
    (tmp_path / "scores.json").write_text(json.dumps(scores))
    rates = {rate.kind: rate for rate in verify(tmp_path)}
    assert (rates["rng"].passed, rates["rng"].total) == (100, 100)
    assert (rates["unanimous scores"].passed, rates["unanimous scores"].total) == (9, 10)
    assert rates["unanimous scores"].first[0].startswith(scores["unanimous"][3]["id"])
    assert rates["majority scores"].passed == 40
    with pytest.raises(ConfigError, match=r"rng\.json"):
        verify(tmp_path / "nowhere")
    (tmp_path / "seeds.json").write_text("{")
    with pytest.raises(ConfigError, match="not JSON"):
        verify(tmp_path)
