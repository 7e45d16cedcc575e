// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/backfill.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "model/free_over_time.h"

namespace trainyard::scheduler {
namespace {

struct WaitingJob {
  JobId job{};
  DemandClass of{};
};

// GPUs for a job from a time on, at which running jobs will have given them back. It may come to
// lie elsewhere at that time: what counts is that it finds a place then.
class Reservation {
 public:
  // `later`: what is free at that time, without the job. REQUIRES: the job has a place there.
  Reservation(JobId id, const JobSpec& job, TimePoint from, Packing later, Grant grant)
      : id_(id), job_(job), from_(from), later_(std::move(later)), grant_(std::move(grant)) {}

  [[nodiscard]] bool is_of(JobId job) const { return job == id_; }
  [[nodiscard]] TimePoint from() const { return from_; }
  // GPUs that such a demand may have beside the job.
  [[nodiscard]] int spare(const DemandClass& of) { return later_.free_gpus(of); }

  // Whether the job still finds a place if another one holds these GPUs at that time; then the
  // other one is taken into account from now on.
  [[nodiscard]] bool TryBeside(const JobSpec& job, const Grant& other) {
    if (later_.IsFree(job, other)) {
      later_.Add(job, other);
      return true;
    }
    later_.Remove(job_, grant_);
    if (later_.IsFree(job, other)) {
      later_.Add(job, other);
      if (std::optional<Grant> elsewhere = later_.TryAdd(job_, {.gpus = grant_.gpus}, nullptr)) {
        grant_ = std::move(*elsewhere);
        return true;
      }
      later_.Remove(job, other);
    }
    later_.Add(job_, grant_);
    return false;
  }
  void Forget(const JobSpec& job, const Grant& other) { later_.Remove(job, other); }
  [[nodiscard]] const JobSpec& spec() const { return job_; }
  // Where it would lie.
  [[nodiscard]] const Grant& grant() const { return grant_; }

 private:
  JobId id_;
  const JobSpec& job_;
  TimePoint from_;
  Packing later_;
  Grant grant_;  // its place in `later_`
};

// GPUs that come free, of jobs that run. The first of a list is of none, now.
struct Release {
  TimePoint at{};
  const Grant* grant = nullptr;
  const JobSpec* job = nullptr;
};

// Numbers of GPUs over time that are promised to the first that wait, of each set of nodes so many.
// Which GPUs they will be is open: they may be of any node that the job may have.
class Promises {
 public:
  // `packing` must outlive the promises.
  Promises(TimePoint now, int most, Packing& packing) : now_(now), most_(most), packing_(packing) {}

  // False: the first of each set of nodes is promised a place, and nobody anything more.
  [[nodiscard]] bool are_made() const { return most_ > 1; }
  // Whether those who may have these nodes are promised all that there is to promise.
  [[nodiscard]] bool AreAllMade(model::NodeClassSet nodes) const {
    return std::any_of(sets_.begin(), sets_.end(), [&](const SetOfNodes& one) {
      return one.nodes == nodes && one.made >= most_;
    });
  }
  // Before the first promise to a job of this class. `releases`: of all jobs that run.
  void Open(const DemandClass& of, std::span<const Release> releases) {
    SetOfNodes made{.of = of,
                    .nodes = packing_.NodesFor(of),
                    .free = model::FreeOverTime(now_, packing_.free_gpus(of))};
    for (const Release& release : releases) {
      if (release.grant != nullptr) {
        made.free.Give(release.at, kEndOfTime, GpusOf(made, *release.grant));
      }
    }
    for (const Promise& one : made_) {
      Keep(one, made);
    }
    sets_.push_back(std::move(made));
  }
  [[nodiscard]] bool IsOpen(model::NodeClassSet nodes) { return Find(nodes) != sets_.end(); }
  // To a job that would end at that time if it started now, which it cannot: as many as it asks
  // for, from the first time at which they are free for as long as it takes, not before `least`.
  // REQUIRES: IsOpen(the nodes that it may have), not AreAllMade.
  void Make(const DemandClass& of, TimePoint end, TimePoint least) {
    SetOfNodes& own = *Find(packing_.NodesFor(of));
    ++own.made;
    const Duration takes = end - now_;
    // Not before something changes: enough may be free now, and no place.
    const TimePoint from =
        own.free.EarliestStart(of.gpus, takes, std::max(least, own.free.next_change()));
    made_.push_back({.from = from,
                     .until = model::FreeOverTime::EndOf(from, takes),
                     .gpus = of.gpus,
                     .nodes = own.nodes});
    for (SetOfNodes& one : sets_) {
      Keep(made_.back(), one);
    }
  }
  // Whether somebody is promised GPUs that a job with this grant would have until then.
  [[nodiscard]] bool AreBrokenBy(const Grant& grant, TimePoint end) const {
    return std::any_of(sets_.begin(), sets_.end(), [&](const SetOfNodes& one) {
      const int gpus = GpusOf(one, grant);
      return gpus > 0 && !one.free.HasUntil(end, gpus);
    });
  }
  // A job has started.
  void Note(const Grant& grant, TimePoint end) {
    for (SetOfNodes& one : sets_) {
      one.free.Take(now_, end, GpusOf(one, grant));
    }
  }

