from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from aleazero.core.errors import AleaError, NotationError
from aleazero.web.feed import Watch
from aleazero.web.hall import forget_oldest
from aleazero.web.room import BATCH, Room
from aleazero.web.rules import playable, rules_of
from aleazero.web.table import HUMAN, NotNow, Record, Table
from tests.web.conftest import make_run, report

TWO = (HUMAN, HUMAN)


def play(table: Table, *texts: str) -> None:
    for text in texts:
        table.step(table.read(text))


def same(one: Table, two: Table) -> bool:
    return one.record == two.record and one.view() == two.view()


def test_a_game_of_tictactoe_is_won_and_seen() -> None:
    table = Table(Record("tictactoe", TWO, 0))
    play(table, "a1", "b2", "a2", "b3", "a3")
    view = table.view()
    assert view["over"]
    assert view["result"] == {"winner": 0, "points": 1.0, "name": "win"}
    assert view["board"] == {"kind": "tictactoe", "cells": "XO.XO.X.."}
    assert [turn["name"] for turn in view["history"]] == ["a1", "b2", "a2", "b3", "a3"]
    with pytest.raises(NotNow, match="over"):
        table.step([0])


def test_what_is_not_legal_changes_nothing() -> None:
    table = Table(Record("tictactoe", TWO, 0))
    play(table, "b2")
    before = table.view()
    with pytest.raises(NotationError):
        table.step([4])
    with pytest.raises(NotationError):
        table.step([999])
    assert table.view() == before


def test_a_record_is_played_again_to_the_same_table() -> None:
    table = Table(Record("backgammon", TWO, 7))
    for _ in range(6):
        while not table.waits:
            table.step([table.moves()[-1]["action"]])
        table.end_turn()
    table.step([table.moves()[0]["action"]])
    again = Table(Record.from_json(table.record.to_json()))
    assert same(table, again)
    assert len(again.played) == 6


def test_a_turn_is_undone_step_by_step_and_dice_stay() -> None:
    table = Table(Record("backgammon", TWO, 3))
    start, dice = table.view()["board"], table.view()["chance"]
    while not table.waits:
        table.step([table.moves()[0]["action"]])
    steps = len(table.record.begun)
    with pytest.raises(NotationError):
        table.step([0])
    table.end_turn()
    theirs = table.view()["chance"]
    table.take_back()
    assert (table.view()["board"], table.view()["chance"], len(table.record.begun)) == (start, dice, 0)
    while not table.waits:
        table.step([table.moves()[-1]["action"]])
    for _ in range(len(table.record.begun)):
        table.take_back()
    assert table.view()["board"] == start
    while not table.waits:
        table.step([table.moves()[-1]["action"]])
    table.end_turn()
    assert table.view()["chance"] == theirs  # whatever was played, nature does the same
    assert steps in (2, 4)


def test_taking_back_goes_to_a_persons_own_turn() -> None:
    table = Table(Record("tictactoe", (HUMAN, "random"), 0))
    play(table, "a1")
    table.step([table.rules.legal(table.state)[0]])
    play(table, "c3")
    table.take_back()
    assert [turn.seat for turn in table.played] == [0, 1]
    table.take_back()
    assert table.played == []
    with pytest.raises(NotNow, match="take back"):
        table.take_back()


def test_backgammon_places_are_the_same_board_for_both_sides() -> None:
    table = Table(Record("backgammon", TWO, 0, "XGID=-b----E-C---eE---c-e----B-:0:0:-1:31:0:0:0:0:0"))
    assert table.to_play == 1
    board = table.view()["board"]
    assert board["points"][0] == -2
    assert board["points"][23] == 2
    assert board["pips"] == [167, 167]
    assert table.view()["chance"] == "31"
    moves = {(move["from"], move["to"]) for move in table.moves()}
    assert ("1", "4") in moves  # seat 1 moves up
    assert ("17", "20") in moves


def test_a_match_keeps_its_score_and_ends() -> None:
    table = Table(Record("tictactoe", TWO, 0, length=2))
    table.resign(1)
    assert table.view()["match"] == {"length": 2, "score": [1, 0]}
    table.next_game()
    assert table.view()["match"]["score"] == [1, 0]
    table.resign(1)
    assert table.score == (2, 0)
    table.next_game()
    assert table.score == (0, 0)


def test_promotions_are_choices() -> None:
    table = Table(Record("chess", TWO, 0, "8/P7/8/8/8/8/k6K/8 w - - 0 1"))
    choices = {move["choice"] for move in table.moves() if (move["from"], move["to"]) == ("a7", "a8")}
    assert choices == {"q", "r", "b", "n"}
    play(table, "a8=N")
    assert table.view()["board"]["pieces"][56] == "N"


