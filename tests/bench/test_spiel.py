"""OpenSpiel as a peer, for real: its rules, and its search with our network."""

from __future__ import annotations

import sys
from typing import Any

import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest

from aleazero.bench import spiel
from aleazero.core.errors import MissingExtra
from aleazero.core.game import GameSpec
from aleazero.core.records import Prediction

SIMULATIONS = 24


class Watched:
    """A state of OpenSpiel's that tells whose actions are applied to it."""

    def __init__(self, state: Any, made: list[bool]) -> None:
        self._state, self._made = state, made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    def apply_action(self, action: int) -> None:
        assert action in self._state.legal_actions()
        self._made.append(self._state.is_chance_node())
        self._state.apply_action(action)


def network(spec: GameSpec) -> tuple[Any, tuple[()]]:
    """Likes actions with high numbers; a position is worth 0.4 to who is to play."""

    def evaluate(weights: object, seen: jnp.ndarray) -> Prediction:
        assert seen.shape[1:] == spec.observation_shape
        rows = seen.shape[0]
        logits = jnp.broadcast_to(jnp.linspace(-1.0, 1.0, spec.num_actions)[None], (rows, spec.num_actions))
        return Prediction(logits, jnp.full(rows, 0.4))

    return evaluate, ()


@pytest.mark.parametrize("name", spiel.NAMES)
def test_random_play_counts_the_actions_of_players(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []
    begun: list[Watched] = []
    game = pyspiel.load_game(spiel.NAMES[name])

    class Game:
        def new_initial_state(self) -> Watched:
            begun.append(Watched(game.new_initial_state(), made))
            return begun[-1]

    monkeypatch.setattr(pyspiel, "load_game", lambda name: Game())
    case = spiel.random_play(name)
    case.call(0)
    assert made.count(False) == case.work
    assert (made.count(True) > 10) == (name in ("backgammon", "pig"))
    assert all(state.is_terminal() for state in begun[:-1])
    assert len(begun) > 10 or name not in ("tictactoe", "connect_four")  # a game that ends is followed by another


@pytest.mark.parametrize("name", ["backgammon", "tictactoe"])
def test_its_search_evaluates_a_position_once_and_every_search_begins_anew(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[spiel.NetworkEvaluator] = []
    asked: list[GameSpec] = []

    class Kept(spiel.NetworkEvaluator):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)
            run = self._run
            self.runs = 0

            def counted(seen: Any) -> Any:
                self.runs += 1
                return run(seen)

            self._run = counted

    monkeypatch.setattr(spiel, "NetworkEvaluator", Kept)
    case = spiel.mcts(name, lambda spec: (asked.append(spec), network(spec))[1], SIMULATIONS, "its")
    (evaluator,) = made
    game = pyspiel.load_game(spiel.NAMES[name])
    assert (asked[0].num_actions, asked[0].max_plies) == (game.num_distinct_actions(), game.max_game_length())
    assert (case.name, case.unit, case.work) == ("its", "simulations", SIMULATIONS)
    for number in range(3):
        before = evaluator.runs
        case.call(8 * number)  # the same position each time
        evaluations = evaluator.runs - before
        assert evaluations == len(evaluator.seen)
        assert SIMULATIONS // 2 < evaluations <= SIMULATIONS


def test_values_are_both_players_in_points_and_policies_of_legal_actions() -> None:
    game = pyspiel.load_game("backgammon")
    evaluator = spiel.NetworkEvaluator(game, *network(spiel._spec("backgammon", game)))
    state = game.new_initial_state()
    assert evaluator.prior(state) == list(state.chance_outcomes())
    players = set()
    for seed in range(8):
        state = spiel._middle(game, seed)
        assert not state.is_chance_node()
        player = state.current_player()
        players.add(player)
        value = 0.4 * game.max_utility()
        assert np.allclose(evaluator.evaluate(state), [value, -value] if player == 0 else [-value, value])
        actions, chances = zip(*evaluator.prior(state), strict=True)
        assert list(actions) == state.legal_actions()
        assert sum(chances) == pytest.approx(1.0)
        assert list(chances) == sorted(chances)  # the network prefers higher actions
    assert players == {0, 1}


def test_games_and_the_package_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spiel.no_such_game("pig") is None
    assert "compare backgammon" in str(spiel.no_such_game("pgx:othello"))
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(MissingExtra, match=r"pip install 'aleazero\[peers\]'"):
        spiel.random_play("pig")
