// SPDX-License-Identifier: Apache-2.0
// Jobs without GPUs: jobs with GPUs are scheduled as if there were none, and no node gives more
// CPUs or memory than it has. What jobs take is added up anew here.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/journal.h"
#include "engine_tests/harness.h"
#include "model/job_fields.h"
#include "support/sanitized.h"

namespace trainyard {
namespace {

JobSpec OnCpus(int submit, int seconds, std::int64_t cpus) {
  return Asking(MakeJob(submit, 0, seconds),
                {.cpus = {.milli = cpus * 1000}, .memory = {}, .nodes = {}});
}

Cluster UnlikeNodes() {
  Cluster cluster;
  const auto add = [&cluster](int gpus, std::int64_t cpus, std::int64_t gib) {
    cluster.nodes.push_back({.name = "n" + std::to_string(cluster.nodes.size()),
                             .gpus = gpus,
                             .capacity = {.milli_cpus = cpus * 1000, .memory_mib = gib * 1024}});
  };
  add(4, 16, 64);
  add(4, 32, 128);
  add(8, 64, 512);
  cluster.nodes.push_back({.name = "n3", .gpus = 8, .capacity = {.milli_cpus = 64'000}});
  return cluster;
}

struct Played {
  std::vector<model::JobRecord> records;
  std::string wrong;                       // of some decision
  std::vector<std::vector<Grant>> grants;  // of jobs with GPUs, each time that they change
};

// What a node gives.
struct OnNode {
  std::int64_t milli = 0;
  std::int64_t mib = 0;
  std::uint64_t gpus = 0;  // of jobs that state nothing, perhaps of several
  int on_cpus = 0;
};

void AddCpuJob(const NodeRequest& request, std::int64_t parts, OnNode& node) {
  const auto part = [parts](std::int64_t amount, Per per) {
    return per == Per::kNode ? amount : (amount + parts - 1) / parts;
  };
  const std::int64_t milli = part(request.cpus.milli, request.cpus.per);
  node.milli += milli > 0 ? milli : 1000;
  node.mib += part(request.memory.mib, request.memory.per);
  ++node.on_cpus;
}

// One with GPUs counts for the CPUs that it states, or else for the share of its GPUs.
void AddGpuJob(const NodeRequest& request, const NodeSpec& spec, const Slice& slice, int gpus,
               OnNode& node) {
  if (request.cpus.milli == 0) {
    node.gpus |= slice.gpus;
    return;
  }
  const int here = std::popcount(slice.gpus);
  node.milli += (request.cpus.milli * here + gpus - 1) / gpus;
  node.mib += spec.capacity.memory_mib * here / spec.gpus;
}

bool GivesTooMuch(const NodeSpec& spec, const OnNode& node) {
  const int silent = std::popcount(node.gpus);
  const Resources& has = spec.capacity;
  const std::int64_t milli = node.milli + has.milli_cpus * silent / spec.gpus;
  const std::int64_t mib = node.mib + has.memory_mib * silent / spec.gpus;
  return node.on_cpus > 0 && ((has.milli_cpus > 0 && milli > has.milli_cpus) ||
                              (has.memory_mib > 0 && mib > has.memory_mib));
}

// What is wrong with what jobs without GPUs hold beside the others.
std::string Wrong(const Cluster& cluster, const std::vector<JobSpec>& jobs,
                  std::span<const model::JobRecord> records) {
  std::vector<OnNode> on(cluster.nodes.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Grant& grant = records[i].grant;
    const NodeRequest& request = model::PartOf<NodeRequest>(jobs[i]);
    const auto nodes = static_cast<int>(grant.slices.size());
    if (jobs[i].gpus == 0 && grant.holds() &&
        (grant.gpus != 0 || nodes != std::max(1, request.nodes.least))) {
      return "job " + std::to_string(i) + " lies on " + std::to_string(nodes);
    }
    for (const Slice& slice : grant.slices) {
      OnNode& node = on[Index(slice.node)];
      if (jobs[i].gpus == 0) {
        AddCpuJob(request, nodes, node);
      } else {
        AddGpuJob(request, cluster.nodes[Index(slice.node)], slice, grant.gpus, node);
      }
    }
  }
  for (std::size_t i = 0; i < on.size(); ++i) {
    if (GivesTooMuch(cluster.nodes[i], on[i])) {
      return cluster.nodes[i].name + " gives more than it has";
    }
  }
  return {};
}

Played Play(const TestRun& run) {
  const TestParts parts(run);
  engine::Engine engine(parts.Setup());
  world::SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(run.jobs), run.cluster,
                              engine);
  Played played;
  for (model::Batch batch = world.Next(engine.next_wakeup()); !batch.done;
       batch = world.Next(engine.next_wakeup())) {
    const Result<std::span<const model::Action>> actions = engine.Step(batch);
    if (!actions.ok()) {
      played.wrong = actions.error().message;
      break;
    }
    if (played.wrong.empty()) {
      played.wrong = Wrong(run.cluster, run.jobs, engine.records());
    }
    std::vector<Grant> grants;
    for (std::size_t i = 0; i < engine.records().size(); ++i) {
      if (run.jobs[i].gpus > 0) {
        grants.push_back(engine.records()[i].grant);
      }
    }
    while (!grants.empty() && !grants.back().holds()) {
      grants.pop_back();  // jobs that have not come yet, or that hold nothing
    }
    if (played.grants.empty() ? !grants.empty() : !(played.grants.back() == grants)) {
      played.grants.push_back(std::move(grants));
    }
  }
  played.records.assign(engine.records().begin(), engine.records().end());
  return played;
}

// ------------------------------------------------------------------------- every policy, in a run

struct Combination {
  std::string policy;
  std::string placement;
  std::string grouping{};
};

void PrintTo(const Combination& one, std::ostream* out) {
  *out << one.policy << " on " << one.placement << " " << one.grouping;
}

class EveryPolicyWithCpuJobs : public testing::TestWithParam<Combination> {};

std::vector<JobSpec> RandomMix(unsigned seed) {
  std::mt19937 random(seed + 5);
  std::vector<JobSpec> jobs = RandomJobs(seed, 90);
  for (JobSpec& job : jobs) {
    const auto pick = static_cast<std::int64_t>(random() % 6);
    if (random() % 3 == 0) {
      job.gpus = 0;
      NodeRequest request{.cpus = {.milli = pick * 3000}, .memory = {.mib = pick * 4000}};
      if (random() % 4 == 0) {
        request.nodes = {.least = 2, .most = 3};
        request.cpus.per = Per::kNode;
      }
      job = Asking(job, request);
    } else if (random() % 2 == 0) {
      job = Asking(job, {.cpus = {.milli = job.gpus * (500 + 500 * pick)}});
    }
  }
  return jobs;
}

TEST_P(EveryPolicyWithCpuJobs, JobsWithGpusAreScheduledAsWithoutThem) {
  const Combination& by = GetParam();
  int gave_way = 0;
  int ran = 0;
  for (unsigned seed = 0; seed < Rounds(20U); ++seed) {
    const TestRun run{.jobs = RandomMix(seed),
                      .cluster = UnlikeNodes(),
                      .policy = by.policy,
                      .grouping = by.grouping,
                      .placement = by.placement};
    const Played mixed = Play(run);
    ASSERT_EQ(mixed.wrong, "") << seed;
    for (std::size_t i = 0; i < mixed.records.size(); ++i) {
      ASSERT_EQ(mixed.records[i].phase.get(), model::JobPhase::kCompleted) << seed << ": job " << i;
      if (run.jobs[i].gpus == 0) {
        ++ran;
        gave_way += mixed.records[i].preemptions > 0 ? 1 : 0;
      }
    }
    TestRun without = run;
    std::erase_if(without.jobs, [](const JobSpec& job) { return job.gpus == 0; });
    const Played alone = Play(without);
    ASSERT_EQ(alone.grants.size(), mixed.grants.size()) << seed;
    for (std::size_t i = 0; i < alone.grants.size(); ++i) {
      ASSERT_EQ(alone.grants[i].size(), mixed.grants[i].size()) << seed;
      for (std::size_t j = 0; j < alone.grants[i].size(); ++j) {
        ASSERT_EQ(alone.grants[i][j].slices, mixed.grants[i][j].slices) << seed;
      }
    }
    std::size_t at = 0;
    for (std::size_t i = 0; i < mixed.records.size(); ++i) {
      if (run.jobs[i].gpus > 0) {
        const model::JobRecord& same = alone.records[at++];
        ASSERT_EQ(mixed.records[i].first_start, same.first_start) << seed << ": job " << i;
        ASSERT_EQ(mixed.records[i].done, same.done) << seed << ": job " << i;
        ASSERT_EQ(mixed.records[i].preemptions, same.preemptions) << seed << ": job " << i;
      }
    }
  }
  EXPECT_GT(ran, 10 * static_cast<int>(Rounds(20U)));
  EXPECT_GT(gave_way, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Catalogue, EveryPolicyWithCpuJobs,
    testing::Values(Combination{"fifo", "consolidated"}, Combination{"backfill", "consolidated"},
                    Combination{"backfill:reservations=7", "first-fit"},
                    Combination{"srtf", "consolidated"}, Combination{"srtf", "buddy"},
                    Combination{"las", "scattered"}, Combination{"las:quantum=0", "consolidated"},
                    Combination{"srtf", "synergy"}, Combination{"chronus:lease=60", "consolidated"},
                    Combination{"themis", "consolidated"}, Combination{"tiresias", "consolidated"},
                    Combination{"edf", "consolidated"},
                    Combination{"srtf", "consolidated", "interleave"}),
    [](const testing::TestParamInfo<Combination>& info) {
      return "case" + std::to_string(info.index);
    });

// ------------------------------------------------------------------------------------- the stage

std::vector<double> StartsOf(const Played& run) {
  std::vector<double> starts;
  for (const model::JobRecord& record : run.records) {
    starts.push_back(record.first_start == kEndOfTime ? -1 : Seconds(record.first_start));
  }
  return starts;
}

Cluster OneNode() {
  Cluster cluster = MakeCluster(1, 4);
  cluster.nodes[0].capacity = {.milli_cpus = 16'000, .memory_mib = 65'536};
  return cluster;
}

TEST(CpuJobsTest, RunOnWhatIsLeftAndGiveWay) {
  // Two GPUs come with 8 of 16 CPUs. At 20 the other two want the rest, until 60.
  const Played run = Play({.jobs = {MakeJob(0, 2, 100), OnCpus(1, 50, 6), OnCpus(2, 5, 2),
                                    OnCpus(3, 5, 1), MakeJob(20, 2, 40)},
                           .cluster = OneNode()});
  EXPECT_EQ(run.wrong, "");
  EXPECT_EQ(StartsOf(run), (std::vector<double>{0, 1, 2, 7, 20}));
  EXPECT_EQ(run.records[1].preemptions, 1U);
  EXPECT_EQ(Seconds(run.records[1].done), 60 + 50 - 19);
}

// At 10 the job with GPUs wants the node on which the other one is; n1 is free, and nothing else
// happens that could move it there.
TEST(CpuJobsTest, MoveWhereThereIsRoomWhenTheyLoseTheirPlace) {
  Cluster cluster = OneNode();
  cluster.nodes.push_back(cluster.nodes[0]);
  cluster.nodes[1].name = "n1";
  const Played run = Play({.jobs = {OnCpus(0, 100, 8), MakeJob(10, 4, 200)}, .cluster = cluster});
  EXPECT_EQ(run.wrong, "");
  EXPECT_EQ(Seconds(run.records[0].done), 100);
  EXPECT_EQ(run.records[0].migrations, 1U);
  EXPECT_EQ(run.records[0].preemptions, 0U);
}

TEST(CpuJobsTest, AnEngineThatGoesOnFromASavedStateDecidesTheSame) {
  for (const char* const policy : {"fifo", "srtf", "las"}) {
    const auto records =
        RunBesideForks({.jobs = RandomMix(3), .cluster = UnlikeNodes(), .policy = policy});
    EXPECT_EQ(records.size(), RandomMix(3).size()) << policy;
  }
}

TEST(CpuJobsTest, AreInTheOrderOfThePolicy) {
  // One that runs is not stopped for a shorter one.
  std::vector<JobSpec> jobs{OnCpus(0, 10, 16), OnCpus(1, 30, 16), OnCpus(2, 20, 16)};
  EXPECT_EQ(StartsOf(Play({.jobs = jobs, .cluster = OneNode(), .policy = "fifo"})),
            (std::vector<double>{0, 10, 40}));
  EXPECT_EQ(StartsOf(Play({.jobs = jobs, .cluster = OneNode(), .policy = "srtf"})),
            (std::vector<double>{0, 30, 10}));
}

// Small ones that keep coming do not keep a large one from its place.
TEST(CpuJobsTest, TheFirstThatHasNoRoomIsKeptTheNode) {
  std::vector<JobSpec> jobs{OnCpus(0, 10, 8), OnCpus(1, 10, 16)};
  for (int i = 2; i < 30; ++i) {
    jobs.push_back(OnCpus(i, 10, 4));
  }
  const std::vector<double> starts = StartsOf(Play({.jobs = jobs, .cluster = OneNode()}));
  EXPECT_EQ(starts[1], 10);
  EXPECT_EQ(starts[2], 20);
}

TEST(CpuJobsTest, PreferNodesWhereFreeGpusKeepTheirShare) {
  Cluster cluster = MakeCluster(2, 4);
  cluster.nodes[0].capacity = {.milli_cpus = 16'000};
  cluster.nodes[1].capacity = {.milli_cpus = 16'000};
  // The job on n0 asks for less than its share; n1 is free, and its GPUs keep theirs.
  const Played run = Play({.jobs = {Asking(MakeJob(0, 4, 100), {.cpus = {.milli = 4000}}),
                                    OnCpus(1, 10, 12), MakeJob(2, 4, 10)},
                           .cluster = cluster});
  EXPECT_EQ(StartsOf(run), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(run.records[1].preemptions, 0U);
}

}  // namespace
}  // namespace trainyard
