"""How the rules are compiled: Numba without the interpreter lock, or plain Python where that is asked for.

`ALEA_BALATRO_PLAIN=1` (or Numba's own `NUMBA_DISABLE_JIT=1`) runs the same functions uncompiled, for debugging; so
does a machine without Numba.
Compiled entry points are kept on disk in a folder named by a hash of this package's sources: Numba's own cache sees
changes in one file only, and an entry point contains the code of many.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

_log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

PLAIN = (
    os.environ.get("ALEA_BALATRO_PLAIN") == "1"
    or os.environ.get("NUMBA_DISABLE_JIT") == "1"
    or importlib.util.find_spec("numba") is None
)


i64: Any = int if PLAIN else np.int64
"""A small number of a record, widened: compiled code would else be made once more for every width."""


UNCOMPILED = (  # sources in which nothing is compiled and nothing that compiled code reads
    "checked.py", "contest.py", "coverage.py", "embedding.py", "env.py", "fuzz.py", "game.py", "measure.py",
    "pages.py", "saved.py", "text.py", "verify.py",
)  # fmt: skip


@cache
def source_hash() -> str:
    """A hash of everything that compiled code can depend on: this package's sources and fact tables."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.json")]):
        if path.name in UNCOMPILED:
            continue
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path:
    """Where compiled code of these sources is kept; `ALEA_BALATRO_CACHE` moves it."""
    home = os.environ.get("ALEA_BALATRO_CACHE")
    base = Path(home) if home else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "aleazero"
    return base / "balatro" / source_hash()


def jit(function: F) -> F:
    """A part of the rules: compiled when an entry point needs it, and called by compiled code only."""
    if PLAIN:
        return function
    import numba

    from aleazero.games.balatro.linking import PartCompiler

    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(nogil=True, error_model="numpy", pipeline_class=PartCompiler, **options)(function)
    return compiled


def _forgive(cache: Any) -> None:
    """A cache that cannot be read or written is none: what is damaged, or finds no room, is compiled anew."""
    load, save = cache.load_overload, cache.save_overload

    def try_load(*given: Any) -> Any:
        try:
            return load(*given)
        except Exception as error:  # whatever damaged bytes lead to
            _log.warning("compiled code in %s is damaged, and made anew: %s", cache.cache_path, error)
            with contextlib.suppress(OSError):
                cache.flush()
            return None

    def try_save(*given: Any) -> None:
        try:
            save(*given)
        except OSError as error:
            _log.warning("compiled code is not kept in %s: %s", cache.cache_path, error)

    cache.load_overload, cache.save_overload = try_load, try_save


def entry(function: F) -> F:
    """A function that Python calls: compiled once, then read from disk."""
    if PLAIN:
        return function
    import numba

    from aleazero.games.balatro.linking import WholeCompiler

    config: Any = numba.config
    before = config.CACHE_DIR
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    compiled: Any = None
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        config.CACHE_DIR = str(folder)
        compiled = numba.njit(**options, pipeline_class=WholeCompiler, cache=True)(function)
        _forgive(compiled._cache)
    except OSError:  # a home that cannot be written to: compiled anew each time
        compiled = numba.njit(**options, pipeline_class=WholeCompiler)(function)
    finally:
        config.CACHE_DIR = before
    return compiled
