"""What to do in a run of Balatro, with reasons and chances: candidates are tried in futures drawn anew.

Each candidate is taken in the same futures, and a baseline plays on from there; so chances are those of a modest
player, and are compared with one another. None of the futures is the one that the game will have. Reasons come from
the account of a score, from the facts, and from the joker graph. Knows the simulator; nothing of who asks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aleazero.bridges.balatro_table import check, unforeseen
from aleazero.core.errors import ConfigError, NotationError
from aleazero.games.balatro import actions, facts, text
from aleazero.games.balatro.contest import PLAYERS, by_rule
from aleazero.games.balatro.engine import Batch, cores
from aleazero.games.balatro.layout import G_JOKER, P_BLIND, P_OVER, P_PACK, P_PLAY
from aleazero.graph.model import between
from aleazero.play.ratings import wilson

FUTURES, MOST_FUTURES = 16, 1024
MOST_TRIED = 8
LONGEST = 800  # decisions of a future
Choose = Callable[[Batch, int], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Tried:
    """What futures say of an action."""

    action: int
    words: str
    futures: int
    win_chance: float
    win_low: float  # 95 %
    win_high: float
    blind_chance: float  # that one more blind is beaten
    mean_blinds: float  # beaten from here on
    mean_ante: float
    reasons: tuple[str, ...]


def baseline(name: str) -> Choose:
    """A player that chooses by rule."""
    kind = PLAYERS.get(name, 0)
    if not kind:
        raise ConfigError(f"player is {name!r}; it must be {' or '.join(n for n, k in PLAYERS.items() if k)}")
    return lambda batch, move: by_rule(batch, kind, move + 1)


def simulate(
    batch: Batch, taken: Sequence[Sequence[int]], choose: Choose, futures: int = FUTURES, seed: int = 0
) -> list[Tried]:
    """What each row of actions leads to in so many futures; all rows meet the same."""
    if not 1 <= futures <= MOST_FUTURES:
        raise ConfigError(f"futures is {futures}; it must be in 1..{MOST_FUTURES}")
    g = batch.states[0]
    if int(g.phase) == P_OVER:
        raise NotationError("the run is over: there is nothing to try")
    lanes = batch.take(np.zeros(len(taken) * futures, np.int64))
    lanes.threads = cores()
    drawn = np.random.default_rng(seed).integers(0, 2**62, futures, np.uint64)
    lanes.reseed(np.tile(drawn, len(taken)))
    for place in range(max(len(row) for row in taken)):
        now = np.repeat([row[place] if place < len(row) else -1 for row in taken], futures)
        lanes.try_step(np.maximum(now, 0), (now >= 0) & ~lanes.over)
    for move in range(LONGEST):
        moving = ~lanes.over & (lanes.states["error"] == 0)
        if not moving.any():
            break
        lanes.try_step(np.where(moving, choose(lanes, move), 0), moving)
    ends = lanes.states.reshape(len(taken), futures)
    found = []
    for row, end in zip(taken, ends, strict=True):
        more = end["beaten"] - int(g.beaten)
        wins = int((end["won"] != 0).sum())
        share = wilson(wins, futures)
        found.append(
            Tried(
                action=row[-1],
                words=text.describe(_before(batch, row).states[0], row[-1]),
                futures=futures,
                win_chance=share.value,
                win_low=share.low,
                win_high=share.high,
                blind_chance=float((more > 0).mean()),
                mean_blinds=float(more.mean()),
                mean_ante=float(end["ante"].mean()),
                reasons=reasons(batch, row),
            )
        )
    return found


def advise(
    batch: Batch, choose: Choose, futures: int = FUTURES, seed: int = 0, plays_on: Choose | None = None
) -> list[Tried]:
    """The player's own choice and others, the best first; of equals the player's own. `plays_on`: in the futures."""
    own = int(choose(batch, 0)[0])
    check(batch, own)
    tried = simulate(batch, [[action] for action in candidates(batch, own)], plays_on or choose, futures, seed)
    return sorted(tried, key=lambda one: (-one.win_chance, -one.mean_blinds, one.action != own))


def candidates(batch: Batch, own: int) -> list[int]:
    """The player's choice first, then what a player would think of."""
    phase = int(batch.states[0].phase)
    found = [own]
    if phase == P_PLAY:
        found += [int(by_rule(batch, kind, 1)[0]) for kind in PLAYERS.values() if kind]
    else:
        wanted = (
            range(actions.A_SELECT_BLIND, actions.A_END) if phase == P_BLIND else range(actions.A_BUY, actions.A_END)
        )
        found += [a for a in wanted if batch.masks[0, a]]
        found += [a for a in range(actions.A_USE, actions.A_SELL_CONSUMABLE) if batch.masks[0, a] and phase != P_PACK]
    return list(dict.fromkeys(found))[:MOST_TRIED]


