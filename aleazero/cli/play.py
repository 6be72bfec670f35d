"""`alea play`: a game in the terminal, against a player or between two people.

`Session` is the whole conversation over two streams; the rules, the dice and the engine are the ones of matches.
Randomness is named by seed and move, so taking a move back does not change what nature has in store.
"""

from __future__ import annotations

import dataclasses
import functools
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.cli.advice import advice
from aleazero.cli.common import game_of, players_of, seed_problems
from aleazero.core.compilation import keep_compiled_programs
from aleazero.core.errors import GameContractError, NotationError
from aleazero.core.game import Game, outcome_index
from aleazero.core.keys import Role, lane_keys
from aleazero.play.match import Player
from aleazero.play.rollout import draw
from aleazero.players import bundled_folder

LINE = 78
FEW_MOVES = 24  # are listed without being asked for

HELP = """\
a move     in the game's notation, or its number in the list
moves      the legal moves
board      the position again
eval       what the engine thinks of your position
undo       back to your decision before this one
resign     give the game up
quit       leave (as does the end of the input)
help       this list"""


@dataclasses.dataclass(frozen=True)
class Position:
    """Where the game stands: somebody is to play, or it is over."""

    states: Any  # [1]
    move: int  # players' moves so far
    ply: int  # moves so far, nature's included

    @property
    def state(self) -> Any:
        """The one state."""
        return jax.tree.map(lambda x: x[0], self.states)


@dataclasses.dataclass(frozen=True)
class Rules:
    """A game's compiled functions."""

    legal: Callable[[Any], jax.Array]  # of one state
    apply: Callable[[Any, jax.Array], Any]  # of a batch, as matches do it
    draw: Callable[[Any, jax.Array], tuple[Any, jax.Array]]


@functools.cache
def _rules(game: Game) -> Rules:
    return Rules(
        legal=jax.jit(game.legal_list),
        apply=jax.jit(jax.vmap(game.apply_action)),
        draw=jax.jit(functools.partial(draw, game)),
    )


