"""A deeper look at a slab: do its packed states make sense, and do the rules allow the actions listed in them?

Costs an evaluation of the rules for every row looked at, so a run looks at a sample of each slab. Runs on the CPU,
compiled once, whatever device the learner has. Knows the game contract; neither wires nor networks.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.game import Game
from aleazero.core.struct import struct
from aleazero.runtimes.slabs import BadSlab, Reason, Slab


@struct
class _Faults:
    """What is wrong with rows, `[N]` bool each."""

    changed: Array  # the bytes are not what the state in them packs to
    over: Array  # the game is over in that state
    turn: Array  # somebody else is to play there
    waiting: Array  # actions are listed where nature is to act
    illegal: Array  # an action, listed or played, is not among the legal ones
    twice: Array  # an action is listed twice


_WHAT: dict[str, tuple[Reason, str]] = {
    "changed": ("state", "the packed state is none of the game's"),
    "over": ("state", "the game is over in the packed state"),
    "turn": ("state", "to_play is not whose turn it is in the packed state"),
    "waiting": ("illegal", "actions are listed where nature is to act"),
    "illegal": ("illegal", "an action is not legal in the packed state"),
    "twice": ("illegal", "an action is listed twice"),
}


class LegalCheck:
    """Checks rows of slabs against the rules, `rows` of each slab, drawn at random."""

    def __init__(self, game: Game, rows: int, seed: int | None = None) -> None:
        """`seed` makes the sample the same every time; without one no sender can know what will be looked at."""
        self._rows = rows
        self._draw = np.random.default_rng(seed)
        self._device = jax.local_devices(backend="cpu")[0]
        self._faults = jax.jit(jax.vmap(lambda *row: _faults(game, *row)))

    def __call__(self, slab: Slab, worker: str | None = None) -> None:
        """Raises `BadSlab`, against the worker that signed the slab, where the rules do not allow one of its rows."""
        moves, lanes = slab["to_play"].shape
        total = moves * lanes
        drawn = np.arange(total) if self._rows >= total else self._draw.choice(total, self._rows, replace=False)
        at = np.unravel_index(np.sort(drawn), (moves, lanes))
        picked = tuple(slab[name][at] for name in ("state", "to_play", "actions", "action"))
        faults = jax.device_get(self._faults(*jax.device_put(picked, self._device)))
        for name, (reason, what) in _WHAT.items():
            wrong = getattr(faults, name)
            if wrong.any():
                first = int(wrong.argmax())
                raise BadSlab(reason, f"{what} at {[int(axis[first]) for axis in at]}", worker, worker)


def _faults(game: Game, packed: Array, to_play: Array, actions: Array, action: Array) -> _Faults:
    """Of one row."""
    state = game.unpack(packed)
    legal = game.legal_list(state)  # [K]
    listed = actions >= 0  # [E]
    allowed = ((actions[:, None] == legal[None]) & (legal >= 0)[None]).any(-1)
    played = ((legal == action) & (legal >= 0)).any() | (action < 0)
    same = (actions[:, None] == actions[None]) & listed[:, None] & ~jnp.eye(actions.shape[0], dtype=jnp.bool_)
    return _Faults(
        changed=(game.pack(state) != packed).any(),
        over=state.terminated,
        turn=state.to_play.astype(jnp.int8) != to_play,
        waiting=state.is_chance & listed.any(),
        illegal=(listed & ~allowed).any() | ~played,
        twice=same.any(),
    )
