"""The rules of Quoridor, as pure functions of one position.

Two pawns face each other on 9x9 squares. In turn a player moves the pawn one square or places one of ten
walls, two squares long, between squares. Whoever first reaches the row the opponent came from wins. A wall
may not overlap or cross another, nor cut either pawn off from its goal.

    row 8  72 73 ... 80   seat 0's goal, seat 1's home     a square is 9 * row + column
      ...                                                  a wall is [orientation, row, column]:
    row 1   9 10 ... 17                                    0 lies above that square and the one to its right,
    row 0   0  1 ...  8   seat 0's home, seat 1's goal     1 stands to the right of it and the one above it

Actions are the 81 squares a pawn can go to, then the 64 lying walls, then the 64 standing ones, all as the
player to move sees them: seat 1 turns the board by half, so that everybody moves up. The rules are therefore
written once, for seat 0, and seat 1 plays through `facing`. They count no plies: a game that never ends is
truncated by whoever plays it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from aleazero.core.struct import struct

SQUARES = 81
WALLS = 128
NUM_ACTIONS = SQUARES + WALLS
WALLS_EACH = 10

# A pawn has at most five moves: one for each way it can go, and where the opponent stands in one of them and
# cannot be jumped, two diagonals in place of one. On a board without walls all 128 can be placed, and with
# the opponent at the left or right edge beside the mover there are five moves too: no smaller bound holds.
PAWN_MOVES = 5
MAX_LEGAL = PAWN_MOVES + WALLS

_STEPS = np.array([9, 1, -9, -1], np.int16)  # the four ways, clockwise: up, right, down, left
_WALL_ACTIONS = np.arange(SQUARES, NUM_ACTIONS, dtype=np.int16).reshape(2, 8, 8)
_NONE = np.int16(-1)


@struct
class State:
    """A position; the first five fields as in `core.game.State`."""

    to_play: Array
    is_chance: Array
    terminated: Array
    rewards: Array
    returns: Array
    pawns: Array  # [2] int8: the square of each seat's pawn
    walls: Array  # [2, 8, 8] bool: where walls are, by orientation, row and column
    walls_left: Array  # [2] int8: walls each seat still has


def position(pawns: Array, walls: Array, walls_left: Array, to_play: Array) -> State:
    """The state of a board: whether somebody has won is read from the pawns."""
    won = (pawns[0] >= SQUARES - 9).astype(jnp.float32)
    lost = (pawns[1] < 9).astype(jnp.float32)
    points = jnp.stack([won - lost, lost - won])
    return State(
        to_play=to_play.astype(jnp.int8),
        is_chance=jnp.bool_(False),
        terminated=points[0] != 0,
        rewards=points,  # only the last move of a game pays, so its rewards are the returns
        returns=points,
        pawns=pawns.astype(jnp.int8),
        walls=walls,
        walls_left=walls_left.astype(jnp.int8),
    )


def start() -> State:
    """Pawns in the middle of their home rows, no walls, seat 0 to move."""
    return position(jnp.array([4, 76]), jnp.zeros((2, 8, 8), bool), jnp.full(2, WALLS_EACH), jnp.int8(0))


def scattered(key: Array) -> State:
    """Pawns anywhere that the game goes on, no walls, either seat to move: self-play from here soon sees games end."""
    first, second, turn = jax.random.split(key, 3)
    mine = jax.random.randint(first, (), 0, SQUARES - 9)
    yours = jax.random.randint(second, (), 9, SQUARES)
    beside = jnp.where(yours % 9 == 8, yours - 1, yours + 1)
    pawns = jnp.stack([mine, jnp.where(mine == yours, beside, yours)])
    seat = jax.random.bernoulli(turn).astype(jnp.int8)
    return position(pawns, jnp.zeros((2, 8, 8), bool), jnp.full(2, WALLS_EACH), seat)


def swap_seats(state: State) -> State:
    """The same position with the players in each other's seats, and so the board turned by half."""
    pawns = SQUARES - 1 - state.pawns[::-1]
    return position(pawns, half_turn(state.walls), state.walls_left[::-1], 1 - state.to_play)


def reflect(state: State) -> State:
    """The position in a mirror: left is right."""
    pawns = state.pawns + 8 - 2 * (state.pawns % 9)
    return position(pawns, state.walls[:, :, ::-1], state.walls_left, state.to_play)


