"""How fast positions are judged and moves chosen: the network alone, tree searches, and whole turns.

A simulation is one evaluation by the network, so the network alone is the limit of a search.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.bench import peers, spiel
from aleazero.bench.cases import SIMULATIONS, Case, Cases, Kind, Setup, Unsuited, game_of, number_of, steps_per_call
from aleazero.bench.memory import bytes_of
from aleazero.bench.networks import residual_mlp
from aleazero.bench.rules import middle_game
from aleazero.bench.timing import Timing
from aleazero.core.errors import ConfigError
from aleazero.core.game import Game, GameSpec
from aleazero.core.keys import Role, lane_keys
from aleazero.core.records import Evaluate, Weights
from aleazero.core.settings import Layer, build, parse_assignments
from aleazero.games.registry import PGX_PREFIX
from aleazero.models.build import ModelConfig, build_model
from aleazero.play.spread import Spread
from aleazero.players import TurnNetworkPlayer, load_network, make_player, network_player
from aleazero.runs import runs_root
from aleazero.search.build import build_search
from aleazero.search.settings import SearchConfig, make_knobs

_POOL = 4  # batches of positions that calls take turns with
_TURNS = 64  # turns chosen in one call, where batches are small

Judge = Callable[[Weights, Array], Any]


# ---- networks


def _bare_network(setup: Setup, spec: GameSpec) -> tuple[Evaluate, Weights]:
    if setup.options.network == "cnn":
        model = build_model(ModelConfig(kind="cnn", width=setup.width, blocks=setup.blocks), spec)
        return model.evaluate, jax.jit(model.init)(jax.random.key(0))
    dtype = jnp.float32 if jax.default_backend() == "cpu" else jnp.bfloat16
    return residual_mlp(spec, width=setup.width, blocks=setup.blocks, dtype=dtype)


def _policy_network(setup: Setup, spec: GameSpec) -> tuple[Evaluate, Weights]:
    """The network that a search asks: the player's, or an untrained one."""
    player = setup.options.player
    if player is None or spec.name != setup.game.spec.name:
        return _bare_network(setup, spec)
    model, weights = load_network(player, setup.game, runs_root(setup.options.runs))
    if not model.config.policy:
        raise Unsuited(f"--player {player!r} has no policy, and {setup.options.kind} needs one: leave --player out")
    return model.evaluate, jax.device_put(weights)


def _judge(setup: Setup) -> tuple[Judge, Weights]:
    """Everything that a network says of a position."""
    if setup.options.player is None:
        return _bare_network(setup, setup.game.spec)
    model, weights = load_network(setup.options.player, setup.game, runs_root(setup.options.runs))
    return (model.evaluate if model.config.policy else model.opinion), jax.device_put(weights)


def _evaluations(
    setup: Setup, name: str, game: Game, judge: Judge, weights: Weights, states: Any, features: bool
) -> Case:
    """Batches judged one after another; with `features` what the network sees is worked out from states each time."""
    batch = states.terminated.shape[0] // _POOL
    pool = states if features else jax.jit(jax.vmap(game.observe))(states)
    spread = Spread.of(batch)
    pool = spread.lanes(jax.tree.map(lambda x: x.reshape(_POOL, batch, *x.shape[1:]), pool), axis=1)
    weights, steps = spread.everywhere(weights), steps_per_call(batch)

    def evaluations(weights: Weights, pool: Any) -> Array:
        lanes = jax.tree.leaves(pool)[0].shape[1]

        def step(total: Array, number: Array) -> tuple[Array, None]:
            seen = jax.tree.map(lambda x: x[number % _POOL], pool)
            said = judge(weights, jax.vmap(game.observe)(seen) if features else seen)
            # The maximum needs every number of a row: none can be left out.
            return total + sum(x.reshape(lanes, -1).max(-1) for x in jax.tree.leaves(said)), None

        return jax.lax.scan(step, jnp.zeros(lanes), jnp.arange(steps))[0]

    program = setup.compile(f"batch {batch} ({name})", spread.function(evaluations, None, 1), weights, pool)
    unit = "positions" if features else "evaluations"
    return Case(name, unit, steps * batch, lambda number: program.run(weights, pool), program.seconds)


