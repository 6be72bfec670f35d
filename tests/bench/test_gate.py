"""The regression gate by measurements that are made up; and its cases for real, as small as they can be."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import jax.numpy as jnp
import pytest

from aleazero.bench import gate
from aleazero.bench.cases import Case, Setup
from aleazero.bench.gate import Floors, GateError, check, read_floors, record
from aleazero.bench.measure import Ratio
from aleazero.core.game import Game

FLOORS = Floors({"rules": 10.0, "search": 2.0}, 0.1)


def ratio(median: float, spread: float = 0.0) -> Ratio:
    return Ratio("peer", median, median - spread, median + spread)


def in_turn(*found: dict[str, Ratio]) -> Callable[[], dict[str, Ratio]]:
    """A measurement that finds this, then that; asked more often, it fails."""
    left: Iterator[dict[str, Ratio]] = iter(found)
    return lambda: next(left)


def gated(**groups: Callable[[], dict[str, Ratio]]) -> tuple[list[str], list[str]]:
    said: list[str] = []
    return check(FLOORS, groups, said.append), said


def test_a_ratio_at_its_floor_passes_without_a_second_look() -> None:
    problems, said = gated(one=in_turn({"rules": ratio(10.0)}), two=in_turn({"search": ratio(7.0)}))
    assert problems == []
    assert [line.split()[0] for line in said] == ["ok", "ok"]
    assert "rules: 10 (10 to 10), floor 10" in said[0]


@pytest.mark.parametrize(("found", "fails"), [(ratio(9.01), False), (ratio(8.99), True), (ratio(6.0, 3.01), False)])
def test_it_fails_only_where_the_upper_end_is_below_what_is_tolerated(found: Ratio, fails: bool) -> None:
    problems, _ = gated(one=in_turn({"rules": found}, {"rules": found}))
    assert bool(problems) == fails


def test_a_low_ratio_is_measured_once_more_before_it_fails() -> None:
    low, fine = {"rules": ratio(5.0, 0.2)}, {"rules": ratio(11.0)}
    problems, said = gated(one=in_turn(low, fine))
    assert problems == []
    assert [line.split()[0] for line in said] == ["low", "ok"]
    problems, said = gated(one=in_turn(low, {"rules": ratio(5.5, 0.2)}))
    assert problems == ["rules: 5.5 (5.3 to 5.7), floor 10"]
    assert said[-1].startswith("TOO LOW")


def test_cases_measured_together_are_judged_each_by_its_better_time() -> None:
    first, second = {"rules": ratio(5.0), "search": ratio(2.0)}, {"rules": ratio(10.0), "search": ratio(1.0)}
    assert gated(one=in_turn(first, second))[0] == []
    both = {"rules": ratio(5.0), "search": ratio(1.0)}
    assert len(gated(one=in_turn(both, second))[0]) == 1


def test_a_case_without_a_floor_is_named() -> None:
    with pytest.raises(GateError, match=r"no floor is recorded for replay.*--record"):
        gated(one=in_turn({"replay": ratio(1.0)}))


def test_what_is_recorded_is_what_is_read(tmp_path: Path) -> None:
    path, said = tmp_path / "floors.toml", list[str]()
    several = [{"rules": ratio(14.0), "a, b:c": ratio(0.5)}, {"rules": ratio(12.345, 1.0), "a, b:c": ratio(0.7)}]
    groups = {"one": in_turn(*several, several[0]), "two": lambda: {"last": ratio(3.0)}}
    record(path, groups, "2 cores", said.append)
    assert read_floors(path) == Floors({"rules": 12.3, "a, b:c": 0.5, "last": 3.0}, gate.TOLERANCE)
    assert "2 cores" in path.read_text()
    assert "rules: 12.3 (11.3 to 13.3)" in said[0]


@pytest.mark.parametrize(
    "text", [None, "tolerance = ", "[floors]\nrules = 1", 'tolerance = 0.1\nfloors = "x"', "tolerance = 1.5\n[floors]"]
)
def test_a_file_without_floors_says_what_to_do(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "floors.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(GateError, match=r"floors\.toml.*--record"):
        read_floors(path)


def test_the_command_measures_names_what_is_too_slow_and_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "floors.toml"
    monkeypatch.setattr(gate, "GROUPS", {"one": lambda: {"rules": ratio(10.0)}})
    assert gate.main(["--floors", str(path)]) == 1  # there are none yet
    assert "--record" in capsys.readouterr().err
    assert gate.main(["--record", "--floors", str(path)]) == 0
    assert gate.main(["--floors", str(path)]) == 0
    capsys.readouterr()
    monkeypatch.setattr(gate, "GROUPS", {"one": lambda: {"rules": ratio(8.0, 0.1)}})
    assert gate.main(["--floors", str(path)]) == 1
    assert "too slow twice: rules: 8 (7.9 to 8.1), floor 10" in capsys.readouterr().err


def test_the_recorded_floors_are_those_of_the_cases_that_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules for real, of few games; searches take long to compile, and `make bench-check` itself runs them."""
    built: list[tuple[str, str]] = []

    def search_cases(setup: Setup, game: Game, suffix: str, kinds: Sequence[str], batch: int) -> list[Case]:
        limit, peer = f"network{suffix}", "mctx {}" if suffix else None
        cases = [Case(limit, "evaluations", batch, lambda number: jnp.zeros(1))]
        for kind in kinds:
            built.append((game.spec.name, kind))
            theirs = peer and peer.format(kind)
            name = f"{kind} {gate.SIMULATIONS}{suffix}"
            cases.append(Case(name, "simulations", 2 * batch, lambda number: jnp.zeros(1), limit=limit, peer=theirs))
            cases += [Case(theirs, "simulations", batch, lambda number: jnp.zeros(1))] if theirs else []
        return cases

    monkeypatch.setattr(gate, "search_cases", search_cases)
    recorded = set(tomllib.loads(gate.FLOORS.read_text())["floors"])
    searches = gate.measure_searches()
    assert built == [("pgx:backgammon", "gumbel"), ("pgx:backgammon", "puct"), ("backgammon", "puct")]
    assert [found.peer for found in searches.values()] == ["mctx gumbel", "mctx puct", "network"]
    (rules_name,) = recorded - set(searches)
    monkeypatch.setattr(gate, "RULES_BATCH", 4)
    ((name, found),) = gate.measure_rules().items()
    assert name == rules_name.replace("8192", "4")
    assert found.peer == "pgx"
    assert 0 < found.low <= found.ratio <= found.high
