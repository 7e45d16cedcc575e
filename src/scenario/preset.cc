// SPDX-License-Identifier: Apache-2.0
#include "scenario/preset.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <mutex>
#include <optional>
#include <set>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/check.h"
#include "base/text.h"
#include "catalog/catalog.h"

// NOLINTBEGIN(readability-identifier-naming): symbols of the embedded files
extern "C" {
extern const char preset_blox_begin;
extern const char preset_blox_end;
extern const char preset_chronus_begin;
extern const char preset_chronus_end;
extern const char preset_elasticflow_begin;
extern const char preset_elasticflow_end;
extern const char preset_muri_begin;
extern const char preset_muri_end;
extern const char preset_sound_begin;
extern const char preset_sound_end;
extern const char preset_synergy_begin;
extern const char preset_synergy_end;
extern const char preset_tiresias_begin;
extern const char preset_tiresias_end;
extern const char preset_torchloader_begin;
extern const char preset_torchloader_end;
}
// NOLINTEND(readability-identifier-naming)

namespace trainyard {
namespace {

struct EmbeddedPreset {
  std::string_view name;
  const char* begin;
  const char* end;
};
const std::array kPresets{
    EmbeddedPreset{"blox", &preset_blox_begin, &preset_blox_end},
    EmbeddedPreset{"chronus", &preset_chronus_begin, &preset_chronus_end},
    EmbeddedPreset{"elasticflow", &preset_elasticflow_begin, &preset_elasticflow_end},
    EmbeddedPreset{"muri", &preset_muri_begin, &preset_muri_end},
    EmbeddedPreset{"sound", &preset_sound_begin, &preset_sound_end},
    EmbeddedPreset{"synergy", &preset_synergy_begin, &preset_synergy_end},
    EmbeddedPreset{"tiresias", &preset_tiresias_begin, &preset_tiresias_end},
    EmbeddedPreset{"torchloader", &preset_torchloader_begin, &preset_torchloader_end},
};
constexpr std::array<std::string_view, 8> kNames{"blox",  "chronus", "elasticflow", "muri",
                                                 "sound", "synergy", "tiresias",    "torchloader"};

Result<toml::table> Parse(const EmbeddedPreset& preset) {
  const std::string file = "presets/" + std::string(preset.name) + ".toml";
  toml::parse_result parsed = toml::parse(
      std::string_view(preset.begin, static_cast<std::size_t>(preset.end - preset.begin)), file);
  if (!parsed) {
    return Failed(file + ":" + std::to_string(parsed.error().source().begin.line) + ": " +
                  std::string(parsed.error().description()));
  }
  return std::move(parsed).table();
}

// Parsed once in the life of the program.
Result<const toml::table*> ParsePreset(std::string_view name) {
  static std::array<std::once_flag, kPresets.size()> once;
  static std::array<std::optional<Result<toml::table>>, kPresets.size()> parsed;
  for (std::size_t i = 0; i < kPresets.size(); ++i) {
    if (kPresets[i].name == name) {
      std::call_once(once[i], [i] { parsed[i] = Parse(kPresets[i]); });
      return parsed[i]->ok() ? Result<const toml::table*>(&parsed[i]->value()) : parsed[i]->error();
    }
  }
  return InvalidArgument(UnknownName("preset", name, kNames));
}

// A scalar of the file as text, so that it can be a reference to an option ("$slot").
std::string TextOf(const toml::node& node) {
  if (const auto text = node.value<std::string>(); text && node.is_string()) {
    return *text;
  }
  if (const auto flag = node.value<bool>(); flag && node.is_boolean()) {
    return *flag ? "1" : "0";
  }
  if (const auto whole = node.value<std::int64_t>(); whole && node.is_integer()) {
    return std::to_string(*whole);
  }
  std::array<char, 32> text{};  // the shortest form that reads back as the same number
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), node.value<double>().value_or(0));
  CHECK(error == std::errc{});
  return {text.data(), end};
}

std::vector<std::string_view> KeysOf(const toml::table& table) {
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : table) {
    keys.push_back(key.str());
  }
  return keys;
}

