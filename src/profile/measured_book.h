// SPDX-License-Identifier: Apache-2.0
// What a cluster has measured of its own jobs: iterations per second, times of stages, and what
// starts, stops, resizes and moves cost. Bounded, and robust against outliers: of each measurement
// the last kKept samples stay, and their median counts. It follows from what is added alone.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/job.h"
#include "trainyard/plan.h"
#include "trainyard/state.h"
#include "trainyard/time.h"

namespace trainyard::profile {

enum class Measure : std::uint8_t {
  kRate,  // iterations per second, alone on its GPUs
  kLoad,  // seconds of an iteration, stage by stage
  kForward,
  kCommunication,
  kStart,  // seconds from a grant to the first work on it, without the fetch of a data set
  kRestart,
  kResize,
  kMigrate,
  kStop,    // seconds from the notice until all workers have gone
  kLoader,  // seconds of a sample, where so many loader workers were what limited the job
};
inline constexpr std::array<std::string_view, 10> kMeasureNames{
    "rate",      "load_s",   "forward_s", "communication_s", "start_s",
    "restart_s", "resize_s", "migrate_s", "stop_s",          "loader_s"};
inline constexpr std::size_t kMeasures = kMeasureNames.size();

[[nodiscard]] std::string_view NameOf(Measure measure);
[[nodiscard]] std::optional<Measure> MeasureNamed(std::string_view name);
[[nodiscard]] Measure MeasureOf(Change change);

// What has been measured where. Costs and loaders are of the model alone: they have no batch size
// and no GPU type (MeasuredBook::Add leaves these out).
struct MeasuredKey {
  std::string model;
  std::int64_t batch_size = 0;
  std::string gpu_type;
  int gpus = 1;  // kLoader: loader workers, of all processes of a job

  friend auto operator<=>(const MeasuredKey&, const MeasuredKey&) = default;  // NOLINT
  void Serialize(StateStream& state) { state(model, batch_size, gpu_type, gpus); }
};

class Samples {
 public:
  static constexpr std::size_t kKept = 15;
  static constexpr std::size_t kNeeded = 3;  // for a median that counts

  void Add(double value);
  [[nodiscard]] const std::vector<double>& values() const { return values_; }  // oldest first
  [[nodiscard]] bool counts() const { return values_.size() >= kNeeded; }
  // REQUIRES: there are some.
  [[nodiscard]] double median() const { return median_; }
  // The median absolute deviation, as the standard deviation of a normal distribution.
  [[nodiscard]] double spread() const;
  void Serialize(StateStream& state);

 private:
  std::vector<double> values_;
  double median_ = 0;
};

class MeasuredBook {
 public:
  // Of different keys. Where there are as many, the one that was added to the longest ago goes.
  static constexpr std::size_t kMostKeys = 4096;

  struct Entry {
    std::array<Samples, kMeasures> samples{};
    std::uint64_t last_added = 0;  // by the number of additions before

    [[nodiscard]] const Samples& Of(Measure measure) const {
      return samples.at(static_cast<std::size_t>(measure));
    }
    void Serialize(StateStream& state) { state(samples, last_added); }
  };

  // True: what the book says has changed. Ignores what cannot be: no model, fewer than one GPU, no
  // positive number, more than kLargest.
  static constexpr double kLargest = 1e9;
  bool Add(MeasuredKey key, Measure measure, double value);

  // The median there; nothing: fewer than Samples::kNeeded samples. O(log keys).
  [[nodiscard]] std::optional<double> Value(const MeasuredKey& key, Measure measure) const;
  // The cost of a change of a job of that model that has so many GPUs afterwards; a count that has
  // not been measured pays what the next larger one does, or the largest.
  [[nodiscard]] std::optional<Duration> Cost(Change change, const std::string& model,
                                             int gpus) const;
  // The measured rate against `stated(gpus)`; on a count that has not been measured, that of the
  // nearest measured one (the smaller of two). Nothing: none of that model has been measured.
  template <typename Stated>
  [[nodiscard]] std::optional<double> RateRatio(const MeasuredKey& at, Stated stated) const;

  [[nodiscard]] const std::map<MeasuredKey, Entry>& entries() const { return entries_; }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::uint64_t added() const { return added_; }  // samples so far
  void Serialize(StateStream& state) { state(entries_, added_); }

 private:
  std::map<MeasuredKey, Entry> entries_;
  std::uint64_t added_ = 0;
};

// Measured stages take the place of those that the job states, if it states three; the time of an
// iteration is the measured one or changes in proportion. `gpu_type`: the only one of the cluster,
// or empty. True: something has changed.
bool CorrectStages(const MeasuredBook& book, const std::string& gpu_type, JobSpec& job);

template <typename Stated>
std::optional<double> MeasuredBook::RateRatio(const MeasuredKey& at, Stated stated) const {
  std::optional<double> ratio;
  double nearest = 0;
  MeasuredKey first = at;
  first.gpus = 0;
  for (auto entry = entries_.lower_bound(first); entry != entries_.end(); ++entry) {
    const MeasuredKey& key = entry->first;
    if (key.model != at.model || key.batch_size != at.batch_size || key.gpu_type != at.gpu_type) {
      break;
    }
    const double by_profile = entry->second.Of(Measure::kRate).counts() ? stated(key.gpus) : 0;
    if (by_profile <= 0) {
      continue;
    }
    const double larger = static_cast<double>(std::max(key.gpus, at.gpus));
    const double apart = larger / static_cast<double>(std::min(key.gpus, at.gpus));
    if (!ratio || apart < nearest) {
      nearest = apart;
      ratio = entry->second.Of(Measure::kRate).median() / by_profile;
    }
  }
  return ratio;
}

}  // namespace trainyard::profile
