"""What `alea balatro` and the other commands do for Balatro: coverage, eval, verify, replay, bench, fuzz, tables."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from aleazero.bridges.advisor import Advisor, AdvisorConfig, split_player
from aleazero.cli.answer import print_json
from aleazero.cli.balatro_play import Session, show, tell
from aleazero.cli.balatro_tree import NAME
from aleazero.core.compilation import set_up_compiling
from aleazero.core.devices import use_every_core
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.games.balatro import coverage as covered
from aleazero.games.balatro import fuzz as fuzzing
from aleazero.games.balatro import measure, pages, saved, text
from aleazero.games.balatro import verify as vectors
from aleazero.games.balatro.contest import PLAYERS, Choose, Runs, make_chooser, numbered_seeds, play_runs
from aleazero.games.balatro.engine import Batch, seed_text
from aleazero.games.balatro.rng import check_seed
from aleazero.games.balatro.saved import SavedRun
from aleazero.play.ratings import mean_interval

RATED = 8  # characters of the seeds that ratings are made with: training has shorter ones
MOST_RUNS = 10_000_000  # of one match
MOST_TOLD = 10  # lines of a file that are wrong


def _only_balatro(game: str, command: str) -> None:
    if game != NAME:
        raise ConfigError(f"{command} is for balatro, not for {game!r}")


def coverage(game: str, asked: bool, as_json: bool) -> int:
    """What the simulator covers."""
    _only_balatro(game, "games NAME --coverage")
    if not asked:
        raise ConfigError(f"write games {game} --coverage for what the simulator covers, games alone for the list")
    rows = covered.coverage()
    if as_json:
        kinds = [{"kind": r.kind, "working": r.working, "total": r.total, "missing": r.missing} for r in rows]
        print_json({"game": NAME, "kinds": kinds, "differences": covered.DIFFERENCES})
        return 0
    print(f"{'kind':12}{'working':>8}{'of':>6}  taken out of the pools")
    for row in rows:
        print(f"{row.kind:12}{row.working:8}{row.total:6}  {', '.join(row.missing) or 'none'}")
    print("\nsimpler than the game, or different:")
    for line in covered.DIFFERENCES:
        print(f"- {line}")
    return 0


def evaluate(
    player: str,
    *,
    games: int,
    seed: int,
    seeds: str | None,
    record: Path | None,
    as_json: bool,
    runs: Path | None = None,
    beside: Sequence[str] = (),
) -> int:
    """Plays runs and says how far the player comes; `seeds` is a file of them, or how many are drawn by `seed`.

    `beside` are others who play the same runs.
    """
    if seeds is not None and seeds.isdecimal():
        games, seeds = int(seeds), None
    if not 1 <= games <= MOST_RUNS:
        raise ConfigError(f"games is {games}; it must be at least 1 and at most {MOST_RUNS}")
    if seed < 0:
        raise ConfigError(f"seed is {seed}; it must be 0 or more")
    if record is not None:
        raise ConfigError("record is not for balatro: keep the output of --json")
    wanted = _read_seeds(Path(seeds)) if seeds else numbered_seeds(games, seed)
    players = [player, *beside]
    made = [_maker(each, wanted, runs) for each in players]  # all that is wrong is said before anybody plays
    reports = [_measured(each, make, wanted, seed) for each, make in zip(players, made, strict=True)]
    if as_json:
        print_json({**reports[0], "beside": reports[1:]} if beside else reports[0])
    elif beside:
        _show_table(reports)
    else:
        _show(reports[0])
    return 0


Make = Callable[[str, int, int], Choose]


def _maker(player: str, wanted: list[str], runs: Path | None) -> Make:
    """What makes a player; refused where there is none, or these seeds are not for it."""
    from aleazero.host_players import is_network

    name, _ = split_player(player)
    if not is_network(name):
        if name not in PLAYERS:
            raise UnknownName("player of balatro", name, [*PLAYERS, "bundled", "run:NAME", "path:FOLDER"])
        return make_chooser
    _refuse_chosen_by(wanted, name, runs)
    short = sum(len(text) < RATED for text in wanted)
    if short:
        print(
            f"alea: {short} of the seeds have fewer than {RATED} characters: training may have seen them",
            file=sys.stderr,
        )
    return _network(name, runs)


def _measured(player: str, make: Make, wanted: list[str], seed: int) -> dict[str, Any]:
    name, asked = split_player(player)
    play_runs(name, wanted[:1], seed=seed, make=make)  # compiles, so that the runs an hour are those of playing
    if asked is None:
        return run_report(player, play_runs(name, wanted, seed=seed, make=make))
    return _advised(player, name, asked, wanted, seed, make)


def _show(report: dict[str, Any]) -> None:
    def interval(name: str, digits: int) -> str:
        return f"(95 %: {report[f'{name}_low']:.{digits}f} to {report[f'{name}_high']:.{digits}f})"

    print(f"{report['player']}: {report['games']} runs of balatro, Red Deck, White Stake")
    print(f"won         {report['win_rate']:.4f} {interval('win', 4)}")
    print(f"ante        {report['mean_ante']:.3f} where it ended {interval('ante', 3)}")
    print(f"ante 1      beaten in {report['ante1_clear']:.4f} of the runs {interval('ante1', 4)}")
    print(f"blinds      {report['mean_rounds']:.3f} beaten")
    print(f"decisions   {report['decisions']}, {report['games_per_hour']:,.0f} runs an hour")
    if "advisor" in report:
        told = ", ".join(f"{key.replace('_', ' ')} {count}" for key, count in report["advisor"].items())
        print(f"advisor     {told}")


def _show_table(reports: list[dict[str, Any]]) -> None:
    """Players below one another, each share and mean with its interval."""
    columns = {
        "won": ("win_rate", "win", 4),
        "ante": ("mean_ante", "ante", 3),
        "ante 1 beaten": ("ante1_clear", "ante1", 4),
    }
    width = max(len(report["player"]) for report in reports) + 2
    print(f"{reports[0]['games']} runs of balatro, Red Deck, White Stake; in brackets 95 % intervals")
    print(f"{'':{width}}" + "".join(f"{title:26}" for title in columns) + "runs an hour")
    for report in reports:
        cells = [
            f"{report[mean]:.{digits}f} ({report[f'{name}_low']:.{digits}f} to {report[f'{name}_high']:.{digits}f})"
            for mean, name, digits in columns.values()
        ]
        print(
            f"{report['player']:{width}}" + "".join(f"{cell:26}" for cell in cells) + f"{report['games_per_hour']:,.0f}"
        )


def _refuse_chosen_by(seeds: list[str], player: str, runs: Path | None) -> None:
    """A run's best checkpoint is chosen by some seeds: on those it looks better than it is."""
    from aleazero.assemble_ppo import choosing_seeds
    from aleazero.host_players import chosen_by

    known = chosen_by(player, runs)
    if known is None:
        return
    chose = {seed_text(int(number)) for number in choosing_seeds(*known)}
    both = [seed for seed in seeds if seed in chose]
    if both:
        raise ConfigError(
            f"{len(both)} of the seeds, {both[0]} first, are those that {player} was chosen by among its run's "
            "checkpoints; rate it on others: leave them out"
        )


