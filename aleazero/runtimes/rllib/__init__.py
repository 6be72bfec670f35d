"""Balatro by Ray's RLlib: environments, a network in PyTorch and a learner of theirs, in a run like any other.

Imports Ray and PyTorch; nothing outside this package does. Driver and runners are here before they compute anything, so
what all of them need of their environment is said here.
"""

from __future__ import annotations

import os

# Before PyTorch is imported: its threads must not spin while they wait, or a busy machine is many times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Before JAX looks for a GPU: of its memory it takes what it needs, and not three quarters. The rest is PyTorch's.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
