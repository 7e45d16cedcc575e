// SPDX-License-Identifier: Apache-2.0
// The job log of Microsoft's Philly clusters (cluster_job_log): docs/formats/philly.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/try.h"
#include "io/bad_rows.h"
#include "io/json.h"
#include "io/text_check.h"
#include "trace/json_cursor.h"
#include "trace/log_format.h"
#include "trace/own_format.h"
#include "trace/timestamp.h"
#include "trace/trace_builder.h"

namespace trainyard::trace {
namespace {

using Json = nlohmann::json;

// The texts of one job; what messages call them is in kNames.
enum JobText : std::size_t {
  kPhillyId,
  kPhillyUser,
  kPhillyVc,
  kPhillyStatus,
  kPhillySubmit,
  kPhillyFirstStart,
  kPhillyLastEnd,
  kJobTexts
};
constexpr std::array<std::string_view, kJobTexts> kNames{
    "jobid", "user", "vc", "status", "submitted_time", "start_time", "end_time"};

// What the log says of one job.
struct PhillyJob {
  std::int64_t line = 0;
  std::array<std::string, kJobTexts> texts;
  std::string bad;        // what is of the wrong kind; empty: nothing
  int attempts = 0;       // so far
  std::int64_t gpus = 0;  // of the first attempt
};

// Where in the log a value stands.
enum class JsonPlace : std::uint8_t {
  kTop,
  kJobs,
  kJob,
  kAttempts,
  kAttempt,
  kDetail,
  kMachine,
  kGpus,
  kOther
};

class PhillyReader final : public Json::json_sax_t {
 public:
  PhillyReader(io::TextStream text, const TraceOptions& options)
      : cursor_(std::move(text)),
        options_(options),
        names_(kNames.begin(), kNames.end()),
        builder_({.path = cursor_.path(), .format = std::string(kPhillyFormat.shown.name)}, 0,
                 nullptr) {}

  [[nodiscard]] Result<Trace> Read() {
    const bool parsed = Json::sax_parse(CursorIterator(&cursor_), CursorIterator(nullptr), this);
    if (!cursor_.status().ok()) {
      return cursor_.status().error();
    }
    CHECK(parsed != failure_.has_value());
    if (!bad_.empty()) {
      return bad_.Take(failure_ ? Status(*failure_) : Status());
    }
    if (failure_) {
      return *failure_;
    }
    builder_.SetOrigin(stamps_.Text(builder_.StartAtFirstSubmit()));
    return builder_.Take(cursor_.sha256());
  }

  bool null() override { return Value(""); }
  bool boolean(bool value) override { return Value(value ? "true" : "false"); }
  bool number_integer(Json::number_integer_t value) override {
    return Value(std::to_string(value));
  }
  bool number_unsigned(Json::number_unsigned_t value) override {
    return Value(std::to_string(value));
  }
  bool number_float(Json::number_float_t /*value*/, const std::string& text) override {
    return Value(text);
  }
  bool string(std::string& text) override { return Value(std::move(text)); }
  bool binary(Json::binary_t& /*value*/) override { return false; }  // JSON text has none

  bool key(std::string& name) override {
    key_ = std::move(name);
    return true;
  }

  bool start_object(std::size_t /*elements*/) override {
    switch (place()) {
      case JsonPlace::kTop:
        return Fail("an object; expected a list of jobs");
      case JsonPlace::kJobs:
        job_ = PhillyJob{.line = cursor_.line()};
        return Enter(JsonPlace::kJob);
      case JsonPlace::kAttempts:
        ++job_.attempts;
        job_.texts[kPhillyLastEnd].clear();
        return Enter(JsonPlace::kAttempt);
      case JsonPlace::kDetail:
        return Enter(JsonPlace::kMachine);
      default:
        return EnterOther();
    }
  }
  bool end_object() override {
    places_.pop_back();
    return place() == JsonPlace::kJobs ? Finish() : true;
  }

  bool start_array(std::size_t /*elements*/) override {
    switch (place()) {
      case JsonPlace::kTop:
        return Enter(JsonPlace::kJobs);
      case JsonPlace::kJobs:
        return Fail("a list within the list; expected jobs as objects");
      case JsonPlace::kJob:
        return key_ == "attempts" ? Enter(JsonPlace::kAttempts) : EnterOther();
      case JsonPlace::kAttempt:
        return key_ == "detail" ? Enter(JsonPlace::kDetail) : EnterOther();
      case JsonPlace::kMachine:
        return key_ == "gpus" ? Enter(JsonPlace::kGpus) : EnterOther();
      default:
        return EnterOther();
    }
  }
  bool end_array() override {
    places_.pop_back();
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return Fail("no JSON from here on; expected a list of jobs");
  }

 private:
  [[nodiscard]] JsonPlace place() const {
    return places_.empty() ? JsonPlace::kTop : places_.back();
  }
  bool Enter(JsonPlace place) {
    places_.push_back(place);
    return true;
  }

