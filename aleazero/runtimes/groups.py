"""The parts of one who plays several groups of games for a learner elsewhere. Knows the settings, and nobody's wire."""

from __future__ import annotations

import dataclasses
import tomllib

from aleazero.assemble import Parts, build_parts
from aleazero.config import RunConfig
from aleazero.core.settings import Layer, build


def far_parts(config: RunConfig, groups: int) -> Parts:
    """The parts of a worker that plays so many groups; it has no replay, so that none is too small for it."""
    lanes = config.selfplay.num_games * groups
    play = dataclasses.replace(config.selfplay, num_games=lanes)
    room = dataclasses.replace(config.replay, capacity_rows=2**31 - 1)
    alone = dataclasses.replace(config.ray, workers=0, groups=1)  # who else plays is not its concern
    return build_parts(dataclasses.replace(config, selfplay=play, replay=room, ray=alone))


def far_parts_of(text: str, groups: int) -> Parts:
    """The same from the settings as TOML, as they travel."""
    return far_parts(build(RunConfig, [Layer("the learner", tomllib.loads(text))]), groups)
