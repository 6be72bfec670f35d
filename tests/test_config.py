"""A run's settings: presets, layers, the environment, every problem at once, what a resumed run may change."""

from __future__ import annotations

import dataclasses
import itertools
import tomllib
from importlib import resources
from pathlib import Path

import pytest

from aleazero import assemble
from aleazero.assemble import build_parts
from aleazero.assemble_ppo import build_ppo_parts
from aleazero.config import MAY_CHANGE, PRESETS, RunConfig, changes_refused, preset_layer, resolve
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.core.game import Game
from aleazero.core.schedule import Schedule
from aleazero.core.settings import Layer, build, flatten, parse_assignments, to_toml
from aleazero.games.registry import game_names, make_game
from aleazero.play.rollout import Rollout
from aleazero.play.turns import TurnRollout
from aleazero.players import NetworkPlayer
from aleazero.search.plies import Plies
from aleazero.search.reuse import Reusing

FOLDER = Path(str(resources.files("aleazero"))) / "presets"
FILES = sorted(path.stem for path in FOLDER.glob("*.toml"))
ON_THE_HOST = ("balatro",)  # not searched by trees of ours
FURTHER = {  # presets that not every game has
    "backgammon": ("alphazero", "classic"),
    "balatro": ("classic", "tuned"),
    "chess": ("demo", "taught"),
    "tictactoe": ("ppo",),
}
FAMILIES = ("gym",)  # of games by a prefix


def changed(config: RunConfig, *assignments: str) -> RunConfig:
    return build(RunConfig, [Layer("old", _tree(config)), parse_assignments(assignments)])


def _tree(config: RunConfig) -> dict[str, object]:
    return tomllib.loads(to_toml(config))


# Presets.


@pytest.mark.parametrize("name", [name for name in FILES if name != "general"])
def test_a_game_s_presets_are_known_ones_and_quick_is_among_them(name: str) -> None:
    tables = tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))
    assert "quick" in tables
    assert set(tables) - set(PRESETS) == set(FURTHER.get(name, ()))
    assert name in [*game_names(), *FAMILIES], "no game has these presets"


def test_the_general_presets_are_all_there() -> None:
    assert tuple(tomllib.loads((FOLDER / "general.toml").read_text("utf-8"))) == PRESETS


@pytest.mark.parametrize(
    ("game", "preset"),
    [
        *itertools.product([name for name in [*game_names(), "pgx:othello"] if name not in ON_THE_HOST], PRESETS),
        *((game, preset) for game, presets in FURTHER.items() for preset in presets if game not in ON_THE_HOST),
    ],
)
def test_every_preset_of_every_game_fits_the_game(game: str, preset: str) -> None:
    if game.startswith("pgx:"):
        pytest.importorskip("pgx")
    rules = make_game(game)
    assert isinstance(rules, Game)
    config = resolve(game, preset=preset, environ={})
    config.check(rules)
    assert config.game == game
    slab = config.selfplay.num_games * config.selfplay.moves_per_rollout
    assert config.total_rows > 10 * slab, "a run of a few rollouts learns nothing"
    assert config.replay.min_rows < config.replay.capacity_rows / 2, "rows that wait for the end of their game count"
    assert config.selfplay.num_games % 8 == 0, "lanes are spread over up to eight devices"
    assert build(RunConfig, [Layer("its own text", _tree(config))]) == config


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_of_an_environment_fit_it(preset: str) -> None:
    parts = build_ppo_parts(resolve("gym:CartPole-v1", preset=preset, environ={}))
    assert parts.game.spec.name == "gym:CartPole-v1"


def test_presets_of_one_game_are_larger_and_larger() -> None:
    for game in ("connect_four", "tictactoe", "pig", "quoridor", "chess"):
        rows = [resolve(game, preset=preset, environ={}).total_rows for preset in PRESETS]
        assert rows == sorted(rows)


def test_no_strong_preset_is_weaker_than_the_standard_one() -> None:
    """A game with a standard preset of its own has a strong one of its own: the general one knows no game."""
    files = sorted((Path(assemble.__file__).parent / "presets").glob("*.toml"))
    assert len(files) > 5
    for file in files:
        tables = tomllib.loads(file.read_text("utf-8"))
        assert "strong" in tables or "standard" not in tables, file.name


