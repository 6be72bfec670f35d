"""`alea balatro live`: a live game, played through BalatroBot."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

from aleazero.bridges.advisor import Advisor
from aleazero.bridges.balatrobot import LiveTable, Patience, play_live
from aleazero.cli.answer import print_json
from aleazero.cli.mcp import player_of
from aleazero.core.errors import ConfigError
from aleazero.games.balatro import facts
from aleazero.games.balatro.rng import check_seed


def live(
    address: str,
    *,
    player: str,
    seed: str | None,
    deck: str,
    stake: str,
    give_up: float,
    rest: float,
    runs: Path | None,
    as_json: bool,
) -> int:
    """Plays the run that is on, or begins one."""
    for name, seconds in (("give-up", give_up), ("rest", rest)):
        if not seconds > 0:
            raise ConfigError(f"{name} is {seconds}; it must be more than 0")
    facts.number("decks", deck)
    facts.number("stakes", stake)
    choose = player_of(player, runs)
    asking = choose if isinstance(choose, Advisor) else None
    out = sys.stderr if as_json else sys.stdout

    def say(line: str) -> None:
        print(line, file=out, flush=True)

    table = LiveTable(address, say, Patience(give_up=give_up, rest=rest))
    table.start(check_seed(seed) if seed is not None else None, deck, stake)
    done: dict[str, Any] = play_live(table, choose, say)
    if asking is not None:
        done["advisor"] = dataclasses.asdict(asking.counts)
    if as_json:
        print_json({"player": player, **done})
        return 0
    print(f"{'won' if done['won'] else 'ended'} in ante {done['ante']} after {done['decisions']} decisions")
    if asking is not None:
        print("advisor: " + ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in done["advisor"].items()))
    return 0
