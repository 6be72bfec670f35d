"""The external player of GNU Backgammon: single lines with known answers, broken lines, and whole games with the real
program, whose own record of them is replayed by our rules."""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.bridges.gnubg_external import LONGEST_LINE, Answerer, ExternalServer, parse_board
from aleazero.core.errors import NotationError
from aleazero.engine_players import EnginePlayer
from aleazero.engines import EngineError
from aleazero.engines.gnubg_program import DEBIAN_PLACE
from aleazero.games.backgammon.game import MIXED, ROLLS, Backgammon
from aleazero.models.build import ModelConfig, build_model
from aleazero.players import RandomPlayer, TurnNetworkPlayer
from aleazero.search.expectimax import Turn
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")

GNUBG = shutil.which("gnubg") or str(DEBIAN_PLACE)
debian = pytest.mark.skipif(not Path(GNUBG).exists(), reason="Debian's gnubg is not installed")
GAME = Backgammon()

# What GNU Backgammon 1.07 really sent: player 0 (ann) has the negative numbers, player 1 (bob) the positive ones.
BOB_51 = (
    "board:ann:bob:0:0:0:0:-1:0:0:0:0:5:-1:3:0:0:0:-4:5:0:-1:0:-3"
    ":0:-5:0:0:0:0:2:0:1:5:1:5:1:1:1:1:0:1:-1:0:25:0:0:0:0:0:0:0:1"
)
ANN_44 = (
    "board:ann:bob:0:0:0:-1:-1:0:0:0:0:5:1:3:0:0:0:-4:4:0:-1:0:-3"
    ":0:-5:0:0:0:0:2:0:-1:4:4:4:4:1:1:1:0:1:-1:0:25:0:0:0:0:0:0:0:1"
)
ANN_66 = (
    "board:ann:bob:0:0:0:-1:0:0:0:1:-1:5:1:2:0:0:0:-2:4:0:-1:-2:-3"
    ":0:-5:0:0:0:1:1:0:-1:6:6:6:6:1:1:1:0:1:-1:0:25:0:0:0:0:0:0:0:1"
)
ANN_ROLLS = (
    "board:ann:bob:0:0:0:0:-1:0:0:0:1:4:-1:4:0:0:0:-4:4:0:-1:0:-3"
    ":0:-5:0:0:0:0:2:0:-1:0:0:0:0:1:1:1:0:1:-1:0:25:0:0:0:0:0:0:0:1"
)
BOB_DOUBLED = (
    "board:bob:ann:0:0:0:0:-1:0:0:0:1:4:-1:4:0:0:0:-4:4:0:-1:0:-3"
    ":0:-5:0:0:0:0:2:0:1:0:0:0:0:1:1:1:1:1:-1:0:25:0:0:0:0:0:0:0:1"
)


def written(places: dict[int, int], turn: int, dice: tuple[int, int], **changes: int) -> str:
    """A board line; `places` as FIBS numbers them. Further fields by number, as in `f41=2`."""
    fields = ["board", "ann", "bob", "0", "0", "0", *("0" for _ in range(26)), str(turn), *map(str, (*dice, *dice))]
    fields += ["1", "1", "1", "0", "1", "-1", "0", "25", *"00000001"]
    for place, number in places.items():
        fields[6 + place] = str(number)
    for name, value in changes.items():
        fields[int(name[1:])] = str(value)
    return ":".join(fields)


@functools.cache
def network() -> TurnNetworkPlayer:
    """A tiny network that has learned nothing."""
    model = build_model(ModelConfig(width=16, blocks=1, policy=False), GAME.spec)
    return TurnNetworkPlayer(GAME, model, jax.jit(model.init)(jax.random.key(3)), "tiny")


@pytest.fixture(scope="module")
def answerer() -> Answerer:
    return Answerer(GAME, network())


# ---- lines


