"""RLlib's PPO learner with the loss of `learn.ppo`: values as distributions, a penalty from the played actions alone.

Rates are told before every iteration, so that schedules go by the run's rows and survive a restart. What it sees is
kept for the run's reports. Knows RLlib's batches; not who plays.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing
from torch import Tensor

from aleazero.learn.ppo import PpoConfig, PpoMeasures, PpoStats, next_kl_weight
from aleazero.runtimes.rllib.module import LEGAL, POLICY, VALUE
from aleazero.runtimes.rllib.networks import encode

MODULE = "default_policy"


@dataclasses.dataclass(frozen=True)
class Rates:
    """Of one iteration."""

    learning: float
    entropy: float  # its weight


@dataclasses.dataclass(frozen=True)
class Learned:
    """What an iteration saw."""

    stats: PpoStats
    legal_entropy: float  # of a uniform policy, in the same positions


class BalatroLearner(PPOTorchLearner):
    """The config's `learner_config_dict` has `ppo`, the settings, and `betas`, Adam's."""

    def build(self) -> None:
        """Begins with the first weight of the penalty."""
        super().build()
        self.ppo = PpoConfig(**self.config.learner_config_dict["ppo"])
        self.kl_weight = self.ppo.kl_start if self.ppo.kl_target else 0.0
        self.rates = Rates(0.0, 0.0)
        self._seen: list[dict[str, float]] = []
        self._norms: list[float] = []

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Adam with the run's numbers."""
        parameters = self.get_parameters(self.module[module_id])
        adam = torch.optim.Adam(parameters, betas=tuple(self.config.learner_config_dict["betas"]), eps=1e-8)
        self.register_optimizer(module_id=module_id, optimizer=adam, params=parameters, lr_or_lr_schedule=config.lr)

    def before_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """Takes the iteration's learning rate."""
        super().before_gradient_based_update(timesteps=timesteps)
        self._set_optimizer_lr(self.get_optimizer(MODULE), self.rates.learning)

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: dict[str, Any], fwd_out: dict[str, Any]
    ) -> Tensor:
        """The loss of a minibatch (`learn.ppo.ppo_loss`)."""
        ppo = self.ppo
        valid = batch[Columns.LOSS_MASK] if Columns.LOSS_MASK in batch else torch.ones_like(batch[Columns.ACTIONS])
        valid = valid.to(torch.float32)

        def mean(each: Tensor) -> Tensor:
            return (each * valid).sum() / valid.sum().clamp(min=1.0)

        policy, legal = fwd_out[POLICY], batch[Columns.OBS][LEGAL].bool()
        log_ratio = policy.gather(-1, batch[Columns.ACTIONS].long()[:, None])[:, 0] - batch[Columns.ACTION_LOGP]
        # Anew: RLlib's mean is over the rows that it adds to end each piece of a game with, too.
        ratio, advantage = log_ratio.exp(), batch[Postprocessing.ADVANTAGES]
        advantage = advantage - mean(advantage)
        advantage = advantage / (mean(advantage**2).sqrt() + 1e-8)
        surrogate = torch.minimum(ratio * advantage, ratio.clamp(1 - ppo.clip, 1 + ppo.clip) * advantage)
        target, before = batch[Postprocessing.VALUE_TARGETS], batch[Columns.VF_PREDS]
        near = before + (target - before).clamp(-ppo.value_clip, ppo.value_clip) if ppo.value_clip else target
        terms = {
            "policy": -mean(surrogate),
            "value": mean(-(encode(near) * fwd_out[VALUE].log_softmax(-1)).sum(-1)),
            "entropy": mean(-torch.where(legal, policy.exp() * policy, 0.0).sum(-1)),
            "kl": mean(ratio - 1 - log_ratio),
        }
        loss = (
            terms["policy"]
            + ppo.value_weight * terms["value"]
            - self.rates.entropy * terms["entropy"]
            + self.kl_weight * terms["kl"]
        )
        with torch.no_grad():
            wrong = target - before
            more = {
                "loss": loss,
                "clipped": mean(((ratio - 1).abs() > ppo.clip).float()),
                "target": mean(target),
                "square": mean(target**2),
                "wrong": mean(wrong),
                "wrong_square": mean(wrong**2),
                "error": mean(wrong.abs()),
                "uniform": mean(legal.sum(-1).clamp(min=1).float().log()),
            }
            self._seen.append({name: float(term.detach()) for name, term in {**terms, **more}.items()})
        return loss

    def postprocess_gradients(self, gradients_dict: Any) -> Any:
        """Notes their norm before RLlib clips them."""
        found = [gradient for gradient in gradients_dict.values() if gradient is not None]
        self._norms.append(float(torch.nn.utils.get_total_norm(found)))
        return super().postprocess_gradients(gradients_dict)

    def _update_module_kl_coeff(self, *, module_id: str, config: Any, kl_loss: float) -> None:
        """Nothing: the run's own rule sets the weight, in `take`."""

    def take(self) -> Learned | None:
        """What was seen since the last call, and the penalty's next weight; None where nothing was learned."""
        if not self._seen:
            return None
        seen = {name: np.array([one[name] for one in self._seen], np.float32) for name in self._seen[0]}
        norms = np.array(self._norms, np.float32)
        self._seen, self._norms = [], []
        each = max(len(norms) // self.ppo.epochs, 1)
        kl = jnp.asarray(seen["kl"][-each:].mean())
        self.kl_weight = float(next_kl_weight(self.ppo, jnp.float32(self.kl_weight), kl))
        first = {name: float(term[:each].mean()) for name, term in seen.items()}
        variance = max(first["square"] - first["target"] ** 2, 0.0)
        spread = max(first["wrong_square"] - first["wrong"] ** 2, 0.0)
        names = ("policy", "value", "entropy", "kl", "clipped")
        stats: dict[str, Any] = {
            "loss": seen["loss"],
            "measures": PpoMeasures(**{name: seen[name] for name in names}),  # type: ignore[arg-type]
            "gradient_norm": norms,
            "kl_weight": np.float32(self.kl_weight),
            "explained": np.float32(1 - spread / max(variance, 1e-8)),
            "return_variance": np.float32(variance),
            "value_error": np.float32(first["error"]),
        }
        return Learned(PpoStats(**stats), first["uniform"])

    # ---- what a checkpoint keeps

    def _network(self) -> torch.nn.Module:
        module: Any = self.module[MODULE]
        network: torch.nn.Module = module.network
        return network

    def moments(self) -> dict[str, dict[str, np.ndarray]]:
        """Adam's two means, by the names of the weights; zeros before the first update."""
        adam = self.get_optimizer(MODULE)
        found: dict[str, dict[str, np.ndarray]] = {"exp_avg": {}, "exp_avg_sq": {}}
        for name, weight in self._network().named_parameters():
            state = adam.state.get(weight, {})
            for kind, means in found.items():
                means[name] = state.get(kind, torch.zeros_like(weight)).detach().cpu().numpy().copy()
        return found

    def set_moments(self, moments: dict[str, dict[str, np.ndarray]], updates: int) -> None:
        """Goes on with them, after so many updates."""
        adam = self.get_optimizer(MODULE)
        if not updates:
            return
        for name, weight in self._network().named_parameters():
            kept = {
                kind: torch.as_tensor(means[name], dtype=weight.dtype, device=weight.device).clone()
                for kind, means in moments.items()
            }
            adam.state[weight] = {"step": torch.tensor(float(updates)), **kept}
