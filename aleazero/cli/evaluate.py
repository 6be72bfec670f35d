"""`alea eval`: a match between two players, and what it says of their strength."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aleazero import engine_players
from aleazero.chess_games import Scorebook
from aleazero.cli.answer import print_json, strict
from aleazero.cli.common import command_line, game_of, players_of, seed_problems
from aleazero.core.compilation import set_up_compiling
from aleazero.core.devices import cores, use_every_core
from aleazero.core.errors import AleaError, ConfigError, MissingExtra, UnknownName
from aleazero.core.files import replace_file
from aleazero.core.game import Game
from aleazero.games.chess.game import Chess
from aleazero.play.luck import Judge, take_off
from aleazero.play.luck import luck as luck_of
from aleazero.play.match import MatchResult, play_match
from aleazero.play.ratings import (
    SprtResult,
    elo_interval,
    mean_interval,
    results_from_points,
    score_interval,
    sprt,
    tally,
)
from aleazero.players import AnyPlayer, NetworkPlayer, TurnNetworkPlayer
from aleazero.result_record import make_record, place_problems, write_record

LUCK = ("auto", "none", "gnubg", "network")
ENDS = {"wins": 1, "gammons": 2, "backgammons": 3}  # and the points from which on a game is one
CHUNK = 512  # pairs played at once, so that memory does not grow with the match
SPRT_CHUNK = 64  # pairs between two looks at a sequential test


def evaluate(
    name: str,
    player: str,
    opponent: str,
    *,
    games: int,
    seed: int,
    opening_plies: int,
    sprt_bounds: str | None,
    luck: str,
    pgn: Path | None,
    record: Path | None,
    force: bool,
    runs: Path | None,
    as_json: bool,
) -> int:
    """Plays the match and reports it."""
    use_every_core()
    set_up_compiling()
    game = game_of(name)
    problems = seed_problems(seed) + place_problems(record, force) + _pgn_problems(game, pgn, force)
    if games < 2 or games % 2:
        problems.append(f"games is {games}; it must be even and at least 2: every game is played from both seats")
    if not 0 <= opening_plies < game.spec.max_plies:
        problems.append(f"opening-plies is {opening_plies}; it must be in 0..{game.spec.max_plies - 1}")
    bounds = _parse_bounds(sprt_bounds, problems)
    first, second = players_of(game, [player, opponent], runs, problems)
    _warn_of_repeats(game, (first, second), opening_plies)
    judge = _luck_judge(luck, game, first, second, problems)
    if problems:
        raise ConfigError("\n".join(problems))
    try:
        book = Scorebook(game, f"alea eval, seed {seed}") if pgn is not None and isinstance(game, Chess) else None
        points, lucky, verdict = _play(game, first, second, games // 2, seed, opening_plies, bounds, judge, book)
    finally:
        if isinstance(judge, engine_players.GnubgJudge):
            judge.close()
    if book is not None and pgn is not None:
        replace_file(pgn, "\n".join(book.games).encode())
    if np.isnan(points).all():
        raise AleaError(
            f"no game of {points.size} came to an end within {game.spec.max_plies} plies, so there is nothing to rate; "
            "name other players"
        )
    report = match_report(name, player, opponent, points, lucky) | {
        "luck": _named(judge, (first, second)),
        "ends": ends_of(points) if game.spec.name == "backgammon" else None,
        "sprt": dataclasses.asdict(verdict) if verdict else None,
        "seed": seed,
    }
    report["command"] = command_line(
        "eval",
        name,
        player=player,
        opponent=opponent,
        games=games,
        seed=seed,
        opening_plies=opening_plies,
        sprt=sprt_bounds,
        luck=luck,
        runs=runs,
    )
    if record:
        players = {"player": first, "opponent": second}
        write_record(record, make_record("eval", strict(report), players, runs), force)
    if as_json:
        print_json(report)
    else:
        _tell(report)
    return 0


def _pgn_problems(game: Game, pgn: Path | None, force: bool) -> list[str]:
    if pgn is not None and not isinstance(game, Chess):
        return [f"pgn is {str(pgn)!r}; games of chess are written so, not of {game.spec.name}"]
    return [problem.replace("record", "pgn", 1) for problem in place_problems(pgn, force)]


def _warn_of_repeats(game: Game, players: Sequence[AnyPlayer], opening_plies: int) -> None:
    if not opening_plies and game.spec.chance == "none" and all(isinstance(p, NetworkPlayer) for p in players):
        print(
            "alea: both players always play the same moves, and so every pair of games is the same; "
            "vary them with --opening-plies",
            file=sys.stderr,
        )


def match_report(
    game: str, player: str, opponent: str, points: np.ndarray, luck: np.ndarray | None = None
) -> dict[str, Any]:
    """What points `[P, 2]` of a match say, NaN for games that were stopped; some game must have ended.

    With `luck` `[P, 2]` the points per game are less what chance brought.
    """
    results = results_from_points(points)
    score, counts, raw = score_interval(results), tally(results), mean_interval(points)
    adjusted, share = take_off(points, luck) if luck is not None else (points, 0.0)
    mean = mean_interval(adjusted)
    elo = elo_interval(score)
    return {
        "game": game,
        "player": player,
        "opponent": opponent,
        "games": counts.wins + counts.draws + counts.losses,
        "score": score.value,
        "score_low": score.low,
        "score_high": score.high,
        "metric": "points_per_game",
        "value": mean.value,
        "low": mean.low,
        "high": mean.high,
        "points_per_game": mean.value,
        "points_low": mean.low,
        "points_high": mean.high,
        "luck_adjusted": luck is not None,
        "luck_share": share,
        "raw_points_per_game": raw.value,
        "raw_points_low": raw.low,
        "raw_points_high": raw.high,
        **dataclasses.asdict(counts),
        "elo": elo.value,
        "elo_low": elo.low,
        "elo_high": elo.high,
    }


def ends_of(points: np.ndarray) -> dict[str, dict[str, float]]:
    """How games of backgammon ended for either side, from the player's points; NaN for games that were stopped.

    Counts, and their shares of the games that ended. A gammon is a win too, and a backgammon a gammon.
    """
    games = int((~np.isnan(points)).sum())
    found: dict[str, dict[str, float]] = {}
    for side, sign in (("player", 1), ("opponent", -1)):
        counts = {name: int((sign * points >= least).sum()) for name, least in ENDS.items()}
        found[side] = {**counts, **{f"{name}_share": count / games for name, count in counts.items()}}
    return found


def play_chunks(
    game: Game,
    player: AnyPlayer,
    opponent: AnyPlayer,
    *,
    pairs: int,
    seed: int,
    opening_plies: int,
    chunk: int,
    record: bool = False,
) -> Iterator[MatchResult]:
    """A match of `pairs` pairs a chunk at a time, at most `chunk` pairs each.

    Chunks are equally large, so that players compile once; what the last has too much is for the caller to leave out.
    """
    count = -(-pairs // chunk)
    size = -(-pairs // count)
    for number in range(count):
        # Named by seed and number, as all randomness is; 31 bits, which JAX takes for an int32.
        chunk_seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0]) >> 1
        yield play_match(
            game, player, opponent, pairs=size, seed=chunk_seed, opening_plies=opening_plies, record=record
        )


def _play(
    game: Game,
    player: AnyPlayer,
    opponent: AnyPlayer,
    pairs: int,
    seed: int,
    opening_plies: int,
    bounds: tuple[float, float] | None,
    judge: Judge | None,
    book: Scorebook | None = None,
) -> tuple[np.ndarray, np.ndarray | None, SprtResult | None]:
    """All points and, with a judge, the luck, each `[P, 2]`; with a sequential test only as many games as it needs."""
    points, lucky = np.zeros((0, 2)), np.zeros((0, 2))
    verdict = None
    chunk = SPRT_CHUNK if bounds else CHUNK
    seats = (player, opponent) if book is None else (book.watch(player), book.watch(opponent))  # type: ignore[arg-type]
    for result in play_chunks(
        game,
        *seats,
        pairs=pairs,
        seed=seed,
        opening_plies=opening_plies,
        chunk=chunk,
        record=judge is not None,
    ):
        wanted = pairs - len(points)
        points = np.concatenate([points, result.points[:wanted]])
        if book is not None:
            book.finish(player.name, opponent.name, result.points[:wanted])
        if judge is not None:
            lucky = np.concatenate([lucky, luck_of(game, result, judge)[:wanted]])
        if bounds:
            verdict = sprt(results_from_points(points), *bounds)
            if verdict.verdict != "continue":
                break
    return points, lucky if judge is not None else None, verdict


def _luck_judge(wanted: str, game: Game, player: AnyPlayer, opponent: AnyPlayer, problems: list[str]) -> Judge | None:
    """Who says what a roll is worth; what is wrong with the wish is added to `problems`."""
    if wanted not in LUCK:
        problems.append(str(UnknownName("luck judge", wanted, LUCK)))
    networks = [p for p in (player, opponent) if isinstance(p, TurnNetworkPlayer)]
    if wanted == "auto":
        if game.spec.chance != "explicit" or game.plays is None:
            return None
        try:
            if game.spec.name == "backgammon":
                return engine_players.GnubgJudge(cores())
        except MissingExtra:
            pass
        return networks[0].after_rolls if networks else None
    if wanted == "gnubg":
        if game.spec.name != "backgammon":
            problems.append(f"luck is 'gnubg', which knows backgammon, not {game.spec.name}")
            return None
        return engine_players.GnubgJudge(cores())
    if wanted == "network" and not networks:
        problems.append("luck is 'network', but neither player is a network that plays whole turns")
    return networks[0].after_rolls if wanted == "network" and networks else None


def _named(judge: Judge | None, players: Sequence[AnyPlayer]) -> str:
    """Who said what rolls are worth, as records name it."""
    if judge is None:
        return "none"
    if isinstance(judge, engine_players.GnubgJudge):
        return "gnubg:ply=0"
    return ":".join(["network", *[p.name for p in players if isinstance(p, TurnNetworkPlayer)][:1]])


def _parse_bounds(text: str | None, problems: list[str]) -> tuple[float, float] | None:
    """The two Elo differences of `--sprt`; what is wrong with them is added to `problems`."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
        sprt(np.zeros((0, 2)), low, high)  # says what it does not take
    except ConfigError as error:
        problems.append(str(error))
    except ValueError:
        problems.append(f"sprt is {text!r}; write two Elo differences, as in --sprt 0,10")
    else:
        return low, high
    return None


