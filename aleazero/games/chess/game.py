"""Chess: the rules joined to the contract. Moves are in `moves.py`, actions in `actions.py`, words in `notation.py`.

Seat 0 is White. A state shows the board to the side to move: its pawns move up, also Black's. A game ends by mate,
stalemate, the third time the same position comes up, fifty moves of each side without a capture or a pawn's move, or
when neither side could ever mate. Nobody claims: the draws come by themselves. Play stops a game at 512 plies, which
leaves it without an outcome.

Two positions are the same where pieces, side to move, rights to castle and possible captures in passing are; their
`key` tells. A state keeps the keys since the last move that cannot be taken back (`past`); a packed row does not, and a
state read from one has an empty past. Whoever walks through packed rows, as a search does, knows the way it came: it
counts how often `key` was there and in the `past` of where it began, and says so with `seen_before`.
"""

from __future__ import annotations

from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.game import WIN_DRAW_LOSS, Game, GameSpec, Notation, Symmetry
from aleazero.core.keys import mix
from aleazero.core.struct import replace, struct
from aleazero.games.chess import actions, encode, moves, starts
from aleazero.games.chess.bits import Bits, once, only, square
from aleazero.games.chess.board import Board, insufficient, move, start, swapped, turned
from aleazero.games.chess.notation import ChessNotation

FIFTY = 100  # plies
MAX_PLIES = 512
THREEFOLD = 2  # times before this one
ALL_RIGHTS = 15
_WORDS = 8  # of a board
_SEAT_WORDS = (0x6A09E667, 0xBB67AE85)  # tell the same board with Black to move
_LANES = (0x3C6EF372, 0xA54FF53A)
_REST = 5  # bytes of a packed row behind the words


@struct
class ChessState:
    """A position; the first five fields as in `core.game.State`."""

    to_play: Array
    is_chance: Array
    terminated: Array
    rewards: Array
    returns: Array
    board: Board  # as to_play sees it
    castling: Array  # [] uint32: rights, as bits (see board.py)
    ep: Array  # [] int32: the column of a pawn that can be taken in passing; -1 where no such capture is legal
    clock: Array  # [] int32: plies since the last capture or pawn's move
    number: Array  # [] int32: of the move, from 1; Black's has White's
    repeats: Array  # [] int32: how often the position was there before, at most 2
    key: Array  # [2] uint32: tells positions apart
    targets: Bits  # [16]: where each own piece, by square, can go; none where the game is over
    past: Array  # [2, 100] uint32: keys by clock, of positions before this one; those from `clock` on mean nothing
    earlier: tuple[Board, ...]  # the boards before this one, latest first, as to_play sees them; empty ones before that


