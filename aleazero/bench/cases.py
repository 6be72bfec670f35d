"""What a benchmark is made of: the options of one, the cases that are timed side by side, and what kinds are.

Knows no kind in particular: `suite.py` lists them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aleazero.bench.memory import Room
from aleazero.bench.timing import Timing
from aleazero.core.errors import AleaError, ConfigError
from aleazero.core.game import Game
from aleazero.games.registry import make_game

SEARCHES = ("gumbel", "puct")
WIDTH, BLOCKS = 256, 6
SIMULATIONS = (32,)
NETWORKS = ("mlp", "cnn")
# Options that some kinds take and others do not: they decide how fast it goes, beside the machine and the batch.
SPECIFIC = ("num_simulations", "search", "network", "width", "blocks", "player", "features", "preset", "sets", "rows")


class BenchError(AleaError):
    """Something cannot be measured here."""


class Unsuited(BenchError, ConfigError):  # noqa: N818 - the name says what is wrong
    """A kind, a game, a peer and the other options do not go together."""


@dataclasses.dataclass(frozen=True)
class Options:
    """What to measure and how. None where nothing was given."""

    kind: str
    game: str = "backgammon"
    batch_sizes: tuple[int, ...] | None = None
    discover: bool = False
    validate: bool = False
    compare: str | None = None
    duration: float | None = None  # seconds of timing for each batch size
    memory_limit: float | None = None  # gigabytes
    num_simulations: tuple[int, ...] | None = None
    search: tuple[str, ...] | None = None
    network: str | None = None
    width: int | None = None
    blocks: int | None = None
    player: str | None = None
    features: bool = False
    preset: str | None = None
    sets: tuple[str, ...] = ()
    rows: tuple[int, ...] | None = None  # sizes of the ring
    runs: Path | None = None
    out: Path | None = None
    force: bool = False
    tolerance: float = 0.1

    def settings(self) -> dict[str, Any]:
        """What was given of `SPECIFIC`, as JSON has it."""
        kept = {name: getattr(self, name) for name in SPECIFIC if self.gives(name)}
        return {name: list(x) if isinstance(x, tuple) else x for name, x in kept.items()}

    def gives(self, name: str) -> bool:
        """Whether somebody said what an option is."""
        value = getattr(self, name)
        return not (value is None or value is False or value == ())


@dataclasses.dataclass(frozen=True)
class Program:
    """A compiled program."""

    run: Callable[..., Any]
    seconds: float  # that tracing and compiling took


@dataclasses.dataclass(frozen=True)
class Setup:
    """The options with what they name."""

    options: Options
    game: Game
    room: Room

    @property
    def width(self) -> int:
        """Of the network that comes with the benchmark."""
        return WIDTH if self.options.width is None else self.options.width

    @property
    def blocks(self) -> int:
        """Of the same."""
        return BLOCKS if self.options.blocks is None else self.options.blocks

    @property
    def preset(self) -> str:
        """Of the run whose parts are measured."""
        return self.options.preset or "standard"

    def compile(
        self, what: str, function: Callable[..., Any], *arguments: Any, donate: tuple[int, ...] = ()
    ) -> Program:
        """The compiled program for such arguments (or their shapes), if what it needs fits into memory."""
        began = time.perf_counter()
        program = jax.jit(function, donate_argnums=donate).lower(*arguments).compile()
        seconds = time.perf_counter() - began
        stats = program.memory_analysis()
        if stats is not None:  # some backends do not say
            total = stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
            self.room.check(what, total - stats.alias_size_in_bytes)
        return Program(program, seconds)


@dataclasses.dataclass(frozen=True)
class Case:
    """One of the things that are timed side by side."""

    name: str
    unit: str  # what a call does so many of: "steps", "simulations"
    work: int  # how many
    call: Callable[[int], Any]  # call(number) -> arrays to wait for
    compile_seconds: float | None = None  # None: what the first call takes longer
    limit: str | None = None  # the case that cannot be beaten: the network alone
    peer: str | None = None  # the case of somebody else's that does the same
    series: tuple[str, int] | None = None  # of which search, with which budget: costs are compared along a series


@dataclasses.dataclass(frozen=True)
class Cases:
    """What is timed at one batch size. The first case is what the benchmark is about."""

    cases: tuple[Case, ...]
    facts: Callable[[Mapping[str, Timing]], dict[str, float]] = lambda timings: {}  # more numbers, once timed


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of benchmark."""

    name: str
    measures: str  # in a line
    counted: str  # what one unit of it is
    takes: tuple[str, ...]  # options beside those that all kinds take
    peers: tuple[str, ...]
    default_sizes: Callable[[Setup], tuple[int, ...]]
    misfit: Callable[[Setup], str | None]  # why it does not apply; None where it does
    build: Callable[[Setup, int], Cases]  # for a batch size


