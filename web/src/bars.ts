// SPDX-License-Identifier: Apache-2.0
// One horizontal bar per run, which adds up to the whole: what became of deadlines, of GPU time.

import type { ReportData, Run, Share } from "./data";
import type { BarSeriesOption } from "./echarts";
import { type Cell, count, csv, decimal, duration, gpuHours, percent, plural } from "./format";
import {
  type ChartSpec,
  type Choice,
  LEGEND_LINE,
  axisStyle,
  bandTooltip,
  base,
  isNarrow,
  legendLines,
  maximum,
  partsLegend,
  tooltipRows,
  xName,
} from "./parts";
import { ownerName } from "./owners";
import type { PlainTable } from "./dom";
import { type Theme, categoryColor, inkOn } from "./theme";

interface Part {
  id: string;
  name: string;
  color(theme: Theme): string;
  /** Drawn with an outline. */
  faint: boolean;
  value(run: Run): number | null;
}

interface BarsKind {
  id: string;
  title: string;
  how: string;
  has(run: Run): boolean;
  /** Of the horizontal axis, in percent. */
  whole: string;
  choice?: Choice;
  parts(choice: string): readonly Part[];
  heading(run: Run): string;
  /** Of a part, in a tooltip, and where there is room in the bar. */
  show(value: number | null): string;
  label(value: number, share: number): string;
  /** At the right of a bar. */
  right?(run: Run): string;
  csv(runs: readonly Run[]): { header: string[]; rows: Cell[][] };
  table(runs: readonly Run[], choice: string): PlainTable;
}

const ROW = 30;
/** Two of them are the room of a label. */
const LABEL_LINE = 14;
const FOOT = 54;

const NOTHING: readonly (readonly string[])[] = [[]];

const sum = (run: Run, parts: readonly Part[]): number =>
  parts.reduce((total, part) => total + (part.value(run) ?? 0), 0);

const shareOf = (run: Run, part: Part, parts: readonly Part[]): number | null => {
  const total = sum(run, parts);
  const value = part.value(run);
  return total > 0 && value !== null ? value / total : null;
};

function barsChart(kind: BarsKind): ChartSpec {
  const legend = (choice: string, width: number): readonly (readonly string[])[] => {
    const lines = legendLines(
      kind.parts(choice).map((part) => part.name),
      width - 8,
    );
    return lines.length > 0 ? lines : NOTHING;
  };
  const topOf = (choice: string, width: number): number => 16 + legend(choice, width).length * LEGEND_LINE;
  return {
    id: kind.id,
    title: kind.title,
    how: kind.how,
    wide: true,
    has: kind.has,
    choice: kind.choice,
    legend: () => false,
    height: (view) => topOf(view.choice, view.width) + Math.max(view.items.length, 1) * ROW + FOOT,
    option: (view) => {
      const { theme, items } = view;
      const parts = kind.parts(view.choice);
      const lines = legend(view.choice, view.width);
      const style = axisStyle(theme);
      const longest = maximum(items.map(({ run }) => run.label.length));
      const left = Math.min(isNarrow(view) ? 110 : 220, 20 + longest * 7);
      const right = kind.right ? 60 : 20;
      const axis = {
        type: "category" as const,
        inverse: true,
        ...style,
        splitLine: { show: false },
        axisTick: { show: false },
      };
      const names = { color: theme.text, fontSize: 12, interval: 0 };
      return {
        ...base(view),
        grid: { left, right, top: topOf(view.choice, view.width), bottom: FOOT, outerBoundsMode: "none" },
        legend: partsLegend(lines, theme),
        tooltip: bandTooltip(theme, items, ({ run }) =>
          tooltipRows(
            kind.heading(run),
            parts.map((part) => ({
              name: part.name,
              color: part.color(theme),
              value: `${kind.show(part.value(run))} (${percent(shareOf(run, part, parts))})`,
            })),
          ),
        ),
        xAxis: {
          type: "value",
          ...style,
          ...xName(`${kind.whole} (%)`),
          min: 0,
          max: 100,
          interval: 20,
        },
        yAxis: [
          {
            ...axis,
            axisLabel: {
              ...names,
              width: left - 14,
              overflow: "break",
              lineHeight: LABEL_LINE,
              height: 2 * LABEL_LINE,
              lineOverflow: "truncate",
            },
            data: items.map(({ run }) => run.label),
          },
          {
            ...axis,
            position: "right",
            axisLine: { show: false },
            axisLabel: names,
            data: items.map(({ run }) => kind.right?.(run) ?? ""),
          },
        ],
        series: parts.map((part): BarSeriesOption => {
          const color = part.color(theme);
          return {
            type: "bar",
            id: part.id,
            name: part.name,
            stack: "parts",
            barWidth: 18,
            itemStyle: { color, borderColor: theme.muted, borderWidth: part.faint ? 1 : 0 },
            emphasis: { itemStyle: { color } },
            data: items.map(({ run }) => {
              const share = shareOf(run, part, parts);
              const text = share === null ? "" : kind.label(part.value(run) ?? 0, share);
              const room = (share ?? 0) * (view.width - left - right);
              return {
                value: share ? share * 100 : null,
                label: {
                  show: text !== "" && room >= 8 * text.length + 6,
                  color: inkOn(color),
                  fontSize: 12,
                  formatter: text,
                },
              };
            }),
          };
        }),
      };
    },
    csv: (items) => {
      const { header, rows } = kind.csv(items.map(({ run }) => run));
      return csv(header, rows);
    },
    table: (items, choice) =>
      kind.table(
        items.map(({ run }) => run),
        choice,
      ),
  };
}

