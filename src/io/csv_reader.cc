// SPDX-License-Identifier: Apache-2.0
#include "io/csv_reader.h"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "io/table_faults.h"
#include "io/text_check.h"

namespace trainyard::io {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

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

// Takes a text apart into rows, the header included, block by block.
class RawRows {
 public:
  explicit RawRows(const std::string& path) : path_(path) {}

  // Calls `on_row` for each row of some more lines, until it fails.
  Status Feed(std::string_view lines, const RawRow& on_row) {
    if (line_ == 0 && lines.starts_with(kByteOrderMark)) {
      lines.remove_prefix(kByteOrderMark.size());
    }
    while (!lines.empty()) {
      const std::size_t size = std::min(lines.find('\n'), lines.size() - 1) + 1;
      RETURN_IF_ERROR(FeedLine(lines.substr(0, size), on_row));
      lines.remove_prefix(size);
    }
    return {};
  }

  // The last line may lack its line end.
  Status Finish(const RawRow& on_row) {
    if (!parser_.Finish()) {
      return BadInput(fmt::format("{}:{}: a quoted field that never ends; expected a closing quote",
                                  path_, row_line_));
    }
    return GiveOut(on_row);
  }

 private:
  Status FeedLine(std::string_view line, const RawRow& on_row) {
    ++line_;
    row_line_ = open_ ? row_line_ : line_;
    if (!parser_.Feed(line)) {
      return BadInput(fmt::format("{}:{}: a misplaced quote; expected quotes around whole fields",
                                  path_, line_));
    }
    open_ = !parser_.complete() && (open_ || (line != "\n" && line != "\r\n"));
    return GiveOut(on_row);
  }

  Status GiveOut(const RawRow& on_row) {
    if (!parser_.complete()) {
      return {};
    }
    Status status = on_row(row_line_, parser_.Fields());
    parser_.Clear();
    return status;
  }

  const std::string& path_;
  RowParser parser_;
  std::int64_t line_ = 0;
  std::int64_t row_line_ = 0;  // where the row began
  bool open_ = false;          // a quoted field goes on
};

// Of a whole text.
Status FeedAll(const std::string& path, std::string_view text, const RawRow& on_row) {
  RawRows rows(path);
  RETURN_IF_ERROR(rows.Feed(text, on_row));
  return rows.Finish(on_row);
}

Error OtherCountIn(const CsvHeader& header, const CsvRow& row,
                   std::span<const std::string_view> fields) {
  const std::span<const std::string> names = header.header();
  return row.BadRow(header.header_line() > 0
                        ? OtherCount(fields, names.size() + header.unnamed().size())
                        : fmt::format("{} fields; expected {}: {}", fields.size(), names.size(),
                                      fmt::join(names, ", ")));
}

// What a table does with its raw rows.
class CheckedRows {
 public:
  CheckedRows(const CsvHeader& header, const RowReader& on_row, const BadRowReader& on_bad_row)
      : header_(header),
        on_row_(on_row),
        on_bad_row_(on_bad_row),
        in_file_(header.header().size() + header.unnamed().size()),
        may_lack_last_(!header.unnamed().empty() && header.unnamed().back() + 1 == in_file_) {
    for (std::size_t i = 0; header.header_line() > 0 && i < header.header().size(); ++i) {
      if (IsIndexColumn(header.header()[i])) {
        index_columns_.push_back(static_cast<int>(i));
      }
    }
  }

  Status operator()(std::int64_t line, std::span<const std::string_view> fields) {
    if (line == header_.header_line()) {
      return {};
    }
    // The header alone may end with a comma.
    const bool is_whole =
        fields.size() == in_file_ || (may_lack_last_ && fields.size() + 1 == in_file_);
    const std::span<const std::string_view> named =
        is_whole && !header_.unnamed().empty() ? Named(fields) : fields;
    const CsvRow row(header_.path(), line, header_.header(), named);
    Status status = is_whole ? CheckIndex(row, fields) : OtherCountIn(header_, row, fields);
    if (status.ok()) {
      status = on_row_(row);
    }
    return status.ok() || !on_bad_row_ ? status : on_bad_row_(line, status.error());
  }

 private:
  // The fields of columns that have names.
  std::span<const std::string_view> Named(std::span<const std::string_view> fields) {
    named_.clear();
    auto unnamed = header_.unnamed().begin();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (unnamed != header_.unnamed().end() && *unnamed == i) {
        ++unnamed;
      } else {
        named_.push_back(fields[i]);
      }
    }
    return named_;
  }

