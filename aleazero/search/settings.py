"""What a search is built with (`SearchConfig`, fixed when compiled) and what may change every move (`Knobs`)."""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax.numpy as jnp
from jax import Array

from aleazero.core.errors import ConfigError
from aleazero.core.game import GameSpec
from aleazero.core.struct import struct
from aleazero.search.tree import WORD

MOST_PLIES = 2


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """The shape of a search. Everything else is a knob."""

    kind: Literal["puct", "gumbel", "direct", "expectimax"] = "puct"  # expectimax: by whole turns
    ply: int = 0  # expectimax: how far it looks, as GNU Backgammon counts; 0 to 2
    endings: bool = True  # expectimax: believe the game's tables of endings, where it has them, and not outcome heads
    max_simulations: int = 32  # room in the tree; the budget of a move is a knob
    max_edges: int | None = None  # keep the best K actions by prior at each node; None keeps all
    # A new chance node: one outcome is drawn and the decision behind it judged; or all of them are, for their
    # expectation; or the network judges the chance state itself, which it must have learned to do.
    chance: Literal["sampled", "exact", "afterstate"] = "sampled"
    chance_draw: Literal["quota", "random"] = "quota"  # visits follow the probabilities evenly, or independently
    in_flight: int = 1  # Gumbel: descents at a time, to different moves of the root; their leaves are judged together
    # Gumbel: values of a node that lie within this of one another, of the 2 from loss to win, are not told apart as if
    # they were further: or else what an untrained network happens to say is a sharp target. 0: always the whole scale.
    least_range: float = 0.0
    # Priors are the network's to the power of one over this: above 1 more moves are looked at, below 1 fewer.
    prior_temperature: float = 1.0
    # PUCT: the root tries every move once before it tries one twice, where there is room for four times as many.
    try_all: bool = False
    prove: bool = False  # a move that the tree proves to be better is taken, whatever the visits say (see `proof`)
    reuse: bool = False  # keep the subtree of the move played (PUCT only)
    max_nodes: int | None = None  # with reuse: room for so many nodes at most; None: twice what a search adds
    # A simulation's walks as GPU kernels: nowhere; on a GPU that runs them; anywhere, by an interpreter, to test them.
    kernels: Literal["never", "auto", "interpreted"] = "auto"

    def problems(self) -> list[str]:
        """What is wrong with it, whatever the game."""
        found = [
            f"{name} is {getattr(self, name)!r}; allowed: {', '.join(allowed)}"
            for name, allowed in (
                ("kind", ("puct", "gumbel", "direct", "expectimax")),
                ("chance", ("sampled", "exact", "afterstate")),
                ("chance_draw", ("quota", "random")),
                ("kernels", ("never", "auto", "interpreted")),
            )
            if getattr(self, name) not in allowed
        ]
        if self.max_simulations < 1:
            found.append(f"max_simulations is {self.max_simulations}; it must be at least 1")
        if not 0 <= self.ply <= MOST_PLIES:
            found.append(f"ply is {self.ply}; it must be in 0..{MOST_PLIES}")
        elif self.ply and self.kind != "expectimax":
            found.append(f"ply is {self.ply}; it is for kind 'expectimax', not {self.kind!r}")
        if self.max_edges is not None and self.max_edges < 1:
            found.append(f"max_edges is {self.max_edges}; it must be at least 1")
        if self.in_flight not in (1, 2):
            found.append(f"in_flight is {self.in_flight}; allowed: 1, 2")
        elif self.in_flight == 2 and (self.kind != "gumbel" or self.chance == "exact"):
            found.append("in_flight 2 needs kind 'gumbel', whose root visits moves in turn, and chance not 'exact'")
        if not 0 <= self.least_range <= 2:
            found.append(f"least_range is {self.least_range}; it must be in 0..2")
        elif self.least_range and self.kind != "gumbel":
            found.append(f"least_range is {self.least_range}; it is for kind 'gumbel', not {self.kind!r}")
        if not 0.1 <= self.prior_temperature <= 10:
            found.append(f"prior_temperature is {self.prior_temperature}; it must be in 0.1..10")
        if self.prove and (self.kind not in ("puct", "gumbel") or self.max_edges is not None):
            found.append("prove needs kind 'puct' or 'gumbel', whose trees show how games end, and max_edges none")
        if self.try_all and self.kind != "puct":
            found.append(f"try_all is for kind 'puct', not {self.kind!r}")
        if self.reuse and self.kind != "puct":
            found.append(f"reuse needs kind 'puct'; a {self.kind} root starts from no visits")
        if self.max_nodes is not None and not self.reuse:
            found.append(f"max_nodes is {self.max_nodes}; it is for reuse: make that true, or max_nodes none")
        return found

    def problems_with(self, spec: GameSpec) -> list[str]:
        """What does not fit the game."""
        found = []
        if self.chance == "exact" and spec.chance != "explicit":
            found.append(
                f"search.chance is 'exact', but {spec.name} has no chance states to take an expectation over "
                f"(its chance is {spec.chance!r})"
            )
        if self.chance == "afterstate" and not (spec.chance == "explicit" and spec.afterstate_values):
            found.append(
                f"search.chance is 'afterstate', but networks for {spec.name} do not judge chance states; "
                "use 'sampled'" + (" or 'exact'" if spec.chance == "explicit" else "")
            )
        if self.prove and not proves(spec):
            found.append(f"search.prove is for two players and games without chance; {spec.name} is another kind")
        needed = 1 + self.slabs(spec) * self.max_simulations
        if self.max_nodes is not None and self.max_nodes // WORD * WORD < needed:
            found.append(
                f"search.max_nodes is {self.max_nodes}; {self.max_simulations} simulations of {spec.name} need "
                f"{needed} nodes, and room is made for {WORD} at a time: at least {-(-needed // WORD) * WORD}"
            )
        if self.reuse and spec.chance == "sampled":
            found.append(f"search.reuse keeps nothing in {spec.name}: what a search rolls is never what is rolled")
        return found

    def slabs(self, spec: GameSpec) -> int:
        """Nodes a simulation may add: two where it passes through a chance node on the way to the decision behind."""
        return 2 if spec.chance == "explicit" and self.chance == "sampled" else 1

    def check(self, spec: GameSpec) -> None:
        """Raises ConfigError naming every setting that cannot be used with this game."""
        problems = [f"search.{problem}" for problem in self.problems()] + self.problems_with(spec)
        if problems:
            raise ConfigError("\n".join(problems))


