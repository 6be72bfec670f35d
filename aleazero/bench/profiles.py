"""What is known of this machine: the batch sizes that `alea bench --discover` found best, and what they brought.

    $ALEA_DATA or $XDG_DATA_HOME/aleazero or ~/.local/share/aleazero
        profiles/HARDWARE/jax-VERSION/GAME-KIND[-PRESET].json
`alea train` takes `selfplay.num_games` from the profile of self-play, if nobody else says what it is.
Knows how profiles are kept and used, not how they are measured.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import jax

from aleazero.config import RunConfig, is_given
from aleazero.core.devices import cores, lanes_step
from aleazero.core.errors import AleaError
from aleazero.core.files import replace_file
from aleazero.core.game import Game
from aleazero.games.registry import make_game

FORMAT = 1
SELFPLAY = "selfplay"
QUIET = 0.03  # two runs on a quiet machine may differ by this much for no reason


class ProfileError(AleaError):
    """A profile is missing, in the way, or cannot be read or written."""


@dataclasses.dataclass(frozen=True)
class Hardware:
    """Where things are computed, as far as speed depends on it."""

    name: str  # "2 cores of AMD EPYC", "NVIDIA H200"
    jax_version: str

    @property
    def folder(self) -> Path:
        """Where its profiles are, below the root of profiles."""
        return Path(re.sub(r"[^A-Za-z0-9]+", "-", self.name).strip("-").lower(), f"jax-{self.jax_version}")

    def __str__(self) -> str:
        return f"{self.name}, jax {self.jax_version}"


@dataclasses.dataclass(frozen=True)
class Profile:
    """The best batch size of one kind of benchmark of one game on one machine."""

    hardware: str
    jax_version: str
    game: str
    kind: str
    settings: dict[str, Any]  # of the benchmark, as `Options.settings` has them
    batch: int  # the best
    unit: str
    sizes: dict[str, list[float]]  # by batch size: throughput, and the low and high end of its 95 % interval
    made: str  # when, ISO 8601
    format: int = FORMAT


@dataclasses.dataclass(frozen=True)
class Verdict:
    """This machine now, against its profile."""

    word: Literal["faster", "same", "slower"]
    ratio: float  # now over then
    noise: float  # as a share: differences below it mean nothing
    fails: bool  # slower by more than the tolerance, whatever the noise

    def __str__(self) -> str:
        return f"{self.word}: {self.ratio:.3f} times the profile, noise {self.noise:.1%}"


def data_root() -> Path:
    """Where what belongs to this user and this machine is kept."""
    home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return Path(os.environ.get("ALEA_DATA") or home / "aleazero")


def hardware() -> Hardware:
    """This machine's."""
    devices = jax.local_devices()
    if devices[0].platform != "cpu":
        name = devices[0].device_kind
        return Hardware(f"{len(devices)} x {name}" if len(devices) > 1 else name, jax.__version__)
    count = cores()
    return Hardware(f"{count} {'core' if count == 1 else 'cores'} of {_processor()}", jax.__version__)


def place(kind: str, game: str, preset: str | None, where: Hardware) -> Path:
    """The file of a profile."""
    words = [game.replace(":", "_"), kind] + ([preset] if kind == SELFPLAY and preset else [])
    return data_root() / "profiles" / where.folder / ("-".join(words) + ".json")


def save(path: Path, profile: Profile, *, force: bool) -> None:
    """Writes a profile; over another one only by `force`."""
    refuse_to_overwrite(path, force=force)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(dataclasses.asdict(profile), indent=2).encode() + b"\n")
    except OSError as error:
        raise ProfileError(f"the profile could not be written to {path}: {error}; set ALEA_DATA elsewhere") from error


def refuse_to_overwrite(path: Path, *, force: bool) -> None:
    """Raises where there is a profile already and nobody says that it may go."""
    if path.exists() and not force:
        raise ProfileError(
            f"this machine has a profile already: {path}; --validate compares with it, --force makes it anew"
        )


def load(path: Path) -> Profile:
    """Reads a profile; a missing one is explained by those that there are."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise ProfileError(_missing(path)) from None
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error}") from error
    try:
        found = json.loads(text)
        if found["format"] != FORMAT:
            raise ProfileError(
                f"{path} has format {found['format']}, not {FORMAT}: make it anew with --discover --force"
            )
        profile = Profile(**found)
        if str(profile.batch) not in profile.sizes or not all(_sound(figures) for figures in profile.sizes.values()):
            raise ValueError(f"batch {profile.batch} of {profile.sizes}")
        return profile
    except (KeyError, TypeError, ValueError) as error:
        raise ProfileError(f"{path} is no profile ({error}): make it anew with --discover --force") from error


def judge(profile: Profile, batch: int, now: tuple[float, float, float], tolerance: float) -> Verdict:
    """What a new measurement (throughput, low, high) says; both intervals and some unrest count as noise."""
    then = profile.sizes[str(batch)]
    ratio = now[0] / then[0]
    widths = [(high - low) / (2 * median) for median, low, high in (now, then)]
    noise = math.sqrt(sum(width**2 for width in widths) + QUIET**2)
    word: Literal["faster", "same", "slower"] = "same"
    if abs(ratio - 1) > noise:
        word = "faster" if ratio > 1 else "slower"
    return Verdict(word, ratio, noise, fails=ratio + noise < 1 - tolerance)


def _sound(figures: list[float]) -> bool:
    median, low, high = figures
    return 0 < low <= median <= high < math.inf


# ---- what training takes from it


def with_num_games(
    config: RunConfig,
    preset: str,
    file: Path | None = None,
    assignments: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> tuple[RunConfig, str | None]:
    """The settings with the profile's `selfplay.num_games`, and what to tell the user about it.

    Nothing changes, and nothing is said, where somebody gave that setting or there is no profile. Where the number
    does not fit the other settings, they stay as they are and the reason is told.
    """
    if is_given("selfplay.num_games", file, assignments, environ):
        return config, None
    path = place(SELFPLAY, config.game, preset, hardware())
    if not path.is_file():
        return config, None
    try:
        profile = load(path)
    except ProfileError as error:
        return config, f"selfplay.num_games stays {config.selfplay.num_games}: {error}"
    batch, own = profile.batch, config.selfplay.num_games
    other = {name: value for name, value in profile.settings.items() if name != "preset"}
    source = f"this machine's profile ({path}" + (f"; measured with {other})" if other else ")")
    if batch == own:
        return config, f"selfplay.num_games is {own}, as in {source}"
    changed = dataclasses.replace(config, selfplay=dataclasses.replace(config.selfplay, num_games=batch))
    problems = _problems(changed)
    if problems:
        return config, f"selfplay.num_games stays {own}: {source} has {batch}, but {'; '.join(problems)}"
    return changed, f"selfplay.num_games is {batch}, from {source}; the preset has {own}"


def _problems(config: RunConfig) -> list[str]:
    game = make_game(config.game)
    found = config.problems() + (config.problems_with(game) if isinstance(game, Game) else [])
    devices = lanes_step()
    if config.selfplay.num_games % devices:
        found.append(f"{config.selfplay.num_games} is no multiple of the {devices} devices")
    return found


def _missing(path: Path) -> str:
    here = hardware()
    kind = path.stem
    others = sorted(data_root().glob(f"profiles/*/*/{path.name}"))
    said = f"there is no profile {kind!r} of this machine ({here}) yet: make one with --discover"
    if others:
        names = ", ".join(f"{other.parent.parent.name} ({other.parent.name})" for other in others)
        said += f". There are profiles of other hardware or another JAX, which say nothing of this one: {names}"
    return said


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "CPU"