// "20*60" is 1200; nothing if a factor is no number.
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

Error NotPositive(const std::string& preset, const std::string& key, const std::string& value) {
  return InvalidArgument("preset '" + preset + "': option '" + key + "' is '" + value +
                         "'; expected a number > 0");
}

// The values of one preset for one policy. Every value asked for must exist or have a default; the
// first mistake is kept in status().
class Values {
 public:
  Values(const toml::table& root, const toml::table* policy, const NamedOptions& given)
      : root_(root), policy_(policy) {
    std::vector<std::string> keys;
    if (const toml::table* options = root["options"].as_table()) {
      for (const auto& [key, option] : *options) {
        keys.emplace_back(key.str());
        if ((*option.as_table())["kind"].value_or(std::string()) == "text") {
          texts_.insert(keys.back());
        }
        options_[keys.back()] = TextOf(*option.as_table()->get("default"));
        if (const toml::table* values = (*option.as_table())["values"].as_table()) {
          values_[keys.back()] = values;
        }
      }
    }
    const std::vector<std::string_view> known(keys.begin(), keys.end());
    for (const auto& [key, value] : given.values) {
      if (options_.find(key) == options_.end()) {
        Fail(InvalidArgument("preset '" + given.name + "': " + UnknownName("option", key, known)));
      } else {
        Set(given.name, key, value);
      }
    }
    for (const auto& [key, values] : values_) {
      if (const toml::node* meaning = values->get(options_[key])) {
        options_[key] = TextOf(*meaning);
      }
    }
  }

  [[nodiscard]] const Status& status() const { return status_; }

  // The text with "$option" replaced by the option's value.
  [[nodiscard]] std::string Substitute(std::string text) const {
    // From the last to the first, so that an option whose name begins with another's comes before
    // it.
    for (auto option = options_.rbegin(); option != options_.rend(); ++option) {
      text = ReplaceAll(std::move(text), "$" + option->first, option->second);
    }
    return text;
  }

  [[nodiscard]] std::optional<std::string> Text(std::string_view section,
                                                std::string_view key) const {
    const toml::node* node = policy_ != nullptr ? Find(*policy_, section, key) : nullptr;
    node = node == nullptr ? Find(root_, section, key) : node;
    return node == nullptr ? std::nullopt : std::optional<std::string>(Substitute(TextOf(*node)));
  }

  double Number(std::string_view section, std::string_view key, double fallback) {
    const std::optional<std::string> text = Text(section, key);
    if (!text) {
      return fallback;
    }
    const std::optional<double> number = ProductOf(*text);
    if (!number) {
      Fail(Failed(std::string(section) + "." + std::string(key) + " of the preset is '" + *text +
                  "'; expected a number or a product of numbers"));
    }
    return number.value_or(fallback);
  }
  bool Flag(std::string_view section, std::string_view key, bool fallback) {
    return Number(section, key, fallback ? 1 : 0) != 0;
  }

  template <typename Enum, std::size_t size>
  Enum Choice(std::string_view section, std::string_view key,
              const std::array<std::pair<std::string_view, Enum>, size>& choices) {
    const std::optional<std::string> text = Text(section, key);
    if (!text) {
      return choices.front().second;
    }
    for (const auto& [name, value] : choices) {
      if (name == *text) {
        return value;
      }
    }
    Fail(Failed(std::string(section) + "." + std::string(key) + " of the preset is '" + *text +
                "', which is none of its values"));
    return choices.front().second;
  }

 private:
  // A known option, if the value is one that it can have.
  void Set(const std::string& preset, const std::string& key, const std::string& value) {
    if (const auto named = values_.find(key); named != values_.end()) {
      if (named->second->get(value) == nullptr) {
        const std::string what = "value of option '" + key + "'";
        return Fail(InvalidArgument("preset '" + preset +
                                    "': " + UnknownName(what, value, KeysOf(*named->second))));
      }
    } else if (const std::optional<double> number = ToNumber(value);
               texts_.count(key) == 0 && (!number || *number <= 0)) {
      return Fail(NotPositive(preset, key, value));
    }
    options_[key] = value;
  }

