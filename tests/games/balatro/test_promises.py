"""What is promised is what the rules then pay, as far as it can be seen."""

from __future__ import annotations

import numpy as np
import pytest

from aleazero.games.balatro import actions, ids
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.layout import AT_DECK, AT_HAND, E_STEEL, F_FACE_DOWN
from aleazero.games.balatro.promises import ENOUGH, SIZE, promise

PLAYS = actions.NUM_SUBSETS


def playing(seed: str = "ALEEB") -> Batch:
    batch = Batch.start([seed])
    batch.step(np.array([actions.A_SELECT_BLIND]))
    return batch


def promised(batch: Batch) -> np.ndarray:
    out = np.full((1, SIZE + 3), 9.0, np.float32)
    promise(batch, out, 2)
    assert (out[0, [0, 1, -1]] == 9.0).all()  # what lies beside is left alone
    return out[0, 2:-1]


def paid(batch: Batch, play: int) -> float:
    return float(batch.account(0, play)[1].states["hand_score"][0])


def share(score: float, need: float) -> float:
    return ENOUGH + float(np.clip(np.log(score / need), -6, 3))


def test_a_play_pays_what_it_promised() -> None:
    batch = playing()
    found, need = promised(batch), float(batch.states["target"][0])
    for play in range(0, PLAYS, 7):
        assert abs(found[play] - share(paid(batch, play), need)) < 1e-3
    batch.states["round_score"] = need - 60.0
    again = promised(batch)
    for play in range(0, PLAYS, 23):
        assert abs(again[play] - share(paid(batch, play), 60.0)) < 1e-3


def test_jokers_are_in_what_the_best_of_a_hand_promises() -> None:
    batch = playing()
    plain = promised(batch)
    g = batch.states[0]
    g.joker[0], g.joker_count = ids.J_JOKER, 1
    found, best = promised(batch), int(np.argmax(promised(batch)[:PLAYS]))
    assert abs(found[best] - share(paid(batch, best), float(g.target))) < 1e-3
    assert found[best] > plain[best]


def test_a_discard_promises_the_best_play_of_what_is_kept() -> None:
    batch = playing("7LB2WVPK")
    found = promised(batch)
    masks = actions.SUBSETS.astype(int)
    for discard in range(0, PLAYS, 11):
        kept = [found[play] for play in range(PLAYS) if masks[play] & masks[discard] == 0]
        assert abs(found[PLAYS + discard] - max(kept)) < 1e-3


@pytest.mark.parametrize("joker", [ids.J_BARON, ids.J_RAISED_FIST, ids.J_SHOOT_THE_MOON, ids.J_STEEL_JOKER])
def test_what_lies_face_down_is_in_no_promise(joker: int) -> None:
    """Exchanged for another unseen card, whatever that is, it changes nothing."""
    batch = playing()
    g = batch.states[0]
    g.joker[0], g.joker_count = joker, 1
    hidden, found = int(g.hand[2]), []
    g.card_flags[hidden] |= F_FACE_DOWN
    g.enhancement[int(g.draw_pile[1])] = E_STEEL
    found.append(promised(batch))
    for place in range(12):
        other = int(g.draw_pile[place])
        g.card_flags[hidden], g.card_flags[other] = 0, F_FACE_DOWN
        g.place[hidden], g.place[other] = AT_DECK, AT_HAND
        g.hand[2], g.draw_pile[place], hidden = other, hidden, other
        found.append(promised(batch))
    for other_way in found[1:]:
        np.testing.assert_array_equal(other_way, found[0])


def test_nothing_is_promised_of_what_is_not_seen_or_not_played() -> None:
    batch = playing()
    before = promised(batch)
    g = batch.states[0]
    g.card_flags[int(g.hand[2])] |= F_FACE_DOWN
    found, with_it = promised(batch), actions.SUBSETS.astype(int) >> 2 & 1 != 0
    assert (found[:PLAYS][with_it] == 0).all()
    np.testing.assert_array_equal(found[:PLAYS][~with_it], before[:PLAYS][~with_it])
    assert (promised(Batch.start(["ALEEB"])) == 0).all()
