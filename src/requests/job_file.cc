// SPDX-License-Identifier: Apache-2.0
#include "requests/job_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <concepts>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unix_time.h"
#include "io/file.h"
#include "io/json.h"
#include "io/text_check.h"
#include "io/toml.h"
#include "live/jobs/job_request.h"
#include "live/notices/notices.h"
#include "model/job_fields.h"
#include "model/node_classes.h"
#include "model/request/node_request.h"
#include "model/request/tasks.h"
#include "requests/job_tasks.h"
#include "requests/slurm/slurm_time.h"

namespace trainyard::requests {
namespace {

// A value and where it stands. On the command line all values are texts.
struct Setting {
  nlohmann::json value;
  std::string where;  // "job.toml:3: 'gpus'" or "--gpus"
  ErrorCode error = ErrorCode::kInvalidArgument;

  [[nodiscard]] Error Bad(std::string_view expected, std::string_view why = {}) const {
    return {error, fmt::format("{} is {}{}{}; expected {}", where,
                               value.is_string() ? fmt::format("'{}'", value.get<std::string>())
                                                 : value.dump(),
                               why.empty() ? "" : ": ", why, expected)};
  }
  [[nodiscard]] std::optional<std::string> Text() const {
    return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
  }
  [[nodiscard]] std::optional<double> Number() const {
    return value.is_string()   ? base::ToNumber(value.get<std::string>())
           : value.is_number() ? std::optional(value.get<double>())
                               : std::nullopt;
  }
};

// -------------------------------------------------------------------------------- kinds of values

Status SetText(const Setting& setting, std::string& text) {
  const std::optional<std::string> given = setting.Text();
  if (!given || given->empty()) {
    return setting.Bad("a text");
  }
  text = *given;
  return {};
}

Result<std::int64_t> IntegerOf(const Setting& setting, double least, double most) {
  const std::optional<double> number = setting.Number();
  if (!number || *number != std::floor(*number) || *number < least || *number > most) {
    return setting.Bad(fmt::format("an integer from {:.0f} to {:.0f}", least, most));
  }
  return static_cast<std::int64_t>(*number);
}

// Seconds, more than 0 unless `zero`.
Result<double> DurationOf(const Setting& setting, std::string_view expected, bool zero = false) {
  const std::optional<std::string> text = setting.Text();
  const TimeReading span =
      text ? ReadSpan(*text) : TimeReading{.seconds = setting.Number(), .why = {}};
  const bool good = span.seconds && *span.seconds >= 0 && (zero || *span.seconds > 0) &&
                    *span.seconds <= model::kMostTraceSeconds;
  return good ? Result<double>(*span.seconds) : setting.Bad(expected, span.why);
}

// ------------------------------------------------------------------------------------------- keys

Status SetGpus(const Setting& setting, v1::JobRequest& job) {
  constexpr const char* kExpected =
      "a number of GPUs, MIN:MAX for an elastic job, or 0 for one on CPUs alone";
  const std::string text =
      setting.Text().value_or(setting.value.is_number() ? setting.value.dump() : "");
  const std::vector<std::string_view> ends = base::Split(text, ":");
  const std::optional<double> least = base::ToNumber(ends.front());
  const std::optional<double> most = base::ToNumber(ends.back());
  const bool is_range = ends.size() > 1;
  const auto is_count = [is_range](std::optional<double> count) {
    return count && *count == std::floor(*count) && *count >= (is_range ? 1 : 0) &&
           *count <= static_cast<double>(model::kMostGpus);
  };
  if (!least && is_count(most) && !ends.front().empty()) {
    return setting.Bad(kExpected, "types are stated by --gpu-types");
  }
  if (ends.size() > 2 || !is_count(least) || !is_count(most)) {
    return setting.Bad(kExpected);
  }
  if (*most < *least) {
    return setting.Bad(kExpected, "the least number is greater than the most");
  }
  job.set_gpus(static_cast<int>(*least));
  job.set_min_gpus(ends.size() == 2 ? static_cast<int>(*least) : 0);
  job.set_max_gpus(ends.size() == 2 ? static_cast<int>(*most) : 0);
  return {};
}

// -------------------------------------------------------- fields of the table, by their types

Status SetValue(const Setting& setting, const model::JobFieldInfo& info, v1::JobRequest& job,
                const std::string* /*type*/) {
  std::string text;
  Status set = SetText(setting, text);
  live::SetInRequest(info.request, text, job);
  return set;
}

template <std::signed_integral T>
Status SetValue(const Setting& setting, const model::JobFieldInfo& info, v1::JobRequest& job,
                const T* /*type*/) {
  ASSIGN_OR_RETURN(const std::int64_t number,
                   IntegerOf(setting, info.bounds.least, info.bounds.most));
  live::SetInRequest(info.request, number, job);
  return {};
}

Status SetValue(const Setting& setting, const model::JobFieldInfo& info, v1::JobRequest& job,
                const bool* /*type*/) {
  if (!setting.value.is_boolean()) {
    return setting.Bad("true or false");
  }
  live::SetInRequest(info.request, setting.value.get<bool>(), job);
  return {};
}

Status SetValue(const Setting& setting, const model::JobFieldInfo& info, v1::JobRequest& job,
                const std::optional<double>* /*type*/) {
  const std::optional<double> number = setting.Number();
  if (!number || !(*number > 0) || *number > info.bounds.most) {
    return setting.Bad(model::ExpectedAmount(info));
  }
  live::SetInRequest(info.request, *number, job);
  return {};
}

Status SetValue(const Setting& setting, const model::JobFieldInfo& info, v1::JobRequest& job,
                const std::optional<Duration>* /*type*/) {
  const std::string text = setting.Text().value_or("");
  const bool is_limit = info.name == "time";
  if (is_limit && (IsUnlimited(text) || setting.value == 0)) {
    job.clear_time_s();
    return {};
  }
  if (is_limit && base::ToNumber(text)) {
    return setting.Bad("a unit, as Slurm counts minutes here: 90m, 2h or 1-12:00:00");
  }
  ASSIGN_OR_RETURN(const double seconds,
                   DurationOf(setting, is_limit ? "a duration such as 90s, 15m or 2h, or UNLIMITED"
                                                : "a duration such as 90s, 15m or 2h"));
  live::SetInRequest(info.request, seconds, job);
  return {};
}

Status SetValue(const Setting& setting, const model::JobFieldInfo& info, v1::JobRequest& job,
                const std::optional<TimePoint>* /*type*/) {
  constexpr const char* kExpected =
      "a duration from now such as 90s, 15m or 2h, or a time: 2026-11-21T18:00, 18:00, now+1hour";
  const std::optional<std::string> text = setting.Text();
  if (info.name == "begin" && text && base::ToNumber(*text)) {
    return setting.Bad("a unit, as a number alone is a day in Slurm: 90s, 15m, 2h or 2026-11-21");
  }
  const double now = base::UnixNow();
  const TimeReading at = text ? ReadTime(*text, now) : TimeReading();
  std::optional<double> seconds = text ? base::ToSpan(*text) : setting.Number();
  if (at.seconds) {
    // `now` of a script that takes its time is now.
    const bool from_now = text->starts_with("now") || *text == "today";
    seconds = *at.seconds - now;
    if (!from_now && *seconds <= 0) {
      return setting.Bad("a time to come");
    }
    seconds = std::max(*seconds, 1e-6);
  }
  if (!seconds || !(*seconds > 0) || *seconds > model::kMostTraceSeconds) {
    return setting.Bad(kExpected, at.why);
  }
  live::SetInRequest(info.request, *seconds, job);
  return {};
}

// "0.1,0.3,0.05", or a list of numbers.
std::optional<std::vector<double>> NumbersOf(const Setting& setting) {
  std::vector<double> numbers;
  if (setting.value.is_array()) {
    for (const nlohmann::json& item : setting.value) {
      if (!item.is_number()) {
        return std::nullopt;
      }
      numbers.push_back(item.get<double>());
    }
    return numbers;
  }
  const std::string text = setting.Text().value_or("");
  for (const std::string_view item : base::Split(text, ",")) {
    const std::optional<double> number = base::ToNumber(item);
    if (!number) {
      return std::nullopt;
    }
    numbers.push_back(*number);
  }
  return numbers;
}

// The iteration takes as long as the longest stage, unless iteration_time says otherwise.
Status SetValue(const Setting& setting, const model::JobFieldInfo& /*info*/, v1::JobRequest& job,
                const std::optional<StageTimes>* /*type*/) {
  constexpr std::size_t kStages = 3;
  const std::optional<std::vector<double>> times = NumbersOf(setting);
  const auto is_time = [](double time) { return time >= 0 && time <= model::kMostTraceSeconds; };
  if (!times || times->size() != kStages || !std::all_of(times->begin(), times->end(), is_time) ||
      *std::max_element(times->begin(), times->end()) <= 0) {
    return setting.Bad("seconds of an iteration for loading, GPU and network: 0.1,0.3,0.05");
  }
  v1::StageTimes& stages = *job.mutable_stages();
  stages.mutable_stages_s()->Assign(times->begin(), times->end());
  if (stages.iteration_s() == 0) {
    stages.set_iteration_s(*std::max_element(times->begin(), times->end()));
  }
  return {};
}

// "2h=10,4h=5": an end within 2 hours is worth 10. The first time is the deadline for policies that
// know one deadline only.
Status SetValue(const Setting& setting, const model::JobFieldInfo& /*info*/, v1::JobRequest& job,
                const std::vector<SoftDeadline>* /*type*/) {
  constexpr const char* kExpected =
      "rising times from now, each worth no more than the one before: 2h=10,4h=5";
  const std::string text = setting.Text().value_or("");
  job.clear_soft_deadlines();
  double before = 0;
  double worth = model::kMostTraceSeconds;
  for (const std::string_view item : base::Split(text, ",")) {
    const std::size_t equals = item.find('=');
    const TimeReading span = ReadSpan(item.substr(0, equals));
    const std::optional<double>& after = span.seconds;
    const bool has_value = equals != std::string_view::npos;
    const auto value = base::ToNumber(has_value ? item.substr(equals + 1) : std::string_view());
    if (!after || *after <= before || *after > model::kMostTraceSeconds || !value || *value <= 0 ||
        *value > worth) {
      return setting.Bad(kExpected, span.why);
    }
    v1::SoftDeadline& deadline = *job.add_soft_deadlines();
    deadline.set_after_s(*after);
    deadline.set_value(*value);
    before = *after;
    worth = *value;
  }
  job.set_deadline_s(job.soft_deadlines(0).after_s());
  return {};
}

Status SetValue(const Setting& setting, const model::JobFieldInfo& info, v1::JobRequest& job,
                const std::vector<std::string>* /*type*/) {
  const std::string text = setting.Text().value_or("");
  std::vector<std::string> names;
  for (const std::string_view name : base::Split(text, "|")) {
    names.emplace_back(name);
  }
  const std::vector<std::string> all = model::TypesOf(names).names;
  if (std::find(all.begin(), all.end(), "") != all.end() ||
      (names.size() > 1 && all.size() > names.size())) {
    return setting.Bad("names with a bar between them, 'A100|V100', or in an order: 'H100,A100'");
  }
  live::SetInRequest(info.request, names, job);
  return {};
}

template <model::HasText T>
Status SetValue(const Setting& setting, const model::JobFieldInfo& info, v1::JobRequest& job,
                const T* /*type*/) {
  T value;
  const std::string text =
      setting.Text().value_or(setting.value.is_number() ? setting.value.dump() : "");
  bool per_task = false;  // SettleTasks makes it one of nodes
  if constexpr (model::HasPer<T>) {
    per_task = model::ReadPerTask(text, value);
  }
  if (!per_task && !model::ReadText(text, value)) {
    return setting.Bad(model::ExpectedOfJob(value));
  }
  live::SetInRequest(info.request, model::TextOf(value) + (per_task ? "/task" : ""), job);
  return {};
}

// What the files of the folder take; none: it is none that can be looked into from here.
std::optional<std::int64_t> MibOf(const std::string& folder) {
  constexpr std::uintmax_t kMib = std::uintmax_t{1} << 20;
  std::uintmax_t bytes = 0;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    std::error_code gone;
    bytes += entry->is_regular_file(gone) && !gone ? entry->file_size(gone) : 0;
  }
  return error ? std::nullopt
               : std::optional(std::max<std::int64_t>(
                     1, static_cast<std::int64_t>((bytes + kMib - 1) / kMib)));
}

// "imagenet=/data/imagenet:150000", "imagenet=store:/data/imagenet:150000". A folder of this
// machine may come without its size.
Status SetValue(const Setting& setting, const model::JobFieldInfo& info, v1::JobRequest& job,
                const std::optional<DataSet>* /*type*/) {
  const std::string text = setting.Text().value_or("");
  const std::size_t equals = text.find('=');
  std::string path = equals == std::string::npos ? "" : text.substr(equals + 1);
  std::optional<std::int64_t> mib;
  if (const std::size_t colon = path.rfind(':'); colon != std::string::npos) {
    const std::optional<double> size = base::ToNumber(std::string_view(path).substr(colon + 1));
    if (size &&
        (*size != std::floor(*size) || *size < info.bounds.least || *size > info.bounds.most)) {
      return setting.Bad(fmt::format("NAME=PATH:MIB with {}", model::ExpectedInteger(info)));
    }
    if (size) {
      mib = static_cast<std::int64_t>(*size);
      path.resize(colon);
    }
  }
  const std::size_t host = path.find(':');
  const bool is_remote = host != std::string::npos && path.find('/') > host;
  if (!is_remote && !path.empty()) {
    std::error_code code;
    path = std::filesystem::absolute(path, code).lexically_normal().string();
  }
  while (path.size() > 1 && path.ends_with('/')) {
    path.pop_back();
  }
  if (equals == 0 || path.find('/') == std::string::npos) {
    return setting.Bad("NAME=FOLDER or NAME=HOST:FOLDER, with :MIB behind it or without");
  }
  if (!mib && !is_remote) {
    mib = MibOf(path);
    if (!mib) {
      return setting.Bad(
          "a folder that can be looked into from here, or, where only nodes have it, its size in "
          "MiB behind it: NAME=PATH:MIB");
    }
  }
  if (!mib) {
    return setting.Bad(
        "its size in MiB behind it, as the folder cannot be looked into from here: NAME=PATH:MIB");
  }
  v1::DataSet& data = *job.mutable_data_set();
  data.set_name(text.substr(0, equals));
  data.set_home(path);
  data.set_mib(*mib);
  return {};
}

// "0-3,6"
bool AddGpus(std::string_view text, v1::NodeGrant& grant) {
  constexpr double kLast = 63;
  for (const std::string_view range : base::Split(text, ",")) {
    const std::vector<std::string_view> ends = base::Split(range, "-");
    const std::optional<double> first = base::ToNumber(ends.front());
    const std::optional<double> last = base::ToNumber(ends.back());
    if (ends.size() > 2 || !first || !last || *first != std::floor(*first) ||
        *last != std::floor(*last) || *first < 0 || *last < *first || *last > kLast) {
      return false;
    }
    for (int gpu = static_cast<int>(*first); gpu <= static_cast<int>(*last); ++gpu) {
      grant.add_gpus(gpu);
    }
  }
  return true;
}

// As status shows them: "n0:0-1 n1:3".
Status SetValue(const Setting& setting, const model::JobFieldInfo& /*info*/, v1::JobRequest& job,
                const Slices* /*type*/) {
  const std::string text = setting.Text().value_or("");
  job.clear_devices();
  for (const std::string_view item : base::Split(text, " ")) {
    const std::size_t colon = item.rfind(':');
    v1::NodeGrant& grant = *job.add_devices();
    if (colon == 0 || colon == std::string_view::npos || !AddGpus(item.substr(colon + 1), grant)) {
      return setting.Bad("nodes and GPUs: 'n0:0-1 n1:3'");
    }
    grant.set_node(std::string(item.substr(0, colon)));
  }
  return {};
}

// ----------------------------------------------------------------------------------- other keys

Status SetIterationTime(const Setting& setting, v1::JobRequest& job) {
  ASSIGN_OR_RETURN(const double seconds,
                   DurationOf(setting, "the seconds from one iteration to the next"));
  job.mutable_stages()->set_iteration_s(seconds);
  return {};
}

void SetVariable(const std::string& name, const std::string& value, v1::LaunchSpec& launch) {
  auto& all = *launch.mutable_environment();
  const auto same = std::find_if(all.begin(), all.end(),
                                 [&](const auto& variable) { return variable.name() == name; });
  v1::EnvironmentVariable& variable = same == all.end() ? *all.Add() : *same;
  variable.set_name(name);
  variable.set_value(value);
}

// NAME=VALUE, or a table of them.
Status SetEnvironment(const Setting& setting, v1::JobRequest& job) {
  if (setting.value.is_object()) {
    for (const auto& [name, value] : setting.value.items()) {
      if (!value.is_string() || name.empty() || name.find('=') != std::string::npos) {
        return setting.Bad("texts by their names");
      }
      SetVariable(name, value.get<std::string>(), *job.mutable_launch());
    }
    return {};
  }
  const std::string text = setting.Text().value_or("");
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || setting.error == ErrorCode::kBadInput) {
    return setting.Bad(setting.error == ErrorCode::kBadInput ? "a table of texts" : "NAME=VALUE");
  }
  SetVariable(text.substr(0, equals), text.substr(equals + 1), *job.mutable_launch());
  return {};
}

