"""Files that are there whole or not at all, and on the disk: written beside their place, forced down, then renamed."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def replace_file(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Writes a file whole or not at all, also where others write it at the same time."""
    fresh = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    sync(path.parent)  # the rename itself is an entry of the folder


def sync(path: Path) -> None:
    """Forces a file, or a folder's entries, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