  static const toml::node* Find(const toml::table& table, std::string_view section,
                                std::string_view key) {
    const toml::table* inner = table[section].as_table();
    return inner == nullptr ? nullptr : inner->get(key);
  }
  void Fail(Error error) {
    if (status_.ok()) {
      status_ = std::move(error);
    }
  }

  const toml::table& root_;
  const toml::table* policy_;
  std::map<std::string, std::string, std::less<>> options_;
  std::set<std::string> texts_;                       // options that are no numbers
  std::map<std::string, const toml::table*> values_;  // of options: what their names stand for
  Status status_;
};

// Seconds; none: the first submit; `arrival`: rounds at multiples of their length, of which the
// first one to decide anything is that at or after the first submit.
std::optional<TimePoint> AnchorOf(Values& values) {
  const std::optional<std::string> anchor = values.Text("clock", "anchor");
  if (!anchor) {
    return std::nullopt;
  }
  if (*anchor == "arrival") {
    return TimePoint{};
  }
  return AtSeconds(values.Number("clock", "anchor", 0));
}

DecisionClock ClockOf(Values& values) {
  using Mode = DecisionClock::Mode;
  using Lone = DecisionClock::Lone;
  return {
      .mode =
          values.Choice("clock", "mode",
                        std::array{std::pair{std::string_view("every_event"), Mode::kEveryEvent},
                                   std::pair{std::string_view("spacing"), Mode::kSpacing},
                                   std::pair{std::string_view("rounds"), Mode::kRounds},
                                   std::pair{std::string_view("arrivals"), Mode::kArrivals}}),
      .length = FromSeconds(values.Number("clock", "length", 0)),
      .anchor = AnchorOf(values),
      .lone = values.Choice("clock", "lone",
                            std::array{std::pair{std::string_view("delayed"), Lone::kDelayed},
                                       std::pair{std::string_view("started"), Lone::kStarted},
                                       std::pair{std::string_view("submits"), Lone::kSubmits}})};
}

// A count of decisions: whole, and at least 1 where it is given.
int RestartEvery(Values& values) {
  const double every = values.Number("debt", "restart_every", 0);
  return every <= 0 ? 0 : static_cast<int>(std::clamp(std::round(every), 1.0, 1e9));
}

Debt DebtOf(Values& values) {
  using Charge = Debt::Charge;
  using Pay = Debt::Pay;
  return {.charge = values.Choice(
              "debt", "charge",
              std::array{std::pair{std::string_view("none"), Charge::kNone},
                         std::pair{std::string_view("start"), Charge::kStart},
                         std::pair{std::string_view("change"), Charge::kChange},
                         std::pair{std::string_view("every_instant"), Charge::kEveryInstant},
                         std::pair{std::string_view("every_arrival"), Charge::kEveryArrival}}),
          .pay = values.Choice("debt", "pay",
                               std::array{std::pair{std::string_view("delay"), Pay::kDelay},
                                          std::pair{std::string_view("interval"), Pay::kInterval},
                                          std::pair{std::string_view("at_end"), Pay::kAtEnd}}),
          .in_forecast = values.Flag("debt", "in_forecast", true),
          .restart_every = RestartEvery(values),
          .group_sum = values.Flag("debt", "group_sum", false),
          .warm_sets = values.Flag("debt", "warm_sets", false)};
}

EndRule EndOf(Values& values) {
  using Finish = EndRule::Finish;
  using Release = bool;
  return {.finish = values.Choice(
              "end", "finish",
              std::array{std::pair{std::string_view("exact"), Finish::kExact},
                         std::pair{std::string_view("ceil_second"), Finish::kCeilSecond},
                         std::pair{std::string_view("floor_second"), Finish::kFloorSecond},
                         std::pair{std::string_view("round_end"), Finish::kRoundEnd}}),
          .logged_slot = FromSeconds(values.Number("end", "logged_slot", 0)),
          .logged_with_debt = values.Flag("end", "logged_with_debt", false),
          .release_at_instant =
              values.Choice("end", "release",
                            std::array{std::pair{std::string_view("at_end"), Release{false}},
                                       std::pair{std::string_view("at_instant"), Release{true}}}),
          .by_plan = values.Flag("end", "by_plan", false),
          .without_gpus = values.Flag("end", "without_gpus", false),
          .join_relative = values.Number("end", "join_relative", 0),
          .join_absolute = FromSeconds(values.Number("end", "join_absolute", 0)),
          .found_late = values.Flag("end", "found_late", false),
          .join_by_priority = values.Flag("end", "join_by_priority", false)};
}

