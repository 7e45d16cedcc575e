// SPDX-License-Identifier: Apache-2.0
// Themis (NSDI'20): finish-time fairness. rho of a job is its time from submission to finish over
// what that would be with a fair share of the cluster all along. Jobs hold their GPUs for a lease;
// then an auction serves those with the worst rho first, or (`serve=share`) by the shares that
// minimise the largest rho.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "policy/fair_shares.h"
#include "policy/node_room.h"
#include "policy/policies.h"
#include "trainyard/state.h"

namespace trainyard {
namespace {

constexpr double kLongestLease = 1e9;  // seconds

constexpr std::array<OptionSpec, 5> kThemisOptions{{
    {"lease", OptionSpec::Kind::kNumber, "600",
     "seconds between auctions; 0: an auction at every decision"},
    {"serve", OptionSpec::Kind::kChoice, "worst",
     "worst: the largest rho first; share: the largest share of the request first, where the "
     "shares minimise the largest rho; owed: those who have run least for their share, as far as "
     "they fit on the nodes",
     "worst|share|owed"},
    {"iso", OptionSpec::Kind::kChoice, "seconds",
     "a job's fair time is counted in seconds, or in its iterations, whatever its throughput",
     "seconds|iterations"},
    {"age", OptionSpec::Kind::kChoice, "now",
     "a job's age is taken now, or as of the last decision at which a job arrived or had left",
     "now|last_event"},
    {"rule", OptionSpec::Kind::kChoice, "analytic-centre",
     "serve=share, serve=owed: which of the shares that are equally good", "analytic-centre"},
}};

struct ThemisSettings {
  Duration lease{};
  bool by_share = false;
  bool by_owed = false;  // by_share, too
  bool in_iterations = false;
  bool age_of_last_event = false;
};

// What the policy knows of a live job.
struct ThemisStanding {
  JobId id{};
  int gpus = 0;  // requested
  TimePoint submit{};
  double rate = 0;       // on the requested GPUs; 0: it cannot run now
  double work_left = 0;  // as of the last decision
  double share = 1;      // fair share of the request since the last decision
  double fair_time = 0;  // how long the work done so far takes on the fair shares of the past
  double rank = 0;       // as of the last auction; larger first

  void Serialize(StateStream& state) {
    state(id, gpus, submit, rate, work_left, share, fair_time, rank);
  }
};

struct Runnable final : Memory {
  std::vector<ThemisStanding> jobs;  // in the order of the last auction, then of arrival
  std::vector<JobId> live;           // the same, as the engine visited them
  int gpus_up = 0;
  TimePoint last_event{};  // last decision at which a job came or had gone
  TimePoint lease_end{};

  void Serialize(StateStream& state) override { state(jobs, live, gpus_up, last_event, lease_end); }
};

// To five significant decimal digits.
double ToFiveDigits(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value,
                                          std::chars_format::scientific, 4);
  double rounded = value;
  std::from_chars(text.data(), end, rounded);
  return rounded;
}

class ThemisDecision {
 public:
  ThemisDecision(const ThemisSettings& settings, const Snapshot& snapshot, Runnable& memory)
      : settings_(settings), snapshot_(snapshot), memory_(memory), jobs_(memory.jobs) {}

  Proposal Take() {
    const bool changed = Meet();
    Account();
    const bool anyone_runs = std::any_of(jobs_.begin(), jobs_.end(),
                                         [this](const ThemisStanding& job) { return Runs(job); });
    const bool auction = !leases() || !anyone_runs || snapshot_.now >= memory_.lease_end;
    if (auction) {
      Rank();
      memory_.lease_end = snapshot_.now + settings_.lease;
    }
    Proposal proposal;
    const bool all_served = Serve(auction, proposal.demands);
    // Where nothing runs and nothing has changed, the next auction would end as this one did.
    if (leases() && !all_served && (anyone_runs || changed)) {
      proposal.wake_at = memory_.lease_end;
    }
    return proposal;
  }

