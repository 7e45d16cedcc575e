// SPDX-License-Identifier: Apache-2.0
// The Standard Workload Format, version 2.2: docs/formats/swf.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/decimal.h"
#include "base/text.h"
#include "base/try.h"
#include "trace/csv_format.h"
#include "trace/line_stream.h"
#include "trace/own_format.h"
#include "trace/timestamp.h"
#include "trace/trace_builder.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

constexpr LineRules kSwfRules{.comment = ';'};

// In the order of the fields.
enum SwfField : std::uint8_t {
  kNumber,
  kSubmit,
  kWait,
  kRun,
  kAllocated,
  kCpu,
  kMemory,
  kRequested,
  kTime,
  kRequestedMemory,
  kEnd,  // how it ended
  kUser,
  kGroup,
  kExecutable,
  kQueue,
  kPartition,
  kPreceding,
  kThink,
};
constexpr std::array<std::string_view, 18> kSwfNames{"job",
                                                     "submit",
                                                     "wait",
                                                     "run",
                                                     "allocated processors",
                                                     "CPU time",
                                                     "memory",
                                                     "requested processors",
                                                     "requested time",
                                                     "requested memory",
                                                     "status",
                                                     "user",
                                                     "group",
                                                     "executable",
                                                     "queue",
                                                     "partition",
                                                     "preceding",
                                                     "think time"};

constexpr double kUnknown = -1;

// A log may begin with comments; else its first line must be one of numbers.
bool LooksLikeSwf(std::string_view head) {
  constexpr std::size_t kFewestFields = 10;  // those with too few or many are told how many
  Lines all(head, '\0');
  const std::string_view top = all.Next() ? base::Trim(all.text()) : std::string_view();
  Lines lines(head, kSwfRules.comment);
  const std::string_view row = lines.Next() ? lines.text() : std::string_view();
  if (top.starts_with(kSwfRules.comment)) {
    // A header without a first name, separated by semicolons, and a CSV table behind comments.
    const bool is_header = top.find(';', 1) != std::string_view::npos && top.find(' ') != 1;
    const bool is_table =
        row.find(',') != std::string_view::npos && !base::ToNumber(row.substr(0, row.find(',')));
    return !is_header && !is_table;
  }
  const std::vector<std::string_view> first = FieldsOf(row, kSwfRules);
  return first.size() >= kFewestFields &&
         std::all_of(first.begin(), first.end(),
                     [](std::string_view field) { return base::ToNumber(field).has_value(); });
}

class SwfRows {
 public:
  explicit SwfRows(int procs_per_gpu) : procs_per_gpu_(procs_per_gpu) {}

  [[nodiscard]] Result<JobRow> Read(const io::CsvRow& row) const {
    std::array<double, kSwfNames.size()> numbers{};
    for (std::size_t field = 0; field < kSwfNames.size(); ++field) {
      const std::optional<double> number = base::ToNumber(row.Text(static_cast<int>(field)));
      if (!number) {
        return row.Bad(static_cast<int>(field), "a number, -1 where it is unknown");
      }
      numbers[field] = *number;
    }
    JobRow read;
    if (!IsWhole(row.Text(kNumber))) {
      return row.Bad(kNumber, "the number of the job");
    }
    read.job.name = row.Text(kNumber);
    read.left_out = WhyLeftOut(numbers);
    if (!read.left_out.empty()) {
      return read;
    }
    RETURN_IF_ERROR(ReadWork(row, numbers, read.job));
    if (numbers[kWait] >= 0 && numbers[kWait] <= model::kMostTraceSeconds) {
      read.wait = FromSeconds(numbers[kWait]);
    }
    // A job that was ended at its limit ran for just so long; any cost of a start would end it
    // early.
    JobTraits traits;
    if (numbers[kTime] > numbers[kRun] && numbers[kTime] <= model::kMostTraceSeconds) {
      traits.time_limit = FromSeconds(numbers[kTime]);
    }
    if (const std::int64_t mib = MemoryOf(numbers); mib > 0) {
      traits.request = NodeRequest{.memory = {.mib = mib}};
    }
    if (traits.time_limit || traits.request) {
      read.job.traits = std::make_shared<const JobTraits>(std::move(traits));
    }
    read.job.user = NameIn(row, kUser);
    read.job.queue = NameIn(row, kQueue);
    return read;
  }

