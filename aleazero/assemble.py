"""Where the parts are joined: from a config to an actor, a replay, a learner and an evaluator, all compiled.

Runtimes take it from here; no other module knows both games and networks, searches and replay.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from aleazero import chess_teacher
from aleazero.config import RunConfig
from aleazero.core.devices import devices_for
from aleazero.core.errors import ConfigError
from aleazero.core.game import Game
from aleazero.core.keys import Role, role_key
from aleazero.core.opinions import expected_value
from aleazero.core.records import Knowledge, Trajectory, Weights
from aleazero.games.registry import make_game
from aleazero.learn import losses, targets, update
from aleazero.models.build import Model, build_model
from aleazero.play.luck import luck
from aleazero.play.match import MatchResult, play_match
from aleazero.play.rollout import Games, GivingUp, KeepingSearch, Pace, Rollout, SearchLike
from aleazero.play.turns import TurnRollout
from aleazero.players import AnyPlayer, TurnNetworkPlayer, endings_of, load_network, make_player, network_player
from aleazero.replay.store import Replay
from aleazero.roles.actor import Play, PlayStats, summary_of
from aleazero.roles.learner import Learner, placed
from aleazero.roles.ports import WeightStore
from aleazero.search.build import build_search
from aleazero.search.expectimax import Expectimax
from aleazero.search.plies import Plies
from aleazero.search.reuse import Reusing
from aleazero.search.settings import make_knobs


@dataclasses.dataclass(frozen=True)
class Parts:
    """Everything a runtime needs to make roles of; `build_parts` makes it."""

    config: RunConfig
    game: Game
    model: Model
    rollout: Rollout | TurnRollout
    mesh: Mesh  # the devices that lanes are spread over
    teacher: tuple[Model, Weights] | None = None  # who plays and opines in place of the run's own network

    # ---- self-play

    def start_games(self, lanes: Array | None = None) -> Games:
        """The first games, spread over the devices. `lanes` `[B]` are their numbers: others play other games."""
        config, lanes = self.config, self._lanes(lanes)
        start = jax.shard_map(
            self.rollout.start, mesh=self.mesh, in_specs=(P(), P("lanes")), out_specs=P("lanes"), check_vma=False
        )
        games: Games = jax.jit(start)(self._everywhere(jnp.uint32(config.seed)), lanes)
        return games

    def make_play(self, lanes: Array | None = None) -> Play:
        """The compiled rollout. Lanes are independent, so each device plays its own and nothing is exchanged."""
        config, lanes = self.config, self._lanes(lanes)
        # The seed is an argument, not a constant: a run with another seed uses the same compiled program.
        seed = self._everywhere(jnp.uint32(config.seed))
        everywhere = P()
        teacher = self._everywhere(self.teacher[1]) if self.teacher else None
        endings = self._everywhere(self._endings())
        spread = jax.shard_map(
            self.rollout.run,
            mesh=self.mesh,
            in_specs=(everywhere, P("lanes"), everywhere, everywhere, everywhere, P("lanes")),
            out_specs=(P("lanes"), P(None, "lanes")),
            check_vma=False,
        )
        compiled = jax.jit(spread, donate_argnums=1)

        def play(weights: Weights, games: Games, pace: Pace, first: Array) -> tuple[Games, Trajectory]:
            weights, pace, first = self._everywhere((weights if teacher is None else teacher, pace, first))
            return compiled(self._knowledge(weights, endings), games, pace, seed, first, lanes)

        return play

    def _lanes(self, lanes: Array | None) -> Array:
        """The numbers of the games; those of a local run if none are given."""
        if lanes is None:
            lanes = jnp.arange(self.config.selfplay.num_games, dtype=jnp.uint32)
        return self._spread(lanes)

    def _endings(self) -> Any:
        """Tables for the rollout, where it goes by whole turns."""
        wanted = isinstance(self.rollout, TurnRollout) and self.config.search.endings
        return endings_of(self.game) if wanted else None

    def _knowledge(self, weights: Weights, endings: Any) -> Any:
        """What the rollout goes by."""
        return Knowledge(weights, endings) if isinstance(self.rollout, TurnRollout) else weights

    def place_games(self, games: Games) -> Games:
        """Games read from a checkpoint, spread over the devices."""
        return jax.tree.map(self._spread, games)

    def pace(self, rows: int, epoch: int = 0) -> Pace:
        """The knobs of self-play when `rows` rows have been played and so many epochs are over."""
        config, play = self.config, self.config.selfplay
        when = (epoch, play.temperature_epochs) if play.temperature_epochs else (rows, config.total_rows)
        return Pace(
            knobs=make_knobs(
                config.search,
                temperature=play.temperature.at(*when),
                exploration=play.exploration,
                noise_fraction=play.noise_fraction,
                noise_alpha=play.noise_alpha,
                gumbel_scale=play.gumbel_scale,
                max_considered=play.max_considered,
            ),
            fast_simulations=jnp.int32(play.fast_simulations),
            full_search_fraction=jnp.float32(play.full_search_fraction),
            temperature_plies=jnp.int32(2**30 if play.temperature_plies is None else play.temperature_plies),
        )

    # ---- replay and learning

    def slab_like(self) -> Trajectory:
        """The shapes of what one rollout brings."""
        lanes = jnp.zeros(self.config.selfplay.num_games, jnp.uint32)
        run = functools.partial(jax.eval_shape, self.rollout.run)
        games = jax.eval_shape(self.rollout.start, jnp.uint32(0), lanes)
        weights = jax.eval_shape((self.teacher[0] if self.teacher else self.model).init, jax.random.key(0))
        knowledge, nought = self._knowledge(weights, self._endings()), jnp.uint32(0)
        return run(knowledge, games, self.pace(0), nought, nought, lanes)[1]

    def make_replay(self) -> Replay:
        """An empty replay."""
        config, spec = self.config, self.game.spec

        def think(slab: Trajectory) -> tuple[Array, Array]:
            predicted = expected_value(spec, slab.opinion.astype(jnp.float32))
            return targets.opinions(spec, config.targets, slab.opinion, slab.value), predicted

        def make_targets(span: dict[str, Array], td_lambda: Array) -> targets.Targets:
            return targets.value_targets(spec, config.targets, targets.Span(**span), td_lambda)

        return Replay(
            config.replay,
            self.slab_like(),
            max_plies=spec.max_plies if config.targets.wait else None,
            batch_size=config.learn.batch_size,
            seed=config.seed,
            think=think,
            make_targets=make_targets,
            td_lambda=lambda rows: config.targets.td_lambda_at(rows, config.total_rows),
        )

    def start_learning(self) -> update.LearnerState:
        """Fresh weights and optimiser."""
        key = role_key(self.config.seed, Role.WEIGHTS)
        return jax.jit(lambda key: update.start(self.config.learn, self.model.init(key)))(key)

    def make_update(self) -> update.Update:
        """The compiled updates of one call; the state is donated."""
        config = self.config
        loss = losses.make_loss(self.game, config.loss, self.model.apply)
        prepare = functools.partial(_prepare, self.game, config.loss.augment)
        learn = update.in_cached_pieces(config.learn, self.model.cached_rows)
        return jax.jit(update.in_a_row(update.make_update(learn, loss, prepare)), donate_argnums=0)

    def make_learning(self, weights: WeightStore) -> tuple[Replay, Learner]:
        """An empty replay, and the learner that draws from it."""
        config, replay = self.config, self.make_replay()
        learner = Learner(
            self.make_update(),
            self.learning_rate,
            placed(self.start_learning()),
            replay,
            weights,
            batch_size=config.learn.batch_size,
            updates_per_call=config.learn.updates_per_call,
            rows_per_new_row=config.replay.rows_per_new_row,
            min_rows=config.replay.min_rows,
            seed=config.seed,
            games_per_epoch=config.learn.games_per_epoch,
            steps_per_game=config.learn.steps_per_game,
        )
        return replay, learner

    def summary(self, slab: Trajectory) -> PlayStats:
        """What a slab says in few numbers."""
        return summary_of(slab, self.config.search.max_simulations, self.config.selfplay.fast_simulations)

    def learning_rate(self, rows_trained: int) -> float:
        """By rows trained; a run trains at most `rows_per_new_row` rows for each row it plays."""
        total = int(self.config.total_rows * self.config.replay.rows_per_new_row)
        return self.config.learn.learning_rate.at(rows_trained, total)

    # ---- measuring

    def match_player(self, weights: Weights, name: str = "self") -> AnyPlayer:
        """These weights as they play in matches."""
        config = self.config
        sims = config.evaluate.simulations or config.search.max_simulations
        search = dataclasses.replace(config.search, max_simulations=sims, reuse=False, max_nodes=None)
        return network_player(self.game, self.model, weights, search, name)

    def play_match(
        self,
        weights: Weights,
        opponent: str | AnyPlayer,
        root: Path | None,
        *,
        pairs: int | None = None,
        seed: int | None = None,
    ) -> MatchResult:
        """A match of these weights against a player, or the one that a string names; as long as the settings say."""
        config, settings = self.config, self.config.evaluate
        player = self.match_player(weights)
        result = play_match(
            self.game,
            player,
            make_player(opponent, self.game, root) if isinstance(opponent, str) else opponent,
            pairs=pairs or settings.games // 2,
            seed=config.seed if seed is None else seed,
            opening_plies=settings.opening_plies,
            record=settings.luck,
        )
        if not settings.luck:
            return result
        assert isinstance(player, TurnNetworkPlayer)
        return dataclasses.replace(result, rolls=None, luck=luck(self.game, result, player.after_rolls))

    # ---- devices

    def _spread(self, x: Any) -> Array:
        return jax.device_put(x, NamedSharding(self.mesh, P("lanes")))

    def _everywhere(self, x: Any) -> Any:
        return jax.device_put(x, NamedSharding(self.mesh, P()))


def build_parts(config: RunConfig, devices: list[jax.Device] | None = None, root: Path | None = None) -> Parts:
    """The parts of a run, checked against the game; lanes go to all that suit (`devices_for`) unless some are named.

    `root` is where the runs are kept that a teacher may be one of.
    """
    game = make_game(config.game)
    if not isinstance(game, Game):
        raise ConfigError(f"game {config.game!r} runs on the host: search does not apply to it; use algorithm 'ppo'")
    if config.algorithm != "search":
        raise ConfigError(f"algorithm is {config.algorithm!r}: this needs 'search'")
    config.check(game)
    used = devices or devices_for(config.selfplay.num_games)
    if config.selfplay.num_games % len(used):
        raise ConfigError(
            f"selfplay.num_games is {config.selfplay.num_games}; it must be a multiple of the {len(used)} devices"
        )
    model = build_model(config.model, game.spec)
    named, classical, teacher = config.selfplay.teacher, None, None
    if named and chess_teacher.is_classical(named):
        classical = chess_teacher.make_search(named, game)
    elif named:
        teacher = load_network(named, game, root)
    if teacher and teacher[0].config.policy != config.model.policy:
        has = "has a" if teacher[0].config.policy else "has no"
        raise ConfigError(f"selfplay.teacher is {named!r}, which {has} policy: model.policy must be the same")
    rollout = _make_rollout(config, game, teacher[0] if teacher else model, classical)
    return Parts(config, game, model, rollout, Mesh(used, ("lanes",)), teacher)


def _make_rollout(
    config: RunConfig, game: Game, model: Model, classical: chess_teacher.TaughtSearch | None
) -> Rollout | TurnRollout:
    """`classical` searches in the network's place, where it is the teacher."""
    play = config.selfplay
    common: dict[str, Any] = {
        "game": game,
        "moves": play.moves_per_rollout,
        "random_plies": play.random_plies,
        "other_start": _any_of([game.starts[name] for name in play.starts]) if play.starts else None,
        "other_fraction": play.start_fraction,
        "other_plies": play.start_plies,
    }
    if config.search.kind == "expectimax":
        turns = Expectimax(game, model.opinion)
        look_ahead = functools.partial(Plies(turns, 1).opinion, ply=1) if play.every_roll else None
        return TurnRollout(search=Plies(turns, config.search.ply), look_ahead=look_ahead, **common)
    tree_search = build_search(game, config.search)
    own: SearchLike | KeepingSearch = Reusing(tree_search) if config.search.reuse else tree_search
    giving_up = None
    if play.resign:
        most = max(outcome.points for outcome in game.spec.outcomes)
        giving_up = GivingUp(play.resign, play.resign_moves, play.resign_check, most)
    return Rollout(
        search=classical or own,
        evaluate=model.evaluate,
        opine=functools.partial(_unsure, model) if classical else model.opinion,
        epsilon=play.epsilon,
        giving_up=giving_up,
        **common,
    )


def _unsure(model: Model, weights: Weights, observations: Array) -> Array:
    """Every outcome is as likely as the others: the opinion of a teacher who has none but what its search finds."""
    shape = jax.eval_shape(model.opinion, weights, observations).shape
    return jnp.full(shape, 1 / shape[-1] if shape[-1] > 1 else 0.0)


def _any_of(starts: list[Callable[[Array], Any]]) -> Callable[[Array], Any]:
    """Begins at one of them, drawn evenly."""
    if len(starts) == 1:
        return starts[0]

    def start(key: Array) -> Any:
        which, key = jax.random.split(key)
        return jax.lax.switch(jax.random.randint(which, (), 0, len(starts)), starts, key)

    return start


def _prepare(game: Game, augment: bool, rows: Any, key: Array) -> losses.Batch:
    return losses.make_batch(game, rows, key, augment)
