// SPDX-License-Identifier: Apache-2.0
// Tiresias (NSDI'19): discretised least attained service over GPUs and time. Jobs start in the
// first queue and are demoted when their attained service reaches the queue's threshold; a job that
// starves is promoted back. Within a queue running jobs stay, then the order of entry counts, or
// the Gittins index (`ranking=gittins`). A class, because src/originals derives the published form.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/orderings/gittins.h"
#include "trainyard/component_entry.h"
#include "trainyard/state.h"

namespace trainyard::policies {

inline constexpr std::array<OptionSpec, 5> kTiresiasOptions{{
    {"thresholds", OptionSpec::Kind::kNumbers, "3250/7200",
     "attained service at which a job leaves each queue but the last"},
    {"service", OptionSpec::Kind::kChoice, "gpu", "what counts as service: GPU-time or time",
     "gpu|time"},
    {"promote", OptionSpec::Kind::kNumber, "0",
     "a job that waited this many times as long as it has run is promoted; 0: never"},
    {"ranking", OptionSpec::Kind::kChoice, "las", "order within a queue", "las|gittins"},
    {"prior", OptionSpec::Kind::kText, "", "ranking=gittins: samples of total service (file)"},
}};

struct TiresiasSettings {
  std::vector<double> thresholds;
  bool gpu_service = true;
  double promote = 0;
  std::shared_ptr<const GittinsIndex> gittins;  // null: by order of entry
};

// Of kTiresiasOptions. `policy`: its name in messages.
[[nodiscard]] Result<TiresiasSettings> TiresiasSettingsOf(const Options& options,
                                                          const ComponentContext& context,
                                                          std::string_view policy);

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

struct TiresiasQueues final : Memory {
  std::vector<TiresiasStanding> jobs;  // by JobId
  double next_sequence = 0;

  TiresiasStanding& Of(JobId job);
  void ToTail(TiresiasStanding& job);
  void Serialize(StateStream& state) override { state(jobs, next_sequence); }
};

class Tiresias : public Ordering {
 public:
  explicit Tiresias(TiresiasSettings settings) : settings_(std::move(settings)) {}

  [[nodiscard]] std::string_view name() const override { return "tiresias"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override;
  [[nodiscard]] OrderingTraits traits() const override;
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint now,
                                    const Memory* memory) const override;
  void Notify(JobEvent event, const JobView& job, TimePoint now, Memory* memory) const override;

 protected:
  [[nodiscard]] const TiresiasSettings& settings() const { return settings_; }
  [[nodiscard]] static const TiresiasStanding& Of(const JobView& job, const Memory* memory);
  [[nodiscard]] double Weight(const JobView& job) const;  // service for each second

  // Seconds that count as service, of the whole life of the job.
  [[nodiscard]] virtual double Served(const JobView& job) const;
  // The same since the last promotion.
  [[nodiscard]] virtual double Executed(const JobView& job, const TiresiasStanding& standing) const;
  [[nodiscard]] double Attained(const JobView& job, const TiresiasStanding& standing) const;
  [[nodiscard]] double Starved(const JobView& job, const TiresiasStanding& standing) const;
  [[nodiscard]] bool MayStarve(const JobView& job, const TiresiasStanding& standing) const;
  // Seconds of waiting after which it is promoted. REQUIRES: MayStarve.
  [[nodiscard]] virtual double StarvesAfter(const JobView& job,
                                            const TiresiasStanding& standing) const;
  // The threshold of the queue that the job will leave if it goes on running; none: it does not
  // run, or is in the last one.
  [[nodiscard]] std::optional<double> ThresholdOf(const JobView& job,
                                                  const TiresiasStanding& standing) const;
  // Moves the job to the next queue if it has attained the threshold. False: it has not.
  bool Demote(const JobView& job, TiresiasStanding& standing, TiresiasQueues& queues) const;

 private:
  void Promote(const JobView& job, TiresiasStanding& standing, TiresiasQueues& queues) const;

  const TiresiasSettings settings_;
};

}  // namespace trainyard::policies
