// SPDX-License-Identifier: Apache-2.0
// What each chart shows: its options for ECharts, its data as CSV and as a table.

import type { Cdf, ReportData, Run } from "./data";
import { type PlainTable, h } from "./dom";
import type { BarSeriesOption, LineSeriesOption, Option } from "./echarts";
import {
  type Cell,
  NONE,
  type Unit,
  axisUnit,
  count,
  csv,
  decimal,
  duration,
  logTicks,
  percent,
  plural,
  tickDuration,
} from "./format";
import { hasDeadlines } from "./table";
import { type Theme, dash, runColor } from "./theme";

/** A run with its place in the report, which sets its colour and dash. */
export interface Item {
  run: Run;
  index: number;
}

export interface Choice {
  name: string;
  options: readonly { value: string; name: string }[];
  initial: string;
}

export interface View {
  items: readonly Item[];
  theme: Theme;
  width: number;
  choice: string;
  /** Visible part of the time axis, in percent. */
  zoom: { start: number; end: number };
  /** False for a picture: no slider. */
  interactive: boolean;
}

export interface ChartSpec {
  id: string;
  title: string;
  /** One sentence on how to read the chart. */
  how: string;
  wide: boolean;
  choice?: Choice;
  timeAxis?: boolean;
  /** False when the runs are named on an axis. */
  legend(choice: string): boolean;
  height(view: View): number;
  option(view: View): Option;
  csv(items: readonly Item[]): string;
  table(items: readonly Item[]): PlainTable;
}

const SCREEN_FONT = '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", sans-serif';

const isNarrow = (view: View): boolean => view.width < 520;

// ---- shared parts -----------------------------------------------------------------------------

function axisStyle(theme: Theme) {
  return {
    axisLine: { show: true, onZero: false, lineStyle: { color: theme.axis } },
    axisTick: { show: true, lineStyle: { color: theme.axis } },
    axisLabel: { color: theme.muted, fontSize: 12, hideOverlap: true },
    nameTextStyle: { color: theme.muted, fontSize: 12 },
    splitLine: { show: true, lineStyle: { color: theme.grid } },
  };
}

/** The name of a y axis stands above it, flush with the left edge of the chart. */
function yName(theme: Theme, name: string, left: number) {
  return {
    name,
    nameLocation: "end" as const,
    nameGap: 12,
    nameTextStyle: { color: theme.muted, fontSize: 12, align: "left" as const, padding: [0, 0, 0, 4 - left] },
  };
}

/** Keeps the labels of the x axis clear of the lowest label of the y axis. */
const X_MARGIN = 12;

function xName(name: string) {
  return { name, nameLocation: "middle" as const, nameGap: 34 };
}

function base(view: View): Option {
  return {
    animation: false,
    backgroundColor: "transparent",
    textStyle: { fontFamily: SCREEN_FONT, color: view.theme.text },
  };
}

function tooltipStyle(theme: Theme) {
  return {
    confine: true,
    backgroundColor: theme.surface,
    borderColor: theme.axis,
    borderWidth: 1,
    padding: [6, 10],
    textStyle: { color: theme.text, fontSize: 12 },
    extraCssText: "box-shadow: 0 2px 8px rgb(0 0 0 / 0.18); border-radius: 4px;",
  };
}

function tooltipRows(heading: string, rows: { name: string; color: string; value: string }[]): HTMLElement {
  return h(
    "div",
    { class: "tip" },
    h("div", { class: "tip-head" }, heading),
    ...rows.map(({ name, color, value }) =>
      h(
        "div",
        { class: "tip-row" },
        h("span", { class: "tip-mark", style: `background: ${color}` }),
        h("span", { class: "tip-name" }, name),
        h("span", { class: "tip-value" }, value),
      ),
    ),
  );
}

function tooltipBody(heading: string, rows: { item: Item; value: string }[], theme: Theme): HTMLElement {
  return tooltipRows(
    heading,
    rows.map(({ item, value }) => ({ name: item.run.label, color: runColor(theme, item.index), value })),
  );
}

/** The place that the pointer of an axis tooltip stands at. */
function pointerValue(params: unknown): number | null {
  const first = (Array.isArray(params) ? params[0] : params) as { axisValue?: unknown } | undefined;
  const value = Number(first?.axisValue);
  return Number.isFinite(value) ? value : null;
}

