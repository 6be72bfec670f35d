"""The state of a game: one record of fixed shape, its random streams included.

A batch is an array of records, `new_batch(count)`; a field of the batch is an array of its own (`states["money"]`).
What a field counts in: ranks 2..14 (Ace 14), suits Clubs 0, Diamonds 1, Hearts 2, Spades 3, everything else numbers of
`aleazero.games.balatro.ids`. Cards lie in the order they were made: a card's place is its creation number.
Knows shapes, no rules.
"""

from __future__ import annotations

import numpy as np

MAX_CARDS = 120  # playing cards of one game, those destroyed in this round included
MAX_HAND = 24
MAX_JOKERS = 14
MAX_CONSUMABLES = 14
MAX_SHELF = 5
MAX_PACK = 5
MAX_TAGS = 16
STREAMS = 296  # random streams that can be remembered at once
NUM_HANDS = 12

# What the player is asked.
P_BLIND, P_PLAY, P_SHOP, P_PACK, P_CASHOUT, P_OVER = range(6)
# Enhancements, editions, seals.
E_NONE, E_BONUS, E_MULT, E_WILD, E_GLASS, E_STEEL, E_STONE, E_GOLD, E_LUCKY = range(9)
ED_NONE, ED_FOIL, ED_HOLO, ED_POLY, ED_NEGATIVE = range(5)
SEAL_NONE, SEAL_GOLD, SEAL_RED, SEAL_BLUE, SEAL_PURPLE = range(5)
CLUBS, DIAMONDS, HEARTS, SPADES = range(4)
JACK, QUEEN, KING, ACE = 11, 12, 13, 14
# Poker hands, best first.
(
    H_FLUSH_FIVE, H_FLUSH_HOUSE, H_FIVE, H_STRAIGHT_FLUSH, H_FOUR, H_FULL_HOUSE, H_FLUSH, H_STRAIGHT, H_THREE,
    H_TWO_PAIR, H_PAIR, H_HIGH_CARD,
) = range(NUM_HANDS)  # fmt: skip
# Where a playing card is.
AT_GONE, AT_DECK, AT_HAND, AT_PLAYED, AT_DISCARDED = range(5)
# Bits of `card_flags`.
F_DEBUFFED, F_FACE_DOWN, F_PLAYED_THIS_ANTE, F_FORCED = 1, 2, 4, 8
# Bits of joker stickers.
ST_ETERNAL, ST_PERISHABLE, ST_RENTAL = 1, 2, 4
# What lies on a shelf or in a pack.
G_NONE, G_JOKER, G_CONSUMABLE, G_CARD = range(4)
# Why an engine stopped (`error`).
OK, ERR_CARDS, ERR_JOKERS, ERR_CONSUMABLES, ERR_STREAMS, ERR_TAGS, ERR_HAND, ERR_ACTION = range(8)

