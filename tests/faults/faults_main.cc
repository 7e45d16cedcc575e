// SPDX-License-Identifier: Apache-2.0
// Runs the fault simulation for many seeds: what ./dev prove faults starts.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <set>
#include <string>

#include "faults/simulation.h"

namespace trainyard {
namespace {

void Add(const FaultResult& result, FaultResult& sum) {
  sum.controller_crashes += result.controller_crashes;
  sum.agent_crashes += result.agent_crashes;
  sum.node_crashes += result.node_crashes;
  sum.partitions += result.partitions;
  sum.sick_nodes += result.sick_nodes;
  sum.node_failures += result.node_failures;
  sum.failed_for_others += result.failed_for_others;
  sum.drains += result.drains;
  sum.paused_steps += result.paused_steps;
  sum.configured += result.configured;
  sum.parted += result.parted;
  sum.full_disks += result.full_disks;
  sum.clock_jumps += result.clock_jumps;
  sum.completed += result.completed;
  sum.cancelled += result.cancelled;
  sum.over_limit += result.over_limit;
  sum.impossible += result.impossible;
  sum.starts_after_others += result.starts_after_others;
  sum.answers_compared += result.answers_compared;
  sum.resumed += result.resumed;
  sum.upgrades += result.upgrades;
  sum.turns += result.turns;
  sum.tunes += result.tunes;
  sum.victims += result.victims;
  sum.newcomers += result.newcomers;
  sum.charges += result.charges;
  sum.watched += result.watched;
  sum.coverage.Merge(result.coverage);
}

void Print(std::uint64_t seeds, std::uint64_t violations, const FaultResult& sum, bool missing) {
  fmt::print("{} seeds: {} violations\n", seeds,
             violations == 0 ? "no" : std::to_string(violations));
  fmt::print(
      "faults: {} crashes of controllers ({} restarts from snapshots, {} upgrades to "
      "programs that decide otherwise), {} of agents, {} of nodes; "
      "{} "
      "partitions, {} jumps of clocks, {} full disks; nodes were sick {} times, ended {} attempts "
      "and were drained {} times; {} workers failed for others' ends; {} steps with decisions "
      "paused; {} changes of the configuration, {} grants on clusters with partitions\n",
      sum.controller_crashes, sum.resumed, sum.upgrades, sum.agent_crashes, sum.node_crashes,
      sum.partitions, sum.clock_jumps, sum.full_disks, sum.sick_nodes, sum.node_failures,
      sum.drains, sum.failed_for_others, sum.paused_steps, sum.configured, sum.parted);
  fmt::print(
      "checked: {} jobs completed, {} cancelled, {} ended at their time limit, {} rejected as "
      "their "
      "dependency could not be met; {} starts after other jobs, {} statuses compared with what was "
      "acknowledged; {} charges compared, {} victims had a "
      "beneficiary, {} came to nodes that were heard; "
      "{} looks at jobs that had GPUs and had not started; {} stages begun by turns, {} changes of "
      "shares\n",
      sum.completed, sum.cancelled, sum.over_limit, sum.impossible, sum.starts_after_others,
      sum.answers_compared, sum.charges, sum.victims, sum.newcomers, sum.watched, sum.turns,
      sum.tunes);
  const faults::Coverage::Share states = sum.coverage.states();
  const faults::Coverage::Share steps = sum.coverage.steps();
  const faults::Coverage::Share orders = sum.coverage.orders();
  fmt::print(
      "reached: {} of {} states of attempts x faults ({:.0f} %), {} of {} steps of launchers x "
      "faults ({:.0f} %), {} of {} orders of two messages ({:.0f} %)\n",
      states.reached, states.of, 100 * states.part(), steps.reached, steps.of, 100 * steps.part(),
      orders.reached, orders.of, 100 * orders.part());
  for (const std::string& name : missing ? sum.coverage.missing() : std::set<std::string>()) {
    fmt::print("not reached: {}\n", name);
  }
}

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
  std::uint64_t progress = 0;
  std::uint64_t violations = 0;
  bool goes_on = false;
  bool missing = false;
  app.add_option("--progress", progress, "say each time that so many are done");
  app.add_flag("--go-on", goes_on, "after a violation, too");
  app.add_flag("--missing", missing, "list states and orders of messages that were not reached");
  CLI11_PARSE(app, argc, argv);
  FaultResult sum;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    options.seed = seed;
    const FaultResult result = RunFaults(options);
    if (!result.violation.empty()) {
      fmt::print("seed {}: {}\nagain: {} --seed {} --seeds 1 --jobs {} --nodes {} --verbose\n",
                 seed, result.violation, argv[0], seed, options.jobs, options.nodes);
      violations += 1;
      if (!goes_on) {
        return 1;
      }
    }
    Add(result, sum);
    if (progress > 0 && (seed - first + 1) % progress == 0) {
      fmt::print("{} seeds\n", seed - first + 1);
      std::fflush(stdout);
    }
  }
  Print(seeds, violations, sum, missing);
  return violations > 0 ? 1 : 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) { return trainyard::Main(argc, argv); }
