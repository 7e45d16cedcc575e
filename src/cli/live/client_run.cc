// SPDX-License-Identifier: Apache-2.0
// trainyard run, wait: jobs until they have ended, and their exit codes.
#include "cli/live/client_run.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/live/attach/client_attach.h"
#include "cli/live/attach/session_input.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_json.h"
#include "cli/live/client_logs.h"
#include "cli/live/client_submit.h"
#include "cli/live/job_selection.h"
#include "cli/live/status/array_lines.h"
#include "cli/numbers.h"
#include "service/signals.h"

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

// The same of a job whose output was to be shown. A worker that there is not is wrong usage, as
// `logs` has it: how many there are may not be known before the job has its GPUs.
int ExitStatusOf(const v1::JobStatus& job, const Status& shown) {
  const int status = ExitStatusOf(job);
  const bool is_misnamed = !shown.ok() && shown.error().code == ErrorCode::kInvalidArgument;
  return status == 0 && is_misnamed ? kStatusWrongUsage : status;
}

std::string EndText(const v1::JobStatus& job, const std::string& name) {
  return fmt::format("job {} {}{}{}{}", name, live::StateText(job.state()),
                     job.reason().empty() ? "" : ": ", Printable(job.reason()),
                     job.state() == v1::FAILED && job.exit_code() != 0
                         ? fmt::format(" (exit code {})", job.exit_code())
                         : "");
}

// -------------------------------------------------------------------------------------------- wait

struct WaitOptions : ClusterOptions {
  requests::JobSelection selection;
  bool any = false;
  bool tasks = false;    // tells of each task of an array
  double timeout_s = 0;  // 0: none
};

// The jobs that are waited for, and those that have ended.
class Waiting {
 public:
  // `before`: what is done with an answer before anything is told of it.
  Waiting(const WaitOptions& options, const std::vector<v1::JobStatus>& jobs,
          std::function<void(const v1::JobsReply&)> before = {})
      : options_(options), before_(std::move(before)) {
    for (const v1::JobStatus& job : jobs) {
      numbers_.push_back(job.job());
      left_[ArrayOf(job)] += 1;
    }
  }

  // Asks for all, or waits for a change of some for so long, and tells of those that have ended
  // since. Errors: a job that there is not.
  Status Ask(rpc::ClusterClient& client, milliseconds wait = milliseconds{0}) {
    v1::ClientRequest request = JobsCall(numbers_, false);
    if (wait.count() > 0) {
      request.mutable_jobs()->set_since(version_);
      request.mutable_jobs()->set_wait(static_cast<std::uint32_t>(wait.count()));
    }
    ASSIGN_OR_RETURN(const v1::ClientReply reply, client.Call(request, kTimeout, kPatience));
    version_ = reply.jobs().version();
    if (!reply.jobs().unknown().empty()) {
      return Failed(fmt::format("there is no job {}", reply.jobs().unknown(0)));
    }
    if (before_) {
      before_(reply.jobs());
    }
    TellOfHeld(reply.jobs());
    for (const v1::JobStatus& job : reply.jobs().jobs()) {
      if (!live::HasEnded(job.state()) || !told_.insert(job.job()).second) {
        continue;
      }
      ended_.push_back(job);
      status_ = status_ == 0 ? ExitStatusOf(job) : status_;
      const std::uint64_t array = ArrayOf(job);
      untold_[array].push_back(job);
      left_[array] -= 1;
      if (array == 0 || left_[array] == 0 || options_.any) {
        TellOf(array);
      }
    }
    return {};
  }
  // What has ended and has not been told, as tasks of an array of which others have not ended.
  void TellRest() {
    while (!untold_.empty()) {
      TellOf(untold_.begin()->first);
    }
  }
  [[nodiscard]] bool IsOver() const {
    return options_.any ? !ended_.empty() : ended_.size() == numbers_.size();
  }
  [[nodiscard]] int exit_status() const { return status_; }
  [[nodiscard]] std::size_t left() const { return numbers_.size() - ended_.size(); }
  [[nodiscard]] const std::vector<v1::JobStatus>& ended() const { return ended_; }

