"""Reports for whoever watches: a live display on a terminal, plain lines anywhere else.

Plain lines are made to be searched: the kind first, then `key=value` pairs, one line a report whatever it holds. They
need the standard library alone; rich is imported only for a display. Knows no file and no run folder.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import sys
from typing import IO, TYPE_CHECKING

from aleazero.observe.plot import short_number
from aleazero.observe.reports import (
    AlarmReport,
    CheckpointReport,
    EvalReport,
    HardwareReport,
    LearnReport,
    PpoReport,
    RayReport,
    ReplayReport,
    Report,
    RunReport,
    SelfPlayReport,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

_REDRAW_SECONDS = 0.2
_PACE_REPORTS = 32  # time left is judged by as many: enough to be steady, few enough to forget compilation


class ConsoleSink:
    """Shows how a run goes: as a display where the output is a terminal and rich is there, as plain lines otherwise."""

    def __init__(
        self, console: Console | None = None, every_seconds: float = 10.0, stream: IO[str] | None = None
    ) -> None:
        """Chooses between the two.

        Args:
            console: where to show it; None for one on `stream`.
            every_seconds: of the run, between two plain lines on self-play and learning.
            stream: used where there is no console; None for standard output.
        """
        stream = stream or sys.stdout
        if console is None and stream.isatty():
            with contextlib.suppress(ImportError):
                from rich.console import Console

                console = Console(file=stream)
        self._view: _Display | _Lines
        if console is not None and console.is_terminal and not console.is_dumb_terminal:
            self._view = _Display(console)
        else:
            self._view = _Lines(stream if console is None else console.file, every_seconds)

    def emit(self, report: Report) -> None:
        """Shows a report, or keeps it for the next time something is shown."""
        self._view.emit(report)

    def flush(self) -> None:
        """Brings what is shown up to date."""
        self._view.flush()

    def close(self) -> None:
        """Shows what was kept and leaves the terminal as it was."""
        self._view.close()


@dataclasses.dataclass
class _Seen:
    """The last report of each kind, and how fast rows come."""

    run: RunReport | None = None
    selfplay: SelfPlayReport | None = None
    learn: LearnReport | None = None
    ppo: PpoReport | None = None
    replay: ReplayReport | None = None
    match: EvalReport | None = None
    checkpoint: CheckpointReport | None = None
    alarm: AlarmReport | None = None
    latest: Report | None = None
    pace: collections.deque[tuple[float, int]] = dataclasses.field(  # (seconds, rows)
        default_factory=lambda: collections.deque(maxlen=_PACE_REPORTS)
    )

    def take(self, report: Report) -> None:
        self.latest = report
        match report:
            case RunReport():
                self.run = report
            case SelfPlayReport():
                self.selfplay = report
            case LearnReport():
                self.learn = report
            case PpoReport():
                self.ppo = report
            case ReplayReport():
                self.replay = report
            case EvalReport():
                self.match = report
            case CheckpointReport():
                self.checkpoint = report
            case AlarmReport():
                self.alarm = report
        # One report of each cycle of playing and learning: between two of them lies a whole number of cycles.
        if isinstance(report, RunReport | SelfPlayReport):
            self.pace.append((report.seconds, report.rows))

    def time_left(self) -> str:
        """As hours, minutes and seconds; a question mark while nobody can tell."""
        if self.run is None or not self.pace:
            return "?"
        (start, first), (now, rows) = self.pace[0], self.pace[-1]
        if rows <= first or now <= start:
            return "?"
        seconds = round(max(self.run.total_rows - rows, 0) * (now - start) / (rows - first))
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


class _Lines:
    """Plain lines: one for self-play and learning together now and then, one for everything that happens once."""

    def __init__(self, stream: IO[str], every_seconds: float) -> None:
        self._stream = stream
        self._every_seconds = every_seconds
        self._seen = _Seen()
        self._unsaid: dict[str, Report] = {}  # self-play and learning since the last line, by kind
        self._said_at = float("-inf")

    def emit(self, report: Report) -> None:
        if isinstance(report, RunReport):  # what came before the end is told before the end
            self._say_progress()
        self._seen.take(report)
        if isinstance(report, SelfPlayReport | LearnReport):
            # A pair is complete when both have come, or one has come twice: while replay fills, nobody learns.
            complete = bool(self._unsaid)
            self._unsaid[report.kind] = report
            if complete and report.seconds - self._said_at >= self._every_seconds:
                self._say_progress()
        elif not isinstance(report, ReplayReport | HardwareReport | RayReport):  # numbers for dashboards
            self._write(_event_line(report))

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self._say_progress()
        self._stream.flush()

    def _say_progress(self) -> None:
        if self._unsaid:
            latest = max(self._unsaid.values(), key=lambda report: report.seconds)
            self._write(_progress_line(self._seen, latest, {*self._unsaid}))
            self._said_at = latest.seconds
            self._unsaid = {}

    def _write(self, line: str) -> None:
        # A letter that the stream cannot write must not cost the sink.
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        self._stream.flush()


def _pairs(**values: object) -> str:
    """`key=value` for every value; texts with blanks, quotes or nothing in them as JSON strings."""
    return " ".join(f"{key}={_plain(value)}" for key, value in values.items())


def _plain(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.5g}"
        case str():
            bare = value and value.isprintable() and not any(letter in value for letter in ' "')
            return value if bare else json.dumps(value, ensure_ascii=False)
    return str(value)


def _event_line(report: Report) -> str:
    """Every field of a report that stands for itself."""
    shown: dict[str, object] = {}
    for field in dataclasses.fields(report):
        value = getattr(report, field.name)
        if isinstance(value, dict):
            shown |= {f"{field.name}/{key}": entry for key, entry in value.items()}
        elif value != "":
            shown[field.name] = value
    return f"{report.kind} {_pairs(**shown)}"


def _progress_line(seen: _Seen, latest: Report, kinds: set[str]) -> str:
    """How far the run is and what the reports of these kinds last said."""
    total = seen.run.total_rows if seen.run else 0
    parts = [_pairs(step=latest.step, rows=latest.rows, seconds=latest.seconds)]
    if total:
        parts.append(_pairs(done=f"{latest.rows / total:.1%}", left=seen.time_left()))
    if seen.selfplay and SelfPlayReport.kind in kinds:
        play = seen.selfplay
        speed = {
            "games/s": play.games_per_second,
            "rows/s": play.rows_per_second,
            "sims/s": play.simulations_per_second,
        }
        parts.append(_pairs(games=play.games, **speed, entropy=play.policy_entropy))
    if seen.learn and LearnReport.kind in kinds:
        learn = seen.learn
        terms = {f"loss/{term}": value for term, value in learn.losses.items()}
        parts.append(_pairs(loss=learn.loss, **terms, lr=learn.learning_rate))
    if seen.replay:
        parts.append(_pairs(replay=seen.replay.rows_held, window=seen.replay.window_rows))
    return " ".join(["train", *parts])


class _Display:
    """A panel at the bottom of the terminal that always shows the last of everything. Alarms stay above it."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self._seen = _Seen()
        self._drawn_at = float("-inf")
        # Drawn when reports come and not by a thread, so that a failure is raised where it can be dealt with.
        self._live = Live(
            console=console,
            auto_refresh=False,
            get_renderable=lambda: _draw(self._seen),
            # What is printed to the terminal goes above the display; what is printed to a pipe is none of its business.
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=sys.stderr.isatty(),
        )

    def emit(self, report: Report) -> None:
        self._seen.take(report)
        try:
            self._live.start()
            if isinstance(report, AlarmReport):
                self._live.console.print(_alarm_text(report))
            once = not isinstance(report, SelfPlayReport | LearnReport | PpoReport | ReplayReport)
            if once or report.seconds - self._drawn_at >= _REDRAW_SECONDS:
                self._drawn_at = report.seconds
                self._live.refresh()
        except Exception:
            # Nobody closes a sink that has failed, and standard output must not stay redirected into it.
            with contextlib.suppress(Exception):
                self._live.stop()
            raise

    def flush(self) -> None:
        if self._live.is_started:
            self._live.refresh()

    def close(self) -> None:
        self._live.stop()


