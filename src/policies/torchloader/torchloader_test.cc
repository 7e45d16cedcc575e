// SPDX-License-Identifier: Apache-2.0
// Policy torchloader on hand-made jobs: what it asks for when jobs arrive, depart and fail.
#include <gtest/gtest.h>

#include <bit>

#include "loader/loader_profiles.h"
#include "support/hand_made_jobs.h"

namespace trainyard::policies {
namespace {

// Four images on one GPU take a quarter of a second; each worker makes 2 images per second: eight
// of them keep a GPU busy that nobody else uses.
class TorchloaderTest : public testing::Test {
 protected:
  TorchloaderTest() {
    cluster_.nodes.assign(2, {.name = "n", .gpus = 2, .capacity = {.milli_cpus = 12000}});
  }

  void Make(const std::string& options) {
    Result<Components> made = TryPolicy(options, {.read_samples = {}, .loader = &profiles_});
    ASSERT_TRUE(made.ok()) << made.error().message;
    policy_ = std::move(made.value().policy);
    memory_ = policy_->NewMemory();
  }

  // One that names GPUs of one node.
  JobId Add(std::size_t node, std::uint64_t gpus, int workers) {
    JobSpec job{.name = "j", .model = "a1", .gpus = std::popcount(gpus), .batch_size = 4};
    job.iterations = 100;
    job.traits = std::make_shared<JobTraits>(
        JobTraits{.devices = {{.node = NodeAt(node), .gpus = gpus}}, .loader_workers = workers});
    return jobs_.Add(std::move(job)).id;
  }

  JobId AddWithout(int gpus) {
    JobSpec job{.name = "j", .model = "a1", .gpus = gpus, .batch_size = 4};
    job.iterations = 100;
    return jobs_.Add(std::move(job)).id;
  }

  Proposal At(double seconds, std::span<const JobId> resized = {}) {
    return policy_->Decide({.now = AtSeconds(seconds),
                            .cluster = &cluster_,
                            .nodes_up = &up_,
                            .jobs = &jobs_,
                            .resized = resized},
                           memory_.get());
  }

  // "job:workers", and "!" where it is launched anew.
  static std::string Words(const Proposal& proposal) {
    std::string words;
    for (const Demand& demand : proposal.demands) {
      words += words.empty() ? "" : " ";
      words += std::to_string(Index(demand.job)) + ":" +
               std::to_string(demand.slices.front().loader_workers) + (demand.restart ? "!" : "");
      EXPECT_EQ(demand.sharing, Sharing::kCollocated);
    }
    return words;
  }

