// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "trace/generators/random.h"
#include "trace/generators/week_shape.h"

namespace trainyard::trace {
namespace {

std::int64_t Draw(Random& random, double mean_hours) {
  constexpr double kMost = 1e9;  // seconds; far beyond any number of days
  return static_cast<std::int64_t>(
      std::clamp(std::round(mean_hours * 3600 * random.Exponential()), 1.0, kMost));
}

}  // namespace

std::vector<NodeFailure> GenerateFailures(const Cluster& cluster, const FailureOptions& options) {
  CHECK(options.mtbf_hours > 0 && options.repair_hours > 0 && options.days > 0);
  constexpr std::uint64_t kFirstStream = 1U << 16U;  // behind those of the attributes of jobs
  const double end = options.days * kDaySeconds;
  std::vector<NodeFailure> failures;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    Random random = Random::Stream(options.seed, kFirstStream + i);
    std::int64_t down = Draw(random, options.mtbf_hours);
    while (static_cast<double>(down) < end) {
      const std::int64_t up = down + Draw(random, options.repair_hours);
      failures.push_back({.node = cluster.nodes[i].name, .down = down, .up = up});
      down = up + Draw(random, options.mtbf_hours);
    }
  }
  std::stable_sort(failures.begin(), failures.end(),
                   [](const NodeFailure& a, const NodeFailure& b) { return a.down < b.down; });
  return failures;
}

std::string FailuresToml(const std::vector<NodeFailure>& failures) {
  std::string text;
  for (const NodeFailure& failure : failures) {
    fmt::format_to(std::back_inserter(text), "\n[[failures]]\nnode = \"{}\"\ndown = {}\nup = {}\n",
                   failure.node, failure.down, failure.up);
  }
  return text;
}

}  // namespace trainyard::trace
