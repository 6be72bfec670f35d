// Analysing: a position from a text or the board, what a player thinks of it; all of it in the address, to be shared.

import { games, post, type Thought } from "./api";
import { draw } from "./boards";
import { counted, h, select, waiting } from "./dom";
import { canEdit, editor } from "./editor";
import { interact } from "./interact";
import type { Page } from "./main";
import { TITLES } from "./play";
import { thoughtTable } from "./thought";
import { type Node, treePicture } from "./tree";

interface Shown {
  game: string;
  board: any;
  chance: string;
  to_play: number;
  moves: any[];
  position: string;
}

interface Grown {
  root: Node;
  line: string[];
}
interface Review {
  names: string[];
  player: string;
  number: number;
  games: number;
  turns: { seat: number; chance: string; name: string; position: string; loss: number | null; best: string | null; mark: string | null }[];
  summary: { decisions: number; lost: number; error_rate: number | null; blunder: number; mistake: number }[];
}

function reviewParts(found: Review, look: (position: string) => void): HTMLElement[] {
  const head = h("p", { class: "quiet" }, `by ${found.player}`);
  const summary = h("ul", {}, ...found.summary.map((side, seat) => h("li", {}, `${found.names[seat]}: ${counted(side.decisions, "decision")}, ${side.lost.toFixed(3)} points lost, ${side.error_rate === null ? "–" : (1000 * side.error_rate).toFixed(1)} thousandths a decision; ${counted(side.blunder, "blunder")}, ${counted(side.mistake, "mistake")}`)));
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
  const edit = h("button", { type: "button" }, "Edit board");
  const editing = h("div");
  const share = h("button", { type: "button" }, "Copy link");
  const tree = h("button", { type: "button" }, "Search tree");
  const record = h("textarea", { name: "record", rows: 5, spellcheck: "false", maxlength: 200000, placeholder: "Paste a game: .mat, PGN, or moves" });
  const file = h("input", { type: "file", accept: ".mat,.pgn,.txt", "aria-label": "A game from a file" });
  const judge = h("button", { type: "button" }, "Review game");
  const reviewed = h("div", { class: "review" });
  const form = h("form", { class: "start" }, chooser, h("label", { class: "field wide" }, h("span", {}, "Position"), text), h("label", { class: "field" }, h("span", {}, "Player"), player, players), h("div", { class: "buttons" }, look, rollout, tree, edit, share));
  const element = h("section", { class: "table" }, h("div", { class: "left" }, h("h1", {}, "Analyse"), boardPlace, editing), h("div", { class: "right" }, form, trouble, result, h("h2", {}, "A whole game"), h("label", { class: "field wide" }, h("span", {}, "Its moves"), record), h("div", { class: "buttons" }, file, judge), reviewed));
  let marks: ReturnType<typeof interact> | null = null;
  let count = 0;
  let last: Shown | null = null;
  let best = 1; // the most points a game can bring
  let searches = true; // a network comes with the package
  const offerTree = (): void => {
    tree.hidden = !searches && !player.value.trim();
  };
  player.oninput = offerTree;

  function address(): string {
    const query = new URLSearchParams({ game, position: text.value.trim() });
    if (player.value.trim()) query.set("player", player.value.trim());
    return `#/analyse?${query}`;
  }

  async function show(rolls: number | null): Promise<void> {
    const turn = ++count;
    editing.replaceChildren();
    trouble.textContent = "";
    const kept = rolls && text.value.trim() === last?.position ? result.querySelector(".opinion") : null; // a rollout takes a while
    result.replaceChildren(waiting(rolls ? `Rolling out: five plays, ${rolls} games each…` : "Thinking…"), ...(kept ? [kept] : []));
    history.replaceState(null, "", address());
    const asked = { game, position: text.value.trim() || null, player: player.value.trim() || null };
    try {
      const shown = await post<Shown>("positions", asked);
      if (turn !== count) return;
      last = shown;
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
  edit.onclick = () => {
    if (!last) return;
    count++; // what is being thought about is no longer wanted
    result.replaceChildren();
    trouble.textContent = "";
    const before = last;
    editing.replaceChildren(
      editor(game, before, boardPlace, (position) => {
        text.value = position ?? before.position;
        void show(null);
      }),
    );
  };
  tree.onclick = async () => {
    const turn = ++count;
    result.replaceChildren(waiting("Searching…"));
    try {
      const found = await post<Grown>("tree", { game, position: text.value.trim() || null, player: player.value.trim() || null });
      if (turn !== count) return;
      result.replaceChildren(h("p", {}, "Expected: " + found.line.join(" ")), treePicture(found.root, best));
    } catch (error) {
      if (turn === count) result.replaceChildren(h("p", { class: "trouble" }, (error as Error).message));
    }
  };
  file.onchange = async () => {
    const chosen = file.files?.[0];
    if (chosen) record.value = (await chosen.text()).slice(0, 200000);
  };
  judge.onclick = () => review(1);
  async function review(number: number): Promise<void> {
    reviewed.replaceChildren(waiting("Looking at every decision…"));
    judge.disabled = true;
    try {
      const found = await post<Review>("review", { game, text: record.value, player: player.value.trim() || null, number });
      const others: [string, string][] = [...Array(found.games).keys()].map((i) => [String(i + 1), `${i + 1} of ${found.games}`]);
      if (found.games > 1) reviewed.replaceChildren(select("Game of the match", others, String(number), (value) => void review(Number(value))));
      else reviewed.replaceChildren();
      reviewed.append(...reviewParts(found, (position) => {
        text.value = position;
        void show(null);
      }));
    } catch (error) {
      reviewed.replaceChildren(h("p", { class: "trouble" }, (error as Error).message));
    }
    judge.disabled = false;
  }
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
      best = Math.max(1, ...(facts?.outcomes ?? []).map((outcome) => outcome.points));
      edit.hidden = !canEdit(game);
      searches = facts?.players.some((one) => one.player.startsWith("bundled")) ?? false;
      offerTree();
    };
    chooser.replaceWith(
      select("Game", [...known.map((one): [string, string] => [one.name, TITLES[one.name] ?? one.name]), ["balatro", "Balatro, by its seed"]], game, (value) => {
        if (value === "balatro") {
          location.hash = "#/balatro";
          return;
        }
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
