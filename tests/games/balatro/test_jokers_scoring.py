"""Every joker that scores: with it a hand is worth exactly so much more than without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aleazero.games.balatro import facts, rounds
from tests.games.balatro.table import deal, game

FLUSH = "DK DJ D9 D5 D2"
PAIR = "HK SK"
TWO_PAIR = "HK SK H4 S4"
THREE = "HK SK DK"
FOUR = "HK SK DK CK"
STRAIGHT = "H9 S8 D7 C6 H5"
ACE_HIGH = "HA SK DQ CJ HT"

# joker, played, held, fields, what it adds: (chips, mult, times, money)
SCORERS: list[tuple[str, str, str, dict[str, Any], tuple[float, float, float, int]]] = [
    ("Joker", "HK", "", {}, (0, 4, 1, 0)),
    ("Greedy Joker", FLUSH, "", {}, (0, 15, 1, 0)),
    ("Lusty Joker", "HK", "", {}, (0, 3, 1, 0)),
    ("Wrathful Joker", "SK", "", {}, (0, 3, 1, 0)),
    ("Gluttonous Joker", "CK", "", {}, (0, 3, 1, 0)),
    ("Jolly Joker", PAIR, "", {}, (0, 8, 1, 0)),
    ("Zany Joker", FOUR, "", {}, (0, 12, 1, 0)),
    ("Mad Joker", TWO_PAIR, "", {}, (0, 10, 1, 0)),
    ("Crazy Joker", STRAIGHT, "", {}, (0, 12, 1, 0)),
    ("Droll Joker", FLUSH, "", {}, (0, 10, 1, 0)),
    ("Sly Joker", PAIR, "", {}, (50, 0, 1, 0)),
    ("Wily Joker", THREE, "", {}, (100, 0, 1, 0)),
    ("Clever Joker", TWO_PAIR, "", {}, (80, 0, 1, 0)),
    ("Devious Joker", STRAIGHT, "", {}, (100, 0, 1, 0)),
    ("Crafty Joker", FLUSH, "", {}, (80, 0, 1, 0)),
    ("Half Joker", THREE, "", {}, (0, 20, 1, 0)),
    ("Joker Stencil", "HK", "", {}, (0, 0, 5, 0)),
    ("Mime", "HK", "S9+Steel", {}, (0, 0, 1.5, 0)),
    ("Ceremonial Dagger", "HK", "", {"joker_value": 7.0}, (0, 7, 1, 0)),
    ("Banner", "HK", "", {"discards_left": 3}, (90, 0, 1, 0)),
    ("Mystic Summit", "HK", "", {"discards_left": 0}, (0, 15, 1, 0)),
    ("Loyalty Card", "HK", "", {"hands_total": 5}, (0, 0, 4, 0)),
    ("Dusk", "HK", "", {"hands_left": 1}, (10, 0, 1, 0)),
    ("Raised Fist", "HK", "S9 C3 D3", {}, (0, 6, 1, 0)),
    ("Fibonacci", "H8", "", {}, (0, 8, 1, 0)),
    ("Steel Joker", "HK", "S9+Steel C3+Steel", {}, (0, 0, 1.4, 0)),
    ("Scary Face", "HK", "", {}, (30, 0, 1, 0)),
    ("Abstract Joker", "HK", "", {}, (0, 3, 1, 0)),
    ("Hack", "H4", "", {}, (4, 0, 1, 0)),
    ("Gros Michel", "HK", "", {}, (0, 15, 1, 0)),
    ("Even Steven", "H8", "", {}, (0, 4, 1, 0)),
    ("Odd Todd", "HA", "", {}, (31, 0, 1, 0)),
    ("Scholar", "HA", "", {}, (20, 4, 1, 0)),
    ("Supernova", "HK", "", {}, (0, 1, 1, 0)),
    ("Ride the Bus", "H9", "", {"joker_value": 4.0}, (0, 5, 1, 0)),
    ("Blackboard", "HK", "S9 C3", {}, (0, 0, 3, 0)),
    ("Runner", STRAIGHT, "", {}, (15, 0, 1, 0)),
    ("Ice Cream", "HK", "", {}, (100, 0, 1, 0)),
    ("Blue Joker", "HK", "", {"deck_count": 44}, (88, 0, 1, 0)),
    ("Constellation", "HK", "", {"joker_value": 1.5}, (0, 0, 1.5, 0)),
    ("Green Joker", "HK", "", {"joker_value": 2.0}, (0, 3, 1, 0)),
    ("Cavendish", "HK", "", {}, (0, 0, 3, 0)),
    ("Card Sharp", "HK", "", {"round_plays": 1}, (0, 0, 3, 0)),
    ("Red Card", "HK", "", {"joker_value": 9.0}, (0, 9, 1, 0)),
    ("Madness", "HK", "", {"joker_value": 2.0}, (0, 0, 2, 0)),
    ("Square Joker", FOUR, "", {}, (4, 0, 1, 0)),
    ("Vampire", "HK+Gold", "", {}, (0, 0, 1.1, 0)),
    ("Hologram", "HK", "", {"joker_value": 1.25}, (0, 0, 1.25, 0)),
    ("Baron", "H2", "SK", {}, (0, 0, 1.5, 0)),
    ("Obelisk", "HK", "", {"plays": 3}, (0, 0, 1, 0)),
    ("Photograph", "HK", "", {}, (0, 0, 2, 0)),
    ("Erosion", "HK", "", {"starting_cards": 60}, (0, 28, 1, 0)),
    ("Fortune Teller", "HK", "", {"tarots_used": 6}, (0, 6, 1, 0)),
    ("Stone Joker", "HK", "S9+Stone", {}, (25, 0, 1, 0)),
    ("Lucky Cat", "HK", "", {"joker_value": 1.75}, (0, 0, 1.75, 0)),
    ("Bull", "HK", "", {"money": 21}, (42, 0, 1, 0)),
    ("Flash Card", "HK", "", {"joker_value": 4.0}, (0, 4, 1, 0)),
    ("Popcorn", "HK", "", {}, (0, 20, 1, 0)),
    ("Spare Trousers", TWO_PAIR, "", {}, (0, 2, 1, 0)),
    ("Ancient Joker", "HK", "", {"ancient_suit": 2}, (0, 0, 1.5, 0)),
    ("Ramen", "HK", "", {}, (0, 0, 2, 0)),
    ("Walkie Talkie", "HT", "", {}, (10, 4, 1, 0)),
    ("Seltzer", "HK", "", {}, (10, 0, 1, 0)),
    ("Castle", "HK", "", {"joker_value": 12.0}, (12, 0, 1, 0)),
    ("Smiley Face", "HK", "", {}, (0, 5, 1, 0)),
    ("Campfire", "HK", "", {"joker_value": 1.5}, (0, 0, 1.5, 0)),
    ("Golden Ticket", "HK+Gold", "", {}, (0, 0, 1, 4)),
    ("Acrobat", "HK", "", {"hands_left": 1}, (0, 0, 3, 0)),
    ("Sock and Buskin", "HK", "", {}, (10, 0, 1, 0)),
    ("Throwback", "HK", "", {"skips": 2}, (0, 0, 1.5, 0)),
    ("Hanging Chad", "HK", "", {}, (20, 0, 1, 0)),
    ("Rough Gem", "DK", "", {}, (0, 0, 1, 1)),
    ("Arrowhead", "SK", "", {}, (50, 0, 1, 0)),
    ("Onyx Agate", "CK", "", {}, (0, 7, 1, 0)),
    ("Glass Joker", "HK", "", {"joker_value": 1.75}, (0, 0, 1.75, 0)),
    ("Flower Pot", FOUR, "", {}, (0, 0, 3, 0)),
    ("Wee Joker", "H2", "", {}, (8, 0, 1, 0)),
    ("The Idol", "HK", "", {"idol_rank": 13, "idol_suit": 2}, (0, 0, 2, 0)),
    ("Seeing Double", "CK HK", "", {}, (0, 0, 2, 0)),
    ("Hit the Road", "HK", "", {"joker_value": 1.5}, (0, 0, 1.5, 0)),
    ("The Duo", PAIR, "", {}, (0, 0, 2, 0)),
    ("The Trio", THREE, "", {}, (0, 0, 3, 0)),
    ("The Family", FOUR, "", {}, (0, 0, 4, 0)),
    ("The Order", STRAIGHT, "", {}, (0, 0, 3, 0)),
    ("The Tribe", FLUSH, "", {}, (0, 0, 2, 0)),
    ("Stuntman", "HK", "", {}, (250, 0, 1, 0)),
    ("Shoot the Moon", "HK", "SQ DQ", {}, (0, 26, 1, 0)),
    ("Bootstraps", "HK", "", {"money": 14}, (0, 4, 1, 0)),
    ("Canio", "HK", "", {"joker_value": 3.0}, (0, 0, 3, 0)),
    ("Triboulet", "HQ", "", {}, (0, 0, 2, 0)),
    ("Yorick", "HK", "", {"joker_extra": 2}, (0, 0, 2, 0)),
    ("To Do List", "HK", "", {"joker_extra": 11}, (0, 0, 1, 4)),
]  # fmt: skip


def _played(jokers: str, played: str, held: str, fields: dict[str, Any]) -> Any:
    g = game(jokers, f"{played} {held}")
    for name, value in fields.items():
        if name.startswith("joker_"):
            if int(g.joker_count):
                getattr(g, name)[0] = value
        elif name in ("plays", "round_plays"):
            getattr(g, name)[11] = value
        else:
            setattr(g, name, value)
    rounds.play(g, (1 << len(played.split())) - 1)
    return g


@pytest.mark.parametrize(("joker", "played", "held", "fields", "adds"), SCORERS, ids=[row[0] for row in SCORERS])
def test_what_a_joker_adds(
    joker: str, played: str, held: str, fields: dict[str, Any], adds: tuple[float, float, float, int]
) -> None:
    plain, with_joker = _played("", played, held, fields), _played(joker, played, held, fields)
    chips, mult, times, money = adds
    assert float(with_joker.chips) == float(plain.chips) + chips
    assert float(with_joker.mult) == pytest.approx((float(plain.mult) + mult) * times, rel=1e-12)
    assert int(with_joker.money) == int(plain.money) + money


# jokers, played, held, what the hand is worth (chips, mult), worked out by hand
TOGETHER = [
    ("Pareidolia,Scary Face", "H2", "", (37, 1)),
    ("Splash", "HK S9 D4", "", (28, 1)),
    ("Four Fingers", "DK DJ D9 D5", "", (69, 4)),
    ("Shortcut", "HA SQ DT C8 H6", "", (75, 4)),
    ("Smeared Joker", "DK HJ D9 H5 D2", "", (71, 4)),
    ("Swashbuckler,Joker,Egg", "HK", "", (15, 8)),
    ("Baseball Card,Fibonacci", "H9", "", (14, 1.5)),
    ("Blueprint,Joker", "HK", "", (15, 9)),
    ("Joker,Brainstorm", "HK", "", (15, 9)),
    ("Brainstorm,Joker", "HK", "", (15, 5)),
    ("Blueprint,Brainstorm", "HK", "", (15, 1)),
    ("Joker,Blueprint,Brainstorm", "HK", "", (15, 13)),
    ("Foil Joker", "HK", "", (65, 5)),
    ("Holographic Joker", "HK", "", (15, 15)),
    ("Polychrome Joker", "HK", "", (15, 7.5)),
    ("", "HK+Bonus", "", (45, 1)),
    ("", "HK+Mult", "", (15, 5)),
    ("", "HK+Glass", "", (15, 2)),
    ("", "HK+Stone", "", (55, 1)),
    ("", "HK+Red_seal+Foil", "", (125, 1)),
    ("", "HK+Polychrome", "S9+Steel", (15, 2.25)),
]


@pytest.mark.parametrize(("jokers", "played", "held", "worth"), TOGETHER)
def test_hands_worked_out_by_hand(jokers: str, played: str, held: str, worth: tuple[float, float]) -> None:
    g = _played(jokers, played, held, {})
    assert (float(g.chips), float(g.mult)) == worth


def test_a_straight_with_gaps_needs_shortcut() -> None:
    g = _played("", "HA SQ DT C8 H6", "", {})
    assert facts.name_of("hands", int(g.last_hand)) == "High Card"


def test_an_obelisk_grows_on_other_hands_and_starts_again_on_the_usual_one() -> None:
    g = game("Obelisk", "HK SK H4")
    g.plays[11] = 5
    rounds.play(g, 3)
    assert float(g.joker_value[0]) == 1.2
    g.plays[10] = 9
    g.hands_left = 3
    g.phase = 1
    g.hand_count = 0
    for text in ("HQ", "SQ"):
        deal(g, text)
    rounds.play(g, 3)
    assert float(g.joker_value[0]) == 1.0


def test_a_loyalty_card_counts_from_when_it_came() -> None:
    fires = [n for n in range(14) if float(_played("Loyalty Card", "HK", "", {"hands_total": n}).mult) == 4]
    assert fires == [5, 11]
    late = {"hands_total": 5, "joker_extra": 2}
    assert float(_played("Loyalty Card", "HK", "", late).mult) == 1


def test_every_joker_is_named_in_a_test() -> None:
    here = Path(__file__)
    text = here.read_text("utf-8") + here.with_name("test_jokers_events.py").read_text("utf-8")
    assert [row["name"] for row in facts.table("jokers") if row["name"] not in text] == []


def test_hiker_leaves_its_chips_on_the_card() -> None:
    g = _played("Hiker", "HK", "", {})
    assert sorted(int(b) for b in g.bonus)[-1] == 5
