"""`alea bench`: how fast this machine is, which batch size it likes, and how we stand beside our peers."""

from __future__ import annotations

from typing import Any

from aleazero.bench.command import read_options, show
from aleazero.cli.answer import print_json
from aleazero.core.compilation import set_up_compiling
from aleazero.core.errors import ConfigError
from aleazero.core.game import HostGame
from aleazero.games.registry import make_game

_OF_HOST_GAMES = ("kind", "game", "preset", "sets", "single_batch", "player", "runs")


def bench(*, as_json: bool, verbose: bool, games: int | None = None, **given: Any) -> int:
    """Measures and prints; 1 if this machine has become slower than its profile by more than is tolerated."""
    if isinstance(make_game(given["game"]), HostGame):
        return _host(games, given, as_json)
    if games is not None:
        raise ConfigError(f"games is {games}; it is for games that run on the host, as balatro does")
    return show(read_options(**given), as_json=as_json, verbose=verbose)


def _host(games: int | None, given: dict[str, Any], as_json: bool) -> int:
    """Of a game that runs on the host self-play alone can be measured."""
    from aleazero.bench.host_play import DEFAULT_GAMES, play_host_games

    name, taken = given["game"], {"tolerance": 0.1}  # what is left out
    problems = [] if given["kind"] == "selfplay" else [f"kind is {given['kind']!r}; {name} runs on the host: selfplay"]
    problems += [
        f"{option} is {value!r}; {name} runs on the host: give games, {', '.join(_OF_HOST_GAMES[2:])}"
        for option, value in given.items()
        if option not in _OF_HOST_GAMES and value and value != taken.get(option)
    ]
    if problems:
        raise ConfigError("\n".join(problems))
    set_up_compiling()
    found = play_host_games(
        name,
        preset=given["preset"] or "standard",
        sets=given["sets"] or (),
        games=DEFAULT_GAMES if games is None else games,
        num_games=given["single_batch"],
        player=given["player"],
        runs=given["runs"],
    ).as_json()
    if as_json:
        print_json(found)
        return 0
    ante = f" at mean ante {found['mean_ante']:.2f}" if found["mean_ante"] else ""
    print(f"{name}, {found['batch']} games at once: {found['throughput']:,.0f} decisions/s{ante}")
    print(f"{found['games']} games in {found['seconds']:.1f} s, {found['games_per_minute']:,.0f} a minute")
    print(f"memory {found['memory_bytes'] / 2**30:.2f} GiB")
    return 0
