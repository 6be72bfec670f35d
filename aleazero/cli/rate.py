"""`alea rate`: a player's decisions judged, exactly where a game is solved; in backgammon by GNU, rollouts or files.

In chess by suites of positions, or by Stockfish: see `rate_chess.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aleazero import decisions as decided
from aleazero.cli import rate_chess
from aleazero.cli.answer import print_json, strict
from aleazero.cli.common import command_line, game_of, gather, seed_problems
from aleazero.cli.judges import Judge, make_judge
from aleazero.core.compilation import set_up_compiling
from aleazero.core.devices import use_every_core
from aleazero.core.game import Game
from aleazero.games.chess.game import Chess
from aleazero.play.match import TurnPlayer, WholeTurns
from aleazero.players import AnyPlayer, make_player
from aleazero.rate import METRIC, solved_positions
from aleazero.rate import rate as judge
from aleazero.result_record import make_record, place_problems, write_record
from aleazero.runs import runs_root

DECISIONS = 1000  # of backgammon, unless told otherwise


def rate(
    name: str,
    player: str,
    *,
    positions: int | None,
    decisions: Path | None,
    by: str | None,
    save: Path | None,
    epd: Path | None,
    mates: int | None,
    nodes: int | None,
    seed: int,
    record: Path | None,
    force: bool,
    runs: Path | None,
    as_json: bool,
) -> int:
    """Asks the player for a move in every position and reports how many were wrong, or what they cost."""
    use_every_core()
    set_up_compiling()
    game = game_of(name)
    problems = seed_problems(seed) + place_problems(record, force) + _problems(game, positions, decisions, by, save)
    problems += rate_chess.problems_of(game.spec.name, epd, mates, nodes, by, positions)
    text = rate_chess.with_budget(player, nodes) if isinstance(game, Chess) else player
    wanted: list[Callable[[], Any]] = [lambda: make_player(text, game, runs_root(runs))]
    if game.spec.name == "backgammon" and not decisions:
        wanted.append(lambda: make_judge(by or "gnubg", game, seed, runs))
    elif isinstance(game, Chess) and by is not None and epd is None and mates is None:
        wanted.append(lambda: rate_chess.make_judge(by, game))
    judged, *judges = gather(wanted, problems)
    if game.spec.name == "backgammon":
        report = _backgammon(game, judged, positions, decisions, judges[0] if judges else None, save, seed)
    elif isinstance(game, Chess) and judges:
        report = rate_chess.judged(game, judged, judges[0], positions, seed)
    elif isinstance(game, Chess):
        report = rate_chess.report(game, judged, positions, epd, mates, seed)
    else:
        report = _solved(game, judged, positions, seed)
    report["seed"] = seed
    report["command"] = command_line(
        "rate",
        name,
        player=player,
        positions=positions,
        decisions=decisions,
        judge=by,
        epd=epd,
        mates=mates,
        nodes=nodes,
        seed=seed,
        runs=runs,
    )
    if record:
        by_whom = [one if isinstance(game, Chess) else one.player for one in judges]
        players = dict(zip(("player", "judge"), (judged, *by_whom), strict=False))
        write_record(record, make_record("rate", strict(report), players, runs), force)
    if as_json:
        print_json(report)
    else:
        chess = rate_chess.tell_judged if judges else rate_chess.tell
        tellers = {"backgammon": _tell_backgammon, "chess": chess}
        tellers.get(game.spec.name, _tell_solved)(report)
    return 0


def _problems(
    game: Game, positions: int | None, decisions: Path | None, by: str | None, save: Path | None
) -> list[str]:
    problems = []
    if game.spec.name != "backgammon" and (decisions or save or (by is not None and not isinstance(game, Chess))):
        by_what = "suites of positions, or by Stockfish" if isinstance(game, Chess) else "its exact solution"
        problems.append(f"decisions and their judges are of backgammon; {game.spec.name} is judged by {by_what}")
    if decisions and save:
        problems.append("save writes decisions that are labelled now; those of a file are there already")
    if decisions and by:
        problems.append(f"judge is {by!r}, but the decisions of a file are judged already: leave one of the two out")
    if positions is not None and positions < 1:
        problems.append(f"positions is {positions}; it must be at least 1")
    return problems


def _solved(game: Game, player: AnyPlayer, positions: int | None, seed: int) -> dict[str, Any]:
    assert not isinstance(player, TurnPlayer)  # no solved game has whole turns
    rating = judge(game, player, solved_positions(game, positions, seed), seed)
    return {
        "game": game.spec.name,
        "player": player.name,
        "metric": METRIC,
        **dataclasses.asdict(rating.overall),
        "games": None,
        "luck": None,
        "phases": {phase: dataclasses.asdict(wrong) for phase, wrong in rating.phases.items()},
    }


def _backgammon(
    game: Game,
    player: AnyPlayer,
    positions: int | None,
    file: Path | None,
    who: Judge | None,
    save: Path | None,
    seed: int,
) -> dict[str, Any]:
    turns = player if isinstance(player, TurnPlayer) else WholeTurns(game, player)
    if who is None:
        assert file is not None
        found = decided.error_rate(turns, decided.read(file)[:positions], seed)
    else:
        labelled = who.label(decided.own_decisions(game, turns, positions or DECISIONS, seed))
        if save:
            decided.write(save, labelled)
        found = decided.own_error_rate(labelled)
    value, low, high = (1000 * x for x in (found.lost.value, found.lost.low, found.lost.high))
    return {
        "game": "backgammon",
        "player": player.name,
        "metric": "memg",
        "value": value,
        "low": low,
        "high": high,
        "decisions": found.decisions,
        "games": found.games,
        "luck": None,
        "memg": value,
        "memg_low": low,
        "memg_high": high,
        "pr": value / 2,
        "outside": found.outside,
        "judge": str(file) if who is None else who.name,
    }


def _tell_solved(report: dict[str, Any]) -> None:
    print(f"{report['player']} in {report['decisions']} positions of {report['game']}, every one solved")
    for phase, wrong in {"all": report, **report["phases"]}.items():
        print(f"{phase:7} {_in_words(wrong)}")


def _tell_backgammon(report: dict[str, Any]) -> None:
    games = f" from {report['games']} games" if report["games"] else ""
    decisions = f"{report['decisions']} unforced decisions of backgammon{games}"
    print(f"{report['player']} in {decisions}, judged by {report['judge']}")
    interval = f"95 %: {report['low']:.2f} to {report['high']:.2f}"
    print(f"error   {report['value']:.2f} mEMG ({interval}), PR {report['pr']:.2f}")
    if report["outside"]:
        print(f"outside {report['outside']} plays were not among the candidates: each cost the gap to the worst")


def _in_words(wrong: dict[str, Any]) -> str:
    share = (
        f"wrong moves {wrong['value']:.2%} (95 %: {wrong['low']:.2%} to {wrong['high']:.2%}) of {wrong['decisions']}"
    )
    error = wrong["value_error"]
    off = "" if error is None else f"; the network's value is off by {error:.4f}"
    return f"{share}; {wrong['points_lost']:.4f} points lost a move{off}"
