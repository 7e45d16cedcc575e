// SPDX-License-Identifier: Apache-2.0
// The live jobs of an ordering, sorted incrementally. Waiting jobs lie in one heap per demand class
// (GPU count), best first; running jobs in one set per speed at which their keys move. Within such a
// set the order does not change with time, so an event costs O(log jobs), the best waiting job of
// all is found among the tops, and the running jobs are gone through from the worst by merging the
// sets: O(classes) a step.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/indexed_heap.h"
#include "trainyard/component.h"

namespace trainyard {

class OrderIndex {
 public:
  OrderIndex() = default;
  OrderIndex(const OrderIndex&) = delete;  // the sets refer to it
  OrderIndex& operator=(const OrderIndex&) = delete;

  // The place of a job in the order, at a time.
  struct Rank {
    Key key{};
    std::uint64_t arrival = 0;
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };

  // REQUIRES: the job is not in the index.
  void PushWaiting(JobId job, int gpus, const Rank& rank);
  // `slope`: change of key[0] per microsecond from now on.
  void PushRunning(JobId job, const Rank& rank, double slope, TimePoint now);
  void Erase(JobId job);  // REQUIRES: it is in the index
  [[nodiscard]] bool Holds(JobId job) const;

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
    enum class In : std::uint8_t { kNothing, kWaiting, kRunning } in = In::kNothing;
  };
  struct RunsBefore {
    const OrderIndex* index;
    bool operator()(std::uint32_t a, std::uint32_t b) const { return index->EntryBefore(a, b); }
  };
  struct RunningGroup {
    double slope = 0;
    std::set<std::uint32_t, RunsBefore> jobs;
  };

 public:
  // Goes through the running jobs at `now`, the worst-ranked first. Valid until the index changes.
  class FromWorst {
   public:
    FromWorst(const OrderIndex& index, TimePoint now);
    // The next job if it ranks below `limit`.
    [[nodiscard]] std::optional<JobId> Next(const Rank& limit);

   private:
    struct Place {
      std::set<std::uint32_t, RunsBefore>::const_reverse_iterator next;
      std::set<std::uint32_t, RunsBefore>::const_reverse_iterator end;
      Rank rank;  // of *next
    };
    const OrderIndex& index_;
    const TimePoint now_;
    std::vector<Place> places_;
  };

 private:
  Entry& At(JobId job);
  [[nodiscard]] RunningGroup& GroupOf(double slope);
  [[nodiscard]] bool EntryBefore(std::size_t a, std::size_t b) const;

  std::vector<Entry> entries_;  // by JobId
  HeapPositions positions_;     // of waiting jobs, by JobId
  std::map<int, IndexedHeap> waiting_;
  std::list<RunningGroup> running_;  // few
};

}  // namespace trainyard
