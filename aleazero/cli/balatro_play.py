"""`alea play balatro`: a run in the terminal, drawn with rich; `Session` is the whole conversation over two streams."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import IO

import numpy as np
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from aleazero.core.errors import AleaError, ConfigError, NotationError, UnknownName
from aleazero.games.balatro import actions, pages, text
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.layout import P_OVER
from aleazero.games.balatro.saved import SavedRun

HELP = """\
play 1 2 3      play the cards at these places; without places, those that are selected
discard 4 5     discard them
select 9        select or deselect a card: for hands of more than eight, and for consumables
use 1           use a consumable, on the selected cards where it needs any
sell joker 1    or sell consumable 1
buy 1           from the shelf; use it at once with: now 1
voucher 1       buy a voucher
open 1          buy a pack
take 1          a card of the open pack
reroll, leave   in the shop
blind, skip     take a blind on; skip a blind or the rest of a pack
boss            another boss, where a voucher allows it
swap jokers 1   with the joker to its right; or swap cards 1
hint            what our network would do, or whom --player names
moves, undo, help, quit"""
_NUMBERED = {
    "select": actions.A_TOGGLE,
    "deselect": actions.A_TOGGLE,
    "use": actions.A_USE,
    "sell joker": actions.A_SELL_JOKER,
    "sell consumable": actions.A_SELL_CONSUMABLE,
    "swap jokers": actions.A_SWAP_JOKERS,
    "swap cards": actions.A_SWAP_CARDS,
    "buy": actions.A_BUY,
    "now": actions.A_BUY_AND_USE,
    "voucher": actions.A_VOUCHER,
    "open": actions.A_BOOSTER,
    "take": actions.A_CHOOSE,
}
_PLAIN = {
    "play": actions.A_PLAY_SELECTED,
    "discard": actions.A_DISCARD_SELECTED,
    "reroll": actions.A_REROLL,
    "leave": actions.A_LEAVE_SHOP,
    "blind": actions.A_SELECT_BLIND,
    "boss": actions.A_REROLL_BOSS,
}
_COMMANDS = ("hint", "moves", "undo", "help", "quit", "skip")
_LISTED = 60  # actions that `moves` shows


def tell(batch: Batch, action: int) -> list[str]:
    """How the score of a play comes about, line by line; nothing for other actions."""
    if not (action < actions.A_DISCARD or action == actions.A_PLAY_SELECTED):
        return []
    rows, scored = batch.account(0, action)
    return text.account_lines(batch.states[0], scored.states[0], rows)


def show(batch: Batch, out: IO[str]) -> None:
    """Draws the table."""
    grid = Table.grid(padding=(0, 2))
    lines = pages.table_lines(batch.states[0])
    for label, line in lines[1:]:
        words = Text(line)
        words.highlight_regex(r"\S+[♥♦]", "red")
        words.highlight_regex(r"\S+[♠♣]", "cyan")
        grid.add_row(Text(label, style="bold"), words)
    Console(file=out, width=None if out.isatty() else 110).print(Panel(grid, title=lines[0][1], title_align="left"))


def parse(text_line: str, in_pack: bool) -> int:
    """The action that a line means."""
    words = text_line.lower().split()
    numbers = [int(word) for word in words if word.isdecimal()]
    verb = " ".join(word for word in words if not word.isdecimal())
    if verb == "skip":
        return actions.A_SKIP_PACK if in_pack else actions.A_SKIP_BLIND
    if verb in ("play", "discard") and numbers:
        if not all(1 <= n <= 8 for n in numbers) or len(set(numbers)) != len(numbers) or len(numbers) > 5:
            raise NotationError(f"{text_line!r}: name one to five different places from 1 to 8; beyond, select cards")
        bits = sum(1 << (n - 1) for n in numbers)
        first = actions.A_PLAY if verb == "play" else actions.A_DISCARD
        return first + int(np.flatnonzero(bits == actions.SUBSETS)[0])
    if verb in _PLAIN and not numbers:
        return _PLAIN[verb]
    if verb in _NUMBERED and len(numbers) == 1 and numbers[0] >= 1:
        action = _NUMBERED[verb] + numbers[0] - 1
        if text.split(action)[0] != text.split(_NUMBERED[verb])[0]:
            raise NotationError(f"{text_line!r}: there is no place {numbers[0]}")
        return action
    if verb in _NUMBERED:
        raise NotationError(f"{text_line!r}: name one place, as in {verb} 1")
    raise UnknownName("command", verb, [*_NUMBERED, *_PLAIN, *_COMMANDS])


class Session:
    """One run, from its first blind to its end."""

    def __init__(
        self, run: SavedRun, source: IO[str], out: IO[str], advise: Callable[[Batch, int], np.ndarray]
    ) -> None:
        """`advise(batch, move)` is who gives hints."""
        self._start, self._source, self._out, self._advise = run, source, out, advise
        self._batch = run.start()
        self._taken: list[int] = []
        self._before: list[Batch] = []

    def run(self) -> SavedRun:
        """The run as it has been played."""
        return dataclasses.replace(self._start, actions=tuple(self._taken))

    def play(self) -> None:
        """Plays until the run is over or left."""
        self._say("Balatro, unofficial. Type help for what you can type.")
        while int(self._batch.states["phase"][0]) != P_OVER:
            show(self._batch, self._out)
            if not self._ask():
                self._say("the run is left unfinished")
                return
        g = self._batch.states[0]
        self._say(f"the run is {'won' if int(g.won) else 'lost'}: ante {int(g.ante)}, {int(g.beaten)} blinds beaten")

    def _ask(self) -> bool:
        """Takes lines until one moves the run; False where it is left."""
        while True:
            self._out.write("> ")
            self._out.flush()
            line = self._source.readline()
            word = line.strip().lower()
            if not line or word == "quit":
                return False
            if word == "help":
                self._say(HELP)
            elif word == "moves":
                self._moves()
            elif word == "hint":
                self._say(text.describe(self._batch.states[0], self._advised()))
            elif word == "undo":
                if self._before:
                    self._batch = self._before.pop()
                    self._taken.pop()
                    return True
                self._say("there is nothing to take back")
            elif word and self._take(line.strip()):
                return True

    def _take(self, line: str) -> bool:
        g = self._batch.states[0]
        try:
            action = parse(line, text.PHASES[int(g.phase)] == "a pack is open")
            if not self._batch.masks[0, action]:
                raise ConfigError(f"{actions.action_name(action)} is not legal: {text.why_not(g, action)}")
        except AleaError as error:
            self._say(str(error))
            return False
        for row in tell(self._batch, action):
            self._say(f"    {row}")
        self._before.append(self._batch.copy())
        self._batch.step(np.array([action]))
        self._taken.append(action)
        return True

    def _advised(self) -> int:
        return int(self._advise(self._batch, len(self._taken))[0])

    def _moves(self) -> None:
        legal = np.flatnonzero(self._batch.masks[0])
        single = [int(a) for a in legal if a >= actions.A_TOGGLE]
        for action in single[:_LISTED]:
            self._say(f"  {text.describe(self._batch.states[0], action)}")
        if len(single) < len(legal):
            self._say(f"  and {len(legal) - len(single)} ways to play or discard cards")

    def _say(self, line: str) -> None:
        self._out.write(f"{line}\n")
