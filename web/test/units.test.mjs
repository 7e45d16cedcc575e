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
const plain = (text) => text.replace(/\u00a0/g, " ");

test("durations", () => {
  const cases = [
    [null, "–"],
    [0, "0 s"],
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

test("axes", () => {
  assert.equal(format.axisUnit(90).name, "s");
  assert.equal(format.axisUnit(7200).name, "h");
  assert.equal(format.axisUnit(7 * 86400).name, "d");
  assert.deepEqual(format.logTicks(1, 40000), [1, 10, 60, 600, 3600, 36000]);
  assert.ok(format.logTicks(100, 400).length >= 2);
  assert.equal(plain(format.tickDuration(36000)), "10 h");
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
