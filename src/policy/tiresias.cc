// SPDX-License-Identifier: Apache-2.0
// Tiresias (NSDI'19): discretised least attained service over GPUs and time. Jobs start in the
// first queue and are demoted when their attained service reaches the queue's threshold; a job that
// starves is promoted back. Within a queue running jobs stay, then the order of entry counts, or
// the Gittins index (`ranking=gittins`).
#include <algorithm>
#include <array>
#include <cmath>

#include "base/try.h"
#include "policy/gittins.h"
#include "policy/policies.h"
#include "trainyard/state.h"

namespace trainyard {
namespace {

constexpr std::array<OptionSpec, 7> kTiresiasOptions{{
    {"thresholds", OptionSpec::Kind::kNumbers, "3250/7200",
     "attained service at which a job leaves each queue but the last"},
    {"service", OptionSpec::Kind::kChoice, "gpu", "what counts as service: GPU-time or time",
     "gpu|time"},
    {"promote", OptionSpec::Kind::kNumber, "0",
     "a job that waited this many times as long as it has run is promoted; 0: never"},
    {"ranking", OptionSpec::Kind::kChoice, "las", "order within a queue", "las|gittins"},
    {"prior", OptionSpec::Kind::kText, "", "ranking=gittins: samples of total service (file)"},
    {"counts", OptionSpec::Kind::kChoice, "held",
     "time with GPUs, or without the restart costs in it", "held|productive"},
    {"check", OptionSpec::Kind::kChoice, "exact",
     "demote at the exact time, or by the whole-second rules of the simulators of Tiresias "
     "(floor), "
     "ElasticFlow (ceil) or Muri (whole)",
     "exact|floor|ceil|whole"},
}};

struct TiresiasSettings {
  std::vector<double> thresholds;
  bool gpu_service = true;
  double promote = 0;
  bool productive = false;
  enum class Check : unsigned char { kExact, kFloor, kCeil, kWhole } check = Check::kExact;
  std::optional<GittinsIndex> gittins;
};

// What the policy remembers of a job.
struct TiresiasStanding {
  std::size_t queue = 0;
  double executed_before = 0;  // seconds run up to the last promotion
  double waited_before = 0;    // seconds waited that do not count as starving
  bool ran = false;            // since the last promotion
  // Position in the queue: those that run, then those that were stopped (latest stop first), then
  // those that entered behind the others.
  double band = 1;
  double stopped = 0;
  double sequence = 0;

  void Serialize(StateStream& state) {
    state(queue, executed_before, waited_before, ran, band, stopped, sequence);
  }
};

struct Queues final : Memory {
  std::vector<TiresiasStanding> jobs;  // by JobId
  double next_sequence = 0;

  TiresiasStanding& Of(JobId job) {
    if (jobs.size() <= Index(job)) {
      jobs.resize(std::max(jobs.size() * 2, Index(job) + 1));
    }
    return jobs[Index(job)];
  }
  void ToTail(TiresiasStanding& job) {
    job.band = 1;
    job.stopped = 0;
    job.sequence = next_sequence++;
  }
  void Serialize(StateStream& state) override { state(jobs, next_sequence); }
};

class Tiresias final : public Ordering {
 public:
  explicit Tiresias(TiresiasSettings settings) : settings_(std::move(settings)) {}

  [[nodiscard]] std::string_view name() const override { return "tiresias"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<Queues>();
  }
  [[nodiscard]] OrderingTraits traits() const override {
    return {.moves = kAtKnownTimes | kOnGrant | (settings_.gittins ? kAlways : 0U),
            .sets_wake = !exact()};
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint now,
                                    const Memory* memory) const override {
    const TiresiasStanding& standing = Of(job, memory);
    return {
        .key = KeyOf(job, standing), .moves_at = NextMove(job, standing, now), .stay = Duration{0}};
  }

