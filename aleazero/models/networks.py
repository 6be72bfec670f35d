"""The networks: a residual MLP and a residual CNN, each with a policy head and a value head.

Without batch norm: branches end in zeros, so that every block starts as the identity, and the torso's output is
normalised once. Weights are float32; `compute` is the type of the arithmetic inside. Knows shapes, not games.
"""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.records import Output
from aleazero.models.convolution import Convolution

MOVES = 100.0  # moves are counted in hundreds inside a network

_ZERO = nn.initializers.zeros_init()
_SMALL = nn.initializers.variance_scaling(0.01, "fan_in", "truncated_normal")


class Heads(nn.Module):
    """Logits for every action and every outcome from flat features; float32 at the end."""

    num_actions: int  # 0: no policy
    num_outcomes: int  # 0: one number in [-1, 1]
    extra: tuple[str, ...]  # further policy heads: "soft", "reply"
    moves_left: bool = False  # a head for how long the game still lasts
    moves: tuple[tuple[int, int, int], ...] = ()  # actions as moves on a board: source, target, which of these

    @nn.compact
    def __call__(self, policy: Array, value: Array) -> Output:
        """`policy` and `value` are the features `[B, F]` of each; with moves `policy` is `[B, rows, columns, F]`."""

        def dense(size: int, features: Array, name: str) -> Array:
            return nn.Dense(size, dtype=jnp.float32, kernel_init=_SMALL, name=name)(features)

        def actions(name: str) -> Array:
            if self.moves:
                return MoveLogits(self.moves, name=name)(policy)
            return dense(self.num_actions, policy, name)

        scores = dense(self.num_outcomes or 1, value, "value")
        left = MOVES * jax.nn.softplus(dense(1, value, "moves_left"))[:, 0] if self.moves_left else None
        return Output(
            logits=actions("policy") if self.num_actions else None,
            value=scores if self.num_outcomes else jnp.tanh(scores),
            moves_left=left,
            **{name: actions(name) for name in self.extra},
        )


class MoveLogits(nn.Module):
    """A move's logit by how well its source and its target go together, and by what its target says of its kind.

    So what is learned of a move holds wherever on the board it is made, and few numbers are needed.
    """

    moves: tuple[tuple[int, int, int], ...]  # source, target, kind

    @nn.compact
    def __call__(self, board: Array) -> Array:
        """`[B, rows, columns, F]` features; `[B, A]` logits."""
        squares = board.reshape(board.shape[0], -1, board.shape[-1]).astype(jnp.float32)
        source, target, kind = np.array(self.moves).T
        width, kinds = board.shape[-1], int(kind.max()) + 1
        ask = nn.Dense(width, name="source")(squares)
        answer = nn.Dense(width, kernel_init=_SMALL, name="target")(squares)
        pairs = jnp.einsum("bsf,btf->bst", ask, answer) / width**0.5
        wanted = nn.Dense(kinds, kernel_init=_SMALL, name="kind")(squares)
        flat = (board.shape[0], -1)
        return (
            pairs.reshape(flat)[:, source * squares.shape[1] + target] + wanted.reshape(flat)[:, target * kinds + kind]
        )


class ResidualMLP(nn.Module):
    """Dense blocks `x + Dense(relu(Dense(norm(x))))` over the flattened observation."""

    width: int
    blocks: int
    heads: dict[str, Any]
    compute: Any
    inputs: Any  # of the first layer: scores and counts may need more than bfloat16's eight bits

    @nn.compact
    def __call__(self, observation: Array) -> Output:
        """`[B, ...]` observations."""
        x = observation.reshape(observation.shape[0], -1).astype(self.inputs)
        x = nn.Dense(self.width, dtype=self.inputs, name="stem")(x).astype(self.compute)
        for i in range(self.blocks):
            y = nn.LayerNorm(dtype=self.compute, name=f"norm_{i}")(x)
            y = nn.relu(nn.Dense(self.width, dtype=self.compute, name=f"in_{i}")(y))
            x = x + nn.Dense(self.width, dtype=self.compute, kernel_init=_ZERO, name=f"out_{i}")(y)
        x = nn.relu(nn.LayerNorm(dtype=self.compute, name="norm")(x))
        return Heads(**self.heads, name="heads")(x, x)


