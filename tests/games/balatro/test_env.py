from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from aleazero.core.errors import AleaError, ConfigError, UnknownName
from aleazero.games.balatro import actions, entities, ids
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.env import BalatroEnv, BalatroVectorEnv, EnvConfig, IllegalAction, observation_space
from aleazero.games.balatro.layout import AT_DECK, F_FACE_DOWN, MAX_CARDS, P_OVER


def test_the_environment_passes_gymnasium_s_checker() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Box observation space m.*imum value is .*infinity")
        warnings.filterwarnings("ignore", message=".*render_mode.*|.*environment .* has no spec.*|.*No render.*")
        check_env(BalatroEnv({"illegal": "penalise"}), skip_render_check=True)


def test_what_is_seen_is_within_its_documented_bounds_through_a_whole_run() -> None:
    space = observation_space()
    env = BalatroEnv({"seed": "ALEEB"})
    seen, info = env.reset(seed=1)
    assert info["seed"] == "ALEEB"
    rng = np.random.default_rng(1)
    for _ in range(60):
        assert set(seen) == set(space.spaces)
        for name, array in seen.items():
            assert space[name].contains(array), name
        assert env.batch is not None
        env.batch.states["target"] = np.minimum(env.batch.states["target"], 1.0)
        seen, reward, over, cut, _ = env.step(rng.choice(np.flatnonzero(seen["action_mask"])))
        assert reward in (0, 1)
        assert not cut
        if over:
            break


