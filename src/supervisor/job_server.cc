// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job_server.h"

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
        worker.Send(tune_line_);
        worker.Send(end_.has_value() ? StopLineNow() : std::string());
      },
      [this](Connection& worker) {
        const bool open = worker.Transfer();
        TakeLines(worker);
        // A job may say its lines, close its side and then read the answers.
        return worker.Flush() && open;
      });
}

void JobServer::TakeLines(Connection& worker) {
  std::string& received = worker.received();
  std::size_t taken = 0;
  for (std::size_t end = 0; (end = received.find('\n', taken)) != std::string::npos;
       taken = end + 1) {
    const std::string_view line = std::string_view(received).substr(taken, end - taken);
    if (!std::exchange(worker.skips_line, false)) {
      worker.Send(Answer(line));
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

std::string JobServer::Answer(std::string_view line) {
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
      training_.iterations = said.iterations;
      break;
    case JobLine::Kind::kCheckpoint:
      training_.checkpointed_iterations = said.iterations;
      training_.iterations = std::max(training_.iterations, said.iterations);
      break;
    case JobLine::Kind::kFinished:
      training_.finished = true;
      break;
    case JobLine::Kind::kNoSignals:
      training_.no_signals = true;
      break;
    case JobLine::Kind::kMetric:
      return Note(said.metric);
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
