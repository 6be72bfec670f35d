"""Stockfish and the rungs as players, suites that judge them, games written down."""

from __future__ import annotations

import dataclasses
import io
import os
import signal
from pathlib import Path
from typing import Any

import chess
import chess.pgn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero import chess_games, chess_players, suites
from aleazero.config import resolve
from aleazero.core.errors import ConfigError, GameContractError
from aleazero.core.keys import Role, lane_keys
from aleazero.core.records import Trajectory
from aleazero.engines import EngineError
from aleazero.engines.stockfish import DEBIAN_PLACE
from aleazero.games.chess.epd import parse_epd
from aleazero.games.registry import make_game
from aleazero.models.build import ModelConfig, build_model
from aleazero.play.episodes import Episode
from aleazero.players import make_player
from aleazero.replay.log import ReplayLog
from aleazero.result_record import describe
from aleazero.runs import new_run
from tests.games.chess.support import GAME, action_of, batched, parse, single, stacked
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("quick_compile"),
    pytest.mark.skipif(not DEBIAN_PLACE.exists(), reason="Debian's stockfish is not installed"),
]
MATE = "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"
BLACK = "4k3/1P6/8/8/8/8/K5p1/7R b - - 0 1"


def keys(count: int, move: int = 0) -> Any:
    return lane_keys(jnp.uint32(0), Role.MATCH, move, jnp.arange(count))


def states(*fens: str) -> Any:
    return stacked([jax.tree.map(np.asarray, parse(fen)) for fen in fens])


def test_of_many_strengths_few_run_and_all_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chess_players, "MOST_ENGINES", 2)
    players: list[Any] = [make_player(f"stockfish:nodes={nodes}", GAME) for nodes in (11, 12, 13)]
    for player in [*players, players[0]]:
        player.choose(states(MATE), jnp.array([True]), keys(1))
        assert player.engine.processes
    assert [len(player.engine.processes) for player in players] == [1, 0, 1]


def test_both_sides_and_only_the_lanes_that_wait() -> None:
    player = make_player("stockfish:nodes=100", GAME)
    chosen = np.asarray(player.choose(states(MATE, BLACK, MATE), jnp.array([True, True, False]), keys(3)))  # type: ignore[union-attr]
    assert chosen[0] == action_of(chess.Board(MATE), chess.Move.from_uci("h5f7"))
    board = chess.Board(BLACK)
    assert chosen[1] in [action_of(board, move) for move in board.legal_moves]
    assert board.san(next(m for m in board.legal_moves if action_of(board, m) == chosen[1])).startswith("gxh1")
    assert describe(player)["engine"].startswith("Stockfish")  # type: ignore[union-attr]


def test_rungs_move_at_random_as_often_as_they_say() -> None:
    many = states(*[MATE] * 64)
    everybody = jnp.ones(64, bool)
    sure = np.asarray(make_player("stockfish:nodes=1", GAME).choose(many, everybody, keys(64)))  # type: ignore[union-attr]
    assert len(set(sure.tolist())) == 1
    shares = {}
    for text in ("eps0", "eps50", "eps100"):
        player = make_player(text, GAME)
        chosen = np.asarray(player.choose(many, everybody, keys(64)))  # type: ignore[union-attr]
        assert (chosen == np.asarray(player.choose(many, everybody, keys(64)))).all()  # type: ignore[union-attr]
        shares[text] = float((chosen == sure[0]).mean())
    assert shares["eps0"] == 1.0
    assert 0.3 < shares["eps50"] < 0.75
    assert shares["eps100"] < 0.2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stockfish", "neither depth nor nodes"),
        ("stockfish:nodes=0", "nodes is 0"),
        ("stockfish:skill=0,depth=one", "depth is 'one'"),
        ("stockfish:skil=0;depth=1", "did you mean 'skill'"),
        ("stockfish:nodes=1,sims=3", "unknown option 'sims'"),
        ("eps101", "from 0 to 100"),
        ("eps15:nodes=3", "write eps15"),
        ("eps", "unknown player 'eps'"),
    ],
)
def test_strings_that_are_wrong(text: str, words: str) -> None:
    with pytest.raises(Exception, match=words) as caught:
        make_player(text, GAME)
    assert type(caught.value).__name__ in ("ConfigError", "UnknownName")


