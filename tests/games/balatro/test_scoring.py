from __future__ import annotations

import json
from pathlib import Path

from aleazero.games.balatro.vectors_scores import differences

VECTORS = json.loads((Path(__file__).parents[2] / "golden/balatro/scores.json").read_text())


def test_every_unanimous_score_is_met() -> None:
    assert len(VECTORS["unanimous"]) == 500
    assert differences(VECTORS["unanimous"]) == []


def test_scores_of_a_majority_are_met() -> None:
    assert len(VECTORS["majority"]) == 40
    assert differences(VECTORS["majority"]) == []


def test_a_wrong_score_is_spelled_out() -> None:
    vector = json.loads(json.dumps(VECTORS["unanimous"][0]))
    vector["expected"]["chips"] += 1
    (line,) = differences([vector])
    assert line.startswith(vector["id"])
    assert str(vector["expected"]["chips"]) in line
