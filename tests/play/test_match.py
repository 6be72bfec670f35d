"""Matches: seats, paired luck, who is named when something is wrong."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aleazero.core.errors import GameContractError
from aleazero.core.game import FlatPlays
from aleazero.core.struct import replace, where_lanes
from aleazero.games.pig import HOLD, ROLL, Pig
from aleazero.games.tictactoe import TicTacToe
from aleazero.play.match import MatchResult, TurnPlayer, play_match
from aleazero.players import RandomPlayer, make_player
from tests.games.conftest import quick_compile  # noqa: F401
from tests.games.tiny import GOAL, MOVES, Dash
from tests.play.test_turns import Toss

pytestmark = pytest.mark.usefixtures("quick_compile")

TICTACTOE, PIG = TicTacToe(), Pig()
PAIRS = 20  # in most matches, so that they share their programs


@dataclasses.dataclass
class Told:
    """Plays what a function says of one state, and remembers what it was asked."""

    rule: Callable[[Any], int]
    name: str = "told"
    seen: list[Any] = dataclasses.field(default_factory=list)
    asked: list[np.ndarray] = dataclasses.field(default_factory=list)
    keys: list[np.ndarray] = dataclasses.field(default_factory=list)
    moves: dict[bytes, Any] = dataclasses.field(default_factory=dict)  # by their keys: both players may share it

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        host = jax.tree.map(np.asarray, states)
        self.seen.append(host)
        self.asked.append(np.asarray(lanes))
        self.keys.append(np.asarray(jax.random.key_data(keys)))
        self.moves[self.keys[-1].tobytes()] = host
        actions = [
            self.rule(jax.tree.map(lambda x, at=lane: x[at], host)) if asked else -7  # nobody looks there
            for lane, asked in enumerate(np.asarray(lanes))
        ]
        return jnp.array(actions)


def first_free(state: Any) -> int:
    return int(np.flatnonzero(state.board < 0)[0])


def last_free(state: Any) -> int:
    return int(np.flatnonzero(state.board < 0)[-1])


def hold_at(points: int) -> Callable[[Any], int]:
    def rule(state: Any) -> int:
        turn, mine = int(state.turn_points), int(state.scores[int(state.to_play)])
        return HOLD if turn and (turn >= points or mine + turn >= 100) else ROLL

    return rule


def test_both_games_of_a_pair_are_played_from_both_seats() -> None:
    """First free against last free: whoever moves first has three in a row first."""
    player, opponent = Told(first_free, "a"), Told(last_free, "b")
    result = play_match(TICTACTOE, player, opponent, pairs=PAIRS, seed=0)
    assert isinstance(result, MatchResult)
    assert (result.player, result.opponent) == ("a", "b")
    # X 0, O 8, X 1, O 7, X 2: the top row. From the other seat it is the bottom row that wins.
    assert result.points.tolist() == [[1.0, -1.0]] * PAIRS
    assert result.points.dtype == np.float64
    assert result.plies.tolist() == [[5, 5]] * PAIRS
    # Nobody is asked for the other's moves: even lanes are the games in which the player has seat 0.
    for move, asked in enumerate(player.asked):
        assert asked.tolist() == [move % 2 == 0, move % 2 == 1] * PAIRS
    for move, asked in enumerate(opponent.asked):
        assert asked.tolist() == [move % 2 == 1, move % 2 == 0] * PAIRS


def test_points_are_the_players_own() -> None:
    """Win from seat 0, lose from seat 0: the result changes sides with the players."""
    one = play_match(PIG, Told(hold_at(20)), Told(hold_at(3)), pairs=PAIRS, seed=1)
    two = play_match(PIG, Told(hold_at(3)), Told(hold_at(20)), pairs=PAIRS, seed=1)
    np.testing.assert_array_equal(one.points, -two.points[:, ::-1])
    assert one.points.mean() > 0.5  # holding at 3 is feeble
    assert one.plies.tolist() == two.plies[:, ::-1].tolist()


def test_the_luck_of_a_pair_is_shared() -> None:
    player, opponent = Told(hold_at(20)), Told(hold_at(20))
    result = play_match(PIG, player, opponent, pairs=PAIRS, seed=2)
    assert (result.points.sum(-1) == 0).all()  # the same game twice, from both sides
    assert len({tuple(row) for row in result.plies.tolist()}) > 10  # other pairs, other dice
    assert (result.plies[:, 0] == result.plies[:, 1]).all()
    for states in player.seen:
        scores = states.scores.reshape(PAIRS, 2, 2)
        np.testing.assert_array_equal(scores[:, 0], scores[:, 1])
        np.testing.assert_array_equal(states.turn_points[::2], states.turn_points[1::2])


def faces_shown(before: Any, after: Any) -> np.ndarray:
    """What Pig's die showed between two moves of every game; 0 where it was not thrown."""
    passed = (before.to_play != after.to_play) & (before.scores == after.scores).all(-1)
    return np.where(passed, 1, np.maximum(after.turn_points - before.turn_points, 0))


