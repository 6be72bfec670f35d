from __future__ import annotations

import numpy as np
import pytest

from aleazero.core.errors import UnknownName
from aleazero.games.balatro import actions, ids, jit
from aleazero.games.balatro.contest import make_chooser, numbered_seeds, play_runs
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.layout import AT_DECK, AT_HAND, CLUBS, F_FACE_DOWN, G_JOKER, HEARTS, SPADES

ACE_HIGH = [(14, SPADES), (13, SPADES), (12, HEARTS), (9, SPADES), (7, CLUBS), (5, SPADES), (3, HEARTS), (2, CLUBS)]
SPADES_HIGH = [(14, SPADES), (13, SPADES), (10, SPADES), (9, SPADES)]
slow_in_plain = pytest.mark.long if jit.PLAIN else pytest.mark.slow  # test_compiled.py runs these, compiled


def in_hand(cards: list[tuple[int, int]]) -> Batch:
    """A game of seed ALEEB in its first blind, whose hand holds these cards of the deck."""
    batch = Batch.start(["ALEEB"])
    batch.step(np.array([actions.A_SELECT_BLIND]))
    g = batch.states[0]
    of = {(int(g.rank[c]), int(g.suit[c])): c for c in range(52)}
    wanted = [of[card] for card in cards]
    g.place[:52] = AT_DECK
    for i, c in enumerate(wanted):
        g.hand[i] = c
        g.place[c] = AT_HAND
    rest = [c for c in range(52) if c not in wanted]
    g.draw_pile[: len(rest)] = rest
    g.deck_count, g.hand_count = len(rest), len(wanted)
    return Batch(batch.states)


def chosen_by(player: str, batch: Batch, seed: int = 1) -> int:
    return int(make_chooser(player, seed, len(batch))(batch)[0])


def test_greedy_plays_the_hand_that_scores_most() -> None:
    batch = in_hand(
        [(14, SPADES), (13, SPADES), (10, SPADES), (9, SPADES), (9, CLUBS), (5, SPADES), (9, HEARTS), (2, CLUBS)]
    )
    action = chosen_by("greedy", batch)
    assert action < actions.A_DISCARD
    bits = int(actions.SUBSETS[action])
    assert bits == 0b101111  # the flush, not the three nines
    g = batch.states[0]
    g.joker[0], g.joker_count = ids.J_WILY, 1  # 100 chips for three of a kind: 227 against 217 points of mult 3 and 4
    g.level[8] = 6
    assert int(actions.SUBSETS[chosen_by("greedy", batch)]) & 0b1011000 == 0b1011000


@slow_in_plain
def test_expectimax_discards_for_a_flush_and_plays_what_is_enough() -> None:
    batch = in_hand(ACE_HIGH)
    action = chosen_by("expectimax", batch)
    assert actions.A_DISCARD <= action < actions.A_TOGGLE
    bits = int(actions.SUBSETS[action - actions.A_DISCARD])
    assert bits & 0b00101011 == 0, "the four spades stay"
    batch.states["target"] = 16.0
    assert chosen_by("expectimax", batch) < actions.A_DISCARD
    batch.states["target"], batch.states["discards_left"] = 300.0, 0
    assert chosen_by("expectimax", Batch(batch.states)) < actions.A_DISCARD


@pytest.mark.parametrize("player", ["greedy", pytest.param("expectimax", marks=slow_in_plain)])
def test_players_do_not_know_what_is_hidden(player: str) -> None:
    batch = in_hand(ACE_HIGH)
    g = batch.states[0]
    g.joker[0], g.joker_count = ids.J_MISPRINT, 1
    first = chosen_by(player, batch)
    g.draw_pile[:44] = g.draw_pile[:44][::-1].copy()
    g.stream_value[:] = 0.123
    g.hashed_seed = 0.456
    assert chosen_by(player, batch) == first
    # A face-down card may be any of the unseen: exchanging it for another changes nothing.
    hidden, other = int(g.hand[0]), int(g.draw_pile[3])
    g.card_flags[hidden] = F_FACE_DOWN
    first = chosen_by(player, batch)
    g.card_flags[hidden], g.card_flags[other] = 0, F_FACE_DOWN
    g.hand[0], g.draw_pile[3] = other, hidden
    g.place[hidden], g.place[other] = AT_DECK, AT_HAND
    assert chosen_by(player, batch) == first


def test_players_change_nothing_by_thinking() -> None:
    batch = in_hand(ACE_HIGH)
    before = batch.snapshot()
    for player in ("random", "greedy") if jit.PLAIN else ("random", "greedy", "expectimax"):
        chosen_by(player, batch)
    assert batch.snapshot() == before


def test_in_the_shop_jokers_are_bought_and_then_it_is_left() -> None:
    batch = in_hand(ACE_HIGH)
    batch.states["target"] = 1.0
    batch.step(np.array([0]))
    g = batch.states[0]
    g.shelf_kind[0], g.shelf_id[0], g.shelf_cost[0], g.money = G_JOKER, ids.J_EGG, 4, 4
    g.shelf_count, g.booster[:] = 1, 0
    batch = Batch(batch.states)
    assert chosen_by("greedy", batch) == actions.A_BUY
    batch.states["money"] = 3
    assert chosen_by("greedy", Batch(batch.states)) == actions.A_LEAVE_SHOP


@slow_in_plain
def test_whole_runs_end_and_are_counted() -> None:
    runs = play_runs("greedy", numbered_seeds(3, 5), threads=1)
    assert runs.decisions > 10
    assert (runs.ante >= 1).all()
    assert (runs.ante <= 8).all()
    assert runs.games_per_hour > 0
    again = play_runs("greedy", runs.seeds, threads=1, chunk=2)
    assert runs.ante.tolist() == again.ante.tolist()
    assert runs.rounds.tolist() == again.rounds.tolist()


def test_an_unknown_player_is_met_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'expectimax'"):
        make_chooser("expectmax", 1, 1)
