// SPDX-License-Identifier: Apache-2.0
// What all charts of a page share: the runs that are shown and the part of the time axis.

import type { ReportData, Run } from "./data";
import { h } from "./dom";
import { sequence } from "./format";
import type { Item } from "./parts";
import { swatch } from "./theme";

export type Changed = "runs" | "zoom";

export class Shared {
  readonly items: readonly Item[];
  private readonly off = new Set<number>();
  /** In percent of the time of the longest run shown. */
  zoom = { start: 0, end: 100 };
  private readonly listeners: ((what: Changed, from?: unknown) => void)[] = [];

  constructor(data: ReportData) {
    this.items = data.runs.map((run, index) => ({ run, index }));
  }

  visible(): Item[] {
    return this.items.filter((item) => !this.off.has(item.index));
  }

  isVisible(index: number): boolean {
    return !this.off.has(index);
  }

  toggle(index: number): void {
    if (this.off.has(index)) this.off.delete(index);
    else this.off.add(index);
    this.tell("runs");
  }

  showAll(): void {
    this.off.clear();
    this.tell("runs");
  }

  setZoom(start: number, end: number, from: unknown): void {
    this.zoom = { start, end };
    this.tell("zoom", from);
  }

  get zoomed(): boolean {
    return this.zoom.start > 0 || this.zoom.end < 100;
  }

  listen(listener: (what: Changed, from?: unknown) => void): void {
    this.listeners.push(listener);
  }

  private tell(what: Changed, from?: unknown): void {
    for (const listener of this.listeners) listener(what, from);
  }
}

/** Names the runs that a chart has nothing of; null where it has all. */
export function missingNote(shared: Shared, has: (run: Run) => boolean): HTMLElement | null {
  const names = shared.items.filter(({ run }) => !has(run)).map(({ run }) => run.label);
  return names.length === 0 ? null : h("p", { class: "missing" }, `No data of ${sequence(names)}.`);
}

/**
 * A button for each run that a chart has data of, which shows or hides it in all charts; keeps
 * itself up to date.
 */
export function runLegend(shared: Shared, has: (run: Run) => boolean): HTMLElement {
  const legend = h("div", { class: "legend", role: "group", "aria-label": "Runs shown in the charts" });
  const items = shared.items.filter(({ run }) => has(run));
  const chips = items.map(({ run, index }) => {
    const chip = h(
      "button",
      { type: "button", class: "chip", "aria-pressed": "true", title: "Show or hide this run in all charts" },
      swatch(index),
      h("span", { class: "chip-name" }, run.label),
    );
    chip.addEventListener("click", () => shared.toggle(index));
    return chip;
  });
  const showAll = h("button", { type: "button", class: "link", hidden: true }, "Show all runs");
  showAll.addEventListener("click", () => shared.showAll());
  legend.append(...chips, showAll);
  shared.listen((what) => {
    if (what !== "runs") return;
    chips.forEach((chip, i) => chip.setAttribute("aria-pressed", String(shared.isVisible((items[i] as Item).index))));
    showAll.hidden = shared.visible().length === shared.items.length;
  });
  return legend;
}
