// SPDX-License-Identifier: Apache-2.0
// Measures what the processes of an attempt use of its node beside GPUs.
#pragma once

#include <chrono>
#include <cstdint>

#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

// Of the descendants of this process, which must be their subreaper. CPU time is complete, but for
// processes whose parents do not wait for them. Memory is what the control group counts; without
// one, the sum of what the processes have at each look, in which pages that several have count for
// each, and what happens between two looks is not seen.
class UseMeter {
 public:
  using Clock = std::chrono::steady_clock;

  // `grouped`: this process has a control group of its own.
  UseMeter(bool grouped, Clock::time_point now)
      : grouped_(grouped), next_look_(now + kFirstPause) {}

  // Looks where it is time to. A look reads the state of all processes of the machine: a second
  // after the start, and then ever more seldom, until twice a minute.
  void LookIfDue(Clock::time_point now);
  void Look();
  [[nodiscard]] const v1::ResourceUse& use() const { return use_; }
  [[nodiscard]] Clock::time_point next_due() const { return next_look_; }

 private:
  static constexpr Clock::duration kFirstPause = std::chrono::seconds(1);
  static constexpr Clock::duration kLongestPause = std::chrono::seconds(30);

  bool grouped_;
  Clock::time_point next_look_;
  Clock::duration pause_ = kFirstPause;
  v1::ResourceUse use_;
};

}  // namespace trainyard::supervisor
