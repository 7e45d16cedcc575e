// SPDX-License-Identifier: Apache-2.0
// Reads a script of Slurm line by line: what each option says of the job, and then what all of them
// say together (of tasks, GPUs, CPUs and memory).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "requests/slurm/batch_script.h"
#include "requests/slurm/gpu_list.h"
#include "requests/slurm/sbatch_options.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::requests {

// One option of a line, as it is written and as sbatch calls it in full.
struct Given {
  std::string name;   // "job-name"
  std::string value;  // empty: none
  std::string where;  // "train.sh:3: "

  [[nodiscard]] Error Bad(const std::string& expected) const {
    return BadInput(fmt::format("{}--{} is '{}'; expected {}", where, name, value, expected));
  }
  [[nodiscard]] Error Wrong(const std::string& what) const {
    return BadInput(fmt::format("{}--{} is '{}': {}", where, name, value, what));
  }
};

// " (train.sh:3)" of "train.sh:3: "; of an option of the command, which has no place, nothing.
[[nodiscard]] std::string PlaceText(std::string_view where);

// A number of the lines, and where it stands.
struct Count {
  std::optional<std::int64_t> number;
  std::string where;  // "train.sh:3: "

  explicit operator bool() const { return number.has_value(); }
  std::int64_t operator*() const { return *number; }
};

// What the lines say of GPUs and tasks, which belong together.
struct Counts {
  Count gpus;
  Count gpus_per_node;
  bool by_gres = false;  // --gres has said so
  Count gpus_per_task;
  Count nodes;
  Count tasks;
  Count tasks_per_node;
  Count tasks_per_gpu;
  Count cpus_per_task;
};

// Takes the lines of one script.
class ScriptReader {
 public:
  ScriptReader(const std::string& path, v1::JobRequest& job) : job_(job) { script_.path_ = path; }

  [[nodiscard]] Result<BatchScript> Read(std::string_view text);
  // It is one of sbatch, with these options.
  void Take(const SbatchCall& call) {
    has_lines_ = true;
    call_ = &call;
  }

  // One option each.
  Status SetKey(const Given& given, std::string_view key, const std::string& text);
  Status SetTimeLimit(const Given& given);
  Status SetExport(const Given& given);
  Status SetMail(const Given& given);
  Status SetGres(const Given& given);
  Status SetNodes(const Given& given);
  template <char kPer>
  Status SetCpus(const Given& given);
  Status SetNice(const Given& given);
  Status SetOpenMode(const Given& given);
  Status SetSignal(const Given& given);
  template <char kPer>
  Status SetMemory(const Given& given);
  Status SetExclusive(const Given& given);
  Status SetOutput(const Given& given) { return SetFile(given, script_.output_); }
  Status SetErrors(const Given& given) { return SetFile(given, script_.errors_); }
  Status SetInput(const Given& given) { return SetFile(given, script_.input_); }
  template <Count Counts::*kCount>
  Status SetCount(const Given& given);
  template <Count Counts::*kCount>
  Status SetGpuCount(const Given& given);
  Status SetHold(const Given& given) { return SetKey(given, "hold", "true"); }
  Status SetKillOnInvalidDep(const Given& given);
  template <bool kSays>
  Status SetNoRequeue(const Given& given) {
    return SetKey(given, "no_requeue", kSays ? "true" : "false");
  }

 private:
  Status TakeGpus(const Given& given, const Result<GpuList>& list, Count& count);
  static Status SetFile(const Given& given, BatchScript::Output& file);
  Status TakeOption(const SbatchOption& option, const Given& given);
  [[nodiscard]] bool TakeHead(const std::string& line, int number);
  [[nodiscard]] Result<BatchScript> Finish(std::string_view text);
  void TakeLine(std::string_view line, const std::string& where);
  void Keep(std::string_view name, const std::string& value);
  void TakeEnvironment();
  void TakeCall();
  void ExportAll();
  Status SettleExport();
  Status SettleCounts();
  Status SettleTasks(std::int64_t nodes, std::optional<std::int64_t> gpus);
  Status SettleCpus(std::int64_t nodes, std::int64_t tasks, bool on_cpus);
  void AddVariables();
  void Warn(std::string_view text);
  void WarnOfCalls(std::string_view text);
  void Note(const Status& status) {
    if (!status.ok()) {
      faults_.push_back(status.error().message);
    }
  }
  void SetVariable(const std::string& name, const std::string& value) {
    static_cast<void>(SetJobOption("env", name + "=" + value, job_).ok());
  }

  BatchScript script_;
  v1::JobRequest& job_;
  Counts counts_;
  std::optional<Given> memory_per_cpu_;
  std::optional<Given> export_;
  std::vector<std::string> ignored_;  // "lscratch:3 (train.sh:2)"
  std::vector<std::string> faults_;
  bool has_lines_ = false;
  const SbatchCall* call_ = nullptr;  // null: it is no call of sbatch
  int first_command_ = 0;             // its line; 0: none yet
};

}  // namespace trainyard::requests
