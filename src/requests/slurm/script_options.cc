// SPDX-License-Identifier: Apache-2.0
// What single options of sbatch say of a job.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/ranges.h>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "io/text_check.h"
#include "live/jobs/job_request.h"
#include "model/job_fields.h"
#include "model/request/node_request.h"
#include "requests/job_file.h"
#include "requests/slurm/output_name.h"
#include "requests/slurm/script_reader.h"
#include "service/signals.h"

namespace trainyard::requests {
namespace {

constexpr std::string_view kControllerVariable = "TRAINYARD_CONTROLLER";
constexpr std::string_view kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

Result<std::int64_t> CountOf(const Given& given, std::string_view text) {
  const std::optional<double> number = base::ToNumber(text);
  if (!number || *number < 1 || *number != std::floor(*number) ||
      *number > static_cast<double>(model::kMostGpus)) {
    return given.Bad("a number from 1 on");
  }
  return static_cast<std::int64_t>(*number);
}

// What the controller would say of this value, whatever the cluster and the rest of the job.
Status CheckAlone(std::string_view key, const std::string& text) {
  v1::JobRequest alone;
  RETURN_IF_ERROR(SetJobOption(key, text, alone));
  alone.set_gpus(alone.has_gpus() ? alone.gpus() : 1);
  alone.mutable_launch()->add_command("true");
  RETURN_IF_ERROR(live::DraftOf(alone, TimePoint{}, Cluster{}));
  return {};
}

}  // namespace

// ---------------------------------------------------------------------------------- single options

Status ScriptReader::SetKey(const Given& given, std::string_view key, const std::string& text) {
  if (const Status alone = CheckAlone(key, text); !alone.ok()) {
    const std::string& message = alone.error().message;
    const std::string own = fmt::format("--{} is ", given.name);
    return BadInput(given.where + (message.starts_with(own)
                                       ? message
                                       : fmt::format("by --{}, {}", given.name, message)));
  }
  script_.lines_[std::string(key)] = given.where;
  return SetJobOption(key, text, job_);
}

// "4", or "a100:4": the type is taken, too.
Status ScriptReader::TakeGpus(const Given& given, const Result<GpuList>& list, Count& count) {
  if (!list.ok()) {
    return given.Wrong(list.error().message);
  }
  for (const std::string& other : list.value().others) {
    ignored_.push_back(other + PlaceText(given.where));
  }
  count = {.number = list.value().count, .where = given.where};
  script_.lines_["gpus"] = given.where;
  const std::string& type = list.value().type;
  if (type.empty()) {
    return {};
  }
  if (job_.gpu_types_size() > 0 && job_.gpu_types(0) != type) {
    return given.Wrong(
        fmt::format("an option before it says type '{}'; expected one type", job_.gpu_types(0)));
  }
  return SetKey(given, "gpu_types", type);
}

Status ScriptReader::SetGres(const Given& given) {
  if (given.value == "none") {
    return {};
  }
  counts_.by_gres = true;
  return TakeGpus(given, ReadGres(given.value), counts_.gpus_per_node);
}

// "2", or "2-4": GPUs and tasks are those of the fewest.
Status ScriptReader::SetNodes(const Given& given) {
  ASSIGN_OR_RETURN(const std::int64_t least,
                   CountOf(given, std::string_view(given.value).substr(0, given.value.find('-'))));
  counts_.nodes = {.number = least, .where = given.where};
  return SetKey(given, "nodes", given.value);
}

// Of each node, GPU or CPU; a plain number is MB.
template <char kPer>
Status ScriptReader::SetMemory(const Given& given) {
  if (base::ToNumber(given.value) == 0) {
    return given.Bad("an amount such as 64G; all that a node has comes with --exclusive");
  }
  if (!model::ReadMib(given.value)) {
    return given.Bad("an amount such as 64G; units K, M, G and T");
  }
  if (kPer == 'c') {
    memory_per_cpu_ = given;
    return SetKey(given, "memory", given.value);
  }
  return SetKey(given, "memory", given.value + (kPer == 'g' ? "/gpu" : "/node"));
}

template <char kPer>
Status ScriptReader::SetCpus(const Given& given) {
  ASSIGN_OR_RETURN(const std::int64_t cpus, CountOf(given, given.value));
  return SetKey(given, "cpus", std::to_string(cpus) + (kPer == 'g' ? "/gpu" : "/node"));
}

// Without a number 100, as there; higher is later there, and sooner here.
Status ScriptReader::SetNice(const Given& given) {
  constexpr double kUnstated = 100;
  constexpr double kMost = 2'147'483'645;
  const std::optional<double> number =
      given.value.empty() ? kUnstated : base::ToNumber(given.value);
  if (!number || *number != std::floor(*number) || std::abs(*number) > kMost) {
    return given.Bad("a whole number");
  }
  return SetKey(given, "priority", fmt::format("{:.0f}", -*number));
}

Status ScriptReader::SetOpenMode(const Given& given) {
  if (given.value != "append" && given.value != "truncate") {
    return given.Bad("append or truncate");
  }
  script_.open_mode_ =
      given.value == "append" ? BatchScript::OpenMode::kAppend : BatchScript::OpenMode::kTruncate;
  return {};
}

// "[{R|B}:]SIGNAL[@SECONDS]": the notice that the job gets, and its grace (60 s as there).
Status ScriptReader::SetSignal(const Given& given) {
  constexpr std::string_view kExpected = "[B:]SIGNAL[@SECONDS], such as B:USR1@120";
  constexpr std::int64_t kUnstated = 60;
  std::string_view text = given.value;
  const bool to_script = text.starts_with("B:");
  text.remove_prefix(to_script || text.starts_with("R:") ? 2 : 0);
  const std::size_t at = text.find('@');
  const int signal = service::SignalNamed(text.substr(0, at));
  const auto seconds = at == std::string_view::npos
                           ? std::optional(kUnstated)
                           : base::ToInteger<std::int64_t>(text.substr(at + 1));
  if (signal == 0 || !seconds || *seconds < 0 || *seconds > 65535) {
    return given.Bad(std::string(kExpected));
  }
  v1::LaunchSpec::Batch& batch = *job_.mutable_launch()->mutable_batch();
  batch.set_notice(signal);
  batch.set_notice_to_script(to_script);
  return SetKey(given, "grace", fmt::format("{}s", *seconds));
}

Status ScriptReader::SetExclusive(const Given& given) {
  return given.value.empty() ? SetKey(given, "exclusive", "true")
                             : given.Bad("no value: nobody else is on its nodes then");
}

// A plain number is minutes here.
Status ScriptReader::SetTimeLimit(const Given& given) {
  const bool plain =
      !given.value.empty() && std::all_of(given.value.begin(), given.value.end(),
                                          [](unsigned char c) { return std::isdigit(c) != 0; });
  return SetKey(given, "time", plain ? given.value + "m" : given.value);
}

Status ScriptReader::SetExport(const Given& given) {
  export_ = given;
  return {};
}

// The environment of the submission, less what says where that itself runs.
void ScriptReader::ExportAll() {
  constexpr std::array<std::string_view, 7> kNot{
      "SLURM_", "SBATCH_", "TRAINYARD_", "_=", "PWD=", "OLDPWD=", "SHLVL="};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool is_plain =
        !name.empty() && name.find_first_not_of(kNameLetters) == std::string::npos;
    const bool is_of_submission =
        name != kControllerVariable &&  // its script may submit others
        std::any_of(kNot.begin(), kNot.end(),
                    [text](std::string_view begin) { return text.starts_with(begin); });
    if (is_plain && !is_of_submission) {
      if (CheckAlone("env", std::string(text)).ok()) {  // but what every job has of its own
        static_cast<void>(SetJobOption("env", std::string(text), job_).ok());
      }
    }
  }
}

