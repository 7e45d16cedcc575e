// SPDX-License-Identifier: Apache-2.0
// Automatic choice: at each decision every combination of the named orderings, admissions and
// placements is simulated from the present state. Of those that complete the most jobs, the one
// with the smallest mean JCT decides (the scheduler synthesizer of Blox, EuroSys'24).
#include <algorithm>
#include <array>
#include <limits>

#include "base/text.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 6> kAutoOptions{{
    {"policies", OptionSpec::Kind::kText, "las+fifo+srtf",
     "candidates, separated by '+'; options in brackets: las(quantum=600)"},
    {"admissions", OptionSpec::Kind::kText, "all+load(threshold=1.2)+load(threshold=1.4)",
     "likewise"},
    {"placements", OptionSpec::Kind::kText, "", "likewise; empty: the one of the run"},
    {"horizon", OptionSpec::Kind::kNumber, "0",
     "seconds that are simulated ahead; 0: until all jobs have ended"},
    {"less", OptionSpec::Kind::kNumber, "0",
     "seconds taken off each score (the published one ends a round early)"},
    {"compare", OptionSpec::Kind::kChoice, "completed",
     "completed: the most completed jobs, then the smallest mean JCT; mean: the mean JCT alone, 0 "
     "where no job ends, as published",
     "completed|mean"},
}};

// "a+b(x=1,y=2)" as "a", "b:x=1,y=2".
std::vector<std::string> NamesIn(std::string_view list) {
  std::vector<std::string> names;
  for (const std::string_view part : base::Split(list, "+")) {
    names.push_back(
        base::ReplaceAll(base::ReplaceAll(std::string(base::Trim(part)), "(", ":"), ")", ""));
  }
  return names;
}

class ShortestMeanJct final : public Selector {
 public:
  explicit ShortestMeanJct(const Options& options)
      : less_(options.Number("less")), mean_alone_(options.Text("compare") == "mean") {
    if (options.Number("horizon") > 0) {
      horizon_ = FromSeconds(options.Number("horizon"));
    }
  }
  [[nodiscard]] std::string_view name() const override { return "auto"; }

  [[nodiscard]] Choice Choose(const Snapshot& /*snapshot*/, std::size_t candidates,
                              const Forecast& forecast) const override {
    Choice choice;
    std::int64_t most = -1;  // jobs that the chosen candidate completes
    for (std::size_t i = 0; i < candidates; ++i) {
      Outlook outlook = forecast(i, horizon_);
      const bool failed = !outlook.error.empty();
      const double score = ScoreOf(outlook);
      choice.scores.push_back(score);
      if (failed) {
        choice.errors.resize(candidates);
        choice.errors[i] = std::move(outlook.error);
        continue;
      }
      const std::int64_t completed = mean_alone_ ? 0 : outlook.jobs;
      if (completed > most || (completed == most && score < choice.scores[choice.candidate])) {
        most = completed;
        choice.candidate = i;  // first of equals
      }
    }
    return choice;
  }

 private:
  // Infinite: the candidate is out.
  [[nodiscard]] double ScoreOf(const Outlook& outlook) const {
    if (!outlook.error.empty() || (outlook.jobs == 0 && !mean_alone_)) {
      return std::numeric_limits<double>::infinity();
    }
    return outlook.jobs > 0 ? outlook.mean_jct - less_ : 0;
  }

  const double less_;
  const bool mean_alone_;
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

}  // namespace trainyard::policies
