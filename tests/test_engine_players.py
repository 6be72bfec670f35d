"""Engines at the table: their strings, whom they move for, a real match, and what rolls are worth by GNU Backgammon."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.errors import ConfigError, MissingExtra
from aleazero.core.keys import Role, lane_keys
from aleazero.engine_players import KINDS, MANY, EnginePlayer, GnubgJudge, _after_rolls, _pool, make
from aleazero.engines import EngineError
from aleazero.engines.gnubg import Gnubg, Pubeval
from aleazero.games.backgammon.boards import to_boards, to_dice
from aleazero.games.backgammon.game import Backgammon
from aleazero.games.tictactoe import TicTacToe
from aleazero.games.wander import wander
from aleazero.play.luck import luck
from aleazero.play.match import TurnPlayer, play_match
from aleazero.players import make_player
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compile")]
library = pytest.mark.skipif(importlib.util.find_spec("gnubg_nn") is None, reason="gnubg-nn is not installed")

GAME = Backgammon()


# ---- strings


@library
@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("gnubg", lambda: Gnubg(0)),
        ("gnubg:ply=0", lambda: Gnubg(0)),
        ("gnubg:ply=2", lambda: Gnubg(2)),
        ("gnubg:ply=0;noise=0.06", lambda: Gnubg(0, 0.06)),
        ("gnubg: noise = 0.06 ; engine = nn ;", lambda: Gnubg(0, 0.06)),
        ("gnubg:ply=1;noise=0", lambda: Gnubg(1)),
        ("pubeval", Pubeval),
    ],
)
def test_a_string_names_an_engine(text: str, engine: Any) -> None:
    player = make_player(text, GAME)
    assert isinstance(player, EnginePlayer)
    assert isinstance(player, TurnPlayer)
    assert (player.engine, player.name) == (engine(), text)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("gnubg:plies=1", ["unknown option 'plies': did you mean 'ply'? known: engine, noise, ply"]),
        ("gnubg:ply", ["'ply' is no option; write ply=1 or noise=0.06"]),
        ("gnubg:ply=", ["'ply=' is no option; write ply=1 or noise=0.06"]),
        ("gnubg:ply=3", ["ply is '3'; it must be 0, 1 or 2"]),
        ("gnubg:ply=-1", ["ply is '-1'; it must be 0, 1 or 2"]),
        ("gnubg:ply=two", ["ply is 'two'; it must be 0, 1 or 2"]),
        ("gnubg:ply=²", ["ply is '²'; it must be 0, 1 or 2"]),
        ("gnubg:ply=٢", ["ply is '٢'; it must be 0, 1 or 2"]),
        ("gnubg:noise=loud", ["noise is 'loud'; it must be a number of points from 0 on, as in 0.06"]),
        ("gnubg:noise=-1", ["noise is '-1'; it must be a number of points from 0 on"]),
        ("gnubg:noise=nan", ["noise is 'nan'; it must be a number of points from 0 on"]),
        ("gnubg:noise=inf", ["noise is 'inf'; it must be a number of points from 0 on"]),
        ("gnubg:ply=1;noise=0.1", ["noise is '0.1'; it is for ply=0 and engine=nn"]),
        ("gnubg:noise=0.1;engine=debian", ["noise is '0.1'; it is for ply=0 and engine=nn"]),
        ("gnubg:engine=debain", ["unknown engine 'debain': did you mean 'debian'? known: debian, nn"]),
        (
            "gnubg:zoom=1;depth=2;ply=9;noise=x;engine=gnu",
            ["unknown option 'depth'", "unknown option 'zoom'", "ply is '9'", "noise is 'x'", "unknown engine 'gnu'"],
        ),
        ("gnubg:ply=1,search=gumbel", ["'gnubg' takes no search"]),
        ("pubeval:ply=1", ["pubeval takes no options"]),
        ("pubeval,sims=4", ["'pubeval' takes no search"]),
    ],
)
def test_all_that_is_wrong_with_a_string_is_said_at_once(text: str, problems: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        make_player(text, GAME)
    lines = str(raised.value).splitlines()
    assert len(lines) == len(problems)
    for line, problem in zip(lines, problems, strict=True):
        assert line.startswith(f"player {text!r}: ")
        assert problem in line


@pytest.mark.parametrize("kind", KINDS)
def test_engines_play_backgammon_alone(kind: str) -> None:
    with pytest.raises(ConfigError, match=f"player '{kind}': {kind} plays backgammon, not tictactoe"):
        make(kind, "", TicTacToe(), kind)


@pytest.mark.parametrize("text", ["gnubg", "gnubg:ply=2;noise=0", "pubeval"])
def test_without_the_library_it_is_said_what_to_install(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gnubg_nn", None)
    with pytest.raises(MissingExtra, match=r"needs gnubg-nn, which is not installed: pip install 'aleazero\[gnubg\]'"):
        make_player(text, GAME)
    with pytest.raises(MissingExtra):
        GnubgJudge(1)


def test_the_module_itself_imports_no_engine() -> None:
    """Players are made in training too; engines are not."""
    code = (
        "import sys, aleazero.players, aleazero.engine_players\n"
        "print([name for name in sys.modules if name.startswith(('aleazero.engines', 'gnubg'))])"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


# ---- at the table


@functools.cache
def positions() -> Any:
    """Rolled states at the start of a turn, of both seats, from random play."""
    steps = wander(GAME, lanes=8, plies=200, seed=3)
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), steps.state)
    whole = ~flat.is_chance & (flat.left == np.where(flat.dice[:, 0] == flat.dice[:, 1], 4, 2))
    rows = np.random.default_rng(0).permutation(np.flatnonzero(whole))[:32]
    return jax.tree.map(lambda x: x[rows], flat)


class Recorder:
    """An engine that has the mover's last checker off whatever it is asked, and remembers that."""

    def __init__(self) -> None:
        self.boards: list[np.ndarray] = []
        self.dice: list[np.ndarray] = []

    def choose(self, boards: np.ndarray, dice: np.ndarray) -> np.ndarray:
        self.boards.append(boards.copy())
        self.dice.append(dice.copy())
        after = boards.copy()
        after[:, 1] = 0
        return after


