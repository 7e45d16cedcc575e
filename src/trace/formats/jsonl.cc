// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "io/json.h"
#include "io/text_check.h"
#include "model/request/node_request.h"
#include "trace/column_map.h"
#include "trace/csv_format.h"
#include "trace/line_stream.h"
#include "trace/own_format.h"
#include "trace/trace_builder.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kBlanks = " \t\r\n";
// The shortest job: {"job_id":"a","submit_time":0,"gpus":1,"duration":1}
constexpr std::size_t kLeastLine = 50;

std::string_view WithoutMark(std::string_view text) {
  text.remove_prefix(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  return text;
}

std::vector<std::string> ColumnNames() {
  std::vector<std::string> names;
  for (const ColumnRule& rule : kNativeFormat.columns) {
    names.emplace_back(rule.name);
  }
  return names;
}

// Ids may be written as integers, times as texts, too ("02:00:00").
enum class ColumnKind : std::uint8_t { kNumber, kTime, kId, kText, kFlag };

// Texts are texts, lists, and of data sets all but the size.
template <typename T>
constexpr ColumnKind KindOf(std::size_t part) {
  if constexpr (std::is_same_v<T, bool>) {
    return ColumnKind::kFlag;
  } else if constexpr (std::is_same_v<T, std::string> || model::HasText<T>) {
    return ColumnKind::kId;
  } else if constexpr (std::is_same_v<T, TimePoint> ||
                       std::is_same_v<T, std::optional<TimePoint>> ||
                       std::is_same_v<T, std::optional<Duration>>) {
    return ColumnKind::kTime;
  } else if constexpr (std::is_same_v<T, std::optional<DataSet>>) {
    return part == 1 ? ColumnKind::kNumber : ColumnKind::kText;
  } else {
    return requires(T list) { list.data(); }
    ? ColumnKind::kText : ColumnKind::kNumber;
  }
}

// Of the columns of the native format.
constexpr auto kKinds = [] {
  std::array<ColumnKind, kNativeColumns> kinds{};
  model::ForEachJobField<model::IsInTraces>([&kinds](const auto& field) {
    using Value = std::remove_cvref_t<decltype(model::ValueOf(field, std::declval<JobSpec>()))>;
    for (std::size_t part = 0; part < field.columns(); ++part) {
      kinds.at(static_cast<std::size_t>(ColumnOf(field.info, part))) = KindOf<Value>(part);
    }
  });
  return kinds;
}();

// Numbers of tasks beside them.
ColumnKind KindOf(JobColumn column) {
  const auto place = static_cast<std::size_t>(column);
  return place < kKinds.size() ? kKinds.at(place) : ColumnKind::kNumber;
}

std::string Quoted(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Takes one object apart into the texts of its fields.
class ObjectReader final : public Json::json_sax_t {
 public:
  explicit ObjectReader(const ColumnMap& map)
      : map_(map), columns_(kNativeFormat.columns), texts_(columns_.size()) {}

  // False: see Complaint. Valid until the next call.
  [[nodiscard]] bool Read(std::string_view line) {
    std::fill(texts_.begin(), texts_.end(), std::string());
    seen_.fill(false);
    is_open_ = false;
    column_ = -1;
    skipped_depth_ = 0;
    is_skipped_ = false;
    complaint_.clear();
    return Json::sax_parse(line.begin(), line.end(), this) && HasRequired();
  }
  [[nodiscard]] std::vector<std::string_view> Fields() const {
    return {texts_.begin(), texts_.end()};
  }
  [[nodiscard]] Error Complaint(const io::CsvRow& row) const {
    return column_ >= 0 ? row.Bad(column_, complaint_) : row.BadRow(complaint_);
  }

  bool null() override { return Take("", true); }  // as if the field were not there
  bool boolean(bool value) override {
    return Take(IsFlag() ? (value ? "1" : "0") : (value ? "true" : "false"), IsFlag());
  }
  bool number_integer(Json::number_integer_t value) override {
    return Take(std::to_string(value), IsNumber() || IsId());
  }
  bool number_unsigned(Json::number_unsigned_t value) override {
    return Take(std::to_string(value), IsNumber() || IsId());
  }
  bool number_float(Json::number_float_t /*value*/, const std::string& text) override {
    return Take(text, IsNumber());
  }
  bool string(std::string& text) override {
    if (column_ >= 0 && Kind() == ColumnKind::kTime && !base::ToNumber(text)) {
      return Take(std::move(text), true);  // a date or a length of time, or it is refused as none
    }
    if (column_ >= 0 && text.find('\0') != std::string::npos) {
      return Refuse("text without a NUL character");
    }
    return Take(std::move(text), column_ >= 0 && !IsNumber());
  }
  bool binary(Json::binary_t& /*value*/) override { return false; }  // JSON text has none
  bool start_object(std::size_t /*elements*/) override {
    if (is_skipped_) {
      ++skipped_depth_;
      return true;
    }
    return std::exchange(is_open_, true) ? Take("{...}", false) : true;
  }
  bool key(std::string& name) override { return skipped_depth_ > 0 || Find(name); }
  bool end_object() override {
    if (skipped_depth_ > 0) {
      return LeaveSkipped();
    }
    is_open_ = false;
    column_ = -1;
    return true;
  }
  bool start_array(std::size_t /*elements*/) override {
    if (is_skipped_) {
      ++skipped_depth_;
      return true;
    }
    return Take("[...]", false);
  }
  bool end_array() override { return skipped_depth_ > 0 ? LeaveSkipped() : true; }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    constexpr int kOutOfRange = 406;  // json.exception.out_of_range
    return RefuseRow(error.id == kOutOfRange
                         ? fmt::format("a number at byte {} that is out of range; expected a "
                                       "smaller one",
                                       position)
                         : fmt::format("no JSON from byte {} on; expected one object", position));
  }

 private:
  [[nodiscard]] bool IsFlag() const { return column_ >= 0 && Kind() == ColumnKind::kFlag; }
  [[nodiscard]] bool IsId() const { return column_ >= 0 && Kind() == ColumnKind::kId; }
  [[nodiscard]] bool IsNumber() const {
    return column_ >= 0 && Kind() != ColumnKind::kText && Kind() != ColumnKind::kId;
  }
  [[nodiscard]] ColumnKind Kind() const {
    return KindOf(columns_[static_cast<std::size_t>(column_)].field);
  }

  // The value of a field without a meaning has been read.
  bool LeaveSkipped() {
    is_skipped_ = --skipped_depth_ > 0;
    return true;
  }

  bool Find(std::string_view own) {
    const std::string_view meaning = map_.MeaningOf(own);
    const std::string_view name = meaning.empty() ? own : meaning;
    const auto found = std::find_if(columns_.begin(), columns_.end(),
                                    [name](const ColumnRule& rule) { return rule.name == name; });
    column_ = -1;
    is_skipped_ =
        !map_.empty() && meaning.empty() && (found == columns_.end() || map_.IsTaken(name));
    if (is_skipped_) {
      return true;
    }
    if (found == columns_.end()) {
      constexpr std::size_t kMostBytes = 60;
      const std::string shown = Quoted(name.substr(0, kMostBytes));
      return RefuseRow(UnknownColumn(kNativeFormat, "field",
                                     std::string_view(shown).substr(1, shown.size() - 2)));
    }
    column_ = static_cast<int>(found - columns_.begin());
    if (std::exchange(seen_.at(static_cast<std::size_t>(column_)), true)) {
      return RefuseRow(fmt::format("field '{}' is there twice; expected different names", name));
    }
    return true;
  }

  bool Take(std::string text, bool is_of_kind) {
    if (is_skipped_) {
      is_skipped_ = skipped_depth_ > 0;
      return true;
    }
    if (column_ < 0) {
      return RefuseRow("an array or a single value; expected an object");
    }
    texts_[static_cast<std::size_t>(column_)] = std::move(text);
    if (is_of_kind) {
      return true;
    }
    return Refuse(IsFlag()     ? "true, false, 1 or 0"
                  : IsNumber() ? "a number without quotes"
                               : "text in quotes");
  }

  bool HasRequired() {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].required && !seen_.at(i)) {
        return RefuseRow(fmt::format("no field '{}'; expected {}", columns_[i].name,
                                     RequiredColumns(kNativeFormat)));
      }
    }
    return true;
  }

  bool Refuse(std::string expected) {
    complaint_ = std::move(expected);
    return false;
  }
  bool RefuseRow(std::string what) {
    column_ = -1;
    return Refuse(std::move(what));
  }

  const ColumnMap& map_;
  std::span<const ColumnRule> columns_;
  std::vector<std::string> texts_;  // of each column
  std::array<bool, kColumnMeanings> seen_{};
  bool is_open_ = false;
  int column_ = -1;  // of the value that comes next; -1: none
  // Of fields that --map leaves without a meaning.
  bool is_skipped_ = false;  // the value that comes next
  int skipped_depth_ = 0;    // how many lists and objects of it are open
  std::string complaint_;
};

