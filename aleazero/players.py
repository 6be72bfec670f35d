"""Players from strings: `KIND[:key=value;key=value]`, and after commas how a network looks ahead.

    random    solver    bundled    run:NAME[@STEP]    run:NAME@best    path:FOLDER    registry:NAME[@ALIAS]
    ...,search=gumbel,sims=64    ...,ply=2
    pubeval    gnubg:ply=2    gnubg:ply=0;noise=0.06    gnubg:ply=2;engine=debian        (backgammon)
    stockfish:nodes=100    stockfish:skill=0,depth=1    eps15    classical:depth=3        (chess)
    shortest    shortest:walls                                                            (Quoridor)
Joins games, networks, searches, engines and exact judges; matches know players by what they choose.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero import checkpoint as checkpoints
from aleazero import chess_players, chess_teacher, engine_players, export, quoridor_players
from aleazero.core.errors import ConfigError, GameContractError, UnknownName
from aleazero.core.game import Game, HostGame, seat_sign
from aleazero.core.opinions import expected_value
from aleazero.core.records import Knowledge, Weights
from aleazero.core.struct import replace
from aleazero.judges import Judge, exact_judge
from aleazero.models.build import Model, build_model
from aleazero.play.match import Player, TurnPlayer
from aleazero.play.portions import in_portions
from aleazero.play.rollout import random_actions
from aleazero.play.spread import Spread
from aleazero.registry import registered_folder
from aleazero.runs import RunFolder, find_run, runs_root
from aleazero.search.build import SearchResult, build_search
from aleazero.search.expectimax import Expectimax, Turn, rank_turns
from aleazero.search.plies import Plies
from aleazero.search.settings import Knobs, SearchConfig, playing_knobs, proves

SEARCHES = {"gumbel": "gumbel", "mcts": "puct", "none": "direct", "expectimax": "expectimax"}  # as people write them
DEFAULT_SIMULATIONS = 32
PLIES = ("0", "1", "2")
MOST_SEARCHES = 16  # kept compiled: whoever writes players' strings may name any number
OPTIONS = ("search", "sims", "prior_temperature", "ply", "endings")
ENDINGS = {"exact": True, "network": False}
AnyPlayer = Player | TurnPlayer
_WRITTEN = {  # players that are networks
    "bundled": "bundled",
    "run": "run:NAME[@STEP]",
    "path": "path:FOLDER",
    "registry": "registry:NAME[@ALIAS]",
}


@dataclasses.dataclass(frozen=True)
class RandomPlayer:
    """Plays uniformly at random."""

    game: Game
    name: str = "random"

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        """Any legal action."""
        return _random(self.game)(states, keys)


@dataclasses.dataclass(frozen=True)
class SolverPlayer:
    """Plays a move that loses nothing; if there are several, one of them at random."""

    game: Game
    judge: Judge
    name: str = "solver"

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        """One of the best actions by the exact judge."""
        rows = np.flatnonzero(np.asarray(lanes))
        values = self.judge(jax.tree.map(lambda x: np.asarray(x)[rows], states))
        best = values >= np.nanmax(values, -1, keepdims=True) - 1e-9
        noise = np.asarray(_uniform(self.game.spec.num_actions)(keys))[rows]
        actions = np.zeros(len(np.asarray(lanes)), np.int32)
        actions[rows] = np.where(best, noise, -1.0).argmax(-1)
        return jnp.asarray(actions)


@dataclasses.dataclass(frozen=True)
class NetworkPlayer:
    """A network and how it looks ahead. Deterministic: the best move it knows."""

    game: Game
    model: Model
    weights: Weights
    search: SearchConfig
    name: str
    _places: dict[Spread, Weights] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        """The search's action."""
        return self.look(states, keys, lanes).action

    def look(self, states: Any, keys: Array, lanes: Array | None = None) -> SearchResult:
        """All that the search found, on the host; with `lanes` `[B]` bool in these alone, and zeros in the others."""
        everybody = jnp.ones(keys.shape, bool)
        found: SearchResult = in_portions(self._look, (states, keys), everybody if lanes is None else lanes)
        return found

    def _look(self, batch: tuple[Any, Array]) -> SearchResult:
        states, keys = batch
        spread, knobs = Spread.of(keys.shape[0]), playing_knobs(self.search)
        run = _search(self.game, self.model, self.search, spread)
        if spread.mesh.size == 1:
            return run(self.weights, states, keys, knobs)
        weights, knobs = self._placed(spread), spread.everywhere(knobs)
        return run(weights, spread.lanes(states), spread.lanes(keys), knobs)

    def _placed(self, spread: Spread) -> Weights:
        """Its weights, on all of these devices; put there once."""
        if spread not in self._places:
            self._places[spread] = spread.everywhere(self.weights)
        return self._places[spread]

    def opinion(self, states: Any) -> Array:
        """`[B, V]`: the network's own outcome distribution for to_play."""
        return _opinion(self.game, self.model)(self.weights, states)


