"""What the contract asks of chess beyond the rules: packing, keys, repetition, what the network sees."""

from __future__ import annotations

import chess
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.game import Game
from aleazero.games.chess import actions
from aleazero.games.chess.game import Chess
from aleazero.games.conformance import STARTS, check_game
from aleazero.games.registry import make_game
from aleazero.suites import shipped_suite
from tests.games.chess.support import (
    ENDINGS,
    GAME,
    KIWIPETE,
    STARTPOS,
    TACTICAL,
    Referee,
    batched,
    lane,
    parse,
    single,
    stacked,
    starts,
)

pytestmark = pytest.mark.usefixtures("quick_compile")
SHUFFLE = "g1f3 g8f6 f3g1 f6g8"


@pytest.mark.slow
def test_the_contract_holds():
    game = make_game("chess")
    assert isinstance(game, Game)
    report = check_game(game, lanes=24, plies=260)
    assert report.games > 0
    assert report.warnings == ()


def test_the_action_space():
    assert actions.NUM_ACTIONS == 1858 == len(set(actions.MOVES))
    assert GAME.spec.max_legal == 218
    assert GAME.spec.max_plies == 512
    decoded = jax.jit(actions.decode)(jnp.arange(actions.NUM_ACTIONS))
    assert list(zip(*(np.asarray(part).tolist() for part in decoded), strict=True)) == list(actions.MOVES)


@pytest.mark.slow
def test_a_packed_row_is_small_and_comes_back():
    assert GAME.packed_size == 45 <= 128 + 8
    states = starts([*TACTICAL, *ENDINGS])
    rows = batched("pack")(states)
    back = batched("unpack")(rows)
    assert np.array_equal(batched("pack")(back), rows)
    for (path, old), new in zip(jax.tree_util.tree_flatten_with_path(states)[0], jax.tree.leaves(back), strict=True):
        assert np.array_equal(old, new), jax.tree_util.keystr(path)


def test_keys_are_equal_exactly_where_positions_are():
    """By python-chess's own idea of the same position, over games that keep coming back to where they were."""
    draw, fens = np.random.default_rng(5), [STARTPOS, *TACTICAL, *ENDINGS] * 2
    states, games = starts(fens), [Referee(fen) for fen in fens]
    keys: dict[bytes, object] = {}
    again = 0
    for _ in range(80):
        host = np.asarray(states.key)
        lists = np.asarray(batched("legal_list")(states))
        chosen = np.zeros(len(fens), np.int32)
        for number, game in enumerate(games):
            again += host[number].tobytes() in keys
            assert keys.setdefault(host[number].tobytes(), game.key()) == game.key()
            legal = lists[number][lists[number] >= 0]
            if legal.size == 0:
                continue
            chosen[number] = draw.choice(legal)
            game.push(int(chosen[number]))
        moved = batched("apply_action")(states, jnp.asarray(chosen))
        going = np.asarray(lists >= 0).any(-1)
        states = jax.tree.map(
            lambda new, old, going=going: jnp.where(going.reshape(-1, *[1] * (new.ndim - 1)), new, old), moved, states
        )
    assert len(set(keys.values())) == len(keys) > 2000
    assert again > 50


def test_a_capture_in_passing_that_is_not_legal_is_no_difference():
    pushed = parse("4k3/8/8/8/1p6/8/P7/4K3 w - - 0 1 moves a2a4")
    assert int(pushed.ep) == 0
    nobody = parse("4k3/8/8/8/7p/8/P7/4K3 w - - 0 1 moves a2a4")
    assert int(nobody.ep) == -1
    pinned = parse("8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1")  # the row would be open to the queen
    assert int(pinned.ep) == -1
    same = parse("8/8/8/8/k2Pp2Q/8/8/3K4 b - - 0 1")
    assert np.array_equal(pinned.key, same.key)


@pytest.mark.parametrize(("line", "times", "over"), [("", 0, False), (SHUFFLE, 1, False), (f"{SHUFFLE} " * 2, 2, True)])
def test_the_third_time_ends_the_game(line: str, times: int, over: bool):
    state = parse(f"startpos moves {line}")
    assert (int(state.repeats), bool(state.terminated)) == (times, over)
    assert state.returns.tolist() == [0, 0]
    assert bool((single("legal_list")(state) >= 0).any()) != over


def test_a_lost_right_to_castle_makes_another_position():
    start = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
    rook = parse(f"{start} moves h1g1 h8g8 g1h1 g8h8 h1g1 h8g8 g1h1 g8h8")  # the first had the rights
    assert (int(rook.repeats), bool(rook.terminated)) == (1, False)