def test_the_same_seed_is_the_same_run_and_another_is_not() -> None:
    one, two = BalatroEnv(), BalatroEnv()
    assert one.reset(seed=3)[1]["seed"] == two.reset(seed=3)[1]["seed"] != two.reset(seed=4)[1]["seed"]
    assert one.reset(options={"seed": "zz9"})[1]["seed"] == "ZZ9"
    with pytest.raises(ConfigError, match="123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
        one.reset(options={"seed": "A!"})


def test_an_illegal_action_raises_with_its_name_and_why_or_is_penalised() -> None:
    env = BalatroEnv({"seed": "ALEEB"})
    env.reset()
    wanted = r"action 0 \(play 0\) is not legal: a blind is to be chosen, and it is for when a blind is being played"
    with pytest.raises(IllegalAction, match=wanted):
        env.step(0)
    with pytest.raises(IllegalAction, match=r"action 999 .*numbers of actions end at"):
        env.step(999)
    mild = BalatroEnv({"seed": "ALEEB", "illegal": "penalise", "penalty": 0.5})
    before, _ = mild.reset()
    after, reward, over, _, info = mild.step(0)
    assert (reward, over) == (-0.5, False)
    assert re.search(wanted, info["illegal"])
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_settings_that_are_wrong_are_named() -> None:
    with pytest.raises(UnknownName, match="did you mean 'Red Deck'"):
        EnvConfig(deck="Rad Deck")
    with pytest.raises(ConfigError, match=r"last_ante is 13.*\n.*illegal is 'ignore'"):
        EnvConfig(last_ante=13, illegal="ignore")
    with pytest.raises(ConfigError, match="did you mean 'stake'"):
        BalatroEnv({"stakes": "White"})


class Graph:
    def __init__(self, size: int = 128) -> None:
        self.asked: list[list[str]] = []
        self.size = size

    def embedding(self, jokers: Sequence[str]) -> Sequence[float]:
        self.asked.append(list(jokers))
        return [len(jokers) / 10] * self.size


def test_an_embedding_client_is_asked_about_the_owned_jokers() -> None:
    graph = Graph()
    env = BalatroEnv({"memgraph_client": graph})
    seen, _ = env.reset(seed=1)
    assert graph.asked[-1] == []
    assert not seen["memgraph_embedding"].any()
    assert env.batch is not None
    g = env.batch.states[0]
    g.joker[0], g.joker[1], g.joker_count = ids.J_EGG, ids.J_JOKER, 2
    seen = env.step(actions.A_SELECT_BLIND)[0]
    assert graph.asked[-1] == ["Egg", "Joker"]
    assert seen["memgraph_embedding"].tolist() == pytest.approx([0.2] * 128)
    with pytest.raises(ConfigError, match=r"shape \(3,\)"):
        BalatroEnv({"memgraph_client": Graph(3)}).reset()


class Elsewhere:
    """A game client whose game is an engine of its own."""

    def __init__(self) -> None:
        self.batch: Batch | None = None
        self.calls: list[str] = []

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        self.calls.append(name)
        if name == "balatro_start":
            self.batch = Batch.start([arguments["seed"]], arguments["deck"], arguments["stake"], arguments["last_ante"])
        else:
            assert self.batch is not None
            self.batch.step(np.array([arguments["action"]]))
        assert self.batch is not None
        return {"snapshot": self.batch.snapshot()[0].hex()}


def test_a_game_client_plays_the_run_elsewhere() -> None:
    client = Elsewhere()
    there, here = BalatroEnv({"mcp_client": client}), BalatroEnv()
    there.reset(options={"seed": "ALEEB"})
    here.reset(options={"seed": "ALEEB"})
    for action in (actions.A_SELECT_BLIND, 3, actions.A_DISCARD + 5):
        one, two = there.step(action), here.step(action)
        assert all(np.array_equal(one[0][name], two[0][name]) for name in one[0])
        assert one[1:] == two[1:]
    assert client.calls == ["balatro_start", *["balatro_act"] * 3]
    with pytest.raises(ConfigError, match="BalatroEnv"):
        BalatroVectorEnv(2, {"mcp_client": client})


def test_many_runs_at_once_step_as_single_ones_do_and_begin_anew() -> None:
    many = BalatroVectorEnv(3, {"seed": "ALEEB"}, threads=1)
    single = BalatroEnv({"seed": "ALEEB"})
    seen, _ = many.reset(seed=1)
    alone, _ = single.reset()
    assert all(many.single_observation_space[name].contains(seen[name][2]) for name in seen)
    for action in (actions.A_SELECT_BLIND, 0, 1, 2, 3):
        alone, _, over, _, _ = single.step(action)
        seen, rewards, ended, _, _ = many.step(np.full(3, action))
        assert all(np.array_equal(seen[name][1], alone[name]) for name in seen)
        assert rewards.tolist() == [0, 0, 0]
    assert over
    assert ended.all()
    seen, _, ended, _, info = many.step(np.array([999, 999, 999]))  # begins anew: its action is not used
    assert not ended.any()
    assert info["rounds"].tolist() == [0, 0, 0]
    assert seen["action_mask"][:, actions.A_SELECT_BLIND].all()
    with pytest.raises(IllegalAction, match=r"run 1: action 5 \(play 5\)"):
        many.step(np.array([actions.A_SELECT_BLIND, 5, actions.A_SELECT_BLIND]))


def test_rows_say_what_lies_there_and_hide_what_is_hidden() -> None:
    env = BalatroEnv({"seed": "ALEEB"})
    env.reset()
    seen = env.step(actions.A_SELECT_BLIND)[0]
    assert env.batch is not None
    g = env.batch.states[0]
    hand = seen["hand"]
    assert hand[:, 0].sum() == 8
    assert [(int(r), int(s)) for r, s in hand[:8, 1:3]] == [
        (int(g.rank[c]), int(g.suit[c])) for c in map(int, g.hand[:8])
    ]
    assert seen["deck"].sum() == 44
    g.card_flags[int(g.hand[0])] = F_FACE_DOWN
    seen = env.step(actions.A_TOGGLE)[0]
    assert seen["hand"][0].tolist() == [1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0]
    assert seen["deck"].sum() == 45
    g = env.batch.states[0]
    g.card_flags[int(g.hand[0])] = 0
    env.batch.states["target"] = 1.0
    seen, reward, *_ = env.step(0)
    assert reward == 1
    g = env.batch.states[0]
    kinds = seen["shop"][:, 0].tolist()
    assert kinds[:2] == g.shelf_kind[:2].tolist()
    assert (kinds[5], kinds[7], kinds[8]) == (entities.K_VOUCHER, entities.K_PACK, entities.K_PACK)
    assert seen["shop"][5, 1:].tolist() == [int(g.voucher), 0, 0, 0, 0, 0, 0, 10]


def test_a_step_before_reset_or_after_the_end_says_so() -> None:
    env = BalatroEnv()
    with pytest.raises(ConfigError, match="before reset"):
        env.step(0)
    env.reset()
    assert env.batch is not None
    env.batch.states["phase"] = P_OVER
    with pytest.raises(AleaError, match="the run is over"):
        env.step(0)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"seed": 5}, "seed 5 is no text"),
        ({"last_ante": "8"}, "last_ante is '8'"),
        ({"last_ante": 8.5}, r"last_ante is 8\.5"),
        ({"penalty": "a"}, "penalty is 'a'"),
        ({"deck": None}, "unknown deck 'None'"),
    ],
)
def test_settings_of_wrong_types_are_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(AleaError, match=named):
        BalatroEnv(settings)


