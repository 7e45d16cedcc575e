// SPDX-License-Identifier: Apache-2.0
// What a cluster has measured, as a file (docs/formats/measured.md).
#pragma once

#include <string>
#include <string_view>

#include "profile/measured_book.h"
#include "trainyard/status.h"

namespace trainyard::profile {

// In a folder that `profiles export` has written.
inline constexpr std::string_view kMeasuredFile = "measured.csv";

// A file, or a folder with kMeasuredFile. Columns: model, batch_size, gpu_type, gpus, measure,
// value; a row for each sample, the oldest first. Errors: those of CsvTable; an unknown or missing
// column; a measure that there is none of; a number out of range; no sample at all.
[[nodiscard]] Result<MeasuredBook> ReadMeasured(const std::string& path);
// The same of the text of such a file; `name` is that in messages.
[[nodiscard]] Result<MeasuredBook> MeasuredFrom(const std::string& name, std::string text);
// The text of such a file. Reading it gives a book that says the same.
[[nodiscard]] std::string MeasuredText(const MeasuredBook& book);

}  // namespace trainyard::profile
