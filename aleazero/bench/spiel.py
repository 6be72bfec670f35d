"""OpenSpiel as a peer: its rules and its own Monte-Carlo tree search, one state at a time on the host.

Its search is the Python one that its AlphaZero uses (PUCT, chance nodes passed through), with a network of the same
size as ours, asked for one position at a time as that search asks; as there, a position is evaluated once in a search,
though the search asks first for its value and later for its policy. In its backgammon an action is a whole turn (half
of one, if a double is rolled), so a step there does more than one of ours. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from aleazero.bench.cases import Case
from aleazero.core.errors import MissingExtra
from aleazero.core.game import GameSpec, Outcome
from aleazero.core.records import Evaluate, Weights

NAMES = {
    "backgammon": "backgammon",
    "connect_four": "connect_four",
    "pig": "pig",
    "quoridor": "quoridor",
    "tictactoe": "tic_tac_toe",
}
_STEPS = 200  # of random play in one call
_BEFORE = 4  # random actions before a search
_EXPLORATION = 1.25


def no_such_game(name: str) -> str | None:
    """Why a game cannot be compared with OpenSpiel; None where it can."""
    return None if name in NAMES else f"OpenSpiel is not asked for {name}: compare {', '.join(sorted(NAMES))}"


def need() -> Any:
    """The package."""
    try:
        return importlib.import_module("pyspiel")
    except ImportError as error:
        raise MissingExtra("--compare open_spiel", "open_spiel", "peers") from error


def random_play(name: str) -> Case:
    """Steps of random play, one game after another; a step is one action of a player, as OpenSpiel counts actions."""
    game, random = need().load_game(NAMES[name]), np.random.default_rng(0)

    def call(number: int) -> None:
        state, made = game.new_initial_state(), 0
        while made < _STEPS:
            if state.is_terminal():
                state = game.new_initial_state()
            elif state.is_chance_node():
                state.apply_action(_draw(random, state.chance_outcomes()))
            else:
                legal = state.legal_actions()
                state.apply_action(legal[random.integers(len(legal))])
                made += 1

    return Case("open_spiel", "steps", _STEPS, call)


def mcts(name: str, make_network: Callable[[GameSpec], tuple[Evaluate, Weights]], simulations: int, label: str) -> Case:
    """One search from a position some way into a game; a simulation is one evaluation, or a finished game."""
    game = need().load_game(NAMES[name])
    algorithms = importlib.import_module("open_spiel.python.algorithms.mcts")
    evaluator = NetworkEvaluator(game, *make_network(_spec(name, game)))
    bot = algorithms.MCTSBot(
        game,
        _EXPLORATION,
        simulations,
        evaluator,
        solve=False,
        random_state=np.random.RandomState(0),
        child_selection_fn=algorithms.SearchNode.puct_value,
        dont_return_chance_node=True,
    )
    states = [_middle(game, seed) for seed in range(8)]

    def call(number: int) -> None:
        evaluator.seen.clear()  # the same few positions are searched again and again, which no game does
        bot.mcts_search(states[number % len(states)])

    return Case(label, "simulations", simulations, call)


class NetworkEvaluator:
    """What OpenSpiel's search asks of a network; `evaluate` and `prior` of one position cost one evaluation."""

    def __init__(self, game: Any, evaluate: Evaluate, weights: Weights) -> None:
        self._run = jax.jit(lambda observation: evaluate(weights, observation))
        self._scale, self._shape = float(game.max_utility()), (1, *game.observation_tensor_shape())
        self.seen: dict[bytes, Any] = {}  # predictions of this search, by observation

    def _ask(self, state: Any) -> Any:
        observation = np.asarray(state.observation_tensor(state.current_player()), np.float32)
        key = observation.tobytes()
        if key not in self.seen:
            self.seen[key] = jax.tree.map(np.asarray, self._run(observation.reshape(self._shape)))
        return self.seen[key]

    def evaluate(self, state: Any) -> np.ndarray:
        """Both players' values."""
        value = float(self._ask(state).value[0]) * self._scale
        return np.array([value, -value] if state.current_player() == 0 else [-value, value])

    def prior(self, state: Any) -> list[tuple[int, float]]:
        """Chances of the legal actions."""
        if state.is_chance_node():
            return list(state.chance_outcomes())
        legal = state.legal_actions()
        logits = self._ask(state).logits[0][legal]
        chances = np.exp(logits - logits.max())
        return list(zip(legal, (chances / chances.sum()).tolist(), strict=True))


def _spec(name: str, game: Any) -> GameSpec:
    """The facts that a network needs."""
    return GameSpec(
        name=name,
        version=1,
        num_players=2,
        num_actions=game.num_distinct_actions(),
        max_legal=game.num_distinct_actions(),
        observation_shape=tuple(game.observation_tensor_shape()),
        outcomes=(Outcome("win", 1.0), Outcome("loss", -1.0)),
        max_plies=game.max_game_length(),
    )


def _middle(game: Any, seed: int) -> Any:
    """A decision state a few actions into a random game; none of the games can end so soon."""
    random, state, made = np.random.default_rng(seed), game.new_initial_state(), 0
    while made < _BEFORE or state.is_chance_node():
        if state.is_chance_node():
            state.apply_action(_draw(random, state.chance_outcomes()))
        else:
            legal = state.legal_actions()
            state.apply_action(legal[random.integers(len(legal))])
            made += 1
    return state


def _draw(random: np.random.Generator, outcomes: list[tuple[int, float]]) -> int:
    actions, chances = zip(*outcomes, strict=True)
    return int(random.choice(actions, p=np.asarray(chances) / np.sum(chances)))
