// SPDX-License-Identifier: Apache-2.0
// Made-up report data in the format of src/data.ts, from a small scheduler that knows no policy but
// an order. As a program: node test/make-sample.mjs [runs] [points] [jobs]

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
const NODES = 16;
const PER_NODE = 8;
const SIZES = [1, 2, 4, 8, 16, 32];
const MODELS = ["resnet50", "vgg16", "bert-base", "gpt2", "deepspeech2", "inception3"];
const USERS = ["ada", "blaise", "charles", "dorothy", "edsger", "frances", "grace"];

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

function cdf(name, values, points) {
  const sorted = [...values].sort((a, b) => a - b);
  const out = { [name]: [], fraction: [] };
  const n = Math.min(points, sorted.length);
  for (let i = 1; i <= n; i++) {
    const k = Math.round((i / n) * sorted.length);
    out[name].push(round(sorted[k - 1]));
    out.fraction.push(round(k / sorted.length, 6));
  }
  return out;
}

function makeJobs(count) {
  const rand = random(7);
  const normal = () => Math.sqrt(-2 * Math.log(1 - rand())) * Math.cos(2 * Math.PI * rand());
  let submit = 0;
  return Array.from({ length: count }, (_, i) => {
    submit += i === 0 ? 0 : -Math.log(1 - rand()) * 240;
    const size = SIZES[Math.min(SIZES.length - 1, Math.floor(-Math.log(1 - rand()) * 1.4))];
    return {
      name: `job-${String(i).padStart(4, "0")}`,
      user: USERS[Math.floor(rand() * rand() * USERS.length)],
      queue: rand() < 0.7 ? "research" : "production",
      model: MODELS[Math.floor(rand() * MODELS.length)],
      gpus: size,
      submit: round(submit, 1),
      alone: round(Math.exp(8.2 + 1.3 * normal()) + 4, 1),
    };
  });
}

/** Free places on the nodes: those of one node, or whole nodes; null if there are none. */
function place(free, gpus) {
  if (gpus > PER_NODE) {
    const whole = free.map((_, node) => node).filter((node) => free[node].length === PER_NODE);
    return whole.length * PER_NODE >= gpus ? whole.slice(0, gpus / PER_NODE).map((node) => [node, PER_NODE]) : null;
  }
  let best = -1;
  free.forEach((gpuList, node) => {
    if (gpuList.length >= gpus && (best < 0 || gpuList.length < free[best].length)) best = node;
  });
  return best < 0 ? null : [[best, gpus]];
}

/** Runs the jobs in an order, without preemption; gives starts, ends, bars and samples. */
function schedule(jobs, key, slow) {
  const free = Array.from({ length: NODES }, () => Array.from({ length: PER_NODE }, (_, i) => i));
  const waiting = [];
  const running = [];
  const bars = [];
  const samples = [];
  // Share of the jobs that need more than n GPUs.
  const above = Array.from({ length: PER_NODE + 1 }, (_, n) => jobs.filter((job) => job.gpus > n).length / jobs.length);
  let next = 0;
  while (next < jobs.length || running.length > 0) {
    const arrival = next < jobs.length ? jobs[next].submit : Infinity;
    const end = running.length > 0 ? running[0].end : Infinity;
    const now = Math.min(arrival, end);
    while (running.length > 0 && running[0].end <= now) {
      for (const [node, gpu] of running.shift().held) free[node].push(gpu);
    }
    while (next < jobs.length && jobs[next].submit <= now) {
      const at = waiting.findIndex((job) => key(jobs[job]) > key(jobs[next]));
      waiting.splice(at < 0 ? waiting.length : at, 0, next++);
    }
    const failed = new Set(); // sizes
    for (let i = 0; i < waiting.length && failed.size < SIZES.length; i++) {
      const job = jobs[waiting[i]];
      if (failed.has(job.gpus)) continue;
      const found = place(free, job.gpus);
      if (!found) {
        failed.add(job.gpus);
        continue;
      }
      const finish = round(now + job.alone * slow, 1);
      const held = [];
      for (const [node, gpus] of found) {
        free[node].sort((a, b) => a - b);
        const mine = free[node].splice(0, gpus);
        held.push(...mine.map((gpu) => [node, gpu]));
        for (let k = 0; k < mine.length; ) {
          let n = 1;
          while (mine[k + n] === mine[k] + n) n++;
          bars.push({ job: waiting[i], node, first: mine[k], gpus: n, start: now, length: finish - now });
          k += n;
        }
      }
      job.start = now;
      job.end = finish;
      running.push({ end: finish, held });
      running.sort((a, b) => a.end - b.end);
      waiting.splice(i--, 1);
    }
    const frees = free.map((list) => list.length);
    samples.push({
      time: now,
      used: NODES * PER_NODE - frees.reduce((a, b) => a + b, 0),
      running: running.length,
      pending: waiting.length,
      fragmented: frees.reduce((sum, n) => sum + (n < PER_NODE ? n * above[n] : 0), 0),
    });
  }
  return { bars, samples };
}

