// SPDX-License-Identifier: Apache-2.0
// Tables that come with the data, such as why two runs differ: sorted by any column, as CSV.

import { button } from "./card";
import type { Table, Unit } from "./data";
import { download, h } from "./dom";
import { type Cell, NONE, compareCells, count, csv, decimal, duration, percent } from "./format";

/** Texts of more letters go over several lines. */
const LONG = 30;

function show(value: Cell, unit: Unit): string {
  if (value == null || value === "") return NONE;
  if (typeof value === "string") return value;
  if (unit === "s") return duration(value);
  if (unit === "share") return percent(value);
  return Number.isInteger(value) ? count(value) : decimal(value);
}

function sortable(table: Table, id: string): HTMLElement {
  const status = h("p", { class: "hidden", role: "status" });
  const body = h("tbody");
  const numeric = table.columns.map((_, i) => table.rows.some((row) => typeof row[i] === "number"));
  const long = table.columns.map((_, i) => table.rows.some((row) => String(row[i] ?? "").length > LONG));
  const side = (i: number): string | undefined => (numeric[i] ? undefined : long[i] ? "text long" : "text");
  const rows = table.rows.map((values) => ({
    values,
    row: h(
      "tr",
      {},
      ...values.map((value, i) => {
        const content = show(value, table.columns[i]?.unit ?? "");
        const title = table.columns[i]?.unit === "s" && typeof value === "number" ? `${value} s` : undefined;
        return i === 0
          ? h("th", { scope: "row", class: side(i) }, content)
          : h("td", { class: side(i), title }, content);
      }),
    ),
  }));
  body.append(...rows.map(({ row }) => row));

  const heads = table.columns.map((column, i) => {
    const sort = h("button", { type: "button", title: `Sort by ${column.name}` }, column.name);
    const head = h("th", { scope: "col", class: side(i) }, sort);
    sort.addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const sorted = [...rows].sort((a, b) =>
        compareCells(a.values[i], b.values[i], ascending ? 1 : -1),
      );
      body.replaceChildren(...sorted.map(({ row }) => row));
      status.textContent = `Sorted by ${column.name}, ${ascending ? "lowest" : "highest"} first.`;
    });
    return head;
  });
  return h(
    "div",
    { class: "scroll", role: "region", tabindex: 0, "aria-labelledby": id },
    h("table", { class: "sortable" }, h("thead", {}, h("tr", {}, ...heads)), body),
    status,
  );
}

export function explanationCards(tables: readonly Table[]): HTMLElement[] {
  return tables.map((table, i) => {
    const id = `explanation-${i + 1}`;
    const file = button(
      "CSV",
      { "data-csv": id, "aria-label": `CSV: download the table “${table.title}”` },
      () => download(`trainyard-${id}.csv`, "text/csv", csv(table.columns.map(({ name }) => name), table.rows)),
    );
    return h(
      "section",
      { class: "card wide", id, "aria-labelledby": `${id}-title`, tabindex: -1 },
      h("div", { class: "card-head" }, h("h3", { id: `${id}-title` }, table.title), h("div", { class: "tools" }, file)),
      table.caption !== "" && h("p", { class: "how" }, table.caption),
      sortable(table, `${id}-title`),
    );
  });
}
