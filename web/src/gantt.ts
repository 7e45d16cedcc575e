// SPDX-License-Identifier: Apache-2.0
// Who held which GPUs: a canvas that can be zoomed and moved in time and over the rows, by pointer,
// keyboard and buttons. Drawn by hand, since ECharts slows down at 100,000 bars.

import { CardPanel, button, chartCard, fileButtons, segments } from "./card";
import type { Gantt, ReportData, Run } from "./data";
import { h, plainTable } from "./dom";
import { type Cell, count, csv, decimal, duration, gpuHours, percent, plural } from "./format";
import { Drawing, type Frame, RIGHT, type RowsAs, clamp } from "./ganttDrawing";
import { Bars, type Categories, type ColorBy, Rows, categoriesOf, colorings } from "./ganttModel";
import { ownerColor, ownersOf } from "./owners";
import { CanvasPainter, SvgPainter } from "./painter";
import { PICTURE_FONT, PICTURE_WIDTH, PRINT_WIDTH } from "./panel";
import { type Item, SCREEN_FONT, legendLines, timeSpan } from "./parts";
import { type Shared, missingNote } from "./shared";
import { LIGHT, type Theme, currentTheme, isPrinting } from "./theme";

const TITLE = "GPUs and their jobs";
const TOP = 8;
const FOOT = 48;
const LEAST_SPAN = 1e-5; // of the whole time
const NAMES: Record<ColorBy, string> = { model: "Model", user: "User", queue: "Queue", job: "Job" };

export const hasGantt = (run: Run): boolean => run.gantt !== null;