Rules RulesOf(Values& values) {
  using Quantum = Accrual::Quantum;
  Rules rules;
  rules.clock = ClockOf(values);
  rules.accrual.quantum = values.Choice(
      "ledger", "quantum",
      std::array{std::pair{std::string_view("none"), Quantum::kNone},
                 std::pair{std::string_view("second"), Quantum::kSecond},
                 std::pair{std::string_view("iteration_per_round"), Quantum::kIterationPerRound}});
  rules.accrual.every_instant = values.Flag("ledger", "every_instant", false);
  rules.accrual.true_instants = values.Flag("ledger", "true_instants", false);
  rules.debt = DebtOf(values);
  rules.end = EndOf(values);
  using Rule = Preemption::Rule;
  rules.preemption = {
      .rule = values.Choice("rules", "preempt",
                            std::array{std::pair{std::string_view("sound"), Rule::kSound},
                                       std::pair{std::string_view("published"), Rule::kPublished}}),
      .min_runtime = FromSeconds(values.Number("rules", "preempt_min_runtime", 0))};
  return rules;
}

SensitivityRules SensitivityOf(Values& values) {
  using Speed = SensitivityRules::Speed;
  return {.speed = values.Choice(
              "ledger", "speed",
              std::array{std::pair{std::string_view("matrix"), Speed::kMatrix},
                         std::pair{std::string_view("scalar"), Speed::kScalar},
                         std::pair{std::string_view("proportional"), Speed::kProportional}}),
          .storage_mbps_per_gpu = values.Number("ledger", "storage_mbps", 0)};
}

ChangeCosts CostsOf(const toml::table& table) {
  const auto cost = [&table](std::string_view key) {
    return FromSeconds(table[key].value_or(0.0));
  };
  return {.start = cost("start"),
          .restart = cost("restart"),
          .resize = cost("resize"),
          .migrate = cost("migrate")};
}

OverheadModel OverheadsOf(const toml::table& root, Values& values) {
  if (values.Text("overhead", "model").value_or("table") == "formula") {
    return OverheadModel(OverheadFormula{
        .base = values.Number("overhead", "base", 0),
        .per_doubling = values.Number("overhead", "per_doubling", 0),
        .full_restart = values.Number("overhead", "full_restart", 0),
        .large_cluster = static_cast<int>(values.Number("overhead", "large_cluster", 0)),
        .large_base = values.Number("overhead", "large_base", 0),
        .large_full_restart = values.Number("overhead", "large_full_restart", 0)});
  }
  OverheadTable table;
  if (const toml::table* fallback = root["overhead"]["fallback"].as_table()) {
    table.fallback = CostsOf(*fallback);
  }
  table.fallback.restart =
      FromSeconds(values.Number("overhead", "restart", Seconds(table.fallback.restart)));
  if (const toml::table* models = root["overhead"]["by_gpus"].as_table()) {
    for (const auto& [model, costs] : *models) {
      for (const auto& [gpus, seconds] : *costs.as_table()) {
        table
            .by_gpus[std::string(model.str())][static_cast<int>(ToNumber(gpus.str()).value_or(0))] =
            FromSeconds(seconds.value_or(0.0));
      }
    }
  }
  if (const toml::table* models = root["overhead"]["models"].as_table()) {
    for (const auto& [model, costs] : *models) {
      table.models[std::string(model.str())] = CostsOf(*costs.as_table());
    }
  }
  return OverheadModel(std::move(table));
}

