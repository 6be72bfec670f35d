"""An experiment's file, read and checked: every run of it could start.

    name, game, preset, seeds    [base]             settings of all runs
    measure, rate                [variants.NAME]    settings of one variant; the others are compared with the first
The file alone says what is compared: settings in the environment do not enter. Knows no run that has begun.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from aleazero.assemble_ppo import PpoParts, parts_of
from aleazero.config import RunConfig, preset_layer
from aleazero.core.errors import AleaError, ConfigError
from aleazero.core.game import Game, GameSpec, HostGame
from aleazero.core.settings import Layer, build, load_file
from aleazero.judges import exact_judge
from aleazero.observe.reports import NOBODY
from aleazero.players import make_player
from aleazero.runs import runs_root

T = TypeVar("T")
WRONG_MOVES = "wrong moves of the network alone"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TABLES = ("base", "variants")


@dataclasses.dataclass(frozen=True)
class _Head:
    """What the file says outside its tables of settings."""

    name: str
    game: str
    seeds: tuple[int, ...]
    preset: str = "standard"
    measure: tuple[str, ...] = ()  # player strings; empty: the opponents that the settings name
    rate: bool = False  # judge the network's own moves exactly; for solved games

    def problems(self) -> list[str]:
        """What is wrong with it."""
        found = []
        if not _NAME.fullmatch(self.name):
            found.append(f"name is {self.name!r}; it must be letters, digits, dots, dashes and underscores")
        if not self.seeds:
            found.append("seeds is empty; name one or more, as in seeds = [0, 1, 2]")
        found += [f"seeds has {seed}; a seed is in 0..{2**32 - 1}" for seed in self.seeds if not 0 <= seed < 2**32]
        lists: dict[str, tuple[Any, ...]] = {"seeds": self.seeds, "measure": self.measure}
        for name, entries in lists.items():
            twice = [str(entry) for entry in dict.fromkeys(entries) if entries.count(entry) > 1]
            if twice:
                found.append(f"{name} names {', '.join(twice)} more than once")
        return found


@dataclasses.dataclass(frozen=True)
class Measure:
    """A number that runs are compared by."""

    name: str
    kind: Literal["score", "points", "wrong_moves"]  # the last is taken once, when a run is done
    opponent: str = ""  # the player string as runs have it
    bounds: tuple[float, float] = (0.0, 1.0)  # what it can be at all
    more_is_better: bool = True


@dataclasses.dataclass(frozen=True)
class Plan:
    """An experiment that can be run."""

    name: str
    game: Game | HostGame
    preset: str
    seeds: tuple[int, ...]
    measures: tuple[Measure, ...]
    configs: dict[str, RunConfig]  # by variant, the one to compare with first; their seeds mean nothing
    settings: dict[str, Any]  # the file's own tables

    def config(self, variant: str, seed: int) -> RunConfig:
        """The settings of one run."""
        return dataclasses.replace(self.configs[variant], seed=seed)


def read_plan(file: Path, runs: Path | None = None) -> Plan:
    """The experiment that a file describes; one ConfigError with all that is wrong in any of its runs.

    `runs` is where the runs are kept that opponents may name.
    """
    values = load_file(file).values
    problems = [_unknown(file, key) for key in values if key not in {*_keys(), *_TABLES}]
    given = {key: value for key, value in values.items() if key in _keys()}
    head = _attempt(lambda: build(_Head, [Layer(str(file), given)]), problems)
    tables = {name: _table(f"{name} ({file})", values.get(name, {}), problems) for name in _TABLES}
    if len(tables["variants"]) < 2:
        problems.append(f"variants in {file}: {len(tables['variants'])}; write two or more, as in [variants.gumbel]")
    configs = _configs(file, given, tables, runs_root(runs), problems)
    opponents = {config.evaluate.opponents for config in configs.values()}
    if len(opponents) > 1:
        problems.append("variants name different evaluate.opponents, and so cannot be compared; use `measure`")
    if problems or head is None:
        raise ConfigError("\n".join(problems))
    game = parts_of(next(iter(configs.values()))).game
    played = opponents.pop()
    measures = _measures(game.spec, dict(zip(head.measure or played, played, strict=True)), head.rate)
    return Plan(head.name, game, head.preset, head.seeds, measures, configs, tables)


def _keys() -> list[str]:
    return [field.name for field in dataclasses.fields(_Head)]


def _unknown(file: Path, key: str) -> str:
    if key in {field.name for field in dataclasses.fields(RunConfig)}:
        return f"unknown key {key} ({file}): settings of runs stand in [base] or in [variants.NAME]"
    known = [*_keys(), *_TABLES]
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f"unknown key {key} ({file}): " + (f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}")


def _attempt(make: Callable[[], T], problems: list[str]) -> T | None:
    try:
        return make()
    except AleaError as error:
        problems += str(error).splitlines()
        return None


def _table(what: str, value: Any, problems: list[str]) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    problems.append(f"{what} is {value!r}; it must be a table")
    return {}


def _configs(
    file: Path, given: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]], root: Path, problems: list[str]
) -> dict[str, RunConfig]:
    """The settings of every variant, checked against the game; a problem that all of them have is said once."""
    game, preset, measure = given.get("game"), given.get("preset", "standard"), given.get("measure")
    if not (isinstance(game, str) and isinstance(preset, str)):
        return {}  # said already
    first = [*(_attempt(lambda: [preset_layer(game, preset)], problems) or []), Layer(str(file), {"game": game})]
    last = []
    if isinstance(measure, list) and measure and all(isinstance(text, str) for text in measure):
        last.append(Layer(f"{file}, measure", {"evaluate": {"opponents": [_located(text, root) for text in measure]}}))
    made: dict[str, RunConfig] = {}
    objections: dict[str, list[str]] = {}  # what is wrong -> with which variants
    for name, value in tables["variants"].items():
        found: list[str] = [] if _NAME.fullmatch(name) else [f"{name!r} is no name: use letters, digits and . _ -"]
        table = _table("its entry", value, found)
        found += _misplaced("[base]", tables["base"], bool(last)) + _misplaced(f"[variants.{name}]", table, bool(last))
        layers = [Layer(f"{file} [base]", tables["base"]), Layer(f"{file} [variants.{name}]", table)]
        config = _attempt(lambda layers=layers: build(RunConfig, [*first, *layers, *last]), found)  # type: ignore[misc]
        if config is not None:
            found += _misfits(config, root, given.get("rate") is True)
            made[name] = config
        for problem in found:
            objections.setdefault(problem, []).append(name)
    for problem, names in objections.items():
        everywhere = len(names) == len(tables["variants"])
        problems.append(problem if everywhere else f"variant {', '.join(names)}: {problem}")
    alike = [(a, b) for a in made for b in made if a < b and made[a] == made[b]]
    problems += [f"variants {a} and {b} have the same settings: there is nothing to compare" for a, b in alike]
    return made


def _misplaced(where: str, table: Mapping[str, Any], measured: bool) -> list[str]:
    """Settings that must not stand in a table of settings."""
    found = [
        f"{where} sets {key}; all runs have the {key} or seeds that stand at the top of the file"
        for key in ("game", "seed")
        if key in table
    ]
    evaluate = table.get("evaluate")
    if measured and isinstance(evaluate, Mapping) and "opponents" in evaluate:
        found.append(f"{where} sets evaluate.opponents, and so does `measure`; leave one of them out")
    return found


def _misfits(config: RunConfig, root: Path, rated: bool) -> list[str]:
    """What would stop a run with these settings, now or after hours."""
    found: list[str] = []
    parts = _attempt(lambda: parts_of(config), found)
    if parts is None:
        return found
    if isinstance(parts, PpoParts):
        return found + (["rate is true; it is for solved games of two: leave it out"] if rated else [])
    _attempt(lambda: parts.pace(0), found)
    for opponent in config.evaluate.opponents:
        _attempt(lambda opponent=opponent: make_player(opponent, parts.game, root), found)  # type: ignore[misc]
    if not config.evaluate.opponents and not rated:
        found.append('nothing is measured: name opponents, as in measure = ["random"], or set rate = true')
    if rated and exact_judge(parts.game) is None:
        found.append(f"rate is true, but {parts.game.spec.name} is not solved: leave it out")
    return found


def _located(text: str, root: Path) -> str:
    """A player string in which a run is named by its folder: an experiment keeps its own runs elsewhere."""
    head, comma, options = text.strip().partition(",")
    kind, _, detail = head.partition(":")
    name, at, step = detail.partition("@")
    if kind != "run" or not (root / name / "config.toml").is_file():
        return text
    return f"run:{(root / name).resolve()}{at}{step}{comma}{options}"


def _measures(spec: GameSpec, opponents: Mapping[str, str], rated: bool) -> tuple[Measure, ...]:
    """`opponents`: as written -> as runs have them. Points only where one win can be worth more than another."""
    if spec.num_players == 1:
        points = Measure("points a game", "points", NOBODY, (-math.inf, math.inf))
        return points, Measure("share of games won", "score", NOBODY)
    found = [Measure(f"score against {text}", "score", opponent) for text, opponent in opponents.items()]
    if len({abs(outcome.points) for outcome in spec.outcomes} - {0.0}) != 1:
        bounds = (-spec.scale, spec.scale)
        found += [Measure(f"points against {text}", "points", opponent, bounds) for text, opponent in opponents.items()]
    if rated:
        found.append(Measure(WRONG_MOVES, "wrong_moves", more_is_better=False))
    return tuple(found)
