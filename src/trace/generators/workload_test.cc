// SPDX-License-Identifier: Apache-2.0
// Shares and means are compared with their sampling error: four standard deviations.
#include "trace/generators/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "io/file.h"
#include "trace/generators/mix.h"
#include "trace/trace.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

WorkloadOptions Style(std::string_view name) {
  for (const WorkloadStyle& style : WorkloadStyles()) {
    if (style.name == name) {
      return style.defaults;
    }
  }
  ADD_FAILURE() << "no style " << name;
  return {};
}

WorkloadOptions Many(std::string_view style, int jobs = 20'000) {
  WorkloadOptions options = Style(style);
  options.jobs = jobs;
  options.jobs_per_hour = options.jobs_per_hour > 0 ? options.jobs_per_hour : 60;
  options.seed = 7;
  return options;
}

std::vector<JobSpec> Generate(const WorkloadOptions& options) {
  Result<std::vector<JobSpec>> jobs = GenerateWorkload(options, GenerateProfileRows());
  EXPECT_TRUE(jobs.ok()) << jobs.error().message;
  return std::move(jobs).value();
}

std::string RefusalOf(const WorkloadOptions& options) {
  const Result<std::vector<JobSpec>> jobs = GenerateWorkload(options, GenerateProfileRows());
  return jobs.ok() ? "no error" : jobs.error().message;
}

using Predicate = std::function<bool(const JobSpec& job)>;

void ExpectShare(const std::vector<JobSpec>& jobs, double share, const Predicate& predicate) {
  const auto count = static_cast<double>(jobs.size());
  const auto found = static_cast<double>(std::count_if(jobs.begin(), jobs.end(), predicate));
  EXPECT_NEAR(found / count, share, 4 * std::sqrt(share * (1 - share) / count));
}

double Work(const std::vector<JobSpec>& jobs) {
  double work = 0;
  for (const JobSpec& job : jobs) {
    work += Seconds(*job.duration) * job.gpus;
  }
  return work;
}

double LastSubmit(const std::vector<JobSpec>& jobs) { return Seconds(jobs.back().submit); }

// Whether all jobs agree but for what `same` lets differ.
std::string Without(std::vector<JobSpec> jobs, const std::function<void(JobSpec& job)>& erase) {
  for (JobSpec& job : jobs) {
    erase(job);
  }
  return WriteNativeTrace(jobs);
}

class EveryStyle : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Workload, EveryStyle,
                         testing::Values("poisson", "diurnal", "itp-like", "philly-like",
                                         "helios-like"),
                         [](const testing::TestParamInfo<std::string>& one) {
                           std::string name = one.param;
                           name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
                           return name;
                         });

TEST_P(EveryStyle, GivesTheSameBytesForASeedAndOthersForAnother) {
  WorkloadOptions options = Many(GetParam(), 500);
  const std::string text = WriteNativeTrace(Generate(options));
  EXPECT_EQ(WriteNativeTrace(Generate(options)), text);
  options.seed = 8;
  EXPECT_NE(WriteNativeTrace(Generate(options)), text);
}

TEST_P(EveryStyle, HasTheSharesOfItsSizesAndTheMediansOfTheirDurations) {
  const WorkloadOptions options = Many(GetParam());
  const std::vector<JobSpec> jobs = Generate(options);
  double all = 0;
  for (const JobSizeClass& size : options.sizes) {
    all += size.share;
  }
  for (const JobSizeClass& size : options.sizes) {
    ExpectShare(jobs, size.share / all, [&](const JobSpec& job) { return job.gpus == size.gpus; });
    std::vector<JobSpec> own;
    std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(own),
                 [&](const JobSpec& job) { return job.gpus == size.gpus; });
    ExpectShare(own, 0.5,
                [&](const JobSpec& job) { return Seconds(*job.duration) <= size.median_seconds; });
  }
}

