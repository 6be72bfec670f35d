"""Rules are tested as plain Python: the same functions, nothing to compile. Compiled ones run in test_compiled.py."""

from __future__ import annotations

import os

os.environ.setdefault("ALEA_BALATRO_PLAIN", "1")
