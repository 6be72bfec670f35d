"""`alea`: the command tree. Nothing heavy is imported before a command needs it, so that `--help` answers at once.

Exit codes: 0 done, 1 failed, 2 misuse. With `--json` a command prints one object on standard output and nothing else.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from aleazero import __version__
from aleazero.cli import balatro_tree, cluster, graph_tree, mcp_tree, ray_tree, strength, train_tree
from aleazero.cli.desk import Telling, monitor_app
from aleazero.cli.options import (
    Device,
    Force,
    GameName,
    Json,
    Player,
    Profile,
    Record,
    RunName,
    Runs,
    Seconds,
    Seed,
    Sets,
    SomeRun,
    compute_on,
)
from aleazero.core.errors import AleaError, ConfigError, NotationError, UnknownName

DONE, FAILED, MISUSE = 0, 1, 2

app = App(
    name="alea",
    help="Trains game-playing agents from nothing but the rules, and proves that it does it right.",
    version=__version__,
    result_action="return_value",
)
runs_app = App(name="runs", help="List, start, pause, resume, stop, reset, delete, compare and plot training runs.")
app.command(runs_app)
app.command(cluster.head_app)
app.command(cluster.worker_app)
app.command(monitor_app)
app.command(train_tree.train)
app.command(ray_tree.ray_app)
app.command(graph_tree.graph_app)
app.command(mcp_tree.mcp)
app.command(strength.uci)
runs_app.command(strength.runs_elo, name="elo")
runs_app.command(strength.runs_pgn, name="pgn")
runs_app.command(strength.runs_worst, name="worst")
balatro_tree.register(app)


@app.command
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


@app.command
def doctor(
    *names: Annotated[str, Parameter(help="Games to examine; all built-in ones if none is named.")],
    as_json: Json = False,
) -> int:
    """Prove a game's rules against the contract, and the searches on it against exact answers."""
    from aleazero.cli import doctor as command

    return command.doctor(list(names), as_json)


@app.command
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


@app.command
def plot(
    run: SomeRun = None,
    *,
    out: Annotated[
        Path | None, Parameter(help="FILE.png or FILE.svg; curves.svg in the run's folder if left out.")
    ] = None,
    runs: Runs = None,
) -> int:
    """Draw a run's curves: losses, scores, speed, entropy, replay."""
    from aleazero.cli import plot as command

    return command.plot(run, out, runs)


@app.command(name="eval")
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
    record: Record = None,
    force: Force = False,
    runs: Runs = None,
    device: Device = "auto",
    as_json: Json = False,
) -> int:
    """Play a match: score, Elo and points per game with 95 % intervals; of Balatro, how far a player comes."""
    if game == balatro_tree.NAME:
        if player.startswith("run:"):
            compute_on(device)
        from aleazero.cli import balatro

        return balatro.evaluate(player, games=games, seed=seed, seeds=seeds, record=record, as_json=as_json, runs=runs)
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