class Specialists(nn.Module):
    """Two networks, each for one phase of the game: a flag among the inputs says whose word counts."""

    one: nn.Module  # where the flag is set
    other: nn.Module
    flag: int  # its place in the flattened observation

    def __call__(self, observation: Array) -> Output:
        """`[B, ...]` observations."""
        first = observation.reshape(observation.shape[0], -1)[:, self.flag] > 0

        def choose(one: Array, other: Array) -> Array:
            return jnp.where(first.reshape(-1, *[1] * (one.ndim - 1)), one, other)

        chosen: Output = jax.tree.map(choose, self.one(observation), self.other(observation))
        return chosen


class ResidualCNN(nn.Module):
    """Blocks of two 3x3 convolutions over `[rows, columns, planes]`, some of which see the whole board at once."""

    width: int
    blocks: int
    pooling_every: int
    head_width: int
    heads: dict[str, Any]
    compute: Any

    @nn.compact
    def __call__(self, observation: Array) -> Output:
        """`[B, rows, columns, planes]` observations."""

        def conv(size: int, kernel: int, name: str, **options: Any) -> Convolution:
            return Convolution(size, kernel, self.compute, name=name, **options)

        x = conv(self.width, 3, "stem")(observation.astype(self.compute))
        for i in range(self.blocks):
            y = conv(self.width, 3, f"in_{i}")(nn.relu(x))
            if self.pooling_every and i % self.pooling_every == self.pooling_every - 1:
                y = y + GlobalPool(self.width, self.compute, name=f"pool_{i}")(y)
            x = x + conv(self.width, 3, f"out_{i}", kernel_init=_ZERO)(nn.relu(y))
        x = nn.relu(nn.LayerNorm(dtype=self.compute, name="norm")(x))
        flat = (x.shape[0], -1)
        by_moves = bool(self.heads["moves"])
        policy = nn.relu(conv((1 + by_moves) * self.head_width, 1, "policy_planes")(x))
        policy = policy if by_moves else policy.reshape(flat)
        value = nn.relu(conv(self.head_width, 1, "value_planes")(x)).reshape(flat)
        value = nn.relu(nn.Dense(2 * self.head_width, dtype=self.compute, name="value_hidden")(value))
        return Heads(**self.heads, name="heads")(policy, value)


class GlobalPool(nn.Module):
    """What the whole board says (mean and maximum of every plane), as a bias `[B, 1, 1, width]` for each square.

    Wu 2019 (KataGo), section 3.3.
    """

    width: int
    compute: Any

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """`[B, rows, columns, width]`."""
        x = nn.relu(x)
        seen = jnp.concatenate([x.mean((1, 2)), x.max((1, 2))], -1)
        return nn.Dense(self.width, dtype=self.compute, name="bias")(seen)[:, None, None]


class Remembering(nn.Module):
    """A network that is shown what was seen before, too, as some numbers behind the observation of now."""

    network: nn.Module  # takes an observation with further numbers behind it
    width: int  # how many

    @nn.compact
    def __call__(self, observation: Array) -> Output:
        """`[B, 1 + H, ...]`: now, and the observations before it, the newest first; zeros where there was none."""
        seen = observation.reshape(*observation.shape[:2], -1)
        past = jnp.sign(seen[:, 1:]) * jnp.log1p(jnp.abs(seen[:, 1:]))
        each = nn.relu(nn.Dense(self.width, name="each")(past))
        memory = nn.relu(nn.Dense(self.width, name="memory")(each.reshape(seen.shape[0], -1)))
        output: Output = self.network(jnp.concatenate([seen[:, 0], memory], 1))
        return output
