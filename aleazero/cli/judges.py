"""Who judges backgammon decisions: `gnubg`, or `rollout[:games=324;plies=7;player=bundled]`.

Joins decisions, which ask what positions are worth, to rollouts, which find it out.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from aleazero import decisions as decided
from aleazero.core.errors import AleaError, ConfigError, UnknownName
from aleazero.core.game import Game
from aleazero.games.backgammon.boards import afterstates, rolled, to_boards
from aleazero.players import AnyPlayer, make_player
from aleazero.rollouts import GAMES, PLIES, Rollouts, make_rollouts
from aleazero.runs import runs_root

KINDS = ("gnubg", "rollout")
OPTIONS = ("games", "plies", "player")
TO_THE_END = "all"  # plies


class Judge(Protocol):
    """Says what plays are worth."""

    @property
    def name(self) -> str:
        """As it is written, with all that may be left out."""

    @property
    def player(self) -> AnyPlayer:
        """The player it judges by."""

    def label(self, met: Sequence[decided.Met]) -> list[decided.Decision]:
        """The decisions, with what their best plays and the one made are worth."""


@dataclasses.dataclass(frozen=True)
class GnubgJudge:
    """GNU Backgammon at 2-ply."""

    player: AnyPlayer

    @property
    def name(self) -> str:
        """The player's."""
        return self.player.name

    def label(self, met: Sequence[decided.Met]) -> list[decided.Decision]:
        """On all cores."""
        return decided.label(met)


@dataclasses.dataclass(frozen=True)
class RolloutJudge:
    """A network that plays positions out."""

    rollouts: Rollouts
    name: str

    @property
    def player(self) -> AnyPlayer:
        """The network."""
        return self.rollouts.player

    def label(self, met: Sequence[decided.Met]) -> list[decided.Decision]:
        """Each decision's plays with dice of their own, the same for all of them."""
        return decided.label_by(met, self._ranked, self._worth)

    def _ranked(self, board: np.ndarray, dice: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        player = self.rollouts.player
        found = player.rank(rolled(board[None], dice[None], np.zeros(1, int)))
        return to_boards(found.afterstates), np.asarray(found.value) * player.game.spec.scale

    def _worth(self, after: np.ndarray, decision: np.ndarray) -> np.ndarray:
        """`[2, n]`: by the games of even and of odd number, which have nearly the same first rolls."""
        started, parts, most = time.monotonic(), [], self.rollouts.player.game.spec.scale
        for first in range(0, len(after), self.rollouts.room):
            rows = np.arange(first, min(first + self.rollouts.room, len(after)))
            states = afterstates(after[rows], np.zeros(len(rows), int))
            games = self.rollouts.run(states, decision[rows]).games
            parts.append(np.stack([games[:, half::2].mean(-1) for half in (0, 1)]))
            _tell(rows[-1] + 1, len(after), time.monotonic() - started)
        return np.clip(np.concatenate(parts, 1), -most, most)


def _tell(done: int, total: int, seconds: float) -> None:
    """How far it is, on a terminal's last line: rollouts may take hours on a CPU."""
    if sys.stderr.isatty():
        left = seconds * (total - done) / done / 60
        print(f"\r{done} of {total} positions rolled out, {left:.0f} minutes left ", end="", file=sys.stderr)
        if done == total:
            print(file=sys.stderr)


def make_judge(text: str, game: Game, seed: int, runs: Path | None) -> Judge:
    """The judge a string names; ConfigError with all that is wrong with it."""
    kind, _, detail = text.strip().partition(":")
    if kind not in KINDS:
        raise UnknownName("judge", kind, KINDS)
    if kind == "gnubg":
        if detail:
            raise ConfigError(f"judge {text!r}: gnubg takes no options; it judges at {decided.JUDGE_PLY}-ply")
        return GnubgJudge(make_player(f"gnubg:ply={decided.JUDGE_PLY}", game))
    options, problems = _options(detail)
    games, plies = options.get("games", str(GAMES)), options.get("plies", str(PLIES))
    player = options.get("player", "bundled")
    made: Any = None
    try:
        made = make_player(player, game, runs_root(runs))
    except AleaError as error:
        problems.append(str(error))
    if not games.isdecimal():
        problems.append(f"games is {games!r}; it must be a whole number")
    if plies != TO_THE_END and not plies.isdecimal():
        problems.append(f"plies is {plies!r}; it must be a whole number, or {TO_THE_END}")
    if problems:
        raise ConfigError("\n".join(f"judge {text!r}: {problem}" for problem in problems))
    rollouts = make_rollouts(made, int(games), None if plies == TO_THE_END else int(plies), seed)
    return RolloutJudge(rollouts, f"rollout:games={games};plies={plies};player={player}")


def _options(detail: str) -> tuple[dict[str, str], list[str]]:
    """Options by name, and what is wrong with them."""
    options: dict[str, str] = {}
    problems = []
    for part in filter(None, detail.split(";")):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not value:
            problems.append(f"{part!r} is no option; write games={GAMES} or plies={PLIES}")
        elif key not in OPTIONS:
            problems.append(str(UnknownName("option", key, OPTIONS)))
        else:
            options[key] = value
    return options, problems
