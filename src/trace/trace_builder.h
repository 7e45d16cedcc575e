// SPDX-License-Identifier: Apache-2.0
// Collects the rows of one file into a trace, or hands them out: what all formats share once a row
// is read.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/try.h"
#include "io/bad_rows.h"
#include "io/csv_reader.h"
#include "trace/csv_format.h"
#include "trace/job_times.h"
#include "trace/trace.h"
#include "trainyard/job.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::trace {

// Ids of jobs as their hashes, and the lines where they stand. A flat table, as a million nodes
// would cost more than reading the file.
class IdTable {
 public:
  explicit IdTable(std::size_t jobs)
      : slots_(std::bit_ceil(std::max(kFirstSize, jobs * 3 / 2))), lines_(slots_.size()) {}

  // The line of an earlier job with the name, or 0.
  [[nodiscard]] std::int64_t Insert(std::string_view name, std::int64_t line) {
    if ((used_ + 1) * 4 > slots_.size() * 3) {
      Grow();
    }
    const std::uint64_t hash = std::hash<std::string_view>{}(name);
    const std::size_t i = Find(hash);
    if (lines_[i] != 0) {
      return lines_[i];
    }
    slots_[i] = hash;
    lines_[i] = static_cast<std::uint32_t>(std::min<std::int64_t>(line, UINT32_MAX));
    ++used_;
    return 0;
  }

 private:
  // The slot of the hash, or the free one where it would be.
  [[nodiscard]] std::size_t Find(std::uint64_t hash) const {
    std::size_t i = hash & (slots_.size() - 1);
    while (lines_[i] != 0 && slots_[i] != hash) {
      i = (i + 1) & (slots_.size() - 1);
    }
    return i;
  }

  void Grow() {
    const std::vector<std::uint64_t> slots =
        std::exchange(slots_, std::vector<std::uint64_t>(slots_.size() * 2));
    const std::vector<std::uint32_t> lines =
        std::exchange(lines_, std::vector<std::uint32_t>(slots_.size()));
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (lines[i] != 0) {
        const std::size_t to = Find(slots[i]);
        slots_[to] = slots[i];
        lines_[to] = lines[i];
      }
    }
  }

  static constexpr std::size_t kFirstSize = 1024;
  std::vector<std::uint64_t> slots_;  // a power of two
  std::vector<std::uint32_t> lines_;  // 0: free
  std::size_t used_ = 0;
};

// Groups of rows in the order of their first; memory does not grow with the rows.
class RowGroups {
 public:
  // `what` is true of rows alike.
  void Add(const io::CsvRow& row, const std::string& what) {
    constexpr std::size_t kMostFurther = 4;
    ++rows_;
    const auto [at, added] = positions_.try_emplace(what, groups_.size());
    if (added) {
      groups_.push_back({.line = row.line(), .why = row.BadRow(what).message});
      return;
    }
    RowGroup& group = groups_[at->second];
    ++group.rows;
    if (group.further.size() < kMostFurther) {
      group.further.push_back(row.line());
    }
  }

  // One of its own, up to a limit.
  void AddSingle(std::int64_t line, std::string why) {
    constexpr std::int64_t kMostSingles = 1000;
    ++rows_;
    if (++singles_ <= kMostSingles) {
      groups_.push_back({.line = line, .why = std::move(why)});
      return;
    }
    if (!unlisted_) {
      unlisted_ = groups_.size();
      groups_.push_back({.line = line,
                         .why = fmt::format("{}; further bad rows are not listed", why),
                         .rows = 0});
    }
    ++groups_[*unlisted_].rows;
  }

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::vector<RowGroup> Take() { return std::move(groups_); }

 private:
  std::vector<RowGroup> groups_;
  std::map<std::string, std::size_t, std::less<>> positions_;  // by what is said of them
  std::optional<std::size_t> unlisted_;                        // the group beyond the limit
  std::int64_t singles_ = 0;
  std::int64_t rows_ = 0;
};

// Collects the jobs of one file, or hands them to a visitor.
class TraceBuilder {
 public:
  TraceBuilder(Trace trace, std::size_t rows, const JobVisitor* visitor)
      : trace_(std::move(trace)), ids_(visitor == nullptr ? rows : 0), visitor_(visitor) {
    if (visitor_ == nullptr) {
      trace_.jobs.reserve(rows);
      trace_.lines.reserve(rows);
    }
  }

