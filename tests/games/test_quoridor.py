"""Quoridor against an independent reference, and what that does not know: notation, symmetries, encoding."""

from __future__ import annotations

import dataclasses
import functools
import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.errors import NotationError
from aleazero.games.quoridor import rules
from aleazero.games.quoridor.game import Quoridor
from tests.games import quoridor_reference as reference
from tests.games.quoridor_reference import Reference

GAME = Quoridor()
NOTATION = GAME.notation
START = "e1 e9 10 10 - 1"
# A chain of sixteen walls, 32 segments, from the left edge to b2: a2h would close it round player 1.
SPIRAL = "d3 c8 0 4 c2h,e2h,g2h,a4h,c4h,g4h,c6h,g6h,c8h,e8h,g8h,h3v,d5v,f5v,b7v,h7v 2"
# Five rows of walls, open at alternate ends, leave one way of more than fifty steps; nobody has a wall left.
SNAKE = "e1 e9 {left} a1h,c1h,e1h,g1h,b2h,d2h,f2h,h2h,a4h,c4h,e4h,g4h,b6h,d6h,f6h,h6h,a8h,c8h,e8h{last} {player}"


@pytest.fixture(autouse=True)
def _strict():
    with jax.numpy_rank_promotion("raise"):
        yield


@functools.cache
def batched(name: str):
    return jax.jit(jax.vmap(getattr(GAME, name)))


@functools.cache
def single(name: str):
    return jax.jit(getattr(GAME, name))


def parse(text: str) -> rules.State:
    return NOTATION.parse_state(text)


def legal_names(state: rules.State) -> list[str]:
    return [NOTATION.format_action(state, a) for a in np.asarray(single("legal_list")(state)) if a >= 0]


def pawn_names(state: rules.State) -> set[str]:
    return {name for name in legal_names(state) if len(name) == 2}


def play(state: rules.State, *moves: str) -> rules.State:
    for move in moves:
        state = single("apply_action")(state, jnp.int16(NOTATION.parse_action(state, move)))
    return state


def read(text: str) -> Reference:
    """The reference's game from the text of a position."""
    one, two, left_one, left_two, walls, mover = text.split()
    words = [one, two, *(walls.split(",") if walls != "-" else [])]
    places = [("abcdefghi".index(word[0]), int(word[1]) - 1, *word[2:]) for word in words]
    return Reference(places[:2], places[2:], [int(left_one), int(left_two)], int(mover) - 1)


def stack(states: list[rules.State]) -> rules.State:
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *states)


def assert_same(one: Any, two: Any) -> None:
    for field in dataclasses.fields(one):
        a, b = getattr(one, field.name), getattr(two, field.name)
        assert a.dtype == b.dtype, field.name
        np.testing.assert_array_equal(a, b, err_msg=field.name)


# --- random games -------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Ply:
    """What both sides said of one position of one game."""

    state: rules.State  # of numpy arrays
    listed: np.ndarray  # [133]
    described: str
    legal: set[str]
    winner: int | None
    refused: int  # walls that would cut a player off
    moved: tuple[int, ...]  # how far the pawn then goes, along and across; empty for a wall


def choose(game: Reference, legal: dict[str, Any], wall_rate: float, rng: random.Random) -> str:
    """Mixes walls that lean on others, walls anywhere, races, meetings and strolls: everything happens."""
    steps = [n for n in legal if len(n) == 2]
    walls = [n for n in legal if len(n) == 3]
    if walls and rng.random() < wall_rate:
        touched = {corner for wall in game.walls for corner in reference.corners(wall)}
        leaning = [n for n in walls if touched & reference.corners(legal[n])]
        return rng.choice(leaning if leaning and rng.random() < 0.8 else walls)
    goal, you = (8, 0)[game.mover], game.pawns[1 - game.mover]
    style = rng.random()
    if style < 0.5:
        barred = game.barred()
        return min(steps, key=lambda n: len(reference.path(legal[n], goal, barred)))
    if style < 0.8:
        return min(steps, key=lambda n: abs(legal[n][0] - you[0]) + abs(legal[n][1] - you[1]))
    return rng.choice(steps)


