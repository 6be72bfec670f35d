"""`alea head` and `alea worker`: the command trees of runs on many machines. Nothing heavy is imported for `--help`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from aleazero.cli.desk import Telling
from aleazero.cli.options import Device, Json, Runs, Sets, compute_on, need_redis

Url = Annotated[
    str | None,
    Parameter(name="--url", env_var="ALEA_REDIS_URL", help="The run's Redis: redis://HOST:PORT, or rediss:// for TLS."),
]
TokenText = Annotated[
    str | None,
    Parameter(name="--token", env_var="ALEA_TOKEN", help="As the head printed it; others see a command line."),
]
CaFile = Annotated[
    Path | None, Parameter(name="--ca", env_var="ALEA_REDIS_CA", help="What the certificate is checked by.")
]
AccessFile = Annotated[
    Path | None,
    Parameter(name="--config", help="url, token (or token_file) and ca as TOML; aleazero/worker.toml if left out."),
]
Wait = Annotated[bool, Parameter(negative="", help="Keep trying where the head is not there yet.")]
StopFile = Annotated[Path | None, Parameter(help="Come to a good end once this file exists.")]
GpuMemory = Annotated[float | None, Parameter(help="The share of a GPU's memory to take, as in 0.4.")]
OfRun = Annotated[str | None, Parameter(name="--run", help="A run's name; the active one if left out.")]

head_app = App(name="head", help="Start a run for many machines, or stop it.")
worker_app = App(name="worker", help="Take part in a run; make tokens for others.")


@head_app.default
def head(
    game: Annotated[str | None, Parameter(help="A game's name, for a run that is new.")] = None,
    *,
    run: Annotated[str | None, Parameter(name="--run", help="The run's name; one that is there goes on.")] = None,
    preset: Annotated[str, Parameter(help="As in train.")] = "standard",
    config: Annotated[Path | None, Parameter(help="Settings, as TOML (or YAML).")] = None,
    sets: Sets = None,
    runs: Runs = None,
    url: Annotated[
        str | None,
        Parameter(
            env_var="ALEA_HEAD_URL",
            help="A Redis that runs, with a user who may make others; one of its own if left out.",
        ),
    ] = None,
    ca: Annotated[Path | None, Parameter(help="What the certificate of that one is checked by.")] = None,
    bind: Annotated[str, Parameter(help="Where its own Redis listens; 0.0.0.0 for other machines.")] = "127.0.0.1",
    port: Annotated[int | None, Parameter(help="The port of its own Redis; any that is free if left out.")] = None,
    tls_cert: Annotated[Path | None, Parameter(help="Its certificate, for TLS (with --tls-key and --tls-ca).")] = None,
    tls_key: Annotated[Path | None, Parameter(help="The certificate's key.")] = None,
    tls_ca: Annotated[Path | None, Parameter(help="What the certificate is checked by.")] = None,
    fsync: Annotated[
        Literal["always", "everysec"], Parameter(help="When what is acknowledged is on the disk.")
    ] = "always",
    max_memory: Annotated[float | None, Parameter(help="Of its own Redis, in GB; half of the machine's else.")] = None,
    evaluator: Annotated[bool, Parameter(help="Measure on this machine's CPU.")] = True,
    worker: Annotated[bool, Parameter(help="Play games on this machine, too.")] = False,
    device: Device = "auto",
    learner_memory: Annotated[float, Parameter(help="The learner's share of a GPU that a worker uses, too.")] = 0.5,
    worker_memory: Annotated[float, Parameter(help="The worker's share.")] = 0.4,
    detach: Annotated[bool, Parameter(negative="", help="Go on in the background; alea head stop ends it.")] = False,
    telling: Telling = Telling(),  # noqa: B008 - frozen
) -> int:
    """Start a run's head: Redis, learner, evaluator; others join it with the line that it prints."""
    return start_head(
        game,
        run=run,
        preset=preset,
        file=config,
        sets=[*(sets or []), *telling.assignments()],
        runs=runs,
        detach=detach,
        url=url,
        ca_file=ca,
        bind=bind,
        port=port,
        tls=(tls_cert, tls_key, tls_ca),
        fsync=fsync,
        max_memory=max_memory,
        evaluator=evaluator,
        worker=worker,
        device=device,
        learner_memory=learner_memory,
        worker_memory=worker_memory,
    )


