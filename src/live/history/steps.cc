// SPDX-License-Identifier: Apache-2.0
#include "live/history/steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/text_check.h"
#include "supervisor/steps/step_log.h"

namespace trainyard::live {
namespace {

constexpr double kMicrosOfSecond = 1e6;
constexpr double kLatest = 1e11;  // seconds since 1970: what is beyond is no time

// An agent may say what it likes.
std::int64_t MicrosOf(double seconds) {
  return std::isfinite(seconds) ? std::llround(std::clamp(seconds, 0.0, kLatest) * kMicrosOfSecond)
                                : 0;
}

// Of the user's choice: what is no UTF-8 would keep the job's status from being shown.
std::string TextOfStep(std::string bytes) {
  if (!io::IsUtf8(bytes)) {
    std::replace_if(
        bytes.begin(), bytes.end(), [](char c) { return static_cast<unsigned char>(c) > 0x7f; },
        '?');
  }
  return bytes;
}

bool IsBefore(const JobStep& step, std::int32_t number) { return step.number < number; }

}  // namespace

bool JobSteps::Has(const JobStep& step) const {
  const auto at = std::lower_bound(steps.begin(), steps.end(), step.number, IsBefore);
  return at != steps.end() && *at == step;
}

JobStep StepOf(const v1::StepRecord& record) {
  return {.number = record.number(),
          .name = TextOfStep(record.name()),
          .started = MicrosOf(record.started()),
          .ended = record.has_ended() ? MicrosOf(record.ended()) : 0,
          .exit_code = record.exit_code(),
          .tasks = record.tasks(),
          .cpus = record.cpus(),
          .nodes = record.nodes(),
          .node_list = TextOfStep(record.node_list())};
}

v1::StepRecord RecordOf(const JobStep& step) {
  v1::StepRecord record;
  record.set_number(step.number);
  record.set_name(step.name);
  record.set_started(static_cast<double>(step.started) / kMicrosOfSecond);
  if (step.ended > 0) {
    record.set_ended(static_cast<double>(step.ended) / kMicrosOfSecond);
  }
  record.set_exit_code(step.exit_code);
  record.set_tasks(step.tasks);
  record.set_cpus(step.cpus);
  record.set_nodes(step.nodes);
  record.set_node_list(step.node_list);
  return record;
}

std::optional<StepsNote> StepBook::NewIn(JobId job, const v1::AttemptReport& report) const {
  StepsNote note{.job = job, .attempt = report.id().attempt()};
  const std::shared_ptr<const JobSteps> known = Of(job);
  if (report.steps().empty() || (known != nullptr && known->attempt > note.attempt)) {
    return std::nullopt;
  }
  for (const v1::StepRecord& record : report.steps()) {
    if (record.number() < 0 || record.number() >= supervisor::kMostSteps) {
      continue;
    }
    const JobStep step = StepOf(record);
    if (known == nullptr || known->attempt != note.attempt || !known->Has(step)) {
      note.steps.push_back(step);
    }
  }
  return note.steps.empty() ? std::nullopt : std::optional(std::move(note));
}

void StepBook::Note(const StepsNote& note) {
  const std::shared_ptr<const JobSteps> known = Of(note.job);
  JobSteps all = known != nullptr && known->attempt == note.attempt
                     ? *known
                     : JobSteps{.attempt = note.attempt};
  for (const JobStep& step : note.steps) {
    const auto at = std::lower_bound(all.steps.begin(), all.steps.end(), step.number, IsBefore);
    if (at != all.steps.end() && at->number == step.number) {
      *at = step;
    } else {
      all.steps.insert(at, step);
    }
  }
  jobs_[note.job] = std::make_shared<const JobSteps>(std::move(all));
}

std::shared_ptr<const JobSteps> StepBook::Of(JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : found->second;
}

void StepBook::SerializeJob(JobId job, StateStream& state) {
  const std::shared_ptr<const JobSteps> known = Of(job);
  JobSteps steps = known == nullptr ? JobSteps() : *known;
  state(steps);
  if (state.reading() && !steps.steps.empty()) {
    jobs_[job] = std::make_shared<const JobSteps>(std::move(steps));
  }
}

}  // namespace trainyard::live
