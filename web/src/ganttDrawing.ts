// SPDX-License-Identifier: Apache-2.0
// A Gantt chart on a canvas or as SVG: bars or nodes as rows, names, the time axis.

import type { Jobs } from "./data";
import { h } from "./dom";
import { axisUnit } from "./format";
import { Bars, CATEGORIES, type Categories, REST, Rows, addOccupancy } from "./ganttModel";
import { ownerColor } from "./owners";
import type { Painter, Rect } from "./painter";
import { type Theme, inkOn } from "./theme";

export type RowsAs = "gpus" | "nodes";

/** Right of the picture. */
export const RIGHT = 20;
const RASTER_ROWS = 1000;
/** Rows of at least this height are named one by one, and so are their bars. */
const NAMED_LANE = 14;

export const clamp = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high);

/** Where the picture stands, and what of time and rows it shows. */
export interface Frame {
  area: Rect;
  from: number;
  to: number;
  /** In GPUs. */
  top: number;
  bottom: number;
}

/** The first of 1, 2, 5, 10 ... not below. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const step of [1, 2, 5]) if (step * power >= least) return step * power;
  return 10 * power;
}

export class Drawing {
  constructor(
    private readonly jobs: Jobs,
    private readonly bars: Bars,
    private readonly rows: Rows,
    private readonly categories: Categories,
    private readonly theme: Theme,
    private readonly frame: Frame,
    private readonly painter: Painter,
  ) {}

  private x(seconds: number): number {
    const { area, from, to } = this.frame;
    return area.x + ((seconds - from) / (to - from)) * area.width;
  }

  private y(row: number): number {
    const { area, top, bottom } = this.frame;
    return area.y + ((row - top) / (bottom - top)) * area.height;
  }

  draw(as: RowsAs, marked: number | null): void {
    const { painter, frame, theme } = this;
    painter.rects([frame.area], theme.name === "dark" ? "#1f242a" : "#f1f3f5");
    painter.clip(frame.area);
    if (as === "gpus") this.drawBars();
    else this.drawNodes();
    this.drawNodeLines();
    if (marked !== null) painter.outline(this.rectsOf(this.bars.of(marked), 3), theme.text);
    painter.clip(null);
    this.drawRowNames();
    this.drawTime();
  }

  private color(category: number): string {
    return ownerColor(this.theme, category);
  }

  private rectsOf(bars: readonly number[], least: number): Rect[] {
    const { gantt } = this.bars;
    const rects: Rect[] = [];
    const { area, from, to, top, bottom } = this.frame;
    const lane = area.height / (bottom - top);
    const gap = lane >= 5 ? 1 : 0;
    for (const i of bars) {
      const start = gantt.start[i] as number;
      const end = start + (gantt.length[i] as number);
      const first = (this.rows.first[gantt.node[i] as number] as number) + (gantt.first_gpu[i] as number);
      const last = first + (gantt.gpus[i] as number);
      if (end < from || start > to || last <= top || first >= bottom) continue;
      let x = Math.max(this.x(start), area.x - 2);
      let width = Math.min(this.x(end), area.x + area.width + 2) - x;
      // Wide ones stand apart; narrow ones keep their share of a pixel, which adds up.
      if (width >= 4) {
        x += 0.5;
        width -= 1;
      }
      if (width < least) width = least;
      const y = this.y(first);
      rects.push({ x, y, width, height: this.y(last) - y - gap });
    }
    return rects;
  }

  private drawBars(): void {
    const { gantt } = this.bars;
    this.drawCells();
    const groups: number[][] = Array.from({ length: CATEGORIES + 1 }, () => []);
    gantt.job.forEach((job, i) => groups[this.categories.of[job] ?? REST]?.push(i));
    groups.forEach((bars, category) => this.painter.rects(this.rectsOf(bars, 0), this.color(category)));
    if (this.frame.area.height / (this.frame.bottom - this.frame.top) >= NAMED_LANE) {
      groups.forEach((bars, category) => this.drawNames(bars, inkOn(this.color(category))));
    }
  }

  /** In bars with room for it. */
  private drawNames(bars: readonly number[], color: string): void {
    const { painter } = this;
    for (const i of bars) {
      const [rect] = this.rectsOf([i], 0);
      if (!rect || rect.width < 24) continue;
      const name = this.jobs.name[this.bars.gantt.job[i] as number] ?? "";
      const { area } = this.frame;
      const top = Math.max(rect.y, area.y);
      const bottom = Math.min(rect.y + rect.height, area.y + area.height);
      if (painter.textWidth(name) + 8 <= rect.width && bottom - top >= NAMED_LANE - 2) {
        painter.text(name, rect.x + rect.width / 2, (top + bottom) / 2, { color, align: "center" });
      }
    }
  }

  /** What was left out of the bars: a faint column over the node, as high as it is full. */
  private drawCells(): void {
    const { cells } = this.bars.gantt;
    const rects = cells.node.map((node, i): Rect => {
      const start = (cells.column[i] as number) * cells.seconds;
      const first = this.rows.first[node] as number;
      const x = this.x(start);
      const y = this.y(first);
      return {
        x,
        y,
        width: this.x(start + cells.seconds) - x,
        height: this.y(first + (cells.gpus[i] as number)) - y,
      };
    });
    this.painter.rects(rects, this.theme.axis, 0.5);
  }

  private drawNodes(): void {
    const { frame, rows } = this;
    const from = rows.nodeAt(frame.top);
    const to = rows.nodeAt(Math.min(frame.bottom, rows.gpus) - 1e-6) + 1;
    const each = Math.ceil((to - from) / RASTER_ROWS);
    const width = Math.max(1, Math.round(frame.area.width));
    const image = h("canvas", { width, height: Math.ceil((to - from) / each) });
    const context = image.getContext("2d");
    if (!context) return;
    const pixels = context.createImageData(width, image.height);
    const colors = Array.from({ length: CATEGORIES + 1 }, (_, category) => rgb(this.color(category)));
    const out = new Float32Array(width * (CATEGORIES + 1));
    for (let row = 0; row < image.height; row++) {
      out.fill(0);
      let gpus = 0;
      for (let node = from + row * each; node < Math.min(to, from + (row + 1) * each); node++) {
        addOccupancy(this.bars, this.categories, node, frame, width, out);
        gpus += rows.node.gpus[node] as number;
      }
      paintRow(out, gpus, colors, pixels, row);
    }
    context.putImageData(pixels, 0, 0);
    const top = this.y(rows.first[from] as number);
    this.painter.image(image, {
      x: frame.area.x,
      y: top,
      width: frame.area.width,
      height: this.y(rows.first[to] as number) - top,
    });
  }

  private drawNodeLines(): void {
    const { rows, frame, painter, theme } = this;
    if ((frame.area.height / (frame.bottom - frame.top)) * (rows.gpus / rows.nodes) < 7) return;
    for (const first of rows.first) {
      if (first <= frame.top || first >= frame.bottom) continue;
      const y = Math.round(this.y(first)) - 0.5;
      painter.line(frame.area.x, y, frame.area.x + frame.area.width, y, theme.surface);
    }
  }

  private drawRowNames(): void {
    const { rows, frame, painter, theme } = this;
    const lane = frame.area.height / (frame.bottom - frame.top);
    const style = { color: theme.muted, align: "right" as const };
    const every = roundStep(Math.max(1, NAMED_LANE / (lane * (rows.gpus / rows.nodes))));
    for (let node = 0; node < rows.nodes; node++) {
      const first = rows.first[node] as number;
      const last = rows.first[node + 1] as number;
      if (last <= frame.top || first >= frame.bottom) continue;
      const name = shortName(rows.node.name[node] ?? String(node));
      if (lane >= NAMED_LANE) {
        for (let row = Math.max(first, Math.ceil(frame.top)); row < Math.min(last, frame.bottom - 0.5); row++) {
          painter.text(`${name}:${row - first}`, frame.area.x - 7, this.y(row + 0.5), style);
        }
      } else if (node % every === 0) {
        const { y, height } = frame.area;
        const middle = (this.y(Math.max(first, frame.top)) + this.y(Math.min(last, frame.bottom))) / 2;
        painter.text(name, frame.area.x - 7, clamp(middle, y + 6, y + height - 6), style);
      }
    }
  }

  private drawTime(): void {
    const { frame, painter, theme } = this;
    const { area } = frame;
    const bottom = area.y + area.height;
    const unit = axisUnit(frame.to);
    const room = Math.max(2, Math.floor(area.width / (area.width < 400 ? 60 : 90)));
    const step = roundStep((frame.to - frame.from) / unit.seconds / room);
    painter.line(area.x, bottom + 0.5, area.x + area.width, bottom + 0.5, theme.axis);
    for (let i = Math.ceil(frame.from / unit.seconds / step - 1e-9); i * step * unit.seconds <= frame.to; i++) {
      const x = Math.round(this.x(i * step * unit.seconds)) + 0.5;
      const name = String(Number((i * step).toPrecision(9)));
      painter.line(x, bottom, x, bottom + 5, theme.axis);
      if (x + painter.textWidth(name) / 2 <= area.x + area.width + RIGHT) {
        painter.text(name, x, bottom + 16, { color: theme.muted, align: "center" });
      }
    }
    painter.text(`Time since the first submission (${unit.name})`, area.x + area.width / 2, bottom + 36, {
      color: theme.muted,
      align: "center",
    });
  }
}

const shortName = (name: string): string => (name.length > 12 ? `…${name.slice(-11)}` : name);

const rgb = (hex: string): [number, number, number] => [
  parseInt(hex.slice(1, 3), 16),
  parseInt(hex.slice(3, 5), 16),
  parseInt(hex.slice(5, 7), 16),
];

/** The colour of the category that holds most, as strong as the node is full. */
function paintRow(
  out: Float32Array,
  gpus: number,
  colors: readonly (readonly [number, number, number])[],
  pixels: ImageData,
  row: number,
): void {
  for (let column = 0; column < pixels.width; column++) {
    let sum = 0;
    let best = 0;
    let most = 0;
    for (let category = 0; category <= CATEGORIES; category++) {
      const value = out[column * (CATEGORIES + 1) + category] as number;
      sum += value;
      if (value > most) {
        most = value;
        best = category;
      }
    }
    const at = (row * pixels.width + column) * 4;
    const color = colors[best] ?? [0, 0, 0];
    pixels.data.set([color[0], color[1], color[2], Math.round(255 * Math.min(1, sum / gpus))], at);
  }
}
