// SPDX-License-Identifier: Apache-2.0
// Tiresias with the checks of published simulators: they count whole seconds, take executed time,
// not service, from a threshold, demote by one queue at an instant, and do not end a job's starving
// when it runs.
#include "originals/tiresias_published.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "base/try.h"
#include "originals/originals.h"
#include "policies/orderings/tiresias.h"

namespace trainyard::originals {
namespace {

constexpr std::array<OptionSpec, 7> kPublishedTiresiasOptions{{
    policies::kTiresiasOptions[0],
    policies::kTiresiasOptions[1],
    policies::kTiresiasOptions[2],
    policies::kTiresiasOptions[3],
    policies::kTiresiasOptions[4],
    {"counts", OptionSpec::Kind::kChoice, "held",
     "time with GPUs, or without the restart costs in it", "held|productive"},
    {"check", OptionSpec::Kind::kChoice, "floor",
     "whose whole-second rules: of Tiresias (floor), ElasticFlow (ceil) or Muri (whole)",
     "floor|ceil|whole"},
}};

enum class Check : std::uint8_t { kFloor, kCeil, kWhole };

class PublishedTiresias final : public policies::Tiresias {
 public:
  PublishedTiresias(policies::TiresiasSettings settings, bool productive, Check check)
      : policies::Tiresias(std::move(settings)), productive_(productive), check_(check) {}

  [[nodiscard]] std::string_view name() const override { return "tiresias-published"; }
  [[nodiscard]] OrderingTraits traits() const override {
    OrderingTraits traits = policies::Tiresias::traits();
    traits.sets_wake = true;
    return traits;
  }

  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint now,
                                    const Memory* memory) const override {
    Standing standing = policies::Tiresias::StandingOf(job, now, memory);
    const policies::TiresiasStanding& at = Of(job, memory);
    if (settings().gittins) {
      standing.key = {standing.key[0], standing.key[1], Micros(job.spec->submit), at.band};
    }
    if (standing.moves_at) {
      // Rounding must not put it behind the wake-up that is meant for it.
      constexpr double kRounding = 1e-9;
      standing.moves_at =
          now + std::max(Duration{0}, CeilFromSeconds(LeftToMove(job, at) - kRounding));
    }
    return standing;
  }

  void Notify(JobEvent event, const JobView& job, TimePoint now, Memory* memory) const override {
    auto& queues = static_cast<policies::TiresiasQueues&>(*memory);
    if (event == JobEvent::kDue && job.grant != nullptr) {
      (void)Demote(job, queues.Of(job.id), queues);
      return;
    }
    const double waited_before = queues.Of(job.id).waited_before;
    policies::Tiresias::Notify(event, job, now, memory);
    if (event == JobEvent::kSettled && job.grant == nullptr) {
      queues.Of(job.id).waited_before = waited_before;  // it starves on
    }
  }

  [[nodiscard]] std::optional<TimePoint> NextWake(const Snapshot& snapshot,
                                                  const Memory* memory) const override {
    std::optional<TimePoint> wake;
    for (const JobId id : snapshot.jobs->live()) {
      const JobView job = snapshot.jobs->at(id);
      if (const std::optional<double> left = LeftToWake(job, Of(job, memory))) {
        const TimePoint at = snapshot.now + FromSeconds(*left);
        wake = wake ? std::min(*wake, at) : at;
      }
    }
    return wake;
  }

 private:
  [[nodiscard]] double Served(const JobView& job) const override {
    return productive_ ? Seconds(job.productive_time) : policies::Tiresias::Served(job);
  }
  [[nodiscard]] double Executed(const JobView& job,
                                const policies::TiresiasStanding& standing) const override {
    const double executed = policies::Tiresias::Executed(job, standing);
    return check_ == Check::kWhole ? executed : std::floor(executed);
  }
  [[nodiscard]] double StarvesAfter(const JobView& job,
                                    const policies::TiresiasStanding& standing) const override {
    return std::trunc(policies::Tiresias::StarvesAfter(job, standing));
  }

