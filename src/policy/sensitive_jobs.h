// SPDX-License-Identifier: Apache-2.0
// For tests: rates that depend on CPUs and memory.
#pragma once

#include <algorithm>
#include <string>

#include "trainyard/snapshot.h"

namespace trainyard {

// A model is called by the CPUs it wants for each GPU: with fewer it is slower in proportion. Every
// GPU wants 10 GiB.
class HungryModels final : public ExecutionModel {
 public:
  [[nodiscard]] double TotalWork(const JobSpec& job) const override { return *job.iterations; }
  [[nodiscard]] double Rate(const JobSpec& job, int /*gpus*/) const override { return Wants(job); }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override { return {}; }
  [[nodiscard]] Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                           const CoRunners& /*co_runners*/) const override {
    double cpus = 0;
    for (const Slice& slice : grant.slices) {
      cpus += static_cast<double>(slice.soft.milli_cpus) / 1000;
    }
    return Throughput::OfRate(std::min(cpus / grant.gpus, Wants(job)));
  }
  [[nodiscard]] Resources Preferred(const JobSpec& job) const override {
    return {.milli_cpus = static_cast<std::int64_t>(Wants(job) * 1000) * job.gpus,
            .memory_mib = std::int64_t{10} * 1024 * job.gpus};
  }

 private:
  static double Wants(const JobSpec& job) { return std::stod(job.model); }
};

}  // namespace trainyard
