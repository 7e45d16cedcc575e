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
  /** Three parts of a whole: dark, strong and faint, told apart also without colours. */
  three: { readonly strong: string; readonly warning: string; readonly faint: string };
  /** Users, queues, models, jobs: what is many. */
  categories: readonly string[];
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
  three: { strong: "#2f4b66", warning: "#d9480f", faint: "#c9d0d7" },
  categories: [
    "#4477aa", "#ee8866", "#44aa88", "#aa4477", "#bbaa33", "#66aadd", "#994433", "#8866bb", "#668844", "#dd99bb",
  ],
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
  three: { strong: "#a9c4dd", warning: "#f0703a", faint: "#3f4852" },
  categories: [
    "#6699cc", "#ee8866", "#55bb99", "#cc6699", "#ccbb44", "#88ccee", "#bb6655", "#a88bdd", "#88aa66", "#eeaacc",
  ],
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

export const categoryColor = (theme: Theme, index: number): string =>
  theme.categories[index % theme.categories.length] ?? theme.muted;

function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const c = parseInt(hex.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Black or white, whichever is read better on this colour. */
export const inkOn = (color: string): string => (luminance(color) > 0.18 ? "#000000" : "#ffffff");

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

export type Scheme = "auto" | "light" | "dark";

const darkQuery = window.matchMedia("(prefers-color-scheme: dark)");
let printing = false;
let scheme: Scheme = "auto";
let update: () => void = () => {};

export function currentTheme(): Theme {
  const dark = scheme === "auto" ? darkQuery.matches : scheme === "dark";
  return dark && !printing ? DARK : LIGHT;
}
export const isPrinting = (): boolean => printing;

/** Light or dark whatever the system says, or as it says. */
export function setScheme(chosen: Scheme): void {
  scheme = chosen;
  const { dataset } = document.documentElement;
  if (chosen === "auto") delete dataset["theme"];
  else dataset["theme"] = chosen;
  update();
}

function apply(runs: number): void {
  const theme = currentTheme();
  for (let i = 0; i < runs; i++) {
    document.documentElement.style.setProperty(`--run-${i}`, runColor(theme, i));
  }
}

/** Sets the colours of the runs and keeps them right; calls back when the charts must be redrawn. */
export function watchTheme(runs: number, changed: () => void): void {
  update = (): void => {
    apply(runs);
    changed();
  };
  apply(runs);
  darkQuery.addEventListener("change", () => update());
  const print = (now: boolean) => (): void => {
    printing = now;
    update();
  };
  window.addEventListener("beforeprint", print(true));
  window.addEventListener("afterprint", print(false));
}
