// SPDX-License-Identifier: Apache-2.0
#include "live/jobs/live_jobs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/earlier.h"
#include "base/metric_name.h"
#include "live/notes.h"
#include "model/conditions.h"
#include "profile/execution_model.h"
#include "trainyard/metric.h"

namespace trainyard::live {

bool LiveJob::counts_work() const {
  return profile::StatesStages(*spec) || is_emulated() ||
         (spec->profile_row >= 0 && request->has_iterations());
}

std::string LiveJob::TextOf(JobId id, const model::JobNumbers& numbers) const {
  return array ? model::TextOf({.job = numbers.Of(*array), .task = array_index})
               : model::TextOf({.job = numbers.Of(id)});
}

std::string LiveJobs::TextOf(JobId id) const { return jobs_[Index(id)].TextOf(id, numbers_); }

std::optional<JobId> LiveJobs::WithToken(std::string_view token) const {
  const auto at = tokens_.find(token);
  return token.empty() || at == tokens_.end() ? std::nullopt : std::optional(at->second);
}

void LiveJobs::Note(const model::Event& event) {
  switch (event.kind) {
    case model::EventKind::kSubmit:
      return Submit(event);
    case model::EventKind::kSubmitArray:
      return SubmitArray(event);
    case model::EventKind::kUpdated:
      return Update(event);
    case model::EventKind::kEnded:
    case model::EventKind::kFailed:
    case model::EventKind::kCancel:
      End(event.job, event.at);
      (*this)[event.job].exit_code = event.exit_code;
      if (event.kind == model::EventKind::kFailed) {
        NoteFailure(event);
      }
      return;
    case model::EventKind::kGpusLost:
      if (event.exit_code != 0) {
        NoteFailure(event);
      }
      return;
    case model::EventKind::kNoted:
      if (const std::optional<EndNote> note = NoteAs<EndNote>(event); note && has(note->job)) {
        (*this)[note->job].reason = note->text;
      }
      return;
    case model::EventKind::kProgress:
      (*this)[event.job].iterations_saved = event.work_done;
      (*this)[event.job].iterations_seen = event.work_done;
      return;
    case model::EventKind::kResize: {
      LiveJob& job = (*this)[event.job];
      const auto request = std::make_shared<v1::JobRequest>(*job.request);
      request->set_gpus(event.gpus);
      job.request = request;
      return;
    }
    default:
      return;
  }
}

// A failure of the job's own.
void LiveJobs::NoteFailure(const model::Event& event) {
  LiveJob& job = (*this)[event.job];
  ++job.failures;
  job.last_failure = event.exit_code;
}

void LiveJobs::Submit(const model::Event& event) {
  jobs_.resize(std::max(jobs_.size(), Index(event.job) + 1));
  LiveJob& job = (*this)[event.job];
  job.spec = event.spec;
  job.request = std::exchange(announced_, nullptr);
  if (job.request == nullptr) {  // told by the journal
    const auto request = std::make_shared<v1::JobRequest>();
    CHECK(request->ParseFromString(event.spec->launch));
    job.request = request;
  }
  job.submitted = event.at;
  AddToken(event.job);
  CountData(job, 1);
  ++live_;
}

// The tasks share specification and request.
void LiveJobs::SubmitArray(const model::Event& event) {
  const Result<model::ArrayTasks> tasks = model::ParseArray(event.spec->traits->array);
  CHECK(tasks.ok());
  std::shared_ptr<const v1::JobRequest> request = std::exchange(announced_, nullptr);
  model::Event task = event;
  for (std::size_t i = 0; i < tasks.value().indices.size(); ++i) {
    task.job = JobAt(Index(event.job) + i);
    announced_ = request;
    Submit(task);
    LiveJob& job = (*this)[task.job];
    request = job.request;
    job.array = event.job;
    job.array_index = tasks.value().indices[i];
  }
}

void LiveJobs::Update(const model::Event& event) {
  LiveJob& job = (*this)[event.job];
  const auto request = std::make_shared<v1::JobRequest>();
  CHECK(request->ParseFromString(event.spec->launch));
  request->set_gpus(event.spec->gpus);
  job.spec = event.spec;
  job.request = request;
}

void LiveJobs::CountData(const LiveJob& job, int more) {
  if (const DataSet* const data = job.data_set(); data != nullptr) {
    const auto entry = data_.try_emplace(data->name, *data, 0).first;
    entry->second.second += more;
    if (entry->second.second == 0) {
      data_.erase(entry);
    }
  }
}

const DataSet* LiveJobs::DataNamed(std::string_view name) const {
  const auto entry = data_.find(name);
  return entry == data_.end() ? nullptr : &entry->second.first;
}

void LiveJobs::AddToken(JobId id) {
  const std::string& token = (*this)[id].request->launch().client_token();
  if (!token.empty()) {
    JobId& first = tokens_.try_emplace(token, id).first->second;
    first = std::min(first, id);  // the tasks of an array have the same
  }
}

void LiveJobs::End(JobId id, TimePoint at) {
  LiveJob& job = (*this)[id];
  job.ending = true;
  job.ended = at;
  CountData(job, -1);
  --live_;
}

void LiveJobs::SerializeJob(JobId id, const std::shared_ptr<const JobSpec>& spec,
                            StateStream& state) {
  jobs_.resize(std::max(jobs_.size(), Index(id) + 1));
  LiveJob& job = jobs_[Index(id)];
  state(job);
  if (!state.reading()) {
    return;
  }
  const auto request = std::make_shared<v1::JobRequest>();
  if (!spec || !request->ParseFromString(spec->launch)) {
    return state.Fail();
  }
  request->set_gpus(spec->gpus);  // it may have been resized
  job.spec = spec;
  job.request = request;
  AddToken(id);
  if (!job.ending) {
    CountData(job, 1);
  }
}

// ---------------------------------------------------------------------------------------- metrics

void LiveMetrics::Hear(JobId id, const Said& metrics) {
  for (const v1::Metric& metric : metrics) {
    if (!base::IsMetricName(metric.name()) || !std::isfinite(metric.value())) {
      continue;
    }
    OfJob& job = jobs_[id];
    const auto told = job.told.find(metric.name());
    if (told != job.told.end() && told->second == metric.value()) {
      job.untold.erase(metric.name());
    } else if (told != job.told.end() || job.told.size() + job.untold.size() < kMaxMetrics ||
               job.untold.contains(metric.name())) {
      job.untold[metric.name()] = metric.value();
    }
    if (job.untold.empty()) {
      untold_.erase(id);
    } else {
      untold_.insert(id);
    }
  }
}

void LiveMetrics::Note(const model::Event& event) {
  OfJob& job = jobs_[event.job];
  for (const Metric& metric : event.metrics) {
    job.told[metric.name] = metric.value;
  }
  job.untold.clear();
  job.tell_from = event.at + pause_;
  untold_.erase(event.job);
}

void LiveMetrics::Drop(JobId job) {
  jobs_.erase(job);
  untold_.erase(job);
}

std::map<std::string, double> LiveMetrics::Of(JobId job) const {
  const auto known = jobs_.find(job);
  if (known == jobs_.end()) {
    return {};
  }
  std::map<std::string, double> said = known->second.untold;
  said.insert(known->second.told.begin(), known->second.told.end());
  return said;
}

std::optional<model::Event> LiveMetrics::Untold(JobId id, TimePoint now) const {
  if (!untold_.contains(id)) {
    return std::nullopt;
  }
  model::Event event{.kind = model::EventKind::kReported, .at = now, .job = id};
  for (const auto& [name, value] : jobs_.at(id).untold) {
    event.metrics.push_back({.name = name, .value = value});
  }
  return event;
}

std::vector<JobId> LiveMetrics::Due(TimePoint now) const {
  std::vector<JobId> due;
  for (const JobId job : untold_) {
    if (jobs_.at(job).tell_from <= now) {
      due.push_back(job);
    }
  }
  return due;
}

std::optional<TimePoint> LiveMetrics::next_timer() const {
  std::optional<TimePoint> next;
  for (const JobId job : untold_) {
    next = base::Earlier(next, std::optional(jobs_.at(job).tell_from));
  }
  return next;
}

void LiveMetrics::SerializeJob(JobId id, StateStream& state) {
  const auto at = jobs_.find(id);
  OfJob job = at == jobs_.end() ? OfJob{} : at->second;
  state(job);
  if (state.reading() && !(job.told.empty() && job.untold.empty())) {
    if (!job.untold.empty()) {
      untold_.insert(id);
    }
    jobs_[id] = std::move(job);
  }
}

}  // namespace trainyard::live
