"""A live game for tests: BalatroBot's JSON-RPC over HTTP, with our simulator behind it. Its connection can break.

`faults` are taken one by one, each by the next request that would do something: "before" breaks off without doing
it, "after" does it and breaks off, "late" breaks off and does it a moment later, "nonsense" does it and answers with
what is no JSON, "away" does it and then refuses all connections for a while, "busy" refuses it, "swap" breaks off and
is in another run then.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from aleazero.games.balatro import actions, facts, tables
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.layout import (
    AT_DECK,
    F_DEBUFFED,
    F_FACE_DOWN,
    G_CARD,
    G_JOKER,
    P_BLIND,
    P_OVER,
    P_PACK,
    P_PLAY,
    P_SHOP,
)
from tests.bridges.simple import charm

_STATES = {
    P_BLIND: "BLIND_SELECT",
    P_PLAY: "SELECTING_HAND",
    P_SHOP: "SHOP",
    P_PACK: "SMODS_BOOSTER_OPENED",
    P_OVER: "GAME_OVER",
}
_RANKS = {10: "T", 11: "J", 12: "Q", 13: "K", 14: "A"}
LATE = 0.15
MOST = 40  # decisions of a test: some shops, packs and blinds


class Refusal(Exception):  # noqa: N818 - what it is, not that it is an error
    """What the game answers with an error."""


class LiveGame:
    """The game and its server."""

    def __init__(self, batch: Batch | None = None, faults: tuple[str, ...] = ()) -> None:
        self.batch, self.faults = batch, deque(faults)
        self.paid = True  # what the last round brought was cashed out
        self.lingers = 0  # times that it is still shown before, though it was
        self.log: list[tuple[str, str]] = []  # the state before it, and what was done
        self.asked: list[str] = []
        self.away_until = 0.0
        self.lock = threading.Lock()
        game = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                game.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def __enter__(self) -> LiveGame:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        asked = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        method, given = asked["method"], asked.get("params", {})
        self.asked.append(method)
        if time.monotonic() < self.away_until:
            return _break_off(handler)
        fault = self.faults.popleft() if self.faults and method not in ("gamestate", "health") else ""
        if fault == "swap":
            self.batch = Batch.start(["OTHER"])
        if fault in ("before", "swap"):
            return _break_off(handler)
        if fault == "late":
            _break_off(handler)
            time.sleep(LATE)
        told: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        try:
            with self.lock:
                if fault == "busy":
                    raise Refusal("not now")
                self.do(method, given)
                told["result"] = self.state()
        except Refusal as error:
            told["error"] = {"code": -32001, "message": str(error), "data": {"name": "NOT_ALLOWED"}}
        if fault in ("after", "late", "away"):
            self.away_until = time.monotonic() + (0.3 if fault == "away" else 0.0)
            return None if fault == "late" else _break_off(handler)
        body = b"no json" if fault == "nonsense" else json.dumps(told).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        return None

    # ---- what is done

    def do(self, method: str, given: dict[str, Any]) -> None:
        if method in ("gamestate", "health"):
            self.lingers -= self.paid and self.lingers > 0
            return
        if method == "start":
            if self.batch is not None:
                raise Refusal("a run is on")
            deck, stake = given["deck"].capitalize() + " Deck", given["stake"].capitalize()
            self.log.append(("", "start"))
            self.batch = Batch.start([given.get("seed", "ALEEB")], deck, stake)
            return
        if self.batch is None:
            raise Refusal("no run is on")
        before = json.dumps(self.state(), sort_keys=True)
        if method == "cash_out":
            if self.paid:
                raise Refusal("there is nothing to cash out")
            self.paid = True
        else:
            if not self.paid:
                raise Refusal("the round is to be cashed out")
            phase = int(self.batch.states["phase"][0])
            after = self.batch.copy()
            for action in self.actions(method, given):
                if not after.masks[0, action]:
                    raise Refusal(f"{method} {given} cannot be done")
                after.step(np.array([action]))
            charm(after)
            self.batch = after
            self.paid = not (phase == P_PLAY and int(after.states["phase"][0]) == P_SHOP)
        self.log.append((before, method))

    def actions(self, method: str, given: dict[str, Any]) -> list[int]:
        g = self.batch.states[0]  # type: ignore[union-attr]
        one = {
            "select": actions.A_SELECT_BLIND,
            "skip": actions.A_SKIP_BLIND,
            "reroll": actions.A_REROLL,
            "next_round": actions.A_LEAVE_SHOP,
        }
        if method in one:
            return [one[method]]
        if method in ("play", "discard"):
            last = actions.A_PLAY_SELECTED if method == "play" else actions.A_DISCARD_SELECTED
            return [*_toggles(given["cards"]), last]
        if method == "use":
            return [*_toggles(given.get("cards", [])), actions.A_USE + given["consumable"]]
        if method == "pack":
            if given.get("skip"):
                return [actions.A_SKIP_PACK]
            return [*_toggles(given.get("targets", [])), actions.A_CHOOSE + given["card"]]
        if method == "sell":
            if "joker" in given:
                return [actions.A_SELL_JOKER + given["joker"]]
            return [actions.A_SELL_CONSUMABLE + given["consumable"]]
        if method == "rearrange":
            kind, order = next(iter(given.items()))
            first = actions.A_SWAP_JOKERS if kind == "jokers" else actions.A_SWAP_CARDS
            return [first + next(k for k, place in enumerate(order) if place != k)]
        if method == "buy":
            if "card" in given:
                return [actions.A_BUY + given["card"]]
            if "voucher" in given:
                there = [k for k, number in enumerate((int(g.voucher), int(g.voucher_extra))) if number]
                return [actions.A_VOUCHER + there[given["voucher"]]]
            there = [k for k in range(2) if g.booster[k]]
            return [actions.A_BOOSTER + there[given["pack"]]]
        raise Refusal(f"there is no method {method!r}")

    # ---- what is told

    def state(self) -> dict[str, Any]:
        if self.batch is None:
            return {"state": "MENU", "round_num": 0, "ante_num": 0, "money": 0}
        return tell(self.batch, self.paid and not self.lingers)


def _toggles(places: list[int]) -> list[int]:
    return [actions.A_TOGGLE + place for place in places]


def _break_off(handler: BaseHTTPRequestHandler) -> None:
    """As when a game is killed: no answer, and the connection reset."""
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.connection.close()
    handler.close_connection = True


def tell(batch: Batch, paid: bool = True) -> dict[str, Any]:
    """A run as BalatroBot tells it."""
    g = batch.states[0]
    phase = int(g.phase)
    blinds: dict[str, Any] = {}
    for k, name in enumerate(("small", "big", "boss")):
        number = int(g.boss) if k == 2 else k
        now = int(g.blind) == k and phase in (P_BLIND, P_PLAY)
        status = ("CURRENT" if phase == P_PLAY else "SELECT") if now else "DEFEATED" if k < int(g.blind) else "UPCOMING"
        tag = (int(g.tag_small), int(g.tag_big), 0)[k]
        blinds[name] = {
            "type": name.upper(),
            "status": status,
            "name": facts.name_of("blinds", number),
            "score": float(g.target) if now and phase == P_PLAY else 300.0,
            "tag_name": facts.name_of("tags", tag) if tag else "",
        }
    jokers = [_joker(g, i) for i in range(int(g.joker_count))]
    extra = sum(int(g.joker_edition[i]) == 4 for i in range(int(g.joker_count)))
    held = [_thing_card(g, int(g.hand[i])) for i in range(int(g.hand_count))]
    owned = {facts.table("vouchers")[v - 1]["id"]: "" for v in range(1, 33) if int(g.vouchers) >> v & 1}
    return {
        "state": "ROUND_EVAL" if not paid else _STATES[phase],
        "round_num": int(g.round_number),
        "ante_num": int(g.ante),
        "money": int(g.money),
        "deck": facts.name_of("decks", int(g.deck)).removesuffix(" Deck").upper(),
        "stake": facts.name_of("stakes", int(g.stake) - 1).upper(),
        "seed": bytes(g.seed[: int(g.seed_length)].astype(np.uint8)).decode(),
        "won": bool(g.won),
        "used_vouchers": owned or [],  # as Lua writes an empty table
        "hands": {
            row["name"]: {
                "level": int(g.level[h]),
                "played": int(g.plays[h]),
                "played_this_round": int(g.round_plays[h]),
            }
            for h, row in enumerate(facts.table("hands"))
        },
        "round": {
            "hands_left": int(g.hands_left),
            "discards_left": int(g.discards_left),
            "hands_played": int(g.hands_played),
            "discards_used": int(g.discards_used),
            "reroll_cost": 0 if int(g.free_rerolls) else int(g.reroll_cost),
            "chips": float(g.round_score),
        },
        "blinds": blinds,
        "jokers": {"count": len(jokers), "limit": int(g.joker_slots) + extra, "cards": jokers},
        "consumables": {
            "limit": int(g.consumable_slots) + int(g.consumable_negative[: int(g.consumable_count)].sum()),
            "cards": [
                {
                    "key": facts.consumables()[int(g.consumable[i]) - 1]["id"],
                    "modifier": {"edition": "NEGATIVE"} if g.consumable_negative[i] else [],
                    "cost": {"sell": int(g.consumable_sell[i]), "buy": 0},
                }
                for i in range(int(g.consumable_count))
            ],
        },
        "cards": {"cards": [_thing_card(g, c) for c in range(int(g.card_count)) if int(g.place[c]) == AT_DECK]},
        "hand": {"limit": int(g.hand_size), "cards": held},
        "shop": {"cards": [_on_shelf(g, i) for i in range(int(g.shelf_count))]},
        "vouchers": {
            "cards": [
                {"key": facts.table("vouchers")[v - 1]["id"]} for v in (int(g.voucher), int(g.voucher_extra)) if v
            ]
        },
        "packs": {
            "cards": [
                {"label": facts.name_of("packs", int(g.booster[k]) - 1), "cost": {"buy": int(g.booster_cost[k])}}
                for k in range(2)
                if g.booster[k]
            ]
        },
        "pack": {"cards": [_in_pack(g, i) for i in range(int(g.pack_count) if phase == P_PACK else 0)]},
    }


def _worn(edition: int, stickers: int = 0, enhancement: int = 0, seal: int = 0) -> Any:
    names = ("", "FOIL", "HOLO", "POLYCHROME", "NEGATIVE")
    found: dict[str, Any] = {}
    if edition:
        found["edition"] = names[edition]
    if enhancement:
        found["enhancement"] = facts.ENHANCEMENTS[enhancement].upper()
    if seal:
        found["seal"] = facts.SEALS[seal].upper()
    known = ((1, "eternal", True), (2, "perishable", 5), (4, "rental", True))
    return found | {name: value for bit, name, value in known if stickers & bit} or []


def _joker(g: Any, i: int) -> dict[str, Any]:
    return {
        "id": i,
        "key": facts.table("jokers")[int(g.joker[i]) - 1]["id"],
        "set": "JOKER",
        "modifier": _worn(int(g.joker_edition[i]), int(g.joker_sticker[i])),
        "cost": {"sell": int(g.joker_sell[i]), "buy": 0},
    }


def _front(rank: int, suit: int, worn: Any) -> dict[str, Any]:
    return {
        "set": "ENHANCED" if worn and "enhancement" in worn else "DEFAULT",
        "value": {"suit": "CDHS"[suit], "rank": _RANKS.get(rank, str(rank))},
        "modifier": worn,
    }


def _thing_card(g: Any, c: int) -> dict[str, Any]:
    worn = _worn(int(g.edition[c]), 0, int(g.enhancement[c]), int(g.seal[c]))
    flags = int(g.card_flags[c])
    told = {"debuff": True} if flags & F_DEBUFFED else {}
    told |= {"hidden": True} if flags & F_FACE_DOWN else {}
    return {"id": c, **_front(int(g.rank[c]), int(g["suit"][c]), worn), "state": told or []}


def _thing(kind: int, number: int, edition: int, stickers: int, front: Any) -> dict[str, Any]:
    if kind == G_CARD:
        rank, suit, enhancement, seal = (int(x) for x in front)
        return _front(rank, suit, _worn(edition, 0, enhancement, seal))
    if kind == G_JOKER:
        key, what = facts.table("jokers")[number - 1]["id"], "JOKER"
    else:
        key = facts.consumables()[number - 1]["id"]
        what = "TAROT" if number < tables.FIRST_PLANET else "PLANET" if number < tables.FIRST_SPECTRAL else "SPECTRAL"
    return {"key": key, "set": what, "modifier": _worn(edition, stickers)}


def _on_shelf(g: Any, i: int) -> dict[str, Any]:
    found = _thing(
        int(g.shelf_kind[i]), int(g.shelf_id[i]), int(g.shelf_edition[i]), int(g.shelf_sticker[i]), g.shelf_card[i]
    )
    return {**found, "cost": {"buy": int(g.shelf_cost[i]), "sell": 1}}


def _in_pack(g: Any, i: int) -> dict[str, Any]:
    return _thing(
        int(g.pack_what[i]), int(g.pack_item[i]), int(g.pack_edition[i]), int(g.pack_sticker[i]), g.pack_card[i]
    )
