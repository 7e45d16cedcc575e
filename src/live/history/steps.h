// SPDX-License-Identifier: Apache-2.0
// Owns what is known of the steps that scripts have started: of each job those of its last attempt.
// Facts of the journal say it (StepsNote), so that it outlasts attempt and controller.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/live.pb.h"
#include "trainyard/state.h"

namespace trainyard::live {

// As srun has told, by the clock of its node.
struct JobStep {
  std::int32_t number = 0;
  std::string name{};
  std::int64_t started = 0;  // microseconds since 1970
  std::int64_t ended = 0;    // 0: it runs, or has ended with its attempt
  std::int32_t exit_code = 0;
  std::int32_t tasks = 0;
  std::int32_t cpus = 0;
  std::int32_t nodes = 0;
  std::string node_list{};

  void Serialize(StateStream& state) {
    state(number, name, started, ended, exit_code, tasks, cpus, nodes, node_list);
  }
  friend bool operator==(const JobStep&, const JobStep&) = default;
};
[[nodiscard]] JobStep StepOf(const v1::StepRecord& record);
[[nodiscard]] v1::StepRecord RecordOf(const JobStep& step);

// What is new of the steps of an attempt, in the journal.
struct StepsNote {
  JobId job{};
  std::uint32_t attempt = 0;
  std::vector<JobStep> steps{};
};

struct JobSteps {
  std::uint32_t attempt = 0;
  std::vector<JobStep> steps{};  // by number

  [[nodiscard]] bool Has(const JobStep& step) const;
  void Serialize(StateStream& state) { state(attempt, steps); }
};

class StepBook {
 public:
  // What in the report of an attempt is not known yet. Nothing: it is all known, or of an attempt
  // before the last one.
  [[nodiscard]] std::optional<StepsNote> NewIn(JobId job, const v1::AttemptReport& report) const;
  void Note(const StepsNote& note);
  // Null: the job has started none. What has been given out does not change any more.
  [[nodiscard]] std::shared_ptr<const JobSteps> Of(JobId job) const;

  void SerializeJob(JobId job, StateStream& state);

 private:
  std::map<JobId, std::shared_ptr<const JobSteps>> jobs_;
};

}  // namespace trainyard::live