def test_what_came_before_a_pawns_move_does_not_count():
    back = "b8c6 b1c3 c6b8 c3b1"
    once = parse(f"startpos moves {SHUFFLE} e2e3 {back}")
    assert (int(once.clock), int(once.repeats), bool(once.terminated)) == (4, 1, False)
    assert bool(parse(f"startpos moves {SHUFFLE} e2e3 {back} {back}").terminated)
    known = np.asarray(GAME.past_keys(once)).any(-1)
    assert known.tolist() == [True] * 4 + [False] * 96


def test_a_mate_on_the_hundredth_ply_counts():
    state = parse("7k/8/6K1/8/8/8/8/R7 w - - 99 80 moves a1a8")
    assert bool(state.terminated)
    assert state.returns.tolist() == [1, -1]
    quiet = parse("7k/8/6K1/8/8/8/8/R7 w - - 99 80 moves a1a7")
    assert bool(quiet.terminated)
    assert quiet.returns.tolist() == [0, 0]


def test_a_walk_through_packed_rows_sees_repetition_when_it_says_what_it_passed():
    """As a search does: keys of the way and of the root's past, counted, given back with `seen_before`."""
    words = f"{SHUFFLE} {SHUFFLE}".split()
    for known in range(len(words)):
        root = parse(f"startpos moves {' '.join(words[:known])}")
        way = [*np.asarray(GAME.past_keys(root)), np.asarray(GAME.position_key(root))]
        row = single("pack")(root)
        for word in words[known:]:
            before = single("unpack")(row)
            after = single("apply_action")(before, jnp.int32(GAME.notation.parse_action(before, word)))
            key = np.asarray(GAME.position_key(after))
            after = GAME.seen_before(after, jnp.int32(sum(np.array_equal(key, old) for old in way)))
            way.append(key)
            row = single("pack")(after)
        assert bool(after.terminated), known
        assert np.array_equal(row, single("pack")(parse(f"startpos moves {' '.join(words)}")))
        assert not bool((single("legal_list")(after) >= 0).any())


def test_a_forged_row_packs_to_another():
    row = np.array(single("pack")(parse(KIWIPETE)))
    row[0] ^= 1
    assert not np.array_equal(single("pack")(single("unpack")(jnp.asarray(row))), row)


def test_the_network_sees_the_board_of_the_side_to_move():
    state = parse("r3k2r/8/8/8/Pp6/8/8/R3K2R b KQq a3 30 20")
    seen = np.asarray(single("observe")(state))
    assert seen.shape == GAME.spec.observation_shape == (8, 8, 31)
    mine = dict(zip("pnbrqk", np.moveaxis(seen[..., :6], -1, 0), strict=True))
    theirs = dict(zip("pnbrqk", np.moveaxis(seen[..., 6:12], -1, 0), strict=True))
    assert np.argwhere(mine["p"]).tolist() == [[4, 1]]  # b4, from Black's side
    assert np.argwhere(mine["r"]).tolist() == [[0, 0], [0, 7]]
    assert np.argwhere(theirs["p"]).tolist() == [[4, 0]]
    assert np.argwhere(theirs["k"]).tolist() == [[7, 4]]
    assert [seen[..., 12 + i].mean() for i in range(4)] == [0, 1, 1, 1]  # own short right is gone
    assert np.argwhere(seen[..., 16]).tolist() == [[5, 0]]
    assert np.allclose(seen[..., 17], 0.3)
    assert not seen[..., 18].any()
    assert single("observe")(parse(f"startpos moves {SHUFFLE}"))[..., 18].all()


@pytest.mark.slow
def test_earlier_positions_are_seen_where_asked_for():
    game = Chess(history=2)
    assert game.spec.observation_shape == (8, 8, 55)
    state = game.notation.parse_state("startpos moves e2e4 e7e5 g1f3")
    seen = np.asarray(jax.jit(game.observe)(state))
    # Black looks: before Nf3 White's knight stood on g1; before e5 Black's pawn stood on e7.
    assert np.argwhere(seen[..., 6 + 1]).tolist() == [[5, 5], [7, 1]]
    assert np.argwhere(seen[..., 31 + 6 + 1]).tolist() == [[7, 1], [7, 6]]
    assert seen[1, 4, 43] == 1
    assert seen[1, 4, 31] == 0
    text = game.notation.format_state(state)
    assert np.array_equal(jax.jit(game.observe)(game.notation.parse_state(text)), seen)
    first = np.asarray(jax.jit(game.observe)(jax.jit(game.init)(jax.random.key(0))))
    assert not first[..., 31:].any()


