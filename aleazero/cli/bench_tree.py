"""The command trees of `alea bench` and `alea experiment`. Imports nothing heavy: `--help` shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from aleazero.cli.options import Device, GameName, Json, Runs, Sets, compute_on


def experiment(
    file: Annotated[Path, Parameter(help="What to compare, as TOML: name, game, seeds, [base], [variants.NAME].")],
    *,
    out: Annotated[Path | None, Parameter(help="The folder; experiments/NAME if left out.")] = None,
    runs: Annotated[Path | None, Parameter(help="Where the runs are kept that opponents may name.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> int:
    """Compare variants of the settings over several seeds; the same command goes on with what was stopped."""
    compute_on(device)
    from aleazero.cli import experiment as command

    return command.experiment(file, out=out, runs=runs, as_json=as_json)


def bench(
    kind: Annotated[
        str,
        Parameter(help="game-env, mcts, stochastic-mcts, expectimax, network, train-step, replay or selfplay."),
    ],
    *,
    game: GameName = "backgammon",
    games: Annotated[
        int | None, Parameter(help="selfplay of host games: until so many are over; 100 if left out.")
    ] = None,
    batch_sizes: Annotated[str | None, Parameter(help="As in 1,4,8; some that suit the machine if left out.")] = None,
    single_batch: Annotated[int | None, Parameter(help="One batch size.")] = None,
    discover: Annotated[
        bool, Parameter(negative="", help="Find the best batch size and keep it in this machine's profile.")
    ] = False,
    validate: Annotated[
        bool, Parameter(negative="", help="Compare this machine with its profile; the exit code is 1 if it is slower.")
    ] = False,
    tolerance: Annotated[float, Parameter(help="How much slower is tolerated, as a share.")] = 0.1,
    compare: Annotated[str | None, Parameter(help="A peer, measured in the same run: pgx, mctx or open_spiel.")] = None,
    duration: Annotated[float | None, Parameter(help="Seconds of timing at each batch size; 5 if left out.")] = None,
    memory_limit: Annotated[float | None, Parameter(help="Gigabytes; what there is if left out.")] = None,
    num_simulations: Annotated[str | None, Parameter(help="Of a search, as in 32,200; 32 if left out.")] = None,
    search: Annotated[str | None, Parameter(help="puct, gumbel or both with a comma; puct if left out.")] = None,
    network: Annotated[str | None, Parameter(help="mlp, or cnn for boards; mlp if left out.")] = None,
    width: Annotated[
        int | None, Parameter(help="Of the network; 256 if left out, in a run's parts the preset's.")
    ] = None,
    blocks: Annotated[
        int | None, Parameter(help="Of the network; 6 if left out, in a run's parts the preset's.")
    ] = None,
    player: Annotated[
        str | None, Parameter(help="bundled, run:NAME[@STEP] or path:FOLDER: whose network; untrained if left out.")
    ] = None,
    features: Annotated[
        bool, Parameter(negative="", help="network: work out what it sees of a position, too.")
    ] = False,
    preset: Annotated[str | None, Parameter(help="train-step, replay, selfplay: as in train.")] = None,
    sets: Sets = None,
    rows: Annotated[str | None, Parameter(help="replay: ring sizes, as in 100000,10000000.")] = None,
    runs: Runs = None,
    out: Annotated[
        Path | None, Parameter(help="The folder for bench.json and bench.png; a new one among your data if left out.")
    ] = None,
    force: Annotated[bool, Parameter(negative="", help="Overwrite a profile or results.")] = False,
    verbose: Annotated[bool, Parameter(negative="", help="Say how it goes.")] = False,
    device: Device = "auto",
    as_json: Json = False,
) -> int:
    """Measure how fast the parts are on this machine, and find the batch size that suits it."""
    compute_on(device)
    from aleazero.cli import bench as command

    return command.bench(
        kind=kind,
        game=game,
        games=games,
        batch_sizes=batch_sizes,
        single_batch=single_batch,
        discover=discover,
        validate=validate,
        tolerance=tolerance,
        compare=compare,
        duration=duration,
        memory_limit=memory_limit,
        num_simulations=num_simulations,
        search=search,
        network=network,
        width=width,
        blocks=blocks,
        player=player,
        features=features,
        preset=preset,
        sets=sets,
        rows=rows,
        runs=runs,
        out=out,
        force=force,
        verbose=verbose,
        as_json=as_json,
    )
