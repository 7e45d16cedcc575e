// SPDX-License-Identifier: Apache-2.0
#include "scenario/preset_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"

namespace trainyard::scenario {
namespace {

using Kind = PresetKey::Kind;
using Draft = PresetDraft;

constexpr double kMost = 1e9;  // seconds: 31 years
constexpr double kLeastSlower = 1e-6;

std::size_t ChoiceAt(const PresetKey& key, const std::string& text) {
  const std::vector<std::string_view> choices = ChoicesOf(key);
  const auto found = std::find(choices.begin(), choices.end(), text);
  CHECK(found != choices.end());
  return static_cast<std::size_t>(found - choices.begin());
}

// The value that a text stands for, as the type of its place wants it.
double NumberIn(const std::string& text) { return ProductOf(text).value_or(0); }
void Store(const PresetKey& /*key*/, const std::string& text, double& value) {
  value = NumberIn(text);
}
void Store(const PresetKey& /*key*/, const std::string& text, Duration& value) {
  value = FromSeconds(NumberIn(text));
}
void Store(const PresetKey& /*key*/, const std::string& text, std::optional<Duration>& value) {
  value = FromSeconds(NumberIn(text));
}
// A count: whole, and at least 1 where it is not 0.
void Store(const PresetKey& /*key*/, const std::string& text, int& value) {
  const double number = NumberIn(text);
  value = number <= 0 ? 0 : static_cast<int>(std::max(std::round(number), 1.0));
}
// A choice between two: whether it is the second one.
void Store(const PresetKey& key, const std::string& text, bool& value) {
  value = key.kind == Kind::kFlag ? text == "1" : ChoiceAt(key, text) == 1;
}
template <typename Enum>
void Store(const PresetKey& key, const std::string& text, Enum& value) {
  static_assert(std::is_enum_v<Enum>);
  value = static_cast<Enum>(ChoiceAt(key, text));
}

// `Place`: a function to the address of the value's place, from the rules, the preset or the draft.
template <typename Place>
void PutAt(const PresetKey& key, const std::string& text, Draft& draft) {
  if constexpr (std::is_invocable_v<Place, model::Rules&>) {
    Store(key, text, *Place{}(draft.preset.rules));
  } else if constexpr (std::is_invocable_v<Place, ResolvedPreset&>) {
    Store(key, text, *Place{}(draft.preset));
  } else {
    Store(key, text, *Place{}(draft));
  }
}

// Seconds; `arrival`: rounds at multiples of their length, of which the first one to decide
// anything is that at or after the first submit.
void PutAnchor(const PresetKey& /*key*/, const std::string& text, Draft& draft) {
  draft.preset.rules.clock.anchor = AtSeconds(text == "arrival" ? 0 : NumberIn(text));
}

void PutTrack(const PresetKey& /*key*/, const std::string& text, Draft& draft) {
  draft.preset.track = text == "all" ? std::string() : text;
}

template <model::EndRule::Source source>
void PutSource(const PresetKey& /*key*/, const std::string& text, Draft& draft) {
  if (text == "1") {
    draft.preset.rules.end.source = source;
  }
}

void PutPhases(const PresetKey& /*key*/, const std::string& text, Draft& draft) {
  draft.preset.stages.long_loading = text == "4";
}

Walk& WalkOf(ResolvedPreset& preset) { return preset.walk ? *preset.walk : preset.walk.emplace(); }

constexpr PresetKey Flag(std::string_view table, std::string_view key, bool fallback) {
  return {.table = table, .key = key, .kind = Kind::kFlag, .fallback = fallback ? "true" : "false"};
}
constexpr PresetKey SecondsKey(std::string_view table, std::string_view key,
                               std::string_view fallback = "0") {
  return {.table = table, .key = key, .kind = Kind::kSeconds, .fallback = fallback, .most = kMost};
}
constexpr PresetKey Choice(std::string_view table, std::string_view key, std::string_view choices) {
  return {.table = table,
          .key = key,
          .kind = Kind::kChoice,
          .fallback = choices.substr(0, choices.find('|')),
          .choices = choices};
}
constexpr PresetKey Number(std::string_view table, std::string_view key, std::string_view fallback,
                           double least, double most) {
  return {.table = table,
          .key = key,
          .kind = Kind::kNumber,
          .fallback = fallback,
          .least = least,
          .most = most};
}
constexpr PresetKey Text(std::string_view table, std::string_view key,
                         std::string_view fallback = {}) {
  return {.table = table, .key = key, .kind = Kind::kText, .fallback = fallback};
}
template <typename Place>
constexpr PresetKey Into(PresetKey key, Place /*place*/) {
  key.put = PutAt<Place>;
  return key;
}
constexpr PresetKey By(decltype(PresetKey::put) put, PresetKey key) {
  key.put = put;
  return key;
}

constexpr std::array kKeys{
    Text("", "base"),
    Text("", "name"),
    Text("", "summary"),
    Text("", "source"),
    PresetKey{.table = "options.*", .key = "default", .kind = Kind::kScalar},
    Text("options.*", "help"),
    Choice("options.*", "kind", "number|text"),
    PresetKey{.table = "options.*.values", .key = "*", .kind = Kind::kScalar},
    SecondsKey("trace", "unit"),
    Into(Choice("clock", "mode", "every_event|spacing|rounds|arrivals"),
         [](model::Rules& r) { return &r.clock.mode; }),
    Into(SecondsKey("clock", "length"), [](model::Rules& r) { return &r.clock.length; }),
    By(PutAnchor, {.table = "clock", .key = "anchor", .kind = Kind::kAnchor, .most = kMost}),
    Into(Choice("clock", "lone", "delayed|started|submits"),
         [](model::Rules& r) { return &r.published.lone_fact; }),
    Into(SecondsKey("handover", "window"), [](ResolvedPreset& p) { return &p.handover_window; }),
    Into(Flag("handover", "before_submit", true),
         [](ResolvedPreset& p) { return &p.early_handover; }),
    Into(Choice("rules", "preempt", "sound|published"),
         [](model::Rules& r) { return &r.preemption.rule; }),
    Into(SecondsKey("rules", "preempt_min_runtime"),
         [](model::Rules& r) { return &r.preemption.min_runtime; }),
    Into(Choice("ledger", "work", "auto|iterations|duration|stages|sensitivity|loader|trainings"),
         [](ResolvedPreset& p) { return &p.work; }),
    Into(Choice("ledger", "speed", "matrix|scalar|proportional"),
         [](ResolvedPreset& p) { return &p.sensitivity.speed; }),
    Into(Number("ledger", "storage_mbps", "0", 0, 1e6),
         [](ResolvedPreset& p) { return &p.sensitivity.storage_mbps_per_gpu; }),
    Into(Choice("ledger", "quantum", "none|second|iteration_per_round"),
         [](model::Rules& r) { return &r.quantum; }),
    Into(Number("ledger", "rate_factor", "1", 1e-6, 1e6),
         [](ResolvedPreset& p) { return &p.rate_factor; }),
    Into(Flag("ledger", "every_instant", false),
         [](model::Rules& r) { return &r.published.every_instant; }),
    Into(Flag("ledger", "true_instants", false),
         [](model::Rules& r) { return &r.published.true_instants; }),
    Into(Choice("debt", "charge", "none|start|change|every_instant|every_arrival"),
         [](model::Rules& r) { return &r.debt.charge; }),
    Into(Choice("debt", "pay", "delay|interval|at_end"),
         [](model::Rules& r) { return &r.debt.pay; }),
    Into(Flag("debt", "group_sum", false), [](model::Rules& r) { return &r.published.group_sum; }),
    Into(Flag("debt", "in_forecast", true),
         [](model::Rules& r) { return &r.published.debt_in_forecast; }),
    Into(Number("debt", "restart_every", "0", 0, kMost),
         [](model::Rules& r) { return &r.published.restart_every; }),
    Into(Flag("debt", "warm_sets", false), [](model::Rules& r) { return &r.published.warm_sets; }),
    Into(Choice("stages", "order", "best|worst"),
         [](ResolvedPreset& p) { return &p.stages.order; }),
    By(PutPhases, Choice("stages", "phases", "4|3")),
    Into(Choice("stages", "gaps", "left|published"),
         [](ResolvedPreset& p) { return &p.stages.published_gaps; }),
    Into(Number("stages", "slowdown_1", "1", 1e-3, 1e3),
         [](ResolvedPreset& p) { return &p.stages.slowdown[0]; }),
    Into(Number("stages", "slowdown_2", "1", 1e-3, 1e3),
         [](ResolvedPreset& p) { return &p.stages.slowdown[1]; }),
    Into(Number("stages", "slowdown_3", "1", 1e-3, 1e3),
         [](ResolvedPreset& p) { return &p.stages.slowdown[2]; }),
    Into(Number("stages", "slowdown_4", "1", 1e-3, 1e3),
         [](ResolvedPreset& p) { return &p.stages.slowdown[3]; }),
    Into(Flag("trainings", "whole_seconds", false),
         [](ResolvedPreset& p) { return &p.trainings.whole_seconds; }),
    Into(Number("trainings.applications.*", "most_part", "0", 0, kMost),
         [](Draft& d) { return &d.preset.trainings.applications[d.model].most_part; }),
    Into(Number("trainings.applications.*", "fixed_batch", "0", 0, kMost),
         [](Draft& d) { return &d.preset.trainings.applications[d.model].fixed_batch; }),
    Into(Number("trainings.applications.*", "slower", "1", kLeastSlower, kMost),
         [](Draft& d) { return &d.preset.trainings.applications[d.model].slower; }),
    Into(Choice("overhead", "model", "table|formula"), [](Draft& d) { return &d.by_formula; }),
    Into(SecondsKey("overhead", "restart", ""), [](Draft& d) { return &d.restart; }),
    Into(SecondsKey("overhead", "base"), [](Draft& d) { return &d.formula.base; }),
    Into(SecondsKey("overhead", "per_doubling"), [](Draft& d) { return &d.formula.per_doubling; }),
    Into(SecondsKey("overhead", "full_restart"), [](Draft& d) { return &d.formula.full_restart; }),
    Into(Number("overhead", "large_cluster", "0", 0, kMost),
         [](Draft& d) { return &d.formula.large_cluster; }),
    Into(SecondsKey("overhead", "large_base"), [](Draft& d) { return &d.formula.large_base; }),
    Into(SecondsKey("overhead", "large_full_restart"),
         [](Draft& d) { return &d.formula.large_full_restart; }),
    Into(SecondsKey("overhead.fallback", "start"),
         [](Draft& d) { return &d.table.fallback.start; }),
    Into(SecondsKey("overhead.fallback", "restart"),
         [](Draft& d) { return &d.table.fallback.restart; }),
    Into(SecondsKey("overhead.fallback", "resize"),
         [](Draft& d) { return &d.table.fallback.resize; }),
    Into(SecondsKey("overhead.fallback", "migrate"),
         [](Draft& d) { return &d.table.fallback.migrate; }),
    Into(SecondsKey("overhead.models.*", "start"),
         [](Draft& d) { return &d.table.models[d.model].start; }),
    Into(SecondsKey("overhead.models.*", "restart"),
         [](Draft& d) { return &d.table.models[d.model].restart; }),
    Into(SecondsKey("overhead.models.*", "resize"),
         [](Draft& d) { return &d.table.models[d.model].resize; }),
    Into(SecondsKey("overhead.models.*", "migrate"),
         [](Draft& d) { return &d.table.models[d.model].migrate; }),
    Into(SecondsKey("overhead.by_gpus.*", "*", ""),
         [](Draft& d) { return &d.table.by_gpus[d.model][d.gpus]; }),
    Into(Choice("end", "finish", "exact|ceil_second|floor_second|round_end"),
         [](model::Rules& r) { return &r.end.finish; }),
    By(PutSource<model::EndRule::Source::kPlanned>, Flag("end", "by_plan", false)),
    Into(Flag("end", "without_gpus", false),
         [](model::Rules& r) { return &r.published.ends_without_gpus; }),
    Into(Number("end", "join_relative", "0", 0, 1),
         [](model::Rules& r) { return &r.published.join_relative; }),
    Into(SecondsKey("end", "join_absolute"),
         [](model::Rules& r) { return &r.published.join_absolute; }),
    Into(Flag("end", "join_by_priority", false),
         [](model::Rules& r) { return &r.published.join_by_priority; }),
    By(PutSource<model::EndRule::Source::kFound>, Flag("end", "found_late", false)),
    Into(Choice("end", "release", "at_end|at_instant"),
         [](model::Rules& r) { return &r.end.release_at_instant; }),
    By(PutTrack, {.table = "run", .key = "track", .kind = Kind::kRows, .fallback = "all"}),
    Into(Choice("metrics", "end", "exact|logged"),
         [](ResolvedPreset& p) { return &p.uses_logged_end; }),
    Into(Choice("metrics", "deadline", "same|exact"),
         [](ResolvedPreset& p) { return &p.exact_deadlines; }),
    Text("defaults", "policy", "fifo"),
    Text("defaults", "placement", "consolidated"),
    Text("defaults", "admission", "all"),
    Text("placements", "*"),
    Text("admissions", "*"),
    Text("policies.*", "policy"),
    Text("policies.*", "placement"),
    Text("policies.*", "admission"),
    Into(Choice("policies.*.walk", "misfit", "skip|stop|reserve|evict_tail"),
         [](ResolvedPreset& p) { return &WalkOf(p).misfit; }),
    Into(Flag("policies.*.walk", "preempt", true),
         [](ResolvedPreset& p) { return &WalkOf(p).preempt; }),
    Into(Flag("policies.*.walk", "keep_running", true),
         [](ResolvedPreset& p) { return &WalkOf(p).keep_running; }),
    Into(Flag("policies.*.walk", "count_first", false),
         [](ResolvedPreset& p) { return &WalkOf(p).count_first; }),
    Into(Flag("policies.*.walk", "largest_first", false),
         [](ResolvedPreset& p) { return &WalkOf(p).largest_first; }),
    Into(Choice("policies.*.walk", "former_rank", "no|keys|submits"),
         [](ResolvedPreset& p) { return &WalkOf(p).former_rank; }),
};

// Tables whose values a policy may have for itself.
constexpr std::array<std::string_view, 9> kOfOnePolicy{
    "clock", "handover", "rules", "ledger", "debt", "stages", "overhead", "end", "metrics"};

constexpr std::string_view kPolicy = "policies.*";

bool MayBeOfOnePolicy(std::string_view table) {
  return std::find(kOfOnePolicy.begin(), kOfOnePolicy.end(), table) != kOfOnePolicy.end();
}

std::string Within(std::string_view table, std::string_view part) {
  return fmt::format("{}{}{}", table, table.empty() ? "" : ".", part);
}

// The first part of the name of a table that lies in `table`: "models" of "overhead.models.*" in
// "overhead". Empty: it does not.
std::string_view PartIn(std::string_view table, std::string_view inner) {
  const std::string within = Within(table, "");
  if (!inner.starts_with(within)) {
    return {};
  }
  inner.remove_prefix(within.size());
  return inner.substr(0, inner.find('.'));
}

// The table whose keys may stand in `table`: "clock" for "policies.*.clock".
std::string_view KeysOf(std::string_view table) {
  const std::string_view own = table.substr(std::min(table.size(), kPolicy.size() + 1));
  return table.starts_with(kPolicy) && MayBeOfOnePolicy(own) ? own : table;
}

const PresetKey* FindKey(std::string_view table, std::string_view key) {
  const auto found = std::find_if(kKeys.begin(), kKeys.end(), [&](const PresetKey& known) {
    return known.table == KeysOf(table) && (known.key == key || known.key == "*");
  });
  return found == kKeys.end() ? nullptr : &*found;
}

// The name in kKeys of the table `key` in `table`; empty: there is none.
std::string InnerTable(std::string_view table, std::string_view key) {
  for (const PresetKey& known : kKeys) {
    if (const std::string_view part = PartIn(table, known.table);
        !part.empty() && (part == key || part == "*")) {
      return Within(table, part);
    }
  }
  return table == kPolicy && MayBeOfOnePolicy(key) ? Within(table, key) : "";
}

// Keys and tables that may stand in a table.
std::vector<std::string_view> KnownIn(std::string_view table) {
  std::vector<std::string_view> names;
  for (const PresetKey& known : kKeys) {
    const std::string_view name =
        known.table == KeysOf(table) ? known.key : PartIn(table, known.table);
    if (!name.empty() && name != "*" &&
        std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  if (table == kPolicy) {
    names.insert(names.end(), kOfOnePolicy.begin(), kOfOnePolicy.end());
  }
  return names;
}

class KeyWalk {
 public:
  KeyWalk(const std::string& file, const std::function<Status(const PresetValue&)>& look)
      : file_(file), look_(look) {}

  // `table`: its name in kKeys; `shown`: as it stands in the file.
  // NOLINTNEXTLINE(misc-no-recursion): as deep as the file
  Status Visit(const io::TomlTable& values, const std::string& table,
               const std::string& shown) const {
    const std::string name = shown.empty() ? "top-level" : "[" + shown + "]";
    const io::TomlSection section(file_, name, values);
    for (const io::TomlEntry& entry : values.entries) {
      if (const PresetKey* key = FindKey(table, entry.key)) {
        RETURN_IF_ERROR(VisitValue(section, *key, name, entry));
        continue;
      }
      const std::string inner = InnerTable(table, entry.key);
      if (inner.empty()) {
        return section.BadAt(entry.line,
                             base::UnknownName(name + " key", entry.key, KnownIn(table)));
      }
      const io::TomlTable* const inside = entry.value.table();
      if (inside == nullptr) {
        return section.BadAt(entry.line, fmt::format("'{}' is no table; expected [{}]", entry.key,
                                                     Within(shown, entry.key)));
      }
      RETURN_IF_ERROR(Visit(*inside, inner, Within(shown, entry.key)));
    }
    return {};
  }

 private:
  Status VisitValue(const io::TomlSection& section, const PresetKey& key, const std::string& table,
                    const io::TomlEntry& entry) const {
    if (!entry.value.AsText()) {
      return section.BadAt(entry.line, fmt::format("{} '{}' is a {}; expected {}", table, entry.key,
                                                   entry.value.list() == nullptr ? "table" : "list",
                                                   KindName(key.kind)));
    }
    const std::optional<double> gpus = base::ToNumber(entry.key);
    if (key.table == "overhead.by_gpus.*" && (!gpus || *gpus < 1 || *gpus != std::floor(*gpus))) {
      return section.BadAt(entry.line, fmt::format("{} has the key '{}'; expected a number of GPUs",
                                                   table, entry.key));
    }
    return look_({.key = key, .table = table, .entry = entry});
  }

  const std::string& file_;
  const std::function<Status(const PresetValue&)>& look_;
};

bool IsRows(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto digits = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return text == "all" || (dash != std::string_view::npos && digits(text.substr(0, dash)) &&
                           digits(text.substr(dash + 1)));
}

}  // namespace

std::span<const PresetKey> PresetKeys() { return kKeys; }

const PresetKey& PresetKeyOf(std::string_view table, std::string_view key) {
  const PresetKey* const found = FindKey(table, key);
  CHECK(found != nullptr);
  return *found;
}

std::vector<std::string_view> ChoicesOf(const PresetKey& key) {
  return base::Split(key.choices, "|");
}

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kFlag:
      return "flag";
    case Kind::kNumber:
      return "number";
    case Kind::kSeconds:
      return "seconds";
    case Kind::kAnchor:
      return "seconds or `arrival`";
    case Kind::kChoice:
      return "choice";
    case Kind::kRows:
      return "rows";
    case Kind::kText:
      return "text";
    case Kind::kScalar:
      return "text, number or flag";
  }
  return "";
}

std::string BoundsText(const PresetKey& key) {
  switch (key.kind) {
    case Kind::kNumber:
    case Kind::kSeconds:
    case Kind::kAnchor: {
      const auto shown = [](double bound) {
        std::string text = fmt::format("{:g}", bound);
        return base::ReplaceAll(base::ReplaceAll(std::move(text), "e+0", "e"), "e-0", "e-");
      };
      return shown(key.least) + " to " + shown(key.most);
    }
    case Kind::kChoice: {
      std::string text;
      for (const std::string_view choice : ChoicesOf(key)) {
        text += fmt::format("{}`{}`", text.empty() ? "" : ", ", choice);
      }
      return text;
    }
    case Kind::kFlag:
      return "`true`, `false`";
    case Kind::kRows:
      return "`all`, FIRST-LAST";
    case Kind::kText:
    case Kind::kScalar:
      return "";
  }
  return "";
}

std::optional<double> ProductOf(std::string_view text) {
  double product = 1;
  for (std::size_t star = 0; star != std::string_view::npos;
       text.remove_prefix(star == std::string_view::npos ? text.size() : star + 1)) {
    star = text.find('*');
    const std::optional<double> factor = base::ToNumber(text.substr(0, star));
    if (!factor) {
      return std::nullopt;
    }
    product *= *factor;
  }
  return product;
}

std::optional<std::string> WhatIsExpected(const PresetKey& key, const std::string& text) {
  const auto within = [&key](const std::optional<double>& number) {
    return number && *number >= key.least && *number <= key.most;  // not true of NaN
  };
  switch (key.kind) {
    case Kind::kFlag:
      return text == "1" || text == "0" ? std::nullopt
                                        : std::optional<std::string>("true or false");
    case Kind::kNumber:
      return within(ProductOf(text)) ? std::nullopt
                                     : std::optional("a number from " + BoundsText(key));
    case Kind::kSeconds:
      return within(ProductOf(text)) ? std::nullopt
                                     : std::optional("seconds from " + BoundsText(key));
    case Kind::kAnchor:
      return text == "arrival" || within(ProductOf(text))
                 ? std::nullopt
                 : std::optional("seconds from " + BoundsText(key) + ", or 'arrival'");
    case Kind::kChoice: {
      const std::vector<std::string_view> choices = ChoicesOf(key);
      if (std::find(choices.begin(), choices.end(), text) != choices.end()) {
        return std::nullopt;
      }
      const std::string_view near = base::NearestName(text, choices);
      return "one of " + base::Join(choices, ", ") +
             (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?");
    }
    case Kind::kRows:
      return IsRows(text) ? std::nullopt : std::optional<std::string>("all, or rows FIRST-LAST");
    case Kind::kText:
      return text.empty() ? std::optional<std::string>("a text") : std::nullopt;
    case Kind::kScalar:
      return std::nullopt;
  }
  return std::nullopt;
}

Status ForEachPresetValue(const std::string& file, const io::TomlTable& root,
                          const std::function<Status(const PresetValue&)>& look) {
  return KeyWalk(file, look).Visit(root, "", "");
}

}  // namespace trainyard::scenario
