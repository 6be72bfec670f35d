"""The options of the UCI engine: what `uci` lists and `setoption` sets, checked. Knows no search."""

from __future__ import annotations

import dataclasses

from aleazero.bridges.uci_limits import LEAST_ELO, MOST_ELO
from aleazero.core.errors import NotationError

NONE = "<empty>"  # how UCI writes an empty string
MOST_SIMULATIONS = 16_384
MOST_LINES = 64
MOST_OVERHEAD = 5000  # milliseconds
NAMES = ("threads", "weights", "simulations", "multipv", "move overhead", "uci_limitstrength", "uci_elo")


@dataclasses.dataclass
class Options:
    """What `setoption` sets."""

    cores: int  # there are
    threads: int
    weights: str  # a folder, a network as players are written, `bundled`, or `untrained`; empty: none
    simulations: int = 800  # of a move at most; there is room for so many
    multi_pv: int = 1
    limit_strength: bool = False
    elo: int = MOST_ELO
    overhead: int = 50  # milliseconds between us and the clock

    def lines(self) -> list[str]:
        """As `uci` lists them."""
        return [
            f"option name Threads type spin default {self.threads} min 1 max {self.cores}",
            f"option name Weights type string default {self.weights or NONE}",
            f"option name Simulations type spin default {self.simulations} min 1 max {MOST_SIMULATIONS}",
            f"option name MultiPV type spin default {self.multi_pv} min 1 max {MOST_LINES}",
            f"option name Move Overhead type spin default {self.overhead} min 0 max {MOST_OVERHEAD}",
            f"option name UCI_LimitStrength type check default {str(self.limit_strength).lower()}",
            f"option name UCI_Elo type spin default {self.elo} min {LEAST_ELO} max {MOST_ELO}",
        ]

    def put(self, name: str, value: str) -> None:
        """Sets one of those whose value is all there is to it."""
        if name == "threads":
            self.threads = whole("Threads", value, 1, self.cores)
        elif name == "simulations":
            self.simulations = whole("Simulations", value, 1, MOST_SIMULATIONS)
        elif name == "multipv":
            self.multi_pv = whole("MultiPV", value, 1, MOST_LINES)
        elif name == "move overhead":
            self.overhead = whole("Move Overhead", value, 0, MOST_OVERHEAD)
        elif name == "uci_elo":
            self.elo = whole("UCI_Elo", value, LEAST_ELO, MOST_ELO)
        elif value.lower() in ("true", "false"):
            self.limit_strength = value.lower() == "true"
        else:
            raise NotationError(f"option UCI_LimitStrength is {short(value)}; it must be true or false")


def parse_option(rest: str) -> tuple[str, str]:
    """Name, in small letters, and value of the words behind `setoption`."""
    name, _, value = f"{rest} ".partition(" value ")
    if not name.startswith("name "):
        raise NotationError(f"setoption is written: setoption name NAME value VALUE; received {short(rest)}")
    name = name.removeprefix("name ").strip()
    if name.lower() not in NAMES:
        raise NotationError(f"there is no option {short(name)}; uci lists them")
    return name.lower(), value.strip()


def whole(name: str, text: str, least: int, most: int) -> int:
    """A number within bounds."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or not least <= int(text) <= most:
        raise NotationError(f"option {name} is {short(text)}; it must be a whole number from {least} to {most}")
    return int(text)


def short(text: str) -> str:
    """A text that somebody sent, as errors quote it."""
    text = text.strip()
    return repr(text if len(text) <= 80 else text[:80] + "...")
