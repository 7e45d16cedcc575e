// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/batch_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "io/file.h"
#include "io/text_check.h"
#include "live/jobs/job_request.h"
#include "model/job_fields.h"
#include "model/request/node_request.h"
#include "requests/job_file.h"
#include "requests/slurm/gpu_list.h"
#include "requests/slurm/output_name.h"
#include "requests/slurm/sbatch_line.h"
#include "requests/slurm/script_file.h"
#include "requests/slurm/slurm_time.h"
#include "requests/slurm/slurm_words.h"
#include "service/signals.h"

namespace trainyard::requests {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

// One option of a line, as it is written and as sbatch calls it in full.
struct Given {
  std::string name;   // "job-name"
  std::string value;  // empty: none
  std::string where;  // "train.sh:3: "

  [[nodiscard]] Error Bad(const std::string& expected) const {
    return BadInput(fmt::format("{}--{} is '{}'; expected {}", where, name, value, expected));
  }
  [[nodiscard]] Error Wrong(const std::string& what) const {
    return BadInput(fmt::format("{}--{} is '{}': {}", where, name, value, what));
  }
};

// A number of the lines, and where it stands.
struct Count {
  std::optional<std::int64_t> number;
  std::string where;  // "train.sh:3: "

  explicit operator bool() const { return number.has_value(); }
  std::int64_t operator*() const { return *number; }
};

// What the lines say of GPUs and tasks, which belong together.
struct Counts {
  Count gpus;
  Count gpus_per_node;
  Count gpus_per_task;
  Count nodes;
  Count tasks;
  Count tasks_per_node;
  Count tasks_per_gpu;
  Count cpus_per_task;
};

}  // namespace

// Takes the lines of one script.
class ScriptReader {
 public:
  ScriptReader(const std::string& path, v1::JobRequest& job) : job_(job) { script_.path_ = path; }

  [[nodiscard]] Result<BatchScript> Read(std::string_view text);

  // One option each.
  Status SetKey(const Given& given, std::string_view key, const std::string& text);
  Status SetTimeLimit(const Given& given);
  Status SetExport(const Given& given);
  Status SetMail(const Given& given);
  Status SetGres(const Given& given);
  Status SetNodes(const Given& given);
  template <char kPer>
  Status SetCpus(const Given& given);
  Status SetNice(const Given& given);
  Status SetOpenMode(const Given& given);
  Status SetSignal(const Given& given);
  template <char kPer>
  Status SetMemory(const Given& given);
  Status SetExclusive(const Given& given);
  Status SetOutput(const Given& given) { return SetFile(given, script_.output_); }
  Status SetErrors(const Given& given) { return SetFile(given, script_.errors_); }
  Status SetInput(const Given& given) { return SetFile(given, script_.input_); }
  template <Count Counts::*kCount>
  Status SetCount(const Given& given);
  template <Count Counts::*kCount>
  Status SetGpuCount(const Given& given);
  Status SetHold(const Given& given) { return SetKey(given, "hold", "true"); }
  Status SetNothing(const Given& /*given*/) { return {}; }

 private:
  Status TakeGpus(const Given& given, const Result<GpuList>& list, Count& count);
  static Status SetFile(const Given& given, BatchScript::Output& file);
  Status TakeOption(const SbatchOption& option, const Given& given);
  [[nodiscard]] bool TakeHead(const std::string& line, int number);
  [[nodiscard]] Result<BatchScript> Finish(std::string_view text);
  void TakeLine(std::string_view line, const std::string& where);
  void Keep(std::string_view name, const std::string& value);
  void TakeEnvironment();
  void ExportAll();
  Status SettleExport();
  Status SettleCounts();
  Status SettleTasks(std::int64_t nodes, std::optional<std::int64_t> gpus);
  Status SettleCpus(std::int64_t nodes, std::int64_t tasks, bool on_cpus);
  void AddVariables();
  void Warn(std::string_view text);
  void Note(const Status& status) {
    if (!status.ok()) {
      faults_.push_back(status.error().message);
    }
  }
  void SetVariable(const std::string& name, const std::string& value) {
    static_cast<void>(SetJobOption("env", name + "=" + value, job_).ok());
  }

  BatchScript script_;
  v1::JobRequest& job_;
  Counts counts_;
  std::optional<Given> memory_per_cpu_;
  std::optional<Given> export_;
  std::vector<std::string> ignored_;  // "lscratch:3 (train.sh:2)"
  std::vector<std::string> faults_;
  bool has_lines_ = false;
  int first_command_ = 0;  // its line; 0: none yet
};

