"""Runs on disk: a seed, how the run was set up and the actions taken, as JSON; and what they lead to."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from aleazero.core.errors import AleaError, ConfigError
from aleazero.games.balatro import actions, facts, text
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.rng import check_seed

VERSION = 1


@dataclasses.dataclass(frozen=True)
class SavedRun:
    """All that a run is made of."""

    seed: str
    deck: str = "Red Deck"
    stake: str = "White"
    last_ante: int = 8
    actions: tuple[int, ...] = ()

    def start(self) -> Batch:
        """The run before its first action, `[1]`."""
        return Batch.start([self.seed], self.deck, self.stake, self.last_ante)

    def steps(self) -> Iterator[tuple[Batch, int]]:
        """Each action with the run as it was before it; one that is not legal is an error that says why."""
        batch = self.start()
        for number, action in enumerate(self.actions):
            if not 0 <= action < actions.NUM_ACTIONS or not batch.masks[0, action]:
                why = text.why_not(batch.states[0], action)
                name = actions.action_name(action)
                raise ConfigError(f"action {number + 1} of the run, {action} ({name}), is not legal: {why}")
            yield batch.copy(), action
            batch.step(np.array([action]))


def write(run: SavedRun, path: Path) -> None:
    """Writes a run."""
    content = {"game": "balatro", "version": VERSION, **dataclasses.asdict(run)}
    try:
        path.write_text(json.dumps(content) + "\n", encoding="utf-8")
    except OSError as error:
        raise AleaError(f"could not write the run to {path}: {error}") from error


def read(path: Path) -> SavedRun:
    """A run that was written; all that is wrong with the file is said at once."""
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{str(path)!r} is no saved run: {error}") from error
    if not isinstance(content, dict) or content.get("game") != "balatro" or content.get("version") != VERSION:
        raise ConfigError(f"{str(path)!r} is no saved run of balatro, version {VERSION}")
    problems = []
    moves = content.get("actions")
    if not isinstance(moves, list) or not all(isinstance(move, int) and not isinstance(move, bool) for move in moves):
        problems.append("actions must be a list of whole numbers")
    if not isinstance(content.get("last_ante"), int) or not 8 <= content["last_ante"] <= 12:
        problems.append(f"last_ante is {content.get('last_ante')!r}; it must be in 8..12")
    for kind, key in (("decks", "deck"), ("stakes", "stake")):
        try:
            facts.number(kind, content.get(key, ""))
        except AleaError as error:
            problems.append(str(error))
    try:
        check_seed(content.get("seed", ""))
    except AleaError as error:
        problems.append(str(error))
    if problems:
        raise ConfigError(f"{str(path)!r} cannot be replayed:\n" + "\n".join(problems))
    return SavedRun(content["seed"], content["deck"], content["stake"], content["last_ante"], tuple(content["actions"]))
