// Two clocks beside a board. The server's time counts; between its messages the page only counts down what it was told.

import { h, say } from "./dom";

export interface Time {
  left: number[];
  running: number | null;
  seconds: number;
  increment: number;
}
const SHORT = 20; // seconds from which on tenths are shown, and it is said aloud

export function words(seconds: number): string {
  const left = Math.max(seconds, 0);
  if (left < SHORT) return left.toFixed(1);
  const whole = Math.ceil(left);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const tail = `${hours ? String(minutes).padStart(2, "0") : minutes}:${String(whole % 60).padStart(2, "0")}`;
  return hours ? `${hours}:${tail}` : tail;
}

export class Clocks {
  readonly element = h("div", { class: "clocks" });
  private readonly faces: HTMLElement[] = [];
  private time: Time | null = null;
  private told = 0; // when that was true
  private timer = 0;
  private warned = false;

  show(time: Time | null, names: string[]): void {
    this.time = time;
    this.told = performance.now();
    this.element.hidden = time === null;
    if (!time) return;
    if (!this.faces.length) {
      for (const seat of [0, 1]) {
        const face = h("span", { class: "time" });
        this.faces.push(face);
        this.element.append(h("span", { class: "clock", role: "timer", "data-clock": seat, "aria-label": `clock of ${names[seat]}` }, h("span", { class: "who" }, names[seat]), face));
      }
    }
    if (time.running === null) this.warned = false;
    this.tick();
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private tick(): void {
    clearTimeout(this.timer);
    const time = this.time;
    if (!time) return;
    const gone = (performance.now() - this.told) / 1000;
    this.faces.forEach((face, seat) => {
      const left = time.left[seat] - (seat === time.running ? gone : 0);
      face.textContent = words(left);
      const box = face.parentElement as HTMLElement;
      box.classList.toggle("running", seat === time.running);
      box.classList.toggle("short", left < SHORT);
      if (seat === time.running && left < SHORT && left > 0 && !this.warned) {
        this.warned = true;
        say(`${words(left)} seconds left`);
      }
    });
    if (time.running !== null) this.timer = window.setTimeout(() => this.tick(), 100);
  }
}
