// SPDX-License-Identifier: Apache-2.0
// Owns the attempts of all jobs: which attempt of a job is where, how far each of its parts has
// come, and which numbers have been given out.
//
// An attempt is one stay of a job on its GPUs, with a part on each of its nodes. Numbers rise and
// are never given out again.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "live/failures/failure_book.h"
#include "live/measured/process_use.h"
#include "live/notes.h"
#include "model/event.h"
#include "model/job_numbers.h"
#include "model/touched.h"
#include "supervisor/processes.h"
#include "trainyard/resources.h"
#include "trainyard/state.h"

namespace trainyard::live {

enum class PartState : std::uint8_t {
  kUnknown,  // what an earlier controller has left; the node's agent will tell
  kQueued,
  kSent,
  kRunning,
  kExited,
};

// What the node of a part that is not sent yet has of the job's data set.
enum class PartData : std::uint8_t {
  kUnasked,  // its agent has not been asked to fetch it
  kFetching,
  kReady,  // all that it keeps of it
};

struct Part {
  NodeId node{};
  std::uint64_t gpus = 0;
  Resources soft{};        // the job's share of the node
  int loader_workers = 0;  // part of that share
  PartState state = PartState::kQueued;
  bool finished = false;
  PartFailure failure{};               // as its agent tells it
  std::optional<double> iterations{};  // as reported last
  std::string late{};                  // AttemptReport::late
  PartData data = PartData::kUnasked;
  double fetched = 0;                   // kFetching: 0 to 1
  ProcessUse use{};                     // as reported last
  std::optional<TimePoint> use_told{};  // since when the journal has not been told of it

  void Serialize(StateStream& stream);
};

// What the job has of the node beside its GPUs.
[[nodiscard]] v1::NodeShare ShareOf(const Part& part);
// What it has used until now.
[[nodiscard]] UseNote UseNoteOf(JobId job, std::uint32_t attempt, const Part& part);

struct LiveAttempt {
  std::uint32_t number = 0;
  std::vector<Part> parts;
  bool stopping = false;      // it has no future
  bool told_to_stop = false;  // and its agents know
  bool has_run = false;       // all parts at once
  Sharing sharing = Sharing::kExclusive;
  std::vector<JobId> group;  // see Grant
  double rate = 0;           // see Action
  Duration debt{0};          // when it was granted
  Duration fetch{0};         // the part of it for the data set; known to no snapshot
  double work = 0;           // of the job
  TimePoint opened{};
  TimePoint notice{};                   // told_to_stop: since when
  TimePoint ran_from{};                 // has_run: since when
  std::optional<TimePoint> progressed;  // when its iterations last rose
  std::optional<TimePoint> failed;      // since when that is known, and not yet whose fault it is

  void Serialize(StateStream& state) {
    state(number, parts, stopping, told_to_stop, sharing, group, rate, debt, work, opened, notice);
  }
  [[nodiscard]] bool is_over() const;  // all parts have exited
  [[nodiscard]] bool has_finished() const;
  // No part has been ordered to start.
  [[nodiscard]] bool is_queued() const;
  [[nodiscard]] Part* PartOn(NodeId node);
  [[nodiscard]] std::vector<NodeId> nodes() const;
  [[nodiscard]] int gpus() const;
  // Whether there is more to say of its grant than its GPUs.
  [[nodiscard]] bool has_terms() const;
  // Whether the engine has granted both so that they may be on the same GPU at the same time. An
  // attempt that has to go may be beside none: the engine does not count on it.
  [[nodiscard]] bool MayShareWith(const LiveAttempt& other) const;
};

class Attempts {
 public:
  // The attempts of one job that have not gone.
  struct Current {
    std::uint32_t last = 0;  // the number given out last
    // Oldest first. All but the last are stopping.
    std::vector<LiveAttempt> list;
    std::optional<Duration> start_took;  // the last time, if that was seen
    std::optional<Duration> stop_took;

    // The last attempt, unless it has to go.
    [[nodiscard]] const LiveAttempt* wanted() const {
      return list.empty() || list.back().stopping ? nullptr : &list.back();
    }
    // Null: there is none of that number, or it has gone.
    [[nodiscard]] const LiveAttempt* Find(std::uint32_t number) const;
  };
  // With the places of all that there have been.
  struct OfJob : Current {
    // By number: the nodes and how many GPUs there, in the order of ranks; for logs. Empty if
    // the attempt was stopped before it could start.
    std::vector<std::vector<std::pair<NodeId, int>>> places;

    void Serialize(StateStream& state) { state(last, list, places, start_took, stop_took); }
    // The last number of an attempt that may have written anything; 0: none.
    [[nodiscard]] std::uint32_t last_started() const;
  };
  // A part whose agent has to be told something.
  struct At {
    std::uint32_t attempt = 0;
    NodeId node{};
  };

  // Both must outlive it; `numbers`: those of keys.
  Attempts(const model::JobNumbers& numbers, model::TouchedIds<JobId>& touched)
      : numbers_(numbers), touched_(touched) {}

  // There are so many jobs.
  void Resize(std::size_t jobs) { jobs_.resize(jobs); }
  [[nodiscard]] const OfJob& operator[](JobId job) const { return jobs_[Index(job)]; }
  // Jobs with attempts that have not gone.
  [[nodiscard]] const std::set<JobId>& present() const { return present_; }
  // Whether some may have processes on the node. O(present).
  [[nodiscard]] bool AreOn(NodeId node) const;
  // Null: there is none, or it has gone.
  [[nodiscard]] LiveAttempt* Find(supervisor::AttemptKey key);
  [[nodiscard]] const LiveAttempt* Find(supervisor::AttemptKey key) const;
  // The attempts of the job that have not gone. Valid until the next change of them.
  [[nodiscard]] std::vector<LiveAttempt>& Of(JobId job) { return Edit(job).list; }

  // A new attempt on what the action grants. Of its parts nothing is `known` in a restart.
  void Open(const model::Action& action, TimePoint now, bool known);
  // The job's last attempt goes on with other shares, or at another pace.
  void Retune(const model::Action& action);
  // The job has lost its GPUs: its attempts have to go. Whose agents must be told so.
  [[nodiscard]] std::vector<At> Stop(JobId job, TimePoint now);
  // A part runs, as its agent says.
  void NoteRunning(JobId job, LiveAttempt& attempt, Part& part, TimePoint now);
  // Forgets the attempts that had to go and of which nothing is left; their agents forget them,
  // too. Not sooner: a part that has done its work while others go on would be started again by a
  // controller that starts anew.
  [[nodiscard]] std::vector<At> DropGone(JobId job, TimePoint now);
  // The node is down and runs nothing. The jobs that had parts there.
  [[nodiscard]] std::vector<JobId> Fence(NodeId node);
  // What is told from now on has happened some time before, unseen; or not any more.
  void SetUnseen(bool unseen) { unseen_ = unseen; }
  // After a restart: what may be left of a job that has ended is unknown from now on.
  void Forget(JobId job);

  // The attempts of one job. Reading fails where a part is on a node that does not exist.
  void SerializeJob(JobId job, std::size_t nodes, StateStream& state);

 private:
  [[nodiscard]] OfJob& Edit(JobId job) {
    touched_.Add(job);
    return jobs_[Index(job)];
  }

  const model::JobNumbers& numbers_;
  model::TouchedIds<JobId>& touched_;
  std::vector<OfJob> jobs_;
  std::set<JobId> present_;
  bool unseen_ = false;
};

}  // namespace trainyard::live