using Setter = std::function<Status(const Setting&, v1::JobRequest&)>;

// A text, at that path of the request.
Setter TextAt(std::string_view path) {
  return [path](const Setting& setting, v1::JobRequest& job) -> Status {
    std::string text;
    RETURN_IF_ERROR(SetText(setting, text));
    live::SetInRequest(path, text, job);
    return {};
  };
}

// A path of this machine, made absolute.
Setter FolderAt(std::string_view path) {
  return [path](const Setting& setting, v1::JobRequest& job) -> Status {
    std::string text;
    RETURN_IF_ERROR(SetText(setting, text));
    std::error_code code;
    text = std::filesystem::absolute(text, code).lexically_normal().string();
    live::SetInRequest(path, text, job);
    return {};
  };
}

// The place of the value among the names.
Result<int> ChoiceOf(const Setting& setting, std::span<const std::string_view> names) {
  const std::string name = setting.Text().value_or(setting.value.dump());
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    return Error{setting.error,
                 fmt::format("{}: {}", setting.where, base::UnknownName("value", name, names))};
  }
  return static_cast<int>(std::distance(names.begin(), found));
}

Status SetWorkers(const Setting& setting, v1::JobRequest& job) {
  constexpr std::array<std::string_view, 4> kNames{"per-gpu", "per-node", "emulated", "once"};
  ASSIGN_OR_RETURN(const int workers, ChoiceOf(setting, kNames));
  v1::LaunchSpec& launch = *job.mutable_launch();
  launch.set_workers(static_cast<v1::LaunchSpec::Workers>(workers));
  launch.clear_workers_per_node();
  launch.clear_tasks();
  return {};
}