  // Seconds until the job has attained its threshold or starved long enough. REQUIRES: one of both
  // will be.
  [[nodiscard]] double LeftToMove(const JobView& job,
                                  const policies::TiresiasStanding& standing) const {
    const std::optional<double> threshold = ThresholdOf(job, standing);
    if (!threshold) {
      return StarvesAfter(job, standing) - Starved(job, standing);
    }
    return check_ == Check::kWhole
               ? (*threshold - Attained(job, standing)) / Weight(job)
               : std::ceil(*threshold / Weight(job)) - policies::Tiresias::Executed(job, standing);
  }

  // Tiresias reference 2.3 step 8, ElasticFlow reference 6.1: executed time, not service, is taken
  // from the threshold. Muri reference 5: after the whole second of run time in which it is
  // reached. A threshold that is not attained has a check in time to come, where the originals
  // would check for ever: with thresholds of fewer GPU-seconds than a job has GPUs, and where times
  // are no whole seconds.
  [[nodiscard]] std::optional<double> LeftToWake(const JobView& job,
                                                 const policies::TiresiasStanding& standing) const {
    if (const std::optional<double> threshold = ThresholdOf(job, standing)) {
      const double executed = Executed(job, standing);
      const double missing = (*threshold - executed) / Weight(job);
      const double left = check_ == Check::kWhole   ? std::ceil(*threshold / Weight(job)) - executed
                          : check_ == Check::kFloor ? std::floor(missing)
                                                    : std::ceil(missing);
      constexpr double kShortest = 1e-6;
      return Attained(job, standing) >= *threshold
                 ? left
                 : std::max(left, check_ == Check::kWhole ? kShortest : 1.0);
    }
    if (MayStarve(job, standing)) {
      const double left =
          std::trunc(policies::Tiresias::StarvesAfter(job, standing) - Starved(job, standing));
      return left > 0 ? std::optional<double>(left) : std::nullopt;
    }
    return std::nullopt;
  }

  const bool productive_;
  const Check check_;
};

Result<Components> MakePublishedTiresias(const Options& options, const ComponentContext& context) {
  ASSIGN_OR_RETURN(policies::TiresiasSettings settings,
                   policies::TiresiasSettingsOf(options, context, "tiresias-published"));
  const std::string& check = options.Text("check");
  if (settings.gittins && check == "floor") {
    settings.gittins = std::make_shared<PublishedGittins>(*settings.gittins);
  }
  return Components{.ordering = std::make_unique<PublishedTiresias>(
                        std::move(settings), options.Text("counts") == "productive",
                        check == "floor"  ? Check::kFloor
                        : check == "ceil" ? Check::kCeil
                                          : Check::kWhole)};
}

// Half away from zero, as Python 2 rounds.
double RoundTo(double value, double scale) { return std::round(value * scale) / scale; }

}  // namespace

PublishedGittins::PublishedGittins(const policies::GittinsIndex& index)
    : policies::GittinsIndex(index) {
  for (const double sample : samples()) {
    table_.push_back(Rounded(sample - 1));
  }
}

double PublishedGittins::At(double attained) const {
  const std::size_t from = FirstAbove(attained);
  return from == table_.size() ? 0 : table_[from];
}

// The last sample never counts as ending, and the service is that of whole jobs, not of what is
// left of them.
double PublishedGittins::Rounded(double attained) const {
  const double last = samples().back() - 1;
  if (attained > last) {
    return 0;
  }
  const std::size_t from = FirstAbove(attained);
  const std::size_t to =
      attained + horizon() > last ? samples().size() - 1 : FirstAbove(attained + horizon());
  const auto left = static_cast<double>(samples().size() - from);
  const double chance = RoundTo(static_cast<double>(to - from) / left, 1e5);
  const double service = std::floor((SumOf(from, to) + Beyond(to)) / left);
  return chance > 0 && service > 0 ? RoundTo(chance * 1e6 / service, 1e4) : 0;
}

ComponentEntry TiresiasPublishedEntry() {
  return {ComponentKind::kPolicy, "tiresias-published",
          "Tiresias with the whole-second checks of published simulators",
          kPublishedTiresiasOptions, MakePublishedTiresias};
}

}  // namespace trainyard::originals