@pytest.fixture(scope="module")
def games() -> list[list[Ply]]:
    """Sixty games, played in lockstep by the package (batched) and the reference, which chooses the moves."""
    rng = random.Random(7)
    wall_rates = [rng.choice([0.15, 0.4, 0.8, 0.95]) for _ in range(60)]
    names = [{NOTATION.format_action(parse(f"e1 e9 10 10 - {s}"), a): a for a in range(209)} for s in (1, 2)]
    players = [Reference() for _ in wall_rates]
    states = batched("init")(jax.random.split(jax.random.key(0), len(players)))
    out: list[list[Ply]] = [[] for _ in players]
    for _ in range(GAME.spec.max_plies):
        listed = np.asarray(batched("legal_list")(states))
        host = jax.tree.map(np.asarray, states)
        actions = np.zeros(len(players), np.int16)  # of a finished game nothing is read any more
        for i, game in enumerate(players):
            if out[i] and out[i][-1].winner is not None:
                continue
            legal = game.legal()
            move = choose(game, legal, wall_rates[i], rng) if legal else None
            state = jax.tree.map(lambda leaf, i=i: leaf[i], host)
            may_place = legal and game.left[game.mover]
            refused = len({reference.name(w) for w in game.fitting()} - set(legal)) if may_place else 0
            me, to = game.pawns[game.mover], legal.get(move, ())
            moved = tuple(sorted(abs(a - b) for a, b in zip(me, to, strict=True))) if len(to) == 2 else ()
            out[i].append(Ply(state, listed[i], game.describe(), set(legal), game.winner(), refused, moved))
            if move is not None:
                actions[i] = names[game.mover][move]
                game.play(legal[move])
        if all(plies[-1].winner is not None for plies in out):
            break
        states = batched("apply_action")(states, jnp.asarray(actions))
    return out


@pytest.mark.slow
def test_random_games_match_the_reference(games):
    for plies in games:
        for ply in plies:
            names = [NOTATION.format_action(ply.state, a) for a in ply.listed if a >= 0]
            assert len(names) == len(set(names)), ply.described
            assert set(names) == ply.legal, ply.described
            assert NOTATION.format_state(ply.state) == ply.described
            points = [0, 0] if ply.winner is None else [(1, -1), (-1, 1)][ply.winner]
            assert ply.state.returns.tolist() == ply.state.rewards.tolist() == list(points)
            assert bool(ply.state.terminated) == (ply.winner is not None)


def test_random_games_cover_the_rules(games):
    """The comparison above is worth what the games contain."""
    plies = [ply for game in games for ply in game]
    last = [game[-1] for game in games]
    assert sum(ply.winner is not None for ply in last) >= 30
    assert {ply.winner for ply in last} >= {0, 1}
    assert sum(ply.state.walls.sum() == 20 for ply in last) >= 10
    assert sum(ply.refused for ply in plies) >= 500
    assert sum(ply.moved == (0, 2) for ply in plies) >= 50
    assert sum(ply.moved == (1, 1) for ply in plies) >= 10


# --- mazes --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_mazes_match_the_reference():
    """Positions full of walls that lean on one another: many walls would cut somebody off."""
    rng = random.Random(11)
    texts, legal, cut, refused = [], [], [], 0
    for _ in range(200):
        one, two = rng.sample([(column, row) for column in range(9) for row in range(1, 8)], 2)
        game = Reference([one, two], [], [10, 10], rng.randrange(2))
        size = rng.randrange(12, 20)
        while len(game.walls) < size:
            fitting = game.fitting()
            touched = {corner for wall in game.walls for corner in reference.corners(wall)}
            # Walls that touch just one other, make long trees that the next ones can close.
            growing = [wall for wall in fitting if len(touched & reference.corners(wall)) == 1]
            wall = rng.choice(growing if growing and rng.random() < 0.9 else fitting)
            spender = max((game.mover, 1 - game.mover), key=lambda seat: game.left[seat])
            barred = game.barred() | set(reference.parts(wall))
            free = [reference.path(pawn, goal, barred) for pawn, goal in ((one, 8), (two, 0))]
            game.walls.append(wall)
            game.left[spender] -= 1
            if None in free:
                cut.append(game.describe())
                game.walls.pop()
                game.left[spender] += 1
        if not game.left[game.mover]:
            game.mover = 1 - game.mover
        texts.append(game.describe())
        legal.append(set(game.legal()))
        refused += len(game.fitting()) - sum(len(name) == 3 for name in legal[-1])
    assert len(cut) >= 50
    assert refused >= 300
    states = [parse(text) for text in texts]
    listed = np.asarray(batched("legal_list")(stack(states)))
    for text, state, row, names in zip(texts, states, listed, legal, strict=True):
        assert {NOTATION.format_action(state, a) for a in row if a >= 0} == names, text
    for text in cut:
        with pytest.raises(NotationError, match=r"cut player [12] off from row [19]"):
            parse(text)


