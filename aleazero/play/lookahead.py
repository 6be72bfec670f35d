"""Looking ahead in games for one with sampled chance: actions are tried in futures drawn anew, and the best is played.

The root is Gumbel's (Danihelka et al. 2022) without its noise, which is for training: the likeliest actions are tried,
and halved in rounds. Each trial takes the position with a *fresh random stream* (`HostGame.reseed`), plays the
candidate and then what the policy likes best for some decisions, and ends with the network's value; its futures are
never the one that the game will have. All candidates of a lane meet the same futures, so that luck does not choose
between them. Nothing is tried that could not be chosen: the only action, and those so unlikely that no value lifts
them above the likeliest. Knows the contract of host games, a network's signature and what decisions are paid; no rules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from aleazero.core.errors import ConfigError
from aleazero.core.game import HostGame
from aleazero.core.records import Evaluate, Weights
from aleazero.play.asked import distinct, logits_of, values_of
from aleazero.play.past import Past
from aleazero.play.rewards import RewardConfig, pay

_VISIT, _SCALE = 50.0, 0.1  # of the paper's transform of values: what a visit adds, and the scale
_LEAST = 1.0  # points between the best and the worst: where there are fewer, few futures cannot tell them apart


@dataclasses.dataclass(frozen=True)
class LookAhead:
    """How far, and how often, one looks."""

    candidates: int = 4  # actions tried at the root
    samples: int = 4  # futures of each in the first round; twice as many in each round after
    depth: int = 8  # decisions of a trial, the candidate's included

    def __post_init__(self) -> None:
        problems = [
            f"{field.name} is {getattr(self, field.name)}; it must be at least 1"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) < 1
        ]
        if problems:
            raise ConfigError("\n".join(problems))


@dataclasses.dataclass(frozen=True)
class Looking:
    """A player that looks ahead, in games that it follows from their start. Holds no games, but what it saw of them."""

    game: HostGame
    evaluate: Evaluate
    weights: Weights
    rewards: RewardConfig
    gamma: float
    config: LookAhead
    seed: int = 0
    history: int = 0  # earlier observations that the network is shown, too
    _past: list[Past] = dataclasses.field(default_factory=list)  # of the batch that is followed

    def choose(self, states: Any, move: int) -> np.ndarray:
        """Actions `[B]`; 0 where a game is over."""
        legal = self.game.legal_actions(states)
        chosen = np.zeros(len(legal), np.int64)
        going = np.flatnonzero(legal.any(-1))
        if not self._past or move == 0:
            self._past[:] = [Past(len(legal), self.game.spec.observation_shape, self.history)]
        past = self._past[0]
        if len(going):
            rng, here = np.random.default_rng([self.seed, move]), past.take(going)
            chosen[going] = self._choose(self.game.take(states, going), here, legal[going], rng)
            past.put(going, here)
        return chosen

    def _choose(self, states: Any, past: Past, legal: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        lanes, width = legal.shape[0], min(self.config.candidates, legal.shape[1])
        seen = self.game.observe(states)
        logits = np.where(legal, logits_of(self.evaluate, self.weights, past.beside(seen)), -np.inf)
        past.add(seen)
        tried = np.argsort(-logits, axis=1, kind="stable")[:, :width]  # [B, M], the likeliest first
        prior = np.take_along_axis(logits, tried, 1)
        open_ = prior > prior[:, :1] - self._reach(width)
        open_ &= open_.sum(1, keepdims=True) > 1
        if not open_.any():
            return tried[:, 0]
        total, visits = np.zeros(prior.shape), np.zeros(prior.shape)
        samples, left = self.config.samples, width
        while True:
            lane, place = np.nonzero(open_)
            # The same seeds for all candidates of a lane.
            seeds = rng.integers(0, 2**63, (lanes, samples), np.uint64)[lane]
            trials = np.repeat(lane, samples), np.repeat(tried[lane, place], samples), seeds.ravel()
            worth = self._try(states, past, *trials)
            total[lane, place] += worth.reshape(-1, samples).sum(1)
            visits[lane, place] += samples
            score = self._score(prior, total, visits, open_)
            if left <= 2:
                return np.take_along_axis(tried, score.argmax(1)[:, None], 1)[:, 0]
            left, samples = -(-left // 2), 2 * samples
            rank = np.argsort(np.argsort(-score, axis=1), axis=1)
            open_ &= rank < left

    def _reach(self, width: int) -> float:
        """How much less likely, in logits, an action may be that is chosen all the same."""
        visits, left, samples = self.config.samples, width, self.config.samples
        while left > 2:
            left, samples = -(-left // 2), 2 * samples
            visits += samples
        return (_VISIT + visits) * _SCALE

    def _score(self, prior: np.ndarray, total: np.ndarray, visits: np.ndarray, open_: np.ndarray) -> np.ndarray:
        """The root's score: prior, and values between the lane's least and most."""
        value = total / np.maximum(visits, 1)
        least = np.where(visits > 0, value, np.inf).min(1, keepdims=True)
        most = np.where(visits > 0, value, -np.inf).max(1, keepdims=True)
        shown = (value - least) / np.maximum(most - least, _LEAST)
        return np.where(open_, prior + (_VISIT + visits.max(1, keepdims=True)) * _SCALE * shown, -np.inf)

    def _try(self, states: Any, past: Past, lanes: np.ndarray, actions: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        """What each action brings in one future, `[n]`."""
        game, past = self.game, past.take(lanes)
        now = game.reseed(game.take(states, lanes), seeds)
        brought, over, factor = np.zeros(len(lanes)), np.zeros(len(lanes), bool), 1.0
        for depth in range(self.config.depth):
            before = game.measures(now)
            now = game.advance(now, np.where(over, 0, actions), ~over)
            status = game.status(now)
            terms = pay(self.rewards, self.gamma, status.rewards[:, 0], before, game.measures(now), status.terminated)
            brought += np.where(over, 0.0, factor * np.sum(list(terms.values()), axis=0))
            over, factor = over | status.terminated, factor * self.gamma
            if over.all() or depth == self.config.depth - 1:
                break
            seen = game.observe(now)
            actions = np.where(game.legal_actions(now), self._ask(logits_of, past.beside(seen), over), -np.inf).argmax(
                1
            )
            past.add(seen)
        if over.all():
            return brought
        rest = self._ask(values_of, past.beside(game.observe(now)), over)
        return brought + np.where(over, 0.0, factor * rest)

    def _ask(self, ask: Callable[..., np.ndarray], shown: np.ndarray, over: np.ndarray) -> np.ndarray:
        """The network about every trial that goes on; about those that are still alike, as they are until chance
        has spoken, once. Where a trial is over the answer means nothing."""
        rows, where = distinct(shown[~over])
        answers = ask(self.evaluate, self.weights, rows)
        found = np.zeros((len(shown), *answers.shape[1:]), answers.dtype)
        found[~over] = answers[where]
        return found
