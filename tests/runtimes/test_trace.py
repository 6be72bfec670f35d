"""What a trace is read as: real programs' texts, and lines of events that are easy to sum up."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from aleazero.core.scopes import part
from aleazero.runtimes import trace
from aleazero.runtimes.profile import HOST, SHARES, summary
from aleazero.runtimes.trace import Event

# As a compiler writes it: a loop of the search, in which it added a copy; a comparison that is called; a plain sum.
TEXT = """\
HloModule jit_run, is_scheduled=true

%less (a: f32[], b: f32[]) -> pred[] {
  ROOT %lt = pred[] compare(%a, %b), direction=LT, metadata={op_name="lt"}
}

%body (state: (s32[], f32[4])) -> (s32[], f32[4]) {
  %copy.1 = f32[4]{0} copy(%x)
  %sort-fusion.2 = f32[4]{0} sort(%copy.1), to_apply=%less, metadata={op_name="jit(run)/alea.search/while/vmap(alea.rules)/sort"}
  ROOT %add.3 = f32[4]{0} add(%x, %x), metadata={op_name="jit(run)/alea.search/while/body/add"}
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %while.5 = (s32[], f32[4]{0}) while(%x), condition=%less, body=%body, metadata={op_name="jit(run)/alea.search/while"}
  %copy.6 = f32[4]{0} copy(%x)
  ROOT %sum.7 = f32[4]{0} add(%x, %x), metadata={op_name="jit(run)/add" stack_frame_id=3}
}
"""  # noqa: E501


def event(start: float, stop: float, operation: str, name: str = "", program: str = "jit_run", path: str = "") -> Event:
    return Event(start * 1e9, stop * 1e9, name or operation, (program, "1"), operation, path)


def test_operations_belong_to_their_scope_or_to_the_loop_they_stand_in() -> None:
    found = trace.operations(TEXT)
    wanted = {
        "sort-fusion.2": "rules",
        "add.3": "search",
        "copy.1": "search",
        "lt": "rules",
        "while.5": "search",
        "copy.6": "other",
        "sum.7": "other",
    }
    assert {name: found[name].part for name in wanted} == wanted
    assert [name for name, operation in found.items() if operation.holds and "." in name] == ["while.5"]


def test_of_events_one_inside_another_the_inner_one_runs() -> None:
    line = [event(0, 10, "while.5"), event(1, 3, "sort-fusion.2"), event(3, 6, "add.3"), event(12, 13, "sum.7")]
    busy = trace.work([line], [("jit_run", TEXT)])
    assert busy.seconds == pytest.approx(11)
    assert busy.parts == pytest.approx({"rules": 2, "search": 8, "other": 1})
    assert list(busy.top.items()) == [("while.5", 5), ("add.3", 3), ("sort-fusion.2", 2), ("sum.7", 1)]


def test_things_that_run_at_once_share_the_time_and_what_only_holds_others_waits() -> None:
    one = [event(0, 10, "while.5")]
    two = [event(2, 6, "sort-fusion.2")]
    three = [event(4, 6, "sum.7")]
    busy = trace.work([one, two, three], [("jit_run", TEXT)])
    assert busy.seconds == pytest.approx(10)
    assert busy.parts == pytest.approx({"search": 6, "rules": 3, "other": 1})


def test_what_cannot_be_told_is_other() -> None:
    changed = TEXT.replace("alea.rules", "alea.network")
    line = [event(0, 1, "sort-fusion.2"), event(1, 2, "add.3"), event(2, 4, "gone.1"), event(4, 7, "", "memcpy", "")]
    busy = trace.work([line[:2]], [("jit_run", TEXT), ("jit_run", changed)])
    assert busy.parts == {"other": 1, "search": 1}  # two programs of one name do not agree
    fewer = changed.replace("%add.3", "%add.4")
    assert trace.work([line[:2]], [("jit_run", fewer), ("jit_run", TEXT)]).parts == {"rules": 1, "search": 1}
    assert trace.work([line], [("jit_run", TEXT)]).parts == {"rules": 1, "search": 1, "other": 5}
    assert trace.work([line], []).parts == {"other": 7}
    assert trace.work([[]], []) == trace.Busy(0.0, {}, {})


def test_kernels_of_a_graph_are_known_by_their_names_or_by_what_the_trace_says() -> None:
    line = [
        event(0, 1, "command_buffer", "sort_fusion_2"),
        event(1, 3, "command_buffer", "gemm", path="jit(run)/alea.network/dot_general"),
        event(3, 4, "command_buffer", "gemm"),
    ]
    assert trace.work([line], [("jit_run", TEXT)]).parts == {"rules": 1, "network": 2, "other": 1}


def test_shares_of_wall_time_sum_to_one() -> None:
    busy = trace.Busy(6.0, {"rules": 2.0, "update": 3.0, "other": 1.0}, {"a": 5.0, "b": 1.0})
    found = summary(busy, 8.0, Path("x"))
    assert list(found.shares) == list(SHARES)
    assert found.shares == pytest.approx(
        {"rules": 0.25, "search": 0, "network": 0, "replay": 0, "update": 0.375, HOST: 0.25, "other": 0.125}
    )
    assert sum(summary(busy, 5.0, Path("x")).shares.values()) == pytest.approx(1)  # more work than time: no host
    assert summary(busy, 5.0, Path("x")).shares[HOST] == 0


def test_a_real_trace_tells_loops_and_threads_apart(tmp_path: Path) -> None:
    @jax.jit
    def work_in_three_parts(x: jax.Array) -> jax.Array:
        def body(_: int, x: jax.Array) -> jax.Array:
            with part("rules"):
                x = jnp.sort(x, -1)
            with part("network"):
                return jnp.tanh(x @ x)

        with part("search"):
            return jax.lax.fori_loop(0, 4, body, x)

    x = work_in_three_parts(jnp.ones((256, 256)))
    with jax.profiler.trace(str(tmp_path)):
        work_in_three_parts(x).block_until_ready()
    (file,) = tmp_path.rglob("*.xplane.pb")
    busy = trace.read(file)
    assert sum(busy.parts.values()) == pytest.approx(busy.seconds)
    assert min(busy.parts["rules"], busy.parts["network"]) > 0.02 * busy.seconds
    assert busy.parts.get("other", 0.0) < 0.3 * busy.seconds