// Workers by their number, in place of their kind.
Setter TaskCount(void (v1::LaunchSpec::*set)(std::int32_t), int most) {
  return [set, most](const Setting& setting, v1::JobRequest& job) -> Status {
    ASSIGN_OR_RETURN(const std::int64_t count, IntegerOf(setting, 1, most));
    job.mutable_launch()->set_workers(v1::LaunchSpec::PER_NODE);
    (job.mutable_launch()->*set)(static_cast<std::int32_t>(count));
    return {};
  };
}

Status SetLauncher(const Setting& setting, v1::JobRequest& job) {
  constexpr std::array<std::string_view, 3> kNames{"plain", "torchrun", "mpi"};
  ASSIGN_OR_RETURN(const int launcher, ChoiceOf(setting, kNames));
  job.mutable_launch()->set_launcher(static_cast<v1::LaunchSpec::Launcher>(launcher));
  return {};
}

// "/data:/data:ro,/models:/models", or a list of such mounts. A path alone is mounted where it is.
Status SetMounts(const Setting& setting, v1::JobRequest& job) {
  const nlohmann::json items =
      setting.value.is_array() ? setting.value : nlohmann::json::array({setting.value});
  v1::Container& container = *job.mutable_launch()->mutable_container();
  container.clear_mounts();
  for (const nlohmann::json& item : items) {
    const std::string text = item.is_string() ? item.get<std::string>() : "";
    for (const std::string_view mount : base::Split(text, ",")) {
      if (!mount.starts_with("/")) {
        return setting.Bad("SOURCE:TARGET[:FLAG+FLAG], with commas between several");
      }
      const bool has_target = mount.find(':') != std::string_view::npos;
      container.add_mounts(has_target ? std::string(mount) : fmt::format("{}:{}", mount, mount));
    }
  }
  return {};
}

