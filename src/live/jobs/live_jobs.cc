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
  switch (event.kind()) {
    case model::EventKind::kSubmitted:
      return Submit(event.job(), event.spec(), event.at);
    case model::EventKind::kArraySubmitted:
      return SubmitArray(event.As<model::fact::ArraySubmitted>(), event.at);
    case model::EventKind::kUpdated:
      return Update(event.As<model::fact::Updated>());
    case model::EventKind::kEnded:
    case model::EventKind::kCancelled:
      return End(event.job(), event.at);
    case model::EventKind::kFailed: {
      const auto& failed = event.As<model::fact::Failed>();
      End(failed.job, event.at);
      (*this)[failed.job].exit_code = failed.exit_code;
      return NoteFailure(failed.job, failed.exit_code);
    }
    case model::EventKind::kGpusLost: {
      const auto& lost = event.As<model::fact::GpusLost>();
      return lost.exit_code == 0 ? void() : NoteFailure(lost.job, lost.exit_code);
    }
    case model::EventKind::kNoted:
      if (const std::optional<EndNote> note = NoteAs<EndNote>(event); note && has(note->job)) {
        (*this)[note->job].reason = note->text;
      }
      return;
    case model::EventKind::kProgress: {
      const auto& progress = event.As<model::fact::Progress>();
      (*this)[progress.job].iterations_saved = progress.work_done;
      (*this)[progress.job].iterations_seen = progress.work_done;
      return;
    }
    case model::EventKind::kResized: {
      const auto& resized = event.As<model::fact::Resized>();
      LiveJob& job = (*this)[resized.job];
      const auto request = std::make_shared<v1::JobRequest>(*job.request);
      request->set_gpus(resized.gpus);
      job.request = request;
      return;
    }
    default:
      return;
  }
}

// A failure of the job's own.
void LiveJobs::NoteFailure(JobId id, int exit_code) {
  LiveJob& job = (*this)[id];
  ++job.failures;
  job.last_failure = exit_code;
}

void LiveJobs::Submit(JobId id, const std::shared_ptr<const JobSpec>& spec, TimePoint at) {
  jobs_.resize(std::max(jobs_.size(), Index(id) + 1));
  LiveJob& job = (*this)[id];
  job.spec = spec;
  job.request = std::exchange(announced_, nullptr);
  if (job.request == nullptr) {  // told by the journal
    const auto request = std::make_shared<v1::JobRequest>();
    CHECK(request->ParseFromString(spec->launch));
    job.request = request;
  }
  job.submitted = at;
  AddToken(id);
  CountData(job, 1);
  ++live_;
}

// The tasks share specification and request.
void LiveJobs::SubmitArray(const model::fact::ArraySubmitted& array, TimePoint at) {
  const Result<model::ArrayTasks> tasks = model::ParseArray(array.spec->traits->array);
  CHECK(tasks.ok());
  std::shared_ptr<const v1::JobRequest> request = std::exchange(announced_, nullptr);
  for (std::size_t i = 0; i < tasks.value().indices.size(); ++i) {
    const JobId task = JobAt(Index(array.job) + i);
    announced_ = request;
    Submit(task, array.spec, at);
    LiveJob& job = (*this)[task];
    request = job.request;
    job.array = array.job;
    job.array_index = tasks.value().indices[i];
  }
}

void LiveJobs::Update(const model::fact::Updated& updated) {
  LiveJob& job = (*this)[updated.job];
  const auto request = std::make_shared<v1::JobRequest>();
  CHECK(request->ParseFromString(updated.spec->launch));
  request->set_gpus(updated.spec->gpus);
  job.spec = updated.spec;
  job.request = request;
}

void LiveJobs::Respecify(const engine::Configuration& next, const engine::Configuration& former) {
  for (std::size_t i = 0; (next.BindsJobs() || former.BindsJobs()) && i < jobs_.size(); ++i) {
    if (!jobs_[i].ending) {
      (*this)[JobAt(i)].spec = engine::SpecUnder(next, former, *jobs_[i].spec);
    }
  }
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

void LiveMetrics::Note(const model::fact::Reported& reported, TimePoint at) {
  OfJob& job = jobs_[reported.job];
  for (const Metric& metric : reported.metrics) {
    job.told[metric.name] = metric.value;
  }
  job.untold.clear();
  job.tell_from = at + pause_;
  untold_.erase(reported.job);
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

std::optional<model::fact::Reported> LiveMetrics::Untold(JobId id) const {
  if (!untold_.contains(id)) {
    return std::nullopt;
  }
  model::fact::Reported reported{.job = id};
  for (const auto& [name, value] : jobs_.at(id).untold) {
    reported.metrics.push_back({.name = name, .value = value});
  }
  return reported;
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
