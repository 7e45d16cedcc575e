// SPDX-License-Identifier: Apache-2.0
#include "io/csv_reader.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>

#include "support/scratch_folder.h"

namespace trainyard::io {
namespace {

// The rows as "line|field|field", or the error without the folder's name.
struct Read {
  std::vector<std::string> rows;
  std::string error;
};

Read ReadAll(std::string_view bytes) {
  const ScratchFolder folder;
  Read read;
  const auto without_folder = [&](const std::string& message) {
    return message.substr(folder.path().size() + 1);
  };
  const auto table = CsvTable::Open(folder.Write("t.csv", bytes));
  if (!table.ok()) {
    read.error = without_folder(table.error().message);
    return read;
  }
  const Status status = table.value().ForEach([&](const CsvRow& row) -> Status {
    std::string text = std::to_string(row.line());
    for (std::size_t i = 0; i < table.value().header().size(); ++i) {
      text += "|" + std::string(row.Text(static_cast<int>(i)));
    }
    read.rows.push_back(text);
    return {};
  });
  read.error = status.ok() ? "" : without_folder(status.error().message);
  return read;
}

using Rows = std::vector<std::string>;

TEST(CsvTableTest, GivesTheRowsWithTheirLines) {
  EXPECT_EQ(ReadAll("a,b\n1,2\n3,4\n").rows, (Rows{"2|1|2", "3|3|4"}));
}

TEST(CsvTableTest, TakesALastLineWithoutItsEnd) {
  EXPECT_EQ(ReadAll("a,b\n1,").rows, (Rows{"2|1|"}));
}

TEST(CsvTableTest, CountsPhysicalLinesAcrossQuotedLineEnds) {
  EXPECT_EQ(ReadAll("a,b\n\"x\n\ny\",2\n3,4\n").rows, (Rows{"2|x\n\ny|2", "5|3|4"}));
}

TEST(CsvTableTest, SkipsBlankLinesButCountsThem) {
  EXPECT_EQ(ReadAll("\na,b\n\n1,2\n\n\n3,4\n\n").rows, (Rows{"4|1|2", "7|3|4"}));
}

TEST(CsvTableTest, TakesCrlfLineEnds) {
  EXPECT_EQ(ReadAll("a,b\r\n1,2\r\n\r\n3,4\r\n").rows, (Rows{"2|1|2", "4|3|4"}));
}

TEST(CsvTableTest, TakesAByteOrderMark) {
  EXPECT_EQ(ReadAll("\xEF\xBB\xBF"
                    "a\n1\n")
                .rows,
            (Rows{"2|1"}));
}

TEST(CsvTableTest, KeepsBlanksAndDoubledQuotes) {
  EXPECT_EQ(ReadAll("a,b\n 1 ,\"say \"\"hi\"\"\"\n").rows, (Rows{"2| 1 |say \"hi\""}));
}

TEST(CsvTableTest, TakesUtf8) {
  EXPECT_EQ(ReadAll("a\nGr\xC3\xB6\xC3\x9F"
                    "e \xE2\x82\xAC \xF0\x9F\x9A\x82\n")
                .error,
            "");
}

TEST(CsvTableTest, ReadsGzipAsPlain) {
  const ScratchFolder folder;
  const std::string text = "a,b\n1,2\n";
  EXPECT_EQ(ReadAll(folder.Gzip(text)).rows, ReadAll(text).rows);
}

TEST(CsvTableTest, DigestCoversTheBytesOnDisk) {
  const ScratchFolder folder;
  const std::string packed = folder.Gzip("a,b\n1,2\n");
  EXPECT_EQ(CsvTable::Open(folder.Write("t.csv.gz", packed)).value().sha256(), Sha256Hex(packed));
}

TEST(CsvTableTest, RefusesAnEmptyFile) {
  EXPECT_EQ(ReadAll("").error, "t.csv:1: nothing in the file; expected a header with column names");
  EXPECT_EQ(ReadAll("\n\n").error,
            "t.csv:1: nothing in the file; expected a header with column names");
}

TEST(CsvTableTest, RefusesAColumnThatIsThereTwice) {
  EXPECT_EQ(ReadAll("a,b,a\n").error,
            "t.csv:1: column 'a' is there twice; expected different names");
}

TEST(CsvTableTest, RefusesRowsOfAnotherLength) {
  EXPECT_EQ(ReadAll("a,b\n1,2\n1\n").error, "t.csv:3: 1 fields; expected 2 as in the header");
  EXPECT_EQ(
      ReadAll("a,b\n1,2,3\n").error,
      "t.csv:2: 3 fields; expected 2 as in the header (a column that the header does not name?)");
}

TEST(CsvTableTest, ColumnsWithoutANameAreNotThere) {
  EXPECT_EQ(ReadAll(",a,b\n0,1,2\n1,3,4\n").rows, (Rows{"2|1|2", "3|3|4"}));
  EXPECT_EQ(ReadAll("a,,b,\n1,0,2,\n3,,4\n").rows, (Rows{"2|1|2", "3|3|4"}));
  EXPECT_EQ(ReadAll("a,b,\n1,2,x\n").error,
            "t.csv:2: column 3 has no name and holds 'x'; expected its name in the header");
  EXPECT_EQ(ReadAll(",,\n").error,
            "t.csv:1: no column has a name; expected a header with column names");
}

TEST(CsvTableTest, SaysWhatAFileIsThatIsNoTable) {
  EXPECT_TRUE(
      ReadAll("a;b\n1;2\n").error.starts_with("t.csv:1: fields separated by ';'; expected"));
  EXPECT_TRUE(ReadAll("# a\na,b\n").error.starts_with("t.csv:1: a comment line before the header"));
  EXPECT_TRUE(ReadAll("{\"a\":1}\n").error.starts_with("t.csv:1: JSON; expected a CSV table"));
  EXPECT_TRUE(ReadAll("a,b\n1;2\n").error.starts_with("t.csv:2: 1 fields; expected 2"));
  EXPECT_EQ(ReadAll("a,b,c\n# x\n").error,
            "t.csv:2: 1 fields; expected 3 as in the header (a comment)");
}

TEST(CsvStreamTest, KnowsTheFirstValueBeforeTheRows) {
  const ScratchFolder folder;
  const auto first = [&folder](std::string_view text, int column) {
    auto stream = CsvStream::Of(TextStream::Open(folder.Write("t.csv", text)).value());
    return stream.value().FirstValue(column);
  };
  EXPECT_EQ(first("a,b\n1,2\n3,4\n", 1), "2");
  EXPECT_EQ(first(",a,,b\n9,1,,2\n", 1), "2");
  EXPECT_EQ(first("a,b\n", 1), "");
  EXPECT_EQ(first("a,b\n1\n", 1), "");
}

TEST(CsvTableTest, RefusesNulBytes) {
  EXPECT_EQ(ReadAll(std::string_view("a\n1\n\0\n", 6)).error, "t.csv:3: a NUL byte; expected text");
}

TEST(CsvTableTest, RefusesWhatIsNotUtf8) {
  const std::string_view kInvalid[] = {"\xE9",              // Latin-1
                                       "\xC0\xAF",          // overlong
                                       "\xED\xA0\x80",      // surrogate
                                       "\xF4\x90\x80\x80",  // over U+10FFFF
                                       "\xE2\x82"};         // cut short
  for (const std::string_view bytes : kInvalid) {
    EXPECT_EQ(ReadAll("a\n1\n" + std::string(bytes)).error,
              "t.csv:3: not UTF-8; expected UTF-8 text");
  }
}

TEST(CsvTableTest, NamesUtf16) {
  EXPECT_EQ(ReadAll(std::string_view("\xFF\xFE"
                                     "a\0",
                                     4))
                .error,
            "t.csv:1: not UTF-8 (it starts with a UTF-16 byte order mark); expected UTF-8 text");
}

TEST(CsvTableTest, RefusesOverlongLines) {
  const std::string longest(kMaxLineBytes, 'x');
  EXPECT_EQ(ReadAll("a\n" + longest + "\n").error, "");
  EXPECT_EQ(ReadAll("a\n" + longest + "x\n").error,
            "t.csv:2: a line over 1048576 bytes; expected shorter lines");
}

TEST(CsvTableTest, RefusesAQuoteThatNeverEnds) {
  EXPECT_EQ(ReadAll("a,b\n1,2\n3,\"4\n5,6\n").error,
            "t.csv:3: a quoted field that never ends; expected a closing quote");
}

TEST(CsvTableTest, RefusesQuotesWithinAField) {
  constexpr auto kMisplaced = "t.csv:2: a misplaced quote; expected quotes around whole fields";
  EXPECT_EQ(ReadAll("a,b\n1,x\"y\"\n").error, kMisplaced);
  EXPECT_EQ(ReadAll("a,b\n1,\"x\"y\n").error, kMisplaced);
}

TEST(CsvTableTest, RefusesLoneCarriageReturns) {
  EXPECT_EQ(ReadAll("a,b\r1,2\r").error,
            "t.csv:1: a carriage return within a line; expected lines that end in LF or CRLF");
}

TEST(CsvTableTest, FindsColumnsByAnyOfTheirNames) {
  const ScratchFolder folder;
  const auto table = CsvTable::Open(folder.Write("t.csv", "a,b\n"));
  EXPECT_EQ(table.value().Column({"b"}), 1);
  EXPECT_EQ(table.value().Column({"x", "a"}), 0);
  EXPECT_EQ(table.value().Column({"x"}), -1);
}

TEST(CsvTableTest, ListsTheColumnsWhereOneIsMissing) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t.csv", "a,b\n");
  EXPECT_EQ(CsvTable::Open(path).value().Require({"x", "y"}).error().message,
            path + ":1: no column 'x' or 'y'; the columns are 'a', 'b'");
}

TEST(CsvTableTest, HandsBadRowsOverAndGoesOn) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t.csv", "a,b\n1,2\n1\nx,2\n3,4\n");
  const auto table = CsvTable::Open(path);
  std::vector<std::string> errors;
  int rows = 0;
  const Status status = table.value().ForEach(
      [&](const CsvRow& row) -> Status {
        const auto number = row.Integer(0, 1);
        rows += number.ok() ? 1 : 0;
        return number.ok() ? Status{} : Status(number.error());
      },
      [&](std::int64_t line, const Error& error) -> Status {
        errors.push_back(std::to_string(line) + " " + error.message);
        return {};
      });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(rows, 2);
  EXPECT_EQ(errors, (Rows{"3 " + path + ":3: 1 fields; expected 2 as in the header",
                          "4 " + path + ":4: column 'a' is 'x'; expected an integer >= 1"}));
}