def test_dice_are_shared_whatever_the_players_do() -> None:
    """Who throws at the same move throws the same, even where the two games of a pair have gone apart."""
    moves: dict[bytes, Any] = {}  # at some of them only one of the two is asked, but shown all games
    play_match(PIG, Told(hold_at(8), moves=moves), Told(hold_at(15), moves=moves), pairs=PAIRS, seed=3)
    faces = np.stack([faces_shown(*pair) for pair in itertools.pairwise(moves.values())]).reshape(-1, PAIRS, 2)
    both = (faces > 0).all(-1)
    np.testing.assert_array_equal(faces[both][:, 0], faces[both][:, 1])
    assert set(faces[both].ravel().tolist()) == {1, 2, 3, 4, 5, 6}
    assert ((faces > 0).any(-1) & ~both).sum() > 20  # they did go apart


def test_openings_are_shared_by_a_pair_and_differ_between_pairs() -> None:
    player, opponent = Told(first_free), Told(first_free)
    result = play_match(TICTACTOE, player, opponent, pairs=PAIRS, seed=4, opening_plies=3)
    boards = player.seen[0].board.reshape(PAIRS, 2, 9)
    np.testing.assert_array_equal(boards[:, 0], boards[:, 1])
    assert ((boards >= 0).sum(-1) == 3).all()
    assert len({board.tobytes() for board in boards[:, 0]}) > 14
    assert (result.points.sum(-1) == 0).all()
    assert {-1.0, 1.0} <= set(result.points.ravel().tolist())
    # Another seed, other openings; the same seed, the same ones.
    again, other = Told(first_free), Told(first_free)
    play_match(TICTACTOE, again, Told(first_free), pairs=PAIRS, seed=4, opening_plies=3)
    play_match(TICTACTOE, other, Told(first_free), pairs=PAIRS, seed=5, opening_plies=3)
    np.testing.assert_array_equal(again.seen[0].board, player.seen[0].board)
    assert (other.seen[0].board != player.seen[0].board).any()


def test_every_game_and_move_has_a_key_of_its_own() -> None:
    player, opponent = Told(first_free), Told(last_free)
    play_match(TICTACTOE, player, opponent, pairs=PAIRS, seed=0)
    keys = np.stack(player.keys)
    assert len({key.tobytes() for key in keys.reshape(-1, keys.shape[-1])}) == keys.shape[0] * 2 * PAIRS
    np.testing.assert_array_equal(player.keys[0], opponent.keys[0])  # one set of keys for the move


@pytest.mark.parametrize("action", [0, 9, -1, 300])
@pytest.mark.parametrize("seat", [0, 1])
def test_an_illegal_action_is_named_with_its_player_and_position(action: int, seat: int) -> None:
    players = [Told(first_free, "honest"), Told(lambda state: 0 if state.board[0] < 0 else action, "cheat")]
    with pytest.raises(GameContractError) as raised:
        play_match(TICTACTOE, players[seat], players[1 - seat], pairs=PAIRS, seed=0)
    assert str(raised.value).startswith(f"match: player 'cheat' chose action {action}, which is not legal in '")
    position = str(raised.value).split("'")[3]
    state = TICTACTOE.notation.parse_state(position)
    assert int((state.board >= 0).sum()) in (1, 2)
    assert not 0 <= action < 9 or int(state.board[action]) >= 0