/** Value of a step function at x: that of the last point not after x. */
function stepAt(xs: readonly number[], ys: readonly number[], x: number): number | null {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((xs[middle] as number) <= x) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? null : (ys[low - 1] ?? null);
}

function line(item: Item, data: [number, number][], theme: Theme): LineSeriesOption {
  const color = runColor(theme, item.index);
  const pattern = dash(item.index);
  return {
    type: "line",
    id: `run-${item.index}`,
    name: item.run.label,
    data,
    step: "end",
    showSymbol: false,
    symbol: "none",
    lineStyle: { color, width: 2, type: pattern.length > 0 ? [...pattern] : "solid" },
    itemStyle: { color },
    emphasis: { focus: "series", lineStyle: { width: 2.5, color }, itemStyle: { color } },
    blur: { lineStyle: { opacity: 0.25 } },
  };
}

const maximum = (values: Iterable<number>): number => {
  let max = 0;
  for (const value of values) if (value > max) max = value;
  return max;
};

// ---- cumulative distributions -----------------------------------------------------------------

const LOG_LINEAR: Choice = {
  name: "Time axis",
  options: [
    { value: "log", name: "Log" },
    { value: "linear", name: "Linear" },
  ],
  initial: "log",
};

/** The smallest value that at least this share of the jobs stays within. */
function quantile(cdf: Cdf, share: number): number | null {
  const at = cdf.fraction.findIndex((fraction) => fraction >= share - 1e-9);
  return at < 0 ? null : (cdf.seconds[at] ?? null);
}

interface CdfKind {
  id: string;
  title: string;
  how: string;
  quantity: string;
  jobs: string;
  of(run: Run): Cdf;
}

function cdfChart(kind: CdfKind, wide: boolean): ChartSpec {
  const bounds = (items: readonly Item[]): { floor: number; max: number; clamped: boolean } => {
    let positive = Infinity;
    let max = 0;
    let zeros = false;
    for (const { run } of items) {
      for (const value of kind.of(run).seconds) {
        if (value <= 0) zeros = true;
        else if (value < positive) positive = value;
        if (value > max) max = value;
      }
    }
    if (max <= 0) return { floor: 1, max: 10, clamped: zeros };
    // Values of zero, or far below a second, are drawn at the left edge.
    const floor = zeros || positive < 0.01 ? Math.min(1, max / 10) : positive;
    return { floor, max, clamped: zeros || positive < floor };
  };

  return {
    id: kind.id,
    title: kind.title,
    how: kind.how,
    wide,
    choice: LOG_LINEAR,
    legend: () => true,
    height: (view) => (isNarrow(view) ? 300 : 360),
    option: (view) => {
      const { theme, items } = view;
      const log = view.choice === "log";
      const { floor, max, clamped } = bounds(items);
      const unit: Unit = axisUnit(max);
      const toAxis = (seconds: number): number =>
        log ? Math.log10(Math.max(seconds, floor)) : seconds / unit.seconds;
      const fromAxis = (value: number): number => (log ? 10 ** value : value * unit.seconds);

      const span = Math.max(Math.log10(max) - Math.log10(floor), 0.1);
      const low = clamped ? Math.log10(floor) : Math.log10(floor) - 0.03 * span;
      const high = Math.log10(max) + 0.03 * span;
      const ticks = logTicks(10 ** low * (1 - 1e-9), 10 ** high).map((tick) => Math.log10(tick));
      const style = axisStyle(theme);

      const series = items.map((item) => {
        const cdf = kind.of(item.run);
        const data: [number, number][] = cdf.seconds.map((seconds, i) => [
          toAxis(seconds),
          (cdf.fraction[i] as number) * 100,
        ]);
        const first = data[0];
        if (first && first[1] > 0) data.unshift([first[0], 0]);
        return line(item, data, theme);
      });

      return {
        ...base(view),
        grid: { left: 44, right: 20, top: 36, bottom: 54, outerBoundsMode: "none" },
        tooltip: {
          ...tooltipStyle(theme),
          trigger: "axis",
          axisPointer: { type: "line", snap: false, lineStyle: { color: theme.axis }, label: { show: false } },
          formatter: (params: unknown) => {
            const at = pointerValue(params);
            if (at === null) return "";
            const seconds = fromAxis(at);
            return tooltipBody(
              `${kind.quantity} of at most ${duration(seconds)}`,
              items.map((item) => {
                const cdf = kind.of(item.run);
                const empty = cdf.seconds.length === 0;
                return {
                  item,
                  value: empty ? NONE : percent(stepAt(cdf.seconds, cdf.fraction, seconds * (1 + 1e-9)) ?? 0),
                };
              }),
              theme,
            );
          },
        },
        xAxis: log
          ? {
              type: "value",
              ...style,
              ...xName(`${kind.quantity} (s, min, h, d; log scale)`),
              min: low,
              max: high,
              axisTick: { ...style.axisTick, customValues: ticks },
              axisLabel: {
                ...style.axisLabel,
                margin: X_MARGIN,
                customValues: ticks,
                formatter: (value: number) =>
                  (clamped && Math.abs(value - low) < 1e-6 ? "≤ " : "") + tickDuration(Number((10 ** value).toPrecision(6))),
              },
            }
          : {
              type: "value",
              ...style,
              ...xName(`${kind.quantity} (${unit.name})`),
              min: 0,
              axisLabel: { ...style.axisLabel, margin: X_MARGIN, formatter: (value: number) => decimal(value) },
            },
        yAxis: {
          type: "value",
          ...style,
          ...yName(theme, `${kind.jobs} (%)`, 44),
          min: 0,
          max: 100,
          interval: 20,
        },
        series,
      };
    },
    csv: (items) =>
      csv(
        ["run", "seconds", "fraction"],
        items.flatMap(({ run }) => {
          const cdf = kind.of(run);
          return cdf.seconds.map((seconds, i): Cell[] => [run.label, seconds, cdf.fraction[i]]);
        }),
      ),
    table: (items) => {
      const shares = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];
      return {
        caption: `${kind.quantity}: percentiles of every run, read off the curve`,
        header: ["Run", ...shares.map((share) => `p${share * 100}`), "Longest"],
        rows: items.map(({ run }) => {
          const cdf = kind.of(run);
          return [
            run.label,
            ...shares.map((share) => duration(quantile(cdf, share))),
            duration(cdf.seconds[cdf.seconds.length - 1]),
          ];
        }),
      };
    },
  };
}

