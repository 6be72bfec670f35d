"""Rollouts: what positions are worth, found by playing each of them out many times with a network on both sides.

From a position that a turn has left every game goes on with the network's best plays at 0-ply, to its end, to an
ending that is known, or for so many rolls, where the network's opinion stands for the rest. Luck is taken off as in
matches (`play/luck.py`): what a roll is worth by the network less the mean over all rolls. Its expectation is zero
whatever the network says, and here it is taken off every outcome's chance. First rolls are spread evenly.
All games of all positions are tasks of one queue: a lane that has finished one takes the next. What is rolled in a game
is named by seed, stream, game and roll, so it depends neither on the lanes nor on the positions beside it; positions
of one stream meet the same dice, which makes their difference less noisy.
Knows networks that play whole turns; nothing of decisions, matches and files.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import ConfigError
from aleazero.core.keys import Role, role_key
from aleazero.core.opinions import other_side
from aleazero.core.struct import replace, struct, where_lanes
from aleazero.players import AnyPlayer, TurnNetworkPlayer

GAMES, PLIES = 324, 7
EVENLY = 36  # games come in multiples of it: then each first roll of two dice comes exactly as often as it should
LANES = {"cpu": 64}  # games played at once; a CPU gains nothing from more
ACCELERATOR_LANES = 8192
TASKS = 64  # games a queue holds for each lane: enough that few lanes wait for the last ones


@dataclasses.dataclass(frozen=True)
class RolledOut:
    """What rollouts say of positions, always for whoever left them."""

    games: np.ndarray  # [n, games] float64: expected points by each game, luck taken off
    raw_games: np.ndarray  # [n, games] float64: the same with the luck
    chances: np.ndarray | None  # [n, O] float64: of every outcome, luck taken off; None where the network has no say

    @property
    def equity(self) -> np.ndarray:
        """`[n]`: expected points."""
        return self.games.mean(-1)

    @property
    def error(self) -> np.ndarray:
        """`[n]`: the equities' standard errors, a little too large: that first rolls are even is not counted."""
        return _error(self.games)

    @property
    def raw_equity(self) -> np.ndarray:
        """`[n]`: expected points, with the luck."""
        return self.raw_games.mean(-1)

    @property
    def raw_error(self) -> np.ndarray:
        """`[n]`: their standard errors."""
        return _error(self.raw_games)


def _error(games: np.ndarray) -> np.ndarray:
    error: np.ndarray = games.std(-1, ddof=1) / np.sqrt(games.shape[-1])
    return error


