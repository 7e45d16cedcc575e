// SPDX-License-Identifier: Apache-2.0
// The JSON files of a run of Blox.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "io/json.h"
#include "originals/results/original.h"
#include "results/read/json_text.h"
#include "trace/csv_format.h"

namespace trainyard::originals {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kRound = 300;  // seconds; a job's first metric comes a round after its start

Result<Json> Read(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, results::ReadJsonObject(path));
  return Json::parse(text);
}

bool IsTime(const Json& value) {
  return value.is_number() && std::abs(value.get<double>()) <= model::kMostTraceSeconds;
}

// "id -> [submit, then]"
Result<std::map<std::string, double>> ReadThen(const std::string& path, const Json& table,
                                               std::vector<ResultRow>* rows) {
  std::map<std::string, double> then;
  for (const auto& [id, times] : table.items()) {
    if (!times.is_array() || times.size() != 2 || !IsTime(times[0]) || !IsTime(times[1])) {
      return BadInput(
          fmt::format("{}: job '{}' is {}; expected two times in seconds", path, id, times.dump()));
    }
    if (rows != nullptr) {
      rows->push_back(
          {.name = id, .submit = times[0].get<double>(), .end = times[1].get<double>()});
    }
    then[id] = times[1].get<double>();
  }
  return then;
}

Status AddStarts(const std::string& path, OriginalResult& result) {
  ASSIGN_OR_RETURN(const Json table, Read(path));
  ASSIGN_OR_RETURN(const auto first, ReadThen(path, table, nullptr));
  for (ResultRow& row : result.rows) {
    if (const auto found = first.find(row.name); found != first.end()) {
      row.start = found->second - kRound;
    }
  }
  return {};
}

Status AddGpus(const std::string& path, OriginalResult& result) {
  constexpr int kMost = 1'000'000;
  ASSIGN_OR_RETURN(const Json table, Read(path));
  for (ResultRow& row : result.rows) {
    const auto record = table.find(row.name);
    if (record == table.end() || !record->is_object()) {
      continue;
    }
    const auto gpus = record->find("num_GPUs");
    if (gpus != record->end() && gpus->is_number_integer() && gpus->get<std::int64_t>() > 0 &&
        gpus->get<std::int64_t>() <= kMost) {
      row.gpus = gpus->get<int>();
    }
  }
  return {};
}

Status AddPreemptions(const std::string& path, OriginalResult& result) {
  ASSIGN_OR_RETURN(const Json table, Read(path));
  std::int64_t sum = 0;
  for (const auto& [time, metrics] : table.items()) {
    std::int64_t count = metrics.is_object() ? 0 : -1;
    if (const auto found = metrics.find("num_preemptions"); found != metrics.end()) {
      count = found->is_number_integer() ? found->get<std::int64_t>() : -1;
    }
    if (count < 0) {
      return BadInput(fmt::format("{}: time '{}' is {}; expected a number of preemptions", path,
                                  time, metrics.dump()));
    }
    sum += count;
  }
  result.preemptions = sum;
  return {};
}

}  // namespace

Result<OriginalResult> ReadBloxResult(const std::string& path) {
  CHECK(path.ends_with(kBloxJobs));
  ASSIGN_OR_RETURN(const Json jobs, Read(path));
  OriginalResult result{.program = Original::kBlox, .path = path};
  RETURN_IF_ERROR(ReadThen(path, jobs, &result.rows));
  if (result.rows.empty()) {
    return BadInput(path + ": has no job; expected an object with one key for each");
  }
  const std::string stem = path.substr(0, path.size() - kBloxJobs.size());
  for (const auto& [suffix, add] :
       {std::pair{"_responsivness.json", &AddStarts}, std::pair{"_run_time_stats.json", &AddGpus},
        std::pair{"_custom_metrics.json", &AddPreemptions}}) {
    if (const std::string beside = stem + suffix; std::filesystem::exists(beside)) {
      RETURN_IF_ERROR(add(beside, result));
    }
  }
  return result;
}

}  // namespace trainyard::originals