def test_random_batches_do_not_depend_on_their_size():
    states = starts(list(TACTICAL))
    lists = np.asarray(batched("legal_list")(states))
    for number in range(0, len(TACTICAL), 5):
        assert np.array_equal(lists[number], single("legal_list")(lane(states, number)))


def test_insufficient_material_is_what_python_chess_says():
    sides = ["", "N", "B", "NN", "BB", "BN", "P", "R", "Q"]
    for white in sides:
        for black in sides:
            for shift in (0, 1):
                board = chess.Board(None)
                board.set_piece_at(chess.E1, chess.Piece.from_symbol("K"))
                board.set_piece_at(chess.E8, chess.Piece.from_symbol("k"))
                for at, letter in enumerate(white):
                    board.set_piece_at(chess.A3 + shift + at * 2, chess.Piece.from_symbol(letter))
                for at, letter in enumerate(black):
                    board.set_piece_at(chess.A5 + shift + at, chess.Piece.from_symbol(letter.lower()))
                if not board.is_valid() or not any(board.legal_moves):
                    continue
                assert bool(parse(board.fen()).terminated) == board.is_insufficient_material(), board.fen()


@pytest.mark.parametrize("text", [STARTPOS, KIWIPETE, KIWIPETE.replace(" w ", " b ")])
def test_networks_see_pieces_where_their_moves_begin(text: str):
    """Squares of `GameSpec.moves` are the observation's, whoever is to move; targets hold none of the mover's."""
    state = parse(text)
    own = np.asarray(single("observe")(state))[..., :6].sum(-1).reshape(-1)
    listed = np.asarray(single("legal_list")(state))
    legal = listed[listed >= 0]
    assert len(legal) >= 20
    for source, target, kind in (GAME.spec.moves[action] for action in legal):
        assert (own[source], own[target], kind) == (1, 0, 0)
    assert {kind for _, _, kind in GAME.spec.moves} == {0, 1, 2, 3}


@pytest.mark.slow
def test_scattered_games_begin_anywhere_that_a_game_can_be():
    many = STARTS  # by the program that looks at the contract
    states = jax.device_get(jax.jit(jax.vmap(GAME.starts["scattered"]))(jax.random.split(jax.random.key(0), many)))
    assert not states.terminated.any()
    strange = chess.STATUS_TOO_MANY_CHECKERS | chess.STATUS_IMPOSSIBLE_CHECK  # no game leads there, but one can go on
    boards = [chess.Board(GAME.notation.format_state(lane(states, i))) for i in range(many)]
    assert {board.status() & ~strange for board in boards} == {chess.STATUS_VALID}
    assert {board.turn for board in boards} == {True, False}
    legal = (np.asarray(batched("legal_list")(states)) >= 0).sum(-1)
    assert legal.tolist() == [board.legal_moves.count() for board in boards]
    usual = sum(board == chess.Board() for board in boards)
    assert usual < many // 3
    sizes = [len(board.piece_map()) for board in boards]
    assert min(sizes) <= 4
    assert len(set(sizes)) > 20
    white = [len(chess.SquareSet(board.occupied_co[chess.WHITE])) for board in boards]
    assert np.mean(np.abs(2 * np.array(white) - sizes) > 2) > 0.2  # one side has two pieces more


@pytest.mark.slow
def test_it_is_seen_whether_there_is_a_mate_in_one():
    """By python-chess: mates in one and in two, a promotion and a castling that mate, and no mates."""
    tactics = [entry.fen for entry in shipped_suite(GAME).entries][::2]
    special = (
        "6k1/P4ppp/8/8/8/8/8/K7 w - - 0 1",  # a8=Q and a8=R
        "5k2/8/8/8/8/8/4R1R1/4K2R w K - 0 1",  # O-O
        "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",  # a stalemate to come is no win
    )
    fens = [*tactics, *TACTICAL, *ENDINGS, *special]
    expected = []
    for fen in fens:
        board = chess.Board(fen)
        expected.append(any(_mates(board, move) for move in board.legal_moves))
    found = np.asarray(jax.jit(jax.vmap(GAME.wins_in_one))(stacked([parse(fen) for fen in fens])))
    assert found.tolist() == expected
    assert 20 < sum(expected) < len(expected) - 20


def _mates(board: chess.Board, move: chess.Move) -> bool:
    board.push(move)
    mate = board.is_checkmate()
    board.pop()
    return mate
