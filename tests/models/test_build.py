"""Networks: what they compute, worked out again in numpy, and how a config becomes one."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.errors import ConfigError, GameContractError
from aleazero.core.game import WIN_DRAW_LOSS, GameSpec, Outcome
from aleazero.core.records import Output, Prediction
from aleazero.models.build import Model, ModelConfig, build_model
from aleazero.models.networks import MoveLogits, ResidualCNN, ResidualMLP

SIX = tuple(Outcome(f"{points:+}", float(points)) for points in (1, 2, 3, -1, -2, -3))
KEY = jax.random.key(3)


def spec_of(shape: tuple[int, ...], outcomes: tuple[Outcome, ...] = WIN_DRAW_LOSS) -> GameSpec:
    return GameSpec(
        name="sample",
        version=1,
        num_players=2,
        num_actions=5,
        max_legal=5,
        observation_shape=shape,
        outcomes=outcomes,
        max_plies=9,
    )


FLAT, BOARD, WIDE = spec_of((7,), SIX), spec_of((4, 3, 2), SIX), spec_of((3, 12, 2))
SPECS = {"mlp": FLAT, "cnn": BOARD}
TINY = ModelConfig(width=8, blocks=2, head_width=4, compute="float32")


@functools.cache
def model(kind: Any, **changes: Any) -> Model:
    return build_model(dataclasses.replace(TINY, kind=kind, **changes), SPECS[kind])


@functools.cache
def compiled(network: Model, function: str) -> Callable[..., Any]:
    return jax.jit(getattr(network, function))


@pytest.fixture(autouse=True, scope="module")
def quick_compile() -> Iterator[None]:
    """Many small programs run once each: XLA without its expensive passes."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def shaken(model: Model, seed: int = 0, size: float = 0.3) -> Any:
    """Weights of which none is zero, as after some training."""
    like = jax.eval_shape(model.init, KEY)
    leaves, shape = jax.tree.flatten(like)
    rng = np.random.default_rng(seed)
    return jax.tree.unflatten(shape, [jnp.asarray(size * rng.normal(size=leaf.shape), leaf.dtype) for leaf in leaves])


def observations(spec: GameSpec, count: int, seed: int = 0) -> jax.Array:
    shape = (count, *spec.observation_shape)
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


# ---- numpy references


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def dense(weights: Any, x: np.ndarray) -> np.ndarray:
    return x @ np.asarray(weights["kernel"], np.float64) + np.asarray(weights["bias"], np.float64)


def norm(weights: Any, x: np.ndarray) -> np.ndarray:
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    return x * np.asarray(weights["scale"]) + np.asarray(weights["bias"])


def conv(weights: Any, x: np.ndarray) -> np.ndarray:
    """Square by square; beyond the board there are zeros."""
    kernel = np.asarray(weights["kernel"], np.float64)
    reach = kernel.shape[0] // 2
    found = np.zeros((*x.shape[:3], kernel.shape[-1]))
    for row, column, i, j in np.ndindex(*x.shape[1:3], *kernel.shape[:2]):
        r, c = row + i - reach, column + j - reach
        if 0 <= r < x.shape[1] and 0 <= c < x.shape[2]:
            found[:, row, column] += x[:, r, c] @ kernel[i, j]
    return found + np.asarray(weights["bias"])


def heads(weights: Any, policy: np.ndarray, value: np.ndarray) -> dict[str, np.ndarray]:
    found = {name: dense(weights[name], policy) for name in weights if name != "value"}
    return {"logits": found.pop("policy"), "value": dense(weights["value"], value), **found}


def mlp_in_numpy(weights: Any, x: np.ndarray, blocks: int) -> dict[str, np.ndarray]:
    x = dense(weights["stem"], x.reshape(len(x), -1).astype(np.float64))
    for i in range(blocks):
        x = x + dense(weights[f"out_{i}"], relu(dense(weights[f"in_{i}"], norm(weights[f"norm_{i}"], x))))
    x = relu(norm(weights["norm"], x))
    return heads(weights["heads"], x, x)


