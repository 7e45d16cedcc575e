// SPDX-License-Identifier: Apache-2.0
#include "trace/formats/sacct_line.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "trace/timestamp.h"

namespace trainyard::trace {
namespace {

bool HasOnly(std::string_view text, std::string_view allowed) {
  return text.find_first_not_of(allowed) == std::string_view::npos;
}

bool IsState(std::string_view text) {
  constexpr std::array<std::string_view, 16> kStates{
      "BOOT_FAIL", "CANCELLED",     "COMPLETED", "COMPLETING", "DEADLINE", "FAILED",
      "NODE_FAIL", "OUT_OF_MEMORY", "PENDING",   "PREEMPTED",  "REQUEUED", "RESIZING",
      "REVOKED",   "RUNNING",       "SUSPENDED", "TIMEOUT"};
  const std::string_view word = text.substr(0, text.find_first_of(" +"));
  return std::find(kStates.begin(), kStates.end(), word) != kStates.end();
}

}  // namespace

// One way after the other, and the one that fits.
struct SacctLines::Search {
  const std::vector<std::string_view>& fields;
  std::vector<std::size_t> extra;  // of each column: how many fields it has beyond one
  std::vector<std::string_view> found{};
  bool is_ambiguous = false;
  int left = 20'000;  // ways that may still be tried
};

SacctLines::SacctLines(const std::vector<std::string>& names) {
  std::transform(names.begin(), names.end(), std::back_inserter(kinds_),
                 [](const std::string& name) { return KindOf(name); });
}

SacctLines::Kind SacctLines::KindOf(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Kind>, 54> kKinds{
      {{"JobName", Kind::kFree},      {"Comment", Kind::kFree},
       {"AdminComment", Kind::kFree}, {"SystemComment", Kind::kFree},
       {"SubmitLine", Kind::kFree},   {"WorkDir", Kind::kFree},
       {"Container", Kind::kFree},    {"Constraints", Kind::kFree},
       {"WCKey", Kind::kFree},        {"Extra", Kind::kFree},
       {"StdIn", Kind::kFree},        {"StdOut", Kind::kFree},
       {"StdErr", Kind::kFree},       {"Reason", Kind::kFree},
       {"JobID", Kind::kId},          {"JobIDRaw", Kind::kId},
       {"User", Kind::kWord},         {"Account", Kind::kWord},
       {"Partition", Kind::kWord},    {"QOS", Kind::kWord},
       {"Cluster", Kind::kWord},      {"Group", Kind::kWord},
       {"NodeList", Kind::kWord},     {"AllocGRES", Kind::kWord},
       {"ReqGRES", Kind::kWord},      {"Submit", Kind::kTime},
       {"Eligible", Kind::kTime},     {"Start", Kind::kTime},
       {"End", Kind::kTime},          {"Elapsed", Kind::kSpan},
       {"Timelimit", Kind::kSpan},    {"Suspended", Kind::kSpan},
       {"CPUTime", Kind::kSpan},      {"TotalCPU", Kind::kSpan},
       {"ElapsedRaw", Kind::kCount},  {"CPUTimeRAW", Kind::kCount},
       {"NCPUS", Kind::kCount},       {"AllocCPUS", Kind::kCount},
       {"ReqCPUS", Kind::kCount},     {"NNodes", Kind::kCount},
       {"AllocNodes", Kind::kCount},  {"NTasks", Kind::kCount},
       {"ReqNodes", Kind::kCount},    {"UID", Kind::kCount},
       {"GID", Kind::kCount},         {"Priority", Kind::kCount},
       {"Restarts", Kind::kCount},    {"AssocID", Kind::kCount},
       {"State", Kind::kState},       {"AllocTRES", Kind::kTres},
       {"ReqTRES", Kind::kTres},      {"TRESAlloc", Kind::kTres},
       {"ExitCode", Kind::kExit},     {"DerivedExitCode", Kind::kExit}}};
  const auto* const found = std::find_if(kKinds.begin(), kKinds.end(),
                                         [name](const auto& one) { return one.first == name; });
  return found == kKinds.end() ? Kind::kAny : found->second;
}

bool SacctLines::IsOfKind(std::string_view field, Kind kind) {
  constexpr std::string_view kDigits = "0123456789";
  switch (kind) {
    case Kind::kId:
      return !field.empty() && kDigits.find(field.front()) != std::string_view::npos &&
             field.find(' ') == std::string_view::npos;
    case Kind::kWord:
      return field.find(' ') == std::string_view::npos || field == "None assigned";
    case Kind::kTime:
      return IsMissing(field) || ParseTimestamp(field);
    case Kind::kSpan:
      return HasOnly(field, "0123456789-:.") || HasOnly(field, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") ||
             field == "Partition_Limit";
    case Kind::kCount:
      return HasOnly(field, kDigits);
    case Kind::kState:
      return IsState(field);
    case Kind::kTres:
      return field.empty() || (field.find('=') != std::string_view::npos &&
                               field.find(' ') == std::string_view::npos);
    case Kind::kExit:
      return HasOnly(field, "0123456789:");
    default:
      return true;
  }
}

void SacctLines::Mend(std::vector<std::string_view>& fields) const {
  constexpr std::size_t kMostSurplus = 16;
  const std::size_t surplus = fields.size() - kinds_.size();
  if (fields.size() <= kinds_.size() || surplus > kMostSurplus) {
    return;
  }
  Search search{.fields = fields, .extra = std::vector<std::size_t>(kinds_.size())};
  Try(search, 0, surplus);
  if (!search.found.empty() && !search.is_ambiguous && search.left > 0) {
    fields = std::move(search.found);
  }
}

void SacctLines::Try(Search& search, std::size_t column, std::size_t surplus) const {
  if (search.left <= 0 || search.is_ambiguous) {
    return;
  }
  if (surplus == 0) {
    --search.left;
    Judge(search);
    return;
  }
  while (column < kinds_.size() && kinds_[column] != Kind::kFree) {
    ++column;
  }
  if (column == kinds_.size()) {
    return;
  }
  for (std::size_t here = surplus + 1; here-- > 0;) {  // the first of several takes all it can
    search.extra[column] = here;
    Try(search, column + 1, surplus - here);
  }
  search.extra[column] = 0;
}

void SacctLines::Judge(Search& search) const {
  std::vector<std::string_view> joined;
  std::size_t at = 0;
  for (std::size_t column = 0; column < kinds_.size(); ++column) {
    const std::string_view first = search.fields[at];
    const std::string_view last = search.fields[at + search.extra[column]];
    joined.emplace_back(first.data(),
                        static_cast<std::size_t>(last.data() + last.size() - first.data()));
    if (!IsOfKind(joined.back(), kinds_[column])) {
      return;
    }
    at += search.extra[column] + 1;
  }
  for (std::size_t column = 0; column < kinds_.size() && !search.found.empty(); ++column) {
    search.is_ambiguous |= kinds_[column] != Kind::kFree && joined[column] != search.found[column];
  }
  if (search.found.empty()) {
    search.found = std::move(joined);
  }
}

}  // namespace trainyard::trace
