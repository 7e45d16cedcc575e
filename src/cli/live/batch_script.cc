// SPDX-License-Identifier: Apache-2.0
#include "cli/live/batch_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "cli/live/job_file.h"
#include "io/file.h"
#include "io/text_check.h"
#include "model/job_fields.h"

namespace trainyard::cli {
namespace {

// One option of a line, as it is written and as sbatch calls it in full.
struct Given {
  std::string name;   // "job-name"
  std::string value;  // empty: none
  std::string where;  // "train.sh:3: "

  [[nodiscard]] Error Bad(const std::string& expected) const {
    return BadInput(fmt::format("{}--{} is '{}'; expected {}", where, name, value, expected));
  }
};

// What the lines say of GPUs and tasks, which belong together.
struct Counts {
  std::optional<std::int64_t> gpus;
  std::optional<std::int64_t> gpus_per_node;
  std::optional<std::int64_t> gpus_per_task;
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> tasks;
  std::optional<std::int64_t> tasks_per_node;
};

struct Script {
  std::string path;
  v1::JobRequest& job;
  Counts counts{};
  std::string output{};
  std::string errors{};
};

Status SetKey(const Given& given, std::string_view key, const std::string& text,
              v1::JobRequest& job) {
  const Status status = SetJobOption(key, text, job);
  return status.ok() ? status
                     : BadInput(given.where + "by --" + given.name + ", " + status.error().message);
}

Result<std::int64_t> CountOf(const Given& given, std::string_view text) {
  const std::optional<double> number = base::ToNumber(text);
  if (!number || *number < 1 || *number != std::floor(*number) ||
      *number > static_cast<double>(model::kMostGpus)) {
    return given.Bad("a number from 1 on");
  }
  return static_cast<std::int64_t>(*number);
}

// "4", or "a100:4": the type is taken, too.
Status TakeGpus(const Given& given, std::string_view text, std::optional<std::int64_t>& count,
                v1::JobRequest& job) {
  const std::size_t colon = text.rfind(':');
  ASSIGN_OR_RETURN(count,
                   CountOf(given, colon == std::string_view::npos ? text : text.substr(colon + 1)));
  return colon == std::string_view::npos
             ? Status()
             : SetKey(given, "gpu_types", std::string(text.substr(0, colon)), job);
}

// ---------------------------------------------------------------------------------- single options

Status SetGres(const Given& given, Script& script) {
  if (given.value != "gpu" && !given.value.starts_with("gpu:")) {
    return given.Bad("gpu:N or gpu:TYPE:N");
  }
  return TakeGpus(given, given.value == "gpu" ? "1" : std::string_view(given.value).substr(4),
                  script.counts.gpus_per_node, script.job);
}

// A plain number is minutes here.
Status SetTimeLimit(const Given& given, Script& script) {
  const bool plain =
      !given.value.empty() && std::all_of(given.value.begin(), given.value.end(),
                                          [](unsigned char c) { return std::isdigit(c) != 0; });
  return SetKey(given, "time", plain ? given.value + "m" : given.value, script.job);
}

Status SetExport(const Given& given, Script& script) {
  for (const std::string_view item : base::Split(given.value, ",")) {
    if (item != "NONE" && item.find('=') == std::string_view::npos) {
      return given.Bad("NONE or NAME=VALUE,..., as a job gets no environment but its own");
    }
    if (item != "NONE") {
      RETURN_IF_ERROR(SetKey(given, "env", std::string(item), script.job));
    }
  }
  return {};
}

Status SetMail(const Given& given, Script& script) {
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
  return events.empty()
             ? Status()
             : SetKey(given, "notify", fmt::format("{}", fmt::join(events, ",")), script.job);
}

template <std::string Script::*kFile>
Status SetFile(const Given& given, Script& script) {
  script.*kFile = given.value;
  return {};
}

template <std::optional<std::int64_t> Counts::*kCount>
Status SetCount(const Given& given, Script& script) {
  ASSIGN_OR_RETURN(script.counts.*kCount, CountOf(given, given.value));
  return {};
}

template <std::optional<std::int64_t> Counts::*kCount>
Status SetGpuCount(const Given& given, Script& script) {
  return TakeGpus(given, given.value, script.counts.*kCount, script.job);
}

Status SetHold(const Given& given, Script& script) {
  return SetKey(given, "hold", "true", script.job);
}

Status SetNothing(const Given& /*given*/, Script& /*script*/) { return {}; }

struct Option {
  std::string_view name;
  char letter = 0;
  std::string_view key;  // of a job, which takes the value as it is; empty: `set` does more
  Status (*set)(const Given& given, Script& script) = nullptr;
  bool flag = false;
};

constexpr std::array kOptions{
    Option{"job-name", 'J', "name"},
    Option{"partition", 'p', "queue"},
    Option{"time", 't', "", SetTimeLimit},
    Option{"begin", 'b', "begin"},
    Option{"array", 'a', "array"},
    Option{"dependency", 'd', "dependency"},
    Option{"chdir", 'D', "cwd"},
    Option{"priority", 0, "priority"},
    Option{"gpus", 'G', "", SetGpuCount<&Counts::gpus>},
    Option{"gpus-per-node", 0, "", SetGpuCount<&Counts::gpus_per_node>},
    Option{"gpus-per-task", 0, "", SetGpuCount<&Counts::gpus_per_task>},
    Option{"gres", 0, "", SetGres},
    Option{"nodes", 'N', "", SetCount<&Counts::nodes>},
    Option{"ntasks", 'n', "", SetCount<&Counts::tasks>},
    Option{"ntasks-per-node", 0, "", SetCount<&Counts::tasks_per_node>},
    Option{"export", 0, "", SetExport},
    Option{"mail-type", 0, "", SetMail},
    Option{"output", 'o', "", SetFile<&Script::output>},
    Option{"error", 'e', "", SetFile<&Script::errors>},
    Option{"hold", 'H', "", SetHold, true},
    Option{"requeue", 0, "", SetNothing, true},  // as all jobs are
};

// What users of Slurm have in their scripts and what is to be done about it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kAdvice{
    {{"account", "no such line: there are no accounts; shares are those of the job's user"},
     {"qos",
      "no such line: there is no quality of service; --priority and the policy say who is "
      "first"},
     {"mem", "no such line: memory is shared out with the GPUs"},
     {"cpus-per-task", "no such line: CPUs are shared out with the GPUs"},
     {"mail-user", "no such line: the controller's operator says where notices go"},
     {"wait", "no such line, and 'trainyard wait JOB' after the submission"},
     {"nodelist", "no such line: the placement chooses the nodes"},
     {"constraint", "--gres=gpu:TYPE:N"},
     {"exclusive", "no such line: the placement chooses the nodes"}}};

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

Error NotHere(const std::string& where, const std::string& word) {
  std::vector<std::string_view> names;
  names.reserve(kOptions.size());
  for (const Option& option : kOptions) {
    names.push_back(option.name);
  }
  const std::string_view bare = std::string_view(word).substr(word.find_first_not_of('-'));
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
  const Option* option = nullptr;
  std::optional<std::string> value;
};

Begun BeginOf(const std::string& word) {
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    const std::string_view name = std::string_view(word).substr(2, equals - 2);
    const auto* const found = std::find_if(kOptions.begin(), kOptions.end(),
                                           [name](const Option& one) { return one.name == name; });
    return {found == kOptions.end() ? nullptr : found,
            equals == std::string::npos ? std::nullopt : std::optional(word.substr(equals + 1))};
  }
  if (word.size() < 2 || word.front() != '-') {
    return {};
  }
  const auto* const found =
      std::find_if(kOptions.begin(), kOptions.end(),
                   [&word](const Option& one) { return one.letter == word[1]; });
  const std::size_t value = word.size() > 2 && word[2] == '=' ? 3 : 2;
  return {found == kOptions.end() ? nullptr : found,
          word.size() > 2 ? std::optional(word.substr(value)) : std::nullopt};
}

