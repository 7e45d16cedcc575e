// SPDX-License-Identifier: Apache-2.0
// Opens reports in headless Chromium.
//   REPORT_HTML  a finished report to look at, instead of dist/report.html with REPORT_JSON
//   REPORT_JSON  the data to use, instead of test/sample.json
//   CHROMIUM     the browser, instead of /usr/bin/chromium
//   SCREENSHOTS  a folder for screenshots

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { makeSample } from "./make-sample.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const PLACEHOLDER = "__TRAINYARD_REPORT_DATA__";
const shots = process.env.SCREENSHOTS ? resolve(process.env.SCREENSHOTS) : null;
const folder = mkdtempSync(join(tmpdir(), "trainyard-report-"));
let browser;

function embed(json) {
  const template = readFileSync(join(here, "..", "dist", "report.html"), "utf8");
  const pieces = template.split(PLACEHOLDER);
  assert.equal(pieces.length, 2, "the placeholder occurs once");
  return pieces.join(json.replace(/</g, "\\u003c"));
}

function write(name, html) {
  const path = join(folder, name);
  writeFileSync(path, html);
  return path;
}

function mainReport() {
  if (process.env.REPORT_HTML) {
    const path = resolve(process.env.REPORT_HTML);
    const match = /<script id="report-data"[^>]*>([\s\S]*?)<\/script>/.exec(readFileSync(path, "utf8"));
    assert.ok(match, "the report holds its data");
    return { path, data: JSON.parse(match[1]) };
  }
  const json = readFileSync(process.env.REPORT_JSON ?? join(here, "sample.json"), "utf8");
  return { path: write("main.html", embed(json)), data: JSON.parse(json) };
}

before(async () => {
  if (shots) mkdirSync(shots, { recursive: true });
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
    ],
  });
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens a file, runs the body, and fails on any console error or request. */
async function withPage(path, options, body) {
  const context = await browser.newContext({ acceptDownloads: true, ...options });
  context.setDefaultTimeout(10_000);
  const page = await context.newPage();
  const url = pathToFileURL(path).href;
  const problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`page: ${error.stack ?? error.message}`));
  page.on("requestfailed", (request) => problems.push(`failed: ${request.url().slice(0, 200)}`));
  page.on("request", (request) => {
    if (request.url() !== url && !/^(data|blob):/.test(request.url())) problems.push(`request: ${request.url()}`);
  });
  try {
    await page.goto(url);
    try {
      await body(page);
    } catch (error) {
      if (problems.length > 0) error.message += `\n${problems.join("\n")}`;
      throw error;
    }
    assert.deepEqual(problems, []);
  } finally {
    await context.close();
  }
}

const shot = async (page, name) => {
  if (shots) await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
};

function expectedCharts(data) {
  const ids = [];
  if (data.runs.some((run) => run.jct_cdf.seconds.length > 0)) ids.push("jct-cdf");
  if (data.runs.some((run) => run.queueing_cdf.seconds.length > 0)) ids.push("queueing-cdf");
  if (data.runs.some((run) => run.jct_by_size.length > 0)) ids.push("jct-by-size");
  if (data.runs.some((run) => run.fairness_cdf.ratio.length > 0)) ids.push("fairness-cdf");
  if (data.runs.some((run) => (run.summary.deadline_jobs ?? 0) > 0)) ids.push("deadlines");
  const timed = data.runs.some((run) => run.timeline.time.length > 0);
  if (timed) ids.push("gpus-used");
  if (data.runs.some((run) => run.timeline.gpus_fragmented?.length > 0)) ids.push("fragmentation");
  if (timed) ids.push("jobs-waiting");
  if (data.runs.some((run) => run.gantt)) ids.push("gantt");
  if (data.runs.some((run) => run.gpu_time)) ids.push("gpu-time");
  if (data.runs.some((run) => run.users.length + run.queues.length + run.models.length > 0)) ids.push("shares");
  const owners = ["user", "queue", "model"].filter((by) => (data.jobs?.[by].names.length ?? 0) > 1);
  if (owners.length > 0 && data.runs.some((run) => run.gantt)) ids.push("shares-time");
  return ids;
}

