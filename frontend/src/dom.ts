// Elements from calls, and words for people who cannot see them.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | EventListener | undefined>;

function fill<T extends Element>(element: T, attributes: Attributes, children: Child[]): T {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** Makes what is shown like `next`. Elements that stay keep the focus, and are open if they were. */
export function renew(shown: Element, next: Element): void {
  for (const name of shown.getAttributeNames()) if (name !== "open" && !next.hasAttribute(name)) shown.removeAttribute(name);
  for (const name of next.getAttributeNames()) shown.setAttribute(name, next.getAttribute(name) ?? "");
  if (shown instanceof HTMLInputElement && next instanceof HTMLInputElement) shown.checked = next.checked;
  const old = [...shown.childNodes];
  const fresh = [...next.childNodes];
  fresh.forEach((node, place) => {
    const was = old[place];
    if (was instanceof Element && node instanceof Element && was.tagName === node.tagName) renew(was, node);
    else if (was instanceof Text && node instanceof Text) {
      if (was.data !== node.data) was.data = node.data;
    } else if (was) was.replaceWith(node);
    else shown.append(node);
  });
  for (const node of old.slice(fresh.length)) node.remove();
}

export function say(text: string): void {
  const place = document.getElementById("announce");
  if (place && place.textContent !== text) place.textContent = text;
}

const PATIENCE_MS = 4000;

/** Words while something is waited for; after a while they say why it takes so long. */
export function waiting(words: string): HTMLElement {
  const element = h("p", { class: "quiet" }, words);
  setTimeout(() => element.append(" What is done for the first time is compiled first; that can take a minute."), PATIENCE_MS);
  return element;
}

/** A number of things, in words. */
export const counted = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? "" : "s"}`;

export function select(
  label: string,
  options: [string, string][],
  value: string,
  change: (value: string) => void,
): HTMLLabelElement {
  const box = h("select", { onchange: () => change(box.value) });
  for (const [key, words] of options) box.append(h("option", { value: key, selected: key === value }, words));
  return h("label", { class: "field" }, h("span", {}, label), box);
}

export function signed(value: number | null, digits = 3): string {
  if (value === null) return "–";
  return (value >= 0 ? "+" : "−") + Math.abs(value).toFixed(digits);
}

export function percent(value: number): string {
  return (100 * value).toFixed(1) + " %";
}