def _advised(player: str, name: str, asked: AdvisorConfig, wanted: list[str], seed: int, make: Make) -> dict[str, Any]:
    """The same with a language model that is asked in shops and at blinds, and what came of the questions."""
    policy: list[Choose] = []
    advisor = Advisor(lambda batch, move: policy[-1](batch), asked)

    def choosing(text: str, own_seed: int, count: int) -> Choose:
        policy.append(make(text, own_seed, count))
        return lambda batch: advisor(batch, 0)

    report = run_report(player, play_runs(name, wanted, seed=seed, make=choosing))
    return {**report, "advisor": dataclasses.asdict(advisor.counts)}


def _network(player: str, root: Path | None) -> Make:
    """How the network of a run chooses."""
    from aleazero.host_players import player_of

    use_every_core()
    set_up_compiling()
    made = player_of(player, NAME, root)

    def make(text: str, seed: int, count: int) -> Choose:
        choose, moves = made(seed), itertools.count()
        return lambda batch: choose(batch, next(moves))

    return make


def run_report(player: str, runs: Runs) -> dict[str, Any]:
    """What runs say of a player; shares with Wilson's interval, means with a normal one."""
    count = len(runs.ante)
    low, high = _wilson(int(runs.won.sum()), count)
    beyond = runs.ante > 1
    beyond_low, beyond_high = _wilson(int(beyond.sum()), count)
    ante = mean_interval(np.stack([runs.ante, runs.ante], 1).astype(float)) if count > 1 else None
    mean = float(runs.ante.mean())
    return {
        "game": NAME,
        "player": player,
        "games": count,
        "win_rate": float(runs.won.mean()),
        "win_low": low,
        "win_high": high,
        "mean_ante": mean,
        "ante_low": ante.low if ante else mean,
        "ante_high": ante.high if ante else mean,
        "ante1_clear": float(beyond.mean()),
        "ante1_low": beyond_low,
        "ante1_high": beyond_high,
        "mean_rounds": float(runs.rounds.mean()),
        "best_hand": float(runs.best.max()),
        "decisions": runs.decisions,
        "games_per_hour": runs.games_per_hour,
    }


