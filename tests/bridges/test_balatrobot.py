"""The bridge to a live game, against one that our simulator plays and whose connection breaks."""

from __future__ import annotations

import dataclasses
import json
import socket
import time
from collections.abc import Callable

import numpy as np
import pytest

from aleazero.bridges.balatrobot import TRIES, LiveTable, Lost, NotTaken, Patience, Refused, Rpc, play_live
from aleazero.bridges.balatrobot_state import NOT_THERE, NotUnderstood, method_of, read
from aleazero.core.errors import AleaError, ConfigError, NotationError
from aleazero.games.balatro import actions, entities
from aleazero.games.balatro.engine import Batch
from tests.bridges.chat_endpoint import dripping
from tests.bridges.live_game import MOST, LiveGame, tell
from tests.bridges.simple import charm, simple

QUICK = Patience(answer=5.0, pause=0.02, rest=0.2, give_up=60.0)


def _positions(steps: int) -> list[Batch]:
    """Decisions of all phases, from runs in which a charmed player sees much."""
    batch = Batch.start(["LIVE1", "LIVE2"])
    found = []
    for step in range(steps):
        batch.wander(5, seed=step + 1, charmed=True)
        found += [batch.take(np.array([lane])) for lane in range(2) if not batch.over[lane]]
    return found


def test_what_is_told_is_read_as_the_run_it_is() -> None:
    found = _positions(24)
    phases = {int(batch.states["phase"][0]) for batch in found}
    assert len(phases) >= 3
    ranges = [range(first, last + 1) for name, first, last, _ in actions.action_table() if name in NOT_THERE]
    unsure = {a for some in ranges for a in some} | set(range(actions.A_SWAP_JOKERS, actions.A_BUY))
    unsure |= set(range(actions.A_TOGGLE, actions.A_PLAY_SELECTED))  # how many moves were only of order is not told
    compared = 0
    for batch in found:
        if int(batch.states["selected"][0]):
            continue
        again = read(json.loads(json.dumps(tell(batch))))
        g, h = batch.states[0], again.states[0]
        assert int(h.phase) == int(g.phase)
        # A pack that is opened at a blind, and a free reroll, are told as what they come to.
        mine, theirs = (set(np.flatnonzero(one.masks[0]).tolist()) - unsure for one in (batch, again))
        if {actions.A_VOUCHER + 1, actions.A_BOOSTER + 1} & (mine | theirs):
            continue  # what is left of two is told as the first
        assert theirs == mine
        compared += 1
        rows, rows_again = (entities.observe_rows(one) for one in (batch, again))
        for name in ("hand", "deck", "consumables"):
            seen, seen_again = rows[name][0], rows_again[name][0]
            columns = [k for k in range(seen.shape[1]) if (name, k) != ("hand", 10)]  # permanent chips are not told
            np.testing.assert_array_equal(seen[:, columns], seen_again[:, columns])
    assert compared >= 15


def _here(decisions: int) -> Batch:
    """The same run, played in the simulator."""
    batch = Batch.start(["ALEEB"])
    for move in range(decisions):
        batch.step(simple(batch, move))
        charm(batch)
    return batch


def test_a_run_is_played_through_the_bridge_as_in_the_simulator() -> None:
    with LiveGame() as game:
        table = LiveTable(game.url, pytest.fail, QUICK)
        assert table.start("ALEEB", "Red Deck", "White")
        assert not table.start("ALEEB", "Red Deck", "White")
        done = play_live(table, simple, lambda line: None, MOST)
        assert game.batch is not None
        assert (done["decisions"], done["breaks"]) == (MOST, 0)
        methods = [method for _, method in game.log]
        assert {"start", "select", "play", "cash_out", "buy", "pack", "next_round"} <= set(methods)
        assert len([method for method in methods if method not in ("start", "cash_out")]) == MOST
        hands = Batch(game.batch.states.copy().view(np.recarray))
        hands.states["selected"] = 0
        assert hands.snapshot() == _here(MOST).snapshot()


