"""A run of Balatro as a page shows it: cards, jokers, shop and pack; what can be done; how a score comes about.

Like a table it follows from seed and actions, and is played again from them. Cards are chosen on the page and named by
their places; where the rules want them selected one by one, that is done here.
Knows the simulator; nothing of HTTP.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from aleazero.core.errors import NotationError
from aleazero.games.balatro import actions, facts, pages, text
from aleazero.games.balatro.contest import make_chooser
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.jit import PLAIN
from aleazero.games.balatro.layout import F_FACE_DOWN, P_OVER, P_PACK, P_PLAY, P_SHOP
from aleazero.games.balatro.saved import SavedRun
from aleazero.host_players import best_known, player_of
from aleazero.web.table import NotNow

MOST_ACTIONS = 5000
_VERBS = {"play": (actions.A_PLAY, actions.A_PLAY_SELECTED), "discard": (actions.A_DISCARD, actions.A_DISCARD_SELECTED)}
_FIRST = 8  # places whose subsets have an action of their own


@functools.cache
def _adviser() -> Callable[[Batch, int], np.ndarray]:
    """Our network; where none is there a baseline: the one that looks ahead, unless that would take minutes."""
    name = best_known("balatro", "greedy" if PLAIN else "expectimax")
    if name == "bundled":
        return player_of(name, "balatro")(0)
    return lambda batch, move: make_chooser(name, move, 1)(batch)


class BalatroRun:
    """One run."""

    def __init__(self, saved: SavedRun) -> None:
        """Plays what was saved; ConfigError where an action is not legal."""
        self.saved = saved
        self.batch = saved.start()
        for before, action in saved.steps():
            self.batch = before
            self.batch.step(np.array([action]))
        self.account: list[str] = []  # of the last play

    @property
    def over(self) -> bool:
        """Won or lost."""
        return int(self.batch.states["phase"][0]) == P_OVER

    def act(self, what: str, cards: list[int], action: int | None) -> None:
        """Plays or discards cards by their places, or takes an action, on cards where it needs any; or does nothing."""
        if self.over:
            raise NotNow("the run is over; begin another one")
        if len(self.saved.actions) > MOST_ACTIONS:
            raise NotNow(f"the run has {MOST_ACTIONS} actions, and no more are taken")
        batch, taken = self.batch.copy(), []
        if what in _VERBS:
            subset, selected = _VERBS[what]
            bits = sum(1 << place for place in set(cards))
            if cards and max(cards) < _FIRST and len(set(cards)) <= 5 and not int(batch.states[0].selected):
                action = subset + int(np.flatnonzero(bits == actions.SUBSETS)[0])
            else:
                taken, action = self._select(batch, set(cards)), selected
        elif action is None:
            raise NotationError(f"{what!r} is nothing to do: play, discard, or act with an action")
        elif cards:
            taken = self._select(batch, set(cards))
        self._check(batch, action)
        account = self._tell(batch, action)
        batch.step(np.array([action]))
        self.batch, self.account = batch, account
        self.saved = dataclasses.replace(self.saved, actions=(*self.saved.actions, *taken, action))

    def take_back(self) -> None:
        """Undoes what was done last, with the cards selected for it."""
        kept = list(self.saved.actions)
        if not kept:
            raise NotNow("there is nothing to take back")
        kept.pop()
        while kept and actions.A_TOGGLE <= kept[-1] < actions.A_PLAY_SELECTED:
            kept.pop()
        self.__dict__.update(BalatroRun(dataclasses.replace(self.saved, actions=tuple(kept))).__dict__)

    def copy(self) -> BalatroRun:
        """A run of its own: nothing that is done here is seen there."""
        other = copy.copy(self)
        other.batch = self.batch.copy()
        return other

    def hint(self) -> dict[str, Any]:
        """What our network would do."""
        if self.over:
            raise NotNow("the run is over")
        return self.tell(int(_adviser()(self.batch, 0)[0]))

    def tell(self, action: int) -> dict[str, Any]:
        """An action in words, with the places of the cards it is about."""
        name, place = text.split(action)
        bits = int(actions.SUBSETS[place]) if name in _VERBS else int(self.batch.states[0].selected)
        cards = [i for i in range(int(self.batch.states[0].hand_count)) if bits >> i & 1]
        return {"action": action, "words": text.describe(self.batch.states[0], action), "cards": cards}

    def view(self) -> dict[str, Any]:
        """Everything a page needs."""
        g = self.batch.states[0]
        phase = int(g.phase)
        hand = range(int(g.hand_count)) if phase in (P_PLAY, P_PACK) else range(0)
        shop = phase == P_SHOP
        return {
            "seed": self.saved.seed,
            "heading": pages.heading(g),
            "phase": text.PHASES[phase],
            "blind": pages.blind_line(g),
            "score": float(g.round_score) if phase == P_PLAY else None,
            "target": float(g.target) if phase == P_PLAY else None,
            "money": int(g.money),
            "ante": int(g.ante),
            "over": self.over,
            "won": bool(g.won),
            "hand": [self._card(g, i) for i in hand],
            "jokers": [text.joker(g, i) for i in range(int(g.joker_count))],
            "consumables": [
                {"name": facts.name_of("consumables", int(g.consumable[i])), "action": actions.A_USE + i}
                for i in range(int(g.consumable_count))
            ],
            "shelf": [text.on_shelf(g, i) for i in range(int(g.shelf_count))] if shop else [],
            "actions": self._offers(g),
            "account": self.account,
            "can_take_back": bool(self.saved.actions),
        }

    def _card(self, g: Any, place: int) -> dict[str, Any]:
        card = int(g.hand[place])
        hidden = bool(int(g.card_flags[card]) & F_FACE_DOWN)
        suit = None if hidden else "♣♦♥♠"[int(g["suit"][card])]
        return {"text": text.card(g, card), "suit": suit, "selected": bool(int(g.selected) >> place & 1)}

    def _offers(self, g: Any) -> list[dict[str, Any]]:
        """What can be done besides playing, discarding and selecting cards, and using consumables."""
        legal = np.flatnonzero(self.batch.masks[0])
        shown = [int(a) for a in legal if a >= actions.A_SELL_CONSUMABLE and text.split(int(a))[0] != "swap_cards"]
        return [{"action": action, "words": text.describe(g, action)} for action in shown]

    def _select(self, batch: Batch, cards: set[int]) -> list[int]:
        """Selects just these cards, place by place; the actions that took."""
        taken = []
        for place in range(int(batch.states[0].hand_count)):
            if bool(int(batch.states[0].selected) >> place & 1) != (place in cards):
                self._check(batch, actions.A_TOGGLE + place)
                batch.step(np.array([actions.A_TOGGLE + place]))
                taken.append(actions.A_TOGGLE + place)
        return taken

    def _check(self, batch: Batch, action: int) -> None:
        if not 0 <= action < actions.NUM_ACTIONS or not batch.masks[0, action]:
            why = text.why_not(batch.states[0], action) if 0 <= action < actions.NUM_ACTIONS else "there is none"
            raise NotationError(f"action {action} is not possible: {why}")

    def _tell(self, batch: Batch, action: int) -> list[str]:
        if not (action < actions.A_DISCARD or action == actions.A_PLAY_SELECTED):
            return []
        rows, scored = batch.account(0, action)
        return text.account_lines(batch.states[0], scored.states[0], rows)
