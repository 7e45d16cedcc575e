// SPDX-License-Identifier: Apache-2.0
#include "io/csv_reader.h"

#include <csv.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "io/text_check.h"

namespace trainyard {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Text from a file, safe to print: short and without control characters.
std::string Shown(std::string_view text) {
  constexpr std::size_t kMostBytes = 60;
  std::string shown(text.substr(0, kMostBytes));
  if (text.size() > kMostBytes) {
    while (!shown.empty() && (static_cast<unsigned char>(text[shown.size()]) & 0xC0U) == 0x80U) {
      shown.pop_back();  // never half a UTF-8 sequence
    }
    shown += "...";
  }
  std::replace_if(
      shown.begin(), shown.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return shown;
}

// The whole of `text` as a number, if it is one and finite.
template <typename T>
std::optional<T> Parse(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || stop != end) {
    return std::nullopt;
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) {
      return std::nullopt;
    }
  }
  return value;
}

// libcsv, fed line by line so that line numbers are known.
class RowParser {
 public:
  RowParser() {
    csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI);
    csv_set_space_func(&parser_, [](unsigned char) { return 0; });  // blanks belong to the field
  }
  ~RowParser() { csv_free(&parser_); }
  RowParser(const RowParser&) = delete;
  RowParser& operator=(const RowParser&) = delete;

  // False: the line is not CSV. A row is complete unless a quoted field goes on in the next line.
  [[nodiscard]] bool Feed(std::string_view line) {
    return csv_parse(&parser_, line.data(), line.size(), OnField, OnRow, this) == line.size();
  }
  // The last line may lack its line end. False: a quoted field is open.
  [[nodiscard]] bool Finish() { return csv_fini(&parser_, OnField, OnRow, this) == 0; }

  [[nodiscard]] bool complete() const { return complete_; }
  // REQUIRES: complete(). Valid until Clear().
  [[nodiscard]] std::span<const std::string_view> Fields() {
    fields_.clear();
    std::size_t start = 0;
    for (const std::size_t end : ends_) {
      fields_.push_back(std::string_view(text_).substr(start, end - start));
      start = end;
    }
    return fields_;
  }
  void Clear() {
    text_.clear();
    ends_.clear();
    complete_ = false;
  }

 private:
  static void OnField(void* field, std::size_t size, void* self) {
    auto& parser = *static_cast<RowParser*>(self);
    parser.text_.append(static_cast<const char*>(field), size);
    parser.ends_.push_back(parser.text_.size());
  }
  static void OnRow(int /*end*/, void* self) { static_cast<RowParser*>(self)->complete_ = true; }

  csv_parser parser_{};
  std::string text_;               // of all fields
  std::vector<std::size_t> ends_;  // of the fields in text_
  std::vector<std::string_view> fields_;
  bool complete_ = false;
};

using RawRow = std::function<Status(std::int64_t line, std::span<const std::string_view> fields)>;

// Calls `on_row` for each row, the header included, until it fails.
Status ForEachRaw(const std::string& path, std::string_view text, const RawRow& on_row) {
  RowParser parser;
  std::int64_t line = 0;
  std::int64_t row_line = 0;  // where the row began
  bool open = false;          // a quoted field goes on
  std::size_t start = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  while (start < text.size()) {
    ++line;
    row_line = open ? row_line : line;
    const std::size_t end = std::min(text.find('\n', start), text.size() - 1) + 1;
    const std::string_view bytes = text.substr(start, end - start);
    if (!parser.Feed(bytes)) {
      return BadInput(
          fmt::format("{}:{}: a misplaced quote; expected quotes around whole fields", path, line));
    }
    open = !parser.complete() && (open || (bytes != "\n" && bytes != "\r\n"));
    start = end;
    if (start == text.size() && !parser.Finish()) {
      return BadInput(fmt::format("{}:{}: a quoted field that never ends; expected a closing quote",
                                  path, row_line));
    }
    if (parser.complete()) {
      if (Status status = on_row(row_line, parser.Fields()); !status.ok()) {
        return status;
      }
      parser.Clear();
    }
  }
  return {};
}

// The first row of a table.
struct Header {
  std::int64_t line = 0;  // 0: there is none
  std::vector<std::string> names;
};

Result<Header> ReadHeader(const std::string& path, std::string_view text) {
  Header header;
  const auto take = [&header](std::int64_t line, std::span<const std::string_view> fields) {
    header.line = line;
    header.names.assign(fields.begin(), fields.end());
    return Status(Failed("enough read"));
  };
  const Status status = ForEachRaw(path, text, take);
  if (header.line != 0) {
    return header;
  }
  return status.ok() ? BadInput(fmt::format(
                           "{}:1: nothing in the file; expected a header with column names", path))
                     : status.error();
}

}  // namespace

