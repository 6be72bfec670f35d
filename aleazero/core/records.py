"""What passes between the parts: predictions, trajectories, training rows. Knows no game and no architecture."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from jax import Array

from aleazero.core.struct import struct

# What `Trajectory.resign` says. A game that could have been given up may be played on, to see who was right.
NOT_RESIGNED, RESIGNED, RIGHT, WRONG = range(4)

Weights = Any  # a pytree of parameters, or () for evaluators without any


@struct
class Prediction:
    """What a network says of a batch of states."""

    logits: Array  # [B, A] float, unnormalised; entries of illegal actions are ignored
    value: Array  # [B] float in [-1, 1]: expected final points for to_play over the game's largest


Evaluate = Callable[[Weights, Array], Prediction]
"""`evaluate(weights, observations [B, ...]) -> Prediction`: the only way a search meets a network."""


Opine = Callable[[Weights, Array], Array]
"""`opine(weights, observations [B, ...]) -> [B, V]`: the outcome distribution (or scalar) for to_play."""


@struct
class Knowledge:
    """What a chooser of whole turns goes by."""

    weights: Weights
    endings: Any = None  # tables of the game's `ending`; None: the network judges endings too


@struct
class Output:
    """All that a network's heads say, for training; `Prediction` is what play needs of it."""

    logits: Array | None  # [B, A] float32: the policy, where the network has one
    value: Array  # [B, O] float32: logits over the game's outcomes for to_play; [B, 1] in [-1, 1] from a scalar head
    soft: Array | None = None  # [B, A] float32: the flattened policy, where the network has that head
    reply: Array | None = None  # [B, A] float32: the policy of the move after this one, where it has that head
    moves_left: Array | None = None  # [B] float32: moves until the game ends, where it has that head


@struct
class Trajectory:
    """T moves of B games, raw: what an actor saw and did. Every field is `[T, B, ...]`; V as in `Output.value`."""

    state: Array  # [T, B, P] uint8: the packed decision state
    to_play: Array  # [T, B] int8
    actions: Array  # [T, B, E] int16: the actions the search kept; -1 where there is none
    policy: Array  # [T, B, E] float16: the search's policy over them
    action: Array  # [T, B] int16: the action played
    opinion: Array  # [T, B, V] float16: the network's outcome distribution (or scalar) for to_play, before the search
    value: Array  # [T, B] float32: the value of the search's policy for to_play
    searched: Array  # [T, B] bool: the policy is a full search's, so worth learning from
    random: Array  # [T, B] bool: a random opening move was played: what followed says nothing of this position
    ended: Array  # [T, B] bool: the game ended with this move
    settled: Array  # [T, B] bool: it ended because how it would end is known: `opinion` is the truth, `points` one draw
    truncated: Array  # [T, B] bool: we stopped the game after this move: it has no outcome
    points: Array  # [T, B] float32: seat 0's final points where ended, else 0
    fingerprint: Array  # [T, B] uint32: of the game's moves so far, this one and nature's included
    resign: Array | None = None  # [T, B] int8, where games may be given up: NOT_RESIGNED, RESIGNED, RIGHT or WRONG

    def arrays(self) -> dict[str, Any]:
        """The fields that there are, by name."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: array for name, array in found.items() if array is not None}


@struct
class Rows:
    """Training rows as replay hands them out. Every field is `[B, ...]`; V as in `Output.value`."""

    state: Array  # [B, P] uint8
    actions: Array  # [B, E] int16
    policy: Array  # [B, E] float16
    has_policy: Array  # [B] bool
    target: Array  # [B, V] float32: the value target for to_play
    has_value: Array  # [B] bool
    reply_actions: Array  # [B, E] int16: the next row of the same game; -1 where it has no policy
    reply_policy: Array  # [B, E] float16
    weight: Array  # [B] float32: the importance weight in the loss
    moves_left: Array  # [B] int16: moves until the game ends; -1 where that is not known


@struct
class Fragment:
    """T moves of B games as policy gradients need them. Every field but the last is `[T, B, ...]`."""

    observation: Array  # [T, B, ...] to_play's side
    legal: Array  # [T, B, A] bool
    action: Array  # [T, B] int32
    log_prob: Array  # [T, B] float32: of the action, under the policy that played it, over legal actions
    value: Array  # [T, B] float32: points to come for the learner, as the network said when it played
    reward: Array  # [T, B] float32: what the move paid the learner
    ended: Array  # [T, B] bool: the game ended with this move: nothing comes after it
    truncated: Array  # [T, B] bool: it was stopped after this move, and would have gone on
    after: Array  # [T, B] float32: the value of the position it was stopped in, where truncated; else 0
    mine: Array  # [T, B] bool: the learner moved; else an opponent did, and nothing is learned from the row
    last: Array  # [B] float32: the value of the position that the last move led to
    past: Array | None = None  # [B, H, ...]: what was seen before the first move, the newest first, for who remembers