 private:
  // The array whose tasks share lines; 0: the job has a line of its own.
  [[nodiscard]] std::uint64_t ArrayOf(const v1::JobStatus& job) const {
    return options_.tasks ? 0 : job.array_job();
  }
  void TellOf(std::uint64_t array) {
    const auto told = untold_.extract(array);
    std::vector<const v1::JobStatus*> jobs;
    for (const v1::JobStatus& job : told.mapped()) {
      jobs.push_back(&job);
    }
    for (const JobLine& line : options_.json ? std::vector<JobLine>() : LinesOf(jobs)) {
      fmt::print("{}\n", EndText(*line.job, TextOf(line)));
    }
    std::fflush(stdout);
  }
  // Of those that somebody has held since: nothing but a release lets them end.
  void TellOfHeld(const v1::JobsReply& reply) {
    constexpr std::size_t kEnough = 10;
    std::vector<const v1::JobStatus*> held;
    for (const v1::JobStatus& job : reply.jobs()) {
      if (!job.held() || live::HasEnded(job.state())) {
        held_.erase(job.job());
      } else if (held_.insert(job.job()).second) {
        held.push_back(&job);
      }
    }
    std::vector<JobLine> lines;
    lines.reserve(held.size());
    for (const v1::JobStatus* const job : held) {
      lines.push_back({.job = job, .tasks = {}});
    }
    if (!options_.tasks) {
      lines = LinesOf(held);
    }
    for (std::size_t i = 0; i < std::min(lines.size(), kEnough); ++i) {
      Tell(fmt::format("job {} is {}", TextOf(lines[i]), Printable(ReasonOf(lines[i]))));
    }
    if (lines.size() > kEnough) {
      Tell(fmt::format("{} more are held", lines.size() - kEnough));
    }
  }

  const WaitOptions& options_;
  const std::function<void(const v1::JobsReply&)> before_;
  std::vector<std::uint64_t> numbers_;
  std::string version_;                                         // of the last answer
  std::map<std::uint64_t, std::size_t> left_;                   // by array: not ended
  std::map<std::uint64_t, std::vector<v1::JobStatus>> untold_;  // by array
  std::set<std::uint64_t> told_;
  std::set<std::uint64_t> held_;
  std::vector<v1::JobStatus> ended_;
  int status_ = 0;  // of the first that did not complete
};

Status Wait(const WaitOptions& options, Command& chosen) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  ASSIGN_OR_RETURN(std::vector<v1::JobStatus> jobs,
                   SelectJobs(*client, options.selection, options.selection.has_filter()));
  Waiting waiting(options, jobs);
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(options.timeout_s));
  constexpr milliseconds kWait{20'000};  // shorter than a call may take
  RETURN_IF_ERROR(waiting.Ask(*client));
  while (!waiting.IsOver()) {
    const Clock::time_point now = Clock::now();
    if (options.timeout_s > 0 && now >= until) {
      waiting.TellRest();
      return Failed(fmt::format("{} of {} jobs have not ended after {}", waiting.left(),
                                jobs.size(), base::ShortDuration(options.timeout_s)));
    }
    const milliseconds left = std::chrono::ceil<milliseconds>(until - now);
    RETURN_IF_ERROR(waiting.Ask(*client, options.timeout_s > 0 ? std::min(kWait, left) : kWait));
    // A controller of an earlier version answers at once.
    if (!waiting.IsOver()) {
      std::this_thread::sleep_until(now + kPause);
    }
  }
  if (options.json) {
    PrintJsonList(waiting.ended());
  }
  chosen.exit_status = waiting.exit_status();
  return {};
}

// --------------------------------------------------------------------------------------------- run

struct RunCommandOptions : JobOptionValues {
  bool quiet = false;
  bool terminal = false;
  bool label = false;
};

// What comes of signals: they go to the job's workers once these run. A job that waits is
// cancelled, and so is one by a second Ctrl-C within a second; another one leaves it to itself.
class SignalsToJob {
 public:
  SignalsToJob(const ClusterOptions& options, std::uint64_t job) : options_(options), job_(job) {}

