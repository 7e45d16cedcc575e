// SPDX-License-Identifier: Apache-2.0
// Tests of the parts that need no browser.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { makeSample } from "./make-sample.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

async function load(entry) {
  const result = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    platform: "neutral",
  });
  return import("data:text/javascript;base64," + Buffer.from(result.outputFiles[0].contents).toString("base64"));
}

const format = await load("src/format.ts");
const data = await load("src/data.ts");
const settings = await load("src/settings.ts");
const model = await load("src/ganttModel.ts");
const plain = (text) => text.replace(/\u00a0/g, " ");

test("durations", () => {
  const cases = [
    [null, "–"],
    [0, "0 s"],
    [0.000001, "< 1 ms"],
    [0.354, "0.35 s"],
    [9.96, "10 s"],
    [59.4, "59 s"],
    [59.6, "1 min 00 s"],
    [200, "3 min 20 s"],
    [3599.4, "59 min 59 s"],
    [3599.6, "1 h 00 min"],
    [7500, "2 h 05 min"],
    [86399, "1 d 00 h"],
    [97200, "1 d 03 h"],
    [86400 * 250, "250 d"],
  ];
  for (const [seconds, expected] of cases) assert.equal(plain(format.duration(seconds)), expected, String(seconds));
});

test("short durations and sequences", () => {
  assert.equal(plain(format.shortDuration(7500)), "2h 05m");
  assert.equal(plain(format.shortDuration(200)), "3m 20s");
  assert.equal(plain(format.shortDuration(0.35)), "0.35s");
  assert.equal(plain(format.shortDuration(97200)), "1d 03h");
  assert.equal(format.shortDuration(null), "–");
  assert.equal(format.sequence(["a"]), "a");
  assert.equal(format.sequence(["a", "b", "c"]), "a, b and c");
});

test("axes", () => {
  assert.equal(format.axisUnit(90).name, "s");
  assert.equal(format.axisUnit(7200).name, "h");
  assert.equal(format.axisUnit(7 * 86400).name, "d");
  assert.deepEqual(format.logTicks(1, 40000), [1, 10, 60, 600, 3600, 36000]);
  assert.ok(format.logTicks(100, 400).length >= 2);
  assert.equal(plain(format.tickDuration(36000)), "10 h");
  assert.deepEqual(format.ratioTicks(0.4, 12), [0.5, 1, 2, 5, 10]);
  assert.deepEqual(format.ratioTicks(0.9, 20000), [1, 10, 100, 1000, 10000]);
});

test("ratios and GPU time", () => {
  assert.equal(format.ratio(1.234), "1.23");
  assert.equal(format.ratio(1234.5), "1,235");
  assert.equal(format.ratio(null), "–");
  assert.equal(plain(format.gpuHours(5400)), "1.5 GPU h");
});

test("cells are ordered with nothing last", () => {
  const sorted = (cells, sign) => [...cells].sort((a, b) => format.compareCells(a, b, sign));
  assert.deepEqual(sorted([3, null, 1, 2], 1), [1, 2, 3, null]);
  assert.deepEqual(sorted([3, null, 1, 2], -1), [3, 2, 1, null]);
  assert.deepEqual(sorted(["job 10", "job 9"], 1), ["job 9", "job 10"]);
});

test("CSV quotes what needs it", () => {
  assert.equal(format.csv(["a", "b"], [['x,"y"', null], ["z", 1.5]]), 'a,b\r\n"x,""y""",\r\nz,1.5\r\n');
});

test("report data", () => {
  const sample = makeSample(3);
  assert.equal(data.parseReport(JSON.stringify(sample)).runs.length, 3);
  assert.throws(() => data.parseReport("__TRAINYARD_" + "REPORT_DATA__"), /empty report template/);
  assert.throws(() => data.parseReport("{"), /not valid JSON/);
  assert.throws(() => data.parseReport(JSON.stringify({ ...sample, format: "trainyard-report/9" })), /trainyard-report\/9/);
  assert.throws(() => data.parseReport(JSON.stringify({ ...sample, runs: [] })), /no runs/);
  const twice = { ...sample, runs: [sample.runs[0], sample.runs[0]] };
  assert.deepEqual(data.parseReport(JSON.stringify(twice)).runs.map((run) => run.label), ["srtf", "srtf (2)"]);
});

test("settings that runs share, and those of one", () => {
  const of = (...settings) => ({ settings: settings.map(([name, value]) => ({ name, value })) });
  const runs = [of(["placement", "spread"], ["preset", "muri"]), of(["placement", "count"], ["preset", "muri"])];
  const shared = settings.sharedSettings(runs);
  assert.deepEqual(shared.map(settings.settingText), ["preset muri"]);
  assert.deepEqual(settings.otherSettings(runs[1], shared).map(settings.settingText), ["placement count"]);
});

