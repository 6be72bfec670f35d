"""Matches: two players, every game twice with the seats swapped and the same openings and chance draws.

So luck and the first move's advantage fall out of the difference. A game that is stopped has no result.
Knows players by what they choose; not what they are made of.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import GameContractError
from aleazero.core.game import Game, legal_mask
from aleazero.core.keys import Role, lane_keys
from aleazero.core.struct import where_lanes
from aleazero.play.rollout import act, draw, random_actions


class Player(Protocol):
    """A competitor: names an action for every decision state it is asked about."""

    @property
    def name(self) -> str:
        """How it is written, as a player string."""

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        """`[B]` actions for decision states `[B]`; only those in `lanes` `[B]` bool count. One key per lane."""


@dataclasses.dataclass(frozen=True)
class MatchResult:
    """What came of a match; rows are pairs, columns the player's seat (0, 1)."""

    player: str
    opponent: str
    points: np.ndarray  # [P, 2] float64: the player's points; NaN where the game was stopped
    plies: np.ndarray  # [P, 2] int: moves, nature's included


def play_match(
    game: Game, player: Player, opponent: Player, *, pairs: int, seed: int, opening_plies: int = 0
) -> MatchResult:
    """`pairs` pairs of games, all at once. The first `opening_plies` moves are random, the same in both games."""
    if game.spec.num_players != 2:
        raise GameContractError("match", f"{game.spec.name} has {game.spec.num_players} player; a match needs two")
    table = _table(game)
    word = jnp.uint32(seed)  # a Python integer from 2**31 on would not fit the default type
    pair = jnp.repeat(jnp.arange(pairs), 2)
    seat = jnp.tile(jnp.arange(2), pairs)  # the player's
    # On a device by name, as weights leave it: or else searches are compiled for the first move and again for others.
    states, ply = jax.device_put(table.start(word, pair), jax.local_devices()[0])
    move = 0
    while True:
        over = states.terminated | (ply >= game.spec.max_plies)
        if bool(over.all()):
            break
        mine = states.to_play == seat
        if move < opening_plies:
            actions = table.opening(states, word, jnp.uint32(move), pair)
        else:
            actions = _ask(table, player, opponent, states, mine, over, word, move)
        states, ply = table.step(states, ply, over, actions, word, jnp.uint32(move), pair)
        move += 1
    returns = np.asarray(jnp.take_along_axis(states.returns, seat[:, None], 1))[:, 0].astype(np.float64)
    points = np.where(np.asarray(states.terminated), returns, np.nan)
    return MatchResult(player.name, opponent.name, points.reshape(-1, 2), np.asarray(ply).reshape(-1, 2))


def _ask(
    table: Table, player: Player, opponent: Player, states: Any, mine: Array, over: Array, seed: Array, move: int
) -> Array:
    """Both players' actions, each asked only if somebody waits for it; an illegal one ends the match."""
    actions = jnp.zeros(mine.shape, jnp.int32)
    keys = table.keys(seed, jnp.uint32(move), jnp.arange(mine.shape[0]))
    for who, lanes in ((player, mine & ~over), (opponent, ~mine & ~over)):
        if not bool(lanes.any()):
            continue
        chosen = jnp.asarray(who.choose(states, lanes, keys)).astype(jnp.int32)
        illegal = np.flatnonzero(np.asarray(lanes & ~table.legal(states, chosen)))
        if illegal.size:
            raise _illegal(table.game, who, states, chosen, int(illegal[0]))
        actions = jnp.where(lanes, chosen, actions)
    return actions


def _illegal(game: Game, who: Player, states: Any, chosen: Array, lane: int) -> GameContractError:
    where = game.notation.format_state(jax.tree.map(lambda x: x[lane], states))
    message = f"player {who.name!r} chose action {int(chosen[lane])}, which is not legal in {where!r}"
    return GameContractError("match", message)


class Table:
    """The compiled functions of one game's matches."""

    def __init__(self, game: Game) -> None:
        self.game = game

    @functools.partial(jax.jit, static_argnums=0)
    def start(self, seed: Array, pair: Array) -> tuple[Any, Array]:
        """First decision states; both games of a pair begin alike."""
        states = jax.vmap(self.game.init)(lane_keys(seed, Role.INIT, 0, pair))
        states, drew = draw(self.game, states, lane_keys(seed, Role.OPENING, 0, pair))
        return states, (drew >= 0).astype(jnp.int32)

    @functools.partial(jax.jit, static_argnums=0)
    def opening(self, states: Any, seed: Array, move: Array, pair: Array) -> Array:
        """Random actions, the same in both games of a pair."""
        return random_actions(self.game, states, lane_keys(seed, Role.ACTION, move, pair))

    @functools.partial(jax.jit, static_argnums=0)
    def keys(self, seed: Array, move: Array, lane: Array) -> Array:
        """The players' own randomness: each game its own."""
        return lane_keys(seed, Role.MATCH, move, lane)

    @functools.partial(jax.jit, static_argnums=0)
    def legal(self, states: Any, actions: Array) -> Array:
        """Whether actions are legal."""
        mask = legal_mask(jax.vmap(self.game.legal_list)(states), self.game.spec.num_actions)
        inside = (actions >= 0) & (actions < self.game.spec.num_actions)
        return inside & jnp.take_along_axis(mask, jnp.where(inside, actions, 0)[:, None], 1)[:, 0]

    @functools.partial(jax.jit, static_argnums=0)
    def step(
        self, states: Any, ply: Array, over: Array, actions: Array, seed: Array, move: Array, pair: Array
    ) -> tuple[Any, Array]:
        """The games after these actions and nature's answers; finished ones stay as they are."""
        after, drew = act(self.game, states, actions, lane_keys(seed, Role.CHANCE, move, pair))
        return where_lanes(over, states, after), jnp.where(over, ply, ply + 1 + (drew >= 0))


@functools.cache
def _table(game: Game) -> Table:
    return Table(game)