def test_who_has_which_checkers() -> None:
    asked = parse_board(ANN_44)
    assert not asked.doubled
    assert asked.position.dice == (4, 4)
    assert asked.position.left == 4
    mine = {25: 1, 24: 1, 13: 4, 10: 1, 8: 3, 6: 5}  # ann's own places: she is on the bar
    theirs = {25 - place: number for place, number in {6: 5, 7: 1, 8: 3, 13: 4, 24: 2}.items()}
    for side, expected in ((asked.position.mine, mine), (asked.position.theirs, theirs)):
        assert {place: int(number) for place, number in enumerate(side) if number} == expected
    asked = parse_board(BOB_51)
    assert asked.position.dice == (5, 1)
    assert [int(asked.position.mine[place]) for place in (24, 13, 8, 6)] == [2, 5, 3, 5]
    assert asked.position.theirs[7] == 1
    assert asked.position.to_play != parse_board(ANN_44).position.to_play


def test_answers_are_moves_of_the_one_whose_turn_it_is(answerer: Answerer) -> None:
    assert answerer.answer(ANN_66) == ""  # on the bar, and the point is held
    for line in (ANN_44, BOB_51):
        state = _state(line)
        after = [GAME.notation.format_turn(state, actions) for actions, _ in GAME.notation.turns(state)]
        assert answerer.answer(line) in after
    assert answerer.answer(ANN_44).startswith("bar/21")
    assert answerer.answer(ANN_ROLLS) == "roll"


def test_the_last_checkers_go_off(answerer: Answerer) -> None:
    assert answerer.answer(written({2: 1, 24: -1}, 1, (6, 3))) == "2/off"
    assert answerer.answer(written({2: 1, 23: -2}, -1, (6, 3))) == "2/off(2)"
    assert answerer.answer(written({20: -1, 4: -1, 5: 2, 25: 1}, 1, (6, 2))) == "bar/17"  # 23 is open, then 17


@pytest.mark.parametrize("turn", [1, -1])
def test_a_double_is_given_up_where_too_much_is_lost(turn: int) -> None:
    """Whoever has doubled has the turn; the other one is asked."""

    def told(points: float) -> str:
        class Certain(TurnNetworkPlayer):
            def judge(self, states: Any) -> Turn:
                assert int(states.to_play[0]) == (1 if turn == 1 else 0)  # the one who is asked, as if it had moved
                return Turn(states, jnp.array([points / 3]), jnp.zeros((1, 6)), jnp.zeros(1, bool))

        player = Certain(GAME, network().model, network().weights, "certain")
        return Answerer(GAME, player).answer(BOB_DOUBLED.replace(":1:0:0:0:0:", f":{turn}:0:0:0:0:"))

    assert [told(points) for points in (0.9, -0.49, -0.51)] == ["take", "take", "drop"]


def test_gnubg_itself_judges_doubles() -> None:
    pytest.importorskip("gnubg_nn")
    from aleazero.engines.gnubg import Gnubg

    gnu = Answerer(GAME, EnginePlayer(Gnubg(0), "gnubg"))
    assert gnu.answer(BOB_DOUBLED) == "take"
    ahead = {1: 2, 2: 2, 20: -5, 10: -5, 12: -5}  # bob has four checkers left
    assert gnu.answer(written(ahead, 1, (0, 0), f40=1)) == "drop"
    behind = {1: -5, 2: -5, 3: -5, 23: 1, 24: 1}  # bob doubles all the same
    assert gnu.answer(written(behind, -1, (0, 0), f40=1)) == "take"