Status TakeLine(std::string_view line, const std::string& where, Script& script) {
  const std::vector<std::string> words = WordsOf(line);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Begun begun = BeginOf(words[i]);
    if (begun.option == nullptr) {
      return NotHere(where, words[i].substr(0, words[i].find('=')));
    }
    Given given{.name = std::string(begun.option->name), .value = "", .where = where};
    if (begun.value) {
      given.value = *begun.value;
    } else if (!begun.option->flag) {
      if (++i == words.size()) {
        return BadInput(fmt::format("{}--{} has no value; expected one", where, given.name));
      }
      given.value = words[i];
    }
    RETURN_IF_ERROR(begun.option->set != nullptr
                        ? begun.option->set(given, script)
                        : SetKey(given, begun.option->key, given.value, script.job));
  }
  return {};
}

// ---------------------------------------------------------------------------------------- together

// Workers and GPUs of all that the lines say.
Status SettleCounts(Script& script) {
  const Counts& counts = script.counts;
  const std::int64_t nodes = counts.nodes.value_or(1);
  const std::int64_t tasks = counts.tasks.value_or(nodes * counts.tasks_per_node.value_or(1));
  const bool has_tasks = counts.tasks || counts.tasks_per_node;
  std::optional<std::int64_t> gpus = counts.gpus;
  if (counts.gpus_per_node) {
    gpus = nodes * *counts.gpus_per_node;
  } else if (counts.gpus_per_task) {
    gpus = tasks * *counts.gpus_per_task;
  } else if (gpus && nodes > 1) {
    return BadInput(script.path +
                    ": states --nodes beside --gpus, and the placement chooses the nodes; expected "
                    "--gpus-per-node, or no --nodes");
  } else if (!gpus && has_tasks) {
    gpus = tasks;
  }
  if (gpus) {
    RETURN_IF_ERROR(SetJobOption("gpus", std::to_string(*gpus), script.job));
  }
  if (has_tasks && tasks != nodes && tasks != gpus) {
    return BadInput(fmt::format(
        "{}: states {} tasks for {} GPUs on {} node{}; expected a task for each GPU or for each "
        "node",
        script.path, tasks, gpus.value_or(0), nodes, nodes == 1 ? "" : "s"));
  }
  script.job.mutable_launch()->set_workers(has_tasks && tasks == gpus ? v1::LaunchSpec::PER_GPU
                                                                      : v1::LaunchSpec::PER_NODE);
  return {};
}

