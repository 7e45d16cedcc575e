// SPDX-License-Identifier: Apache-2.0
#include "trace/writers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/decimal.h"
#include "io/csv_field.h"
#include "model/request/node_request.h"
#include "trace/device_list.h"

namespace trainyard::trace {
namespace {

constexpr double kOnlyTargetValue = 10;  // that of every strict job of the Chronus simulator

// The shortest decimal text that reads as this number; never with an exponent, whose sign would be
// taken for the '-' between targets.
void AppendNumber(double value, std::string& text) {
  std::array<char, std::numeric_limits<double>::max_exponent10 + 32> digits;
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
  CHECK(error == std::errc{});
  text.append(digits.data(), end);
}

// A format whose jobs have targets unless they are best effort.
bool NeedsTargets(const CsvFormat& format) {
  return std::any_of(format.columns.begin(), format.columns.end(), [](const ColumnRule& column) {
    return column.required && column.field == Native("target_times");
  });
}

// Writes the values of one job.
class ValueWriter {
 public:
  ValueWriter(const CsvFormat& format, const ColumnRule& column, const JobSpec& job,
              std::string& text)
      : format_(format), column_(column), job_(job), text_(text) {}

  void Append(std::span<const DeviceNode> nodes) {
    if (column_.field == JobColumn::kBatchPerGpu) {
      base::AppendInteger(job_.batch_size / job_.gpus, text_);
    } else if (column_.field == JobColumn::kTargetKind) {
      text_ += IsBestEffort()                                        ? "best"
               : model::PartOf<JobTraits>(job_).deadlines.size() > 1 ? "soft"
                                                                     : "strict";
    }
    nodes_ = nodes;
    model::ForEachJobField<model::IsInTraces>([this](const auto& field) {
      if (column_.field >= ColumnOf(field.info) &&
          column_.field < ColumnOf(field.info, field.columns())) {
        part_ =
            static_cast<std::size_t>(column_.field) - static_cast<std::size_t>(field.info.column);
        Put(field.info, model::ValueOf(field, job_));
      }
    });
  }

 private:
  [[nodiscard]] bool IsBestEffort() const {
    return job_.best_effort || (NeedsTargets(format_) && !job_.deadline);
  }

  void Time(Duration time) {
    if (column_.milliseconds) {
      AppendNumber(Micros(time) / 1000, text_);
    } else if (format_.unit > 0) {
      AppendNumber(Seconds(time) / format_.unit, text_);
    } else {
      base::AppendSeconds(time, text_);
    }
  }
  void Time(TimePoint at) { Time(at.time_since_epoch()); }
  void Time(double seconds) {
    AppendNumber(column_.milliseconds ? Milliseconds(seconds) : seconds, text_);
  }

  // That reads as these seconds: a product can be off by its last bit.
  static double Milliseconds(double seconds) {
    constexpr double kMillion = 1e6;
    const double product = seconds * 1000;
    const double shortest = std::round(product * kMillion) / kMillion;
    for (const double one : {shortest, product, std::nextafter(product, 0.0)}) {
      if (one / 1000 == seconds) {
        return one;
      }
    }
    return std::nextafter(product, std::numeric_limits<double>::max());
  }

  // ---------------------------------------------------------------------- values by their types

  void Put(const model::JobFieldInfo& /*info*/, const std::string& text) { text_ += text; }

  // Nothing where 0 says that nothing is stated.
  template <std::signed_integral T>
  void Put(const model::JobFieldInfo& info, T number) {
    const auto value = static_cast<std::int64_t>(number);
    if (static_cast<double>(value) >= info.bounds.least &&
        (value != 0 || !column_.written_if_stated)) {
      base::AppendInteger(value, text_);
    }
  }

  void Put(const model::JobFieldInfo& /*info*/, bool flag) {
    const bool is_set = flag || (column_.field == Native("best_effort") && IsBestEffort());
    text_ += is_set ? "1" : column_.written_if_stated ? "" : "0";
  }

  void Put(const model::JobFieldInfo& /*info*/, const std::optional<double>& amount) {
    if (amount) {
      fmt::format_to(std::back_inserter(text_), "{}", *amount);
    }
  }

  void Put(const model::JobFieldInfo& /*info*/, const std::optional<Duration>& time) {
    if (time) {
      Time(*time);
    }
  }

