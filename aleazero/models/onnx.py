"""Writes a JAX inference function as an ONNX file, by walking its jaxpr.

The function is traced once, with a symbolic batch size, and `_RULES` says which ONNX nodes each primitive of the trace
becomes. Weights that the function closes over, and all that follows from them alone, become initializers. Whatever
computes in another floating type, such as bfloat16, is written in float32: inference in ONNX runs in float32.

It knows no network, game or checkpoint, only a function of arrays. It writes no loops, branches or randomness.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr, Literal

from aleazero.core.errors import AleaError, MissingExtra
from aleazero.core.files import replace_file

INPUT = "observation"
OPSET = 18  # the first in which every reduction takes its axes as an input
Inference = Callable[[jax.Array], dict[str, jax.Array]]  # float32 observations [N, ...] -> outputs by name
_Value: TypeAlias = "_Tensor | np.ndarray"  # known when the file runs, or known now


class OnnxError(AleaError):
    """A function cannot be written as ONNX."""


class _Tensor(NamedTuple):
    name: str
    shape: tuple[Any, ...]  # sizes are int, or symbolic where the batch is involved


def _dtype(dtype: Any) -> np.dtype:
    return np.dtype(np.float32) if jnp.issubdtype(dtype, jnp.floating) else np.dtype(dtype)


def _array(value: Any) -> _Value:
    if jnp.issubdtype(getattr(value, "dtype", np.float32), jax.dtypes.extended):
        return _Tensor("key", value.shape)  # of randomness, which has no rules
    array = np.asarray(value)
    return array.astype(_dtype(array.dtype), copy=False)


def _common(values: Sequence[_Value]) -> tuple[Any, ...]:
    """The shape that values of one rank, and scalars, broadcast to; a symbolic size counts as different from 1."""
    columns = zip(*(value.shape for value in values if value.shape != ()), strict=True)
    return tuple(next((size for size in sizes if size != 1), 1) for sizes in columns)


class _Graph:
    """The nodes so far, none of them twice. Its methods simplify as they build, so that no chains arise."""

    def __init__(self, onnx: Any, observation: _Tensor) -> None:
        self.onnx, self.observation = onnx, observation
        self.nodes: list[Any] = []  # onnx.NodeProto; without an operator where a primitive has no rule
        self.arrays: dict[str, np.ndarray] = {}
        self._made: dict[str, tuple[str, _Value, dict[str, Any]]] = {}  # operator, first input, attributes
        self._known: dict[Any, Any] = {}  # arrays' names and nodes' outputs, by content

    def name(self, value: _Value) -> str:
        if isinstance(value, _Tensor):
            return value.name
        key = (value.dtype, value.shape, hashlib.sha256(value.tobytes()).digest())
        name: str = self._known.setdefault(key, f"constant.{len(self._known)}")
        self.arrays[name] = value
        return name

    def node(self, op: str, values: Sequence[_Value], shape: Sequence[Any], **attributes: Any) -> _Tensor:
        names, tensor = [self.name(value) for value in values], _Tensor(f"value.{len(self.nodes)}", tuple(shape))
        made: _Tensor = self._known.setdefault((op, *names, tensor.shape, str(attributes)), tensor)
        if made is tensor:
            self.nodes.append(self.onnx.helper.make_node(op, names, [tensor.name], **attributes))
            self._made[tensor.name] = (op, values[0], attributes)
        return made

    def before(self, value: _Value, op: str) -> tuple[_Value, dict[str, Any]] | None:
        """What `value` was made of, and how, if an `op` made it."""
        made = self._made.get(value.name) if isinstance(value, _Tensor) else None
        return made[1:] if made and made[0] == op else None

    def each(self, op: str, *values: _Value) -> _Value:
        """An elementwise operator. ONNX broadcasts by itself, so an expansion before it is left out if it can be."""
        shape = _common(values)
        bare = tuple(made[0] if (made := self.before(value, "Expand")) else value for value in values)
        values = bare if _common(bare) == shape else values
        neutral, sides = _NEUTRAL.get(op, (0, 0))
        for other, constant in [values, values[::-1]][:sides]:
            if other.shape == shape and isinstance(constant, np.ndarray):
                if np.all(constant == neutral):
                    return other
                if op == "Max" and not constant.any():
                    return self.node("Relu", [other], shape)
        return self.node(op, values, shape)

    def vector(self, sizes: Sequence[Any]) -> _Value:
        """The sizes as a one-dimensional integer value."""
        parts = [(0, size) if isinstance(size, int) else divmod(size, self.observation.shape[0]) for size in sizes]
        if not all(isinstance(part, int) for pair in parts for part in pair):
            raise OnnxError(f"sizes {tuple(sizes)}: one is no multiple of the batch size")
        times, rest = np.array(parts, np.int64).reshape(-1, 2).T
        if not times.any():
            return rest
        return self.each("Add", self.each("Mul", self.node("Shape", [self.observation], [1], end=1), times), rest)

    def expand(self, value: _Value, shape: tuple[Any, ...]) -> _Value:
        return value if value.shape == shape else self.node("Expand", [value, self.vector(shape)], shape)

    def reshape(self, value: _Value, shape: tuple[Any, ...]) -> _Value:
        if (made := self.before(value, "Expand")) and math.prod(made[0].shape) == 1:
            return self.expand(self.reshape(made[0], (1,) * len(shape)), shape)
        if made := self.before(value, "Reshape"):
            value = made[0]
        if value.shape == shape:
            return value
        if isinstance(value, np.ndarray):
            return value.reshape(shape)
        inferred = [size if isinstance(size, int) else -1 for size in shape]
        return self.node("Reshape", [value, self.vector(inferred if inferred.count(-1) == 1 else shape)], shape)

    def transpose(self, value: _Value, order: Sequence[int]) -> _Value:
        if isinstance(value, np.ndarray):
            return value.transpose(order)
        if made := self.before(value, "Transpose"):
            value, order = made[0], [made[1]["perm"][axis] for axis in order]
        if list(order) == sorted(order):
            return value
        return self.node("Transpose", [value], [value.shape[axis] for axis in order], perm=list(order))

    def cast(self, value: _Value, source: Any, target: Any) -> _Value:
        if _dtype(source) == _dtype(target):
            return value
        return self.node("Cast", [value], value.shape, to=self.onnx.helper.np_dtype_to_tensor_dtype(_dtype(target)))

    def cut(self, value: _Value, starts: Mapping[int, int], shape: Sequence[Any], steps: Any = None) -> _Value:
        """The part of that shape that begins at `starts`, or at 0 along axes that it does not name."""
        axes = [axis for axis, size in enumerate(shape) if size != value.shape[axis]]
        spans = [(int(starts.get(axis, 0)), shape[axis] - 1, steps[axis] if steps else 1) for axis in axes]
        cuts = [(a, a + n * step + 1, axis, step) for axis, (a, n, step) in zip(axes, spans, strict=True)]
        return self.node("Slice", [value, *map(self.vector, zip(*cuts, strict=True))], shape) if cuts else value


def _dot_general(graph: _Graph, eqn: Any, lhs: _Value, rhs: _Value) -> _Value:
    (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = (map(tuple, pair) for pair in eqn.params["dimension_numbers"])
    out = eqn.outvars[0].aval
    lhs, rhs = (graph.cast(x, v.aval.dtype, out.dtype) for x, v in zip((lhs, rhs), eqn.invars, strict=True))
    lhs_free = tuple(axis for axis in range(len(lhs.shape)) if axis not in lhs_sum + lhs_batch)
    rhs_free = tuple(axis for axis in range(len(rhs.shape)) if axis not in rhs_sum + rhs_batch)
    batch, rows = ([lhs.shape[axis] for axis in axes] for axes in (lhs_batch, lhs_free))
    if batch:  # otherwise MatMul applies a flat right side to all the rows as they stand
        rows = [math.prod(rows)]
    depth, columns = (math.prod(x.shape[i] for i in axes) for x, axes in ((lhs, lhs_sum), (rhs, rhs_free)))
    left = graph.reshape(graph.transpose(lhs, lhs_batch + lhs_free + lhs_sum), (*batch, *rows, depth))
    right = graph.reshape(graph.transpose(rhs, rhs_batch + rhs_sum + rhs_free), (*batch, depth, columns))
    return graph.reshape(graph.node("MatMul", [left, right], [*batch, *rows, columns]), out.shape)


def _conv(graph: _Graph, eqn: Any, image: _Value, kernel: _Value) -> _Value:
    params, numbers, shape = eqn.params, eqn.params["dimension_numbers"], eqn.outvars[0].aval.shape
    pads = [pair[side] for side in (0, 1) for pair in params["padding"]]
    if set(params["lhs_dilation"]) != {1} or params["batch_group_count"] != 1 or min(pads) < 0:
        raise OnnxError("transposed, grouped by batch or with negative padding")
    inputs = [graph.transpose(image, numbers.lhs_spec), graph.transpose(kernel, numbers.rhs_spec)]
    how = {"pads": pads, "strides": list(params["window_strides"]), "dilations": list(params["rhs_dilation"])}
    nchw = [shape[axis] for axis in numbers.out_spec]
    result = graph.node("Conv", inputs, nchw, group=params["feature_group_count"], **how)
    return graph.transpose(result, [numbers.out_spec.index(axis) for axis in range(len(shape))])


def _gather(graph: _Graph, eqn: Any, operand: _Value, indices: _Value) -> _Value:
    """One window at a known place, which is how `x[:, 1:3]` arrives, or whole rows along one axis, as in `take`."""
    numbers, sizes, shape = eqn.params["dimension_numbers"], eqn.params["slice_sizes"], eqn.outvars[0].aval.shape
    axes, promised = numbers.start_index_map, eqn.params["mode"] == jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS
    if promised and isinstance(indices, np.ndarray) and indices.ndim == 1:
        return graph.reshape(graph.cut(operand, dict(zip(axes, indices.tolist(), strict=True)), sizes), shape)
    axis, rank, fill = axes[0], len(indices.shape) - 1, eqn.params["fill_value"]
    rest = tuple(place for place in range(len(shape)) if not axis <= place < axis + rank)
    rows = tuple(1 if place == axis else size for place, size in enumerate(operand.shape))
    take = (axes, numbers.offset_dims, sizes) == (numbers.collapsed_slice_dims, rest, rows)
    if not take or not (promised or (fill is not None and isinstance(operand.shape[axis], int))):
        raise OnnxError("neither a slice at fixed places nor a take along one axis")
    places = graph.reshape(indices, indices.shape[:-1])
    if promised:
        return graph.node("Gather", [operand, places], shape, axis=axis)
    bounds = [np.array(bound, eqn.invars[1].aval.dtype) for bound in (0, operand.shape[axis] - 1)]
    nearest = graph.node("Clip", [places, *bounds], places.shape)
    found = graph.reshape(
        graph.each("Equal", places, nearest), tuple(1 if i in rest else n for i, n in enumerate(shape))
    )
    taken = graph.node("Gather", [operand, nearest], shape, axis=axis)
    return graph.each("Where", found, taken, np.array(fill, _dtype(eqn.outvars[0].aval.dtype)))


def _broadcast_in_dim(graph: _Graph, eqn: Any, value: _Value) -> _Value:
    shape, sizes = eqn.params["shape"], dict(zip(eqn.params["broadcast_dimensions"], value.shape, strict=True))
    return graph.expand(graph.reshape(value, tuple(sizes.get(axis, 1) for axis in range(len(shape)))), shape)


def _each(op: str, graph: _Graph, eqn: Any, *values: _Value) -> _Value:
    if op in ("And", "Not", "Or", "Where") and eqn.invars[0].aval.dtype != bool:
        raise OnnxError(f"of {eqn.invars[0].aval.dtype}")
    return graph.each(op, *values)


def _reduce(op: str, graph: _Graph, eqn: Any, value: _Value) -> _Value:
    axes = np.array(eqn.params["axes"], np.int64)
    return graph.node(op, [value, axes], eqn.outvars[0].aval.shape, keepdims=0, noop_with_empty_axes=1)


_ONE = np.ones((), np.float32)
# What an operator does not notice, and on how many sides; the right comes first.
_NEUTRAL = {"Add": (0, 2), "Sub": (0, 1), "Mul": (1, 2), "Div": (1, 1), "Max": (-math.inf, 2), "Min": (math.inf, 2)}
_CALLS = ("checkpoint", "closed_call", "custom_jvp_call", "custom_vjp_call", "jit", "pjit", "remat2")  # hold programs
_SAME = ("abs", "add", "ceil", "cos", "div", "erf", "exp", "floor", "log", "max", "min", "mul", "neg", "pow", "sign")
_RENAMED = {"eq": "Equal", "ge": "GreaterOrEqual", "gt": "Greater", "le": "LessOrEqual", "lt": "Less"}
_UNCHANGED = ("copy", "name", "optimization_barrier", "reduce_precision", "stop_gradient")
# From a primitive to what it becomes: a function of the graph, the equation and the values of its inputs.
_RULES: dict[str, Callable[..., _Value | list[_Value]]] = {
    **{name: partial(_each, name.capitalize()) for name in (*_SAME, "sin", "sqrt", "sub", "tanh", "and", "not", "or")},
    **{name: partial(_each, op) for name, op in {**_RENAMED, "logistic": "Sigmoid"}.items()},
    **{f"reduce_{name}": partial(_reduce, f"Reduce{name.capitalize()}") for name in ("max", "min", "prod", "sum")},
    **dict.fromkeys(_UNCHANGED, lambda g, eqn, *xs: list(xs)),
    **dict.fromkeys(("reshape", "squeeze"), lambda g, eqn, x: g.reshape(x, eqn.outvars[0].aval.shape)),
    "broadcast_in_dim": _broadcast_in_dim,
    "clamp": lambda g, eqn, low, x, high: g.each("Min", g.each("Max", x, low), high),
    "concatenate": lambda g, eqn, *xs: g.node("Concat", xs, eqn.outvars[0].aval.shape, axis=eqn.params["dimension"]),
    "conv_general_dilated": _conv,
    "convert_element_type": lambda g, eqn, x: g.cast(x, eqn.invars[0].aval.dtype, eqn.params["new_dtype"]),
    "dot_general": _dot_general,
    "erfc": lambda g, eqn, x: g.each("Sub", _ONE, g.each("Erf", x)),
    "expm1": lambda g, eqn, x: g.each("Sub", g.each("Exp", x), _ONE),
    "gather": _gather,
    "integer_pow": lambda g, eqn, x: g.each("Pow", x, np.array(eqn.params["y"], _dtype(eqn.invars[0].aval.dtype))),
    "is_finite": lambda g, eqn, x: g.each("Not", g.each("Or", g.each("IsNaN", x), g.each("IsInf", x))),
    "log1p": lambda g, eqn, x: g.each("Log", g.each("Add", x, _ONE)),
    "ne": lambda g, eqn, x, y: g.each("Not", g.each("Equal", x, y)),
    "rsqrt": lambda g, eqn, x: g.each("Reciprocal", g.each("Sqrt", x)),
    "select_n": lambda g, eqn, which, *cases: _each("Where", g, eqn, which, *cases[::-1]),
    "slice": lambda g, eqn, x: g.cut(
        x, dict(enumerate(eqn.params["start_indices"])), eqn.outvars[0].aval.shape, eqn.params["strides"]
    ),
    "split": lambda g, eqn, x: [
        g.cut(x, {eqn.params["axis"]: sum(eqn.params["sizes"][:i])}, v.aval.shape) for i, v in enumerate(eqn.outvars)
    ],
    "square": lambda g, eqn, x: g.each("Mul", x, x),
    "transpose": lambda g, eqn, x: g.transpose(x, eqn.params["permutation"]),
}


def _apply(graph: _Graph, eqn: Any, values: list[_Value]) -> list[_Value]:
    """The values of an equation's outputs: from its own program, by working it out now, or by its rule."""
    name, avals = eqn.primitive.name, [v.aval for v in eqn.outvars]
    if name in _CALLS:
        program = eqn.params["jaxpr" if "jaxpr" in eqn.params else "call_jaxpr"]
        return _walk(graph, getattr(program, "jaxpr", program), getattr(program, "consts", ()), values)
    known = all(isinstance(x, np.ndarray) for x in values) and all(isinstance(n, int) for a in avals for n in a.shape)
    rounds = name == "convert_element_type" and jnp.issubdtype(eqn.invars[0].aval.dtype, jnp.floating)
    if known and not rounds and name != "dim_as_value":  # weights are not to be rounded, and N is not known
        results = eqn.primitive.bind(*values, **eqn.params)
        return [_array(result) for result in (results if eqn.primitive.multiple_results else [results])]
    what = name
    try:
        if name in _RULES:
            made = _RULES[name](graph, eqn, *values)
            return made if isinstance(made, list) else [made]
    except OnnxError as why:
        what = f"{name} ({why})"
    return [
        graph.node("", [*values, graph.observation], aval.shape, name=what, output=i) for i, aval in enumerate(avals)
    ]