 private:
  [[nodiscard]] bool leases() const { return settings_.lease > Duration{0}; }
  [[nodiscard]] bool CanRun(const ThemisStanding& job) const {
    return job.rate > 0 && job.gpus <= snapshot_.gpus_up;
  }
  [[nodiscard]] bool Runs(const ThemisStanding& job) const {
    return snapshot_.jobs->grant(job.id).gpus > 0;
  }
  // Work that counts as one unit of fair time on the full request.
  [[nodiscard]] double Unit(const ThemisStanding& job) const {
    return settings_.in_iterations ? 1.0 : job.rate;
  }

  // Jobs that have gone leave the order, new ones join its tail. True: something has changed.
  bool Meet() {
    const int gpus_before = std::exchange(memory_.gpus_up, snapshot_.gpus_up);
    const bool event = !SameJobs() && MeetJobs();
    if (event) {
      memory_.last_event = snapshot_.now;
    }
    return event || gpus_before != snapshot_.gpus_up;
  }

  [[nodiscard]] bool SameJobs() const {
    const std::span<const JobId> live = snapshot_.jobs->live();
    return std::equal(live.begin(), live.end(), memory_.live.begin(), memory_.live.end());
  }

  // True: a job came or has gone.
  bool MeetJobs() {
    const std::span<const JobId> live = snapshot_.jobs->live();
    memory_.live.assign(live.begin(), live.end());
    std::vector<JobId> present = memory_.live;
    std::sort(present.begin(), present.end());
    const bool gone = std::erase_if(jobs_, [&present](const ThemisStanding& job) {
                        return !std::binary_search(present.begin(), present.end(), job.id);
                      }) > 0;
    std::vector<JobId> known;
    known.reserve(jobs_.size());
    for (const ThemisStanding& job : jobs_) {
      known.push_back(job.id);
    }
    std::sort(known.begin(), known.end());
    for (const JobId id : live) {
      if (!std::binary_search(known.begin(), known.end(), id)) {
        const JobView view = snapshot_.jobs->at(id);
        jobs_.push_back({.id = id,
                         .gpus = view.spec->gpus,
                         .submit = view.spec->submit,
                         .rate = snapshot_.rates->Rate(*view.spec, view.spec->gpus),
                         .work_left = WorkLeft(id)});
      }
    }
    return gone || jobs_.size() > known.size();
  }

  [[nodiscard]] double WorkLeft(JobId job) const {
    return std::max(0.0, snapshot_.jobs->work_left(job));
  }

