// SPDX-License-Identifier: Apache-2.0
#include "scenario/preset_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/text.h"

namespace trainyard {
namespace {

using Kind = PresetKey::Kind;

constexpr double kMost = 1e9;  // seconds: 31 years

constexpr PresetKey Flag(std::string_view table, std::string_view key, bool fallback) {
  return {.table = table, .key = key, .kind = Kind::kFlag, .fallback = fallback ? "true" : "false"};
}
constexpr PresetKey SecondsKey(std::string_view table, std::string_view key) {
  return {.table = table, .key = key, .kind = Kind::kSeconds, .fallback = "0", .most = kMost};
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
    Choice("clock", "mode", "every_event|spacing|rounds|arrivals"),
    SecondsKey("clock", "length"),
    PresetKey{.table = "clock", .key = "anchor", .kind = Kind::kAnchor, .most = kMost},
    Choice("clock", "lone", "delayed|started|submits"),
    SecondsKey("handover", "window"),
    Flag("handover", "before_submit", true),
    Choice("rules", "preempt", "sound|published"),
    SecondsKey("rules", "preempt_min_runtime"),
    Choice("ledger", "work", "auto|iterations|duration|stages|sensitivity|loader"),
    Choice("ledger", "speed", "matrix|scalar|proportional"),
    Number("ledger", "storage_mbps", "0", 0, 1e6),
    Choice("ledger", "quantum", "none|second|iteration_per_round"),
    Number("ledger", "rate_factor", "1", 1e-6, 1e6),
    Flag("ledger", "every_instant", false),
    Flag("ledger", "true_instants", false),
    Choice("debt", "charge", "none|start|change|every_instant|every_arrival"),
    Choice("debt", "pay", "delay|interval|at_end"),
    Flag("debt", "group_sum", false),
    Flag("debt", "in_forecast", true),
    Number("debt", "restart_every", "0", 0, kMost),
    Flag("debt", "warm_sets", false),
    Choice("stages", "order", "best|worst"),
    Choice("stages", "phases", "4|3"),
    Number("stages", "slowdown_1", "1", 1e-3, 1e3),
    Number("stages", "slowdown_2", "1", 1e-3, 1e3),
    Number("stages", "slowdown_3", "1", 1e-3, 1e3),
    Number("stages", "slowdown_4", "1", 1e-3, 1e3),
    Choice("overhead", "model", "table|formula"),
    PresetKey{.table = "overhead", .key = "restart", .kind = Kind::kSeconds, .most = kMost},
    SecondsKey("overhead", "base"),
    SecondsKey("overhead", "per_doubling"),
    SecondsKey("overhead", "full_restart"),
    Number("overhead", "large_cluster", "0", 0, kMost),
    SecondsKey("overhead", "large_base"),
    SecondsKey("overhead", "large_full_restart"),
    SecondsKey("overhead.fallback", "start"),
    SecondsKey("overhead.fallback", "restart"),
    SecondsKey("overhead.fallback", "resize"),
    SecondsKey("overhead.fallback", "migrate"),
    SecondsKey("overhead.models.*", "start"),
    SecondsKey("overhead.models.*", "restart"),
    SecondsKey("overhead.models.*", "resize"),
    SecondsKey("overhead.models.*", "migrate"),
    PresetKey{.table = "overhead.by_gpus.*", .key = "*", .kind = Kind::kSeconds, .most = kMost},
    Choice("end", "finish", "exact|ceil_second|floor_second|round_end"),
    Flag("end", "by_plan", false),
    Flag("end", "without_gpus", false),
    Number("end", "join_relative", "0", 0, 1),
    SecondsKey("end", "join_absolute"),
    Flag("end", "join_by_priority", false),
    Flag("end", "found_late", false),
    Choice("end", "release", "at_end|at_instant"),
    PresetKey{.table = "run", .key = "track", .kind = Kind::kRows, .fallback = "all"},
    Choice("metrics", "end", "exact|logged"),
    Choice("metrics", "deadline", "same|exact"),
    Text("defaults", "policy", "fifo"),
    Text("defaults", "placement", "consolidated"),
    Text("defaults", "admission", "all"),
    Text("placements", "*"),
    Text("admissions", "*"),
    Text("policies.*", "policy"),
    Text("policies.*", "placement"),
    Text("policies.*", "admission"),
    Choice("policies.*.walk", "misfit", "skip|stop|evict_tail"),
    Flag("policies.*.walk", "preempt", true),
    Flag("policies.*.walk", "keep_running", true),
    Flag("policies.*.walk", "count_first", false),
    Flag("policies.*.walk", "largest_first", false),
    Choice("policies.*.walk", "former_rank", "no|keys|submits"),
};

// Tables whose values a policy may have for itself.
constexpr std::array<std::string_view, 9> kOfOnePolicy{
    "clock", "handover", "rules", "ledger", "debt", "stages", "overhead", "end", "metrics"};

const PresetKey* FindKey(std::string_view table, std::string_view key) {
  const auto found = std::find_if(kKeys.begin(), kKeys.end(), [&](const PresetKey& known) {
    return known.table == table && (known.key == key || known.key == "*");
  });
  return found == kKeys.end() ? nullptr : &*found;
}

// The part of a table's name that follows `table`, where it lies in it: "models" of
// "overhead.models.*" in "overhead".
std::optional<std::string_view> PartIn(std::string_view table, std::string_view inner) {
  if (!table.empty() && inner.starts_with(table) && inner.size() > table.size() &&
      inner[table.size()] == '.') {
    inner.remove_prefix(table.size() + 1);
  } else if (!table.empty() || inner.empty()) {
    return std::nullopt;
  }
  return inner.substr(0, inner.find('.'));
}

std::string Within(std::string_view table, std::string_view part) {
  return fmt::format("{}{}{}", table, table.empty() ? "" : ".", part);
}

// The name in kKeys of the table `key` in `table`; empty: there is none.
std::string InnerTable(std::string_view table, std::string_view key) {
  for (const PresetKey& known : kKeys) {
    if (const std::optional<std::string_view> part = PartIn(table, known.table);
        part && (*part == key || *part == "*")) {
      return Within(table, *part);
    }
  }
  const bool own = table == "policies.*" &&
                   std::find(kOfOnePolicy.begin(), kOfOnePolicy.end(), key) != kOfOnePolicy.end();
  return own ? std::string(key) : "";
}

void AddOnce(std::vector<std::string_view>& names, std::string_view name) {
  if (name != "*" && std::find(names.begin(), names.end(), name) == names.end()) {
    names.push_back(name);
  }
}

// Keys and tables that may stand in a table.
std::vector<std::string_view> KnownIn(std::string_view table, bool of_one_policy) {
  std::vector<std::string_view> names;
  for (const PresetKey& known : kKeys) {
    if (known.table == table) {
      AddOnce(names, known.key);
    } else if (const auto part = PartIn(table, known.table); part && !of_one_policy) {
      AddOnce(names, *part);
    }
  }
  if (table == "policies.*") {
    names.insert(names.end(), kOfOnePolicy.begin(), kOfOnePolicy.end());
  }
  return names;
}

class KeyWalk {
 public:
  KeyWalk(const std::string& file, const std::function<Status(const PresetValue&)>& look)
      : file_(file), look_(look) {}