  void Take(int signal) {
    const auto now = std::chrono::steady_clock::now();
    const bool again = signal == SIGINT && now - last_interrupt_ <= std::chrono::seconds(1);
    last_interrupt_ = signal == SIGINT ? now : last_interrupt_;
    if (cancelled_ != 0) {
      Tell(fmt::format("job {} is left to itself", job_));
      _exit(kSignalled + signal);
    }
    if (again || !Pass(signal)) {
      Cancel(signal);
    }
  }
  // The signal that has cancelled the job; 0: none.
  [[nodiscard]] int cancelled() const { return cancelled_; }

  static constexpr int kSignalled = 128;

 private:
  // False: there is nobody whom it could be passed on to.
  [[nodiscard]] bool Pass(int signal) const {
    v1::ClientRequest request;
    request.mutable_signal()->set_job(job_);
    request.mutable_signal()->set_signal(signal);
    if (!CallTo(options_, request).ok()) {
      return false;
    }
    Tell(fmt::format("job {} has got {}{}", job_, service::SignalText(signal),
                     signal == SIGINT ? "; once more within a second cancels it" : ""));
    return true;
  }

  void Cancel(int signal) {
    cancelled_ = signal;
    Tell(fmt::format("job {} is cancelled; once more leaves it to itself", job_));
    v1::ClientRequest request;
    request.mutable_cancel()->set_job(job_);
    if (const Result<v1::ClientReply> reply = CallTo(options_, request); !reply.ok()) {
      Tell(reply.error().message);
    }
  }

  const ClusterOptions& options_;
  const std::uint64_t job_;
  std::chrono::steady_clock::time_point last_interrupt_{};
  std::atomic<int> cancelled_ = 0;
};

// Nothing is there to be read, or somebody may type who has not asked for a terminal.
bool HasInput() {
  struct stat status {};
  struct stat nothing {};
  return isatty(STDIN_FILENO) == 0 && fstat(STDIN_FILENO, &status) == 0 &&
         (stat("/dev/null", &nothing) != 0 || status.st_rdev != nothing.st_rdev ||
          !S_ISCHR(status.st_mode));
}

// The tasks of the array that have not ended, by one call.
void CancelArray(std::uint64_t array, rpc::ClusterClient& client) {
  v1::ClientRequest request;
  request.mutable_cancel()->mutable_selection()->add_jobs(std::to_string(array));
  if (const Result<v1::ClientReply> reply = client.Call(request, kTimeout); !reply.ok()) {
    Tell(reply.error().message);
  }
}

// Sets what the first worker gets to read, and the kind of its terminal.
Status ChooseInput(RunCommandOptions& options) {
  if (!options.terminal) {
    options.input = HasInput() ? v1::LaunchSpec::PIPE : v1::LaunchSpec::NOTHING;
    return {};
  }
  if (options.rank != 0) {
    return InvalidArgument("--pty shows worker 0, which has the terminal; expected no --rank");
  }
  options.input = v1::LaunchSpec::TERMINAL;
  const char* const term = std::getenv("TERM");
  options.settings.insert(options.settings.begin(),
                          {"env", fmt::format("TERM={}", term == nullptr ? "xterm" : term)});
  return {};
}

Result<v1::JobStatus> StatusNow(rpc::ClusterClient& client, std::uint64_t job) {
  ASSIGN_OR_RETURN(const v1::ClientReply reply,
                   client.Call(JobsCall({job}, false), kTimeout, kPatience));
  if (reply.jobs().jobs().empty()) {
    return Failed(fmt::format("there is no job {}", job));
  }
  return reply.jobs().jobs(0);
}

// The terminal of worker 0, through all attempts of the job. What the session does not tell any
// more is in the log, which has the same bytes.
Status ShowTerminal(const RunCommandOptions& options, std::uint64_t number,
                    rpc::ClusterClient& client) {
  constexpr milliseconds kBreath{100};
  std::uint32_t shown = 0;
  std::string why;
  while (true) {
    ASSIGN_OR_RETURN(const v1::JobStatus job, StatusNow(client, number));
    if (job.attempt() > shown && job.state() != v1::STARTING) {
      shown = job.attempt();
      v1::AttachRequest target;
      target.set_job(number);
      target.set_attempt(shown);
      SessionOutput output(client, std::move(target));
      const RawTerminal raw;  // both have the line ends of a terminal
      const Status copied = output.Copy();
      LogsOptions logs;
      logs.controller = options.controller;
      logs.attempt = shown;
      const Status rest = CopyLogFrom(logs, number, output.offset());
      RETURN_IF_ERROR(copied.ok() ? rest : copied);
      continue;
    }
    if (live::HasEnded(job.state())) {
      return {};
    }
    TellWhyItWaits(job, why);
    std::this_thread::sleep_for(kBreath);
  }
}

