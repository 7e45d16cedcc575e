// SPDX-License-Identifier: Apache-2.0
#include "profiler/run_book.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/try.h"
#include "io/file.h"
#include "io/json.h"

namespace trainyard::profiler {
namespace {

using Json = nlohmann::ordered_json;

// All that makes two runs comparable: its limit does not.
Json JsonOf(const Trial& trial) {
  Json before = Json::array();
  for (const Trial& earlier : trial.before) {
    before.push_back(JsonOf(earlier));
  }
  return {{"name", trial.name},
          {"command", trial.command},
          {"folder", trial.folder},
          {"container", {trial.container.image, trial.container.mounts}},
          {"gpus", trial.gpus},
          {"loader_workers", trial.loader_workers},
          {"cores", trial.cores},
          {"warmup", trial.warmup},
          {"iterations", trial.iterations},
          {"until_notice", trial.until_notice},
          {"before", before}};
}

Json JsonOf(const TrialResult& result) {
  return {{"failure", result.failure},   {"iteration_s", result.iteration_s},
          {"start_s", result.start_s},   {"stop_s", result.stop_s},
          {"change_s", result.change_s}, {"loading_share", result.loading_share},
          {"stages_s", result.stages_s}, {"wall_s", result.wall_s}};
}

TrialResult ResultOf(const Json& json) {
  TrialResult result{.failure = json.at("failure").get<std::string>(),
                     .iteration_s = json.at("iteration_s").get<double>(),
                     .start_s = json.at("start_s").get<double>(),
                     .stop_s = json.at("stop_s").get<double>(),
                     .change_s = json.at("change_s").get<double>(),
                     .loading_share = json.at("loading_share").get<double>(),
                     .wall_s = json.value("wall_s", 0.0)};
  json.at("stages_s").get_to(result.stages_s);
  return result;
}

}  // namespace

Result<RunBook> RunBook::Open(const std::string& path) {
  RunBook book;
  book.path_ = path;
  if (!std::filesystem::exists(path)) {
    return book;
  }
  ASSIGN_OR_RETURN(const std::string text, io::ReadFile(path));
  std::size_t line = 0;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    ++line;
    try {
      const Json json = Json::parse(text.substr(begin, end - begin));
      book.runs_.emplace_back(json.at("trial").dump(), ResultOf(json.at("result")));
    } catch (const Json::exception&) {
      return BadInput(
          fmt::format("{}:{}: no run of a profile; expected what `trainyard profile` "
                      "has written, or another --out",
                      path, line));
    }
  }
  if (begin < text.size()) {  // killed while it wrote
    std::error_code error;
    std::filesystem::resize_file(path, begin, error);
    if (error) {
      return Failed(fmt::format("{}: cannot be written: {}", path, error.message()));
    }
  }
  return book;
}

std::vector<TrialResult> RunBook::Of(const Trial& trial) const {
  const std::string key = JsonOf(trial).dump();
  std::vector<TrialResult> results;
  for (const auto& [of, result] : runs_) {
    if (of == key && result.ok()) {
      results.push_back(result);
    }
  }
  return results;
}

double RunBook::SecondsOf(const Trial& trial) const {
  const std::string key = JsonOf(trial).dump();
  double seconds = 0;
  for (const auto& [of, result] : runs_) {
    seconds += of == key ? result.wall_s : 0;
  }
  return seconds;
}

Status RunBook::Add(const Trial& trial, const TrialResult& result) {
  runs_.emplace_back(JsonOf(trial).dump(), result);
  if (path_.empty()) {
    return {};
  }
  std::ofstream out(path_, std::ios::app | std::ios::binary);
  out << Json{{"trial", JsonOf(trial)}, {"result", JsonOf(result)}}.dump() << '\n' << std::flush;
  return out ? Status() : Failed(fmt::format("{}: cannot be written", path_));
}

}  // namespace trainyard::profiler
