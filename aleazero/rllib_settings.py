"""RLlib's names for settings, those of its older versions too, as ours. Knows names; neither RLlib nor a run.

They count where a run is by RLlib (`runtime = "rllib"`): by themselves, or in a table `rllib`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aleazero.core.devices import cores
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.core.settings import Layer

TABLE = "rllib"
_MOST_RUNNERS = 4  # unless the settings say more: what fits into the usual memory
_BATCH = ("train_batch_size", "train_batch_size_per_learner")
NAMES: dict[str, tuple[str, ...]] = {
    "num_workers": ("ray.workers",),
    "num_rollout_workers": ("ray.workers",),
    "num_env_runners": ("ray.workers",),
    "num_envs_per_worker": ("selfplay.num_games",),
    "num_envs_per_env_runner": ("selfplay.num_games",),
    "rollout_fragment_length": ("selfplay.moves_per_rollout",),
    "sgd_minibatch_size": ("learn.batch_size",),
    "minibatch_size": ("learn.batch_size",),
    "num_sgd_iter": ("ppo.epochs",),
    "num_epochs": ("ppo.epochs",),
    "lr": ("learn.learning_rate.start", "learn.learning_rate.end"),
    "grad_clip": ("learn.clip",),
    "gamma": ("ppo.gamma",),
    "lambda": ("ppo.gae_lambda",),
    "lambda_": ("ppo.gae_lambda",),
    "clip_param": ("ppo.clip",),
    "vf_clip_param": ("ppo.value_clip",),
    "vf_loss_coeff": ("ppo.value_weight",),
    "entropy_coeff": ("ppo.entropy.start",),
    "kl_coeff": ("ppo.kl_start",),
    "kl_target": ("ppo.kl_target",),
    "num_gpus": ("ray.learner_gpu",),
    "num_gpus_per_learner": ("ray.learner_gpu",),
    "num_gpus_per_worker": ("ray.player_gpu",),
    "num_gpus_per_env_runner": ("ray.player_gpu",),
}


def runners_of(workers: int) -> int:
    """Environment runners: as many as the settings say, or this machine's cores, a few at most."""
    return workers or min(cores(), _MOST_RUNNERS)


def translated(layers: Sequence[Layer]) -> tuple[list[Layer], list[str]]:
    """The layers with RLlib's names replaced by ours, and a note for each of them.

    A train batch is told by the moves of a rollout.
    """
    if last_given(layers, "runtime") != TABLE:
        return list(layers), []
    found: list[Layer] = []
    notes: list[str] = []
    batch: Any = None
    after = 0  # layers up to the one that says how large a batch is; later ones may still say otherwise
    for layer in layers:
        values, given = _parted(layer)
        for name in [name for name in _BATCH if name in given]:
            batch, after = given.pop(name), len(found) + 1
        for name, value in given.items():
            placed = [path for path in NAMES[name] if _place(values, path.split("."), value)]
            if placed:
                notes.append(f"{name} is {' and '.join(placed)} here: {value}")
        found.append(Layer(layer.origin, values, layer.text))
    if batch is not None:
        runners = runners_of(_whole(last_given(found, "ray.workers") or 0, "ray.workers"))
        games = _whole(last_given(found, "selfplay.num_games") or 1, "selfplay.num_games")
        moves = _whole(batch, _BATCH[0]) // max(runners * games, 1)
        if moves < 1:
            raise ConfigError(
                f"{_BATCH[0]} is {batch}; {runners} runners of {games} games play {runners * games} rows at least "
                "in an iteration: lower ray.workers or selfplay.num_games"
            )
        found.insert(after, Layer(_BATCH[0], {"selfplay": {"moves_per_rollout": moves}}))
        notes.append(
            f"{_BATCH[0]} {batch} is selfplay.moves_per_rollout here: {moves}, in each of {games} games of {runners} "
            "runners"
        )
    return found, notes


def _parted(layer: Layer) -> tuple[dict[str, Any], dict[str, Any]]:
    """A layer's values, and those of them that have names of RLlib's."""
    values = _copy(layer.values)
    table = values.pop(TABLE, {})
    known = {*NAMES, *_BATCH}
    if not isinstance(table, Mapping):
        raise ConfigError(f"{TABLE} is {table!r}; it must be a table of RLlib's settings ({layer.origin})")
    unknown = [str(UnknownName("setting of RLlib's", name, known)) for name in table if name not in known]
    if unknown:
        raise ConfigError("\n".join(f"{problem} ({layer.origin})" for problem in unknown))
    return values, {**{name: values.pop(name) for name in list(values) if name in known}, **table}


def _copy(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _copy(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def _place(values: dict[str, Any], path: Sequence[str], value: Any) -> bool:
    """Whether it was put there: what our own name says in the same layer stands."""
    for part in path[:-1]:
        inner = values.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{part} is {inner!r}; it must be a table")
        values = inner
    new = path[-1] not in values
    values.setdefault(path[-1], value)
    return new


def last_given(layers: Sequence[Layer], path: str) -> Any:
    """What the last layer that speaks of a setting, as in `selfplay.num_games`, says; None where none does."""
    for layer in reversed(layers):
        value: Any = layer.values
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


def _whole(value: Any, name: str) -> int:
    try:
        return int(str(value))
    except ValueError as error:
        raise ConfigError(f"{name} is {value!r}; it must be a whole number") from error
