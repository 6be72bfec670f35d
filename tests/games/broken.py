"""One game for every law of the contract, which breaks that law and no other on purpose.

Each says which `law` the checker must name, what its message `says` (a regular expression), the `state` it must show
and what was `done` there. Those without a state break a law that needs no play.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import NotationError
from aleazero.core.game import FlatPlays, HostStatus, Notation, Symmetry
from aleazero.core.struct import replace, struct
from tests.games.tiny import Climb, ClimbStates, Dash, DashNotation, DashState, Drift, TurnDash, swap_seats

PLACE = r"\d\d-\d\d die \d left \d player \d( rolling)?"


class Unplayed(Dash):
    """Breaks a law of shapes or programs, which is found before a move is made."""


class Played(Dash):
    """Breaks a law of play, so every one is a kind of its own."""

    state: str | None = PLACE
    done: str | None = r"action \d"

    def __init_subclass__(cls) -> None:
        cls.kind = cls.__name__


class Told(Dash):
    """Breaks a law about what is told of play; plays as Dash does."""

    state: str | None = PLACE
    done: str | None = r"(action|chance outcome) \d"


# ---- shapes


@struct
class Unpaid:
    to_play: Array
    is_chance: Array
    terminated: Array
    returns: Array


class MissesAField(Unplayed):
    law, says = "state fields", "states of 'dash' have no field 'rewards'"

    def init(self, key: Array) -> Any:
        state = super().init(key)
        return Unpaid(state.to_play, state.is_chance, state.terminated, state.returns)


class HasAWrongShape(Unplayed):
    law, says = "state fields", r"returns has shape \(3,\), not \(2,\)"

    def init(self, key: Array) -> DashState:
        return replace(super().init(key), returns=jnp.zeros(3))


class HasAWrongDtype(Unplayed):
    law, says = "state fields", "terminated is int8, not bool"

    def init(self, key: Array) -> DashState:
        return replace(super().init(key), terminated=jnp.int8(0))


class BecomesAnotherKind(Unplayed):
    law, says = "apply_action", "returns .*, not .*DashState"

    def apply_action(self, state: DashState, action: Array) -> Any:
        return tuple(vars(super().apply_action(state, action)).values())


class ChangesADtype(Unplayed):
    law, says = "apply_action", r"changes \.die from int8\(\) to int32\(\)"

    def apply_action(self, state: DashState, action: Array) -> DashState:
        return replace(super().apply_action(state, action), die=jnp.int32(0))


class RollsADtype(Unplayed):
    law, says = "apply_chance", r"changes \.die from int8\(\) to int32\(\)"

    def apply_chance(self, state: DashState, outcome: Array) -> DashState:
        return replace(super().apply_chance(state, outcome), die=outcome + 1)


class HasThreeProbabilities(Unplayed):
    law, says = "chance_probs", r"returns float32\(3,\), not float32\(2,\)"

    def chance_probs(self, state: DashState) -> Array:
        return jnp.full(3, 1 / 3, jnp.float32)


class ListsTooMany(Unplayed):
    law, says = "legal_list", r"returns int16\(4,\), not int16\(2,\)"

    def legal_list(self, state: DashState) -> Array:
        return jnp.tile(super().legal_list(state), 2)


class ListsAMask(Unplayed):
    law, says = "legal_list", r"returns bool\(2,\), not int16\(2,\)"

    def legal_list(self, state: DashState) -> Array:
        return super().legal_list(state) >= 0


class SeesAnotherShape(Unplayed):
    law, says = "observe", r"returns float32\(3, 2\), not any dtype\(6,\)"

    def observe(self, state: DashState) -> Array:
        return super().observe(state).reshape(3, 2)


class PacksWords(Unplayed):
    law, says = "pack", r"returns uint32\(24,\), not uint8\(24,\)"

    def pack(self, state: DashState) -> Array:
        return super().pack(state).astype(jnp.uint32)


# ---- programs


class LoopsUntilDone(Unplayed):
    law, says = "no while", "apply_action uses 'while', which under vmap runs to the slowest lane"

    def apply_action(self, state: DashState, action: Array) -> DashState:
        die = jax.lax.while_loop(lambda n: n < state.die, lambda n: n + 1, jnp.int8(0))
        return super().apply_action(replace(state, die=die), action)


class LoopsDeepInside(Unplayed):
    law, says = "no while", "legal_list uses 'while'"

    def legal_list(self, state: DashState) -> Array:
        def count(total: Array, step: Array) -> tuple[Array, None]:
            return jax.jit(lambda n: jax.lax.while_loop(lambda m: m < state.die, lambda m: m + 1, n))(total), None

        return super().legal_list(replace(state, die=jax.lax.scan(count, state.die, jnp.arange(2))[0]))


class SortsItsMoves(Unplayed):
    law, says = "no sort", "legal_list uses 'sort', which under vmap is slow on every device"

    def legal_list(self, state: DashState) -> Array:
        return jnp.sort(super().legal_list(state))


class SortsItsTokens(Unplayed):
    law, says = "no sort", "apply_action uses 'sort'"

    def apply_action(self, state: DashState, action: Array) -> DashState:
        after = super().apply_action(state, action)
        return replace(after, tokens=jnp.sort(after.tokens))


# ---- legal lists; most are broken in the second half of a turn only, so that the state shown can be told


class SecondHalf(Played):
    law = "legal_list"
    state = r"\d\d-\d\d die \d left 1 player \d"
    listed: tuple[int, int]

    def legal_list(self, state: DashState) -> Array:
        wrong = (state.moves_left == 1) & ~state.terminated
        return jnp.where(wrong, jnp.array(self.listed, jnp.int16), super().legal_list(state))


class ListsTwice(SecondHalf):
    says, done, listed = r"an action is listed twice: \[1, 1\]", "action 1", (1, 1)


class ListsStrangers(SecondHalf):
    says, listed = "an entry is neither -1 nor an action", (0, 2)


class ListsNothing(SecondHalf):
    says, done, listed = "no action is listed though a player is to act", "nothing", (-1, -1)


class ListsWhileRolling(Played):
    law, says = "legal_list", "actions are listed at a chance or terminal state"
    state, done = ".* rolling", r"chance outcome \d"

    def legal_list(self, state: DashState) -> Array:
        return super().legal_list(replace(state, is_chance=jnp.bool_(False)))


class ListsAtTheEnd(Told):
    law, says, done = "legal_list", "actions are listed at the terminal state that follows", r"action \d"

    def legal_list(self, state: DashState) -> Array:
        return jnp.where(state.terminated, jnp.arange(2, dtype=jnp.int16), super().legal_list(state))


# ---- who acts


class PlaysAThird(Played):
    law, says = "to_play", "to_play is not a player afterwards"
    state, done = ".* rolling", "chance outcome 1"

    def apply_chance(self, state: DashState, outcome: Array) -> DashState:
        after = super().apply_chance(state, outcome)
        return replace(after, to_play=jnp.where(outcome == 1, jnp.int8(2), after.to_play))


class StartsAsNobody(Played):
    law, says = "to_play", "to_play is not a player\n"
    state, done = "00-00 die 0 left 0 player 3 rolling", r"chance outcome \d"

    def init(self, key: Array) -> DashState:
        return replace(super().init(key), to_play=jnp.int8(2))

    def apply_chance(self, state: DashState, outcome: Array) -> DashState:
        return super().apply_chance(replace(state, to_play=jnp.minimum(state.to_play, 1)), outcome)


class HandsOverTooSoon(Played):
    law, says = "to_play", "at the chance state that follows, to_play is not the player who acted"
    state = r".* left 1 .*"

    def apply_action(self, state: DashState, action: Array) -> DashState:
        after = super().apply_action(state, action)
        return replace(after, to_play=jnp.where(after.is_chance, 1 - after.to_play, after.to_play))

    def apply_chance(self, state: DashState, outcome: Array) -> DashState:
        return super().apply_chance(replace(state, to_play=1 - state.to_play), outcome)


class RollsAtTheEnd(Played):
    law, says = "is_chance", "the state is both terminal and a chance state afterwards"

    def apply_action(self, state: DashState, action: Array) -> DashState:
        after = super().apply_action(state, action)
        return replace(after, is_chance=after.is_chance | after.terminated)


# ---- points


class PaysAnother(Played):
    def pay(self, points: Array) -> tuple[Array, Array]:
        """Rewards and returns, given what the rules would pay."""
        raise NotImplementedError

    def apply_action(self, state: DashState, action: Array) -> DashState:
        after = super().apply_action(state, action)
        rewards, returns = self.pay(after.rewards)
        return replace(after, rewards=rewards, returns=returns)


class PaysInfinity(PaysAnother):
    law, says = "rewards", "points are not finite"

    def pay(self, points: Array) -> tuple[Array, Array]:
        return jnp.where(points > 0, jnp.inf, points), points


class PaysTwice(PaysAnother):
    law, says = "returns", r"\[0.0, 0.0\] \+ \[(2.0, -2.0|-2.0, 2.0)\] is not \[(1.0, -1.0|-1.0, 1.0)\]"

    def pay(self, points: Array) -> tuple[Array, Array]:
        return 2 * points, points


class PaysWinnersOnly(PaysAnother):
    law, says = "zero sum", r"returns are \[(1.0, 0.0|0.0, 1.0)\]"

    def pay(self, points: Array) -> tuple[Array, Array]:
        return jnp.maximum(points, 0), jnp.maximum(points, 0)


class PaysHalf(PaysAnother):
    law, says = "outcomes", r"final returns \[-?0.5, -?0.5\] are no outcome's points"

    def pay(self, points: Array) -> tuple[Array, Array]:
        return points / 2, points / 2


# ---- chance


class RollsUndeclared(Played):
    law, says = "is_chance", "a chance state, though spec.chance is 'none'"
    state, done = "00-00 die 0 left 0 player 2 rolling", "nothing"
    spec = dataclasses.replace(Dash.spec, chance="none", num_chance_outcomes=0)


class RollsTooOften(Told):
    law, says = "chance_probs", r"\[0.75, 0.5\] is no distribution"
    state, done = ".* rolling", r"chance outcome \d"

    def chance_probs(self, state: DashState) -> Array:
        return jnp.array([0.75, 0.5], jnp.float32)


class RollsBelowNothing(Told):
    law, says = "chance_probs", r"\[1.5, -0.5\] is no distribution"
    state, done = ".* rolling", r"chance outcome \d"

    def chance_probs(self, state: DashState) -> Array:
        return jnp.array([1.5, -0.5], jnp.float32)


class RollsMoreThanItSays(Told):
    law, says = "num_later_outcomes", "an outcome from 1 on has a chance after the first state"
    state, done = ".* rolling", r"chance outcome \d"
    num_later_outcomes = 1


class RollsAgain(Played):
    law, says = "apply_chance", "nature's move leads to another chance state"
    state, done = ".* rolling", "chance outcome 1"

    def apply_chance(self, state: DashState, outcome: Array) -> DashState:
        return replace(super().apply_chance(state, outcome), is_chance=outcome == 1)


class NeverRolls(Played):
    """Every turn goes by ones: no state shows what is missing."""

    law, says, state = "is_chance", "spec.chance is 'explicit', but random play met no chance state", None

    def init(self, key: Array) -> DashState:
        return super().apply_chance(super().init(key), jnp.int8(0))

    def apply_action(self, state: DashState, action: Array) -> DashState:
        after = super().apply_action(state, action)
        ahead = super().apply_chance(after, jnp.int8(0))
        return jax.tree.map(lambda yes, no: jnp.where(after.is_chance, yes, no), ahead, after)


# ---- what is told: observations, packed rows, texts


class SeesInfinity(Told):
    law, says, state = "observe", "the observation is not finite\n", ".* left 1 .*"

    def observe(self, state: DashState) -> Array:
        return super().observe(state) / jnp.where(state.moves_left == 1, 0.0, 1.0)


class SeesInfinityAtTheEnd(Told):
    law, says, done = "observe", "the observation is not finite afterwards\n", r"action \d"

    def observe(self, state: DashState) -> Array:
        return super().observe(state) / jnp.where(state.terminated, 0.0, 1.0)


class PacksWithoutTheDie(Told):
    law, says, state = "pack", r"unpack\(pack\(state\)\) changes \.die\n", r"\d\d-\d\d die [12] .*"

    def pack(self, state: DashState) -> Array:
        return super().pack(replace(state, die=jnp.int8(0)))


class PacksWithoutTheEnd(Told):
    law, says, done = "pack", r"changes \.terminated of the state afterwards", r"action \d"

    def pack(self, state: DashState) -> Array:
        return super().pack(replace(state, terminated=jnp.bool_(False)))


class UnpacksAnotherKind(Told):
    law, says = "pack", r"changes \.die from int8\(96,\) to int32\(96,\)"
    state = None

    def unpack(self, row: Array) -> DashState:
        state = super().unpack(row)
        return replace(state, die=state.die.astype(jnp.int32))


class ChangesItsMind(Played):
    """Its rules read a counter that every tracing raises."""

    law, says = "apply_action", "the same action in the same state gave two different results"
    traced = 0

    def apply_action(self, state: DashState, action: Array) -> DashState:
        self.traced += 1
        return replace(super().apply_action(state, action), die=jnp.int8(self.traced))


class ToldInWords(Told):
    law = "notation"
    words: Notation

    @property
    def notation(self) -> Notation:
        return self.words


class ForgetfulNotation(DashNotation):
    def parse_state(self, text: str) -> Any:
        return replace(super().parse_state(text), die=jnp.int8(0))


class ReadsBackAnotherText(ToldInWords):
    says, state = r"'\d\d-\d\d die [12] .*' is read back as '.* die 0 .*'", None
    words = ForgetfulNotation()


class CurtNotation(DashNotation):
    def format_state(self, state: Any) -> str:
        return super().format_state(state).split(" left")[0]

    def parse_state(self, text: str) -> Any:
        return super().parse_state(f"{text} left 2 player 1")


class ReadsBackAnotherPosition(ToldInWords):
    says, state = r"'\d\d-\d\d die \d' is read back as another position", None
    words = CurtNotation()


class DeafNotation(DashNotation):
    def parse_action(self, state: Any, text: str) -> int:
        raise NotationError(f"move {text!r} is not one I know")


class ReadsNoMoves(ToldInWords):
    says, done = "move '(first|second)' is not one I know", None
    words = DeafNotation()


class OneWordNotation(DashNotation):
    def format_action(self, state: Any, action: int) -> str:
        return "first"


class NamesMovesAlike(ToldInWords):
    says, state = r"moves \['first', 'first'\] in '.*' are read back as \[0, 0\], not \[0, 1\]", None
    words = OneWordNotation()


class ClumsyNotation(DashNotation):
    def draw(self, state: Any) -> str:
        return "ab"[int(state.die)]


class FailsToDraw(ToldInWords):
    says, state, done = "IndexError", r".* die 2 .*", None
    words = ClumsyNotation()


# ---- symmetries


class Turned(Told):
    turned: Symmetry

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:  # type: ignore[override]
        return (self.turned,)


class NoPermutation(Turned):
    law, says, state = "symmetries", r"tokens: actions is no permutation of 0\.\.1", None
    turned = Symmetry("tokens", lambda state: state, (0, 0))


class WrongNames(Turned):
    law, says = "symmetry tokens", "the turned position has other legal actions"
    state, done = r"(\d3|3\d)-\d\d .*|\d\d-(\d3|3\d) .*", r"action \d"
    turned = Symmetry("tokens", lambda state: replace(state, tokens=state.tokens[:, ::-1]), (0, 1))


class DoesNotCommute(Turned):
    law, says, done = "symmetry die", "acting and then turning differs from turning and then acting", r"action \d"
    turned = Symmetry("die", lambda state: replace(state, die=3 - state.die), (0, 1))


class TurnsReturns(Turned):
    law, says, done = "symmetry debt", "the turned position has other returns", r"action \d"
    turned = Symmetry("debt", lambda state: replace(state, returns=-state.returns), (0, 1))


class KeepsReturnsWhenSeatsSwap(Turned):
    law, says, done = "symmetry seats", "the turned position has other returns", r"action \d"
    turned = Symmetry("seats", lambda state: replace(swap_seats(state), returns=state.returns), (0, 1), True)


class SeesFromSeatNought(Turned):
    law, says = "observe", "with the seats swapped the player to play sees something else"
    turned = Symmetry("seats", swap_seats, (0, 1), swaps_seats=True)

    def observe(self, state: DashState) -> Array:
        return super().observe(replace(state, to_play=jnp.int8(0)))


# ---- sampled chance


class Reseeded(Drift):
    law = "reseed"
    state: str | None = None
    done: str | None = None


class KeepsItsDice(Reseeded):
    says = "reseeding changed nothing that follows: a search would know what is to come"

    def reseed(self, state: Any, key: Array) -> Any:
        return state


class MovesWhenReseeded(Reseeded):
    says = "a fresh random stream changed the position itself"
    state, done = "[0-9a-f]{56}", r"action \d"

    def reseed(self, state: Any, key: Array) -> Any:
        return self.roll(super().reseed(state, key))


# ---- whole-turn plays


class WrongPlays(TurnDash, Told):
    law = "plays"
    state, done = PLACE, None

    def __init__(self) -> None:
        super().__init__(chunk=8)


class MissesPlays(WrongPlays):
    says = r"(0|1) plays, (0|1) of them distinct; single actions reach (1|2|3)"
    pairs = TurnDash.pairs[:1]


class RepeatsPlays(WrongPlays):
    """The first chunk comes twice."""

    says = r"(2|4|6) plays, (1|2|3) of them distinct; single actions reach (1|2|3)"

    def _plays(self, states: DashState, cursor: Array) -> FlatPlays:
        again = cursor[0] >= 0
        chunk = super()._plays(states, jnp.zeros_like(cursor))
        return replace(chunk, cursor=jnp.full_like(cursor, -1), done=~again)


class HasNoStart(WrongPlays):
    says, state = "plays needs plays_start", None

    def __init__(self) -> None:
        super().__init__()
        self.plays_start = None


# ---- host games


class ForgetsItsSeed(Climb):
    law, says = "init_batch", "the same seeds gave two different games"
    begun = 0

    def init_batch(self, seeds: np.ndarray) -> ClimbStates:
        self.begun += 1
        return super().init_batch(seeds + np.uint64(self.begun))


class GoesOnAfterTheEnd(Climb):
    law, says = "legal_actions", r"ply \d+: a state has legal actions if and only if it is not over"

    def legal_actions(self, states: ClimbStates) -> np.ndarray:
        return np.stack([np.ones_like(states.height, bool), states.height > 0], -1)


class HasNoMoves(Climb):
    law, says = "legal_actions", "ply 0: a state has legal actions if and only if it is not over"

    def legal_actions(self, states: ClimbStates) -> np.ndarray:
        return super().legal_actions(states) & (states.height[:, None] > 0)


class ListsActionsAsNumbers(Climb):
    law, says = "legal_actions", "is int8, not bool"

    def legal_actions(self, states: ClimbStates) -> np.ndarray:
        return super().legal_actions(states).astype(np.int8)


class ListsOneAction(Climb):
    law, says = "legal_actions", r"has shape \(16, 1\), not \(16, 2\)"

    def legal_actions(self, states: ClimbStates) -> np.ndarray:
        return super().legal_actions(states)[:, :1]


class ShowsTooLittle(Climb):
    law, says = "observe", r"has shape \(16, 1\), not \(16, 2\)"

    def observe(self, states: ClimbStates) -> np.ndarray:
        return super().observe(states)[:, :1]


class ShowsInfinity(Climb):
    law, says = "observe", "is not finite"

    def observe(self, states: ClimbStates) -> np.ndarray:
        return np.where(super().observe(states) > 0.5, np.inf, 0)


class PaysOneColumn(Climb):
    law, says = "rewards", r"has shape \(16,\), not \(16, 1\)"

    def status(self, states: ClimbStates) -> HostStatus:
        status = super().status(states)
        return dataclasses.replace(status, rewards=status.rewards[:, 0])


class ReturnsTwoColumns(Climb):
    law, says = "returns", r"has shape \(16, 2\), not \(16, 1\)"

    def status(self, states: ClimbStates) -> HostStatus:
        status = super().status(states)
        return dataclasses.replace(status, returns=np.repeat(status.returns, 2, 1))


class DoesNotAddUp(Climb):
    law, says = "returns", r"ply \d+, lane \d+: rewards do not add up to returns"

    def status(self, states: ClimbStates) -> HostStatus:
        status = super().status(states)
        return dataclasses.replace(status, rewards=status.rewards * 2)


class StepsInPlace(Climb):
    law, says = "step_batch", "ply 0: stepping changed the states it was given"

    def step_batch(self, states: ClimbStates, actions: np.ndarray, lanes: np.ndarray | None = None) -> ClimbStates:
        for name, new in vars(super().step_batch(states, actions, lanes)).items():
            setattr(states, name, new)
        return states


class MovesEverybody(Climb):
    law, says = "step_batch", "lane 1 changed though it was not told to move"

    def step_batch(self, states: ClimbStates, actions: np.ndarray, lanes: np.ndarray | None = None) -> ClimbStates:
        return super().step_batch(states, actions)


class SavesNoStream(Climb):
    law, says = "snapshot", "a restored state goes on differently"
    saved = ("height", "turns", "rewards", "returns")


class RestoresTheGround(Climb):
    law, says = "snapshot", "a restored state goes on differently"

    def restore(self, rows: Sequence[bytes]) -> ClimbStates:
        states = super().restore(rows)
        return dataclasses.replace(states, height=states.height - 1)


class FallsWhenReseeded(Climb):
    law, says = "reseed", "a fresh random stream changed the position itself"

    def reseed(self, states: ClimbStates, seeds: np.ndarray) -> ClimbStates:
        return dataclasses.replace(super().reseed(states, seeds), height=states.height + 1)


class NobodysTurn(Climb):
    law, says = "to_play", r"after ply 0, lane 0: to_play 1"

    def status(self, states: ClimbStates) -> HostStatus:
        status = super().status(states)
        return dataclasses.replace(status, to_play=status.to_play + 1)


class PaysHalfAClimb(Climb):
    law, says = "outcomes", r"returns \[-?0.5\]"

    def status(self, states: ClimbStates) -> HostStatus:
        status = super().status(states)
        return dataclasses.replace(status, rewards=status.rewards / 2, returns=status.returns / 2)


class BothWin(Climb):
    law, says = "zero sum", r"returns \[1.0, 1.0\]|returns \[-1.0, -1.0\]"
    spec = dataclasses.replace(Climb.spec, num_players=2)

    def status(self, states: ClimbStates) -> HostStatus:
        status = super().status(states)
        rewards, returns = (np.repeat(points, 2, 1) for points in (status.rewards, status.returns))
        return dataclasses.replace(status, rewards=rewards, returns=returns)


class StartsWhereItIsOver(Told):
    law, says, state = "starts", "finish: .* is over", None

    @property
    def starts(self) -> Any:
        return {"finish": lambda key: replace(self.init(key), terminated=jnp.bool_(True))}


class StartsWithAnotherKind(Told):
    law, says, state = "starts", "wide: a state is", None

    @property
    def starts(self) -> Any:
        return {"wide": lambda key: replace(self.init(key), to_play=jnp.int32(0))}


def leaves(family: type) -> list[type]:
    """The classes of a family that name a law and have no subclass."""
    if not family.__subclasses__():
        return [family]
    return [leaf for child in family.__subclasses__() for leaf in leaves(child)]


def families(*roots: type) -> list[type]:
    """The leaves of several families, each once."""
    return list(dict.fromkeys(leaf for root in roots for leaf in leaves(root)))