def _walk(graph: _Graph, jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[_Value]) -> list[_Value]:
    """The values of a program's outputs."""
    env: dict[Any, _Value] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*map(_array, consts), *inputs], strict=True))
    for eqn in jaxpr.eqns:
        if eqn.outvars:  # what has none can only report, as a print does
            values = [_array(v.val) if isinstance(v, Literal) else env[v] for v in eqn.invars]
            env.update(zip(eqn.outvars, _apply(graph, eqn, values), strict=True))
    return [_array(v.val) if isinstance(v, Literal) else env[v] for v in jaxpr.outvars]


def _model(graph: _Graph, outputs: Mapping[str, _Value], types: Mapping[str, Any], metadata: Mapping[str, str]) -> Any:
    """The file's content: what the outputs need of the graph, under the outputs' names."""
    helper, from_array = graph.onnx.helper, graph.onnx.numpy_helper.from_array
    nodes = [*graph.nodes, *(helper.make_node("Identity", [graph.name(x)], [key]) for key, x in outputs.items())]
    needed, live, infos = set(outputs), list[Any](), list[Any]()
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(node.input)
            live.insert(0, node)
    if problems := sorted({node.name for node in live if not node.op_type}):
        raise OnnxError(
            f"the function cannot be written as ONNX, for it uses {', '.join(problems)}. Compute that outside of the "
            f"function, or from what can be exported: {', '.join(sorted([*_RULES, *_CALLS]))}"
        )
    arrays = [from_array(array, name) for name, array in graph.arrays.items() if name in needed]
    for name, leaf in types.items():
        sizes = [size if isinstance(size, int) else str(size) for size in leaf.shape]
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(_dtype(leaf.dtype)), sizes))
    body = helper.make_graph(live, "inference", infos[:1], infos[1:], arrays)
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model_gen_version(body, opset_imports=opsets, producer_name="aleazero")
    helper.set_model_props(model, dict(metadata))
    graph.onnx.checker.check_model(model, full_check=True)
    return model


