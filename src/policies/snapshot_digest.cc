// SPDX-License-Identifier: Apache-2.0
#include "policies/snapshot_digest.h"

#include <bit>

namespace trainyard::policies {
namespace {

class Fingerprint {
 public:
  void Add(std::uint64_t number) { value_ = (value_ ^ number) * 0x100000001B3U; }
  void Add(double number) { Add(std::bit_cast<std::uint64_t>(number)); }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325U;
};

void AddJob(const JobView& job, Fingerprint& print) {
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

std::uint64_t DigestOf(const Snapshot& snapshot) {
  Fingerprint print;
  print.Add(snapshot.node_changes);
  print.Add(snapshot.cluster->nodes.size());
  for (const JobId id : snapshot.jobs->live()) {
    AddJob(snapshot.jobs->at(id), print);
  }
  return print.value();
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

}  // namespace trainyard::policies
