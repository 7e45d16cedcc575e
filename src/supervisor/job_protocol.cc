// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job_protocol.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "base/metric_name.h"
#include "base/text.h"

namespace trainyard {
namespace {

using Kind = JobLine::Kind;

enum class Takes : unsigned char { kNothing, kIterations, kMetric };

struct Word {
  std::string_view text;
  Kind kind;
  Takes takes;
};

constexpr std::array<Word, 6> kWords{{{"progress", Kind::kProgress, Takes::kIterations},
                                      {"checkpoint", Kind::kCheckpoint, Takes::kIterations},
                                      {"metric", Kind::kMetric, Takes::kMetric},
                                      {"finished", Kind::kFinished, Takes::kNothing},
                                      {"lease?", Kind::kLease, Takes::kNothing},
                                      {"no-signals", Kind::kNoSignals, Takes::kNothing}}};

Result<JobLine> ParseMetric(std::string_view arguments) {
  const std::size_t blank = arguments.find_first_of(" \t");
  const std::string_view name = arguments.substr(0, blank);
  const std::optional<double> value =
      blank == std::string_view::npos ? std::nullopt : ToNumber(Trim(arguments.substr(blank)));
  if (!IsMetricName(name) || !value.has_value()) {
    return BadInput(
        "'metric' takes a name of 1 to 64 letters, digits, '_', '-', '.' or '/', and a "
        "number");
  }
  return JobLine{.kind = Kind::kMetric, .metric = {.name = std::string(name), .value = *value}};
}

Result<JobLine> ParseArguments(const Word& word, std::string_view arguments) {
  if (word.takes == Takes::kMetric) {
    return ParseMetric(arguments);
  }
  if (word.takes == Takes::kNothing) {
    return arguments.empty() ? Result<JobLine>(JobLine{.kind = word.kind})
                             : BadInput(fmt::format("'{}' stands alone", word.text));
  }
  const std::optional<double> iterations = ToNumber(arguments);
  if (!iterations.has_value() || *iterations < 0) {
    return BadInput(fmt::format("'{}' takes one number that is not negative", word.text));
  }
  return JobLine{.kind = word.kind, .iterations = *iterations};
}

}  // namespace

Result<JobLine> ParseJobLine(std::string_view line) {
  const std::string_view text = Trim(line);
  const std::size_t blank = text.find(' ');
  const std::string_view first = text.substr(0, blank);
  const std::string_view rest = blank == std::string_view::npos ? "" : text.substr(blank);
  for (const Word& word : kWords) {
    if (first == word.text) {
      return ParseArguments(word, Trim(rest));
    }
  }
  return BadInput("expected progress, checkpoint, metric, finished, lease? or no-signals");
}

std::string StopLine(double seconds) { return fmt::format("stop {}\n", seconds); }

std::string CpusText(std::int64_t milli_cpus) {
  constexpr double kMilli = 1000;
  return fmt::format("{}", static_cast<double>(milli_cpus) / kMilli);
}

// Whole: what it does not name is as if nobody had said.
std::string TuneLine(const v1::NodeShare& share) {
  std::string line = "tune";
  if (share.milli_cpus() > 0) {
    line += " cpus=" + CpusText(share.milli_cpus());
  }
  if (share.memory_mib() > 0) {
    line += fmt::format(" memory_mib={}", share.memory_mib());
  }
  if (share.storage_kbps() > 0) {
    line += fmt::format(" storage_kbps={}", share.storage_kbps());
  }
  if (share.loader_workers() > 0) {
    line += fmt::format(" loader_workers={}", share.loader_workers());
  }
  return line + "\n";
}

std::string ErrorLine(std::string_view reason) { return fmt::format("error: {}\n", reason); }

}  // namespace trainyard
