"""`alea runs elo`, `pgn`, `worst`: a run's versions against each other, its games of self-play, what it gets wrong."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np

from aleazero.chess_games import episode_pgn, held_games, losses, selfplay_games
from aleazero.cli.answer import print_json
from aleazero.cli.common import active_run, command_line, game_of, players_of, seed_problems, table
from aleazero.core.compilation import set_up_compiling
from aleazero.core.devices import use_every_core
from aleazero.core.errors import ConfigError
from aleazero.core.files import replace_file
from aleazero.games.chess.game import Chess
from aleazero.games.chess.pgn import worst_positions
from aleazero.ladder import fit_elo
from aleazero.play.episodes import Episode
from aleazero.play.match import play_match
from aleazero.play.ratings import results_from_points
from aleazero.players import load_run_weights
from aleazero.result_record import place_problems
from aleazero.runs import RunFolder, runs_root

REACH = 2  # how many versions on a version's last opponent is


def elo(
    name: str | None,
    *,
    versions: int,
    games: int,
    search: str,
    opening_plies: int,
    seed: int,
    runs: Path | None,
    as_json: bool,
) -> int:
    """Plays each version against the next two and rates them all, the oldest being zero."""
    use_every_core()
    set_up_compiling()
    run = active_run(runs_root(runs), name)
    game = game_of(run.read_config().game)
    problems = seed_problems(seed)
    steps = run.steps()
    if games < 2 or games % 2:
        problems.append(f"games is {games}; it must be even and at least 2: every game is played from both seats")
    if versions < 2 or len(steps) < 2:
        problems.append(f"versions is {versions}, and {run.name} has {len(steps)}; it takes two at least")
    if not 0 <= opening_plies < game.spec.max_plies:
        problems.append(f"opening-plies is {opening_plies}; it must be in 0..{game.spec.max_plies - 1}")
    if problems:
        raise ConfigError("\n".join(problems))
    count = min(versions, len(steps))
    chosen = [steps[number * (len(steps) - 1) // (count - 1)] for number in range(count)]
    texts = [f"run:{run.name}@{step}" + (f",{search}" if search else "") for step in chosen]
    players = players_of(game, texts, runs)
    scores, played = np.zeros((count, count)), np.zeros((count, count))
    for i, j in itertools.combinations(range(count), 2):
        if j - i > REACH:
            continue
        match_seed = int(np.random.SeedSequence([seed, i, j]).generate_state(1)[0]) >> 1
        found = play_match(game, players[j], players[i], pairs=games // 2, seed=match_seed, opening_plies=opening_plies)
        results = results_from_points(found.points)
        ended = ~np.isnan(results)
        scores[j, i], played[j, i] = results[ended].sum(), ended.sum()
        scores[i, j], played[i, j] = played[j, i] - scores[j, i], played[j, i]
    if not played.any(1).all():
        raise ConfigError("some versions ended no game with each other, so they cannot be rated")
    rungs = fit_elo(scores, played)
    report = {
        "run": run.name,
        "game": game.spec.name,
        "games": int(played.sum() / 2),
        "versions": [
            {"step": step, **dataclasses.asdict(rung), "score": float(scores[i].sum() / played[i].sum())}
            for i, (step, rung) in enumerate(zip(chosen, rungs, strict=True))
        ],
        "command": command_line(
            "runs", "elo", run.name, versions=versions, games=games, search=search or None,
            opening_plies=opening_plies, seed=seed, runs=runs,
        ),
    }  # fmt: skip
    if as_json:
        print_json(report)
        return 0
    print(f"{run.name}: {count} versions, {report['games']} games; Elo above the oldest, with its standard error")
    table(
        [["step", "Elo", "score"]]
        + [[str(step), f"{r.elo:+.0f} ± {r.error:.0f}", f"{scores[i].sum() / played[i].sum():.3f}"]
           for i, (step, r) in enumerate(zip(chosen, rungs, strict=True))]
    )  # fmt: skip
    return 0


def pgn(name: str | None, *, out: Path, games: int | None, force: bool, runs: Path | None) -> int:
    """Writes the last games of self-play that the run's replay still holds."""
    run, game, found = _games_of(name, "games of chess are written as PGN", out, games, force, runs)
    replace_file(out, "\n".join(episode_pgn(game, one, f"self-play of {run.name}") for one in found).encode())
    print(f"{len(found)} games written to {out}")
    return 0


def worst(
    name: str | None, *, count: int, out: Path | None, games: int | None, force: bool, runs: Path | None, as_json: bool
) -> int:
    """Names the positions of self-play where the newest weights are furthest off."""
    set_up_compiling()
    if count < 1:
        raise ConfigError(f"count is {count}; it must be at least 1")
    run, game, found = _games_of(name, "positions of chess are named by FEN", out, games, force, runs)
    model, weights = load_run_weights(run.name, game, run.path.parent)
    if not model.config.policy:
        raise ConfigError(f"the network of {run.name} has no policy, so its losses are not known")
    lines = worst_positions(
        game,
        np.concatenate([one.moves.state for one in found]),
        np.concatenate([losses(game, model, weights, one) for one in found]),
        count,
    )
    if as_json:
        print_json({"run": run.name, "games": len(found), "positions": lines})
    elif out is None:
        print("\n".join(lines))
    else:
        replace_file(out, ("\n".join(lines) + "\n").encode())
        print(f"{len(lines)} positions of {len(found)} games written to {out}")
    return 0


def _games_of(
    name: str | None, why: str, out: Path | None, games: int | None, force: bool, runs: Path | None
) -> tuple[RunFolder, Chess, list[Episode]]:
    """A run, its game, and the last games of self-play that its log, or else its newest checkpoint, holds."""
    run = active_run(runs_root(runs), name)
    game = game_of(run.read_config().game)
    problems = [problem.replace("record", "out", 1) for problem in place_problems(out, force)] if out else []
    if not isinstance(game, Chess):
        problems.append(f"{run.name} is a run of {game.spec.name}; {why}")
    if games is not None and games < 1:
        problems.append(f"games is {games}; it must be at least 1")
    if problems:
        raise ConfigError("\n".join(problems))
    assert isinstance(game, Chess)
    found = list(selfplay_games(run)) or list(held_games(run))
    found = found if games is None else found[-games:]
    if not found:
        raise ConfigError(f"neither a replay log nor a checkpoint of {run.name} holds a whole game")
    return run, game, found
