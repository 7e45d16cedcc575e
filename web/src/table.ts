// SPDX-License-Identifier: Apache-2.0
// The comparison table, the tiles above it and the list of all summary values.

import type { ReportData, Run, Setting, SummaryValue } from "./data";
import { type Cell, NONE, count, csv, decimal, duration, exactSeconds, percent, shortDuration } from "./format";
import { type PlainTable, download, h, plainTable } from "./dom";
import { otherSettings, settingText, sharedSettings } from "./settings";
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

/** Lines of a heading break at this, if at all. */
const SHY = "\u00ad";

const column =
  (group: string, kind: Kind, better: Column["better"]) =>
  (key: string, name: string, long: string): Column => ({ key, group, name, long, kind, better });

const jobs = column("Jobs", "count", "low");
const deadlines = column(DEADLINES, "count", "low");
const jct = column("JCT", "duration", "low");
const cost = column("Cost", "count", "low");

const COLUMNS: readonly Column[] = [
  { ...jobs("completed", `Com${SHY}pleted`, "completed jobs"), better: "high" },
  jobs("rejected", `Re${SHY}jected`, "rejected jobs"),
  jobs("unfinished", `Unfin${SHY}ished`, "unfinished jobs"),
  { ...deadlines("deadline_ratio", "Met", "deadline satisfaction ratio"), kind: "ratio", better: "high" },
  { ...deadlines("accepted", `Ac${SHY}cepted`, "deadlines met"), better: "high" },
  deadlines("declined", `De${SHY}clined`, "declined jobs, rejected or late"),
  deadlines("deadlines_late", "Late", "jobs that missed their deadline without being rejected"),
  jct("jct_mean", "Mean", "mean JCT"),
  jct("jct_p50", "p50", "median JCT"),
  jct("jct_p90", "p90", "90th percentile of JCT"),
  jct("jct_p99", "p99", "99th percentile of JCT"),
  column("Queueing delay", "duration", "low")("queueing_delay_mean", "Mean", "mean queueing delay"),
  column("Cluster", "duration", "low")("makespan", `Make${SHY}span`, "makespan"),
  column("Cluster", "ratio", "high")("gpu_utilization", "GPU use", "GPU utilisation"),
  cost("preemptions", `Preemp${SHY}tions`, "preemptions"),
  cost("migrations", `Migra${SHY}tions`, "migrations"),
];

export const hasDeadlines = (runs: readonly Run[]): boolean =>
  runs.some((run) => (run.summary.deadline_jobs ?? 0) > 0);

export function numeric(run: Run, key: string): number | null {
  const value = run.summary[key];
  return typeof value === "number" ? value : null;
}

function show(kind: Kind, value: number | null, ofTime = duration): string {
  return kind === "count" ? count(value) : kind === "ratio" ? percent(value) : ofTime(value);
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

/** The columns in which runs differ, or all that say something; and those left out since they are the same in all. */
function columnsOf(runs: readonly Run[]): { columns: readonly Column[]; same: readonly Column[] } {
  const filled = COLUMNS.filter(
    ({ key, group }) => runs.some((run) => numeric(run, key) !== null) && (group !== DEADLINES || hasDeadlines(runs)),
  );
  const differ = filled.filter(({ key }) => new Set(runs.map((run) => numeric(run, key))).size > 1);
  if (differ.length === 0) return { columns: filled, same: [] };
  return { columns: differ, same: filled.filter((one) => !differ.includes(one)) };
}

/** What the label of a run and the head of the page leave unsaid. */
function makeUp(run: Run, shared: readonly Setting[]): HTMLElement | null {
  const own = otherSettings(run, shared);
  const title = run.candidates.length > 0 ? `choosing among ${run.candidates.join(" | ")}` : undefined;
  return own.length === 0
    ? null
    : h("span", { class: "run-detail", title }, ...own.map((one) => h("span", {}, settingText(one))));
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
  const { columns, same } = columnsOf(data.runs);
  const shared = sharedSettings(data.runs);
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
        makeUp(run, shared),
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
            show(column.kind, value, shortDuration),
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
        ...groups.map((group) => h("th", { scope: "colgroup", colspan: group.size, class: "group start" }, h("span", {}, group.name))),
      ),
      h("tr", {}, ...second),
    ),
    body,
  );
  order();

  const notes: string[] = [];
  if (same.length > 0) {
    const values = same.map(({ key, kind, long }) => `${long} ${show(kind, numeric(data.runs[0] as Run, key))}`);
    notes.push(`The same in all runs: ${values.join(", ")}.`);
  }
  if (body.querySelector(".run-detail")) {
    notes.push("Under the name of a run: what differs from sound mode, the default, and is not the same in all runs.");
  }
  if (body.querySelector(".best")) notes.push("★ marks the best value of a column.");
  if (data.runs.length > 1) notes.push("Select a heading to sort.");
  notes.push("Point at a duration for the exact seconds.");
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

  if (columns.some(({ group }) => group === DEADLINES)) {
    notes.push(
      "Accepted are the jobs that met their deadline; declined are those that were rejected or late. Late jobs were not rejected and missed their deadline, or had not ended when the run stopped.",
    );
  }

  const csvButton = h("button", { type: "button", class: "button", "data-csv": "summary" }, "CSV");
  csvButton.title = "Download all summary values as CSV";
  csvButton.addEventListener("click", () => download("trainyard-summary.csv", "text/csv", summaryCsv(data)));

  return h(
    "section",
    { class: "card wide", "aria-labelledby": "comparison-title" },
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
    ["run", "policy", "placement", "admission", "grouping", "tuning", "preset", ...keys],
    data.runs.map((run): Cell[] => [
      run.label,
      run.policy,
      run.placement,
      run.admission,
      run.grouping,
      run.tuning,
      run.preset,
      ...keys.map((key) => run.summary[key]),
    ]),
  );
}
