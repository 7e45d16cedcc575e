// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/batch_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

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
#include "requests/slurm/slurm_time.h"
#include "requests/slurm/slurm_words.h"

namespace trainyard::requests {
namespace {

namespace fs = std::filesystem;

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
  Status SetCpusPerGpu(const Given& given);
  template <char kPer>
  Status SetMemory(const Given& given);
  Status SetExclusive(const Given& given);
  Status SetOutput(const Given& given) { return SetFile(given, script_.output_); }
  Status SetErrors(const Given& given) { return SetFile(given, script_.errors_); }
  template <Count Counts::*kCount>
  Status SetCount(const Given& given);
  template <Count Counts::*kCount>
  Status SetGpuCount(const Given& given);
  Status SetHold(const Given& given) { return SetKey(given, "hold", "true"); }
  Status SetNothing(const Given& /*given*/) { return {}; }

 private:
  Status TakeGpus(const Given& given, const Result<GpuList>& list, Count& count);
  static Status SetFile(const Given& given, BatchScript::Output& file);
  void TakeLine(std::string_view line, const std::string& where);
  Status SettleCounts();
  Status SettleTasks(std::int64_t nodes, std::optional<std::int64_t> gpus);
  Status SettleCpus(std::int64_t nodes, std::int64_t tasks);
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
  std::vector<std::string> ignored_;  // "lscratch:3 (train.sh:2)"
  std::vector<std::string> faults_;
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

Status ScriptReader::SetCpusPerGpu(const Given& given) {
  ASSIGN_OR_RETURN(const std::int64_t cpus, CountOf(given, given.value));
  return SetKey(given, "cpus", std::to_string(cpus) + "/gpu");
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
  for (const std::string_view item : base::Split(given.value, ",")) {
    if (item != "NONE" && item.find('=') == std::string_view::npos) {
      return given.Bad("NONE or NAME=VALUE,..., as a job gets no environment but its own");
    }
    if (item != "NONE") {
      RETURN_IF_ERROR(SetKey(given, "env", std::string(item)));
    }
  }
  return {};
}

Status ScriptReader::SetMail(const Given& given) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTypes{
      {{"BEGIN", "begin"},
       {"END", "end"},
       {"FAIL", "fail"},
       {"REQUEUE", "preempt"},
       {"ALL", "begin,end,fail,preempt"},
       {"NONE", ""}}};
  std::vector<std::string_view> events;
  for (const std::string_view item : base::Split(given.value, ",")) {
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

struct LineOption {
  std::string_view name;
  char letter = 0;
  std::string_view key;  // of a job, which takes the value as it is; empty: `set` does more
  Status (ScriptReader::*set)(const Given& given) = nullptr;
  bool flag = false;
};

constexpr std::array kLineOptions{
    LineOption{"job-name", 'J', "name"},
    LineOption{"partition", 'p', "queue"},
    LineOption{"account", 'A', "account"},
    LineOption{"time", 't', "", &ScriptReader::SetTimeLimit},
    LineOption{"begin", 'b', "begin"},
    LineOption{"array", 'a', "array"},
    LineOption{"dependency", 'd', "dependency"},
    LineOption{"chdir", 'D', "cwd"},
    LineOption{"priority", 0, "priority"},
    LineOption{"gpus", 'G', "", &ScriptReader::SetGpuCount<&Counts::gpus>},
    LineOption{"gpus-per-node", 0, "", &ScriptReader::SetGpuCount<&Counts::gpus_per_node>},
    LineOption{"gpus-per-task", 0, "", &ScriptReader::SetGpuCount<&Counts::gpus_per_task>},
    LineOption{"gres", 0, "", &ScriptReader::SetGres},
    LineOption{"nodes", 'N', "", &ScriptReader::SetNodes},
    LineOption{"cpus-per-task", 'c', "", &ScriptReader::SetCount<&Counts::cpus_per_task>},
    LineOption{"cpus-per-gpu", 0, "", &ScriptReader::SetCpusPerGpu},
    LineOption{"mem", 0, "", &ScriptReader::SetMemory<'n'>},
    LineOption{"mem-per-cpu", 0, "", &ScriptReader::SetMemory<'c'>},
    LineOption{"mem-per-gpu", 0, "", &ScriptReader::SetMemory<'g'>},
    LineOption{"tmp", 0, "tmp"},
    LineOption{"nodelist", 'w', "node_list"},
    LineOption{"exclude", 'x', "exclude"},
    LineOption{"constraint", 'C', "constraint"},
    LineOption{"licenses", 'L', "licenses"},
    LineOption{"exclusive", 0, "", &ScriptReader::SetExclusive, true},
    LineOption{"ntasks", 'n', "", &ScriptReader::SetCount<&Counts::tasks>},
    LineOption{"ntasks-per-node", 0, "", &ScriptReader::SetCount<&Counts::tasks_per_node>},
    LineOption{"export", 0, "", &ScriptReader::SetExport},
    LineOption{"mail-type", 0, "", &ScriptReader::SetMail},
    LineOption{"output", 'o', "", &ScriptReader::SetOutput},
    LineOption{"error", 'e', "", &ScriptReader::SetErrors},
    LineOption{"hold", 'H', "", &ScriptReader::SetHold, true},
    LineOption{"requeue", 0, "", &ScriptReader::SetNothing, true},  // as all jobs are
};

// What users of Slurm have in their scripts and what is to be done about it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kAdvice{
    {{"qos",
      "no such line: there is no quality of service; --priority and the policy say who is "
      "first"},
     {"mail-user", "no such line: the controller's operator says where notices go"},
     {"wait", "no such line, and 'trainyard wait JOB' after the submission"}}};

// ------------------------------------------------------------------------------------------- lines

// Words of a line; quotes keep blanks together, and '#' begins a remark.
std::vector<std::string> WordsOf(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool any = false;
  char quote = 0;
  for (const char c : line) {
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (quote == 0 && c == '#' && !any) {
      break;
    }
    if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote != 0 ? '\0' : c;
      any = true;
    } else if (quote == 0 && blank) {
      if (any) {
        words.push_back(std::exchange(word, {}));
      }
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) {
    words.push_back(word);
  }
  return words;
}

Status NotHere(const std::string& where, const std::string& word) {
  std::vector<std::string_view> names;
  names.reserve(kLineOptions.size());
  for (const LineOption& option : kLineOptions) {
    names.push_back(option.name);
  }
  const std::string_view bare =
      std::string_view(word).substr(std::min(word.find_first_not_of('-'), word.size()));
  for (const auto& [name, advice] : kAdvice) {
    if (bare == name) {
      return BadInput(fmt::format("{}'{}' has no meaning here; expected {}", where, word, advice));
    }
  }
  return BadInput(fmt::format("{}'{}' is not supported; expected one of --{}", where, word,
                              fmt::join(names, ", --")));
}

// The option that a word begins, and what of its value stands in the word.
struct Begun {
  const LineOption* option = nullptr;
  std::optional<std::string> value;
};

Begun BeginOf(const std::string& word) {
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    const std::string_view name = std::string_view(word).substr(2, equals - 2);
    const auto* const found =
        std::find_if(kLineOptions.begin(), kLineOptions.end(),
                     [name](const LineOption& one) { return one.name == name; });
    return {found == kLineOptions.end() ? nullptr : found,
            equals == std::string::npos ? std::nullopt : std::optional(word.substr(equals + 1))};
  }
  if (word.size() < 2 || word.front() != '-') {
    return {};
  }
  const auto* const found =
      std::find_if(kLineOptions.begin(), kLineOptions.end(),
                   [&word](const LineOption& one) { return one.letter == word[1]; });
  const std::size_t value = word.size() > 2 && word[2] == '=' ? 3 : 2;
  return {found == kLineOptions.end() ? nullptr : found,
          word.size() > 2 ? std::optional(word.substr(value)) : std::nullopt};
}

}  // namespace