/** The colours of parts of a whole and of categories, light and dark. */
const PARTS = readFileSync(join(here, "..", "src", "theme.ts"), "utf8")
  .match(/three: \{[^}]*\}|categories: \[[^\]]*\]/g)
  .map((list) => list.match(/#[0-9a-f]{6}/g) ?? [])
  .filter((list) => list.length > 0);
const FATES = PARTS.filter((list) => list.length === 3);

/** Number of drawn shapes of a chart that have an extent and a colour of the data; pixels of a canvas. */
const drawn = (page, id) =>
  page.evaluate(([chart, parts]) => {
    const style = getComputedStyle(document.documentElement);
    const colors = new Set(parts);
    for (let i = 0; style.getPropertyValue(`--run-${i}`); i++) {
      colors.add(style.getPropertyValue(`--run-${i}`).trim().toLowerCase());
    }
    const canvas = document.querySelector(`#${chart} canvas`);
    if (canvas) {
      const copy = document.createElement("canvas"); // reading the page's own may be warned of
      copy.width = canvas.width;
      copy.height = canvas.height;
      const context = copy.getContext("2d", { willReadFrequently: true });
      context.drawImage(canvas, 0, 0);
      const { data } = context.getImageData(0, 0, copy.width, copy.height);
      const numbers = new Set([...colors].map((color) => parseInt(color.slice(1), 16)));
      let count = 0;
      for (let i = 0; i < data.length; i += 4) count += numbers.has((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
      return count;
    }
    return [...document.querySelectorAll(`#${chart} .plot svg path`)].filter((path) => {
      const paint = [path.getAttribute("stroke"), path.getAttribute("fill")].map((value) => (value ?? "").toLowerCase());
      const box = path.getBoundingClientRect();
      return paint.some((value) => colors.has(value)) && box.width > 0 && box.height > 0;
    }).length;
  }, [id, PARTS.flat()]);

/** The share of pixels of a picture that differ from its most frequent colour. */
async function inked(source) {
  const page = await browser.newPage();
  try {
    return await page.evaluate(async (url) => {
      const image = new Image();
      image.src = url;
      await image.decode();
      const canvas = document.createElement("canvas");
      canvas.width = image.naturalWidth;
      canvas.height = image.naturalHeight;
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      const pixels = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
      const counts = new Map();
      for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
      return 1 - Math.max(...counts.values()) / pixels.length;
    }, source);
  } finally {
    await page.close();
  }
}

async function checkLayout(page, data) {
  assert.equal(await page.locator("#comparison tbody tr").count(), data.runs.length);
  const ids = expectedCharts(data);
  assert.deepEqual(await page.locator("section.chart").evaluateAll((all) => all.map((one) => one.id)), ids);
  for (const id of ids) {
    const plot = page.locator(`#${id} :is(.plot, .gantt)`);
    assert.equal(await plot.locator("svg, canvas").count(), 1, `${id} has a plot`);
    assert.ok((await drawn(page, id)) >= (id === "gantt" ? 500 : 1), `${id} draws its runs`);
    assert.ok(await plot.getAttribute("aria-label"), `${id} has a label`);
    assert.equal(await page.locator(`#${id} details table tbody tr`).count() > 0, true, `${id} has a table`);
  }
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  assert.equal(overflow, 0, "no horizontal overflow of the page");
  const clash = await page.evaluate(() => {
    // Axis labels and names of one plot must not lie over each other.
    const found = [];
    for (const plot of document.querySelectorAll(".plot")) {
      const texts = [...plot.querySelectorAll("svg text")].filter((text) => text.textContent.trim() !== "");
      const boxes = texts.map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }));
      boxes.forEach((a, i) =>
        boxes.slice(i + 1).forEach((b) => {
          const w = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
          const h = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
          if (w > 1 && h > 3) found.push(`${plot.parentElement.id}: “${a.text}” and “${b.text}”`);
        }),
      );
      const frame = plot.getBoundingClientRect();
      for (const { text, box } of boxes) {
        if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1) {
          found.push(`${plot.parentElement.id}: “${text}” is cut off`);
        }
      }
    }
    return found;
  });
  assert.deepEqual(clash, []);
}

for (const width of [1280, 390]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`layout at ${width} px, ${colorScheme}`, async () => {
      const { path, data } = mainReport();
      await withPage(path, { viewport: { width, height: 900 }, colorScheme }, async (page) => {
        await checkLayout(page, data);
        await shot(page, `report-${width}-${colorScheme}`);
        for (const id of expectedCharts(data)) {
          const png = await page.locator(`#${id} :is(.plot, .gantt)`).screenshot();
          const share = await inked(`data:image/png;base64,${png.toString("base64")}`);
          assert.ok(share > 0.01, `${id} is not blank: ${(share * 100).toFixed(2)} % of its pixels are drawn`);
        }
      });
    });
  }
}

