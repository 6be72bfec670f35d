"""What a slab from elsewhere must be: its schema, the ways in which it can be refused, and the checks of its contents.

A slab is T moves of b games from one source: a `Trajectory` as a dictionary of numpy arrays, every field `[T, b, ...]`.
Nothing is believed: a slab that passes has the right shapes and numbers that honest self-play could have written.
Whether its moves are legal, `aleazero.runtimes.legal` looks at. Knows neither bytes nor networks.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from aleazero.core.errors import AleaError
from aleazero.core.game import GameSpec
from aleazero.core.records import Trajectory

Slab = Mapping[str, np.ndarray]  # field -> [T, b, ...]

Reason = Literal[
    "size",  # more or fewer bytes than any slab of this schema has
    "malformed",  # not a slab at all
    "protocol",  # of another protocol version
    "worker",  # from nobody who is known
    "signature",  # not signed with that worker's secret
    "run",  # of another run
    "schema",  # of another game, version or shape
    "version",  # played with weights that nobody has published
    "bomb",  # would unpack to more than a slab
    "shape",  # would unpack to less than a slab
    "not_finite",
    "flag",  # a yes or no that is neither, or several that contradict one another
    "player",
    "action",
    "policy",
    "opinion",
    "value",
    "points",
    "count",  # says another number of rows or games than it holds
    "state",  # not a packed state in which somebody is to move
    "illegal",  # an action that the rules do not allow there
]
REASONS: tuple[str, ...] = get_args(Reason)

# Probabilities are rounded to float16 one by one: each is off by a share of 2**-11 at most, and so is their sum. A
# device may also round what is below the smallest normal float16 to nothing.
_SUM_TOLERANCE = 2e-3
_SMALLEST = 2.0**-14
_VALUE_TOLERANCE = 1e-3


class BadSlab(AleaError):  # noqa: N818 - the name says what it is
    """A slab that is refused, why, and whose it is."""

    def __init__(self, reason: Reason, detail: str, worker: str | None = None, claimed: str | None = None) -> None:
        """`worker` signed it; where that is not proved, it `claimed` to be from somebody."""
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail, self.worker, self.claimed = reason, detail, worker, claimed


@dataclasses.dataclass(frozen=True)
class Field:
    """One array of a slab."""

    name: str
    dtype: str  # as numpy writes it, little-endian
    shape: tuple[int, ...]  # [T, b, ...]

    @functools.cached_property
    def nbytes(self) -> int:
        """Its bytes."""
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize


@dataclasses.dataclass(frozen=True)
class SlabSchema:
    """What slabs of a run look like, and the game's facts that their contents are checked by."""

    game: str
    game_version: int
    num_players: int
    num_actions: int
    outcomes: tuple[float, ...]  # points of each; empty where a game has no finite set of them
    fields: tuple[Field, ...]  # in the order of their bytes

    @classmethod
    def of(cls, like: Trajectory, spec: GameSpec, lanes: int | None = None) -> SlabSchema:
        """From arrays or shapes `[T, B, ...]` (`Parts.slab_like`); `lanes` is b, where a source has other than B games.

        Fields with large numbers come first, so that every array is aligned where its bytes lie.
        """
        fields = []
        for name, array in like.arrays().items():
            moves, games, *rest = array.shape
            dtype = np.dtype(array.dtype).newbyteorder("<").str
            fields.append(Field(name, dtype, (moves, lanes or games, *rest)))
        points = tuple(float(outcome.points) for outcome in spec.outcomes)
        return cls(spec.name, spec.version, spec.num_players, spec.num_actions, points, in_order(fields))

    @property
    def moves(self) -> int:
        """T."""
        return self.fields[0].shape[0]

    @property
    def lanes(self) -> int:
        """b."""
        return self.fields[0].shape[1]

    @property
    def rows(self) -> int:
        """Rows of a slab."""
        return self.moves * self.lanes

    @functools.cached_property
    def nbytes(self) -> int:
        """Bytes of a slab's arrays."""
        return sum(field.nbytes for field in self.fields)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Equal where slabs mean the same."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def misfits(self, slab: Slab) -> list[str]:
        """What is wrong with the shapes of a slab of our own."""
        wanted = {field.name: (field.shape, np.dtype(field.dtype)) for field in self.fields}
        found = {name: (array.shape, array.dtype) for name, array in slab.items()}
        names = sorted(wanted.keys() | found.keys())
        return [f"{n} is {found.get(n)}, not {wanted.get(n)}" for n in names if wanted.get(n) != found.get(n)]


def in_order(fields: list[Field]) -> tuple[Field, ...]:
    """Fields in the order of their bytes: large numbers first."""
    return tuple(sorted(fields, key=lambda field: (-np.dtype(field.dtype).itemsize, field.name)))


