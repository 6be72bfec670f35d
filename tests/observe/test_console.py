"""What a watcher sees: plain lines that can be searched, and a display on a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from rich.console import Console

from aleazero.observe.console import ConsoleSink
from aleazero.observe.reports import Report
from tests.observe import examples


def _lines(reports: list[Report], every_seconds: float = 0.0) -> list[str]:
    stream = io.StringIO()
    sink = ConsoleSink(None, every_seconds, stream)
    for report in reports:
        sink.emit(report)
    sink.close()
    return stream.getvalue().splitlines()


def _written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def _screen(console: Console) -> str:
    """What was written, without the codes that colour it and move the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", _written(console))


def _terminal(width: int = 120) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=40, _environ={"TERM": "xterm-256color"})


def test_a_whole_run_in_plain_lines():
    reports = [
        examples.run(),
        examples.selfplay(),
        examples.learn(),
        examples.replay(),
        examples.selfplay(step=20, rows=200, seconds=4.0, games=80, games_per_second=10),
        examples.learn(step=20, rows=200, seconds=5.0, loss=1.25, losses={"policy": 1.0}),
        examples.match(opponent="gnubg:ply=2"),
        examples.checkpoint(),
        examples.checkpoint(saved=False, message="no space left"),
        examples.alarm(message="two\nlines"),
        examples.run(status="done", step=20, rows=1000, seconds=20.25),
    ]
    assert _lines(reports) == [
        "run step=0 rows=0 seconds=0 status=started run=pig-1 game=pig total_rows=1000",
        "train step=10 rows=100 seconds=3 done=10.0% left=0:00:18 games=40 games/s=12.5 rows/s=250 sims/s=8000 "
        "entropy=0.5 loss=1.5 loss/policy=1 loss/value=0.5 lr=0.001",
        "train step=20 rows=200 seconds=5 done=20.0% left=0:00:16 games=80 games/s=10 rows/s=250 sims/s=8000 "
        "entropy=0.5 loss=1.25 loss/policy=1 lr=0.001 replay=90 window=70",
        "eval step=10 rows=100 seconds=4 player=self opponent=gnubg:ply=2 games=400 score=0.75 score_low=0.7 "
        "score_high=0.8 points_per_game=0.5 points_low=0.4 points_high=0.6 luck_off=no",
        "checkpoint step=10 rows=100 seconds=4 path=checkpoints/10 saved=yes",
        'checkpoint step=10 rows=100 seconds=4 path=checkpoints/10 saved=no message="no space left"',
        'alarm step=10 rows=100 seconds=4 level=warn name="duplicate games" message="two\\nlines" setting=search.noise',
        "run step=20 rows=1000 seconds=20.25 status=done run=pig-1 game=pig total_rows=1000",
    ]


def test_learning_first_or_last_a_pair_is_one_line():
    for pair in ([examples.selfplay, examples.learn], [examples.learn, examples.selfplay]):
        reports: list[Report] = [make(step=step, seconds=float(step)) for step in range(1, 5) for make in pair]
        lines = _lines(reports)
        assert [line.split()[1] for line in lines] == ["step=1", "step=2", "step=3", "step=4"]
        assert all("games/s=" in line and "loss=" in line for line in lines)


def test_pairs_come_no_more_often_than_asked_and_events_always():
    reports: list[Report] = [examples.run()]
    for second in range(100):
        reports += [
            examples.selfplay(step=second, seconds=second + 0.25),
            examples.learn(step=second, seconds=second + 0.5),
            examples.match(step=second, seconds=second + 0.75),
        ]
    lines = _lines(reports, every_seconds=10.0)
    said = [int(line.split()[1].removeprefix("step=")) for line in lines if line.startswith("train ")]
    assert said == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99]  # the last by closing
    assert sum(line.startswith("eval ") for line in lines) == 100


def test_self_play_is_told_of_while_nobody_learns():
    lines = _lines(
        [examples.run(), *(examples.selfplay(rows=rows, seconds=rows / 10) for rows in range(100, 500, 100))]
    )
    assert [line.split()[2] for line in lines] == ["rows=0", "rows=200", "rows=400"]
    assert not any("loss" in line for line in lines)


def test_the_last_pair_is_told_before_the_end():
    reports = [
        examples.run(),
        examples.selfplay(),
        examples.learn(),
        examples.learn(step=11),
        examples.run(status="done"),
    ]
    assert [line.split()[:2] for line in _lines(reports, every_seconds=1000.0)] == [
        ["run", "step=0"],
        ["train", "step=10"],
        ["train", "step=11"],
        ["run", "step=0"],
    ]


def test_time_left_follows_the_rows():
    slow = [examples.selfplay(rows=rows, seconds=float(rows)) for rows in range(1, 101)]
    fast = [examples.selfplay(rows=100 + 10 * count, seconds=100.0 + count) for count in range(1, 61)]
    lines = _lines([examples.run(total_rows=8000), *slow, *fast])
    assert "rows=100 seconds=100 done=1.2% left=2:11:40 " in next(line for line in lines if " rows=100 " in line)
    assert "rows=700 seconds=160 done=8.8% left=0:12:10 " in lines[-1], "the slow start must be forgotten"


def test_time_left_is_unknown_before_rows_come():
    lines = _lines([examples.run(), *[examples.selfplay(rows=0)] * 2])
    assert "rows=0 seconds=2 done=0.0% left=? " in lines[-1]
    assert "left" not in _lines([examples.selfplay()] * 2)[0]


def test_a_console_that_is_no_terminal_gets_plain_lines():
    stream = io.StringIO()
    sink = ConsoleSink(Console(file=stream, width=20), 0.0)
    sink.emit(examples.alarm())
    assert stream.getvalue().startswith('alarm step=10 rows=100 seconds=4 level=warn name="duplicate games"')
    assert stream.getvalue().count("\n") == 1  # however narrow
    sink.close()


