"""Checkpoints against real faults: flipped bits, cut files, SIGKILL at every step of a save, a full disk."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from aleazero import checkpoint
from aleazero.checkpoint import (
    Checkpoint,
    CheckpointError,
    DamagedCheckpoint,
    newest,
    prune,
    read,
    restore,
    save,
    steps,
)

ROOT = Path(__file__).resolve().parent.parent
SMALL = 400  # bytes of a piece: a header of about 130, and little room

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bfloat16", "complex64", "complex128", "float8_e4m3fn", "int4"),
    *(">f4", ">i2", "longdouble", "datetime64[ns]", "timedelta64[s]"),
]


def some_array(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """An array of any bits that its dtype can hold, NaNs and denormals too."""
    kind = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    if kind == np.dtype(bool):
        return rng.integers(0, 2, shape).astype(bool)
    if dtype == "int4":
        return rng.integers(-8, 8, shape).astype(kind)
    count = int(np.prod(shape))
    return np.frombuffer(rng.bytes(count * kind.itemsize), kind).reshape(shape)


def same(left: np.ndarray, right: np.ndarray) -> bool:
    """Equal bit for bit."""
    return (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())


def tree(fill: int = 0) -> dict[str, object]:
    return {
        "weights": {"dense": [np.full((5, 7), fill, np.float32), np.arange(7, dtype=np.int16)], "scale": jnp.ones(())},
        "moves": np.int64(12),
    }


def manifest_of(folder: Path) -> dict:
    return json.loads((folder / "manifest.json").read_text())


def forge(folder: Path, **changes: object) -> None:
    """Writes the manifest with changes and a digest that is right for them."""
    manifest = manifest_of(folder) | changes | {"sha256": "0" * 64}
    text = json.dumps(manifest)
    digest = hashlib.sha256(text.encode()).hexdigest()
    (folder / "manifest.json").write_text(text.replace("0" * 64, digest, 1))


def flip(path: Path, byte: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[byte] ^= 1 << bit
    path.write_bytes(data)


def no_warning(text: str) -> None:
    raise AssertionError(text)


def hidden(root: Path) -> list[str]:
    return [path.name for path in root.iterdir() if path.name.startswith(".")]


# What goes in comes out.

arrays_of_any_kind = st.builds(
    some_array, st.sampled_from(DTYPES), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0), st.integers(0, 2**32 - 1)
)
keys = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), max_size=5)
trees_of_any_kind = st.recursive(
    arrays_of_any_kind,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(trees=st.dictionaries(st.sampled_from(["w", "opt", "a.b-c"]), trees_of_any_kind), data=st.data())
def test_any_tree_comes_back_bit_for_bit_in_pieces_of_the_size_given(
    tmp_path_factory: pytest.TempPathFactory, trees: dict[str, Any], data: st.DataObject
) -> None:
    limit = data.draw(st.integers(SMALL, 3 * SMALL))
    root = tmp_path_factory.mktemp("trees")
    folder = save(root, 3, trees, {}, piece_bytes=limit)
    assert all(path.stat().st_size <= limit for path in folder.glob("*.safetensors"))
    loaded = read(folder)
    for name, value in trees.items():
        back = restore(loaded, name, value)
        assert all(jax.tree.leaves(jax.tree.map(same, back, value)))


def test_every_dtype_with_no_one_and_many_dimensions_empty_whole_and_cut(tmp_path: Path) -> None:
    shapes = [(), (0,), (3, 0, 2), (2, 3), (400,)]
    arrays = {dtype: [some_array(dtype, shape, 1) for shape in shapes] for dtype in DTYPES}
    loaded = read(save(tmp_path, 0, {"x": arrays}, {}, piece_bytes=SMALL))
    for name, wanted in arrays.items():
        assert [same(loaded.arrays[f"x/{name}/{i}"], array) for i, array in enumerate(wanted)] == [True] * len(shapes)


def test_an_array_larger_than_a_piece_is_cut_and_the_others_are_kept_whole(tmp_path: Path) -> None:
    arrays: dict[str, np.ndarray] = {
        "a": np.arange(30, dtype=np.int32),
        "big": np.arange(1000, dtype=np.int16),
        "z": np.arange(20.0),
    }
    folder = save(tmp_path, 0, arrays, {}, piece_bytes=1000)
    index = manifest_of(folder)["arrays"]
    assert len(index["big"]["pieces"]) == 3
    assert len(index["a"]["pieces"]) == len(index["z"]["pieces"]) == 1
    assert all(path.stat().st_size <= 1000 for path in folder.glob("*.safetensors"))
    assert all(same(read(folder).arrays[name], array) for name, array in arrays.items())


def test_pieces_are_of_12_mib_unless_told_otherwise(tmp_path: Path) -> None:
    array = np.arange(13 * 2**20, dtype=np.uint8)
    folder = save(tmp_path, 0, {"x": array}, {})
    sizes = sorted(path.stat().st_size for path in folder.glob("*.safetensors"))
    assert len(sizes) == 2
    assert 12 * 2**20 - 200 < sizes[1] <= 12 * 2**20
    assert same(read(folder).arrays["x"], array)


def test_pieces_are_ordinary_safetensors_files(tmp_path: Path) -> None:
    folder = save(tmp_path, 0, tree(), {})
    plain = safetensors.numpy.load_file(folder / "arrays-000.safetensors")
    assert sorted(plain) == ["moves", "weights/dense/0", "weights/dense/1", "weights/scale"]
    assert same(plain["weights/dense/1"], np.arange(7, dtype=np.int16))


def test_memory_order_does_not_matter(tmp_path: Path) -> None:
    array = np.arange(24.0).reshape(2, 3, 4)
    for view in (array.T, np.asfortranarray(array), array[:, ::-1, 1:3]):
        assert np.array_equal(read(save(tmp_path, 0, {"x": view}, {})).arrays["x"], view)


def test_random_keys_come_back_as_keys_of_their_kind(tmp_path: Path) -> None:
    saved = {"one": jax.random.key(3), "many": jax.random.split(jax.random.key(4, impl="rbg"), 5)}
    loaded = read(save(tmp_path, 0, {"keys": saved}, {}))
    for like in (saved, jax.eval_shape(lambda: saved)):
        back = restore(loaded, "keys", like)
        for name, keys in saved.items():
            assert back[name].dtype == keys.dtype
            assert np.array_equal(jax.random.key_data(back[name]), jax.random.key_data(keys))


def test_scalars_and_trees_without_leaves(tmp_path: Path) -> None:
    loaded = read(save(tmp_path, 0, {"n": {"i": 7, "f": 0.5, "b": True}, "nothing": (None, ())}, {}))
    assert restore(loaded, "n", {"i": 0, "f": 0.0, "b": False}) == {"i": 7, "f": 0.5, "b": True}
    assert restore(loaded, "nothing", (None, ())) == (None, ())


def test_step_and_facts_come_back(tmp_path: Path) -> None:
    facts = {"game": "pig", "counters": {"rows": 2**40}, "share": 0.1, "zeros": "0" * 64, "é": [None, True]}
    folder = save(tmp_path / "not" / "there", 123456, tree(), facts)
    loaded = read(folder)
    assert folder == tmp_path / "not" / "there" / "000000123456" == loaded.path
    assert (loaded.step, loaded.facts) == (123456, facts)


def test_facts_can_be_read_alone_and_are_verified(tmp_path: Path) -> None:
    folder = save(tmp_path, 5, tree(), {"slabs": 7})
    assert checkpoint.read_facts(tmp_path, 5) == {"slabs": 7}
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text.replace('"slabs": 7', '"slabs": 8'))
    with pytest.raises(DamagedCheckpoint, match="has changed since it was written"):
        checkpoint.read_facts(tmp_path, 5)


def test_arrays_can_be_written_to(tmp_path: Path) -> None:
    array = read(save(tmp_path, 0, tree(), {})).arrays["weights/dense/0"]
    array += 1
    assert array[0, 0] == 1


# Mistakes of the caller.


def test_what_cannot_be_saved_is_named_all_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    bad = {"a/b": 1, "": 2, "__metadata__": 3, "w": {"s": "text", "o": np.array([None]), "a": {"b": 1}, "a/b": 2}}
    with pytest.raises(CheckpointError) as caught:
        save(tmp_path / "root", 0, bad, {})
    for part in ("'a/b'", "''", "'__metadata__'", "w/s has dtype <U4", "w/o has dtype object", "both called w/a/b"):
        assert part in str(caught.value)
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize("facts", [{"x": float("nan")}, {"x": np.int32(1)}, {"x": {1, 2}}], ids=str)
def test_facts_that_json_cannot_say(tmp_path: Path, facts: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match="facts cannot be saved as JSON"):
        save(tmp_path, 0, tree(), facts)


def test_a_negative_step(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="step cannot be -1"):
        save(tmp_path, -1, tree(), {})


def test_what_does_not_fit_is_named_all_at_once(tmp_path: Path) -> None:
    loaded = read(save(tmp_path, 0, {"w": {"a": np.zeros(3), "b": np.zeros(3, np.float32), "old": 1}, "w2": 5}, {}))
    like = {"a": np.zeros((3, 1)), "b": jax.ShapeDtypeStruct((3,), jnp.bfloat16), "new": 1}
    with pytest.raises(CheckpointError) as caught:
        restore(loaded, "w", like)
    text = str(caught.value)
    for part in ("w/a is float64[3] and should be float64[3, 1]", "w/b is float32[3] and should be bfloat16[3]"):
        assert part in text
    assert "w/new is missing" in text
    assert "w/old is in the checkpoint and was not asked for" in text
    assert "w2" not in text


@pytest.mark.parametrize("name", ["weights", "average", "optimiser", "selves"])
def test_numbers_of_a_network_must_be_finite(name: str, tmp_path: Path) -> None:
    like = {"a": np.zeros(3), "b": np.zeros(2, jnp.bfloat16), "count": np.int32(0)}
    for value in (np.nan, np.inf):
        wrong = like | {"b": np.array([0, value], jnp.bfloat16)}
        loaded = read(save(tmp_path, 0, {name: wrong, "games": wrong}, {}))
        with pytest.raises(CheckpointError, match=f"cannot be used: {name}/b holds NaN or infinity$"):
            restore(loaded, name, like)
        assert np.isnan(restore(loaded, "games", like)["b"]).any() == np.isnan(value)  # points that no game has yet


def test_an_unknown_name_gets_the_nearest(tmp_path: Path) -> None:
    loaded = read(save(tmp_path, 0, tree(), {}))
    with pytest.raises(CheckpointError, match="unknown tree 'wieghts': did you mean 'weights'"):
        restore(loaded, "wieghts", {"a": 1})


# Damage.


def test_a_flipped_bit_anywhere_is_found_and_the_file_is_named(tmp_path: Path) -> None:
    folder = save(tmp_path, 7, tree(), {"game": "pig", "n": 1}, piece_bytes=SMALL)
    read(folder)
    files = sorted(folder.iterdir())
    assert len(files) > 2
    for path in files:
        whole = path.read_bytes()
        for byte in range(0, len(whole), 7):
            flip(path, byte, byte % 8)
            with pytest.raises(DamagedCheckpoint) as caught:
                read(folder)
            assert str(folder) in str(caught.value)
            assert path.name in str(caught.value)
            path.write_bytes(whole)
    read(folder)


def test_a_file_cut_short_or_gone_is_named(tmp_path: Path) -> None:
    folder = save(tmp_path, 7, tree(), {}, piece_bytes=SMALL)
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for length in (0, 1, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:length])
            what = "is not a manifest" if path.suffix == ".json" else f"has {length} bytes instead of {len(whole)}"
            with pytest.raises(DamagedCheckpoint, match=f"{folder} is damaged: {path.name} {what}"):
                read(folder)
        path.unlink()
        with pytest.raises(DamagedCheckpoint, match=f"{path.name} cannot be read: No such file"):
            read(folder)
        path.write_bytes(whole)


@pytest.mark.parametrize("text", ["", "[]", "7", "{}", '{"sha256": 1, "format": 1}', "\xff", "[" * 100_000])
def test_a_manifest_of_garbage(tmp_path: Path, text: str) -> None:
    folder = save(tmp_path, 7, tree(), {})
    (folder / "manifest.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(DamagedCheckpoint, match=r"manifest\.json is not a manifest"):
        read(folder)


def test_an_index_that_does_not_match_its_pieces(tmp_path: Path) -> None:
    folder = save(tmp_path, 7, {"a": np.arange(3), "b": np.arange(4)}, {})
    index = manifest_of(folder)["arrays"]
    wrongs = {
        r"does not list what arrays-000\.safetensors holds: b": {"a": index["a"]},
        r"arrays-000\.safetensors does not hold c": index | {"c": index["a"]},
        r"arrays-009\.safetensors does not hold a": index | {"a": index["a"] | {"pieces": ["arrays-009.safetensors"]}},
        r"is not a manifest .*cannot reshape": index | {"a": index["a"] | {"shape": [4]}},
        r"is not a manifest .*KeyError": index | {"a": {}},
    }
    for message, wrong in wrongs.items():
        forge(folder, arrays=wrong)
        with pytest.raises(DamagedCheckpoint, match=message):
            read(folder)
    forge(folder, arrays=index)
    read(folder)


def test_a_folder_under_the_name_of_another_step(tmp_path: Path) -> None:
    folder = save(tmp_path, 7, tree(), {})
    with pytest.raises(DamagedCheckpoint, match="belongs to step 7"):
        read(folder.rename(tmp_path / "000000000008"))
    assert read((tmp_path / "000000000008").rename(tmp_path / "best")).step == 7


def test_a_newer_format_is_refused_by_name_and_not_passed_over(tmp_path: Path) -> None:
    save(tmp_path, 6, tree(), {})
    folder = save(tmp_path, 7, tree(), {})
    forge(folder, format=checkpoint.FORMAT + 1, files="laid out in a new way")
    with pytest.raises(CheckpointError, match=f"has format {checkpoint.FORMAT + 1}, .* up to {checkpoint.FORMAT}") as e:
        newest(tmp_path, no_warning)
    assert not isinstance(e.value, DamagedCheckpoint)


def test_the_newest_intact_one_is_used_and_damaged_ones_are_named(tmp_path: Path) -> None:
    folders = [save(tmp_path, step, tree(step), {"n": step}) for step in (5, 30, 200)]
    flip(folders[2] / "arrays-000.safetensors", 150, 0)
    (folders[1] / "manifest.json").unlink()
    warnings: list[str] = []
    found = newest(tmp_path, warnings.append)
    assert isinstance(found, Checkpoint)
    assert (found.step, found.facts) == (5, {"n": 5})
    assert [str(folder) in text for folder, text in zip(folders[:0:-1], warnings, strict=True)] == [True, True]
    flip(folders[0] / "manifest.json", 90, 0)
    assert newest(tmp_path, warnings.append) is None
    assert len(warnings) == 5


def test_no_checkpoints_yet(tmp_path: Path) -> None:
    assert newest(tmp_path / "none", no_warning) is None
    assert steps(tmp_path / "none") == []
    prune(tmp_path / "none", 1, ())


# What stays and what goes.


def test_steps_are_numbers_and_nothing_else(tmp_path: Path) -> None:
    for step in (10**13, 9, 100, 0):
        save(tmp_path, step, tree(), {})
    for other in (".tmp-5-1", "5", "best", "000000000005.bak"):
        (tmp_path / other).mkdir()
    assert steps(tmp_path) == [0, 9, 100, 10**13]


def test_saving_a_step_again_replaces_it(tmp_path: Path) -> None:
    save(tmp_path, 5, tree(1), {"n": 1}, piece_bytes=SMALL)
    folder = save(tmp_path, 5, tree(2), {"n": 2})
    assert read(folder).facts == {"n": 2}
    assert read(folder).arrays["weights/dense/0"][0, 0] == 2
    assert sorted(path.name for path in folder.iterdir()) == ["arrays-000.safetensors", "manifest.json"]
    assert hidden(tmp_path) == []


def test_prune_keeps_the_last_and_the_best(tmp_path: Path) -> None:
    for step in range(8):
        save(tmp_path, step, {"x": step}, {})
    prune(tmp_path, 3, {1, 6, 99})
    assert steps(tmp_path) == [1, 5, 6, 7]
    assert [read(tmp_path / f"{step:012d}").arrays["x"] for step in steps(tmp_path)] == [1, 5, 6, 7]
    prune(tmp_path, 99, ())
    assert steps(tmp_path) == [1, 5, 6, 7]
    assert hidden(tmp_path) == []
    with pytest.raises(CheckpointError, match="keep_last is 0"):
        prune(tmp_path, 0, {1})


def test_damaged_checkpoints_do_not_crowd_out_intact_ones(tmp_path: Path) -> None:
    folders = [save(tmp_path, step, {"x": step}, {}) for step in range(5)]
    (folders[4] / "manifest.json").write_text("{}")
    (folders[3] / "arrays-000.safetensors").unlink()
    (folders[2] / "arrays-000.safetensors").write_bytes(b"short")
    prune(tmp_path, 1, ())
    assert steps(tmp_path) == [1, 2, 3, 4]
    assert read(folders[1]).arrays["x"] == 1


def test_leftovers_of_dead_processes_go_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    mine, theirs = f".tmp-4-{os.getpid()}", f".tmp-4-{os.getppid()}"
    for name in (f".tmp-4-{dead.pid}", f".tmp-4-{10**30}", mine, theirs):
        (tmp_path / name).mkdir()
        (tmp_path / name / "arrays-000.safetensors").write_bytes(b"half")
    save(tmp_path, 5, tree(), {})
    assert hidden(tmp_path) == [theirs]


# Kills and a full disk, for real.

FAULTS = """
import os, random, resource, shutil, signal, sys, time, traceback
from pathlib import Path
import numpy as np
from aleazero.checkpoint import CheckpointError, newest, prune, read, save, steps