  [[nodiscard]] Status Add(const io::CsvRow& row, JobRow&& read) {
    if (!read.left_out.empty()) {
      skipped_.Add(row, read.left_out);
      return {};
    }
    RETURN_IF_ERROR(CheckData(row, read.job));
    RETURN_IF_ERROR(visitor_ == nullptr ? Keep(row, std::move(read.job)) : HandOut(row, read.job));
    TakeRecorded(row, read);
    return {};
  }

  // A bad row that is passed over.
  void SkipBad(std::int64_t line, Error error) {
    skipped_.AddSingle(line, std::move(error.message));
  }

  // Submits count from the first of them, which is returned. To be called behind the last row.
  // REQUIRES: there is no visitor.
  TimePoint StartAtFirstSubmit() {
    TimePoint first = trace_.jobs.empty() ? TimePoint{} : kEndOfTime;
    for (const JobSpec& job : trace_.jobs) {
      first = std::min(first, job.submit);
    }
    for (JobSpec& job : trace_.jobs) {
      CountFrom(first, job);
    }
    return first;
  }
  void SetOrigin(std::string origin) { trace_.origin = std::move(origin); }

  // The visitor wants no more jobs: the error is not that of a row.
  [[nodiscard]] bool stopped() const { return stopped_; }

  [[nodiscard]] Result<Trace> Take(std::string sha256) {
    trace_.skipped_rows = skipped_.rows();
    trace_.skipped = skipped_.Take();
    trace_.remarks = remarks_.Take();
    if (taken_ > 0) {
      trace_.sha256 = std::move(sha256);
      return std::move(trace_);
    }
    if (trace_.skipped.empty()) {
      return BadInput(fmt::format("{}: no jobs; expected a row at least", trace_.path));
    }
    return BadInput(fmt::format("{}: no jobs; all {} rows were skipped, the first because of {}",
                                trace_.path, trace_.skipped_rows, trace_.skipped.front().why));
  }

 private:
  // Two names may have one hash: jobs that are kept are compared.
  [[nodiscard]] bool IsKeptAt(std::int64_t line, std::string_view name) const {
    const auto [from, to] = std::equal_range(trace_.lines.begin(), trace_.lines.end(), line);
    return std::any_of(from, to, [&](const std::int64_t& at) {
      return trace_.jobs[static_cast<std::size_t>(&at - trace_.lines.data())].name == name;
    });
  }

  [[nodiscard]] Status CheckId(const io::CsvRow& row, std::string_view name) {
    const std::int64_t first = ids_.Insert(name, row.line());
    return first == 0 || (visitor_ == nullptr && !IsKeptAt(first, name))
               ? Status()
               : row.BadRow(fmt::format("job_id '{}' is already in line {}; expected a new one",
                                        name, first));
  }

  [[nodiscard]] Status Keep(const io::CsvRow& row, JobSpec&& job) {
    RETURN_IF_ERROR(CheckId(row, job.name));
    trace_.jobs.push_back(std::move(job));
    trace_.lines.push_back(row.line());
    ++taken_;
    return {};
  }

  [[nodiscard]] Status HandOut(const io::CsvRow& row, JobSpec& job) {
    RETURN_IF_ERROR(CheckId(row, job.name));
    ++taken_;
    Status status = visitor_->on_job(job, row.line());
    stopped_ = !status.ok();
    return status;
  }

  // Of a row that has become a job.
  void TakeRecorded(const io::CsvRow& row, JobRow& read) {
    for (const std::string& remark : read.remarks) {
      remarks_.Add(row, remark);
    }
    if (read.wait || !trace_.waits.empty()) {
      trace_.waits.resize(taken_);
      trace_.waits.back() = read.wait;
    }
    if (!read.state.empty()) {
      ++trace_.states[std::move(read.state)];
    }
  }

  // All jobs that name a data set must mean the same.
  [[nodiscard]] Status CheckData(const io::CsvRow& row, const JobSpec& job) {
    if (!model::PartOf<JobTraits>(job).data_set) {
      return {};
    }
    const DataSet& data = *job.traits->data_set;
    const auto [known, added] = data_sets_.try_emplace(data.name, data, row.line());
    if (added || known->second.first == data) {
      return {};
    }
    return row.BadRow(fmt::format(
        "data_set '{}' has another size or home than in line {}; expected the same for all jobs",
        data.name, known->second.second));
  }

  Trace trace_;
  IdTable ids_;
  const JobVisitor* visitor_;
  bool stopped_ = false;
  std::size_t taken_ = 0;
  RowGroups skipped_;
  RowGroups remarks_;
  std::map<std::string, std::pair<DataSet, std::int64_t>> data_sets_;  // and the first line
};

