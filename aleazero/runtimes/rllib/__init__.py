"""Balatro by Ray's RLlib: environments, a network in PyTorch and a learner of theirs, in a run like any other.

Imports Ray and PyTorch; nothing outside this package does.
"""

from __future__ import annotations

import os

# Before PyTorch is imported: its threads must not spin while they wait, or a busy machine is many times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
