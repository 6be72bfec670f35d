"""Whole turns against two judges, plain Python and GNU Backgammon's move generator; then the way they are streamed."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.games.backgammon import turns
from aleazero.games.backgammon.game import Backgammon
from tests.games.backgammon import reference
from tests.games.backgammon.reference import KINDS, ROLLS, START, Position, dice_of, drawn, plus, rolls

GAME: Any = Backgammon(chunk=16)
LANES = 2048  # positions compared at once
Rolled = tuple[Position, tuple[int, int]]

# For each double, blots on points 1 to 24 with the most plays that hill-climbing over all boards found. The other side
# has one checker, on the bar, where it blocks nothing.
WIDEST = {
    1: (2226, "001011011011011011011011"),
    2: (2138, "000011011110011111001111"),
    3: (2052, "000000111111010101111111"),
    4: (1965, "000000001111101111111111"),
    5: (1869, "000000001011111111111111"),
    6: (1761, "000000100011111111111111"),
}


class Lister:
    """The plays of batches of LANES states, by programs compiled once."""

    def __init__(self) -> None:
        self.start, self.next = jax.jit(GAME.plays_start), jax.jit(GAME.plays)

    def __call__(self, states: Any) -> tuple[np.ndarray, Any]:
        """Every play: the lanes they belong to, and the states they leave."""
        cursor, done, parts = self.start(states), False, []
        while not done:
            chunk = self.next(states, cursor)
            number, cursor, done = int(chunk.count), chunk.cursor, bool(chunk.done)
            parts.append(jax.tree.map(lambda x, n=number: np.asarray(x)[:n], (chunk.owner, chunk.afterstates)))
        owner, after = jax.tree.map(lambda *rows: np.concatenate(rows), *parts)
        return owner, after


@pytest.fixture(scope="module")
def listed() -> Lister:
    return Lister()


def batches(rolled: list[Rolled]) -> Iterator[list[Rolled]]:
    """Parts of exactly LANES; the last one is filled up with the start."""
    for first in range(0, len(rolled), LANES):
        part = rolled[first : first + LANES]
        yield part + [((START, START), (2, 1))] * (LANES - len(part))


def states_of(rolled: list[Rolled], left: list[int] | None = None) -> Any:
    return reference.states([position for position, _ in rolled], [dice for _, dice in rolled], left)


def some_of(kind: str, number: int, seed: int = 0) -> list[Rolled]:
    rng = random.Random(f"{kind} {seed}")
    return [(drawn(rng, kind), dice) for dice in rolls(rng, number)]


def widest(die: int) -> Position:
    blots = tuple(int(sign) for sign in WIDEST[die][1])
    return (0, *blots, 0), plus((0,) * 26, [25])


def per_lane(owner: np.ndarray, after: Any, lanes: int) -> list[list[Position]]:
    found: list[list[Position]] = [[] for _ in range(lanes)]
    for lane, end in zip(owner, reference.positions(after), strict=True):
        found[lane].append(end)
    return found


# ---- plain Python


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_plays_are_those_of_the_reference(kind: str, listed: Lister) -> None:
    number = 105 if kind == "blots" else 315
    rolled = some_of(kind, number)
    (batch,) = batches(rolled)
    found = per_lane(*listed(states_of(batch)), LANES)
    for (position, dice), ends in zip(rolled, found, strict=False):
        assert len(ends) == len(set(ends)), f"a play of {dice} comes twice in {position}"
        assert set(ends) == reference.plays(position, dice_of(*dice)), f"{dice} in {position}"


def test_the_rest_of_a_turn_is_that_of_the_reference(listed: Lister) -> None:
    rng, rolled, left, dice_left = random.Random(8), [], [], []
    for i in range(600):
        position, (larger, smaller) = drawn(rng, KINDS[i % len(KINDS)]), ROLLS[i % len(ROLLS)]
        if larger == smaller:
            left.append(rng.randint(1, 3))
            rolled.append((position, (larger, larger)))
        else:
            left.append(1)
            rolled.append((position, (rng.choice([larger, smaller]), 0)))
        dice_left.append(rolled[-1][1][:1] * left[-1])
    (batch,) = batches(rolled)
    found = per_lane(*listed(states_of(batch, left + [2] * (LANES - len(left)))), LANES)
    for (position, _), dice, ends in zip(rolled, dice_left, found, strict=False):
        assert sorted(ends) == sorted(reference.plays(position, dice)), f"{dice} in {position}"


def test_a_turn_goes_on_where_an_action_has_left_it(listed: Lister) -> None:
    """The plays after a first checker are those plays of the whole turn that the checker can begin."""
    begun = [
        (position, dice, source, die)
        for kind in KINDS
        for position, dice in some_of(kind, 63, seed=3)
        for source, die in reference.legal(position, dice_of(*dice))[:2]
    ]
    (batch,) = batches([(position, dice) for position, dice, _, _ in begun])
    actions = [(source - 1) * 6 + die - 1 for _, _, source, die in begun]
    actions += [5 * 6] * (LANES - len(actions))  # 6/5
    found = per_lane(*listed(jax.jit(jax.vmap(GAME.apply_action))(states_of(batch), jnp.asarray(actions))), LANES)
    for (position, dice, source, die), ends in zip(begun, found, strict=False):
        following = reference.moved(position, source, die)
        rest = reference.without(dice_of(*dice), die)
        assert sorted(ends) == sorted(reference.plays(following, rest)), f"{source} by {die} of {dice} in {position}"


# ---- GNU Backgammon


def keys_of(numbers: np.ndarray) -> np.ndarray:
    """`[n, 10]` bytes, GNU Backgammon's position keys: of each place as many ones as checkers and then a zero."""
    ends = np.cumsum(numbers + 1, 1) - 1  # [n, 50]
    bits = (np.arange(80) <= ends[:, -1:]).astype(np.uint8)
    np.put_along_axis(bits, ends, 0, 1)
    return np.packbits(bits, 1, bitorder="little")