EVENTS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir")

def contents(n):
    return {"a": np.full(60, n, np.int64), "b": np.full(150, n, np.int16)}

def put(root, step, n):
    save(root, step, contents(n), {"n": n}, piece_bytes=1000)

def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child

def die_at(event):
    def hook(name, args):
        nonlocal event
        if name in EVENTS:
            event -= 1
            if event < 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)

def intact(root, allowed):
    def warn(text):
        raise AssertionError(text)
    found = newest(root, warn)
    n = found.facts["n"]
    assert (found.step, n) in allowed, (found.step, n)
    for name, array in contents(n).items():
        assert np.array_equal(found.arrays[name], array)
    return found

def no_leavings(root):
    assert [path.name for path in root.iterdir() if path.name.startswith(".")] == []

def killed_at_every_event(top, before, work, allowed):
    made = top / "made"
    for step, n in before:
        put(made, step, n)
    for event in range(1000):
        root = top / str(event)
        shutil.copytree(made, root)
        child = in_child(lambda: (die_at(event), work(root)))
        status = os.waitpid(child, 0)[1]
        intact(root, allowed)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            assert event > 8, event
            return
        assert os.WTERMSIG(status) == signal.SIGKILL
        put(root, 9, 9)
        no_leavings(root)
        there = {(step, read(root / f"{step:012d}").facts["n"]) for step in steps(root)}
        assert there & allowed and there <= allowed | {*before, (9, 9)}, there

