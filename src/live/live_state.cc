// SPDX-License-Identifier: Apache-2.0
#include "live/live_state.h"

#include <utility>

namespace trainyard {
namespace {

// A decision may rest on a metric, so each goes to the journal, and to the disk; not more often.
constexpr Duration kMetricsPause = std::chrono::seconds(10);

// The rules for failures, in the engine's time.
FailureRules RulesIn(const LiveOptions& options) {
  FailureRules rules = options.failures;
  for (Duration* time : {&rules.soon, &rules.window, &rules.first_pause, &rules.longest_pause}) {
    *time = options.Scaled(*time);
  }
  return rules;
}

}  // namespace

LiveState::LiveState(LiveOptions with, const Cluster& nodes)
    : options(std::move(with)),
      cluster(nodes),
      leases(options, cluster),
      gates(attempts, leases, strays),
      failures(cluster, RulesIn(options)),
      metrics(options.Scaled(kMetricsPause)) {}

}  // namespace trainyard
