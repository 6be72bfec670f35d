"""The contract of games that run on the host, as a test: `check_host_game`.

Each law has a name; a broken one raises GameContractError with the law, the ply and the lane that show it.
Knows the contract only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.core.errors import GameContractError
from aleazero.core.game import GameSpec, HostGame, HostStatus
from aleazero.games.conformance import ContractReport


def check_host_game(game: HostGame, *, lanes: int = 16, plies: int = 200, seed: int = 0) -> ContractReport:
    """The same laws for rules that run on the host."""
    spec = game.spec
    rng = np.random.default_rng(seed)
    seeds = rng.integers(0, 2**63, lanes).astype(np.uint64)
    states, twin = game.init_batch(seeds), game.init_batch(seeds)
    _host_equal(game, "init_batch", states, twin, "the same seeds gave two different games")
    finished, seen = 0, 0
    returns = game.status(states).returns.copy()
    for ply in range(plies):
        status, legal = game.status(states), game.legal_actions(states)
        _host_shapes(spec, game, states, status, legal)
        if bool((legal.any(-1) == status.terminated).any()):
            raise GameContractError(
                "legal_actions", f"ply {ply}: a state has legal actions if and only if it is not over"
            )
        moving = ~status.terminated
        if not moving.any():
            break
        actions = np.where(legal, rng.random(legal.shape), -1).argmax(-1)
        rows = game.snapshot(states)
        after = game.step_batch(states, actions, moving)
        if game.snapshot(states) != rows:
            raise GameContractError("step_batch", f"ply {ply}: stepping changed the states it was given")
        if ply % 8 == 0:
            _host_laws(game, states, rows, actions, moving, rng)
        now = game.status(after)
        wrong = moving & (np.abs(returns + now.rewards - now.returns) > 1e-4).any(-1)
        if wrong.any():
            raise GameContractError(
                "returns", f"ply {ply}, lane {int(wrong.argmax())}: rewards do not add up to returns"
            )
        _host_points(spec, now, ply)
        finished += int((now.terminated & moving).sum())
        seen += int(moving.sum())
        states, returns = after, now.returns.copy()
    warnings = () if finished else (f"no game ended in {plies} plies of random play",)
    return ContractReport(seen, finished, warnings)


def _host_points(spec: GameSpec, now: HostStatus, ply: int) -> None:
    """Who is to play, and what the points may be."""
    lawful = {
        "to_play": (now.to_play >= 0) & (now.to_play < spec.num_players),
        "zero sum": np.abs(now.returns.sum(-1)) < 1e-4 if spec.num_players == 2 else np.ones(len(now.to_play), bool),
    }
    if spec.outcomes:
        points = np.array([outcome.points for outcome in spec.outcomes])
        known = (np.abs(now.returns[..., None] - points).min(-1) < 1e-4).all(-1)
        lawful["outcomes"] = known | ~now.terminated
    for law, fine in lawful.items():
        if not fine.all():
            lane = int((~fine).argmax())
            shown = f"to_play {int(now.to_play[lane])}, returns {now.returns[lane].tolist()}"
            raise GameContractError(law, f"after ply {ply}, lane {lane}: {shown}")


def _host_shapes(spec: GameSpec, game: HostGame, states: Any, status: Any, legal: np.ndarray) -> None:
    lanes = len(status.to_play)
    for law, got, shape in (
        ("legal_actions", legal, (lanes, spec.num_actions)),
        ("observe", game.observe(states), (lanes, *spec.observation_shape)),
        ("rewards", status.rewards, (lanes, spec.num_players)),
        ("returns", status.returns, (lanes, spec.num_players)),
    ):
        if np.shape(got) != shape:
            raise GameContractError(law, f"has shape {np.shape(got)}, not {shape}")
        if not np.isfinite(np.asarray(got, np.float64)).all():
            raise GameContractError(law, "is not finite")
    if legal.dtype != np.bool_:
        raise GameContractError("legal_actions", f"is {legal.dtype}, not bool")


def _host_laws(
    game: HostGame,
    states: Any,
    rows: list[bytes],
    actions: np.ndarray,
    moving: np.ndarray,
    rng: np.random.Generator,
) -> None:
    restored = game.restore(rows)
    first, second = game.step_batch(states, actions, moving), game.step_batch(restored, actions, moving)
    _host_equal(game, "snapshot", first, second, "a restored state goes on differently")
    third = game.advance(game.restore(rows), actions, moving)
    _host_equal(game, "advance", first, third, "it leads elsewhere than step_batch")
    seeds = rng.integers(0, 2**63, 1).astype(np.uint64)
    begun = game.renew(third, np.array([0]), seeds)
    wanted = game.put(first, np.array([0]), game.init_batch(seeds))
    _host_equal(game, "renew", wanted, begun, "it is not what put and init_batch make")
    half = moving & (np.arange(len(moving)) % 2 == 0)
    some = game.snapshot(game.step_batch(states, actions, half))
    for lane in np.flatnonzero(~half):
        if some[lane] != rows[lane]:
            raise GameContractError("step_batch", f"lane {lane} changed though it was not told to move")
    fresh = game.reseed(states, rng.integers(0, 2**63, len(moving)).astype(np.uint64))
    same = np.array_equal(game.legal_actions(fresh), game.legal_actions(states))
    if not same or not np.array_equal(game.observe(fresh), game.observe(states)):
        raise GameContractError("reseed", "a fresh random stream changed the position itself")


def _host_equal(game: HostGame, law: str, one: Any, two: Any, message: str) -> None:
    if game.snapshot(one) != game.snapshot(two):
        raise GameContractError(law, message)
