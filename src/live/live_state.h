// SPDX-License-Identifier: Apache-2.0
// The parts of the live world that have state of their own, put together for those that act on it.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/configuration.h"
#include "live/attempts/attempts.h"
#include "live/attempts/gpu_occupancy.h"
#include "live/attempts/start_queue.h"
#include "live/failures/failure_book.h"
#include "live/history/changes.h"
#include "live/history/configuration_history.h"
#include "live/history/history.h"
#include "live/history/steps.h"
#include "live/history/usage.h"
#include "live/jobs/live_jobs.h"
#include "live/live_options.h"
#include "live/nodes/live_nodes.h"
#include "live/switches.h"
#include "model/event.h"
#include "model/job_numbers.h"
#include "model/touched.h"
#include "trainyard/cluster.h"

namespace trainyard::live {

struct LiveState {
  // `by` is the engine's, as is `known_by`, which must outlive it.
  LiveState(LiveOptions with, engine::SharedConfiguration by, const model::JobNumbers& known_by)
      : options(std::move(with)),
        configuration(std::move(by)),
        cluster(configuration->cluster),
        numbers(known_by),
        jobs(numbers, touched.jobs),
        attempts(numbers, touched.jobs),
        nodes(options, cluster, touched.nodes),
        occupancy(nodes.size(), touched),
        start_queue(attempts, occupancy, nodes, touched.jobs),
        failures(cluster, options.ScaledFailures()),
        metrics(options.Scaled(LiveMetrics::kPause)) {}
  LiveState(const LiveState&) = delete;
  LiveState& operator=(const LiveState&) = delete;

  const LiveOptions options;
  engine::SharedConfiguration configuration;  // as the engine has it after the next step
  Cluster cluster;  // that of the configuration, in one place for those that refer to it
  const model::JobNumbers& numbers;
  TimePoint now{};
  // The jobs and nodes of which something may have changed since the last view.
  model::Touched touched;
  std::uint64_t measured_facts = 0;  // that the engine has been told
  LiveJobs jobs;
  Attempts attempts;
  LiveNodes nodes;
  GpuOccupancy occupancy;
  StartQueue start_queue;
  FailureBook failures;
  LiveMetrics metrics;
  Changes changes{touched};
  Switches switches;
  std::shared_ptr<const ConfigurationHistory> configurations =
      std::make_shared<const ConfigurationHistory>();
  History history{touched.jobs};
  Usage usage{options};
  StepBook steps;

  // Another configuration takes the place of the present one. The parts that keep something of each
  // node have room for those that are new.
  void Configure(engine::SharedConfiguration next) {
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
      if (!engine::HasSameGpus(cluster.nodes[i], next->cluster.nodes[i])) {
        nodes.Withdraw(NodeAt(i));
      }
      if (engine::IsRemoved(next->cluster.nodes[i])) {
        nodes.Remove(NodeAt(i));
      }
    }
    configuration = std::move(next);
    cluster = configuration->cluster;
    nodes.ListNodes();
    occupancy.ListNodes(nodes.size());
    failures.ListNodes();
  }
  // The specifications of the jobs.
  [[nodiscard]] std::vector<const JobSpec*> SpecsOf(const std::vector<JobId>& of) const {
    std::vector<const JobSpec*> specs;
    specs.reserve(of.size());
    for (const JobId job : of) {
      specs.push_back(jobs[job].spec.get());
    }
    return specs;
  }
};

// Takes a fact that has been found: its meaning is noted at once, and the engine is told next.
using AddFact = std::function<void(model::Event)>;

}  // namespace trainyard::live
