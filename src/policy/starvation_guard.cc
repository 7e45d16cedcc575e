// SPDX-License-Identifier: Apache-2.0
#include "policy/starvation_guard.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/earlier.h"
#include "trainyard/state.h"

namespace trainyard {
namespace {

enum class Patience : std::uint8_t { kPatient, kNoticed, kFirst };

struct Standings final : Memory {
  explicit Standings(std::unique_ptr<Memory> of_inner) : inner(std::move(of_inner)) {}
  void Serialize(StateStream& state) override {
    state(jobs);
    if (inner != nullptr) {
      inner->Serialize(state);
    }
  }
  std::vector<Patience> jobs;           // by JobId
  const std::unique_ptr<Memory> inner;  // of the guarded ordering; null: it remembers nothing
};

Memory* Inner(Memory* memory) { return static_cast<Standings*>(memory)->inner.get(); }
const Memory* Inner(const Memory* memory) {
  return static_cast<const Standings*>(memory)->inner.get();
}

Patience PatienceOf(JobId job, const Memory* memory) {
  const std::vector<Patience>& jobs = static_cast<const Standings*>(memory)->jobs;
  return Index(job) < jobs.size() ? jobs[Index(job)] : Patience::kPatient;
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
    return std::make_unique<Standings>(inner_->NewMemory());
  }
  [[nodiscard]] OrderingTraits traits() const override {
    OrderingTraits traits = inner_->traits();
    traits.moves |= kAtKnownTimes;
    return traits;
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint now,
                                    const Memory* memory) const override {
    Standing standing = inner_->StandingOf(job, now, Inner(memory));
    const Patience patience = PatienceOf(job.id, memory);
    standing.first = patience == Patience::kFirst;
    if (patience == Patience::kNoticed) {
      standing.moves_at = Earlier(standing.moves_at, now + Duration{1});
    } else if (patience == Patience::kPatient && job.grant == nullptr) {
      standing.moves_at =
          Earlier(standing.moves_at, std::max(now + Duration{1}, now - job.waiting + GuardOf(job)));
    }
    return standing;
  }
  void BeginDecision(const Snapshot& snapshot, Memory* memory) const override {
    inner_->BeginDecision(snapshot, Inner(memory));
  }
  void Notify(JobEvent event, const JobView& job, TimePoint now, Memory* memory) const override {
    const Patience standing = PatienceOf(job.id, memory);
    if (event == JobEvent::kDue && standing == Patience::kNoticed) {
      Set(job.id, Patience::kFirst, memory);
    } else if (event == JobEvent::kDue && standing == Patience::kPatient && job.grant == nullptr &&
               job.waiting >= GuardOf(job)) {
      Set(job.id, late_ ? Patience::kNoticed : Patience::kFirst, memory);
    }
    inner_->Notify(event, job, now, Inner(memory));
  }

 private:
  static void Set(JobId job, Patience standing, Memory* memory) {
    std::vector<Patience>& jobs = static_cast<Standings*>(memory)->jobs;
    jobs.resize(std::max(jobs.size(), Index(job) + 1), Patience::kPatient);
    jobs[Index(job)] = standing;
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

}  // namespace trainyard
