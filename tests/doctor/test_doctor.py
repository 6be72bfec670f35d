"""The examination passes sound games, names what is wrong with others, and leaves no check out."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aleazero.core.game import Symmetry
from aleazero.core.struct import replace
from aleazero.doctor import examine
from aleazero.doctor.checks import CHECKS
from aleazero.games.pig import Pig, PigState
from aleazero.games.tictactoe import TicTacToe, TicTacToeState


class Lopsided(TicTacToe):
    """Lists an action twice."""

    def legal_list(self, state: TicTacToeState) -> Array:
        legal = super().legal_list(state)
        return legal.at[8].set(legal[0])


class TwoFaced(TicTacToe):
    """Keeps the contract's letter, but its seats are not alike: the swapped position is another game."""

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:  # type: ignore[override]
        def turn(state: TicTacToeState) -> TicTacToeState:
            return replace(state, to_play=1 - state.to_play, returns=state.returns[::-1], rewards=state.rewards[::-1])

        return (Symmetry("seats", turn, tuple(range(9)), swaps_seats=True),)


class Loaded(Pig):
    """A die whose chances do not add up."""

    def chance_probs(self, state: PigState) -> Array:
        return jnp.array([1 / 6] * 5 + [0.0], jnp.float32)


def test_sound_games_pass_and_every_check_reports() -> None:
    findings = list(examine(Pig()))
    assert [finding.check for finding in findings] == list(CHECKS)
    assert {finding.verdict for finding in findings} == {"passed", "skipped"}
    ran = {finding.check for finding in findings if finding.verdict == "passed"}
    assert {"contract", "recount", "player moving twice", "exact expectation", "exact solution"} <= ran
    assert all(finding.detail for finding in findings)


@pytest.mark.parametrize(
    ("game", "law"), [(Lopsided(), "legal_list"), (TwoFaced(), "symmetry seats"), (Loaded(), "chance_probs")]
)
def test_a_broken_law_is_named_with_the_state(game: TicTacToe | Pig, law: str) -> None:
    findings = list(examine(game))
    assert [finding.verdict for finding in findings] == ["failed"]  # nothing stands on a broken contract
    assert findings[0].detail.startswith(law)
    assert "state: " in findings[0].detail
    assert "done there: " in findings[0].detail


def test_the_evaluator_is_the_same_in_any_batch() -> None:
    from aleazero.doctor.evaluators import IGNORANT, OPINIONATED, hashed

    evaluate = hashed(TicTacToe())
    seen = np.random.default_rng(0).random((64, 3, 3, 2)).astype(np.float32)
    whole = evaluate(OPINIONATED, jnp.asarray(seen))
    for row in (0, 17, 63):
        alone = evaluate(OPINIONATED, jnp.asarray(seen[row : row + 1]))
        np.testing.assert_array_equal(alone.logits[0], whole.logits[row])
        np.testing.assert_array_equal(alone.value[0], whole.value[row])
    assert len(set(np.asarray(whole.value).tolist())) == 64
    assert not np.asarray(evaluate(IGNORANT, jnp.asarray(seen)).value).any()
