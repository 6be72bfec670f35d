"""The pictures of the page in README and docs, made anew: a game, an analysis, a run.

python scripts/web_pictures.py --runs DIR --run NAME [--out docs/pictures]

Needs Debian's Chromium and the built page; DIR holds a run to watch.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
from playwright.sync_api import Page, sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
WAIT = 180_000


def play(page: Page, url: str) -> None:
    with httpx.Client(base_url=url, timeout=180) as client:
        asked = {"game": "backgammon", "seats": ["human", "bundled,ply=0"], "seed": 8}
        view = client.post("/api/tables", json=asked).json()
        for _ in range(5):
            while not view["waits"] and not view["thinking"]:
                best = client.post(f"/api/hints/{view['id']}", json={}).json()["moves"][0]["actions"]
                view = client.post(f"/api/tables/{view['id']}/move", json={"actions": best}).json()
            view = client.post(f"/api/tables/{view['id']}/end").json() if view["waits"] else view
            while view["thinking"]:
                view = client.get(f"/api/tables/{view['id']}", params={"after": view["version"]}).json()
    page.goto(f"{url}#/table/{view['id']}")
    page.get_by_role("button", name="Hint").click()
    page.wait_for_selector("table.thought", timeout=WAIT)


def analyse(page: Page, url: str) -> None:
    page.goto(f"{url}#/analyse?game=connect_four&position=44453&player=bundled%2Csims%3D200")
    page.wait_for_selector("table.thought", timeout=WAIT)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", required=True)
    parser.add_argument("--run", required=True)
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        env = {**os.environ, "ALEA_WEB_TABLES": folder, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "aleazero.cli.main", "web", "--port", "0", "--no-warm", "--runs", options.runs]
        server = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            url = next(line.split()[2] for line in server.stdout if line.startswith("alea web: "))
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
            page = browser.new_page(viewport={"width": 1100, "height": 640})
            play(page, url)
            page.screenshot(path=options.out / "web-play.png")
            page.set_viewport_size({"width": 1100, "height": 860})
            page.emulate_media(color_scheme="dark")
            analyse(page, url)
            page.screenshot(path=options.out / "web-analyse.png")
            page.emulate_media(color_scheme="light")
            page.goto(f"{url}#/watch/{options.run}")
            page.wait_for_selector(".chart canvas", timeout=WAIT)
            page.get_by_role("button", name="Show games of self-play").click()
            page.locator(".gamelist button").first.click(timeout=WAIT)
            page.wait_for_selector(".replay svg.board", timeout=WAIT)
            page.evaluate("() => window.scrollTo(0, 0)")
            page.wait_for_timeout(500)
            page.screenshot(path=options.out / "web-watch.png")
            browser.close()
        finally:
            server.terminate()
            server.wait(30)
    return 0


if __name__ == "__main__":
    sys.exit(main())
