// The board of a game, drawn from what the server says stands where.

import type { Board } from "../api";
import { h } from "../dom";
import type { Drawing } from "../interact";
import { backgammon } from "./backgammon";
import { chess } from "./chess";
import { connectFour, tictactoe } from "./grids";
import { quoridor } from "./quoridor";

export interface Look {
  flip: boolean; // seen by seat 1
  chance: string; // what nature drew
  toPlay: number;
}

const BOARDS: Record<string, (board: any, look: Look) => Drawing> = {
  backgammon,
  chess,
  connect_four: connectFour,
  quoridor,
  tictactoe,
};

/** The drawing of a board, or its text where it has none of its own. */
export function draw(board: Board, look: Look): Drawing | HTMLElement {
  const own = BOARDS[board.kind];
  return own ? own(board, look) : h("pre", { class: "textboard" }, board.text);
}