 private:
  struct Promise {
    TimePoint from{};
    TimePoint until{};
    int gpus = 0;
    model::NodeClassSet nodes = 0;
  };
  // Those that some jobs may have, and what is free of them beside the promises.
  struct SetOfNodes {
    DemandClass of{};  // of one of the jobs
    model::NodeClassSet nodes = 0;
    int made = 0;
    model::FreeOverTime free;
  };

  [[nodiscard]] std::vector<SetOfNodes>::iterator Find(model::NodeClassSet nodes) {
    return std::find_if(sets_.begin(), sets_.end(),
                        [nodes](const SetOfNodes& one) { return one.nodes == nodes; });
  }

  static void Keep(const Promise& promise, SetOfNodes& in) {
    if ((promise.nodes & in.nodes) != 0) {
      in.free.Take(promise.from, promise.until, promise.gpus);
    }
  }

  [[nodiscard]] int GpusOf(const SetOfNodes& set, const Grant& grant) const {
    if (!packing_.several_kinds() || grant.slices.empty()) {
      return grant.gpus;
    }
    int gpus = 0;
    for (const Slice& slice : grant.slices) {
      gpus += packing_.MayUse(set.of, slice.node) ? std::popcount(slice.gpus) : 0;
    }
    return gpus;
  }

  const TimePoint now_;
  const int most_;
  Packing& packing_;
  std::vector<SetOfNodes> sets_;
  std::vector<Promise> made_;  // on all of them
};

class Backfiller {
 public:
  Backfiller(std::span<const Ranked> list, const Standings& standings, TimePoint now,
             Packing& packing)
      : list_(list),
        standings_(standings),
        now_(now),
        packing_(packing),
        promises_(now, standings.walk().reservations, packing) {}

  [[nodiscard]] Selection Take() {
    std::vector<std::pair<TimePoint, WaitingJob>> behind;  // with their ends, if they start now
    for (const Ranked& ranked : list_) {
      const auto [spec, held, started] = standings_.jobs().brief(ranked.job);
      if (held != nullptr && held->gpus > 0) {
        continue;
      }
      const WaitingJob waiting{.job = ranked.job, .of = ClassOf(*spec)};
      const bool is_closed = IsClosed(waiting.of);
      if (!is_closed && standings_.walk().shortest_first && IsBehind(waiting) &&
          packing_.free_gpus(waiting.of) >= waiting.of.gpus) {
        behind.emplace_back(EndOf(waiting.job), waiting);
      } else if (is_closed ? promises_.are_made() : !Start(waiting)) {
        Await(waiting);
      }
    }
    std::stable_sort(behind.begin(), behind.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [end, waiting] : behind) {
      if (!IsClosed(waiting.of)) {
        StartBehind(waiting, end);
      }
    }
    return std::move(selection_);
  }

 private:
  // Of a waiting job: if it starts now. One that is overdue may end at any time.
  [[nodiscard]] TimePoint EndOf(JobId job) const {
    const std::optional<Duration> takes = standings_.Of(standings_.jobs().at(job), now_).takes;
    return takes && *takes < kEndOfTime - now_ ? now_ + std::max(*takes, Duration{1}) : kEndOfTime;
  }

  [[nodiscard]] DemandClass ClassOf(const JobSpec& job) const {
    return packing_.several_kinds() ? packing_.ClassOf(job, job.gpus)
                                    : DemandClass{.gpus = job.gpus};
  }

