// SPDX-License-Identifier: Apache-2.0
// squeue: the jobs that have not ended, or those of the states that are named.
#include <fmt/format.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/live/client_calls.h"
#include "cli/live/status/array_lines.h"
#include "cli/slurm/output_format.h"
#include "cli/slurm/slurm_commands.h"
#include "cli/slurm/slurm_facts.h"
#include "cli/slurm/slurm_filter.h"
#include "cli/slurm/slurm_json.h"
#include "cli/slurm/slurm_words.h"
#include "cli/slurm/squeue_steps.h"
#include "live/jobs/job_request.h"

namespace trainyard::cli {
namespace {

using enum SlurmOption::Value;
using enum SlurmOption::Use;

constexpr const char* kSqueue = "squeue";
constexpr std::string_view kNoJson = "'trainyard status --json' has the same";
constexpr std::array kSqueueOptions{
    SlurmOption{"account", 'A', kNeeded, kDone, ""},
    SlurmOption{"all", 'a', kNone, kNoEffect, ""},
    SlurmOption{"array", 'r', kNone, kDone, ""},
    SlurmOption{"array-unique", 0, kNone, kNoEffect, ""},
    SlurmOption{"clusters", 'M', kNeeded, kRefused, "TRAINYARD_CONTROLLER names the cluster"},
    SlurmOption{"federation", 0, kNone, kNoEffect, ""},
    SlurmOption{"format", 'o', kNeeded, kDone, ""},
    SlurmOption{"Format", 'O', kNeeded, kDone, ""},
    SlurmOption{"help", 0, kNone, kDone, ""},
    SlurmOption{"hide", 0, kNone, kNoEffect, ""},
    SlurmOption{"iterate", 'i', kNeeded, kDone, ""},
    SlurmOption{"jobs", 'j', kNeeded, kDone, ""},
    SlurmOption{"json", 0, kNone, kDone, ""},
    SlurmOption{"licenses", 'L', kNeeded, kRefused, "jobs are not chosen by licences"},
    SlurmOption{"local", 0, kNone, kNoEffect, ""},
    SlurmOption{"long", 'l', kNone, kDone, ""},
    SlurmOption{"me", 0, kNone, kDone, ""},
    SlurmOption{"name", 'n', kNeeded, kDone, ""},
    SlurmOption{"noconvert", 0, kNone, kNoEffect, ""},
    SlurmOption{"nodelist", 'w', kNeeded, kDone, ""},
    SlurmOption{"noheader", 'h', kNone, kDone, ""},
    SlurmOption{"partition", 'p', kNeeded, kDone, ""},
    SlurmOption{"priority", 'P', kNone, kNoEffect, ""},
    SlurmOption{"qos", 'q', kNeeded, kDone, ""},
    SlurmOption{"reservation", 'R', kNeeded, kRefused, "there are no reservations"},
    SlurmOption{"sibling", 0, kNone, kNoEffect, ""},
    SlurmOption{"sort", 'S', kNeeded, kDone, ""},
    SlurmOption{"start", 0, kNone, kDone, ""},
    SlurmOption{"states", 't', kNeeded, kDone, ""},
    SlurmOption{"steps", 's', kOptional, kDone, ""},
    SlurmOption{"usage", 0, kNone, kDone, ""},
    SlurmOption{"user", 'u', kNeeded, kDone, ""},
    SlurmOption{"users", 0, kNeeded, kDone, ""},
    SlurmOption{"verbose", 'v', kNone, kNoEffect, ""},
    SlurmOption{"version", 'V', kNone, kDone, ""},
    SlurmOption{"yaml", 0, kNone, kRefused, kNoJson},
};

constexpr const char* kUsage =
    "Usage: squeue [-A account] [--help] [-i seconds] [-j jobid[,jobid...]] [-l] [--me]\n"
    "              [-n name] [-o format] [-O fields] [-p partitions] [-q qos] [-r] [-S fields]\n"
    "              [-s[steps]] [--start] [-t states] [-u user] [-w nodes] [-h]\n"
    "Trainyard by the name of Slurm's squeue; 'trainyard status' says more.\n";
constexpr const char* kPlainFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr const char* kLongFormat = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr const char* kStartFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";

// A line: a job, or the tasks of an array that wait.
struct QueueRow {
  JobLine line;
  std::string partition;