// ---- mean JCT by job size ---------------------------------------------------------------------

function sizesOf(items: readonly Item[]): string[] {
  const names = new Set<string>();
  for (const { run } of items) run.jct_by_size.forEach((size) => names.add(size.gpus));
  const key = (name: string): number => {
    const match = /\d+(\.\d+)?/.exec(name);
    return match ? Number(match[0]) + (/^\s*[>≥]/.test(name) ? 0.5 : 0) : Infinity;
  };
  return [...names].sort((a, b) => key(a) - key(b) || a.localeCompare(b, "en"));
}

const sizeOf = (run: Run, name: string) => run.jct_by_size.find((size) => size.gpus === name);

function sizeChart(wide: boolean): ChartSpec {
  return {
    id: "jct-by-size",
    title: "Mean JCT by job size",
    how: "Each group of bars is a job size, with one bar per run in the order of the legend; lower is better.",
    wide,
    legend: () => true,
    height: (view) => (isNarrow(view) ? 300 : 360),
    option: (view) => {
      const { theme, items } = view;
      const style = axisStyle(theme);
      const names = sizesOf(items);
      const unit = axisUnit(maximum(items.flatMap(({ run }) => run.jct_by_size.map((size) => size.jct_mean ?? 0))));
      const series = items.map(
        (item): BarSeriesOption => ({
          type: "bar",
          id: `run-${item.index}`,
          name: item.run.label,
          barGap: "8%",
          barCategoryGap: "22%",
          barMaxWidth: 36,
          itemStyle: { color: runColor(theme, item.index) },
          emphasis: { focus: "series", itemStyle: { color: runColor(theme, item.index) } },
          blur: { itemStyle: { opacity: 0.3 } },
          data: names.map((name) => {
            const mean = sizeOf(item.run, name)?.jct_mean;
            return mean == null ? null : mean / unit.seconds;
          }),
        }),
      );
      return {
        ...base(view),
        grid: { left: 52, right: 12, top: 36, bottom: 54, outerBoundsMode: "none" },
        tooltip: {
          ...tooltipStyle(theme),
          trigger: "axis",
          axisPointer: { type: "shadow", shadowStyle: { color: theme.axis, opacity: 0.12 } },
          formatter: (params: unknown) => {
            const first = (Array.isArray(params) ? params[0] : params) as { dataIndex?: number } | undefined;
            const name = names[first?.dataIndex ?? -1];
            if (name === undefined) return "";
            return tooltipBody(
              `Jobs of ${name} GPU${name === "1" ? "" : "s"}`,
              items.map((item) => {
                const size = sizeOf(item.run, name);
                const jobs = size?.jobs;
                return {
                  item,
                  value: duration(size?.jct_mean) + (jobs == null ? "" : ` (${plural(jobs, "job")})`),
                };
              }),
              theme,
            );
          },
        },
        xAxis: {
          type: "category",
          ...style,
          ...xName("Job size (GPUs)"),
          data: names,
          splitLine: { show: false },
          axisTick: { show: false },
          axisLabel: { ...style.axisLabel, interval: 0 },
        },
        yAxis: {
          type: "value",
          ...style,
          ...yName(theme, `Mean JCT (${unit.name})`, 52),
          min: 0,
          axisLabel: { ...style.axisLabel, formatter: (value: number) => decimal(value) },
        },
        series,
      };
    },
    csv: (items) =>
      csv(
        ["run", "gpus", "jobs", "jct_mean_seconds", "queueing_delay_mean_seconds"],
        items.flatMap(({ run }) =>
          run.jct_by_size.map((size): Cell[] => [
            run.label,
            size.gpus,
            size.jobs,
            size.jct_mean,
            size.queueing_delay_mean,
          ]),
        ),
      ),
    table: (items) => ({
      caption: "Jobs, mean JCT and mean queueing delay by job size",
      header: ["Run", "GPUs", "Jobs", "Mean JCT", "Mean queueing delay"],
      rows: items.flatMap(({ run }) =>
        run.jct_by_size.map((size) => [
          run.label,
          size.gpus,
          count(size.jobs),
          duration(size.jct_mean),
          duration(size.queueing_delay_mean),
        ]),
      ),
    }),
  };
}

