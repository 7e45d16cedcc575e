// SPDX-License-Identifier: Apache-2.0
// GPUs held over time by user, queue or model: a stack of areas for each run.

import type { Gantt, ReportData, Run } from "./data";
import type { LineSeriesOption } from "./echarts";
import { type Cell, axisUnit, count, csv, decimal, duration, gpuHours, percent } from "./format";
import {
  Bars,
  CATEGORIES,
  type Categories,
  type ColorBy,
  Rows,
  addOccupancy,
  categoriesOf,
  colorings,
} from "./ganttModel";
import { type Owner, ownerColor, ownersOf } from "./owners";
import {
  type ChartSpec,
  LEGEND_LINE,
  ROW_GAP,
  axisStyle,
  base,
  legendLines,
  lineTooltip,
  maximum,
  partsLegend,
  rowAxis,
  rowGrid,
  timeAxes,
  timeSpan,
  timeZoom,
  tooltipRows,
} from "./parts";

const COLUMNS = 240;
const ROW = 92;
const LEFT = 52;
const NAMES = { user: "Users", queue: "Queues", model: "Models" } as const;

/** GPUs held in the mean of each of COLUMNS equal parts of a time, by category. */
type Held = Float32Array;

class Shares {
  private readonly rows: Rows;
  private readonly bars = new Map<Run, Bars>();
  private readonly categories = new Map<ColorBy, Categories>();
  private readonly gantts: readonly Gantt[];

  constructor(private readonly data: ReportData) {
    this.rows = new Rows(data.cluster.node);
    this.gantts = data.runs.map((run) => run.gantt).filter((gantt): gantt is Gantt => gantt !== null);
  }

  of(by: ColorBy): Categories {
    let categories = this.categories.get(by);
    if (!categories) {
      categories = categoriesOf(this.data.jobs, this.gantts, by);
      this.categories.set(by, categories);
    }
    return categories;
  }

  held(run: Run, by: ColorBy, time: { from: number; to: number }): Held {
    const out = new Float32Array(COLUMNS * (CATEGORIES + 1));
    if (!run.gantt) return out;
    let bars = this.bars.get(run);
    if (!bars) {
      bars = new Bars(run.gantt, this.rows);
      this.bars.set(run, bars);
    }
    for (let node = 0; node < this.rows.nodes; node++) addOccupancy(bars, this.of(by), node, time, COLUMNS, out);
    return out;
  }
}

const at = (held: Held, column: number, category: number): number => held[column * (CATEGORIES + 1) + category] ?? 0;

function peakOf(held: Held): number {
  let peak = 0;
  for (let column = 0; column < COLUMNS; column++) {
    let sum = 0;
    for (let category = 0; category <= CATEGORIES; category++) sum += at(held, column, category);
    peak = Math.max(peak, sum);
  }
  return peak;
}

