"""Players from strings: every kind on real folders, and what is said of strings that name none."""

from __future__ import annotations

import dataclasses
import functools
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero import checkpoint, export, players
from aleazero.config import resolve
from aleazero.core.errors import AleaError, ConfigError, UnknownName
from aleazero.core.game import Game
from aleazero.core.keys import Role, lane_keys
from aleazero.core.records import Prediction
from aleazero.games.chess.game import Chess
from aleazero.games.pig import Pig
from aleazero.games.registry import make_game
from aleazero.games.tictactoe import TicTacToe
from aleazero.games.wander import wander
from aleazero.models.build import Model, ModelConfig, build_model
from aleazero.play.match import TurnPlayer
from aleazero.players import (
    NetworkPlayer,
    RandomPlayer,
    SolverPlayer,
    TurnNetworkPlayer,
    bundled_folder,
    make_player,
    network_player,
)
from aleazero.runs import RunFolder
from aleazero.search.expectimax import Expectimax
from aleazero.search.settings import SearchConfig
from aleazero.solvers.tictactoe import solve_moves
from tests.games.conftest import quick_compile  # noqa: F401
from tests.games.tiny import MOVES
from tests.play.test_turns import Toss

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compile")]

GAME = TicTacToe()
CHESS = Chess()
SETTINGS = ["model.width=8", "model.blocks=1", "model.kind=mlp"]


def states_of(*texts: str) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *[GAME.notation.parse_state(text) for text in texts])


def keys(count: int, move: int = 0) -> jax.Array:
    return lane_keys(0, Role.MATCH, move, jnp.arange(count))


@functools.cache
def model(name: str = "tictactoe") -> Model:
    game = make_game(name)
    assert isinstance(game, Game)
    return build_model(resolve(name, preset="quick", environ={}, assignments=SETTINGS).model, game.spec)


