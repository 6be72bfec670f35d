"""Lowers programs for a GPU that is not there, and hashes what they compute, without names and places in files.

Two programs have the same hash exactly if the compiler is given the same operations, constants, shapes and layout of
arguments. What a function, a field of a result or a kernel is called, and where it stands, is not in it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import re
from typing import Any

import jax
from jaxlib.mlir import ir
from jaxlib.triton import dialect

H200 = "NVIDIA H200"
_CONFIG = "mhlo.backend_config"
_FIELD_NAME = re.compile(r'jax\.(?:result|arg)_info = "(?:[^"\\]|\\.)*"(?:, )?')
_SYMBOL = re.compile(r'@(?:[\w.$-]+|"(?:[^"\\]|\\.)*")')
_DECLARED = re.compile(r"\b(?:module|func\.func(?: \w+)?|tt\.func(?: \w+)?) (" + _SYMBOL.pattern + ")")


@dataclasses.dataclass(frozen=True)
class Fingerprint:
    """What a program computes, in a few digits."""

    digest: str
    operations: int


def instead_of_a(gpu: str) -> contextlib.AbstractContextManager[Any]:
    """Lets JAX lower for a GPU that is not there. Before 0.12 it does not ask which one."""
    if tuple(map(int, jax.__version__.split(".")[:2])) < (0, 12):
        return contextlib.nullcontext()
    from jax.sharding import AbstractDevice, AbstractMesh, AxisType, use_abstract_mesh

    device = AbstractDevice(gpu, None, "gpu")
    return use_abstract_mesh(AbstractMesh((1,), ("device",), AxisType.Auto, abstract_device=device))


def trace(function: Any, *arguments: Any, gpu: str = H200) -> Any:
    """Traces a jitted function for the shapes of its arguments."""
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), arguments)
    with instead_of_a(gpu):
        return function.trace(*shapes)


def lower(traced: Any, gpu: str = H200) -> Any:
    """The StableHLO module of a traced program, as the compiler for CUDA would get it."""
    with instead_of_a(gpu):
        return traced.lower(lowering_platforms=("cuda",)).compiler_ir("stablehlo")


def fingerprint(module: Any) -> Fingerprint:
    """Hashes a module from `lower`. The module's kernels are taken out of it."""
    kernels = _take_kernels(module)
    texts = [_without_names(part.operation.get_asm(enable_debug_info=False)) for part in (module, *kernels)]
    count = sum(_count(part) for part in (module, *kernels))
    return Fingerprint(hashlib.sha256("\n".join(texts).encode()).hexdigest()[:24], count)


def _take_kernels(module: Any) -> list[Any]:
    """Triton kernels as modules of their own; a call keeps its grid and the like, and loses the name and the bytes.

    The bytes hold every operation's file and line.
    """
    kernels: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "stablehlo.custom_call" and _CONFIG in op.attributes:
            config = {named.name: named.attr for named in op.attributes[_CONFIG]}
            if "ir" in config:
                kernels.append(ir.Module.parse(config.pop("ir").value_bytes))
                config.pop("name", None)
                op.attributes[_CONFIG] = ir.DictAttr.get(config)
        return ir.WalkResult.ADVANCE

    with module.context:
        dialect.register_dialect(module.context)
        module.operation.walk(visit)
    return kernels


def _without_names(text: str) -> str:
    """Functions are numbered as they appear; those that others bring, such as the targets of calls, stay named."""
    declared = set(_DECLARED.findall(text))
    numbers: dict[str, str] = {}
    fresh = map(str, itertools.count())

    def numbered(match: re.Match[str]) -> str:
        name = match[0]
        return numbers.setdefault(name, f"@{next(fresh)}") if name in declared else name

    return _SYMBOL.sub(numbered, _FIELD_NAME.sub("", text))


def _count(module: Any) -> int:
    found = itertools.count()

    def visit(op: Any) -> Any:
        next(found)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return next(found)
