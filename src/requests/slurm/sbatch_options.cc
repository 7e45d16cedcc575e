// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/sbatch_options.h"

#include <algorithm>
#include <array>

namespace trainyard::requests {
namespace {

using Option = SbatchOption;
using enum SbatchOption::Value;
using enum SbatchOption::Use;

constexpr std::string_view kByNumber =
    "it has no effect here: CPUs are given by number, not by their places";
constexpr std::string_view kPlaced = "it has no effect here: the placement chooses the nodes";
constexpr std::string_view kShown = "it is shown by 'trainyard status JOB', and decides nothing";
constexpr std::string_view kCluster = "it has no effect here: this cluster has no such thing";
constexpr std::string_view kAsks = "it has no effect here: it only says how sbatch itself answers";
constexpr std::string_view kGpusInAll = "it is --gpus here, the number in all, with --gpu-types";
constexpr std::string_view kLogs =
    "'trainyard logs JOB' shows the output; in a script it is a line #SBATCH --output";
constexpr std::string_view kOther = "it is not known here, and the job would be another without it";

constexpr std::array kOptions{
    Option{"account", 'A', kNeeded, kDone, "it is --account here"},
    Option{"acctg-freq", 0, kNeeded, kNoEffect, "it has no effect here: agents look as they do"},
    Option{"array", 'a', kNeeded, kDone, "it is --array here"},
    Option{"batch", 0, kNeeded, kRefused, kOther},
    Option{"bb", 0, kNeeded, kRefused, "there are no burst buffers here"},
    Option{"bbf", 0, kNeeded, kRefused, "there are no burst buffers here"},
    Option{"begin", 'b', kNeeded, kDone, "it is --begin here"},
    Option{"chdir", 'D', kNeeded, kDone, "it is --cwd here"},
    Option{"cluster-constraint", 0, kNeeded, kRefused, "there is one cluster here: --controller"},
    Option{"clusters", 'M', kNeeded, kRefused, "it is --controller here"},
    Option{"comment", 0, kNeeded, kKept, kShown},
    Option{"constraint", 'C', kNeeded, kDone, "it is --constraint here"},
    Option{"container", 0, kNeeded, kRefused, "it is --container-image here"},
    Option{"contiguous", 0, kNone, kNoEffect, kPlaced},
    Option{"core-spec", 'S', kNeeded, kNoEffect, kByNumber},
    Option{"cores-per-socket", 0, kNeeded, kNoEffect, kByNumber},
    Option{"cpu-freq", 0, kNeeded, kNoEffect, "it has no effect here: nothing sets frequencies"},
    Option{"cpus-per-gpu", 0, kNeeded, kDone, "it is --cpus 4/gpu here"},
    Option{"cpus-per-task", 'c', kNeeded, kDone,
           "it is --cpus here, for the job, each node, GPU or task: 4/task"},
    Option{"deadline", 0, kNeeded, kNoEffect,
           "it has no effect here: a job is not ended for it; --deadline is for policies that heed "
           "it"},
    Option{"delay-boot", 0, kNeeded, kNoEffect, kCluster},
    Option{"dependency", 'd', kNeeded, kDone, "it is --dependency here"},
    Option{"distribution", 'm', kNeeded, kNoEffect, kPlaced},
    Option{"error", 'e', kNeeded, kDone, kLogs},
    Option{"exclude", 'x', kNeeded, kDone, "it is --exclude here"},
    Option{"exclusive", 0, kOptional, kDone, "it is --exclusive here"},
    Option{"export", 0, kNeeded, kDone, "it is --env NAME=VALUE here"},
    Option{"export-file", 0, kNeeded, kRefused, "it is --env NAME=VALUE here"},
    Option{"extra-node-info", 'B', kNeeded, kNoEffect, kByNumber},
    Option{"get-user-env", 0, kOptional, kNoEffect,
           "it has no effect here: the job has the environment of its submission"},
    Option{"gid", 0, kNeeded, kRefused, "a job has the group of its user here"},
    Option{"gpu-bind", 0, kNeeded, kNoEffect, kByNumber},
    Option{"gpu-freq", 0, kNeeded, kNoEffect, "it has no effect here: nothing sets frequencies"},
    Option{"gpus", 'G', kNeeded, kDone, "it is --gpus here"},
    Option{"gpus-per-node", 0, kNeeded, kDone, kGpusInAll},
    Option{"gpus-per-socket", 0, kNeeded, kRefused, kGpusInAll},
    Option{"gpus-per-task", 0, kNeeded, kDone, kGpusInAll},
    Option{"gres", 0, kNeeded, kDone, "it is --gpus here, with --gpu-types"},
    Option{"gres-flags", 0, kNeeded, kNoEffect, kByNumber},
    Option{"help", 'h', kNone, kNoEffect, kAsks},
    Option{"hint", 0, kNeeded, kNoEffect, kByNumber},
    Option{"hold", 'H', kNone, kDone, "it is --hold here"},
    Option{"ignore-pbs", 0, kNone, kNoEffect, "it has no effect here: no #PBS lines are read"},
    Option{"input", 'i', kNeeded, kDone, "'trainyard run' hands its standard input on"},
    Option{"job-name", 'J', kNeeded, kDone, "it is --name here"},
    Option{"kill-on-invalid-dep", 0, kNeeded, kDone,
           "no, which is the default, is --keep-on-invalid-dep"},
    Option{"licenses", 'L', kNeeded, kDone, "it is --licenses here"},
    Option{"mail-type", 0, kNeeded, kDone, "it is --notify here"},
    Option{"mail-user", 0, kNeeded, kKept, "the controller's operator says where notices go"},
    Option{"mcs-label", 0, kNeeded, kRefused, "there are no such labels here"},
    Option{"mem", 0, kNeeded, kDone, "it is --memory 64G/node here"},
    Option{"mem-bind", 0, kNeeded, kNoEffect, kByNumber},
    Option{"mem-per-cpu", 0, kNeeded, kDone,
           "it is --memory here, for the job, each node or GPU: 64G/node"},
    Option{"mem-per-gpu", 0, kNeeded, kDone, "it is --memory 16G/gpu here"},
    Option{"mincpus", 0, kNeeded, kDone, "it is --cpus 16/node here"},
    Option{"network", 0, kNeeded, kNoEffect, kCluster},
    Option{"nice", 0, kOptional, kDone, "it is --priority here, where higher goes first"},
    Option{"no-kill", 'k', kOptional, kNoEffect,
           "it has no effect here: workers of a job run and end together"},
    Option{"no-requeue", 0, kNone, kDone, "it is --no-requeue here"},
    Option{"nodefile", 'F', kNeeded, kRefused, "it is --node-list here"},
    Option{"nodelist", 'w', kNeeded, kDone, "it is --node-list here"},
    Option{"nodes", 'N', kNeeded, kDone, "it is --nodes here"},
    Option{"ntasks", 'n', kNeeded, kDone, "it is --tasks here"},
    Option{"ntasks-per-core", 0, kNeeded, kNoEffect, kByNumber},
    Option{"ntasks-per-gpu", 0, kNeeded, kDone, "it is --workers per-gpu here"},
    Option{"ntasks-per-node", 0, kNeeded, kDone, "it is --tasks-per-node here"},
    Option{"ntasks-per-socket", 0, kNeeded, kNoEffect, kByNumber},
    Option{"open-mode", 0, kNeeded, kDone, "'trainyard logs JOB' shows the output of each attempt"},
    Option{"output", 'o', kNeeded, kDone, kLogs},
    Option{"overcommit", 'O', kNone, kNoEffect, kByNumber},
    Option{"oversubscribe", 's', kNone, kNoEffect,
           "it has no effect here: the policy says whether jobs share GPUs"},
    Option{"parsable", 0, kNone, kNoEffect, "it is --json here"},
    Option{"partition", 'p', kNeeded, kDone, "it is --queue here"},
    Option{"power", 0, kNeeded, kNoEffect, kCluster},
    Option{"prefer", 0, kNeeded, kNoEffect, kPlaced},
    Option{"priority", 0, kNeeded, kDone, "it is --priority here"},
    Option{"profile", 0, kNeeded, kNoEffect, kCluster},
    Option{"propagate", 0, kOptional, kNoEffect,
           "it has no effect here: a job has the limits of its node's agent"},
    Option{"qos", 'q', kNeeded, kKept, kShown},
    Option{"quiet", 'Q', kNone, kNoEffect, kAsks},
    Option{"reboot", 0, kNone, kRefused, "no node is started anew for a job here"},
    Option{"requeue", 0, kNone, kDone,
           "no option is needed: jobs are preempted and restarted as the policy says"},
    Option{"reservation", 0, kNeeded, kRefused, "there are no reservations here"},
    Option{"signal", 0, kNeeded, kDone,
           "each job gets notice before it has to leave: --grace says how long; see docs/live.md, "
           "Notice"},
    Option{"sockets-per-node", 0, kNeeded, kNoEffect, kByNumber},
    Option{"spread-job", 0, kNone, kNoEffect, kPlaced},
    Option{"switches", 0, kNeeded, kNoEffect, kPlaced},
    Option{"test-only", 0, kNone, kRefused,
           "it is --test-only of 'sbatch' and 'trainyard submit', and no line of a script"},
    Option{"thread-spec", 0, kNeeded, kNoEffect, kByNumber},
    Option{"threads-per-core", 0, kNeeded, kNoEffect, kByNumber},
    Option{"time", 't', kNeeded, kDone, "it is --time here"},
    Option{"time-min", 0, kNeeded, kNoEffect, "it has no effect here: the limit is that of --time"},
    Option{"tmp", 0, kNeeded, kDone, "it is --tmp here"},
    Option{"uid", 0, kNeeded, kRefused, "it is --user here"},
    Option{"usage", 0, kNone, kNoEffect, kAsks},
    Option{"use-min-nodes", 0, kNone, kNoEffect, kPlaced},
    Option{"verbose", 'v', kNone, kNoEffect, kAsks},
    Option{"version", 'V', kNone, kNoEffect, kAsks},
    Option{"wait", 'W', kNone, kRefused,
           "'trainyard run' waits for the end, and so does 'trainyard wait JOB'"},
    Option{"wait-all-nodes", 0, kNeeded, kNoEffect,
           "it has no effect here: workers start once all nodes are ready"},
    Option{"wckey", 0, kNeeded, kKept, kShown},
    Option{"wrap", 0, kNeeded, kRefused,
           "the command follows the options here: -- sh -c 'COMMAND'"}};

template <typename Matches>
const Option* FindOption(Matches matches) {
  const auto* const found = std::find_if(kOptions.begin(), kOptions.end(), matches);
  return found == kOptions.end() ? nullptr : found;
}

}  // namespace

std::span<const SbatchOption> SbatchOptions() { return kOptions; }

const SbatchOption* SbatchOptionNamed(std::string_view name) {
  const std::string_view known = name == "tasks-per-node" ? "ntasks-per-node" : name;
  return FindOption([known](const Option& option) { return option.name == known; });
}

const SbatchOption* SbatchOptionOf(char letter) {
  return letter == 0
             ? nullptr
             : FindOption([letter](const Option& option) { return option.letter == letter; });
}

}  // namespace trainyard::requests
