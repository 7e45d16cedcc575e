// SPDX-License-Identifier: Apache-2.0
#include "profile/measured_model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "profile/execution_model.h"

namespace trainyard::profile {

const GpuType* MeasuredModel::TypeOf(const Slices& slices) const {
  const GpuType* type = slices.empty() ? nullptr : &types_.types()[types_.of(slices.front().node)];
  for (const Slice& slice : slices) {
    type = type == &types_.types()[types_.of(slice.node)] ? type : nullptr;
  }
  return type;
}

bool MeasuredModel::Add(const JobSpec& job, const model::fact::Measured& fact) {
  bool changed = false;
  for (const Metric& metric : fact.metrics) {
    if (const std::optional<Measure> measure = MeasureNamed(metric.name)) {
      changed |= book_.Add({.model = job.model,
                            .batch_size = job.batch_size,
                            .gpu_type = fact.gpu_type,
                            .gpus = fact.gpus},
                           *measure, metric.value);
    }
  }
  return changed;
}

std::shared_ptr<const JobSpec> MeasuredModel::Corrected(
    const std::shared_ptr<const JobSpec>& spec) const {
  if (book_.empty() || !StatesStages(*spec)) {
    return spec;
  }
  auto corrected = std::make_shared<JobSpec>(*spec);
  return CorrectStages(book_, only_type(), *corrected)
             ? std::shared_ptr<const JobSpec>(std::move(corrected))
             : spec;
}

double MeasuredModel::RatioOn(const JobSpec& job, int gpus, const GpuType& type) const {
  if (book_.empty() || job.profile_row < 0 || StatesStages(job)) {
    return 1;
  }
  const MeasuredKey key{
      .model = job.model, .batch_size = job.batch_size, .gpu_type = type.name, .gpus = gpus};
  return book_.RateRatio(key, [&](int count) { return stated_.RateOn(job, count, type); })
      .value_or(1);
}

// Of the slowest among these types, measured against stated.
double MeasuredModel::Ratio(const JobSpec& job, int gpus, model::GpuTypeSet among) const {
  if (!types_.several()) {
    return RatioOn(job, gpus, types_.types().front());
  }
  double stated = 0;
  double measured = 0;
  model::ForEachOf(among, [&](std::size_t number) {
    const GpuType& type = types_.types()[number];
    const double rate = stated_.RateOn(job, gpus, type);
    if (rate <= 0) {
      return;
    }
    const double corrected = rate * RatioOn(job, gpus, type);
    stated = stated == 0 ? rate : std::min(stated, rate);
    measured = measured == 0 ? corrected : std::min(measured, corrected);
  });
  return stated > 0 ? measured / stated : 1;
}

double MeasuredModel::Rate(const JobSpec& job, int gpus) const {
  const double stated = stated_.Rate(job, gpus);
  return stated > 0 ? stated * Ratio(job, gpus, types_.Accepted(job)) : stated;
}

double MeasuredModel::RateOn(const JobSpec& job, int gpus, const GpuType& type) const {
  const double stated = stated_.RateOn(job, gpus, type);
  return stated > 0 ? stated * RatioOn(job, gpus, type) : stated;
}

Throughput MeasuredModel::ThroughputUnder(const JobSpec& job, const Grant& grant,
                                          const CoRunners& co_runners) const {
  Throughput under = stated_.ThroughputUnder(job, grant, co_runners);
  model::GpuTypeSet held = 0;
  for (const Slice& slice : grant.slices) {
    held |= model::GpuTypeSet{1} << types_.of(slice.node);
  }
  const double ratio = Ratio(job, grant.gpus, held == 0 ? types_.Accepted(job) : held);
  if (ratio != 1) {
    under.rate *= ratio;
    under.seconds_per_unit /= ratio;
  }
  return under;
}

}  // namespace trainyard::profile
