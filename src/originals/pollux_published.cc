// SPDX-License-Identifier: Apache-2.0
// Pollux as the simulator of its artifact (OSDI'21), and ElasticFlow's copy of it, run it.
#include "originals/pollux_published.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "base/try.h"
#include "originals/originals.h"
#include "policies/pollux/pollux.h"

namespace trainyard::originals {
namespace {

constexpr double kRestartSeconds = 30;

class PolluxAsPublished final : public policies::Pollux {
 public:
  using Pollux::Pollux;
  [[nodiscard]] std::string_view name() const override { return "pollux-published"; }

 private:
  // A share is priced as if even 64 GPUs were in one node.
  [[nodiscard]] int NodesOfShare(int /*gpus*/, const Cluster& /*cluster*/) const override {
    return 1;
  }

  // One GPU, that counts as its part of the share, if the job runs on one.
  [[nodiscard]] policies::SearchJob Unreported(const JobSpec& job, const Snapshot& snapshot,
                                               const policies::FairShare& share) const override {
    return {.most_gpus = 1,
            .on_one_node = {1.0 / share.gpus},
            .on_several = {0},
            .usable = {snapshot.rates->Rate(job, 1) > 0 ? 1 : 0}};
  }

  [[nodiscard]] bool CountsWhatIsLeft() const override { return false; }

  // A fixed cost, also of a first start.
  [[nodiscard]] double IfMoved(const JobView& job, int restarts,
                               const Snapshot& snapshot) const override {
    const double age = Seconds(snapshot.now - job.spec->submit);
    return std::max(age - kRestartSeconds * std::max(restarts, 0), 0.0) / (age + kRestartSeconds);
  }

  // Without what jobs hold, but for the first time. Rows go to whatever job has the same place
  // among the survivors now.
  [[nodiscard]] std::vector<policies::AllocationMatrix> InitialOf(
      const policies::PolluxMemory& last, std::span<const JobId> jobs,
      const policies::AllocationMatrix& base) const override {
    if (last.front.empty()) {
      return {base};
    }
    std::vector<std::size_t> to;    // rows now, of jobs that were there
    std::vector<std::size_t> from;  // rows then, of jobs that are here
    for (std::size_t row = 0; row < jobs.size(); ++row) {
      if (std::find(last.rows.begin(), last.rows.end(), jobs[row]) != last.rows.end()) {
        to.push_back(row);
      }
    }
    for (std::size_t row = 0; row < last.rows.size(); ++row) {
      if (std::find(jobs.begin(), jobs.end(), last.rows[row]) != jobs.end()) {
        from.push_back(row);
      }
    }
    std::vector<policies::AllocationMatrix> initial;
    for (const policies::AllocationMatrix& former : last.front) {
      policies::AllocationMatrix& matrix = initial.emplace_back(base.jobs(), base.nodes());
      for (std::size_t i = 0; i < to.size(); ++i) {
        const auto cells = former.row(from[i]);
        std::copy(cells.begin(), cells.end(), matrix.row(to[i]).begin());
      }
    }
    return initial;
  }

  void Complete(policies::SearchProblem& problem) const override {
    problem.separate = SeparateAsPublished;
    problem.weight = static_cast<double>(problem.capacity.size()) /
                     std::accumulate(problem.capacity.begin(), problem.capacity.end(), 0);
  }

  [[nodiscard]] policies::SearchLimits Limits() const override { return {}; }

  // Also where it is no fitter than what jobs hold, or the same on other nodes.
  [[nodiscard]] policies::AllocationMatrix Chosen(
      const policies::SearchProblem& /*problem*/,
      const policies::SearchResult& found) const override {
    return found.front[found.best];
  }
};

Result<Components> MakePolluxPublished(const Options& options,
                                       const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(const policies::PolluxSettings settings,
                   policies::PolluxSettingsOf(options, "pollux-published"));
  return Components{.policy = std::make_unique<PolluxAsPublished>(settings)};
}

}  // namespace

void SeparateAsPublished(policies::AllocationMatrix& matrix) {
  std::vector<bool> distributed;
  for (std::size_t job = 0; job < matrix.jobs(); ++job) {
    distributed.push_back(matrix.IsDistributed(job));
  }
  std::vector<int> seen(matrix.nodes());  // distributed jobs so far
  for (std::size_t job = 0; job < matrix.jobs(); ++job) {
    const std::span<std::uint8_t> row = matrix.row(job);
    for (std::size_t node = 0; node < row.size(); ++node) {
      seen[node] += distributed[job] && row[node] > 0 ? 1 : 0;
      if (seen[node] > 1) {
        row[node] = 0;
      }
    }
  }
}

ComponentEntry PolluxPublishedEntry() {
  return {.kind = ComponentKind::kPolicy,
          .name = "pollux-published",
          .help = "pollux as the simulator of its artifact runs it",
          .options = policies::PolluxOptions(),
          .make = MakePolluxPublished,
          .placement = "gandiva"};
}

}  // namespace trainyard::originals
