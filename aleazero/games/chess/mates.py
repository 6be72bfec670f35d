"""Positions in which mate in one or two can be forced, found by random play and proved by looking at everything.

A problem is kept with all its keys: every first move that forces the mate. Mate in two means that no move mates at
once, and that after a key every reply is answered by mate. The proofs use the rules of this package alone, a batch of
positions at a time; what they say does not depend on the batch. `write_epd` writes them with `bm`, as suites of tests
of engines are written. Knows no network and no search.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.core.errors import ConfigError
from aleazero.core.keys import mix
from aleazero.core.struct import replace
from aleazero.games.chess.compiled import compiled
from aleazero.games.chess.game import Chess

LONGEST = 2
_LANES = 64  # games played side by side
_CHUNK = 256  # positions looked at side by side
_LONG = 300  # plies after which a game begins anew
_PATIENCE = 400  # rounds of play without a new problem before giving up


@dataclasses.dataclass(frozen=True)
class Problem:
    """A position and every move that mates in the least number of moves."""

    fen: str
    moves: int  # until mate, of the side to move
    keys: tuple[str, ...]  # in SAN, as listed by the rules
    to_play: int  # 0 White, 1 Black

    @property
    def epd(self) -> str:
        """One line: the first four fields of the FEN, best moves, the number of moves to mate."""
        return f"{' '.join(self.fen.split()[:4])} bm {' '.join(self.keys)}; dm {self.moves};"


class Prover:
    """Looks at everything, with the rules compiled once."""

    def __init__(self, game: Chess) -> None:
        self.game = game

        def listed(row: Any) -> Any:
            return game.legal_list(game.unpack(row))

        def moved(row: Any, action: Any) -> Any:
            after = game.apply_action(game.unpack(row), action)
            return game.pack(after), after.terminated, after.terminated & (after.returns != 0).any()

        def played(row: Any, word: Any) -> Any:
            state = game.unpack(row)
            legal = game.legal_list(state)
            lots = mix(word, jnp.arange(legal.shape[0], dtype=jnp.uint32))
            action = legal[jnp.argmax(jnp.where(legal >= 0, lots >> 1, 0))].astype(jnp.int32)
            after = game.apply_action(state, action)
            fresh = replace(after, clock=jnp.int32(0), number=jnp.int32(1), repeats=jnp.int32(0))
            return game.pack(fresh), after.terminated

        self.play = jax.jit(jax.vmap(played))  # one random move of packed positions `[n, P]`, from words `[n]`
        self._listed = jax.jit(jax.vmap(listed))
        self._moved = jax.jit(jax.vmap(moved))

    def replies(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Every move from packed positions `[n, P]`: whose, the action, the position after, is it over, is it mate."""
        (legal,) = _in_chunks(self._listed, rows)
        owners, places = np.nonzero(legal >= 0)
        chosen = legal[owners, places].astype(np.int32)
        after, over, mate = _in_chunks(self._moved, rows[owners], chosen)
        return owners, chosen, after, over, mate

    def mates_in_one(self, rows: np.ndarray) -> list[list[int]]:
        """The actions that mate at once, of each position `[n, P]`."""
        owners, chosen, _, _, mate = self.replies(rows)
        return _grouped(len(rows), owners[mate], chosen[mate])

    def mates_in_two(self, rows: np.ndarray) -> list[list[int]]:
        """The first moves that force mate by the second, of positions `[n, P]` that have no mate in one."""
        owners, chosen, after, over, _ = self.replies(rows)
        live = np.flatnonzero(~over)  # first moves that nothing refutes so far
        tried, _, answers, ended, _ = self.replies(after[live])
        refuted = np.zeros(len(live), bool)
        refuted[tried[ended]] = True  # the other side mates, or draws
        firsts, numbers = np.searchsorted(tried, np.arange(len(live))), np.bincount(tried, minlength=len(live))
        for turn in range(int(numbers.max(initial=0))):  # one reply at a time: most moves fail at the first
            asked = np.flatnonzero(~refuted & (numbers > turn))
            mates = self.mates_in_one(answers[firsts[asked] + turn])
            refuted[asked] = [not keys for keys in mates]
        good = live[~refuted]
        return _grouped(len(rows), owners[good], chosen[good])