@pytest.mark.parametrize(
    "text",
    [
        SPIRAL,
        SPIRAL.replace("0 4", "4 0")[:-1] + "1",
        SPIRAL.replace("c2h,", "").replace("0 4", "1 4"),
        SNAKE.format(left="1 0", last="", player=1),
        SNAKE.format(left="0 1", last="", player=2),
        SNAKE.format(left="0 0", last=",g8h", player=1),
        "a1 a8 9 1 a1v,a3v,a5v,a7v,b1v,b3v,b5v,b7v,d2v,d4v 1",  # corridors open at the top only
        "i5 a5 4 4 a4h,c4h,e4h,g4h,b5h,d5h,f5h,h5h,d7v,e7v,d2v,e2v 2",  # one row between two long walls
    ],
)
def test_long_ways(text):
    """Ways and walls so long that a search that stops early would be wrong."""
    state = parse(text)
    assert set(legal_names(state)) == set(read(text).legal())


def test_a_long_chain_of_walls_may_not_be_closed():
    state = parse(SPIRAL)
    with pytest.raises(NotationError, match="the wall would cut player 1 off from row 9"):
        NOTATION.parse_action(state, "a2h")
    # With a gap anywhere in the chain the same wall closes nothing.
    assert "a2h" in legal_names(parse(SPIRAL.replace("g6h,", "").replace("0 4", "1 4")))
    # Nor does it when player 1 is beyond the curve, and player 2 on the same side.
    assert "a2h" in legal_names(parse(SPIRAL.replace("d3 c8", "d1 e2")))


# --- pawns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "squares"),
    [
        pytest.param(START, "d1 f1 e2", id="home row"),
        pytest.param("e1 e9 10 10 - 2", "d9 f9 e8", id="the other home row"),
        pytest.param("a5 i5 10 10 - 1", "a4 a6 b5", id="no way round the edge"),
        pytest.param("i5 a6 9 10 a6v 1", "i4 i6 h5", id="no pawn round the edge"),
        pytest.param("e5 i9 8 9 e5h,e4h,d5v 1", "f5", id="walls on three sides"),
        pytest.param("e5 i9 8 10 d5h,d4h 1", "d5 f5", id="walls count for both their squares"),
        pytest.param("e4 e5 10 10 - 1", "d4 f4 e3 e6", id="straight jump up"),
        pytest.param("e4 e5 10 10 - 2", "d5 f5 e6 e3", id="straight jump down"),
        pytest.param("e4 d4 10 10 - 1", "e5 f4 e3 c4", id="straight jump left"),
        pytest.param("e4 e5 9 10 e5h 1", "d4 f4 e3 d5 f5", id="a wall behind: diagonals"),
        pytest.param("e4 e5 9 10 e3h 2", "d5 f5 e6 d4 f4", id="a wall behind: diagonals for player 2"),
        pytest.param("e4 e5 9 9 e5h,e4v 1", "d4 e3 d5", id="one diagonal shut off"),
        pytest.param("e4 e5 8 9 d5h,e5v,d4v 1", "f4 e3", id="both diagonals shut off"),
        pytest.param("e4 e5 9 10 e4h 1", "d4 f4 e3", id="a wall between: no jump"),
        pytest.param("b5 a5 10 10 - 1", "b4 b6 c5 a4 a6", id="the left edge behind: diagonals"),
        pytest.param("h5 i5 10 10 - 1", "h4 h6 g5 i4 i6", id="the right edge behind: diagonals"),
        pytest.param("e8 e9 10 10 - 1", "d8 f8 e7 d9 f9", id="the goal's edge behind: diagonals"),
        pytest.param("e1 e2 10 10 - 2", "d2 f2 e3 d1 f1", id="the other goal's edge behind: diagonals"),
        pytest.param("a8 a9 10 10 - 2", "b9 a7", id="out of a corner"),
        pytest.param("a8 a9 10 10 - 1", "a7 b8 b9", id="beside a corner"),
        pytest.param("e4 e5 9 9 d4v,e5h 1", "f4 e3 f5", id="a side wall and the diagonal beside it"),
    ],
)
def test_pawn_moves(text, squares):
    assert pawn_names(parse(text)) == set(squares.split()), NOTATION.draw(parse(text))
    assert pawn_names(parse(text)) == {n for n in read(text).legal() if len(n) == 2}


