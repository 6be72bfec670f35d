"""`alea train`: from settings to a run, and what to do with it afterwards."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from aleazero.bench.profiles import with_num_games
from aleazero.cli.answer import print_json
from aleazero.cli.common import active_run
from aleazero.cli.options import compute_on
from aleazero.cli.train_tree import Flags
from aleazero.config import RunConfig, is_given, resolve
from aleazero.core.compilation import set_up_compiling
from aleazero.core.devices import use_every_core
from aleazero.core.errors import ConfigError
from aleazero.core.settings import to_dict, to_toml
from aleazero.games.registry import make_game
from aleazero.observe.reports import NOBODY
from aleazero.runs import runs_root
from aleazero.runtimes.local import Resume
from aleazero.runtimes.start import Finished, resume, start, where_time_went


def train(
    game: str | None,
    *,
    preset: str,
    file: Path | None,
    assignments: list[str],
    flags: Flags,
    name: str | None,
    runs: Path | None,
    seconds: float | None,
    profile: bool,
    print_config: bool,
    as_json: bool,
) -> int:
    """Trains a new run."""
    use_every_core()

    notes = dict[str, None]()  # each is said once

    def batch_size(more: list[str]) -> int:
        given = [*assignments, *more]
        return resolve(game, preset=preset, file=file, assignments=given, note=notes.setdefault).learn.batch_size

    assignments = [*assignments, *flags.assignments(batch_size)]
    config = resolve(game, preset=preset, file=file, assignments=assignments, note=notes.setdefault)
    if flags.mcts_cpuct is not None and config.search.kind != "puct":
        raise ConfigError(f"--mcts-cpuct is PUCT's; search.kind is {config.search.kind!r}: add --set search.kind=puct")
    for note in notes:
        print(f"alea: {note}", file=sys.stderr)
    if config.runtime != "local":
        compute_on("cpu")  # an accelerator is the learner's
    # A profile is of play in one process.
    config, told = (config, None) if config.runtime == "rllib" else with_num_games(config, preset, file, assignments)
    if told:
        print(f"alea: {told}", file=sys.stderr)
    if flags.episodes is not None and not is_given("total_rows", file, assignments):
        config = dataclasses.replace(config, total_rows=max(config.total_rows, rows_for(config)))
    if print_config:
        _check(config)
        if as_json:
            print_json(to_dict(config))
        else:
            print(to_toml(config), end="")
        return 0
    set_up_compiling()
    root = runs_root(runs)
    finished = start(config, root, name=name, preset=preset, seconds=seconds, profile=profile, quiet=as_json)
    tell(finished, config, runs, as_json, profile)
    return 0


def rows_for(config: RunConfig) -> int:
    """So many rows that `total_games` games are over before, however long they last."""
    elsewhere = 0 if config.runtime == "local" else config.ray.workers * config.ray.groups
    lanes = config.selfplay.num_games * max(config.producers.workers, elsewhere, 1)
    rounds = -(-config.total_games // lanes) + 1  # of games in every lane; one more for rollouts that end later
    return rounds * lanes * max(make_game(config.game).spec.max_plies, config.selfplay.moves_per_rollout)


def go_on(
    name: str | None,
    how: Resume,
    assignments: list[str],
    runs: Path | None,
    *,
    seconds: float | None,
    profile: bool,
    as_json: bool,
) -> int:
    """Resumes a run."""
    use_every_core()
    set_up_compiling()
    root = runs_root(runs)
    folder = active_run(root, name)
    if folder.read_config().runtime != "local":
        compute_on("cpu")
    finished = resume(str(folder.path), root, how, assignments, seconds=seconds, profile=profile, quiet=as_json)
    tell(finished, finished.folder.read_config(), runs, as_json, profile)
    return 0


def tell(finished: Finished, config: RunConfig, runs: Path | None, as_json: bool, profile: bool = False) -> None:
    """What came of it, where it lies and how to play against it; where the time went, if a profile was asked for."""
    said = where_time_went(finished) if profile else []
    if as_json:
        ratings = [dataclasses.asdict(rating) for rating in finished.ratings]
        print_json(
            {
                "run": finished.folder.name,
                "folder": str(finished.folder.path),
                "status": finished.status,
                "step": finished.step,
                "best_step": finished.best_step,
                "ratings": ratings,
                "plot": str(finished.plot) if finished.plot else None,
                "profile": dataclasses.asdict(finished.profile) if finished.profile else None,
            }
        )
        return
    where = f" --runs {runs}" if runs else ""
    for rating in finished.ratings:
        if rating.opponent == NOBODY:
            print(
                f"alone: {rating.points_per_game:.2f} points in each of {rating.games} games (95 %: "
                f"{rating.points_low:.2f} to {rating.points_high:.2f}), won {rating.score:.1%}"
            )
            continue
        print(
            f"against {rating.opponent}: {rating.score:.1%} of the points in {rating.games} games "
            f"(95 %: {rating.score_low:.1%} to {rating.score_high:.1%})"
        )
    for line in said:
        print(line)
    print(f"run:   {finished.folder.path} ({finished.status})")
    if finished.plot:
        print(f"plot:  {finished.plot}")
    if finished.status == "stopped" and finished.best_step != finished.step:
        best = f"is of step {finished.best_step}" if finished.best_step is not None else "is none yet"
        newest = f"the newest weights, of step {finished.step}, were not measured"
        print(f"best:  {newest}: run:{finished.folder.name}@best {best}")
    if finished.status == "stopped":
        print(f"go on: alea runs resume {finished.folder.name}{where}")
    if config.algorithm == "search":
        print(f"play:  alea play {config.game} --player run:{finished.folder.name}{where}")
    elif config.game == "balatro":
        print(f"rate:  alea eval balatro --player run:{finished.folder.name}{where} --games 1000")


def _check(config: RunConfig) -> None:
    """What does not fit the game is said even if nothing is to run."""
    from aleazero.assemble_ppo import parts_of

    parts_of(config)
