"""The checks, from the contract to perfect play. Each takes a patient and says what it saw, fails or is skipped.

Positions come from random play, so every check works on any game; those that need a kind of position the game does
not have (a chance node, a player who moves twice) say so.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.game import Game, HostGame
from aleazero.core.keys import Role, lane_keys
from aleazero.core.records import Evaluate
from aleazero.doctor import CheckFailed, CheckSkipped
from aleazero.doctor.evaluators import IGNORANT, OPINIONATED, UNDECIDED, hashed
from aleazero.doctor.exact import solved_check
from aleazero.doctor.recount import recount
from aleazero.games.conformance import check_game
from aleazero.games.host_conformance import check_host_game
from aleazero.games.wander import Steps, wander
from aleazero.search.build import Search, SearchResult, build_search
from aleazero.search.reuse import regrow
from aleazero.search.settings import Knobs, SearchConfig, make_knobs
from aleazero.search.tree import Tree

LANES = 16  # positions searched at once
TREE = 96  # simulations in a tree that is recounted


@dataclasses.dataclass(frozen=True)
class Patient:
    """A game under examination, with positions of random play and compiled searches, made once."""

    game: Game

    @functools.cached_property
    def steps(self) -> Steps:
        """Plies of random play, `[n, ...]`, on the host."""
        lanes, plies = 64, 200
        steps = jax.device_get(wander(self.game, lanes=lanes, plies=plies, seed=1))
        return jax.tree.map(lambda x: x.reshape(lanes * plies, *x.shape[2:]), steps)

    @functools.cached_property
    def decides(self) -> np.ndarray:
        """`[n]` bool: rows where a player acts."""
        return np.asarray(self.steps.action) >= 0

    def positions(self, rows: np.ndarray, reason: str, count: int = LANES) -> Any:
        """`count` states spread over the rows where `rows` `[n]` holds; skips the check where there are none."""
        found = np.flatnonzero(rows)
        if not len(found):
            raise CheckSkipped(reason)
        chosen = found[np.linspace(0, len(found) - 1, count).astype(int)]
        return jax.tree.map(lambda x: x[chosen], self.steps.state)

    def search(self, **settings: Any) -> Search:
        """A search over the game."""
        return build_search(self.game, SearchConfig(**settings))

    @functools.cached_property
    def refutes(self) -> bool:
        """Whether looking at every reply to every move is affordable."""
        spec = self.game.spec
        return spec.num_players == 2 and spec.max_legal <= 16 and spec.chance == "none"

    @functools.cached_property
    def budget(self) -> int:
        """Simulations that try every action and then some."""
        return max(64, 2 * self.game.spec.max_legal)

    @functools.cached_property
    def evaluate(self) -> Evaluate:
        """The evaluator of every check."""
        return hashed(self.game)

    @functools.cache  # noqa: B019 - lives as long as the examination
    def compiled(self, kind: str, chance: str = "sampled", in_flight: int = 1) -> tuple[Search, Any]:
        """A search, and it compiled as `(states, keys, knobs, loudness) -> (tree, result)`; one serves many checks."""
        room = (
            max(TREE, self.budget, 4 * self.game.spec.max_legal**2 if self.refutes else 0) if kind == "puct" else TREE
        )
        search = self.search(kind=kind, chance=chance, in_flight=in_flight, max_simulations=room)

        def run(states: Any, keys: Array, knobs: Knobs, loudness: Array) -> tuple[Tree, SearchResult]:
            tree = search.plant(self.evaluate, loudness, states, keys, knobs)
            tree = search.grow(self.evaluate, loudness, tree, knobs)
            return tree, search.result(tree, knobs)

        return search, jax.jit(run)

    def run(
        self, states: Any, simulations: int, *, kind: str = "puct", chance: str = "sampled", in_flight: int = 1,
        loudness: np.ndarray = OPINIONATED, **knobs: Any,
    ) -> tuple[Search, Tree, SearchResult]:  # fmt: skip
        """Searches from states `[B]` by a shared compiled search."""
        search, run = self.compiled(kind, chance, in_flight)
        settings = make_knobs(search.plan.config, simulations=simulations, **knobs)
        return search, *run(states, keys_for(states), settings, loudness)


def keys_for(states: Any) -> Array:
    """A key per lane."""
    return _keys(jnp.arange(states.to_play.shape[0]))


@jax.jit
def _keys(lanes: Array) -> Array:
    return lane_keys(0, Role.SEARCH, 0, lanes)


# ---- rules


def contract(patient: Patient) -> str:
    """The laws of the game contract."""
    report = check_game(patient.game)
    return ", ".join([f"{report.positions} positions, {report.games} games ended", *report.warnings])


def host_contract(game: HostGame) -> str:
    """The laws of the contract for rules on the host."""
    report = check_host_game(game)
    return ", ".join([f"{report.positions} positions, {report.games} games ended", *report.warnings])


# ---- searches


def win_in_one(patient: Patient) -> str:
    """PUCT that knows nothing takes a win that is there, and keeps visiting it."""
    steps = patient.steps
    winners = np.asarray(steps.after.terminated) & patient.decides
    mover = np.asarray(steps.state.to_play)
    winners &= np.take_along_axis(np.asarray(steps.after.returns), mover[:, None].astype(int), -1)[:, 0] > 0
    states = patient.positions(winners, "no game was won by the player who moved")
    _, _, result = patient.run(states, patient.budget, loudness=IGNORANT)
    points = final_points(patient.game, states, result.action)
    missed = ~(points > 0)
    if missed.any():
        raise CheckFailed(
            f"{missed.sum()} of {len(missed)} wins in one were missed, as in {text_of(patient, states, missed)}"
        )
    visits = np.asarray(result.visits)
    winning, _, _ = jax.jit(jax.vmap(functools.partial(_wins, patient.game)))(states)
    share = (visits[:, : winning.shape[1]] * np.asarray(winning)).sum(-1) / visits.sum(-1)  # there may be several
    forced = (np.asarray(result.actions) >= 0).sum(-1) == 1
    if (share[~forced] < 0.3).any():
        raise CheckFailed(
            f"a win in one keeps only {share.min():.0%} of the visits: revisits of finished games are lost"
        )
    return f"{len(missed)} positions, the win keeps {share.mean():.0%} of {patient.budget} visits"


def block_in_one(patient: Patient) -> str:
    """PUCT that knows nothing does not hand the other player a win in one."""
    if not patient.refutes:
        raise CheckSkipped("looks at every reply to every move: two players, at most 16 actions, no chance")
    safe, threatened = safe_actions(patient)
    states = patient.positions(threatened, "random play met no position where one side must stop a win")
    rows = np.flatnonzero(threatened)
    rows = rows[np.linspace(0, len(rows) - 1, LANES).astype(int)]
    _, _, result = patient.run(states, 4 * patient.game.spec.max_legal**2, loudness=IGNORANT)
    missed = ~safe[rows, np.asarray(result.edge)]
    if missed.any():
        raise CheckFailed(
            f"{missed.sum()} of {LANES} threats were not stopped, as in {text_of(patient, states, missed)}"
        )
    return f"{LANES} positions"


def recounted(patient: Patient) -> str:
    """Every number in a tree, worked out again from the states alone."""
    game = patient.game
    states = patient.positions(patient.decides, "random play met no decision")
    modes = ["sampled", "exact"] if game.spec.chance == "explicit" else ["sampled"]
    trees = 0
    for kind in ("puct", "gumbel"):
        for mode in modes:
            search, tree, _ = patient.run(states, TREE, kind=kind, chance=mode)
            problems = recount(search.plan, tree, patient.evaluate, OPINIONATED)
            if problems:
                raise CheckFailed(f"{kind} search, {mode} chance: " + "; ".join(problems))
            trees += LANES
    return f"{trees} trees of {TREE} simulations"


def kept_subtree(patient: Patient) -> str:
    """A subtree that is kept describes the position it is kept for, to the last visit."""
    game, evaluate, budget = patient.game, patient.evaluate, 64
    if game.spec.chance != "none":
        raise CheckSkipped("needs a game whose moves decide what follows")
    states = patient.positions(patient.decides & ~np.asarray(patient.steps.after.terminated), "no game goes on")
    search = patient.search(max_simulations=budget, reuse=True)
    knobs = make_knobs(search.plan.config)

    @jax.jit
    def twice(states: Any, keys: Array) -> tuple[Tree, Array, Array]:
        tree = search.grow(evaluate, OPINIONATED, search.plant(evaluate, OPINIONATED, states, keys, knobs), knobs)
        result = search.result(tree, knobs)
        after = jax.vmap(game.apply_action)(states, result.action)
        tree = regrow(search, tree, (result.edge,), evaluate, OPINIONATED, after, keys, knobs)
        known = tree.stats[0, :, 0] - 1.0
        return search.grow(evaluate, OPINIONATED, tree, knobs), known, ~after.terminated

    tree, known, goes_on = twice(states, keys_for(states))
    lanes = np.flatnonzero(np.asarray(goes_on))
    problems = recount(search.plan, tree, evaluate, OPINIONATED, lanes=lanes, root_visits=False)
    kept, visits = np.asarray(known)[lanes], np.asarray(tree.stats)[0, lanes, 0]
    if not (kept > 0).any():
        problems.append("no lane kept anything")
    if (visits != 1 + kept + budget).any():
        problems.append("visits kept and visits made do not add up at the root")
    if problems:
        raise CheckFailed("; ".join(problems))
    return f"{int(kept.sum())} visits kept in {len(lanes)} lanes"


def moves_twice(patient: Patient) -> str:
    """Where a player moves twice running, the second move is still theirs."""
    states = patient.positions(patient.decides, "random play met no decision")
    search, tree, _ = patient.run(states, TREE)
    turn, parents = np.asarray(tree.turn), np.asarray(tree.parents)
    above = np.take_along_axis(turn, parents, 0)
    grand = np.take_along_axis(turn, np.take_along_axis(parents, parents, 0), 0)
    live = np.asarray(tree.stats)[..., 0] > 0
    live[0] = False
    decided = np.where(above == 0, grand, above)  # who decided last, nature apart
    twice = live & (turn != 0) & (turn == decided)
    if not twice.any():
        raise CheckSkipped("no player ever moves twice running here")
    problems = recount(search.plan, tree, patient.evaluate, OPINIONATED)
    if problems:
        raise CheckFailed("; ".join(problems))
    return f"{int(twice.sum())} nodes where the same player moves again"


def forced_move(patient: Patient) -> str:
    """A player with one legal action (a forced pass is one) takes it, with every visit."""
    single = (np.asarray(patient.steps.legal) >= 0).sum(-1) == 1
    states = patient.positions(single & patient.decides, "no player ever has exactly one action")
    _, _, result = patient.run(states, 32, loudness=IGNORANT)
    legal = np.asarray(jax.jit(jax.vmap(patient.game.legal_list))(states)).max(-1)
    if (np.asarray(result.action) != legal).any() or (np.asarray(result.visits).max(-1) != 32).any():
        raise CheckFailed("a forced move was not taken with every visit")
    return f"{LANES} positions"


def expectation(patient: Patient) -> str:
    """With exact chance and one visit an action, values are those of a one-ply expectimax, worked out apart."""
    game, spec = patient.game, patient.game.spec
    if spec.chance != "explicit":
        raise CheckSkipped("the game has no chance states")
    choice = (np.asarray(patient.steps.legal) >= 0).sum(-1) > 1
    states = patient.positions(patient.decides & choice, "no player ever has a choice")
    legal = np.asarray(jax.jit(jax.vmap(game.legal_list))(states))
    # Exploration so great, and actions so alike, that none waits for another's second visit; and no time for one.
    fewest = int((legal >= 0).sum(-1).min())
    _, _, result = patient.run(states, fewest, chance="exact", exploration=1e6, loudness=UNDECIDED)
    expected = one_ply_expectimax(game, patient.evaluate, states, legal)
    once = (np.asarray(result.visits)[:, : spec.max_legal] == 1) & (legal >= 0)
    off = np.abs(np.asarray(result.values)[:, : spec.max_legal] - expected)[once]
    if not once.any() or (off > 1e-5).any():
        raise CheckFailed(
            f"values differ from the expectation by up to {off.max(initial=0.0):.2g} ({once.sum()} actions)"
        )
    return f"{int(once.sum())} actions"


def mirror(patient: Patient) -> str:
    """With the seats swapped, the same search: perspective comes from to_play alone."""
    swaps = [symmetry for symmetry in patient.game.symmetries if symmetry.swaps_seats]
    if not swaps:
        raise CheckSkipped("the game declares no symmetry that swaps the seats")
    states = patient.positions(patient.decides, "random play met no decision")
    swapped = jax.jit(jax.vmap(swaps[0].turn))(states)
    for kind in ("puct", "gumbel"):
        (_, _, one), (_, _, two) = (patient.run(s, 48, kind=kind, noise_fraction=0.25) for s in (states, swapped))
        for field in ("visits", "values", "value", "policy"):
            if not np.allclose(getattr(one, field), getattr(two, field), atol=1e-5):
                raise CheckFailed(f"{kind}: {field} changed when the players changed seats")
    return f"{LANES} positions, PUCT and Gumbel"


def one_by_one(patient: Patient) -> str:
    """A batch gives each lane what it gets alone; and one program serves every budget, temperature and noise."""
    states = patient.positions(patient.decides, "random play met no decision")
    search, run = patient.compiled("gumbel")
    config, keys = search.plan.config, keys_for(states)
    knobs = make_knobs(config, simulations=40)
    _, batch = run(states, keys, knobs, OPINIONATED)
    for lane in (0, LANES // 2, LANES - 1):
        one = jax.tree.map(lambda x, i=lane: x[i : i + 1], states)
        _, alone = run(one, keys[lane : lane + 1], knobs, OPINIONATED)
        if (np.asarray(alone.visits[0]) != np.asarray(batch.visits[lane])).any():
            raise CheckFailed(f"lane {lane} searched otherwise in a batch than alone")
    programs = run._cache_size()
    run(
        states,
        keys,
        make_knobs(config, simulations=3, temperature=1.0, gumbel_scale=0.0, max_considered=4),
        OPINIONATED,
    )
    if run._cache_size() != programs:
        raise CheckFailed("other knobs made the search compile again")
    return "3 lanes alone and in a batch; 2 settings, 1 program"


# ---- help


def final_points(game: Game, states: Any, action: Array) -> np.ndarray:
    """What the mover has after the action if that ends the game; NaN if it does not."""
    after = jax.jit(jax.vmap(game.apply_action))(states, action)
    points = np.take_along_axis(np.asarray(after.returns), np.asarray(states.to_play)[:, None].astype(int), -1)[:, 0]
    return np.where(np.asarray(after.terminated), points, np.nan)


def safe_actions(patient: Patient) -> tuple[np.ndarray, np.ndarray]:
    """`[n, K]` actions after which the other player cannot win at once, and `[n]` rows where only some are."""
    game = patient.game

    def judge(state: Any) -> tuple[Array, Array]:
        mine, after, legal = _wins(game, state)
        theirs = jax.vmap(lambda s: _wins(game, s)[0].any())(after)
        safe = legal & (~theirs | after.terminated)
        return safe, ~mine.any() & safe.any() & (legal & ~safe).any()

    safe, threatened = jax.jit(jax.vmap(judge))(patient.steps.state)
    return np.asarray(safe), np.asarray(threatened) & patient.decides


def _wins(game: Game, state: Any) -> tuple[Array, Any, Array]:
    """`[L]`: which of the listed actions win at once, what follows each, and which are there."""
    legal = game.legal_list(state)
    after = jax.vmap(lambda action: game.apply_action(state, action.astype(jnp.int32)))(legal)
    return (legal >= 0) & after.terminated & (after.returns[:, state.to_play] > 0), after, legal >= 0


def one_ply_expectimax(game: Game, evaluate: Evaluate, states: Any, legal: np.ndarray) -> np.ndarray:
    """`[B, K]`: each action's expected value from the mover's side, by the evaluator's opinion of what follows."""
    outcomes = jnp.arange(game.spec.num_chance_outcomes)

    def follow(state: Any, action: Array) -> tuple[Any, Array]:
        after = game.apply_action(state, action.astype(jnp.int32))
        rolled = jax.vmap(lambda o: game.apply_chance(after, o))(outcomes)
        spread = jax.tree.map(lambda r, a: jnp.where(after.is_chance, r, a[None]), rolled, after)
        return spread, jnp.where(after.is_chance, game.chance_probs(after), 1.0 / outcomes.size)

    @jax.jit
    def follow_all(states: Any, legal: Array) -> tuple[Any, Array, Array]:
        spread, probs = jax.vmap(jax.vmap(follow, (None, 0)), (0, 0))(states, legal)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[3:]), spread)
        opinion = evaluate(OPINIONATED, jax.vmap(game.observe)(flat)).value
        return spread, probs, opinion.reshape(probs.shape)  # [B, K, C]

    spread, probs, opinion = jax.device_get(follow_all(states, jnp.asarray(legal)))
    me = np.asarray(states.to_play)[:, None, None]
    theirs = np.where(spread.to_play == me, opinion, -opinion)
    final = np.where(me == 0, spread.returns[..., 0], spread.returns[..., -1]) / game.spec.scale
    return (probs * np.where(spread.terminated, final, theirs)).sum(-1)


def text_of(patient: Patient, states: Any, wrong: np.ndarray) -> str:
    """The first of the positions that went wrong."""
    first = int(wrong.argmax())
    return repr(patient.game.notation.format_state(jax.tree.map(lambda x: jnp.asarray(x[first]), states)))


CHECKS: Mapping[str, Callable[[Any], str]] = {
    "contract": contract,
    "win in one": win_in_one,
    "block in one": block_in_one,
    "recount": recounted,
    "kept subtree": kept_subtree,
    "player moving twice": moves_twice,
    "forced move": forced_move,
    "exact expectation": expectation,
    "mirror symmetry": mirror,
    "batch equals one by one": one_by_one,
    "exact solution": solved_check,
}
HOST_CHECKS: Mapping[str, Callable[[Any], str]] = {"contract": host_contract}
