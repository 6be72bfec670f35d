"""`alea play`, driven through string streams: whole conversations, read back."""

from __future__ import annotations

import dataclasses
import functools
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aleazero.cli.main import run
from aleazero.cli.play import HELP, Session
from aleazero.core.errors import GameContractError
from aleazero.core.game import Game
from aleazero.games.backgammon.game import Backgammon, BackgammonState
from aleazero.games.registry import make_game
from aleazero.games.tictactoe import TicTacToe
from aleazero.models.build import ModelConfig, build_model
from aleazero.players import TurnNetworkPlayer, make_player
from aleazero.solvers.tictactoe import solve_moves
from tests.games.conftest import quick_compile  # noqa: F401

BOTH = frozenset({0, 1})


@dataclasses.dataclass(frozen=True)
class Scripted:
    """Plays the first of its actions that is legal."""

    game: Game
    actions: tuple[int, ...]
    name: str = "scripted"

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        legal = {int(a) for a in self.game.legal_list(jax.tree.map(lambda x: x[0], states))}
        return jnp.array([next(action for action in self.actions if action in legal)])


def game_called(name: str) -> Game:
    game = make_game(name)
    assert isinstance(game, Game)
    return game


def talk(game: Game, engine: Any, lines: Sequence[str], people: frozenset[int] = frozenset({0}), seed: int = 0) -> str:
    """What is printed in a game in which a person types these lines, and then no more."""
    out = io.StringIO()
    Session(game, engine, people, seed, io.StringIO("".join(f"{line}\n" for line in lines)), out).play()
    return out.getvalue()


@pytest.fixture(scope="module")
def tictactoe() -> Game:
    return game_called("tictactoe")


def test_a_whole_game_between_two_people(tictactoe: Game) -> None:
    said = talk(tictactoe, None, ["a1", "B1", "a2", "b2", "a3"], BOTH)
    assert "a1 (bottom left) to c3" in said  # the notation is explained
    assert said.index("player 1> ") < said.index("player 2> ")
    assert "3 X . .\n2 X O .\n1 X O .\n  a b c" in said
    assert said.endswith("player 1 wins (win, +1 points for player 1)\n")


def test_moves_by_their_number_in_the_list(tictactoe: Game) -> None:
    said = talk(tictactoe, None, ["9", "8", "1"], BOTH)
    assert "  1: a3  2: b3  3: c3  4: a2  5: b2  6: c2  7: a1  8: b1  9: c1" in said
    # The ninth square, the eighth of the rest, then the first: c1, b1, a3.
    assert "3 X . .\n2 . . .\n1 . O X\n" in said


def test_many_moves_are_listed_only_if_asked_for(tictactoe: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aleazero.cli.play.FEW_MOVES", 8)
    said = talk(tictactoe, None, ["a1", "undo", "moves"], BOTH)
    assert said.count("9 legal moves; type moves to see them") == 2
    assert said.count("1: a3") == 2  # of the eight moves after a1, and where it was asked for
    assert "taken back" in said


def test_where_moves_are_numbers_a_number_is_the_move_itself() -> None:
    game = game_called("connect_four")
    said = talk(game, None, ["1"] * 7 + ["2"], BOTH)
    assert "column 1 is full" in said
    assert "  1  2  3  4  5  6  7\n" in said
    # Now the list begins with column 2, which is played by 2 and not by 1.
    assert "\n  2  3  4  5  6  7\n" in said
    assert re.search(r"O \. \. \. \. \. \.\n(. . \. \. \. \. \.\n){4}X X \. \. \. \. \.\n1 2 3", said)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("a1", "move 'a1' is not possible: the square is taken"),
        ("zz", "move 'zz' is not a square: write a1 to c3"),
        ("9", "there is no move 9: the list goes from 1 to 8"),
        ("0", "there is no move 0"),
        ("castle", "move 'castle' is not a square"),
    ],
)
def test_an_illegal_move_is_explained_and_asked_again(tictactoe: Game, typed: str, said: str) -> None:
    printed = talk(tictactoe, None, ["a1", typed, "", "b2"], BOTH)
    assert said in printed
    assert "Type moves for the legal ones" in printed
    assert "3 . . .\n2 . O .\n1 X . .\n" in printed  # the same player moved after all
    assert printed.count("player 2> ") == 3