class EndlessDash(Dash):
    """Dash that is stopped before most games are over."""

    kind = "endless dash"
    spec = dataclasses.replace(Dash.spec, max_plies=13)


def test_a_game_that_is_stopped_has_no_result() -> None:
    game = EndlessDash()
    result = play_match(game, RandomPlayer(game), RandomPlayer(game), pairs=PAIRS, seed=0)
    stopped = np.isnan(result.points)
    assert 4 < stopped.sum() < 36
    assert (result.plies[stopped] == 13).all()
    assert set(result.points[~stopped].tolist()) == {-1.0, 1.0}
    assert result.plies.max() <= 14


@pytest.mark.parametrize(("max_plies", "ends"), [(5, True), (4, False)])
def test_a_game_may_end_with_the_last_ply_allowed(max_plies: int, ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TICTACTOE, "spec", dataclasses.replace(TicTacToe.spec, max_plies=max_plies))
    result = play_match(TICTACTOE, Told(first_free), Told(last_free), pairs=PAIRS, seed=0)
    np.testing.assert_array_equal(result.points, [[1.0, -1.0] if ends else [np.nan, np.nan]] * PAIRS)
    assert (result.plies == max_plies).all()


def test_random_play_is_even() -> None:
    result = play_match(PIG, RandomPlayer(PIG), RandomPlayer(PIG), pairs=400, seed=0)
    score = (result.points + 1) / 2
    assert abs(score.mean() - 0.5) < 4 * 0.5 / 800**0.5
    # Its randomness is not the dice's: the games of a pair are not the same.
    assert (result.plies[:, 0] != result.plies[:, 1]).mean() > 0.9


def test_the_solver_never_loses_to_random() -> None:
    solver, chaos = make_player("solver", TICTACTOE), RandomPlayer(TICTACTOE)
    points = np.stack([play_match(TICTACTOE, solver, chaos, pairs=PAIRS, seed=seed).points for seed in range(4)])
    assert points.min() >= 0
    assert points.mean() > 0.8
    assert not play_match(TICTACTOE, solver, solver, pairs=PAIRS, seed=0).points.any()


def test_a_game_for_one_has_no_matches() -> None:
    class Alone(TicTacToe):
        spec = dataclasses.replace(TicTacToe.spec, num_players=1)

    with pytest.raises(GameContractError, match="tictactoe has 1 player; a match needs two"):
        play_match(Alone(), Told(first_free), Told(first_free), pairs=1, seed=0)


# ---- whole turns


class Filled(Toss):
    """Toss with something in the places of a chunk that hold no play: turns in which nothing moved."""

    kind = "filled toss"

    def _plays(self, states: Any, cursor: Any) -> FlatPlays:
        chunk = super()._plays(states, cursor)
        place = jnp.arange(self.chunk)
        lane = place % states.to_play.shape[0]
        real = place < chunk.count
        idle = jax.tree.map(lambda x: x[lane], states)
        return replace(
            chunk, owner=jnp.where(real, chunk.owner, lane), afterstates=where_lanes(real, chunk.afterstates, idle)
        )


TOSS = Filled(400)  # room for much more than the plays of all games


@functools.cache
def toss_program(name: str) -> Any:
    return jax.jit(jax.vmap(getattr(TOSS, name)))


@dataclasses.dataclass
class Ruled:
    """Moves the token that a rule names, and remembers what it was asked."""

    rule: Callable[[Any], np.ndarray]
    name: str = "ruled"
    seen: list[Any] = dataclasses.field(default_factory=list)
    asked: list[np.ndarray] = dataclasses.field(default_factory=list)
    keys: list[np.ndarray] = dataclasses.field(default_factory=list)

    def note(self, states: Any, lanes: Array, keys: Array) -> None:
        self.seen.append(jax.tree.map(np.asarray, states))
        self.asked.append(np.asarray(lanes))
        self.keys.append(np.asarray(jax.random.key_data(keys)))


