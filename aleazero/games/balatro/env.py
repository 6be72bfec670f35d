"""Balatro for Gymnasium: one run (`BalatroEnv`) or many at once (`BalatroVectorEnv`), with documented spaces.

A step is one action; a point for every blind beaten. Two clients may be given. An embedding client (a knowledge graph
of jokers, `memgraph_client`) is asked for 128 numbers about the owned jokers; without one they are zero. A game client
(`mcp_client`) plays the run elsewhere: it is asked to start and to act, and answers with the state; without one the
engine here does both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from aleazero.core.errors import AleaError, ConfigError, MissingExtra, UnknownName
from aleazero.games.balatro import actions, entities, facts, observe, text
from aleazero.games.balatro.checked import checked
from aleazero.games.balatro.engine import LAST_ANTE, Batch, cores, seed_text
from aleazero.games.balatro.layout import P_OVER
from aleazero.games.balatro.observe import observe_batch
from aleazero.games.balatro.rng import check_seed

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
except ImportError as error:
    raise MissingExtra("BalatroEnv", "gymnasium", "balatro") from error

EMBEDDING = 128


class IllegalAction(AleaError):  # noqa: N818 - as the other errors that name what is wrong
    """An action that is not legal was taken."""


class EmbeddingClient(Protocol):
    """What `memgraph_client` must do."""

    def embedding(self, jokers: Sequence[str]) -> Sequence[float]:
        """128 numbers in -1..1 for the names of the owned jokers, left to right."""


class GameClient(Protocol):
    """What `mcp_client` must do: two tools, each answered with `{"snapshot": HEX}`, the game's record."""

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """`balatro_start` takes seed, deck, stake, last_ante; `balatro_act` takes action."""


@dataclasses.dataclass(frozen=True)
class EnvConfig:
    """What an environment is made with."""

    deck: str = "Red Deck"
    stake: str = "White"
    last_ante: int = 8  # 8: a won run ends; up to 12: it goes on
    seed: str | None = None  # every run's seed; drawn anew for each run if None
    illegal: str = "raise"  # or "penalise": nothing happens but a reward of -penalty, and `info` says why
    penalty: float = 0.1
    memgraph_client: EmbeddingClient | None = None
    mcp_client: GameClient | None = None

    def __post_init__(self) -> None:
        facts.number("decks", self.deck)
        facts.number("stakes", self.stake)
        problems = []
        if not _whole(self.last_ante) or not 8 <= self.last_ante <= LAST_ANTE:
            problems.append(f"last_ante is {self.last_ante!r}; it must be a whole number in 8..{LAST_ANTE}")
        if self.illegal not in ("raise", "penalise"):
            problems.append(f"illegal is {self.illegal!r}; it must be 'raise' or 'penalise'")
        if not isinstance(self.penalty, int | float) or not 0 <= self.penalty < np.inf:
            problems.append(f"penalty is {self.penalty!r}; it must be a number, 0 or more")
        if problems:
            raise ConfigError("\n".join(problems))
        if self.seed is not None:
            check_seed(self.seed)


def observation_space() -> Any:
    """The Dict of what is seen, every key with its bounds."""
    found: dict[str, Any] = {
        "cards": spaces.Box(0.0, 1.0, (observe.CARD_ROWS, observe.CARD_COLUMNS), np.float32),
        "jokers": spaces.Box(0.0, 1.0, (observe.JOKER_ROWS, observe.JOKER_COLUMNS), np.float32),
        "game_state": spaces.Box(-np.inf, np.inf, (observe.STATE_SIZE,), np.float32),
        "memgraph_embedding": spaces.Box(-1.0, 1.0, (EMBEDDING,), np.float32),
        "action_mask": spaces.Box(0, 1, (actions.NUM_ACTIONS,), np.int8),
    }
    for name, (rows, columns) in entities.ENTITIES.items():
        low, high = (np.tile(np.array([c[k] for c in columns], np.float32), (rows, 1)) for k in (1, 2))
        found[name] = spaces.Box(low, high, dtype=np.float32)
    return spaces.Dict(found)


def _embeddings(batch: Batch, client: EmbeddingClient | None) -> np.ndarray:
    """`[B, 128]`: what the client says of each game's jokers; zeros without one."""
    found = np.zeros((len(batch), EMBEDDING), np.float32)
    if client is None:
        return found
    for b in range(len(batch)):
        g = batch.states[b]
        names = [facts.name_of("jokers", int(g.joker[i])) for i in range(int(g.joker_count))]
        row = np.asarray(client.embedding(names), np.float32)
        if row.shape != (EMBEDDING,) or not np.isfinite(row).all() or np.abs(row).max() > 1:
            raise ConfigError(
                f"memgraph_client gave an embedding of shape {row.shape} for {names}; it must be {EMBEDDING} numbers "
                "in -1..1"
            )
        found[b] = row
    return found


