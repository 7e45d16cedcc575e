// SPDX-License-Identifier: Apache-2.0
#include "faults/terms_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace trainyard::faults {
namespace {

constexpr double kClockStep = 0.002;  // seconds; times of the controller are rounded

}  // namespace

std::string Terms::Dependency() const {
  std::string text;
  for (const Need& need : needs) {
    text += (text.empty() ? "" : any ? "?" : ",") + need.text;
  }
  return text;
}

// ------------------------------------------------------------------------- asked and confirmed

void TermsBook::Submitted(const Submission& submission) {
  const std::size_t tasks = std::max<std::size_t>(1, submission.indices.size());
  for (std::size_t i = 0; i < tasks; ++i) {
    Job& job = jobs_[submission.number + i];
    job.first = submission.number;
    job.index = submission.indices.empty() ? std::nullopt : std::optional(submission.indices[i]);
    job.at_once = submission.at_once;
    job.name = submission.name;
    job.terms = {submission.terms};
  }
}

void TermsBook::Asks(std::uint64_t number, const Terms& terms) {
  Job& job = jobs_.at(number);
  job.terms.push_back(terms);
  ++job.version;
}

void TermsBook::Confirmed(std::uint64_t number, const Terms& terms) {
  Job& job = jobs_.at(number);
  // Tasks may have had their turn while their first one was held, and then do not wait as it does.
  if (number == job.first || !jobs_.at(job.first).was_held) {
    job.terms = {terms};
  }
  ++job.version;
}

void TermsBook::AsksHold(std::uint64_t number) {
  Job& job = jobs_.at(number);
  job.held = Held::kMaybe;
  job.was_held = true;
  ++job.version;
}

void TermsBook::HoldConfirmed(std::uint64_t number, std::uint32_t attempt) {
  Job& job = jobs_.at(number);
  job.held = Held::kYes;
  job.held_after = attempt;
  ++job.version;
}

void TermsBook::Released(std::uint64_t number) {
  Job& job = jobs_.at(number);
  job.held = Held::kNo;
  ++job.version;
}

bool TermsBook::MayBeHeld(std::uint64_t number) const {
  const auto job = jobs_.find(number);
  return job == jobs_.end() || job->second.held != Held::kNo;
}

void TermsBook::AsksRequeue(std::uint64_t number) {
  Job& job = jobs_.at(number);
  job.may_be_taken = true;
  ++job.version;
}

void TermsBook::Requeued(std::uint64_t number, std::uint32_t attempt) {
  Job& job = jobs_.at(number);
  job.requeued_attempt = attempt;
  ++job.version;
}

bool TermsBook::MayBeTaken(std::uint64_t number) const {
  const auto job = jobs_.find(number);
  return job == jobs_.end() || job->second.may_be_taken;
}

void TermsBook::IsSettled(std::uint64_t number) { jobs_.at(number).may_be_taken = false; }

// ------------------------------------------------------------------------------- dependencies

TermsBook::Verdict TermsBook::Judge(std::uint64_t number, const Need& need) const {
  bool waits = false;
  bool failed = false;
  const auto look = [&](std::uint64_t other) {
    const auto job = jobs_.find(other);
    const v1::JobState end = job == jobs_.end() ? v1::JOB_STATE_UNSPECIFIED : job->second.end;
    waits = waits || end == v1::JOB_STATE_UNSPECIFIED;
    failed = failed || end > v1::COMPLETED;
  };
  std::for_each(need.jobs.begin(), need.jobs.end(), look);
  const Job& own = jobs_.at(number);
  for (const auto& [other, job] : jobs_) {
    if (need.kind == Need::Kind::kSingleton && other < own.first && job.name == own.name) {
      look(other);
    }
  }
  switch (need.kind) {
    case Need::Kind::kAfterOk:
      return failed ? Verdict::kNever : waits ? Verdict::kWaits : Verdict::kMet;
    case Need::Kind::kAfterNotOk:
      return failed ? Verdict::kMet : waits ? Verdict::kWaits : Verdict::kNever;
    default:
      return waits ? Verdict::kWaits : Verdict::kMet;
  }
}

TermsBook::Verdict TermsBook::Judge(std::uint64_t number, const Terms& terms) const {
  const auto count = [&](Verdict verdict) {
    return std::count_if(terms.needs.begin(), terms.needs.end(),
                         [&](const Need& need) { return Judge(number, need) == verdict; });
  };
  const auto all = static_cast<std::ptrdiff_t>(terms.needs.size());
  if (all == 0 || (terms.any ? count(Verdict::kMet) > 0 : count(Verdict::kMet) == all)) {
    return Verdict::kMet;
  }
  const std::ptrdiff_t never = count(Verdict::kNever);
  return (terms.any ? never == all : never > 0) ? Verdict::kNever : Verdict::kWaits;
}

bool TermsBook::MayBe(std::uint64_t number, Verdict verdict) const {
  const std::vector<Terms>& terms = jobs_.at(number).terms;
  return std::any_of(terms.begin(), terms.end(),
                     [&](const Terms& of) { return Judge(number, of) == verdict; });
}

// ------------------------------------------------------------------------------ what is seen

