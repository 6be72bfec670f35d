"""How fast a run plays a host game: its rollout alone, until so many games are over. Learns nothing.

The parts are those that `assemble_ppo.build_ppo_parts` makes of a preset and `--set`.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aleazero.assemble_ppo import build_ppo_parts
from aleazero.bench.cases import Unsuited
from aleazero.config import resolve
from aleazero.core.errors import ConfigError
from aleazero.core.keys import Role, role_key
from aleazero.host_players import load_player
from aleazero.observe.hardware import resident_bytes
from aleazero.play.fragments import FragmentPlay, Played

DEFAULT_GAMES = 100
MOST_ROLLOUTS = 10_000  # a policy that ends no games would never be done


@dataclasses.dataclass(frozen=True)
class HostPlaySpeed:
    """What was found."""

    game: str
    batch: int  # games at once
    decisions: int
    seconds: float  # without compiling
    games: int  # that ended
    mean_ante: float  # where they ended; 0 where a game has none
    memory_bytes: int  # of this process, at the end

    def as_json(self) -> dict[str, Any]:
        """As `alea bench` prints it."""
        return {
            "kind": "selfplay",
            "unit": "decisions/s",
            "throughput": self.decisions / self.seconds,
            "games_per_minute": 60 * self.games / self.seconds,
            **dataclasses.asdict(self),
        }


def play_host_games(
    game: str,
    *,
    preset: str = "standard",
    sets: Sequence[str] = (),
    games: int = DEFAULT_GAMES,
    num_games: int | None = None,
    player: str | None = None,
    runs: Path | None = None,
) -> HostPlaySpeed:
    """Plays until `games` games are over, `num_games` at once; with an untrained network unless `player` names one."""
    if games < 1:
        raise ConfigError(f"games is {games}; it must be at least 1")
    more = [] if num_games is None else [f"selfplay.num_games={num_games}"]
    config = resolve(game, preset=preset, assignments=[*sets, *more], environ={})
    if player is not None:
        network = load_player(player, game, runs)
        config = dataclasses.replace(config, model=network.model.config)
    parts = build_ppo_parts(config)
    if not isinstance(parts.rollout, FragmentPlay):
        raise Unsuited(f"{game} runs on the device")
    key = role_key(config.seed, Role.WEIGHTS)
    weights = network.weights if player is not None else jax.jit(parts.model.init)(key)
    lanes, seen = parts.rollout.start(config.seed), list[Played]()
    parts.rollout.run(weights, lanes, seed=config.seed, first=0)  # compiles
    began, over = time.perf_counter(), 0
    for number in range(1, MOST_ROLLOUTS):
        _, played = parts.rollout.run(weights, lanes, seed=config.seed, first=number * parts.rollout.moves)
        seen.append(played)
        over += played.ended + played.truncated
        if over >= games:
            break
    seconds = time.perf_counter() - began
    antes = np.sum([played.antes for played in seen], 0)
    return HostPlaySpeed(
        game=game,
        batch=parts.rollout.num_games,
        decisions=sum(played.rows for played in seen),
        seconds=seconds,
        games=over,
        mean_ante=float((antes * np.arange(len(antes))).sum() / max(antes.sum(), 1)),
        memory_bytes=resident_bytes(),
    )