export class GanttPanel extends CardPanel {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { class: "gantt-canvas" });
  private readonly view = h(
    "div",
    { class: "gantt", tabindex: 0, role: "application", "aria-roledescription": "Gantt chart", "aria-describedby": "gantt-how gantt-keys" },
    this.canvas,
  );
  private readonly tip = h("div", { class: "gantt-tip", hidden: true });
  private readonly status = h("p", { class: "gantt-status", role: "status" });
  private readonly legend = h("div", { class: "key", role: "group", "aria-label": "Colours" });
  private readonly dataBox = h("div");
  private readonly whole = button("Whole", { title: "All of the time and all rows (key 0)" }, () => this.showAll());
  private readonly rows: Rows;
  private readonly items: readonly Item[];
  private readonly barsOf = new Map<number, Bars>();
  private readonly colors = new Map<ColorBy, Categories>();
  private item: Item;
  private tabled: Item | null = null;
  private as: RowsAs;
  private by: ColorBy;
  /** In GPUs. */
  private top = 0;
  private bottom: number;
  private marked: number | null = null;
  private waiting = false;

  constructor(
    private readonly data: ReportData,
    private readonly shared: Shared,
  ) {
    super();
    this.rows = new Rows(data.cluster.node);
    this.bottom = this.rows.gpus;
    this.items = shared.items.filter(({ run }) => hasGantt(run));
    this.item = this.items[0] as Item;
    this.as = this.rows.gpus <= 1024 ? "gpus" : "nodes";
    this.by = colorings(data.jobs)[0] as ColorBy;
    this.element = this.build();
    this.listenToPointers();
    this.view.addEventListener("keydown", (event) => this.onKey(event));
    shared.listen(() => this.redraw());
  }

  // ---- the parts of the card ------------------------------------------------------------------

  private build(): HTMLElement {
    const tools = [
      segments(
        {
          name: "Rows",
          options: [
            { value: "gpus", name: "GPUs" },
            { value: "nodes", name: "Nodes" },
          ],
          initial: this.as,
        },
        (value) => {
          this.as = value as RowsAs;
          this.redraw();
        },
      ),
      this.select("Colour", colorings(this.data.jobs).map((by) => ({ value: by, name: NAMES[by] })), (value) => {
        this.by = value as ColorBy;
        this.redraw();
      }),
      ...fileButtons("gantt", TITLE, { svg: () => this.picture(), csv: () => this.csv() }),
    ];
    return chartCard({
      id: "gantt",
      title: TITLE,
      how: "Each bar is a job on the GPUs that it held; gaps are idle GPUs. With nodes as rows, a colour is as strong as the node is full. The part of the time is shared with the charts above.",
      wide: true,
      tools,
      body: [missingNote(this.shared, hasGantt), this.runChoice(), this.controls(), this.view, this.tip, this.legend, this.status, this.keys()],
      table: this.dataBox,
    });
  }

  private select(name: string, options: { value: string; name: string }[], chosen: (value: string) => void): HTMLElement {
    const list = h(
      "select",
      { "data-select": name.toLowerCase() },
      ...options.map((option) => h("option", { value: option.value }, option.name)),
    );
    list.addEventListener("change", () => chosen(list.value));
    return h("label", { class: "select" }, h("span", {}, name), list);
  }

  private runChoice(): HTMLElement | null {
    if (this.items.length < 2) return null;
    return this.select(
      "Run",
      this.items.map(({ run, index }) => ({ value: String(index), name: run.label })),
      (value) => {
        this.item = this.items.find(({ index }) => String(index) === value) ?? this.item;
        this.redraw();
      },
    );
  }

  private controls(): HTMLElement {
    const find = h("input", { type: "search", "aria-label": "Find a job by its name", placeholder: "Job name", autocomplete: "off", spellcheck: "false" });
    const form = h("form", { class: "find" }, find, h("button", { class: "button" }, "Find job"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.find(find.value.trim());
    });
    const step = (name: string, title: string, act: () => void): HTMLElement => button(name, { title, "aria-label": title }, act);
    return h(
      "div",
      { class: "controls" },
      h(
        "div",
        { class: "tools", role: "group", "aria-label": "Part of the chart" },
        step("−", "Zoom out in time", () => this.zoomTime(2)),
        step("+", "Zoom in, in time", () => this.zoomTime(0.5)),
        step("◀", "Earlier", () => this.moveTime(-0.25)),
        step("▶", "Later", () => this.moveTime(0.25)),
        step("Fewer rows", "Fewer and higher rows", () => this.zoomRows(0.5)),
        step("More rows", "More and lower rows", () => this.zoomRows(2)),
        this.whole,
      ),
      form,
    );
  }

  private keys(): HTMLElement {
    return h(
      "p",
      { class: "note", id: "gantt-keys" },
      "Drag to move, double-click or Ctrl and the wheel to zoom. With the chart focused: ← → move in time, + and − zoom, ↑ ↓ move over the rows, Shift with ↑ ↓ shows fewer or more rows, 0 shows all.",
    );
  }

  // ---- what is shown --------------------------------------------------------------------------

  private get gantt(): Gantt {
    return this.item.run.gantt as Gantt;
  }

  private get bars(): Bars {
    let bars = this.barsOf.get(this.item.index);
    if (!bars) {
      bars = new Bars(this.gantt, this.rows);
      this.barsOf.set(this.item.index, bars);
    }
    return bars;
  }

  private get categories(): Categories {
    let categories = this.colors.get(this.by);
    if (!categories) {
      const gantts = this.items.map(({ run }) => run.gantt as Gantt);
      categories = categoriesOf(this.data.jobs, gantts, this.by);
      this.colors.set(this.by, categories);
    }
    return categories;
  }

  private get span(): number {
    return Math.max(timeSpan(this.shared.visible()), 1e-3);
  }

  private frame(width: number, height: number, top: number): Frame {
    const narrow = width < 520;
    const left = narrow ? 62 : 92;
    const { zoom } = this.shared;
    return {
      area: { x: left, y: top, width: width - left - (narrow ? 8 : RIGHT), height: height - top - FOOT },
      from: (this.span * zoom.start) / 100,
      to: (this.span * zoom.end) / 100,
      top: this.top,
      bottom: this.bottom,
    };
  }

  private height(): number {
    return TOP + FOOT + clamp(this.rows.gpus * 7, 120, 460);
  }

  private setTime(from: number, to: number): void {
    const length = clamp(to - from, 100 * LEAST_SPAN, 100);
    const start = clamp(from, 0, 100 - length);
    this.shared.setZoom(start, start + length, this);
  }

  /** Longer by a factor, around a place in the part that is shown. */
  private zoomTime(factor: number, place = 0.5): void {
    const { start, end } = this.shared.zoom;
    const at = start + (end - start) * place;
    this.setTime(at - (at - start) * factor, at + (end - at) * factor);
  }

  private moveTime(share: number): void {
    const { start, end } = this.shared.zoom;
    const by = (end - start) * share;
    const from = clamp(start + by, 0, 100 - (end - start));
    this.setTime(from, from + (end - start));
  }

  private setRows(top: number, rows: number): void {
    const shown = clamp(rows, Math.min(4, this.rows.gpus), this.rows.gpus);
    this.top = clamp(top, 0, this.rows.gpus - shown);
    this.bottom = this.top + shown;
    this.redraw();
  }

  /** Around the job that was found, or the middle. */
  private zoomRows(factor: number): void {
    const shown = this.bottom - this.top;
    const found = this.marked === null ? null : this.rowOf(this.marked);
    const inView = found !== null && found >= this.top && found < this.bottom;
    const at = inView ? found : (this.top + this.bottom) / 2;
    this.setRows(at - (shown * factor) / 2, shown * factor);
  }

  /** The first GPU of the job's first bar. */
  private rowOf(job: number): number | null {
    const bar = this.bars.of(job)[0];
    if (bar === undefined) return null;
    return (this.rows.first[this.gantt.node[bar] as number] as number) + (this.gantt.first_gpu[bar] as number);
  }

  private moveRows(share: number): void {
    const shown = this.bottom - this.top;
    this.setRows(this.top + shown * share, shown);
  }

  private showAll(): void {
    this.top = 0;
    this.bottom = this.rows.gpus;
    this.marked = null;
    this.status.textContent = "";
    this.shared.setZoom(0, 100, this);
  }

  private find(name: string): void {
    const job = this.data.jobs.name.indexOf(name);
    const bars = job < 0 ? [] : this.bars.of(job);
    this.marked = bars.length > 0 ? job : null;
    if (bars.length === 0) {
      this.status.textContent =
        job < 0
          ? `No job of the charts has the name “${name}”.`
          : `Job ${name} has no bar under ${this.item.run.label}.`;
      this.redraw();
      return;
    }
    const { start, length } = this.gantt;
    const first = start[bars[0] as number] as number;
    const last = Math.max(...bars.map((i) => (start[i] as number) + (length[i] as number)));
    const margin = Math.max(last - first, this.span / 50);
    this.status.textContent = `${this.describe(job)}: ${plural(bars.length, "bar")}, from ${duration(first)} to ${duration(last)}.`;
    const row = this.rowOf(job) ?? 0;
    if (row < this.top || row >= this.bottom) this.setRows(row - (this.bottom - this.top) / 2, this.bottom - this.top);
    this.setTime(((first - margin) / this.span) * 100, ((last + margin) / this.span) * 100);
  }

  private describe(job: number): string {
    const { jobs } = this.data;
    const facts = [
      plural(jobs.gpus[job] ?? 0, "GPU"),
      ...(["model", "user", "queue"] as const).map((by) => jobs[by].names[jobs[by].of[job] ?? -1] ?? ""),
    ];
    return `Job ${jobs.name[job]} (${facts.filter((fact) => fact !== "").join(", ")})`;
  }

  // ---- pointer and keyboard -------------------------------------------------------------------

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts: Record<string, () => void> = {
      ArrowLeft: () => this.moveTime(-0.1),
      ArrowRight: () => this.moveTime(0.1),
      ArrowUp: () => (event.shiftKey ? this.zoomRows(0.5) : this.moveRows(-0.1)),
      ArrowDown: () => (event.shiftKey ? this.zoomRows(2) : this.moveRows(0.1)),
      "+": () => this.zoomTime(0.5),
      "=": () => this.zoomTime(0.5),
      "-": () => this.zoomTime(2),
      "0": () => this.showAll(),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  private listenToPointers(): void {
    const pointers = new Map<number, { x: number; y: number }>();
    const place = (x: number): number => {
      const { area } = this.frame(this.width, this.height(), TOP);
      return clamp((x - area.x) / area.width, 0, 1);
    };
    const local = (event: { clientX: number; clientY: number }): { x: number; y: number } => {
      const box = this.canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, local(event));
      this.canvas.setPointerCapture(event.pointerId);
    });
    const end = (event: PointerEvent): void => void pointers.delete(event.pointerId);
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
    this.canvas.addEventListener("pointermove", (event) => {
      const now = local(event);
      const before = pointers.get(event.pointerId);
      if (!before) {
        this.hover(now);
        return;
      }
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      pointers.set(event.pointerId, now);
      if (other) {
        const [far, near] = [Math.abs(now.x - other.x), Math.abs(before.x - other.x)];
        if (far > 10 && near > 10) this.zoomTime(near / far, place((now.x + other.x) / 2));
      } else {
        this.drag(now.x - before.x, now.y - before.y);
      }
    });
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("dblclick", (event) => this.zoomTime(event.shiftKey ? 2 : 0.5, place(local(event).x)));
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        if (event.ctrlKey || event.metaKey) {
          event.preventDefault();
          this.zoomTime(2 ** (event.deltaY / 200), place(local(event).x));
        } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          event.preventDefault();
          this.drag(-event.deltaX, 0);
        }
      },
      { passive: false },
    );
  }

  private drag(x: number, y: number): void {
    const { area } = this.frame(this.width, this.height(), TOP);
    this.tip.hidden = true;
    if (this.bottom - this.top < this.rows.gpus && y !== 0) this.moveRows(-y / area.height);
    if (x !== 0) this.moveTime(-x / area.width);
  }

  private hover(at: { x: number; y: number }): void {
    const frame = this.frame(this.width, this.height(), TOP);
    const { area } = frame;
    const inside = at.x >= area.x && at.x < area.x + area.width && at.y >= area.y && at.y < area.y + area.height;
    this.tip.hidden = !inside;
    if (!inside) return;
    const seconds = frame.from + ((at.x - area.x) / area.width) * (frame.to - frame.from);
    const row = clamp(frame.top + ((at.y - area.y) / area.height) * (frame.bottom - frame.top), 0, this.rows.gpus - 1e-6);
    this.tip.replaceChildren(...this.tipLines(seconds, row));
    const left = this.canvas.offsetLeft + at.x;
    const right = left > this.width * 0.6;
    this.tip.style.left = right ? "" : `${left + 14}px`;
    this.tip.style.right = right ? `${(this.element.clientWidth || this.width) - left + 14}px` : "";
    this.tip.style.top = `${this.view.offsetTop + at.y + 14}px`;
  }

  private tipLines(seconds: number, row: number): HTMLElement[] {
    const node = this.rows.nodeAt(row);
    const name = this.rows.node.name[node] ?? String(node);
    const lines: string[] = [];
    if (this.as === "gpus") {
      const gpu = Math.floor(row) - (this.rows.first[node] as number);
      lines.push(`${name}, GPU ${gpu}, after ${duration(seconds)}`);
      const bars = this.bars.at(seconds, row);
      for (const i of bars.slice(0, 4)) lines.push(this.describe(this.gantt.job[i] as number), this.barLine(i));
      if (bars.length === 0) lines.push("Held by no job that is shown");
    } else {
      const gpus = this.rows.node.gpus[node] as number;
      const on = this.bars.onNode(node).filter((i) => {
        const start = this.gantt.start[i] as number;
        return start <= seconds && seconds < start + (this.gantt.length[i] as number);
      });
      const held = on.reduce((sum, i) => sum + (this.gantt.gpus[i] as number), 0);
      lines.push(`${name} after ${duration(seconds)}`, `${count(held)} of ${plural(gpus, "GPU")} held by ${plural(on.length, "job")}`);
      for (const i of on.slice(0, 6)) lines.push(this.describe(this.gantt.job[i] as number));
    }
    return lines.map((line, i) => h("div", { class: i === 0 ? "tip-head" : undefined }, line));
  }

  private barLine(i: number): string {
    const start = this.gantt.start[i] as number;
    const length = this.gantt.length[i] as number;
    const submit = this.data.jobs.submit[this.gantt.job[i] as number];
    const since = submit === undefined ? "" : `, submitted after ${duration(submit)}`;
    return `held from ${duration(start)} for ${duration(length)}${since}`;
  }

  // ---- drawing --------------------------------------------------------------------------------

  redraw(): void {
    this.whole.disabled = !this.shared.zoomed && this.bottom - this.top >= this.rows.gpus && this.marked === null;
    if (isPrinting()) {
      this.draw();
      return;
    }
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  private label(frame: Frame): string {
    const rows =
      this.bottom - this.top >= this.rows.gpus
        ? "all GPUs"
        : `GPUs ${Math.floor(this.top) + 1} to ${Math.ceil(this.bottom)} of ${this.rows.gpus}`;
    return `${TITLE}, run ${this.item.run.label}: ${rows}, from ${duration(frame.from)} to ${duration(frame.to)}`;
  }

  private draw(): void {
    const width = isPrinting() ? PRINT_WIDTH : this.width;
    if (width <= 0) return;
    const height = this.height();
    const dense = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * dense);
    this.canvas.height = Math.round(height * dense);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.scale(dense, dense);
    const theme = currentTheme();
    const frame = this.frame(width, height, TOP);
    const painter = new CanvasPainter(context, SCREEN_FONT);
    new Drawing(this.data.jobs, this.bars, this.rows, this.categories, theme, frame, painter).draw(this.as, this.marked);
    this.view.setAttribute("aria-label", this.label(frame));
    this.drawLegend(theme);
    if (this.tabled !== this.item) {
      this.tabled = this.item;
      this.dataBox.replaceChildren(plainTable(this.table()));
    }
  }

  private legendEntries(theme: Theme): { name: string; color: string }[] {
    return ownersOf(this.categories).map(({ category, name }) => ({ name, color: ownerColor(theme, category) }));
  }

  private drawLegend(theme: Theme): void {
    const entries = this.legendEntries(theme);
    const notes: string[] = [];
    if (entries.length === 0) notes.push("A colour only tells a job from its neighbours.");
    if (this.gantt.bars_left_out > 0) {
      notes.push(`The ${count(this.gantt.bars_left_out)} smallest bars are drawn together, in grey.`);
    }
    if (!this.gantt.complete) notes.push("There were too many bars to record: the last part of the run is missing.");
    this.legend.replaceChildren(
      ...entries.map(({ name, color }) =>
        h("span", { class: "key-entry" }, h("span", { class: "key-mark", style: `background: ${color}` }), name),
      ),
      ...notes.map((note) => h("span", { class: "key-note" }, note)),
    );
  }

  private table(): { caption: string; header: string[]; rows: string[][] } {
    const held = this.bars.heldByNode();
    const { run } = this.item;
    const shown = held.slice(0, 100);
    const span = timeSpan([this.item]);
    return {
      caption: `GPU time held on every node under ${run.label}${held.length > shown.length ? "; the first 100 nodes, all bars are in the CSV" : ""}`,
      header: ["Node", "GPUs", "Bars", "Held", "Share of its time"],
      rows: shown.map((seconds, node) => {
        const gpus = this.rows.node.gpus[node] as number;
        return [
          this.rows.node.name[node] ?? String(node),
          count(gpus),
          count(this.bars.onNode(node).length),
          gpuHours(seconds),
          span > 0 ? percent(seconds / (gpus * span)) : decimal(null),
        ];
      }),
    };
  }

  // ---- files ----------------------------------------------------------------------------------

  /** What is shown now, on white and with a title and a legend. */
  private picture(): string {
    const entries = this.legendEntries(LIGHT);
    const lines = legendLines(
      entries.map(({ name }) => name),
      PICTURE_WIDTH - 60,
      14,
    );
    const top = 40;
    const height = this.height() + top - TOP;
    const full = height + lines.length * 20 + (lines.length > 0 ? 6 : 0);
    const painter = new SvgPainter(PICTURE_FONT);
    painter.rects([{ x: 0, y: 0, width: PICTURE_WIDTH, height: full }], LIGHT.surface);
    painter.text(`${TITLE}: ${this.item.run.label}`, 8, 18, { color: LIGHT.text, align: "left", bold: true, size: 16 });
    const frame = this.frame(PICTURE_WIDTH, height, top);
    new Drawing(this.data.jobs, this.bars, this.rows, this.categories, LIGHT, frame, painter).draw(this.as, this.marked);
    let next = 0;
    lines.forEach((line, row) => {
      let x = frame.area.x;
      const y = height + row * 20;
      for (const name of line) {
        painter.rects([{ x, y, width: 12, height: 12 }], entries[next++]?.color ?? LIGHT.muted);
        painter.text(name, x + 17, y + 6, { color: LIGHT.text, align: "left" });
        x += 17 + painter.textWidth(name) + 18;
      }
    });
    return painter.file(PICTURE_WIDTH, full);
  }

  private csv(): string {
    const { gantt, rows, data } = this;
    const { jobs } = data;
    const named = (by: "user" | "queue" | "model", job: number): string => jobs[by].names[jobs[by].of[job] ?? -1] ?? "";
    const run: Run = this.item.run;
    return csv(
      ["run", "job", "user", "queue", "model", "node", "first_gpu", "gpus", "start_seconds", "end_seconds"],
      gantt.job.map((job, i): Cell[] => {
        const start = gantt.start[i] as number;
        return [
          run.label,
          jobs.name[job],
          named("user", job),
          named("queue", job),
          named("model", job),
          rows.node.name[gantt.node[i] as number],
          gantt.first_gpu[i],
          gantt.gpus[i],
          Number(start.toFixed(3)),
          Number((start + (gantt.length[i] as number)).toFixed(3)),
        ];
      }),
    );
  }
}
