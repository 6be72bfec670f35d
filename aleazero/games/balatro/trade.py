"""Buying and selling: shelf, vouchers, packs, rerolls, jokers and consumables; and choosing from an open pack."""

from __future__ import annotations

from typing import Any

from aleazero.games.balatro import (
    bosses,
    cards,
    consumables,
    create,
    dealing,
    ids,
    jokers_events,
    keys,
    pools,
    rng,
    run,
    shop,
    tags,
)
from aleazero.games.balatro.cards import count_joker
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.jokers_before import aim, card_added
from aleazero.games.balatro.layout import (
    ED_NEGATIVE,
    ED_NONE,
    G_CARD,
    G_CONSUMABLE,
    G_JOKER,
    MAX_CONSUMABLES,
    MAX_JOKERS,
    P_SHOP,
    ST_ETERNAL,
)


@jit
def can_pay(g: Any, cost: int) -> bool:
    """Money may go down to zero, or to -20 with each Credit Card."""
    return cost <= 0 or cost <= int(g.money) + 20 * count_joker(g, ids.J_CREDIT_CARD)


@jit
def room_for(g: Any, kind: int, edition: int) -> bool:
    """Whether a thing has a place to go."""
    if kind == G_JOKER:
        fits = edition == ED_NEGATIVE or create.joker_room(g) > 0
        return fits and int(g.joker_count) < MAX_JOKERS - 1
    if kind == G_CONSUMABLE:
        return create.consumable_room(g) > 0 and int(g.consumable_count) < MAX_CONSUMABLES
    return True


@jit
def _from_shelf(g: Any, i: int) -> None:
    for k in range(i, int(g.shelf_count) - 1):
        g.shelf_kind[k] = g.shelf_kind[k + 1]
        g.shelf_id[k] = g.shelf_id[k + 1]
        g.shelf_edition[k] = g.shelf_edition[k + 1]
        g.shelf_sticker[k] = g.shelf_sticker[k + 1]
        g.shelf_cost[k] = g.shelf_cost[k + 1]
        for m in range(4):
            g.shelf_card[k, m] = g.shelf_card[k + 1, m]
    g.shelf_count -= 1


@jit
def buy(g: Any, i: int) -> None:
    """Buys a card from the shelf."""
    kind, item, edition = i64(g.shelf_kind[i]), i64(g.shelf_id[i]), i64(g.shelf_edition[i])
    stickers = i64(g.shelf_sticker[i])
    g.money -= i64(g.shelf_cost[i])
    rank, suit = i64(g.shelf_card[i, 0]), i64(g.shelf_card[i, 1])
    enhancement, seal = i64(g.shelf_card[i, 2]), i64(g.shelf_card[i, 3])
    _from_shelf(g, i)
    _receive(g, kind, item, edition, stickers, rank, suit, enhancement, seal)
    if kind == G_JOKER and item == ids.J_ASTRONOMER:
        shop.reprice(g)


@jit
def _receive(
    g: Any, kind: int, item: int, edition: int, stickers: int, rank: int, suit: int, enhancement: int, seal: int
) -> None:
    if kind == G_JOKER:
        create.add_joker(g, item, edition, stickers)
    elif kind == G_CONSUMABLE:
        create.add_consumable(g, item, False)
    elif kind == G_CARD:
        made = cards.new_card(g, rank, suit, enhancement, edition, seal)
        if made >= 0:
            cards.to_deck(g, made)
            card_added(g)


@jit
def buy_and_use(g: Any, i: int) -> None:
    """Buys a consumable and uses it at once; it needs no room."""
    item = i64(g.shelf_id[i])
    g.money -= i64(g.shelf_cost[i])
    _from_shelf(g, i)
    consumables.use(g, item)


@jit
def buy_voucher(g: Any, extra: bool) -> None:
    """Buys this ante's voucher, or the one of a Voucher Tag."""
    voucher = int(g.voucher_extra) if extra else int(g.voucher)
    g.money -= voucher_price(g)
    if extra:
        g.voucher_extra = 0
    else:
        g.voucher = 0
    create.worth_counts(g, -1)
    run.redeem(g, voucher)
    create.worth_counts(g, 1)
    if voucher == ids.V_OVERSTOCK_NORM or voucher == ids.V_OVERSTOCK_PLUS:
        shop.add_to_shelf(g)
    elif voucher == ids.V_CLEARANCE_SALE or voucher == ids.V_LIQUIDATION:
        shop.reprice(g)


@jit
def voucher_price(g: Any) -> int:
    """What a voucher costs."""
    return create.price(g, 10, ED_NONE)