GroupTimes::Rules StagesOf(Values& values) {
  GroupTimes::Rules rules{
      .order = values.Choice("stages", "order",
                             std::array{std::pair{std::string_view("best"), StageOrder::kBest},
                                        std::pair{std::string_view("worst"), StageOrder::kWorst}}),
      .long_loading = values.Choice("stages", "phases",
                                    std::array{std::pair{std::string_view("4"), true},
                                               std::pair{std::string_view("3"), false}}),
      .slowdown = {}};
  for (std::size_t i = 0; i < rules.slowdown.size(); ++i) {
    rules.slowdown[i] = values.Number("stages", "slowdown_" + std::to_string(i + 1), 1);
  }
  return rules;
}

std::string TrackOf(const Values& values) {
  const std::string track = values.Text("run", "track").value_or("all");
  return track == "all" ? std::string() : track;
}

// Only where the preset says something about the walk.
std::optional<Walk> WalkOf(const toml::table* policy, Values& values) {
  if (policy == nullptr || !policy->contains("walk")) {
    return std::nullopt;
  }
  return Walk{.misfit = values.Choice(
                  "walk", "misfit",
                  std::array{std::pair{std::string_view("skip"), Misfit::kSkip},
                             std::pair{std::string_view("stop"), Misfit::kStop},
                             std::pair{std::string_view("evict_tail"), Misfit::kEvictTail}}),
              .preempt = values.Flag("walk", "preempt", true),
              .keep_running = values.Flag("walk", "keep_running", true),
              .count_first = values.Flag("walk", "count_first", false),
              .largest_first = values.Flag("walk", "largest_first", false),
              .former_rank = values.Choice(
                  "walk", "former_rank",
                  std::array{std::pair{std::string_view("no"), Walk::FormerRank::kNo},
                             std::pair{std::string_view("keys"), Walk::FormerRank::kKeys},
                             std::pair{std::string_view("submits"), Walk::FormerRank::kSubmits}})};
}

// ------------------------------------------------------------------------------------------ names

template <typename Entries>
std::vector<std::string_view> NamesOf(const Entries& entries) {
  std::vector<std::string_view> names;
  for (const auto& entry : entries) {
    names.push_back(entry.name);
  }
  return names;
}

std::vector<std::string_view> KeysOf(const toml::table& root, std::string_view section) {
  const toml::table* table = root[section].as_table();
  return table == nullptr ? std::vector<std::string_view>() : KeysOf(*table);
}

bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "unknown policy 'x' ...", with the presets that know the name.
Error NotKnown(std::string_view what, std::string_view section, const std::string& name,
               std::vector<std::string_view> known) {
  std::string message = UnknownName(what, name, known);
  for (const std::string_view preset : kNames) {
    const Result<const toml::table*> other = ParsePreset(preset);
    if (other.ok() && Contains(KeysOf(*other.value(), section), name)) {
      message += "; preset '" + std::string(preset) + "' knows '" + name + "' (--preset " +
                 std::string(preset) + ")";
    }
  }
  return InvalidArgument(message);
}

// Where the names of one kind of component are looked up.
struct Naming {
  std::string_view what;     // "policy"
  std::string_view section;  // of the preset: "policies"
  const toml::table& root;
  const Values& values;
};

// The entry whose name is `name` with a number in place of its '*'.
const toml::node* FindPattern(const toml::table& names, std::string_view name,
                              std::string& number) {
  for (const auto& [key, entry] : names) {
    const std::string_view pattern = key.str();
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos || name.size() < pattern.size()) {
      continue;
    }
    const std::string_view tail = pattern.substr(star + 1);
    const std::string_view middle = name.substr(star, name.size() - star - tail.size());
    if (name.substr(0, star) == pattern.substr(0, star) &&
        name.substr(name.size() - tail.size()) == tail && ToNumber(middle)) {
      number = middle;
      return &entry;
    }
  }
  return nullptr;
}