def new(root):
    killed_at_every_event(root, [(1, 1)], lambda root: put(root, 2, 2), {(1, 1), (2, 2)})

def replaced(root):
    killed_at_every_event(root, [(1, 1)], lambda root: put(root, 1, 2), {(1, 1), (1, 2)})

def pruned(root):
    killed_at_every_event(root, [(1, 1), (2, 2), (3, 3)], lambda root: prune(root, 1, ()), {(3, 3)})

def random_moments(root):
    put(root, 0, 0)
    kills = 0
    while kills < 8 or steps(root)[-1] == 0:
        start = steps(root)[-1]
        def forever():
            n = start
            while True:
                n += 1
                put(root, n, n)
                put(root, n, n)
                prune(root, 2, {0})
        child = in_child(forever)
        time.sleep(random.uniform(0.01, 0.15))
        os.kill(child, signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        intact(root, {(n, n) for n in range(start, start + 1000)})
        kills += 1
    put(root, 10**6, 1)
    no_leavings(root)

def full_disk(root):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    put(root, 1, 1)
    big = {"a": np.zeros(300_000, np.int8)}
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    for limit, step in ((100_000, 2), (100_000, 1), (10, 2), (0, 2)):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            save(root, step, big, {"n": 2}, piece_bytes=200_000)
        except CheckpointError as error:
            text = str(error)
        else:
            raise AssertionError("the disk was not full")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert f"could not write checkpoint {root / f'{step:012d}'}" in text, text
        assert "File too large" in text and "untouched" in text, text
        assert steps(root) == [1]
        no_leavings(root)
        intact(root, {(1, 1)})
    save(root, 2, big, {"n": 2}, piece_bytes=200_000)
    assert newest(root, print).step == 2

for work in (new, replaced, pruned, random_moments, full_disk):
    child = in_child(lambda: work(Path(sys.argv[1]) / work.__name__))
    print(work.__name__, os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, int], str]:
    """The exit status of every fault above, and what went wrong; one process, as importing JAX takes the longest."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, str(tmp_path_factory.mktemp("faults"))],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    return {name: int(status) for name, status in map(str.split, done.stdout.splitlines())}, done.stderr


@pytest.mark.parametrize("work", ["new", "replaced", "pruned"])
def test_a_kill_at_any_step_of_a_save_or_a_prune_leaves_an_intact_checkpoint(
    faults: tuple[dict[str, int], str], work: str
) -> None:
    statuses, errors = faults
    assert statuses.get(work) == 0, errors


def test_a_kill_at_a_random_moment_leaves_an_intact_checkpoint(faults: tuple[dict[str, int], str]) -> None:
    statuses, errors = faults
    assert statuses.get("random_moments") == 0, errors


def test_a_full_disk_leaves_the_old_checkpoint_and_no_rubbish(faults: tuple[dict[str, int], str]) -> None:
    statuses, errors = faults
    assert statuses.get("full_disk") == 0, errors


def test_a_root_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"could not write checkpoint .*: \[Errno"):
        save(tmp_path / "file", 1, tree(), {})
