// SPDX-License-Identifier: Apache-2.0
// Fair allocations of Gavel (OSDI'20, section 4): max-min fairness, water filling and finish-time
// fairness. A job whose rates are all 0 makes them worthless: leave it out. Pure functions of the
// problem.
#pragma once

#include <span>

#include "policies/gavel/allocation_problem.h"

namespace trainyard::policies {

// Section 4.1 (LAS): the largest possible least level, where the level of a job with s GPUs and
// weight w is s / w times its rate, over its mean rate. Objective: that level.
[[nodiscard]] Allocation MaxMinFairness(const AllocationProblem& problem);

// Section 4.3: the same, and those that can be raised without lowering a lower one are, so that the
// sorted levels are the largest possible lexicographically. Who can be raised no more is told by
// the prices of the program; Gavel asks an integer program. Objective: the least level.
[[nodiscard]] Allocation WaterFilling(const AllocationProblem& problem);

// Section 4.2: the least possible largest rho = (age + work left / rate) / (isolated time + work
// left / fair rate). `fair_rates`: by job, with the isolated share. Objective: that rho.
[[nodiscard]] Allocation FairFinishTimes(const AllocationProblem& problem,
                                         std::span<const double> fair_rates);

}  // namespace trainyard::policies