test("eight and twenty runs", async () => {
  for (const runs of [8, 20]) {
    const data = makeSample(runs, 400);
    const path = write(`runs-${runs}.html`, embed(JSON.stringify(data)));
    for (const width of [1280, 390]) {
      await withPage(path, { viewport: { width, height: 900 } }, async (page) => {
        await checkLayout(page, data);
        await shot(page, `runs-${runs}-${width}`);
        const labels = await page.locator("#deadlines .plot svg text").allTextContents();
        assert.deepEqual(labels.filter((text) => /\.\.\.|…/.test(text)), [], "labels of two lines are whole");
        if (runs === 8) {
          for (const id of ["gpus-used", "jobs-waiting"]) {
            await page.locator(`#${id} [data-choice="overlaid"]`).click();
          }
          await page.locator('#jct-cdf [data-choice="linear"]').click();
          await page.locator('#queueing-cdf [data-choice="linear"]').click();
          await checkLayout(page, data);
          await shot(page, `runs-${runs}-${width}-other`);
        }
      });
    }
  }
});

test("one run, without deadlines and with little data", async () => {
  const data = makeSample(1);
  const [run] = data.runs;
  run.summary = { ...run.summary, deadline_jobs: 0, deadlines_met: 0, deadline_ratio: null, jct_p99: null };
  run.queueing_cdf = { seconds: [0], fraction: [1] };
  data.trace = { ...data.trace, first_submit: null, gpu_hours: null };
  const path = write("one.html", embed(JSON.stringify(data)));
  await withPage(path, { viewport: { width: 1280, height: 900 } }, async (page) => {
    assert.equal(await page.locator("#deadlines").count(), 0);
    assert.equal(await page.locator("#jct-cdf .plot svg").count(), 1);
    assert.equal(await page.locator(".comparison .best").count(), 0);
    await shot(page, "one-run");
  });
});

test("deadlines are met, late or rejected", async () => {
  const data = makeSample(3);
  const { summary } = data.runs[2]; // 31 jobs were rejected
  Object.assign(summary, { deadlines_met: 89, deadlines_late: 0, deadlines_rejected: 31, accepted: 89, declined: 31 });
  summary.deadline_ratio = 89 / 120;
  const path = write("deadlines.html", embed(JSON.stringify(data)));
  for (const [i, colorScheme] of ["light", "dark"].entries()) {
    await withPage(path, { viewport: { width: 1280, height: 900 }, colorScheme }, async (page) => {
      const widths = (color) =>
        page.locator(`#deadlines .plot svg path[fill="${color}"]`).evaluateAll((all) =>
          all.map((path) => path.getBoundingClientRect()).filter((box) => box.width > 20).map((box) => box.width),
        );
      const [met, late, rejected] = await Promise.all(FATES[i].map(widths));
      assert.deepEqual([met.length, late.length, rejected.length], [3, 2, 1], "no bar for what did not happen");
      assert.ok(Math.abs(met[2] / rejected[0] - 89 / 31) < 0.1, "bars have the length of their share");

      const cells = await page.locator("#deadlines details tbody tr").nth(2).locator("td").allTextContents();
      assert.deepEqual(cells, ["120", "89", "0", "31", "74.2%"]);
      const head = (key) => page.locator(`#comparison th [data-sort="${key}"]`);
      for (const key of ["deadline_ratio", "accepted", "declined", "deadlines_late"]) {
        assert.equal(await head(key).count(), 1, key);
      }
      await head("deadlines_late").click();
      assert.equal(await page.locator("#comparison tbody .run-label").first().innerText(), data.runs[2].label);

      await page.locator("#deadlines .plot").scrollIntoViewIfNeeded();
      await page.locator("#deadlines .plot").hover({ position: { x: 500, y: 60 } });
      await page.locator("#deadlines .tip").waitFor();
      assert.equal(await page.locator("#deadlines .tip-row").count(), 3);
      if (shots) await page.locator("#deadlines").screenshot({ path: join(shots, `deadlines-${colorScheme}.png`) });
    });
  }
});