def _build_network(setup: Setup, batch: int) -> Cases:
    judge, weights = _judge(setup)
    _check_states(setup, batch)
    states = middle_game(setup.game, _POOL * batch)
    alone = _evaluations(setup, "network", setup.game, judge, weights, states, features=False)
    if not setup.options.features:
        return Cases((alone,))
    both = _evaluations(setup, "features and network", setup.game, judge, weights, states, features=True)

    def facts(timings: Mapping[str, Timing]) -> dict[str, float]:
        slower, _, _ = timings[alone.name].ratio_to(timings[both.name])
        return {"features_share": max(1.0 - 1.0 / slower, 0.0)}

    return Cases((both, alone), facts)


# ---- tree searches


def _ours(
    setup: Setup, name: str, game: Game, network: tuple[Evaluate, Weights], states: Any, kind: Any, budget: int
) -> Case:
    (evaluate, weights), batch = network, states.terminated.shape[0]
    own = game is setup.game  # a peer's rules know no chance states
    config = _search_config(setup, kind, budget) if own else SearchConfig(kind=kind, max_simulations=budget)
    search, spread = build_search(game, config), Spread.of(batch)
    weights, knobs = spread.everywhere((weights, make_knobs(config, noise_fraction=0.25)))
    states, lanes = spread.lanes((states, jnp.arange(batch)))
    times = _searches_per_call(batch, budget)

    def run(weights: Weights, states: Any, lanes: Array, number: Array, knobs: Any) -> Array:
        def once(number: Array) -> Array:
            keys = lane_keys(2, Role.SEARCH, number, lanes)
            return search.run(evaluate, weights, states, keys, knobs).visits

        return _added(once, number, times)

    def arguments(number: int) -> tuple[Any, ...]:
        return weights, states, lanes, spread.everywhere(number_of(number)), knobs

    program = setup.compile(f"batch {batch} ({name})", spread.function(run, None, 0, 0, None, None), *arguments(0))

    def call(number: int) -> Array:
        return program.run(*arguments(number))

    # Counted, not reckoned: with two leaves in flight a root with one move is visited half as often.
    return Case(name, "simulations", int(np.asarray(call(0), np.float64).sum()), call, program.seconds)


def _search_config(setup: Setup, kind: str, budget: int) -> SearchConfig:
    """How chance is handled and the like; kind and budget are options of their own."""
    given = parse_assignments(setup.options.sets)
    table = given.values.get("search", {})
    if given.values.keys() - {"search"} or not isinstance(table, Mapping):
        raise ConfigError(f"--set is for the search here, as in search.chance=exact; not {', '.join(given.values)}")
    return build(SearchConfig, [Layer(given.origin, {**table, "kind": kind, "max_simulations": budget}, given.text)])


def _mctx(
    setup: Setup, name: str, game: Any, network: tuple[Evaluate, Weights], states: Any, kind: str, budget: int
) -> Case:
    (evaluate, weights), batch = network, states.terminated.shape[0]
    search = peers.mctx_search(game.env, evaluate, kind, budget)
    seen = jax.vmap(lambda s: s.inner.replace(observation=game.env.observe(s.inner, s.inner.current_player)))
    spread = Spread.of(batch)
    weights, states = spread.everywhere(weights), spread.lanes(jax.jit(seen)(states))
    times = _searches_per_call(batch, budget)

    def run(weights: Weights, states: Any, number: Array) -> Array:
        def once(number: Array) -> Array:
            return search(weights, states, jax.random.fold_in(jax.random.key(3), number)).action_weights

        return _added(once, number, times)

    def arguments(number: int) -> tuple[Any, ...]:
        return weights, states, spread.everywhere(number_of(number))

    program = setup.compile(f"batch {batch} ({name})", spread.function(run, None, 0, None), *arguments(0))

    def call(number: int) -> Array:
        return program.run(*arguments(number))

    return Case(name, "simulations", times * budget * batch, call, program.seconds)


