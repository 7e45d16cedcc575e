// SPDX-License-Identifier: Apache-2.0
// An execution model corrected by what the cluster has measured of its own jobs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "model/event.h"
#include "model/node_classes.h"
#include "profile/measured_book.h"
#include "trainyard/cluster.h"
#include "trainyard/snapshot.h"

namespace trainyard::profile {

// Jobs that are bound to a profile row advance as much faster or slower than the profile says as
// has been measured of their model and batch size on that type of GPU. Other jobs are as in the
// model below: stages that have been measured are in the job itself (CorrectStages).
class MeasuredModel : public ExecutionModel {
 public:
  // `stated` must outlive it.
  MeasuredModel(MeasuredBook book, const ExecutionModel& stated, const Cluster& cluster)
      : book_(std::move(book)), stated_(stated), types_(cluster) {}

  [[nodiscard]] MeasuredBook& book() { return book_; }
  [[nodiscard]] const MeasuredBook& book() const { return book_; }
  // The name of the cluster's only GPU type; empty: there are several, or it has none.
  [[nodiscard]] std::string only_type() const {
    return types_.several() ? std::string() : types_.types().front().name;
  }
  // The type of all GPUs of the grant; nothing: they are of several, or of none.
  [[nodiscard]] const GpuType* TypeOf(const Slices& slices) const;

  // Seconds of a sample with so many loader workers, as stated; nothing: the run does not tell
  // loading and training of that model apart.
  [[nodiscard]] virtual std::optional<double> LoaderSeconds(const std::string& /*model*/,
                                                            int /*workers*/) const {
    return std::nullopt;
  }

  // What the fact says of the job; true: the book says something else now.
  bool Add(const JobSpec& job, const model::fact::Measured& fact);
  // The specification with the stages that have been measured, or itself.
  [[nodiscard]] std::shared_ptr<const JobSpec> Corrected(
      const std::shared_ptr<const JobSpec>& spec) const;

  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    return stated_.TotalWork(job);
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override;
  [[nodiscard]] double RateOn(const JobSpec& job, int gpus, const GpuType& type) const override;
  [[nodiscard]] Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                           const CoRunners& co_runners) const override;
  [[nodiscard]] Resources Preferred(const JobSpec& job) const override {
    return stated_.Preferred(job);
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const override {
    return stated_.Levels(job);
  }

 private:
  [[nodiscard]] double RatioOn(const JobSpec& job, int gpus, const GpuType& type) const;
  [[nodiscard]] double Ratio(const JobSpec& job, int gpus, model::GpuTypeSet among) const;

  MeasuredBook book_;
  const ExecutionModel& stated_;
  const model::GpuTypes types_;
};

// Makes a model of the run's own kind in place of a MeasuredModel. `stated` and `cluster` must
// outlive what it makes.
using Corrector = std::function<std::unique_ptr<MeasuredModel>(
    MeasuredBook book, const ExecutionModel& stated, const Cluster& cluster)>;

}  // namespace trainyard::profile
