// SPDX-License-Identifier: Apache-2.0
// trainyard usage, audit: who has held what, and who has done what.
#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_json.h"
#include "cli/numbers.h"
#include "io/csv_field.h"
#include "requests/slurm/slurm_time.h"

namespace trainyard::cli {
namespace {

// ------------------------------------------------------------------------------------------- usage

struct UsageOptions : ClusterOptions {
  std::vector<std::string> by = {"user"};
  std::string from;
  std::string to;
  bool csv = false;
};

// Which of these --from and --to may be.
constexpr std::size_t kDaySize = std::string_view("2026-11-28").size();
constexpr std::array<std::size_t, 1> kDay{kDaySize};
constexpr std::array<std::size_t, 4> kDayOrTime{kDaySize,
                                                std::string_view("2026-11-28T09:30").size(),
                                                std::string_view("2026-11-28T09:30:00").size(),
                                                std::string_view("2026-11-28T09:30:00Z").size()};

// Whether it begins as this time does, as far as it goes; times of the trail compare as texts do.
bool HasDigitsOfTime(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:ddZ";
  return text.size() <= kForm.size() &&
         std::equal(text.begin(), text.end(), kForm.begin(), [](unsigned char c, char form) {
           return form == 'd' ? std::isdigit(c) != 0 : c == static_cast<unsigned char>(form);
         });
}

// Seconds since 1970, UTC. `sizes`: of the texts that are taken.
Result<double> TimeOf(std::string_view option, const std::string& text,
                      std::span<const std::size_t> sizes) {
  requests::TimeReading at;
  if (std::find(sizes.begin(), sizes.end(), text.size()) != sizes.end() && HasDigitsOfTime(text)) {
    const std::string_view rest = text.size() == kDaySize ? "T00:00Z" : "Z";
    at = requests::ReadTime(text.ends_with('Z') ? text : text + std::string(rest), 0);
  }
  if (at.seconds) {
    return *at.seconds;
  }
  if (!at.why.empty()) {
    return InvalidArgument(fmt::format("{} is '{}': {}", option, text, at.why));
  }
  return InvalidArgument(fmt::format("{} is '{}'; expected a day{} (UTC)", option, text,
                                     sizes.size() == 1
                                         ? " such as 2026-11-28"
                                         : " or a time such as 2026-11-28 or 2026-11-28T09:30"));
}

// Both texts have been read. A day that ends the span is in it.
Status CheckOrder(const std::string& from, const std::string& to) {
  if (from.empty() || to.empty() || from.substr(0, to.size()) <= to.substr(0, from.size())) {
    return {};
  }
  return InvalidArgument(fmt::format(
      "--from is '{}', which comes after --to, '{}'; expected the first of both in --from", from,
      to));
}

using UsageField = const std::string& (v1::UsageRow::*)() const;
constexpr std::array kUsageFields{
    std::pair<std::string_view, UsageField>{"user", &v1::UsageRow::user},
    std::pair<std::string_view, UsageField>{"account", &v1::UsageRow::account},
    std::pair<std::string_view, UsageField>{"queue", &v1::UsageRow::queue},
    std::pair<std::string_view, UsageField>{"model", &v1::UsageRow::model},
    std::pair<std::string_view, UsageField>{"node", &v1::UsageRow::node},
    std::pair<std::string_view, UsageField>{"day", &v1::UsageRow::day}};

std::vector<std::string> UsageFieldNames() {
  std::vector<std::string> names;
  names.reserve(kUsageFields.size());
  for (const auto& [name, field] : kUsageFields) {
    names.emplace_back(name);
  }
  return names;
}

std::vector<std::string> UsageCells(const v1::UsageRow& row, const std::vector<std::string>& by) {
  std::vector<std::string> cells;
  cells.reserve(by.size() + 3);
  for (const std::string& name : by) {
    const auto* const field = std::find_if(kUsageFields.begin(), kUsageFields.end(),
                                           [&name](const auto& one) { return one.first == name; });
    cells.push_back(field == kUsageFields.end() ? std::string() : (row.*field->second)());
  }
  return cells;
}

void PrintUsage(const v1::UsageReply& reply, const UsageOptions& options) {
  constexpr double kMicrosOfHour = 3600e6;
  constexpr double kSmall = 100;  // hours
  constexpr double kMicros = 1e6;
  const auto hours = [](std::int64_t micros, std::int64_t all) {
    const int digits = static_cast<double>(all) / kMicrosOfHour < kSmall ? 4 : 2;
    return fmt::format("{:.{}f}", static_cast<double>(micros) / kMicrosOfHour, digits);
  };
  std::vector<std::vector<std::string>> rows{options.by};
  if (options.csv) {
    rows.front().insert(rows.front().end(), {"gpu_seconds", "cpu_seconds_given", "cpu_seconds"});
  } else {
    rows.front().insert(rows.front().end(), {"GPU hours", "CPU hours given", "CPU hours used"});
  }
  for (const v1::UsageRow& row : reply.rows()) {
    rows.push_back(UsageCells(row, options.by));
    for (std::string& cell : rows.back()) {
      std::string quoted;
      io::AppendCsvField(cell, quoted);
      cell = options.csv ? quoted : OrDash(cell);
    }
    for (const auto& [micros, all] : {std::pair(row.gpu_micros(), reply.gpu_micros()),
                                      std::pair(row.cpu_given_micros(), reply.cpu_given_micros()),
                                      std::pair(row.cpu_micros(), reply.cpu_micros())}) {
      rows.back().push_back(options.csv
                                ? fmt::format("{:.6f}", static_cast<double>(micros) / kMicros)
                                : hours(micros, all));
    }
  }
  if (options.csv) {
    for (const std::vector<std::string>& row : rows) {
      fmt::print("{}\n", fmt::join(row, ","));
    }
    return;
  }
  fmt::print("{}{} GPU hours in all; {} CPU hours given, {} used\n", TableText(rows),
             hours(reply.gpu_micros(), reply.gpu_micros()),
             hours(reply.cpu_given_micros(), reply.cpu_given_micros()),
             hours(reply.cpu_micros(), reply.cpu_micros()));
}

Status ShowUsage(const UsageOptions& options) {
  v1::ClientRequest request;
  v1::UsageRequest& usage = *request.mutable_usage();
  usage.mutable_by()->Assign(options.by.begin(), options.by.end());
  constexpr double kSecondsOfDay = 24 * 3600;
  if (!options.from.empty()) {
    ASSIGN_OR_RETURN(const double first, TimeOf("--from", options.from, kDay));
    usage.set_from_day(static_cast<std::int64_t>(first / kSecondsOfDay));
  }
  if (!options.to.empty()) {
    ASSIGN_OR_RETURN(const double last, TimeOf("--to", options.to, kDay));
    usage.set_to_day(static_cast<std::int64_t>(last / kSecondsOfDay));
  }
  RETURN_IF_ERROR(CheckOrder(options.from, options.to));
  ASSIGN_OR_RETURN(const v1::ClientReply reply, CallTo(options, request));
  if (options.json) {
    PrintJson(reply.usage());
  } else {
    PrintUsage(reply.usage(), options);
  }
  return {};
}

// ------------------------------------------------------------------------------------------- audit

struct AuditOptions : ClusterOptions {
  std::string user;
  std::string job;
  std::string node;
  std::string from;
  std::string to;
  std::size_t last = 0;
};

void PrintEntries(const std::deque<v1::AuditEntry>& entries) {
  for (const v1::AuditEntry& entry : entries) {
    std::string about;
    if (entry.jobs_size() > 0) {
      about = fmt::format(
          "job{} {}",
          entry.jobs_size() > 1 || entry.jobs(0).find('-') != std::string::npos ? "s" : "",
          fmt::join(entry.jobs(), ","));
    } else if (entry.nodes_size() > 0) {
      about = fmt::format("node{} {}", entry.nodes_size() > 1 ? "s" : "",
                          fmt::join(entry.nodes(), ","));
    }
    fmt::print("{}  {}  {}{}{}\n", entry.time(), OrDash(entry.by()), Printable(about),
               about.empty() ? "" : ": ", Printable(entry.what()));
  }
}

void PrintJsonLines(const std::deque<v1::AuditEntry>& entries) {
  for (const v1::AuditEntry& entry : entries) {
    PrintJsonLine(entry);
  }
}

Status ShowAudit(const AuditOptions& options) {
  v1::ClientRequest request;
  v1::AuditRequest& audit = *request.mutable_audit();
  if (!options.from.empty()) {
    RETURN_IF_ERROR(TimeOf("--from", options.from, kDayOrTime));
  }
  if (!options.to.empty()) {
    RETURN_IF_ERROR(TimeOf("--to", options.to, kDayOrTime));
  }
  RETURN_IF_ERROR(CheckOrder(options.from, options.to));
  if (!options.job.empty()) {
    const auto job = base::ToInteger<std::uint64_t>(options.job);
    if (!job || *job == 0) {
      return InvalidArgument(fmt::format(
          "--job is '{}'; expected the number of one job, such as 12; 'trainyard status {} --json' "
          "has that of a task as 'job'",
          options.job, options.job));
    }
    audit.set_job(*job);
  }
  audit.set_user(options.user);
  audit.set_node(options.node);
  audit.set_from(options.from);
  audit.set_to(options.to);
  const auto print = options.json ? PrintJsonLines : PrintEntries;
  std::deque<v1::AuditEntry> kept;
  bool found = false;
  do {
    ASSIGN_OR_RETURN(const v1::ClientReply reply, CallTo(options, request));
    kept.insert(kept.end(), reply.audit().entries().begin(), reply.audit().entries().end());
    found = found || !kept.empty();
    if (options.last == 0) {
      print(kept);
      kept.clear();
    }
    while (kept.size() > options.last) {
      kept.pop_front();
    }
    audit.set_after(reply.audit().next());
  } while (audit.after() != 0);
  print(kept);
  if (!found) {
    Tell("nothing of that is in the audit trail");
  }
  return {};
}

}  // namespace

void AddAudit(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<AuditOptions>();
  CLI::App* command =
      app.add_subcommand("audit", "who has done what to which job, node or setting, and when");
  command->add_option("--user", options->user, "done by this user")->check(NotEmpty());
  command->add_option("--job", options->job, "to the job of this number")->check(NotEmpty());
  command->add_option("--node", options->node, "to this node")->check(NotEmpty());
  command
      ->add_option("--from", options->from, "the first day or time (UTC), such as 2026-11-28T09:30")
      ->check(NotEmpty());
  command->add_option("--to", options->to, "the last one")->check(NotEmpty());
  command->add_option("--last", options->last, "so many of them, the last ones (default: all)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000'000}));
  AddClusterOptions(*command, *options);
  command->callback([options, &chosen] { chosen.run = [options] { return ShowAudit(*options); }; });
}

void AddUsage(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<UsageOptions>();
  CLI::App* command = app.add_subcommand("usage", "who has held GPUs and CPUs, and for how long");
  command
      ->add_option("--by", options->by,
                   fmt::format("sums for each of: {}", fmt::join(UsageFieldNames(), ", ")))
      ->delimiter(',')
      ->check(CLI::IsMember(UsageFieldNames()))
      ->default_str("user");
  command->add_option("--from", options->from, "the first day, such as 2026-05-01 (UTC)")
      ->check(NotEmpty());
  command->add_option("--to", options->to, "the last day")->check(NotEmpty());
  command->add_flag("--csv", options->csv, "as CSV, in seconds");
  AddClusterOptions(*command, *options);
  command->callback([options, &chosen] { chosen.run = [options] { return ShowUsage(*options); }; });
}

}  // namespace trainyard::cli