@pytest.mark.parametrize("fault", ["before", "after", "late", "nonsense", "away"])
def test_a_break_in_mid_run_pauses_and_nothing_is_done_twice(fault: str) -> None:
    said: list[str] = []
    faults = ("", fault, "", fault, "", "", fault)
    with LiveGame(Batch.start(["ALEEB"]), faults) as game:
        # What is late comes 0.15 s late here: a machine would have to be busy for a second to be misjudged.
        patience = dataclasses.replace(QUICK, rest=1.2) if fault == "late" else QUICK
        done = play_live(LiveTable(game.url, said.append, patience), simple, said.append, MOST // 2)
        log, state = list(game.log), game.state()
    assert not game.faults
    assert sum("paused" in line for line in said) >= 3
    # Every state was left once: had an action been repeated, it would have been done in the state it led to, too.
    assert len({before for before, _ in log}) == len(log)
    assert (done["breaks"] > 0) == (fault == "before")
    taken = len([method for _, method in log if method != "cash_out"])
    assert taken == done["decisions"] == MOST // 2
    assert state == tell(_here(taken))


def test_one_action_whose_answer_is_lost_is_not_sent_again() -> None:
    said: list[str] = []
    with LiveGame(Batch.start(["ALEEB"]), ("after",)) as game:
        LiveTable(game.url, said.append, QUICK).act(actions.A_SELECT_BLIND)
        assert game.asked.count("select") == 1
        assert [method for _, method in game.log] == ["select"]
    assert "was taken" in said[-1]
    with LiveGame(Batch.start(["ALEEB"]), ("before",)) as game:
        with pytest.raises(NotTaken, match="not taken"):
            LiveTable(game.url, said.append, QUICK).act(actions.A_SELECT_BLIND)
        assert game.asked.count("select") == 1
        assert not game.log


def test_a_game_that_comes_back_with_another_run_stops_the_bridge() -> None:
    with LiveGame(Batch.start(["ALEEB"]), ("swap",)) as game:
        with pytest.raises(ConfigError, match="another run"):
            LiveTable(game.url, lambda line: None, QUICK).act(actions.A_SELECT_BLIND)
        assert not game.log


def test_a_game_that_is_busy_is_asked_again() -> None:
    """All kinds of actions are refused for a while, cash_out among them; the run is the one that it would be."""
    said: list[str] = []
    with LiveGame(Batch.start(["ALEEB"]), ("busy", "busy", "", "busy", "", "busy", "busy", "", "busy")) as game:
        done = play_live(LiveTable(game.url, said.append, QUICK), simple, said.append, 8)
        assert not game.faults
        assert game.asked.count("cash_out") > [method for _, method in game.log].count("cash_out")
        assert game.state() == tell(_here(8))
    assert (done["decisions"], done["breaks"]) == (8, 0)
    assert any("refused" in line for line in said)


def _stubborn(action: int) -> Callable[[Batch, int], np.ndarray]:
    return lambda batch, move: np.array([action])


def test_what_the_game_goes_on_refusing_is_left_and_nothing_is_used_sold_or_skipped_instead() -> None:
    with LiveGame(Batch.start(["ALEEB"]), ("busy",) * 50) as game:
        with pytest.raises(AleaError, match="refuses select blind, and nothing else leads on"):
            play_live(LiveTable(game.url, pytest.fail, QUICK), _stubborn(actions.A_SELECT_BLIND), lambda line: None)
        assert game.asked.count("select") == TRIES
        assert not game.log
        assert "skip" not in game.asked
    with LiveGame(Batch.start(["ALEEB"]), ("busy",) * TRIES) as game:
        done = play_live(LiveTable(game.url, pytest.fail, QUICK), _stubborn(actions.A_SKIP_BLIND), lambda line: None, 1)
        assert done["decisions"] == 1
        assert [method for _, method in game.log] == ["select"]


def test_a_game_that_always_breaks_off_or_never_pays_is_given_up() -> None:
    quick = dataclasses.replace(QUICK, rest=0.05)
    with LiveGame(Batch.start(["ALEEB"]), ("before",) * 50) as game:
        with pytest.raises(AleaError, match=f"given up: {TRIES} times"):
            play_live(LiveTable(game.url, lambda line: None, quick), simple, lambda line: None)
        assert game.asked.count("select") == TRIES
    for fault in ("busy", "before"):
        with LiveGame(_here(2), (fault,) * 500) as game:
            game.paid = False
            with pytest.raises(AleaError, match=r"given up after 0.5 s: .*cash_out"):
                LiveTable(game.url, lambda line: None, dataclasses.replace(quick, give_up=0.5)).see()
            assert not game.log


def test_a_round_that_was_cashed_out_is_waited_for() -> None:
    with LiveGame(_here(2)) as game:
        game.paid, game.lingers = False, 3
        LiveTable(game.url, lambda line: None, QUICK).see()
        assert game.asked.count("cash_out") == 1


def test_an_answer_that_drips_is_lost() -> None:
    with dripping() as url:
        started = time.monotonic()
        with pytest.raises(Lost, match="does not answer"):
            Rpc(url, 0.3).call("health")
        assert time.monotonic() - started < 4


def test_cards_are_selected_here_and_go_with_the_action() -> None:
    with LiveGame(Batch.start(["ALEEB"])) as game:
        table = LiveTable(game.url, pytest.fail, QUICK)
        table.act(actions.A_SELECT_BLIND)
        for place in (0, 7):
            table.act(actions.A_TOGGLE + place)
        batch = table.see()
        assert int(batch.states["selected"][0]) == 1 | 1 << 7
        assert method_of(batch, actions.A_PLAY_SELECTED) == ("play", {"cards": [0, 7]})
        table.act(actions.A_PLAY_SELECTED)
        assert not int(table.see().states["selected"][0])
        with pytest.raises(NotationError, match="not legal"):
            table.act(actions.A_SELECT_BLIND)


def test_mistakes_and_nonsense_are_told() -> None:
    with pytest.raises(ConfigError, match="http"):
        Rpc("ftp://x", 1.0)
    for port in ("99999", "secret"):
        with pytest.raises(ConfigError, match="port") as told:
            Rpc(f"http://127.0.0.1:{port}", 1.0)
        assert port not in str(told.value)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        nobody = held.getsockname()[1]
    with pytest.raises(Lost, match="does not answer"):
        Rpc(f"127.0.0.1:{nobody}", 1.0).call("health")
    impatient = Patience(answer=0.2, pause=0.01, rest=0.05, give_up=0.1)
    with pytest.raises(AleaError, match="given up"):
        LiveTable(f"127.0.0.1:{nobody}", lambda line: None, impatient).see()
    with LiveGame() as game:
        assert Rpc(game.url, 1.0).call("health")["state"] == "MENU"
        with pytest.raises(Refused, match="no run"):
            Rpc(game.url, 1.0).call("jump")
        with pytest.raises(ConfigError, match="menu"):
            LiveTable(game.url, pytest.fail, QUICK).see()


def _spoil(change: Callable[[dict[str, object]], object]) -> dict[str, object]:
    told = tell(Batch.start(["ALEEB"]))
    change(told)
    return told


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.pop("state"),
        lambda told: told.update(state="HAND_PLAYED"),
        lambda told: told.update(money="much"),
        lambda told: told.update(deck="PURPLE"),
        lambda told: told.update(jokers={"cards": [{"key": "j_nobody"}]}),
        lambda told: told["cards"].update(cards=told["cards"]["cards"] * 4),
        lambda told: told["hands"]["Pair"].update(level=-3),
        lambda told: told["cards"]["cards"][0].update(modifier={"enhancement": "PAPER"}),
        lambda told: told["cards"]["cards"][0]["value"].update(rank="1"),
        lambda told: told["cards"]["cards"][0]["value"].pop("suit"),
    ],
)
def test_a_state_that_cannot_be_read_is_refused(change: Callable[[dict[str, object]], object]) -> None:
    with pytest.raises(NotUnderstood):
        read(_spoil(change))


def test_both_ways_of_naming_are_read() -> None:
    told = tell(Batch.start(["ALEEB"], "Blue Deck", "Gold"))
    told["jokers"]["cards"] = [{"key": "j_joker", "set": "JOKER", "modifier": {"edition": "e_holo", "rental": True}}]
    first = read(told).states[0]
    second = read({**told, "deck": "b_blue", "stake": "stake_gold"}).states[0]
    assert int(first.deck) == int(second.deck) == 1
    assert int(first.stake) == int(second.stake) == 8
    assert (int(first.joker_edition[0]), int(first.joker_sticker[0])) == (2, 4)
