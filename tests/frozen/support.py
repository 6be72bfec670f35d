"""What these tests use of the program, and readers of its files that share no code with it.

This file holds every import of `aleazero`, so that a change that moves modules edits no other. The readers use the
standard library, numpy, msgpack, zstd and safetensors.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import shutil
import struct
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import msgpack
import numpy as np
import safetensors.numpy

from aleazero.cli.main import run
from aleazero.core.game import HostGame
from aleazero.core.records import Trajectory
from aleazero.games.registry import make_game
from aleazero.host_players import load_player
from aleazero.players import bundled_folder, load_network
from aleazero.replay.log import ReplayLog
from aleazero.result_record import RecordError, read_record
from aleazero.runtimes.codec import (
    BadWeights,
    Envelope,
    pack_slab,
    pack_weights,
    unpack_slab,
    unpack_weights,
)
from aleazero.runtimes.slabs import BadSlab, SlabSchema

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = [
    "BadSlab",
    "BadWeights",
    "RecordError",
    "ReplayLog",
    "pack_slab",
    "pack_weights",
    "read_record",
    "unpack_slab",
    "unpack_weights",
]

FROZEN = Path(__file__).parent
RUNS, EXPORTS, BUNDLED = FROZEN / "runs", FROZEN / "exports", FROZEN / "bundled"
REPLAY, WIRE, RECORDS = FROZEN / "replay", FROZEN / "wire", FROZEN / "records"
TOLERANCE = 1e-4  # bits are equal on like processors only
MOST_NUMBERS = 48  # that are kept of one output

# ---- the program


def alea(*arguments: object) -> dict[str, Any]:
    """Run a command with `--json` and return the object that it prints last."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = run([*map(str, arguments), "--json"])
    assert code == 0, f"alea {' '.join(map(str, arguments))} exits with {code}: {err.getvalue()}"
    report = json.loads(out.getvalue().splitlines()[-1])
    assert isinstance(report, dict)
    return report


def outputs(player: str, game_name: str, positions: Iterable[str], runs: Path | None = None) -> dict[str, Any]:
    """Return the policy logits and the value distribution of a player's network, by position.

    Positions are texts in the game's notation, or seeds of games that run on the host. Of long outputs numbers at equal
    distances are kept.
    """
    game = make_game(game_name)
    texts = list(positions)
    if isinstance(game, HostGame):
        network = load_player(player, game_name, runs)
        model, weights = network.model, network.weights
        seen = network.game.observe(network.game.init_batch(np.array(texts, np.uint64)))
    else:
        model, weights = load_network(player, game, runs)
        observe = jax.jit(game.observe)
        seen = jnp.stack([observe(game.notation.parse_state(text)) for text in texts])
    found = jax.jit(lambda weights, seen: (output := model.apply(weights, seen), model.opinion_of(output)))(
        weights, seen
    )
    logits, opinion = found[0].logits, found[1]
    policy = [None] * len(texts) if logits is None else [some(row) for row in np.asarray(logits)]
    return {text: {"logits": policy[row], "value": some(np.asarray(opinion[row]))} for row, text in enumerate(texts)}


