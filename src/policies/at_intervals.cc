// SPDX-License-Identifier: Apache-2.0
#include "policies/at_intervals.h"

#include <algorithm>

namespace trainyard::policies {
namespace {

void AddJob(const JobView& job, base::Fnv1a& print) {
  print.Add(std::uint64_t{Index(job.id)});
  print.Add(static_cast<std::uint64_t>(job.spec->gpus));
  if (job.spec->traits) {
    print.Add(static_cast<std::uint64_t>(job.spec->traits->range.least));
    print.Add(static_cast<std::uint64_t>(job.spec->traits->range.most));
  }
  if (job.grant != nullptr) {
    for (const Slice& slice : job.grant->slices) {
      print.Add(std::uint64_t{Index(slice.node)});
      print.Add(slice.gpus);
    }
  }
  for (const Metric& metric : job.reported) {
    print.Add(metric.value);
  }
}

}  // namespace

base::Fnv1a DigestOf(const Snapshot& snapshot) {
  base::Fnv1a print;
  print.Add(snapshot.node_changes);
  print.Add(snapshot.cluster->nodes.size());
  for (const JobId id : snapshot.jobs->live()) {
    AddJob(snapshot.jobs->at(id), print);
  }
  return print;
}

Proposal ProposalToKeep(const JobTable& jobs) {
  Proposal proposal;
  for (const JobId id : jobs.live()) {
    if (const Grant& grant = jobs.grant(id); grant.gpus > 0) {
      proposal.demands.push_back({.job = id, .gpus = grant.gpus, .slices = grant.slices});
    }
  }
  return proposal;
}

bool LastAllocation::Repeats(const Snapshot& snapshot, std::uint64_t digest, bool may_rest) {
  constexpr int kTimesOlder = 10;  // by a tenth
  if (may_rest && digest == of && (snapshot.now - at) * kTimesOlder < youngest) {
    return true;
  }
  of = digest;
  at = snapshot.now;
  youngest = Duration::max();
  for (const JobId id : snapshot.jobs->live()) {
    youngest = std::min(youngest, snapshot.now - snapshot.jobs->spec(id).submit);
  }
  return false;
}

}  // namespace trainyard::policies