// How a log writes one of its times.
using TimeText = std::function<std::string(TimePoint at)>;

// `Table` is a CsvTable, a CsvStream or another that gives out rows as these do. `rows.Read(row)`
// makes a JobRow of a row.
template <typename Table, typename Rows>
Result<Trace> ReadRowsInto(TraceBuilder& builder, Table& table, Rows& rows,
                           const TraceOptions& options, const TimeText& origin) {
  const auto read = [&](const io::CsvRow& row) -> Status {
    Result<JobRow> job = rows.Read(row);
    return job.ok() ? builder.Add(row, std::move(job).value()) : Status(job.error());
  };
  io::BadRows bad(table.path());
  const auto pass = [&](std::int64_t line, Error error) -> Status {
    if (builder.stopped()) {
      return error;
    }
    if (!options.skip_bad_rows) {
      return bad.Add(line, std::move(error));
    }
    builder.SkipBad(line, std::move(error));
    return {};
  };
  const Status ended = table.ForEach(read, pass);
  if (!bad.empty() && !builder.stopped()) {
    return bad.Take(ended);
  }
  RETURN_IF_ERROR(ended);
  if (origin) {
    builder.SetOrigin(origin(builder.StartAtFirstSubmit()));
  }
  return builder.Take(table.sha256());
}

template <typename Table>
[[nodiscard]] TraceBuilder BuilderFor(const Table& table, std::string_view format,
                                      const JobVisitor* visitor) {
  constexpr std::size_t kMostReserved = 4'000'000;  // rows: a guess must not cost all memory
  return {Trace{.path = table.path(), .format = std::string(format)},
          std::min(table.LikelyRows(), kMostReserved), visitor};
}

// As ReadRows, of a log whose jobs are not kept. The first time it finds the first submit and hands
// out nothing, the second time it hands out the jobs.
template <typename Table, typename Rows>
Result<Trace> ReadLogRows(Table& table, Rows& rows, std::string_view format,
                          const TraceOptions& options) {
  LogStart& start = *options.log_start;
  const bool known = start.first_submit.has_value();
  TimePoint first = start.first_submit.value_or(kEndOfTime);
  const JobVisitor visitor{.on_job = [&](JobSpec& job, std::int64_t line) -> Status {
    if (!known) {
      first = std::min(first, job.submit);
      return {};
    }
    CountFrom(first, job);
    return options.visitor->on_job(job, line);
  }};
  TraceBuilder builder = BuilderFor(table, format, &visitor);
  Result<Trace> trace = ReadRowsInto(builder, table, rows, options, {});
  if (trace.ok()) {
    start.first_submit = first;
    trace.value().origin = rows.Text(first);
  }
  return trace;
}

// Submits of rows with a function Text are on the clock of a log, whose times that function writes,
// and count from the first of them afterwards. Their jobs are kept unless the options have a
// `log_start`.
template <typename Table, typename Rows>
Result<Trace> ReadRows(Table&& table, Rows&& rows, std::string_view format,
                       const TraceOptions& options) {
  if constexpr (requires { rows.Text(TimePoint{}); }) {
    if (options.visitor != nullptr && options.log_start != nullptr) {
      return ReadLogRows(table, rows, format, options);
    }
    TraceBuilder builder = BuilderFor(table, format, nullptr);
    return ReadRowsInto(builder, table, rows, options,
                        [&rows](TimePoint at) { return rows.Text(at); });
  } else {
    TraceBuilder builder = BuilderFor(table, format, options.visitor);
    return ReadRowsInto(builder, table, rows, options, {});
  }
}

// A table whose columns have one meaning each.
struct RowsByColumns {
  const JobColumns& columns;
  RowsSoFar so_far{};

  Result<JobRow> Read(const io::CsvRow& row) { return ReadJobRow(columns, row, so_far); }
};
// Likewise, where submits are dates.
struct StampedRowsByColumns : RowsByColumns {
  [[nodiscard]] std::string Text(TimePoint at) const { return so_far.stamps.Text(at); }
};

template <typename Table>
Result<Trace> ReadByColumns(Table&& table, const JobColumns& columns, std::string_view format,
                            const TraceOptions& options) {
  const auto read = [&](auto rows) {
    Result<Trace> trace = ReadRows(table, rows, format, options);
    if (trace.ok()) {
      trace.value().device_nodes = rows.so_far.devices.nodes();
    }
    return trace;
  };
  return columns.has_stamps() ? read(StampedRowsByColumns{{columns}})
                              : read(RowsByColumns{columns});
}

}  // namespace trainyard::trace
