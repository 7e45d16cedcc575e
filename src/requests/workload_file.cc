// SPDX-License-Identifier: Apache-2.0
#include "requests/workload_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "base/try.h"
#include "io/file.h"
#include "io/text_check.h"
#include "live/jobs/job_request.h"
#include "model/job_order.h"
#include "trace/clusters/cluster_formats.h"
#include "trace/formats/torchloader.h"
#include "trainyard/cluster.h"

namespace trainyard::requests {
namespace {

// ----------------------------------------------------------------------------------------- cluster

Cluster ClusterOf(const v1::NodesReply& nodes) {
  Cluster cluster{.name = "live"};
  for (const v1::NodeStatus& node : nodes.nodes()) {
    cluster.nodes.push_back({.name = node.node(), .gpus = node.gpus()});
  }
  return cluster;
}

// The node that a worker of the file is, by its name, or else by an address that no other node has;
// a worker without worker_ip, which the reader calls n0, n1 ..., is the node at its place.
std::optional<std::size_t> NodeOfWorker(const std::string& worker, std::size_t place,
                                        const v1::NodesReply& nodes) {
  const auto& all = nodes.nodes();
  const auto position = [&all](auto found) {
    return static_cast<std::size_t>(found - all.begin());
  };
  const auto named = std::find_if(all.begin(), all.end(), [&worker](const v1::NodeStatus& node) {
    return node.node() == worker;
  });
  if (named != all.end()) {
    return position(named);
  }
  const auto is_there = [&worker](const v1::NodeStatus& node) { return node.address() == worker; };
  if (std::count_if(all.begin(), all.end(), is_there) == 1) {
    return position(std::find_if(all.begin(), all.end(), is_there));
  }
  const bool by_place = worker == fmt::format("n{}", place) && place < position(all.end());
  return by_place ? std::optional(place) : std::nullopt;
}

// The parser does not tell where a worker stands: the first time that its name is written, as all
// of an element if possible.
std::int64_t LineOfName(std::string_view text, const std::string& name) {
  const std::size_t whole = text.find('>' + name + '<');
  const std::size_t at = whole == std::string_view::npos ? text.find(name) : whole;
  const std::string_view before = text.substr(0, at == std::string_view::npos ? 0 : at);
  return 1 + std::count(before.begin(), before.end(), '\n');
}

// The nodes of the cluster that the file names, in its order. Their GPUs are those of the cluster,
// whatever the file says of them.
Result<Cluster> WorkersOf(const std::string& path, const v1::NodesReply& nodes) {
  ASSIGN_OR_RETURN(const std::string text, io::ReadFile(path));
  RETURN_IF_ERROR(io::CheckText(path, text));
  ASSIGN_OR_RETURN(const Cluster workers,
                   trace::ParseClusterXml(path, text, {.gpus = kMaxGpusPerNode}));
  const Cluster known = ClusterOf(nodes);
  Cluster cluster{.name = path};
  for (std::size_t i = 0; i < workers.nodes.size(); ++i) {
    const std::string& worker = workers.nodes[i].name;
    const auto node = NodeOfWorker(worker, i, nodes);
    if (!node) {
      std::vector<std::string_view> names;
      for (const NodeSpec& one : known.nodes) {
        names.push_back(one.name);
      }
      return BadInput(fmt::format("{}:{}: {}", path, LineOfName(text, worker),
                                  base::UnknownName("node of the cluster", worker, names)));
    }
    const NodeSpec& spec = known.nodes[*node];
    if (std::any_of(cluster.nodes.begin(), cluster.nodes.end(),
                    [&spec](const NodeSpec& other) { return other.name == spec.name; })) {
      return BadInput(
          fmt::format("{}:{}: worker '{}' is node '{}', as one before it is; expected "
                      "one worker for each node",
                      path, LineOfName(text, worker), worker, spec.name));
    }
    cluster.nodes.push_back(spec);
  }
  return cluster;
}

// -------------------------------------------------------------------------------------------- apps

// As torchloader names it, with the line in the place of its id, which differs from run to run.
std::string OutputFolder(const trace::TorchloaderApp& app, const JobSpec& job, std::int64_t line) {
  return fmt::format("trace/{}{}app{}_{}{}_{}_{}_{}", app.output_folder,
                     app.output_folder.empty() ? "" : "/", line, app.arch, app.depth,
                     job.batch_size, job.traits->loader_workers, job.gpus);
}

base::Placeholders PlaceholdersOf(const trace::TorchloaderApp& app, const JobSpec& job,
                                  std::int64_t line) {
  const int gpus = std::max(job.gpus, 1);
  return {{"arch", app.arch},
          {"depth", std::to_string(app.depth)},
          {"model", job.model},
          {"batch", std::to_string(job.batch_size)},
          {"workers", std::to_string(job.traits->loader_workers)},
          {"batch_per_gpu", std::to_string(job.batch_size / gpus)},
          {"workers_per_gpu", std::to_string(job.traits->loader_workers / gpus)},
          {"world_size", std::to_string(job.gpus)},
          {"end_iter", std::to_string(app.iterations_of_epoch)},
          {"end_epoch", std::to_string(app.epochs)},
          {"iterations", std::to_string(app.iterations_of_epoch * app.epochs)},
          {"output", OutputFolder(app, job, line)},
          {"app", std::to_string(line)}};
}

}  // namespace

Result<WorkloadFile> ReadWorkloadFile(const std::string& path, const std::string& cluster_xml,
                                      const v1::NodesReply& nodes) {
  ASSIGN_OR_RETURN(trace::TorchloaderWorkload workload, trace::ReadTorchloaderWorkload(path));
  ASSIGN_OR_RETURN(const Cluster cluster, cluster_xml.empty() ? Result<Cluster>(ClusterOf(nodes))
                                                              : WorkersOf(cluster_xml, nodes));
  trace::Trace& trace = workload.trace;
  RETURN_IF_ERROR(BindDevices(trace, cluster));
  WorkloadFile file{.states_addresses = workload.states_addresses};
  for (const std::size_t row : model::SubmitOrder(trace.jobs)) {
    const JobSpec& job = trace.jobs[row];
    WorkloadApp app{.request = live::RequestOf(job, cluster),
                    .arrival = job.submit.time_since_epoch(),
                    .line = trace.lines[row],
                    .placeholders = PlaceholdersOf(workload.apps[row], job, trace.lines[row])};
    app.request.mutable_launch()->clear_workers();  // it is to run, not to be emulated
    file.apps.push_back(std::move(app));
  }
  file.trace = std::move(trace);
  return file;
}

Status FillPlaceholders(const base::Placeholders& placeholders, v1::LaunchSpec& launch) {
  for (std::string& word : *launch.mutable_command()) {
    ASSIGN_OR_RETURN(word, base::Fill(word, placeholders));
  }
  for (v1::EnvironmentVariable& variable : *launch.mutable_environment()) {
    ASSIGN_OR_RETURN(*variable.mutable_value(), base::Fill(variable.value(), placeholders));
  }
  return {};
}

}  // namespace trainyard::requests