  // A list or an object where the reader looks for none.
  bool EnterOther() {
    const bool is_text = FieldAt().has_value();
    const bool is_list = place() == JsonPlace::kAttempts || place() == JsonPlace::kDetail ||
                         (place() == JsonPlace::kJob && key_ == "attempts") ||
                         (place() == JsonPlace::kAttempt && key_ == "detail");
    if (is_text || is_list) {
      SetBad(is_text ? fmt::format("field '{}' is a list or an object; expected text", key_)
                     : "its attempts are not as expected: a list of objects, each with a list "
                       "'detail' of objects");
    }
    return Enter(JsonPlace::kOther);
  }

  void SetBad(std::string what) {
    if (job_.bad.empty()) {
      job_.bad = std::move(what);
    }
  }

  bool Fail(std::string_view what) {
    if (!failure_) {
      failure_ = BadInput(fmt::format("{}:{}: {}", cursor_.path(), cursor_.line(), what));
    }
    return false;
  }

  // The field whose value comes next, if the reader wants it.
  [[nodiscard]] std::optional<JobText> FieldAt() const {
    if (place() == JsonPlace::kAttempt) {
      return key_ == "end_time"                           ? std::optional(kPhillyLastEnd)
             : key_ == "start_time" && job_.attempts == 1 ? std::optional(kPhillyFirstStart)
                                                          : std::nullopt;
    }
    if (place() != JsonPlace::kJob) {
      return std::nullopt;
    }
    const auto* const end = kNames.begin() + kPhillyFirstStart;
    const auto* const found = std::find(kNames.begin(), end, key_);
    return found == end ? std::nullopt
                        : std::optional(static_cast<JobText>(found - kNames.begin()));
  }

  // Any single value.
  bool Value(std::string text) {
    switch (place()) {
      case JsonPlace::kTop:
        return Fail("a single value; expected a list of jobs");
      case JsonPlace::kJobs:
        job_ = PhillyJob{.line = cursor_.line(), .bad = "a single value; expected an object"};
        return Finish();
      case JsonPlace::kGpus:
        job_.gpus += job_.attempts == 1 ? 1 : 0;
        return true;
      default:
        break;
    }
    if (const std::optional<JobText> field = FieldAt()) {
      job_.texts[*field] = std::move(text);
    } else if (place() == JsonPlace::kJob && key_ == "attempts" && !IsMissing(text)) {
      SetBad(fmt::format("field 'attempts' is '{}'; expected a list", text.substr(0, 60)));
    }
    return true;
  }

  // The job has been read.
  bool Finish() {
    std::array<std::string_view, kJobTexts> fields;
    std::copy(job_.texts.begin(), job_.texts.end(), fields.begin());
    const io::CsvRow row(cursor_.path(), job_.line, names_, fields, "field");
    Result<JobRow> read = JobOf(row);
    Status status = read.ok() ? builder_.Add(row, std::move(read).value()) : read.error();
    if (!status.ok() && options_.skip_bad_rows) {
      builder_.SkipBad(job_.line, status.error());
      return true;
    }
    if (!status.ok()) {
      status = bad_.Add(job_.line, status.error());
    }
    if (!status.ok()) {
      failure_ = status.error();
    }
    return status.ok();
  }

  // GPUs and wait are those of the first attempt, the run is from its start to the last end, as in
  // the published notebook.
  Result<JobRow> JobOf(const io::CsvRow& row) {
    if (!job_.bad.empty()) {
      return row.BadRow(job_.bad);
    }
    JobRow read{.state = job_.texts[kPhillyStatus]};
    if (job_.attempts == 0) {
      read.left_out = "it has no attempts; such jobs are left out";
      return read;
    }
    RETURN_IF_ERROR(TakeGpus(row, kPhillyId, static_cast<double>(job_.gpus), read));
    if (!read.left_out.empty()) {
      return read;
    }
    RETURN_IF_ERROR(TakeName(row, kPhillyId, read.job));
    read.job.user = job_.texts[kPhillyUser];
    read.job.queue = job_.texts[kPhillyVc];
    ASSIGN_OR_RETURN(
        const Recorded times,
        ReadRecorded(
            row, {.submit = kPhillySubmit, .start = kPhillyFirstStart, .end = kPhillyLastEnd},
            [this](const io::CsvRow& from, int field) { return stamps_.Read(from, field); }));
    RETURN_IF_ERROR(TakeTimes(row, times, read));
    return read;
  }

  JsonCursor cursor_;
  const TraceOptions& options_;
  const std::vector<std::string> names_;
  TraceBuilder builder_;
  io::BadRows bad_{cursor_.path()};
  TimestampReader stamps_;
  std::vector<JsonPlace> places_;
  std::string key_;
  PhillyJob job_;
  std::optional<Error> failure_;
};

// A list of jobs with attempts.
bool LooksLikePhilly(std::string_view head) {
  return io::Beginning(head).starts_with('[') && head.find("\"jobid\"") != std::string_view::npos &&
         head.find("\"attempts\"") != std::string_view::npos;
}

Result<Trace> ReadPhilly(io::TextStream text, const TraceOptions& options) {
  return PhillyReader(std::move(text), options).Read();
}

}  // namespace

constexpr OwnFormat kPhillyFormat{
    .shown = {.name = "philly", .help = "Microsoft Philly, cluster_job_log (JSON)"},
    .looks_like = LooksLikePhilly,
    .read = ReadPhilly};

}  // namespace trainyard::trace
