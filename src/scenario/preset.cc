// SPDX-License-Identifier: Apache-2.0
#include "scenario/preset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <tuple>

#include "base/text.h"
#include "base/try.h"
#include "catalog/catalog.h"
#include "scenario/preset_keys.h"
#include "scenario/preset_names.h"
#include "scenario/preset_values.h"

namespace trainyard {
namespace {

// Seconds; none: the first submit; `arrival`: rounds at multiples of their length, of which the
// first one to decide anything is that at or after the first submit.
std::optional<TimePoint> AnchorOf(PresetValues& values) {
  const std::optional<std::string> anchor = values.Given("clock", "anchor");
  if (!anchor) {
    return std::nullopt;
  }
  if (*anchor == "arrival") {
    return TimePoint{};
  }
  return AtSeconds(values.Number("clock", "anchor"));
}

DecisionClock ClockOf(PresetValues& values) {
  using Mode = DecisionClock::Mode;
  return {.mode = values.Choice(
              "clock", "mode",
              std::array{Mode::kEveryEvent, Mode::kSpacing, Mode::kRounds, Mode::kArrivals}),
          .length = FromSeconds(values.Number("clock", "length")),
          .anchor = AnchorOf(values)};
}

// A count of decisions: whole, and at least 1 where it is given.
int RestartEvery(PresetValues& values) {
  const double every = values.Number("debt", "restart_every");
  return every <= 0 ? 0 : static_cast<int>(std::max(std::round(every), 1.0));
}

Debt DebtOf(PresetValues& values) {
  using Charge = Debt::Charge;
  using Pay = Debt::Pay;
  return {
      .charge = values.Choice("debt", "charge",
                              std::array{Charge::kNone, Charge::kStart, Charge::kChange,
                                         Charge::kEveryInstant, Charge::kEveryArrival}),
      .pay = values.Choice("debt", "pay", std::array{Pay::kDelay, Pay::kInterval, Pay::kAtEnd})};
}

EndRule EndOf(PresetValues& values) {
  using Finish = EndRule::Finish;
  using Source = EndRule::Source;
  using Release = bool;
  return {.finish = values.Choice("end", "finish",
                                  std::array{Finish::kExact, Finish::kCeilSecond,
                                             Finish::kFloorSecond, Finish::kRoundEnd}),
          .source = values.Flag("end", "found_late") ? Source::kFound
                    : values.Flag("end", "by_plan")  ? Source::kPlanned
                                                     : Source::kPredicted,
          .release_at_instant =
              values.Choice("end", "release", std::array{Release{false}, Release{true}})};
}

PublishedRules PublishedOf(PresetValues& values) {
  using Lone = PublishedRules::Lone;
  return {.lone = values.Choice("clock", "lone",
                                std::array{Lone::kDelayed, Lone::kStarted, Lone::kSubmits}),
          .every_instant = values.Flag("ledger", "every_instant"),
          .true_instants = values.Flag("ledger", "true_instants"),
          .debt_in_forecast = values.Flag("debt", "in_forecast"),
          .restart_every = RestartEvery(values),
          .group_sum = values.Flag("debt", "group_sum"),
          .warm_sets = values.Flag("debt", "warm_sets"),
          .ends_without_gpus = values.Flag("end", "without_gpus"),
          .join_relative = values.Number("end", "join_relative"),
          .join_absolute = FromSeconds(values.Number("end", "join_absolute")),
          .join_by_priority = values.Flag("end", "join_by_priority")};
}

Rules RulesOf(PresetValues& values) {
  Rules rules;
  rules.clock = ClockOf(values);
  rules.quantum =
      values.Choice("ledger", "quantum",
                    std::array{Quantum::kNone, Quantum::kSecond, Quantum::kIterationPerRound});
  rules.debt = DebtOf(values);
  rules.end = EndOf(values);
  rules.published = PublishedOf(values);
  using Rule = Preemption::Rule;
  rules.preemption = {
      .rule = values.Choice("rules", "preempt", std::array{Rule::kSound, Rule::kPublished}),
      .min_runtime = FromSeconds(values.Number("rules", "preempt_min_runtime"))};
  return rules;
}

SensitivityRules SensitivityOf(PresetValues& values) {
  using Speed = SensitivityRules::Speed;
  return {.speed = values.Choice("ledger", "speed",
                                 std::array{Speed::kMatrix, Speed::kScalar, Speed::kProportional}),
          .storage_mbps_per_gpu = values.Number("ledger", "storage_mbps")};
}

// `name`: of the table in PresetKeys().
ChangeCosts CostsOf(std::string_view name, const TomlTable& table, PresetValues& values) {
  const auto cost = [&](std::string_view key) {
    return FromSeconds(values.NumberOf(PresetKeyOf(name, key), table, key));
  };
  return {.start = cost("start"),
          .restart = cost("restart"),
          .resize = cost("resize"),
          .migrate = cost("migrate")};
}

OverheadModel OverheadsOf(const TomlTable& root, PresetValues& values) {
  if (values.Text("overhead", "model") == "formula") {
    return OverheadModel(OverheadFormula{
        .base = values.Number("overhead", "base"),
        .per_doubling = values.Number("overhead", "per_doubling"),
        .full_restart = values.Number("overhead", "full_restart"),
        .large_cluster = static_cast<int>(values.Number("overhead", "large_cluster")),
        .large_base = values.Number("overhead", "large_base"),
        .large_full_restart = values.Number("overhead", "large_full_restart")});
  }
  OverheadTable table;
  if (const TomlTable* const fallback = FindTable(root, "overhead.fallback")) {
    table.fallback = CostsOf("overhead.fallback", *fallback, values);
  }
  if (values.Given("overhead", "restart")) {
    table.fallback.restart = FromSeconds(values.Number("overhead", "restart"));
  }
  if (const TomlTable* const models = FindTable(root, "overhead.by_gpus")) {
    const PresetKey& key = PresetKeyOf("overhead.by_gpus.*", "*");
    for (const TomlEntry& model : models->entries) {
      const TomlTable& costs = *model.value.table();
      for (const TomlEntry& gpus : costs.entries) {
        table.by_gpus[model.key][static_cast<int>(ToNumber(gpus.key).value_or(0))] =
            FromSeconds(values.NumberOf(key, costs, gpus.key));
      }
    }
  }
  if (const TomlTable* const models = FindTable(root, "overhead.models")) {
    for (const TomlEntry& model : models->entries) {
      table.models[model.key] = CostsOf("overhead.models.*", *model.value.table(), values);
    }
  }
  return OverheadModel(std::move(table));
}

GroupTimes::Rules StagesOf(PresetValues& values) {
  GroupTimes::Rules rules{
      .order = values.Choice("stages", "order", std::array{StageOrder::kBest, StageOrder::kWorst}),
      .long_loading = values.Choice("stages", "phases", std::array{true, false}),
      .slowdown = {}};
  for (std::size_t i = 0; i < rules.slowdown.size(); ++i) {
    rules.slowdown[i] = values.Number("stages", "slowdown_" + std::to_string(i + 1));
  }
  return rules;
}

std::string TrackOf(PresetValues& values) {
  const std::string track = values.Text("run", "track");
  return track == "all" ? std::string() : track;
}

// Only where the preset says something about the walk.
std::optional<Walk> WalkOf(const TomlTable* policy, PresetValues& values) {
  if (policy == nullptr || policy->Find("walk") == nullptr) {
    return std::nullopt;
  }
  return Walk{
      .misfit = values.Choice("walk", "misfit",
                              std::array{Misfit::kSkip, Misfit::kStop, Misfit::kEvictTail}),
      .preempt = values.Flag("walk", "preempt"),
      .keep_running = values.Flag("walk", "keep_running"),
      .count_first = values.Flag("walk", "count_first"),
      .largest_first = values.Flag("walk", "largest_first"),
      .former_rank = values.Choice(
          "walk", "former_rank",
          std::array{Walk::FormerRank::kNo, Walk::FormerRank::kKeys, Walk::FormerRank::kSubmits})};
}

// A preset's rules with the user's options. A file's own are checked when it is read.
Status CheckRules(PresetValues& values, const NamedOptions& given) {
  const std::optional<RuleConflict> conflict = FindConflict(values);
  return conflict ? InvalidArgument("preset '" + given.name + "': " + conflict->message) : Status();
}

// ------------------------------------------------------------------------------------------ names

// "unknown policy 'x' ...", with the built-in presets that know the name.
Error WithHint(Error error, ComponentKind kind, const std::string& name) {
  for (const std::string_view preset : PresetNames()) {
    const Result<const Preset*> other = FindPreset(std::string(preset));
    const TomlTable* const names =
        other.ok() ? FindTable(other.value()->root, TableOfNames(kind)) : nullptr;
    if (names != nullptr && names->Find(name) != nullptr) {
      error.message += "; preset '" + std::string(preset) + "' knows '" + name + "' (--preset " +
                       std::string(preset) + ")";
    }
  }
  return error;
}

// The text of the entry; empty: there is none.
std::string TextIn(const TomlTable* table, std::string_view key) {
  const TomlEntry* const entry = table == nullptr ? nullptr : table->Find(key);
  return entry == nullptr ? std::string() : entry->value.AsText().value_or("");
}

// The admission or placement that a policy comes with: as the preset says, or by its own entry.
std::string Companion(const TomlTable* own, const std::string& policy, std::string_view what) {
  if (own != nullptr) {
    return TextIn(own, what);
  }
  for (const ComponentEntry& entry : Catalog(ComponentKind::kPolicy)) {
    if (entry.name == policy) {
      return std::string(what == "admission" ? entry.admission : entry.placement);
    }
  }
  return {};
}

std::vector<PresetName> NamesIn(const TomlTable& root, ComponentKind kind) {
  std::vector<PresetName> names;
  if (const TomlTable* const table = FindTable(root, TableOfNames(kind))) {
    for (const TomlEntry& entry : table->entries) {
      const TomlTable* const inner = entry.value.table();
      names.push_back({entry.key, inner == nullptr ? entry.value.AsText().value_or("")
                                                   : TextIn(inner, NameOf(kind))});
    }
  }
  return names;
}

// A preset and the options that the user gives with it.
struct Chosen {
  const Preset* preset = nullptr;
  NamedOptions given;
};

Result<Chosen> Choose(const std::string& text) {
  ASSIGN_OR_RETURN(NamedOptions named, ParsePresetName(text));
  const Result<const Preset*> preset = FindPreset(named.name);
  return preset.ok() ? Result<Chosen>(Chosen{.preset = preset.value(), .given = named})
                     : preset.error();
}

}  // namespace

Result<PresetDescription> DescribePreset(std::string_view name) {
  ASSIGN_OR_RETURN(const Preset* found, FindPreset(std::string(name)));
  const Preset& preset = *found;
  const TomlTable& root = preset.root;
  const std::string given = TextIn(&root, "name");
  PresetDescription description{
      .name = given.empty() ? std::filesystem::path(name).stem().string() : given,
      .base = preset.base,
      .sha256 = preset.sha256,
      .summary = TextIn(&root, "summary"),
      .source = TextIn(&root, "source"),
      .options = {},
      .policies = NamesIn(root, ComponentKind::kPolicy),
      .placements = NamesIn(root, ComponentKind::kPlacement),
      .admissions = NamesIn(root, ComponentKind::kAdmission),
      .text = preset.text};
  if (description.summary.empty() && !preset.base.empty()) {
    description.summary = "preset '" + preset.base + "' with changes";
  }
  if (const TomlTable* const options = FindTable(root, "options")) {
    for (const TomlEntry& option : options->entries) {
      const TomlTable* const table = option.value.table();
      description.options.push_back({option.key, TextIn(table, "default"), TextIn(table, "help")});
    }
  }
  return description;
}

Result<double> TraceUnit(const std::string& preset) {
  ASSIGN_OR_RETURN(const Chosen chosen, Choose(preset));
  PresetValues values(chosen.preset->root, nullptr, chosen.given);
  const double unit = values.Number("trace", "unit");
  return values.status().ok() ? Result<double>(unit) : values.status().error();
}

Result<std::string> PresetContent(const std::string& preset) {
  const std::string_view path = PresetPath(preset);
  if (path.empty()) {
    return preset;
  }
  const Result<const Preset*> found = FindPreset(std::string(path));
  return found.ok()
             ? Result<std::string>("sha256-" + found.value()->sha256 + preset.substr(path.size()))
             : found.error();
}

namespace {

WorkUnit WorkOf(PresetValues& values) {
  return values.Choice("ledger", "work",
                       std::array{WorkUnit::kAuto, WorkUnit::kIterations, WorkUnit::kDuration,
                                  WorkUnit::kStages, WorkUnit::kSensitivity, WorkUnit::kLoader});
}

// What a run may have or not, and no preset sets.
Status TakeOptional(const PresetRequest& request, ResolvedPreset& resolved) {
  for (const auto& [text, into] : {std::pair{&request.tuning, &resolved.tuning},
                                   std::pair{&request.grouping, &resolved.grouping}}) {
    if (text->empty()) {
      continue;
    }
    ASSIGN_OR_RETURN(NamedOptions named, ParseNamedOptions(*text));
    *into = std::move(named);
  }
  return {};
}

// The components as they were asked for, else as the policy or the preset has them.
struct Asked {
  NamedOptions policy;
  NamedOptions placement;
  NamedOptions admission;
  const TomlTable* own = nullptr;  // what the preset has for that policy; null: nothing
};

Result<Asked> AskedOf(const PresetRequest& request, const TomlTable& root, PresetValues& values) {
  const auto ask = [&values](const std::string& given, std::string_view what) {
    return ParseNamedOptions(given.empty() ? values.Text("defaults", what) : given);
  };
  Asked asked;
  Result<NamedOptions> policy = ask(request.policy, "policy");
  if (!policy.ok()) {
    return policy.error();
  }
  asked.policy = std::move(policy).value();
  const TomlTable* const policies = FindTable(root, "policies");
  const TomlEntry* const entry = policies == nullptr ? nullptr : policies->Find(asked.policy.name);
  asked.own = entry == nullptr ? nullptr : entry->value.table();
  // A preset may fix the placement of a policy.
  const std::string fixed = values.Substitute(TextIn(asked.own, "placement"));
  const std::string wanted =
      request.placement.empty()
          ? values.Substitute(Companion(asked.own, asked.policy.name, "placement"))
          : request.placement;
  Result<NamedOptions> placement = ask(fixed.empty() ? wanted : fixed, "placement");
  Result<NamedOptions> admission =
      ask(request.admission.empty()
              ? values.Substitute(Companion(asked.own, asked.policy.name, "admission"))
              : request.admission,
          "admission");
  if (!placement.ok() || !admission.ok()) {
    return placement.ok() ? admission.error() : placement.error();
  }
  asked.placement = std::move(placement).value();
  asked.admission = std::move(admission).value();
  return asked;
}

// In the catalogues' own names.
Status TakeNames(const Asked& asked, const TomlTable& root, const PresetValues& values,
                 ResolvedPreset& resolved) {
  for (const auto& [kind, name, into] :
       {std::tuple{ComponentKind::kPolicy, &asked.policy, &resolved.policy},
        std::tuple{ComponentKind::kPlacement, &asked.placement, &resolved.placement},
        std::tuple{ComponentKind::kAdmission, &asked.admission, &resolved.admission}}) {
    Result<NamedOptions> known = InCatalogue(kind, root, values, *name);
    if (!known.ok()) {
      return WithHint(known.error(), kind, name->name);
    }
    *into = std::move(known).value();
  }
  return {};
}

}  // namespace

Result<ResolvedPreset> ResolvePreset(const PresetRequest& request) {
  ASSIGN_OR_RETURN(const Chosen chosen, Choose(request.preset));
  const Preset& preset = *chosen.preset;
  const TomlTable& root = preset.root;
  PresetValues shared(root, nullptr, chosen.given);
  ASSIGN_OR_RETURN(const Asked asked, AskedOf(request, root, shared));
  const TomlTable* const own = asked.own;
  PresetValues values(root, own, chosen.given);
  ResolvedPreset resolved{.rules = RulesOf(values),
                          .work = WorkOf(values),
                          .stages = StagesOf(values),
                          .sensitivity = SensitivityOf(values),
                          .overheads = OverheadsOf(root, values),
                          .handover_window = FromSeconds(values.Number("handover", "window")),
                          .early_handover = values.Flag("handover", "before_submit"),
                          .uses_logged_end = values.Text("metrics", "end") == "logged",
                          .exact_deadlines = values.Text("metrics", "deadline") == "exact",
                          .walk = WalkOf(own, values),
                          .rate_factor = values.Number("ledger", "rate_factor"),
                          .track = TrackOf(values),
                          .file_sha256 = preset.sha256};
  for (const Status& status : {TakeNames(asked, root, values, resolved), values.status(),
                               CheckRules(values, chosen.given), TakeOptional(request, resolved)}) {
    if (!status.ok()) {
      return status.error();
    }
  }
  return resolved;
}

}  // namespace trainyard