  [[nodiscard]] bool IsClosed(const DemandClass& of) const {
    return std::find(closed_.begin(), closed_.end(), of) != closed_.end();
  }
  // Free GPUs only become fewer.
  bool Close(const WaitingJob& waiting, model::WaitReason why) {
    closed_.push_back(waiting.of);
    return Block(waiting, why);
  }
  bool Block(const WaitingJob& waiting, model::WaitReason why) {
    selection_.Block({waiting.job, waiting.of.gpus, why, waiting.of.kind});
    return false;
  }

  [[nodiscard]] const JobSpec& SpecOf(const WaitingJob& waiting) const {
    return standings_.jobs().spec(waiting.job);
  }
  // Whether the job starts.
  bool Start(const WaitingJob& waiting) {
    if ((packing_.NodesFor(waiting.of) & awaited_) != 0) {
      return StartBehind(waiting, EndOf(waiting.job));
    }
    std::optional<Grant> grant = TryAdd(waiting, 0);
    return grant ? Place(waiting, std::move(*grant)) : Close(waiting, packing_.WhyNot(waiting.of));
  }
  bool Place(const WaitingJob& waiting, Grant grant) {
    if (promises_.are_made()) {
      promises_.Note(grant, EndOf(waiting.job));
    }
    selection_.placed.push_back({waiting.job, std::move(grant)});
    return true;
  }

  // Whether there is nothing left to promise to the job.
  [[nodiscard]] bool IsBehind(const WaitingJob& waiting) const {
    const model::NodeClassSet nodes = packing_.NodesFor(waiting.of);
    return promises_.are_made() ? promises_.AreAllMade(nodes) : (nodes & awaited_) != 0;
  }

  // The first that waits of those that may have the same nodes, and with promises the next ones.
  void Await(const WaitingJob& waiting) {
    const model::NodeClassSet nodes = packing_.NodesFor(waiting.of);
    const bool is_first = std::none_of(heads_.begin(), heads_.end(), [&](const WaitingJob& head) {
      return packing_.NodesFor(head.of) == nodes;
    });
    if (is_first && packing_.CanBeMet(waiting.of)) {
      awaited_ |= nodes;
      heads_.push_back(waiting);
    }
    if (promises_.are_made() && !promises_.AreAllMade(nodes) && packing_.CanBeMet(waiting.of)) {
      ReserveForHeads();
      const bool has_place =
          is_first && !reservations_.empty() && reservations_.back().is_of(waiting.job);
      if (!promises_.IsOpen(nodes)) {
        promises_.Open(waiting.of, Releases());
      }
      promises_.Make(waiting.of, EndOf(waiting.job),
                     has_place ? reservations_.back().from() : now_);
    }
  }

  // Whether the job starts, beside those that wait before it.
  bool StartBehind(const WaitingJob& waiting, TimePoint end) {
    if (packing_.free_gpus(waiting.of) < waiting.of.gpus) {
      return Close(waiting, packing_.WhyNot(waiting.of));
    }
    ReserveForHeads();
    const bool has_no_room =
        std::any_of(reservations_.begin(), reservations_.end(), [&](Reservation& one) {
          return end > one.from() && one.spare(waiting.of) < waiting.of.gpus;
        });
    if (has_no_room || (packing_.NodesFor(waiting.of) & ~left_) == 0) {
      return Block(waiting, model::WaitReason::kBehindHead);
    }
    std::optional<Grant> grant = TryAdd(waiting, left_);
    if (!grant) {
      return Close(waiting, packing_.WhyNot(waiting.of));
    }
    const JobSpec& spec = SpecOf(waiting);
    if (DelaysNobody(spec, *grant, end)) {
      return Place(waiting, std::move(*grant));
    }
    packing_.Remove(spec, *grant);
    grant = TryAround(waiting, end);
    if (grant && !DelaysNobody(spec, *grant, end)) {
      packing_.Remove(spec, *grant);
      grant.reset();
    }
    return grant ? Place(waiting, std::move(*grant))
                 : Block(waiting, model::WaitReason::kBehindHead);
  }

  // On others than these nodes.
  [[nodiscard]] std::optional<Grant> TryAdd(const WaitingJob& waiting, model::NodeClassSet but) {
    return packing_.TryAdd(SpecOf(waiting), {.gpus = waiting.of.gpus}, nullptr, but);
  }

