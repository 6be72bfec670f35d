// The board editor: puts pieces where they are wanted and writes the position down. Whether it can be is the server's word.

import { post } from "./api";
import { draw } from "./boards";
import { h, select } from "./dom";
import { interact } from "./interact";

interface Kind {
  pieces: [string, string][]; // what can be put, with words for it
  empty: any; // a board with nothing on it, or as little as there can be
  settings: (position: string) => Record<string, string>; // what a position says besides the board
  fields: Record<string, { words: string; options: [string, string][] | null }>; // how that is asked; null: by a text
  put: (board: any, place: string, piece: string) => void;
  write: (board: any, settings: Record<string, string>) => string;
}
const DICE: [string, string][] = [1, 2, 3, 4, 5, 6].map((die) => [String(die), String(die)]);
const LEFT: [string, string][] = [...Array(11).keys()].map((count) => [String(count), String(count)]);
const NAMES = ["king", "queen", "rook", "bishop", "knight", "pawn"];
const MARKS: [string, string][] = [["X", "X"], ["O", "O"], [".", "nothing"]];

function square(name: string): number {
  return "abcdefgh".indexOf(name[0]) + 8 * (Number(name[1]) - 1);
}

const KINDS: Record<string, Kind> = {
  chess: {
    pieces: [...[..."KQRBNP"].map((letter, i): [string, string] => [letter, `white ${NAMES[i]}`]), ...[..."kqrbnp"].map((letter, i): [string, string] => [letter, `black ${NAMES[i]}`]), [".", "nothing"]],
    empty: { kind: "chess", pieces: ".".repeat(64), check: null },
    settings: (position) => {
      const [, turn, castling, ep] = position.split(" ");
      return { turn: turn ?? "w", castling: castling ?? "-", ep: ep ?? "-" };
    },
    fields: {
      turn: { words: "To move", options: [["w", "White"], ["b", "Black"]] },
      castling: { words: "Castling (KQkq or -)", options: null },
      ep: { words: "En passant (a square or -)", options: null },
    },
    put: (board, place, piece) => {
      const at = square(place);
      const held = board.pieces[at];
      board.pieces = board.pieces.slice(0, at) + (held === piece ? "." : piece) + board.pieces.slice(at + 1);
      board.check = null;
    },
    write: (board, { turn, castling, ep }) => {
      const rows = [7, 6, 5, 4, 3, 2, 1, 0].map((row) => board.pieces.slice(8 * row, 8 * row + 8).replace(/\.+/g, (run: string) => String(run.length)));
      return `${rows.join("/")} ${turn} ${castling || "-"} ${ep || "-"} 0 1`;
    },
  },
  backgammon: {
    pieces: [["X", "add an X checker"], ["O", "add an O checker"], [".", "take one away"]],
    empty: { kind: "backgammon", points: Array(24).fill(0), bar: [0, 0], off: [15, 15], pips: [0, 0], left: [] },
    settings: (position) => {
      const [, , , turn, dice] = position.split(":");
      return { turn: turn === "-1" ? "-1" : "1", first: /[1-6]/.exec(dice ?? "")?.[0] ?? "3", second: /[1-6]$/.exec((dice ?? "").slice(0, 2))?.[0] ?? "1" };
    },
    fields: {
      turn: { words: "To play", options: [["1", "X"], ["-1", "O"]] },
      first: { words: "First die", options: DICE },
      second: { words: "Second die", options: DICE },
    },
    put: (board, place, piece) => {
      if (place.startsWith("off")) return;
      if (place.startsWith("bar")) {
        const seat = Number(place.slice(3));
        board.bar[seat] = Math.min(Math.max(board.bar[seat] + (piece === "." ? -1 : 1), 0), 15);
      } else {
        const held = board.points[Number(place) - 1];
        const sign = piece === "X" ? 1 : -1;
        board.points[Number(place) - 1] = piece === "." ? held - Math.sign(held) : held * sign < 0 ? sign : Math.sign(sign) * Math.min(Math.abs(held) + 1, 15);
      }
      [1, -1].forEach((sign, seat) => {
        const on = board.points.map((held: number) => Math.max(held * sign, 0));
        board.off[seat] = Math.max(15 - board.bar[seat] - on.reduce((sum: number, held: number) => sum + held, 0), 0);
        board.pips[seat] = 25 * board.bar[seat] + on.reduce((sum: number, held: number, i: number) => sum + held * (seat ? 24 - i : i + 1), 0);
      });
    },
    write: (board, { turn, first, second }) => {
      const letter = (held: number): string => (held === 0 ? "-" : String.fromCharCode((held > 0 ? 64 : 96) + Math.abs(held)));
      const places = [letter(-board.bar[1]), ...board.points.map(letter), letter(board.bar[0])].join("");
      return `XGID=${places}:0:0:${turn}:${first}${second}:0:0:0:0:0`;
    },
  },
  connect_four: {
    pieces: [["X", "X"], ["O", "O"], [".", "take the top one away"]],
    empty: { kind: "connect_four", rows: Array(6).fill(".......") },
    settings: () => ({}),
    fields: {},
    put: (board, place, piece) => {
      const column = Number(place) - 1;
      const filled = board.rows.filter((row: string) => row[column] !== ".").length;
      const at = piece === "." ? 6 - filled : 5 - filled;
      if (at >= 0 && at < 6) board.rows[at] = board.rows[at].slice(0, column) + piece + board.rows[at].slice(column + 1);
    },
    write: (board) => board.rows.join("/"),
  },
  tictactoe: {
    pieces: MARKS,
    empty: { kind: "tictactoe", cells: "........." },
    settings: () => ({}),
    fields: {},
    put: (board, place, piece) => {
      const at = "abc".indexOf(place[0]) + 3 * (3 - Number(place[1]));
      board.cells = board.cells.slice(0, at) + (board.cells[at] === piece ? "." : piece) + board.cells.slice(at + 1);
    },
    write: (board) => board.cells.match(/.../g).join("/"),
  },
  quoridor: {
    pieces: [["0", "pawn of player 1"], ["1", "pawn of player 2"], ["wall", "a wall, or none"]],
    empty: { kind: "quoridor", pawns: ["e1", "e9"], walls: [], left: [10, 10] },
    settings: (position) => {
      const [, , one, two, , turn] = position.split(" ");
      return { turn: turn ?? "1", one: one ?? "10", two: two ?? "10" };
    },
    fields: {
      turn: { words: "To move", options: [["1", "Player 1"], ["2", "Player 2"]] },
      one: { words: "Walls left, player 1", options: LEFT },
      two: { words: "Walls left, player 2", options: LEFT },
    },
    put: (board, place, piece) => {
      if (place.length === 3) board.walls = board.walls.includes(place) ? board.walls.filter((wall: string) => wall !== place) : [...board.walls, place];
      else if (piece !== "wall") board.pawns[Number(piece)] = place;
    },
    write: (board, { turn, one, two }) => `${board.pawns.join(" ")} ${one} ${two} ${board.walls.join(",") || "-"} ${turn}`,
  },
};

