// SPDX-License-Identifier: Apache-2.0
#include "live/calls/ignored_options.h"

#include <algorithm>

#include "base/text.h"
#include "live/jobs/job_request.h"
#include "supervisor/data/data_store.h"

namespace trainyard::live {
namespace {

// "A100|V100"
std::string TypesText(const v1::JobRequest& job) {
  std::string text;
  for (const std::string& type : job.gpu_types()) {
    text += (text.empty() ? "" : "|") + type;
  }
  return text;
}

std::string NotHeeded(const engine::Configuration& with, const std::string& what,
                      const std::string& heeds) {
  return what + " has no effect: policy '" + with.policy + "' does not heed " + heeds;
}

// Of the one that the job states; empty: the policy heeds it.
std::string PriorityInVain(const engine::Configuration& with, const v1::JobRequest& job) {
  return with.traits.needs.priorities
             ? ""
             : NotHeeded(with, "priority " + std::to_string(job.launch().priority()), "priorities");
}

std::string QueueInVain(const engine::Configuration& with, const v1::JobRequest& job) {
  return with.traits.needs.queues || !with.cluster.partitions.empty()
             ? ""
             : NotHeeded(with, "queue '" + job.queue() + "'", "queues");
}

}  // namespace

std::vector<std::string> IgnoredOf(const v1::JobRequest& job, const LiveState& state) {
  std::vector<std::string> ignored;
  const profile::ThroughputTable* const profiles = state.configuration->profiles;
  if (job.launch().priority() != 0) {
    ignored.push_back(PriorityInVain(*state.configuration, job));
  }
  if (!job.queue().empty()) {
    ignored.push_back(QueueInVain(*state.configuration, job));
  }
  std::erase(ignored, "");
  if (profiles != nullptr && !job.model().empty() && !profiles->HasModel(job.model())) {
    ignored.push_back("model '" + job.model() +
                      "' is not in the controller's profiles: its throughput is not known");
  }
  if (job.devices_size() > 0 && !state.configuration->traits.may.name_gpus) {
    ignored.push_back(NotHeeded(*state.configuration, "the choice of devices", "it"));
  }
  if (job.gpu_types_size() > 0 && !state.nodes.states_gpu_types()) {
    ignored.push_back("GPU types '" + TypesText(job) +
                      "' have no effect: no node of the cluster states its type");
  }
  if (const Duration grace = FromMilliseconds(job.launch().grace()); grace > state.options.grace) {
    ignored.push_back("grace " + base::ShortDuration(Seconds(grace)) +
                      " is more than the cluster gives: the job has " +
                      base::ShortDuration(Seconds(state.options.grace)) +
                      " from its notice to its end (controller --grace)");
  }
  if (job.launch().notify_size() > 0 && !state.options.takes_notices) {
    ignored.emplace_back(
        "notify has no effect: the controller was started without --notify-program and "
        "--notify-url");
  }
  const auto keeps_data = [&state](std::size_t node) {
    return state.nodes[NodeAt(node)].data.cache_mib() > 0;
  };
  if (job.has_data_set() && supervisor::IsFetched(job.data_set())) {
    std::size_t node = 0;
    while (node < state.nodes.size() && !keeps_data(node)) {
      ++node;
    }
    if (node == state.nodes.size()) {
      ignored.push_back("data set '" + job.data_set().name() +
                        "' is not copied: no agent that is there has --data-cache; the job reads "
                        "it at '" +
                        job.data_set().home() + "'");
    }
  }
  return ignored;
}

std::vector<std::string> IgnoredOf(const v1::UpdateRequest& update,
                                   const engine::Configuration& with) {
  std::vector<std::string> ignored;
  if (Names(update, "priority")) {
    ignored.push_back(PriorityInVain(with, update.values()));
  }
  if (Names(update, "queue")) {
    ignored.push_back(QueueInVain(with, update.values()));
  }
  std::erase(ignored, "");
  return ignored;
}

}  // namespace trainyard::live
