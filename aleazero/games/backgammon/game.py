"""Backgammon: money play without the cube. Rules only; whole turns are in `turns.py`, words in `notation.py`.

A turn is one action per checker: `25 * 6` actions name a source (0 to 23 are points 1 to 24 of the player to move, 24
the bar) and a die, `source * 6 + die - 1`; action 150 passes, where nothing moves. After a turn nature rolls. The first
roll is never a double and decides who starts: outcomes 0 to 14 let seat 0 start, 15 to 29 seat 1. Later rolls are
outcomes 0 to 20: the fifteen mixed ones, then the doubles.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.game import FlatPlays, Game, GameSpec, Notation, Outcome
from aleazero.core.struct import replace, struct
from aleazero.games.backgammon import bearoff, starts, turns
from aleazero.games.backgammon.board import (
    CHECKERS,
    PLACES,
    Board,
    each_place,
    four,
    landing,
    move,
    planes,
    points_won,
    several,
    some,
    sources,
    turned,
)
from aleazero.games.backgammon.encode import CONTACT, INPUTS, observe
from aleazero.games.backgammon.notation import BackgammonNotation

SOURCES, FACES = 25, 6
PASS = SOURCES * FACES
ROLLS = tuple((a, b) for a in range(1, 7) for b in range(1, a)) + tuple((d, d) for d in range(1, 7))
MIXED = 15  # of them
OPENINGS = 2 * MIXED
OUTCOMES = tuple(
    Outcome(name, sign * points)
    for sign, suffix in ((1.0, "won"), (-1.0, "lost"))
    for points, name in ((1.0, f"single {suffix}"), (2.0, f"gammon {suffix}"), (3.0, f"backgammon {suffix}"))
)
_START = {24: 2, 13: 5, 8: 3, 6: 5}
_CHANCES = np.zeros((2, OPENINGS), np.float32)
_CHANCES[0, :MIXED], _CHANCES[0, MIXED : len(ROLLS)] = 2 / 36, 1 / 36
_CHANCES[1] = 1 / OPENINGS


@struct
class BackgammonState:
    """A position; fields as in `core.game.State`. The board is seen by to_play, also at chance states."""

    to_play: Array
    is_chance: Array
    terminated: Array
    rewards: Array
    returns: Array
    mine: Array  # [4] uint32: to_play's checkers (see board.py)
    theirs: Array  # [4] uint32: the other side's, in to_play's places
    dice: Array  # [2] int8: dice to play, larger first; a double twice, a played die as 0
    left: Array  # [] int8: moves they are good for
    opening: Array  # [] bool: the roll to come decides who starts


class Backgammon(Game):
    """The rules. `chunk` is how many plays `plays` lists at a time, for each lane of the batch."""

    spec = GameSpec(
        name="backgammon",
        version=1,
        num_players=2,
        num_actions=PASS + 1,
        max_legal=2 * CHECKERS,
        observation_shape=(INPUTS,),
        outcomes=OUTCOMES,
        max_plies=3000,
        chance="explicit",
        num_chance_outcomes=OPENINGS,
        afterstate_values=True,
        phase_input=CONTACT,
    )

    def __init__(self, chunk: int = 8) -> None:
        self.chunk = chunk
        self.plays = self._plays
        self.plays_start = self._plays_start
        self.ending = self._ending
        self.starts = {
            "short": functools.partial(_begin, starts.short, True),
            "race": functools.partial(_begin, starts.race, False),
            "bearoff": functools.partial(_begin, starts.bearoff, False),
            "midgame": functools.partial(_begin, starts.midgame, False),
        }

    @property
    def num_later_outcomes(self) -> int:
        """Two dice: 21; the others are opening rolls."""
        return len(ROLLS)

    def init(self, key: Array) -> BackgammonState:
        """Before the opening roll."""
        side = np.zeros(PLACES, int)
        for point, number in _START.items():
            side[point] = number
        mine, theirs = (jnp.asarray(np.stack(planes(counts))) for counts in (side, side[::-1]))
        return state_of(mine, theirs, jnp.int8(0), opening=jnp.bool_(True))

    def legal_list(self, state: BackgammonState) -> Array:
        """Larger die first, then smaller, from the lowest source on; or to pass."""
        board, mine, blocked, places = _look(state)
        larger, smaller = state.dice.astype(jnp.uint32)
        open_ = ~state.is_chance & ~state.terminated
        both = (state.left == 2) & (larger != smaller)
        by_larger, by_smaller = sources(mine, blocked, larger), sources(mine, blocked, smaller)
        two = [
            ((places & single) != 0) & (_then(board, mine, blocked, places, die, other) != 0)
            for single, die, other in ((by_larger, larger, smaller), (by_smaller, smaller, larger))
        ]
        any_two = two[0].any() | two[1].any()
        first = jnp.where(both & any_two, two[0], (places & by_larger) != 0)
        second = jnp.where(any_two, two[1], ((places & by_smaller) != 0) & (by_larger == 0)) & both
        number = jax.lax.population_count(places - 1).astype(jnp.int16) - 1  # bit k is source k - 1
        listed = [
            jnp.where(may & (places != 0) & open_, number * FACES + die.astype(jnp.int16) - 1, jnp.int16(-1))
            for may, die in ((first, larger), (second, smaller))
        ]
        moves = jnp.concatenate(listed)
        stuck = open_ & (moves < 0).all()
        return moves.at[0].set(jnp.where(stuck, jnp.int16(PASS), moves[0]))

    def apply_action(self, state: BackgammonState, action: Array) -> BackgammonState:
        """One checker moves; the turn ends when nothing more can."""
        action = action.astype(jnp.uint32)
        passes = action == PASS
        die = action % FACES + 1
        source = jnp.where(passes, 0, jnp.uint32(2) << (action // FACES))
        board = move(_board(state), source, die)
        larger, smaller = state.dice.astype(jnp.uint32)
        double = larger == smaller
        other = jnp.where(double, larger, larger + smaller - die)  # a played die counts as 0
        left = state.left - 1
        goes_on = (left > 0) & ~passes & (sources(some(board.mine), several(board.theirs), other) != 0)
        dice = jnp.where(goes_on, jnp.stack([other, jnp.where(double, other, 0)]), 0).astype(jnp.int8)
        return state_of(
            jnp.stack(board.mine),
            jnp.stack(board.theirs),
            state.to_play,
            dice,
            jnp.where(goes_on, left, 0).astype(jnp.int8),
        )

    def chance_probs(self, state: BackgammonState) -> Array:
        """Two dice; at the opening two different ones, one for each seat."""
        return jnp.asarray(_CHANCES)[state.opening.astype(jnp.int32)]

    def apply_chance(self, state: BackgammonState, outcome: Array) -> BackgammonState:
        """The roll, and the turn of whoever has it."""
        outcome = jnp.asarray(outcome)
        starter = outcome >= MIXED
        to_play = jnp.where(state.opening, starter.astype(jnp.int8), 1 - state.to_play)
        roll = jnp.where(state.opening & starter, outcome - MIXED, outcome)
        dice = jnp.asarray(ROLLS, jnp.int8)[roll]
        board = turned(_board(state))  # the opening position looks the same from both sides
        return replace(
            state,
            to_play=to_play.astype(jnp.int8),
            is_chance=jnp.bool_(False),
            rewards=jnp.zeros(2, jnp.float32),
            mine=jnp.stack(board.mine),
            theirs=jnp.stack(board.theirs),
            dice=dice,
            left=jnp.where(dice[0] == dice[1], 4, 2).astype(jnp.int8),
            opening=jnp.bool_(False),
        )

    def observe(self, state: BackgammonState) -> Array:
        """The board from to_play's side, and the dice left to play."""
        return observe(_board(state), state.dice, state.left, state.is_chance, state.opening)

    def pack(self, state: BackgammonState) -> Array:
        """The planes, then dice and flags in two bytes: what a board brings is worked out again."""
        words = jnp.concatenate([state.mine, state.theirs])
        dice = state.dice[0] | (state.dice[1] << 3)
        flags = state.left | (state.to_play << 3) | (state.opening.astype(jnp.int8) << 4)
        rest = jnp.stack([dice, flags]).astype(jnp.uint8)
        return jnp.concatenate([jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(-1), rest])

    def unpack(self, row: Array) -> BackgammonState:
        """The state `pack` packed."""
        words = jax.lax.bitcast_convert_type(row[:32].reshape(8, 4), jnp.uint32)
        dice, flags = row[32].astype(jnp.int8), row[33].astype(jnp.int8)
        return state_of(
            words[:4],
            words[4:],
            (flags >> 3) & 1,
            jnp.stack([dice & 7, dice >> 3]),
            flags & 7,
            (flags >> 4) > 0,
        )

    @property
    def notation(self) -> Notation:
        """Moves as `8/5`, positions as XGID or position ID."""
        return BackgammonNotation(self)

    # ---- endings

    def ending_tables(self) -> bearoff.Tables:
        """The bear-off tables, computed once and kept on disk."""
        return bearoff.load().tables

    def _ending(self, tables: bearoff.Tables, state: BackgammonState) -> tuple[Array, Array]:
        """Known once both sides have all checkers home and no contact."""
        known, after = bearoff.known_outcomes(tables, _board(state))
        return known & state.is_chance, jnp.asarray(after.moved)

    # ---- whole turns

    def _plays_start(self, states: BackgammonState) -> turns.Turns:
        dice = states.dice.astype(jnp.uint32)
        return turns.start(_boards(states), dice[:, 0], dice[:, 1], states.left.astype(jnp.int32))

    def _plays(self, states: BackgammonState, cursor: turns.Turns) -> FlatPlays:
        lanes = states.to_play.shape[0]
        chunk, cursor, done = turns.listing(cursor, self.chunk * lanes)
        mine, theirs = (jnp.stack(side, -1) for side in (chunk.board.mine, chunk.board.theirs))
        afterstates = jax.vmap(state_of)(mine, theirs, states.to_play[chunk.owner])
        return FlatPlays(chunk.owner, afterstates, chunk.count, cursor, done)