class Chess(Game):
    """The rules. `history` is how many earlier positions the network sees besides the present one."""

    forgotten = ("past",)

    def __init__(self, history: int = 0) -> None:
        self.history = history
        self.spec = GameSpec(
            name="chess",
            version=2,  # 1: networks did not see attacks
            num_players=2,
            num_actions=actions.NUM_ACTIONS,
            max_legal=actions.MAX_LEGAL,
            observation_shape=(8, 8, encode.planes_seen(history)),
            outcomes=WIN_DRAW_LOSS,
            max_plies=MAX_PLIES,
            moves=actions.ON_BOARD,
        )
        self.position_key = _position_key
        self.past_keys = _past_keys
        self.seen_before = _seen_before
        self.wins_in_one = self._mates_in_one
        self.starts = MappingProxyType({"scattered": self._scattered})

    def init(self, key: Array) -> ChessState:
        """The first position; nothing is drawn."""
        start_board, zero = start(), jnp.int32(0)
        nothing = jax.tree.map(jnp.zeros_like, start_board)
        return self.position(
            start_board,
            jnp.uint32(ALL_RIGHTS),
            jnp.int32(-1),
            zero,
            zero,
            jnp.int32(1),
            zero,
            (nothing,) * self.history,
        )

    def _scattered(self, key: Array) -> ChessState:
        """Random pieces of both sides anywhere; where that is no position of a game, or its end, the first position."""
        pieces, turn = jax.random.split(key)
        board, zero = starts.scattered(pieces), jnp.int32(0)
        nothing = jnp.uint32(0), jnp.int32(-1)
        here, there = (moves.legal(each, *nothing).check for each in (board, turned(board)))
        board = jax.tree.map(lambda mine, theirs: jnp.where(there, theirs, mine), board, turned(board))
        seat = jax.random.bernoulli(turn).astype(jnp.int32)
        earlier = (jax.tree.map(jnp.zeros_like, board),) * self.history
        state = self.position(board, *nothing, seat, zero, jnp.int32(1), zero, earlier)
        unfit = (here & there) | state.terminated
        return jax.tree.map(lambda first, other: jnp.where(unfit, first, other), self.init(key), state)

    def position(
        self, board: Board, castling: Array, ep: Array, to_play: Array, clock: Array, number: Array,
        seen: Array, earlier: tuple[Board, ...],
    ) -> ChessState:  # fmt: skip
        """A state without a past. `ep` is the column of a pawn that has just gone two squares; the rest as there."""
        state = _settled(board, castling, ep, to_play, clock, number, jnp.zeros((2, FIFTY), jnp.uint32), earlier)
        return _seen_before(state, seen)

    def legal_list(self, state: ChessState) -> Array:
        """By the piece's square, then by target; promotions to less than a queen last."""
        squares = moves.square_of_each(state.board.own)
        pawns = (square(squares) & state.board.pawns).some & (squares >= 48)
        return actions.listing(squares, state.targets, pawns)

    def apply_action(self, state: ChessState, action: Array) -> ChessState:
        """Moves, and turns the board to the other side."""
        moved = move(state.board, state.castling, state.ep, *actions.decode(action))
        here = jnp.arange(FIFTY) == state.clock
        return _settled(
            board=turned(moved.board),
            castling=swapped(moved.castling),
            ep=moved.double,
            to_play=1 - state.to_play,
            clock=jnp.where(moved.resets, 0, state.clock + 1),
            number=state.number + state.to_play,
            past=jnp.where(here[None], state.key[:, None], state.past),
            earlier=tuple(turned(board) for board in (state.board, *state.earlier))[: self.history],
        )

    def _mates_in_one(self, state: ChessState) -> Array:
        listed = self.legal_list(state)

        def mates(action: Array) -> Array:
            moved = move(state.board, state.castling, state.ep, *actions.decode(action))
            replies = moves.legal(turned(moved.board), swapped(moved.castling), moved.double)
            return replies.check & ~replies.targets.some.any()

        return (jax.vmap(mates)(jnp.maximum(listed, 0)) & (listed >= 0)).any()

    def observe(self, state: ChessState) -> Array:
        """Pieces, rights, the capture in passing, the clock, whether the position was there before, and attacks."""
        return encode.observe(state)

    def pack(self, state: ChessState) -> Array:
        """The key first, then the boards and five bytes; 45 in all, and 32 for each earlier board."""
        words = jnp.concatenate([state.key, *(_words(board) for board in (state.board, *state.earlier))])
        rest = [
            state.castling.astype(jnp.int32) | (state.ep + 1) << 4,
            state.clock,
            state.number & 255,
            state.number >> 8,
            state.to_play.astype(jnp.int32) | state.repeats << 1,
        ]
        return jnp.concatenate(
            [jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(-1), jnp.stack(rest).astype(jnp.uint8)]
        )

    def unpack(self, row: Array) -> ChessState:
        """The state that was packed, without its past."""
        words, rest = row[:-_REST], row[-_REST:].astype(jnp.int32)
        boards = jax.lax.bitcast_convert_type(words.reshape(-1, 4), jnp.uint32)[2:].reshape(-1, _WORDS)
        board, *earlier = (_board(boards[i]) for i in range(1 + self.history))
        return self.position(
            board,
            castling=(rest[0] & 15).astype(jnp.uint32),
            ep=(rest[0] >> 4) - 1,
            to_play=rest[4] & 1,
            clock=rest[1],
            number=rest[2] | rest[3] << 8,
            seen=rest[4] >> 1,
            earlier=tuple(earlier),
        )

    @property
    def notation(self) -> Notation:
        """FEN; SAN and UCI."""
        return ChessNotation(self)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:  # type: ignore[override]
        """The seats: the board and the actions are as the mover sees them, so a swap leaves them alone."""
        return (Symmetry("seats", _swap_seats, tuple(range(actions.NUM_ACTIONS)), swaps_seats=True),)


