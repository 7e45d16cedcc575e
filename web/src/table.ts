// SPDX-License-Identifier: Apache-2.0
// The comparison table, the tiles above it and the list of all summary values.

import type { ReportData, Run, SummaryValue } from "./data";
import { type Cell, NONE, count, csv, decimal, duration, exactSeconds, percent } from "./format";
import { type PlainTable, download, h, plainTable } from "./dom";
import { swatch } from "./theme";

type Kind = "count" | "duration" | "ratio";

interface Column {
  key: string;
  group: string;
  name: string;
  /** Full name, for assistive technology and tiles. */
  long: string;
  kind: Kind;
  better: "low" | "high";
}

const DEADLINES = "Deadlines";

const COLUMNS: readonly Column[] = [
  { key: "completed", group: "Jobs", name: "Completed", long: "completed jobs", kind: "count", better: "high" },
  { key: "rejected", group: "Jobs", name: "Rejected", long: "rejected jobs", kind: "count", better: "low" },
  { key: "unfinished", group: "Jobs", name: "Unfinished", long: "unfinished jobs", kind: "count", better: "low" },
  {
    key: "deadline_ratio",
    group: DEADLINES,
    name: "Met",
    long: "deadline satisfaction ratio",
    kind: "ratio",
    better: "high",
  },
  { key: "accepted", group: DEADLINES, name: "Accepted", long: "deadlines met", kind: "count", better: "high" },
  {
    key: "declined",
    group: DEADLINES,
    name: "Declined",
    long: "declined jobs, rejected or late",
    kind: "count",
    better: "low",
  },
  {
    key: "deadlines_late",
    group: DEADLINES,
    name: "Late",
    long: "jobs that missed their deadline without being rejected",
    kind: "count",
    better: "low",
  },
  { key: "jct_mean", group: "JCT", name: "Mean", long: "mean JCT", kind: "duration", better: "low" },
  { key: "jct_p50", group: "JCT", name: "p50", long: "median JCT", kind: "duration", better: "low" },
  { key: "jct_p90", group: "JCT", name: "p90", long: "90th percentile of JCT", kind: "duration", better: "low" },
  { key: "jct_p99", group: "JCT", name: "p99", long: "99th percentile of JCT", kind: "duration", better: "low" },
  {
    key: "queueing_delay_mean",
    group: "Queueing delay",
    name: "Mean",
    long: "mean queueing delay",
    kind: "duration",
    better: "low",
  },
  { key: "makespan", group: "Cluster", name: "Makespan", long: "makespan", kind: "duration", better: "low" },
  {
    key: "gpu_utilization",
    group: "Cluster",
    name: "GPU utilisation",
    long: "GPU utilisation",
    kind: "ratio",
    better: "high",
  },
  { key: "preemptions", group: "Cost", name: "Preemptions", long: "preemptions", kind: "count", better: "low" },
  { key: "migrations", group: "Cost", name: "Migrations", long: "migrations", kind: "count", better: "low" },
];

export const hasDeadlines = (runs: readonly Run[]): boolean =>
  runs.some((run) => (run.summary.deadline_jobs ?? 0) > 0);

export function numeric(run: Run, key: string): number | null {
  const value = run.summary[key];
  return typeof value === "number" ? value : null;
}

function show(kind: Kind, value: number | null): string {
  return kind === "count" ? count(value) : kind === "ratio" ? percent(value) : duration(value);
}

function exact(kind: Kind, value: number | null): string {
  if (kind === "duration") return exactSeconds(value);
  return value === null ? "does not apply" : String(value);
}

/** The best value of a column; null when the runs do not differ or there is one run. */
function bestOf(runs: readonly Run[], column: Column): number | null {
  const values = runs.map((run) => numeric(run, column.key)).filter((value): value is number => value !== null);
  if (values.length < 2) return null;
  const low = Math.min(...values);
  const high = Math.max(...values);
  if (low === high) return null;
  return column.better === "low" ? low : high;
}

/** "srtf · consolidated · all": what the label may leave out. */
function makeUp(run: Run): HTMLElement {
  const parts: [string, string][] = [
    ["policy", run.policy],
    ["placement", run.placement],
    ["admission", run.admission],
    ["preset", run.preset],
  ];
  const given = parts.filter(([, value]) => value !== "");
  return h(
    "span",
    { class: "run-detail", title: given.map(([name, value]) => `${name} ${value}`).join(", ") },
    ...given.map(([name, value]) => h("span", {}, h("span", { class: "hidden" }, `${name} `), value)),
  );
}