/** As a result of a published program has it: nothing of the time between starts and ends. */
function asForeign(run) {
  const { jobs, completed, rejected, unfinished, jct_mean, jct_p50, jct_p90, jct_p99, makespan } = run.summary;
  delete run.gantt;
  return Object.assign(run, {
    preset: "tiresias",
    settings: [{ name: "program", value: "tiresias" }],
    ends_only: true,
    summary: {
      jobs, completed, rejected, unfinished, jct_mean, jct_p50, jct_p90, jct_p99, makespan,
      queueing_delay_mean: run.summary.queueing_delay_mean,
      gpu_utilization: null,
      preemptions: null,
      migrations: null,
    },
    fairness_cdf: { ratio: [], fraction: [] },
    gpu_time: null,
    users: [],
    queues: [],
    models: [],
    timeline: { time: [], gpus_used: [], jobs_running: [], jobs_pending: [], gpus_fragmented: null },
  });
}

test("results of published programs alone have no charts of GPUs, and the page says why", async () => {
  const data = makeSample(3);
  data.runs.forEach(asForeign);
  data.cluster = { name: "", nodes: null, gpus: null };
  delete data.jobs;
  const path = write("foreign.html", embed(JSON.stringify(data)));
  for (const width of [1400, 390]) {
    await withPage(path, { viewport: { width, height: 900 } }, async (page) => {
      assert.deepEqual(expectedCharts(data), ["jct-cdf", "queueing-cdf", "jct-by-size"]);
      await checkLayout(page, data);
      assert.match(await page.locator("#time > .note").innerText(), /not when and where they held GPUs: there are no charts/);
      assert.equal(await page.locator("#use, .missing").count(), 0);
      assert.equal(await page.locator("h1").innerText(), "3 results of tiresias");
      assert.doesNotMatch(await page.locator(".facts").innerText(), /Cluster|not named/);
      for (const key of ["gpu_utilization", "preemptions", "migrations", "deadline_ratio"]) {
        assert.equal(await page.locator(`#comparison [data-sort="${key}"]`).count(), 0, `${key} is empty`);
      }
      await shot(page, `foreign-${width}`);
    });
  }
});

test("charts name the runs that they have no data of", async () => {
  const data = makeSample(3);
  asForeign(data.runs[1]);
  data.runs[2].queueing_cdf = { seconds: [], fraction: [] };
  const [own, foreign, third] = data.runs.map((run) => run.label);
  const path = write("mixed.html", embed(JSON.stringify(data)));
  await withPage(path, { viewport: { width: 1400, height: 900 } }, async (page) => {
    await checkLayout(page, data);
    const missing = (id) => page.locator(`#${id} .missing`).allInnerTexts();
    for (const id of ["gpus-used", "fragmentation", "jobs-waiting", "gantt", "gpu-time", "shares", "shares-time"]) {
      assert.deepEqual(await missing(id), [`No data of ${foreign}.`], id);
    }
    assert.deepEqual(await missing("queueing-cdf"), [`No data of ${third}.`]);
    assert.deepEqual(await missing("jct-cdf"), []);
    assert.match(await page.locator("#time > .note").innerText(), /not when and where they held GPUs\.$/);
    assert.deepEqual(await page.locator("#gpus-used .chip").allInnerTexts(), [own, third]);
    assert.equal(await page.locator("#gpus-used details tbody tr").count(), 2);
    // A chip stands for its run, though the chart leaves out the one between.
    await page.locator("#gpus-used .chip").nth(1).click();
    assert.deepEqual(await page.locator("#gpus-used details tbody th").allTextContents(), [own]);
    assert.deepEqual(await page.locator('#jct-cdf .chip[aria-pressed="false"]').allInnerTexts(), [third]);
  });
});

