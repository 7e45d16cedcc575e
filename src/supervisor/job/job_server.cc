// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/job_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace trainyard::supervisor {
namespace {

constexpr std::string_view kTooLong = "the line has more than 4096 bytes";

// The beginning of a line, whatever is in it.
std::string Shown(std::string_view line) {
  constexpr std::size_t kMost = 40;
  std::string shown(line.substr(0, kMost));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown + (line.size() > kMost ? "..." : "");
}

}  // namespace

JobServer::JobServer(io::Descriptor socket, double iterations_done, v1::NodeShare share)
    : workers_(std::move(socket), kMaxConnections),
      training_{.iterations = iterations_done, .checkpointed_iterations = iterations_done},
      share_(std::move(share)) {}

void JobServer::GiveNotice(Clock::time_point end) {
  end_ = end;
  workers_.SendAll(StopLineNow());
}

void JobServer::Tune(const v1::NodeShare& share) {
  const std::string line = TuneLine(share);
  if (line == TuneLine(share_)) {
    return;
  }
  share_ = share;
  tune_line_ = line;
  workers_.SendAll(tune_line_);
}

void JobServer::Serve() {
  workers_.Serve(
      [this](Connection& worker) {
        worker.number = ++workers_seen_;
        worker.Send(tune_line_);
        worker.Send(end_.has_value() ? StopLineNow() : std::string());
      },
      [this](Connection& worker) {
        const bool open = worker.Transfer();
        TakeLines(worker);
        // A job may say its lines, close its side and then read the answers.
        const bool stays = worker.Flush() && open;
        if (!stays) {
          stages_.Leave(worker.number, Clock::now());
        }
        return stays;
      });
}

void JobServer::TakeLines(Connection& worker) {
  std::string& received = worker.received();
  std::size_t taken = 0;
  for (std::size_t end = 0; (end = received.find('\n', taken)) != std::string::npos;
       taken = end + 1) {
    const std::string_view line = std::string_view(received).substr(taken, end - taken);
    if (!std::exchange(worker.skips_line, false)) {
      worker.Send(Answer(worker.number, line));
    }
  }
  received.erase(0, taken);
  if (received.size() >= kMaxJobLine) {
    if (!std::exchange(worker.skips_line, true)) {
      worker.Send(Refuse(received, kTooLong));
    }
    received.clear();
  }
}

void JobServer::Go() {
  for (const auto& [number, stage] : stages_.Go(Clock::now())) {
    for (Connection& worker : workers_.open()) {
      if (worker.number == number) {
        worker.Send(GoLine(stage));
      }
    }
  }
}

// The lower version counts; people are told where it is not the job's.
std::string JobServer::Greet(const JobLine& hello) {
  if (hello.number > kJobProtocol) {
    is_newer_ = true;
    training_.note = fmt::format(
        "{} speaks version {} of the job protocol, this node version {}: what is newer has no "
        "effect",
        hello.text, hello.number, kJobProtocol);
  }
  return HelloLine();
}

std::string JobServer::Answer(std::uint64_t worker, std::string_view line) {
  if (line.size() >= kMaxJobLine) {
    return Refuse(line, kTooLong);
  }
  const Result<JobLine> parsed = ParseJobLine(line);
  if (!parsed.ok()) {
    return Refuse(line, parsed.error().message);
  }
  const JobLine& said = parsed.value();
  switch (said.kind) {
    case JobLine::Kind::kProgress:
      training_.iterations = said.number;
      training_.progress = Clock::now();
      training_.first_progress = training_.first_progress.value_or(*training_.progress);
      break;
    case JobLine::Kind::kCheckpoint:
      training_.checkpointed_iterations = said.number;
      training_.iterations = std::max(training_.iterations, said.number);
      break;
    case JobLine::Kind::kFinished:
      training_.finished = true;
      break;
    case JobLine::Kind::kNoSignals:
      training_.no_signals = true;
      break;
    case JobLine::Kind::kMetric:
      return TakeMetric(said.metric) ? std::string() : Refuse(line, "a job has 32 metrics at most");
    case JobLine::Kind::kHello:
      return Greet(said);
    case JobLine::Kind::kStage:
      return stages_.Want(worker, said.stage, Clock::now()) ? GoLine(said.stage) : std::string();
    case JobLine::Kind::kEnd:
      stages_.End(worker, Clock::now());
      break;
    case JobLine::Kind::kNote:
      training_.note = said.text;
      break;
    case JobLine::Kind::kLease:
      return "lease " + (end_.has_value() ? StopLineNow() : std::string("ok\n"));
  }
  return {};
}

bool JobServer::TakeMetric(const Metric& metric) {
  if (training_.metrics.size() == kMaxMetrics && !training_.metrics.contains(metric.name)) {
    return false;
  }
  training_.metrics[metric.name] = metric.value;
  return true;
}

// The job hears of each line, people of the 1st, 2nd, 4th, 8th ... Lines that a later version of
// the protocol may know are no mistake.
std::string JobServer::Refuse(std::string_view line, std::string_view reason) {
  ++refused_;
  if (!is_newer_ && std::has_single_bit(refused_)) {
    training_.note =
        refused_ == 1
            ? fmt::format("said a line that was not understood, '{}': {}", Shown(line), reason)
            : fmt::format("said {} lines that were not understood, the last '{}': {}", refused_,
                          Shown(line), reason);
  }
  return ErrorLine(reason);
}

std::string JobServer::StopLineNow() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end_ - Clock::now());
  return StopLine(std::max(0.0, std::chrono::duration<double>(left).count()));
}

}  // namespace trainyard::supervisor
