"""`alea hint`: the best plays of a backgammon position, with what they are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax

from aleazero.advice import ENDS, ranked_plays, table
from aleazero.cli.answer import print_json
from aleazero.cli.common import command_line, game_of, players_of
from aleazero.core.compilation import set_up_compiling
from aleazero.core.errors import ConfigError
from aleazero.core.game import Game
from aleazero.rollouts import make_rollouts


def hint(
    name: str,
    *,
    position_id: str | None,
    dice: str | None,
    xgid: str | None,
    player: str,
    count: int,
    rollout: int | None,
    runs: Path | None,
    as_json: bool,
) -> int:
    """Ranks the plays and shows the best."""
    set_up_compiling()
    game = game_of(name)
    if name != "backgammon":
        raise ConfigError(f"game is {name!r}; hints are for backgammon. In a game that you play, type eval")
    state = _position(game, position_id, dice, xgid)
    problems = [f"count is {count}; it must be at least 1"] if count < 1 else []
    (adviser,) = players_of(game, [player], runs, problems)
    rollouts = None if rollout is None else make_rollouts(adviser, rollout)
    plays = ranked_plays(game, adviser, jax.tree.map(lambda x: x[None], state), count, rollouts)
    if not as_json:
        print(game.notation.draw(state))
        print("\n".join(table(plays)))
        return 0
    report: dict[str, Any] = {
        "game": name,
        "position": game.notation.format_state(state),
        "player": player,
        "plays": [
            {
                "play": play.name,
                "equity": play.equity,
                **({} if play.error is None else {"error": play.error}),
                **dict(zip(ENDS, play.chances or [None] * len(ENDS), strict=True)),
            }
            for play in plays
        ],
        "command": command_line(
            "hint",
            name,
            position_id=position_id,
            dice=dice,
            xgid=xgid,
            player=player,
            count=count,
            rollout=rollout,
            runs=runs,
        ),
    }
    print_json(report)
    return 0


def _position(game: Game, position_id: str | None, dice: str | None, xgid: str | None) -> Any:
    """The state of one of the two; with dice to play."""
    if (position_id is None) == (xgid is None):
        raise ConfigError("name one position: --position-id ID --dice 31, or --xgid XGID")
    if xgid is not None and dice is not None:
        raise ConfigError(f"dice are {dice!r}, but an XGID holds its own: leave --dice out")
    if xgid is None and not (dice or "").strip():
        raise ConfigError("a position ID holds no dice: add them, as in --dice 31")
    text = xgid if xgid is not None else f"{position_id}:{dice}"
    state = game.notation.parse_state(text)
    if bool(state.terminated) or bool(state.is_chance):
        why = "the game is over" if state.terminated else "no dice are rolled"
        raise ConfigError(f"position {text!r}: {why}, so there is nothing to play")
    return state
