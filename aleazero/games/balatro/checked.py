"""Records that come from elsewhere, checked before compiled code sees them: it trusts every number it is given."""

from __future__ import annotations

import numpy as np

from aleazero.core.errors import ConfigError
from aleazero.games.balatro import tables
from aleazero.games.balatro.engine import LAST_ANTE, Batch
from aleazero.games.balatro.layout import (
    G_CONSUMABLE,
    G_JOKER,
    MAX_CARDS,
    MAX_CONSUMABLES,
    MAX_HAND,
    MAX_JOKERS,
    MAX_PACK,
    MAX_SHELF,
    MAX_TAGS,
    NUM_HANDS,
    P_OVER,
    RECORD,
    STREAMS,
)

_MOST = 10**6  # of what is counted: money, cards drawn, ...
# Field -> least and most; what is not named is a quantity, and must be finite and small.
_BOUNDS: dict[str, tuple[int, int]] = {
    "phase": (0, P_OVER),
    "deck": (0, 14),
    "stake": (1, 8),
    "ante": (-8, 4 + LAST_ANTE),
    "last_ante": (1, LAST_ANTE),
    "blind": (0, 2),
    "boss": (0, tables.NUM_BLINDS - 1),
    "error": (0, 16),
    "seed_length": (1, 8),
    "streams": (0, STREAMS),
    "deck_count": (0, MAX_CARDS),
    "card_count": (0, MAX_CARDS),
    "hand_count": (0, MAX_HAND),
    "played_count": (0, 5),
    "joker_count": (0, MAX_JOKERS),
    "consumable_count": (0, MAX_CONSUMABLES),
    "shelf_count": (0, MAX_SHELF),
    "pack_count": (0, MAX_PACK),
    "tag_count": (0, MAX_TAGS),
    "pack_kind": (-1, len(tables.PACK_KIND)),
    "hand_size": (-64, MAX_HAND),
    "selected": (0, (1 << MAX_HAND) - 1),
    "vouchers": (0, 1 << (tables.NUM_VOUCHERS + 1)),
    "planets_seen": (0, 1 << 62),
    "last_consumable": (0, tables.NUM_CONSUMABLES),
    "in_use": (0, tables.NUM_CONSUMABLES),
    "voucher": (0, tables.NUM_VOUCHERS),
    "voucher_extra": (0, tables.NUM_VOUCHERS),
    "joker_disabled": (-1, MAX_JOKERS - 1),
    "idol_suit": (-1, 3),
    "ancient_suit": (-1, 3),
    "castle_suit": (-1, 3),
    "idol_rank": (0, 14),
    "mail_rank": (0, 14),
    "rank": (0, 14),
    "suit": (0, 3),
    "enhancement": (0, 8),
    "edition": (0, 4),
    "seal": (0, 4),
    "place": (0, 4),
    "draw_pile": (0, MAX_CARDS - 1),
    "hand": (0, MAX_CARDS - 1),
    "played": (0, MAX_CARDS - 1),
    "joker": (0, tables.NUM_JOKERS),
    "joker_edition": (0, 4),
    "joker_sticker": (0, 7),
    "joker_target": (-1, MAX_JOKERS - 1),
    "consumable": (0, tables.NUM_CONSUMABLES),
    "shelf_kind": (0, 3),
    "shelf_edition": (0, 4),
    "shelf_sticker": (0, 7),
    "booster": (0, tables.NUM_PACKS),
    "pack_what": (0, 3),
    "pack_edition": (0, 4),
    "pack_sticker": (0, 7),
    "tags": (0, tables.NUM_TAGS),
    "seed": (0, 127),
    **dict.fromkeys(("tag_small", "tag_big"), (0, tables.NUM_TAGS)),
    **dict.fromkeys(("last_hand", "first_hand", "most_played"), (-1, NUM_HANDS - 1)),
    **dict.fromkeys(("orbital_small", "orbital_big", "tag_hand"), (-1, NUM_HANDS - 1)),
}
_ANY = ("hashed_seed", "stream_value", "stream_key", "unused")  # random streams: any bits do
_FINITE = ("target", "round_score", "best_hand", "chips", "mult", "hand_score", "joker_value")


_LAST = [tables.NUM_JOKERS, tables.NUM_CONSUMABLES]  # numbers of what is offered, by its kind; others have none


def checked(row: bytes) -> Batch:
    """The game of a record's bytes, as `Batch.snapshot` gives them; ConfigError names every field that is wrong."""
    if len(row) != RECORD.itemsize:
        raise ConfigError(f"{len(row)} bytes are no game: one has {RECORD.itemsize}")
    states = np.frombuffer(row, RECORD)
    wrong = [name for name in RECORD.names or () if not _fine(name, states[name])]
    for name in ("shelf_card", "pack_card"):
        fronts = states[name].reshape(-1, 4)
        if not ((fronts >= 0) & (fronts <= [14, 3, 8, 4])).all():
            wrong.append(name)
    for name, kind in (("shelf_id", "shelf_kind"), ("pack_item", "pack_what")):
        last = np.select([states[kind] == G_JOKER, states[kind] == G_CONSUMABLE], _LAST)
        if not ((states[name] >= np.minimum(last, 1)) & (states[name] <= last)).all():
            wrong.append(name)
    if wrong:
        raise ConfigError(f"this is no game: out of range are {', '.join(sorted(set(wrong)))}")
    return Batch.restore([row])


def _fine(name: str, values: np.ndarray) -> bool:
    if name in _ANY:
        return True
    if name in _FINITE:
        return bool((np.abs(values) >= 0).all())  # no NaN; scores have no bound
    low, high = _BOUNDS.get(name, (-_MOST, _MOST))
    return bool(((values >= low) & (values <= high)).all())
