"""Pig: roll as often as you dare; a one loses what the turn has brought; first to a hundred wins.

Actions: 0 rolls (a chance state follows), 1 holds (the turn's points are kept and the other player goes on). A turn
begins with a roll, and whoever has enough to win must hold. Who acts after a roll depends on the die, so nothing that
assumes alternating players gets Pig right. Positions are written `34-50+12 1`: scores of players 1 and 2, the points
of this turn, who is to play; `?` at the end means that the die is in the air.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.errors import NotationError
from aleazero.core.game import WIN_LOSS, Game, GameSpec, Notation, Symmetry
from aleazero.core.struct import replace, struct

GOAL = 100
ROLL, HOLD = 0, 1


@struct
class PigState:
    """A position; fields as in `core.game.State`, the scores and the turn's points."""

    to_play: Array
    is_chance: Array
    terminated: Array
    rewards: Array
    returns: Array
    scores: Array  # [2] int16: points kept
    turn_points: Array  # [] int16: points that a one would lose


class Pig(Game):
    """The rules."""

    spec = GameSpec(
        name="pig",
        version=2,
        num_players=2,
        num_actions=2,
        max_legal=2,
        observation_shape=(12,),
        outcomes=WIN_LOSS,
        max_plies=2000,
        chance="explicit",
        num_chance_outcomes=6,
    )

    def init(self, key: Array) -> PigState:
        """No points; player 0 rolls first."""
        return _state(jnp.zeros(2, jnp.int16), jnp.int16(0), jnp.int8(0))

    def legal_list(self, state: PigState) -> Array:
        """Roll unless the turn already wins; hold unless the turn has brought nothing."""
        open_ = ~state.terminated & ~state.is_chance
        total = state.scores[state.to_play] + state.turn_points
        may = jnp.stack([total < GOAL, state.turn_points > 0]) & open_
        return jnp.where(may, jnp.array([ROLL, HOLD], jnp.int16), jnp.int16(-1))

    def apply_action(self, state: PigState, action: Array) -> PigState:
        """Throws the die into the air, or keeps the points and hands over."""
        holds = action == HOLD
        kept = jnp.where((jnp.arange(2) == state.to_play) & holds, state.turn_points, 0).astype(jnp.int16)
        held = _state(state.scores + kept, jnp.int16(0), 1 - state.to_play)
        return PigState(
            to_play=jnp.where(holds, held.to_play, state.to_play),
            is_chance=~holds,
            terminated=held.terminated & holds,
            rewards=jnp.where(holds, held.rewards, 0.0),
            returns=jnp.where(holds, held.returns, 0.0),
            scores=held.scores,
            turn_points=jnp.where(holds, held.turn_points, state.turn_points),
        )

    def chance_probs(self, state: PigState) -> Array:
        """A fair die."""
        return jnp.full(6, 1 / 6, jnp.float32)

    def apply_chance(self, state: PigState, outcome: Array) -> PigState:
        """Outcome 0 is a one: the turn's points are gone and the other player is to play."""
        one = outcome == 0
        points = jnp.where(one, 0, state.turn_points + outcome.astype(jnp.int16) + 1)
        to_play = jnp.where(one, 1 - state.to_play, state.to_play)
        return _state(state.scores, points.astype(jnp.int16), to_play)

    def observe(self, state: PigState) -> Array:
        """My score, yours, the turn's points, what I would have (also as points still to go, on finer scales: near the
        goal each point counts), and whether it wins.
        """
        mine = state.scores[state.to_play]
        yours = state.scores[1 - state.to_play]
        total = mine + state.turn_points
        counts = jnp.stack([mine, yours, state.turn_points, total]).astype(jnp.float32)
        to_go = GOAL - jnp.stack([counts[0], counts[1], counts[3]])
        finer = [jnp.clip(to_go / scale, 0.0, 1.0) for scale in (30.0, 10.0)]
        turn = jnp.clip(counts[2:3] / 25.0, 0.0, 1.0)
        wins = (total >= GOAL).astype(jnp.float32)[None]
        return jnp.concatenate([counts / GOAL, *finer, turn, wins])

    @property
    def notation(self) -> Notation:
        """`roll` and `hold`."""
        return PigNotation()

    @property
    def starts(self) -> Mapping[str, Callable[[Array], PigState]]:  # type: ignore[override]
        """`anywhere`: any scores and any points of a turn."""
        return {"anywhere": _anywhere}

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:  # type: ignore[override]
        """The players' seats."""
        return (Symmetry("seats", _swap_seats, (ROLL, HOLD), swaps_seats=True),)