// ALL, NONE, or names, of which those without a value have that of the submission.
Status ScriptReader::SettleExport() {
  const std::string value = export_ ? export_->value : "ALL";
  const std::vector<std::string_view> items = base::Split(value, ",");
  if (std::find(items.begin(), items.end(), "ALL") != items.end()) {
    ExportAll();
  }
  for (const std::string_view item : items) {
    if (item == "ALL" || item == "NONE" || item == "NIL" || item.empty()) {
      continue;
    }
    const std::string name(item.substr(0, item.find('=')));
    const char* const of_submission = std::getenv(name.c_str());
    if (item.size() > name.size()) {
      RETURN_IF_ERROR(SetKey(*export_, "env", std::string(item)));
    } else if (of_submission != nullptr) {
      RETURN_IF_ERROR(SetKey(*export_, "env", name + "=" + of_submission));
    }
  }
  return {};
}

Status ScriptReader::SetKillOnInvalidDep(const Given& given) {
  const std::string lower = live::LowerCase(given.value);
  if (lower != "yes" && lower != "no") {
    return given.Bad("yes or no");
  }
  return SetKey(given, "keep_on_invalid_dep", lower == "no" ? "true" : "false");
}

Status ScriptReader::SetMail(const Given& given) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kTypes{
      {{"BEGIN", "begin"},
       {"END", "end"},
       {"FAIL", "fail"},
       {"REQUEUE", "preempt"},
       {"ALL", "begin,end,fail,preempt"},
       {"NONE", ""},
       {"TIME_LIMIT", ""},  // of these nobody is told
       {"TIME_LIMIT_90", ""},
       {"TIME_LIMIT_80", ""},
       {"TIME_LIMIT_50", ""},
       {"ARRAY_TASKS", ""},
       {"INVALID_DEPEND", ""},
       {"STAGE_OUT", ""}}};
  std::vector<std::string_view> events;
  std::string upper = given.value;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const std::string_view item : base::Split(upper, ",")) {
    const auto* const found = std::find_if(kTypes.begin(), kTypes.end(),
                                           [item](const auto& type) { return type.first == item; });
    if (found == kTypes.end()) {
      return given.Bad("BEGIN, END, FAIL, REQUEUE, ALL or NONE");
    }
    if (!found->second.empty()) {
      events.push_back(found->second);
    }
  }
  return events.empty() ? Status()
                        : SetKey(given, "notify", fmt::format("{}", fmt::join(events, ",")));
}