void AppendJson(const JobSpec& job, std::span<const DeviceNode> nodes, std::string& text) {
  const CsvFormat& format = kNativeFormat;
  std::string value;
  text += '{';
  for (const ColumnRule& column : format.columns) {
    value.clear();
    AppendValue(format, column, job, nodes, value);
    const ColumnKind kind = KindOf(column.field);
    if (value.empty() || (kind == ColumnKind::kFlag && value == "0")) {
      continue;
    }
    text += text.ends_with('{') ? "" : ",";
    fmt::format_to(std::back_inserter(text), "\"{}\":{}", column.name,
                   kind == ColumnKind::kFlag                              ? "true"
                   : kind == ColumnKind::kText || kind == ColumnKind::kId ? Quoted(value)
                                                                          : value);
  }
  text += "}\n";
}

// Whether the first byte that is no blank begins an object.
bool LooksLikeJsonl(std::string_view text) { return io::Beginning(text).starts_with('{'); }

// A file of objects, given out as rows whose columns are those of the native format in order, so
// that they are checked like those of a CSV table. Blank lines are skipped.
// Errors: a line that is no JSON object; a field that is unknown, missing, there twice or of the
// wrong kind.
class JsonlStream {
 public:
  // Takes a stream that is at its first block.
  JsonlStream(io::TextStream text, const ColumnMap& map) : text_(std::move(text)), map_(map) {}

