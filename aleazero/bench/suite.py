"""`alea bench`: from options to what was found, a profile, files and an exit code.

The one entry that both command lines call. Prints nothing: it tells `say` how it goes.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import shlex
from pathlib import Path
from typing import Any

import jax

import aleazero
from aleazero import __version__
from aleazero.bench import memory, profiles
from aleazero.bench.cases import BenchError, Kind, Options, Setup, Unsuited, check, game_of
from aleazero.bench.measure import Say, Size, best_size, discover, in_words, measure_all
from aleazero.bench.report import Report, refuse_to_overwrite
from aleazero.bench.rules import GAME_ENV
from aleazero.bench.searches import EXPECTIMAX, MCTS, NETWORK, STOCHASTIC_MCTS
from aleazero.bench.training import REPLAY, SELFPLAY, TRAIN_STEP
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.result_record import checkout

KINDS = {
    kind.name: kind for kind in (GAME_ENV, MCTS, STOCHASTIC_MCTS, EXPECTIMAX, NETWORK, TRAIN_STEP, REPLAY, SELFPLAY)
}
SHORT = 12  # digits of a commit
_PACKAGES = ("jax", "jaxlib", "flax", "pgx", "mctx", "open_spiel")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    report: Report
    folder: Path  # where it was written
    verdict: profiles.Verdict | None  # with --validate

    @property
    def exit_code(self) -> int:
        """1 if this machine has become slower than is tolerated."""
        return 1 if self.verdict is not None and self.verdict.fails else 0


def run(options: Options, say: Say = lambda line: None) -> Outcome:
    """Measures what the options ask for. Everything that is wrong with them is said before anything is measured."""
    kind = _kind(options.kind)
    check(options, kind)
    where = profiles.hardware()
    place = profiles.place(kind.name, options.game, options.preset or "standard", where)
    profile = None
    if options.validate:
        profile = profiles.load(place)
        options = _as_in_profile(options, profile)
    if options.discover:
        profiles.refuse_to_overwrite(place, force=options.force)
    folder = options.out or _folder(options)
    refuse_to_overwrite(folder, force=options.force)
    setup = Setup(options, game_of(options.game), memory.room(options.memory_limit))
    if misfit := kind.misfit(setup):
        raise Unsuited(misfit)
    sizes = _sizes(kind, setup, profile, say)
    best = _front(options, sizes)
    commit, dirty = checkout(Path(aleazero.__file__).parent)
    report = Report(
        kind=kind.name,
        game=options.game,
        counted=kind.counted,
        hardware=str(where),
        backend=jax.default_backend(),
        versions=_versions(),
        settings=options.settings(),
        command=command_line(options),
        sizes=sizes,
        best=best,
        peer=options.compare,
        profile=place if options.discover else None,
        commit=commit and commit[:SHORT],
        dirty=dirty,
    )
    verdict = None
    if profile is not None:
        verdict = profiles.judge(profile, best.batch, _figures(best), options.tolerance)
    if options.discover:
        profiles.save(place, _profile(where, options, sizes, best), force=options.force)
    report.write(folder, force=options.force)
    return Outcome(report, folder, verdict)


def command_line(options: Options) -> str:
    """The command that measures the same again."""
    words = ["alea", "bench", options.kind]
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name in ("kind", "runs", "out", "force") or not options.gives(field.name):
            continue
        if field.name == "tolerance" and not options.validate:
            continue
        if field.name == "sets":
            words += [text for given in value for text in ("--set", given)]
            continue
        words += ["--" + field.name.replace("_", "-")] + ([] if value is True else [_text(value)])
    return shlex.join(words)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _kind(name: str) -> Kind:
    if name not in KINDS:
        raise UnknownName("kind of benchmark", name, KINDS)
    return KINDS[name]


def _as_in_profile(options: Options, profile: profiles.Profile) -> Options:
    """A profile is compared with under its own settings; others that are given must be the same."""
    kept: dict[str, Any]
    kept, given = (
        {name: tuple(x) if isinstance(x, list) else x for name, x in settings.items()}
        for settings in (profile.settings, options.settings())
    )
    wrong = [
        f"--{name.replace('_', '-')} is {value!r}, and the profile was made with {kept.get(name)!r}"
        for name, value in given.items()
        if kept.get(name, "standard" if name == "preset" else None) != value
    ]
    if wrong:
        raise ConfigError("\n".join([*wrong, "leave it out, or make a profile of it with --discover --force"]))
    return dataclasses.replace(options, **kept)


def _sizes(kind: Kind, setup: Setup, profile: profiles.Profile | None, say: Say) -> list[Size]:
    if setup.options.discover:
        return discover(kind, setup, say)
    batches = setup.options.batch_sizes or ((profile.batch,) if profile else kind.default_sizes(setup))
    if profile is not None and any(str(batch) not in profile.sizes for batch in batches):
        known = ", ".join(sorted(profile.sizes, key=int))
        raise ConfigError(f"the profile has no batch {', '.join(map(str, batches))}; it has {known}")
    return measure_all(kind, setup, batches, say)


def _front(options: Options, sizes: list[Size]) -> Size:
    """The size whose figures stand for the run: the fastest, or the best one that was discovered."""
    measured = [size for size in sizes if size.problem is None]
    if not measured:
        raise BenchError("\n".join(in_words(size) for size in sizes))
    if options.discover:
        best = best_size(sizes)
        assert best is not None
        return best
    return max(measured, key=lambda size: size.rate.per_second)


def _profile(where: profiles.Hardware, options: Options, sizes: list[Size], best: Size) -> profiles.Profile:
    return profiles.Profile(
        hardware=where.name,
        jax_version=where.jax_version,
        game=options.game,
        kind=options.kind,
        settings=options.settings(),
        batch=best.batch,
        unit=best.rate.unit,
        sizes={str(size.batch): list(_figures(size)) for size in sizes if size.problem is None},
        made=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def _figures(size: Size) -> tuple[float, float, float]:
    return size.rate.per_second, size.rate.low, size.rate.high


def _folder(options: Options) -> Path:
    """A new one below the user's data."""
    moment = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    stem = f"{moment}-{options.kind}-{options.game.replace(':', '_')}"
    root, number = profiles.data_root() / "bench", 1
    while (folder := root / (stem if number == 1 else f"{stem}-{number}")).exists():
        number += 1
    return folder


def _versions() -> dict[str, str]:
    found = {"aleazero": __version__}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
