// SPDX-License-Identifier: Apache-2.0
// The data a report carries, as written by `trainyard` into the element #report-data.
// All times and durations are in seconds. A value that does not apply is null.

export const FORMAT = "trainyard-report/1";

export interface ReportData {
  format: typeof FORMAT;
  program: { name: string; version: string };
  /** The command line that made the report. */
  command: string;
  trace: Trace;
  cluster: Cluster;
  /** One entry per simulated run, in the order they were asked for; 1 to about 20. */
  runs: Run[];
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
}

export interface Run {
  /** Unique; shown in legends. */
  label: string;
  policy: string;
  placement: string;
  admission: string;
  /** Name of the preset that set the three above, or "". */
  preset: string;
  summary: Summary;
  /** Distribution over completed jobs; at most about 1000 points. */
  jct_cdf: Cdf;
  queueing_cdf: Cdf;
  jct_by_size: SizeClass[];
  timeline: Timeline;
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

/** fraction[i] of the jobs have a value of at most seconds[i]; both ascending. */
export interface Cdf {
  seconds: number[];
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
    preset: text(run["preset"]),
    summary,
    jct_cdf: columns(run["jct_cdf"], ["seconds", "fraction"], `${where}.jct_cdf`),
    queueing_cdf: columns(run["queueing_cdf"], ["seconds", "fraction"], `${where}.queueing_cdf`),
    jct_by_size: sizes.filter(isObject).map((size) => ({
      gpus: text(size["gpus"]),
      jobs: number(size["jobs"]),
      jct_mean: number(size["jct_mean"]),
      queueing_delay_mean: number(size["queueing_delay_mean"]),
    })),
    timeline: columns(
      run["timeline"],
      ["time", "gpus_used", "jobs_running", "jobs_pending"],
      `${where}.timeline`,
    ),
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
    },
    runs,
  };
}