// ---- deadlines --------------------------------------------------------------------------------

function summaryPart(id: "met" | "late" | "rejected", name: string): Part {
  return {
    id,
    name,
    color: (theme) => theme.three[id === "met" ? "strong" : id === "late" ? "warning" : "faint"],
    faint: id === "rejected",
    value: (run) => run.summary[`deadlines_${id}`] ?? null,
  };
}

const FATES: readonly Part[] = [
  summaryPart("met", "Met"),
  summaryPart("late", "Late"),
  summaryPart("rejected", "Rejected"),
];

export const deadlineChart = (): ChartSpec =>
  barsChart({
    id: "deadlines",
    title: "Jobs with a deadline",
    how: "One bar per run: jobs that met their deadline, that missed it without being rejected (late), and that were rejected. On the right the share that met it; higher is better.",
    has: (run) => (run.summary.deadline_jobs ?? 0) > 0,
    whole: "Jobs with a deadline",
    parts: () => FATES,
    heading: ({ label, summary }) => `${label}: ${plural(summary.deadline_jobs ?? 0, "job")} with a deadline`,
    show: count,
    label: (value) => count(value),
    right: (run) => percent(run.summary.deadline_ratio),
    csv: (runs) => ({
      header: ["run", "deadline_jobs", "deadlines_met", "deadlines_late", "deadlines_rejected", "deadline_ratio"],
      rows: runs.map(({ label, summary }) => [
        label,
        summary.deadline_jobs,
        summary.deadlines_met,
        summary.deadlines_late,
        summary.deadlines_rejected,
        summary.deadline_ratio,
      ]),
    }),
    table: (runs) => ({
      caption: "Jobs with a deadline in every run",
      header: ["Run", "Jobs with a deadline", ...FATES.map((fate) => fate.name), "Ratio met"],
      rows: runs.map((run) => [
        run.label,
        count(run.summary.deadline_jobs),
        ...FATES.map((fate) => count(fate.value(run))),
        percent(run.summary.deadline_ratio),
      ]),
    }),
  });

// ---- GPU time ---------------------------------------------------------------------------------

const timePart = (id: "useful" | "overhead" | "idle", name: string): Part => ({
  id,
  name,
  color: (theme) => theme.three[id === "useful" ? "strong" : id === "overhead" ? "warning" : "faint"],
  faint: id === "idle",
  value: (run) => run.gpu_time?.[id] ?? null,
});

const TIMES: readonly Part[] = [
  timePart("useful", "Useful: jobs advance"),
  timePart("overhead", "Overhead: held without progress"),
  timePart("idle", "Idle: held by no job"),
];

export const gpuTimeChart = (): ChartSpec =>
  barsChart({
    id: "gpu-time",
    title: "Goodput and overhead",
    how: "One bar per run: all GPU time from the first submission to the last end, and what became of it. On the right the useful share; higher is better.",
    has: (run) => run.gpu_time !== null,
    whole: "GPU time of the cluster",
    parts: () => TIMES,
    heading: (run) => `${run.label}: ${gpuHours(sum(run, TIMES))}`,
    show: gpuHours,
    label: (_, share) => percent(share),
    right: (run) => percent(shareOf(run, TIMES[0] as Part, TIMES)),
    csv: (runs) => ({
      header: ["run", "useful_gpu_seconds", "overhead_gpu_seconds", "idle_gpu_seconds"],
      rows: runs.map((run) => [run.label, ...TIMES.map((part) => part.value(run))]),
    }),
    table: (runs) => ({
      caption: "GPU time in every run",
      header: ["Run", "Useful", "Overhead", "Idle", "In all", "Useful share", "Overhead share"],
      rows: runs.map((run) => [
        run.label,
        ...TIMES.map((part) => gpuHours(part.value(run))),
        gpuHours(sum(run, TIMES)),
        percent(shareOf(run, TIMES[0] as Part, TIMES)),
        percent(shareOf(run, TIMES[1] as Part, TIMES), 2),
      ]),
    }),
  });