  // Columns that are not read hold nothing but numbers of rows.
  [[nodiscard]] Status CheckIndex(const CsvRow& row,
                                  std::span<const std::string_view> fields) const {
    const auto is_index = [](std::string_view text) {
      return text.empty() || Parse<std::int64_t>(text).has_value();
    };
    for (const std::size_t column : header_.unnamed()) {
      if (column < fields.size() && !is_index(fields[column])) {
        return row.BadRow(
            fmt::format("column {} has no name and holds '{}'; expected its name in the header",
                        column + 1, Shown(fields[column])));
      }
    }
    for (const int column : index_columns_) {
      if (!is_index(row.Text(column))) {
        return row.Bad(column, "the number of a row, which an index of that name has");
      }
    }
    return {};
  }

  const CsvHeader& header_;
  const RowReader& on_row_;
  const BadRowReader& on_bad_row_;
  std::size_t in_file_;  // columns
  bool may_lack_last_;
  std::vector<int> index_columns_;  // with names
  std::vector<std::string_view> named_;
};

// REQUIRES: the header and both readers live as long as the result.
RawRow Checked(const CsvHeader& header, const RowReader& on_row, const BadRowReader& on_bad_row) {
  return CheckedRows(header, on_row, on_bad_row);
}

}  // namespace

int CsvRow::Column(std::string_view name) const {
  const auto found = std::find(header_.begin(), header_.end(), name);
  return found == header_.end() ? -1 : static_cast<int>(found - header_.begin());
}

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
  auto value = Parse<std::int64_t>(Text(column));
  if (!value.has_value() && Text(column).find_first_of(".eE") != std::string_view::npos) {
    constexpr double kMostExact = 9'007'199'254'740'992;
    const auto number = Parse<double>(Text(column));  // 1e6, 4.0
    if (number && *number == std::floor(*number) && std::abs(*number) <= kMostExact) {
      value = static_cast<std::int64_t>(*number);
    }
  }
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

Result<std::int64_t> CsvRow::Integer(int column, std::int64_t least, std::int64_t most) const {
  const Result<std::int64_t> value = Integer(column, least);
  return value.ok() && value.value() <= most
             ? value
             : Bad(column, fmt::format("an integer from {} to {}", least, most));
}

Result<double> CsvRow::Number(int column, double least, double most, std::string_view what) const {
  const Result<double> value = Number(column, least);
  return value.ok() && value.value() <= most
             ? value
             : Bad(column, fmt::format("{} from {} to {:.0f}", what, least, most));
}

Result<double> CsvRow::Positive(int column) const {
  const auto value = Parse<double>(Text(column));
  if (!value.has_value() || *value <= 0) {
    return Bad(column, "a number > 0");
  }
  return *value;
}

Status GiveOut(const CsvRow& row, const RowReader& on_row, const BadRowReader& on_bad_row) {
  Status status = on_row(row);
  return status.ok() || !on_bad_row ? status : on_bad_row(row.line(), status.error());
}

Result<TextFile> TextFile::Read(const std::string& path) {
  ASSIGN_OR_RETURN(TextStream stream, TextStream::Open(path));
  return Of(std::move(stream));
}

Result<TextFile> TextFile::Of(TextStream stream) {
  TextFile file{.path = stream.path()};
  file.text.reserve(std::min(stream.LikelySize(), kMaxFileBytes) + 1);
  while (!stream.block().empty()) {
    if (file.text.size() + stream.block().size() > kMaxFileBytes) {
      return BadInput(
          fmt::format("{}: too large; expected at most {} GiB", file.path, kMaxFileBytes >> 30U));
    }
    file.text += stream.block();
    RETURN_IF_ERROR(stream.Next());
  }
  file.sha256 = stream.sha256();
  return file;
}

Result<CsvTable> CsvTable::Open(const std::string& path) {
  ASSIGN_OR_RETURN(TextFile file, TextFile::Read(path));
  return Of(std::move(file));
}

Result<CsvHeader> CsvHeader::Read(const std::string& path, std::string_view text) {
  CsvHeader header;
  header.path_ = path;
  if (const std::string fault = FaultOfText(path, text); !fault.empty()) {
    return header.BadHeader(fault);
  }
  header.header_line_ = 0;
  const auto take = [&header](std::int64_t line, std::span<const std::string_view> fields) {
    header.header_line_ = line;
    header.header_.assign(fields.begin(), fields.end());
    return Status(Failed("enough read"));
  };
  const Status status = FeedAll(path, text, take);
  if (header.header_line_ == 0) {
    return status.ok()
               ? BadInput(fmt::format(
                     "{}:1: nothing in the file; expected a header with column names", path))
               : status.error();
  }
  if (const std::string fault = FaultOfHeader(path, header.header_); !fault.empty()) {
    return header.BadHeader(fault);
  }
  header.DropUnnamed();
  if (header.header_.empty()) {
    return header.BadHeader("no column has a name; expected a header with column names");
  }
  std::set<std::string_view> seen;
  for (const std::string& name : header.header_) {
    if (!seen.insert(name).second) {
      return header.BadHeader(
          fmt::format("column '{}' is there twice; expected different names", Shown(name)));
    }
  }
  return header;
}