namespace {

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
    ignored_.push_back(fmt::format(
        "{} ({})", other, base::Trim(given.where).substr(0, base::Trim(given.where).size() - 1)));
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
  script_.appends_ = given.value == "append";
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
    if (is_plain && std::none_of(kNot.begin(), kNot.end(), [text](std::string_view begin) {
          return text.starts_with(begin);
        })) {
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
    LineOption{"requeue", "", &ScriptReader::SetNothing},  // as all jobs are
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

// What is stated last counts.
void ScriptReader::Keep(std::string_view name, const std::string& value) {
  auto& kept = *job_.mutable_launch()->mutable_batch()->mutable_kept();
  const auto same = [name](const v1::EnvironmentVariable& one) { return one.name() == name; };
  const auto known = std::find_if(kept.begin(), kept.end(), same);
  v1::EnvironmentVariable& variable = known != kept.end() ? *known : *kept.Add();
  variable.set_name(std::string(name));
  variable.set_value(value);
}

void ScriptReader::TakeLine(std::string_view line, const std::string& where) {
  const std::vector<std::string> words = WordsOf(line);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const BegunOption begun = BeginOf(words[i]);
    if (begun.option == nullptr) {
      Note(BadInput(where + UnknownSbatchOption(words[i].substr(0, words[i].find('=')))));
      // What follows is its value.
      const bool has_value = words[i].find('=') == std::string::npos && i + 1 < words.size() &&
                             !words[i + 1].starts_with('-');
      i += has_value ? 1 : 0;
      continue;
    }
    Given given{.name = std::string(begun.option->name), .value = "", .where = where};
    if (begun.value) {
      given.value = *begun.value;
    } else if (begun.option->value == SbatchOption::Value::kNeeded) {
      if (++i == words.size()) {
        return Note(BadInput(fmt::format("{}--{} has no value; expected one", where, given.name)));
      }
      given.value = words[i];
    }
    Note(TakeOption(*begun.option, given));
  }
}

// Between the script and the options of the command.
void ScriptReader::TakeEnvironment() {
  // Those that are not called as their options.
  constexpr std::array<std::pair<std::string_view, const char*>, 3> kNames{
      {{"time", "SBATCH_TIMELIMIT"},
       {"array", "SBATCH_ARRAY_INX"},
       {"mem", "SBATCH_MEM_PER_NODE"}}};
  for (const SbatchOption& option : SbatchOptions()) {
    const auto* const named =
        std::find_if(kNames.begin(), kNames.end(),
                     [&option](const auto& one) { return one.first == option.name; });
    std::string name = "SBATCH_" + std::string(option.name);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
      return c == '-' ? '_' : static_cast<char>(std::toupper(c));
    });
    name = named != kNames.end() ? named->second : name;
    const char* const value = std::getenv(name.c_str());
    if (value != nullptr && option.use != SbatchOption::Use::kRefused) {
      Note(TakeOption(option,
                      {.name = std::string(option.name), .value = value, .where = name + ": "}));
    }
  }
}

// ---------------------------------------------------------------------------------------- together

// Workers and GPUs of all that the lines say.
Status ScriptReader::SettleCounts() {
  const std::int64_t nodes = counts_.nodes.number.value_or(1);
  const std::int64_t tasks =
      counts_.tasks.number.value_or(nodes * counts_.tasks_per_node.number.value_or(1));
  std::optional<std::int64_t> gpus = counts_.gpus.number;
  if (counts_.gpus_per_node) {
    gpus = nodes * *counts_.gpus_per_node;
    if (!counts_.nodes && *gpus > 0) {  // one node, unless more are asked for
      RETURN_IF_ERROR(SetJobOption("nodes", "1", job_));
      script_.lines_["nodes"] = counts_.gpus_per_node.where;
    }
  } else if (counts_.gpus_per_task) {
    gpus = tasks * *counts_.gpus_per_task;
  } else if (!gpus && counts_.tasks_per_gpu && counts_.tasks) {
    gpus = (tasks + *counts_.tasks_per_gpu - 1) / *counts_.tasks_per_gpu;
    script_.lines_["gpus"] = counts_.tasks_per_gpu.where;
  } else if (!gpus && has_lines_) {
    gpus = 0;  // it runs on CPUs alone
  }
  if (gpus) {
    if (const Status status = SetJobOption("gpus", std::to_string(*gpus), job_); !status.ok()) {
      return BadInput(script_.lines_["gpus"] + status.error().message);
    }
  }
  return SettleTasks(nodes, gpus);
}

