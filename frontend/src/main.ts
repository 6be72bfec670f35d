// The page: which of its parts is shown, by the address behind the #.

import { analysePage } from "./analyse";
import { balatroPage } from "./balatro";
import { h } from "./dom";
import { lobby, tablePage } from "./play";
import "./style.css";
import { runPage, runsPage } from "./watch";

export interface Page {
  element: HTMLElement;
  leave?: () => void;
}

let current: Page | null = null;

function route(): Page {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const [, part, name] = path.split("/").map(decodeURIComponent);
  const given = new URLSearchParams(query ?? "");
  if (part === "table" && name) return tablePage(name);
  if (part === "balatro") return balatroPage(name ?? "", given.get("seed") ?? "");
  if (part === "analyse") return analysePage(given);
  if (part === "watch") return name ? runPage(name, given) : runsPage();
  return lobby(name ?? "");
}

function show(): void {
  const main = document.getElementById("main") as HTMLElement;
  if (location.hash === "#main") return;
  current?.leave?.();
  try {
    current = route();
  } catch (error) {
    current = { element: h("p", { class: "trouble" }, `This address means nothing here: ${String(error)}`) };
  }
  main.replaceChildren(current.element);
  const part = location.hash.split(/[/?]/)[1] ?? "play";
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.getAttribute("href") === `#/${part === "table" || part === "balatro" ? "play" : part}`;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

window.addEventListener("hashchange", show);
if (!location.hash) history.replaceState(null, "", "#/play");
show();