@dataclasses.dataclass(frozen=True)
class TurnNetworkPlayer:
    """A network that chooses whole turns by the value of what they leave."""

    game: Game
    model: Model
    weights: Weights
    name: str
    ply: int = 0
    endings: Any = None  # tables that know how games end; None: the network judges endings too

    @property
    def knowledge(self) -> Knowledge:
        """What its turns are chosen by."""
        return Knowledge(self.weights, self.endings)

    def turn(self, states: Any, lanes: Array, keys: Array) -> Any:
        """The states its turns leave."""
        return self.look(states).afterstates

    def look(self, states: Any) -> Turn:
        """The turns, with what they are worth."""
        return _turns(self.game, self.model, self.ply)(self.knowledge, states)

    def rank(self, states: Any) -> Turn:
        """Every turn of one position, states `[1]`, the best first; on the host."""
        return rank_turns(_expectimax(self.game, self.model), self.knowledge, states)

    def judge(self, states: Any) -> Turn:
        """What states that turns have left are worth to whoever left them, at 0-ply."""
        return _judged(self.game, self.model)(self.knowledge, states)

    def weigh(self, states: Any) -> Turn:
        """The same at its ply."""
        return _weighed(self.game, self.model, self.ply)(self.knowledge, states)

    def after_rolls(self, states: Any) -> np.ndarray:
        """`[n, C]`: seat 0's expected points after each roll at chance states (`play.luck.Judge`)."""
        return np.asarray(_after_rolls(self.game, self.model)(self.knowledge, states))


def network_player(game: Game, model: Model, weights: Weights, search: SearchConfig, name: str) -> AnyPlayer:
    """The player that a network and a way to look ahead make."""
    if search.kind == "expectimax":
        return TurnNetworkPlayer(game, model, weights, name, search.ply, endings_of(game) if search.endings else None)
    return NetworkPlayer(game, model, weights, search, name)


def make_player(text: str, game: Game, root: Path | None = None) -> AnyPlayer:
    """The player a string names, for a game; `root` is where runs are kept."""
    head, *rest = text.strip().split(",")
    kind, _, detail = head.partition(":")
    if kind == "stockfish" or chess_players.is_rung(kind):
        return chess_players.make(kind, [*detail.split(";"), *rest], game, text)
    options = _options(rest, text)
    if kind == chess_teacher.KIND:
        if options:
            raise ConfigError(f"player {text!r}: {kind!r} takes no search: write {kind}:depth=3")
        return chess_teacher.make(text, game)
    if kind == quoridor_players.KIND:
        return quoridor_players.make(detail, options, game, text)
    if kind in engine_players.KINDS:
        if options:
            raise ConfigError(f"player {text!r}: {kind!r} takes no search")
        return engine_players.make(kind, detail, game, text)
    if kind in ("random", "solver"):
        if detail or options:
            raise ConfigError(f"player {text!r}: {kind!r} takes no options")
        return _simple(kind, game)
    if kind not in _WRITTEN:
        others = [*engine_players.KINDS, "stockfish", "epsN", chess_teacher.KIND, quoridor_players.KIND]
        raise UnknownName("player", kind, ["random", "solver", *_WRITTEN.values(), *others])
    if (kind == "bundled") == bool(detail):
        raise ConfigError(f"player {text!r}: write {_WRITTEN[kind]}")
    model, weights = _load(kind, detail, game, root)
    search = search_config(options, game, text, model.config.policy)
    return network_player(game, model, jax.device_put(weights), search, text)


