// SPDX-License-Identifier: Apache-2.0
#include "live/attempts/attempts.h"

#include <algorithm>
#include <bit>

namespace trainyard::live {

// The state of a part that has not exited is not kept: its agent reports it again.
void Part::Serialize(StateStream& stream) {
  // A failed part is reported again, if it is not clear yet whose fault that is.
  bool exited = state == PartState::kExited && !failure.has_failed();
  stream(node, gpus, soft, loader_workers, exited, finished);
  if (stream.reading()) {
    state = exited ? PartState::kExited : PartState::kUnknown;
  }
}

v1::NodeShare ShareOf(const Part& part) {
  v1::NodeShare share;
  share.set_milli_cpus(part.soft.milli_cpus);
  share.set_memory_mib(part.soft.memory_mib);
  share.set_storage_kbps(part.soft.storage_kbps);
  share.set_loader_workers(part.loader_workers);
  return share;
}

UseNote UseNoteOf(JobId job, std::uint32_t attempt, const Part& part) {
  return {.job = job,
          .node = part.node,
          .attempt = attempt,
          .use = part.use,
          .memory_mib = part.soft.memory_mib};
}

bool LiveAttempt::is_over() const {
  return std::all_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.state == PartState::kExited; });
}

bool LiveAttempt::has_finished() const {
  return !parts.empty() &&
         std::all_of(parts.begin(), parts.end(), [](const Part& part) { return part.finished; });
}

bool LiveAttempt::is_queued() const {
  return std::all_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.state == PartState::kQueued; });
}

Part* LiveAttempt::PartOn(NodeId node) {
  const auto part =
      std::find_if(parts.begin(), parts.end(), [node](const Part& of) { return of.node == node; });
  return part == parts.end() ? nullptr : &*part;
}

std::vector<NodeId> LiveAttempt::nodes() const {
  std::vector<NodeId> nodes;
  for (const Part& part : parts) {
    nodes.push_back(part.node);
  }
  return nodes;
}

bool LiveAttempt::has_terms() const {
  return sharing != Sharing::kExclusive ||
         std::any_of(parts.begin(), parts.end(), [](const Part& part) {
           return !(part.soft == Resources{}) || part.loader_workers != 0;
         });
}

int LiveAttempt::gpus() const {
  int gpus = 0;
  for (const Part& part : parts) {
    gpus += std::popcount(part.gpus);
  }
  return gpus;
}

bool LiveAttempt::MayShareWith(const LiveAttempt& other) const {
  if (stopping || other.stopping || sharing != other.sharing) {
    return false;
  }
  return sharing == Sharing::kCollocated ||
         (sharing == Sharing::kInterleaved && !group.empty() && group == other.group);
}

const LiveAttempt* Attempts::Current::Find(std::uint32_t number) const {
  const auto at = std::find_if(list.begin(), list.end(), [number](const LiveAttempt& attempt) {
    return attempt.number == number;
  });
  return at == list.end() ? nullptr : &*at;
}

std::uint32_t Attempts::OfJob::last_started() const {
  std::uint32_t number = last;
  if (!list.empty() && list.back().number == number && list.back().is_queued()) {
    --number;
  }
  while (number > 0 && places[number - 1].empty()) {
    --number;
  }
  return number;
}

const LiveAttempt* Attempts::Find(supervisor::AttemptKey key) const {
  const std::optional<JobId> job = numbers_.Find(key.first, jobs_.size());
  if (!job) {
    return nullptr;
  }
  return jobs_[Index(*job)].Find(key.second);
}

LiveAttempt* Attempts::Find(supervisor::AttemptKey key) {
  if (const std::optional<JobId> job = numbers_.Find(key.first, jobs_.size())) {
    touched_.Add(*job);
  }
  return const_cast<LiveAttempt*>(std::as_const(*this).Find(key));  // NOLINT: this is not const
}

void Attempts::Open(const model::Action& action, TimePoint now, bool known) {
  OfJob& job = Edit(action.job);
  LiveAttempt attempt{.number = ++job.last,
                      .parts = {},
                      .sharing = action.grant.sharing,
                      .group = action.grant.group,
                      .rate = action.rate,
                      .debt = action.debt,
                      .fetch = action.fetch,
                      .work = action.work,
                      .opened = now};
  std::vector<std::pair<NodeId, int>> places;
  for (const Slice& slice : action.grant.slices) {
    attempt.parts.push_back({.node = slice.node,
                             .gpus = slice.gpus,
                             .soft = slice.soft,
                             .loader_workers = slice.loader_workers,
                             .state = known ? PartState::kQueued : PartState::kUnknown});
    places.emplace_back(slice.node, std::popcount(slice.gpus));
  }
  job.start_took.reset();
  job.places.push_back(std::move(places));
  job.list.push_back(std::move(attempt));
  present_.insert(action.job);
}