test("what a report may leave out", () => {
  const sample = makeSample(1);
  const [run] = sample.runs;
  delete run.gantt;
  delete run.gpu_time;
  delete run.users;
  delete run.fairness_cdf;
  run.timeline.gpus_fragmented = null;
  delete sample.jobs;
  delete sample.cluster.node;
  delete sample.explanations;
  const read = data.parseReport(JSON.stringify(sample));
  assert.equal(read.runs[0].gantt, null);
  assert.equal(read.runs[0].gpu_time, null);
  assert.deepEqual(read.runs[0].users, []);
  assert.deepEqual(read.runs[0].fairness_cdf, { values: [], fraction: [] });
  assert.deepEqual(read.runs[0].timeline.gpus_fragmented, []);
  assert.equal(read.runs[0].timeline.time.length, run.timeline.time.length);
  assert.deepEqual(read.jobs.name, []);
  assert.deepEqual(read.explanations, []);
});

test("explanations", () => {
  const sample = makeSample(1);
  sample.explanations = [{ title: "t", columns: ["Job", { name: "JCT", unit: "s" }], rows: [["a", 1.5], ["b"]] }];
  assert.deepEqual(data.parseReport(JSON.stringify(sample)).explanations, [
    {
      title: "t",
      caption: "",
      columns: [
        { name: "Job", unit: "" },
        { name: "JCT", unit: "s" },
      ],
      rows: [
        ["a", 1.5],
        ["b", null],
      ],
    },
  ]);
  sample.explanations = [1];
  assert.throws(() => data.parseReport(JSON.stringify(sample)), /explanations\[0\]/);
});

const TINY = {
  unit: 10,
  complete: true,
  bars_left_out: 1,
  job: [0, 1, 0],
  node: [0, 1, 1],
  first_gpu: [0, 2, 0],
  gpus: [4, 2, 2],
  after: [0, 5, 1],
  length: [5, 10, 4],
  cells: { column_units: 20, node: [1], column: [0], gpus: [0.5] },
};
const JOBS = {
  name: ["a", "b"],
  gpus: [4, 2],
  submit: [0, 40],
  user: { names: ["ann", "bob"], of: [1, 0] },
  queue: { names: [""], of: [0, 0] },
  model: { names: ["m"], of: [0, 0] },
};

function tiny() {
  const sample = makeSample(1);
  sample.cluster.node = { name: ["n0", "n1"], gpus: [4, 8] };
  sample.jobs = JOBS;
  sample.runs[0].gantt = TINY;
  const read = data.parseReport(JSON.stringify(sample));
  const rows = new model.Rows(read.cluster.node);
  return { read, rows, gantt: read.runs[0].gantt, bars: new model.Bars(read.runs[0].gantt, rows) };
}

test("bars are read from their columns", () => {
  const { gantt, rows } = tiny();
  assert.deepEqual(gantt.start, [0, 50, 60]);
  assert.deepEqual(gantt.length, [50, 100, 40]);
  assert.equal(gantt.cells.seconds, 200);
  assert.deepEqual(rows.first, [0, 4, 12]);
  assert.deepEqual([0, 3.9, 4, 11.5].map((row) => rows.nodeAt(row)), [0, 0, 1, 1]);
});

test("bars are found by place and by job", () => {
  const { bars } = tiny();
  assert.deepEqual(bars.at(10, 3.5), [0]);
  assert.deepEqual(bars.at(50, 3.5), []); // an end is not part of a bar
  assert.deepEqual(bars.at(70, 4 + 1), [2]);
  assert.deepEqual(bars.at(70, 4 + 3), [1]);
  assert.deepEqual(bars.of(0), [0, 2]);
  assert.deepEqual(bars.heldByNode(), [200, 200 + 80 + 100]);
});

test("a node is as full as its bars and cells say", () => {
  const { read, bars, gantt } = tiny();
  const categories = model.categoriesOf(read.jobs, [gantt], "user");
  assert.deepEqual(categories.names, ["bob", "ann"]); // by GPU time: 280 and 200
  const out = new Float32Array(2 * (model.CATEGORIES + 1));
  model.addOccupancy(bars, categories, 1, { from: 0, to: 100 }, 2, out);
  const at = (column, category) => out[column * (model.CATEGORIES + 1) + category];
  assert.equal(at(0, 0), 0);
  assert.equal(at(0, model.REST), 0.5);
  assert.ok(Math.abs(at(1, 0) - 2 * 0.8) < 1e-6); // 60 to 100 of 50 to 100
  assert.ok(Math.abs(at(1, 1) - 2) < 1e-6);
});

test("jobs can be coloured by what differs or is stated", () => {
  const { read } = tiny();
  assert.deepEqual(model.colorings(read.jobs), ["model", "user", "job"]);
});
