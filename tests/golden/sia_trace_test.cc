// SPDX-License-Identifier: Apache-2.0
// One run of the published Sia replayed (golden/sia/README.md, "Trace of one run"): its decisions
// and fitted models are given; its trainings, what jobs are worth, and the optimum of every round
// are ours.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "originals/originals.h"
#include "originals/sia/sia_published.h"
#include "policies/sia/assignment.h"
#include "policies/sia/sia.h"
#include "profile/goodput/training_model.h"
#include "support/equal_costs.h"
#include "support/golden_rows.h"
#include "support/hand_made_jobs.h"
#include "support/reference.h"
#include "support/sia_reference.h"
#include "world/training.h"

namespace trainyard {
namespace {

constexpr const char* kRun = "sia/philly12/sia_highs0.";
constexpr int kRound = 60;

std::vector<int> Numbers(const std::string& text, char between) {
  std::vector<int> numbers;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, between);) {
    numbers.push_back(std::stoi(part));
  }
  return numbers;
}

struct Decision {
  std::string type;        // empty: it loses its GPUs
  std::vector<int> shape;  // GPUs per node
  std::vector<int> nodes;  // of each GPU, within the type
  int restarts = 0;
};

struct SubStep {
  double clock = 0;
  std::string type;
  std::vector<int> shape;
  profile::Batch batch;
  int epoch = 0;
  double progress = 0;
};

// Job, type of GPU, nodes, GPUs and samples of a part.
using FitKey = std::tuple<std::string, std::string, int, int, std::int64_t>;

struct Recorded {
  std::map<int, std::map<std::string, Decision>> decisions;  // by time
  std::map<FitKey, profile::StepTimes> fits;
  std::map<std::string, std::vector<SubStep>> steps;
  std::map<std::string, double> ends;
  std::map<int, std::string> objectives;  // by time; empty: nobody is there
};

Recorded ReadRun() {
  Recorded run;
  const std::string from = kRun;
  ForEachGoldenRow(from + "decisions.csv.gz", [&](const GoldenRow& row) {
    run.decisions[row.Integer("time_s")][row.Text("job")] = {
        .type = row.Text("gpu_type"),
        .shape = Numbers(row.Text("gpus_per_node"), '.'),
        .nodes = Numbers(row.Text("nodes"), '+'),
        .restarts = row.Integer("restarts")};
  });
  ForEachGoldenRow(from + "models.csv.gz", [&](const GoldenRow& row) {
    run.fits[{row.Text("job"), row.Text("gpu_type"), row.Integer("new_row_nodes"),
              row.Integer("new_row_replicas"), row.Integer("new_row_local_bsz")}] = {
        .alpha_compute = row.Number("alpha_c"),
        .beta_compute = row.Number("beta_c"),
        .alpha_network = row.Number("alpha_n"),
        .beta_network = row.Number("beta_n"),
        .alpha_node = row.Number("alpha_r"),
        .beta_node = row.Number("beta_r"),
        .gamma = row.Number("gamma")};
  });
  ForEachGoldenRow(from + "substeps.csv.gz", [&](const GoldenRow& row) {
    run.steps[row.Text("job")].push_back(
        {.clock = row.Number("clock_s"),
         .type = row.Text("gpu_type"),
         .shape = Numbers(row.Text("gpus_per_node"), '.'),
         .batch = {.part = row.Integer("atomic_bsz"), .accumulated = row.Integer("accum_steps")},
         .epoch = row.Integer("epoch"),
         .progress = row.Number("progress_before")});
  });
  ForEachGoldenRow(from + "jobs.csv.gz", [&](const GoldenRow& row) {
    run.ends[row.Text("name")] = row.Number("completion_s");
  });
  ForEachGoldenRow(from + "rounds.csv.gz", [&](const GoldenRow& row) {
    // A round without jobs repeats the one before.
    run.objectives[row.Integer("time_s")] =
        row.Integer("active") > 0 ? row.Text("objective") : std::string();
  });
  return run;
}

