"""`alea games` and `alea show`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

from aleazero.cli.answer import print_json
from aleazero.core.errors import ConfigError
from aleazero.core.game import Game, HostGame
from aleazero.games.registry import game_names, make_game


def games(as_json: bool) -> int:
    """Every game with its facts."""
    rows = [_facts(make_game(name)) for name in game_names()]
    if as_json:
        print_json({"games": rows})
        return 0
    print(f"{'game':16}{'players':>8}{'actions':>9}  chance")
    for row in rows:
        print(f"{row['name']:16}{row['players']:8}{row['actions']:9}  {row['chance']}")
    print("and Pgx environments by name, as in pgx:othello or pgx:backgammon")
    return 0


def show(name: str, position: str | None, svg: Path | None, as_json: bool) -> int:
    """One position and its moves; or its picture, in a file."""
    game = make_game(name)
    if not isinstance(game, Game):
        raise ConfigError(f"game {name!r} runs on the host and has no positions to show")
    notation = game.notation
    state = game.init(jax.random.key(0)) if position is None else notation.parse_state(position)
    if svg is not None:
        return _draw(game, state, svg)
    actions = [int(a) for a in np.asarray(game.legal_list(state)) if a >= 0]
    moves = [notation.format_action(state, action) for action in actions]
    report = {
        "game": name,
        "position": notation.format_state(state),
        "to_play": int(state.to_play),
        "is_chance": bool(state.is_chance),
        "terminated": bool(state.terminated),
        "returns": np.asarray(state.returns).tolist(),
        "moves": moves,
    }
    if as_json:
        print_json(report)
        return 0
    print(notation.draw(state))
    print(f"position: {report['position']}")
    print(_status(report))
    if notation.explain():
        print(notation.explain())
    return 0


def _draw(game: Game, state: Any, path: Path) -> int:
    from aleazero.web.faces import face_of
    from aleazero.web.picture import picture

    if path.suffix.lower() != ".svg" or not path.parent.is_dir():
        raise ConfigError(f"svg is {str(path)!r}; name a file that ends in .svg, in a folder that is there")
    try:
        path.write_text(picture(face_of(game).board(state)), "utf-8")
    except OSError as error:
        raise ConfigError(f"svg is {str(path)!r}: {error.strerror}") from error
    print(path)
    return 0


def _facts(game: Game | HostGame) -> dict[str, Any]:
    spec = game.spec
    return {
        "name": spec.name,
        "version": spec.version,
        "players": spec.num_players,
        "actions": spec.num_actions,
        "chance": spec.chance,
        "outcomes": {outcome.name: outcome.points for outcome in spec.outcomes},
    }


def _status(report: dict[str, Any]) -> str:
    if report["terminated"]:
        return f"the game is over; points: {report['returns']}"
    if report["is_chance"]:
        return "nature is to act"
    return f"player {report['to_play'] + 1} to play; moves: {' '.join(report['moves'])}"
