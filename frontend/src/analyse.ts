// Analysing: a position from a text or the board, what a player thinks of it; all of it in the address, to be shared.

import { games, post, type Thought } from "./api";
import { draw } from "./boards";
import { h, percent, select, signed } from "./dom";
import { interact } from "./interact";
import type { Page } from "./main";
import { TITLES } from "./play";
import { thoughtTable } from "./thought";

interface Shown {
  game: string;
  board: any;
  chance: string;
  to_play: number;
  moves: any[];
  position: string;
}

interface Node {
  name: string;
  prior: number | null;
  visits: number;
  value: number;
  chance: boolean;
  children: Node[];
}
interface Grown {
  root: Node;
  line: string[];
}
interface Review {
  names: string[];
  player: string;
  turns: { seat: number; chance: string; name: string; position: string; loss: number | null; best: string | null; mark: string | null }[];
  summary: { decisions: number; lost: number; error_rate: number | null; blunder: number; mistake: number }[];
}

/** A node with what lies below it, which is only made when it is opened. */
function branch(node: Node, depth: number): HTMLElement {
  const odds = node.prior === null ? "" : ` ${percent(node.prior)}`;
  const words = `${node.name || "position"}${odds}, ${node.visits} visits, ${signed(node.value)}`;
  if (!node.children.length) return h("span", {}, words);
  const part = h("details", { open: depth === 0 }, h("summary", {}, words + (node.chance ? ", chance" : "")));
  const fill = (): void => {
    if (part.open && part.childElementCount === 1) part.append(h("ul", {}, ...node.children.map((child) => h("li", {}, branch(child, depth + 1)))));
  };
  part.ontoggle = fill;
  fill();
  return part;
}

function reviewParts(found: Review, look: (position: string) => void): HTMLElement[] {
  const head = h("p", { class: "quiet" }, `by ${found.player}`);
  const summary = h("ul", {}, ...found.summary.map((side, seat) => h("li", {}, `${found.names[seat]}: ${side.decisions} decisions, ${side.lost.toFixed(3)} points lost, ${side.error_rate === null ? "–" : (1000 * side.error_rate).toFixed(1)} thousandths a decision; ${side.blunder} blunders, ${side.mistake} mistakes`)));
  const list = h("ol", { class: "history tall" });
  for (const turn of found.turns) {
    const line = h("li", { class: turn.mark || "" }, h("button", { type: "button", class: "link", onclick: () => look(turn.position) }, `${turn.chance && turn.chance + ": "}${turn.name}`));
    if (turn.loss !== null && turn.mark) line.append(` ${turn.mark}: −${turn.loss.toFixed(3)}; best ${turn.best}`);
    list.append(line);
  }
  return [head, summary, list];
}