  [[nodiscard]] const v1::JobStatus& job() const { return *line.job; }
  [[nodiscard]] const v1::JobRequest& request() const { return line.job->request(); }
  [[nodiscard]] bool is_pending() const { return SlurmState(job()) == "PENDING"; }
};

std::string NameOrId(const v1::JobStatus& job) {
  return job.request().name().empty() ? std::to_string(job.job()) : Printable(job.request().name());
}

std::optional<double> StartOf(const v1::JobStatus& job) {
  if (job.has_started()) {
    return job.started();
  }
  return job.request().has_begin_s() ? std::optional(job.submitted() + job.request().begin_s())
                                     : std::nullopt;
}

std::string TimeLimitOf(const QueueRow& row) {
  return row.request().has_time_s() ? SlurmSpan(row.request().time_s()) : "UNLIMITED";
}

double LeftOf(const QueueRow& row) {
  return row.request().has_time_s() ? row.request().time_s() - row.job().run_s()
                                    : std::numeric_limits<double>::infinity();
}

std::string EndOf(const QueueRow& row) {
  const std::optional<double> end = SlurmEnd(row.job());
  return end ? SlurmStamp(*end) : "N/A";
}

std::string TaskIds(const QueueRow& row) {
  if (!row.job().has_array_job()) {
    return "N/A";
  }
  std::string text = TextOf(row.line);
  text = text.substr(text.find('_') + 1);
  return text.starts_with('[') ? text.substr(1, text.size() - 2) : text;
}

std::string IdOfUser(const std::string& name) {
  const passwd* const entry = getpwnam(name.c_str());
  return entry != nullptr ? std::to_string(entry->pw_uid) : "(null)";
}

double IdOf(const QueueRow& row) { return static_cast<double>(row.job().job()); }
double PriorityOf(const QueueRow& row) { return row.request().launch().priority(); }

constexpr std::array kQueueFields{
    OutputField<QueueRow>{'a', "account", "ACCOUNT",
                          [](const QueueRow& row) { return OrNull(row.request().account()); }},
    OutputField<QueueRow>{'A', "jobid", "JOBID",
                          [](const QueueRow& row) {
                            return std::to_string(row.line.tasks.size() > 1 ? row.job().array_job()
                                                                            : row.job().job());
                          },
                          IdOf},
    OutputField<QueueRow>{'b', "tres-per-node", "TRES_PER_NODE",
                          [](const QueueRow& row) {
                            const std::string gpus = SlurmGpusPerNode(row.job());
                            return gpus.empty() ? std::string("N/A") : "gres:" + gpus;
                          }},
    OutputField<QueueRow>{'B', "batchhost", "EXEC_HOST",
                          [](const QueueRow& row) {
                            return row.job().grants_size() == 0 ? std::string("n/a")
                                                                : row.job().grants(0).node();
                          }},
    OutputField<QueueRow>{'c', "mincpus", "MIN_CPUS",
                          [](const QueueRow& row) {
                            return std::to_string(
                                std::max(1, SlurmCpus(row.job()) / SlurmNodeCount(row.job())));
                          }},
    OutputField<QueueRow>{'C', "numcpus", "CPUS",
                          [](const QueueRow& row) { return std::to_string(SlurmCpus(row.job())); },
                          [](const QueueRow& row) -> double { return SlurmCpus(row.job()); }},
    OutputField<QueueRow>{'d', "mintmpdisk", "MIN_TMP_DISK",
                          [](const QueueRow& row) {
                            return row.request().tmp().empty() ? std::string("0")
                                                               : Printable(row.request().tmp());
                          }},
    OutputField<QueueRow>{
        'D', "numnodes", "NODES",
        [](const QueueRow& row) { return std::to_string(SlurmNodeCount(row.job())); },
        [](const QueueRow& row) -> double { return SlurmNodeCount(row.job()); }},
    OutputField<QueueRow>{'e', "endtime", "END_TIME", EndOf},
    OutputField<QueueRow>{'E', "dependency", "DEPENDENCY",
                          [](const QueueRow& row) { return OrNull(row.request().dependency()); }},
    OutputField<QueueRow>{'f', "feature", "FEATURES",
                          [](const QueueRow& row) { return OrNull(row.request().constraint()); }},
    OutputField<QueueRow>{'F', "arrayjobid", "ARRAY_JOB_ID",
                          [](const QueueRow& row) {
                            return std::to_string(row.job().has_array_job() ? row.job().array_job()
                                                                            : row.job().job());
                          }},
    OutputField<QueueRow>{'i', "jobarrayid", "JOBID",
                          [](const QueueRow& row) { return TextOf(row.line); }, IdOf},
    OutputField<QueueRow>{'j', "name", "NAME",
                          [](const QueueRow& row) { return NameOrId(row.job()); }},
    OutputField<QueueRow>{'k', "comment", "COMMENT",
                          [](const QueueRow& row) { return SlurmKept(row.job(), "comment"); }},
    OutputField<QueueRow>{'K', "arraytaskid", "ARRAY_TASK_ID", TaskIds},
    OutputField<QueueRow>{'l', "timelimit", "TIME_LIMIT", TimeLimitOf,
                          [](const QueueRow& row) {
                            return row.request().has_time_s()
                                       ? row.request().time_s()
                                       : std::numeric_limits<double>::infinity();
                          }},
    OutputField<QueueRow>{'L', "timeleft", "TIME_LEFT",
                          [](const QueueRow& row) {
                            return row.request().has_time_s() ? SlurmSpan(LeftOf(row))
                                                              : std::string("UNLIMITED");
                          },
                          LeftOf},
    OutputField<QueueRow>{'m', "minmemory", "MIN_MEMORY",
                          [](const QueueRow& row) { return SlurmMemory(row.job()); }},
    OutputField<QueueRow>{'M', "timeused", "TIME",
                          [](const QueueRow& row) { return SlurmSpan(row.job().run_s()); },
                          [](const QueueRow& row) { return row.job().run_s(); }},
    OutputField<QueueRow>{'n', "reqnodes", "REQ_NODES",
                          [](const QueueRow& row) { return Printable(row.request().node_list()); }},
    OutputField<QueueRow>{'N', "nodelist", "NODELIST",
                          [](const QueueRow& row) { return SlurmNodes(row.job()); }},
    OutputField<QueueRow>{'P', "partition", "PARTITION",
                          [](const QueueRow& row) { return Printable(row.partition); }},
    OutputField<QueueRow>{'q', "qos", "QOS",
                          [](const QueueRow& row) { return SlurmKept(row.job(), "qos"); }},
    OutputField<QueueRow>{
        'Q', "prioritylong", "PRIORITY",
        [](const QueueRow& row) { return std::to_string(row.request().launch().priority()); },
        PriorityOf},
    OutputField<QueueRow>{
        'p', "priority", "PRIORITY",
        [](const QueueRow& row) { return std::to_string(row.request().launch().priority()); },
        PriorityOf},
    OutputField<QueueRow>{'r', "reason", "REASON",
                          [](const QueueRow& row) { return row.job().reason_code(); }},
    OutputField<QueueRow>{'R', "reasonlist", "NODELIST(REASON)",
                          [](const QueueRow& row) {
                            return row.is_pending() ? "(" + row.job().reason_code() + ")"
                                                    : SlurmNodes(row.job());
                          }},
    OutputField<QueueRow>{'S', "starttime", "START_TIME",
                          [](const QueueRow& row) {
                            const std::optional<double> start = StartOf(row.job());
                            return start ? SlurmStamp(*start) : std::string("N/A");
                          },
                          [](const QueueRow& row) {
                            return StartOf(row.job()).value_or(
                                std::numeric_limits<double>::infinity());
                          }},
    OutputField<QueueRow>{
        't', "statecompact", "ST",
        [](const QueueRow& row) { return std::string(SlurmStateCode(SlurmState(row.job()))); },
        [](const QueueRow& row) -> double { return row.job().state(); }},
    OutputField<QueueRow>{'T', "state", "STATE",
                          [](const QueueRow& row) { return std::string(SlurmState(row.job())); },
                          [](const QueueRow& row) -> double { return row.job().state(); }},
    OutputField<QueueRow>{'u', "username", "USER",
                          [](const QueueRow& row) { return Printable(row.request().user()); }},
    OutputField<QueueRow>{'U', "userid", "UID",
                          [](const QueueRow& row) { return IdOfUser(row.request().user()); }},
    OutputField<QueueRow>{'v', "reservation", "RESERVATION",
                          [](const QueueRow& /*row*/) { return std::string("(null)"); }},
    OutputField<QueueRow>{'V', "submittime", "SUBMIT_TIME",
                          [](const QueueRow& row) { return SlurmStamp(row.job().submitted()); },
                          [](const QueueRow& row) { return row.job().submitted(); }},
    OutputField<QueueRow>{'w', "wckey", "WCKEY",
                          [](const QueueRow& row) { return SlurmKept(row.job(), "wckey"); }},
    OutputField<QueueRow>{'W', "licenses", "LICENSES",
                          [](const QueueRow& row) { return OrNull(row.request().licenses()); }},
    OutputField<QueueRow>{'x', "excnodes", "EXC_NODES",
                          [](const QueueRow& row) { return Printable(row.request().exclude()); }},
    OutputField<QueueRow>{'y', "nice", "NICE",
                          [](const QueueRow& row) {
                            return std::to_string(-std::int64_t{row.request().launch().priority()});
                          }},
    OutputField<QueueRow>{'Y', "schednodes", "SCHEDNODES",
                          [](const QueueRow& /*row*/) { return std::string("(null)"); }},
    OutputField<QueueRow>{
        'Z', "workdir", "WORK_DIR",
        [](const QueueRow& row) { return OrNull(row.request().launch().working_directory()); }},
    OutputField<QueueRow>{0, "restartcnt", "RESTART_COUNT",
                          [](const QueueRow& row) {
                            return std::to_string(row.job().attempt() > 1 ? row.job().attempt() - 1
                                                                          : 0);
                          }},
    OutputField<QueueRow>{
        0, "exit_code", "EXIT_CODE",
        [](const QueueRow& row) { return std::to_string(row.job().exit_code()); }},
};
constexpr std::span<const OutputField<QueueRow>> kOfQueue{kQueueFields};

Result<std::vector<OutputColumn<QueueRow>>> QueueColumns(const SlurmWords& words) {
  if (const std::optional<std::string> names = words.Value("Format")) {
    return ColumnsOfNames(*names, kOfQueue, "job");
  }
  const char* const of_environment = std::getenv("SQUEUE_FORMAT");
  const std::string plain = of_environment != nullptr ? of_environment : kPlainFormat;
  return ColumnsOfFormat(words.Value("format").value_or(words.Has("long")    ? kLongFormat
                                                        : words.Has("start") ? kStartFormat
                                                                             : plain),
                         kOfQueue, "job");
}

// Errors: an id that is none; jobs that there are not.
Result<v1::JobsReply> JobsToShow(const SlurmWords& words, rpc::ClusterClient& client) {
  const std::vector<std::string> ids = words.Items("jobs");
  if (ids.empty()) {
    ASSIGN_OR_RETURN(v1::ClientReply all,
                     CallForJobs(client, JobsCall({}, !words.Has("states") && !words.Has("json"))));
    return std::move(*all.mutable_jobs());
  }
  ASSIGN_OR_RETURN(const std::vector<v1::JobStatus> jobs, JobsOfIds(client, ids));
  v1::JobsReply reply;
  reply.set_now(static_cast<double>(std::time(nullptr)));
  *reply.mutable_jobs() = {jobs.begin(), jobs.end()};
  return reply.jobs_size() > 0 ? Result<v1::JobsReply>(std::move(reply)) : Failed(kNoSuchJob);
}

// Of a job that has ended as long as Slurm tells of it by itself (MinJobAge).
constexpr double kShownAfterEnd = 300;

// The lines of the jobs that the options choose. The replies must outlive them.
Result<std::vector<QueueRow>> RowsOf(const SlurmWords& words, const v1::JobsReply& reply,
                                     const v1::NodesReply& nodes) {
  ASSIGN_OR_RETURN(const SlurmFilter filter, SlurmFilter::Of(kSqueue, words));
  const std::string unnamed = DefaultPartition(nodes);
  std::vector<const v1::JobStatus*> jobs;
  for (const v1::JobStatus& job : reply.jobs()) {
    const bool is_shown = filter.has_states() || !live::HasEnded(job.state()) ||
                          (words.Has("json") && job.ended() + kShownAfterEnd >= reply.now());
    if (is_shown && filter.Fits(job, PartitionOf(job, unnamed))) {
      jobs.push_back(&job);
    }
  }
  std::vector<QueueRow> rows;
  if (words.Has("array")) {
    for (const v1::JobStatus* job : jobs) {
      rows.push_back({{.job = job, .tasks = {}}, PartitionOf(*job, unnamed)});
    }
  } else {
    for (JobLine& line : LinesOf(jobs)) {
      const std::string partition = PartitionOf(*line.job, unnamed);
      rows.push_back({std::move(line), partition});
    }
  }
  return rows;
}

Status ShowQueue(const SlurmWords& words, rpc::ClusterClient& client) {
  ASSIGN_OR_RETURN(const std::vector<OutputColumn<QueueRow>> columns, QueueColumns(words));
  ASSIGN_OR_RETURN(const v1::JobsReply reply, JobsToShow(words, client));
  ASSIGN_OR_RETURN(const v1::NodesReply nodes, NodesOf(client));
  ASSIGN_OR_RETURN(std::vector<QueueRow> rows, RowsOf(words, reply, nodes));
  RETURN_IF_ERROR(SortRows(rows, words.Value("sort").value_or("P,t,-p,i"), kOfQueue));
  if (!words.Has("json")) {
    PrintRows<QueueRow>(words, columns, rows);
    return {};
  }
  std::vector<SlurmJobLine> list;
  list.reserve(rows.size());
  for (const QueueRow& row : rows) {
    list.push_back({.line = row.line, .partition = row.partition});
  }
  fmt::print("{}", JsonOfQueue(list));
  return {};
}

}  // namespace

int Squeue(const std::vector<std::string>& words) {
  const std::optional<SlurmWords> read = ReadSlurmWords(kSqueue, words, kSqueueOptions);
  if (!read) {
    return 1;
  }
  if (read->Has("help") || read->Has("usage")) {
    fmt::print("{}", kUsage);
    return 0;
  }
  return Repeat(kSqueue, *read, read->Has("steps") ? ShowQueueOfSteps : ShowQueue);
}

}  // namespace trainyard::cli
