"""Installs the wheel into an environment of its own, with only what it asks for, and uses it as a user would.

python scripts/smoke_wheel.py dist
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path


def main(folder: str) -> int:
    (wheel,) = Path(folder).glob("*.whl")
    with tempfile.TemporaryDirectory() as scratch:
        environment = Path(scratch) / "env"
        venv.create(environment, with_pip=True)
        binaries = environment / "bin"
        core = Path(scratch) / "core.txt"
        core.write_text((Path(__file__).parent.parent / "constraints.txt").read_text().partition("\n# setup\n")[0])
        pip = [str(binaries / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--require-hashes", "--requirement", str(core)], check=True)
        subprocess.run([*pip, str(wheel)], check=True)

        def alea(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [str(binaries / "alea"), *arguments]
            return subprocess.run(command, capture_output=True, text=True, cwd=scratch, check=False)

        alea("--help")  # the first start writes byte code
        started = time.perf_counter()
        usage = alea("--help")
        seconds = time.perf_counter() - started
        listed = alea("games", "--json")
        examined = alea("doctor", "tictactoe", "--json")
        typo = alea("doctor", "tictactoo")
        web = alea("web")
        assert usage.returncode == 0, usage.stderr
        assert "doctor" in usage.stdout
        assert {game["name"] for game in json.loads(listed.stdout)["games"]} >= {"pig", "quoridor"}, listed.stderr
        assert examined.returncode == 0, examined.stdout + examined.stderr
        assert json.loads(examined.stdout)["failed"] == 0
        assert typo.returncode == 2
        assert "did you mean 'tictactoe'" in typo.stderr
        assert "pip install 'aleazero[play]'" in web.stderr, web.stdout + web.stderr
        with zipfile.ZipFile(wheel) as archive:
            page = "aleazero/web/static/index.html" in archive.namelist()
        assert page or not shutil.which("npm"), "the page of alea web is not in the wheel"
    print(f"wheel: {wheel.name} installs and works; alea --help took {seconds:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