void CsvHeader::DropUnnamed() {
  std::vector<std::string> named;
  for (std::size_t i = 0; i < header_.size(); ++i) {
    if (base::Trim(header_[i]).empty()) {
      unnamed_.push_back(i);
    } else {
      named.push_back(std::move(header_[i]));
    }
  }
  header_ = std::move(named);
}

Result<CsvHeader> CsvHeader::Named(const std::string& path, std::string_view text,
                                   std::span<const std::string_view> names) {
  CsvHeader header;
  header.path_ = path;
  header.header_line_ = 0;
  header.header_.assign(names.begin(), names.end());
  std::int64_t first_line = 0;
  const auto take = [&](std::int64_t line, std::span<const std::string_view> fields) {
    first_line = line;
    header.header_line_ = fields.front() == names.front() ? line : 0;
    return Status(Failed("enough read"));
  };
  const Status status = FeedAll(path, text, take);
  if (first_line > 0) {
    return header;
  }
  return status.ok() ? BadInput(fmt::format("{}:1: nothing in the file; expected rows of {} fields",
                                            path, names.size()))
                     : status.error();
}

int CsvHeader::Column(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    const auto found = std::find(header_.begin(), header_.end(), name);
    if (found != header_.end()) {
      return static_cast<int>(found - header_.begin());
    }
  }
  return -1;
}

Result<int> CsvHeader::Require(std::initializer_list<std::string_view> names) const {
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

Status CsvHeader::CheckKnown(std::span<const std::string_view> known) const {
  for (const std::string& name : header_) {
    if (!IsIndexColumn(name) && std::find(known.begin(), known.end(), name) == known.end()) {
      return BadHeader(base::UnknownName("column", name, known));
    }
  }
  return {};
}

Error CsvHeader::BadHeader(std::string_view what) const {
  return BadInput(fmt::format("{}:{}: {}", path_, header_line_, what));
}

Result<CsvTable> CsvTable::Of(TextFile file) {
  ASSIGN_OR_RETURN(CsvHeader header, CsvHeader::Read(file.path, file.text));
  return CsvTable(std::move(file), std::move(header));
}

Result<CsvTable> CsvTable::Headerless(TextFile file, std::span<const std::string_view> names) {
  ASSIGN_OR_RETURN(CsvHeader header, CsvHeader::Named(file.path, file.text, names));
  return CsvTable(std::move(file), std::move(header));
}

std::size_t CsvTable::LikelyRows() const {
  const auto lines =
      static_cast<std::size_t>(std::count(file_.text.begin(), file_.text.end(), '\n'));
  // A row has a comma or a line end for each of its columns: blank lines do not count.
  return std::min(lines, file_.text.size() / header().size()) + (header_line() == 0 ? 1 : 0);
}

Status CsvTable::ForEach(const RowReader& on_row, const BadRowReader& on_bad_row) const {
  return FeedAll(path(), file_.text, Checked(*this, on_row, on_bad_row));
}

Result<CsvStream> CsvStream::Of(TextStream text) {
  ASSIGN_OR_RETURN(CsvHeader header, CsvHeader::Read(text.path(), text.block()));
  return CsvStream(std::move(text), std::move(header));
}

std::size_t CsvStream::LikelyRows() const {
  const std::string_view block = text_.block();
  const auto lines = static_cast<std::size_t>(std::count(block.begin(), block.end(), '\n'));
  const std::size_t rows = std::min(lines, block.size() / header().size()) + 1;
  const auto blocks = static_cast<double>(text_.LikelySize()) / static_cast<double>(block.size());
  return static_cast<std::size_t>(static_cast<double>(rows) * std::max(blocks, 1.0));
}

std::string CsvStream::FirstValue(int column) const {
  std::string value;
  const auto take = [&](std::int64_t line, std::span<const std::string_view> fields) -> Status {
    if (line == header_line()) {
      return {};
    }
    auto at = static_cast<std::size_t>(column);
    for (const std::size_t unnamed : this->unnamed()) {
      at += unnamed <= at ? 1 : 0;
    }
    value = column >= 0 && at < fields.size() ? fields[at] : "";
    return Failed("enough read");
  };
  static_cast<void>(FeedAll(path(), text_.block(), take));
  return value;
}

Status CsvStream::ForEach(const RowReader& on_row, const BadRowReader& on_bad_row) {
  const RawRow checked = Checked(*this, on_row, on_bad_row);
  RawRows rows(path());
  while (!text_.block().empty()) {
    RETURN_IF_ERROR(rows.Feed(text_.block(), checked));
    RETURN_IF_ERROR(text_.Next());
  }
  return rows.Finish(checked);
}

}  // namespace trainyard::io
