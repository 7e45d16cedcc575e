// SPDX-License-Identifier: Apache-2.0
// trainyard run, wait: jobs until they have ended, and their exit codes.
#include "cli/live/client_run.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_json.h"
#include "cli/live/client_logs.h"
#include "cli/live/client_submit.h"
#include "cli/live/job_selection.h"
#include "cli/numbers.h"

namespace trainyard::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPause{500};
constexpr int kFailed = 1;

// The exit status that stands for how the job has ended: its own code, or 1 where it has none.
int ExitStatusOf(const v1::JobStatus& job) {
  if (job.state() == v1::COMPLETED) {
    return 0;
  }
  constexpr int kMost = 255;
  return job.exit_code() > 0 && job.exit_code() <= kMost ? job.exit_code() : kFailed;
}

std::string EndText(const v1::JobStatus& job) {
  return fmt::format("job {} {}{}{}{}", JobText(job), live::StateText(job.state()),
                     job.reason().empty() ? "" : ": ", Printable(job.reason()),
                     job.state() == v1::FAILED && job.exit_code() != 0
                         ? fmt::format(" (exit code {})", job.exit_code())
                         : "");
}

// -------------------------------------------------------------------------------------------- wait

struct WaitOptions : ClusterOptions {
  JobSelection selection;
  bool any = false;
  double timeout_s = 0;  // 0: none
};

// The jobs that are waited for, and those that have ended.
class Waiting {
 public:
  Waiting(const WaitOptions& options, const std::vector<v1::JobStatus>& jobs) : options_(options) {
    for (const v1::JobStatus& job : jobs) {
      numbers_.push_back(job.job());
    }
  }

  // Asks for all, and tells of those that have ended since. Errors: a job that there is not.
  Status Ask(rpc::ClusterClient& client) {
    ASSIGN_OR_RETURN(const v1::ClientReply reply,
                     client.Call(JobsCall(numbers_, false), kTimeout, kPatience));
    if (!reply.jobs().unknown().empty()) {
      return Failed(fmt::format("there is no job {}", reply.jobs().unknown(0)));
    }
    for (const v1::JobStatus& job : reply.jobs().jobs()) {
      if (!live::HasEnded(job.state()) || !told_.insert(job.job()).second) {
        continue;
      }
      if (!options_.json) {
        fmt::print("{}\n", EndText(job));
        std::fflush(stdout);
      }
      ended_.push_back(job);
      status_ = status_ == 0 ? ExitStatusOf(job) : status_;
    }
    return {};
  }
  [[nodiscard]] bool IsOver() const {
    return options_.any ? !ended_.empty() : ended_.size() == numbers_.size();
  }
  [[nodiscard]] int exit_status() const { return status_; }
  [[nodiscard]] std::size_t left() const { return numbers_.size() - ended_.size(); }
  [[nodiscard]] const std::vector<v1::JobStatus>& ended() const { return ended_; }

 private:
  const WaitOptions& options_;
  std::vector<std::uint64_t> numbers_;
  std::set<std::uint64_t> told_;
  std::vector<v1::JobStatus> ended_;
  int status_ = 0;  // of the first that did not complete
};

Status Wait(const WaitOptions& options, Command& chosen) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  ASSIGN_OR_RETURN(std::vector<v1::JobStatus> jobs,
                   SelectJobs(*client, options.selection, options.selection.has_filter()));
  Waiting waiting(options, jobs);
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                         std::chrono::duration<double>(options.timeout_s));
  while (true) {
    RETURN_IF_ERROR(waiting.Ask(*client));
    if (waiting.IsOver()) {
      break;
    }
    if (options.timeout_s > 0 && std::chrono::steady_clock::now() >= until) {
      return Failed(fmt::format("{} of {} jobs have not ended after {}", waiting.left(),
                                jobs.size(), base::ShortDuration(options.timeout_s)));
    }
    std::this_thread::sleep_for(kPause);
  }
  if (options.json) {
    PrintJsonList(waiting.ended());
  }
  chosen.exit_status = waiting.exit_status();
  return {};
}

// --------------------------------------------------------------------------------------------- run