// One row with one field, as a number; the error without its place.
template <typename Get>
std::string Describe(std::string_view field, const Get& get) {
  const std::string path = "t.csv";
  const std::vector<std::string> header{"gpus"};
  const std::vector<std::string_view> fields{field};
  const auto number = get(CsvRow(path, 7, header, fields));
  return number.ok() ? std::to_string(number.value()) : number.error().message;
}
std::string AsInteger(std::string_view field) {
  return Describe(field, [](const CsvRow& row) { return row.Integer(0, 1); });
}
std::string AsNumber(std::string_view field) {
  return Describe(field, [](const CsvRow& row) { return row.Number(0, 0); });
}

TEST(CsvRowTest, ReadsIntegers) {
  EXPECT_EQ(AsInteger("12"), "12");
  EXPECT_EQ(AsInteger("9223372036854775807"), "9223372036854775807");
}

TEST(CsvRowTest, ReadsIntegersWithExponents) {
  EXPECT_EQ(AsInteger("1e3"), "1000");
  EXPECT_EQ(AsInteger("1.5e1"), "15");
  EXPECT_EQ(AsInteger("4.0"), "4");
}

TEST(CsvRowTest, RefusesWhatIsNoInteger) {
  for (const std::string text : {"", "-1", "0", "1.5", "1.5e0", "1e30", " 12", "12 ", "+12", "0x10",
                                 "nan", "9223372036854775808"}) {
    EXPECT_EQ(AsInteger(text),
              "t.csv:7: column 'gpus' is '" + text + "'; expected an integer >= 1");
  }
}

