// SPDX-License-Identifier: Apache-2.0
// Gandiva on hand-made jobs: where they are placed, whose turn it is, and who gets more nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "policy/policies.h"
#include "support/hand_made_jobs.h"
#include "support/sanitized.h"

namespace trainyard {
namespace {

using Ids = std::vector<std::size_t>;

constexpr char kPublished[] = ":rotate=multiples,spare=1,groups=published";

class GandivaTest : public testing::Test {
 protected:
  // Starts anew with these options.
  void Use(const std::string& options, int nodes, int gpus_per_node) {
    Result<Components> made = TryPolicy("gandiva" + options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    policy_ = std::move(made.value().policy);
    memory_ = policy_->NewMemory();
    jobs_ = ChangingJobs();
    cluster_ = {};
    for (int i = 0; i < nodes; ++i) {
      cluster_.nodes.push_back({.name = std::to_string(i), .gpus = gpus_per_node});
    }
  }
  void Add(int count, int gpus) {
    for (int i = 0; i < count; ++i) {
      (void)jobs_.Add({.name = "job", .gpus = gpus});
    }
  }
  void Remove(std::size_t job) { jobs_.Remove(JobAt(job)); }

  Proposal Propose(double now, Memory* memory) const {
    std::vector<bool> up(cluster_.nodes.size(), true);
    std::uint64_t changes = 0;
    for (const NodeChange& change : cluster_.changes) {
      if (change.at <= AtSeconds(now)) {
        up[Index(change.node)] = change.up;
        ++changes;
      }
    }
    const Snapshot snapshot{.now = AtSeconds(now),
                            .cluster = &cluster_,
                            .gpus_up = cluster_.total_gpus(),
                            .nodes_up = &up,
                            .node_changes = changes,
                            .jobs = &jobs_};
    Proposal proposal = policy_->Decide(snapshot, memory);
    EXPECT_TRUE(proposal.walk.keep_running);
    NameWhatStays(proposal.demands);
    return proposal;
  }
  // Demands that name no GPUs are for those that the job holds.
  void NameWhatStays(std::vector<Demand>& demands) const {
    for (Demand& demand : demands) {
      if (demand.gpus > 0 && demand.slices.empty()) {
        demand.slices = jobs_.grant(demand.job).slices;
      }
    }
  }
  // Decides, and the jobs hold what they are given. Draws it, a letter for each GPU: "00.. 1122".
  std::string Decide(double now) {
    const Proposal proposal = Propose(now, memory_.get());
    jobs_.Hold(proposal.demands);
    wake_ = proposal.wake_at ? Seconds(*proposal.wake_at) : -1;
    told_.clear();
    for (const Demand& demand : proposal.demands) {
      if (demand.gpus == 0) {
        told_.push_back(Index(demand.job));
      }
    }
    return Draw(proposal);
  }
  // Fails where a gang is not complete or two jobs hold a GPU.
  [[nodiscard]] std::string Draw(const Proposal& proposal) const {
    std::vector<std::string> rows;
    for (const NodeSpec& node : cluster_.nodes) {
      rows.emplace_back(static_cast<std::size_t>(node.gpus), '.');
    }
    for (const Demand& demand : proposal.demands) {
      const auto letter = static_cast<char>('0' + static_cast<char>(Index(demand.job) % 64));
      int sum = 0;
      for (const Slice& slice : demand.slices) {
        DrawSlice(slice, letter, rows.at(Index(slice.node)));
        sum += std::popcount(slice.gpus);
      }
      EXPECT_EQ(sum, demand.gpus);
      EXPECT_TRUE(std::is_sorted(demand.slices.begin(), demand.slices.end(),
                                 [](const Slice& a, const Slice& b) { return a.node < b.node; }));
    }
    std::string all;
    for (const std::string& row : rows) {
      all += (all.empty() ? "" : " ") + row;
    }
    return all;
  }
  static void DrawSlice(const Slice& slice, char letter, std::string& row) {
    for (std::size_t gpu = 0; gpu < kMaxGpusPerNode; ++gpu) {
      if ((slice.gpus >> gpu & 1) != 0) {
        EXPECT_EQ(row.at(gpu), '.') << "two jobs on one GPU";
        row.at(gpu) = letter;
      }
    }
  }

  ChangingJobs jobs_;
  Cluster cluster_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Memory> memory_;
  double wake_ = -1;  // of the last decision; -1: none
  Ids told_;          // that they have started, without GPUs
};

// What holds in both forms.
class GandivaFormsTest : public GandivaTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Forms, GandivaFormsTest, testing::Values("", kPublished));

// ---------------------------------------------------------------------------------------- options

TEST_F(GandivaTest, BadOptionsAreRefused) {
  EXPECT_EQ(PolicyError("gandiva:rotate=never"),
            "policy 'gandiva': option 'rotate' is 'never'; expected one of quantum, multiples");
  EXPECT_EQ(PolicyError("gandiva:groups=none"),
            "policy 'gandiva': option 'groups' is 'none'; expected one of balanced, published");
  EXPECT_EQ(PolicyError("gandiva:spare=-1"),
            "policy 'gandiva': option 'spare' is '-1'; expected a number >= 0");
  for (const char* quantum : {"0", "0.5", "1e10"}) {
    EXPECT_EQ(PolicyError("gandiva:quantum=" + std::string(quantum)),
              "policy 'gandiva': quantum must lie between 1 and 1e9 seconds");
  }
}

TEST_F(GandivaTest, ItNamesTheGpusAndLeavesTheirNumberAlone) {
  Use("", 1, 4);
  EXPECT_TRUE(policy_->traits().may.name_gpus);
  EXPECT_FALSE(policy_->traits().may.resize);
  EXPECT_FALSE(policy_->traits().needs.work_left);
}

// -------------------------------------------------------------------------------------- placement

TEST_F(GandivaTest, NoJobsNoDemands) {
  Use("", 1, 4);
  EXPECT_EQ(Decide(0), "....");
  EXPECT_EQ(wake_, -1);
}

TEST_F(GandivaTest, JobsOfOneSizeShareNodesUntilTheseAreFull) {
  Use("", 3, 4);
  Add(2, 1);
  Add(3, 2);
  EXPECT_EQ(Decide(0), "01.. 2233 44..");
  EXPECT_EQ(wake_, -1);
}

TEST_F(GandivaTest, ASparePlaceStaysEmptyAsLongAsThereAreFreeNodes) {
  Use(":spare=1", 2, 4);
  Add(5, 1);
  EXPECT_EQ(Decide(0), "012. 34..");
  Add(3, 1);
  EXPECT_EQ(Decide(1), "0127 3456");
}

TEST_F(GandivaTest, WhereThereIsNoNodeJobsTakeTurnsAndHaveStarted) {
  Use("", 1, 2);
  Add(4, 1);
  EXPECT_EQ(Decide(0), "01");
  EXPECT_EQ(told_, Ids({2, 3}));
  EXPECT_EQ(Decide(1), "01");
  EXPECT_EQ(told_, Ids()) << "once is enough";
}

TEST_P(GandivaFormsTest, ASizeWithoutANodeWaits) {
  Use(GetParam(), 1, 4);
  Add(1, 1);
  Add(1, 2);
  EXPECT_EQ(Decide(0), "0...");
  EXPECT_EQ(told_, Ids());
  EXPECT_EQ(wake_, -1);
  Remove(0);
  EXPECT_EQ(Decide(10), "11..");
}

TEST_F(GandivaTest, AJobLargerThanTheClusterWaitsForEver) {
  Use("", 2, 4);
  Add(1, 9);
  Add(1, 4);
  EXPECT_EQ(Decide(0), "1111 ....");
}

TEST_F(GandivaTest, ALargeGangTakesWholeNodes) {
  Use("", 3, 4);
  Add(1, 6);
  Add(1, 1);
  EXPECT_EQ(Decide(0), "0000 00.. 1...");
}

TEST_F(GandivaTest, EverySizeHasItsOwnGroup) {
  Use("", 3, 8);
  Add(2, 3);
  Add(1, 4);
  Add(1, 5);
  EXPECT_EQ(Decide(0), "000111.. 2222.... 33333...");
}

TEST_F(GandivaTest, WhoLeavesMakesRoomAndNobodyElseMoves) {
  Use("", 1, 8);
  Add(4, 2);
  EXPECT_EQ(Decide(0), "00112233");
  Remove(1);
  EXPECT_EQ(Decide(5), "00..2233");
  Add(1, 2);
  EXPECT_EQ(Decide(6), "00442233");
}

TEST_F(GandivaTest, NodesOfAnotherSizeAreNotUsed) {
  Use("", 2, 4);
  cluster_.nodes[0].gpus = 2;
  Add(2, 4);
  EXPECT_EQ(Decide(0), ".. 0000");
}

TEST_P(GandivaFormsTest, JobsOfANodeThatIsLostGoOnElsewhere) {
  Use(GetParam(), 2, 4);
  cluster_.changes = {{.at = AtSeconds(100), .node = NodeAt(0), .up = false},
                      {.at = AtSeconds(200), .node = NodeAt(0), .up = true}};
  Add(2, 4);
  EXPECT_EQ(Decide(0), "0000 1111");
  EXPECT_EQ(Decide(100), ".... 1111");
  Remove(1);
  EXPECT_EQ(Decide(150), ".... 0000");
  Add(1, 2);
  EXPECT_EQ(Decide(200), "22.. 0000");
}

// ------------------------------------------------------------------------------------------ turns

TEST_F(GandivaTest, JobsTakeTurnsEveryQuantum) {
  Use(":quantum=30", 1, 2);
  Add(3, 1);
  EXPECT_EQ(Decide(5), "01");
  EXPECT_EQ(wake_, 35);
  EXPECT_EQ(Decide(20), "01");
  EXPECT_EQ(wake_, 35);
  EXPECT_EQ(Decide(35), "02") << "job 0 goes on where it is";
  EXPECT_EQ(Decide(65), "12");
  EXPECT_EQ(Decide(100), "10");
  EXPECT_EQ(wake_, 130);
  Remove(1);
  EXPECT_EQ(Decide(110), "20");
  EXPECT_EQ(wake_, -1) << "nobody waits";
}

TEST_F(GandivaTest, WhoEndsWithTheSliceGivesItsTurnAway) {
  Use("", 1, 2);
  Add(4, 1);
  EXPECT_EQ(Decide(0), "01");
  Remove(0);
  EXPECT_EQ(Decide(60), "23");
  EXPECT_EQ(Decide(120), "21") << "2 and 3 have been first; 1 has its first turn since";
}

TEST_F(GandivaTest, ThePictureInTheDocsIsRight) {
  Use("", 4, 4);
  Add(4, 1);
  Add(1, 2);
  Add(1, 8);
  Add(2, 1);
  EXPECT_EQ(Decide(0), "0123 44.. 5555 5555");
  EXPECT_EQ(Decide(60), "0167 44.. 5555 5555");
}

TEST_F(GandivaTest, TurnsMayBeTakenOnlyAtMultiples) {
  Use(":rotate=multiples", 1, 1);
  Add(2, 1);
  EXPECT_EQ(Decide(30), "0");
  EXPECT_EQ(wake_, -1);
  EXPECT_EQ(Decide(119), "0");
  EXPECT_EQ(Decide(180), "1");
  EXPECT_EQ(Decide(181), "1");
  EXPECT_EQ(Decide(240), "0");
}

TEST_F(GandivaTest, AllGetTheSameTime) {
  Use("", 2, 3);
  Add(10, 1);
  std::map<char, int> quanta;
  for (int i = 0; i < 50; ++i) {
    for (const char job : Decide(60 * i)) {
      ++quanta[job];
    }
  }
  for (char job = '0'; job <= '9'; ++job) {
    EXPECT_EQ(quanta[job], 30) << job;
  }
}

// --------------------------------------------------------------------------- groups=balanced

TEST_F(GandivaTest, FreeNodesGoWhereJobsTakeTurns) {
  Use("", 2, 2);
  Add(1, 2);
  Add(4, 1);
  EXPECT_EQ(Decide(0), "00 12");
  Remove(0);
  EXPECT_EQ(Decide(10), "43 12") << "who runs stays";
  EXPECT_EQ(wake_, -1);
}

TEST_F(GandivaTest, ANewSizeGetsANodeFromTheGroupWithMoreThanItsShare) {
  Use("", 3, 2);
  Add(6, 1);
  EXPECT_EQ(Decide(0), "01 23 45");
  Add(1, 2);
  EXPECT_EQ(Decide(10), "01 23 66");
  EXPECT_EQ(wake_, 70);
  EXPECT_EQ(Decide(20), "01 23 66") << "balanced already";
}

TEST_F(GandivaTest, NodesFollowDemand) {
  Use("", 4, 2);
  Add(8, 1);
  EXPECT_EQ(Decide(0), "01 23 45 67");
  Add(4, 2);
  EXPECT_EQ(Decide(10), "99 23 45 88");
  for (const std::size_t job : Ids({0, 1, 4, 5, 6})) {
    Remove(job);
  }
  EXPECT_EQ(Decide(20), "99 23 :: 88") << "7 waits";
}

TEST_F(GandivaTest, AGroupWithinItsShareKeepsItsNodes) {
  Use("", 2, 2);
  Add(2, 1);
  Add(1, 2);
  EXPECT_EQ(Decide(0), "01 22");
  Add(1, 4);
  EXPECT_EQ(Decide(10), "01 22");
  Remove(2);
  EXPECT_EQ(Decide(20), "01 ..") << "4 GPUs are two nodes";
  Remove(0);
  Remove(1);
  EXPECT_EQ(Decide(30), "33 33");
}

// -------------------------------------------------------------------------- the published form

// Two GPUs too many, so two sets of two GPUs are dissolved; then two too few, so two sets are
// added, and the jobs stay where they are.
TEST_F(GandivaTest, PublishedGroupsCountGpusAsSets) {
  Use(kPublished, 4, 2);
  Add(6, 1);
  EXPECT_EQ(Decide(0), ".. .. 24 35");
  EXPECT_EQ(told_, Ids({1, 0}));
  EXPECT_EQ(Decide(1), ".. .. 24 35");
  EXPECT_EQ(Decide(2), ".. .. 24 35");
  EXPECT_EQ(Decide(60), ".. .. 20 31");
}

TEST_F(GandivaTest, PublishedGrowthDealsTheJobsOutAnewWhereNodesRunOut) {
  Use(kPublished, 4, 2);
  Add(1, 2);
  Add(8, 1);
  // The first set is never the one that gets a job while all are full: it goes to the tail first.
  EXPECT_EQ(Decide(1), "00 14 25 3.");
  Remove(0);
  EXPECT_EQ(Decide(2), "71 54 26 38");
}

TEST_F(GandivaTest, PublishedRetryPassesOverTheOneBehindAJobThatWasPlaced) {
  Use(kPublished, 1, 4);
  Add(1, 1);
  Add(3, 2);
  EXPECT_EQ(Decide(0), "0...");
  Remove(0);
  EXPECT_EQ(Decide(10), "1133");
  EXPECT_EQ(told_, Ids());
  Remove(1);
  EXPECT_EQ(Decide(20), "..33") << "no node came free";
  Remove(3);
  EXPECT_EQ(Decide(30), "22..");
}

// ----------------------------------------------------------------------------------------- memory

TEST_F(GandivaTest, ACopyOfTheMemoryGoesItsOwnWay) {
  Use("", 1, 1);
  Add(2, 1);
  EXPECT_EQ(Decide(0), "0");
  const std::unique_ptr<Memory> copy = CopyOf(*memory_, *policy_);
  EXPECT_EQ(Draw(Propose(60, copy.get())), "1");
  EXPECT_EQ(Draw(Propose(120, copy.get())), "0");
  EXPECT_EQ(Decide(30), "0");
  EXPECT_EQ(wake_, 60);
  EXPECT_EQ(Decide(60), "1");
}

// Random jobs come and run for so many seconds; nodes may fail.
class GandivaRunTest : public GandivaTest {
 protected:
  void UseRandomCluster(const std::string& options, bool failures) {
    const int nodes = 1 + static_cast<int>(random_() % 6);
    Use(options, nodes, 2 << (random_() % 3));
    gpus_ = cluster_.total_gpus();
    left_.clear();
    for (int i = 0; failures && i < 5; ++i) {
      const NodeId node = NodeAt(random_() % cluster_.nodes.size());
      cluster_.changes.push_back({.at = AtSeconds(100 + 400 * i), .node = node, .up = false});
      cluster_.changes.push_back({.at = AtSeconds(300 + 400 * i), .node = node, .up = true});
    }
  }