def test_most_legal_actions():
    """The bound is reached."""
    assert len(legal_names(parse("b5 a5 10 10 - 1"))) == GAME.spec.max_legal == 133


@pytest.mark.parametrize(
    ("text", "move", "returns"),
    [
        ("e8 a5 10 10 - 1", "e9", [1, -1]),
        ("e8 a2 10 10 - 2", "a1", [-1, 1]),
        ("e8 a2 10 10 - 1", "e7", [0, 0]),
    ],
)
def test_arriving_wins(text, move, returns):
    state = play(parse(text), move)
    assert state.returns.tolist() == state.rewards.tolist() == returns
    assert bool(state.terminated) == any(returns)
    assert bool((single("legal_list")(state) < 0).all()) == any(returns)


def test_walls_are_spent_by_who_places_them():
    state = play(parse(START), "e3h", "e7v", "a1v")
    assert NOTATION.format_state(state) == "e1 e9 8 9 e3h,a1v,e7v 2"
    none_left = parse("e1 e9 0 10 a1h,c1h,e1h,g1h,a3h,c3h,e3h,g3h,a5h,c5h 1")
    assert {len(name) for name in legal_names(none_left)} == {2}
    assert any(len(name) == 3 for name in legal_names(play(none_left, "d1")))


# --- contract -----------------------------------------------------------------------------------------------


def primitives(jaxpr: Any) -> set[str]:
    names = set()
    for equation in jaxpr.eqns:
        names.add(equation.primitive.name)
        for value in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda v: hasattr(v, "eqns")):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                names |= primitives(inner)
    return names


def test_rules_have_no_loops_of_unknown_length():
    state = GAME.init(jax.random.key(0))
    used = primitives(jax.make_jaxpr(GAME.legal_list)(state).jaxpr)
    used |= primitives(jax.make_jaxpr(GAME.apply_action)(state, jnp.int16(0)).jaxpr)
    assert "scan" in used  # the walk does look inside
    assert not used & {"while", "cond", "sort"}


def test_packing(games):
    assert GAME.packed_size == 38
    for plies in games[:10]:
        state = plies[-1].state
        assert_same(single("unpack")(single("pack")(state)), state)


@pytest.mark.parametrize(
    ("seat", "pawns", "walls", "left"),
    [
        (1, [[1, 3], [7, 6]], [[2, 1]], [0.9, 1.0]),
        # Turned by half, d2 is f8 and g8 is c2; the squares b3 to c4 that the wall touches are g6 to h7.
        (2, [[1, 2], [7, 5]], [[5, 6]], [1.0, 0.9]),
    ],
)
def test_observation_is_from_the_movers_side(seat, pawns, walls, left):
    seen = np.asarray(GAME.observe(parse(f"d2 g8 9 10 b3v {seat}")))
    assert seen.shape == GAME.spec.observation_shape
    assert seen.dtype == np.float32
    assert [np.argwhere(seen[..., plane]).tolist() for plane in range(4)] == [pawns[:1], pawns[1:], [], walls]
    for plane in (0, 1):
        assert (seen[..., 4 + plane] == np.float32(left[plane])).all()


def test_actions_are_places_of_the_observation():
    """What an action adds to the mover's view is at the place of its number."""
    for seat in (1, 2):
        state = parse(f"d2 g8 9 9 b3v,f6h {seat}")
        before = np.asarray(single("observe")(state))
        for action in range(0, 209, 3):  # whether legal or not
            after = single("apply_action")(state, jnp.int16(action))
            back = dataclasses.replace(after, to_play=state.to_play)  # looks again from the same side
            new = np.argwhere(np.asarray(single("observe")(back))[..., :4] > before[..., :4]).tolist()
            place = divmod(action, 9) if action < 81 else divmod((action - 81) % 64, 8)
            plane = 0 if action < 81 else 2 + (action - 81) // 64
            was_there = before[(*place, plane)] == 1
            assert new == ([] if was_there else [[*place, plane]])


