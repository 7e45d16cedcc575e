// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/settings.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace trainyard::results {
namespace {

std::string LineOf(std::string_view who, const std::vector<RunSetting>& settings) {
  std::vector<std::string> texts;
  texts.reserve(settings.size());
  for (const RunSetting& setting : settings) {
    texts.push_back(setting.name + " " + setting.value);
  }
  return fmt::format("{}: {}", who, fmt::join(texts, ", "));
}

std::string ChoiceText(const std::vector<std::string>& candidates) {
  constexpr std::size_t kNamed = 3;
  return candidates.size() > kNamed ? fmt::format("{} combinations", candidates.size())
                                    : fmt::format("{}", fmt::join(candidates, " | "));
}

std::string FileText(const std::string& name, const std::string& sha256) {
  constexpr std::size_t kDigits = 12;
  return sha256.empty() ? name : fmt::format("{} (sha256 {})", name, sha256.substr(0, kDigits));
}

bool Has(const std::vector<RunSetting>& settings, const RunSetting& one) {
  return std::find(settings.begin(), settings.end(), one) != settings.end();
}

}  // namespace

std::string PresetText(const RunResult& run) { return FileText(run.preset, run.preset_sha256); }

std::string ChangesText(const RunResult& run) {
  return FileText(run.changes_path, run.changes_sha256);
}

std::vector<RunSetting> SettingsOf(const RunResult& run) {
  std::vector<RunSetting> settings;
  const auto add = [&](const char* name, const std::string& value, std::string_view usual) {
    if (!value.empty() && value != usual) {
      settings.push_back({.name = name, .value = value});
    }
  };
  // A label may name the cluster, too.
  add("policy", run.policy, run.label.starts_with(run.policy + " on ") ? run.policy : run.label);
  add("choosing among", ChoiceText(run.candidates), "");
  add("placement", run.placement, kUsualPlacement);
  add("admission", run.admission, kUsualAdmission);
  add("grouping", run.grouping, "");
  add("tuning", run.tuning, "");
  add("changes by", ChangesText(run), "");
  add(run.ends_only ? "program" : "preset", PresetText(run), "sound");
  return settings;
}

std::string SettingsText(std::span<const RunResult> runs) {
  if (runs.empty()) {
    return "";
  }
  std::vector<std::vector<RunSetting>> all;
  for (const RunResult& run : runs) {
    all.push_back(run.ends_only ? std::vector<RunSetting>{} : SettingsOf(run));
  }
  std::vector<RunSetting> shared = all.front();
  std::erase_if(shared, [&](const RunSetting& one) {
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& settings) { return !Has(settings, one); });
  });
  std::vector<std::string> lines;
  if (!shared.empty()) {
    lines.push_back(LineOf(runs.size() == 1 ? runs.front().label : "all runs", shared));
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::erase_if(all[i], [&](const RunSetting& one) { return Has(shared, one); });
    if (!all[i].empty()) {
      lines.push_back(LineOf(runs[i].label, all[i]));
    }
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace trainyard::results
