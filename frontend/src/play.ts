// Playing: the lobby, where a game is begun, and the table, where it is played.

import { type GameFacts, games, get, listen, type Move, post, Refused, type TableView, type Thought } from "./api";
import { draw } from "./boards";
import { Clocks } from "./clock";
import { h, say, select, waiting } from "./dom";
import { interact } from "./interact";
import type { Page } from "./main";
import { thoughtTable } from "./thought";

export const TITLES: Record<string, string> = {
  backgammon: "Backgammon",
  chess: "Chess",
  connect_four: "Connect Four",
  quoridor: "Quoridor",
  tictactoe: "Tic-tac-toe",
  pig: "Pig",
};
const SIDES: Record<string, [string, string]> = { chess: ["White", "Black"], quoridor: ["Player 1", "Player 2"], pig: ["Player 1", "Player 2"] };
const PIECES: Record<string, string> = { q: "Queen", r: "Rook", b: "Bishop", n: "Knight" };
const TIMES: [string, string][] = [["", "none"], ["60+0", "1 minute"], ["180+2", "3 minutes and 2 s a move"], ["300+3", "5 minutes and 3 s a move"], ["900+10", "15 minutes and 10 s a move"]];
const KEPT = "alea.table"; // the last table, so that a visitor who comes back finds it

const sides = (game: string): [string, string] => SIDES[game] ?? ["X", "O"];

export function lobby(wanted: string): Page {
  const element = h("section", { class: "lobby" }, h("h1", {}, "Play"), h("p", { class: "quiet" }, "Loading…"));
  games().then(
    (known) => element.replaceChildren(...lobbyParts(known, wanted)),
    (error: Error) => element.replaceChildren(h("p", { class: "trouble" }, error.message)),
  );
  return { element };
}

function lobbyParts(known: GameFacts[], wanted: string): HTMLElement[] {
  const order = Object.keys(TITLES);
  const sorted = [...known].sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
  const game = sorted.find((one) => one.name === wanted) ?? sorted[0];
  const tabs = h("div", { class: "tabs", role: "group", "aria-label": "Game" });
  for (const one of sorted) {
    const here = one.name === game.name;
    tabs.append(h("a", { href: `#/play/${one.name}`, class: here ? "here" : "", "aria-current": here ? "true" : undefined }, TITLES[one.name] ?? one.name));
  }
  tabs.append(h("a", { href: "#/balatro" }, "Balatro"));
  let opponent = game.usual;
  let seat = "0";
  let points = "0";
  let time = "";
  const own = h("input", { type: "text", name: "player", maxlength: 200, placeholder: "run:NAME,sims=64", autocomplete: "off", spellcheck: "false" });
  const names: [string, string][] = game.players.map((one) => [one.player, one.name]);
  const [first, second] = sides(game.name);
  const trouble = h("p", { class: "trouble", role: "alert" });
  const start = h("button", { type: "submit", class: "main" }, "Start");
  const form = h(
    "form",
    { class: "start" },
    select("Opponent", [...names, ["human", "another person, here"], ["custom", "a player of your own…"]], opponent, (value) => {
      opponent = value;
      ownField.hidden = value !== "custom";
    }),
  );
  const ownField = h("label", { class: "field" }, h("span", {}, "Player"), own);
  ownField.hidden = true;
  form.append(ownField, select("You are", [["0", first], ["1", second]], seat, (value) => (seat = value)));
  if (game.name === "backgammon") {
    form.append(select("Play", [["0", "one game"], ["3", "to 3 points"], ["5", "to 5 points"], ["7", "to 7 points"]], points, (value) => (points = value)));
  }
  form.append(select("Clock", TIMES, time, (value) => (time = value)), start, trouble);
  form.onsubmit = async (event) => {
    event.preventDefault();
    const other = opponent === "custom" ? own.value.trim() : opponent;
    const seats = seat === "0" ? ["human", other] : [other, "human"];
    const [seconds, increment] = time.split("+").map(Number);
    start.disabled = true;
    trouble.textContent = "";
    const wait = waiting("Setting up the board…");
    form.after(wait);
    try {
      const view = await post<TableView>("tables", { game: game.name, seats, match_points: Number(points), clock: time ? { seconds, increment } : null });
      location.hash = `#/table/${view.id}`;
    } catch (error) {
      trouble.textContent = (error as Error).message;
      start.disabled = false;
      wait.remove();
    }
  };
  const parts: HTMLElement[] = [h("h1", {}, "Play"), tabs, form];
  const last = localStorage.getItem(KEPT);
  if (last) parts.push(h("p", {}, h("a", { href: `#/table/${last}` }, "Back to your last game")));
  return parts;
}

