// SPDX-License-Identifier: Apache-2.0
// Traces of the Gavel scheduler, with 7 fields or with 10, and of Shockwave, its fork, with 12:
// docs/formats/gavel.md.
#include <fmt/core.h>

#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "profile/gavel_table.h"
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
// Shockwave's: how the batch size is scaled, and the run time.
constexpr std::array<std::string_view, 12> kShockwave{
    "job_type",        "command",     "working_directory", "num_steps_arg",
    "needs_data_dir",  "total_steps", "scale_factor",      "mode",
    "priority_weight", "SLO",         "duration",          "arrival_time"};
constexpr std::string_view kBatch = " (batch size ";

// The names of so many fields; none: no form has so many.
std::span<const std::string_view> NamesOf(std::size_t fields) {
  for (const std::span<const std::string_view> form :
       {std::span<const std::string_view>(kOlder), std::span<const std::string_view>(kNewer),
        std::span<const std::string_view>(kShockwave)}) {
    if (form.size() == fields) {
      return form;
    }
  }
  return {};
}

// The fields of the first line.
std::vector<std::string_view> FirstOf(std::string_view text) {
  Lines lines(text, '\0');
  return lines.Next() ? FieldsOf(lines.text(), kGavelRules) : std::vector<std::string_view>();
}

bool LooksLikeGavel(std::string_view head) {
  const std::vector<std::string_view> first = FirstOf(head);
  constexpr std::size_t kFewest = 4;  // of a form that is not known
  const bool has_batch =
      first.size() >= kFewest && first.front().find(kBatch) != std::string_view::npos;
  return has_batch || (!NamesOf(first.size()).empty() && base::ToNumber(first.back()).has_value());
}

class GavelRows {
 public:
  explicit GavelRows(const LineStream& table)
      : type_(table.Column("job_type")),
        steps_(table.Column("total_steps")),
        gpus_(table.Column("scale_factor")),
        arrival_(table.Column("arrival_time")),
        weight_(table.Column("priority_weight")),
        slo_(table.Column("SLO")),
        duration_(table.Column("duration")) {}

  [[nodiscard]] Result<JobRow> Read(const io::CsvRow& row) const {
    JobRow read;
    // The scheduler numbers its jobs from 0, in the order of the lines.
    read.job.name = std::to_string(row.line() - 1);
    RETURN_IF_ERROR(ReadType(row, read.job));
    RETURN_IF_ERROR(ReadNumbers(row, read.job));
    return read;
  }

 private:
  [[nodiscard]] Status ReadType(const io::CsvRow& row, JobSpec& job) const {
    std::optional<profile::GavelJobType> type = profile::ParseGavelJobType(row.Text(type_));
    if (!type) {
      return row.Bad(type_, "a model, or a model and '(batch size N)'");
    }
    job.model = std::move(type->model);
    job.batch_size = type->batch_size;
    return {};
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
    if (weight_ >= 0) {
      constexpr double kMostWeight = 1e6;
      ASSIGN_OR_RETURN(const double weight, row.Number(weight_, 0, kMostWeight));
      // Policies with weights take a priority for one, and none for a weight of 1.
      job.priority = weight == 1 ? 0 : static_cast<int>(std::lround(weight));
    }
    if (duration_ >= 0) {
      ASSIGN_OR_RETURN(const double seconds, TraceSeconds(row, duration_));
      if (FromSeconds(seconds) <= Duration{0}) {
        return row.Bad(duration_, "seconds > 0");
      }
      job.duration = FromSeconds(seconds);
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
  int duration_;
};

Result<Trace> ReadGavel(io::TextStream text, const TraceOptions& options) {
  const std::size_t fields = FirstOf(text.block()).size();
  const std::span<const std::string_view> form = NamesOf(fields);
  if (form.empty()) {
    return BadInput(fmt::format(
        "{}:1: {} fields separated by tabs; expected 7 or 10 as Gavel has, or 12 as Shockwave has",
        text.path(), fields));
  }
  std::vector<std::string> names(form.begin(), form.end());
  LineStream table(std::move(text), std::move(names), kGavelRules);
  const GavelRows rows(table);
  return ReadRows(table, rows, kGavelFormat.shown.name, options);
}

}  // namespace

constexpr OwnFormat kGavelFormat{
    .shown = {.name = "gavel", .help = "Gavel .trace (TAB, 7, 10 or Shockwave's 12 fields; steps)"},
    .looks_like = LooksLikeGavel,
    .read = ReadGavel};

}  // namespace trainyard::trace
