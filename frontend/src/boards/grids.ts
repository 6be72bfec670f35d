// Tic-tac-toe and Connect Four.

import { s } from "../dom";
import type { Drawing, Place } from "../interact";

export function tictactoe(board: { cells: string }): Drawing {
  const svg = s("svg", { viewBox: "0 0 300 300", class: "board tictactoe", role: "group", "aria-label": "Tic-tac-toe board" });
  const places = new Map<string, Place>();
  for (const at of [100, 200]) {
    svg.append(s("line", { x1: at, y1: 12, x2: at, y2: 288, class: "rule" }), s("line", { x1: 12, y1: at, x2: 288, y2: at, class: "rule" }));
  }
  [...board.cells].forEach((mark, number) => {
    const [row, column] = [Math.floor(number / 3), number % 3];
    const [x, y] = [50 + 100 * column, 50 + 100 * row];
    if (mark === "X") svg.append(s("path", { d: `M${x - 28} ${y - 28}L${x + 28} ${y + 28}M${x + 28} ${y - 28}L${x - 28} ${y + 28}`, class: "mark x" }));
    if (mark === "O") svg.append(s("circle", { cx: x, cy: y, r: 30, class: "mark o" }));
    const id = "abc"[column] + "321"[row];
    const label = `${id}, ${mark === "." ? "empty" : mark}`;
    const hit = s("rect", { x: x - 46, y: y - 46, width: 92, height: 92, rx: 8, class: "place", "data-place": id, "aria-label": label });
    svg.append(hit);
    places.set(id, { id, hit, x, y, label });
  });
  return { svg, places, piece: () => null };
}

export function connectFour(board: { rows: string[] }): Drawing {
  const svg = s("svg", { viewBox: "0 0 700 640", class: "board connectfour", role: "group", "aria-label": "Connect Four board" });
  const places = new Map<string, Place>();
  svg.append(s("rect", { x: 0, y: 40, width: 700, height: 600, rx: 18, class: "frame" }));
  board.rows.forEach((row, y) =>
    [...row].forEach((mark, x) => {
      const kind = mark === "X" ? "disc first" : mark === "O" ? "disc second" : "hole";
      svg.append(s("circle", { cx: 50 + 100 * x, cy: 90 + 100 * y, r: 40, class: kind }));
      if (mark === "O") svg.append(s("circle", { cx: 50 + 100 * x, cy: 90 + 100 * y, r: 24, class: "ring" }));
    }),
  );
  for (let column = 1; column <= 7; column++) {
    const x = 100 * column - 50;
    const held = board.rows.filter((row) => row[column - 1] !== ".").length;
    const label = `column ${column}, ${held} of 6 filled`;
    svg.append(s("text", { x, y: 28, class: "coordinate" }, column));
    const id = String(column);
    const hit = s("rect", { x: x - 49, y: 2, width: 98, height: 636, rx: 14, class: "place", "data-place": id, "aria-label": label });
    svg.append(hit);
    places.set(id, { id, hit, x, y: 320, label });
  }
  return { svg, places, piece: () => null };
}
