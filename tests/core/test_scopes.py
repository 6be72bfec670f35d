from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from aleazero.core.scopes import PARTS, Part, part, part_of
from aleazero.games.registry import make_game


@pytest.fixture(autouse=True)
def named() -> Iterator[None]:
    """No program is taken that was kept under other names."""
    jax.config.update("jax_compilation_cache_include_metadata_in_key", True)
    yield
    jax.config.update("jax_compilation_cache_include_metadata_in_key", False)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("jit(run)/alea.search/while/body/vmap(alea.rules)/add", "rules"),
        ("jit(run)/alea.search/while/body/alea.rules/closed_call/alea.network/dot_general", "network"),
        ("jit(updates)/while/body/transpose(jvp(alea.update))/mul", "update"),
        ("jit(run)/while/body/add", None),
        ("jit(run)/search/alea.searching/add", None),
        ("", None),
    ],
)
def test_the_innermost_name_counts(path: str, found: Part | None) -> None:
    assert part_of(path) == found


def names(function: object, *arguments: object) -> set[Part | None]:
    """Of all operations that are compiled."""
    text = jax.jit(function).lower(*arguments).compile().as_text()  # type: ignore[arg-type]
    return {
        part_of(line.partition('op_name="')[2].partition('"')[0]) for line in text.splitlines() if "fusion(" in line
    }


@pytest.mark.parametrize("name", PARTS)
def test_programs_keep_the_names_of_what_they_compute_whichever_way_they_are_given(name: Part) -> None:
    @part(name)
    def decorated(x: jax.Array) -> jax.Array:
        return jnp.tanh(x) + 1

    def within(x: jax.Array) -> jax.Array:
        with part(name):
            return jnp.tanh(x) + 1

    for function in (decorated, within, jax.vmap(decorated), jax.grad(lambda x: decorated(x).sum())):
        assert names(function, jnp.ones(64)) == {name}
    assert decorated.__name__ == "decorated"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tictactoe", "pig", "backgammon", "pgx:tic_tac_toe"])
def test_what_rules_compute_is_theirs_whoever_asks(name: str) -> None:
    game = make_game(name)

    def ask(state: Any) -> object:
        with part("search"):
            return game.observe(state), game.legal_list(state), game.pack(state)

    assert names(ask, game.init(jax.random.key(0))) == {"rules"}