  void Put(const model::JobFieldInfo& /*info*/, TimePoint at) { Time(at); }
  void Put(const model::JobFieldInfo& /*info*/, const std::optional<TimePoint>& at) {
    if (at) {
      Time(*at);
    } else if (column_.required) {
      text_ += kNoDeadline;
    }
  }

  void Put(const model::JobFieldInfo& /*info*/, const std::optional<StageTimes>& stages) {
    if (stages) {
      CHECK(stages->stages.size() == 3);  // no reader gives another number
      Time(part_ == 0 ? stages->iteration : stages->stages[part_ - 1]);
    }
  }

  void Put(const model::JobFieldInfo& /*info*/, const std::vector<SoftDeadline>& targets) {
    if (NeedsTargets(format_)) {
      PutNeeded(targets.empty());
    }
    for (const SoftDeadline& target : targets) {
      text_ += &target == targets.data() ? "" : "-";
      if (part_ == 0) {
        Time(target.at - job_.submit);
      } else {
        AppendNumber(target.value, text_);
      }
    }
  }

  // What a format that needs targets has for jobs without any.
  void PutNeeded(bool has_none) {
    if (part_ == 1) {
      if (has_none) {
        AppendNumber(kOnlyTargetValue, text_);
      }
    } else if (IsBestEffort()) {  // as published: something has to be there and is not looked at
      Time(job_.submit);
    } else if (has_none) {
      Time(*job_.deadline - job_.submit);
    }
  }

  void Put(const model::JobFieldInfo& /*info*/, const std::optional<DataSet>& data) {
    if (data && part_ == 1) {
      base::AppendInteger(data->mib, text_);
    } else if (data) {
      text_ += part_ == 0 ? data->name : data->home;
    }
  }

  template <model::HasText T>
  void Put(const model::JobFieldInfo& /*info*/, const T& value) {
    text_ += value == T{} ? "" : model::TextOf(value);
  }

  void Put(const model::JobFieldInfo& /*info*/, const std::vector<std::string>& names) {
    io::AppendCsvField(fmt::format("{}", fmt::join(names, "|")), text_);
  }

  void Put(const model::JobFieldInfo& /*info*/, const Slices& devices) {
    text_ += devices.empty() ? "" : DeviceListOf(devices, nodes_);
  }

  const CsvFormat& format_;
  const ColumnRule& column_;
  const JobSpec& job_;
  std::string& text_;
  std::span<const DeviceNode> nodes_;
  std::size_t part_ = 0;  // of the field: which of its columns
};

}  // namespace

void AppendValue(const CsvFormat& format, const ColumnRule& column, const JobSpec& job,
                 std::span<const DeviceNode> nodes, std::string& text) {
  ValueWriter(format, column, job, text).Append(nodes);
}

std::vector<ColumnRule> WrittenColumns(const CsvFormat& format, const TraceView& trace) {
  std::string value;
  const auto is_written = [&](const ColumnRule& column) {
    const auto is = [&column](JobColumn field) { return column.field == field; };
    if (is(JobColumn::kIgnored) || is(JobColumn::kStatus) || is(JobColumn::kTasks) ||
        is(JobColumn::kTasksPerNode)) {
      return false;
    }
    return !column.written_if_stated ||
           std::any_of(trace.jobs.begin(), trace.jobs.end(), [&](const JobSpec& job) {
             value.clear();
             AppendValue(format, column, job, trace.nodes, value);
             return !value.empty();
           });
  };
  std::vector<ColumnRule> columns;
  std::copy_if(format.columns.begin(), format.columns.end(), std::back_inserter(columns),
               is_written);
  return columns;
}

std::string WriteCsvTrace(const CsvFormat& format, const TraceView& trace) {
  constexpr std::size_t kUsualRow = 96;
  const std::vector<ColumnRule> columns = WrittenColumns(format, trace);
  std::string text;
  text.reserve((trace.jobs.size() + 2) * kUsualRow);
  for (const ColumnRule& column : columns) {
    text += text.empty() ? "" : ",";
    text += column.name;
  }
  text += '\n';
  std::string value;
  for (const JobSpec& job : trace.jobs) {
    for (const ColumnRule& column : columns) {
      value.clear();
      AppendValue(format, column, job, trace.nodes, value);
      io::AppendCsvField(value, text);
      text += ',';
    }
    text.back() = '\n';
  }
  return text;
}

}  // namespace trainyard::trace