Status SetGrace(const Setting& setting, v1::JobRequest& job) {
  ASSIGN_OR_RETURN(const double seconds,
                   DurationOf(setting, "a duration such as 30s or 2m", /*zero=*/true));
  job.mutable_launch()->set_grace(std::llround(seconds * 1000));
  return {};
}

// "end,fail", or a list of them.
Status SetNotify(const Setting& setting, v1::JobRequest& job) {
  const nlohmann::json items =
      setting.value.is_array() ? setting.value : nlohmann::json::array({setting.value});
  v1::LaunchSpec& launch = *job.mutable_launch();
  launch.clear_notify();
  for (const nlohmann::json& item : items) {
    const std::string text = item.is_string() ? item.get<std::string>() : "";
    for (const std::string_view event : base::Split(text, ",")) {
      launch.add_notify(std::string(event));
    }
  }
  return live::MistakeOfNotify(launch).empty()
             ? Status()
             : setting.Bad("begin, end, fail and preempt, with commas between several");
}

Status ReadCommand(const Setting& setting, v1::JobRequest& job) {
  const nlohmann::json& words = setting.value;
  if (!words.is_array() || words.empty() ||
      !std::all_of(words.begin(), words.end(),
                   [](const nlohmann::json& word) { return word.is_string(); })) {
    return setting.Bad("a list of texts: the program and its arguments");
  }
  job.mutable_launch()->clear_command();
  for (const nlohmann::json& word : words) {
    job.mutable_launch()->add_command(word.get<std::string>());
  }
  return {};
}