Status ScriptReader::SettleTasks(std::int64_t nodes, std::optional<std::int64_t> gpus) {
  const std::int64_t tasks =
      counts_.tasks_per_gpu && !counts_.tasks
          ? gpus.value_or(0) * *counts_.tasks_per_gpu
          : counts_.tasks.number.value_or(nodes * counts_.tasks_per_node.number.value_or(1));
  const bool has_tasks = counts_.tasks || counts_.tasks_per_node || counts_.tasks_per_gpu;
  job_.mutable_launch()->set_workers(v1::LaunchSpec::ONCE);
  v1::LaunchSpec::Batch& batch = *job_.mutable_launch()->mutable_batch();
  batch.set_states_tasks(has_tasks);
  batch.set_tasks(has_tasks ? static_cast<std::int32_t>(tasks) : 0);
  batch.set_tasks_per_node(static_cast<std::int32_t>(counts_.tasks_per_node.number.value_or(0)));
  return SettleCpus(nodes, tasks, gpus == 0);
}

// A task has one CPU unless the lines say more. Tasks are as evenly on the nodes as can be.
Status ScriptReader::SettleCpus(std::int64_t nodes, std::int64_t tasks, bool on_cpus) {
  const std::int64_t each = counts_.cpus_per_task.number.value_or(1);
  const bool is_even = counts_.nodes && tasks % nodes == 0;
  const std::int64_t together = (is_even ? tasks / nodes : tasks) * each;
  const std::string per = is_even ? "/node" : "";
  if (counts_.cpus_per_task) {
    script_.lines_["cpus"] = counts_.cpus_per_task.where;
    RETURN_IF_ERROR(SetJobOption("cpus", std::to_string(together) + per, job_));
  } else if (on_cpus && tasks > nodes && job_.cpus().empty()) {
    RETURN_IF_ERROR(SetJobOption("cpus", std::to_string(together) + per, job_));
  }
  if (!memory_per_cpu_) {
    return {};
  }
  if (counts_.cpus_per_task.number == std::nullopt && !job_.cpus().empty()) {
    return memory_per_cpu_->Bad("--mem-per-gpu beside --cpus-per-gpu");
  }
  const std::optional<std::int64_t> mib = model::ReadMib(memory_per_cpu_->value);
  return SetJobOption("memory", std::to_string(mib.value_or(0) * together) + "M" + per, job_);
}

// Variables of Slurm of which the controller knows nothing.
void ScriptReader::AddVariables() {
  std::error_code error;
  SetVariable("SLURM_SUBMIT_DIR", fs::current_path(error).string());
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) {
    SetVariable("SLURM_SUBMIT_HOST", host.data());
  }
  const auto state = [this](const char* name, const Count& count) {
    if (count) {
      SetVariable(name, (job_.gpu_types_size() > 0 &&
                                 std::string_view(name).find("GPUS") != std::string_view::npos
                             ? job_.gpu_types(0) + ":"
                             : std::string()) +
                            std::to_string(*count));
    }
  };
  SetVariable("ENVIRONMENT", "BATCH");
  const auto amount = [this](const char* name, const std::string& text) {
    if (text.ends_with("/gpu")) {
      const std::string number = text.substr(0, text.find('/'));
      SetVariable(name, name == std::string_view("SLURM_MEM_PER_GPU")
                            ? std::to_string(model::ReadMib(number).value_or(0))
                            : number);
    }
  };
  amount("SLURM_CPUS_PER_GPU", job_.cpus());
  amount("SLURM_MEM_PER_GPU", job_.memory());
  if (memory_per_cpu_) {
    SetVariable("SLURM_MEM_PER_CPU",
                std::to_string(model::ReadMib(memory_per_cpu_->value).value_or(0)));
  }
  if (!job_.account().empty()) {
    SetVariable("SLURM_JOB_ACCOUNT", job_.account());
  }
  for (const v1::EnvironmentVariable& kept : job_.launch().batch().kept()) {
    if (kept.name() == "qos") {
      SetVariable("SLURM_JOB_QOS", kept.value());
    }
  }
  state("SLURM_NTASKS_PER_NODE", counts_.tasks_per_node);
  state("SLURM_CPUS_PER_TASK", counts_.cpus_per_task);
  state("SLURM_GPUS", counts_.gpus);
  state("SLURM_GPUS_PER_NODE", counts_.gpus_per_node);
  state("SLURM_GPUS_PER_TASK", counts_.gpus_per_task);
}

