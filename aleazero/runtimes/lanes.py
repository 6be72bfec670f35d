"""Which games a source plays: numbers of lanes, from which all their randomness is made. Knows nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array


def lanes_of(sources: Sequence[int], count: int) -> Array:
    """`[len(sources) * count]` uint32: the numbers of the games of each source. Source 0 has those of a local run."""
    firsts = [int.from_bytes(hashlib.sha256(str(s).encode()).digest()[:4], "little") if s else 0 for s in sources]
    return jnp.asarray(np.concatenate([(first + np.arange(count)) % 2**32 for first in firsts]).astype(np.uint32))