// While it lives SIGINT, SIGTERM and SIGHUP cancel the job: its workers get notice, and are killed
// when their grace is over. A second one ends this program.
class SignalsToJob {
 public:
  // Threads that are started from now on leave the signals to this object.
  SignalsToJob() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      sigaddset(&signals_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  SignalsToJob(const SignalsToJob&) = delete;
  SignalsToJob& operator=(const SignalsToJob&) = delete;
  ~SignalsToJob() {
    over_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  void Watch(const ClusterOptions& options, std::uint64_t job) {
    thread_ = std::thread([this, options, job] { Take(options, job); });
  }
  // The signal that has come; 0: none.
  [[nodiscard]] int signal() const { return signal_; }

 private:
  void Take(const ClusterOptions& options, std::uint64_t job) {
    constexpr timespec kBreath{.tv_sec = 0, .tv_nsec = 50'000'000};
    while (!over_) {
      const int signal = sigtimedwait(&signals_, nullptr, &kBreath);
      if (signal <= 0) {
        continue;
      }
      if (signal_ != 0) {
        Tell(fmt::format("job {} is left to itself", job));
        _exit(128 + signal);
      }
      signal_ = signal;
      Tell(fmt::format("job {} is cancelled; once more leaves it to itself", job));
      v1::ClientRequest request;
      request.mutable_cancel()->set_job(job);
      if (const Result<v1::ClientReply> reply = CallTo(options, request); !reply.ok()) {
        Tell(reply.error().message);
      }
    }
  }

  sigset_t signals_{};
  sigset_t before_{};
  std::atomic<bool> over_ = false;
  std::atomic<int> signal_ = 0;
  std::thread thread_;
};

struct RunOptions : JobOptionValues {
  int rank = 0;
  bool quiet = false;
};

Result<v1::JobStatus> StatusNow(rpc::ClusterClient& client, std::uint64_t job) {
  ASSIGN_OR_RETURN(const v1::ClientReply reply,
                   client.Call(JobsCall({job}, false), kTimeout, kPatience));
  if (reply.jobs().jobs().empty()) {
    return Failed(fmt::format("there is no job {}", job));
  }
  return reply.jobs().jobs(0);
}

Status Run(const RunOptions& options, Command& chosen) {
  SignalsToJob signals;
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  ASSIGN_OR_RETURN(const v1::SubmitReply submitted, SendJob(options, chosen.rest, false, *client));
  if (!submitted.status().request().array().empty()) {
    Tell(fmt::format("job {} is an array; 'trainyard wait {}' waits for its tasks", submitted.job(),
                     submitted.job()));
    return {};
  }
  signals.Watch(options, submitted.job());
  if (!options.quiet) {
    Tell(fmt::format("job {} submitted", submitted.job()));
  }
  LogsOptions logs;
  logs.controller = options.controller;
  logs.rank = options.rank;
  logs.all = true;
  logs.follow = true;
  if (const Status followed = FollowLogs(logs, submitted.job()); !followed.ok()) {
    Tell(followed.error().message);
  }
  // Its log may be gone with its node: what counts is the job's end.
  ASSIGN_OR_RETURN(v1::JobStatus job, StatusNow(*client, submitted.job()));
  while (!live::HasEnded(job.state())) {
    std::this_thread::sleep_for(kPause);
    ASSIGN_OR_RETURN(job, StatusNow(*client, submitted.job()));
  }
  if (options.json) {
    PrintJson(job);
  }
  chosen.exit_status = job.state() == v1::CANCELLED && signals.signal() != 0
                           ? 128 + signals.signal()
                           : ExitStatusOf(job);
  return {};
}

}  // namespace

void AddWait(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<WaitOptions>();
  CLI::App* command = app.add_subcommand("wait", "wait until jobs have ended");
  command->footer(
      "The exit status is 0 if all have completed, otherwise that of the first that has not: its\n"
      "own exit code, or 1.\n");
  command->add_option("JOB", options->selection.jobs,
                      "ids of jobs; ARRAY_INDEX is a task of an array, ARRAY all its tasks");
  AddFilters(*command, options->selection);
  AddClusterOptions(*command, *options);
  command->add_flag("--any", options->any, "until one of them has ended");
  command->add_option("--timeout", options->timeout_s, "give up after this time: 90s, 15m, 2h")
      ->type_name("TIME")
      ->transform(Span());
  command->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return Wait(*options, chosen); }; });
}

void AddRun(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      app.add_subcommand("run", "submit a job, show what it writes and wait for its end");
  command->footer(
      "The command follows the options: trainyard run --gpus 2 -- PROGRAM [ARGUMENT...]\n"
      "Ctrl-C, SIGTERM and SIGHUP cancel the job; once more leaves it to itself. The exit status "
      "is\n"
      "the job's exit code, 128 + the signal that has cancelled it, or 1.\n");
  AddClusterOptions(*command, *options);
  AddJobOptions(*command, *options);
  command->add_option("--rank", options->rank, "worker whose output is shown")
      ->check(NonNegative())
      ->capture_default_str();
  command->add_flag("--quiet", options->quiet, "do not tell the number of the job");
  command->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return Run(*options, chosen); }; });
}

}  // namespace trainyard::cli
