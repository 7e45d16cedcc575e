// SPDX-License-Identifier: Apache-2.0
// Reads CSV tables, plain or gzipped, strictly: every complaint names file and line, and a file
// is either read whole or refused. The only code that knows libcsv.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "trainyard/status.h"

namespace trainyard {

// Limits on what is taken as text at all.
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

// A file taken as text.
struct TextFile {
  std::string path;
  std::string sha256;  // of the bytes on disk
  std::string text;    // unpacked and checked (io/text_check.h)

  // Errors: those of ReadFile and of CheckText.
  [[nodiscard]] static Result<TextFile> Read(const std::string& path);
};

// One row of a table. Valid during the callback only.
class CsvRow {
 public:
  CsvRow(const std::string& path, std::int64_t line, std::span<const std::string> header,
         std::span<const std::string_view> fields, std::string_view noun = "column")
      : path_(path), line_(line), header_(header), fields_(fields), noun_(noun) {}

  [[nodiscard]] std::int64_t line() const { return line_; }
  // Empty where `column` is -1.
  [[nodiscard]] std::string_view Text(int column) const;
  // "path:line: <noun> 'x' is 'v'; expected <expected>"
  [[nodiscard]] Error Bad(int column, std::string_view expected) const;
  // "path:line: <what>"
  [[nodiscard]] Error BadRow(std::string_view what) const;

  // Numbers: plain decimal notation, no surrounding blanks, no inf or nan.
  [[nodiscard]] Result<std::int64_t> Integer(int column, std::int64_t least) const;
  [[nodiscard]] Result<double> Number(int column, double least) const;
  // A number greater than zero.
  [[nodiscard]] Result<double> Positive(int column) const;

 private:
  const std::string& path_;
  std::int64_t line_;
  std::span<const std::string> header_;
  std::span<const std::string_view> fields_;
  std::string_view noun_;  // what messages call a column
};

// A table with a header row; blank lines are skipped, CRLF line ends are fine.
// Errors besides those of ReadFile: no header, a duplicate column, a row with more or fewer fields
// than the header, NUL bytes, text that is not UTF-8 (a UTF-8 byte order mark is fine), lines over
// kMaxLineBytes, an unterminated or misplaced quote, a carriage return within a line.
class CsvTable {
 public:
  using RowReader = std::function<Status(const CsvRow& row)>;
  // Takes the error of one row; what it returns decides whether the reading goes on.
  using BadRowReader = std::function<Status(std::int64_t line, Error error)>;

  [[nodiscard]] static Result<CsvTable> Open(const std::string& path);
  [[nodiscard]] static Result<CsvTable> Of(TextFile file);

  [[nodiscard]] const std::string& path() const { return file_.path; }
  // Of the bytes on disk that this table was read from.
  [[nodiscard]] const std::string& sha256() const { return file_.sha256; }
  [[nodiscard]] std::span<const std::string> header() const { return header_; }
  // No less than the number of rows; to reserve for. O(size of the file).
  [[nodiscard]] std::size_t MostRows() const;
  // The position of the first of `names` that the header has, or -1.
  [[nodiscard]] int Column(std::initializer_list<std::string_view> names) const;
  // As Column, but its absence is an error that lists the columns that are there.
  [[nodiscard]] Result<int> Require(std::initializer_list<std::string_view> names) const;
  // "path:<line of the header>: <what>"
  [[nodiscard]] Error BadHeader(std::string_view what) const;
  // Calls `on_row` for each row in order, until it fails. With `on_bad_row`, rows that `on_row`
  // refuses or that have a wrong number of fields go there instead of ending the reading.
  [[nodiscard]] Status ForEach(const RowReader& on_row, const BadRowReader& on_bad_row = {}) const;

 private:
  TextFile file_;
  std::vector<std::string> header_;
  std::int64_t header_line_ = 1;
};

}  // namespace trainyard
