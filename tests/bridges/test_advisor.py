from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from aleazero.bridges.advisor import HOUR, KEY, Advisor, AdvisorConfig, split_player, understood
from aleazero.bridges.balatro_advice import baseline
from aleazero.cli.main import run
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.games.balatro import actions
from aleazero.games.balatro.engine import Batch
from tests.bridges.chat_endpoint import ChatEndpoint, dripping
from tests.bridges.simple import charm, simple

GREEDY = baseline("greedy")


def _skipping(question: str) -> str:
    """Picks the option that skips the blind."""
    line = next(line for line in question.splitlines() if "skip blind" in line)
    return f'I think {{"option": {line.split(".")[0]}, "why": "the tag"}} is best.'


def _first(advisor: Advisor, seed: str = "ALEEB") -> int:
    return int(advisor(Batch.start([seed]), 0)[0])


def test_what_it_answers_is_done_and_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "a-secret")
    with ChatEndpoint(_skipping) as endpoint:
        advisor = Advisor(GREEDY, AdvisorConfig(endpoint.url))
        for _ in range(3):
            assert _first(advisor) == actions.A_SKIP_BLIND
        assert len(endpoint.questions) == 1
        assert "a-secret" not in endpoint.questions[0]
        assert endpoint.headers[0]["Authorization"] == "Bearer a-secret"
    counts = advisor.counts
    assert (counts.asked, counts.followed, counts.from_memory) == (1, 3, 2)
    assert (counts.nonsense, counts.failed, counts.over_budget) == (0, 0, 0)


def test_many_may_ask_at_once_and_the_budget_holds() -> None:
    with ChatEndpoint(_skipping, seconds=0.05) as endpoint, ThreadPoolExecutor(4) as pool:
        advisor = Advisor(simple, AdvisorConfig(endpoint.url, per_hour=1))
        assert list(pool.map(lambda _: _first(advisor), range(4))) == [actions.A_SKIP_BLIND] * 4
        assert len(endpoint.questions) == 1
    assert (advisor.counts.followed, advisor.counts.from_memory) == (4, 3)


def test_it_is_asked_at_blinds_and_in_shops_alone() -> None:
    with ChatEndpoint(lambda question: '{"option": 1}') as endpoint:
        advisor, batch = Advisor(simple, AdvisorConfig(endpoint.url, per_hour=1000)), Batch.start(["ALEEB", "ABCDEFGH"])
        for _ in range(12):
            chosen = advisor(batch, 0)
            assert chosen.tolist() == simple(batch, 0).tolist()
            batch.step(chosen)
            charm(batch)
        assert advisor.counts.followed > 4
        assert all("draw pile" not in question for question in endpoint.questions)
        assert any("shelf" in question for question in endpoint.questions)


@pytest.mark.parametrize(
    "answer",
    [
        "skip it!",
        '{"option": 99}',
        '{"option": 0}',
        '{"option": true}',
        '{"option": 1.5}',
        f'{{"option": "{"9" * 5000}"}}',
        '{"option": ' + "[" * 20_000 + "]" * 20_000 + "}",
        '{"option": null}',
        "[1]",
        "",
        b"no json",
        b"{}",
        b'{"choices": [{"message": {"content": 7}}]}',
    ],
)
def test_nonsense_is_ignored_and_counted(answer: str | bytes) -> None:
    with ChatEndpoint(lambda question: answer) as endpoint:
        advisor = Advisor(GREEDY, AdvisorConfig(endpoint.url))
        assert _first(advisor) == actions.A_SELECT_BLIND
    counts = advisor.counts
    assert counts.followed == 0
    assert counts.nonsense + counts.failed == 1
    assert counts.nonsense == (0 if answer == b"no json" else 1)


