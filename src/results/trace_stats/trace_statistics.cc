// SPDX-License-Identifier: Apache-2.0
#include "results/trace_stats/trace_statistics.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "trace/timestamp.h"

namespace trainyard::results {
namespace {

constexpr int kHoursOfDay = 24;
constexpr int kDaysOfWeek = 7;
constexpr std::size_t kMostReasons = 100;

void AddTo(JobTotal& group, double gpu_seconds) {
  ++group.jobs;
  group.gpu_seconds += gpu_seconds;
}

void AddTo(TraceStatistics::Groups& groups, const std::string& name, double gpu_seconds) {
  auto found = groups.find(name);
  if (found == groups.end()) {
    found = groups.emplace(name, JobTotal{}).first;
  }
  AddTo(found->second, gpu_seconds);
}

// The lower bound of the bin with a number: 1, 2, 5, 10, 20, ...
double BoundOf(int number) {
  constexpr std::array kSteps{1.0, 2.0, 5.0};
  const int power = static_cast<int>(std::floor(number / 3.0));
  return kSteps.at(static_cast<std::size_t>(number - 3 * power)) * std::pow(10.0, power);
}

int BinOf(double seconds) {
  int number = 3 * static_cast<int>(std::floor(std::log10(seconds)));
  while (BoundOf(number + 1) <= seconds) {
    ++number;
  }
  while (BoundOf(number) > seconds) {
    --number;
  }
  return number;
}

// "file:line: column 'x' is 'v'; expected y" -> "column 'x': expected y".
std::string ReasonOf(std::string_view why) {
  const std::size_t colon = why.find(": ");
  if (colon != std::string_view::npos && colon > 0 &&
      std::isdigit(static_cast<unsigned char>(why[colon - 1])) != 0) {
    why.remove_prefix(colon + 2);
  }
  const std::size_t is = why.find(" is '");
  const std::size_t end = why.find("'; ", is == std::string_view::npos ? 0 : is);
  if (is == std::string_view::npos || end == std::string_view::npos) {
    return std::string(why);
  }
  return std::string(why.substr(0, is)) + ": " + std::string(why.substr(end + 3));
}

std::vector<double> Sorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

void TraceStatistics::Add(const JobSpec& job) {
  const double submit = Seconds(job.submit);
  const double seconds = job.duration ? Seconds(*job.duration) : 0;
  const double work = seconds * job.gpus;
  first_submit_ = all_.jobs == 0 ? submit : std::min(first_submit_, submit);
  last_submit_ = all_.jobs == 0 ? submit : std::max(last_submit_, submit);
  AddTo(all_, work);
  AddTo(by_gpus_[job.gpus], work);
  AddTo(by_user_, job.user, work);
  AddTo(by_queue_, job.queue, work);
  AddTo(by_model_, job.model, work);
  with_deadline_ += job.deadline ? 1U : 0U;
  best_effort_ += job.best_effort ? 1U : 0U;
  moments_.push_back(job.submit);
  CountHour(job.submit.time_since_epoch());
  // All three in the same bins.
  demand_.AddRate(submit, submit + seconds, job.gpus);
  submits_.Add(submit, 1);
  submits_.Add(submit + seconds, 0);
  offered_.Add(submit, work);
  offered_.Add(submit + seconds, 0);
  if (!job.duration) {
    ++without_duration_;
    return;
  }
  durations_[job.gpus].push_back(seconds);
  AddTo(by_bin_[BinOf(seconds)], work);
  if (job.deadline) {
    factors_.push_back(Seconds(*job.deadline - job.submit) / seconds);
  }
}

void TraceStatistics::CountHour(Duration since_monday) {
  const auto hours = std::chrono::floor<std::chrono::hours>(since_monday).count();
  ++by_hour_.at(static_cast<std::size_t>(hours % kHoursOfDay));
  ++by_day_.at(static_cast<std::size_t>(hours / kHoursOfDay % kDaysOfWeek));
}

void TraceStatistics::SetOrigin(std::string_view origin) {
  const std::optional<trace::Timestamp> zero = trace::ParseTimestamp(origin);
  if (!zero) {
    return;
  }
  has_origin_ = true;
  by_hour_.fill(0);
  by_day_.fill(0);
  constexpr std::chrono::hours kFirstMonday{4 * kHoursOfDay};  // 1970-01-05, after a Thursday
  constexpr std::chrono::hours kWeek{kDaysOfWeek * kHoursOfDay};
  const Duration since_monday = (zero->at.time_since_epoch() - kFirstMonday) % kWeek;
  for (const TimePoint moment : moments_) {
    CountHour(moment.time_since_epoch() + (since_monday + kWeek) % kWeek);
  }
}

void TraceStatistics::AddLeftOut(std::string_view why, std::size_t rows) {
  left_out_ += rows;
  std::string reason = ReasonOf(why);
  const bool known = reasons_.find(reason) != reasons_.end();
  reasons_[known || reasons_.size() < kMostReasons ? std::move(reason) : "other reasons"] += rows;
}

double TraceStatistics::Load(int gpus) const {
  const double span = last_submit_ - first_submit_;
  return span > 0 ? all_.gpu_seconds / (span * gpus) : 0;
}

std::vector<double> TraceStatistics::Durations() const {
  std::vector<double> all;
  all.reserve(all_.jobs);
  for (const auto& [gpus, durations] : durations_) {
    all.insert(all.end(), durations.begin(), durations.end());
  }
  return Sorted(std::move(all));
}

std::vector<double> TraceStatistics::Durations(int gpus) const {
  const auto found = durations_.find(gpus);
  return found == durations_.end() ? std::vector<double>() : Sorted(found->second);
}

std::vector<double> TraceStatistics::DeadlineFactors() const { return Sorted(factors_); }

std::vector<TraceStatistics::DurationBin> TraceStatistics::DurationBins() const {
  std::vector<DurationBin> bins;
  if (by_bin_.empty()) {
    return bins;
  }
  for (int number = by_bin_.begin()->first; number <= by_bin_.rbegin()->first; ++number) {
    const auto found = by_bin_.find(number);
    bins.push_back({.from = BoundOf(number),
                    .to = BoundOf(number + 1),
                    .jobs = found == by_bin_.end() ? JobTotal{} : found->second});
  }
  return bins;
}

std::vector<TraceStatistics::TimeBin> TraceStatistics::OverTime() const {
  const std::vector<double> submits = submits_.Amounts();
  const std::vector<double> offered = offered_.Amounts();
  const std::vector<double> demand = demand_.Amounts();
  CHECK(submits.size() == demand.size() && offered.size() == demand.size());
  std::vector<TimeBin> bins;
  bins.reserve(demand.size());
  for (std::size_t i = 0; i < demand.size(); ++i) {
    const double start = demand_.start() + static_cast<double>(i) * demand_.width();
    bins.push_back(
        {.start = start, .jobs = submits[i], .offered = offered[i], .demand = demand[i]});
  }
  return bins;
}

void TimeBins::Add(double at, double amount) { amounts_[Cover(at)] += amount; }

void TimeBins::AddRate(double from, double to, double rate) {
  CHECK(from <= to);
  Cover(from);
  const std::size_t last = Cover(to);
  const std::size_t first = Cover(from);  // again, as bins may have moved
  if (first == last) {
    amounts_[first] += (to - from) * rate;
    return;
  }
  const auto begin = [this](std::size_t bin) {
    return (static_cast<double>(first_) + static_cast<double>(bin)) * width_;
  };
  amounts_[first] += (begin(first + 1) - from) * rate;
  amounts_[last] += (to - begin(last)) * rate;
  rates_[first + 1] += rate;
  rates_[last] -= rate;
}

std::vector<double> TimeBins::Amounts() const {
  std::vector<double> amounts = amounts_;
  double rate = 0;
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    rate += rates_[i];
    amounts[i] += rate * width_;
  }
  return amounts;
}

std::size_t TimeBins::Cover(double at) {
  while (true) {
    const auto bin = static_cast<std::int64_t>(std::floor(at / width_));
    if (amounts_.empty()) {
      first_ = bin;
    }
    const std::int64_t before = std::max<std::int64_t>(first_ - bin, 0);
    const std::int64_t end = std::max(bin + 1, first_ + std::ssize(amounts_));
    if (end - std::min(first_, bin) <= static_cast<std::int64_t>(most_)) {
      amounts_.insert(amounts_.begin(), static_cast<std::size_t>(before), 0);
      rates_.insert(rates_.begin(), static_cast<std::size_t>(before), 0);
      first_ -= before;
      amounts_.resize(static_cast<std::size_t>(end - first_));
      rates_.resize(amounts_.size());
      return static_cast<std::size_t>(bin - first_);
    }
    Coarsen();
  }
}

void TimeBins::Coarsen() {
  const std::vector<double> old = Amounts();
  const std::int64_t old_first = first_;
  width_ *= 2;
  first_ = old_first >> 1U;
  const std::int64_t end = ((old_first + std::ssize(old) - 1) >> 1U) + 1;
  amounts_.assign(old.empty() ? 0 : static_cast<std::size_t>(end - first_), 0);
  rates_.assign(amounts_.size(), 0);
  for (std::size_t i = 0; i < old.size(); ++i) {
    const std::int64_t bin = (old_first + static_cast<std::int64_t>(i)) >> 1U;
    amounts_[static_cast<std::size_t>(bin - first_)] += old[i];
  }
}

}  // namespace trainyard::results
