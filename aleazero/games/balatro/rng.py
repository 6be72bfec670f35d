"""How a seed becomes numbers: the game's hash, one stream a key, LuaJIT's generator. Exact to the last bit.

A stream remembers one number. A use moves it on and seeds the generator anew with it; what is drawn after that comes
from the generator (a shuffle draws many times, a pick once). Streams live in the game's record, and those of antes
that cannot come back are forgotten.
Knows keys and numbers, nothing of cards.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aleazero.core.errors import ConfigError
from aleazero.games.balatro import keys
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import ERR_STREAMS, STREAMS

ALPHABET = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MAX_NAME = 48
_SPLIT = 134217729.0  # 2^27 + 1: cuts a double in halves whose products are exact
_TEN13 = 1e13
_ANTES_BACK = 2  # two vouchers lead back one ante each

Words = tuple[Any, Any, Any, Any]

_U = np.uint64
_MASKS = (_U(2**64 - 2), _U(2**64 - 2**6), _U(2**64 - 2**9), _U(2**64 - 2**17))
_M0, _M1, _M2, _M3 = _MASKS
_Q31, _Q19, _Q24, _Q21 = _U(31), _U(19), _U(24), _U(21)
_R45, _R30, _R48, _R39 = _U(63 - 18), _U(58 - 28), _U(55 - 7), _U(47 - 8)
_S18, _S28, _S7, _S8 = _U(18), _U(28), _U(7), _U(8)
_B1, _B6, _B9, _B17 = _U(2**1), _U(2**6), _U(2**9), _U(2**17)
_MANTISSA = _U(2**52 - 1)


def check_seed(seed: str) -> str:
    """The seed as the game reads it: upper case, a typed 0 is an O. Others are rejected with the alphabet."""
    if not isinstance(seed, str):
        raise ConfigError(f"seed {seed!r} is no text: a seed is 1 to 8 characters of {ALPHABET} (0 is read as O)")
    text = seed.strip().upper().replace("0", "O")
    wrong = sorted({letter for letter in text if letter not in ALPHABET})
    if wrong or not 1 <= len(text) <= 8:
        why = f"has {', '.join(map(repr, wrong))}" if wrong else f"has {len(text)} characters"
        raise ConfigError(f"seed {seed!r} {why}: a seed is 1 to 8 characters of {ALPHABET} (0 is read as O)")
    return text


@jit
def hash_bytes(text: Any, length: int) -> float:
    """The game's hash of a text, in [0, 1); NaN where an intermediate is exactly zero, as in the game."""
    number = 1.0
    for i in range(length, 0, -1):
        if number == 0.0:
            return math.nan
        value = (1.1239285023 / number) * float(text[i - 1]) * math.pi + math.pi * i
        number = value - math.floor(value)
    return number


@jit
def round13(x: float) -> float:
    """Rounds to 13 decimals as printing and reading back does."""
    product = x * _TEN13
    a = _SPLIT * x
    high = a - (a - x)
    low = x - high
    b = _SPLIT * _TEN13
    ten_high = b - (b - _TEN13)
    ten_low = _TEN13 - ten_high
    error = low * ten_low - (((product - high * ten_high) - low * ten_high) - high * ten_low)
    whole = float(np.floor(product))
    if (product - whole - 0.5) + error > 0.0:
        whole += 1.0
    return whole / _TEN13


@jit
def advance(x: float) -> float:
    """A stream's next number."""
    if math.isnan(x):
        return x
    value = 2.134453429141 + x * 1.72431234
    return round13(value - math.floor(value))


@jit
def step(words: Words) -> Words:
    """One step of the generator."""
    a, b, c, d = words
    a = (((a << _Q31) ^ a) >> _R45) ^ ((a & _M0) << _S18)
    b = (((b << _Q19) ^ b) >> _R30) ^ ((b & _M1) << _S28)
    c = (((c << _Q24) ^ c) >> _R48) ^ ((c & _M2) << _S7)
    d = (((d << _Q21) ^ d) >> _R39) ^ ((d & _M3) << _S8)
    return a, b, c, d


@jit
def _word(d: float, least: Any) -> Any:
    word = np.float64(d).view(np.uint64)
    if word < least:
        word = word + least
    return word


@jit
def seeded(seed: float) -> Words:
    """The generator, ready to draw."""
    d0 = seed * math.pi + math.e
    d1 = d0 * math.pi + math.e
    d2 = d1 * math.pi + math.e
    d3 = d2 * math.pi + math.e
    words = (_word(d0, _B1), _word(d1, _B6), _word(d2, _B9), _word(d3, _B17))
    for _ in range(10):
        words = step(words)
    return words


