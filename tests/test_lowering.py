"""Fingerprints of programs: the same wherever code stands and whatever it is called, another for any other program."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from aleazero.doctor.evaluators import OPINIONATED, hashed
from aleazero.search import kernels
from aleazero.search.build import build_search
from aleazero.search.settings import SearchConfig, make_knobs
from tests.lowering import Fingerprint, fingerprint, lower, trace
from tests.search.support import keys, patient, positions

PLAIN = """
import jax, jax.numpy as jnp

@jax.jit
def helper(x):
    return jnp.where(x > 0, x * 2.0, jnp.sin(x))

def program(x):
    return {"found": helper(x) + helper(x + 1.0)}
"""
KERNEL = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

def helper(given, out):
    place = jax.lax.iota(jnp.int32, 8)
    triton.store(out.at[place], triton.load(given.at[place]) * 2.0)

def program(x):
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    warps = triton.CompilerParams(num_warps=1)
    found = pl.pallas_call(helper, out_shape=like, grid=(1,), compiler_params=warps)(x)
    return {"found": jnp.sin(found)}
"""


def printed(source: str, size: int = 8) -> Fingerprint:
    """The fingerprint of the program in a source file."""
    names: dict[str, Any] = {}
    exec(compile(source, "<a file>", "exec"), names)
    return fingerprint(lower(trace(jax.jit(names["program"]), jnp.zeros(size))))


@pytest.mark.parametrize("source", [PLAIN, KERNEL])
def test_names_and_places_do_not_count(source: str) -> None:
    first = printed(source)
    assert printed("\n" * 40 + source) == first
    assert printed(source.replace("helper", "_a_new_name").replace("found", "other")) == first
    assert printed(source.replace("program(x)", "other(x)") + "\nprogram = other\n") == first


@pytest.mark.parametrize("source", [PLAIN, KERNEL])
@pytest.mark.parametrize(("old", "new"), [("2.0", "2.5"), ("* 2.0", "+ 2.0"), ("jnp.sin", "jnp.cos")])
def test_constants_and_operations_count(source: str, old: str, new: str) -> None:
    assert source.count(old) == 1
    assert printed(source.replace(old, new)).digest != printed(source).digest


def test_shapes_and_the_settings_of_kernels_count() -> None:
    assert printed(PLAIN, 9).digest != printed(PLAIN).digest
    assert printed(KERNEL.replace("num_warps=1", "num_warps=2")).digest != printed(KERNEL).digest


def test_large_constants_count_to_their_last_number() -> None:
    table = "jnp.asarray(__import__('numpy').arange(100_000) + (__import__('numpy').arange(100_000) == 70_000) * {})"
    source = f"import jax.numpy as jnp\ndef program(x): return x + {table}[x.astype(int)]\n"
    assert printed(source.format(1)).digest != printed(source.format(2)).digest


def test_a_change_planted_in_a_search_kernel_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr("aleazero.search.build.kernels_problem", lambda plan: "")

    def search() -> Fingerprint:
        game, config = patient("pig").game, SearchConfig(kind="gumbel", max_simulations=8)
        search, evaluate, knobs = build_search(game, config), hashed(game), make_knobs(config)
        program = jax.jit(lambda states, keys: search.run(evaluate, OPINIONATED, states, keys, knobs))
        return fingerprint(lower(trace(program, positions("pig", 16), keys(16))))

    first = search()
    assert search() == first
    counted = kernels._counted
    monkeypatch.setattr(kernels, "_counted", lambda *given: [number * 2 for number in counted(*given)])
    assert search().digest != first.digest