def test_against_an_engine_from_either_seat(tictactoe: Game) -> None:
    engine = Scripted(tictactoe, (0, 1, 2, 3, 4, 5, 6, 7, 8))  # a3, b3, c3, ...
    first = talk(tictactoe, engine, ["a1", "b2", "c2", "c1"])
    assert "scripted plays a3\n" in first
    assert first.endswith("you lose (loss, -1 points)\n")  # a3 b3 c3
    second = talk(tictactoe, engine, ["c3", "b2", "a1"], frozenset({1}))
    assert second.index("scripted plays a3") < second.index("you> ")
    assert second.endswith("you win (win, +1 points)\n")  # c3 b2 a1
    drawn = talk(tictactoe, Scripted(tictactoe, (4, 1, 5, 6)), ["a3", "c3", "b1", "a2", "c1"])
    assert drawn.endswith("a draw (draw, +0 points)\n")


def test_undo_goes_back_to_ones_own_decision(tictactoe: Game) -> None:
    engine = Scripted(tictactoe, tuple(range(9)))
    said = talk(tictactoe, engine, ["undo", "b2", "undo", "a1", "b1", "undo", "undo", "c3", "quit"])
    assert said.count("there is no move of yours to take back") == 1
    boards = re.findall(r"3 (.*)\n2 (.*)\n1 (.*)\n  a b c", said)
    empty, nothing = (". . .",) * 3, ". . ."
    assert boards == [
        empty,
        ("O . .", ". X .", nothing),  # b2, and the answer
        empty,  # taken back, with the answer
        ("O . .", nothing, "X . ."),
        ("O O .", nothing, "X X ."),
        ("O . .", nothing, "X . ."),
        empty,
        ("O . X", nothing, nothing),
    ]


def test_two_people_take_back_one_move_at_a_time(tictactoe: Game) -> None:
    said = talk(tictactoe, None, ["a1", "undo", "b2", "c3"], BOTH)
    assert re.findall(r"player (\d)>", said) == ["1", "2", "1", "2", "1"]
    assert "3 . . O\n2 . X .\n1 . . .\n" in said


def test_words_that_are_no_moves(tictactoe: Game) -> None:
    said = talk(tictactoe, None, ["help", "HELP", "board", "moves", "eval", "quit"], BOTH)
    assert said.count(HELP) == 2
    assert said.count("  a b c") == 2
    assert said.count("1: a3") == 2
    assert "there is nobody to ask" in said
    assert said.endswith("the game is left unfinished\n")


def test_the_end_of_the_input_and_resigning(tictactoe: Game) -> None:
    assert talk(tictactoe, None, ["a1"], BOTH).endswith("player 2> \nthe game is left unfinished\n")
    assert talk(tictactoe, None, ["a1", "resign"], BOTH).endswith("player 2 resigns: player 1 wins\n")
    engine = Scripted(tictactoe, tuple(range(9)))
    assert talk(tictactoe, engine, ["resign"]).endswith("you resign: you lose\n")


def test_a_game_that_is_stopped_has_no_result() -> None:
    class Short(TicTacToe):
        spec = dataclasses.replace(TicTacToe.spec, max_plies=3)

    said = talk(Short(), None, ["a1", "a2", "a3", "b1"], BOTH)
    assert said.endswith("the game is stopped after 3 plies, without a result\n")


def test_an_engine_that_breaks_the_rules_is_named(tictactoe: Game) -> None:
    class Cheat(Scripted):
        def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
            return jnp.array([0])

    with pytest.raises(GameContractError, match="'scripted' chose action 0"):
        talk(tictactoe, Cheat(tictactoe, ()), ["a3"])


# ---- chance


def test_what_nature_does_is_announced_and_counts() -> None:
    said = talk(game_called("pig"), None, ["roll"] * 12, BOTH, seed=5)
    faces = [int(face) for face in re.findall(r"chance: (\d)", said)]
    turns = [int(points) for points in re.findall(r"to play; the turn has brought (\d+)", said)]
    seats = [int(seat) for seat in re.findall(r"player (\d) to play;", said)]
    assert len(faces) == 12
    expected, seat, points = [(1, 0)], 1, 0
    for face in faces:
        seat, points = (3 - seat, 0) if face == 1 else (seat, points + face)
        expected.append((seat, points))
    assert [*zip(seats, turns, strict=True)] == expected
    assert 1 in faces  # so that a turn was lost
    assert "  1: roll\n" in said  # nothing to hold yet
    assert "  1: roll  2: hold\n" in said


def test_the_dice_follow_the_seed_and_undo_does_not_change_them() -> None:
    game = game_called("pig")

    def dice(lines: list[str], seed: int) -> list[str]:
        return re.findall(r"chance: (\d)", talk(game, None, lines, BOTH, seed))

    assert dice(["roll"] * 6, 1) == dice(["roll"] * 6, 1) != dice(["roll"] * 6, 2)
    once, again = dice(["roll", "roll"], 1), dice(["roll", "undo", "roll", "roll"], 1)
    assert again == [once[0], *once]