test("the comparison fits, with what differs alone", async () => {
  const data = makeSample(4);
  for (const run of data.runs) {
    Object.assign(run.summary, { rejected: 3, migrations: null });
    run.settings.push({ name: "grouping", value: "interleave" });
  }
  const path = write("fits.html", embed(JSON.stringify(data)));
  for (const width of [1400, 1280]) {
    await withPage(path, { viewport: { width, height: 900 } }, async (page) => {
      const scroll = page.locator("#results .scroll").first();
      const over = await scroll.evaluate((element) => element.scrollWidth - element.clientWidth);
      assert.equal(over, 0, `no scrolling at ${width} px`);
      const keys = await page.locator("#comparison [data-sort]").evaluateAll((all) => all.map((one) => one.dataset.sort));
      assert.ok(keys.includes("deadline_ratio") && keys.includes("jct_mean"));
      assert.ok(!keys.includes("migrations"), "empty");
      assert.ok(!keys.includes("rejected"), "the same in all runs");
      assert.match(await page.locator("#results .note").innerText(), /The same in all runs: rejected jobs 3\./);
      // What all share is said once, in the head.
      assert.match(await page.locator(".facts").innerText(), /all with grouping interleave/);
      assert.deepEqual(await page.locator(".run-detail").allTextContents(), ["policy edfadmission deadline", "placement spread"]);
      const titles = await page.locator("#comparison [data-sort]").evaluateAll((all) => all.map((one) => one.title));
      assert.ok(titles.every((title) => title.startsWith("Sort by ")));
    });
  }
  await withPage(path, { viewport: { width: 390, height: 900 } }, async (page) => {
    const label = page.locator("#comparison tbody th").first();
    const before = await label.boundingBox();
    await page.locator("#results .scroll").first().evaluate((element) => (element.scrollLeft = 400));
    assert.equal((await label.boundingBox()).x, before.x, "the names of the runs stay");
    assert.ok(before.width < 180, "and leave room for the values");
  });
});

test("runs that differ in nothing show all values", async () => {
  const data = makeSample(2);
  data.runs[1] = { ...data.runs[0], label: "again" };
  await withPage(write("equal.html", embed(JSON.stringify(data))), { viewport: { width: 1280, height: 900 } }, async (page) => {
    assert.ok((await page.locator("#comparison [data-sort]").count()) > 10);
    assert.equal(await page.locator(".comparison .best").count(), 0);
  });
});

test("names with markup are text", async () => {
  const data = makeSample(2);
  data.runs[0].label = "</script><img src=x onerror=alert(1)>";
  data.trace.path = "<b>trace</b>$&.csv";
  const path = write("markup.html", embed(JSON.stringify(data)));
  await withPage(path, { viewport: { width: 1280, height: 900 } }, async (page) => {
    assert.equal(await page.locator("img").count(), 0);
    assert.match(await page.locator("h1").innerText(), /<b>trace<\/b>\$&\.csv|b>\$&\.csv/);
    const plot = page.locator("#jct-cdf .plot");
    await plot.scrollIntoViewIfNeeded();
    await plot.hover();
    await page.locator("#jct-cdf .tip").waitFor();
    assert.equal(await page.locator("img").count(), 0);
  });
});

test("the table sorts by keyboard", async () => {
  const { path, data } = mainReport();
  await withPage(path, { viewport: { width: 1280, height: 900 } }, async (page) => {
    const labels = () => page.locator("#comparison tbody .run-label").allInnerTexts();
    const value = (run) => run.summary.jct_mean ?? Infinity;
    const sorted = [...data.runs].sort((a, b) => value(a) - value(b)).map((run) => run.label);
    const button = page.locator('#comparison [data-sort="jct_mean"]');
    const head = page.locator("#comparison th", { has: page.locator('[data-sort="jct_mean"]') });
    // Reached with the Tab key from the heading before it.
    const keys = await page.locator("#comparison [data-sort]").evaluateAll((all) => all.map((one) => one.dataset.sort));
    const before = keys[keys.indexOf("jct_mean") - 1];
    await page.locator(`#comparison [data-sort="${before}"]`).focus();
    await page.keyboard.press("Tab");
    assert.equal(await button.evaluate((element) => element === document.activeElement), true);
    await page.keyboard.press("Enter");
    assert.deepEqual(await labels(), sorted);
    assert.equal(await head.getAttribute("aria-sort"), "ascending");
    await page.keyboard.press("Space");
    assert.equal(await head.getAttribute("aria-sort"), "descending");
    if (new Set(data.runs.map(value)).size === data.runs.length && !data.runs.some((run) => value(run) === Infinity)) {
      assert.deepEqual(await labels(), [...sorted].reverse());
    }
    if (data.runs.length > 1) assert.match(await page.locator("#results [role=status]").innerText(), /mean JCT/);
  });
});

