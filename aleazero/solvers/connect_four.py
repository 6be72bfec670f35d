"""Connect Four solved exactly: a position's value and each move's, win, draw or loss for the side to move.

A position is two 49-bit words, the stones of the side to move and the stones of both. Column c owns the bits
7c to 7c + 6, its bottom square first; the seventh bit of a column is never a stone, so that lines do not run
from one column into the next:

    .  .  .  .  .  .  .      <- bits 6, 13, 20, ..: never set
    5 12 19 26 33 40 47
    4 11 18 25 32 39 46
    3 10 17 24 31 38 45
    2  9 16 23 30 37 44
    1  8 15 22 29 36 43
    0  7 14 21 28 35 42

The search asks only yes-or-no questions (does the side to move get at least a draw? a win?): alpha-beta in
which every window is null. It plays no move that loses at once, looks first at the moves that make most
threats, and remembers what it proved in a transposition table that holds whole keys: a small table costs
time, never a wrong answer.

Numba compiles the search at its first use (one to two seconds). Without Numba the same functions run as plain
Python, some seventy times slower: enough for positions of 28 stones and more. All stored words stay
below 2^63 and what shifts push beyond is masked away, so Numba's int64 and Python's integers agree.

Does not know how long a win takes, whether play can have led to a position (only that its stones can stand
so), nor the project's own rules of the game in `aleazero.games`. Loads no JAX.
"""

from __future__ import annotations

import functools
import logging
import threading

import numpy as np

logger = logging.getLogger(__name__)

ROWS, COLUMNS = 6, 7
FULL_COLUMN = -2  # the value of a move that cannot be played

_HEIGHT = ROWS + 1  # bits per column
_SQUARES = ROWS * COLUMNS
_BOTTOM = sum(1 << _HEIGHT * column for column in range(COLUMNS))
_BOARD = _BOTTOM * ((1 << ROWS) - 1)
_COLUMN = (1 << ROWS) - 1  # the squares of column 0
_CENTRE_FIRST = (3, 2, 4, 1, 5, 0, 6)
_UNSET = -1
_compiling = threading.Lock()

# A table entry: the key (49 bits), how much work it saved (6 bits), and the bounds of the value, each plus
# one (2 bits each). No key is 0, so a table of zeros is an empty table.
_KEY_SHIFT = 10
_WORK_SHIFT = 4
_WORK_MASK = 63
_LOWER_SHIFT = 2
_BOUND_MASK = 3


class Table:
    """What has been proved so far, for any number of calls; it holds only facts, so sharing it is safe.

    Takes `8 * 2**log2_entries` bytes: 32 MiB as it comes, which suits positions of 14 stones and more; 24
    (128 MiB) suits those of 6 to 13. For one process; threads that share it take turns.
    """

    def __init__(self, log2_entries: int = 22) -> None:
        if not 1 <= log2_entries <= 32:
            raise ValueError(f"log2_entries is {log2_entries}: allowed are 1 (16 bytes) to 32 (32 GiB)")
        self.entries = np.zeros(1 << log2_entries, np.int64)
        self.scratch = np.zeros(_SQUARES * COLUMNS, np.int64)  # each ply's ordered moves
        self.counts = np.zeros(1, np.int64)
        self.lock = threading.Lock()

    @property
    def nodes(self) -> int:
        """Positions searched with this table so far."""
        return int(self.counts[0])

    def clear(self) -> None:
        """Forgets everything, which helps when the next early position has little to do with the last."""
        self.entries.fill(0)


@functools.cache
def default_table() -> Table:
    """The table of calls that name none: made at first use, kept for the life of the process (32 MiB)."""
    return Table()


def solve(boards: np.ndarray, table: Table | None = None) -> np.ndarray:
    """The value of each position for the side to move.

    Args:
        boards: [n, 6, 7] integers, row 0 at the bottom: -1 empty, else the seat whose stone it is. Seat 0
            moves first, so who is to move follows from the counts.
        table: what to remember in; `default_table()` if none.

    Returns:
        [n] int8: 1 win, 0 draw, -1 loss.

    Raises:
        ValueError: a board is finished or cannot arise.
    """
    own, mask = pack(boards)
    table = table or default_table()
    _compile()
    positions = zip(own.tolist(), mask.tolist(), strict=True)
    with table.lock:
        return np.array([_ask(stones, taken, table) for stones, taken in positions], np.int8)


