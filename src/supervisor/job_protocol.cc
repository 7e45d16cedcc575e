// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job_protocol.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "base/text.h"

namespace trainyard {
namespace {

using Kind = JobLine::Kind;

struct Word {
  std::string_view text;
  Kind kind;
  bool takes_iterations;
};

constexpr std::array<Word, 5> kWords{{{"progress", Kind::kProgress, true},
                                      {"checkpoint", Kind::kCheckpoint, true},
                                      {"finished", Kind::kFinished, false},
                                      {"lease?", Kind::kLease, false},
                                      {"no-signals", Kind::kNoSignals, false}}};

Result<JobLine> ParseArguments(const Word& word, std::string_view arguments) {
  if (!word.takes_iterations) {
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
  return BadInput("expected progress, checkpoint, finished, lease? or no-signals");
}

std::string StopLine(double seconds) { return fmt::format("stop {}\n", seconds); }

std::string ErrorLine(std::string_view reason) { return fmt::format("error: {}\n", reason); }

}  // namespace trainyard