TEST_P(EveryStyle, SubmitsInOrderFromZeroAtTheRateAskedFor) {
  const WorkloadOptions options = Many(GetParam());
  const std::vector<JobSpec> jobs = Generate(options);
  EXPECT_EQ(jobs.front().submit, TimePoint{});
  EXPECT_TRUE(std::is_sorted(jobs.begin(), jobs.end(), [](const JobSpec& a, const JobSpec& b) {
    return a.submit < b.submit;
  }));
  // Bursts widen the error; a part of a week may be faster or slower than the week.
  const double bursts = (1 + options.burst_share) / (1 - options.burst_share);
  const double hours = options.jobs / options.jobs_per_hour;
  EXPECT_NEAR(WeekShape(options.week).Evened(LastSubmit(jobs)) / 3600, hours,
              4 * hours * std::sqrt(bursts / options.jobs));
}

TEST_P(EveryStyle, OffersTheLoadAskedFor) {
  WorkloadOptions options = Many(GetParam());
  options.jobs_per_hour = 0;
  options.load = 0.8;
  options.cluster_gpus = 256;
  const std::vector<JobSpec> jobs = Generate(options);
  EXPECT_NEAR(Work(jobs) / (LastSubmit(jobs) * 256), 0.8, 0.01);
  EXPECT_EQ(jobs.size(), 20'000U);
}

TEST_P(EveryStyle, FillsTheDaysAtTheLoadAskedFor) {
  WorkloadOptions options = Many(GetParam());
  options.jobs_per_hour = 0;
  options.jobs = 0;
  options.days = 50;
  options.load = 0.8;
  options.cluster_gpus = 1024;
  const std::vector<JobSpec> jobs = Generate(options);
  EXPECT_LT(LastSubmit(jobs), 50 * 86'400.0);
  EXPECT_GT(LastSubmit(jobs), 45 * 86'400.0);
  EXPECT_GE(Work(jobs), 0.8 * 50 * 86'400 * 1024);
  EXPECT_LT(Work(jobs), 0.9 * 50 * 86'400 * 1024);
}

TEST_P(EveryStyle, DurationAndIterationsAgreeWithTheProfiles) {
  const std::vector<profile::ThroughputRow> profiles = GenerateProfileRows();
  WorkloadOptions options = Many(GetParam(), 2000);
  options.failure_share = 0.3;
  for (const JobSpec& job : Generate(options)) {
    const auto row =
        std::find_if(profiles.begin(), profiles.end(), [&](const profile::ThroughputRow& one) {
          return one.model == job.model && one.batch_size == job.batch_size;
        });
    ASSERT_NE(row, profiles.end());
    EXPECT_DOUBLE_EQ(*job.iterations, Seconds(*job.duration) * row->Rate(job.gpus));
    EXPECT_GT(*job.iterations, 0);
    EXPECT_LE(Seconds(*job.duration), options.most_seconds);
  }
}

TEST(WorkloadTest, PoissonGapsAreExponential) {
  WorkloadOptions options = Many("poisson");
  options.jobs_per_hour = 6;  // so that whole seconds do not show
  const std::vector<JobSpec> jobs = Generate(options);
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 1; i < jobs.size(); ++i) {
    const double gap = Seconds(jobs[i].submit - jobs[i - 1].submit);
    sum += gap;
    squares += gap * gap;
  }
  const double count = static_cast<double>(jobs.size() - 1);
  const double mean = sum / count;
  EXPECT_NEAR(mean, 600, 4 * 600 / std::sqrt(count));
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean) / mean, 1, 0.04);
}

TEST(WorkloadTest, DaysAndWeekendsShowInTheSubmits) {
  WorkloadOptions options = Many("diurnal", 40'000);
  options.jobs_per_hour = 40'000 / (24 * 70.0);  // ten weeks
  options.week = {.day_swing = 0.6, .peak_hour = 14.5, .weekend_factor = 0.5};
  const std::vector<JobSpec> jobs = Generate(options);
  const auto hour_of = [](const JobSpec& job) {
    return static_cast<int>(Seconds(job.submit) / 3600) % 24;
  };
  ExpectShare(jobs, 1.6 / 24, [&](const JobSpec& job) { return hour_of(job) == 14; });
  ExpectShare(jobs, 0.4 / 24, [&](const JobSpec& job) { return hour_of(job) == 2; });
  ExpectShare(jobs, 2 * 0.5 / 6, [](const JobSpec& job) {
    return static_cast<int>(Seconds(job.submit) / 86'400) % 7 >= 5;
  });
}

TEST(WorkloadTest, BurstsKeepTheRate) {
  WorkloadOptions options = Many("poisson");
  options.burst_share = 0.4;
  options.jobs_per_hour = 6;
  const std::vector<JobSpec> jobs = Generate(options);
  std::size_t at_once = 0;
  for (std::size_t i = 1; i < jobs.size(); ++i) {
    at_once += jobs[i].submit == jobs[i - 1].submit ? 1U : 0U;
  }
  EXPECT_NEAR(static_cast<double>(at_once) / 20'000, 0.4, 0.015);
  EXPECT_NEAR(LastSubmit(jobs) / 3600, 20'000 / 6.0, 20'000 / 6.0 * 0.045);
}

TEST(WorkloadTest, UsersHaveZipfSharesAndQueues) {
  WorkloadOptions options = Many("poisson");
  options.users = 4;
  options.user_skew = 2;
  options.queues = 3;
  const std::vector<JobSpec> jobs = Generate(options);
  const double all = 1 + 1 / 4.0 + 1 / 9.0 + 1 / 16.0;
  for (int user = 1; user <= 4; ++user) {
    ExpectShare(jobs, 1 / (all * user * user),
                [&](const JobSpec& job) { return job.user == "user00" + std::to_string(user); });
  }
  ExpectShare(jobs, (1 + 1 / 16.0) / all, [](const JobSpec& job) { return job.queue == "vc01"; });
  EXPECT_TRUE(std::all_of(jobs.begin(), jobs.end(), [](const JobSpec& job) {
    return (job.user == "user003") == (job.queue == "vc03");
  }));
}

TEST(WorkloadTest, ModelsComeByTheirWeights) {
  WorkloadOptions options = Many("poisson");
  options.models = {{"convnet-small", 1}, {"transformer-large:128", 3}};
  const std::vector<JobSpec> jobs = Generate(options);
  ExpectShare(jobs, 0.25, [](const JobSpec& job) { return job.model == "convnet-small"; });
  ExpectShare(jobs, 0.25 / 3, [](const JobSpec& job) {
    return job.model == "convnet-small" && job.batch_size == 256;
  });
  ExpectShare(jobs, 0.75, [](const JobSpec& job) {
    return job.model == "transformer-large" && job.batch_size == 128;
  });
}

TEST(WorkloadTest, ModelsRunOnTheGpusAskedFor) {
  WorkloadOptions options = Many("poisson");
  options.sizes = {{.gpus = 32, .share = 1, .median_seconds = 100, .spread = 1}};
  options.models = {{"recommender", 1}, {"speech-recurrent", 1}};  // the former on 16 at most
  for (const JobSpec& job : Generate(options)) {
    ASSERT_EQ(job.model, "speech-recurrent");
  }
}

TEST(WorkloadTest, DeadlinesAndBestEffortHaveTheirShares) {
  WorkloadOptions options = Many("poisson");
  options.deadline_share = 0.35;
  options.best_effort_share = 0.2;
  options.least_deadline_factor = 1.2;
  options.most_deadline_factor = 3;
  const std::vector<JobSpec> jobs = Generate(options);
  ExpectShare(jobs, 0.35, [](const JobSpec& job) { return job.deadline.has_value(); });
  ExpectShare(jobs, 0.2, [](const JobSpec& job) { return job.best_effort; });
  double sum = 0;
  double count = 0;
  for (const JobSpec& job : jobs) {
    if (!job.deadline) {
      continue;
    }
    EXPECT_FALSE(job.best_effort);
    const double factor = Seconds(*job.deadline - job.submit) / Seconds(*job.duration);
    EXPECT_GE(factor, 1.2 - 0.01);
    EXPECT_LE(factor, 3 + 0.01);
    sum += factor;
    ++count;
  }
  EXPECT_NEAR(sum / count, 2.1, 4 * 1.8 / std::sqrt(12 * count));
}

TEST(WorkloadTest, AllOrNoneAreShares) {
  WorkloadOptions options = Many("poisson", 200);
  options.deadline_share = 1;
  ExpectShare(Generate(options), 1, [](const JobSpec& job) { return job.deadline.has_value(); });
  options.deadline_share = 0;
  options.best_effort_share = 1;
  ExpectShare(Generate(options), 1, [](const JobSpec& job) { return job.best_effort; });
}

TEST(WorkloadTest, FailedJobsEndEarlyAndTheOthersStay) {
  WorkloadOptions options = Many("poisson");
  options.deadline_share = 0.5;
  const std::vector<JobSpec> whole = Generate(options);
  options.failure_share = 0.3;
  const std::vector<JobSpec> failing = Generate(options);
  double parts = 0;
  double failed = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const double part = Seconds(*failing[i].duration) / Seconds(*whole[i].duration);
    EXPECT_LE(part, 1);
    EXPECT_EQ(failing[i].deadline, whole[i].deadline);  // the user did not know
    failed += part < 1 ? 1 : 0;
    parts += part < 1 ? part : 0;
  }
  EXPECT_NEAR(failed / 20'000, 0.3, 4 * std::sqrt(0.21 / 20'000) + 0.003);
  EXPECT_NEAR(parts / failed, 0.5, 4 / std::sqrt(12 * failed) + 0.003);
}

TEST(WorkloadTest, OneOptionChangesOneThing) {
  const WorkloadOptions plain = Many("philly-like", 2000);
  const std::vector<JobSpec> jobs = Generate(plain);
  struct Change {
    std::function<void(WorkloadOptions& options)> set;
    std::function<void(JobSpec& job)> erase;
  };
  const std::vector<Change> changes{
      {[](WorkloadOptions& o) { o.deadline_share = 0.4; }, [](JobSpec& j) { j.deadline.reset(); }},
      {[](WorkloadOptions& o) { o.best_effort_share = 0.4; },
       [](JobSpec& j) { j.best_effort = false; }},
      {[](WorkloadOptions& o) { o.users = 5; }, [](JobSpec& j) { j.user = j.queue = ""; }},
      {[](WorkloadOptions& o) { o.queues = 2; }, [](JobSpec& j) { j.queue = ""; }},
      {[](WorkloadOptions& o) { o.week.day_swing = 0.9; }, [](JobSpec& j) { j.submit = {}; }},
      {[](WorkloadOptions& o) { o.burst_share = 0.5; }, [](JobSpec& j) { j.submit = {}; }},
      {[](WorkloadOptions& o) { o.data_sets = 5; }, [](JobSpec& j) { j.traits = nullptr; }},
      {[](WorkloadOptions& o) {
         o.models = {{"convnet-large", 1}};
       },
       [](JobSpec& j) {
         j.model = "";
         j.batch_size = 0;
         j.iterations = 1;
       }},
      {[](WorkloadOptions& o) { o.failure_share = 0.5; },
       [](JobSpec& j) {
         j.duration = FromSeconds(1);
         j.iterations = 1;
       }}};
  for (const Change& change : changes) {
    WorkloadOptions other = plain;
    change.set(other);
    const std::vector<JobSpec> changed = Generate(other);
    EXPECT_NE(WriteNativeTrace(changed), WriteNativeTrace(jobs));
    EXPECT_EQ(Without(changed, change.erase), Without(jobs, change.erase));
  }
}

TEST(WorkloadTest, MoreJobsAreTheSameAndMore) {
  const std::vector<JobSpec> few = Generate(Many("helios-like", 100));
  std::vector<JobSpec> more = Generate(Many("helios-like", 200));
  more.resize(100);
  EXPECT_EQ(WriteNativeTrace(more), WriteNativeTrace(few));
}

TEST(WorkloadTest, KeepsToTheLargestJobAndTheLongestTime) {
  WorkloadOptions options = Many("helios-like");
  options.largest_job = 10;
  options.most_seconds = 7200;
  const std::vector<JobSpec> jobs = Generate(options);
  for (const JobSpec& job : jobs) {
    EXPECT_LE(job.gpus, 8);
    EXPECT_LE(*job.duration, FromSeconds(7200));
  }
  ExpectShare(jobs, 0.165 + 0.03 + 0.01 + 0.005, [](const JobSpec& job) { return job.gpus == 8; });
}

TEST(WorkloadTest, MeansOfThePublishedTracesComeOut) {
  const auto mean_gpus = [](const std::vector<JobSpec>& jobs) {
    double sum = 0;
    for (const JobSpec& job : jobs) {
      sum += job.gpus;
    }
    return sum / static_cast<double>(jobs.size());
  };
  const auto mean_seconds = [](const std::vector<JobSpec>& jobs) {
    double sum = 0;
    for (const JobSpec& job : jobs) {
      sum += Seconds(*job.duration);
    }
    return sum / static_cast<double>(jobs.size());
  };
  const std::vector<JobSpec> philly = Generate(Many("philly-like", 200'000));
  EXPECT_NEAR(mean_gpus(philly), 1.75, 0.05);
  EXPECT_NEAR(mean_seconds(philly), 28'329, 2000);
  const std::vector<JobSpec> helios = Generate(Many("helios-like", 200'000));
  EXPECT_NEAR(mean_gpus(helios), 3.72, 0.1);
  EXPECT_NEAR(mean_seconds(helios), 6652, 1000);
}

TEST(WorkloadTest, WhatCannotBeIsRefused) {
  const auto with = [](const std::function<void(WorkloadOptions & options)>& set) {
    WorkloadOptions options = Many("poisson", 10);
    set(options);
    return RefusalOf(options);
  };
  EXPECT_EQ(with([](WorkloadOptions& o) {
              o.models = {{"convnet-smal", 1}};
            }),
            "unknown model 'convnet-smal'; did you mean 'convnet-small'?; known: convnet-large, "
            "convnet-small, recommender, speech-recurrent, transformer-large, transformer-small");
  EXPECT_EQ(with([](WorkloadOptions& o) { o.sizes[0].gpus = 3; }),
            "no model has a rate on 3 GPUs; expected a smaller --largest-job, other --gpu-mix or "
            "models that run there");
  const std::string two =
      "expected two of --jobs, --days and a rate (--load with --cluster-gpus, or --jobs-per-hour); "
      "the third follows";
  EXPECT_EQ(with([](WorkloadOptions& o) { o.jobs_per_hour = 0; }), two);
  EXPECT_EQ(with([](WorkloadOptions& o) { o.days = 1; }), two);
  EXPECT_EQ(with([](WorkloadOptions& o) {
              o.jobs = 0;
              o.load = 1;
              o.cluster_gpus = 4;
            }),
            two);
  EXPECT_EQ(with([](WorkloadOptions& o) {
              o.jobs = 0;
              o.days = 1000;
              o.jobs_per_hour = 1e9;
            }),
            "24000000000000 jobs; expected 1 to 100000000");
  EXPECT_EQ(with([](WorkloadOptions& o) { o.jobs_per_hour = 1e-6; }).substr(0, 5), "job '");
  EXPECT_EQ(with([](WorkloadOptions& o) {
              o.largest_job = 4;
              o.sizes.erase(o.sizes.begin(), o.sizes.begin() + 3);
            }),
            "all jobs ask for 8 GPUs or more; expected a largest job of so many");
}

}  // namespace
}  // namespace trainyard::trace
