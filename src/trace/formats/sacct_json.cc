// SPDX-License-Identifier: Apache-2.0
#include "trace/formats/sacct_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/try.h"
#include "io/json.h"
#include "io/text_check.h"
#include "model/job_fields.h"
#include "trace/json_cursor.h"
#include "trace/timestamp.h"

namespace trainyard::trace {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 16> kSacctJsonNames{
    "JobID",    "User",         "Account",    "JobName",    "Partition", "Submit",
    "Start",    "End",          "ElapsedRaw", "State",      "AllocTRES", "ReqTRES",
    "NodeList", "TimelimitRaw", "ReqCPUS",    "Constraints"};

// The member of an object; null: it is none, or has none of that name.
const Json* At(const Json* object, const char* name) {
  if (object == nullptr || !object->is_object()) {
    return nullptr;
  }
  const auto found = object->find(name);
  return found == object->end() ? nullptr : &*found;
}
const Json* At(const Json* object, const char* name, const char* member) {
  return At(At(object, name), member);
}

// A text; of a list (states of newer versions) its first.
std::string SacctText(const Json* value) {
  if (value != nullptr && value->is_array() && !value->empty()) {
    value = &value->front();
  }
  std::string text = value != nullptr && value->is_string() ? value->get<std::string>() : "";
  text.resize(std::min(text.find('\0'), text.size()));  // no table can hold more
  return text;
}

// A number, or as newer versions have it: {"set": true, "infinite": false, "number": 5}.
std::optional<std::int64_t> SacctNumber(const Json* value) {
  if (value != nullptr && value->is_object()) {
    const Json* const set = At(value, "set");
    const Json* const infinite = At(value, "infinite");
    const auto is_true = [](const Json* flag) {
      return flag != nullptr && flag->is_boolean() && flag->get<bool>();
    };
    if ((set != nullptr && !is_true(set)) || is_true(infinite)) {
      return std::nullopt;
    }
    value = At(value, "number");
  }
  if (value == nullptr || !value->is_number()) {
    return std::nullopt;
  }
  const double number = value->get<double>();
  return number >= 0 && number <= model::kMostTraceSeconds
             ? std::optional(static_cast<std::int64_t>(number))
             : std::nullopt;
}

std::string SacctDigits(const Json* value) {
  const std::optional<std::int64_t> number = SacctNumber(value);
  return number ? std::to_string(*number) : std::string();
}

// Seconds since 1970 as the stamp that a table would have; 0 stands for none.
std::string SacctStamp(const Json* value) {
  const std::optional<std::int64_t> seconds = SacctNumber(value);
  return seconds.value_or(0) == 0
             ? std::string()
             : TimestampText({.at = TimePoint{std::chrono::seconds{*seconds}}, .has_zone = true});
}

// "cpu=4,gres/gpu:a100=2" of a list of {"type": "gres", "name": "gpu:a100", "count": 2}.
std::string SacctTres(const Json* list) {
  std::string text;
  if (list == nullptr || !list->is_array()) {
    return text;
  }
  for (const Json& entry : *list) {
    const std::string type = SacctText(At(&entry, "type"));
    const std::string name = SacctText(At(&entry, "name"));
    const std::string count = SacctDigits(At(&entry, "count"));
    if (!type.empty() && !count.empty()) {
      text += fmt::format("{}{}{}{}={}", text.empty() ? "" : ",", type, name.empty() ? "" : "/",
                          name, count);
    }
  }
  return text;
}

// "12", "13_4" of an array, "12+1" of a heterogeneous job.
std::string SacctId(const Json& job) {
  const auto number_at = [&job](const char* part, const char* name) {
    return SacctNumber(At(&job, part, name));
  };
  const std::optional<std::int64_t> array = number_at("array", "job_id");
  const std::optional<std::int64_t> task = number_at("array", "task_id");
  if (array.value_or(0) > 0 && task) {
    return fmt::format("{}_{}", *array, *task);
  }
  const std::optional<std::int64_t> het = number_at("het", "job_id");
  const std::optional<std::int64_t> offset = number_at("het", "job_offset");
  if (het.value_or(0) > 0 && offset) {
    return fmt::format("{}+{}", *het, *offset);
  }
  return SacctDigits(At(&job, "job_id"));
}

// In the order of kSacctJsonNames.
std::vector<std::string> SacctFields(const Json& job) {
  std::string user = SacctText(At(&job, "user"));
  if (user.empty()) {
    user = SacctText(At(&job, "association", "user"));
  }
  return {SacctId(job),
          std::move(user),
          SacctText(At(&job, "account")),
          SacctText(At(&job, "name")),
          SacctText(At(&job, "partition")),
          SacctStamp(At(&job, "time", "submission")),
          SacctStamp(At(&job, "time", "start")),
          SacctStamp(At(&job, "time", "end")),
          SacctDigits(At(&job, "time", "elapsed")),
          SacctText(At(&job, "state", "current")),
          SacctTres(At(&job, "tres", "allocated")),
          SacctTres(At(&job, "tres", "requested")),
          SacctText(At(&job, "nodes")),
          SacctDigits(At(&job, "time", "limit")),
          SacctDigits(At(&job, "required", "CPUs")),
          SacctText(At(&job, "constraints"))};
}

}  // namespace

bool LooksLikeSacctJson(std::string_view head) {
  if (!io::Beginning(head).starts_with('{')) {
    return false;
  }
  constexpr std::array<std::string_view, 4> kMembers{"\"jobs\"", "\"job_id\"", "\"submission\"",
                                                     "\"association\""};
  return std::all_of(kMembers.begin(), kMembers.end(), [head](std::string_view member) {
    return head.find(member) != std::string_view::npos;
  });
}

std::vector<std::string> SacctJson::Names() {
  return {kSacctJsonNames.begin(), kSacctJsonNames.end()};
}

Result<SacctJson> SacctJson::Of(io::TextStream text) {
  constexpr int kJobDepth = 2;
  JsonCursor cursor(std::move(text));
  SacctJson read;
  read.path_ = cursor.path();
  std::string section;  // the member of the top object
  std::int64_t line = 0;
  const auto keep = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key) {
      if (depth == 1) {
        section = parsed.get<std::string>();
      }
      return depth == 1 ? section == "jobs" : depth != kJobDepth + 1 || parsed != "steps";
    }
    if (section != "jobs" || depth != kJobDepth) {
      return true;
    }
    if (event == Json::parse_event_t::object_start) {
      line = cursor.line();
    } else if (event == Json::parse_event_t::object_end) {
      read.rows_.push_back({.line = line, .fields = SacctFields(parsed)});
      return false;  // so that it is in memory once
    }
    return true;
  };
  const Json rest = Json::parse(CursorIterator(&cursor), CursorIterator(nullptr), keep,
                                /*allow_exceptions=*/false);
  RETURN_IF_ERROR(cursor.status());
  if (rest.is_discarded()) {
    return BadInput(
        fmt::format("{}:{}: no JSON from here on; expected the whole of what sacct "
                    "--json prints",
                    read.path_, cursor.line()));
  }
  read.sha256_ = cursor.sha256();
  return read;
}

Status SacctJson::ForEach(const io::RowReader& on_row, const io::BadRowReader& on_bad_row) const {
  const std::vector<std::string> names = Names();
  for (const Row& row : rows_) {
    const std::vector<std::string_view> fields(row.fields.begin(), row.fields.end());
    RETURN_IF_ERROR(
        io::GiveOut(io::CsvRow(path_, row.line, names, fields, "field"), on_row, on_bad_row));
  }
  return {};
}

}  // namespace trainyard::trace
