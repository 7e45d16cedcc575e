// SPDX-License-Identifier: Apache-2.0
// The data a report carries, as written by `trainyard` into the element #report-data.
// All times and durations are in seconds. A value that does not apply is null.

export const FORMAT = "trainyard-report/2";

export interface ReportData {
  format: typeof FORMAT;
  program: { name: string; version: string };
  /** The command line that made the report. */
  command: string;
  trace: Trace;
  cluster: Cluster;
  /** One entry per simulated run, in the order they were asked for; 1 to about 20. */
  runs: Run[];
  /** The jobs that appear in Gantt charts; Gantt.job counts in them. */
  jobs: Jobs;
  /** Tables to be shown below the charts. */
  explanations: Table[];
}

export interface Trace {
  path: string;
  sha256: string;
  jobs: number | null;
  /** Submission times of the first and the last job, on the clock of the trace. */
  first_submit: number | null;
  last_submit: number | null;
  gpu_hours: number | null;
}

export interface Cluster {
  name: string;
  nodes: number | null;
  gpus: number | null;
  /** The nodes one by one; empty without Gantt charts. */
  node: { name: string[]; gpus: number[] };
}

/** Columns of few distinct texts are stored once: row i has names[of[i]]. */
export interface TextColumn {
  names: string[];
  of: number[];
}

export interface Jobs {
  name: string[];
  /** GPUs asked for. */
  gpus: number[];
  /** Seconds from the first submission. */
  submit: number[];
  user: TextColumn;
  queue: TextColumn;
  model: TextColumn;
}

export type Unit = "" | "s" | "share";
export interface Table {
  title: string;
  /** How to read it. */
  caption: string;
  columns: { name: string; unit: Unit }[];
  /** Each as long as `columns`; null does not apply. */
  rows: (string | number | null)[][];
}

export interface Setting {
  name: string;
  value: string;
}

export interface Run {
  /** Unique; shown in legends. */
  label: string;
  policy: string;
  placement: string;
  admission: string;
  /** "": none. */
  grouping: string;
  tuning: string;
  preset: string;
  /** What a selector chose among; else empty. */
  candidates: string[];
  /** Of all of the above, what differs from sound mode. */
  settings: Setting[];
  /** Results of a published program: submits, starts and ends, and nothing of the time between. */
  ends_only: boolean;
  summary: Summary;
  /** Distribution over completed jobs; at most about 1000 points. */
  jct_cdf: Cdf;
  queueing_cdf: Cdf;
  /** Of completed jobs: JCT / JCT alone. */
  fairness_cdf: Cdf;
  jct_by_size: SizeClass[];
  /** GPU-seconds; their sum is the GPUs of the cluster times the makespan. */
  gpu_time: GpuTime | null;
  /** GPU time by name, the greatest first; empty if no job states one. */
  users: Share[];
  queues: Share[];
  models: Share[];
  /** Without points where nothing is known of the time between starts and ends. */
  timeline: Timeline;
  gantt: Gantt | null;
}

export interface GpuTime {
  useful: number;
  overhead: number;
  idle: number;
}

export interface Share {
  /** "": jobs that state none; null: all that are not listed. */
  name: string | null;
  jobs: number;
  gpu_seconds: number;
  jct_mean: number | null;
}

/**
 * Who held which GPUs. Bar i is job[i] on GPUs first_gpu[i] to first_gpu[i] + gpus[i] - 1 of
 * node[i], from start[i] for length[i], both in seconds. In the data, `after` has the starts as
 * differences, and times count in `unit` seconds.
 */
export interface Gantt {
  /** False: what came after some time was not recorded. */
  complete: boolean;
  job: number[];
  node: number[];
  first_gpu: number[];
  gpus: number[];
  start: number[];
  length: number[];
  /** Bars too short to be listed, as the GPUs that they held in a node and a part of the time. */
  cells: { seconds: number; node: number[]; column: number[]; gpus: number[] };
  bars_left_out: number;
}

export type SummaryValue = number | string | null;

/** The named values drive the comparison table; any further one is listed under "All summary values". */
export interface Summary {
  [name: string]: SummaryValue | undefined;
  jobs?: number | null;
  completed?: number | null;
  rejected?: number | null;
  unfinished?: number | null;
  admitted?: number | null;
  deadline_jobs?: number | null;
  deadlines_met?: number | null;
  /** Missed by jobs that were not rejected. */
  deadlines_late?: number | null;
  /** Jobs with a deadline that were rejected; the three together are deadline_jobs. */
  deadlines_rejected?: number | null;
  /** deadlines_met / deadline_jobs, 0 to 1; null without deadline jobs. */
  deadline_ratio?: number | null;
  /** As ElasticFlow counts: deadlines met. */
  accepted?: number | null;
  /** As ElasticFlow counts: late, or rejected with or without a deadline. */
  declined?: number | null;
  jct_mean?: number | null;
  jct_p50?: number | null;
  jct_p90?: number | null;
  jct_p99?: number | null;
  makespan?: number | null;
  queueing_delay_mean?: number | null;
  /** JCT / JCT alone. */
  fairness_mean?: number | null;
  fairness_max?: number | null;
  /** Share of GPU time that was allocated, 0 to 1. */
  gpu_utilization?: number | null;
  /** Share of GPU time that made progress (without restarts and other overhead), 0 to 1. */
  gpu_utilization_useful?: number | null;
  preemptions?: number | null;
  migrations?: number | null;
  resizes?: number | null;
  decisions?: number | null;
  events?: number | null;
  wall_seconds?: number | null;
  cpu_seconds?: number | null;
  jobs_per_second?: number | null;
  journal_digest?: string | null;
}

