"""The engine: batches of games, started, stepped, masked and checked by compiled loops, on one thread or several.

One game is a batch of one. Every loop goes over a range of lanes and holds no lock, so that threads share a batch out.
Steps change the batch in place; `Batch.copy` keeps what was.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from aleazero.core.errors import AleaError, ConfigError
from aleazero.games.balatro import account, actions, dealing, facts, keys, rng, rounds, run
from aleazero.games.balatro.cards import shuffle_deck
from aleazero.games.balatro.conservation import broken_step
from aleazero.games.balatro.invariants import broken_law
from aleazero.games.balatro.jit import entry
from aleazero.games.balatro.layout import (
    ERR_ACTION,
    ERR_CARDS,
    ERR_CONSUMABLES,
    ERR_HAND,
    ERR_JOKERS,
    ERR_STREAMS,
    ERR_TAGS,
    MAX_HAND,
    P_OVER,
    RECORD,
    new_batch,
)

_REASONS = {
    ERR_CARDS: "more playing cards than the record has room for",
    ERR_JOKERS: "more jokers than the record has room for",
    ERR_CONSUMABLES: "more consumables than the record has room for",
    ERR_STREAMS: "more random streams than the record has room for",
    ERR_TAGS: "more tags than the record has room for",
    ERR_HAND: "a larger hand than the record has room for",
    ERR_ACTION: "the action was not legal",
}


LAST_ANTE = 12  # that is simulated
_CHARACTERS = frozenset(rng.ALPHABET)


class EngineError(AleaError):
    """A game went beyond what a record holds, or was given an action that is not legal."""


@entry
def _start(
    states: Any,
    masks: Any,
    over: Any,
    lanes: Any,
    blank: Any,
    seeds: Any,
    lengths: Any,
    rules: Any,
    low: int,
    high: int,
) -> None:
    """New runs in some lanes, over whatever was there; `rules` are deck, stake and last ante."""
    for i in range(low, high):
        b = int(lanes[i])
        states[b] = blank[0]
        g = states[b]
        run.start(g, seeds[i], int(lengths[i]), int(rules[0]), int(rules[1]))
        g.last_ante = rules[2]
        actions.legal_mask(g, masks[b])
        over[b] = int(g.phase) == P_OVER


@entry
def _step(states: Any, chosen: Any, moving: Any, masks: Any, over: Any, low: int, high: int) -> int:
    """Steps lanes and leaves their new masks; a lane whose action is not legal keeps its state and gets an error.

    The first lane in which something has gone wrong now, or -1.
    """
    wrong = -1
    for b in range(low, high):
        g = states[b]
        if moving[b] and int(g.phase) != P_OVER:
            before = int(g.error)
            if masks[b, chosen[b]]:
                actions.apply(g, int(chosen[b]))
            else:
                g.error = ERR_ACTION
            actions.legal_mask(g, masks[b])
            over[b] = int(g.phase) == P_OVER
            if wrong < 0 and before == 0 and int(g.error) != 0:
                wrong = b
    return wrong


@entry
def _masks(states: Any, masks: Any, over: Any, low: int, high: int) -> None:
    for b in range(low, high):
        actions.legal_mask(states[b], masks[b])
        over[b] = int(states[b].phase) == P_OVER


@entry
def _reseed(states: Any, seeds: Any, low: int, high: int) -> None:
    for b in range(low, high):
        g = states[b]
        rng.set_seed(g, seeds[b], 8)
        dealing.hide_anew(g)
        shuffle_deck(g, keys.K_SHUFFLE)


@entry
def _random(masks: Any, words: Any, chosen: Any, moving: Any, low: int, high: int) -> None:
    """A legal action for every lane that has one, drawn with the lane's own word; `moving` says which have."""
    for b in range(low, high):
        count = 0
        for a in range(actions.A_END):
            if masks[b, a]:
                count += 1
        moving[b] = count > 0
        if count == 0:
            continue
        words[b] = (words[b] * np.int64(48271)) % np.int64(2147483647)
        target = words[b] % count
        for a in range(actions.A_END):
            if masks[b, a]:
                if target == 0:
                    chosen[b] = a
                    break
                target -= 1


@entry
def _laws(before: Any, states: Any, chosen: Any, moving: Any, laws: Any, low: int, high: int) -> None:
    """The first law that each lane has broken, by its state or by the step to it, kept once there is one."""
    for b in range(low, high):
        if moving[b] and laws[b] == 0:
            laws[b] = broken_law(states[b])
            if laws[b] == 0:
                laws[b] = broken_step(before[b], states[b], int(chosen[b]))


@entry
def _account(states: Any, bits: int, log: Any) -> None:
    g = states[0]
    rounds.lay_and_score(g, bits | actions.forced_bits(g), np.zeros(MAX_HAND, np.int64), log)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="balatro")


