// SPDX-License-Identifier: Apache-2.0
#include "trace/clusters/cluster_formats.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "trace/line_stream.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kCluster = "CLUSTER";
constexpr std::string_view kScheduler = "SCHEDULER";  // lease time and policy, which nothing reads
constexpr std::int64_t kMostInteger = 1'000'000'000;

struct KeyRule {
  std::string_view name;
  std::int64_t least = 0;
  std::int64_t most = kMostInteger;
  bool required = true;
};
enum IniKey : std::size_t { kRacks, kServers, kGpus, kCpus, kMemoryGb, kStorage, kNetwork, kKeys };
constexpr std::array<KeyRule, kKeys> kIniRules{{
    {.name = "racks", .least = 1, .most = kMostNodes},
    {.name = "servers_per_rack", .least = 1, .most = kMostNodes},
    {.name = "gpus_per_server", .least = 1, .most = kMaxGpusPerNode},
    {.name = "cpus_per_server"},
    {.name = "dram_per_server"},
    {.name = "sspeed_per_server"},
    {.name = "net_per_server", .required = false},
}};

class IniReader {
 public:
  explicit IniReader(const std::string& path) : path_(path) {}

  Status Take(std::string_view line, int number) {
    line_ = number;
    line.remove_prefix(number == 1 && line.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
    line.remove_suffix(line.ends_with('\r') ? 1 : 0);
    const std::string_view text = base::Trim(line);
    if (text.empty() || text.front() == '#' || text.front() == ';') {
      return {};
    }
    if (text.front() == '[') {
      return TakeSection(text);
    }
    if (section_.empty()) {
      return Bad(fmt::format("'{}' before any section; expected [CLUSTER]", text));
    }
    return section_ == kScheduler ? Status() : TakeValue(text);
  }

  [[nodiscard]] Result<Cluster> Make() const {
    for (std::size_t key = 0; key < kKeys; ++key) {
      if (kIniRules[key].required && !values_[key]) {
        return BadInput(
            fmt::format("{}: no '{}' in [CLUSTER]; expected a number", path_, kIniRules[key].name));
      }
    }
    const std::int64_t per_rack = *values_[kServers];
    const std::int64_t nodes = *values_[kRacks] * per_rack;
    if (nodes > kMostNodes) {
      return BadInput(fmt::format("{}: {} servers; expected at most {}", path_, nodes, kMostNodes));
    }
    Cluster cluster;
    for (std::int64_t i = 0; i < nodes; ++i) {
      cluster.nodes.push_back({.name = fmt::format("n{}", i),
                               .gpus = static_cast<int>(*values_[kGpus]),
                               .capacity = {.milli_cpus = *values_[kCpus] * 1000,
                                            .memory_mib = *values_[kMemoryGb] * 1024,
                                            .storage_kbps = *values_[kStorage] * 1000},
                               .switch_index = static_cast<int>(i / per_rack)});
    }
    return cluster;
  }

 private:
  [[nodiscard]] Error Bad(const std::string& what) const {
    return BadInput(fmt::format("{}:{}: {}", path_, line_, what));
  }

  Status TakeSection(std::string_view text) {
    const std::string_view name =
        text.back() == ']' ? base::Trim(text.substr(1, text.size() - 2)) : std::string_view();
    if (name != kCluster && name != kScheduler) {
      return Bad(fmt::format("'{}'; expected the section [CLUSTER] or [SCHEDULER]", text));
    }
    if (std::find(sections_.begin(), sections_.end(), name) != sections_.end()) {
      return Bad(fmt::format("the section [{}] is there twice; expected it once", name));
    }
    section_ = name;
    sections_.push_back(section_);
    return {};
  }

  Status TakeValue(std::string_view text) {
    const std::size_t between = text.find_first_of("=:");
    if (between == std::string_view::npos) {
      return Bad(fmt::format("'{}'; expected key = number", text));
    }
    const std::string_view name = base::Trim(text.substr(0, between));
    const std::string_view value = base::Trim(text.substr(between + 1));
    const auto rule = std::find_if(kIniRules.begin(), kIniRules.end(),
                                   [name](const KeyRule& one) { return one.name == name; });
    if (rule == kIniRules.end()) {
      std::array<std::string_view, kKeys> known;
      std::transform(kIniRules.begin(), kIniRules.end(), known.begin(),
                     [](const KeyRule& one) { return one.name; });
      return Bad(base::UnknownName("[CLUSTER] key", name, known));
    }
    std::optional<std::int64_t>& target =
        values_[static_cast<std::size_t>(rule - kIniRules.begin())];
    if (target) {
      return Bad(fmt::format("'{}' is there twice; expected it once", name));
    }
    std::int64_t number = 0;
    const auto [stop, code] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (code != std::errc{} || stop != value.data() + value.size() || number < rule->least ||
        number > rule->most) {
      return Bad(fmt::format("'{}' is '{}'; expected an integer from {} to {}", name, value,
                             rule->least, rule->most));
    }
    target = number;
    return {};
  }

  const std::string& path_;
  int line_ = 0;
  std::string section_;
  std::vector<std::string> sections_;
  std::array<std::optional<std::int64_t>, kKeys> values_{};
};

}  // namespace

Result<Cluster> ParseClusterIni(const std::string& path, std::string_view text) {
  IniReader reader(path);
  int number = 0;
  for (const std::string_view line : base::Split(text, "\n")) {
    RETURN_IF_ERROR(reader.Take(line, ++number));
  }
  return reader.Make();
}

}  // namespace trainyard::trace