def _wilson(wins: int, count: int) -> tuple[float, float]:
    z = 1.959964
    share, spread = wins / count, z * z / count
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * np.sqrt(share * (1 - share) / count + spread / (4 * count))
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def _read_seeds(path: Path) -> list[str]:
    """A file's seeds, one a line; blank lines are passed over. All that is wrong is said, by its line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"seeds is {str(path)!r}, which cannot be read: {error}") from error
    found: dict[str, int] = {}  # by seed, its line
    wrong = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            seed = check_seed(line)
        except ConfigError as error:
            wrong.append(f"{path}, line {number}: {error}")
            continue
        if seed in found:
            wrong.append(f"{path}, line {number}: seed {seed} is that of line {found[seed]}: a run counts once")
        found.setdefault(seed, number)
    if len(wrong) > MOST_TOLD:
        wrong[MOST_TOLD:] = [f"and {len(wrong) - MOST_TOLD} more lines"]
    if wrong:
        raise ConfigError("\n".join(wrong))
    if not found:
        raise ConfigError(f"seeds is {str(path)!r}, which names none: write one a line")
    return list(found)


def verify(game: str, folder: Path, as_json: bool) -> int:
    """Checks vectors."""
    _only_balatro(game, "verify")
    rates = vectors.verify(folder)
    wrong = any(rate.passed < rate.total for rate in rates)
    if as_json:
        print_json({"game": game, "folder": str(folder), "kinds": [dataclasses.asdict(rate) for rate in rates]})
        return int(wrong)
    for rate in rates:
        share = f"{rate.passed / rate.total:9.3%}" if rate.total else "        -"
        print(f"{rate.kind:18}{rate.passed:7} of {rate.total:<7}{share}")
        for line in rate.first:
            print(f"    {line}")
    return int(wrong)


def replay(game: str, file: Path, as_json: bool, out: IO[str] | None = None) -> int:
    """Shows a saved run."""
    _only_balatro(game, "replay")
    run = saved.read(file)
    batch = run.start()
    steps = []
    target = out or sys.stdout
    for before, action in run.steps():
        g = before.states[0]
        line = text.describe(g, action)
        lines = tell(before, action)
        steps.append({"action": action, "text": line, "score": lines})
        if not as_json:
            target.write(f"ante {int(g.ante)}, {line}\n")
            for row in lines:
                target.write(f"    {row}\n")
        batch = before
        batch.step(np.array([action]))
    g = batch.states[0]
    if as_json:
        end = {"ante": int(g.ante), "rounds": int(g.beaten), "won": bool(g.won), "money": int(g.money)}
        print_json({"game": game, **dataclasses.asdict(run), "steps": steps, "end": end})
    else:
        show(batch, target)
    return 0


def play(
    seed: str | None,
    *,
    deck: str,
    stake: str,
    last_ante: int,
    save: Path | None,
    player: str | None = None,
    runs: Path | None = None,
    source: IO[str] | None = None,
    out: IO[str] | None = None,
) -> int:
    """Plays a run with whoever is at the terminal; `player` gives hints: if none is named, our network."""
    if not 8 <= last_ante <= 12:
        raise ConfigError(f"last-ante is {last_ante}; it must be in 8..12")
    if save is not None and (save.exists() or not save.parent.is_dir()):
        raise ConfigError(f"save is {str(save)!r}, which exists or has no folder; name another file")
    used = check_seed(seed) if seed is not None else seed_text(secrets.randbelow(35**8))
    start = SavedRun(used, deck, stake, last_ante)
    session = Session(start, source or sys.stdin, out or sys.stdout, _adviser(player, runs))
    try:
        session.play()
    finally:
        if save is not None:
            saved.write(session.run(), save)
            (out or sys.stdout).write(f"written to {save}\n")
    return 0


def play_numbered(seed: int | None, save: Path | None, player: str | None, runs: Path | None) -> int:
    """`alea play balatro`: the run of a number, Red Deck, White Stake."""
    text_seed = None if seed is None else seed_text(seed)
    return play(text_seed, deck="Red Deck", stake="White", last_ante=8, save=save, player=player, runs=runs)


def _adviser(player: str | None, runs: Path | None) -> Callable[[Batch, int], np.ndarray]:
    """Who gives hints. Who is named is loaded now, so that a wrong name is said; our network when it is first asked."""
    from aleazero.cli.mcp import player_of
    from aleazero.host_players import best_known

    if player is not None:
        return player_of(player, runs)
    ours = functools.cache(lambda: player_of(best_known(NAME, "expectimax"), runs))
    return lambda batch, move: ours()(batch, move)


def bench(seconds: float, rounds: int, compiling: bool, as_json: bool) -> int:
    """Measures."""
    if seconds <= 0 or rounds < 1:
        raise ConfigError(f"seconds is {seconds} and rounds {rounds}; both must be more than 0")
    report: dict[str, Any] = {
        "cores": measure.cores(),
        **measure.two_threads(seconds, rounds),
        "memory": measure.memory(),
        "players": measure.runs_per_hour({"random": 20_000, "greedy": 2_000}, rounds),
    }
    if compiling:
        report["compiling"] = measure.compiling()
    if as_json:
        print_json(report)
        return 0
    for name in ("random", "charmed"):
        row, factor = report[name], report[name]["cores_factor"]
        bare = f"{row['decisions_per_processor_second']:,.0f} and {row['cores_factor_by_processor_time']:.2f} times"
        print(
            f"{name:9}{row['decisions_per_second']:11,.0f} decisions/s on one thread, mean ante {row['mean_ante']:.2f}"
        )
        print(f"{'':9}{factor:11.2f} times that on {report['cores']} cores; by processor time {bare}")
    room = report["memory"]
    seen = room["with_observation_megabytes"]
    print(f"memory   {room['megabytes']:.1f} MB for {room['games']} games, {seen:.1f} MB with an observation of all")
    for name, row in report["players"].items():
        print(f"{name:9}{row['games_per_hour']:11,.0f} runs an hour on all cores, mean ante {row['mean_ante']:.3f}")
    for name, row in report.get("compiling", {}).items():
        print(f"{name:10} {row['seconds']:.1f} s ({row['cpu_seconds']:.1f} s of CPU)")
    return 0


def fuzz(decisions: int, seed: int, sample: int, as_json: bool) -> int:
    """Makes random decisions."""
    if decisions < 1 or sample < 0:
        raise ConfigError(f"decisions is {decisions} and sample {sample}; at least 1 and 0 are needed")
    found = fuzzing.fuzz(decisions, seed, sample_runs=sample)
    if as_json:
        print_json({**dataclasses.asdict(found), "fine": found.fine})
    else:
        antes = f"antes to {found.highest_ante}, mean {found.mean_ante:.2f}"
        met = f"{found.decks} decks and {found.stakes} stakes"
        print(f"{found.decisions} decisions in {found.runs} runs of {met}, {antes}")
        print(f"laws broken: {found.broken or 'none'}; overflows: {found.overflows}; plain Python: {found.sample}")
    return 0 if found.fine else 1


def tables(file: Path) -> int:
    """Makes a document's tables anew."""
    try:
        before = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{str(file)!r} cannot be read: {error}") from error
    file.write_text(pages.fill(before), encoding="utf-8")
    return 0