def cnn_in_numpy(weights: Any, x: np.ndarray, blocks: int, pooled: tuple[int, ...]) -> dict[str, np.ndarray]:
    x = conv(weights["stem"], x.astype(np.float64))
    for i in range(blocks):
        y = conv(weights[f"in_{i}"], relu(x))
        if i in pooled:
            whole = np.concatenate([relu(y).mean((1, 2)), relu(y).max((1, 2))], -1)
            y = y + dense(weights[f"pool_{i}"]["bias"], whole)[:, None, None]
        x = x + conv(weights[f"out_{i}"], relu(y))
    x = relu(norm(weights["norm"], x))
    policy = relu(conv(weights["policy_planes"], x)).reshape(len(x), -1)
    value = relu(conv(weights["value_planes"], x)).reshape(len(x), -1)
    return heads(weights["heads"], policy, relu(dense(weights["value_hidden"], value)))


def same(output: Output, wanted: dict[str, np.ndarray], scalar: bool = False) -> None:
    assert {name for name, x in vars(output).items() if x is not None} == set(wanted)
    for name, x in wanted.items():
        bounded = np.tanh(x) if scalar and name == "value" else x
        np.testing.assert_allclose(getattr(output, name), bounded, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize(("value", "extras"), [("outcomes", True), ("scalar", False)])
def test_the_mlp_computes_what_it_should(value: str, extras: bool) -> None:
    network = model("mlp", value=value, soft_policy=extras, reply_policy=extras)
    weights, seen = shaken(network), observations(FLAT, 6)
    same(compiled(network, "apply")(weights, seen), mlp_in_numpy(weights, np.asarray(seen), 2), value == "scalar")


@pytest.mark.parametrize(("every", "pooled"), [(0, ()), (1, (0, 1, 2)), (2, (1,))])
def test_the_cnn_computes_what_it_should(every: int, pooled: tuple[int, ...]) -> None:
    network = model("cnn", blocks=3, pooling_every=every, soft_policy=True)
    weights, seen = shaken(network), observations(BOARD, 6)
    assert {name for name in weights if name.startswith("pool")} == {f"pool_{i}" for i in pooled}
    same(compiled(network, "apply")(weights, seen), cnn_in_numpy(weights, np.asarray(seen), 3, pooled))


# ---- shapes and types


@pytest.mark.parametrize(
    ("kind", "value", "extras", "compute"),
    [
        *itertools.product(["mlp", "cnn"], ["outcomes", "scalar"], [(False, False), (True, True)], ["float32"]),
        *itertools.product(["mlp", "cnn"], ["outcomes"], [(True, False), (False, True)], ["bfloat16"]),
    ],
)
def test_every_head_has_its_shape(kind: str, value: str, extras: tuple[bool, bool], compute: str) -> None:
    soft, reply = extras
    network = model(kind, value=value, soft_policy=soft, reply_policy=reply, compute=compute)
    weights = jax.eval_shape(network.init, KEY)
    assert {leaf.dtype for leaf in jax.tree.leaves(weights)} == {jnp.dtype("float32")}
    seen = jax.ShapeDtypeStruct((4, *SPECS[kind].observation_shape), jnp.float32)
    output = jax.eval_shape(network.apply, weights, seen)
    found = {name: (x.shape, str(x.dtype)) for name, x in vars(output).items() if x is not None}
    width = 6 if value == "outcomes" else 1
    wanted = {"logits": (4, 5), "value": (4, width)} | {n: (4, 5) for n, on in (("soft", soft), ("reply", reply)) if on}
    assert found == {name: (shape, "float32") for name, shape in wanted.items()}
    prediction = jax.eval_shape(network.evaluate, weights, seen)
    assert (prediction.logits.shape, prediction.value.shape) == ((4, 5), (4,))
    assert prediction.value.dtype == prediction.logits.dtype == jnp.float32
    assert jax.eval_shape(network.opinion, weights, seen).shape == (4, width)


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_half_precision_is_used_and_agrees_roughly(kind: str) -> None:
    full, half = model(kind), model(kind, compute="bfloat16")
    weights, seen = shaken(full), observations(SPECS[kind], 8)
    exact = compiled(full, "apply")(weights, seen)
    rough = compiled(half, "apply")(weights, seen)
    for name in ("logits", "value"):
        wanted, found = np.asarray(getattr(exact, name)), np.asarray(getattr(rough, name))
        error = np.abs(found - wanted).max() / wanted.std()
        assert 1e-4 < error < 0.15, f"{name}: {error}"


def test_the_first_layer_of_the_mlp_keeps_large_counts_apart() -> None:
    """A score of 257 is not a score of 256, which is what bfloat16 would make of it."""
    network = model("mlp", compute="bfloat16", blocks=0)
    weights = shaken(network, size=1.0)
    seen = jnp.zeros((2, 7)).at[:, 0].set(jnp.array([256.0, 257.0])).at[:, 1].set(-256.0)
    kernel = weights["stem"]["kernel"]
    weights["stem"]["kernel"] = kernel.at[:2].set(10.0 * kernel[0][None])
    wanted = mlp_in_numpy(weights, np.asarray(seen), 0)["logits"]
    found = np.asarray(compiled(network, "apply")(weights, seen).logits)
    assert np.abs(wanted[1] - wanted[0]).max() > 0.5
    np.testing.assert_allclose(found[1] - found[0], wanted[1] - wanted[0], atol=0.1)


def test_auto_computes_in_float32_on_the_cpu() -> None:
    network: Any = model("mlp", compute="auto").network
    assert network.compute == jnp.float32


# ---- a value alone


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
@pytest.mark.parametrize("value", ["outcomes", "scalar"])
def test_without_a_policy_there_is_a_value_alone_and_the_same_one(kind: str, value: str) -> None:
    both, alone = model(kind, value=value), model(kind, value=value, policy=False)
    weights, seen = shaken(both), observations(SPECS[kind], 5)
    like = jax.eval_shape(alone.init, KEY)
    assert set(like["heads"]) == {"value"}
    heads = {"value": weights["heads"]["value"]}
    without = {name: part for name, part in weights.items() if name in like} | {"heads": heads}
    assert jax.tree.map(jnp.shape, without) == jax.tree.map(lambda x: x.shape, like)
    output = compiled(alone, "apply")(without, seen)
    assert (output.logits, output.soft, output.reply) == (None, None, None)
    np.testing.assert_allclose(output.value, compiled(both, "apply")(weights, seen).value, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        compiled(alone, "opinion")(without, seen), compiled(both, "opinion")(weights, seen), rtol=1e-6, atol=1e-6
    )
    with pytest.raises(AssertionError, match="not given a network without one"):
        alone.evaluate(without, seen)


@pytest.mark.parametrize("extra", ["soft_policy", "reply_policy"])
def test_further_policies_need_a_policy(extra: str) -> None:
    config = dataclasses.replace(ModelConfig(policy=False), **{extra: True})  # type: ignore[arg-type]
    assert config.problems() == ["policy is false; soft_policy and reply_policy need a policy"]
    assert ModelConfig(policy=False).problems() == []


def test_coarse_inputs_are_read_in_half_precision() -> None:
    """Flags and small counts lose nothing by it; a score of 257 does."""
    fine, coarse = (model("mlp", compute="bfloat16", blocks=0, coarse_inputs=on) for on in (False, True))
    made: list[Any] = [network.network for network in (fine, coarse)]
    assert [network.inputs for network in made] == [jnp.float32, jnp.bfloat16]
    weights = shaken(fine, size=1.0)
    whole = jnp.zeros((2, 7)).at[0, 0].set(256.0).at[1, 0].set(257.0)
    apart = [np.ptp(np.asarray(compiled(n, "apply")(weights, whole).value), axis=0).max() for n in (fine, coarse)]
    assert apart[1] == 0 < apart[0]
    flags = jnp.asarray(np.random.default_rng(0).integers(0, 4, (16, 7)), jnp.float32)
    wanted, found = (np.asarray(compiled(n, "apply")(weights, flags).value) for n in (fine, coarse))
    assert np.abs(found - wanted).max() / wanted.std() < 0.15
    # On float32 it makes no difference at all.
    wanted, found = (
        np.asarray(compiled(model("mlp", blocks=0, coarse_inputs=on), "apply")(weights, flags).value)
        for on in (False, True)
    )
    np.testing.assert_array_equal(found, wanted)


# ---- no row, and no square, sees more than it should


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_a_row_does_not_depend_on_the_others(kind: str) -> None:
    network = model(kind, pooling_every=1)
    weights, apply = shaken(network), compiled(network, "apply")
    seen, others = observations(SPECS[kind], 6), 5.0 + observations(SPECS[kind], 6, seed=1)
    alone = apply(weights, seen)
    mixed = apply(weights, others.at[2].set(seen[2]))
    for name in ("logits", "value"):
        np.testing.assert_allclose(getattr(mixed, name)[2], getattr(alone, name)[2], rtol=1e-6, atol=1e-6)
        assert np.abs(np.asarray(getattr(mixed, name) - getattr(alone, name))[[0, 1, 3, 4, 5]]).max() > 0.1


@pytest.mark.parametrize(("every", "reacts"), [(0, False), (1, True), (2, False)])
def test_pooling_lets_a_far_square_be_seen_in_the_first_block(every: int, reacts: bool) -> None:
    """Three convolutions see three squares far; the change is eleven away, and read off before the heads."""
    network = build_model(dataclasses.replace(TINY, kind="cnn", blocks=1, pooling_every=every), WIDE)
    weights, seen = shaken(network), observations(WIDE, 1)
    changed = seen.at[0, 1, 11].add(3.0)

    @jax.jit
    def torso(observation: jax.Array) -> jax.Array:
        found = network.network.apply({"params": weights}, observation, capture_intermediates=True)
        return found[1]["intermediates"]["norm"]["__call__"][0]

    change = np.abs(np.asarray(torso(changed) - torso(seen))).max((0, 1, 3))
    assert (change[8:] > 1e-3).all()
    assert (change[:8] > 1e-3).all() if reacts else (change[:8] == 0).all()


# ---- how it starts


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_every_block_starts_as_the_identity(kind: str) -> None:
    deep = model(kind, pooling_every=1)
    shallow = model(kind, blocks=0)
    weights, seen = compiled(deep, "init")(KEY), observations(SPECS[kind], 4)
    without = {name: part for name, part in weights.items() if not re.search(r"_\d$", name)}
    assert len(without) < len(weights)
    one, other = compiled(deep, "apply")(weights, seen), compiled(shallow, "apply")(without, seen)
    np.testing.assert_array_equal(one.logits, other.logits)
    np.testing.assert_array_equal(one.value, other.value)
    # The branches are there: other weights at their ends make a difference.
    weights = {**weights, "out_1": shaken(deep)["out_1"]}
    assert np.abs(np.asarray(compiled(deep, "apply")(weights, seen).logits - one.logits)).max() > 1e-3


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_a_fresh_network_hardly_prefers_anything_but_tells_positions_apart(kind: str) -> None:
    network = model(kind, pooling_every=1)
    output = compiled(network, "apply")(compiled(network, "init")(KEY), observations(SPECS[kind], 32))
    for logits in (np.asarray(output.logits), np.asarray(output.value)):
        assert np.abs(logits).max() < 1.0
        assert logits.std(0).min() > 1e-3


def test_the_key_decides_the_weights() -> None:
    config = dataclasses.replace(TINY, blocks=0)
    first, second = (jax.jit(build_model(config, FLAT).init)(KEY) for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, first, second)
    other = compiled(model("mlp", pooling_every=1), "init")(jax.random.key(4))
    assert not np.isclose(first["stem"]["kernel"], other["stem"]["kernel"]).any()


# ---- what play asks of it


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_a_value_is_what_the_outcomes_are_worth(kind: str) -> None:
    network = model(kind)
    weights, seen = shaken(network, size=0.6), observations(SPECS[kind], 8)
    scores = np.asarray(compiled(network, "apply")(weights, seen).value, np.float64)
    shares = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(compiled(network, "opinion")(weights, seen), shares, atol=1e-5)
    found: Prediction = compiled(network, "evaluate")(weights, seen)
    np.testing.assert_allclose(found.value, shares @ np.array([1, 2, 3, -1, -2, -3]) / 3, atol=1e-5)
    np.testing.assert_allclose(found.logits, compiled(network, "apply")(weights, seen).logits, rtol=1e-5, atol=1e-5)
    assert np.ptp(np.asarray(found.value)) > 0.1


def test_a_scalar_is_the_value_and_never_leaves_its_range() -> None:
    network = model("mlp", value="scalar")
    weights, seen = shaken(network, size=2.0), observations(FLAT, 32)
    found = np.asarray(compiled(network, "evaluate")(weights, seen).value)
    np.testing.assert_array_equal(found, compiled(network, "apply")(weights, seen).value[:, 0])
    np.testing.assert_array_equal(found, compiled(network, "opinion")(weights, seen)[:, 0])
    assert np.abs(found).max() <= 1
    assert found.max() > 0.9
    assert found.min() < -0.9


def test_it_compiles_once() -> None:
    network = model("mlp")
    evaluate = jax.jit(network.evaluate)
    values = [np.asarray(evaluate(shaken(network, i), observations(FLAT, 4, i)).value) for i in range(3)]
    assert evaluate._cache_size() == 1  # type: ignore[attr-defined]
    assert not np.isclose(values[0], values[1]).any()


# ---- from a config


@pytest.mark.parametrize(
    ("kind", "shape", "made"),
    [
        ("auto", (4, 3, 2), ResidualCNN),
        ("auto", (7,), ResidualMLP),
        ("auto", (4, 3), ResidualMLP),
        ("auto", (2, 2, 2, 2), ResidualMLP),
        ("mlp", (4, 3, 2), ResidualMLP),
        ("cnn", (4, 3, 2), ResidualCNN),
    ],
)
def test_which_network_is_built(kind: Any, shape: tuple[int, ...], made: type) -> None:
    network = build_model(dataclasses.replace(TINY, kind=kind), spec_of(shape))
    assert type(network.network) is made
    seen = jax.ShapeDtypeStruct((2, *shape), jnp.float32)
    assert jax.eval_shape(network.evaluate, jax.eval_shape(network.init, KEY), seen).logits.shape == (2, 5)


def test_widths_and_blocks_are_those_asked_for() -> None:
    weights = jax.eval_shape(model("cnn", width=6, blocks=3, head_width=2, pooling_every=3).init, KEY)
    assert weights["stem"]["kernel"].shape == (3, 3, 2, 6)
    assert {name for name in weights if name.startswith("in_")} == {"in_0", "in_1", "in_2"}
    assert [name for name in weights if name.startswith("pool")] == ["pool_2"]
    assert weights["policy_planes"]["kernel"].shape == (1, 1, 6, 2)
    weights = jax.eval_shape(model("mlp", width=6, blocks=3).init, KEY)
    assert weights["stem"]["kernel"].shape == (7, 6)
    assert weights["in_2"]["kernel"].shape == weights["out_2"]["kernel"].shape == (6, 6)


def test_a_sound_config_has_no_problems() -> None:
    assert ModelConfig().problems() == []
    assert ModelConfig(width=1, blocks=0, pooling_every=0, head_width=1).problems() == []
    assert ModelConfig(kind="cnn").problems_with(BOARD) == []
    assert ModelConfig(kind="mlp", value="scalar").problems_with(spec_of((7,), ())) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"width": 0}, "width is 0; it must be at least 1"),
        ({"blocks": -1}, "blocks is -1; it must be at least 0"),
        ({"pooling_every": -2}, "pooling_every is -2; it must be at least 0"),
        ({"head_width": 0}, "head_width is 0; it must be at least 1"),
    ],
)
def test_each_problem_is_named(changes: dict[str, Any], problem: str) -> None:
    config = ModelConfig(**changes)
    assert config.problems() == [problem]
    with pytest.raises(ConfigError, match=f"^model.{problem}$"):
        build_model(config, BOARD)


