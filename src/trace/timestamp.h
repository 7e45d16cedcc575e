// SPDX-License-Identifier: Apache-2.0
// Dates and times as the logs of clusters write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/csv_reader.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::trace {

// Nothing, or what programs write for it: None, null, nan, NaN, NaT, Unknown.
[[nodiscard]] bool IsMissing(std::string_view text);

struct Timestamp {
  TimePoint at{};  // since 1970-01-01 00:00:00 of UTC, or without a zone of the clock of the log
  bool has_zone = false;
};

// "2020-04-01 00:00:05", with decimals of a second or without, with a T in place of the blank or
// not, followed by a zone (Z, +08:00, +0800, +08) or not. Nothing where it is something else, or a
// day or hour that does not exist; a second 60 does not either.
[[nodiscard]] std::optional<Timestamp> ParseTimestamp(std::string_view text);

// "2020-04-01 00:00:05", with "+00:00" behind it if it has a zone.
[[nodiscard]] std::string TimestampText(const Timestamp& stamp);

// Reads the timestamps of one file, of which all have a zone or none.
class TimestampReader {
 public:
  // Nothing where the field is missing. Errors: no timestamp; one with a zone and others without.
  [[nodiscard]] Result<std::optional<TimePoint>> Read(const io::CsvRow& row, int column);
  // As in the file.
  [[nodiscard]] std::string Text(TimePoint at) const {
    return TimestampText({.at = at, .has_zone = zone_.value_or(false)});
  }

 private:
  std::optional<bool> zone_;     // whether those read so far have one
  std::int64_t first_line_ = 0;  // of the first
};

}  // namespace trainyard::trace
