"""Losses against numpy, row by row, and what a network must not be taught by them.

Most tests use a network whose outputs are its weights, so that a gradient says what each output is taught. Rows and
outputs here hold arrays of numpy, which the types of their fields do not say: hence Any.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aleazero.core.game import Game
from aleazero.core.records import Output, Rows
from aleazero.core.struct import replace
from aleazero.games.connect_four import ConnectFour
from aleazero.games.tictactoe import TicTacToe
from aleazero.games.wander import wander
from aleazero.learn.losses import Batch, Counts, LossConfig, Measures, count, make_batch, make_loss

TICTACTOE, CONNECT_FOUR = TicTacToe(), ConnectFour()
B, A, E, O = 24, 9, 7, 3
CONFIG = LossConfig(policy_weight=0.7, value_weight=1.3, soft_weight=0.4, soft_temperature=2.5, reply_weight=0.6)


@pytest.fixture(autouse=True, scope="module")
def quick_compile() -> Iterator[None]:
    """Many small programs run once each: XLA without its expensive passes."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def policies(rng: np.random.Generator, lists: np.ndarray) -> np.ndarray:
    """Random policies over listed actions; where there is none stands something that must not be read."""
    dense = np.where(lists >= 0, rng.exponential(size=lists.shape), 0)
    dense = dense / np.maximum(dense.sum(-1, keepdims=True), 1e-9)
    return np.where(lists >= 0, dense, 0.5).astype(np.float16)


def shortlist(rng: np.random.Generator, legal: np.ndarray, places: int) -> np.ndarray:
    """`[B, places]`: some of the legal actions, in any order, with holes between them."""
    found = np.full((len(legal), places), -1, np.int16)
    for row, actions in zip(found, legal, strict=True):
        some = rng.permutation(actions[actions >= 0])[: places - 1]
        row[rng.permutation(places)[: len(some)]] = some
    return found


def make_rows(seed: int = 0) -> tuple[Any, np.ndarray]:
    """Rows, and legal lists `[B, A]` in any order, with holes."""
    rng = np.random.default_rng(seed)
    legal = np.full((B, A), -1, np.int16)
    for row in legal:
        size = int(rng.integers(1, A))
        row[rng.permutation(A)[:size]] = rng.permutation(A)[:size]
    actions = shortlist(rng, legal, E)
    replies = np.where(rng.random((B, 1)) < 0.6, shortlist(rng, np.tile(np.arange(A), (B, 1)), E), -1).astype(np.int16)
    fields: dict[str, Any] = {
        "state": np.zeros((B, 4), np.uint8),
        "actions": actions,
        "policy": policies(rng, actions),
        "has_policy": rng.random(B) < 0.7,
        "target": rng.dirichlet(np.ones(O), B).astype(np.float32),
        "has_value": rng.random(B) < 0.6,
        "reply_actions": replies,
        "reply_policy": policies(rng, replies),
        "weight": rng.uniform(0.2, 1.0, B).astype(np.float32),
        "moves_left": np.where(rng.random(B) < 0.3, -1, rng.integers(0, 400, B)).astype(np.int16),
    }
    return Rows(**fields), legal


def make_output(seed: int = 0, scalar: bool = False, extras: bool = True) -> Any:
    rng = np.random.default_rng(seed + 100)
    value = np.tanh(rng.normal(size=(B, 1))) if scalar else rng.normal(size=(B, O))
    parts: dict[str, Any] = {"logits": rng.normal(size=(B, A)), "value": value}
    if extras:
        parts |= {"soft": rng.normal(size=(B, A)), "reply": rng.normal(size=(B, A))}
        parts |= {"moves_left": rng.uniform(0, 300, B)}
    return Output(**{name: part.astype(np.float32) for name, part in parts.items()})