def observe_all(batch: Batch, client: EmbeddingClient | None) -> dict[str, np.ndarray]:
    """All that is seen of a batch, in the order of `observation_space`."""
    seen = observe_batch(batch)
    return {
        **seen,
        "memgraph_embedding": _embeddings(batch, client),
        "action_mask": seen["action_mask"].astype(np.int8),
        **entities.observe_rows(batch),
    }


def _outside(client: GameClient, tool: str, arguments: Mapping[str, Any]) -> Batch:
    """The game a client answers with."""
    answer = client.call_tool(tool, arguments)
    try:
        row = bytes.fromhex(answer["snapshot"])
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"mcp_client answered {tool} with {answer!r}; it must be {{'snapshot': HEX}}") from error
    try:
        return checked(row)
    except ConfigError as error:
        raise ConfigError(f"mcp_client answered {tool} with what is no game: {error}") from error


def _illegal(g: Any, action: int) -> str:
    return f"action {action} ({actions.action_name(action)}) is not legal: {text.why_not(g, action)}"


def _info(batch: Batch, b: int) -> dict[str, Any]:
    g = batch.states[b]
    return {
        "seed": bytes(g.seed[: int(g.seed_length)].astype(np.uint8)).decode(),
        "ante": int(g.ante),
        "rounds": int(g.beaten),
        "won": bool(g.won),
        "money": int(g.money),
    }


class BalatroEnv(gymnasium.Env):  # type: ignore[misc, type-arg, unused-ignore]
    """One run. `reset(options={"seed": "ALEEB"})` names its seed."""

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self, config: EnvConfig | Mapping[str, Any] | None = None, render_mode: str | None = None) -> None:
        self.config = config if isinstance(config, EnvConfig) else _config_of(config or {})
        self.observation_space = observation_space()
        self.action_space = spaces.Discrete(actions.NUM_ACTIONS)
        self.render_mode = render_mode
        self.batch: Batch | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """A new run."""
        super().reset(seed=seed)
        config = self.config
        drawn = seed_text(int(self.np_random.integers(0, 35**8)))
        named = _seed_option(options)
        wanted = check_seed(named if named is not None else config.seed or drawn)
        if config.mcp_client is not None:
            asked = {"seed": wanted, "deck": config.deck, "stake": config.stake, "last_ante": config.last_ante}
            self.batch = _outside(config.mcp_client, "balatro_start", asked)
        else:
            self.batch = Batch.start([wanted], config.deck, config.stake, config.last_ante)
        return self._see(), _info(self.batch, 0)

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """One action; a point for every blind it beats."""
        if self.batch is None:
            raise ConfigError("step came before reset")
        if not _whole(action):
            raise IllegalAction(f"action {action!r} is no whole number; actions are 0 to {actions.NUM_ACTIONS - 1}")
        chosen = int(action)
        g = self.batch.states[0]
        over = int(g.phase) == P_OVER
        if over or not 0 <= chosen < actions.NUM_ACTIONS or not self.batch.masks[0, chosen]:
            why = _illegal(g, chosen)
            if over or self.config.illegal == "raise":
                raise IllegalAction(why)
            return self._see(), -self.config.penalty, False, False, {**_info(self.batch, 0), "illegal": why}
        if self.config.mcp_client is not None:
            self.batch = _outside(self.config.mcp_client, "balatro_act", {"action": chosen})
        else:
            self.batch.step(np.array([chosen]))
        g = self.batch.states[0]
        return self._see(), float(g.gained), int(g.phase) == P_OVER, False, _info(self.batch, 0)

    def render(self) -> str | None:
        """The table as text."""
        if self.render_mode != "ansi" or self.batch is None:
            return None
        from aleazero.games.balatro.pages import table_text

        return table_text(self.batch.states[0])

    def _see(self) -> dict[str, np.ndarray]:
        assert self.batch is not None
        return {name: rows[0] for name, rows in observe_all(self.batch, self.config.memgraph_client).items()}


