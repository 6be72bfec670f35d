"""A language model asked in shops and at blinds, over any HTTP endpoint that answers chat completions. Off by default.

It chooses among numbered options; whatever else it answers is nonsense, which is ignored and counted. Where it is
late, silent, over its hourly budget or wrong, the policy decides. The same question is asked once: answers are kept.
A key stands in ALEA_ADVISOR_KEY, goes only to the endpoint, and is never shown. Knows no rules.

It is an option of a player: `greedy,advisor=http://127.0.0.1:8080/v1/chat/completions,advisor_budget=60`.
"""

from __future__ import annotations

import dataclasses
import http.client
import json
import logging
import os
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from aleazero.bridges.balatro_advice import Choose, reasons
from aleazero.bridges.post import post
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.games.balatro import actions, pages, text
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.layout import P_BLIND, P_SHOP

log = logging.getLogger(__name__)
KEY = "ALEA_ADVISOR_KEY"
HOUR = 3600.0
LARGEST = 1 << 20  # bytes of an answer
_NUMBER = re.compile(r"\d{1,4}")
_SYSTEM = (
    "You advise a player of Balatro. You are shown the table and numbered options. Answer with one JSON object and "
    'nothing else: {"option": NUMBER, "why": "one short sentence"}.'
)


@dataclasses.dataclass(frozen=True)
class AdvisorConfig:
    """Whom to ask, and how much."""

    url: str  # of chat completions, as in http://127.0.0.1:8080/v1/chat/completions
    model: str = "default"
    seconds: float = 10.0  # for an answer
    per_hour: int = 60  # questions; 0 asks nothing
    kept: int = 1024  # answers that are remembered

    def __post_init__(self) -> None:
        problems = []
        try:
            parts = urlsplit(self.url)
            known = parts.scheme in ("http", "https") and parts.hostname and not parts.username and parts.port != 0
        except ValueError:  # of a port that can be none
            known = False
        if not known:
            problems.append(f"advisor names no endpoint: write http(s)://HOST:PORT/PATH, and the key in {KEY}")
        if not 0 < self.seconds <= 600:
            problems.append(f"advisor's seconds is {self.seconds}; it must be more than 0 and at most 600")
        if self.per_hour < 0 or self.kept < 0:
            problems.append(f"advisor's budget is {self.per_hour} and kept {self.kept}; neither may be negative")
        if problems:
            raise ConfigError("\n".join(problems))


_OPTIONS = {"advisor": "url", "advisor_model": "model", "advisor_seconds": "seconds", "advisor_budget": "per_hour"}


def split_player(player: str) -> tuple[str, AdvisorConfig | None]:
    """A player string without its advisor's options, and what they say; None where it has none."""
    parts = [part.strip() for part in player.split(",")]
    mine = [part for part in parts if part.startswith("advisor")]
    rest = ",".join(part for part in parts if part not in mine)
    if not mine:
        return rest, None
    given: dict[str, Any] = {}
    for part in mine:
        name, _, value = part.partition("=")
        if name not in _OPTIONS:
            raise UnknownName(f"option of player {rest!r}", name, _OPTIONS)
        field = _OPTIONS[name]
        try:
            given[field] = {"seconds": float, "per_hour": int}.get(field, str)(value)
        except ValueError:
            raise ConfigError(f"player {rest!r}: {name} is {value!r}; it must be a number") from None
    if "url" not in given:
        raise ConfigError(f"player {rest!r} has options of an advisor, and names none: write advisor=URL")
    return rest, AdvisorConfig(**given)


@dataclasses.dataclass
class Counts:
    """What came of the questions."""

    asked: int = 0  # sent to the endpoint
    followed: int = 0  # decisions that were the advisor's
    from_memory: int = 0
    nonsense: int = 0
    failed: int = 0  # late, refused, unreachable
    over_budget: int = 0