class Replay {
 public:
  explicit Replay(const Recorded& run) : run_(run), rules_(SiaRules()) {
    for (int i = 0; i < 11; ++i) {
      cluster_.nodes.push_back({.name = std::to_string(i),
                                .gpus = i < 6 ? 4 : 8,
                                .gpu_type = i < 6   ? "aws"
                                            : i < 8 ? "dgx-ext"
                                                    : "rtx"});
    }
    rates_ = profile::MakeTrainingModel(SiaApplications(), rules_);
    policy_ = std::move(base::MakeFrom(originals::Originals(), ComponentKind::kPolicy,
                                       ParseNamedOptions("sia-published").value(), {})
                            .value()
                            .policy);
    memory_ = policy_->NewMemory();
    ForEachGoldenRow("../data/sia/workloads/philly12.csv", [this](const GoldenRow& row) {
      Job& job = all_.emplace_back();
      job.name = row.Text("name");
      job.application = row.Text("application");
      job.batch = row.Integer("batch_size");
      job.submit = row.Number("time");
    });
    ForEachGoldenRow("sia/application_types.csv", [this](const GoldenRow& row) {
      delays_[row.Text("application")] = row.Number("rescale_s");
    });
  }

  void Round(int now) {
    for (Job& job : all_) {
      Advance(job, AtSeconds(now));
      Arrive(job, now);
    }
    if (!jobs_.live().empty()) {
      Decide(now);
    }
    if (const auto decisions = run_.decisions.find(now); decisions != run_.decisions.end()) {
      for (const auto& [name, decision] : decisions->second) {
        Apply(name, decision, now);
      }
    }
  }

  [[nodiscard]] bool done() const {
    return std::all_of(all_.begin(), all_.end(), [](const Job& job) { return job.done; });
  }
  int programs = 0;  // whose optimum was compared
  int steps = 0;     // of trainings
  int ends = 0;

 private:
  struct Job {
    std::string name;
    std::string application;
    int batch = 0;
    double submit = 0;
    bool arrived = false;
    bool done = false;
    std::unique_ptr<profile::TrainingRules> rules{};
    std::unique_ptr<world::Training> training{};
    JobId id{};
    std::string type{};
    std::vector<int> shape{};
    TimePoint since{};   // of the present stretch
    TimePoint starts{};  // to train, after its delay
    std::size_t steps = 0;
    std::vector<Metric> reported{};
  };

  void Arrive(Job& job, int now) {
    if (job.arrived || job.submit > now) {
      return;
    }
    job.arrived = true;
    const int row = SiaApplications().Find(job.application);
    job.rules = std::make_unique<profile::TrainingRules>(rules_);
    job.rules->fit = [this, &job](std::string_view type,
                                  std::span<const profile::MeasuredStep> measured) {
      const profile::MeasuredStep& last = measured.back();
      const auto found =
          run_.fits.find({job.name, std::string(type), last.nodes, last.gpus, last.part});
      EXPECT_NE(found, run_.fits.end()) << job.name << " fits what the program did not";
      return found == run_.fits.end() ? profile::FitStepTimes(measured).times : found->second;
    };
    job.training = std::make_unique<world::Training>(
        SiaApplications().all()[static_cast<std::size_t>(row)], *job.rules);
    job.id = jobs_
                 .Add({.name = job.name,
                       .model = job.application,
                       .batch_size = job.batch,
                       .submit = AtSeconds(job.submit),
                       .profile_row = row})
                 .id;
  }

  void CheckStep(Job& job) {
    const std::vector<SubStep>& expected = run_.steps.at(job.name);
    ASSERT_LT(job.steps, expected.size()) << job.name;
    const SubStep& step = expected[job.steps++];
    const std::string what = job.name + ", step " + std::to_string(job.steps);
    EXPECT_EQ(Seconds(job.since), step.clock) << what;
    EXPECT_EQ(job.type, step.type) << what;
    EXPECT_EQ(job.shape, step.shape) << what;
    EXPECT_EQ(job.training->batch().part, step.batch.part) << what;
    EXPECT_EQ(job.training->batch().accumulated, step.batch.accumulated) << what;
    EXPECT_EQ(job.training->epoch(), step.epoch) << what;
    ExpectNear(job.training->progress(), step.progress, 1e-6, what);
    ++steps;
  }

  void Advance(Job& job, TimePoint now) {
    // An epoch that takes no time ends after the decision.
    while (job.training && job.training->next() && *job.training->next() <= now &&
           job.since < now) {
      CheckStep(job);
      const TimePoint at = *job.training->next();
      job.training->EndStretch();
      job.since = at;
      if (job.training->done()) {
        EXPECT_EQ(Seconds(at), run_.ends.at(job.name)) << job.name;
        job.done = true;
        ++ends;
        jobs_.Remove(job.id);
      }
    }
  }

