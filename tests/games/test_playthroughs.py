"""One random game of each kind, written down: whatever changes in the rules or their texts shows as a diff.

Regenerate with `pytest tests/games/test_playthroughs.py --regenerate` and read the difference.
"""

from __future__ import annotations

import functools
import textwrap
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.game import Game
from aleazero.core.keys import Role, lane_keys
from aleazero.games.registry import make_game
from aleazero.games.wander import random_ply
from tests.games.follow import compiled

pytestmark = pytest.mark.usefixtures("quick_compile")
FOLDER = Path(__file__).parent.parent / "golden" / "playthroughs"
SEED = 2
PLIES = {
    "tictactoe": 9,
    "connect_four": 42,
    "pig": 40,
    "quoridor": 40,
    "backgammon": 60,
    "chess": 40,
    "pgx:othello": 40,
    "pgx:backgammon": 40,
}
EVERY = 5  # plies between drawings
LONG = 100  # signs in a position's text beyond which it is written only where the position is drawn


def playthrough(game: Game, plies: int) -> str:
    """The text of one game, or of its first plies."""
    lane = jnp.arange(1)
    step = jax.jit(functools.partial(random_ply, game))
    state = compiled(game, "init")(lane_keys(SEED, Role.INIT, 0, lane)[0])
    blocks = [f"game: {game.spec.name} version {game.spec.version}\nseed: {SEED}"]
    for ply in range(plies):
        taken = step(state, lane_keys(SEED, Role.TEST, ply, lane)[0])
        blocks.append(f"ply {ply}\n{describe(game, state, draw=ply % EVERY == 0)}\n{choice(game, taken)}")
        state = taken.after
        if bool(state.terminated):
            break
    end = "the end" if bool(state.terminated) else f"after {plies} plies"
    blocks.append(f"{end}\n{describe(game, state, draw=True)}")
    return "\n\n".join(blocks) + "\n"


def describe(game: Game, state: Any, *, draw: bool) -> str:
    text = game.notation.format_state(state)
    seen = np.asarray(compiled(game, "observe")(state), np.float64)
    lines = [
        f"state: {text}" if draw or len(text) <= LONG else f"state: {len(text)} signs, {checksum(text.encode())}",
        f"observation: {checksum(np.rint(seen * 10_000).astype('<i8').tobytes())}",
    ]
    if np.any(state.rewards):
        lines.append(f"rewards: {' '.join(f'{points:g}' for points in np.asarray(state.rewards))}")
    if draw:
        lines.append(textwrap.indent(game.notation.draw(state), "    "))
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines())


def choice(game: Game, taken: Any) -> str:
    """What could be done and what was."""
    notation, state = game.notation, taken.state
    if bool(state.is_chance):
        return f"chance: {notation.format_chance(state, int(taken.outcome))}"
    moves = [notation.format_action(state, int(action)) for action in np.asarray(taken.legal) if action >= 0]
    listing = textwrap.fill(f"legal: {' '.join(moves)}", 110, subsequent_indent="    ")
    return f"{listing}\nseat {int(state.to_play)} plays: {notation.format_action(state, int(taken.action))}"


def checksum(data: bytes) -> str:
    return f"crc32 {zlib.crc32(data):08x}"


@pytest.mark.slow
@pytest.mark.parametrize("name", PLIES)
def test_playthrough(name: str, regenerate: bool):
    file = FOLDER / f"{name.replace(':', '_')}.txt"
    game = make_game(name)
    assert isinstance(game, Game)
    text = playthrough(game, PLIES[name])
    if regenerate:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()