# ---- eval


def test_eval_of_the_solver_is_exact(tictactoe: Game) -> None:
    said = talk(tictactoe, make_player("solver", tictactoe), ["a1", "a2", "b2", "b1", "eval"], BOTH)
    _, _, table = said.partition("exactly, in points:\n")
    rows = [line.split() for line in table.splitlines()[:5]]
    (exact,) = solve_moves(np.array([[-1, -1, -1, 1, 0, -1, 0, 1, -1]]))
    assert {name: float(value) for name, value in rows} == {
        name: exact[square] for name, square in {"a3": 0, "b3": 1, "c3": 2, "c2": 5, "c1": 8}.items()
    }
    values = [float(value) for _, value in rows]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) > 1


def test_eval_of_a_network(trained: Path, tictactoe: Game) -> None:
    player = make_player("run:tiny,sims=6", tictactoe, trained)
    said = talk(tictactoe, player, ["eval", "quit"])
    chances = [float(chance) for chance in re.findall(r"(?:win|draw|loss) ([\d.]+)%", said)]
    assert len(chances) == 3
    assert sum(chances) == pytest.approx(100, abs=0.2)
    assert "after 6 simulations: value" in said
    rows = re.findall(r"^  ([abc][123])  prior +([\d.]+)%  visits +(\d+)  value (\S+)$", said, re.MULTILINE)
    assert {name for name, *_ in rows} == {f"{column}{row}" for column in "abc" for row in "123"}
    assert sum(int(visits) for _, _, visits, _ in rows) == 6
    assert all((value == "unknown") == (visits == "0") for _, _, visits, value in rows)
    assert sum(float(prior) for _, prior, _, _ in rows) == pytest.approx(100, abs=0.5)


def test_eval_of_a_network_without_a_search(trained: Path, tictactoe: Game) -> None:
    said = talk(tictactoe, make_player("run:tiny,search=none", tictactoe, trained), ["b2", "eval", "quit"])
    rows = re.findall(r"^  ([abc][123])  prior +([\d.]+)%$", said, re.MULTILINE)
    assert len(rows) == 7  # two squares are taken
    priors = [float(prior) for _, prior in rows]
    assert priors == sorted(priors, reverse=True)


def test_random_has_no_opinion(tictactoe: Game) -> None:
    said = talk(tictactoe, make_player("random", tictactoe), ["eval"])
    assert "random has no opinion" in said


# ---- whole turns


class Placed(Backgammon):
    """Backgammon from another position, with dice or before a roll."""

    def __init__(self, xgid: str) -> None:
        super().__init__()
        self.first = Backgammon().notation.parse_state(xgid)

    def init(self, key: Array) -> BackgammonState:
        return self.first


@dataclasses.dataclass(frozen=True)
class TurnTaker:
    """Plays the last turn of the list."""

    game: Game
    name: str = "taker"

    def turn(self, states: Any, lanes: Array, keys: Array) -> Any:
        listed = self.game.notation.turns(jax.tree.map(lambda x: x[0], states))
        return jax.tree.map(lambda x: x[None], listed[-1][1])


OPENING_31 = "XGID=-b----E-C---eE---c-e----B-:0:0:1:31:0:0:0:0:0"


@functools.cache
def placed(xgid: str) -> Game:
    return Placed(xgid)


@pytest.fixture
def backgammon(quick_compile: None) -> Game:  # noqa: F811
    """X to play 31 in the first position."""
    return placed(OPENING_31)


def boards(said: str) -> list[str]:
    return re.findall(r"^ 13 14 .*?pips.*?off$", said, re.MULTILINE | re.DOTALL)


def test_a_turn_is_typed_at_once_or_a_checker_at_a_time(backgammon: Game) -> None:
    whole = talk(backgammon, TurnTaker(backgammon), ["8/5 6/5"])
    (number,) = re.findall(r"(\d+): 8/5 6/5", whole)
    # The same dice follow, whichever way the turn was typed.
    for lines in (["8/5", "6/5"], ["6/5", "8/5"], [number], ["6/5,8/5"]):
        said = talk(backgammon, TurnTaker(backgammon), lines)
        assert boards(said)[-1] == boards(whole)[-1]
        assert re.findall(r"chance: .*|taker .*", said) == re.findall(r"chance: .*|taker .*", whole)
    assert len(boards(whole)) == 2
    assert len(re.findall("chance: ", whole)) == 2
    halves = talk(backgammon, TurnTaker(backgammon), ["8/5"])
    assert "chance" not in halves
    assert "X to play 1\n" in halves
    assert "  1: 5/4    2: 6/5    3: 8/7    4: 24/23\n" in halves  # the rest of the turn


