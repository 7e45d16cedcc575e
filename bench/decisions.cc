// SPDX-License-Identifier: Apache-2.0
// One decision with 10,000 waiting jobs on 10,000 GPUs: a job ends, its GPUs are given again. And
// one of Muri, which must take less than 50 ms.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>

#include "catalog/catalog.h"
#include "engine/engine.h"
#include "profile/execution_model.h"

namespace trainyard {
namespace {

constexpr int kNodes = 1250;
constexpr int kJobs = 20'000;  // half of them run

std::shared_ptr<const JobSpec> RandomJob(std::mt19937_64& random) {
  JobSpec job{.name = "job", .gpus = 1 << (random() % 4), .submit = TimePoint{}};
  job.duration = FromSeconds(static_cast<double>(1000 + random() % 100'000));
  return std::make_shared<const JobSpec>(job);
}

class NobodyRuns final : public JobTable {
 public:
  [[nodiscard]] std::span<const JobId> live() const override { return {}; }
  [[nodiscard]] JobView at(JobId /*job*/) const override { return {}; }
};

// Half of the jobs want four times their share of CPUs.
class WantsCpus final : public ExecutionModel {
 public:
  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    return durations_->TotalWork(job);
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return durations_->Rate(job, gpus);
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const override {
    return durations_->Levels(job);
  }
  [[nodiscard]] Resources Preferred(const JobSpec& job) const override {
    const std::int64_t times = job.duration->count() / 1'000'000 % 2 == 0 ? 4 : 1;
    return {.milli_cpus = std::min<std::int64_t>(3000 * times * job.gpus, 24'000),
            .memory_mib = 64'000 * std::int64_t{job.gpus}};
  }

 private:
  const std::unique_ptr<ExecutionModel> durations_ = profile::MakeDurationModel();
};

// Twice as many jobs wait as the nodes could hold.
class DeepQueue {
 public:
  DeepQueue(const std::string& name, const NamedOptions& place, int nodes, std::uint64_t jobs)
      : policy_(catalog::Make(ComponentKind::kPolicy, {.name = name}, {}).value()),
        placement_(catalog::Make(ComponentKind::kPlacement, place).value()),
        admission_(catalog::Make(ComponentKind::kAdmission, {.name = "all"}).value()),
        engine_(
            {.configuration = engine::Share({.cluster = ClusterOf(nodes),
                                             .bundle = {.ordering = policy_.ordering.get(),
                                                        .placement = placement_.placement.get(),
                                                        .packer = placement_.packer.get(),
                                                        .admission = admission_.admission.get()},
                                             .rates = &rates_})}) {
    model::Batch batch;
    Submit(jobs, batch);
    (void)engine_.Step(batch);
  }

  // The next ends, and as many new jobs.
  [[nodiscard]] model::Batch NextBatch() {
    const TimePoint now = *engine_.next_end();
    model::Batch batch{.now = now, .events = engine_.TakeEnds(now)};
    Submit(batch.events.size(), batch);
    return batch;
  }
  [[nodiscard]] engine::Engine& engine() { return engine_; }

 private:
  [[nodiscard]] static Cluster ClusterOf(int nodes) {
    Cluster cluster;
    cluster.nodes.assign(
        static_cast<std::size_t>(nodes),
        NodeSpec{.gpus = 8, .capacity = {.milli_cpus = 24'000, .memory_mib = 512'000}});
    return cluster;
  }
  void Submit(std::uint64_t jobs, model::Batch& batch) {
    for (; jobs > 0; --jobs, ++next_) {
      batch.events.push_back(
          {.at = batch.now,
           .fact = model::fact::Submitted{.job = JobAt(next_), .spec = RandomJob(random_)}});
    }
  }

  const Components policy_;
  const Components placement_;
  const Components admission_;
  const WantsCpus rates_;
  std::mt19937_64 random_{1};
  std::uint64_t next_ = 0;
  engine::Engine engine_;
};

void DecideWithADeepQueue(benchmark::State& state, const std::string& name,
                          const NamedOptions& place) {
  DeepQueue queue(name, place, kNodes, kJobs);
  for (auto _ : state) {
    benchmark::DoNotOptimize(queue.engine().Step(queue.NextBatch()));
  }
}

// A fork of an engine with 10,000 live jobs on 1,000 nodes.
void Fork(benchmark::State& state, const std::string& name, const NamedOptions& place) {
  DeepQueue queue(name, place, 1000, 10'000);
  for (auto _ : state) {
    benchmark::DoNotOptimize(queue.engine().Fork());
  }
}

BENCHMARK_CAPTURE(Fork, srtf, "srtf", {.name = "consolidated"})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Fork, las, "las", {.name = "synergy"})->Unit(benchmark::kMillisecond);

// 10,000 jobs that all find a place on 10,000 GPUs; half of them want four times their share of
// CPUs, so that many must give back.
void PlaceAllWithCpus(benchmark::State& state, const std::string& mechanism) {
  Cluster cluster;
  cluster.nodes.assign(
      kNodes, NodeSpec{.gpus = 8, .capacity = {.milli_cpus = 24'000, .memory_mib = 512'000}});
  const Components placement =
      catalog::Make(ComponentKind::kPlacement,
                    {.name = "synergy", .values = {{"mechanism", mechanism}}})
          .value();
  std::mt19937_64 random(1);
  std::vector<Demand> demands;
  for (std::size_t i = 0; i < kJobs / 2; ++i) {
    const std::int64_t times = random() % 2 == 0 ? 4 : 1;
    demands.push_back({.job = JobAt(i),
                       .gpus = 1,
                       .preferred = {.milli_cpus = 3000 * times, .memory_mib = 64'000}});
  }
  const NobodyRuns jobs;
  const FreeGpus free(cluster);
  const std::unique_ptr<Memory> memory = placement.packer->NewMemory();
  std::vector<Slices> slices;
  for (auto _ : state) {
    benchmark::DoNotOptimize(placement.packer->Pack({free, demands, jobs}, slices, memory.get()));
  }
}

BENCHMARK_CAPTURE(PlaceAllWithCpus, tune, "tune")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(PlaceAllWithCpus, fill, "fill")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(PlaceAllWithCpus, greedy, "greedy")->Unit(benchmark::kMicrosecond);

// Waiting jobs that all state their stages, of `profiles` kinds and one size.
class StagedJobs final : public JobTable {
 public:
  StagedJobs(std::size_t jobs, std::size_t profiles) {
    std::mt19937_64 random(1);
    const auto seconds = [&random] { return static_cast<double>(1 + random() % 100) / 100; };
    std::vector<std::shared_ptr<const JobTraits>> kinds;
    for (std::size_t i = 0; i < profiles; ++i) {
      const std::vector<double> stages{seconds(), seconds(), seconds()};
      const double iteration = *std::max_element(stages.begin(), stages.end());
      kinds.push_back(std::make_shared<const JobTraits>(
          JobTraits{.stages = StageTimes{.iteration = iteration, .stages = stages}}));
    }
    for (std::size_t i = 0; i < jobs; ++i) {
      JobSpec job{.name = "job", .gpus = 1, .submit = TimePoint{}, .traits = kinds[i % profiles]};
      job.duration = FromSeconds(static_cast<double>(1000 + random() % 100'000));
      specs_.push_back(std::move(job));
      ids_.push_back(JobAt(i));
    }
  }
  [[nodiscard]] std::span<const JobId> live() const override { return ids_; }
  [[nodiscard]] JobView at(JobId job) const override {
    const JobSpec& spec = specs_[Index(job)];
    return {.id = job, .spec = &spec, .arrival = Index(job), .time_left = spec.duration};
  }

 private:
  std::vector<JobSpec> specs_;
  std::vector<JobId> ids_;
};

// 1,000 jobs in one bucket, four for each GPU: as many rounds of matching as there are.
void GroupAThousandJobs(benchmark::State& state, const std::string& name) {
  constexpr std::size_t kWaiting = 1000;
  constexpr std::size_t kProfiles = 16;
  Cluster cluster;
  cluster.nodes.assign(31, NodeSpec{.gpus = 8});
  const StagedJobs jobs(kWaiting, kProfiles);
  const Components policy = catalog::Make(ComponentKind::kPolicy, {.name = name}, {}).value();
  for (auto _ : state) {
    // The first decision of a run: nothing is known of any group yet.
    const std::unique_ptr<Memory> memory = policy.policy->NewMemory();
    const std::unique_ptr<ExecutionModel> rates = profile::MakeMixedModel(nullptr);
    benchmark::DoNotOptimize(policy.policy->Decide(
        {.cluster = &cluster, .gpus_up = cluster.total_gpus(), .jobs = &jobs, .rates = rates.get()},
        memory.get()));
  }
}

BENCHMARK_CAPTURE(GroupAThousandJobs, muri_s, "muri-s")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GroupAThousandJobs, muri_l, "muri-l")->Unit(benchmark::kMillisecond);

const NamedOptions kConsolidated{.name = "consolidated", .values = {}};
const NamedOptions kTune{.name = "synergy", .values = {{"mechanism", "tune"}}};
const NamedOptions kFill{.name = "synergy", .values = {}};

BENCHMARK_CAPTURE(DecideWithADeepQueue, fifo, "fifo", kConsolidated)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(DecideWithADeepQueue, backfill, "backfill", kConsolidated)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(DecideWithADeepQueue, srtf, "srtf", kConsolidated)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(DecideWithADeepQueue, las, "las", kConsolidated)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(DecideWithADeepQueue, tiresias, "tiresias", kConsolidated)
    ->Unit(benchmark::kMicrosecond);

BENCHMARK_CAPTURE(DecideWithADeepQueue, srtf_tune, "srtf", kTune)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(DecideWithADeepQueue, srtf_fill, "srtf", kFill)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace trainyard

BENCHMARK_MAIN();
