"""RLlib's learner has our loss, and keeps what a checkpoint needs."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing

from aleazero.assemble_ppo import build_ppo_parts
from aleazero.config import resolve
from aleazero.learn.ppo import PpoRows, ppo_loss
from aleazero.runtimes.rllib.env import make_env
from aleazero.runtimes.rllib.learner import MODULE, BalatroLearner, Rates
from aleazero.runtimes.rllib.module import LEGAL, SEEN
from aleazero.runtimes.rllib.networks import from_weights
from aleazero.runtimes.rllib.trainer import settings_of
from tests.runtimes.rllib.test_networks import roughened

ROWS = 24


@pytest.mark.usefixtures("quick_programs")
def test_the_loss_is_ours_and_what_it_saw_is_reported() -> None:
    assignments = ["runtime=rllib", "model.kind=balatro", "model.width=16", "ppo.value_clip=0.5", "learn.batch_size=64"]
    parts = build_ppo_parts(resolve("balatro", preset="quick", assignments=assignments, environ={}))
    settings = settings_of(parts, 1, 0, False)
    env = make_env({**settings.env_config, "num_envs": ROWS})
    spaces = {MODULE: (env.single_observation_space, env.single_action_space)}
    learner: Any = settings.build_learner(spaces=spaces)
    assert isinstance(learner, BalatroLearner)
    learner.rates, learner.kl_weight = Rates(1e-3, 0.02), 0.7

    weights = roughened(jax.jit(parts.model.init)(jax.random.key(0)))
    learner.module[MODULE].set_state({f"network.{name}": array for name, array in from_weights(weights).items()})
    seen, random = env.reset()[0], np.random.default_rng(0)
    valid = np.arange(ROWS) < ROWS - 4
    action = (random.random(seen[LEGAL].shape) * seen[LEGAL]).argmax(-1)
    numbers = random.normal(size=(4, ROWS)).astype(np.float32)
    log_prob, advantage, target, value = numbers - np.array([[6.0], [0.0], [0.0], [0.0]], np.float32)
    batch = {
        Columns.OBS: {SEEN: torch.as_tensor(seen[SEEN]), LEGAL: torch.as_tensor(seen[LEGAL])},
        Columns.ACTIONS: torch.as_tensor(action),
        Columns.ACTION_LOGP: torch.as_tensor(log_prob),
        Columns.VF_PREDS: torch.as_tensor(value),
        Columns.LOSS_MASK: torch.as_tensor(valid),
        Postprocessing.ADVANTAGES: torch.as_tensor(advantage),
        Postprocessing.VALUE_TARGETS: torch.as_tensor(target),
    }
    said = learner.module[MODULE].forward_train(batch)
    loss = learner.compute_loss_for_module(module_id=MODULE, config=settings, batch=batch, fwd_out=said)

    away = advantage - advantage[valid].mean()
    rows: dict[str, Any] = {
        "observation": seen[SEEN],
        "legal": seen[LEGAL].astype(bool),
        "action": action,
        "log_prob": log_prob,
        "value": value,
        "advantage": away / np.sqrt((away[valid] ** 2).mean()),
        "target": target,
        "mine": valid,
    }
    ours, measures = jax.jit(
        lambda: ppo_loss(parts.config.ppo, parts.model.apply, weights, PpoRows(**rows), 0.7, 0.02)  # type: ignore[arg-type]
    )()
    np.testing.assert_allclose(float(loss.detach()), float(ours), rtol=1e-4)
    learner._norms = [1.0]
    learned = learner.take()
    assert learned is not None
    for name in ("policy", "value", "entropy", "kl", "clipped"):
        got = getattr(learned.stats.measures, name)
        np.testing.assert_allclose(got, [float(getattr(measures, name))], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(learned.stats.return_variance, target[valid].var(), rtol=1e-4)
    assert float(learned.stats.kl_weight) == learner.kl_weight == pytest.approx(0.7 * 1.5)
    assert learner.take() is None
    assert set(learner.moments()) == {"exp_avg", "exp_avg_sq"}