/** Null where it is not known who held which GPUs, or whose the jobs were. */
export function shareTimeChart(data: ReportData): ChartSpec | null {
  const by = colorings(data.jobs).filter((one): one is keyof typeof NAMES => one !== "job" && data.jobs[one].names.length > 1);
  const options = (["user", "queue", "model"] as const).filter((one) => by.includes(one));
  const first = options[0];
  if (!first || data.cluster.node.gpus.length === 0 || !data.runs.some((run) => run.gantt)) return null;
  const shares = new Shares(data);
  const capacity = data.cluster.gpus ?? data.cluster.node.gpus.reduce((sum, gpus) => sum + gpus, 0);
  const legend = (choice: string, width: number): string[][] =>
    legendLines(
      ownersOf(shares.of((choice || first) as ColorBy)).map(({ name }) => name),
      width - 8,
    );
  const topOf = (choice: string, width: number): number => 34 + legend(choice, width).length * LEGEND_LINE;

  return {
    id: "shares-time",
    title: "Shares of GPUs over time",
    how: "Each row is a run: the GPUs that the jobs of a user, a queue or a model hold, above each other up to all that are held; each in the mean of 240 parts of the time shown.",
    wide: true,
    has: (run) => run.gantt !== null,
    timeAxis: true,
    choice:
      options.length > 1
        ? { name: "Shares of", options: options.map((value) => ({ value, name: NAMES[value] })), initial: first }
        : undefined,
    legend: () => false,
    height: (view) =>
      topOf(view.choice, view.width) +
      Math.max(view.items.length, 1) * (ROW + ROW_GAP) -
      ROW_GAP +
      (view.interactive ? 98 : 58),
    option: (view) => {
      const { theme, items } = view;
      const chosen = (view.choice || first) as ColorBy;
      const entries = ownersOf(shares.of(chosen));
      const span = Math.max(view.span, 1e-3);
      const unit = axisUnit(span);
      const time = { from: (span * view.zoom.start) / 100, to: (span * view.zoom.end) / 100 };
      const step = (time.to - time.from) / COLUMNS;
      const held = items.map(({ run }) => shares.held(run, chosen, time));
      const top = topOf(view.choice, view.width);
      // A shared GPU counts for each of its jobs, so that they can hold more than there are.
      const most = Math.max(capacity, Math.ceil(maximum(held.map(peakOf)) - 0.01));
      const style = axisStyle(theme);

      // Sums from the bottom up; the highest is drawn first, the others over it.
      const series = items.flatMap((_, row) =>
        [...entries.keys()].reverse().map((last): LineSeriesOption => {
          const { category, name } = entries[last] as Owner;
          const color = ownerColor(theme, category);
          const sums = Array.from({ length: COLUMNS + 1 }, (__, column): [number, number] => {
            const from = Math.min(column, COLUMNS - 1);
            let sum = 0;
            for (let i = 0; i <= last; i++) sum += at(held[row] as Held, from, (entries[i] as Owner).category);
            return [(time.from + column * step) / unit.seconds, sum];
          });
          return {
            type: "line",
            id: `row-${row}-${category}`,
            name,
            xAxisIndex: row,
            yAxisIndex: row,
            data: sums,
            step: "end",
            symbol: "none",
            lineStyle: { width: 0 },
            itemStyle: { color },
            areaStyle: { color, opacity: 1, origin: "start" },
            emphasis: { disabled: true },
          };
        }),
      );

      return {
        ...base(view),
        grid: items.map((_, row) => rowGrid(row, { left: LEFT, top, height: ROW })),
        legend: partsLegend(legend(view.choice, view.width), theme),
        tooltip: lineTooltip(theme, (place, row) => {
          const item = items[row];
          if (!item) return "";
          const seconds = place * unit.seconds;
          const column = Math.min(Math.max(Math.floor((seconds - time.from) / step), 0), COLUMNS - 1);
          return tooltipRows(
            `${item.run.label} after ${duration(seconds)}`,
            entries.map(({ category, name }) => {
              const gpus = at(held[row] as Held, column, category);
              return { name, color: ownerColor(theme, category), value: `${decimal(gpus)} GPUs` };
            }),
          );
        }),
        xAxis: timeAxes(view, items.length, span / unit.seconds, unit),
        yAxis: items.map(({ run }, row) => ({
          type: "value" as const,
          gridIndex: row,
          ...style,
          ...rowAxis(theme, (row === 0 ? "GPUs held: " : "") + run.label, most),
          axisLabel: { ...style.axisLabel, formatter: (value: number) => count(value) },
        })),
        ...timeZoom(view, items.length, LEFT),
        series,
      };
    },
    csv: (items) => {
      const span = Math.max(timeSpan(items), 1e-3);
      const step = span / COLUMNS;
      return csv(
        ["run", "kind", "name", "from_seconds", "to_seconds", "gpus_mean"],
        items.flatMap(({ run }) =>
          options.flatMap((one) => {
            const held = shares.held(run, one, { from: 0, to: span });
            return ownersOf(shares.of(one)).flatMap(({ category, name }) =>
              Array.from({ length: COLUMNS }, (_, column): Cell[] => [
                run.label,
                one,
                name,
                Number((column * step).toFixed(3)),
                Number(((column + 1) * step).toFixed(3)),
                Number(at(held, column, category).toFixed(3)),
              ]),
            );
          }),
        ),
      );
    },
    table: (items, choice) => {
      const chosen = (choice || first) as keyof typeof NAMES;
      const span = Math.max(timeSpan(items), 1e-3);
      const entries = ownersOf(shares.of(chosen));
      const totals = items.map(({ run }) => {
        const held = shares.held(run, chosen, { from: 0, to: span });
        const sums = entries.map(({ category }) => {
          let sum = 0;
          for (let column = 0; column < COLUMNS; column++) sum += at(held, column, category);
          return (sum / COLUMNS) * span;
        });
        return { run, sums, all: sums.reduce((a, b) => a + b, 0) };
      });
      return {
        caption: `GPU time held, by ${chosen}: hours and share of each run`,
        header: [NAMES[chosen].slice(0, -1), ...totals.flatMap(({ run }) => [`${run.label}: held`, "share"])],
        rows: entries.map(({ name }, i) => [
          name,
          ...totals.flatMap(({ sums, all }) => [
            gpuHours(sums[i]),
            percent(all > 0 ? (sums[i] as number) / all : null),
          ]),
        ]),
      };
    },
  };
}