def check(options: Options, kind: Kind) -> None:
    """Raises ConfigError with everything that is wrong with the options, whatever the game."""
    found = _conflicts(options)
    for name in SPECIFIC:
        if options.gives(name) and name not in kind.takes:
            found.append(
                f"{_flag(name)} does not apply to {kind.name}; it takes {_flags(kind.takes) or 'none of these'}"
            )
    if options.compare is not None and options.compare not in kind.peers:
        known = ", ".join(kind.peers) or "none: nobody else's does the same thing"
        found.append(f"--compare is {options.compare!r}; peers of {kind.name}: {known}")
    for name, least in (("width", 1), ("blocks", 1), ("duration", 0.05), ("memory_limit", 0.001)):
        value = getattr(options, name)
        if value is not None and not value >= least:
            found.append(f"{_flag(name)} is {value}; it must be at least {least}")
    for name in ("batch_sizes", "num_simulations", "rows"):
        values = getattr(options, name)
        if values is not None and (not values or min(values) < 1):
            found.append(f"{_flag(name)} is {_listed(values)!r}; it must be whole numbers from 1 on, as in 1,4,8")
    found += [
        f"--search is {name!r}; allowed: {', '.join(SEARCHES)}" for name in options.search or () if name not in SEARCHES
    ]
    if options.network not in (None, *NETWORKS):
        found.append(f"--network is {options.network!r}; allowed: {', '.join(NETWORKS)}")
    if not 0 <= options.tolerance < 1:
        found.append(f"--tolerance is {options.tolerance}; it must be in [0, 1), as in 0.1 for 10 %")
    if found:
        raise ConfigError("\n".join(found))


def _conflicts(options: Options) -> list[str]:
    found = []
    if options.discover and options.validate:
        found.append("--discover makes a profile and --validate compares with one: give one of them")
    if options.discover and options.batch_sizes:
        found.append("--discover chooses the batch sizes itself: leave --batch-sizes and --single-batch out")
    if options.validate and options.compare:
        found.append("--validate compares with the saved profile: leave --compare out")
    if options.player is not None and any(
        getattr(options, name) is not None for name in ("network", "width", "blocks")
    ):
        found.append(
            f"--player is {options.player!r}, whose network has a shape: leave --network, --width and --blocks out"
        )
    return found


def game_of(name: str) -> Game:
    """The game of a name, if it can be compiled."""
    game = make_game(name)
    if not isinstance(game, Game):
        raise Unsuited(f"game {name!r} runs on the host: there is no compiled program to time")
    return game


def steps_per_call(batch: int) -> int:
    """How many steps one timed call makes: enough to hide what starting it costs, not so many that it takes seconds."""
    if jax.default_backend() != "cpu":
        return 256
    return int(np.clip(65536 // batch, 8, 64))


def numbers(text: str) -> tuple[int, ...]:
    """Whole numbers from `1,4,8`."""
    parts = [part.strip().replace("_", "") for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ConfigError(f"{text!r} is no list of whole numbers: write them with commas, as in 1,4,8")
    return tuple(int(part) for part in parts)


def number_of(number: int) -> np.uint32:
    """A call's number as compiled programs take it."""
    return np.uint32(number % 2**32)


def _flag(name: str) -> str:
    return {"sets": "--set"}.get(name) or "--" + name.replace("_", "-")


def _flags(names: tuple[str, ...]) -> str:
    return ", ".join(_flag(name) for name in names)


def _listed(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values))
