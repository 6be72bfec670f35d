"""`alea head`: from settings to a run's head, in this process or in the background."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from aleazero.cli.answer import DONE, FAILED
from aleazero.cli.common import active_run
from aleazero.config import MAY_CHANGE, RunConfig, changes_refused, is_given, resolve
from aleazero.core.errors import AleaError, ConfigError, UnknownName
from aleazero.core.settings import Layer, build, load_file, parse_assignments, to_dict
from aleazero.observe.logs import configure_logging
from aleazero.players import make_player
from aleazero.runs import RunFolder, new_run, runs_root
from aleazero.runtimes.desk import model_name, need_extras
from aleazero.runtimes.redis.access import Token
from aleazero.runtimes.redis.head import Head, HeadOptions, is_local
from aleazero.runtimes.redis.home import Address, Home
from aleazero.runtimes.redis.server import Tls

GROUP_GAMES = 128  # of a group that a worker plays: what any machine can
READY_SECONDS = 150.0
POLL_SECONDS = 0.1


def head(
    game: str | None,
    *,
    run: str | None,
    preset: str,
    file: Path | None,
    sets: list[str] | None,
    runs: Path | None,
    detach: bool,
    tls: tuple[Path | None, Path | None, Path | None] = (None, None, None),
    max_memory: float | None = None,
    **given: Any,
) -> int:
    """Starts a head, of a run that is there or a new one."""
    root = runs_root(runs).absolute()
    options = HeadOptions(
        tls=_tls(tls), max_memory_bytes=None if max_memory is None else int(max_memory * 2**30), **given
    )
    folder = _folder(game, run, preset, file, sets or [], root)
    if detach:
        return _in_background(folder, root, options)
    return _here(folder, root, options)


def stop(run: str | None, wait: float, runs: Path | None) -> int:
    """Asks a head to stop, and waits until it has."""
    home = Home(active_run(runs_root(runs), run))
    pid = home.owner()
    if pid is None:
        print(f"run {home.folder.name!r} has no head on this machine")
        return DONE
    home.stop_file.touch()
    end = time.monotonic() + wait
    while home.owner() is not None:
        if time.monotonic() >= end:
            print(
                f"alea: the head of run {home.folder.name!r} (process {pid}) has not ended in {wait:g} s",
                file=sys.stderr,
            )
            return FAILED
        time.sleep(POLL_SECONDS)
    home.stop_file.unlink(missing_ok=True)
    print(f"run {home.folder.name!r}: stopped; go on with: alea head --run {home.folder.name}")
    return DONE


# ---- the run


def _folder(
    game: str | None, run: str | None, preset: str, file: Path | None, sets: list[str], root: Path
) -> RunFolder:
    """The run's folder, with its settings in it."""
    old = RunFolder(root / run) if run else None
    if old is not None and old.config_file.exists():
        before = old.read_config()
        layers = [Layer(str(old.config_file), to_dict(before)), *([load_file(file)] if file else [])]
        config = build(RunConfig, [*layers, parse_assignments(sets)])
        refused = changes_refused(before, config)
        if game and game != before.game:
            refused.append(f"run {run!r} is of {before.game}, not {game}")
        if refused:
            allowed = ", ".join(MAY_CHANGE)
            raise ConfigError("\n".join([*refused, f"a run that goes on may change only {allowed}; start a new one"]))
        _check(config, root)
        if config != before:
            old.write_config(config)
        return old
    config = resolve(game, preset=preset, file=file, assignments=sets)
    if config.selfplay.num_games > GROUP_GAMES and not is_given("selfplay.num_games", file, sets):
        config = dataclasses.replace(config, selfplay=dataclasses.replace(config.selfplay, num_games=GROUP_GAMES))
    _check(config, root)
    folder = new_run(root, run, f"{model_name(config)}-{preset}")
    folder.write_config(config)
    return folder