  // True: all jobs have ended in time.
  bool RunAll(int count, bool balanced) {
    double now = 0;
    for (int step = 0; step < 20'000; ++step) {
      for (int i = static_cast<int>(random_() % 4); i > 0 && count > 0; --i, --count) {
        Add(1, 1 + static_cast<int>(random_() % static_cast<unsigned>(gpus_)));
        left_.push_back(static_cast<double>(1 + random_() % 600));
      }
      const std::string drawn = Decide(now);
      if (balanced) {
        ExpectNoIdleNodes(drawn);
        EXPECT_EQ(Decide(now), drawn) << "asking twice changes something";
      }
      if (count == 0 && jobs_.live().empty()) {
        return true;
      }
      const double next =
          wake_ > 0 && random_() % 2 == 0 ? wake_ : now + static_cast<double>(1 + random_() % 60);
      Go(next - now);
      now = next;
    }
    return false;
  }

 private:
  void ExpectNoIdleNodes(const std::string& drawn) const {
    const auto per_node = static_cast<std::size_t>(cluster_.nodes[0].gpus);
    int idle = 0;
    for (std::size_t i = 0; i < cluster_.nodes.size(); ++i) {
      idle += drawn.substr(i * (per_node + 1), per_node) == std::string(per_node, '.') ? 1 : 0;
    }
    for (const JobId job : jobs_.live()) {
      const int nodes =
          (jobs_.at(job).spec->gpus + cluster_.nodes[0].gpus - 1) / cluster_.nodes[0].gpus;
      EXPECT_TRUE(jobs_.grant(job).gpus > 0 || nodes > idle) << drawn << " " << Index(job);
    }
  }

