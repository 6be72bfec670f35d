"""Rounds, bosses, pay, tags, vouchers, decks and stakes."""

from __future__ import annotations

from typing import Any

import pytest

from aleazero.games.balatro import actions, cards, create, facts, ids, pools, rounds, run, shop, tags, trade
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.layout import (
    F_DEBUFFED,
    F_FACE_DOWN,
    F_FORCED,
    G_JOKER,
    P_BLIND,
    P_OVER,
    P_PACK,
    P_SHOP,
    ST_ETERNAL,
    ST_PERISHABLE,
    ST_RENTAL,
)
from tests.games.balatro.table import deal, game, held, owned


def fight(boss: str, jokers: str = "", **fields: Any) -> Any:
    """A round against a boss, dealt as the game deals."""
    g = game(jokers, **fields)
    cards.gather(g)
    g.blind, g.boss, g.phase = 2, facts.number("blinds", boss), P_BLIND
    rounds.start_blind(g)
    return g


def flags(g: Any, bit: int) -> list[int]:
    return [c for c in (int(x) for x in g.hand[: int(g.hand_count)]) if int(g.card_flags[c]) & bit]


def replay_hand(g: Any, hand: str, bits: int) -> Any:
    g.hand_count = 0
    for text in hand.split():
        deal(g, text)
    rounds.play(g, bits)
    return g


@pytest.mark.parametrize(("boss", "suit"), [("The Club", 0), ("The Window", 1), ("The Head", 2), ("The Goad", 3)])
def test_bosses_of_a_suit(boss: str, suit: int) -> None:
    g = fight(boss)
    for c in range(52):
        assert bool(int(g.card_flags[c]) & F_DEBUFFED) == (int(g.suit[c]) == suit)


def test_bosses_that_debuff_faces_played_cards_and_all() -> None:
    g = fight("The Plant")
    assert all(bool(int(g.card_flags[c]) & F_DEBUFFED) == (11 <= int(g.rank[c]) <= 13) for c in range(52))
    g = game()
    rounds.play(g, 3)
    cards.gather(g)
    g.blind, g.boss = 2, ids.B_PILLAR
    rounds.start_blind(g)
    assert sum(bool(int(f) & F_DEBUFFED) for f in g.card_flags[:52]) == 2
    g = fight("Verdant Leaf", "Joker")
    assert len(flags(g, F_DEBUFFED)) == 8
    trade.sell_joker(g, 0)
    assert flags(g, F_DEBUFFED) == []


def test_bosses_that_take_hands_discards_and_cards() -> None:
    assert int(fight("The Water").discards_left) == 0
    assert int(fight("The Needle").hands_left) == 1
    assert int(fight("The Manacle").hand_count) == 7
    g = fight("The Tooth")
    rounds.play(g, 7)
    assert int(g.money) == 1
    g = fight("The Hook")
    rounds.play(g, 1)
    assert sum(int(p) == 4 for p in g.place[:52]) == 3
    g = fight("The Serpent")
    rounds.discard(g, 31)
    assert int(g.hand_count) == 6


def test_targets() -> None:
    factor = {"The Wall": 4, "Violet Vessel": 6, "The Needle": 1, "The Hook": 2}
    assert {boss: float(fight(boss).target) / 300 for boss in factor} == factor
    g = game()
    for stake, ante, target in ((1, 8, 50000), (3, 8, 100000), (6, 8, 200000), (8, 12, 1200000000)):
        g.stake, g.ante = stake, ante
        assert rounds.target_of(g) == target
    g.deck, g.stake, g.ante = ids.D_PLASMA, 1, 1
    assert rounds.target_of(g) == 600


def test_bosses_that_hide_cards() -> None:
    assert len(flags(fight("The House"), F_FACE_DOWN)) == 8
    g = fight("The Mark")
    assert set(flags(g, F_FACE_DOWN)) == {c for c in g.hand[:8].tolist() if 11 <= int(g.rank[c]) <= 13}
    g = fight("The Fish")
    assert flags(g, F_FACE_DOWN) == []
    rounds.play(g, 3)
    assert len(flags(g, F_FACE_DOWN)) == 2
    hidden = sum(len(flags(fight("The Wheel", seed=f"W{i}".replace("0", "O")), F_FACE_DOWN)) for i in range(1, 41))
    assert 25 <= hidden <= 70  # 320 cards, one in seven


def test_bosses_that_refuse_hands() -> None:
    assert float(replay_hand(fight("The Psychic"), "HK", 1).round_score) == 0
    g = fight("The Eye", target=1e9)
    g.target = 1e9
    first = float(replay_hand(g, "HK", 1).round_score)
    assert first > 0
    assert float(replay_hand(g, "HK", 1).round_score) == first
    g = fight("The Mouth")
    g.target = 1e9
    first = float(replay_hand(g, "HK", 1).round_score)
    assert float(replay_hand(g, "HK SK", 3).round_score) == first
    assert float(replay_hand(g, "HK", 1).round_score) > first


