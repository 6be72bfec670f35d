"""Matches: two players, every game twice with the seats swapped and the same openings and chance draws.

So luck and the first move's advantage fall out of the difference. A game that is stopped has no result. Where a game
has whole turns, a match goes turn by turn, so that both games of a pair meet the same dice whatever the players are.
Knows players by what they choose; not what they are made of.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import GameContractError
from aleazero.core.game import Game, legal_mask
from aleazero.core.keys import Role, lane_keys
from aleazero.core.struct import where_lanes
from aleazero.play.rollout import draw, random_actions


class Player(Protocol):
    """A competitor: names an action for every decision state it is asked about."""

    @property
    def name(self) -> str:
        """How it is written, as a player string."""

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        """`[B]` actions for decision states `[B]`; only those in `lanes` `[B]` bool count. One key per lane."""


@runtime_checkable
class TurnPlayer(Protocol):
    """A competitor that plays whole turns."""

    @property
    def name(self) -> str:
        """How it is written, as a player string."""

    def turn(self, states: Any, lanes: Array, keys: Array) -> Any:
        """The states `[B]` its turns leave, before nature answers; only those in `lanes` `[B]` bool count."""


@dataclasses.dataclass(frozen=True)
class Rolls:
    """What nature did in the games of a match, each `[R]`."""

    states: np.ndarray  # [R, P] uint8: packed, before it
    outcome: np.ndarray  # [R] int
    game: np.ndarray  # [R] int: row * 2 + column of the result


@dataclasses.dataclass(frozen=True)
class MatchResult:
    """What came of a match; rows are pairs, columns the player's seat (0, 1)."""

    player: str
    opponent: str
    points: np.ndarray  # [P, 2] float64: the player's points; NaN where the game was stopped
    plies: np.ndarray  # [P, 2] int: moves, nature's included
    rolls: Rolls | None = None  # where asked for
    luck: np.ndarray | None = None  # [P, 2] float64: the points that chance brought the player, where that was judged


def play_match(
    game: Game,
    player: Player | TurnPlayer,
    opponent: Player | TurnPlayer,
    *,
    pairs: int,
    seed: int,
    opening_plies: int = 0,
    record: bool = False,
) -> MatchResult:
    """`pairs` pairs of games, all at once. The first `opening_plies` moves are random, the same in both games.

    With `record` what nature did is kept.
    """
    if game.spec.num_players != 2:
        raise GameContractError("match", f"{game.spec.name} has {game.spec.num_players} player; a match needs two")
    table = _table(game)
    word = jnp.uint32(seed)  # a Python integer from 2**31 on would not fit the default type
    pair = jnp.repeat(jnp.arange(pairs), 2)
    seat = jnp.tile(jnp.arange(2), pairs)  # the player's
    # On a device by name, as weights leave it: or else searches are compiled for the first move and again for others.
    states, ply, first, drew = jax.device_put(table.start(word, pair), jax.local_devices()[0])
    rolls = [_noted(first, drew, jnp.ones(pair.shape, bool))] if record else []
    move = 0
    while True:
        over = states.terminated | (ply >= game.spec.max_plies)
        if bool(over.all()):
            break
        mine = states.to_play == seat
        if move < opening_plies:
            decided = table.opening(states, word, jnp.uint32(move), pair)
        else:
            decided = _ask(table, player, opponent, states, mine, over, word, move)
        states, ply, before, drew = table.settle(states, ply, over, decided, word, jnp.uint32(move), pair)
        if record:
            rolls.append(_noted(before, drew, ~over))
        move += 1
    returns = np.asarray(jnp.take_along_axis(states.returns, seat[:, None], 1))[:, 0].astype(np.float64)
    points = np.where(np.asarray(states.terminated), returns, np.nan)
    return MatchResult(
        player=player.name,
        opponent=opponent.name,
        points=points.reshape(-1, 2),
        plies=np.asarray(ply).reshape(-1, 2),
        rolls=Rolls(*(np.concatenate(x) for x in zip(*rolls, strict=True))) if record else None,
    )