def whole_turn(game: Game, player: AnyPlayer, states: Any, keys: Array) -> list[int]:
    """The actions of a player's turn in one game, states `[1]`, legal ones; one action where a game has no turns."""
    everybody = jnp.ones(1, bool)
    state = jax.tree.map(lambda x: x[0], states)
    where = f"which is not legal in {game.notation.format_state(state)!r}"
    if isinstance(player, TurnPlayer):
        left = jax.tree.map(lambda x: x[0], player.turn(states, everybody, keys))
        wanted = np.asarray(_pack(game)(left))
        for actions, after in game.notation.turns(state):
            if np.array_equal(_pack(game)(after), wanted):
                return actions
        raise GameContractError("turn", f"player {player.name!r} chose a turn, {where}")
    turn: list[int] = []
    while True:
        chosen = int(player.choose(states, everybody, keys)[0])
        if chosen < 0 or chosen not in np.asarray(_legal(game)(states)):
            raise GameContractError("turn", f"player {player.name!r} chose action {chosen}, {where}")
        turn.append(chosen)
        after = _apply(game)(states, jnp.array([chosen], jnp.int32))
        if game.plays is None or after.is_chance[0] or after.terminated[0] or after.to_play[0] != states.to_play[0]:
            return turn
        states, keys = after, jax.vmap(lambda key: jax.random.fold_in(key, len(turn)))(keys)


def search_config(options: dict[str, str], game: Game, text: str, policy: bool = True) -> SearchConfig:
    """How a network player looks ahead, from the options of its string; by whole turns if it has no `policy`."""
    problems = [str(UnknownName("player option", key, OPTIONS)) for key in sorted(options.keys() - set(OPTIONS))]
    kind = options.get("search", "gumbel" if policy else "expectimax")
    if kind in SEARCHES and (kind == "expectimax") == policy:
        problems.append(
            f"search is {kind!r}; the network {'has' if policy else 'has no'} policy, so "
            + ("its moves come from that: gumbel, mcts or none" if policy else "it chooses whole turns: expectimax")
        )
    elif kind == "expectimax" and game.plays is None:
        problems.append(f"search is {kind!r}; {game.spec.name} has no whole turns to choose from")
    if kind not in SEARCHES:
        problems.append(str(UnknownName("search", kind, SEARCHES)))
    sims = options.get("sims", str(DEFAULT_SIMULATIONS))
    if not sims.isdecimal() or int(sims) < 1:
        problems.append(f"sims is {sims!r}; it must be a whole number from 1 on")
    ply = options.get("ply", "0")
    if ply not in PLIES:
        problems.append(f"ply is {ply!r}; it must be 0, 1 or 2")
    elif "ply" in options and kind != "expectimax":
        problems.append(f"ply is {ply!r}; it is for search=expectimax")
    if "sims" in options and kind == "expectimax":
        problems.append(f"sims is {sims!r}; expectimax looks at whole turns: write ply=1")
    flatter = options.get("prior_temperature", "1")
    if "prior_temperature" in options and SEARCHES.get(kind) not in ("gumbel", "puct"):
        problems.append(f"prior_temperature is {flatter!r}; it is for search=gumbel and search=mcts")
    elif math.isnan(engine_players.number_of(flatter)):
        problems.append(f"prior_temperature is {flatter!r}; it must be a number")
    endings = options.get("endings", "exact")
    if endings not in ENDINGS:
        problems.append(str(UnknownName("endings", endings, ENDINGS)))
    elif "endings" in options and (kind != "expectimax" or game.ending is None):
        problems.append(f"endings is {endings!r}; it is for search=expectimax in games whose endings are known")
    if problems:
        raise ConfigError("\n".join(f"player {text!r}: {problem}" for problem in problems))
    config = SearchConfig(
        kind=SEARCHES[kind],  # type: ignore[arg-type]
        max_simulations=int(sims),
        prior_temperature=float(flatter),
        try_all=SEARCHES[kind] == "puct",
        prove=SEARCHES[kind] in ("gumbel", "puct") and proves(game.spec),
        ply=int(ply),
        endings=ENDINGS[endings],
    )
    config.check(game.spec)
    return config


