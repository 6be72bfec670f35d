"""What a profiler's trace says: how long a device worked, and for which part of the system.

Operations are told apart by the scopes that they were traced in (`core.scopes`), which compiled programs keep. What the
compiler fuses counts for the scope of its result; what it adds by itself, such as copies, for the loop it stands in.
What no scope claims is "other". On accelerators a trace has streams of kernels, which name the operation that launched
them, or are named like it where many are launched as one graph; on the CPU it has the programs' steps, one inside
another, on whatever threads ran them. Knows no run.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from jax.extend.backend import get_backend

from aleazero.core.scopes import part_of

OTHER = "other"
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_OPERATION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = ")
_CONTAINER = re.compile(r" (?:while|conditional|call)\(")
_CALLED = re.compile(
    r"(?:body|condition|to_apply|calls|true_computation|false_computation|branch_computations)=(\{[^}]*\}|%?[\w.\-]+)"
)
_STATS = ("hlo_op", "hlo_module", "program_id", "tf_op")
_OP_NAME = re.compile(r'op_name="([^"]*)"')


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that ran."""

    start: float  # nanoseconds
    stop: float
    name: str  # the kernel's, or the operation's
    program: tuple[str, str]  # the module's name, and its number
    operation: str  # empty where the trace does not say
    path: str = ""  # the scopes it was traced in, if the trace says so itself


@dataclasses.dataclass(frozen=True)
class Operation:
    """One of a compiled program's."""

    part: str  # that it belongs to
    holds: bool  # others that run within it


@dataclasses.dataclass(frozen=True)
class Busy:
    """How long a device worked."""

    seconds: float  # in which anything ran
    parts: dict[str, float]  # the same by part; where several things ran at once, each has its share of the time
    top: dict[str, float]  # by kernel, or operation: all of them


def read(file: Path) -> Busy:
    """The work in a trace that this process has just made: its programs must still be there."""
    lines = _lines(file)
    modules = {event.program[0] for line in lines for event in line}
    texts = [(module.name, module.to_string()) for module in _live_modules() if module.name in modules]
    return work(lines, texts)


def work(lines: Sequence[Sequence[Event]], programs: Iterable[tuple[str, str]]) -> Busy:
    """Sums up events, line by line: of one inside another the inner one runs. `programs` are names and texts."""
    known = identify((event for line in lines for event in line), programs)
    edges: list[tuple[float, bool, int]] = []
    pieces: list[tuple[Event, Operation]] = []
    for line in lines:
        for start, stop, event in _innermost(sorted(line, key=lambda event: (event.start, -event.stop))):
            edges += [(start, True, len(pieces)), (stop, False, len(pieces))]
            pieces.append((event, known[_key(event)]))
    parts: dict[str, float] = collections.defaultdict(float)
    top: dict[str, float] = collections.defaultdict(float)
    running: set[int] = set()
    total, since = 0.0, 0.0
    for at, begins, number in sorted(edges):
        if running and at > since:
            # What only holds others waits for them, if they run on another thread.
            working = [i for i in running if not pieces[i][1].holds] or list(running)
            total += at - since
            for i in working:
                event, operation = pieces[i]
                parts[operation.part] += (at - since) / len(working)
                top[event.name] += (at - since) / len(working)
        since = at
        (running.add if begins else running.discard)(number)
    return Busy(
        total / 1e9,
        {part: spent / 1e9 for part, spent in parts.items()},
        {name: spent / 1e9 for name, spent in sorted(top.items(), key=lambda item: -item[1])},
    )


def _innermost(events: Iterable[Event]) -> Iterator[tuple[float, float, Event]]:
    """Stretches of one line's time, each with the innermost event that runs in it."""
    stack: list[Event] = []
    at = float("-inf")

    def until(end: float) -> Iterator[tuple[float, float, Event]]:
        nonlocal at
        while stack and stack[-1].stop <= end:
            last = stack.pop()
            if last.stop > at:
                yield at, last.stop, last
                at = last.stop

    for event in events:
        yield from until(event.start)
        if stack and event.start > at:
            yield at, event.start, stack[-1]
        stack.append(event)
        at = max(at, event.start)
    yield from until(float("inf"))


# ---- traces