test("downloads", async () => {
  const { path, data } = mainReport();
  await withPage(path, { viewport: { width: 1280, height: 900 } }, async (page) => {
    const save = async (selector) => {
      await page.waitForTimeout(120); // the browser refuses many downloads in one second
      const [file] = await Promise.all([page.waitForEvent("download"), page.locator(selector).click()]);
      const target = join(folder, file.suggestedFilename());
      await file.saveAs(target);
      return { name: file.suggestedFilename(), text: readFileSync(target, "utf8") };
    };
    const summary = await save('[data-csv="summary"]');
    assert.equal(summary.name, "trainyard-summary.csv");
    assert.equal(summary.text.trim().split("\r\n").length, data.runs.length + 1);
    for (const id of expectedCharts(data)) {
      const table = await save(`[data-csv="${id}"]`);
      assert.equal(table.name, `trainyard-${id}.csv`);
      assert.ok(table.text.startsWith("run,"));
      const lines = table.text.trim().split("\r\n").length;
      assert.ok(lines > data.runs.length);
      if (id === "jct-cdf") assert.equal(lines, 1 + data.runs.reduce((sum, run) => sum + run.jct_cdf.seconds.length, 0));
      const plot = await save(`[data-svg="${id}"]`);
      assert.match(plot.text, /<svg[^>]+xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
      assert.ok(plot.text.includes("<path") && plot.text.trim().endsWith("</svg>"));
      const share = await inked(`data:image/svg+xml;base64,${Buffer.from(plot.text).toString("base64")}`);
      assert.ok(share > 0.01, `the picture of ${id} is not blank`);
      if (id === "gantt") assert.equal(lines, 1 + data.runs[0].gantt.job.length);
      if (shots) writeFileSync(join(shots, `plot-${id}.svg`), plot.text);
    }
  });
});

test("toggles, legend, zoom, tooltip and theme", async () => {
  const data = makeSample(3);
  const path = write("toggles.html", embed(JSON.stringify(data)));
  await withPage(path, { viewport: { width: 1280, height: 900 }, colorScheme: "light" }, async (page) => {
    const text = (id) => page.locator(`#${id} .plot svg`).innerHTML();
    assert.ok((await text("jct-cdf")).includes("log scale"));
    await page.locator('#jct-cdf [data-choice="linear"]').click();
    assert.ok(/JCT \([a-z]+\)/.test(await text("jct-cdf")), "a linear axis has one unit");

    await page.locator("#jct-cdf .chip").nth(1).click();
    assert.equal(await page.locator("#gpus-used .chip").nth(1).getAttribute("aria-pressed"), "false");
    assert.equal(await page.locator("#deadlines details tbody tr").count(), 2);
    for (const i of [0, 2]) await page.locator("#jct-cdf .chip").nth(i).click();
    assert.equal(await page.locator("#jct-cdf .empty").isVisible(), true);
    await page.locator("#jct-cdf .link").click();
    assert.equal(await drawn(page, "jct-cdf") >= 3, true);

    const box = await page.locator("#gpus-used .plot").boundingBox();
    await page.mouse.move(0, 0);
    const handle = { x: box.x + 52, y: box.y + box.height - 23 };
    await page.locator("#gpus-used .plot").scrollIntoViewIfNeeded();
    const moved = await page.locator("#gpus-used .plot").boundingBox();
    handle.x = moved.x + 52;
    handle.y = moved.y + moved.height - 23;
    await page.mouse.move(handle.x, handle.y);
    await page.mouse.down();
    await page.mouse.move(handle.x + 300, handle.y, { steps: 5 });
    await page.mouse.up();
    await page.locator("#jobs-waiting .tools button", { hasText: "Whole time" }).waitFor({ state: "visible" });
    await shot(page, "zoomed");
    await page.locator("#jobs-waiting .tools button", { hasText: "Whole time" }).click();
    await page.locator("#gpus-used .tools button", { hasText: "Whole time" }).waitFor({ state: "hidden" });

    const plot = page.locator("#gpus-used .plot");
    await plot.hover({ position: { x: 500, y: 150 } });
    await page.locator("#gpus-used .tip").waitFor();
    assert.equal(await page.locator("#gpus-used .tip-row").count(), 3);
    if (shots) await page.screenshot({ path: join(shots, "tooltip-time.png") });
    await page.locator("#jct-cdf .plot").hover({ position: { x: 300, y: 150 } });
    await page.locator("#jct-cdf .tip").waitFor();
    assert.equal(await page.locator("#jct-cdf .tip-row").count(), 3);
    if (shots) await page.screenshot({ path: join(shots, "tooltip-cdf.png") });

    const color = () => page.evaluate(() => document.documentElement.style.getPropertyValue("--run-0"));
    const light = await color();
    await page.emulateMedia({ colorScheme: "dark" });
    await page.waitForFunction(
      (old) => document.documentElement.style.getPropertyValue("--run-0") !== old,
      light,
    );
    await page.waitForTimeout(200); // the plots follow with the next frames
    assert.ok((await drawn(page, "jct-cdf")) >= 3, "the charts follow the theme");

    if (shots) await page.pdf({ path: join(shots, "print.pdf"), format: "A4", printBackground: false });
  });
});

test("the Gantt chart by buttons, keys and pointer", async () => {
  const data = makeSample(2);
  const path = write("gantt.html", embed(JSON.stringify(data)));
  await withPage(path, { viewport: { width: 1280, height: 900 } }, async (page) => {
    const gantt = page.locator("#gantt .gantt");
    const frame = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const pixels = () => page.evaluate(() => document.querySelector("#gantt canvas").toDataURL());
    const seen = [await pixels()];
    const changes = async (what, act) => {
      await act();
      await frame();
      const now = await pixels();
      assert.ok(!seen.includes(now), `${what} changes the picture`);
      seen.push(now);
    };
    const whole = await gantt.getAttribute("aria-label");
    await changes("zooming in", () => page.getByRole("button", { name: "Zoom in, in time" }).click());
    assert.notEqual(await gantt.getAttribute("aria-label"), whole);
    // The part of the time is that of the other charts.
    assert.equal(await page.locator("#gpus-used .tools button", { hasText: "Whole time" }).isVisible(), true);
    await gantt.focus();
    await changes("the right arrow", () => page.keyboard.press("ArrowRight"));
    await changes("plus", () => page.keyboard.press("+"));
    await changes("Shift and up", () => page.keyboard.press("Shift+ArrowUp"));
    await changes("down", () => page.keyboard.press("ArrowDown"));
    await page.keyboard.press("0");
    await frame();
    assert.equal(await pixels(), seen[0], "0 shows all again");
    assert.equal(await gantt.getAttribute("aria-label"), whole);

    await changes("another colour", () => page.locator('#gantt [data-select="colour"]').selectOption("user"));
    await changes("another run", () => page.locator('#gantt [data-select="run"]').selectOption("1"));
    await changes("rows of nodes", () => page.locator('#gantt [data-choice="nodes"]').click());
    assert.ok((await drawn(page, "gantt")) > 500, "nodes are drawn");
    await page.locator('#gantt [data-choice="gpus"]').click();

    await page.locator("#gantt .find input").fill("job-0123");
    await changes("finding a job", () => page.keyboard.press("Enter"));
    assert.match(await page.locator("#gantt .gantt-status").innerText(), /Job job-0123 \(.*\): \d+.bars?, from /);
    await page.locator("#gantt .find input").fill("nobody");
    await page.keyboard.press("Enter");
    assert.match(await page.locator("#gantt .gantt-status").innerText(), /No job/);

    const canvas = page.locator("#gantt canvas");
    const box = await canvas.boundingBox();
    await canvas.hover({ position: { x: box.width / 2, y: 60 } });
    assert.match(await page.locator("#gantt .gantt-tip").innerText(), /node\d\d, GPU \d, after/);
    await changes("dragging", async () => {
      await page.mouse.down();
      await page.mouse.move(box.x + box.width / 2 - 200, (await canvas.boundingBox()).y + 60, { steps: 4 });
      await page.mouse.up();
    });
    await changes("the wheel with Ctrl", async () => {
      await page.keyboard.down("Control");
      await page.mouse.wheel(0, -200);
      await page.keyboard.up("Control");
    });
  });
});

test("a report of 10,000 jobs can be used", async () => {
  const data = makeSample(4, 1000, 10_000);
  const path = write("large.html", embed(JSON.stringify(data)));
  await withPage(path, { viewport: { width: 1400, height: 900 } }, async (page) => {
    // From the start of the load: all is drawn, and the next input would be answered.
    const ready = await page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0))),
    );
    assert.ok((await drawn(page, "gantt")) > 10_000, "the Gantt chart is drawn");
    await page.locator("#gantt .gantt").focus();
    const answers = [];
    for (const key of ["+", "ArrowRight", "+", "-", "0"]) {
      const before = Date.now();
      await page.keyboard.press(key);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      answers.push(Date.now() - before);
    }
    console.log(`10,000 jobs, 4 runs: ready after ${ready.toFixed(0)} ms, keys answered after ${answers.join(", ")} ms`);
    await shot(page, "large-1400");
  });
});

