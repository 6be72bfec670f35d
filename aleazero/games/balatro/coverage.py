"""What the simulator covers, said honestly: how many of each kind work, and what differs from the game.

Everything of the fact tables is in the pools and has an effect; what is known to be simpler than the game is listed.
"""

from __future__ import annotations

import dataclasses

from aleazero.games.balatro import facts

KINDS = ("jokers", "tarots", "planets", "spectrals", "vouchers", "tags", "blinds", "decks", "stakes", "packs", "hands")
MISSING: dict[str, tuple[str, ...]] = dict.fromkeys(KINDS, ())  # names taken out of the pools
DIFFERENCES = (
    "Bull and Bootstraps count the money there was when the hand was played, as the test vectors do; the game also "
    "counts what cards of this hand have paid.",
    "Orbital Tags: the hands are drawn once when an ante begins; the game draws again where a voucher leads to "
    "another ante.",
    "Amber Acorn shuffles the jokers, but the player still sees which is which.",
    "Amber Acorn shuffles the jokers once, the game several times: their order is another one.",
    "Two Sixth Senses make a spectral card each of one 6; in the game the first of them takes it.",
    "Two Voucher Tags bring one voucher more to a shop, and the other waits for the next one.",
    "Nobody has more than 13 jokers, whatever their editions: there is no room for more in a game's record.",
    "The hand is sorted by rank whenever cards are drawn.",
    "Challenges, and profiles with locked or undiscovered content, are not simulated.",
)


@dataclasses.dataclass(frozen=True)
class Covered:
    """How much of one kind works."""

    kind: str
    total: int
    missing: tuple[str, ...]

    @property
    def working(self) -> int:
        """How many work."""
        return self.total - len(self.missing)


def coverage() -> list[Covered]:
    """One entry for every kind."""
    return [Covered(kind, len(facts.table(kind)), MISSING[kind]) for kind in KINDS]
