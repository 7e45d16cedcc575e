// SPDX-License-Identifier: Apache-2.0
#include "policies/orderings/tiresias.h"

#include <algorithm>
#include <string>

#include "base/try.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

void Settle(const JobView& job, TiresiasStanding& standing, TimePoint now, TiresiasQueues& queues) {
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
    standing.waited_before = Seconds(job.waited);  // starving begins anew with each stop
  }
}

Result<Components> MakeTiresias(const Options& options, const ComponentContext& context) {
  ASSIGN_OR_RETURN(TiresiasSettings settings, TiresiasSettingsOf(options, context, "tiresias"));
  return Components{.ordering = std::make_unique<Tiresias>(std::move(settings))};
}

}  // namespace

// The horizon of the Gittins index is the first threshold, as published.
Result<TiresiasSettings> TiresiasSettingsOf(const Options& options, const ComponentContext& context,
                                            std::string_view policy) {
  const std::string what = "policy '" + std::string(policy) + "': ";
  TiresiasSettings settings{.thresholds = options.Numbers("thresholds"),
                            .gpu_service = options.Text("service") == "gpu",
                            .promote = options.Number("promote")};
  if (!std::is_sorted(settings.thresholds.begin(), settings.thresholds.end())) {
    return InvalidArgument(what + "thresholds must not fall");
  }
  if (options.Text("ranking") == "gittins") {
    if (options.Text("prior").empty()) {
      return InvalidArgument(
          what +
          "ranking=gittins needs prior=FILE: samples of total service in GPU-seconds, one per line "
          "after a header");
    }
    ASSIGN_OR_RETURN(std::vector<double> samples, context.read_samples(options.Text("prior")));
    settings.gittins =
        std::make_shared<GittinsIndex>(std::move(samples), settings.thresholds.front());
  }
  return settings;
}

TiresiasStanding& TiresiasQueues::Of(JobId job) {
  if (jobs.size() <= Index(job)) {
    jobs.resize(std::max(jobs.size() * 2, Index(job) + 1));
  }
  return jobs[Index(job)];
}

void TiresiasQueues::ToTail(TiresiasStanding& job) {
  job.band = 1;
  job.stopped = 0;
  job.sequence = next_sequence++;
}

std::unique_ptr<Memory> Tiresias::NewMemory() const { return std::make_unique<TiresiasQueues>(); }

OrderingTraits Tiresias::traits() const {
  return {.moves = kAtKnownTimes | kOnGrant | (settings_.gittins ? kAlways : 0U)};
}

Standing Tiresias::StandingOf(const JobView& job, TimePoint now, const Memory* memory) const {
  const TiresiasStanding& at = Of(job, memory);
  const auto queue = static_cast<double>(at.queue);
  Standing standing{.stay = Duration{0}};
  standing.key = settings_.gittins ? Key{queue, -settings_.gittins->At(Attained(job, at)), at.band}
                                   : Key{queue, at.band, at.stopped, at.sequence};
  std::optional<double> left;  // seconds
  if (const std::optional<double> threshold = ThresholdOf(job, at)) {
    left = (*threshold - Attained(job, at)) / Weight(job);
  } else if (MayStarve(job, at)) {
    left = StarvesAfter(job, at) - Starved(job, at);
  }
  if (left) {
    standing.moves_at = now + std::max(Duration{1}, CeilFromSeconds(*left));
  }
  return standing;
}

void Tiresias::Notify(JobEvent event, const JobView& job, TimePoint now, Memory* memory) const {
  auto& queues = static_cast<TiresiasQueues&>(*memory);
  TiresiasStanding& standing = queues.Of(job.id);
  switch (event) {
    case JobEvent::kArrived:
      standing = {};
      return queues.ToTail(standing);
    case JobEvent::kDue:
      Promote(job, standing, queues);
      while (Demote(job, standing, queues)) {
      }
      return;
    case JobEvent::kSettled:
      return Settle(job, standing, now, queues);
  }
}

const TiresiasStanding& Tiresias::Of(const JobView& job, const Memory* memory) {
  return static_cast<const TiresiasQueues&>(*memory).jobs[Index(job.id)];
}

double Tiresias::Weight(const JobView& job) const {
  return settings_.gpu_service ? job.spec->gpus : 1;
}

double Tiresias::Served(const JobView& job) const { return Seconds(job.run_time); }

double Tiresias::Executed(const JobView& job, const TiresiasStanding& standing) const {
  return Served(job) - standing.executed_before;
}

double Tiresias::Attained(const JobView& job, const TiresiasStanding& standing) const {
  return Executed(job, standing) * Weight(job);
}

double Tiresias::Starved(const JobView& job, const TiresiasStanding& standing) const {
  return Seconds(job.waited) - standing.waited_before;
}

bool Tiresias::MayStarve(const JobView& job, const TiresiasStanding& standing) const {
  return settings_.promote > 0 && job.grant == nullptr && standing.queue > 0 && standing.ran &&
         Executed(job, standing) > 0;
}

double Tiresias::StarvesAfter(const JobView& job, const TiresiasStanding& standing) const {
  return Executed(job, standing) * settings_.promote;
}

std::optional<double> Tiresias::ThresholdOf(const JobView& job,
                                            const TiresiasStanding& standing) const {
  return job.grant != nullptr && standing.queue < settings_.thresholds.size()
             ? std::optional<double>(settings_.thresholds[standing.queue])
             : std::nullopt;
}

void Tiresias::Promote(const JobView& job, TiresiasStanding& standing,
                       TiresiasQueues& queues) const {
  if (MayStarve(job, standing) && Starved(job, standing) >= StarvesAfter(job, standing)) {
    standing.queue = 0;
    standing.executed_before = Served(job);
    standing.ran = false;
    queues.ToTail(standing);
  }
}

bool Tiresias::Demote(const JobView& job, TiresiasStanding& standing,
                      TiresiasQueues& queues) const {
  const std::optional<double> threshold = ThresholdOf(job, standing);
  if (!threshold || Attained(job, standing) < *threshold) {
    return false;
  }
  ++standing.queue;
  queues.ToTail(standing);
  return true;
}

ComponentEntry TiresiasEntry() {
  return {ComponentKind::kPolicy, "tiresias",
          "discretised 2D-LAS: queues by attained GPU-time, starvation promotion", kTiresiasOptions,
          MakeTiresias};
}

}  // namespace trainyard::policies
