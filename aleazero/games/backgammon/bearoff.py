"""Bear-off tables: how races end once all checkers of both sides are home, on the host and in compiled programs.

Three tables, computed here once (see `bearoff_build.py`) and then read from files that are mapped into memory:
- two-sided, at most 6 checkers a side: the chance to win under best play of both. **Exact**, to float32.
- one-sided, at most 15 checkers: the distribution of the rolls until all are off, where every roll is played for the
  least mean number of rolls, and
- the distribution of the rolls until the first checker of 15 is off, which decides gammons, played for its least mean.
Where a side has more than 6 checkers, chances come from the one-sided tables. The distributions are exact; that both
sides play so, whatever the other does, is an **assumption**. Against a two-sided table of up to 8 checkers, where one
side has 7 or 8, it costs 0.0009 of winning chance in the mean, 0.005 in one position of a hundred, at most 0.012.
Backgammons cannot happen: the loser is home.

Values before a roll and after it are different types: `BeforeRoll` speaks for the side about to roll, `AfterRoll` for
the side that has rolled and played, which is what networks estimate. Neither passes for the other.
Knows no cube, no contact and no checker outside home.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from aleazero.core.errors import AleaError
from aleazero.core.files import replace_file
from aleazero.core.struct import struct
from aleazero.games.backgammon.bearoff_build import POINTS, ROLLS, WAYS, plays, rank, solve
from aleazero.games.backgammon.board import CHECKERS, HOME, Board, Planes, some

PAIR = 6  # checkers a side in the two-sided table
FORMAT = 1
_MANIFEST = "manifest.json"
_NAMES = ("all_off", "first_off", "two_sided")
_HOME = tuple(range(1, POINTS + 1))  # places of the own points 1 to 6
_THEIR_HOME = tuple(range(24, 24 - POINTS, -1))  # of theirs
_THEIR_HOME_BITS = sum(1 << place for place in _THEIR_HOME)
_OTHER_SIDE = np.array([3, 4, 5, 0, 1, 2])  # single, gammon, backgammon won; then lost
_OUTCOME_POINTS = np.array([1, 2, 3, -1, -2, -3], np.float32)
_log = logging.getLogger(__name__)

Numbers = Array | np.ndarray


class BearoffError(AleaError):
    """Checkers that no bear-off position has, or tables that cannot be used."""


@struct
class BeforeRoll:
    """How the game ends for the side on roll, before its dice are known."""

    on_roll: Numbers  # [..., 6]: chances in the order of the game's outcomes

    def turned(self) -> AfterRoll:
        """The same for the side that has just played."""
        return AfterRoll(self.on_roll[..., _OTHER_SIDE])


@struct
class AfterRoll:
    """How the game ends for the side that has rolled and played; the other side rolls next."""

    moved: Numbers  # [..., 6]: chances in the order of the game's outcomes

    def turned(self) -> BeforeRoll:
        """The same for the side about to roll."""
        return BeforeRoll(self.moved[..., _OTHER_SIDE])


def over_rolls(best: AfterRoll) -> BeforeRoll:
    """The expectation of `[21, ..., 6]`, what the best play of each roll leaves, in the order of the game's rolls."""
    weights = (WAYS / 36).astype(np.float32).reshape(len(ROLLS), *[1] * (best.moved.ndim - 1))
    return BeforeRoll((weights * best.moved).sum(0))


@struct
class Tables:
    """The tables; numpy arrays on the host, JAX arrays in compiled programs."""

    all_off: Numbers  # [54264, N] float32: chance that some checker is still on after n rolls
    first_off: Numbers  # [1 + 15504, N] float32: that all 15 are still on; row 0 where one is off already
    two_sided: Numbers  # [924, 924] float32: chance that the side on roll (row) beats the other (column)


def known_outcomes(tables: Tables, board: Board) -> tuple[Array, AfterRoll]:
    """Whether the tables know how afterstates end, `[...]` bool, and how; zeros where they do not. For use under `jit`.

    `board` is in the places of the side that has just moved; the other side is on roll. Known is every board where
    both sides have all checkers left in their homes: exactly where neither has more than 6, else under the one-sided
    assumption (see the module). A finished game is known, exactly, if the loser's checkers are home.
    """
    away = (some(board.mine) & ~jnp.uint32(HOME)) | (some(board.theirs) & ~jnp.uint32(_THEIR_HOME_BITS))
    known = away == 0
    outcomes = _outcomes(tables, _counts(board.mine, _HOME), _counts(board.theirs, _THEIR_HOME))
    return known, AfterRoll(jnp.where(known[..., None], outcomes, 0.0))


