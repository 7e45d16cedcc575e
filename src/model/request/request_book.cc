// SPDX-License-Identifier: Apache-2.0
#include "model/request/request_book.h"

#include <algorithm>
#include <bit>

#include "model/job_fields.h"
#include "model/request/node_request.h"
#include "model/request/request_fit.h"
#include "model/resource_amounts.h"
#include "model/slices.h"

namespace trainyard::model {
namespace {

const NodeRequest kSilent;

bool IsSilent(const NodeRequest& request) {
  return &request == &kSilent ||
         (request.cpus.milli == 0 && request.memory.mib == 0 && !request.exclusive);
}

// What comes with so many GPUs; nothing on a node that has lost its GPUs to a change.
Resources ShareOf(const NodeSpec& node, int gpus) {
  return node.gpus == 0 ? Resources() : ProportionalShare(node, gpus);
}

const NodeRequest& RequestOf(const JobSpec& job) {
  return job.traits == nullptr || !job.traits->request ? kSilent : *job.traits->request;
}

}  // namespace

RequestBook::RequestBook(const Cluster& cluster)
    : cluster_(&cluster), nodes_(cluster.nodes.size()) {
  licenses_left_.reserve(cluster.licenses.size());
  for (const License& license : cluster.licenses) {
    licenses_left_.push_back(license.count);
  }
}

Resources RequestBook::Counted(const NodeSpec& node, const NodeRequest& request, int gpus, int of) {
  Resources need = NeedOn(node, request, gpus, of);
  if (need.milli_cpus == 0 || need.memory_mib == 0) {
    const Resources share = ShareOf(node, gpus);
    need.milli_cpus = need.milli_cpus == 0 ? share.milli_cpus : need.milli_cpus;
    need.memory_mib = need.memory_mib == 0 ? share.memory_mib : need.memory_mib;
  }
  return need;
}

Resources RequestBook::OnCpus(const NodeSpec& node, const NodeRequest& request, int nodes) {
  constexpr std::int64_t kOneCpu = 1000;
  Resources need = NeedOn(node, request, 1, nodes);
  need.milli_cpus = need.milli_cpus == 0 ? kOneCpu : need.milli_cpus;
  return need;
}

void RequestBook::CountAskers(const JobSpec& job, const Slices& slices, int sign) {
  const NodeRequest& request = RequestOf(job);
  const int gpus = CountGpus(slices);
  const auto nodes = static_cast<int>(slices.size());
  for (const Slice& slice : slices) {
    const NodeSpec& spec = cluster_->nodes[Index(slice.node)];
    Node& node = nodes_[Index(slice.node)];
    node.asked += Times(job.gpus == 0 ? OnCpus(spec, request, nodes)
                                      : Counted(spec, request, std::popcount(slice.gpus), gpus),
                        sign);
    node.askers += sign;
    node.alone += request.exclusive ? sign : 0;
    askers_ += sign;
  }
}

void RequestBook::Count(const JobSpec& job, const Slices& slices, int sign) {
  const NodeRequest& request = RequestOf(job);
  if (job.gpus > 0 && IsSilent(request)) {
    for (const Slice& slice : slices) {
      nodes_[Index(slice.node)].silent_gpus += sign * std::popcount(slice.gpus);
    }
  } else {
    CountAskers(job, slices, sign);
  }
  if (request.licenses.empty() || slices.empty()) {
    return;
  }
  const std::vector<License> named = ParseLicenses(request.licenses).value();
  for (const License& one : named) {
    for (std::size_t i = 0; i < licenses_left_.size(); ++i) {
      licenses_left_[i] -= cluster_->licenses[i].name == one.name ? sign * one.count : 0;
    }
  }
}

void RequestBook::AddGiven(const JobSpec& job, const Slices& slices) {
  Add(job, slices);
  const NodeRequest& request = RequestOf(job);
  for (const Slice& slice : slices) {
    const NodeSpec& spec = cluster_->nodes[Index(slice.node)];
    const int gpus = std::popcount(slice.gpus);
    const Resources counted =
        IsSilent(request) ? ShareOf(spec, gpus) : Counted(spec, request, gpus, CountGpus(slices));
    Resources more = Most(slice.soft, counted);
    more -= counted;
    Take(slice.node, more);
  }
}

bool RequestBook::HasLicensesFor(const NodeRequest& request) const {
  if (request.licenses.empty()) {
    return true;
  }
  const std::vector<License> named = ParseLicenses(request.licenses).value();
  return std::all_of(named.begin(), named.end(), [this](const License& one) {
    for (std::size_t i = 0; i < licenses_left_.size(); ++i) {
      if (cluster_->licenses[i].name == one.name) {
        return licenses_left_[i] >= one.count;
      }
    }
    return false;
  });
}

// False: somebody has the node alone, or would.
bool RequestBook::IsOpen(const NodeRequest& request, const Node& on) const {
  return on.alone == 0 && !(request.exclusive && (on.askers > 0 || on.silent_gpus > 0));
}

// What would be left of what the node states, with so many more GPUs of jobs that state nothing.
Resources RequestBook::LeftBeside(std::size_t node, int silent_gpus) const {
  const NodeSpec& spec = cluster_->nodes[node];
  Resources left = spec.capacity;
  left -= nodes_[node].asked;
  if (const int silent = nodes_[node].silent_gpus + silent_gpus; silent > 0) {
    left -= ShareOf(spec, silent);
  }
  return left;
}

Resources RequestBook::LeftOn(NodeId node) const { return LeftBeside(Index(node), 0); }

bool RequestBook::HasRoom(const NodeRequest& request, int of, std::size_t node, int gpus) const {
  if (!IsOpen(request, nodes_[node])) {
    return false;
  }
  const NodeSpec& spec = cluster_->nodes[node];
  const bool silent = IsSilent(request);
  return model::HasRoom(spec, LeftBeside(node, silent ? gpus : 0),
                        silent ? Resources{} : Counted(spec, request, gpus, of));
}

bool RequestBook::HasRoomOnCpus(const NodeRequest& request, NodeId node, int nodes) const {
  const NodeSpec& spec = cluster_->nodes[Index(node)];
  return IsOpen(request, nodes_[Index(node)]) &&
         model::HasRoom(spec, LeftOn(node), OnCpus(spec, request, nodes));
}

// What a gang needs of a node grows with its GPUs there.
int RequestBook::MostGpus(const NodeRequest& request, int of, NodeId node, int free) const {
  const int all = std::min(free, std::max(of, 1));
  if (HasRoom(request, of, Index(node), all)) {
    return all;
  }
  int fits = 0;
  int too_many = all;
  while (fits + 1 < too_many) {
    const int middle = fits + (too_many - fits) / 2;
    (HasRoom(request, of, Index(node), middle) ? fits : too_many) = middle;
  }
  return fits;
}

std::string RequestBook::LackFor(const JobSpec& job, const Slices& slices) const {
  const NodeRequest& request = RequestOf(job);
  const bool on_cpus = job.gpus == 0;
  if (!on_cpus && !limits() && IsSilent(request) && request.licenses.empty()) {
    return {};
  }
  const int of = on_cpus ? static_cast<int>(slices.size()) : CountGpus(slices);
  for (const Slice& slice : slices) {
    if (on_cpus ? !HasRoomOnCpus(request, slice.node, of)
                : !HasRoom(request, of, Index(slice.node), std::popcount(slice.gpus))) {
      return "more CPUs or memory of node " + cluster_->nodes[Index(slice.node)].name +
             " than are left";
    }
  }
  return HasLicensesFor(request) ? "" : "more licences '" + request.licenses + "' than are left";
}

}  // namespace trainyard::model
