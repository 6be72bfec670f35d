"""The engine as a whole: actions and masks, replay, snapshots, reseeding, errors, laws, coverage, verification."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from aleazero.core.errors import ConfigError, UnknownName
from aleazero.games.balatro import actions, facts, invariants
from aleazero.games.balatro.coverage import coverage
from aleazero.games.balatro.engine import Batch, EngineError, random_words, replay, seed_text
from aleazero.games.balatro.layout import P_OVER
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
