"""`make gpu-check` without a GPU: its steps in tiny sizes, and its judgement of measurements that are made up."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from aleazero.bench import cases, gpu_check, profiles
from aleazero.bench.gate import GateError
from aleazero.bench.gpu_check import Figure, read_figures, run
from aleazero.bench.measure import Rate, Size
from aleazero.bench.suite import KINDS

FIGURES = read_figures().figures
ROOT = Path(__file__).parents[2]


SMALL = read_figures().groups(small=True)
FIRST = {options.kind: options for options in reversed(SMALL)}.values()  # of each kind; the others are for `-m long`


def said_by(*, small: bool = False) -> tuple[int, list[str]]:
    lines: list[str] = []
    return run(gpu_check.FLOORS, lines.append, small=small), lines


@pytest.mark.parametrize(
    "options",
    [pytest.param(each, marks=[] if each in FIRST else pytest.mark.long) for each in SMALL],
    ids=lambda options: SMALL[options][0].name,
)
def test_a_figure_is_measured_in_a_tiny_size_with_the_core_dependencies_alone(
    options: cases.Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("pgx", "mctx", "pyspiel"):
        monkeypatch.setitem(sys.modules, package, None)
    found = gpu_check.measure_figures(options, SMALL[options])
    assert list(found) == [figure.name for figure in SMALL[options]]
    assert all(0 < ratio.low <= ratio.ratio <= ratio.high for ratio in found.values())


def test_in_tiny_sizes_every_figure_is_printed_and_none_compared(reached: dict[str, float]) -> None:
    reached.update(dict.fromkeys(reached, 0.1))
    code, lines = said_by(small=True)
    assert code == 0
    assert "the comparison does not apply" in lines[0]
    assert [line[:48].strip() for line in lines[2:]] == [figure.name for figure in FIGURES]
    assert not any("TOO LOW" in line or line.endswith("ok") for line in lines)


def test_without_a_gpu_it_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_check.main([]) == 2
    said = capsys.readouterr().err
    assert "found no GPU: run this on an NVIDIA H200" in said
    assert "--small" in said


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """By command, the share of the recorded figures that a GPU reaches; all of them, if nothing else is said."""
    shares = dict.fromkeys((figure.command for figure in FIGURES), 1.0)
    groups = read_figures().groups(small=False) | SMALL

    def measure_size(kind: cases.Kind, options: cases.Options) -> Size:
        return Size(1, rates=dict(rates(groups[options])))

    def rates(figures: Iterable[Figure]) -> Iterable[tuple[str, Rate]]:
        for figure in figures:
            speed = figure.floor * shares[figure.command]
            yield figure.case or "first", Rate("steps", speed, speed * 0.99, speed * 1.01, True, 7, 1.0)

    monkeypatch.setattr(gpu_check, "measure_size", measure_size)
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    monkeypatch.setattr(profiles, "hardware", lambda: profiles.Hardware("NVIDIA H200", "0"))
    return shares


def test_what_was_recorded_passes(reached: dict[str, float]) -> None:
    code, lines = said_by()
    assert code == 0
    assert [line.split()[-1] for line in lines[1:]] == ["ok"] * len(FIGURES)
    assert "42,322,143    42,322,143         1  ok" in lines[1]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_figure_fails_only_below_what_is_tolerated(figure: Figure, reached: dict[str, float]) -> None:
    least = (1 - figure.tolerance) / 1.01  # whose interval ends at the limit
    reached[figure.command] = least * 1.001
    assert said_by()[0] == 0
    reached[figure.command] = least * 0.999
    code, lines = said_by()
    assert code == 1
    assert next(line for line in lines if line.startswith(f"{figure.name:48}")).endswith("TOO LOW")
    assert f"low     {figure.name}" in "\n".join(lines)  # it was measured twice
    assert "below their floors" in lines[-1]


def test_on_another_gpu_nothing_is_compared(reached: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "hardware", lambda: profiles.Hardware("NVIDIA A100", "0"))
    reached.update(dict.fromkeys(reached, 0.1))
    code, lines = said_by()
    assert code == 0
    assert lines[0].startswith("measured on NVIDIA A100; the floors are an NVIDIA H200's")
    assert not any("TOO LOW" in line or line.endswith("ok") for line in lines)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_floor_is_the_figure_on_its_page(figure: Figure) -> None:
    """A floor that was lowered is not on its page. The command is one that `alea bench` takes."""
    page = (ROOT / figure.source).read_text()
    million = figure.floor / 1e6
    assert any(f"{written} " in page for written in (f"{figure.floor:,}", f"{million:g} M", f"{million:.1f} M"))
    assert figure.command.startswith("alea bench ")
    cases.check(figure.options, KINDS[figure.options.kind])
    assert 0 < figure.tolerance <= 0.15


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gpu_floors.toml"
    for text in ("", 'device = "x"\n[figures]\n', gpu_check.FLOORS.read_text().replace("0.05", "1.5")):
        path.write_text(text)
        with pytest.raises(GateError, match=r"gpu_floors\.toml"):
            read_figures(path)


def test_small_sizes_measure_the_same_thing() -> None:
    for figure in FIGURES:
        kept = ("kind", "game", "search", "preset", "player")
        options, small = figure.options, gpu_check.shrink(figure.options)
        assert [getattr(options, name) for name in kept] == [getattr(small, name) for name in kept]
        assert small.batch_sizes == (gpu_check.SMALL_BATCH,)
        assert dataclasses.replace(small, sets=options.sets) != options
