// SPDX-License-Identifier: Apache-2.0
// node comparison.mjs PROGRAM REFERENCE PAGE: runs the policies on the traces below and writes the
// tables between the markers of the page.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [program, reference, page] = process.argv.slice(2);
if (page === undefined) {
  console.error("usage: node comparison.mjs PROGRAM REFERENCE PAGE");
  process.exit(2);
}

const always = ["fifo", "fjf", "sjf", "srtf", "srsf", "las", "tiresias", "ftf", "drf", "tetris",
  "themis", "gandiva", "auto"];
const byDeadline = ["edf", "chronus"];
const elastic = ["elastic-edf", "elasticflow", "optimus"];
const goodput = ["pollux", "sia"];
const byType = ["max-min-fairness", "water-filling", "finish-time-fairness", "makespan",
  "max-throughput", "isolated", "fifo-throughput", "allox", "gandiva-packing"];
const onTypes = always.filter((name) => name !== "gandiva" && name !== "auto");
const sharing = ["antman", "muri-s", "muri-l"];
const everything = execFileSync(program, ["policies"], { encoding: "utf8" })
  .split("\n").map((line) => line.match(/^[a-z0-9-]+/)?.[0])
  .filter((name) => name && !name.endsWith("-published"));  // as presets use them

// Paths that begin with "ref/" lie in the reference folder.
const families = [
  ["Bundled example", [
    ["data/example_trace.csv", "data/example_cluster.toml", "data/example_profiles.csv", everything]]],
  ["Tiresias", [
    ["ref/data/tiresias/60_job.csv", "ref/data/tiresias/n4g4.csv", "", always],
    ["ref/data/tiresias/syn480_a.csv", "ref/data/tiresias/n32g4.csv", "", always]]],
  ["ElasticFlow", [
    ["ref/data/elasticflow/traces/first25_of_195.csv", "ref/data/elasticflow/cluster_specs/n4g8.csv",
      "ref/data/elasticflow/throughputs_A100", [...always, ...byDeadline, ...elastic, ...goodput]],
    ["ref/data/elasticflow/traces/195job.csv", "ref/data/elasticflow/cluster_specs/n16g8.csv",
      "ref/data/elasticflow/throughputs_A100",
      [...always, ...byDeadline, ...elastic, ...goodput]]]],
  ["Gavel", [
    ["ref/data/gavel/gen60.trace.gz", "4x1:v100,4x1:p100,4x1:k80",
      "ref/data/gavel/simulation_throughputs.csv.gz", [...onTypes, ...byType]],
    ["ref/data/gavel/physical96.trace.gz", "4x1:v100,4x1:p100,4x1:k80",
      "ref/data/gavel/simulation_throughputs.csv.gz", [...onTypes, ...byType]]]],
  ["Pollux", [
    ["ref/data/pollux/workloads/osdi21-6.csv", "16x4", "ref/data/pollux",
      [...always.filter((name) => name !== "auto"), ...goodput]]]],
  // Measured trainings share no GPUs.
  ["Sia", [
    ["ref/data/sia/workloads/philly-1.csv.gz", "6x4:aws,2x8:dgx-ext,3x8:rtx", "ref/data/sia",
      [...onTypes, ...byType.filter((name) => name !== "gandiva-packing"), "sia"]]]],
  ["Muri", [
    ["ref/data/muri/trace1_first200.csv.gz", "ref/data/muri/cluster_n8g8.csv", "",
      [...always.filter((name) => name !== "auto"), ...sharing]],
    ["ref/data/muri/cluster_trace.csv.gz", "ref/data/muri/cluster_n8g8.csv", "",
      [...always, ...sharing]]]],
  ["Blox", [
    ["ref/golden/blox/sim_1gpu_load9/trace.csv", "ref/data/blox/n8g4.csv", "", always],
    ["ref/golden/blox/sim_multigpu_load7/trace.csv", "ref/data/blox/n16g4.csv", "", always]]],
  ["Synergy", [
    ["ref/data/synergy/trace_static100.csv", "ref/data/synergy/clusters/static_trace.ini",
      "ref/data/synergy", [...always, "synergy-opt"]],
    ["ref/data/synergy/trace_syn32multi-load0.9-seed42.csv",
      "ref/data/synergy/clusters/static_trace.ini", "ref/data/synergy", [...always, "synergy-opt"]]]],
  ["Chronus", [
    ["ref/data/chronus/first25.csv", "ref/data/chronus/n4g8.csv",
      "ref/data/elasticflow/throughputs_A100", [...always, ...byDeadline, ...elastic, ...goodput]],
    ["ref/data/chronus/mix2_300.csv", "ref/data/chronus/n4g8.csv", "",
      [...always, ...byDeadline]]]],
  ["TorchLoader", [
    ["data/example_loader/workload.csv", "data/example_loader/cluster.toml",
      "data/example_loader/models.csv", [...always, "torchloader"]]]],
];

