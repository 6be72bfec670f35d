from __future__ import annotations

import numpy as np

from aleazero.games.balatro import actions, ids, observe
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.game import OBSERVATION, Balatro, observe_batch
from aleazero.games.balatro.layout import F_FACE_DOWN
from aleazero.games.host_conformance import check_host_game


def test_balatro_keeps_the_contract_of_host_games() -> None:
    report = check_host_game(Balatro(threads=1), lanes=3, plies=25)
    assert report.warnings == ()


def test_observations_are_bounded_and_documented() -> None:
    batch = Batch.start(["ALEEB", "2K9H9HN"])
    batch.step(np.full(2, actions.A_SELECT_BLIND))
    seen = observe_batch(batch)
    shapes = {name: array.shape for name, array in seen.items()}
    assert shapes == {"cards": (2, 52, 4), "jokers": (2, 150, 8), "game_state": (2, 50), "action_mask": (2, 1000)}
    for name in ("cards", "jokers"):
        assert 0 <= seen[name].min() <= seen[name].max() <= 1
    assert seen["cards"][:, :, 0].sum(1).tolist() == [2, 2]  # eight cards, a quarter each
    assert seen["cards"][:, :, 1].sum(1).tolist() == [11, 11]
    assert len(observe.observation_table()) == 4 + 8 + 50
    assert OBSERVATION == 52 * 4 + 150 * 8 + 50


def test_a_face_down_card_and_the_order_of_the_draw_pile_are_not_seen() -> None:
    batch = Batch.start(["ALEEB"])
    batch.step(np.array([actions.A_SELECT_BLIND]))
    before = observe_batch(batch)
    g = batch.states[0]
    g.draw_pile[:44] = g.draw_pile[:44][::-1].copy()
    assert np.array_equal(before["cards"], observe_batch(batch)["cards"])
    c = int(g.hand[0])
    g.card_flags[c] = F_FACE_DOWN
    row = int(g.suit[c]) * 13 + int(g.rank[c]) - 2
    after = observe_batch(batch)["cards"][0, row]
    assert (after[0], after[1]) == (0, 0.25)


def test_owned_jokers_are_seen_in_their_places() -> None:
    batch = Batch.start(["ALEEB"])
    g = batch.states[0]
    g.joker[0], g.joker[1], g.joker_count = ids.J_EGG, ids.J_JOKER, 2
    seen = observe_batch(batch)["jokers"][0]
    assert seen[ids.J_EGG - 1, :2].tolist() == [1, 1]
    assert seen[ids.J_JOKER - 1, :2].tolist() == [1, 0.5]
    assert seen[:, 0].sum() == 2


def test_a_blind_beaten_is_a_point() -> None:
    game = Balatro(threads=1)
    states = game.init_batch(np.array([5], np.uint64))
    states = game.step_batch(states, np.array([actions.A_SELECT_BLIND]))
    states.states["target"] = 1.0
    after = game.step_batch(states, np.array([0]))
    assert game.status(after).rewards.tolist() == [[1]]
    assert game.status(game.step_batch(after, np.array([actions.A_LEAVE_SHOP]))).rewards.tolist() == [[0]]
    assert game.status(after).returns.tolist() == [[1]]