  void Notify(JobEvent event, const JobView& job, TimePoint now, Memory* memory) const override {
    auto& queues = static_cast<Queues&>(*memory);
    TiresiasStanding& standing = queues.Of(job.id);
    switch (event) {
      case JobEvent::kArrived:
        standing = {};
        return queues.ToTail(standing);
      case JobEvent::kDue:
        return Move(job, standing, queues);
      case JobEvent::kSettled:
        return Settle(job, standing, now, queues);
    }
  }

  [[nodiscard]] std::optional<TimePoint> NextWake(const Snapshot& snapshot,
                                                  const Memory* memory) const override {
    std::optional<TimePoint> wake;
    for (const JobId id : snapshot.jobs->live()) {
      const JobView job = snapshot.jobs->at(id);
      if (const std::optional<double> left = PublishedWake(job, Of(job, memory))) {
        const TimePoint at = snapshot.now + FromSeconds(*left);
        wake = wake ? std::min(*wake, at) : at;
      }
    }
    return wake;
  }

 private:
  [[nodiscard]] Key KeyOf(const JobView& job, const TiresiasStanding& standing) const {
    const auto queue = static_cast<double>(standing.queue);
    if (settings_.gittins) {
      const double index = settings_.gittins->At(Attained(job, standing));
      return exact() ? Key{queue, -index, standing.band}
                     : Key{queue, -index, Micros(job.spec->submit), standing.band};
    }
    return {queue, standing.band, standing.stopped, standing.sequence};
  }

  [[nodiscard]] std::optional<TimePoint> NextMove(const JobView& job,
                                                  const TiresiasStanding& standing,
                                                  TimePoint now) const {
    std::optional<double> left;  // seconds
    if (job.grant != nullptr && standing.queue < settings_.thresholds.size()) {
      left = (settings_.thresholds[standing.queue] - Attained(job, standing)) / Weight(job);
    } else if (MayStarve(job, standing)) {
      left = StarvesAfter(job, standing) - Starved(job, standing);
    }
    if (!left) {
      return std::nullopt;
    }
    // Rounding must not put it behind the wake-up that is meant for it.
    constexpr double kRounding = 1e-9;
    return exact() ? now + std::max(Duration{1}, CeilFromSeconds(*left))
                   : now + std::max(Duration{0}, CeilFromSeconds(*left - kRounding));
  }

  [[nodiscard]] bool exact() const { return settings_.check == TiresiasSettings::Check::kExact; }
  [[nodiscard]] static const TiresiasStanding& Of(const JobView& job, const Memory* memory) {
    return static_cast<const Queues&>(*memory).jobs[Index(job.id)];
  }
  [[nodiscard]] double Weight(const JobView& job) const {
    return settings_.gpu_service ? job.spec->gpus : 1;
  }
  // Seconds run since the last promotion.
  [[nodiscard]] double Executed(const JobView& job, const TiresiasStanding& standing) const {
    const double all = Seconds(settings_.productive ? job.productive_time : job.run_time);
    const double executed = all - standing.executed_before;
    const bool in_seconds = !exact() && settings_.check != TiresiasSettings::Check::kWhole;
    return in_seconds ? std::floor(executed) : executed;
  }
  [[nodiscard]] double Attained(const JobView& job, const TiresiasStanding& standing) const {
    return Executed(job, standing) * Weight(job);
  }
  [[nodiscard]] double Starved(const JobView& job, const TiresiasStanding& standing) const {
    return Seconds(job.waited) - standing.waited_before;
  }
  [[nodiscard]] bool MayStarve(const JobView& job, const TiresiasStanding& standing) const {
    return settings_.promote > 0 && job.grant == nullptr && standing.queue > 0 && standing.ran &&
           Executed(job, standing) > 0;
  }
  [[nodiscard]] double StarvesAfter(const JobView& job, const TiresiasStanding& standing) const {
    const double wait = Executed(job, standing) * settings_.promote;
    return exact() ? wait : std::trunc(wait);
  }

