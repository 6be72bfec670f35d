"""Files of vectors as they may come: with nulls, with less, with other streams, and broken."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aleazero.core.errors import ConfigError
from aleazero.games.balatro import rng
from aleazero.games.balatro.vectors_rng import _draws, differences, seeded_batch
from aleazero.games.balatro.verify import Rate, verify

GOLDEN = Path("tests/golden/balatro")
RNG = {"vectors": json.loads((GOLDEN / "rng.json").read_text())["vectors"][:2]}
_SEED = json.loads((GOLDEN / "seeds.json").read_text())["seeds"][0]
SEEDS = {"seeds": [{**_SEED, "antes": _SEED["antes"][:1]}]}
SCORES = {"unanimous": json.loads((GOLDEN / "scores.json").read_text())["unanimous"][:2], "majority": []}


def rates(folder: Path, name: str, content: Any, change: Callable[[Any], object]) -> dict[str, Rate]:
    changed = copy.deepcopy(content)
    change(changed)
    (folder / name).write_text(json.dumps(changed))
    return {rate.kind: rate for rate in verify(folder)}


def vector(**changes: Any) -> Callable[[Any], object]:
    return lambda content: content["vectors"][0].update(changes)


def ante(**changes: Any) -> Callable[[Any], object]:
    return lambda content: content["seeds"][0]["antes"][0].update(changes)


def hand(**changes: Any) -> Callable[[Any], object]:
    return lambda content: content["unanimous"][0].update(changes)


@pytest.mark.parametrize(
    "change",
    [
        *(vector(**{field: None}) for field in ("pseudoseed", "random", "hashed_seed", "pseudohash_key_seed")),
        vector(random=[None, RNG["vectors"][0]["random"][1]]),
        lambda content: content["vectors"][0].pop("randint_1_52_second_draw"),
    ],
)
def test_what_is_null_in_rng_is_not_scored(tmp_path: Path, change: Callable[[Any], object]) -> None:
    (rate,) = rates(tmp_path, "rng.json", RNG, change).values()
    assert (rate.kind, rate.passed, rate.total) == ("rng", 2, 2)


def test_one_null_hides_no_other_difference(tmp_path: Path) -> None:
    (rate,) = rates(tmp_path, "rng.json", RNG, vector(random=[None, 0.5])).values()
    assert (rate.passed, rate.total) == (1, 2)
    assert "random is" in rate.first[0]


def test_streams_that_the_engine_does_not_draw_are_hashed_as_they_are_written() -> None:
    """The same numbers both ways, where both ways lead."""
    for name, ante_ in (("Joker1sho3", 3), ("cdt7", 7), ("boss", 1), ("Joker1sho3_resample2", 3)):
        drawn = _draws(seeded_batch("ALEEB", ante_), name, "ALEEB")
        got = [next(drawn) for _ in range(3)]
        state = rng.hash_bytes((name + "ALEEB").encode(), len(name) + 5)
        for seed, first, second in got:
            state = rng.advance(state)
            assert seed == (state + rng.hash_bytes(b"ALEEB", 5)) / 2
            assert (first, second) == rng.two_draws(seed)
    for name in ("cdt20", "Joker1sho1_resample200", "no such stream", "_resample2"):
        assert differences({"seed": "ALEEB", "key": name, "pseudoseed": [None, None]}) == []
        assert len(differences({"seed": "ALEEB", "key": name, "pseudoseed": [0.5]})) == 1


def test_what_is_null_or_not_there_in_seeds_is_not_scored(tmp_path: Path) -> None:
    whole = rates(tmp_path, "seeds.json", SEEDS, lambda content: None)
    assert {kind: rate.total for kind, rate in whole.items()} == {
        **{"boss": 1, "voucher": 1, "tag": 2, "pack kind": 4, "shelf": 2, "pack contents": 4}
    }
    for change, less in (
        (ante(shops=None), {"pack kind": 0, "shelf": 0, "pack contents": 0}),
        (ante(shops=[None, SEEDS["seeds"][0]["antes"][0]["shops"][1]]), {"pack kind": 2, "shelf": 1}),
        (lambda content: content["seeds"][0]["antes"][0]["shops"].pop(), {"pack kind": 2, "shelf": 1}),
        (ante(tags=None), {"tag": 0}),
        (ante(tags={"big": "Speed Tag"}), {"tag": 1}),
        (lambda content: content["seeds"][0]["antes"][0].pop("boss"), {"boss": 0}),
        (lambda content: content["seeds"].append(None), {}),
    ):
        found = rates(tmp_path, "seeds.json", SEEDS, change)
        assert found.keys() == whole.keys()
        assert all(rate.passed == rate.total for rate in found.values()), found
        assert {kind: found[kind].total for kind in less} == less


def test_the_stake_of_a_seed_counts(tmp_path: Path) -> None:
    """Higher stakes draw stickers, which change nothing but what streams are used; a wrong name is said."""
    stakes = {}
    for stake in ("White", "White Stake", "Gold Stake", None):
        found = rates(tmp_path, "seeds.json", SEEDS, lambda content, s=stake: content["seeds"][0].update(stake=s))
        stakes[stake] = [rate.passed for rate in found.values()]
    assert stakes["White"] == stakes["White Stake"] == stakes[None]
    found = rates(tmp_path, "seeds.json", SEEDS, lambda content: content["seeds"][0].update(stake="Gld Stake"))
    assert "did you mean 'Gold'" in found["malformed entries in seeds.json"].first[0]


def test_shops_and_packs_that_are_never_there_differ(tmp_path: Path) -> None:
    shop = SEEDS["seeds"][0]["antes"][0]["shops"][0]
    found = rates(tmp_path, "seeds.json", SEEDS, ante(shops=[{**shop, "visit": 9}]))
    assert (found["shelf"].passed, found["pack kind"].passed, found["pack kind"].total) == (0, 0, 2)
    found = rates(tmp_path, "seeds.json", SEEDS, ante(shops=[{**shop, "packs": shop["packs"] * 2}]))
    assert (found["shelf"].passed, found["pack kind"].passed, found["pack kind"].total) == (1, 2, 4)


def test_what_is_null_in_scores_is_not_scored(tmp_path: Path) -> None:
    for change, total in (
        (hand(expected=None), 1),
        (lambda content: content["unanimous"][0]["expected"].update(score=None), 2),
        (lambda content: content["unanimous"][0]["expected"].pop("hand"), 2),
        (lambda content: content.update(unanimous=None), 0),
        (lambda content: content["unanimous"][0]["played"][0].update(seal=None), 2),
    ):
        found = rates(tmp_path, "scores.json", SCORES, change)
        assert list(found) == ["unanimous scores", "majority scores"]
        assert (found["unanimous scores"].passed, found["unanimous scores"].total) == (total, total)
    found = rates(tmp_path, "scores.json", SCORES, hand(expected={"hand": None, "chips": 1}))
    assert found["unanimous scores"].passed == 1


@pytest.mark.parametrize(
    ("name", "content", "change", "why"),
    [
        ("rng.json", RNG, vector(seed="a b"), "1 to 8 characters"),
        ("rng.json", RNG, vector(seed=5), "5"),
        ("rng.json", RNG, vector(random=0.5), "len"),
        ("rng.json", RNG, lambda content: content["vectors"][0].pop("key"), "lacks 'key'"),
        ("rng.json", RNG, lambda content: content["vectors"].__setitem__(0, 7), "7"),
        ("seeds.json", SEEDS, lambda content: content["seeds"][0].update(deck="Rad Deck"), "did you mean 'Red Deck'"),
        ("seeds.json", SEEDS, lambda content: content["seeds"][0].update(seed="A-B"), "'-'"),
        ("seeds.json", SEEDS, ante(ante=99), "antes are 1 to 12"),
        ("seeds.json", SEEDS, ante(shops=[5]), "'int'"),
        ("scores.json", SCORES, hand(jokers=[{"name": "Blueprnt"}]), "did you mean 'Blueprint'"),
        ("scores.json", SCORES, hand(jokers=[{"name": "Joker"}] * 20), "jokers has 20 entries; there is room for 14"),
        ("scores.json", SCORES, hand(played=[{"rank": "Ace", "suit": "Spades"}] * 6), "room for 5"),
        ("scores.json", SCORES, hand(played=[{"rank": "1", "suit": "Spades"}]), "unknown rank '1'"),
        ("scores.json", SCORES, lambda content: content["unanimous"][0].pop("levels"), "lacks 'levels'"),
        ("scores.json", SCORES, lambda content: content["unanimous"][0].pop("expected"), "lacks 'expected'"),
    ],
)
def test_a_broken_entry_is_one_difference_and_ends_nothing(
    tmp_path: Path, name: str, content: Any, change: Callable[[Any], object], why: str
) -> None:
    found = rates(tmp_path, name, content, change)
    malformed = found.pop(f"malformed entries in {name}")
    assert (malformed.passed, malformed.total, len(malformed.first)) == (0, 1, 1)
    assert why in malformed.first[0]
    assert all(rate.passed == rate.total for rate in found.values())


def test_a_file_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    for text in ('{"vectors": 5}', "[1]", "{"):
        (tmp_path / "rng.json").write_text(text)
        with pytest.raises(ConfigError):
            verify(tmp_path)