def test_an_engines_turn_is_shown_whole(backgammon: Game) -> None:
    said = talk(backgammon, TurnTaker(backgammon), ["8/5 6/5"], seed=4)
    (dice,), (name,) = re.findall(r"chance: (\d\d)\ntaker plays", said), re.findall(r"taker plays (.+)", said)
    after = "XGID=-b---BD-B---eE---c-e----B-:0:0:-1:{}:0:0:0:0:0"
    state = backgammon.notation.parse_state(after.format(dice))
    listed = backgammon.notation.turns(state)
    assert name == backgammon.notation.format_turn(state, listed[-1][0])
    assert len(name.split()) == 2


def test_an_engine_of_single_moves_plays_whole_turns(backgammon: Game) -> None:
    said = talk(backgammon, make_player("random", backgammon), ["8/5 6/5", "1", "1"], seed=2)
    turns = re.findall(r"random plays (.*)", said)
    assert len(turns) == 3
    assert len(re.findall("chance", said)) == 6
    steps = [len(re.findall(r"/", turn)) + sum(int(n) - 1 for n in re.findall(r"\((\d)\)", turn)) for turn in turns]
    assert max(steps) >= 2


def test_gnubg_at_the_table(backgammon: Game) -> None:
    pytest.importorskip("gnubg_nn")
    player = make_player("gnubg:ply=0", backgammon)
    said = talk(backgammon, player, ["eval"], people=frozenset({1}))
    assert "gnubg:ply=0 plays 8/5 6/5\n" in said
    assert re.search(r"^  1  \S.*[+-]\d\.\d{3}", said, re.MULTILINE)
    middle = talk(backgammon, player, ["8/5", "eval"])
    assert "has no opinion in the middle of a turn" in middle


def test_undo_goes_back_to_the_beginning_of_a_turn(backgammon: Game) -> None:
    said = talk(backgammon, TurnTaker(backgammon), ["8/5", "undo", "undo", "8/5", "8/7", "undo", "undo"], seed=3)
    assert said.count("there is no move of yours to take back") == 2
    first, half, again, *_ = seen = boards(said)
    assert first == again == seen[-1] != half
    assert len(seen) == 6  # 31; a checker moved; taken back; moved; the whole turn and an answer; taken back


@pytest.mark.usefixtures("quick_compile")
def test_a_forced_pass_is_played_and_said() -> None:
    game = Placed(f"XGID=-A{'-' * 17}bbbbbbA:0:0:1:66:0:0:0:0:0")
    said = talk(game, TurnTaker(game), ["quit"])
    assert "you cannot move: pass\nchance: " in said
    assert "taker plays" in said
    engine = talk(game, TurnTaker(game), ["quit"], people=frozenset({1}))
    assert "taker cannot move: pass\n" in engine
    assert "taker plays" not in engine