Status SetHold(const Setting& setting, v1::JobRequest& job) {
  if (!setting.value.is_boolean()) {
    return setting.Bad("true or false");
  }
  job.mutable_launch()->set_hold(setting.value.get<bool>());
  return {};
}

Status SetMaxRestarts(const Setting& setting, v1::JobRequest& job) {
  ASSIGN_OR_RETURN(const std::int64_t restarts,
                   IntegerOf(setting, 0, std::numeric_limits<std::int32_t>::max()));
  job.mutable_launch()->set_max_restarts(static_cast<std::int32_t>(restarts));
  return {};
}

struct FileKey {
  JobOption option;
  Setter set;
};

// What the table of a job's fields has, and what its workers run.
const std::vector<FileKey>& Keys() {
  static const std::vector<FileKey> kKeys = [] {
    std::vector<FileKey> keys;
    model::ForEachJobField<model::IsInRequests>(
        [&]<typename Owner, typename T>(const model::JobField<Owner, T>& field) {
          const model::JobFieldInfo& info = field.info;
          Setter set = [&info](const Setting& setting, v1::JobRequest& job) {
            return SetValue(setting, info, job, static_cast<const T*>(nullptr));
          };
          keys.push_back({{info.name, info.option.value, info.option.help},
                          info.name == "gpus" ? SetGpus : set});
        });
    for (const FileKey& key : std::initializer_list<FileKey>{
             {{"iteration_time", "TIME",
               "from one iteration to the next (default: the longest stage)"},
              SetIterationTime},
             {{"env", "NAME=VALUE", "variable for the workers; may be repeated"}, SetEnvironment},
             {{"cwd", "FOLDER", "of the workers (default: the current one)"},
              FolderAt("launch.working_directory")},
             {{"workers", "KIND",
               "per-gpu, per-node, once (on the first node), or emulated (no process)"},
              SetWorkers},
             {{"tasks", "N", "workers in all, in place of --workers; --cpus 4/task is for each"},
              TaskCount(&v1::LaunchSpec::set_tasks, model::kMostGpus)},
             {{"tasks_per_node", "N", "workers on each node, in place of --workers"},
              TaskCount(&v1::LaunchSpec::set_workers_per_node, model::kMostTasksOnNode)},
             {{"launcher", "NAME", "what starts the workers: plain, torchrun or mpi"}, SetLauncher},
             {{"venv", "FOLDER", "Python virtual environment on each node"},
              FolderAt("launch.venv")},
             {{"container_image", "IMAGE", "run the command in a container of it, by podman"},
              TextAt("launch.container.image")},
             {{"container_mounts", "SOURCE:TARGET[:FLAG+FLAG],...", "folders of the node for it"},
              SetMounts},
             {{"container_workdir", "FOLDER", "in the container (default: --cwd)"},
              TextAt("launch.container.workdir")},
             {{"container_name", "NAME", "what its name begins with (default: trainyard)"},
              TextAt("launch.container.name")},
             {{"grace", "TIME", "from the notice to the kill (default: the cluster's)"}, SetGrace},
             {{"max_restarts", "N", "after failures of its own"}, SetMaxRestarts},
             {{"hold", "", "keep it from starting until it is released"}, SetHold},
             {{"notify", "EVENT,...",
               "tell of begin, end, fail and preempt, as the controller's operator has set up"},
              SetNotify},
             {{"command", "", ""}, ReadCommand},
         }) {
      keys.push_back(key);
    }
    return keys;
  }();
  return kKeys;
}