def test_it_plays_chess_alone() -> None:
    with pytest.raises(ConfigError, match="plays chess, not tictactoe"):
        make_player("eps15", make_game("tictactoe"))  # type: ignore[arg-type]


def test_killed_in_a_match() -> None:
    player = make_player("stockfish:skill=3,depth=1", GAME)
    assert isinstance(player, chess_players.StockfishPlayer)
    player.choose(states(MATE), jnp.ones(1, bool), keys(1))
    for process in player.engine.processes:
        os.kill(process, signal.SIGKILL)
    with pytest.raises(EngineError, match="killed by SIGKILL"):
        player.choose(states(MATE), jnp.ones(1, bool), keys(1))


# ---- suites


class Scripted:
    """Plays one move after the other of a list."""

    name = "scripted"

    def __init__(self, actions: list[int]) -> None:
        self.actions = actions

    def choose(self, states: Any, lanes: Any, keys: Any) -> Any:
        return jnp.asarray(self.actions)


def test_marks() -> None:
    start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -"
    entries = parse_epd(f'{start} bm e4;\n{start} am e4;\n{start} bm d4; c0 "d4=10, e4=5";\n', GAME)
    e4 = action_of(chess.Board(), chess.Move.from_uci("e2e4"))
    marks = suites.mark(GAME, Scripted([e4, e4, e4]), entries)
    assert (marks.solved.value, marks.points, marks.chosen) == (pytest.approx(1 / 3), 0.5, (e4, e4, e4))
    with pytest.raises(GameContractError, match="chose action 0, which is not legal"):
        suites.mark(GAME, Scripted([0, e4, e4]), entries)


def test_a_strong_player_solves_the_shipped_tactics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "BATCH", 16)
    suite = suites.shipped_suite(GAME, 18)
    assert [entry.name.partition(",")[0] for entry in suite.entries[::6]] == ["mate in 1", "mate in 2", "defence"]
    strong = suites.mark(GAME, make_player("stockfish:depth=8", GAME), suite.entries)  # type: ignore[arg-type]
    assert strong.solved.value > 0.8
    weak = suites.mark(GAME, make_player("eps100", GAME), suite.entries)  # type: ignore[arg-type]
    assert weak.solved.value < 0.5
    assert strong.points is None


# ---- games written down


def test_a_match_is_written_as_it_was_played() -> None:
    book = chess_games.Scorebook(GAME, "a match")
    board, lanes = chess.Board(), jnp.ones(2, bool)
    here = states(chess.STARTING_FEN, chess.STARTING_FEN)
    for text in ("f2f3", "e7e5", "g2g4", "d8h4"):
        action = action_of(board, chess.Move.from_uci(text))
        values = jnp.array([0.25, -0.25]) if board.turn else None
        book.note(here, lanes, jnp.full(2, action), values)
        board.push_uci(text)
    book.finish("we", "they", np.array([[-1.0, 1.0]]))
    first, second = (chess.pgn.read_game(io.StringIO(text)) for text in book.games)
    assert first is not None
    assert second is not None
    assert (first.headers["White"], first.headers["Black"], first.headers["Result"]) == ("we", "they", "0-1")
    assert (second.headers["White"], second.headers["Black"], second.headers["Result"]) == ("they", "we", "0-1")
    assert first.end().board().is_checkmate()
    evals = [node.eval() for node in second.mainline()]
    assert [one is not None for one in evals] == [True, False, True, False]
    assert evals[0] is not None
    assert evals[0].white().score() == -89


