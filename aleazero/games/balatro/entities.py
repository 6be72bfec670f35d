"""What a player sees, thing by thing: rows for hand, unseen cards, jokers, consumables, the shop and the open pack.

Numbers are those of `aleazero.games.balatro.ids`, not squashed, each with its bounds; a row of zeros is an empty place.
Nothing hidden is in it: a face-down card has a row that says only that it lies there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro import trade
from aleazero.games.balatro.engine import Batch, spread
from aleazero.games.balatro.jit import entry, i64, jit
from aleazero.games.balatro.layout import (
    AT_DECK,
    AT_HAND,
    F_DEBUFFED,
    F_FACE_DOWN,
    F_FORCED,
    MAX_CARDS,
    MAX_CONSUMABLES,
    MAX_HAND,
    MAX_JOKERS,
    MAX_PACK,
    MAX_SHELF,
    P_PACK,
    P_SHOP,
)
from aleazero.games.balatro.observe import STATE_SIZE, observe_state

SHOP_ROWS = MAX_SHELF + 4  # the shelf, two vouchers, two packs
K_VOUCHER, K_PACK = 4, 5  # kinds in the shop besides joker 1, consumable 2, playing card 3
_MOST = 32767.0  # of what grows: sell values, permanent chips
_COUNTER = 1e9  # a joker's counter is held within this

Column = tuple[str, float, float]  # what it is, least, most

_CARD: tuple[Column, ...] = (
    ("rank, 2 to 14, or 0", 0, 14),
    ("suit: 0 Clubs, 1 Diamonds, 2 Hearts, 3 Spades", 0, 3),
    ("enhancement", 0, 8),
    ("seal", 0, 4),
)
ENTITIES: dict[str, tuple[int, tuple[Column, ...]]] = {
    "hand": (
        MAX_HAND,
        (
            ("a card lies here", 0, 1),
            *_CARD,
            ("edition", 0, 4),
            ("debuffed", 0, 1),
            ("face down", 0, 1),
            ("selected", 0, 1),
            ("must be played or discarded", 0, 1),
            ("permanent chips", 0, _MOST),
        ),
    ),
    "deck": (
        4,
        tuple((f"unseen cards of rank {rank}; rows are suits", 0.0, float(MAX_CARDS)) for rank in range(2, 15)),
    ),
    "owned_jokers": (
        MAX_JOKERS,
        (
            ("joker, from 1", 0, 150),
            ("edition", 0, 4),
            ("stickers: 1 eternal, 2 perishable, 4 rental, added up", 0, 7),
            ("rounds left of a perishable", 0, 5),
            ("its counter", -_COUNTER, _COUNTER),
            ("its second number", -_MOST - 1, _MOST),
            ("sell value", -_MOST - 1, _MOST),
            ("disabled by the boss", 0, 1),
        ),
    ),
    "consumables": (
        MAX_CONSUMABLES,
        (("consumable, from 1", 0, 52), ("negative", 0, 1), ("sell value", -_MOST - 1, _MOST)),
    ),
    "shop": (
        SHOP_ROWS,
        (
            ("kind: 1 joker, 2 consumable, 3 playing card, 4 voucher, 5 pack", 0, 5),
            ("number of its kind, from 1", 0, 150),
            *_CARD,
            ("edition", 0, 4),
            ("stickers", 0, 7),
            ("price", 0, _MOST),
        ),
    ),
    "pack": (
        MAX_PACK,
        (
            ("kind: 1 joker, 2 consumable, 3 playing card", 0, 3),
            ("number of its kind, from 1", 0, 150),
            *_CARD,
            ("edition", 0, 4),
            ("stickers", 0, 7),
        ),
    ),
}


def shape_of(name: str) -> tuple[int, int]:
    """The shape of an entity's rows."""
    rows, columns = ENTITIES[name]
    return rows, len(columns)


_HAND_SHAPE, _DECK_SHAPE, _JOKERS_SHAPE, _CONSUMABLES_SHAPE, _SHOP_SHAPE, _PACK_SHAPE = map(shape_of, ENTITIES)
# Where each begins in what is seen of a game, after the table; and where it ends.
_ENDS = np.cumsum([STATE_SIZE, *(rows * columns for rows, columns in map(shape_of, ENTITIES))])
_FIRST, WIDTH = _ENDS[:-1], int(_ENDS[-1])
_HAND, _DECK, _JOKERS, _CONSUMABLES, _SHOP, _PACK = map(int, _FIRST)


@jit
def _hand(g: Any, hand: Any, deck: Any) -> None:
    for c in range(int(g.card_count)):
        hidden = i64(g.place[c]) == AT_HAND and i64(g.card_flags[c]) & F_FACE_DOWN != 0
        if i64(g.place[c]) == AT_DECK or hidden:
            deck[i64(g.suit[c]), i64(g.rank[c]) - 2] += 1.0
    for i in range(int(g.hand_count)):
        c = i64(g.hand[i])
        flags = i64(g.card_flags[c])
        hand[i, 0] = 1.0
        hand[i, 8] = int(g.selected) >> i & 1
        hand[i, 9] = 1.0 if flags & F_FORCED != 0 else 0.0
        if flags & F_FACE_DOWN != 0:
            hand[i, 7] = 1.0
            continue
        hand[i, 1] = i64(g.rank[c])
        hand[i, 2] = i64(g.suit[c])
        hand[i, 3] = i64(g.enhancement[c])
        hand[i, 4] = i64(g.seal[c])
        hand[i, 5] = i64(g.edition[c])
        hand[i, 6] = 1.0 if flags & F_DEBUFFED != 0 else 0.0
        hand[i, 10] = i64(g.bonus[c])


