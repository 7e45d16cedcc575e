// SPDX-License-Identifier: Apache-2.0
#include "io/csv_field.h"

#include <gtest/gtest.h>

namespace trainyard::io {
namespace {

std::string Written(std::string_view field) {
  std::string line = "a,";
  AppendCsvField(field, line);
  return line;
}

TEST(AppendCsvFieldTest, LeavesPlainTextAlone) { EXPECT_EQ(Written("job 1"), "a,job 1"); }

TEST(AppendCsvFieldTest, QuotesCommasAndLineEnds) { EXPECT_EQ(Written("x,\ny"), "a,\"x,\ny\""); }

TEST(AppendCsvFieldTest, QuotesWhatBeginsOrEndsWithABlank) {
  EXPECT_EQ(Written(" x"), "a,\" x\"");
  EXPECT_EQ(Written("x\t"), "a,\"x\t\"");
  EXPECT_EQ(Written(""), "a,");
}

TEST(AppendCsvFieldTest, DoublesQuotes) { EXPECT_EQ(Written("a\"b"), "a,\"a\"\"b\""); }

}  // namespace
}  // namespace trainyard::io
