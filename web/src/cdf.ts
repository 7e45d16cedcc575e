// SPDX-License-Identifier: Apache-2.0
// Cumulative distributions over jobs.

import type { Cdf, Run } from "./data";
import { type Cell, axisUnit, csv, decimal, duration, logTicks, percent, ratio, ratioTicks, tickDuration } from "./format";
import {
  type ChartSpec,
  type Choice,
  type Item,
  X_MARGIN,
  axisStyle,
  base,
  isNarrow,
  line,
  lineTooltip,
  stepAt,
  tooltipBody,
  xName,
  yName,
} from "./parts";

/** What the values of a distribution are, and how they are written. */
export interface Scale {
  /** Of the column in CSV. */
  column: string;
  /** In brackets after the quantity: on an axis with a logarithmic scale, or a linear one. */
  logName: string;
  linear(max: number): { name: string; size: number };
  ticks(min: number, max: number): number[];
  tick(value: number): string;
  show(value: number | null | undefined): string;
  /** Smaller values are drawn at the left edge of a logarithmic scale. */
  least: number;
}

export const SECONDS: Scale = {
  column: "seconds",
  logName: "s, min, h, d; log scale",
  linear: (max) => {
    const unit = axisUnit(max);
    return { name: unit.name, size: unit.seconds };
  },
  ticks: logTicks,
  tick: tickDuration,
  show: duration,
  least: 0.01,
};

export const RATIO: Scale = {
  column: "ratio",
  logName: "log scale",
  linear: () => ({ name: "", size: 1 }),
  ticks: ratioTicks,
  tick: (value) => decimal(value),
  show: ratio,
  least: 0.001,
};

const LOG_LINEAR: Choice = {
  name: "Horizontal axis",
  options: [
    { value: "log", name: "Log" },
    { value: "linear", name: "Linear" },
  ],
  initial: "log",
};

/** The smallest value that at least this share of the jobs stays within. */
function quantile(cdf: Cdf, share: number): number | null {
  const at = cdf.fraction.findIndex((fraction) => fraction >= share - 1e-9);
  return at < 0 ? null : (cdf.values[at] ?? null);
}

export interface CdfKind {
  id: string;
  title: string;
  how: string;
  quantity: string;
  jobs: string;
  scale: Scale;
  of(run: Run): Cdf;
}

interface Bounds {
  floor: number;
  max: number;
  /** Some values are below the floor. */
  clamped: boolean;
}

function boundsOf(kind: CdfKind, items: readonly Item[]): Bounds {
  let positive = Infinity;
  let max = 0;
  let zeros = false;
  for (const { run } of items) {
    for (const value of kind.of(run).values) {
      if (value <= 0) zeros = true;
      else if (value < positive) positive = value;
      if (value > max) max = value;
    }
  }
  if (max <= 0) return { floor: 1, max: 10, clamped: zeros };
  const floor = zeros || positive < kind.scale.least ? Math.min(1, max / 10) : positive;
  return { floor, max, clamped: zeros || positive < floor };
}

const bracketed = (name: string, unit: string): string => (unit === "" ? name : `${name} (${unit})`);

export function cdfChart(kind: CdfKind): ChartSpec {
  const { scale } = kind;
  return {
    id: kind.id,
    title: kind.title,
    how: kind.how,
    wide: false,
    has: (run) => kind.of(run).values.length > 0,
    choice: LOG_LINEAR,
    legend: () => true,
    height: (view) => (isNarrow(view) ? 300 : 360),
    option: (view) => {
      const { theme, items } = view;
      const log = view.choice === "log";
      const { floor, max, clamped } = boundsOf(kind, items);
      const unit = scale.linear(max);
      const toAxis = (value: number): number => (log ? Math.log10(Math.max(value, floor)) : value / unit.size);
      const fromAxis = (value: number): number => (log ? 10 ** value : value * unit.size);

      const span = Math.max(Math.log10(max) - Math.log10(floor), 0.1);
      const low = clamped ? Math.log10(floor) : Math.log10(floor) - 0.03 * span;
      const high = Math.log10(max) + 0.03 * span;
      const ticks = scale.ticks(10 ** low * (1 - 1e-9), 10 ** high).map((tick) => Math.log10(tick));
      const style = axisStyle(theme);

      const series = items.map((item) => {
        const cdf = kind.of(item.run);
        const data: [number, number][] = cdf.values.map((value, i) => [
          toAxis(value),
          (cdf.fraction[i] as number) * 100,
        ]);
        const first = data[0];
        if (first && first[1] > 0) data.unshift([first[0], 0]);
        return line(item, data, theme);
      });

      return {
        ...base(view),
        grid: { left: 44, right: 20, top: 36, bottom: 54, outerBoundsMode: "none" },
        tooltip: lineTooltip(theme, (at) => {
          const value = fromAxis(at);
          return tooltipBody(
            `${kind.quantity} of at most ${scale.show(value)}`,
            items.map((item) => {
              const { values, fraction } = kind.of(item.run);
              return { item, value: percent(stepAt(values, fraction, value * (1 + 1e-9)) ?? 0) };
            }),
            theme,
          );
        }),
        xAxis: log
          ? {
              type: "value",
              ...style,
              ...xName(bracketed(kind.quantity, scale.logName)),
              min: low,
              max: high,
              axisTick: { ...style.axisTick, customValues: ticks },
              axisLabel: {
                ...style.axisLabel,
                margin: X_MARGIN,
                customValues: ticks,
                formatter: (value: number) =>
                  (clamped && Math.abs(value - low) < 1e-6 ? "≤ " : "") + scale.tick(Number((10 ** value).toPrecision(6))),
              },
            }
          : {
              type: "value",
              ...style,
              ...xName(bracketed(kind.quantity, unit.name)),
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
        ["run", scale.column, "fraction"],
        items.flatMap(({ run }) => {
          const cdf = kind.of(run);
          return cdf.values.map((value, i): Cell[] => [run.label, value, cdf.fraction[i]]);
        }),
      ),
    table: (items) => {
      const shares = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];
      return {
        caption: `${kind.quantity}: percentiles of every run, read off the curve`,
        header: ["Run", ...shares.map((share) => `p${share * 100}`), "Greatest"],
        rows: items.map(({ run }) => {
          const cdf = kind.of(run);
          return [
            run.label,
            ...shares.map((share) => scale.show(quantile(cdf, share))),
            scale.show(cdf.values[cdf.values.length - 1]),
          ];
        }),
      };
    },
  };
}
