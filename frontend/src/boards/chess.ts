// Chess: pieces from a few shapes of our own.

import { s } from "../dom";
import type { Drawing, Place } from "../interact";
import type { Look } from "./index";

const NAMES: Record<string, string> = { p: "pawn", n: "knight", b: "bishop", r: "rook", q: "queen", k: "king" };
// Drawn in a box of 100 by 100, standing on y = 88.
const BASE = "M22 88 L24 78 Q50 70 76 78 L78 88 Z";
const SHAPES: Record<string, string[]> = {
  p: ["M34 76 Q44 60 40 48 L60 48 Q56 60 66 76 Z", "M50 22 a14 14 0 1 1 -0.1 0 Z", BASE],
  r: ["M32 74 L35 44 L65 44 L68 74 Z", "M28 44 L28 22 L38 22 L38 30 L45 30 L45 22 L55 22 L55 30 L62 30 L62 22 L72 22 L72 44 Z", BASE],
  n: ["M34 76 Q34 58 48 48 L34 50 L26 44 L40 24 L44 14 L52 22 Q76 30 70 76 Z", BASE],
  b: ["M36 76 Q44 66 42 58 L58 58 Q56 66 64 76 Z", "M50 18 Q72 38 60 58 L40 58 Q28 38 50 18 Z", "M50 8 a6 6 0 1 1 -0.1 0 Z", BASE],
  q: ["M30 76 L20 34 L36 52 L42 24 L50 50 L58 24 L64 52 L80 34 L70 76 Z", "M20 26 a5 5 0 1 1 -0.1 0 Z", "M42 15 a5 5 0 1 1 -0.1 0 Z", "M58 15 a5 5 0 1 1 -0.1 0 Z", "M80 26 a5 5 0 1 1 -0.1 0 Z", BASE],
  k: ["M32 76 Q14 54 30 42 Q44 36 50 52 Q56 36 70 42 Q86 54 68 76 Z", "M46 36 L46 26 L38 26 L38 18 L46 18 L46 10 L54 10 L54 18 L62 18 L62 26 L54 26 L54 36 Z", BASE],
};

export function piece(letter: string, x: number, y: number): SVGElement {
  const side = letter === letter.toUpperCase() ? "white" : "black";
  const drawn = s("g", { class: `piece ${side}`, transform: `translate(${x - 50} ${y - 50})`, "data-x": x, "data-y": y });
  for (const d of SHAPES[letter.toLowerCase()]) drawn.append(s("path", { d }));
  return drawn;
}

export function chess(board: { pieces: string; check: string | null }, look: Look): Drawing {
  const svg = s("svg", { viewBox: "-28 -4 832 832", class: "board chess", role: "group", "aria-label": "Chess board" });
  const places = new Map<string, Place>();
  const pieces = new Map<string, SVGElement>();
  const hits: SVGElement[] = [];
  [...board.pieces].forEach((letter, number) => {
    const [column, row] = [number % 8, Math.floor(number / 8)];
    const x = 50 + 100 * (look.flip ? 7 - column : column);
    const y = 50 + 100 * (look.flip ? row : 7 - row);
    const id = "abcdefgh"[column] + (row + 1);
    const shade = (column + row) % 2 ? "light" : "dark";
    svg.append(s("rect", { x: x - 50, y: y - 50, width: 100, height: 100, class: `square ${shade}${board.check === id ? " check" : ""}` }));
    const words = letter === "." ? "empty" : `${letter === letter.toUpperCase() ? "white" : "black"} ${NAMES[letter.toLowerCase()]}`;
    const label = `${id}, ${words}`;
    if (letter !== ".") pieces.set(id, piece(letter, x, y));
    const hit = s("rect", { x: x - 48, y: y - 48, width: 96, height: 96, rx: 6, class: "place", "data-place": id, "aria-label": label });
    hits.push(hit);
    places.set(id, { id, hit, x, y, label });
  });
  for (let i = 0; i < 8; i++) {
    svg.append(s("text", { x: 50 + 100 * i, y: 824, class: "coordinate" }, "abcdefgh"[look.flip ? 7 - i : i]));
    svg.append(s("text", { x: -14, y: 58 + 100 * i, class: "coordinate" }, look.flip ? i + 1 : 8 - i));
  }
  svg.append(...pieces.values(), ...hits);
  return { svg, places, piece: (place) => pieces.get(place) ?? null };
}
