"""Write `constraints.txt`: the exact version and hashes of every package that `make` installs, in three sections.

    make lock

One file serves Python 3.11 to 3.14 on Linux (x86-64 and arm64), macOS (arm64) and Windows: a package that differs
between them has a line for each, with a marker. Each section adds to the ones before it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "constraints.txt"
SECTIONS = {
    "core": ["--group", "build"],
    "setup": ["--extra", "all", "--group", "dev"],
    "test": ["--extra", "gnubg", "--extra", "rllib", "--extra", "wandb"],
}
# Wheels that are not everywhere; elsewhere the tests that need them skip.
WHEELS = {"gnubg-nn": "python_version < '3.14' and (sys_platform != 'linux' or platform_machine == 'x86_64')"}
HEAD = "# Written by `make lock`; not by hand."


def compile_lock(*options: str) -> list[str]:
    """Return the requirements that uv finds: a line each, and with hashes several."""
    command = [Path(sys.executable).with_name("uv"), "pip", "compile", "--universal", "--python-version", "3.11"]
    quiet = ["--no-emit-index-url", "--no-annotate", "--no-header", "--quiet", "pyproject.toml"]
    done = subprocess.run([*command, *quiet, *options], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return re.split(r"\n(?=\S)", done.stdout.strip())


def main() -> int:
    """Solve everything together; then find out which package which section needs."""
    everything = [option for options in SECTIONS.values() for option in options]
    locked = {text.partition(" \\")[0]: text for text in compile_lock("--generate-hashes", *everything)}
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as versions:
        versions.write("\n".join(locked))
        versions.flush()
        parts, asked = [HEAD], []
        for name, options in SECTIONS.items():
            asked += options
            needed = {line.split()[0] for line in compile_lock("--constraint", versions.name, *asked)}
            chosen = [line for line in locked if line.split()[0] in needed]
            parts += [f"\n# {name}", *(locked.pop(line) for line in chosen)]
    text = "\n".join(parts) + "\n"
    for package, where in WHEELS.items():
        text = re.sub(rf"^({package}==\S+)", rf"\1 ; {where}", text, flags=re.MULTILINE)
    OUT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