def test_all_problems_and_misfits_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        build_model(ModelConfig(kind="cnn", width=0, blocks=-1), spec_of((7,), ()))
    assert str(caught.value).splitlines() == [
        "model.width is 0; it must be at least 1",
        "model.blocks is -1; it must be at least 0",
        "model.kind is 'cnn', but sample's observations are [7], not [rows, columns, planes]; use 'mlp'",
        "model.value is 'outcomes', but sample has no finite outcomes; use 'scalar' or 'twohot'",
    ]


# ---- a network for each phase


def test_each_phase_has_its_own_network_and_the_flag_says_which() -> None:
    spec = dataclasses.replace(spec_of((7,)), phase_input=4)
    two = build_model(dataclasses.replace(TINY, kind="mlp", second_width=3), spec)
    weights, apply = compiled(two, "init")(KEY), compiled(two, "apply")
    assert weights["one"]["stem"]["kernel"].shape == (7, TINY.width)
    assert weights["other"]["stem"]["kernel"].shape == (7, 3)
    seen = observations(spec, 6, 1).at[:, 4].set(jnp.array([1.0, 0, 1, 0, 0, 1]))
    before = apply(weights, seen)
    for phase, stays in (("one", [1, 3, 4]), ("other", [0, 2, 5])):
        after = apply(weights | {phase: jax.tree.map(lambda w: w + 0.3, weights[phase])}, seen)
        for old, new in ((before.value, after.value), (before.logits, after.logits)):
            same = np.isclose(np.asarray(old), np.asarray(new)).all(-1)
            assert np.flatnonzero(same).tolist() == stays


