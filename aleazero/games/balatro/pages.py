"""Tables and pages as text: the table in front of a player, and the tables of actions, observations and coverage.

The documents' tables come from here, so that they say what the code does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aleazero.core.errors import ConfigError
from aleazero.games.balatro import actions, coverage, entities, facts, observe, text
from aleazero.games.balatro.layout import P_BLIND, P_PACK, P_PLAY, P_SHOP


def heading(g: Any) -> str:
    """Where the run stands, in a line."""
    seed = bytes(int(x) for x in g.seed[: int(g.seed_length)]).decode()
    return (
        f"seed {seed}   {facts.name_of('decks', int(g.deck))}, {facts.name_of('stakes', int(g.stake) - 1)} Stake   "
        f"ante {int(g.ante)}   money {int(g.money)}   blinds beaten {int(g.beaten)}"
    )


def blind_line(g: Any) -> str:
    """The blind that is next or being played."""
    boss = int(g.boss)
    number = boss if int(g.blind) == 2 else int(g.blind)
    line = facts.name_of("blinds", number)
    if int(g.phase) == P_PLAY:
        line += f": {float(g.round_score):,.0f} of {float(g.target):,.0f}"
        line += f"   hands {int(g.hands_left)}   discards {int(g.discards_left)}"
    if int(g.blind) != 2:
        line += f"   (boss: {facts.name_of('blinds', boss)})"
    return line


def table_lines(g: Any) -> list[tuple[str, str]]:
    """What lies on the table: (label, text) for everything that is there."""
    lines = [("", heading(g)), ("blind", blind_line(g))]
    if int(g.joker_count):
        lines.append(("jokers", "   ".join(text.joker(g, i) for i in range(int(g.joker_count)))))
    if int(g.consumable_count):
        names = (facts.name_of("consumables", int(g.consumable[i])) for i in range(int(g.consumable_count)))
        lines.append(("consumables", "   ".join(names)))
    if int(g.hand_count) and int(g.phase) in (P_PLAY, P_PACK):
        shown = (
            f"{i + 1}:{'*' if int(g.selected) >> i & 1 else ''}{text.card(g, int(g.hand[i]))}"
            for i in range(int(g.hand_count))
        )
        lines.append(("hand", "   ".join(shown)))
        lines.append(("draw pile", f"{int(g.deck_count)} cards"))
    if int(g.phase) == P_SHOP:
        things = [f"{text.on_shelf(g, i)} {int(g.shelf_cost[i])}" for i in range(int(g.shelf_count))]
        packs = [
            f"{facts.name_of('packs', int(g.booster[k]) - 1)} {int(g.booster_cost[k])}"
            for k in range(2)
            if g.booster[k]
        ]
        lines += [("shelf", "   ".join(things) or "empty"), ("packs", "   ".join(packs) or "none")]
    if int(g.phase) == P_PACK:
        lines.append(("pack", "   ".join(text.in_pack(g, i) for i in range(int(g.pack_count)))))
    if int(g.phase) == P_BLIND and int(g.blind) < 2:
        tag = int(g.tag_small) if int(g.blind) == 0 else int(g.tag_big)
        lines.append(("skip for", facts.name_of("tags", tag)))
    return lines


def table_text(g: Any) -> str:
    """The same as plain text."""
    return "\n".join(f"{label:12}{line}".rstrip() for label, line in table_lines(g))


def markdown(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(header)} |", f"| {' | '.join('---' for _ in header)} |"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def action_page() -> str:
    """Every range of actions."""
    rows = [
        (f"`{name}`", str(first) if first == last else f"{first} to {last}", what)
        for name, first, last, what in actions.action_table()
    ]
    rows.append(("unused", f"{actions.A_END} to {actions.NUM_ACTIONS - 1}", "never legal"))
    return markdown(("action", "numbers", "what it does"), rows)


def observation_page() -> str:
    """Every entry of the observation, with its bounds."""
    shapes = {
        "cards": ("0 to 1", observe.CARD_ENTRIES),
        "jokers": ("0 to 1", observe.JOKER_ENTRIES),
    }
    rows = [
        (f"`{key}`", f"[:, {k}]", bounds, what)
        for key, (bounds, entries) in shapes.items()
        for k, what in enumerate(entries)
    ]
    rows += [("`game_state`", f"[{k}]", "unbounded", what) for k, what in enumerate(observe.STATE_ENTRIES)]
    rows.append(
        ("`memgraph_embedding`", "[0] to [127]", "-1 to 1", "what the embedding client says; zeros without one")
    )
    rows.append(("`action_mask`", "[0] to [999]", "0 to 1", "1 where the action is legal"))
    for key, (_, columns) in entities.ENTITIES.items():
        rows += [(f"`{key}`", f"[:, {k}]", f"{low:g} to {high:g}", what) for k, (what, low, high) in enumerate(columns)]
    return markdown(("key", "place", "bounds", "what it is"), rows)


def shape_page() -> str:
    """The shape of every key."""
    rows = [
        (
            "`cards`",
            f"{(observe.CARD_ROWS, observe.CARD_COLUMNS)}",
            "a row for every rank of every suit, 2 to Ace, Clubs first",
        ),
        ("`jokers`", f"{(observe.JOKER_ROWS, observe.JOKER_COLUMNS)}", "a row for every joker of the game"),
        ("`game_state`", f"{(observe.STATE_SIZE,)}", "the run and the round"),
        ("`memgraph_embedding`", "(128,)", "of the owned jokers"),
        ("`action_mask`", f"{(actions.NUM_ACTIONS,)}", "what is legal"),
    ]
    words = {
        "hand": "the cards of the hand, left to right",
        "deck": "cards that have not been seen this round, by suit and rank",
        "owned_jokers": "the owned jokers, left to right",
        "consumables": "the owned consumables",
        "shop": "five places of the shelf, two vouchers, two packs",
        "pack": "the open pack",
    }
    rows += [(f"`{key}`", str(entities.shape_of(key)), words[key]) for key in entities.ENTITIES]
    return markdown(("key", "shape", "rows"), rows)


def coverage_page() -> str:
    """How much of each kind works."""
    rows = [
        (row.kind, f"{row.working} of {row.total}", ", ".join(row.missing) or "none") for row in coverage.coverage()
    ]
    return markdown(("kind", "working", "taken out of the pools"), rows)


PAGES = {
    "actions": action_page,
    "shapes": shape_page,
    "observation": observation_page,
    "coverage": coverage_page,
}


def fill(document: str) -> str:
    """A document with its tables made anew: what stands between `<!-- NAME -->` and `<!-- end NAME -->`."""
    for name, page in PAGES.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end {name} -->"
        if start not in document:
            continue
        before, rest = document.split(start, 1)
        if end not in rest:
            raise ConfigError(f"the document has {start.strip()!r} without {end!r} behind it")
        document = f"{before}{start}{page()}\n{end}{rest.split(end, 1)[1]}"
    return document