def test_arm_flint_and_ox() -> None:
    g = fight("The Arm")
    g.level[11] = 3
    assert int(replay_hand(g, "HK", 1).level[11]) == 2
    g = replay_hand(fight("The Flint"), "HK", 1)
    assert (float(g.chips), float(g.mult)) == (13, 1)
    g = fight("The Ox")
    g.most_played = 11
    assert int(replay_hand(g, "HK", 1).money) == 0


def test_showdowns_of_jokers_and_cards() -> None:
    g = fight("Crimson Heart", "Joker,Egg,Banner")
    first = int(g.joker_disabled)
    assert first >= 0
    rounds.play(g, 1)
    assert int(g.joker_disabled) not in (-1, first)
    g = fight("Cerulean Bell")
    assert len(flags(g, F_FORCED)) == 1
    mask = Batch(_batch_of(g)).masks[0]
    assert 0 < mask[: actions.A_DISCARD].sum() < 218
    g.hand_count = 0
    for text in ("HA", "HK", "HQ", "HJ", "HT", "H9", "H8", "H7", "H6"):
        deal(g, text)
    g.card_flags[int(g.hand[8])] = F_FORCED
    mask = Batch(_batch_of(g)).masks[0]
    sizes = {bin(int(actions.SUBSETS[k])).count("1") for k in range(218) if mask[k]}
    assert sizes == {1, 2, 3, 4}  # the ninth card comes by itself
    forced = int(g.hand[8])
    actions.apply(g, actions.A_PLAY)
    assert int(g.place[forced]) != 2
    orders = {tuple(owned(fight("Amber Acorn", "Joker,Egg,Banner", seed=f"A{i}"))) for i in range(1, 9)}
    assert len(orders) > 1


def test_a_disabled_or_perished_joker_takes_back_what_it_gave() -> None:
    g = fight("Crimson Heart", "Juggler")
    assert (int(g.joker_disabled), int(g.hand_size)) == (0, 8)
    rounds.bosses.disable(g)
    assert (int(g.joker_disabled), int(g.hand_size)) == (-1, 9)
    g = fight("Crimson Heart", "Juggler")
    trade.sell_joker(g, 0)
    assert int(g.hand_size) == 8
    g = game("Juggler", "HK", target=1.0)
    g.hand_size = 9
    g.joker_sticker[0], g.joker_perish[0] = ST_PERISHABLE, 1
    rounds.play(g, 1)
    assert int(g.hand_size) == 8
    trade.sell_joker(g, 0)
    assert int(g.hand_size) == 8


def _batch_of(g: Any) -> Any:
    batch = Batch.start(["ALEEB"])
    batch.states[0] = g
    return batch.states


def test_a_round_pays_reward_hands_and_interest() -> None:
    g = game("", "HK", money=27, hands_left=4, target=1.0)
    rounds.play(g, 1)
    assert (int(g.phase), int(g.cashout), int(g.money)) == (P_SHOP, 3 + 3 + 5, 27 + 11)
    g = game("", "HK", money=27, hands_left=4, target=1.0, deck=ids.D_GREEN, discards_left=2)
    rounds.play(g, 1)
    assert int(g.cashout) == 3 + 6 + 2
    g = game("", "HK", money=0, hands_left=1, target=1.0, stake=2)
    rounds.play(g, 1)
    assert int(g.cashout) == 0
    g = game("", "HK S2+Gold", money=0, hands_left=1, target=1.0)
    rounds.play(g, 1)
    assert int(g.money) == 3 + 3
    g = game("", "HK S2+Blue_seal", target=1.0)
    rounds.play(g, 1)
    assert held(g) == ["Pluto"]


def test_stickers_work() -> None:
    g = game("Joker,Egg,Banner", "HK", money=10, hands_left=1, target=1.0, stake=2)
    g.joker_sticker[0], g.joker_sticker[1], g.joker_sticker[2] = ST_RENTAL, ST_PERISHABLE, ST_ETERNAL
    rounds.play(g, 1)
    assert int(g.money) == 10 - 3 + 1
    assert [int(p) for p in g.joker_perish[:3]] == [5, 4, 5]
    assert not trade.may_sell(g, 2)


def test_stickers_come_with_stakes() -> None:
    seen = {}
    for stake in (3, 4, 7, 8):
        g = game(stake=stake)
        seen[stake] = 0
        for _ in range(200):
            seen[stake] |= pools.roll_stickers(g, ids.J_JOKER, True)
    assert seen == {3: 0, 4: 1, 7: 3, 8: 7}
    g = game(stake=8)
    assert all(pools.roll_stickers(g, ids.J_GROS_MICHEL, True) & ST_ETERNAL == 0 for _ in range(100))