class Whole(Ruled):
    """By whole turns."""

    def turn(self, states: Any, lanes: Array, keys: Array) -> Any:
        self.note(states, lanes, keys)
        return self.moved(states, MOVES)

    def moved(self, states: Any, moves: int) -> Any:
        for _ in range(moves):
            going = ~states.is_chance & ~states.terminated
            states = where_lanes(going, toss_program("apply_action")(states, jnp.asarray(self.rule(states))), states)
        return states


class ByActions(Ruled):
    """An action at a time."""

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        self.note(states, lanes, keys)
        return jnp.asarray(np.where(np.asarray(lanes), self.rule(states), -7))  # nobody looks at the others


def foremost(states: Any) -> np.ndarray:
    """The token further on, if it is not home."""
    mine = np.asarray(states.tokens)[np.arange(len(states.to_play)), np.asarray(states.to_play)]
    return np.where(mine < GOAL, mine, -1).argmax(-1)


def hindmost(states: Any) -> np.ndarray:
    mine = np.asarray(states.tokens)[np.arange(len(states.to_play)), np.asarray(states.to_play)]
    return mine.argmin(-1)


def dice_by_game(result: MatchResult) -> list[list[int]]:
    """What was rolled in every game, in order."""
    assert result.rolls is not None
    return [result.rolls.outcome[result.rolls.game == game].tolist() for game in range(2 * PAIRS)]


@pytest.mark.parametrize("kinds", [(Whole, ByActions), (ByActions, Whole), (Whole, Whole)])
def test_dice_are_shared_turn_by_turn_whatever_the_players_are(kinds: tuple[Any, Any]) -> None:
    player, opponent = kinds[0](foremost, "a"), kinds[1](hindmost, "b")
    assert [isinstance(who, TurnPlayer) for who in (player, opponent)] == [kind is Whole for kind in kinds]
    result = play_match(TOSS, player, opponent, pairs=PAIRS, seed=6, record=True)
    dice = dice_by_game(result)
    for one, two in zip(dice[::2], dice[1::2], strict=True):
        common = min(len(one), len(two))
        assert common >= 3
        assert one[:common] == two[:common]
    assert len({tuple(one[:3]) for one in dice[::2]}) > 8
    # A roll and a turn are two plies; the last turn ends the game.
    assert result.plies.ravel().tolist() == [2 * len(rolled) for rolled in dice]
    # The same games whichever way the players say what they do.
    wanted = play_match(TOSS, Whole(foremost), Whole(hindmost), pairs=PAIRS, seed=6)
    np.testing.assert_array_equal(result.points, wanted.points)
    np.testing.assert_array_equal(result.plies, wanted.plies)
    assert {-1.0, 1.0} == set(result.points.ravel().tolist())


def test_what_is_recorded_is_what_nature_did_and_where() -> None:
    player = Whole(foremost)
    result = play_match(TOSS, player, Whole(hindmost), pairs=PAIRS, seed=6, record=True)
    rolls = result.rolls
    assert rolls is not None
    before = jax.tree.map(np.asarray, toss_program("unpack")(rolls.states))
    assert before.is_chance.all()
    assert not before.terminated.any()
    first = rolls.game[: 2 * PAIRS]
    assert first.tolist() == list(range(2 * PAIRS))
    assert (before.die[: 2 * PAIRS] == 0).all()  # the openings, and only they
    assert (before.die[2 * PAIRS :] > 0).all()
    # What each player met next is what was recorded.
    after = jax.tree.map(np.asarray, toss_program("apply_chance")(before, rolls.outcome))
    at = {(game, after.tokens[row].tobytes()): row for row, game in enumerate(rolls.game)}
    for states, asked in zip(player.seen, player.asked, strict=True):
        for lane in np.flatnonzero(asked):
            row = at[lane, states.tokens[lane].tobytes()]
            assert (states.die[lane], states.to_play[lane]) == (after.die[row], after.to_play[row])