# --- symmetries ---------------------------------------------------------------------------------------------


def mask(listed: jax.Array) -> np.ndarray:
    """`[B, 209]` bool from legal lists."""
    return (np.asarray(listed)[:, :, None] == np.arange(209)).any(1)


@pytest.mark.slow
@pytest.mark.parametrize("symmetry", GAME.symmetries, ids=lambda s: s.name)
def test_symmetries(symmetry, games):
    """Legal actions map on to legal actions, and turning before a move or after it makes no difference."""
    rng = np.random.default_rng(3)
    plies = [ply for game in games for ply in game][::5]
    states = stack([ply.state for ply in plies])
    turn = jax.jit(jax.vmap(symmetry.turn))
    turned = turn(states)
    names = np.array(symmetry.actions)
    assert sorted(names) == list(range(209))
    legal, turned_legal = (mask(batched("legal_list")(s)) for s in (states, turned))
    np.testing.assert_array_equal(turned_legal[:, names], legal)
    assert_same(turn(turned), states)  # both are their own inverse
    going = np.flatnonzero(legal.any(1))
    states, turned = (jax.tree.map(lambda leaf: np.asarray(leaf)[going], s) for s in (states, turned))
    for _ in range(3):
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in legal[going]], np.int16)
        after = turn(batched("apply_action")(states, jnp.asarray(actions)))
        assert_same(after, batched("apply_action")(turned, jnp.asarray(names[actions], jnp.int16)))


def test_swapping_seats_swaps_everything():
    state = parse("d2 g8 9 10 b3v 1")
    swap = next(s for s in GAME.symmetries if s.swaps_seats)
    assert NOTATION.format_state(swap.turn(state)) == "c2 f8 10 9 g6v 2"
    np.testing.assert_array_equal(GAME.observe(swap.turn(state)), GAME.observe(state))
    won = swap.turn(parse("d9 g8 10 10 - 2"))
    assert won.returns.tolist() == [-1, 1]


def test_reflection_mirrors_the_board():
    mirror = GAME.symmetries[0].turn(parse("d2 g8 8 10 b3v,a1h 1"))
    assert NOTATION.format_state(mirror) == "f2 c8 8 10 h1h,g3v 1"


# --- notation -----------------------------------------------------------------------------------------------


def test_positions_and_moves_are_read_back(games):
    for plies in games[::6]:
        for ply in plies[::4]:
            state = parse(ply.described)
            assert_same(state, ply.state)
            for action in ply.listed[ply.listed >= 0][::9]:
                assert NOTATION.parse_action(state, NOTATION.format_action(state, action)) == action


def test_names_are_of_the_table():
    one, two = parse(START), parse("e1 e9 10 10 - 2")
    actions = [0, 8, 13, 80, 81, 144, 145, 208]
    assert " ".join(NOTATION.format_action(one, a) for a in actions) == "a1 i1 e2 i9 a1h h8h a1v h8v"
    assert " ".join(NOTATION.format_action(two, a) for a in actions) == "i9 a9 e8 a1 h8h a1h h8v a1v"
    assert NOTATION.parse_action(one, " E2 ") == NOTATION.parse_action(two, "e8") == 13