def solve_moves(boards: np.ndarray, table: Table | None = None) -> np.ndarray:
    """The value of each move of each position, [n, 7] int8, for the side that makes it; -2 for a full column.

    Takes and raises the same as `solve`.
    """
    own, mask = pack(boards)
    table = table or default_table()
    _compile()
    values = np.full((len(own), COLUMNS), FULL_COLUMN, np.int8)
    for row, stones, taken in zip(values, own.tolist(), mask.tolist(), strict=True):
        free = playable(taken)
        wins = winning_squares(stones, taken)
        for column in range(COLUMNS):
            move = free & (_COLUMN << _HEIGHT * column)
            if move & wins:
                row[column] = 1
            elif move:
                with table.lock:
                    row[column] = -_ask(stones ^ taken, taken | move, table)
    return values


def pack(boards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The words of checked boards: stones of the side to move [n] int64, stones of both [n] int64."""
    boards = np.asarray(boards)
    _check(boards)
    taken = boards != _UNSET
    to_move = taken.sum((1, 2)) % 2
    squares = _HEIGHT * np.arange(COLUMNS, dtype=np.int64) + np.arange(ROWS, dtype=np.int64)[:, None]
    bits = np.int64(1) << squares  # [6, 7]
    own = np.where(boards == to_move[:, None, None], bits, 0).sum((1, 2))
    return own, np.where(taken, bits, 0).sum((1, 2))


def unpack(own: int, mask: int) -> np.ndarray:
    """The board [6, 7] int8 of two words; the inverse of `pack` for one position."""
    to_move = mask.bit_count() % 2
    board = np.full((ROWS, COLUMNS), _UNSET, np.int8)
    for column in range(COLUMNS):
        for row in range(ROWS):
            bit = 1 << _HEIGHT * column + row
            if mask & bit:
                board[row, column] = to_move if own & bit else 1 - to_move
    return board


def _check(boards: np.ndarray) -> None:
    """Refuses what is not a batch of unfinished positions, naming the first board at fault."""
    if boards.ndim != 3 or boards.shape[1:] != (ROWS, COLUMNS) or not np.issubdtype(boards.dtype, np.integer):
        raise ValueError(
            f"boards are {boards.dtype}{list(boards.shape)}: give integers of shape [n, 6, 7], row 0 at the "
            "bottom; for a single board pass board[None]"
        )
    first, second = (boards == 0).sum((1, 2)), (boards == 1).sum((1, 2))
    taken = boards != _UNSET
    faults = {
        "has values other than -1 (empty), 0 and 1 (the seats)": (boards < -1) | (boards > 1),
        "has a stone above an empty square; row 0 is the bottom": taken[:, 1:] & ~taken[:, :-1],
        "cannot arise: seat 0 moves first, so it has as many stones as seat 1 or one more": (
            (first - second != 0) & (first - second != 1)
        ),
        "is finished: a seat has four in a row": _four_in_row(boards == 0) | _four_in_row(boards == 1),
        "is finished: it is full": first + second == _SQUARES,
    }
    for fault, where in faults.items():
        bad = np.unique(np.nonzero(where)[0])
        if len(bad):
            raise ValueError(f"board {bad[0]} {fault}; it is {boards[bad[0]].tolist()}")


def _four_in_row(stones: np.ndarray) -> np.ndarray:
    """Whether [n, 6, 7] stones of one seat hold a line, [n] bool; slow and plain, for checks."""
    padded = np.pad(stones, ((0, 0), (0, 3), (3, 3)))
    lines = np.zeros_like(stones)
    for up, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        shifted = (padded[:, k * up :, 3 + k * right :][:, :ROWS, :COLUMNS] for k in range(4))
        lines |= functools.reduce(np.logical_and, shifted)
    return np.asarray(lines.any((1, 2)))


def _ask(own: int, mask: int, table: Table) -> int:
    """The value of one position, by at most two questions."""
    if winning_squares(own, mask) & playable(mask):
        return 1
    ply = mask.bit_count()
    memory = table.entries, table.scratch, table.counts
    if _reaches(own, mask, 1, ply, *memory):
        return 1
    return 0 if _reaches(own, mask, 0, ply, *memory) else -1


def _compile() -> None:
    """Puts Numba's compiled functions in the place of the plain ones, once, where there is Numba."""
    with _compiling:
        _compile_once()


@functools.cache
def _compile_once() -> None:
    try:
        import numba
    except ImportError:
        logger.warning("Numba is not installed, so the solver is slow: pip install 'aleazero[play]'")
        return
    # Numba looks a callee up by its global name when it compiles the caller, hence the rebinding.
    for function in (playable, winning_squares, _count_bits, _slot, _recall, _remember, _order, _reaches):
        globals()[function.__name__] = numba.njit(function, nogil=True)  # others go on meanwhile


# From here on: what Numba compiles. Arrays' elements pass through int() because plain Python would otherwise
# go on in NumPy's scalars, which are slow and overflow with a warning.


def playable(mask: int) -> int:
    """The lowest empty square of each column that has one."""
    return (mask + _BOTTOM) & _BOARD


def winning_squares(stones: int, mask: int) -> int:
    """The empty squares, whether playable now or not, that would complete a line of `stones`."""
    found = (stones << 1) & (stones << 2) & (stones << 3)
    for step in (_HEIGHT - 1, _HEIGHT, _HEIGHT + 1):
        pair = (stones << step) & (stones << 2 * step)
        found |= pair & (stones << 3 * step)
        found |= pair & (stones >> step)
        pair = (stones >> step) & (stones >> 2 * step)
        found |= pair & (stones << step)
        found |= pair & (stones >> 3 * step)
    return found & (_BOARD ^ mask)


def _count_bits(word: int) -> int:
    """How many bits are set; the loop is one LLVM turns into a single instruction."""
    count = 0
    while word:
        word &= word - 1
        count += 1
    return count


def _slot(key: int, size: int) -> int:
    """The first of the two neighbouring entries where a key may be."""
    mixed = (key ^ (key >> 25)) * 0x2F0B  # below 2^63: the key has 49 bits and the factor 14
    return ((mixed ^ (mixed >> 29)) << 1) & (size - 2)


def _recall(key: int, slot: int, entries: np.ndarray) -> tuple[int, int]:
    """The bounds known of a position's value; (-1, 1) is to know nothing."""
    entry = int(entries[slot])
    if entry >> _KEY_SHIFT != key:
        entry = int(entries[slot + 1])
    if entry >> _KEY_SHIFT != key:
        return -1, 1
    return ((entry >> _LOWER_SHIFT) & _BOUND_MASK) - 1, (entry & _BOUND_MASK) - 1


def _remember(key: int, slot: int, lower: int, upper: int, nodes: int, entries: np.ndarray) -> None:
    """Of the two places, the first keeps what took most nodes to prove, the second what came last."""
    work = 0
    while nodes:
        work += 1
        nodes >>= 1
    entry = key << _KEY_SHIFT | work << _WORK_SHIFT | (lower + 1) << _LOWER_SHIFT | (upper + 1)
    first = int(entries[slot])
    if first >> _KEY_SHIFT == key:
        entries[slot] = entry
    elif (first >> _WORK_SHIFT) & _WORK_MASK <= work:
        entries[slot] = entry
        entries[slot + 1] = first
    else:
        entries[slot + 1] = entry


def _order(own: int, mask: int, moves: int, scratch: np.ndarray, base: int) -> int:
    """Writes the moves to scratch[base:], those that leave most winning squares first, then the central ones.

    Returns how many there are.
    """
    count = 0
    for column in _CENTRE_FIRST:
        move = moves & (_COLUMN << _HEIGHT * column)
        if move:
            score = _count_bits(winning_squares(own | move, mask | move))
            at = base + count
            while at > base and int(scratch[at - 1]) >> 49 < score:
                scratch[at] = scratch[at - 1]
                at -= 1
            scratch[at] = score << 49 | move
            count += 1
    return count


def _reaches(
    own: int, mask: int, goal: int, ply: int, entries: np.ndarray, scratch: np.ndarray, counts: np.ndarray
) -> bool:
    """Whether the side to move gets at least `goal`, 1 for a win or 0 for a draw.

    Only for positions where it cannot win at once: the caller sees to that, here by playing safe moves only.
    """
    counts[0] += 1
    theirs = own ^ mask
    threats = winning_squares(theirs, mask)
    free = playable(mask)
    forced = free & threats
    if forced & (forced - 1):
        return False  # two squares to block, one move
    moves = (forced if forced else free) & ~(threats >> 1)  # never right below a square that wins for them
    if moves == 0:
        return free == 0 and goal == 0
    if ply >= _SQUARES - 2:
        return goal == 0  # we cannot win now, and after a safe move they cannot fill the last square to win
    if moves & (moves - 1) == 0:
        return not _reaches(theirs, mask | moves, 1 - goal, ply + 1, entries, scratch, counts)

    key = own + mask + _BOTTOM  # unique: a column of h stones adds 2^h to 2^(h + 1) - 1
    slot = _slot(key, len(entries))
    lower, upper = _recall(key, slot, entries)
    if lower >= goal:
        return True
    if upper < goal:
        return False

    before = int(counts[0])
    reached = False
    base = ply * COLUMNS
    for at in range(base, base + _order(own, mask, moves, scratch, base)):
        move = int(scratch[at]) & _BOARD
        if not _reaches(theirs, mask | move, 1 - goal, ply + 1, entries, scratch, counts):
            reached = True
            break
    if reached:
        lower = goal
    else:
        upper = goal - 1
    _remember(key, slot, lower, upper, int(counts[0]) - before, entries)
    return reached
