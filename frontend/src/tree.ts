// The search's tree as a picture: circles where a player moves, diamonds where chance does; larger the more it was
// visited, greener the better for whoever is to play at the root. A click, Enter or an arrow key opens and shuts a node.

import { h, percent, s, signed } from "./dom";

export interface Node {
  name: string;
  prior: number | null;
  visits: number;
  value: number;
  chance: boolean;
  children: Node[];
}
const ROW = 40;
const COLUMN = 52;
const MARGIN = 22;

interface Row {
  node: Node;
  depth: number;
  y: number;
  parent: Row | null;
}

export function treePicture(root: Node, best: number): HTMLElement {
  const open = new Set<Node>([root]);
  const holder = h("div", { class: "tree scroll" });
  let focus: Node = root;

  function rows(): Row[] {
    const found: Row[] = [];
    const add = (node: Node, depth: number, parent: Row | null): void => {
      const row = { node, depth, y: MARGIN + ROW * found.length, parent };
      found.push(row);
      if (open.has(node)) for (const child of node.children) add(child, depth + 1, row);
    };
    add(root, 0, null);
    return found;
  }

  function colour(value: number): string {
    const share = Math.min(Math.max(0.5 + value / (2 * best), 0), 1);
    return `color-mix(in srgb, #3d8b5f ${(100 * share).toFixed(0)}%, #c96f52)`;
  }

  function draw(row: Row): SVGElement {
    const { node, depth, y } = row;
    const x = MARGIN + COLUMN * depth;
    const size = 5 + 11 * Math.sqrt(node.visits / Math.max(root.visits, 1));
    const odds = node.prior === null ? "" : `, ${percent(node.prior)}`;
    const name = node.name || "position";
    const label = `${name}: ${signed(node.value)}, ${node.visits} visits${odds}${node.chance ? ", chance follows" : ""}`;
    const part = s("g", { class: "node", role: "treeitem", tabindex: node === focus ? 0 : -1, "aria-level": depth + 1, "aria-label": label, "aria-expanded": node.children.length ? String(open.has(node)) : undefined });
    const shape = node.chance ? s("path", { d: `M${x} ${y - size} l${size} ${size} l${-size} ${size} l${-size} ${-size} Z`, class: "chance" }) : s("circle", { cx: x, cy: y, r: size });
    shape.style.fill = colour(node.value);
    part.append(s("title", {}, label), shape);
    if (node.children.length) part.append(s("text", { x, y: y + 5, class: "sign" }, open.has(node) ? "−" : "+"));
    part.append(s("text", { x: x + 21, y: y - 2 }, `${name} ${signed(node.value)}`), s("text", { x: x + 21, y: y + 13, class: "small" }, `${node.visits} visits${odds}`));
    part.addEventListener("click", () => turn(node, !open.has(node)));
    return part;
  }

  function turn(node: Node, wanted: boolean): void {
    if (wanted && node.children.length) open.add(node);
    else open.delete(node);
    focus = node;
    paint(true);
  }

  function paint(focused: boolean): void {
    const all = rows();
    const width = MARGIN + COLUMN * Math.max(...all.map((row) => row.depth)) + 250;
    const svg = s("svg", { width, height: MARGIN + ROW * all.length, role: "tree", "aria-label": "Search tree" });
    for (const row of all) {
      if (!row.parent) continue;
      const [px, x] = [MARGIN + COLUMN * row.parent.depth, MARGIN + COLUMN * row.depth];
      svg.append(s("path", { d: `M${px} ${row.parent.y + 12} L${px} ${row.y} L${x - 14} ${row.y}`, class: "twig" }));
    }
    const parts = new Map(all.map((row) => [row.node, draw(row)] as const));
    svg.append(...parts.values());
    svg.addEventListener("keydown", (event) => {
      const at = all.findIndex((row) => row.node === focus);
      const { node, parent } = all[at];
      if (event.key === "Enter" || event.key === " ") turn(node, !open.has(node));
      else if (event.key === "ArrowRight") turn(node, true);
      else if (event.key === "ArrowLeft" && open.has(node)) turn(node, false);
      else if (event.key === "ArrowLeft" && parent) go(parent.node);
      else if (event.key === "ArrowDown" && all[at + 1]) go(all[at + 1].node);
      else if (event.key === "ArrowUp" && all[at - 1]) go(all[at - 1].node);
      else return;
      event.preventDefault();
    });
    const go = (node: Node): void => {
      parts.get(focus)?.setAttribute("tabindex", "-1");
      focus = node;
      parts.get(node)?.setAttribute("tabindex", "0");
      parts.get(node)?.focus();
    };
    holder.replaceChildren(svg);
    if (focused) parts.get(focus)?.focus({ preventScroll: true });
  }
  paint(false);
  return holder;
}
