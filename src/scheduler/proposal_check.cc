// SPDX-License-Identifier: Apache-2.0
#include "scheduler/proposal_check.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "base/try.h"

namespace trainyard::scheduler {
namespace {

// O(slices) where they are in node order, as mostly.
bool HasANodeTwice(const Slices& slices) {
  const auto in_order = [](const Slice& a, const Slice& b) { return a.node < b.node; };
  const auto not_in_order = [](const Slice& a, const Slice& b) { return a.node >= b.node; };
  if (std::adjacent_find(slices.begin(), slices.end(), not_in_order) == slices.end()) {
    return false;
  }
  Slices sorted = slices;
  std::sort(sorted.begin(), sorted.end(), in_order);
  return std::adjacent_find(sorted.begin(), sorted.end(), not_in_order) != sorted.end();
}

}  // namespace

Error ProposalCheck::Broken(const std::string& what) const {
  const std::string placement(bundle_.placement_name());
  return Failed("policy '" + std::string(bundle_.name()) + "'" +
                (placement.empty() ? "" : " with placement '" + placement + "'") + ": " + what);
}

Error ProposalCheck::Broken(JobId job, const std::string& what) const {
  return Broken("job " + jobs_[job].spec->name + ": " + what);
}

Status ProposalCheck::CheckLive(JobId job, std::string_view to) const {
  if (Index(job) >= jobs_.size() || !jobs_[job].spec) {
    return Failed("policy '" + std::string(bundle_.name()) + "': there is no job " +
                  std::to_string(Index(job)));
  }
  if (!jobs_[job].phase.live()) {
    return Broken(job, "is " + std::string(model::Name(jobs_[job].phase.get())) + " and cannot " +
                           std::string(to));
  }
  return {};
}

Status ProposalCheck::CheckOnce(JobId job) {
  if (!jobs_.IsLive(job)) {
    return CheckLive(job, "hold GPUs");
  }
  if (std::exchange(asked_[Index(job)], check_) == check_) {
    return Broken(job, "is named twice in a proposal");
  }
  return {};
}

Status ProposalCheck::Demands(std::span<const Demand> demands) {
  asked_.resize(jobs_.size(), 0);
  ++check_;
  for (const Demand& demand : demands) {
    if (jobs_.IsLive(demand.job) && demand.gpus < 0) {
      return Broken(demand.job, "is given a negative number of GPUs");
    }
    RETURN_IF_ERROR(CheckOnce(demand.job));
    if (demand.sharing != Sharing::kExclusive || !demand.partners.empty()) {
      RETURN_IF_ERROR(CheckSharing(demand));
    }
  }
  return {};
}

bool ProposalCheck::Asks(JobId job) const {
  const JobSpec& spec = *jobs_[job].spec;
  return bundle_.honours_requests() && spec.traits && spec.traits->request;
}

Status ProposalCheck::CheckSharing(const Demand& demand) {
  if (demand.sharing != Sharing::kExclusive && !bundle_.traits().may.share) {
    return Broken(demand.job, "shares GPUs, which the policy did not announce");
  }
  if (!demand.partners.empty() && demand.sharing != Sharing::kInterleaved) {
    return Broken(demand.job, "has partners, but is not interleaved");
  }
  for (const JobId partner : demand.partners) {
    RETURN_IF_ERROR(CheckOnce(partner));
    if (Asks(partner) || Asks(demand.job)) {
      return Broken(Asks(partner) ? partner : demand.job,
                    "shares its GPUs, and asks for CPUs, memory, nodes or licences for itself");
    }
  }
  return {};
}

Status ProposalCheck::Ends(std::span<const PlannedEnd> ends) const {
  for (const PlannedEnd& end : ends) {
    RETURN_IF_ERROR(CheckLive(end.job, "be given an end"));
  }
  return {};
}

Status ProposalCheck::Verdicts(std::span<const Verdict> verdicts) const {
  std::vector<JobId> judged;
  judged.reserve(verdicts.size());
  for (const Verdict& verdict : verdicts) {
    judged.push_back(verdict.job);
  }
  std::sort(judged.begin(), judged.end());
  // Another policy leaves those that the admission has put off alone.
  std::vector<JobId> expected =
      bundle_.traits().may.admit ? jobs_.unjudged() : std::vector<JobId>();
  std::sort(expected.begin(), expected.end());
  if (judged == expected) {
    return {};
  }
  return Failed("policy '" + std::string(bundle_.name()) + "' gives " +
                std::to_string(judged.size()) + " verdicts for " + std::to_string(expected.size()) +
                " arrivals, or for jobs that did not arrive; expected one for each arrival");
}

Status ProposalCheck::AdmissionVerdicts(std::span<const Verdict> verdicts) const {
  if (std::equal(verdicts.begin(), verdicts.end(), jobs_.unjudged().begin(), jobs_.unjudged().end(),
                 [](const Verdict& verdict, JobId job) { return verdict.job == job; })) {
    return {};  // as most admissions do
  }
  std::vector<JobId> left = jobs_.unjudged();
  std::sort(left.begin(), left.end());
  std::vector<JobId> judged;
  judged.reserve(verdicts.size());
  for (const Verdict& verdict : verdicts) {
    judged.push_back(verdict.job);
  }
  std::sort(judged.begin(), judged.end());
  if (std::includes(left.begin(), left.end(), judged.begin(), judged.end())) {
    return {};
  }
  return Failed(
      "admission '" + std::string(bundle_.admission->name()) +
      "' judges a job twice, or one that does not wait for a verdict; expected at most one "
      "verdict for each job of Snapshot::unjudged");
}

Status ProposalCheck::Named(const Demand& demand) const {
  if (demand.slices.empty() != (demand.gpus == 0)) {
    return Broken(demand.job, demand.gpus == 0 ? "is given no GPUs, but some are named"
                                               : "is given GPUs, but none are named");
  }
  if (HasANodeTwice(demand.slices)) {
    return Broken(demand.job, "is given GPUs of one node in two slices");
  }
  for (const Slice& slice : demand.slices) {
    if (Index(slice.node) >= cluster_.nodes.size()) {
      return Broken(demand.job, "is given GPUs of a node that there is not");
    }
    const NodeSpec& node = cluster_.nodes[Index(slice.node)];
    if (!nodes_up_[Index(slice.node)]) {
      return Broken(demand.job, "is given GPUs of node " + node.name + ", which is down");
    }
    if (slice.gpus == 0 || kMaxGpusPerNode - std::countl_zero(slice.gpus) > node.gpus) {
      return Broken(demand.job, "is given GPUs that node " + node.name + " does not have");
    }
  }
  return {};
}

}  // namespace trainyard::scheduler