 private:
  using Numbers = std::array<double, kSwfNames.size()>;

  static bool IsWhole(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  }

  // Numbers of users can be longer than any of ours; they are names here.
  static std::string NameIn(const io::CsvRow& row, SwfField field) {
    const std::string_view text = row.Text(field);
    return text.starts_with('-') ? std::string() : std::string(text);
  }

  static std::string WhyLeftOut(const Numbers& numbers) {
    const double end = numbers[kEnd];
    if (end == 2 || end == 3 || end == 4) {
      return "its status is 2, 3 or 4; parts of jobs that have a line for the whole are left out";
    }
    if (numbers[kRun] == kUnknown || numbers[kRun] == 0) {
      return "its run time is 0 or unknown; jobs that never ran are left out";
    }
    if (ProcessorsOf(numbers) == kUnknown || ProcessorsOf(numbers) == 0) {
      return "its processors are 0 or unknown; such jobs are left out";
    }
    return {};
  }

  static double ProcessorsOf(const Numbers& numbers) {
    return numbers[kRequested] > 0 ? numbers[kRequested] : numbers[kAllocated];
  }

  // MiB of the whole job: fields have KiB of each processor.
  static std::int64_t MemoryOf(const Numbers& numbers) {
    constexpr double kKibPerMib = 1024;
    constexpr double kMostMib = 1e12;
    const double mib = std::ceil(numbers[kRequestedMemory] * ProcessorsOf(numbers) / kKibPerMib);
    return mib > 0 && mib <= kMostMib ? static_cast<std::int64_t>(mib) : 0;
  }

  [[nodiscard]] Status ReadWork(const io::CsvRow& row, const Numbers& numbers, JobSpec& job) const {
    const auto is_time = [](double number) {
      return number >= 0 && number <= model::kMostTraceSeconds;
    };
    if (!is_time(numbers[kSubmit])) {
      return row.Bad(kSubmit, fmt::format("seconds from 0 to {:.0f}", model::kMostTraceSeconds));
    }
    if (!is_time(numbers[kRun]) || FromSeconds(numbers[kRun]) <= Duration{0}) {
      return row.Bad(kRun,
                     fmt::format("seconds > 0 and <= {:.0f}, or -1", model::kMostTraceSeconds));
    }
    const double processors = ProcessorsOf(numbers);
    const double gpus = std::ceil(processors / procs_per_gpu_);
    if (processors != std::floor(processors) || gpus < 1 ||
        gpus > static_cast<double>(model::kMostGpus)) {
      return row.Bad(
          numbers[kRequested] > 0 ? kRequested : kAllocated,
          fmt::format("a whole number of processors, for at most {} GPUs", model::kMostGpus));
    }
    job.submit = AtSeconds(numbers[kSubmit]);
    job.duration = FromSeconds(numbers[kRun]);
    job.gpus = static_cast<int>(gpus);
    return {};
  }

  int procs_per_gpu_;
};

// "; UnixStartTime: 1009836000" among the comments in front; nothing where there is none.
std::optional<double> HeaderNumber(std::string_view head, std::string_view key) {
  Lines lines(head, '\0');
  while (lines.Next() && base::Trim(lines.text()).starts_with(kSwfRules.comment)) {
    const std::string_view text = base::Trim(base::Trim(lines.text()).substr(1));
    if (text.starts_with(key) && text.substr(key.size()).starts_with(':')) {
      const std::string_view value = base::Trim(text.substr(key.size() + 1));
      return base::ToNumber(value.substr(0, value.find_first_of(" \t")));
    }
  }
  return std::nullopt;
}

// What time 0 is: by the clock of the log where it states its zone, else of UTC.
std::string OriginIn(std::string_view head) {
  constexpr double kMostZone = 86'400;
  const std::optional<double> start = HeaderNumber(head, "UnixStartTime");
  if (!start || *start <= 0 || *start > model::kMostTraceSeconds) {
    return {};
  }
  const std::optional<double> zone = HeaderNumber(head, "TimeZone");
  const bool has_zone = zone && std::abs(*zone) <= kMostZone;
  return TimestampText({.at = AtSeconds(*start + (has_zone ? *zone : 0)), .has_zone = !has_zone});
}

