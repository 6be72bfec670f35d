"""A network from a config and a game's facts, and what play and training ask of it. Knows no search and no loss."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core import twohot
from aleazero.core.errors import ConfigError
from aleazero.core.game import GameSpec
from aleazero.core.opinions import expected_value
from aleazero.core.records import Output, Prediction, Weights
from aleazero.core.scopes import part
from aleazero.models import balatro
from aleazero.models.networks import Remembering, ResidualCNN, ResidualMLP, Specialists

# Of a gradient on a CPU: what a layer makes of its rows at once, and how few these are.
LAYER_BYTES, LEAST_ROWS = 1 << 19, 32
_PLACES = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The shape of a network."""

    # auto: cnn where observations are [rows, columns, planes]; the last two are for Balatro alone
    kind: Literal["auto", "mlp", "cnn", "balatro", "balatro_rows"] = "auto"
    width: int = 128
    blocks: int = 4
    second_width: int = 0  # mlp: a network of its own, so wide, for the game's other phase; 0: none
    pooling_every: int = 2  # cnn: every n-th block has global pooling; 0: none
    head_width: int = 32  # cnn: planes in front of the heads
    # a distribution over the game's outcomes, one number in [-1, 1], or points as a distribution over fixed numbers
    value: Literal["outcomes", "scalar", "twohot"] = "outcomes"
    history: int = 0  # mlp and Balatro's: earlier decisions of the game that are seen beside the one to be made
    graph_width: int = 0  # balatro: room for numbers of a knowledge graph after the observation's own; else zeros
    # balatro: which numbers these are: the joker graph's, those of other jokers, random ones; none leaves zeros
    graph: Literal["none", "graph", "permuted", "random"] = "none"
    policy: bool = True  # false: a value alone, for searches that ask for no policy
    soft_policy: bool = False  # a further head that learns the flattened policy
    reply_policy: bool = False  # a further head that learns the opponent's reply
    moves_left: bool = False  # a further head that learns how long the game still lasts
    coarse_inputs: bool = False  # mlp: the first layer too computes as the others do: inputs are flags and small counts
    # Inputs of an mlp, planes of a cnn that are read as 0, by their places, as in 250-263,270: to learn their worth.
    unseen: str = ""
    compute: Literal["auto", "bfloat16", "float32"] = "auto"  # auto: bfloat16 on accelerators, float32 on the CPU

    def problems(self) -> list[str]:
        """What is wrong with it, whatever the game."""
        found = [
            f"{name} is {getattr(self, name)}; it must be at least {least}"
            for name, least in (
                ("width", 1),
                ("blocks", 0),
                ("second_width", 0),
                ("pooling_every", 0),
                ("head_width", 1),
                ("graph_width", 0),
                ("history", 0),
            )
            if getattr(self, name) < least
        ]
        if not self.policy and (self.soft_policy or self.reply_policy):
            found.append("policy is false; soft_policy and reply_policy need a policy")
        if self.unseen and not (_PLACES.fullmatch(self.unseen) and all(self._unseen_ranges())):
            found.append(f"unseen is {self.unseen!r}; write places from 0 and ranges of them, as in 250-263,270")
        return found

    def unseen_places(self) -> list[int]:
        """The places of the inputs that are read as 0."""
        return [place for places in self._unseen_ranges() for place in places]

    def _unseen_ranges(self) -> list[range]:
        ends = [part.split("-") for part in self.unseen.split(",") if part]
        return [range(int(end[0]), int(end[-1]) + 1) for end in ends]

    def seen(self, spec: GameSpec) -> np.ndarray:
        """`[1, ...]`: what observations are multiplied with, 0 where they are unseen."""
        found = np.ones(self._inputs(spec), np.float32)
        found[self.unseen_places()] = 0.0
        return found.reshape(1, *(spec.observation_shape if self.is_mlp(spec) else (1, 1, -1)))

    def _inputs(self, spec: GameSpec) -> int:
        return math.prod(spec.observation_shape) if self.is_mlp(spec) else spec.observation_shape[-1]

    def is_mlp(self, spec: GameSpec) -> bool:
        """Whether observations of this game are looked at without their shape."""
        return self.kind == "mlp" or (self.kind == "auto" and len(spec.observation_shape) != 3)

    def problems_with(self, spec: GameSpec) -> list[str]:
        """What does not fit the game."""
        found = []
        if self.kind == "cnn" and len(spec.observation_shape) != 3:
            found.append(
                f"model.kind is 'cnn', but {spec.name}'s observations are {list(spec.observation_shape)}, "
                "not [rows, columns, planes]; use 'mlp'"
            )
        inputs = balatro.INPUTS.get(self.kind, 0) + (balatro.GRAPH if self.graph != "none" else 0)
        if self.kind in balatro.INPUTS and spec.observation_shape != (inputs,):
            found.append(
                f"model.kind is {self.kind!r}, which sees {inputs} numbers of Balatro; "
                f"{spec.name}'s observations are {list(spec.observation_shape)}"
            )
        if self.graph_width and self.kind != "balatro":
            found.append(f"model.graph_width is {self.graph_width}; it is for kind 'balatro'")
        if self.history and not (self.is_mlp(spec) or self.kind in balatro.INPUTS):
            found.append(f"model.history is {self.history}; it is for kinds 'mlp', 'balatro' and 'balatro_rows'")
        if self.history and (self.second_width or self.unseen):
            found.append(f"model.history is {self.history}; it goes with neither second_width nor unseen")
        if self.graph != "none" and self.graph_width < 1:
            found.append(f"model.graph is {self.graph!r}; it needs room: model.graph_width = {balatro.GRAPH}")
        if self.second_width and spec.phase_input is None:
            found.append(f"model.second_width is {self.second_width}, but {spec.name} names no phases; leave it 0")
        elif self.second_width and not self.is_mlp(spec):
            found.append(f"model.second_width is {self.second_width}; it is for kind 'mlp'")
        if self.unseen and self.kind in balatro.INPUTS:
            found.append(f"model.unseen is {self.unseen!r}; it is for kinds 'mlp' and 'cnn'")
        elif self.unseen and not self.problems() and max(self.unseen_places()) >= self._inputs(spec):
            what = "inputs" if self.is_mlp(spec) else "planes"
            found.append(f"model.unseen is {self.unseen!r}, but {spec.name} has {self._inputs(spec)} {what}")
        if self.value == "outcomes" and not spec.outcomes:
            found.append(f"model.value is 'outcomes', but {spec.name} has no finite outcomes; use 'scalar' or 'twohot'")
        return found


