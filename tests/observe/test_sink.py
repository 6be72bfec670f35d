"""A fanout reaches every sink, outlives the broken ones and says so once."""

from __future__ import annotations

import logging

import pytest

from aleazero.observe.reports import Report
from aleazero.observe.sink import Fanout, Sink
from tests.observe import examples


class Recorder:
    def __init__(self) -> None:
        self.calls: list[object] = []

    def emit(self, report: Report) -> None:
        self.calls.append(report)

    def flush(self) -> None:
        self.calls.append("flush")

    def close(self) -> None:
        self.calls.append("close")


class Breaking(Recorder):
    """Raises in one of the three, from the given report on."""

    def __init__(self, where: str, error: BaseException, after: int = 0) -> None:
        super().__init__()
        self.where, self.error, self.after = where, error, after

    def _maybe(self, where: str) -> None:
        if where == self.where and len(self.calls) > self.after:
            raise self.error

    def emit(self, report: Report) -> None:
        super().emit(report)
        self._maybe("emit")

    def flush(self) -> None:
        super().flush()
        self._maybe("flush")

    def close(self) -> None:
        super().close()
        self._maybe("close")


def _use(sink: Sink, reports: list[Report]) -> None:
    for report in reports:
        sink.emit(report)
        sink.flush()
    sink.close()


REPORTS: list[Report] = [examples.run(), examples.learn(), examples.alarm(), examples.run(status="done")]
EVERYTHING: list[object] = [*(call for report in REPORTS for call in (report, "flush")), "close"]


@pytest.mark.parametrize("where", ["emit", "flush", "close"])
def test_a_failing_sink_is_warned_about_once_and_never_used_again(where, caplog):
    before, after = Recorder(), Recorder()
    broken = Breaking(where, OSError("No space left on device"), after=2)
    with caplog.at_level(logging.WARNING, logger="aleazero"):
        _use(Fanout([before, broken, after]), REPORTS)
    assert before.calls == after.calls == EVERYTHING
    assert broken.calls == EVERYTHING[: {"emit": 3, "flush": 4, "close": 9}[where]]
    assert [record.getMessage() for record in caplog.records] == [
        "Breaking failed; the run goes on without it: OSError: No space left on device"
    ]
    assert caplog.records[0].name == "aleazero.observe.sink"
    assert caplog.records[0].levelno == logging.WARNING


def test_every_sink_may_fail(caplog):
    sinks = [Breaking("emit", ValueError("one")), Breaking("emit", ValueError("two"))]
    with caplog.at_level(logging.WARNING, logger="aleazero"):
        _use(Fanout(sinks), REPORTS)
    assert [sink.calls for sink in sinks] == [REPORTS[:1], REPORTS[:1]]
    assert [record.getMessage()[-3:] for record in caplog.records] == ["one", "two"]


def test_the_traceback_is_there_for_who_asks(caplog):
    with caplog.at_level(logging.DEBUG, logger="aleazero"):
        Fanout([Breaking("emit", ValueError("bad"))]).emit(REPORTS[0])
    assert "_maybe" in caplog.text


def test_an_interrupt_passes_through_and_costs_no_sink(caplog):
    broken, interrupted = Breaking("emit", ValueError("bad")), Breaking("emit", KeyboardInterrupt())
    fanout = Fanout([broken, interrupted])
    with pytest.raises(KeyboardInterrupt):
        fanout.emit(REPORTS[0])
    fanout.flush()
    assert interrupted.calls == [REPORTS[0], "flush"]
    assert broken.calls == [REPORTS[0]]  # it failed before the interrupt and stays dropped
    assert len(caplog.records) == 1


def test_a_fanout_is_a_sink_and_closes_once():
    inner = Recorder()
    outer: Sink = Fanout([Fanout([inner])])
    _use(outer, REPORTS)
    outer.close()
    assert inner.calls == EVERYTHING