class BalatroVectorEnv(VectorEnv):  # type: ignore[misc, type-arg, unused-ignore]
    """Many runs at once; a run that ended begins anew at the next step, whose action is not used.

    One that needs more room than a record has is truncated, and `info["error"]` says why.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 - as Gymnasium has it

    def __init__(
        self, num_envs: int, config: EnvConfig | Mapping[str, Any] | None = None, threads: int | None = None
    ) -> None:
        self.config = config if isinstance(config, EnvConfig) else _config_of(config or {})
        if self.config.mcp_client is not None:
            raise ConfigError("mcp_client plays one run: use BalatroEnv")
        self.num_envs = num_envs
        self.threads = cores() if threads is None else threads
        self.single_observation_space = observation_space()
        self.single_action_space = spaces.Discrete(actions.NUM_ACTIONS)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self.batch: Batch | None = None
        self._over = np.zeros(num_envs, np.bool_)
        self._own: list[np.random.Generator] | None = None  # of each run, where each was given a seed
        self._rules = self.config.deck, self.config.stake, self.config.last_ante

    def _seeds(self, lanes: Sequence[int]) -> list[str]:
        if self.config.seed:
            return [self.config.seed] * len(lanes)
        if self._own is not None:
            return [seed_text(int(self._own[lane].integers(0, 35**8))) for lane in lanes]
        return [seed_text(int(n)) for n in self.np_random.integers(0, 35**8, len(lanes))]

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """New runs. A list of seeds has one for each run, which is then as in a `BalatroEnv` of its own;
        `options={"seed": ...}` names the run's seed, or a list of them."""
        self._own = None
        if seed is None or isinstance(seed, int | np.integer):
            super().reset(seed=seed)
        else:
            self._count("seed", seed)
            self._own = [gymnasium.utils.seeding.np_random(one)[0] for one in seed]
        named = _seed_option(options)
        if named is None:
            wanted = self._seeds(range(self.num_envs))
        else:
            wanted = [named] * self.num_envs if isinstance(named, str) else list(named)
            self._count("options['seed']", wanted)
        self.batch = Batch.start(wanted, *self._rules, self.threads)
        self._over[:] = False
        return observe_all(self.batch, self.config.memgraph_client), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One action in every run."""
        if self.batch is None:
            raise ConfigError("step came before reset")
        self._count("actions", actions)
        if np.asarray(actions).dtype.kind not in "iu":
            raise IllegalAction(f"actions are of type {np.asarray(actions).dtype}; they must be whole numbers")
        batch, chosen = self.batch, np.asarray(actions, np.int64)
        within = (chosen >= 0) & (chosen < batch.masks.shape[1])
        legal = within & batch.masks[np.arange(self.num_envs), np.where(within, chosen, 0)]
        wrong = np.flatnonzero(~legal & ~self._over)
        info: dict[str, Any] = {}
        if len(wrong):
            whys = {int(b): _illegal(batch.states[b], int(chosen[b])) for b in wrong}
            if self.config.illegal == "raise":
                raise IllegalAction("\n".join(f"run {b}: {why}" for b, why in whys.items()))
            info["illegal"] = np.array([whys.get(b, "") for b in range(self.num_envs)], dtype=object)
        moving = legal & ~self._over
        stopped = batch.try_step(np.where(moving, chosen, 0), moving)
        rewards = np.where(moving, batch.states["gained"], 0).astype(np.float64)
        rewards[wrong] = -self.config.penalty
        if self._over.any():
            lanes = np.flatnonzero(self._over)
            batch.restart(lanes, self._seeds(lanes.tolist()), *self._rules)
        ended, cut = batch.over & ~self._over, np.zeros(self.num_envs, np.bool_)
        if len(stopped):  # a run that no record holds ends alone: the others go on
            cut[stopped] = True
            info["error"] = np.array([batch.why(b) if cut[b] else "" for b in range(self.num_envs)], dtype=object)
        self._over = ended | cut
        info["ante"], info["rounds"] = batch.states["ante"].copy(), batch.states["beaten"].copy()
        return observe_all(batch, self.config.memgraph_client), rewards, ended, cut, info

    def _count(self, what: str, given: Any) -> None:
        if np.shape(given) != (self.num_envs,):
            raise ConfigError(f"{what} has the shape {np.shape(given)}; there are {self.num_envs} runs")


def _whole(value: Any) -> bool:
    """A whole number, Python's or NumPy's."""
    kind = np.asarray(value).dtype.kind
    return np.ndim(value) == 0 and kind in "iu"


def _seed_option(options: Mapping[str, Any] | None) -> Any:
    """The seed that options name; None where they name none."""
    unknown = [str(UnknownName("option of reset", str(name), ["seed"])) for name in options or {} if name != "seed"]
    if unknown:
        raise ConfigError("\n".join(unknown))
    return (options or {}).get("seed")


def _config_of(values: Mapping[str, Any]) -> EnvConfig:
    known = {field.name for field in dataclasses.fields(EnvConfig)}
    unknown = [str(UnknownName("setting of BalatroEnv", name, known)) for name in values if name not in known]
    if unknown:
        raise ConfigError("\n".join(unknown))
    return EnvConfig(**values)
