// SPDX-License-Identifier: Apache-2.0
// The catalogue, and each ordering on hand-made jobs: what makes a key, and when it moves.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/catalog_lookup.h"
#include "policy/hand_made_jobs.h"
#include "policy/policies.h"

namespace trainyard {
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
  for (const ComponentEntry& entry : EntriesOfKind(Policies(), ComponentKind::kPolicy)) {
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

// -------------------------------------------------------------------------------------- Tiresias

// Jobs under one ordering, told what the engine would tell it.
class Queues {
 public:
  explicit Queues(const std::string& policy, const ComponentContext& context = {})
      : ordering_(OrderingNamed(policy, context)), memory_(ordering_->NewMemory()) {}

  JobView& Arrive(int gpus, double at = 0) {
    JobSpec spec = Asking(gpus);
    spec.submit = AtSeconds(at);
    JobView& job = jobs_.Add(spec);
    Notify(JobEvent::kArrived, job, at);
    return job;
  }
  // The job has GPUs, or none, from `at` on.
  void Settle(JobView& job, bool runs, double at) {
    jobs_.Hold(job, runs ? job.spec->gpus : 0);
    Notify(JobEvent::kSettled, job, at);
  }
  void Due(JobView& job, double at) { Notify(JobEvent::kDue, job, at); }

  [[nodiscard]] Key KeyOf(const JobView& job) const {
    return ordering_->StandingOf(job, {}, memory_.get()).key;
  }
  // The queue of the job, 0 to the number of thresholds.
  [[nodiscard]] double QueueOf(const JobView& job) const { return KeyOf(job)[0]; }
  [[nodiscard]] std::optional<double> NextMove(const JobView& job, double now) const {
    return InSeconds(ordering_->StandingOf(job, AtSeconds(now), memory_.get()).moves_at);
  }
  [[nodiscard]] std::optional<double> NextWake(double now) const {
    const Snapshot snapshot{.now = AtSeconds(now), .jobs = &jobs_};
    return InSeconds(ordering_->NextWake(snapshot, memory_.get()));
  }
  [[nodiscard]] const Ordering& ordering() const { return *ordering_; }
  [[nodiscard]] std::unique_ptr<Memory> CopyOfMemory() const {
    return CopyOf(*memory_, *ordering_);
  }

 private:
  static std::optional<double> InSeconds(std::optional<TimePoint> time) {
    return time ? std::optional<double>(Seconds(*time)) : std::nullopt;
  }
  void Notify(JobEvent event, const JobView& job, double at) {
    ordering_->Notify(event, job, AtSeconds(at), memory_.get());
  }

  std::unique_ptr<Ordering> ordering_;
  std::unique_ptr<Memory> memory_;
  HandMadeJobs jobs_;
};

// A running job that has had `run_time` seconds of GPUs since 0.
JobView& Running(Queues& queues, int gpus, double run_time) {
  JobView& job = queues.Arrive(gpus);
  queues.Settle(job, true, 0);
  job.run_time = FromSeconds(run_time);
  job.productive_time = job.run_time;
  return job;
}

TEST(TiresiasTest, JobsEnterTheFirstQueueInOrderOfArrival) {
  Queues queues("tiresias");
  const JobView& first = queues.Arrive(8);
  const JobView& second = queues.Arrive(1);
  EXPECT_EQ(queues.QueueOf(first), 0);
  EXPECT_EQ(queues.QueueOf(second), 0);
  EXPECT_LT(queues.KeyOf(first), queues.KeyOf(second));
}

TEST(TiresiasTest, KeysMoveAtKnownTimesAndWithGrants) {
  const auto tiresias = OrderingNamed("tiresias");
  EXPECT_EQ(tiresias->traits().moves, kAtKnownTimes | kOnGrant);
  EXPECT_FALSE(tiresias->traits().sets_wake);
  EXPECT_TRUE(tiresias->traits().walk.preempt);
  EXPECT_FALSE(tiresias->traits().needs.work_left);
}

TEST(TiresiasTest, ARunningJobIsDemotedWhenItsServiceReachesTheThreshold) {
  Queues queues("tiresias:thresholds=1000/3000");
  JobView& job = Running(queues, 4, 249);
  queues.Due(job, 249);
  EXPECT_EQ(queues.QueueOf(job), 0);
  job.run_time = FromSeconds(250);
  queues.Due(job, 250);
  EXPECT_EQ(queues.QueueOf(job), 1);
}

TEST(TiresiasTest, ServiceCanBeTimeAlone) {
  Queues queues("tiresias:thresholds=1000/3000,service=time");
  JobView& job = Running(queues, 4, 999);
  queues.Due(job, 999);
  EXPECT_EQ(queues.QueueOf(job), 0);
  EXPECT_EQ(queues.NextMove(job, 999), 1000);
}

TEST(TiresiasTest, TheNextMoveIsTheExactTimeOfTheDemotion) {
  Queues queues("tiresias:thresholds=1000/3000");
  const JobView& job = Running(queues, 4, 100);  // 600 GPU-seconds to go
  EXPECT_EQ(queues.NextMove(job, 100), 250);
}

TEST(TiresiasTest, ADemotedJobAimsAtTheNextThreshold) {
  Queues queues("tiresias:thresholds=1000/3000");
  JobView& job = Running(queues, 4, 250);
  queues.Due(job, 250);
  EXPECT_EQ(queues.NextMove(job, 250), 750);
}

TEST(TiresiasTest, TheLastQueueIsNeverLeft) {
  Queues queues("tiresias:thresholds=1000/3000");
  JobView& job = Running(queues, 4, 750);
  queues.Due(job, 750);
  EXPECT_EQ(queues.QueueOf(job), 2);
  EXPECT_EQ(queues.NextMove(job, 750), std::nullopt);
}

TEST(TiresiasTest, PublishedChecksDemoteByOneQueueAtATime) {
  Queues queues("tiresias:thresholds=1000/3000,check=floor");
  JobView& job = Running(queues, 4, 750);
  queues.Due(job, 750);
  EXPECT_EQ(queues.QueueOf(job), 1);
  queues.Due(job, 750);
  EXPECT_EQ(queues.QueueOf(job), 2);
}

TEST(TiresiasTest, ADemotedJobEntersBehindTheQueue) {
  Queues queues("tiresias:thresholds=1000/3000");
  JobView& first = Running(queues, 4, 250);
  JobView& second = Running(queues, 4, 260);
  queues.Due(second, 260);
  queues.Due(first, 260);
  EXPECT_LT(queues.KeyOf(second), queues.KeyOf(first));
}

TEST(TiresiasTest, RestartCostsAreServiceUnlessOnlyProductiveTimeCounts) {
  Queues held("tiresias:thresholds=1000");
  JobView& job = Running(held, 1, 600);
  job.productive_time = FromSeconds(500);
  EXPECT_EQ(held.NextMove(job, 600), 1000);
  Queues productive("tiresias:thresholds=1000,counts=productive");
  JobView& other = Running(productive, 1, 600);
  other.productive_time = FromSeconds(500);
  EXPECT_EQ(productive.NextMove(other, 600), 1100);
}

TEST(TiresiasTest, ARunningJobStaysBeforeTheWaitingOnesOfItsQueue) {
  Queues queues("tiresias");
  const JobView& waiting = queues.Arrive(1);
  JobView& running = queues.Arrive(1);
  queues.Settle(running, true, 0);
  EXPECT_LT(queues.KeyOf(running), queues.KeyOf(waiting));
}

TEST(TiresiasTest, TheLatestStoppedJobWaitsFirst) {
  Queues queues("tiresias");
  const JobView& never_ran = queues.Arrive(1);
  JobView& stopped_early = Running(queues, 1, 50);
  JobView& stopped_late = Running(queues, 1, 70);
  queues.Settle(stopped_early, false, 50);
  queues.Settle(stopped_late, false, 70);
  EXPECT_LT(queues.KeyOf(stopped_late), queues.KeyOf(stopped_early));
  EXPECT_LT(queues.KeyOf(stopped_early), queues.KeyOf(never_ran));
}

TEST(TiresiasTest, JobsStoppedTogetherKeepTheirOrder) {
  Queues queues("tiresias");
  JobView& first = Running(queues, 1, 50);
  JobView& second = Running(queues, 1, 50);
  queues.Settle(second, false, 50);
  queues.Settle(first, false, 50);
  EXPECT_LT(queues.KeyOf(first), queues.KeyOf(second));
}

// A job of one GPU that was demoted at 100 s and stopped then.
JobView& Demoted(Queues& queues) {
  JobView& job = Running(queues, 1, 100);
  queues.Due(job, 100);
  queues.Settle(job, false, 100);
  return job;
}

TEST(TiresiasTest, AStarvingJobIsPromoted) {
  Queues queues("tiresias:thresholds=100/1000,promote=2");
  JobView& job = Demoted(queues);
  EXPECT_EQ(queues.NextMove(job, 100), 300);
  job.waited = FromSeconds(199);
  queues.Due(job, 299);
  EXPECT_EQ(queues.QueueOf(job), 1);
  job.waited = FromSeconds(200);
  queues.Due(job, 300);
  EXPECT_EQ(queues.QueueOf(job), 0);
}

TEST(TiresiasTest, APromotedJobHasItsWholeThresholdAgain) {
  Queues queues("tiresias:thresholds=100/1000,promote=2");
  JobView& job = Demoted(queues);
  job.waited = FromSeconds(200);
  queues.Due(job, 300);
  queues.Settle(job, true, 300);
  EXPECT_EQ(queues.NextMove(job, 300), 400);
}

TEST(TiresiasTest, APromotedJobEntersBehindTheFirstQueue) {
  Queues queues("tiresias:thresholds=100/1000,promote=2");
  JobView& job = Demoted(queues);
  const JobView& newcomer = queues.Arrive(1, 250);
  job.waited = FromSeconds(200);
  queues.Due(job, 300);
  EXPECT_LT(queues.KeyOf(newcomer), queues.KeyOf(job));
}

TEST(TiresiasTest, NobodyIsPromotedWithoutTheOption) {
  Queues queues("tiresias:thresholds=100/1000");
  JobView& job = Demoted(queues);
  EXPECT_EQ(queues.NextMove(job, 100), std::nullopt);
  job.waited = FromSeconds(1e6);
  queues.Due(job, 1e6);
  EXPECT_EQ(queues.QueueOf(job), 1);
}

TEST(TiresiasTest, StarvingBeginsAnewWithEachStop) {
  Queues queues("tiresias:thresholds=100/1000,promote=2");
  JobView& job = Demoted(queues);
  job.waited = FromSeconds(150);
  queues.Settle(job, true, 250);
  job.run_time = FromSeconds(110);
  queues.Settle(job, false, 260);
  EXPECT_EQ(queues.NextMove(job, 260), 260 + 2 * 110);
}

TEST(TiresiasTest, ThePublishedStarvingIsNotClearedByARun) {
  Queues queues("tiresias:thresholds=100/1000,promote=2,check=floor");
  JobView& job = Demoted(queues);
  job.waited = FromSeconds(150);
  queues.Settle(job, true, 250);
  job.run_time = FromSeconds(110);
  queues.Settle(job, false, 260);
  EXPECT_EQ(queues.NextWake(260), 260 + 2 * 110 - 150);
}

TEST(TiresiasTest, WaitingBeforeTheFirstRunIsNotStarving) {
  Queues queues("tiresias:thresholds=100/1000,promote=2");
  JobView& job = queues.Arrive(1);
  job.waited = FromSeconds(500);
  queues.Settle(job, true, 500);
  job.run_time = FromSeconds(100);
  queues.Due(job, 600);
  queues.Settle(job, false, 600);
  EXPECT_EQ(queues.NextMove(job, 600), 800);
}

// Tiresias, reference 2.3 step 8: T + floor((limit - executed) / GPUs).
TEST(TiresiasTest, ThePublishedCheckComesAtAFloorOfExecutedTime) {
  Queues queues("tiresias:thresholds=3250/7200,check=floor");
  EXPECT_TRUE(queues.ordering().traits().sets_wake);
  (void)Running(queues, 4, 100);
  EXPECT_EQ(queues.NextWake(1000), 1000 + 787);  // 3150 / 4 = 787.5
}

// ElasticFlow, reference 6.1: now + ceil((threshold - executed) / GPUs).
TEST(TiresiasTest, TheElasticFlowCheckComesAtACeiling) {
  Queues queues("tiresias:thresholds=3250/7200,check=ceil");
  (void)Running(queues, 4, 100);
  EXPECT_EQ(queues.NextWake(1000), 1000 + 788);
}

// Muri, reference 5: now + ceil(threshold / GPUs) - executed, which stays a real number.
TEST(TiresiasTest, TheMuriCheckComesAfterAWholeSecondOfRunTime) {
  Queues queues("tiresias:thresholds=3250/7200,check=whole");
  JobView& job = Running(queues, 4, 100.5);
  EXPECT_EQ(queues.NextWake(1000), 1000 + 813 - 100.5);
  job.run_time = FromSeconds(813);
  queues.Due(job, 1713);
  EXPECT_EQ(queues.QueueOf(job), 1);
}

TEST(TiresiasTest, ThePublishedCheckByTimeAloneIsExact) {
  Queues queues("tiresias:thresholds=3250/7200,check=floor,service=time");
  (void)Running(queues, 4, 100);
  EXPECT_EQ(queues.NextWake(1000), 1000 + 3150);
}

TEST(TiresiasTest, ThePublishedCheckIsTheEarliestOfAllJobs) {
  Queues queues("tiresias:thresholds=3250/7200,check=floor");
  (void)queues.Arrive(8);  // never ran: no check
  (void)Running(queues, 1, 100);
  (void)Running(queues, 8, 10);
  EXPECT_EQ(queues.NextWake(1000), 1000 + 405);  // 3240 / 8
}

// T + trunc(executed * K - lastpend), reference 2.3 step 8.
TEST(TiresiasTest, ThePublishedPromotionCheckIsTruncated) {
  Queues queues("tiresias:thresholds=100/1000,promote=0.5,check=floor");
  JobView& job = Running(queues, 1, 301);
  queues.Due(job, 301);
  queues.Settle(job, false, 301);
  job.waited = FromSeconds(20);
  EXPECT_EQ(queues.NextWake(321), 321 + 130);  // 150.5 - 20
}

TEST(TiresiasTest, APublishedPromotionThatIsDueIsNoCheck) {
  Queues queues("tiresias:thresholds=100/1000,promote=0.5,check=floor");
  JobView& job = Running(queues, 1, 301);
  queues.Due(job, 301);
  queues.Settle(job, false, 301);
  job.waited = FromSeconds(150);  // half a second is left: cut to nothing
  EXPECT_EQ(queues.NextWake(451), std::nullopt);
}

TEST(TiresiasTest, ThePublishedPromotionIsDueAtTheTruncatedTime) {
  Queues queues("tiresias:thresholds=100/1000,promote=0.5,check=floor");
  JobView& job = Running(queues, 1, 301);
  queues.Due(job, 301);
  queues.Settle(job, false, 301);
  job.waited = FromSeconds(150);
  queues.Due(job, 451);
  EXPECT_EQ(queues.QueueOf(job), 0);
}

TEST(TiresiasTest, AClonedMemoryGoesItsOwnWay) {
  Queues queues("tiresias:thresholds=100");
  JobView& job = Running(queues, 1, 100);
  const std::unique_ptr<Memory> before = queues.CopyOfMemory();
  queues.Due(job, 100);
  EXPECT_EQ(queues.QueueOf(job), 1);
  EXPECT_EQ(queues.ordering().StandingOf(job, {}, before.get()).key[0], 0);
}

TEST(TiresiasTest, ThresholdsThatFallAreRefused) {
  EXPECT_EQ(PolicyError("tiresias:thresholds=7200/3250"),
            "policy 'tiresias': thresholds must not fall");
  EXPECT_EQ(PolicyError("tiresias:thresholds=100/100"), "no error");
}

TEST(TiresiasTest, GittinsWithoutAPriorIsRefused) {
  const Result<Components> policy = TryPolicy("tiresias:ranking=gittins");
  ASSERT_FALSE(policy.ok());
  EXPECT_EQ(policy.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(policy.error().message.starts_with(
      "policy 'tiresias': ranking=gittins needs prior=FILE: samples of total service in "
      "GPU-seconds, one per line"))
      << policy.error().message;
}

TEST(TiresiasTest, APriorThatCannotBeReadIsRefusedWithItsOwnWords) {
  const ComponentContext context{.read_samples = [](const std::string& name) {
    return Result<std::vector<double>>(BadInput(name + ": no such file"));
  }};
  EXPECT_EQ(PolicyError("tiresias:ranking=gittins,prior=x.csv", context), "x.csv: no such file");
}

TEST(TiresiasTest, GittinsPutsTheLikelierEndFirst) {
  const ComponentContext context{.read_samples = [](const std::string&) {
    return Result<std::vector<double>>({10, 10, 10, 1000});
  }};
  Queues queues("tiresias:ranking=gittins,prior=x,thresholds=100/200", context);
  EXPECT_EQ(queues.ordering().traits().moves, kAtKnownTimes | kOnGrant | kAlways);
  const JobView& past_the_short_ones = Running(queues, 1, 50);
  const JobView& young = Running(queues, 1, 5);
  EXPECT_LT(queues.KeyOf(young), queues.KeyOf(past_the_short_ones));
  // 3 of 4 end within 100, which takes (3 x 5 + 100) / 4 on average.
  EXPECT_DOUBLE_EQ(queues.KeyOf(young)[1], -3.0 / 115);
  EXPECT_EQ(queues.KeyOf(past_the_short_ones)[1], 0);
}

TEST(TiresiasTest, OfEqualIndicesTheRunningJobComesFirstOrAsPublishedTheEarlierSubmit) {
  const ComponentContext context{.read_samples = [](const std::string&) {
    return Result<std::vector<double>>({10, 1000});
  }};
  for (const bool published : {false, true}) {
    Queues queues(std::string("tiresias:ranking=gittins,prior=x,thresholds=100/200,check=") +
                      (published ? "floor" : "exact"),
                  context);
    const JobView& early = queues.Arrive(1, 3);
    JobView& late = queues.Arrive(1, 4);
    queues.Settle(late, true, 4);
    EXPECT_EQ(queues.KeyOf(early) < queues.KeyOf(late), published);
  }
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

TEST(AutoTest, CandidatesHaveTheirOptionsInBrackets) {
  const Components made =
      TryPolicy("auto:policies=las(quantum=600,service=time)+fifo,placements=buddy").value();
  EXPECT_EQ(made.candidates.policies,
            (std::vector<std::string>{"las:quantum=600,service=time", "fifo"}));
  EXPECT_EQ(made.candidates.placements, std::vector<std::string>{"buddy"});
  EXPECT_EQ(made.candidates.admissions.back(), "load:threshold=1.4");
}

}  // namespace
}  // namespace trainyard
