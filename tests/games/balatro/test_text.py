from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aleazero.core.errors import ConfigError
from aleazero.games.balatro import account, actions, ids, pages, saved, text
from aleazero.games.balatro.engine import Batch, EngineError
from aleazero.games.balatro.layout import ED_POLY, P_SHOP, ST_ETERNAL

DOCUMENT = Path(__file__).parents[3] / "docs/8-balatro.md"


def playing(seed: str = "ALEEB") -> Batch:
    batch = Batch.start([seed])
    batch.step(np.array([actions.A_SELECT_BLIND]))
    return batch


@pytest.mark.parametrize("seed", ["ALEEB", "2K9H9HN", "7LB2WVPK"])
def test_the_account_of_a_play_ends_in_its_score(seed: str) -> None:
    batch = playing(seed)
    rng = np.random.default_rng(1)
    for number in range(6):
        g = batch.states[0]
        g.joker[:4], g.joker_count = rng.choice(np.arange(1, 151), 4, replace=False), 4
        g.joker_edition[:4] = rng.integers(0, 5, 4)
        g.enhancement[:52] = rng.integers(0, 9, 52)
        g.hands_left, g.target = 4, 1e30
        plays = np.flatnonzero(batch.masks[0, : actions.A_DISCARD])
        action = int(rng.choice(plays))
        rows, scored = batch.account(0, action)
        before = batch.copy()
        batch.step(np.array([action]))
        assert float(batch.states["hand_score"][0]) == float(scored.states["hand_score"][0]), number
        chips, mult = rows[-1, 3:]
        assert np.floor(chips * mult) == float(scored.states["hand_score"][0])
        assert rows[0, 0] == account.BASE
        assert len(text.account_lines(before.states[0], scored.states[0], rows)) == len(rows) + 1
        batch.states["joker_count"] = 0
        batch = Batch(batch.states)


def test_the_account_names_what_brought_what() -> None:
    batch = playing()
    g = batch.states[0]
    g.joker[0], g.joker_count, g.joker_edition[0] = ids.J_JOKER, 1, ED_POLY
    best = int(np.argmax([c == int(g.hand[0]) for c in g.hand[:8]]))
    rows, scored = batch.account(0, best)
    lines = text.account_lines(g, scored.states[0], rows)
    assert [" ".join(line.split()) for line in lines] == [
        "High Card, level 1 5 x 1",
        f"{text.card(g, int(g.hand[0]))} {5 + 10 if int(g.rank[int(g.hand[0])]) < 14 else 16} x 1",
        f"Joker {int(rows[1, 3])} x 5",
        f"Joker: Polychrome {int(rows[1, 3])} x 7.5",
        f"score {int(np.floor(rows[1, 3] * 7.5)):,}",
    ]
    with pytest.raises(EngineError, match="plays no hand"):
        batch.account(0, actions.A_DISCARD)


def test_why_an_action_is_not_legal_is_said() -> None:
    batch = playing()
    g = batch.states[0]

    def why(action: int) -> str:
        fresh = Batch(batch.states)
        assert not fresh.masks[0, action]
        return text.why_not(fresh.states[0], action)

    assert why(actions.A_BUY) == "a blind is being played, and it is for when the shop is open"
    assert why(actions.A_PLAY_SELECTED) == "no card is selected"
    assert why(actions.A_USE) == "there are 0 consumables"
    assert why(actions.A_SELL_JOKER) == "there are 0 jokers"
    assert why(actions.A_TOGGLE + 8) == "there are 8 cards"
    g.discards_left = 0
    assert why(actions.A_DISCARD) == "no discards are left"
    g.consumable[0], g.consumable_count = ids.C_DEATH, 1
    assert why(actions.A_USE) == "Death takes 2 selected cards, 0 are selected"
    g.joker[0], g.joker_count, g.joker_sticker[0] = ids.J_EGG, 1, ST_ETERNAL
    assert why(actions.A_SELL_JOKER) == "it is eternal"
    g.free_moves = actions.FREE_MOVES
    assert why(actions.A_TOGGLE).startswith("12 moves")
    g.target = 1.0
    fresh = Batch(batch.states)
    fresh.step(np.array([0]))
    batch = fresh
    g = batch.states[0]
    assert int(g.phase) == P_SHOP
    g.money = 0
    g.shelf_cost[:2] = 5
    assert why(actions.A_BUY) == "it costs 5, and there is 0"
    assert why(actions.A_REROLL) == "there is not enough money (0)"
    assert why(actions.A_BUY + 4) == "there is none"
    assert why(actions.A_VOUCHER + 1) == "there is none"


def test_every_legal_action_of_some_runs_has_a_description_and_every_other_a_reason() -> None:
    for seed in ("ALEEB", "2K9H9HN"):
        batch = Batch.start([seed], last_ante=12)
        words = np.array([77])
        for _ in range(40):
            g = batch.states[0]
            for action in np.flatnonzero(batch.masks[0])[-40:]:
                assert text.describe(g, int(action))
            for action in np.flatnonzero(~batch.masks[0])[::37]:
                assert text.why_not(g, int(action))
            assert pages.table_text(g)
            batch.states["target"] = np.minimum(batch.states["target"], 1.0)
            batch.states["money"] = np.maximum(batch.states["money"], 10)
            chosen, moving = batch.random_actions(words)
            if not moving.any():
                break
            batch.step(chosen)


def test_saved_runs_come_back_and_wrong_files_are_explained(tmp_path: Path) -> None:
    run = saved.SavedRun("ALEEB", "Blue Deck", "Red", 12, (actions.A_SELECT_BLIND, 5))
    saved.write(run, tmp_path / "run.json")
    assert saved.read(tmp_path / "run.json") == run
    assert len(list(run.steps())) == 2
    with pytest.raises(ConfigError, match=r"action 2 of the run, 900 \(unused 900\), is not legal"):
        list(saved.SavedRun("ALEEB", actions=(actions.A_SELECT_BLIND, 900)).steps())
    (tmp_path / "bad.json").write_text(
        '{"game": "balatro", "version": 1, "seed": "A-B", "deck": "Bleu Deck", "stake": "Red", "last_ante": 8}'
    )
    with pytest.raises(ConfigError, match=r"(?s)list of whole numbers.*did you mean 'Blue Deck'.*seed 'A-B' has '-'"):
        saved.read(tmp_path / "bad.json")
    (tmp_path / "no.json").write_text("{")
    with pytest.raises(ConfigError, match="no saved run"):
        saved.read(tmp_path / "no.json")


def test_the_document_s_tables_are_current() -> None:
    document = DOCUMENT.read_text("utf-8")
    for name in pages.PAGES:
        assert f"<!-- {name} -->" in document
    assert pages.fill(document) == document, "make them anew: alea balatro tables docs/8-balatro.md"


def test_a_table_that_is_out_of_date_is_made_anew() -> None:
    document = "a\n<!-- coverage -->\nold\n<!-- end coverage -->\nb\n"
    filled = pages.fill(document)
    assert "old" not in filled
    assert "| jokers | 150 of 150 | none |" in filled
    assert filled.startswith("a\n")
    assert filled.endswith("\nb\n")
