"""Games as files: what is written, letter by letter, and GNU Backgammon's own reading of it."""

from __future__ import annotations

import functools
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from aleazero.engines.gnubg_program import DEBIAN_PLACE
from aleazero.games.backgammon.files import (
    NAME,
    WRITERS,
    GameRecord,
    Step,
    TurnRecord,
    record_turn,
    write_mat,
    write_sgf,
)
from aleazero.games.backgammon.game import MIXED, OPENINGS, ROLLS, Backgammon
from aleazero.games.backgammon.notation import position_id, read
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")

GNUBG = shutil.which("gnubg") or str(DEBIAN_PLACE)
debian = pytest.mark.skipif(not Path(GNUBG).exists(), reason="Debian's gnubg is not installed")
GAME = Backgammon()

SHORT = GameRecord(
    names=("run:a b", "gnubg:ply=0"),
    turns=(
        TurnRecord(1, (3, 1), (Step(8, 5), Step(6, 5))),
        TurnRecord(0, (6, 2), (Step(24, 18), Step(13, 11))),
        TurnRecord(1, (6, 1), (Step(13, 7, True), Step(8, 7))),
        TurnRecord(0, (5, 5), ()),
        TurnRecord(1, (2, 1), (Step(6, 4), Step(24, 23))),
        TurnRecord(0, (6, 3), (Step(25, 22),)),
    ),
)


def test_match_text_line_by_line() -> None:
    assert write_mat(SHORT).splitlines() == [
        " 0 point match",
        "",
        " Game 1",
        " run_a_b : 0                    gnubg_ply=0 : 0",
        "  1)                             31: 8/5 6/5",
        "  2) 62: 24/18 13/11             61: 13/7* 8/7",
        "  3) 55: Cannot Move             21: 6/4 24/23",
        "  4) 63: 25/22",
    ]


def test_sgf_letter_by_letter() -> None:
    head, *turns = write_sgf(SHORT).splitlines()
    assert head.startswith("(;FF[4]GM[6]")
    assert "MI[length:0][game:0][ws:0][bs:0]PW[run_a_b]PB[gnubg_ply=0]RU[NoCube]" in head
    assert "RE[" not in head
    assert turns == [";B[31qtst]", ";W[62xrmk]", ";B[61lrqr]", ";W[55]", ";B[21suab]", ";W[63yv])"]


@pytest.mark.parametrize(
    ("seat", "points", "resigned", "mat", "sgf"),
    [
        (0, 1, False, "      Wins 1 point", "RE[W+1]"),
        (1, 2, False, " " * 34 + "Wins 2 points", "RE[B+2]"),
        (1, 1, True, " " * 34 + "Wins 1 point", "RE[B+1R]"),
    ],
)
def test_results(seat: int, points: int, resigned: bool, mat: str, sgf: str) -> None:
    record = GameRecord(SHORT.names, SHORT.turns[:2], seat, points, resigned)
    assert write_mat(record).splitlines()[-1] == mat
    assert sgf in write_sgf(record)


def test_names_stay_within_their_fields() -> None:
    record = GameRecord(("a]b)c\n;W[11ab", "ü : 3 " * 20), SHORT.turns)
    assert "PW[a_b_c__W_11ab]" in write_sgf(record)
    line = write_mat(record).splitlines()[3]
    found = re.fullmatch(r" (\S+) : 0 +(\S+) : 0", line)
    assert found
    assert len(found[2]) == NAME
    assert GameRecord(("", "x")).names[0] == ""
    assert write_mat(GameRecord(("", "x"))).splitlines()[3].split() == ["_", ":", "0", "x", ":", "0"]


