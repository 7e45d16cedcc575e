// SPDX-License-Identifier: Apache-2.0
// Small helpers to build elements and to hand out files.

type Attributes = { [name: string]: string | number | boolean | undefined };
export type Child = Node | string | null | undefined | false;

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes, children);
  return element;
}

/** Offers text as a file; works without a network and from file://. */
export function download(name: string, type: string, content: string): void {
  const url = URL.createObjectURL(new Blob([content], { type: `${type};charset=utf-8` }));
  const link = h("a", { href: url, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export interface PlainTable {
  caption: string;
  header: string[];
  /** The first cell of a row is its heading. */
  rows: string[][];
}

export function plainTable(table: PlainTable): HTMLElement {
  return h(
    "div",
    { class: "scroll", role: "region", tabindex: 0, "aria-label": table.caption },
    h(
      "table",
      { class: "plain" },
      h("caption", { class: "hidden" }, table.caption),
      h("thead", {}, h("tr", {}, ...table.header.map((name) => h("th", { scope: "col" }, name)))),
      h(
        "tbody",
        {},
        ...table.rows.map((row) =>
          h("tr", {}, ...row.map((cell, i) => (i === 0 ? h("th", { scope: "row" }, cell) : h("td", {}, cell)))),
        ),
      ),
    ),
  );
}
