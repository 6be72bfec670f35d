"""The fact tables as arrays, for compiled code. Indexed by the numbers of `aleazero.games.balatro.ids`."""

from __future__ import annotations

import numpy as np

from aleazero.games.balatro import facts

_JOKERS = facts.table("jokers")
_RARITIES = ("Common", "Uncommon", "Rare", "Legendary")
_ENHANCEMENT_IDS = ("", "m_bonus", "m_mult", "m_wild", "m_glass", "m_steel", "m_stone", "m_gold", "m_lucky")


def _column(values: list[int]) -> np.ndarray:
    return np.array([0, *values], np.int64)


NUM_JOKERS = len(_JOKERS)
JOKER_RARITY = _column([_RARITIES.index(row["rarity"]) + 1 for row in _JOKERS])
JOKER_COST = _column([row["cost"] for row in _JOKERS])
JOKER_COPYABLE = _column([row["copyable"] for row in _JOKERS])
JOKER_ETERNAL = _column([row["eternal"] for row in _JOKERS])
JOKER_PERISHABLE = _column([row["perishable"] for row in _JOKERS])
JOKER_NEEDS_CARD = _column([_ENHANCEMENT_IDS.index(row.get("needs_card", "")) for row in _JOKERS])
JOKER_NEEDS_FLAG = _column([int("needs_flag" in row) for row in _JOKERS])
JOKER_BLOCKED_BY = _column([int("blocked_by" in row) for row in _JOKERS])

# [rarity - 1, place]: the pools, and their lengths.
POOL_SIZE = np.array([int(np.sum(r == JOKER_RARITY)) for r in (1, 2, 3, 4)], np.int64)
POOL = np.zeros((4, int(POOL_SIZE.max())), np.int64)
for _r in range(4):
    POOL[_r, : POOL_SIZE[_r]] = np.flatnonzero(_r + 1 == JOKER_RARITY)

NUM_TAROTS, NUM_PLANETS, NUM_SPECTRALS = (len(facts.table(n)) for n in ("tarots", "planets", "spectrals"))
FIRST_PLANET = NUM_TAROTS + 1
FIRST_SPECTRAL = FIRST_PLANET + NUM_PLANETS
NUM_CONSUMABLES = NUM_TAROTS + NUM_PLANETS + NUM_SPECTRALS
CONSUMABLE_COST = _column([row["cost"] for row in facts.consumables()])
_HANDS = facts.table("hands")
_HAND_NAMES = [row["name"] for row in _HANDS]
PLANET_HAND = _column([_HAND_NAMES.index(row["hand"]) if "hand" in row else -1 for row in facts.consumables()])
PLANET_SECRET = _column([int(row.get("secret", False)) for row in facts.consumables()])
SELECT_LEAST = _column([row.get("select", [0, 0])[0] for row in facts.consumables()])
SELECT_MOST = _column([row.get("select", [0, 0])[1] for row in facts.consumables()])
HAND_PLANET = np.array([int(np.flatnonzero(PLANET_HAND[1:] == h)[0]) + 1 for h in range(len(_HANDS))], np.int64)

HAND_CHIPS = np.array([row["chips"] for row in _HANDS], np.int64)
HAND_MULT = np.array([row["mult"] for row in _HANDS], np.int64)
HAND_CHIPS_STEP = np.array([row["chips_per_level"] for row in _HANDS], np.int64)
HAND_MULT_STEP = np.array([row["mult_per_level"] for row in _HANDS], np.int64)
HAND_SECRET = np.array([row["secret"] for row in _HANDS], np.bool_)
# The order in which the game walks through its table of poker hands (To Do List, Orbital Tag).
WALK = (
    "Flush House", "Full House", "Flush", "Pair", "High Card", "Straight Flush", "Straight", "Two Pair", "Flush Five",
    "Five of a Kind", "Three of a Kind", "Four of a Kind",
)  # fmt: skip
HAND_WALK = np.array([_HAND_NAMES.index(name) for name in WALK], np.int64)

RANK_CHIPS = np.array([0, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10, 11], np.int64)
# Playing cards in the order of their names (C_2 .. C_9, C_A, C_J, C_K, C_Q, C_T, D_2 ..): ranks and suits.
_NAMED = (2, 3, 4, 5, 6, 7, 8, 9, 14, 11, 13, 12, 10)
FRONT_RANK = np.array([rank for _ in range(4) for rank in _NAMED], np.int64)
FRONT_SUIT = np.array([suit for suit in range(4) for _ in _NAMED], np.int64)

_BLINDS = facts.table("blinds")
NUM_BLINDS = len(_BLINDS)
BLIND_MULT = np.array([row["mult"] for row in _BLINDS], np.float64)
BLIND_REWARD = np.array([row["reward"] for row in _BLINDS], np.int64)
BLIND_SHOWDOWN = np.array([row["kind"] == "showdown" for row in _BLINDS], np.bool_)
BLIND_ANTE = np.array([row.get("min_ante", 99) for row in _BLINDS], np.int64)
BOSSES = np.array(
    sorted((i for i, row in enumerate(_BLINDS) if row["kind"] in ("boss", "showdown")), key=lambda i: _BLINDS[i]["id"]),
    np.int64,
)
BASE_TARGET = np.array(facts.base_targets(), np.float64)  # [scaling, ante]

_TAGS = facts.table("tags")
NUM_TAGS = len(_TAGS)
TAG_ANTE = _column([row["min_ante"] for row in _TAGS])
_VOUCHERS = facts.table("vouchers")
NUM_VOUCHERS = len(_VOUCHERS)
_VOUCHER_IDS = [row["id"] for row in _VOUCHERS]
VOUCHER_NEEDS = _column([_VOUCHER_IDS.index(row["requires"]) + 1 if "requires" in row else 0 for row in _VOUCHERS])

_PACKS = facts.table("packs")
NUM_PACKS = len(_PACKS)
PACK_KINDS = ("Arcana", "Celestial", "Standard", "Buffoon", "Spectral")
PACK_KIND = np.array([PACK_KINDS.index(row["kind"]) for row in _PACKS], np.int64)
PACK_COST = np.array([row["cost"] for row in _PACKS], np.int64)
PACK_CARDS = np.array([row["cards"] for row in _PACKS], np.int64)
PACK_CHOOSE = np.array([row["choose"] for row in _PACKS], np.int64)
# One entry for every variant, in pool order: the pack it is and its weight.
BOOSTER_PACK = np.array([i for i, row in enumerate(_PACKS) for _ in range(row["variants"])], np.int64)
BOOSTER_WEIGHT = np.array(
    [round(row["weight_total"] / row["variants"], 6) for row in _PACKS for _ in range(row["variants"])], np.float64
)
