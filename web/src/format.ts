// SPDX-License-Identifier: Apache-2.0
// Numbers, durations and CSV as text.

export const NONE = "–";
const NB = "\u00a0"; // no-break space

const integer = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });

export function count(value: number | null | undefined): string {
  return value == null ? NONE : integer.format(value);
}

/** Up to three significant digits below 1000, whole numbers above. */
export function decimal(value: number | null | undefined): string {
  if (value == null) return NONE;
  return Math.abs(value) >= 1000 ? integer.format(value) : short.format(value);
}

/** 0.8312 as "83.1%". */
export function percent(value: number | null | undefined, digits = 1): string {
  return value == null ? NONE : `${(value * 100).toFixed(digits)}%`;
}

/** A noun with its number: "1 job", "3 jobs". */
export function plural(value: number, noun: string): string {
  return `${count(value)}${NB}${noun}${value === 1 ? "" : "s"}`;
}

/** "a", "a and b", "a, b and c". */
export function sequence(names: readonly string[]): string {
  const last = names[names.length - 1] ?? "";
  return names.length < 2 ? last : `${names.slice(0, -1).join(", ")} and ${last}`;
}

const pad = (value: number): string => String(value).padStart(2, "0");

/** Seconds in the two largest units that matter: "0.4 s", "3 min 20 s", "2 h 05 min", "1 d 03 h". */
export function duration(seconds: number | null | undefined): string {
  if (seconds == null) return NONE;
  if (seconds < 0) return `−${duration(-seconds)}`;
  if (seconds === 0) return `0${NB}s`;
  if (seconds < 0.001) return `<${NB}1${NB}ms`;
  if (seconds < 9.95) return `${Number(seconds.toPrecision(2))}${NB}s`;
  if (seconds < 59.5) return `${Math.round(seconds)}${NB}s`;
  const s = Math.round(seconds);
  if (s < 3600) return `${Math.floor(s / 60)}${NB}min${NB}${pad(s % 60)}${NB}s`;
  const m = Math.round(seconds / 60);
  if (m < 24 * 60) return `${Math.floor(m / 60)}${NB}h${NB}${pad(m % 60)}${NB}min`;
  const h = Math.round(seconds / 3600);
  if (h < 100 * 24) return `${Math.floor(h / 24)}${NB}d${NB}${pad(h % 24)}${NB}h`;
  return `${integer.format(Math.round(seconds / 86400))}${NB}d`;
}

/** The same where room is scarce: "2h 05m". */
export const shortDuration = (seconds: number | null | undefined): string =>
  duration(seconds).replace(/\u00a0min/g, "m").replace(/\u00a0(?=ms|[dhs])/g, "");

/** The exact value, for title attributes. */
export function exactSeconds(seconds: number | null | undefined): string {
  return seconds == null ? "does not apply" : `${seconds} s`;
}

/** A duration that is a whole number of one unit, for axis ticks: "10 min", "1 d". */
export function tickDuration(seconds: number): string {
  for (const unit of [UNITS.d, UNITS.h, UNITS.min]) {
    if (seconds >= unit.seconds) return `${decimal(seconds / unit.seconds)}${NB}${unit.name}`;
  }
  return `${decimal(seconds)}${NB}s`;
}

export interface Unit {
  name: string;
  seconds: number;
}

const UNITS = {
  s: { name: "s", seconds: 1 },
  min: { name: "min", seconds: 60 },
  h: { name: "h", seconds: 3600 },
  d: { name: "d", seconds: 86400 },
} as const;

/** The unit for a linear axis that reaches up to this many seconds. */
export function axisUnit(maxSeconds: number): Unit {
  if (maxSeconds >= 4 * 86400) return UNITS.d;
  if (maxSeconds >= 2 * 3600) return UNITS.h;
  if (maxSeconds >= 2 * 60) return UNITS.min;
  return UNITS.s;
}

const SPARSE = [
  1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 60, 600, 3600, 36000, 86400, 864000, 8640000, 86400000,
];
const DENSE = [
  1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600,
  7200, 18000, 43200, 86400, 172800, 432000, 864000, 1728000, 4320000, 8640000,
];

/** Round durations between two bounds, for an axis with a logarithmic scale. */
export function logTicks(min: number, max: number): number[] {
  const within = (ticks: number[]): number[] => ticks.filter((tick) => tick >= min && tick <= max);
  const sparse = within(SPARSE);
  return sparse.length >= 4 ? sparse : within(DENSE);
}

/** Round numbers between two bounds, likewise. */
export function ratioTicks(min: number, max: number): number[] {
  const ticks: number[] = [];
  const steps = Math.log10(max / min) > 3 ? [1] : [1, 2, 5];
  for (let power = Math.floor(Math.log10(min)); 10 ** power <= max; power++) {
    for (const step of steps) {
      const tick = Number(`${step}e${power}`);
      if (tick >= min && tick <= max) ticks.push(tick);
    }
  }
  return ticks;
}

/** 1.2345 as "1.23". */
export function ratio(value: number | null | undefined): string {
  return value == null ? NONE : Math.abs(value) >= 100 ? integer.format(value) : value.toFixed(2);
}

/** GPU-seconds in hours. */
export function gpuHours(gpuSeconds: number | null | undefined): string {
  return gpuSeconds == null ? NONE : `${decimal(gpuSeconds / 3600)}${NB}GPU${NB}h`;
}

export type Cell = string | number | null | undefined;

/** The order of two cells, or with -1 its reverse; what does not apply comes last, either way. */
export function compareCells(a: Cell, b: Cell, sign: 1 | -1): number {
  if (a == null || b == null) return a == b ? 0 : a == null ? 1 : -1;
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), "en", { numeric: true });
}

/** RFC 4180 text, with the header as first line. */
export function csv(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const cell = (value: Cell): string => {
    const s = value == null ? "" : String(value);
    return /[",\r\n]/.test(s) ? `"${s.replace(/"/g, '""')}"` : s;
  };
  return [header, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}
