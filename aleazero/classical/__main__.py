"""`python -m aleazero.classical --out FILE`: values of pieces from nothing, in minutes on two cores."""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path

from aleazero.classical.values import learn, save


def main() -> None:
    """Learns, tells how it goes, and saves."""
    parser = argparse.ArgumentParser(prog="python -m aleazero.classical", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the file to write (safetensors)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if given.threads < 1 or given.seed < 0:
        parser.error("--threads must be at least 1, and --seed not below 0")
    if not given.out.parent.is_dir():
        parser.error(f"--out is {given.out}: there is no folder {given.out.parent}")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    save(
        learn(given.seed, given.threads),
        given.out,
        {"seed": str(given.seed), "made_by": "python -m aleazero.classical"},
    )


if __name__ == "__main__":
    main()
