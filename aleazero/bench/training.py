"""How fast the parts of a run are, as a run has them: self-play end to end, updates, and the replay.

The parts are those that `assemble.build_parts` makes of a preset and `--set`. Training rows are made up: positions of
random play in games that all end at once, so that every row can be drawn.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.assemble import Parts, build_parts
from aleazero.bench.cases import Case, Cases, Kind, Setup, Unsuited
from aleazero.bench.memory import bytes_of
from aleazero.bench.rules import middle_game
from aleazero.bench.timing import Timing
from aleazero.config import RunConfig, resolve
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.core.keys import Role, role_key
from aleazero.core.records import Trajectory
from aleazero.core.struct import replace
from aleazero.players import load_network
from aleazero.replay.store import Replay
from aleazero.runs import runs_root

_MOST = 2**31 - 1
_CPU_ROWS = 8192  # of self-play in one call, on the CPU, if lanes allow


# ---- the run


def config_of(setup: Setup, **more: int) -> RunConfig:
    """The settings of the run, with `more` as in `selfplay__num_games`."""
    options = setup.options
    sizes = {"model.width": options.width, "model.blocks": options.blocks}
    fixed = [f"{path}={value}" for path, value in sizes.items() if value is not None]
    fixed += [f"{path.replace('__', '.')}={value}" for path, value in more.items()]
    return resolve(setup.game.spec.name, preset=setup.preset, assignments=[*options.sets, *fixed])


def _parts(setup: Setup, config: RunConfig) -> Parts:
    return build_parts(config, root=runs_root(setup.options.runs))


def _misfit(setup: Setup) -> str | None:
    try:
        config_of(setup)
    except (ConfigError, UnknownName) as error:
        return str(error)
    return None


# ---- self-play


def _build_selfplay(setup: Setup, batch: int) -> Cases:
    """One call is one rollout. Only the actor is built: how much replay holds does not matter to it."""
    config = config_of(setup, selfplay__num_games=batch, replay__capacity_rows=_MOST, total_rows=_MOST)
    if jax.default_backend() == "cpu":  # the same moves, fewer in a call: seconds and not minutes
        moves = max(2, min(config.selfplay.moves_per_rollout, _CPU_ROWS // batch))
        config = dataclasses.replace(config, selfplay=dataclasses.replace(config.selfplay, moves_per_rollout=moves))
    weights = None
    if setup.options.player is not None:
        model, weights = load_network(setup.options.player, setup.game, runs_root(setup.options.runs))
        config = dataclasses.replace(config, model=model.config)
        if config.problems():
            raise Unsuited("\n".join(f"--player {setup.options.player!r}: {line}" for line in config.problems()))
    parts = _parts(setup, config)
    setup.room.check(f"batch {batch}", 2 * bytes_of(parts.slab_like()))
    return _Rollouts(parts, jax.device_put(weights) if weights is not None else None).cases()


class _Rollouts:
    """Self-play that goes on from call to call."""

    def __init__(self, parts: Parts, weights: Any) -> None:
        self._parts, self._play, self._pace = parts, parts.make_play(), parts.pace(0)
        self._weights = parts.start_learning().average if weights is None else weights
        self._games, self._moves = parts.start_games(), 0
        self._over: list[jax.Array] = []  # games that ended, call by call

    def cases(self) -> Cases:
        """The one case, and how many games there were."""
        config = self._parts.config
        rows = config.selfplay.num_games * config.selfplay.moves_per_rollout
        return Cases((Case("self-play", "rows", rows, self._call),), self._facts)

    def _call(self, number: int) -> Any:
        self._games, slab = self._play(self._weights, self._games, self._pace, jnp.uint32(self._moves % 2**32))
        self._moves += self._parts.config.selfplay.moves_per_rollout
        self._over.append((slab.ended | slab.truncated).sum())
        return self._games, self._over[-1]

    def _facts(self, timings: Mapping[str, Timing]) -> dict[str, float]:
        games = sum(int(over) for over in self._over) / len(self._over)
        search, moves = self._parts.config.search, self._parts.config.selfplay.moves_per_rollout
        found = {"moves_per_rollout": float(moves)}
        if games:  # few moves may end none
            found["games_per_second"] = games / timings["self-play"].median
        if search.kind in ("puct", "gumbel"):
            found["simulations_of_a_full_search"] = float(search.max_simulations)
        return found


# ---- replay and updates


def _slab(parts: Parts) -> Trajectory:
    """A trajectory of made-up rows: real positions, uniform policies, any outcome."""
    like, game = parts.slab_like(), parts.game
    moves, lanes = like.ended.shape
    edges, opinions = like.actions.shape[-1], like.opinion.shape[-1]
    points = np.asarray([outcome.points for outcome in game.spec.outcomes] or [0.0], np.float32)

    def make() -> Trajectory:
        blank = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)
        states = middle_game(game, lanes)
        legal = jax.vmap(game.legal_list)(states)[:, :edges]
        legal = jnp.pad(legal, ((0, 0), (0, edges - legal.shape[-1])), constant_values=-1)
        policy = (legal >= 0) / jnp.maximum((legal >= 0).sum(-1, keepdims=True), 1)
        which = jax.random.randint(role_key(0, Role.TEST), (moves, lanes), 0, len(points))
        return replace(
            blank,
            state=jnp.broadcast_to(jax.vmap(game.pack)(states), like.state.shape),
            to_play=jnp.broadcast_to(states.to_play, like.to_play.shape),
            actions=jnp.broadcast_to(legal, like.actions.shape),
            policy=jnp.broadcast_to(policy.astype(like.policy.dtype), like.policy.shape),
            opinion=jnp.full(like.opinion.shape, 1.0 / opinions, like.opinion.dtype),
            searched=jnp.ones_like(blank.searched),
            ended=jnp.ones_like(blank.ended),
            points=jnp.asarray(points)[which],
        )

    return jax.jit(make)()


def _filled(parts: Parts) -> tuple[Replay, Trajectory]:
    """A full ring, and the slab it was filled with."""
    replay, slab = parts.make_replay(), _slab(parts)
    for _ in range(replay.slabs):
        replay.add(slab)
    return replay, slab


def _build_update(setup: Setup, batch: int) -> Cases:
    config = config_of(setup, learn__batch_size=batch, learn__accumulate=1)
    parts, count = _parts(setup, config), config.learn.updates_per_call
    _check_rows(setup, parts, batch * count)
    rows = _filled(parts)[0].sample(0, count)
    rates = jnp.full(count, parts.learning_rate(0), jnp.float32)
    keys = jax.vmap(lambda number: role_key(0, Role.AUGMENT, number))(jnp.arange(count))
    run, state = parts.make_update(), parts.start_learning()

    def call(number: int) -> Any:
        nonlocal state
        state, stats = run(state, rows, rates, keys)
        return state, stats

    return Cases((Case("updates", "rows", batch * count, call),))


def _build_replay(setup: Setup, batch: int) -> Cases:
    """Draws and insertions; with several ring sizes, each of both, side by side."""
    draws, inserts = list[Case](), list[Case]()
    for rows in setup.options.rows or (0,):
        more = {"replay__capacity_rows": rows, "replay__min_rows": 1} if rows else {}
        config = config_of(setup, learn__batch_size=batch, learn__accumulate=1, total_rows=_MOST, **more)
        parts = _parts(setup, config)
        _check_rows(setup, parts, max(config.replay.capacity_rows, batch))
        replay, slab = _filled(parts)
        suffix = f" {replay.slabs * replay.slab_rows:,}" if len(setup.options.rows or ()) > 1 else ""
        draws.append(Case(f"drawn{suffix}", "rows", batch, functools.partial(replay.sample, count=1)))
        inserts.append(Case(f"inserted{suffix}", "rows", replay.slab_rows, _inserter(replay, slab)))
    cases = (*draws, *inserts)

    def facts(timings: Mapping[str, Timing]) -> dict[str, float]:
        if len(draws) < 2:
            return {}
        return {
            f"{word}, last over first": timings[of[0].name].ratio_to(timings[of[-1].name])[0]
            for word, of in (("drawing", draws), ("inserting", inserts))
        }

    return Cases(cases, facts)


def _inserter(replay: Replay, slab: Trajectory) -> Any:
    def insert(number: int) -> Any:
        replay.add(slab)
        return replay.ring.slab_ready

    return insert


def _check_rows(setup: Setup, parts: Parts, rows: int) -> None:
    like = parts.slab_like()
    each = bytes_of(like) // (like.ended.shape[0] * like.ended.shape[1])
    setup.room.check(f"{rows} rows of {setup.game.spec.name}", rows * each)


_RUN: dict[str, Any] = {"peers": (), "misfit": _misfit}
TRAIN_STEP = Kind(
    name="train-step",
    measures="updates of the weights, as a run makes them",
    counted="a row is one position learned from once; the batch is learn.batch_size",
    takes=("width", "blocks", "preset", "sets"),
    default_sizes=lambda setup: (config_of(setup).learn.batch_size,),
    build=_build_update,
    **_RUN,
)
REPLAY = Kind(
    name="replay",
    measures="rows drawn from a full ring, and whole slabs inserted into it",
    counted="a row is one position; the batch is learn.batch_size",
    takes=("preset", "sets", "rows"),
    default_sizes=lambda setup: (config_of(setup).learn.batch_size,),
    build=_build_replay,
    **_RUN,
)
SELFPLAY = Kind(
    name="selfplay",
    measures="self-play end to end: the actor of a run",
    counted="a row is one move, or one whole turn where turns are chosen; the batch is selfplay.num_games",
    takes=("width", "blocks", "player", "preset", "sets"),
    default_sizes=lambda setup: (config_of(setup).selfplay.num_games,),
    build=_build_selfplay,
    **_RUN,
)