def reasons(batch: Batch, row: Sequence[int]) -> tuple[str, ...]:
    """What speaks for or against an action, from what is known of it."""
    before = _before(batch, row)
    g, action = before.states[0], row[-1]
    name, k = text.split(action)
    found: list[str] = []
    if name in ("play", "play_selected"):
        found += _of_score(before, action)
    elif name in ("discard", "discard_selected"):
        found.append(f"needs {float(g.target) - float(g.round_score):,.0f} more in {int(g.hands_left)} hands")
        found.append(f"{int(g.discards_left) - 1} discards would be left")
    elif name in ("buy", "buy_and_use") and int(g.shelf_kind[k]) == G_JOKER:
        found += _of_joker(g, int(g.shelf_id[k])) + _of_price(g, int(g.shelf_cost[k]))
    elif name in ("buy", "buy_and_use"):
        found += _of_price(g, int(g.shelf_cost[k]))
    elif name == "choose" and int(g.pack_what[k]) == G_JOKER:
        found += _of_joker(g, int(g.pack_item[k]))
    elif name == "booster":
        found += _of_price(g, int(g.booster_cost[k]))
    elif name == "reroll":
        found += _of_price(g, 0 if int(g.free_rerolls) else int(g.reroll_cost))
    elif name == "voucher":
        number = int(g.voucher if k == 0 else g.voucher_extra)
        found.append(str(facts.table("vouchers")[number - 1]["effect"]))
    elif name == "use":
        found.append(str(facts.consumables()[int(g.consumable[k]) - 1]["effect"]))
    elif name == "select_blind":
        number = int(g.boss) if int(g.blind) == 2 else int(g.blind)
        found.append(f"{facts.name_of('blinds', number)}: {facts.table('blinds')[number]['effect']}")
    elif name == "skip_blind":
        tag = int(g.tag_small) if int(g.blind) == 0 else int(g.tag_big)
        found.append(f"{facts.name_of('tags', tag)}: {facts.table('tags')[tag - 1]['effect']}")
    elif name == "leave_shop":
        found.append(f"keeps {int(g.money)}, which brings {min(5, max(0, int(g.money)) // 5)} of interest")
    return tuple(found)


def _before(batch: Batch, row: Sequence[int]) -> Batch:
    after = batch.copy() if len(row) > 1 else batch
    for action in row[:-1]:
        after.step(np.array([action]))
    return after


def _of_score(batch: Batch, action: int) -> list[str]:
    rows, scored = unforeseen(batch).account(0, action)
    g, s = batch.states[0], scored.states[0]
    score, need = float(s.hand_score), float(g.target) - float(g.round_score)
    verdict = "beats the blind" if score >= need else f"{need - score:,.0f} would be missing"
    lines = text.account_lines(g, s, rows)
    return [f"scores {score:,.0f} of {need:,.0f} needed: {verdict}", " ".join(lines[0].split())]


def _of_joker(g: Any, joker: int) -> list[str]:
    name = facts.name_of("jokers", joker)
    found = [str(facts.table("jokers")[joker - 1]["effect"])]
    owned = [facts.name_of("jokers", int(g.joker[i])) for i in range(int(g.joker_count))]
    found += [f"with {other}: {why}" for other in owned if other != name for why in between(name, other)]
    return found


def _of_price(g: Any, cost: int) -> list[str]:
    now, then = (min(5, max(0, int(money)) // 5) for money in (g.money, int(g.money) - cost))
    lost = f", and {now - then} of interest a round" if now > then else ""
    return [f"costs {cost} of {int(g.money)}{lost}"]


def as_data(tried: Sequence[Tried]) -> list[dict[str, Any]]:
    """As JSON has it."""
    return [dataclasses.asdict(one) | {"reasons": list(one.reasons)} for one in tried]
