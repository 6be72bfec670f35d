"""`alea doctor`: runs the examination and prints its findings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from rich.console import Console
from rich.markup import escape

from aleazero.cli.answer import print_json
from aleazero.core.compilation import set_up_compiling
from aleazero.core.game import Game, HostGame
from aleazero.doctor import Finding, examine
from aleazero.games.registry import BUILT_IN, make_game

_COLOURS = {"passed": "green", "failed": "bold red", "skipped": "dim"}


def _examine_all(games: list[Game | HostGame]) -> Iterator[list[Finding]]:
    """Game after game, two at a time: most of an examination is compiling, which leaves the other cores idle."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield from pool.map(lambda game: list(examine(game)), games)


def doctor(names: list[str], as_json: bool) -> int:
    """Examines games; 1 if any check failed."""
    set_up_compiling()
    games = [make_game(name) for name in names or sorted(BUILT_IN)]  # a wrong name stops before anything runs
    findings: list[Finding] = []
    console = Console(highlight=False, soft_wrap=True)
    for game, found in zip(games, _examine_all(games), strict=True):
        findings += found
        if not as_json:
            console.print(f"[bold]{escape(game.spec.name)}[/bold]")
            for finding in found:
                verdict = f"[{_COLOURS[finding.verdict]}]{finding.verdict:7}[/]"
                console.print(f"  {verdict} {finding.check} ({finding.seconds:.1f} s): {escape(finding.detail)}")
    failed = sum(finding.verdict == "failed" for finding in findings)
    if as_json:
        print_json({"findings": [dataclasses.asdict(finding) for finding in findings], "failed": failed})
    else:
        passed = sum(finding.verdict == "passed" for finding in findings)
        console.print(f"{passed} passed, {failed} failed, {len(findings) - passed - failed} do not apply")
    return 1 if failed else 0
