"""JAX's persistent compilation cache: on by default for commands, so that a second start is a fast one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import jax


def keep_compiled_programs() -> None:
    """Keeps what takes over half a second to compile under `~/.cache/aleazero`; JAX_COMPILATION_CACHE_DIR overrides.

    An unwritable home is no reason to stop: then nothing is kept.
    """
    if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "aleazero" / "jax"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    update: Callable[[str, object], None] = jax.config.update
    update("jax_compilation_cache_dir", str(folder))
    update("jax_persistent_cache_min_compile_time_secs", 0.5)


def keep_names() -> None:
    """From now on a kept program is taken only if its operations have the same names, which a profile goes by.

    Otherwise programs that are equal but for names count as the same, and those that were compiled first are used.
    """
    update: Callable[[str, object], None] = jax.config.update
    update("jax_compilation_cache_include_metadata_in_key", True)
