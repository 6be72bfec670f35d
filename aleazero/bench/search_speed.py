"""The first speed check: rules, network alone and search, ours and mctx's, interleaved in one run.

    python -m aleazero.bench.search_speed --batch 64 --simulations 32 200

Both searches run Pgx's backgammon rules (dice drawn in the step) and the same 256x6 network; a simulation is one
network evaluation. Prints a table, or with `--json` one object.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.bench.networks import residual_mlp
from aleazero.bench.peers import mctx_search
from aleazero.bench.timing import Timing, interleave
from aleazero.core.keys import Role, lane_keys
from aleazero.games.pgx import PgxGame, PgxState
from aleazero.search.build import build_search
from aleazero.search.settings import SearchConfig, make_knobs

STEPS = 64  # environment steps, or network evaluations, in one timed call


def main(argv: list[str] | None = None) -> int:
    """Measures and reports; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m aleazero.bench.search_speed", description=__doc__.split("\n")[0])
    parser.add_argument("--game", default="backgammon", help="a Pgx environment (default: backgammon)")
    parser.add_argument("--batch", type=int, default=64, help="games searched at once (default: 64)")
    parser.add_argument("--simulations", type=int, nargs="+", default=[32, 200], help="budgets (default: 32 200)")
    parser.add_argument("--kinds", nargs="+", choices=("puct", "gumbel"), default=["puct", "gumbel"])
    parser.add_argument("--rounds", type=int, default=7, help="interleaved repeats (default: 7)")
    parser.add_argument("--no-peer", action="store_true", help="leave mctx out")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    options = parser.parse_args(argv)
    report = measure(
        options.game,
        options.batch,
        options.simulations,
        options.kinds,
        options.rounds,
        peer=not options.no_peer,
    )
    print(json.dumps(report) if options.json else _table(report))
    return 0


def measure(name: str, batch: int, budgets: list[int], kinds: list[str], rounds: int, *, peer: bool) -> dict[str, Any]:
    """Rates of everything, and ratios to the peer within each round."""
    game = PgxGame(name)
    dtype = jnp.float32 if jax.default_backend() == "cpu" else jnp.bfloat16
    evaluate, weights = residual_mlp(game.spec, dtype=dtype)
    states = _middle_game(game, batch)
    variants: dict[str, Any] = {}
    work: dict[str, int] = {}

    def add(label: str, per_call: int, call: Any) -> None:
        variants[label], work[label] = call, per_call * batch

    add("rules", STEPS, _rules(game, states))
    add("network", STEPS, _network(game, evaluate, weights, states))
    for kind in kinds:
        for budget in budgets:
            add(f"ours {kind} {budget}", budget, _ours(game, evaluate, weights, states, kind, budget, rounds))
            if peer:
                add(f"mctx {kind} {budget}", budget, _mctx(game, evaluate, weights, states, kind, budget, rounds))
    timings = interleave(variants, rounds=rounds)
    return {
        "kind": "search-speed",
        "game": name,
        "batch": batch,
        "device": jax.devices()[0].device_kind,
        "dtype": jnp.dtype(dtype).name,
        "rows": [_row(label, timings, work) for label in variants],
        "growth": _growth(timings, work, kinds, budgets),
    }


def _middle_game(game: PgxGame, batch: int) -> PgxState:
    """States thirty random plies into a game; finished ones start again."""
    keys = lane_keys(0, Role.TEST, 0, jnp.arange(batch))

    def ply(state: PgxState, number: Array) -> tuple[PgxState, None]:
        legal = jax.vmap(game.legal_list)(state)
        draw = jax.random.uniform(jax.random.fold_in(jax.random.key(1), number), legal.shape)
        action = jnp.take_along_axis(legal, jnp.argmax(jnp.where(legal >= 0, draw, -1.0), -1)[:, None], -1)[:, 0]
        after = jax.vmap(game.apply_action)(state, action.astype(jnp.int32))
        fresh = jax.vmap(game.init)(keys)
        over = after.terminated
        return jax.tree.map(lambda a, b: jnp.where(over.reshape(-1, *[1] * (a.ndim - 1)), b, a), after, fresh), None

    return jax.jit(lambda s: jax.lax.scan(ply, s, jnp.arange(30))[0])(jax.vmap(game.init)(keys))


