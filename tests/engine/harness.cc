// SPDX-License-Identifier: Apache-2.0
#include "engine_tests/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/gpu_shares.h"

namespace trainyard {
namespace {

class Samples final : public engine::DecisionObserver {
 public:
  explicit Samples(std::vector<engine::DecisionSample>& samples) : samples_(samples) {}
  void OnDecision(const engine::DecisionSample& sample) override { samples_.push_back(sample); }

 private:
  std::vector<engine::DecisionSample>& samples_;
};

// Adds facts about jobs of the world below: rates, stages and costs, few of them as expected.
class MeasuringWorld final : public engine::World {
 public:
  MeasuringWorld(engine::World& below, const engine::Engine& engine, unsigned seed)
      : below_(below), engine_(engine), seed_(seed) {}

  model::Batch Next(std::optional<TimePoint> wake_at) override {
    model::Batch batch = below_.Next(wake_at);
    // By the time alone, as the plain walk may wake at other instants.
    random_.seed(seed_ + static_cast<unsigned>(batch.now.time_since_epoch().count()));
    if (seed_ != 0 && !batch.events.empty() && !engine_.records().empty() && random_() % 2 == 0) {
      const std::size_t job = random_() % engine_.records().size();
      if (engine_.records()[job].phase.get() != model::JobPhase::kUnknown) {
        batch.events.push_back(Measured(JobAt(job), batch.now));
        std::stable_sort(batch.events.begin(), batch.events.end(),
                         [](const model::Event& a, const model::Event& b) {
                           return model::TakingOrder(a.kind()) < model::TakingOrder(b.kind());
                         });
      }
    }
    return batch;
  }
  Status Perform(TimePoint now, std::span<const model::Action> actions) override {
    EXPECT_EQ(GivenTwice(engine_.records(), engine_.rates()), "") << Seconds(now);
    return below_.Perform(now, actions);
  }

 private:
  model::Event Measured(JobId job, TimePoint now) {
    const JobSpec& spec = *engine_.records()[Index(job)].spec;
    const int gpus = 1 << (random_() % 4);
    const double factor = 0.5 + static_cast<double>(random_() % 100) / 100;
    model::fact::Measured fact{.job = job, .gpus = gpus};
    fact.gpu_type = random_() % 2 == 0 ? "" : "V100";
    for (std::size_t i = 0; i < profile::kMeasures; ++i) {
      const bool rate = i == 0;
      const double value = rate ? engine_.stated_rates().Rate(spec, gpus) : 0.1;
      if (random_() % 2 == 0 && value > 0) {
        fact.metrics.push_back(
            {.name = std::string(profile::kMeasureNames.at(i)), .value = value * factor});
      }
    }
    return {.at = now, .fact = std::move(fact)};
  }

  engine::World& below_;
  const engine::Engine& engine_;
  std::mt19937 random_;
  const unsigned seed_;
};

}  // namespace

Cluster MakeCluster(int nodes, int gpus) {
  Cluster cluster;
  for (int i = 0; i < nodes; ++i) {
    cluster.nodes.push_back({.name = "n" + std::to_string(i), .gpus = gpus});
  }
  return cluster;
}

JobSpec Asking(JobSpec job, NodeRequest request) {
  JobTraits traits = job.traits ? *job.traits : JobTraits();
  traits.request = request == NodeRequest{} ? std::nullopt : std::optional(std::move(request));
  job.traits = std::make_shared<const JobTraits>(std::move(traits));
  return job;
}

JobSpec MakeJob(double submit, int gpus, double duration) {
  return {
      .name = "job", .gpus = gpus, .submit = AtSeconds(submit), .duration = FromSeconds(duration)};
}

Components PolicyNamed(const std::string& text) {
  const ComponentContext context{
      .read_samples = [](const std::string& /*name*/) -> Result<std::vector<double>> {
        return std::vector<double>{100, 200, 400, 800, 1600, 3200};
      }};
  Result<Components> policy =
      catalog::Make(ComponentKind::kPolicy, ParseNamedOptions(text).value(), context);
  EXPECT_TRUE(policy.ok()) << policy.error().message;
  return std::move(policy).value();
}

Components PlacementNamed(const std::string& text) {
  Result<Components> placement =
      catalog::Make(ComponentKind::kPlacement, ParseNamedOptions(text).value());
  EXPECT_TRUE(placement.ok()) << placement.error().message;
  return std::move(placement).value();
}

std::unique_ptr<Admission> AdmitAll() {
  return std::move(catalog::Make(ComponentKind::kAdmission, {.name = "all"}).value().admission);
}

model::Rules FreeRules() {
  model::Rules rules;
  rules.debt.charge = model::Debt::Charge::kNone;
  return rules;
}

profile::OverheadModel SecondsOfOverhead() {
  return profile::OverheadModel(profile::OverheadTable{.fallback = {.start = FromSeconds(2),
                                                                    .restart = FromSeconds(4),
                                                                    .resize = FromSeconds(3),
                                                                    .migrate = FromSeconds(3)},
                                                       .models = {}});
}

TestParts::TestParts(const TestRun& run)
    : run_(run),
      policy_(run.own_policy == nullptr ? PolicyNamed(run.policy) : Components{}),
      placement_(PlacementNamed(run.placement)),
      admission_(catalog::Make(ComponentKind::kAdmission, ParseNamedOptions(run.admission).value())
                     .value()
                     .admission),
      grouping_(run.grouping.empty() ? nullptr
                                     : catalog::Make(ComponentKind::kGrouping,
                                                     ParseNamedOptions(run.grouping).value())
                                           .value()
                                           .grouping),
      durations_(profile::MakeDurationModel()) {}

engine::EngineSetup TestParts::Setup(engine::DecisionObserver* observer) const {
  const bool own = run_.own_placement != nullptr || run_.own_packer != nullptr;
  engine::Configuration configuration{
      .rules = run_.rules,
      .cluster = run_.cluster,
      .bundle = {.ordering = policy_.ordering.get(),
                 .policy = run_.own_policy != nullptr ? run_.own_policy : policy_.policy.get(),
                 .placement = own ? run_.own_placement : placement_.placement.get(),
                 .packer = own ? run_.own_packer : placement_.packer.get(),
                 .admission = run_.own_admission != nullptr ? run_.own_admission : admission_.get(),
                 .grouping = grouping_.get(),
                 .walk = run_.walk,
                 .plain_walk = run_.plain_walk},
      .rates = run_.rates != nullptr ? run_.rates : durations_.get(),
      .overheads = run_.overheads};
  return {
      .configuration = engine::Share(std::move(configuration)),
      .measured = run_.measure_seed != 0 ? std::optional(profile::MeasuredBook()) : std::nullopt,
      .observer = observer};
}

TestResult RunTest(const TestRun& run, const std::string* journal) {
  TestResult result;
  const TestParts parts(run);
  Samples samples(result.samples);
  engine::Engine engine(parts.Setup(&samples));
  engine::Journal written([&result](std::string_view bytes) -> Status {
    result.journal += bytes;
    return {};
  });
  if (journal == nullptr) {
    world::SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(run.jobs), run.cluster,
                                engine, run.stop);
    MeasuringWorld measuring(world, engine, run.measure_seed);
    result.status = engine::Run(engine, measuring, &written);
    engine.Settle(world.now());
  } else {
    engine::ReplayWorld world(*journal);
    result.status = engine::Run(engine, world, &written);
    if (result.status.ok()) {
      result.status = world.status();
    }
  }
  result.records.assign(engine.records().begin(), engine.records().end());
  result.digest = written.digest();
  result.decisions = engine.decisions();
  result.bounded_decisions = engine.bounded_decisions();
  result.blocked.assign(engine.blocked().begin(), engine.blocked().end());
  return result;
}