def keys(count: int) -> jax.Array:
    return lane_keys(0, Role.MATCH, 0, jnp.arange(count))


def test_only_games_it_is_asked_about_are_moved() -> None:
    states, engine = positions(), Recorder()
    lanes = np.arange(32) % 3 == 1
    after = EnginePlayer(engine, "it").turn(states, jnp.asarray(lanes), keys(32))
    assert len(engine.boards) == 1
    np.testing.assert_array_equal(engine.boards[0], to_boards(states)[lanes])
    np.testing.assert_array_equal(engine.dice[0], to_dice(states)[lanes])
    np.testing.assert_array_equal(after.to_play, states.to_play)
    left = to_boards(after)
    np.testing.assert_array_equal(left[~lanes], to_boards(states)[~lanes])
    np.testing.assert_array_equal(left[lanes][:, 0], to_boards(states)[lanes][:, 0])
    assert not left[lanes][:, 1].any()
    # Who has nothing left has won, whichever its seat.
    won = np.asarray(after.returns)[np.arange(32), np.asarray(after.to_play)]
    np.testing.assert_array_equal(won > 0, lanes)
    np.testing.assert_array_equal(after.terminated, lanes)
    assert {0, 1} == set(states.to_play[lanes].tolist())


@library
@pytest.mark.parametrize("kind", [Gnubg, Pubeval])
def test_what_the_engine_leaves_is_what_it_said(kind: Any) -> None:
    states, engine = positions(), kind()
    after = EnginePlayer(engine, "it").turn(states, jnp.ones(32, bool), keys(32))
    np.testing.assert_array_equal(to_boards(after), engine.choose(to_boards(states), to_dice(states)))
    assert np.asarray(after.is_chance | after.terminated).all()


# ---- what rolls are worth


@functools.cache
def chances() -> Any:
    """States before a roll: the opening, and some of both seats."""
    steps = wander(GAME, lanes=8, plies=200, seed=4)
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), steps.state)
    late = np.flatnonzero(flat.is_chance & ~flat.opening)
    rows = [int(flat.opening.argmax()), *np.random.default_rng(1).permutation(late)[:6].tolist()]
    found = jax.tree.map(lambda x: x[rows], flat)
    assert set(found.to_play[1:].tolist()) == {0, 1}
    return found


