// SPDX-License-Identifier: Apache-2.0
// FIFO on several types of GPU (Gavel, OSDI'20, section 4.2): docs/policies/fifo-throughput.md.
#include <array>
#include <utility>

#include "base/try.h"
#include "policies/gavel/gavel_policy.h"
#include "policies/gavel/simple_allocations.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 2> kFifoThroughputOptions{kGavelRound, kGavelPacked};

Allocation SolveFifoThroughput(const GavelSettings& /*settings*/, ProblemOf& of,
                               TimeSharingMemory& /*memory*/) {
  return FifoByThroughput(of.problem());
}

Result<Components> MakeFifoThroughput(const Options& options, const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(GavelSettings settings, GavelSettingsOf("fifo-throughput", options));
  settings.packed = options.Text(kGavelPacked.key) == "1";
  return GavelComponents("fifo-throughput", SolveFifoThroughput, std::move(settings));
}

ComponentEntry::GoesBy FifoThroughputGoesBy(const Options& options) {
  return {.gpu_types = true, .pairs = options.Text(kGavelPacked.key) == "1"};
}

}  // namespace

ComponentEntry FifoThroughputEntry() {
  return {ComponentKind::kPolicy,
          "fifo-throughput",
          "by submission, each on the type of GPU on which it is fastest (Gavel)",
          kFifoThroughputOptions,
          MakeFifoThroughput,
          {},
          "gandiva",
          false,
          {},
          FifoThroughputGoesBy};
}

}  // namespace trainyard::policies
