"""What the page looks like beside pictures that are kept; `pytest tests/web/test_pictures.py --regenerate` renews them.

A picture is compared tile by tile, 16 by 16 points each. Two tiles differ where their colours do, on average, by more
than `TOLERANCE` of 255; none may, besides `STRAY` of all. So another edge of a letter passes, and a checker that is
missing does not. Size, fonts, time and motion are fixed.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.conftest import NewPage, Server, make_run
from tests.web.pages import NEEDS, show, table

pytestmark = NEEDS
KEPT = Path(__file__).parent / "pictures"
TILE, TOLERANCE, STRAY = 16, 16, 0.002
STILL = """* {
  font-family: 'DejaVu Sans' !important; animation: none !important; transition: none !important;
  caret-color: transparent !important;
}"""
COMPARE = """async ([one, two, tile, tolerance]) => {
  const pixels = async (text) => {
    const image = new Image();
    image.src = "data:image/png;base64," + text;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  };
  const [a, b] = [await pixels(one), await pixels(two)];
  if (a.width !== b.width || a.height !== b.height) return { size: [a.width, a.height, b.width, b.height], share: 1 };
  let tiles = 0, differ = 0, worst = 0;
  for (let top = 0; top < a.height; top += tile)
    for (let left = 0; left < a.width; left += tile) {
      let sum = 0, count = 0;
      for (let y = top; y < Math.min(top + tile, a.height); y++)
        for (let x = left; x < Math.min(left + tile, a.width); x++)
          for (let c = 0; c < 3; c++) {
            sum += Math.abs(a.data[4 * (y * a.width + x) + c] - b.data[4 * (y * a.width + x) + c]);
            count++;
          }
      tiles++;
      worst = Math.max(worst, sum / count);
      if (sum / count > tolerance) differ++;
    }
  return { share: differ / tiles, worst };
}"""


def differ(page: Page, one: bytes, two: bytes) -> dict[str, Any]:
    texts = [base64.b64encode(picture).decode() for picture in (one, two)]
    found: dict[str, Any] = page.evaluate(COMPARE, [*texts, TILE, TOLERANCE])
    return found


class Album:
    """Pictures beside those that are kept."""

    def __init__(self, regenerate: bool, folder: Path) -> None:
        self._regenerate, self._folder = regenerate, folder

    def compare(self, page: Page, name: str, part: Locator | None = None) -> None:
        taken, kept = self._take(page, part), KEPT / f"{name}.png"
        if self._regenerate:
            KEPT.mkdir(exist_ok=True)
            kept.write_bytes(taken)
        assert kept.is_file(), f"{kept} is missing: run this test with --regenerate, and look at it"
        found = differ(page, kept.read_bytes(), taken)
        if found["share"] > STRAY:
            (self._folder / f"{name}.png").write_bytes(taken)
            pytest.fail(f"{name} does not look as in {kept}: {found}; it is in {self._folder}")

    def _take(self, page: Page, part: Locator | None) -> bytes:
        page.add_style_tag(content=STILL)
        page.evaluate("() => document.fonts.ready")
        page.mouse.move(0, 0)
        return (part or page).screenshot(animations="disabled", caret="hide")


@pytest.fixture
def album(regenerate: bool, tmp_path: Path) -> Album:
    return Album(regenerate, tmp_path)


@pytest.fixture
def fixed_page(new_page: NewPage) -> NewPage:
    def make(**options: Any) -> Page:
        size = {"viewport": {"width": 900, "height": 560}, "device_scale_factor": 1, "color_scheme": "light"}
        return new_page(**{**size, "bypass_csp": True, "reduced_motion": "reduce", "locale": "en-GB", **options})

    return make


BOARDS = {
    "backgammon": "XGID=a-B--BC-B---aD---c-d-b--B-:0:0:1:64:0:0:0:0:0",
    "chess": "r1bqkb1r/pppp1Qpp/2n2n2/4p3/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 0 4",
    "connect_four": "44536241",
    "quoridor": "e4 e6 8 9 e5h,c3v,g6h 2",
    "tictactoe": "XO./.X./..O",
}


def test_every_board_looks_as_it_did(fixed_page: NewPage, server: Server, client: httpx.Client, album: Album) -> None:
    page = fixed_page()
    for game, position in BOARDS.items():
        show(page, server, table(client, game, ["human", "human"], position=position, seed=3))
        page.wait_for_selector(f"svg.board.{game.replace('_', '')}")
        expect(page.locator(".status")).not_to_be_empty()
        album.compare(page, f"board-{game}", page.locator("svg.board"))


def test_a_phone_in_the_dark_looks_as_it_did(
    fixed_page: NewPage, server: Server, client: httpx.Client, album: Album
) -> None:
    page = fixed_page(viewport={"width": 360, "height": 740}, color_scheme="dark", has_touch=True, is_mobile=True)
    clock = {"seconds": 300, "increment": 3}
    show(page, server, table(client, "backgammon", ["human", "human"], position=BOARDS["backgammon"], clock=clock))
    expect(page.locator(".status")).not_to_be_empty()
    album.compare(page, "phone-dark")


def test_pages_look_as_they_did(fixed_page: NewPage, server: Server, album: Album) -> None:
    page = fixed_page()
    page.goto(f"{server.url}#/play/tictactoe")
    page.wait_for_selector("form.start")
    album.compare(page, "lobby")
    page.goto(f"{server.url}#/analyse?game=tictactoe&position=XX./OO./...&player=solver")
    page.wait_for_selector("table.thought")
    album.compare(page, "analyse")
    make_run(server.folder / "runs" / "pictured")
    page.goto(f"{server.url}#/watch/pictured")
    page.wait_for_selector(".chart canvas")
    album.compare(page, "curve", page.locator(".chart .u-wrap").first)
    page.goto(f"{server.url}#/balatro")
    page.get_by_label("Seed").fill("ALEA1234")
    page.get_by_role("button", name="New run").click()
    page.get_by_role("button", name="select blind").click()
    page.locator('[data-card="2"]').click()
    album.compare(page, "cards", page.locator(".cards").last)


def test_a_missing_checker_is_noticed_and_the_edge_of_a_letter_is_not(
    fixed_page: NewPage, server: Server, client: httpx.Client, album: Album
) -> None:
    page = fixed_page()
    show(page, server, table(client, "backgammon", ["human", "human"], position=BOARDS["backgammon"]))
    board = page.locator("svg.board")
    whole = album._take(page, board)
    page.add_style_tag(content="text { transform: translate(0.25px, 0.25px) }")
    moved = differ(page, whole, board.screenshot())
    assert moved["worst"] > 0
    assert moved["share"] <= STRAY
    page.evaluate("() => document.querySelector('.checker').remove()")  # a light one, on a light board
    assert differ(page, whole, board.screenshot())["share"] > STRAY