def facing(state: State) -> State:
    """The same position with the player to move in seat 0."""
    return _choose(state.to_play == 0, state, swap_seats(state))


def half_turn(walls: Array) -> Array:
    """Walls `[2, 8, 8]`, or what is said of each, on the board turned by half."""
    return walls[:, ::-1, ::-1]


def legal_list(state: State) -> Array:
    """`[133]` int16: five places for pawn moves, then one for each wall; -1 where there is none.

    No state lacks a legal action, for there is always a pawn move. If one player had none, the two pawns
    would stand side by side with walls or edges all round the pair, and the goals of both players, eight rows
    apart, would have to lie on those two squares.
    """
    mine = facing(state)
    cuts = cuts_off(mine.walls, mine.pawns).any(0)
    can_place = fits(mine.walls) & ~cuts & (mine.walls_left[0] > 0)
    walls = jnp.where(can_place, _WALL_ACTIONS, _NONE).reshape(WALLS)
    return jnp.where(state.terminated, _NONE, jnp.concatenate([pawn_moves(mine), walls]))


def apply_action(state: State, action: Array) -> State:
    """Moves the pawn or places a wall of the player to move."""
    mine = facing(state)
    moves = action < SQUARES
    after = position(
        pawns=jnp.stack([jnp.where(moves, action, mine.pawns[0]).astype(jnp.int8), mine.pawns[1]]),
        walls=mine.walls | (action == _WALL_ACTIONS),
        walls_left=mine.walls_left - jnp.stack([~moves, False]),
        to_play=jnp.int8(1),
    )
    return _choose(state.to_play == 0, after, swap_seats(after))


def pawn_moves(state: State) -> Array:
    """`[5]` int16: where seat 0's pawn can go, -1 where there is no move.

    The first four are one for each way: the next square, or if the opponent stands there the one behind, or
    if that is shut off the one on the opponent's left. The fifth is then the one on the opponent's right.
    """
    me, you = state.pawns.astype(jnp.int16)
    shut = shut_off(state.walls)
    mine, yours = shut[:, me], shut[:, you]  # [4]: which ways are shut off for me and for you
    meets = (me + _STEPS == you) & ~mine
    left = jnp.where(jnp.roll(yours, 1), _NONE, you + np.roll(_STEPS, 1))
    right = jnp.where(jnp.roll(yours, -1), _NONE, you + np.roll(_STEPS, -1))
    jump = jnp.where(yours, left, you + _STEPS)
    first = jnp.where(mine, _NONE, jnp.where(meets, jump, me + _STEPS))
    fifth = jnp.where(meets & yours, right, _NONE).max(keepdims=True)
    return jnp.concatenate([first, fifth])


def shut_off(walls: Array) -> Array:
    """`[4, 81]` bool: whether a wall or the edge shuts off the way up, right, down or left from a square."""
    above, beside = _segments(walls)
    ways = [
        jnp.pad(above, ((0, 1), (0, 0)), constant_values=True),
        jnp.pad(beside, ((0, 0), (0, 1)), constant_values=True),
        jnp.pad(above, ((1, 0), (0, 0)), constant_values=True),
        jnp.pad(beside, ((0, 0), (1, 0)), constant_values=True),
    ]
    return jnp.stack(ways).reshape(4, SQUARES)


def fits(walls: Array) -> Array:
    """`[2, 8, 8]` bool: where another wall would neither overlap one nor cross one."""
    lying = jnp.pad(walls[0], ((0, 0), (1, 1)))
    standing = jnp.pad(walls[1], ((1, 1), (0, 0)))
    half_overlaps = jnp.stack([lying[:, :-2] | lying[:, 2:], standing[:-2] | standing[2:]])
    crosses = walls[::-1]
    return ~(walls | half_overlaps | crosses)


def cuts_off(walls: Array, pawns: Array) -> Array:
    """`[seats, 2, 8, 8]` bool: where another wall would cut each seat's pawn off from its goal.

    Asked of a wall that is there already: some are marked if the pawn is cut off now, and none if it is not.
    """
    boards = jnp.stack([walls, half_turn(walls)])
    cuts = jax.vmap(_cuts_off_top)(boards, jnp.stack([pawns[0], SQUARES - 1 - pawns[1]]))
    return jnp.stack([cuts[0], half_turn(cuts[1])])