@app.command
def rate(
    game: GameName,
    *,
    player: Player,
    positions: Annotated[
        int | None, Parameter(help="How many positions (Connect Four: of each phase); all if left out, in Pig 10,000.")
    ] = None,
    decisions: Annotated[
        Path | None,
        Parameter(help="Backgammon: a file of labelled decisions, in place of the player's own, judged now."),
    ] = None,
    judge: Annotated[
        str | None,
        Parameter(help="Backgammon: gnubg (at 2-ply; the default) or rollout[:games=324;plies=7;player=bundled]."),
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
    """Judge a player's decisions: exactly in solved games, by GNU or rollouts in backgammon, by suites in chess."""
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


@app.command
def play(
    game: GameName,
    *,
    player: Annotated[
        str | None, Parameter(help="Against whom, as in eval, or human; bundled if left out, else random.")
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

        return balatro.play_numbered(seed, save)
    compute_on(device)
    from aleazero.cli import play as command

    return command.play(game, player, seat=seat, seed=seed, save=save, runs=runs, position=position)


@app.command
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


@app.command
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


@app.command
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


@app.command
def web(
    *,
    run: Annotated[
        list[Path] | None, Parameter(negative="", help="A run, or a folder of runs, to watch; repeatable.")
    ] = None,
    port: Annotated[int, Parameter(help="The port to listen on; 0 for any that is free.")] = 8440,
    host: Annotated[
        str, Parameter(help="The address to listen on; any but this machine's own needs a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, Parameter(env_var="ALEA_WEB_TOKEN", help="Asked of every visitor; made, where one is needed.")
    ] = None,
    warm: Annotated[bool, Parameter(help="Compile at the start what a first visitor needs.")] = True,
    runs: Runs = None,
    device: Device = "auto",
) -> int:
    """Play, watch and analyse in the browser."""
    compute_on(device)
    from aleazero.cli import web as command

    return command.web(host, port, run, token, warm, runs)


@app.command
def export(
    run: Annotated[str, Parameter(help="NAME or NAME@STEP; the newest checkpoint if no step is named.")],
    *,
    file_format: Annotated[
        Literal["safetensors", "onnx"], Parameter(name="--format", help="onnx writes network.onnx too.")
    ] = "safetensors",
    out: Annotated[Path | None, Parameter(help="The folder; export/STEP in the run's own if left out.")] = None,
    runs: Runs = None,
    as_json: Json = False,
) -> int:
    """Write a run's network to a folder that is all one needs to play it."""
    from aleazero.cli import export as command

    return command.export_run(run, onnx=file_format == "onnx", out=out, runs=runs, as_json=as_json)


@runs_app.command(name="list")
def runs_list(*, runs: Runs = None, as_json: Json = False) -> int:
    """List the runs and how they stand."""
    from aleazero.cli import runs as command

    return command.list_runs(runs, as_json)


@runs_app.command(name="start")
def runs_start(
    game: Annotated[str | None, Parameter(help="A game's name, for a run that is new.")] = None,
    *,
    run_id: Annotated[str | None, Parameter(name="--run-id", help="The run's name; one that is there goes on.")] = None,
    preset: Annotated[str, Parameter(help="As in train.")] = "standard",
    config: Annotated[Path | None, Parameter(help="Settings, as TOML (or YAML).")] = None,
    sets: Sets = None,
    runs: Runs = None,
    worker: Annotated[bool, Parameter(help="Play games on this machine, too.")] = True,
    device: Device = "auto",
) -> int:
    """Start a run's head in the background, with a game worker on this machine (see: alea head)."""
    return cluster.start_head(
        game, run=run_id, preset=preset, file=config, sets=sets, runs=runs, detach=True, worker=worker, device=device
    )


@runs_app.command(name="pause")
def runs_pause(name: SomeRun = None, *, runs: Runs = None) -> int:
    """Make a run wait, with all its workers, until it is resumed; after a restart, too."""
    from aleazero.cli import runs as command

    return command.pause(name, runs)


@runs_app.command(name="stop")
def runs_stop(
    name: SomeRun = None,
    *,
    wait: Annotated[float, Parameter(help="Seconds until it must have ended; else the exit code is 1.")] = 60.0,
    runs: Runs = None,
) -> int:
    """Stop a run, with a checkpoint. One that nobody trains is stopped already: the exit code is 0."""
    from aleazero.cli import runs as command

    return command.stop(name, wait, runs)


@runs_app.command(name="resume")
def runs_resume(
    name: SomeRun = None,
    *,
    how: Annotated[
        Literal["exact", "weights"],
        Parameter(name="--resume", help="As if never stopped, or from the weights alone with an empty replay."),
    ] = "exact",
    sets: Sets = None,
    runs: Runs = None,
    seconds: Seconds = None,
    profile: Profile = False,
    device: Device = "auto",
    telling: Telling = Telling(),  # noqa: B008 - frozen
    as_json: Json = False,
) -> int:
    """Go on with a run that is paused, or from its newest intact checkpoint."""
    compute_on(device)
    from aleazero.cli import runs as paused

    if paused.unpause(name, runs):
        return DONE
    from aleazero.cli import train as command

    given = [*(sets or []), *telling.assignments()]
    return command.go_on(name, how, given, runs, seconds=seconds, profile=profile, as_json=as_json)


@runs_app.command(name="reset")
def runs_reset(
    name: SomeRun = None,
    *,
    yes: Annotated[bool, Parameter(negative="", help="Do not ask.")] = False,
    runs: Runs = None,
) -> int:
    """Begin a run anew: what it has goes into an archive; its settings and its workers' tokens stay."""
    from aleazero.cli import runs as command

    return command.reset(name, yes, runs)


@runs_app.command(name="delete")
def runs_delete(
    name: SomeRun = None,
    *,
    yes: Annotated[bool, Parameter(negative="", help="Do not ask.")] = False,
    runs: Runs = None,
) -> int:
    """Delete a run for good."""
    from aleazero.cli import runs as command

    return command.delete(name, yes, runs)


@app.command
def status(name: SomeRun = None, *, runs: Runs = None, as_json: Json = False) -> int:
    """Show a run's state, how far it is, and its workers."""
    from aleazero.cli import status as command

    return command.status(name, runs, as_json)


@runs_app.command(name="compare")
def runs_compare(
    *names: RunName,
    out: Annotated[Path | None, Parameter(help="The drawing; compare.svg among the runs if left out.")] = None,
    runs: Runs = None,
    as_json: Json = False,
) -> int:
    """Put runs side by side: a table, and curves by rows and by seconds."""
    from aleazero.cli import runs as command

    return command.compare(list(names), out, runs, as_json)


@runs_app.command(name="plot")
def runs_plot(name: SomeRun = None, *, runs: Runs = None) -> int:
    """Draw a run's curves."""
    from aleazero.cli import runs as command

    return command.plot(name, runs)


@app.command
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


@app.command
def bench(
    kind: Annotated[
        str,
        Parameter(help="game-env, mcts, stochastic-mcts, expectimax, network, train-step, replay or selfplay."),
    ],
    *,
    game: GameName = "backgammon",
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


def main(arguments: list[str] | None = None) -> None:
    """Runs a command line and exits with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Runs a command line; returns its exit code. Mistakes are explained in a line or two, without a traceback."""
    try:
        code: Any = app(arguments, exit_on_error=False, print_error=True)
    except CycloptsError:
        return MISUSE
    except (UnknownName, NotationError, ConfigError) as mistake:
        print(f"alea: {mistake}", file=sys.stderr)
        return MISUSE
    except AleaError as problem:
        print(f"alea: {problem}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("alea: stopped", file=sys.stderr)
        return FAILED
    return code if isinstance(code, int) else DONE


def print_json(report: dict[str, Any]) -> None:
    """The one object of `--json`: strict, with null for numbers that JSON cannot write."""
    print(json.dumps(strict(report), allow_nan=False))


def strict(value: Any) -> Any:
    """What JSON can write: null in place of numbers that it cannot."""
    if isinstance(value, dict):
        return {key: strict(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [strict(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


if __name__ == "__main__":
    main()
