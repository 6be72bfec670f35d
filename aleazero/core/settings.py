"""Settings: presets, files, the environment and the command line, as layers that become one frozen dataclass.

A field whose type is a dataclass is a table; the others are settings (their types: `aleazero.core.settings_text`).
`build` lays layers over the defaults and over one another, key by key. Where a table has a default, the defaults of
its keys are that instance's. A dict is one setting: a file's replaces it whole, a text such as `mix.a=2` changes one
entry. So is a table whose class has keys without a default (a schedule's `start`), where a file gives them: what it
leaves out is as the class says. At last every table is asked for its `problems()`, messages that begin with the name of
one of its fields.

Knows no particular config: only what the fields of a class say.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

from aleazero.core.errors import ConfigError
from aleazero.core.settings_text import (
    Refused,
    coerce,
    in_words,
    is_none,
    members,
    plain,
    read_toml,
    read_yaml,
    toml_key,
    toml_value,
)

T = TypeVar("T")
SHOWN = 60  # signs of a refused value that a message repeats
ELSEWHERE = 0.75  # how like an unknown key one of another table must be, of 1


@dataclasses.dataclass(frozen=True)
class Layer:
    """Nested values and where they came from."""

    origin: str  # for messages: "preset quick", "config.toml", "--set"
    values: Mapping[str, Any]
    text: bool = False  # values are texts, to be read as the types of their fields


class Setting(NamedTuple):
    """One setting of a class, for documents and help."""

    path: str
    words: str  # what it takes
    default: Any  # dataclasses.MISSING where it must be given


def build(cls: type[T], layers: Sequence[Layer]) -> T:
    """The settings that the layers give, later ones over earlier ones; one ConfigError with a line for each problem."""
    problems: list[str] = []
    tree = _tree(cls)
    for layer in layers:
        _Reader(cls, layer, problems).lay(cls, tree, layer.values, "")
    missing: list[str] = []
    built = _assemble(cls, tree, "", missing)  # a refused value left the one before it in its place
    problems += missing or _objections(built, "")
    _raise_all(problems)
    return built  # type: ignore[no-any-return]


def _raise_all(problems: list[str]) -> None:
    if problems:
        raise ConfigError("\n".join(problems))


@functools.cache
def _fields(cls: type) -> dict[str, Any]:
    """The types of a class's settings and tables by name, each of a kind that is known here."""
    hints = get_type_hints(cls)
    found = {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}
    for hint in found.values():
        in_words(hint)
    return found


def _table(hint: Any) -> type | None:
    """The dataclass of a table; None where the type is a setting's."""
    kind: type = members(hint)[0][0]
    return kind if dataclasses.is_dataclass(kind) else None


