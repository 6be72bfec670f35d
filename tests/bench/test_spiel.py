"""OpenSpiel as a peer, by a stand-in that keeps to its interface: it is no dependency, so the real one is not here."""

from __future__ import annotations

import sys
import types
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.bench import spiel
from aleazero.bench.cases import BenchError
from aleazero.core.game import GameSpec
from aleazero.core.records import Prediction

CHANCE, OVER = -1, -4


class State:
    """A coin, then two players in turn take 1 or 2 from a heap of 9; who takes the last wins."""

    def __init__(self, heap: int = 9, player: int = CHANCE) -> None:
        self.heap, self.player = heap, player

    def clone(self) -> State:
        return State(self.heap, self.player)

    def is_terminal(self) -> bool:
        return self.heap == 0

    def is_chance_node(self) -> bool:
        return self.player == CHANCE

    def current_player(self) -> int:
        return OVER if self.is_terminal() else self.player

    def chance_outcomes(self) -> list[tuple[int, float]]:
        assert self.is_chance_node()
        return [(0, 0.25), (1, 0.75)]

    def legal_actions(self, player: int | None = None) -> list[int]:
        assert not self.is_chance_node()
        return [1, 2] if self.heap > 1 else [1]

    def apply_action(self, action: int) -> None:
        if self.is_chance_node():
            self.player = action
            return
        assert action in self.legal_actions()
        self.heap, self.player = self.heap - action, 1 - self.player

    def observation_tensor(self, player: int) -> list[float]:
        assert player in (0, 1)
        return [float(self.heap), float(player)]


class Game:
    def new_initial_state(self) -> State:
        return State()

    def num_distinct_actions(self) -> int:
        return 3

    def observation_tensor_shape(self) -> list[int]:
        return [2]

    def max_game_length(self) -> int:
        return 9

    def max_utility(self) -> float:
        return 3.0


class MCTSBot:
    """Asks as OpenSpiel's does: the prior of a decision state, then the value of what follows."""

    made: ClassVar[list[MCTSBot]] = []

    def __init__(self, game: Game, uct_c: float, max_simulations: int, evaluator: Any, **more: Any) -> None:
        self.budget, self.evaluator, self.more, self.searched = max_simulations, evaluator, more, []
        MCTSBot.made.append(self)

    def mcts_search(self, state: State) -> object:
        self.searched.append(state.heap)
        for _ in range(self.budget):
            prior = self.evaluator.prior(state)
            assert [action for action, _ in prior] == state.legal_actions()
            assert sum(chance for _, chance in prior) == pytest.approx(1.0)
            values = self.evaluator.evaluate(state)
            assert values.shape == (2,)
            assert values.sum() == 0
        return object()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    loaded: list[str] = []

    def load_game(name: str) -> Game:
        loaded.append(name)
        return Game()

    algorithms = types.ModuleType("open_spiel.python.algorithms.mcts")
    algorithms.MCTSBot = MCTSBot  # type: ignore[attr-defined]
    algorithms.SearchNode = types.SimpleNamespace(puct_value="puct")  # type: ignore[attr-defined]
    package = types.ModuleType("pyspiel")
    package.load_game = load_game  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyspiel", package)
    for name in ("open_spiel", "open_spiel.python", "open_spiel.python.algorithms"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "open_spiel.python.algorithms.mcts", algorithms)
    return loaded


def test_random_play_counts_the_actions_of_players(installed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    apply = State.apply_action

    def counted(state: State, action: int) -> None:
        made.append(state.is_chance_node())
        apply(state, action)

    monkeypatch.setattr(State, "apply_action", counted)
    case = spiel.random_play("tictactoe")
    assert installed == ["tic_tac_toe"]
    case.call(0)
    assert made.count(False) == case.work
    assert made.count(True) > 10  # games that ended were followed by others
    assert case.unit == "steps"


def test_its_search_asks_a_network_of_its_own_shape(installed: list[str]) -> None:
    asked: list[GameSpec] = []

    def network(spec: GameSpec):  # type: ignore[no-untyped-def]
        asked.append(spec)

        def evaluate(weights: object, seen: jnp.ndarray) -> Prediction:
            return Prediction(jnp.zeros((seen.shape[0], 3)), seen[:, 0] / 10)

        return evaluate, ()

    case = spiel.mcts("backgammon", network, 5, "open_spiel puct 5")
    assert (asked[0].num_actions, asked[0].observation_shape) == (3, (2,))
    bot = MCTSBot.made.pop()
    case.call(0)
    case.call(1)
    assert (case.work, bot.budget, len(bot.searched)) == (5, 5, 2)
    assert bot.more["child_selection_fn"] == "puct"
    assert bot.more["dont_return_chance_node"] is True
    state = State(heap=4, player=1)
    assert np.allclose(bot.evaluator.evaluate(state), [-1.2, 1.2])  # 0.4 of 3 points for who is to play


def test_games_and_the_package_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spiel.no_such_game("pig") is None
    assert "compare backgammon" in str(spiel.no_such_game("pgx:othello"))
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(BenchError, match="pip install open_spiel"):
        spiel.random_play("pig")
