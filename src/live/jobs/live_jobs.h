// SPDX-License-Identifier: Apache-2.0
// Owns what is known of each job besides its attempts: what was submitted, how far it has come, and
// how it ended; and what jobs say of themselves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/configuration.h"
#include "model/conditions.h"
#include "model/event.h"
#include "model/job_numbers.h"
#include "model/touched.h"
#include "trainyard/live.pb.h"
#include "trainyard/state.h"

namespace trainyard::live {

struct LiveJob {
  std::shared_ptr<const JobSpec> spec;            // as submitted or updated
  std::shared_ptr<const v1::JobRequest> request;  // with the GPUs that it asks for now
  TimePoint submitted{};
  bool ending = false;  // a fact that ends it is on its way or has been taken
  double iterations_saved = 0;
  double iterations_seen = 0;
  std::uint32_t failures = 0;
  int exit_code = 0;
  std::string reason;
  TimePoint ended = kEndOfTime;
  std::optional<JobId> array;  // the first task of its array; none: it is in none
  std::int64_t array_index = 0;
  // After a cancel: the first code other than 0 of the workers that had to go. In no journal.
  std::optional<int> left_with;
  // As its workers and agents said last; in no journal.
  std::string note;
  double group_iteration_s = 0;
  Duration longest_step{
      0};  // the longest time in which its iterations have not risen, and then did
  std::optional<int> last_failure;  // exit code of its last failure since the controller's start

  // All but specification and request, which the engine's job has, and what is in no journal: a
  // start from the journal alone must give the same.
  void Serialize(StateStream& state) {
    state(submitted, ending, iterations_saved, iterations_seen, failures, exit_code, reason, ended);
    if (state.job_fields() > model::kFieldsBeforeConditions) {
      state(array, array_index);
    }
  }
  [[nodiscard]] bool is_emulated() const {
    return request->launch().workers() == v1::LaunchSpec::EMULATED;
  }
  [[nodiscard]] bool has_worker_per_gpu() const {
    return request->launch().workers() == v1::LaunchSpec::PER_GPU && request->gpus() > 0;
  }
  // How many workers it has on a node where it has so many GPUs, unless it runs once.
  [[nodiscard]] int WorkersWith(int gpus) const {
    return has_worker_per_gpu() ? gpus : std::max(1, request->launch().workers_per_node());
  }
  // One worker on the first of its nodes, with which it ends.
  [[nodiscard]] bool runs_once() const {
    return request->launch().workers() == v1::LaunchSpec::ONCE;
  }
  [[nodiscard]] const DataSet* data_set() const {  // null: it states none
    return spec->traits && spec->traits->data_set ? &*spec->traits->data_set : nullptr;
  }
  // What people call the job with this id: "12", or "12_3" for a task of an array.
  [[nodiscard]] std::string TextOf(JobId id, const model::JobNumbers& numbers) const;
  // Whether the engine counts its work in the unit in which its workers report it.
  [[nodiscard]] bool counts_work() const;
};

class LiveJobs {
 public:
  // Both must outlive it.
  LiveJobs(const model::JobNumbers& numbers, model::TouchedIds<JobId>& touched)
      : numbers_(numbers), touched_(touched) {}

  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  [[nodiscard]] bool has(JobId job) const { return Index(job) < jobs_.size(); }
  // REQUIRES: has(job).
  [[nodiscard]] LiveJob& operator[](JobId job) {
    touched_.Add(job);
    return jobs_[Index(job)];
  }
  [[nodiscard]] const LiveJob& operator[](JobId job) const { return jobs_[Index(job)]; }
  // Jobs that have not ended.
  [[nodiscard]] std::size_t live() const { return live_; }
  // What people call the job (LiveJob). REQUIRES: has(job).
  [[nodiscard]] std::string TextOf(JobId job) const;
  // The job that was submitted with this token.
  [[nodiscard]] std::optional<JobId> WithToken(std::string_view token) const;

  // The data set of that name as the jobs that have not ended state it; null: none of them does.
  [[nodiscard]] const DataSet* DataNamed(std::string_view name) const;

  // The request of the job that is submitted next: Note need not read it from the fact.
  void Announce(v1::JobRequest request) {
    announced_ = std::make_shared<const v1::JobRequest>(std::move(request));
  }
  // What a fact about a job means for it.
  void Note(const model::Event& event);
  // Another configuration is in force: jobs that have not ended are what the engine makes of them.
  void Respecify(const engine::Configuration& next, const engine::Configuration& former);
  // The job has ended.
  void End(JobId job, TimePoint at);

  // One job, then the rest. `spec`: the engine's, when reading.
  void SerializeJob(JobId job, const std::shared_ptr<const JobSpec>& spec, StateStream& state);
  void Serialize(StateStream& state) { state(live_); }

 private:
  void Submit(JobId id, const std::shared_ptr<const JobSpec>& spec, TimePoint at);
  void SubmitArray(const model::fact::ArraySubmitted& array, TimePoint at);
  void Update(const model::fact::Updated& updated);
  void NoteFailure(JobId id, int exit_code);
  void AddToken(JobId job);
  void CountData(const LiveJob& job, int more);

  const model::JobNumbers& numbers_;
  model::TouchedIds<JobId>& touched_;
  std::vector<LiveJob> jobs_;
  std::shared_ptr<const v1::JobRequest> announced_;
  std::map<std::string, JobId, std::less<>> tokens_;
  std::map<std::string, std::pair<DataSet, int>, std::less<>> data_;  // of so many live jobs
  std::size_t live_ = 0;
};

// Owns what jobs say of themselves: what the engine has been told of it, and what it has still to
// be told, not too often.
class LiveMetrics {
 public:
  // A decision may rest on a metric, so each goes to the journal, and to the disk; not more often.
  static constexpr Duration kPause = std::chrono::seconds(10);

  // `pause`: the least time between two facts about one job.
  explicit LiveMetrics(Duration pause) : pause_(pause) {}

  using Said = google::protobuf::RepeatedPtrField<v1::Metric>;
  // What a live job says. Names beyond those that the engine keeps are dropped: they would be told
  // again and again.
  void Hear(JobId job, const Said& metrics);
  // The engine is told so.
  void Note(const model::fact::Reported& reported, TimePoint at);
  // The job has ended.
  void Drop(JobId job);

  // What it has said, the last of each name.
  [[nodiscard]] std::map<std::string, double> Of(JobId job) const;
  // What there is to tell of the job, as a fact.
  [[nodiscard]] std::optional<model::fact::Reported> Untold(JobId job) const;
  // The jobs of which the engine may be told again.
  [[nodiscard]] std::vector<JobId> Due(TimePoint now) const;
  [[nodiscard]] std::optional<TimePoint> next_timer() const;

  void SerializeJob(JobId job, StateStream& state);

 private:
  struct OfJob {
    std::map<std::string, double> told;
    std::map<std::string, double> untold;
    TimePoint tell_from{};

    void Serialize(StateStream& state) { state(told, untold, tell_from); }
  };

  const Duration pause_;
  std::map<JobId, OfJob> jobs_;  // those that have said something
  std::set<JobId> untold_;       // those with something untold
};

}  // namespace trainyard::live
