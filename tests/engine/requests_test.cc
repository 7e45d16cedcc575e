// SPDX-License-Identifier: Apache-2.0
// What jobs ask for beside GPUs, against checks that know nothing of the code that places: what
// each node gives is added up anew, and small clusters are searched for every place there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine_tests/harness.h"
#include "model/job_fields.h"
#include "model/request/node_request.h"
#include "model/request/request_fit.h"
#include "scheduler/node_choices.h"
#include "scheduler/packing.h"
#include "support/sanitized.h"
#include "support/sensitive_jobs.h"

namespace trainyard {
namespace {

NodeRequest RequestOf(const JobSpec& job) { return model::PartOf<NodeRequest>(job); }

// Nodes of four and eight GPUs with unlike CPUs and memory; the last states no memory.
Cluster UnlikeNodes() {
  Cluster cluster;
  const auto add = [&cluster](int gpus, int cpus, int gib, std::vector<std::string> labels) {
    cluster.nodes.push_back({.name = "n" + std::to_string(cluster.nodes.size()),
                             .gpus = gpus,
                             .capacity = {.milli_cpus = cpus * 1000, .memory_mib = gib * 1024},
                             .labels = std::move(labels)});
  };
  add(4, 16, 64, {"ib", "old"});
  add(4, 32, 128, {"ib"});
  add(8, 32, 512, {"fast"});
  add(8, 64, 0, {"fast", "ib"});
  cluster.licenses = {{.name = "matlab", .count = 2}};
  return cluster;
}

// ------------------------------------------------------------------------------------ the checker

// What a job takes of each node that it lies on, by the words of docs/requests.md.
struct Taken {
  double cpus = 0;
  double memory = 0;
};
Taken TakenBy(const JobSpec& job, const NodeSpec& node, int here, int all) {
  const NodeRequest request = RequestOf(job);
  const auto amount = [&](std::int64_t stated, Per per, std::int64_t has) {
    const auto value = static_cast<double>(stated);
    const double asked = per == Per::kNode  ? value
                         : per == Per::kGpu ? value * here
                                            : std::ceil(value * here / all);
    if (request.exclusive) {
      return std::max(asked, static_cast<double>(has));
    }
    return stated > 0 ? asked  // or the share of its GPUs
                      : std::floor(static_cast<double>(has) * here / node.gpus);
  };
  return {.cpus = amount(request.cpus.milli, request.cpus.per, node.capacity.milli_cpus),
          .memory = amount(request.memory.mib, request.memory.per, node.capacity.memory_mib)};
}

// Of grants that are held at one time: what is wrong with them, if anything.
std::string Wrong(const Cluster& cluster, const std::vector<JobSpec>& jobs,
                  const std::vector<Grant>& held) {
  std::map<std::size_t, Taken> taken;
  std::map<std::size_t, std::vector<std::size_t>> on;
  std::map<std::size_t, std::uint64_t> gpus;
  int licenses = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const NodeRequest request = RequestOf(jobs[i]);
    licenses += held[i].gpus > 0 && !request.licenses.empty() ? 1 : 0;
    int least = kMaxGpusPerNode;
    int most = 0;
    for (const Slice& slice : held[i].slices) {
      const std::size_t at = Index(slice.node);
      const NodeSpec& node = cluster.nodes[at];
      const int here = std::popcount(slice.gpus);
      least = std::min(least, here);
      most = std::max(most, here);
      const Taken more = TakenBy(jobs[i], node, here, held[i].gpus);
      taken[at].cpus += more.cpus;
      taken[at].memory += more.memory;
      on[at].push_back(i);
      if ((gpus[at] & slice.gpus) != 0) {
        return "a GPU of " + node.name + " is given twice";
      }
      gpus[at] |= slice.gpus;
      if (request.constraint == "ib" &&
          std::find(node.labels.begin(), node.labels.end(), "ib") == node.labels.end()) {
        return "job " + std::to_string(i) + " lies on " + node.name + " without its label";
      }
      if (request.exclude == node.name) {
        return "job " + std::to_string(i) + " lies on " + node.name + ", which it excludes";
      }
    }
    const auto nodes = static_cast<int>(held[i].slices.size());
    if (nodes > 0 && request.nodes.least > 0 &&
        (nodes < request.nodes.least || nodes > request.nodes.most || most - least > 1)) {
      return "job " + std::to_string(i) + " lies on " + std::to_string(nodes) + " nodes";
    }
  }
  for (const auto& [at, sum] : taken) {
    const NodeSpec& node = cluster.nodes[at];
    if (node.capacity.milli_cpus > 0 &&
        sum.cpus > static_cast<double>(node.capacity.milli_cpus) + 1e-6) {
      return node.name + " gives " + std::to_string(sum.cpus) + " CPUs";
    }
    if (node.capacity.memory_mib > 0 &&
        sum.memory > static_cast<double>(node.capacity.memory_mib) + 1e-6) {
      return node.name + " gives " + std::to_string(sum.memory) + " MiB";
    }
    for (const std::size_t job : on[at]) {
      if (RequestOf(jobs[job]).exclusive && on[at].size() > 1) {
        return "job " + std::to_string(job) + " has " + node.name + " not for itself";
      }
    }
  }
  return licenses > 2 ? "more licences than there are" : "";
}

// ------------------------------------------------------------------------- every policy, in a run

struct Combination {
  std::string policy;
  std::string placement;
  std::string grouping{};
  bool types = false;  // the nodes are of two types, and all GPUs of a job of one

