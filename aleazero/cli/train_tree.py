"""The command tree of `alea train`, with flags for the settings that people change most. Imports nothing heavy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from aleazero.cli import ray_tree
from aleazero.cli.desk import Telling
from aleazero.cli.options import Device, Json, Profile, Runs, Seconds, Sets, compute_on

_SETTING = {
    "episodes": "total_games",
    "batch_size": "learn.batch_size",
    "checkpoint_interval": "checkpoint.every_games",
    "exploration_rate": "selfplay.epsilon",
    "seed": "seed",
    "learning_rate": "learn.learning_rate.start",
    "l2": "learn.weight_decay",
    "mcts_simulations": "search.max_simulations",
    "mcts_cpuct": "selfplay.exploration",
    "producer_workers": "producers.workers",
    "producer_queue_size": "producers.queue_size",
    "producer_device": "producers.device",
}


@Parameter(name="*")
@dataclasses.dataclass(frozen=True)
class Flags:
    """What may be said in a word, and is a setting too; left out, the preset decides."""

    episodes: Annotated[int | None, Parameter(help="Stop after so many games, not rows (total_games).")] = None
    batch_size: Annotated[int | None, Parameter(help="Rows per update (learn.batch_size).")] = None
    checkpoint_interval: Annotated[
        int | None, Parameter(help="Games between two checkpoints (checkpoint.every_games).")
    ] = None
    exploration_rate: Annotated[
        float | None, Parameter(help="Share of moves played at random after the search (selfplay.epsilon).")
    ] = None
    seed: Annotated[int | None, Parameter(help="Of everything random.")] = None
    grad_accum_steps: Annotated[
        int | None, Parameter(help="Batches whose gradients make one update: batch size times this, cut in this many.")
    ] = None
    learning_rate: Annotated[float | None, Parameter(help="Constant, with no warm-up (learn.learning_rate).")] = None
    l2: Annotated[float | None, Parameter(help="Weight decay (learn.weight_decay).")] = None
    mcts_simulations: Annotated[int | None, Parameter(help="Of a move (search.max_simulations).")] = None
    mcts_cpuct: Annotated[float | None, Parameter(help="PUCT's exploration; not Gumbel's (selfplay.exploration).")] = (
        None
    )
    producer_workers: Annotated[
        int | None, Parameter(help="Processes that play; 0: the run plays itself (producers.workers).")
    ] = None
    producer_queue_size: Annotated[
        int | None, Parameter(help="Slabs that may wait for the learner (producers.queue_size).")
    ] = None
    producer_device: Annotated[
        Literal["cpu", "auto"] | None, Parameter(help="Where producers compute (producers.device).")
    ] = None
    amp: Annotated[
        bool | None, Parameter(help="Compute in bfloat16 and keep float32 weights, or all in float32 (model.compute).")
    ] = None

    def assignments(self, batch_size: Callable[[list[str]], int]) -> list[str]:
        """As settings; `batch_size` gives the one that other assignments lead to."""
        given = [f"{path}={v}" for name, path in _SETTING.items() if (v := getattr(self, name)) is not None]
        if self.learning_rate is not None:
            given += [f"learn.learning_rate.end={self.learning_rate}", "learn.learning_rate.warmup_rows=0"]
        if self.amp is not None:
            given.append(f"model.compute={'bfloat16' if self.amp else 'float32'}")
        if self.grad_accum_steps is not None:
            steps = max(self.grad_accum_steps, 1)
            given += [f"learn.batch_size={batch_size(given) * steps}", f"learn.accumulate={self.grad_accum_steps}"]
        return given


def train(
    game: Annotated[str | None, Parameter(help="A game's name; a settings file may name it instead.")] = None,
    *,
    preset: Annotated[
        str,
        Parameter(
            help="quick, standard, strong; backgammon: also alphazero, classic; chess: demo; balatro: classic, tuned."
        ),
    ] = "standard",
    config: Annotated[Path | None, Parameter(help="Settings, as TOML (or YAML).")] = None,
    sets: Sets = None,
    flags: Flags = Flags(),
    name: Annotated[str | None, Parameter(help="The run's name.")] = None,
    runs: Runs = None,
    seconds: Seconds = None,
    device: Device = "auto",
    profile: Profile = False,
    print_config: Annotated[bool, Parameter(negative="", help="Show the settings that would run, and stop.")] = False,
    telling: Telling = Telling(),  # noqa: B008 - frozen
    runtime: ray_tree.Runtime = None,
    ray: ray_tree.OnRay = ray_tree.OnRay(),  # noqa: B008 - frozen
    as_json: Json = False,
) -> int:
    """Train an agent by self-play, from nothing but the rules."""
    compute_on(device)
    from aleazero.cli import train as command

    return command.train(
        game,
        preset=preset,
        file=config,
        assignments=[*(sets or []), *telling.assignments(), *ray.assignments(runtime)],
        flags=flags,
        name=name,
        runs=runs,
        seconds=seconds,
        profile=profile,
        print_config=print_config,
        as_json=as_json,
    )
