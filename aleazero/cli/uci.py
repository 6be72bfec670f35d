"""`alea uci`: the chess engine over standard input and output."""

from __future__ import annotations

import sys
from pathlib import Path

from aleazero.bridges.uci import UciEngine, default_weights
from aleazero.bridges.uci_options import MOST_SIMULATIONS
from aleazero.core.compilation import set_up_compiling
from aleazero.core.errors import ConfigError
from aleazero.games.chess.game import Chess
from aleazero.games.registry import make_game


def uci(*, weights: str | None, simulations: int, runs: Path | None) -> int:
    """Answers until `quit` or the end of the input."""
    if not 1 <= simulations <= MOST_SIMULATIONS:
        raise ConfigError(f"simulations is {simulations}; it must be in 1..{MOST_SIMULATIONS}")
    set_up_compiling()
    game = make_game("chess")
    assert isinstance(game, Chess)

    def say(text: str) -> None:
        try:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
        except BrokenPipeError:  # nobody listens any more; the end of the input follows
            pass

    chosen = default_weights(game) if weights is None else weights
    UciEngine(game, say, weights=chosen, simulations=simulations, runs=runs).run(iter(sys.stdin.buffer.readline, b""))
    return 0