void Attempts::Retune(const model::Action& action) {
  std::vector<LiveAttempt>& list = Of(action.job);
  if (list.empty()) {
    return;
  }
  list.back().rate = action.rate;
  for (const Slice& slice : action.grant.slices) {
    if (Part* const part = list.back().PartOn(slice.node)) {
      part->soft = slice.soft;
      part->loader_workers = slice.loader_workers;
    }
  }
}

std::vector<Attempts::At> Attempts::Stop(JobId id, TimePoint now) {
  std::vector<At> told;
  OfJob& job = Edit(id);
  for (LiveAttempt& attempt : job.list) {
    if (attempt.told_to_stop) {
      continue;
    }
    attempt.stopping = true;
    for (const Part& part : attempt.parts) {
      if (part.state == PartState::kQueued && part.data != PartData::kUnasked) {
        told.push_back({.attempt = attempt.number, .node = part.node});
      }
    }
    std::erase_if(attempt.parts, [](const Part& part) { return part.state == PartState::kQueued; });
    if (attempt.parts.empty()) {
      job.places[attempt.number - 1].clear();
    }
    if (attempt.is_over()) {
      continue;  // no part is left to get notice
    }
    attempt.told_to_stop = true;
    attempt.notice = now;
    job.stop_took.reset();
    for (const Part& part : attempt.parts) {
      if (part.state != PartState::kExited) {
        told.push_back({.attempt = attempt.number, .node = part.node});
      }
    }
  }
  return told;
}

void Attempts::NoteRunning(JobId id, LiveAttempt& attempt, Part& part, TimePoint now) {
  part.state = PartState::kRunning;
  if (!attempt.has_run &&
      std::all_of(attempt.parts.begin(), attempt.parts.end(),
                  [](const Part& of) { return of.state == PartState::kRunning; })) {
    attempt.has_run = true;
    attempt.ran_from = now;
    if (!unseen_) {
      Edit(id).start_took = now - attempt.opened;
    }
  }
}

std::vector<Attempts::At> Attempts::DropGone(JobId id, TimePoint now) {
  std::vector<At> gone;
  OfJob& job = Edit(id);
  std::erase_if(job.list, [&](const LiveAttempt& attempt) {
    if (!attempt.stopping || !attempt.is_over()) {
      return false;
    }
    if (attempt.told_to_stop && attempt.has_run && !unseen_) {  // else none has seen when it left
      job.stop_took = now - attempt.notice;
    }
    for (const Part& part : attempt.parts) {
      gone.push_back({.attempt = attempt.number, .node = part.node});
    }
    return true;
  });
  if (job.list.empty()) {
    present_.erase(id);
  }
  return gone;
}

bool Attempts::AreOn(NodeId node) const {
  return std::any_of(present_.begin(), present_.end(), [&](JobId job) {
    const std::vector<LiveAttempt>& list = (*this)[job].list;
    return std::any_of(list.begin(), list.end(), [node](const LiveAttempt& attempt) {
      return std::any_of(attempt.parts.begin(), attempt.parts.end(), [node](const Part& part) {
        return part.node == node && part.state != PartState::kExited;
      });
    });
  });
}

std::vector<JobId> Attempts::Fence(NodeId node) {
  std::vector<JobId> jobs;
  for (const JobId job : present_) {
    bool any = false;
    for (LiveAttempt& attempt : Of(job)) {
      for (Part& part : attempt.parts) {
        if (part.node == node && part.state != PartState::kExited) {
          part.state = PartState::kExited;
          any = true;
        }
      }
    }
    if (any) {
      jobs.push_back(job);
    }
  }
  return jobs;
}

void Attempts::Forget(JobId job) {
  Of(job).clear();
  present_.erase(job);
}

void Attempts::SerializeJob(JobId id, std::size_t nodes, StateStream& state) {
  jobs_.resize(std::max(jobs_.size(), Index(id) + 1));
  OfJob& job = jobs_[Index(id)];
  state(job);
  if (!state.reading()) {
    return;
  }
  const auto is_there = [nodes](const Part& part) { return Index(part.node) < nodes; };
  if (!std::all_of(job.list.begin(), job.list.end(), [&](const LiveAttempt& attempt) {
        return attempt.number >= 1 && attempt.number <= job.places.size() &&
               std::all_of(attempt.parts.begin(), attempt.parts.end(), is_there);
      })) {
    return state.Fail();
  }
  if (!job.list.empty()) {
    present_.insert(id);
  }
}

}  // namespace trainyard::live