// ---- time lines -------------------------------------------------------------------------------

const ROW = 62;
const ROW_GAP = 30;

interface TimelineKind {
  id: string;
  title: string;
  how: string;
  quantity: string;
  /** Upper end of the y axis, when it is known. */
  capacity: number | null;
  of(run: Run): readonly number[];
  csvColumns: readonly { name: string; of(run: Run): readonly number[] }[];
}

/** A step for an axis that ends exactly at a capacity: 128 in four steps of 32. */
function capacityStep(capacity: number): number | null {
  for (const parts of [4, 5, 3, 6, 2]) if (capacity % parts === 0) return capacity / parts;
  return capacity > 0 && capacity < 8 ? 1 : null;
}

/** Length-weighted mean of a step function. */
function stepMean(xs: readonly number[], ys: readonly number[]): number | null {
  let area = 0;
  for (let i = 0; i + 1 < xs.length; i++) {
    area += (ys[i] as number) * ((xs[i + 1] as number) - (xs[i] as number));
  }
  const length = (xs[xs.length - 1] ?? 0) - (xs[0] ?? 0);
  return length > 0 ? area / length : null;
}

function timelineChart(kind: TimelineKind, runs: number): ChartSpec {
  const separate = (view: View): boolean => view.choice === "rows";
  return {
    id: kind.id,
    title: kind.title,
    how: kind.how,
    wide: true,
    timeAxis: true,
    choice:
      runs > 1
        ? {
            name: "Runs",
            options: [
              { value: "rows", name: "One row per run" },
              { value: "overlaid", name: "Overlaid" },
            ],
            initial: runs > 4 ? "rows" : "overlaid",
          }
        : undefined,
    legend: () => true,
    height: (view) => {
      const foot = view.interactive ? 98 : 58;
      if (!separate(view)) return (isNarrow(view) ? 230 : 290) + foot;
      return 24 + Math.max(view.items.length, 1) * (ROW + ROW_GAP) - ROW_GAP + foot;
    },
    option: (view) => {
      const { theme, items } = view;
      const rows = separate(view);
      const style = axisStyle(theme);
      const unit = axisUnit(maximum(items.map(({ run }) => run.timeline.time[run.timeline.time.length - 1] ?? 0)));
      const end = maximum(items.map(({ run }) => run.timeline.time[run.timeline.time.length - 1] ?? 0)) / unit.seconds;
      const peak = maximum(items.map(({ run }) => maximum(kind.of(run))));
      const step = kind.capacity !== null && kind.capacity >= peak ? capacityStep(kind.capacity) : null;
      const rowMax = kind.capacity !== null && kind.capacity >= peak ? kind.capacity : Math.max(peak, 1);
      const foot = view.interactive ? 98 : 58;
      const left = 52;

      const series = items.map((item, i): LineSeriesOption => {
        const { time } = item.run.timeline;
        const values = kind.of(item.run);
        const data = time.map((t, k): [number, number] => [t / unit.seconds, values[k] as number]);
        const result = line(item, data, theme);
        if (!rows) return result;
        const color = runColor(theme, item.index);
        return {
          ...result,
          xAxisIndex: i,
          yAxisIndex: i,
          lineStyle: { color, width: 1.25, type: "solid" },
          areaStyle: { color, opacity: 0.22, origin: "start" },
          emphasis: { disabled: true },
        };
      });

      const grids = (rows ? items : [null]).map((_, i) => ({
        left,
        right: 20,
        top: rows ? 24 + i * (ROW + ROW_GAP) : 36,
        outerBoundsMode: "none" as const,
        ...(rows ? { height: ROW } : { bottom: foot }),
      }));
      const last = grids.length - 1;

      return {
        ...base(view),
        grid: grids,
        tooltip: {
          ...tooltipStyle(theme),
          trigger: "axis",
          axisPointer: { type: "line", snap: false, lineStyle: { color: theme.axis }, label: { show: false } },
          formatter: (params: unknown) => {
            const at = pointerValue(params);
            if (at === null) return "";
            const seconds = at * unit.seconds;
            return tooltipBody(
              `After ${duration(seconds)}: ${kind.quantity}`,
              items.map((item) => {
                const { time } = item.run.timeline;
                return { item, value: count(stepAt(time, kind.of(item.run), seconds * (1 + 1e-9))) };
              }),
              theme,
            );
          },
        },
        axisPointer: { link: [{ xAxisIndex: "all" }] },
        xAxis: grids.map((_, i) => ({
          type: "value" as const,
          gridIndex: i,
          ...style,
          ...(i === last ? xName(`Time since the first submission (${unit.name})`) : {}),
          min: 0,
          max: end > 0 ? end : 1,
          axisTick: { ...style.axisTick, show: i === last },
          splitLine: { show: false },
          axisLabel: {
            ...style.axisLabel,
            margin: X_MARGIN,
            show: i === last,
            showMaxLabel: false,
            formatter: (value: number) => decimal(value),
          },
        })),
        yAxis: grids.map((_, i) => ({
          type: "value" as const,
          gridIndex: i,
          ...style,
          min: 0,
          ...(rows
            ? {
                name: (i === 0 ? `${kind.quantity}: ` : "") + (items[i]?.run.label ?? ""),
                nameLocation: "end" as const,
                nameGap: 6,
                nameTextStyle: { color: theme.text, fontSize: 12, align: "left" as const },
                max: rowMax,
                interval: rowMax,
              }
            : {
                ...yName(theme, kind.quantity, left),
                ...(step !== null ? { max: kind.capacity as number, interval: step } : { minInterval: 1 }),
              }),
          axisLabel: { ...style.axisLabel, formatter: (value: number) => count(value) },
        })),
        ...(view.interactive
          ? {
              dataZoom: [
                {
                  type: "slider" as const,
                  id: "time",
                  xAxisIndex: grids.map((_, i) => i),
                  filterMode: "none" as const,
                  start: view.zoom.start,
                  end: view.zoom.end,
                  left,
                  right: 20,
                  bottom: 12,
                  height: 22,
                  brushSelect: false,
                  showDataShadow: false,
                  showDetail: false,
                  borderColor: theme.axis,
                  backgroundColor: "transparent",
                  fillerColor: theme.name === "dark" ? "rgba(163,173,184,0.22)" : "rgba(91,100,112,0.14)",
                  handleSize: "110%",
                  handleStyle: { color: theme.surface, borderColor: theme.muted },
                  moveHandleSize: 0,
                  emphasis: { handleStyle: { borderColor: theme.text } },
                },
              ],
            }
          : {}),
        series,
      };
    },
    csv: (items) =>
      csv(
        ["run", "time_seconds", ...kind.csvColumns.map((column) => column.name)],
        items.flatMap(({ run }) =>
          run.timeline.time.map((t, i): Cell[] => [
            run.label,
            t,
            ...kind.csvColumns.map((column) => column.of(run)[i]),
          ]),
        ),
      ),
    table: (items) => ({
      caption: `${kind.quantity} over time: mean and peak of every run`,
      header: ["Run", "Mean over time", "Peak", "First at its peak after", "Ends after"],
      rows: items.map(({ run }) => {
        const { time } = run.timeline;
        const values = kind.of(run);
        const peak = maximum(values);
        return [
          run.label,
          decimal(stepMean(time, values)),
          values.length === 0 ? NONE : count(peak),
          duration(time[values.indexOf(peak)]),
          duration(time[time.length - 1]),
        ];
      }),
    }),
  };
}