@functools.cache
def taught(config: LossConfig = CONFIG) -> Callable[[Output, Batch, Counts], tuple[tuple[Array, Measures], Output]]:
    """The loss and its gradient for a network whose outputs are its weights."""
    loss = make_loss(TICTACTOE, config, lambda weights, observation: weights)
    return jax.jit(jax.value_and_grad(loss, has_aux=True))


def lesson(output: Any, rows: Any, legal: Any, config: LossConfig = CONFIG) -> tuple[float, Measures, Any]:
    nothing: Any = np.zeros((len(legal), 1))
    (loss, measures), gradient = taught(config)(output, Batch(nothing, legal, rows), count(rows))
    return float(loss), measures, jax.tree.map(np.asarray, gradient)


# ---- the reference


def cross_entropy(logits: np.ndarray, legal: np.ndarray, actions: np.ndarray, policy: np.ndarray) -> float:
    """Of one row."""
    scores = {int(a): float(logits[a]) for a in legal if a >= 0}
    total = np.log(sum(np.exp(score) for score in scores.values()))
    return -sum(float(p) * (float(logits[a]) - total) for a, p in zip(actions, policy, strict=True) if a >= 0)


def softened(actions: np.ndarray, policy: np.ndarray, temperature: float) -> np.ndarray:
    raised = np.where(actions >= 0, policy.astype(np.float64), 0) ** (1 / temperature)
    return raised / raised.sum()


def mean(rows: Any, present: np.ndarray, errors: list[float]) -> float:
    """The weighted mean over the rows that have such a target."""
    weight = rows.weight.astype(np.float64) * present
    return float((weight * np.array(errors)).sum() / weight.sum())


def reference(output: Any, rows: Any, legal: np.ndarray, config: LossConfig) -> dict[str, float]:
    points = np.array([1.0, 0.0, -1.0])
    policy, value, soft, reply, length, away, wanted = [], [], [], [], [], [], []
    for i in range(len(legal)):
        scores = output.value[i].astype(np.float64)
        scalar = len(scores) == 1
        shares = np.exp(scores) / np.exp(scores).sum()
        predicted = float(scores[0] if scalar else shares @ points)
        wanted.append(float(rows.target[i][0] if scalar else rows.target[i] @ points))
        away.append(abs(predicted - wanted[-1]))
        squared = scalar or config.value_loss == "mse"
        value.append(away[-1] ** 2 if squared else -float(rows.target[i] @ np.log(shares)))
        policy.append(cross_entropy(output.logits[i], legal[i], rows.actions[i], rows.policy[i]))
        flat = softened(rows.actions[i], rows.policy[i], config.soft_temperature)
        soft.append(cross_entropy(output.soft[i], legal[i], rows.actions[i], flat))
        reply.append(cross_entropy(output.reply[i], np.arange(A), rows.reply_actions[i], rows.reply_policy[i]))
        missed = abs(float(output.moves_left[i]) - float(rows.moves_left[i])) / 100
        length.append(missed**2 if missed < 1 else 2 * missed - 1)
    has_reply = (rows.reply_actions >= 0).any(-1)
    return {
        "moves_left": config.moves_left_weight * mean(rows, rows.moves_left >= 0, length),
        "policy": config.policy_weight * mean(rows, rows.has_policy, policy),
        "value": config.value_weight * mean(rows, rows.has_value, value),
        "soft": config.soft_weight * mean(rows, rows.has_policy, soft),
        "reply": config.reply_weight * mean(rows, has_reply, reply),
        "value_error": mean(rows, rows.has_value, away),
        "target_mean": mean(rows, rows.has_value, wanted),
        "target_square": mean(rows, rows.has_value, [w**2 for w in wanted]),
    }