/** fraction[i] of the jobs have a value of at most values[i]; both ascending. */
export interface Cdf {
  values: number[];
  fraction: number[];
}

export interface SizeClass {
  /** GPUs of one job: "1", "8", or a class such as "9-16". */
  gpus: string;
  jobs: number | null;
  jct_mean: number | null;
  queueing_delay_mean: number | null;
}

/** A step function: values hold from time[i] until time[i + 1]. At most about 2000 points. */
export interface Timeline {
  /** Seconds from the first submission, ascending. */
  time: number[];
  gpus_used: number[];
  jobs_running: number[];
  jobs_pending: number[];
  /** Empty where it is not known who held which GPUs. */
  gpus_fragmented: number[];
}

export class ReportError extends Error {}

type Json = { [key: string]: unknown };

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function object(value: unknown, where: string): Json {
  if (!isObject(value)) throw new ReportError(`“${where}” is missing or is not an object.`);
  return value;
}

const text = (value: unknown): string =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : "";

const number = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;

/** Arrays that belong together, cut to one length; rows with anything but numbers are left out. */
function columns<K extends string>(value: unknown, names: readonly K[], where: string): Record<K, number[]> {
  const out = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<K, number[]>;
  if (value === undefined || value === null) return out;
  const source = object(value, where);
  const arrays = names.map((name) => {
    const array = source[name];
    if (!Array.isArray(array)) throw new ReportError(`“${where}.${name}” is missing or is not an array.`);
    return array as unknown[];
  });
  const length = Math.min(...arrays.map((array) => array.length));
  for (let i = 0; i < length; i++) {
    const row = arrays.map((array) => number(array[i]));
    if (row.some((cell) => cell === null)) continue;
    names.forEach((name, k) => out[name].push(row[k] as number));
  }
  return out;
}

/** A distribution; `name` is that of its values. */
function cdf(value: unknown, name: string, where: string): Cdf {
  const read = columns(value, [name, "fraction"], where);
  return { values: read[name] ?? [], fraction: read["fraction"] ?? [] };
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);
const numbers = (value: unknown): number[] => list(value).map((cell) => number(cell) ?? 0);
const texts = (value: unknown): string[] => list(value).map(text);

function parseTimeline(value: unknown, where: string): Timeline {
  const names = ["time", "gpus_used", "jobs_running", "jobs_pending"] as const;
  const fragmented = isObject(value) && Array.isArray(value["gpus_fragmented"]);
  if (!fragmented) return { ...columns(value, names, where), gpus_fragmented: [] };
  return columns(value, [...names, "gpus_fragmented"], where);
}

function parseShares(value: unknown): Share[] {
  return list(value)
    .filter(isObject)
    .map((share) => ({
      name: typeof share["name"] === "string" ? share["name"] : null,
      jobs: number(share["jobs"]) ?? 0,
      gpu_seconds: number(share["gpu_seconds"]) ?? 0,
      jct_mean: number(share["jct_mean"]),
    }));
}

function parseGpuTime(value: unknown): GpuTime | null {
  if (!isObject(value)) return null;
  const part = (name: string): number => number(value[name]) ?? 0;
  return { useful: part("useful"), overhead: part("overhead"), idle: part("idle") };
}

function parseGantt(value: unknown, where: string): Gantt | null {
  if (!isObject(value)) return null;
  const unit = number(value["unit"]) ?? 1;
  const bars = columns(value, ["job", "node", "first_gpu", "gpus", "after", "length"], where);
  let at = 0;
  const start = bars.after.map((after) => (at += after) * unit);
  const cells = columns(value["cells"], ["node", "column", "gpus"], `${where}.cells`);
  const columnUnits = isObject(value["cells"]) ? number(value["cells"]["column_units"]) : null;
  return {
    complete: value["complete"] !== false,
    job: bars.job,
    node: bars.node,
    first_gpu: bars.first_gpu,
    gpus: bars.gpus,
    start,
    length: bars.length.map((length) => length * unit),
    cells: { ...cells, seconds: (columnUnits ?? 1) * unit },
    bars_left_out: number(value["bars_left_out"]) ?? 0,
  };
}

function parseTextColumn(value: unknown): TextColumn {
  return isObject(value) ? { names: texts(value["names"]), of: numbers(value["of"]) } : { names: [], of: [] };
}

