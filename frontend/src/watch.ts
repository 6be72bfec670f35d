// Watching: runs, their curves as they grow, alarms, workers, games of self-play; pause, resume and stop.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { get, listen, post, type Step } from "./api";
import { draw } from "./boards";
import { h, percent, renew, signed } from "./dom";
import { mark } from "./interact";
import type { Page } from "./main";
import { TITLES } from "./play";

interface Standing {
  name: string;
  game: string;
  status: string;
  step: number;
  rows: number;
  total_rows: number | null;
  seconds: number;
  ratings: { opponent: string; score: number; score_low: number; score_high: number }[];
  losses: Record<string, number | null>;
  age_seconds: number | null;
  message: string;
}
interface Whole extends Standing {
  alarms: any[];
  hardware: any;
  workers: any;
  selfplay: any;
  settings: string;
}
interface Curve {
  label: string;
  x: (number | null)[];
  y: (number | null)[];
  low: (number | null)[] | null;
  high: (number | null)[] | null;
}
interface Panel {
  title: string;
  x: string;
  y: string;
  log: boolean;
  range: [number, number] | null;
  curves: Curve[];
}
interface Curves {
  epoch: number;
  first: number;
  count: number;
  panels: Panel[];
}
const COLOURS = ["#1f77b4", "#d95f02", "#2a9d4e", "#b5429a", "#8c6d1f", "#5b5bd6", "#c0392b", "#2b8c8c"];
const fine = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

function rating(run: Standing): string {
  const last = run.ratings[run.ratings.length - 1];
  return last ? `${percent(last.score)} against ${last.opponent}` : "–";
}

export function runsPage(): Page {
  const place = h("div", { class: "scroll" }, h("p", { class: "quiet" }, "Loading…"));
  const compare = h("button", { type: "button", disabled: true, hidden: true }, "Compare");
  const chosen = new Set<string>();
  const element = h("section", {}, h("h1", {}, "Training runs"), place, h("p", {}, compare));
  async function load(): Promise<void> {
    try {
      const { runs } = await get<{ runs: Standing[] }>("runs");
      if (!runs.length) {
        place.replaceChildren(h("p", {}, "There are no runs here. Start one: ", h("code", {}, "alea train backgammon --preset quick"), ", or name a folder: ", h("code", {}, "alea web --run DIR")));
        return;
      }
      compare.hidden = runs.length < 2;
      const head = ["", "run", "game", "status", "step", "rows", "rating", "last report"];
      const rows = runs.map((run) => {
        const tick = h("input", { type: "checkbox", "aria-label": `compare ${run.name}`, "data-run": run.name, checked: chosen.has(run.name) });
        const age = run.age_seconds === null ? "–" : `${short.format(run.age_seconds)} s ago`;
        const cells = [run.game, run.status, short.format(run.step), short.format(run.rows), rating(run), age];
        return h("tr", {}, h("td", {}, tick), h("td", {}, h("a", { href: `#/watch/${encodeURIComponent(run.name)}` }, run.name)), ...cells.map((cell) => h("td", {}, cell)));
      });
      const table = h("table", { class: "runs" }, h("thead", {}, h("tr", {}, ...head.map((word) => h("th", { scope: "col" }, word)))), h("tbody", {}, ...rows));
      renew(place, h("div", { class: "scroll" }, table));
    } catch (error) {
      place.replaceChildren(h("p", { class: "trouble" }, (error as Error).message));
    }
  }
  place.onchange = (event) => {
    const tick = event.target as HTMLInputElement;
    if (tick.checked) chosen.add(tick.dataset.run ?? "");
    else chosen.delete(tick.dataset.run ?? "");
    compare.disabled = chosen.size < 2;
  };
  compare.onclick = () => {
    const [first, ...others] = [...chosen];
    location.hash = `#/watch/${encodeURIComponent(first)}?with=${encodeURIComponent(others.join(","))}`;
  };
  void load();
  const timer = setInterval(() => void load(), 5000);
  return { element, leave: () => clearInterval(timer) };
}

