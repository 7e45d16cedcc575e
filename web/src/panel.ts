// SPDX-License-Identifier: Apache-2.0
// A chart that ECharts draws, in its card.

import { CardPanel, button, chartCard, fileButtons, segments } from "./card";
import { h, plainTable } from "./dom";
import { type Option, init } from "./echarts";
import { type ChartSpec, type Item, type View, legendLines, timeSpan } from "./parts";
import { type Shared, missingNote, runLegend } from "./shared";
import { LIGHT, currentTheme, isPrinting } from "./theme";

export const PICTURE_FONT = "Helvetica, Arial, sans-serif";
export const PICTURE_WIDTH = 960;
export const PRINT_WIDTH = 950;

const SOON_MS = 60;

export class Panel extends CardPanel {
  readonly element: HTMLElement;
  private readonly plot = h("div", { class: "plot" });
  private readonly dataBox = h("div");
  private readonly wholeTime = button("Whole time", {}, () => this.shared.setZoom(0, 100, null));
  private readonly empty = h("p", { class: "empty", hidden: true }, "No run is selected.");
  private readonly chart;
  private choice: string;
  private soon = 0;

  constructor(
    private readonly spec: ChartSpec,
    private readonly shared: Shared,
  ) {
    super();
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
        this.wholeTime.hidden = !shared.zoomed;
        if (from !== this) this.drawSoon();
      }
    });
  }

  private build(): HTMLElement {
    const { spec, shared } = this;
    const tools: HTMLElement[] = [];
    if (spec.timeAxis) {
      this.wholeTime.hidden = true;
      tools.push(this.wholeTime);
    }
    if (spec.choice) {
      tools.push(
        segments(spec.choice, (value) => {
          this.choice = value;
          this.redraw();
        }),
      );
    }
    tools.push(
      ...fileButtons(spec.id, spec.title, {
        svg: () => this.picture(),
        csv: () => spec.csv(this.items()),
      }),
    );
    const withLegend = shared.items.length > 1 && spec.legend(this.choice);
    return chartCard({
      ...spec,
      tools,
      body: [missingNote(shared, spec.has), withLegend && runLegend(shared, spec.has), this.empty, this.plot],
      table: this.dataBox,
    });
  }

  /** The runs that are shown and have what the chart shows. */
  private items(): Item[] {
    return this.shared.visible().filter(({ run }) => this.spec.has(run));
  }

  private view(width: number, interactive: boolean): View {
    return {
      items: this.items(),
      theme: currentTheme(),
      width,
      choice: this.choice,
      span: timeSpan(this.shared.visible()),
      zoom: this.shared.zoom,
      interactive,
    };
  }

  redraw(): void {
    const items = this.items();
    this.empty.hidden = items.length > 0;
    this.plot.hidden = items.length === 0;
    this.dataBox.replaceChildren(plainTable(this.spec.table(items, this.choice)));
    this.draw();
  }

  /** Once, when a chart that leads the way has come to rest. */
  private drawSoon(): void {
    window.clearTimeout(this.soon);
    this.soon = window.setTimeout(() => this.draw(), SOON_MS);
  }

  private draw(): void {
    const items = this.items();
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

  /** The plot as it is now, on white and with a title and a legend. */
  private picture(): string {
    const items = this.items();
    const view: View = {
      ...this.view(PICTURE_WIDTH, false),
      theme: LIGHT,
    };
    const withLegend = this.shared.items.length > 1 && this.spec.legend(this.choice);
    const lines = withLegend
      ? legendLines(
          items.map((item) => item.run.label),
          PICTURE_WIDTH - 60,
        )
      : [];
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
        itemStyle: this.spec.boxes ? {} : { opacity: 0 },
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

/** The legend that a chart brings along, lower by this much; undefined without one. */
function moved(legend: Option["legend"], by: number): Option["legend"] {
  const own = [legend].flat().filter((one) => one !== undefined);
  if (own.length === 0) return undefined;
  return own.map((one) => ({ ...one, top: by + (typeof one.top === "number" ? one.top : 0) }));
}