def _cuts_off_top(walls: Array, pawn: Array) -> Array:
    """`[2, 8, 8]` bool: where another wall would cut a pawn off from the top row.

    Not a flood fill for each wall but its dual, once for all: we follow the walls, along the 10x10 corners of
    squares. The left, lower and right edges of the board count as walls; its top is open. Draw a line from
    the pawn straight up. The pawn is cut off exactly if a closed curve of walls surrounds it, and by the
    Jordan curve theorem a closed curve surrounds it exactly if it crosses the line an odd number of times.

    Each corner gets a label: 2 * (the connected piece of walls it is on) + (the parity of crossings on the
    way there along the walls; a pawn that is free has no odd curve round it, so all ways agree). Another wall
    joins three corners. It closes an odd curve exactly if two of these are on one piece and their labels,
    with the crossings of the new way between them, differ in parity: the exclusive or is then 1, and else 0
    or above 1.
    """
    above, beside = _segments(walls)
    rightward = jnp.pad(above, ((1, 1), (0, 1)))  # [10, 10]: a wall joins this corner to the one on its right
    upward = jnp.pad(beside, ((0, 1), (1, 1)))  # [10, 10]: a wall joins this corner to the one above
    rows, columns = np.indices((10, 10))
    crosses = (rows > pawn // 9) & (columns == pawn % 9)  # [10, 10]: going right from this corner does
    crossing = crosses.astype(jnp.uint8)
    label = _label_pieces(rightward, upward, crossing)
    centre = label[1:9, 1:9]
    left, right = label[1:9, :8] ^ crossing[1:9, :8], label[1:9, 2:] ^ crossing[1:9, 1:9]
    lower, upper = label[:8, 1:9], label[2:, 1:9]
    return jnp.stack([_closes_odd(left, centre, right), _closes_odd(lower, centre, upper)])


def _label_pieces(rightward: Array, upward: Array, crossing: Array) -> Array:
    """`[10, 10]` uint8: every corner's label, see `_cuts_off_top`. A piece's lowest spreads along its walls.

    Twenty walls have forty segments, so forty rounds reach every corner of any piece. The three edges of the
    board are one piece from the start, and the lowest.
    """

    def get(corners: Array, offset: int) -> Array:  # [100]: what is `offset` places on; nothing joins margins
        return jnp.pad(corners, 10)[10 + offset : 110 + offset]

    right, up, cross = (corners.reshape(100) for corners in (rightward, upward, crossing))
    cross_left = get(cross, -1)
    joined = (right, get(right, -1), up, get(up, -10))
    no_right, no_left, no_up, no_down = (jnp.where(x, jnp.uint8(0), jnp.uint8(255)) for x in joined)

    def spread(_: Array, label: Array) -> Array:
        sideways = jnp.minimum(get(label, 1) ^ cross | no_right, get(label, -1) ^ cross_left | no_left)
        updown = jnp.minimum(get(label, 10) | no_up, get(label, -10) | no_down)
        return jnp.minimum(label, jnp.minimum(sideways, updown))

    label = 2 * np.arange(100, dtype=np.uint8).reshape(10, 10)
    label[0], label[:, 0], label[:, 9] = 0, 0, 0
    rounds = 2 * (2 * WALLS_EACH)
    return jnp.reshape(lax.fori_loop(0, rounds, spread, jnp.asarray(label.reshape(100))), (10, 10))


def _closes_odd(a: Array, b: Array, c: Array) -> Array:
    """Whether joining three corners closes an odd curve."""
    return (a ^ b == 1) | (b ^ c == 1) | (a ^ c == 1)


def _segments(walls: Array) -> tuple[Array, Array]:
    """Halves of walls by the square they border on: `[8, 9]` bool above it, `[9, 8]` bool to its right."""
    above = jnp.pad(walls[0], ((0, 0), (0, 1))) | jnp.pad(walls[0], ((0, 0), (1, 0)))
    beside = jnp.pad(walls[1], ((0, 1), (0, 0))) | jnp.pad(walls[1], ((1, 0), (0, 0)))
    return above, beside


def _choose(condition: Array, yes: State, no: State) -> State:
    chosen: State = jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
    return chosen