  // The submit of the first job that can be read; empty: there is none in the first block.
  [[nodiscard]] std::string FirstSubmit() const;

  // As those of CsvStream.
  [[nodiscard]] const std::string& path() const { return text_.path(); }
  [[nodiscard]] std::size_t LikelyRows() const;
  [[nodiscard]] Status ForEach(const io::RowReader& on_row,
                               const io::BadRowReader& on_bad_row = {});
  [[nodiscard]] std::string sha256() const { return text_.sha256(); }

 private:
  io::TextStream text_;
  const ColumnMap& map_;
};

std::string JsonlStream::FirstSubmit() const {
  ObjectReader object(map_);
  for (Lines lines(text_.block(), '\0'); lines.Next();) {
    if (object.Read(lines.text())) {
      return std::string(object.Fields()[static_cast<std::size_t>(Native("submit_time"))]);
    }
  }
  return {};
}

std::size_t JsonlStream::LikelyRows() const {
  return std::max(text_.LikelySize(), text_.block().size()) / kLeastLine + 1;
}

Status JsonlStream::ForEach(const io::RowReader& on_row, const io::BadRowReader& on_bad_row) {
  const std::vector<std::string> names = ColumnNames();
  ObjectReader object(map_);
  std::int64_t number = 0;
  const auto read = [&](std::string_view line) -> Status {
    ++number;
    if (line.find_first_not_of(kBlanks) == std::string_view::npos) {
      return {};
    }
    const bool is_object = object.Read(line);
    const std::vector<std::string_view> fields = object.Fields();
    const io::CsvRow row(path(), number, names, fields, "field");
    Status status = is_object ? on_row(row) : object.Complaint(row);
    return status.ok() || !on_bad_row ? status : on_bad_row(number, status.error());
  };
  while (!text_.block().empty()) {
    std::string_view rest = number == 0 ? WithoutMark(text_.block()) : text_.block();
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      RETURN_IF_ERROR(read(line));
    }
    RETURN_IF_ERROR(text_.Next());
  }
  return {};
}

Result<Trace> ReadJsonl(io::TextStream text, const TraceOptions& options) {
  ASSIGN_OR_RETURN(const ColumnMap map, ColumnMap::Parse(options.columns));
  const std::vector<std::string> names = ColumnNames();
  const std::vector<std::string_view> known(names.begin(), names.end());
  RETURN_IF_ERROR(map.CheckMeanings(kNativeFormat.shown.name, known));
  JsonlStream stream(std::move(text), map);
  JobColumns columns = JobColumns::InOrder(kNativeFormat);
  columns.UseStampsLike(stream.FirstSubmit());
  return ReadByColumns(stream, columns, kJsonlFormat.shown.name, options);
}

}  // namespace

constexpr OwnFormat kJsonlFormat{
    .shown = {.name = "jsonl", .help = "the native form as JSON Lines"},
    .looks_like = LooksLikeJsonl,
    .read = ReadJsonl,
    .takes_column_names = true};

std::string WriteJsonl(const TraceView& trace) {
  constexpr std::size_t kUsualLine = 192;
  std::string text;
  text.reserve((trace.jobs.size() + 2) * kUsualLine);
  for (const JobSpec& job : trace.jobs) {
    AppendJson(job, trace.nodes, text);
  }
  return text;
}

}  // namespace trainyard::trace
