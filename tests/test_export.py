"""Exported networks: a folder that plays as the checkpoint did, and what happens to a damaged one."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from aleazero import checkpoint, export
from aleazero.core.errors import AleaError, ConfigError
from aleazero.core.game import Game
from aleazero.export import ExportError
from aleazero.games.registry import make_game
from aleazero.models.build import Model, ModelConfig, build_model
from aleazero.players import load_run_weights, make_player
from tests.runtimes.support import newest, programs, quick_programs, tiny, train  # noqa: F401 - fixtures

pytestmark = pytest.mark.slow


def rules(name: str) -> Game:
    game = make_game(name)
    assert isinstance(game, Game)
    return game


def positions(name: str, count: int = 64) -> Any:
    """Decision states of random games."""
    game = rules(name)
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), count))
    for move in range(3):
        legal = jax.jit(jax.vmap(game.legal_list))(states)
        place = jax.random.categorical(jax.random.key(move), jnp.where(legal >= 0, 0.0, -jnp.inf))
        states = jax.jit(jax.vmap(game.apply_action))(states, jnp.take_along_axis(legal, place[:, None], 1)[:, 0])
    return states


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, quick_programs: None) -> tuple[Path, Path]:  # noqa: F811
    """A trained run's root, and its network exported, with the ONNX file where that is possible."""
    root = tmp_path_factory.mktemp("trained")
    folder = train(tiny("total_rows=768"), root)
    model, weights = load_run_weights("it", rules("tictactoe"), root)
    try:
        import onnx  # noqa: F401

        with_onnx = True
    except ImportError:
        with_onnx = False
    export.write(root / "out", model, weights, {"run": "it", "step": newest(folder).step}, onnx=with_onnx)
    return root, root / "out"


@pytest.fixture
def exported(trained: tuple[Path, Path], tmp_path: Path) -> Path:
    """A copy to be spoilt."""
    return Path(shutil.copytree(trained[1], tmp_path / "out"))


def change(folder: Path, **changes: Any) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | changes))


# What comes out is what went in.


def test_the_folder_alone_predicts_what_the_checkpoint_predicts(trained: tuple[Path, Path], tmp_path: Path) -> None:
    root, out = trained
    moved = shutil.move(shutil.copytree(out, tmp_path / "a"), tmp_path / "elsewhere")
    game = rules("tictactoe")
    found = export.read(Path(moved), game.spec)
    observations = jax.jit(jax.vmap(game.observe))(positions("tictactoe"))
    model, weights = load_run_weights("it", game, root)
    ours, theirs = found.model.apply(found.weights, observations), model.apply(weights, observations)
    assert np.array_equal(ours.logits, theirs.logits)
    assert np.array_equal(ours.value, theirs.value)
    assert float(jnp.abs(ours.logits).max()) > 0
    # The weights that play are the averaged ones, not the newest.
    average = newest_tree(root, "average")
    assert all(np.array_equal(leaf, average[name]) for name, leaf in named(found.weights).items())
    assert found.manifest["facts"] == {"run": "it", "step": 48}
    assert found.manifest["outcomes"] == {"win": 1.0, "draw": 0.0, "loss": -1.0}
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(found.weights))


def newest_tree(root: Path, name: str) -> dict[str, np.ndarray]:
    found = checkpoint.newest(root / "it" / "checkpoints", pytest.fail)
    assert found is not None
    return {leaf.partition("/")[2]: array for leaf, array in found.arrays.items() if leaf.startswith(f"{name}/")}


def named(weights: Any) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_flatten_with_path(weights)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="/"): np.asarray(leaf) for path, leaf in leaves}


def test_an_exported_network_plays(trained: tuple[Path, Path], quick_programs: None) -> None:  # noqa: F811
    root, out = trained
    game, states = rules("tictactoe"), positions("tictactoe")
    keys = jax.random.split(jax.random.key(1), 64)
    chosen = [
        make_player(f"{who},search=none", game, root).choose(states, jnp.ones(64, bool), keys)
        for who in ("run:it", f"path:{out}")
    ]
    assert np.array_equal(chosen[0], chosen[1])
    assert bool((jax.jit(jax.vmap(game.legal_list))(states) == chosen[0][:, None]).any(-1).all())


@pytest.mark.parametrize(
    ("game", "config"),
    [
        ("tictactoe", ModelConfig(width=8, blocks=2, head_width=4, soft_policy=True)),
        ("pig", ModelConfig(width=8, blocks=1, value="scalar", reply_policy=True)),
    ],
    ids=["cnn", "scalar mlp"],
)
def test_every_kind_of_network_comes_back(tmp_path: Path, game: str, config: ModelConfig) -> None:
    model = build_model(config, rules(game).spec)
    weights = jax.jit(model.init)(jax.random.key(3))
    export.write(tmp_path / "new" / "folder", model, weights, {})
    found = export.read(tmp_path / "new" / "folder", rules(game).spec)
    assert found.model == model
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, found.weights, weights)))


def test_writing_again_replaces_the_network_and_leaves_nothing_of_the_old_one(exported: Path) -> None:
    model = Model(ModelConfig(kind="mlp", width=4, blocks=0), rules("tictactoe").spec)
    export.write(exported, model, jax.jit(model.init)(jax.random.key(0)), {"second": True})
    assert {path.name for path in exported.iterdir()} == {"manifest.json", "weights.safetensors"}
    assert export.read(exported, rules("tictactoe").spec).manifest["facts"] == {"second": True}


