// SPDX-License-Identifier: Apache-2.0
// Reads CSV tables, plain or packed, strictly: every complaint names file and line, and a file is
// either read whole or refused. The only code that knows libcsv.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file.h"
#include "io/text_stream.h"
#include "trainyard/status.h"

namespace trainyard::io {

// A file taken as text.
struct TextFile {
  std::string path;
  std::string sha256;  // of the bytes on disk
  std::string text;    // unpacked and checked (io/text_check.h)

  // Errors: those of TextStream; too large.
  [[nodiscard]] static Result<TextFile> Read(const std::string& path);
  // The whole text of a stream that is at its first block.
  [[nodiscard]] static Result<TextFile> Of(TextStream stream);
};

// One row of a table. Valid during the callback only.
class CsvRow {
 public:
  CsvRow(const std::string& path, std::int64_t line, std::span<const std::string> header,
         std::span<const std::string_view> fields, std::string_view noun = "column")
      : path_(path), line_(line), header_(header), fields_(fields), noun_(noun) {}

  [[nodiscard]] std::int64_t line() const { return line_; }
  // The position of a column, or -1. O(columns): for small tables.
  [[nodiscard]] int Column(std::string_view name) const;
  // Empty where `column` is -1.
  [[nodiscard]] std::string_view Text(int column) const;
  // "path:line: <noun> 'x' is 'v'; expected <expected>"
  [[nodiscard]] Error Bad(int column, std::string_view expected) const;
  // "path:line: <what>"
  [[nodiscard]] Error BadRow(std::string_view what) const;

  // Numbers: plain decimal notation, no surrounding blanks, no inf or nan. An integer may have a
  // point and zeros ("4.0").
  [[nodiscard]] Result<std::int64_t> Integer(int column, std::int64_t least) const;
  [[nodiscard]] Result<double> Number(int column, double least) const;
  // From the least to the most, both included. `what`: what messages call the number.
  [[nodiscard]] Result<std::int64_t> Integer(int column, std::int64_t least,
                                             std::int64_t most) const;
  [[nodiscard]] Result<double> Number(int column, double least, double most,
                                      std::string_view what = "a number") const;
  // A number greater than zero.
  [[nodiscard]] Result<double> Positive(int column) const;

 private:
  const std::string& path_;
  std::int64_t line_;
  std::span<const std::string> header_;
  std::span<const std::string_view> fields_;
  std::string_view noun_;  // what messages call a column
};

using RowReader = std::function<Status(const CsvRow& row)>;
// Takes the error of one row; what it returns decides whether the reading goes on.
using BadRowReader = std::function<Status(std::int64_t line, Error error)>;

// Hands a row to `on_row`, and its error to `on_bad_row`, where there is one.
[[nodiscard]] Status GiveOut(const CsvRow& row, const RowReader& on_row,
                             const BadRowReader& on_bad_row);

// The columns of a table.
class CsvHeader {
 public:
  // Takes the first row of a text that may go on. Errors: there is none; a duplicate column.
  [[nodiscard]] static Result<CsvHeader> Read(const std::string& path, std::string_view text);
  // Of a table without a header row. A first row that begins with the first name is one after all.
  [[nodiscard]] static Result<CsvHeader> Named(const std::string& path, std::string_view text,
                                               std::span<const std::string_view> names);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::span<const std::string> header() const { return header_; }
  [[nodiscard]] std::int64_t header_line() const { return header_line_; }
  // The position of the first of `names` that the header has, or -1.
  [[nodiscard]] int Column(std::initializer_list<std::string_view> names) const;
  // As Column, but its absence is an error that lists the columns that are there.
  [[nodiscard]] Result<int> Require(std::initializer_list<std::string_view> names) const;
  // Errors: a column that is none of `known`.
  [[nodiscard]] Status CheckKnown(std::span<const std::string_view> known) const;
  // "path:<line of the header>: <what>"
  [[nodiscard]] Error BadHeader(std::string_view what) const;
  // Columns without a name, by their positions in the file: no others count them.
  [[nodiscard]] std::span<const std::size_t> unnamed() const { return unnamed_; }
  // REQUIRES: `column` is from 0 to the number of columns - 1.
  void Rename(int column, std::string name) {
    header_[static_cast<std::size_t>(column)] = std::move(name);
  }

 private:
  void DropUnnamed();

  std::string path_;
  std::vector<std::string> header_;
  std::vector<std::size_t> unnamed_;
  std::int64_t header_line_ = 1;  // 0: there is none
};

// A table with a header row; blank lines are skipped, CRLF line ends are fine. Columns without a
// name are passed over: indices, and what a comma at the end of each line makes.
// Errors besides those of ReadFile: no header, another separator, a comment line, a duplicate
// column, a row with more or fewer fields than the header, NUL bytes, text that is not UTF-8 (a
// UTF-8 byte order mark is fine), lines over kMaxLineBytes, an unterminated or misplaced quote, a
// carriage return within a line.
class CsvTable : public CsvHeader {
 public:
  using RowReader = trainyard::io::RowReader;
  using BadRowReader = trainyard::io::BadRowReader;

  [[nodiscard]] static Result<CsvTable> Open(const std::string& path);
  [[nodiscard]] static Result<CsvTable> Of(TextFile file);
  // As CsvHeader::Named.
  [[nodiscard]] static Result<CsvTable> Headerless(TextFile file,
                                                   std::span<const std::string_view> names);

  // Of the bytes on disk that this table was read from.
  [[nodiscard]] const std::string& sha256() const { return file_.sha256; }
  // No less than the number of rows; to reserve for. O(size of the file).
  [[nodiscard]] std::size_t LikelyRows() const;
  // Calls `on_row` for each row in order, until it fails. With `on_bad_row`, rows that `on_row`
  // refuses or that have a wrong number of fields go there instead of ending the reading.
  [[nodiscard]] Status ForEach(const RowReader& on_row, const BadRowReader& on_bad_row = {}) const;

 private:
  CsvTable(TextFile file, CsvHeader header)
      : CsvHeader(std::move(header)), file_(std::move(file)) {}

  TextFile file_;
};

// A table that is read once and in bounded memory, whatever its size. Errors: as for CsvTable, but
// those of the text come with the rows before them already given.
class CsvStream : public CsvHeader {
 public:
  // Takes a stream that is at its first block.
  [[nodiscard]] static Result<CsvStream> Of(TextStream text);

  // About the number of rows; to reserve for.
  [[nodiscard]] std::size_t LikelyRows() const;
  // The field of the first row, before ForEach; empty: there is none within the first block.
  [[nodiscard]] std::string FirstValue(int column) const;
  // As CsvTable::ForEach. REQUIRES: it is called once.
  [[nodiscard]] Status ForEach(const RowReader& on_row, const BadRowReader& on_bad_row = {});
  // Of the bytes on disk. REQUIRES: ForEach has come to the end.
  [[nodiscard]] std::string sha256() const { return text_.sha256(); }

 private:
  CsvStream(TextStream text, CsvHeader header)
      : CsvHeader(std::move(header)), text_(std::move(text)) {}

  TextStream text_;
};

}  // namespace trainyard::io
