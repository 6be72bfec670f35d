"""The joker graph itself: nodes and relations made from the tags of the fact tables. Knows no database.

Nodes: Joker, Hand, Suit, Rank, Effect (what a joker gives), Moment (when it acts), Trait (what else a joker may need:
an enhancement, money, discards left, ...). Relations:

    (Joker)-[GIVES]->(Effect)       (Joker)-[ACTS]->(Moment)       (Hand)-[CONTAINS]->(Hand)
    (Joker)-[NEEDS]->(Hand | Suit | Rank | Trait)     it does nothing, or less, without
    (Joker)-[FEEDS]->(Hand | Suit | Rank | Trait)     it makes these likelier, or more of them
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from aleazero.games.balatro import facts

LABELS = ("Joker", "Hand", "Suit", "Rank", "Effect", "Moment", "Trait")
_THINGS = ("Hand", "Suit", "Rank", "Trait")
# Relation -> the labels it leads from and to.
RELATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "GIVES": ("Joker", ("Effect",)),
    "ACTS": ("Joker", ("Moment",)),
    "NEEDS": ("Joker", _THINGS),
    "FEEDS": ("Joker", _THINGS),
    "CONTAINS": ("Hand", ("Hand",)),
}
_RANKS = {"A": "Ace", "K": "King", "Q": "Queen", "J": "Jack"}
_FACES = ("Jack", "Queen", "King")
_CONTAINS = {
    "Flush Five": ("Five of a Kind", "Four of a Kind", "Three of a Kind", "Pair", "Flush"),
    "Flush House": ("Full House", "Three of a Kind", "Two Pair", "Pair", "Flush"),
    "Five of a Kind": ("Four of a Kind", "Three of a Kind", "Pair"),
    "Straight Flush": ("Straight", "Flush"),
    "Four of a Kind": ("Three of a Kind", "Pair"),
    "Full House": ("Three of a Kind", "Two Pair", "Pair"),
    "Three of a Kind": ("Pair",),
    "Two Pair": ("Pair",),
}
# What an effect makes more of, whoever gives it.
_EFFECT_FEEDS = {
    "adds_card": ("card_added",),
    "copies_card": ("card_added",),
    "creates_jokers": ("joker_count", "sell_values"),
    "creates_tarot": ("tarots_used",),
    "discards": ("discards_left", "cards_discarded"),
    "enhances": ("enhanced_scored", "16_enhanced"),
    "free_items": ("planet_used", "unique_planets"),
    "free_reroll": ("shop_reroll",),
    "hand_size": ("held_cards",),
    "hands": ("hands",),
    "interest": ("money",),
    "money": ("money",),
    "probability": ("chance",),
    "sell_value": ("sell_values",),
}
# Effects whose tags name what is made, not what is needed.
_MAKES = ("adds_card", "card_class", "enhances", "hand_detection")
_FACE_TAGS = ("face", "first_face", "3_faces_discarded")
_HAND_TAGS = {"straight": "Straight", "flush": "Flush"}
_PLAIN = re.compile(r"(scaling|decaying|permanent)_")


@dataclasses.dataclass(frozen=True, order=True)
class Node:
    """A thing; its label and name are its own."""

    label: str
    name: str
    facts: tuple[tuple[str, Any], ...] = dataclasses.field(default=(), compare=False)  # of jokers: rarity, cost, effect


@dataclasses.dataclass(frozen=True, order=True)
class Edge:
    """A relation."""

    kind: str
    source: tuple[str, str]  # label and name
    target: tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Graph:
    """All of it, in a fixed order: jokers first, as in the fact tables."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def names(self, label: str) -> list[str]:
        """The names of a label's nodes."""
        return [node.name for node in self.nodes if node.label == label]


@cache
def joker_graph() -> Graph:
    """The graph of the fact tables."""
    edges = dict.fromkeys(edge for row in facts.table("jokers") for edge in _of_joker(row))
    edges |= dict.fromkeys(
        Edge("CONTAINS", ("Hand", hand), ("Hand", other)) for hand, others in _CONTAINS.items() for other in others
    )
    jokers = [
        Node("Joker", row["name"], tuple((key, row[key]) for key in ("rarity", "cost", "effect")))
        for row in facts.table("jokers")
    ]
    fixed = [Node("Hand", row["name"]) for row in facts.table("hands")]
    fixed += [Node("Suit", name) for name in facts.SUITS] + [Node("Rank", name) for name in facts.RANKS]
    met = {end for edge in edges for end in (edge.source, edge.target)}
    others = sorted(Node(*end) for end in met if end[0] in ("Effect", "Moment", "Trait"))
    return Graph((*jokers, *fixed, *others), tuple(edges))


def _of_joker(row: dict[str, Any]) -> Iterator[Edge]:
    me = ("Joker", row["name"])
    yield Edge("ACTS", me, ("Moment", row["when"]))
    for given in row["gives"]:
        yield Edge("GIVES", me, ("Effect", _PLAIN.sub("", given)))
        if _PLAIN.match(given):
            yield Edge("NEEDS", me, ("Trait", "time"))
        for trait in _EFFECT_FEEDS.get(_PLAIN.sub("", given), ()):
            yield Edge("FEEDS", me, ("Trait", trait))
        if given == "suit_class":
            yield from (Edge("FEEDS", me, ("Suit", suit)) for suit in facts.SUITS)
    makes = set(row["gives"]) & set(_MAKES)
    for tag in row["depends_on"]:
        made = bool(makes) and not (tag == "face" and "enhances" in makes)  # Midas Mask needs faces to make gold
        for target in _of_tag(tag):
            if made and target[0] != "Rank":  # who makes faces of all cards makes no more Kings
                yield Edge("FEEDS", me, target)
            elif not made:
                yield Edge("NEEDS", me, target)


def _of_tag(tag: str) -> Iterator[tuple[str, str]]:
    """What a tag is about."""
    kind, _, rest = tag.partition(":")
    if kind in ("contains", "hand"):
        yield "Hand", rest
    elif kind == "suit":
        yield "Suit", rest
    elif kind == "rank":
        yield from (("Rank", _RANKS.get(name, name)) for name in rest.split())
    elif tag in _HAND_TAGS:
        yield "Hand", _HAND_TAGS[tag]
    elif tag in _FACE_TAGS:
        yield "Trait", "face"
        yield from (("Rank", name) for name in _FACES)
    elif tag == "single_6":
        yield "Rank", "6"
        yield "Trait", "single_card"
    elif tag == "club_and_other":
        yield "Suit", "Clubs"
    elif tag == "held_all_black":
        yield "Suit", "Clubs"
        yield "Suit", "Spades"
    else:
        yield "Trait", tag


def between(a: str, b: str) -> tuple[str, ...]:
    """Why two jokers work together, as in "both need Diamonds"; nothing where they do not."""
    links = _links()
    mine, theirs = links[a], links[b]
    shared = [f"both need {thing}" for thing in mine["NEEDS"] if thing in theirs["NEEDS"]]
    shared += [f"{b} makes {thing}, which {a} needs" for thing in mine["NEEDS"] if thing in theirs["FEEDS"]]
    shared += [f"{a} makes {thing}, which {b} needs" for thing in mine["FEEDS"] if thing in theirs["NEEDS"]]
    return tuple(shared)


@cache
def _links() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {name: {"NEEDS": [], "FEEDS": []} for name in joker_graph().names("Joker")}
    for edge in joker_graph().edges:
        if edge.kind in ("NEEDS", "FEEDS") and edge.target[1] != "time":
            found[edge.source[1]][edge.kind].append(edge.target[1])
    return found
