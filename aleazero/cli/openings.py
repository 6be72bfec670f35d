"""`alea openings`: how a player plays the fifteen opening rolls of backgammon, alone or beside another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.advice import RankedPlay, ranked_plays
from aleazero.cli.answer import print_json, strict
from aleazero.cli.common import command_line, game_of, players_of
from aleazero.core.compilation import set_up_compiling
from aleazero.core.errors import ConfigError
from aleazero.core.game import Game
from aleazero.games.backgammon.game import MIXED, ROLLS
from aleazero.players import AnyPlayer
from aleazero.result_record import make_record, place_problems, write_record


def openings(
    name: str,
    player: str,
    *,
    beside: str | None,
    record: Path | None,
    force: bool,
    runs: Path | None,
    as_json: bool,
) -> int:
    """Asks for the best play of every opening roll and the one after it."""
    set_up_compiling()
    game = game_of(name)
    if name != "backgammon":
        raise ConfigError(f"game is {name!r}; opening rolls are of backgammon")
    texts = [player, beside] if beside else [player]
    first, *second = players_of(game, texts, runs, place_problems(record, force))
    rows = [_row(game, outcome, first, second[0] if second else None) for outcome in _in_order()]
    same = sum(row["same"] for row in rows) if beside else None
    report: dict[str, Any] = {
        "game": name,
        "player": player,
        "beside": beside,
        "metric": "first_move_equity",  # the mean over the rolls, which are equally likely
        "value": float(np.mean([row["equity"] for row in rows])),
        "low": None,
        "high": None,
        "games": None,
        "luck": None,
        "seed": None,
        "openings": rows,
        "same": same,
        "command": command_line("openings", name, player=player, beside=beside, runs=runs),
    }
    if record:
        players = dict(zip(("player", "beside"), (first, *second), strict=False))
        write_record(record, make_record("openings", strict(report), players, runs), force)
    if as_json:
        print_json(report)
    else:
        print("\n".join(_table(report)))
    return 0


def _in_order() -> list[int]:
    """Chance outcomes of the opening rolls, as books list them: 21, 31, ... 61, 32, ..."""
    return sorted(range(MIXED), key=lambda outcome: ROLLS[outcome][::-1])


def _row(game: Game, outcome: int, player: AnyPlayer, beside: AnyPlayer | None) -> dict[str, Any]:
    state = game.apply_chance(game.init(jax.random.key(0)), jnp.int32(outcome))
    states = jax.tree.map(lambda x: x[None], state)
    best, runner_up = ranked_plays(game, player, states, 2)
    row = {
        "dice": "{}{}".format(*ROLLS[outcome]),
        "play": best.name,
        "equity": best.equity,
        "runner_up": runner_up.name,
        "gap": best.equity - runner_up.equity,
    }
    if beside:
        other: RankedPlay = ranked_plays(game, beside, states, 1)[0]
        row |= {"beside": other.name, "beside_equity": other.equity, "same": other.name == best.name}
    return row


def _table(report: dict[str, Any]) -> list[str]:
    rows, beside = report["openings"], report["beside"]
    columns = [("dice", "dice"), ("play", report["player"]), ("runner_up", "runner-up"), ("beside", beside or "")]
    widths = {key: max(len(title), *(len(row.get(key, "")) for row in rows)) for key, title in columns}
    dice, play, runner_up, other = (f"{title:{widths[key]}}" for key, title in columns)
    lines = [f"{dice}  {play}  equity  {runner_up}    gap" + f"  {other}  equity" * bool(beside)]
    for row in rows:
        dice, play, runner_up, other = (f"{row.get(key, ''):{width}}" for key, width in widths.items())
        line = f"{dice}  {play}  {row['equity']:+.3f}  {runner_up}  {row['gap']:.3f}"
        if beside:
            line += f"  {other}  {row['beside_equity']:+.3f}" + "  another play" * (not row["same"])
        lines.append(line)
    lines.append(f"to start is worth {report['value']:+.3f} points")
    if beside:
        lines.append(f"the same play in {report['same']} of {len(rows)} rolls")
    return lines