def test_quoridor_shows_walls_and_where_the_pawn_comes_from() -> None:
    table = Table(Record("quoridor", TWO, 0))
    play(table, "e3h", "e8")
    board = table.view()["board"]
    assert board == {"kind": "quoridor", "pawns": ["e1", "e8"], "walls": ["e3h"], "left": [9, 10]}
    moves = table.moves()
    assert {move["from"] for move in moves if len(move["to"]) == 2} == {"e1"}
    assert {move["from"] for move in moves if len(move["to"]) == 3} == {None}


def test_a_whole_turn_is_found_from_what_it_leaves() -> None:
    table = Table(Record("backgammon", TWO, 0, "4HPwATDgc/ABMA:33"))
    turns = table.notation.turns(table.state)
    assert len(turns) > 50
    for actions, left in turns[::17]:
        found = table.rules.turn_to(table.state, left)
        after = table.state
        for action in found:
            after = table.rules.apply(after, action)
        assert len(found) == len(actions)
        assert np.array_equal(table.game.pack(after), table.game.pack(left))


def test_a_player_that_fails_stops_nobody_else(tmp_path: Path) -> None:
    room = Room(tmp_path)
    try:
        rules = rules_of(playable("tictactoe"))
        state = rules.first(0)
        bad = room.turn("tictactoe", "run:nothing", state, 0, 0)
        with pytest.raises(AleaError, match="nothing"):
            bad.result(60)
        broken = room.turn("tictactoe", "random", "no state", 0, 0)
        with pytest.raises(AttributeError, match="to_play"):
            broken.result(60)
        good = [room.turn("tictactoe", "random", state, seed, 0) for seed in range(5)]
        assert all(len(one.result(60)) == 1 for one in good)
    finally:
        room.close()


def test_answers_are_the_same_alone_and_together(tmp_path: Path) -> None:
    room = Room(tmp_path)
    try:
        rules = rules_of(playable("connect_four"))
        state = rules.first(0)
        alone = [room.turn("connect_four", "random", state, seed, 3).result(60) for seed in range(6)]
        room._warm("connect_four", "random", BATCH)
        together = [room.turn("connect_four", "random", state, seed, 3) for seed in range(6)]
        assert [one.result(60) for one in together] == alone
        assert len({turn[0] for turn in alone}) > 1
    finally:
        room.close()


@pytest.mark.skipif(not Path("/usr/games/gnubg").exists(), reason="Debian's gnubg is not installed")
def test_the_program_of_a_player_that_is_not_kept_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aleazero.web.room.MOST_PLAYERS", 1)
    room = Room(tmp_path)
    try:
        rules = rules_of(playable("backgammon"))
        state, _ = rules.settle(rules.first(0), 0, 0, opening=True)
        text = "gnubg:ply=0;engine=debian"
        assert room.turn("backgammon", text, state, 0, 0).result(180)
        pid = room.player("backgammon", text).engine.process.pid  # type: ignore[union-attr]
        assert Path(f"/proc/{pid}").exists()
        room.player("tictactoe", "random")
        room.turn("tictactoe", "random", rules_of(playable("tictactoe")).first(0), 0, 0).result(180)  # none holds it
        assert not Path(f"/proc/{pid}").exists()
    finally:
        room.close()


def test_only_so_many_games_are_kept(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.json").write_text("{}")
        os.utime(tmp_path / f"{number}.json", (number, number))
    (tmp_path / "other").mkdir()
    forget_oldest(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["4.json", "5.json", "other"]


def test_a_record_that_goes_while_others_are_forgotten_is_no_trouble(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.json").write_text("{}")
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")  # listed, and then not there
    forget_oldest(tmp_path, 2)
    assert len([path for path in tmp_path.iterdir() if path.exists()]) == 2


def test_reports_of_many_runs_do_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aleazero.web.feed.MOST_RECORDS", 25)
    for name in "abcd":
        make_run(tmp_path / name)  # 12 reports each
    watch = Watch([tmp_path])
    for run in watch.runs():
        assert len(watch.feed(run).records) == 12
    assert sum(len(feed.records) for feed in watch._feeds.values()) == 36  # the last one, and 24 of others


def test_of_too_many_reports_the_newest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aleazero.web.feed.MOST_RECORDS", 20)
    make_run(tmp_path / "long", reports=8)
    watch = Watch([tmp_path])
    feed = watch.feed(watch.find("long"))
    assert (feed.epoch, len(feed.records)) == (0, 16)
    with (tmp_path / "long" / "metrics.jsonl").open("a") as file:
        file.writelines(report(step) for step in range(8, 12))
    assert watch.feed(watch.find("long")) is feed
    assert (feed.epoch, len(feed.records)) == (1, 15)  # who has drawn the others can tell
    assert feed.records[-1]["step"] == 11
