// SPDX-License-Identifier: Apache-2.0
// Colours and dashes. A run keeps its colour and its dash in every chart and in the table.

import { svg } from "./dom";

export interface Theme {
  name: "light" | "dark";
  text: string;
  muted: string;
  axis: string;
  grid: string;
  surface: string;
  /** Told apart by people with the common colour-vision deficiencies. */
  runs: readonly string[];
  /** What became of the jobs with a deadline: dark, strong and faint, also without colours. */
  deadlines: { readonly met: string; readonly late: string; readonly rejected: string };
}

export const LIGHT: Theme = {
  name: "light",
  text: "#1c2024",
  muted: "#5b6470",
  axis: "#9aa3ad",
  grid: "#e6e9ec",
  surface: "#ffffff",
  runs: [
    "#0069a8", "#cf5a00", "#008a64", "#b84f93", "#1c2024", "#a87900", "#2f9bd6", "#6b46b0", "#8a8f96", "#8a1f4b",
  ],
  deadlines: { met: "#2f4b66", late: "#d9480f", rejected: "#c9d0d7" },
};

export const DARK: Theme = {
  name: "dark",
  text: "#e7eaee",
  muted: "#a3adb8",
  axis: "#5d6772",
  grid: "#2a3038",
  surface: "#181c21",
  runs: [
    "#4ea8e6", "#f08a48", "#2fc397", "#e494c6", "#f1f3f5", "#e8b93a", "#9bd8ff", "#b8a0f0", "#8f98a3", "#e0708f",
  ],
  deadlines: { met: "#a9c4dd", late: "#f0703a", rejected: "#3f4852" },
};

/** One dash pattern after another; lengths differ from that of `runs`, so pairs repeat late. */
const DASHES: readonly (readonly number[])[] = [
  [],
  [9, 4],
  [2, 3],
  [9, 3, 2, 3],
  [5, 3],
  [14, 4],
  [9, 3, 2, 3, 2, 3],
];

export const dash = (index: number): readonly number[] => DASHES[index % DASHES.length] ?? [];

function mix(a: string, b: string, share: number): string {
  const channel = (hex: string, k: number): number => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
  return (
    "#" +
    [0, 1, 2]
      .map((k) => Math.round(channel(a, k) * (1 - share) + channel(b, k) * share))
      .map((value) => value.toString(16).padStart(2, "0"))
      .join("")
  );
}

export function runColor(theme: Theme, index: number): string {
  const base = theme.runs[index % theme.runs.length] ?? theme.text;
  const turn = Math.floor(index / theme.runs.length);
  return turn === 0 ? base : mix(base, turn % 2 ? theme.muted : theme.surface, 0.45);
}

/** A short piece of the line of a run; its colour follows the theme. */
export function swatch(index: number): SVGElement {
  return svg(
    "svg",
    { class: "swatch", width: 28, height: 10, viewBox: "0 0 28 10", "aria-hidden": "true" },
    svg("line", {
      x1: 0,
      y1: 5,
      x2: 28,
      y2: 5,
      "stroke-width": 3,
      "stroke-dasharray": dash(index).join(" ") || undefined,
      style: `stroke: var(--run-${index})`,
    }),
  );
}

const darkQuery = window.matchMedia("(prefers-color-scheme: dark)");
let printing = false;

export const currentTheme = (): Theme => (darkQuery.matches && !printing ? DARK : LIGHT);
export const isPrinting = (): boolean => printing;

function apply(runs: number): void {
  const theme = currentTheme();
  for (let i = 0; i < runs; i++) {
    document.documentElement.style.setProperty(`--run-${i}`, runColor(theme, i));
  }
}

/** Sets the colours of the runs and keeps them right; calls back when the charts must be redrawn. */
export function watchTheme(runs: number, changed: () => void): void {
  const update = (): void => {
    apply(runs);
    changed();
  };
  apply(runs);
  darkQuery.addEventListener("change", update);
  window.addEventListener("beforeprint", () => {
    printing = true;
    update();
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    update();
  });
}
