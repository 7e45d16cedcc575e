// SPDX-License-Identifier: Apache-2.0
#include "model/request/tasks.h"

#include <algorithm>
#include <string>

namespace trainyard::model {
namespace {

std::string CountText(int count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// The multiples of `of` beside `count`: "8 or 12 tasks".
std::string NearestTasks(int count, int of) {
  const int below = count / of * of;
  return (below > 0 ? std::to_string(below) + " or " : "") + CountText(below + of, "task");
}

// On how many nodes the job lies in any case; 0: that is not known.
int NodesKnown(const NodeRequest& request, int gpus) {
  if (request.nodes.least > 0) {
    return request.nodes.least == request.nodes.most ? request.nodes.least : 0;
  }
  const bool is_free = request.node_list.empty() && request.constraint.empty();
  return gpus == 1 || (gpus == 0 && is_free) ? 1 : 0;
}

Per WithoutTasks(int gpus) { return gpus > 0 ? Per::kGpu : Per::kNode; }

}  // namespace

Result<TasksOnNodes> SettleTasks(TaskCounts stated, const NodeRequest& request, int gpus) {
  const auto [tasks, per_node] = stated;
  if (tasks == 0) {
    return TasksOnNodes{.per_node = per_node, .nodes = request.nodes};
  }
  const std::string its_tasks = "its " + CountText(tasks, "task");
  if (per_node > 0) {
    if (tasks % per_node != 0) {
      return InvalidArgument(its_tasks + ", " + std::to_string(per_node) +
                             " on each node, are on no whole number of nodes; expected " +
                             NearestTasks(tasks, per_node));
    }
    const int nodes = tasks / per_node;
    const NodeCount& asked = request.nodes;
    if (asked.least > 0 && (nodes < asked.least || nodes > asked.most)) {
      return InvalidArgument(
          its_tasks + ", " + std::to_string(per_node) + " on each node, are on " +
          CountText(nodes, "node") + ", and it asks for " + TextOf(asked) + "; expected " +
          CountText(per_node * (nodes < asked.least ? asked.least : asked.most), "task") + ", or " +
          CountText(nodes, "node"));
    }
    return TasksOnNodes{.per_node = per_node, .nodes = {.least = nodes, .most = nodes}};
  }
  const int nodes = NodesKnown(request, gpus);
  if (nodes == 0) {
    return InvalidArgument("nothing says on how many nodes " + its_tasks +
                           " are; expected one number of nodes with them (1: all of them on one), "
                           "or how many are on each node");
  }
  if (tasks % nodes != 0) {
    return InvalidArgument(its_tasks + " cannot be on " + CountText(nodes, "node") +
                           ", the same number on each; expected " + NearestTasks(tasks, nodes));
  }
  return TasksOnNodes{.per_node = tasks / nodes, .nodes = request.nodes};
}

bool IsPerTask(std::string_view text) { return text.ends_with("/task"); }

CpuRequest ForTasks(CpuRequest of_task, int tasks_per_node, int gpus) {
  return {.milli = of_task.milli * std::max(1, tasks_per_node),
          .per = tasks_per_node > 0 ? Per::kNode : WithoutTasks(gpus)};
}

MemoryRequest ForTasks(MemoryRequest of_task, int tasks_per_node, int gpus) {
  return {.mib = of_task.mib * std::max(1, tasks_per_node),
          .per = tasks_per_node > 0 ? Per::kNode : WithoutTasks(gpus)};
}

}  // namespace trainyard::model