@dataclasses.dataclass(frozen=True)
class Model:
    """A network for one game. Holds no weights: they are arguments, always."""

    config: ModelConfig
    spec: GameSpec

    @functools.cached_property
    def network(self) -> nn.Module:
        """The architecture."""
        plain = self._plain()
        return Remembering(plain, self.config.width) if self.config.history else plain

    def _plain(self) -> nn.Module:
        """The architecture, for one observation at a time."""
        config, spec = self.config, self.spec
        heads: dict[str, Any] = {
            "num_actions": spec.num_actions if config.policy else 0,
            "num_outcomes": {"outcomes": len(spec.outcomes), "scalar": 0, "twohot": twohot.NUM_BINS}[config.value],
            "extra": tuple(n for n, on in (("soft", config.soft_policy), ("reply", config.reply_policy)) if on),
            "moves_left": config.moves_left,
        }
        compute = jnp.dtype(_compute(config.compute))
        if config.kind == "balatro":
            graph = balatro.GRAPH if config.graph != "none" else 0
            return balatro.ClassicNet(config.width, config.graph_width, graph, heads, compute)
        if config.kind == "balatro_rows":
            return balatro.RowsNet(config.width, config.blocks, heads, compute)
        if not config.is_mlp(spec):
            heads["moves"] = spec.moves
            return ResidualCNN(config.width, config.blocks, config.pooling_every, config.head_width, heads, compute)
        inputs = compute if config.coarse_inputs else jnp.dtype(jnp.float32)
        whole = ResidualMLP(config.width, config.blocks, heads, compute, inputs)
        if not config.second_width:
            return whole
        assert spec.phase_input is not None
        return Specialists(whole, whole.clone(width=config.second_width), spec.phase_input)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of what it is shown of one position: an observation, or this one and those before it, the newest first."""
        shape = self.spec.observation_shape
        return (1 + self.config.history, *shape) if self.config.history else shape

    @property
    def cached_rows(self) -> int:
        """Rows of a gradient on a CPU, so that what a layer makes of them hardly leaves its cache. 0: any number."""
        if jax.default_backend() != "cpu" or self.config.kind in balatro.INPUTS:
            return 0
        places = 1 if self.config.is_mlp(self.spec) else math.prod(self.spec.observation_shape[:2])
        rows = max(LAYER_BYTES // (4 * places * self.config.width), LEAST_ROWS)
        return 1 << (rows.bit_length() - 1)

    def init(self, key: Array) -> Weights:
        """Fresh float32 weights."""
        observation = jnp.zeros((1, *self.input_shape), jnp.float32)
        return self.network.init(key, observation)["params"]

    def apply(self, weights: Weights, observation: Array) -> Output:
        """What every head says of observations `[B, ...]`."""
        if self.config.unseen:
            observation = observation * self.config.seen(self.spec)
        return self.network.apply({"params": weights}, observation)  # type: ignore[return-value]

    @part("network")
    def evaluate(self, weights: Weights, observation: Array) -> Prediction:
        """What a search needs (`core.records.Evaluate`)."""
        output = self.apply(weights, observation)
        assert output.logits is not None, "a search that asks for a policy is not given a network without one"
        return Prediction(output.logits, expected_value(self.spec, self.opinion_of(output)))

    @part("network")
    def opinion(self, weights: Weights, observation: Array) -> Array:
        """`[B, V]`: the outcome distribution for to_play, or the scalar; points, where the value is "twohot"."""
        return self.opinion_of(self.apply(weights, observation))

    def opinion_of(self, output: Output) -> Array:
        """The same from an output at hand."""
        if self.config.value == "twohot":
            return twohot.decode(output.value)[..., None]
        return jax.nn.softmax(output.value) if self.config.value == "outcomes" else output.value


def build_model(config: ModelConfig, spec: GameSpec) -> Model:
    """A model for a game, checked against its facts."""
    problems = [f"model.{problem}" for problem in config.problems()] + config.problems_with(spec)
    if problems:
        raise ConfigError("\n".join(problems))
    return Model(config, spec)


def _compute(wanted: str) -> str:
    if wanted != "auto":
        return wanted
    return "float32" if jax.default_backend() == "cpu" else "bfloat16"
