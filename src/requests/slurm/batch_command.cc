// SPDX-License-Identifier: Apache-2.0
// What becomes of a script that has been read: the command of the job, and what is said of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "live/jobs/job_request.h"
#include "requests/slurm/batch_script.h"

namespace trainyard::requests {

namespace fs = std::filesystem;

Status BatchScript::CheckStrict() const {
  std::string faults;
  for (const WithoutEffect& one : without_effect_) {
    faults += fmt::format("{}{} --{}: {}", faults.empty() ? "" : "\n", one.where, one.option->name,
                          one.option->here);
  }
  return faults.empty() ? Status() : BadInput(faults);
}

// For a shell: opens the files of the script. The log, which `trainyard logs` shows, names them.
std::string BatchScript::Redirection(bool once) const {
  std::string shell;
  const auto name = [&shell](const char* variable, const std::string& word) {
    shell += fmt::format("{0}={1}; case ${0} in /*) ;; *) {0}=$PWD/${0};; esac; ", variable, word);
  };
  if (!input_.word.empty()) {
    name("in", input_.word);
    shell += "exec <\"$in\"; ";
  }
  name("out", output_.word);
  if (!errors_.word.empty()) {
    name("err", errors_.word);
  }
  // Unless it is stated the output of later attempts, which policies make, follows that of the
  // earlier ones.
  if (open_mode_ != OpenMode::kAppend && once) {
    const char* const when =
        open_mode_ == OpenMode::kTruncate ? "" : "[ \"$TRAINYARD_ATTEMPT\" != 1 ] || ";
    shell += fmt::format("{}: >\"$out\" || exit; ", when);
    if (!errors_.word.empty()) {
      shell += fmt::format("{}: >\"$err\" || exit; ", when);
    }
  }
  return shell +
         (errors_.word.empty()
              ? "printf 'trainyard: output and errors go to %s\\n' \"$out\"; exec >>\"$out\" 2>&1"
              : "printf 'trainyard: output goes to %s, errors go to %s\\n' \"$out\" \"$err\"; "
                "exec >>\"$out\" 2>>\"$err\"");
}

void BatchScript::SetCommand(const std::vector<std::string>& arguments, v1::JobRequest& job) {
  std::vector<std::string> command = interpreter_;
  std::error_code error;
  command.push_back(job.launch().batch().script().empty()
                        ? fs::absolute(path_, error).lexically_normal().string()
                        : std::string(live::kScriptWord));
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (!output_.word.empty()) {
    const std::string shell = Redirection(job.launch().workers() == v1::LaunchSpec::ONCE);
    command.insert(command.begin(), {"/bin/sh", "-c", shell + live::kRunsRest, "sh"});
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
  constexpr std::array<std::pair<std::string_view, std::string_view>, 23> kWords{
      {{"account", "account"},
       {"licences", "licenses"},
       {"names node", "node_list"},
       {"excludes node", "exclude"},
       {"time limit", "time"},
       {"of memory; ", "memory"},
       {"CPUs; ", "cpus"},
       {"constraint", "constraint"},
       {"temporary files", "tmp"},
       {"of memory beside", "memory"},
       {"CPUs beside", "cpus"},
       {"nodes", "nodes"},
       {"dependency", "dependency"},
       {"tasks", "array"},
       {"array", "array"},
       {"GPU type", "gpu_types"},
       {"GPUs of type", "gpu_types"},
       {"gpu_types", "gpu_types"},
       {"GPU", "gpus"},
       {"priority", "priority"},
       {"queue", "queue"},
       {"environment", "env"},
       {"notify", "notify"}}};
  if (error.code == ErrorCode::kBadInput) {
    return error;
  }
  const auto where = [&](std::string_view fault) -> std::string {
    for (const auto& [word, key] : kWords) {
      const auto line = lines_.find(key);
      if (line != lines_.end() && fault.find(word) != std::string::npos &&
          std::find(overridden.begin(), overridden.end(), key) == overridden.end()) {
        return line->second;
      }
    }
    return {};
  };
  bool has_line = false;
  std::string told;
  for (const std::string_view fault : base::Split(error.message, "\n")) {
    const std::string at = where(fault);
    has_line = has_line || !at.empty();
    told += fmt::format("{}{}{}", told.empty() ? "" : "\n", at, fault);
  }
  const bool is_of_script = has_line && error.code == ErrorCode::kInvalidArgument;
  return {.code = is_of_script ? ErrorCode::kBadInput : error.code, .message = told};
}

}  // namespace trainyard::requests