def _rules(game: PgxGame, states: PgxState) -> Any:
    """First legal action, STEPS times."""

    @jax.jit
    def steps(states: PgxState) -> Any:
        def step(state: PgxState, _: None) -> tuple[PgxState, None]:
            legal = jax.vmap(game.legal_list)(state)
            return jax.vmap(game.apply_action)(state, jnp.max(legal, -1).astype(jnp.int32)), None

        return jax.lax.scan(step, states, None, STEPS)[0].returns

    return lambda number: steps(states)


def _network(game: PgxGame, evaluate: Any, weights: Any, states: PgxState) -> Any:
    """The limit: evaluations that depend on one another, so that none can be left out."""

    @jax.jit
    def evaluations(weights: Any, states: PgxState) -> Any:
        observation = jax.vmap(game.observe)(states)

        def step(total: Array, _: None) -> tuple[Array, None]:
            prediction = evaluate(weights, observation + 1e-6 * total.reshape(-1, *[1] * (observation.ndim - 1)))
            return total + prediction.value + 1e-6 * prediction.logits[:, 0], None

        return jax.lax.scan(step, jnp.zeros(observation.shape[0]), None, STEPS)[0]

    return lambda number: evaluations(weights, states)


def _ours(game: PgxGame, evaluate: Any, weights: Any, states: PgxState, kind: Any, budget: int, rounds: int) -> Any:
    config = SearchConfig(kind=kind, max_simulations=budget)
    search, knobs = build_search(game, config), make_knobs(config, noise_fraction=0.25)
    run = jax.jit(lambda w, s, k, knobs: search.run(evaluate, w, s, k, knobs))
    keys = [lane_keys(2, Role.SEARCH, number, jnp.arange(states.to_play.shape[0])) for number in range(rounds)]
    return lambda number: run(weights, states, keys[number], knobs).policy


def _mctx(game: PgxGame, evaluate: Any, weights: Any, states: PgxState, kind: str, budget: int, rounds: int) -> Any:
    search = jax.jit(mctx_search(game.env, evaluate, kind, budget))
    observed = jax.vmap(lambda s: s.inner.replace(observation=game.env.observe(s.inner, s.inner.current_player)))
    inner = jax.jit(observed)(states)
    keys = [jax.random.fold_in(jax.random.key(3), number) for number in range(rounds)]
    return lambda number: search(weights, inner, keys[number]).action_weights


def _row(label: str, timings: dict[str, Timing], work: dict[str, int]) -> dict[str, Any]:
    timing = timings[label]
    row = {
        "name": label,
        "per_second": work[label] / timing.median,
        "of_network": timings["network"].median / work["network"] * work[label] / timing.median,
        "compile_seconds": timing.compile_seconds,
    }
    twin = timings.get(label.replace("ours", "mctx"))
    if label.startswith("ours") and twin is not None:
        row["ratio"], row["ratio_low"], row["ratio_high"] = timing.ratio_to(twin)
    return row


def _growth(timings: dict[str, Timing], work: dict[str, int], kinds: list[str], budgets: list[int]) -> dict[str, float]:
    """Cost per simulation at the largest budget over that at the smallest."""
    few, many = min(budgets), max(budgets)

    def cost(label: str) -> float:
        return timings[label].median / work[label]

    return {
        f"{side} {kind}": cost(f"{side} {kind} {many}") / cost(f"{side} {kind} {few}")
        for side in ("ours", "mctx")
        for kind in kinds
        if f"{side} {kind} {many}" in timings
    }


def _table(report: dict[str, Any]) -> str:
    lines = [
        f"{report['game']} (Pgx rules), batch {report['batch']}, 256x6 {report['dtype']}, {report['device']}",
        f"{'':22}{'per second':>14}{'of network':>12}{'compile s':>11}   times mctx",
    ]
    for row in report["rows"]:
        ratio = f"{row['ratio']:.2f} ({row['ratio_low']:.2f} to {row['ratio_high']:.2f})" if "ratio" in row else ""
        speed = f"{row['per_second']:14,.0f}{row['of_network']:12.3f}{row['compile_seconds']:11.1f}"
        lines.append(f"{row['name']:22}{speed}   {ratio}")
    lines += [f"cost per simulation grows {value:.2f}x: {name}" for name, value in report["growth"].items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
