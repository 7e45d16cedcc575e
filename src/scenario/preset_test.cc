// SPDX-License-Identifier: Apache-2.0
// What presets make of names and options. Their numbers are checked by the golden cases.
#include "scenario/preset.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/catalog.h"
#include "results/metrics/settings.h"

namespace trainyard::scenario {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

ResolvedPreset Resolve(const PresetRequest& request) {
  const Result<ResolvedPreset> preset = ResolvePreset(request);
  EXPECT_TRUE(preset.ok()) << preset.error().message;
  return preset.ok() ? preset.value() : ResolvedPreset{};
}

std::string ErrorOf(const PresetRequest& request) {
  const Result<ResolvedPreset> preset = ResolvePreset(request);
  return preset.ok() ? "no error" : preset.error().message;
}

// The value an option ends up with: the last one given.
std::string LastValue(const NamedOptions& named, const std::string& key) {
  const auto found = std::find_if(named.values.rbegin(), named.values.rend(),
                                  [&](const auto& value) { return value.first == key; });
  return found == named.values.rend() ? "" : found->second;
}

double CostInSeconds(const profile::OverheadModel& overheads, Change change,
                     const std::string& model) {
  const JobSpec job{.model = model};
  return Seconds(overheads.Cost(change, job, 1, 8, false));
}

// ------------------------------------------------------------------------------------ sound mode

TEST(SoundPresetTest, IsWhatNoPresetMeans) {
  const ResolvedPreset unnamed = Resolve({});
  const ResolvedPreset named = Resolve({.preset = "sound"});
  EXPECT_EQ(unnamed.policy.name, "backfill");
  // What reports leave unsaid.
  EXPECT_EQ(unnamed.placement.name, results::kUsualPlacement);
  EXPECT_EQ(unnamed.admission.name, results::kUsualAdmission);
  EXPECT_EQ(named.policy.name, unnamed.policy.name);
  EXPECT_EQ(named.rules.clock.mode, unnamed.rules.clock.mode);
}

TEST(SoundPresetTest, DecidesAtEveryEventAndEndsExactly) {
  const ResolvedPreset sound = Resolve({});
  EXPECT_EQ(sound.rules.clock.mode, model::ClockRules::Mode::kEveryEvent);
  EXPECT_EQ(sound.rules.quantum, model::Quantum::kNone);
  EXPECT_EQ(sound.rules.end.finish, model::EndRule::Finish::kExact);
  EXPECT_FALSE(sound.rules.end.release_at_instant);
  EXPECT_FALSE(sound.uses_logged_end);
  EXPECT_EQ(sound.work, WorkUnit::kAuto);
}

TEST(SoundPresetTest, HasNoRuleOfAPublishedProgram) {
  EXPECT_TRUE(Resolve({}).rules.published == model::PublishedRules{});
}

TEST(SoundPresetTest, ChargesEveryChange) {
  const ResolvedPreset sound = Resolve({});
  EXPECT_EQ(sound.rules.debt.charge, model::Debt::Charge::kChange);
  EXPECT_EQ(sound.rules.debt.pay, model::Debt::Pay::kDelay);
}

TEST(SoundPresetTest, CostsAreThoseMeasuredPerModel) {
  const ResolvedPreset sound = Resolve({});
  EXPECT_EQ(CostInSeconds(sound.overheads, Change::kRestart, "bert"), 3.744);
  EXPECT_EQ(CostInSeconds(sound.overheads, Change::kMigrate, "vgg16"), 3.209);
}

TEST(SoundPresetTest, OtherModelsPayTheMean) {
  const ResolvedPreset sound = Resolve({});
  EXPECT_EQ(CostInSeconds(sound.overheads, Change::kStart, "unheard-of"), 2.271);
  EXPECT_EQ(CostInSeconds(sound.overheads, Change::kMigrate, ""), 2.088);
}

TEST(SoundPresetTest, PoliciesKeepTheirOwnWalk) {
  for (const ComponentEntry& entry : catalog::Catalog(ComponentKind::kPolicy)) {
    EXPECT_FALSE(Resolve({.policy = std::string(entry.name)}).walk.has_value()) << entry.name;
  }
}

TEST(SoundPresetTest, NamesAndOptionsAreThoseOfTheCatalogues) {
  const ResolvedPreset sound =
      Resolve({.policy = "las:quantum=60", .placement = "consolidated:spread=1"});
  EXPECT_EQ(sound.policy.name, "las");
  EXPECT_EQ(sound.policy.values, Values({{"quantum", "60"}}));
  EXPECT_EQ(sound.placement.values, Values({{"spread", "1"}}));
}

// -------------------------------------------------------------------------------------- Tiresias

TEST(TiresiasPresetTest, CountsWholeSecondsWithoutCosts) {
  const ResolvedPreset tiresias = Resolve({.preset = "tiresias"});
  EXPECT_EQ(tiresias.rules.quantum, model::Quantum::kSecond);
  EXPECT_EQ(tiresias.rules.debt.charge, model::Debt::Charge::kNone);
  EXPECT_EQ(tiresias.work, WorkUnit::kDuration);
}

TEST(TiresiasPresetTest, SjfIsTheJobWithTheFewestGpus) {
  const ResolvedPreset sjf = Resolve({.preset = "tiresias", .policy = "sjf"});
  EXPECT_EQ(sjf.policy.name, "sjf");
  EXPECT_EQ(sjf.policy.values, Values({{"by", "gpus"}}));
  ASSERT_TRUE(sjf.walk.has_value());
  EXPECT_TRUE(sjf.walk->preempt);
  EXPECT_FALSE(sjf.walk->keep_running);
  EXPECT_EQ(sjf.walk->former_rank, Walk::FormerRank::kKeys);
  EXPECT_EQ(sjf.walk->misfit, Misfit::kSkip);
}

TEST(TiresiasPresetTest, OriginalNamesMeanPoliciesOfTheCatalogue) {
  EXPECT_EQ(Resolve({.preset = "tiresias", .policy = "shortest"}).policy.name, "srtf");
  EXPECT_EQ(Resolve({.preset = "tiresias", .policy = "shortest-gpu"}).policy.name, "srsf");
  const ResolvedPreset dlas = Resolve({.preset = "tiresias", .policy = "dlas"});
  EXPECT_EQ(dlas.policy.name, "tiresias-published");
  EXPECT_EQ(LastValue(dlas.policy, "service"), "time");
}

TEST(TiresiasPresetTest, FifoKeepsItsOwnWalk) {
  EXPECT_FALSE(Resolve({.preset = "tiresias", .policy = "fifo"}).walk.has_value());
}

TEST(TiresiasPresetTest, TheDlasFamilyCounts) {
  for (const char* placement : {"", "count", "yarn"}) {  // yarn: of the other policies
    const ResolvedPreset dlas =
        Resolve({.preset = "tiresias", .policy = "dlas-gpu", .placement = placement});
    EXPECT_EQ(dlas.placement.name, "count") << placement;
  }
}

TEST(TiresiasPresetTest, OthersUseTheGivenPlacement) {
  EXPECT_EQ(Resolve({.preset = "tiresias", .policy = "sjf", .placement = "count"}).placement.name,
            "count");
  const ResolvedPreset yarn = Resolve({.preset = "tiresias", .policy = "fifo"});
  EXPECT_EQ(yarn.placement.name, "first-fit");
  EXPECT_EQ(LastValue(yarn.placement, "within_switch"), "1");
  EXPECT_EQ(LastValue(yarn.placement, "cpus_per_gpu"), "6");
}

TEST(TiresiasPresetTest, TheSuffixIsThePromotion) {
  EXPECT_EQ(LastValue(Resolve({.preset = "tiresias", .policy = "dlas-gpu-05"}).policy, "promote"),
            "0.5");
  EXPECT_EQ(LastValue(Resolve({.preset = "tiresias", .policy = "dlas-gpu"}).policy, "promote"), "");
}

TEST(TiresiasPresetTest, TheUsersOptionsWin) {
  const ResolvedPreset dlas =
      Resolve({.preset = "tiresias", .policy = "dlas-gpu-1:promote=7,thresholds=10/20"});
  EXPECT_EQ(LastValue(dlas.policy, "promote"), "7");
  EXPECT_EQ(LastValue(dlas.policy, "thresholds"), "10/20");
}

TEST(TiresiasPresetTest, PoliciesOfTheCatalogueCanBeUsedUnderIt) {
  const ResolvedPreset las = Resolve({.preset = "tiresias", .policy = "las"});
  EXPECT_EQ(las.policy.name, "las");
  EXPECT_EQ(las.rules.quantum, model::Quantum::kSecond);
}

// ----------------------------------------------------------------------------------- ElasticFlow

TEST(ElasticflowPresetTest, TheSlotIsAMinuteUnlessGiven) {
  const ResolvedPreset preset = Resolve({.preset = "elasticflow"});
  EXPECT_EQ(preset.rules.clock.mode, model::ClockRules::Mode::kSpacing);
  EXPECT_EQ(preset.rules.clock.length, FromSeconds(60));
}

TEST(ElasticflowPresetTest, TheSlotIsPutWhereverItIsNamed) {
  const ResolvedPreset edf = Resolve({.preset = "elasticflow:slot=240", .policy = "edf"});
  EXPECT_EQ(edf.policy.name, "elastic-edf");
  EXPECT_EQ(LastValue(edf.policy, "past_peak"), "1");
  EXPECT_EQ(edf.rules.clock.length, FromSeconds(240));
  const ResolvedPreset dlas = Resolve({.preset = "elasticflow:slot=240", .policy = "dlas-gpu"});
  EXPECT_EQ(dlas.rules.published.restart_every, 240);
}

TEST(ElasticflowPresetTest, APolicysRulesGoBeforeThoseOfThePreset) {
  const ResolvedPreset edf = Resolve({.preset = "elasticflow", .policy = "edf"});
  EXPECT_EQ(edf.rules.published.lone_fact, model::PublishedRules::LoneFact::kStarted);
  EXPECT_EQ(edf.rules.end.finish, model::EndRule::Finish::kCeilSecond);
  EXPECT_EQ(edf.work, WorkUnit::kIterations);
  const ResolvedPreset dlas = Resolve({.preset = "elasticflow", .policy = "dlas-gpu"});
  EXPECT_EQ(dlas.rules.published.lone_fact, model::PublishedRules::LoneFact::kSubmits);
  EXPECT_EQ(dlas.rules.clock.length, FromSeconds(60));  // not its own
  EXPECT_EQ(dlas.rules.end.finish, model::EndRule::Finish::kFloorSecond);
  EXPECT_TRUE(dlas.rules.end.release_at_instant);
  EXPECT_EQ(dlas.work, WorkUnit::kDuration);
}

TEST(ElasticflowPresetTest, CostsFollowTheFormula) {
  const ResolvedPreset preset = Resolve({.preset = "elasticflow", .policy = "dlas-gpu"});
  EXPECT_EQ(Seconds(preset.overheads.Cost(Change::kStart, {}, 4, 128, false)), 2 + 2 * 3);
  EXPECT_EQ(Seconds(preset.overheads.Cost(Change::kStart, {}, 4, 128, true)), 2 + 2 * 3 + 27);
}

TEST(ElasticflowPresetTest, TheLoggedEndIsReported) {
  EXPECT_TRUE(Resolve({.preset = "elasticflow"}).uses_logged_end);
}

TEST(ElasticflowPresetTest, ItsPlacementIsBuddyGroups) {
  EXPECT_EQ(Resolve({.preset = "elasticflow"}).placement.name, "buddy-groups");
  EXPECT_EQ(Resolve({.preset = "elasticflow", .placement = "elastic"}).placement.name,
            "buddy-groups");
}

TEST(ElasticflowPresetTest, ThePlacementOfAPolicyIsNotReplacedSilently) {
  for (const char* policy : {"ef", "ef-accessctrl"}) {
    for (const char* placement : {"", "elastic", "buddy-groups:given_back=deadline"}) {
      const ResolvedPreset own =
          Resolve({.preset = "elasticflow:slot=240", .policy = policy, .placement = placement});
      EXPECT_EQ(own.placement.name, "buddy-groups") << placement;
      EXPECT_EQ(LastValue(own.placement, "given_back"), "deadline") << placement;
    }
    EXPECT_EQ(ErrorOf({.preset = "elasticflow", .policy = policy, .placement = "consolidated"}),
              "policy '" + std::string(policy) +
                  "' of preset 'elasticflow' has a placement of its own, 'buddy-groups:given_back="
                  "deadline'; expected that or none instead of 'consolidated'");
  }
  EXPECT_TRUE(ErrorOf({.preset = "elasticflow", .policy = "ef", .placement = "budy"})
                  .starts_with("unknown placement 'budy'"));
  EXPECT_EQ(
      Resolve({.preset = "elasticflow", .policy = "edf", .placement = "buddy"}).placement.name,
      "buddy");
}

TEST(ChronusPresetTest, ItsTimesAreInTheUnitThatIsAsked) {
  const ResolvedPreset minutes = Resolve({.preset = "chronus"});
  EXPECT_EQ(minutes.rules.clock.length, FromSeconds(60));
  EXPECT_EQ(minutes.rules.clock.anchor, AtSeconds(0));
  EXPECT_EQ(minutes.overheads.Cost(Change::kStart, {}, 2, 8, false), FromSeconds(60));
  EXPECT_EQ(TraceUnit("chronus").value(), 60);
  const std::string preset =
      "chronus:variant=elasticflow;lease=240;check_interval=240;time_unit=seconds";
  const ResolvedPreset seconds = Resolve({.preset = preset});
  EXPECT_EQ(seconds.rules.clock.length, FromSeconds(240));
  EXPECT_EQ(seconds.overheads.Cost(Change::kStart, {}, 2, 8, false), FromSeconds(1));
  EXPECT_EQ(seconds.policy.name, "chronus-published");
  EXPECT_EQ(TraceUnit(preset).value(), 1);
  EXPECT_EQ(TraceUnit("").value(), 0);
}

// ---------------------------------------------------------------------------------------- errors

TEST(PresetErrorTest, AnOptionWithNamedValuesHasNoOthers) {
  EXPECT_EQ(ErrorOf({.preset = "chronus:time_unit=hours"}),
            "preset 'chronus': unknown value of option 'time_unit' 'hours'; known: seconds, "
            "minutes");
  EXPECT_FALSE(TraceUnit("chronus:time_unit=hours").ok());
}

TEST(PresetErrorTest, AnUnknownPresetIsAnsweredWithTheNearest) {
  const Result<ResolvedPreset> preset = ResolvePreset({.preset = "tiresas"});
  ASSERT_FALSE(preset.ok());
  EXPECT_EQ(preset.error().code, ErrorCode::kInvalidArgument);
  std::string expected = "unknown preset 'tiresas'; did you mean 'tiresias'?; known: ";
  for (const std::string_view name : PresetNames()) {
    expected += std::string(name) + ", ";
  }
  expected.replace(expected.size() - 2, 2, "; a file of your own is given by its path: FILE.toml");
  EXPECT_EQ(preset.error().message, expected);
}

TEST(PresetErrorTest, AnUnknownOptionIsAnsweredWithTheNearest) {
  EXPECT_EQ(ErrorOf({.preset = "elasticflow:slto=60"}),
            "preset 'elasticflow': unknown option 'slto'; did you mean 'slot'?; known: slot, "
            "themis_rule");
  EXPECT_EQ(ErrorOf({.preset = "elasticflow:slots=60"}),
            "preset 'elasticflow': unknown option 'slots'; did you mean 'slot'?; known: slot, "
            "themis_rule");
  EXPECT_EQ(ErrorOf({.preset = "tiresias:slot=60"}),
            "preset 'tiresias': unknown option 'slot'; known: none");
}

TEST(PresetErrorTest, AnOptionMustBeAPositiveNumber) {
  for (const std::string value : {"0", "-60", "minute", ""}) {
    EXPECT_EQ(ErrorOf({.preset = "elasticflow:slot=" + value}),
              "preset 'elasticflow': option 'slot' is '" + value + "'; expected a number > 0");
  }
}

TEST(PresetErrorTest, ATextThatIsNoNameIsRefused) {
  EXPECT_EQ(ErrorOf({.preset = "elasticflow:slot"}),
            "'slot' in 'elasticflow:slot' is no option; expected key=value");
  EXPECT_EQ(ErrorOf({.policy = ":x=1"}), "':x=1' has no name; expected NAME[:key=value,...]");
}

TEST(PresetErrorTest, AnUnknownNameIsAnsweredWithTheNearest) {
  EXPECT_TRUE(
      ErrorOf({.policy = "fifoo"}).starts_with("unknown policy 'fifoo'; did you mean 'fifo'?"));
  EXPECT_TRUE(ErrorOf({.placement = "budy"})
                  .starts_with("unknown placement 'budy'; did you mean 'buddy'?"));
  EXPECT_TRUE(
      ErrorOf({.admission = "al"}).starts_with("unknown admission 'al'; did you mean 'all'?"));
  EXPECT_TRUE(ErrorOf({.preset = "tiresias", .policy = "shortst"})
                  .starts_with("unknown policy 'shortst'; did you mean 'shortest'?"));
}

TEST(PresetErrorTest, ANameOfAnotherPresetIsAnsweredWithThatPreset) {
  const std::string message = ErrorOf({.policy = "shortest-gpu"});
  EXPECT_TRUE(message.ends_with("; preset 'tiresias' knows 'shortest-gpu' (--preset tiresias)"))
      << message;
}

TEST(PresetErrorTest, EveryPresetThatKnowsTheNameIsListed) {
  const std::string message = ErrorOf({.policy = "dlas-gpu"});
  EXPECT_TRUE(message.ends_with(
      "; preset 'elasticflow' knows 'dlas-gpu' (--preset elasticflow); preset 'muri' knows "
      "'dlas-gpu' (--preset muri); preset 'tiresias' knows 'dlas-gpu' (--preset tiresias)"))
      << message;
}

TEST(PresetErrorTest, APlacementOfAnotherPresetIsAnsweredWithThatPreset) {
  const std::string message = ErrorOf({.placement = "yarn"});
  EXPECT_TRUE(message.ends_with("; preset 'tiresias' knows 'yarn' (--preset tiresias)")) << message;
}

TEST(PresetErrorTest, NoNameIsListedTwice) {
  // The preset and the catalogue both have 'fifo'.
  const std::string message = ErrorOf({.preset = "tiresias", .policy = "nonsense"});
  const std::size_t first = message.find(" fifo,");
  ASSERT_NE(first, std::string::npos) << message;
  EXPECT_EQ(message.find(" fifo,", first + 1), std::string::npos) << message;
}

// --------------------------------------------------------------------------------- all of them

class EveryPreset : public testing::TestWithParam<std::string_view> {};

TEST_P(EveryPreset, IsDescribed) {
  const Result<PresetDescription> preset = DescribePreset(GetParam());
  ASSERT_TRUE(preset.ok()) << preset.error().message;
  EXPECT_EQ(preset.value().name, GetParam());
  EXPECT_FALSE(preset.value().summary.empty());
  EXPECT_FALSE(preset.value().source.empty());
  EXPECT_TRUE(preset.value().text.starts_with("# SPDX-License-Identifier"));
  EXPECT_NE(preset.value().text.find("name = \"" + std::string(GetParam()) + "\""),
            std::string::npos);
  for (const PresetOption& option : preset.value().options) {
    EXPECT_FALSE(option.fallback.empty()) << option.key;
    EXPECT_FALSE(option.help.empty()) << option.key;
  }
}

TEST_P(EveryPreset, MeansPoliciesThatCanBeMade) {
  const ComponentContext context{.read_samples = [](const std::string&) {
    return Result<std::vector<double>>({1, 2, 3});
  }};
  const PresetDescription preset = DescribePreset(GetParam()).value();
  for (const PresetName& policy : preset.policies) {
    const ResolvedPreset resolved =
        Resolve({.preset = std::string(GetParam()), .policy = policy.name});
    const Result<Components> made = catalog::Make(ComponentKind::kPolicy, resolved.policy, context);
    EXPECT_TRUE(made.ok()) << policy.name << ": " << made.error().message;
    EXPECT_TRUE(policy.meaning.starts_with(resolved.policy.name)) << policy.name;
  }
}

TEST_P(EveryPreset, MeansPlacementsAndAdmissionsThatCanBeMade) {
  const PresetDescription preset = DescribePreset(GetParam()).value();
  for (const PresetName& placement : preset.placements) {
    const ResolvedPreset resolved =
        Resolve({.preset = std::string(GetParam()), .policy = "srtf", .placement = placement.name});
    EXPECT_TRUE(catalog::Make(ComponentKind::kPlacement, resolved.placement).ok())
        << placement.name;
  }
  for (const PresetName& admission : preset.admissions) {
    const ResolvedPreset resolved =
        Resolve({.preset = std::string(GetParam()),
                 .admission = base::ReplaceAll(admission.name, "*", "1.2")});
    EXPECT_TRUE(catalog::Make(ComponentKind::kAdmission, resolved.admission).ok())
        << admission.name;
  }
}

TEST_P(EveryPreset, HasDefaultsThatCanBeMade) {
  const ResolvedPreset preset = Resolve({.preset = std::string(GetParam())});
  EXPECT_TRUE(catalog::Make(ComponentKind::kPolicy, preset.policy, {}).ok());
  EXPECT_TRUE(catalog::Make(ComponentKind::kPlacement, preset.placement).ok());
  EXPECT_TRUE(catalog::Make(ComponentKind::kAdmission, preset.admission).ok());
}

INSTANTIATE_TEST_SUITE_P(Embedded, EveryPreset, testing::ValuesIn(PresetNames()),
                         [](const testing::TestParamInfo<std::string_view>& one) {
                           return std::string(one.param);
                         });

// ------------------------------------------------------------------------------------------ muri

TEST(MuriPresetTest, EverybodyPaysAtEveryEventAndForgetsTheRest) {
  const ResolvedPreset muri = Resolve({.preset = "muri"});
  EXPECT_EQ(muri.work, WorkUnit::kStages);
  EXPECT_EQ(muri.rules.debt.charge, model::Debt::Charge::kEveryInstant);
  EXPECT_EQ(muri.rules.debt.pay, model::Debt::Pay::kInterval);
  EXPECT_FALSE(muri.rules.published.debt_in_forecast);
  EXPECT_TRUE(muri.rules.published.group_sum);
  EXPECT_EQ(muri.rules.published.join_relative, 1e-9);
}

// Muri reference 1.5: by model and GPU count, 10 s for what is not listed.
TEST(MuriPresetTest, StartsCostByModelAndGpus) {
  const profile::OverheadModel overheads = Resolve({.preset = "muri"}).overheads;
  const auto cost = [&overheads](const std::string& model, int gpus) {
    return overheads.Cost(Change::kRestart, {.model = model}, gpus, 64, false);
  };
  EXPECT_EQ(cost("a2c", 1), FromSeconds(38));
  EXPECT_EQ(cost("a2c", 8), FromSeconds(46));
  EXPECT_EQ(cost("vgg19", 16), FromSeconds(10));
  EXPECT_EQ(cost("bert", 32), FromSeconds(10));
  EXPECT_EQ(cost("other", 4), FromSeconds(10));
}

TEST(MuriPresetTest, SharingSlowsGroupsDownAndSoloIterationsToo) {
  const profile::GroupTimes::Rules stages = Resolve({.preset = "muri"}).stages;
  EXPECT_EQ(stages.order, profile::StageOrder::kBest);
  EXPECT_EQ(stages.slowdown[0], 1.015);
  EXPECT_DOUBLE_EQ(stages.slowdown[1], 1.33 / 1.015);
  EXPECT_DOUBLE_EQ(stages.slowdown[2], 1.5 / 1.015);
  EXPECT_DOUBLE_EQ(stages.slowdown[3], 1.37 / 1.015);
}

TEST(MuriPresetTest, TiresiasCountsGpusUnderTheDefaultPlacement) {
  const ResolvedPreset muri =
      Resolve({.preset = "muri", .policy = "dlas-gpu", .placement = "yarn"});
  EXPECT_EQ(muri.policy.name, "tiresias-published");
  EXPECT_EQ(muri.placement.name, "count");
  EXPECT_EQ(muri.rules.published.join_relative, 0);
}

TEST(PresetNamesTest, AreSortedAndIncludeSoundMode) {
  const std::span<const std::string_view> names = PresetNames();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_NE(std::find(names.begin(), names.end(), "sound"), names.end());
}

TEST(PresetNamesTest, AnUnknownOneIsNotDescribed) { EXPECT_FALSE(DescribePreset("nonsense").ok()); }

TEST(ElasticflowPresetTest, ItsDescriptionListsTheSlot) {
  const PresetDescription preset = DescribePreset("elasticflow").value();
  const auto slot = std::find_if(preset.options.begin(), preset.options.end(),
                                 [](const PresetOption& option) { return option.key == "slot"; });
  ASSERT_NE(slot, preset.options.end());
  EXPECT_EQ(slot->fallback, "60");
}

TEST(PresetTest, OnlySoundModeCountsRestarts) {
  for (const std::string_view name : PresetNames()) {
    const model::Rules rules = Resolve({.preset = std::string(name)}).rules;
    EXPECT_EQ(rules.preemption.rule == model::Preemption::Rule::kSound, name == "sound") << name;
    EXPECT_EQ(rules.preemption.min_runtime, Duration{0}) << name;
  }
}

TEST(PresetTest, TheFormerRuleAndAShortestRunTimeCanBeChosen) {
  const model::Rules former = Resolve({.preset = "sound:preempt=published"}).rules;
  EXPECT_EQ(former.preemption.rule, model::Preemption::Rule::kPublished);
  const model::Rules longer = Resolve({.preset = "sound:preempt_min_runtime=90"}).rules;
  EXPECT_EQ(longer.preemption.rule, model::Preemption::Rule::kSound);
  EXPECT_EQ(longer.preemption.min_runtime, FromSeconds(90));
}

}  // namespace
}  // namespace trainyard::scenario
