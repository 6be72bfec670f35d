"""`alea rate chess`: a player in positions whose good moves are known, or whose moves Stockfish judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from aleazero import chess_decisions as decided
from aleazero import suites
from aleazero.chess_players import StockfishPlayer
from aleazero.core.errors import ConfigError
from aleazero.engines.stockfish import MOST_SKILL
from aleazero.games.chess.fen import plain_fen, read
from aleazero.games.chess.game import Chess
from aleazero.players import AnyPlayer, make_player

MISSED = 10  # that are shown


def problems_of(
    game: str, epd: Path | None, mates: int | None, nodes: int | None, judge: str | None, positions: int | None
) -> list[str]:
    """What is wrong with the options that are for chess."""
    given = [name for name, value in (("epd", epd), ("mates", mates), ("nodes", nodes)) if value is not None]
    found = []
    if game != "chess":
        return [f"{' and '.join(given)}: for chess, not for {game}"] if given else []
    if epd is not None and mates is not None:
        found.append("epd and mates name a suite each: leave one of the two out")
    if judge is not None and (epd is not None or mates is not None):
        found.append(f"judge is {judge!r}, but the good moves of a suite are known: leave judge, or epd and mates, out")
    if judge is not None and positions == 1:
        found.append("positions is 1; one says nothing of the spread: judge two or more")
    if mates is not None and mates not in (1, 2):
        found.append(f"mates is {mates}; mates in 1 and in 2 can be made and proved")
    if nodes is not None and nodes < 1:
        found.append(f"nodes is {nodes}; it must be at least 1")
    return found


def make_judge(text: str, game: Chess) -> StockfishPlayer:
    """Who says what moves are worth, from a player string."""
    found = make_player(text, game) if text.strip().startswith("stockfish") else None
    if not isinstance(found, StockfishPlayer) or found.engine.strength.skill < MOST_SKILL:
        raise ConfigError(f"judge is {text!r}; moves of chess are judged by Stockfish at full skill: {decided.JUDGE}")
    return found


def with_budget(player: str, nodes: int | None) -> str:
    """A player string with so many simulations, or nodes where it is Stockfish."""
    if nodes is None or player.partition(":")[0] == "random":
        return player
    if player.startswith("stockfish"):
        return f"{player}{',' if ':' in player else ':'}nodes={nodes}"
    return f"{player},sims={nodes}"


def report(
    game: Chess, player: AnyPlayer, positions: int | None, epd: Path | None, mates: int | None, seed: int
) -> dict[str, Any]:
    """What the player solves."""
    if epd is not None:
        suite = suites.epd_suite(game, epd, positions)
    elif mates is not None:
        suite = suites.mate_suite(game, mates, positions, seed)
    else:
        suite = suites.shipped_suite(game, positions)
    marks = suites.mark(game, player, suite.entries, seed)  # type: ignore[arg-type]
    missed = [
        {"name": entry.name, "fen": entry.fen, "played": game.notation.format_action(entry.state, action)}
        for entry, action in zip(suite.entries, marks.chosen, strict=True)
        if not entry.is_right(action)
    ]
    return {
        "game": "chess",
        "player": player.name,
        "suite": suite.name,
        "metric": suites.METRIC,
        "value": marks.solved.value,
        "low": marks.solved.low,
        "high": marks.solved.high,
        "decisions": len(suite.entries),
        "points": marks.points,
        "games": None,
        "luck": None,
        "missed": missed,
        "refused": list(suite.refused),
    }


def judged(game: Chess, player: AnyPlayer, judge: StockfishPlayer, positions: int | None, seed: int) -> dict[str, Any]:
    """What the player's moves give away."""
    met = decided.open_positions(game, judge, positions or decided.POSITIONS, seed)
    lost = decided.score_lost(game, judge, player, met, seed)  # type: ignore[arg-type]
    worst = np.argsort(-lost.each, kind="stable")
    return {
        "game": "chess",
        "player": player.name,
        "judge": judge.name,
        "metric": decided.METRIC,
        "value": lost.score.value,
        "low": lost.score.low,
        "high": lost.score.high,
        "decisions": len(met),
        "blunders": lost.blunders,
        "games": None,
        "luck": None,
        "positions": [
            {
                "fen": plain_fen(read(met[row].state)),
                "played": game.notation.format_action(met[row].state, lost.chosen[row]),
                "lost": float(lost.each[row]),
            }
            for row in worst
        ],
    }


def tell_judged(found: dict[str, Any]) -> None:
    """The report in words."""
    print(f"{found['player']} in {found['decisions']} open positions of chess, judged by {found['judge']}")
    print(f"lost     {found['value']:.2%} of the score a move (95 %: {found['low']:.2%} to {found['high']:.2%})")
    print(f"blunders {found['blunders']:.1%} of the moves, which lost {decided.BLUNDER:.0%} or more")
    bad = [one for one in found["positions"] if one["lost"] > 0]
    for one in bad[:MISSED]:
        print(f"worst    {one['lost']:.0%} by {one['played']} in {one['fen']}")
    if len(bad) > MISSED:
        print(f"         and {len(bad) - MISSED} more that lost something (--json names all)")


def tell(found: dict[str, Any]) -> None:
    """The report in words."""
    interval = f"95 %: {found['low']:.1%} to {found['high']:.1%}"
    print(f"{found['player']} in {found['decisions']} positions of chess ({found['suite']})")
    print(f"solved  {found['value']:.1%} ({interval})")
    if found["points"] is not None:
        print(f"points  {found['points']:.1%} of what there were")
    if found["refused"]:
        print(f"refused {len(found['refused'])} lines, which are not counted")
    for line in found["refused"][:MISSED]:
        print(f"        {line}")
    if len(found["refused"]) > MISSED:
        print(f"        and {len(found['refused']) - MISSED} more (--json names all)")
    for one in found["missed"][:MISSED]:
        print(f"missed  {one['name']}: {one['played']} in {one['fen']}")
    if len(found["missed"]) > MISSED:
        print(f"        and {len(found['missed']) - MISSED} more (--json names all)")
