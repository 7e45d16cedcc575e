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
  [[nodiscard]] bool TryBeside(const Grant& other) {
    if (later_.IsFree(other)) {
      later_.Add(other);
      return true;
    }
    later_.Remove(grant_);
    later_.Add(other);
    if (std::optional<Grant> elsewhere = later_.TryAdd(job_, {.gpus = grant_.gpus}, nullptr)) {
      grant_ = std::move(*elsewhere);
      return true;
    }
    later_.Remove(other);
    later_.Add(grant_);
    return false;
  }
  void Forget(const Grant& other) { later_.Remove(other); }
  // Where it would lie.
  [[nodiscard]] const Grant& grant() const { return grant_; }

 private:
  JobId id_;
  const JobSpec& job_;
  TimePoint from_;
  Packing later_;
  Grant grant_;  // its place in `later_`
};

// The numbers of GPUs that are promised to the first of those that may have the same nodes, and
// what is free of these nodes beside them.
struct Promises {
  DemandClass of{};  // of one of them
  model::NodeClassSet nodes = 0;
  int made = 0;
  model::FreeOverTime free;
};

class Backfiller {
 public:
  Backfiller(std::span<const Ranked> list, const Standings& standings, TimePoint now,
             Packing& packing)
      : list_(list), standings_(standings), now_(now), packing_(packing) {}

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
      } else if (is_closed || !Start(waiting)) {
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
  struct Release {
    TimePoint at{};
    const Grant* grant = nullptr;
  };
  struct Promised {
    TimePoint from{};
    TimePoint until{};
    int gpus = 0;
    model::NodeClassSet nodes = 0;
  };
  static void Keep(const Promised& promised, Promises& in) {
    if ((promised.nodes & in.nodes) != 0) {
      in.free.Take(promised.from, promised.until, promised.gpus);
    }
  }

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
    if (!promises_.empty()) {
      TakeFromPromises(grant, EndOf(waiting.job));
    }
    selection_.placed.push_back({waiting.job, std::move(grant)});
    return true;
  }

  // Whether there is nothing left to promise to the job.
  [[nodiscard]] bool IsBehind(const WaitingJob& waiting) {
    const model::NodeClassSet nodes = packing_.NodesFor(waiting.of);
    if (!HasPromises()) {
      return (nodes & awaited_) != 0;
    }
    const Promises* const promises = PromisesOn(nodes);
    return promises != nullptr && promises->made >= standings_.walk().reservations;
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
    if (HasPromises() && (nodes & awaited_) != 0 && packing_.CanBeMet(waiting.of)) {
      ReserveForHeads();
      const bool has_place =
          is_first && !reservations_.empty() && reservations_.back().is_of(waiting.job);
      Promise(waiting, nodes, has_place ? reservations_.back().from() : now_);
    }
  }

  // -------------------------------------------------------------------------------------- promises

  [[nodiscard]] bool HasPromises() const { return standings_.walk().reservations > 1; }

  [[nodiscard]] Promises* PromisesOn(model::NodeClassSet nodes) {
    const auto found = std::find_if(promises_.begin(), promises_.end(),
                                    [nodes](const Promises& one) { return one.nodes == nodes; });
    return found == promises_.end() ? nullptr : &*found;
  }

  // GPUs of the grant on nodes that such a demand may have.
  [[nodiscard]] int GpusOn(const DemandClass& of, const Grant& grant) const {
    if (!packing_.several_kinds() || grant.slices.empty()) {
      return grant.gpus;
    }
    int gpus = 0;
    for (const Slice& slice : grant.slices) {
      gpus += packing_.MayUse(of, slice.node) ? std::popcount(slice.gpus) : 0;
    }
    return gpus;
  }

  // So many GPUs at the first time at which they are free for as long as the job takes. Which they
  // will be is open, so that they may be of any node that the job may have.
  void Promise(const WaitingJob& waiting, model::NodeClassSet nodes, TimePoint least) {
    Promises* own = PromisesOn(nodes);
    if (own == nullptr) {
      own = &promises_.emplace_back(FreeOf(waiting.of, nodes));
    }
    if (own->made >= standings_.walk().reservations) {
      return;
    }
    ++own->made;
    const TimePoint end = EndOf(waiting.job);
    const Duration takes = end == kEndOfTime ? kEndOfTime - now_ : end - now_;
    // Not now: enough of them may be free, and no place.
    const TimePoint start =
        own->free.EarliestStart(waiting.of.gpus, takes, std::max(least, own->free.next_change()));
    const Promised made{.from = start,
                        .until = model::FreeOverTime::EndOf(start, takes),
                        .gpus = waiting.of.gpus,
                        .nodes = nodes};
    for (Promises& one : promises_) {
      Keep(made, one);
    }
    promised_.push_back(made);
  }

  // As it is with the promises that have been made of these nodes to others.
  [[nodiscard]] Promises FreeOf(const DemandClass& of, model::NodeClassSet nodes) {
    Promises made{
        .of = of, .nodes = nodes, .free = model::FreeOverTime(now_, packing_.free_gpus(of))};
    for (const Release& release : Releases()) {
      if (release.grant != nullptr) {
        made.free.Give(release.at, kEndOfTime, GpusOn(of, *release.grant));
      }
    }
    for (const Promised& one : promised_) {
      Keep(one, made);
    }
    return made;
  }

  // Whether nobody is promised GPUs that such a job would have then.
  [[nodiscard]] bool BreaksNoPromise(const Grant& grant, TimePoint end) const {
    return std::all_of(promises_.begin(), promises_.end(), [&](const Promises& one) {
      const int gpus = GpusOn(one.of, grant);
      return gpus == 0 || one.free.HasUntil(end, gpus);
    });
  }

  void TakeFromPromises(const Grant& grant, TimePoint end) {
    for (Promises& one : promises_) {
      one.free.Take(now_, end, GpusOn(one.of, grant));
    }
  }

  // ------------------------------------------------------------------------------------- the first

  // Whether the job starts, beside those that wait before it.
  bool StartBehind(const WaitingJob& waiting, TimePoint end) {
    if (packing_.free_gpus(waiting.of) < waiting.of.gpus) {
      return Close(waiting, model::WaitReason::kGpus);
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
    if (DelaysNobody(*grant, end)) {
      return Place(waiting, std::move(*grant));
    }
    packing_.Remove(*grant);
    grant = TryAround(waiting, end);
    if (grant && !DelaysNobody(*grant, end)) {
      packing_.Remove(*grant);
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
    std::vector<Grant> kept;
    for (const Reservation& one : reservations_) {
      if (end > one.from()) {
        kept.push_back(packing_.FreePartOf(one.grant()));
        packing_.Add(kept.back());
      }
    }
    std::optional<Grant> grant = TryAdd(waiting, left_);
    for (const Grant& free : kept) {
      packing_.Remove(free);
    }
    return grant;
  }

  [[nodiscard]] bool DelaysNobody(const Grant& grant, TimePoint end) {
    if (!BreaksNoPromise(grant, end)) {
      return false;
    }
    for (std::size_t i = 0; i < reservations_.size(); ++i) {
      if (end <= reservations_[i].from() || reservations_[i].TryBeside(grant)) {
        continue;
      }
      for (std::size_t earlier = 0; earlier < i; ++earlier) {
        if (end > reservations_[earlier].from()) {
          reservations_[earlier].Forget(grant);
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
        later.Remove(*releases[i].grant);
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
        releases.push_back({EndOf(ranked.job), &grant});
      }
    }
    for (const Placed& placed : selection_.placed) {
      releases.push_back({EndOf(placed.job), &placed.grant});
    }
    std::stable_sort(releases.begin(), releases.end(),
                     [](const Release& a, const Release& b) { return a.at < b.at; });
    return releases;
  }

  const std::span<const Ranked> list_;
  const Standings& standings_;
  const TimePoint now_;
  Packing& packing_;
  Selection selection_;
  std::vector<DemandClass> closed_;  // for which there is no place
  model::NodeClassSet awaited_ = 0;  // nodes that heads may have
  std::vector<WaitingJob> heads_;    // of each set of nodes the first that waits
  std::size_t reserved_ = 0;         // of them, that have a reservation, or nodes left to them
  std::vector<Reservation> reservations_;
  std::vector<Promises> promises_;  // by set of nodes
  std::vector<Promised> promised_;  // to all of them
  model::NodeClassSet left_ = 0;    // to heads of which nobody knows when they find a place
};

}  // namespace

Selection Backfill(std::span<const Ranked> list, const Standings& standings, TimePoint now,
                   Packing& packing) {
  return Backfiller(list, standings, now, packing).Take();
}

}  // namespace trainyard::scheduler