def test_phases_need_a_game_that_names_them_and_no_picture() -> None:
    config = dataclasses.replace(TINY, second_width=3)
    assert config.problems_with(spec_of((7,))) == ["model.second_width is 3, but sample names no phases; leave it 0"]
    board = dataclasses.replace(spec_of((4, 3, 2)), phase_input=0)
    assert config.problems_with(board) == ["model.second_width is 3; it is for kind 'mlp'"]
    assert dataclasses.replace(TINY, second_width=-1).problems() == ["second_width is -1; it must be at least 0"]


# ---- inputs that are left out


def test_unseen_inputs_change_nothing_and_the_others_do() -> None:
    spec = spec_of((7,))
    model = build_model(dataclasses.replace(TINY, kind="mlp", unseen="1-3,6"), spec)
    weights = jax.tree.map(lambda w: w + 0.1, jax.jit(model.init)(KEY))  # heads start near 0
    seen = observations(spec, 7, 1)[:1].repeat(8, 0)
    moved = seen.at[jnp.arange(1, 8), jnp.arange(7)].add(1.0)
    values = np.asarray(compiled(model, "apply")(weights, moved).value)
    assert np.flatnonzero((values[1:] == values[0]).all(-1)).tolist() == [1, 2, 3, 6]


@pytest.mark.parametrize("written", ["a", "3-", "1,,2", "-1", "5-3"])
def test_places_that_cannot_be_read_are_refused(written: str) -> None:
    assert "write places from 0" in dataclasses.replace(TINY, unseen=written).problems()[0]