const place = (path) => path.replace(/^ref\//, `${reference}/`);

function compare([trace, cluster, profiles, policies]) {
  const out = mkdtempSync(join(tmpdir(), "trainyard-comparison-"));
  const options = ["compare", place(trace), "--cluster", place(cluster), "--json", "--out", out];
  if (profiles !== "") {
    options.push("--profiles", place(profiles));
  }
  policies.forEach((policy) => options.push("--policy", policy));
  try {
    return JSON.parse(execFileSync(program, options,
      { encoding: "utf8", maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "pipe"] }));
  } catch (error) {
    console.error(`${trace}: ${error.stderr ?? error.message}`);
    process.exit(1);
  } finally {
    rmSync(out, { recursive: true });
  }
}

// Columns: heading, value, text, and which value is the best (bold).
function columnsOf(runs) {
  const [unit, seconds] = Math.max(...runs.map((run) => run.jct_mean)) < 7200 ? ["min", 60]
    : ["h", 3600];
  const time = (key) => ({ value: (run) => run[key] / seconds, best: Math.min,
    text: (run) => (run[key] / seconds).toFixed(2) });
  const columns = [
    { head: `mean JCT (${unit})`, ...time("jct_mean") },
    { head: `p99 (${unit})`, ...time("jct_p99") },
    { head: `makespan (${unit})`, ...time("makespan") },
    { head: "GPU use", value: (run) => run.gpu_utilization, best: Math.max,
      text: (run) => `${(100 * run.gpu_utilization).toFixed(1)} %` }];
  if (runs.some((run) => run.deadline_jobs > 0)) {
    columns.push({ head: `deadlines met of ${runs[0].deadline_jobs}`,
      value: (run) => run.deadlines_met, best: Math.max, text: (run) => `${run.deadlines_met}` });
    columns.push({ head: "late", text: (run) => `${run.deadlines_late}` });
  }
  if (runs.some((run) => run.completed < run.jobs)) {
    columns.push({ head: "declined", text: (run) => `${run.rejected}` });
  }
  return columns;
}

function table(runs) {
  const columns = columnsOf(runs);
  // The best are those that read as the best does.
  const best = columns.map(({ value, text, best: of }) => (of
    ? text(runs.find((run) => value(run) === of(...runs.map(value)))) : undefined));
  const row = (cells) => `| ${cells.join(" | ")} |`;
  const sorted = [...runs].sort((a, b) => a.jct_mean - b.jct_mean);
  return [row(["policy", ...columns.map((column) => column.head)]),
    row(["---", ...columns.map(() => "--:")]),
    ...sorted.map((run) => row([`\`${run.label}\``, ...columns.map((column, i) =>
      (column.text(run) === best[i] ? `**${best[i]}**` : column.text(run)))]))].join("\n");
}

const text = families.map(([name, traces]) => `## ${name}\n\n` + traces.map((one) => {
  const runs = compare(one);
  const gpus = place(one[1]).split("/").pop();
  return `\`${one[0]}\`, ${runs[0].jobs} jobs, cluster \`${gpus}\`\n\n${table(runs)}\n`;
}).join("\n")).join("\n");

const [begin, end] = ["<!-- tables -->\n", "<!-- end of tables -->"];
const old = readFileSync(page, "utf8");
const [from, to] = [old.indexOf(begin), old.indexOf(end)];
if (from < 0 || to < from) {
  console.error(`${page}: no markers; expected '${begin.trim()}' and '${end}'`);
  process.exit(1);
}
writeFileSync(page, `${old.slice(0, from) + begin}\n${text}\n${old.slice(to)}`);
