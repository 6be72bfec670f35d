// Quoridor: squares with gaps between them, where walls lie.

import { s } from "../dom";
import type { Drawing, Place } from "../interact";
import type { Look } from "./index";

const CELL = 60;
const GAP = 16;
const PITCH = CELL + GAP;
const SIZE = 9 * CELL + 8 * GAP;
const EDGE = 26;

export function quoridor(board: { pawns: string[]; walls: string[]; left: number[] }, look: Look): Drawing {
  const svg = s("svg", { viewBox: `${-EDGE} -34 ${SIZE + 2 * EDGE} ${SIZE + 84}`, class: "board quoridor", role: "group", "aria-label": "Quoridor board" });
  const places = new Map<string, Place>();
  const pieces = new Map<string, SVGElement>();
  const corner = (column: number, row: number): [number, number] =>
    look.flip ? [(8 - column) * PITCH, row * PITCH] : [column * PITCH, (8 - row) * PITCH];

  for (let row = 0; row < 9; row++) {
    for (let column = 0; column < 9; column++) {
      const [x, y] = corner(column, row);
      const goal = row === 8 ? " goal0" : row === 0 ? " goal1" : "";
      svg.append(s("rect", { x, y, width: CELL, height: CELL, rx: 6, class: "square" + goal }));
    }
    const [x, y] = corner(row, row);
    svg.append(s("text", { x: x + CELL / 2, y: SIZE + 20, class: "coordinate" }, "abcdefghi"[row]));
    svg.append(s("text", { x: -EDGE / 2 - 1, y: y + CELL / 2 + 6, class: "coordinate" }, row + 1));
  }
  const wallBox = (name: string): [number, number, number, number] => {
    const [ax, ay] = corner("abcdefgh".indexOf(name[0]), Number(name[1]) - 1);
    const [bx, by] = corner("abcdefgh".indexOf(name[0]) + 1, Number(name[1]));
    const [x, y] = [Math.min(ax, bx), Math.min(ay, by)];
    return name[2] === "h" ? [x, y + CELL, 2 * CELL + GAP, GAP] : [x + CELL, y, GAP, 2 * CELL + GAP];
  };
  for (const wall of board.walls) {
    const [x, y, width, height] = wallBox(wall);
    svg.append(s("rect", { x: x + 1, y: y + 1, width: width - 2, height: height - 2, rx: 5, class: "wall" }));
  }
  board.pawns.forEach((square, seat) => {
    const [x, y] = corner("abcdefghi".indexOf(square[0]), Number(square[1]) - 1);
    const [cx, cy] = [x + CELL / 2, y + CELL / 2];
    const pawn = s("g", { class: `pawn seat${seat}`, "data-x": cx, "data-y": cy }, s("circle", { cx, cy, r: 22 }), s("text", { x: cx, y: cy + 7 }, seat + 1));
    pieces.set(square, pawn);
    svg.append(pawn);
  });
  for (let row = 0; row < 9; row++)
    for (let column = 0; column < 9; column++) {
      const [x, y] = corner(column, row);
      const id = "abcdefghi"[column] + (row + 1);
      const seat = board.pawns.indexOf(id);
      const label = seat >= 0 ? `${id}, pawn of player ${seat + 1}` : id;
      const hit = s("rect", { x, y, width: CELL, height: CELL, rx: 6, class: "place", "data-place": id, "aria-label": label });
      svg.append(hit);
      places.set(id, { id, hit, x: x + CELL / 2, y: y + CELL / 2, label });
    }
  for (const way of "hv")
    for (let row = 0; row < 8; row++)
      for (let column = 0; column < 8; column++) {
        const id = "abcdefgh"[column] + (row + 1) + way;
        const [x, y, width, height] = wallBox(id);
        const label = `${way === "h" ? "lying" : "standing"} wall ${id}`;
        // The first half of the wall is where it is clicked: every gap beside a square then means one wall.
        const first = way === "h" ? { x: look.flip ? x + PITCH : x, y, width: CELL, height } : { x, y: look.flip ? y : y + PITCH, width, height: CELL };
        const shown = s("rect", { x: x + 1, y: y + 1, width: width - 2, height: height - 2, rx: 5, class: "wallmark" });
        const area = s("rect", { ...first, class: "area" });
        const hit = s("g", { class: "place wallplace", "data-place": id, "aria-label": label }, shown, area);
        svg.append(hit);
        places.set(id, { id, hit, x: x + width / 2, y: y + height / 2, label });
      }
  const [near, far] = look.flip ? [1, 0] : [0, 1];
  svg.append(s("text", { x: SIZE / 2, y: -12, class: "caption" }, `player ${far + 1}: ${board.left[far]} walls`));
  svg.append(s("text", { x: SIZE / 2, y: SIZE + 42, class: "caption" }, `player ${near + 1}: ${board.left[near]} walls`));
  return { svg, places, piece: (place) => pieces.get(place) ?? null };
}
