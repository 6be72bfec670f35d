"""Jokers that act outside scoring, and those of chance: what each does, when it should and when it should not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aleazero.games.balatro import actions, create, facts, ids, jokers_events, pools, rounds, shop, tags, trade
from aleazero.games.balatro.cards import odds
from aleazero.games.balatro.layout import (
    ED_NEGATIVE,
    ED_POLY,
    G_CONSUMABLE,
    P_BLIND,
    P_OVER,
    P_PLAY,
    P_SHOP,
    ST_ETERNAL,
    ST_PERISHABLE,
)
from tests.games.balatro.table import deal, everything, game, held, in_deck, owned


def _often(make: Callable[[str], Any], happened: Callable[[Any], bool], low: float, high: float, n: int = 120) -> None:
    """Something of chance happens in about its share of the seeds."""
    count = sum(happened(make(f"SEED{i}".replace("0", "O"))) for i in range(1, n + 1))
    assert low * n <= count <= high * n, count


def _play_one(jokers: str, cards: str, seed: str = "ALEEB", **fields: Any) -> Any:
    g = game(jokers, cards, seed=seed, **fields)
    rounds.play(g, 1)
    return g


@pytest.mark.parametrize(
    ("joker", "card", "low", "high", "happened"),
    [
        ("8 Ball", "H8", 0.15, 0.35, lambda g: len(held(g)) == 1),
        ("Business Card", "HK", 0.38, 0.62, lambda g: int(g.money) == 6),
        ("Bloodstone", "HK", 0.38, 0.62, lambda g: float(g.mult) == 1.5),
        ("Space Joker", "HK", 0.15, 0.35, lambda g: int(g.level[11]) == 2),
        ("Misprint", "HK", 0.90, 1.0, lambda g: 1 <= float(g.mult) - 0 <= 24),
        ("Lucky Cat", "HK+Lucky", 0.14, 0.38, lambda g: float(g.joker_value[0]) == 1.25),
    ],
)
def test_jokers_of_chance(joker: str, card: str, low: float, high: float, happened: Callable[[Any], bool]) -> None:
    _often(lambda seed: _play_one(joker, card, seed), happened, low, high)


def test_reserved_parking_pays_for_held_faces() -> None:
    _often(lambda seed: _play_one("Reserved Parking", "H2 SK", seed), lambda g: int(g.money) == 5, 0.38, 0.62)


def test_glass_breaks_one_time_in_four_and_is_mourned() -> None:
    def make(seed: str) -> Any:
        return _play_one("Glass Joker,Canio", "HK+Glass", seed)

    _often(make, lambda g: everything(g) == 52, 0.15, 0.35)
    for i in range(1, 30):
        g = make(f"S{i}".replace("0", "O"))
        broke = everything(g) == 52
        assert float(g.joker_value[0]) == (1.75 if broke else 1.0)
        assert float(g.joker_value[1]) == (2.0 if broke else 1.0)


def test_oops_doubles_chances() -> None:
    assert odds(game("Oops! All 6s,Oops! All 6s")) == 4.0
    g = _play_one("Oops! All 6s,Bloodstone", "HK")
    assert float(g.mult) == 1.5


def test_dna_copies_a_single_first_card() -> None:
    g = _play_one("DNA,Hologram", "HK")
    assert everything(g) == 54
    assert float(g.joker_value[1]) == 1.25
    assert everything(_play_one("DNA", "HK", hands_played=1)) == 53


def test_sixth_sense_turns_a_single_six_into_a_spectral() -> None:
    g = _play_one("Sixth Sense", "H6")
    assert everything(g) == 52
    assert facts.number("consumables", held(g)[0]) >= ids.C_FAMILIAR
    assert everything(_play_one("Sixth Sense", "H7")) == 53


def test_superposition_seance_and_vagabond_create() -> None:
    g = game("Superposition", "HA SK DQ CJ HT")
    rounds.play(g, 31)
    assert len(held(g)) == 1
    g = game("Séance", "HA HK HQ HJ HT")
    rounds.play(g, 31)
    assert facts.number("consumables", held(g)[0]) >= ids.C_FAMILIAR
    assert len(held(_play_one("Vagabond", "HK", money=4))) == 1
    assert held(_play_one("Vagabond", "HK", money=5)) == []


def test_midas_mask_gilds_faces() -> None:
    g = _play_one("Midas Mask", "HK")
    assert facts.ENHANCEMENTS[int(max(g.enhancement))] == "Gold"


def test_what_wears_off_after_hands() -> None:
    g = _play_one("Ice Cream", "HK")
    assert float(g.joker_value[0]) == 95
    g = game("Seltzer,Ice Cream", "HK H2")
    g.joker_value[0], g.joker_value[1] = 1, 5
    rounds.play(g, 1)
    assert owned(g) == []


def test_jokers_at_the_start_of_a_blind() -> None:
    g = game("Burglar")
    jokers_events.blind_started(g)
    assert (int(g.hands_left), int(g.discards_left)) == (7, 0)
    g = game("Riff-Raff")
    jokers_events.blind_started(g)
    assert len(owned(g)) == 3
    assert all(facts.table("jokers")[facts.number("jokers", n) - 1]["rarity"] == "Common" for n in owned(g))
    g = game("Cartomancer")
    jokers_events.blind_started(g)
    assert len(held(g)) == 1
    before = everything(g := game("Marble Joker"))
    jokers_events.blind_started(g)
    assert everything(g) == before + 1
    assert facts.ENHANCEMENTS[int(g.enhancement[int(g.card_count) - 1])] == "Stone"


def test_madness_and_the_dagger_destroy_but_not_eternals() -> None:
    g = game("Madness,Joker")
    jokers_events.blind_started(g)
    assert owned(g) == ["Madness"]
    assert float(g.joker_value[0]) == 1.5
    g = game("Madness,Joker", blind=2)
    jokers_events.blind_started(g)
    assert len(owned(g)) == 2
    g = game("Ceremonial Dagger,Egg")
    g.joker_sell[1] = 5
    jokers_events.blind_started(g)
    assert (owned(g), float(g.joker_value[0])) == (["Ceremonial Dagger"], 10.0)
    g = game("Ceremonial Dagger,Egg")
    g.joker_sticker[1] = ST_ETERNAL
    jokers_events.blind_started(g)
    assert len(owned(g)) == 2


def test_certificate_deals_a_sealed_card() -> None:
    g = game("Certificate", "HK")
    jokers_events.first_hand_drawn(g)
    assert int(g.hand_count) == 2
    assert int(g.seal[int(g.hand[1])]) > 0


def test_jokers_that_watch_discards() -> None:
    g = game("Faceless Joker", "HK SK DQ C2")
    rounds.discard(g, 7)
    assert int(g.money) == 9
    g = game("Mail-In Rebate,Castle,Hit the Road,Yorick,Ramen,Green Joker", "HJ", mail_rank=11, castle_suit=2)
    g.joker_value[5] = 3
    rounds.discard(g, 1)
    assert int(g.money) == 9
    assert [float(v) for v in g.joker_value[:6]] == [0, 3, 1.5, 22, pytest.approx(1.99), 2]
    g = game("Yorick", "HJ")
    g.joker_value[0] = 1
    rounds.discard(g, 1)
    assert int(g.joker_extra[0]) == 2
    g = game("Ramen", "HJ")
    g.joker_value[0] = 1.01
    rounds.discard(g, 1)
    assert owned(g) == []


def test_trading_card_and_burnt_joker_take_the_first_discard() -> None:
    g = game("Trading Card,Burnt Joker", "HJ S2")
    rounds.discard(g, 1)
    assert (int(g.money), everything(g), int(g.level[11])) == (7, 53, 2)
    g = game("Trading Card,Burnt Joker", "HJ S2", discards_used=1)
    rounds.discard(g, 1)
    assert (int(g.money), everything(g), int(g.level[11])) == (4, 54, 1)


def test_a_purple_seal_brings_a_tarot() -> None:
    g = game("", "HJ+Purple_seal")
    rounds.discard(g, 1)
    assert len(held(g)) == 1


@pytest.mark.parametrize(
    ("joker", "pay"), [("Golden Joker", 4), ("Cloud 9", 4), ("Rocket", 1), ("Delayed Gratification", 8), ("Egg", 0)]
)
def test_jokers_that_pay_at_the_cash_out(joker: str, pay: int) -> None:
    assert jokers_events.payout(game(joker)) == pay


def test_satellite_moon_and_delayed_gratification() -> None:
    assert jokers_events.payout(game("Satellite", planets_seen=0b1011)) == 3
    assert jokers_events.payout(game("Delayed Gratification", discards_used=1)) == 0
    plain, moon = game(money=20), game("To the Moon", money=20)
    assert rounds.round_pay(moon, False) - rounds.round_pay(plain, False) == 4


def test_jokers_at_the_end_of_a_round() -> None:
    g = game("Egg,Gift Card,Popcorn,Turtle Bean,Invisible Joker")
    size, sell = int(g.hand_size), [int(s) for s in g.joker_sell[:5]]
    jokers_events.round_ended(g, False)
    assert [int(s) for s in g.joker_sell[:5]] == [sell[0] + 4, *(s + 1 for s in sell[1:])]
    assert [float(v) for v in g.joker_value[2:5]] == [16, 4, 1]
    assert int(g.hand_size) == size - 1
    g = game("Rocket,Campfire,Hit the Road")
    g.joker_value[1] = g.joker_value[2] = 2
    jokers_events.round_ended(g, True)
    assert [float(v) for v in g.joker_value[:3]] == [3, 1, 1]
    g = game("Popcorn")
    g.joker_value[0] = 4
    jokers_events.round_ended(g, False)
    assert owned(g) == []


def test_the_list_changes_every_round() -> None:
    g = game("To Do List")
    before = int(g.joker_extra[0])
    jokers_events.round_ended(g, False)
    assert int(g.joker_extra[0]) != before


def test_gros_michel_dies_and_cavendish_comes() -> None:
    def make(seed: str) -> Any:
        g = game("Gros Michel", seed=seed)
        jokers_events.round_ended(g, False)
        return g

    _often(make, lambda g: owned(g) == [], 0.08, 0.27)
    dead = next(g for i in range(1, 60) if not owned(g := make(f"S{i}".replace("0", "O"))))
    assert int(dead.pool_flags) == 1
    assert pools._joker_allowed(dead, ids.J_CAVENDISH, False)
    assert not pools._joker_allowed(dead, ids.J_GROS_MICHEL, False)
    assert not pools._joker_allowed(game(), ids.J_CAVENDISH, False)


def test_selling() -> None:
    g = game("Luchador,Campfire", "HK", boss="The Head")
    rounds.bosses.debuff_all(g)
    assert int(g.card_flags[int(g.hand[0])]) & 1
    trade.sell_joker(g, 0)
    assert int(g.boss_off) == 1
    assert not int(g.card_flags[int(g.hand[0])]) & 1
    assert float(g.joker_value[0]) == 1.25
    g = game("Diet Cola")
    trade.sell_joker(g, 0)
    assert [int(t) for t in g.tags[: int(g.tag_count)]] == [ids.T_DOUBLE]
    g = game("Invisible Joker,Negative Joker")
    g.joker_value[0] = 2
    trade.sell_joker(g, 0)
    assert owned(g) == ["Joker", "Joker"]
    assert int(g.joker_edition[1]) != ED_NEGATIVE
    g = game("Invisible Joker,Joker")
    trade.sell_joker(g, 0)
    assert owned(g) == ["Joker"]


def test_jokers_that_change_the_table_while_owned() -> None:
    def change(joker: str) -> tuple[int, int, int]:
        g = game()
        before = int(g.hand_size), int(g.round_hands), int(g.round_discards)
        create.add_joker(g, facts.number("jokers", joker), 0, 0)
        after = int(g.hand_size), int(g.round_hands), int(g.round_discards)
        create.remove_joker(g, 0)
        assert (int(g.hand_size), int(g.round_hands), int(g.round_discards)) == before
        return tuple(a - b for a, b in zip(after, before, strict=True))  # type: ignore[return-value]

    assert change("Juggler") == (1, 0, 0)
    assert change("Drunkard") == (0, 0, 1)
    assert change("Troubadour") == (2, -1, 0)
    assert change("Merry Andy") == (-1, 0, 3)
    assert change("Stuntman") == (-2, 0, 0)
    assert change("Turtle Bean") == (5, 0, 0)


def test_credit_chaos_astronomer_and_showman() -> None:
    assert trade.can_pay(game("Credit Card", money=0), 20)
    assert not trade.can_pay(game(money=0), 1)
    g = game("Chaos the Clown,Flash Card", money=0)
    shop.stock(g)
    trade.reroll(g)
    assert int(g.money) == 0
    assert float(g.joker_value[1]) == 2
    g = game("Astronomer")
    g.shelf_kind[0], g.shelf_id[0], g.shelf_count = G_CONSUMABLE, ids.C_MARS, 1
    assert shop.shelf_price(g, 0) == 0
    assert shop.booster_price(g, facts.number("packs", "Celestial Pack")) == 0
    assert not pools._joker_allowed(game("Joker"), ids.J_JOKER, False)
    g = game("Joker,Showman")
    assert any(pools.draw_joker(g, 0, 1) == ids.J_JOKER for _ in range(400))


def test_hallucination_and_red_card_watch_packs() -> None:
    def make(seed: str) -> Any:
        g = game("Hallucination,Red Card", seed=seed, phase=P_SHOP)
        tags.open_pack(g, facts.number("packs", "Buffoon Pack"), P_SHOP)
        return g

    _often(make, lambda g: len(held(g)) == 1, 0.38, 0.62)
    g = make("ALEEB")
    trade.skip_pack(g)
    assert float(g.joker_value[1]) == 3
    assert int(g.phase) == P_SHOP


def test_perkeo_copies_a_consumable() -> None:
    g = game("Perkeo")
    create.add_consumable(g, ids.C_MARS, False)
    jokers_events.shop_left(g)
    assert held(g) == ["Mars", "Mars"]
    assert [int(n) for n in g.consumable_negative[:2]] == [0, 1]


def test_mr_bones_saves_a_quarter_scored() -> None:
    g = game("Mr. Bones", "HK", hands_left=1, target=60.0)
    rounds.play(g, 1)
    assert int(g.phase) == P_SHOP
    assert owned(g) == []
    g = game("Mr. Bones", "HK", hands_left=1, target=61.0)
    rounds.play(g, 1)
    assert int(g.phase) == P_OVER


def test_chicot_and_matador_meet_bosses() -> None:
    g = game("Matador", "HK H2", boss="The Head")
    rounds.bosses.debuff_all(g)
    rounds.play(g, 1)
    assert int(g.money) == 12
    g = game("Matador", "SK H2", boss="The Head")
    rounds.bosses.debuff_all(g)
    rounds.play(g, 1)
    assert int(g.money) == 4
    g = game("Chicot", blind=2, boss_off=0)
    g.boss, g.phase, g.hand_size = ids.B_NEEDLE, P_BLIND, 8
    rounds.cards.gather(g)
    rounds.start_blind(g)
    assert int(g.hands_left) == 4


def test_drivers_license_needs_sixteen_enhanced_cards() -> None:
    for n, mult in ((15, 1.0), (16, 3.0)):
        g = game("Driver's License", "HK")
        g.enhancement[:n] = 1
        rounds.play(g, 1)
        assert float(g.mult) == mult


def test_a_perished_joker_does_nothing() -> None:
    g = game("Joker", "HK")
    g.joker_sticker[0], g.joker_perish[0] = ST_PERISHABLE, 0
    rounds.play(g, 1)
    assert float(g.mult) == 1.0


def test_delayed_cards_and_draws_are_conserved() -> None:
    g = game()
    assert int(g.phase) == P_PLAY
    assert (everything(g), in_deck(g), int(g.hand_count)) == (52, 44, 8)
    deal(g, "HK")
    assert everything(g) == 53
    assert actions.NUM_SUBSETS == 218


def test_mr_bones_saves_the_run_and_not_the_blind() -> None:
    """What is left of the pay: interest. No reward, and no point."""
    won, saved = game("", "HK", hands_left=1, target=15.0, money=12), game("Mr. Bones", "HK", hands_left=1, target=60.0)
    saved.money = 12
    for g in (won, saved):
        rounds.play(g, 1)
        assert int(g.phase) == P_SHOP
    assert (int(won.cashout), int(won.beaten), int(won.gained)) == (3 + 2, 1, 1)
    assert (int(saved.cashout), int(saved.beaten), int(saved.gained)) == (2, 0, 0)


def test_sell_values_follow_editions_and_discounts_and_keep_what_was_gained() -> None:
    g = game("Joker, Blueprint, Gift Card, Negative Egg")
    create.add_consumable(g, ids.C_FOOL, False)
    assert [int(g.joker_sell[i]) for i in range(4)] == [1, 5, 3, 4]
    g.joker_sell[1] += 7  # gained by gifts
    create.set_edition(g, 0, ED_POLY)
    assert int(g.joker_sell[0]) == 3  # 2 + 5, halved
    create.duplicate_joker(g, 3)
    assert int(g.joker_sell[4]) == 2, "the copy is not Negative"
    g.money, g.voucher = 100, ids.V_LIQUIDATION
    trade.buy_voucher(g, False)
    assert [int(g.joker_sell[i]) for i in range(5)] == [1, 2 + 7, 1, 2, 1]
    assert int(g.consumable_sell[0]) == 1
