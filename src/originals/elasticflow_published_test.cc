// SPDX-License-Identifier: Apache-2.0
#include "originals/elasticflow_published.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <tuple>

#include "support/hand_made_jobs.h"
#include "support/sanitized.h"
#include "trainyard/snapshot.h"

namespace trainyard::originals {
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

using SaidByPolicy =
    std::tuple<std::vector<std::pair<JobId, int>>, std::optional<TimePoint>,
               std::vector<std::pair<JobId, Judgement>>,
               std::vector<std::tuple<JobId, TimePoint, std::optional<TimePoint>>>>;

SaidByPolicy SaidBy(const Proposal& proposal) {
  SaidByPolicy said;
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
  [[nodiscard]] Brief brief(JobId job) const override {
    const Job& of = jobs_[Index(job)];
    return {of.view.spec, &of.grant, of.view.started};
  }

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
  for (unsigned seed = 0; seed < Rounds(160U); ++seed) {
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

Profiles RatesOfTheWorkedExample() {
  Profiles rates;
  rates.Set("deepspeech2", {{1, 1.5999193993421348},
                            {2, 2.9614780247610133},
                            {4, 5.2527616528041055},
                            {8, 7.406241544204639},
                            {16, 9.400856715933317},
                            {32, 12.48432168866281},
                            {64, 13.973921754361951}});
  rates.Set("inception3", {{1, 2.5622998204792498},
                           {2, 4.659288837258833},
                           {4, 7.803612731191226},
                           {8, 10.854223213959367},
                           {16, 12.797189523477574},
                           {32, 12.843506437370086},
                           {64, 12.340736115251653}});
  rates.Set("resnet50", {{1, 3.6553729658054332},
                         {2, 6.619528678370847},
                         {4, 11.224201427896464},
                         {8, 16.53414011075494},
                         {16, 20.15564728008105},
                         {32, 20.291015806510305},
                         {64, 21.070922780581487}});
  rates.Set("vgg16", {{1, 2.6247764189255065},
                      {2, 4.873619474205853},
                      {4, 8.720751494818506},
                      {8, 13.573026788365198},
                      {16, 18.05975694586296},
                      {32, 23.615372405335012},
                      {64, 25.78250120819821}});
  return rates;
}

struct Example {
  std::string name;
  std::string model;
  std::int64_t batch_size;
  double deadline;
  double work_left;
  int gpus;  // that it gets
  double end;
  double real_end;
};

// Reference 4.5, the worked example (`ef`, 17652 s): the fifth grant goes to job 5, as its plan
// counts up to the breakpoint behind its end, not up to the end itself.
TEST(PublishedElasticFlowTest, TheSurplusOfTheWorkedExample) {
  const Profiles rates = RatesOfTheWorkedExample();
  const std::vector<Example> examples{
      {"5", "resnet50", 128, 156466, 234013.04519708542, 64, 59172, 59156},
      {"6", "vgg16", 128, 161534, 1245625.5245, 32, 151572, 151469},
      {"8", "inception3", 128, 34298, 12929.995532743467, 16, 18852, 18663},
      {"9", "deepspeech2", 64, 29296, 12420, 16, 19092, 18974}};
  HandMadeJobs jobs;
  for (const Example& example : examples) {
    JobView& view = jobs.Add({.name = example.name,
                              .model = example.model,
                              .batch_size = example.batch_size,
                              .deadline = AtSeconds(example.deadline)});
    view.work_left = example.work_left;
  }
  const Cluster cluster{.nodes = std::vector<NodeSpec>(16, {.gpus = 8})};
  const std::unique_ptr<Policy> policy = MakePublishedElasticFlow(
      {.slot = FromSeconds(240), .with_admission = false, .caps = {{{"inception3", 128}, 32}}});
  const std::unique_ptr<Memory> memory = policy->NewMemory();
  const Proposal proposal = policy->Decide({.now = AtSeconds(17652),
                                            .cluster = &cluster,
                                            .gpus_up = 128,
                                            .jobs = &jobs,
                                            .rates = &rates},
                                           memory.get());
  ASSERT_EQ(proposal.demands.size(), 4U);
  for (const Demand& demand : proposal.demands) {
    const Example& example = examples[Index(demand.job)];
    EXPECT_EQ(demand.gpus, example.gpus) << example.name;
  }
  ASSERT_EQ(proposal.ends.size(), 4U);
  for (const PlannedEnd& end : proposal.ends) {
    const Example& example = examples[Index(end.job)];
    EXPECT_EQ(end.registered, AtSeconds(example.end)) << example.name;
    EXPECT_EQ(end.done, AtSeconds(example.real_end)) << example.name;
  }
}

}  // namespace
}  // namespace trainyard::originals
