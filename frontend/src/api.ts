// What the server says and is asked. Everything goes to the page's own origin.

import type { Time } from "./clock";

export interface Move {
  action: number;
  name: string;
  from: string | null;
  to: string | null;
  choice: string | null;
}
export interface Step {
  from: string | null;
  to: string | null;
}
export interface Board {
  kind: string;
  [field: string]: any;
}
export interface TableView {
  id: string;
  version: number;
  game: string;
  seats: string[];
  to_play: number;
  over: boolean;
  result: { winner: number | null; points: number; name: string } | null;
  board: Board;
  chance: string;
  moves: Move[];
  steps: Step[];
  waits: boolean;
  can_take_back: boolean;
  history: { seat: number; name: string; chance: string }[];
  last: Step[];
  position: string;
  match: { length: number; score: number[] };
  clock: Time | null;
  thinking: boolean;
  trouble: string | null;
}
export interface Thought {
  player: string;
  position: string;
  kind: string;
  value: number | null;
  outcomes: string[];
  chances: number[] | null;
  moves: {
    name: string;
    actions: number[];
    steps: Step[];
    value: number | null;
    chances: number[] | null;
    visits: number | null;
    prior: number | null;
    error: number | null;
    line: string[]; // what is expected to follow
  }[];
}
export interface GameFacts {
  name: string;
  turns: boolean;
  outcomes: { name: string; points: number }[];
  players: { player: string; name: string }[];
  usual: string;
}

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

async function ask<T>(path: string, options: RequestInit = {}): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch("api/" + path, { credentials: "same-origin", ...options });
  } catch {
    throw new Refused(0, "The server does not answer. Is `alea web` still running?");
  }
  const body = await answer.json().catch(() => ({}));
  if (answer.ok) return body as T;
  const detail = body.detail;
  const text = typeof detail === "string" ? detail : Array.isArray(detail) ? detail.map((d) => d.msg).join("; ") : answer.statusText;
  throw new Refused(answer.status, text);
}

export const get = <T>(path: string): Promise<T> => ask<T>(path);

export const post = <T>(path: string, body: unknown = {}): Promise<T> =>
  ask<T>(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

let known: Promise<GameFacts[]> | null = null;
export function games(): Promise<GameFacts[]> {
  known ??= get<{ games: GameFacts[] }>("games").then((found) => found.games);
  known.catch(() => (known = null));
  return known;
}

/** Messages of a WebSocket, which is opened again whenever it is lost. Returns how to stop. */
export function listen(path: string, heard: (message: any) => void, lost: (away: boolean) => void): () => void {
  let socket: WebSocket | null = null;
  let stopped = false;
  let wait = 300;
  const open = (): void => {
    const address = new URL("api/" + path, document.baseURI);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    address.hash = "";
    socket = new WebSocket(address);
    socket.onmessage = (event) => {
      wait = 300;
      lost(false);
      heard(JSON.parse(event.data));
    };
    socket.onclose = (event) => {
      if (stopped || event.code === 4404) return;
      lost(true);
      setTimeout(() => !stopped && open(), wait);
      wait = Math.min(wait * 2, 5000);
    };
  };
  open();
  return () => {
    stopped = true;
    socket?.close();
  };
}
