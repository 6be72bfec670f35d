"""Who plays the fragments of a PPO run: a host game in threads, or a device game against past selves.

Knows the parts of such a run and what of its games belongs into checkpoints; not what is learned from them.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero import checkpoint as checkpoints
from aleazero.assemble_ppo import PpoParts
from aleazero.core.records import Weights
from aleazero.observe.alarms import Alarm, stale_weights
from aleazero.play.fragments import ANTES, FragmentPlay, Played
from aleazero.play.rewards import LAST_ANTE
from aleazero.play.selves import BoutStats, SelvesPlay
from aleazero.roles.ports import SourcedSink, WeightStore
from aleazero.runtimes.selfplay import Resume, SoFar

_KEEP = 0.9  # of what is known of how often games reach the horizon, from one fragment to the next


class _Play:
    """What both have in common."""

    epoch = 0

    def __init__(self, parts: PpoParts, sink: SourcedSink, weights: WeightStore) -> None:
        self._parts, self._sink, self._weights = parts, sink, weights
        self.move = 0
        self.version = -1

    @property
    def rows(self) -> int:
        """Decisions so far."""
        return self.move * self._parts.config.selfplay.num_games

    def alarm(self, learner_version: int) -> Alarm | None:
        """Weights that do not reach it."""
        return stale_weights(self.version, learner_version)

    def tend(self, so_far: SoFar) -> bool:
        """Nothing: what it played is in the sink."""
        return False

    def saved(self) -> None:
        """Nothing of it is kept elsewhere."""

    def report(self, where: dict[str, Any]) -> None:
        """Nothing: what it played says it all."""

    def close(self) -> None:
        """Nothing is held."""


class HostPlay(_Play):
    """Plays fragments in this process; games, move and horizon are all that it carries from step to step."""

    def __init__(self, parts: PpoParts, sink: SourcedSink, weights: WeightStore) -> None:
        super().__init__(parts, sink, weights)
        assert isinstance(parts.rollout, FragmentPlay)
        self._rollout = parts.rollout
        self.games = parts.rollout.start(parts.config.seed)
        self.horizon = parts.config.rewards.first_ante
        self._reached = 0.0  # share of the games that reach it, lately

    def step(self) -> Played:
        """One fragment."""
        self.version, weights = self._weights.latest()
        rollout, config = self._rollout, self._parts.config
        taught = self.rows < config.ppo.teacher_rows
        fragment, played = rollout.run(
            weights,
            self.games,
            seed=config.seed,
            first=self.move,
            horizon=self.horizon,
            teacher=rollout.game.teacher(config.ppo.teacher) if taught else None,
        )
        self.move += rollout.moves
        if not taught:  # how far a teacher comes says nothing of the policy
            self._grow(played)
        self._sink.add(fragment)  # type: ignore[arg-type]
        return played

    def _grow(self, played: Played) -> None:
        over = played.ended + played.truncated
        if self.horizon >= LAST_ANTE or not over:
            return
        self._reached = _KEEP * self._reached + (1 - _KEEP) * played.won / over
        if self._reached >= self._parts.config.rewards.grow_at:
            self.horizon, self._reached = self.horizon + 1, 0.0

    def arrays(self) -> dict[str, Any]:
        """The games in flight, as bytes one after another."""
        rows = [row for lanes in self.games for row in self._rollout.game.snapshot(lanes.states)]
        past = {"past": np.concatenate([lanes.past.rows for lanes in self.games])} if self._rollout.history else {}
        return {
            "games": {
                **past,
                "bytes": np.frombuffer(b"".join(rows), np.uint8),
                "lengths": np.array([len(row) for row in rows], np.int64),
                "ply": np.concatenate([lanes.ply for lanes in self.games]),
                "paid": np.concatenate([lanes.paid for lanes in self.games]),
            }
        }

    def facts(self) -> dict[str, Any]:
        """How far they are."""
        return {"move": self.move, "horizon": self.horizon, "reached": self._reached}

    def take_up(self, found: checkpoints.Checkpoint, how: Resume) -> None:
        """The count of moves goes on in any case: it names the randomness, which must not come twice."""
        facts = found.facts
        self.move, self.horizon, self._reached = facts["move"], facts["horizon"], facts["reached"]
        if how != "exact":
            return
        saved = {name: found.arrays[f"games/{name}"] for name in ("bytes", "lengths", "ply", "paid")}
        ends = np.cumsum(saved["lengths"])
        data = saved["bytes"].tobytes()
        rows = [data[end - size : end] for end, size in zip(ends, saved["lengths"], strict=True)]
        for lanes in self.games:
            at = lanes.at
            lanes.states = self._rollout.game.restore(rows[at])
            lanes.ply, lanes.paid = saved["ply"][at].copy(), saved["paid"][at].copy()
            if lanes.past.length:
                lanes.past.rows = found.arrays["games/past"][at].copy()


class DevicePlay(_Play):
    """Plays fragments on the device; games, move and past selves are all that it carries from step to step."""

    def __init__(self, parts: PpoParts, sink: SourcedSink, weights: WeightStore) -> None:
        super().__init__(parts, sink, weights)
        assert isinstance(parts.rollout, SelvesPlay)
        self._seed, self._count = jnp.uint32(parts.config.seed), parts.rollout.opponents
        self._run = jax.jit(parts.rollout.run, donate_argnums=2)
        self.games = jax.jit(parts.rollout.start)(self._seed)
        self.selves: Weights = None  # [S, ...] each: the first weights, until others were kept

    def step(self) -> Played:
        """One fragment."""
        self.version, weights = self._weights.latest()
        settings, rollout = self._parts.config, self._parts.rollout
        iteration = self.move // rollout.moves
        if self._count and iteration % settings.ppo.opponents_every == 0:
            place = iteration // settings.ppo.opponents_every % self._count
            self.selves = _kept(self._past(), weights, jnp.int32(place))
        first = jnp.uint32(self.move % 2**32)
        self.games, fragment, stats = self._run(weights, self.selves, self.games, self._seed, first)
        self.move += rollout.moves
        self._sink.add(fragment)
        return _played(jax.device_get(stats), rollout.num_games * rollout.moves)

    def _past(self) -> Weights:
        """All past selves; before any was kept they are what the run begins with."""
        if self.selves is None:
            self.selves = jax.tree.map(lambda w: jnp.repeat(w[None], self._count, 0), self._weights.latest()[1])
        return self.selves

    def arrays(self) -> dict[str, Any]:
        """The games in flight, and the past selves."""
        return {"games": self.games, "selves": self._past() if self._count else {}}

    def facts(self) -> dict[str, Any]:
        """How far they are."""
        return {"move": self.move}

    def take_up(self, found: checkpoints.Checkpoint, how: Resume) -> None:
        """The count of moves goes on in any case: it names the randomness, which must not come twice."""
        self.move = found.facts["move"]
        if self._count:
            like = jax.eval_shape(self._parts.model.init, jax.random.key(0))
            stacked = jax.tree.map(lambda w: jax.ShapeDtypeStruct((self._count, *w.shape), w.dtype), like)
            self.selves = jax.device_put(checkpoints.restore(found, "selves", stacked))
        if how == "exact":
            self.games = jax.device_put(checkpoints.restore(found, "games", self.games))


@jax.jit
def _kept(selves: Weights, weights: Weights, place: jax.Array) -> Weights:
    return jax.tree.map(lambda all_of, one: all_of.at[place].set(one), selves, weights)


def _played(stats: BoutStats, rows: int) -> Played:
    over, mine = int(stats.ended + stats.truncated), max(int(stats.mine), 1)
    return Played(
        rows=rows,
        ended=int(stats.ended),
        truncated=int(stats.truncated),
        points=float(stats.points) / over if over else float("nan"),
        entropy=float(stats.entropy) / mine,
        legal_entropy=float(stats.legal_entropy) / mine,
        terms={"points": float(stats.points) / mine},
        antes=np.zeros(ANTES, np.int64),
        won=int(stats.won),
        horizon=LAST_ANTE,
    )
