// SPDX-License-Identifier: Apache-2.0
// trainyard logs: what the workers of a job have written.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/client_calls.h"
#include "cli/numbers.h"

namespace trainyard::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct LogsOptions : ClusterOptions {
  std::string job;
  std::uint32_t attempt = 0;  // 0: the last
  int rank = 0;
  bool follow = false;
};

// Copies logs to stdout as they are.
class LogCopy {
 public:
  LogCopy(const LogsOptions& options, std::uint64_t job, std::unique_ptr<rpc::ClusterClient> client)
      : options_(options), job_(job), client_(std::move(client)), attempt_(options.attempt) {}

  // What is there now; if that is nothing, why, on stderr.
  Status CopyOnce() {
    std::string text;
    while (true) {
      ASSIGN_OR_RETURN(const v1::ClientReply reply, Read());
      const v1::LogsReply& part = reply.logs();
      if (options_.json) {
        text += part.data();
      } else {
        RETURN_IF_ERROR(Print(part.data()));
      }
      if (part.finished() || part.data().empty()) {
        break;
      }
    }
    if (options_.json) {
      const nlohmann::ordered_json json{
          {"job", job_}, {"attempt", attempt_}, {"rank", options_.rank}, {"data", text}};
      // Logs may hold anything.
      fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    }
    return offset_ == 0 ? ExplainNothing() : Status();
  }

  // Until the job, or the attempt that was asked for, has ended. A job that has ended in another
  // way than completed is an error.
  Status Follow() {
    while (true) {
      ASSIGN_OR_RETURN(const v1::JobStatus job, ReadJob());
      const std::uint32_t last = job.attempt();
      if (attempt_ == 0) {
        attempt_ = last;
      } else if (done_ && last > attempt_ && options_.attempt == 0) {
        done_ = false;
        offset_ = 0;
        fmt::print(stderr, "trainyard: attempt {}\n", ++attempt_);
      }
      const bool ended = live::HasEnded(job.state());
      if (attempt_ == 0 || done_) {
        if (ended || (done_ && options_.attempt != 0)) {
          return Outcome(job);
        }
        TellWhyItWaits(job);
        std::this_thread::sleep_for(kPause);
      } else {
        RETURN_IF_ERROR(CopyAttempt(ended));
      }
    }
  }

 private:
  // The end of an attempt before the last is never an error.
  [[nodiscard]] Status Outcome(const v1::JobStatus& job) const {
    return job.state() == v1::COMPLETED || !live::HasEnded(job.state()) || attempt_ != job.attempt()
               ? Status()
               : Failed(fmt::format("job {} {} {}{}{}", job.job(),
                                    job.state() == v1::FAILED ? "has" : "was",
                                    live::StateText(job.state()), job.reason().empty() ? "" : ": ",
                                    Printable(job.reason())));
  }

  // Once for each reason.
  void TellWhyItWaits(const v1::JobStatus& job) {
    if (job.state() == v1::WAITING && job.reason() != why_it_waits_) {
      why_it_waits_ = job.reason();
      Tell(fmt::format("job {} is waiting: {}", job_, Printable(job.reason())));
    }
  }

  Status ExplainNothing() {
    ASSIGN_OR_RETURN(const v1::JobStatus job, ReadJob());
    const std::string& reason = job.reason();
    Tell(fmt::format("worker {} of job {} has written nothing in attempt {}; the job is {}{}{}",
                     options_.rank, job_, attempt_, live::StateText(job.state()),
                     reason.empty() ? "" : ": ", Printable(reason)));
    return {};
  }

  static constexpr milliseconds kPause{500};
  // A log that cannot be read for so long, because its node is away, is given up.
  static constexpr seconds kGiveUp{60};

  // Copies up to the end of the attempt, or up to an error that may pass.
  Status CopyAttempt(bool job_ended) {
    while (!done_) {
      const Result<v1::ClientReply> reply = Read();
      if (!reply.ok()) {
        return AfterError(reply.error(), job_ended);
      }
      failing_since_.reset();
      const v1::LogsReply& part = reply.value().logs();
      RETURN_IF_ERROR(Print(part.data()));
      done_ = part.finished();
      if (!done_ && part.data().empty()) {
        std::this_thread::sleep_for(kPause);
      }
    }
    return {};
  }

  Status AfterError(const Error& error, bool job_ended) {
    const auto now = std::chrono::steady_clock::now();
    failing_since_ = failing_since_.value_or(now);
    if (error.code != ErrorCode::kFailed || job_ended || now - *failing_since_ > kGiveUp) {
      return error;
    }
    std::this_thread::sleep_for(kPause);
    return {};
  }

  [[nodiscard]] Result<v1::ClientReply> Read() {
    v1::ClientRequest request;
    v1::LogsRequest& logs = *request.mutable_logs();
    logs.set_job(job_);
    logs.set_attempt(attempt_);
    logs.set_rank(options_.rank);
    logs.set_offset(offset_);
    Result<v1::ClientReply> reply =
        client_->Call(request, kTimeout, options_.follow ? kPatience : Duration{0});
    if (reply.ok()) {
      offset_ = reply.value().logs().next_offset();
      attempt_ = reply.value().logs().attempt();
    }
    return reply;
  }

  [[nodiscard]] Result<v1::JobStatus> ReadJob() {
    ASSIGN_OR_RETURN(const v1::ClientReply reply,
                     client_->Call(JobsCall({job_}, false), kTimeout, kPatience));
    if (reply.jobs().jobs().empty()) {
      return Failed(fmt::format("there is no job {}", job_));
    }
    return reply.jobs().jobs(0);
  }

  static Status Print(const std::string& bytes) {
    const bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
    return written && std::fflush(stdout) == 0 ? Status() : Failed("stdout: cannot be written");
  }

  const LogsOptions& options_;
  const std::uint64_t job_;
  const std::unique_ptr<rpc::ClusterClient> client_;
  std::uint32_t attempt_;
  std::uint64_t offset_ = 0;
  bool done_ = false;  // with this attempt
  std::string why_it_waits_;
  std::optional<std::chrono::steady_clock::time_point> failing_since_;
};

Status Logs(const LogsOptions& options) {
  ASSIGN_OR_RETURN(const std::uint64_t job, ReadJobId(options.job));
  ASSIGN_OR_RETURN(std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  LogCopy copy(options, job, std::move(client));
  return options.follow ? copy.Follow() : copy.CopyOnce();
}

}  // namespace

void AddLogs(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<LogsOptions>();
  CLI::App* command = app.add_subcommand("logs", "output of a job's workers");
  command->add_option("JOB", options->job, "id of the job")->required();
  AddClusterOptions(*command, *options);
  command->add_flag("-f,--follow", options->follow, "go on until the job has ended")
      ->excludes(command->get_option("--json"));
  command->add_option("--rank", options->rank, "worker")
      ->check(NonNegative())
      ->capture_default_str();
  command->add_option("--attempt", options->attempt, "number of the attempt (default: the last)")
      ->check(Positive());
  command->callback([options, &chosen] { chosen.run = [options] { return Logs(*options); }; });
}

}  // namespace trainyard::cli
