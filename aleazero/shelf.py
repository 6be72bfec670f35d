"""A registry of networks in files beside the runs, for those who have no MLflow.

    RUNS/.desk/models/NAME/VERSION/     a network as `aleazero.export` writes it; versions count from 1
    RUNS/.desk/models/NAME/champion     the version with that alias
A version is written elsewhere and then moved to its place, by one at a time, so that two runs that end together get one
each and nobody sees half of one. Knows folders; neither games nor how a network was rated.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from aleazero.core.errors import UnknownName
from aleazero.core.files import replace_file
from aleazero.observe.mlflow_client import CHAMPION
from aleazero.observe.settings import DESK


class Shelf:
    """The versions of one model."""

    def __init__(self, root: Path, name: str) -> None:
        self.name, self._place = name, root / DESK / "models" / name

    @property
    def versions(self) -> list[int]:
        """Those that are there, the oldest first."""
        found = self._place.iterdir() if self._place.is_dir() else ()
        return sorted(int(folder.name) for folder in found if folder.name.isdecimal())

    @property
    def champion(self) -> int | None:
        """The best one, as far as scores compare."""
        with contextlib.suppress(FileNotFoundError):
            return int((self._place / CHAMPION).read_text())
        return None

    def add(self, write: Callable[[Path], Any], match: Mapping[str, Any]) -> int:
        """A new version, written by `write` into a folder it is given; the champion if the one before is no better.

        `match` says against whom (`opponent`) it had which `score`: scores against others do not compare, and then the
        newer judge counts.
        """
        self._place.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix="new-", dir=self._place))
        try:
            write(fresh)
            (fresh / "match.json").write_text(json.dumps(dict(match)) + "\n")
            with FileLock(self._place / "lock"):  # one process at a time, and one thread
                version = max(self.versions, default=0) + 1
                better = self._better(match)
                fresh.rename(self._place / str(version))
                if better:
                    replace_file(self._place / CHAMPION, f"{version}\n".encode())
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return version

    def _better(self, match: Mapping[str, Any]) -> bool:
        before = self.champion
        if before is None:
            return True
        known = json.loads((self._place / str(before) / "match.json").read_text())
        return bool(known["opponent"] != match["opponent"] or known["score"] <= match["score"])

    def folder(self, alias: str) -> Path:
        """Of the champion, or of a version by its number."""
        versions, champion = self.versions, self.champion
        if alias == CHAMPION and champion is not None:
            return self._place / str(champion)
        if not alias.isdecimal() or int(alias) not in versions:
            known = [CHAMPION, *map(str, versions)] if champion is not None else [*map(str, versions)]
            raise UnknownName(f"version of the model {self.name!r}", alias, known or ["none yet"])
        return self._place / str(int(alias))


def shelves(root: Path) -> list[str]:
    """The models that there are."""
    place = root / DESK / "models"
    return sorted(folder.name for folder in place.iterdir() if folder.is_dir()) if place.is_dir() else []
