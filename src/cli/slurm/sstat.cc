// SPDX-License-Identifier: Apache-2.0
// sstat: what running jobs use. A job is one line, that of its batch step, with what all of its
// processes use together: there is no account of steps.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/try.h"
#include "cli/live/client_calls.h"
#include "cli/live/job_selection.h"
#include "cli/slurm/field_table.h"
#include "cli/slurm/slurm_commands.h"
#include "cli/slurm/slurm_facts.h"
#include "cli/slurm/slurm_steps.h"
#include "cli/slurm/slurm_words.h"
#include "requests/job_selection.h"

namespace trainyard::cli {
namespace {

using enum SlurmOption::Value;
using enum SlurmOption::Use;

constexpr const char* kSstat = "sstat";
constexpr std::array kSstatOptions{
    SlurmOption{"allsteps", 'a', kNone, kDone, ""},
    SlurmOption{"helpformat", 'e', kNone, kDone, ""},
    SlurmOption{"help", 'h', kNone, kDone, ""},
    SlurmOption{"pidformat", 'i', kNone, kRefused, "no numbers of processes are kept"},
    SlurmOption{"jobs", 'j', kNeeded, kDone, ""},
    SlurmOption{"noheader", 'n', kNone, kDone, ""},
    SlurmOption{"noconvert", 0, kNone, kNoEffect, ""},
    SlurmOption{"format", 'o', kNeeded, kDone, ""},
    SlurmOption{"parsable", 'p', kNone, kDone, ""},
    SlurmOption{"parsable2", 'P', kNone, kDone, ""},
    SlurmOption{"usage", 0, kNone, kDone, ""},
    SlurmOption{"verbose", 'v', kNone, kNoEffect, ""},
    SlurmOption{"version", 'V', kNone, kDone, ""},
};
constexpr const char* kSstatUsage =
    "Usage: sstat [options] -j <job(.stepid)>\n\tUse --help for help\n";
constexpr const char* kSstatHelp =
    "sstat [-a] [-e] [-n] [-o fields] [-p|-P] -j <job(.stepid)>\n"
    "Trainyard by the name of Slurm's sstat; see 'trainyard status JOB'.\n";
constexpr const char* kDefaultFormat =
    "JobID,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,"
    "MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,MaxPages,"
    "MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,"
    "MinCPUTask,AveCPU,NTasks,AveCPUFreq,ReqCPUFreqMin,"
    "ReqCPUFreqMax,ReqCPUFreqGov,ConsumedEnergy,MaxDiskRead,MaxDiskReadNode,"
    "MaxDiskReadTask,AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,"
    "AveDiskWrite,TRESUsageInAve,TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,"
    "TRESUsageInMin,TRESUsageInMinNode,TRESUsageInMinTask,TRESUsageInTot,TRESUsageOutAve,"
    "TRESUsageOutMax,TRESUsageOutMaxNode,TRESUsageOutMaxTask,TRESUsageOutMin,TRESUsageOutMinNode,"
    "TRESUsageOutMinTask,TRESUsageOutTot";

// What is measured is that of the whole job, and stands at its script.
struct SstatRow {
  const v1::JobStatus* job = nullptr;
  SlurmStep step{};
};
using SstatField = TableField<SstatRow>;

std::string Nothing(const SstatRow& /*row*/) { return {}; }
std::string StepText(const SstatRow& row) { return JobText(*row.job) + "." + row.step.id; }
std::string CpuTimeOfStep(const SstatRow& row) {
  return row.step.is_batch() ? SlurmLongSpan(row.job->use().cpu_s()) : std::string();
}
std::string Tasks(const SstatRow& row) { return std::to_string(row.step.tasks); }
std::string NodesOfStep(const SstatRow& row) {
  return row.step.is_batch() ? SlurmNodes(*row.job) : row.step.node_list;
}
std::string PeakNode(const SstatRow& row) {
  return row.step.is_batch() ? Printable(row.job->use().peak_node()) : std::string();
}
std::string PeakMemoryOfStep(const SstatRow& row) {
  constexpr std::int64_t kKiB = 1024;
  return row.step.is_batch() && row.job->use().peak_memory() > 0
             ? fmt::format("{}K", row.job->use().peak_memory() / kKiB)
             : "";
}

// In the order in which they are listed.
constexpr std::array kSstatFields{SstatField{"AveCPU", 10, CpuTimeOfStep},
                                  SstatField{"AveCPUFreq", 10, Nothing},
                                  SstatField{"AveDiskRead", 12, Nothing},
                                  SstatField{"AveDiskWrite", 12, Nothing},
                                  SstatField{"AvePages", 10, Nothing},
                                  SstatField{"AveRSS", 10, PeakMemoryOfStep},
                                  SstatField{"AveVMSize", 10, Nothing},
                                  SstatField{"ConsumedEnergy", 14, Nothing},
                                  SstatField{"ConsumedEnergyRaw", 17, Nothing},
                                  SstatField{"JobID", -12, StepText},
                                  SstatField{"MaxDiskRead", 12, Nothing},
                                  SstatField{"MaxDiskReadNode", 15, Nothing},
                                  SstatField{"MaxDiskReadTask", 15, Nothing},
                                  SstatField{"MaxDiskWrite", 12, Nothing},
                                  SstatField{"MaxDiskWriteNode", 16, Nothing},
                                  SstatField{"MaxDiskWriteTask", 16, Nothing},
                                  SstatField{"MaxPages", 8, Nothing},
                                  SstatField{"MaxPagesNode", 12, Nothing},
                                  SstatField{"MaxPagesTask", 14, Nothing},
                                  SstatField{"MaxRSS", 10, PeakMemoryOfStep},
                                  SstatField{"MaxRSSNode", 10, PeakNode},
                                  SstatField{"MaxRSSTask", 10, Nothing},
                                  SstatField{"MaxVMSize", 10, Nothing},
                                  SstatField{"MaxVMSizeNode", 14, Nothing},
                                  SstatField{"MaxVMSizeTask", 14, Nothing},
                                  SstatField{"MinCPU", 10, CpuTimeOfStep},
                                  SstatField{"MinCPUNode", 10, Nothing},
                                  SstatField{"MinCPUTask", 10, Nothing},
                                  SstatField{"Nodelist", 20, NodesOfStep},
                                  SstatField{"NTasks", 8, Tasks},
                                  SstatField{"Pids", 20, Nothing},
                                  SstatField{"ReqCPUFreq", 13, Nothing},
                                  SstatField{"ReqCPUFreqMin", 13, Nothing},
                                  SstatField{"ReqCPUFreqMax", 13, Nothing},
                                  SstatField{"ReqCPUFreqGov", 13, Nothing},
                                  SstatField{"TRESUsageInAve", 14, Nothing},
                                  SstatField{"TRESUsageInMax", 14, Nothing},
                                  SstatField{"TRESUsageInMaxNode", 18, Nothing},
                                  SstatField{"TRESUsageInMaxTask", 18, Nothing},
                                  SstatField{"TRESUsageInMin", 14, Nothing},
                                  SstatField{"TRESUsageInMinNode", 18, Nothing},
                                  SstatField{"TRESUsageInMinTask", 18, Nothing},
                                  SstatField{"TRESUsageInTot", 14, Nothing},
                                  SstatField{"TRESUsageOutAve", 15, Nothing},
                                  SstatField{"TRESUsageOutMax", 15, Nothing},
                                  SstatField{"TRESUsageOutMaxNode", 19, Nothing},
                                  SstatField{"TRESUsageOutMaxTask", 19, Nothing},
                                  SstatField{"TRESUsageOutMin", 15, Nothing},
                                  SstatField{"TRESUsageOutMinNode", 19, Nothing},
                                  SstatField{"TRESUsageOutMinTask", 19, Nothing},
                                  SstatField{"TRESUsageOutTot", 15, Nothing}};

// Four in a line, as there.
void ListFields() {
  constexpr std::size_t kInALine = 4;
  for (std::size_t i = 0; i < kSstatFields.size(); ++i) {
    const bool ends = (i + 1) % kInALine == 0 || i + 1 == kSstatFields.size();
    fmt::print("{:<19}{}", kSstatFields[i].heading, ends ? "\n" : " ");
  }
}

// The job of "12", "12_3" or "12.batch"; empty: it is none.
std::string JobOf(const std::string& item) {
  std::string id = item.substr(0, item.find('.'));
  return requests::ReadJobNumber(id).ok() ? id : std::string();
}

// The step that the item names; where it names none that of the script, or all that run. Jobs that
// are no scripts have one.
std::vector<SstatRow> RowsOf(const v1::JobStatus& job, const std::string& item, bool all) {
  std::vector<SstatRow> rows;
  if (SlurmState(job) != "RUNNING") {
    return rows;
  }
  const std::size_t point = item.find('.');
  const std::string named = point == std::string::npos ? "batch" : item.substr(point + 1);
  std::vector<SlurmStep> steps = SlurmStepsOf(job);
  if (steps.empty()) {
    steps.push_back({.id = "batch"});
  }
  for (SlurmStep& step : steps) {
    const bool runs = !step.ended;
    if (runs && (step.id == named || (all && point == std::string::npos))) {
      rows.push_back({.job = &job, .step = std::move(step)});
    }
  }
  return rows;
}

// A job that does not run is told, and the others are shown.
Status ShowUse(const SlurmWords& words, rpc::ClusterClient& client) {
  ASSIGN_OR_RETURN(std::vector<TableColumn<SstatRow>> columns,
                   TableColumns<SstatRow>(words.Value("format").value_or(kDefaultFormat),
                                          std::span<const SstatField>(kSstatFields)));
  std::vector<std::string> items = words.Items("jobs");
  items.insert(items.end(), words.rest.begin(), words.rest.end());
  const FieldTable<SstatRow> table(words, std::move(columns));
  fmt::print("{}", words.Has("noheader") ? "" : table.Heading());
  for (const std::string& item : items) {
    const std::string id = JobOf(item);
    if (id.empty()) {
      SlurmError(kSstat, fmt::format("Invalid job id specified: {}", item));
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<v1::JobStatus> jobs,
                     JobsOfIds(client, {id}, words.Has("allsteps") || id != item));
    const bool any = std::any_of(jobs.begin(), jobs.end(), [](const v1::JobStatus& job) {
      return SlurmState(job) == "RUNNING";
    });
    for (const v1::JobStatus& job : jobs) {
      for (const SstatRow& row : RowsOf(job, item, words.Has("allsteps"))) {
        fmt::print("{}", table.LineOf(row));
      }
    }
    if (!any) {
      SlurmError(kSstat, "couldn't get steps for job " + id);
    }
  }
  return {};
}

}  // namespace

int Sstat(const std::vector<std::string>& words) {
  const std::optional<SlurmWords> read = ReadSlurmWords(kSstat, words, kSstatOptions);
  if (!read) {
    return 1;
  }
  if (read->Has("help") || read->Has("usage")) {
    fmt::print("{}", read->Has("help") ? kSstatHelp : kSstatUsage);
    return 0;
  }
  if (read->Has("helpformat")) {
    ListFields();
    return 0;
  }
  if (!read->Has("jobs") && read->rest.empty()) {
    return SlurmError(kSstat, "You didn't give me any jobs to stat.");
  }
  const Result<std::unique_ptr<rpc::ClusterClient>> client = ConnectAsSlurm();
  const Status shown = client.ok() ? ShowUse(*read, *client.value()) : client.error();
  return shown.ok() ? 0 : SlurmError(kSstat, shown.error().message);
}

}  // namespace trainyard::cli