/** A chart whose points only ever grow; redrawn at most once a frame, whatever comes. */
class Chart {
  readonly element = h("figure", { class: "chart" });
  private readonly series = new Map<string, Curve>();
  private plot: uPlot | null = null;
  private waiting = false;
  private panel: Panel;

  constructor(panel: Panel) {
    this.panel = panel;
    this.element.append(h("figcaption", {}, panel.title));
  }

  /** Forgets the curves of a run, which has gone back. */
  clear(prefix: string): void {
    for (const label of [...this.series.keys()]) if (label.startsWith(prefix)) this.series.delete(label);
    this.later();
  }

  add(curves: Curve[], prefix: string): void {
    for (const curve of curves) {
      const label = prefix + curve.label;
      const known = this.series.get(label);
      if (!known) this.series.set(label, { ...curve, label });
      else {
        for (const key of ["x", "y", "low", "high"] as const) {
          const more = curve[key];
          const mine = known[key];
          if (more && mine) for (const value of more) mine.push(value);
        }
      }
    }
    this.later();
  }

  later(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  private data(): [uPlot.AlignedData, uPlot.Series[], uPlot.Band[]] {
    const tables: uPlot.AlignedData[] = [];
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    let colour = 0;
    for (const curve of this.series.values()) {
      const stroke = COLOURS[colour++ % COLOURS.length];
      const rows = curve.x.map((x, i) => [x, i] as const).filter((row): row is readonly [number, number] => row[0] !== null);
      rows.sort((a, b) => a[0] - b[0]);
      const column = (values: (number | null)[]): (number | null)[] =>
        rows.map(([, i]) => (this.panel.log && (values[i] ?? 0) <= 0 ? null : values[i]));
      const x = rows.map(([at]) => at);
      const table: any[] = [x, column(curve.y)];
      series.push({ label: curve.label, stroke, width: 1.6, spanGaps: true, points: { show: rows.length < 40, size: 4 }, value: (_: uPlot, v: number) => (v === null ? "–" : short.format(v)) });
      if (curve.low && curve.high) {
        table.push(column(curve.high), column(curve.low));
        const hidden = { stroke: "transparent", width: 0, spanGaps: true, points: { show: false } };
        bands.push({ series: [series.length, series.length + 1], fill: stroke + "30" });
        series.push({ ...hidden, label: `${curve.label} high` }, { ...hidden, label: `${curve.label} low` });
      }
      tables.push(table as unknown as uPlot.AlignedData);
    }
    return [tables.length ? uPlot.join(tables) : [[]], series, bands];
  }

  private draw(): void {
    const [data, series, bands] = this.data();
    if (this.plot && this.plot.series.length === series.length) {
      this.plot.setData(data);
      return;
    }
    this.plot?.destroy();
    const ink = getComputedStyle(document.body).color;
    const grid = { stroke: ink + "", width: 0.1 };
    const axis = { stroke: ink, grid, ticks: grid, font: "11px system-ui" };
    const options: uPlot.Options = {
      width: Math.max(this.element.clientWidth - 8, 260),
      height: 230,
      series,
      bands,
      scales: { x: { time: false }, y: this.panel.log ? { distr: 3 } : this.panel.range ? { range: this.panel.range } : {} },
      axes: [{ ...axis, label: this.panel.x, values: (_, ticks) => ticks.map((t) => short.format(t)) }, { ...axis, size: 56, values: (_, ticks) => ticks.map((t) => (t === null ? "" : fine.format(t))) }],
      legend: { live: false },
    };
    this.plot = new uPlot(options, data, this.element);
    const rows = this.element.querySelectorAll(".u-legend .u-series");
    series.forEach((one, i) => i > 0 && one.width === 0 && rows[i - 1]?.remove()); // bounds of an interval need no name; x has no row
  }

  resize(): void {
    this.plot?.setSize({ width: Math.max(this.element.clientWidth - 8, 260), height: 230 });
  }
}

export function runPage(name: string, given: URLSearchParams): Page {
  const others = (given.get("with") ?? "").split(",").filter(Boolean);
  const names = [name, ...others];
  const facts = h("div", { class: "facts" });
  const trouble = h("p", { class: "trouble", role: "alert" });
  const said = h("p", { class: "said", role: "status" });
  const charts = h("div", { class: "charts" });
  const replay = h("div", { class: "replay" });
  const orders = h("div", { class: "buttons" });
  const element = h("section", { class: "run" }, h("h1", {}, names.join(" and ")), facts, orders, said, trouble, charts, others.length ? "" : replay);
  const known = new Map<string, Chart>();
  const stops: (() => void)[] = [];
  const path = (run: string): string => `runs/${encodeURIComponent(run)}`;

  function follow(run: string): void {
    const prefix = others.length ? `${run}: ` : "";
    let state = { epoch: 0, count: 0 };
    let loading = false;
    let more = false;
    const load = async (): Promise<void> => {
      if (loading) {
        more = true;
        return;
      }
      loading = true;
      try {
        const found = await get<Curves>(`${path(run)}/curves?since=${state.count}&epoch=${state.epoch}`);
        if (found.first === 0 && state.count > 0) for (const chart of known.values()) chart.clear(prefix);
        state = { epoch: found.epoch, count: found.count };
        for (const panel of found.panels) {
          let chart = known.get(panel.title);
          if (!chart) {
            chart = new Chart(panel);
            known.set(panel.title, chart);
            charts.append(chart.element);
          }
          chart.add(panel.curves, prefix);
        }
        element.setAttribute("data-reports", String(state.count));
        trouble.textContent = "";
      } catch (error) {
        trouble.textContent = (error as Error).message;
      }
      loading = false;
      if (more) {
        more = false;
        void load();
      }
    };
    stops.push(listen(`${path(run)}/live`, () => void load(), (away) => element.classList.toggle("away", away)));
  }

  /** How a run stands, in a few lines. */
  function lines(run: Whole): [string, string][] {
    const done = run.total_rows ? ` (${percent(run.rows / run.total_rows)})` : "";
    const found: [string, string][] = [
      ["status", run.status + (run.message ? `: ${run.message}` : "")],
      ["game", TITLES[run.game] ?? run.game],
      ["rows", short.format(run.rows) + done],
      ["step", short.format(run.step)],
      ["rating", rating(run)],
    ];
    if (run.selfplay) found.push(["games", `${short.format(run.selfplay.games)}, ${short.format(run.selfplay.games_per_second)} a second`]);
    const gpus = Object.entries<number>(run.hardware?.gpu_utilization_percent ?? {}).map(([gpu, busy]) => `, GPU ${gpu} ${busy.toFixed(0)} %`);
    if (run.hardware) found.push(["machine", `CPU ${run.hardware.cpu_percent?.toFixed(0)} %, memory ${run.hardware.memory_percent?.toFixed(0)} %${gpus.join("")}`]);
    if (run.workers) found.push(["workers", Object.entries(run.workers.active ?? {}).map(([role, count]) => `${count} ${role}`).join(", ") || "none"]);
    return found;
  }

  function beside(all: Whole[]): HTMLElement {
    const columns = all.map((run) => new Map(lines(run)));
    const keys = [...new Set(columns.flatMap((column) => [...column.keys()]))];
    const head = h("tr", {}, h("td"), ...all.map((run) => h("th", { scope: "col" }, h("a", { href: `#/watch/${encodeURIComponent(run.name)}` }, run.name))));
    const rows = keys.map((key) => h("tr", {}, h("th", { scope: "row" }, key), ...columns.map((column) => h("td", { "data-fact": key }, column.get(key) ?? "–"))));
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Runs beside each other" }, h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows)));
  }

  async function refresh(): Promise<void> {
    try {
      const all = await Promise.all(names.map((one) => get<Whole>(path(one))));
      if (others.length) {
        renew(facts, h("div", { class: "facts" }, beside(all)));
        return;
      }
      const run = all[0];
      const list = h("dl", {}, ...lines(run).flatMap(([key, words]) => [h("dt", {}, key), h("dd", { "data-fact": key }, words)]));
      const alarms = run.alarms.map((alarm) => h("p", { class: `alarm ${alarm.level}` }, `${alarm.name}: ${alarm.message} (${alarm.setting})`));
      const settings = h("details", {}, h("summary", {}, "Settings"), h("pre", {}, run.settings));
      renew(facts, h("div", { class: "facts" }, list, h("div", {}, ...alarms), settings));
      const running = run.status === "training" || run.status === "paused";
      const buttons = (["pause", "resume", "stop"] as const).map((what) => {
        const on = what === "pause" ? run.status === "training" : what === "resume" ? run.status === "paused" : running;
        return h("button", { type: "button", disabled: !on, "data-do": what, onclick: () => void order(what) }, what[0].toUpperCase() + what.slice(1));
      });
      renew(orders, h("div", { class: "buttons" }, ...buttons));
    } catch (error) {
      trouble.textContent = (error as Error).message;
    }
  }
  async function order(what: string): Promise<void> {
    if (!confirm(`${what} run ${name}?`)) return;
    said.textContent = trouble.textContent = "";
    try {
      said.textContent = (await post<{ message: string }>(`${path(name)}/${what}`, { confirm: name })).message;
    } catch (error) {
      trouble.textContent = (error as Error).message;
    }
    await refresh();
  }

  names.forEach(follow);
  void refresh();
  const timer = setInterval(() => void refresh(), 3000);
  const resized = (): void => known.forEach((chart) => chart.resize());
  window.addEventListener("resize", resized);
  if (!others.length) replay.append(replayPart(name));
  return {
    element,
    leave: () => {
      clearInterval(timer);
      window.removeEventListener("resize", resized);
      for (const stop of stops) stop();
    },
  };
}

interface Frame {
  board: any;
  to_play: number;
  chance: string; // what nature drew before it
  name: string;
  steps: Step[];
  value: number | null;
  position: string;
}

/** Games of self-play, move by move. */
function replayPart(run: string): HTMLElement {
  const list = h("div", { class: "gamelist" });
  const place = h("div", { class: "boardplace small" });
  const caption = h("p", { class: "quiet" });
  const slider = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Move" });
  const body = h("div", {}, place, slider, caption);
  body.hidden = true;
  let frames: Frame[] = [];
  const show = (): void => {
    const number = Number(slider.value);
    const frame = frames[number];
    const drawing = draw(frame.board, { flip: false, chance: frame.chance, toPlay: frame.to_play });
    if (!(drawing instanceof HTMLElement)) mark(drawing, frame.steps);
    place.replaceChildren(drawing instanceof HTMLElement ? drawing : drawing.svg);
    const words = [frame.chance && `${frame.chance}:`, frame.name].filter(Boolean).join(" ");
    caption.textContent = `${number + 1} of ${frames.length}: ${words}` + (frame.value === null ? "" : `, value ${signed(frame.value)}`);
  };
  slider.oninput = show;
  const load = h("button", { type: "button" }, "Show games of self-play");
  load.onclick = async () => {
    try {
      const { games } = await get<{ games: { id: string; moves: number; points: number | null }[] }>(`runs/${encodeURIComponent(run)}/games`);
      list.replaceChildren(
        ...games.map((game) => {
          const words = `${game.moves} moves, ${game.points === null ? "stopped" : signed(game.points, 0)}`;
          const button = h("button", { type: "button" }, words);
          button.onclick = async () => {
            frames = (await get<{ frames: Frame[] }>(`runs/${encodeURIComponent(run)}/games/${encodeURIComponent(game.id)}`)).frames;
            slider.max = String(frames.length - 1);
            slider.value = "0";
            body.hidden = false;
            show();
          };
          return button;
        }),
      );
      if (!games.length) list.textContent = "The run's replay log holds no whole game.";
    } catch (error) {
      list.textContent = (error as Error).message;
    }
  };
  return h("div", {}, h("h2", {}, "Games"), load, list, body);
}