def test_who_plays_by_actions_is_asked_until_its_turn_is_over() -> None:
    player, opponent = ByActions(foremost, "a"), Whole(hindmost, "b")
    play_match(TOSS, player, opponent, pairs=PAIRS, seed=6)
    keys = np.stack(player.keys)
    for number in range(0, len(player.seen), MOVES):
        first, second = player.seen[number], player.seen[number + 1]
        asked = player.asked[number]
        assert (first.moves_left[asked] == 2).all()
        assert (second.moves_left[player.asked[number + 1]] == 1).all()
        assert not (player.asked[number + 1] & ~asked).any()
        assert (keys[number] != keys[number + 1]).any(-1).all()
    assert len({key.tobytes() for key in keys.reshape(-1, keys.shape[-1])}) == keys.shape[0] * keys.shape[1]


def half(who: Whole, states: Any) -> Any:
    return who.moved(states, 1)


def nothing(who: Whole, states: Any) -> Any:
    return states


def the_others(who: Whole, states: Any) -> Any:
    """A turn as it should be, but the other player's."""
    return replace(who.moved(states, MOVES), to_play=1 - states.to_play)


def a_step_more(who: Whole, states: Any) -> Any:
    after = who.moved(states, MOVES)
    return replace(after, tokens=jnp.minimum(after.tokens + 1, GOAL).astype(jnp.int8))


@pytest.mark.parametrize("cheating", [half, nothing, the_others, a_step_more])
@pytest.mark.parametrize("seat", [0, 1])
def test_an_illegal_turn_is_named_with_its_player_and_position(cheating: Any, seat: int) -> None:
    class Cheat(Whole):
        def turn(self, states: Any, lanes: Array, keys: Array) -> Any:
            return cheating(self, states)

    players = [Whole(foremost, "honest"), Cheat(foremost, "cheat")]
    with pytest.raises(GameContractError) as raised:
        play_match(TOSS, players[seat], players[1 - seat], pairs=PAIRS, seed=0)
    assert str(raised.value).startswith("match: player 'cheat' chose a turn, which is not legal in '")
    position = str(raised.value).split("'")[3]
    assert re.fullmatch(r"\d\d-\d\d die [12] left 2 player [12]", position)


def test_turns_are_asked_for_only_where_they_count() -> None:
    """What a player says of games that are over, or of the other's turns, is not looked at."""

    class Careless(Whole):
        def turn(self, states: Any, lanes: Array, keys: Array) -> Any:
            after = super().turn(states, lanes, keys)
            return where_lanes(lanes, after, jax.tree.map(jnp.zeros_like, after))

    wanted = play_match(TOSS, Whole(foremost), Whole(hindmost), pairs=PAIRS, seed=6)
    result = play_match(TOSS, Careless(foremost), Careless(hindmost), pairs=PAIRS, seed=6)
    np.testing.assert_array_equal(result.points, wanted.points)


def test_openings_are_whole_turns() -> None:
    """An engine that plays whole turns could not go on in the middle of one."""
    player, opponent = Whole(foremost, "a"), Whole(hindmost, "b")
    result = play_match(TOSS, player, opponent, pairs=PAIRS, seed=1, opening_plies=2, record=True)
    for states, asked in zip(player.seen + opponent.seen, player.asked + opponent.asked, strict=True):
        assert (states.moves_left[asked] == MOVES).all()
    met = player.seen[0]
    tokens = met.tokens.reshape(PAIRS, 2, 2, 2)
    np.testing.assert_array_equal(tokens[:, 0], tokens[:, 1])  # shared by a pair
    assert (tokens.sum(-1) > 0).all()  # both seats have moved
    assert len({row.tobytes() for row in tokens[:, 0]}) > 5
    dice = dice_by_game(result)
    for one, two in zip(dice[::2], dice[1::2], strict=True):
        common = min(len(one), len(two))
        assert one[:common] == two[:common]


def test_a_match_may_be_nothing_but_openings() -> None:
    result = play_match(TOSS, Whole(foremost), Whole(hindmost), pairs=PAIRS, seed=2, opening_plies=50)
    assert set(result.points.ravel().tolist()) == {-1.0, 1.0}
    np.testing.assert_array_equal(result.points[:, 0], -result.points[:, 1])
