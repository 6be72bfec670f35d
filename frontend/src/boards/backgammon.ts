// Backgammon: 24 points, the bar, what is borne off, dice.

import { s } from "../dom";
import type { Drawing, Place } from "../interact";
import type { Look } from "./index";

interface Backgammon {
  points: number[];
  bar: number[];
  off: number[];
  pips: number[];
  left: number[];
}
const COLUMN = 70;
const BAR = 64;
const TRAY = 86;
const HEIGHT = 720;
const WIDTH = 12 * COLUMN + BAR + TRAY;
const RADIUS = 31;
const MIDDLE = 6 * COLUMN + BAR / 2;
const SEATS = ["X", "O"];

export function backgammon(board: Backgammon, look: Look): Drawing {
  const svg = s("svg", { viewBox: `-4 -26 ${WIDTH + 8} ${HEIGHT + 52}`, class: "board backgammon", role: "group", "aria-label": "Backgammon board" });
  const places = new Map<string, Place>();
  const pieces = new Map<string, SVGElement>();
  const hits: SVGElement[] = [];
  const viewer = look.flip ? 1 : 0;
  svg.append(s("rect", { x: 0, y: 0, width: WIDTH, height: HEIGHT, rx: 10, class: "frame" }));
  svg.append(s("rect", { x: 6 * COLUMN, y: 0, width: BAR, height: HEIGHT, class: "barstrip" }));
  svg.append(s("rect", { x: 12 * COLUMN + BAR, y: 0, width: TRAY, height: HEIGHT, rx: 10, class: "tray" }));

  function stack(x: number, edge: number, way: number, count: number, seat: number, id: string): void {
    const gap = Math.min(2 * RADIUS - 2, count > 1 ? 250 / (count - 1) : 60);
    for (let i = 0; i < count; i++) {
      const y = edge + way * (RADIUS + 2 + i * gap);
      const checker = s("g", { class: `checker seat${seat}`, "data-x": x, "data-y": y }, s("circle", { cx: x, cy: y, r: RADIUS }), s("circle", { cx: x, cy: y, r: RADIUS - 9, class: "inner" }));
      if (i === count - 1 && count > 5) checker.append(s("text", { x, y: y + 8 }, count));
      svg.append(checker);
      pieces.set(id, checker);
    }
  }
  function place(id: string, x: number, y: number, width: number, height: number, label: string): void {
    const hit = s("rect", { x, y, width, height, rx: 8, class: "place", "data-place": id, "aria-label": label });
    hits.push(hit);
    places.set(id, { id, hit, x: x + width / 2, y: y + height / 2, label });
  }

  for (let local = 1; local <= 24; local++) {
    const point = viewer === 0 ? local : 25 - local;
    const low = local <= 12;
    const column = low ? 12 - local : local - 13;
    const x = column * COLUMN + COLUMN / 2 + (column >= 6 ? BAR : 0);
    const edge = low ? HEIGHT : 0;
    const tip = low ? HEIGHT - 290 : 290;
    svg.append(s("path", { d: `M${x - COLUMN / 2 + 3} ${edge} L${x + COLUMN / 2 - 3} ${edge} L${x} ${tip} Z`, class: `point ${local % 2 ? "odd" : "even"}` }));
    svg.append(s("text", { x, y: low ? HEIGHT + 20 : -8, class: "coordinate" }, local));
    const held = board.points[point - 1];
    const id = String(point);
    if (held) stack(x, edge, low ? -1 : 1, Math.abs(held), held > 0 ? 0 : 1, id);
    const who = held ? `${Math.abs(held)} ${SEATS[held > 0 ? 0 : 1]} checker${Math.abs(held) > 1 ? "s" : ""}` : "empty";
    place(id, x - COLUMN / 2 + 1, low ? HEIGHT / 2 + 30 : 2, COLUMN - 2, HEIGHT / 2 - 32, `point ${local}, ${who}`);
  }
  for (const seat of [0, 1]) {
    const low = seat === viewer;
    const bar = `bar${seat}`;
    const held = board.bar[seat];
    if (held) stack(MIDDLE, HEIGHT / 2 + (low ? 40 : -40), low ? 1 : -1, held, seat, bar);
    place(bar, 6 * COLUMN + 1, low ? HEIGHT / 2 + 30 : 2, BAR - 2, HEIGHT / 2 - 32, `bar, ${held} ${SEATS[seat]} checkers`);
    const left = 12 * COLUMN + BAR;
    for (let i = 0; i < board.off[seat]; i++) {
      const y = low ? HEIGHT - 20 - 20 * i : 4 + 20 * i;
      svg.append(s("rect", { x: left + 10, y, width: TRAY - 20, height: 16, rx: 4, class: `borne seat${seat}` }));
    }
    place(`off${seat}`, left + 2, low ? HEIGHT / 2 + 30 : 2, TRAY - 4, HEIGHT / 2 - 32, `off, ${board.off[seat]} ${SEATS[seat]} checkers`);
    svg.append(s("text", { x: left + TRAY / 2, y: low ? HEIGHT + 20 : -8, class: "coordinate" }, `${SEATS[seat]} ${board.pips[seat]}`));
  }
  dice(svg, board, look, viewer);
  svg.append(...hits);
  return { svg, places, piece: (id) => pieces.get(id) ?? null };
}

const SPOTS: Record<number, [number, number][]> = {
  1: [[0, 0]],
  2: [[-1, -1], [1, 1]],
  3: [[-1, -1], [0, 0], [1, 1]],
  4: [[-1, -1], [1, -1], [-1, 1], [1, 1]],
  5: [[-1, -1], [1, -1], [0, 0], [-1, 1], [1, 1]],
  6: [[-1, -1], [1, -1], [-1, 0], [1, 0], [-1, 1], [1, 1]],
};

function dice(svg: SVGSVGElement, board: Backgammon, look: Look, viewer: number): void {
  const rolled = (look.chance.match(/^[1-6]{2}/)?.[0] ?? "").split("").map(Number);
  if (!rolled.length) return;
  const all = rolled[0] === rolled[1] ? [rolled[0], rolled[0], rolled[0], rolled[0]] : rolled;
  const left = [...board.left];
  const middle = look.toPlay === viewer ? 9 * COLUMN + BAR : 3 * COLUMN;
  all.forEach((die, i) => {
    const place = left.indexOf(die);
    if (place >= 0) left.splice(place, 1);
    const x = middle + (i - (all.length - 1) / 2) * 62;
    const group = s("g", { class: `die seat${look.toPlay}${place < 0 ? " used" : ""}`, role: "img", "aria-label": `die ${die}${place < 0 ? ", played" : ""}` });
    group.append(s("rect", { x: x - 26, y: HEIGHT / 2 - 26, width: 52, height: 52, rx: 9 }));
    for (const [dx, dy] of SPOTS[die]) group.append(s("circle", { cx: x + 14 * dx, cy: HEIGHT / 2 + 14 * dy, r: 5 }));
    svg.append(group);
  });
}
