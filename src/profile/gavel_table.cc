// SPDX-License-Identifier: Apache-2.0
#include "profile/gavel_table.h"

#include <array>

#include "base/text.h"
#include "base/try.h"
#include "profile/throughput_table.h"

namespace trainyard::profile {
namespace {

constexpr std::array<std::string_view, 7> kGavelColumns{
    "worker_type",        "job_type",    "scale_factor",     "other_job_type",
    "other_scale_factor", "steps_per_s", "steps_per_s_other"};
constexpr std::string_view kApart = "_unconsolidated";
constexpr std::string_view kBatchSize = " (batch size ";

Result<GavelJobType> TypeIn(const io::CsvRow& row, int column) {
  std::optional<GavelJobType> type = ParseGavelJobType(row.Text(column));
  if (!type) {
    return row.Bad(column, "a model, or a model and '(batch size N)'");
  }
  return *std::move(type);
}

}  // namespace

std::optional<GavelJobType> ParseGavelJobType(std::string_view text) {
  constexpr double kMostBatch = 1e9;
  GavelJobType type;
  if (const std::size_t at = text.find(kBatchSize); at != std::string_view::npos) {
    std::string_view size = text.substr(at + kBatchSize.size());
    const bool closed = size.ends_with(')');
    size.remove_suffix(closed ? 1 : 0);
    const std::optional<double> number = base::ToNumber(size);
    if (!closed || !number || *number < 1 || *number > kMostBatch ||
        *number != static_cast<double>(static_cast<std::int64_t>(*number))) {
      return std::nullopt;
    }
    type.batch_size = static_cast<std::int64_t>(*number);
    text = text.substr(0, at);
  }
  type.model = base::Trim(text);
  return type.model.empty() ? std::nullopt : std::optional(std::move(type));
}

bool IsGavelTable(const io::CsvTable& table) { return table.Column({"worker_type"}) >= 0; }

Status ReadGavelTable(
    const io::CsvTable& table,
    const std::function<Status(const io::CsvRow& row, const GavelRow& read)>& take) {
  RETURN_IF_ERROR(table.CheckKnown(kGavelColumns));
  std::array<int, kGavelColumns.size()> at{};
  for (std::size_t i = 0; i < at.size(); ++i) {
    ASSIGN_OR_RETURN(at[i], table.Require({kGavelColumns[i]}));
  }
  const auto [worker, job, gpus, other, other_gpus, rate, other_rate] = at;
  return table.ForEach([&, worker = worker, job = job, gpus = gpus, other = other,
                        other_gpus = other_gpus, rate = rate,
                        other_rate = other_rate](const io::CsvRow& row) -> Status {
    GavelRow read{.gpu_type = std::string(row.Text(worker))};
    if (read.gpu_type.empty()) {
      return row.Bad(worker, "a GPU type");
    }
    if (read.gpu_type.ends_with(kApart)) {
      return {};
    }
    ASSIGN_OR_RETURN(read.job, TypeIn(row, job));
    ASSIGN_OR_RETURN(const std::int64_t count, row.Integer(gpus, 1, kMostProfiledGpus));
    read.gpus = static_cast<int>(count);
    ASSIGN_OR_RETURN(read.rate, row.Number(rate, 0));
    if (!row.Text(other).empty()) {
      ASSIGN_OR_RETURN(read.other, TypeIn(row, other));
      ASSIGN_OR_RETURN(const std::int64_t theirs, row.Integer(other_gpus, 1, kMostProfiledGpus));
      if (theirs != count) {
        return row.Bad(other_gpus, "as many GPUs as of the first job: they are the same GPUs");
      }
      ASSIGN_OR_RETURN(read.other_rate, row.Number(other_rate, 0));
    }
    return take(row, read);
  });
}

}  // namespace trainyard::profile
