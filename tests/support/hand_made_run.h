// SPDX-License-Identifier: Apache-2.0
// A run of five jobs, small enough to check every number by hand.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "results/metrics/run_result.h"

namespace trainyard {

// A run of `specs` in which nothing has happened yet.
inline results::RunResult RunOf(std::vector<JobSpec> specs) {
  results::RunResult run;
  auto jobs = std::make_shared<const std::vector<JobSpec>>(std::move(specs));
  for (const JobSpec& spec : *jobs) {
    run.jobs.push_back({.spec = &spec});
  }
  run.jobs_of_trace = std::move(jobs);
  return run;
}

inline std::vector<JobSpec> HandMadeSpecs() {
  return {
      {.name = "a",
       .user = "ann",
       .queue = "q1",
       .model = "resnet",
       .gpus = 2,
       .submit = AtSeconds(10),
       .duration = FromSeconds(90),
       .deadline = AtSeconds(110)},
      {.name = "b",
       .gpus = 1,
       .submit = AtSeconds(20),
       .duration = FromSeconds(20.5),
       .deadline = AtSeconds(60)},
      {.name = "c,\"x\"",
       .gpus = 4,
       .submit = AtSeconds(30),
       .duration = FromSeconds(100),
       .deadline = AtSeconds(100)},
      {.name = "d",
       .gpus = 8,
       .submit = AtSeconds(40),
       .duration = FromSeconds(150),
       .deadline = AtSeconds(50),
       .best_effort = true},
      {.name = "e",
       .gpus = 1,
       .submit = AtSeconds(50),
       .duration = FromSeconds(10),
       .deadline = AtSeconds(900)},
  };
}

inline void AddHandMadeResults(results::RunResult& run) {
  std::vector<results::JobResult>& jobs = run.jobs;
  jobs[0] = {.spec = jobs[0].spec,
             .outcome = results::Outcome::kCompleted,
             .start = AtSeconds(10),
             .end = AtSeconds(110),
             .logged = AtSeconds(111),
             .productive = FromSeconds(90),
             .overhead = FromSeconds(10),
             .attained_service = 200,
             .useful_service = 180,
             .alone = FromSeconds(80)};
  jobs[1] = {.spec = jobs[1].spec,
             .outcome = results::Outcome::kCompleted,
             .start = AtSeconds(50),
             .end = AtSeconds(70.5),
             .logged = AtSeconds(72),
             .waited = FromSeconds(30),
             .productive = FromSeconds(20.5),
             .attained_service = 20.5,
             .useful_service = 20.5,
             .alone = FromSeconds(20)};
  jobs[2] = {.spec = jobs[2].spec, .outcome = results::Outcome::kRejected};
  jobs[3] = {.spec = jobs[3].spec,
             .outcome = results::Outcome::kCompleted,
             .start = AtSeconds(60),
             .end = AtSeconds(240),
             .logged = AtSeconds(240),
             .waited = FromSeconds(40),
             .productive = FromSeconds(150),
             .overhead = FromSeconds(10),
             .attained_service = 1280,
             .useful_service = 1200,
             .alone = FromSeconds(250),
             .preemptions = 2,
             .migrations = 1,
             .resizes = 3};
  jobs[4] = {
      .spec = jobs[4].spec, .outcome = results::Outcome::kUnfinished, .waited = FromSeconds(200)};
}

// 16 GPUs, seconds:
//   job     submit  GPUs  start  end    logged  waited  deadline
//   a       10      2     10     110    111     0       110
//   b       20      1     50     70.5   72      30      60
//   c,"x"   30      4     rejected                      100
//   d       40      8     60     240    240     40      50, but best effort
//   e       50      1     never started         200     900
inline results::RunResult HandMadeRun() {
  results::RunResult run = RunOf(HandMadeSpecs());
  AddHandMadeResults(run);
  run.timeline = {{.time = AtSeconds(10), .gpus_used = 2, .jobs_running = 1, .gpus_up = 16},
                  {.time = AtSeconds(60.25),
                   .gpus_used = 11,
                   .jobs_running = 3,
                   .jobs_pending = 1,
                   .gpus_up = 16}};
  run.label = "srtf";
  run.policy = "srtf";
  run.placement = "consolidated";
  run.admission = "all";
  run.seed = 7;
  run.trace_path = "trace.csv";
  run.trace_sha256 = "0123456789abcdef";
  run.cluster_name = "small";
  run.nodes = 2;
  run.gpus = 16;
  run.decisions = 2;
  run.events = 9;
  run.wall_seconds = 0.5;
  run.cpu_seconds = 0.25;
  run.peak_rss_mb = 12;
  run.journal_digest = "feed";
  return run;
}

}  // namespace trainyard
