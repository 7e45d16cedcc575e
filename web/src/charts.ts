// SPDX-License-Identifier: Apache-2.0
// The charts of a report, in their order.

import type { ReportData, Run } from "./data";
import { deadlineChart, gpuTimeChart, sharesChart } from "./bars";
import { RATIO, SECONDS, cdfChart } from "./cdf";
import { count, decimal } from "./format";
import type { ChartSpec } from "./parts";
import { shareTimeChart } from "./shareTime";
import { sizeChart } from "./sizes";
import { hasDeadlines } from "./table";
import { timelineChart } from "./timeline";

function distributions(runs: readonly Run[]): ChartSpec[] {
  const specs = [
    cdfChart(
      {
        id: "jct-cdf",
        title: "JCT distribution",
        how: "A curve shows the share of completed jobs with at most that JCT; further up and to the left is better.",
        quantity: "JCT",
        jobs: "Completed jobs",
        scale: SECONDS,
        of: (run) => run.jct_cdf,
      },
      false,
    ),
    cdfChart(
      {
        id: "queueing-cdf",
        title: "Queueing delay distribution",
        how: "A curve shows the share of completed jobs that waited at most that long for their first GPUs; further up and to the left is better.",
        quantity: "Queueing delay",
        jobs: "Completed jobs",
        scale: SECONDS,
        of: (run) => run.queueing_cdf,
      },
      false,
    ),
    sizeChart(false),
  ];
  if (runs.some((run) => run.fairness_cdf.values.length > 0)) {
    specs.push(
      cdfChart(
        {
          id: "fairness-cdf",
          title: "Finish-time fairness",
          how: "A curve shows the share of completed jobs whose ρ, JCT over the time they take alone, is at most that; 1 is a job that never waited, and a steep curve treats jobs alike.",
          quantity: "ρ = JCT / JCT alone",
          jobs: "Completed jobs",
          scale: RATIO,
          of: (run) => run.fairness_cdf,
        },
        false,
      ),
    );
  }
  return specs;
}

function timelines({ runs, cluster }: ReportData): ChartSpec[] {
  const specs = [
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
  ];
  if (runs.some((run) => run.timeline.gpus_fragmented.length > 0)) {
    specs.push(
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
    );
  }
  specs.push(
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
  );
  return specs;
}

/** What jobs met, the cluster over time (the Gantt chart comes after these), and its use in all. */
export function chartSpecs(data: ReportData): { jobs: ChartSpec[]; time: ChartSpec[]; use: ChartSpec[] } {
  const jobs = distributions(data.runs);
  if (hasDeadlines(data.runs)) jobs.push(deadlineChart());
  const use: ChartSpec[] = [];
  if (data.runs.some((run) => run.gpu_time !== null)) use.push(gpuTimeChart());
  const shares = sharesChart(data);
  if (shares) use.push(shares);
  const overTime = shareTimeChart(data);
  if (overTime) use.push(overTime);
  return { jobs, time: timelines(data), use };
}
