// SPDX-License-Identifier: Apache-2.0
#include "trace/jsonl.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "base/decimal.h"
#include "base/text.h"
#include "trace/csv_format.h"

namespace trainyard {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
// The shortest job: {"job_id":"a","submit_time":0,"gpus":1,"duration":1}
constexpr std::size_t kLeastLine = 50;

std::string_view WithoutMark(std::string_view text) {
  text.remove_prefix(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  return text;
}

std::vector<std::string> ColumnNames() {
  std::vector<std::string> names;
  for (const ColumnRule& rule : NativeFormat().columns) {
    names.emplace_back(rule.name);
  }
  return names;
}

bool IsText(JobField field) {
  return field == JobField::kJobId || field == JobField::kUser || field == JobField::kQueue ||
         field == JobField::kModel;
}

std::string Quoted(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Takes one object apart into the texts of its fields.
class ObjectReader final : public Json::json_sax_t {
 public:
  ObjectReader() : columns_(NativeFormat().columns), texts_(columns_.size()) {}

  // False: see Complaint. Valid until the next call.
  [[nodiscard]] bool Read(std::string_view line) {
    std::fill(texts_.begin(), texts_.end(), std::string());
    seen_.fill(false);
    is_open_ = false;
    column_ = -1;
    complaint_.clear();
    return Json::sax_parse(line.begin(), line.end(), this) && HasRequired();
  }
  [[nodiscard]] std::vector<std::string_view> Fields() const {
    return {texts_.begin(), texts_.end()};
  }
  [[nodiscard]] Error Complaint(const CsvRow& row) const {
    return column_ >= 0 ? row.Bad(column_, complaint_) : row.BadRow(complaint_);
  }

  bool null() override { return Take("", true); }  // as if the field were not there
  bool boolean(bool value) override {
    return Take(IsColumn(JobField::kBestEffort) ? (value ? "1" : "0") : (value ? "true" : "false"),
                IsColumn(JobField::kBestEffort));
  }
  bool number_integer(Json::number_integer_t value) override {
    return Take(std::to_string(value), IsNumber());
  }
  bool number_unsigned(Json::number_unsigned_t value) override {
    return Take(std::to_string(value), IsNumber());
  }
  bool number_float(Json::number_float_t /*value*/, const std::string& text) override {
    return Take(text, IsNumber());
  }
  bool string(std::string& text) override {
    if (column_ >= 0 && text.find('\0') != std::string::npos) {
      return Refuse("text without a NUL character");
    }
    return Take(std::move(text), column_ >= 0 && !IsNumber());
  }
  bool binary(Json::binary_t& /*value*/) override { return false; }  // JSON text has none
  bool start_object(std::size_t /*elements*/) override {
    return std::exchange(is_open_, true) ? Take("{...}", false) : true;
  }
  bool key(std::string& name) override { return Find(name); }
  bool end_object() override {
    is_open_ = false;
    column_ = -1;
    return true;
  }
  bool start_array(std::size_t /*elements*/) override { return Take("[...]", false); }
  bool end_array() override { return true; }
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
  [[nodiscard]] bool IsColumn(JobField field) const {
    return column_ >= 0 && columns_[static_cast<std::size_t>(column_)].field == field;
  }
  [[nodiscard]] bool IsNumber() const {
    return column_ >= 0 && !IsText(columns_[static_cast<std::size_t>(column_)].field);
  }

  bool Find(std::string_view name) {
    const auto found = std::find_if(columns_.begin(), columns_.end(),
                                    [name](const ColumnRule& rule) { return rule.name == name; });
    if (found == columns_.end()) {
      constexpr std::size_t kMostBytes = 60;
      const std::string shown = Quoted(name.substr(0, kMostBytes));
      std::vector<std::string_view> known;
      for (const ColumnRule& rule : columns_) {
        known.push_back(rule.name);
      }
      return RefuseRow(
          UnknownName("field", std::string_view(shown).substr(1, shown.size() - 2), known));
    }
    column_ = static_cast<int>(found - columns_.begin());
    if (std::exchange(seen_.at(static_cast<std::size_t>(column_)), true)) {
      return RefuseRow(fmt::format("field '{}' is there twice; expected different names", name));
    }
    return true;
  }

  bool Take(std::string text, bool is_of_kind) {
    if (column_ < 0) {
      return RefuseRow("an array or a single value; expected an object");
    }
    texts_[static_cast<std::size_t>(column_)] = std::move(text);
    if (is_of_kind) {
      return true;
    }
    return Refuse(IsColumn(JobField::kBestEffort) ? "true, false, 1 or 0"
                  : IsNumber()                    ? "a number without quotes"
                                                  : "text in quotes");
  }

  bool HasRequired() {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].required && !seen_.at(i)) {
        return RefuseRow(fmt::format("no field '{}'; expected {}", columns_[i].name,
                                     RequiredColumns(NativeFormat())));
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

  std::span<const ColumnRule> columns_;
  std::vector<std::string> texts_;  // of each column
  std::array<bool, kJobFields> seen_{};
  bool is_open_ = false;
  int column_ = -1;  // of the value that comes next; -1: none
  std::string complaint_;
};

void AppendJson(const JobSpec& job, std::string& text) {
  const auto to = std::back_inserter(text);
  fmt::format_to(to, "{{\"job_id\":{},\"submit_time\":", Quoted(job.name));
  AppendSeconds(job.submit.time_since_epoch(), text);
  fmt::format_to(to, ",\"gpus\":{}", job.gpus);
  if (job.duration.has_value()) {
    text += ",\"duration\":";
    AppendSeconds(*job.duration, text);
  }
  if (job.iterations.has_value()) {
    fmt::format_to(to, ",\"iterations\":{}", *job.iterations);
  }
  for (const auto& [name, value] : {std::pair{"user", &job.user}, std::pair{"queue", &job.queue},
                                    std::pair{"model", &job.model}}) {
    if (!value->empty()) {
      fmt::format_to(to, ",\"{}\":{}", name, Quoted(*value));
    }
  }
  if (job.batch_size > 0) {
    fmt::format_to(to, ",\"batch_size\":{}", job.batch_size);
  }
  if (job.deadline.has_value()) {
    text += ",\"deadline\":";
    AppendSeconds(job.deadline->time_since_epoch(), text);
  }
  text += job.best_effort ? ",\"best_effort\":true}\n" : "}\n";
}

}  // namespace

bool LooksLikeJsonl(std::string_view text) {
  text = WithoutMark(text);
  const std::size_t first = text.find_first_not_of(kBlanks);
  return first != std::string_view::npos && text[first] == '{';
}

std::size_t JsonlTable::MostRows() const {
  const auto lines =
      static_cast<std::size_t>(std::count(file_.text.begin(), file_.text.end(), '\n'));
  return std::min(lines + 1, file_.text.size() / kLeastLine + 1);
}

Status JsonlTable::ForEach(const CsvTable::RowReader& on_row,
                           const CsvTable::BadRowReader& on_bad_row) const {
  const std::vector<std::string> names = ColumnNames();
  ObjectReader object;
  std::int64_t number = 0;
  for (std::string_view rest = WithoutMark(file_.text); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++number;
    if (line.find_first_not_of(kBlanks) == std::string_view::npos) {
      continue;
    }
    const bool is_object = object.Read(line);
    const std::vector<std::string_view> fields = object.Fields();
    const CsvRow row(file_.path, number, names, fields, "field");
    Status status = is_object ? on_row(row) : object.Complaint(row);
    if (!status.ok() && on_bad_row) {
      status = on_bad_row(number, status.error());
    }
    if (!status.ok()) {
      return status;
    }
  }
  return {};
}

std::string WriteJsonlTrace(std::span<const JobSpec> jobs) {
  constexpr std::size_t kUsualLine = 192;
  std::string text;
  text.reserve((jobs.size() + 2) * kUsualLine);
  for (const JobSpec& job : jobs) {
    AppendJson(job, text);
  }
  return text;
}

}  // namespace trainyard