// ---- deadlines --------------------------------------------------------------------------------

interface Fate {
  key: "met" | "late" | "rejected";
  name: string;
  count: "deadlines_met" | "deadlines_late" | "deadlines_rejected";
}

const FATES: readonly Fate[] = [
  { key: "met", name: "Met", count: "deadlines_met" },
  { key: "late", name: "Late", count: "deadlines_late" },
  { key: "rejected", name: "Rejected", count: "deadlines_rejected" },
];

/** The share of a run's jobs with a deadline that had this fate. */
function fateShare(run: Run, fate: Fate): number | null {
  const { deadline_jobs } = run.summary;
  const jobs = run.summary[fate.count];
  return deadline_jobs == null || deadline_jobs === 0 || jobs == null ? null : jobs / deadline_jobs;
}

function deadlineChart(): ChartSpec {
  const rowHeight = 30;
  return {
    id: "deadlines",
    title: "Jobs with a deadline",
    how: "One bar per run: jobs that met their deadline, that missed it without being rejected (late), and that were rejected. On the right the share that met it; higher is better.",
    wide: true,
    legend: () => false,
    height: (view) => 46 + Math.max(view.items.length, 1) * rowHeight + 54,
    option: (view) => {
      const { theme, items } = view;
      const style = axisStyle(theme);
      const longest = maximum(items.map(({ run }) => run.label.length));
      const left = Math.min(isNarrow(view) ? 110 : 220, 20 + longest * 7);
      const right = 56;
      const labels = {
        type: "category" as const,
        inverse: true,
        ...style,
        splitLine: { show: false },
        axisTick: { show: false },
      };
      const names = { color: theme.text, fontSize: 12, interval: 0 };
      return {
        ...base(view),
        grid: { left, right, top: 38, bottom: 54, outerBoundsMode: "none" },
        legend: {
          top: 4,
          left: left - 4,
          itemWidth: 14,
          itemHeight: 12,
          itemGap: 16,
          selectedMode: false,
          textStyle: { color: theme.text, fontSize: 12 },
          data: FATES.map((fate) => fate.name),
        },
        tooltip: {
          ...tooltipStyle(theme),
          trigger: "axis",
          axisPointer: { type: "shadow", shadowStyle: { color: theme.axis, opacity: 0.12 } },
          formatter: (params: unknown) => {
            const first = (Array.isArray(params) ? params[0] : params) as { dataIndex?: number } | undefined;
            const item = items[first?.dataIndex ?? -1];
            if (!item) return "";
            const { summary } = item.run;
            return tooltipRows(
              `${item.run.label}: ${plural(summary.deadline_jobs ?? 0, "job")} with a deadline`,
              FATES.map((fate) => ({
                name: fate.name,
                color: theme.deadlines[fate.key],
                value: `${count(summary[fate.count])} (${percent(fateShare(item.run, fate))})`,
              })),
            );
          },
        },
        xAxis: {
          type: "value",
          ...style,
          ...xName("Jobs with a deadline (%)"),
          min: 0,
          max: 100,
          interval: 20,
        },
        yAxis: [
          {
            ...labels,
            axisLabel: { ...names, width: left - 14, overflow: "truncate" },
            data: items.map(({ run }) => run.label),
          },
          {
            ...labels,
            position: "right",
            axisLine: { show: false },
            axisLabel: names,
            data: items.map(({ run }) => percent(run.summary.deadline_ratio)),
          },
        ],
        series: FATES.map((fate): BarSeriesOption => {
          const color = theme.deadlines[fate.key];
          return {
            type: "bar",
            id: fate.key,
            name: fate.name,
            stack: "jobs",
            barWidth: 18,
            itemStyle: { color, borderColor: theme.muted, borderWidth: fate.key === "rejected" ? 1 : 0 },
            emphasis: { itemStyle: { color } },
            data: items.map(({ run }) => {
              const share = fateShare(run, fate);
              const text = count(run.summary[fate.count]);
              const room = (share ?? 0) * (view.width - left - right);
              return {
                value: share ? share * 100 : null,
                label: {
                  show: room >= 8 * text.length + 6,
                  color: luminance(color) > 0.18 ? "#000000" : "#ffffff",
                  fontSize: 12,
                  formatter: text,
                },
              };
            }),
          };
        }),
      };
    },
    csv: (items) =>
      csv(
        ["run", "deadline_jobs", "deadlines_met", "deadlines_late", "deadlines_rejected", "deadline_ratio"],
        items.map(({ run }): Cell[] => [
          run.label,
          run.summary.deadline_jobs,
          run.summary.deadlines_met,
          run.summary.deadlines_late,
          run.summary.deadlines_rejected,
          run.summary.deadline_ratio,
        ]),
      ),
    table: (items) => ({
      caption: "Jobs with a deadline in every run",
      header: ["Run", "Jobs with a deadline", ...FATES.map((fate) => fate.name), "Ratio met"],
      rows: items.map(({ run }) => [
        run.label,
        count(run.summary.deadline_jobs),
        ...FATES.map((fate) => count(run.summary[fate.count])),
        percent(run.summary.deadline_ratio),
      ]),
    }),
  };
}

