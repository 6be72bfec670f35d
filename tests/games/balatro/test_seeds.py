from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from aleazero.games.balatro.vectors_seeds import KINDS, differences, generate

SEEDS = json.loads((Path(__file__).parents[2] / "golden/balatro/seeds.json").read_text())["seeds"]
SAMPLE = SEEDS[::6]  # all thirty run compiled, in test_compiled.py


@pytest.mark.parametrize("vector", SAMPLE, ids=[vector["seed"] for vector in SAMPLE])
def test_a_seed_holds_what_the_vectors_say(vector: dict[str, object]) -> None:
    counts, wrong = differences(vector)
    assert wrong == []
    assert all(counts[kind] > 0 for kind in KINDS)


def test_a_wrong_vector_is_spelled_out() -> None:
    vector = json.loads(json.dumps(SEEDS[0]))
    vector["antes"] = vector["antes"][:1]
    vector["antes"][0]["boss"] = "The Wall"
    _, wrong = differences(vector)
    assert Counter(kind for kind, _ in wrong) == {"boss": 1}
    assert "The Wall" in wrong[0][1]


def test_other_decks_and_stakes_share_the_boss_but_not_the_shelf_rules() -> None:
    red, ghost = generate("ALEEB", antes=1), generate("ALEEB", "Ghost Deck", antes=1)
    assert red[0]["boss"] == ghost[0]["boss"]
