// SPDX-License-Identifier: Apache-2.0
// Jobs without GPUs: a stage below the policy, which knows of none of them. They run on the CPUs
// and memory that jobs with GPUs leave, and give way where these need them, so that no job with
// GPUs starts later for them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/request/request_book.h"
#include "model/request/request_fit.h"
#include "scheduler/bundle.h"
#include "scheduler/placer.h"
#include "scheduler/walk.h"

namespace trainyard::scheduler {

class CpuJobs {
 public:
  // What the context refers to must outlive it.
  explicit CpuJobs(const SchedulerContext& context) : context_(context) {}

  // `selection`: what becomes of jobs with GPUs; those of which it says nothing keep what they
  // hold. Adds what becomes of the others, of which `in_order` has all that are to be scheduled:
  // those that run go on where they are as long as their CPUs and memory are left to them; then the
  // others, in order, go where they have room, or hold nothing. For the first of them that has
  // none, nodes are kept free of those behind it. O(slices of running jobs + requests that differ x
  // nodes).
  void AddTo(Selection& selection, const Bundle& bundle, const std::vector<JobId>& in_order) const;

 private:
  class Stage;

  SchedulerContext context_;
};

}  // namespace trainyard::scheduler