def test_an_unknown_preset_is_named_with_the_nearest() -> None:
    with pytest.raises(
        UnknownName, match=r"unknown preset 'quik': did you mean 'quick'\? known: ppo, quick, standard, strong"
    ):
        preset_layer("tictactoe", "quik")


def test_a_game_may_have_presets_that_others_have_not() -> None:
    assert resolve("backgammon", preset="alphazero", environ={}).search.reuse
    with pytest.raises(UnknownName, match=r"unknown preset 'alphazero': known: quick, standard, strong$"):
        preset_layer("pig", "alphazero")
    with pytest.raises(
        UnknownName, match=r"did you mean 'alphazero'\? known: alphazero, classic, quick, standard, strong$"
    ):
        preset_layer("backgammon", "alphazer")


def test_a_learning_rate_in_a_preset_or_a_file_is_all_of_it(tmp_path: Path) -> None:
    assert resolve("chess", preset="demo", environ={}).learn.learning_rate == Schedule(1e-3)
    (tmp_path / "own.toml").write_text("[learn]\nlearning_rate = { start = 5e-4 }\n")
    assert resolve("pig", file=tmp_path / "own.toml", environ={}).learn.learning_rate == Schedule(5e-4)
    preset = resolve("pig", environ={}).learn.learning_rate
    changed = resolve("pig", environ={}, assignments=["learn.learning_rate.start=5e-4"]).learn.learning_rate
    assert preset.warmup_rows > 0
    assert changed == dataclasses.replace(preset, start=5e-4)