@functools.cache
def weights(seed: int) -> Any:
    # Fresh heads are nearly flat: louder ones have opinions worth following.
    fresh = jax.jit(model().init)(jax.random.key(seed))
    return jax.tree.map(lambda w: np.asarray(w) * 3, fresh)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A root with a run of two checkpoints, and one that has none yet."""
    config = resolve("tictactoe", preset="quick", environ={}, assignments=SETTINGS)
    facts = {"game": "tictactoe", "game_version": GAME.spec.version}
    for name in ("trained", "fresh"):
        folder = RunFolder(tmp_path / name)
        folder.path.mkdir()
        folder.write_config(config)
    for step in (7, 20):
        checkpoint.save(tmp_path / "trained" / "checkpoints", step, {"average": weights(step)}, facts)
    return tmp_path


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    return export.write(tmp_path / "exported", model(), weights(3), {"step": 3})


def assert_weights(player: Any, seed: int) -> None:
    assert isinstance(player, NetworkPlayer)
    for one, two in zip(jax.tree.leaves(player.weights), jax.tree.leaves(weights(seed)), strict=True):
        np.testing.assert_array_equal(one, two)


# ---- every kind


def test_random_plays_any_legal_move() -> None:
    player = make_player("random", GAME)
    assert isinstance(player, RandomPlayer)
    assert player.name == "random"
    states: Any = jax.tree.map(lambda x: jnp.repeat(x, 900, 0), states_of("XOX/.O./.X."))
    chosen = np.asarray(player.choose(states, jnp.ones(900, bool), keys(900)))
    counts = np.bincount(chosen, minlength=9)
    assert counts[[0, 1, 2, 4, 7]].sum() == 0
    assert ((counts[[3, 5, 6, 8]] - 225) ** 2 / 225).sum() < 21.1  # chi-square with 3 degrees of freedom, p = 1e-4
    again = player.choose(states, jnp.ones(900, bool), keys(900))
    np.testing.assert_array_equal(chosen, again)
    assert (chosen != np.asarray(player.choose(states, jnp.ones(900, bool), keys(900, move=1)))).mean() > 0.5


def test_the_solver_plays_all_moves_that_lose_nothing() -> None:
    player = make_player(" solver ", GAME)
    assert isinstance(player, SolverPlayer)
    assert player.name == "solver"
    texts = ["XX./OO./...", "X../.O./..X", ".../.../..."]  # a win, four ways to draw, any move
    for text in texts:
        states: Any = jax.tree.map(lambda x: jnp.repeat(x, 200, 0), states_of(text))
        chosen = set(np.asarray(player.choose(states, jnp.ones(200, bool), keys(200))).tolist())
        values = solve_moves(np.asarray(states.board[:1]))[0]
        assert chosen == set(np.flatnonzero(values == np.nanmax(values)).tolist())
    # Lanes that nobody asks about may be over: they are not looked at.
    states = states_of("XXX/OO./...", "XX./OO./...", "XOX/XOO/OXX")
    assert int(player.choose(states, jnp.array([False, True, False]), keys(3))[1]) == 2


def test_a_path_names_an_exported_network(exported: Path) -> None:
    player = make_player(f"path:{exported}", GAME)
    assert_weights(player, 3)
    assert player.name == f"path:{exported}"
    assert isinstance(player, NetworkPlayer)
    assert player.search == SearchConfig(kind="gumbel", max_simulations=players.DEFAULT_SIMULATIONS, prove=True)


def test_a_run_names_its_newest_network_or_one_of_its_steps(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_weights(make_player("run:trained", GAME, runs), 20)
    assert_weights(make_player("run:trained@7", GAME, runs), 7)
    assert_weights(make_player(f"run:{runs / 'trained'}@20", GAME, Path("elsewhere")), 20)
    monkeypatch.setenv("ALEA_RUNS", str(runs))
    assert_weights(make_player("run:trained", GAME), 20)


def test_a_damaged_checkpoint_is_passed_over_unless_it_is_named(runs: Path, caplog: pytest.LogCaptureFixture) -> None:
    (piece,) = (runs / "trained" / "checkpoints" / f"{20:012d}").glob("*.safetensors")
    content = bytearray(piece.read_bytes())
    content[-1] ^= 1
    piece.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert_weights(make_player("run:trained", GAME, runs), 7)
    assert "is damaged" in caplog.text
    with pytest.raises(checkpoint.DamagedCheckpoint, match="000020 is damaged"):
        make_player("run:trained@20", GAME, runs)


def test_bundled_is_the_network_of_the_package(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(players, "bundled_folder", lambda game: exported)
    assert_weights(make_player("bundled,sims=2", GAME), 3)


def test_where_bundled_networks_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exported: Path) -> None:
    monkeypatch.setattr("importlib.resources.files", lambda package: tmp_path)
    assert bundled_folder(GAME) is None
    (tmp_path / "bundled").mkdir()
    exported.rename(tmp_path / "bundled" / "tictactoe")
    assert bundled_folder(GAME) == tmp_path / "bundled" / "tictactoe"
    assert_weights(make_player("bundled", GAME), 3)


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ("", SearchConfig(kind="gumbel", max_simulations=32, prove=True)),
        (",sims=5", SearchConfig(kind="gumbel", max_simulations=5, prove=True)),
        (",search=mcts,sims=9", SearchConfig(kind="puct", max_simulations=9, try_all=True, prove=True)),
        (", sims = 9 , search = mcts", SearchConfig(kind="puct", max_simulations=9, try_all=True, prove=True)),
        (",prior_temperature=1.5", SearchConfig(kind="gumbel", max_simulations=32, prior_temperature=1.5, prove=True)),
        (",search=none", SearchConfig(kind="direct", max_simulations=32)),
    ],
)
def test_how_a_network_looks_ahead(options: str, config: SearchConfig, exported: Path) -> None:
    player = make_player(f"path:{exported}{options}", GAME)
    assert isinstance(player, NetworkPlayer)
    assert player.search == config


@jax.jit
def said_of(states: Any) -> tuple[jax.Array, jax.Array]:
    """The network's likeliest legal move, and its opinion, without a player."""
    output = model().apply(weights(3), jax.vmap(GAME.observe)(states))
    assert output.logits is not None
    legal = jax.vmap(GAME.legal_list)(states) >= 0  # each move in its own place
    return jnp.where(legal, output.logits, -jnp.inf).argmax(-1), jax.nn.softmax(output.value)


