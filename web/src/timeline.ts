// SPDX-License-Identifier: Apache-2.0
// Quantities over time.

import type { Run } from "./data";
import type { LineSeriesOption } from "./echarts";
import { type Cell, axisUnit, count, csv, decimal, duration } from "./format";
import {
  type ChartSpec,
  ROW_GAP,
  type View,
  axisStyle,
  base,
  isNarrow,
  line,
  lineTooltip,
  maximum,
  rowAxis,
  rowGrid,
  stepAt,
  timeAxes,
  timeZoom,
  tooltipBody,
  yName,
} from "./parts";
import { runColor } from "./theme";

const ROW = 62;

export interface TimelineKind {
  id: string;
  title: string;
  how: string;
  quantity: string;
  /** Upper end of the y axis, when it is known. */
  capacity: number | null;
  of(run: Run): readonly number[];
  /** Of one value; whole numbers without it. */
  show?(value: number | null | undefined): string;
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

/** Lines of more runs or points than these lie over each other. */
const OVERLAID_RUNS = 4;
const OVERLAID_POINTS = 600;

export function timelineChart(kind: TimelineKind, ofReport: readonly Run[]): ChartSpec {
  const has = (run: Run): boolean => kind.of(run).length > 0;
  const all = ofReport.filter(has);
  const runs = all.length;
  const points = maximum(all.map((run) => run.timeline.time.length));
  const separate = (view: View): boolean => view.choice === "rows";
  const show = kind.show ?? count;
  return {
    id: kind.id,
    title: kind.title,
    how: kind.how,
    wide: true,
    has,
    timeAxis: true,
    choice:
      runs > 1
        ? {
            name: "Runs",
            options: [
              { value: "rows", name: "One row per run" },
              { value: "overlaid", name: "Overlaid" },
            ],
            initial: runs > OVERLAID_RUNS || points > OVERLAID_POINTS ? "rows" : "overlaid",
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
      const unit = axisUnit(view.span);
      const end = view.span / unit.seconds;
      const peak = maximum(items.map(({ run }) => maximum(kind.of(run))));
      const step = kind.capacity !== null && kind.capacity >= peak ? capacityStep(kind.capacity) : null;
      const rowMax = kind.capacity !== null && kind.capacity >= peak ? kind.capacity : Math.max(Math.ceil(peak), 1);
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

      const grids = rows
        ? items.map((_, i) => rowGrid(i, { left, top: 24, height: ROW }))
        : [{ left, right: 20, top: 36, bottom: foot, outerBoundsMode: "none" as const }];

      return {
        ...base(view),
        grid: grids,
        tooltip: lineTooltip(theme, (at) => {
          const seconds = at * unit.seconds;
          return tooltipBody(
            `After ${duration(seconds)}: ${kind.quantity}`,
            items.map((item) => {
              const { time } = item.run.timeline;
              return { item, value: show(stepAt(time, kind.of(item.run), seconds * (1 + 1e-9))) };
            }),
            theme,
          );
        }),
        axisPointer: { link: [{ xAxisIndex: "all" }] },
        xAxis: timeAxes(view, grids.length, end, unit),
        yAxis: grids.map((_, i) => ({
          type: "value" as const,
          gridIndex: i,
          ...style,
          min: 0,
          ...(rows
            ? rowAxis(theme, (i === 0 ? `${kind.quantity}: ` : "") + (items[i]?.run.label ?? ""), rowMax)
            : {
                ...yName(theme, kind.quantity, left),
                ...(step !== null ? { max: kind.capacity as number, interval: step } : (kind.show ? {} : { minInterval: 1 })),
              }),
          axisLabel: { ...style.axisLabel, formatter: (value: number) => show(value) },
        })),
        ...timeZoom(view, grids.length, left),
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
          show(peak),
          duration(time[values.indexOf(peak)]),
          duration(time[time.length - 1]),
        ];
      }),
    }),
  };
}