// The catalogue's name for what the user named: from the preset's section, or as it is.
Result<NamedOptions> InCatalogue(const Naming& naming, const NamedOptions& asked,
                                 std::vector<std::string_view> catalogue) {
  const toml::table* names = naming.root[naming.section].as_table();
  const toml::node* entry = names == nullptr ? nullptr : names->get(asked.name);
  std::string number;  // what stands for the '*' of a name
  if (entry == nullptr && names != nullptr) {
    entry = FindPattern(*names, asked.name, number);
  }
  if (entry == nullptr) {
    if (Contains(catalogue, asked.name)) {
      return asked;
    }
    for (const std::string_view own : KeysOf(naming.root, naming.section)) {
      if (!Contains(catalogue, own)) {
        catalogue.push_back(own);
      }
    }
    return NotKnown(naming.what, naming.section, asked.name, std::move(catalogue));
  }
  const toml::node* text = entry->is_table() ? entry->as_table()->get(naming.what) : entry;
  CHECK(text != nullptr);
  Result<NamedOptions> meaning =
      ParseNamedOptions(ReplaceAll(naming.values.Substitute(TextOf(*text)), "$*", number));
  if (meaning.ok()) {  // the user's options come last and win
    NamedOptions named = std::move(meaning).value();
    named.values.insert(named.values.end(), asked.values.begin(), asked.values.end());
    return named;
  }
  return meaning;
}

// The admission or placement that a policy comes with: as the preset says, or by its own entry.
std::string Companion(const toml::table* own, const std::string& policy, std::string_view what) {
  if (own != nullptr) {
    return (*own)[what].value_or(std::string());
  }
  for (const ComponentEntry& entry : Catalog(ComponentKind::kPolicy)) {
    if (entry.name == policy) {
      return std::string(what == "admission" ? entry.admission : entry.placement);
    }
  }
  return {};
}

}  // namespace

std::span<const std::string_view> PresetNames() { return kNames; }

Result<PresetDescription> DescribePreset(std::string_view name) {
  const Result<const toml::table*> parsed = ParsePreset(name);
  if (!parsed.ok()) {
    return parsed.error();
  }
  const toml::table& root = *parsed.value();
  PresetDescription description{.name = std::string(name),
                                .summary = root["summary"].value_or(std::string()),
                                .source = root["source"].value_or(std::string())};
  if (const toml::table* options = root["options"].as_table()) {
    for (const auto& [key, option] : *options) {
      const toml::table& table = *option.as_table();
      description.options.push_back({std::string(key.str()), TextOf(*table.get("default")),
                                     table["help"].value_or(std::string())});
    }
  }
  const auto collect = [&root](std::string_view section, std::string_view what,
                               std::vector<PresetName>& into) {
    if (const toml::table* names = root[section].as_table()) {
      for (const auto& [key, entry] : *names) {
        const toml::node* text = entry.is_table() ? entry.as_table()->get(what) : &entry;
        into.push_back({std::string(key.str()), TextOf(*text)});
      }
    }
  };
  collect("policies", "policy", description.policies);
  collect("placements", "placement", description.placements);
  collect("admissions", "admission", description.admissions);
  const auto embedded = std::find_if(kPresets.begin(), kPresets.end(),
                                     [name](const EmbeddedPreset& p) { return p.name == name; });
  description.text.assign(embedded->begin, embedded->end);
  return description;
}

Result<double> TraceUnit(const std::string& text) {
  const Result<NamedOptions> preset = ParseNamedOptions(text.empty() ? "sound" : text);
  if (!preset.ok()) {
    return preset.error();
  }
  const Result<const toml::table*> parsed = ParsePreset(preset.value().name);
  if (!parsed.ok()) {
    return parsed.error();
  }
  Values values(*parsed.value(), nullptr, preset.value());
  const double unit = values.Number("trace", "unit", 0);
  return values.status().ok() ? Result<double>(unit) : values.status().error();
}