std::vector<model::JobRecord> RunBesideForks(const TestRun& run) {
  const TestParts parts(run);
  engine::Engine engine(parts.Setup());
  world::SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(run.jobs), run.cluster,
                              engine);
  for (model::Batch batch = world.Next(engine.next_wakeup()); !batch.done;
       batch = world.Next(engine.next_wakeup())) {
    const std::unique_ptr<engine::Engine> fork = engine.Fork();
    const auto forked = fork->Step(batch);
    const std::string expected = forked.ok() ? engine::EncodeActions(forked.value()) : "";
    const auto actions = engine.Step(batch);
    if (!forked.ok() || !actions.ok() || engine::EncodeActions(actions.value()) != expected ||
        fork->next_wakeup() != engine.next_wakeup()) {
      ADD_FAILURE() << run.policy << ": a fork decides otherwise at " << Seconds(batch.now);
      break;
    }
  }
  return {engine.records().begin(), engine.records().end()};
}

std::vector<double> Starts(const std::vector<JobSpec>& jobs, const Cluster& cluster,
                           const std::string& policy, const std::string& placement) {
  const TestResult result =
      RunTest({.jobs = jobs, .cluster = cluster, .policy = policy, .placement = placement});
  EXPECT_TRUE(result.status.ok()) << result.status.error().message;
  std::vector<double> starts;
  for (std::size_t i = 0; i < result.records.size(); ++i) {
    EXPECT_EQ(result.records[i].phase.get(), model::JobPhase::kCompleted) << i;
    starts.push_back(result.start(i));
  }
  return starts;
}

void ExpectSameRun(const TestResult& one, const TestResult& other, unsigned seed) {
  ASSERT_TRUE(one.status.ok()) << one.status.error().message;
  ASSERT_TRUE(other.status.ok()) << other.status.error().message;
  ASSERT_EQ(one.records.size(), other.records.size());
  for (std::size_t i = 0; i < one.records.size(); ++i) {
    ASSERT_EQ(one.start(i), other.start(i)) << "seed " << seed << " job " << i;
    ASSERT_EQ(one.end(i), other.end(i)) << "seed " << seed << " job " << i;
    ASSERT_EQ(one.records[i].preemptions, other.records[i].preemptions)
        << "seed " << seed << " job " << i;
  }
}

int ExpectInTime(const TestResult& result) {
  int admitted = 0;
  for (const model::JobRecord& job : result.records) {
    if (job.spec->deadline && !job.spec->best_effort &&
        job.phase.get() != model::JobPhase::kRejected) {
      ++admitted;
      EXPECT_LE(job.done, *job.spec->deadline) << job.spec->name;
    }
  }
  return admitted;
}

std::vector<JobSpec> RandomJobs(unsigned seed, int count, int largest) {
  std::mt19937 random(seed);
  std::vector<JobSpec> jobs;
  int at = 0;
  for (int i = 0; i < count; ++i) {
    at += static_cast<int>(random() % 40);
    int gpus = 1;
    while (gpus < largest && random() % 2 == 0) {
      gpus *= 2;
    }
    jobs.push_back(MakeJob(at, gpus, 1 + static_cast<int>(random() % 600)));
    jobs.back().name = "job" + std::to_string(i);
    if (random() % 2 == 0) {
      jobs.back().deadline = AtSeconds(at + 1 + static_cast<int>(random() % 900));
    }
  }
  return jobs;
}

}  // namespace trainyard
