"""A search that knows only the rules finds a mate in one, whoever is to move."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.records import Evaluate, Weights
from aleazero.doctor.evaluators import IGNORANT, hashed
from aleazero.games.chess.epd import Entry
from aleazero.models.build import ModelConfig, build_model
from aleazero.search.build import build_search
from aleazero.search.settings import SearchConfig, make_knobs
from aleazero.suites import mate_suite, shipped_suite
from tests.games.chess.support import GAME, stacked

SIMULATIONS = 200


def missed(entries: list[Entry], batch: int, evaluate: Evaluate, weights: Weights) -> list[int]:
    """Where the most visited move does not mate, by PUCT."""
    settings = SearchConfig(kind="puct", max_simulations=SIMULATIONS)
    search = build_search(GAME, settings)

    @jax.jit
    def choose(states, keys):  # type: ignore[no-untyped-def]
        found = search.run(evaluate, weights, states, keys, make_knobs(settings, temperature=0.0))
        return jnp.take_along_axis(found.actions, found.visits.argmax(-1)[:, None], -1)[:, 0]

    chosen = []
    for first in range(0, len(entries), batch):
        chunk = [entries[min(first + i, len(entries) - 1)].state for i in range(batch)]
        chosen.append(np.asarray(choose(stacked(chunk), jax.random.split(jax.random.key(first), batch))))
    moves = np.concatenate(chosen)[: len(entries)]
    return [i for i, (entry, move) in enumerate(zip(entries, moves, strict=True)) if int(move) not in entry.best]


def colours(entries: list[Entry]) -> set[int]:
    return {int(entry.state.to_play) for entry in entries}


@pytest.mark.slow
def test_mates_in_one_have_the_most_visits() -> None:
    entries = [entry for entry in shipped_suite(GAME).entries if entry.name.startswith("mate in 1,")][:32]
    assert len(entries) == 32
    assert colours(entries) == {0, 1}
    assert missed(entries, 32, hashed(GAME), IGNORANT) == []


@pytest.mark.long  # python -m pytest tests/search/test_mate_in_one.py -m long
def test_two_hundred_of_them_with_an_untrained_network() -> None:
    model = build_model(ModelConfig(width=8, blocks=1, head_width=4), GAME.spec)
    entries = list(mate_suite(GAME, 1, 200).entries)
    assert colours(entries) == {0, 1}
    assert missed(entries, 50, model.evaluate, jax.jit(model.init)(jax.random.key(1))) == []