@pytest.mark.parametrize("kind", ["cross_entropy", "mse", "scalar"])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_term_is_what_the_definition_says(kind: str, seed: int) -> None:
    config = replace(CONFIG, value_loss="mse" if kind == "mse" else "cross_entropy")
    rows, legal = make_rows(seed)
    output = make_output(seed, scalar=kind == "scalar")
    if kind == "scalar":
        rows = replace(rows, target=np.random.default_rng(seed).uniform(-1, 1, (B, 1)).astype(np.float32))
    loss, measures, _ = lesson(output, rows, legal, config)
    wanted = reference(output, rows, legal, config)
    found = dict(measures.terms)
    assert set(found) == {"policy", "value", "soft", "reply", "moves_left"}
    assert loss == pytest.approx(sum(wanted[name] for name in found), rel=1e-5)
    found |= {name: getattr(measures, name) for name in ("value_error", "target_mean", "target_square")}
    assert {name: float(x) for name, x in found.items()} == pytest.approx(wanted, rel=1e-4)


def test_heads_that_are_not_there_add_nothing() -> None:
    rows, legal = make_rows()
    loss, measures, _ = lesson(make_output(extras=False), rows, legal)
    assert set(measures.terms) == {"policy", "value"}
    wanted = reference(make_output(), rows, legal, CONFIG)
    assert loss == pytest.approx(wanted["policy"] + wanted["value"], rel=1e-5)


@pytest.mark.parametrize("kind", ["cross_entropy", "mse", "scalar"])
def test_a_network_without_a_policy_is_taught_its_value_alone(kind: str) -> None:
    config = replace(CONFIG, value_loss="mse" if kind == "mse" else "cross_entropy")
    rows, legal = make_rows()
    if kind == "scalar":
        rows = replace(rows, target=np.random.default_rng(0).uniform(-1, 1, (B, 1)).astype(np.float32))
    both = make_output(scalar=kind == "scalar", extras=False)
    alone = replace(both, logits=None)
    # As rows of whole turns are: no policy anywhere.
    without = replace(
        rows,
        actions=np.full((B, 1), -1, np.int16),
        policy=np.zeros((B, 1), np.float16),
        reply_actions=np.full((B, 1), -1, np.int16),
        reply_policy=np.zeros((B, 1), np.float16),
        has_policy=np.zeros(B, bool),
    )
    loss, measures, gradient = lesson(alone, without, legal, config)
    _, usual, usual_gradient = lesson(both, rows, legal, config)
    assert set(measures.terms) == {"value"}
    assert loss == pytest.approx(float(usual.terms["value"]), rel=1e-6)
    assert gradient.logits is None
    np.testing.assert_allclose(gradient.value, usual_gradient.value, atol=1e-7)
    for name in ("value_error", "target_mean", "target_square"):
        assert float(getattr(measures, name)) == pytest.approx(float(getattr(usual, name)), rel=1e-6)


# ---- what is taught


def dense(lists: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """`[B, A]` shares by action."""
    found = np.zeros((len(lists), A))
    for row, actions, policy in zip(found, lists, shares, strict=True):
        row[actions[actions >= 0]] = policy[actions >= 0]
    return found


def test_the_gradient_is_the_networks_policy_less_the_searchs() -> None:
    rows, legal = make_rows()
    output = make_output()
    gradient = lesson(output, rows, legal)[2].logits
    mask = dense(legal, np.ones(legal.shape)) > 0
    shares = np.where(mask, np.exp(output.logits), 0)
    shares /= shares.sum(-1, keepdims=True)
    policy = dense(rows.actions, rows.policy.astype(np.float64))
    weight = rows.weight * rows.has_policy / (rows.weight * rows.has_policy).sum()
    # Half precision leaves a policy's sum a little off one.
    wanted = 0.7 * weight[:, None] * (policy.sum(-1, keepdims=True) * shares - policy)
    np.testing.assert_allclose(gradient, wanted, atol=1e-6)
    assert (gradient[~mask] == 0).all()


@pytest.mark.parametrize("junk", [-1e4, 1e4, 3.0])
def test_logits_of_illegal_actions_never_matter(junk: float) -> None:
    rows, legal = make_rows()
    output = make_output()
    illegal = dense(legal, np.ones(legal.shape)) == 0
    odd = replace(output, **{n: np.where(illegal, np.float32(junk), getattr(output, n)) for n in ("logits", "soft")})
    one, other = lesson(output, rows, legal), lesson(odd, rows, legal)
    assert one[0] == other[0]
    for gradient in (one[2], other[2]):
        assert (gradient.logits[illegal] == 0).all()
        assert (gradient.soft[illegal] == 0).all()
    np.testing.assert_array_equal(one[2].logits, other[2].logits)


def test_where_the_holes_are_and_what_they_hold_does_not_matter() -> None:
    rows, legal = make_rows()
    rng = np.random.default_rng(5)
    order, replies = (rng.permuted(np.tile(np.arange(E), (B, 1)), axis=1) for _ in range(2))
    moved = replace(
        rows,
        actions=np.take_along_axis(rows.actions, order, 1),
        policy=np.take_along_axis(rows.policy, order, 1),
        reply_actions=np.take_along_axis(rows.reply_actions, replies, 1),
        reply_policy=np.take_along_axis(rows.reply_policy, replies, 1),
    )
    moved = replace(moved, policy=np.where(moved.actions < 0, np.float16(9), moved.policy))
    output = make_output()
    one, other = lesson(output, rows, legal), lesson(output, moved, rng.permuted(legal, axis=1))
    assert one[0] == pytest.approx(other[0], rel=1e-6)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-7), one[2], other[2])