@dataclasses.dataclass(frozen=True, eq=False)
class Rollouts:
    """Plays positions out. Compiled once, whatever it is asked about."""

    player: TurnNetworkPlayer
    games: int = GAMES  # of each position
    plies: int | None = PLIES  # rolls after which the network's opinion stands for the rest; None: never
    seed: int = 0
    lanes: int | None = None  # changes speed, never results

    def run(self, afterstates: Any, streams: np.ndarray | None = None) -> RolledOut:
        """Plays out states `[n]` that turns have left; those of one stream, `[n]` numbers, meet the same dice."""
        count = len(afterstates.to_play)
        streams = np.zeros(count, np.uint32) if streams is None else np.asarray(streams, np.uint32)
        judged = jax.tree.map(np.asarray, self.player.judge(afterstates))
        opinions = np.repeat(judged.opinion[:, None], self.games, 1).astype(np.float64)  # [n, games, V]
        luck = np.zeros_like(opinions)
        rows = np.flatnonzero(~judged.known)
        for first in range(0, len(rows), self.room):
            part = rows[first : first + self.room]
            for whole, found in zip((opinions, luck), self._play(afterstates, streams, part), strict=True):
                whole[part] = np.asarray(found, np.float64)[: len(part) * self.games].reshape(whole[part].shape)
        return self._summary(opinions, luck)

    def _play(self, afterstates: Any, streams: np.ndarray, rows: np.ndarray) -> tuple[Array, Array]:
        """`[T, V]` twice, the first tasks filled: how all games of some rows end, and their luck."""
        padded = rows[np.minimum(np.arange(self._capacity // EVENLY), len(rows) - 1)]  # one shape
        states = jax.tree.map(lambda x: jnp.asarray(x)[padded], afterstates)
        plies = self.player.game.spec.max_plies if self.plies is None else self.plies
        nobody = dataclasses.replace(self.player, weights=None, endings=None, name="")
        return _program(nobody, self._lanes, self._capacity)(
            (self.player.weights, self.player.endings),
            states,
            jnp.asarray(streams[padded]),
            jnp.uint32(self.seed),
            jnp.array([self.games, plies, len(rows) * self.games], jnp.int32),
        )

    def _summary(self, opinions: np.ndarray, luck: np.ndarray) -> RolledOut:
        spec, width = self.player.game.spec, opinions.shape[-1]
        points = np.array([spec.scale] if width == 1 else [outcome.points for outcome in spec.outcomes])
        chances = None if width == 1 else (opinions - luck).mean(1)
        return RolledOut((opinions - luck) @ points, opinions @ points, chances)

    @property
    def room(self) -> int:
        """How many positions are played out at once."""
        return self._capacity // self.games

    @property
    def _lanes(self) -> int:
        return self.lanes or LANES.get(jax.default_backend(), ACCELERATOR_LANES)

    @property
    def _capacity(self) -> int:
        return max(TASKS * self._lanes, self.games)


def make_rollouts(player: AnyPlayer, games: int = GAMES, plies: int | None = PLIES, seed: int = 0) -> Rollouts:
    """Rollouts by a player; ConfigError with all that is wrong."""
    problems = []
    if games < EVENLY or games % EVENLY:
        problems.append(
            f"games is {games}; it must be a multiple of {EVENLY}, as in {GAMES}: then every first roll comes as often "
            "as it should"
        )
    if plies is not None and plies < 1:
        problems.append(f"plies is {plies}; it must be at least 1")
    if not isinstance(player, TurnNetworkPlayer):
        problems.append(f"player {player.name!r} is no network that plays whole turns; name one that does")
    elif player.ply:
        problems.append(f"player {player.name!r} plays at {player.ply} plies; rollouts play at 0-ply")
    elif not problems:
        return Rollouts(player, games, plies, seed)
    raise ConfigError("\n".join(f"rollout: {problem}" for problem in problems))


@struct
class _Lanes:
    """The games in flight, `[W]`."""

    task: Array  # [W] int32: position * games + game; beyond the last task where a lane is idle
    states: Any  # [W] the positions that turns have left
    ply: Array  # [W] int32: rolls so far
    luck: Array  # [W, V] float32: what they brought whoever left the first position, outcome by outcome


@struct
class _Work:
    """What is to be played."""

    roots: Any  # [N] positions, the first few of them to be played out
    streams: Array  # [N] uint32
    seed: Array  # [] uint32
    games: Array  # [] int32: of each position
    plies: Array  # [] int32
    total: Array  # [] int32: tasks

    def row(self, task: Array) -> Array:
        """Whose position a task's is."""
        return jnp.minimum(task // self.games, self.streams.shape[0] - 1)


@functools.cache
def _program(player: TurnNetworkPlayer, lanes: int, capacity: int) -> Callable[..., tuple[Array, Array]]:
    """The compiled queue of a player without its arrays, which are arguments."""

    def play(arrays: Any, roots: Any, streams: Array, seed: Array, numbers: Array) -> tuple[Array, Array]:
        whole = dataclasses.replace(player, weights=arrays[0], endings=arrays[1])
        return _play_queue(whole, _Work(roots, streams, seed, *numbers), lanes, capacity)

    return jax.jit(play)


def _play_queue(player: TurnNetworkPlayer, work: _Work, lanes: int, capacity: int) -> tuple[Array, Array]:
    """`[T, V]` twice: how the tasks end, and their luck."""
    width = jax.eval_shape(player.judge, work.roots).opinion.shape[-1]

    def start(task: Array) -> _Lanes:
        states = jax.tree.map(lambda x: x[work.row(task)], work.roots)
        return _Lanes(task, states, jnp.zeros_like(task), jnp.zeros((*task.shape, width), jnp.float32))

    def going(carry: tuple[_Lanes, Array, Array, Array]) -> Array:
        return (carry[0].task < work.total).any()

    def step(carry: tuple[_Lanes, Array, Array, Array]) -> tuple[_Lanes, Array, Array, Array]:
        games, following, ended, luck = carry
        games, promised, known = _roll(player, work, games)
        over = (games.task < work.total) & (known | (games.ply >= work.plies))
        place = jnp.where(over, games.task, capacity)  # beyond the end: dropped
        ended, luck = (x.at[place].set(y, mode="drop") for x, y in ((ended, promised), (luck, games.luck)))
        number = jnp.cumsum(over.astype(jnp.int32))
        return where_lanes(over, start(following + number - 1), games), following + number[-1], ended, luck

    nothing = jnp.zeros((capacity, width), jnp.float32)
    first = (start(jnp.arange(lanes, dtype=jnp.int32)), jnp.int32(lanes), nothing, nothing)
    ended, luck = jax.lax.while_loop(going, step, first)[2:]
    return ended, luck


def _roll(player: TurnNetworkPlayer, work: _Work, lanes: _Lanes) -> tuple[_Lanes, Array, Array]:
    """One roll of every lane and the play it is answered with; what that promises `[W, V]`, and whether it is sure."""
    game, states, row = player.game, lanes.states, work.row(lanes.task)
    chances = jax.vmap(game.chance_probs)(states)[:, : game.num_later_outcomes]
    came = _draw(chances, work, work.streams[row], lanes.task % work.games, lanes.ply)
    idle, seat = lanes.task >= work.total, work.roots.to_play[row]

    def answer(outcome: Array) -> tuple[Any, Array, Array]:
        rolled = jax.vmap(game.apply_chance, (0, None))(states, outcome)
        turn = player.look(where_lanes(idle, states, rolled))  # an idle lane has no dice and so one play
        mine = (rolled.to_play == seat)[:, None]
        return turn.afterstates, jnp.where(mine, turn.opinion, other_side(game.spec, turn.opinion)), turn.known

    def look(carry: tuple[Any, Array], outcome: Array) -> tuple[tuple[Any, Array], None]:
        taken, mean = carry
        found = answer(outcome)
        return (where_lanes(came == outcome, found, taken), mean + chances[:, outcome][:, None] * found[1]), None

    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(answer, jnp.int32(0)))
    rolls = jnp.arange(game.num_later_outcomes)
    ((after, promised, known), mean), _ = jax.lax.scan(look, (nothing, jnp.zeros_like(lanes.luck)), rolls)
    moved = replace(lanes, states=after, ply=lanes.ply + 1, luck=lanes.luck + promised - mean)
    return where_lanes(idle, lanes, moved), promised, known


def _draw(chances: Array, work: _Work, stream: Array, game: Array, ply: Array) -> Array:
    """`[W]`: what is rolled."""

    def unit(stream: Array, game: Array, ply: Array) -> Array:
        key = role_key(work.seed, Role.CHANCE, stream)
        return jax.random.uniform(jax.random.fold_in(jax.random.fold_in(key, game), ply))

    where = jnp.where(ply == 0, (game + 0.5) / work.games, jax.vmap(unit)(stream, game, ply))
    passed = (where[:, None] >= jnp.cumsum(chances, -1)).sum(-1)
    return jnp.minimum(passed, chances.shape[-1] - 1)
