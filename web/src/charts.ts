// SPDX-License-Identifier: Apache-2.0
// The charts of a report, in their order.

import type { ReportData, Run } from "./data";
import { deadlineChart, gpuTimeChart, sharesChart } from "./bars";
import { RATIO, SECONDS, cdfChart } from "./cdf";
import { count, decimal } from "./format";
import type { ChartSpec } from "./parts";
import { shareTimeChart } from "./shareTime";
import { sizeChart } from "./sizes";
import { timelineChart } from "./timeline";

function distributions(): ChartSpec[] {
  return [
    cdfChart({
      id: "jct-cdf",
      title: "JCT distribution",
      how: "A curve shows the share of completed jobs with at most that JCT; further up and to the left is better.",
      quantity: "JCT",
      jobs: "Completed jobs",
      scale: SECONDS,
      of: (run) => run.jct_cdf,
    }),
    cdfChart({
      id: "queueing-cdf",
      title: "Queueing delay distribution",
      how: "A curve shows the share of completed jobs that waited at most that long for their first GPUs; further up and to the left is better.",
      quantity: "Queueing delay",
      jobs: "Completed jobs",
      scale: SECONDS,
      of: (run) => run.queueing_cdf,
    }),
    sizeChart(),
    cdfChart({
      id: "fairness-cdf",
      title: "Finish-time fairness",
      how: "A curve shows the share of completed jobs whose ρ, JCT over the time they take alone, is at most that; 1 is a job that never waited, and a steep curve treats jobs alike.",
      quantity: "ρ = JCT / JCT alone",
      jobs: "Completed jobs",
      scale: RATIO,
      of: (run) => run.fairness_cdf,
    }),
    deadlineChart(),
  ];
}

function timelines({ runs, cluster }: ReportData): ChartSpec[] {
  return [
    timelineChart(
      {
        id: "gpus-used",
        title: "GPUs used over time",
        how:
          (cluster.gpus === null ? "The" : `Out of ${count(cluster.gpus)}, the`) +
          " number of GPUs that jobs hold at each moment; drag the handles under the chart to look at a part of the time.",
        quantity: "GPUs used",
        capacity: cluster.gpus,
        of: (run) => run.timeline.gpus_used,
        csvColumns: [{ name: "gpus_used", of: (run) => run.timeline.gpus_used }],
      },
      runs,
    ),
    timelineChart(
      {
        id: "fragmentation",
        title: "Fragmentation over time",
        how: "Free GPUs that a job cannot use where they are, because too few are free on their node, averaged over the job sizes of the trace; lower is better.",
        quantity: "GPUs fragmented",
        capacity: null,
        show: decimal,
        of: (run) => run.timeline.gpus_fragmented,
        csvColumns: [{ name: "gpus_fragmented", of: (run) => run.timeline.gpus_fragmented }],
      },
      runs,
    ),
    timelineChart(
      {
        id: "jobs-waiting",
        title: "Jobs waiting over time",
        how: "The number of submitted jobs that hold no GPU at each moment; lower is better.",
        quantity: "Jobs waiting",
        capacity: null,
        of: (run) => run.timeline.jobs_pending,
        csvColumns: [
          { name: "jobs_pending", of: (run) => run.timeline.jobs_pending },
          { name: "jobs_running", of: (run) => run.timeline.jobs_running },
        ],
      },
      runs,
    ),
  ];
}

/** Two narrow charts stand side by side; the last of an odd number gets the whole width. */
function inPairs(specs: readonly ChartSpec[]): ChartSpec[] {
  const narrow = specs.filter((spec) => !spec.wide);
  const alone = narrow.length % 2 === 1 ? narrow[narrow.length - 1] : null;
  return specs.map((spec) => (spec === alone ? { ...spec, wide: true } : spec));
}

/**
 * What jobs met, the cluster over time (the Gantt chart comes after these), and its use in all; a
 * chart that no run has data for is left out.
 */
export function chartSpecs(data: ReportData): { jobs: ChartSpec[]; time: ChartSpec[]; use: ChartSpec[] } {
  const shown = (specs: readonly (ChartSpec | null)[]): ChartSpec[] =>
    specs.filter((spec): spec is ChartSpec => spec !== null && data.runs.some(spec.has));
  return {
    jobs: inPairs(shown(distributions())),
    time: shown(timelines(data)),
    use: shown([gpuTimeChart(), sharesChart(data), shareTimeChart(data)]),
  };
}

/** Why results of published programs are in no chart of the time between starts and ends; "" without such results. */
export function whyEndsOnly(runs: readonly Run[]): string {
  if (!runs.some((run) => run.ends_only)) return "";
  const why =
    "Results of published programs tell when jobs were submitted, started and ended, not when and where they held GPUs";
  return runs.every((run) => run.ends_only) ? `${why}: there are no charts of GPUs and of waiting jobs.` : `${why}.`;
}
