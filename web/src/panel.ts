// SPDX-License-Identifier: Apache-2.0
// A chart on the page: heading, legend, buttons, plot, and its data as a table.

import type { ReportData } from "./data";
import { type ChartSpec, type Item, type View, chartSpecs } from "./charts";
import { download, h, plainTable } from "./dom";
import { type Option, init } from "./echarts";
import { LIGHT, currentTheme, isPrinting, swatch, watchTheme } from "./theme";

const PICTURE_FONT = "Helvetica, Arial, sans-serif";
const PICTURE_WIDTH = 960;
const PRINT_WIDTH = 950;

/** What all charts share: the runs that are shown and the part of the time axis. */
class Shared {
  readonly items: readonly Item[];
  private readonly off = new Set<number>();
  zoom = { start: 0, end: 100 };
  private readonly listeners: ((what: "runs" | "zoom", from?: unknown) => void)[] = [];

  constructor(data: ReportData) {
    this.items = data.runs.map((run, index) => ({ run, index }));
  }

  visible(): Item[] {
    return this.items.filter((item) => !this.off.has(item.index));
  }

  isVisible(index: number): boolean {
    return !this.off.has(index);
  }

  toggle(index: number): void {
    if (this.off.has(index)) this.off.delete(index);
    else this.off.add(index);
    this.tell("runs");
  }

  showAll(): void {
    this.off.clear();
    this.tell("runs");
  }

  setZoom(start: number, end: number, from: unknown): void {
    this.zoom = { start, end };
    this.tell("zoom", from);
  }

  listen(listener: (what: "runs" | "zoom", from?: unknown) => void): void {
    this.listeners.push(listener);
  }

  private tell(what: "runs" | "zoom", from?: unknown): void {
    for (const listener of this.listeners) listener(what, from);
  }
}

class Panel {
  readonly element: HTMLElement;
  private readonly plot = h("div", { class: "plot" });
  private readonly dataBox = h("div");
  private readonly chips: HTMLButtonElement[] = [];
  private readonly showAll = h("button", { type: "button", class: "link" }, "Show all runs");
  private readonly wholeTime = h("button", { type: "button", class: "button" }, "Whole time");
  private readonly empty = h("p", { class: "empty" }, "No run is selected.");
  private readonly chart;
  private choice: string;
  private width = 0;

  constructor(
    private readonly spec: ChartSpec,
    private readonly shared: Shared,
  ) {
    this.choice = spec.choice?.initial ?? "";
    this.element = this.build();
    this.chart = init(this.plot, null, { renderer: "svg", width: 600, height: 300 });

    this.chart.on("datazoom", () => {
      const option = this.chart.getOption() as { dataZoom?: { start?: number; end?: number }[] };
      const zoom = option.dataZoom?.[0];
      if (zoom) shared.setZoom(zoom.start ?? 0, zoom.end ?? 100, this);
    });
    shared.listen((what, from) => {
      if (what === "runs") this.redraw();
      else if (spec.timeAxis) {
        this.wholeTime.hidden = shared.zoom.start <= 0 && shared.zoom.end >= 100;
        if (from !== this) this.draw();
      }
    });
  }

  private build(): HTMLElement {
    const { spec, shared } = this;
    const headingId = `${spec.id}-title`;

    const tools = h("div", { class: "tools" });
    if (spec.timeAxis) {
      this.wholeTime.hidden = true;
      this.wholeTime.addEventListener("click", () => shared.setZoom(0, 100, null));
      tools.append(this.wholeTime);
    }
    if (spec.choice) {
      const buttons = spec.choice.options.map((option) => {
        const button = h(
          "button",
          { type: "button", "data-choice": option.value, "aria-pressed": String(option.value === this.choice) },
          option.name,
        );
        button.addEventListener("click", () => {
          this.choice = option.value;
          for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
          this.redraw();
        });
        return button;
      });
      tools.append(h("div", { class: "segments", role: "group", "aria-label": spec.choice.name }, ...buttons));
    }
    const svgButton = h("button", { type: "button", class: "button", "data-svg": spec.id }, "SVG");
    svgButton.title = "Download this plot as SVG";
    svgButton.setAttribute("aria-label", `SVG: download the plot “${spec.title}”`);
    svgButton.addEventListener("click", () =>
      download(`trainyard-${spec.id}.svg`, "image/svg+xml", this.picture()),
    );
    const csvButton = h("button", { type: "button", class: "button", "data-csv": spec.id }, "CSV");
    csvButton.title = "Download the data of this plot as CSV";
    csvButton.setAttribute("aria-label", `CSV: download the data of “${spec.title}”`);
    csvButton.addEventListener("click", () =>
      download(`trainyard-${spec.id}.csv`, "text/csv", spec.csv(shared.visible())),
    );
    tools.append(svgButton, csvButton);

    let legend: HTMLElement | null = null;
    if (shared.items.length > 1 && spec.legend(this.choice)) {
      legend = h("div", { class: "legend", role: "group", "aria-label": "Runs shown in the charts" });
      for (const { run, index } of shared.items) {
        const chip = h(
          "button",
          { type: "button", class: "chip", "aria-pressed": "true", title: "Show or hide this run in all charts" },
          swatch(index),
          h("span", { class: "chip-name" }, run.label),
        );
        chip.addEventListener("click", () => shared.toggle(index));
        this.chips.push(chip);
        legend.append(chip);
      }
      this.showAll.addEventListener("click", () => shared.showAll());
      legend.append(this.showAll);
    }

    return h(
      "section",
      { class: spec.wide ? "card chart wide" : "card chart", id: spec.id, "aria-labelledby": headingId },
      h("div", { class: "card-head" }, h("h2", { id: headingId }, spec.title), tools),
      h("p", { class: "how" }, spec.how),
      legend,
      this.empty,
      this.plot,
      h("details", {}, h("summary", {}, "Data as a table"), this.dataBox),
    );
  }

