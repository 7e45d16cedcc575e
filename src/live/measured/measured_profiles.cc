// SPDX-License-Identifier: Apache-2.0
#include "live/measured/measured_profiles.h"

#include <optional>
#include <string>

#include "engine/engine.h"
#include "profile/measured_book.h"

namespace trainyard::live {
namespace {

std::optional<double> StatedRate(const profile::MeasuredKey& key,
                                 const profile::ThroughputTable* profiles) {
  const int number = profiles == nullptr ? -1 : profiles->Find(key.model, key.batch_size);
  if (number < 0) {
    return std::nullopt;
  }
  const profile::ThroughputRow& row = profiles->rows()[static_cast<std::size_t>(number)];
  const double rate = row.by_type.empty() ? row.Rate(key.gpus) : row.RateOn(key.gpu_type, key.gpus);
  return rate > 0 ? std::optional(rate) : std::nullopt;
}

// With data enough. REQUIRES: the profiles are those of a loader model, and know the model.
std::optional<double> LoadedRate(const engine::Engine& engine, const profile::MeasuredKey& key) {
  if (key.batch_size < 1) {
    return std::nullopt;
  }
  JobSpec job;
  job.model = key.model;
  job.batch_size = key.batch_size;
  job.gpus = key.gpus;
  job.profile_row = 0;
  return engine.stated_rates().Rate(job, key.gpus);
}

std::optional<double> Stated(const engine::Engine& engine, const profile::MeasuredKey& key,
                             profile::Measure measure, const profile::ThroughputTable* profiles) {
  const std::optional<double> loader = engine.measured()->LoaderSeconds(key.model, key.gpus);
  if (measure == profile::Measure::kLoader) {
    return loader;
  }
  if (measure == profile::Measure::kRate) {
    return loader ? LoadedRate(engine, key) : StatedRate(key, profiles);
  }
  for (const Change change :
       {Change::kStart, Change::kRestart, Change::kResize, Change::kMigrate}) {
    if (profile::MeasureOf(change) == measure) {
      JobSpec job;
      job.model = key.model;
      job.gpus = key.gpus;
      return Seconds(engine.charges().Stated(change, job, key.gpus, false));
    }
  }
  return std::nullopt;
}

}  // namespace

v1::ProfilesReply RowsOf(const profile::MeasuredBook& book) {
  v1::ProfilesReply reply;
  for (const auto& [key, entry] : book.entries()) {
    for (std::size_t i = 0; i < profile::kMeasures; ++i) {
      const profile::Samples& samples = entry.samples.at(i);
      if (samples.values().empty()) {
        continue;
      }
      v1::MeasuredSamples& row = *reply.add_measured();
      row.set_model(key.model);
      row.set_batch_size(key.batch_size);
      row.set_gpu_type(key.gpu_type);
      row.set_gpus(key.gpus);
      row.set_measure(std::string(profile::kMeasureNames.at(i)));
      row.mutable_values()->Add(samples.values().begin(), samples.values().end());
      row.set_median(samples.median());
      row.set_spread(samples.spread());
      row.set_counts(samples.counts());
    }
  }
  return reply;
}

v1::ProfilesReply MeasuredProfiles(const engine::Engine& engine,
                                   const profile::ThroughputTable* profiles) {
  if (engine.measured() == nullptr) {
    return {};
  }
  v1::ProfilesReply reply = RowsOf(engine.measured()->book());
  for (v1::MeasuredSamples& row : *reply.mutable_measured()) {
    const profile::MeasuredKey key{.model = row.model(),
                                   .batch_size = row.batch_size(),
                                   .gpu_type = row.gpu_type(),
                                   .gpus = row.gpus()};
    const std::optional<profile::Measure> measure = profile::MeasureNamed(row.measure());
    if (const auto stated = measure ? Stated(engine, key, *measure, profiles) : std::nullopt) {
      row.set_stated(*stated);
    }
  }
  return reply;
}

}  // namespace trainyard::live
