"""The page in a real browser: whole games by clicks and drags, keyboard alone, a phone, the dark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Dialog, expect

from aleazero import checkpoint as checkpoints
from aleazero.observe.jsonl import JsonlSink
from aleazero.observe.reports import AlarmReport, HardwareReport, WorkersReport
from aleazero.runs import RunFolder
from tests.web.conftest import PATIENCE, NewPage, Server, make_run, report, serving
from tests.web.pages import (
    NEEDS,
    click_move,
    drag,
    keep,
    place,
    show,
    table,
    until_shown,
    until_version,
    view,
)

pytestmark = NEEDS


def test_a_visitor_begins_a_game_and_it_is_drawn(new_page: NewPage, server: Server) -> None:
    page = new_page()
    page.goto(server.url)
    page.get_by_role("link", name="Tic-tac-toe").click()
    page.get_by_label("Opponent").select_option("solver")
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector("svg.board")
    for own in range(1, 6):
        page.locator(".place.open").first.click()
        expect(page.locator("ol.history li.seat0")).to_have_count(own)
        expect(page.locator(".status")).not_to_contain_text("thinking", timeout=PATIENCE * 1000)
        if page.get_by_role("button", name="New game").count():
            break
    assert page.locator(".status").inner_text().startswith(("The game is over: draw", "You lose"))
    page.get_by_role("button", name="New game").click()
    expect(page.locator("ol.history li")).to_have_count(0)


def test_connect_four_is_won_by_clicks(new_page: NewPage, server: Server, client: httpx.Client) -> None:
    name, page = table(client, "connect_four", ["human", "human"]), new_page()
    show(page, server, name)
    for number, column in enumerate("1213141", 1):
        place(page, column).click()
        until_shown(page, number)
    expect(page.locator(".status")).to_contain_text("X wins")


def test_quoridor_pawns_walk_and_walls_stand(new_page: NewPage, server: Server, client: httpx.Client) -> None:
    name, page = table(client, "quoridor", ["human", "human"]), new_page()
    show(page, server, name)
    box = place(page, "g5h").locator(".area").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    until_shown(page, 1)
    expect(page.locator(".wall")).to_have_count(1)
    moves = 1
    for two, one in zip("dcbabcdcb", range(2, 10), strict=False):
        click_move(page, {"from": view(client, name)["board"]["pawns"][1], "to": f"{two}9", "name": ""})
        until_shown(page, moves := moves + 1)
        click_move(page, {"from": f"e{one - 1}", "to": f"e{one}", "name": ""})
        until_shown(page, moves := moves + 1)
    expect(page.locator(".status")).to_contain_text("Player 1 wins")


def test_chess_is_played_by_drags_and_illegal_ones_are_refused(
    new_page: NewPage, server: Server, client: httpx.Client
) -> None:
    name, page = table(client, "chess", ["human", "human"]), new_page()
    show(page, server, name)
    drag(page, "e2", "e5")
    expect(page.locator("#announce")).to_contain_text("not a legal move")
    drag(page, "e7", "e5")  # not White's
    assert view(client, name)["history"] == []
    for number, (source, target) in enumerate((("f2", "f3"), ("e7", "e5"), ("g2", "g4"), ("d8", "h4")), 1):
        drag(page, source, target)
        until_shown(page, number)
    expect(page.locator(".status")).to_contain_text("Black wins")
    expect(page.locator("ol.history li").last).to_contain_text("Qh4#")
    keep(page, "chess")


def test_a_pawn_becomes_what_is_chosen(new_page: NewPage, server: Server, client: httpx.Client) -> None:
    name = table(client, "chess", ["human", "human"], position="8/P7/8/8/8/8/k6K/8 w - - 0 1")
    page = new_page()
    show(page, server, name)
    click_move(page, {"from": "a7", "to": "a8", "name": ""})
    page.get_by_role("button", name="Knight").click()
    until_shown(page, 1)
    assert view(client, name)["board"]["pieces"][56] == "N"


def test_backgammon_by_clicks_undone_and_ended(new_page: NewPage, server: Server, client: httpx.Client) -> None:
    name, page = (
        table(client, "backgammon", ["human", "random"], seed=5),
        new_page(viewport={"width": 1280, "height": 900}),
    )
    view(client, name)
    show(page, server, name)
    until_shown(page, len(view(client, name)["history"]))
    first = view(client, name)
    click_move(page, first["moves"][0])
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    assert view(client, name)["board"] == first["board"]
    for _ in range(3):
        while not (now := view(client, name))["waits"]:
            expect(page.locator(".status")).to_contain_text("Your move")
            click_move(page, now["moves"][-1])
            until_version(page, now["version"] + 1)
        expect(page.get_by_role("button", name="End turn")).to_be_enabled()
        page.get_by_role("button", name="End turn").click()
        until_shown(page, len(now["history"]) + 2)
    keep(page, "backgammon")


def test_checkers_are_borne_off_to_the_end(new_page: NewPage, server: Server, client: httpx.Client) -> None:
    position = "XGID=-BB" + 20 * "-" + "ba-:0:0:1:64:0:0:0:0:0"
    name, page = table(client, "backgammon", ["human", "human"], position=position, seed=1), new_page()
    show(page, server, name)
    for _ in range(40):
        now = view(client, name)
        if now["over"]:
            break
        if now["waits"]:
            page.get_by_role("button", name="End turn").click()
            until_shown(page, len(now["history"]) + 1)
            continue
        move = now["moves"][0]
        click_move(page, move)
        if sum((other["from"], other["to"]) == (move["from"], move["to"]) for other in now["moves"]) > 1:
            page.locator("dialog.chooser button").first.click()
        until_version(page, now["version"] + 1)
    expect(page.locator(".status")).to_contain_text("wins")


def test_a_game_by_keyboard_alone(new_page: NewPage, server: Server, client: httpx.Client) -> None:
    name, page = table(client, "tictactoe", ["human", "human"]), new_page()
    show(page, server, name)
    page.wait_for_selector(".place.open")
    for number in range(1, 8):
        if view(client, name)["over"]:
            break
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("() => document.activeElement.hasAttribute('data-place')"):
                break
        if number == 1:
            before = page.evaluate("() => document.activeElement.getAttribute('data-place')")
            page.keyboard.press("ArrowRight")
            assert page.evaluate("() => document.activeElement.getAttribute('data-place')") != before
        page.keyboard.press("Enter")
        until_shown(page, number)
    assert view(client, name)["over"]
    page.keyboard.press("u")
    expect(page.locator(".status")).to_contain_text("to move")


SLOW = """
const fast = window.fetch;
window.fetch = async (...asked) => {
  const answer = await fast(...asked);
  if (String(asked[0]).includes("/move")) await new Promise((go) => setTimeout(go, 1500));
  return answer;
};
"""


def test_a_move_is_made_before_the_last_one_was_answered(
    new_page: NewPage, server: Server, client: httpx.Client
) -> None:
    name, page = table(client, "tictactoe", ["human", "human"]), new_page()
    page.add_init_script(SLOW)  # the table is shown by the WebSocket, long before the answer is there
    show(page, server, name)
    for number, square in enumerate(("b2", "a1", "c3"), 1):
        place(page, square).dblclick()  # once too often: that is one move
        until_shown(page, number)
    page.wait_for_timeout(2000)
    expect(page.get_by_role("alert")).to_be_empty()
    assert [turn["name"] for turn in view(client, name)["history"]] == ["b2", "a1", "c3"]


def test_chess_by_keyboard(new_page: NewPage, server: Server, client: httpx.Client) -> None:
    name, page = table(client, "chess", ["human", "human"]), new_page()
    show(page, server, name)
    page.wait_for_selector(".place.movable")
    place(page, "e2").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.getAttribute('data-place')") == "e3"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    until_shown(page, 1)
    assert view(client, name)["history"][0]["name"] == "e4"


def test_every_page_fits_a_phone(new_page: NewPage, server: Server, client: httpx.Client) -> None:
    make_run(server.folder / "runs" / "narrow")
    run = client.post("/api/balatro", json={"seed": "ALEA1234"}).json()["id"]
    page = new_page(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    places = {
        "play/backgammon": "form.start",
        "analyse?game=tictactoe&position=XX./OO./...&player=solver": "table.thought",
        "watch": "table.runs",
        "watch/narrow": ".chart canvas",
        f"balatro/{run}": "progress, .balatro .buttons",
    }
    for where, shown in places.items():
        page.goto(f"{server.url}#/{where}")
        page.wait_for_selector(shown)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 360, where
    show(page, server, name := table(client, "chess", ["human", "human"]))
    for square in ("e2", "e4"):
        place(page, square).tap()
    until_shown(page, 1)
    page.goto(f"{server.url}#/analyse?game=chess&position={view(client, name)['position']}&player=random")
    page.wait_for_selector("svg.board")
    page.get_by_role("button", name="Edit board").tap()
    expect(page.locator(".verdict")).to_have_text("This position is legal.")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything(new_page: NewPage, server: Server, client: httpx.Client, scheme: str) -> None:
    page = new_page(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True, color_scheme=scheme)
    for game in ("backgammon", "chess", "connect_four", "quoridor", "tictactoe"):
        show(page, server, table(client, game, ["human", "human"], seed=3))
        page.wait_for_selector(".status:not(:empty)")
        wide = page.evaluate("() => document.documentElement.scrollWidth")
        assert wide <= 360, game
        keep(page, f"phone-{game}-{scheme}")
    place(page, "b2").tap()
    until_shown(page, 1)
    colours = page.evaluate(
        "() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    lightness = [sum(map(int, colour[4:-1].split(","))) for colour in colours]
    assert (lightness[0] < lightness[1]) == (scheme == "dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_in_colour_can_be_read(new_page: NewPage, server: Server, scheme: str) -> None:
    page = new_page(color_scheme=scheme)
    page.goto(server.url)
    page.wait_for_selector("h1")
    colour = """(name) => {
      const word = Object.assign(document.createElement("span"), { className: name });
      document.body.append(word);
      return [getComputedStyle(word).color, getComputedStyle(document.body).backgroundColor];
    }"""
    for name in ("", "quiet", "trouble", "blunder", "mistake"):
        dark, bright = sorted(brightness(one) for one in page.evaluate(colour, name))
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, name


def brightness(colour: str) -> float:
    """The relative luminance of `rgb(r, g, b)`, as the guidelines for contrast define it."""
    parts = [int(part) / 255 for part in colour[4:-1].split(",")]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_run_is_watched_while_it_grows(new_page: NewPage, server: Server) -> None:
    folder = server.folder / "runs" / "live"
    make_run(folder)
    page = new_page()
    page.goto(f"{server.url}#/watch")
    page.get_by_role("link", name="live").click()
    expect(page.locator("section.run")).to_have_attribute("data-reports", "12")
    expect(page.locator(".chart canvas").first).to_be_visible()
    page.get_by_text("Settings").click()
    expect(page.locator('[data-fact="step"]')).to_have_text("5")
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(report(6))
    expect(page.locator("section.run")).to_have_attribute("data-reports", "14")
    legends = page.locator(".chart", has_text="Score").locator(".u-legend")
    expect(legends).to_contain_text("against random")
    expect(legends).not_to_contain_text("high")
    expect(page.locator('[data-fact="step"]')).to_have_text("6")
    expect(page.locator("details pre")).to_be_visible()  # what is opened stays open, and the focus where it is
    expect(page.get_by_text("Settings")).to_be_focused()
    keep(page, "watch")


def test_alarms_machine_and_workers_of_a_run_are_shown(new_page: NewPage, server: Server) -> None:
    run = RunFolder(server.folder / "runs" / "warned")
    make_run(run.path)
    where = {"step": 5, "rows": 500, "seconds": 5.0}
    busy = dict.fromkeys(("one", "two"), 40.0)
    workers = WorkersReport(
        active={"player": 2, "evaluator": 1},
        queue_rows=0,
        quarantined=0,
        refused={},
        games_per_minute=busy,
        rows_per_second=busy,
        cpu_percent=busy,
        memory_percent=busy,
        gpu_utilization_percent={},
        gpu_memory_percent={},
        gpu_temperature_celsius={},
        gpu_power_watts={},
        **where,
    )
    machine = HardwareReport(
        cpu_percent=61.2,
        process_cpu_percent=90.0,
        memory_percent=37.4,
        memory_used_bytes=2**32,
        process_memory_bytes=2**30,
        gpu_utilization_percent={"0": 83.0},
        gpu_memory_percent={"0": 50.0},
        gpu_temperature_celsius={"0": 60.0},
        gpu_power_watts={"0": 200.0},
        **where,
    )
    metrics, far = JsonlSink(run.metrics_file), JsonlSink(run.workers_file)
    metrics.emit(machine)
    far.emit(workers)
    page = new_page()
    page.goto(f"{server.url}#/watch/warned")
    expect(page.locator('[data-fact="machine"]')).to_have_text("CPU 61 %, memory 37 %, GPU 0 83 %")
    expect(page.locator('[data-fact="workers"]')).to_have_text("2 player, 1 evaluator")
    machine_chart, workers_chart = (page.locator(".chart", has_text=name) for name in ("Machine", "Workers"))
    expect(machine_chart.locator(".u-legend .u-series")).to_have_text(["CPU", "memory", "GPU 0"])
    expect(workers_chart.locator(".u-legend .u-series")).to_have_text(["one", "two"])
    expect(page.locator(".alarm")).to_have_count(0)
    metrics.emit(AlarmReport(level="warn", name="entropy", message="moves are few", setting="learn.entropy", **where))
    alarm = page.locator(".alarm.warn")  # while it is looked at
    expect(alarm).to_have_text("entropy: moves are few (learn.entropy)")
    expect(alarm).to_be_visible()
    for sink in (metrics, far):
        sink.close()
    keep(page, "alarm")


def test_runs_are_compared(new_page: NewPage, server: Server) -> None:
    for name in ("before", "after"):
        make_run(server.folder / "runs" / name)
    page = new_page()
    page.goto(f"{server.url}#/watch")
    for name in ("before", "after"):
        page.get_by_label(f"compare {name}").check()
    make_run(server.folder / "runs" / "newest")
    expect(page.get_by_label("compare newest")).to_be_visible()
    for name in ("before", "after"):
        expect(page.get_by_label(f"compare {name}")).to_be_checked()
    expect(page.get_by_label("compare after")).to_be_focused()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".facts thead th")).to_have_text(["before", "after"])
    expect(page.locator('td[data-fact="rating"]')).to_have_text(["60.0 % against random"] * 2)
    legend = page.locator(".chart", has_text="Score").locator(".u-legend .u-series")
    expect(legend).to_have_count(2)
    expect(page.locator('[data-do="stop"]')).to_have_count(0)


@pytest.fixture
def training(server: Server) -> Generator[subprocess.Popen[bytes], None, None]:
    """A real run that does not end by itself."""
    tiny = {"total_rows": 10**9, "search.kind": "direct", "model.width": 16, "model.blocks": 1}
    tiny |= {"selfplay.num_games": 32, "replay.min_rows": 256, "learn.batch_size": 64, "observe.every_seconds": 0.2}
    tiny |= {"evaluate.every_rows": 10**9}
    command = [
        sys.executable,
        "-m",
        "aleazero.cli.main",
        "train",
        "tictactoe",
        "--preset",
        "quick",
        "--name",
        "trained",
    ]
    command += ["--runs", str(server.folder / "runs"), *(f"--set={key}={value}" for key, value in tiny.items())]
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    with (server.folder / "trained.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    yield process
    process.kill()
    process.wait()


def test_a_run_that_is_trained_is_paused_resumed_and_stopped(
    new_page: NewPage, server: Server, training: subprocess.Popen[bytes]
) -> None:
    page, asked, answers = new_page(), [], [False, True, True, True]

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        if answers.pop(0):
            dialog.accept()
        else:
            dialog.dismiss()

    def reports() -> int:
        return int(page.locator("section.run").get_attribute("data-reports") or 0)

    def grows() -> None:
        known = reports()
        page.wait_for_function(f"() => Number(document.querySelector('section.run').dataset.reports) > {known + 2}")

    page.on("dialog", answer)
    status, said = page.locator('[data-fact="status"]'), page.locator(".said")
    page.goto(f"{server.url}#/watch")
    page.get_by_role("link", name="trained").click()
    expect(status).to_have_text("training")
    grows()
    page.locator('[data-do="stop"]').click()  # and no: nothing happens
    expect(said).to_be_empty()
    grows()
    page.locator('[data-do="pause"]').click()
    expect(said).to_contain_text("the run waits")
    expect(status).to_have_text("paused")
    expect(page.locator('[data-do="pause"]')).to_be_disabled()
    end, known = time.monotonic() + PATIENCE, -1
    while reports() != known:  # the step it was at, and what is on its way to the page
        assert time.monotonic() < end, "it does not pause"
        known = reports()
        page.wait_for_timeout(1500)
    page.locator('[data-do="resume"]').click()
    expect(status).to_have_text("training")
    expect(said).to_contain_text("the run goes on")
    grows()
    page.locator('[data-do="stop"]').click()
    expect(said).to_contain_text("the run stops, with a checkpoint")
    assert training.wait(PATIENCE) == 0
    expect(status).to_have_text("stopped")
    for what in ("pause", "resume", "stop"):
        expect(page.locator(f'[data-do="{what}"]')).to_be_disabled()
    assert asked == [f"{what} run trained?" for what in ("stop", "pause", "resume", "stop")]
    assert checkpoints.steps(RunFolder(server.folder / "runs" / "trained").checkpoints)
    page.get_by_role("button", name="Show games of self-play").click()
    page.locator(".gamelist button").first.click()
    caption, signs = page.locator(".replay p"), page.locator(".replay svg.board .mark")
    expect(caption).to_have_text(re.compile(r"^1 of \d: [a-c][1-3], value "))
    expect(page.locator(".replay .last")).to_have_count(1)  # where the move goes
    expect(signs).to_have_count(0)
    page.get_by_label("Move", exact=True).press("End")
    expect(caption).to_have_text(re.compile(r"^(\d) of \1: [a-c][1-3]"))
    expect(signs).not_to_have_count(0)


def test_a_hint_a_move_taken_back_and_a_game_given_up(new_page: NewPage, server: Server, client: httpx.Client) -> None:
    name, page, answers = (
        table(client, "tictactoe", ["human", "solver"], position="XX./OO./..."),
        new_page(),
        [False, True],
    )
    page.on("dialog", lambda dialog: dialog.accept() if answers.pop(0) else dialog.dismiss())
    show(page, server, name)
    hint, back, resign = (page.get_by_role("button", name=words) for words in ("Hint", "Take back", "Resign"))
    expect(back).to_be_disabled()
    hint.click()
    expect(page.locator(".advice table.thought tbody tr").first).to_contain_text("c3")
    expect(place(page, "c3")).to_have_class(re.compile("hinted"))
    place(page, "c1").click()
    until_shown(page, 2)
    expect(page.locator(".advice table")).to_have_count(0)
    back.click()
    until_shown(page, 0)
    expect(page.locator(".status")).to_contain_text("Your move")
    resign.click()  # and no: nothing happens
    expect(page.locator(".status")).to_contain_text("Your move")
    resign.click()
    expect(page.locator(".status")).to_have_text("You lose (resigned).")
    expect(resign).to_be_disabled()
    back.click()
    expect(page.locator(".status")).to_contain_text("Your move")
    place(page, "c3").click()
    expect(page.locator(".status")).to_have_text("You win.")
    assert answers == []


def test_a_short_match_is_begun_in_the_lobby_and_another_won_by_clicks(
    new_page: NewPage, server: Server, client: httpx.Client
) -> None:
    page = new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{server.url}#/play/backgammon")
    page.get_by_label("Opponent").select_option("random")
    page.locator("label", has_text="one game").get_by_role("combobox").select_option("to 3 points")
    page.get_by_role("button", name="Start").click()
    status, following = page.locator(".status"), page.get_by_role("button", name="Next game")
    expect(status).to_contain_text("Match to 3: X 0, O 0.")
    page.get_by_role("button", name="Resign").click()
    expect(status).to_have_text("You lose (resigned). Match to 3: X 0, O 1.")
    following.click()
    expect(status).to_contain_text("Match to 3: X 0, O 1.")
    expect(page.get_by_role("button", name="Resign")).to_be_enabled()
    # Every game of this match begins with X's last checker and a roll; who has borne off all has won a point.
    position = "XGID=-A" + 22 * "-" + "a-:0:0:1:64:0:0:0:0:0"
    show(page, server, table(client, "backgammon", ["human", "random"], position=position, match_points=3))
    for won in (1, 2, 3):
        place(page, "1").click()
        place(page, "off0").click()
        if page.locator("dialog.chooser").count():
            page.locator("dialog.chooser button").first.click()
        expect(status).to_contain_text(f"Match to 3: X {won}, O 0.")
        expect(status).to_contain_text("You win")
        if won < 3:
            following.click()
            expect(status).to_contain_text("Your move")
    expect(following).to_have_count(0)
    page.get_by_role("button", name="New game").click()
    expect(status).to_contain_text("Match to 3: X 0, O 0.")


def test_a_flag_falls_on_the_page(new_page: NewPage, server: Server, client: httpx.Client) -> None:
    clock = {"seconds": 2, "increment": 0}
    name, page = table(client, "chess", ["human", "human"], clock=clock), new_page()
    show(page, server, name)
    expect(page.locator('[data-clock="1"] .time')).to_have_text("2.0")
    click_move(page, {"from": "e2", "to": "e4", "name": ""})
    expect(page.locator('[data-clock="1"]')).to_have_class(re.compile("running"))
    expect(page.locator(".status")).to_contain_text("White wins (on time)")
    expect(page.locator('[data-clock="1"] .time')).to_have_text("0.0")
    expect(page.locator(".place.movable")).to_have_count(0)


def test_a_page_goes_on_after_the_server_was_killed(browser: Browser, tmp_path: Path) -> None:
    first = Server(tmp_path)
    port = first.url.rstrip("/").rpartition(":")[2]
    context = browser.new_context()
    page = context.new_page()
    with first.client() as client:
        name = table(client, "tictactoe", ["human", "human"])
        show(page, first, name)
        place(page, "b2").click()
        until_shown(page, 1)
    first.kill()
    expect(page.locator(".status")).to_contain_text("connection is lost")
    with serving(tmp_path, port=port):
        expect(page.locator(".status")).to_contain_text("O to move", timeout=PATIENCE * 1000)
        place(page, "a1").click()
        until_shown(page, 2)
    context.close()


def test_balatro_by_clicks_until_the_run_is_lost(new_page: NewPage, server: Server) -> None:
    page = new_page()
    page.goto(f"{server.url}#/balatro")
    page.get_by_role("button", name="New run").click()
    page.get_by_role("button", name="select blind").wait_for()
    own = page.evaluate("() => localStorage.getItem('alea.balatro')")
    page.goto(f"{server.url}#/balatro?seed=alea1234")  # a seed can be shared; the link alone begins nothing
    expect(page.get_by_label("Seed")).to_have_value("ALEA1234")
    expect(page.locator(".balatro")).to_be_empty()
    assert page.evaluate("() => localStorage.getItem('alea.balatro')") == own
    page.goto(f"{server.url}#/balatro/AAAAAAAAAAAAAAAA")
    expect(page.locator(".trouble")).to_contain_text("there is no run")
    assert page.evaluate("() => localStorage.getItem('alea.balatro')") == own
    page.goto(f"{server.url}#/balatro?seed=alea1234")
    page.get_by_role("button", name="New run").click()
    page.get_by_role("button", name="select blind").click()
    expect(page.locator(".card")).to_have_count(8)
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_disabled()  # no card is chosen
    for place_number in (0, 3):
        page.locator(f'[data-card="{place_number}"]').click()
    page.get_by_role("button", name="Play", exact=True).dblclick()  # once is meant
    expect(page.locator(".account li").first).to_be_visible()
    expect(page.locator(".balatro .status")).to_contain_text("hands 3")
    expect(page.locator(".trouble")).to_be_empty()
    expect(page.locator(".tally")).to_contain_text(re.compile(r"\d+ . \d+ = \d+"))  # once all lines have come
    expect(page.locator("progress")).not_to_have_attribute("value", "0")
    keep(page, "balatro")
    page.locator('[data-card="7"]').click()
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(".balatro .status")).to_contain_text("discards 3")
    page.get_by_role("button", name="Take back").click()
    expect(page.locator(".balatro .status")).to_contain_text("discards 4")
    for hands in (2, 1, None):  # a card at a time is too little
        page.locator('[data-card="7"]').click()
        page.get_by_role("button", name="Play", exact=True).click()
        expect(page.locator(".balatro .status")).to_contain_text(f"hands {hands}" if hands else "The run is lost.")
    expect(page.get_by_role("button", name="Hint")).to_be_disabled()


def test_a_whole_game_of_backgammon_by_clicks(new_page: NewPage, server: Server, client: httpx.Client) -> None:
    name, page = table(client, "backgammon", ["human", "random"], seed=2), new_page()
    show(page, server, name)
    for _ in range(2000):
        now = view(client, name)
        until_version(page, now["version"])
        if now["over"]:
            break
        if now["waits"]:
            page.get_by_role("button", name="End turn").click()
        else:
            move = max(now["moves"], key=lambda one: (one["to"] or "").startswith("off"))
            click_move(page, move)
            same = [one for one in now["moves"] if (one["from"], one["to"]) == (move["from"], move["to"])]
            if len(same) > 1 and move["to"]:
                page.locator("dialog.chooser button").first.click()
        until_version(page, now["version"] + 1)
    expect(page.locator(".status")).to_contain_text("You ")
    assert sum(view(client, name)["board"]["off"]) >= 15
