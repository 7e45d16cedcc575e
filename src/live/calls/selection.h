// SPDX-License-Identifier: Apache-2.0
// Which jobs a call is about, and which of them it leaves as they are, with the reasons. The only
// place where a Selection is resolved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "live/calls/call.h"
#include "trainyard/live.pb.h"

namespace trainyard::live {

// Why a call does nothing to a job.
struct Refusal {
  Error error;         // its message has "{}" for each name of the job
  bool quiet = false;  // not worth a word unless the job was named, or nothing was done at all
};

// What a call is about.
struct Target {
  std::uint64_t number = 0;
  const v1::Selection* selection = nullptr;  // null: the job of that number
};

class Selected {
 public:
  // The jobs that a call is about, among those that it may ask for, which its caller may change;
  // the others that it names are left out.
  Selected(const CallContext& context, const Call& call, const Target& target);

  // Each once, ascending.
  [[nodiscard]] const std::vector<JobId>& jobs() const { return jobs_; }
  // Named by its own number, not by that of its array or by what it is.
  [[nodiscard]] bool IsNamed(JobId job) const { return named_.contains(job); }
  // The call does nothing to the job.
  void Leave(JobId job, Refusal why) { left_.push_back({job, std::move(why)}); }
  // What is left out, the tasks of an array in one sentence for each reason. `nothing_else`: the
  // call has done nothing at all.
  [[nodiscard]] std::vector<v1::LeftOut> LeftOut(bool nothing_else) const;

 private:
  struct Left {
    JobId job{};
    Refusal why;
  };

  void AddNamed(const std::string& text);
  void AddUnknown(const Error& error);
  void AddArray(JobId first, std::size_t end);
  void Add(JobId job, bool named);
  [[nodiscard]] std::string NameOf(std::uint64_t array, const std::vector<JobId>& jobs) const;
  [[nodiscard]] std::size_t EndOfArray(JobId first) const;

  const LiveState& state_;
  const std::size_t known_;  // jobs that the call may ask for
  const service::Principal& principal_;
  std::vector<JobId> jobs_;
  std::set<JobId> seen_;
  std::set<JobId> named_;
  std::vector<v1::LeftOut> unknown_;
  std::vector<Left> left_;
};

}  // namespace trainyard::live