@pytest.mark.parametrize(
    ("text", "move", "why"),
    [
        (START, "e10", "neither a square nor a wall"),
        (START, "i3h", "neither a square nor a wall"),
        (START, "", "neither a square nor a wall"),
        (START, "e1", "stands there already"),
        (START, "e3", "not next to e1"),
        (START, "d2", "not next to e1"),
        ("e4 e5 10 10 - 1", "e5", "the other pawn stands there"),
        ("e4 e5 9 10 e4h 1", "e6", "in the way of the jump"),
        ("e4 e5 9 10 e5h 1", "e6", "in the way of the jump"),
        ("e4 e5 9 9 e5h,e4v 1", "f5", "in the way of the jump"),
        ("e4 e5 10 10 - 1", "f5", "can be jumped straight"),
        ("e1 e9 9 10 e1h 1", "e2", "a wall is in the way"),
        ("e1 e9 9 10 e3h 1", "e3h", "is there already"),
        ("e1 e9 9 10 e3h 1", "e3v", "would cross wall e3h"),
        ("e1 e9 9 10 e3v 1", "e3h", "would cross wall e3v"),
        ("e1 e9 9 10 e3h 1", "d3h", "would overlap wall e3h"),
        ("e1 e9 9 10 e3h 2", "f3h", "would overlap wall e3h"),
        ("e1 e9 9 10 e3v 1", "e2v", "would overlap wall e3v"),
        ("e1 e9 9 10 e3v 1", "e4v", "would overlap wall e3v"),
        ("e1 e9 0 10 a1h,c1h,e1h,g1h,a3h,c3h,e3h,g3h,a5h,c5h 1", "h8v", "player 1 has no walls left"),
        ("e1 e9 9 9 d1v,e1v 2", "e2h", "cut player 1 off from row 9"),
        ("e1 e9 9 9 d8v,e8v 1", "e7h", "cut player 2 off from row 1"),
        ("a3 b3 8 8 b4v,a4h,a1h,c7v 1", "b2v", "cut player 1 off from row 9 and player 2 off from row 1"),
        ("e9 e5 10 10 - 2", "e4", "the game is over"),
        ("e9 e5 10 10 - 2", "a1h", "the game is over"),
    ],
)
def test_moves_that_are_refused(text, move, why):
    state = parse(text)
    with pytest.raises(NotationError, match=why) as error:
        NOTATION.parse_action(state, move)
    assert repr(move) in str(error.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it has 0 words"),
        ("e1 e9 10 10 1", "it has 5 words"),
        ("e0 e9 10 10 - 1", "'e0' is not a square"),
        ("e1 e3h 10 10 - 1", "'e3h' is not a square"),
        ("e5 e5 10 10 - 1", "both pawns are on e5"),
        ("e1 e9 11 9 - 1", "0 to 10"),
        ("e1 e9 -1 10 - 1", "0 to 10"),
        ("e1 e9 10 10 e3h 1", "1 walls are in place, 10 and 10 are left; the sum must be 20"),
        ("e1 e9 9 10 - 1", "0 walls are in place, 9 and 10 are left"),
        ("e1 e9 9 10 e9h 1", "'e9h' is not a wall"),
        ("e1 e9 9 10 e5 1", "'e5' is not a wall"),
        ("e1 e9 9 9 e3h,e3h 1", "wall e3h is there already"),
        ("e1 e9 9 9 e3h,e3v 1", "wall e3v would cross wall e3h"),
        ("e1 e9 9 9 e3h,f3h 1", "wall f3h would overlap wall e3h"),
        ("e1 e9 9 9 e3v,e4v 1", "wall e4v would overlap wall e3v"),
        ("e1 e9 10 10 - 3", "the player to move is '3'"),
        ("e9 e1 10 10 - 1", "both pawns are on their goal rows"),
        ("e9 e5 10 10 - 1", "player 1 has arrived"),
        ("e5 e1 10 10 - 2", "player 2 has arrived"),
        ("e1 e9 8 9 d1v,e1v,e2h 1", "cut player 1 off from row 9"),
        ("e1 e9 8 9 d8v,e8v,e7h 1", "cut player 2 off from row 1"),
    ],
)
def test_positions_that_are_refused(text, why):
    with pytest.raises(NotationError, match=why) as error:
        parse(text)
    assert repr(text) in str(error.value)


def test_drawing():
    assert NOTATION.draw(parse("d3 e8 9 7 a3h,e5v,h8v,h1h 2")) == DRAWING.strip("\n")
    assert NOTATION.draw(parse("e9 e5 10 10 - 2")).endswith("game over")


DRAWING = """
9  .   .   .   .   .   .   .   . | .
                                 |
8  .   .   .   .   2   .   .   . | .

7  .   .   .   .   .   .   .   .   .

6  .   .   .   .   . | .   .   .   .
                     |
5  .   .   .   .   . | .   .   .   .

4  .   .   .   .   .   .   .   .   .
  -------
3  .   .   .   1   .   .   .   .   .

2  .   .   .   .   .   .   .   .   .
                              -------
1  .   .   .   .   .   .   .   .   .
   a   b   c   d   e   f   g   h   i
walls left: 9 and 7; player 2 to move
"""
