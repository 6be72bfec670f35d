"""Games of self-play shown move by move, out of what a rollout records."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.keys import Role, lane_keys
from aleazero.core.records import Knowledge
from aleazero.doctor.evaluators import OPINIONATED, hashed
from aleazero.play.episodes import Episode, EpisodeAssembler
from aleazero.play.rollout import draw
from aleazero.play.turns import TurnRollout
from aleazero.search.expectimax import Expectimax
from aleazero.search.plies import Plies
from aleazero.web.replays import frames
from aleazero.web.rules import playable, rules_of
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")
SEED, MOVES, LANES = 3, 48, 4


@functools.cache
def played() -> Episode:
    """A game of whole turns to its end, from a position of few checkers."""
    game = playable("backgammon")
    evaluate = [hashed(game, seed) for seed in range(len(game.spec.outcomes))]

    def opine(weights: Any, observations: Any) -> Any:
        said = jnp.stack([one(weights, observations).value + 1 for one in evaluate], -1)
        return said / said.sum(-1, keepdims=True)

    found = TurnRollout(game, Plies(Expectimax(game, opine), 0), MOVES, 2, other_start=game.starts["short"])
    lanes, seed = jnp.arange(LANES, dtype=jnp.uint32), jnp.uint32(SEED)
    games = jax.jit(found.start)(seed, lanes)
    _, slab = jax.jit(found.run)(Knowledge(jnp.asarray(OPINIONATED)), games, None, seed, jnp.uint32(0), lanes)
    return EpisodeAssembler(SEED, np.arange(LANES)).add(0, jax.tree.map(np.asarray, slab))[0]


@functools.cache
def shown() -> list[dict[str, Any]]:
    return frames(playable("backgammon"), played())


def drawn(episode: Episode) -> list[str]:
    """What nature drew at every move, from the keys by which it did."""
    game = playable("backgammon")
    _, lane, first = (int(word) for word in episode.id.split("-"))

    @jax.jit
    def look(packed: Any, number: Any) -> Any:
        state = game.unpack(packed)
        lanes = jnp.array([lane], jnp.uint32)
        keys = lane_keys(jnp.uint32(SEED), Role.CHANCE, number, lanes)
        return state, draw(game, jax.tree.map(lambda x: x[None], state), keys)[1][0]

    looks = [look(packed, jnp.uint32(first + row)) for row, packed in enumerate(episode.moves.state)]
    return [game.notation.format_chance(state, int(drew)) for state, drew in looks]


def test_rolls_and_plays_of_whole_turns_are_shown() -> None:
    episode, notation, rules = played(), playable("backgammon").notation, rules_of(playable("backgammon"))
    assert [frame["chance"] for frame in shown()] == drawn(episode)
    for number, frame in enumerate(shown()):  # what is named leads to what is recorded next
        state = notation.parse_state(frame["position"])
        assert frame["board"]["left"]
        assert frame["steps"]
        for action in notation.parse_moves(state, frame["name"]):
            state = rules.apply(state, action)
        if number + 1 < len(episode):
            packed = rules.pack_all(jax.tree.map(lambda x: np.asarray(x)[None], state))[0]
            np.testing.assert_array_equal(packed, episode.moves.state[number + 1])
    assert bool(state.terminated)
    assert float(state.returns[0]) == episode.moves.points[-1]


def test_a_value_is_for_who_is_to_play_after_the_roll() -> None:
    moves = played().moves
    other = np.array([frame["to_play"] for frame in shown()]) != moves.to_play
    assert other[1:].all()  # the first roll says who begins
    assert [frame["value"] for frame in shown()] == np.where(other, -moves.value, moves.value).tolist()


def test_a_game_that_ends_because_its_end_is_known_says_so() -> None:
    whole = played()
    last = dataclasses.replace(jax.tree.map(lambda x: x[-1:], whole.moves), settled=np.array([True]))
    (frame,) = frames(playable("backgammon"), dataclasses.replace(whole, moves=last))
    assert (frame["name"], frame["chance"], frame["steps"]) == ("how it ends is known", "", [])
