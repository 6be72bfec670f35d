"""Quoridor for the rest of the program: the rules, encoding and notation joined to the game contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from jax import Array

from aleazero.core.game import WIN_LOSS, Game, GameSpec, Notation, Symmetry
from aleazero.games.quoridor import encode, rules
from aleazero.games.quoridor.notation import QuoridorNotation
from aleazero.games.quoridor.rules import State


class Quoridor(Game):
    """Two players, 9x9 squares, ten walls each."""

    spec = GameSpec(
        name="quoridor",
        version=1,
        num_players=2,
        num_actions=rules.NUM_ACTIONS,
        max_legal=rules.MAX_LEGAL,
        observation_shape=(9, 9, encode.PLANES),
        outcomes=WIN_LOSS,  # the rules know no draw; games that go on for too long are truncated
        max_plies=200,
    )

    starts: Mapping[str, Callable[[Array], Any]] = MappingProxyType({"scattered": rules.scattered})

    def init(self, key: Array) -> State:
        """The starting position; nothing is drawn."""
        return rules.start()

    def legal_list(self, state: State) -> Array:
        """Pawn moves, then walls."""
        return rules.legal_list(state)

    def apply_action(self, state: State, action: Array) -> State:
        """Moves the pawn or places a wall."""
        return rules.apply_action(state, action)

    def observe(self, state: State) -> Array:
        """The board with the mover's goal at the top."""
        return encode.observe(state)

    @property
    def notation(self) -> Notation:
        """`e2` and `e3h`."""
        return QuoridorNotation()

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:  # type: ignore[override]
        """A mirror, and the seats: actions are as the mover sees them, so a swap leaves them alone."""
        same = tuple(range(rules.NUM_ACTIONS))
        return (
            Symmetry("reflection", rules.reflect, _reflected_actions()),
            Symmetry("seats", rules.swap_seats, same, swaps_seats=True),
        )


def _reflected_actions() -> tuple[int, ...]:
    squares, walls = np.split(np.arange(rules.NUM_ACTIONS), [rules.SQUARES])
    mirrored = [squares.reshape(9, 9)[:, ::-1], walls.reshape(2, 8, 8)[:, :, ::-1]]
    return tuple(np.concatenate([part.reshape(-1) for part in mirrored]).tolist())
