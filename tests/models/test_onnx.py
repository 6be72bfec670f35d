from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array, lax
from jax.ad_checkpoint import checkpoint_name

from aleazero.core.errors import MissingExtra
from aleazero.models.onnx import _CALLS, _RULES, OnnxError, export_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

Outputs = dict[str, Array]


class ResidualMlp(nn.Module):
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: Array) -> Outputs:
        x = nn.Dense(32, dtype=self.dtype)(x.reshape(x.shape[0], -1))
        for activation in (nn.relu, nn.gelu, nn.silu):
            y = activation(nn.Dense(48, dtype=self.dtype)(nn.LayerNorm(dtype=self.dtype)(x)))
            x = x + nn.Dense(32, dtype=self.dtype)(y)
        x = nn.RMSNorm(dtype=self.dtype)(x)
        policy = nn.Dense(7, dtype=self.dtype)(x)
        return {"policy": nn.softmax(policy), "value": jnp.tanh(nn.Dense(1, dtype=self.dtype)(x))[:, 0]}


class PooledCnn(nn.Module):
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: Array) -> Outputs:
        x = nn.relu(nn.Conv(8, (3, 3), dtype=self.dtype)(x))
        for _ in range(2):
            y = nn.relu(nn.Conv(8, (3, 3), use_bias=False, dtype=self.dtype)(x))
            pooled = jnp.concatenate([y.mean((1, 2)), y.max((1, 2))], axis=-1)
            y = y + nn.Dense(8, dtype=self.dtype)(pooled)[:, None, None, :]
            x = nn.relu(x + nn.Conv(8, (3, 3), dtype=self.dtype)(y))
        x = nn.Conv(4, (2, 3), strides=(2, 1), padding="VALID", dtype=self.dtype)(x)
        x = nn.Conv(4, (3, 2), strides=2, feature_group_count=2, kernel_dilation=(1, 2), dtype=self.dtype)(x)
        outcome = nn.Dense(3, dtype=self.dtype)(x.reshape(x.shape[0], -1))
        return {"outcome": nn.log_softmax(outcome), "plane": x}


class Attention(nn.Module):
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: Array) -> Outputs:
        x = nn.Dense(12, dtype=self.dtype)(x)
        y = nn.LayerNorm(dtype=self.dtype)(x)
        mask = jnp.tril(jnp.ones((1, 1, 5, 5), bool))
        x = x + nn.MultiHeadDotProductAttention(3, dtype=self.dtype)(y, mask=mask)
        q, k, v = jnp.split(nn.Dense(36, dtype=self.dtype)(nn.RMSNorm(dtype=self.dtype)(x)), 3, axis=-1)
        weights = nn.softmax(jnp.einsum("nqd,nkd->nqk", q, k) / 12**0.5)
        x = x + jnp.einsum("nqk,nkd->nqd", weights, v)
        return {
            "first": x[:, 0],
            "middle": x[:, 1:4, 2],
            "even": x[..., ::2],
            "logsumexp": jax.nn.logsumexp(x, axis=-1),
        }


class Cards(nn.Module):
    @nn.compact
    def __call__(self, x: Array) -> Outputs:
        return {"cards": nn.Embed(9, 6)(x.astype(jnp.int32)), "hot": jax.nn.one_hot(x.astype(jnp.int32), 9)}


NETWORKS: dict[str, tuple[type[nn.Module], tuple[int, ...]]] = {
    "mlp": (ResidualMlp, (4, 5)),
    "cnn": (PooledCnn, (7, 6, 3)),
    "attention": (Attention, (5, 6)),
}


def twice(x: Array) -> Array:
    return 2 * x


custom = jax.custom_vjp(twice)
custom.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))