const FileKey* FindKey(std::string_view key) {
  const auto found = std::find_if(Keys().begin(), Keys().end(), [key](const FileKey& candidate) {
    return candidate.option.key == key;
  });
  return found == Keys().end() ? nullptr : &*found;
}

// Where a key of the file stands: "path:line: 'key'".
Status ApplyKey(const std::string& path, std::int64_t line, const std::string& key,
                nlohmann::json value, v1::JobRequest& job) {
  if (const FileKey* const known = FindKey(key)) {
    return known->set({.value = std::move(value),
                       .where = fmt::format("{}:{}: '{}'", path, line, key),
                       .error = ErrorCode::kBadInput},
                      job);
  }
  std::vector<std::string_view> names;
  for (const FileKey& known : Keys()) {
    names.push_back(known.option.key);
  }
  return BadInput(fmt::format("{}:{}: {}", path, line, base::UnknownName("key", key, names)));
}

// ------------------------------------------------------------------------------------------- files

nlohmann::json JsonOfToml(const io::TomlValue& value) {  // NOLINT(misc-no-recursion)
  return std::visit(
      []<typename Value>(const Value& inner) {
        nlohmann::json json;
        if constexpr (std::is_same_v<Value, io::TomlTable>) {
          json = nlohmann::json::object();
          for (const io::TomlEntry& entry : inner.entries) {
            json[entry.key] = JsonOfToml(entry.value);
          }
        } else if constexpr (std::is_same_v<Value, std::vector<io::TomlValue>>) {
          json = nlohmann::json::array();
          for (const io::TomlValue& item : inner) {
            json.push_back(JsonOfToml(item));
          }
        } else {
          json = inner;
        }
        return json;
      },
      value.value);
}