@jit
def buy_booster(g: Any, k: int) -> None:
    """Buys a pack and opens it."""
    pack = i64(g.booster[k]) - 1
    g.money -= i64(g.booster_cost[k])
    g.booster[k] = 0
    tags.open_pack(g, pack, P_SHOP)


@jit
def reroll(g: Any) -> None:
    """A new shelf; each reroll costs one more."""
    if int(g.free_rerolls) > 0:
        g.free_rerolls -= 1
    else:
        g.money -= int(g.reroll_cost)
        g.reroll_cost += 1
    g.shelf_count = 0
    for _ in range(shop.shelf_size(g)):
        shop.add_to_shelf(g)
    jokers_events.each_grows(g, ids.J_FLASH, 2.0)


@jit
def sell_joker(g: Any, i: int) -> None:
    """Sells a joker; some act when they go, through copies too."""
    aim(g)
    t = i64(g.joker_target[i])
    acts = i64(g.joker[t]) if t >= 0 else 0
    waited = i64(g.joker_value[i])
    g.money += i64(g.joker_sell[i])
    create.remove_joker(g, i)
    jokers_events.something_sold(g)
    if acts == ids.J_LUCHADOR:
        if bosses.boss_now(g) >= 0:
            bosses.disable(g)
            dealing.deal(g)
    elif acts == ids.J_DIET_COLA:
        tags.gain_tag(g, ids.T_DOUBLE, -1)
    elif acts == ids.J_INVISIBLE and waited >= 2 and int(g.joker_count) > 0 and create.joker_room(g) > 0:
        create.duplicate_joker(g, rng.pick(g, keys.K_INVISIBLE, int(g.joker_count), 0))
    if bosses.boss_now(g) == ids.B_FINAL_LEAF:
        bosses.disable(g)


@jit
def sell_consumable(g: Any, i: int) -> None:
    """Sells a consumable."""
    g.money += i64(g.consumable_sell[i])
    create.remove_consumable(g, i)
    jokers_events.something_sold(g)


@jit
def may_sell(g: Any, i: int) -> bool:
    """Eternal jokers cannot be sold."""
    return i64(g.joker_sticker[i]) & ST_ETERNAL == 0


@jit
def choose(g: Any, i: int) -> None:
    """Takes a card out of the open pack; consumables take effect at once."""
    kind, item, edition = i64(g.pack_what[i]), i64(g.pack_item[i]), i64(g.pack_edition[i])
    stickers = i64(g.pack_sticker[i])
    rank, suit = i64(g.pack_card[i, 0]), i64(g.pack_card[i, 1])
    enhancement, seal = i64(g.pack_card[i, 2]), i64(g.pack_card[i, 3])
    for k in range(i, int(g.pack_count) - 1):
        g.pack_what[k] = g.pack_what[k + 1]
        g.pack_item[k] = g.pack_item[k + 1]
        g.pack_edition[k] = g.pack_edition[k + 1]
        g.pack_sticker[k] = g.pack_sticker[k + 1]
        for m in range(4):
            g.pack_card[k, m] = g.pack_card[k + 1, m]
    g.pack_count -= 1
    g.pack_left -= 1
    if kind == G_CONSUMABLE:
        consumables.use(g, item)
    else:
        _receive(g, kind, item, edition, stickers, rank, suit, enhancement, seal)
    if int(g.pack_left) <= 0 or int(g.pack_count) == 0:
        tags.leave_pack(g)


@jit
def can_choose(g: Any, i: int) -> bool:
    """Whether a card of the open pack can be taken now."""
    kind, item = i64(g.pack_what[i]), i64(g.pack_item[i])
    if kind == G_CONSUMABLE:
        return consumables.can_use(g, item, False)
    return room_for(g, kind, i64(g.pack_edition[i]))


@jit
def skip_pack(g: Any) -> None:
    """Leaves the rest of a pack; Red Cards grow."""
    jokers_events.each_grows(g, ids.J_RED_CARD, 3.0)
    tags.leave_pack(g)


@jit
def can_reroll_boss(g: Any) -> bool:
    """Director's Cut allows one an ante, Retcon any number; each costs 10."""
    if pools.has_voucher(g, ids.V_RETCON):
        return can_pay(g, 10)
    return pools.has_voucher(g, ids.V_DIRECTORS_CUT) and int(g.boss_rerolls) == 0 and can_pay(g, 10)


@jit
def reroll_boss(g: Any) -> None:
    """Another boss for 10."""
    g.money -= 10
    g.boss_rerolls += 1
    g.boss = pools.draw_boss(g)
    g.boss_off = 0
