// SPDX-License-Identifier: Apache-2.0
// What is left of a running job, for policies that weigh what other GPUs are worth to it: a change
// costs time, which a job that is nearly done never gains back.
#pragma once

#include <optional>

#include "trainyard/snapshot.h"

namespace trainyard::policies {

struct RestOfJob {
  double work = 0;  // seconds that it takes on what the job holds, without any cost
  double stay = 0;  // seconds until its end if it keeps that: with the cost not paid yet
  double cost = 0;  // seconds that a change takes, the dearer of a resize and a migration

  // What other GPUs count for, that would be worth `other` where those that the job holds are worth
  // `held`: as many times `held` as the job would end earlier. Less than `held`: it would end
  // later. REQUIRES: both are above 0.
  [[nodiscard]] double Worth(double other, double held) const {
    return stay > 0 ? held * stay / (cost + work * held / other) : 0;
  }
};

// None where the job holds nothing or makes no progress, and where what is left of it is not known
// (Requires::work_left).
[[nodiscard]] std::optional<RestOfJob> RestOf(const JobView& job, const RestartCosts& costs);

}  // namespace trainyard::policies
