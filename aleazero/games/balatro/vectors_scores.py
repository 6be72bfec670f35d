"""Checks vectors of scored hands (`scores.json`): cards, jokers and levels in, hand, chips, mult and score out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aleazero.core.errors import ConfigError, UnknownName
from aleazero.games.balatro import facts
from aleazero.games.balatro.jit import entry
from aleazero.games.balatro.layout import AT_PLAYED, MAX_HAND, MAX_JOKERS, P_PLAY, new_batch
from aleazero.games.balatro.scoring import score_hand


@entry
def score_batch(states: Any) -> None:
    """Scores the played cards of every game of a batch."""
    for b in range(len(states)):
        score_hand(states[b], np.zeros((0, 5), np.float64))


def _put_card(game: Any, card: dict[str, str]) -> int:
    c = int(game.card_count)
    game.card_count += 1
    game.rank[c] = _place("rank", facts.RANKS, card["rank"]) + 2
    game.suit[c] = _place("suit", facts.SUITS, card["suit"])
    game.enhancement[c] = _place("enhancement", facts.ENHANCEMENTS, card.get("enhancement"))
    game.edition[c] = _place("edition", facts.EDITIONS, card.get("edition"))
    game.seal[c] = _place("seal", facts.SEALS, card.get("seal"))
    return c


def _place(kind: str, names: Sequence[str], name: str | None) -> int:
    if (name or "") not in names:
        raise UnknownName(kind, str(name), names)
    return names.index(name or "")


def set_up(game: Any, vector: dict[str, Any]) -> None:
    """Fills a record with what a vector describes."""
    for field, most in (("played", 5), ("held", MAX_HAND), ("jokers", MAX_JOKERS)):
        if len(vector[field]) > most:
            raise ConfigError(f"{field} has {len(vector[field])} entries; there is room for {most}")
    game.phase, game.ante, game.stake = P_PLAY, 1, 1
    game.first_hand, game.last_hand, game.joker_disabled = -1, -1, -1
    game.deck = facts.number("decks", vector["deck"])
    game.money, game.joker_slots = vector["money"], vector["joker_slots"]
    game.hands_left, game.discards_left = vector["hands_left_before"] - 1, vector["discards_left"]
    for h, row in enumerate(facts.table("hands")):
        game.level[h] = vector["levels"][row["name"]]
        game.plays[h] = vector["plays_before"][row["name"]]
    for i, card in enumerate(vector["played"]):
        game.played[i] = _put_card(game, card)
        game.place[i] = AT_PLAYED
    game.played_count = len(vector["played"])
    for i, card in enumerate(vector["held"]):
        game.hand[i] = _put_card(game, card)
    game.hand_count = len(vector["held"])
    for i, joker in enumerate(vector["jokers"]):
        game.joker[i] = facts.number("jokers", joker["name"])
        game.joker_edition[i] = _place("edition", facts.EDITIONS, joker.get("edition"))
    game.joker_count = len(vector["jokers"])


def differences(vectors: list[dict[str, Any]]) -> list[str]:
    """One line for every vector whose score is not ours."""
    states = new_batch(len(vectors))
    for b, vector in enumerate(vectors):
        set_up(states[b], vector)
    score_batch(states)
    lines = []
    for game, vector in zip(states, vectors, strict=True):
        got: dict[str, Any] = {
            "hand": facts.name_of("hands", int(game.last_hand)),
            "chips": float(game.chips),
            "mult": float(game.mult),
            "score": float(game.hand_score),
        }
        expected = {field: value for field, value in vector["expected"].items() if value is not None}
        same = got["hand"] == expected.pop("hand", got["hand"])
        numbers = [field for field in ("chips", "mult", "score") if field in expected]
        if not same or not np.allclose(
            [got[field] for field in numbers], [float(expected[field]) for field in numbers], rtol=1e-12, atol=0
        ):
            lines.append(f"{vector.get('id')}: {got}, not {vector['expected']}")
    return lines