test("everything is reached by the Tab key, and seen", async () => {
  const data = makeSample(2);
  const path = write("keys.html", embed(JSON.stringify(data)));
  await withPage(path, { viewport: { width: 1280, height: 900 } }, async (page) => {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    assert.ok((await page.locator(".skip").boundingBox()).y >= 0, "the skip link comes into view");
    const unseen = [];
    for (let i = 0; i < 400; i++) {
      const at = await page.evaluate(() => {
        const element = document.activeElement;
        element.dataset.reached = "yes";
        const style = getComputedStyle(element);
        const shown = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
        return { last: element === document.body, shown, name: element.outerHTML.slice(0, 80) };
      });
      if (at.last) break;
      if (!at.shown) unseen.push(at.name);
      await page.keyboard.press("Tab");
    }
    assert.deepEqual(unseen, [], "the focus is seen");
    const missed = await page.evaluate(() =>
      [...document.querySelectorAll("button, input, select, summary, a[href], .gantt, [tabindex='0']")]
        .filter((element) => !element.dataset.reached && !element.disabled && element.checkVisibility())
        .map((element) => element.outerHTML.slice(0, 80)),
    );
    assert.deepEqual(missed, []);

    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("button, input, select")]
        .filter((element) => {
          const label = element.getAttribute("aria-label") ?? element.closest("label")?.textContent ?? element.textContent;
          return label.trim() === "";
        })
        .map((element) => element.outerHTML.slice(0, 80)),
    );
    assert.deepEqual(nameless, []);
    const levels = await page.locator("h1, h2, h3").evaluateAll((all) => all.map((one) => Number(one.tagName[1])));
    assert.equal(levels.filter((level) => level === 1).length, 1);
    levels.slice(1).forEach((level, i) => assert.ok(level - levels[i] <= 1, "no level of headings is left out"));
    for (const landmark of ["header", "nav", "main", "footer"]) {
      assert.equal(await page.locator(landmark).count(), 1, landmark);
    }
  });
});

