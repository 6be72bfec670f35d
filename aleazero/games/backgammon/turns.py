"""Whole turns: every distinct play of a roll, for a batch of positions, in chunks of any size.

A play is a list of at most four (source, die) moves. They are never all laid out: for each position a few words of
bits say which second moves go with which first one, and a play is a number into those bits.
- Two different dice: the play is named by the sources of the larger and of the smaller die, whichever is moved
  first; or one checker runs with both, by way of one of two points, which are different plays only if a blot is hit
  on the way. So no play comes twice.
- Doubles: sources in falling order name the play, and all plays are equally long; two moves are unfolded first, then
  the two (or one) that follow them.
Both dice are played if that is possible, else the larger, else the smaller; where nothing moves the play is to pass.
Knows the board; neither players nor how a game ends.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.struct import replace, struct
from aleazero.games.backgammon.board import (
    CHECKERS,
    POINTS,
    Board,
    Planes,
    each_place,
    landing,
    move,
    several,
    some,
    sources,
)

_WORDS = 2 * CHECKERS + 3  # larger die first; smaller die first; runs by way of either; one move alone
_RUN_LARGER, _RUN_SMALLER, _ALONE = 2 * CHECKERS, 2 * CHECKERS + 1, 2 * CHECKERS + 2
_PASS = 1  # as a source: no own checker stands on bit 0


@struct
class Turns:
    """The plays of a batch of rolled positions, as bits; and how far they have been listed."""

    board: Board  # [B] planes
    larger: Array  # [B] uint32: the dice
    smaller: Array  # [B] uint32
    length: Array  # [B] int32: moves in every play
    firsts: Array  # [15, B] uint32: places with own checkers, ascending; 0 where there are no more
    words: Array  # [33, B] uint32: see `_ALONE` and its neighbours
    before: Array  # [B * 33] int32: entries before each word, lane by lane
    entry: Array  # [] int32: the first entry not fully listed
    skip: Array  # [] int32: its plays already listed


@struct
class Chunk:
    """M plays, filled from the front."""

    owner: Array  # [M] int32
    board: Board  # [M] planes: the position each play leaves, still in the mover's places
    count: Array  # [] int32


def start(board: Board, larger: Array, smaller: Array, left: Array) -> Turns:
    """The plays of boards `[B]` with dice `[B]` that are good for `left` `[B]` moves, none listed yet."""
    larger, smaller = larger.astype(jnp.uint32), smaller.astype(jnp.uint32)
    mine, blocked = some(board.mine), several(board.theirs)
    firsts = each_place(mine)
    double = larger == smaller
    pairs = _mixed(board, mine, blocked, firsts, larger, smaller)
    falling = _falling(board.mine, mine, blocked, firsts, larger, sources(mine, blocked, larger))
    length = jnp.where(double, jnp.minimum(_double_length(board, larger), left), 0)
    nothing = jnp.zeros_like(pairs[: CHECKERS + 2])
    falling = jnp.where((length >= 2)[None], falling, 0)
    words = jnp.where(double[None], jnp.concatenate([falling, nothing]), pairs)
    words = jnp.where((left >= 2)[None], words, 0)  # one die alone
    two = (words != 0).any(0)
    by_larger, by_smaller = (jnp.where(die > 0, sources(mine, blocked, die), 0) for die in (larger, smaller))
    alone = jnp.where(by_larger != 0, by_larger, jnp.where(by_smaller != 0, by_smaller, jnp.uint32(_PASS)))
    length = jnp.where(double, length, jnp.where(two, 2, (alone != _PASS).astype(jnp.int32)))
    words = jnp.concatenate([words, jnp.where(two, 0, alone)[None]])
    number = jax.lax.population_count(words).astype(jnp.int32).T.reshape(-1)
    return Turns(
        board=board,
        larger=larger,
        smaller=smaller,
        length=length,
        firsts=firsts,
        words=words,
        before=jnp.cumsum(number) - number,
        entry=jnp.int32(0),
        skip=jnp.int32(0),
    )


def listing(turns: Turns, size: int) -> tuple[Chunk, Turns, Array]:
    """The next `size` plays, the turns with those listed, and whether that was all."""
    entries = turns.before[-1] + jax.lax.population_count(turns.words[-1, -1]).astype(jnp.int32)
    # Entries: plays of at most two moves, or the first two moves of a double.
    index = turns.entry + jnp.arange(size, dtype=jnp.int32)
    exists = index < entries
    word = _spread(turns.before - turns.entry, size)  # which word each entry is in, lane by lane
    lane, kind = word // _WORDS, word % _WORDS
    bit = _nth_bit(turns.words.T.reshape(-1)[word], index - turns.before[word])
    board, larger, smaller = _gather((turns.board, turns.larger, turns.smaller), lane)
    first = turns.firsts.T.reshape(-1)[lane * CHECKERS + kind % CHECKERS]
    one, by_one, two, by_two = _moves(kind, first, bit, board, larger, smaller)
    board = move(move(board, one, by_one), two, by_two)
    # The rest of a double.
    left = jnp.where(larger == smaller, turns.length[lane] - 2, 0)
    number = jnp.where(left > 0, _sizes(_rest(board, larger, two, left)[0]).sum(0), 1)
    number = jnp.where(exists, number, 0)
    # Kept as they are: fused into what reads them below, they would be worked out for every play anew.
    lane, board, two, larger, left, number = jax.lax.optimization_barrier((lane, board, two, larger, left, number))
    before = jnp.cumsum(number) - number - turns.skip
    listed = before[-1] + number[-1]  # plays of these entries not listed before
    # Plays.
    place = jnp.arange(size, dtype=jnp.int32)
    at = _spread(before, size)
    board, die, last, left = _gather((board, larger, two, left), at)
    third, fourth = _nth_pair(*_rest(board, die, last, left), place - before[at])
    more = left > 0
    third, fourth = jnp.where(more, third, 0), jnp.where(left > 1, fourth, 0)
    board = move(move(board, third, die), fourth, die)
    chunk = Chunk(owner=lane[at], board=board, count=jnp.minimum(listed, size))
    # What comes next: the first entry that has plays beyond this chunk.
    full = listed > size
    done = (before + number <= size).astype(jnp.int32).sum()  # entries listed to their end
    skip = jnp.where(full, size - before[jnp.minimum(done, size - 1)], 0)
    turns = replace(turns, entry=turns.entry + done, skip=skip)
    return chunk, turns, turns.entry >= entries


# ---- which moves go together


def _mixed(board: Board, mine: Array, blocked: Array, firsts: Array, larger: Array, smaller: Array) -> Array:
    """`[32, B]`: the two-move plays of different dice."""
    by_larger, run_larger = _seconds(board.mine, mine, blocked, firsts, larger, smaller)
    by_smaller, run_smaller = _seconds(board.mine, mine, blocked, firsts, smaller, larger)
    # The same two sources in the other order are the same play.
    both = ((by_larger[:, None] & firsts[None]) != 0) & (firsts[None] != 0)  # [larger's source, smaller's source, B]
    again = jnp.where(both, firsts[:, None], 0).sum(0, dtype=jnp.uint32)
    # Two checkers off that either die would take: the higher one by the larger die.
    off = (jnp.uint32(2) << smaller) - 1
    swapped = jnp.where((firsts & off[None]) != 0, firsts - 1, 0)  # places below the smaller die's source
    by_smaller = by_smaller & ~again & ~swapped
    # A run by either way is one play if nothing is hit on the way.
    blots = some(board.theirs) & ~blocked
    hits = ((blots & jnp.uint32(POINTS)) << larger) | ((blots & jnp.uint32(POINTS)) << smaller)
    return jnp.concatenate([by_larger, by_smaller, run_larger[None], (run_smaller & ~(run_larger & ~hits))[None]])


def _seconds(
    planes: Planes, mine: Array, blocked: Array, firsts: Array, die: Array, other: Array
) -> tuple[Array, Array]:
    """For each first source, moved by `die`: the sources of another checker by `other`; and which of them run on."""
    mine, blocked, die, other = (x[None] for x in (mine, blocked, die, other))
    may = (firsts & sources(mine, blocked, die)) != 0
    target = landing(firsts, die)
    after = (mine & ~(firsts & ~several(planes)[None])) | target
    seconds = jnp.where(may, sources(after, blocked, other), 0)
    run = jnp.where((seconds & target) != 0, firsts, 0).sum(0, dtype=jnp.uint32)
    # A checker that lands where the first one came from has only taken its place: a run.
    return seconds & ~target & ~(firsts << other), run


def _falling(planes: Planes, mine: Array, blocked: Array, firsts: Array, die: Array, allowed: Array) -> Array:
    """`[15, B]`: of a double, the sources of the second move for each source of the first, not above it."""
    mine, blocked, die, allowed = (x[None] for x in (mine, blocked, die, allowed))
    may = (firsts & allowed) != 0
    after = (mine & ~(firsts & ~several(planes)[None])) | landing(firsts, die)
    return jnp.where(may, sources(after, blocked, die) & ((firsts << 1) - 1), 0)


def _rest(board: Board, die: Array, last: Array, left: Array) -> tuple[Array, Array]:
    """`[15, M]`: how a double goes on after two moves, the second from `last`: fourth sources for each third one."""
    mine, blocked = some(board.mine), several(board.theirs)
    allowed = sources(mine, blocked, die) & ((last << 1) - 1)
    thirds = each_place(mine)
    fourths = _falling(board.mine, mine, blocked, thirds, die, allowed)
    # Where the third move ends the play, its word has one bit.
    return jnp.where((left > 1)[None], fourths, thirds & allowed[None]), thirds


def _double_length(board: Board, die: Array) -> Array:
    """How many moves a double allows: the same whichever are made, for no move takes another one away."""
    blocked, length = several(board.theirs), jnp.zeros(die.shape, jnp.int32)
    for _ in range(4):
        can = sources(some(board.mine), blocked, die)
        bit = can & (~can + 1)
        board = move(board, bit, die)
        length = length + (bit != 0)
    # Kept as it is: fused into all that reads it, the chain makes XLA's compiler for CPUs work for minutes.
    return jax.lax.optimization_barrier(length)


def _moves(
    kind: Array, first: Array, bit: Array, board: Board, larger: Array, smaller: Array
) -> tuple[Array, Array, Array, Array]:
    """The two moves of an entry: source and die, source and die; a source of 0 is no move."""
    swap = ((kind >= CHECKERS) & (kind < _RUN_LARGER)) | (kind == _RUN_SMALLER)
    by_one, by_two = jnp.where(swap, smaller, larger), jnp.where(swap, larger, smaller)
    alone = kind == _ALONE
    one = jnp.where(kind < _RUN_LARGER, first, bit & ~jnp.uint32(_PASS))
    two = jnp.where(kind < _RUN_LARGER, bit, jnp.where(alone, 0, landing(bit, by_one)))
    mine, blocked = some(board.mine), several(board.theirs)
    by_one = jnp.where(alone & (sources(mine, blocked, larger) == 0), smaller, by_one)
    return one, by_one, two, by_two


# ---- bits


def _nth_bit(word: Array, number: Array) -> Array:
    """The bit of a word that has `number` bits below it."""
    place = jnp.zeros_like(word)
    for width in (16, 8, 4, 2, 1):
        below = jax.lax.population_count(word & jnp.uint32((1 << width) - 1)).astype(jnp.int32)
        above = number >= below
        number = jnp.where(above, number - below, number)
        word = jnp.where(above, word >> width, word)
        place = jnp.where(above, place + width, place)
    return jnp.uint32(1) << place


def _nth_pair(words: Array, places: Array, number: Array) -> tuple[Array, Array]:
    """Of words `[15, M]` and the places they belong to: the place and the bit that have `number` pairs before them."""
    sizes = _sizes(words)
    before = jnp.cumsum(sizes, 0) - sizes
    here = (before <= number[None]) & (number[None] < before + sizes)
    word, place = (jnp.where(here, x, 0).sum(0, dtype=jnp.uint32) for x in (words, places))
    return place, _nth_bit(word, number - jnp.where(here, before, 0).sum(0))


def _sizes(words: Array) -> Array:
    return jax.lax.population_count(words).astype(jnp.int32)


def _spread(before: Array, size: int) -> Array:
    """`[size]`: which item each of the places 0 to size - 1 falls in, where item i begins at `before[i]`, ascending."""
    items = jnp.arange(before.shape[0], dtype=jnp.int32)
    # Of items that begin before place 0 the last one counts; empty ones are overtaken by those that follow.
    marks = jnp.zeros(size, jnp.int32).at[jnp.maximum(before, 0)].max(items, mode="drop")
    return jax.lax.cummax(marks)


def _gather(tree: Any, index: Array) -> Any:
    return jax.tree.map(lambda x: x[index], tree)
