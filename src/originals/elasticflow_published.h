// SPDX-License-Identifier: Apache-2.0
// ElasticFlow as its simulator plans (reference 4.2 to 4.8): plans in slots, without restart costs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "trainyard/component.h"

namespace trainyard::originals {

struct PublishedElasticFlowOptions {
  Duration slot{0};  // > 0: planning grain
  bool with_admission =
      true;                   // `ef-accessctrl`; false: `ef`, which also wakes and places otherwise
  bool whole_batches = true;  // arrivals of one instant are admitted together or not at all
  bool prefer_increase = true;  // surplus goes where GPU time grows most (the published sign)
  bool replan_all = false;  // the plain surplus step: every marginal anew after each grant (tests)
  // Most GPUs by model and batch size; others: the batch size, at most 64.
  std::map<std::pair<std::string, std::int64_t>, int> caps;
};

[[nodiscard]] std::unique_ptr<Policy> MakePublishedElasticFlow(PublishedElasticFlowOptions options);

}  // namespace trainyard::originals
