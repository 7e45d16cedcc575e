// SPDX-License-Identifier: Apache-2.0
// Traces of the Gavel scheduler, with 7 fields or with 10: docs/formats/gavel.md.
#include <fmt/core.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "trace/csv_format.h"
#include "trace/line_stream.h"
#include "trace/own_format.h"
#include "trace/trace_builder.h"

namespace trainyard::trace {
namespace {

constexpr LineRules kGavelRules{.separator = '\t'};
// The last two of the two forms stand for different things.
constexpr std::array<std::string_view, 7> kOlder{"job_type",       "command",     "num_steps_arg",
                                                 "needs_data_dir", "total_steps", "arrival_time",
                                                 "scale_factor"};
constexpr std::array<std::string_view, 10> kNewer{
    "job_type",    "command",      "working_directory", "num_steps_arg", "needs_data_dir",
    "total_steps", "scale_factor", "priority_weight",   "SLO",           "arrival_time"};

// The fields of the first line.
std::vector<std::string_view> FirstOf(std::string_view text) {
  Lines lines(text, '\0');
  return lines.Next() ? FieldsOf(lines.text(), kGavelRules) : std::vector<std::string_view>();
}

bool LooksLikeGavel(std::string_view head) {
  const std::vector<std::string_view> first = FirstOf(head);
  return (first.size() == kOlder.size() || first.size() == kNewer.size()) &&
         base::ToNumber(first.back()).has_value();
}

class GavelRows {
 public:
  explicit GavelRows(const LineStream& table)
      : type_(table.Column("job_type")),
        steps_(table.Column("total_steps")),
        gpus_(table.Column("scale_factor")),
        arrival_(table.Column("arrival_time")),
        weight_(table.Column("priority_weight")),
        slo_(table.Column("SLO")) {}

  [[nodiscard]] Result<JobRow> Read(const io::CsvRow& row) const {
    JobRow read;
    // The scheduler numbers its jobs from 0, in the order of the lines.
    read.job.name = std::to_string(row.line() - 1);
    RETURN_IF_ERROR(ReadType(row, read.job));
    RETURN_IF_ERROR(ReadNumbers(row, read.job));
    return read;
  }

 private:
  // "ResNet-50 (batch size 64)", or a name alone.
  [[nodiscard]] Status ReadType(const io::CsvRow& row, JobSpec& job) const {
    constexpr std::string_view kBatch = " (batch size ";
    constexpr double kMostBatch = 1e9;
    std::string_view type = row.Text(type_);
    if (const std::size_t at = type.find(kBatch); at != std::string_view::npos) {
      std::string_view size = type.substr(at + kBatch.size());
      const bool closed = size.ends_with(')');
      size.remove_suffix(closed ? 1 : 0);
      const std::optional<double> number = base::ToNumber(size);
      if (!closed || !number || *number < 1 || *number > kMostBatch ||
          *number != static_cast<double>(static_cast<std::int64_t>(*number))) {
        return row.Bad(type_, "a model, or a model and '(batch size N)'");
      }
      job.batch_size = static_cast<std::int64_t>(*number);
      type = type.substr(0, at);
    }
    job.model = base::Trim(type);
    return job.model.empty() ? Status(row.Bad(type_, "the name of a model")) : Status();
  }

  [[nodiscard]] Status ReadNumbers(const io::CsvRow& row, JobSpec& job) const {
    ASSIGN_OR_RETURN(const double steps, row.Positive(steps_));
    ASSIGN_OR_RETURN(const std::int64_t gpus, row.Integer(gpus_, 1, model::kMostGpus));
    ASSIGN_OR_RETURN(const double arrival, TraceSeconds(row, arrival_));
    for (const int number : {weight_, slo_}) {
      if (number >= 0 && !base::ToNumber(row.Text(number))) {
        return row.Bad(number, "a number");
      }
    }
    job.iterations = steps;
    job.gpus = static_cast<int>(gpus);
    job.submit = AtSeconds(arrival);
    return {};
  }

  int type_;
  int steps_;
  int gpus_;
  int arrival_;
  int weight_;
  int slo_;
};

Result<Trace> ReadGavel(io::TextStream text, const TraceOptions& options) {
  const bool is_older = FirstOf(text.block()).size() == kOlder.size();
  std::vector<std::string> names(kNewer.begin(), kNewer.end());
  if (is_older) {
    names.assign(kOlder.begin(), kOlder.end());
  }
  LineStream table(std::move(text), std::move(names), kGavelRules);
  const GavelRows rows(table);
  return ReadRows(table, rows, kGavelFormat.shown.name, options);
}

}  // namespace

constexpr OwnFormat kGavelFormat{
    .shown = {.name = "gavel", .help = "Gavel .trace (TAB, 7 or 10 fields; work is steps)"},
    .looks_like = LooksLikeGavel,
    .read = ReadGavel};

}  // namespace trainyard::trace