def test_a_reply_may_be_any_action() -> None:
    """What is legal after the next move is not known, so every action's logit is taught."""
    rows, legal = make_rows()
    gradient = lesson(make_output(), rows, legal)[2].reply
    has_reply = (rows.reply_actions >= 0).any(-1)
    assert 5 < has_reply.sum() < B - 5
    assert (gradient[has_reply] != 0).all()
    assert (gradient[~has_reply] == 0).all()


@pytest.mark.parametrize("config", [CONFIG, replace(CONFIG, value_loss="mse")])
def test_rows_without_a_target_teach_nothing(config: LossConfig) -> None:
    rows, legal = make_rows()
    output = make_output()
    loss, _, gradient = lesson(output, rows, legal, config)
    assert (gradient.logits[~rows.has_policy] == 0).all()
    assert (gradient.soft[~rows.has_policy] == 0).all()
    assert (gradient.value[~rows.has_value] == 0).all()
    assert (np.abs(gradient.logits[rows.has_policy]).sum(-1) > 0)[(legal[rows.has_policy] >= 0).sum(-1) > 1].all()
    assert (np.abs(gradient.value[rows.has_value]).sum(-1) > 0).all()
    # Another target in such a row changes nothing.
    odd = replace(
        rows,
        policy=np.where(rows.has_policy[:, None], rows.policy, rows.policy[:, ::-1]),
        target=np.where(rows.has_value[:, None], rows.target, rows.target[:, ::-1]),
    )
    assert lesson(output, odd, legal, config)[0] == loss


def test_a_weight_counts_as_so_many_rows() -> None:
    rows, legal = make_rows()
    output = make_output()
    times = np.bincount(np.random.default_rng(6).integers(0, B, B), minlength=B)
    assert times.max() > 2
    weighted = lesson(output, replace(rows, weight=times.astype(np.float32)), legal)
    each = np.repeat(np.arange(B), times)
    repeated = jax.tree.map(lambda x: x[each], (output, replace(rows, weight=np.ones(B, np.float32)), legal))
    plain = lesson(*repeated)
    assert weighted[0] == pytest.approx(plain[0], rel=1e-5)
    assert (weighted[2].logits[times == 0] == 0).all()
    assert (weighted[2].value[times == 0] == 0).all()


def test_counts_are_sums_of_weights() -> None:
    rows, _ = make_rows()
    found = count(rows)
    assert float(found.policy) == pytest.approx(rows.weight[rows.has_policy].sum(), rel=1e-6)
    assert float(found.value) == pytest.approx(rows.weight[rows.has_value].sum(), rel=1e-6)
    assert float(found.reply) == pytest.approx(rows.weight[(rows.reply_actions >= 0).any(-1)].sum(), rel=1e-6)