def _counts(planes: Planes, places: tuple[int, ...]) -> Array:
    """`[..., 6]` int32: the checkers on some places."""
    bits = [[((plane >> place) & 1) << i for i, plane in enumerate(planes)] for place in places]
    return jnp.stack([a | b | c | d for a, b, c, d in bits], -1).astype(jnp.int32)


def _outcomes(tables: Tables, moved: Numbers, on_roll: Numbers) -> Numbers:
    """`[..., 6]`: how positions `[..., 6]` end for the side that moved. The same lines serve numpy and JAX."""
    xp = np if isinstance(moved, np.ndarray) else jnp
    me, they = rank(moved), rank(on_roll)
    mine, theirs = tables.all_off[me], tables.all_off[they]
    i_finish, they_finish = _exactly(mine), _exactly(theirs)
    full = len(tables.all_off) - len(tables.first_off)
    my_first, their_first = (tables.first_off[xp.maximum(number - full, 0)] for number in (me, they))
    rolls = my_first.shape[-1]
    # When I finish with my nth roll they have had n; when they finish with theirs, I have had n - 1.
    race = (i_finish * theirs).sum(-1)
    gammon = (i_finish[..., :rolls] * their_first).sum(-1)
    lost_gammon = (they_finish[..., 1 : rolls + 1] * my_first).sum(-1)
    few = len(tables.two_sided)
    exact = 1.0 - tables.two_sided[xp.minimum(they, few - 1), xp.minimum(me, few - 1)]
    win = xp.clip(xp.where((me < few) & (they < few), exact, race), 0.0, 1.0)
    gammon, lost_gammon = xp.minimum(gammon, win), xp.minimum(lost_gammon, 1.0 - win)
    none = xp.zeros_like(win)
    return xp.stack([win - gammon, gammon, none, 1.0 - win - lost_gammon, lost_gammon, none], -1)


def _exactly(still: Numbers) -> Numbers:
    """`[..., N]`: the chances to need exactly n rolls, from those to need more than n."""
    xp = np if isinstance(still, np.ndarray) else jnp
    return xp.concatenate([xp.ones_like(still[..., :1]), still[..., :-1]], -1) - still


@dataclass(frozen=True)
class Bearoff:
    """The tables on the host. Positions are checkers on a side's own points 1 to 6, `[..., 6]`, any leading axes."""

    tables: Tables

    def arrays(self) -> Tables:
        """The tables as JAX arrays, for `known_outcomes`."""
        return jax.tree.map(jnp.asarray, self.tables)

    def one_sided(self, counts: ArrayLike) -> np.ndarray:
        """`[..., N]` float32: the chances to bear off all checkers with exactly n rolls, played for the least mean."""
        return np.asarray(_exactly(np.asarray(self.tables.all_off[rank(_position(counts))])))

    def first_off(self, counts: ArrayLike) -> np.ndarray:
        """`[..., N]` float32: the chances to bear off one of 15 checkers with exactly n rolls; n is 0 if one is off."""
        full = len(self.tables.all_off) - len(self.tables.first_off)
        numbers = np.maximum(rank(_position(counts)) - full, 0)
        return np.asarray(_exactly(np.asarray(self.tables.first_off[numbers])))

    def before_roll(self, on_roll: ArrayLike, waiting: ArrayLike) -> BeforeRoll:
        """How positions end for the side about to roll."""
        return self.after_roll(waiting, on_roll).turned()

    def after_roll(self, moved: ArrayLike, on_roll: ArrayLike) -> AfterRoll:
        """How positions end for the side that has just played, where `on_roll` are the other's checkers."""
        mine, theirs = np.broadcast_arrays(_position(moved), _position(on_roll))
        if ((mine.sum(-1) == 0) & (theirs.sum(-1) == 0)).any():
            raise BearoffError("both sides have borne off all their checkers; one of them must have some left")
        return AfterRoll(np.asarray(_outcomes(self.tables, mine, theirs)))

    def best_play(self, mover: ArrayLike, other: ArrayLike, dice: tuple[int, int]) -> tuple[np.ndarray, AfterRoll]:
        """The play of a roll that brings one position `[6]` the most points: the checkers it leaves, and its value."""
        if len(dice) != 2 or not all(die in range(1, 7) for die in dice):
            raise BearoffError(f"the dice are {dice}; there must be two, each 1 to 6")
        position = _position(mover)
        if position.ndim != 1:
            raise BearoffError(f"best_play takes one position [{POINTS}], not {position.shape}")
        after = plays(position, dice)
        values = self.after_roll(after, other).moved
        best = int((values * _OUTCOME_POINTS).sum(-1).argmax())
        return after[best], AfterRoll(values[best])

    def exact(self, one: ArrayLike, other: ArrayLike) -> np.ndarray:
        """`[...]` bool: whether the two-sided table has the positions, so that no assumption is made."""
        return np.maximum(_position(one).sum(-1), _position(other).sum(-1)) <= PAIR


