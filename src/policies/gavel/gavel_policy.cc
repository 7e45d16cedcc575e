// SPDX-License-Identifier: Apache-2.0
#include "policies/gavel/gavel_policy.h"
#include "policies/gavel/simple_allocations.h"

#include <memory>
#include <utility>

#include "base/try.h"

namespace trainyard::policies {
namespace {

class AllocatingPolicy final : public Policy {
 public:
  AllocatingPolicy(std::string_view name, GavelSolve solve, GavelSettings settings)
      : name_(name), solve_(solve), settings_(std::move(settings)) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] PolicyTraits traits() const override {
    return {.needs = {.work_left = true, .priorities = true},
            .may = {.share = settings_.packed, .name_gpus = true, .take_others = true}};
  }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<TimeSharingMemory>();
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    auto& remembered = static_cast<TimeSharingMemory&>(*memory);
    ProblemOf of(snapshot, settings_.packed, settings_.prices);
    TimeSharing sharing(snapshot, of, settings_.round, remembered);
    bool bounded = false;
    if (sharing.NeedsAllocation()) {
      if (settings_.blind) {
        of.problem() = WithoutTypes(std::move(of.problem()));
      }
      // Programs of no jobs have no optimum.
      Allocation allocation =
          of.problem().jobs.empty() ? NoShares(of.problem()) : solve_(settings_, of, remembered);
      bounded = !allocation.optimal;
      sharing.Take(settings_.blind ? SpreadOverTypes(of.problem(), std::move(allocation))
                                   : std::move(allocation));
    }
    Proposal proposal = sharing.Decide();
    proposal.bounded = bounded;
    return proposal;
  }

 private:
  const std::string_view name_;
  const GavelSolve solve_;
  const GavelSettings settings_;
};

}  // namespace

Result<GavelSettings> GavelSettingsOf(std::string_view name, const Options& options) {
  GavelSettings settings{.round = FromSeconds(options.Number(kGavelRound.key))};
  if (settings.round < FromSeconds(1)) {
    return InvalidArgument("round of policy '" + std::string(name) +
                           "' is shorter than a second; expected seconds >= 1");
  }
  return settings;
}

ComponentEntry::GoesBy GavelGoesBy(const Options& options) {
  return {.gpu_types = options.Text(kGavelTypes.key) != "blind",
          .pairs = options.Text(kGavelPacked.key) == "1"};
}

Components GavelComponents(std::string_view name, GavelSolve solve, GavelSettings settings) {
  return {.policy = std::make_unique<AllocatingPolicy>(name, solve, std::move(settings))};
}

Result<Components> MakeGavel(std::string_view name, GavelSolve solve, const Options& options) {
  ASSIGN_OR_RETURN(GavelSettings settings, GavelSettingsOf(name, options));
  settings.blind = options.Text(kGavelTypes.key) == "blind";
  settings.packed = options.Text(kGavelPacked.key) == "1";
  return GavelComponents(name, solve, std::move(settings));
}

}  // namespace trainyard::policies