@pytest.mark.parametrize("how", ["no targets", "no weight"])
def test_a_batch_without_targets_teaches_nothing_and_is_finite(how: str) -> None:
    rows, legal = make_rows()
    never = np.zeros(B, bool)
    if how == "no targets":
        rows = replace(
            rows,
            has_policy=never,
            has_value=never,
            reply_actions=np.full_like(rows.reply_actions, -1),
            moves_left=np.full_like(rows.moves_left, -1),
        )
    else:
        rows = replace(rows, weight=np.zeros(B, np.float32))
    assert all(float(x) > 0 for x in vars(count(rows)).values())
    loss, measures, gradient = lesson(make_output(), rows, legal)
    assert loss == 0
    assert all(float(x) == 0 for x in jax.tree.leaves(measures))
    assert all((x == 0).all() for x in jax.tree.leaves(gradient))


@pytest.mark.parametrize(("temperature", "wanted"), [(1.0, [0.8, 0.2, 0.0]), (2.0, [2 / 3, 1 / 3, 0.0])])
def test_the_soft_policy_is_flatter_and_never_adds_an_action(temperature: float, wanted: list[float]) -> None:
    rows, _ = make_rows()
    listed: np.ndarray = np.array([2, -1, 5, 7, -1, -1, -1], np.int16)
    policy: np.ndarray = np.array([0.8, 0.9, 0.2, 0.0, 0.9, 0.9, 0.9], np.float16)
    rows = replace(rows, actions=np.tile(listed, (B, 1)), policy=np.tile(policy, (B, 1)), has_policy=np.ones(B, bool))
    legal = np.tile(np.array([2, 5, 7, -1, -1, -1, -1, -1, -1], np.int16), (B, 1))
    output = make_output()
    gradient = lesson(output, rows, legal, LossConfig(soft_temperature=temperature))[2].soft
    shares = np.exp(output.soft[:, [2, 5, 7]])
    shares /= shares.sum(-1, keepdims=True)
    weight = rows.weight / rows.weight.sum()
    np.testing.assert_allclose(gradient[:, [2, 5, 7]], weight[:, None] * (shares - np.array(wanted)), atol=1e-4)


# ---- symmetries


def squares_of(game: Game) -> list[tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]]:
    """The board's symmetries from geometry alone: each as a map of boards, and each action's new name."""
    if isinstance(game, ConnectFour):
        return [(lambda x: x, np.arange(7)), (np.fliplr, np.arange(7)[::-1])]

    def map_of(turns: int, flip: bool) -> Callable[[np.ndarray], np.ndarray]:
        return lambda x: np.rot90(np.fliplr(x) if flip else x, turns)

    found = []
    for turns in range(4):
        for flip in (False, True):
            # The square that shows up at place i of the turned numbers has i as its new name.
            names = np.argsort(map_of(turns, flip)(np.arange(9).reshape(3, 3)).reshape(-1))
            found.append((map_of(turns, flip), names))
    return found


GAMES = {"tictactoe": (TICTACTOE, (0, 1, 5)), "connect_four": (CONNECT_FOUR, (0, 0, 1, 0, 0, 0, 0, 2))}
"""Games, and moves to a position that no symmetry leaves as it is; column 0 of Connect Four is full."""


def rows_of(game: Game, states: Any, seed: int = 0) -> Any:
    """Rows of the contract's states `[B, ...]`, with policies over some of the legal actions."""
    rng = np.random.default_rng(seed)
    legal = np.asarray(jax.jit(jax.vmap(game.legal_list))(states))
    size = len(legal)
    actions, replies = (shortlist(rng, legal, game.spec.max_legal) for _ in range(2))
    fields: dict[str, Any] = {
        "state": np.asarray(jax.jit(jax.vmap(game.pack))(states)),
        "actions": actions,
        "policy": policies(rng, actions),
        "has_policy": np.ones(size, bool),
        "target": rng.dirichlet(np.ones(3), size).astype(np.float32),
        "has_value": np.ones(size, bool),
        "reply_actions": replies,
        "reply_policy": policies(rng, replies),
        "weight": np.ones(size, np.float32),
        "moves_left": np.full(size, -1, np.int16),
    }
    return Rows(**fields)