def test_wrong_types_at_reset_and_step_are_named() -> None:
    env = BalatroEnv({"seed": "ALEEB"})
    with pytest.raises(ConfigError, match="seed 5 is no text"):
        env.reset(options={"seed": 5})
    with pytest.raises(ConfigError, match=r"'sed'.*did you mean 'seed'"):
        env.reset(options={"sed": "ALEEB"})
    env.reset()
    for action in (560.7, "x", None, np.array([560]), True):
        with pytest.raises(IllegalAction, match="is no whole number"):
            env.step(action)
    env.step(np.int64(560))


def test_a_list_of_seeds_has_one_for_each_run() -> None:
    def first(*seeds: int) -> list[str]:
        env = BalatroVectorEnv(len(seeds), threads=1)
        env.reset(seed=list(seeds))
        assert env.batch is not None
        return [bytes(row.astype(np.uint8)).decode() for row in env.batch.states["seed"]]

    assert first(1, 2) != first(1, 3)
    assert first(1, 2)[0] == first(1, 3)[0] == BalatroEnv().reset(seed=1)[1]["seed"]
    env = BalatroVectorEnv(2, threads=1)
    env.reset(options={"seed": ["ALEEB", "ZZ9"]})
    assert env.batch is not None
    assert [bytes(row[:3].astype(np.uint8)) for row in env.batch.states["seed"]] == [b"ALE", b"ZZ9"]
    for bad in ({"seed": [1]}, {"options": {"seed": ["ALEEB"]}}):
        with pytest.raises(ConfigError, match="there are 2 runs"):
            env.reset(**bad)
    env.reset()
    with pytest.raises(ConfigError, match="there are 2 runs"):
        env.step(np.array([560]))
    with pytest.raises(IllegalAction, match="whole numbers"):
        env.step(np.array([560.0, 560.0]))


def test_a_run_that_no_record_holds_ends_alone() -> None:
    env = BalatroVectorEnv(2, {"seed": "ALEEB"}, threads=1)
    env.reset()
    assert env.batch is not None
    g = env.batch.states[0]
    g.joker[0], g.joker_count = ids.J_MARBLE, 1
    for c in range(52, MAX_CARDS):
        g.rank[c], g.suit[c], g.place[c], g.draw_pile[c] = 5, 1, AT_DECK, c
    g.card_count = g.deck_count = MAX_CARDS
    start = actions.A_SELECT_BLIND
    seen, _, over, cut, info = env.step(np.array([start, start]))
    assert (over.tolist(), cut.tolist()) == ([False, False], [True, False])
    assert info["error"].tolist() == ["more playing cards than the record has room for", ""]
    assert not seen["action_mask"][0].any()
    seen, _, over, cut, info = env.step(np.array([0, 0]))  # the first begins anew, the second plays a card
    assert not over.any()
    assert not cut.any()
    assert "error" not in info
    assert seen["action_mask"][0, start] == 1
    assert int(env.batch.states["hands_played"][1]) == 1
