// SPDX-License-Identifier: Apache-2.0
// The throughput table of the Gavel scheduler (OSDI'20) in long form: docs/formats/profiles.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "io/csv_reader.h"
#include "trainyard/status.h"

namespace trainyard::profile {

// "ResNet-50 (batch size 64)", or a name alone: batch size 0.
struct GavelJobType {
  std::string model;
  std::int64_t batch_size = 0;
};
// None: there is no model, or something else in the parentheses.
[[nodiscard]] std::optional<GavelJobType> ParseGavelJobType(std::string_view text);

// One row: how fast a job is on the GPUs of one type, alone or beside one other job.
struct GavelRow {
  std::string gpu_type;
  GavelJobType job;
  int gpus = 0;
  std::optional<GavelJobType> other{};  // on the same GPUs; none: the job is alone
  double rate = 0;                      // iterations per second; 0: does not run so
  double other_rate = 0;
};

// Whether the table is of this form.
[[nodiscard]] bool IsGavelTable(const io::CsvTable& table);

// Hands out the rows, but for those of GPU types whose name ends in _unconsolidated: jobs on GPUs
// that lie apart, which Gavel's simulator does not read either. Errors: those of CsvTable and of
// `take`, with file and line; jobs of different numbers of GPUs together.
[[nodiscard]] Status ReadGavelTable(
    const io::CsvTable& table,
    const std::function<Status(const io::CsvRow& row, const GavelRow& read)>& take);

}  // namespace trainyard::profile