class Advisor:
    """A player that asks before it decides in shops and at blinds, and else, or in doubt, does as the policy does."""

    def __init__(self, policy: Choose, config: AdvisorConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self.policy, self._config, self._clock = policy, config, clock
        self.counts = Counts()
        self._lock = threading.Lock()  # one question at a time, whoever asks
        self._sent: deque[float] = deque()
        self._memory: OrderedDict[str, int] = OrderedDict()
        self._warned = False

    def __call__(self, batch: Batch, move: int) -> np.ndarray:
        """The actions `[B]`: the policy's, and at a shop or a blind the advisor's."""
        with self._lock:
            return self._decide(batch, move)

    def _decide(self, batch: Batch, move: int) -> np.ndarray:
        chosen = np.array(self.policy(batch, move), np.int64)
        for lane in np.flatnonzero(np.isin(batch.states["phase"], (P_SHOP, P_BLIND)) & batch.masks.any(1)):
            one = batch.take(np.array([lane]))
            options = _options(one, int(chosen[lane]))
            picked = self._ask(_question(one, options), len(options)) if len(options) > 1 else None
            if picked is not None:
                self.counts.followed += 1
                chosen[lane] = options[picked]
        return chosen

    def _ask(self, question: str, count: int) -> int | None:
        if question in self._memory:
            self._memory.move_to_end(question)
            self.counts.from_memory += 1
            return self._memory[question]
        now = self._clock()
        while self._sent and now - self._sent[0] >= HOUR:
            self._sent.popleft()
        if len(self._sent) >= self._config.per_hour:
            self.counts.over_budget += 1
            return None
        self._sent.append(now)
        self.counts.asked += 1
        try:
            answer = self._post(question)
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            self.counts.failed += 1
            if not self._warned:
                log.warning("the advisor does not answer (%s); the policy decides", type(error).__name__)
            self._warned = True
            return None
        picked = understood(answer, count)
        if picked is None:
            self.counts.nonsense += 1
            return None
        self._memory[question] = picked
        while len(self._memory) > self._config.kept:
            self._memory.popitem(last=False)
        return picked

    def _post(self, question: str) -> Any:
        """One request, within its time as a whole."""
        config = self._config
        messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": question}]
        body = json.dumps({"model": config.model, "messages": messages, "temperature": 0, "max_tokens": 200})
        headers = {"Content-Type": "application/json"}
        if os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {os.environ[KEY]}"
        status, held = post(config.url, body, headers, config.seconds, LARGEST)
        if status != 200:
            raise http.client.HTTPException(f"status {status}")
        return json.loads(held)


def policy_of(player: Choose) -> Choose:
    """Who plays in imagined futures: the player without its advisor, whose budget they would spend."""
    return player.policy if isinstance(player, Advisor) else player


def understood(answer: Any, count: int) -> int | None:
    """The option that an answer names, from 0; None for nonsense."""
    try:
        content = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        return None
    if not isinstance(content, str):
        return None
    start, end = content.find("{"), content.rfind("}")
    try:
        told = json.loads(content[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return None
    option = told.get("option") if isinstance(told, dict) else None
    if isinstance(option, str) and _NUMBER.fullmatch(option.strip()):
        option = int(option)
    if isinstance(option, bool) or not isinstance(option, int) or not 1 <= option <= count:
        return None
    return option - 1


def _options(batch: Batch, own: int) -> list[int]:
    """What is worth a question: the policy's choice first; moves that only choose or order are left out."""
    ordering = range(actions.A_TOGGLE, actions.A_PLAY_SELECTED), range(actions.A_SWAP_JOKERS, actions.A_BUY)
    legal = [int(a) for a in np.flatnonzero(batch.masks[0])]
    return list(dict.fromkeys([own, *(a for a in legal if not any(a in some for some in ordering))]))


def _question(batch: Batch, options: list[int]) -> str:
    g = batch.states[0]
    shown = [pages.table_text(g), "", "Options (the first is the policy's own choice):"]
    for number, action in enumerate(options, 1):
        why = "; ".join(reasons(batch, [action]))
        shown.append(f"{number}. {text.describe(g, action)}" + (f" ({why})" if why else ""))
    return "\n".join(shown)
