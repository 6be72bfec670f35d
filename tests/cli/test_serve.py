"""`alea serve`: it listens, answers, ends when it is told to, and says what is wrong before it listens."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from aleazero.cli.main import run
from aleazero.cli.serve import REHEARSAL

ROOT = Path(__file__).parents[2]


def test_it_answers_until_it_is_interrupted() -> None:
    # A shell that starts tests in the background may have told them to ignore interrupts; children inherit that.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from aleazero.cli.main import main; main('serve backgammon --player random --port 0'.split())"
    )
    environment = os.environ | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            found = re.fullmatch(
                r"random plays backgammon on (127\.0\.0\.1):(\d+); in gnubg: set player 0 external \1:\2\n", said
            )
            assert found, said
            address = found[1], int(found[2])
            with socket.create_connection(address, timeout=120) as there, there.makefile("r") as answers:
                there.sendall(b"nonsense\n" + REHEARSAL.encode() + b"\n")
                assert answers.readline().startswith("Error: 'nonsense' is not understood")
                assert "/" in answers.readline()
                process.send_signal(signal.SIGINT)  # while somebody is connected
                out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 0
    assert out == "stopped\n"
    assert "'nonsense' is not understood" in err
    assert "Traceback" not in err


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert run(["serve", "backgammon", "--player", "random", "--port", str(port)]) == 2
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["backgammon", "--port", "70000"], "port is 70000; it must be in 0..65535"),
        (["backgammon", "--port", "-1"], "port is -1"),
        (["backgammon", "--port", "x"], "port"),
        (["backgammon", "--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid:1234"),
        (["tictactoe"], "game is 'tictactoe'; GNU Backgammon plays backgammon"),
        (["backgammon", "--player", "rndom"], "did you mean 'random'"),
    ],
)
def test_misuse_exits_with_2(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    player = [] if "--player" in arguments else ["--player", "random"]
    assert run(["serve", *arguments, *player]) == 2
    assert why in " ".join(capsys.readouterr().err.split())