  void Move(const JobView& job, TiresiasStanding& standing, Queues& queues) const {
    if (job.grant == nullptr) {
      if (MayStarve(job, standing) && Starved(job, standing) >= StarvesAfter(job, standing)) {
        standing.queue = 0;
        standing.executed_before =
            Seconds(settings_.productive ? job.productive_time : job.run_time);
        standing.ran = false;
        queues.ToTail(standing);
      }
      return;
    }
    while (standing.queue < settings_.thresholds.size() &&
           Attained(job, standing) >= settings_.thresholds[standing.queue]) {
      ++standing.queue;
      queues.ToTail(standing);
      if (!exact()) {
        return;  // one queue at an instant
      }
    }
  }

  void Settle(const JobView& job, TiresiasStanding& standing, TimePoint now, Queues& queues) const {
    if (job.grant != nullptr) {
      if (!standing.ran) {
        standing.ran = true;
        standing.waited_before = Seconds(job.waited);
      }
      if (standing.band != 0) {
        standing.band = 0;
        standing.stopped = 0;
        standing.sequence = queues.next_sequence++;
      }
    } else if (standing.band == 0) {
      standing.band = 1;
      standing.stopped = -Micros(now);
      if (exact()) {  // starving begins anew with each stop
        standing.waited_before = Seconds(job.waited);
      }
    }
  }

  // Tiresias reference 2.3 step 8, ElasticFlow reference 6.1: executed time, not service, is taken
  // from the threshold. Muri reference 5: after the whole second of run time in which it is
  // reached.
  [[nodiscard]] std::optional<double> PublishedWake(const JobView& job,
                                                    const TiresiasStanding& standing) const {
    if (job.grant != nullptr && standing.queue < settings_.thresholds.size()) {
      const double threshold = settings_.thresholds[standing.queue];
      if (settings_.check == TiresiasSettings::Check::kWhole) {
        return std::ceil(threshold / Weight(job)) - Executed(job, standing);
      }
      const double left = (threshold - Executed(job, standing)) / Weight(job);
      return settings_.check == TiresiasSettings::Check::kFloor ? std::floor(left)
                                                                : std::ceil(left);
    }
    if (MayStarve(job, standing)) {
      const double left =
          std::trunc(Executed(job, standing) * settings_.promote - Starved(job, standing));
      return left > 0 ? std::optional<double>(left) : std::nullopt;
    }
    return std::nullopt;
  }

  const TiresiasSettings settings_;
};

// The horizon of the Gittins index is the first threshold, as published.
Result<Components> MakeTiresias(const Options& options, const ComponentContext& context) {
  TiresiasSettings settings{.thresholds = options.Numbers("thresholds"),
                            .gpu_service = options.Text("service") == "gpu",
                            .promote = options.Number("promote"),
                            .productive = options.Text("counts") == "productive"};
  if (!std::is_sorted(settings.thresholds.begin(), settings.thresholds.end())) {
    return InvalidArgument("policy 'tiresias': thresholds must not fall");
  }
  const std::string& check = options.Text("check");
  settings.check = check == "exact"   ? TiresiasSettings::Check::kExact
                   : check == "floor" ? TiresiasSettings::Check::kFloor
                   : check == "ceil"  ? TiresiasSettings::Check::kCeil
                                      : TiresiasSettings::Check::kWhole;
  if (options.Text("ranking") == "gittins") {
    if (options.Text("prior").empty()) {
      return InvalidArgument(
          "policy 'tiresias': ranking=gittins needs prior=FILE: samples of total service in "
          "GPU-seconds, one per line after a header");
    }
    ASSIGN_OR_RETURN(std::vector<double> samples, context.read_samples(options.Text("prior")));
    settings.gittins.emplace(std::move(samples), settings.thresholds.front(),
                             settings.check == TiresiasSettings::Check::kFloor);
  }
  return Components{.ordering = std::make_unique<Tiresias>(std::move(settings))};
}

}  // namespace

ComponentEntry TiresiasEntry() {
  return {ComponentKind::kPolicy, "tiresias",
          "discretised 2D-LAS: queues by attained GPU-time, starvation promotion", kTiresiasOptions,
          MakeTiresias};
}

}  // namespace trainyard
