from __future__ import annotations

import numpy as np
import pytest

from aleazero.bridges.balatro_advice import MOST_FUTURES, advise, baseline, reasons, simulate
from aleazero.bridges.balatro_table import Simulated, actions_for, explain, unforeseen, view
from aleazero.core.errors import ConfigError, NotationError
from aleazero.games.balatro import actions, facts
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.layout import G_JOKER, P_SHOP
from tests.bridges.simple import simple


def _shop() -> Batch:
    """A shop with Rough Gem for 6, for the owner of Greedy Joker and 12."""
    states = Batch.start(["ALEEB"]).states
    g = states[0]
    g.phase, g.money, g.joker_count, g.shelf_count = P_SHOP, 12, 1, 1
    g.joker[0], g.joker_target[0] = facts.number("jokers", "Greedy Joker"), 0
    g.shelf_kind[0], g.shelf_id[0], g.shelf_cost[0] = G_JOKER, facts.number("jokers", "Rough Gem"), 6
    return Batch(states)


def test_reasons_speak_of_synergies_prices_and_interest() -> None:
    shop = _shop()
    told = reasons(shop, [actions.A_BUY])
    assert "with Greedy Joker: both need Diamonds" in told
    assert "costs 6 of 12, and 1 of interest a round" in told
    assert reasons(shop, [actions.A_LEAVE_SHOP]) == ("keeps 12, which brings 2 of interest",)
    assert reasons(shop, [actions.A_VOUCHER]) == (
        facts.table("vouchers")[int(shop.states["voucher"][0]) - 1]["effect"],
    )
    assert reasons(shop, [actions.A_REROLL])[0].startswith("costs")
    start = Batch.start(["ALEEB"])
    assert reasons(start, [actions.A_SELECT_BLIND])[0].startswith("Small Blind")
    assert "Tag" in reasons(start, [actions.A_SKIP_BLIND])[0]


def test_candidates_meet_the_same_futures_which_are_not_the_runs_own() -> None:
    table = Simulated("ALEEB")
    table.act(actions.A_SELECT_BLIND)
    now = table.see()
    before = now.snapshot()
    rows = [actions_for(now, "play", [0, 1]), actions_for(now, "discard", [6, 7])]
    tried = simulate(now, rows, simple, 2, seed=5)
    assert now.snapshot() == before
    assert [one.action for one in tried] == [rows[0][-1], rows[1][-1]]
    assert tried == simulate(now, rows, simple, 2, seed=5)
    # Whatever the run has in store, the same is said: what is seen decides.
    assert tried == simulate(unforeseen(now, 77), rows, simple, 2, seed=5)
    told = explain(now, rows[0])
    assert told == explain(unforeseen(now, 77), rows[0])
    assert tried[0].reasons[0].startswith(f"scores {told['score']:,.0f} of 300 needed")


def test_the_best_comes_first_and_the_players_own_choice_is_among_them() -> None:
    told = advise(_shop(), simple, 1)
    assert actions.A_BUY in [one.action for one in told]
    keys = [(one.win_chance, one.mean_blinds) for one in told]
    assert keys == sorted(keys, reverse=True)


def test_cards_beyond_the_eighth_place_are_selected_one_by_one() -> None:
    table = Simulated("ALEEB", "Painted Deck")
    table.act(actions.A_SELECT_BLIND)
    batch = table.see()
    taken = actions_for(batch, "play", [0, 9])
    assert taken == [actions.A_TOGGLE, actions.A_TOGGLE + 9, actions.A_PLAY_SELECTED]
    score = explain(batch, taken)["score"]
    for action in taken:
        table.act(action)
    assert view(table.see())["score"] == score


def test_mistakes_are_explained() -> None:
    batch = Batch.start(["ALEEB"])
    with pytest.raises(ConfigError, match="futures"):
        simulate(batch, [[actions.A_SELECT_BLIND]], simple, MOST_FUTURES + 1)
    with pytest.raises(ConfigError, match="greedy or expectimax"):
        baseline("random")
    with pytest.raises(NotationError, match="needs cards"):
        actions_for(batch, "play", [])
    with pytest.raises(NotationError, match="plays no hand"):
        explain(batch, [actions.A_SELECT_BLIND])
    batch.states["phase"] = 5
    with pytest.raises(NotationError, match="over"):
        simulate(Batch(batch.states.copy().view(np.recarray)), [[0]], simple, 1)