def _settled(
    board: Board, castling: Array, ep: Array, to_play: Array, clock: Array, number: Array, past: Array,
    earlier: tuple[Board, ...],
) -> ChessState:  # fmt: skip
    """The state of a position: what can be done in it, whether it was there before, whether that ends the game."""
    board, castling, ep = once((board, castling, ep))
    legal = moves.legal(board, castling, ep)
    legal = replace(legal, targets=once(legal.targets), ep=once(legal.ep))
    key = once(_key(board, castling, legal.ep, to_play))
    same = (past == key[:, None]).all(0) & (jnp.arange(FIFTY) < clock)
    stuck = ~legal.targets.some.any()
    mated = stuck & legal.check
    over = stuck | insufficient(board) | (clock >= FIFTY)
    lost = jnp.where(mated, jnp.float32(1), jnp.float32(0))
    points = jnp.where(to_play == 0, -lost, lost)
    points = jnp.stack([points, -points])
    state = ChessState(
        to_play=to_play.astype(jnp.int8),
        is_chance=jnp.bool_(False),
        terminated=over,
        rewards=points,  # only the last move of a game pays, so its rewards are the returns
        returns=points,
        board=board,
        castling=castling,
        ep=legal.ep,
        clock=clock.astype(jnp.int32),
        number=number.astype(jnp.int32),
        repeats=jnp.int32(0),
        key=key,
        targets=only(~over, legal.targets),
        past=past,
        earlier=earlier,
    )
    return _seen_before(state, same.sum(dtype=jnp.int32))


def _position_key(state: ChessState) -> Array:
    return state.key


def _past_keys(state: ChessState) -> Array:
    known = jnp.arange(FIFTY) < state.clock
    return jnp.where(known[None], state.past, 0).T


def _seen_before(state: ChessState, times: Array) -> ChessState:
    over = state.terminated | (times >= THREEFOLD)
    return replace(
        state,
        terminated=over,
        repeats=jnp.minimum(times, THREEFOLD).astype(jnp.int32),
        targets=only(~over, state.targets),
    )


def _key(board: Board, castling: Array, ep: Array, to_play: Array) -> Array:
    """`[2]` uint32 of a position: two independent mixes of all that makes it."""
    words = [*_leaves(board), castling | (ep + 1).astype(jnp.uint32) << 4]
    key = []
    for lane, seat in zip(_LANES, _SEAT_WORDS, strict=True):
        word = jnp.uint32(lane)
        for counter, part in enumerate(words):
            word = mix(word ^ part, jnp.uint32(lane + counter & 0xFFFF))
        key.append(word ^ jnp.where(to_play == 0, jnp.uint32(0), jnp.uint32(seat)))
    return jnp.stack(key)


def _leaves(board: Board) -> list[Array]:
    return jax.tree.leaves(board)


def _words(board: Board) -> Array:
    return jnp.stack(_leaves(board))


def _board(words: Array) -> Board:
    return Board(*(Bits(words[i], words[i + 1]) for i in range(0, _WORDS, 2)))


def _swap_seats(state: ChessState) -> ChessState:
    """White and Black change places; keys tell the sides apart, so all of them change."""
    other = jnp.asarray(np.array(_SEAT_WORDS, np.uint32))
    return replace(
        state,
        to_play=1 - state.to_play,
        rewards=state.rewards[::-1],
        returns=state.returns[::-1],
        key=state.key ^ other,
        past=state.past ^ other[:, None],
    )
