// SPDX-License-Identifier: Apache-2.0
#include "live/attempts/slurm_variables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/name_list.h"
#include "base/text.h"
#include "model/conditions.h"

namespace trainyard::live {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

// "2(x3),1": runs of the same number, as Slurm writes them.
std::string RunsOf(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end < numbers.size() && numbers[end] == numbers[i]) {
      ++end;
    }
    text += text.empty() ? "" : ",";
    text += end - i > 1 ? fmt::format("{}(x{})", numbers[i], end - i) : std::to_string(numbers[i]);
    i = end;
  }
  return text;
}

// That of the ranges, where all have the same; 1 otherwise.
std::string StepOf(std::string_view indices) {
  std::string_view step;
  for (const std::string_view part : base::Split(indices.substr(0, indices.find('%')), ",")) {
    const std::size_t colon = part.find(':');
    const std::string_view own = colon == std::string_view::npos ? "1" : part.substr(colon + 1);
    if (!step.empty() && own != step) {
      return "1";
    }
    step = own;
  }
  return std::string(step);
}

void AddTask(const SlurmTask& task, Variables& variables) {
  const auto add = [&variables](const char* name, std::int64_t value) {
    variables.emplace_back(name, std::to_string(value));
  };
  variables.emplace_back("SLURM_ARRAY_JOB_ID", std::to_string(task.array));
  add("SLURM_ARRAY_TASK_ID", task.index);
  const Result<model::ArrayTasks> tasks = model::ParseArray(task.indices);
  if (tasks.ok() && !tasks.value().indices.empty()) {
    add("SLURM_ARRAY_TASK_COUNT", static_cast<std::int64_t>(tasks.value().indices.size()));
    add("SLURM_ARRAY_TASK_MIN", tasks.value().indices.front());
    add("SLURM_ARRAY_TASK_MAX", tasks.value().indices.back());
    variables.emplace_back("SLURM_ARRAY_TASK_STEP", StepOf(task.indices));
  }
}

void AddPlaces(const SlurmJob& job, std::size_t place, Variables& variables) {
  const auto add = [&variables](const char* name, std::string value) {
    variables.emplace_back(name, std::move(value));
  };
  std::vector<std::string> nodes;
  std::vector<int> workers;
  std::vector<int> cpus;
  int tasks = 0;
  for (const SlurmPlace& there : job.places) {
    nodes.push_back(there.node);
    workers.push_back(there.workers);
    cpus.push_back(there.cpus);
    tasks += there.workers;
  }
  const std::string list = base::FoldNames(nodes);
  const std::string count = std::to_string(nodes.size());
  add("SLURM_JOB_NODELIST", list);
  add("SLURM_NODELIST", list);
  add("SLURM_JOB_NUM_NODES", count);
  add("SLURM_NNODES", count);
  add("SLURM_TASKS_PER_NODE", RunsOf(workers));
  if (job.states_tasks) {
    add("SLURM_NTASKS", std::to_string(tasks));
    add("SLURM_NPROCS", std::to_string(tasks));
  }
  const SlurmPlace& here = job.places[place];
  add("SLURMD_NODENAME", here.node);
  if (!here.gpus.empty()) {
    add("SLURM_GPUS_ON_NODE", std::to_string(here.gpus.size()));
    add("SLURM_JOB_GPUS", fmt::format("{}", fmt::join(here.gpus, ",")));
  }
  if (std::find(cpus.begin(), cpus.end(), 0) == cpus.end()) {
    add("SLURM_CPUS_ON_NODE", std::to_string(here.cpus));
    add("SLURM_JOB_CPUS_PER_NODE", RunsOf(cpus));
  }
  if (here.memory_mib > 0) {
    add("SLURM_MEM_PER_NODE", std::to_string(here.memory_mib));
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> SlurmVariables(const SlurmJob& job,
                                                                std::size_t place) {
  Variables variables;
  const auto add = [&variables](const char* name, std::string_view value) {
    if (!value.empty()) {
      variables.emplace_back(name, value);
    }
  };
  add("SLURM_JOB_ID", std::to_string(job.number));
  add("SLURM_JOBID", std::to_string(job.number));
  add("SLURM_JOB_NAME", job.name);
  add("SLURM_JOB_USER", job.user);
  add("SLURM_JOB_PARTITION", job.queue);
  add("SLURM_CLUSTER_NAME", job.cluster);
  add("SLURM_LAUNCH_NODE_IPADDR", job.address);
  if (job.attempt > 1) {
    add("SLURM_RESTART_COUNT", std::to_string(job.attempt - 1));
  }
  if (job.task) {
    AddTask(*job.task, variables);
  }
  AddPlaces(job, place, variables);
  return variables;
}

}  // namespace trainyard::live
