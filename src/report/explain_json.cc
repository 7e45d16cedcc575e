// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "report/explain.h"
#include "report/json_value.h"
#include "report/metrics.h"

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;

Json SecondsOrNull(std::optional<Duration> value) { return value ? Json(Seconds(*value)) : Json(); }

Json PartsJson(const JctParts& parts) {
  return {{"jct", Seconds(parts.sum())},           {"queued", Seconds(parts.queued)},
          {"suspended", Seconds(parts.suspended)}, {"productive", Seconds(parts.productive)},
          {"overhead", Seconds(parts.overhead)},   {"registered", Seconds(parts.registered)}};
}

Json SeenJson(const JobResult& job, const RunResult& run) {
  const std::optional<bool> met = DeadlineMet(job, run);
  return {{"outcome", Name(job.outcome)},
          {"jct", SecondsOrNull(Jct(job, run))},
          {"deadline_met", met ? Json(*met) : Json()},
          {"preemptions", job.preemptions},
          {"migrations", job.migrations},
          {"resizes", job.resizes}};
}

template <typename Job>
Json JobJson(const Job& job, const Explanation& explanation) {
  return {{"job_id", job.job->spec->name},
          {"sentence", SentenceOf(job, explanation)},
          {"run", SeenJson(*job.job, *explanation.run)},
          {"other", SeenJson(*job.other, *explanation.other)}};
}

Json JobsJson(const std::vector<ExplainedJob>& jobs, const Explanation& explanation) {
  Json list = Json::array();
  for (const ExplainedJob& job : jobs) {
    list.push_back(JobJson(job, explanation));
    list.back()["difference"] = PartsJson(job.parts);
  }
  return list;
}

}  // namespace

std::string ExplanationJson(const Explanation& explanation, int indent) {
  Json changes = Json::array();
  for (const OutcomeChange& change : explanation.changes) {
    changes.push_back(JobJson(change, explanation));
  }
  const Json all = {{"run", explanation.run->label},
                    {"other", explanation.other->label},
                    {"jct_mean", OrNull<Json>(explanation.jct_mean)},
                    {"other_jct_mean", OrNull<Json>(explanation.other_jct_mean)},
                    {"completed_in_both", explanation.completed_in_both},
                    {"difference_total", PartsJson(explanation.total)},
                    {"deadlines_won", explanation.deadlines_won},
                    {"deadlines_lost", explanation.deadlines_lost},
                    {"gained", JobsJson(explanation.gained, explanation)},
                    {"lost", JobsJson(explanation.lost, explanation)},
                    {"completed_in_one_only", std::move(changes)}};
  return all.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace trainyard
