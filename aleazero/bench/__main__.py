"""`python -m aleazero.bench KIND ...`: the same as `alea bench`, with the core dependencies alone.

For hosts where nothing can be installed; `alea` only parses more comfortably.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from aleazero.bench.cases import Options
from aleazero.bench.command import read_options, show
from aleazero.core.errors import explained


def main(arguments: list[str] | None = None) -> int:
    """Runs a command line; returns its exit code."""
    given = vars(_parser().parse_args(arguments))
    as_json, verbose = given.pop("json"), given.pop("verbose")
    return explained("aleazero.bench", lambda: show(read_options(**given), as_json=as_json, verbose=verbose))


def parse_options(arguments: list[str]) -> Options:
    """Return the options of a command line that starts with a kind, as in `game-env --game chess`."""
    given = vars(_parser().parse_args(arguments))
    return read_options(**{name: value for name, value in given.items() if name not in ("json", "verbose")})


def _parser() -> argparse.ArgumentParser:
    from aleazero.bench.suite import KINDS

    parser = argparse.ArgumentParser(
        prog="python -m aleazero.bench",
        description="How fast the parts are on this machine.",
        epilog="kinds:\n" + "\n".join(f"  {kind.name:17}{kind.measures}" for kind in KINDS.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("kind", help="see below")
    parser.add_argument("--game", default="backgammon")
    parser.add_argument("--batch-sizes", metavar="1,4,8")
    parser.add_argument("--single-batch", type=int, metavar="N")
    parser.add_argument("--discover", action="store_true", help="find the best batch size and keep it in a profile")
    parser.add_argument("--validate", action="store_true", help="compare with the profile; 1 if slower")
    parser.add_argument("--tolerance", type=float, default=0.1, help="how much slower is tolerated (default: 0.1)")
    parser.add_argument("--compare", metavar="PEER", help="pgx, mctx or open_spiel")
    parser.add_argument("--duration", type=float, metavar="SECONDS", help="of timing at each size")
    parser.add_argument("--memory-limit", type=float, metavar="GB")
    parser.add_argument("--num-simulations", metavar="32,200")
    parser.add_argument("--search", metavar="puct,gumbel")
    parser.add_argument("--network", metavar="mlp|cnn", help="of which kind")
    parser.add_argument("--width", type=int)
    parser.add_argument("--blocks", type=int)
    parser.add_argument("--player", help="bundled, run:NAME[@STEP] or path:FOLDER: whose network")
    parser.add_argument("--features", action="store_true", help="work out what the network sees, too")
    parser.add_argument("--preset")
    parser.add_argument("--set", action="append", dest="sets", metavar="a.b=c")
    parser.add_argument("--rows", metavar="100000,10000000", help="sizes of the ring")
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--out", type=Path, help="the folder for bench.json and bench.png")
    parser.add_argument("--force", action="store_true", help="overwrite")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())
