"""A whole game looked at again: what every decision cost, by a player's judgement; from .mat, PGN or a list of moves.

Costs are points. A decision is one where there was a choice. Knows notation and players; nothing of HTTP.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.chess_players import StockfishPlayer
from aleazero.core.errors import ConfigError, NotationError
from aleazero.core.keys import Role, lane_keys
from aleazero.games.backgammon.game import MIXED, ROLLS
from aleazero.games.backgammon.mat import MatGame, read_mat
from aleazero.games.chess.pgn_read import read_pgn
from aleazero.players import AnyPlayer, NetworkPlayer, SolverPlayer, TurnNetworkPlayer
from aleazero.web.faces import face_of
from aleazero.web.rules import Rules, playable, rules_of

T = TypeVar("T")
MOST_TURNS = 600
CANDIDATES = 16  # plays weighed at more than 0-ply, the one made included
BLUNDER, MISTAKE = 0.08, 0.02  # points over the largest a game can bring: from these on a decision is marked


@dataclasses.dataclass(frozen=True)
class Made:
    """A turn as it was played."""

    state: Any
    actions: list[int]
    chance: str = ""


@dataclasses.dataclass(frozen=True)
class Judged:
    """What a turn cost, and what would have been best."""

    loss: float
    value: float  # of the best
    best: list[int]


def review(game: str, text: str, player: AnyPlayer, number: int = 1) -> dict[str, Any]:
    """A game of a text, decision by decision; the first one is number 1."""
    rules, face = rules_of(playable(game)), face_of(playable(game))
    games, names, turns = _read(game, text, rules, number)
    notation, shown = rules.game.notation, []
    for made in turns:
        judged = _judge(rules, player, made)
        shown.append(
            {
                "seat": int(made.state.to_play),
                "chance": made.chance,
                "board": face.board(made.state),
                "position": notation.format_state(made.state),
                "name": notation.format_turn(made.state, made.actions),
                "steps": [face.places(made.state, made.actions[0])] if len(made.actions) == 1 else [],
                "loss": judged and judged.loss,
                "value": judged and judged.value,
                "best": judged and notation.format_turn(made.state, judged.best),
                "mark": judged and _mark(judged.loss / rules.game.spec.scale),
            }
        )
    which = {"names": list(names), "player": player.name, "number": number, "games": games}
    return {**which, "turns": shown, "summary": _summary(shown)}


def _mark(loss: float) -> str:
    return "blunder" if loss >= BLUNDER else "mistake" if loss >= MISTAKE else ""


def _summary(shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for seat in (0, 1):
        mine = [turn for turn in shown if turn["seat"] == seat and turn["loss"] is not None]
        lost = sum(turn["loss"] for turn in mine)
        marks = {mark: sum(turn["mark"] == mark for turn in mine) for mark in ("blunder", "mistake")}
        found.append({"decisions": len(mine), "lost": lost, "error_rate": lost / len(mine) if mine else None, **marks})
    return found


# ---- reading


def _read(game: str, text: str, rules: Rules, number: int) -> tuple[int, tuple[str, str], list[Made]]:
    """How many games there are; whose game this one is, and its turns."""
    if game == "backgammon":
        matches = read_mat(text)
        names, turns = _follow_mat(_pick(matches, number), rules)
        return len(matches), names, turns
    if game == "chess":
        games = read_pgn(text)
        one = _pick(games, number)
        names = (one.tags.get("White", "White"), one.tags.get("Black", "Black"))
        return len(games), names, _follow(rules, rules.game.notation.parse_state(one.start), iter(one.moves))
    return 1, ("player 1", "player 2"), _follow(rules, rules.first(0), _words(_pick([text], number)))


def _pick(games: Sequence[T], number: int) -> T:
    if number > len(games):
        raise NotationError(f"there is no game {number} in this text, which has {len(games)}")
    return games[number - 1]


def _words(text: str) -> Iterator[str]:
    """Moves that are set apart by spaces; their numbers are passed over."""
    for word in text.split():
        if not (word.endswith(".") and word[:-1].isdecimal()):
            yield word


def _follow(rules: Rules, state: Any, words: Iterator[str]) -> list[Made]:
    turns: list[Made] = []
    state = jax.tree.map(np.asarray, state)
    for word in words:
        if len(turns) >= MOST_TURNS:
            raise NotationError(f"the game has more than {MOST_TURNS} moves")
        try:
            actions = rules.game.notation.parse_moves(state, word)
        except NotationError as error:
            raise NotationError(f"at move {len(turns) + 1}: {error}") from None
        turns.append(Made(state, actions))
        for action in actions:
            state = rules.apply(state, action)
        if bool(state.is_chance):
            raise NotationError("games of chance are read from .mat files, in backgammon")
    if not turns:
        raise NotationError("there are no moves in this text")
    return turns


def _follow_mat(game: MatGame, rules: Rules) -> tuple[tuple[str, str], list[Made]]:
    state, turns = rules.first(0), []  # type: Any, list[Made]
    for turn in game.turns[:MOST_TURNS]:
        where = f"line {turn.line}"
        if bool(state.terminated):
            raise NotationError(f"{where}: the game is over before")
        opening = bool(state.opening)
        if opening and turn.dice[0] == turn.dice[1]:
            raise NotationError(f"{where}: the first roll is a double")
        if not opening and turn.seat == int(state.to_play):
            raise NotationError(f"{where}: {game.names[turn.seat]} rolls twice in a row")
        state = rules.roll(state, ROLLS.index(turn.dice) + MIXED * (turn.seat if opening else 0))
        legal = rules.legal(state)
        try:
            if turn.text:
                actions = rules.game.notation.parse_moves(state, turn.text)
            elif len(legal) == 1:
                actions = legal
            else:
                raise NotationError("a roll that can be played is not")
        except NotationError as error:
            raise NotationError(f"{where}: {error}") from None
        turns.append(Made(state, actions, "{}{}".format(*turn.dice)))
        for action in actions:
            state = rules.apply(state, action)
        if not (bool(state.is_chance) or bool(state.terminated)):
            raise NotationError(f"{where}: {turn.text!r} is only a part of a turn")
    return game.names, turns


# ---- judging


def _judge(rules: Rules, player: AnyPlayer, made: Made) -> Judged | None:
    """None where there was no choice, or nobody says."""
    legal = rules.legal(made.state)
    if len(legal) == 1 and len(made.actions) == 1:
        return None
    states = jax.tree.map(lambda x: jnp.asarray(x)[None], made.state)
    if isinstance(player, TurnNetworkPlayer):
        return _judge_turn(rules, player, made, states)
    if isinstance(player, StockfishPlayer):
        return _judge_line(player, made)
    if isinstance(player, NetworkPlayer):
        found = jax.tree.map(
            lambda x: np.asarray(x)[0], player.look(states, lane_keys(jnp.uint32(0), Role.SEARCH, 0, jnp.arange(1)))
        )
        values = {
            int(a): float(v) for a, v, n in zip(found.actions, found.values, found.visits, strict=True) if a >= 0 and n
        }
    elif isinstance(player, SolverPlayer):
        exact = player.judge(jax.tree.map(np.asarray, states))[0]
        values = {action: float(exact[action]) / rules.game.spec.scale for action in legal}
    else:
        raise ConfigError(f"player {player.name!r} has no opinion; name a network, a solver or Stockfish")
    if not values:
        raise ConfigError(f"player {player.name!r} does not look ahead; give it simulations, as in sims=64")
    scale = rules.game.spec.scale
    best = max(values, key=lambda action: values[action])
    worth = values.get(made.actions[0], min(values.values()))
    return Judged((values[best] - worth) * scale, values[best] * scale, [best])


def _judge_line(player: StockfishPlayer, made: Made) -> Judged:
    (best,) = player.lines(made.state, 1)
    (other,) = [best] if best.actions[0] == made.actions[0] else player.lines(made.state, 1, only=made.actions[0])
    values = [line.chances[0] - line.chances[2] for line in (best, other)]
    return Judged(max(values[0] - values[1], 0.0), values[0], best.actions[:1])  # of two looks one may see more


def _judge_turn(rules: Rules, player: TurnNetworkPlayer, made: Made, states: Any) -> Judged | None:
    found, scale = player.rank(states), rules.game.spec.scale
    if len(found.value) == 1:
        return None
    left = made.state
    for action in made.actions:
        left = rules.apply(left, action)
    packed, wanted = rules.pack_all(found.afterstates), rules.pack_all(jax.tree.map(lambda x: x[None], left))[0]
    place = int(np.flatnonzero((packed == wanted).all(-1))[0])
    values = np.asarray(found.value)
    if player.ply:
        rows = np.unique(np.append(np.arange(min(CANDIDATES - 1, len(values))), place))
        filled = rows[np.minimum(np.arange(CANDIDATES), len(rows) - 1)]
        weighed = np.asarray(player.weigh(jax.tree.map(lambda x: jnp.asarray(x)[filled], found.afterstates)).value)
        values = np.full(len(values), -np.inf)
        values[rows] = weighed[: len(rows)]
    best = int(values.argmax())
    turn = rules.turn_to(made.state, jax.tree.map(lambda x: x[best], found.afterstates))
    return Judged(float(values[best] - values[place]) * scale, float(values[best]) * scale, turn)
