// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "faults/simulation.h"
#include "support/sanitized.h"

namespace trainyard {
namespace {

const std::uint64_t kSeedsOfAShard = Rounds(std::uint64_t{40});

// Of a run without a bug of ours; what several tests ask of it is run once.
const FaultResult& Of(std::uint64_t seed) {
  static std::map<std::uint64_t, FaultResult> results;
  const auto found = results.find(seed);
  return found != results.end() ? found->second
                                : results.emplace(seed, RunFaults({.seed = seed})).first->second;
}

class Faults : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Faults, BreakNoPromise) {
  int resumed = 0;
  for (std::uint64_t seed = GetParam(); seed < GetParam() + kSeedsOfAShard; ++seed) {
    const FaultResult& result = Of(seed);
    ASSERT_EQ(result.violation, "")
        << "again: trainyard-faults --verbose --seeds 1 --seed " << seed;
    ASSERT_EQ(result.completed + result.cancelled + result.over_limit + result.impossible, 50);
    resumed += result.resumed;
  }
  EXPECT_GT(resumed, 4 * kSeedsOfAShard);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Faults,
                         testing::Range<std::uint64_t>(1, 8 * kSeedsOfAShard + 1, kSeedsOfAShard));

TEST(FaultCoverage, TheSameSeedGivesTheSameJournal) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_EQ(RunFaults({.seed = seed}).digest, Of(seed).digest);
  }
  EXPECT_NE(Of(1).digest, Of(2).digest);
}

TEST(FaultCoverage, StagesAreTakenByTurnsAndSharesChange) {
  int turns = 0;
  int loaders = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const FaultResult& result = Of(seed);
    turns += result.turns;
    loaders += result.loaders_checked;
  }
  EXPECT_GT(turns, 1000);
  EXPECT_GT(loaders, 100);
}

TEST(FaultCoverage, DataSetsAreFetchedBrokenOffGoneOnWithAndRemoved) {
  FaultResult all;
  for (std::uint64_t seed = 1; seed <= 45; ++seed) {
    const FaultResult& result = Of(seed);
    all.fetches += result.fetches;
    all.failed_fetches += result.failed_fetches;
    all.broken_fetches += result.broken_fetches;
    all.resumed_fetches += result.resumed_fetches;
    all.removed_copies += result.removed_copies;
    all.local_starts += result.local_starts;
    all.home_starts += result.home_starts;
  }
  EXPECT_GT(all.fetches, 300);
  EXPECT_GT(all.failed_fetches, 10);
  EXPECT_GT(all.broken_fetches, 10);
  EXPECT_GT(all.resumed_fetches, 5);
  EXPECT_GT(all.removed_copies, 100);
  EXPECT_GT(all.local_starts, 500);
  EXPECT_GT(all.home_starts, 30);
}

// Which share of what there is the generator comes to: fewer would check less than it says.
TEST(FaultCoverage, ComesToMostStatesAndOrdersOfMessages) {
  FaultResult all;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const FaultResult& result = Of(seed);
    all.coverage.Merge(result.coverage);
    all.victims += result.victims;
    all.newcomers += result.newcomers;
    all.charges += result.charges;
    all.watched += result.watched;
    all.clock_jumps += result.clock_jumps;
    all.upgrades += result.upgrades;
  }
  const faults::Coverage::Share states = all.coverage.states();
  const faults::Coverage::Share orders = all.coverage.orders();
  RecordProperty("states", fmt::format("{} of {}", states.reached, states.of));
  RecordProperty("orders", fmt::format("{} of {}", orders.reached, orders.of));
  EXPECT_GT(states.part(), 0.9) << states.reached << " of " << states.of;
  EXPECT_GT(orders.part(), 0.6) << orders.reached << " of " << orders.of;
  EXPECT_GT(all.victims, 100);
  EXPECT_GT(all.newcomers, 1000);
  EXPECT_GT(all.charges, 50 * 50);
  EXPECT_GT(all.watched, 100);
  EXPECT_GT(all.clock_jumps, 100);
  EXPECT_GT(all.upgrades, 10);
}

// Faults between the steps by which the workers of a gang come together, and gangs that fail as one
// of their nodes has.
TEST(FaultCoverage, LaunchersMeetAndFailTogether) {
  FaultResult all;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const FaultResult& result = Of(seed);
    all.failed_for_others += result.failed_for_others;
    all.coverage.Merge(result.coverage);
  }
  const faults::Coverage::Share steps = all.coverage.steps();
  RecordProperty("steps", fmt::format("{} of {}", steps.reached, steps.of));
  EXPECT_GT(steps.part(), 0.6) << steps.reached << " of " << steps.of;
  EXPECT_GT(all.failed_for_others, 20);
}

TEST(FaultCoverage, JobsHaveTermsThatClientsChange) {
  FaultResult all;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const FaultResult& result = Of(seed);
    all.over_limit += result.over_limit;
    all.impossible += result.impossible;
    all.starts_after_others += result.starts_after_others;
    all.answers_compared += result.answers_compared;
  }
  EXPECT_GT(all.over_limit, 20);
  EXPECT_GT(all.impossible, 20);
  EXPECT_GT(all.starts_after_others, 50);
  EXPECT_GT(all.answers_compared, 5000);
}

TEST(FaultCoverage, JobsAreMeasured) {
  int measurements = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    measurements += Of(seed).measurements;
  }
  EXPECT_GT(measurements, 1000);
}

