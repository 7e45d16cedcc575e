// SPDX-License-Identifier: Apache-2.0
// One decision with 10,000 waiting jobs on 10,000 GPUs: a job ends, its GPUs are given again.
#include <benchmark/benchmark.h>

#include <random>

#include "admission/catalog.h"
#include "engine/engine.h"
#include "placement/catalog.h"
#include "policy/catalog.h"
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

void DecideWithADeepQueue(benchmark::State& state, const std::string& name) {
  Cluster cluster;
  cluster.nodes.assign(kNodes, NodeSpec{.gpus = 8});
  const PolicyComponent policy = MakePolicy({.name = name}, {}).value();
  const std::unique_ptr<Placement> placement = MakePlacement({.name = "consolidated"}).value();
  const std::unique_ptr<Admission> admission = MakeAdmission({.name = "all"}).value();
  const std::unique_ptr<ExecutionModel> rates = MakeDurationModel();
  Engine engine({.cluster = cluster,
                 .bundle = {.ordering = policy.ordering.get(),
                            .placement = placement.get(),
                            .admission = admission.get()},
                 .rates = rates.get()});
  std::mt19937_64 random(1);
  Batch batch;
  std::uint64_t next = 0;
  for (; next < kJobs; ++next) {
    batch.events.push_back(
        {.kind = EventKind::kSubmit, .job = JobAt(next), .spec = RandomJob(random)});
  }
  (void)engine.Step(batch);
  for (auto _ : state) {
    batch = {.now = engine.next_end().value(), .events = engine.TakeEnds(*engine.next_end())};
    for (std::size_t i = batch.events.size(); i > 0; --i, ++next) {  // keep the queue as deep
      batch.events.push_back({.kind = EventKind::kSubmit,
                              .at = batch.now,
                              .job = JobAt(next),
                              .spec = RandomJob(random)});
    }
    benchmark::DoNotOptimize(engine.Step(batch));
  }
}

BENCHMARK_CAPTURE(DecideWithADeepQueue, fifo, "fifo")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(DecideWithADeepQueue, srtf, "srtf")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(DecideWithADeepQueue, las, "las")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(DecideWithADeepQueue, tiresias, "tiresias")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace trainyard

BENCHMARK_MAIN();
