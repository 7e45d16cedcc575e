// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/slurm_tools.h"

#include <fmt/format.h>

#include <fmt/ostream.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/name_list.h"
#include "base/text.h"
#include "supervisor/steps/step.h"
#include "supervisor/steps/step_options.h"

namespace trainyard::supervisor {
namespace {

// A list with commas of its own folded again: "n0,n1" is "n[0-1]".
std::string HostList(std::string_view names, bool sorted) {
  std::vector<std::string> all;
  for (const std::string_view name : base::Split(names, ",")) {
    all.emplace_back(name);
  }
  if (sorted) {
    std::sort(all.begin(), all.end());
  }
  return base::FoldNames(all);
}

}  // namespace

Status MakeSlurmTools(const std::string& folder, const std::string& program) {
  for (const std::string_view tool : kSlurmTools) {
    const std::string path = fmt::format("{}/{}", folder, tool);
    if (symlink(program.c_str(), path.c_str()) != 0 && errno != EEXIST) {
      return Failed(fmt::format("{}: cannot be made: {}", path, std::strerror(errno)));
    }
  }
  const std::string path = fmt::format("{}/{}", folder, kBashFile);
  std::ofstream file(path);
  fmt::print(file,
             "case \":$PATH:\" in *\":{0}:\"*) ;; *) PATH=\"{0}:$PATH\" ;; esac\n"
             "[ -z \"${1}\" ] || . \"${1}\"\n",
             folder, kFormerBashVariable);
  // Whatever a script makes of its path. A function would be a process between script and srun.
  fmt::print(file, "shopt -s expand_aliases\n");
  for (const std::string_view tool : kSlurmTools) {
    fmt::print(file, "alias {0}='{1}/{0}'\n", tool, folder);
  }
  return file.flush() ? Status() : Failed(path + ": cannot be written");
}

ToolAnswer Scontrol(const std::vector<std::string>& words, std::string_view of_job) {
  constexpr int kFailed = 1;
  const bool shows = words.size() >= 2 && words[0] == "show";
  const bool names = shows && (words[1] == "hostnames" || words[1] == "hostname");
  const bool list = shows && (words[1] == "hostlist" || words[1] == "hostlistsorted");
  if (!names && !list) {
    return {.status = kFailed,
            .errors = fmt::format(
                "scontrol: error: only 'show hostnames' and 'show hostlist' are here; of the job "
                "itself 'trainyard status {}' tells\n",
                JobVariable("SLURM_JOB_ID"))};
  }
  const std::string_view given = words.size() > 2 ? std::string_view(words[2]) : of_job;
  if (given.empty()) {
    return {.status = kFailed, .errors = "scontrol: error: no list of nodes is given\n"};
  }
  if (list) {
    return {.out = HostList(given, words[1] == "hostlistsorted") + "\n"};
  }
  const Result<std::vector<std::string>> expanded = base::ExpandNames(given);
  if (!expanded.ok()) {
    return {.status = kFailed,
            .errors = fmt::format("scontrol: error: {}\n", expanded.error().message)};
  }
  std::string out;
  for (const std::string& name : expanded.value()) {
    out += name + "\n";
  }
  return {.out = std::move(out)};
}

int RunSrun(const std::vector<std::string>& words) {
  constexpr int kFailed = 1;
  Result<StepOptions> options = StepOptions::Read(words, JobVariable);
  if (!options.ok()) {
    fmt::print(stderr, "srun: error: {}\n", options.error().message);
    return kFailed;
  }
  return RunStep(options.value());
}

}  // namespace trainyard::supervisor
