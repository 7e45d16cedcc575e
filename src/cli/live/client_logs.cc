// SPDX-License-Identifier: Apache-2.0
// trainyard logs: what the workers of a job have written.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_logs.h"
#include "cli/live/job_selection.h"
#include "cli/numbers.h"
#include "io/json.h"

namespace trainyard::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Copies logs to stdout as they are.
class LogCopy {
 public:
  // `client` must outlive it.
  LogCopy(LogsOptions options, std::uint64_t job, rpc::ClusterClient& client)
      : options_(std::move(options)), job_(job), client_(client), attempt_(options_.attempt) {}

  // What is there of all attempts, one after the other.
  Status CopyAll() {
    ASSIGN_OR_RETURN(const v1::JobStatus job, ReadJob());
    if (job.attempt() <= 1) {
      return CopyOnce();
    }
    Status first;
    for (attempt_ = 1; attempt_ <= job.attempt(); ++attempt_) {
      fmt::print(stderr, "trainyard: attempt {}\n", attempt_);
      offset_ = 0;
      const Status status = CopyAttemptOnce();
      if (!status.ok()) {  // its node may be away; others are there
        fmt::print(stderr, "{}\n", status.error().message);
        first = first.ok() ? status : first;
      }
    }
    RETURN_IF_ERROR(PrintTail());
    return first;
  }

  // What is there now; if that is nothing, why, on stderr.
  Status CopyOnce() {
    RETURN_IF_ERROR(CopyAttemptOnce());
    if (options_.json) {
      const std::string text = std::exchange(tail_, {});
      const nlohmann::ordered_json json{
          {"job", job_}, {"attempt", attempt_}, {"rank", options_.rank}, {"data", text}};
      // Logs may hold anything.
      fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    }
    RETURN_IF_ERROR(PrintTail());
    return offset_ == 0 ? ExplainNothing() : Status();
  }

  // What there is now from there on.
  Status CopyRest(std::uint64_t offset) {
    offset_ = offset;
    return CopyAttemptOnce();
  }

  // Until the job, or the attempt that was asked for, has ended. A job that has ended in another
  // way than completed is an error.
  Status Follow() {
    while (true) {
      ASSIGN_OR_RETURN(const v1::JobStatus job, ReadJob());
      const std::uint32_t last = job.attempt();
      if (attempt_ == 0) {
        attempt_ = options_.all ? std::min(last, 1U) : last;
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
        TellWhyItWaits(job, why_it_waits_);
        std::this_thread::sleep_for(kPause);
      } else {
        RETURN_IF_ERROR(CopyAttempt(ended));
      }
    }
  }

  // What is new of the attempts up to `last`. Of those that are over, as all of a job that has
  // ended are, nothing is left then, whatever becomes of it.
  Status CopyNew(std::uint32_t last, bool ended) {
    attempt_ = std::max(attempt_, 1U);
    while (true) {
      if (done_ && attempt_ >= last) {
        return {};
      }
      if (done_) {
        done_ = false;
        offset_ = 0;
        ++attempt_;
      }
      if (ended || attempt_ < last) {
        if (Status status = CopyAttempt(true); !status.ok()) {
          done_ = true;
          return status;
        }
        continue;
      }
      const Result<v1::ClientReply> reply = Read();
      if (!reply.ok() ||
          (reply.value().logs().data().empty() && !reply.value().logs().finished())) {
        return {};  // its node may be away, and come back
      }
      RETURN_IF_ERROR(Take(reply.value().logs()));
    }
  }

 private:
  // What is there of the attempt now. JSON has it as one text.
  Status CopyAttemptOnce() {
    while (true) {
      ASSIGN_OR_RETURN(const v1::ClientReply reply, Read());
      const v1::LogsReply& part = reply.logs();
      RETURN_IF_ERROR(Keep(part.data()));
      if (part.finished() || part.data().empty()) {
        return {};
      }
    }
  }

  // Prints it, or keeps it for JSON or because only the end is asked for.
  Status Keep(const std::string& bytes) {
    if (!options_.json && !tailing_) {
      return Print(bytes);
    }
    tail_ += bytes;
    if (tailing_) {
      tail_.erase(0, StartOfLines(tail_, options_.tail));
    }
    return {};
  }