Status ScriptReader::SetFile(const Given& given, BatchScript::Output& file) {
  if (given.value.empty()) {
    return given.Bad("the name of a file");
  }
  const Result<std::string> word = OutputWord(given.value);
  if (!word.ok()) {
    return given.Wrong(word.error().message);
  }
  file = {.pattern = given.value,
          .word = word.value(),
          .where = fmt::format("{}--{}", given.where, given.name)};
  return {};
}

template <Count Counts::*kCount>
Status ScriptReader::SetCount(const Given& given) {
  ASSIGN_OR_RETURN(const std::int64_t number, CountOf(given, given.value));
  counts_.*kCount = {.number = number, .where = given.where};
  return {};
}

template <Count Counts::*kCount>
Status ScriptReader::SetGpuCount(const Given& given) {
  return TakeGpus(given, ReadGpus(given.value), counts_.*kCount);
}

namespace {

// What an option that is done sets.
struct LineOption {
  std::string_view name;
  std::string_view key;  // of a job, which takes the value as it is; empty: `set` does more
  Status (ScriptReader::*set)(const Given& given) = nullptr;
};

constexpr std::array kLineOptions{
    LineOption{"job-name", "name"},
    LineOption{"partition", "queue"},
    LineOption{"account", "account"},
    LineOption{"time", "", &ScriptReader::SetTimeLimit},
    LineOption{"begin", "begin"},
    LineOption{"array", "array"},
    LineOption{"dependency", "dependency"},
    LineOption{"kill-on-invalid-dep", "", &ScriptReader::SetKillOnInvalidDep},
    LineOption{"chdir", "cwd"},
    LineOption{"priority", "priority"},
    LineOption{"nice", "", &ScriptReader::SetNice},
    LineOption{"gpus", "", &ScriptReader::SetGpuCount<&Counts::gpus>},
    LineOption{"gpus-per-node", "", &ScriptReader::SetGpuCount<&Counts::gpus_per_node>},
    LineOption{"gpus-per-task", "", &ScriptReader::SetGpuCount<&Counts::gpus_per_task>},
    LineOption{"gres", "", &ScriptReader::SetGres},
    LineOption{"nodes", "", &ScriptReader::SetNodes},
    LineOption{"cpus-per-task", "", &ScriptReader::SetCount<&Counts::cpus_per_task>},
    LineOption{"cpus-per-gpu", "", &ScriptReader::SetCpus<'g'>},
    LineOption{"mincpus", "", &ScriptReader::SetCpus<'n'>},
    LineOption{"mem", "", &ScriptReader::SetMemory<'n'>},
    LineOption{"mem-per-cpu", "", &ScriptReader::SetMemory<'c'>},
    LineOption{"mem-per-gpu", "", &ScriptReader::SetMemory<'g'>},
    LineOption{"tmp", "tmp"},
    LineOption{"nodelist", "node_list"},
    LineOption{"exclude", "exclude"},
    LineOption{"constraint", "constraint"},
    LineOption{"licenses", "licenses"},
    LineOption{"exclusive", "", &ScriptReader::SetExclusive},
    LineOption{"ntasks", "", &ScriptReader::SetCount<&Counts::tasks>},
    LineOption{"ntasks-per-node", "", &ScriptReader::SetCount<&Counts::tasks_per_node>},
    LineOption{"ntasks-per-gpu", "", &ScriptReader::SetCount<&Counts::tasks_per_gpu>},
    LineOption{"export", "", &ScriptReader::SetExport},
    LineOption{"mail-type", "", &ScriptReader::SetMail},
    LineOption{"output", "", &ScriptReader::SetOutput},
    LineOption{"error", "", &ScriptReader::SetErrors},
    LineOption{"input", "", &ScriptReader::SetInput},
    LineOption{"open-mode", "", &ScriptReader::SetOpenMode},
    LineOption{"signal", "", &ScriptReader::SetSignal},
    LineOption{"hold", "", &ScriptReader::SetHold},
    LineOption{"requeue", "", &ScriptReader::SetNoRequeue<false>},
    LineOption{"no-requeue", "", &ScriptReader::SetNoRequeue<true>},
};

}  // namespace

Status ScriptReader::TakeOption(const SbatchOption& option, const Given& given) {
  switch (option.use) {
    case SbatchOption::Use::kRefused:
      return BadInput(
          fmt::format("{}'--{}' is refused: {}", given.where, option.name, option.here));
    case SbatchOption::Use::kNoEffect:
      script_.without_effect_.push_back(
          {.option = &option, .where = std::string(base::Trim(given.where))});
      return {};
    case SbatchOption::Use::kKept:
      if (!io::IsUtf8(given.value)) {
        return given.Bad("UTF-8 text");
      }
      Keep(option.name, given.value);
      return {};
    case SbatchOption::Use::kDone:
      break;
  }
  const auto* const line =
      std::find_if(kLineOptions.begin(), kLineOptions.end(),
                   [&option](const LineOption& one) { return one.name == option.name; });
  CHECK(line != kLineOptions.end());
  return line->set != nullptr ? (this->*line->set)(given) : SetKey(given, line->key, given.value);
}

}  // namespace trainyard::requests