  void Go(double seconds) {
    const std::vector<JobId> live(jobs_.live().begin(), jobs_.live().end());
    for (const JobId job : live) {
      const int held = jobs_.grant(job).gpus;
      EXPECT_TRUE(held == 0 || held == jobs_.at(job).spec->gpus);
      left_[Index(job)] -= held > 0 ? seconds : 0;
      if (left_[Index(job)] <= 0) {
        jobs_.Remove(job);
      }
    }
  }

  std::mt19937 random_{7};
  int gpus_ = 0;
  std::vector<double> left_;  // seconds, by job
};

TEST_F(GandivaRunTest, GpusNeverOverlapNoNodeIsIdleAndAllJobsEnd) {
  for (int round = 0; round < Rounds(150) && !HasFailure(); ++round) {
    UseRandomCluster("", false);
    ASSERT_TRUE(RunAll(60, true)) << round;
  }
}

TEST_F(GandivaRunTest, AllJobsEndWhenNodesFail) {
  for (int round = 0; round < Rounds(150) && !HasFailure(); ++round) {
    UseRandomCluster("", true);
    ASSERT_TRUE(RunAll(60, false)) << round;
  }
}

TEST_F(GandivaRunTest, GpusNeverOverlapInThePublishedForm) {
  for (int round = 0; round < Rounds(150) && !HasFailure(); ++round) {
    UseRandomCluster(kPublished, round % 2 == 0);
    ASSERT_TRUE(RunAll(60, false)) << round;
  }
}

}  // namespace
}  // namespace trainyard