def test_many_turns_are_listed_checker_by_checker(backgammon: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aleazero.cli.play.FEW_MOVES", 12)
    said = talk(backgammon, None, ["8/9", "3", "quit"], BOTH)
    assert "turn '8/9' is not possible here; possible: " in said
    (third,) = re.findall(r"  3: (\S+)", said.partition("player 1>")[0])
    assert "/" in third
    assert "X to play " in said.partition("player 1>")[2]  # one checker has moved, not the whole turn


def test_eval_of_a_network_that_plays_turns(backgammon: Game) -> None:
    model = build_model(ModelConfig(width=16, blocks=1, policy=False), backgammon.spec)
    player = TurnNetworkPlayer(backgammon, model, jax.jit(model.init)(jax.random.key(1)), "tiny")
    said = talk(backgammon, player, ["eval", "8/5", "eval"])
    tables = re.findall(r"play +equity .*\n((?: +\d+  .*\n)+)", said)
    assert [table.count("\n") for table in tables] == [8, 4]  # the best of all turns; what is left of one
    for table in tables:
        rows = [re.split(r"  +", line.strip()) for line in table.splitlines()]
        equities = [float(row[2].split()[0]) for row in rows]
        assert equities == sorted(equities, reverse=True)
        for row, equity in zip(rows, equities, strict=True):
            win, gammon, backgammon_, lose, lost_gammon, lost_backgammon = (float(x[:-1]) / 100 for x in row[-6:])
            assert win + lose == pytest.approx(1, abs=2e-3)
            points = win - lose + gammon - lost_gammon + backgammon_ - lost_backgammon
            assert points == pytest.approx(equity, abs=5e-3)


def test_a_turn_that_breaks_the_rules_is_named(backgammon: Game) -> None:
    class Cheat(TurnTaker):
        def turn(self, states: Any, lanes: Array, keys: Array) -> Any:
            return states

    with pytest.raises(GameContractError, match=r"'taker' chose a turn, which is not legal in 'XGID="):
        talk(backgammon, Cheat(backgammon), [], people=frozenset({1}))


# ---- games as files


def saved(game: Game, lines: Sequence[str], file: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> list[str]:
    """What `alea play` writes of a game between two people; without the first four lines."""
    monkeypatch.setattr("aleazero.cli.play.game_of", lambda name: game)
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    assert run(["play", "backgammon", "--player", "human", "--seed", "0", "--save", str(file), *options]) == 0
    return file.read_text().splitlines()


def test_a_game_is_written_however_it_ends(
    backgammon: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = saved(backgammon, ["8/5", "6/5", "1", "undo", "2"], tmp_path / "left.mat", monkeypatch)
    assert left[3].split() == ["player_1", ":", "0", "player_2", ":", "0"]
    assert left[4].startswith("  1) 31: 8/5 6/5  ")
    assert len(re.findall(r"\d\d: ", left[4])) == 2
    assert len(left) == 5  # what was taken back is not there, nor a turn that was only begun
    assert f"written to {tmp_path / 'left.mat'}\n" in capsys.readouterr().out
    gone = saved(backgammon, ["8/5 6/5", "1", "13/9", "resign"], tmp_path / "gone.mat", monkeypatch)
    assert gone[-1] == " " * 34 + "Wins 1 point"
    sgf = saved(backgammon, ["8/5 6/5", "resign"], tmp_path / "gone.sgf", monkeypatch)
    assert "RE[W+1R]" in sgf[0]
    assert sgf[1].startswith(";W[31hefe]") or sgf[1].startswith(";W[31fehe]")
    won = Placed("XGID=-A-----------------o------:0:0:1:31:0:0:0:0:0")
    lines = saved(won, ["1/off"], tmp_path / "won.mat", monkeypatch)
    assert lines[4:] == ["  1) 31: 1/0", "      Wins 2 points"]


def test_a_game_is_written_if_the_engine_fails(
    backgammon: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Failing(TurnTaker):
        def turn(self, states: Any, lanes: Array, keys: Array) -> Any:
            raise GameContractError("turn", "the engine is gone")

    monkeypatch.setattr("aleazero.cli.play.game_of", lambda name: backgammon)
    monkeypatch.setattr("aleazero.cli.play.players_of", lambda *rest: [Failing(backgammon)])
    monkeypatch.setattr("sys.stdin", io.StringIO("8/5 6/5\n"))
    assert run(["play", "backgammon", "--player", "random", "--save", str(tmp_path / "game.mat")]) == 1
    assert "the engine is gone" in capsys.readouterr().err
    assert (tmp_path / "game.mat").read_text().count("31: ") == 1


def test_places_where_no_game_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "there.mat").write_text("")
    for game, file, why in (
        ("tictactoe", tmp_path / "a.mat", "games of backgammon and chess can be written, of tictactoe not"),
        ("backgammon", tmp_path / "a.txt", "its name must end in .mat or .sgf"),
        ("backgammon", tmp_path / "there.mat", "which exists; name another file"),
        ("backgammon", tmp_path / "no" / "a.mat", "is no folder"),
    ):
        assert run(["play", game, "--player", "human", "--save", str(file)]) == 2
        assert why in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["there.mat"]


# ---- the command


def test_the_command_plays_at_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tictactoe: Game
) -> None:
    command = ["play", "tictactoe", "--seed", "3", "--seat", "2"]
    for typed, end in (("1\n1\n1\n1\n", ""), ("", "the game is left unfinished\n"), ("quit\n", "unfinished\n")):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert run(command) == 0
        said = capsys.readouterr().out
        assert said.endswith(end)
        assert "so random plays" in said
        assert "seed 3" in said
        assert "random plays " in said
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(["play", "tictactoe", "--player", "human"]) == 0
    assert "player 1> " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["play", "tictactoe", "--seat", "3"], "--seat"),
        (["play", "tictactoe", "--player", "humn"], "unknown player 'humn'"),
        (["play", "tictactoe", "--player", "bundled"], "no network for tictactoe comes with the package"),
        (["play", "tictactoe", "--player", "human", "--seed", "-3"], "seed is -3"),
        (["play", "tictacto"], "did you mean 'tictactoe'"),
    ],
)
def test_misuse_exits_with_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())
