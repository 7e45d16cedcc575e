// SPDX-License-Identifier: Apache-2.0
// The clients' own book of what they have asked and been told about when their jobs start and have
// to end: dependencies, arrays, holds, times to begin and time limits. It reads no text of a
// dependency and shares no code with what it checks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainyard/live.pb.h"
#include "trainyard/time.h"

namespace trainyard::faults {

// One condition of a dependency.
struct Need {
  enum class Kind : std::uint8_t { kAfterOk, kAfterAny, kAfterNotOk, kSingleton };
  Kind kind{};
  std::vector<std::uint64_t> jobs{};  // numbers; kSingleton: those that the book finds
  std::string text{};                 // as the request has it
};

struct Terms {
  std::optional<double> limit_s{};
  std::optional<double> begin_at{};  // seconds, not before that by the controller's clock
  // To later times: an update that is sent again counts from when it is heeded again.
  bool begin_moves = false;
  bool any = false;  // one of the needs is enough
  std::vector<Need> needs{};
  int priority = 0;

  [[nodiscard]] std::string Dependency() const;
};

class TermsBook {
 public:
  // An acknowledged submission; the tasks of an array have the numbers that follow.
  struct Submission {
    std::uint64_t number = 0;
    std::vector<std::int64_t> indices{};  // of an array's tasks; empty: it is none
    int at_once = 0;                      // 0: any number
    std::string name{};                   // with its user
    Terms terms{};
  };
  void Submitted(const Submission& submission);
  [[nodiscard]] bool Knows(std::uint64_t job) const { return jobs_.contains(job); }

  // Other terms are asked for, and confirmed; between the two either may be in force.
  void Asks(std::uint64_t job, const Terms& terms);
  void Confirmed(std::uint64_t job, const Terms& terms);
  [[nodiscard]] const Terms& TermsOf(std::uint64_t job) const { return jobs_.at(job).terms.back(); }
  // The job is to be held, or released. Confirmed: what the answer has as its last attempt.
  void AsksHold(std::uint64_t job);
  void HoldConfirmed(std::uint64_t job, std::uint32_t attempt);
  void Released(std::uint64_t job);
  [[nodiscard]] bool MayBeHeld(std::uint64_t job) const;
  // The job is to be requeued, and the answer has come.
  void AsksRequeue(std::uint64_t job);
  void Requeued(std::uint64_t job, std::uint32_t attempt);
  [[nodiscard]] bool MayBeTaken(std::uint64_t job) const;  // from its GPUs, by its user
  void IsSettled(std::uint64_t job);                       // nothing is under way any more

  // What is wrong with what is seen; empty: nothing.
  // An attempt of the job begins on a node.
  [[nodiscard]] std::string Begins(std::uint64_t job, std::uint32_t attempt);
  // The job gets GPUs, at that second by the controller's clock.
  [[nodiscard]] std::string GetsGpus(std::uint64_t job, double now);
  // The job has ended so.
  [[nodiscard]] std::string Ended(std::uint64_t job, v1::JobState state);
  // Its end was put down to its time limit when it had held GPUs for so long.
  [[nodiscard]] std::string EndedAtLimit(std::uint64_t job, double held_s) const;
  // It holds GPUs for so long and has not ended.
  [[nodiscard]] std::string Holds(std::uint64_t job, double held_s) const;
  // It has not ended, and the controller has had the time to see what it waits for.
  [[nodiscard]] std::string Lives(std::uint64_t job) const;
  // What the controller says of a job when asked. `version`: as it was when the question was sent.
  [[nodiscard]] std::string Says(const v1::JobStatus& status, std::uint64_t version) const;
  [[nodiscard]] std::map<std::uint64_t, std::uint64_t> versions() const;

  [[nodiscard]] int starts_after_others() const { return starts_after_others_; }
  [[nodiscard]] int answers_compared() const { return answers_compared_; }

 private:
  enum class Held : std::uint8_t { kNo, kMaybe, kYes };
  enum class Verdict : std::uint8_t { kMet, kWaits, kNever };
  struct Job {
    std::uint64_t first = 0;  // of its array; itself outside of arrays
    std::optional<std::int64_t> index{};
    int at_once = 0;
    std::string name{};
    std::vector<Terms> terms{};  // one of these is in force
    Held held = Held::kNo;
    std::uint32_t held_after = 0;        // attempts later than this one may not begin
    std::uint32_t requeued_attempt = 0;  // may not go on
    bool was_held = false;
    bool may_be_taken = false;
    bool begun = false;
    bool has_had_gpus = false;
    v1::JobState end = v1::JOB_STATE_UNSPECIFIED;
    std::uint64_t version = 1;  // of what is known of it
  };

  [[nodiscard]] Verdict Judge(std::uint64_t job, const Need& need) const;
  [[nodiscard]] Verdict Judge(std::uint64_t job, const Terms& terms) const;
  // Whether any of the terms that may be in force has that verdict.
  [[nodiscard]] bool MayBe(std::uint64_t job, Verdict verdict) const;

  std::map<std::uint64_t, Job> jobs_;
  int starts_after_others_ = 0;
  mutable int answers_compared_ = 0;
};

}  // namespace trainyard::faults