@jit
def _owned(g: Any, jokers: Any, consumables: Any) -> None:
    for i in range(int(g.joker_count)):
        jokers[i, 0] = i64(g.joker[i])
        jokers[i, 1] = i64(g.joker_edition[i])
        jokers[i, 2] = i64(g.joker_sticker[i])
        jokers[i, 3] = max(0, i64(g.joker_perish[i]))
        jokers[i, 4] = min(_COUNTER, max(-_COUNTER, float(g.joker_value[i])))
        jokers[i, 5] = i64(g.joker_extra[i])
        jokers[i, 6] = i64(g.joker_sell[i])
        jokers[i, 7] = 1.0 if int(g.joker_disabled) == i else 0.0
    for i in range(int(g.consumable_count)):
        consumables[i, 0] = i64(g.consumable[i])
        consumables[i, 1] = i64(g.consumable_negative[i])
        consumables[i, 2] = i64(g.consumable_sell[i])


@jit
def _in_shop(g: Any, shop: Any, voucher_price: int) -> None:
    for i in range(int(g.shelf_count)):
        shop[i, 0] = i64(g.shelf_kind[i])
        shop[i, 1] = i64(g.shelf_id[i])
        if i64(g.shelf_kind[i]) == 3:
            for k in range(4):
                shop[i, 2 + k] = i64(g.shelf_card[i, k])
        shop[i, 6] = i64(g.shelf_edition[i])
        shop[i, 7] = i64(g.shelf_sticker[i])
        shop[i, 8] = i64(g.shelf_cost[i])
    for k in range(2):
        voucher = int(g.voucher) if k == 0 else int(g.voucher_extra)
        if voucher > 0:
            shop[MAX_SHELF + k, 0] = K_VOUCHER
            shop[MAX_SHELF + k, 1] = voucher
            shop[MAX_SHELF + k, 8] = voucher_price
        if i64(g.booster[k]) > 0:
            shop[MAX_SHELF + 2 + k, 0] = K_PACK
            shop[MAX_SHELF + 2 + k, 1] = i64(g.booster[k])
            shop[MAX_SHELF + 2 + k, 8] = i64(g.booster_cost[k])


@jit
def _in_pack(g: Any, pack: Any) -> None:
    for i in range(int(g.pack_count)):
        pack[i, 0] = i64(g.pack_what[i])
        pack[i, 1] = i64(g.pack_item[i])
        if i64(g.pack_what[i]) == 3:
            for k in range(4):
                pack[i, 2 + k] = i64(g.pack_card[i, k])
        pack[i, 6] = i64(g.pack_edition[i])
        pack[i, 7] = i64(g.pack_sticker[i])


@entry
def _observe(states: Any, out: Any, low: int, high: int) -> None:
    for b in range(low, high):
        g = states[b]
        row = out[b]
        row[:WIDTH] = 0.0
        observe_state(g, row[:_HAND])
        _hand(g, row[_HAND:_DECK].reshape(*_HAND_SHAPE), row[_DECK:_JOKERS].reshape(*_DECK_SHAPE))
        jokers, consumables = row[_JOKERS:_CONSUMABLES], row[_CONSUMABLES:_SHOP]
        _owned(g, jokers.reshape(*_JOKERS_SHAPE), consumables.reshape(*_CONSUMABLES_SHAPE))
        opened = int(g.phase) == P_PACK
        if int(g.phase) == P_SHOP or (opened and int(g.pack_return) == P_SHOP):
            _in_shop(g, row[_SHOP:_PACK].reshape(*_SHOP_SHAPE), trade.voucher_price(g))
        if opened:
            _in_pack(g, row[_PACK:WIDTH].reshape(*_PACK_SHAPE))


def observe_flat(batch: Batch, out: np.ndarray | None = None) -> np.ndarray:
    """`[B, WIDTH]`: the table, then every thing's row as `ENTITIES` has them.

    Written over the first columns of `out` where it is given, which may be wider.
    """
    seen = np.empty((len(batch), WIDTH), np.float32) if out is None else out
    spread(_observe, len(batch), batch.threads, batch.states, seen)
    return seen


def observe_rows(batch: Batch) -> dict[str, np.ndarray]:
    """The rows of every game, `[B, rows, columns]` each, in the order of `ENTITIES`."""
    parts = np.split(observe_flat(batch), _FIRST, axis=1)[1:]
    return {name: part.reshape(len(batch), *shape_of(name)) for name, part in zip(ENTITIES, parts, strict=True)}