def test_the_onnx_file_says_what_the_network_says(trained: tuple[Path, Path]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    game = rules("tictactoe")
    found = export.read(trained[1], game.spec)
    observations = np.asarray(jax.jit(jax.vmap(game.observe))(positions("tictactoe")))
    session = onnxruntime.InferenceSession(str(trained[1] / "network.onnx"), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    for count in (1, 5, 64):
        logits, opinion = session.run(["policy_logits", "opinion"], {given.name: observations[:count]})
        output = found.model.apply(found.weights, jnp.asarray(observations[:count]))
        np.testing.assert_allclose(logits, output.logits, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(opinion, found.model.opinion_of(output), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(opinion.sum(-1), 1, rtol=1e-5)


# What cannot be used is refused, and named.


def refused(folder: Path, game: str = "tictactoe") -> str:
    with pytest.raises(ExportError) as caught:
        export.read(folder, rules(game).spec)
    return str(caught.value)


def test_the_onnx_file_of_a_value_alone_says_that(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model = build_model(ModelConfig(kind="mlp", width=8, blocks=1, policy=False), rules("backgammon").spec)
    weights = jax.jit(model.init)(jax.random.key(0))
    folder = export.write(tmp_path / "value", model, weights, {}, onnx=True)
    session = onnxruntime.InferenceSession(str(folder / "network.onnx"), providers=["CPUExecutionProvider"])
    (given,), (output,) = session.get_inputs(), session.get_outputs()
    seen = np.random.default_rng(0).random((5, *model.spec.observation_shape)).astype(np.float32)
    (opinion,) = session.run([output.name], {given.name: seen})
    assert output.name == "opinion"
    np.testing.assert_allclose(opinion, model.opinion(weights, jnp.asarray(seen)), atol=1e-5)


@pytest.mark.parametrize("where", ["first", "middle", "last", "cut"])
def test_damaged_weights_are_named(exported: Path, where: str) -> None:
    path = exported / "weights.safetensors"
    data = bytearray(path.read_bytes())
    if where == "cut":
        del data[-1:]
    else:
        data[{"first": 0, "middle": len(data) // 2, "last": -1}[where]] ^= 1
    path.write_bytes(data)
    assert refused(exported) == f"{path} is damaged: its sha256 is not the manifest's"


def test_another_game_s_network_is_refused_naming_both(exported: Path) -> None:
    assert "holds a network for tictactoe version 1, not for connect_four version" in refused(exported, "connect_four")
    change(exported, game_version=9)
    assert "holds a network for tictactoe version 9, not for tictactoe version 1" in refused(exported)


def test_a_later_format_is_refused_by_number(exported: Path) -> None:
    change(exported, format=2, model=None)
    assert refused(exported) == f"{exported} has format 2; this version reads format 1"


@pytest.mark.parametrize("file", ["weights.safetensors", "manifest.json"])
def test_a_missing_file_is_named(exported: Path, file: str) -> None:
    (exported / file).unlink()
    assert str(exported / file) in refused(exported)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 1}', "\x00", "null", '{"model": 3}'])
def test_a_manifest_that_is_none_is_refused(exported: Path, text: str) -> None:
    (exported / "manifest.json").write_text(text)
    assert str(exported / "manifest.json") in refused(exported)


def test_a_manifest_without_the_weights_digest_is_refused(exported: Path) -> None:
    nothing: list[Any] = [{}, [], None]
    for digests in nothing:
        change(exported, sha256=digests)
        assert str(exported) in refused(exported)


def test_weights_of_another_shape_are_refused(exported: Path) -> None:
    manifest = json.loads((exported / "manifest.json").read_text())
    change(exported, model=manifest["model"] | {"width": 17})
    assert "cannot be used by the model its manifest describes" in refused(exported)


def test_weights_that_are_not_finite_are_refused_and_play_for_nobody(exported: Path) -> None:
    payload = safetensors.numpy.load_file(exported / "weights.safetensors")
    name = next(iter(payload))
    payload[name] = np.full_like(payload[name], np.nan)
    data = safetensors.numpy.save(payload)
    (exported / "weights.safetensors").write_bytes(data)
    change(exported, sha256={"weights.safetensors": hashlib.sha256(data).hexdigest()})
    assert f"{name} holds NaN or infinity" in refused(exported)
    with pytest.raises(AleaError, match="holds NaN or infinity"):
        make_player(f"path:{exported}", rules("tictactoe"))


def test_settings_of_a_model_that_is_not_known_are_refused_naming_the_file(exported: Path) -> None:
    manifest = json.loads((exported / "manifest.json").read_text())
    change(exported, model=manifest["model"] | {"attention": True})
    with pytest.raises(ConfigError, match=r"unknown key attention \(.*manifest\.json\)"):
        export.read(exported, rules("tictactoe").spec)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    model = Model(ModelConfig(kind="mlp", width=4, blocks=0), rules("tictactoe").spec)
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match=f"could not write the network to {tmp_path / 'file' / 'out'}"):
        export.write(tmp_path / "file" / "out", model, jax.jit(model.init)(jax.random.key(0)), {})


def test_a_player_of_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AleaError, match="is no exported network"):
        make_player(f"path:{tmp_path / 'nothing'}", rules("tictactoe"))
