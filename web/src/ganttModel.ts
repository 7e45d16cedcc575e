// SPDX-License-Identifier: Apache-2.0
// What a Gantt chart draws, without drawing it: rows, categories, which bar is where.

import type { Gantt, Jobs, ReportData } from "./data";

export type ColorBy = "job" | "user" | "queue" | "model";

export const CATEGORIES = 10;
/** The category of what is not among the first ones. */
export const REST = CATEGORIES;

/** GPUs as rows, those of node 0 first. */
export class Rows {
  /** By node: rows of all nodes before it; one more for the end. */
  readonly first: number[] = [0];

  constructor(readonly node: ReportData["cluster"]["node"]) {
    node.gpus.forEach((gpus, i) => this.first.push((this.first[i] as number) + gpus));
  }

  get nodes(): number {
    return this.node.gpus.length;
  }

  get gpus(): number {
    return this.first[this.nodes] as number;
  }

  nodeAt(row: number): number {
    let low = 0;
    let high = this.nodes - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.first[middle] as number) <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

export interface Categories {
  /** In the order of their colours; at most CATEGORIES. Empty where a colour means nothing. */
  names: string[];
  /** By job. */
  of: Uint8Array;
  hasRest: boolean;
}

const areaOf = (gantt: Gantt, i: number): number => (gantt.gpus[i] as number) * (gantt.length[i] as number);

/** Names by GPU time over all charts, so that they have the same colours in each. */
export function categoriesOf(jobs: Jobs, gantts: readonly Gantt[], by: ColorBy): Categories {
  const of = new Uint8Array(jobs.name.length);
  if (by === "job") {
    // Neighbours in time get different colours.
    of.forEach((_, job) => (of[job] = (job * 7) % CATEGORIES));
    return { names: [], of, hasRest: false };
  }
  const column = jobs[by];
  const totals = column.names.map((name, i) => ({ name, i, total: 0 }));
  for (const gantt of gantts) {
    gantt.job.forEach((job, bar) => {
      const own = totals[column.of[job] as number];
      if (own) own.total += areaOf(gantt, bar);
    });
  }
  totals.sort((a, b) => b.total - a.total || a.name.localeCompare(b.name, "en"));
  const category = new Map(totals.map(({ i }, rank) => [i, Math.min(rank, REST)]));
  of.forEach((_, job) => (of[job] = category.get(column.of[job] as number) ?? REST));
  return { names: totals.slice(0, CATEGORIES).map(({ name }) => name), of, hasRest: totals.length > CATEGORIES };
}

/** What jobs can be coloured by; "job" always. */
export function colorings(jobs: Jobs): ColorBy[] {
  const named = (["model", "user", "queue"] as const).filter(
    (by) => jobs[by].names.length > 1 || (jobs[by].names[0] ?? "") !== "",
  );
  return [...named, "job"];
}

/** The bars of one run, found by place and by job. */
export class Bars {
  private readonly byNode: number[][] = [];
  private readonly cellsByNode: number[][] = [];
  private readonly byJob = new Map<number, number[]>();

  constructor(
    readonly gantt: Gantt,
    private readonly rows: Rows,
  ) {
    for (let node = 0; node < rows.nodes; node++) {
      this.byNode.push([]);
      this.cellsByNode.push([]);
    }
    gantt.cells.node.forEach((node, i) => this.cellsByNode[node]?.push(i));
    gantt.job.forEach((job, i) => {
      this.byNode[gantt.node[i] as number]?.push(i);
      const own = this.byJob.get(job);
      if (own) own.push(i);
      else this.byJob.set(job, [i]);
    });
  }

  /** By start. */
  of(job: number): readonly number[] {
    return this.byJob.get(job) ?? [];
  }

  onNode(node: number): readonly number[] {
    return this.byNode[node] ?? [];
  }

  cellsOn(node: number): readonly number[] {
    return this.cellsByNode[node] ?? [];
  }

  /** The bars that hold this GPU at this time; shared GPUs have several. */
  at(seconds: number, row: number): number[] {
    const { gantt, rows } = this;
    const node = rows.nodeAt(row);
    const gpu = Math.floor(row) - (rows.first[node] as number);
    return this.onNode(node).filter((i) => {
      const start = gantt.start[i] as number;
      const first = gantt.first_gpu[i] as number;
      return (
        start <= seconds &&
        seconds < start + (gantt.length[i] as number) &&
        first <= gpu &&
        gpu < first + (gantt.gpus[i] as number)
      );
    });
  }

  /** GPU-seconds held on each node, of bars and cells. */
  heldByNode(): number[] {
    const { gantt, rows } = this;
    const held = rows.node.gpus.map(() => 0);
    const add = (node: number, value: number): void => {
      held[node] = (held[node] ?? 0) + value;
    };
    gantt.job.forEach((_, i) => add(gantt.node[i] as number, areaOf(gantt, i)));
    gantt.cells.node.forEach((node, i) => add(node, (gantt.cells.gpus[i] as number) * gantt.cells.seconds));
    return held;
  }
}

/**
 * Adds how full a node is over time: for `width` columns between two times and every category the
 * GPUs held in the mean, at out[column * (CATEGORIES + 1) + category].
 */
export function addOccupancy(
  bars: Bars,
  categories: Categories,
  node: number,
  time: { from: number; to: number },
  width: number,
  out: Float32Array,
): void {
  const { gantt } = bars;
  const scale = width / (time.to - time.from);
  const add = (start: number, length: number, gpus: number, category: number): void => {
    const left = Math.max(0, (start - time.from) * scale);
    const right = Math.min(width, (start + length - time.from) * scale);
    for (let column = Math.floor(left); column < right; column++) {
      const covered = Math.min(right, column + 1) - Math.max(left, column);
      const place = column * (CATEGORIES + 1) + category;
      out[place] = (out[place] as number) + covered * gpus;
    }
  };
  for (const i of bars.onNode(node)) {
    const category = categories.of[gantt.job[i] as number] ?? REST;
    add(gantt.start[i] as number, gantt.length[i] as number, gantt.gpus[i] as number, category);
  }
  const { cells } = gantt;
  for (const i of bars.cellsOn(node)) {
    add((cells.column[i] as number) * cells.seconds, cells.seconds, cells.gpus[i] as number, REST);
  }
}