def test_steps_of_a_turn() -> None:
    def steps(position: str, turn: str) -> TurnRecord:
        state = GAME.notation.parse_state(position)
        return record_turn(state, GAME.notation.parse_moves(state, turn))

    blots = "XGID=-a--a-E-C---dE---c-e----B-:0:0:-1:22:0:0:0:0:0"
    assert steps(blots.replace("-1:22", "1:51"), "6/1*") == TurnRecord(0, (5, 1), (Step(6, 1, True),))
    assert steps("XGID=-A---------------------aa-:0:0:-1:21:0:0:0:0:0", "2/off 1/off").seat == 1
    entering = steps("XGID=-a--a-E-C---dE---c-e----AA:0:0:1:42:0:0:0:0:0", "bar/21")
    assert [step.source for step in entering.steps] == [25]
    # The second of two checkers on the same point hits nobody any more.
    twice = steps("XGID=-a-a-D----------------m---:0:0:1:22:0:0:0:0:0", "5/3*(2)")
    assert [(step.target, step.hit) for step in twice.steps] == [(3, True), (3, False)]
    danced = steps(f"XGID=-A{'-' * 17}bbbbbbA:0:0:1:66:0:0:0:0:0", "pass")
    assert danced == TurnRecord(0, (6, 6), ())


# ---- GNU Backgammon reads them


@functools.cache
def jitted(name: str) -> Any:
    return jax.jit(getattr(GAME, name))


def wander(seed: int, limit: int) -> tuple[GameRecord, Any]:
    """A game of random moves, at most `limit` turns, and the state after the last one."""
    source = random.Random(seed)
    state = jitted("apply_chance")(jitted("init")(jax.random.key(0)), jnp.int32(source.randrange(OPENINGS)))
    turns: list[TurnRecord] = []
    while True:
        start, actions = state, []
        while not state.is_chance and not state.terminated:
            actions.append(source.choice([int(a) for a in jitted("legal_list")(state) if a >= 0]))
            state = jitted("apply_action")(state, jnp.int32(actions[-1]))
        turns.append(record_turn(start, actions))
        if state.terminated or len(turns) == limit:
            break
        weights = [2] * MIXED + [1] * (len(ROLLS) - MIXED)
        state = jitted("apply_chance")(state, jnp.int32(source.choices(range(len(ROLLS)), weights)[0]))
    over = bool(state.terminated)
    points = int(abs(state.returns[0]))
    return GameRecord(("one", "two"), tuple(turns), int(state.to_play) if over else None, points), state


@debian
@pytest.mark.parametrize(("seed", "limit"), [(0, 999), (2, 40), (3, 41), (5, 1)])
def test_gnubg_reads_both_formats(seed: int, limit: int, tmp_path: Path) -> None:
    """Without complaint; it sees the same last position and, in both, the same moves."""
    record, last = wander(seed, limit)
    here = read(last)
    (tmp_path / "game.mat").write_text(write_mat(record))
    ours = tokens(tmp_path / "game.mat")
    assert len(ours) == len(record.turns) + (record.winner is not None)
    for suffix, load in ((".mat", "import mat"), (".sgf", "load match")):
        file, again = tmp_path / f"game{suffix}", tmp_path / f"again{suffix}"
        file.write_text(WRITERS[suffix](record))
        done = subprocess.run(
            [GNUBG, "-t", "-q", "-r"],
            input=f"{load} {file}\nshow board\nexport match mat {again}\n",
            env={"HOME": str(tmp_path), "LC_ALL": "C"},
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        assert not re.search("warning|invalid|illegal|error|failed", done.stdout + done.stderr, re.IGNORECASE)
        seen = re.findall(r"Position ID: (\S+)", done.stdout)
        assert seen[-1] == position_id(here.theirs[::-1][1:], here.mine[1:])
        assert tokens(again) == ours


def tokens(file: Path) -> list[str]:
    """Dice, moves in any order within a turn, hits and the result of a .mat."""
    body = file.read_text().partition(" : 0")[2].partition("\n")[2].replace("Cannot Move", "")
    turns = re.split(r"(?=\b[1-6][1-6]: )|(?=Wins)", re.sub(r"\d+\) ", "", body))
    return [" ".join(sorted(turn.replace("*", " * ").split())) for turn in turns if turn.strip()]