  private view(width: number, interactive: boolean): View {
    return {
      items: this.shared.visible(),
      theme: currentTheme(),
      width,
      choice: this.choice,
      zoom: this.shared.zoom,
      interactive,
    };
  }

  redraw(): void {
    const items = this.shared.visible();
    this.chips.forEach((chip, i) => chip.setAttribute("aria-pressed", String(this.shared.isVisible(i))));
    this.showAll.hidden = items.length === this.shared.items.length;
    this.empty.hidden = items.length > 0;
    this.plot.hidden = items.length === 0;

    this.dataBox.replaceChildren(plainTable(this.spec.table(items)));
    this.draw();
  }

  private draw(): void {
    const items = this.shared.visible();
    const width = isPrinting() ? PRINT_WIDTH : this.width;
    if (width <= 0 || items.length === 0) return;
    const view = this.view(width, !isPrinting());
    const height = this.spec.height(view);
    this.plot.style.height = `${height}px`;
    this.chart.resize({ width, height, silent: true });
    const names = items.map((item) => item.run.label).join(", ");
    this.chart.setOption(
      {
        ...this.spec.option(view),
        aria: {
          enabled: true,
          label: {
            enabled: true,
            description: `${this.spec.title}. ${this.spec.how} Runs: ${names}. The data follow as a table.`,
          },
        },
      },
      { notMerge: true },
    );
  }

  /** Call when the element is on the page. */
  start(): void {
    new ResizeObserver(() => {
      const width = Math.floor(this.plot.parentElement ? contentWidth(this.plot.parentElement) : 0);
      if (width > 0 && width !== this.width && !isPrinting()) {
        this.width = width;
        this.redraw();
      }
    }).observe(this.element);
    this.width = Math.floor(contentWidth(this.element));
    this.redraw();
  }

  /** The plot as it is now, on white and with a title and a legend. */
  private picture(): string {
    const items = this.shared.visible();
    const view: View = {
      ...this.view(PICTURE_WIDTH, false),
      theme: LIGHT,
    };
    const withLegend = items.length > 1 && this.spec.legend(this.choice);
    const lines = withLegend ? legendLines(items.map((item) => item.run.label)) : [];
    const top = 36;
    const foot = lines.length * 22 + (lines.length > 0 ? 8 : 0);
    const plotHeight = this.spec.height(view);
    const height = top + plotHeight + foot;

    const option = this.spec.option(view);
    for (const grid of [option.grid].flat()) {
      if (grid && typeof grid.top === "number") grid.top += top;
      if (grid && typeof grid.bottom === "number") grid.bottom += foot;
    }
    const full: Option = {
      ...option,
      backgroundColor: LIGHT.surface,
      textStyle: { color: LIGHT.text, fontFamily: PICTURE_FONT },
      tooltip: undefined,
      title: {
        text: this.spec.title,
        left: 0,
        top: 6,
        textStyle: { fontSize: 16, fontWeight: "bold", color: LIGHT.text, fontFamily: PICTURE_FONT },
      },
      legend: moved(option.legend, top) ?? lines.map((line, row) => ({
        data: line,
        left: "center",
        top: top + plotHeight + row * 22,
        itemWidth: 30,
        itemHeight: 10,
        itemGap: 18,
        selectedMode: false,
        itemStyle: this.spec.id === "jct-by-size" ? {} : { opacity: 0 },
        textStyle: { color: LIGHT.text, fontSize: 12, fontFamily: PICTURE_FONT },
      })),
    };
    const box = init(null, null, { renderer: "svg", ssr: true, width: PICTURE_WIDTH, height });
    box.setOption(full);
    const text = box.renderToSVGString();
    box.dispose();
    return `<?xml version="1.0" encoding="UTF-8"?>\n${text}\n`;
  }
}

/** The legend that a chart brings along, lower by this much. */
function moved(legend: Option["legend"], by: number): Option["legend"] {
  const own = [legend].flat()[0];
  return own && { ...own, top: by + (typeof own.top === "number" ? own.top : 0) };
}

/** Breaks the entries of a legend into lines that fit a picture. */
function legendLines(names: readonly string[]): string[][] {
  const context = document.createElement("canvas").getContext("2d");
  if (context) context.font = `12px ${PICTURE_FONT}`;
  const lines: string[][] = [];
  let used = Infinity;
  for (const name of names) {
    const width = 30 + 5 + 18 + (context ? context.measureText(name).width : name.length * 7);
    if (used + width > PICTURE_WIDTH - 60) {
      lines.push([]);
      used = 0;
    }
    lines[lines.length - 1]?.push(name);
    used += width;
  }
  return lines;
}

function contentWidth(element: HTMLElement): number {
  const style = getComputedStyle(element);
  return element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
}

/** All charts of the report, and a function to call when they are on the page. */
export function chartPanels(data: ReportData): { element: HTMLElement; start: () => void } {
  const shared = new Shared(data);
  const panels = chartSpecs(data).map((spec) => new Panel(spec, shared));
  return {
    element: h("div", { class: "charts" }, ...panels.map((panel) => panel.element)),
    start: () => {
      watchTheme(data.runs.length, () => panels.forEach((panel) => panel.redraw()));
      panels.forEach((panel) => panel.start());
    },
  };
}