@pytest.mark.parametrize("options", ["search=none", "search=mcts,sims=4", "search=gumbel,sims=4"])
def test_a_network_plays_the_best_move_it_knows(options: str, exported: Path) -> None:
    player = make_player(f"path:{exported},{options}", GAME)
    assert isinstance(player, NetworkPlayer)
    states = states_of(".../.../...", "X../.O./..X", "XOX/.O./.X.", "X../.../...")
    found = player.look(states, keys(4))
    chosen = np.asarray(player.choose(states, jnp.ones(4, bool), keys(4)))
    np.testing.assert_array_equal(chosen, found.action)
    # Deterministic: other keys change nothing.
    np.testing.assert_array_equal(chosen, player.choose(states, jnp.ones(4, bool), keys(4, move=5)))
    likely, opinion = said_of(states)
    np.testing.assert_allclose(player.opinion(states), opinion, atol=1e-5)
    if "none" in options:
        np.testing.assert_array_equal(chosen, likely)
    else:
        assert int(found.visits.sum()) >= 4 * 3


# ---- strings that name no player


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("randm", UnknownName, "unknown player 'randm': did you mean 'random'? known: bundled, classical, epsN, "),
        ("", UnknownName, "unknown player ''"),
        ("sims=4", UnknownName, "unknown player 'sims=4'"),
        ("random:5", ConfigError, "player 'random:5': 'random' takes no options"),
        ("random,sims=5", ConfigError, "player 'random,sims=5': 'random' takes no options"),
        ("solver,search=none", ConfigError, "player 'solver,search=none': 'solver' takes no options"),
        ("run", ConfigError, "player 'run': write run:NAME[@STEP]"),
        ("path:", ConfigError, "player 'path:': write path:FOLDER"),
        ("bundled:x", ConfigError, "player 'bundled:x': write bundled"),
        ("run:trained,sims", ConfigError, "player 'run:trained,sims': 'sims' is no option; write search=gumbel or "),
        ("run:trained,prior_temperature=hot", ConfigError, "prior_temperature is 'hot'; it must be a number"),
        ("run:trained,prior_temperature=nan", ConfigError, "prior_temperature is 'nan'; it must be a number"),
        ("run:trained,prior_temperature=0", ConfigError, "prior_temperature is 0.0; it must be in 0.1..10"),
        ("run:trained,search=none,prior_temperature=2", ConfigError, "it is for search=gumbel and search=mcts"),
        ("run:trained,sims=", ConfigError, "'sims=' is no option"),
        ("run:trained,", ConfigError, "'' is no option"),
        ("run:trained,=4", ConfigError, "'=4' is no option"),
        ("run:trained,sim=4", ConfigError, "unknown player option 'sim': did you mean 'sims'? known: endings, ply,"),
        (
            "run:trained,search=gumble",
            ConfigError,
            "unknown search 'gumble': did you mean 'gumbel'? known: expectimax, gumbel, ",
        ),
        ("run:trained,sims=0", ConfigError, "sims is '0'; it must be a whole number from 1 on"),
        ("run:trained,sims=-1", ConfigError, "sims is '-1'; it must be"),
        ("run:trained,sims=many", ConfigError, "sims is 'many'; it must be"),
        ("run:trained,sims=²", ConfigError, "sims is '²'; it must be"),
        ("run:traned", UnknownName, "'traned': did you mean 'trained'? known: fresh, trained"),
        ("run:@7", UnknownName, "unknown run"),
        ("run:trained@8", UnknownName, "'8'"),
        ("run:trained@last", UnknownName, "'last': did you mean 'best'? known: 20, 7, best"),
        ("run:fresh", ConfigError, "holds no usable checkpoint yet"),
        ("path:nowhere", export.ExportError, "nowhere is no exported network: "),
    ],
)
def test_what_is_wrong_with_a_string(text: str, kind: type[AleaError], message: str, runs: Path) -> None:
    with pytest.raises(kind) as raised:
        make_player(text, GAME, runs)
    assert message in str(raised.value)
    assert type(raised.value) is kind