@jit
def uniform(words: Words) -> float:
    """The number in [0, 1) of a generator that was just stepped."""
    a, b, c, d = words
    return float((a ^ b ^ c ^ d) & _MANTISSA) / 4503599627370496.0


@jit
def two_draws(seed: float) -> tuple[float, float]:
    """The first two numbers that a seed gives."""
    words = step(seeded(seed))
    return uniform(words), uniform(step(words))


@jit
def _spell(key: int, ante: int, times: int, text: Any) -> int:
    """Writes a stream's name; returns its length."""
    n = 0
    for i in range(keys.PREFIX_LENGTH[key]):
        text[n] = keys.PREFIX[key, i]
        n += 1
    if keys.HAS_ANTE[key]:
        n = _decimal(ante, text, n)
    for i in range(keys.SUFFIX_LENGTH[key]):
        text[n] = keys.SUFFIX[key, i]
        n += 1
    if times > 0:
        for i in range(len(keys.RESAMPLE)):
            text[n] = keys.RESAMPLE[i]
            n += 1
        n = _decimal(times, text, n)
    return n


@jit
def _decimal(number: int, text: Any, n: int) -> int:
    if number < 0:
        text[n] = 45
        n += 1
        number = -number
    size = 1
    while size * 10 <= number:
        size *= 10
    while size > 0:
        text[n] = 48 + (number // size) % 10
        n += 1
        size //= 10
    return n


@jit
def _code(key: int, ante: int, times: int) -> int:
    """A number for a stream; never zero."""
    where = ante + 3 if keys.HAS_ANTE[key] else 0
    return (times * 64 + where) * 512 + key + 1


@jit
def stream(g: Any, key: int, times: int) -> float:
    """Moves a stream on and returns the seed it gives; `times` is the number of a resample, 0 for the stream itself."""
    ante = int(g.ante)
    code = _code(key, ante, times)
    slot = (code * 40503) % STREAMS
    for _ in range(STREAMS):
        held = i64(g.stream_key[slot])
        if held == code:
            x = advance(float(g.stream_value[slot]))
            g.stream_value[slot] = x
            return (x + float(g.hashed_seed)) / 2.0
        if held == 0:
            text = np.zeros(_MAX_NAME, np.int64)
            n = _spell(key, ante, times, text)
            for i in range(int(g.seed_length)):
                text[n] = i64(g.seed[i])
                n += 1
            x = advance(hash_bytes(text, n))
            g.stream_key[slot] = code
            g.stream_value[slot] = x
            g.streams += 1
            return (x + float(g.hashed_seed)) / 2.0
        slot = (slot + 1) % STREAMS
    g.error = ERR_STREAMS
    return 0.5


@jit
def roll(g: Any, key: int) -> float:
    """A number in [0, 1) of a stream."""
    return uniform(step(seeded(stream(g, key, 0))))


@jit
def pick(g: Any, key: int, count: int, times: int) -> int:
    """A place in a list of `count`, counted from zero."""
    return math.floor(uniform(step(seeded(stream(g, key, times)))) * count)


@jit
def shuffle(g: Any, key: int, items: Any, count: int) -> None:
    """Shuffles the first `count` items, which must lie in the order they were made."""
    words = seeded(stream(g, key, 0))
    for i in range(count, 1, -1):
        words = step(words)
        j = math.floor(uniform(words) * i)
        held = items[i - 1]
        items[i - 1] = items[j]
        items[j] = held


@jit
def forget_old_streams(g: Any) -> None:
    """Drops the streams of antes that cannot be reached any more."""
    old_keys = np.zeros(STREAMS, np.int64)
    old_values = np.zeros(STREAMS, np.float64)
    for i in range(STREAMS):
        old_keys[i] = g.stream_key[i]
        old_values[i] = g.stream_value[i]
        g.stream_key[i] = 0
    g.streams = 0
    for i in range(STREAMS):
        code = int(old_keys[i])
        if code == 0:
            continue
        where = (code // 512) % 64
        if where != 0 and where - 3 < int(g.ante) - _ANTES_BACK:
            continue
        slot = (code * 40503) % STREAMS
        while g.stream_key[slot] != 0:
            slot = (slot + 1) % STREAMS
        g.stream_key[slot] = code
        g.stream_value[slot] = old_values[i]
        g.streams += 1


@jit
def set_seed(g: Any, seed: Any, length: int) -> None:
    """Gives a game its seed and forgets all streams."""
    for i in range(STREAMS):
        g.stream_key[i] = 0
    g.streams = 0
    for i in range(8):
        g.seed[i] = seed[i] if i < length else 0
    g.seed_length = length
    g.hashed_seed = hash_bytes(seed, length)
