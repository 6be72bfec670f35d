"""Compiles programs of presets without running them; prints each program's name and the seconds that it took.

    python -m tests.programs GAME PRESET    one preset's, in their own sizes
    python -m tests.programs GAME           those of all presets of a game, in small sizes

The time hardly depends on sizes. In small ones many programs differ in their constants alone, and are compiled once.
A program that takes too long ends the process: its line has no number.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
import signal
import sys
import time
import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import Any

import jax
import jax.numpy as jnp

from aleazero import players
from aleazero.assemble import Parts
from aleazero.assemble_ppo import PpoParts, parts_of
from aleazero.config import RunConfig, resolve
from aleazero.core.game import Game
from aleazero.core.records import Knowledge, Rows
from aleazero.learn import ppo, update
from aleazero.play.fragments import FragmentPlay, _decide
from aleazero.play.match import Table
from aleazero.play.spread import Spread

LIMIT_SECONDS = 150  # for one program, on two busy cores; on quiet ones the slowest takes 20
KEY, WORD = jax.ShapeDtypeStruct((), jax.random.key(0).dtype), jax.ShapeDtypeStruct((), jnp.uint32)
Program = tuple[str, Any, tuple[Any, ...]]
SMALL = (
    *("model.width=16", "model.blocks=1", "selfplay.num_games=32", "selfplay.moves_per_rollout=4", "evaluate.games=16"),
    *("search.max_simulations=16", "selfplay.fast_simulations=8", "learn.batch_size=32", "learn.updates_per_call=2"),
    *("replay.capacity_rows=262144", "replay.min_rows=1000"),  # room for the longest games; no memory is taken
)
CONSTANTS = re.compile(r"dense<[^>]*>")
GENERAL = ("general", "gym")  # presets of games that others bring


def presets() -> dict[str, list[str]]:
    """Return the names of the presets by game."""
    files = sorted((resources.files("aleazero") / "presets").iterdir(), key=lambda file: file.name)
    games = {file.name.removesuffix(".toml"): list(tomllib.loads(file.read_text("utf-8"))) for file in files}
    return {game: names for game, names in games.items() if game not in GENERAL}


def programs(parts: Parts | PpoParts) -> Iterator[Program]:
    """Names, jitted functions and the shapes of what they are called with."""
    weights = jax.eval_shape(parts.model.init, KEY)
    yield from _of_search(parts, weights) if isinstance(parts, Parts) else _of_ppo(parts, weights)
    if isinstance(parts.game, Game) and parts.game.spec.num_players == 2:
        yield from _of_matches(parts.game, parts.config)


def _of_search(parts: Parts, weights: Any) -> Iterator[Program]:
    config, game = parts.config, parts.game
    lanes = _words(config.selfplay.num_games)
    games, knowledge = jax.eval_shape(parts.rollout.start, WORD, lanes), parts._knowledge(weights, parts._endings())
    yield "games", jax.jit(parts.rollout.start), (WORD, lanes)
    yield "rollout", jax.jit(parts.rollout.run), (knowledge, games, parts.pace(0), WORD, WORD, lanes)

    kept = dataclasses.replace(config.replay, capacity_rows=1, min_rows=1)  # as little as there can be
    replay = dataclasses.replace(parts, config=dataclasses.replace(config, replay=kept)).make_replay()
    slots = jax.ShapeDtypeStruct((replay.reach,), jnp.int32)
    numbers, count = _words(config.learn.updates_per_call), jax.ShapeDtypeStruct((), jnp.int32)
    yield "replay takes a slab", replay._insert, (replay.ring, parts.slab_like(), slots, jnp.float32(0))
    yield "replay draws", replay._draw, (replay.ring, WORD, numbers, count, count)

    rows: Rows = jax.eval_shape(replay._draw, replay.ring, WORD, numbers, count, count)
    state = jax.eval_shape(lambda key: update.start(config.learn, parts.model.init(key)), KEY)
    yield "updates", parts.make_update(), (state, rows, _rates(numbers), _keys(numbers))

    player, many = parts.match_player(weights), config.evaluate.games
    states = _states(game, many)
    if isinstance(player, players.TurnNetworkPlayer):
        knowledge = Knowledge(weights, player.endings)
        yield "turns of a match", players._turns(game, parts.model, player.ply), (knowledge, states)
    else:
        search = players._search(game, parts.model, player.search, Spread.of(many))
        knobs = players.playing_knobs(player.search)
        yield "searches of a match", search, (weights, states, _keys(_words(many)), knobs)


def _of_ppo(parts: PpoParts, weights: Any) -> Iterator[Program]:
    config, rollout = parts.config, parts.rollout
    if isinstance(rollout, FragmentPlay):
        fragment = rollout.buffers
        each = rollout.num_games // rollout.groups
        seen = jax.tree.map(lambda x: jax.ShapeDtypeStruct((each, *x.shape[2:]), x.dtype), fragment)
        if rollout.history == 0:
            given = (weights, seen.observation, seen.legal, WORD, WORD, _words(each))
            yield "moves", jax.jit(functools.partial(_decide, rollout.evaluate)), given
    else:
        bouts = jax.eval_shape(rollout.start, WORD)
        selves = jax.tree.map(lambda x: jax.ShapeDtypeStruct((rollout.opponents, *x.shape), x.dtype), weights)
        yield "rollout", jax.jit(rollout.run), (weights, selves, bouts, WORD, WORD)
        fragment = jax.eval_shape(rollout.run, weights, selves, bouts, WORD, WORD)[1]
    state = jax.eval_shape(lambda key: ppo.start(config.ppo, config.learn, parts.model.init(key)), KEY)
    count = ppo.updates_of(config.ppo, config.learn, config.selfplay.num_games * config.selfplay.moves_per_rollout)
    rate = jax.ShapeDtypeStruct((), jnp.float32)
    for clone in (False, True) if config.ppo.teacher else (False,):
        learn = ppo.make_update(config.ppo, config.learn, parts.model.apply, clone)
        name = "updates that copy the teacher" if clone else "updates"
        yield name, jax.jit(learn), (state, fragment, _rates(_words(count)), rate, KEY)


def _of_matches(game: Game, config: RunConfig) -> Iterator[Program]:
    table, many = Table(game), config.evaluate.games
    states, ply = _states(game, many), jax.ShapeDtypeStruct((many,), jnp.int32)
    yield "the start of a match", Table.start, (table, WORD, ply)
    yield "the moves of a match", Table.settle, (table, states, ply, _bools(many), states, WORD, WORD, ply)
    if game.plays is None:
        yield "legal moves of a match", Table.legal, (table, states, ply)
    else:
        yield "legal turns of a match", Table.legal_turn, (table, states, states)


def _states(game: Game, many: int) -> Any:
    return jax.eval_shape(jax.vmap(game.init), _keys(_words(many)))


def _words(many: int) -> Any:
    return jax.ShapeDtypeStruct((many,), jnp.uint32)


def _bools(many: int) -> Any:
    return jax.ShapeDtypeStruct((many,), bool)


def _rates(like: Any) -> Any:
    return jax.ShapeDtypeStruct(like.shape, jnp.float32)


def _keys(like: Any) -> Any:
    return jax.ShapeDtypeStruct(like.shape, KEY.dtype)


def main(game: str, *chosen: str) -> None:
    """Compile the programs one after the other, those that differ in constants alone once."""
    compiled = set()
    for preset in chosen or presets()[game]:
        for name, function, shapes in programs(
            parts_of(resolve(game, preset=preset, assignments=() if chosen else SMALL))
        ):
            print(f"{preset}, {name}:", end=" ", flush=True)
            since = time.monotonic()
            signal.alarm(LIMIT_SECONDS)  # without a handler it ends the process, whatever the compiler does
            lowered = function.lower(*shapes)
            digest = hashlib.sha256(CONSTANTS.sub("", lowered.as_text()).encode()).digest()
            if digest not in compiled:
                lowered.compile()
            compiled.add(digest)
            print(f"{time.monotonic() - since:.1f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
