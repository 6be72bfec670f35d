"""`alea plot`: a run's curves as a picture."""

from __future__ import annotations

from pathlib import Path

from aleazero.cli.common import active_run
from aleazero.core.errors import ConfigError
from aleazero.observe.curves import run_panels
from aleazero.observe.plot import write_svg
from aleazero.observe.png import write_png
from aleazero.runs import runs_root

WRITERS = {".svg": write_svg, ".png": write_png}


def plot(name: str | None, out: Path | None, runs: Path | None) -> int:
    """Draws the standard panels into a file."""
    run = active_run(runs_root(runs), name)
    path = out or run.path / "curves.svg"
    if path.suffix.lower() not in WRITERS or not path.parent.is_dir():
        raise ConfigError(f"out is {str(path)!r}; name a file that ends in .png or .svg, in a folder that is there")
    panels = run_panels(run.read_reports())
    if not panels:
        raise ConfigError(f"run {run.name!r} has reported nothing that could be drawn yet")
    try:
        WRITERS[path.suffix.lower()](path, panels, run.name)
    except OSError as error:
        raise ConfigError(f"out is {str(path)!r}: {error.strerror}") from error
    print(path)
    return 0