def test_the_classic_preset_takes_turns_as_others_do() -> None:
    config = resolve("backgammon", preset="classic", environ={})
    play, learn = config.selfplay, config.learn
    assert (play.num_games, config.search.max_simulations, config.search.max_nodes) == (128, 200, 2000)
    assert (learn.batch_size, learn.learning_rate.at(10**6, 10**7)) == (1024, 3e-4)
    assert (learn.decay, learn.weight_decay) == ("l2", 1e-4)
    assert (learn.games_per_epoch, learn.steps_per_game, learn.steps_per_epoch) == (200, 10, 2000)
    assert (config.replay.surprise, config.replay.capacity_rows, config.replay.capacity_games) == (0.5, 100_000, 5_000)
    assert (config.checkpoint.every_epochs, config.checkpoint.keep_last) == (5, 5)
    parts = build_parts(config)
    temperatures = [float(parts.pace(10**9, epoch).knobs.temperature) for epoch in (0, 25, 50, 80)]
    assert [round(value, 6) for value in temperatures] == [0.8, 0.5, 0.2, 0.2]


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("selfplay.temperature_epochs=5", "epochs need learn.games_per_epoch"),
        ("checkpoint.every_epochs=5", "epochs need learn.games_per_epoch"),
        ("learn.games_per_epoch=-1", "must not be negative"),
        ("learn.games_per_epoch=3", "it must divide the updates of an epoch"),
        ("learn.games_per_epoch=8", "learning_rate.rows is 0"),
    ],
)
def test_settings_of_epochs_that_do_not_fit(assignment: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        resolve("tictactoe", preset="quick", environ={}, assignments=[assignment])


def test_alphazero_on_backgammon_is_what_it_is_elsewhere() -> None:
    """A policy and a value, 200 simulations, 21 rolls, kept subtrees in at most 2,000 nodes, 0.8 to 0.2."""
    config = resolve("backgammon", preset="alphazero", environ={})
    parts = build_parts(config)
    assert (config.model.kind, config.model.width, config.model.blocks) == ("mlp", 256, 6)
    assert isinstance(parts.rollout, Rollout)
    assert isinstance(parts.rollout.search, Reusing)
    plan = parts.rollout.search.search.plan
    assert (plan.num_nodes, plan.slabs, plan.num_outcomes, plan.stops_at_chance) == (1984, 2, 21, False)
    paces = [parts.pace(rows).knobs for rows in (0, config.total_rows // 2, config.total_rows)]
    assert [round(float(knobs.temperature), 6) for knobs in paces] == [0.8, 0.5, 0.2]
    assert {int(knobs.simulations) for knobs in paces} == {200}
    assert config.replay.surprise > 0


def test_matches_of_a_run_that_keeps_trees_start_every_search_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a match the other side moves in between; the player's settings must still fit the game."""
    players = []
    monkeypatch.setattr(assemble, "play_match", lambda game, player, other, **_: players.append(player))
    parts = build_parts(resolve("backgammon", preset="alphazero", environ={}))
    parts.play_match((), "random", None)
    (player,) = players
    assert isinstance(player, NetworkPlayer)
    assert (player.search.reuse, player.search.max_simulations) == (False, 32)
    player.search.check(parts.game.spec)


# Layers.


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text("game = 'pig'\nseed = 1\n[learn]\nbatch_size = 100\nclip = 3\n[model]\nwidth = 48\n")
    return path


def test_later_layers_lie_over_earlier_ones(file: Path) -> None:
    preset = resolve("pig", preset="quick", environ={})
    environ = {"ALEA_LEARN__BATCH_SIZE": "200", "ALEA_LEARN__CLIP": "4", "HOME": "/", "ALEA_RUNS": "x"}
    config = resolve(None, preset="quick", file=file, environ=environ, assignments=["learn.batch_size=300"])
    assert (config.game, config.seed, config.model.width) == ("pig", 1, 48)  # the file over the preset
    assert config.learn.clip == 4  # the environment over the file
    assert config.learn.batch_size == 300  # --set over everything
    assert config.search == preset.search  # what nobody touched
    assert preset.seed == 0


def test_the_process_s_own_environment_counts_unless_another_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALEA_SEED", "5")
    assert resolve("pig", preset="quick").seed == 5
    assert resolve("pig", preset="quick", environ={}).seed == 0


def test_variables_that_mean_something_else_are_no_settings() -> None:
    environ = {"ALEA_REQUIRE_ALL": "1", "ALEA_RUNS": "/x", "ALEA_DEVICE": "cpu"}
    assert resolve("pig", preset="quick", environ=environ) == resolve("pig", preset="quick", environ={})


def test_a_misspelt_variable_is_found() -> None:
    with pytest.raises(ConfigError, match=r"learn\.batchsize \(environment\): did you mean learn\.batch_size\?"):
        resolve("pig", preset="quick", environ={"ALEA_LEARN__BATCHSIZE": "3"})


def test_the_game_is_named_once(file: Path) -> None:
    assert resolve("pig", file=file, preset="quick", environ={}).game == "pig"
    with pytest.raises(ConfigError, match=r"the command names 'tictactoe', .*mine\.toml names 'pig'; which is it\?"):
        resolve("tictactoe", file=file, preset="quick", environ={})
    file.write_text("seed = 1\n")
    assert resolve("tictactoe", file=file, preset="quick", environ={}).game == "tictactoe"
    with pytest.raises(ConfigError, match="no game is named"):
        resolve(None, file=file, preset="quick", environ={})
    with pytest.raises(ConfigError, match="no game is named"):
        resolve(None, preset="quick", environ={})


# Problems.


def test_all_problems_are_said_at_once_each_with_its_place(file: Path) -> None:
    file.write_text("game = 'pig'\nseeds = 1\n[learn]\nbatch_size = 'many'\n")
    with pytest.raises(ConfigError) as caught:
        resolve(
            None,
            preset="quick",
            file=file,
            environ={"ALEA_MODEL__WIDTH": "wide"},
            assignments=["replay.surprize=1", "total_rows=1.5"],
        )
    lines = str(caught.value).splitlines()
    assert len(lines) == 5
    for start, origin in (
        ("unknown key seeds", "mine.toml"),
        ("learn.batch_size is 'many'; it must be a whole number", "mine.toml"),
        ("model.width is 'wide'", "environment"),
        ("unknown key replay.surprize", "--set"),
        ("total_rows is '1.5'", "--set"),
    ):
        assert any(line.startswith(start) and origin in line for line in lines), (start, lines)


def test_values_out_of_range_are_said_by_the_table_they_are_in() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(
            "pig",
            preset="quick",
            environ={},
            assignments=[
                *("seed=-1", "total_rows=0", "selfplay.fast_simulations=9", "search.max_nodes=99", "search.kind=puct"),
                "selfplay.full_search_fraction=0.5",
                *("learn.learning_rate.start=-1", "evaluate.games=7", "checkpoint.keep_last=0", "replay.surprise=2"),
                *("observe.every_seconds=-1", "loss.value_weight=-1", "targets.td_lambda=1.5", "model.width=0"),
            ],
        )
    lines = str(caught.value).splitlines()
    assert len(lines) == 13 - 1  # puct by itself is no problem
    starts = (
        "seed is -1",
        "total_rows is 0",
        "selfplay.fast_simulations is 9; it cannot exceed",
        "search.max_nodes is 99; it is for reuse",
    )
    tables = (
        "learn.learning_rate.start is -1",
        "evaluate.games is 7",
        "checkpoint.keep_last is 0",
        "replay.surprise is 2",
    )
    others = ("observe.every_seconds is -1", "loss.value_weight is -1", "targets.td_lambda is 1.5", "model.width is 0")
    for start in (*starts, *tables, *others):
        assert any(line.startswith(start) for line in lines), (start, lines)


def test_all_that_does_not_fit_the_game_is_said_at_once() -> None:
    config = resolve(
        "pig",
        preset="quick",
        environ={},
        assignments=[
            *("model.kind=cnn", "replay.capacity_rows=5000", "replay.min_rows=10", "total_rows=100"),
            *("selfplay.num_games=256", "selfplay.moves_per_rollout=16"),
        ],
    )
    with pytest.raises(ConfigError) as caught:
        build_parts(config)
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith(f"model.kind is 'cnn', but pig's observations are {list(_pig().spec.observation_shape)}")
    assert lines[1].startswith("replay.capacity_rows is 5000; 256 games of pig at once, each of up to 2000 plies, need")
    assert lines[2] == "total_rows is 100; one rollout alone plays 4096"


def test_a_search_that_does_not_fit_the_game_is_refused() -> None:
    config = resolve("tictactoe", preset="quick", environ={}, assignments=["search.chance=exact"])
    with pytest.raises(ConfigError, match=r"search\.chance is 'exact', but tictactoe has no chance states"):
        build_parts(config)


def test_subtrees_are_kept_within_a_rollout_and_in_the_room_there_is() -> None:
    settings = ["search.kind=puct", "search.max_simulations=16", "search.reuse=true", "selfplay.moves_per_rollout=2"]
    config = resolve("pig", preset="quick", environ={}, assignments=[*settings, "search.chance=sampled"])
    config.check(_pig())
    with pytest.raises(ConfigError, match=r"^selfplay\.moves_per_rollout is 1; search\.reuse keeps trees within a"):
        changed(config, "selfplay.moves_per_rollout=1", "targets.wait=true")
    changed(config, "search.max_nodes=64").check(_pig())
    with pytest.raises(
        ConfigError, match=r"search\.max_nodes is 63; 16 simulations of pig need 33 nodes, .* at least 64"
    ):
        changed(config, "search.max_nodes=63").check(_pig())
    changed(config, "search.max_nodes=32", "search.max_simulations=15").check(_pig())
    with pytest.raises(ConfigError) as caught:
        changed(config, "search.chance=afterstate", "search.max_nodes=16").check(_pig())
    assert str(caught.value).splitlines() == [
        "search.chance is 'afterstate', but networks for pig do not judge chance states; use 'sampled' or 'exact'",
        "search.max_nodes is 16; 16 simulations of pig need 17 nodes, and room is made for 32 at a time: at least 32",
    ]


def test_whole_turns_need_a_value_alone_and_a_game_that_has_them() -> None:
    assert resolve("backgammon", preset="quick", environ={}).search.kind == "expectimax"
    for assignments, said in (
        (["model.policy=true"], "search.kind is 'expectimax'; model.policy must be false: whole turns are chosen by"),
        (["search.kind=gumbel"], "search.kind is 'gumbel'; model.policy must be true: its moves come from it"),
        (
            ["search.kind=gumbel", "model.policy=true", "selfplay.every_roll=true"],
            "selfplay.every_roll needs search.kind 'expectimax', not 'gumbel'",
        ),
        (
            ["search.kind=gumbel", "model.policy=true", "evaluate.luck=true"],
            "evaluate.luck needs search.kind 'expectimax', not 'gumbel'",
        ),
        (["targets.td_lambda=1"], "targets.wait is false; td_lambda must then stay below 1"),
        (["selfplay.start_plies=9"], "selfplay.start_plies is 9; it is for games that begin at other starts"),
        (["selfplay.moves_per_rollout=1"], "selfplay.moves_per_rollout is 1; targets.wait must then be true"),
    ):
        with pytest.raises(ConfigError) as caught:
            resolve("backgammon", preset="quick", environ={}, assignments=assignments)
        (line,) = str(caught.value).splitlines()
        assert line.startswith(said)
    config = resolve("pig", preset="quick", environ={}, assignments=["search.kind=expectimax", "model.policy=false"])
    with pytest.raises(ConfigError, match=r"search\.kind is 'expectimax', but pig has no whole-turn plays"):
        build_parts(config)


def test_how_far_whole_turns_are_looked_at_reaches_the_rollout() -> None:
    plain, ahead = (
        build_parts(resolve("backgammon", preset="quick", environ={}, assignments=settings)).rollout
        for settings in ([], ["selfplay.every_roll=true", "selfplay.random_plies=3", "search.ply=1"])
    )
    assert isinstance(plain, TurnRollout)
    assert isinstance(ahead, TurnRollout)
    assert isinstance(plain.search, Plies)
    assert isinstance(ahead.search, Plies)
    assert (plain.look_ahead, plain.random_plies, plain.search.ply) == (None, 0, 0)
    assert ahead.look_ahead is not None
    assert (ahead.random_plies, ahead.search.ply) == (3, 1)


def test_rows_that_do_not_wait_need_little_room() -> None:
    settings = ["selfplay.num_games=8", "selfplay.moves_per_rollout=16", "replay.min_rows=1"]
    config = resolve("backgammon", preset="quick", environ={}, assignments=[*settings, "replay.capacity_rows=256"])
    game = make_game("backgammon")
    assert isinstance(game, Game)
    config.check(game)
    with pytest.raises(ConfigError, match=r"replay\.capacity_rows is 255; .* need at least 256"):
        changed(config, "replay.capacity_rows=255").check(game)
    with pytest.raises(ConfigError, match="need at least"):
        changed(config, "targets.wait=true").check(game)


def test_the_least_capacity_that_is_named_is_enough() -> None:
    config = resolve("pig", preset="quick", environ={}, assignments=["replay.min_rows=1", "replay.capacity_rows=1"])
    with pytest.raises(ConfigError) as caught:
        config.check(_pig())
    least = int(str(caught.value).split("need at least ")[1].split()[0])
    changed(config, f"replay.capacity_rows={least}").check(_pig())
    with pytest.raises(ConfigError):
        changed(config, f"replay.capacity_rows={least - 1}").check(_pig())


def _pig() -> Game:
    game = make_game("pig")
    assert isinstance(game, Game)
    return game


def test_lanes_must_divide_among_the_devices() -> None:
    import jax

    config = resolve("tictactoe", preset="quick", environ={}, assignments=["selfplay.num_games=9"])
    with pytest.raises(ConfigError, match=r"selfplay\.num_games is 9; it must be a multiple of the 2 devices"):
        build_parts(config, devices=jax.local_devices() * 2)


# Going on.


def test_a_resumed_run_may_change_only_what_does_not_make_it_another() -> None:
    old = resolve("tictactoe", preset="quick", environ={})
    assert changes_refused(old, old) == []
    allowed = ["total_rows=999999", "evaluate.games=2", "checkpoint.every_rows=5", "observe.every_seconds=1"]
    assert changes_refused(old, changed(old, *allowed)) == []
    assert changes_refused(
        old, changed(old, *allowed, "seed=1", "learn.learning_rate.start=0.5", "loss.augment=no")
    ) == [
        "seed was 0 and is now 1",
        "loss.augment was True and is now False",
        f"learn.learning_rate.start was {old.learn.learning_rate.start} and is now 0.5",
    ]
    assert changes_refused(old, dataclasses.replace(old, game="pig")) == ["game was 'tictactoe' and is now 'pig'"]


def test_what_may_change_are_settings() -> None:
    fields = {field.name for field in dataclasses.fields(RunConfig)}
    assert set(MAY_CHANGE) < fields
    assert {path.partition(".")[0] for path in flatten(resolve("pig", preset="quick", environ={}))} == fields


def test_the_small_chess_of_the_results_is_chess_as_it_is_now() -> None:
    file = Path(__file__).parent.parent / "docs" / "results" / "experiments" / "chess-small.toml"
    config = resolve("chess", file=file, assignments=["model.unseen=19-30"], environ={})
    game = make_game("chess")
    assert isinstance(game, Game)
    assert config.problems_with(game) == []
    assert (config.total_rows, config.model.width) == (200_000, 32)
