"""`alea play`: a game in the terminal, against a player or between two people.

`Session` is the whole conversation over two streams; the rules, the dice and the engine are the ones of matches.
Randomness is named by seed and move, so taking a move back does not change what nature has in store. Where a game has
whole turns, a move is a turn: people may type it at once or a part at a time.
"""

from __future__ import annotations

import dataclasses
import functools
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.advice import advice
from aleazero.cli.common import game_of, players_of, seed_problems
from aleazero.cli.written import Turn, Written, place_problems, write_game
from aleazero.core.compilation import set_up_compiling
from aleazero.core.errors import NotationError
from aleazero.core.game import Game, outcome_index
from aleazero.core.keys import Role, lane_keys
from aleazero.play.rollout import draw
from aleazero.players import AnyPlayer, bundled_folder, whole_turn

LINE = 78
FEW_MOVES = 24  # are listed without being asked for

HELP = """\
a move     in the game's notation, or its number in the list
moves      the legal moves
board      the position again
eval       what the engine thinks of your position
undo       back to your decision before this one; within a turn, to its beginning
resign     give the game up
quit       leave (as does the end of the input)
help       this list"""


@dataclasses.dataclass(frozen=True)
class Position:
    """Where the game stands: somebody is to play, or it is over."""

    states: Any  # [1]
    move: int  # players' moves so far
    ply: int  # moves so far, nature's included
    begun: Turn | None = None  # the turn in the middle of which it is

    @property
    def state(self) -> Any:
        """The one state."""
        return _only(self.states)


Choices = list[tuple[str, list[int]]]  # moves: their names and actions


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
        self,
        game: Game,
        engine: AnyPlayer | None,
        people: frozenset[int],
        seed: int,
        source: IO[str],
        out: IO[str],
        start: Any = None,
    ) -> None:
        """`people` are the seats that are asked; the engine has the others, and is asked for its opinion.

        `start` is a decision state to begin at, in place of a first one.
        """
        self._start = start
        self.turns: list[Turn] = []  # that were played, whole ones
        self.winner: int | None = None  # a seat, also where the other one resigned
        self.points = 0.0  # the winner's; 1 where the other one resigned
        self.resigned = False
        self._game, self._engine, self._people, self._seed = game, engine, people, seed
        self._source, self._out = source, out
        self._notation = game.notation
        self._rules = _rules(game)
        self._decisions: list[Position] = []  # people's, before their moves: what `undo` goes back to
        self._listed: tuple[Position, Choices] | None = None  # of the position last asked for
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
        if self._start is None:
            first = jax.vmap(self._game.init)(self._keys(Role.INIT, 0))
        else:
            first = jax.tree.map(lambda x: jnp.asarray(x)[None], self._start)
        position: Position | None = self._settle(first, 0, 0, Role.OPENING)
        while position is not None and not self._is_over(position):
            position = self._step(position)
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
            self._say(f"chance: {self._notation.format_chance(_only(states), outcome)}")
        return Position(after, move, ply + (outcome >= 0))

    def _step(self, position: Position) -> Position | None:
        """The position after the next move, or an earlier one if a person goes back; None if the game is left."""
        person = int(position.states.to_play[0]) in self._people
        if forced := self._forced(position):
            if person:
                self._show(position)
            self._say(f"{self._who(position)} cannot move: {self._name(position, forced)}")
            return self._go(position, forced)
        if person:
            return self._ask(position)
        assert self._engine is not None
        actions = whole_turn(self._game, self._engine, position.states, self._keys(Role.MATCH, position.move))
        self._say(f"{self._engine.name} plays {self._name(position, actions)}")
        return self._go(position, actions)

    def _go(self, position: Position, actions: Sequence[int]) -> Position:
        """The position after actions; if they end the turn, after nature's answer."""
        begun = position.begun or Turn(position.state, ())
        turn = Turn(begun.state, (*begun.actions, *actions))
        states = position.states
        for action in actions:
            states = self._rules.apply(states, jnp.array([action], jnp.int32))
        if self._game.plays is not None and not _has_ended(states, turn.state):
            return dataclasses.replace(position, states=states, begun=turn)
        self.turns.append(turn)
        settled = self._settle(states, position.move, position.ply + 1, Role.CHANCE)
        return dataclasses.replace(settled, move=position.move + 1)

    def _back(self) -> Position:
        """The decision before this one."""
        position = self._decisions.pop()
        del self.turns[position.move :]
        return position

    def _forced(self, position: Position) -> list[int]:
        """The one action there is where it is to pass."""
        names = self._names(position)
        return list(names) if list(names.values()) == ["pass"] else []

    def _is_over(self, position: Position) -> bool:
        return bool(position.states.terminated[0]) or position.ply >= self._game.spec.max_plies

    # ---- asking

    def _ask(self, position: Position) -> Position | None:
        """The position after a person's move, or an earlier one if it is taken back; None if the game is left."""
        self._show(position)
        choices = self._choices(position)
        if len(choices) <= FEW_MOVES:
            self._list_moves(position)
        else:
            self._say(f"{len(choices)} legal moves; type moves to see them")
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
                return self._back()
            if word == "undo":
                self._say("there is no move of yours to take back")
            elif word in self._commands:
                self._commands[word](position)
            elif word:
                actions = self._read_move(position, choices, line.strip())
                if actions:
                    if position.begun is None:
                        self._decisions.append(position)
                    return self._go(position, actions)

    def _read_move(self, position: Position, choices: Choices, text: str) -> list[int]:
        """The actions a text means; if it means none, says why and returns none."""
        try:
            if text.isdecimal() and _numbered(choices):
                if not 1 <= int(text) <= len(choices):
                    raise NotationError(f"there is no move {text}: the list goes from 1 to {len(choices)}")
                return choices[int(text) - 1][1]
            actions = self._notation.parse_moves(position.state, text)
            if actions[0] not in self._names(position):
                raise NotationError(f"move {text!r} is not legal here")
            return actions
        except NotationError as error:
            self._say(f"{error}. Type moves for the legal ones, help for what else you can type.")
            return []

    def _choices(self, position: Position) -> Choices:
        """What is listed: whole turns where people write them and they are few, else the legal actions."""
        if self._listed is None or self._listed[0] is not position:
            turns = [actions for actions, _ in self._notation.turns(position.state)]
            if not 0 < len(turns) <= FEW_MOVES:
                turns = [[action] for action in self._names(position)]
            self._listed = position, [(self._name(position, turn), turn) for turn in turns]
        return self._listed[1]

    def _name(self, position: Position, actions: list[int]) -> str:
        return self._notation.format_turn(position.state, actions)

    def _names(self, position: Position) -> dict[int, str]:
        """The legal actions with their names, in the order of the list."""
        state = position.state
        actions = [int(action) for action in np.asarray(self._rules.legal(state)) if action >= 0]
        return {action: self._notation.format_action(state, action) for action in actions}

    # ---- saying

    def _say(self, text: str) -> None:
        self._out.write(f"{text}\n")

    def _who(self, position: Position) -> str:
        seat = int(position.states.to_play[0])
        if self._engine is not None and seat not in self._people:
            return self._engine.name
        return "you" if len(self._people) == 1 else f"player {seat + 1}"

    def _show(self, position: Position) -> None:
        self._say(f"\n{self._notation.draw(position.state)}")

    def _list_moves(self, position: Position) -> None:
        choices = self._choices(position)
        names = [name for name, _ in choices]
        if _numbered(choices):
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
        seat = int(position.states.to_play[0])
        self.winner, self.points, self.resigned = 1 - seat, 1.0, True
        if len(self._people) == 1:
            return "you resign: you lose"
        return f"player {seat + 1} resigns: player {2 - seat} wins"

    def _result(self, position: Position) -> str:
        """How the game ended, from the side of the person, or of the first player where there are two."""
        if not bool(position.states.terminated[0]):
            return f"the game is stopped after {position.ply} plies, without a result"
        seat = min(self._people)
        points = float(position.states.returns[0, seat])
        if points:
            self.winner, self.points = seat if points > 0 else 1 - seat, abs(points)
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


