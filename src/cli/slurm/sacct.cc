// SPDX-License-Identifier: Apache-2.0
// sacct: what has become of jobs, and of the steps of their scripts.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/live/client_calls.h"
#include "cli/live/job_selection.h"
#include "cli/live/status/array_lines.h"
#include "cli/slurm/field_table.h"
#include "cli/slurm/slurm_commands.h"
#include "cli/slurm/slurm_facts.h"
#include "cli/slurm/slurm_filter.h"
#include "cli/slurm/slurm_json.h"
#include "cli/slurm/slurm_steps.h"
#include "cli/slurm/slurm_words.h"
#include "requests/slurm/slurm_time.h"

namespace trainyard::cli {
namespace {

using enum SlurmOption::Value;
using enum SlurmOption::Use;

constexpr const char* kSacct = "sacct";
constexpr std::string_view kStatusJson = "'trainyard status --all --json' has the same";
constexpr std::array kSacctOptions{
    SlurmOption{"accounts", 'A', kNeeded, kDone, ""},
    SlurmOption{"allocations", 'X', kNone, kDone, ""},
    SlurmOption{"allusers", 'a', kNone, kDone, ""},
    SlurmOption{"brief", 'b', kNone, kDone, ""},
    SlurmOption{"clusters", 'M', kNeeded, kRefused, "TRAINYARD_CONTROLLER names the cluster"},
    SlurmOption{"completion", 'c', kNone, kRefused, "there is one record of jobs"},
    SlurmOption{"delimiter", 0, kNeeded, kDone, ""},
    SlurmOption{"duplicates", 'D', kNone, kNoEffect, ""},
    SlurmOption{"endtime", 'E', kNeeded, kDone, ""},
    SlurmOption{"file", 'f', kNeeded, kRefused, "the controller has the jobs"},
    SlurmOption{"format", 'o', kNeeded, kDone, ""},
    SlurmOption{"help", 'h', kNone, kDone, ""},
    SlurmOption{"helpformat", 'e', kNone, kDone, ""},
    SlurmOption{"jobs", 'j', kNeeded, kDone, ""},
    SlurmOption{"json", 0, kNone, kDone, ""},
    SlurmOption{"local", 'L', kNone, kNoEffect, ""},
    SlurmOption{"name", 0, kNeeded, kDone, ""},
    SlurmOption{"nodelist", 'N', kNeeded, kDone, ""},
    SlurmOption{"noconvert", 0, kNone, kNoEffect, ""},
    SlurmOption{"noheader", 'n', kNone, kDone, ""},
    SlurmOption{"parsable", 'p', kNone, kDone, ""},
    SlurmOption{"parsable2", 'P', kNone, kDone, ""},
    SlurmOption{"partition", 'r', kNeeded, kDone, ""},
    SlurmOption{"qos", 'q', kNeeded, kDone, ""},
    SlurmOption{"starttime", 'S', kNeeded, kDone, ""},
    SlurmOption{"state", 's', kNeeded, kDone, ""},
    SlurmOption{"truncate", 'T', kNone, kNoEffect, ""},
    SlurmOption{"uid", 0, kNeeded, kDone, ""},
    SlurmOption{"units", 0, kNeeded, kNoEffect, ""},
    SlurmOption{"usage", 0, kNone, kDone, ""},
    SlurmOption{"user", 'u', kNeeded, kDone, ""},
    SlurmOption{"verbose", 'v', kNone, kNoEffect, ""},
    SlurmOption{"version", 'V', kNone, kDone, ""},
    SlurmOption{"wckeys", 'W', kNeeded, kRefused, "jobs are not chosen by it"},
    SlurmOption{"yaml", 0, kNone, kRefused, kStatusJson},
};
constexpr const char* kSacctUsage =
    "Usage: sacct [-A accounts] [-a] [-b] [-e] [-E end] [-j job(s)] [--name names] [-n]\n"
    "             [-N nodes] [-o fields] [-p|-P] [-q qos] [-r partitions] [-s states] [-S start]\n"
    "             [-u users] [-X]\n"
    "Trainyard by the name of Slurm's sacct; see 'trainyard status --all' and 'trainyard usage'.\n";

// A job, or the tasks of an array that wait.
struct SacctRow {
  JobLine line;
  std::string partition;
  const v1::JobStatus* job = line.job;
};

using SacctField = TableField<SacctRow>;

const v1::JobRequest& Asked(const SacctRow& row) { return row.job->request(); }

// "CANCELLED by 1001": the user who has cancelled it.
std::string StateWithUser(const SacctRow& row) {
  std::string state(SlurmState(*row.job));
  const std::string& by = row.job->changed_by();
  constexpr std::string_view kUid = "(uid ";
  const std::size_t at = by.rfind(kUid);
  if (row.job->state() != v1::CANCELLED || at == std::string::npos) {
    return state;
  }
  const std::size_t begin = at + kUid.size();
  return state + " by " + by.substr(begin, by.find_first_not_of("0123456789", begin) - begin);
}

std::string Tres(const SacctRow& row, bool given) {
  const v1::JobStatus& job = *row.job;
  if (given && !job.has_started()) {
    return "";
  }
  std::vector<std::string> parts{fmt::format("billing={}", SlurmCpus(job)),
                                 fmt::format("cpu={}", SlurmCpus(job))};
  if (const std::string gpus = SlurmGpus(job); !gpus.empty()) {
    const std::string count = gpus.substr(gpus.rfind(':') + 1);
    const std::size_t type = gpus.find(':');
    if (type != gpus.rfind(':')) {
      parts.push_back(fmt::format("gres/{}={}", gpus.substr(0, gpus.rfind(':')), count));
    }
    parts.push_back(fmt::format("gres/gpu={}", count));
  }
  if (const std::string memory = SlurmMemory(job); memory != "0") {
    parts.push_back("mem=" + memory);
  }
  parts.push_back(fmt::format("node={}", SlurmNodeCount(job)));
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string StampOr(bool given, double at) {
  return given ? SlurmStamp(at) : std::string("Unknown");
}

std::string PeakMemory(const SacctRow& row) {
  constexpr std::int64_t kKiB = 1024;
  return row.job->use().peak_memory() > 0 ? fmt::format("{}K", row.job->use().peak_memory() / kKiB)
                                          : std::string();
}

std::string ForSteps(const SacctRow& /*row*/) { return {}; }  // a job has none of its own

constexpr std::array kSacctFields{
    SacctField{"Account", 10, [](const SacctRow& row) { return Printable(Asked(row).account()); }},
    SacctField{"AllocCPUS", 10,
               [](const SacctRow& row) {
                 return std::to_string(row.job->has_started() ? SlurmCpus(*row.job) : 0);
               }},
    SacctField{"AllocNodes", 10,
               [](const SacctRow& row) {
                 return std::to_string(row.job->has_started() ? SlurmNodeCount(*row.job) : 0);
               }},
    SacctField{"AllocTRES", 10, [](const SacctRow& row) { return Tres(row, true); }},
    SacctField{"Comment", 14,
               [](const SacctRow& row) {
                 const std::string text = SlurmKept(*row.job, "comment");
                 return text == "(null)" ? std::string() : text;
               }},
    SacctField{
        "CPUTime", 10,
        [](const SacctRow& row) { return SlurmLongSpan(row.job->run_s() * SlurmCpus(*row.job)); }},
    SacctField{"CPUTimeRAW", 10,
               [](const SacctRow& row) {
                 return fmt::format("{:.0f}", row.job->run_s() * SlurmCpus(*row.job));
               }},
    SacctField{"Elapsed", 10, [](const SacctRow& row) { return SlurmLongSpan(row.job->run_s()); }},
    SacctField{"ElapsedRaw", 10,
               [](const SacctRow& row) { return fmt::format("{:.0f}", row.job->run_s()); }},
    SacctField{"Eligible", 19,
               [](const SacctRow& row) {
                 return SlurmStamp(row.job->submitted() + Asked(row).begin_s());
               }},
    SacctField{"End", 19,
               [](const SacctRow& row) { return StampOr(row.job->has_ended(), row.job->ended()); }},
    SacctField{"ExitCode", 8, [](const SacctRow& row) { return SlurmExitCode(*row.job); }},
    SacctField{"JobID", -12, [](const SacctRow& row) { return TextOf(row.line); }},
    SacctField{"JobIDRaw", -12, [](const SacctRow& row) { return std::to_string(row.job->job()); }},
    SacctField{"JobName", 10,
               [](const SacctRow& row) {
                 return Asked(row).name().empty() ? std::to_string(row.job->job())
                                                  : Printable(Asked(row).name());
               }},
    SacctField{"MaxRSS", 10, PeakMemory},
    SacctField{"NCPUS", 10,
               [](const SacctRow& row) {
                 return std::to_string(row.job->has_started() ? SlurmCpus(*row.job) : 0);
               }},
    SacctField{"NNodes", 8,
               [](const SacctRow& row) { return std::to_string(SlurmNodeCount(*row.job)); }},
    SacctField{"NodeList", 15,
               [](const SacctRow& row) {
                 return row.job->has_started() ? SlurmNodes(*row.job)
                                               : std::string("None assigned");
               }},
    SacctField{"NTasks", 8, ForSteps},
    SacctField{"Partition", 10, [](const SacctRow& row) { return Printable(row.partition); }},
    SacctField{"Priority", 10,
               [](const SacctRow& row) { return std::to_string(Asked(row).launch().priority()); }},
    SacctField{"QOS", 10,
               [](const SacctRow& row) {
                 const std::string text = SlurmKept(*row.job, "qos");
                 return text == "(null)" ? std::string() : text;
               }},
    SacctField{"Reason", 22, [](const SacctRow& row) { return row.job->reason_code(); }},
    SacctField{"ReqCPUS", 8,
               [](const SacctRow& row) { return std::to_string(SlurmCpus(*row.job)); }},
    SacctField{"ReqMem", 10, [](const SacctRow& row) { return SlurmMemory(*row.job); }},
    SacctField{"ReqNodes", 8,
               [](const SacctRow& row) { return std::to_string(SlurmNodeCount(*row.job)); }},
    SacctField{"ReqTRES", 10, [](const SacctRow& row) { return Tres(row, false); }},
    SacctField{
        "Start", 19,
        [](const SacctRow& row) { return StampOr(row.job->has_started(), row.job->started()); }},
    SacctField{"State", 10, StateWithUser},
    SacctField{"Submit", 19, [](const SacctRow& row) { return SlurmStamp(row.job->submitted()); }},
    SacctField{"Timelimit", 10,
               [](const SacctRow& row) {
                 return Asked(row).has_time_s() ? SlurmLongSpan(Asked(row).time_s())
                                                : std::string("UNLIMITED");
               }},
    SacctField{"TimelimitRaw", 12,
               [](const SacctRow& row) {
                 constexpr double kMinute = 60;
                 return Asked(row).has_time_s()
                            ? fmt::format("{:.0f}", Asked(row).time_s() / kMinute)
                            : std::string("UNLIMITED");
               }},
    SacctField{"TotalCPU", 10,
               [](const SacctRow& row) { return SlurmLongSpan(row.job->use().cpu_s()); }},
    SacctField{
        "UID", 6,
        [](const SacctRow& row) { return std::to_string(Asked(row).launch().owner().uid()); }},
    SacctField{"User", 9, [](const SacctRow& row) { return Printable(Asked(row).user()); }},
    SacctField{
        "WorkDir", 20,
        [](const SacctRow& row) { return Printable(Asked(row).launch().working_directory()); }},
};

// A step of the job of a row.
struct StepRow {
  const SacctRow& of;
  const SlurmStep& step;
};

// What a column shows of a step; the others show nothing.
struct StepCell {
  std::string_view heading;
  std::string (*text)(const StepRow& row) = nullptr;
};

constexpr auto kStepCpus = [](const StepRow& row) { return std::to_string(row.step.cpus); };
constexpr auto kStepNodes = [](const StepRow& row) { return std::to_string(row.step.nodes); };
constexpr auto kStepStart = [](const StepRow& row) { return SlurmStamp(row.step.started); };

double SecondsOf(const StepRow& row) {
  return row.step.ElapsedAt(static_cast<double>(std::time(nullptr)));
}

constexpr std::array kStepCells{
    StepCell{"Account", [](const StepRow& row) { return Printable(Asked(row.of).account()); }},
    StepCell{"AllocCPUS", kStepCpus},
    StepCell{"AllocNodes", kStepNodes},
    StepCell{"AllocTRES",
             [](const StepRow& row) {
               return fmt::format("cpu={},node={}", row.step.cpus, row.step.nodes);
             }},
    StepCell{"CPUTime",
             [](const StepRow& row) { return SlurmLongSpan(SecondsOf(row) * row.step.cpus); }},
    StepCell{
        "CPUTimeRAW",
        [](const StepRow& row) { return fmt::format("{:.0f}", SecondsOf(row) * row.step.cpus); }},
    StepCell{"Elapsed", [](const StepRow& row) { return SlurmLongSpan(SecondsOf(row)); }},
    StepCell{"ElapsedRaw",
             [](const StepRow& row) { return fmt::format("{:.0f}", SecondsOf(row)); }},
    StepCell{"Eligible", kStepStart},
    StepCell{"End",
             [](const StepRow& row) {
               return StampOr(row.step.ended.has_value(), row.step.ended.value_or(0));
             }},
    StepCell{"ExitCode", [](const StepRow& row) { return row.step.exit_code; }},
    StepCell{"JobID", [](const StepRow& row) { return TextOf(row.of.line) + "." + row.step.id; }},
    StepCell{
        "JobIDRaw",
        [](const StepRow& row) { return fmt::format("{}.{}", row.of.job->job(), row.step.id); }},
    StepCell{"JobName", [](const StepRow& row) { return row.step.name; }},
    StepCell{"MaxRSS",
             [](const StepRow& row) {
               return row.step.is_batch() ? PeakMemory(row.of) : std::string();
             }},
    StepCell{"NCPUS", kStepCpus},
    StepCell{"NNodes", kStepNodes},
    StepCell{"NodeList", [](const StepRow& row) { return row.step.node_list; }},
    StepCell{"NTasks", [](const StepRow& row) { return std::to_string(row.step.tasks); }},
    StepCell{"ReqCPUS", kStepCpus},
    StepCell{"Start", kStepStart},
    StepCell{"State", [](const StepRow& row) { return row.step.state; }},
    StepCell{"Submit", kStepStart},
};

std::string CellOf(std::string_view heading, const StepRow& row) {
  const auto* const cell =
      std::find_if(kStepCells.begin(), kStepCells.end(),
                   [heading](const StepCell& one) { return one.heading == heading; });
  return cell == kStepCells.end() ? std::string() : cell->text(row);
}

// The lines of a job and, unless they are not wanted, of its steps. Where --jobs names steps, only
// what it names.
std::string LinesOfRow(const SlurmWords& words, const FieldTable<SacctRow>& table,
                       const SacctRow& row) {
  const std::vector<std::string> named = words.Items("jobs");
  const std::string job = TextOf(row.line);
  const auto is_named = [&](const std::string& text) {
    return std::find(named.begin(), named.end(), text) != named.end();
  };
  const auto is_step = [&job](const std::string& name) { return name.starts_with(job + "."); };
  const bool all = is_named(job) || std::none_of(named.begin(), named.end(), is_step);
  std::string text = all ? table.LineOf(row) : std::string();
  for (const SlurmStep& step :
       words.Has("allocations") ? std::vector<SlurmStep>() : SlurmStepsOf(*row.job)) {
    if (all || is_named(job + "." + step.id)) {
      text += table.LineBy([&](const TableColumn<SacctRow>& column) {
        return CellOf(column.field->heading, {.of = row, .step = step});
      });
    }
  }
  return text;
}

std::string FormatOf(const SlurmWords& words) {
  const char* const of_environment = std::getenv("SACCT_FORMAT");
  const std::string plain = words.Has("brief") ? "jobid,state,exitcode"
                            : of_environment != nullptr
                                ? of_environment
                                : "jobid,jobname,partition,account,alloccpus,state,exitcode";
  return words.Value("format").value_or(plain);
}

// Seconds since 1970. Errors: no time.
Result<double> TimeOption(const SlurmWords& words, std::string_view name, double unstated) {
  const std::optional<std::string> text = words.Value(name);
  if (!text) {
    return unstated;
  }
  const requests::TimeReading read =
      requests::ReadTime(*text, static_cast<double>(std::time(nullptr)));
  return read.seconds ? Result<double>(*read.seconds)
                      : InvalidArgument("Invalid time specification (pos=0): " + *text);
}

double Midnight() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  parts.tm_hour = 0;
  parts.tm_min = 0;
  parts.tm_sec = 0;
  parts.tm_isdst = -1;
  return static_cast<double>(std::mktime(&parts));
}

// Jobs of others are shown to root, by --allusers, or where users are named.
bool IsOfCaller(const SlurmWords& words, const v1::JobStatus& job) {
  return words.Has("allusers") || words.Has("user") || words.Has("uid") || geteuid() == 0 ||
         job.request().user() == LoginName();
}

Result<std::vector<v1::JobStatus>> JobsOf(const SlurmWords& words, rpc::ClusterClient& client) {
  std::vector<v1::JobStatus> jobs;
  const std::vector<std::string> ids = words.Items("jobs");
  if (ids.empty()) {
    v1::ClientRequest request = JobsCall({}, false);
    request.mutable_jobs()->set_steps(!words.Has("allocations"));
    ASSIGN_OR_RETURN(const v1::ClientReply all, CallForJobs(client, std::move(request)));
    jobs.assign(all.jobs().jobs().begin(), all.jobs().jobs().end());
    return jobs;
  }
  std::vector<std::string> of_jobs;
  of_jobs.reserve(ids.size());
  for (const std::string& id : ids) {
    const std::string job = id.substr(0, id.find('.'));  // of a step its job
    if (std::find(of_jobs.begin(), of_jobs.end(), job) == of_jobs.end()) {
      of_jobs.push_back(job);
    }
  }
  return JobsOfIds(client, of_jobs, !words.Has("allocations"));
}

Status ShowAccounting(const SlurmWords& words, rpc::ClusterClient& client) {
  ASSIGN_OR_RETURN(const SlurmFilter filter, SlurmFilter::Of(kSacct, words));
  ASSIGN_OR_RETURN(std::vector<TableColumn<SacctRow>> columns,
                   TableColumns<SacctRow>(FormatOf(words), kSacctFields));
  const bool by_number = words.Has("jobs");
  ASSIGN_OR_RETURN(const double from, TimeOption(words, "starttime", by_number ? 0 : Midnight()));
  ASSIGN_OR_RETURN(const double to,
                   TimeOption(words, "endtime", std::numeric_limits<double>::infinity()));
  ASSIGN_OR_RETURN(const std::vector<v1::JobStatus> jobs, JobsOf(words, client));
  ASSIGN_OR_RETURN(const v1::NodesReply nodes, NodesOf(client));
  const std::string unnamed = DefaultPartition(nodes);
  const FieldTable<SacctRow> table(words, std::move(columns));
  std::string text = words.Has("noheader") ? "" : table.Heading();
  std::vector<SacctRow> rows;
  std::map<std::uint64_t, std::size_t> waiting;  // by array
  for (const v1::JobStatus& job : jobs) {
    const std::string& partition = PartitionOf(job, unnamed);
    const bool is_then = job.submitted() <= to && (!job.has_ended() || job.ended() >= from);
    if (!is_then || !filter.Fits(job, partition) || !IsOfCaller(words, job)) {
      continue;
    }
    if (job.has_array_job() && SlurmState(job) == "PENDING") {
      const auto [at, is_new] = waiting.try_emplace(job.array_job(), rows.size());
      if (!is_new) {
        rows[at->second].line.tasks.push_back(job.array_index());
        continue;
      }
    }
    JobLine line{.job = &job, .tasks = {}};
    if (job.has_array_job()) {
      line.tasks.push_back(job.array_index());
    }
    rows.push_back({.line = std::move(line), .partition = partition});
  }
  if (words.Has("json")) {
    std::vector<SlurmJobLine> list;
    list.reserve(rows.size());
    for (const SacctRow& row : rows) {
      list.push_back({.line = row.line, .partition = row.partition});
    }
    fmt::print("{}", JsonOfAccounting(list, static_cast<double>(std::time(nullptr))));
    return {};
  }
  for (const SacctRow& row : rows) {
    text += LinesOfRow(words, table, row);
  }
  fmt::print("{}", text);
  return {};
}

}  // namespace

int Sacct(const std::vector<std::string>& words) {
  const std::optional<SlurmWords> read = ReadSlurmWords(kSacct, words, kSacctOptions);
  if (!read) {
    return 1;
  }
  if (read->Has("help") || read->Has("usage")) {
    fmt::print("{}", kSacctUsage);
    return 0;
  }
  if (read->Has("helpformat")) {
    for (const SacctField& field : kSacctFields) {
      fmt::print("{}\n", field.heading);
    }
    return 0;
  }
  return Repeat(kSacct, *read, ShowAccounting);
}

}  // namespace trainyard::cli