def keys_after(after: Any) -> np.ndarray:
    words = np.stack([np.asarray(after.theirs), np.asarray(after.mine)], 1)  # [n, 2, 4]
    bits = (words[..., None] >> np.arange(26, dtype=np.uint32)) & 1
    numbers = (bits << np.arange(4, dtype=np.uint32)[:, None]).sum(-2).astype(np.int64)  # [n, 2, 26]
    return keys_of(np.concatenate([numbers[:, 0, ::-1][:, 1:], numbers[:, 1, 1:]], 1))


def keys_from_letters(letters: list[str]) -> np.ndarray:
    nibbles = np.frombuffer("".join(letters).encode(), np.uint8).reshape(-1, 20) - ord("A")
    return nibbles[:, ::2] * 16 + nibbles[:, 1::2]


def in_order(owner: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """`[n, 2]` numbers that stand for owners and keys, sorted; what comes twice stays twice."""
    lanes = owner.astype("<u4").view(np.uint8).reshape(-1, 4)
    rows = np.concatenate([keys, np.zeros((len(keys), 2), np.uint8), lanes], 1)
    numbers = rows.view("<u8").reshape(-1, 2)
    return numbers[np.lexsort((numbers[:, 0], numbers[:, 1]))]


def assert_as_gnubg(gnubg: Any, listed: Lister, rolled: list[Rolled]) -> list[int]:
    """Compares every position; returns how many plays each has."""
    numbers: list[int] = []
    for batch in batches(rolled):
        owner, after = listed(states_of(batch))
        boards = [[theirs[1:], mine[1:]] for (mine, theirs), _ in batch]
        letters = [
            gnubg.moves(board, *dice) or (gnubg.key_of_board(board),)
            for board, (_, dice) in zip(boards, batch, strict=True)
        ]
        numbers += [len(found) for found in letters]
        expected = in_order(
            np.repeat(np.arange(LANES), [len(found) for found in letters]),
            keys_from_letters([name for found in letters for name in found]),
        )
        got = in_order(owner, keys_after(after))
        if not np.array_equal(got, expected):
            ours, theirs = ({tuple(row) for row in rows.tolist()} for rows in (got, expected))
            lanes = sorted({row[1] >> 32 for row in ours ^ theirs})
            position, dice = batch[lanes[0]] if lanes else batch[0]
            pytest.fail(
                f"{len(got)} plays, {len(ours)} distinct, against {len(expected)}; {len(lanes)} positions differ, as "
                f"{dice} in {position}"
            )
    return numbers[: len(rolled)]


@pytest.fixture(scope="module")
def gnubg() -> Any:
    return pytest.importorskip("gnubg_nn")


def strong_play(gnubg: Any, number: int) -> list[Rolled]:
    """Positions of games that GNU Backgammon plays against itself at 0-ply."""
    rng = random.Random(6)
    rolled: list[Rolled] = []
    board: Any = [START[1:], START[1:]]
    while len(rolled) < number:
        larger, smaller = sorted((rng.randint(1, 6), rng.randint(1, 6)), reverse=True)
        rolled.append((((0, *board[1]), (0, *board[0])), (larger, smaller)))
        _, key = gnubg.best_move(board, larger, smaller, b=1)  # from the side of whoever is next
        board = gnubg.board_from_position_key(key)
        if not sum(board[0]):
            board = [START[1:], START[1:]]
    return rolled


def near_the_widest(number: int) -> list[Rolled]:
    """The widest positions with a few checkers elsewhere and the other side's checkers in between."""
    rng, rolled = random.Random(7), []
    for i in range(number):
        die = i % 6 + 1
        side = list(widest(die)[0])
        for _ in range(rng.randint(0, 3)):
            side[rng.choice([place for place in range(26) if side[place]])] -= 1
            side[rng.choice([*range(1, 25), 25])] += 1
        free = [place for place in range(1, 25) if not side[25 - place]]
        theirs = plus((0,) * 26, rng.choices([*free, 25], k=rng.randint(1, 4)))
        rolled.append(((tuple(side), theirs), (die, die)))
    return rolled


@pytest.mark.slow
def test_plays_are_those_of_gnubg(gnubg: Any, listed: Lister) -> None:
    kinds = {kind: some_of(kind, LANES // 4 if kind == "blots" else LANES, seed=1) for kind in KINDS}
    kinds["strong play"] = strong_play(gnubg, 4 * LANES)
    kinds["doubles in play"] = [(position, (i % 6 + 1,) * 2) for i, (position, _) in enumerate(kinds["strong play"])]
    kinds["wide"] = near_the_widest(126)
    numbers = {kind: assert_as_gnubg(gnubg, listed, rolled) for kind, rolled in kinds.items()}
    assert len({row for rolled in kinds.values() for row in rolled}) > 20_000
    assert max(numbers["wide"]) > 2000
    assert sum(number == 1 for number in numbers["bar"]) > 100  # many of them passes


def test_the_widest_doubles(listed: Lister) -> None:
    (batch,) = batches([(widest(die), (die, die)) for die in WIDEST])
    found = per_lane(*listed(states_of(batch)), LANES)
    for ends, (number, points) in zip(found, WIDEST.values(), strict=False):
        assert len(ends) == len(set(ends)) == number, points


# ---- what the listing is


@pytest.mark.parametrize("over", [True, False])
def test_where_nobody_is_to_play_the_one_play_changes_nothing(over: bool, listed: Lister) -> None:
    rng = random.Random(9)
    positions = [drawn(rng, KINDS[i % len(KINDS)]) for i in range(LANES)]
    if over:
        positions = [((0,) * 26, theirs) for _, theirs in positions]
    states = reference.states(positions, [(0, 0)] * LANES, [0] * LANES)
    assert np.asarray(states.terminated).all() if over else np.asarray(states.is_chance).all()
    owner, after = listed(states)
    assert owner.tolist() == list(range(LANES))
    for one, two in zip(jax.tree.leaves(states), jax.tree.leaves(after), strict=True):
        assert np.array_equal(one, two)


def test_afterstates_are_states_where_nature_is_next_or_the_game_is_over(listed: Lister) -> None:
    rolled = [r for kind in KINDS for r in some_of(kind, LANES // 8, seed=5)]
    race = plus((0,) * 26, [1, 2]), plus((0,) * 26, [5] * 15)
    (batch,) = batches([*rolled, (race, (6, 5)), (race, (2, 2))])
    states = states_of(batch)
    owner, after = listed(states)
    assert np.array_equal(after.to_play, np.asarray(states.to_play)[owner])
    assert np.array_equal(after.is_chance, ~after.terminated)
    won = np.array([reference.points(position) for position in reference.positions(after)])
    assert np.array_equal(after.terminated, won > 0)
    assert set(won) == {0, 1, 2, 3}
    assert np.array_equal(after.returns[:, 0], np.where(after.to_play == 0, won, -won))
    assert np.array_equal(after.returns[:, 1], -after.returns[:, 0])
    for field in (after.dice, after.left, after.opening):
        assert not field.any()


def mixed_bag() -> Any:
    """Lanes with one play beside lanes with thousands, and beside lanes where two moves lead nowhere."""
    shut = (plus((0,) * 26, [25, 24, 24]), plus((0,) * 26, [p for p in range(1, 7) for _ in range(2)]))
    rolled: list[Rolled] = [((START, START), (2, 1)), (shut, (6, 6)), (widest(1), (1, 1)), (shut, (5, 2))]
    rolled += [*[r for kind in KINDS for r in some_of(kind, 3, seed=6)], (shut, (4, 4))]
    return states_of(rolled)


def stream(step: Any, cursor: Any, read: Any) -> list[tuple[int, ...]]:
    """Every play in the order of the listing, as numbers."""
    rows, done = [], False
    while not done:
        chunk, cursor, done = step(cursor)
        owner, mine, theirs = read(chunk)
        rows += np.column_stack([owner, mine, theirs])[: int(chunk.count)].tolist()
    return [tuple(row) for row in rows]


@functools.cache
def listing_in(size: int) -> list[tuple[int, ...]]:
    states = mixed_bag()
    step = jax.jit(lambda cursor: turns.listing(cursor, size))
    cursor = jax.jit(GAME.plays_start)(states)
    return stream(step, cursor, lambda c: (c.owner, np.stack(c.board.mine, -1), np.stack(c.board.theirs, -1)))


@pytest.mark.slow
@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize("size", [1, 7, 64])
def test_the_size_of_a_chunk_changes_neither_plays_nor_their_order(size: int) -> None:
    in_one_piece = listing_in(5000)
    assert len(in_one_piece) > 2500
    assert [row[0] for row in in_one_piece] == sorted(row[0] for row in in_one_piece)
    assert listing_in(size) == in_one_piece


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize("chunk", [1, 300])
def test_the_chunk_of_the_game_changes_neither_plays_nor_their_order(chunk: int) -> None:
    game: Any = Backgammon(chunk=chunk)
    states = mixed_bag()
    lanes = len(states.to_play)

    @jax.jit
    def step(cursor: Any) -> Any:
        plays = game.plays(states, cursor)
        return plays, plays.cursor, plays.done

    cursor = jax.jit(game.plays_start)(states)
    assert jax.eval_shape(step, cursor)[0].owner.shape == (chunk * lanes,)
    found = stream(step, cursor, lambda c: (c.owner, c.afterstates.mine, c.afterstates.theirs))
    assert found == listing_in(5000)


def test_a_cursor_keeps_its_shape_so_that_a_device_can_loop() -> None:
    states = jax.eval_shape(mixed_bag)
    cursor = jax.eval_shape(GAME.plays_start, states)
    following = jax.eval_shape(GAME.plays, states, cursor).cursor
    assert str(jax.tree.structure(cursor)) == str(jax.tree.structure(following))
    kinds = [[(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(c)] for c in (cursor, following)]
    assert kinds[0] == kinds[1]
