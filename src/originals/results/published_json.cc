// SPDX-License-Identifier: Apache-2.0
#include "originals/results/published_json.h"

#include "io/json.h"

#include "originals/results/published.h"
#include "results/write/json.h"
#include "results/write/json_value.h"

namespace trainyard::originals {
namespace {

using Json = nlohmann::ordered_json;

Json PublishedJson(const OriginalResult& result) {
  const PublishedMetrics metrics = MeasureAsPublished(result);
  const PublishedDefinitions definitions = DefinitionsOf(result.program);
  return {{"program", Name(result.program)},
          {"path", result.path},
          {"jobs", metrics.jobs},
          {"jct_mean", results::OrNull<Json>(metrics.jct_mean)},
          {"jct_p99", results::OrNull<Json>(metrics.jct_p99)},
          {"makespan", results::OrNull<Json>(metrics.makespan)},
          {"responsiveness_mean", results::OrNull<Json>(metrics.responsiveness_mean)},
          {"accepted", results::OrNull<Json>(metrics.accepted)},
          {"declined", results::OrNull<Json>(metrics.declined)},
          {"preemptions", results::OrNull<Json>(metrics.preemptions)},
          {"definitions",
           {{"jct", definitions.jct},
            {"jct_p99", definitions.p99},
            {"makespan", definitions.makespan},
            {"deadlines", definitions.deadlines}}}};
}

}  // namespace

std::string ResultsJson(const Results& results) {
  results::Json all = results::Json::parse(results::CompareJson(results.runs));
  for (std::size_t i = 0; i < results.originals.size(); ++i) {
    if (results.originals[i]) {
      all[i]["published"] = PublishedJson(*results.originals[i]);
    }
  }
  return all.dump(2, ' ', false, results::Json::error_handler_t::replace);
}

}  // namespace trainyard::originals