def _lines(file: Path) -> list[list[Event]]:
    """The lines on which a device's work is recorded."""
    planes = list(jax.profiler.ProfileData.from_file(str(file)).planes)
    devices = [plane for plane in planes if plane.name.startswith("/device:") and "CUSTOM" not in plane.name.upper()]
    streams = [line for plane in devices for line in plane.lines if "Stream" in line.name]
    if streams:
        return [[_event(event) for event in line.events if event.duration_ns > 0] for line in streams]
    hosts = [line for plane in planes if plane.name.startswith("/host:") for line in plane.lines]
    found = [[_event(event) for event in line.events if event.duration_ns > 0] for line in hosts]
    return [[event for event in line if event.operation] for line in found]


def _event(event: Any) -> Event:
    stats = {name: str(value) for name, value in event.stats if name in _STATS}
    module = stats.get("hlo_module", "").partition("(")[0]
    return Event(
        start=event.start_ns,
        stop=event.start_ns + event.duration_ns,
        name=event.name,
        program=(module, stats.get("program_id", "")),
        operation=stats.get("hlo_op", ""),
        path=stats.get("tf_op", ""),
    )


# ---- programs


def identify(events: Iterable[Event], programs: Iterable[tuple[str, str]]) -> dict[tuple[Any, ...], Operation]:
    """What every event, by `_key`, is an operation of.

    Programs may share a name: one that lacks an operation that was seen is not meant, and where those that remain
    disagree, nobody can tell.
    """
    texts: dict[str, list[dict[str, Operation]]] = collections.defaultdict(list)
    for name, text in programs:
        texts[name].append(operations(text))
    seen: dict[tuple[str, str], set[tuple[str, str, str]]] = collections.defaultdict(set)
    for event in events:
        seen[event.program].add((event.operation, event.name, event.path))
    found = {}
    for program, kinds in seen.items():
        named = {operation for operation, _, _ in kinds if operation}
        fitting = [known for known in texts[program[0]] if named <= known.keys()] or texts[program[0]]
        for operation, kernel, path in kinds:
            said = {_look_up(known, operation, kernel, path) for known in fitting or [{}]}
            found[program, operation, kernel, path] = said.pop() if len(said) == 1 else Operation(OTHER, False)
    return found


def _key(event: Event) -> tuple[Any, ...]:
    return event.program, event.operation, event.name, event.path


def _look_up(known: Mapping[str, Operation], operation: str, kernel: str, path: str) -> Operation:
    """By the operation, else by what the trace says of its scopes, else by the kernel's name."""
    nothing = Operation(OTHER, False)
    first = known.get(operation, nothing)
    if first.part != OTHER:
        return first
    if said := part_of(path):
        return Operation(said, first.holds)
    return known.get(_plain(kernel), first)


def _plain(name: str) -> str:
    """As kernels are named after operations."""
    return re.sub(r"[.\-]", "_", name)


def operations(text: str) -> dict[str, Operation]:
    """A compiled program's operations by name."""
    home: dict[str, str] = {}  # the computation an operation stands in
    callers: dict[str, str] = {}  # the operation that calls a computation
    paths: dict[str, str] = {}  # the scopes an operation was traced in
    holds: set[str] = set()
    computation = ""
    for line in text.splitlines():
        if header := _COMPUTATION.match(line):
            computation = header[1]
        elif operation := _OPERATION.match(line):
            name = operation[1]
            home[name] = computation
            path = _OP_NAME.search(line)
            if path and "/" in path[1]:  # others are the compiler's, or of a function that many call
                paths[name] = path[1]
            for called in _CALLED.findall(line):
                for each in re.findall(r"[\w.\-]+", called):
                    callers.setdefault(each, name)
            if _CONTAINER.search(line):
                holds.add(name)

    def part(name: str | None) -> str:
        while name is not None:
            if name in paths:
                return part_of(paths[name]) or OTHER
            name = callers.get(home[name])
        return OTHER

    found = {name: Operation(part(name), name in holds) for name in home}
    return {_plain(name): operation for name, operation in found.items()} | found


def _live_modules() -> Iterator[Any]:
    for program in get_backend().live_executables():
        yield from program.hlo_modules()