@functools.cache
def preparer(game: Game) -> Callable[[Any, Array, bool], Any]:
    return jax.jit(functools.partial(make_batch, game), static_argnums=2)


COPIES = 64


def copies_of(game: Game, moves: tuple[int, ...]) -> Any:
    """The same row many times: the position after some moves."""
    apply = jax.jit(game.apply_action)
    state = game.init(jax.random.key(0))
    for move in moves:
        state = apply(state, jnp.int32(move))
    one = rows_of(game, jax.tree.map(lambda x: x[None], state))
    return jax.tree.map(lambda x: np.repeat(x, COPIES, 0), one)


def by_action(lists: np.ndarray, shares: np.ndarray) -> dict[int, float]:
    return {int(a): float(p) for a, p in zip(lists, shares, strict=True) if a >= 0}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(GAMES))
def test_a_turned_row_says_the_same_of_the_turned_position(name: str) -> None:
    """Which symmetry each of many copies got is read off its observation; everything else must agree with it."""
    game, moves = GAMES[name]
    rows = copies_of(game, moves)
    plain = jax.tree.map(np.asarray, preparer(game)(rows, jax.random.key(1), False))
    jax.tree.map(np.testing.assert_array_equal, plain.rows, rows)
    batches = [preparer(game)(rows, jax.random.key(k), True) for k in range(4)]
    batch = jax.tree.map(lambda *x: np.concatenate(x), *batches)
    rows, plain = jax.tree.map(lambda x: np.tile(x, (4, *[1] * (x.ndim - 1))), (rows, plain))
    for kept in ("policy", "reply_policy", "target", "has_policy", "has_value", "weight"):
        np.testing.assert_array_equal(getattr(batch.rows, kept), getattr(rows, kept))
    symmetries = squares_of(game)
    turned = [turn(plain.observation[0]) for turn, _ in symmetries]
    assert all((x != y).any() for i, x in enumerate(turned) for y in turned[:i]), "the position must have no symmetry"
    met = np.zeros(len(symmetries), int)
    for i in range(len(rows.weight)):
        which = [j for j, x in enumerate(turned) if (x == batch.observation[i]).all()]
        assert len(which) == 1, f"row {i} shows a position that no symmetry leads to"
        names = symmetries[which[0]][1]
        met[which[0]] += 1
        assert {int(a) for a in batch.legal[i] if a >= 0} == {int(names[a]) for a in plain.legal[i] if a >= 0}
        for listed, shares in (("actions", "policy"), ("reply_actions", "reply_policy")):
            before = by_action(getattr(rows, listed)[i], getattr(rows, shares)[i])
            after = by_action(getattr(batch.rows, listed)[i], getattr(batch.rows, shares)[i])
            assert after == {int(names[a]): p for a, p in before.items()}
    # Every symmetry is met, and none hardly ever.
    assert met.min() > met.sum() / len(symmetries) / 3, met