def _draw(seen: _Seen) -> RenderableType:
    """The whole display. Texts of the run are never read as markup."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column()
    for name, text in _facts(seen):
        rows.add_row(name, text)
    title = Text(f"{seen.run.run} · {seen.run.game} · {seen.run.status}" if seen.run else "alea", style="bold")
    return Panel(Group(_progress_bar(seen), rows), title=title, title_align="left", border_style="dim")


def _progress_bar(seen: _Seen) -> RenderableType:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    total = seen.run.total_rows if seen.run else 0
    rows = seen.latest.rows if seen.latest else 0
    bar = Table.grid(padding=(0, 2), expand=True)
    bar.add_column(ratio=1)
    for _ in range(3):
        bar.add_column(justify="right", no_wrap=True)
    bar.add_row(
        ProgressBar(total=max(total, 1), completed=min(rows, total)),
        f"{min(rows / total, 1):.1%}" if total else "",
        f"{short_number(rows)} of {short_number(total)} rows" if total else f"{short_number(rows)} rows",
        f"{seen.time_left()} left",
    )
    return bar


def _facts(seen: _Seen) -> list[tuple[str, Text]]:
    """What is known so far, each with its name."""
    from rich.text import Text

    facts: list[tuple[str, Text]] = []
    if play := seen.selfplay:
        speeds = (play.games_per_second, play.simulations_per_second, play.rows_per_second)
        games, simulations, rows = (short_number(speed) for speed in speeds)
        facts.append(("self-play", Text(f"{games} games/s  {simulations} sims/s  {rows} rows/s")))
    if learn := seen.learn:
        terms = "  ".join(f"{term} {value:.4g}" for term, value in learn.losses.items())
        facts.append(("loss", Text(f"{learn.loss:.4g}  {terms}".rstrip())))
        facts.append(("learning rate", Text(f"{learn.learning_rate:.3g} at step {learn.step:,}")))
    if ppo := seen.ppo:
        ante = f"ante {ppo.mean_ante:.2f} of {ppo.horizon}  " if ppo.antes else ""
        won = f"won {ppo.win_rate:.1%}  points {ppo.mean_points:.4g}"
        facts.append(("games", Text(f"{ante}{won}  {short_number(ppo.games_per_hour)} an hour")))
        moved = f"entropy {ppo.entropy:.3g}  kl {ppo.kl:.3g}  explained {ppo.explained_variance:.1%}"
        memory = f"{ppo.memory_bytes / 2**30:.1f} of {ppo.memory_cap_bytes / 2**30:.0f} GiB"
        facts.append(("policy", Text(f"{moved}  memory {memory}")))
    if replay := seen.replay:
        held, ready, window = (
            short_number(count) for count in (replay.rows_held, replay.rows_ready, replay.window_rows)
        )
        facts.append(("replay", Text(f"{held} rows  {ready} ready  window {window}")))
    if match := seen.match:
        score = f"{match.score:.3f} [{match.score_low:.3f}, {match.score_high:.3f}]"
        facts.append(
            ("rating", Text(f"{score} against {match.opponent}, {match.games:,} games at step {match.step:,}"))
        )
    if saved := seen.checkpoint:
        verdict, style = ("", "") if saved.saved else ("not saved: ", "bold red")
        said = f" {saved.message}" if saved.message else ""
        facts.append(("checkpoint", Text(f"{verdict}step {saved.step:,} {saved.path}{said}", style=style)))
    if seen.alarm:
        facts.append(("alarm", _alarm_text(seen.alarm)))
    if seen.run and seen.run.message:
        facts.append(("run", Text(seen.run.message)))
    return facts


def _alarm_text(alarm: AlarmReport) -> Text:
    from rich.text import Text

    setting = f" (see {alarm.setting})" if alarm.setting else ""
    style = "bold red" if alarm.level == "stop" else "yellow"
    return Text(f"{alarm.level} at step {alarm.step:,}: {alarm.name}: {alarm.message}{setting}", style=style)
