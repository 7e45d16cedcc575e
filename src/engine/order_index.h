// SPDX-License-Identifier: Apache-2.0
// The live jobs of an ordering, sorted incrementally. Waiting jobs lie in one heap per demand class
// (GPU count), best first; running jobs in one heap per speed at which their keys move, worst
// first. Within such a heap the order does not change with time, so an event costs O(log jobs) and
// the best waiting or worst running job of all is found among the tops: O(classes).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/indexed_heap.h"
#include "trainyard/component.h"

namespace trainyard {

class OrderIndex {
 public:
  // The place of a job in the order, at a time.
  struct Rank {
    Key key{};
    std::uint64_t arrival = 0;
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };

  // REQUIRES: the job is in no heap.
  void PushWaiting(JobId job, int gpus, const Rank& rank);
  // `slope`: change of key[0] per microsecond from now on.
  void PushRunning(JobId job, const Rank& rank, double slope, TimePoint now);
  // Puts a popped running job back as it was.
  void RestoreRunning(JobId job);
  void Erase(JobId job);  // REQUIRES: it is in a heap
  [[nodiscard]] bool Holds(JobId job) const;

  // The worst-ranked running job at `now`; ties cannot be. Does not remove it.
  [[nodiscard]] std::optional<JobId> WorstRunning(TimePoint now) const;
  [[nodiscard]] Rank RankAt(JobId job, TimePoint now) const;

  // The waiting jobs by demand class (GPU count), the best on top; some classes may be empty.
  [[nodiscard]] const std::map<int, IndexedHeap>& waiting() const { return waiting_; }

  // Removes everything.
  void Clear();

 private:
  struct Entry {
    Key key{};  // of a running job with a slope: key[0] extrapolated to time 0
    std::uint64_t arrival = 0;
    double slope = 0;
    int gpus = 0;
    bool running = false;
  };
  Entry& At(JobId job);
  [[nodiscard]] IndexedHeap& RunningHeap(double slope);
  [[nodiscard]] bool EntryBefore(std::size_t a, std::size_t b) const;

  std::vector<Entry> entries_;  // by JobId
  HeapPositions positions_;     // by JobId
  std::map<int, IndexedHeap> waiting_;
  struct RunningGroup {
    double slope = 0;
    IndexedHeap heap;
  };
  std::vector<RunningGroup> running_;
};

}  // namespace trainyard
