// SPDX-License-Identifier: Apache-2.0
// For tests: the rows of golden tables, by the names of their columns.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "io/csv_reader.h"
#include "support/reference.h"

namespace trainyard {

class GoldenRow {
 public:
  explicit GoldenRow(const io::CsvRow& row) : row_(row) {}
  [[nodiscard]] std::string Text(const std::string& column) const {
    return std::string(row_.Text(row_.Column(column)));
  }
  [[nodiscard]] double Number(const std::string& column) const { return std::stod(Text(column)); }
  [[nodiscard]] int Integer(const std::string& column) const { return std::stoi(Text(column)); }
  [[nodiscard]] bool Has(const std::string& column) const { return !Text(column).empty(); }

 private:
  const io::CsvRow& row_;
};

// `table`: below the folder of golden tables. The number of rows that were read.
inline int ForEachGoldenRow(const std::string& table,
                            const std::function<void(const GoldenRow&)>& visit) {
  const Result<io::CsvTable> read = io::CsvTable::Open(Reference() + "/golden/" + table);
  EXPECT_TRUE(read.ok()) << table;
  int rows = 0;
  if (read.ok()) {
    const Status all = read.value().ForEach([&](const io::CsvRow& row) -> Status {
      ++rows;
      visit(GoldenRow(row));
      return {};
    });
    EXPECT_TRUE(all.ok()) << all.error().message;
  }
  return rows;
}

inline void ExpectNear(double is, double expected, double relative, const std::string& what) {
  EXPECT_NEAR(is, expected, std::abs(expected) * relative) << what;
}

}  // namespace trainyard