def _tell(report: dict[str, Any]) -> None:
    stopped = f", stopped without a result {report['truncated']}" if report["truncated"] else ""
    print(f"{report['player']} against {report['opponent']}: {report['games']} games of {report['game']}")
    print(f"won {report['wins']}, drawn {report['draws']}, lost {report['losses']}{stopped}")
    for side, ends in (report["ends"] or {}).items():
        shares = ", ".join(f"{name} {ends[name]} ({ends[f'{name}_share']:.1%})" for name in ENDS)
        print(f"{side:8} {shares}")
    print(f"score   {report['score']:.4f} (95 %: {report['score_low']:.4f} to {report['score_high']:.4f})")
    print(f"Elo     {report['elo']:+.0f} (95 %: {report['elo_low']:+.0f} to {report['elo_high']:+.0f})")
    spread = f"{report['points_low']:+.3f} to {report['points_high']:+.3f}"
    less = ", luck taken off" if report["luck_adjusted"] else ""
    print(f"points  {report['points_per_game']:+.3f} per game (95 %: {spread}){less}")
    if test := report["sprt"]:
        bounds = f"{test['lower']:.2f} to {test['upper']:.2f}"
        print(f"sprt    {test['verdict']}: log-likelihood ratio {test['llr']:.2f}, undecided from {bounds}")
