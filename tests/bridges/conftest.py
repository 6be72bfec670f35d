"""Balatro's rules run as plain Python here, in the servers that tests start too: nothing to compile."""

from __future__ import annotations

import os

os.environ.setdefault("ALEA_BALATRO_PLAIN", "1")
