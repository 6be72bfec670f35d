"""The game contract as a test: `check_game`, for built-in and third-party games alike (`check_host_game` is beside it).

Each law has a name; a broken one raises GameContractError with the law, the state and the action that show it.
Knows the contract only: no search, no network, no particular game.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import GameContractError
from aleazero.core.game import Game
from aleazero.games.repetition import walks_alike
from aleazero.games.wander import Steps, wander

BANNED = {"while": "runs to the slowest lane", "sort": "is slow on every device"}
STARTS = 256  # states of every named start that are looked at


@dataclasses.dataclass(frozen=True)
class ContractReport:
    """What a passing check saw."""

    positions: int
    games: int  # finished ones
    warnings: tuple[str, ...] = ()


def check_game(game: Game, *, lanes: int = 64, plies: int = 200, seed: int = 0) -> ContractReport:
    """Plays `lanes` random games for `plies` plies and asserts every law of the contract on what it meets."""
    warnings = _check_shapes(game) + _check_programs(game)
    steps = jax.device_get(wander(game, lanes=lanes, plies=plies, seed=seed))
    flat = jax.tree.map(lambda x: x.reshape(lanes * plies, *x.shape[2:]), steps)
    blame = _Blame(game, flat)
    for law in (_legal_list, _fields, _points, _chance, _observation, _packing, walks_alike, _purity):
        law(game, flat, blame)
    _notation(game, flat, blame)
    _symmetries(game, flat, blame)
    _starts(game)
    if game.spec.chance == "sampled":
        _reseeding(game, flat, blame)
    if game.plays is not None:
        _plays(game, flat, blame)
    finished = int(np.asarray(steps.after.terminated & ~steps.state.terminated).sum())
    if not finished:
        warnings.append(f"no game ended in {plies} plies of random play")
    return ContractReport(lanes * plies, finished, tuple(warnings))


class _Blame:
    """Turns "row 17 breaks a law" into an error that shows the state and what was done there."""

    def __init__(self, game: Game, flat: Steps) -> None:
        self.game, self.flat = game, flat
        self.compiled = functools.cache(lambda name: jax.jit(jax.vmap(getattr(game, name))))  # for all laws

    def __call__(self, law: str, wrong: Any, message: str | Callable[[int], str]) -> None:
        """Raises for the first row where `wrong` `[n]` holds."""
        wrong = np.asarray(wrong)
        if not wrong.any():
            return
        row = int(wrong.argmax())
        text = message(row) if callable(message) else message
        action, outcome = int(self.flat.action[row]), int(self.flat.outcome[row])
        done = f"action {action}" if action >= 0 else f"chance outcome {outcome}" if outcome >= 0 else "nothing"
        raise GameContractError(law, f"{text}\n  state: {self.describe(row)}\n  done there: {done}")

    def describe(self, row: int) -> str:
        """The state in its own notation, or as packed bytes where that fails."""
        state = jax.tree.map(lambda x: jnp.asarray(x[row]), self.flat.state)
        try:
            return self.game.notation.format_state(state)
        except Exception as error:  # the notation itself may be what is broken
            return f"{np.asarray(self.game.pack(state)).tobytes().hex()} (format_state failed: {error!r})"


def _differs(one: Any, two: Any) -> np.ndarray:
    """`[n]` bool: rows in which two arrays differ."""
    unequal = np.asarray(one) != np.asarray(two)
    return np.asarray(unequal.any(tuple(range(1, unequal.ndim))))


# ---- laws that need no play


def _check_shapes(game: Game) -> list[str]:
    spec, like = game.spec, game.state_like
    scalar, players = (), (spec.num_players,)
    fields = {
        "to_play": scalar,
        "is_chance": scalar,
        "terminated": scalar,
        "rewards": players,
        "returns": players,
    }
    for name, shape in fields.items():
        if not hasattr(like, name):
            raise GameContractError("state fields", f"states of {spec.name!r} have no field {name!r}")
        if getattr(like, name).shape != shape:
            raise GameContractError("state fields", f"{name} has shape {getattr(like, name).shape}, not {shape}")
    for name, kind in (
        ("is_chance", jnp.bool_),
        ("terminated", jnp.bool_),
        ("rewards", jnp.float32),
        ("returns", jnp.float32),
    ):
        if getattr(like, name).dtype != kind:
            raise GameContractError("state fields", f"{name} is {getattr(like, name).dtype}, not {jnp.dtype(kind)}")
    action = jax.ShapeDtypeStruct((), jnp.int32)
    _same_tree("apply_action", like, jax.eval_shape(game.apply_action, like, action))
    if spec.chance == "explicit":
        _same_tree("apply_chance", like, jax.eval_shape(game.apply_chance, like, action))
        _shape("chance_probs", jax.eval_shape(game.chance_probs, like), (spec.num_chance_outcomes,), jnp.float32)
    _shape("legal_list", jax.eval_shape(game.legal_list, like), (spec.max_legal,), jnp.int16)
    _shape("observe", jax.eval_shape(game.observe, like), spec.observation_shape, None)
    _shape("pack", jax.eval_shape(game.pack, like), (game.packed_size,), jnp.uint8)
    return []


def _same_tree(law: str, expected: Any, got: Any) -> None:
    if str(jax.tree.structure(expected)) != str(jax.tree.structure(got)):
        raise GameContractError(law, f"returns {jax.tree.structure(got)}, not {jax.tree.structure(expected)}")
    paths = jax.tree_util.tree_flatten_with_path(expected)[0]
    for (path, old), new in zip(paths, jax.tree.leaves(got), strict=True):
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            name = jax.tree_util.keystr(path)
            raise GameContractError(law, f"changes {name} from {old.dtype}{old.shape} to {new.dtype}{new.shape}")


def _shape(law: str, got: Any, shape: tuple[int, ...], dtype: Any) -> None:
    if got.shape != tuple(shape) or (dtype is not None and got.dtype != dtype):
        wanted = f"{jnp.dtype(dtype).name if dtype is not None else 'any dtype'}{tuple(shape)}"
        raise GameContractError(law, f"returns {got.dtype}{got.shape}, not {wanted}")


def _check_programs(game: Game) -> list[str]:
    """No `while` or `sort` in what runs inside a search; `cond` is allowed but costs both branches."""
    like, action = game.state_like, jax.ShapeDtypeStruct((), jnp.int32)
    warnings = []
    for name, program in (
        ("apply_action", jax.make_jaxpr(game.apply_action)(like, action)),
        ("legal_list", jax.make_jaxpr(game.legal_list)(like)),
    ):
        used = set(_primitives(program.jaxpr))
        for primitive, reason in BANNED.items():
            if primitive in used:
                raise GameContractError(f"no {primitive}", f"{name} uses {primitive!r}, which under vmap {reason}")
        if "cond" in used:
            warnings.append(f"{name} uses cond, which under vmap costs both branches")
    return warnings


def _primitives(jaxpr: Any) -> Iterator[str]:
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for value in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda v: hasattr(v, "eqns")):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from _primitives(inner)


# ---- laws on what random play met


def _legal_list(game: Game, flat: Steps, blame: _Blame) -> None:
    legal, spec = np.asarray(flat.legal), game.spec
    silent = np.asarray(flat.state.is_chance | flat.state.terminated)
    blame(
        "legal_list",
        ((legal < -1) | (legal >= spec.num_actions)).any(-1),
        "an entry is neither -1 nor an action",
    )
    ordered = np.sort(legal, -1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(-1)
    blame("legal_list", twice, lambda row: f"an action is listed twice: {legal[row].tolist()}")
    some = (legal >= 0).any(-1)
    blame("legal_list", some & silent, "actions are listed at a chance or terminal state")
    blame(
        "legal_list",
        ~some & ~silent,
        "no action is listed though a player is to act (a pass is an action too)",
    )
    # Random play starts again where a game ends, so terminal states are only met as what follows.
    late = (np.asarray(blame.compiled("legal_list")(flat.after)) >= 0).any(-1)
    blame(
        "legal_list", late & np.asarray(flat.after.terminated), "actions are listed at the terminal state that follows"
    )


def _fields(game: Game, flat: Steps, blame: _Blame) -> None:
    for state, when in ((flat.after, " afterwards"), (flat.state, "")):
        to_play = np.asarray(state.to_play)
        wrong = (to_play < 0) | (to_play >= game.spec.num_players)
        blame("to_play", wrong, f"to_play is not a player{when}")
        both = np.asarray(state.is_chance & state.terminated)
        blame("is_chance", both, f"the state is both terminal and a chance state{when}")
    thrown = np.asarray(flat.after.is_chance) & (np.asarray(flat.action) >= 0)
    moved = np.asarray(flat.after.to_play != flat.state.to_play)
    blame("to_play", thrown & moved, "at the chance state that follows, to_play is not the player who acted")


def _points(game: Game, flat: Steps, blame: _Blame) -> None:
    spec, acted = game.spec, ~np.asarray(flat.state.terminated)
    rewards, returns = np.asarray(flat.after.rewards), np.asarray(flat.after.returns)
    before = np.asarray(flat.state.returns)
    blame("rewards", ~np.isfinite(rewards).all(-1) | ~np.isfinite(returns).all(-1), "points are not finite")
    wrong = acted & (np.abs(before + rewards - returns) > 1e-5).any(-1)
    blame(
        "returns",
        wrong,
        lambda i: f"{before[i].tolist()} + {rewards[i].tolist()} is not {returns[i].tolist()}",
    )
    if spec.num_players == 2:
        blame("zero sum", np.abs(returns.sum(-1)) > 1e-5, lambda i: f"returns are {returns[i].tolist()}")
    if spec.outcomes:
        points = np.array([o.points for o in spec.outcomes])
        strange = np.abs(returns[..., None] - points).min(-1) > 1e-5
        over = np.asarray(flat.after.terminated)
        blame(
            "outcomes",
            strange.any(-1) & over,
            lambda i: f"final returns {returns[i].tolist()} are no outcome's points",
        )


def _chance(game: Game, flat: Steps, blame: _Blame) -> None:
    at_chance = np.asarray(flat.state.is_chance)
    if game.spec.chance != "explicit":
        blame("is_chance", at_chance, f"a chance state, though spec.chance is {game.spec.chance!r}")
        return
    probs = np.asarray(jax.jit(jax.vmap(game.chance_probs))(flat.state))
    bad = at_chance & ((np.abs(probs.sum(-1) - 1) > 1e-5) | (probs < 0).any(-1) | ~np.isfinite(probs).all(-1))
    blame("chance_probs", bad, lambda row: f"{probs[row].tolist()} is no distribution")
    later = at_chance & (np.asarray(flat.ply) > 0) & (probs[:, game.num_later_outcomes :] > 0).any(-1)
    which = f"an outcome from {game.num_later_outcomes} on"
    blame("num_later_outcomes", later, f"{which} has a chance after the first state")
    again = at_chance & np.asarray(flat.after.is_chance)
    blame(
        "apply_chance",
        again,
        "nature's move leads to another chance state; fold the two draws into one outcome",
    )
    if not at_chance.any():
        raise GameContractError("is_chance", "spec.chance is 'explicit', but random play met no chance state")


def _observation(game: Game, flat: Steps, blame: _Blame) -> None:
    observe = blame.compiled("observe")
    for state, when in ((flat.state, ""), (flat.after, " afterwards")):
        seen = np.asarray(observe(state), np.float32)
        blame("observe", ~np.isfinite(seen.reshape(len(seen), -1)).all(-1), f"the observation is not finite{when}")


def _packing(game: Game, flat: Steps, blame: _Blame) -> None:
    there_and_back = jax.jit(jax.vmap(lambda state: game.unpack(game.pack(state))))
    for state, when in ((flat.state, ""), (flat.after, " of the state afterwards")):
        back = there_and_back(state)
        _same_tree("pack", jax.eval_shape(lambda s: s, state), jax.eval_shape(lambda s: s, back))
        leaves = jax.tree_util.tree_flatten_with_path(state)[0]
        for (path, old), new in zip(leaves, jax.tree.leaves(back), strict=True):
            if getattr(path[0], "name", None) in game.forgotten:
                continue
            blame("pack", _differs(old, new), f"unpack(pack(state)) changes {jax.tree_util.keystr(path)}{when}")


def _purity(game: Game, flat: Steps, blame: _Blame) -> None:
    acts = np.asarray(flat.action) >= 0
    again = blame.compiled("apply_action")(flat.state, flat.action)
    for old, new in zip(jax.tree.leaves(flat.after), jax.tree.leaves(again), strict=True):
        differs = acts & _differs(old, new)
        blame("apply_action", differs, "the same action in the same state gave two different results")


def _notation(game: Game, flat: Steps, blame: _Blame) -> None:
    """Texts of a spread of positions and of their moves, out and in again."""
    notation, listed, seen = game.notation, jax.jit(game.legal_list), jax.jit(game.observe)
    host = jax.tree.map(np.asarray, (flat.state, flat.legal))
    rows = np.linspace(0, len(flat.action) - 1, 24).astype(int)
    for row in rows:
        state, legal_list = jax.tree.map(lambda x, row=row: jnp.asarray(x[row]), host)
        try:
            text = notation.format_state(state)
            back = notation.parse_state(text)
            legal = [int(a) for a in np.asarray(legal_list) if a >= 0]
            names = [notation.format_action(state, a) for a in legal]
            parsed = [notation.parse_action(state, name) for name in names]
            notation.draw(state)
        except Exception as error:
            raise GameContractError("notation", f"{error!r}\n  state: {blame.describe(int(row))}") from error
        if notation.format_state(back) != text:
            raise GameContractError("notation", f"{text!r} is read back as {notation.format_state(back)!r}")
        same = np.array_equal(listed(back), legal_list) and int(back.to_play) == int(state.to_play)
        if not same or not np.array_equal(seen(back), seen(state)):
            raise GameContractError("notation", f"{text!r} is read back as another position")
        if parsed != legal or len(set(names)) != len(names):
            raise GameContractError("notation", f"moves {names} in {text!r} are read back as {parsed}, not {legal}")


def _starts(game: Game) -> None:
    """Named starts are states like any other, in which somebody, or nature, is to act."""
    keys = jax.jit(jax.vmap(jax.random.key))(jnp.arange(STARTS))
    legal_list = jax.jit(jax.vmap(game.legal_list))
    for name, start in game.starts.items():
        shapes = [
            jax.tree.map(lambda x: (x.shape, x.dtype), tree)
            for tree in (jax.eval_shape(start, jax.random.key(0)), game.state_like)
        ]
        if shapes[0] != shapes[1]:
            raise GameContractError("starts", f"{name}: a state is {shapes[0]}, not {shapes[1]}")
        states = jax.device_get(jax.jit(jax.vmap(start))(keys))
        stuck = ~states.is_chance & (np.asarray(legal_list(states)) < 0).all(-1)
        for wrong, what in ((states.terminated, "is over"), (stuck, "has no legal action")):
            if bool(wrong.any()):
                state = jax.tree.map(lambda x: jnp.asarray(x[int(wrong.argmax())]), states)  # noqa: B023
                raise GameContractError("starts", f"{name}: {game.notation.format_state(state)} {what}")


def _symmetries(game: Game, flat: Steps, blame: _Blame) -> None:
    spec = game.spec
    legal_list, act, seen = (blame.compiled(name) for name in ("legal_list", "apply_action", "observe"))
    for symmetry in game.symmetries:
        names = np.asarray(symmetry.actions)
        if sorted(names.tolist()) != list(range(spec.num_actions)):
            raise GameContractError(
                "symmetries", f"{symmetry.name}: actions is no permutation of 0..{spec.num_actions - 1}"
            )
        law = f"symmetry {symmetry.name}"
        turn = jax.jit(jax.vmap(symmetry.turn))
        turned, turned_after = turn(flat.state), turn(flat.after)
        legal = np.asarray(flat.legal)
        mapped = np.sort(np.where(legal >= 0, names[np.maximum(legal, 0)], -1), -1)
        listed = np.sort(np.asarray(legal_list(turned)), -1)
        blame(law, (mapped != listed).any(-1), "the turned position has other legal actions")
        acts = np.asarray(flat.action) >= 0
        action = np.where(acts, names[np.maximum(flat.action, 0)], 0).astype(np.int32)
        differs = _differs(seen(act(turned, action)), seen(turned_after))
        blame(law, acts & differs, "acting and then turning differs from turning and then acting")
        returns = np.asarray(turned_after.returns)
        expected = np.asarray(flat.after.returns)[:, ::-1] if symmetry.swaps_seats else np.asarray(flat.after.returns)
        blame(law, (returns != expected).any(-1), "the turned position has other returns")
        if symmetry.swaps_seats:
            differs = _differs(seen(turned), seen(flat.state))
            blame("observe", differs, "with the seats swapped the player to play sees something else")


def _reseeding(game: Game, flat: Steps, blame: _Blame) -> None:
    keys = jax.random.split(jax.random.key(5), len(flat.action))
    fresh = jax.jit(jax.vmap(game.reseed))(flat.state, keys)
    legal_list, act, observe = (blame.compiled(name) for name in ("legal_list", "apply_action", "observe"))

    def seen(state: Any) -> tuple[Any, ...]:
        return observe(state), legal_list(state), state.to_play, state.returns

    for old, new in zip(jax.tree.leaves(seen(flat.state)), jax.tree.leaves(seen(fresh)), strict=True):
        differs = _differs(old, new)
        blame("reseed", differs, "a fresh random stream changed the position itself")
    acts = np.asarray(flat.action) >= 0
    if not _differs(observe(act(fresh, flat.action)), observe(act(flat.state, flat.action)))[acts].any():
        raise GameContractError("reseed", "reseeding changed nothing that follows: a search would know what is to come")


def _plays(game: Game, flat: Steps, blame: _Blame) -> None:
    """Whole-turn plays equal those found by single actions, on a few positions."""
    acts = np.flatnonzero(np.asarray(flat.action) >= 0)
    rows = acts[np.linspace(0, len(acts) - 1, 8).astype(int)]
    states = jax.tree.map(lambda x: jnp.asarray(x[rows]), flat.state)
    pack = jax.jit(jax.vmap(game.pack))
    streamed: list[list[bytes]] = [[] for _ in rows]
    assert game.plays is not None
    if game.plays_start is None:
        raise GameContractError("plays", "plays needs plays_start, which gives the first cursor")
    cursor, done = game.plays_start(states), False
    while not done:
        chunk = game.plays(states, cursor)
        packed, owner = np.asarray(pack(chunk.afterstates)), np.asarray(chunk.owner)
        for i in range(int(chunk.count)):
            streamed[int(owner[i])].append(packed[i].tobytes())
        cursor, done = chunk.cursor, bool(chunk.done)
    host, turn_ends = jax.device_get(states), _turn_ends(game)
    for lane, row in enumerate(rows):
        found, expected = set(streamed[lane]), turn_ends(jax.tree.map(lambda x, lane=lane: x[lane], host))
        if len(found) != len(streamed[lane]) or found != expected:
            raise GameContractError(
                "plays",
                f"{len(streamed[lane])} plays, {len(found)} of them distinct; single actions reach {len(expected)}"
                f"\n  state: {blame.describe(int(row))}",
            )


def _turn_ends(game: Game) -> Callable[[Any], set[bytes]]:
    """Of a state: packed states at the end of the turn, over every sequence of legal actions."""

    @jax.jit
    def act(state: Any, action: Array) -> tuple[Any, Array, Array]:
        after = game.apply_action(state, action)
        return after, game.pack(after), after.is_chance | after.terminated | (after.to_play != state.to_play)

    legal_list = jax.jit(game.legal_list)

    def turn_ends(state: Any) -> set[bytes]:
        ends, stack, seen = set(), [state], set()
        while stack:
            here = stack.pop()
            for action in np.asarray(legal_list(here)):
                if action < 0:
                    continue
                after, packed, over = act(here, jnp.int32(action))
                name = np.asarray(packed).tobytes()
                if over:
                    ends.add(name)
                elif name not in seen:
                    seen.add(name)
                    stack.append(after)
        return ends

    return turn_ends
