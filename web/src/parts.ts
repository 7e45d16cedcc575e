// SPDX-License-Identifier: Apache-2.0
// What all charts of runs share: their interface, axes, tooltips, lines.

import type { Run } from "./data";
import { type PlainTable, h } from "./dom";
import type { LineSeriesOption, Option } from "./echarts";
import { type Unit, decimal } from "./format";
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
  /** Seconds to the end of the longest run that is shown on the page. */
  span: number;
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
  /** Whether a run has what the chart shows. */
  has(run: Run): boolean;
  choice?: Choice;
  timeAxis?: boolean;
  /** Runs are boxes in its legend, not lines. */
  boxes?: boolean;
  /** False when the runs are named on an axis. */
  legend(choice: string): boolean;
  height(view: View): number;
  option(view: View): Option;
  csv(items: readonly Item[]): string;
  table(items: readonly Item[], choice: string): PlainTable;
}

export const SCREEN_FONT = '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", sans-serif';

export const isNarrow = (view: View): boolean => view.width < 520;

export function axisStyle(theme: Theme) {
  return {
    axisLine: { show: true, onZero: false, lineStyle: { color: theme.axis } },
    axisTick: { show: true, lineStyle: { color: theme.axis } },
    axisLabel: { color: theme.muted, fontSize: 12, hideOverlap: true },
    nameTextStyle: { color: theme.muted, fontSize: 12 },
    splitLine: { show: true, lineStyle: { color: theme.grid } },
  };
}

/** The name of a y axis stands above it, flush with the left edge of the chart. */
export function yName(theme: Theme, name: string, left: number) {
  return {
    name,
    nameLocation: "end" as const,
    nameGap: 12,
    nameTextStyle: { color: theme.muted, fontSize: 12, align: "left" as const, padding: [0, 0, 0, 4 - left] },
  };
}

/** Keeps the labels of the x axis clear of the lowest label of the y axis. */
export const X_MARGIN = 12;

export function xName(name: string) {
  return { name, nameLocation: "middle" as const, nameGap: 34 };
}

export function base(view: View): Option {
  return {
    animation: false,
    backgroundColor: "transparent",
    textStyle: { fontFamily: SCREEN_FONT, color: view.theme.text },
  };
}

function tooltipStyle(theme: Theme) {
  return {
    trigger: "axis" as const,
    confine: true,
    backgroundColor: theme.surface,
    borderColor: theme.axis,
    borderWidth: 1,
    padding: [6, 10],
    textStyle: { color: theme.text, fontSize: 12 },
    extraCssText: "box-shadow: 0 2px 8px rgb(0 0 0 / 0.18); border-radius: 4px;",
  };
}

