"""Every error a user can meet. A message says what, the value received, what is allowed and what to do."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable


class AleaError(Exception):
    """Something the user can act on; the command line prints it without a traceback."""


class ConfigError(AleaError):
    """A setting is missing, unknown, out of range or at odds with another."""


class GameContractError(AleaError):
    """A game breaks a law of the contract in `aleazero.core.game`."""

    def __init__(self, law: str, message: str) -> None:
        super().__init__(f"{law}: {message}")
        self.law = law
        self.message = message


class NotationError(AleaError):
    """A text does not name a position, or names a move that cannot be played."""


class MissingExtra(AleaError):  # noqa: N818 - the name says what is missing, not that it is an error
    """An optional dependency is needed and not installed."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs {package}, which is not installed: pip install 'aleazero[{extra}]'")


class UnknownName(AleaError):  # noqa: N818
    """A name is not among the known ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(f"unknown {kind} {name!r}: {hint}known: {', '.join(names)}")


def explained(program: str, command: Callable[[], int]) -> int:
    """A command's exit code; 1 if it failed, 2 if it was misused. Errors are a line or two, without a traceback."""
    try:
        return command()
    except (UnknownName, NotationError, ConfigError) as mistake:
        print(f"{program}: {mistake}", file=sys.stderr)
        return 2
    except AleaError as problem:
        print(f"{program}: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{program}: stopped", file=sys.stderr)
        return 1