// Between double quotes of the shell.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    escaped +=
        c == '"' || c == '\\' || c == '$' || c == '`' ? std::string("\\") + c : std::string(1, c);
  }
  return escaped;
}

// The pattern of a file as a word of the shell.
std::string FileWord(const std::string& pattern, const v1::JobRequest& job) {
  std::string word = "\"";
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c != '%' || i + 1 == pattern.size()) {
      word += Escaped(std::string_view(&c, 1));
      continue;
    }
    switch (pattern[++i]) {
      case 'j':
      case 'J':
        word += "$TRAINYARD_JOB";
        break;
      case 'A':
        word += "${TRAINYARD_ARRAY_JOB_ID:-$TRAINYARD_JOB}";
        break;
      case 'a':
        word += "$TRAINYARD_ARRAY_TASK_ID";
        break;
      case 'x':
        word += Escaped(job.name());
        break;
      case 'u':
        word += "$(id -un)";
        break;
      case 'N':
        word += "$(hostname)";
        break;
      case 'n':
      case 't':
        word += "$RANK";
        break;
      default:
        word += pattern[i];
    }
  }
  return word + "\"";
}

void SetCommand(const Script& script, std::string_view first_line,
                const std::vector<std::string>& arguments) {
  std::vector<std::string> command = WordsOf(first_line.substr(2));
  std::error_code error;
  command.push_back(std::filesystem::absolute(script.path, error).lexically_normal().string());
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (!script.output.empty() || !script.errors.empty()) {
    std::string redirection = "exec";
    if (!script.output.empty()) {
      redirection += " >>" + FileWord(script.output, script.job);
    }
    redirection += script.errors.empty() ? " 2>&1" : " 2>>" + FileWord(script.errors, script.job);
    command.insert(command.begin(), {"/bin/sh", "-c", redirection + "; exec \"$@\"", "sh"});
  }
  script.job.mutable_launch()->mutable_command()->Assign(command.begin(), command.end());
}

}  // namespace

bool IsScript(const std::string& path) {
  const Result<std::string> text = io::ReadFile(path);
  return text.ok() && text.value().starts_with("#!");
}

Status ReadBatchScript(const std::string& path, const std::vector<std::string>& arguments,
                       v1::JobRequest& job) {
  ASSIGN_OR_RETURN(const std::string text, io::ReadFile(path));
  RETURN_IF_ERROR(io::CheckText(path, text));
  Script script{.path = path, .job = job};
  std::istringstream lines(text);
  std::string first;
  std::getline(lines, first);
  int number = 1;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    constexpr std::string_view kMark = "#SBATCH";
    if (line.starts_with(kMark)) {
      RETURN_IF_ERROR(TakeLine(std::string_view(line).substr(kMark.size()),
                               fmt::format("{}:{}: ", path, number), script));
    } else if (line.find_first_not_of(" \t\r") != std::string::npos && !line.starts_with("#")) {
      break;  // the script's first command
    }
  }
  RETURN_IF_ERROR(SettleCounts(script));
  if (job.name().empty()) {
    job.set_name(std::filesystem::path(path).filename().string());
  }
  SetCommand(script, first, arguments);
  return {};
}

}  // namespace trainyard::cli