def _entries(instance: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name, type and value of every setting and table of an instance."""
    cls: type = type(instance)
    for name, hint in _fields(cls).items():
        yield name, hint, getattr(instance, name)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


@functools.cache
def _paths(cls: type, path: str = "") -> list[str]:
    """Every table and setting of a class."""
    found = []
    for name, hint in _fields(cls).items():
        found.append(_join(path, name))
        if table := _table(hint):
            found += _paths(table, _join(path, name))
    return found


def _tree(cls: type, instance: Any = None) -> dict[str, Any]:
    """An instance as nested dicts; without one, the defaults, and nothing where there is none."""
    tree = {}
    for field in dataclasses.fields(cls):
        hint = _fields(cls).get(field.name)
        if hint is None:
            continue
        if instance is not None:
            value = getattr(instance, field.name)
        else:
            value = field.default_factory() if callable(field.default_factory) else field.default
        table = _table(hint)
        if table and value is not None:
            tree[field.name] = _tree(table, None if value is dataclasses.MISSING else value)
        elif value is not dataclasses.MISSING:
            tree[field.name] = value
    return tree


@functools.cache
def _needed(cls: type) -> set[str]:
    """The keys of a class that have no default."""
    return _fields(cls).keys() - _tree(cls).keys()


def _nearest(root: type, siblings: Mapping[str, Any], path: str, key: str, cutoff: float = 0.6) -> list[str]:
    """What an unknown key was probably meant to be: that very key in other tables, or else a key nearly like it."""
    names = {known: known.rpartition(".")[2] for known in _paths(root)}
    # Someone may also have written underscores for dots: learn_batch_size.
    if same := [known for known, name in names.items() if key in (name, known.replace(".", "_"))]:
        return same
    if near := difflib.get_close_matches(key, siblings, n=1, cutoff=cutoff):
        return [_join(path, near[0])]
    # Elsewhere it must be nearer: a word of another table is seldom what was meant.
    near = difflib.get_close_matches(key, names.values(), n=1, cutoff=max(cutoff, ELSEWHERE))
    return [known for known, name in names.items() if name in near]


@dataclasses.dataclass(frozen=True)
class _Reader:
    """Lays one layer over a tree."""

    root: type
    layer: Layer
    problems: list[str]

    def lay(self, cls: type, tree: dict[str, Any], values: Mapping[Any, Any], path: str) -> None:
        fields = _fields(cls)
        for key, value in values.items():
            if key not in fields:
                self.unknown(fields, path, str(key), value)
                continue
            here, hint, table = _join(path, key), fields[key], _table(fields[key])
            if table is None:
                self.set(tree, key, hint, value, here)
            elif isinstance(value, Mapping):
                if tree.get(key) is None or (not self.layer.text and _needed(table) and _needed(table) <= value.keys()):
                    tree[key] = _tree(table)
                self.lay(table, tree[key], value, here)
            elif members(hint)[1] and is_none(value):
                tree[key] = None
            else:
                self.refuse(hint, value, here)

    def set(self, tree: dict[str, Any], key: str, hint: Any, value: Any, here: str) -> None:
        try:
            made = coerce(hint, value, self.layer.text)
        except Refused as refused:
            tree.setdefault(key, None)  # it was given: no second line to say that it is missing
            self.refuse(hint, value, here, str(refused))
            return
        one_entry = self.layer.text and isinstance(value, Mapping)
        tree[key] = {**(tree.get(key) or {}), **made} if one_entry else made

    def refuse(self, hint: Any, value: Any, here: str, more: str = "") -> None:
        shown = repr(dict(value) if isinstance(value, Mapping) else value)
        shown = shown if len(shown) <= SHOWN else shown[: SHOWN - 3] + "..."
        what = f"the table {shown}" if isinstance(value, Mapping) else shown
        wanted = f"{in_words(hint)}; {more}" if more else in_words(hint)
        self.problems.append(f"{here} is {what}; it must be {wanted} ({self.layer.origin})")

    def unknown(self, siblings: Mapping[str, Any], path: str, key: str, value: Any) -> None:
        """An unknown table that is like no other is reported key by key: those may be known elsewhere."""
        here = _join(path, toml_key(key))
        near = _nearest(self.root, siblings, path, key)
        if not near and isinstance(value, Mapping) and value:
            for inner, entry in value.items():
                self.unknown({}, here, str(inner), entry)
            return
        known = ", ".join(siblings or _fields(self.root))
        where = "here" if siblings else "at the top"
        hint = f"did you mean {' or '.join(near)}?" if near else f"known {where}: {known}"
        self.problems.append(f"unknown key {here} ({self.layer.origin}): {hint}")


def _assemble(cls: type, tree: dict[str, Any], path: str, problems: list[str]) -> Any:
    """The instance that a tree holds; None, and a problem for each, where settings are missing."""
    values = {}
    for name, hint in _fields(cls).items():
        here, table = _join(path, name), _table(hint)
        if name not in tree:
            problems.append(f"{here} is missing; it must be {in_words(hint)}")
        elif table and tree[name] is not None:
            values[name] = _assemble(table, tree[name], here, problems)
        else:
            values[name] = tree[name]
    return None if problems else cls(**values)


def _objections(instance: Any, path: str) -> list[str]:
    """What a table and those inside it say against their own values."""
    own = getattr(instance, "problems", None)
    found = [_join(path, message) for message in own()] if callable(own) else []
    for name, _, value in _entries(instance):
        if dataclasses.is_dataclass(value):
            found += _objections(value, _join(path, name))
    return found


def load_file(path: str | Path) -> Layer:
    """The layer that a TOML file (or .yaml, .yml) holds; ConfigError naming the file where it cannot be read."""
    path = Path(path)
    readers = {".toml": read_toml, ".yaml": read_yaml, ".yml": read_yaml}
    if path.suffix.lower() not in readers:
        raise ConfigError(f"{path}: the suffix is {path.suffix!r}; a config file is one of {', '.join(readers)}")
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8 text") from error
    try:
        values = readers[path.suffix.lower()](text)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error
    if not isinstance(values, Mapping):
        raise ConfigError(f"{path}: the file holds {type(values).__name__}; it must hold a table of settings")
    return Layer(str(path), values)


def parse_assignments(assignments: Iterable[str], origin: str = "--set") -> Layer:
    """The layer that texts such as `learn.batch_size=64` give; of two for one key the later holds.

    Spaces around the key and the value do not count. Raises one ConfigError for all that are no assignments.
    """
    values: dict[str, Any] = {}
    problems = []
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        parts = [part.strip() for part in name.split(".")]
        if not equals or not all(parts):
            problems.append(f"{assignment!r} is no assignment; it must be like learn.batch_size=64 ({origin})")
        elif not _place(values, parts, text.strip()):
            problems.append(f"{assignment!r} makes one key both a table and a setting ({origin})")
    _raise_all(problems)
    return Layer(origin, values, text=True)


def from_environment(
    cls: type, environ: Mapping[str, str], prefix: str = "ALEA_", ignore: Collection[str] = ()
) -> Layer:
    """The layer that environment variables give: ALEA_LEARN__BATCH_SIZE is learn.batch_size, in any case of letters.

    A variable whose first part is no key of `cls` is kept, for `build` to report among the other problems, if it looks
    like a setting: if it has a double underscore, or is nearly a key. Any other is not ours, and is passed over.

    Args:
        cls: the class that the layer is for; its keys are lower case.
        environ: variables by name.
        prefix: what ours begin with.
        ignore: variables with the prefix that are no settings, even if they look like one.
    """
    values: dict[str, Any] = {}
    problems = []
    ignored = {name.upper() for name in ignore}
    for variable, text in sorted(environ.items()):
        if not variable.upper().startswith(prefix.upper()) or variable.upper() in ignored:
            continue
        parts = variable[len(prefix) :].lower().split("__")
        known = _fields(cls)
        ours = parts[0] in known or len(parts) > 1 or _nearest(cls, known, "", parts[0], cutoff=0.8)
        if ours and not _place(values, parts, text):
            problems.append(f"{variable} makes one key both a table and a setting (environment)")
    _raise_all(problems)
    return Layer("environment", values, text=True)


def _place(tree: dict[str, Any], parts: list[str], text: str) -> bool:
    """Puts a text at a path; False if a table is there already, or if the path leads through a text."""
    *tables, last = parts
    here: Any = tree
    for part in tables:
        here = here.setdefault(part, {})
        if isinstance(here, str):
            return False
    if isinstance(here.get(last), dict):
        return False
    here[last] = text
    return True


def to_toml(instance: Any) -> str:
    """All settings as TOML, from which `build` makes an equal instance; a None that is the default is left out."""
    return "\n".join(_toml_lines(instance, _tree(type(instance)), "")).lstrip("\n") + "\n"


def _toml_lines(instance: Any, defaults: dict[str, Any], path: str) -> Iterator[str]:
    tables = []
    for name, hint, value in _entries(instance):
        if dataclasses.is_dataclass(value):
            tables.append((name, value))
        elif value is not None or defaults.get(name, dataclasses.MISSING) is not None:
            yield f"{toml_key(name)} = {toml_value(plain(hint, value))}"
    # In TOML whatever follows a table's head belongs to it, so tables come last.
    for name, table in tables:
        here = _join(path, toml_key(name))
        kind: type = type(table)
        yield from ("", f"[{here}]")
        anew = _needed(kind) or defaults[name] is None
        yield from _toml_lines(table, _tree(kind) if anew else defaults[name], here)


def to_dict(instance: Any) -> dict[str, Any]:
    """All settings as nested dicts of what strict JSON has, from which `build` makes an equal instance.

    Infinite floats are texts: "inf". So an infinity in a setting that may be a text as well comes back as a text.
    """
    return {name: _map_leaves(value, _as_json) for name, value in _plain(instance).items()}


def _as_json(leaf: Any) -> Any:
    return str(leaf) if isinstance(leaf, float) and not math.isfinite(leaf) else leaf


def fingerprint(instance: Any) -> str:
    """Sixteen hexadecimal digits: the same for equal settings, others for any others."""
    canonical = json.dumps(_map_leaves(_plain(instance), _as_number), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _as_number(leaf: Any) -> Any:
    """Numbers that are equal to Python (1, 1.0, True; 0.0, -0.0) are written alike."""
    whole = isinstance(leaf, int) or (isinstance(leaf, float) and leaf.is_integer())
    return int(leaf) if whole else leaf


def _plain(instance: Any) -> dict[str, Any]:
    return {
        name: _plain(value) if dataclasses.is_dataclass(value) else plain(hint, value)
        for name, hint, value in _entries(instance)
    }


def _map_leaves(tree: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(tree, dict):
        return {key: _map_leaves(entry, function) for key, entry in tree.items()}
    if isinstance(tree, list):
        return [_map_leaves(entry, function) for entry in tree]
    return function(tree)


def flatten(instance: Any) -> dict[str, Any]:
    """Every setting's value by dotted path; a table that is None by its own path."""
    found: dict[str, Any] = {}
    for name, _, value in _entries(instance):
        if dataclasses.is_dataclass(value):
            found |= {_join(name, path): inner for path, inner in flatten(value).items()}
        else:
            found[name] = value
    return found


def describe(cls: type) -> list[Setting]:
    """Every setting of a class, in order; a table itself is listed only where it is None by default."""
    return list(_describe(cls, _tree(cls), ""))


def _describe(cls: type, defaults: dict[str, Any], path: str) -> Iterator[Setting]:
    for name, hint in _fields(cls).items():
        here, default, table = _join(path, name), defaults.get(name, dataclasses.MISSING), _table(hint)
        if table is None or default is None:
            yield Setting(here, in_words(hint), default)
        if table:
            yield from _describe(table, default or _tree(table), here)