namespace {

WorkUnit WorkOf(Values& values) {
  return values.Choice(
      "ledger", "work",
      std::array{std::pair{std::string_view("auto"), WorkUnit::kAuto},
                 std::pair{std::string_view("iterations"), WorkUnit::kIterations},
                 std::pair{std::string_view("duration"), WorkUnit::kDuration},
                 std::pair{std::string_view("stages"), WorkUnit::kStages},
                 std::pair{std::string_view("sensitivity"), WorkUnit::kSensitivity},
                 std::pair{std::string_view("loader"), WorkUnit::kLoader}});
}

// What a run may have or not, and no preset sets.
Status TakeOptional(const PresetRequest& request, ResolvedPreset& resolved) {
  for (const auto& [text, into] : {std::pair{&request.tuning, &resolved.tuning},
                                   std::pair{&request.grouping, &resolved.grouping}}) {
    if (text->empty()) {
      continue;
    }
    Result<NamedOptions> named = ParseNamedOptions(*text);
    if (!named.ok()) {
      return named.error();
    }
    *into = std::move(named).value();
  }
  return {};
}

}  // namespace

Result<ResolvedPreset> ResolvePreset(const PresetRequest& request) {
  const Result<NamedOptions> preset =
      ParseNamedOptions(request.preset.empty() ? "sound" : request.preset);
  if (!preset.ok()) {
    return preset.error();
  }
  const Result<const toml::table*> parsed = ParsePreset(preset.value().name);
  if (!parsed.ok()) {
    return parsed.error();
  }
  const toml::table& root = *parsed.value();
  const auto ask = [&root](const std::string& given, std::string_view what) {
    return ParseNamedOptions(given.empty() ? root["defaults"][what].value_or(std::string())
                                           : given);
  };
  const Result<NamedOptions> policy = ask(request.policy, "policy");
  if (!policy.ok()) {
    return policy.error();
  }
  const toml::table* own = root["policies"][policy.value().name].as_table();
  // A preset may fix the placement of a policy.
  const std::string fixed = own == nullptr ? "" : (*own)["placement"].value_or(std::string());
  const std::string wanted = request.placement.empty()
                                 ? Companion(own, policy.value().name, "placement")
                                 : request.placement;
  const Result<NamedOptions> placement = ask(fixed.empty() ? wanted : fixed, "placement");
  const Result<NamedOptions> admission =
      ask(request.admission.empty() ? Companion(own, policy.value().name, "admission")
                                    : request.admission,
          "admission");
  if (!placement.ok() || !admission.ok()) {
    return placement.ok() ? admission.error() : placement.error();
  }
  Values values(root, own, preset.value());
  ResolvedPreset resolved{.rules = RulesOf(values),
                          .work = WorkOf(values),
                          .stages = StagesOf(values),
                          .sensitivity = SensitivityOf(values),
                          .overheads = OverheadsOf(root, values),
                          .handover_window = FromSeconds(values.Number("handover", "window", 0)),
                          .early_handover = values.Flag("handover", "before_submit", true),
                          .uses_logged_end = values.Text("metrics", "end") == "logged",
                          .exact_deadlines = values.Text("metrics", "deadline") == "exact",
                          .walk = WalkOf(own, values),
                          .rate_factor = values.Number("ledger", "rate_factor", 1),
                          .track = TrackOf(values)};
  Result<NamedOptions> policy_name =
      InCatalogue({"policy", "policies", root, values}, policy.value(),
                  NamesOf(Catalog(ComponentKind::kPolicy)));
  Result<NamedOptions> placement_name =
      InCatalogue({"placement", "placements", root, values}, placement.value(),
                  NamesOf(Catalog(ComponentKind::kPlacement)));
  Result<NamedOptions> admission_name =
      InCatalogue({"admission", "admissions", root, values}, admission.value(),
                  NamesOf(Catalog(ComponentKind::kAdmission)));
  for (const auto* name : {&policy_name, &placement_name, &admission_name}) {
    if (!name->ok()) {
      return name->error();
    }
  }
  if (!values.status().ok()) {
    return values.status().error();
  }
  resolved.policy = std::move(policy_name).value();
  resolved.placement = std::move(placement_name).value();
  resolved.admission = std::move(admission_name).value();
  const Status optional = TakeOptional(request, resolved);
  return optional.ok() ? Result<ResolvedPreset>(std::move(resolved)) : optional.error();
}

}  // namespace trainyard
