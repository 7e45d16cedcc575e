// SPDX-License-Identifier: Apache-2.0
// Trainyard's own trace format: docs/formats/native-trace.md. Its columns are those of the table of
// a job's fields.
#include <array>

#include "trace/csv_format.h"

namespace trainyard {
namespace {

constexpr auto kNativeRules = [] {
  std::array<ColumnRule, kNativeColumns> rules;
  ForEachJobField<IsInTraces>([&rules](const auto& field) {
    for (std::size_t part = 0; part < field.columns(); ++part) {
      const JobColumn column = ColumnOf(field.info, part);
      rules.at(static_cast<std::size_t>(column)) = {
          .field = column,
          .name = field.info.columns.at(part),
          .required = field.info.required,
          .written_if_stated = column > Native("best_effort")};
    }
  });
  return rules;
}();

}  // namespace

const CsvFormat& NativeFormat() {
  static constexpr CsvFormat kFormat{
      .shown = {.name = "native", .help = "Trainyard's own form (duration, iterations or both)"},
      .columns = kNativeRules,
  };
  return kFormat;
}

}  // namespace trainyard
