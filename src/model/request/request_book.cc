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

void RequestBook::Count(const JobSpec& job, const Slices& slices, int sign) {
  const NodeRequest& request = RequestOf(job);
  if (IsSilent(request)) {
    for (const Slice& slice : slices) {
      nodes_[Index(slice.node)].silent_gpus += sign * std::popcount(slice.gpus);
    }
  } else {
    const int of = CountGpus(slices);
    for (const Slice& slice : slices) {
      Node& node = nodes_[Index(slice.node)];
      node.asked +=
          Times(Counted(cluster_->nodes[Index(slice.node)], request, std::popcount(slice.gpus), of),
                sign);
      node.askers += sign;
      node.alone += request.exclusive ? sign : 0;
      askers_ += sign;
    }
  }
  if (request.licenses.empty()) {
    return;
  }
  const std::vector<License> named = ParseLicenses(request.licenses).value();
  for (const License& one : named) {
    for (std::size_t i = 0; i < licenses_left_.size(); ++i) {
      licenses_left_[i] -= cluster_->licenses[i].name == one.name ? sign * one.count : 0;
    }
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

// What would be left of what the node states; nothing: somebody has the node alone, or would.
std::optional<Resources> RequestBook::LeftBeside(const NodeRequest& request, std::size_t node,
                                                 int gpus) const {
  const Node& on = nodes_[node];
  if (on.alone > 0 || (request.exclusive && (on.askers > 0 || on.silent_gpus > 0))) {
    return std::nullopt;
  }
  const NodeSpec& spec = cluster_->nodes[node];
  Resources left = spec.capacity;
  left -= on.asked;
  if (const int silent = on.silent_gpus + (IsSilent(request) ? gpus : 0); silent > 0) {
    left -= ShareOf(spec, silent);
  }
  return left;
}

bool RequestBook::HasRoom(const NodeRequest& request, int of, std::size_t node, int gpus) const {
  const std::optional<Resources> left = LeftBeside(request, node, gpus);
  if (!left) {
    return false;
  }
  const NodeSpec& spec = cluster_->nodes[node];
  return model::HasRoom(spec, *left,
                        IsSilent(request) ? Resources{} : Counted(spec, request, gpus, of));
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

std::string RequestBook::WhyNot(const JobSpec& job, const Slices& slices) const {
  const NodeRequest& request = RequestOf(job);
  if (!limits() && IsSilent(request) && request.licenses.empty()) {
    return {};
  }
  const int of = CountGpus(slices);
  for (const Slice& slice : slices) {
    if (!HasRoom(request, of, Index(slice.node), std::popcount(slice.gpus))) {
      return "more CPUs or memory of node " + cluster_->nodes[Index(slice.node)].name +
             " than are left";
    }
  }
  return HasLicensesFor(request) ? "" : "more licences '" + request.licenses + "' than are left";
}

}  // namespace trainyard::model
