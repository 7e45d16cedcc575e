// SPDX-License-Identifier: Apache-2.0
// Made-up report data in the format of src/data.ts. As a program: node test/make-sample.mjs [runs] [points]

import { fileURLToPath } from "node:url";

const NAMES = [
  ["srtf", "srtf", "consolidated", "all", ""],
  ["fifo", "fifo", "consolidated", "all", ""],
  ["edf with admission", "edf", "consolidated", "deadline", ""],
  ["las", "las", "spread", "all", ""],
  ["gavel-like", "max-min", "consolidated", "all", "gavel"],
  ["tiresias-like", "las", "consolidated", "all", "tiresias"],
  ["elastic, throughput first", "elastic", "consolidated", "all", ""],
  ["srtf, spread placement", "srtf", "spread", "all", ""],
];

function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : null);
const at = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)];
const round = (value, digits = 3) => Number(value.toFixed(digits));

function cdf(values, points) {
  const sorted = [...values].sort((a, b) => a - b);
  const seconds = [];
  const fraction = [];
  const n = Math.min(points, sorted.length);
  for (let i = 1; i <= n; i++) {
    const k = Math.round((i / n) * sorted.length);
    seconds.push(round(sorted[k - 1]));
    fraction.push(round(k / sorted.length, 6));
  }
  return { seconds, fraction };
}

export function makeSample(runs = 3, points = 120) {
  const jobs = 480;
  const gpus = 128;
  const sizes = [1, 2, 4, 8, 16, 32];
  const out = [];
  for (let r = 0; r < runs; r++) {
    const rand = random(7 + r * 1009);
    const normal = () => Math.sqrt(-2 * Math.log(1 - rand())) * Math.cos(2 * Math.PI * rand());
    const [label, policy, placement, admission, preset] = NAMES[r % NAMES.length];
    const slow = 1 + 0.35 * ((r * 3) % 5);
    const rejected = admission === "deadline" ? 31 : 0;
    const unfinished = r === 3 ? 4 : 0;
    const completed = jobs - rejected - unfinished;
    const list = Array.from({ length: completed }, () => {
      const size = sizes[Math.min(sizes.length - 1, Math.floor(-Math.log(1 - rand()) * 1.4))];
      const delay = rand() < 0.45 / slow ? 0 : Math.exp(6.2 + 1.6 * normal()) * slow;
      const service = Math.exp(7.6 + 1.5 * normal()) + 4;
      return { size, delay, jct: delay + service };
    });
    const jct = list.map((job) => job.jct).sort((a, b) => a - b);
    const makespan = 86400 * (1.4 + 0.06 * ((r * 2) % 7));
    const timeline = { time: [], gpus_used: [], jobs_running: [], jobs_pending: [] };
    let pending = 0;
    for (let i = 0; i <= points; i++) {
      const x = i / points;
      const load = Math.min(1, 6 * x) * (x < 0.72 ? 1 : Math.max(0, (1 - x) / 0.28));
      const used = i === points ? 0 : Math.min(gpus, Math.max(0, Math.round(gpus * load * (0.92 + 0.12 * normal()))));
      pending = i === points ? 0 : Math.max(0, pending + Math.round(4 * normal() + (x < 0.5 ? 1.4 : -2.2) * slow));
      timeline.time.push(round(makespan * x, 1));
      timeline.gpus_used.push(used);
      timeline.jobs_running.push(Math.round(used / 3));
      timeline.jobs_pending.push(pending);
    }
    const met = 60 + ((r * 23) % 50);
    out.push({
      label: r < NAMES.length ? label : `${label} ${Math.floor(r / NAMES.length) + 1}`,
      policy,
      placement,
      admission,
      preset,
      summary: {
        jobs,
        completed,
        rejected,
        unfinished,
        admitted: jobs - rejected,
        deadline_jobs: 120,
        deadlines_met: met,
        deadlines_late: 120 - met - Math.min(rejected, 120 - met),
        deadlines_rejected: Math.min(rejected, 120 - met),
        deadline_ratio: round(met / 120, 6),
        accepted: met,
        declined: 120 - met - Math.min(rejected, 120 - met) + rejected,
        jct_mean: round(mean(jct)),
        jct_p50: round(at(jct, 0.5)),
        jct_p90: round(at(jct, 0.9)),
        jct_p99: round(at(jct, 0.99)),
        makespan: round(makespan),
        queueing_delay_mean: round(mean(list.map((job) => job.delay))),
        gpu_utilization: round(0.71 + 0.03 * ((r * 5) % 7), 4),
        gpu_utilization_useful: round(0.68 + 0.03 * ((r * 5) % 7), 4),
        preemptions: policy === "fifo" ? 0 : 40 + 31 * r,
        migrations: policy === "fifo" ? 0 : 6 * r,
        resizes: policy === "elastic" ? 210 : null,
        decisions: 1900 + 17 * r,
        events: 2400 + 51 * r,
        wall_seconds: round(0.021 + 0.004 * r),
        cpu_seconds: round(0.02 + 0.004 * r),
        jobs_per_second: Math.round(jobs / (0.021 + 0.004 * r)),
        journal_digest: `made-up-${r}`,
      },
      jct_cdf: cdf(jct, points),
      queueing_cdf: cdf(list.map((job) => job.delay), points),
      jct_by_size: sizes
        .map((size) => ({ size, of: list.filter((job) => job.size === size) }))
        .filter(({ of }) => of.length > 0)
        .map(({ size, of }) => ({
          gpus: String(size),
          jobs: of.length,
          jct_mean: round(mean(of.map((job) => job.jct))),
          queueing_delay_mean: round(mean(of.map((job) => job.delay))),
        })),
      timeline,
    });
  }
  return {
    format: "trainyard-report/1",
    program: { name: "trainyard", version: "0.1.0" },
    command: "trainyard compare --trace sample.csv --cluster n16g8 --policies srtf,fifo,edf --report report.html",
    trace: {
      path: "sample.csv",
      sha256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      jobs,
      first_submit: 0,
      last_submit: 90211,
      gpu_hours: 2841.6,
    },
    cluster: { name: "n16g8", nodes: 16, gpus },
    runs: out,
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(JSON.stringify(makeSample(Number(process.argv[2] ?? 3), Number(process.argv[3] ?? 120))));
}