  // Work done since the last decision counts at the fair share of that time; work that a failure
  // has undone is taken off again.
  void Account() {
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

  [[nodiscard]] Bid BidOf(const ThemisStanding& job) const {
    const TimePoint as_of = settings_.age_of_last_event ? memory_.last_event : snapshot_.now;
    const double iso = job.fair_time + job.work_left / (job.share * Unit(job));
    return {.gpus = static_cast<double>(job.gpus),
            .elapsed = Seconds(as_of - job.submit) / iso,
            .ahead = job.work_left / (job.rate * iso)};
  }

  // The order for this lease. Jobs of equal rank keep their former order, as do all where there is
  // room for everybody.
  void Rank() {
    std::vector<Bid> bids;
    bids.reserve(jobs_.size());
    int asked = 0;
    for (const ThemisStanding& job : jobs_) {
      if (CanRun(job)) {
        bids.push_back(BidOf(job));
        asked += job.gpus;
      }
    }
    if (asked > snapshot_.gpus_up && settings_.by_share) {
      SetFairShares(bids, snapshot_.gpus_up);
    }
    if (settings_.by_owed) {
      return RankByOwed(bids);
    }
    if (asked <= snapshot_.gpus_up) {
      return;
    }
    auto bid = bids.cbegin();
    for (ThemisStanding& job : jobs_) {
      job.rank = -1;
      if (CanRun(job)) {
        job.rank = settings_.by_share ? bid->share : bid->elapsed + bid->ahead;
        ++bid;
      }
    }
    std::stable_sort(
        jobs_.begin(), jobs_.end(),
        [](const ThemisStanding& a, const ThemisStanding& b) { return a.rank > b.rank; });
  }

  // The share per time that the job has run (Muri, reference 6), to five digits: which of two jobs
  // that differ by less comes first is the noise of the published program's solver, and strictly by
  // the exact shares jobs finish much later. Equals in order of the trace.
  void RankByOwed(const std::vector<Bid>& bids) {
    constexpr double kNeverRan = 1e9;
    auto bid = bids.cbegin();
    for (ThemisStanding& job : jobs_) {
      job.rank = -1;
      if (CanRun(job)) {
        const double ran = Seconds(snapshot_.jobs->at(job.id).run_time);
        job.rank = ToFiveDigits(ran == 0 ? bid->share * kNeverRan : bid->share / ran);
        ++bid;
      }
    }
    std::stable_sort(jobs_.begin(), jobs_.end(),
                     [](const ThemisStanding& a, const ThemisStanding& b) {
                       return a.rank != b.rank ? a.rank > b.rank : a.id < b.id;
                     });
  }

  // By count, or by node; who does not fit is passed over. Between auctions running jobs keep their
  // GPUs. True: everybody who can run does so already and goes on.
  bool Serve(bool auction, std::vector<Demand>& demands) const {
    int free = snapshot_.gpus_up;
    for (const ThemisStanding& job : jobs_) {
      free -= auction ? 0 : snapshot_.jobs->grant(job.id).gpus;
    }
    bool all_served = true;
    std::optional<NodeRoom> room;
    if (settings_.by_owed) {
      room.emplace(snapshot_);
    }
    demands.reserve(std::min(jobs_.size(), static_cast<std::size_t>(snapshot_.gpus_up)));
    for (const ThemisStanding& job : jobs_) {
      const bool runs = Runs(job);
      const bool keeps = runs && !auction;
      const bool taken =
          keeps || (CanRun(job) && job.gpus <= free && (!room || room->Add(job.gpus)));
      all_served = all_served && (CanRun(job) ? runs && taken : true);
      if (taken) {
        demands.push_back({.job = job.id, .gpus = job.gpus, .may_split = true});
        free -= keeps ? 0 : job.gpus;
      }
    }
    return all_served;
  }

  const ThemisSettings& settings_;
  const Snapshot& snapshot_;
  Runnable& memory_;
  std::vector<ThemisStanding>& jobs_;
};

class Themis final : public Policy {
 public:
  explicit Themis(const ThemisSettings& settings) : settings_(settings) {}

  [[nodiscard]] std::string_view name() const override { return "themis"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<Runnable>();
  }
  [[nodiscard]] PolicyTraits traits() const override { return {.needs = {.work_left = true}}; }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    return ThemisDecision(settings_, snapshot, static_cast<Runnable&>(*memory)).Take();
  }

 private:
  const ThemisSettings settings_;
};

Result<Components> MakeThemis(const Options& options, const ComponentContext& /*context*/) {
  const double lease = options.Number("lease");
  if (lease > 0 && options.Text("serve") == "owed") {
    return InvalidArgument("policy 'themis': serve=owed has no leases; expected lease=0 with it");
  }
  if (lease > kLongestLease) {
    return InvalidArgument("policy 'themis': lease must be at most 1e9 seconds");
  }
  return Components{.policy = std::make_unique<Themis>(
                        ThemisSettings{.lease = FromSeconds(lease),
                                       .by_share = options.Text("serve") != "worst",
                                       .by_owed = options.Text("serve") == "owed",
                                       .in_iterations = options.Text("iso") == "iterations",
                                       .age_of_last_event = options.Text("age") == "last_event"})};
}

}  // namespace

ComponentEntry ThemisEntry() {
  return {ComponentKind::kPolicy, "themis",
          "finish-time fairness: the jobs farthest behind their fair share first", kThemisOptions,
          MakeThemis};
}

}  // namespace trainyard
