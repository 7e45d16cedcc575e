// SPDX-License-Identifier: Apache-2.0
// Synergy (OSDI'22): CPUs, memory and storage bandwidth are given by what they do for a job, not by
// the number of its GPUs alone. docs/placements.md describes the mechanisms.
#include <array>

#include "model/slices.h"
#include "placement/placements.h"
#include "placement/synergy_round.h"

namespace trainyard {
namespace {

constexpr std::array<OptionSpec, 3> kSynergyOptions{{
    {"mechanism", OptionSpec::Kind::kChoice, "fill",
     "fill: demands up to the proportional share, then what is left; tune: the whole demand or the "
     "share, taken back from neighbours; greedy: the whole demand or nothing; proportional; lend: "
     "the demand, where need be "
     "from other nodes",
     "fill|tune|greedy|proportional|lend"},
    {"consolidate", OptionSpec::Kind::kNumber, "1",
     "1: in one node if possible, the fullest; 0: the first GPUs in node order"},
    {"keep", OptionSpec::Kind::kNumber, "1",
     "fill: running jobs keep their GPUs (1) or are placed anew (0)"},
}};

// Saves work only: a memory that is read begins afresh.
struct LastRound final : Memory {
  SynergyRound round;

  void Serialize(StateStream& /*state*/) override {}
};

class Synergy final : public Packer {
 public:
  explicit Synergy(const SynergyRules& rules) : rules_(rules) {}
  [[nodiscard]] std::string_view name() const override { return "synergy"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<LastRound>();
  }
  [[nodiscard]] bool Pack(const PackRequest& ask, std::vector<Slices>& slices,
                          Memory* memory) const override {
    // Without `keep`, places depend on nothing but the free GPUs and the demands.
    if (!rules_.keep && ask.same == ask.demands.size() && ask.same == slices.size()) {
      return false;
    }
    static_cast<LastRound&>(*memory).round.Place(rules_, ask, slices);
    return true;
  }

 private:
  const SynergyRules rules_;
};

Mechanism MechanismOf(const std::string& name) {
  return name == "proportional" ? Mechanism::kProportional
         : name == "greedy"     ? Mechanism::kGreedy
         : name == "tune"       ? Mechanism::kTune
         : name == "lend"       ? Mechanism::kLend
                                : Mechanism::kFill;
}

Result<Components> MakeSynergy(const Options& options, const ComponentContext& /*context*/) {
  const Mechanism mechanism = MechanismOf(options.Text("mechanism"));
  return Components{.packer = std::make_unique<Synergy>(SynergyRules{
                        .mechanism = mechanism,
                        .consolidate = options.Flag("consolidate"),
                        .keep = mechanism == Mechanism::kFill && options.Flag("keep")})};
}

}  // namespace

ComponentEntry SynergyEntry() {
  return {ComponentKind::kPlacement, "synergy", "with CPUs and memory where they make jobs faster",
          kSynergyOptions, MakeSynergy};
}

}  // namespace trainyard
