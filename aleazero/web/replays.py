"""A game of self-play out of a run's replay log, move by move as a page shows it.

Where whole turns are learned, positions are recorded before a roll, and neither the roll nor the play is. Both can be
told all the same: a row's fingerprint is of what nature drew and of what the turn left.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.core.game import Game
from aleazero.core.keys import fold
from aleazero.play.episodes import Episode
from aleazero.play.turns import next_fingerprint
from aleazero.web.faces import face_of
from aleazero.web.rules import Rules, rules_of


def frames(game: Game, episode: Episode) -> list[dict[str, Any]]:
    """Every position of a game, with what nature drew and what was played there."""
    rules, unpack = rules_of(game), jax.jit(game.unpack)
    found = []
    for row, packed in enumerate(episode.moves.state):
        state = jax.tree.map(np.asarray, unpack(packed))
        value = float(episode.moves.value[row])
        if not bool(state.is_chance):
            action = int(episode.moves.action[row])
            actions = [action] if action in rules.legal(state) else []
            found.append(_frame(rules, state, face_of(game).drawn(state), actions, value))
        elif episode.moves.settled[row]:
            found.append({**_frame(rules, state, "", [], value), "name": "how it ends is known"})
        else:
            drew, rolled, actions = _turn(rules, episode, row, state)
            chance = game.notation.format_chance(state, drew) if actions else ""
            same = int(rolled.to_play) == int(state.to_play)  # it may be the other side's turn after the roll
            found.append(_frame(rules, rolled, chance, actions, value if same else -value))
    return found


def _turn(rules: Rules, episode: Episode, row: int, state: Any) -> tuple[int, Any, list[int]]:
    """What nature drew in a row, the position after it, and the actions of the turn; none where nothing fits."""
    moves = episode.moves
    before, now = jnp.uint32(moves.fingerprint[row - 1] if row else 0), moves.fingerprint[row]
    outcomes = np.flatnonzero(np.asarray(rules.game.chance_probs(state)))
    if row + 1 < len(episode):
        left = fold(jnp.asarray(moves.state[row + 1])[None])[0]
        outcomes = outcomes[np.asarray(next_fingerprint(before, jnp.asarray(outcomes), left)) == now]
    for drew in outcomes.tolist():

        def fits(packed: np.ndarray, drew: int = drew) -> np.ndarray:
            return np.asarray(next_fingerprint(before, jnp.int32(drew), fold(jnp.asarray(packed)))) == now

        rolled = rules.roll(state, drew)
        actions = rules.find_turn(rolled, fits)
        if actions is not None:
            return drew, rolled, actions
    return -1, state, []


def _frame(rules: Rules, state: Any, chance: str, actions: list[int], value: float) -> dict[str, Any]:
    notation, face = rules.game.notation, face_of(rules.game)
    steps, after = [], state
    for action in actions:
        steps.append(face.places(after, action))
        after = rules.apply(after, action)
    return {
        "board": face.board(state),
        "to_play": int(state.to_play),
        "chance": chance,
        "name": notation.format_turn(state, actions) if actions else "",
        "steps": steps,
        "value": value if np.isfinite(value) else None,
        "position": notation.format_state(state),
    }