# Of observations [N, 4, 4]; row i of what they return depends on row i alone.
SMALL: dict[str, Callable[[Array], Array]] = {
    "arithmetic": lambda x: -x * 2 + x / 3 - jnp.abs(x) + x**3 + lax.integer_pow(x * x + 1, -2) + lax.square(x),
    "powers": lambda x: jnp.abs(x) ** 1.7 + jnp.sqrt(jnp.abs(x)) + lax.rsqrt(x * x + 0.1),
    "exponentials": lambda x: jnp.exp(x) + jnp.log(jnp.abs(x) + 1) + jnp.expm1(x) + jnp.log1p(jnp.abs(x)),
    "rounding": lambda x: jnp.floor(x) + jnp.ceil(2 * x) + jnp.sign(x) + jnp.sin(x) + jnp.cos(x),
    "activations": lambda x: nn.sigmoid(x) + nn.gelu(x, approximate=False) + lax.erf(x) + nn.softplus(x) + nn.elu(x),
    "choices": lambda x: jnp.where((x > 0) & ~(x >= 1) | (x < -1), x, jnp.where(x <= -0.5, 7.0, -jnp.inf)),
    "equality": lambda x: jnp.where(jnp.floor(x) == 0, 5.0, jnp.where(jnp.ceil(x) != -1, x, 0.0)),
    "bounds": lambda x: lax.clamp(-0.5, x, 0.7) + jnp.clip(x, -1, 1) + jnp.minimum(x, 0.3) + jnp.maximum(-0.2, x),
    "finite": lambda x: jnp.isfinite(1 / jnp.floor(x)) & jnp.isfinite(jnp.log(x)),
    "reductions": lambda x: (
        x.sum(-1) + x.max((1, 2))[:, None] * x.min(1) + x.prod(2) + x.var(1) + lax.reduce_sum(x, ())[:, 1]
    ),
    "shapes": lambda x: x.transpose(2, 0, 1).reshape(4, -1).T.reshape(x.shape[0], 2, 8) + jnp.ones((1, 2, 8)),
    "squeezing": lambda x: lax.squeeze(lax.slice(x[:, None], (0, 0, 1, 0), (x.shape[0], 1, 4, 3), (1, 1, 2, 1)), (1,)),
    "expansion": lambda x: jnp.concatenate(
        [jnp.tanh(jnp.broadcast_to(x[:, :1], x.shape)), jnp.full_like(x, 2), x], axis=1
    ),
    "pieces": lambda x: jnp.take(x, jnp.array([3, 0, 3]), axis=1)[..., jnp.array([1, 2])] + x[:, 1:2, 3:],
    "outside": lambda x: jnp.take(x, jnp.array([3, 4, -5, -1]), axis=2, fill_value=8.0),
    "products": lambda x: (
        jnp.einsum("nij,nkj->nki", x, x)[..., None] + jnp.einsum("nij,nij->n", x, x)[:, None, None, None]
    ),
    "weights first": lambda x: jnp.einsum("ab,njb->naj", jnp.arange(12.0).reshape(3, 4), x),
    "vector first": lambda x: lax.dot_general(jnp.arange(4.0), x, (((0,), (2,)), ((), ()))),
    "integers": lambda x: (x * 10).astype(jnp.int32) * jnp.array([[[4, 3, 2, 1]]]) - 3,
    "programs": lambda x: (
        jax.checkpoint(jnp.sin)(lax.optimization_barrier(checkpoint_name(jnp.array(x), "x"))) + custom(x)
    ),
    "precision": lambda x: lax.reduce_precision(lax.stop_gradient(x), 8, 23),
    "itself": lambda x: x,
}


def session(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def observations(n: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, *shape)).astype(np.float32)


def run(path: Path, inputs: np.ndarray) -> dict[str, np.ndarray]:
    ready = session(path)
    names = [output.name for output in ready.get_outputs()]
    return dict(zip(names, ready.run(names, {"observation": inputs}), strict=True))


def check(function: Callable[[Array], Outputs], shape: tuple[int, ...], path: Path, tolerance: float) -> None:
    """The file gives JAX's answers; N rows are compared with the first N of one large batch."""
    export_onnx(function, shape, path)
    inputs = observations(64, shape)
    expected = {name: np.asarray(value) for name, value in jax.jit(function)(inputs).items()}
    for n in (1, 3, 64):
        results = run(path, inputs[:n])
        assert set(results) == set(expected)
        for name, result in results.items():
            want = expected[name][:n]
            want = want.astype(np.float32) if jnp.issubdtype(want.dtype, jnp.floating) else want
            assert (result.shape, result.dtype) == (want.shape, want.dtype), name
            np.testing.assert_allclose(result, want, rtol=0, atol=tolerance, err_msg=f"{name}, N={n}")


def network(kind: type[nn.Module], shape: tuple[int, ...], **options: Any) -> Callable[[Array], Outputs]:
    """With random weights, biases and scales: where these start, mistakes with them would not show."""
    module, draw = kind(**options), np.random.default_rng(0)
    leaves = jax.eval_shape(module.init, jax.random.key(0), jnp.zeros((1, *shape)))
    params = jax.tree.map(lambda x: jnp.asarray(draw.normal(scale=0.15, size=x.shape), x.dtype), leaves)
    return jax.jit(lambda x: cast(Outputs, module.apply(params, x)))