std::string_view CsvRow::Text(int column) const {
  return column < 0 ? std::string_view{} : fields_[static_cast<std::size_t>(column)];
}

Error CsvRow::Bad(int column, std::string_view expected) const {
  return BadRow(fmt::format("{} '{}' is '{}'; expected {}", noun_,
                            Shown(header_[static_cast<std::size_t>(column)]), Shown(Text(column)),
                            expected));
}

Error CsvRow::BadRow(std::string_view what) const {
  return BadInput(fmt::format("{}:{}: {}", path_, line_, what));
}

Result<std::int64_t> CsvRow::Integer(int column, std::int64_t least) const {
  const auto value = Parse<std::int64_t>(Text(column));
  if (!value.has_value() || *value < least) {
    return Bad(column, fmt::format("an integer >= {}", least));
  }
  return *value;
}

Result<double> CsvRow::Number(int column, double least) const {
  const auto value = Parse<double>(Text(column));
  if (!value.has_value() || *value < least) {
    return Bad(column, fmt::format("a number >= {}", least));
  }
  return *value;
}

Result<double> CsvRow::Positive(int column) const {
  const auto value = Parse<double>(Text(column));
  if (!value.has_value() || *value <= 0) {
    return Bad(column, "a number > 0");
  }
  return *value;
}

Result<TextFile> TextFile::Read(const std::string& path) {
  Result<std::string> bytes = ReadBytes(path);
  if (!bytes.ok()) {
    return bytes.error();
  }
  TextFile file{.path = path, .sha256 = Sha256Hex(bytes.value())};
  Result<std::string> text = Unpack(path, std::move(bytes).value());
  if (!text.ok()) {
    return text.error();
  }
  file.text = std::move(text).value();
  if (const Status checked = CheckText(path, file.text); !checked.ok()) {
    return checked.error();
  }
  return file;
}

Result<CsvTable> CsvTable::Open(const std::string& path) {
  Result<TextFile> file = TextFile::Read(path);
  return file.ok() ? Of(std::move(file).value()) : file.error();
}

Result<CsvTable> CsvTable::Of(TextFile file) {
  CsvTable table;
  table.file_ = std::move(file);
  Result<Header> header = ReadHeader(table.path(), table.file_.text);
  if (!header.ok()) {
    return header.error();
  }
  table.header_line_ = header.value().line;
  table.header_ = std::move(header.value().names);
  std::set<std::string_view> seen;
  for (const std::string& name : table.header_) {
    if (!seen.insert(name).second) {
      return table.BadHeader(
          fmt::format("column '{}' is there twice; expected different names", Shown(name)));
    }
  }
  return table;
}

std::size_t CsvTable::MostRows() const {
  const auto lines =
      static_cast<std::size_t>(std::count(file_.text.begin(), file_.text.end(), '\n'));
  // A row has a comma or a line end for each of its columns: blank lines do not count.
  return std::min(lines, file_.text.size() / header_.size());
}

int CsvTable::Column(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    const auto found = std::find(header_.begin(), header_.end(), name);
    if (found != header_.end()) {
      return static_cast<int>(found - header_.begin());
    }
  }
  return -1;
}

Result<int> CsvTable::Require(std::initializer_list<std::string_view> names) const {
  if (const int column = Column(names); column >= 0) {
    return column;
  }
  std::string wanted;
  for (const std::string_view name : names) {
    wanted += fmt::format("{}'{}'", wanted.empty() ? "" : " or ", name);
  }
  std::string present;
  for (const std::string& name : header_) {
    present += fmt::format("{}'{}'", present.empty() ? "" : ", ", Shown(name));
  }
  return BadHeader(fmt::format("no column {}; the columns are {}", wanted, present));
}

Error CsvTable::BadHeader(std::string_view what) const {
  return BadInput(fmt::format("{}:{}: {}", file_.path, header_line_, what));
}

Status CsvTable::ForEach(const RowReader& on_row, const BadRowReader& on_bad_row) const {
  const auto read = [&](const CsvRow& row, std::size_t fields) -> Status {
    if (fields != header_.size()) {
      return row.BadRow(
          fmt::format("{} fields; expected {} as in the header", fields, header_.size()));
    }
    return on_row(row);
  };
  return ForEachRaw(file_.path, file_.text,
                    [&](std::int64_t line, std::span<const std::string_view> fields) -> Status {
                      if (line == header_line_) {
                        return {};
                      }
                      const CsvRow row(file_.path, line, header_, fields);
                      Status status = read(row, fields.size());
                      return status.ok() || !on_bad_row ? status : on_bad_row(line, status.error());
                    });
}

}  // namespace trainyard
