"""What is asked of the joker graph, in openCypher that all its databases understand; synergies, weighed.

Something that few jokers have to do with says more than what many have: a thing counts 1 over its number of jokers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from aleazero.games.balatro import facts
from aleazero.graph.store import Rows, Store

_PAIRS = {
    "both need": ("NEEDS", "NEEDS"),
    "makes what it needs": ("NEEDS", "FEEDS"),
    "needs what it makes": ("FEEDS", "NEEDS"),
}
SYNERGIES = "\nUNION ALL\n".join(
    f"MATCH (a:Joker {{name: $name}})-[:{mine}]->(t)<-[:{theirs}]-(b:Joker) WHERE b.name <> $name AND t.name <> 'time' "
    f"RETURN b.name AS joker, '{how}' AS how, t.name AS thing, t.jokers AS jokers"
    for how, (mine, theirs) in _PAIRS.items()
)
# Named queries: what they say, and their text. All take $name.
NAMED = {
    "synergies": ("jokers that work together with a joker, and over what", SYNERGIES),
    "needs": (
        "what a joker needs, makes and gives",
        "MATCH (a:Joker {name: $name})-[:NEEDS]->(t) RETURN 'needs' AS how, t.kind AS kind, t.name AS thing\n"
        "UNION ALL\n"
        "MATCH (a:Joker {name: $name})-[:FEEDS]->(t) RETURN 'makes' AS how, t.kind AS kind, t.name AS thing\n"
        "UNION ALL\n"
        "MATCH (a:Joker {name: $name})-[:GIVES]->(t) RETURN 'gives' AS how, t.kind AS kind, t.name AS thing",
    ),
    "for": (
        "jokers for a hand, suit, rank or trait",
        "MATCH (b:Joker)-[:NEEDS]->(t) WHERE t.name = $name RETURN b.name AS joker, 'needs it' AS how\n"
        "UNION ALL\n"
        "MATCH (b:Joker)-[:FEEDS]->(t) WHERE t.name = $name RETURN b.name AS joker, 'makes it' AS how",
    ),
}


@dataclasses.dataclass(frozen=True)
class Synergy:
    """A joker that works together with another."""

    joker: str
    weight: float
    reasons: tuple[str, ...]  # as in "both need Diamonds"


def synergies(store: Store, name: str) -> list[Synergy]:
    """Of a joker, the strongest first; an unknown joker raises with the nearest match."""
    facts.number("jokers", name)
    return weigh(store.query(SYNERGIES, {"name": name}))


def weigh(found: Rows) -> list[Synergy]:
    """The rows of `SYNERGIES` by joker."""
    weights: dict[str, float] = {}
    reasons: dict[str, list[str]] = {}
    for row in found.rows:
        at: Mapping[str, object] = dict(zip(found.columns, row, strict=True))
        if at["jokers"] is None:  # somebody else's node on the same server
            continue
        joker = str(at["joker"])
        weights[joker] = weights.get(joker, 0.0) + 1.0 / max(int(str(at["jokers"])), 1)
        reasons.setdefault(joker, []).append(f"{at['how']}: {at['thing']}")
    ordered = sorted(weights, key=lambda joker: (-weights[joker], joker))
    return [Synergy(joker, weights[joker], tuple(sorted(reasons[joker]))) for joker in ordered]
