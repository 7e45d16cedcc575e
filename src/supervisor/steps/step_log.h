// SPDX-License-Identifier: Apache-2.0
// What is remembered of the steps of an attempt: srun adds a record to a file of the attempt when a
// step begins, and another one when it has ended; the supervisor reads them and tells the agent.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "supervisor/steps/step_options.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

// Of the attempt's folder: the records, and how many steps there have been.
inline constexpr const char* kStepLog = "step-log";
inline constexpr const char* kStepCount = "steps";
// Of an attempt; of later steps nothing is remembered: a script may start any number in a loop.
inline constexpr int kMostSteps = 500;

// How many steps of the attempt with that folder there have been before this one.
[[nodiscard]] int TakeStepNumber(const std::string& folder);

// Nobody is told where it cannot be written: a step does not fail for its accounting.
void WriteStepRecord(const std::string& folder, const v1::StepRecord& record);
// Of a step that begins now on the nodes of the list; and of one that ends now with that status.
[[nodiscard]] v1::StepRecord BegunStep(const StepOptions& options, const v1::StepStart& start);
[[nodiscard]] v1::StepRecord EndedStep(v1::StepRecord begun, int status);

class StepLog {
 public:
  explicit StepLog(std::string path) : path_(std::move(path)) {}

  using Clock = std::chrono::steady_clock;

  // Reads what has been added since the last time. Whether anything is new.
  bool Read();
  // The same, not too often: a script may start steps in a loop, and each report has all of them.
  bool ReadIfDue(Clock::time_point now);
  [[nodiscard]] Clock::time_point next_due() const { return next_due_; }
  // By number, the last record of each.
  [[nodiscard]] const google::protobuf::RepeatedPtrField<v1::StepRecord>& records() const {
    return records_;
  }

 private:
  void Take(v1::StepRecord record);

  std::string path_;
  std::int64_t read_ = 0;  // bytes
  Clock::time_point next_due_;
  google::protobuf::RepeatedPtrField<v1::StepRecord> records_;
};

}  // namespace trainyard::supervisor