Status ReadToml(const std::string& path, std::string_view text, v1::JobRequest& job) {
  ASSIGN_OR_RETURN(io::TomlTable table, io::ParseToml(path, text));
  // By their letters "gpus" comes before min_gpus and max_gpus, which add to what it says.
  std::sort(table.entries.begin(), table.entries.end(),
            [](const io::TomlEntry& a, const io::TomlEntry& b) { return a.key < b.key; });
  std::vector<std::string_view> keys;
  std::transform(table.entries.begin(), table.entries.end(), std::back_inserter(keys),
                 [](const io::TomlEntry& entry) { return std::string_view(entry.key); });
  RETURN_IF_ERROR(CheckTaskKeys(keys, path));
  for (const io::TomlEntry& entry : table.entries) {
    RETURN_IF_ERROR(ApplyKey(path, entry.line, entry.key, JsonOfToml(entry.value), job));
  }
  return {};
}

std::int64_t LineAt(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, position);
  return 1 + std::count(before.begin(), before.end(), '\n');
}

// The parser does not tell where a key stands: the first time that it is written as one.
std::int64_t LineOfKey(std::string_view text, const std::string& key) {
  const std::string quoted = nlohmann::json(key).dump();
  for (std::size_t at = text.find(quoted); at != std::string_view::npos;
       at = text.find(quoted, at + 1)) {
    const std::size_t next = text.find_first_not_of(" \t\r\n", at + quoted.size());
    if (next != std::string_view::npos && text[next] == ':') {
      return LineAt(text, at);
    }
  }
  return 1;
}

