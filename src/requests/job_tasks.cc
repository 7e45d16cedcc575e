// SPDX-License-Identifier: Apache-2.0
#include "requests/job_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/try.h"
#include "live/jobs/job_request.h"
#include "model/request/tasks.h"
#include "requests/job_file.h"

namespace trainyard::requests {
namespace {

template <model::HasPer T>
void SettleAmount(int tasks_per_node, int gpus, std::string& text) {
  if (T of_task; model::ReadPerTask(text, of_task)) {
    text = model::TextOf(model::ForTasks(of_task, tasks_per_node, gpus));
  }
}

}  // namespace

Status CheckTaskKeys(const std::vector<std::string_view>& keys, const std::string& file) {
  const auto has = [&keys](std::string_view key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  const auto name = [&file](std::string_view key) {
    return file.empty() ? OptionName(key) : fmt::format("'{}'", key);
  };
  for (const std::string_view key : {"tasks", "tasks_per_node"}) {
    if (has(key) && has("workers")) {
      return Error{
          .code = file.empty() ? ErrorCode::kInvalidArgument : ErrorCode::kBadInput,
          .message = fmt::format("{}{} and {} both say how many workers there are; "
                                 "expected one of them",
                                 file.empty() ? "" : file + ": ", name(key), name("workers"))};
    }
  }
  return {};
}

Status SettleTasks(v1::JobRequest& job) {
  v1::LaunchSpec& launch = *job.mutable_launch();
  const bool has_counts = launch.tasks() > 0 || launch.workers_per_node() > 0;
  const bool has_amounts = model::IsPerTask(job.cpus()) || model::IsPerTask(job.memory());
  if (!has_counts && !has_amounts) {
    return {};
  }
  if (launch.has_batch()) {
    return InvalidArgument(
        "a script with #SBATCH lines says what its tasks are as for Slurm; expected -n, "
        "--ntasks-per-node, --cpus-per-task or --mem-per-cpu in its lines or of sbatch, and no "
        "--tasks, --tasks-per-node or amounts for each task");
  }
  if (launch.workers() == v1::LaunchSpec::ONCE) {
    return InvalidArgument(
        "--workers once has one worker for all nodes of the job, and CPUs or memory are stated for "
        "each task; expected them for the job (8), or for each node (16/node)");
  }
  ASSIGN_OR_RETURN(
      const model::TasksOnNodes settled,
      model::SettleTasks({.tasks = launch.tasks(), .per_node = launch.workers_per_node()},
                         live::AsksOf(job), job.gpus()));
  launch.set_workers_per_node(settled.per_node);
  if (settled.nodes.least > 0) {
    job.set_nodes(model::TextOf(settled.nodes));
  }
  const bool one_each = settled.per_node == 0 && launch.workers() == v1::LaunchSpec::PER_NODE;
  const int per_node = one_each ? 1 : settled.per_node;
  SettleAmount<CpuRequest>(per_node, job.gpus(), *job.mutable_cpus());
  SettleAmount<MemoryRequest>(per_node, job.gpus(), *job.mutable_memory());
  return {};
}

}  // namespace trainyard::requests