def _noted(before: Array, drew: Array, going: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fields of `Rolls` for one move of all games."""
    rows = np.flatnonzero(np.asarray((drew >= 0) & going))
    return np.asarray(before)[rows], np.asarray(drew)[rows], rows


def _ask(
    table: Table,
    player: Player | TurnPlayer,
    opponent: Player | TurnPlayer,
    states: Any,
    mine: Array,
    over: Array,
    seed: Array,
    move: int,
) -> Any:
    """The states both players' moves lead to, each asked only if somebody waits for it."""
    decided = states
    keys = table.keys(seed, jnp.uint32(move), jnp.arange(mine.shape[0]))
    for who, lanes in ((player, mine & ~over), (opponent, ~mine & ~over)):
        if not bool(lanes.any()):
            continue
        if isinstance(who, TurnPlayer):
            after = who.turn(states, lanes, keys)
            _check(table, who, states, lanes, table.legal_turn(states, after), "a turn")
        else:
            after = _by_actions(table, who, states, lanes, keys)
        decided = table.pick(lanes, after, decided)
    return decided


@dataclasses.dataclass(frozen=True)
class WholeTurns:
    """A player that is asked action by action, as one that plays whole turns."""

    game: Game
    player: Player

    @property
    def name(self) -> str:
        """The player's."""
        return self.player.name

    def turn(self, states: Any, lanes: Array, keys: Array) -> Any:
        """The states its actions lead to, until the turn is over."""
        return _by_actions(_table(self.game), self.player, states, lanes, keys)


def _by_actions(table: Table, who: Player, states: Any, lanes: Array, keys: Array) -> Any:
    """The states after one action; where a game has whole turns, after as many as the turn takes."""
    number = 0
    while True:
        chosen = jnp.asarray(who.choose(states, lanes, keys)).astype(jnp.int32)
        _check(table, who, states, lanes, table.legal(states, chosen), "action {}", chosen)
        after = table.apply(states, chosen, lanes)
        if table.game.plays is None:
            return after
        lanes = lanes & ~after.is_chance & ~after.terminated & (after.to_play == states.to_play)
        if not bool(lanes.any()):
            return after
        number += 1
        states, keys = after, table.more_keys(keys, jnp.uint32(number))


def _check(
    table: Table,
    who: Player | TurnPlayer,
    states: Any,
    lanes: Array,
    legal: Array,
    what: str,
    chosen: Array | None = None,
) -> None:
    """An illegal move ends the match."""
    illegal = np.flatnonzero(np.asarray(lanes & ~legal))
    if illegal.size:
        lane = int(illegal[0])
        where = table.game.notation.format_state(jax.tree.map(lambda x: x[lane], states))
        move = what.format(int(chosen[lane])) if chosen is not None else what
        raise GameContractError("match", f"player {who.name!r} chose {move}, which is not legal in {where!r}")


class Table:
    """The compiled functions of one game's matches."""

    def __init__(self, game: Game) -> None:
        self.game = game

    @functools.partial(jax.jit, static_argnums=0)
    def start(self, seed: Array, pair: Array) -> tuple[Any, Array, Array, Array]:
        """First decision states and plies; packed states before nature's first move, and what it was.

        Both games of a pair begin alike.
        """
        first = jax.vmap(self.game.init)(lane_keys(seed, Role.INIT, 0, pair))
        states, drew = draw(self.game, first, lane_keys(seed, Role.OPENING, 0, pair))
        return states, (drew >= 0).astype(jnp.int32), jax.vmap(self.game.pack)(first), drew

    @functools.partial(jax.jit, static_argnums=0)
    def opening(self, states: Any, seed: Array, move: Array, pair: Array) -> Any:
        """The states after random moves, the same in both games of a pair; whole turns where a game has them."""
        keys = lane_keys(seed, Role.ACTION, move, pair)
        after = self.apply(states, random_actions(self.game, states, keys), ~states.terminated)
        if self.game.plays is None:
            return after

        def goes_on(after: Any) -> Array:
            return ~after.is_chance & ~after.terminated & (after.to_play == states.to_play)

        def step(carry: tuple[Any, Array]) -> tuple[Any, Array]:
            after, number = carry
            actions = random_actions(self.game, after, self.more_keys(keys, number))
            return self.apply(after, actions, goes_on(after)), number + 1

        return jax.lax.while_loop(lambda carry: goes_on(carry[0]).any(), step, (after, jnp.uint32(1)))[0]

    @functools.partial(jax.jit, static_argnums=0)
    def keys(self, seed: Array, move: Array, lane: Array) -> Array:
        """The players' own randomness: each game its own."""
        return lane_keys(seed, Role.MATCH, move, lane)

    @functools.partial(jax.jit, static_argnums=0)
    def more_keys(self, keys: Array, number: Array) -> Array:
        """Of the further actions of a turn."""
        return jax.vmap(lambda key: jax.random.fold_in(key, number))(keys)

    @functools.partial(jax.jit, static_argnums=0)
    def legal(self, states: Any, actions: Array) -> Array:
        """Whether actions are legal."""
        mask = legal_mask(jax.vmap(self.game.legal_list)(states), self.game.spec.num_actions)
        inside = (actions >= 0) & (actions < self.game.spec.num_actions)
        return inside & jnp.take_along_axis(mask, jnp.where(inside, actions, 0)[:, None], 1)[:, 0]

    @functools.partial(jax.jit, static_argnums=0)
    def legal_turn(self, states: Any, after: Any) -> Array:
        """Whether states are left by one of the turns that are possible."""
        game = self.game
        assert game.plays is not None
        assert game.plays_start is not None
        wanted = jax.vmap(game.pack)(after)

        def look(carry: tuple[Array, Any, Array]) -> tuple[Array, Any, Array]:
            found, cursor, _ = carry
            chunk = game.plays(states, cursor)  # type: ignore[misc]
            real = jnp.arange(chunk.owner.shape[0]) < chunk.count
            same = (jax.vmap(game.pack)(chunk.afterstates) == wanted[chunk.owner]).all(-1) & real
            return found.at[chunk.owner].max(same), chunk.cursor, chunk.done

        start = (jnp.zeros(wanted.shape[0], bool), game.plays_start(states), jnp.bool_(False))
        found: Array = jax.lax.while_loop(lambda carry: ~carry[2], look, start)[0]
        return found

    @functools.partial(jax.jit, static_argnums=0)
    def apply(self, states: Any, actions: Array, lanes: Array) -> Any:
        """The states after actions, in some lanes."""
        return where_lanes(lanes, jax.vmap(self.game.apply_action)(states, actions), states)

    @functools.partial(jax.jit, static_argnums=0)
    def pick(self, lanes: Array, yes: Any, no: Any) -> Any:
        """One of two batches, lane by lane."""
        return where_lanes(lanes, yes, no)

    @functools.partial(jax.jit, static_argnums=0)
    def settle(
        self, states: Any, ply: Array, over: Array, decided: Any, seed: Array, move: Array, pair: Array
    ) -> tuple[Any, Array, Array, Array]:
        """The games after what was decided and nature's answers; finished ones stay as they are.

        Then packed what was decided, and nature's answers, -1 where it gave none.
        """
        after, drew = draw(self.game, decided, lane_keys(seed, Role.CHANCE, move, pair))
        ply = jnp.where(over, ply, ply + 1 + (drew >= 0))
        return where_lanes(over, states, after), ply, jax.vmap(self.game.pack)(decided), drew


@functools.cache
def _table(game: Game) -> Table:
    return Table(game)