def export_onnx(
    function: Inference, observation_shape: tuple[int, ...], path: Path, *, metadata: Mapping[str, str] = {}
) -> None:
    """Writes `function` as an ONNX file that takes `observation`, float32 [N, *observation_shape], for any N.

    The outputs are named by the keys of the dict that the function returns; floating ones are float32. The file
    appears whole or not at all: when the export fails, an older file at `path` stays as it was.
    """
    try:
        import onnx
    except ImportError as error:
        raise MissingExtra("ONNX export", "onnx", "export") from error
    observation = jax.ShapeDtypeStruct((*jax.export.symbolic_shape("N"), *observation_shape), jnp.float32)
    try:
        closed, types = jax.make_jaxpr(function, return_shape=True)(observation)
    except jax.errors.InconclusiveDimensionOperation as error:
        raise OnnxError(f"the function must work for any batch size N, and asks more about it: {error}") from error
    leaves = types.items() if isinstance(types, dict) else [("", types)]
    if not leaves or any(not str(k).isidentifier() or k == INPUT or not hasattr(v, "shape") for k, v in leaves):
        raise OnnxError(f"the function must return a dict of arrays by names other than {INPUT!r}, and returns {types}")
    graph = _Graph(onnx, _Tensor(INPUT, observation.shape))
    values = _walk(graph, closed.jaxpr, closed.consts, [graph.observation])
    outputs = dict(zip(sorted(types), values, strict=True))
    content = _model(graph, outputs, {INPUT: observation, **types}, metadata).SerializeToString()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)