// How many workers it has, or will have if its GPUs do not change.
int WorkerCountOf(const v1::JobStatus& job) {
  const v1::LaunchSpec& launch = job.request().launch();
  return launch.workers() == v1::LaunchSpec::PER_NODE
             ? std::max(1, job.grants_size()) * std::max(1, launch.workers_per_node())
             : job.request().gpus();
}

// The output of all workers, a line at a time, once the job has been granted its GPUs.
Status ShowLabelled(const RunCommandOptions& options, std::uint64_t number,
                    rpc::ClusterClient& client) {
  ASSIGN_OR_RETURN(v1::JobStatus job, StatusNow(client, number));
  while (job.attempt() == 0 && !live::HasEnded(job.state())) {
    std::this_thread::sleep_for(kPause);
    ASSIGN_OR_RETURN(job, StatusNow(client, number));
  }
  const int workers = WorkerCountOf(job);
  std::vector<LogsOptions> logs(static_cast<std::size_t>(workers));
  std::vector<std::thread> others;
  for (int rank = 0; rank < workers; ++rank) {
    LogsOptions& one = logs[static_cast<std::size_t>(rank)];
    one.controller = options.controller;
    one.rank = rank;
    one.all = true;
    one.follow = true;
    one.label = fmt::format("{}: ", rank);
    if (rank > 0) {  // what is to be said of the job worker 0's says
      others.emplace_back([&one, number] { static_cast<void>(FollowLogs(one, number).ok()); });
    }
  }
  Status shown = FollowLogs(logs.front(), number);
  for (std::thread& other : others) {
    other.join();
  }
  return shown;
}

Status ShowLog(const RunCommandOptions& options, std::uint64_t number) {
  LogsOptions logs;
  logs.controller = options.controller;
  logs.rank = options.rank;
  logs.all = true;
  logs.follow = true;
  return FollowLogs(logs, number);
}

// Waits for all tasks of the array; a signal cancels those that are left.
Status RunArray(const RunCommandOptions& options, std::uint64_t array,
                const BlockedSignals& blocked, rpc::ClusterClient& client, Command& chosen) {
  WaitOptions all;
  all.controller = options.controller;
  all.json = options.json;
  all.selection.jobs = {std::to_string(array)};
  ASSIGN_OR_RETURN(const std::vector<v1::JobStatus> tasks,
                   SelectJobs(client, all.selection, false));
  if (!options.quiet) {
    Tell(fmt::format("job {} submitted, an array of {} tasks", array, tasks.size()));
  }
  if (options.label) {
    Tell(
        "--label has no effect: of an array run shows one worker of each task, each line behind "
        "its task; expected --rank for another one");
  }
  LogsOptions logs;
  logs.rank = options.rank;
  logs.follow = true;
  Waiting waiting(
      all, tasks,
      options.json ? std::function<void(const v1::JobsReply&)>() : OutputOfTasks(logs, client));
  int cancelled = 0;
  while (true) {
    RETURN_IF_ERROR(waiting.Ask(client));
    if (waiting.IsOver()) {
      break;
    }
    if (const int signal = blocked.Await(kPause); signal != 0 && signal != SIGWINCH) {
      if (cancelled != 0) {
        Tell(fmt::format("job {} is left to itself", array));
        chosen.exit_status = SignalsToJob::kSignalled + signal;
        return {};
      }
      cancelled = signal;
      Tell(fmt::format("job {} is cancelled; once more leaves it to itself", array));
      CancelArray(array, client);
    }
  }
  if (options.json) {
    PrintJsonList(waiting.ended());
  }
  chosen.exit_status =
      cancelled != 0 ? SignalsToJob::kSignalled + cancelled : waiting.exit_status();
  return {};
}

