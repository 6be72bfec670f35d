"""Install each extra into an environment of its own with plain pip, weigh it, and run a command that needs it.

    python scripts/try_extras.py dist [EXTRA ...]

Print a row of docs/install.md for each. `make wheel` makes `dist`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

TRIES = {
    "": "alea train backgammon --preset quick --seconds 20 --device cpu",
    "play": "(timeout 20 alea web --port 8499 & sleep 10; "
    "python -c 'import urllib.request as it; it.urlopen(\"http://127.0.0.1:8499/api/games\")')",
    "cluster": "alea train tictactoe --preset quick --runtime ray --ray.local true --seconds 20",
    "balatro": "alea graph build && alea mcp balatro --bench 20",
    "track": "alea train tictactoe --preset quick --seconds 20 --metrics --mlflow local",
    "games": "alea train pgx:tic_tac_toe --preset quick --seconds 20",
    "export": "alea train tictactoe --preset quick --seconds 20 --name it && alea export it --format onnx",
    "peers": "alea bench mcts --game tictactoe --batch-sizes 8 --num-simulations 8 --compare mctx && "
    "alea bench mcts --game tictactoe --batch-sizes 8 --num-simulations 8 --compare open_spiel",
    "all": "alea games",
    "gnubg": "alea eval backgammon --player bundled --opponent gnubg:ply=0 --games 4",
    "rllib": "alea train balatro --runtime rllib --seconds 30",
    "wandb": "alea train tictactoe --preset quick --seconds 20 --wandb offline",
    "cuda": "alea games",
    "tpu": "alea games",
}


def try_extra(wheel: Path, extra: str, scratch: Path) -> str:
    """Return a row: the extra, its megabytes, the seconds that installing took, and how the command ended."""
    environment = scratch / "env"
    venv.create(environment, with_pip=True)
    since = time.perf_counter()
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    pip = [environment / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what]
    installed = subprocess.run(pip, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - since
    weight = sum(path.stat().st_blocks * 512 for path in environment.rglob("*") if not path.is_symlink()) / 1e6
    if installed.returncode:
        return f"| {extra} | - | {seconds:.0f} | cannot be installed: {installed.stderr.strip().splitlines()[-1]} |"
    activate = f". {environment}/bin/activate && {TRIES[extra]}"
    done = subprocess.run(["sh", "-c", activate], cwd=scratch, capture_output=True, text=True, check=False)
    ended = (
        "works" if done.returncode == 0 else f"exit {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}"
    )
    return f"| {extra or '(core)'} | {weight:,.0f} | {seconds:.0f} | `{TRIES[extra]}` {ended} |"


def main(folder: str, *extras: str) -> int:
    (wheel,) = Path(folder).absolute().glob("*.whl")
    for extra in extras or TRIES:
        with tempfile.TemporaryDirectory() as scratch:
            print(try_extra(wheel, extra, Path(scratch)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
