"""`alea rate`: a player's decisions judged, exactly where a game is solved; in backgammon by GNU or by a file."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from aleazero import decisions as decided
from aleazero.cli.common import command_line, game_of, players_of, seed_problems
from aleazero.cli.main import print_json
from aleazero.core.compilation import keep_compiled_programs
from aleazero.core.game import Game
from aleazero.play.match import TurnPlayer, WholeTurns
from aleazero.players import AnyPlayer
from aleazero.rate import METRIC, Wrong, solved_positions
from aleazero.rate import rate as judge

DECISIONS = 1000  # of backgammon, unless told otherwise


def rate(
    name: str,
    player: str,
    *,
    positions: int | None,
    decisions: Path | None,
    save: Path | None,
    seed: int,
    runs: Path | None,
    as_json: bool,
) -> int:
    """Asks the player for a move in every position and reports how many were wrong, or what they cost."""
    keep_compiled_programs()
    game = game_of(name)
    problems = seed_problems(seed)
    if game.spec.name != "backgammon" and (decisions or save):
        problems.append(f"decisions are of backgammon; {name} is judged by its exact solution")
    if decisions and save:
        problems.append("save writes decisions that are labelled now; those of a file are there already")
    if positions is not None and positions < 1:
        problems.append(f"positions is {positions}; it must be at least 1")
    (judged,) = players_of(game, [player], runs, problems)
    if game.spec.name == "backgammon":
        return _backgammon(game, judged, positions, decisions, save, seed, runs, as_json)
    assert not isinstance(judged, TurnPlayer)  # no solved game has whole turns
    rating = judge(game, judged, solved_positions(game, positions, seed), seed)
    report: dict[str, Any] = {
        "game": name,
        "player": player,
        "metric": METRIC,
        **dataclasses.asdict(rating.overall),
        "phases": {phase: dataclasses.asdict(wrong) for phase, wrong in rating.phases.items()},
        "seed": seed,
        "command": command_line("rate", name, player=player, positions=positions, seed=seed, runs=runs),
    }
    if as_json:
        print_json(report)
        return 0
    print(f"{player} in {rating.overall.decisions} positions of {name}, every one solved")
    for phase, wrong in {"all": rating.overall, **rating.phases}.items():
        print(f"{phase:7} {_in_words(wrong)}")
    return 0


def _backgammon(
    game: Game,
    player: AnyPlayer,
    positions: int | None,
    file: Path | None,
    save: Path | None,
    seed: int,
    runs: Path | None,
    as_json: bool,
) -> int:
    if not isinstance(player, TurnPlayer):
        player = WholeTurns(game, player)
    if file:
        labelled = decided.read(file)[:positions]
    else:
        labelled = decided.label(list(decided.own_decisions(game, player, positions or DECISIONS, seed)))
        if save:
            decided.write(save, labelled)
    found = decided.error_rate(player, labelled, seed)
    value, low, high = (1000 * x for x in (found.lost.value, found.lost.low, found.lost.high))
    report = {
        "game": "backgammon",
        "player": player.name,
        "metric": "memg",
        "value": value,
        "low": low,
        "high": high,
        "decisions": found.decisions,
        "memg": value,
        "memg_low": low,
        "memg_high": high,
        "pr": value / 2,
        "outside": found.outside,
        "judge": str(file) if file else f"gnubg:ply={decided.JUDGE_PLY}",
        "seed": seed,
        "command": command_line(
            "rate", "backgammon", player=player.name, positions=positions, decisions=file, seed=seed, runs=runs
        ),
    }
    if as_json:
        print_json(report)
        return 0
    print(f"{player.name} in {found.decisions} unforced decisions of backgammon, judged by {report['judge']}")
    print(f"error   {value:.2f} mEMG (95 %: {low:.2f} to {high:.2f}), PR {value / 2:.2f}")
    if found.outside:
        print(f"outside {found.outside} plays were not among the candidates: each cost the gap to the worst")
    return 0


def _in_words(wrong: Wrong) -> str:
    share = f"wrong moves {wrong.value:.2%} (95 %: {wrong.low:.2%} to {wrong.high:.2%}) of {wrong.decisions}"
    error = "" if wrong.value_error is None else f"; the network's value is off by {wrong.value_error:.4f}"
    return f"{share}; {wrong.points_lost:.4f} points lost a move{error}"