def generate(game: Chess, moves: int, count: int, seed: int = 0) -> list[Problem]:
    """`count` different problems of mate in `moves` (1 or 2), half with White to move and half with Black.

    The same seed gives the same problems. Positions have no past and a fresh fifty-move clock.
    """
    if moves not in range(1, LONGEST + 1):
        raise ConfigError(f"moves is {moves}; mates in 1 to {LONGEST} can be proved")
    if count < 1:
        raise ConfigError(f"count is {count}; it must be at least 1")
    rules, found, patience = prover(game), dict[str, Problem](), 0
    wanted = {0: (count + 1) // 2, 1: count // 2}
    for rows in played(game, seed):
        before = len(found)
        for problem in _problems(game, rules, rows, moves):
            if wanted[problem.to_play] and problem.fen not in found:
                found[problem.fen] = problem
                wanted[problem.to_play] -= 1
        patience = patience + 1 if len(found) == before else 0
        if not any(wanted.values()):
            break
        if patience == _PATIENCE:
            raise ConfigError(
                f"random play finds no more than {len(found)} mates in {moves}; ask for fewer than {count}"
            )
    return list(found.values())


@functools.cache
def prover(game: Chess) -> Prover:
    """A game's prover; the same each time, so that it is compiled once."""
    return Prover(game)


def write_epd(path: Path, problems: Sequence[Problem]) -> None:
    """One problem a line."""
    path.write_text("".join(f"{problem.epd}\n" for problem in problems), "utf-8")


def _problems(game: Chess, rules: Prover, rows: np.ndarray, moves: int) -> Iterator[Problem]:
    """The problems among positions `[n, P]`."""
    at_once = rules.mates_in_one(rows)
    keys = at_once
    if moves == LONGEST:
        hard = np.array([number for number, mates in enumerate(at_once) if not mates], int)
        keys = [[] for _ in rows]
        if hard.size:
            for number, found in zip(hard, rules.mates_in_two(rows[hard]), strict=True):
                keys[number] = found
    for row, actions in zip(rows, keys, strict=True):
        if actions:
            state = compiled(game, "unpack")(row)
            notation = game.notation
            names = tuple(notation.format_action(state, action) for action in actions)
            yield Problem(notation.format_state(state), moves, names, int(state.to_play))


def played(game: Chess, seed: int) -> Iterator[np.ndarray]:
    """Positions of random games, packed, a batch at a time; a game that ends begins anew."""
    rules = prover(game)
    start = np.asarray(jax.jit(lambda: game.pack(game.init(jax.random.key(0))))())
    rows = np.repeat(start[None], _LANES, 0)

    words = mix(jnp.uint32(seed), jnp.arange(_LANES, dtype=jnp.uint32))
    ages, number = np.arange(_LANES) % 64, 0
    while True:
        number += 1
        packed, over = rules.play(rows, mix(words, jnp.uint32(number)))
        ages += 1
        stop = np.asarray(over) | (ages > _LONG)
        rows = np.where(stop[:, None], start[None], np.asarray(packed))
        ages = np.where(stop, 0, ages)
        if number % 3 == 0:  # neighbours in one game are much alike; an odd number, so that both sides get to move
            yield rows


def _grouped(number: int, owners: np.ndarray, chosen: np.ndarray) -> list[list[int]]:
    groups: list[list[int]] = [[] for _ in range(number)]
    for owner, action in zip(owners.tolist(), chosen.tolist(), strict=True):
        groups[owner].append(action)
    return groups


def _in_chunks(program: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    """A batch function of one size over arrays `[n, ...]` of any length; its results, as long."""
    parts: list[list[np.ndarray]] = []
    total = len(arrays[0])
    for at in range(0, max(total, 1), _CHUNK):
        chunk = [np.resize(array[at : at + _CHUNK], (_CHUNK, *array.shape[1:])) for array in arrays]
        out = program(*chunk)
        results = out if isinstance(out, tuple) else (out,)
        parts.append([np.asarray(result)[: total - at] for result in results])
    return [np.concatenate(column) for column in zip(*parts, strict=True)]
