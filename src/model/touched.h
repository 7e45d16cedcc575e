// SPDX-License-Identifier: Apache-2.0
// Which jobs and nodes may have changed since somebody looked last.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "trainyard/ids.h"

namespace trainyard::model {

template <typename Id>
class TouchedIds {
 public:
  void Add(Id id) {
    const auto index = static_cast<std::size_t>(id);
    if (marks_.size() <= index) {
      marks_.resize(index + 1);
    }
    if (!marks_[index]) {
      marks_[index] = true;
      ids_.push_back(id);
    }
  }
  [[nodiscard]] bool empty() const { return ids_.empty(); }
  // Each once, in no particular order; from now on none is.
  [[nodiscard]] std::vector<Id> Take() {
    for (const Id id : ids_) {
      marks_[static_cast<std::size_t>(id)] = false;
    }
    return std::exchange(ids_, {});
  }

 private:
  std::vector<bool> marks_;
  std::vector<Id> ids_;
};

struct Touched {
  TouchedIds<JobId> jobs;
  TouchedIds<NodeId> nodes;
};

}  // namespace trainyard::model
