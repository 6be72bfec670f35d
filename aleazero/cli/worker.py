"""`alea worker game`, `train` and `eval`: from an address and a token to a worker.

Nothing heavy is imported before there is a connection: who cannot get in is told so within a second or two.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from aleazero.cli.answer import DONE
from aleazero.cli.options import compute_on
from aleazero.core.errors import ConfigError
from aleazero.core.settings import load_file
from aleazero.runtimes.redis.access import HEAD, AccessError, Token
from aleazero.runtimes.redis.link import Link, connect, without_secrets

DEFAULT_GAMES = 128
KEYS = ("url", "token", "token_file", "ca")


@dataclasses.dataclass(frozen=True)
class Access:
    """How a worker gets in, as far as flags and the environment say."""

    url: str | None
    token: str | None
    ca: Path | None
    file: Path | None

    def resolved(self) -> tuple[str, Token, Path | None]:
        """With what a file says where they do not."""
        values = self._file_values()
        url, text = self.url or values.get("url"), self.token or values.get("token")
        if text is None and "token_file" in values:
            text = Token.read(Path(values["token_file"]).expanduser()).text
        missing = [
            f'no {what}: give --{flag}, set {variable}, or write {flag} = "..." into {_default_file()}'
            for what, flag, variable, value in (
                ("address of a Redis", "url", "ALEA_REDIS_URL", url),
                ("token", "token", "ALEA_TOKEN", text),
            )
            if not value
        ]
        if missing:
            raise ConfigError("\n".join(missing))
        ca = self.ca or (Path(values["ca"]).expanduser() if "ca" in values else None)
        return without_secrets(str(url)), Token.parse(str(text)), ca

    def _file_values(self) -> dict[str, Any]:
        path = self.file or _default_file()
        if self.file is None and not path.exists():
            return {}
        values = dict(load_file(path).values)
        if unknown := sorted(set(values) - set(KEYS)):
            raise ConfigError(f"{path}: unknown: {', '.join(unknown)}; known: {', '.join(KEYS)}")
        return values


def _default_file() -> Path:
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home / "aleazero" / "worker.toml"


class Asked:
    """Whether a worker is to come to a good end: by a signal, or by a file."""

    def __init__(self, stop_file: Path | None) -> None:
        self._file, self.event = stop_file, threading.Event()

    def now(self) -> bool:
        """Whether it is."""
        return self.event.is_set() or (self._file is not None and self._file.exists())

    def hear(self, number: int, frame: FrameType | None) -> None:
        """The first signal asks; the second does not wait."""
        if self.event.is_set():
            raise KeyboardInterrupt
        self.event.set()
        os.write(2, b"finishing what is played; once more stops at once\n")


@contextlib.contextmanager
def _prepared(access: Access, wait: bool, stop_file: Path | None) -> Iterator[tuple[Link, Token, Asked]]:
    """A link, made before anything heavy is done; signals that ask for a good end; words on standard error."""
    url, token, ca = access.resolved()
    if token.name == HEAD:
        raise AccessError("this is the head's own token: make one for the worker with alea worker token NAME")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    words = logging.getLogger("aleazero")
    level = words.level
    words.setLevel(logging.INFO)
    asked, numbers = Asked(stop_file), (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, asked.hear) for number in numbers]
    try:
        with contextlib.closing(connect(url, token, wait=wait, stop=asked.event, ca_file=ca)) as link:
            yield link, token, asked
    finally:
        words.setLevel(level)
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def game(
    access: Access,
    *,
    wait: bool,
    stop_file: Path | None,
    num_games: int | None,
    gpu_memory: float | None,
    device: str,
) -> int:
    """Plays games for a run."""
    with _prepared(access, wait, stop_file) as (link, token, asked):
        _use(device, gpu_memory)
        from aleazero.core.devices import use_every_core
        from aleazero.runtimes.redis.game import GameWorker

        use_every_core()
        choose = (lambda config: num_games) if num_games is not None else (lambda config: _profiled(config.game))
        GameWorker(link, token, num_games=choose, stop=asked.now, wait=wait).run()
    return DONE


def train(run: str | None, runs: Path | None, *, gpu_memory: float | None, device: str) -> int:
    """Learns."""
    _use(device, gpu_memory)
    from aleazero.cli.common import active_run
    from aleazero.runs import runs_root
    from aleazero.runtimes.redis.learner import learn

    root = runs_root(runs)
    finished = learn(active_run(root, run), root)
    print(f"run {finished.folder.name}: {finished.status}")
    return DONE


def evaluate(access: Access, *, wait: bool, stop_file: Path | None, runs: Path | None, device: str) -> int:
    """Plays matches."""
    with _prepared(access, wait, stop_file) as (link, token, asked):
        _use(device, None)
        from aleazero.runs import runs_root
        from aleazero.runtimes.redis.evaluator import EvalWorker

        EvalWorker(link, token, stop=asked.now, wait=wait, root=runs_root(runs)).run()
    return DONE


def _use(device: str, gpu_memory: float | None) -> None:
    """Before anything is computed."""
    if gpu_memory is not None:
        if not 0 < gpu_memory <= 1:
            raise ConfigError(f"--gpu-memory is {gpu_memory}; it must be above 0 and at most 1")
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(gpu_memory)
    compute_on(device)
    from aleazero.core.compilation import set_up_compiling

    set_up_compiling()


def _profiled(game: str) -> int:
    """How many games this machine plays best at once, by its newest profile of self-play."""
    from aleazero.bench.profiles import SELFPLAY, ProfileError, hardware, load, place

    folder = place(SELFPLAY, game, None, hardware()).parent
    files = sorted(folder.glob(f"{game.replace(':', '_')}-{SELFPLAY}*.json"), key=lambda file: file.stat().st_mtime)
    for file in reversed(files):
        with contextlib.suppress(ProfileError):
            return load(file).batch
    return DEFAULT_GAMES
