// SPDX-License-Identifier: Apache-2.0
// What was run: trace, cluster, program and command.

import type { ReportData } from "./data";
import { count, decimal, duration, exactSeconds, plural, sequence } from "./format";
import { h } from "./dom";
import { settingText, sharedSettings } from "./settings";

const fileName = (path: string): string => path.split(/[/\\]/).pop() || path;

/** Whether all runs are those of published programs, whose "trace" is the file of the first result. */
const isForeign = (data: ReportData): boolean => data.runs.every((run) => run.ends_only);

/** Long paths break behind their slashes. */
const pathParts = (path: string): (Node | string)[] =>
  path.split(/(?<=[/\\])/).flatMap((part) => [part, h("wbr")]);

export function title(data: ReportData): string {
  const trace = fileName(data.trace.path) || "a trace";
  const first = data.runs[0];
  const single = data.runs.length === 1 && first;
  if (isForeign(data)) {
    const programs = sequence([...new Set(data.runs.map((run) => run.preset))]);
    return single ? `${first.label}, a result of ${programs}` : `${data.runs.length} results of ${programs}`;
  }
  return single ? `${first.label} on ${trace}` : `${data.runs.length} runs on ${trace}`;
}

export function pageHeader(data: ReportData): HTMLElement {
  const { trace, cluster, program } = data;
  const span =
    trace.first_submit !== null && trace.last_submit !== null ? trace.last_submit - trace.first_submit : null;

  const traceFacts = [
    trace.jobs !== null && plural(trace.jobs, "job"),
    span !== null && `submitted over ${duration(span)}`,
    trace.gpu_hours !== null && `${decimal(trace.gpu_hours)} GPU hours`,
  ].filter((fact): fact is string => typeof fact === "string");
  const clusterFacts = [
    cluster.nodes !== null && plural(cluster.nodes, "node"),
    cluster.gpus !== null && plural(cluster.gpus, "GPU"),
  ].filter((fact): fact is string => typeof fact === "string");

  const shared = sharedSettings(data.runs);

  const fact = (name: string, main: string | (Node | string)[], ...more: (Node | string | false)[]): HTMLElement =>
    h("div", {}, h("dt", {}, name), h("dd", {}, h("span", { class: "main" }, ...main), ...more));
  const small = (text: string, title?: string): HTMLElement => h("span", { class: "small", title }, text);

  return h(
    "header",
    { class: "head" },
    h("p", { class: "eyebrow" }, "Trainyard report"),
    h("h1", {}, title(data)),
    h(
      "dl",
      { class: "facts" },
      fact(
        isForeign(data) ? (data.runs.length > 1 ? "First result" : "Result") : "Trace",
        trace.path ? pathParts(trace.path) : "not named",
        traceFacts.length > 0 && small(traceFacts.join(", "), span === null ? undefined : exactSeconds(span)),
        trace.sha256 !== "" && h("span", { class: "small mono" }, `SHA-256 ${trace.sha256}`),
      ),
      (cluster.name !== "" || cluster.gpus !== null) && fact("Cluster", cluster.name || "not named", clusterFacts.length > 0 && small(clusterFacts.join(", "))),
      fact(
        "Runs",
        count(data.runs.length),
        shared.length > 0 && small((data.runs.length > 1 ? "all with " : "with ") + shared.map(settingText).join(", ")),
        data.runs.length <= 8 && small(data.runs.map((run) => run.label).join(", ")),
      ),
      fact("Program", `${program.name} ${program.version}`.trim()),
    ),
    data.command !== "" &&
      h(
        "div",
        { class: "command" },
        h("span", { class: "command-name", id: "command-name" }, "Command"),
        h("pre", { tabindex: 0, role: "region", "aria-labelledby": "command-name" }, h("code", {}, data.command)),
      ),
  );
}
