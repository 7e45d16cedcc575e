// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/job_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace trainyard::supervisor {

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
      worker.Send(ErrorLine("the line has more than 4096 bytes"));
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
    training_.note = fmt::format(
        "{} speaks version {} of the job protocol, this node version {}: what is newer has no "
        "effect",
        hello.text, hello.number, kJobProtocol);
  }
  return HelloLine();
}

std::string JobServer::Answer(std::uint64_t worker, std::string_view line) {
  if (line.size() >= kMaxJobLine) {
    return ErrorLine("the line has more than 4096 bytes");
  }
  const Result<JobLine> parsed = ParseJobLine(line);
  if (!parsed.ok()) {
    return ErrorLine(parsed.error().message);
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
      return Note(said.metric);
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

std::string JobServer::Note(const Metric& metric) {
  if (training_.metrics.size() == kMaxMetrics && !training_.metrics.contains(metric.name)) {
    return ErrorLine("a job has 16 metrics at most");
  }
  training_.metrics[metric.name] = metric.value;
  return {};
}

std::string JobServer::StopLineNow() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end_ - Clock::now());
  return StopLine(std::max(0.0, std::chrono::duration<double>(left).count()));
}

}  // namespace trainyard::supervisor