def _position(counts: ArrayLike) -> np.ndarray:
    """Checkers on the six points as int32; raises with what is wrong."""
    array = np.asarray(counts)
    if array.shape[-1:] != (POINTS,) or array.dtype.kind not in "iu":
        raise BearoffError(f"a bear-off position is whole numbers [..., {POINTS}], not {array.dtype} {array.shape}")
    if array.size and (array.min() < 0 or array.sum(-1).max() > CHECKERS):
        wrong = array.reshape(-1, POINTS)
        worst = wrong[(wrong.min(-1) < 0) | (wrong.sum(-1) > CHECKERS)][0].tolist()
        raise BearoffError(
            f"{worst} is no bear-off position: points hold 0 or more checkers, together at most {CHECKERS}"
        )
    return array.astype(np.int32)


def load(folder: str | os.PathLike[str] | None = None) -> Bearoff:
    """The tables kept in a folder, computed first if they are not there; a damaged file is named and made anew.

    The default is `bearoff-1` under $ALEA_CACHE, else under `aleazero` in $XDG_CACHE_HOME or `~/.cache`; 1 is the
    format. Where nothing can be written the tables stay in memory. Any number of processes may do this at once.
    """
    if folder is None:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aleazero"
        folder = Path(os.environ.get("ALEA_CACHE") or cache) / f"bearoff-{FORMAT}"
    return Bearoff(_tables(Path(folder), CHECKERS, PAIR))


def _tables(folder: Path, checkers: int, pair: int) -> Tables:
    if (folder / _MANIFEST).exists():
        try:
            return _read(folder, checkers, pair)
        except BearoffError as error:
            _log.warning("%s; the tables are computed anew", error)
    _log.info("computing the bear-off tables for %s, which takes some seconds", folder)
    solved = solve(checkers, pair)
    arrays = {name: getattr(solved, name).astype(np.float32) for name in _NAMES}
    try:
        _write(folder, checkers, pair, arrays)
    except OSError as error:
        _log.warning(
            "the bear-off tables cannot be kept in %s (%s): set ALEA_CACHE to a folder that can", folder, error
        )
        return Tables(**arrays)
    return _read(folder, checkers, pair)


def _write(folder: Path, checkers: int, pair: int, arrays: dict[str, np.ndarray]) -> None:
    """Files named by their digests, then the manifest: two writers cannot mix what they wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, array)
        digest = hashlib.sha256(buffer.getvalue()).hexdigest()
        files[name] = {"file": f"{name}-{digest[:16]}.npy", "sha256": digest}
        replace_file(folder / files[name]["file"], buffer.getvalue())
    manifest = {"format": FORMAT, "checkers": checkers, "pair": pair, "files": files}
    replace_file(folder / _MANIFEST, json.dumps(manifest, indent=2).encode())


def _read(folder: Path, checkers: int, pair: int) -> Tables:
    """The tables as memory maps, every byte verified; raises with the file that is not what was written."""
    path = folder / _MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        found = tuple(manifest[key] for key in ("format", "checkers", "pair"))
        if found != (FORMAT, checkers, pair):
            raise BearoffError(f"{path} is of other tables: format, checkers and pair are {found}")
        entries = [(name, manifest["files"][name]["file"], manifest["files"][name]["sha256"]) for name in _NAMES]
        maps = {}
        for name, file, digest in entries:
            path = folder / file
            if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                raise BearoffError(f"{path} is damaged: its sha256 is not the manifest's")
            maps[name] = np.load(path, mmap_mode="r")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BearoffError(f"{path} is damaged: {error!r}") from error
    return Tables(**maps)
