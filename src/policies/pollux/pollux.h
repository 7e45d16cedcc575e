// SPDX-License-Identifier: Apache-2.0
// Pollux (OSDI'21): every interval, GPUs go where the trainings together gain most by them, each
// measured by its goodput on a fair share. A class, because src/originals derives the form of the
// published program.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/at_intervals.h"
#include "policies/pollux/allocation_search.h"
#include "policies/pollux/speedups.h"
#include "trainyard/component_entry.h"
#include "trainyard/state.h"

namespace trainyard::policies {

// What is remembered of one job: its GPUs by node at the last allocation, and how often they have
// been others since its first start.
struct HeldBefore {
  std::vector<std::uint8_t> gpus;  // by NodeId; empty: none
  int restarts = -1;               // -1: it has never held any

  void Serialize(StateStream& state) { state(gpus, restarts); }
};

struct PolluxMemory final : Memory {
  LastAllocation last;
  std::uint64_t allocations = 0;     // so far
  std::map<JobId, HeldBefore> held;  // by live job
  // The front of the last search, and the jobs of its rows; columns are nodes.
  std::vector<JobId> rows;
  std::vector<AllocationMatrix> front;
  GoodputCache goodput;  // work saved

  void Serialize(StateStream& state) override { state(last, allocations, held, rows, front); }
};

struct PolluxSettings {
  Duration interval{0};
  std::uint64_t seed = 0;
};

class Pollux : public Policy {
 public:
  explicit Pollux(const PolluxSettings& settings) : settings_(settings) {}
  [[nodiscard]] std::string_view name() const override { return "pollux"; }
  [[nodiscard]] PolicyTraits traits() const final {
    return {.needs = {.work_left = CountsWhatIsLeft(), .gpu_types = TypeSupport::kOne},
            .may = {.resize = true, .name_gpus = true, .take_others = true, .ignore_stay = true}};
  }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const final {
    return std::make_unique<PolluxMemory>();
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const final;

 private:
  // The rules in which the published program differs.

  // Whether a job is not moved that would end later by it, where what is left of it is known.
  [[nodiscard]] virtual bool CountsWhatIsLeft() const { return true; }
  // How many nodes a fair share of so many GPUs is taken to lie on.
  [[nodiscard]] virtual int NodesOfShare(int gpus, const Cluster& cluster) const;
  // A job of which no goodput is known.
  [[nodiscard]] virtual SearchJob Unreported(const JobSpec& job, const Snapshot& snapshot,
                                             const FairShare& share) const;
  // SearchJob::if_moved; `restarts` as in HeldBefore.
  [[nodiscard]] virtual double IfMoved(const JobView& job, int restarts,
                                       const Snapshot& snapshot) const;
  // From what the search starts: of the last front, whose matrices have the rows of last.rows and
  // the columns of `base`, and of what jobs hold, `base`, whose rows are those of `jobs`. Not
  // empty.
  [[nodiscard]] virtual std::vector<AllocationMatrix> InitialOf(const PolluxMemory& last,
                                                                std::span<const JobId> jobs,
                                                                const AllocationMatrix& base) const;
  // Sets what else there is of a problem.
  virtual void Complete(SearchProblem& problem) const;
  [[nodiscard]] virtual SearchLimits Limits() const;
  // What is made of the best that was found.
  [[nodiscard]] virtual AllocationMatrix Chosen(const SearchProblem& problem,
                                                const SearchResult& found) const;

  // Jobs in the order of priority: the least service first.
  [[nodiscard]] static std::vector<JobView> JobsInOrder(const Snapshot& snapshot);
  [[nodiscard]] SearchProblem ProblemOf(std::span<const JobView> jobs, const Snapshot& snapshot,
                                        PolluxMemory& last) const;
  // Whether a search would see what the last one has seen, but for ages that have hardly grown.
  [[nodiscard]] Proposal Allocate(const Snapshot& snapshot, PolluxMemory& last) const;

  const PolluxSettings settings_;
};

// Options `interval` and `seed`.
[[nodiscard]] std::span<const OptionSpec> PolluxOptions();
// Errors: they are out of range for `policy`.
[[nodiscard]] Result<PolluxSettings> PolluxSettingsOf(const Options& options,
                                                      std::string_view policy);

// No node has two distributed jobs afterwards: where an earlier job is that lies on several nodes,
// a later one loses its GPUs, until it lies on one node.
void SeparateDistributed(AllocationMatrix& matrix);

}  // namespace trainyard::policies
