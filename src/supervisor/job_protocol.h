// SPDX-License-Identifier: Apache-2.0
// The job protocol: lines that a training job and its supervisor may tell each other over the Unix
// socket that TRAINYARD_SOCKET names. docs/job-protocol.md describes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainyard/live.pb.h"
#include "trainyard/metric.h"
#include "trainyard/status.h"

namespace trainyard::supervisor {

inline constexpr std::size_t kMaxJobLine = 4096;

// What an attempt has of its node, as jobs are told: "cpus", "3.5". Nothing of what nobody has
// said.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> ShareTexts(
    const v1::NodeShare& share);

struct JobLine {
  enum class Kind : unsigned char {
    kProgress,
    kCheckpoint,
    kFinished,
    kLease,
    kNoSignals,
    kMetric
  };
  Kind kind = Kind::kLease;
  double iterations = 0;  // of kProgress and kCheckpoint
  Metric metric{};        // of kMetric
};

// The error's message is the REASON of the answer.
[[nodiscard]] Result<JobLine> ParseJobLine(std::string_view line);

// Lines to the job, with their ends.
[[nodiscard]] std::string StopLine(double seconds);
[[nodiscard]] std::string TuneLine(const v1::NodeShare& share);
[[nodiscard]] std::string ErrorLine(std::string_view reason);

}  // namespace trainyard::supervisor
