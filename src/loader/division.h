// SPDX-License-Identifier: Apache-2.0
// Loader workers for jobs that have their GPUs: what a policy that names GPUs, or a tuning behind
// any other, asks for once it is known who runs where.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "loader/allocation.h"
#include "loader/loader_profiles.h"
#include "trainyard/cluster.h"
#include "trainyard/job.h"
#include "trainyard/options.h"
#include "trainyard/snapshot.h"

namespace trainyard::loader {

struct LoaderJob {
  const JobSpec* spec = nullptr;
  const Slices* slices = nullptr;  // where it runs, or will
  int workers = 0;                 // now, all devices together
  bool settled = false;            // it runs with them
};

struct DivisionOptions {
  AllocationRule rule = AllocationRule::kExact;
  double least_gain = 0;   // kExact: see ExactOptions
  bool published = false;  // predictions may be negative, and numbers then are
};

// The options of whoever divides workers, and what they say.
inline constexpr OptionSpec kAllocationOption{
    "allocation", OptionSpec::Kind::kChoice, "exact",
    "who gets how many workers: the optimum within each node's cores, or a published rule for "
    "those of the whole cluster",
    kAllocationRules};
inline constexpr OptionSpec kLeastGainOption{
    "least_gain", OptionSpec::Kind::kNumber, "2",
    "per cent of images per second that the optimum must bring before running jobs change"};
[[nodiscard]] DivisionOptions DivisionOptionsOf(const Options& options);

// REQUIRES: LoaderProfiles::Check succeeds for each job; every node states its CPUs.
class WorkerDivision {
 public:
  // `profiles` must outlive this.
  WorkerDivision(const LoaderProfiles& profiles, const DivisionOptions& options)
      : profiles_(profiles), model_(profiles.model(options.published)), options_(options) {}

  // Workers of each job, all its devices together. `rates`: what kExact goes by, so that what has
  // been measured counts; null, or with published predictions: the profiles alone.
  [[nodiscard]] std::vector<int> Divide(const Cluster& cluster, std::span<const LoaderJob> jobs,
                                        const ExecutionModel* rates = nullptr) const;

 private:
  [[nodiscard]] std::vector<int> ByPublishedRule(const Cluster& cluster,
                                                 std::span<const LoaderJob> jobs,
                                                 std::span<const int> sharing) const;
  // Images per second of a job with so many workers, as many jobs as `sharing` on its GPUs.
  struct Predicted {
    double gpu_rate = 0;  // with data enough
    std::function<double(int workers)> rate_with;
  };
  [[nodiscard]] Predicted ByProfiles(const LoaderJob& job, int sharing) const;
  [[nodiscard]] static Predicted ByRates(const LoaderJob& job, int sharing,
                                         const ExecutionModel& rates);

  const LoaderProfiles& profiles_;
  const ThroughputModel model_;
  const DivisionOptions options_;
};

// Writes the CPUs that the workers of each job really have into its slices: one core each, or less
// where there are more workers on a node than cores. Nodes that state no CPUs have enough.
void ShareCores(const Cluster& cluster, std::span<Slices* const> jobs);

// The same slices with the workers in proportion to their GPUs, cut to whole ones on each node as
// published. None below zero.
[[nodiscard]] Slices WithWorkers(Slices slices, int workers);

}  // namespace trainyard::loader