  Status PrintTail() {
    tailing_ = false;
    return Print(std::exchange(tail_, {}));
  }

  // Where the last lines begin. A line without its end counts.
  static std::size_t StartOfLines(const std::string& text, std::uint64_t lines) {
    std::size_t at = text.size();
    if (at > 0 && text.back() == '\n') {
      --at;
    }
    for (std::uint64_t left = lines; left > 0; --left) {
      const std::size_t end = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
      if (end == std::string::npos) {
        return 0;
      }
      at = end;
    }
    return std::min(text.size(), at + 1);
  }

  // The end of an attempt before the last is never an error.
  [[nodiscard]] Status Outcome(const v1::JobStatus& job) const {
    return job.state() == v1::COMPLETED || !live::HasEnded(job.state()) || attempt_ != job.attempt()
               ? Status()
               : Failed(fmt::format("job {} {} {}{}{}", JobText(job),
                                    job.state() == v1::FAILED ? "has" : "was",
                                    live::StateText(job.state()), job.reason().empty() ? "" : ": ",
                                    Printable(job.reason())));
  }

  Status ExplainNothing() {
    ASSIGN_OR_RETURN(const v1::JobStatus job, ReadJob());
    const std::string& reason = job.reason();
    Tell(fmt::format("worker {} of job {} has written nothing in attempt {}; the job is {}{}{}",
                     options_.rank, JobText(job), attempt_, live::StateText(job.state()),
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
      RETURN_IF_ERROR(Take(part));
      if (tailing_ && (done_ || part.data().empty())) {
        RETURN_IF_ERROR(PrintTail());
      }
      if (!done_ && part.data().empty()) {
        std::this_thread::sleep_for(kPause);
      }
    }
    return {};
  }

  Status Take(const v1::LogsReply& part) {
    RETURN_IF_ERROR(Keep(part.data()));
    done_ = part.finished();
    return done_ && !line_.empty() ? Print("\n") : Status();
  }

  Status AfterError(const Error& error, bool job_ended) {
    const auto now = std::chrono::steady_clock::now();
    failing_since_ = failing_since_.value_or(now);
    if (error.code == ErrorCode::kInvalidArgument || job_ended || now - *failing_since_ > kGiveUp) {
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
        client_.Call(request, kTimeout, options_.follow ? kPatience : Duration{0});
    if (reply.ok()) {
      offset_ = reply.value().logs().next_offset();
      attempt_ = reply.value().logs().attempt();
    }
    return reply;
  }

  [[nodiscard]] Result<v1::JobStatus> ReadJob() {
    ASSIGN_OR_RETURN(const v1::ClientReply reply,
                     client_.Call(JobsCall({job_}, false), kTimeout, kPatience));
    if (reply.jobs().jobs().empty()) {
      return Failed(fmt::format("there is no job {}", job_));
    }
    return reply.jobs().jobs(0);
  }

  Status Print(const std::string& bytes) {
    if (options_.label.empty()) {
      return Write(bytes);
    }
    line_ += bytes;
    std::string lines;
    for (std::size_t end = line_.find('\n'); end != std::string::npos; end = line_.find('\n')) {
      lines += options_.label + line_.substr(0, end + 1);
      line_.erase(0, end + 1);
    }
    return Write(lines);
  }

  static Status Write(const std::string& bytes) {
    const bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
    return written && std::fflush(stdout) == 0 ? Status() : Failed("stdout: cannot be written");
  }

  const LogsOptions options_;
  const std::uint64_t job_;
  rpc::ClusterClient& client_;
  std::uint32_t attempt_;
  std::uint64_t offset_ = 0;
  bool tailing_ = options_.tail > 0;  // what is read goes to tail_
  std::string tail_;
  bool done_ = false;  // with this attempt
  std::string why_it_waits_;
  std::string line_;  // with a label: what has come of the next one
  std::optional<std::chrono::steady_clock::time_point> failing_since_;
};

// The one job that is meant.
Result<std::uint64_t> ChosenJob(const LogsOptions& options, rpc::ClusterClient& client) {
  if (options.selection.jobs.size() == 1 && !options.selection.has_filter()) {
    ASSIGN_OR_RETURN(const std::vector<std::uint64_t> numbers,
                     JobNumbers(client, options.selection.jobs));
    return numbers.front();
  }
  ASSIGN_OR_RETURN(const std::vector<v1::JobStatus> jobs,
                   SelectJobs(client, options.selection, false));
  if (jobs.size() == 1) {
    return jobs.front().job();
  }
  constexpr std::size_t kEnough = 10;
  std::string texts;
  for (std::size_t i = 0; i < std::min(jobs.size(), kEnough); ++i) {
    texts += (i == 0 ? "" : ", ") + JobText(jobs[i]);
  }
  return InvalidArgument(fmt::format("{} jobs are meant ({}{}); expected one", jobs.size(), texts,
                                     jobs.size() > kEnough ? ", ..." : ""));
}

Status Logs(const LogsOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  ASSIGN_OR_RETURN(const std::uint64_t job, ChosenJob(options, *client));
  LogCopy copy(options, job, *client);
  return options.follow ? copy.Follow() : options.all ? copy.CopyAll() : copy.CopyOnce();
}

}  // namespace

Status FollowLogs(const LogsOptions& options, std::uint64_t job) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  return LogCopy(options, job, *client).Follow();
}