std::string TermsBook::Begins(std::uint64_t number, std::uint32_t attempt) {
  const auto at = jobs_.find(number);
  if (at == jobs_.end()) {
    return {};  // its client has not been told yet
  }
  Job& job = at->second;
  if (job.held == Held::kYes && attempt > job.held_after) {
    return fmt::format("job {} starts while it is held", number);
  }
  if (!job.begun && !MayBe(number, Verdict::kMet)) {
    return fmt::format("job {} starts before what its dependency '{}' waits for", number,
                       job.terms.back().Dependency());
  }
  starts_after_others_ += !job.begun && !job.terms.back().needs.empty() ? 1 : 0;
  job.begun = true;
  const auto of_array = [&](const auto& entry) {
    return entry.second.first == job.first && entry.second.begun &&
           entry.second.end == v1::JOB_STATE_UNSPECIFIED;
  };
  const auto many = std::count_if(jobs_.begin(), jobs_.end(), of_array);
  if (job.at_once > 0 && many > job.at_once) {
    return fmt::format("{} tasks of array {} are at work at once, of at most {}", many, job.first,
                       job.at_once);
  }
  return {};
}

std::string TermsBook::GetsGpus(std::uint64_t number, double now) {
  const auto at = jobs_.find(number);
  if (at == jobs_.end() || at->second.has_had_gpus) {
    return {};
  }
  Job& job = at->second;
  job.has_had_gpus = true;
  const bool may = std::any_of(job.terms.begin(), job.terms.end(), [&](const Terms& terms) {
    return terms.begin_at.value_or(now) <= now + kClockStep;
  });
  return may ? ""
             : fmt::format("job {} gets GPUs at {:.3f}, before it may begin, at {:.3f}", number,
                           now, *job.terms.back().begin_at);
}

std::string TermsBook::Ended(std::uint64_t number, v1::JobState state) {
  const auto at = jobs_.find(number);
  if (at == jobs_.end() || at->second.end != v1::JOB_STATE_UNSPECIFIED) {
    return {};
  }
  if (state == v1::REJECTED && !MayBe(number, Verdict::kNever)) {
    return fmt::format("job {} is rejected, though its dependency '{}' can be met", number,
                       at->second.terms.back().Dependency());
  }
  at->second.end = state;
  ++at->second.version;
  return {};
}

std::string TermsBook::EndedAtLimit(std::uint64_t number, double held_s) const {
  const auto at = jobs_.find(number);
  if (at == jobs_.end()) {
    return {};
  }
  const std::vector<Terms>& terms = at->second.terms;
  const bool is_over = std::any_of(terms.begin(), terms.end(), [&](const Terms& of) {
    return of.limit_s && *of.limit_s <= held_s + kClockStep;
  });
  return is_over ? ""
                 : fmt::format("job {} is ended for its time limit after {:.3f} s", number, held_s);
}

std::string TermsBook::Holds(std::uint64_t number, double held_s) const {
  constexpr double kBound = 5;
  const auto at = jobs_.find(number);
  if (at == jobs_.end()) {
    return {};
  }
  const std::vector<Terms>& terms = at->second.terms;
  const bool is_over = std::all_of(terms.begin(), terms.end(), [&](const Terms& of) {
    return of.limit_s && *of.limit_s + kBound < held_s;
  });
  return is_over ? fmt::format("job {} goes on over its time limit: after {:.3f} of {:.3f} s",
                               number, held_s, terms.back().limit_s.value_or(0))
                 : "";
}

std::string TermsBook::Lives(std::uint64_t number) const {
  const auto at = jobs_.find(number);
  const bool is_stuck = at != jobs_.end() && !at->second.begun && !at->second.has_had_gpus &&
                        at->second.terms.size() == 1 && MayBe(number, Verdict::kNever);
  return is_stuck ? fmt::format("job {} lives on, though its dependency '{}' cannot be met", number,
                                at->second.terms.back().Dependency())
                  : "";
}

std::string TermsBook::Says(const v1::JobStatus& status, std::uint64_t version) const {
  const Job& job = jobs_.at(status.job());
  if (job.version != version) {
    return {};
  }
  ++answers_compared_;
  const auto differs = [&](const std::string& what) {
    return fmt::format("job {}: {} is lost: {}", status.job(), what, status.ShortDebugString());
  };
  if (job.held != Held::kMaybe && status.held() != (job.held == Held::kYes)) {
    return differs(job.held == Held::kYes ? "an acknowledged hold" : "an acknowledged release");
  }
  if (job.requeued_attempt > 0 && status.attempt() == job.requeued_attempt &&
      (status.state() == v1::STARTING || status.state() == v1::RUNNING)) {
    return differs("an acknowledged requeue");
  }
  const bool in_array = job.index.has_value();
  if (in_array != status.has_array_job() ||
      (in_array && (status.array_job() != job.first || status.array_index() != *job.index))) {
    return differs("its place in the array");
  }
  if (job.terms.size() > 1) {
    return {};
  }
  const Terms& terms = job.terms.back();
  const v1::JobRequest& request = status.request();
  const auto limit = request.has_time_s() ? std::optional(request.time_s()) : std::nullopt;
  const double begin = status.submitted() + request.begin_s();
  const double later = begin - terms.begin_at.value_or(begin);
  const bool same_begin = request.has_begin_s() == terms.begin_at.has_value() &&
                          (std::abs(later) < kClockStep || (terms.begin_moves && later > 0));
  if (limit != terms.limit_s || !same_begin || request.dependency() != terms.Dependency() ||
      request.launch().priority() != terms.priority) {
    return differs(fmt::format(
        "an acknowledged update or term (limit {:.3f}, begin {:.3f}, priority {}, dependency '{}')",
        terms.limit_s.value_or(0), terms.begin_at.value_or(0), terms.priority, terms.Dependency()));
  }
  return {};
}

std::map<std::uint64_t, std::uint64_t> TermsBook::versions() const {
  std::map<std::uint64_t, std::uint64_t> versions;
  for (const auto& [number, job] : jobs_) {
    versions[number] = job.version;
  }
  return versions;
}

}  // namespace trainyard::faults