export function tablePage(id: string): Page {
  const boardPlace = h("div", { class: "boardplace" });
  const status = h("p", { class: "status", "data-testid": "status" });
  const trouble = h("p", { class: "trouble", role: "alert" });
  const buttons = h("div", { class: "buttons" });
  const extra = h("div", { class: "buttons moves" });
  const history = h("ol", { class: "history", tabindex: "0", "aria-label": "Moves so far" });
  const advice = h("div", { class: "advice" });
  const title = h("h1");
  const clocks = new Clocks();
  const element = h(
    "section",
    { class: "table" },
    h("div", { class: "left" }, title, boardPlace),
    h("div", { class: "right" }, clocks.element, status, extra, buttons, trouble, advice, h("h2", {}, "Moves"), history),
  );
  let view: TableView | null = null;
  let marks: ReturnType<typeof interact> | null = null;
  let flipped = false;
  let running: Promise<void> = Promise.resolve(); // what was asked for last
  let busy = 0; // answers that are waited for
  let acted = 0; // the version that was shown when something was last asked for
  let focus: string | null = null;
  let slow = 0;

  /** One after the other. The same board is acted on once; a newer one may be shown before the answer is there. */
  function act(what: () => Promise<TableView>): Promise<void> {
    const version = view?.version ?? 0;
    if (busy && acted === version) return running;
    acted = version;
    busy++;
    running = running.then(() => attempt(what)).finally(() => busy--);
    return running;
  }

  async function attempt(what: () => Promise<TableView>): Promise<void> {
    try {
      show(await what());
      trouble.textContent = "";
    } catch (error) {
      trouble.textContent = (error as Error).message;
      if (error instanceof Refused && error.status === 409) get<TableView>(`tables/${id}`).then(show, () => {});
      else if (view) show(view, true);
    }
  }
  const order = (what: string) => () => act(() => post<TableView>(`tables/${id}/${what}`));
  const play = (move: Move): Promise<void> => {
    focus = move.to;
    return act(() => post<TableView>(`tables/${id}/move`, { actions: [move.action] }));
  };

  async function hint(): Promise<void> {
    advice.replaceChildren(waiting("Thinking…"));
    try {
      const thought = await post<Thought>(`hints/${id}`, {});
      advice.replaceChildren(thoughtTable(thought, (steps) => marks?.hint(steps)));
      marks?.hint(thought.moves[0]?.steps ?? []);
      say(`best: ${thought.moves[0]?.name}`);
    } catch (error) {
      advice.replaceChildren(h("p", { class: "trouble" }, (error as Error).message));
    }
  }

  function button(words: string, key: string, work: () => void, on: boolean, main = false): HTMLButtonElement {
    const shown = key ? `${words} (${key})` : words;
    return h("button", { type: "button", class: main ? "main" : "", disabled: !on, title: shown, "data-do": words.toLowerCase(), onclick: work }, words);
  }

  function show(next: TableView, again = false): void {
    if (view && next.id === view.id && next.version <= view.version && !again) return;
    const fresh = view === null || next.history.length !== view.history.length || next.steps.length !== view.steps.length;
    view = next;
    localStorage.setItem(KEPT, next.id);
    element.dataset.version = String(next.version);
    const me = next.seats[0] === "human" ? 0 : next.seats[1] === "human" ? 1 : 0;
    title.textContent = TITLES[next.game] ?? next.game;
    const look = { flip: (me === 1) !== flipped, chance: next.chance, toPlay: next.to_play };
    const drawing = draw(next.board, look);
    const had = boardPlace.contains(document.activeElement) ? document.activeElement?.getAttribute("data-place") : null;
    if (drawing instanceof HTMLElement) {
      boardPlace.replaceChildren(drawing);
      marks = null;
    } else {
      const marked = next.steps.length ? next.steps : next.last;
      marks = interact(drawing, { moves: next.moves, marked, play, choices: (choice) => PIECES[choice] ?? (/^\d$/.test(choice) ? `with the ${choice}` : choice) });
      boardPlace.replaceChildren(drawing.svg);
      const wanted = had ?? null;
      if (wanted) {
        const places = [...drawing.places.values()].filter((place) => place.hit.hasAttribute("tabindex"));
        const near = drawing.places.get(focus ?? wanted) ?? drawing.places.get(wanted);
        const target = near?.hit.hasAttribute("tabindex") ? near : places[0];
        target?.hit.focus({ preventScroll: true });
      }
    }
    if (fresh) advice.replaceChildren();
    clocks.show(next.clock, sides(next.game));
    describe(next, me);
    extra.replaceChildren(
      ...next.moves.filter((move) => move.to === null).map((move) => button(move.name, "", () => play(move), true, true)),
    );
    const mine = next.seats[next.to_play] === "human" && !next.over;
    const turns = next.game === "backgammon";
    const done = next.match.length > 0 && Math.max(...next.match.score) >= next.match.length;
    const again2 = next.match.length && !done ? "Next game" : "New game";
    buttons.replaceChildren(
      ...(turns ? [button("End turn", "e", order("end"), next.waits, true)] : []),
      button(next.steps.length ? "Undo" : "Take back", "u", order("back"), next.can_take_back),
      button("Hint", "h", hint, mine && !next.waits),
      button("Resign", "", () => confirm("Give this game up?") && order("resign")(), !next.over),
      ...(next.over ? [button(again2, "n", order("next"), true, true)] : []),
      ...(marks ? [button("Turn board", "", () => {
        flipped = !flipped;
        if (view) show(view, true);
      }, true)] : []),
    );
    buttons.append(
      h("a", { href: `#/analyse?game=${next.game}&position=${encodeURIComponent(next.position)}` }, "Analyse"),
      h("a", { href: `api/records/${next.id}`, download: `${next.game}-${next.id}.${next.game === "chess" ? "pgn" : next.game === "backgammon" ? "mat" : "txt"}` }, "Download"),
    );
    history.replaceChildren(...next.history.map((turn) => h("li", { class: `seat${turn.seat}` }, h("span", { class: "who" }, sides(next.game)[turn.seat]), " ", turn.chance && h("span", { class: "chance" }, turn.chance.slice(0, 2) + ":"), " ", turn.name)));
    history.scrollTop = history.scrollHeight;
  }

  function describe(now: TableView, me: number): void {
    const names = sides(now.game);
    const people = now.seats.filter((seat) => seat === "human").length;
    let text: string;
    if (now.trouble) text = `${now.seats[now.to_play]} cannot move: ${now.trouble}`;
    else if (now.over && now.result) {
      const { winner, name, points } = now.result;
      const how = [name === "win" ? "" : name, points > 1 ? `${points} points` : ""].filter(Boolean).join(", ");
      const worth = how && ` (${how})`;
      text = winner === null ? `The game is over: ${name}.` : people === 1 ? `${winner === me ? "You win" : "You lose"}${worth}.` : `${names[winner]} wins${worth}.`;
    } else if (now.thinking) text = `${names[now.to_play]} (${now.seats[now.to_play]}) is thinking…`;
    else if (now.waits) text = "Your turn is complete: end it, or undo.";
    else text = people === 1 ? `Your move: you are ${names[now.to_play]}.` : `${names[now.to_play]} to move.`;
    if (now.chance && !now.over) text += ` Dice: ${now.chance.slice(0, 2)}.`;
    if (now.match.length) text += ` Match to ${now.match.length}: ${names[0]} ${now.match.score[0]}, ${names[1]} ${now.match.score[1]}.`;
    status.textContent = text;
    say(text);
    clearTimeout(slow);
    if (now.thinking) slow = window.setTimeout(() => status.append(" Its first move takes longest: what it needs is compiled."), 4000);
  }

  const keys = (event: KeyboardEvent): void => {
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement || event.ctrlKey || event.metaKey || event.altKey) return;
    const name = { e: "end turn", u: view?.steps.length ? "undo" : "take back", h: "hint", n: "new game" }[event.key];
    if (!name) return;
    const found = buttons.querySelector<HTMLButtonElement>(`[data-do="${name}"]`) ?? (event.key === "n" ? buttons.querySelector<HTMLButtonElement>('[data-do="next game"]') : null);
    if (found && !found.disabled) {
      event.preventDefault();
      found.click();
    }
  };
  document.addEventListener("keydown", keys);
  const stop = listen(`tables/${id}/live`, show, (away) => {
    element.classList.toggle("away", away);
    if (away) status.textContent = "The connection is lost; trying again…";
    else if (view && status.textContent?.startsWith("The connection")) show(view, true);
  });
  get<TableView>(`tables/${id}`).then(show, (error: Refused) => {
    trouble.textContent = error.message;
    if (error.status === 404 && localStorage.getItem(KEPT) === id) localStorage.removeItem(KEPT);
  });
  return {
    element,
    leave: () => {
      stop();
      clearTimeout(slow);
      clocks.stop();
      document.removeEventListener("keydown", keys);
    },
  };
}