  [[nodiscard]] bool shares() const {
    return policy == "antman" || policy.starts_with("muri") || !grouping.empty();
  }
};

void PrintTo(const Combination& one, std::ostream* out) {
  *out << one.policy << " on " << one.placement << " " << one.grouping;
}

// Jobs that share GPUs ask for nothing beside them: these count for the first one alone. Returns
// how many others there are; those that ask are left, for the checker to find their GPUs given
// twice.
int CountSharedOnce(const std::vector<JobSpec>& jobs, std::vector<Grant>& held) {
  std::map<std::size_t, std::uint64_t> shared;
  int others = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const bool collocated = held[i].sharing == Sharing::kCollocated;
    const bool beside = held[i].group.size() > 1 && held[i].group.front() != JobAt(i);
    if ((!collocated && !beside) || RequestOf(jobs[i]) != NodeRequest{}) {
      continue;
    }
    for (Slice& slice : held[i].slices) {
      std::uint64_t& taken = shared[Index(slice.node)];
      others += collocated && (slice.gpus & taken) != 0 ? 1 : 0;
      slice.gpus &= beside ? 0 : ~taken;
      taken |= collocated ? slice.gpus : 0;
    }
    std::erase_if(held[i].slices, [](const Slice& slice) { return slice.gpus == 0; });
  }
  return others;
}

class EveryPolicyWithRequests : public testing::TestWithParam<Combination> {};

