// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step_options.h"

#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "base/name_list.h"
#include "base/text.h"
#include "base/try.h"
#include "io/file.h"
#include "supervisor/steps/step_programs.h"

namespace trainyard::supervisor {
namespace {

// Those that srun takes and that change nothing of a step here.
constexpr std::array kWithValue{"accel-bind",
                                "account",
                                "acctg-freq",
                                "bb",
                                "bbf",
                                "bcast-exclude",
                                "begin",
                                "cluster-constraint",
                                "clusters",
                                "comment",
                                "constraint",
                                "container",
                                "core-spec",
                                "cores-per-socket",
                                "cpu-bind",
                                "cpu-freq",
                                "cpus-per-gpu",
                                "deadline",
                                "delay-boot",
                                "dependency",
                                "extra-node-info",
                                "gid",
                                "gpu-bind",
                                "gpu-freq",
                                "gpus-per-socket",
                                "gres-flags",
                                "hint",
                                "jobid",
                                "licenses",
                                "mail-type",
                                "mail-user",
                                "mcs-label",
                                "mem",
                                "mem-bind",
                                "mem-per-cpu",
                                "mem-per-gpu",
                                "mincpus",
                                "mpi",
                                "msg-timeout",
                                "network",
                                "nodefile",
                                "ntasks-per-core",
                                "ntasks-per-gpu",
                                "ntasks-per-socket",
                                "partition",
                                "power",
                                "prefer",
                                "priority",
                                "profile",
                                "qos",
                                "reservation",
                                "signal",
                                "slurmd-debug",
                                "sockets-per-node",
                                "switches",
                                "thread-spec",
                                "threads",
                                "threads-per-core",
                                "time",
                                "time-min",
                                "tmp",
                                "uid",
                                "wait",
                                "wckey"};
constexpr std::array kWithOptionalValue{"compress", "exclusive", "immediate",  "nice",
                                        "no-kill",  "propagate", "resv-ports", "send-libs"};
constexpr std::array kFlags{"contiguous",    "disable-status", "exact",      "hold",
                            "oversubscribe", "preserve-env",   "quiet",      "quit-on-interrupt",
                            "reboot",        "spread-job",     "unbuffered", "use-min-nodes",
                            "verbose"};
// Those that make of srun another program.
constexpr std::array kNotHere{"pty",   "test-only", "het-group", "no-allocate", "x11",
                              "bcast", "epilog",    "prolog",    "task-epilog", "task-prolog"};

enum Own : int {
  kTasks = 1000,
  kNodes,
  kCpusPerTask,
  kGpusPerTask,
  kTasksPerNode,
  kNodeList,
  kOutput,
  kError,
  kInput,
  kFolder,
  kLabel,
  kKill,
  kOvercommit,
  kOverlap,
  kGpus,
  kGpusPerNode,
  kGres,
  kExport,
  kExclude,
  kRelative,
  kDistribution,
  kOpenMode,
  kName,
  kMultiProg,
  kConfirm,  // of this program's own: somebody types
  kNotHereYet,
  kPassed,
};

std::vector<option> LongOptions() {
  std::vector<option> options{
      {"ntasks", required_argument, nullptr, kTasks},
      {"nodes", required_argument, nullptr, kNodes},
      {"cpus-per-task", required_argument, nullptr, kCpusPerTask},
      {"gpus-per-task", required_argument, nullptr, kGpusPerTask},
      {"ntasks-per-node", required_argument, nullptr, kTasksPerNode},
      {"nodelist", required_argument, nullptr, kNodeList},
      {"output", required_argument, nullptr, kOutput},
      {"error", required_argument, nullptr, kError},
      {"input", required_argument, nullptr, kInput},
      {"chdir", required_argument, nullptr, kFolder},
      {"label", no_argument, nullptr, kLabel},
      {"kill-on-bad-exit", optional_argument, nullptr, kKill},
      {"overcommit", no_argument, nullptr, kOvercommit},
      {"overlap", no_argument, nullptr, kOverlap},
      {"gpus", required_argument, nullptr, kGpus},
      {"gpus-per-node", required_argument, nullptr, kGpusPerNode},
      {"gres", required_argument, nullptr, kGres},
      {"export", required_argument, nullptr, kExport},
      {"exclude", required_argument, nullptr, kExclude},
      {"relative", required_argument, nullptr, kRelative},
      {"distribution", required_argument, nullptr, kDistribution},
      {"open-mode", required_argument, nullptr, kOpenMode},
      {"job-name", required_argument, nullptr, kName},
      {"multi-prog", no_argument, nullptr, kMultiProg},
      {"confirm-interrupt", no_argument, nullptr, kConfirm},
  };
  for (const char* const name : kNotHere) {
    options.push_back({name, optional_argument, nullptr, kNotHereYet});
  }
  for (const char* const name : kWithValue) {
    options.push_back({name, required_argument, nullptr, kPassed});
  }
  for (const char* const name : kWithOptionalValue) {
    options.push_back({name, optional_argument, nullptr, kPassed});
  }
  for (const char* const name : kFlags) {
    options.push_back({name, no_argument, nullptr, kPassed});
  }
  options.push_back({});
  return options;
}

int OwnOf(int letter) {
  switch (letter) {
    case 'n':
      return kTasks;
    case 'N':
      return kNodes;
    case 'c':
      return kCpusPerTask;
    case 'w':
      return kNodeList;
    case 'o':
      return kOutput;
    case 'e':
      return kError;
    case 'i':
      return kInput;
    case 'D':
      return kFolder;
    case 'l':
      return kLabel;
    case 'K':
      return kKill;
    case 'G':
      return kGpus;
    case 'O':
      return kOvercommit;
    case 'x':
      return kExclude;
    case 'r':
      return kRelative;
    case 'm':
      return kDistribution;
    case 'J':
      return kName;
    default:
      return letter;
  }
}

Result<int> CountOf(const char* option, std::string_view text) {
  const auto number = base::ToInteger<int>(text);
  return number && *number > 0 ? Result<int>(*number)
                               : Result<int>(InvalidArgument(fmt::format(
                                     "Invalid numeric value \"{}\" for {}.", text, option)));
}

// What the job has, by its variables.
struct StepsJob {
  int nodes = 1;
  int tasks = 0;  // 0: it does not say
  std::vector<std::string> names;
  std::string number;
};

class StepReader {
 public:
  explicit StepReader(const StepOptions::Environment& environment) {
    const auto count = [&environment](const char* name) {
      return base::ToInteger<int>(environment(name)).value_or(0);
    };
    const auto is_on = [&environment](const char* name) {
      const std::string value = environment(name);
      return !value.empty() && value != "0";
    };
    const int nodes = count("SLURM_JOB_NUM_NODES");
    job_.nodes = std::max(1, nodes > 0 ? nodes : count("SLURM_NNODES"));
    job_.tasks = count("SLURM_NTASKS");
    job_.number = environment("SLURM_JOB_ID");
    if (auto names = base::ExpandNames(environment("SLURM_JOB_NODELIST")); names.ok()) {
      job_.names = std::move(names).value();
    }
    tasks_per_node_ = base::ToInteger<int>(environment("SLURM_NTASKS_PER_NODE"));
    step_.label = is_on("SLURM_LABELIO");
    step_.kill_on_bad_exit = is_on("SLURM_KILL_BAD_EXIT");
    const std::string per_task = environment("SLURM_GPUS_PER_TASK");
    step_.gpus_per_task =
        base::ToInteger<int>(std::string_view(per_task).substr(per_task.rfind(':') + 1))
            .value_or(0);
  }

