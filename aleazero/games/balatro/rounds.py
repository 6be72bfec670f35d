"""A round: dealing, playing, discarding, winning or losing, and what it pays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aleazero.games.balatro import (
    bosses,
    cards,
    create,
    dealing,
    ids,
    jokers_events,
    keys,
    pools,
    rng,
    run,
    shop,
    tables,
    tags,
)
from aleazero.games.balatro.cards import count_joker, debuffed, joker_off
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import (
    AT_DISCARDED,
    AT_GONE,
    AT_PLAYED,
    E_GOLD,
    F_FACE_DOWN,
    F_FORCED,
    F_PLAYED_THIS_ANTE,
    MAX_HAND,
    MAX_JOKERS,
    NUM_HANDS,
    P_OVER,
    P_PLAY,
    P_SHOP,
    SEAL_BLUE,
    SEAL_PURPLE,
    SEAL_RED,
    ST_PERISHABLE,
    ST_RENTAL,
)
from aleazero.games.balatro.packs import most_played
from aleazero.games.balatro.scoring import score_hand


@jit
def blind_number(g: Any) -> int:
    """The blind that is next or being played."""
    return int(g.boss) if int(g.blind) == 2 else int(g.blind)


@jit
def target_of(g: Any) -> float:
    """What the blind asks for."""
    stake = int(g.stake)
    scaling = 2 if stake >= 6 else (1 if stake >= 3 else 0)
    base = float(tables.BASE_TARGET[scaling, max(0, min(16, int(g.ante)))])
    factor = 2.0 if int(g.deck) == ids.D_PLASMA else 1.0
    return float(np.floor(base * tables.BLIND_MULT[blind_number(g)] * factor))


@jit
def start_blind(g: Any) -> None:
    """The blind is taken on."""
    g.phase = P_PLAY
    g.round_number += 1
    g.hands_left = max(1, int(g.round_hands))
    g.discards_left = max(0, int(g.round_discards))
    g.hands_played, g.discards_used, g.just_played, g.round_score = 0, 0, 0, 0.0
    g.first_hand = -1
    g.most_played = most_played(g)
    g.selected, g.boss_took, g.boss_pressed, g.free_moves = 0, 0, 0, 0
    for h in range(NUM_HANDS):
        g.round_plays[h] = 0
    g.target = target_of(g)
    juggle = shop.find_tag(g, ids.T_JUGGLE)
    while juggle >= 0:
        shop.drop_tag(g, juggle)
        g.round_hand_size += 3
        juggle = shop.find_tag(g, ids.T_JUGGLE)
    g.hand_size += int(g.round_hand_size)
    _boss_arrives(g)
    jokers_events.blind_started(g)
    bosses.debuff_all(g)
    cards.shuffle_deck(g, keys.K_ROUND_SHUFFLE)
    draw(g)
    if bosses.boss_now(g) == ids.B_FINAL_HEART:
        disable_a_joker(g)
    jokers_events.first_hand_drawn(g)
    bosses.debuff_all(g)


@jit
def _boss_arrives(g: Any) -> None:
    if int(g.blind) == 2 and count_joker(g, ids.J_CHICOT) > 0:
        g.boss_off = 1
        # What bosses ask for stays theirs unless they are disabled: a larger target shrinks.
        if int(g.boss) == ids.B_WALL:
            g.target = float(g.target) / 2.0
        elif int(g.boss) == ids.B_FINAL_VESSEL:
            g.target = float(g.target) / 3.0
    boss = bosses.boss_now(g)
    if boss == ids.B_WATER:
        g.boss_took = int(g.discards_left)
        g.discards_left = 0
    elif boss == ids.B_NEEDLE:
        g.boss_took = int(g.hands_left) - 1
        g.hands_left = 1
    elif boss == ids.B_MANACLE:
        g.hand_size -= 1
        g.boss_took = 1
    elif boss == ids.B_FINAL_ACORN:
        _shuffle_jokers(g)


@jit
def _shuffle_jokers(g: Any) -> None:
    words = rng.seeded(rng.stream(g, keys.K_ACORN, 0))
    for i in range(int(g.joker_count), 1, -1):
        words = rng.step(words)
        j = math.floor(rng.uniform(words) * i)
        if j != i - 1:
            create.swap_jokers(g, i - 1, j)


@jit
def disable_a_joker(g: Any) -> None:
    """Crimson Heart takes another joker."""
    found = np.zeros(MAX_JOKERS, np.int64)
    n = 0
    for i in range(int(g.joker_count)):
        if not joker_off(g, i) or int(g.joker_count) < 2:
            found[n] = i
            n += 1
    create.set_disabled(g, int(found[rng.pick(g, keys.K_HEART, n, 0)]) if n > 0 else -1)


@jit
def draw(g: Any) -> None:
    """Fills the hand; a player with no card left has lost."""
    dealing.deal(g)
    if bosses.boss_now(g) == ids.B_FINAL_BELL and int(g.hand_count) > 0:
        _force_a_card(g)
    if int(g.hand_count) == 0:
        lose(g)


@jit
def _force_a_card(g: Any) -> None:
    pool = np.zeros(MAX_HAND, np.int64)
    n = cards.held(g, pool)
    for i in range(n):
        if i64(g.card_flags[int(pool[i])]) & F_FORCED != 0:
            return
    c = int(pool[rng.pick(g, keys.K_BELL, n, 0)])
    g.card_flags[c] = i64(g.card_flags[c]) | F_FORCED


@jit
def take(g: Any, bits: int, chosen: Any, place: int) -> int:
    """Moves the cards at these places out of the hand, left to right; how many."""
    count = 0
    for i in range(int(g.hand_count)):
        if bits >> i & 1 != 0:
            chosen[count] = i64(g.hand[i])
            count += 1
    for i in range(count):
        cards.out_of_hand(g, int(chosen[i]), place)
    return count


@jit
def lay_and_score(g: Any, bits: int, chosen: Any, log: Any) -> int:
    """Lays the cards at these places on the table, which go to `chosen`, and scores them, by `log`; how many."""
    count = take(g, bits, chosen, AT_PLAYED)
    for i in range(count):
        c = int(chosen[i])
        g.played[i] = c
        g.card_flags[c] = (i64(g.card_flags[c]) | F_PLAYED_THIS_ANTE) & ~(F_FACE_DOWN | F_FORCED)
    g.played_count = count
    g.hands_left -= 1
    g.selected, g.boss_pressed, g.free_moves = 0, 0, 0
    _press_play(g)
    score_hand(g, log)
    return count


@jit
def play(g: Any, bits: int) -> None:
    """Plays the cards at these places."""
    chosen = np.zeros(MAX_HAND, np.int64)
    count = lay_and_score(g, bits, chosen, np.zeros((0, 5), np.float64))
    g.round_score += float(g.hand_score)
    g.best_hand = max(float(g.best_hand), float(g.hand_score))
    g.hands_played += 1
    g.hands_total += 1
    for i in range(count):
        if i64(g.place[int(chosen[i])]) == AT_PLAYED:
            g.place[int(chosen[i])] = AT_DISCARDED
    g.played_count = 0
    if float(g.round_score) >= float(g.target):
        end_round(g, False)
    elif int(g.hands_left) <= 0:
        _out_of_hands(g)
    else:
        g.just_played = 1
        draw(g)
        if bosses.boss_now(g) == ids.B_FINAL_HEART:
            disable_a_joker(g)


@jit
def _press_play(g: Any) -> None:
    """What bosses do the moment a hand is played."""
    boss = bosses.boss_now(g)
    if boss == ids.B_TOOTH:
        g.money -= int(g.played_count)
        g.boss_pressed = 1
    elif boss == ids.B_HOOK and int(g.hand_count) > 0:
        g.boss_pressed = 1
        pool = np.zeros(MAX_HAND, np.int64)
        n = cards.held(g, pool)
        bits = 0
        for _ in range(min(2, n)):
            k = rng.pick(g, keys.K_HOOK, n, 0)
            for i in range(int(g.hand_count)):
                if i64(g.hand[i]) == int(pool[k]):
                    bits |= 1 << i
            n -= 1
            for i in range(k, n):
                pool[i] = pool[i + 1]
        _throw(g, bits, False)


@jit
def _throw(g: Any, bits: int, by_player: bool) -> None:
    chosen = np.zeros(MAX_HAND, np.int64)
    count = take(g, bits, chosen, AT_DISCARDED)
    if by_player:
        jokers_events.before_discard(g, chosen, count)
    for i in range(count):
        c = int(chosen[i])
        g.card_flags[c] = i64(g.card_flags[c]) & ~(F_FACE_DOWN | F_FORCED)
        if i64(g.seal[c]) == SEAL_PURPLE and not debuffed(g, c):
            create.gain_tarot(g, keys.S_8BA)
        jokers_events.card_discarded(g, c, count == 1)
    jokers_events.after_discard(g, chosen, count)


@jit
def discard(g: Any, bits: int) -> None:
    """Discards the cards at these places."""
    g.discards_left -= 1
    g.selected, g.free_moves = 0, 0
    _throw(g, bits, True)
    g.discards_used += 1
    draw(g)


@jit
def lose(g: Any) -> None:
    """The run is over."""
    g.phase = P_OVER


@jit
def _out_of_hands(g: Any) -> None:
    """Lost, unless Mr. Bones saves a run that scored a quarter of the target."""
    close = float(g.round_score) >= 0.25 * float(g.target)
    for j in range(int(g.joker_count)):
        if close and i64(g.joker[j]) == ids.J_MR_BONES and not joker_off(g, j):
            create.remove_joker(g, j)
            end_round(g, True)
            return
    lose(g)


@jit
def end_round(g: Any, saved: bool) -> None:
    """The blind is over: jokers, held cards, stickers, pay, then the shop or the end of the run.

    It was beaten, or Mr. Bones has saved the run: then it counts as not beaten, and has no reward.
    """
    boss = int(g.blind) == 2
    if not saved:
        g.beaten += 1
        g.gained += 1
    jokers_events.round_ended(g, boss)
    _held_at_end(g)
    for j in range(int(g.joker_count)):
        if i64(g.joker_sticker[j]) & ST_RENTAL != 0:
            g.money -= 3
        if i64(g.joker_sticker[j]) & ST_PERISHABLE != 0 and i64(g.joker_perish[j]) > 0:
            if i64(g.joker_perish[j]) == 1 and not joker_off(g, j):
                create.while_owned(g, i64(g.joker[j]), float(g.joker_value[j]), -1)
            g.joker_perish[j] -= 1
    g.unused_discards += max(0, int(g.discards_left))
    pay = round_pay(g, saved)
    if boss and int(g.boss) == ids.B_MANACLE and int(g.boss_took) != 0:
        g.hand_size += 1
    g.hand_size -= int(g.round_hand_size)
    g.round_hand_size, g.boss_took = 0, 0
    create.set_disabled(g, -1)
    if boss:
        pay += _boss_rewards(g)
    cards.gather(g)
    if int(g.phase) == P_OVER:
        return
    run.name_cards(g)
    g.money += pay
    g.cashout = pay
    cards.shuffle_deck(g, keys.K_CASHOUT_SHUFFLE)
    if boss:
        run.next_blinds(g)
    g.blind = (int(g.blind) + 1) % 3
    g.phase = P_SHOP
    g.selected, g.free_moves = 0, 0
    shop.stock(g)


@jit
def _boss_rewards(g: Any) -> int:
    """What beating a boss brings besides its reward; the next ante begins, or the run ends."""
    pay = 0
    investment = shop.find_tag(g, ids.T_INVESTMENT)
    while investment >= 0:
        shop.drop_tag(g, investment)
        pay += 25
        investment = shop.find_tag(g, ids.T_INVESTMENT)
    if int(g.deck) == ids.D_ANAGLYPH:
        tags.gain_tag(g, ids.T_DOUBLE, -1)
    if int(g.ante) >= 8:
        g.won = 1
    if int(g.ante) >= int(g.last_ante):
        g.phase = P_OVER
    run.boss_beaten(g)
    return pay


@jit
def round_pay(g: Any, saved: bool) -> int:
    """Reward, hands left, interest and jokers."""
    pay = int(tables.BLIND_REWARD[blind_number(g)])
    if saved or (int(g.blind) == 0 and int(g.stake) >= 2):
        pay = 0
    pay += max(0, int(g.hands_left)) * (2 if int(g.deck) == ids.D_GREEN else 1)
    if int(g.deck) == ids.D_GREEN:
        pay += max(0, int(g.discards_left))
    else:
        cap = 20 if pools.has_voucher(g, ids.V_MONEY_TREE) else (10 if pools.has_voucher(g, ids.V_SEED_MONEY) else 5)
        pay += (1 + count_joker(g, ids.J_TO_THE_MOON)) * min(cap, max(0, int(g.money)) // 5)
    return pay + jokers_events.payout(g)


@jit
def _held_at_end(g: Any) -> None:
    """Gold cards pay, Blue seals bring a planet; Red seals and Mimes repeat both."""
    jokers_events.aim(g)
    mimes = 0
    for j in range(int(g.joker_count)):
        t = i64(g.joker_target[j])
        if t >= 0 and i64(g.joker[t]) == ids.J_MIME:
            mimes += 1
    for i in range(int(g.hand_count)):
        c = i64(g.hand[i])
        if debuffed(g, c) or i64(g.place[c]) == AT_GONE:
            continue
        for _ in range(1 + mimes + (1 if i64(g.seal[c]) == SEAL_RED else 0)):
            if i64(g.enhancement[c]) == E_GOLD:
                g.money += 3
            if i64(g.seal[c]) == SEAL_BLUE and create.consumable_room(g) > 0 and int(g.last_hand) >= 0:
                create.add_consumable(g, int(tables.HAND_PLANET[int(g.last_hand)]), False)
