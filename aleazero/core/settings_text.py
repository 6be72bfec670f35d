"""One setting: what a field's type takes, how that is said in words, and how a value is written.

A type is bool, int, float, str or a union of these, `Literal[...]`, `tuple[X, ...]` or `dict[str, X]`; any of them may
be `| None`. The words none and null, in any case, stand for None wherever None may be given, in files too, because TOML
has no word for it. The text "none" itself is then written with quotes of its own: `name = '"none"'`.

Knows no layers and no files.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
import tomllib
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

BOOLS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
SCALARS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
NONE_WORD = re.compile(r'("*)(none|null)\1', re.IGNORECASE)  # with quotes around it, it is text
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Refused(Exception):  # noqa: N818 - a verdict on one value, turned into a line of a ConfigError
    """A type does not take a value; the message holds what more there is to say than the type's words."""


def members(hint: Any) -> tuple[list[Any], bool]:
    """The types that a hint joins, without None; and whether None is among them."""
    joined = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return [member for member in joined if member is not type(None)], type(None) in joined


def in_words(hint: Any) -> str:
    """What a type takes, to follow "it must be"; TypeError where no setting can be of this type."""
    kinds, optional = members(hint)
    if len(kinds) > 1 and not all(kind in SCALARS for kind in kinds):
        raise TypeError(f"a setting cannot be of type {hint!r}: only bool, int, float and str can be joined")
    return " or ".join(map(_kind_in_words, kinds)) + (", or none" if optional else "")


def _kind_in_words(kind: Any) -> str:
    if kind in SCALARS:
        return SCALARS[kind]
    if dataclasses.is_dataclass(kind):
        return f"a table with the keys {', '.join(field.name for field in dataclasses.fields(kind) if field.init)}"
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal and all(type(option) in SCALARS for option in parts):
        return "one of " + ", ".join(map(repr, parts))
    if origin is tuple and parts[1:] == (...,) and not dataclasses.is_dataclass(parts[0]):
        return f"a list, each entry {in_words(parts[0])}"
    if origin is dict and parts[0] is str and not dataclasses.is_dataclass(parts[1]):
        return f"a table, each entry {in_words(parts[1])}"
    raise TypeError(f"a setting cannot be of type {kind!r}")


def is_none(value: object) -> bool:
    """Whether a value stands for None where None may be given."""
    word = NONE_WORD.fullmatch(value) if isinstance(value, str) else None
    return value is None or (word is not None and not word[1])


def coerce(hint: Any, value: Any, text: bool) -> Any:
    """The value as the type has it; raises Refused where the type does not take it.

    Args:
        hint: the field's type; no dataclass.
        value: what a file holds, or a text.
        text: texts are read: "1_000" is an int. Otherwise a value must already be what the type says, but for whole
            numbers as floats, whole floats (1e6) as ints, and "inf" as a float, for which JSON has no number.
    """
    kinds, optional = members(hint)
    if optional and is_none(value):
        return None
    if optional and isinstance(value, str) and NONE_WORD.fullmatch(value):
        value = value[1:-1]
    if len(kinds) == 1:
        return _coerce_kind(kinds[0], value, text)
    # What a file holds keeps its own type; what is read is text only if it is nothing else.
    for kind in sorted(kinds, key=lambda kind: (text or kind is not type(value), kind is str, kind is float)):
        try:
            return _coerce_kind(kind, value, text)
        except Refused:
            continue
    raise Refused


def _coerce_kind(kind: Any, value: Any, text: bool) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    readable = text and isinstance(value, str)
    if kind in SCALARS:
        return _read(kind, value) if readable else _take(kind, value)
    if origin is Literal:
        return _choose(parts, value, text)
    if readable:
        value, text = _unpack(value, commas=origin is tuple)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(coerce(parts[0], entry, text) for entry in value)
    if origin is dict and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: coerce(parts[1], entry, text) for key, entry in value.items()}
    raise Refused


def _take(kind: type, value: Any) -> Any:
    """A scalar that a file holds. True is an int to Python, but not to a reader of the file."""
    if isinstance(value, bool) and kind is not bool:
        raise Refused
    if kind is float and (isinstance(value, int | float) or value in ("inf", "-inf")):
        try:
            number = float(value)
        except OverflowError:
            raise Refused("it is too large") from None
        if math.isnan(number):
            raise Refused
        return number
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, kind):
        raise Refused
    return value


def _read(kind: type, text: str) -> Any:
    """A scalar that a text stands for."""
    if kind is str:
        return text
    word = text.strip().lower()
    if kind is bool:
        if word not in BOOLS:
            raise Refused(f"written as one of {', '.join(BOOLS)}")
        return BOOLS[word]
    if kind is int:
        try:
            return int(word)
        except ValueError:
            return _take(int, _read(float, word))  # 1e6
    try:
        number = float(word)
    except ValueError:
        raise Refused from None
    if math.isinf(number) and "inf" not in word:
        raise Refused("it is too large")
    return _take(float, number)


def _choose(options: tuple[Any, ...], value: Any, text: bool) -> Any:
    for option in options:
        try:
            if _coerce_kind(type(option), value, text) == option:
                return option
        except Refused:
            continue
    near = difflib.get_close_matches(str(value), map(str, options), n=1)
    raise Refused(f"did you mean {near[0]!r}?" if near else "")


def _unpack(text: str, commas: bool) -> tuple[Any, bool]:
    """A list or table that a text stands for, and whether its entries are still texts."""
    if commas and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",")] if text.strip() else [], True
    try:
        return tomllib.loads(f"value = {text}")["value"], False
    except tomllib.TOMLDecodeError:
        example = '1,2 or ["a", "b"]' if commas else "{a = 1, b = 2}"
        raise Refused(f"written like {example}") from None


def plain(hint: Any, value: Any) -> Any:
    """A field's value as `coerce` takes it back, made of what JSON has and of infinite floats."""
    kinds, optional = members(hint)
    if optional and isinstance(value, str) and NONE_WORD.fullmatch(value):
        return f'"{value}"'
    if get_origin(kinds[0]) is tuple and value is not None:
        return [plain(get_args(kinds[0])[0], entry) for entry in value]
    if get_origin(kinds[0]) is dict and value is not None:
        return {key: plain(get_args(kinds[0])[1], entry) for key, entry in value.items()}
    return value


def toml_value(value: Any) -> str:
    """A plain value as TOML, on one line."""
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for one sign that JSON leaves alone.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{toml_key(key)} = {toml_value(entry)}' for key, entry in value.items())}}}"
    return repr(value)


def toml_key(key: str) -> str:
    """A key as TOML, quoted where it must be."""
    return key if BARE_KEY.fullmatch(key) else toml_value(key)


def read_toml(text: str) -> Any:
    """What a TOML document holds; ValueError with the line where it is none."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        last = text.count("\n") + 1
        raise ValueError(str(error).replace("at end of document", f"at line {last}, the end of the file")) from None


def read_yaml(text: str) -> Any:
    """What a YAML document holds, an empty one being an empty table; ValueError with the line where it is none."""
    import yaml  # the core itself needs JAX and NumPy alone

    # PyYAML takes 1e-3 and 1.5e3 for texts, because YAML 1.1 wants both a point and a sign.
    loader: Any = type("Loader", (yaml.SafeLoader,), {})
    number = re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$")
    loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+0123456789"))
    try:
        values = yaml.load(text, loader)
    except yaml.MarkedYAMLError as error:
        raise ValueError(f"{error.problem} (at line {error.problem_mark.line + 1})") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ValueError(f"{error.reason} (at line {line})") from None
    return {} if values is None else values
