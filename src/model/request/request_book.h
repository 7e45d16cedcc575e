// SPDX-License-Identifier: Apache-2.0
// The CPUs, memory and licences that jobs ask for, and what is left of them on each node: the one
// test below all placements. A job counts for what it states, whatever a policy gives it beyond
// that; of what it does not state, for the share that comes with its GPUs. A job without GPUs has
// one part on each of its nodes, and counts for one CPU there if it states none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/job.h"
#include "trainyard/resources.h"

namespace trainyard::model {

class RequestBook {
 public:
  // `cluster` must outlive it.
  explicit RequestBook(const Cluster& cluster);

  // The job holds so many GPUs on these slices, or no longer. O(slices).
  void Add(const JobSpec& job, const Slices& slices) { Count(job, slices, 1); }
  void Remove(const JobSpec& job, const Slices& slices) { Count(job, slices, -1); }
  // A job with GPUs holds what the slices say, where that is more than it counts for.
  void AddGiven(const JobSpec& job, const Slices& slices);

  // False: nobody who is in the book states anything, and who does not either has room wherever
  // GPUs are free.
  [[nodiscard]] bool limits() const { return askers_ > 0; }
  // Of `free` free GPUs of the node, how many the job may have beside all others, as part of a gang
  // of `of`. O(log free).
  [[nodiscard]] int MostGpus(const NodeRequest& request, int of, NodeId node, int free) const;
  // Whether it may have these; licences included. GPUs are not looked at. O(slices).
  [[nodiscard]] bool Fits(const JobSpec& job, const Slices& slices) const {
    return WhyNot(job, slices).empty();
  }
  // Why it may not have them: "more CPUs of node n0 than are left".
  [[nodiscard]] std::string WhyNot(const JobSpec& job, const Slices& slices) const {
    const bool asks = job.gpus == 0 || (job.traits != nullptr && job.traits->request);
    return asks || limits() ? LackFor(job, slices) : std::string();
  }
  [[nodiscard]] bool HasLicensesFor(const NodeRequest& request) const;

  // Whether a job without GPUs, on so many nodes, has room on this one. O(1).
  [[nodiscard]] bool HasRoomOnCpus(const NodeRequest& request, NodeId node, int nodes) const;
  // What it has there.
  [[nodiscard]] static Resources OnCpus(const NodeSpec& node, const NodeRequest& request,
                                        int nodes);
  // Somebody of whose request nothing is known has so much of the node; not all of it is CPUs and
  // memory that the node states.
  void Take(NodeId node, const Resources& taken) { nodes_[Index(node)].asked += taken; }
  // What is left of what the node states, whoever wants it.
  [[nodiscard]] Resources LeftOn(NodeId node) const;

 private:
  // What is on one node.
  struct Node {
    Resources asked{};    // of those who state something
    int silent_gpus = 0;  // of those who do not
    int askers = 0;
    int alone = 0;  // of them, who have the node alone
  };

  void Count(const JobSpec& job, const Slices& slices, int sign);
  [[nodiscard]] std::string LackFor(const JobSpec& job, const Slices& slices) const;
  void CountAskers(const JobSpec& job, const Slices& slices, int sign);
  // What the job counts for with so many GPUs of the node.
  [[nodiscard]] static Resources Counted(const NodeSpec& node, const NodeRequest& request, int gpus,
                                         int of);
  [[nodiscard]] bool HasRoom(const NodeRequest& request, int of, std::size_t node, int gpus) const;
  [[nodiscard]] bool IsOpen(const NodeRequest& request, const Node& on) const;
  [[nodiscard]] Resources LeftBeside(std::size_t node, int silent_gpus) const;

  const Cluster* cluster_;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> licenses_left_;  // in the order of the cluster
  int askers_ = 0;                           // slices, and jobs with licences
};

}  // namespace trainyard::model