def test_all_that_is_wrong_with_a_string_is_said_at_once(runs: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        make_player("run:trained,serch=x,search=y,depth=3,sims=z", GAME, runs)
    lines = str(raised.value).splitlines()
    assert len(lines) == 4
    assert all(line.startswith("player 'run:trained,serch=x,search=y,depth=3,sims=z': ") for line in lines)
    assert ["'depth'" in lines[0], "'serch'" in lines[1], "'y'" in lines[2], "'z'" in lines[3]] == [True] * 4


def test_a_game_that_is_not_solved_has_no_solver() -> None:
    game = make_game("quoridor")
    assert isinstance(game, Game)
    with pytest.raises(ConfigError, match="player 'solver': quoridor is not solved"):
        make_player("solver", game)


def test_a_game_without_a_network_has_none_bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.resources.files", lambda package: tmp_path)
    with pytest.raises(ConfigError, match="player 'bundled': no network for tictactoe comes with the package; train"):
        make_player("bundled", GAME)


def test_networks_of_another_game_are_refused_and_both_named(runs: Path, exported: Path) -> None:
    pig = Pig()
    mine, other = f"tictactoe version {GAME.spec.version}", f"pig version {pig.spec.version}"
    with pytest.raises(export.ExportError, match=f"holds a network for {mine}, not for {other}"):
        make_player(f"path:{exported}", pig)
    with pytest.raises(checkpoint.CheckpointError, match=f"is of {mine}, not of {other}"):
        make_player("run:trained", pig, runs)


def test_networks_of_other_rules_are_refused(runs: Path, exported: Path) -> None:
    ours = GAME.spec.version
    manifest = json.loads((exported / "manifest.json").read_text())
    (exported / "manifest.json").write_text(json.dumps(manifest | {"game_version": ours + 1}))
    with pytest.raises(export.ExportError, match=f"for tictactoe version {ours + 1}, not for tictactoe version {ours}"):
        make_player(f"path:{exported}", GAME)
    facts = {"game": "tictactoe", "game_version": ours + 1}
    checkpoint.save(runs / "trained" / "checkpoints", 30, {"average": weights(7)}, facts)
    with pytest.raises(checkpoint.CheckpointError, match=f"version {ours + 1}, not of tictactoe version {ours}"):
        make_player("run:trained", GAME, runs)


@pytest.mark.parametrize("folder", ["", "deeper"])
def test_a_folder_that_is_no_network_is_named(folder: str, tmp_path: Path) -> None:
    with pytest.raises(export.ExportError, match="is no exported network"):
        make_player(f"path:{tmp_path / folder}", GAME)


# ---- networks that choose whole turns


BACKGAMMON, TOSS = make_game("backgammon"), Toss(16)
VALUE = ModelConfig(kind="mlp", width=8, blocks=1, policy=False, compute="float32")


@functools.cache
def turn_player() -> TurnNetworkPlayer:
    made = build_model(VALUE, TOSS.spec)
    loud = jax.tree.map(lambda w: w * 3, jax.jit(made.init)(jax.random.key(0)))
    player = network_player(TOSS, made, loud, SearchConfig(kind="expectimax"), "it")
    assert isinstance(player, TurnNetworkPlayer)
    return player


@pytest.fixture
def turn_runs(tmp_path: Path) -> Path:
    """A root with a run of backgammon by whole turns, and one by actions."""
    assert isinstance(BACKGAMMON, Game)
    for name, settings in (("turns", []), ("actions", ["search.kind=gumbel", "model.policy=true"])):
        size = ["model.width=8", "model.blocks=0"]
        config = resolve("backgammon", preset="quick", environ={}, assignments=[*size, *settings])
        folder = RunFolder(tmp_path / name)
        folder.path.mkdir()
        folder.write_config(config)
        fresh = jax.jit(build_model(config.model, BACKGAMMON.spec).init)(jax.random.key(1))
        facts = {"game": "backgammon", "game_version": BACKGAMMON.spec.version}
        checkpoint.save(folder.checkpoints, 5, {"average": fresh}, facts)
    return tmp_path


def test_a_network_without_a_policy_chooses_whole_turns(turn_runs: Path) -> None:
    assert isinstance(BACKGAMMON, Game)
    for text in ("run:turns", "run:turns,search=expectimax", "run:turns@5, search = expectimax"):
        player = make_player(text, BACKGAMMON, turn_runs)
        assert isinstance(player, TurnNetworkPlayer)
        assert isinstance(player, TurnPlayer)
        assert player.name == text
    other = make_player("run:actions,sims=4", BACKGAMMON, turn_runs)
    assert isinstance(other, NetworkPlayer)
    assert not isinstance(other, TurnPlayer)


@pytest.mark.parametrize("search", ["gumbel", "mcts", "none"])
def test_a_network_without_a_policy_refuses_searches_that_ask_for_one(search: str, turn_runs: Path) -> None:
    assert isinstance(BACKGAMMON, Game)
    text = f"run:turns,search={search}"
    with pytest.raises(ConfigError) as raised:
        make_player(text, BACKGAMMON, turn_runs)
    assert str(raised.value) == (
        f"player {text!r}: search is {search!r}; the network has no policy, so it chooses whole turns: expectimax"
    )


def test_a_network_with_a_policy_refuses_whole_turns(turn_runs: Path, runs: Path) -> None:
    assert isinstance(BACKGAMMON, Game)
    said = "search is 'expectimax'; the network has policy, so its moves come from that: gumbel, mcts or none"
    for text, game, root in (
        ("run:actions,search=expectimax", BACKGAMMON, turn_runs),
        ("run:trained,search=expectimax", GAME, runs),
    ):
        with pytest.raises(ConfigError) as raised:
            make_player(text, game, root)
        assert str(raised.value) == f"player {text!r}: {said}"


def test_a_game_without_whole_turns_has_none_to_choose_from(tmp_path: Path) -> None:
    made = build_model(VALUE, GAME.spec)
    folder = export.write(tmp_path / "value", made, jax.jit(made.init)(jax.random.key(0)), {}, onnx=False)
    with pytest.raises(ConfigError, match="search is 'expectimax'; tictactoe has no whole turns to choose from"):
        make_player(f"path:{folder}", GAME)


@functools.cache
def tossing() -> tuple[Any, Any]:
    """States of Toss: where a turn begins, and where nature rolls; both seats."""
    steps = wander(TOSS, lanes=8, plies=60, seed=2)
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), steps.state)
    begins, rolls = ~flat.is_chance & ~flat.terminated & (flat.moves_left == MOVES), flat.is_chance
    return tuple(jax.tree.map(lambda x, r=rows: x[np.flatnonzero(r)[:48]], flat) for rows in (begins, rolls))