  Result<StepOptions> Read(const std::vector<std::string>& words) {
    std::vector<std::string> copies{"srun"};
    copies.insert(copies.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    arguments.reserve(copies.size() + 1);
    for (std::string& word : copies) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    const std::vector<option> options = LongOptions();
    const auto count = static_cast<int>(copies.size());
    optind = 0;
    opterr = 0;
    constexpr const char* kLetters =
        "+:n:N:c:w:o:e:i:D:lK::OG:J:p:A:t:m:x:C:q:r:T:W:uQvkEXB:b:d:F:HI::L:M:S:s";
    for (int letter = 0;
         (letter = getopt_long(count, arguments.data(), kLetters, options.data(), nullptr)) >= 0;) {
      const std::string& word = copies[static_cast<std::size_t>(std::max(1, optind - 1))];
      if (letter == '?') {
        return InvalidArgument(
            optopt != 0 && optopt < kTasks
                ? fmt::format("invalid option -- '{}'", static_cast<char>(optopt))
                : fmt::format("unrecognized option '{}'", word));
      }
      if (letter == kNotHereYet) {
        return Failed(fmt::format("'{}' is not here; expected a step of tasks", word));
      }
      if (letter == ':') {
        return InvalidArgument(fmt::format("option '{}' requires an argument", word));
      }
      RETURN_IF_ERROR(Take(OwnOf(letter), optarg == nullptr ? "" : optarg));
    }
    step_.command.assign(copies.begin() + optind, copies.end());
    RETURN_IF_ERROR(Settle());
    return step_;
  }

 private:
  // Where the option's text goes; null: it is none.
  std::string* TextOf(int option) {
    switch (option) {
      case kNodeList:
        return &node_list_;
      case kOutput:
        return &step_.output;
      case kError:
        return &step_.errors;
      case kInput:
        return &step_.input;
      case kFolder:
        return &step_.folder;
      case kExport:
        return &step_.exported;
      case kExclude:
        return &excluded_;
      case kName:
        return &step_.name;
      default:
        return nullptr;
    }
  }

  Status Take(int option, const std::string& value) {
    if (std::string* const text = TextOf(option)) {
      *text = value;
      return {};
    }
    switch (option) {
      case kLabel:
        step_.label = true;
        return {};
      case kKill:
        step_.kill_on_bad_exit = value != "0" && value != "=0";
        return {};
      case kOvercommit:
        step_.overcommits = true;
        return {};
      case kDistribution:
        step_.cyclic = value.starts_with("cyclic");
        return {};
      case kOpenMode:
        step_.appends = value.starts_with("a");
        return {};
      case kOverlap:
        step_.overlaps = true;
        return {};
      case kConfirm:
        step_.confirms_interrupt = true;
        return {};
      case kMultiProg:
        multi_prog_ = true;
        return {};
      default:
        return TakeCount(option, value);
    }
  }

  // What has no count is passed over.
  Status TakeCount(int option, const std::string& value) {
    const std::string_view behind_type = std::string_view(value).substr(value.rfind(':') + 1);
    switch (option) {
      case kTasks: {
        ASSIGN_OR_RETURN(tasks_, CountOf("--ntasks", value));
        return {};
      }
      case kNodes: {
        ASSIGN_OR_RETURN(nodes_, CountOf("--nodes", value.substr(0, value.find('-'))));
        return {};
      }
      case kTasksPerNode: {
        ASSIGN_OR_RETURN(tasks_per_node_, CountOf("--ntasks-per-node", value));
        return {};
      }
      case kCpusPerTask: {
        ASSIGN_OR_RETURN(step_.cpus_per_task, CountOf("--cpus-per-task", value));
        return {};
      }
      case kRelative: {
        const auto first = base::ToInteger<int>(value);
        if (!first || *first < 0 || *first >= job_.nodes) {
          return InvalidArgument(
              fmt::format("Invalid numeric value \"{}\" for --relative.", value));
        }
        step_.first_node = *first;
        return {};
      }
      case kGpusPerTask: {
        ForgetGpus();
        ASSIGN_OR_RETURN(step_.gpus_per_task, CountOf("--gpus-per-task", behind_type));
        return {};
      }
      case kGpus: {
        ForgetGpus();
        ASSIGN_OR_RETURN(step_.gpus, CountOf("--gpus", behind_type));
        return {};
      }
      case kGpusPerNode: {
        ForgetGpus();
        ASSIGN_OR_RETURN(step_.gpus_per_node, CountOf("--gpus-per-node", behind_type));
        return {};
      }
      case kGres: {
        if (value.starts_with("gpu")) {
          ForgetGpus();
          ASSIGN_OR_RETURN(
              step_.gpus_per_node,
              CountOf("--gres",
                      value.find(':') == std::string::npos ? std::string_view("1") : behind_type));
        }
        return {};
      }
      default:
        return {};
    }
  }

  void ForgetGpus() { step_.gpus = step_.gpus_per_node = step_.gpus_per_task = 0; }

  [[nodiscard]] Error NotAvailable() const {
    return InvalidArgument(
        fmt::format("Unable to create step for job {}: Requested node configuration is not "
                    "available",
                    job_.number));
  }

  Status TakeNodeLists() {
    if (!node_list_.empty()) {
      ASSIGN_OR_RETURN(step_.node_list, base::ExpandNames(node_list_));
    }
    if (!excluded_.empty()) {
      ASSIGN_OR_RETURN(step_.excluded, base::ExpandNames(excluded_));
    }
    for (const std::string& name : step_.node_list) {
      if (!job_.names.empty() &&
          std::find(job_.names.begin(), job_.names.end(), name) == job_.names.end()) {
        return NotAvailable();
      }
    }
    return {};
  }

  // On how many nodes, and with how many tasks.
  Status Settle() {
    if (step_.command.empty()) {
      return InvalidArgument("No command given to execute.");
    }
    if (std::find(step_.command.begin(), step_.command.end(), ":") != step_.command.end()) {
      return Failed("steps of several parts (':') are not here; expected one command");
    }
    RETURN_IF_ERROR(TakeNodeLists());
    int nodes = nodes_.value_or(job_.nodes);
    const std::optional<int> tasks = tasks_           ? tasks_
                                     : job_.tasks > 0 ? std::optional(job_.tasks)
                                                      : std::nullopt;
    step_.tasks = tasks.value_or(nodes * tasks_per_node_.value_or(1));
    if (step_.tasks < nodes) {
      step_.notes.push_back(
          fmt::format("Warning: can't run {} processes on {} nodes, setting nnodes to {}",
                      step_.tasks, nodes, step_.tasks));
      nodes = step_.tasks;
    }
    if (tasks_per_node_ && step_.tasks != nodes && *tasks_per_node_ * nodes != step_.tasks) {
      step_.notes.push_back(
          fmt::format("Warning: can't honor --ntasks-per-node set to {} which doesn't match the "
                      "requested tasks {} with the number of requested nodes {}. Ignoring "
                      "--ntasks-per-node.",
                      *tasks_per_node_, step_.tasks, nodes));
    }
    if (nodes > job_.nodes) {
      return InvalidArgument(
          fmt::format("Only allocated {} nodes asked for {}", job_.nodes, nodes));
    }
    if (step_.node_list.size() > static_cast<std::size_t>(nodes)) {
      step_.node_list.resize(static_cast<std::size_t>(nodes));
    }
    step_.nodes = nodes;
    return multi_prog_ ? TakePrograms() : Status();
  }

  Status TakePrograms() {
    const std::string& path = step_.command.front();
    Result<std::string> text = io::ReadFile(path);
    if (!text.ok()) {
      return Failed(fmt::format("Could not open multi_prog config file {}", path));
    }
    ASSIGN_OR_RETURN(step_.programs,
                     ReadStepPrograms(text.value(), path, step_.tasks,
                                      {step_.command.begin() + 1, step_.command.end()}));
    return {};
  }

  StepsJob job_;
  StepOptions step_;
  std::optional<int> tasks_;
  std::optional<int> nodes_;
  std::optional<int> tasks_per_node_;
  bool multi_prog_ = false;
  std::string node_list_;
  std::string excluded_;
};

}  // namespace

std::string JobVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<StepOptions> StepOptions::Read(const std::vector<std::string>& words,
                                      const Environment& environment) {
  return StepReader(environment).Read(words);
}

}  // namespace trainyard::supervisor
