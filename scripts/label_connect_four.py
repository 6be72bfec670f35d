"""Makes Connect Four positions from games of mixed strength and writes the exact value of every move.

    python scripts/label_connect_four.py --late 1000 --middle 1000 --seed 1 --out solved.npz
    python scripts/label_connect_four.py --early 300 --processes 16 --seconds 500 --out early.npz
    python scripts/label_connect_four.py --merge solved.npz early.npz --out solved.npz

What comes with the package, and judges players in `alea rate connect_four`, is aleazero/data/connect_four_solved.npz.
The file holds `boards` [n, 6, 7] int8 (row 0 at the bottom; -1 empty, else the seat), `values` [n, 7] int8
(1 win, 0 draw, -1 loss for the side to move; -2 a full column) and `stones` [n] int8, group after group
(late: 28 stones and more, middle: 14 to 27, early: 6 to 13), no two positions the same or mirror images.

Item i of a group depends on the seed, the group and i alone, so the number of processes changes nothing; only
--seconds does, by leaving out what was not solved in time. Positions with a win at once are thinned out. Late
and middle ones whose moves are all worth the same are mostly left out, early ones are kept: they cost too
much to throw away. Needs numpy and numba only; runs from the source tree.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from aleazero.solvers.connect_four import FULL_COLUMN, Table, playable, solve_moves, unpack, winning_squares

GROUPS = {"late": (28, 40), "middle": (14, 27), "early": (6, 13)}  # stones, from and to; 41 leave no choice
EPSILONS = (0.0, 0.25, 0.5, 0.75, 1.0)
SOLVED_FROM = 22  # stones from which a player who does not err plays perfectly; before, only threat-aware
KEEP_EASY = 0.25  # the share kept of positions with a win at once: weak players leave too many of them
KEEP_EQUAL = 0.1  # the share of late and middle positions kept whose moves all have the same value
TRIES = 300  # games of one length and strength before another is drawn: most random games end early


class Labelled(NamedTuple):
    """One solved position."""

    group: str
    item: int
    board: np.ndarray  # [6, 7] int8
    values: np.ndarray  # [7] int8
    seconds: float  # for solving it, not for finding it


_table: Table | None = None  # each process its own


def start_process(log2_entries: int) -> None:
    """Makes the process's table and compiles, so that the first position's time is its own."""
    global _table
    _table = Table(log2_entries)
    label(("late", 0, 0))


def label(job: tuple[str, int, int]) -> Labelled:
    """Finds and solves an item, given as group, seed and number."""
    group, seed, item = job
    rng = random.Random(f"{seed}/{group}/{item}")
    assert _table is not None
    while True:
        own, mask = find_position(rng, *GROUPS[group])
        if winning_squares(own, mask) & playable(mask) and rng.random() >= KEEP_EASY:
            continue
        board = unpack(own, mask)
        if group == "early":
            _table.clear()  # else what took long for the last position keeps its place and slows this one
        started = time.perf_counter()
        values = solve_moves(board[None], _table)[0]
        seconds = time.perf_counter() - started
        decides = len(set(values[values != FULL_COLUMN].tolist())) > 1
        if decides or group == "early" or rng.random() < KEEP_EQUAL:
            return Labelled(group, item, board, values, seconds)


def find_position(rng: random.Random, low: int, high: int) -> tuple[int, int]:
    """A position, not finished, of `low` to `high` stones: the stones of the side to move, and of both."""
    while True:
        stones = rng.randint(low, high)
        epsilons = rng.choice(EPSILONS), rng.choice(EPSILONS)
        for _ in range(TRIES):
            own, mask = 0, 0
            while mask.bit_count() < stones:
                move = choose(rng, own, mask, epsilons[mask.bit_count() % 2])
                if move & winning_squares(own, mask):
                    break
                own, mask = own ^ mask, mask | move
            else:
                return own, mask


def choose(rng: random.Random, own: int, mask: int, epsilon: float) -> int:
    """A move, as the bit of its square: random with probability `epsilon`, else the best the player sees."""
    moves = playable(mask)
    if rng.random() >= epsilon:
        moves = best_seen(own, mask)
    bits = [1 << k for k in range(49) if moves >> k & 1]
    return rng.choice(bits)


def best_seen(own: int, mask: int) -> int:
    """The moves of a player who wins, blocks and sets up no win for the other; late, who plays perfectly."""
    moves = playable(mask)
    if mask.bit_count() >= SOLVED_FROM:
        values = solve_moves(unpack(own, mask)[None], _table)[0]
        return moves & sum(63 << 7 * int(column) for column in np.flatnonzero(values == values.max()))
    theirs = winning_squares(own ^ mask, mask)
    for wish in (winning_squares(own, mask), theirs, ~(theirs >> 1)):
        if moves & wish:
            moves &= wish
    return moves


def collect(jobs_wanted: dict[str, int], args: argparse.Namespace) -> list[Labelled]:
    """Solves until each group has what is wanted or the time is up; always returns what it has."""
    deadline = time.monotonic() + args.seconds
    done: list[Labelled] = []
    context = multiprocessing.get_context("spawn")
    with context.Pool(args.processes, start_process, (args.log2_entries,)) as pool:
        for group, wanted in jobs_wanted.items():
            asked = 0
            while (missing := wanted - len(distinct(one for one in done if one.group == group))) > 0:
                jobs = [(group, args.seed, item) for item in range(asked, asked + missing)]
                asked += missing
                results = pool.imap_unordered(label, jobs)
                for _ in jobs:
                    try:
                        done.append(results.next(max(0.0, deadline - time.monotonic())))
                    except multiprocessing.TimeoutError:
                        say(f"time is up after {args.seconds:g} s")
                        return done
                    report(done, group, wanted)
    return done


def distinct(labelled: Iterable[Labelled]) -> list[Labelled]:
    """In the order of the items, whatever order they were solved in, without repeats and mirror images."""
    kept: dict[bytes, Labelled] = {}
    for one in sorted(labelled, key=lambda one: one.item):
        kept.setdefault(canonical(one.board), one)
    return list(kept.values())


def canonical(board: np.ndarray) -> bytes:
    """The same for a board and its mirror image, and for no other."""
    return min(board.tobytes(), board[:, ::-1].tobytes())


def report(done: list[Labelled], group: str, wanted: int) -> None:
    """A line of progress now and then."""
    times = [one.seconds for one in done if one.group == group]
    if len(times) % max(1, wanted // 20) == 0 or times[-1] > 5:
        stones = int((done[-1].board >= 0).sum())
        mean, longest = float(np.mean(times)), max(times)
        last = f"last {stones} stones in {times[-1]:.3f} s"
        say(f"{group} {len(times)}/{wanted}: {last}, mean {mean:.4f} s, longest {longest:.3f} s")


def summarise(done: list[Labelled]) -> None:
    """The time per position, by group and stones."""
    for low, high in ((28, 41), (14, 27), (10, 13), (6, 9)):
        times = [one.seconds for one in done if low <= (one.board >= 0).sum() <= high]
        if times:
            mean, median, longest = (1000 * float(f(times)) for f in (np.mean, np.median, np.max))
            each = f"mean {mean:.2f} ms, median {median:.2f} ms, longest {longest:.0f} ms"
            say(f"{low}-{high} stones: {len(times)} positions, {each}")


def read(path: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """The boards and values of a file this script wrote."""
    with np.load(path) as file:
        return list(zip(file["boards"], file["values"], strict=True))


def write(path: Path, rows: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
    """Writes by group, late first, without repeats; the old file stays whole until the new one is."""
    kept: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
    for board, values in rows:
        kept.setdefault(canonical(board), (board, values))
    boards = np.array([board for board, _ in kept.values()], np.int8).reshape(-1, 6, 7)
    values = np.array([values for _, values in kept.values()], np.int8).reshape(-1, 7)
    stones = (boards >= 0).sum((1, 2)).astype(np.int8)
    starts = [low for low, _ in GROUPS.values()]  # 28, 14, 6
    order = np.argsort([sum(count < low for low in starts) for count in stones], kind="stable").astype(int)
    partial = path.with_suffix(".partial.npz")
    np.savez_compressed(partial, boards=boards[order], values=values[order], stones=stones[order])
    os.replace(partial, path)
    say(f"{path}: {len(boards)} positions")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, (low, high) in GROUPS.items():
        about = f"how many positions of {low} to {high} stones"
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N", help=about)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e6, help="write what there is after this long")
    parser.add_argument("--log2-entries", type=int, default=24, help="each process's table, 8 bytes an entry")
    parser.add_argument("--merge", type=Path, nargs="*", default=[], help="files whose positions to take in")
    parser.add_argument("--out", type=Path, required=True, help="written whole at the end")
    args = parser.parse_args()
    if args.out.exists() and args.out not in args.merge:
        parser.error(f"{args.out} exists: name it in --merge too to add to it, or remove it first")
    merged = [row for path in args.merge for row in read(path)]
    wanted = {group: getattr(args, group) for group in GROUPS}
    done = collect(wanted, args) if any(wanted.values()) else []
    summarise(done)
    fresh = [one for group in GROUPS for one in distinct(one for one in done if one.group == group)]
    write(args.out, [*merged, *((one.board, one.values) for one in fresh)])


if __name__ == "__main__":
    main()
