"""What tests of the page share: where Chromium is, and what a visitor does with a table."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from aleazero.web.app import STATIC
from tests.web.conftest import CHROMIUM, PATIENCE, Server

PICTURES = os.environ.get("ALEA_PICTURES")  # a folder: what the tests see is kept there
NEEDS = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: make programs"),
    pytest.mark.skipif(not (STATIC / "index.html").is_file(), reason="the page is not built: make web"),
]
expect.set_options(timeout=PATIENCE * 1000)


def table(client: httpx.Client, game: str, seats: list[str], **more: Any) -> str:
    answer = client.post("/api/tables", json={"game": game, "seats": seats, **more})
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["id"]
    return found


def view(client: httpx.Client, name: str) -> dict[str, Any]:
    """What the server knows, once nobody thinks."""
    end = time.monotonic() + PATIENCE
    found: dict[str, Any] = client.get(f"/api/tables/{name}").json()
    while found["thinking"] and time.monotonic() < end:
        found = client.get(f"/api/tables/{name}", params={"after": found["version"]}).json()
    return found


def show(page: Page, server: Server, name: str) -> None:
    page.goto(f"{server.url}#/table/{name}")
    page.wait_for_selector("svg.board")


def place(page: Page, name: str) -> Any:
    return page.locator(f'[data-place="{name}"]')


def until_shown(page: Page, moves: int) -> None:
    expect(page.locator("ol.history li")).to_have_count(moves, timeout=PATIENCE * 1000)


def until_version(page: Page, version: int) -> None:
    """Until the page shows a table at least so new."""
    page.wait_for_function(
        f"() => Number(document.querySelector('section.table').dataset.version) >= {version}", timeout=PATIENCE * 1000
    )


def click_move(page: Page, move: dict[str, Any]) -> None:
    if move["to"] is None:
        page.locator(".moves button", has_text=move["name"]).click()
        return
    if move["from"] is not None:
        place(page, move["from"]).click()
    place(page, move["to"]).click()


def keep(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=False)


def drag(page: Page, source: str, target: str) -> None:
    boxes = [place(page, name).bounding_box() for name in (source, target)]
    middles = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes if box]
    page.mouse.move(*middles[0])
    page.mouse.down()
    page.mouse.move(*middles[1], steps=6)
    page.mouse.up()
