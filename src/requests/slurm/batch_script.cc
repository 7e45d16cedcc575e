// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/batch_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "io/file.h"
#include "io/text_check.h"
#include "live/jobs/job_request.h"
#include "model/request/node_request.h"
#include "requests/job_file.h"
#include "requests/slurm/output_name.h"
#include "requests/slurm/sbatch_line.h"
#include "requests/slurm/script_file.h"
#include "requests/slurm/script_reader.h"
#include "requests/slurm/slurm_words.h"

namespace trainyard::requests {

namespace fs = std::filesystem;

std::string PlaceText(std::string_view where) {
  const std::string_view place = base::Trim(where);
  return place.empty() ? std::string() : fmt::format(" ({})", place.substr(0, place.size() - 1));
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
  const auto [words, open_quote] = WordsOf(line);
  if (open_quote != 0) {  // what follows it on the line would be a part of its value
    return Note(
        BadInput(fmt::format("{}nothing closes the {} in [{}]; expected another one behind it",
                             where, open_quote, base::Trim(line))));
  }
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

// The options of sbatch itself: what the lines say of GPU types does not stand beside theirs.
void ScriptReader::TakeCall() {
  if (call_ == nullptr) {
    return;
  }
  bool is_first = true;
  for (const auto& [option, value] : call_->options) {
    if (option->name.starts_with("gpus") || option->name == "gres") {
      if (std::exchange(is_first, false)) {
        job_.clear_gpu_types();
      }
    }
    Note(TakeOption(*option, {.name = std::string(option->name), .value = value, .where = ""}));
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
  if (on_cpus) {  // as under Slurm, what it asks for of each GPU is nothing
    for (std::string* const amount : {job_.mutable_cpus(), job_.mutable_memory()}) {
      if (amount->ends_with("/gpu")) {
        amount->clear();
      }
    }
  }
  constexpr std::int64_t kMilliCpu = 1000;
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
  const std::int64_t mib = model::ReadMib(memory_per_cpu_->value).value_or(0);
  if (CpuRequest of_gpu; model::ReadText(job_.cpus(), of_gpu) && of_gpu.per == Per::kGpu) {
    const std::int64_t cpus = of_gpu.milli / kMilliCpu;
    return SetJobOption("memory", std::to_string(mib * cpus) + "M/gpu", job_);
  }
  return SetJobOption("memory", std::to_string(mib * together) + "M" + per, job_);
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
  if (!counts_.by_gres) {
    state("SLURM_GPUS_PER_NODE", counts_.gpus_per_node);
  }
  state("SLURM_GPUS_PER_TASK", counts_.gpus_per_task);
}

// Of commands of Slurm that do not know the job here.
void ScriptReader::WarnOfCalls(std::string_view text) {
  std::string calls;
  for (const SlurmCall& call : SlurmCallsIn(text)) {
    if (std::find(live::kSlurmTools.begin(), live::kSlurmTools.end(), call.command) !=
        live::kSlurmTools.end()) {
      continue;
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
}

void ScriptReader::Warn(std::string_view text) {
  if (job_.exclusive() && job_.gpus() == 0) {
    script_.warnings_.push_back(
        fmt::format("{}--exclusive gives the job all CPUs of its nodes and none of their GPUs, "
                    "which it does not "
                    "ask for (expected --gpus-per-node=N or --gres=gpu:N where it uses them)",
                    script_.lines_["exclusive"]));
  }
  if (!script_.without_effect_.empty()) {
    std::string options;
    for (const BatchScript::WithoutEffect& one : script_.without_effect_) {
      options += fmt::format("{}--{}{}", options.empty() ? "" : ", ", one.option->name,
                             PlaceText(one.where));
    }
    script_.warnings_.push_back(
        fmt::format("without effect here: {} ({}; --strict refuses them)", options, kSlurmPage));
  }
  if (!ignored_.empty()) {
    script_.warnings_.push_back(fmt::format("ignored, as no such resource is given out here: {}",
                                            fmt::join(ignored_, ", ")));
  }
  WarnOfCalls(text);
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
  script_.interpreter_ = WordsOf(std::string_view(line).substr(2)).words;
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
  if (line.starts_with(kMark)) {  // whatever follows, as sbatch has it: "#SBATCH--gpus=1"
    if (first_command_ > 0) {
      if (!behind.empty() && behind.find_first_of(" \t-") != 0) {
        return true;  // a remark: nobody has meant an option
      }
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
    TakeCall();
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
    // As under Slurm, unless the script says otherwise.
    if (!job_.dependency().empty() && !script_.lines_.contains("keep_on_invalid_dep")) {
      job_.set_keep_on_invalid_dep(true);
    }
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

Result<BatchScript> BatchScript::Read(const std::string& path, v1::JobRequest& job,
                                      const std::optional<SbatchCall>& call) {
  const bool has_text = call && call->text;
  const std::string real = has_text ? path : RealPath(path);
  ASSIGN_OR_RETURN(const std::string text,
                   has_text ? Result<std::string>(*call->text) : ScriptText(real));
  ScriptReader reader(real, job);
  if (call) {
    reader.Take(*call);
  }
  Result<BatchScript> script = reader.Read(text);
  if (script.ok() && job.launch().batch().script().empty()) {
    RETURN_IF_ERROR(CheckStays(real));
  }
  return script;
}

}  // namespace trainyard::requests