  // `table`: its name in kKeys; `shown`: as it stands in the file; `of_one_policy`: it stands in a
  // policy's table in place of a table of the top level.
  // NOLINTNEXTLINE(misc-no-recursion): as deep as the file
  Status Visit(const TomlTable& values, const std::string& table, const std::string& shown,
               bool of_one_policy = false) const {
    const std::string name = shown.empty() ? "top-level" : "[" + shown + "]";
    const TomlSection section(file_, name, values);
    for (const TomlEntry& entry : values.entries) {
      Status status;
      if (const PresetKey* key = FindKey(table, entry.key)) {
        status = VisitValue(section, *key, name, entry);
      } else if (const std::string inner = InnerTable(table, entry.key);
                 !inner.empty() && !of_one_policy) {
        const bool own = table == "policies.*" && !inner.starts_with(table);
        const TomlTable* const inside = entry.value.table();
        status = inside == nullptr
                     ? section.BadAt(entry.line, fmt::format("'{}' is no table; expected [{}]",
                                                             entry.key, Within(shown, entry.key)))
                     : Visit(*inside, inner, Within(shown, entry.key), own);
      } else {
        status = section.BadAt(
            entry.line, UnknownName(name + " key", entry.key, KnownIn(table, of_one_policy)));
      }
      if (!status.ok()) {
        return status;
      }
    }
    return {};
  }

 private:
  Status VisitValue(const TomlSection& section, const PresetKey& key, const std::string& table,
                    const TomlEntry& entry) const {
    if (!entry.value.AsText()) {
      return section.BadAt(entry.line, fmt::format("{} '{}' is a {}; expected {}", table, entry.key,
                                                   entry.value.list() == nullptr ? "table" : "list",
                                                   KindName(key.kind)));
    }
    const std::optional<double> gpus = ToNumber(entry.key);
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
  const PresetKey* const found = FindKey(table == "walk" ? "policies.*.walk" : table, key);
  CHECK(found != nullptr);
  return *found;
}

std::vector<std::string_view> ChoicesOf(const PresetKey& key) { return Split(key.choices, "|"); }

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
        return ReplaceAll(ReplaceAll(std::move(text), "e+0", "e"), "e-0", "e-");
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
    const std::optional<double> factor = ToNumber(text.substr(0, star));
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
      const std::string_view near = NearestName(text, choices);
      return "one of " + Join(choices, ", ") +
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

Status ForEachPresetValue(const std::string& file, const TomlTable& root,
                          const std::function<Status(const PresetValue&)>& look) {
  return KeyWalk(file, look).Visit(root, "", "");
}

}  // namespace trainyard
