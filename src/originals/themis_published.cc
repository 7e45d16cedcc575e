// SPDX-License-Identifier: Apache-2.0
// Themis as the simulators of ElasticFlow and Muri have it: served by the shares that minimise the
// largest rho instead of by rho, with fair times in iterations and ages of the last event.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/try.h"
#include "originals/fair_shares.h"
#include "originals/originals.h"
#include "policies/decision_policy.h"
#include "policies/node_room.h"
#include "policies/themis/themis.h"

namespace trainyard::originals {
namespace {

constexpr std::array<OptionSpec, 5> kPublishedThemisOptions{{
    {"lease", OptionSpec::Kind::kNumber, "0",
     "seconds between auctions; 0: an auction at every decision"},
    {"serve", OptionSpec::Kind::kChoice, "share",
     "worst: the largest rho first; share: the largest share of the request first, where the "
     "shares minimise the largest rho; owed: those who have run least for their share, as far as "
     "they fit on the nodes",
     "worst|share|owed"},
    {"iso", OptionSpec::Kind::kChoice, "iterations",
     "a job's fair time is counted in seconds, or in its iterations, whatever its throughput",
     "seconds|iterations"},
    {"age", OptionSpec::Kind::kChoice, "last_event",
     "a job's age is taken now, or as of the last decision at which a job arrived or had left",
     "now|last_event"},
    {"rule", OptionSpec::Kind::kChoice, "analytic-centre",
     "serve=share, serve=owed: which of the shares that are equally good", "analytic-centre"},
}};

enum class Served : std::uint8_t { kWorst, kByShare, kOwed };

struct PublishedThemisSettings {
  Duration lease{};
  Served serve{};
  bool in_iterations = false;
  bool age_of_last_event = false;
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

class PublishedThemisDecision final : public policies::ThemisDecision {
 public:
  PublishedThemisDecision(const PublishedThemisSettings& settings, const Snapshot& snapshot,
                          policies::ThemisMemory& memory)
      : policies::ThemisDecision(settings.lease, snapshot, memory), settings_(settings) {
    if (settings.serve == Served::kOwed) {
      room_.emplace(snapshot);
    }
  }

 private:
  [[nodiscard]] double Unit(const policies::ThemisStanding& job) const override {
    return settings_.in_iterations ? 1.0 : policies::ThemisDecision::Unit(job);
  }
  [[nodiscard]] TimePoint AgesAsOf() const override {
    return settings_.age_of_last_event ? memory().last_event : policies::ThemisDecision::AgesAsOf();
  }
  bool Fits(int gpus) override { return !room_ || room_->Add(gpus); }

  void Rank(std::vector<policies::ThemisStanding>& jobs) override {
    const bool contended = GpusAsked() > snapshot().gpus_up;
    if (settings_.serve == Served::kWorst || (settings_.serve == Served::kByShare && !contended)) {
      return policies::ThemisDecision::Rank(jobs);
    }
    std::vector<Bid> bids;
    bids.reserve(jobs.size());
    for (const policies::ThemisStanding& job : jobs) {
      if (CanRun(job)) {
        const policies::ThemisBid bid = BidOf(job);
        bids.push_back(
            {.gpus = static_cast<double>(job.gpus), .elapsed = bid.elapsed, .ahead = bid.ahead});
      }
    }
    if (contended) {
      SetFairShares(bids, snapshot().gpus_up);
    }
    const bool owed = settings_.serve == Served::kOwed;
    auto bid = bids.cbegin();
    for (policies::ThemisStanding& job : jobs) {
      job.rank = -1;
      if (CanRun(job)) {
        job.rank = owed ? Owed(job, bid->share) : bid->share;
        ++bid;
      }
    }
    std::stable_sort(jobs.begin(), jobs.end(),
                     [owed](const policies::ThemisStanding& a, const policies::ThemisStanding& b) {
                       return a.rank != b.rank || !owed ? a.rank > b.rank : a.id < b.id;
                     });
  }

  // The share per time that the job has run (Muri, reference 6), to five digits: which of two jobs
  // that differ by less comes first is the noise of the published program's solver, and strictly by
  // the exact shares jobs finish much later. Equals in order of the trace.
  [[nodiscard]] double Owed(const policies::ThemisStanding& job, double share) const {
    constexpr double kNeverRan = 1e9;
    const double ran = Seconds(snapshot().jobs->at(job.id).run_time);
    return ToFiveDigits(ran == 0 ? share * kNeverRan : share / ran);
  }

  const PublishedThemisSettings& settings_;
  std::optional<policies::NodeRoom> room_;
};

Result<Components> MakePublishedThemis(const Options& options,
                                       const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(const Duration lease, policies::LeaseOf(options, "themis-published"));
  const std::string& serve = options.Text("serve");
  if (lease > Duration{0} && serve == "owed") {
    return InvalidArgument(
        "policy 'themis-published': serve=owed has no leases; expected lease=0 with it");
  }
  const PublishedThemisSettings settings{.lease = lease,
                                         .serve = serve == "worst"   ? Served::kWorst
                                                  : serve == "share" ? Served::kByShare
                                                                     : Served::kOwed,
                                         .in_iterations = options.Text("iso") == "iterations",
                                         .age_of_last_event = options.Text("age") == "last_event"};
  return policies::PolicyOf<PublishedThemisDecision, policies::ThemisMemory>(
      "themis-published", {.needs = {.work_left = true}}, settings);
}

}  // namespace

ComponentEntry ThemisPublishedEntry() {
  return {ComponentKind::kPolicy, "themis-published",
          "finish-time fairness as published: by shares, with fair times in iterations",
          kPublishedThemisOptions, MakePublishedThemis};
}

}  // namespace trainyard::originals
