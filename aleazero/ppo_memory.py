"""What a PPO run takes of memory, by its settings, and how it is made to fit `ppo.memory_gb`.

Counted are the process itself, the rows of an iteration, and on a CPU what a network works out on the way: for the rows
that a gradient is made of at once, and for half of the games while they are played. With an accelerator that is in its
own memory. Knows settings and a network; not who plays.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from typing import Any

import jax
import jax.numpy as jnp

from aleazero.config import RunConfig
from aleazero.core.errors import ConfigError
from aleazero.core.game import GameSpec
from aleazero.learn import ppo
from aleazero.models.build import Model

logger = logging.getLogger(__name__)

_COPIES = 3  # of an iteration's rows: the buffers, the device's, and what an update gathers
_BASE_BYTES = 3 * 2**29  # of a process with everything imported and compiled, weights and optimiser included
_BASE_BYTES_BESIDE = 5 * 2**29  # the same where an accelerator's libraries are loaded
_GRADIENT_SHARE = 4  # a gradient may take so small a part of the cap; its minibatch is cut up until it does
_PLAYED_SHARE = 8  # of what a network writes: half of the games are looked at at once, and little of it is kept
_TRACED_ROWS = 8
_STEP = 8  # games at once are a multiple of it, where nobody says how many


def fitted(config: RunConfig, spec: GameSpec, model: Model) -> RunConfig:
    """The settings with as many games as fit, where they are left open, and minibatches cut up so that they do.

    ConfigError says what would fit where they do not.
    """
    play, learn = config.selfplay, config.learn
    cap, base, worked = int(config.ppo.memory_gb * 2**30), _BASE_BYTES_BESIDE, 0
    if jax.default_backend() == "cpu":
        base, worked = _BASE_BYTES, worked_out_bytes(model, spec)
        most = 1 << max(cap // _GRADIENT_SHARE // worked, 1).bit_length() - 1
        if ppo.rows_at_once(config.ppo, learn, learn.batch_size) > most:
            logger.warning("ppo.cached_rows is %d: a gradient of more rows at once takes too much memory", most)
            config = dataclasses.replace(config, ppo=dataclasses.replace(config.ppo, cached_rows=most))
    seen = 4 * math.prod(spec.observation_shape)
    row = seen + spec.num_actions + 32 + seen * config.model.history // _COPIES  # the past is laid out once, to learn
    game = _COPIES * play.moves_per_rollout * row + worked // _PLAYED_SHARE
    rest = base + worked * ppo.rows_at_once(config.ppo, learn, learn.batch_size)
    least = max(config.ppo.opponents, 1)
    fits = (cap - rest) // game // least * least
    if max(play.num_games, least) > fits:
        need = rest + game * max(play.num_games, least)
        enough = math.ceil(100 * need / 2**30) / 100
        advice = f"selfplay.num_games = {fits} fits" if fits > 0 else f"ppo.memory_gb = {enough:.2f} is enough"
        raise ConfigError(
            f"ppo.memory_gb is {config.ppo.memory_gb:g}; {play.num_games or least} games of {play.moves_per_rollout} "
            f"moves need {need / 2**30:.2f} GiB: {advice}"
        )
    if play.num_games:
        return config
    step, most = math.lcm(_STEP, least), min(fits, config.total_rows // play.moves_per_rollout)
    games = most // step * step or most // least * least
    logger.warning("selfplay.num_games is %d: as many as fit ppo.memory_gb and total_rows", games)
    config = dataclasses.replace(config, selfplay=dataclasses.replace(play, num_games=games))
    if problems := config.problems():
        raise ConfigError("\n".join(problems))
    return config


def worked_out_bytes(model: Model, spec: GameSpec) -> int:
    """What a network writes on the way from one row to its answer, were every operation's result kept.

    A gradient keeps about half of that, and its own numbers beside it: the compiler joins what it can.
    """
    shape = (1 + model.config.history,) if model.config.history else ()
    seen = jax.ShapeDtypeStruct((_TRACED_ROWS, *shape, *spec.observation_shape), jnp.float32)
    weights = jax.eval_shape(model.init, jax.random.key(0))
    return _written(jax.make_jaxpr(model.apply)(weights, seen).jaxpr) // _TRACED_ROWS


def _written(program: Any) -> int:
    total = 0
    for step in program.eqns:
        inner = [getattr(each, "jaxpr", each) for each in step.params.values()]
        inner = [each for each in inner if hasattr(each, "eqns")]
        if inner:
            total += step.params.get("length", 1) * sum(map(_written, inner))
        else:
            total += sum(out.aval.size * out.aval.dtype.itemsize for out in step.outvars)
    return total