export function tiles(data: ReportData): HTMLElement {
  const shown =
    data.runs.length > 1
      ? ["jct_mean", "jct_p99", "queueing_delay_mean", "gpu_utilization"]
      : ["jct_mean", "jct_p99", "queueing_delay_mean", "makespan", "gpu_utilization"];
  if (hasDeadlines(data.runs)) shown.push("deadline_ratio");
  const list = h("dl", { class: "tiles" });
  for (const key of shown) {
    const column = COLUMNS.find((item) => item.key === key);
    if (!column) continue;
    const single = data.runs.length === 1;
    const values = data.runs
      .map((run, index) => ({ run, index, value: numeric(run, key) }))
      .filter((item): item is { run: Run; index: number; value: number } => item.value !== null);
    if (values.length === 0) continue;
    values.sort((a, b) => (column.better === "low" ? a.value - b.value : b.value - a.value));
    const first = values[0]!;
    const ties = values.filter((item) => item.value === first.value).length;
    const word = single ? "" : column.better === "low" ? "Lowest " : "Highest ";
    const name = word + column.long;
    list.append(
      h(
        "div",
        { class: "tile" },
        h("dt", {}, name.charAt(0).toUpperCase() + name.slice(1)),
        h("dd", { class: "tile-value", title: exact(column.kind, first.value) }, show(column.kind, first.value)),
        !single &&
          h(
            "dd",
            { class: "tile-run" },
            ties === 1 && swatch(first.index),
            h(
              "span",
              {},
              ties === 1 ? first.run.label : ties === values.length ? "the same in all runs" : `${ties} runs`,
            ),
          ),
      ),
    );
  }
  return list;
}

interface Sort {
  key: string;
  ascending: boolean;
}

