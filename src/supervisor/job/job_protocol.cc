// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/job_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/metric_name.h"
#include "base/text.h"
#include "io/text_check.h"

namespace trainyard::supervisor {
namespace {

using Kind = JobLine::Kind;

enum class Takes : unsigned char { kNothing, kIterations, kMetric, kVersion, kStage, kText };

struct Word {
  std::string_view text;
  Kind kind;
  Takes takes;
};

constexpr std::array<Word, 10> kWords{{{"progress", Kind::kProgress, Takes::kIterations},
                                       {"checkpoint", Kind::kCheckpoint, Takes::kIterations},
                                       {"metric", Kind::kMetric, Takes::kMetric},
                                       {"finished", Kind::kFinished, Takes::kNothing},
                                       {"lease?", Kind::kLease, Takes::kNothing},
                                       {"no-signals", Kind::kNoSignals, Takes::kNothing},
                                       {"hello", Kind::kHello, Takes::kVersion},
                                       {"stage", Kind::kStage, Takes::kStage},
                                       {"end", Kind::kEnd, Takes::kStage},
                                       {"note", Kind::kNote, Takes::kText}}};

constexpr std::array<std::pair<std::string_view, v1::Stage>, 4> kStages{
    {{"load", v1::LOAD},
     {"preprocess", v1::PREPROCESS},
     {"forward", v1::FORWARD},
     {"communication", v1::COMMUNICATION}}};

Result<JobLine> ParseMetric(std::string_view arguments) {
  const std::size_t blank = arguments.find_first_of(" \t");
  const std::string_view name = arguments.substr(0, blank);
  const std::optional<double> value = blank == std::string_view::npos
                                          ? std::nullopt
                                          : base::ToNumber(base::Trim(arguments.substr(blank)));
  if (!base::IsMetricName(name) || !value.has_value()) {
    return BadInput(
        "'metric' takes a name of 1 to 64 letters, digits, '_', '-', '.' or '/', and a "
        "number");
  }
  return JobLine{.kind = Kind::kMetric, .metric = {.name = std::string(name), .value = *value}};
}

// What can be shown to people, and go into a message.
bool IsText(std::string_view text) {
  return text.size() <= kMaxNote && io::IsUtf8(text) &&
         std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

Result<JobLine> ParseHello(std::string_view arguments) {
  const std::size_t blank = arguments.find(' ');
  const std::optional<double> version = base::ToNumber(arguments.substr(0, blank));
  const std::string_view who =
      blank == std::string_view::npos ? "its library" : base::Trim(arguments.substr(blank));
  if (!version.has_value() || *version < 1 || !IsText(who)) {
    return BadInput(
        "'hello' takes the version of the protocol, from 1, and who speaks it, in UTF-8 and at "
        "most 200 bytes");
  }
  return JobLine{.kind = Kind::kHello, .number = *version, .text = std::string(who)};
}

Result<JobLine> ParseStage(const Word& word, std::string_view name) {
  for (const auto& [known, stage] : kStages) {
    if (name == known) {
      return JobLine{.kind = word.kind, .stage = stage};
    }
  }
  return BadInput(
      fmt::format("'{}' takes one of load, preprocess, forward and communication", word.text));
}

Result<JobLine> ParseNote(std::string_view text) {
  if (text.empty() || !IsText(text)) {
    return BadInput("'note' takes a text of 1 to 200 bytes of UTF-8 without control characters");
  }
  return JobLine{.kind = Kind::kNote, .text = std::string(text)};
}

Result<JobLine> ParseIterations(const Word& word, std::string_view arguments) {
  const std::optional<double> iterations = base::ToNumber(arguments);
  if (!iterations.has_value() || *iterations < 0) {
    return BadInput(fmt::format("'{}' takes one number that is not negative", word.text));
  }
  return JobLine{.kind = word.kind, .number = *iterations};
}

Result<JobLine> ParseArguments(const Word& word, std::string_view arguments) {
  switch (word.takes) {
    case Takes::kNothing:
      return arguments.empty() ? Result<JobLine>(JobLine{.kind = word.kind})
                               : BadInput(fmt::format("'{}' stands alone", word.text));
    case Takes::kIterations:
      return ParseIterations(word, arguments);
    case Takes::kMetric:
      return ParseMetric(arguments);
    case Takes::kVersion:
      return ParseHello(arguments);
    case Takes::kStage:
      return ParseStage(word, arguments);
    case Takes::kText:
      return ParseNote(arguments);
  }
  return BadInput("");
}

}  // namespace

Result<JobLine> ParseJobLine(std::string_view line) {
  const std::string_view text = base::Trim(line);
  const std::size_t blank = text.find(' ');
  const std::string_view first = text.substr(0, blank);
  const std::string_view rest = blank == std::string_view::npos ? "" : text.substr(blank);
  for (const Word& word : kWords) {
    if (first == word.text) {
      return ParseArguments(word, base::Trim(rest));
    }
  }
  return BadInput(
      "expected hello, progress, checkpoint, metric, stage, end, note, finished, lease? or "
      "no-signals");
}

std::string StopLine(double seconds) { return fmt::format("stop {}\n", seconds); }

std::vector<std::pair<std::string, std::string>> ShareTexts(const v1::NodeShare& share) {
  constexpr double kMilli = 1000;
  std::vector<std::pair<std::string, std::string>> texts;
  const auto add = [&texts](const char* name, auto value) {
    if (value > 0) {
      texts.emplace_back(name, fmt::format("{}", value));
    }
  };
  add("cpus", static_cast<double>(share.milli_cpus()) / kMilli);
  add("memory_mib", share.memory_mib());
  add("storage_kbps", share.storage_kbps());
  add("loader_workers", share.loader_workers());
  return texts;
}

// States the whole share: what the line does not name is unspecified from now on.
std::string TuneLine(const v1::NodeShare& share) {
  std::string line = "tune";
  for (const auto& [name, value] : ShareTexts(share)) {
    line += fmt::format(" {}={}", name, value);
  }
  return line + "\n";
}

std::string ErrorLine(std::string_view reason) { return fmt::format("error: {}\n", reason); }

std::string HelloLine() { return fmt::format("hello {}\n", kJobProtocol); }

std::string GoLine(v1::Stage stage) { return fmt::format("go {}\n", NameOf(stage)); }

std::string_view NameOf(v1::Stage stage) {
  const auto known = std::find_if(kStages.begin(), kStages.end(),
                                  [stage](const auto& entry) { return entry.second == stage; });
  return known == kStages.end() ? "" : known->first;
}

}  // namespace trainyard::supervisor