def _searches_per_call(batch: int, budget: int) -> int:
    """As self-play searches, one after another; together about as many evaluations as the network's own case has."""
    return max(steps_per_call(batch) // budget, 1)


def _added(search: Callable[[Array], Array], number: Array, times: int) -> Array:
    """What `times` searches found, added up; they are numbered from `number` times `times` on."""
    like = jax.eval_shape(search, number)
    return jax.lax.fori_loop(
        0, times, lambda i, found: found + search(number * times + i), jnp.zeros(like.shape, like.dtype)
    )


def _build_search(setup: Setup, batch: int) -> Cases:
    """The game's own rules; beside mctx, also the rules that both sides know, searched by us and by it."""
    _check_states(setup, batch)
    kinds = setup.options.search or ("puct",)
    cases = [case for suffix, game in _tables(setup) for case in search_cases(setup, game, suffix, kinds, batch)]
    return Cases(tuple(cases), lambda timings: _growth(cases, timings))


def search_cases(setup: Setup, game: Game, suffix: str, kinds: Sequence[str], batch: int) -> list[Case]:
    """Our searches of a game with every budget, the peer's where it plays by these rules too, and the network alone."""
    options, cases = setup.options, list[Case]()
    network, pool = _policy_network(setup, game.spec), middle_game(game, _POOL * batch)
    states = jax.tree.map(lambda x: x[:batch], pool)
    rival = options.compare if _shares(options.compare, game, suffix) else None
    for kind in kinds:
        for budget in options.num_simulations or SIMULATIONS:
            ours = _ours(setup, f"{kind} {budget}{suffix}", game, network, states, kind, budget)
            theirs = f"{rival} {kind} {budget}" if rival else None
            ours = dataclasses.replace(ours, limit=f"network{suffix}", peer=theirs)
            cases.append(dataclasses.replace(ours, series=(f"{kind}{suffix}", budget)))
            if theirs is not None:
                made = (
                    _mctx(setup, theirs, game, network, states, kind, budget)
                    if rival == "mctx"
                    else _spiel(setup, theirs, budget)
                )
                cases.append(dataclasses.replace(made, series=(f"{rival} {kind}", budget)))
    return [*cases, _evaluations(setup, f"network{suffix}", game, *network, pool, features=False)]


def _tables(setup: Setup) -> list[tuple[str, Game]]:
    """The games that are searched, each with what its cases' names end in; the one asked for first."""
    name = setup.game.spec.name
    tables = [("", setup.game)]
    if setup.options.compare == "mctx":
        shared, beside = PGX_PREFIX + str(peers.twin(name)), peers.our_twin(name)
        if shared != name:
            tables.append((", Pgx rules", game_of(shared)))
        elif beside is not None:
            tables.append((", our rules", game_of(beside)))
    return tables


def _shares(peer: str | None, game: Game, suffix: str) -> bool:
    """Whether a peer plays by these rules too: mctx by Pgx's, OpenSpiel by its own of the game asked for."""
    return game.spec.name.startswith(PGX_PREFIX) if peer == "mctx" else peer is not None and not suffix


def _spiel(setup: Setup, name: str, budget: int) -> Case:
    return spiel.mcts(setup.game.spec.name, lambda spec: _bare_network(setup, spec), budget, name)


def _growth(cases: list[Case], timings: Mapping[str, Timing]) -> dict[str, float]:
    """How much more a simulation costs with the largest budget than with the smallest, by search."""
    costs: dict[str, dict[int, float]] = {}
    for case in cases:
        if case.series:
            costs.setdefault(case.series[0], {})[case.series[1]] = timings[case.name].median / case.work
    return {f"growth of {name}": cost[max(cost)] / cost[min(cost)] for name, cost in costs.items() if len(cost) > 1}


def _check_states(setup: Setup, batch: int) -> None:
    spec = setup.game.spec
    each = bytes_of(setup.game.state_like) + 4 * math.prod(spec.observation_shape)
    setup.room.check(f"batch {batch}", _POOL * batch * each)


def _misfit_search(setup: Setup) -> str | None:
    spec, kind, peer = setup.game.spec, setup.options.kind, setup.options.compare
    for search in setup.options.search or ("puct",):
        _search_config(setup, search, 1).check(spec)
    if kind == "mcts" and spec.chance == "explicit":
        return f"{spec.name} has chance states: its search is measured by stochastic-mcts"
    if kind == "stochastic-mcts" and spec.chance != "explicit":
        why = "nothing is left to chance" if spec.chance == "none" else "chance is drawn inside the step"
        return f"{spec.name} has no chance states ({why}): its search is measured by mcts"
    if peer == "mctx":
        peers.need("mctx")
        return peers.no_twin(spec.name)
    if peer == "open_spiel":
        spiel.need()
        return spiel.no_such_game(spec.name)
    return None


# ---- whole turns


def _turn_player(setup: Setup) -> TurnNetworkPlayer:
    game, text = setup.game, setup.options.player
    if text is not None:
        player = make_player(text, game, runs_root(setup.options.runs))
        if not isinstance(player, TurnNetworkPlayer):
            raise Unsuited(f"--player {text!r} does not choose whole turns by a network: name one without a policy")
        return player
    model = build_model(ModelConfig(kind="mlp", width=setup.width, blocks=setup.blocks, policy=False), game.spec)
    weights = jax.jit(model.init)(jax.random.key(0))
    made = network_player(game, model, weights, SearchConfig(kind="expectimax", endings=False), "untrained")
    assert isinstance(made, TurnNetworkPlayer)
    return made


def _build_turns(setup: Setup, batch: int) -> Cases:
    _check_states(setup, batch)
    player = _turn_player(setup)
    count = max(1, _TURNS // batch)
    pool = middle_game(setup.game, count * batch, seed=2)
    batches = [jax.tree.map(lambda x, i=i: x[i * batch : (i + 1) * batch], pool) for i in range(count)]

    def call(number: int) -> Any:
        for states in batches:  # one is waited for before the next is asked for, as in play
            chosen = jax.block_until_ready(player.look(states).value)
        return chosen

    def facts(timings: Mapping[str, Timing]) -> dict[str, float]:
        return {"milliseconds": 1e3 * timings["whole turns"].median / count}

    return Cases((Case("whole turns", "turns", count * batch, call),), facts)


def _misfit_turns(setup: Setup) -> str | None:
    spec = setup.game.spec
    search = "stochastic-mcts" if spec.chance == "explicit" else "mcts"
    return None if setup.game.plays is not None else f"{spec.name} has no whole turns to choose from: measure {search}"


def _default_sizes(setup: Setup) -> tuple[int, ...]:
    return (64,) if jax.default_backend() == "cpu" else (1024, 8192)


_SEARCH: dict[str, Any] = {
    "counted": "a simulation is one evaluation by the network; the network alone is the limit",
    "takes": ("num_simulations", "search", "network", "width", "blocks", "player", "sets"),
    "peers": ("mctx", "open_spiel"),
    "default_sizes": _default_sizes,
    "misfit": _misfit_search,
    "build": _build_search,
}
MCTS = Kind(name="mcts", measures="tree search where nothing in the tree is left to chance", **_SEARCH)
STOCHASTIC_MCTS = Kind(name="stochastic-mcts", measures="tree search with chance nodes", **_SEARCH)
EXPECTIMAX = Kind(
    name="expectimax",
    measures="whole turns chosen by the network's opinion of what they leave (0-ply)",
    counted="a turn is everything a player does after one roll; every distinct play of it is judged",
    takes=("width", "blocks", "player"),
    peers=(),
    default_sizes=lambda setup: (1, 64) if jax.default_backend() == "cpu" else (1, 8192),
    misfit=_misfit_turns,
    build=_build_turns,
)
NETWORK = Kind(
    name="network",
    measures="the network alone, the limit of every search; with --features what it sees is worked out too",
    counted="an evaluation is one position judged",
    takes=("network", "width", "blocks", "player", "features"),
    peers=(),
    default_sizes=lambda setup: (64, 256) if jax.default_backend() == "cpu" else (1024, 8192),
    misfit=lambda setup: None,
    build=_build_network,
)