def test_games_of_self_play_come_out_of_the_replay_log(tmp_path: Path) -> None:
    run = new_run(tmp_path, "some", "some")
    run.write_config(resolve("chess", environ={}))
    assert list(chess_games.selfplay_games(run)) == []
    log = ReplayLog(run.replay / "000000000000")
    lots, boards = np.random.default_rng(0), [chess.Board(), chess.Board()]
    here = [parse("startpos"), parse("startpos")]
    mates = ["f2f3", "e7e5", "g2g4", "d8h4", "e2e4", "e7e5"]  # a whole game, and the beginning of the next
    for slab in range(2):
        rows: dict[str, list[Any]] = {name: [] for name in ("state", "action", "ended", "points")}
        for move in range(3):
            ended = slab * 3 + move == 3
            texts = [mates[slab * 3 + move], lots.choice([m.uci() for m in boards[1].legal_moves])]
            actions = [action_of(board, chess.Move.from_uci(text)) for board, text in zip(boards, texts, strict=True)]
            rows["state"].append([np.asarray(single("pack")(state)) for state in here])
            rows["action"].append(actions)
            rows["ended"].append([ended, False])
            rows["points"].append([-1.0 if ended else 0.0, 0.0])
            here = [single("apply_action")(s, jnp.int32(a)) for s, a in zip(here, actions, strict=True)]
            for board, text in zip(boards, texts, strict=True):
                board.push_uci(text)
            if ended:
                boards[0], here[0] = chess.Board(), parse("startpos")
        flags = np.zeros((3, 2), bool)
        arrays = {name: np.array(rows[name]) for name in rows} | {
            "to_play": np.zeros((3, 2), np.int8),
            "actions": np.zeros((3, 2, 1), np.int16),
            "policy": np.zeros((3, 2, 1), np.float16),
            "opinion": np.zeros((3, 2, 3), np.float16),
            "value": np.full((3, 2), 0.25, np.float32),
            "searched": flags,
            "random": np.array([[slab == 0 and move == 0] * 2 for move in range(3)]),
            "settled": flags,
            "truncated": flags,
            "fingerprint": np.zeros((3, 2), np.uint32),
            "source": np.int64(0),
        }
        arrays["points"] = arrays["points"].astype(np.float32)
        assert Trajectory.__dataclass_fields__.keys() - {"resign"} <= arrays.keys()
        log.append(slab, arrays)
    log.close()
    (episode,) = chess_games.selfplay_games(run)
    read = chess.pgn.read_game(io.StringIO(chess_games.episode_pgn(GAME, episode, "self-play")))
    assert read is not None
    assert [move.uci() for move in read.mainline_moves()] == mates[:4]
    assert read.headers["Result"] == "0-1"
    assert [node.eval() is None for node in read.mainline()] == [True, False, False, False]
    check_losses(episode)


def check_losses(episode: Episode) -> None:
    """Against the same by hand: Black has won, and every position says that White is to move."""
    model = build_model(ModelConfig(width=8, blocks=1, head_width=4), GAME.spec)
    weights = jax.jit(model.init)(jax.random.key(0))
    states = batched("unpack")(episode.moves.state)
    output = jax.jit(model.apply)(weights, batched("observe")(states))
    lost = [outcome.points for outcome in GAME.spec.outcomes].index(-1.0)
    by_result = -np.asarray(jax.nn.log_softmax(output.value))[:, lost]
    found = chess_games.losses(GAME, model, weights, episode)
    np.testing.assert_allclose(found, [np.nan, *by_result[1:]], rtol=1e-5)
    legal = [[action for action in row if action >= 0] for row in np.asarray(batched("legal_list")(states))]
    logits = np.asarray(output.logits)
    by_policy = np.array([
        np.log(np.exp(logits[row, legal[row]]).sum()) - logits[row, action]
        for row, action in enumerate(episode.moves.action)
    ])  # fmt: skip
    searched = dataclasses.replace(
        episode.moves,
        searched=np.ones(4, bool),
        actions=episode.moves.action[:, None].astype(np.int16),
        policy=np.ones((4, 1), np.float16),
    )
    found = chess_games.losses(GAME, model, weights, dataclasses.replace(episode, moves=searched))
    np.testing.assert_allclose(found[1:], (by_result + by_policy)[1:], rtol=1e-4)