  void Decide(int now) {
    for (Job& job : all_) {
      if (!job.arrived || job.done) {
        continue;
      }
      JobView& view = jobs_.view(job.id);
      view.debt =
          view.grant == nullptr ? Duration{0} : std::max(job.starts - AtSeconds(now), Duration{0});
      if (const auto report = job.training->report()) {
        job.reported = MetricsOf(*report);
        view.reported = job.reported;
      }
    }
    const Snapshot snapshot{.now = AtSeconds(now),
                            .cluster = &cluster_,
                            .gpus_up = cluster_.total_gpus(),
                            .jobs = &jobs_,
                            .rates = rates_.get(),
                            .costs = &costs_};
    const Proposal proposal = policy_->Decide(snapshot, memory_.get());
    EXPECT_FALSE(proposal.demands.empty());
    const auto& remembered = static_cast<const policies::SiaMemory&>(*memory_);
    for (const Job& job : all_) {
      if (job.arrived && !job.done && run_.decisions.contains(now - kRound) &&
          run_.decisions.at(now - kRound).contains(job.name)) {
        EXPECT_EQ(remembered.jobs.at(job.id).restarts,
                  run_.decisions.at(now - kRound).at(job.name).restarts)
            << job.name << " at " << now;
      }
    }
    const policies::AssignmentProblem problem = originals::ProblemAsPublished(
        snapshot, {.interval = FromSeconds(kRound), .power = -0.5, .unserved = 1.1}, remembered);
    const auto optimum = policies::SolveAssignment(problem, 100'000);
    ASSERT_TRUE(optimum) << "at " << now;
    ASSERT_TRUE(run_.objectives.contains(now)) << "at " << now;
    EXPECT_NEAR(optimum->objective, std::stod(run_.objectives.at(now)), 1e-5) << "at " << now;
    ++programs;
  }

  void Apply(const std::string& name, const Decision& decision, int now) {
    Job& job = *std::find_if(all_.begin(), all_.end(),
                             [&name](const Job& one) { return one.name == name; });
    const bool free = job.type == decision.type && job.shape == decision.shape;
    job.training->Stop(AtSeconds(now));
    job.type = decision.type;
    job.shape = decision.shape;
    std::map<NodeId, std::uint64_t> gpus;
    const std::size_t first = decision.type == "aws" ? 0 : decision.type == "rtx" ? 8 : 6;
    for (const int node : decision.nodes) {
      std::uint64_t& mask = gpus[NodeAt(first + static_cast<std::size_t>(node))];
      mask = mask << 1U | 1U;
    }
    Slices slices;
    for (const auto& [node, mask] : gpus) {
      slices.push_back({.node = node, .gpus = mask});
    }
    jobs_.HoldOne(job.id, static_cast<int>(decision.nodes.size()), slices);
    if (!decision.nodes.empty()) {
      job.starts = AtSeconds(now) + (free ? Duration{0} : FromSeconds(delays_.at(job.application)));
      job.since = job.starts;
      job.training->Start(AtSeconds(now), job.starts - AtSeconds(now), decision.shape,
                          decision.type);
    }
  }

  // Jobs whose grants are set one by one.
  class Jobs final : public ChangingJobs {
   public:
    void HoldOne(JobId job, int gpus, const Slices& slices) {
      grants_[job] = {.gpus = gpus, .slices = slices};
      view(job).grant = gpus > 0 ? &grants_[job] : nullptr;
    }

   private:
    std::map<JobId, Grant> grants_;
  };

  const Recorded& run_;
  const profile::TrainingRules rules_;
  const EqualCosts costs_;
  Cluster cluster_;
  std::unique_ptr<ExecutionModel> rates_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Memory> memory_;
  std::map<std::string, double> delays_;
  std::deque<Job> all_;
  Jobs jobs_;
};

TEST(SiaTraceTest, TheRunOfTwelveJobsGoesOnAsItWent) {
  TRAINYARD_NEEDS_REFERENCE();
  const Recorded run = ReadRun();
  Replay replay(run);
  for (int now = kRound; now <= run.objectives.rbegin()->first; now += kRound) {
    replay.Round(now);
  }
  EXPECT_TRUE(replay.done());
  EXPECT_EQ(replay.ends, 12);
  std::size_t steps = 0;
  for (const auto& [job, of_job] : run.steps) {
    steps += of_job.size();
  }
  EXPECT_EQ(replay.steps, static_cast<int>(steps));
  int programs = 0;
  for (const auto& [now, objective] : run.objectives) {
    programs += objective.empty() ? 0 : 1;
  }
  EXPECT_EQ(replay.programs, programs);
  EXPECT_EQ(programs, 451);
}

}  // namespace
}  // namespace trainyard