Result<Trace> ReadSwf(io::TextStream text, const TraceOptions& options) {
  std::string origin = OriginIn(text.block());
  LineStream table(std::move(text), {kSwfNames.begin(), kSwfNames.end()}, kSwfRules);
  const SwfRows rows(std::max(1, options.procs_per_gpu));
  Result<Trace> trace = ReadRows(table, rows, kSwfFormat.shown.name, options);
  if (trace.ok()) {
    trace.value().origin = std::move(origin);
    for (const SwfField field :
         {kCpu, kMemory, kGroup, kExecutable, kPartition, kPreceding, kThink}) {
      trace.value().unread.emplace_back(kSwfNames.at(field));
    }
  }
  return trace;
}

// Names as the numbers that a log has: their own if all are numbers, else by first appearance.
class Numbering {
 public:
  Numbering(std::span<const JobSpec> jobs, std::string JobSpec::*name) : name_(name) {
    constexpr std::size_t kMostDigits = 18;
    own_ = std::all_of(jobs.begin(), jobs.end(), [&](const JobSpec& job) {
      const std::string& text = job.*name;
      return text.size() <= kMostDigits &&
             text.find_first_not_of("0123456789") == std::string::npos;
    });
  }

  void Append(const JobSpec& job, std::string& text) {
    const std::string& name = job.*name_;
    if (name.empty()) {
      text += "-1";
    } else if (own_) {
      text += name;
    } else {
      const auto next = static_cast<std::int64_t>(numbers_.size()) + 1;
      base::AppendInteger(numbers_.try_emplace(name, next).first->second, text);
    }
  }

 private:
  std::string JobSpec::*name_;
  bool own_ = false;
  std::map<std::string, std::int64_t> numbers_;
};

// -1: it states no memory, or not of the whole job.
std::int64_t KibPerProcessor(const JobSpec& job) {
  constexpr std::int64_t kKibPerMib = 1024;
  const bool states = job.traits && job.traits->request && job.traits->request->memory.mib > 0 &&
                      job.traits->request->memory.per == Per::kJob;
  // Rounded down: readers round up.
  return states ? job.traits->request->memory.mib * kKibPerMib / job.gpus : -1;
}

}  // namespace

constexpr OwnFormat kSwfFormat{
    .shown = {.name = "swf",
              .help = "Standard Workload Format 2.2 (processors are GPUs: --procs-per-gpu)",
              .has_processors = true},
    .looks_like = LooksLikeSwf,
    .read = ReadSwf};

std::string WriteSwf(const TraceView& trace) {
  int most_gpus = 0;
  for (const JobSpec& job : trace.jobs) {
    most_gpus = std::max(most_gpus, job.gpus);
  }
  std::string text =
      fmt::format("; Version: 2.2\n; Note: processors are GPUs\n; MaxJobs: {}\n; MaxProcs: {}\n",
                  trace.jobs.size(), most_gpus);
  Numbering ids(trace.jobs, &JobSpec::name);
  Numbering users(trace.jobs, &JobSpec::user);
  Numbering queues(trace.jobs, &JobSpec::queue);
  for (const JobSpec& job : trace.jobs) {
    CHECK(job.duration.has_value());
    ids.Append(job, text);
    text += ' ';
    base::AppendSeconds(job.submit.time_since_epoch(), text);
    text += " -1 ";
    base::AppendSeconds(*job.duration, text);
    fmt::format_to(std::back_inserter(text), " {0} -1 -1 {0} ", job.gpus);
    if (job.traits && job.traits->time_limit.value_or(Duration{0}) > *job.duration) {
      base::AppendSeconds(*job.traits->time_limit, text);
    } else {
      text += "-1";
    }
    text += ' ';
    base::AppendInteger(KibPerProcessor(job), text);
    text += " 1 ";
    users.Append(job, text);
    text += " -1 -1 ";
    queues.Append(job, text);
    text += " -1 -1 -1\n";
  }
  return text;
}

}  // namespace trainyard::trace
