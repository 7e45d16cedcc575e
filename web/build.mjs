// SPDX-License-Identifier: Apache-2.0
// Builds dist/report.html: one file, with the script and the style sheet inlined.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = dirname(fileURLToPath(import.meta.url));
const PLACEHOLDER = "__TRAINYARD_REPORT_DATA__";
const read = (...parts) => readFileSync(join(root, ...parts), "utf8");

async function bundle(entry) {
  const result = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["es2020"],
    charset: "utf8",
    legalComments: "none", // the notices below replace them
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "warning",
  });
  return result.outputFiles[0].text.trim();
}

// Text of the third-party licences, put into an HTML comment.
function notices() {
  const parts = [
    "Trainyard report, Apache-2.0. This file contains:",
    "Apache ECharts, Apache-2.0.\n" + read("node_modules/echarts/NOTICE").trim(),
    "zrender.\n" + read("node_modules/zrender/LICENSE").trim(),
    "tslib.\n" + read("node_modules/tslib/LICENSE.txt").trim(),
  ];
  return parts.join("\n\n").replace(/\r/g, "").replace(/--+/g, "-");
}

function fill(html, name, value) {
  const marker = `/*{{${name}}}*/`;
  const pieces = html.split(marker);
  if (pieces.length !== 2) throw new Error(`template.html: ${marker} must occur once`);
  return pieces.join(value);
}

const script = (await bundle("src/main.ts")).replace(/<\/script/gi, "<\\/script").replace(/<!--/g, "<\\!--");
const style = (await bundle("src/report.css")).replace(/<\/style/gi, "<\\/style");

let html = read("src/template.html");
html = fill(html, "notices", notices());
html = fill(html, "style", style);
html = fill(html, "script", script);

const count = html.split(PLACEHOLDER).length - 1;
if (count !== 1) throw new Error(`dist/report.html: ${PLACEHOLDER} occurs ${count} times, not once`);

mkdirSync(join(root, "dist"), { recursive: true });
writeFileSync(join(root, "dist", "report.html"), html);
console.log(`dist/report.html: ${(Buffer.byteLength(html) / 1024).toFixed(0)} KiB`);