def test_letters_that_the_stream_cannot_write_are_spelled_out():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    sink = ConsoleSink(None, 0.0, stream)
    sink.emit(examples.run(run="Zürich", message="≥ 3 \ud800"))
    sink.close()
    assert (
        raw.getvalue().decode("ascii").endswith('run=Z\\xfcrich game=pig total_rows=1000 message="\\u2265 3 \\ud800"\n')
    )


def test_the_display_shows_the_last_of_everything():
    console = _terminal()
    sink = ConsoleSink(console, 10.0)
    reports = [
        examples.run(total_rows=1_000_000),
        examples.selfplay(rows=100_000, seconds=100.0),
        examples.learn(rows=100_000, seconds=101.0, step=1200),
        examples.replay(rows=100_000, seconds=101.0, rows_held=99_950),
        examples.ppo(rows=100_000, seconds=101.0, memory_bytes=2**31, memory_cap_bytes=2**33),
        examples.match(rows=100_000, seconds=102.0),
        examples.checkpoint(rows=100_000, seconds=103.0),
        examples.alarm(rows=100_000, seconds=104.0),
        examples.selfplay(rows=250_000, seconds=250.0, games_per_second=1234.0, simulations_per_second=999_999.0),
    ]
    for report in reports:
        sink.emit(report)
    sink.close()
    last = _screen(console).rpartition("╭")[2]
    for text in (
        "pig-1 · pig · started",
        "25.0%",
        "250k of 1M rows",
        "0:12:30 left",
        "1.23k games/s  1M sims/s  250 rows/s",
        "1.5  policy 1  value 0.5",
        "0.001 at step 1,200",
        "100k rows  80 ready  window 70",
        "ante 1.75 of 8  won 12.5%  points 2.5  90k an hour",
        "entropy 2.5  kl 0.01  explained 75.0%  memory 2.0 of 8 GiB",
        "0.750 [0.700, 0.800] against random, 400 games at step 10",
        "step 10 checkpoints/10",
        "warn at step 10: duplicate games: 31 % of the games are [bold]the same[/bold] (see search.noise)",
    ):
        assert text in last
    assert _written(console).endswith("\x1b[?25h")  # the cursor is shown again


def test_the_display_begins_with_nothing_known_and_is_redrawn_in_place():
    console = _terminal()
    sink = ConsoleSink(console)
    sink.close()
    assert _written(console) == ""
    sink = ConsoleSink(console)
    sink.emit(examples.learn(seconds=1.0))
    sink.emit(examples.learn(seconds=1.1))  # too soon to draw again
    assert _screen(console).count("╭") == 1
    sink.emit(examples.learn(seconds=1.3, loss=0.875))
    assert _screen(console).count("╭") == 2
    assert "\x1b[1A" in _written(console)
    sink.emit(examples.match(seconds=1.3))
    assert _screen(console).count("╭") == 3
    sink.flush()
    assert _screen(console).count("╭") == 4
    sink.close()
    assert "? left" in _screen(console)
    assert "100 rows" in _screen(console)


def test_alarms_stay_above_the_display():
    console = _terminal(width=200)
    sink = ConsoleSink(console)
    for name in ("first", "second"):
        sink.emit(examples.alarm(name=name, level="stop"))
    sink.close()
    above = [line for line in _screen(console).splitlines() if line.startswith("stop at step 10: ")]
    assert [line.split(": ")[1] for line in above] == ["first", "second"]


def test_a_display_that_fails_gives_the_terminal_back():
    console = _terminal()
    sink = ConsoleSink(console)
    sink.emit(examples.run())
    with pytest.raises(AttributeError):
        sink.emit(examples.learn(losses=None, seconds=9.0))
    assert console._live_stack == []
    assert "\x1b[?25h" in _written(console)


def test_a_pipe_is_no_part_of_the_display(capsys):
    sink = ConsoleSink(_terminal())
    sink.emit(examples.run())
    sys.stdout.write("for the pipe\n")
    sink.close()
    assert capsys.readouterr().out == "for the pipe\n"


def _on_a_terminal() -> str:
    """What a sink without a console writes to a real terminal, as bytes arrive at its other end."""
    ours, theirs = os.openpty()
    written: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # the other end was closed
            while piece := os.read(ours, 4096):
                written.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    with open(theirs, "w", encoding="utf-8") as stream:
        sink = ConsoleSink(None, 0.0, stream)
        sink.emit(examples.run())
        sink.close()
    reader.join()
    os.close(ours)
    return b"".join(written).decode()


def test_a_terminal_gets_a_display_and_without_rich_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    assert "╭" in _on_a_terminal()
    for name in [name for name in sys.modules if name.split(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert _on_a_terminal() == ("run step=0 rows=0 seconds=0 status=started run=pig-1 game=pig total_rows=1000\r\n")


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert _on_a_terminal().startswith("run step=0 ")


def test_standard_output_is_the_default(capsys):
    sink = ConsoleSink()
    sink.emit(examples.run())
    sink.close()
    assert capsys.readouterr().out.startswith("run step=0 ")


def test_plain_lines_need_neither_rich_nor_jax():
    program = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['rich', 'jax', 'numpy', 'tensorboardX']))\n"
        "from aleazero.observe import console, curves, jsonl, logs, plot, reports, sink, tensorboard\n"
        "console.ConsoleSink().emit(reports.RunReport(1, 2, 3.0, 'started', 'a', 'pig', 9))\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "run step=1 rows=2 seconds=3 status=started run=a game=pig total_rows=9\n"
