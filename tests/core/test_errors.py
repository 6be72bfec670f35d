"""What errors say: the thing, the value, what is allowed, what to do."""

from __future__ import annotations

import pytest

from aleazero.core import errors
from aleazero.core.errors import AleaError, ConfigError, GameContractError, MissingExtra, UnknownName, explained


def test_every_error_can_be_caught_as_one():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert {kind.__name__ for kind in kinds} >= {"ConfigError", "GameContractError", "NotationError", "UnknownName"}
    assert all(issubclass(kind, AleaError) for kind in kinds)


def test_an_unknown_name_lists_the_known_and_the_nearest():
    error = UnknownName("search", "gumble", ["puct", "gumbel", "direct"])
    assert str(error) == "unknown search 'gumble': did you mean 'gumbel'? known: direct, gumbel, puct"


@pytest.mark.parametrize("name", ["zzz", ""])
def test_nothing_near_is_not_guessed(name):
    assert str(UnknownName("search", name, iter(["puct"]))) == f"unknown search {name!r}: known: puct"


def test_a_missing_extra_says_how_to_get_it():
    error = MissingExtra("game 'pgx:hex'", "pgx", "games")
    assert str(error) == "game 'pgx:hex' needs pgx, which is not installed: pip install 'aleazero[games]'"


def test_a_broken_contract_names_its_law():
    error = GameContractError("zero sum", "returns are [1.0, 0.0]")
    assert str(error) == "zero sum: returns are [1.0, 0.0]"
    assert (error.law, error.message) == ("zero sum", "returns are [1.0, 0.0]")


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (ConfigError("seed is -1"), 2, "it: seed is -1\n"),
        (AleaError("no room"), 1, "it: no room\n"),
        (KeyboardInterrupt(), 1, "it: stopped\n"),
    ],
)
def test_a_command_that_fails_says_why_in_a_line(
    raised: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> int:
        raise raised

    assert explained("it", command) == code
    assert capsys.readouterr() == ("", said)
    assert explained("it", lambda: 7) == 7
