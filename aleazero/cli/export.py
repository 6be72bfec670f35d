"""`alea export`: a run's network as a folder of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aleazero import __version__, export
from aleazero.cli.answer import print_json
from aleazero.cli.common import game_of
from aleazero.core.game import HostGame
from aleazero.games.registry import make_game
from aleazero.host_players import export_facts, load_player
from aleazero.players import find_checkpoint, load_run_weights
from aleazero.runs import find_run, runs_root


def export_run(run: str, *, onnx: bool, out: Path | None, runs: Path | None, as_json: bool) -> int:
    """Writes the weights that a run plays with, from one of its checkpoints."""
    name, _, step = run.partition("@")
    root = runs_root(runs)
    folder = find_run(root, name)
    config = folder.read_config()
    game_name = config.game
    found = find_checkpoint(folder, step)
    facts = {"run": folder.name, "step": found.step, "rows": found.facts["rows"], "package_version": __version__}
    if isinstance(make_game(game_name), HostGame):
        network = load_player(f"run:{name}@{found.step}", game_name, root)
        model, weights = network.model, network.weights
        facts |= export_facts(config)
    else:
        model, weights = load_run_weights(f"{name}@{found.step}", game_of(game_name), root)
    written = export.write(out or folder.path / "export" / str(found.step), model, weights, facts, onnx=onnx)
    report: dict[str, Any] = {
        "run": folder.name,
        "step": found.step,
        "game": game_name,
        "format": "onnx" if onnx else "safetensors",
        "folder": str(written),
        "files": sorted(path.name for path in written.iterdir()),
        "player": f"path:{written}",
    }
    if as_json:
        print_json(report)
        return 0
    print(f"{folder.name} at step {found.step}: {written} ({', '.join(report['files'])})")
    command = "eval" if "ppo" in facts else "play"  # a game for one is played without opponents
    print(f"{command}:  alea {command} {game_name} --player path:{written}")
    return 0
