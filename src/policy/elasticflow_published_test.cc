// SPDX-License-Identifier: Apache-2.0
#include "policy/elasticflow_published.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <tuple>

#include "trainyard/snapshot.h"

namespace trainyard {
namespace {

// Six kinds of jobs; rates grow with the GPUs, though not always, and some levels are missing.
class RandomRates final : public ExecutionModel {
 public:
  explicit RandomRates(std::mt19937& random) {
    for (Row& row : rows_) {
      double rate = 0.5 + static_cast<double>(random() % 100) / 20;
      for (int gpus = 1; gpus <= 64; gpus *= 2) {
        if (gpus == 1 || random() % 8 != 0) {
          row.levels.push_back(gpus);
          row.rates.push_back(rate);
        }
        rate *= 0.9 + static_cast<double>(random() % 100) / 90;
      }
    }
  }

  [[nodiscard]] double TotalWork(const JobSpec& job) const override { return *job.iterations; }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    const Row& row = RowOf(job);
    for (std::size_t i = 0; i < row.levels.size(); ++i) {
      if (row.levels[i] == gpus) {
        return row.rates[i];
      }
    }
    return 0;
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const override {
    return RowOf(job).levels;
  }

 private:
  struct Row {
    std::vector<int> levels;
    std::vector<double> rates;
  };
  [[nodiscard]] const Row& RowOf(const JobSpec& job) const {
    return rows_[static_cast<std::size_t>(job.profile_row)];
  }
  std::array<Row, 6> rows_;
};

using Said = std::tuple<std::vector<std::pair<JobId, int>>, std::optional<TimePoint>,
                        std::vector<std::pair<JobId, Judgement>>,
                        std::vector<std::tuple<JobId, TimePoint, std::optional<TimePoint>>>>;

Said SaidBy(const Proposal& proposal) {
  Said said;
  for (const Demand& demand : proposal.demands) {
    std::get<0>(said).emplace_back(demand.job, demand.gpus);
  }
  std::get<1>(said) = proposal.wake_at;
  for (const Verdict& verdict : proposal.verdicts) {
    std::get<2>(said).emplace_back(verdict.job, verdict.judgement);
  }
  for (const PlannedEnd& end : proposal.ends) {
    std::get<3>(said).emplace_back(end.job, end.registered, end.done);
  }
  return said;
}

// A trace as far as a policy sees it: jobs come, advance by what they were given, and go.
class RandomTrace final : public JobTable {
 public:
  explicit RandomTrace(unsigned seed)
      : random_(seed), rates_(random_), nodes_(1 + static_cast<int>(random_() % 8)) {
    cluster_.nodes.resize(static_cast<std::size_t>(nodes_), {.name = "node", .gpus = 8});
  }

  [[nodiscard]] std::span<const JobId> live() const override { return live_; }
  [[nodiscard]] JobView at(JobId job) const override { return jobs_[Index(job)].view; }
  [[nodiscard]] const Grant& grant(JobId job) const override { return jobs_[Index(job)].grant; }

  // Time passes, jobs end and arrive.
  Snapshot Next(bool judged) {
    const Duration passed = FromSeconds(static_cast<double>(random_() % 4000) / 10);
    now_ += passed;
    for (const JobId id : live_) {
      Job& job = jobs_[Index(id)];
      *job.view.work_left -= Seconds(passed) * rates_.Rate(job.spec, job.grant.gpus);
    }
    std::erase_if(live_, [this](JobId id) { return *jobs_[Index(id)].view.work_left <= 0; });
    std::vector<JobId>& arrivals = judged ? unjudged_ : live_;
    for (auto left = random_() % 4; left > 0; --left) {
      arrivals.push_back(Arrive());
    }
    return {.now = now_,
            .cluster = &cluster_,
            .gpus_up = cluster_.total_gpus(),
            .jobs = this,
            .unjudged = unjudged_,
            .rates = &rates_};
  }

  void Follow(const Proposal& proposal) {
    for (const Verdict& verdict : proposal.verdicts) {
      if (verdict.judgement == Judgement::kAdmit) {
        live_.push_back(verdict.job);
      }
    }
    unjudged_.clear();
    for (const JobId id : live_) {
      jobs_[Index(id)].grant.gpus = 0;
    }
    for (const Demand& demand : proposal.demands) {
      Job& job = jobs_[Index(demand.job)];
      job.grant.gpus = demand.gpus;
      job.view.started = true;
    }
    for (const PlannedEnd& end : proposal.ends) {
      jobs_[Index(end.job)].view.expected_end = end.registered;
    }
  }

 private:
  struct Job {
    JobSpec spec;
    Grant grant;
    JobView view;
  };

  JobId Arrive() {
    const JobId id = JobAt(jobs_.size());
    Job& job = jobs_.emplace_back();
    job.spec.submit = now_;
    job.spec.batch_size = 1 << (random_() % 8);
    job.spec.profile_row = static_cast<int>(random_() % 6);
    const double alone = 1 + static_cast<double>(random_() % 40'000) / 10;  // seconds on 1 GPU
    job.spec.iterations = alone * rates_.Rate(job.spec, 1);
    if (random_() % 5 != 0) {
      const double tightness = 0.1 + static_cast<double>(random_() % 200) / 100;
      job.spec.deadline = now_ + FromSeconds(std::floor(alone * tightness));
    }
    job.spec.best_effort = random_() % 10 == 0;
    job.view = {.id = id, .spec = &job.spec, .arrival = Index(id)};
    job.view.work_left = *job.spec.iterations;
    return id;
  }

  std::mt19937 random_;
  RandomRates rates_;
  const int nodes_;
  Cluster cluster_;
  TimePoint now_ = AtSeconds(1000);
  std::deque<Job> jobs_;  // views point into it
  std::vector<JobId> live_;
  std::vector<JobId> unjudged_;
};

// Only what a grant has changed is planned again; the outcome is that of planning all again.
TEST(PublishedElasticFlowTest, TheIncrementalSurplusEqualsThePlainOne) {
  std::size_t largest = 0;
  for (unsigned seed = 0; seed < 160; ++seed) {
    PublishedElasticFlowOptions options{.slot = FromSeconds(seed % 3 == 0 ? 1 : 60),
                                        .with_admission = seed % 2 == 0,
                                        .whole_batches = seed % 4 < 2,
                                        .prefer_increase = seed % 8 < 4};
    const std::unique_ptr<Policy> fast = MakePublishedElasticFlow(options);
    options.replan_all = true;
    const std::unique_ptr<Policy> plain = MakePublishedElasticFlow(options);
    const std::unique_ptr<Memory> fast_memory = fast->NewMemory();
    const std::unique_ptr<Memory> plain_memory = plain->NewMemory();
    RandomTrace trace(seed);
    for (int decision = 0; decision < 60; ++decision) {
      const Snapshot snapshot = trace.Next(options.with_admission);
      const Proposal proposal = fast->Decide(snapshot, fast_memory.get());
      ASSERT_EQ(SaidBy(proposal), SaidBy(plain->Decide(snapshot, plain_memory.get())))
          << "seed " << seed << ", decision " << decision;
      largest = std::max(largest, trace.live().size());
      trace.Follow(proposal);
    }
  }
  EXPECT_GT(largest, 20U);  // some of them have a queue
}

}  // namespace
}  // namespace trainyard