// Whether more than so many of 80 seeds see the bug and say so.
testing::AssertionResult Seen(PlantedBug bug, std::initializer_list<std::string_view> words,
                              int more_than) {
  int seen = 0;
  for (std::uint64_t seed = 1; seed <= 80 && seen <= more_than; ++seed) {
    const std::string violation = RunFaults({.seed = seed, .bug = bug}).violation;
    for (const std::string_view each : words) {
      seen += violation.find(each) != std::string::npos ? 1 : 0;
    }
  }
  return seen > more_than ? testing::AssertionSuccess()
                          : testing::AssertionFailure() << "seen by " << seen << " of 80 seeds";
}

TEST(FaultSimulation, SeesAnAcknowledgementBeforeTheDiskHasIt) {
  EXPECT_TRUE(Seen(PlantedBug::kAckBeforeSync, {"is lost"}, 10));
}

TEST(FaultSimulation, SeesASnapshotThatIsNotOfItsEntry) {
  EXPECT_TRUE(Seen(PlantedBug::kOldSnapshot, {"snapshot"}, 10));
}

TEST(FaultSimulation, SeesThatNobodyIsFenced) {
  EXPECT_TRUE(Seen(PlantedBug::kNoFencing, {"runs twice"}, 10));
}

TEST(FaultSimulation, SeesAJobThatFailsForANodesFault) {
  EXPECT_TRUE(Seen(PlantedBug::kBlamesJobs, {"fails for a node's fault"}, 10));
}

TEST(FaultSimulation, SeesStagesThatAreNotTakenByTurns) {
  EXPECT_TRUE(Seen(PlantedBug::kNoTurns, {"at a time"}, 1));
}

TEST(FaultSimulation, SeesSharesOfWhichWorkersHaveNotHeard) {
  EXPECT_TRUE(Seen(PlantedBug::kLostShares, {"loader workers and has"}, 3));
}

TEST(FaultSimulation, SeesAControllerThatHasMeasuredSomethingElse) {
  EXPECT_TRUE(Seen(PlantedBug::kOtherMeasured, {"state", "does not start again"}, 10));
}

TEST(FaultSimulation, SeesACopyThatIsRemovedUnderAJob) {
  EXPECT_TRUE(Seen(PlantedBug::kForgetsUse, {"under job"}, 1));
}

TEST(FaultSimulation, SeesTwoNumbersForOneSubmission) {
  EXPECT_TRUE(Seen(PlantedBug::kNewTokens, {"has given jobs"}, 3));
}

TEST(FaultSimulation, SeesAJobThatIsStranded) {
  EXPECT_TRUE(Seen(PlantedBug::kLosesStarts, {"is stranded"}, 10));
}

TEST(FaultSimulation, SeesANodeThatIsDeclaredDeadTooSoon) {
  EXPECT_TRUE(Seen(PlantedBug::kDeadAtOnce, {"is declared dead"}, 10));
}

TEST(FaultSimulation, SeesAVictimOfNobody) {
  EXPECT_TRUE(Seen(PlantedBug::kIdleVictims, {"for nobody"}, 10));
}

TEST(FaultSimulation, SeesAChargeForWhatIsNotHeld) {
  EXPECT_TRUE(Seen(PlantedBug::kMischarges, {"is charged"}, 10));
}

TEST(FaultSimulation, SeesJobsThatNeverEnd) {
  EXPECT_TRUE(Seen(PlantedBug::kStaysAway, {"has not ended"}, 10));
}

TEST(FaultSimulation, SeesAJobThatIsBlamedForTheLossOfItsNode) {
  EXPECT_TRUE(Seen(PlantedBug::kForgetsLoss, {"fails for a node's fault"}, 3));
}

TEST(FaultSimulation, SeesDaemonsThatOutliveTheirEnd) {
  EXPECT_TRUE(Seen(PlantedBug::kLeavesDaemons, {"is held by job", "runs twice"}, 3));
}

TEST(FaultSimulation, SeesAJobThatDoesNotWaitForOthers) {
  EXPECT_TRUE(Seen(PlantedBug::kForgetsDependencies, {"before what its dependency"}, 3));
}

TEST(FaultSimulation, SeesAJobThatIsRejectedThoughItCouldStart) {
  EXPECT_TRUE(Seen(PlantedBug::kTurnsDependencies, {"can be met"}, 3));
}

TEST(FaultSimulation, SeesAJobThatBeginsTooSoon) {
  EXPECT_TRUE(Seen(PlantedBug::kForgetsBegins, {"before it may begin"}, 3));
}

TEST(FaultSimulation, SeesAJobOverItsTimeLimit) {
  EXPECT_TRUE(Seen(PlantedBug::kForgetsLimits, {"over its time limit"}, 3));
}

TEST(FaultSimulation, SeesAJobThatIsEndedBeforeItsTimeLimit) {
  EXPECT_TRUE(Seen(PlantedBug::kHalvesLimits, {"is ended for its time limit"}, 3));
}

TEST(FaultSimulation, SeesMoreTasksAtOnceThanTheirArrayMayHave) {
  EXPECT_TRUE(Seen(PlantedBug::kForgetsArrayLimits, {"at work at once"}, 3));
}

TEST(FaultSimulation, SeesATaskThatIsLost) {
  EXPECT_TRUE(Seen(PlantedBug::kLosesTasks, {"given to two"}, 3));
}

TEST(FaultSimulation, SeesAHeldJobThatStarts) {
  EXPECT_TRUE(
      Seen(PlantedBug::kForgetsHolds, {"while it is held", "an acknowledged hold is lost"}, 3));
}

TEST(FaultSimulation, SeesAnUpdateThatIsLost) {
  EXPECT_TRUE(Seen(PlantedBug::kForgetsUpdates, {"an acknowledged update"}, 3));
}

TEST(FaultSimulation, SeesGpusThatAreGrantedTwice) {
  EXPECT_TRUE(Seen(PlantedBug::kDoubleGrant, {"is held by job"}, 10));
}

}  // namespace
}  // namespace trainyard
