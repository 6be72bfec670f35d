// What a player thinks of a position, as a table with bars.

import type { Step, Thought } from "./api";
import { h, percent, signed } from "./dom";

/** Chances of outcomes as one bar, wins from the left. */
export function bar(outcomes: string[], chances: number[]): HTMLElement {
  const words = outcomes.map((name, i) => `${name} ${percent(chances[i])}`).join(", ");
  const element = h("div", { class: "outcomes", role: "img", "aria-label": words, title: words });
  const half = outcomes.length / 2;
  const total = chances.reduce((sum, chance) => sum + chance, 0) || 1;
  // The best win at the left end, the worst loss at the right one.
  const order = outcomes.length === 6 ? [2, 1, 0, 3, 4, 5] : outcomes.map((_, i) => i);
  for (const i of order) {
    const middle = outcomes.length % 2 === 1 && i === Math.floor(half);
    const part = h("span", { class: middle ? "draw" : i < half ? `win w${i}` : `loss l${i - Math.ceil(half)}` });
    part.style.flexGrow = String(chances[i] / total);
    element.append(part);
  }
  return element;
}

export function thoughtTable(thought: Thought, point: (steps: Step[]) => void, choose?: (actions: number[]) => void): HTMLElement {
  const best = thought.moves[0]?.value ?? null;
  const searched = thought.moves.some((move) => move.visits !== null);
  const chosen = thought.kind === "choice"; // by who knows no value
  const head = ["", "move", ...(chosen ? [] : ["value", "behind"]), ...(searched ? ["visits", "prior"] : []), ...(thought.moves[0]?.chances ? ["chances"] : [])];
  const table = h("table", { class: "thought" }, h("thead", {}, h("tr", {}, ...head.map((word) => h("th", { scope: "col" }, word)))));
  const body = h("tbody");
  thought.moves.forEach((move, i) => {
    const behind = best !== null && move.value !== null && i > 0 ? signed(move.value - best) : "";
    const name = choose
      ? h("button", { type: "button", class: "link", onclick: () => choose(move.actions) }, move.name)
      : h("span", {}, move.name);
    const value = signed(move.value) + (move.error !== null ? ` ±${(1.96 * move.error).toFixed(3)}` : "");
    const row = h("tr", { onmouseenter: () => point(move.steps), onfocusin: () => point(move.steps) });
    const follows = move.line.length > 0 && h("span", { class: "line" }, h("span", { class: "unseen" }, "then "), ...move.line.flatMap((one) => [h("span", {}, one), " "]));
    row.append(h("td", {}, i + 1), h("td", {}, name, follows));
    if (!chosen) row.append(h("td", { class: "number" }, value), h("td", { class: "number" }, behind));
    if (searched) row.append(h("td", { class: "number" }, move.visits ?? ""), h("td", { class: "number" }, move.prior === null ? "" : percent(move.prior)));
    if (thought.moves[0]?.chances) row.append(h("td", {}, move.chances ? bar(thought.outcomes, move.chances) : ""));
    body.append(row);
  });
  table.append(body);
  const whole = h("div", { class: "opinion" }, h("p", { class: "quiet" }, chosen ? `${thought.player} would play` : `${thought.player}: ${signed(thought.value)} points expected for the player to move`));
  if (thought.chances && thought.outcomes.length) whole.append(bar(thought.outcomes, thought.chances));
  whole.append(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Ranked moves" }, table));
  return whole;
}