function parseJobs(value: unknown): Jobs {
  const jobs = isObject(value) ? value : {};
  return {
    name: texts(jobs["name"]),
    gpus: numbers(jobs["gpus"]),
    submit: numbers(jobs["submit"]),
    user: parseTextColumn(jobs["user"]),
    queue: parseTextColumn(jobs["queue"]),
    model: parseTextColumn(jobs["model"]),
  };
}

const UNITS: readonly string[] = ["s", "share"];

function parseTable(value: unknown, index: number): Table {
  const table = object(value, `explanations[${index}]`);
  const named = list(table["columns"]).map((column) => (isObject(column) ? column : { name: column }));
  const rows = list(table["rows"]).map(list);
  return {
    title: text(table["title"]),
    caption: text(table["caption"]),
    columns: named.map((column: Json) => ({
      name: text(column["name"]),
      unit: (UNITS.includes(text(column["unit"])) ? text(column["unit"]) : "") as Unit,
    })),
    rows: rows.map((row) =>
      named.map((_, i) => (typeof row[i] === "string" ? (row[i] as string) : number(row[i]))),
    ),
  };
}

function parseRun(value: unknown, index: number): Run {
  const where = `runs[${index}]`;
  const run = object(value, where);
  const summary: Summary = {};
  for (const [key, cell] of Object.entries(object(run["summary"], `${where}.summary`))) {
    summary[key] = typeof cell === "string" ? cell : typeof cell === "boolean" ? String(cell) : number(cell);
  }
  const sizes = Array.isArray(run["jct_by_size"]) ? (run["jct_by_size"] as unknown[]) : [];
  return {
    label: text(run["label"]) || `run ${index + 1}`,
    policy: text(run["policy"]),
    placement: text(run["placement"]),
    admission: text(run["admission"]),
    grouping: text(run["grouping"]),
    tuning: text(run["tuning"]),
    preset: text(run["preset"]),
    candidates: texts(run["candidates"]),
    settings: list(run["settings"])
      .filter(isObject)
      .map((setting) => ({ name: text(setting["name"]), value: text(setting["value"]) })),
    ends_only: run["ends_only"] === true,
    summary,
    jct_cdf: cdf(run["jct_cdf"], "seconds", `${where}.jct_cdf`),
    queueing_cdf: cdf(run["queueing_cdf"], "seconds", `${where}.queueing_cdf`),
    fairness_cdf: cdf(run["fairness_cdf"], "ratio", `${where}.fairness_cdf`),
    jct_by_size: sizes.filter(isObject).map((size) => ({
      gpus: text(size["gpus"]),
      jobs: number(size["jobs"]),
      jct_mean: number(size["jct_mean"]),
      queueing_delay_mean: number(size["queueing_delay_mean"]),
    })),
    gpu_time: parseGpuTime(run["gpu_time"]),
    users: parseShares(run["users"]),
    queues: parseShares(run["queues"]),
    models: parseShares(run["models"]),
    timeline: parseTimeline(run["timeline"], `${where}.timeline`),
    gantt: parseGantt(run["gantt"], `${where}.gantt`),
  };
}

/** Reads the text of #report-data; throws a ReportError with a sentence for the reader. */
export function parseReport(source: string): ReportData {
  const trimmed = source.trim();
  if (trimmed === "" || /^__[A-Z_]+__$/.test(trimmed)) {
    throw new ReportError("This page is the empty report template: no data was written into it.");
  }
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch (error) {
    throw new ReportError(`The data in this page is not valid JSON (${(error as Error).message}).`);
  }
  const data = object(value, "report");
  if (data["format"] !== FORMAT) {
    throw new ReportError(
      `The data in this page has the format “${text(data["format"]) || "none"}”; this page reads “${FORMAT}”.`,
    );
  }
  if (!Array.isArray(data["runs"]) || data["runs"].length === 0) {
    throw new ReportError("The data in this page holds no runs.");
  }
  const program = isObject(data["program"]) ? data["program"] : {};
  const trace = object(data["trace"], "trace");
  const cluster = object(data["cluster"], "cluster");
  const runs = (data["runs"] as unknown[]).map(parseRun);
  const seen = new Set<string>();
  for (const run of runs) {
    const label = run.label;
    for (let n = 2; seen.has(run.label); n++) run.label = `${label} (${n})`;
    seen.add(run.label);
  }
  return {
    format: FORMAT,
    program: { name: text(program["name"]) || "trainyard", version: text(program["version"]) },
    command: text(data["command"]),
    trace: {
      path: text(trace["path"]),
      sha256: text(trace["sha256"]),
      jobs: number(trace["jobs"]),
      first_submit: number(trace["first_submit"]),
      last_submit: number(trace["last_submit"]),
      gpu_hours: number(trace["gpu_hours"]),
    },
    cluster: {
      name: text(cluster["name"]),
      nodes: number(cluster["nodes"]),
      gpus: number(cluster["gpus"]),
      node: isObject(cluster["node"])
        ? { name: texts(cluster["node"]["name"]), gpus: numbers(cluster["node"]["gpus"]) }
        : { name: [], gpus: [] },
    },
    runs,
    jobs: parseJobs(data["jobs"]),
    explanations: list(data["explanations"]).map(parseTable),
  };
}
