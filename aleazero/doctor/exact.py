"""Searches against perfect play, where a game is solved: more simulations must bring a search nearer the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from aleazero.core.game import Game
from aleazero.doctor import CheckFailed, CheckSkipped
from aleazero.doctor.evaluators import IGNORANT
from aleazero.games.connect_four import ConnectFour
from aleazero.games.pig import Pig
from aleazero.games.tictactoe import TicTacToe
from aleazero.judges import exact_judge
from aleazero.search.settings import make_knobs

if TYPE_CHECKING:
    from aleazero.doctor.checks import Patient

POSITIONS = 512
FEW, MANY = 32, 800
EXPLORATION = 0.3  # low: values come from finished games, not from an evaluator's opinions
GOOD_MOVES = 0.97  # share of moves that lose nothing, with MANY simulations and an evaluator that knows nothing


def solved_check(patient: Patient) -> str:
    """Mean error of the value falls from FEW to MANY simulations, and nearly every move chosen loses nothing."""
    from aleazero.doctor.checks import keys_for

    rows, move_values = solved_positions(patient)
    states = jax.tree.map(lambda x: x[rows], patient.steps.state)
    search = patient.search(max_simulations=MANY)
    run = jax.jit(lambda s, k, knobs: search.run(patient.evaluate, IGNORANT, s, k, knobs))
    few, many = (
        run(
            states,
            keys_for(states),
            make_knobs(search.plan.config, simulations=budget, exploration=EXPLORATION),
        )
        for budget in (FEW, MANY)
    )
    best = np.nanmax(move_values, -1)
    error_few, error_many = (float(np.abs(np.asarray(r.value) - best).mean()) for r in (few, many))
    lost = best - np.take_along_axis(move_values, np.asarray(many.action)[:, None], -1)[:, 0]
    good = float((lost < 0.02).mean())
    summary = (
        f"{len(rows)} solved positions: mean error {error_few:.3f} at {FEW} simulations, {error_many:.3f} at {MANY}; "
        f"{good:.1%} of the moves lose nothing"
    )
    if not (error_many <= error_few and good >= GOOD_MOVES):
        raise CheckFailed(summary)
    return summary


def solved_positions(patient: Patient) -> tuple[np.ndarray, np.ndarray]:
    """Rows of random play `[n]` and the exact value of every action there `[n, A]`, NaN where illegal."""
    judge = exact_judge(patient.game)
    if judge is None:
        raise CheckSkipped("the game is not solved")
    eligible = _ELIGIBLE[type(patient.game)]
    states = patient.steps.state
    rows = np.flatnonzero(patient.decides & eligible(states))
    if len(rows) < POSITIONS:
        raise CheckFailed(f"random play met only {len(rows)} positions of the solved kind; {POSITIONS} are needed")
    rows = rows[np.linspace(0, len(rows) - 1, POSITIONS).astype(int)]
    return rows, judge(jax.tree.map(lambda x: x[rows], states))


# Which positions of random play to judge by.
_ELIGIBLE: dict[type[Game], Callable[[Any], np.ndarray]] = {
    TicTacToe: lambda s: np.ones(len(s.to_play), bool),
    # Late enough that the end is in sight of a search without a network.
    Pig: lambda s: s.scores.max(-1) >= 80,
    ConnectFour: lambda s: (s.board >= 0).sum((-1, -2)) >= 26,
}