  // As if those who wait before had what they will have of the free GPUs.
  [[nodiscard]] std::optional<Grant> TryAround(const WaitingJob& waiting, TimePoint end) {
    std::vector<std::pair<const JobSpec*, Grant>> kept;
    for (const Reservation& one : reservations_) {
      if (end > one.from()) {
        kept.emplace_back(&one.spec(), packing_.FreePartOf(one.grant()));
        packing_.Add(*kept.back().first, kept.back().second);
      }
    }
    std::optional<Grant> grant = TryAdd(waiting, left_);
    for (const auto& [job, free] : kept) {
      packing_.Remove(*job, free);
    }
    return grant;
  }

  [[nodiscard]] bool DelaysNobody(const JobSpec& job, const Grant& grant, TimePoint end) {
    if (promises_.AreBrokenBy(grant, end)) {
      return false;
    }
    for (std::size_t i = 0; i < reservations_.size(); ++i) {
      if (end <= reservations_[i].from() || reservations_[i].TryBeside(job, grant)) {
        continue;
      }
      for (std::size_t earlier = 0; earlier < i; ++earlier) {
        if (end > reservations_[earlier].from()) {
          reservations_[earlier].Forget(job, grant);
        }
      }
      return false;
    }
    return true;
  }

  // For those that have none yet; not before somebody could come into their way.
  void ReserveForHeads() {
    if (reserved_ == heads_.size()) {
      return;
    }
    const std::vector<Release> releases = Releases();
    for (; reserved_ < heads_.size(); ++reserved_) {
      Reserve(heads_[reserved_], releases);
    }
  }

  // Where nobody knows when it will find a place, its nodes are left to it.
  void Reserve(const WaitingJob& head, std::span<const Release> releases) {
    Packing later = packing_;
    for (std::size_t i = 0; i < releases.size() && releases[i].at != kEndOfTime; ++i) {
      if (releases[i].grant != nullptr) {
        later.Remove(*releases[i].job, *releases[i].grant);
      }
      const bool is_last = i + 1 == releases.size() || releases[i + 1].at != releases[i].at;
      if (!is_last || later.free_gpus(head.of) < head.of.gpus) {
        continue;
      }
      if (std::optional<Grant> grant =
              later.TryAdd(SpecOf(head), {.gpus = head.of.gpus}, nullptr)) {
        reservations_.emplace_back(head.job, SpecOf(head), releases[i].at, std::move(later),
                                   std::move(*grant));
        return;
      }
    }
    left_ |= packing_.NodesFor(head.of);
  }

  // Of the jobs that run, and of those that start now; by time. The first is of nothing, now: a job
  // may have a place and wait for those before it alone.
  [[nodiscard]] std::vector<Release> Releases() const {
    std::vector<Release> releases{{.at = now_}};
    for (const Ranked& ranked : list_) {
      if (const Grant& grant = standings_.jobs().grant(ranked.job); grant.gpus > 0) {
        releases.push_back({EndOf(ranked.job), &grant, &standings_.jobs().spec(ranked.job)});
      }
    }
    for (const Placed& placed : selection_.placed) {
      releases.push_back({EndOf(placed.job), &placed.grant, &standings_.jobs().spec(placed.job)});
    }
    std::stable_sort(releases.begin(), releases.end(),
                     [](const Release& a, const Release& b) { return a.at < b.at; });
    return releases;
  }

  const std::span<const Ranked> list_;
  const Standings& standings_;
  const TimePoint now_;
  Packing& packing_;
  Promises promises_;
  Selection selection_;
  std::vector<DemandClass> closed_;  // for which there is no place
  model::NodeClassSet awaited_ = 0;  // nodes that heads may have
  std::vector<WaitingJob> heads_;    // of each set of nodes the first that waits
  std::size_t reserved_ = 0;         // of them, that have a reservation, or nodes left to them
  std::vector<Reservation> reservations_;
  model::NodeClassSet left_ = 0;  // to heads of which nobody knows when they find a place
};

}  // namespace

Selection Backfill(std::span<const Ranked> list, const Standings& standings, TimePoint now,
                   Packing& packing) {
  return Backfiller(list, standings, now, packing).Take();
}

}  // namespace trainyard::scheduler
