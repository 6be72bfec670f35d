"""Settings: layers become one dataclass, every mistake is a line, and what is written is read back."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Literal, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.core.errors import ConfigError
from aleazero.core.settings import (
    Layer,
    build,
    describe,
    fingerprint,
    flatten,
    from_environment,
    load_file,
    parse_assignments,
    to_dict,
    to_toml,
)


@dataclasses.dataclass(frozen=True)
class Decay:
    steps: int = 100
    shape: Literal["cosine", "linear"] = "cosine"

    def problems(self) -> list[str]:
        return [f"steps is {self.steps}; it must be at least 1"] if self.steps < 1 else []


@dataclasses.dataclass(frozen=True)
class Learn:
    batch_size: int = 256
    learning_rate: float = 1e-3
    clip: float | None = 1.0
    decay: Decay = Decay(steps=500)

    def problems(self) -> list[str]:
        found = []
        if self.batch_size < 1:
            found.append(f"batch_size is {self.batch_size}; it must be at least 1")
        if self.learning_rate <= 0:
            found.append(f"learning_rate is {self.learning_rate}; it must be positive")
        return found


@dataclasses.dataclass(frozen=True)
class Search:
    kind: Literal["puct", "gumbel"] = "gumbel"
    simulations: int = 32
    max_edges: Optional[int] = None  # noqa: UP045 - the older way to write it is read too
    exact: bool = False


@dataclasses.dataclass(frozen=True)
class Config:
    game: str = "pig"
    seed: int = 0
    hidden: tuple[int, ...] = (64, 64)
    tags: tuple[str, ...] = ()
    note: str | None = None
    opponent: str | None = "random"
    mix: dict[str, float] = dataclasses.field(default_factory=lambda: {"self": 1.0, "past": 0.5})
    options: dict[str, float | int | str] = dataclasses.field(default_factory=dict)
    level: Literal["none", "all"] | None = "all"
    scales: tuple[float | None, ...] | None = None
    learn: Learn = dataclasses.field(default_factory=Learn)
    search: Search = Search(simulations=8)
    server: Search | None = None
    rival: Search | None = Search("puct", max_edges=5)


@dataclasses.dataclass(frozen=True)
class Inner:
    size: int
    name: str = "x"
    note: str | None = None


@dataclasses.dataclass(frozen=True)
class Required:
    inner: Inner
    path: str
    limit: int | None


def from_file(**values: Any) -> Config:
    return build(Config, [Layer("config.toml", values)])


def from_text(*assignments: str) -> Config:
    return build(Config, [parse_assignments(assignments)])


def problems(*layers: Layer, cls: type = Config) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        build(cls, layers)
    return str(caught.value).split("\n")


# Layers


def test_without_layers_all_is_as_the_class_says() -> None:
    assert build(Config, []) == Config()


def test_later_layers_override_earlier_ones_key_by_key() -> None:
    config = build(
        Config,
        [
            Layer("preset quick", {"seed": 1, "learn": {"batch_size": 8, "decay": {"steps": 7}}}),
            Layer("config.toml", {"learn": {"batch_size": 16, "decay": {"shape": "linear"}}}),
            Layer("--set", {"learn": {"learning_rate": "0.5"}}, text=True),
        ],
    )
    learn = Learn(batch_size=16, learning_rate=0.5, decay=Decay(7, "linear"))
    assert config == Config(seed=1, learn=learn)


def test_the_keys_of_a_table_default_to_what_its_default_says() -> None:
    config = from_file(search={"exact": True}, learn={"decay": {"shape": "linear"}}, rival={"exact": True})
    assert config.search == Search(simulations=8, exact=True)
    assert config.learn.decay == Decay(steps=500, shape="linear")
    assert config.rival == Search("puct", max_edges=5, exact=True)


def test_a_table_that_may_be_none_comes_and_goes() -> None:
    assert from_file(server={}).server == Search()
    assert from_file(rival="none").rival is None
    assert from_text("rival=null").rival is None
    off, on = Layer("a", {"rival": None}), Layer("b", {"rival": {"simulations": 3}})
    assert build(Config, [off, on]).rival == Search(simulations=3)
    assert build(Config, [on, off]).rival is None


def test_a_file_replaces_a_dict_and_a_text_changes_one_entry() -> None:
    preset = Layer("preset", {"mix": {"past": 2, "best": 1}})
    assert from_file(mix={"best": 1}).mix == {"best": 1.0}
    assert build(Config, [preset, Layer("file", {"mix": {}})]).mix == {}
    assert from_text("mix.past=3").mix == {"self": 1.0, "past": 3.0}
    assert build(Config, [preset, parse_assignments(["mix.past=3"])]).mix == {"past": 3.0, "best": 1.0}
    assert build(Config, [preset, parse_assignments(["mix={self = 4}"])]).mix == {"self": 4.0}
    assert Config().mix == {"self": 1.0, "past": 0.5}


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Inner = Inner(3, "y", "z")


@pytest.mark.parametrize(
    ("layer", "made"),
    [
        (Layer("config.toml", {"inner": {"size": 5}}), Inner(5)),
        (Layer("config.toml", {"inner": {"size": 5, "name": "a"}}), Inner(5, "a")),
        (Layer("config.toml", {"inner": {"name": "a"}}), Inner(3, "a", "z")),
        (parse_assignments(["inner.size=5"]), Inner(5, "y", "z")),
    ],
)
def test_a_file_that_gives_what_a_table_needs_replaces_it_and_a_text_changes_one_key(layer: Layer, made: Inner) -> None:
    built = build(Outer, [layer])
    assert built == Outer(made)
    assert build(Outer, [Layer("again", tomllib.loads(to_toml(built)))]) == built


def test_what_must_be_given_is_missed_unless_it_was_refused() -> None:
    assert problems(cls=Required) == [
        "inner.size is missing; it must be a whole number",
        "path is missing; it must be text",
        "limit is missing; it must be a whole number, or none",
    ]
    assert problems(Layer("f", {"inner": {"size": "big"}, "path": 3, "limit": None}), cls=Required) == [
        "inner.size is 'big'; it must be a whole number (f)",
        "path is 3; it must be text (f)",
    ]
    given_all = Layer("f", {"inner": {"size": 3}, "path": "p", "limit": "none"})
    assert build(Required, [given_all]) == Required(Inner(3), "p", None)


# Problems


def test_every_problem_of_every_layer_is_one_line() -> None:
    lines = problems(
        Layer("preset quick", {"learn": {"bach_size": 8}, "seed": True}),
        Layer(
            "config.toml",
            {
                "batch_size": 64,
                "seed": 1,  # overrides the preset's mistake, which is still reported
                "learn": {"learning_rate": "fast", "decay": 3},
                "game": {"name": "pig"},
                "hidden": [64, 1.5],
                "search": {"kind": "gumble"},
            },
        ),
        parse_assignments(["search.exact=maybe", "learn.batch_size=0", "sede=3", "mix={a = 'x'}", "zzzzz=1"]),
    )
    assert lines == [
        "unknown key learn.bach_size (preset quick): did you mean learn.batch_size?",
        "seed is True; it must be a whole number (preset quick)",
        "unknown key batch_size (config.toml): did you mean learn.batch_size?",
        "learn.learning_rate is 'fast'; it must be a number (config.toml)",
        "learn.decay is 3; it must be a table with the keys steps, shape (config.toml)",
        "game is the table {'name': 'pig'}; it must be text (config.toml)",
        "hidden is [64, 1.5]; it must be a list, each entry a whole number (config.toml)",
        "search.kind is 'gumble'; it must be one of 'puct', 'gumbel'; did you mean 'gumbel'? (config.toml)",
        "search.exact is 'maybe'; it must be true or false; "
        "written as one of true, yes, on, 1, false, no, off, 0 (--set)",
        "unknown key sede (--set): did you mean seed?",
        "mix is \"{a = 'x'}\"; it must be a table, each entry a number (--set)",
        "unknown key zzzzz (--set): known here: game, seed, hidden, tags, note, opponent, mix, options, level, scales, "
        "learn, search, server, rival",
        "learn.batch_size is 0; it must be at least 1",
    ]


def test_tables_object_to_their_values_under_their_own_path() -> None:
    lines = problems(Layer("f", {"learn": {"batch_size": 0, "learning_rate": -1, "decay": {"steps": 0}}}))
    assert lines == [
        "learn.batch_size is 0; it must be at least 1",
        "learn.learning_rate is -1.0; it must be positive",
        "learn.decay.steps is 0; it must be at least 1",
    ]
    top = problems(Layer("f", {"batch_size": 0}), cls=Learn)
    assert top == ["batch_size is 0; it must be at least 1"]


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        ({"learn": {"seed": 1}}, "unknown key learn.seed (f): did you mean seed?"),
        ({"learn": {"sheep": 1}}, "unknown key learn.sheep (f): known here: batch_size, learning_rate, clip, decay"),
        ({"steps": 1}, "unknown key steps (f): did you mean learn.decay.steps?"),
        ({"kind": "puct"}, "unknown key kind (f): did you mean search.kind or server.kind or rival.kind?"),
        ({"lern": {"batch_size": 1, "clip": 1}}, "unknown key lern (f): did you mean learn?"),
        ({"vvvv": {"batch_size": 1}}, "unknown key vvvv.batch_size (f): did you mean learn.batch_size?"),
        ({"learn_batch_size": 1}, "unknown key learn_batch_size (f): did you mean learn.batch_size?"),
        ({"bach_size": 1}, "unknown key bach_size (f): did you mean learn.batch_size?"),
        ({"learn": {"decay": {"stops": 1}}}, "unknown key learn.decay.stops (f): did you mean learn.decay.steps?"),
        ({"learn": {"decay": {"vvvv": 1}}}, "unknown key learn.decay.vvvv (f): known here: steps, shape"),
        (
            {"vvvv": {"jjjj": 1}},
            "unknown key vvvv.jjjj (f): known at the top: game, seed, hidden, tags, note, opponent, mix, options, "
            "level, scales, learn, search, server, rival",
        ),
        ({"search": {7: 1}}, "unknown key search.7 (f): known here: kind, simulations, max_edges, exact"),
        ({"search": {"a\nb": 1}}, 'unknown key search."a\\nb" (f): known here: kind, simulations, max_edges, exact'),
    ],
)
def test_an_unknown_key_is_named_in_full_with_the_nearest(values: dict[str, Any], hint: str) -> None:
    assert problems(Layer("f", values)) == [hint]


def test_a_long_value_is_cut() -> None:
    (line,) = problems(Layer("f", {"seed": "9" * 1000}))
    assert line == f"seed is '{'9' * 56}...; it must be a whole number (f)"


# Values in files


@pytest.mark.parametrize(
    ("key", "value", "made"),
    [
        ("seed", 1e6, 1_000_000),
        ("seed", -3, -3),
        ("hidden", [1, 2e1], (1, 20)),
        ("hidden", [], ()),
        ("tags", ["none", ""], ("none", "")),
        ("note", "none", None),
        ("note", "NULL", None),
        ("note", '"none"', "none"),
        ("note", '""Null""', '"Null"'),
        ("note", '"none', '"none'),
        ("opponent", None, None),
        ("level", "none", None),
        ("level", '"none"', "none"),
        ("scales", [1, "none", math.inf], (1.0, None, math.inf)),
        ("scales", "none", None),
        ("game", "none", "none"),
        ("options", {"a": 1, "b": 1.0, "c": "inf", "d": "1"}, {"a": 1, "b": 1.0, "c": "inf", "d": "1"}),
    ],
)
def test_what_a_file_may_hold(key: str, value: Any, made: Any) -> None:
    got = getattr(from_file(**{key: value}), key)
    assert got == made
    assert repr(got) == repr(made)  # 1 is not 1.0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", True),
        ("seed", 1.5),
        ("seed", "1"),
        ("seed", "1_000"),
        ("seed", math.inf),
        ("seed", math.nan),
        ("seed", None),
        ("game", 3),
        ("game", None),
        ("game", ["a"]),
        ("hidden", 3),
        ("hidden", "1,2"),
        ("hidden", [True]),
        ("hidden", {"a": 1}),
        ("note", 3),
        ("mix", [1.0]),
        ("mix", {"a": "1"}),
        ("mix", {"a": True}),
        ("mix", {"a": math.nan}),
        ("mix", {"a": 10**400}),
        ("mix", {1: 1.0}),
        ("options", {"a": True}),
        ("options", {"a": [1]}),
        ("level", "al"),
        ("level", 1),
        ("learn", None),
        ("learn", "none"),
        ("rival", False),
    ],
)
def test_what_a_file_may_not_hold(key: str, value: Any) -> None:
    (line,) = problems(Layer("f", {key: value}))
    assert line.startswith(f"{key} is ")
    assert line.endswith("(f)")


def test_a_whole_number_for_a_float_becomes_one() -> None:
    rate = from_file(learn={"learning_rate": 2}).learn.learning_rate
    assert isinstance(rate, float)
    assert from_file(learn={"learning_rate": math.inf}).learn.learning_rate == math.inf
    assert problems(Layer("f", {"learn": {"learning_rate": math.nan}})) == [
        "learn.learning_rate is nan; it must be a number (f)"
    ]
    assert problems(Layer("f", {"search": {"exact": 1}})) == ["search.exact is 1; it must be true or false (f)"]


# Values as text


@pytest.mark.parametrize(
    ("assignment", "made"),
    [
        ("seed=1_000", 1000),
        ("seed=1e6", 1_000_000),
        ("seed=2.0", 2),
        ("seed=-7", -7),
        (f"seed={2**70 + 1}", 2**70 + 1),
        ("game=7", "7"),
        ("game=", ""),
        ("game=a=b", "a=b"),
        (" game = hex ", "hex"),
        ("hidden=1,2_0, 3e1", (1, 20, 30)),
        ("hidden=", ()),
        ("hidden=[1, 2]", (1, 2)),
        ("tags=a, b", ("a", "b")),
        ('tags=["a, b"]', ("a, b",)),
        ("note=none", None),
        ("note=Null", None),
        ('note="none"', "none"),
        ("scales=1,none,-inf", (1.0, None, -math.inf)),
        ("level=all", "all"),
        ("options={a = 1, b = 'x'}", {"a": 1, "b": "x"}),
        ("options.a=1", {"a": 1}),
        ("options.a=1.5", {"a": 1.5}),
        ("options.a=inf", {"a": math.inf}),
        ("options.a=x1", {"a": "x1"}),
    ],
)
def test_text_is_read_as_the_type_of_its_field(assignment: str, made: Any) -> None:
    got = getattr(from_text(assignment), assignment.partition("=")[0].partition(".")[0].strip())
    assert repr(got) == repr(made)


@pytest.mark.parametrize("word", ["true", "Yes", "ON", "1", " true "])
def test_words_for_true_and_false(word: str) -> None:
    falses = {"true": "false", "yes": "no", "on": "off", "1": "0"}
    assert build(Config, [Layer("t", {"search": {"exact": word}}, text=True)]).search.exact is True
    was_exact = Layer("f", {"search": {"exact": True}})
    false = Layer("t", {"search": {"exact": falses[word.strip().lower()]}}, text=True)
    assert build(Config, [was_exact, false]).search.exact is False


@pytest.mark.parametrize(
    ("assignment", "line"),
    [
        ("seed=many", "seed is 'many'; it must be a whole number (--set)"),
        ("seed=1.5", "seed is '1.5'; it must be a whole number (--set)"),
        ("seed=inf", "seed is 'inf'; it must be a whole number (--set)"),
        ("seed=none", "seed is 'none'; it must be a whole number (--set)"),
        ("seed=true", "seed is 'true'; it must be a whole number (--set)"),
        ("learn.clip=nan", "learn.clip is 'nan'; it must be a number, or none (--set)"),
        ("learn.clip=1e999", "learn.clip is '1e999'; it must be a number, or none; it is too large (--set)"),
        ("hidden=1,,2", "hidden is '1,,2'; it must be a list, each entry a whole number (--set)"),
        (
            "tags=[a, b]",
            'tags is \'[a, b]\'; it must be a list, each entry text; written like 1,2 or ["a", "b"] (--set)',
        ),
        ("mix=3", "mix is '3'; it must be a table, each entry a number (--set)"),
        ("mix=a", "mix is 'a'; it must be a table, each entry a number; written like {a = 1, b = 2} (--set)"),
        ("mix.a.b=1", "mix is the table {'a': {'b': '1'}}; it must be a table, each entry a number (--set)"),
        ("seed.x=1", "seed is the table {'x': '1'}; it must be a whole number (--set)"),
        ("learn=3", "learn is '3'; it must be a table with the keys batch_size, learning_rate, clip, decay (--set)"),
    ],
)
def test_text_that_the_type_does_not_take(assignment: str, line: str) -> None:
    assert problems(parse_assignments([assignment])) == [line]


# Sources


def test_assignments_make_one_layer_in_which_the_last_one_holds() -> None:
    layer = parse_assignments(["a.b=1", "a.c=x = y", "d=2", "d=3"])
    assert layer == Layer("--set", {"a": {"b": "1", "c": "x = y"}, "d": "3"}, text=True)


def test_all_that_are_no_assignments_are_named_at_once() -> None:
    wrong = ["novalue", "=3", "a..b=1", ".a=1"]
    with pytest.raises(ConfigError) as caught:
        parse_assignments(["a=1", *wrong, "a.b=2"], origin="--opt")
    assert str(caught.value).split("\n") == [
        *(f"{text!r} is no assignment; it must be like learn.batch_size=64 (--opt)" for text in wrong),
        "'a.b=2' makes one key both a table and a setting (--opt)",
    ]
    with pytest.raises(ConfigError, match="'a=1' makes one key both a table and a setting"):
        parse_assignments(["a.b=2", "a=1"])


def test_the_environment_is_a_layer() -> None:
    environ = {
        "ALEA_LEARN__BATCH_SIZE": "64",
        "alea_Learn__Decay__Steps": "7",
        "ALEA_HIDDEN": "1,2",
        "ALEA_REQUIRE_ALL": "1",
        "ALEA_CACHE": "/tmp",
        "ALEA_": "x",
        "HOME": "/root",
        "LEARN__BATCH_SIZE": "3",
    }
    layer = from_environment(Config, environ)
    assert layer.origin == "environment"
    assert layer.values == {"learn": {"batch_size": "64", "decay": {"steps": "7"}}, "hidden": "1,2"}
    assert build(Config, [layer]) == Config(hidden=(1, 2), learn=Learn(batch_size=64, decay=Decay(7)))
    assert from_environment(Config, {"MY_SEED": "3", "ALEA_SEED": "4"}, prefix="MY_").values == {"seed": "3"}


def test_variables_that_look_like_settings_are_reported_with_the_other_problems() -> None:
    environ = {
        "ALEA_BATCH_SIZE": "1",
        "ALEA_HIDEN": "1",
        "ALEA_LEARN__BACH_SIZE": "1",
        "ALEA_LEARN__CLIP": "tight",
        "ALEA_LERN__CLIP": "1",
        "ALEA_SEARCH_KIND": "puct",
        "ALEA_TAG": "1",
        "alea_zz__yy": "1",
    }
    assert problems(from_environment(Config, environ, ignore=["alea_tag", "ALEA_ZZ__YY"])) == [
        "unknown key batch_size (environment): did you mean learn.batch_size?",
        "unknown key hiden (environment): did you mean hidden?",
        "unknown key learn.bach_size (environment): did you mean learn.batch_size?",
        "learn.clip is 'tight'; it must be a number, or none (environment)",
        "unknown key lern (environment): did you mean learn?",
        "unknown key search_kind (environment): did you mean search.kind?",
    ]
    assert len(problems(from_environment(Config, environ))) == 8


def test_a_variable_cannot_be_a_table_and_a_setting() -> None:
    with pytest.raises(ConfigError) as caught:
        from_environment(Config, {"ALEA_LEARN": "1", "ALEA_LEARN__CLIP": "1"})
    assert str(caught.value) == "ALEA_LEARN__CLIP makes one key both a table and a setting (environment)"


def test_a_toml_file_is_a_layer(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b'\xef\xbb\xbfseed = 1e6\r\n[learn]\r\nclip = "none"\r\n')  # as some editors save it
    layer = load_file(path)
    assert layer == Layer(str(path), {"seed": 1e6, "learn": {"clip": "none"}})
    assert build(Config, [layer]) == Config(seed=1_000_000, learn=Learn(clip=None))
    assert load_file(str(path)) == layer


@pytest.mark.parametrize("suffix", [".yaml", ".YML"])
def test_a_yaml_file_is_a_layer(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"config{suffix}"
    path.write_text(
        "seed: 1e3\nnote: ~\nopponent: none\nlearn:\n  learning_rate: 1e-4\n  clip: 2.5e1\nhidden: [1, 2]\n"
    )
    config = build(Config, [load_file(path)])
    assert config == Config(seed=1000, opponent=None, hidden=(1, 2), learn=Learn(learning_rate=1e-4, clip=25.0))
    path.write_text("# nothing\n")
    assert load_file(path).values == {}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.toml", b"seed = 1\nlearn = [\n", "Invalid value (at line 3, the end of the file)"),
        ("c.toml", b"seed = 1\nseed = 2\n", "Cannot overwrite a value (at line 2, column 9)"),
        ("c.toml", b"a = '\xff'\n", "byte 5 is not UTF-8; save the file as UTF-8 text"),
        ("c.yaml", b"seed: 1\nlearn: [\n", "expected the node content, but found '<stream end>' (at line 3)"),
        ("c.yaml", b"seed: 1\nlearn: \x00\n", "special characters are not allowed (at line 2)"),
        ("c.yaml", b"seed: 1\n? {}\n: 1\n", "found unhashable key (at line 2)"),
        ("c.yaml", b"day: 2024-99-99\n", "month must be in 1..12"),
        ("c.yaml", b"- seed\n", "the file holds list; it must hold a table of settings"),
        ("c.yml", b"seed\n", "the file holds str; it must hold a table of settings"),
        ("c.ini", b"seed = 1\n", "the suffix is '.ini'; a config file is one of .toml, .yaml, .yml"),
        ("toml", b"seed = 1\n", "the suffix is ''; a config file is one of .toml, .yaml, .yml"),
    ],
)
def test_a_file_that_is_no_config_is_named_with_the_reason(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_file(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_file(tmp_path / "none.toml")
    assert str(caught.value) == f"{tmp_path / 'none.toml'}: there is no such file"
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(ConfigError) as caught:
        load_file(tmp_path / "folder.toml")
    assert str(caught.value) == f"{tmp_path / 'folder.toml'}: cannot be read: Is a directory"


# Views

numbers = st.floats(allow_nan=False)
finite = st.floats(allow_nan=False, allow_infinity=False)
# Words that stand for None, bare and quoted, are where a text could be lost.
texts = st.one_of(st.text(), st.sampled_from(["none", '"none"', '""null""', "NULL", "inf", "true", "a\x7f\r\n\\\"'"]))
searches = st.builds(
    Search, st.sampled_from(["puct", "gumbel"]), st.integers(), st.none() | st.integers(), st.booleans()
)
learns = st.builds(
    Learn,
    st.integers(1),
    st.floats(min_value=0, exclude_min=True),
    st.none() | numbers,
    st.builds(Decay, st.integers(1), st.sampled_from(["cosine", "linear"])),
)


def configs(option_numbers: st.SearchStrategy[float] = numbers) -> st.SearchStrategy[Config]:
    return st.builds(
        Config,
        game=texts,
        seed=st.integers(),
        hidden=st.lists(st.integers()).map(tuple),
        tags=st.lists(texts).map(tuple),
        note=st.none() | texts,
        opponent=st.none() | texts,
        mix=st.dictionaries(texts, numbers),
        options=st.dictionaries(texts, st.one_of(option_numbers, st.integers(), texts)),
        level=st.sampled_from(["none", "all", None]),
        scales=st.none() | st.lists(st.none() | numbers).map(tuple),
        learn=learns,
        search=searches,
        server=st.none() | searches,
        rival=st.none() | searches,
    )


@settings(deadline=None)
@given(configs())
def test_toml_is_read_back_as_the_same_settings(config: Config) -> None:
    text = to_toml(config)
    again = build(Config, [Layer("x", tomllib.loads(text))])
    assert again == config
    assert to_toml(again) == text
    assert fingerprint(again) == fingerprint(config)


@settings(deadline=None)
@given(configs(option_numbers=finite))
def test_strict_json_is_read_back_as_the_same_settings(config: Config) -> None:
    text = json.dumps(to_dict(config), allow_nan=False)
    assert build(Config, [Layer("x", json.loads(text))]) == config


@settings(deadline=None)
@given(configs(), configs())
def test_fingerprints_are_equal_exactly_where_settings_are(one: Config, other: Config) -> None:
    assert (fingerprint(one) == fingerprint(other)) == (one == other)
    backwards = {name: value for name, value in reversed(to_dict(one).items()) if name != "options"}
    again = dataclasses.replace(build(Config, [Layer("x", backwards)]), options=dict(reversed(one.options.items())))
    assert fingerprint(again) == fingerprint(one)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Config(options={"a": 1}), Config(options={"a": 1.0}), True),
        (Config(options={"a": 1}), Config(options={"a": "1"}), False),
        (Config(options={"a": math.inf}), Config(options={"a": "inf"}), False),
        (Config(mix={"a": 0.0}), Config(mix={"a": -0.0}), True),
        (Config(learn=Learn(learning_rate=1)), Config(learn=Learn(learning_rate=1.0)), True),
        (Config(seed=2**53), Config(seed=2**53 + 1), False),
        (Config(note=None), Config(note="none"), False),
        (Config(note="none"), Config(note='"none"'), False),
        (Config(mix={"a": 1, "b": 2}), Config(mix={"b": 2, "a": 1}), True),
        (Config(hidden=(1, 2)), Config(hidden=(2, 1)), False),
        (Config(server=Search()), Config(server=None), False),
    ],
)
def test_a_fingerprint_sees_what_equality_sees(one: Config, other: Config, same: bool) -> None:
    assert (one == other) is same
    assert (fingerprint(one) == fingerprint(other)) is same


def test_a_fingerprint_stays_the_same_from_process_to_process() -> None:
    code = "from tests.core.test_settings import *; print(fingerprint(Config(mix={'b': 1, 'a': 2})))"
    root = Path(__file__).parents[2]
    environ = {**os.environ, "PYTHONHASHSEED": "7"}
    there = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environ, capture_output=True, text=True, check=True
    )
    here = fingerprint(Config(mix={"a": 2, "b": 1}))
    assert there.stdout.strip() == here
    assert len(here) == 16
    assert set(here) <= set("0123456789abcdef")


def test_toml_as_people_read_it() -> None:
    config = Config(
        note="none",
        opponent=None,
        tags=('say "hi"',),
        mix={"a b": 1e20},
        learn=Learn(clip=None, learning_rate=math.inf),
        rival=None,
    )
    expected = r"""
