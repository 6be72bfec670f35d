"""`alea rate`: a player's decisions judged exactly."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from aleazero.cli.common import command_line, game_of, players_of, seed_problems
from aleazero.cli.main import print_json
from aleazero.core.compilation import keep_compiled_programs
from aleazero.rate import METRIC, Wrong, solved_positions
from aleazero.rate import rate as judge


def rate(name: str, player: str, *, positions: int | None, seed: int, runs: Path | None, as_json: bool) -> int:
    """Asks the player for a move in every position and reports how many were wrong."""
    keep_compiled_programs()
    game = game_of(name)
    (judged,) = players_of(game, [player], runs, seed_problems(seed))
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


def _in_words(wrong: Wrong) -> str:
    share = f"wrong moves {wrong.value:.2%} (95 %: {wrong.low:.2%} to {wrong.high:.2%}) of {wrong.decisions}"
    error = "" if wrong.value_error is None else f"; the network's value is off by {wrong.value_error:.4f}"
    return f"{share}; {wrong.points_lost:.4f} points lost a move{error}"
