"""Opponents and judges that are other people's programs: they speak plain positions and know no game of ours.

A backgammon position is `[2, 25]` whole numbers, `[opponent, mover]`: each side's checkers on its own points 1 to 24
and on the bar. Nothing here is needed to train or to play; what is missing says so when it is asked for.
"""

from aleazero.core.errors import AleaError


class EngineError(AleaError):
    """An engine was asked what it cannot answer, gave no answer, or gave one that cannot be."""