def test_unseen_planes_change_nothing_and_the_others_do() -> None:
    spec = spec_of((4, 3, 5))
    model = build_model(dataclasses.replace(TINY, unseen="0,2-3"), spec)
    weights = jax.tree.map(lambda w: w + 0.1, jax.jit(model.init)(KEY))
    seen = observations(spec, 7, 1)[:1].repeat(6, 0)
    moved = seen.at[jnp.arange(1, 6), ..., jnp.arange(5)].add(1.0)
    values = np.asarray(compiled(model, "apply")(weights, moved).value)
    assert np.flatnonzero((values[1:] == values[0]).all(-1)).tolist() == [0, 2, 3]


def test_unseen_places_must_be_there() -> None:
    config = dataclasses.replace(TINY, kind="mlp", unseen="5-7")
    assert config.problems_with(spec_of((7,))) == ["model.unseen is '5-7', but sample has 7 inputs"]
    assert config.problems_with(spec_of((8,))) == []
    picture = dataclasses.replace(config, kind="auto").problems_with(spec_of((4, 3, 2)))
    assert picture == ["model.unseen is '5-7', but sample has 2 planes"]
    rows = dataclasses.replace(config, kind="balatro_rows").problems_with(spec_of((8,)))
    assert "model.unseen is '5-7'; it is for kinds 'mlp' and 'cnn'" in rows


