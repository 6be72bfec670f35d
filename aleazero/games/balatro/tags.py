"""Tags: gained for skipping a blind, used up when their moment comes.

Those that wait for a shop are used by `shop`; the rest is here.
"""

from __future__ import annotations

from typing import Any

from aleazero.games.balatro import create, dealing, ids, keys, packs, pools
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.jokers_events import pack_opened
from aleazero.games.balatro.layout import ERR_TAGS, MAX_TAGS, P_BLIND, P_PACK
from aleazero.games.balatro.shop import drop_tag, find_tag

_MEGA_ARCANA, _MEGA_CELESTIAL, _MEGA_STANDARD, _MEGA_BUFFOON, _SPECTRAL = 2, 5, 8, 11, 12


@jit
def gain_tag(g: Any, tag: int, hand: int) -> None:
    """A tag; every Double Tag held doubles it once and is used up."""
    copies = 1
    if tag != ids.T_DOUBLE:
        double = find_tag(g, ids.T_DOUBLE)
        while double >= 0:
            drop_tag(g, double)
            copies += 1
            double = find_tag(g, ids.T_DOUBLE)
    for _ in range(copies):
        if not _at_once(g, tag, hand):
            _keep(g, tag, hand)


@jit
def _keep(g: Any, tag: int, hand: int) -> None:
    if int(g.tag_count) >= MAX_TAGS:
        g.error = ERR_TAGS
        return
    g.tags[int(g.tag_count)] = tag
    g.tag_hand[int(g.tag_count)] = hand
    g.tag_count += 1


@jit
def _at_once(g: Any, tag: int, hand: int) -> bool:
    """Tags that act when they are gained; whether this is one."""
    if tag == ids.T_TOP_UP:
        for _ in range(2):
            if create.joker_room(g) > 0:
                create.gain_joker(g, keys.S_TOP, 1)
    elif tag == ids.T_HANDY:
        g.money += int(g.hands_total)
    elif tag == ids.T_GARBAGE:
        g.money += int(g.unused_discards)
    elif tag == ids.T_SKIP:
        g.money += 5 * int(g.skips)
    elif tag == ids.T_ORBITAL:
        g.level[hand] += 3
    elif tag == ids.T_ECONOMY:
        g.money += min(40, max(0, int(g.money)))
    else:
        return False
    return True


@jit
def at_blind_choice(g: Any) -> None:
    """Tags that act when a blind is chosen: a new boss, or one free pack at a time."""
    boss = find_tag(g, ids.T_BOSS)
    while boss >= 0:
        drop_tag(g, boss)
        g.boss = pools.draw_boss(g)
        g.boss_off = 0
        boss = find_tag(g, ids.T_BOSS)
    for i in range(int(g.tag_count)):
        pack = _pack_of(i64(g.tags[i]))
        if pack >= 0:
            drop_tag(g, i)
            open_pack(g, pack, P_BLIND)
            return


@jit
def _pack_of(tag: int) -> int:
    if tag == ids.T_CHARM:
        return _MEGA_ARCANA
    if tag == ids.T_METEOR:
        return _MEGA_CELESTIAL
    if tag == ids.T_STANDARD:
        return _MEGA_STANDARD
    if tag == ids.T_BUFFOON:
        return _MEGA_BUFFOON
    return _SPECTRAL if tag == ids.T_ETHEREAL else -1


@jit
def open_pack(g: Any, pack: int, after: int) -> None:
    """Opens a pack; `after` is the phase that follows it. Arcana and Spectral packs deal a hand to use cards on."""
    packs.fill_pack(g, pack)
    g.phase = P_PACK
    g.pack_return = after
    g.selected = 0
    if int(g.pack_kind) == packs.ARCANA or int(g.pack_kind) == packs.SPECTRAL:
        dealing.deal(g)
    pack_opened(g)


@jit
def leave_pack(g: Any) -> None:
    """The pack is done: its hand goes back, and play goes on where it was opened."""
    packs.close_pack(g)
    dealing.put_back(g)
    g.phase = int(g.pack_return)
    g.selected = 0
    if int(g.phase) == P_BLIND:
        at_blind_choice(g)
