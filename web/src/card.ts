// SPDX-License-Identifier: Apache-2.0
// The frame of a chart: heading, tools, how to read it, the plot, its data as a table.

import { type Child, download, h } from "./dom";
import type { Choice } from "./parts";
import { isPrinting } from "./theme";

export interface Card {
  id: string;
  title: string;
  how: string;
  wide: boolean;
  tools: readonly HTMLElement[];
  body: readonly Child[];
  /** Filled by the chart. */
  table: HTMLElement;
}

export function chartCard(card: Card): HTMLElement {
  const headingId = `${card.id}-title`;
  return h(
    "section",
    { class: card.wide ? "card chart wide" : "card chart", id: card.id, "aria-labelledby": headingId, tabindex: -1 },
    h(
      "div",
      { class: "card-head" },
      h("h3", { id: headingId }, card.title),
      h("div", { class: "tools" }, ...card.tools),
    ),
    h("p", { class: "how", id: `${card.id}-how` }, card.how),
    ...card.body,
    h("details", {}, h("summary", {}, "Data as a table"), card.table),
  );
}

export function button(name: string, attributes: Record<string, string>, act: () => void): HTMLButtonElement {
  const element = h("button", { type: "button", class: "button", ...attributes }, name);
  element.addEventListener("click", act);
  return element;
}

/** The two buttons of every chart. */
export function fileButtons(
  id: string,
  title: string,
  files: { svg(): string; csv(): string },
): HTMLElement[] {
  return [
    button(
      "SVG",
      { "data-svg": id, title: "Download this plot as SVG", "aria-label": `SVG: download the plot “${title}”` },
      () => download(`trainyard-${id}.svg`, "image/svg+xml", files.svg()),
    ),
    button(
      "CSV",
      {
        "data-csv": id,
        title: "Download the data of this plot as CSV",
        "aria-label": `CSV: download the data of “${title}”`,
      },
      () => download(`trainyard-${id}.csv`, "text/csv", files.csv()),
    ),
  ];
}

/** Buttons of which one is pressed. */
export function segments(choice: Choice, chosen: (value: string) => void): HTMLElement {
  const buttons = choice.options.map((option) => {
    const element = h(
      "button",
      { type: "button", "data-choice": option.value, "aria-pressed": String(option.value === choice.initial) },
      option.name,
    );
    element.addEventListener("click", () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === element));
      chosen(option.value);
    });
    return element;
  });
  return h("div", { class: "segments", role: "group", "aria-label": choice.name }, ...buttons);
}

/** The width inside an element's padding. */
function contentWidth(element: HTMLElement): number {
  const style = getComputedStyle(element);
  return element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
}

/** A chart in its card, as wide as that is. */
export abstract class CardPanel {
  abstract readonly element: HTMLElement;
  /** Inside the card, on the screen. */
  protected width = 0;

  abstract redraw(): void;

  /** Call when the element is on the page. */
  start(): void {
    const fit = (): void => {
      const width = Math.floor(contentWidth(this.element));
      if (isPrinting() || width <= 0 || width === this.width) return;
      this.width = width;
      this.redraw();
    };
    fit();
    new ResizeObserver(fit).observe(this.element);
  }
}