def proves(spec: GameSpec) -> bool:
    """Whether trees of a game can prove what moves are worth."""
    return spec.chance == "none" and spec.num_players == 2


@struct
class Knobs:
    """Numbers that may change from move to move; none of them causes a recompilation."""

    simulations: Array  # [] int32: the budget, for the whole batch
    temperature: (
        Array  # [] or [B] float32: PUCT and direct: of the action drawn from the visits (or priors); 0: the best
    )
    exploration: Array  # [] float32: PUCT: c1 of the formula
    noise_fraction: Array  # [] float32: PUCT: share of Dirichlet noise in the root's priors
    noise_alpha: Array  # [] float32: its concentration
    gumbel_scale: Array  # [] or [B] float32: Gumbel: 0 makes the root deterministic
    max_considered: Array  # [] int32: Gumbel: actions the root starts with


def make_knobs(
    config: SearchConfig,
    *,
    simulations: int | None = None,
    temperature: float = 0.0,
    exploration: float = 1.25,
    noise_fraction: float = 0.0,
    noise_alpha: float = 0.3,
    gumbel_scale: float = 1.0,
    max_considered: int = 16,
) -> Knobs:
    """Knobs as arrays, checked: all problems at once."""
    budget = config.max_simulations if simulations is None else simulations
    problems = []
    if not 0 <= budget <= config.max_simulations:
        problems.append(f"simulations is {budget}; the tree has room for 0 to {config.max_simulations}")
    if temperature < 0:
        problems.append(f"temperature is {temperature}; it must not be negative")
    if exploration <= 0:
        problems.append(f"exploration is {exploration}; it must be positive")
    if not 0 <= noise_fraction <= 1:
        problems.append(f"noise_fraction is {noise_fraction}; it must be in 0..1")
    if noise_alpha <= 0:
        problems.append(f"noise_alpha is {noise_alpha}; it must be positive")
    if gumbel_scale < 0:
        problems.append(f"gumbel_scale is {gumbel_scale}; it must not be negative")
    if max_considered < 1:
        problems.append(f"max_considered is {max_considered}; it must be at least 1")
    if problems:
        raise ConfigError("\n".join(problems))
    return Knobs(
        simulations=jnp.int32(budget),
        temperature=jnp.float32(temperature),
        exploration=jnp.float32(exploration),
        noise_fraction=jnp.float32(noise_fraction),
        noise_alpha=jnp.float32(noise_alpha),
        gumbel_scale=jnp.float32(gumbel_scale),
        max_considered=jnp.int32(max_considered),
    )


def playing_knobs(config: SearchConfig) -> Knobs:
    """To play as well as possible: nothing is drawn, and a larger budget looks at more of the root's moves.

    With 16 however large it is, a move that the network thinks little of would never be looked at.
    """
    return make_knobs(config, gumbel_scale=0.0, max_considered=max(16, config.max_simulations // 4))
