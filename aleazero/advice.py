"""What a player thinks of a position: the `eval` of `alea play`, and whole turns by what they are worth.

Changes nothing. Always from the side of whoever is to play.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import Array

from aleazero.core.errors import ConfigError
from aleazero.core.game import Game
from aleazero.engine_players import EnginePlayer
from aleazero.engines.gnubg import Gnubg, ranked, won_points
from aleazero.engines.gnubg_program import GnubgProgram
from aleazero.players import AnyPlayer, NetworkPlayer, SolverPlayer, TurnNetworkPlayer
from aleazero.rollouts import Rollouts

ENDS = ("win", "win_gammon", "win_backgammon", "lose", "lose_gammon", "lose_backgammon")
EVAL_PLAYS = 8  # that `eval` shows
CANDIDATES = 8  # that an engine looks at, if no more are asked for: the best at 0-ply


@dataclasses.dataclass(frozen=True)
class RankedPlay:
    """A whole turn and what it is worth to the player who makes it."""

    name: str
    equity: float  # expected points
    chances: tuple[float, ...] | None  # of each of `ENDS`, a gammon counting as a win too; None where nobody says
    error: float | None = None  # the equity's standard error, where the play was rolled out


def advice(game: Game, player: AnyPlayer, states: Any, keys: Array, names: Mapping[int, str]) -> list[str]:
    """Lines on one decision state, a batch `[1]`; `names` of its legal moves."""
    if isinstance(player, NetworkPlayer):
        return _network(game, player, states, keys, names)
    if isinstance(player, SolverPlayer):
        return _solver(player, states, names)
    if not isinstance(player, TurnNetworkPlayer | EnginePlayer):
        return [f"{player.name} has no opinion"]
    try:
        return table(ranked_plays(game, player, states, EVAL_PLAYS))
    except ConfigError as problem:
        return [str(problem)]


# ---- whole turns


def ranked_plays(
    game: Game, player: AnyPlayer, states: Any, count: int, rollouts: Rollouts | None = None
) -> list[RankedPlay]:
    """The best `count` plays of one position, states `[1]`, best first; ConfigError if the player cannot say.

    At more plies, and by rollouts, the best plays at 0-ply are looked at.
    """
    error = None
    if isinstance(player, TurnNetworkPlayer) and rollouts:
        after, equity, opinion, error = _rolled_out(player, states, count, rollouts)
    elif isinstance(player, TurnNetworkPlayer):
        after, equity, opinion = _by_network(player, states, count)
    elif isinstance(player, EnginePlayer) and isinstance(player.engine, Gnubg | GnubgProgram):
        after, equity, opinion = _by_engine(player.engine, player.name, states, count)
    else:
        raise ConfigError(
            f"player {player.name!r} has no opinion of plays; name a network that plays whole turns, or gnubg:ply=2"
        )
    pack = jax.jit(game.pack)
    state = jax.tree.map(lambda x: x[0], states)
    turns = {bytes(np.asarray(pack(left))): actions for actions, left in game.notation.turns(state)}
    plays = []
    for row in range(min(count, len(equity))):
        left = jax.tree.map(lambda x, row=row: x[row], after)
        name = game.notation.format_turn(state, turns[bytes(np.asarray(pack(left)))])
        sure = None if error is None else float(error[row])
        plays.append(RankedPlay(name, float(equity[row]), _at_least(opinion[row]), sure))
    return plays


def table(plays: Sequence[RankedPlay]) -> list[str]:
    """Plays in columns, with what each is worth less than the first."""
    width = max(4, *(len(play.name) for play in plays))
    errors = "   error" if plays[0].error is not None else ""
    head = f"     {'play':{width}}  equity{errors}  behind"
    if plays[0].chances:
        head += "     win  gammon  backgammon    lose  gammon  backgammon"
    lines = [head]
    for number, play in enumerate(plays, 1):
        behind = f"{play.equity - plays[0].equity:7.3f}" if number > 1 else " " * 7
        error = "" if play.error is None else f"  ±{play.error:.3f}"
        line = f" {number:2}  {play.name:{width}}  {play.equity:+.3f}{error} {behind}"
        if play.chances:
            # Of a rare end the estimate without luck may lie below none.
            line += "".join(f"{max(c, 0):{w}.1%}" for c, w in zip(play.chances, (8, 8, 12, 8, 8, 12), strict=True))
        lines.append(line)
    return lines


def _by_network(player: TurnNetworkPlayer, states: Any, count: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Afterstates `[k]`, equities `[k]` and opinions `[k, V]`, best first: of all plays, at more plies of the best."""
    found, scale = player.rank(states), player.game.spec.scale
    if player.ply:
        kept = min(len(found.value), max(count, CANDIDATES))
        rows = np.minimum(np.arange(-(-kept // CANDIDATES) * CANDIDATES), kept - 1)  # few shapes
        found = player.weigh(jax.tree.map(lambda x: x[rows], found.afterstates))
        found = jax.tree.map(lambda x: np.asarray(x)[:kept], found)
        order = np.argsort(-found.value, kind="stable")
        found = jax.tree.map(lambda x: x[order], found)
    return found.afterstates, np.asarray(found.value) * scale, np.asarray(found.opinion)


def _rolled_out(
    player: TurnNetworkPlayer, states: Any, count: int, rollouts: Rollouts
) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """The same of the best `count` plays at 0-ply, by rollouts; then standard errors `[k]`."""
    after = jax.tree.map(lambda x: x[:count], player.rank(states).afterstates)
    found = rollouts.run(after)
    order = np.argsort(-found.equity, kind="stable")
    chances = np.zeros((len(order), 0)) if found.chances is None else found.chances[order]
    return jax.tree.map(lambda x: x[order], after), found.equity[order], chances, found.error[order]


def _by_engine(engine: Gnubg | GnubgProgram, name: str, states: Any, count: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Afterstates `[k]`, equities `[k]` and outcomes `[k, 6]` of the best plays at 0-ply, ordered by the engine."""
    from aleazero.games.backgammon.boards import afterstates, to_boards, to_dice
    from aleazero.games.backgammon.game import OUTCOMES

    (board,), (dice,) = to_boards(states), to_dice(states)
    if int(states.left[0]) != (4 if dice[0] == dice[1] else 2):
        raise ConfigError(f"player {name!r} has no opinion in the middle of a turn")
    after = ranked(board, dice)[0][: max(count, CANDIDATES)]
    points = won_points(after)
    chances = np.eye(len(OUTCOMES))[np.maximum(points, 1) - 1]
    going = points == 0
    win, gammon, backgammon, lost_gammon, lost_backgammon = engine.probabilities(after[going, ::-1]).T
    # Of the opponent, who rolls next: its gammons are the mover's losses.
    sides = (1 - win, lost_gammon, lost_backgammon), (win, gammon, backgammon)
    chances[going] = np.stack([part for one, two, three in sides for part in (one - two, two - three, three)], 1)
    equity = chances @ np.array([outcome.points for outcome in OUTCOMES])
    order = np.argsort(-equity, kind="stable")
    seats = np.repeat(np.asarray(states.to_play), len(after))
    return afterstates(after[order], seats), equity[order], chances[order]


def _at_least(opinion: np.ndarray) -> tuple[float, ...] | None:
    """The chances of `ENDS` from those of a game's six outcomes, three of them won."""
    if len(opinion) != len(ENDS):
        return None
    return tuple(float(opinion[i : 3 * (i // 3 + 1)].sum()) for i in range(len(ENDS)))


# ---- moves


def _network(game: Game, player: NetworkPlayer, states: Any, keys: Array, names: Mapping[int, str]) -> list[str]:
    opinion = np.asarray(player.opinion(states))[0]
    found = jax.tree.map(lambda x: np.asarray(x)[0], player.look(states, keys))
    if len(opinion) == 1:
        first = f"value {opinion[0]:+.3f}"
    else:
        chances = zip(game.spec.outcomes, opinion, strict=True)
        first = ", ".join(f"{outcome.name} {chance:.1%}" for outcome, chance in chances)
    lines = [f"the network alone: {first}"]
    searched = found.visits.sum() > 0
    if searched:
        lines.append(f"after {player.search.max_simulations} simulations: value {found.value:+.3f}")
    width = max(len(name) for name in names.values())
    for edge in np.argsort(-found.policy, kind="stable"):
        if found.actions[edge] < 0:
            continue
        line = f"  {names[int(found.actions[edge])]:{width}}  prior {found.priors[edge]:6.1%}"
        if searched:
            value = f"{found.values[edge]:+.3f}" if found.visits[edge] else "unknown"
            line += f"  visits {found.visits[edge]:4.0f}  value {value}"
        lines.append(line)
    return lines


def _solver(player: SolverPlayer, states: Any, names: Mapping[int, str]) -> list[str]:
    values = player.judge(jax.tree.map(np.asarray, states))[0]
    width = max(len(name) for name in names.values())
    ranked = sorted(names, key=lambda action: -values[action])
    return ["exactly, in points:", *(f"  {names[action]:{width}}  {values[action]:+.4f}" for action in ranked)]