export function comparisonTable(data: ReportData): HTMLElement {
  const runs = data.runs.map((run, index) => ({ run, index }));
  const columns = COLUMNS.filter((column) => column.group !== DEADLINES || hasDeadlines(data.runs));
  const best = new Map(columns.map((column) => [column.key, bestOf(data.runs, column)]));
  let sort: Sort | null = null;

  const status = h("p", { class: "hidden", role: "status" });
  const body = h("tbody");
  const heads = new Map<string, HTMLElement>();

  const rows = runs.map(({ run, index }) => {
    const row = h(
      "tr",
      {},
      h(
        "th",
        { scope: "row" },
        h("span", { class: "run" }, swatch(index), h("span", { class: "run-label" }, run.label)),
        makeUp(run),
      ),
    );
    for (const column of columns) {
      const value = numeric(run, column.key);
      const isBest = value !== null && value === best.get(column.key);
      row.append(
        h(
          "td",
          { title: exact(column.kind, value), class: isBest ? "best" : undefined },
          h(
            "span",
            { class: "value" },
            isBest && h("span", { class: "star", "aria-hidden": "true" }, "★"),
            show(column.kind, value),
            isBest && h("span", { class: "hidden" }, " (best)"),
          ),
        ),
      );
    }
    return { run, index, row };
  });

  const order = (): void => {
    const sorted = [...rows];
    if (sort) {
      const { key, ascending } = sort;
      const sign = ascending ? 1 : -1;
      sorted.sort((a, b) => {
        if (key === "label") return sign * a.run.label.localeCompare(b.run.label, "en", { numeric: true });
        const x = numeric(a.run, key);
        const y = numeric(b.run, key);
        if (x === null || y === null) return x === y ? a.index - b.index : x === null ? 1 : -1;
        return sign * (x - y) || a.index - b.index;
      });
    }
    body.replaceChildren(...sorted.map((item) => item.row));
    for (const [key, head] of heads) {
      if (sort?.key === key) head.setAttribute("aria-sort", sort.ascending ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
  };

  const heading = (key: string, name: string, long: string, firstAscending: boolean, rowspan?: number): HTMLElement => {
    const button = h("button", { type: "button", "data-sort": key, title: `Sort by ${long}` }, name);
    button.addEventListener("click", () => {
      sort = { key, ascending: sort?.key === key ? !sort.ascending : firstAscending };
      order();
      status.textContent = `Sorted by ${long}, ${sort.ascending ? "lowest" : "highest"} first.`;
    });
    const head = h("th", { scope: "col", rowspan }, button);
    heads.set(key, head);
    return head;
  };

  const groups: { name: string; size: number }[] = [];
  for (const column of columns) {
    const last = groups[groups.length - 1];
    if (last?.name === column.group) last.size++;
    else groups.push({ name: column.group, size: 1 });
  }
  const groupStarts = new Set<number>();
  groups.reduce((at, group) => (groupStarts.add(at), at + group.size), 0);

  const second = columns.map((column) =>
    heading(column.key, column.name, column.long, column.better === "low"),
  );
  second.forEach((head, i) => groupStarts.has(i) && head.classList.add("start"));
  for (const { row } of rows) {
    row.querySelectorAll("td").forEach((cell, i) => groupStarts.has(i) && cell.classList.add("start"));
  }

  const table = h(
    "table",
    { class: "comparison", id: "comparison" },
    h("caption", { class: "hidden" }, "One row per run; the headings sort the rows."),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        heading("label", "Run", "run", true, 2),
        ...groups.map((group) => h("th", { scope: "colgroup", colspan: group.size, class: "group start" }, group.name)),
      ),
      h("tr", {}, ...second),
    ),
    body,
  );
  order();

  const notes: string[] = ["Under the name of a run: policy, placement, admission and preset, if any."];
  if (data.runs.length > 1) notes.push("★ marks the best value of a column in which the runs differ.");
  notes.push("Select a heading to sort. Point at a duration for the exact seconds.");
  const partial = data.runs.some((run) => {
    const jobs = numeric(run, "jobs") ?? data.trace.jobs;
    const completed = numeric(run, "completed");
    return jobs !== null && completed !== null && completed < jobs;
  });
  if (partial) {
    notes.push(
      "JCT counts completed jobs only: where a run rejected jobs or left some unfinished, its JCT is taken over fewer jobs.",
    );
  }

  if (hasDeadlines(data.runs)) {
    notes.push(
      "Accepted are the jobs that met their deadline; declined are those that were rejected or late. Late jobs were not rejected and missed their deadline, or had not ended when the run stopped.",
    );
  }

  const csvButton = h("button", { type: "button", class: "button", "data-csv": "summary" }, "CSV");
  csvButton.title = "Download all summary values as CSV";
  csvButton.addEventListener("click", () => download("trainyard-summary.csv", "text/csv", summaryCsv(data)));

  return h(
    "section",
    { class: "card", "aria-labelledby": "comparison-title" },
    h(
      "div",
      { class: "card-head" },
      h("h2", { id: "comparison-title" }, data.runs.length > 1 ? "Comparison" : "Result"),
      h("div", { class: "tools" }, csvButton),
    ),
    h("div", { class: "scroll", role: "region", tabindex: 0, "aria-labelledby": "comparison-title" }, table),
    h("p", { class: "note" }, notes.join(" ")),
    status,
    h("details", {}, h("summary", {}, "All summary values"), plainTable(allValues(data))),
  );
}

function keysOf(data: ReportData): string[] {
  const keys = new Set<string>();
  for (const run of data.runs) Object.keys(run.summary).forEach((key) => keys.add(key));
  return [...keys];
}

const SECONDS = /^jct_|^queueing_delay|^waiting_time|^makespan|_seconds$/;

function allValues(data: ReportData): PlainTable {
  const cell = (key: string, value: SummaryValue | undefined): string => {
    if (value === undefined || value === null) return NONE;
    if (typeof value === "string") return value || NONE;
    if (SECONDS.test(key)) return `${Number(value.toFixed(3))} s`;
    return Number.isInteger(value) ? count(value) : decimal(value);
  };
  return {
    caption: "All summary values of every run",
    header: ["Value", ...data.runs.map((run) => run.label)],
    rows: keysOf(data).map((key) => [key, ...data.runs.map((run) => cell(key, run.summary[key]))]),
  };
}

function summaryCsv(data: ReportData): string {
  const keys = keysOf(data);
  return csv(
    ["run", "policy", "placement", "admission", "preset", ...keys],
    data.runs.map((run): Cell[] => [
      run.label,
      run.policy,
      run.placement,
      run.admission,
      run.preset,
      ...keys.map((key) => run.summary[key]),
    ]),
  );
}