export function tooltipRows(heading: string, rows: { name: string; color: string; value: string }[]): HTMLElement {
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

export function tooltipBody(heading: string, rows: { item: Item; value: string }[], theme: Theme): HTMLElement {
  return tooltipRows(
    heading,
    rows.map(({ item, value }) => ({ name: item.run.label, color: runColor(theme, item.index), value })),
  );
}

interface Pointed {
  axisValue?: unknown;
  axisIndex?: number;
  dataIndex?: number;
}

const pointed = (params: unknown): Pointed => ((Array.isArray(params) ? params[0] : params) as Pointed | undefined) ?? {};

/** What is at the place of the pointer: its value on the horizontal axis with this number. */
export function lineTooltip(theme: Theme, body: (at: number, axis: number) => HTMLElement | string) {
  return {
    ...tooltipStyle(theme),
    axisPointer: { type: "line" as const, snap: false, lineStyle: { color: theme.axis }, label: { show: false } },
    formatter: (params: unknown) => {
      const { axisValue, axisIndex } = pointed(params);
      const at = Number(axisValue);
      return Number.isFinite(at) ? body(at, axisIndex ?? 0) : "";
    },
  };
}

/** What is in the band of a category under the pointer. */
export function bandTooltip<T>(theme: Theme, bands: readonly T[], body: (band: T) => HTMLElement) {
  return {
    ...tooltipStyle(theme),
    axisPointer: { type: "shadow" as const, shadowStyle: { color: theme.axis, opacity: 0.12 } },
    formatter: (params: unknown) => {
      const band = bands[pointed(params).dataIndex ?? -1];
      return band === undefined ? "" : body(band);
    },
  };
}

/** Value of a step function at x: that of the last point not after x. */
export function stepAt(xs: readonly number[], ys: readonly number[], x: number): number | null {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((xs[middle] as number) <= x) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? null : (ys[low - 1] ?? null);
}

export function line(item: Item, data: [number, number][], theme: Theme): LineSeriesOption {
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

export const maximum = (values: Iterable<number>): number => {
  let max = 0;
  for (const value of values) if (value > max) max = value;
  return max;
};

/** Seconds from the first submission to the end of the longest of these runs. */
export const timeSpan = (items: readonly Item[]): number =>
  maximum(items.map(({ run }) => run.timeline.time[run.timeline.time.length - 1] ?? 0));

/** Time axes under each other, of which the last has the ticks. `end` is in units. */
export function timeAxes(view: View, count: number, end: number, unit: Unit) {
  const style = axisStyle(view.theme);
  const whole = end > 0 ? end : 1;
  // Pictures have no slider: they show the part alone.
  const part = view.interactive ? { start: 0, end: 100 } : view.zoom;
  return Array.from({ length: count }, (_, i) => ({
    type: "value" as const,
    gridIndex: i,
    ...style,
    ...(i === count - 1 ? xName(`Time since the first submission (${unit.name})`) : {}),
    min: (whole * part.start) / 100,
    max: (whole * part.end) / 100,
    axisTick: { ...style.axisTick, show: i === count - 1 },
    splitLine: { show: false },
    axisLabel: {
      ...style.axisLabel,
      margin: X_MARGIN,
      show: i === count - 1,
      showMinLabel: part.start > 0 ? false : undefined,
      showMaxLabel: false,
      formatter: (value: number) => decimal(value),
    },
  }));
}

/** A slider for all of them. */
export function timeZoom(view: View, count: number, left: number) {
  const { theme, zoom } = view;
  if (!view.interactive) return {};
  return {
    dataZoom: [
      {
        type: "slider" as const,
        id: "time",
        xAxisIndex: Array.from({ length: count }, (_, i) => i),
        filterMode: "none" as const,
        start: zoom.start,
        end: zoom.end,
        left,
        right: 20,
        bottom: 12,
        height: 22,
        brushSelect: false,
        showDataShadow: false as const,
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
  };
}

/** The gap between rows, with room for the name of the lower one. */
export const ROW_GAP = 30;

/** Rows of one height under each other. */
export const rowGrid = (row: number, place: { left: number; top: number; height: number }) => ({
  left: place.left,
  right: 20,
  top: place.top + row * (place.height + ROW_GAP),
  height: place.height,
  outerBoundsMode: "none" as const,
});

/** The y axis of a row: its name above it, and ticks at its two ends alone. */
export const rowAxis = (theme: Theme, name: string, max: number) => ({
  min: 0,
  max,
  interval: max,
  name,
  nameLocation: "end" as const,
  nameGap: 6,
  nameTextStyle: { color: theme.text, fontSize: 12, align: "left" as const },
});

export const LEGEND_LINE = 22;

/** A legend of the parts that all runs are made of. */
export const partsLegend = (lines: readonly (readonly string[])[], theme: Theme) =>
  lines.map((line, i) => ({
    top: 4 + i * LEGEND_LINE,
    left: 0,
    itemWidth: 14,
    itemHeight: 12,
    itemGap: 16,
    icon: "roundRect",
    selectedMode: false as const,
    textStyle: { color: theme.text, fontSize: 12 },
    data: [...line],
  }));

const LEGEND_FONT = "12px Helvetica, Arial, sans-serif";

/** Breaks the entries of a legend into lines of at most this width. */
export function legendLines(names: readonly string[], width: number, mark = 30): string[][] {
  const context = document.createElement("canvas").getContext("2d");
  if (context) context.font = LEGEND_FONT;
  const lines: string[][] = [];
  let used = Infinity;
  for (const name of names) {
    const needs = mark + 5 + 18 + (context ? context.measureText(name).width * 1.05 : name.length * 7);
    if (used + needs > width) {
      lines.push([]);
      used = 0;
    }
    lines[lines.length - 1]?.push(name);
    used += needs;
  }
  return lines;
}