test("explanations sort, and the colours can be chosen", async () => {
  const data = makeSample(2);
  const path = write("why.html", embed(JSON.stringify(data)));
  await withPage(path, { viewport: { width: 1280, height: 900 }, colorScheme: "light" }, async (page) => {
    const names = () => page.locator("#explanation-1 tbody th").allInnerTexts();
    await page.locator("#explanation-1 thead button", { hasText: "JCT under srtf" }).click();
    assert.deepEqual(await names(), ["job-0102", "job-0007", "job-0034", "job-0300"]);
    await page.locator("#explanation-1 thead button", { hasText: "JCT under srtf" }).click();
    assert.deepEqual(await names(), ["job-0034", "job-0007", "job-0102", "job-0300"]);

    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.locator('[data-choice="dark"]').click();
    const dark = await background();
    assert.notEqual(dark, light);
    assert.ok((await drawn(page, "jct-cdf")) >= 2, "the charts follow");
    await page.locator('[data-choice="auto"]').click();
    assert.equal(await background(), light);
  });
});

test("data that cannot be shown give a message", async () => {
  const pages = {
    "template.html": [readFileSync(join(here, "..", "dist", "report.html"), "utf8"), /empty report template/],
    "broken.html": [embed('{"format": '), /not valid JSON/],
    "format.html": [embed('{"format": "other/2"}'), /other\/2/],
    "partial.html": [embed('{"format": "trainyard-report/2", "runs": [{}], "trace": {}, "cluster": {}}'), /summary/],
  };
  for (const [name, [html, expected]] of Object.entries(pages)) {
    await withPage(write(name, html), { viewport: { width: 390, height: 700 } }, async (page) => {
      assert.match(await page.locator("[role=alert]").innerText(), expected);
      if (name === "format.html") await shot(page, "message");
    });
  }
});
