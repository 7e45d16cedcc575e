// SPDX-License-Identifier: Apache-2.0
// Sia (SOSP'23): every interval an integer program gives each job a configuration, so many GPUs of
// some type, by what its training gains there. A class, because src/originals derives the form of
// the published program.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "policies/at_intervals.h"
#include "policies/sia/known_training.h"
#include "trainyard/component_entry.h"
#include "trainyard/state.h"

namespace trainyard::policies {

// What is remembered of one job.
struct SiaJobMemory {
  KnownTraining known;
  // What it held at the last allocation: the number of the type of GPU, and GPUs by node. The type
  // stays while it holds nothing.
  std::int64_t type = 0;
  std::vector<std::int64_t> shape;  // node and GPUs in turn; empty: nothing
  int restarts = -1;                // after its first start; -1: it has never held any

  void Serialize(StateStream& state) { state(known, type, shape, restarts); }
};

struct SiaMemory final : Memory {
  LastAllocation last;
  std::map<JobId, SiaJobMemory> jobs;  // by live job

  void Serialize(StateStream& state) override { state(last, jobs); }
};

struct SiaSettings {
  Duration interval{0};
  double power = 0;     // of utilities
  double unserved = 0;  // what a job costs that has nothing
};

class Sia : public Policy {
 public:
  explicit Sia(const SiaSettings& settings) : settings_(settings) {}
  [[nodiscard]] std::string_view name() const override { return "sia"; }
  [[nodiscard]] PolicyTraits traits() const final {
    return {.needs = {.work_left = CountsWhatIsLeft()},
            .may = {.resize = true, .name_gpus = true, .take_others = true, .ignore_stay = true}};
  }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const final {
    return std::make_unique<SiaMemory>();
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const final;

 protected:
  [[nodiscard]] const SiaSettings& settings() const { return settings_; }

 private:
  // The rules in which the published program differs.

  // Whether a job is not moved that would end later by it, where what is left of it is known.
  [[nodiscard]] virtual bool CountsWhatIsLeft() const { return true; }
  // Which job holds what until the next allocation.
  [[nodiscard]] virtual Proposal Allocate(const Snapshot& snapshot, SiaMemory& last) const;
  // Whether a change from one shape to another on GPUs of the same type is a restart.
  [[nodiscard]] virtual bool IsRestart(std::span<const std::int64_t> before,
                                       std::span<const std::int64_t> now) const;
  // Whether an allocation may be left out where nothing has changed.
  [[nodiscard]] virtual bool MayRest() const { return true; }

  // What live jobs hold and have reported; forgets the others.
  void Note(const Snapshot& snapshot, SiaMemory& memory) const;

  const SiaSettings settings_;
};

// Options `interval`, `p` and `lambda`.
[[nodiscard]] std::span<const OptionSpec> SiaOptions();
// Errors: they are out of range for `policy`.
[[nodiscard]] Result<SiaSettings> SiaSettingsOf(const Options& options, std::string_view policy);

}  // namespace trainyard::policies
