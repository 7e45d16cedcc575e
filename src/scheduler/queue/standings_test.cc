// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/standings.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/queued_jobs.h"

namespace trainyard::scheduler {
namespace {

using Band = OrderIndex::Band;
using Jobs = std::vector<JobId>;

// Remembers of what it has been told, and about which job.
class Told final : public Ordering {
 public:
  struct Remembers final : Memory {
    void Serialize(StateStream& state) override { state(told); }
    int told = 0;
  };
  explicit Told(const OrderingTraits& traits) : traits_(traits) {}
  [[nodiscard]] std::string_view name() const override { return "told"; }
  [[nodiscard]] OrderingTraits traits() const override { return traits_; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<Remembers>();
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {-static_cast<double>(Index(job.id))}, .moves_at = moves_at[Index(job.id)]};
  }
  void Notify(JobEvent event, const JobView& job, TimePoint /*now*/,
              Memory* /*memory*/) const override {
    events.emplace_back(event, job.id);
  }

  std::vector<std::optional<TimePoint>> moves_at = std::vector<std::optional<TimePoint>>(8);
  mutable std::vector<std::pair<JobEvent, JobId>> events;

 private:
  const OrderingTraits traits_;
};

TEST(StandingsTest, JobsThatGoFirstOrStayAreInBandsBeforeTheOthers) {
  QueuedJobs jobs;
  SetOrdering ordering;
  const JobId first = jobs.Add(1);
  const JobId stays = jobs.Add(1);
  const JobId open = jobs.Add(1);
  ordering.standings[first] = {.key = {9}, .first = true};
  ordering.SetKey(stays, 8);
  ordering.SetKey(open, 7);
  jobs.Hold(stays, {.gpus = 1, .slices = {}});
  jobs.view(stays).stay_left = FromSeconds(5);
  const Standings standings(ordering, jobs, {});
  EXPECT_EQ(standings.RankOf(jobs.at(first), TimePoint{}).band, Band::kFirst);
  EXPECT_EQ(standings.RankOf(jobs.at(stays), TimePoint{}).band, Band::kStays);
  EXPECT_EQ(standings.RankOf(jobs.at(open), TimePoint{}).band, Band::kOpen);
  EXPECT_EQ(standings.RankAfterStay(stays, AtSeconds(5), TimePoint{}).band, Band::kOpen);
  EXPECT_EQ(standings.Waiting(TimePoint{}), (Jobs{first, open}));
}

TEST(StandingsTest, OfEqualKeysRunningJobsGoFirstWhereTheRulesSaySo) {
  QueuedJobs jobs;
  const SetOrdering ordering;
  const JobId waits = jobs.Add(1);
  const JobId runs = jobs.Add(1);
  jobs.Hold(runs, {.gpus = 1, .slices = {}});
  const auto runs_first = [&](const QueueRules& rules) {
    const Standings standings(ordering, jobs, rules);
    return standings.RankOf(jobs.at(runs), TimePoint{}) <
           standings.RankOf(jobs.at(waits), TimePoint{});
  };
  EXPECT_TRUE(runs_first({.running_first = true}));
  EXPECT_FALSE(runs_first({.running_first = false}));
}

TEST(StandingsTest, NamesAJobWhoseKeyIsNoNumber) {
  QueuedJobs jobs;
  SetOrdering ordering;
  const JobId job = jobs.Add(1);
  const Standings standings(ordering, jobs, {});
  ordering.SetKey(job, std::numeric_limits<double>::infinity());
  (void)standings.RankOf(jobs.at(job), TimePoint{});
  EXPECT_EQ(standings.job_without_key(), std::nullopt);
  ordering.SetKey(job, std::numeric_limits<double>::quiet_NaN());
  (void)standings.RankOf(jobs.at(job), TimePoint{});
  EXPECT_EQ(standings.job_without_key(), job);
}

TEST(StandingsTest, TellsOfDueJobsByTimeThenByArrival) {
  QueuedJobs jobs;
  Told ordering({.moves = kAtKnownTimes});
  Standings standings(ordering, jobs, {});
  for (const double at : {30.0, 20.0, 30.0, 99.0}) {
    const JobId job = jobs.Add(1);
    ordering.moves_at[Index(job)] = AtSeconds(at);
    standings.Note(job, JobChange::kAdmitted, TimePoint{});
  }
  const Snapshot waits{.jobs_waiting = 1, .jobs = &jobs};
  EXPECT_EQ(standings.NextWake(waits, std::nullopt), AtSeconds(20));
  EXPECT_EQ(standings.NextWake(waits, AtSeconds(5)), AtSeconds(5));
  ordering.events.clear();
  Jobs moved;
  standings.TellDue(AtSeconds(30), [&](JobId job) { moved.push_back(job); });
  EXPECT_EQ(moved, (Jobs{JobAt(1), JobAt(0), JobAt(2)}));
  ASSERT_EQ(ordering.events.size(), 3U);
  EXPECT_EQ(ordering.events.front(), std::pair(JobEvent::kDue, JobAt(1)));
  EXPECT_EQ(standings.NextWake(waits, std::nullopt), AtSeconds(99));
  standings.Note(JobAt(3), JobChange::kLeft, AtSeconds(31));
  EXPECT_EQ(standings.NextWake(waits, std::nullopt), std::nullopt);
}

TEST(StandingsTest, TellsOfChangedGrantsInTheOrderOfTheWalk) {
  QueuedJobs jobs;
  Told ordering({.moves = kOnGrant});
  Standings standings(ordering, jobs, {});
  for (int i = 0; i < 3; ++i) {
    standings.Note(jobs.Add(1), JobChange::kAdmitted, TimePoint{});
  }
  ordering.events.clear();
  Jobs settled;
  standings.FollowUp(Jobs{JobAt(0), JobAt(2)}, AtSeconds(1),
                     [&](const JobView& view) { settled.push_back(view.id); });
  EXPECT_EQ(settled, (Jobs{JobAt(2), JobAt(0)}));  // the later job has the smaller key
  ASSERT_EQ(ordering.events.size(), 2U);
  EXPECT_EQ(ordering.events.front(), std::pair(JobEvent::kSettled, JobAt(2)));
}

TEST(StandingsTest, StaysEndInTheirOrderAndMatterWhileSomebodyWaits) {
  QueuedJobs jobs;
  const SetOrdering ordering;
  Standings standings(ordering, jobs, {});
  for (const double left : {20.0, 10.0}) {
    const JobId job = jobs.Add(1);
    jobs.Hold(job, {.gpus = 1, .slices = {}});
    jobs.view(job).stay_left = FromSeconds(left);
    standings.NoteStay(jobs.at(job), TimePoint{});
  }
  EXPECT_FALSE(standings.StaysMatter({.jobs_waiting = 0}));
  EXPECT_TRUE(standings.StaysMatter({.jobs_waiting = 1}));
  EXPECT_EQ(standings.FirstStayEnd([](JobId job, TimePoint) { return job == JobAt(0); }),
            AtSeconds(20));
  Jobs ended;
  standings.EndStays(AtSeconds(20), [&](JobId job) { ended.push_back(job); });
  EXPECT_EQ(ended, (Jobs{JobAt(1), JobAt(0)}));
  EXPECT_FALSE(standings.StaysMatter({.jobs_waiting = 1}));
}

TEST(StandingsTest, RefusesAListWhoseMarksAreMissing) {
  QueuedJobs jobs;
  const SetOrdering ordering;
  Standings standings(ordering, jobs, {});
  std::vector<Ranked> list{{.job = jobs.Add(1), .gpus = 1}};
  std::vector<bool> stale;
  OrderIndex index;
  JobSet postponed;
  StateStream written;
  standings.Serialize(written, index, list, stale, postponed);
  StateStream read{written.bytes()};
  Standings(ordering, jobs, {}).Serialize(read, index, list, stale, postponed);
  EXPECT_FALSE(read.good());
}

}  // namespace
}  // namespace trainyard::scheduler
