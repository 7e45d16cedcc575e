// SPDX-License-Identifier: Apache-2.0
// The live jobs of an ordering, sorted incrementally. Waiting jobs lie in one heap per demand class
// (GPU count and types), best first; running jobs in one set per speed at which their keys move.
// Within such a set the order does not change with time, so an event costs O(log jobs), the best
// waiting job of all is found among the tops, and the running jobs are gone through from the worst
// by merging the sets: O(classes) a step.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/indexed_heap.h"
#include "scheduler/node_choices.h"
#include "trainyard/component.h"
#include "trainyard/state.h"

namespace trainyard::scheduler {

class OrderIndex {
 public:
  // Jobs of an earlier band go before those of a later one whatever the keys.
  enum class Band : std::uint8_t {
    kFirst,  // Standing::first
    kStays,  // holds GPUs and is no victim yet
    kOpen,
  };
  // The place of a job in the order, at a time.
  struct Rank {
    Band band = Band::kOpen;
    Key key{};
    bool waits = false;  // behind running jobs of the same key; not told apart under kPublished
    std::uint64_t arrival = 0;
    friend auto operator<=>(const Rank&, const Rank&) = default;  // NOLINT(modernize-use-nullptr)
    void Serialize(StateStream& state) { state(band, key, waits, arrival); }
  };

  // That of a job whose stay has ended.
  [[nodiscard]] static Rank WithoutStay(Rank rank) {
    rank.band = rank.band == Band::kStays ? Band::kOpen : rank.band;
    return rank;
  }

  // A running job as the walk needs it, in one piece of memory.
  struct Running {
    Rank rank{};  // with a slope: key[0] extrapolated to time 0
    JobId job{};
    int gpus = 0;
    std::optional<NodeId> node;  // if all its GPUs are on one
    friend bool operator<(const Running& a, const Running& b) { return a.rank < b.rank; }
  };

  // REQUIRES: the job is not in the index.
  void PushWaiting(JobId job, const DemandClass& of, const Rank& rank);
  // `slope`: change of key[0] per microsecond from now on.
  void PushRunning(JobId job, const Grant& grant, const Rank& rank, double slope, TimePoint now);
  void Erase(JobId job);  // REQUIRES: it is in the index
  // Whether the running jobs keep their order among themselves as time goes by; then `slope` is
  // what all of them have.
  [[nodiscard]] std::optional<double> CommonSlope() const;
  // As stored: of a running job key[0] at time 0.
  [[nodiscard]] const Rank& StoredRank(JobId job) const { return entries_[Index(job)].rank; }
  [[nodiscard]] bool Runs(JobId job) const {
    return Index(job) < entries_.size() && entries_[Index(job)].in == Entry::In::kRunning;
  }
  [[nodiscard]] bool Holds(JobId job) const;

  [[nodiscard]] Rank RankAt(JobId job, TimePoint now) const;
  // Reading: into an empty index; `jobs` hold what they held then.
  void Serialize(StateStream& state, const JobTable& jobs);

  // The waiting jobs by demand class, the best on top; some classes may be empty.
  [[nodiscard]] const std::map<DemandClass, base::IndexedHeap>& waiting() const { return waiting_; }

 private:
  struct Entry {
    Rank rank{};  // as Running::rank
    double slope = 0;
    DemandClass of{};  // of a waiting job
    enum class In : std::uint8_t { kNothing, kWaiting, kRunning } in = In::kNothing;
    void Serialize(StateStream& state) { state(rank, slope, of.gpus, of.kind, in); }
  };
  struct RunningGroup {
    double slope = 0;
    std::set<Running> jobs;
  };

 public:
  // Goes through the running jobs at `now`, the worst-ranked first. Valid until the index changes.
  class FromWorst {
   public:
    FromWorst(const OrderIndex& index, TimePoint now);
    // The next job if it ranks below `limit`, else null.
    [[nodiscard]] const Running* Next(const Rank& limit);

   private:
    struct Place {
      std::set<Running>::const_reverse_iterator next;
      std::set<Running>::const_reverse_iterator end;
      double slope = 0;
      Rank rank{};  // of *next, now
    };
    void Look(Place& place) const;

    const TimePoint now_;
    std::vector<Place> places_;
  };

 private:
  Entry& At(JobId job);
  void Insert(JobId job, const Entry& entry, const Grant& grant);
  [[nodiscard]] RunningGroup& GroupOf(double slope);
  [[nodiscard]] bool WaitsBefore(std::size_t a, std::size_t b) const {
    return entries_[a].rank < entries_[b].rank;
  }

  std::vector<Entry> entries_;     // by JobId
  base::HeapPositions positions_;  // of waiting jobs, by JobId
  std::map<DemandClass, base::IndexedHeap> waiting_;
  std::list<RunningGroup> running_;  // few
};

}  // namespace trainyard::scheduler