def start_head(game: str | None, **options: Any) -> int:
    """What `alea head` and `alea runs start` share."""
    need_redis()
    if options.get("url") is not None:  # a wrong one is said before anything is made
        from aleazero.runtimes.redis.link import connect

        connect(options["url"], None, ca_file=options.get("ca_file")).close()
    compute_on("cpu")  # the head computes nothing: an accelerator is its children's
    from aleazero.cli import head as command

    return command.head(game, **options)


@head_app.command(name="stop")
def head_stop(
    *,
    run: OfRun = None,
    wait: Annotated[float, Parameter(help="Seconds until it must have ended; else the exit code is 1.")] = 180.0,
    runs: Runs = None,
) -> int:
    """Stop a run's head and all that it has started, with a checkpoint."""
    need_redis()
    from aleazero.cli import head as command

    return command.stop(run, wait, runs)


@worker_app.command(name="game")
def worker_game(
    *,
    url: Url = None,
    token: TokenText = None,
    ca: CaFile = None,
    config: AccessFile = None,
    wait: Wait = False,
    stop_file: StopFile = None,
    num_games: Annotated[
        int | None, Parameter(help="At once; as in this machine's profile if left out, else 128.")
    ] = None,
    gpu_memory: GpuMemory = None,
    device: Device = "auto",
) -> int:
    """Play games for a run."""
    need_redis()
    from aleazero.cli import worker as command

    return command.game(
        command.Access(url, token, ca, config),
        wait=wait,
        stop_file=stop_file,
        num_games=num_games,
        gpu_memory=gpu_memory,
        device=device,
    )


@worker_app.command(name="train")
def worker_train(
    *,
    run: OfRun = None,
    runs: Runs = None,
    gpu_memory: GpuMemory = None,
    device: Device = "auto",
) -> int:
    """Learn from what the workers of a run send; where the run's folder is. (The head starts one.)"""
    need_redis()
    from aleazero.cli import worker as command

    return command.train(run, runs, gpu_memory=gpu_memory, device=device)


@worker_app.command(name="eval")
def worker_eval(
    *,
    url: Url = None,
    token: TokenText = None,
    ca: CaFile = None,
    config: AccessFile = None,
    wait: Wait = False,
    stop_file: StopFile = None,
    runs: Runs = None,
    device: Device = "cpu",
) -> int:
    """Play matches that measure a run."""
    need_redis()
    from aleazero.cli import worker as command

    return command.evaluate(
        command.Access(url, token, ca, config), wait=wait, stop_file=stop_file, runs=runs, device=device
    )


@worker_app.command(name="stop")
def worker_stop(
    name: Annotated[str, Parameter(help="The worker's name, as alea status shows it.")],
    *,
    run: OfRun = None,
    wait: Annotated[float, Parameter(help="Seconds until it must have left; else the exit code is 1.")] = 60.0,
    runs: Runs = None,
) -> int:
    """Ask a worker to finish and leave; where the run's folder is."""
    need_redis()
    from aleazero.cli import members as command

    return command.stop(name, run, wait, runs)


@worker_app.command(name="token")
def worker_token(
    name: Annotated[str, Parameter(help="What the worker is to be called.")],
    *,
    run: OfRun = None,
    revoke: Annotated[bool, Parameter(negative="", help="Let it in no longer.")] = False,
    runs: Runs = None,
    as_json: Json = False,
) -> int:
    """Make a token for another worker, or take one away; where the run's folder is."""
    need_redis()
    from aleazero.cli import members as command

    return command.token(name, run, runs, revoke=revoke, as_json=as_json)
