// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm/allocation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "base/try.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_submit.h"
#include "cli/slurm/slurm_commands.h"
#include "live/jobs/job_request.h"
#include "requests/slurm/sbatch_options.h"

namespace trainyard::cli {
namespace {

// It ends well when the allocation is given back, and leaves nothing when it is taken.
constexpr const char* kHold =
    "#!/bin/sh\ntrap 'kill $!; exit 0' USR1 TERM\nsleep infinity & wait $!\n";

// By the signal that ends its script; a job that has none yet is cancelled. The controller may be
// away for a while.
void GiveBack(std::uint64_t job) {
  constexpr Duration kUntilItIsBack = std::chrono::minutes(10);
  const Result<std::unique_ptr<rpc::ClusterClient>> client = ConnectAsSlurm();
  if (!client.ok()) {
    return;
  }
  v1::ClientRequest request;
  request.mutable_signal()->set_job(job);
  request.mutable_signal()->set_signal(SIGUSR1);
  if (!client.value()->Call(request, kTimeout, kUntilItIsBack).ok()) {
    request.mutable_cancel()->set_job(job);
    static_cast<void>(client.value()->Call(request, kTimeout, kUntilItIsBack).ok());
  }
}

// Until the other end of the pipe is closed; then the job is given back whose number has come last.
[[noreturn]] void Keep(const io::Descriptor& told) {
  setsid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE}) {
    signal(number, SIG_IGN);
  }
  const io::Descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    dup2(nothing.get(), standard);
  }
  std::uint64_t job = 0;
  while (true) {
    const ssize_t got = read(told.get(), &job, sizeof(job));
    if (got == 0 || (got < 0 && errno != EINTR)) {
      break;
    }
  }
  if (job != 0) {
    GiveBack(job);
  }
  _exit(0);
}

}  // namespace

Result<Allocation> Allocation::Prepare(std::string_view command) {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Failed(fmt::format("no pipe: {}", std::strerror(errno)));
  }
  const io::Descriptor told(ends[0]);
  io::Descriptor keeper(ends[1]);
  const pid_t child = fork();
  if (child < 0) {
    return Failed(fmt::format("no process: {}", std::strerror(errno)));
  }
  if (child == 0) {
    keeper.Close();
    Keep(told);
  }
  return Allocation(command, std::move(keeper));
}

Status Allocation::Ask(std::vector<std::pair<const SlurmOption*, std::string>> options,
                       const std::string& name) {
  JobOptionValues job;
  job.sbatch.emplace();
  job.script = name;
  job.sbatch->text = kHold;
  job.sbatch->options = std::move(options);
  job.sbatch->options.emplace_back(requests::SbatchOptionNamed("output"), "/dev/null");
  ASSIGN_OR_RETURN(client_, ConnectAsSlurm());
  ASSIGN_OR_RETURN(const v1::SubmitReply submitted, SendJob(job, {}, false, *client_));
  status_.set_job(submitted.job());
  const std::uint64_t number = submitted.job();
  if (write(keeper_.get(), &number, sizeof(number)) != sizeof(number)) {
    return Failed("the process that gives the allocation back is gone");
  }
  return {};
}

Status Allocation::Look() {
  ASSIGN_OR_RETURN(const v1::ClientReply reply,
                   client_->Call(JobsCall({status_.job()}, false), kTimeout, kPatience));
  if (reply.jobs().jobs().empty()) {
    return Failed(fmt::format("Job allocation {} is not known any more.", status_.job()));
  }
  status_ = reply.jobs().jobs(0);
  return {};
}

bool Allocation::Await(const BlockedSignals& signals) {
  constexpr std::chrono::milliseconds kPause(100);
  constexpr int kLooks = 15;  // until it is said that it waits
  for (int looks = 0;; ++looks) {
    if (const Status looked = Look(); !looked.ok()) {
      Say("error: " + looked.error().message);
      return false;
    }
    if (live::HasEnded(status_.state())) {
      Say(status_.state() == v1::CANCELLED ? "Job has been cancelled"
                                           : fmt::format("error: {}", status_.reason()));
      TellRevoked();
      return false;
    }
    if (status_.state() == v1::RUNNING) {
      if (looks > kLooks) {
        Say(fmt::format("job {} has been allocated resources", job()));
      }
      return true;
    }
    if (looks == kLooks) {
      Say(fmt::format("job {} queued and waiting for resources", job()));
    }
    if (const int signal = signals.Await(kPause);
        signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) {
      Say("Job aborted due to signal");
      TellRevoked();
      return false;
    }
  }
}

void Allocation::Say(const std::string& what) const {
  fmt::print(stderr, "{}: {}\n", command_, what);
}

void Allocation::TellRevoked() const {
  Say(fmt::format("Job allocation {} has been revoked.", job()));
}

bool Allocation::IsHeld() {
  const std::uint32_t attempt = status_.attempt();
  return !Look().ok() || (!live::HasEnded(status_.state()) && status_.attempt() == attempt);
}

void Allocation::Leave() {
  const std::uint64_t none = 0;
  static_cast<void>(!write(keeper_.get(), &none, sizeof(none)));
}

void Allocation::HandToExec() const { fcntl(keeper_.get(), F_SETFD, 0); }

}  // namespace trainyard::cli
