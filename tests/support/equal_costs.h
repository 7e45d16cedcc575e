// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainyard/snapshot.h"

namespace trainyard {

// Every start, move and resize of any job costs that.
class EqualCosts final : public RestartCosts {
 public:
  EqualCosts() = default;
  explicit EqualCosts(Duration each) : cost(each) {}
  [[nodiscard]] Duration Of(const JobSpec& /*job*/, Change /*change*/,
                            int /*gpus*/) const override {
    return cost;
  }
  Duration cost{0};
};

}  // namespace trainyard