void ScriptReader::TakeLine(std::string_view line, const std::string& where) {
  const std::vector<std::string> words = WordsOf(line);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Begun begun = BeginOf(words[i]);
    if (begun.option == nullptr) {
      Note(NotHere(where, words[i].substr(0, words[i].find('='))));
      // What follows is its value.
      const bool has_value = words[i].find('=') == std::string::npos && i + 1 < words.size() &&
                             !words[i + 1].starts_with('-');
      i += has_value ? 1 : 0;
      continue;
    }
    Given given{.name = std::string(begun.option->name), .value = "", .where = where};
    if (begun.value) {
      given.value = *begun.value;
    } else if (!begun.option->flag) {
      if (++i == words.size()) {
        return Note(BadInput(fmt::format("{}--{} has no value; expected one", where, given.name)));
      }
      given.value = words[i];
    }
    Note(begun.option->set != nullptr ? (this->*begun.option->set)(given)
                                      : SetKey(given, begun.option->key, given.value));
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
  } else if (counts_.gpus_per_task) {
    gpus = tasks * *counts_.gpus_per_task;
  } else if (!gpus && (counts_.tasks || counts_.tasks_per_node)) {
    gpus = tasks;
    script_.lines_["gpus"] = counts_.tasks ? counts_.tasks.where : counts_.tasks_per_node.where;
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
      counts_.tasks.number.value_or(nodes * counts_.tasks_per_node.number.value_or(1));
  const bool has_tasks = counts_.tasks || counts_.tasks_per_node;
  if (has_tasks && tasks != nodes && tasks != gpus) {
    return BadInput(fmt::format(
        "{}states {} tasks for {} GPUs on {} node{}; expected a task for each GPU or for each "
        "node",
        counts_.tasks ? counts_.tasks.where : counts_.tasks_per_node.where, tasks, gpus.value_or(0),
        nodes, nodes == 1 ? "" : "s"));
  }
  job_.mutable_launch()->set_workers(has_tasks && tasks == gpus ? v1::LaunchSpec::PER_GPU
                                                                : v1::LaunchSpec::PER_NODE);
  job_.mutable_launch()->mutable_batch()->set_states_tasks(has_tasks);
  return SettleCpus(nodes, tasks);
}

