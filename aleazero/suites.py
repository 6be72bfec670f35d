"""Chess players judged by positions whose good moves are known: EPD suites, and tactics that the rules prove.

A player is asked for a move in every position, many positions at a time. Knows players by what they choose; nothing of
matches and runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.core.errors import GameContractError
from aleazero.core.keys import Role, lane_keys
from aleazero.games.chess.compiled import legal_actions
from aleazero.games.chess.epd import Entry, parse_epd, read_epd
from aleazero.games.chess.game import Chess, ChessState
from aleazero.games.chess.mates import generate
from aleazero.play.match import Player
from aleazero.play.ratings import Interval, wilson

METRIC = "solved"
BATCH = 64  # positions asked about at once: a tree of chess is large
MATES = 200  # made, unless told otherwise


@dataclasses.dataclass(frozen=True)
class Suite:
    """Positions and where they came from."""

    name: str
    entries: tuple[Entry, ...]
    refused: tuple[str, ...] = ()  # what is wrong with the lines of a file that are no positions


@dataclasses.dataclass(frozen=True)
class Marks:
    """What a player did in a suite."""

    solved: Interval  # share of the positions with a right move, and its 95 % interval
    points: float | None  # share of the points; None where the suite gives none
    chosen: tuple[int, ...]  # the move in every position


def epd_suite(game: Chess, path: Path, count: int | None = None) -> Suite:
    """The first `count` positions of a file, or all."""
    entries, refused = read_epd(path, game)
    return Suite(path.name, tuple(entries[:count]), tuple(refused))


def shipped_suite(game: Chess, count: int | None = None) -> Suite:
    """The tactics that come with the package; evenly chosen ones where not all are wanted."""
    text = (resources.files("aleazero") / "data" / "chess_tactics.epd").read_text("utf-8")
    lines = text.splitlines()
    if count is not None and count < len(lines):
        lines = [lines[number * len(lines) // count] for number in range(count)]
    return Suite("shipped tactics", tuple(parse_epd("\n".join(lines), game)))


def mate_suite(game: Chess, moves: int, count: int | None = None, seed: int = 0) -> Suite:
    """Mates in `moves`, made and proved now."""
    problems = generate(game, moves, count or MATES, seed)
    return Suite(f"mate in {moves}", tuple(parse_epd("\n".join(problem.epd for problem in problems), game)))


def mark(game: Chess, player: Player, entries: Sequence[Entry], seed: int = 0) -> Marks:
    """The player's moves in all positions, judged; a move that is none ends the judging."""
    chosen = choices(game, player, [entry.state for entry in entries], seed)
    right = sum(entry.is_right(action) for entry, action in zip(entries, chosen, strict=True))
    scored = [(entry, action) for entry, action in zip(entries, chosen, strict=True) if entry.points]
    points = float(np.mean([entry.share(action) for entry, action in scored])) if scored else None
    return Marks(wilson(right, len(entries)), points, tuple(chosen))


def choices(game: Chess, player: Player, states: Sequence[ChessState], seed: int = 0) -> list[int]:
    """The player's moves in positions, many asked about at a time; a move that is none is an error."""
    chosen: list[int] = []
    size = min(BATCH, len(states))
    for number, first in enumerate(range(0, len(states), size)):
        part = states[first : first + size]
        lanes = np.arange(size) < len(part)
        filled = [*part, *[part[-1]] * (size - len(part))]  # one shape, so that players compile once
        batch = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *filled)
        batch = jax.device_put(batch, jax.local_devices()[0])
        keys = lane_keys(jnp.uint32(seed), Role.MATCH, number, jnp.arange(size))
        actions = np.asarray(player.choose(batch, jnp.asarray(lanes), keys))
        chosen += [int(action) for action in actions[: len(part)]]
    for state, action in zip(states, chosen, strict=True):
        if action not in legal_actions(game, state):
            fen = game.notation.format_state(state)
            raise GameContractError(
                "rate", f"player {player.name!r} chose action {action}, which is not legal in {fen!r}"
            )
    return chosen