void ScriptReader::Warn(std::string_view text) {
  if (!script_.without_effect_.empty()) {
    std::string options;
    for (const BatchScript::WithoutEffect& one : script_.without_effect_) {
      options += fmt::format("{}--{} ({})", options.empty() ? "" : ", ", one.option->name,
                             one.where.substr(0, one.where.size() - 1));
    }
    script_.warnings_.push_back(
        fmt::format("without effect here: {} ({}; --strict refuses them)", options, kSlurmPage));
  }
  if (!ignored_.empty()) {
    script_.warnings_.push_back(fmt::format("ignored, as no such resource is given out here: {}",
                                            fmt::join(ignored_, ", ")));
  }
  std::string calls;
  const bool several = counts_.nodes && *counts_.nodes > 1;
  for (const SlurmCall& call : SlurmCallsIn(text)) {
    if (call.command == "srun" && several) {
      script_.warnings_.push_back(fmt::format(
          "{}:{}: srun starts tasks on the first node alone yet; with 'submit --workers per-node' "
          "the script runs on each node, and its command is called without srun ({}, Scripts that "
          "call srun)",
          script_.path_, call.line, kSlurmPage));
    }
    if (call.command == "srun" || call.command == "scontrol") {
      continue;  // they are there
    }
    calls += fmt::format("{}{} ({}:{})", calls.empty() ? "" : ", ", call.command, script_.path_,
                         call.line);
  }
  if (!calls.empty()) {
    script_.warnings_.push_back(fmt::format(
        "the script calls {}: this command of Slurm's does not know the job ({} has what is typed "
        "in its place)",
        calls, kSlurmPage));
  }
  const std::string& output = script_.output_.pattern;
  if (!job_.array().empty() && !output.empty() && !DiffersByTask(output)) {
    script_.warnings_.push_back(fmt::format(
        "{} is '{}', so that all tasks of the array write to one file; %a is their index",
        script_.output_.where, output));
  }
}

Result<BatchScript> ScriptReader::Read(std::string_view text) {
  const std::string& path = script_.path_;
  const std::size_t last = text.size() - (text.ends_with('\r') ? 1 : 0);
  if (const std::size_t dos = std::min(text.find("\r\n"), last); dos < text.size()) {
    return BadInput(fmt::format(
        "{0}:{1}: the line ends as on DOS (CR LF), and the CR would become a part of its last "
        "word; expected LF alone: 'dos2unix {0}', or sed -i 's/\\r$//' {0}",
        path, 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(dos), '\n')));
  }
  RETURN_IF_ERROR(io::CheckText(path, text));
  std::istringstream lines{std::string(text)};
  std::string line;
  std::getline(lines, line);
  script_.interpreter_ = WordsOf(std::string_view(line).substr(2));
  if (script_.interpreter_.empty()) {
    Note(BadInput(path + ":1: '#!' names no interpreter; expected one: #!/bin/bash"));
  }
  for (int number = 2; std::getline(lines, line) && TakeHead(line, number); ++number) {
  }
  return Finish(text);
}

// False: nothing behind it counts.
bool ScriptReader::TakeHead(const std::string& line, int number) {
  constexpr std::string_view kMark = "#SBATCH";
  const std::string_view behind =
      std::string_view(line).substr(std::min(kMark.size(), line.size()));
  if (line.starts_with(kMark) && (behind.empty() || behind.find_first_of(" \t") == 0)) {
    if (first_command_ > 0) {
      script_.warnings_.push_back(fmt::format(
          "{}:{}: #SBATCH lines behind the script's first command, here in line {}, are not read "
          "(nor are they by sbatch)",
          script_.path_, number, first_command_));
      return false;
    }
    has_lines_ = true;
    TakeLine(behind, fmt::format("{}:{}: ", script_.path_, number));
  } else if (const std::string_view text = base::Trim(line);
             first_command_ == 0 && !text.empty() && !text.starts_with('#')) {
    first_command_ = number;
  }
  return true;
}

// Once all lines have been read.
Result<BatchScript> ScriptReader::Finish(std::string_view text) {
  if (has_lines_) {
    TakeEnvironment();
    Note(SettleExport());
  }
  Note(SettleCounts());
  if (!faults_.empty()) {
    return BadInput(fmt::format("{}", fmt::join(faults_, "\n")));
  }
  if (job_.name().empty()) {
    job_.set_name(fs::path(script_.path_).filename().string());
  }
  if (has_lines_) {
    AddVariables();
    Warn(text);
    job_.mutable_launch()->mutable_batch()->set_script(std::string(text));
    if (script_.output_.word.empty()) {
      const char* const name = job_.array().empty() ? "slurm-%j.out" : "slurm-%A_%a.out";
      script_.output_ = {.pattern = name, .word = OutputWord(name).value(), .where = ""};
    }
  } else {
    job_.mutable_launch()->clear_batch();
    job_.mutable_launch()->set_workers(v1::LaunchSpec::PER_NODE);
  }
  return std::move(script_);
}

Result<BatchScript> BatchScript::Read(const std::string& path, v1::JobRequest& job) {
  const std::string real = RealPath(path);
  ASSIGN_OR_RETURN(const std::string text, ScriptText(real));
  return ScriptReader(real, job).Read(text);
}

}  // namespace trainyard::requests