class Session:
    """One game, from the first position to its end."""

    def __init__(
        self, game: Game, engine: Player | None, people: frozenset[int], seed: int, source: IO[str], out: IO[str]
    ) -> None:
        """`people` are the seats that are asked; the engine has the others, and is asked for its opinion."""
        self._game, self._engine, self._people, self._seed = game, engine, people, seed
        self._source, self._out = source, out
        self._notation = game.notation
        self._rules = _rules(game)
        self._decisions: list[Position] = []  # people's, before their moves: what `undo` goes back to
        self._commands: dict[str, Callable[[Position], None]] = {
            "moves": self._list_moves,
            "board": self._show,
            "eval": self._advise,
            "help": lambda _: self._say(HELP),
        }

    def play(self) -> None:
        """Plays until the game is over or somebody leaves."""
        if self._notation.explain():
            self._say(self._notation.explain())
        self._say("Type help for what else you can type.")
        first = jax.vmap(self._game.init)(self._keys(Role.INIT, 0))
        position: Position | None = self._settle(first, 0, 0, Role.OPENING)
        while position is not None and not self._is_over(position):
            seat = int(position.states.to_play[0])
            position = self._ask(position) if seat in self._people else self._reply(position)
        if position is not None:
            self._show(position)
            self._say(self._result(position))

    # ---- moving on

    def _keys(self, role: Role, move: int) -> jax.Array:
        return lane_keys(jnp.uint32(self._seed), role, move, jnp.arange(1))

    def _settle(self, states: Any, move: int, ply: int, role: Role) -> Position:
        """Lets nature move, if it is to, and says what it did."""
        after, drew = self._rules.draw(states, self._keys(role, move))
        outcome = int(drew[0])
        if outcome >= 0:
            before = jax.tree.map(lambda x: x[0], states)
            self._say(f"chance: {self._notation.format_chance(before, outcome)}")
        return Position(after, move, ply + (outcome >= 0))

    def _go(self, position: Position, action: int) -> Position:
        after = self._rules.apply(position.states, jnp.array([action], jnp.int32))
        settled = self._settle(after, position.move, position.ply + 1, Role.CHANCE)
        return dataclasses.replace(settled, move=position.move + 1)

    def _reply(self, position: Position) -> Position:
        assert self._engine is not None
        keys = self._keys(Role.MATCH, position.move)
        action = int(self._engine.choose(position.states, jnp.ones(1, bool), keys)[0])
        names = self._names(position)
        if action not in names:
            raise GameContractError("play", f"player {self._engine.name!r} chose action {action}, which is not legal")
        self._say(f"{self._engine.name} plays {names[action]}")
        return self._go(position, action)

    def _is_over(self, position: Position) -> bool:
        return bool(position.states.terminated[0]) or position.ply >= self._game.spec.max_plies

    # ---- asking

    def _ask(self, position: Position) -> Position | None:
        """The position after a person's move, or an earlier one if it is taken back; None if the game is left."""
        self._show(position)
        names = self._names(position)
        if len(names) <= FEW_MOVES:
            self._list_moves(position)
        else:
            self._say(f"{len(names)} legal moves; type moves to see them")
        while True:
            self._out.write(f"{self._who(position)}> ")
            self._out.flush()
            line = self._source.readline()
            word = line.strip().lower()
            if not line or word in ("quit", "resign"):
                self._say(self._parting(position, word))
                return None
            if word == "undo" and self._decisions:
                self._say("taken back")
                return self._decisions.pop()
            if word == "undo":
                self._say("there is no move of yours to take back")
            elif word in self._commands:
                self._commands[word](position)
            elif word:
                action = self._read_move(position, names, line.strip())
                if action is not None:
                    self._decisions.append(position)
                    return self._go(position, action)

    def _read_move(self, position: Position, names: dict[int, str], text: str) -> int | None:
        """The action a text means; if it means none, says why and returns None."""
        try:
            if text.isdecimal() and _numbered(names):
                if not 1 <= int(text) <= len(names):
                    raise NotationError(f"there is no move {text}: the list goes from 1 to {len(names)}")
                return list(names)[int(text) - 1]
            action = self._notation.parse_action(position.state, text)
            if action not in names:
                raise NotationError(f"move {text!r} is not legal here")
            return action
        except NotationError as error:
            self._say(f"{error}. Type moves for the legal ones, help for what else you can type.")
            return None

    def _names(self, position: Position) -> dict[int, str]:
        """The legal actions with their names, in the order of the list."""
        state = position.state
        actions = [int(action) for action in np.asarray(self._rules.legal(state)) if action >= 0]
        return {action: self._notation.format_action(state, action) for action in actions}

    # ---- saying

    def _say(self, text: str) -> None:
        self._out.write(f"{text}\n")

    def _who(self, position: Position) -> str:
        return "you" if len(self._people) == 1 else f"player {int(position.states.to_play[0]) + 1}"

    def _show(self, position: Position) -> None:
        self._say(f"\n{self._notation.draw(position.state)}")

    def _list_moves(self, position: Position) -> None:
        names = list(self._names(position).values())
        if _numbered(self._names(position)):
            names = [f"{number}: {name}" for number, name in enumerate(names, 1)]
        width = max(len(name) for name in names) + 2
        per_line = max(LINE // width, 1)
        for start in range(0, len(names), per_line):
            self._say("  " + "".join(name.ljust(width) for name in names[start : start + per_line]).rstrip())

    def _advise(self, position: Position) -> None:
        if self._engine is None:
            self._say("two people play, and there is nobody to ask; name a --player to have one")
            return
        keys = self._keys(Role.SEARCH, position.move)
        for line in advice(self._game, self._engine, position.states, keys, self._names(position)):
            self._say(line)

    def _parting(self, position: Position, word: str) -> str:
        if word != "resign":
            return "\nthe game is left unfinished"
        if len(self._people) == 1:
            return "you resign: you lose"
        seat = int(position.states.to_play[0])
        return f"player {seat + 1} resigns: player {2 - seat} wins"

    def _result(self, position: Position) -> str:
        """How the game ended, from the side of the person, or of the first player where there are two."""
        if not bool(position.states.terminated[0]):
            return f"the game is stopped after {position.ply} plies, without a result"
        seat = min(self._people)
        points = float(position.states.returns[0, seat])
        amount = f"{points:+g} points"
        if self._game.spec.outcomes:
            amount = (
                f"{self._game.spec.outcomes[int(outcome_index(self._game.spec, jnp.float32(points)))].name}, {amount}"
            )
        if points == 0:
            return f"a draw ({amount})"
        if len(self._people) == 1:
            return f"you {'win' if points > 0 else 'lose'} ({amount})"
        return f"player {1 if points > 0 else 2} wins ({amount} for player 1)"


def _numbered(names: dict[int, str]) -> bool:
    """Whether moves may be named by their number in the list: not where their own names are numbers."""
    return not any(name.isdecimal() for name in names.values())


def play(
    name: str,
    player: str | None,
    *,
    seat: int,
    seed: int | None,
    runs: Path | None,
    source: IO[str] | None = None,
    out: IO[str] | None = None,
) -> int:
    """Plays a game with whoever is at the terminal."""
    keep_compiled_programs()
    game = game_of(name)
    problems = seed_problems(seed) if seed is not None else []
    if seat > game.spec.num_players:
        problems.append(f"seat is {seat}; {name} has {game.spec.num_players} player")
    out = out or sys.stdout
    if player is None:
        player = "bundled" if bundled_folder(game) else "random"
        if player == "random":
            out.write(f"no network for {name} comes with the package, so random plays; name one with --player\n")
    engines = players_of(game, [] if player == "human" else [player], runs, problems)
    engine = engines[0] if engines else None
    people = frozenset({seat - 1} if engine else range(game.spec.num_players))
    used = secrets.randbits(31) if seed is None else seed
    opponent = engine.name if engine else "two people"
    out.write(f"{name}: {opponent}; seed {used}\n")
    Session(game, engine, people, used, source or sys.stdin, out).play()
    return 0