// ---- shares -----------------------------------------------------------------------------------

const OWNERS = [
  { value: "users", name: "Users", one: "User" },
  { value: "queues", name: "Queues", one: "Queue" },
  { value: "models", name: "Models", one: "Model" },
] as const;
type Owners = (typeof OWNERS)[number]["value"];

const NAMED_MAX = 10;

/** Names by their GPU time in all runs, the greatest first. */
export function namesByTime(runs: readonly Run[], owners: Owners): string[] {
  const totals = new Map<string, number>();
  for (const run of runs) {
    for (const { name, gpu_seconds } of run[owners]) {
      if (name !== null) totals.set(name, (totals.get(name) ?? 0) + gpu_seconds);
    }
  }
  return [...totals].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0], "en")).map(([name]) => name);
}

function shareParts(runs: readonly Run[], owners: Owners): Part[] {
  const names = namesByTime(runs, owners);
  const cut = names.length > NAMED_MAX + 1 ? NAMED_MAX : names.length;
  const shown = names.slice(0, cut);
  const parts = shown.map(
    (name, i): Part => ({
      id: `name-${i}`,
      name: shorten(ownerName(name)),
      color: (theme) => categoryColor(theme, i),
      faint: false,
      value: (run) => run[owners].find((share) => share.name === name)?.gpu_seconds ?? 0,
    }),
  );
  const isRest = (share: Share): boolean => share.name === null || !shown.includes(share.name);
  if (runs.some((run) => run[owners].some(isRest))) {
    parts.push({
      id: "rest",
      name: `All others`,
      color: (theme) => theme.three.faint,
      faint: true,
      value: (run) => run[owners].filter(isRest).reduce((total, share) => total + share.gpu_seconds, 0),
    });
  }
  return parts;
}

const shorten = (name: string): string => (name.length > 28 ? `${name.slice(0, 27)}…` : name);

/** Null where the jobs state neither users nor queues nor models. */
export function sharesChart(data: ReportData): ChartSpec | null {
  const { runs } = data;
  const present = OWNERS.filter(({ value }) => runs.some((run) => run[value].length > 0));
  const first = present[0];
  if (!first) return null;
  const parts = new Map(present.map(({ value }) => [value as string, shareParts(runs, value)]));
  return barsChart({
    id: "shares",
    title: "Shares of GPU time",
    how: `One bar per run: the GPU time that jobs held, by ${present.map(({ one }) => one.toLowerCase()).join(", ").replace(/, ([^,]*)$/, " or $1")}.`,
    has: (run) => present.some(({ value }) => run[value].length > 0),
    whole: "GPU time held",
    choice:
      present.length > 1
        ? { name: "Shares of", options: present.map(({ value, name }) => ({ value, name })), initial: first.value }
        : undefined,
    parts: (choice) => parts.get(choice || first.value) ?? [],
    heading: (run) => run.label,
    show: gpuHours,
    label: (_, share) => percent(share, 0),
    csv: (shown) => ({
      header: ["run", "kind", "name", "jobs", "gpu_seconds", "jct_mean_seconds"],
      rows: shown.flatMap((run) =>
        present.flatMap(({ value, one }) =>
          run[value].map((share): Cell[] => [
            run.label,
            one.toLowerCase(),
            share.name ?? "(all others)",
            share.jobs,
            share.gpu_seconds,
            share.jct_mean,
          ]),
        ),
      ),
    }),
    table: (shown, choice) => {
      const owners = (choice || first.value) as Owners;
      const names = namesByTime(shown, owners).slice(0, 50);
      const { one } = present.find(({ value }) => value === owners) ?? first;
      return {
        caption: `GPU hours held and mean JCT, by ${one.toLowerCase()}${names.length === 50 ? "; the 50 with most, all are in the CSV" : ""}`,
        header: [one, "Jobs", ...shown.flatMap((run) => [`${run.label}: GPU h`, "mean JCT"])],
        rows: names.map((name) => {
          const of = (run: Run): Share | undefined => run[owners].find((share) => share.name === name);
          return [
            ownerName(name),
            count(shown[0] ? of(shown[0])?.jobs : null),
            ...shown.flatMap((run) => [decimal((of(run)?.gpu_seconds ?? 0) / 3600), duration(of(run)?.jct_mean)]),
          ];
        }),
      };
    },
  });
}
