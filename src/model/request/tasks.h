// SPDX-License-Identifier: Apache-2.0
// Tasks: the workers of a job as users count them, in all or on each of its nodes, and what a job
// asks for each of them ("4/task").
#pragma once

#include <string>
#include <string_view>

#include "model/request/node_request.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::model {

inline constexpr int kMostTasksOnNode = 4096;

// What a job states of its tasks.
struct TaskCounts {
  int tasks = 0;     // in all; 0: not stated
  int per_node = 0;  // 0: not stated
};

// What that comes to, the same number on each node.
struct TasksOnNodes {
  int per_node = 0;  // 0: it states none
  NodeCount nodes;   // that it is to lie on; 0: any number
};

// Of a job that asks for so many GPUs and, beside them, for `request`. Errors: the tasks cannot be
// the same number on each node, with the nearest that can; nothing says on how many nodes they are.
[[nodiscard]] Result<TasksOnNodes> SettleTasks(TaskCounts stated, const NodeRequest& request,
                                               int gpus);

// CpuRequest, MemoryRequest.
template <typename T>
concept HasPer = HasText<T> && requires(T amount) {
  amount.per = Per::kNode;
};

// Whether the text is of the form "4/task".
[[nodiscard]] bool IsPerTask(std::string_view text);

// What one task needs, of "4/task"; false: the text is no such amount.
template <HasPer T>
[[nodiscard]] bool ReadPerTask(std::string_view text, T& of_task) {
  return IsPerTask(text) && ReadText(text.substr(0, text.rfind('/')), of_task) &&
         of_task.per == Per::kJob;
}

// What texts of the type look like where the tasks of a job are known, for messages.
template <HasText T>
[[nodiscard]] std::string ExpectedOfJob(const T& value) {
  return std::string(ExpectedText(value)) + (HasPer<T> ? "; N/task is for each of its tasks" : "");
}

// What a job needs of one task's amount: for each node with so many tasks, or, where it states none
// (0), for each worker that it has by default: one for each GPU, and without GPUs one on each node.
[[nodiscard]] CpuRequest ForTasks(CpuRequest of_task, int tasks_per_node, int gpus);
[[nodiscard]] MemoryRequest ForTasks(MemoryRequest of_task, int tasks_per_node, int gpus);

}  // namespace trainyard::model
