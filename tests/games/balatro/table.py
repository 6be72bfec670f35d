"""Positions for tests: a round in play with chosen cards and jokers."""

from __future__ import annotations

from typing import Any

from aleazero.games.balatro import cards, create, facts
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.layout import AT_DECK, AT_GONE
from aleazero.games.balatro.rounds import start_blind

RANKS = {"T": 10, "J": 11, "Q": 12, "K": 13, "A": 14}
SUITS = "CDHS"


def card(text: str) -> tuple[int, int, int, int, int]:
    """`HK`, `S8+Glass`, `D2+Red seal+Foil`: rank, suit, enhancement, edition, seal."""
    front, *more = text.split("+")
    enhancement = edition = seal = 0
    for word in more:
        if word.endswith(" seal"):
            seal = facts.SEALS.index(word.removesuffix(" seal"))
        elif word in facts.EDITIONS:
            edition = facts.EDITIONS.index(word)
        else:
            enhancement = facts.ENHANCEMENTS.index(word)
    rank = RANKS.get(front[1]) or int(front[1])
    return rank, SUITS.index(front[0]), enhancement, edition, seal


def game(jokers: str = "", hand: str = "", boss: str = "", seed: str = "ALEEB", **fields: Any) -> Any:
    """A round of the first ante (or against a boss) with these jokers (comma apart) and exactly this hand."""
    batch = Batch.start([seed])
    g = batch.states[0]
    if boss:
        g.blind, g.boss = 2, facts.number("blinds", boss)
    g.hand_size = 0 if hand else 8
    start_blind(g)
    g.phase = 1
    g.target = 1e9
    for name in filter(None, (part.strip() for part in jokers.split(","))):
        edition = 0
        for number, word in enumerate(facts.EDITIONS):
            if word and name.startswith(f"{word} "):
                edition, name = number, name.removeprefix(f"{word} ")
        create.add_joker(g, facts.number("jokers", name), edition, 0)
    for text in hand.split():
        deal(g, text.replace("_", " "))
    for name, value in fields.items():
        setattr(g, name, value)
    return g


def deal(g: Any, text: str) -> int:
    """Puts a card into the hand: one of the draw pile if it has it plain, else a new one."""
    made = cards.new_card(g, *card(text))
    cards.to_hand(g, made)
    return int(made)


def owned(g: Any) -> list[str]:
    """The names of the player's jokers."""
    return [facts.name_of("jokers", int(g.joker[i])) for i in range(int(g.joker_count))]


def held(g: Any) -> list[str]:
    """The names of the player's consumables."""
    return [facts.name_of("consumables", int(g.consumable[i])) for i in range(int(g.consumable_count))]


def everything(g: Any) -> int:
    """How many cards are owned."""
    return sum(int(p) != AT_GONE for p in g.place[: int(g.card_count)])


def in_deck(g: Any) -> int:
    """How many cards lie in the draw pile."""
    return sum(int(p) == AT_DECK for p in g.place[: int(g.card_count)])