function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const c = parseInt(hex.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// ---- all --------------------------------------------------------------------------------------

export function chartSpecs(data: ReportData): ChartSpec[] {
  const { runs, cluster } = data;
  const specs: ChartSpec[] = [
    cdfChart(
      {
        id: "jct-cdf",
        title: "JCT distribution",
        how: "A curve shows the share of completed jobs with at most that JCT; further up and to the left is better.",
        quantity: "JCT",
        jobs: "Completed jobs",
        of: (run) => run.jct_cdf,
      },
      false,
    ),
    cdfChart(
      {
        id: "queueing-cdf",
        title: "Queueing delay distribution",
        how: "A curve shows the share of jobs that waited at most that long; further up and to the left is better.",
        quantity: "Queueing delay",
        jobs: "Jobs",
        of: (run) => run.queueing_cdf,
      },
      false,
    ),
    sizeChart(true),
    timelineChart(
      {
        id: "gpus-used",
        title: "GPUs used over time",
        how:
          (cluster.gpus === null ? "The" : `Out of ${count(cluster.gpus)}, the`) +
          " number of GPUs that jobs hold at each moment; drag the handles under the chart to look at a part of the time.",
        quantity: "GPUs used",
        capacity: cluster.gpus,
        of: (run) => run.timeline.gpus_used,
        csvColumns: [{ name: "gpus_used", of: (run) => run.timeline.gpus_used }],
      },
      runs.length,
    ),
    timelineChart(
      {
        id: "jobs-waiting",
        title: "Jobs waiting over time",
        how: "The number of submitted jobs that hold no GPU at each moment; lower is better, and the time range is shared with the chart above.",
        quantity: "Jobs waiting",
        capacity: null,
        of: (run) => run.timeline.jobs_pending,
        csvColumns: [
          { name: "jobs_pending", of: (run) => run.timeline.jobs_pending },
          { name: "jobs_running", of: (run) => run.timeline.jobs_running },
        ],
      },
      runs.length,
    ),
  ];
  if (hasDeadlines(runs)) specs.push(deadlineChart());
  return specs;
}
