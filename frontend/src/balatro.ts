// Balatro: cards and jokers drawn by us, and how a score comes about, line by line.

import { get, post, type Refused } from "./api";
import { h, say } from "./dom";
import type { Page } from "./main";

interface Run {
  id: string;
  seed: string;
  heading: string;
  phase: string;
  blind: string;
  score: number | null;
  target: number | null;
  over: boolean;
  won: boolean;
  hand: { text: string; suit: string | null; selected: boolean }[];
  jokers: string[];
  consumables: { name: string; action: number }[];
  shelf: string[];
  actions: { action: number; words: string }[];
  account: string[];
  can_take_back: boolean;
}
const KEPT = "alea.balatro";
const STEP_MS = 260; // between two lines of a score

export function balatroPage(name: string, wanted: string): Page {
  const trouble = h("p", { class: "trouble", role: "alert" });
  const table = h("div", { class: "balatro" });
  const account = h("ol", { class: "account", "aria-live": "polite" });
  const tally = h("p", { class: "tally", "aria-hidden": "true" }); // the lines say the same
  const advice = h("p", { class: "quiet" });
  const seed = h("input", { type: "text", name: "seed", maxlength: 8, size: 9, placeholder: "any", autocomplete: "off" });
  const start = h("button", { type: "submit", class: "main" }, "New run");
  const form = h("form", { class: "start" }, h("label", { class: "field" }, h("span", {}, "Seed"), seed), start);
  const element = h("section", { class: "run" }, h("h1", {}, "Balatro, unofficial"), form, trouble, table, advice, tally, account);
  let id = name || (localStorage.getItem(KEPT) ?? "");
  const chosen = new Set<number>();
  let timer = 0;
  let busy = false; // a second click before the answer is none

  async function act(path: string, body: unknown): Promise<void> {
    if (busy) return;
    busy = true;
    try {
      show(await post<Run>(path, body));
      trouble.textContent = "";
    } catch (error) {
      trouble.textContent = (error as Error).message;
    } finally {
      busy = false;
    }
  }
  const take = (what: string, action?: number) => act(`balatro/${id}/act`, { what, cards: [...chosen].sort((a, b) => a - b), action: action ?? null });

  async function hint(): Promise<void> {
    advice.textContent = "Thinking…";
    try {
      const found = await post<{ words: string; cards: number[] }>(`balatro/${id}/hint`);
      advice.textContent = `A baseline would: ${found.words}`;
      say(advice.textContent);
    } catch (error) {
      advice.textContent = (error as Error).message;
    }
  }

  /** The lines of a score, one after the other; all at once for those who want no motion. */
  function tell(lines: string[]): void {
    clearTimeout(timer);
    account.replaceChildren();
    tally.replaceChildren();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const next = (i: number): void => {
      if (i >= lines.length) return;
      const [words, ...numbers] = lines[i].split(/\s{2,}/);
      account.append(h("li", { class: still ? "" : "fresh" }, words, " ", h("b", {}, numbers.join(" "))));
      count(lines[i], still);
      if (still) next(i + 1);
      else timer = window.setTimeout(() => next(i + 1), STEP_MS);
    };
    next(0);
  }

  /** Chips times mult as they grow, from what a line ends with; the score at the end. */
  function count(line: string, still: boolean): void {
    const [, chips, mult] = /([\d.,e+]+) x ([\d.,e+]+)$/.exec(line) ?? [];
    const score = /^score\s+(\S+)/.exec(line)?.[1];
    const part = (kind: string, words: string): HTMLElement => h("span", { class: `${kind}${still ? "" : " fresh"}` }, words);
    if (chips) tally.replaceChildren(part("chips", chips), " × ", part("mult", mult));
    else if (score) tally.append(" = ", part("total", score));
  }

  function card(run: Run, place: number): HTMLElement {
    const one = run.hand[place];
    const red = one.suit === "♥" || one.suit === "♦";
    const button = h("button", { type: "button", class: `card${red ? " red" : ""}`, "aria-pressed": "false", "data-card": place, "aria-label": one.text });
    const [front, ...rest] = one.text.split(" ");
    button.append(h("span", { class: "front" }, front), h("span", { class: "worn" }, rest.join(" ")));
    button.onclick = () => {
      if (chosen.has(place)) chosen.delete(place);
      else chosen.add(place);
      button.setAttribute("aria-pressed", String(chosen.has(place)));
      for (const one of table.querySelectorAll<HTMLButtonElement>("[data-cards]")) one.disabled = !chosen.size;
    };
    return button;
  }

  function show(run: Run): void {
    id = run.id;
    localStorage.setItem(KEPT, id);
    if (location.hash !== `#/balatro/${id}`) history.replaceState(null, "", `#/balatro/${id}`);
    chosen.clear();
    advice.textContent = "";
    const row = (label: string, ...parts: (Node | string)[]): HTMLElement => h("div", { class: "row" }, h("h2", {}, label), h("div", { class: "cards" }, ...parts));
    const parts: HTMLElement[] = [h("p", {}, run.heading), h("p", { class: "status" }, run.over ? (run.won ? "The run is won." : "The run is lost.") : run.blind)];
    if (run.score !== null && run.target !== null) parts.push(h("progress", { max: run.target, value: Math.min(run.score, run.target), "aria-label": "score" }));
    if (run.jokers.length) parts.push(row("Jokers", ...run.jokers.map((joker) => h("span", { class: "joker" }, joker))));
    if (run.consumables.length) parts.push(row("Consumables", ...run.consumables.map((one) => h("button", { type: "button", onclick: () => void take("act", one.action) }, `use ${one.name}`))));
    if (run.hand.length) parts.push(row("Hand", ...run.hand.map((_, place) => card(run, place))));
    if (run.shelf.length) parts.push(row("Shelf", ...run.shelf.map((thing) => h("span", { class: "joker" }, thing))));
    const buttons = h("div", { class: "buttons" });
    if (run.phase === "a blind is being played") {
      buttons.append(...(["play", "discard"] as const).map((what) => h("button", { type: "button", class: what === "play" ? "main" : "", disabled: true, "data-cards": what, onclick: () => void take(what) }, what === "play" ? "Play" : "Discard")));
    }
    for (const offer of run.actions) {
      buttons.append(h("button", { type: "button", "data-action": offer.action, onclick: () => void act(`balatro/${id}/act`, { what: "act", cards: [], action: offer.action }) }, offer.words));
    }
    buttons.append(h("button", { type: "button", disabled: run.over, onclick: () => void hint() }, "Hint"), h("button", { type: "button", disabled: !run.can_take_back, onclick: () => void act(`balatro/${id}/back`, {}) }, "Take back"));
    parts.push(buttons);
    table.replaceChildren(...parts);
    tell(run.account);
    say(run.blind);
  }

  form.onsubmit = (event) => {
    event.preventDefault();
    void act("balatro", { seed: seed.value.trim().toUpperCase() || null });
  };
  if (wanted && !name) {
    seed.value = wanted.slice(0, 8).toUpperCase(); // a link only offers it: the run that is kept stays until a new one is wanted
    advice.textContent = "New run begins the run of this seed.";
  } else if (id) {
    get<Run>(`balatro/${id}`).then(show, (error: Refused) => {
      if (name || error.status !== 404) trouble.textContent = error.message;
      if (error.status === 404 && localStorage.getItem(KEPT) === id) localStorage.removeItem(KEPT);
    });
  }
  return { element, leave: () => clearTimeout(timer) };
}