def test_a_player_of_single_moves_answers_whole_turns() -> None:
    player = Answerer(GAME, RandomPlayer(GAME))
    state = _state(ANN_44)
    names = {GAME.notation.format_turn(state, actions) for actions, _ in GAME.notation.turns(state)}
    seen = {player.answer(ANN_44) for _ in range(30)}
    ends = {_end(state, name) for name in seen}
    assert ends <= {_end(state, name) for name in names}
    assert len(seen) > 5  # each question has its own dice to choose by


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("hello", "'hello' is not understood: a line begins with board:"),
        ("board", "has 1 fields; a board has at least 45"),
        (":".join(ANN_44.split(":")[:40]), "has 40 fields"),
        (ANN_44.replace(":4:4:4:4:", ":4:x:4:4:"), "invalid literal for int"),
        (ANN_44.replace(":4:4:4:4:", ":4:7:4:4:"), "the dice are 4 and 7; a die shows 1 to 6"),
        (ANN_44.replace(":4:4:4:4:", ":0:4:0:4:"), "the dice are 0 and 4"),
        (ANN_44.replace(":-1:4:4:4:4:", ":0:4:4:4:4:"), "the turn is 0; it must be 1 or -1"),
        (written({6: 16, 1: -1}, 1, (3, 1)), "there are 16 checkers on a point"),
        (written({6: 10, 7: 6, 1: -1}, 1, (3, 1)), "X has 16 checkers; there are 15"),
        (written({6: 10, 1: -10, 3: -6}, 1, (3, 1)), "O has 16 checkers; there are 15"),
        (written({0: 1, 6: 3, 1: -1}, 1, (3, 1)), "X has a checker on the other player's bar"),
        (written({}, 1, (3, 1)), "both players have borne off all checkers"),
        (written({6: 3}, 1, (3, 1)), "O has won"),
        (written({6: 3}, 1, (0, 0)), "the game is over"),
        (written({6: 3, 1: -1}, 1, (3, 1), f41=1, f42=1), "positive numbers move down"),
        (written({6: 3, 1: -1}, 1, (3, 1), f20=10**400), "checkers on a point"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(answerer: Answerer, line: str, why: str) -> None:
    with pytest.raises(NotationError) as caught:
        answerer.answer(line)
    assert why in str(caught.value)
    assert len(str(caught.value)) < 700


@settings(max_examples=200, deadline=None)
@given(
    st.text(st.characters(codec="utf-8"), max_size=200)
    | st.lists(st.integers(-20, 20)).map(lambda n: ":".join(["board", "a", "b", *map(str, n)]))
)
def test_any_line_is_understood_or_refused(line: str) -> None:
    with contextlib.suppress(NotationError):
        parse_board(line)


# ---- connections


@contextlib.contextmanager
def serving(answers: Answerer) -> Iterator[int]:
    with ExternalServer("127.0.0.1", 0, answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def port(answerer: Answerer) -> Generator[int, None, None]:
    with serving(answerer) as number:
        yield number


def ask(port: int, *messages: bytes) -> bytes:
    """All that is answered to messages, each sent on its own, until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as there:
        for message in messages:
            there.sendall(message)
        there.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: there.recv(4096), b""))


def test_lines_are_answered_one_by_one(port: int) -> None:
    rolls = ANN_ROLLS.encode()
    assert ask(port, rolls + b"\n\0", rolls + b"\n\0") == b"roll\nroll\n"  # as GNU Backgammon ends them
    assert ask(port, rolls[:30], rolls[30:] + b"\r\n\n") == b"roll\n"
    assert ask(port, ANN_66.encode() + b"\n" + rolls + b"\n") == b"\nroll\n"
    assert ask(port, rolls) == b""  # never ended
    assert ask(port) == b""


def test_after_a_broken_line_it_goes_on(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "aleazero"):
        said = ask(port, b"\xff\xfe\x00\n", b"board:1\n", ANN_ROLLS.encode() + b"\n").split(b"\n")
    assert said[0].startswith(b"Error: ")
    assert said[1].startswith(b"Error: 'board:1' has 2 fields")
    assert said[2:] == [b"roll", b""]
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


def test_a_line_without_end_is_cut_off(port: int) -> None:
    said = ask(port, b"x" * LONGEST_LINE)
    assert re.fullmatch(rb"Error: 'x{80}\.\.\.' is too long: a line has less than 1024 bytes\n", said)
    with contextlib.suppress(OSError):  # it may be closed before all is sent
        assert len(ask(port, b"y" * 10**6)) < 300
    assert ask(port, ANN_ROLLS.encode() + b"\n") == b"roll\n"


def test_several_at_once(port: int) -> None:
    expected = ask(port, ANN_44.encode() + b"\n")
    with contextlib.ExitStack() as stack:
        there = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)) for _ in range(6)]
        for one in there:
            one.sendall(ANN_44.encode() + b"\n")
        assert [one.recv(100) for one in there] == [expected] * 6


def test_a_player_that_fails_ends_the_connection_not_the_server(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(TurnNetworkPlayer):
        fault: type[Exception] = EngineError

        def turn(self, states: Any, lanes: Any, keys: Any) -> Any:
            raise self.fault("the engine is gone")

    class Buggy(Broken):
        fault = ZeroDivisionError

    for kind in (Broken, Buggy):
        with serving(Answerer(GAME, kind(GAME, network().model, network().weights, "broken"))) as number:
            assert ask(number, BOB_51.encode() + b"\n", ANN_ROLLS.encode() + b"\n") == b""
            assert ask(number, ANN_ROLLS.encode() + b"\n") == b"roll\n"
        assert "the engine is gone" in caplog.text
        caplog.clear()


# ---- GNU Backgammon


def gnubg(commands: str, home: Path) -> str:
    done = subprocess.run(
        [GNUBG, "-t", "-q", "-r"],
        input=commands,
        env={"HOME": str(home), "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout


GAMES = """
set player {ours} external 127.0.0.1:{port}
set player {theirs} gnubg
set player {theirs} chequerplay evaluation plies 0
set player {theirs} cubedecision evaluation plies 0
set player {ours} name ours
set player {theirs} name gnu
set automatic game off
set automatic roll {roll}
set jacoby off
set cube use {cube}
set display off
set seed {seed}
new session
new game
new game
export match mat {file}
"""


@debian
@pytest.mark.parametrize(("ours", "cube"), [(0, "off"), (1, "on")])
def test_games_with_the_real_program(port: int, ours: int, cube: str, tmp_path: Path) -> None:
    """What it could not play it would take for a pass: so every pass in its record must have been forced."""
    file = tmp_path / "games.mat"
    roll = "on" if cube == "off" else "off"
    said = gnubg(
        GAMES.format(port=port, ours=ours, theirs=1 - ours, cube=cube, roll=roll, seed=11 + ours, file=file), tmp_path
    )
    assert said.count(" wins a ") == 3
    assert not re.search("badly formed|closed|Warning|rror", said)
    games = file.read_text().split(" Game ")[1:]
    assert len(games) == 3
    turns = sum(_replay(game) for game in games)
    assert turns > 60
    if cube == "on":
        assert "Doubles =>" in file.read_text()


def _replay(text: str) -> int:
    """Plays a game of a .mat by our rules; how many turns it had."""
    state, number = None, 0
    for line in text.splitlines()[2:]:
        for found in re.finditer(r"([1-6])([1-6]): ((?:\d+/\d+\*?(?: |$))*)", line):
            state = _rolled(state, 0 if found.start() < 20 else 1, int(found[1]), int(found[2]))
            for action in GAME.notation.parse_moves(state, found[3].strip() or "pass"):
                state = _jitted("apply_action")(state, jnp.int32(action))
            assert bool(state.is_chance) or bool(state.terminated), line
            number += 1
    return number


def _rolled(state: Any, seat: int, one: int, two: int) -> Any:
    """The state with these dice for a player, at the beginning too."""
    roll = ROLLS.index((max(one, two), min(one, two)))
    if state is None:
        state = _jitted("init")(jax.random.key(0))
        roll += MIXED * seat
    after = _jitted("apply_chance")(state, jnp.int32(roll))
    assert int(after.to_play) == seat
    return after


@functools.cache
def _jitted(name: str) -> Any:
    return jax.jit(getattr(GAME, name))


def _state(line: str) -> Any:
    from aleazero.games.backgammon.notation import make_state

    return make_state(GAME, parse_board(line).position)


def _end(state: Any, name: str) -> bytes:
    for action in GAME.notation.parse_moves(state, name):
        state = _jitted("apply_action")(state, jnp.int32(action))
    return bytes(np.asarray(GAME.pack(state)))
