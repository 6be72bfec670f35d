"""The command trees of what players do: `alea eval`, `rate`, `play`, `hint`, `openings`, `serve`. Light to import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from aleazero.cli import balatro_tree
from aleazero.cli.options import Device, Force, GameName, Json, Player, Record, Runs, Seed, compute_on


def evaluate(
    game: GameName,
    *,
    player: Player,
    opponent: Annotated[str, Parameter(help="Against whom; written as --player is.")] = "random",
    games: Annotated[int, Parameter(help="How many, half of them from each seat.")] = 200,
    seed: Seed = 0,
    opening_plies: Annotated[int, Parameter(help="Random moves at the start, the same in both games of a pair.")] = 0,
    sprt: Annotated[
        str | None, Parameter(help="ELO0,ELO1: test whether the player is ELO1 better, and stop once that is decided.")
    ] = None,
    luck: Annotated[
        str,
        Parameter(help="Who says what rolls are worth, so that luck can be taken off: auto, none, gnubg or network."),
    ] = "auto",
    pgn: Annotated[Path | None, Parameter(help="Chess: write the games, with what networks thought, as PGN.")] = None,
    seeds: balatro_tree.Seeds = None,
    beside: balatro_tree.Beside = None,
    record: Record = None,
    force: Force = False,
    runs: Runs = None,
    device: Device = "auto",
    as_json: Json = False,
) -> int:
    """Play a match: score, Elo and points per game with 95 % intervals; of Balatro, how far a player comes."""
    if game == balatro_tree.NAME:
        others = beside or []
        if any(each.startswith(("run:", "path:", "bundled")) for each in (player, *others)):
            compute_on(device)
        from aleazero.cli import balatro

        return balatro.evaluate(
            player, games=games, seed=seed, seeds=seeds, record=record, as_json=as_json, runs=runs, beside=others
        )
    compute_on(device)
    from aleazero.cli import evaluate as command

    return command.evaluate(
        game,
        player,
        opponent,
        games=games,
        seed=seed,
        opening_plies=opening_plies,
        sprt_bounds=sprt,
        luck=luck,
        pgn=pgn,
        record=record,
        force=force,
        runs=runs,
        as_json=as_json,
    )


def rate(
    game: GameName,
    *,
    player: Player,
    positions: Annotated[
        int | None,
        Parameter(
            help="How many positions (Connect Four: of each phase). If left out all there are; in Pig 10,000, in "
            "backgammon 1,000, by a judge of chess 400."
        ),
    ] = None,
    decisions: Annotated[
        Path | None,
        Parameter(help="Backgammon: a file of labelled decisions, in place of the player's own, judged now."),
    ] = None,
    judge: Annotated[
        str | None,
        Parameter(
            help="Backgammon: gnubg (at 2-ply; the default) or rollout[:games=324;plies=7;player=bundled]. Chess: "
            "stockfish:nodes=20000, in open positions; by suites if left out."
        ),
    ] = None,
    save: Annotated[Path | None, Parameter(help="Backgammon: write the decisions that are labelled now.")] = None,
    epd: Annotated[
        Path | None,
        Parameter(help="Chess: a suite with bm, am or c0; the package's own tactics if left out."),
    ] = None,
    mates: Annotated[int | None, Parameter(help="Chess: 1 or 2: mates that are made and proved now.")] = None,
    nodes: Annotated[
        int | None,
        Parameter(help="Chess: simulations of a move (Stockfish: nodes); the player's own if left out."),
    ] = None,
    seed: Seed = 0,
    record: Record = None,
    force: Force = False,
    runs: Runs = None,
    device: Device = "auto",
    as_json: Json = False,
) -> int:
    """Judge a player's decisions: exactly in solved games, else by engines, rollouts or suites."""
    compute_on(device)
    from aleazero.cli import rate as command

    return command.rate(
        game,
        player,
        positions=positions,
        decisions=decisions,
        by=judge,
        save=save,
        epd=epd,
        mates=mates,
        nodes=nodes,
        seed=seed,
        record=record,
        force=force,
        runs=runs,
        as_json=as_json,
    )


def play(
    game: GameName,
    *,
    player: Annotated[
        str | None,
        Parameter(
            help="Against whom, as in eval, or human; in Balatro who gives hints. Bundled if left out, else random."
        ),
    ] = None,
    seat: Annotated[Literal[1, 2], Parameter(help="Yours: 1 moves first.")] = 1,
    seed: Annotated[int | None, Parameter(help="Of the dice and the engine; another each time if left out.")] = None,
    save: Annotated[
        Path | None,
        Parameter(help="Write the game, also if it is left: backgammon to FILE.mat or FILE.sgf, chess to FILE.pgn."),
    ] = None,
    position: Annotated[
        str | None, Parameter(help="Where to begin, in the game's notation (chess: a FEN); the first one if left out.")
    ] = None,
    runs: Runs = None,
    device: Device = "auto",
) -> int:
    """Play in the terminal; for more of Balatro's options see: alea balatro play."""
    if game == balatro_tree.NAME:
        from aleazero.cli import balatro

        return balatro.play_numbered(seed, save, player, runs)
    compute_on(device)
    from aleazero.cli import play as command

    return command.play(game, player, seat=seat, seed=seed, save=save, runs=runs, position=position)


def hint(
    game: GameName,
    *,
    position_id: Annotated[str | None, Parameter(help="GNU Backgammon's, of the player to move.")] = None,
    dice: Annotated[str | None, Parameter(help="With a position ID, as in 31.")] = None,
    xgid: Annotated[str | None, Parameter(allow_leading_hyphen=True, help="A position with its dice.")] = None,
    player: Player = "bundled",
    count: Annotated[int, Parameter(help="How many plays to show.")] = 5,
    rollout: Annotated[
        int | None, Parameter(help="Play these out so many times each, with the network on both sides; as in 324.")
    ] = None,
    runs: Runs = None,
    device: Device = "auto",
    as_json: Json = False,
) -> int:
    """Rank the plays of a backgammon position, with equities and chances."""
    compute_on(device)
    from aleazero.cli import hint as command

    return command.hint(
        game,
        position_id=position_id,
        dice=dice,
        xgid=xgid,
        player=player,
        count=count,
        rollout=rollout,
        runs=runs,
        as_json=as_json,
    )


def openings(
    game: GameName,
    *,
    player: Player = "bundled",
    beside: Annotated[str | None, Parameter(help="A second player, written as --player is, to compare with.")] = None,
    record: Record = None,
    force: Force = False,
    runs: Runs = None,
    device: Device = "auto",
    as_json: Json = False,
) -> int:
    """List how backgammon's fifteen opening rolls are played, with equities and runners-up."""
    compute_on(device)
    from aleazero.cli import openings as command

    return command.openings(game, player, beside=beside, record=record, force=force, runs=runs, as_json=as_json)


def serve(
    game: GameName,
    *,
    player: Player = "bundled",
    host: Annotated[str, Parameter(help="The address to listen on; whoever reaches it may ask.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The port to listen on; 0 for any that is free.")] = 1234,
    runs: Runs = None,
    device: Device = "auto",
) -> int:
    """Play backgammon for GNU Backgammon, as its external player."""
    compute_on(device)
    from aleazero.cli import serve as command

    return command.serve(game, player, host=host, port=port, runs=runs)