Status ReadJson(const std::string& path, std::string_view text, v1::JobRequest& job) {
  nlohmann::json parsed;
  std::vector<std::string> keys;
  try {
    parsed = nlohmann::json::parse(
        text, [&keys](int depth, nlohmann::json::parse_event_t event, const nlohmann::json& value) {
          if (event == nlohmann::json::parse_event_t::key && depth == 1) {
            keys.push_back(value.get<std::string>());
          }
          return true;
        });
  } catch (const nlohmann::json::parse_error& error) {
    return BadInput(fmt::format("{}:{}: not JSON; expected one object", path,
                                LineAt(text, error.byte == 0 ? 0 : error.byte - 1)));
  } catch (const nlohmann::json::out_of_range&) {
    return BadInput(fmt::format("{}: a number that is too large; expected less than 1e308", path));
  }
  if (!parsed.is_object()) {
    return BadInput(fmt::format("{}:1: not an object; expected one with the job's keys", path));
  }
  RETURN_IF_ERROR(CheckTaskKeys({keys.begin(), keys.end()}, path));
  // First, as in TOML.
  std::stable_partition(keys.begin(), keys.end(),
                        [](const std::string& key) { return key == "gpus"; });
  for (auto key = keys.begin(); key != keys.end(); ++key) {
    const std::int64_t line = LineOfKey(text, *key);
    if (std::find(keys.begin(), key, *key) != key) {
      return BadInput(
          fmt::format("{}:{}: '{}' is there twice; expected it once", path, line, *key));
    }
    RETURN_IF_ERROR(ApplyKey(path, line, *key, parsed[*key], job));
  }
  return {};
}

}  // namespace

std::span<const JobOption> JobOptions() {
  static const std::vector<JobOption> kOptions = [] {
    std::vector<JobOption> all;
    for (const FileKey& key : Keys()) {
      if (key.option.key != "command") {
        all.push_back(key.option);
      }
    }
    return all;
  }();
  return kOptions;
}

std::string OptionName(std::string_view key) {
  std::string name = "--" + std::string(key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Status SetJobOption(std::string_view key, const std::string& text, v1::JobRequest& job) {
  const FileKey* const known = FindKey(key);
  CHECK(known != nullptr);
  if (!io::IsUtf8(text)) {
    return InvalidArgument(OptionName(key) + " is not UTF-8; expected UTF-8 text");
  }
  const bool flag = known->option.type.empty();
  return known->set({.value = flag ? nlohmann::json(text == "true") : nlohmann::json(text),
                     .where = OptionName(key)},
                    job);
}

Status ReadJobFile(const std::string& path, v1::JobRequest& job) {
  const bool json = path.ends_with(".json");
  if (!json && !path.ends_with(".toml")) {
    return InvalidArgument(fmt::format("--file is '{}'; expected a name in .toml or .json", path));
  }
  ASSIGN_OR_RETURN(const std::string text, io::ReadFile(path));
  RETURN_IF_ERROR(io::CheckText(path, text));
  return json ? ReadJson(path, text, job) : ReadToml(path, text, job);
}

}  // namespace trainyard::requests
