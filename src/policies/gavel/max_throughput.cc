// SPDX-License-Identifier: Apache-2.0
// The largest sum of rates (Gavel, OSDI'20, section 4.2): docs/policies/max-throughput.md.
#include <array>
#include <utility>

#include "base/try.h"
#include "policies/gavel/gavel_policy.h"
#include "policies/gavel/throughput_allocations.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 4> kMaxThroughputOptions{
    {kGavelRound,
     kGavelPacked,
     {"prices", OptionSpec::Kind::kText, "",
      "of an hour of a GPU, by type (v100:0.74/p100:0.43): rates count by their cost"},
     {"deadlines", OptionSpec::Kind::kChoice, "0",
      "1: jobs with a deadline get what they need for it, if all can", "0|1"}}};

Allocation SolveMaxThroughput(const GavelSettings& settings, ProblemOf& of,
                              TimeSharingMemory& /*memory*/) {
  return MostThroughput(of.problem(), settings.deadlines).allocation;
}

Result<Components> MakeMaxThroughput(const Options& options, const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(GavelSettings settings, GavelSettingsOf("max-throughput", options));
  settings.packed = options.Text(kGavelPacked.key) == "1";
  ASSIGN_OR_RETURN(settings.prices, ParsePrices(options.Text("prices")));
  settings.deadlines = options.Text("deadlines") == "1";
  return GavelComponents("max-throughput", SolveMaxThroughput, std::move(settings));
}

ComponentEntry::GoesBy MaxThroughputGoesBy(const Options& options) {
  ComponentEntry::GoesBy by{.deadlines = options.Text("deadlines") == "1",
                            .gpu_types = true,
                            .pairs = options.Text(kGavelPacked.key) == "1"};
  if (const auto prices = ParsePrices(options.Text("prices")); prices.ok()) {
    for (const auto& [type, price] : prices.value()) {
      by.named_types.push_back(type);
    }
  }
  return by;
}

}  // namespace

ComponentEntry MaxThroughputEntry() {
  return {ComponentKind::kPolicy,
          "max-throughput",
          "the most work per second, or per cost, by GPU type (Gavel)",
          kMaxThroughputOptions,
          MakeMaxThroughput,
          {},
          "gandiva",
          false,
          {},
          MaxThroughputGoesBy};
}

}  // namespace trainyard::policies