def worth(states: Any) -> np.ndarray:
    """By the rules: every roll that is possible, the engine's answer from who has it, and what that is then worth."""
    probabilities = np.asarray(jax.jit(jax.vmap(GAME.chance_probs))(states))
    roll = jax.jit(jax.vmap(GAME.apply_chance, (0, None)))
    found, engine = np.zeros(probabilities.shape), Gnubg()
    for outcome in range(probabilities.shape[1]):
        rows = np.flatnonzero(probabilities[:, outcome] > 0)
        if rows.size:
            rolled = jax.tree.map(lambda x, rows=rows: np.asarray(x)[rows], roll(states, jnp.int32(outcome)))
            after = engine.choose(to_boards(rolled), to_dice(rolled))
            found[rows, outcome] = np.where(rolled.to_play == 0, 1, -1) * engine.after_equities(after)
    return found


@pytest.fixture(scope="module")
def judge() -> Iterator[GnubgJudge]:
    with contextlib.closing(GnubgJudge(1)) as made:
        yield made


@library
def test_rolls_are_worth_what_the_engine_says_of_its_answers_to_seat_0(judge: GnubgJudge) -> None:
    states = chances()
    probabilities = np.asarray(jax.jit(jax.vmap(GAME.chance_probs))(states))
    found, wanted = judge(states), worth(states)
    assert found.shape == (7, GAME.spec.num_chance_outcomes)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.where(probabilities > 0, found, 0), wanted, atol=1e-9)
    assert np.ptp(wanted[1:, :21], axis=1).min() > 0.01
    # Whoever starts is glad of it, and either may.
    assert found[0, :15].mean() > 0
    np.testing.assert_allclose(found[0, :15], -found[0, 15:], atol=1e-9)
    few = judge(jax.tree.map(lambda x: x[:2], states))  # fewer than there are parts
    np.testing.assert_allclose(few, found[:2], atol=1e-12)


@library
def test_no_positions_are_no_work() -> None:
    assert _after_rolls(np.zeros((0, 2, 25), np.int64)).shape == (0, 21)


@library
def test_a_match_of_engines(judge: GnubgJudge) -> None:
    """Games come to their ends with legal turns; both of a pair have the same dice, and luck is most of the result."""
    strong, weak = make_player("gnubg", GAME), make_player("pubeval", GAME)
    result = play_match(GAME, strong, weak, pairs=4, seed=0, record=True, opening_plies=1)
    assert set(np.abs(result.points).ravel().tolist()) <= {1.0, 2.0, 3.0}
    rolls = result.rolls
    assert rolls is not None
    for pair in range(4):
        one, two = (rolls.outcome[rolls.game == 2 * pair + seat] for seat in (0, 1))
        common = min(len(one), len(two))
        assert common > 5
        np.testing.assert_array_equal(one[:common], two[:common])
    lucky = luck(GAME, result, judge)
    assert np.corrcoef(result.points.ravel(), lucky.ravel())[0, 1] > 0.7


@library
def test_a_slow_engine_is_asked_on_every_core_and_one_that_is_killed_is_named() -> None:
    steps = wander(GAME, lanes=8, plies=40, seed=5)
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), steps.state)
    whole = ~flat.is_chance & ~flat.terminated & (flat.left == np.where(flat.dice[:, 0] == flat.dice[:, 1], 4, 2))
    states = jax.tree.map(lambda x: jnp.asarray(x[np.flatnonzero(whole)[:MANY]]), flat)
    everybody, keys = jnp.ones(MANY, bool), jax.vmap(jax.random.key)(jnp.arange(MANY))
    slow = make_player("gnubg:ply=1", GAME)
    assert isinstance(slow, EnginePlayer)
    assert slow.slow
    wanted = dataclasses.replace(slow, slow=False).turn(states, everybody, keys)
    jax.tree.map(np.testing.assert_array_equal, slow.turn(states, everybody, keys), wanted)
    for process in list(_pool()._processes.values()):
        process.kill()
    with pytest.raises(EngineError, match=r"a process of Gnubg\(ply=1.*ended while it was thinking"):
        slow.turn(states, everybody, keys)
    jax.tree.map(np.testing.assert_array_equal, slow.turn(states, everybody, keys), wanted)  # begun anew
    _pool().shutdown()
    _pool.cache_clear()