def _state(scores: Array, turn_points: Array, to_play: Array) -> PigState:
    """The decision state of these scores; a kept score of the goal ends the game."""
    won = (scores >= GOAL).astype(jnp.float32)
    returns = won - won[::-1]
    return PigState(
        to_play=to_play.astype(jnp.int8),
        is_chance=jnp.bool_(False),
        terminated=(scores >= GOAL).any(),
        rewards=returns,
        returns=returns,
        scores=scores,
        turn_points=turn_points,
    )


def _anywhere(key: Array) -> PigState:
    """A decision state at random. No turn brings one point, so nobody has one."""
    keys = jax.random.split(key, 3)
    scores = jax.random.randint(keys[0], (2,), 0, GOAL)
    to_play = jax.random.randint(keys[1], (), 0, 2)
    turn = jax.random.randint(keys[2], (), 0, GOAL + 6 - scores[to_play])  # up to a six on top of 99
    scores, turn = (jnp.where(x == 1, 0, x).astype(jnp.int16) for x in (scores, turn))
    return _state(scores, turn, to_play)


def _swap_seats(state: PigState) -> PigState:
    return replace(
        state,
        to_play=1 - state.to_play,
        scores=state.scores[::-1],
        rewards=state.rewards[::-1],
        returns=state.returns[::-1],
    )


class PigNotation(Notation):
    """`roll`, `hold`; `34-50+12 1`."""

    def format_action(self, state: Any, action: int) -> str:
        """A word."""
        return ("roll", "hold")[int(action)]

    def parse_action(self, state: Any, text: str) -> int:
        """`roll` or `hold`, or their first letters."""
        word = text.strip().lower()
        if word not in ("roll", "hold", "r", "h"):
            raise NotationError(f"move {text!r} is neither roll nor hold")
        action = ROLL if word[0] == "r" else HOLD
        if bool(state.terminated):
            raise NotationError(f"move {text!r} is not possible: the game is over")
        if bool(state.is_chance):
            raise NotationError(f"move {text!r} is not possible: the die is in the air")
        if action == HOLD and int(state.turn_points) == 0:
            raise NotationError("hold is not possible: the turn has brought nothing yet, so roll")
        if action == ROLL and int(state.scores[int(state.to_play)]) + int(state.turn_points) >= GOAL:
            raise NotationError("roll is not possible: the points of this turn win, so hold")
        return action

    def format_state(self, state: Any) -> str:
        """Scores, the turn's points, who is to play, and whether the die is in the air."""
        air = "?" if bool(state.is_chance) else ""
        one, two = (int(s) for s in state.scores)
        return f"{one}-{two}+{int(state.turn_points)} {int(state.to_play) + 1}{air}"

    def parse_state(self, text: str) -> PigState:
        """As `format_state` writes it."""
        found = re.fullmatch(r"(\d+)-(\d+)\+(\d+) ([12])(\??)", text.strip())
        if not found:
            raise NotationError(f"position {text!r}: write scores, turn and player as in 34-50+12 1 (? if rolling)")
        one, two, turn, player = (int(g) for g in found.groups()[:4])
        in_air = bool(found[5])
        scores = (one, two)
        mine, yours = scores[player - 1], scores[2 - player]
        if mine >= GOAL or (yours >= GOAL and (turn or in_air)):
            raise NotationError(
                f"position {text!r} cannot arise: a player with {GOAL} points has won and the game is over"
            )
        if max(mine + turn, *scores) > GOAL + 5:  # 99 and a six
            raise NotationError(
                f"position {text!r} cannot arise: a turn stops at {GOAL} points, {GOAL + 5} at the most"
            )
        if turn == 1:
            raise NotationError(
                f"position {text!r} cannot arise: a one loses the turn, so it cannot have brought 1 point"
            )
        if in_air and mine + turn >= GOAL:
            raise NotationError(f"position {text!r} cannot arise: with {mine + turn} points the turn wins by holding")
        state = _state(jnp.array(scores, jnp.int16), jnp.int16(turn), jnp.int8(player - 1))
        return replace(state, is_chance=jnp.bool_(in_air))

    def format_chance(self, state: Any, outcome: int) -> str:
        """The face."""
        return str(int(outcome) + 1)

    def draw(self, state: Any) -> str:
        """The scores in words."""
        one, two = (int(s) for s in state.scores)
        who = f"player {int(state.to_play) + 1}"
        if bool(state.terminated):
            now = f"player {1 if one >= GOAL else 2} has won"
        elif bool(state.is_chance):
            now = f"{who} has thrown the die; the turn has brought {int(state.turn_points)}"
        else:
            now = f"{who} to play; the turn has brought {int(state.turn_points)}"
        return f"player 1: {one}   player 2: {two}\n{now}"

    def explain(self) -> str:
        """Words."""
        return "Moves are roll and hold. Positions are 34-50+12 1: both scores, this turn's points, who is to play."
