"""How a page bears a long run: 100,000 reports drawn by a real browser, then one more.

python scripts/web_curves.py [--reports 100000]

Needs Debian's Chromium and the built page. Prints one JSON object, in seconds; frames in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
WAIT = 180_000
FRAMES = """async () => {
  const times = [];
  let last = performance.now();
  for (let i = 0; i < 100; i++) {
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - last);
    last = performance.now();
  }
  times.sort((a, b) => a - b);
  return { p50: times[50], p95: times[95] };
}"""


def report(step: int) -> str:
    where = {"step": step, "rows": 100 * step, "seconds": float(step), "time": 1.7e9 + step}
    return json.dumps({"kind": "learn", "loss": 2 / (step + 1), "losses": {"policy": 1.0}, **where}) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reports", type=int, default=100_000)
    count = parser.parse_args().reports
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        run = Path(folder) / "runs" / "long"
        run.mkdir(parents=True)
        (run / "config.toml").write_text('game = "tictactoe"\n')
        (run / "metrics.jsonl").write_text("".join(report(step) for step in range(count)))
        env = {**os.environ, "ALEA_WEB_TABLES": folder, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "aleazero.cli.main", "web", "--port", "0", "--no-warm"]
        command += ["--runs", str(run.parent)]
        server = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            url = next(line.split()[2] for line in server.stdout if line.startswith("alea web: "))
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
            page, found = browser.new_page(), {}
            for visit in ("first_visit", "second_visit"):
                started = time.perf_counter()
                page.goto(url)
                page.wait_for_selector("form.start button.main", timeout=WAIT)
                found[visit] = time.perf_counter() - started
                page.goto("about:blank")
            started = time.perf_counter()
            page.goto(f"{url}#/watch/long")
            page.wait_for_selector(f'section.run[data-reports="{count}"] .chart canvas', timeout=WAIT)
            found["drawn"] = time.perf_counter() - started
            started = time.perf_counter()
            with (run / "metrics.jsonl").open("a") as file:
                file.write(report(count))
            page.wait_for_selector(f'section.run[data-reports="{count + 1}"]', timeout=WAIT)
            found["one_more"] = time.perf_counter() - started
            box = page.locator(".chart .u-over").first.bounding_box()
            assert box is not None
            page.mouse.move(box["x"] + 50, box["y"] + 50)
            page.mouse.down()
            page.mouse.move(box["x"] + 250, box["y"] + 60, steps=20)
            page.mouse.up()
            frames = page.evaluate(FRAMES)
            browser.close()
        finally:
            server.terminate()
            server.wait(30)
    print(json.dumps({**{name: round(value, 3) for name, value in found.items()}, "frames_ms": frames}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
