"""Fingerprints of the programs that a GPU was measured with: `python -m tests.cuda_programs benchmarks` or `presets`.

Prints a line for each program: what was measured, the program's name, its hash and its number of operations, as lowered
for an H200 on a machine without one. Benchmarks are those of `aleazero/bench/gpu_floors.toml`, and a few more that are
recorded in docs/results; presets are those that were trained on a GPU.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import shlex
import sys
import warnings
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp

from aleazero.assemble_ppo import parts_of
from aleazero.bench import gpu_check, memory, rules, training
from aleazero.bench.__main__ import parse_options
from aleazero.bench.cases import Options, Program, Setup, game_of
from aleazero.bench.suite import KINDS
from aleazero.config import RunConfig, resolve
from aleazero.core.game import Game
from aleazero.models.build import Model
from aleazero.players import load_network
from aleazero.runs import runs_root
from tests.lowering import fingerprint, lower, trace
from tests.programs import programs

Traced = tuple[str, Any]  # a program's name, and the program

# Recorded in docs/results and not in the floors: walks without kernels, which are slower; Pgx's rules, which the core
# dependencies do not bring; and chess, whose network was another when it was measured.
MORE = (
    "alea bench stochastic-mcts --game backgammon --batch-sizes 8192 --num-simulations 200 --search puct "
    "--set search.kernels=never",
    "alea bench mcts --game pgx:backgammon --batch-sizes 1024 --num-simulations 200 --search gumbel",
    "alea bench mcts --game chess --network cnn --width 128 --batch-sizes 1024 --search gumbel",
)
REPLAY = ("replay takes a slab", "replay draws")
LEARNING = ("rollout", *REPLAY, "updates")
PRESETS = {
    ("connect_four", "standard"): LEARNING,
    ("connect_four", "strong"): ("rollout", "updates"),
    ("backgammon", "standard"): LEARNING,
    ("backgammon", "alphazero"): ("rollout", "updates"),
    ("chess", "standard"): ("rollout",),  # its updates are Connect Four's in other sizes
    ("balatro", "strong"): ("moves", "updates"),
}
PARTS = {"selfplay": ("rollout",), "replay": REPLAY}  # of a run, that these kinds of benchmark time


def benchmarks() -> Iterator[Traced]:
    """The programs that `alea bench` timed."""
    for command, options in _commands().items():
        found = _of_run(_config(options), PARTS[options.kind]) if options.kind in PARTS else _of_bench(options)
        yield from ((f"{command} | {name}", program) for name, program in found)


def presets() -> Iterator[Traced]:
    """The programs that runs were trained with."""
    for (game, preset), wanted in PRESETS.items():
        found = _of_run(resolve(game, preset=preset), wanted)
        yield from ((f"{game} {preset} | {name}", program) for name, program in found)


GROUPS = {"benchmarks": benchmarks, "presets": presets}


def _commands() -> dict[str, Options]:
    """Benchmarks in one size each, the first that is listed: in others their programs differ in shapes alone."""
    sizes = {"batch_sizes": None, "num_simulations": None, "player": None}
    found: dict[Options, tuple[str, Options]] = {}
    for command in (*(figure.command for figure in gpu_check.read_figures().figures), *MORE):
        options = parse_options(shlex.split(command)[2:])
        found.setdefault(dataclasses.replace(options, **sizes), (command, options))
    return dict(found.values())


@contextlib.contextmanager
def _as_on_a_gpu() -> Iterator[None]:
    """Lets programs be chosen as on a GPU whose kernels run; weights and positions are blank."""
    init = Model.init
    with contextlib.ExitStack() as stack:
        for what, instead in (
            ("aleazero.models.build.Model.init", lambda model, key: _blank(jax.eval_shape(partial(init, model), key))),
            ("jax.default_backend", lambda: "gpu"),
            ("aleazero.search.build.kernels_problem", lambda plan: ""),
            ("aleazero.bench.searches.middle_game", _blank_states),
            ("aleazero.bench.rules.begin", lambda game, numbers: _blank_lanes(game, numbers.shape[0])),
        ):
            stack.enter_context(mock.patch(what, instead))
        yield


def _blank_states(game: Game, batch: int) -> Any:
    keys = jax.ShapeDtypeStruct((batch,), jax.random.key(0).dtype)
    return _blank(jax.eval_shape(jax.vmap(game.init), keys))


def _blank_lanes(game: Game, batch: int) -> rules.Lanes:
    return rules.Lanes(_blank_states(game, batch), *(jnp.zeros(batch, jnp.int32) for _ in range(2)))


def _blank(like: Any) -> Any:
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)


# ---- benchmarks


class _Found(Exception):  # noqa: N818
    """What a benchmark would compile first; nothing after it is made ready."""


class _Tracing(Setup):
    """Traces what it should compile."""

    def compile(self, what: str, function: Any, *arguments: Any, donate: tuple[int, ...] = ()) -> Program:
        raise _Found(what, trace(jax.jit(function, donate_argnums=donate), *arguments))


def _of_bench(options: Options) -> list[Traced]:
    """The program of a benchmark, without the network's own beside a search."""
    setup = _Tracing(options, game_of(options.game), memory.room(None))
    assert options.batch_sizes
    try:
        KINDS[options.kind].build(setup, options.batch_sizes[0])
    except _Found as found:
        what, program = found.args
        return [(what, program)]
    raise AssertionError(f"{options} compiles nothing")


def _config(options: Options) -> RunConfig:
    """The settings of the run whose parts are measured, with the network of the player that plays."""
    setup = Setup(options, game_of(options.game), memory.room(None))
    config = training.config_of(setup)
    if options.player is None:
        return config
    model, _ = load_network(options.player, setup.game, runs_root(None))
    return dataclasses.replace(config, model=model.config)


def _of_run(config: RunConfig, wanted: Collection[str]) -> Iterator[Traced]:
    found = ((name, trace(run, *shapes)) for name, run, shapes in programs(parts_of(config)) if name in wanted)
    return itertools.islice(found, len(wanted))  # nothing is made ready for the others


def lines(group: str) -> Iterator[str]:
    """Yields the JAX version, and a line for each program of a group."""
    yield f"jax {jax.__version__}"
    with _as_on_a_gpu():
        for name, program in GROUPS[group]():
            found = fingerprint(lower(program))
            yield f"{name} | {found.digest} | {found.operations} operations"


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "The Pallas Triton backend is deprecated")
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_disable_most_optimizations", True)  # of the few programs that are run, on the CPU
    for line in lines(sys.argv[1]):
        print(line, flush=True)