def bundled_folder(game: Game | HostGame) -> Path | None:
    """The network that comes with the package for a game; None where there is none."""
    folder = Path(str(resources.files("aleazero") / "bundled" / game.spec.name))
    return folder if (folder / "manifest.json").is_file() else None


def _simple(kind: str, game: Game) -> Player:
    if kind == "random":
        return RandomPlayer(game)
    judge = exact_judge(game)
    if judge is None:
        raise ConfigError(f"player 'solver': {game.spec.name} is not solved")
    return SolverPlayer(game, judge)


def _options(parts: list[str], text: str) -> dict[str, str]:
    options = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise ConfigError(f"player {text!r}: {part!r} is no option; write search=gumbel or sims=64")
        options[key.strip()] = value.strip()
    return options


def load_network(text: str, game: Game, root: Path | None = None) -> tuple[Model, Weights]:
    """The network of a player string, without a way to look ahead."""
    kind, _, detail = text.strip().partition(":")
    if kind not in _WRITTEN or (kind == "bundled") == bool(detail) or "," in text:
        raise ConfigError(f"{text!r} names no network; write {', '.join(_WRITTEN.values())}")
    return _load(kind, detail, game, root)


@functools.cache
def endings_of(game: Game) -> Any:
    """The game's tables of endings, on the device; None where it has none."""
    return jax.device_put(game.ending_tables()) if game.ending is not None else None


def _load(kind: str, detail: str, game: Game, root: Path | None) -> tuple[Model, Weights]:
    if kind == "run":
        return load_run_weights(detail, game, root)
    if kind == "registry":
        folder: Path | None = registered_folder(detail, runs_root(root))
    else:
        folder = Path(detail) if kind == "path" else bundled_folder(game)
    if folder is None:
        raise ConfigError(f"player 'bundled': no network for {game.spec.name} comes with the package; train one")
    exported = export.read(folder, game.spec)
    return exported.model, exported.weights


def load_run_weights(name_and_step: str, game: Game, root: Path | None = None) -> tuple[Model, Weights]:
    """The model and the playing weights of `NAME[@STEP]`; STEP may be left out (the newest)."""
    name, _, step = name_and_step.partition("@")
    run = find_run(runs_root(root), name)
    config = run.read_config()
    found = find_checkpoint(run, step)
    check_game(found, game)
    model = build_model(config.model, game.spec)
    return model, checkpoints.restore(found, "average", jax.eval_shape(model.init, jax.random.key(0)))


