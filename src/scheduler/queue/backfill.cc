// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/backfill.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

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
  Reservation(const JobSpec& job, TimePoint from, Packing later, Grant grant)
      : job_(job), from_(from), later_(std::move(later)), grant_(std::move(grant)) {}

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
  const JobSpec& job_;
  TimePoint from_;
  Packing later_;
  Grant grant_;  // its place in `later_`
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
      if (IsClosed(waiting.of)) {
        continue;
      }
      if ((packing_.NodesFor(waiting.of) & awaited_) != 0 && standings_.walk().shortest_first &&
          packing_.free_gpus(waiting.of) >= waiting.of.gpus) {
        behind.emplace_back(EndOf(waiting.job), waiting);
      } else if (!Start(waiting)) {
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
    selection_.placed.push_back({waiting.job, std::move(grant)});
    return true;
  }

  // The first that waits of those that may have the same nodes.
  void Await(const WaitingJob& waiting) {
    const model::NodeClassSet nodes = packing_.NodesFor(waiting.of);
    const bool is_first = std::none_of(heads_.begin(), heads_.end(), [&](const WaitingJob& head) {
      return packing_.NodesFor(head.of) == nodes;
    });
    if (is_first && packing_.CanBeMet(waiting.of)) {
      awaited_ |= nodes;
      heads_.push_back(waiting);
    }
  }

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
        reservations_.emplace_back(SpecOf(head), releases[i].at, std::move(later),
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
  model::NodeClassSet left_ = 0;  // to heads of which nobody knows when they find a place
};

}  // namespace

Selection Backfill(std::span<const Ranked> list, const Standings& standings, TimePoint now,
                   Packing& packing) {
  return Backfiller(list, standings, now, packing).Take();
}

}  // namespace trainyard::scheduler