_FIELDS: list[tuple[str, type, tuple[int, ...]]] = [
    # The run.
    ("hashed_seed", np.float64, ()),
    ("target", np.float64, ()),  # what the blind asks for
    ("round_score", np.float64, ()),
    ("best_hand", np.float64, ()),
    ("chips", np.float64, ()),  # of the hand last scored, before Plasma's balance
    ("mult", np.float64, ()),
    ("hand_score", np.float64, ()),
    ("money", np.int64, ()),
    ("money_before", np.int64, ()),  # when the hand now scored was played
    ("error", np.int64, ()),
    ("phase", np.int64, ()),
    ("deck", np.int64, ()),
    ("stake", np.int64, ()),  # 1..8
    ("ante", np.int64, ()),
    ("blind", np.int64, ()),  # 0 small, 1 big, 2 boss: which is next or being played
    ("boss", np.int64, ()),  # blind number of this ante's boss
    ("boss_off", np.int64, ()),  # the boss's effect is disabled
    ("round_number", np.int64, ()),
    ("beaten", np.int64, ()),  # blinds beaten this run
    ("gained", np.int64, ()),  # of them by the last action
    ("won", np.int64, ()),  # ante 8's boss was beaten
    ("hands_left", np.int64, ()),
    ("discards_left", np.int64, ()),
    ("hands_played", np.int64, ()),  # this round
    ("discards_used", np.int64, ()),  # this round
    ("round_hands", np.int64, ()),  # hands at the start of a round, before jokers' and bosses' changes
    ("round_discards", np.int64, ()),
    ("hand_size", np.int64, ()),
    ("joker_slots", np.int64, ()),
    ("consumable_slots", np.int64, ()),
    ("starting_cards", np.int64, ()),
    ("last_hand", np.int64, ()),  # poker hand last played this run, -1 if none
    ("first_hand", np.int64, ()),  # poker hand of the round's first play, -1 if none (The Mouth)
    ("most_played", np.int64, ()),  # fixed when the blind starts (The Ox)
    ("idol_rank", np.int64, ()),
    ("idol_suit", np.int64, ()),
    ("mail_rank", np.int64, ()),
    ("ancient_suit", np.int64, ()),
    ("castle_suit", np.int64, ()),
    ("voucher", np.int64, ()),  # this ante's, 0 when bought
    ("voucher_extra", np.int64, ()),  # from a Voucher Tag
    ("reroll_base", np.int64, ()),
    ("reroll_cost", np.int64, ()),
    ("free_rerolls", np.int64, ()),
    ("boss_rerolls", np.int64, ()),  # this ante
    ("first_pack", np.int64, ()),  # the run's first pack was shown
    ("pool_flags", np.int64, ()),  # 1: Gros Michel is extinct
    ("tarots_used", np.int64, ()),
    ("planets_seen", np.int64, ()),  # bits of the planets used this run
    ("last_consumable", np.int64, ()),  # last tarot or planet used, for The Fool
    ("hands_total", np.int64, ()),  # this run
    ("unused_discards", np.int64, ()),  # this run
    ("skips", np.int64, ()),
    ("ectoplasms", np.int64, ()),
    ("round_hand_size", np.int64, ()),  # added for one round (Juggle Tag)
    ("cashout", np.int64, ()),  # what the round pays
    ("pack_kind", np.int64, ()),  # open pack, -1 none
    ("pack_left", np.int64, ()),  # cards still to choose
    ("pack_return", np.int64, ()),  # phase after the pack
    ("pending", np.int64, ()),  # what the next choice of cards is for, 0 nothing
    ("seed_length", np.int64, ()),
    ("streams", np.int64, ()),  # how many are remembered
    ("deck_count", np.int64, ()),
    ("card_count", np.int64, ()),  # places used in the card tables
    ("hand_count", np.int64, ()),
    ("played_count", np.int64, ()),
    ("joker_count", np.int64, ()),
    ("consumable_count", np.int64, ()),
    ("shelf_count", np.int64, ()),
    ("pack_count", np.int64, ()),
    ("tag_count", np.int64, ()),
    ("vouchers", np.int64, ()),  # bits of those owned
    ("tag_small", np.int64, ()),
    ("tag_big", np.int64, ()),
    ("orbital_small", np.int64, ()),  # the hand an Orbital Tag would raise
    ("orbital_big", np.int64, ()),
    ("joker_disabled", np.int64, ()),  # the place Crimson Heart disables, -1 none
    ("free_moves", np.int64, ()),  # choosing and ordering since something last happened
    ("last_ante", np.int64, ()),  # the run ends when its boss is beaten
    ("selected", np.int64, ()),  # bits of hand places, being chosen
    ("boss_fired", np.int64, ()),  # the hand set off the boss's effect (Matador)
    ("boss_pressed", np.int64, ()),  # the boss acted when the hand was played, before it scored
    ("boss_took", np.int64, ()),  # hands or discards the boss took away
    ("just_played", np.int64, ()),  # the cards drawn now follow a played hand (The Fish)
    ("lucky", np.int64, ()),  # the card now scored was lucky
    ("in_use", np.int64, ()),  # the consumable that is taking effect, 0 none
    # Random streams.
    ("stream_value", np.float64, (STREAMS,)),
    ("stream_key", np.int32, (STREAMS,)),  # 0 where empty
    ("seed", np.int8, (8,)),
    # Poker hands.
    ("level", np.int16, (NUM_HANDS,)),
    ("plays", np.int16, (NUM_HANDS,)),  # this run
    ("round_plays", np.int16, (NUM_HANDS,)),
    ("boss_uses", np.int8, (32,)),
    # Playing cards.
    ("rank", np.int8, (MAX_CARDS,)),
    ("suit", np.int8, (MAX_CARDS,)),
    ("enhancement", np.int8, (MAX_CARDS,)),
    ("edition", np.int8, (MAX_CARDS,)),
    ("seal", np.int8, (MAX_CARDS,)),
    ("card_flags", np.int8, (MAX_CARDS,)),
    ("place", np.int8, (MAX_CARDS,)),
    ("bonus", np.int16, (MAX_CARDS,)),  # permanent chips
    ("draw_pile", np.int8, (MAX_CARDS,)),  # dealt from the end
    ("hand", np.int8, (MAX_HAND,)),
    ("played", np.int8, (5,)),
    ("scoring", np.int8, (5,)),  # 1 where the played card scores
    # Jokers.
    ("joker", np.int16, (MAX_JOKERS,)),
    ("joker_value", np.float64, (MAX_JOKERS,)),  # its counter: what it has grown to or has left
    ("joker_extra", np.int16, (MAX_JOKERS,)),  # a second number: listed hand, xmult, hands played before it came
    ("joker_sell", np.int16, (MAX_JOKERS,)),  # sell value
    ("joker_edition", np.int8, (MAX_JOKERS,)),
    ("joker_sticker", np.int8, (MAX_JOKERS,)),
    ("joker_perish", np.int8, (MAX_JOKERS,)),  # rounds left of a perishable
    ("joker_target", np.int8, (MAX_JOKERS,)),  # whose ability it uses: its own place, another's, -1 nobody's
    # Consumables.
    ("consumable", np.int8, (MAX_CONSUMABLES,)),
    ("consumable_negative", np.int8, (MAX_CONSUMABLES,)),
    ("consumable_sell", np.int16, (MAX_CONSUMABLES,)),
    # Shelf and pack.
    ("shelf_kind", np.int8, (MAX_SHELF,)),
    ("shelf_id", np.int16, (MAX_SHELF,)),
    ("shelf_edition", np.int8, (MAX_SHELF,)),
    ("shelf_sticker", np.int8, (MAX_SHELF,)),
    ("shelf_cost", np.int16, (MAX_SHELF,)),
    ("shelf_card", np.int8, (MAX_SHELF, 4)),  # rank, suit, enhancement, seal
    ("booster", np.int8, (2,)),  # pack number + 1, 0 when opened
    ("booster_cost", np.int16, (2,)),
    ("pack_item", np.int16, (MAX_PACK,)),
    ("pack_what", np.int8, (MAX_PACK,)),
    ("pack_edition", np.int8, (MAX_PACK,)),
    ("pack_sticker", np.int8, (MAX_PACK,)),
    ("pack_card", np.int8, (MAX_PACK, 4)),
    ("tags", np.int8, (MAX_TAGS,)),
    ("tag_hand", np.int8, (MAX_TAGS,)),  # the hand of an Orbital Tag
]


def _record() -> np.dtype:
    """Wide fields first and the end filled up: no byte is padding, so that a record is its bytes."""
    fields = sorted(_FIELDS, key=lambda field: -np.dtype(field[1]).itemsize)
    size = np.dtype(fields).itemsize
    spare: list[tuple[str, type, tuple[int, ...]]] = [("unused", np.int8, (-size % 8,))] if size % 8 else []
    return np.dtype(fields + spare, align=True)


RECORD = _record()


def new_batch(count: int) -> np.recarray:
    """`count` empty records."""
    return np.zeros(count, RECORD).view(np.recarray)