def test_losing_and_winning() -> None:
    g = game("", "HK", hands_left=1)
    rounds.play(g, 1)
    assert int(g.phase) == P_OVER
    assert int(g.won) == 0
    for last, phase in ((8, P_OVER), (12, P_SHOP)):
        g = game("", "HK")
        g.target, g.ante, g.blind, g.last_ante = 1.0, 8, 2, last
        rounds.play(g, 1)
        assert (int(g.won), int(g.phase)) == (1, phase)


def skip(tag: str, **fields: Any) -> Any:
    g = Batch.start(["ALEEB"]).states[0]
    for name, value in fields.items():
        setattr(g, name, value)
    g.tag_small = facts.number("tags", tag)
    actions.apply(g, actions.A_SKIP_BLIND)
    return g


def test_tags_that_pay() -> None:
    assert int(skip("Speed Tag", skips=2).money) == 4 + 15
    assert int(skip("Handy Tag", hands_total=7).money) == 11
    assert int(skip("Garbage Tag", unused_discards=9).money) == 13
    assert int(skip("Economy Tag", money=60).money) == 100
    g = skip("Investment Tag")
    rounds._boss_rewards(g)
    assert int(g.tag_count) == 0
    g = skip("Top-up Tag")
    assert len(owned(g)) == 2
    g = skip("Orbital Tag", orbital_small=10)
    assert int(g.level[10]) == 4


@pytest.mark.parametrize(
    ("tag", "kind", "count"),
    [("Charm Tag", 0, 5), ("Meteor Tag", 1, 5), ("Standard Tag", 2, 5), ("Buffoon Tag", 3, 4), ("Ethereal Tag", 4, 2)],
)
def test_tags_that_open_packs(tag: str, kind: int, count: int) -> None:
    g = skip(tag)
    assert (int(g.phase), int(g.pack_kind), int(g.pack_count)) == (P_PACK, kind, count)
    trade.skip_pack(g)
    assert int(g.phase) == P_BLIND
    assert int(g.deck_count) == 52


def test_tags_for_the_shop() -> None:
    def opened(tag: str) -> Any:
        g = skip(tag)
        shop.stock(g)
        assert int(g.tag_count) == 0
        return g

    for tag, rarity in (("Uncommon Tag", 2), ("Rare Tag", 3)):
        g = opened(tag)
        assert (int(tables_rarity(g)), int(g.shelf_cost[0])) == (rarity, 0)
    for tag, edition in (("Foil Tag", 1), ("Holographic Tag", 2), ("Polychrome Tag", 3), ("Negative Tag", 4)):
        g = opened(tag)
        free = [i for i in range(2) if int(g.shelf_edition[i]) == edition and int(g.shelf_cost[i]) == 0]
        assert len(free) == 1
    assert int(opened("D6 Tag").reroll_cost) == 0
    assert int(opened("Voucher Tag").voucher_extra) > 0
    g = opened("Coupon Tag")
    assert [int(c) for c in (*g.shelf_cost[:2], *g.booster_cost)] == [0, 0, 0, 0]


def tables_rarity(g: Any) -> int:
    assert int(g.shelf_kind[0]) == G_JOKER
    return int(pools.tables.JOKER_RARITY[int(g.shelf_id[0])])


def test_double_juggle_and_boss_tags() -> None:
    g = skip("Double Tag")
    tags.gain_tag(g, ids.T_JUGGLE, -1)
    assert [int(t) for t in g.tags[: int(g.tag_count)]] == [ids.T_JUGGLE] * 2
    rounds.start_blind(g)
    assert int(g.hand_count) == 14
    g.target = 1.0
    rounds.play(g, 1)
    assert int(g.hand_size) == 8
    g = Batch.start(["ALEEB"]).states[0]
    before = int(g.boss)
    g.tag_small = ids.T_BOSS
    actions.apply(g, actions.A_SKIP_BLIND)
    assert int(g.boss) != before


@pytest.mark.parametrize(
    ("voucher", "field", "change"),
    [
        ("Grabber", "round_hands", 1), ("Nacho Tong", "round_hands", 1), ("Wasteful", "round_discards", 1),
        ("Recyclomancy", "round_discards", 1), ("Crystal Ball", "consumable_slots", 1),
        ("Antimatter", "joker_slots", 1),
        ("Paint Brush", "hand_size", 1), ("Palette", "hand_size", 1), ("Reroll Surplus", "reroll_base", -2),
        ("Reroll Glut", "reroll_base", -2), ("Hieroglyph", "ante", -1), ("Petroglyph", "ante", -1),
    ],
)  # fmt: skip
def test_vouchers_that_change_a_number(voucher: str, field: str, change: int) -> None:
    g = game()
    before = int(getattr(g, field))
    run.redeem(g, facts.number("vouchers", voucher))
    assert int(getattr(g, field)) == before + change


