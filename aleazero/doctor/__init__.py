"""The proof that rules and searches do what they say: `alea doctor [GAME ...]`.

`examine` runs the game contract and the search conformance suite on one game and yields a finding per check. Where
the parts are joined: this package knows games, searches and solvers; none of them knows it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import Literal

from aleazero.core.errors import AleaError
from aleazero.core.game import Game, HostGame


@dataclasses.dataclass(frozen=True)
class Finding:
    """What one check found on one game."""

    game: str
    check: str
    verdict: Literal["passed", "failed", "skipped"]
    detail: str
    seconds: float


class CheckFailed(AleaError):  # noqa: N818
    """A check found something wrong."""


class CheckSkipped(AleaError):  # noqa: N818
    """A check does not apply to this game; says why."""


def examine(game: Game | HostGame) -> Iterator[Finding]:
    """Every check, in order; the later ones are left out once the contract is broken, for they stand on it."""
    from aleazero.doctor.checks import CHECKS, HOST_CHECKS, Patient

    patient = Patient(game) if isinstance(game, Game) else None
    checks = CHECKS if patient is not None else HOST_CHECKS
    for name, check in checks.items():
        started = time.perf_counter()
        verdict: Literal["passed", "failed", "skipped"] = "passed"
        try:
            detail = check(patient if patient is not None else game)
        except CheckSkipped as reason:
            verdict, detail = "skipped", str(reason)
        except AleaError as problem:
            verdict, detail = "failed", str(problem)
        yield Finding(game.spec.name, name, verdict, detail, time.perf_counter() - started)
        if verdict == "failed" and name == "contract":
            return
