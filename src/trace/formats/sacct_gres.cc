// SPDX-License-Identifier: Apache-2.0
#include "trace/formats/sacct_gres.h"

#include <algorithm>

#include "base/text.h"
#include "model/job_fields.h"
#include "model/request/node_request.h"

namespace trainyard::trace {
namespace {

std::optional<std::int64_t> ToCount(std::string_view text, std::int64_t most) {
  const auto value = base::ToInteger<std::int64_t>(text);
  return value && *value >= 0 && *value <= most ? value : std::nullopt;
}

// "gpu:a100:2(S:0-1),lscratch:3" without what stands in parentheses: sockets and indices.
std::string WithoutParentheses(std::string_view list) {
  std::string text;
  int open = 0;
  for (const char c : list) {
    open += c == '(' ? 1 : 0;
    if (open == 0) {
      text += c;
    }
    open -= c == ')' && open > 0 ? 1 : 0;
  }
  return text;
}

struct GpuEntry {
  std::string_view type;
  std::optional<std::int64_t> count;  // nothing: it is no number
};

// One entry without "gres/"; nothing: it is of another resource.
std::optional<GpuEntry> EntryOf(std::string_view entry) {
  constexpr std::string_view kPlugin = "7696487";  // the number of "gpu" where its name is lost
  const std::size_t end = entry.find_first_of(":=");
  const std::string_view name = entry.substr(0, end);
  if (name != "gpu" && name != kPlugin) {  // gpumem and gpuutil are no GPUs either
    return std::nullopt;
  }
  if (end == std::string_view::npos) {
    return GpuEntry{.count = 1};
  }
  std::string_view rest = entry.substr(end + 1);
  if (const std::size_t last = rest.find_last_of(":="); last != std::string_view::npos) {
    return GpuEntry{.type = rest.substr(0, last),
                    .count = ToCount(rest.substr(last + 1), model::kMostGpus)};
  }
  const std::optional<std::int64_t> count = ToCount(rest, model::kMostGpus);
  const bool is_type = !count && entry[end] == ':' && !rest.empty() &&
                       rest.find_first_not_of("0123456789-.") != std::string_view::npos;
  return is_type ? GpuEntry{.type = rest, .count = 1} : GpuEntry{.count = count};
}

}  // namespace

std::optional<SlurmGpus> SlurmGpusOf(std::string_view list, bool& bad) {
  const std::string text = WithoutParentheses(list);
  std::optional<std::int64_t> plain;
  std::int64_t typed = 0;
  bool names_gpus = false;
  SlurmGpus gpus;
  for (std::string_view part : base::Split(text, ",")) {
    for (const std::string_view prefix : {"gres/", "gres:"}) {
      part.remove_prefix(part.starts_with(prefix) ? prefix.size() : 0);
    }
    const std::optional<GpuEntry> entry = EntryOf(part);
    if (!entry) {
      continue;
    }
    names_gpus = true;
    if (!entry->count) {
      bad = true;
      return std::nullopt;
    }
    if (entry->type.empty()) {
      plain = plain.value_or(0) + *entry->count;
    } else {
      typed += *entry->count;
      gpus.types.emplace_back(entry->type);
    }
  }
  if (!names_gpus) {
    return std::nullopt;
  }
  std::sort(gpus.types.begin(), gpus.types.end());
  gpus.types.erase(std::unique(gpus.types.begin(), gpus.types.end()), gpus.types.end());
  gpus.count = plain.value_or(typed);
  return gpus;
}

std::int64_t SlurmMemoryOf(std::string_view list) {
  constexpr std::string_view kMemory = "mem=";
  for (const std::string_view entry : base::Split(list, ",")) {
    if (entry.starts_with(kMemory)) {
      return model::ReadMib(entry.substr(kMemory.size())).value_or(0);
    }
  }
  return 0;
}

int SlurmNodesOf(std::string_view list) {
  constexpr std::string_view kNode = "node=";
  for (const std::string_view entry : base::Split(list, ",")) {
    if (entry.starts_with(kNode)) {
      return static_cast<int>(ToCount(entry.substr(kNode.size()), model::kMostGpus).value_or(0));
    }
  }
  return 0;
}

std::optional<std::int64_t> SlurmCpusOf(std::string_view list) {
  constexpr std::string_view kCpu = "cpu=";
  constexpr std::int64_t kMostCpus = 1'000'000'000;
  for (const std::string_view entry : base::Split(list, ",")) {
    if (entry.starts_with(kCpu)) {
      return ToCount(entry.substr(kCpu.size()), kMostCpus);
    }
  }
  return 0;
}

}  // namespace trainyard::trace
