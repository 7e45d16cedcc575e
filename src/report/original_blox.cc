// SPDX-License-Identifier: Apache-2.0
// The JSON files of a run of Blox.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/text.h"
#include "report/json_text.h"
#include "report/original.h"
#include "trace/csv_format.h"

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kRound = 300;  // seconds; a job's first metric comes a round after its start

Result<Json> Read(const std::string& path) {
  const Result<std::string> text = ReadJsonObject(path);
  if (!text.ok()) {
    return text.error();
  }
  return Json::parse(text.value());
}

bool IsTime(const Json& value) {
  return value.is_number() && std::abs(value.get<double>()) <= kMostTraceSeconds;
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
  const Result<Json> table = Read(path);
  if (!table.ok()) {
    return table.error();
  }
  const Result<std::map<std::string, double>> first = ReadThen(path, table.value(), nullptr);
  if (!first.ok()) {
    return first.error();
  }
  for (ResultRow& row : result.rows) {
    if (const auto found = first.value().find(row.name); found != first.value().end()) {
      row.start = found->second - kRound;
    }
  }
  return {};
}

Status AddGpus(const std::string& path, OriginalResult& result) {
  constexpr int kMost = 1'000'000;
  const Result<Json> table = Read(path);
  if (!table.ok()) {
    return table.error();
  }
  for (ResultRow& row : result.rows) {
    const auto record = table.value().find(row.name);
    if (record == table.value().end() || !record->is_object()) {
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
  const Result<Json> table = Read(path);
  if (!table.ok()) {
    return table.error();
  }
  std::int64_t sum = 0;
  for (const auto& [time, metrics] : table.value().items()) {
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
  const Result<Json> jobs = Read(path);
  if (!jobs.ok()) {
    return jobs.error();
  }
  OriginalResult result{.program = Original::kBlox, .path = path};
  if (const auto ends = ReadThen(path, jobs.value(), &result.rows); !ends.ok()) {
    return ends.error();
  }
  if (result.rows.empty()) {
    return BadInput(path + ": has no job; expected an object with one key for each");
  }
  const std::string stem = path.substr(0, path.size() - kBloxJobs.size());
  for (const auto& [suffix, add] :
       {std::pair{"_responsivness.json", &AddStarts}, std::pair{"_run_time_stats.json", &AddGpus},
        std::pair{"_custom_metrics.json", &AddPreemptions}}) {
    if (const std::string beside = stem + suffix; std::filesystem::exists(beside)) {
      if (Status status = add(beside, result); !status.ok()) {
        return status.error();
      }
    }
  }
  return result;
}

}  // namespace trainyard