TEST(CsvRowTest, ReadsDecimals) {
  EXPECT_EQ(AsNumber("12"), std::to_string(12.0));
  EXPECT_EQ(AsNumber("12.5"), std::to_string(12.5));
  EXPECT_EQ(AsNumber("1e3"), std::to_string(1000.0));
}

TEST(CsvRowTest, RefusesWhatIsNoDecimal) {
  for (const std::string text :
       {"", "-0.5", " 12", "+12", "0x10", "nan", "inf", "1e999", "1,5", "12s"}) {
    EXPECT_EQ(AsNumber(text), "t.csv:7: column 'gpus' is '" + text + "'; expected a number >= 0");
  }
}

TEST(CsvRowTest, PositiveRefusesZero) {
  EXPECT_EQ(Describe("0", [](const CsvRow& row) { return row.Positive(0); }),
            "t.csv:7: column 'gpus' is '0'; expected a number > 0");
}

TEST(CsvRowTest, ShowsLongAndStrangeTextShortAndClean) {
  EXPECT_EQ(AsInteger("\x1B[2J"), "t.csv:7: column 'gpus' is '?[2J'; expected an integer >= 1");
  EXPECT_EQ(
      AsInteger(std::string(59, 'x') + "\xC3\xA4\xC3\xA4"),
      "t.csv:7: column 'gpus' is '" + std::string(59, 'x') + "...'; expected an integer >= 1");
}

TEST(CsvRowTest, AColumnThatIsNotThereIsEmpty) {
  const std::string path = "t.csv";
  EXPECT_EQ(CsvRow(path, 1, {}, {}).Text(-1), "");
}

TEST(CsvTableTest, AHeaderlessTableHasTheNamesItIsGiven) {
  constexpr std::array<std::string_view, 2> kNames{"job", "user"};
  const auto rows = [&](std::string_view text) {
    const auto table = CsvTable::Headerless({.path = "t.csv", .text = std::string(text)}, kNames);
    EXPECT_TRUE(table.ok());
    std::string read;
    std::size_t count = 0;
    const Status status = table.value().ForEach([&](const CsvRow& row) -> Status {
      read += fmt::format("{}:{}/{} ", row.line(), row.Text(0), row.Text(1));
      ++count;
      return row.Text(1) == "bad" ? Status(row.Bad(1, "a user")) : Status();
    });
    EXPECT_LE(count, table.value().LikelyRows());
    return read + (status.ok() ? "" : status.error().message);
  };
  EXPECT_EQ(rows("a,b\nc,d"), "1:a/b 2:c/d ");
  EXPECT_EQ(rows("a,b\n"), "1:a/b ");
  EXPECT_EQ(rows("job,user\na,b\n"), "2:a/b ");
  EXPECT_EQ(rows("\na,bad\n"), "2:a/bad t.csv:2: column 'user' is 'bad'; expected a user");
  EXPECT_EQ(rows("a,b,c\n"), "t.csv:1: 3 fields; expected 2: job, user");
}

}  // namespace
}  // namespace trainyard::io
