// SPDX-License-Identifier: Apache-2.0
// The catalogue, and each ordering on hand-made jobs: what makes a key, and when it moves.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/catalog_lookup.h"
#include "policies/policies.h"
#include "support/hand_made_jobs.h"

namespace trainyard::policies {
namespace {

constexpr double kSecond = 1e6;  // in keys

JobSpec Asking(int gpus) { return {.name = "job", .gpus = gpus}; }

JobSpec Due(std::optional<double> deadline) {
  JobSpec spec = Asking(1);
  if (deadline) {
    spec.deadline = AtSeconds(*deadline);
  }
  return spec;
}

// ------------------------------------------------------------------------------------- catalogue

TEST(PolicyCatalogTest, AnUnknownNameIsAnsweredWithTheNearestAndAllNames) {
  const Result<Components> policy = TryPolicy("tirsias");
  ASSERT_FALSE(policy.ok());
  EXPECT_EQ(policy.error().code, ErrorCode::kInvalidArgument);
  std::string expected = "unknown policy 'tirsias'; did you mean 'tiresias'?; known: ";
  for (const ComponentEntry& entry : base::EntriesOfKind(Policies(), ComponentKind::kPolicy)) {
    expected += std::string(entry.name) + ", ";
  }
  EXPECT_EQ(policy.error().message + ", ", expected);
}

TEST(PolicyCatalogTest, AnUnknownOptionIsAnsweredWithTheNearest) {
  EXPECT_EQ(PolicyError("las:quantums=5"),
            "policy 'las': unknown option 'quantums'; did you mean 'quantum'?; known: quantum, "
            "service, guard, guard_again, guard_late");
  EXPECT_EQ(PolicyError("fjf:quantum=5"), "policy 'fjf': unknown option 'quantum'; known: none");
}

TEST(PolicyCatalogTest, AValueOfTheWrongKindIsRefused) {
  EXPECT_EQ(PolicyError("las:quantum=-1"),
            "policy 'las': option 'quantum' is '-1'; expected seconds >= 0, or a time "
            "such as 90s, 15m or 2h");
  EXPECT_EQ(PolicyError("sjf:by=size"),
            "policy 'sjf': option 'by' is 'size'; expected one of duration, gpus");
  EXPECT_EQ(PolicyError("tiresias:thresholds=1/x"),
            "policy 'tiresias': option 'thresholds' is '1/x'; expected numbers >= 0 separated by "
            "'/'");
}

// ----------------------------------------------------------------------------- orders at arrival

TEST(FifoTest, OnlyTheArrivalCounts) {
  HandMadeJobs jobs;
  const auto fifo = OrderingNamed("fifo");
  EXPECT_EQ(fifo->traits().moves, kNeverMoves);
  EXPECT_EQ(fifo->StandingOf(jobs.Add(Asking(8)), {}, nullptr).key,
            fifo->StandingOf(jobs.Add(Asking(1), 1), {}, nullptr).key);
}

TEST(FifoTest, AMisfitHoldsUpTheRestAndNobodyIsPreempted) {
  const Walk walk = OrderingNamed("fifo")->traits().walk;
  EXPECT_EQ(walk.misfit, Misfit::kStop);
  EXPECT_FALSE(walk.preempt);
}

TEST(FjfTest, IsFifoThatPassesOverAMisfit) {
  HandMadeJobs jobs;
  const auto fjf = OrderingNamed("fjf");
  EXPECT_EQ(fjf->traits().moves, kNeverMoves);
  EXPECT_EQ(fjf->StandingOf(jobs.Add(Asking(8)), {}, nullptr).key,
            fjf->StandingOf(jobs.Add(Asking(1)), {}, nullptr).key);
  EXPECT_EQ(fjf->traits().walk.misfit, Misfit::kSkip);
  EXPECT_FALSE(fjf->traits().walk.preempt);
}

TEST(SjfTest, TheShorterWholeRunComesFirst) {
  HandMadeJobs jobs;
  JobView& nearly_done = jobs.Add(Asking(1), 1);
  nearly_done.total_time = FromSeconds(100);
  nearly_done.time_left = FromSeconds(1);
  JobView& fresh = jobs.Add(Asking(1));
  fresh.total_time = FromSeconds(50);
  fresh.time_left = FromSeconds(50);
  const auto sjf = OrderingNamed("sjf");
  EXPECT_EQ(sjf->StandingOf(fresh, {}, nullptr).key[0], 50 * kSecond);
  EXPECT_LT(sjf->StandingOf(fresh, {}, nullptr).key, sjf->StandingOf(nearly_done, {}, nullptr).key);
  EXPECT_EQ(sjf->traits().moves, kNeverMoves);
  EXPECT_TRUE(sjf->traits().needs.work_left);
}

TEST(SjfTest, ByGpusTheSmallerGangComesFirstWhateverItsLength) {
  HandMadeJobs jobs;
  JobView& small = jobs.Add(Asking(2));
  small.total_time = FromSeconds(1000);
  JobView& large = jobs.Add(Asking(4));
  large.total_time = FromSeconds(10);
  const auto sjf = OrderingNamed("sjf:by=gpus");
  EXPECT_EQ(sjf->StandingOf(small, {}, nullptr).key[0], 2);
  EXPECT_LT(sjf->StandingOf(small, {}, nullptr).key, sjf->StandingOf(large, {}, nullptr).key);
  EXPECT_FALSE(sjf->traits().needs.work_left);
}

TEST(SjfTest, BackfillsWithoutPreemption) {
  for (const std::string name : {"sjf", "sjf:by=gpus"}) {
    EXPECT_EQ(OrderingNamed(name)->traits().walk.misfit, Misfit::kSkip);
    EXPECT_FALSE(OrderingNamed(name)->traits().walk.preempt);
  }
}

TEST(EdfTest, TheEarlierDeadlineComesFirstAndNoneLast) {
  HandMadeJobs jobs;
  const auto edf = OrderingNamed("edf");
  const Key late = edf->StandingOf(jobs.Add(Due(900)), {}, nullptr).key;
  const Key early = edf->StandingOf(jobs.Add(Due(500)), {}, nullptr).key;
  const Key none = edf->StandingOf(jobs.Add(Due(std::nullopt)), {}, nullptr).key;
  EXPECT_EQ(early[0], 500 * kSecond);
  EXPECT_LT(early, late);
  EXPECT_LT(late, none);
}

TEST(EdfTest, AKeyNeverMovesAndARunningJobCanBePreempted) {
  const auto edf = OrderingNamed("edf");
  EXPECT_EQ(edf->traits().moves, kNeverMoves);
  EXPECT_TRUE(edf->traits().walk.preempt);
  EXPECT_EQ(edf->traits().walk.misfit, Misfit::kSkip);
  EXPECT_FALSE(edf->traits().needs.work_left);
}

// ------------------------------------------------------------------------------- remaining work

TEST(SrtfTest, TheLeastRemainingTimeComesFirst) {
  HandMadeJobs jobs;
  JobView& long_one = jobs.Add(Asking(1));
  long_one.time_left = FromSeconds(80);
  long_one.total_time = FromSeconds(80);
  JobView& nearly_done = jobs.Add(Asking(8), 8);
  nearly_done.time_left = FromSeconds(20);
  nearly_done.total_time = FromSeconds(1000);
  const auto srtf = OrderingNamed("srtf");
  EXPECT_EQ(srtf->StandingOf(nearly_done, {}, nullptr).key[0], 20 * kSecond);
  EXPECT_LT(srtf->StandingOf(nearly_done, {}, nullptr).key,
            srtf->StandingOf(long_one, {}, nullptr).key);
}

TEST(SrtfTest, AServedKeyFallsByAMicrosecondPerMicrosecond) {
  HandMadeJobs jobs;
  const auto srtf = OrderingNamed("srtf");
  EXPECT_EQ(srtf->traits().moves, kWhileServed);
  EXPECT_EQ(srtf->StandingOf(jobs.Add(Asking(8), 8), {}, nullptr).slope, -1);
  EXPECT_TRUE(srtf->traits().needs.work_left);
  EXPECT_TRUE(srtf->traits().walk.preempt);
}

TEST(SrtfTest, AJobThatCannotRunComesLast) {
  HandMadeJobs jobs;
  const JobView& stuck = jobs.Add(Asking(1));
  JobView& other = jobs.Add(Asking(1));
  other.time_left = FromSeconds(1e6);
  const auto srtf = OrderingNamed("srtf");
  EXPECT_LT(srtf->StandingOf(other, {}, nullptr).key, srtf->StandingOf(stuck, {}, nullptr).key);
}

TEST(SrsfTest, RemainingTimeCountsOncePerGpu) {
  HandMadeJobs jobs;
  JobView& wide = jobs.Add(Asking(8));
  wide.time_left = FromSeconds(20);
  JobView& narrow = jobs.Add(Asking(1));
  narrow.time_left = FromSeconds(100);
  const auto srsf = OrderingNamed("srsf");
  EXPECT_EQ(srsf->StandingOf(wide, {}, nullptr).key[0], 160 * kSecond);
  EXPECT_LT(srsf->StandingOf(narrow, {}, nullptr).key, srsf->StandingOf(wide, {}, nullptr).key);
}

TEST(SrsfTest, AServedKeyFallsByTheGpusItHolds) {
  HandMadeJobs jobs;
  const auto srsf = OrderingNamed("srsf");
  EXPECT_EQ(srsf->traits().moves, kWhileServed);
  EXPECT_EQ(srsf->StandingOf(jobs.Add(Asking(8), 8), {}, nullptr).slope, -8);
  EXPECT_TRUE(srsf->traits().needs.work_left);
}

// --------------------------------------------------------------------------------------- service

TEST(LasTest, LeastServedJobComesFirst) {
  HandMadeJobs jobs;
  JobView& served = jobs.Add(Asking(1), 1);
  served.gpu_seconds = 130;
  JobView& waiting = jobs.Add(Asking(1));
  waiting.gpu_seconds = 59;
  const auto las = OrderingNamed("las:quantum=60");
  EXPECT_LT(las->StandingOf(waiting, {}, nullptr).key, las->StandingOf(served, {}, nullptr).key);
}

TEST(LasTest, WithinAQuantumARunningJobStays) {
  HandMadeJobs jobs;
  JobView& served = jobs.Add(Asking(1), 1);
  served.gpu_seconds = 59;
  JobView& waiting = jobs.Add(Asking(1));
  waiting.gpu_seconds = 1;
  const auto las = OrderingNamed("las:quantum=60");
  EXPECT_LT(las->StandingOf(served, {}, nullptr).key, las->StandingOf(waiting, {}, nullptr).key);
  EXPECT_EQ(las->traits().moves, kAtKnownTimes | kOnGrant);
}

TEST(LasTest, AKeyMovesWhenTheQuantumIsUsedUp) {
  HandMadeJobs jobs;
  JobView& served = jobs.Add(Asking(3), 3);
  served.gpu_seconds = 90;
  const auto las = OrderingNamed("las:quantum=60");
  // 30 of the second quantum are left, used by 3 GPUs.
  EXPECT_EQ(las->StandingOf(served, AtSeconds(7), nullptr).moves_at, AtSeconds(17));
}

TEST(LasTest, AWaitingJobStaysWhereItIs) {
  HandMadeJobs jobs;
  const auto las = OrderingNamed("las:quantum=60");
  EXPECT_EQ(las->StandingOf(jobs.Add(Asking(3)), AtSeconds(7), nullptr).moves_at, std::nullopt);
}

TEST(LasTest, AKeyDueNowMovesLater) {
  HandMadeJobs jobs;
  JobView& served = jobs.Add(Asking(1), 1);
  served.gpu_seconds = 0.3;  // 0.3 / 0.1 lies below 3 as a double
  const auto las = OrderingNamed("las:quantum=0.1");
  EXPECT_GT(*las->StandingOf(served, AtSeconds(7), nullptr).moves_at, AtSeconds(7));
}

TEST(LasTest, AQuantumOfAnHourIsTheDefault) {
  HandMadeJobs jobs;
  JobView& served = jobs.Add(Asking(1), 1);
  const auto las = OrderingNamed("las");
  EXPECT_EQ(las->StandingOf(served, AtSeconds(0), nullptr).moves_at, AtSeconds(3600));
}

TEST(LasTest, WithoutAQuantumTheServiceItselfIsCompared) {
  HandMadeJobs jobs;
  JobView& more = jobs.Add(Asking(4), 4);
  more.gpu_seconds = 2;
  JobView& less = jobs.Add(Asking(4));
  less.gpu_seconds = 1.5;
  const auto las = OrderingNamed("las:quantum=0");
  EXPECT_LT(las->StandingOf(less, {}, nullptr).key, las->StandingOf(more, {}, nullptr).key);
  EXPECT_EQ(las->traits().moves, kWhileServed);
  EXPECT_EQ(las->StandingOf(more, {}, nullptr).slope,
            4);  // GPU-microseconds per microsecond, as the key
  EXPECT_EQ(las->StandingOf(more, {}, nullptr).key[0], 2 * kSecond);
}

// ------------------------------------------------------------------------------------------ auto

TEST(AutoTest, TakesTheFirstOfTheBest) {
  const auto scores = [](std::size_t candidate, std::optional<Duration> horizon) {
    EXPECT_EQ(horizon, FromSeconds(600));
    return Selector::Outlook{.jobs = 2, .mean_jct = std::array{50.0, 40.0, 40.0}[candidate]};
  };
  const Components made = TryPolicy("auto:horizon=600,less=10").value();
  const Selector::Choice choice = made.selector->Choose({}, 3, scores);
  EXPECT_EQ(choice.candidate, 1U);
  EXPECT_EQ(choice.scores, (std::vector<double>{40, 30, 30}));
}

TEST(AutoTest, ACandidateThatCompletesLessDoesNotWin) {
  const std::array outlooks{Selector::Outlook{}, Selector::Outlook{.jobs = 1, .mean_jct = 5},
                            Selector::Outlook{.jobs = 2, .mean_jct = 50},
                            Selector::Outlook{.jobs = 2, .mean_jct = 40}};
  const auto forecast = [&](std::size_t candidate, std::optional<Duration> /*horizon*/) {
    return outlooks[candidate];
  };
  const Selector::Choice choice =
      TryPolicy("auto:horizon=60").value().selector->Choose({}, 4, forecast);
  EXPECT_EQ(choice.candidate, 3U);
  EXPECT_EQ(choice.scores.front(), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(choice.errors.empty());
  const Selector::Choice published =
      TryPolicy("auto:horizon=60,compare=mean").value().selector->Choose({}, 4, forecast);
  EXPECT_EQ(published.candidate, 0U);
  EXPECT_EQ(published.scores, (std::vector<double>{0, 5, 50, 40}));
}

TEST(AutoTest, ACandidateThatFailsIsOutAndSaysWhy) {
  const auto forecast = [](std::size_t candidate, std::optional<Duration> /*horizon*/) {
    return candidate == 0 ? Selector::Outlook{.jobs = 9, .mean_jct = 1, .error = "no such GPU"}
                          : Selector::Outlook{.jobs = 1, .mean_jct = 50};
  };
  for (const char* policy : {"auto", "auto:compare=mean"}) {
    const Selector::Choice choice = TryPolicy(policy).value().selector->Choose({}, 2, forecast);
    EXPECT_EQ(choice.candidate, 1U);
    EXPECT_EQ(choice.errors, (std::vector<std::string>{"no such GPU", ""}));
  }
}

TEST(AutoTest, WhereEveryCandidateFailsTheFirstDecides) {
  const auto forecast = [](std::size_t /*candidate*/, std::optional<Duration> /*horizon*/) {
    return Selector::Outlook{.error = "refused"};
  };
  EXPECT_EQ(TryPolicy("auto").value().selector->Choose({}, 2, forecast).candidate, 0U);
}

TEST(AutoTest, CandidatesHaveTheirOptionsInBrackets) {
  const Components made =
      TryPolicy("auto:policies=las(quantum=600,service=time)+fifo,placements=buddy").value();
  EXPECT_EQ(made.candidates.policies,
            (std::vector<std::string>{"las:quantum=600,service=time", "fifo"}));
  EXPECT_EQ(made.candidates.placements, std::vector<std::string>{"buddy"});
  EXPECT_EQ(made.candidates.admissions.back(), "load:threshold=1.4");
}

}  // namespace
}  // namespace trainyard::policies
