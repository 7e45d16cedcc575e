// SPDX-License-Identifier: Apache-2.0
// Automatic choice: at each decision every combination of the named orderings, admissions and
// placements is simulated from the present state, and the one with the smallest mean JCT decides
// (the scheduler synthesiser of Blox, EuroSys'24; reference 8).
#include <algorithm>
#include <array>

#include "base/text.h"
#include "policy/policies.h"

namespace trainyard {
namespace {

constexpr std::array<OptionSpec, 5> kAutoOptions{{
    {"policies", OptionSpec::Kind::kText, "las+fifo+srtf",
     "candidates, separated by '+'; options in brackets: las(quantum=600)"},
    {"admissions", OptionSpec::Kind::kText, "all+load(threshold=1.2)+load(threshold=1.4)",
     "likewise"},
    {"placements", OptionSpec::Kind::kText, "", "likewise; empty: the one of the run"},
    {"horizon", OptionSpec::Kind::kNumber, "0",
     "seconds that are simulated ahead; 0: until all jobs have ended"},
    {"less", OptionSpec::Kind::kNumber, "0",
     "seconds taken off each score (the published one ends a round early)"},
}};

// "a+b(x=1,y=2)" as "a", "b:x=1,y=2".
std::vector<std::string> NamesIn(std::string_view list) {
  std::vector<std::string> names;
  for (const std::string_view part : Split(list, "+")) {
    names.push_back(ReplaceAll(ReplaceAll(std::string(Trim(part)), "(", ":"), ")", ""));
  }
  return names;
}

class ShortestMeanJct final : public Selector {
 public:
  explicit ShortestMeanJct(const Options& options) : less_(options.Number("less")) {
    if (options.Number("horizon") > 0) {
      horizon_ = FromSeconds(options.Number("horizon"));
    }
  }
  [[nodiscard]] std::string_view name() const override { return "auto"; }

  [[nodiscard]] Choice Choose(const Snapshot& /*snapshot*/, std::size_t candidates,
                              const Forecast& forecast) const override {
    Choice choice;
    for (std::size_t i = 0; i < candidates; ++i) {
      const Outlook outlook = forecast(i, horizon_);
      choice.scores.push_back(outlook.jobs > 0 ? outlook.mean_jct - less_ : 0);
    }
    const auto best = std::min_element(choice.scores.begin(), choice.scores.end());
    choice.candidate = static_cast<std::size_t>(best - choice.scores.begin());  // first of equals
    return choice;
  }

 private:
  const double less_;
  std::optional<Duration> horizon_;
};

Result<Components> MakeAuto(const Options& options, const ComponentContext& /*context*/) {
  return Components{.selector = std::make_unique<ShortestMeanJct>(options),
                    .candidates = {.policies = NamesIn(options.Text("policies")),
                                   .admissions = NamesIn(options.Text("admissions")),
                                   .placements = NamesIn(options.Text("placements"))}};
}

}  // namespace

ComponentEntry AutoEntry() {
  return {ComponentKind::kPolicy, "auto",
          "the combination that would give the smallest mean JCT, by simulation", kAutoOptions,
          MakeAuto};
}

}  // namespace trainyard