def test_vouchers_that_change_the_shop() -> None:
    def owning(*names: str) -> Any:
        g = game(money=100, phase=P_SHOP)
        for name in names:
            run.redeem(g, facts.number("vouchers", name))
        return g

    assert shop.shelf_size(owning("Overstock", "Overstock Plus")) == 4
    assert [create.discount(owning(n)) for n in ("Clearance Sale", "Liquidation")] == [75, 50]
    assert [pools.edition_rate(owning(n)) for n in ("Hone", "Glow Up")] == [2, 4]
    assert shop.rates(owning("Tarot Merchant", "Planet Tycoon", "Magic Trick"))[1:4] == (9.6, 32, 4)
    assert shop.rates(owning("Tarot Tycoon", "Planet Merchant"))[1:3] == (32, 9.6)
    assert rounds.round_pay(owning("Seed Money"), False) == 3 + 4 + 10
    assert rounds.round_pay(owning("Money Tree"), False) == 3 + 4 + 20
    g = owning("Telescope")
    g.plays[6] = 3
    tags.open_pack(g, facts.number("packs", "Celestial Pack"), P_SHOP)
    assert int(g.pack_item[0]) == ids.C_JUPITER
    g = owning("Omen Globe")
    found = set()
    for _ in range(12):
        tags.open_pack(g, facts.number("packs", "Jumbo Arcana Pack"), P_SHOP)
        found |= {int(x) >= ids.C_FAMILIAR for x in g.pack_item[:5]}
        tags.leave_pack(g)
    assert found == {True, False}
    assert not trade.can_reroll_boss(owning())
    g = owning("Director's Cut")
    assert trade.can_reroll_boss(g)
    trade.reroll_boss(g)
    assert not trade.can_reroll_boss(g)
    g = owning("Retcon")
    trade.reroll_boss(g)
    assert trade.can_reroll_boss(g)
    assert int(g.money) == 90


def test_observatory_and_illusion() -> None:
    g = game("", "HK")
    run.redeem(g, ids.V_OBSERVATORY)
    create.add_consumable(g, ids.C_PLUTO, False)
    rounds.play(g, 1)
    assert float(g.mult) == 1.5
    g = game()
    run.redeem(g, ids.V_MAGIC_TRICK)
    run.redeem(g, ids.V_ILLUSION)
    editions, enhancements = set(), set()
    for _ in range(60):
        shop._rolled_card(g, 0)
        if int(g.shelf_kind[0]) == 3:
            editions.add(int(g.shelf_edition[0]))
            enhancements.add(int(g.shelf_card[0, 2]) > 0)
    assert enhancements == {True, False} or len(editions) > 1


DECKS = {
    "Red Deck": {"round_discards": 4}, "Blue Deck": {"round_hands": 5}, "Yellow Deck": {"money": 14},
    "Green Deck": {"round_hands": 4}, "Black Deck": {"round_hands": 3, "joker_slots": 6},
    "Magic Deck": {"consumable_count": 2, "consumable_slots": 3}, "Nebula Deck": {"consumable_slots": 1},
    "Ghost Deck": {"consumable_count": 1}, "Abandoned Deck": {"card_count": 40}, "Checkered Deck": {"card_count": 52},
    "Zodiac Deck": {"money": 4}, "Painted Deck": {"hand_size": 10, "joker_slots": 4}, "Anaglyph Deck": {"money": 4},
    "Plasma Deck": {"money": 4}, "Erratic Deck": {"card_count": 52},
}  # fmt: skip


@pytest.mark.parametrize("deck", DECKS)
def test_decks_start_as_they_should(deck: str) -> None:
    g = Batch.start(["ALEEB"], deck).states[0]
    assert {name: int(getattr(g, name)) for name in DECKS[deck]} == DECKS[deck]
    if deck == "Checkered Deck":
        assert sorted({int(s) for s in g.suit[:52]}) == [2, 3]
    if deck == "Zodiac Deck":
        assert shop.shelf_size(g) == 3
    if deck == "Erratic Deck":
        assert len({(int(r), int(s)) for r, s in zip(g.rank[:52], g.suit[:52], strict=True)}) < 52
    if deck == "Anaglyph Deck":
        rounds._boss_rewards(g)
        assert int(g.tags[0]) == ids.T_DOUBLE


def test_blue_stake_takes_a_discard() -> None:
    assert int(Batch.start(["ALEEB"], stake="Blue").states[0].round_discards) == 3