def _begin(board: Callable[[Array], starts.Planes], opening: bool, key: Array) -> BackgammonState:
    """A named start; where it is not the same for both sides, either may be on roll."""
    seat, key = jax.random.split(key)
    to_play = jnp.int8(0) if opening else jax.random.bernoulli(seat).astype(jnp.int8)
    return state_of(*board(key), to_play, opening=jnp.bool_(opening))


def _board(state: BackgammonState) -> Board:
    return Board(four(state.mine), four(state.theirs))


def _boards(states: BackgammonState) -> Board:
    mine, theirs = (four(side[:, i] for i in range(4)) for side in (states.mine, states.theirs))
    return Board(mine, theirs)


def _look(state: BackgammonState) -> tuple[Board, Array, Array, Array]:
    board = _board(state)
    mine = some(board.mine)
    return board, mine, several(board.theirs), each_place(mine)


def _then(board: Board, mine: Array, blocked: Array, places: Array, die: Array, other: Array) -> Array:
    """Sources by `other` after each of the places has moved by `die`."""
    after = (mine & ~(places & ~several(board.mine))) | landing(places, die)
    return sources(after, blocked, other)


def state_of(
    mine: Array,
    theirs: Array,
    to_play: Array,
    dice: Array | None = None,
    left: Array | None = None,
    opening: Array | None = None,
) -> BackgammonState:
    """The state of a board where to_play has moved; without dice left, nature is next unless the game is over."""
    won = points_won(Board(four(mine), four(theirs))).astype(jnp.float32)
    seat = jnp.where(to_play == 0, won, -won)
    rewards = jnp.stack([seat, -seat])
    over = won > 0
    dice = jnp.zeros(2, jnp.int8) if dice is None else dice
    return BackgammonState(
        to_play=to_play.astype(jnp.int8),
        is_chance=~over & (dice[0] == 0),
        terminated=over,
        rewards=rewards,
        returns=rewards,
        mine=mine,
        theirs=theirs,
        dice=jnp.where(over, 0, dice).astype(jnp.int8),
        left=jnp.where(over, 0, jnp.int8(0) if left is None else left).astype(jnp.int8),
        opening=jnp.bool_(False) if opening is None else opening,
    )