function shares(list, key) {
  const sums = new Map();
  for (const job of list) {
    const own = sums.get(job[key]) ?? { name: job[key], jobs: 0, gpu_seconds: 0, jct: [] };
    own.jobs++;
    own.gpu_seconds += job.gpus * (job.end - job.start);
    own.jct.push(job.end - job.submit);
    sums.set(job[key], own);
  }
  return [...sums.values()]
    .sort((a, b) => b.gpu_seconds - a.gpu_seconds)
    .map(({ jct, gpu_seconds, ...own }) => ({ ...own, gpu_seconds: round(gpu_seconds), jct_mean: round(mean(jct)) }));
}

function ganttOf(bars) {
  const unit = 0.1;
  const sorted = [...bars].sort((a, b) => a.start - b.start || a.node - b.node || a.first - b.first);
  let last = 0;
  const after = sorted.map((bar) => {
    const start = Math.round(bar.start / unit);
    const step = start - last;
    last = start;
    return step;
  });
  return {
    unit,
    complete: true,
    bars_left_out: 0,
    job: sorted.map((bar) => bar.job),
    node: sorted.map((bar) => bar.node),
    first_gpu: sorted.map((bar) => bar.first),
    gpus: sorted.map((bar) => bar.gpus),
    after,
    length: sorted.map((bar) => Math.max(1, Math.round(bar.length / unit))),
    cells: { column_units: 1, node: [], column: [], gpus: [] },
  };
}

function textColumn(values) {
  const names = [...new Set(values)];
  return { names, of: values.map((value) => names.indexOf(value)) };
}

const ORDERS = {
  srtf: (job) => job.alone,
  fifo: (job) => job.submit,
  edf: (job) => job.submit + 3 * job.alone,
  las: (job) => job.gpus * job.submit,
  "max-min": (job) => job.gpus,
  elastic: (job) => job.alone * job.gpus,
};

