// SPDX-License-Identifier: Apache-2.0
// EASY backfilling: in order of arrival, without preemption. The first job that does not fit has a
// reservation, which those behind it do not delay. D. Lifka, "The ANL/IBM SP scheduling system",
// JSSPP'95; `order=shortest`: D. Tsafrir, Y. Etsion, D. Feitelson, TPDS 18(6), 2007. With weights
// the order is that of Slurm's multifactor priorities.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/try.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr int kMostReservations = 1'000'000;

constexpr std::array<OptionSpec, 8> kBackfillOptions{{
    {"order", OptionSpec::Kind::kChoice, "arrival",
     "in which those behind the first that does not fit are tried", "arrival|shortest"},
    {"times", OptionSpec::Kind::kChoice, "limit",
     "for how long a job runs: its time limit, or without one an estimate; or always the estimate",
     "limit|estimate"},
    {"reservations", OptionSpec::Kind::kNumber, "1",
     "of how many jobs that do not fit nobody behind them takes the GPUs"},
    {"weight_age", OptionSpec::Kind::kNumber, "0", "points of a job that has waited for max_age"},
    {"max_age", OptionSpec::Kind::kNumber, "604800",
     "seconds after which waiting earns no more points"},
    {"weight_job_size", OptionSpec::Kind::kNumber, "0",
     "points of a job that asks for the whole cluster"},
    {"favor", OptionSpec::Kind::kChoice, "large", "whom weight_job_size favours", "large|small"},
    {"weight_priority", OptionSpec::Kind::kNumber, "0",
     "points for each unit of the priority that the job states"},
}};

// Slurm's multifactor priority: more points go first, of equals the earlier arrival.
struct Weights {
  double age = 0;
  double max_age = 0;  // seconds
  double size = 0;
  bool favors_small = false;
  double priority = 0;

  [[nodiscard]] bool any() const { return age > 0 || size > 0 || priority > 0; }
  [[nodiscard]] double PointsOf(const JobView& job) const {
    const double waited = std::min(Seconds(job.waited) / max_age, 1.0);
    const double share = std::min(job.shares.gpus, 1.0);
    return age * waited + size * (favors_small ? 1 - share : share) + priority * job.spec->priority;
  }
};

class EasyBackfill final : public Ordering {
 public:
  EasyBackfill(const Options& options, const Weights& weights)
      : shortest_first_(options.Text("order") == "shortest"),
        by_limit_(options.Text("times") == "limit"),
        reservations_(static_cast<int>(options.Number("reservations"))),
        weights_(weights) {}
  [[nodiscard]] std::string_view name() const override { return "backfill"; }
  [[nodiscard]] OrderingTraits traits() const override {
    return {.moves = weights_.any() ? kAlways : kNeverMoves,
            .needs = {.work_left = true, .priorities = weights_.priority > 0},
            .walk = {.misfit = Misfit::kReserve,
                     .preempt = false,
                     .shortest_first = shortest_first_,
                     .reservations = reservations_}};
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {weights_.any() ? -weights_.PointsOf(job) : 0}, .takes = TimeOf(job)};
  }

 private:
  [[nodiscard]] std::optional<Duration> TimeOf(const JobView& job) const {
    const bool has_limit = by_limit_ && job.spec->traits && job.spec->traits->time_limit;
    return has_limit ? std::optional(*job.spec->traits->time_limit - job.run_time) : job.time_left;
  }

  const bool shortest_first_;
  const bool by_limit_;
  const int reservations_;
  const Weights weights_;
};

Result<Components> MakeBackfill(const Options& options, const ComponentContext& /*context*/) {
  const Weights weights{.age = options.Number("weight_age"),
                        .max_age = options.Number("max_age"),
                        .size = options.Number("weight_job_size"),
                        .favors_small = options.Text("favor") == "small",
                        .priority = options.Number("weight_priority")};
  if (weights.max_age <= 0) {
    return InvalidArgument("policy 'backfill': max_age is 0; expected seconds, such as 604800");
  }
  const double reservations = options.Number("reservations");
  if (reservations < 1 || reservations > kMostReservations ||
      reservations != std::trunc(reservations)) {
    return InvalidArgument(
        fmt::format("policy 'backfill': reservations is {}; expected a whole number from 1 to {}",
                    options.Text("reservations"), kMostReservations));
  }
  return Components{.ordering = std::make_unique<EasyBackfill>(options, weights)};
}

}  // namespace

ComponentEntry BackfillEntry() {
  return {ComponentKind::kPolicy, "backfill",
          "FIFO in which smaller jobs go before where they do not delay the first (EASY)",
          kBackfillOptions, MakeBackfill};
}

}  // namespace trainyard::policies