Status CopyLogFrom(const LogsOptions& options, std::uint64_t job, std::uint64_t offset) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  return LogCopy(options, job, *client).CopyRest(offset);
}

std::function<void(const v1::JobsReply&)> OutputOfTasks(const LogsOptions& options,
                                                        rpc::ClusterClient& client) {
  constexpr std::ptrdiff_t kFew = 10;  // each is a call of its user's twice a second
  return [options, &client, copies = std::map<std::uint64_t, LogCopy>(),
          shown = std::set<std::uint64_t>()](const v1::JobsReply& reply) mutable {
    const auto runs = [](const v1::JobStatus& job) {
      return job.attempt() > 0 && !live::HasEnded(job.state());
    };
    const bool are_few = std::count_if(reply.jobs().begin(), reply.jobs().end(), runs) <= kFew;
    for (const v1::JobStatus& job : reply.jobs()) {
      const bool ended = live::HasEnded(job.state());
      if (job.attempt() == 0 || (!ended && !are_few) || shown.contains(job.job())) {
        continue;
      }
      LogsOptions one = options;
      one.label = JobText(job) + ": ";
      LogCopy& copy = copies.try_emplace(job.job(), one, job.job(), client).first->second;
      if (const Status status = copy.CopyNew(job.attempt(), ended); !status.ok()) {
        Tell(fmt::format("the output of job {} is not all there: {}", JobText(job),
                         status.error().message));
      }
      if (ended) {
        copies.erase(job.job());
        shown.insert(job.job());
      }
    }
  };
}

void AddLogs(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<LogsOptions>();
  CLI::App* command = app.add_subcommand("logs", "output of a job's workers");
  AddJobs(*command, options->selection, "id of the job")->expected(0, 1);
  AddFilters(*command, options->selection);
  AddClusterOptions(*command, *options);
  command->add_flag("-f,--follow", options->follow, "go on until the job has ended")
      ->excludes(command->get_option("--json"));
  command->add_option("--rank", options->rank, "worker")
      ->check(NonNegative())
      ->capture_default_str();
  command->add_option("--attempt", options->attempt, "number of the attempt (default: the last)")
      ->check(Positive());
  command->add_flag("--all", options->all, "all attempts, from the first on")
      ->excludes("--attempt", "--json");
  command->add_option("--tail", options->tail, "only the last N lines of what there is")
      ->type_name("N")
      ->check(Positive());
  command->callback([options, &chosen] { chosen.run = [options] { return Logs(*options); }; });
}

void TellWhyItWaits(const v1::JobStatus& job, std::string& told) {
  constexpr std::string_view kBegins = "begins in ";
  const std::string& reason = job.reason();
  if (job.state() != v1::WAITING || reason == told ||
      (reason.starts_with(kBegins) && told.starts_with(kBegins))) {
    return;
  }
  told = reason;
  Tell(fmt::format("job {} is waiting: {}", JobText(job), Printable(reason)));
}

}  // namespace trainyard::cli