def test_a_head_for_the_moves_that_are_left() -> None:
    spec = spec_of((7,))
    with_it = build_model(dataclasses.replace(TINY, kind="mlp", moves_left=True), spec)
    weights, seen = compiled(with_it, "init")(KEY), observations(spec, 6, 1)
    left = np.asarray(compiled(with_it, "apply")(weights, seen).moves_left)
    assert left.shape == (6,)
    assert (left > 0).all()
    without = build_model(dataclasses.replace(TINY, kind="mlp"), spec)
    assert jax.eval_shape(without.apply, weights, seen).moves_left is None
    two = build_model(
        dataclasses.replace(TINY, kind="mlp", moves_left=True, second_width=3), dataclasses.replace(spec, phase_input=4)
    )
    assert jax.eval_shape(two.apply, jax.eval_shape(two.init, KEY), seen).moves_left.shape == (6,)


def test_moves_are_judged_by_their_squares() -> None:
    """Each logit from its own source, target and kind; a move elsewhere whose squares look alike is worth the same."""
    moves = ((0, 5, 0), (5, 0, 0), (0, 5, 1), (2, 3, 1), (11, 4, 0))
    spec = dataclasses.replace(BOARD, num_actions=len(moves), max_legal=len(moves), moves=moves)
    network = build_model(dataclasses.replace(TINY, kind="cnn", soft_policy=True), spec)
    weights, seen = shaken(network), observations(spec, 3)
    found = MoveLogits(moves).apply({"params": weights["heads"]["policy"]}, features := _features(8))
    squares, own = np.asarray(features).reshape(2, 12, 8), jax.device_get(weights["heads"]["policy"])
    ask, answer, kinds = (squares @ own[name]["kernel"] + own[name]["bias"] for name in ("source", "target", "kind"))
    for action, (source, target, kind) in enumerate(moves):
        pair = (ask[:, source] * answer[:, target]).sum(-1) / 8**0.5
        np.testing.assert_allclose(found[:, action], pair + kinds[:, target, kind], rtol=1e-4, atol=1e-5)
    output = compiled(network, "apply")(weights, seen)
    assert output.logits.shape == output.soft.shape == (3, 5)
    assert bool((output.logits != output.soft).all())


def _features(width: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(3).normal(size=(2, 4, 3, width)), jnp.float32)


def test_a_game_names_a_move_for_every_action_or_for_none() -> None:
    with pytest.raises(GameContractError, match="moves has 1 entries; num_actions is"):
        dataclasses.replace(BOARD, moves=((0, 1, 0),))


@pytest.mark.parametrize(
    ("kind", "shape", "width", "rows"),
    [("mlp", (200,), 256, 512), ("mlp", (200,), 512, 256), ("cnn", (8, 8, 19), 128, 32), ("cnn", (6, 7, 2), 32, 64)],
)
def test_rows_whose_layers_stay_in_a_cpus_cache(
    kind: Any, shape: tuple[int, ...], width: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = build_model(ModelConfig(kind=kind, width=width), spec_of(shape))
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert network.cached_rows == rows
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert network.cached_rows == 0