export function analysePage(given: URLSearchParams): Page {
  let game = given.get("game") ?? "backgammon";
  const text = h("textarea", { name: "position", rows: 2, spellcheck: "false", maxlength: 2000, placeholder: "Position ID:31, XGID, FEN, … ; empty: the first position" });
  text.value = given.get("position") ?? "";
  const player = h("input", { type: "text", name: "player", maxlength: 200, placeholder: "the best there is", spellcheck: "false", list: "players" });
  player.value = given.get("player") ?? "";
  const players = h("datalist", { id: "players" });
  const boardPlace = h("div", { class: "boardplace" });
  const result = h("div", { class: "advice" });
  const trouble = h("p", { class: "trouble", role: "alert" });
  const chooser = h("div");
  const look = h("button", { type: "submit", class: "main" }, "Analyse");
  const rollout = h("button", { type: "button" }, "Roll out");
  const share = h("button", { type: "button" }, "Copy link");
  const tree = h("button", { type: "button" }, "Search tree");
  const record = h("textarea", { name: "record", rows: 5, spellcheck: "false", maxlength: 200000, placeholder: "Paste a game: .mat, PGN, or moves" });
  const file = h("input", { type: "file", accept: ".mat,.pgn,.txt", "aria-label": "A game from a file" });
  const judge = h("button", { type: "button" }, "Review game");
  const reviewed = h("div", { class: "review" });
  const form = h("form", { class: "start" }, chooser, h("label", { class: "field wide" }, h("span", {}, "Position"), text), h("label", { class: "field" }, h("span", {}, "Player"), player, players), h("div", { class: "buttons" }, look, rollout, tree, share));
  const element = h("section", { class: "table" }, h("div", { class: "left" }, h("h1", {}, "Analyse"), boardPlace), h("div", { class: "right" }, form, trouble, result, h("h2", {}, "A whole game"), h("label", { class: "field wide" }, h("span", {}, "Game"), record), h("div", { class: "buttons" }, file, judge), reviewed));
  let marks: ReturnType<typeof interact> | null = null;
  let count = 0;

  function address(): string {
    const query = new URLSearchParams({ game, position: text.value.trim() });
    if (player.value.trim()) query.set("player", player.value.trim());
    return `#/analyse?${query}`;
  }

  async function show(rolls: number | null): Promise<void> {
    const turn = ++count;
    trouble.textContent = "";
    result.replaceChildren(h("p", { class: "quiet" }, rolls ? "Rolling out…" : "Thinking…"));
    history.replaceState(null, "", address());
    const asked = { game, position: text.value.trim() || null, player: player.value.trim() || null };
    try {
      const shown = await post<Shown>("positions", asked);
      if (turn !== count) return;
      text.value ||= shown.position;
      const drawing = draw(shown.board, { flip: false, chance: shown.chance, toPlay: shown.to_play });
      if (drawing instanceof HTMLElement) boardPlace.replaceChildren(drawing);
      else {
        marks = interact(drawing, { moves: shown.moves, play: (move) => go([move.action]) });
        boardPlace.replaceChildren(drawing.svg);
      }
      const thought = await post<Thought>("analyse", { ...asked, count: rolls ? 5 : 12, rollout: rolls });
      if (turn !== count) return;
      result.replaceChildren(thoughtTable(thought, (steps) => marks?.hint(steps), go));
      marks?.hint(thought.moves[0]?.steps ?? []);
    } catch (error) {
      if (turn !== count) return;
      result.replaceChildren();
      trouble.textContent = (error as Error).message;
    }
  }

  /** Follows a move: a table of two people is opened there, and its position is the next one to look at. */
  async function go(actions: number[]): Promise<void> {
    try {
      const table = await post<Shown & { id: string }>("tables", { game, seats: ["human", "human"], position: text.value.trim() || null });
      const next = await post<Shown>(`tables/${table.id}/move`, { actions, end: true });
      text.value = next.position;
      await show(null);
    } catch (error) {
      trouble.textContent = (error as Error).message;
    }
  }

  form.onsubmit = (event) => {
    event.preventDefault();
    void show(null);
  };
  tree.onclick = async () => {
    result.replaceChildren(h("p", { class: "quiet" }, "Searching…"));
    try {
      const found = await post<Grown>("tree", { game, position: text.value.trim() || null, player: player.value.trim() || null });
      result.replaceChildren(h("p", {}, "Expected: " + found.line.join(" ")), h("div", { class: "tree" }, branch(found.root, 0)));
    } catch (error) {
      result.replaceChildren(h("p", { class: "trouble" }, (error as Error).message));
    }
  };
  file.onchange = async () => {
    const chosen = file.files?.[0];
    if (chosen) record.value = (await chosen.text()).slice(0, 200000);
  };
  judge.onclick = async () => {
    reviewed.replaceChildren(h("p", { class: "quiet" }, "Looking at every decision…"));
    judge.disabled = true;
    try {
      const found = await post<Review>("review", { game, text: record.value, player: player.value.trim() || null });
      reviewed.replaceChildren(...reviewParts(found, (position) => {
        text.value = position;
        void show(null);
      }));
    } catch (error) {
      reviewed.replaceChildren(h("p", { class: "trouble" }, (error as Error).message));
    }
    judge.disabled = false;
  };
  rollout.onclick = () => void show(144);
  share.onclick = async () => {
    const link = new URL(address(), document.baseURI).href;
    try {
      await navigator.clipboard.writeText(link);
      share.textContent = "Copied";
    } catch {
      trouble.textContent = link;
    }
  };
  games().then((known) => {
    const fill = (): void => {
      const facts = known.find((one) => one.name === game);
      players.replaceChildren(...(facts?.players ?? []).map((one) => h("option", { value: one.player }, one.name)));
      rollout.hidden = !facts?.turns;
    };
    chooser.replaceWith(
      select("Game", known.map((one) => [one.name, TITLES[one.name] ?? one.name]), game, (value) => {
        game = value;
        text.value = player.value = "";
        fill();
        void show(null);
      }),
    );
    fill();
    void show(null);
  }, (error: Error) => (trouble.textContent = error.message));
  return { element };
}
