"""The command tree of `alea balatro`, and of `alea verify` and `alea replay`. Imports nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from aleazero.cli.options import GameName, Json, Runs

NAME = "balatro"
balatro_app = App(name=NAME, help="Balatro, unofficial: play, measure, fuzz.")

Seeds = Annotated[
    str | None,
    Parameter(name="--seeds", help="Balatro: a file of the runs' seeds, one a line; or how many, drawn by --seed."),
]
Beside = Annotated[
    list[str] | None,
    Parameter(
        name="--beside",
        negative="",
        consume_multiple=True,
        help="Balatro: others who play the same seeds, for a table; as in --beside random greedy expectimax.",
    ),
]
Deck = Annotated[str, Parameter(help="A deck's name.")]
Stake = Annotated[str, Parameter(help="A stake's name.")]


@balatro_app.command
def play(
    *,
    seed: Annotated[str | None, Parameter(help="Of the run, 1 to 8 characters; another each time if left out.")] = None,
    deck: Deck = "Red Deck",
    stake: Stake = "White",
    last_ante: Annotated[int, Parameter(help="8: a won run ends; up to 12: it goes on.")] = 8,
    save: Annotated[Path | None, Parameter(help="Write the run, also if it is left, for alea replay.")] = None,
    player: Annotated[
        str | None, Parameter(help="Who gives hints: bundled, run:NAME, expectimax, greedy; bundled if left out.")
    ] = None,
    runs: Runs = None,
) -> int:
    """Play a run in the terminal."""
    from aleazero.cli import balatro as command

    return command.play(seed, deck=deck, stake=stake, last_ante=last_ante, save=save, player=player, runs=runs)


@balatro_app.command
def live(
    address: Annotated[str, Parameter(help="Of the live game (BalatroBot).")] = "http://127.0.0.1:12346",
    *,
    player: Annotated[
        str, Parameter(help="Who plays: greedy, expectimax or run:NAME; with ,advisor=URL a model is asked, too.")
    ] = "greedy",
    seed: Annotated[str | None, Parameter(help="Of a run that is begun; the game's own choice if left out.")] = None,
    deck: Deck = "Red Deck",
    stake: Stake = "White",
    give_up: Annotated[float, Parameter(help="Seconds to wait for a game that does not answer.")] = 600.0,
    rest: Annotated[
        float, Parameter(help="Seconds at rest after which a state is trusted to say what a broken request did.")
    ] = 5.0,
    runs: Runs = None,
    as_json: Json = False,
) -> int:
    """Play a live game through BalatroBot; where it stops answering, wait for it, and do nothing twice."""
    from aleazero.cli import balatro_live as command

    return command.live(
        address,
        player=player,
        seed=seed,
        deck=deck,
        stake=stake,
        give_up=give_up,
        rest=rest,
        runs=runs,
        as_json=as_json,
    )


@balatro_app.command
def bench(
    *,
    seconds: Annotated[float, Parameter(help="Of each measurement.")] = 2.0,
    rounds: Annotated[int, Parameter(help="How often each is repeated; medians are shown.")] = 5,
    compiling: Annotated[bool, Parameter(negative="", help="Time compiling, too: minutes.")] = False,
    as_json: Json = False,
) -> int:
    """Measure decisions a second, threads, memory and runs an hour on this machine."""
    from aleazero.cli import balatro as command

    return command.bench(seconds, rounds, compiling, as_json)


@balatro_app.command
def fuzz(
    *,
    decisions: Annotated[int, Parameter(help="How many random decisions, at least.")] = 1_000_000,
    seed: Annotated[int, Parameter(help="Of the decisions and the runs.")] = 1,
    sample: Annotated[int, Parameter(help="Runs that plain Python plays again; 0 for none.")] = 4,
    as_json: Json = False,
) -> int:
    """Make random decisions across decks and stakes; the exit code is 1 if a law was broken."""
    from aleazero.cli import balatro as command

    return command.fuzz(decisions, seed, sample, as_json)


@balatro_app.command
def tables(file: Annotated[Path, Parameter(help="A document with marked tables.")]) -> int:
    """Make the tables of a document anew: actions, observation, coverage."""
    from aleazero.cli import balatro as command

    return command.tables(file)


def verify(
    game: GameName,
    folder: Annotated[Path, Parameter(help="With rng.json, seeds.json, scores.json, or some of them.")],
    *,
    as_json: Json = False,
) -> int:
    """Check a simulator against a folder of vectors; the exit code is 1 if one is not met."""
    from aleazero.cli import balatro as command

    return command.verify(game, folder, as_json)


def replay(
    game: GameName,
    file: Annotated[Path, Parameter(help="A run that play --save wrote.")],
    *,
    as_json: Json = False,
) -> int:
    """Show a saved run, decision by decision, with how each score came about."""
    from aleazero.cli import balatro as command

    return command.replay(game, file, as_json)
