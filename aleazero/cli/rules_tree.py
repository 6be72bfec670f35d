"""The command trees of `alea games`, `alea doctor` and `alea show`. Imports nothing heavy: `--help` shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from aleazero.cli.options import GameName, Json


def games(
    name: Annotated[str | None, Parameter(help="With --coverage: which; balatro.")] = None,
    *,
    coverage: Annotated[bool, Parameter(negative="", help="What a simulator covers, and where it differs.")] = False,
    as_json: Json = False,
) -> int:
    """List the games, or say what a simulator covers."""
    if coverage or name is not None:
        from aleazero.cli import balatro

        return balatro.coverage(name or "", coverage, as_json)
    from aleazero.cli import show

    return show.games(as_json)


def doctor(
    *names: Annotated[str, Parameter(help="Games to examine; all built-in ones if none is named.")],
    as_json: Json = False,
) -> int:
    """Prove a game's rules against the contract, and the searches on it against exact answers."""
    from aleazero.cli import doctor as command

    return command.doctor(list(names), as_json)


def show(
    game: GameName,
    position: Annotated[
        str | None, Parameter(help="A position in the game's notation; the first one if left out.")
    ] = None,
    *,
    svg: Annotated[Path | None, Parameter(help="Draw the board into this file instead, as SVG.")] = None,
    as_json: Json = False,
) -> int:
    """Draw a position and list its legal moves."""
    from aleazero.cli import show as command

    return command.show(game, position, svg, as_json)
