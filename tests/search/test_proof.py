"""Bounds hold, by the exact solver; what is proved is played, quickly if it wins and late if it loses."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

from aleazero.core.errors import ConfigError
from aleazero.games.registry import make_game
from aleazero.search import proof
from aleazero.search.build import build_search
from aleazero.search.settings import SearchConfig, make_knobs
from aleazero.search.tree import ROOT
from aleazero.solvers.tictactoe import solve_moves
from tests.search.support import keys, patient, positions

GAME = patient("tictactoe").game


LANES = 64


@functools.cache
def program(kind, prior_temperature):
    settings = {"prior_temperature": prior_temperature} if prior_temperature != 1 else {}
    search = build_search(GAME, SearchConfig(kind=kind, max_simulations=700, prove=True, **settings))
    evaluate = patient("tictactoe").evaluate

    @jax.jit
    def run(states, keys, knobs, loudness):
        tree = search.plant(evaluate, loudness, states, keys, knobs)
        tree = search.grow(evaluate, loudness, tree, knobs)
        return tree.actions[ROOT], search.result(tree, knobs), proof.root_bounds(tree)

    return search, run


def searched(states, simulations, kind="puct", loudness=(1.0, 1.0), prior_temperature=1.0):
    """The root's actions, results, and bounds of the root's edges, by an evaluator that talks nonsense."""
    search, run = program(kind, prior_temperature)
    knobs = make_knobs(search.plan.config, simulations=simulations, gumbel_scale=0.0)
    return jax.device_get(run(states, keys(LANES), knobs, np.float32(loudness)))


def exact(states, actions):
    """The solver's value of each of the root's edges `[B, E]`; NaN where there is none."""
    values = solve_moves(states.board)
    listed = np.take_along_axis(values, np.maximum(actions, 0).astype(int), 1)
    return np.where(actions >= 0, listed, np.nan)


@pytest.mark.parametrize("kind", ["puct", "gumbel"])
@pytest.mark.parametrize("simulations", [20, 200])
def test_bounds_hold_what_moves_are_worth(kind, simulations):
    states = positions("tictactoe", LANES)
    actions, result, bounds = searched(states, simulations, kind)
    value, legal = exact(states, actions), actions >= 0
    least, most = bounds.least, bounds.most
    assert (least[legal] <= value[legal]).all()
    assert (value[legal] <= most[legal]).all()
    sure = legal & (least == most)
    assert sure.sum() > 30  # or else nothing was seen
    chosen = np.take_along_axis(value, result.edge[:, None], 1)[:, 0]
    proved = np.where(legal, least, -1).max(1)
    assert (chosen >= proved).all()


def late():
    """Positions with at most five free squares."""
    states = positions("tictactoe", 600)
    few = np.flatnonzero((states.board < 0).sum(1) <= 5)[:LANES]
    return jax.tree.map(lambda x: x[few], states)


@functools.cache
def played_out(cells, seat):
    """The value for `seat`, to play, and the plies that are left: few if it wins, many if it loses."""
    lines = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
    if any(all(cells[square] == 1 - seat for square in line) for line in lines):
        return -1, 0
    ends = [played_out((*cells[:i], seat, *cells[i + 1 :]), 1 - seat) for i in range(9) if cells[i] < 0]
    return max(((-value, plies + 1) for value, plies in ends), key=preference, default=(0, 0))


def preference(end):
    value, plies = end
    return value, -value * plies


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["puct", "gumbel"])
def test_where_all_is_known_wins_come_soon_and_losses_late(kind):
    states = late()
    actions, result, bounds = searched(states, 700, kind)
    legal = actions >= 0
    seen = {-1: 0, 0: 0, 1: 0}
    for lane, (board, to_play) in enumerate(zip(states.board, states.to_play, strict=True)):
        if not (bounds.sure[lane] | ~legal[lane]).all():
            continue
        cells, seat = tuple(int(cell) for cell in board), int(to_play)
        square = int(actions[lane, int(result.edge[lane])])
        value, plies = played_out((*cells[:square], seat, *cells[square + 1 :]), 1 - seat)
        best = played_out(cells, seat)
        assert (-value, plies + 1)[: 2 if best[0] else 1] == best[: 2 if best[0] else 1], (cells, square)
        assert float(bounds.least[lane][legal[lane]].max()) == best[0]
        seen[best[0]] += 1
    assert min(seen.values()) >= 1, seen


@pytest.mark.slow
def test_one_look_at_a_win_is_enough():
    """An evaluator that shouts: PUCT hardly looks at what it does not believe in, and visits say otherwise."""
    states = positions("tictactoe", 6 * LANES)
    parts = [jax.tree.map(lambda x, i=i: x[i::6], states) for i in range(6)]
    found = [searched(part, 12, loudness=(3.0, 1.0)) for part in parts]
    _, result, bounds = jax.tree.map(lambda *x: np.concatenate(x), *found)
    won = (bounds.least == 1).any(-1)
    assert won.sum() > 20
    chosen = np.take_along_axis(bounds.least, result.edge[:, None], 1)[:, 0]
    assert (chosen[won] == 1).all()
    visited = np.take_along_axis(bounds.least, result.visits.argmax(1)[:, None], 1)[:, 0]
    assert (visited[won] < 1).sum() > 0


@pytest.mark.slow
def test_flatter_priors_look_at_more_moves():
    states = positions("tictactoe", LANES)
    seen = []
    for temperature in (1.0, 3.0):
        _, result, _ = searched(states, 30, loudness=(3.0, 0.1), prior_temperature=temperature)
        priors = result.priors
        np.testing.assert_allclose(np.where(priors >= 0, priors, 0).sum(1), 1, rtol=1e-5)
        seen.append((priors, (result.visits > 0).sum(1)))
    (sharp, few), (flat, many) = seen
    tempered = np.where(sharp >= 0, np.maximum(sharp, 1e-30) ** (1 / 3), 0)
    np.testing.assert_allclose(
        np.where(flat >= 0, flat, 0), tempered / tempered.sum(1, keepdims=True), rtol=2e-3, atol=1e-6
    )
    assert (many >= few).mean() > 0.9
    assert many.sum() > few.sum()


@pytest.mark.parametrize(
    ("game", "settings", "problem"),
    [
        ("backgammon", {"kind": "puct"}, "two players and games without chance"),
        ("chess", {"kind": "puct", "max_edges": 64}, "max_edges none"),
        ("chess", {"kind": "direct"}, "prove needs kind"),
        ("chess", {"kind": "puct", "prior_temperature": 0.0}, "prior_temperature is 0.0; it must be in 0.1..10"),
    ],
)
def test_what_cannot_be_proved_is_refused(game, settings, problem):
    with pytest.raises(ConfigError, match=problem):
        build_search(make_game(game), SearchConfig(prove=True, **settings))
