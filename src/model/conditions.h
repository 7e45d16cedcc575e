// SPDX-License-Identifier: Apache-2.0
// The texts by which a user says when a job may start: which jobs have to end first, and which
// tasks an array has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::model {

// Snapshots with so many fields of jobs know none of this, and jobs have not been held by users.
inline constexpr int kFieldsBeforeConditions = 24;

// What the reason begins with of a job that has been ended at its time limit.
inline constexpr std::string_view kOverTimeLimit = "it has reached its time limit";
// The reason of a job that has been ended since it may not wait again (JobTraits::no_requeue).
inline constexpr std::string_view kLostNoRequeue =
    "it has lost its nodes (failed, or drained at once), and --no-requeue says that it does not "
    "start again";

struct Condition {
  // Their places are those in snapshots.
  enum class Kind : std::uint8_t {
    kAfterOk,
    kAfterAny,
    kAfterNotOk,
    kSingleton,
    kAfter,
    kAfterCorr,  // each task of an array for the task of its index; another job as by kAfterOk
  };
  Kind kind{};
  std::vector<std::string> jobs{};  // numbers, in a trace names; none of kSingleton
  std::vector<int> minutes{};       // of kAfter, for each of the jobs: since it has started
};

// JobTraits::dependency: "afterok:12:13_4,afternotok:14", "afterany:12?afterok:13", "singleton",
// "after:12+5": 5 minutes after the start of job 12, "aftercorr:12".
struct Dependency {
  bool any = false;  // one of the conditions is enough
  std::vector<Condition> conditions;
};
// The error says only what is wrong with the text.
[[nodiscard]] Result<Dependency> ParseDependency(std::string_view text);
[[nodiscard]] std::string TextOf(const Dependency& dependency);

// What people call a job: "12", or "12_3" for a task of an array; nothing: it is neither.
struct JobNumber {
  std::uint64_t job = 0;
  std::optional<std::int64_t> task{};
};
[[nodiscard]] std::optional<JobNumber> ParseJobNumber(std::string_view text);
[[nodiscard]] std::string TextOf(const JobNumber& number);

// JobTraits::array: "0-999%50", "1,3,8-20:4".
struct ArrayTasks {
  std::vector<std::int64_t> indices;  // ascending
  int at_once = 0;                    // 0: any number
};
inline constexpr std::size_t kMostTasks = 10'000;
inline constexpr std::int64_t kMostTaskIndex = 4'000'000;
[[nodiscard]] Result<ArrayTasks> ParseArray(std::string_view text);
// "3-7,9,12-199" of ascending indices. Long lists are cut and end with their number.
[[nodiscard]] std::string RangesText(const std::vector<std::int64_t>& indices);

// Whether each task of the array waits for jobs of its own (Condition::Kind::kAfterCorr).
[[nodiscard]] bool WaitsByTask(const JobSpec& spec);

// How many jobs the specification stands for.
[[nodiscard]] std::size_t CountOf(const JobSpec& spec);

}  // namespace trainyard::model
