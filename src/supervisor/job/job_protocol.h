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
inline constexpr std::size_t kMaxNote = 200;  // bytes
// Of the protocol, as this program speaks it. 0: that of Trainyard 0.1.0, without `hello`.
inline constexpr int kJobProtocol = 1;

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
    kMetric,
    kHello,
    kStage,
    kEnd,
    kNote
  };
  Kind kind = Kind::kLease;
  double number = 0;  // of kProgress and kCheckpoint iterations, of kHello the version
  Metric metric{};    // of kMetric
  v1::Stage stage = v1::STAGE_UNSPECIFIED;  // of kStage and kEnd
  std::string text{};                       // of kHello who speaks, of kNote what it says
};

// The error's message is the REASON of the answer.
[[nodiscard]] Result<JobLine> ParseJobLine(std::string_view line);

// Lines to the job, with their ends.
[[nodiscard]] std::string StopLine(double seconds);
[[nodiscard]] std::string TuneLine(const v1::NodeShare& share);
[[nodiscard]] std::string ErrorLine(std::string_view reason);
[[nodiscard]] std::string HelloLine();
[[nodiscard]] std::string GoLine(v1::Stage stage);

// As jobs write it: "load".
[[nodiscard]] std::string_view NameOf(v1::Stage stage);

}  // namespace trainyard::supervisor