def spread(function: Callable[..., Any], count: int, threads: int, *arguments: Any) -> list[Any]:
    """Calls `function(*arguments, low, high)` over ranges of lanes, on so many threads."""
    parts = min(threads, max(1, count))
    edges = [count * i // parts for i in range(parts + 1)]
    if parts == 1:
        return [function(*arguments, 0, count)]
    if not getattr(function, "signatures", True):  # compiled here: the stack of a thread may be too small for it
        function(*arguments, 0, 0)
    jobs = [_pool(threads).submit(function, *arguments, low, high) for low, high in itertools.pairwise(edges)]
    return [job.result() for job in jobs]


def random_words(count: int, seed: int) -> np.ndarray:
    """The words that random play begins with, one a game, `[count]` int64."""
    return (np.arange(count, dtype=np.int64) * 7919 + seed * 104729) % 2147483646 + 1


def seed_text(number: int) -> str:
    """The eight characters of a number, as seeds are written."""
    letters = ""
    for _ in range(8):
        number, place = divmod(number, len(rng.ALPHABET))
        letters += rng.ALPHABET[place]
    return letters


def seed_rows(numbers: np.ndarray) -> np.ndarray:
    """The same of many numbers `[n]`, as characters' codes `[n, 8]`."""
    alphabet = np.frombuffer(rng.ALPHABET.encode(), np.uint8).astype(np.int64)
    base = np.uint64(len(alphabet))
    left = np.asarray(numbers, np.uint64)
    rows = np.zeros((len(left), 8), np.int64)
    for place in range(8):
        rows[:, place] = alphabet[(left % base).astype(np.int64)]
        left = left // base
    return rows


def _letters(seeds: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The characters of seeds `[n, 8]`, and how many each has `[n]`, all at once where all are well written."""
    rows = np.zeros((len(seeds), 8), np.int64)
    joined = "".join(seeds) if all(isinstance(seed, str) for seed in seeds) else ""
    if len(joined) == 8 * len(seeds) and set(joined) <= _CHARACTERS and all(len(seed) == 8 for seed in seeds):
        rows[:] = np.frombuffer(joined.encode(), np.uint8).reshape(-1, 8)
        return rows, np.full(len(seeds), 8, np.int64)
    texts = [rng.check_seed(seed) for seed in seeds]
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = list(text.encode())
    return rows, np.array([len(text) for text in texts], np.int64)


class Batch:
    """Games that are played together."""

    def __init__(self, states: np.recarray, threads: int = 1) -> None:
        self._hold(states, threads)
        spread(_masks, len(states), threads, states, self.masks, self.over)

    def _hold(self, states: np.recarray, threads: int) -> None:
        if threads < 1:
            raise ConfigError(f"threads is {threads}; at least 1 is needed")
        self.states, self.threads = states, threads  # [B] records
        self.masks = np.zeros((len(states), actions.NUM_ACTIONS), np.bool_)  # [B, 1000]: what is legal
        self.over = np.zeros(len(states), np.bool_)  # [B]: the run has ended
        self._stopped = states["error"] != 0  # [B]: with an error that was told

    @classmethod
    def start(
        cls, seeds: Sequence[str], deck: str = "Red Deck", stake: str = "White", last_ante: int = 8, threads: int = 1
    ) -> Batch:
        """New runs of these seeds; `last_ante` 8 ends a run when it is won, up to 12 goes on."""
        batch = cls._bare(new_batch(len(seeds)), threads)
        batch.restart(np.arange(len(seeds)), seeds, deck, stake, last_ante)
        return batch

    @classmethod
    def _bare(cls, states: np.recarray, threads: int) -> Batch:
        """With masks that somebody else fills in."""
        batch = cls.__new__(cls)
        batch._hold(states, threads)
        return batch

    def restart(
        self,
        lanes: np.ndarray,
        seeds: Sequence[str],
        deck: str = "Red Deck",
        stake: str = "White",
        last_ante: int = 8,
    ) -> None:
        """New runs of these seeds in lanes `[n]`, whatever was played there."""
        if not 1 <= last_ante <= LAST_ANTE:
            raise ConfigError(f"last_ante is {last_ante}; it must be in 1..{LAST_ANTE}")
        rows, lengths = _letters(seeds)
        rules = np.array([facts.number("decks", deck), facts.number("stakes", stake) + 1, last_ante], np.int64)
        places = np.asarray(lanes, np.int64)
        self._stopped[places] = False
        given = self.states, self.masks, self.over, places, new_batch(1), rows, lengths, rules
        spread(_start, len(places), self.threads, *given)

    def __len__(self) -> int:
        return len(self.states)

    def step(self, chosen: np.ndarray, moving: np.ndarray | None = None) -> None:
        """Plays one action `[B]` in every game, or in those that `moving` `[B]` names; finished games stay."""
        stopped = self.try_step(chosen, moving)
        if len(stopped):
            lane = int(stopped[0])
            action = int(np.asarray(chosen)[lane])
            raise EngineError(f"game {lane}, action {action} ({actions.action_name(action)}): {self.why(lane)}")

    def try_step(self, chosen: np.ndarray, moving: np.ndarray | None = None) -> np.ndarray:
        """The same; the games `[n]` that stopped at it with an error, which `why` says, instead of raising it."""
        found = np.asarray(chosen)
        lanes = np.ones(len(self), np.bool_) if moving is None else np.asarray(moving)
        if found.shape != (len(self),) or found.dtype.kind not in "iu" or lanes.shape != (len(self),):
            raise EngineError(
                f"actions of shape {found.shape} and type {found.dtype}, moving of shape {lanes.shape}; "
                f"both are one for each of {len(self)} games, and actions are integers"
            )
        beyond = lanes & ~self.over & ((found < 0) | (found >= actions.NUM_ACTIONS))
        if beyond.any():
            lane = int(np.flatnonzero(beyond)[0])
            raise EngineError(f"game {lane}: action {int(found[lane])}; actions are 0 to {actions.NUM_ACTIONS - 1}")
        given = self.states, found.astype(np.int64), lanes.astype(np.bool_), self.masks, self.over
        first = [lane for lane in spread(_step, len(self), self.threads, *given) if lane >= 0]
        if not first:
            return np.zeros(0, np.int64)
        self._stopped[first] = False  # whatever lay there before, it has stopped now
        stopped = np.flatnonzero((self.states["error"] != 0) & ~self._stopped)
        self._stopped[stopped] = True
        return stopped

    def why(self, lane: int) -> str:
        """Why a game stopped; nothing where it did not."""
        return _REASONS.get(int(self.states["error"][lane]), "")

    def random_actions(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A legal action of each game `[B]`, and which games still have one `[B]`; `words` `[B]` are moved on."""
        chosen, moving = np.zeros(len(self), np.int64), np.zeros(len(self), np.bool_)
        spread(_random, len(self), self.threads, self.masks, words, chosen, moving)
        return chosen, moving

    def wander(self, steps: int, seed: int = 1, charmed: bool = False) -> tuple[int, np.ndarray]:
        """Random legal play; the decisions made, and for each game the first law that was broken (0 none).

        A charmed player wins every hand and never lacks money: random play then sees late antes too. Games that need
        more room than a record has stop with their `error` set.
        """
        words = random_words(len(self), seed)
        laws = np.zeros(len(self), np.int64)
        made = 0
        for _ in range(steps):
            chosen, moving = self.random_actions(words)
            if not moving.any():
                break
            if charmed:
                target, money = self.states["target"], self.states["money"]
                np.minimum(target, 1.0, out=target, where=moving)
                np.maximum(money, 10, out=money, where=moving)
            before = self.states.copy()
            spread(_step, len(self), self.threads, self.states, chosen, moving, self.masks, self.over)
            spread(_laws, len(self), self.threads, before, self.states, chosen, moving, laws)
            made += int(moving.sum())
        return made, laws

    def copy(self) -> Batch:
        """The same games, to be changed apart."""
        other = Batch._bare(self.states.copy().view(np.recarray), self.threads)
        other.masks[:], other.over[:] = self.masks, self.over
        return other

    def take(self, lanes: np.ndarray) -> Batch:
        """Copies of the games of these lanes `[n]`, each as often as it is named."""
        other = Batch._bare(self.states[lanes].view(np.recarray), self.threads)
        other.masks[:], other.over[:] = self.masks[lanes], self.over[lanes]
        return other

    def put(self, lanes: np.ndarray, other: Batch) -> None:
        """Another batch's games in lanes `[n]`, whatever was played there."""
        self.states[lanes], self.masks[lanes], self.over[lanes] = other.states, other.masks, other.over

    def reseed(self, numbers: np.ndarray) -> None:
        """Fresh random streams `[B]`, the draw pile shuffled anew, its cards and those that lie face down exchanged:
        nothing that is not seen stays known."""
        spread(_reseed, len(self), self.threads, self.states, seed_rows(numbers))

    def account(self, lane: int, action: int) -> tuple[np.ndarray, Batch]:
        """How the score of a legal play comes about: lines `[n, 5]` (`account`), and the scored game `[1]`.

        Tried on a copy with the game's own streams: the real play scores the same.
        """
        states = self.states[lane : lane + 1].copy().view(np.recarray)
        if not self.masks[lane, action] or not (action < actions.A_DISCARD or action == actions.A_PLAY_SELECTED):
            raise EngineError(f"action {action} ({actions.action_name(action)}) plays no hand here")
        bits = int(actions.SUBSETS[action]) if action < actions.A_DISCARD else int(states["selected"][0])
        log = np.zeros((account.LINES, 5))
        _account(states, bits, log)
        return log[1 : 1 + int(log[0, 0])], Batch._bare(states, 1)

    def snapshot(self) -> list[bytes]:
        """Each game as bytes, random streams included."""
        return [row.tobytes() for row in self.states]

    @classmethod
    def restore(cls, rows: Sequence[bytes], threads: int = 1) -> Batch:
        """The games that `snapshot` saved."""
        return cls(np.frombuffer(b"".join(rows), RECORD).copy().view(np.recarray), threads)


def cores() -> int:
    """How many threads this machine runs at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def replay(seed: str, moves: Sequence[int], deck: str = "Red Deck", stake: str = "White", last_ante: int = 8) -> Batch:
    """The game that a seed and its actions lead to."""
    batch = Batch.start([seed], deck, stake, last_ante)
    for move in moves:
        batch.step(np.array([move]))
    return batch
