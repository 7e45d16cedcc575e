// SPDX-License-Identifier: Apache-2.0
// For tests: Gandiva on hand-made jobs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/hand_made_jobs.h"

namespace trainyard {

using Ids = std::vector<std::size_t>;

class GandivaTest : public testing::Test {
 protected:
  [[nodiscard]] virtual Result<Components> Make(const std::string& options) const {
    return TryPolicy("gandiva" + options);
  }
  // Starts anew with these options.
  void Use(const std::string& options, int nodes, int gpus_per_node) {
    Result<Components> made = Make(options);
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

  // On one node of four GPUs.
  void CheckThatASizeWithoutANodeWaits() {
    Add(1, 1);
    Add(1, 2);
    EXPECT_EQ(Decide(0), "0...");
    EXPECT_EQ(told_, Ids());
    EXPECT_EQ(wake_, -1);
    Remove(0);
    EXPECT_EQ(Decide(10), "11..");
  }
  // On two nodes of four GPUs.
  void CheckThatJobsOfALostNodeGoOn() {
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

  ChangingJobs jobs_;
  Cluster cluster_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Memory> memory_;
  double wake_ = -1;  // of the last decision; -1: none
  Ids told_;          // that they have started, without GPUs
};

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

}  // namespace trainyard
