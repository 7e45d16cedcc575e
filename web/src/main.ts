// SPDX-License-Identifier: Apache-2.0
// Reads the data in the page and puts the report together.

import { type ReportData, ReportError, parseReport } from "./data";
import { h } from "./dom";
import { title } from "./header";
import { reportPage } from "./report";

function message(heading: string, ...lines: string[]): HTMLElement {
  return h(
    "main",
    { class: "page" },
    h("div", { class: "message", role: "alert" }, h("h1", {}, heading), ...lines.map((line) => h("p", {}, line))),
  );
}

function report(app: HTMLElement, data: ReportData): void {
  document.title = `Trainyard report: ${title(data)}`;
  const page = reportPage(data);
  app.replaceChildren(...page.elements);
  page.start();
}

const app = document.getElementById("app");
if (app) {
  try {
    report(app, parseReport(document.getElementById("report-data")?.textContent ?? ""));
  } catch (error) {
    const known = error instanceof ReportError;
    app.replaceChildren(
      message(
        "This report cannot be shown",
        known ? error.message : `Something in the data was not expected: ${String(error)}`,
        "Make the report again with the trainyard program.",
      ),
    );
  }
}
