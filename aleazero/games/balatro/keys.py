"""The names of the random streams, as tables that compiled code can spell them from.

A stream's name is a prefix, often the ante, and sometimes a suffix: `cdt1`, `rarity1sho`, `Joker1sho1`, `boss`.
Registers names; draws nothing.
"""

from __future__ import annotations

import numpy as np

_NAMES: list[tuple[str, bool, str]] = []


def _key(prefix: str, ante: bool = False, suffix: str = "") -> int:
    _NAMES.append((prefix, ante, suffix))
    return len(_NAMES) - 1


# Where a drawn card is headed: part of the names of its streams.
SOURCES = (
    "sho", "buf", "ar1", "ar2", "pl1", "spe", "sta", "jud", "sou", "wra", "emp", "pri", "rif", "top", "rta", "uta",
    "8ba", "hal", "car", "vag", "sup", "sixth", "sea",
)  # fmt: skip
(
    S_SHO, S_BUF, S_AR1, S_AR2, S_PL1, S_SPE, S_STA, S_JUD, S_SOU, S_WRA, S_EMP, S_PRI, S_RIF, S_TOP, S_RTA, S_UTA,
    S_8BA, S_HAL, S_CAR, S_VAG, S_SUP, S_SIXTH, S_SEA,
) = range(len(SOURCES))  # fmt: skip

K_SHOP_TYPE = _key("cdt", True)
K_SHOP_PACK = _key("shop_pack", True)
K_VOUCHER = _key("Voucher", True)
K_VOUCHER_TAG = _key("Voucher_fromtag")
K_TAG = _key("Tag", True)
K_BOSS = _key("boss")
K_SHUFFLE = _key("shuffle")
K_ROUND_SHUFFLE = _key("nr", True)
K_CASHOUT_SHUFFLE = _key("cashout", True)
K_ERRATIC = _key("erratic")
K_IDOL = _key("idol", True)
K_MAIL = _key("mail", True)
K_ANCIENT = _key("anc", True)
K_CASTLE = _key("cas", True)
K_ORBITAL = _key("orbital")
K_TO_DO = _key("to_do")
K_SHOP_STICKER = _key("etperpoll", True)
K_PACK_STICKER = _key("packetper", True)
K_SHOP_RENTAL = _key("ssjr", True)
K_PACK_RENTAL = _key("packssjr", True)
K_SOUL_TAROT = _key("soul_Tarot", True)
K_SOUL_PLANET = _key("soul_Planet", True)
K_SOUL_SPECTRAL = _key("soul_Spectral", True)
K_STD_SET = _key("stdset", True)
K_STD_EDITION = _key("standard_edition", True)
K_STD_SEAL = _key("stdseal", True)
K_STD_SEAL_TYPE = _key("stdsealtype", True)
K_OMEN = _key("omen_globe")
K_ILLUSION = _key("illusion")
K_ENHANCED_STA = _key("Enhancedsta", True)
K_FRONT_STA = _key("frontsta", True)
K_ENHANCED_SHO = _key("Enhancedsho", True)
K_FRONT_SHO = _key("frontsho", True)
K_LEGENDARY = _key("Joker4")
K_AURA = _key("aura")
K_WHEEL_OF_FORTUNE = _key("wheel_of_fortune")
K_ECTOPLASM = _key("ectoplasm")
K_HEX = _key("hex")
K_ANKH = _key("ankh_choice")
K_SIGIL = _key("sigil")
K_OUIJA = _key("ouija")
K_RANDOM_DESTROY = _key("random_destroy")
K_FAMILIAR = _key("familiar_create")
K_GRIM = _key("grim_create")
K_INCANTATION = _key("incantation_create")
K_SPE_CARD = _key("spe_card")
K_IMMOLATE = _key("immolate")
K_CERTIFICATE = _key("cert_fr")
K_CERTIFICATE_SEAL = _key("certsl")
K_MARBLE = _key("marb_fr")
K_MISPRINT = _key("misprint")
K_INVISIBLE = _key("invisible")
K_PERKEO = _key("perkeo")
K_MADNESS = _key("madness")
K_HALLUCINATION = _key("halu", True)
K_LUCKY_MULT = _key("lucky_mult")
K_LUCKY_MONEY = _key("lucky_money")
K_GLASS = _key("glass")
K_GROS_MICHEL = _key("gros_michel")
K_CAVENDISH = _key("cavendish")
K_8_BALL = _key("8ball")
K_BUSINESS = _key("business")
K_BLOODSTONE = _key("bloodstone")
K_PARKING = _key("parking")
K_SPACE = _key("space")
K_WHEEL = _key("wheel")
K_HOOK = _key("hook")
K_BELL = _key("cerulean_bell")
K_HEART = _key("crimson_heart")
K_ACORN = _key("aajk")

# [source]: streams whose names hold where the card is headed.
RARITY = np.array([_key("rarity", True, s) for s in SOURCES], np.int64)
JOKER = np.array([[_key(f"Joker{r}{s}", True) for r in (1, 2, 3)] for s in SOURCES], np.int64)  # [source, rarity]
EDITION = np.array([_key(f"edi{s}", True) for s in SOURCES], np.int64)
TAROT = np.array([_key(f"Tarot{s}", True) for s in SOURCES], np.int64)
PLANET = np.array([_key(f"Planet{s}", True) for s in SOURCES], np.int64)
SPECTRAL = np.array([_key(f"Spectral{s}", True) for s in SOURCES], np.int64)

NUM_KEYS = len(_NAMES)
HAS_ANTE = np.array([ante for _, ante, _ in _NAMES], np.bool_)
_WIDTH = max(max(len(p), len(s)) for p, _, s in _NAMES)
PREFIX = np.zeros((NUM_KEYS, _WIDTH), np.int64)
PREFIX_LENGTH = np.array([len(p) for p, _, _ in _NAMES], np.int64)
SUFFIX = np.zeros((NUM_KEYS, _WIDTH), np.int64)
SUFFIX_LENGTH = np.array([len(s) for _, _, s in _NAMES], np.int64)
for _i, (_p, _, _s) in enumerate(_NAMES):
    PREFIX[_i, : len(_p)] = list(_p.encode())
    SUFFIX[_i, : len(_s)] = list(_s.encode())
RESAMPLE = np.array(list(b"_resample"), np.int64)


def spelled(key: int, ante: int) -> str:
    """A stream's name."""
    prefix, has_ante, suffix = _NAMES[key]
    return prefix + (str(ante) if has_ante else "") + suffix