function makeRun(r, jobs, points) {
  const [label, policy, placement, admission, preset] = NAMES[r % NAMES.length];
  const list = jobs.map((job) => ({ ...job }));
  const slow = 1 + 0.02 * (r % 4); // overhead
  const { bars, samples } = schedule(list, ORDERS[policy], slow);
  const rejected = admission === "deadline" ? Math.min(31, Math.floor(list.length / 4)) : 0;
  const unfinished = r === 3 ? 4 : 0;
  const done = list.slice(0, list.length - rejected - unfinished);
  const jct = done.map((job) => job.end - job.submit).sort((a, b) => a - b);
  const makespan = Math.max(...done.map((job) => job.end));
  const every = Math.max(1, Math.ceil(samples.length / points));
  const kept = samples.filter((_, i) => i % every === 0 || i === samples.length - 1);
  const held = list.reduce((sum, job) => sum + job.gpus * (job.end - job.start), 0);
  const total = Math.max(held, makespan * NODES * PER_NODE);
  const met = 60 + ((r * 23) % 50);
  return {
    label: r < NAMES.length ? label : `${label} ${Math.floor(r / NAMES.length) + 1}`,
    policy,
    placement,
    admission,
    grouping: "",
    tuning: "",
    preset,
    candidates: [],
    settings: Object.entries({ policy, placement, admission, preset })
      .filter(([name, value]) => value !== { policy: label, placement: "consolidated", admission: "all", preset: "" }[name])
      .map(([name, value]) => ({ name, value })),
    ends_only: false,
    summary: {
      jobs: list.length,
      completed: done.length,
      rejected,
      unfinished,
      admitted: list.length - rejected,
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
      queueing_delay_mean: round(mean(done.map((job) => job.start - job.submit))),
      fairness_mean: round(mean(done.map((job) => (job.end - job.submit) / job.alone))),
      fairness_max: round(Math.max(...done.map((job) => (job.end - job.submit) / job.alone))),
      gpu_utilization: round(held / total, 4),
      gpu_utilization_useful: round(held / slow / total, 4),
      preemptions: policy === "fifo" ? 0 : 40 + 31 * r,
      migrations: policy === "fifo" ? 0 : 6 * r,
      resizes: policy === "elastic" ? 210 : null,
      decisions: 1900 + 17 * r,
      events: 2400 + 51 * r,
      wall_seconds: round(0.021 + 0.004 * r),
      cpu_seconds: round(0.02 + 0.004 * r),
      jobs_per_second: Math.round(list.length / (0.021 + 0.004 * r)),
      journal_digest: `made-up-${r}`,
    },
    jct_cdf: cdf("seconds", jct, points),
    queueing_cdf: cdf("seconds", done.map((job) => job.start - job.submit), points),
    fairness_cdf: cdf("ratio", done.map((job) => (job.end - job.submit) / job.alone), points),
    jct_by_size: SIZES.map((size) => ({ size, of: done.filter((job) => job.gpus === size) }))
      .filter(({ of }) => of.length > 0)
      .map(({ size, of }) => ({
        gpus: String(size),
        jobs: of.length,
        jct_mean: round(mean(of.map((job) => job.end - job.submit))),
        queueing_delay_mean: round(mean(of.map((job) => job.start - job.submit))),
      })),
    gpu_time: {
      useful: round(held / slow),
      overhead: round(held - held / slow),
      idle: round(total - held),
    },
    users: shares(list, "user"),
    queues: shares(list, "queue"),
    models: shares(list, "model"),
    timeline: {
      time: kept.map((sample) => round(sample.time, 1)),
      gpus_used: kept.map((sample) => sample.used),
      jobs_running: kept.map((sample) => sample.running),
      jobs_pending: kept.map((sample) => sample.pending),
      gpus_fragmented: kept.map((sample) => round(sample.fragmented)),
    },
    gantt: ganttOf(bars),
  };
}

export function makeSample(runs = 3, points = 120, count = 480) {
  const jobs = makeJobs(count);
  const out = Array.from({ length: runs }, (_, r) => makeRun(r, jobs, points));
  return {
    format: "trainyard-report/2",
    program: { name: "trainyard", version: "0.1.0" },
    command: "trainyard compare --trace sample.csv --cluster n16g8 --policies srtf,fifo,edf --report report.html",
    trace: {
      path: "sample.csv",
      sha256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      jobs: jobs.length,
      first_submit: 0,
      last_submit: jobs[jobs.length - 1].submit,
      gpu_hours: round(jobs.reduce((sum, job) => sum + job.gpus * job.alone, 0) / 3600),
    },
    cluster: {
      name: "n16g8",
      nodes: NODES,
      gpus: NODES * PER_NODE,
      node: {
        name: Array.from({ length: NODES }, (_, i) => `node${String(i).padStart(2, "0")}`),
        gpus: Array.from({ length: NODES }, () => PER_NODE),
      },
    },
    runs: out,
    jobs: {
      name: jobs.map((job) => job.name),
      gpus: jobs.map((job) => job.gpus),
      submit: jobs.map((job) => job.submit),
      user: textColumn(jobs.map((job) => job.user)),
      queue: textColumn(jobs.map((job) => job.queue)),
      model: textColumn(jobs.map((job) => job.model)),
    },
    explanations: [
      {
        title: "Jobs that gained most under srtf",
        caption: "The jobs whose JCT differs most from that under fifo, and what made the difference.",
        columns: [
          { name: "Job", unit: "" },
          { name: "GPUs", unit: "" },
          { name: "JCT under srtf", unit: "s" },
          { name: "JCT under fifo", unit: "s" },
          { name: "Change", unit: "share" },
          { name: "Why", unit: "" },
        ],
        rows: [
          ["job-0007", 4, 1200, 9000, -0.8667, "waited 2 h less"],
          ["job-0102", 1, 640.5, 4100, -0.8438, "waited 58 min less"],
          ["job-0034", 16, 30100, 12000, 1.5083, "preempted 3 times"],
          ["job-0300", 2, null, 500, null, "rejected"],
        ],
      },
    ],
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [runs = 3, points = 120, jobs = 480] = process.argv.slice(2).map(Number);
  console.log(JSON.stringify(makeSample(runs, points, jobs)));
}
