// SPDX-License-Identifier: Apache-2.0
#include "trace/csv_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/decimal.h"
#include "io/csv_field.h"
#include "trace/device_list.h"

namespace trainyard {
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
    return column.required && column.field == JobField::kTargets;
  });
}

// Writes the values of one job.
class ValueWriter {
 public:
  ValueWriter(const CsvFormat& format, const ColumnRule& column, const JobSpec& job,
              std::string& text)
      : format_(format), column_(column), job_(job), text_(text) {}

  void Append(std::span<const DeviceNode> nodes) {
    switch (column_.field) {
      case JobField::kJobId:
        text_ += job_.name;
        break;
      case JobField::kUser:
        text_ += job_.user;
        break;
      case JobField::kQueue:
        text_ += job_.queue;
        break;
      case JobField::kModel:
        text_ += job_.model;
        break;
      case JobField::kSubmit:
        Time(job_.submit);
        break;
      case JobField::kHandover:
        Time(job_.handover);
        break;
      case JobField::kDeadline:
        AppendDeadline();
        break;
      case JobField::kDuration:
        if (job_.duration) {
          Time(*job_.duration);
        }
        break;
      case JobField::kIterations:
        if (job_.iterations) {
          fmt::format_to(std::back_inserter(text_), "{}", *job_.iterations);
        }
        break;
      case JobField::kGpus:
      case JobField::kBatchSize:
      case JobField::kBatchPerGpu:
      case JobField::kPriority:
        AppendCount();
        break;
      case JobField::kBestEffort:
        text_ += IsBestEffort() ? '1' : '0';
        break;
      case JobField::kTargetKind:
        text_ += IsBestEffort() ? "best" : Traits().deadlines.size() > 1 ? "soft" : "strict";
        break;
      case JobField::kTargets:
        AppendTargets();
        break;
      case JobField::kTargetValues:
        AppendTargetValues();
        break;
      default:
        AppendTrait(nodes);
    }
  }

 private:
  [[nodiscard]] const JobTraits& Traits() const {
    static const JobTraits kNone;
    return job_.traits == nullptr ? kNone : *job_.traits;
  }
  [[nodiscard]] bool IsBestEffort() const {
    return job_.best_effort || (NeedsTargets(format_) && !job_.deadline);
  }

  void Time(Duration time) {
    if (column_.milliseconds) {
      AppendNumber(Micros(time) / 1000, text_);
    } else if (format_.unit > 0) {
      AppendNumber(Seconds(time) / format_.unit, text_);
    } else {
      AppendSeconds(time, text_);
    }
  }
  void Time(TimePoint at) { Time(at.time_since_epoch()); }
  void Time(std::optional<TimePoint> at) {
    if (at) {
      Time(at->time_since_epoch());
    }
  }
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

  void AppendDeadline() {
    if (job_.deadline) {
      Time(job_.deadline);
    } else if (column_.required) {
      text_ += kNoDeadline;
    }
  }

  void AppendCount() {
    std::int64_t count = job_.gpus;
    if (column_.field == JobField::kPriority) {
      count = job_.priority;
      if (count == 0 && column_.written_if_stated) {
        return;
      }
    } else if (column_.field != JobField::kGpus) {
      count = job_.batch_size / (column_.field == JobField::kBatchPerGpu ? job_.gpus : 1);
      if (count == 0) {
        return;
      }
    }
    AppendInteger(count, text_);
  }

  void AppendTargets() {
    const std::vector<SoftDeadline>& targets = Traits().deadlines;
    if (!NeedsTargets(format_)) {
      for (const SoftDeadline& target : targets) {
        text_ += &target == targets.data() ? "" : "-";
        Time(target.at - job_.submit);
      }
      return;
    }
    if (IsBestEffort()) {  // as published: something has to be there and is not looked at
      Time(job_.submit);
    } else if (targets.empty()) {
      Time(*job_.deadline - job_.submit);
    }
    for (const SoftDeadline& target : targets) {
      text_ += &target == targets.data() ? "" : "-";
      Time(target.at - job_.submit);
    }
  }

  void AppendTargetValues() {
    const std::vector<SoftDeadline>& targets = Traits().deadlines;
    if (NeedsTargets(format_) && targets.empty()) {
      AppendNumber(kOnlyTargetValue, text_);
    }
    for (const SoftDeadline& target : targets) {
      text_ += &target == targets.data() ? "" : "-";
      AppendNumber(target.value, text_);
    }
  }

  // Nothing for 0.
  void AppendStated(int count) {
    if (count > 0) {
      AppendInteger(count, text_);
    }
  }

  void AppendStage(std::size_t stage) {
    if (Traits().stages) {
      CHECK(Traits().stages->stages.size() == 3);  // no reader gives another number
      Time(Traits().stages->stages[stage]);
    }
  }

  void AppendTrait(std::span<const DeviceNode> nodes) {
    const JobTraits& traits = Traits();
    switch (column_.field) {
      case JobField::kStageIteration:
        if (traits.stages) {
          Time(traits.stages->iteration);
        }
        break;
      case JobField::kStage0:
        AppendStage(0);
        break;
      case JobField::kStage1:
        AppendStage(1);
        break;
      case JobField::kStage2:
        AppendStage(2);
        break;
      case JobField::kDataSet:
        text_ += traits.data_set ? traits.data_set->name : "";
        break;
      case JobField::kDataMib:
        if (traits.data_set) {
          AppendInteger(traits.data_set->mib, text_);
        }
        break;
      case JobField::kDataHome:
        text_ += traits.data_set ? traits.data_set->home : "";
        break;
      case JobField::kGpuTypes:
        text_ += GpuTypesText(job_);
        break;
      case JobField::kDevices:
        text_ += traits.devices.empty() ? "" : DeviceListOf(traits.devices, nodes);
        break;
      case JobField::kLoaderWorkers:
        AppendStated(traits.loader_workers);
        break;
      case JobField::kMinGpus:
        AppendStated(traits.range.least);
        break;
      case JobField::kMaxGpus:
        AppendStated(traits.range.most);
        break;
      default:
        break;
    }
  }

  const CsvFormat& format_;
  const ColumnRule& column_;
  const JobSpec& job_;
  std::string& text_;
};

}  // namespace

void AppendValue(const CsvFormat& format, const ColumnRule& column, const JobSpec& job,
                 std::span<const DeviceNode> nodes, std::string& text) {
  ValueWriter(format, column, job, text).Append(nodes);
}

std::vector<ColumnRule> WrittenColumns(const CsvFormat& format, const TraceView& trace) {
  std::string value;
  const auto is_written = [&](const ColumnRule& column) {
    if (column.field == JobField::kIgnored || column.field == JobField::kStatus) {
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
      AppendCsvField(value, text);
      text += ',';
    }
    text.back() = '\n';
  }
  return text;
}

}  // namespace trainyard