game = "pig"
seed = 0
hidden = [64, 64]
tags = ["say \"hi\""]
note = "\"none\""
opponent = "none"
mix = {"a b" = 1e+20}
options = {}
level = "all"
rival = "none"

[learn]
batch_size = 256
learning_rate = inf
clip = "none"

[learn.decay]
steps = 500
shape = "cosine"

[search]
kind = "gumbel"
simulations = 8
exact = false
"""
    assert to_toml(config) == expected.lstrip("\n")
    assert to_toml(Required(Inner(1), "p", None)).startswith('path = "p"\nlimit = "none"\n')
    assert to_toml(Config(server=Search())).count("[server]") == 1


def test_a_dict_holds_what_json_has() -> None:
    plain = to_dict(Config(note="null", mix={"a": math.inf, "b": -math.inf}, scales=(None, 1.0)))
    assert plain["note"] == '"null"'
    assert plain["mix"] == {"a": "inf", "b": "-inf"}
    assert plain["scales"] == [None, 1.0]
    assert plain["hidden"] == [64, 64]
    assert plain["server"] is None
    assert plain["learn"]["decay"] == {"steps": 500, "shape": "cosine"}
    assert list(plain) == [field.name for field in dataclasses.fields(Config)]


def test_flat_settings_have_dotted_paths() -> None:
    flat = flatten(Config(rival=None, learn=Learn(clip=None)))
    assert list(flat) == [
        *("game", "seed", "hidden", "tags", "note", "opponent", "mix", "options", "level", "scales"),
        *("learn.batch_size", "learn.learning_rate", "learn.clip", "learn.decay.steps", "learn.decay.shape"),
        *("search.kind", "search.simulations", "search.max_edges", "search.exact", "server", "rival"),
    ]
    assert flat["hidden"] == (64, 64)
    assert flat["mix"] == {"self": 1.0, "past": 0.5}
    assert (flat["learn.clip"], flat["learn.decay.steps"], flat["rival"]) == (None, 500, None)


def test_every_setting_is_described() -> None:
    rows = {path: (words, default) for path, words, default in describe(Config)}
    assert len(rows) == len(describe(Config)) == 28
    assert rows["hidden"] == ("a list, each entry a whole number", (64, 64))
    assert rows["options"] == ("a table, each entry a number or a whole number or text", {})
    assert rows["level"] == ("one of 'none', 'all', or none", "all")
    assert rows["search.simulations"] == ("a whole number", 8)
    assert rows["search.max_edges"] == ("a whole number, or none", None)
    assert rows["learn.decay.steps"] == ("a whole number", 500)
    assert rows["rival.kind"] == ("one of 'puct', 'gumbel'", "puct")
    assert rows["server"] == ("a table with the keys kind, simulations, max_edges, exact, or none", None)
    assert rows["server.simulations"] == ("a whole number", 32)
    assert "learn" not in rows
    assert [tuple(row) for row in describe(Required)] == [
        ("inner.size", "a whole number", dataclasses.MISSING),
        ("inner.name", "text", "x"),
        ("inner.note", "text, or none", None),
        ("path", "text", dataclasses.MISSING),
        ("limit", "a whole number, or none", dataclasses.MISSING),
    ]


@pytest.mark.parametrize(
    "hint", [list[int], tuple[int, int], dict[int, str], int | tuple[int, ...], tuple[Decay, ...], Any]
)
def test_a_type_that_no_setting_can_have_is_refused_at_once(hint: Any) -> None:
    cls = dataclasses.make_dataclass("Odd", [("x", hint, None)], frozen=True)
    with pytest.raises(TypeError, match="a setting cannot be of type"):
        build(cls, [])


def test_a_field_that_the_class_works_out_itself_is_no_setting() -> None:
    assert build(Derived, [Layer("f", {"width": 3})]).area == 9
    assert problems(Layer("f", {"area": 3}), cls=Derived) == ["unknown key area (f): known here: width"]
    assert to_dict(Derived(2)) == {"width": 2}
    assert tomllib.loads(to_toml(Derived(2))) == {"width": 2}


@dataclasses.dataclass(frozen=True)
class Derived:
    width: int = 1
    area: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "area", self.width**2)
