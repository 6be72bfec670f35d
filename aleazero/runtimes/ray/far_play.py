"""Self-play whose network is asked elsewhere: the rollout of a local run, move by move on this machine's CPU.

Several groups of games go at once: while one waits for its answer, another one searches. Knows the rollout and a way to
ask; not who answers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.assemble import Parts
from aleazero.core.opinions import expected_value
from aleazero.core.records import Prediction, Trajectory
from aleazero.play.rollout import Pace, Rollout
from aleazero.search.build import Search
from aleazero.search.elsewhere import Elsewhere

Answer = tuple[np.ndarray, np.ndarray]  # logits [N, A], opinions [N, V]
Rolling = Generator[np.ndarray, Answer, Trajectory]
"""Yields observations, is sent what the network says of them, and returns a slab."""


class Asker(Protocol):
    """Somebody who answers for a network, sooner or later."""

    def ask(self, observations: np.ndarray) -> Any:
        """Begins to ask; what it gives stands for the question."""

    def wait(self, questions: Sequence[Any]) -> tuple[Any, Answer]:
        """The next question that is answered, and its answer."""


class Steps:
    """The compiled steps of a rollout, for all groups of a player."""

    def __init__(self, parts: Parts) -> None:
        rollout = parts.rollout
        assert isinstance(rollout, Rollout), "whole turns are not played this way"
        assert isinstance(rollout.search, Search), "no trees are kept this way"
        spec = parts.game.spec
        self.seed, self.moves = jnp.uint32(parts.config.seed), rollout.moves
        self.search = Elsewhere(rollout.search)
        self.start = jax.jit(rollout.start)
        self.set_out, self.finish = jax.jit(rollout.set_out), jax.jit(rollout.finish)
        self.read: Callable[..., Prediction] = jax.jit(
            lambda logits, opinion: Prediction(logits, expected_value(spec, opinion))
        )
        self.stack = jax.jit(lambda rows: jax.tree.map(lambda *moves: jnp.stack(moves), *rows))


class FarGroup:
    """One group of games."""

    def __init__(self, steps: Steps, lanes: Array) -> None:
        """`lanes` `[B]` are the numbers of its games."""
        self._steps, self._lanes, self._number = steps, lanes, 0
        self._games = steps.start(steps.seed, lanes)

    def roll(self, pace: Pace) -> Rolling:
        """T moves of every game."""
        steps, rows = self._steps, []
        for _ in range(steps.moves):
            when = (steps.seed, jnp.uint32(self._number % 2**32), self._lanes)
            full, knobs, keys = steps.set_out(self._games, pace, *when)
            search = steps.search.run(self._games.states, keys, knobs)
            answer = first = yield np.asarray(next(search))
            while True:
                try:
                    observation = search.send(steps.read(*answer))
                except StopIteration as end:
                    found = end.value
                    break
                answer = yield np.asarray(observation)
            self._games, _, _, row = steps.finish(self._games, found, first[1], full, *when)
            rows.append(row)
            self._number += 1
        slab: Trajectory = steps.stack(rows)
        return slab


def roll_all(groups: Sequence[FarGroup], pace: Pace, asker: Asker) -> list[Trajectory]:
    """A rollout of every group, all of them under way at once."""
    rolling = [group.roll(pace) for group in groups]
    asked = {asker.ask(next(each)): place for place, each in enumerate(rolling)}
    slabs: dict[int, Trajectory] = {}
    while asked:
        question, answer = asker.wait(list(asked))
        place = asked.pop(question)
        try:
            asked[asker.ask(rolling[place].send(answer))] = place
        except StopIteration as end:
            slabs[place] = end.value
    return [slabs[place] for place in range(len(groups))]