def test_a_late_an_angry_and_an_absent_endpoint_leave_it_to_the_policy(caplog: pytest.LogCaptureFixture) -> None:
    with ChatEndpoint(_skipping, seconds=1.5) as endpoint:
        started = time.perf_counter()
        advisor = Advisor(GREEDY, AdvisorConfig(endpoint.url, seconds=0.1))
        assert _first(advisor) == actions.A_SELECT_BLIND
        assert time.perf_counter() - started < 1.4
        assert advisor.counts.failed == 1
    with dripping() as url:
        started = time.perf_counter()
        advisor = Advisor(GREEDY, AdvisorConfig(url, seconds=0.3))
        assert _first(advisor) == actions.A_SELECT_BLIND
        assert time.perf_counter() - started < 4
        assert advisor.counts.failed == 1
    with ChatEndpoint(_skipping, status=500) as endpoint:
        advisor = Advisor(GREEDY, AdvisorConfig(endpoint.url))
        assert _first(advisor) == actions.A_SELECT_BLIND
        gone = endpoint.url
    caplog.clear()
    absent = Advisor(GREEDY, AdvisorConfig(gone))
    for seed in ("ALEEB", "ABCDEFGH"):
        assert _first(absent, seed) == actions.A_SELECT_BLIND
    assert absent.counts.failed == 2
    assert len(caplog.records) == 1  # said once


def test_no_more_is_asked_than_the_hour_allows() -> None:
    now = [100.0]
    with ChatEndpoint(_skipping) as endpoint:
        advisor = Advisor(GREEDY, AdvisorConfig(endpoint.url, per_hour=2), clock=lambda: now[0])
        seeds = ["ALEEB", "ABCDEFGH", "LIVE1", "LIVE2"]
        answers = [_first(advisor, seed) for seed in seeds[:3]]
        assert answers == [actions.A_SKIP_BLIND, actions.A_SKIP_BLIND, actions.A_SELECT_BLIND]
        assert _first(advisor, seeds[0]) == actions.A_SKIP_BLIND  # what is known costs nothing
        now[0] += HOUR
        assert _first(advisor, seeds[3]) == actions.A_SKIP_BLIND
        assert len(endpoint.questions) == 3
    assert advisor.counts.over_budget == 1


def test_answers_are_read_strictly() -> None:
    def said(content: object) -> object:
        return {"choices": [{"message": {"content": content}}]}

    assert understood(said('{"option": 2}'), 3) == 1
    assert understood(said('```json\n{"option": "3", "why": "x"}\n```'), 3) == 2
    for content in ('{"option": "two"}', '{"choice": 1}', '{"option": 1', None, ["x"]):
        assert understood(said(content), 3) is None


def test_an_advisor_is_an_option_of_a_player() -> None:
    assert split_player("greedy") == ("greedy", None)
    name, config = split_player("run:x,search,depth=2,advisor=http://h/v1,advisor_budget=5,advisor_seconds=2.5")
    assert name == "run:x,search,depth=2"
    assert config == AdvisorConfig("http://h/v1", seconds=2.5, per_hour=5)
    with pytest.raises(UnknownName, match="advisor_budget"):
        split_player("greedy,advisor=http://h,advisor_buget=5")
    for wrong in ("advisor_budget=5", "advisor=h", "advisor=http://u:p@h", "advisor=http://h,advisor_seconds=x"):
        with pytest.raises(ConfigError):
            split_player(f"greedy,{wrong}")
    for url in ("http://h:99999/v1", "http://user:secret@h/v1", "http://h:secret/v1"):
        with pytest.raises(ConfigError, match="names no endpoint") as told:
            AdvisorConfig(url)
        assert "secret" not in str(told.value)
    with pytest.raises(ConfigError, match="seconds"):
        AdvisorConfig("http://h", seconds=0.0)


def test_eval_says_what_came_of_the_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Random players lose soon."""
    (tmp_path / "seeds").write_text("ALEEB\nABCDEFGH\n")
    with ChatEndpoint(lambda question: '{"option": 1}') as endpoint:
        player = f"random,advisor={endpoint.url},advisor_budget=1"
        assert run(["eval", "balatro", "--player", player, "--seeds", str(tmp_path / "seeds"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["advisor"]["asked"] == 1
    assert told["advisor"]["followed"] >= 1
    assert told["advisor"]["over_budget"] > 0
    assert np.isfinite(told["mean_ante"])