def some(row: np.ndarray) -> list[float]:
    """Return at most `MOST_NUMBERS` of the numbers, with six digits."""
    return [float(f"{number:.6g}") for number in row[:: -(-len(row) // MOST_NUMBERS)]]


def bundled_network(game_name: str) -> Path | None:
    """Return the folder of the network that comes with the package for a game."""
    return bundled_folder(make_game(game_name))


def schema_of(slab: Mapping[str, np.ndarray], game_name: str) -> SlabSchema:
    """Return what slabs of a run must look like whose slabs have these arrays."""
    return SlabSchema.of(Trajectory(**slab), make_game(game_name).spec)


def envelope(facts: Mapping[str, Any]) -> Envelope:
    """Return the header of a slab."""
    return Envelope(
        run=facts["run"],
        worker=facts["worker"],
        source=facts["source"],
        sequence=facts["sequence"],
        weights_version=facts["weights_version"],
        schema=facts["schema"],
        rows=facts["rows"],
        games=facts["games"],
    )


def write_log(folder: Path, records: Sequence[Mapping[str, np.ndarray]], segment_bytes: int) -> None:
    """Write a replay log."""
    log = ReplayLog(folder, segment_bytes)
    for number, arrays in enumerate(records):
        log.append(number, arrays)
    log.close()


# ---- comparing


def expect_none(problems: Sequence[str]) -> None:
    """Fail with all problems, where there are any."""
    assert not problems, "\n".join(problems)


def near(found: Any, kept: Any, tolerance: float = TOLERANCE) -> list[str]:
    """Return where numbers in nested mappings and lists are not those that were kept, or keys are not the same."""
    pairs = list(zip(*(flat(tree) for tree in (found, kept)), strict=False))
    problems = misfits({name: "" for name, _ in flat(found)}, {name: "" for name, _ in flat(kept)})
    for (name, one), (_, other) in [] if problems else pairs:
        same = one == other
        if isinstance(one, float | int) and isinstance(other, float | int):
            same = bool(np.isclose(one, other, rtol=tolerance, atol=tolerance / 10))
        if not same:
            problems.append(f"{name} is {one!r}, and was {other!r}")
    return problems


def misfits(found: Mapping[str, Any], kept: Mapping[str, Any]) -> list[str]:
    """Return the differences of two flat mappings, each by its key."""
    gone = [f"{name} is missing; it was {kept[name]!r}" for name in sorted(kept.keys() - found.keys())]
    new = [f"{name} is new: {found[name]!r}" for name in sorted(found.keys() - kept.keys())]
    both = sorted(found.keys() & kept.keys())
    return gone + new + [f"{n} is {found[n]!r}, and was {kept[n]!r}" for n in both if found[n] != kept[n]]


def flat(tree: Any, name: str = "") -> list[tuple[str, Any]]:
    """Return the leaves of nested mappings and lists, each with its path."""
    if isinstance(tree, Mapping) and tree:
        return [leaf for key in sorted(tree) for leaf in flat(tree[key], f"{name}/{key}")]
    if isinstance(tree, list) and tree:
        return [leaf for number, item in enumerate(tree) for leaf in flat(item, f"{name}/{number}")]
    return [(name, tree)]


def kinds(tree: Any) -> dict[str, str]:
    """Return the type of every leaf of a JSON object by its path; of a list, of its first item."""
    if isinstance(tree, Mapping):
        inner = [
            (f"{key}.{name}" if name else str(key), kind) for key in tree for name, kind in kinds(tree[key]).items()
        ]
        return dict(inner) or {"": "empty object"}
    if isinstance(tree, list):
        inner = [(f"[].{name}" if name else "[]", kind) for name, kind in kinds(tree[0]).items()] if tree else []
        return dict(inner) or {"": "empty list"}
    return {"": {type(None): "null", int: "integer", float: "number", str: "text", bool: "boolean"}[type(tree)]}


# ---- files, read without the program


def checkpoint_layout(folder: Path) -> dict[str, str]:
    """Return the keys of a checkpoint's manifest and facts with their types, and its arrays with dtypes and shapes.

    Fails if a digest in the manifest is wrong, or if the pieces do not hold what it lists.
    """
    text = (folder / "manifest.json").read_bytes()
    manifest = json.loads(text)
    digest = manifest["sha256"]
    assert hashlib.sha256(text.replace(digest.encode(), b"0" * 64, 1)).hexdigest() == digest
    stored: dict[str, np.ndarray] = {}
    for name, entry in manifest["files"].items():
        data = (folder / name).read_bytes()
        assert (entry["size"], entry["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        stored |= safetensors.numpy.load(data)
    arrays = {name: f"{entry['dtype']}{entry['shape']}" for name, entry in manifest["arrays"].items()}
    assert {name: shape_text(array) for name, array in stored.items()} == arrays
    if "games/bytes" in arrays:  # games on the host, one after another; how long they are depends on the games
        arrays["games/bytes"] = arrays["games/bytes"].partition("[")[0]
    facts = {f"fact {key}": kind_of(value) for key, value in manifest.pop("facts").items()}
    keys = {f"key {key}": kind_of(value) for key, value in manifest.items()}
    return keys | facts | {f"array {name}": text for name, text in arrays.items()}


def kind_of(value: Any) -> str:
    """Return the type of a JSON value, without what is in it; a manifest's lists and tables grow."""
    names = {type(None): "null", int: "integer", float: "number", str: "text", bool: "boolean", list: "list"}
    return names.get(type(value), "object")


def shape_text(array: np.ndarray) -> str:
    """Return an array's dtype and shape."""
    return f"{array.dtype}{list(array.shape)}"


def report_layout(lines: str) -> dict[str, str]:
    """Return the fields of reports in JSON Lines, with their types, as "KIND FIELD"."""
    found: dict[str, str] = {}
    for line in lines.splitlines():
        report = json.loads(line)
        found |= {f"{report['kind']} {key}": kind_of(value) for key, value in report.items()}
    return found


def export_layout(folder: Path) -> dict[str, str]:
    """Return the keys of an exported network's manifest with their types, and its arrays with dtypes and shapes."""
    manifest = json.loads((folder / "manifest.json").read_text())
    data = (folder / "weights.safetensors").read_bytes()
    assert manifest["sha256"]["weights.safetensors"] == hashlib.sha256(data).hexdigest()
    arrays = {f"array {name}": shape_text(array) for name, array in safetensors.numpy.load(data).items()}
    return {f"key {key}": kind for key, kind in kinds(manifest).items()} | arrays


_RECORD = struct.Struct("<8sQQII")  # magic, number, bytes of payload, crc32 of payload, crc32 of what stands before


def log_records(folder: Path) -> dict[str, list[dict[str, np.ndarray]]]:
    """Return the records of a replay log by segment file; fails at a header that is not as documented."""
    found: dict[str, list[dict[str, np.ndarray]]] = {}
    number = None
    for file in sorted(folder.iterdir()):
        data, at, records = file.read_bytes(), 0, list[dict[str, np.ndarray]]()
        while at < len(data):
            magic, own, length, crc, check = _RECORD.unpack_from(data, at)
            payload = data[at + _RECORD.size : at + _RECORD.size + length]
            number = own if number is None else number + 1
            assert (magic, own) == (b"aleaslab", number)
            assert (crc, check) == (zlib.crc32(payload), zlib.crc32(data[at : at + _RECORD.size - 4]))
            records.append(safetensors.numpy.load(payload))
            at += _RECORD.size + length
        assert int(re.fullmatch(r"segment-(\d{12})\.log", file.name)[1]) == number + 1 - len(records)
        found[file.name] = records
    return found


def row_digests(record: Mapping[str, np.ndarray]) -> list[str]:
    """Return a digest for each row `[t, b]` of a slab, over the names, dtypes and bytes of its fields."""
    fields = {name: array for name, array in sorted(record.items()) if array.ndim >= 2}
    moves, games = next(iter(fields.values())).shape[:2]
    rows = []
    for t in range(moves):
        for b in range(games):
            parts = [f"{name} {array.dtype} ".encode() + array[t, b].tobytes() for name, array in fields.items()]
            rows.append(hashlib.sha256(b"".join(parts)).hexdigest()[:16])
    return rows


_SLAB, _SIGNATURE = struct.Struct("<4sHH"), 32
_WEIGHTS = struct.Struct("<4sHQ32s")


def split_slab(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return a packed slab's header, as fields by name, and its body, unpacked."""
    magic, protocol, length = _SLAB.unpack_from(data)
    header = msgpack.unpackb(data[_SLAB.size : _SLAB.size + length])
    body = zstd.decompress(data[_SLAB.size + length : -_SIGNATURE])
    return {"magic": magic.decode(), "protocol": protocol, "fields": header}, body


def split_weights(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a published network's header, as fields by name, and its arrays; fails if the digest is wrong."""
    magic, protocol, version, digest = _WEIGHTS.unpack_from(data)
    payload = data[_WEIGHTS.size :]
    assert hashlib.sha256(_WEIGHTS.pack(magic, protocol, version, bytes(32)) + payload).digest() == digest
    return {"magic": magic.decode(), "protocol": protocol, "version": version}, safetensors.numpy.load(payload)


def read_json(file: Path) -> Any:
    """Return what a JSON file holds."""
    return json.loads(file.read_text("utf-8"))


def newest(checkpoints: Path) -> Path:
    """Return the folder of the newest checkpoint."""
    return max(checkpoints.glob("[0-9]*"))


def digests(folder: Path) -> dict[str, str]:
    """Return the sha256 of each file of a folder."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def log_digests(folder: Path) -> list[str]:
    """Return a digest of each record of a run's replay log, over the digests of its rows."""
    (log,) = (folder / "replay").iterdir()
    records = [record for found in log_records(log).values() for record in found]
    return [hashlib.sha256("".join(row_digests(record)).encode()).hexdigest()[:16] for record in records]


# ---- what is made for the fixtures, and again in the tests


LEARNED = ("step", "rows", "loss", "policy_loss", "value_loss", "entropy")


def resume(root: Path, name: str, rows: int) -> dict[str, Any]:
    """Resume a run for as many rows again, and return where its reports and its new checkpoint are."""
    folder = root / name
    before = len((folder / "metrics.jsonl").read_text().splitlines())
    finished = alea(
        *("runs", "resume", name, "--runs", root, "--set", f"total_rows={2 * rows}", "--set", "evaluate.opponents=")
    )
    said = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()[before:]]
    learned = [report for report in said if report["kind"] in ("learn", "ppo")]
    held = [report["rows_held"] for report in said if report["kind"] == "replay"]
    facts = json.loads((newest(folder / "checkpoints") / "manifest.json").read_text())["facts"]
    return {
        "status": finished["status"],
        "step": finished["step"],
        "rows": facts["rows"],
        "base_steps": facts["base_steps"],
        "said": [report["status"] for report in said if report["kind"] == "run"],
        "first_learned": {key: learned[0][key] for key in LEARNED if key in learned[0]},
        "rows_held": held[:1],
    }


def hand_made_slab(moves: int, games: int) -> dict[str, np.ndarray]:
    """Return a slab of tic-tac-toe that passes every check but the rules'."""
    draw = np.random.default_rng(0)
    shape = (moves, games)
    ended = draw.random(shape) < 0.3
    return {
        "state": draw.integers(0, 256, (*shape, 12), np.uint8),
        "to_play": draw.integers(0, 2, shape, np.int8),
        "actions": np.broadcast_to(np.arange(9, dtype=np.int16), (*shape, 9)).copy(),
        "policy": draw.dirichlet(np.ones(9), shape).astype(np.float16),
        "action": draw.integers(0, 9, shape).astype(np.int16),
        "opinion": draw.dirichlet(np.ones(3), shape).astype(np.float16),
        "value": draw.uniform(-1, 1, shape).astype(np.float32),
        "searched": np.ones(shape, np.bool_),
        "random": np.zeros(shape, np.bool_),
        "ended": ended,
        "settled": np.zeros(shape, np.bool_),
        "truncated": np.zeros(shape, np.bool_),
        "points": np.where(ended, draw.choice([-1.0, 0.0, 1.0], shape), 0.0).astype(np.float32),
        "fingerprint": draw.integers(0, 2**32, shape, np.uint32),
    }


def hand_made_weights() -> dict[str, Any]:
    """Return a network's weights, as a tree of float32 arrays."""
    draw = np.random.default_rng(2)
    kernel, bias = draw.normal(size=(4, 3)).astype(np.float32), draw.normal(size=3).astype(np.float32)
    return {"heads": {"policy": {"bias": bias, "kernel": kernel}}, "scale": np.float32([1.5])}


def named(tree: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of a tree under their paths."""
    return {name.removeprefix("/"): array for name, array in flat(tree)}


def tree_of(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the tree whose arrays have these paths."""
    tree: dict[str, Any] = {}
    for path, array in arrays.items():
        *above, name = path.split("/")
        place = tree
        for key in above:
            place = place.setdefault(key, {})
        place[name] = array
    return tree


RECORD_COMMANDS = {
    "eval": ("eval", "tictactoe", "--player", "path:search,search=none", "--games", 4, "--opening-plies", 2),
    "rate": ("rate", "tictactoe", "--player", "path:search,search=none", "--positions", 4),
    "openings": ("openings", "backgammon", "--player", "run:turns"),
}


def make_record(root: Path, kind: str) -> dict[str, Any]:
    """Have a command write a result record of the frozen networks, in a folder; the command names no other place."""
    file = root / f"{kind}.json"
    for source in (EXPORTS / "search", RUNS / "turns"):
        shutil.copytree(source, root / source.name, dirs_exist_ok=True)
    with contextlib.chdir(root):
        alea(*RECORD_COMMANDS[kind], "--runs", ".", "--record", file.name, "--force")
    record = read_record(file)
    assert record == read_json(file)
    return record
