// SPDX-License-Identifier: Apache-2.0
#include "policies/themis/themis.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "policies/decision_policy.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 1> kThemisOptions{{
    {"lease", OptionSpec::Kind::kNumber, "600",
     "seconds between auctions; 0: an auction at every decision"},
}};

// By id, which is most often their order already.
std::vector<JobId> Sorted(std::vector<JobId> jobs) {
  if (!std::is_sorted(jobs.begin(), jobs.end())) {
    std::sort(jobs.begin(), jobs.end());
  }
  return jobs;
}

Result<Components> MakeThemis(const Options& options, const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(const Duration lease, LeaseOf(options, "themis"));
  return PolicyOf<ThemisDecision, ThemisMemory>("themis", {.needs = {.work_left = true}}, lease);
}

}  // namespace

Result<Duration> LeaseOf(const Options& options, std::string_view policy) {
  constexpr double kLongestLease = 1e9;  // seconds
  const double lease = options.Number("lease");
  if (lease > kLongestLease) {
    return InvalidArgument("policy '" + std::string(policy) +
                           "': lease must be at most 1e9 seconds");
  }
  return FromSeconds(lease);
}

ThemisDecision::ThemisDecision(Duration lease, const Snapshot& snapshot, ThemisMemory& memory)
    : lease_(lease), snapshot_(snapshot), memory_(memory), jobs_(memory.jobs) {}

Proposal ThemisDecision::Take() {
  const bool changed = Meet();
  Account();
  const bool anyone_runs = std::any_of(jobs_.begin(), jobs_.end(),
                                       [this](const ThemisStanding& job) { return Runs(job); });
  const bool auction = !leases() || !anyone_runs || snapshot_.now >= memory_.lease_end;
  if (auction) {
    Rank(jobs_);
    memory_.lease_end = snapshot_.now + lease_;
  }
  Proposal proposal;
  const bool all_served = Serve(auction, proposal.demands);
  // Where nothing runs and nothing has changed, the next auction would end as this one did.
  if (leases() && !all_served && (anyone_runs || changed)) {
    proposal.wake_at = memory_.lease_end;
  }
  return proposal;
}

bool ThemisDecision::CanRun(const ThemisStanding& job) const {
  return job.rate > 0 && job.gpus <= snapshot_.gpus_up;
}

bool ThemisDecision::Runs(const ThemisStanding& job) const {
  return snapshot_.jobs->grant(job.id).gpus > 0;
}

// Jobs that have gone leave the order, new ones join its tail. True: something has changed.
bool ThemisDecision::Meet() {
  const int gpus_before = std::exchange(memory_.gpus_up, snapshot_.gpus_up);
  const bool event = !SameJobs() && MeetJobs();
  if (event) {
    memory_.last_event = snapshot_.now;
  }
  return event || gpus_before != snapshot_.gpus_up;
}

bool ThemisDecision::SameJobs() const {
  const std::span<const JobId> live = snapshot_.jobs->live();
  return std::equal(live.begin(), live.end(), memory_.live.begin(), memory_.live.end());
}

// True: a job came or has gone.
bool ThemisDecision::MeetJobs() {
  const std::span<const JobId> live = snapshot_.jobs->live();
  const std::vector<JobId> before = Sorted(memory_.live);  // those of jobs_
  memory_.live.assign(live.begin(), live.end());
  const std::vector<JobId> present = Sorted(memory_.live);
  std::vector<JobId> gone;
  std::set_difference(before.begin(), before.end(), present.begin(), present.end(),
                      std::back_inserter(gone));
  std::vector<JobId> come;
  std::set_difference(present.begin(), present.end(), before.begin(), before.end(),
                      std::back_inserter(come));
  if (!gone.empty()) {
    std::erase_if(jobs_, [&gone](const ThemisStanding& job) {
      return std::binary_search(gone.begin(), gone.end(), job.id);
    });
  }
  if (!come.empty()) {
    for (const JobId id : live) {
      if (std::binary_search(come.begin(), come.end(), id)) {
        const JobView view = snapshot_.jobs->at(id);
        jobs_.push_back({.id = id,
                         .gpus = view.spec->gpus,
                         .submit = view.spec->submit,
                         .rate = snapshot_.rates->Rate(*view.spec, view.spec->gpus),
                         .work_left = WorkLeft(id)});
      }
    }
  }
  return !gone.empty() || !come.empty();
}

double ThemisDecision::WorkLeft(JobId job) const {
  return std::max(0.0, snapshot_.jobs->work_left(job));
}

// Work done since the last decision counts at the fair share of that time; work that a failure
// has undone is taken off again.
void ThemisDecision::Account() {
  const auto able = static_cast<int>(std::count_if(
      jobs_.begin(), jobs_.end(), [this](const ThemisStanding& job) { return CanRun(job); }));
  const int fair = able == 0 ? 0 : (snapshot_.gpus_up + able - 1) / able;
  for (ThemisStanding& job : jobs_) {
    if (!CanRun(job)) {
      continue;
    }
    const double left = WorkLeft(job.id);
    const double done = (job.work_left - left) / (job.share * Unit(job));
    job.fair_time = std::max(0.0, job.fair_time + done);
    job.work_left = left;
    job.share = std::min(1.0, static_cast<double>(fair) / job.gpus);
  }
}

ThemisBid ThemisDecision::BidOf(const ThemisStanding& job) const {
  const double iso = job.fair_time + job.work_left / (job.share * Unit(job));
  return {.elapsed = Seconds(AgesAsOf() - job.submit) / iso,
          .ahead = job.work_left / (job.rate * iso)};
}

int ThemisDecision::GpusAsked() const {
  int asked = 0;
  for (const ThemisStanding& job : jobs_) {
    asked += CanRun(job) ? job.gpus : 0;
  }
  return asked;
}

// Jobs of equal rank keep their former order, as do all where there is room for everybody.
void ThemisDecision::Rank(std::vector<ThemisStanding>& jobs) {
  if (GpusAsked() <= snapshot_.gpus_up) {
    return;
  }
  for (ThemisStanding& job : jobs) {
    const ThemisBid bid = CanRun(job) ? BidOf(job) : ThemisBid{.elapsed = -1};
    job.rank = bid.elapsed + bid.ahead;
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const ThemisStanding& a, const ThemisStanding& b) {
    return a.rank > b.rank;
  });
}

// By count; who does not fit is passed over. Between auctions running jobs keep their GPUs. True:
// everybody who can run does so already and goes on.
bool ThemisDecision::Serve(bool auction, std::vector<Demand>& demands) {
  int free = snapshot_.gpus_up;
  for (const ThemisStanding& job : jobs_) {
    free -= auction ? 0 : snapshot_.jobs->grant(job.id).gpus;
  }
  bool all_served = true;
  demands.reserve(std::min(jobs_.size(), static_cast<std::size_t>(snapshot_.gpus_up)));
  for (const ThemisStanding& job : jobs_) {
    const bool runs = Runs(job);
    const bool keeps = runs && !auction;
    const bool taken = keeps || (CanRun(job) && job.gpus <= free && Fits(job.gpus));
    all_served = all_served && (CanRun(job) ? runs && taken : true);
    if (taken) {
      demands.push_back({.job = job.id, .gpus = job.gpus, .may_split = true});
      free -= keeps ? 0 : job.gpus;
    }
  }
  return all_served;
}

ComponentEntry ThemisEntry() {
  return {ComponentKind::kPolicy, "themis",
          "finish-time fairness: the jobs farthest behind their fair share first", kThemisOptions,
          MakeThemis};
}

}  // namespace trainyard::policies
