"""Profiles are kept by machine, JAX and game, are judged with their noise, and give training its number of games."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jax
import pytest

from aleazero.bench import profiles
from aleazero.bench.profiles import Hardware, Profile, ProfileError, judge, load, place, save, with_num_games
from aleazero.config import RunConfig, resolve

HERE = profiles.hardware()


def profile(batch: int = 64, **changes: object) -> Profile:
    made = Profile(
        hardware=HERE.name,
        jax_version=HERE.jax_version,
        game="tictactoe",
        kind="selfplay",
        settings={},
        batch=batch,
        unit="rows",
        sizes={str(batch): [1000.0, 990.0, 1010.0]},
        made="2026-01-01T00:00:00+00:00",
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def keep(batch: int, preset: str = "quick", **changes: object) -> Path:
    path = place("selfplay", "tictactoe", preset, HERE)
    save(path, profile(batch, **changes), force=True)
    return path


def quick() -> RunConfig:
    return resolve("tictactoe", preset="quick", environ={})


# ---- files


def test_a_profile_comes_back_and_is_not_overwritten_unasked(data: Path) -> None:
    path = place("selfplay", "pgx:othello", "strong", HERE)
    assert path.is_relative_to(data / "profiles")
    assert path.name == "pgx_othello-selfplay-strong.json"
    assert place("network", "pig", "strong", HERE).name == "pig-network.json"
    save(path, profile(), force=False)
    assert load(path) == profile()
    with pytest.raises(ProfileError, match=r"has a profile already.*--validate.*--force"):
        save(path, profile(128), force=False)
    assert load(path).batch == 64
    save(path, profile(128), force=True)
    assert load(path).batch == 128


def test_machines_and_versions_have_their_own() -> None:
    places = {
        place("network", "pig", None, hardware)
        for hardware in (HERE, Hardware("NVIDIA H200", HERE.jax_version), Hardware(HERE.name, "9.9"))
    }
    assert len(places) == 3
    assert Hardware("NVIDIA H200 (SXM)", "0.11.2").folder == Path("nvidia-h200-sxm", "jax-0.11.2")
    assert HERE.jax_version == jax.__version__
    assert "core" in HERE.name


def test_no_profile_and_one_of_other_hardware_say_what_to_do() -> None:
    path = place("network", "pig", None, HERE)
    with pytest.raises(ProfileError, match=r"no profile 'pig-network' of this machine .*--discover$"):
        load(path)
    save(place("network", "pig", None, Hardware("NVIDIA H200", "0.11.2")), profile(), force=False)
    with pytest.raises(ProfileError, match=r"of other hardware or another JAX.*nvidia-h200 \(jax-0\.11\.2\)"):
        load(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no profile"),
        ("[1]", "is no profile"),
        ('{"format": 7}', "has format 7, not 1"),
        ('{"format": 1, "batch": 3}', "is no profile"),
        (json.dumps(dataclasses.asdict(profile(sizes={"64": [1.0, 2.0, 3.0]}))), "is no profile"),
        (json.dumps(dataclasses.asdict(profile(sizes={"64": [1.0, 1.0]}))), "is no profile"),
        (json.dumps(dataclasses.asdict(profile(sizes={"32": [1.0, 1.0, 1.0]}))), "is no profile"),
    ],
)
def test_a_damaged_profile_is_named(text: str, words: str) -> None:
    path = keep(64)
    path.write_text(text)
    with pytest.raises(ProfileError, match=words):
        load(path)
    config, told = with_num_games(quick(), "quick", environ={})
    assert config == quick()
    assert told is not None
    assert words in told


def test_a_place_that_cannot_be_written_is_named(data: Path) -> None:
    data.write_text("a file")
    with pytest.raises(ProfileError, match=r"could not be written.*ALEA_DATA"):
        save(place("network", "pig", None, HERE), profile(), force=True)


def test_where_data_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert profiles.data_root() == tmp_path / "data"
    monkeypatch.delenv("ALEA_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert profiles.data_root() == tmp_path / "xdg" / "aleazero"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert profiles.data_root() == tmp_path / "home" / ".local" / "share" / "aleazero"


# ---- verdicts


@pytest.mark.parametrize(
    ("now", "word", "fails"),
    [
        ((1000.0, 995.0, 1005.0), "same", False),
        ((1020.0, 1015.0, 1025.0), "same", False),  # within what a quiet machine does anyway
        ((1100.0, 1095.0, 1105.0), "faster", False),
        ((950.0, 945.0, 955.0), "slower", False),  # less than is tolerated
        ((880.0, 875.0, 885.0), "slower", False),  # more, but noise may have done it
        ((850.0, 845.0, 855.0), "slower", True),
        ((850.0, 600.0, 1100.0), "same", False),  # so noisy that it says nothing
    ],
)
def test_verdicts_take_noise_into_account(now: tuple[float, float, float], word: str, fails: bool) -> None:
    verdict = judge(profile(), 64, now, tolerance=0.1)
    assert (verdict.word, verdict.fails) == (word, fails)
    assert verdict.ratio == pytest.approx(now[0] / 1000)


def test_a_noisy_profile_is_judged_as_such() -> None:
    noisy = profile(sizes={"64": [1000.0, 700.0, 1300.0]})
    assert judge(noisy, 64, (850.0, 845.0, 855.0), tolerance=0.1).word == "same"


# ---- training


def test_training_takes_the_number_of_games_and_says_so() -> None:
    assert with_num_games(quick(), "quick", environ={}) == (quick(), None)
    path = keep(24)
    config, told = with_num_games(quick(), "quick", environ={})
    assert config == dataclasses.replace(quick(), selfplay=dataclasses.replace(quick().selfplay, num_games=24))
    assert told is not None
    assert "selfplay.num_games is 24" in told
    assert str(path) in told
    assert config.learn.batch_size == quick().learn.batch_size
    assert with_num_games(quick(), "standard", environ={})[1] is None  # another preset, another network
    keep(24, settings={"sets": ["model.width=8"]})
    assert "model.width=8" in str(with_num_games(quick(), "quick", environ={})[1])


def test_the_profiles_of_other_kinds_say_nothing_to_training() -> None:
    save(place("network", "tictactoe", "quick", HERE), profile(24, kind="network"), force=False)
    assert with_num_games(quick(), "quick", environ={}) == (quick(), None)


def test_whoever_gives_a_number_is_obeyed(tmp_path: Path) -> None:
    keep(24)
    file = tmp_path / "config.toml"
    file.write_text('game = "tictactoe"\n[selfplay]\nnum_games = 16\n')
    for given in (
        {"file": file, "environ": {}},
        {"environ": {"ALEA_SELFPLAY__NUM_GAMES": "16"}},
        {"assignments": ["selfplay.num_games=16"], "environ": {}},
    ):
        assert with_num_games(quick(), "quick", **given) == (quick(), None)  # type: ignore[arg-type]
    file.write_text('game = "tictactoe"\n[selfplay]\nmoves_per_rollout = 8\n')
    assert with_num_games(quick(), "quick", file, ["learn.batch_size=32"], {})[0].selfplay.num_games == 24


def test_a_number_that_does_not_fit_is_not_taken_and_the_reason_is_told() -> None:
    keep(1 << 22)
    config, told = with_num_games(quick(), "quick", environ={})
    assert config == quick()
    assert told is not None
    assert f"stays {quick().selfplay.num_games}" in told
    assert "replay.capacity_rows" in told


def test_the_presets_own_number_is_confirmed() -> None:
    keep(quick().selfplay.num_games)
    config, told = with_num_games(quick(), "quick", environ={})
    assert config == quick()
    assert "as in this machine's profile" in str(told)