// A task has one CPU unless the lines say more. Tasks are as evenly on the nodes as can be.
Status ScriptReader::SettleCpus(std::int64_t nodes, std::int64_t tasks) {
  const std::int64_t each = counts_.cpus_per_task.number.value_or(1);
  const bool is_even = counts_.nodes && tasks % nodes == 0;
  const std::int64_t together = (is_even ? tasks / nodes : tasks) * each;
  const std::string per = is_even ? "/node" : "";
  if (counts_.cpus_per_task) {
    script_.lines_["cpus"] = counts_.cpus_per_task.where;
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
  state("SLURM_NTASKS_PER_NODE", counts_.tasks_per_node);
  state("SLURM_GPUS", counts_.gpus);
  state("SLURM_GPUS_PER_NODE", counts_.gpus_per_node);
  state("SLURM_GPUS_PER_TASK", counts_.gpus_per_task);
}

void ScriptReader::Warn(std::string_view text) {
  if (!ignored_.empty()) {
    script_.warnings_.push_back(fmt::format("ignored, as no such resource is given out here: {}",
                                            fmt::join(ignored_, ", ")));
  }
  std::string calls;
  for (const SlurmCall& call : SlurmCallsIn(text)) {
    calls += fmt::format("{}{} ({}:{})", calls.empty() ? "" : ", ", call.command, script_.path_,
                         call.line);
  }
  if (!calls.empty()) {
    script_.warnings_.push_back(fmt::format(
        "the script calls {}: Slurm's commands do not know the job. Trainyard itself starts the "
        "script once on each node, or for each GPU where --ntasks says so, with RANK, WORLD_SIZE "
        "and the like set: in place of 'srun COMMAND' write 'COMMAND' ({}, Scripts that call "
        "srun)",
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
  bool has_lines = false;
  int first_command = 0;  // its line; 0: none yet
  for (int number = 2; std::getline(lines, line); ++number) {
    constexpr std::string_view kMark = "#SBATCH";
    const std::string_view behind =
        std::string_view(line).substr(std::min(kMark.size(), line.size()));
    if (line.starts_with(kMark) && (behind.empty() || behind.find_first_of(" \t") == 0)) {
      if (first_command > 0) {
        script_.warnings_.push_back(fmt::format(
            "{}:{}: #SBATCH lines behind the script's first command, here in line {}, are not read "
            "(nor are they by sbatch)",
            path, number, first_command));
        break;
      }
      has_lines = true;
      TakeLine(behind, fmt::format("{}:{}: ", path, number));
    } else if (first_command == 0 && line.find_first_not_of(" \t\r") != std::string::npos &&
               !line.starts_with("#")) {
      first_command = number;
    }
  }
  Note(SettleCounts());
  if (!faults_.empty()) {
    return BadInput(fmt::format("{}", fmt::join(faults_, "\n")));
  }
  if (job_.name().empty()) {
    job_.set_name(fs::path(path).filename().string());
  }
  if (has_lines) {
    AddVariables();
    Warn(text);
  } else {
    job_.mutable_launch()->clear_batch();
  }
  return std::move(script_);
}

namespace {

// The text of a file that may be a script, or why it cannot be one.
Result<std::string> ScriptText(const std::string& path) {
  constexpr off_t kMost = off_t{4} << 20;
  const auto none = [&path](std::string_view why) {
    return InvalidArgument(fmt::format(
        "'{0}' is no script that begins with #!{1}; expected one, or -- before the job's command: "
        "trainyard submit [OPTIONS] -- {0}",
        path, why));
  };
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return none(" (there is no such file)");
  }
  if (S_ISDIR(status.st_mode)) {
    return none(" (it is a folder)");
  }
  if (!S_ISREG(status.st_mode)) {
    return InvalidArgument(fmt::format(
        "'{}' is no file that stays, as a pipe is none: nothing of a script is copied, and the job "
        "reads it where it runs; expected the name of a file, or -- before a command: trainyard "
        "submit [OPTIONS] -- sh -c 'COMMAND'",
        path));
  }
  if (status.st_size > kMost) {
    return none(" (it has more than 4 MiB)");
  }
  ASSIGN_OR_RETURN(std::string text, io::ReadBytes(path));
  if (!text.starts_with("#!")) {
    return none(text.empty()                         ? " (it is empty)"
                : text.starts_with("\xEF\xBB\xBF#!") ? " (a byte order mark comes before it)"
                                                     : "");
  }
  return text;
}

// What lies below /dev and /proc is another file for each process.
std::string RealPath(const std::string& path) {
  std::error_code error;
  const std::string absolute = fs::absolute(path, error).lexically_normal().string();
  if (!absolute.starts_with("/dev/") && !absolute.starts_with("/proc/")) {
    return path;
  }
  const std::string real = fs::canonical(absolute, error).string();
  return error ? path : real;
}

}  // namespace

Result<BatchScript> BatchScript::Read(const std::string& path, v1::JobRequest& job) {
  const std::string real = RealPath(path);
  ASSIGN_OR_RETURN(const std::string text, ScriptText(real));
  return ScriptReader(real, job).Read(text);
}

void BatchScript::SetCommand(const std::vector<std::string>& arguments, v1::JobRequest& job) {
  std::vector<std::string> command = interpreter_;
  std::error_code error;
  command.push_back(fs::absolute(path_, error).lexically_normal().string());
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (!output_.word.empty() || !errors_.word.empty()) {
    // The log, which `trainyard logs` shows, names the files.
    std::string shell;
    const auto name = [&shell](const char* variable, const std::string& word) {
      shell +=
          fmt::format("{0}={1}; case ${0} in /*) ;; *) {0}=$PWD/${0};; esac; ", variable, word);
    };
    if (!output_.word.empty()) {
      name("out", output_.word);
    }
    if (!errors_.word.empty()) {
      name("err", errors_.word);
    }
    if (errors_.word.empty()) {
      shell += "printf 'trainyard: output and errors go to %s\\n' \"$out\"; exec >>\"$out\" 2>&1";
    } else if (output_.word.empty()) {
      shell += "printf 'trainyard: errors go to %s\\n' \"$err\"; exec 2>>\"$err\"";
    } else {
      shell +=
          "printf 'trainyard: output goes to %s, errors go to %s\\n' \"$out\" \"$err\"; exec "
          ">>\"$out\" 2>>\"$err\"";
    }
    command.insert(command.begin(), {"/bin/sh", "-c", shell + "; exec \"$@\"", "sh"});
  }
  job.mutable_launch()->mutable_command()->Assign(command.begin(), command.end());
  for (const Output* file : {&output_, &errors_}) {
    // As far as no placeholder stands in its name.
    const std::string name = file->pattern.substr(0, file->pattern.find('%'));
    const std::size_t slash = name.rfind('/');
    if (slash == std::string::npos || slash == 0) {
      continue;
    }
    const fs::path folder = fs::path(job.launch().working_directory()) / name.substr(0, slash);
    if (!fs::is_directory(folder, error)) {
      warnings_.push_back(fmt::format(
          "{} is '{}', and there is no folder '{}' on this machine: where it is missing "
          "when the job starts, the job fails",
          file->where, file->pattern, folder.string()));
    }
  }
}

Error BatchScript::AtLine(const Error& error,
                          const std::vector<std::string_view>& overridden) const {
  // What messages of the controller call the values.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kWords{
      {{"account", "account"},
       {"licences", "licenses"},
       {"names node", "node_list"},
       {"constraint", "constraint"},
       {"temporary files", "tmp"},
       {"of memory beside", "memory"},
       {"CPUs beside", "cpus"},
       {"nodes", "nodes"},
       {"dependency", "dependency"},
       {"tasks", "array"},
       {"array", "array"},
       {"GPU type", "gpu_types"},
       {"gpu_types", "gpu_types"},
       {"GPU", "gpus"},
       {"priority", "priority"},
       {"queue", "queue"},
       {"environment", "env"},
       {"notify", "notify"}}};
  const bool of_job = error.code != ErrorCode::kBadInput;
  for (const auto& [word, key] : kWords) {
    const auto line = lines_.find(key);
    if (of_job && line != lines_.end() && error.message.find(word) != std::string::npos &&
        std::find(overridden.begin(), overridden.end(), key) == overridden.end()) {
      return {.code = error.code == ErrorCode::kInvalidArgument ? ErrorCode::kBadInput : error.code,
              .message = line->second + error.message};
    }
  }
  return error;
}

}  // namespace trainyard::requests