  loader::LoaderProfiles profiles_ = loader::LoaderProfiles::Of(
      {{.name = "a1"}}, {.gpu = {.base = 0.25}, .loader = {.per_worker = 0.5}});
  Cluster cluster_{.name = "c", .nodes = {}};
  std::vector<bool> up_{true, true};
  ChangingJobs jobs_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Memory> memory_;
};

TEST_F(TorchloaderTest, JobsRunAtOnceWithWhatTheyNeed) {
  Make("torchloader");
  (void)Add(0, 1, 30);
  EXPECT_EQ(Words(At(0)), "0:8");
  (void)Add(0, 1, 1);  // the same GPU: each needs half as much
  EXPECT_EQ(Words(At(1)), "0:8 1:4");
}

TEST_F(TorchloaderTest, RunningJobsMakeRoomAsTheyRun) {
  Make("torchloader");
  (void)Add(0, 1, 30);
  (void)At(0);
  (void)Add(0, 2, 30);
  EXPECT_EQ(Words(At(1)), "0:8 1:4");  // twelve cores, and as good as 6 and 6
  (void)Add(1, 2, 30);
  EXPECT_EQ(Words(At(2)), "0:8 1:4 2:8");  // another node
}

TEST_F(TorchloaderTest, AsPublishedChangedJobsAreLaunchedAnew) {
  Make("torchloader:allocation=v2,change=restart,finish_buffer=5");
  const JobId first = Add(0, 1, 30);
  EXPECT_EQ(Words(At(0)), "0:9");
  (void)Add(0, 2, 30);
  (void)Add(1, 2, 30);
  (void)Add(1, 1, 30);
  EXPECT_EQ(Words(At(1)), "2:6 1:6 3:6 0:6!");
  jobs_.Remove(first);
  const Proposal waiting = At(10);
  EXPECT_EQ(Words(waiting), "2:6 1:6 3:6");
  EXPECT_EQ(waiting.wake_at, AtSeconds(15));
  EXPECT_EQ(Words(At(15)), "3:8! 2:8! 1:8!");
  EXPECT_FALSE(At(15).wake_at.has_value());
}

TEST_F(TorchloaderTest, AnArrivalFindsThoseGoneWhoHaveDeparted) {
  Make("torchloader:allocation=v2,finish_buffer=5");
  const JobId first = Add(0, 1, 30);
  (void)At(0);
  jobs_.Remove(first);
  (void)At(10);
  (void)Add(0, 1, 30);
  const Proposal proposal = At(12);
  EXPECT_EQ(Words(proposal), "1:9");
  EXPECT_FALSE(proposal.wake_at.has_value());
}

TEST_F(TorchloaderTest, InModeOneJobsKeepWhatTheyAskedFor) {
  Make("torchloader:mode=1");
  (void)Add(0, 3, 7);
  EXPECT_EQ(Words(At(0)), "0:7");
  (void)Add(0, 3, 9);
  EXPECT_EQ(Words(At(1)), "0:7 1:9");
}

TEST_F(TorchloaderTest, InModeTwoDeparturesChangeNothing) {
  Make("torchloader:allocation=v2,mode=2");
  for (const std::uint64_t gpu : {1U, 2U}) {
    (void)Add(0, gpu, 30);
    (void)Add(1, gpu, 30);
  }
  EXPECT_EQ(Words(At(0)), "1:6 3:6 2:6 0:6");
  jobs_.Remove(JobAt(0));
  EXPECT_EQ(Words(At(1)), "1:6 3:6 2:6");
}

TEST_F(TorchloaderTest, JobsOnALostNodeWaitForIt) {
  Make("torchloader");
  (void)Add(0, 1, 30);
  (void)Add(1, 1, 30);
  EXPECT_EQ(At(0).demands.size(), 2U);
  up_[1] = false;
  EXPECT_EQ(Words(At(1)), "0:8");
  up_[1] = true;
  EXPECT_EQ(Words(At(2)), "0:8 1:8");
}

TEST_F(TorchloaderTest, WhoNamesNoGpusIsAloneOnThose) {
  Make("torchloader");
  (void)Add(0, 1, 30);
  const JobId alone = AddWithout(3);
  (void)AddWithout(1);  // finds none
  const Proposal proposal = At(0);
  ASSERT_EQ(proposal.demands.size(), 2U);
  const Demand& placed = proposal.demands[0];  // as the published rules order them
  ASSERT_EQ(placed.job, alone);
  EXPECT_EQ(placed.sharing, Sharing::kExclusive);
  ASSERT_EQ(placed.slices.size(), 2U);
  EXPECT_EQ(placed.slices[0].gpus, 2U);
  EXPECT_EQ(placed.slices[1].gpus, 3U);
  EXPECT_GT(placed.slices[0].loader_workers, 0);
  (void)Add(1, 2, 30);  // has to wait for it
  EXPECT_EQ(At(1).demands.size(), 2U);
  jobs_.Remove(alone);
  EXPECT_EQ(At(2).demands.size(), 3U);
}

TEST_F(TorchloaderTest, WhoNamesNoGpusLeavesALostNode) {
  Make("torchloader");
  (void)AddWithout(1);
  EXPECT_EQ(At(0).demands.at(0).slices.at(0).node, NodeAt(0));
  up_[0] = false;
  EXPECT_EQ(At(1).demands.at(0).slices.at(0).node, NodeAt(1));
  up_[0] = true;
  EXPECT_EQ(At(2).demands.at(0).slices.at(0).node, NodeAt(1));
}

TEST_F(TorchloaderTest, WhoIsResizedArrivesAnew) {
  for (const bool divides : {true, false}) {
    Make("torchloader");
    if (!divides) {
      policy_ = TryPolicy("torchloader", {.read_samples = {}}).value().policy;
      memory_ = policy_->NewMemory();
    }
    const JobId job = AddWithout(1);
    EXPECT_EQ(At(0).demands.at(0).slices.at(0).gpus, 1U);
    JobSpec larger = *jobs_.view(job).spec;
    larger.gpus = 2;
    jobs_.view(job).spec = &larger;
    (void)At(10, {&job, 1});
    const Proposal later = At(20);
    ASSERT_EQ(later.demands.size(), 1U);
    EXPECT_EQ(later.demands[0].gpus, 2);
    EXPECT_EQ(later.demands[0].slices.at(0).gpus, 3U);
    jobs_.Remove(job);
  }
}

TEST_F(TorchloaderTest, WithoutACatalogueJobsRunInTurnAndAlone) {
  Result<Components> made = TryPolicy("torchloader", {.read_samples = {}});
  ASSERT_TRUE(made.ok()) << made.error().message;
  policy_ = std::move(made.value().policy);
  memory_ = policy_->NewMemory();
  EXPECT_FALSE(policy_->traits().may.share);
  const JobId first = AddWithout(3);
  (void)AddWithout(2);
  (void)AddWithout(1);  // would fit, but comes later
  ASSERT_EQ(At(0).demands.size(), 1U);
  EXPECT_EQ(At(0).demands[0].slices,
            (Slices{{.node = NodeAt(0), .gpus = 3}, {.node = NodeAt(1), .gpus = 1}}));
  jobs_.Remove(first);
  EXPECT_EQ(At(1).demands.size(), 2U);
}

}  // namespace
}  // namespace trainyard::policies
