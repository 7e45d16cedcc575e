// SPDX-License-Identifier: Apache-2.0
#include "profile/measured_book.h"

#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

namespace trainyard::profile {
namespace {

bool IsOfModelAlone(Measure measure) { return measure >= Measure::kStart; }

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// All that are written have samples.
bool IsPossible(double value) {
  return std::isfinite(value) && value > 0 && value <= MeasuredBook::kLargest;
}

}  // namespace

std::string_view NameOf(Measure measure) {
  return kMeasureNames.at(static_cast<std::size_t>(measure));
}

std::optional<Measure> MeasureNamed(std::string_view name) {
  const auto* const found = std::find(kMeasureNames.begin(), kMeasureNames.end(), name);
  return found == kMeasureNames.end()
             ? std::nullopt
             : std::optional(static_cast<Measure>(found - kMeasureNames.begin()));
}

Measure MeasureOf(Change change) {
  switch (change) {
    case Change::kStart:
      return Measure::kStart;
    case Change::kRestart:
      return Measure::kRestart;
    case Change::kResize:
      return Measure::kResize;
    case Change::kMigrate:
      return Measure::kMigrate;
  }
  return Measure::kRestart;
}

void Samples::Add(double value) {
  if (values_.size() == kKept) {
    values_.erase(values_.begin());
  }
  values_.push_back(value);
  median_ = MedianOf(values_);
}

double Samples::spread() const {
  constexpr double kOfNormal = 1.4826;
  std::vector<double> apart;
  apart.reserve(values_.size());
  for (const double value : values_) {
    apart.push_back(std::abs(value - median_));
  }
  return kOfNormal * MedianOf(std::move(apart));
}

void Samples::Serialize(StateStream& state) {
  state(values_);
  if (!state.reading() || values_.empty()) {
    return;
  }
  if (values_.size() > kKept || !std::all_of(values_.begin(), values_.end(), IsPossible)) {
    return state.Fail();
  }
  median_ = MedianOf(values_);
}

bool MeasuredBook::Add(MeasuredKey key, Measure measure, double value) {
  if (key.model.empty() || key.gpus < 1 || !IsPossible(value)) {
    return false;
  }
  if (IsOfModelAlone(measure)) {
    key.batch_size = 0;
    key.gpu_type.clear();
  }
  if (entries_.size() >= kMostKeys && !entries_.contains(key)) {
    entries_.erase(std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.last_added < b.second.last_added; }));
  }
  Entry& entry = entries_[std::move(key)];
  entry.last_added = ++added_;
  Samples& samples = entry.samples.at(static_cast<std::size_t>(measure));
  const bool counted = samples.counts();
  const double before = samples.median();
  samples.Add(value);
  return samples.counts() && (!counted || samples.median() != before);
}

std::optional<double> MeasuredBook::Value(const MeasuredKey& key, Measure measure) const {
  const auto entry = entries_.find(key);
  if (entry == entries_.end() || !entry->second.Of(measure).counts()) {
    return std::nullopt;
  }
  return entry->second.Of(measure).median();
}

std::optional<Duration> MeasuredBook::Cost(Change change, const std::string& model,
                                           int gpus) const {
  const Measure measure = MeasureOf(change);
  std::optional<Duration> cost;
  const MeasuredKey first{.model = model, .batch_size = 0, .gpu_type = {}, .gpus = 0};
  for (auto entry = entries_.lower_bound(first); entry != entries_.end(); ++entry) {
    const MeasuredKey& key = entry->first;
    if (key.model != model || key.batch_size != 0 || !key.gpu_type.empty()) {
      break;
    }
    if (const Samples& samples = entry->second.Of(measure); samples.counts()) {
      cost = FromSeconds(samples.median());
      if (key.gpus >= gpus) {
        break;
      }
    }
  }
  return cost;
}

bool CorrectStages(const MeasuredBook& book, const std::string& gpu_type, JobSpec& job) {
  constexpr std::array kStages{Measure::kLoad, Measure::kForward, Measure::kCommunication};
  if (job.traits == nullptr || !job.traits->stages ||
      job.traits->stages->stages.size() != kStages.size()) {
    return false;
  }
  const MeasuredKey key{
      .model = job.model, .batch_size = job.batch_size, .gpu_type = gpu_type, .gpus = job.gpus};
  StageTimes times = *job.traits->stages;
  const double before = std::accumulate(times.stages.begin(), times.stages.end(), 0.0);
  for (std::size_t i = 0; i < kStages.size(); ++i) {
    times.stages[i] = book.Value(key, kStages.at(i)).value_or(times.stages[i]);
  }
  const double after = std::accumulate(times.stages.begin(), times.stages.end(), 0.0);
  if (const std::optional<double> rate = book.Value(key, Measure::kRate)) {
    times.iteration = 1 / *rate;
  } else if (before > 0) {
    times.iteration *= after / before;
  }
  if (times.stages == job.traits->stages->stages &&
      times.iteration == job.traits->stages->iteration) {
    return false;
  }
  JobTraits traits = *job.traits;
  traits.stages = std::move(times);
  job.traits = std::make_shared<const JobTraits>(std::move(traits));
  return true;
}

}  // namespace trainyard::profile
