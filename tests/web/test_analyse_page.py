"""The page's analysis in a real browser: positions from texts and from the editor, search trees, whole games."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from aleazero.engines.stockfish import DEBIAN_PLACE
from tests.web.conftest import PATIENCE, NewPage, Server
from tests.web.pages import NEEDS, keep, place

pytestmark = NEEDS
MATCH = """ 3 point match

 Game 1
 one : 0                        two : 0
  1) 31: 8/5 6/5                64: 24/14
  2) 61: 13/7 6/5

 Game 2
 one : 0                        two : 1
  1)                            42: 8/4 6/4
  2) 55: 13/3(2)
"""


def edit(page: Page, server: Server, game: str, position: str, player: str) -> None:
    page.goto(f"{server.url}#/analyse?game={game}&position={position}&player={player}")
    page.wait_for_selector("svg.board")
    page.get_by_role("button", name="Edit board").click()
    page.wait_for_selector(".editor")


def choose(page: Page, piece: str) -> None:
    page.locator(f'.palette [data-piece="{piece}"]').click()


def test_a_position_is_analysed_and_shared(new_page: NewPage, server: Server) -> None:
    page = new_page()
    page.goto(f"{server.url}#/analyse?game=tictactoe&position=XX./OO./...&player=solver")
    expect(page.locator("table.thought tbody tr").first).to_contain_text("c3")
    page.get_by_role("button", name="c3", exact=True).click()
    expect(page.locator("textarea[name=position]")).to_have_value("XXX/OO./...")
    page.locator("textarea[name=position]").fill("nonsense")
    page.get_by_role("button", name="Analyse").click()
    expect(page.get_by_role("alert").first).to_contain_text("nonsense")


def test_a_chess_position_is_edited_and_what_is_wrong_is_said(new_page: NewPage, server: Server) -> None:
    page = new_page()
    edit(page, server, "chess", "4k3/8/8/8/8/8/8/4K3 w - - 0 1", "random")
    verdict = page.locator(".verdict")
    expect(verdict).to_have_text("This position is legal.")
    choose(page, "k")
    place(page, "a1").click()
    expect(verdict).to_contain_text("Black has 2 kings")
    expect(page.get_by_role("button", name="Use this position")).to_be_disabled()
    place(page, "a1").click()  # the same piece again takes it away
    choose(page, "P")
    place(page, "h8").click()
    expect(verdict).to_contain_text("pawn on h8")
    choose(page, ".")
    place(page, "h8").click()
    choose(page, "Q")
    place(page, "e4").press("Enter")  # by keyboard
    expect(verdict).to_contain_text("Black is in check with White to move")
    page.get_by_label("To move").select_option("b")
    expect(verdict).to_have_text("This position is legal.")
    keep(page, "editor-chess")
    page.get_by_role("button", name="Use this position").click()
    expect(page.locator("textarea[name=position]")).to_have_value("4k3/8/8/8/4Q3/8/8/4K3 b - - 0 1")
    expect(page.locator(".editor")).to_have_count(0)


def test_a_backgammon_position_is_edited_from_an_empty_board(new_page: NewPage, server: Server) -> None:
    page = new_page()
    edit(page, server, "backgammon", "4HPwATDgc/ABMA:31", "bundled,ply=0")
    verdict = page.locator(".verdict")
    page.get_by_role("button", name="Clear board").click()
    expect(verdict).to_contain_text("has won")
    choose(page, "X")
    for _ in range(2):
        place(page, "3").click()
    place(page, "bar0").click()
    choose(page, "O")
    for _ in range(16):
        place(page, "20").click()
    place(page, "bar1").click()
    expect(verdict).to_contain_text("O has 16 checkers")
    choose(page, ".")
    for _ in range(14):
        place(page, "20").click()
    page.get_by_label("To play").select_option("1")
    page.get_by_label("First die").select_option("6")
    page.get_by_label("Second die").select_option("2")
    expect(verdict).to_have_text("This position is legal.")
    page.get_by_role("button", name="Use this position").click()
    expected = "XGID=a--B" + 16 * "-" + "a" + 4 * "-" + "A:0:0:1:62:0:0:0:0:0"
    expect(page.locator("textarea[name=position]")).to_have_value(expected)
    expect(page.locator("table.thought tbody tr").first).to_contain_text("bar/")


def test_the_small_boards_are_edited_too(new_page: NewPage, server: Server) -> None:
    page = new_page()
    edit(page, server, "tictactoe", "X../.../...", "solver")
    choose(page, "O")
    place(page, "b2").click()
    place(page, "c1").click()
    expect(page.locator(".verdict")).to_contain_text("cannot arise")
    place(page, "c1").click()
    page.get_by_role("button", name="Use this position").click()
    expect(page.locator("textarea[name=position]")).to_have_value("X../.O./...")
    edit(page, server, "connect_four", "44", "random")
    choose(page, "X")
    place(page, "1").click()
    page.get_by_role("button", name="Use this position").click()
    expect(page.locator("textarea[name=position]")).to_have_value("......./" * 4 + "...O.../X..X...")
    edit(page, server, "quoridor", "e1 e9 10 10 - 1", "random")
    choose(page, "wall")
    place(page, "e3h").locator(".area").click()
    expect(page.locator(".verdict")).to_contain_text("the sum must be 20")
    page.get_by_label("Walls left, player 1").select_option("9")
    page.get_by_role("button", name="Use this position").click()
    expect(page.locator("textarea[name=position]")).to_have_value("e1 e9 9 10 e3h 1")


def test_what_is_expected_to_follow_stands_below_a_move(new_page: NewPage, server: Server) -> None:
    page = new_page()
    page.goto(f"{server.url}#/analyse?game=tictactoe&position=XO./.../...&player=solver")
    first = page.locator("table.thought tbody tr").first
    expect(first.locator(".line > span:not(.unseen)")).to_have_count(4)  # the first move, and X wins at the third
    expect(page.get_by_role("button", name="Search tree")).to_be_visible()  # somebody is named, who may have one
    page.locator("input[name=player]").fill("")
    expect(page.get_by_role("button", name="Search tree")).to_be_hidden()
    page.goto(f"{server.url}#/analyse?game=quoridor&position=")
    expect(page.locator(".opinion")).to_contain_text("shortest:walls would play")
    expect(page.locator("table.thought th")).to_have_text(["", "move"])


@pytest.mark.skipif(not DEBIAN_PLACE.exists(), reason="Debian's stockfish is not installed")
def test_chess_from_a_fen_and_a_pgn(new_page: NewPage, server: Server) -> None:
    page = new_page()
    page.goto(f"{server.url}#/analyse?game=chess&position=6k1/5ppp/8/8/8/8/2r2PPP/1R4K1 w - - 0 1")
    first = page.locator("table.thought tbody tr").first
    expect(first.locator("button")).to_have_text("Rb8+")
    expect(first.locator(".line")).to_contain_text("Rc8 Rxc8#")
    expect(first.locator(".outcomes")).to_have_attribute("aria-label", "win 100.0 %, draw 0.0 %, loss 0.0 %")
    page.locator("textarea[name=record]").fill('[White "Fool"]\n[Black "Scholar"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n')
    page.get_by_role("button", name="Review game").click()
    expect(page.locator(".review ol li")).to_have_count(4)
    expect(page.locator(".review .blunder").last).to_contain_text("g4 blunder")
    expect(page.locator(".review ul")).to_contain_text("Fool: 2 decisions")
    page.locator(".review ol button").nth(3).click()
    expect(first.locator("button")).to_have_text("Qh4#")


def test_a_search_tree_is_a_picture_that_opens(new_page: NewPage, server: Server) -> None:
    page = new_page()
    page.goto(f"{server.url}#/analyse?game=backgammon&position=4HPwATDgc/ABMA:31&player=bundled,ply=0")
    page.wait_for_selector("table.thought")
    page.get_by_role("button", name="Search tree").click()
    nodes = page.locator(".tree [role=treeitem]")
    expect(nodes).to_have_count(4)  # the position and three plays
    expect(page.locator(".tree path.chance")).to_have_count(3)
    nodes.nth(1).click()
    expect(nodes).to_have_count(25)
    expect(nodes.nth(1)).to_have_attribute("aria-expanded", "true")
    expect(nodes.nth(2)).to_have_attribute("aria-label", re.compile(r"^\d\d: .\d\.\d+, .*(2\.8|5\.6) %"))
    keep(page, "tree")
    page.keyboard.press("ArrowLeft")
    expect(nodes).to_have_count(4)


def test_a_rollout_ends_with_intervals(new_page: NewPage, server: Server) -> None:
    page = new_page()
    position = "XGID=-B----B-A--------a-----ba-:0:0:1:21:0:0:0:0:0"  # few checkers, on their way home: short games
    page.goto(f"{server.url}#/analyse?game=backgammon&position={position}&player=bundled,ply=0")
    values = page.locator("table.thought tbody td.number:nth-child(3)")
    much = 3000 * PATIENCE  # ms: rollouts are compiled
    expect(values.first).to_have_text(re.compile(r"^\S\d\.\d{3}$"), timeout=much)
    page.get_by_role("button", name="Roll out").click()
    expect(values.first).to_have_text(re.compile(r"^\S\d\.\d{3} ±0\.\d{3}$"), timeout=much)
    shown = values.all_inner_texts()
    assert len(shown) > 1
    assert all(re.search(r"±0\.\d{3}$", text) for text in shown)
    assert any(not text.endswith("±0.000") for text in shown)


def test_a_match_from_a_file_is_reviewed_game_by_game(new_page: NewPage, server: Server, tmp_path: Path) -> None:
    file, page = tmp_path / "match.mat", new_page()
    file.write_text(MATCH)
    page.goto(f"{server.url}#/analyse?game=backgammon&position=&player=bundled,ply=0")
    page.wait_for_selector("table.thought")
    page.get_by_label("A game from a file").set_input_files(file)
    expect(page.locator("textarea[name=record]")).to_have_value(MATCH)
    page.get_by_role("button", name="Review game").click()
    expect(page.locator(".review ol li")).to_have_count(3)
    expect(page.locator(".review ul li").first).to_contain_text("one: 2 decisions")
    page.get_by_label("Game of the match").select_option("2")
    expect(page.locator(".review ol li")).to_have_count(2)
    page.get_by_role("button", name="55: 13/3(2)").click()
    expect(page.locator("table.thought tbody tr").first).to_be_visible()
