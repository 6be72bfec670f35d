"""What passes between a network and a search. Knows no game and no architecture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax import Array

from aleazero.core.struct import struct

Weights = Any  # a pytree of parameters, or () for evaluators without any


@struct
class Prediction:
    """What a network says of a batch of states."""

    logits: Array  # [B, A] float, unnormalised; entries of illegal actions are ignored
    value: Array  # [B] float in [-1, 1]: expected final points for to_play over the game's largest


Evaluate = Callable[[Weights, Array], Prediction]
"""`evaluate(weights, observations [B, ...]) -> Prediction`: the only way a search meets a network."""