def _check(config: RunConfig, root: Path) -> None:
    """All that is wrong is said before anything is started; opponents that are not here are left to others."""
    import jax

    from aleazero.assemble import build_parts
    from aleazero.starting import starting_weights

    need_extras(config.observe)
    parts = build_parts(config, jax.local_devices()[:1], root)
    if config.learn.start_from:
        starting_weights(config, parts.game, parts.model, root)
    problems = []
    for opponent in config.evaluate.opponents:
        try:
            make_player(opponent, parts.game, root)
        except (ConfigError, UnknownName) as error:
            problems.append(f"evaluate.opponents: {error}")
        except AleaError as error:
            print(f"alea: {error}; workers that have it will play it", file=sys.stderr)
    if problems:
        raise ConfigError("\n".join(problems))


def _tls(files: tuple[Path | None, Path | None, Path | None]) -> Tls | None:
    cert, key, ca = files
    if cert is None and key is None and ca is None:
        return None
    if cert is None or key is None or ca is None:
        raise ConfigError("TLS needs all three of --tls-cert, --tls-key and --tls-ca")
    return Tls(cert.absolute(), key.absolute(), ca.absolute())


# ---- the process


def _here(folder: RunFolder, root: Path, options: HeadOptions) -> int:
    home = Home(folder)
    home.logs.mkdir(parents=True, exist_ok=True)
    undo = configure_logging(home.logs / "head_1.log", False, "INFO")
    try:
        status = Head(folder, root, options).run(lambda address, token: _tell(folder, address, token))
    finally:
        undo()
    print(f"run {folder.name}: {status}")
    return DONE


def _tell(folder: RunFolder, address: Address, guest: Token) -> None:
    ca = f" --ca {address.ca_file}" if address.ca_file else ""
    print(f"run {folder.name}: head is process {address.pid}; logs in {folder.path / 'logs'}")
    print("join it:   ", f"alea worker game --url {address.outside} --token {guest.text}{ca}")
    if is_local(address.outside):
        print("            (from this machine alone; with --bind 0.0.0.0 from others, too)")
    print("more:      ", f"alea worker token NAME --run {folder.name}    (each worker needs a token of its own)")
    print("look at it:", f"alea status {folder.name}", flush=True)


def _in_background(folder: RunFolder, root: Path, options: HeadOptions) -> int:
    """Starts the same in a session of its own, and waits until workers can come."""
    home = Home(folder)
    if (pid := home.owner()) is not None:
        raise ConfigError(f"run {folder.name!r} has a head already: process {pid} on this machine")
    home.logs.mkdir(parents=True, exist_ok=True)
    said = home.logs / "head_1.out"
    command = [sys.executable, "-m", "aleazero.cli.main", "head", "--run", folder.name, "--runs", str(root)]
    with open(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        # A URL may hold a password: it goes by the environment.
        environment = os.environ | ({"ALEA_HEAD_URL": options.url} if options.url else {})
        child = subprocess.Popen(
            [*command, *_as_arguments(options)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        text = said.read_text("utf-8", errors="replace")
        if "look at it:" in text:
            print(text, end="")
            print("stop it:   ", f"alea head stop --run {folder.name}")
            return DONE
        if child.poll() is not None:
            print(text, end="", file=sys.stderr)
            return FAILED
        time.sleep(POLL_SECONDS)
    print(f"alea: the head (process {child.pid}) is not ready after {READY_SECONDS:.0f} s: see {said}", file=sys.stderr)
    return FAILED


def _as_arguments(options: HeadOptions) -> list[str]:
    """The options of `alea head` that say the same."""
    words: list[str] = []
    for name in ("ca_file", "bind", "port", "fsync", "device", "learner_memory", "worker_memory"):
        value = getattr(options, name)
        if value is not None:
            words += [f"--{'ca' if name == 'ca_file' else name.replace('_', '-')}", str(value)]
    if options.max_memory_bytes is not None:
        words += ["--max-memory", str(options.max_memory_bytes / 2**30)]
    if options.tls is not None:
        tls = options.tls
        words += ["--tls-cert", str(tls.cert_file), "--tls-key", str(tls.key_file), "--tls-ca", str(tls.ca_file)]
    for name in ("evaluator", "worker"):
        words.append(f"--{'' if getattr(options, name) else 'no-'}{name}")
    return words