def find_checkpoint(run: RunFolder, step: str) -> checkpoints.Checkpoint:
    """A checkpoint by step, the one that its run measured best ("best"), or the newest intact one if none is named.

    Of a step whose checkpoint is gone the playing weights may be there still, and are all that it then holds.
    """
    root = run.checkpoints
    if step and step != "best":
        known = run.steps()
        if not step.isdecimal() or int(step) not in known:
            raise UnknownName(f"checkpoint in {root}", step, ["best", *(str(s) for s in known)])
        whole = int(step) in checkpoints.steps(root)
        return checkpoints.read((root if whole else run.versions) / f"{int(step):012d}")
    import logging

    found = checkpoints.newest(root, logging.getLogger(__name__).warning)
    if found is None:
        raise ConfigError(f"{root} holds no usable checkpoint yet")
    if step != "best":
        return found
    best = found.facts.get("best")
    if not best:
        raise ConfigError(f"{root}: the run has not measured itself yet, so none is its best; name a step")
    return checkpoints.read(root / f"{int(best[1]):012d}")


def check_game(found: checkpoints.Checkpoint, game: Game | HostGame) -> None:
    """Refuses a checkpoint of another game, or of another version of its rules."""
    theirs = (found.facts.get("game"), found.facts.get("game_version"))
    if theirs != (game.spec.name, game.spec.version):
        raise checkpoints.CheckpointError(
            f"checkpoint {found.path} is of {theirs[0]} version {theirs[1]}, not of {game.spec.name} version "
            f"{game.spec.version}"
        )


@functools.cache
def _random(game: Game) -> Callable[[Any, Array], Array]:
    return jax.jit(lambda states, keys: random_actions(game, states, keys))


@functools.cache
def _legal(game: Game) -> Callable[[Any], Array]:
    return jax.jit(jax.vmap(game.legal_list))


@functools.cache
def _apply(game: Game) -> Callable[[Any, Array], Any]:
    return jax.jit(jax.vmap(game.apply_action))


@functools.cache
def _pack(game: Game) -> Callable[[Any], Array]:
    return jax.jit(game.pack)


@functools.cache
def _uniform(count: int) -> Callable[[Array], Array]:
    return jax.jit(lambda keys: jax.vmap(lambda key: jax.random.uniform(key, (count,)))(keys))


@functools.lru_cache(maxsize=MOST_SEARCHES)
def _search(game: Game, model: Model, config: SearchConfig, spread: Spread) -> Callable[..., SearchResult]:
    search = build_search(game, config)

    def run(weights: Weights, states: Any, keys: Array, knobs: Knobs) -> SearchResult:
        return search.run(model.evaluate, weights, states, keys, knobs)

    return jax.jit(spread.function(run, None, 0, 0, None))


@functools.cache
def _expectimax(game: Game, model: Model) -> Expectimax:
    return Expectimax(game, model.opinion)


@functools.cache
def _turns(game: Game, model: Model, ply: int) -> Callable[..., Turn]:
    return jax.jit(Plies(_expectimax(game, model), ply).best)


@functools.cache
def _judged(game: Game, model: Model) -> Callable[..., Turn]:
    return jax.jit(_expectimax(game, model).judge)


@functools.cache
def _weighed(game: Game, model: Model, ply: int) -> Callable[..., Turn]:
    search = Plies(_expectimax(game, model), ply)

    def weigh(knowledge: Knowledge, states: Any) -> Turn:
        opinion = search.opinion(knowledge, states, ply)
        return replace(search.judge(knowledge, states), value=expected_value(game.spec, opinion), opinion=opinion)

    return jax.jit(weigh)


@functools.cache
def _after_rolls(game: Game, model: Model) -> Callable[..., Array]:
    search = _expectimax(game, model)

    def worth(knowledge: Knowledge, states: Any) -> Array:
        def after(outcome: Array) -> Array:
            rolled = jax.vmap(game.apply_chance, (0, None))(states, outcome)
            return seat_sign(rolled.to_play) * search.best(knowledge, rolled).value * game.spec.scale

        return jax.lax.map(after, jnp.arange(game.spec.num_chance_outcomes)).T

    return jax.jit(worth)


@functools.cache
def _opinion(game: Game, model: Model) -> Callable[..., Array]:
    return jax.jit(lambda weights, states: model.opinion(weights, jax.vmap(game.observe)(states)))
