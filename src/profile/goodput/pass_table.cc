// SPDX-License-Identifier: Apache-2.0
#include "profile/goodput/pass_table.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/check.h"

namespace trainyard::profile {
namespace {

// The smallest of the texts that are this one begun at another place.
std::string SmallestRotation(const std::string& text) {
  std::string smallest = text;
  for (std::size_t i = 1; i < text.size(); ++i) {
    smallest = std::min(smallest, text.substr(i) + text.substr(0, i));
  }
  return smallest;
}

double Between(double at, double low, double high, double of_low, double of_high) {
  return low == high ? of_low : of_low + (at - low) / (high - low) * (of_high - of_low);
}

PassTimes Between(double at, double low, double high, const PassTimes& of_low,
                  const PassTimes& of_high) {
  return {.step = Between(at, low, high, of_low.step, of_high.step),
          .sync = Between(at, low, high, of_low.sync, of_high.sync)};
}

// The neighbours of a key in a map, both the same at its ends.
template <typename Map>
auto Neighbours(const Map& map, int key) {
  const auto above = map.lower_bound(key);
  if (above == map.end()) {
    return std::pair(std::prev(above), std::prev(above));
  }
  return std::pair(above->first == key || above == map.begin() ? above : std::prev(above), above);
}

int GpusIn(const std::string& digits) {
  return std::accumulate(digits.begin(), digits.end(), 0,
                         [](int sum, char digit) { return sum + (digit - '0'); });
}

}  // namespace

void PassCurve::Add(std::int64_t part, const PassTimes& times) {
  const auto at =
      std::lower_bound(points_.begin(), points_.end(), part,
                       [](const auto& point, std::int64_t value) { return point.first < value; });
  points_.insert(at, {part, times});
}

PassTimes PassCurve::At(double part) const {
  if (points_.size() == 1) {
    return points_.front().second;
  }
  auto above = std::lower_bound(
      points_.begin(), points_.end(), part,
      [](const auto& point, double value) { return static_cast<double>(point.first) < value; });
  if (above != points_.end() && static_cast<double>(above->first) == part) {
    return above->second;
  }
  above = std::clamp(above, points_.begin() + 1, points_.end() - 1);
  const auto below = above - 1;
  PassTimes times = Between(part, static_cast<double>(below->first),
                            static_cast<double>(above->first), below->second, above->second);
  // Lines that go on may end below what is possible.
  constexpr double kLeast = 1e-6;
  times.sync = std::max(times.sync, 0.0);
  times.step = std::max(times.step, times.sync + kLeast);
  return times;
}

void PassTable::AddPlaced(const std::string& digits, std::int64_t part, const PassTimes& times) {
  least_part_ = empty() ? part : std::min(least_part_, part);
  most_part_ = std::max(most_part_, part);
  by_placement_[SmallestRotation(digits)].Add(part, times);
  for (const char digit : digits) {
    node_gpus_ = std::max(node_gpus_, digit - '0');
  }
  const int gpus = GpusIn(digits);
  std::int64_t& most = most_part_with_[gpus];
  most = std::max(most, part);
  if (gpus == 1) {
    longest_alone_ = std::max(longest_alone_, times.step);
  }
  Sum& sum = sums_[{{static_cast<int>(digits.size()), gpus}, part}];
  sum.times.step += times.step;
  sum.times.sync += times.sync;
  ++sum.count;
}

void PassTable::AddSized(int nodes, int gpus, std::int64_t part, const PassTimes& times) {
  by_size_[nodes][gpus].Add(part, times);
  std::int64_t& most = most_part_sized_[{nodes, gpus}];
  most = std::max(most, part);
}

void PassTable::Close() {
  CHECK(!empty());
  for (const auto& [key, sum] : sums_) {
    const auto& [size, part] = key;
    by_size_[size.first][size.second].Add(
        part, {.step = sum.times.step / sum.count, .sync = sum.times.sync / sum.count});
  }
  sums_.clear();
}

PassTimes PassTable::Interpolated(int nodes, int gpus, double part) const {
  const auto on = [&](const std::map<int, PassCurve>& by_gpus) {
    const auto [fewer, more] = Neighbours(by_gpus, gpus);
    return Between(gpus, fewer->first, more->first, fewer->second.At(part), more->second.At(part));
  };
  const auto [fewer, more] = Neighbours(by_size_, nodes);
  return Between(nodes, fewer->first, more->first, on(fewer->second), on(more->second));
}

std::string PassTable::DigitsOf(const Placement& placement) const {
  std::string digits;
  for (int on_node : placement) {
    for (; on_node > node_gpus_; on_node -= node_gpus_) {
      digits += static_cast<char>('0' + node_gpus_);
    }
    if (on_node > 0) {
      digits += static_cast<char>('0' + on_node);
    }
  }
  CHECK(!digits.empty());
  return SmallestRotation(digits);
}

PassTimes PassTable::TimesOn(const Placement& placement, std::int64_t part) const {
  const std::string digits = DigitsOf(placement);
  if (const auto placed = by_placement_.find(digits); placed != by_placement_.end()) {
    return placed->second.At(static_cast<double>(part));
  }
  const int nodes = std::min(static_cast<int>(digits.size()), kMostNodes);
  const int gpus = GpusIn(digits);
  if (const auto large = large_.find({nodes, gpus});
      large != large_.end() && part >= large->second.least() && part <= large->second.most()) {
    return large->second.At(static_cast<double>(part));
  }
  return Interpolated(nodes, gpus, static_cast<double>(part));
}

std::int64_t PassTable::MostPartOn(const Placement& placement) const {
  const std::string digits = DigitsOf(placement);
  if (const auto placed = by_placement_.find(digits); placed != by_placement_.end()) {
    return placed->second.most();
  }
  const int nodes = std::min(static_cast<int>(digits.size()), kMostNodes);
  std::int64_t most = 0;
  for (const auto& [size, part] : most_part_sized_) {
    if (size.first >= nodes && size.second >= GpusIn(digits)) {
      most = std::max(most, part);
    }
  }
  return most;
}

std::int64_t PassTable::MostPartWith(int gpus) const {
  const auto found = most_part_with_.find(gpus);
  return found == most_part_with_.end() ? 0 : found->second;
}

double PassTable::OneGpuThroughput() const {
  return longest_alone_ > 0 ? static_cast<double>(MostPartWith(1)) / longest_alone_ : 0;
}

}  // namespace trainyard::profile