export const canEdit = (game: string): boolean => game in KINDS;

/** The editor of a board; `done` is told the position, or null if it is left as it was. */
export function editor(game: string, start: { board: any; position: string }, place: HTMLElement, done: (position: string | null) => void): HTMLElement {
  const kind = KINDS[game];
  const settings = kind.settings(start.position);
  let board = structuredClone(start.board);
  let piece = kind.pieces[0][0];
  let asked = 0;
  const verdict = h("p", { class: "verdict", role: "status" });
  const use = h("button", { type: "button", class: "main" }, "Use this position");
  const palette = h("div", { class: "buttons palette", role: "group", "aria-label": "What to put on the board" });
  const fields = h("div", { class: "start" });

  async function check(): Promise<void> {
    const turn = ++asked;
    use.disabled = true;
    const position = kind.write(board, settings);
    try {
      await post("positions", { game, position });
      if (turn !== asked) return;
      verdict.className = "verdict";
      verdict.textContent = "This position is legal.";
      use.disabled = false;
    } catch (error) {
      if (turn !== asked) return;
      verdict.className = "verdict trouble";
      verdict.textContent = (error as Error).message.replace(`position '${position}': `, "");
    }
  }

  function show(focus: string | null): void {
    const chance = settings.first && settings.second ? settings.first + settings.second : "";
    if (chance) board.left = chance[0] === chance[1] ? Array(4).fill(Number(chance[0])) : [...chance].map(Number);
    const drawing = draw(board, { flip: false, chance, toPlay: settings.turn === "-1" ? 1 : 0 });
    if (drawing instanceof HTMLElement) return;
    const moves = [...drawing.places.keys()].map((to, action) => ({ action, name: to, from: null, to, choice: null }));
    interact(drawing, {
      moves,
      play: (move) => {
        kind.put(board, move.to as string, piece);
        show(move.to);
      },
    });
    place.replaceChildren(drawing.svg);
    drawing.places.get(focus ?? "")?.hit.focus({ preventScroll: true });
    void check();
  }

  for (const [key, words] of kind.pieces) {
    const button = h("button", { type: "button", "data-piece": key, "aria-pressed": String(key === piece) }, words);
    button.onclick = () => {
      piece = key;
      for (const other of palette.children) other.setAttribute("aria-pressed", String(other === button));
    };
    palette.append(button);
  }
  for (const [key, { words, options }] of Object.entries(kind.fields)) {
    const change = (value: string): void => {
      settings[key] = value.trim();
      show(null);
    };
    if (options) fields.append(select(words, options, settings[key], change));
    else {
      const box = h("input", { type: "text", name: key, maxlength: 4, size: 5, value: settings[key], spellcheck: "false", autocomplete: "off" });
      box.oninput = () => change(box.value);
      fields.append(h("label", { class: "field" }, h("span", {}, words), box));
    }
  }
  use.onclick = () => done(kind.write(board, settings));
  const clear = h("button", { type: "button" }, "Clear board");
  clear.onclick = () => {
    board = structuredClone(kind.empty);
    show(null);
  };
  const leave = h("button", { type: "button" }, "Leave as it was");
  leave.onclick = () => done(null);
  show(null);
  return h("div", { class: "editor" }, palette, fields, verdict, h("div", { class: "buttons" }, use, clear, leave));
}
