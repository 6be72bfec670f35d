from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aleazero.games.balatro import actions, cards, create, facts, fuzz, ids, jit, rounds
from aleazero.games.balatro.conservation import CARDS, DEBT, PRICE, broken_step
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.invariants import LAWS
from aleazero.games.balatro.layout import AT_DECK, AT_GONE, P_SHOP, new_batch
from tests.games.balatro.table import game


def test_fuzzing_counts_and_finds_nothing_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "RUNS", 2)
    monkeypatch.setattr(fuzz, "STEPS", 40)
    found = fuzz.fuzz(150, seed=2, threads=1, sample_runs=0)
    assert found.decisions >= 150
    assert found.fine
    assert (found.broken, found.overflows, found.sample) == ({}, 0, "not compared")
    assert found.highest_ante >= 1


def test_a_broken_law_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "RUNS", 1)
    wander = Batch.wander

    def with_a_stolen_card(self: Batch, *arguments: int, **options: bool) -> tuple[int, np.ndarray]:
        self.states["deck_count"] -= 1
        return wander(self, 1, *arguments[1:], **options)

    monkeypatch.setattr(Batch, "wander", with_a_stolen_card)
    found = fuzz.fuzz(1, sample_runs=0)
    assert not found.fine
    assert sum(found.broken.values()) == 1


def test_the_sample_tells_seeds_apart_and_is_always_the_same() -> None:
    assert jit.PLAIN
    assert fuzz.sample(1, 1, 10) == fuzz.sample(1, 1, 10) != fuzz.sample(2, 1, 10)


def test_every_deck_and_every_stake_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within as many batches as a million decisions take (95); stakes with and without the charm."""
    monkeypatch.setattr(fuzz, "RUNS", 1)
    met = []

    def start(seeds: list[str], deck: str, stake: str, last_ante: int, threads: int) -> Batch:
        met.append([deck, stake])
        return Batch(new_batch(1))

    def wander(self: Batch, steps: int, seed: int, charmed: bool) -> tuple[int, np.ndarray]:
        met[-1].append(charmed)
        return 1, np.zeros(1, np.int64)

    monkeypatch.setattr(Batch, "start", start)
    monkeypatch.setattr(Batch, "wander", wander)
    found = fuzz.fuzz(95, sample_runs=0)
    assert (found.decks, found.stakes) == (15, 8)
    assert len({deck for deck, _, _ in met}) == 15
    assert {(stake, charmed) for _, stake, charmed in met} == {
        (row["name"], charmed) for row in facts.table("stakes") for charmed in (True, False)
    }


@pytest.mark.parametrize("stake", ["White", "Gold"])
def test_laws_of_steps_hold_in_play(stake: str) -> None:
    batch = Batch.start([fuzz.seed_text(number * 97) for number in range(3)], "Ghost Deck", stake, 12)
    _, laws = batch.wander(60, 7, charmed=True)
    assert [LAWS[int(law)] for law in laws] == ["all is well"] * 3


def stepped(g: Any, action: int) -> tuple[Any, Any]:
    """A game before and after an action."""
    before = g.copy()
    batch = Batch(np.array([g]).view(np.recarray))
    batch.step(np.array([action]))
    return before, batch.states[0]


def in_shop(jokers: str = "") -> Any:
    g = game(jokers, "HK", target=1.0, money=20)
    rounds.play(g, 1)
    assert int(g.phase) == P_SHOP
    return g


def test_a_purchase_costs_its_price_and_leaves_what_may_be_owed() -> None:
    for action in (actions.A_BUY, actions.A_BOOSTER, actions.A_REROLL, actions.A_LEAVE_SHOP):
        before, after = stepped(in_shop(), action)
        assert broken_step(before, after, action) == 0
        after.money += 1
        assert broken_step(before, after, action) == PRICE
        after.money -= 2
        assert broken_step(before, after, action) == PRICE
        after.money = -1
        assert broken_step(before, after, action) == DEBT
    before, after = stepped(in_shop("Credit Card"), actions.A_REROLL)
    before.money, after.money = 2, 2 - int(before.reroll_cost)
    assert int(after.money) < 0
    assert broken_step(before, after, actions.A_REROLL) == 0
    after.money = -21
    assert broken_step(before, after, actions.A_REROLL) == DEBT
    before, after = stepped(in_shop("Joker"), actions.A_SELL_JOKER)
    assert (int(after.money), broken_step(before, after, actions.A_SELL_JOKER)) == (int(before.money) + 1, 0)


def test_a_hand_costs_no_more_than_bosses_and_rents() -> None:
    before, after = stepped(game("", "HK H2", boss="The Tooth", money=0), 0)
    assert (int(after.money), broken_step(before, after, 0)) == (-1, 0)
    after.money = -(10**9)
    assert broken_step(before, after, 0) == DEBT


def test_a_card_that_vanishes_or_changes_or_comes_from_nowhere_is_found() -> None:
    play, toggle, discard = 0, actions.A_TOGGLE, actions.A_DISCARD
    for action in (play, toggle, discard):
        before, after = stepped(game("", "HK H2 S3", hands_left=3, discards_left=3), action)
        assert broken_step(before, after, action) == 0
        card = int(after.draw_pile[0])
        after.place[card] = AT_GONE
        assert broken_step(before, after, action) == CARDS
        after.place[card] = AT_DECK
        cards.new_card(after, 5, 1, 0, 0, 0)
        assert broken_step(before, after, action) == CARDS
    before, after = stepped(game("", "HK H2"), toggle)
    after.rank[0] = 3 if int(after.rank[0]) != 3 else 4
    assert broken_step(before, after, toggle) == CARDS


def test_what_makes_and_destroys_cards_may() -> None:
    hangs = game("", "HK H2 S3")
    create.add_consumable(hangs, ids.C_HANGED_MAN, False)
    hangs.selected = 0b11
    before, after = stepped(hangs, actions.A_USE)
    assert (cards.full_deck(after) - cards.full_deck(before), broken_step(before, after, actions.A_USE)) == (-2, 0)
    trading = game("Trading Card", "HK H2", discards_left=3)
    before, after = stepped(trading, actions.A_DISCARD)
    lost = cards.full_deck(after) - cards.full_deck(before)
    assert (lost, broken_step(before, after, actions.A_DISCARD)) == (-1, 0)
    before.joker[0] = ids.J_JOKER
    assert broken_step(before, after, actions.A_DISCARD) == CARDS
