"""The RLModule: a network that masks, draws its own actions, and says what they were worth to it.

Actions are drawn here, so that of a policy over a thousand actions one number a decision is kept. Knows RLlib's
columns and a network; not how it learns.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import Tensor

from aleazero.models.build import ModelConfig
from aleazero.runtimes.rllib.networks import NETWORKS, decode

SEEN, LEGAL = "observation", "action_mask"  # of the environment's observations
POLICY, VALUE = "policy", "value"  # of what training is given: log-probabilities [B, A], logits [B, NUM_BINS]
NETWORK = "network"  # of the settings, beside those that RLlib adds
_NEVER = -1e9  # below any logit, and not infinite: an infinity times zero would spoil the gradient
_CHUNK = 4096  # rows that are judged at once


class BalatroModule(TorchRLModule, ValueFunctionAPI):
    """Its `model_config` has a `ModelConfig`, as a dictionary, under `NETWORK`."""

    def setup(self) -> None:
        """Makes the network; its first weights are given by the run."""
        settings: Any = self.model_config
        actions: Any = self.action_space
        seen: Any = self.observation_space
        config = ModelConfig(**settings[NETWORK])
        self.network = NETWORKS[config.kind](config, int(actions.n), math.prod(seen[SEEN].shape))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """The likeliest action."""
        policy, _ = self._policy(batch)
        return {Columns.ACTIONS: policy.argmax(-1)}

    def _forward_exploration(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """An action drawn from the policy, its log-probability, and the value."""
        with torch.inference_mode():
            policy, value = self._policy(batch)
            action = torch.multinomial(policy.exp(), 1)
            return {
                Columns.ACTIONS: action[:, 0],
                Columns.ACTION_LOGP: policy.gather(-1, action)[:, 0],
                Columns.VF_PREDS: decode(value),
            }

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        policy, value = self._policy(batch)
        return {POLICY: policy, VALUE: value}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Tensor:
        """`[B]`, for advantages; nothing is learned from this call."""
        with torch.no_grad():
            pieces = batch[Columns.OBS][SEEN].split(_CHUNK)
            return torch.cat([decode(self.network(piece.float())[1]) for piece in pieces])

    def _policy(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        seen = batch[Columns.OBS]
        logits, value = self.network(seen[SEEN].float())
        return torch.where(seen[LEGAL].bool(), logits, _NEVER).log_softmax(-1), value