def _only(states: Any) -> Any:
    return jax.tree.map(lambda x: x[0], states)


def _has_ended(states: Any, start: Any) -> bool:
    """Whether the turn that began in a state is over in states `[1]`."""
    here = _only(states)
    return bool(here.is_chance) or bool(here.terminated) or int(here.to_play) != int(start.to_play)


def _numbered(choices: Choices) -> bool:
    """Whether moves may be named by their number in the list: not where their own names are numbers."""
    return not any(name.isdecimal() for name, _ in choices)


def play(
    name: str,
    player: str | None,
    *,
    seat: int,
    seed: int | None,
    save: Path | None,
    runs: Path | None,
    position: str | None = None,
    source: IO[str] | None = None,
    out: IO[str] | None = None,
) -> int:
    """Plays a game with whoever is at the terminal."""
    set_up_compiling()
    game = game_of(name)
    problems = seed_problems(seed) if seed is not None else []
    if seat > game.spec.num_players:
        problems.append(f"seat is {seat}; {name} has {game.spec.num_players} player")
    if save is not None:
        problems += place_problems(save, name)
    start = _parse_start(game, position, problems)
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
    session = Session(game, engine, people, used, source or sys.stdin, out, start)
    try:
        session.play()
    finally:
        if save is not None:
            names = [engine.name if engine and who not in people else f"player {who + 1}" for who in range(2)]
            written = Written((names[0], names[1]), session.turns, session.winner, session.points, session.resigned)
            write_game(save, game, written)
            out.write(f"written to {save}\n")
    return 0


def _parse_start(game: Game, text: str | None, problems: list[str]) -> Any:
    """The state to begin at; what is wrong with it is added to `problems`."""
    if text is None:
        return None
    try:
        start = game.notation.parse_state(text)
    except NotationError as error:
        problems.append(str(error))
        return None
    if bool(start.terminated):
        problems.append(f"position {text!r}: the game is over there")
    return start
