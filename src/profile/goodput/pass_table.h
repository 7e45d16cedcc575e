// SPDX-License-Identifier: Apache-2.0
// How long the passes of a training take on nodes of one type of GPU, as it was measured.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace trainyard::profile {

// A pass that averages gradients, seconds.
struct PassTimes {
  double step = 0;  // in all, > 0
  double sync = 0;  // the part of it that averages gradients

  // Of a pass that averages none.
  [[nodiscard]] double compute() const { return step - sync; }
};

// Values by the samples of a GPU's part, ascending; in between lines, and at both ends lines go on.
class PassCurve {
 public:
  void Add(std::int64_t part, const PassTimes& times);
  [[nodiscard]] bool empty() const { return points_.empty(); }
  [[nodiscard]] std::int64_t least() const { return points_.front().first; }
  [[nodiscard]] std::int64_t most() const { return points_.back().first; }
  // REQUIRES: not empty.
  [[nodiscard]] PassTimes At(double part) const;

 private:
  std::vector<std::pair<std::int64_t, PassTimes>> points_;
};

class PassTable {
 public:
  // GPUs by node, as many as there are nodes; a node of more GPUs than were measured counts as
  // several.
  using Placement = std::vector<int>;
  static constexpr int kMostNodes = 16;
  static constexpr int kMostDigit = 9;

  // A row of placements. REQUIRES: `digits` are 1 to kMostDigit, one for each node.
  void AddPlaced(const std::string& digits, std::int64_t part, const PassTimes& times);
  // A row by numbers of nodes and GPUs.
  void AddSized(int nodes, int gpus, std::int64_t part, const PassTimes& times);
  // What `TimesOn` says of so many nodes and GPUs, instead of interpolating between measured ones.
  void AddLarge(int nodes, int gpus, std::int64_t part, const PassTimes& times) {
    large_[{nodes, gpus}].Add(part, times);
  }
  // All rows have been added. REQUIRES: a row of placements is among them.
  void Close();

  [[nodiscard]] bool empty() const { return by_placement_.empty(); }
  // Of all placements.
  [[nodiscard]] std::int64_t least_part() const { return least_part_; }
  [[nodiscard]] std::int64_t most_part() const { return most_part_; }
  // REQUIRES, here and below: a node has GPUs.
  [[nodiscard]] PassTimes TimesOn(const Placement& placement, std::int64_t part) const;
  // The largest part that was measured on this placement; or, where it was not, on as many nodes
  // and GPUs at least; 0: none was.
  [[nodiscard]] std::int64_t MostPartOn(const Placement& placement) const;
  // On any placement with so many GPUs; 0: there is none.
  [[nodiscard]] std::int64_t MostPartWith(int gpus) const;
  // Samples a second on one GPU, of the largest part in the longest time; 0: not measured.
  [[nodiscard]] double OneGpuThroughput() const;

 private:
  struct Sum {
    PassTimes times;
    int count = 0;
  };
  // As the names of placements in the table.
  [[nodiscard]] std::string DigitsOf(const Placement& placement) const;
  [[nodiscard]] PassTimes Interpolated(int nodes, int gpus, double part) const;

  int node_gpus_ = 1;                              // the largest digit
  std::map<std::string, PassCurve> by_placement_;  // digits, the smallest rotation
  std::map<std::pair<std::pair<int, int>, std::int64_t>, Sum> sums_;  // nodes, GPUs and part
  std::map<int, std::int64_t> most_part_with_;                        // by GPUs
  std::map<std::pair<int, int>, std::int64_t> most_part_sized_;       // by nodes and GPUs
  // By nodes, then by GPUs: the mean of placements, and what was measured by numbers.
  std::map<int, std::map<int, PassCurve>> by_size_;
  std::map<std::pair<int, int>, PassCurve> large_;  // by nodes and GPUs
  double longest_alone_ = 0;                        // pass on one GPU, seconds
  std::int64_t least_part_ = 0;
  std::int64_t most_part_ = 0;
};

}  // namespace trainyard::profile