def test_turns_are_those_of_the_search() -> None:
    player, (states, _) = turn_player(), tossing()
    wanted = jax.jit(Expectimax(TOSS, player.model.opinion).best)(player.knowledge, states)
    found = player.turn(states, jnp.ones(48, bool), keys(48))
    jax.tree.map(np.testing.assert_array_equal, found, wanted.afterstates)
    jax.tree.map(np.testing.assert_array_equal, player.look(states), wanted)
    assert len(np.unique(wanted.value)) > 5


def test_rolls_are_worth_what_the_answers_are_to_seat_0() -> None:
    player, (_, states) = turn_player(), tossing()
    assert set(states.to_play.tolist()) == {0, 1}
    found = player.after_rolls(states)
    chances = np.asarray(jax.jit(jax.vmap(TOSS.chance_probs))(states))
    assert found.shape == chances.shape
    for outcome in range(4):
        rolled = jax.jit(jax.vmap(TOSS.apply_chance, (0, None)))(states, jnp.int32(outcome))
        after = jax.tree.map(np.asarray, player.turn(rolled, jnp.ones(48, bool), keys(48)))
        said = np.asarray(player.model.opinion(player.weights, jax.vmap(TOSS.observe)(after)))
        mover = np.where(after.terminated, 1.0, said[:, 0] - said[:, 1])  # whoever rolled has moved, and may have won
        wanted = np.where(after.to_play == 0, mover, -mover)
        possible = chances[:, outcome] > 0
        np.testing.assert_allclose(found[possible, outcome], wanted[possible], atol=1e-5)
        assert after.terminated[possible].any() == (outcome < 2)