// `shared`: some can share their GPUs, and of these some ask for nothing beside them.
std::vector<JobSpec> RandomAsking(unsigned seed, int count, const Cluster& cluster,
                                  bool shared = false) {
  std::mt19937 random(seed + 77);
  std::vector<JobSpec> jobs = RandomJobs(seed, count);
  const std::vector<bool> anywhere(cluster.nodes.size(), true);
  const auto one_of = [&random](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  const auto add_stages = [&random](JobSpec& job) {  // the time of one stage is most of it
    StageTimes times{.iteration = 1, .stages = {0.05, 0.05, 0.05}};
    times.stages[random() % 3] = 0.9;
    job.traits = std::make_shared<const JobTraits>(JobTraits{.stages = times});
    job.priority = static_cast<int>(random() % 2);
  };
  for (JobSpec& job : jobs) {
    job.gpus = 1 + static_cast<int>(random() % 8);  // also 3, 5, 6 and 7
    if (shared && random() % 3 != 0) {
      add_stages(job);
      if (random() % 2 == 0) {
        continue;  // and asks for nothing else
      }
    }
    NodeRequest request;
    if (random() % 2 == 0) {
      request.cpus = {.milli = one_of(500, 1000, 4000, 6000, 12'000),
                      .per = one_of(Per::kJob, Per::kNode, Per::kGpu)};
    }
    if (random() % 3 == 0) {
      request.memory = {.mib = one_of(1000, 8192, 40'000),
                        .per = one_of(Per::kJob, Per::kNode, Per::kGpu)};
    }
    if (random() % 5 == 0) {
      const int least = one_of(1, 2, 3);
      request.nodes = {.least = least, .most = least + one_of(0, 1)};
    }
    request.exclusive = random() % 12 == 0;
    request.constraint = random() % 6 == 0 ? "ib" : "";
    request.exclude = random() % 8 == 0 ? "n" + std::to_string(random() % 4) : "";
    request.licenses = random() % 10 == 0 ? "matlab" : "";
    JobSpec asking = Asking(job, request);
    if (model::CanBeMet(cluster, asking, anywhere).ok()) {
      job = std::move(asking);
    }
  }
  return jobs;
}

// Whether its request could be met on the nodes of one type, which may have none.
bool HasPlaceOnOneType(const Cluster& cluster, const JobSpec& job) {
  return std::any_of(cluster.nodes.begin(), cluster.nodes.end(), [&](const NodeSpec& node) {
    std::vector<bool> alike;
    for (const NodeSpec& other : cluster.nodes) {
      alike.push_back(other.gpu_type == node.gpu_type);
    }
    return model::CanBeMet(cluster, job, alike).ok();
  });
}

TEST_P(EveryPolicyWithRequests, NoNodeGivesMoreThanItHasAndAllJobsEnd) {
  int asking = 0;
  int sharing = 0;
  for (unsigned seed = 0; seed < Rounds(20U); ++seed) {
    Cluster cluster = UnlikeNodes();
    for (std::size_t i = 0; i < cluster.nodes.size() && GetParam().types; ++i) {
      cluster.nodes[i].gpu_type = i % 2 == 0 ? "A" : "B";
    }
    std::vector<JobSpec> jobs = RandomAsking(seed, 80, cluster, GetParam().shares());
    std::erase_if(jobs, [&](const JobSpec& job) { return !HasPlaceOnOneType(cluster, job); });
    asking += static_cast<int>(std::count_if(jobs.begin(), jobs.end(), [](const JobSpec& job) {
      return RequestOf(job) != NodeRequest{};
    }));
    const TestParts parts({.jobs = jobs,
                           .cluster = cluster,
                           .policy = GetParam().policy,
                           .grouping = GetParam().grouping,
                           .placement = GetParam().placement});
    engine::Engine engine(parts.Setup());
    world::SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(jobs), cluster,
                                engine);
    for (model::Batch batch = world.Next(engine.next_wakeup()); !batch.done;
         batch = world.Next(engine.next_wakeup())) {
      const Result<std::span<const model::Action>> actions = engine.Step(batch);
      ASSERT_TRUE(actions.ok()) << seed << ": " << actions.error().message;
      std::vector<Grant> held;
      for (std::size_t i = 0; i < engine.records().size(); ++i) {
        held.push_back(engine.records()[i].grant);
        sharing += held.back().group.size() > 1 ? 1 : 0;
      }
      sharing += CountSharedOnce(jobs, held);
      ASSERT_EQ(Wrong(cluster, jobs, held), "") << seed << " at " << Seconds(batch.now);
    }
    for (std::size_t i = 0; i < engine.records().size(); ++i) {
      ASSERT_EQ(engine.records()[i].phase.get(), model::JobPhase::kCompleted)
          << seed << ": job " << i << " asks for " << jobs[i].gpus << " GPUs";
    }
  }
  EXPECT_GT(asking, 20);
  EXPECT_EQ(sharing > 0, GetParam().shares());
}

INSTANTIATE_TEST_SUITE_P(
    TwoTypes, EveryPolicyWithRequests,
    testing::Values(Combination{"srtf", "consolidated", "", true},
                    Combination{"backfill", "consolidated", "", true},
                    Combination{"max-min-fairness:round=30", "gandiva", "", true},
                    Combination{"max-min-fairness:round=30,types=blind", "gandiva", "", true},
                    Combination{"isolated:round=30", "gandiva", "", true},
                    Combination{"gandiva-packing:round=30", "gandiva", "", true},
                    Combination{"makespan:round=30", "gandiva", "", true},
                    Combination{"fifo-throughput:round=30", "gandiva", "", true},
                    Combination{"allox:round=30", "gandiva", "", true},
                    Combination{"sia", "gandiva", "", true}),
    [](const testing::TestParamInfo<Combination>& info) {
      return "case" + std::to_string(info.index);
    });

INSTANTIATE_TEST_SUITE_P(
    Catalogue, EveryPolicyWithRequests,
    testing::Values(
        Combination{"fifo", "consolidated"}, Combination{"fjf", "first-fit"},
        Combination{"backfill", "consolidated"}, Combination{"backfill", "scattered"},
        Combination{"backfill:reservations=7", "first-fit"}, Combination{"sjf", "consolidated"},
        Combination{"srtf", "consolidated"}, Combination{"srtf", "first-fit"},
        Combination{"srtf", "buddy"}, Combination{"fifo", "buddy"},
        Combination{"backfill", "buddy"}, Combination{"las", "scattered"},
        Combination{"las:quantum=0", "consolidated"}, Combination{"srtf", "synergy"},
        Combination{"las", "synergy"}, Combination{"chronus:lease=60", "consolidated"},
        Combination{"themis", "consolidated"}, Combination{"tiresias", "consolidated"},
        Combination{"edf", "consolidated"}, Combination{"max-min-fairness:round=30", "gandiva"},
        Combination{"isolated:round=30", "gandiva"},
        Combination{"fifo-throughput:round=30", "gandiva"},
        Combination{"pollux:interval=900", "gandiva"}, Combination{"sia", "gandiva"},
        Combination{"gandiva", "gandiva"}, Combination{"torchloader", "gandiva"},
        Combination{"antman", "gandiva"},
        Combination{"max-min-fairness:round=30,packed=1", "gandiva"},
        Combination{"gandiva-packing:round=30", "gandiva"}, Combination{"muri-s", "consolidated"},
        Combination{"muri-l", "scattered"}, Combination{"fifo", "consolidated", "interleave"},
        Combination{"srtf", "consolidated", "interleave"}),
    [](const testing::TestParamInfo<Combination>& info) {
      return "case" + std::to_string(info.index);
    });

// -------------------------------------------------------------------------- every place there is

// Whether the gang has a place beside what is held, found by trying all ways to spread it.
bool HasPlace(const Cluster& cluster, std::vector<JobSpec> jobs, std::vector<Grant> held,
              const JobSpec& job) {
  const NodeRequest request = RequestOf(job);
  jobs.push_back(job);
  held.emplace_back();
  std::vector<std::uint64_t> free;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    free.push_back((std::uint64_t{1} << cluster.nodes[i].gpus) - 1);
  }
  for (const Grant& grant : held) {
    for (const Slice& slice : grant.slices) {
      free[Index(slice.node)] &= ~slice.gpus;
    }
  }
  const auto lowest = [](std::uint64_t gpus, int count) {
    std::uint64_t chosen = 0;
    for (; count > 0; --count) {
      chosen |= gpus & -gpus;
      gpus &= gpus - 1;
    }
    return chosen;
  };
  std::function<bool(std::size_t, int)> try_from = [&](std::size_t node, int left) {
    if (left == 0) {
      held.back().gpus = job.gpus;
      return Wrong(cluster, jobs, held).empty();
    }
    if (node == cluster.nodes.size()) {
      return false;
    }
    for (int here = 0; here <= std::min(left, std::popcount(free[node])); ++here) {
      if (here > 0) {
        held.back().slices.push_back({.node = NodeAt(node), .gpus = lowest(free[node], here)});
      }
      const bool found = try_from(node + 1, left - here);
      if (here > 0) {
        held.back().slices.pop_back();
      }
      if (found) {
        return true;
      }
    }
    return false;
  };
  return try_from(0, job.gpus);
}

// A packing with a placement that splits gangs as need be finds a place where there is one, and
// none else. Three nodes, three resources, six jobs.
TEST(RequestsTest, APlaceIsFoundWhereThereIsOne) {
  const Components scattered = PlacementNamed("scattered");
  const std::unique_ptr<ExecutionModel> rates = profile::MakeDurationModel();
  int found = 0;
  int tried = 0;
  for (unsigned seed = 0; seed < Rounds(20'000U); ++seed) {
    std::mt19937 random(seed);
    Cluster cluster;
    for (int i = 0; i < 3; ++i) {
      cluster.nodes.push_back({.name = "n" + std::to_string(i),
                               .gpus = 1 + static_cast<int>(random() % 4),
                               .capacity = {.milli_cpus = static_cast<int>(random() % 9) * 1000,
                                            .memory_mib = static_cast<int>(random() % 9) * 1024},
                               .labels = random() % 2 == 0 ? std::vector<std::string>{"ib"}
                                                           : std::vector<std::string>{}});
    }
    cluster.licenses = {{.name = "matlab", .count = 2}};
    scheduler::NodeChoices choices(cluster, *rates);
    scheduler::Packing packing(cluster, scattered.placement.get(), nullptr, &choices);
    std::vector<JobSpec> jobs;
    std::vector<Grant> held;
    for (int i = 0; i < 6; ++i) {
      NodeRequest request;
      if (random() % 2 == 0) {
        request.cpus = {.milli = 500 * (1 + static_cast<int>(random() % 8)),
                        .per = static_cast<Per>(random() % 3)};
      }
      if (random() % 2 == 0) {
        request.memory = {.mib = 512 * (1 + static_cast<int>(random() % 8)),
                          .per = static_cast<Per>(random() % 3)};
      }
      if (random() % 4 == 0) {
        const int least = 1 + static_cast<int>(random() % 3);
        request.nodes = {.least = least, .most = least + static_cast<int>(random() % 2)};
      }
      request.exclusive = random() % 10 == 0;
      request.constraint = random() % 6 == 0 ? "ib" : "";
      request.exclude = random() % 8 == 0 ? "n" + std::to_string(random() % 3) : "";
      request.licenses = random() % 5 == 0 ? "matlab" : "";
      const JobSpec job = Asking(MakeJob(0, 1 + static_cast<int>(random() % 6), 10), request);
      const std::optional<Grant> grant =
          packing.TryAdd(job, {.gpus = job.gpus, .may_split = true}, nullptr);
      ++tried;
      ASSERT_EQ(grant.has_value(), HasPlace(cluster, jobs, held, job))
          << "seed " << seed << ", job " << i << " of " << job.gpus
          << " GPUs: " << model::TextOf(request);
      if (grant) {
        ++found;
        jobs.push_back(job);
        held.push_back(*grant);
        ASSERT_EQ(Wrong(cluster, jobs, held), "") << "seed " << seed << ", job " << i;
      }
    }
  }
  EXPECT_GT(found, tried / 10);
  EXPECT_LT(found, tried * 9 / 10);
}

// A job that could never be met is refused, and no other is.
TEST(RequestsTest, WhatCanNeverBeMetIsWhatHasNoPlaceInAnEmptyCluster) {
  int never = 0;
  const unsigned rounds = Rounds(20'000U);
  for (unsigned seed = 0; seed < rounds; ++seed) {
    std::mt19937 random(seed);
    Cluster cluster;
    for (int i = 0; i < 3; ++i) {
      cluster.nodes.push_back({.name = "n" + std::to_string(i),
                               .gpus = 1 + static_cast<int>(random() % 4),
                               .capacity = {.milli_cpus = static_cast<int>(random() % 5) * 1000,
                                            .memory_mib = static_cast<int>(random() % 5) * 1024},
                               .labels = random() % 2 == 0 ? std::vector<std::string>{"ib"}
                                                           : std::vector<std::string>{}});
    }
    cluster.licenses = {{.name = "matlab", .count = 2}};
    NodeRequest request;
    request.cpus = {.milli = 500 * static_cast<int>(random() % 12),
                    .per = static_cast<Per>(random() % 3)};
    request.memory = {.mib = 512 * static_cast<int>(random() % 12),
                      .per = static_cast<Per>(random() % 3)};
    if (random() % 3 == 0) {
      const int least = 1 + static_cast<int>(random() % 3);
      request.nodes = {.least = least, .most = least + static_cast<int>(random() % 2)};
    }
    request.exclusive = random() % 5 == 0;
    request.constraint = random() % 3 == 0 ? "ib" : "";
    request.exclude = random() % 4 == 0 ? "n" + std::to_string(random() % 3) : "";
    const JobSpec job = Asking(MakeJob(0, 1 + static_cast<int>(random() % 8), 10), request);
    if (request == NodeRequest{}) {
      continue;
    }
    const Status can = model::CanBeMet(cluster, job, std::vector<bool>(3, true));
    ASSERT_EQ(can.ok(), HasPlace(cluster, {}, {}, job))
        << "seed " << seed << ": " << job.gpus << " GPUs, " << model::TextOf(request)
        << (can.ok() ? "" : ": " + can.error().message);
    never += can.ok() ? 0 : 1;
  }
  EXPECT_GT(never, static_cast<int>(rounds / 10));
}

// ------------------------------------------------------------------------------- what it means

// Two GPUs with 8 CPUs: the first job takes 7 of them, the second would be content with one.
TEST(RequestsTest, WhoIsSilentCountsForTheShareOfItsGpus) {
  Cluster cluster = MakeCluster(1, 2);
  cluster.nodes[0].capacity = {.milli_cpus = 8000};
  const JobSpec many =
      Asking(MakeJob(0, 1, 100), {.cpus = {.milli = 7000}, .memory = {}, .nodes = {}});
  const JobSpec silent = MakeJob(1, 1, 10);
  const JobSpec one =
      Asking(MakeJob(1, 1, 10), {.cpus = {.milli = 1000}, .memory = {}, .nodes = {}});
  EXPECT_EQ(Starts({many, silent}, cluster, "fifo"), (std::vector<double>{0, 100}));
  EXPECT_EQ(Starts({many, one}, cluster, "fifo"), (std::vector<double>{0, 1}));
}

// A job with a request takes nothing from others that they could have beside it.
TEST(RequestsTest, WhoIsSilentStartsBesideWhoAsks) {
  Cluster cluster = MakeCluster(2, 8);
  for (NodeSpec& node : cluster.nodes) {
    node.capacity = {.milli_cpus = 64'000, .memory_mib = 1 << 20};
  }
  const JobSpec asks =
      Asking(MakeJob(0, 1, 100), {.cpus = {.milli = 16'000}, .memory = {}, .nodes = {}});
  const JobSpec alone =
      Asking(MakeJob(0, 1, 100), {.cpus = {}, .memory = {}, .nodes = {}, .exclusive = true});
  for (const char* const placement :
       {"consolidated", "first-fit", "scattered", "buddy", "buddy-groups", "synergy"}) {
    const auto starts = [&](std::vector<JobSpec> jobs) {
      const TestResult result = RunTest(
          {.jobs = std::move(jobs), .cluster = cluster, .policy = "fjf", .placement = placement});
      EXPECT_TRUE(result.status.ok()) << result.status.error().message;
      std::vector<double> times;
      for (std::size_t i = 0; i < result.records.size(); ++i) {
        EXPECT_EQ(result.records[i].migrations, 0U) << placement << ", job " << i;
        times.push_back(result.start(i));
      }
      return times;
    };
    EXPECT_EQ(starts({asks, MakeJob(1, 8, 100), MakeJob(2, 4, 10)}), (std::vector<double>{0, 1, 2}))
        << placement;
    EXPECT_EQ(starts({alone, MakeJob(1, 8, 10)}), (std::vector<double>{0, 1})) << placement;
    EXPECT_EQ(starts({alone, MakeJob(1, 2, 10), MakeJob(2, 4, 10)}), (std::vector<double>{0, 1, 2}))
        << placement;
    EXPECT_EQ(starts({asks, MakeJob(1, 1, 50), MakeJob(2, 1, 10), MakeJob(3, 5, 2)}),
              (std::vector<double>{0, 1, 2, 3}))
        << placement;
  }
}

// What nobody needs goes to who asks for less than would be best; never less than it asks for.
TEST(RequestsTest, SynergyTunesAboveWhatIsAskedFor) {
  const HungryModels rates;
  Cluster cluster = MakeCluster(2, 4);
  for (NodeSpec& node : cluster.nodes) {
    node.capacity = {.milli_cpus = 24'000, .memory_mib = std::int64_t{500} * 1024};
  }
  const auto job = [](double submit, int gpus, const char* model, std::int64_t cpus) {
    JobSpec made = MakeJob(submit, gpus, 1);
    made.duration.reset();
    made.model = model;
    made.iterations = 90;
    return cpus == 0 ? made
                     : Asking(std::move(made),
                              {.cpus = {.milli = cpus * 1000}, .memory = {}, .nodes = {}});
  };
  const auto ends = [&](std::vector<JobSpec> jobs) {
    const TestResult result = RunTest({.jobs = std::move(jobs),
                                       .cluster = cluster,
                                       .policy = "fifo",
                                       .placement = "synergy",
                                       .rates = &rates});
    EXPECT_TRUE(result.status.ok()) << result.status.error().message;
    std::vector<double> times;
    for (std::size_t i = 0; i < result.records.size(); ++i) {
      times.push_back(result.end(i));
    }
    return times;
  };
  EXPECT_EQ(ends({job(0, 1, "9", 3)}), (std::vector<double>{10})) << "alone: all that it prefers";
  EXPECT_EQ(ends({job(0, 4, "9", 12)}), (std::vector<double>{15})) << "all 24 of its node";
  EXPECT_EQ(ends({job(0, 1, "9", 3), job(0, 3, "6", 0), job(0, 4, "6", 0)}),
            (std::vector<double>{15, 15, 15}))
      << "the 18 that the silent job prefers are its own; 3 are left beside 3";
  EXPECT_EQ(ends({job(0, 8, "6", 24)}), (std::vector<double>{15}));
}

// The head waits for CPUs and not for GPUs; who does not delay it goes before.
TEST(RequestsTest, BackfillingReservesCpusToo) {
  Cluster cluster = MakeCluster(1, 8);
  cluster.nodes[0].capacity = {.milli_cpus = 16'000};
  const auto with_cpus = [](JobSpec job, int cpus) {
    return Asking(std::move(job), {.cpus = {.milli = cpus * 1000}, .memory = {}, .nodes = {}});
  };
  const std::vector<JobSpec> jobs{
      with_cpus(MakeJob(0, 1, 100), 12), with_cpus(MakeJob(1, 1, 50), 8),
      with_cpus(MakeJob(2, 1, 1000), 4), with_cpus(MakeJob(3, 1, 1000), 4),
      with_cpus(MakeJob(4, 1, 96), 4)};
  // At 100 the head takes 8 of 16: job 2 may stay beside it; for job 3 there is no CPU left now.
  EXPECT_EQ(Starts(jobs, cluster, "backfill"), (std::vector<double>{0, 100, 2, 100, 150}));
}

// ------------------------------------------------------------------- another configuration

// Plays two jobs of one GPU, the first of which asks for 6 CPUs and 1 GiB, on one node, which has
// other CPUs from the third step on. How often each is preempted.
std::vector<std::uint32_t> PreemptedBy(std::int64_t cpus, std::int64_t cpus_later) {
  TestRun run{.jobs = {Asking(MakeJob(0, 1, 100),
                              {.cpus = {.milli = 6000}, .memory = {.mib = 1024}, .nodes = {}}),
                       MakeJob(1, 1, 100), MakeJob(2, 1, 1), MakeJob(3, 1, 1)},
              .cluster = MakeCluster(1, 2)};
  run.cluster.nodes[0].capacity.milli_cpus = 1000 * cpus;
  const TestParts before(run);
  engine::Engine engine(before.Setup());
  world::SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(run.jobs), run.cluster,
                              engine);
  run.cluster.nodes[0].capacity.milli_cpus = 1000 * cpus_later;
  const TestParts after(run);
  int step = 0;
  for (model::Batch batch = world.Next(engine.next_wakeup()); !batch.done;
       batch = world.Next(engine.next_wakeup())) {
    if (++step == 3) {
      engine.Reconfigure(after.Setup().configuration);
    }
    EXPECT_TRUE(engine.Step(batch).ok());
    std::vector<Grant> held;
    for (const model::JobRecord& record : engine.records()) {
      held.push_back(record.grant);
    }
    EXPECT_EQ(Wrong(step < 3 ? before.Setup().configuration->cluster : run.cluster, run.jobs, held),
              "")
        << "step " << step;
  }
  EXPECT_GE(step, 3);
  return {engine.records()[0].preemptions, engine.records()[1].preemptions};
}

// The node states no memory: what is asked of it is no reason to stop. With 8 CPUs the two would
// have 6 and 4.
TEST(RequestsTest, AnotherConfigurationStopsThoseAloneForWhomThereIsNoRoom) {
  EXPECT_EQ(PreemptedBy(12, 12), (std::vector<std::uint32_t>{0, 0}));
  EXPECT_EQ(PreemptedBy(12, 0), (std::vector<std::uint32_t>{0, 0}));
  EXPECT_EQ(PreemptedBy(12, 8), (std::vector<std::uint32_t>{0, 1}));
}

}  // namespace
}  // namespace trainyard