def test_rows_are_turned_each_by_itself_and_by_the_key() -> None:
    game, moves = GAMES["tictactoe"]
    rows = copies_of(game, moves)
    first, again, other = (np.asarray(preparer(game)(rows, jax.random.key(k), True).observation) for k in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any((1, 2, 3)).mean() > 0.5
    assert (first != first[:1]).any((1, 2, 3)).mean() > 0.5


def even_network(game: Game) -> Callable[[Any, Array], Output]:
    """A network that treats every symmetry alike: it looks at what a turn does not change."""

    def tictactoe(weights: Array, seen: Array) -> Output:
        lines = [(seen.sum(axis, keepdims=True) ** 2 * jnp.ones_like(seen)) for axis in (1, 2)]
        square = jnp.stack([seen, lines[0] + lines[1]], -1).reshape(len(seen), 9, -1)  # [B, 9, 4]
        middle = jnp.arange(9) == 4
        logits = jnp.tanh(square @ weights[:4]) * weights[4] + jnp.where(middle, weights[5], 0.0)[None]
        return Output(logits=logits, value=(square**3).sum(1) @ weights[8:20].reshape(4, 3), reply=2 * logits)

    def connect_four(weights: Array, seen: Array) -> Output:
        column = (seen * weights[:6].reshape(1, 6, 1, 1)).sum(1)  # [B, 7, 2]
        edge = jnp.pad(column, ((0, 0), (1, 1), (0, 0)))
        column = jnp.concatenate([column, edge[:, 2:] + edge[:, :-2]], -1)
        distance = jnp.abs(jnp.arange(7.0) - 3)
        logits = jnp.tanh(column @ weights[6:10]) + (weights[10] * distance)[None]
        return Output(logits=logits, value=(column**3).sum(1) @ weights[8:20].reshape(4, 3), reply=2 * logits)

    return tictactoe if isinstance(game, TicTacToe) else connect_four


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(GAMES))
def test_turning_changes_nothing_for_a_network_that_treats_all_turns_alike(name: str) -> None:
    game, _ = GAMES[name]
    steps = wander(game, lanes=12, plies=7, seed=3)
    states = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:COPIES], steps.state)
    rows, weights = rows_of(game, states), jnp.asarray(np.random.default_rng(2).normal(size=20), jnp.float32)

    def odd(weights: Array, seen: Array) -> Output:
        output = even_network(game)(weights, seen)
        assert output.logits is not None
        return replace(output, logits=output.logits + jnp.arange(float(game.spec.num_actions))[None])

    spread = []
    for network in (even_network(game), odd):
        loss = jax.jit(make_loss(game, CONFIG, network))
        batches = [
            preparer(game)(rows, jax.random.key(k), augment) for k, augment in ((0, False), (1, True), (2, True))
        ]
        found = [float(loss(weights, batch, count(rows))[0]) for batch in batches]
        spread.append(np.ptp(found))
    assert spread[0] < 1e-4
    assert spread[1] > 1e-2


@pytest.mark.parametrize("name", sorted(GAMES))
def test_every_symmetry_alone_keeps_the_legal_moves(name: str) -> None:
    game, _ = GAMES[name]
    steps = wander(game, lanes=12, plies=7, seed=4)
    states = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), steps.state)
    list_legal = jax.jit(jax.vmap(game.legal_list))
    legal = np.asarray(list_legal(states))
    assert len(game.symmetries) == (3 if name == "tictactoe" else 2)
    for symmetry in game.symmetries:
        turned = np.asarray(list_legal(jax.jit(jax.vmap(symmetry.turn))(states)))
        for before, after in zip(legal, turned, strict=True):
            assert {symmetry.actions[a] for a in before if a >= 0} == {a for a in after.tolist() if a >= 0}


# ---- the settings


def test_sound_settings_have_no_problems() -> None:
    assert LossConfig().problems() == []
    assert LossConfig(0.0, 0.0, "mse", 0.0, 1.0, 0.0, False).problems() == []


def test_every_problem_is_named() -> None:
    config = LossConfig(
        policy_weight=-1.0, value_weight=-2.0, soft_weight=-3.0, soft_temperature=0.5, reply_weight=-4.0
    )
    assert config.problems() == [
        "policy_weight is -1.0; it must not be negative",
        "value_weight is -2.0; it must not be negative",
        "soft_weight is -3.0; it must not be negative",
        "reply_weight is -4.0; it must not be negative",
        "soft_temperature is 0.5; it must be at least 1",
    ]
