// SPDX-License-Identifier: Apache-2.0
#include "policies/orderings/starvation_guard.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/earlier.h"
#include "trainyard/state.h"

namespace trainyard::policies {
namespace {

enum class GuardState : std::uint8_t {
  kWithin,   // has not waited too long at a stretch
  kOverdue,  // has, and goes first from the next decision on (option guard_late)
  kFirst,
};

struct GuardMemory final : Memory {
  explicit GuardMemory(std::unique_ptr<Memory> of_inner) : inner(std::move(of_inner)) {}
  void Serialize(StateStream& state) override {
    state(jobs);
    if (inner != nullptr) {
      inner->Serialize(state);
    }
  }
  std::vector<GuardState> jobs;         // by JobId
  const std::unique_ptr<Memory> inner;  // of the guarded ordering; null: it remembers nothing
};

Memory* Inner(Memory* memory) { return static_cast<GuardMemory*>(memory)->inner.get(); }
const Memory* Inner(const Memory* memory) {
  return static_cast<const GuardMemory*>(memory)->inner.get();
}

GuardState GuardStateOf(JobId job, const Memory* memory) {
  const std::vector<GuardState>& jobs = static_cast<const GuardMemory*>(memory)->jobs;
  return Index(job) < jobs.size() ? jobs[Index(job)] : GuardState::kWithin;
}

class GuardedOrdering final : public Ordering {
 public:
  GuardedOrdering(std::unique_ptr<Ordering> inner, const Options& options)
      : inner_(std::move(inner)),
        guard_(FromSeconds(options.Number("guard"))),
        again_(FromSeconds(options.Number("guard_again"))),
        late_(options.Flag("guard_late")) {
    CHECK(!inner_->traits().sets_wake);
  }
  [[nodiscard]] std::string_view name() const override { return inner_->name(); }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<GuardMemory>(inner_->NewMemory());
  }
  [[nodiscard]] OrderingTraits traits() const override {
    OrderingTraits traits = inner_->traits();
    traits.moves |= kAtKnownTimes;
    return traits;
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint now,
                                    const Memory* memory) const override {
    Standing standing = inner_->StandingOf(job, now, Inner(memory));
    const GuardState state = GuardStateOf(job.id, memory);
    standing.first = state == GuardState::kFirst;
    if (state == GuardState::kOverdue) {
      standing.moves_at = base::Earlier(standing.moves_at, now + Duration{1});
    } else if (state == GuardState::kWithin && job.grant == nullptr) {
      standing.moves_at = base::Earlier(
          standing.moves_at, std::max(now + Duration{1}, now - job.waiting + GuardOf(job)));
    }
    return standing;
  }
  void BeginDecision(const Snapshot& snapshot, Memory* memory) const override {
    inner_->BeginDecision(snapshot, Inner(memory));
  }
  void Notify(JobEvent event, const JobView& job, TimePoint now, Memory* memory) const override {
    const GuardState state = GuardStateOf(job.id, memory);
    if (event == JobEvent::kDue && state == GuardState::kOverdue) {
      Set(job.id, GuardState::kFirst, memory);
    } else if (event == JobEvent::kDue && state == GuardState::kWithin && job.grant == nullptr &&
               job.waiting >= GuardOf(job)) {
      Set(job.id, late_ ? GuardState::kOverdue : GuardState::kFirst, memory);
    }
    inner_->Notify(event, job, now, Inner(memory));
  }

 private:
  static void Set(JobId job, GuardState state, Memory* memory) {
    std::vector<GuardState>& jobs = static_cast<GuardMemory*>(memory)->jobs;
    jobs.resize(std::max(jobs.size(), Index(job) + 1), GuardState::kWithin);
    jobs[Index(job)] = state;
  }
  [[nodiscard]] Duration GuardOf(const JobView& job) const {
    return guard_ + (job.started ? again_ : Duration{0});
  }

  const std::unique_ptr<Ordering> inner_;
  const Duration guard_;
  const Duration again_;
  const bool late_;
};

}  // namespace

std::unique_ptr<Ordering> Guarded(std::unique_ptr<Ordering> ordering, const Options& options) {
  if (options.Number("guard") <= 0) {
    return ordering;
  }
  return std::make_unique<GuardedOrdering>(std::move(ordering), options);
}

}  // namespace trainyard::policies
