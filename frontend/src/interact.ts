// One way to move for every board: click, drag, touch or keyboard, between named places.
// A board draws places; this knows which moves there are, and lets no other be made.

import type { Move, Step } from "./api";
import { h, s, say } from "./dom";

export interface Place {
  id: string;
  hit: SVGElement; // what is clicked; carries `data-place`
  x: number; // its middle, in the drawing
  y: number;
  label: string;
}
export interface Drawing {
  svg: SVGSVGElement;
  places: Map<string, Place>;
  piece: (place: string) => SVGElement | null; // the one that would move, to be shown while it is dragged
}

export interface Options {
  moves: Move[];
  marked?: Step[]; // the last move
  play: (move: Move) => void;
  choices?: (choice: string) => string; // words for a choice
}

/** Shows where a move has gone. */
export function mark(drawing: Drawing, steps: Step[]): void {
  for (const step of steps) for (const id of [step.from, step.to]) if (id) drawing.places.get(id)?.hit.classList.add("last");
}

export function interact(drawing: Drawing, options: Options): { select: (place: string | null) => void; hint: (steps: Step[]) => void } {
  const { svg, places } = drawing;
  const byPlace = options.moves.filter((move) => move.to !== null);
  let selected: string | null = null;
  let drag: { from: string; ghost: SVGElement | null; moved: boolean; x: number; y: number } | null = null;

  const sources = new Set(byPlace.filter((m) => m.from !== null).map((m) => m.from as string));
  const direct = new Set(byPlace.filter((m) => m.from === null).map((m) => m.to as string));
  const targets = (from: string): Set<string> => new Set(byPlace.filter((m) => m.from === from).map((m) => m.to as string));

  function paint(): void {
    const open = selected === null ? direct : new Set([...targets(selected), ...direct]);
    for (const [id, place] of places) {
      const can = sources.has(id) || open.has(id);
      place.hit.classList.toggle("movable", sources.has(id));
      place.hit.classList.toggle("selected", id === selected);
      place.hit.classList.toggle("target", selected !== null && targets(selected).has(id));
      place.hit.classList.toggle("open", selected === null && direct.has(id));
      if (can) {
        place.hit.setAttribute("tabindex", "0");
        place.hit.setAttribute("role", "button");
        place.hit.setAttribute("aria-label", place.label + (id === selected ? ", selected" : ""));
        place.hit.setAttribute("aria-pressed", String(id === selected));
      } else {
        for (const name of ["tabindex", "role", "aria-pressed"]) place.hit.removeAttribute(name);
        place.hit.setAttribute("aria-hidden", "false");
      }
    }
  }

  function choose(found: Move[]): void {
    if (found.length === 1) {
      options.play(found[0]);
      return;
    }
    const dialog = h("dialog", { class: "chooser", "aria-label": "Choose" });
    for (const move of found) {
      const words = options.choices ? options.choices(move.choice ?? move.name) : (move.choice ?? move.name);
      const button = h("button", { type: "button", "data-choice": move.choice ?? move.name }, words);
      button.onclick = () => {
        dialog.close();
        options.play(move);
      };
      dialog.append(button);
    }
    dialog.onclose = () => dialog.remove();
    document.body.append(dialog);
    dialog.showModal();
  }

  function tryMove(from: string | null, to: string): boolean {
    let found = byPlace.filter((m) => m.from === from && m.to === to);
    if (!found.length) found = byPlace.filter((m) => m.from === null && m.to === to);
    if (!found.length) return false;
    selected = null;
    paint();
    choose(found);
    return true;
  }

  function activate(id: string): void {
    if (selected !== null && id !== selected && tryMove(selected, id)) return;
    if (selected === null && direct.has(id) && tryMove(null, id)) return;
    if (sources.has(id)) {
      selected = selected === id ? null : id;
      paint();
      const place = places.get(id) as Place;
      const names = [...targets(id)].map((t) => places.get(t)?.label ?? t);
      say(selected ? `${place.label} selected; it can go to ${names.join(", ")}` : "nothing selected");
      return;
    }
    refuse(id);
  }

  function refuse(id: string): void {
    if (selected !== null || options.moves.length) say(`${places.get(id)?.label ?? id}: not a legal move`);
    const hit = places.get(id)?.hit;
    if (hit && options.moves.length) {
      hit.classList.add("refused");
      setTimeout(() => hit.classList.remove("refused"), 300);
    }
    selected = null;
    paint();
  }

  const placeAt = (x: number, y: number): string | null =>
    document.elementFromPoint(x, y)?.closest("[data-place]")?.getAttribute("data-place") ?? null;

  function inDrawing(event: PointerEvent): DOMPoint {
    const matrix = svg.getScreenCTM();
    const point = new DOMPoint(event.clientX, event.clientY);
    return matrix ? point.matrixTransform(matrix.inverse()) : point;
  }

  svg.addEventListener("pointerdown", (event) => {
    const id = (event.target as Element).closest("[data-place]")?.getAttribute("data-place");
    if (!id || event.button !== 0) return;
    drag = { from: id, ghost: null, moved: false, x: event.clientX, y: event.clientY };
    if (sources.has(id)) event.preventDefault();
  });
  svg.addEventListener("pointermove", (event) => {
    if (!drag || !sources.has(drag.from)) return;
    if (!drag.moved && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 6) return;
    if (!drag.moved) {
      drag.moved = true;
      selected = drag.from;
      paint();
      const piece = drawing.piece(drag.from);
      if (piece) {
        const place = places.get(drag.from) as Place;
        drag.ghost = s("g", { class: "ghost", "data-x": place.x, "data-y": place.y }, piece.cloneNode(true) as SVGElement);
        svg.append(drag.ghost);
        piece.classList.add("lifted");
      }
    }
    if (drag.ghost) {
      const piece = drawing.piece(drag.from);
      const box = piece ? { x: Number(piece.getAttribute("data-x")), y: Number(piece.getAttribute("data-y")) } : { x: 0, y: 0 };
      const at = inDrawing(event);
      drag.ghost.setAttribute("transform", `translate(${at.x - box.x} ${at.y - box.y})`);
    }
  });
  const finish = (event: PointerEvent): void => {
    if (!drag) return;
    const { from, ghost, moved } = drag;
    drag = null;
    ghost?.remove();
    drawing.piece(from)?.classList.remove("lifted");
    const to = placeAt(event.clientX, event.clientY);
    if (!moved) {
      if (to === from && event.type === "pointerup") activate(from);
      return;
    }
    if (event.type !== "pointerup" || to === null || to === from || !tryMove(from, to)) {
      if (to !== null && to !== from) refuse(to);
      selected = null;
      paint();
    }
  };
  svg.addEventListener("pointerup", finish);
  svg.addEventListener("pointercancel", finish);
  svg.addEventListener("pointerleave", (event) => drag?.moved && finish(event));

  svg.addEventListener("keydown", (event) => {
    const id = (event.target as Element).closest("[data-place]")?.getAttribute("data-place");
    if (!id) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      const before = selected;
      activate(id);
      if (selected !== null && selected !== before) focusNear(id, [...targets(selected)]);
    } else if (event.key === "Escape") {
      selected = null;
      paint();
    } else if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      step(id, event.key);
    }
  });

  function focusNear(id: string, wanted: string[]): void {
    const here = places.get(id) as Place;
    const near = wanted
      .map((name) => places.get(name))
      .filter((p): p is Place => p !== undefined)
      .sort((a, b) => Math.hypot(a.x - here.x, a.y - here.y) - Math.hypot(b.x - here.x, b.y - here.y))[0];
    near?.hit.focus();
  }

  /** The focus goes to the nearest place in a direction that can be chosen. */
  function step(id: string, key: string): void {
    const here = places.get(id) as Place;
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] as [number, number];
    let best: Place | null = null;
    let least = Infinity;
    for (const place of places.values()) {
      if (place.id === id || !place.hit.hasAttribute("tabindex")) continue;
      const along = (place.x - here.x) * dx + (place.y - here.y) * dy;
      const aside = Math.abs((place.x - here.x) * dy) + Math.abs((place.y - here.y) * dx);
      if (along < 1 || along + 2.5 * aside >= least) continue;
      best = place;
      least = along + 2.5 * aside;
    }
    best?.hit.focus();
  }

  mark(drawing, options.marked ?? []);
  paint();
  return {
    select: (place) => {
      selected = place;
      paint();
    },
    hint: (steps) => {
      for (const place of places.values()) place.hit.classList.remove("hinted");
      for (const step of steps) for (const id of [step.from, step.to]) if (id) places.get(id)?.hit.classList.add("hinted");
    },
  };
}