def primitives(jaxpr: Any) -> set[str]:
    inner = [p for eqn in jaxpr.eqns for p in eqn.params.values() if hasattr(p, "eqns") or hasattr(p, "jaxpr")]
    return {eqn.primitive.name for eqn in jaxpr.eqns}.union(*(primitives(getattr(p, "jaxpr", p)) for p in inner))


def operators(model: Any) -> list[str]:
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("name", NETWORKS)
def test_network_agrees_with_jax(name: str, tmp_path: Path) -> None:
    kind, shape = NETWORKS[name]
    check(network(kind, shape), shape, tmp_path / "net.onnx", 1e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_bfloat16_network_is_written_in_float32(name: str, tmp_path: Path) -> None:
    kind, shape = NETWORKS[name]
    check(network(kind, shape, dtype=jnp.bfloat16), shape, tmp_path / "low.onnx", 3e-2)
    export_onnx(network(kind, shape), shape, tmp_path / "net.onnx")
    low, full = (run(tmp_path / file, observations(5, shape)) for file in ("low.onnx", "net.onnx"))
    for name in full:
        np.testing.assert_allclose(low[name], full[name], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", SMALL)
def test_primitives_agree_with_jax(name: str, tmp_path: Path) -> None:
    check(lambda x: {"y": SMALL[name](x)}, (4, 4), tmp_path / "small.onnx", 1e-4)


def test_every_rule_is_tested() -> None:
    cases: list[tuple[Callable[[Array], Any], tuple[int, ...]]] = [
        (function, (4, 4)) for function in [batch_wide, *SMALL.values()]
    ]
    cases += [(network(kind, shape), shape) for kind, shape in NETWORKS.values()]
    seen: set[str] = set()
    for function, shape in cases:
        spec = jax.ShapeDtypeStruct((*jax.export.symbolic_shape("N"), *shape), jnp.float32)
        seen |= primitives(jax.make_jaxpr(function)(spec).jaxpr)
    assert set(_RULES) - seen == set()
    assert set(_CALLS) - seen == {"pjit", "checkpoint", "closed_call"}  # what other versions of JAX use


def test_embedding_and_one_hot_agree_with_jax_outside_their_range_too(tmp_path: Path) -> None:
    function = network(Cards, (3,))
    export_onnx(function, (3,), tmp_path / "cards.onnx")
    inputs = np.array([[0, 8, 4], [9, -1, -9], [-10, -18, 100]], np.float32)
    results, expected = run(tmp_path / "cards.onnx", inputs), function(jnp.asarray(inputs))
    for name in ("cards", "hot"):
        np.testing.assert_array_equal(results[name], expected[name])
    assert np.isnan(results["cards"]).any(axis=-1).tolist() == [[False] * 3, [True, False, False], [True] * 3]


def batch_wide(x: Array) -> Outputs:
    # Of sizes 3 N and N x N: some are inferred, others worked out from the input.
    tripled = jnp.broadcast_to(jnp.arange(3.0)[:, None, None, None], (3, *x.shape)).reshape(-1, 4)
    pairs = (x.reshape(x.shape[0], -1) @ x.reshape(x.shape[0], -1).T)[:, None]
    return {"tripled": tripled, "pairs": pairs, "total": x.sum(), "constant": jnp.arange(4)}


def test_rows_may_be_joined_and_repeated(tmp_path: Path) -> None:
    export_onnx(batch_wide, (4, 4), tmp_path / "rows.onnx")
    for n in (1, 3):
        inputs = observations(n, (4, 4))
        results, expected = run(tmp_path / "rows.onnx", inputs), batch_wide(jnp.asarray(inputs))
        for name, want in expected.items():
            assert results[name].shape == want.shape
            np.testing.assert_allclose(results[name], want, rtol=0, atol=1e-5, err_msg=name)


def test_dense_layers_become_one_node_for_each_step(tmp_path: Path) -> None:
    class Small(nn.Module):
        @nn.compact
        def __call__(self, x: Array) -> Outputs:
            return {"y": nn.Dense(2, dtype=jnp.bfloat16)(nn.relu(nn.Dense(3, dtype=jnp.bfloat16)(x)))}

    export_onnx(network(Small, (5,)), (5,), tmp_path / "small.onnx")
    model = onnx.load(tmp_path / "small.onnx")
    assert operators(model) == ["MatMul", "Add", "Relu", "MatMul", "Add", "Identity"]
    assert sorted(tuple(array.dims) for array in model.graph.initializer) == [(1, 2), (1, 3), (3, 2), (5, 3)]
    assert {array.data_type for array in model.graph.initializer} == {onnx.TensorProto.FLOAT}


@pytest.mark.parametrize("name", NETWORKS)
def test_graph_has_no_chains(name: str, tmp_path: Path) -> None:
    kind, shape = NETWORKS[name]
    export_onnx(network(kind, shape, dtype=jnp.bfloat16), shape, tmp_path / "net.onnx")
    model = onnx.load(tmp_path / "net.onnx")
    maker = {output: node.op_type for node in model.graph.node for output in node.output}
    for node in model.graph.node:
        assert node.op_type not in ("Cast", "Expand", "Shape")
        if node.op_type in ("Reshape", "Transpose", "Identity"):
            assert maker.get(node.input[0]) != node.op_type
    assert operators(model).count("Identity") == len(model.graph.output)


def test_file_says_what_it_takes_and_holds(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "net.onnx"
    export_onnx(lambda x: {"b": x.sum(1), "a": x > 0}, (4,), path, metadata={"game": "pig", "step": "7"})
    ready = session(path)
    assert ready.get_modelmeta().custom_metadata_map == {"game": "pig", "step": "7"}
    assert [(i.name, i.type, i.shape) for i in ready.get_inputs()] == [("observation", "tensor(float)", ["N", 4])]
    outputs = {(o.name, o.type, tuple(o.shape)) for o in ready.get_outputs()}
    assert outputs == {("a", "tensor(bool)", ("N", 4)), ("b", "tensor(float)", ("N",))}
    assert onnx.load(path).opset_import[0].version >= 17


def test_all_that_has_no_rule_is_named_at_once(tmp_path: Path) -> None:
    def function(x: Array) -> Outputs:
        noise = jax.random.normal(jax.random.key(0), x.shape)
        return {
            "y": jnp.sort(jnp.cumsum(x, axis=1)),
            "z": lax.conv_transpose(x + noise, jnp.ones((2, 3, 1)), (2,), "SAME"),
        }

    with pytest.raises(OnnxError, match="cannot be written as ONNX") as raised:
        export_onnx(function, (4, 3), tmp_path / "net.onnx")
    used, allowed = str(raised.value).split("what can be exported: ")
    for name in ("sort", "cumsum", "random_bits", "conv_general_dilated (transposed"):
        assert name in used
    assert {"dot_general", "tanh", "jit"} <= set(allowed.split(", "))
    assert list(tmp_path.iterdir()) == []


def test_what_no_output_needs_may_be_anything(tmp_path: Path) -> None:
    def function(x: Array) -> Outputs:
        jax.debug.print("{}", jnp.sort(x)[0, 0])
        return {"y": x + jnp.sort(jnp.array([3.0, 1.0, 2.0]))[None]}

    export_onnx(function, (3,), tmp_path / "net.onnx")
    assert operators(onnx.load(tmp_path / "net.onnx")) == ["Add", "Identity"]
    assert run(tmp_path / "net.onnx", np.zeros((1, 3), np.float32))["y"].tolist() == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: {"y": x if x.shape[0] > 2 else -x}, "any batch size"),
        (lambda x: {"y": x[:-1]}, "sizes"),
        (lambda x: {"y": x.mean()}, "dim_as_value"),
        (lambda x: {"y": jnp.arange(x.shape[0])}, "iota"),
        (lambda x: {"y": x.astype(jnp.int32) & 1}, "and \\(of int32\\)"),
        (lambda x: x, "dict of arrays"),
        (lambda x: {}, "dict of arrays"),
        (lambda x: {"y": {"z": x}}, "dict of arrays"),
        (lambda x: {"observation": x}, "other than 'observation'"),
    ],
)
def test_function_that_cannot_be_exported_says_why(function: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(OnnxError, match=message):
        export_onnx(function, (4,), tmp_path / "net.onnx")


def test_failed_export_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    export_onnx(lambda x: {"y": x + 1}, (4,), path)
    before = path.read_bytes()
    with pytest.raises(OnnxError, match="sort"):
        export_onnx(lambda x: {"y": jnp.sort(x)}, (4,), path)
    assert path.read_bytes() == before
    export_onnx(lambda x: {"y": x + 2}, (4,), path)
    assert run(path, np.zeros((1, 4), np.float32))["y"].tolist() == [[2, 2, 2, 2]]
    assert list(tmp_path.iterdir()) == [path]


def test_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken.onnx").mkdir()
    with pytest.raises(OSError, match=r"taken\.onnx"):
        export_onnx(lambda x: {"y": x + 1}, (4,), tmp_path / "taken.onnx")
    assert list(tmp_path.iterdir()) == [tmp_path / "taken.onnx"]


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"ONNX export needs onnx.*aleazero\[export\]"):
        export_onnx(lambda x: {"y": x}, (4,), tmp_path / "net.onnx")
