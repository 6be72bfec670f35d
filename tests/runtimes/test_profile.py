"""Profiles of real runs: what they say, what they leave, and that they change nothing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from aleazero.observe.reports import ProfileReport
from aleazero.run import main
from aleazero.runs import RunFolder
from aleazero.runtimes import local
from aleazero.runtimes.profile import SHARES, in_words
from aleazero.runtimes.start import Finished, ProfileMissing, resume, start, where_time_went
from tests.runtimes.support import (  # noqa: F401 - fixtures
    Recorder,
    StopAfter,
    differences,
    make_run,
    newest,
    programs,
    quick_programs,
    shared_parts,
    statuses,
    tiny,
    train,
    write_config,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_programs")]


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("aleazero.runtimes.start.build_parts", shared_parts)
    monkeypatch.setattr("aleazero.runtimes.profile.SECONDS", 0.0)  # one cycle is enough
    yield
    jax.config.update("jax_compilation_cache_include_metadata_in_key", False)


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory, quick_programs: None) -> Finished:  # noqa: F811
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aleazero.runtimes.start.build_parts", shared_parts)
        patch.setattr("aleazero.runtimes.profile.SECONDS", 0.0)
        return start(tiny(), tmp_path_factory.mktemp("profiled"), name="it", profile=True, quiet=True)


def test_shares_are_of_all_the_time_and_every_part_of_a_run_has_one(profiled: Finished) -> None:
    assert profiled.profile is not None
    shares = profiled.profile.shares
    assert list(shares) == list(SHARES)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert all(0 <= share <= 1 for share in shares.values())
    assert min(shares[name] for name in ("rules", "search", "network", "replay", "update")) > 0
    assert shares["other"] < 0.3
    assert profiled.profile.device_share == pytest.approx(1 - shares["host"])


def test_the_trace_can_be_loaded_and_words_say_how_to_look_at_it(profiled: Finished) -> None:
    assert profiled.profile is not None
    file = Path(profiled.profile.trace)
    assert profiled.folder.profile in file.parents
    assert [plane.name for plane in jax.profiler.ProfileData.from_file(str(file)).planes]
    said = "\n".join(where_time_went(profiled))
    assert f"network {profiled.profile.shares['network']:.1%}" in said
    (viewed,) = profiled.folder.profile.rglob("*.trace.json.gz")
    assert f"trace: {viewed} (open it in https://ui.perfetto.dev)" in said
    assert f"tensorboard --logdir {profiled.folder.profile} " in said
    assert "no update" not in said
    assert "no update" in "\n".join(in_words(dict.fromkeys(SHARES, 0.0), file))


def test_it_stops_with_a_checkpoint_and_goes_on_as_if_it_had_not_been_looked_at(
    profiled: Finished, tmp_path: Path
) -> None:
    assert profiled.status == "stopped"
    assert statuses(profiled.folder) == ["started", "stopped"]
    reports = [json.loads(line) for line in profiled.folder.metrics_file.read_text().splitlines()]
    (report,) = [report for report in reports if report["kind"] == "profile"]
    assert profiled.profile is not None
    assert report["shares"] == profiled.profile.shares
    assert 0 < newest(profiled.folder).facts["rows"] < tiny().total_rows
    done = resume("it", profiled.folder.path.parent, quiet=True)
    assert (done.status, done.profile) == ("done", None)
    assert differences(newest(done.folder), newest(train(tiny(), tmp_path))) == []


def test_a_setting_profiles_a_run_that_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "PROFILE_AFTER", 16)
    sink = Recorder()
    config = tiny("observe.profile=true", "replay.log=false")
    with contextlib.closing(make_run(config, tmp_path, sink=sink)) as run:
        assert run.train(StopAfter()) == "done"
    (report,) = sink.of(ProfileReport)
    assert 16 <= report.step < newest(run.folder).step
    assert sum(report.shares.values()) == pytest.approx(1.0)


def test_a_run_that_ends_before_it_learns_says_why_there_is_no_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--runs", str(tmp_path / "runs")]
    for rows in (256, 512):  # before its first update, and before anything could be traced after it
        file = write_config(tiny(f"total_rows={rows}"), tmp_path / "it.toml")
        assert main([str(file), "--name", f"short-{rows}", "--profile", *where]) == 1
        said = capsys.readouterr().err
        assert "ended before there was anything to measure" in said
        assert "replay.min_rows" in said
    with pytest.raises(ProfileMissing):
        where_time_went(Finished(RunFolder(tmp_path), "done", [], None))


def test_the_plain_command_says_where_the_time_goes_and_refuses_a_run_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_config(tiny(), tmp_path / "it.toml")
    where = ["--runs", str(tmp_path / "runs")]
    assert main([str(file), "--name", "one", "--profile", *where]) == 0
    assert "\ntime:  rules " in capsys.readouterr().out
    assert main(["--resume", "one", "--profile", *where]) == 0  # another stretch of it
    assert "\ntime:  rules " in capsys.readouterr().out
    assert len(list((tmp_path / "runs" / "one" / "profile").rglob("*.xplane.pb"))) == 2
    assert main(["--resume", "two", "--profile", *where]) == 2
    assert "'two'" in capsys.readouterr().err
    assert main(["--profile", *where]) == 2
    assert "name a settings file, or --resume a run" in capsys.readouterr().err


def test_a_profile_does_not_take_kept_programs_whose_names_are_others(tmp_path: Path) -> None:
    start(tiny("total_rows=256"), tmp_path, name="plain", quiet=True)
    assert not jax.config.jax_compilation_cache_include_metadata_in_key
    start(tiny("total_rows=256"), tmp_path, name="named", profile=True, quiet=True)
    assert jax.config.jax_compilation_cache_include_metadata_in_key
