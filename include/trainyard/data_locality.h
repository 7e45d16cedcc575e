// SPDX-License-Identifier: Apache-2.0
// Where the data of jobs lie at present: what a placement asks that minds it.
#pragma once

#include <vector>

#include "trainyard/ids.h"
#include "trainyard/job.h"
#include "trainyard/time.h"

namespace trainyard {

class DataLocality {
 public:
  virtual ~DataLocality() = default;
  // How long a job that starts on the node now waits for its data; zero: they are there, or the
  // node does not state its bandwidth.
  [[nodiscard]] virtual Duration WaitOn(const DataSet& data, NodeId node) const = 0;
  // The nodes that keep the data set, or are fetching it, in node order.
  [[nodiscard]] virtual std::vector<NodeId> Holders(const DataSet& data) const = 0;
};

}  // namespace trainyard
