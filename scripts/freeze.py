"""Makes data of tests/frozen again: run folders, a replay log, networks, bytes on the wire, result records.

    python scripts/freeze.py                 lists the names, makes nothing, exits with 2
    python scripts/freeze.py search wire     makes these again

Frozen data changes only where a format changes on purpose, in a commit of its own that says why. Read the difference
first: the layout of a run is text in tests/frozen/runs/NAME.json. `exports` and `records` are made from the runs: make
them again after a run. Times, speeds, sizes of memory and paths are replaced by neutral values. Each name takes less
than a minute on two cores; `rllib` starts a Ray of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.frozen import support
from tests.frozen.support import BUNDLED, EXPORTS, RECORDS, REPLAY, RUNS, WIRE, alea

SMALL = ("model.width=8", "model.blocks=1", "observe.every_seconds=0", "observe.hardware_seconds=0")
TICTACTOE = ("XO./.../...", "X.O/.X./...", "XOX/OXO/...")
BACKGAMMON = ("4HPwATDgc/ABMA:31", "4HPwATDgc/ABMA:66", "4HPwATDgc/ABMA:52")
SEEDS = ("1", "2", "3")
_STARTED = 1_767_225_600  # 2026-01-01


def search() -> None:
    settings = [
        *("total_rows=256", "search.max_simulations=4", "selfplay.num_games=8", "selfplay.moves_per_rollout=8"),
        *("selfplay.random_plies=2", "replay.capacity_rows=256", "replay.min_rows=128", "learn.batch_size=32"),
        *("evaluate.opponents=random", "evaluate.games=16", "evaluate.every_rows=256", "checkpoint.every_rows=256"),
    ]
    make_run("search", "tictactoe", "quick", settings, TICTACTOE)


def turns() -> None:
    settings = [
        *("total_rows=128", "selfplay.num_games=4", "selfplay.moves_per_rollout=16", "replay.capacity_rows=128"),
        *("replay.min_rows=64", "replay.log=true", "learn.batch_size=32", "evaluate.opponents="),
        "checkpoint.every_rows=128",
    ]
    make_run("turns", "backgammon", "quick", settings, BACKGAMMON)


def ppo() -> None:
    settings = [
        *("total_rows=128", "selfplay.num_games=4", "selfplay.moves_per_rollout=16", "learn.batch_size=32"),
        *(
            "ppo.epochs=2",
            "ppo.opponents=2",
            "ppo.opponents_every=1",
            "evaluate.opponents=",
            "checkpoint.every_rows=128",
        ),
    ]
    make_run("ppo", "tictactoe", "ppo", settings, TICTACTOE)


HOST = (
    *("total_rows=128", "selfplay.num_games=4", "selfplay.moves_per_rollout=16", "learn.batch_size=32"),
    *("ppo.epochs=2", "evaluate.opponents=", "checkpoint.every_rows=128"),
)


def gym() -> None:
    make_run("gym", "gym:CartPole-v1", "quick", HOST, SEEDS)


def balatro() -> None:
    make_run(
        "balatro",
        "balatro",
        "quick",
        [*HOST, "selfplay.num_games=2", "model.width=4", "checkpoint.keep_weights=0"],
        SEEDS,
    )


def rllib() -> None:
    ray = ("runtime=rllib", "ray.workers=1", "ray.object_store_gb=0.1")
    make_run("rllib", "gym:CartPole-v1", "quick", [*HOST, *ray], SEEDS)


def make_run(name: str, game: str, preset: str, settings: Any, positions: tuple[str, ...]) -> None:
    """Train a run, keep its last checkpoint, and write what tests expect of it."""
    with workplace() as root:
        sets = [word for setting in (*SMALL, *settings) for word in ("--set", setting)]
        alea("train", game, "--preset", preset, "--runs", root, "--name", name, *sets)
        made = root / name
        tidy(made, root)
        facts: dict[str, Any] = {
            "game": game,
            "rows": alea("status", name, "--runs", root)["rows"],
            "files": sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()),
            "checkpoint": support.checkpoint_layout(support.newest(made / "checkpoints")),
            "reports": support.report_layout((made / "metrics.jsonl").read_text()),
            "outputs": support.outputs(f"run:{name}", game, positions, root),
        }
        if (made / "versions").is_dir():
            facts["version"] = support.checkpoint_layout(support.newest(made / "versions"))
        if (made / "replay").is_dir():
            facts["replay"] = support.log_digests(made)
        keep(made, RUNS / name)
        if name == "search":  # its network is registered, because it has a match
            shutil.rmtree(RUNS / ".desk", ignore_errors=True)
            (root / ".desk" / "models" / game / "lock").unlink(missing_ok=True)
            shutil.copytree(root / ".desk" / "models", RUNS / ".desk" / "models")
        if name != "rllib":  # its games are played by processes in any order
            facts["resumed"] = support.resume(root, name, facts["rows"])
            facts["resumed"]["outputs"] = support.outputs(f"run:{name}", game, positions, root)
        write_json(RUNS / f"{name}.json", facts)


def tidy(made: Path, root: Path) -> None:
    """Leave what a resumed run needs, without what differs from machine to machine."""
    for name in ("run.lock", "run.pid", "curves.svg"):
        (made / name).unlink(missing_ok=True)
    for place in ("checkpoints", "versions"):
        for folder in sorted((made / place).glob("[0-9]*"))[:-1]:
            shutil.rmtree(folder)
    log = made / "alea.log"
    log.write_text(re.sub(r"^[-0-9]+ [:,0-9]+", "2026-01-01 00:00:00,000", log.read_text(), flags=re.MULTILINE))
    lines = []
    for number, line in enumerate((made / "metrics.jsonl").read_text().splitlines()):
        report = {key: neutral(key, value) for key, value in json.loads(line).items()}
        report["time"] = float(_STARTED + number)
        lines.append(json.dumps(report).replace(str(root), "runs"))
    (made / "metrics.jsonl").write_text("\n".join(lines) + "\n")


def neutral(key: str, value: Any) -> Any:
    """Replace times, speeds and sizes of memory by a number of the same type."""
    measured = re.search(r"seconds$|_per_(second|hour)$|^memory_|_memory_", key)
    return type(value)(1) if measured and isinstance(value, float | int) else value


def replay() -> None:
    draw = np.random.default_rng(1)
    kinds = (
        "bool",
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
        "float16",
        "float32",
        "float64",
    )
    records: list[dict[str, np.ndarray]] = []
    for number in range(5):
        record = {
            f"of_{kind}": draw.integers(0, 2 if kind == "bool" else 100, (3, 2, 2)).astype(kind) for kind in kinds
        }
        records.append(record | {"source": np.int64(number % 2)})
    with workplace() as root:
        support.write_log(root / "log", records, segment_bytes=3500)
        facts = {
            "segment_bytes": 3500,
            "segments": {name: len(found) for name, found in support.log_records(root / "log").items()},
            "fields": {name: support.shape_text(np.asarray(array)) for name, array in records[0].items()},
            "rows": [support.row_digests(record) for record in records],
        }
        keep(root / "log", REPLAY / "log")
    write_json(REPLAY / "log.json", facts)


def exports() -> None:
    for name in ("search", "turns", "gym"):
        shape = ("--format", "onnx") if name != "gym" else ()
        with workplace() as root:
            shutil.copytree(RUNS / name, root / name)
            alea("export", name, "--out", root / "net", "--runs", root, *shape)
            game, positions = (support.read_json(RUNS / f"{name}.json")[key] for key in ("game", "outputs"))
            player = f"path:{root / 'net'}"
            facts = {
                "game": game,
                "files": sorted(path.name for path in (root / "net").iterdir()),
                "layout": support.export_layout(root / "net"),
                "outputs": support.outputs(player, game, positions),
            }
            keep(root / "net", EXPORTS / name)
        write_json(EXPORTS / f"{name}.json", facts)


BUNDLED_POSITIONS = {
    "backgammon": BACKGAMMON,
    "balatro": SEEDS,
    "chess": (
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5Q2/PPPP1PPP/RNB1K1NR w KQkq - 0 4",
        "8/8/8/4k3/8/4K3/4P3/8 b - - 0 1",
    ),
    "connect_four": (
        "......./......./......./......./......./...X...",
        "......./......./......./...O.../...X.../..OX...",
    ),
}


def bundled() -> None:
    for game, positions in BUNDLED_POSITIONS.items():
        folder = support.bundled_network(game)
        assert folder is not None
        facts = {"sha256": support.digests(folder), "outputs": support.outputs("bundled", game, positions)}
        write_json(BUNDLED / f"{game}.json", facts)


def wire() -> None:
    moves, games = 4, 3
    slab = support.hand_made_slab(moves, games)
    facts = {
        "game": "tictactoe",
        "secret": "a secret of thirty-two bytes....",
        "newest_version": 7,
        "envelope": {
            **{"run": "home", "worker": "laptop", "source": 2, "sequence": 5, "weights_version": 6},
            "schema": support.schema_of(slab, "tictactoe").fingerprint,
            **{"rows": moves * games, "games": int(slab["ended"].sum() + slab["truncated"].sum())},
        },
        "arrays": {name: support.shape_text(array) for name, array in slab.items()},
        "weights_version": 7,
    }
    weights = support.hand_made_weights()
    packed = support.pack_slab(support.envelope(facts["envelope"]), slab, facts["secret"].encode())
    WIRE.mkdir(parents=True, exist_ok=True)
    (WIRE / "slab.bin").write_bytes(packed)
    (WIRE / "weights.bin").write_bytes(support.pack_weights(7, weights))
    np.savez(WIRE / "slab.npz", **slab)
    np.savez(WIRE / "weights.npz", **support.named(weights))
    write_json(WIRE / "wire.json", facts)


def records() -> None:
    with workplace() as root:
        for kind in support.RECORD_COMMANDS:
            record = support.make_record(root, kind)
            record |= {"time": "2026-01-01T00:00:00+00:00", "commit": "0" * 40, "dirty": False}
            record["hardware"] = {"device": "1 x cpu", "processor": "a processor", "cores": 2}
            write_json(RECORDS / f"{kind}.json", record)


FIXTURES: dict[str, Callable[[], None]] = {
    made.__name__: made for made in (search, turns, ppo, gym, balatro, rllib, replay, exports, bundled, wire, records)
}


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A folder for work, and no settings but those that are named."""
    with tempfile.TemporaryDirectory() as name:
        for variable in [name for name in os.environ if name.startswith("ALEA_")]:
            del os.environ[variable]
        os.environ["ALEA_DATA"] = str(Path(name) / "data")
        (Path(name) / "runs").mkdir()
        yield Path(name) / "runs"


def keep(made: Path, place: Path) -> None:
    """Put a folder in the place of one that is kept."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(made, place)


def write_json(file: Path, facts: Any) -> None:
    """Write an object with one key a line, and short lists on one line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(facts, indent=1)
    text = re.sub(r"\[[^\[\]{}]*\]", lambda found: " ".join(found[0].split()), text)
    file.write_text(text + "\n")


def main() -> int:
    names = sys.argv[1:]
    unknown = [name for name in names if name not in FIXTURES]
    if not names or unknown:
        print(f"unknown: {', '.join(unknown)}" if unknown else "name what is to be made again", file=sys.stderr)
        print(f"names: {' '.join(FIXTURES)}", file=sys.stderr)
        return 2
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_disable_most_optimizations", True)  # as the tests have it
    for name in names:
        FIXTURES[name]()
        print(f"{name} is made again; read the difference: git diff tests/frozen")
    return 0


if __name__ == "__main__":
    sys.exit(main())
