// SPDX-License-Identifier: Apache-2.0
// Runs the fault simulation for many seeds: what ./dev faults starts.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "faults/simulation.h"

namespace trainyard {
namespace {

int Main(int argc, char** argv) {
  CLI::App app{"Controller and agents under faults of every kind, one run for each seed",
               "trainyard-faults"};
  std::uint64_t first = 1;
  std::uint64_t seeds = 1000;
  FaultOptions options;
  app.add_option("--seeds", seeds, "how many")->capture_default_str();
  app.add_option("--seed", first, "the first")->capture_default_str();
  app.add_option("--jobs", options.jobs, "jobs of a run")->capture_default_str();
  app.add_option("--nodes", options.nodes, "nodes of a run")->capture_default_str();
  app.add_flag("--verbose", options.verbose, "print the faults of each run");
  CLI11_PARSE(app, argc, argv);
  FaultResult sum;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    options.seed = seed;
    const FaultResult result = RunFaults(options);
    if (!result.violation.empty()) {
      fmt::print("seed {}: {}\nagain: {} --seed {} --seeds 1 --jobs {} --nodes {} --verbose\n",
                 seed, result.violation, argv[0], seed, options.jobs, options.nodes);
      return 1;
    }
    sum.controller_crashes += result.controller_crashes;
    sum.agent_crashes += result.agent_crashes;
    sum.node_crashes += result.node_crashes;
    sum.partitions += result.partitions;
    sum.sick_nodes += result.sick_nodes;
    sum.node_failures += result.node_failures;
    sum.drains += result.drains;
    sum.full_disks += result.full_disks;
    sum.completed += result.completed;
    sum.cancelled += result.cancelled;
    sum.resumed += result.resumed;
    sum.turns += result.turns;
    sum.tunes += result.tunes;
  }
  fmt::print(
      "{} seeds: no violation; {} crashes of controllers ({} restarts from snapshots), {} of "
      "agents, {} of nodes, {} partitions; nodes were sick {} times, ended {} attempts and were "
      "drained {} times; {} full disks; {} jobs completed, {} cancelled; {} stages begun by turns, "
      "{} "
      "changes of shares\n",
      seeds, sum.controller_crashes, sum.resumed, sum.agent_crashes, sum.node_crashes,
      sum.partitions, sum.sick_nodes, sum.node_failures, sum.drains, sum.full_disks, sum.completed,
      sum.cancelled, sum.turns, sum.tunes);
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) { return trainyard::Main(argc, argv); }
