// SPDX-License-Identifier: Apache-2.0
// Mean JCT by job size.

import type { Run } from "./data";
import type { BarSeriesOption } from "./echarts";
import { type Cell, axisUnit, count, csv, decimal, duration, plural } from "./format";
import {
  type ChartSpec,
  type Item,
  axisStyle,
  bandTooltip,
  base,
  isNarrow,
  maximum,
  tooltipBody,
  xName,
  yName,
} from "./parts";
import { runColor } from "./theme";

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

export function sizeChart(): ChartSpec {
  return {
    id: "jct-by-size",
    title: "Mean JCT by job size",
    how: "Each group of bars is a job size, with one bar per run in the order of the legend; lower is better.",
    wide: false,
    has: (run) => run.jct_by_size.length > 0,
    boxes: true,
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
        tooltip: bandTooltip(theme, names, (name) =>
          tooltipBody(
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
          ),
        ),
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
