// SPDX-License-Identifier: Apache-2.0
// EASY backfilling: in order of arrival, without preemption. The first job that does not fit has a
// reservation, which those behind it do not delay. D. Lifka, "The ANL/IBM SP scheduling system",
// JSSPP'95; `order=shortest`: D. Tsafrir, Y. Etsion, D. Feitelson, TPDS 18(6), 2007.
#include <array>
#include <optional>

#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 2> kBackfillOptions{{
    {"order", OptionSpec::Kind::kChoice, "arrival",
     "in which those behind the first that does not fit are tried", "arrival|shortest"},
    {"times", OptionSpec::Kind::kChoice, "limit",
     "for how long a job runs: its time limit, or without one an estimate; or always the estimate",
     "limit|estimate"},
}};

class EasyBackfill final : public Ordering {
 public:
  explicit EasyBackfill(const Options& options)
      : shortest_first_(options.Text("order") == "shortest"),
        by_limit_(options.Text("times") == "limit") {}
  [[nodiscard]] std::string_view name() const override { return "backfill"; }
  [[nodiscard]] OrderingTraits traits() const override {
    return {
        .needs = {.work_left = true},
        .walk = {.misfit = Misfit::kReserve, .preempt = false, .shortest_first = shortest_first_}};
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.takes = TimeOf(job)};
  }

 private:
  [[nodiscard]] std::optional<Duration> TimeOf(const JobView& job) const {
    const bool has_limit = by_limit_ && job.spec->traits && job.spec->traits->time_limit;
    return has_limit ? std::optional(*job.spec->traits->time_limit - job.run_time) : job.time_left;
  }

  const bool shortest_first_;
  const bool by_limit_;
};

}  // namespace

ComponentEntry BackfillEntry() {
  return {ComponentKind::kPolicy, "backfill",
          "FIFO in which smaller jobs go before where they do not delay the first (EASY)",
          kBackfillOptions, base::MakeOf<EasyBackfill>};
}

}  // namespace trainyard::policies
