"""Value targets from raw games: the outcome, TD(lambda) over outcome distributions, the search's value, or a mixture.

Everything is worked out from seat 0's side and turned to to_play's at the end, so that a player who moves twice needs
no special case. A game we stopped has no outcome and never gets one: with `td_lambda` 1 its rows have no value target;
below 1 they lean on the last opinion. Knows trajectories and the game's facts; no network, no replay.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.game import GameSpec
from aleazero.core.opinions import certain, expected_value, seen_by_seat, tilt
from aleazero.core.schedule import Schedule
from aleazero.core.struct import struct

_STEP_BY_STEP = 64  # moves: compiling parallel steps takes a GPU's compiler many seconds


@dataclasses.dataclass(frozen=True)
class TargetConfig:
    """What the value head learns."""

    td_lambda: float = 1.0  # 1: the outcome; 0: the next position's opinion
    td_lambda_end: float | None = None  # where it goes, evenly over the run; None: it stays
    opinion: Literal["search", "network"] = "search"  # whose opinion of a position is meant
    search_mix: float = 0.0  # share of the position's own search value in its target
    wait: bool = True  # for games to end; false: where a slab ends, the last opinion stands for the rest of the game

    def problems(self) -> list[str]:
        """What is wrong with it."""
        shares = {"td_lambda": self.td_lambda, "search_mix": self.search_mix}
        if self.td_lambda_end is not None:
            shares["td_lambda_end"] = self.td_lambda_end
        found = [f"{name} is {share}; it must be in 0..1" for name, share in shares.items() if not 0 <= share <= 1]
        if not self.wait and max(self.td_lambda, self.td_lambda_end or 0.0) >= 1:
            found.append("wait is false; td_lambda must then stay below 1: games cut at a slab's end have no outcome")
        return found

    def td_lambda_at(self, row: int, total_rows: int) -> float:
        """Its value when `row` rows of a run of `total_rows` are played."""
        return Schedule(self.td_lambda, self.td_lambda_end).at(row, total_rows)

    @property
    def needs_opinions(self) -> bool:
        """Whether opinions enter the targets at all."""
        return min(self.td_lambda, 1.0 if self.td_lambda_end is None else self.td_lambda_end) < 1 or self.search_mix > 0

    @property
    def searches(self) -> bool:
        """Whether opinions are the search's."""
        return self.needs_opinions and self.opinion == "search"


@struct
class Span:
    """What targets are made from: T moves of B games, in order, each `[T, B, ...]`."""

    exists: Array  # bool: a move was recorded here
    to_play: Array  # int8
    ended: Array  # bool
    settled: Array  # bool: ended, and the opinion is the truth
    truncated: Array  # bool
    random: Array  # bool: the move was a random one
    points: Array  # float32: seat 0's final points where ended
    opinion: Array  # [T, B, V] float: what is thought of the position (see `opinions`), to_play's side
    predicted: Array  # float32: the value the network gave it when it was played


@struct
class Targets:
    """Per move: what the value head should have said."""

    ready: Array  # [T, B] bool: the game is over, so the target is known
    has_value: Array  # [T, B] bool: and there is one
    target: Array  # [T, B, V] float32, to_play's side
    surprise: Array  # [T, B] float32 in [0, 2]: |predicted value - target|; 0 where there is no target
    moves_left: Array  # [T, B] int32: moves after this one until the game ends; -1 where we stopped it, or it goes on


def opinions(spec: GameSpec, config: TargetConfig, opinion: Array, value: Array) -> Array:
    """What is thought of positions `[..., V]`: the network's opinion, moved to the search's value if that is meant."""
    opinion = opinion.astype(jnp.float32)
    return tilt(spec, opinion, value) if config.searches else opinion


def value_targets(spec: GameSpec, config: TargetConfig, span: Span, td_lambda: Array | float | None = None) -> Targets:
    """Targets of every move whose game ends within the span; `td_lambda` is the config's first one unless given."""
    td_lambda = config.td_lambda if td_lambda is None else td_lambda
    width = span.opinion.shape[-1]
    thought = seen_by_seat(spec, span.opinion.astype(jnp.float32), span.to_play)
    truncated = span.truncated if config.wait else span.truncated.at[-1].set(~span.ended[-1])
    over = (span.ended | truncated) & span.exists
    following = jnp.concatenate([thought[1:], jnp.zeros_like(thought[:1])])
    # Backwards: target = keep * next target + given. A game's last move starts afresh.
    keep = jnp.where(over, 0.0, td_lambda)
    given = jnp.where(
        span.ended[..., None],
        certain(spec, span.points, width),
        jnp.where(truncated[..., None], thought, (1.0 - td_lambda) * following),
    )
    given = jnp.where(span.settled[..., None], thought, given)
    if config.searches:  # beyond a random move nothing is known, but for what the search thought before it was made
        cut = span.random & (jnp.asarray(td_lambda) < 1)
        keep, given = jnp.where(cut, 0.0, keep), jnp.where(cut[..., None], thought, given)
    target = _recur(keep[..., None], given)
    # What follows a move, as far as it matters here: is the game over within the span, and was it stopped?
    ready = _recur(jnp.where(over, 0.0, 1.0), over.astype(jnp.float32)) > 0
    stopped = _recur(jnp.where(over, 0.0, 1.0), truncated.astype(jnp.float32)) > 0
    still = _recur(jnp.where(over, 0.0, 1.0), jnp.where(over, 0.0, 1.0))
    target = seen_by_seat(spec, target, span.to_play)
    if config.search_mix:
        target = (1.0 - config.search_mix) * target + config.search_mix * span.opinion.astype(jnp.float32)
    ready = ready & span.exists
    if not config.wait:  # nothing is known of what follows the last move of a slab
        ready = ready.at[-1].set(ready[-1] & span.ended[-1])
    has_value = ready & ~(stopped & (td_lambda >= 1))
    # What follows a random move says nothing of the position before it; its own search does, if that is asked.
    target = jnp.where(span.random[..., None], span.opinion.astype(jnp.float32), target)
    has_value = jnp.where(span.random, ready & config.searches, has_value)
    surprise = jnp.abs(span.predicted - expected_value(spec, target))
    moves_left = jnp.where(ready & ~stopped, still, -1.0).astype(jnp.int32)
    return Targets(ready, has_value, target, jnp.where(has_value, surprise, 0.0), moves_left)


def _recur(keep: Array, given: Array) -> Array:
    """`x[t] = keep[t] * x[t + 1] + given[t]`, from the last t to the first; many in few parallel steps."""
    keep = jnp.broadcast_to(keep, given.shape)
    if given.shape[0] <= _STEP_BY_STEP:

        def step(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
            found = now[0] * later + now[1]
            return found, found

        return jax.lax.scan(step, jnp.zeros_like(given[0]), (keep, given), reverse=True)[1]

    def join(later: tuple[Array, Array], earlier: tuple[Array, Array]) -> tuple[Array, Array]:
        return earlier[0] * later[0], earlier[0] * later[1] + earlier[1]

    return jax.lax.associative_scan(join, (keep, given), reverse=True)[1]