@dataclasses.dataclass(frozen=True)
class Unwilling:
    """A network that thinks all positions even, all moves alike, and one of them bad."""

    num_actions: int
    shunned: int

    def evaluate(self, weights: Any, observations: jax.Array) -> Prediction:
        logits = jnp.zeros((len(observations), self.num_actions)).at[:, self.shunned].set(-1.0)
        return Prediction(logits=logits, value=jnp.zeros(len(observations)))


LOOKED = """
import numpy as np, jax, jax.numpy as jnp
from aleazero.core.keys import Role, lane_keys
from aleazero.games.registry import make_game
from aleazero.games.wander import wander
from aleazero.players import make_player
game = make_game("connect_four")
states = jax.tree.map(lambda x: x[-1], wander(game, lanes=64, plies=6, seed=1).state)
keys = lane_keys(0, Role.MATCH, 0, jnp.arange(64))
lanes = np.arange(64) % 3 > 0
player = make_player("bundled,search=mcts,sims=8", game)
every, some = player.look(states, keys), player.look(states, keys, jnp.asarray(lanes))
print(jax.local_device_count(), *every.action, *some.action)
"""


def test_a_network_looks_only_where_it_is_asked_and_on_many_cores_as_on_one(capsys: pytest.CaptureFixture[str]) -> None:
    """The second in a process of its own: what is a device is settled once in a process."""
    found: dict[str, Any] = {}
    exec(LOOKED, found)
    lanes, every, some = found["lanes"], found["every"], found["some"]
    assert np.array_equal(some.action, np.where(lanes, every.action, 0))
    assert np.array_equal(some.visits, np.where(lanes[:, None], every.visits, 0))
    two = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    told = os.environ | two | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", LOOKED], env=told, capture_output=True, text=True, check=True)
    (one, *alone), (count, *shared) = capsys.readouterr().out.split(), done.stdout.split()
    assert (one, count) == ("1", "2")
    assert alone == shared


def test_a_larger_budget_looks_at_more_moves() -> None:
    """A mate in one that is the least likely of more than 16 moves is found."""
    state = CHESS.notation.parse_state("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1")
    mate = CHESS.notation.parse_action(state, "Rd8")
    search = players.search_config({"sims": "200"}, CHESS, "unwilling")
    model: Any = Unwilling(CHESS.spec.num_actions, mate)
    found = NetworkPlayer(CHESS, model, (), search, "unwilling").look(jax.tree.map(lambda x: x[None], state), keys(1))
    assert (np.asarray(found.actions[0]) >= 0).sum() > 16
    assert int(found.action[0]) == mate
