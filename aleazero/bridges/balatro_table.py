"""A run of Balatro that somebody elsewhere plays: what is seen, what can be done, what is done. As data.

A `Table` is a run in the simulator or in a live game; those who ask see both alike. Cards are named by their places in
the hand, from 0. Knows the simulator; nothing of who asks, nor how.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from aleazero.core.errors import NotationError
from aleazero.games.balatro import actions, facts, pages, text
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.layout import P_OVER, P_PACK, P_PLAY, P_SHOP
from aleazero.games.balatro.rng import check_seed

_VERBS = {"play": (actions.A_PLAY, actions.A_PLAY_SELECTED), "discard": (actions.A_DISCARD, actions.A_DISCARD_SELECTED)}
_FIRST = 8  # places whose subsets have an action of their own


class Table(Protocol):
    """A run."""

    def see(self) -> Batch:
        """As it now is, `[1]`; not to be changed."""

    def act(self, action: int) -> None:
        """Takes a legal action; NotationError says why one cannot be taken."""


class Simulated:
    """A run in the simulator."""

    def __init__(
        self, seed: str, deck: str = "Red Deck", stake: str = "White", last_ante: int = 8, *, batch: Batch | None = None
    ) -> None:
        self._batch = batch or Batch.start([check_seed(seed)], deck, stake, last_ante)

    def see(self) -> Batch:
        """As it now is."""
        return self._batch

    def act(self, action: int) -> None:
        """Takes an action."""
        check(self._batch, action)
        self._batch.step(np.array([action]))


def check(batch: Batch, action: int) -> None:
    """NotationError where an action is not legal, which says why."""
    if not 0 <= action < actions.NUM_ACTIONS or not batch.masks[0, action]:
        name = actions.action_name(action) if 0 <= action < actions.NUM_ACTIONS else "no action"
        raise NotationError(f"action {action} ({name}) is not legal: {text.why_not(batch.states[0], action)}")


def unforeseen(batch: Batch, seed: int = 0) -> Batch:
    """A copy that knows no more than a player: what is not seen, and what will be drawn, is drawn anew."""
    other = batch.copy()
    other.reseed(np.full(len(other), seed, np.uint64))
    return other


def view(batch: Batch) -> dict[str, Any]:
    """What a player sees."""
    g = batch.states[0]
    phase = int(g.phase)
    playing, shop = phase == P_PLAY, phase == P_SHOP
    return {
        "phase": text.PHASES.get(phase, "the round is paid"),
        "over": phase == P_OVER,
        "won": bool(g.won),
        "ante": int(g.ante),
        "blind": pages.blind_line(g),
        "blinds_beaten": int(g.beaten),
        "money": int(g.money),
        "score": float(g.round_score) if playing else None,
        "target": float(g.target) if playing else None,
        "hands_left": int(g.hands_left) if playing else None,
        "discards_left": int(g.discards_left) if playing else None,
        "hand": [text.card(g, int(g.hand[i])) for i in range(int(g.hand_count))] if playing or phase == P_PACK else [],
        "selected": [i for i in range(int(g.hand_count)) if int(g.selected) >> i & 1],
        "jokers": [
            {"name": text.joker(g, i), "effect": facts.table("jokers")[int(g.joker[i]) - 1]["effect"]}
            for i in range(int(g.joker_count))
        ],
        "joker_slots": int(g.joker_slots),
        "consumables": [facts.name_of("consumables", int(g.consumable[i])) for i in range(int(g.consumable_count))],
        "shelf": [
            {"name": text.on_shelf(g, i), "cost": int(g.shelf_cost[i])}
            for i in range(int(g.shelf_count) if shop else 0)
        ],
        "pack": [text.in_pack(g, i) for i in range(int(g.pack_count) if phase == P_PACK else 0)],
        "draw_pile": int(g.deck_count),
        "hand_levels": {row["name"]: int(g.level[h]) for h, row in enumerate(facts.table("hands"))},
        "text": pages.table_text(g),
    }


def legal(batch: Batch, everything: bool = False) -> dict[str, Any]:
    """What can be done: actions by number, in words. Plays and discards of cards are many, and listed if asked for."""
    g = batch.states[0]
    found = [int(a) for a in np.flatnonzero(batch.masks[0])]
    cards = {verb: any(first <= a < first + actions.NUM_SUBSETS for a in found) for verb, (first, _) in _VERBS.items()}
    listed = found if everything else [a for a in found if a >= actions.A_TOGGLE]
    return {
        "count": len(found),
        "play_cards": cards["play"],
        "discard_cards": cards["discard"],
        "actions": [{"action": a, "words": text.describe(g, a)} for a in listed],
    }


def actions_for(batch: Batch, what: str, cards: Sequence[int], action: int | None = None) -> list[int]:
    """The actions that play or discard cards by their places, or take an action on cards that it needs.

    NotationError where one is not legal.
    """
    places = set(cards)
    count = int(batch.states[0].hand_count)
    if any(not 0 <= place < count for place in places):
        raise NotationError(f"cards are {sorted(places)}; the hand has places 0 to {count - 1}")
    if what == "act":
        if action is None:
            raise NotationError("an action is needed: one of balatro_legal_actions")
        last, taken = action, _select(batch, places) if places else []
    elif what in _VERBS:
        subset, selected = _VERBS[what]
        if not places:
            raise NotationError(f"{what} needs cards: their places in the hand, from 0")
        bits = sum(1 << place for place in places)
        if max(places) < _FIRST and len(places) <= 5 and not int(batch.states[0].selected):
            last, taken = subset + int(np.flatnonzero(bits == actions.SUBSETS)[0]), []
        else:
            last, taken = selected, _select(batch, places)
    else:
        raise NotationError(f"{what!r} is nothing to do: play, discard or act")
    after = batch.copy()
    for one in taken:
        check(after, one)
        after.step(np.array([one]))
    check(after, last)
    return [*taken, last]


def _select(batch: Batch, places: set[int]) -> list[int]:
    """The actions that select just these cards."""
    g = batch.states[0]
    now = {i for i in range(int(g.hand_count)) if int(g.selected) >> i & 1}
    return [actions.A_TOGGLE + place for place in [*sorted(now - places), *sorted(places - now)]]


def explain(batch: Batch, taken: Sequence[int]) -> dict[str, Any]:
    """How the score of a play comes about: the last of these actions plays a hand. Its chances are drawn anew."""
    after = unforeseen(batch)
    for one in taken[:-1]:
        after.step(np.array([one]))
    if not (taken[-1] < actions.A_DISCARD or taken[-1] == actions.A_PLAY_SELECTED):
        raise NotationError(f"action {taken[-1]} ({actions.action_name(taken[-1])}) plays no hand: nothing is scored")
    rows, scored = after.account(0, taken[-1])
    g, s = after.states[0], scored.states[0]
    return {
        "words": text.describe(g, taken[-1]),
        "score": float(s.hand_score),
        "round_score_after": float(g.round_score) + float(s.hand_score),
        "target": float(g.target),
        "lines": text.account_lines(g, s, rows),
    }
