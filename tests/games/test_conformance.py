"""The checker of the contract: correct games pass, and a game that breaks a law is told which, where and by what.

Its warnings are seen in test_pgx.py: Othello uses `cond`, and no game of backgammon ends in so few plies.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.errors import GameContractError
from aleazero.games.conformance import check_game
from aleazero.games.host_conformance import check_host_game
from aleazero.games.wander import wander
from tests.games import broken
from tests.games.tiny import Climb, Dash, Drift, TurnDash

LANES, PLIES = 4, 24
pytestmark = pytest.mark.usefixtures("quick_compile")


def named(game: Any) -> str:
    return game.__name__


def complaint(game: Any) -> GameContractError:
    with pytest.raises(GameContractError) as caught:
        check_game(game, lanes=LANES, plies=PLIES)
    return caught.value


@pytest.mark.parametrize("kind", broken.families(broken.Unplayed), ids=named)
def test_shapes_and_programs(kind):
    error = complaint(kind())
    assert error.law == kind.law
    assert re.search(kind.says, error.message), error.message


@pytest.mark.slow
@pytest.mark.parametrize("kind", broken.families(broken.Played, broken.Told, broken.Reseeded), ids=named)
def test_laws_of_play(kind):
    error = complaint(kind())
    assert error.law == kind.law, error
    assert re.search(kind.says, error.message), error.message
    if kind.state is not None:
        shown = re.search(r"\n  state: (.*)", error.message)
        assert shown, error.message
        assert re.fullmatch(kind.state, shown[1]), shown[1]
    if kind.state is not None and kind.done is not None:
        assert re.search(rf"\n  done there: {kind.done}$", error.message), error.message


def test_a_specification_is_checked_when_it_is_written():
    with pytest.raises(GameContractError, match="max_legal is 3") as caught:
        dataclasses.replace(Dash.spec, max_legal=3)
    assert caught.value.law == "spec"


def test_a_broken_notation_does_not_hide_what_is_wrong():
    class Mute(broken.RollsTooOften):
        @property
        def notation(self):
            return None

    error = complaint(Mute())
    assert error.law == "chance_probs"
    assert re.search(r"state: [0-9a-f]+ \(format_state failed: AttributeError", error.message)


@pytest.mark.parametrize("game", [Dash(), Drift()], ids=lambda game: game.spec.name)
def test_correct_games_pass(game):
    report = check_game(game, lanes=LANES, plies=PLIES)
    assert report.positions == LANES * PLIES
    assert report.games > 0
    assert report.warnings == ()


# ---- whole-turn plays

PACK = jax.jit(jax.vmap(Dash().pack))


def streamed(game: TurnDash, states: Any) -> list[list[bytes]]:
    """Every lane's plays, packed, in the order they come, and the chunks' sizes looked at on the way."""
    found: list[list[bytes]] = [[] for _ in states.to_play]
    cursor, done = game.plays_start(states), False
    while not done:
        chunk = game.plays(states, cursor)
        assert chunk.owner.shape == (game.chunk,)
        assert int(chunk.count) == game.chunk or bool(chunk.done)
        rows = np.asarray(PACK(chunk.afterstates))
        for lane, row in zip(np.asarray(chunk.owner[: int(chunk.count)]), rows, strict=False):
            found[int(lane)].append(row.tobytes())
        cursor, done = chunk.cursor, bool(chunk.done)
    return found


def deciding_states() -> Any:
    steps = wander(Dash(), lanes=LANES, plies=PLIES)
    acts = np.flatnonzero(np.asarray(steps.action) >= 0)[::3]
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x).reshape(-1, *x.shape[2:])[acts]), steps.state)


@pytest.mark.parametrize("chunk", [1, 64])
def test_whole_turn_plays_pass(chunk):
    assert check_game(TurnDash(chunk), lanes=LANES, plies=PLIES).games > 0


def test_the_size_of_a_chunk_changes_nothing():
    states = deciding_states()
    small, middle, large = (streamed(TurnDash(chunk), states) for chunk in (1, 3, 256))
    assert small == middle == large
    numbers = {len(plays) for plays in small}
    assert numbers == {1, 2, 3}  # two tokens in two moves: three ways where both can move, fewer near the end


def test_plays_can_be_streamed_on_the_device():
    game, states = TurnDash(3), deciding_states()
    lanes = len(states.to_play)

    def more(carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        counts, cursor, _ = carry
        chunk = game.plays(states, cursor)
        filled = jnp.arange(game.chunk) < chunk.count
        return counts.at[chunk.owner].add(filled.astype(jnp.int32)), chunk.cursor, chunk.done

    start = (jnp.zeros(lanes, jnp.int32), game.plays_start(states), jnp.bool_(False))
    counts = jax.jit(lambda: jax.lax.while_loop(lambda carry: ~carry[2], more, start))()[0]
    assert counts.tolist() == [len(plays) for plays in streamed(TurnDash(256), states)]


# ---- host games


def test_a_correct_host_game_passes():
    report = check_host_game(Climb(), lanes=16, plies=20)
    assert report.games == 16
    assert 16 * 2 < report.positions <= 16 * 12
    assert report.warnings == ()


def test_host_games_that_do_not_end_are_mentioned():
    report = check_host_game(Climb(), lanes=2, plies=1)
    assert report.games == 0
    assert report.positions == 2
    assert report.warnings == ("no game ended in 1 plies of random play",)


@pytest.mark.parametrize("kind", broken.families(Climb), ids=named)
def test_laws_of_host_games(kind):
    with pytest.raises(GameContractError) as caught:
        check_host_game(kind(), lanes=16, plies=20)
    assert caught.value.law == kind.law
    assert re.search(kind.says, caught.value.message), caught.value.message
