// SPDX-License-Identifier: Apache-2.0
#include "loader/division.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "loader/loader_execution.h"

namespace trainyard::loader {
namespace {

constexpr std::int64_t kMilli = 1000;

std::vector<int> CoresOf(const Cluster& cluster) {
  std::vector<int> cores;
  for (const NodeSpec& node : cluster.nodes) {
    cores.push_back(static_cast<int>(node.capacity.milli_cpus / kMilli));
  }
  return cores;
}

// Asks for the rates with 0, 1, ... workers for each device, until the GPUs are kept busy.
LoaderDemand DemandOf(const LoaderJob& job, std::span<const int> cores, double gpu_rate,
                      const std::function<double(int workers)>& rate_with) {
  constexpr double kBusy = 1 - 1e-12;  // what has been multiplied and divided differs a little
  const int gpus = job.spec->gpus;
  LoaderDemand demand{.workers = job.workers / gpus, .settled = job.settled};
  int most = cores.empty() ? 0 : *std::max_element(cores.begin(), cores.end());
  for (const Slice& slice : *job.slices) {
    const int devices = std::popcount(slice.gpus);
    demand.parts.push_back({.node = static_cast<int>(Index(slice.node)), .devices = devices});
    most = std::min(most, cores[Index(slice.node)] / devices);
  }
  do {
    demand.rates.push_back(rate_with(static_cast<int>(demand.rates.size()) * gpus));
  } while (demand.rates.back() < kBusy * gpu_rate && static_cast<int>(demand.rates.size()) <= most);
  return demand;
}

}  // namespace

DivisionOptions DivisionOptionsOf(const Options& options) {
  constexpr double kPercent = 100;
  return {.rule = AllocationRuleOf(options.Text("allocation")),
          .least_gain = options.Number("least_gain") / kPercent};
}

std::vector<int> WorkerDivision::Divide(const Cluster& cluster, std::span<const LoaderJob> jobs,
                                        const ExecutionModel* rates) const {
  std::vector<const Slices*> slices;
  for (const LoaderJob& job : jobs) {
    slices.push_back(job.slices);
  }
  const std::vector<int> sharing = SharingOf(slices);
  std::vector<int> workers;
  if (options_.rule == AllocationRule::kExact) {
    const std::vector<int> cores = CoresOf(cluster);
    std::vector<LoaderDemand> demands;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const Predicted predicted = rates != nullptr && !options_.published
                                      ? ByRates(jobs[i], sharing[i], *rates)
                                      : ByProfiles(jobs[i], sharing[i]);
      demands.push_back(DemandOf(jobs[i], cores, predicted.gpu_rate, predicted.rate_with));
    }
    workers = ExactAllocation(demands, cores, {.least_gain = options_.least_gain});
  } else {
    workers = ByPublishedRule(cluster, jobs, sharing);
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    workers[i] *= jobs[i].spec->gpus;
  }
  return workers;
}

std::vector<int> WorkerDivision::ByPublishedRule(const Cluster& cluster,
                                                 std::span<const LoaderJob> jobs,
                                                 std::span<const int> sharing) const {
  std::vector<LoaderNeed> needs;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobSpec& spec = *jobs[i].spec;
    needs.push_back(PredictNeed(options_.rule, model_, profiles_.SizeOf(spec),
                                LoaderProfiles::ShapeOf(spec), sharing[i]));
  }
  const std::vector<int> cores = CoresOf(cluster);
  return PublishedAllocation(options_.rule, needs, std::accumulate(cores.begin(), cores.end(), 0));
}

WorkerDivision::Predicted WorkerDivision::ByProfiles(const LoaderJob& job, int sharing) const {
  const JobSpec& spec = *job.spec;
  const double gpu_rate = spec.gpus *
                          model_.DeviceRate(profiles_.SizeOf(spec), LoaderProfiles::ShapeOf(spec)) /
                          sharing;
  return {.gpu_rate = gpu_rate, .rate_with = [this, gpu_rate, gpus = spec.gpus](int workers) {
            return LoadedRate(model_.loader, gpu_rate, workers, gpus);
          }};
}

// Asks as if the job were alone: its loader is as fast beside others, its GPUs are not.
WorkerDivision::Predicted WorkerDivision::ByRates(const LoaderJob& job, int sharing,
                                                  const ExecutionModel& rates) {
  const JobSpec& spec = *job.spec;
  const auto batch = static_cast<double>(spec.batch_size);
  const double gpu_rate = rates.Rate(spec, spec.gpus) * batch / sharing;
  return {.gpu_rate = gpu_rate,
          .rate_with = [&job, &spec, &rates, batch, gpu_rate, sharing](int workers) {
            Grant grant{.gpus = spec.gpus, .slices = WithWorkers(*job.slices, workers)};
            for (Slice& slice : grant.slices) {
              slice.soft.milli_cpus = slice.loader_workers * kMilli;
            }
            const double alone = rates.RateUnder(spec, grant, {}) * batch;
            // Without workers loading takes its time beside that of the GPUs.
            return workers > 0 ? std::min(gpu_rate, alone)
                               : 1 / (1 / alone + (sharing - 1) / (sharing * gpu_rate));
          }};
}

void ShareCores(const Cluster& cluster, std::span<Slices* const> jobs) {
  std::vector<std::int64_t> workers(cluster.nodes.size(), 0);
  for (const Slices* slices : jobs) {
    for (const Slice& slice : *slices) {
      workers[Index(slice.node)] += slice.loader_workers;
    }
  }
  for (Slices* slices : jobs) {
    for (Slice& slice : *slices) {
      const std::int64_t cores = cluster.nodes[Index(slice.node)].capacity.milli_cpus;
      const std::int64_t all = workers[Index(slice.node)];
      const bool enough = cores == 0 || all * kMilli <= cores;
      slice.soft.milli_cpus =
          enough ? slice.loader_workers * kMilli : slice.loader_workers * cores / all;
    }
  }
}

Slices WithWorkers(Slices slices, int workers) {
  int devices = 0;
  for (const Slice& slice : slices) {
    devices += std::popcount(slice.gpus);
  }
  for (Slice& slice : slices) {
    slice.loader_workers = std::max(workers, 0) * std::popcount(slice.gpus) / devices;
  }
  return slices;
}

}  // namespace trainyard::loader