def count_games(slab: Slab) -> int:
    """Games that are over with a move of the slab, by the rules or because we stopped them."""
    return int(np.count_nonzero(slab["ended"])) + int(np.count_nonzero(slab["truncated"]))


def check_contents(schema: SlabSchema, slab: Slab) -> None:
    """Raises `BadSlab` unless self-play could have written these numbers; shapes and dtypes are right already."""
    _check_flags(slab)
    _check_numbers(slab)
    _refuse("player", _outside(slab["to_play"], 0, schema.num_players - 1), slab["to_play"], "to_play")
    _check_actions(schema, slab)
    _check_policy(slab)
    _check_opinion(slab["opinion"])
    if schema.outcomes:
        bound = 1 + _VALUE_TOLERANCE
        _refuse("value", _outside(slab["value"], -bound, bound), slab["value"], "value")
    _check_points(schema, slab)


def _check_flags(slab: Slab) -> None:
    for name, array in slab.items():
        if array.dtype == np.bool_:
            _refuse("flag", array.view(np.uint8) > 1, array.view(np.uint8), name)
    ended, truncated = slab["ended"], slab["truncated"]
    _refuse("flag", ended & truncated, truncated, "truncated, of a game that ended,")
    _refuse("flag", slab["settled"] & ~ended, slab["settled"], "settled, of a game that goes on,")


def _check_numbers(slab: Slab) -> None:
    for name, array in slab.items():
        if array.dtype == np.float16:  # by its bits: numpy has no fast way for halves
            _refuse("not_finite", (array.view(np.uint16) & 0x7C00) == 0x7C00, array, name)
        elif array.dtype.kind == "f":
            _refuse("not_finite", ~np.isfinite(array), array, name)


def _check_actions(schema: SlabSchema, slab: Slab) -> None:
    actions, action = slab["actions"], slab["action"]  # [T, b, E], [T, b]
    _refuse("action", _outside(actions, -1, schema.num_actions - 1), actions, "actions")
    _refuse("action", _outside(action, -1, schema.num_actions - 1), action, "action")
    listed = (actions == action[..., None]).any(-1)
    some = (actions >= 0).any(-1)
    # A random opening is drawn from all legal actions, and a search may have kept the best few.
    wrong = some & np.where(slab["random"], action < 0, ~listed | (action < 0))
    _refuse("action", wrong, action, "action, which is not among the row's actions,")
    _refuse("action", ~some & (action >= 0), action, "action, in a row without actions,")


def _check_policy(slab: Slab) -> None:
    policy = slab["policy"]  # [T, b, E] float16
    plain = policy.astype(np.float32)
    _refuse("policy", plain < 0, policy, "policy")
    nowhere = (slab["actions"] < 0) & (plain != 0)
    _refuse("policy", nowhere, policy, "policy, of no action,")
    total = plain @ np.ones(plain.shape[-1], np.float32)
    _refuse("policy", total > 1 + _SUM_TOLERANCE, total, "the sum of the policy")
    short = slab["searched"] & (total < 1 - _SUM_TOLERANCE - _SMALLEST * plain.shape[-1])
    _refuse("policy", short, total, "the sum of the policy of a searched row")


def _check_opinion(opinion: np.ndarray) -> None:
    plain = opinion.astype(np.float32)  # [T, b, V]
    if opinion.shape[-1] == 1:
        _refuse("opinion", _outside(plain, -1 - _VALUE_TOLERANCE, 1 + _VALUE_TOLERANCE), plain, "opinion")
        return
    _refuse("opinion", _outside(plain, 0, 1 + _SUM_TOLERANCE), plain, "opinion")
    total = plain @ np.ones(plain.shape[-1], np.float32)
    _refuse("opinion", abs(total - 1) > _SUM_TOLERANCE, total, "the sum of the opinion")


def _check_points(schema: SlabSchema, slab: Slab) -> None:
    points, ended = slab["points"], slab["ended"]
    _refuse("points", ~ended & (points != 0), points, "points, of a game that goes on,")
    if schema.outcomes:
        unknown = np.zeros(ended.shape, np.bool_)
        unknown[ended] = ~np.isin(points[ended], np.asarray(schema.outcomes, np.float32))
        _refuse("points", unknown, points, "points, which no outcome of the game has,")


def _outside(array: np.ndarray, low: float, high: float) -> np.ndarray:
    """Where numbers are out of bounds; nothing of the array's size is made where none is."""
    if array.size == 0 or (array.min() >= low and array.max() <= high):
        return np.zeros((), np.bool_)
    wrong: np.ndarray = (array < low) | (array > high)
    return wrong


def _refuse(reason: Reason, wrong: np.ndarray, values: np.ndarray, what: str) -> None:
    if wrong.any():
        place = np.unravel_index(int(wrong.argmax()), wrong.shape)
        raise BadSlab(reason, f"{what} is {values[place]} at {[int(i) for i in place]}")
