// SPDX-License-Identifier: Apache-2.0
// Calls by which operators say what the controller leaves for now: decisions, submissions.
#pragma once

#include "live/calls/call.h"

namespace trainyard::live {

class ControllerSwitches {
 public:
  // Must outlive it.
  explicit ControllerSwitches(CallContext& context) : context_(context) {}

  // Sets the switches that the call names. One that is so already keeps its author and reason.
  [[nodiscard]] Result<Reply> Set(const Call& call, const v1::SwitchesRequest& request);

 private:
  CallContext& context_;
};

}  // namespace trainyard::live