Status RunAndFollow(RunCommandOptions options, Command& chosen) {
  const BlockedSignals blocked({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH});
  RETURN_IF_ERROR(ChooseInput(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  ASSIGN_OR_RETURN(const v1::SubmitReply submitted, SendJob(options, chosen.rest, false, *client));
  const std::uint64_t number = submitted.job();
  if (!submitted.status().request().array().empty()) {
    return RunArray(options, number, blocked, *client, chosen);
  }
  SignalsToJob signals(options, number);
  v1::AttachRequest target;
  target.set_job(number);
  const SessionInput input(
      options, target, blocked,
      {.reads_input = options.input != v1::LaunchSpec::NOTHING,
       .terminal = options.terminal,
       .on_signal = [&signals](SessionInput& /*input*/, int signal) { signals.Take(signal); }});
  if (!options.quiet) {
    Tell(fmt::format("job {} submitted", number));
  }
  const Status shown = options.terminal ? ShowTerminal(options, number, *client)
                       : options.label  ? ShowLabelled(options, number, *client)
                                        : ShowLog(options, number);
  if (!shown.ok()) {
    Tell(shown.error().message);
  }
  // Its log may be gone with its node: what counts is the job's end.
  ASSIGN_OR_RETURN(v1::JobStatus job, StatusNow(*client, number));
  while (!live::HasEnded(job.state())) {
    std::this_thread::sleep_for(kPause);
    ASSIGN_OR_RETURN(job, StatusNow(*client, number));
  }
  if (options.json) {
    PrintJson(job);
  }
  chosen.exit_status = job.state() == v1::CANCELLED && signals.cancelled() != 0
                           ? SignalsToJob::kSignalled + signals.cancelled()
                           : ExitStatusOf(job, shown);
  return {};
}

}  // namespace

void AddWait(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<WaitOptions>();
  CLI::App* command = app.add_subcommand("wait", "wait until jobs have ended");
  command->footer(
      "The exit status is 0 if all have completed, otherwise that of the first that has not: its\n"
      "own exit code, or 1.\n");
  AddJobs(*command, options->selection);
  AddFilters(*command, options->selection);
  AddClusterOptions(*command, *options);
  command->add_flag("--any", options->any, "until one of them has ended");
  command->add_flag("--tasks", options->tasks, "a line for each task of an array, when it ends");
  command->add_option("--timeout", options->timeout_s, "give up after this time: 90s, 15m, 2h")
      ->type_name("TIME")
      ->transform(Span())
      ->check(NonNegative());
  command->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return Wait(*options, chosen); }; });
}

void AddRun(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<RunCommandOptions>();
  CLI::App* command =
      app.add_subcommand("run", "submit a job, show what it writes and wait for its end");
  command->footer(
      "The command follows the options: trainyard run --gpus 2 -- PROGRAM [ARGUMENT...]\n"
      "Its first worker reads what this command reads, from a file or a pipe; with --pty it has a\n"
      "terminal. Ctrl-C, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 go to the workers; a second Ctrl-C\n"
      "within a second cancels the job, and so does any of them while it waits. The exit status "
      "is\n"
      "the job's exit code, 128 + the signal that has cancelled it, or 1. With --array it waits "
      "for\n"
      "all tasks, shows what each has written and how it has ended, and a signal cancels those "
      "that\n"
      "are left.\n");
  AddClusterOptions(*command, *options);
  AddJobOptions(*command, *options);
  command->add_option("--rank", options->rank, "worker whose output is shown")
      ->check(NonNegative())
      ->capture_default_str();
  command->add_flag("--pty", options->terminal,
                    "worker 0 has a terminal, which is shown and typed into here");
  command
      ->add_flag("--label", options->label,
                 "the output of all workers; each line begins with the worker's number")
      ->excludes("--pty", "--rank");
  command->add_flag("--quiet", options->quiet, "do not tell the number of the job");
  command->callback([options, &chosen] {
    chosen.run = [options, &chosen] { return RunAndFollow(*options, chosen); };
  });
}

}  // namespace trainyard::cli
