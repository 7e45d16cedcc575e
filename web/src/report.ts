// SPDX-License-Identifier: Apache-2.0
// The report as a page: header, contents, tables and charts.

import { type CardPanel, segments } from "./card";
import { chartSpecs, whyEndsOnly } from "./charts";
import type { ReportData } from "./data";
import { h } from "./dom";
import { explanationCards } from "./explain";
import { GanttPanel, hasGantt } from "./gantt";
import { pageHeader } from "./header";
import { Panel } from "./panel";
import type { ChartSpec } from "./parts";
import { Shared } from "./shared";
import { comparisonTable, tiles } from "./table";
import { type Scheme, setScheme, watchTheme } from "./theme";

interface Group {
  id: string;
  title: string;
  /** A sentence above the charts, or instead of them; may be empty. */
  note?: string;
  elements: HTMLElement[];
}

function groupSection(group: Group): HTMLElement {
  return h(
    "section",
    { class: "group", id: group.id, "aria-labelledby": `${group.id}-title`, tabindex: -1 },
    h("h2", { id: `${group.id}-title` }, group.title),
    group.note && h("p", { class: "note" }, group.note),
    group.elements.length > 0 && h("div", { class: "charts" }, ...group.elements),
  );
}

function contents(groups: readonly Group[]): HTMLElement {
  const links = [{ id: "results", title: "Results" }, ...groups];
  return h(
    "nav",
    { class: "contents", "aria-label": "On this page" },
    h("ul", {}, ...links.map(({ id, title }) => h("li", {}, h("a", { href: `#${id}` }, title)))),
  );
}

const schemeChoice = (): HTMLElement =>
  segments(
    {
      name: "Colours of the page",
      options: [
        { value: "auto", name: "Auto" },
        { value: "light", name: "Light" },
        { value: "dark", name: "Dark" },
      ],
      initial: "auto",
    },
    (value) => setScheme(value as Scheme),
  );

/** The page, and what to call when it is in the document. */
export function reportPage(data: ReportData): { elements: HTMLElement[]; start(): void } {
  const shared = new Shared(data);
  const drawn: CardPanel[] = [];
  const panels = (specs: readonly ChartSpec[]): HTMLElement[] =>
    specs.map((spec) => {
      const panel = new Panel(spec, shared);
      drawn.push(panel);
      return panel.element;
    });

  const specs = chartSpecs(data);
  const jobs = panels(specs.jobs);
  const time = panels(specs.time);
  if (data.runs.some(hasGantt) && data.cluster.node.gpus.length > 0) {
    const gantt = new GanttPanel(data, shared);
    drawn.push(gantt);
    time.push(gantt.element);
  }
  const groups: Group[] = [
    { id: "jobs", title: "Jobs", elements: jobs },
    { id: "time", title: "Cluster over time", note: whyEndsOnly(data.runs), elements: time },
    { id: "use", title: "Where the GPU time went", elements: panels(specs.use) },
    { id: "why", title: "Explanations", elements: explanationCards(data.explanations) },
  ].filter((group) => group.elements.length > 0 || group.note);

  const page = h(
    "div",
    { class: "page" },
    pageHeader(data),
    h("div", { class: "bar" }, contents(groups), schemeChoice()),
    h(
      "main",
      { id: "main", tabindex: -1 },
      h("div", { id: "results", tabindex: -1 }, tiles(data), comparisonTable(data)),
      ...groups.map(groupSection),
    ),
    h(
      "footer",
      { class: "foot" },
      `Made by ${data.program.name} ${data.program.version}. This page is complete in itself and loads nothing from the network.`,
    ),
  );
  return {
    elements: [h("a", { class: "skip", href: "#main" }, "Skip to the results"), page],
    start: () => {
      watchTheme(data.runs.length, () => drawn.forEach((one) => one.redraw()));
      drawn.forEach((one) => one.start());
    },
  };
}
