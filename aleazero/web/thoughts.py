"""What a player thinks of a position, as plain data: ranked moves, chances, what is expected to follow.

Always from the side of whoever is to play; values in points. Changes nothing.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.advice import ranked_plays
from aleazero.chess_players import StockfishPlayer
from aleazero.core.errors import ConfigError
from aleazero.core.keys import Role, lane_keys
from aleazero.engine_players import EnginePlayer
from aleazero.play.match import TurnPlayer
from aleazero.players import AnyPlayer, NetworkPlayer, RandomPlayer, SolverPlayer, TurnNetworkPlayer
from aleazero.rollouts import make_rollouts
from aleazero.web.table import Table
from aleazero.web.tree import MOST_LINE, PLAYS, lines, search, turn_lines

MOST_MOVES = 20


def think(
    table: Table, player: AnyPlayer, count: int = MOST_MOVES, rollout: int | None = None, answers: bool = True
) -> dict[str, Any]:
    """The best moves of the position at a table, best first; ConfigError where the player has no opinion.

    Without `answers` nobody looks for those to whole turns, which is much to compile for a first hint, nor for those to
    perfect moves.
    """
    if table.over or table.waits:
        raise ConfigError("there is nothing to play in this position: the turn or the game is over")
    states = jax.tree.map(lambda x: jnp.asarray(x)[None], table.state)
    if rollout is not None and not isinstance(player, TurnNetworkPlayer):
        raise ConfigError(f"player {player.name!r} cannot roll out; name a network that plays whole turns")
    if isinstance(player, NetworkPlayer):
        thought = _network(table, player, states)
    elif isinstance(player, SolverPlayer):
        thought = _solver(table, player, states, answers)
    elif isinstance(player, StockfishPlayer):
        thought = _stockfish(table, player, count)
    elif isinstance(player, TurnNetworkPlayer | EnginePlayer):
        thought = _plays(table, player, states, count, rollout, answers)
    elif isinstance(player, RandomPlayer | TurnPlayer):
        raise ConfigError(f"player {player.name!r} has no opinion; name a network, a solver or an engine")
    else:
        thought = _choice(table, player, states)
    for move in thought["moves"]:
        move["steps"] = table.steps(table.state, move["actions"])
    thought["moves"] = thought["moves"][:count]
    return {"player": player.name, "position": table.notation.format_state(table.state), **thought}


def _move(name: str, actions: list[int], value: float | None, **more: Any) -> dict[str, Any]:
    blank: dict[str, Any] = {"chances": None, "visits": None, "prior": None, "error": None, "line": []}
    return {"name": name, "actions": actions, "value": value, **blank, **more}


def _plays(
    table: Table, player: AnyPlayer, states: Any, count: int, rollout: int | None, answers: bool
) -> dict[str, Any]:
    rollouts = None if rollout is None else make_rollouts(player, rollout)
    found = ranked_plays(table.game, player, states, count, rollouts)
    names = [outcome.name for outcome in table.game.spec.outcomes]
    moves = []
    for play in found:
        chances = None if play.chances is None else _apart(play.chances)
        actions = [] if play.name == "pass" else table.notation.parse_moves(table.state, play.name)
        actions = actions or table.rules.legal(table.state)[:1]
        moves.append(_move(play.name, actions, play.equity, chances=chances, error=play.error))
    if isinstance(player, TurnNetworkPlayer) and answers:
        left = [functools.reduce(table.rules.apply, move["actions"], table.state) for move in moves[:PLAYS]]
        found_lines = turn_lines(table, player, jax.tree.map(lambda *leaves: np.stack(leaves), *left))
        for move, line in zip(moves, found_lines, strict=False):
            move["line"] = line
    best = moves[0]
    return {"value": best["value"], "outcomes": names, "chances": best["chances"], "moves": moves, "kind": "points"}


def _apart(at_least: tuple[float, ...]) -> list[float]:
    """Chances of six outcomes from chances of at least a win, a gammon, a backgammon, and so for losses."""
    found = []
    for side in (at_least[:3], at_least[3:]):
        found += [side[0] - side[1], side[1] - side[2], side[2]]
    return [max(float(chance), 0.0) for chance in found]


def _network(table: Table, player: NetworkPlayer, states: Any) -> dict[str, Any]:
    scale = table.game.spec.scale
    tree, result = search(table, player)
    found = jax.tree.map(lambda x: np.asarray(x)[0], result)
    follows = lines(table, tree)
    opinion = np.asarray(player.opinion(states))[0]
    order = [edge for edge in np.argsort(-found.policy, kind="stable") if found.actions[edge] >= 0]
    moves = []
    for edge in order:
        action, visits = int(found.actions[edge]), int(found.visits[edge])
        moves.append(
            _move(
                table.notation.format_action(table.state, action),
                [action],
                float(found.values[edge]) * scale if visits else None,
                visits=visits,
                prior=float(found.priors[edge]),
                line=follows[edge],
            )
        )
    outcomes = [outcome.name for outcome in table.game.spec.outcomes]
    chances = [float(chance) for chance in opinion] if len(opinion) == len(outcomes) else None
    value = moves[0]["value"] if moves[0]["visits"] else float(found.raw_value) * scale
    return {"value": value, "outcomes": outcomes, "chances": chances, "moves": moves, "kind": "search"}


def _solver(table: Table, player: SolverPlayer, states: Any, answers: bool) -> dict[str, Any]:
    values = player.judge(jax.tree.map(np.asarray, states))[0]
    legal = sorted(table.rules.legal(table.state), key=lambda action: -values[action])
    moves = [_move(table.notation.format_action(table.state, a), [a], float(values[a])) for a in legal]
    if answers:
        moves[0]["line"] = _perfect(table, player, table.rules.apply(table.state, legal[0]))
    return {"value": moves[0]["value"], "outcomes": [], "chances": None, "moves": moves, "kind": "exact"}


def _perfect(table: Table, player: SolverPlayer, state: Any) -> list[str]:
    """What follows if nobody errs, until nature is to move; the first of several moves that are as good."""
    found: list[str] = []
    while not (bool(state.terminated) or bool(state.is_chance)) and len(found) < MOST_LINE:
        values = player.judge(jax.tree.map(lambda x: np.asarray(x)[None], state))[0]
        action = int(np.nanargmax(values))
        found.append(table.notation.format_action(state, action))
        state = table.rules.apply(state, action)
    return found


def _stockfish(table: Table, player: StockfishPlayer, count: int) -> dict[str, Any]:
    outcomes = [outcome.name for outcome in table.game.spec.outcomes]
    moves = []
    for line in player.lines(table.state, count):
        first, *rest = _names(table, line.actions[: MOST_LINE + 1])
        value = line.chances[0] - line.chances[2]
        moves.append(_move(first, line.actions[:1], value, chances=list(line.chances), line=rest))
    best = moves[0]
    return {"value": best["value"], "outcomes": outcomes, "chances": best["chances"], "moves": moves, "kind": "search"}


def _choice(table: Table, player: Any, states: Any) -> dict[str, Any]:
    """Of a player that goes by no value, its move alone."""
    keys = lane_keys(jnp.uint32(0), Role.MATCH, len(table.played), jnp.arange(1))
    action = int(np.asarray(player.choose(states, jnp.ones(1, bool), keys))[0])
    move = _move(table.notation.format_action(table.state, action), [action], None)
    return {"value": None, "outcomes": [], "chances": None, "moves": [move], "kind": "choice"}


def _names(table: Table, actions: list[int]) -> list[str]:
    """Moves that are made one after the other; up to where the game is over by our rules."""
    found, state = [], table.state
    for action in actions:
        if bool(state.terminated):
            break
        found.append(table.notation.format_action(state, action))
        state = table.rules.apply(state, action)
    return found
