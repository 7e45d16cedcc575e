// SPDX-License-Identifier: Apache-2.0
// Small simulated runs for tests: jobs, a cluster, rules and components in; records out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "engine/run.h"
#include "profile/execution_model.h"
#include "world/simulated_world.h"

namespace trainyard {

[[nodiscard]] Cluster MakeCluster(int nodes, int gpus);
[[nodiscard]] JobSpec MakeJob(double submit, int gpus, double duration);
// The job, asking for that beside its GPUs.
[[nodiscard]] JobSpec Asking(JobSpec job, NodeRequest request);
[[nodiscard]] Components PolicyNamed(const std::string& text);
[[nodiscard]] Components PlacementNamed(const std::string& text);
[[nodiscard]] std::unique_ptr<Admission> AdmitAll();

// Rules without any restart cost.
[[nodiscard]] model::Rules FreeRules();
// Some seconds for a start, a restart, a resize and a move, each another.
[[nodiscard]] profile::OverheadModel SecondsOfOverhead();

struct TestRun {
  std::vector<JobSpec> jobs;
  Cluster cluster;
  model::Rules rules = FreeRules();
  std::string policy = "fifo";
  const Policy* own_policy = nullptr;        // instead of `policy`
  const Placement* own_placement = nullptr;  // likewise
  const Packer* own_packer = nullptr;        // likewise
  const Admission* own_admission = nullptr;  // likewise
  std::string grouping{};                    // empty: none
  std::string placement = "consolidated";
  std::string admission = "all";
  std::optional<Walk> walk;
  bool plain_walk = false;
  profile::OverheadModel overheads{};
  const ExecutionModel* rates = nullptr;  // null: durations
  world::StopRule stop{};
  // Not 0: now and then something is measured of a job, at random from this seed.
  unsigned measure_seed = 0;
};

// The components of a run, for engines that must not outlive it.
class TestParts {
 public:
  explicit TestParts(const TestRun& run);
  [[nodiscard]] engine::EngineSetup Setup(engine::DecisionObserver* observer = nullptr) const;

 private:
  const TestRun run_;
  const Components policy_;
  const Components placement_;
  const std::unique_ptr<Admission> admission_;
  const std::unique_ptr<Grouping> grouping_;
  const std::unique_ptr<ExecutionModel> durations_;
};

struct TestResult {
  Status status;
  std::vector<model::JobRecord> records;
  std::string digest;
  std::string journal;
  std::int64_t decisions = 0;
  std::int64_t bounded_decisions = 0;
  std::vector<engine::DecisionSample> samples;
  std::vector<model::Blocked> blocked;  // as of the last decision

  [[nodiscard]] double start(std::size_t job) const { return Seconds(records[job].first_start); }
  [[nodiscard]] double end(std::size_t job) const { return Seconds(records[job].done); }
  [[nodiscard]] double logged(std::size_t job) const { return Seconds(records[job].logged); }
};

// Runs in a simulated world; with `journal`, replays those facts instead.
[[nodiscard]] TestResult RunTest(const TestRun& run, const std::string* journal = nullptr);

// Runs likewise; at each step a fork, which knows only what is saved, has to decide the same. The
// records at the end.
[[nodiscard]] std::vector<model::JobRecord> RunBesideForks(const TestRun& run);

// When its jobs start. The run has to succeed, and all of them to end.
[[nodiscard]] std::vector<double> Starts(const std::vector<JobSpec>& jobs, const Cluster& cluster,
                                         const std::string& policy,
                                         const std::string& placement = "consolidated");

// Both have succeeded, and each job starts, ends and loses its GPUs in the one as in the other.
void ExpectSameRun(const TestResult& one, const TestResult& other, unsigned seed);

// Nobody with a deadline ends late, unless it was rejected or is best effort; how many there are.
[[nodiscard]] int ExpectInTime(const TestResult& result);

// `count` jobs with 1 to 8 GPUs (powers of two), whole-second times, from a seed.
[[nodiscard]] std::vector<JobSpec> RandomJobs(unsigned seed, int count, int largest = 8);

}  // namespace trainyard
