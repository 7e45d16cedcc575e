// SPDX-License-Identifier: Apache-2.0
#include "trace/clusters/cluster_formats.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <pugixml.hpp>
#include <set>
#include <span>

#include "base/text.h"
#include "base/try.h"

namespace trainyard::trace {
namespace {

constexpr std::array<std::string_view, 3> kMasterKeys{"master_ip", "master_port", "authkey"};
constexpr std::array<std::string_view, 5> kWorkerKeys{"worker_ip", "worker_rpc_port",
                                                      "worker_socket_port", "gpus", "cpus"};
constexpr int kMostPort = 65535;
constexpr int kMostCpus = 1'000'000;

class XmlReader {
 public:
  XmlReader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  [[nodiscard]] Result<Cluster> Read(const NodeSizes& sizes) {
    const pugi::xml_parse_result parsed = document_.load_buffer(text_.data(), text_.size());
    if (!parsed) {
      return At(parsed.offset, fmt::format("{}; expected XML", parsed.description()));
    }
    const pugi::xml_node root = document_.document_element();
    if (std::string_view(root.name()) != "cluster_config") {
      return At(root, fmt::format("the root is <{}>; expected <cluster_config>", root.name()));
    }
    Cluster cluster;
    for (const pugi::xml_node part : root.children()) {
      RETURN_IF_ERROR(ReadPart(part, sizes, cluster));
    }
    if (cluster.nodes.empty()) {
      return At(root, "no <worker_config>; expected one for each node");
    }
    return cluster;
  }

 private:
  Status ReadPart(pugi::xml_node part, const NodeSizes& sizes, Cluster& cluster) {
    const std::string_view name = part.name();
    if (name == "master_config") {
      return CheckKeys(part, kMasterKeys, {"master_port"});
    }
    if (name == "worker_config") {
      return ReadWorker(part, sizes, cluster);
    }
    constexpr std::array<std::string_view, 2> kParts{"master_config", "worker_config"};
    return part.type() == pugi::node_element
               ? Status(At(part, base::UnknownName("element", name, kParts)))
               : Status();
  }

  // Only known keys, each once; ports are ports.
  Status CheckKeys(pugi::xml_node part, std::span<const std::string_view> known,
                   std::initializer_list<const char*> ports) {
    std::set<std::string_view> seen;
    for (const pugi::xml_node key : part.children()) {
      if (key.type() != pugi::node_element) {
        continue;
      }
      if (std::find(known.begin(), known.end(), key.name()) == known.end()) {
        return At(key, base::UnknownName("element", key.name(), known));
      }
      if (!seen.insert(key.name()).second) {
        return At(key, fmt::format("<{}> is there twice; expected it once", key.name()));
      }
    }
    for (const char* const port : ports) {
      RETURN_IF_ERROR(Number(part, port, kMostPort, 0));
    }
    return {};
  }

  Status ReadWorker(pugi::xml_node worker, const NodeSizes& sizes, Cluster& cluster) {
    RETURN_IF_ERROR(CheckKeys(worker, kWorkerKeys, {"worker_rpc_port", "worker_socket_port"}));
    ASSIGN_OR_RETURN(const int gpus, Number(worker, "gpus", kMaxGpusPerNode, sizes.gpus));
    ASSIGN_OR_RETURN(const int cpus, Number(worker, "cpus", kMostCpus, sizes.cpus));
    if (gpus == 0) {
      return At(worker, "no number of GPUs; expected <gpus>, or FILE:gpus=N,cpus=N");
    }
    std::string name(base::Trim(worker.child("worker_ip").child_value()));
    name = name.empty() ? fmt::format("n{}", cluster.nodes.size()) : name;
    for (const NodeSpec& other : cluster.nodes) {
      if (other.name == name) {
        return At(worker, fmt::format("a second worker on '{}'; expected one for each host", name));
      }
    }
    if (static_cast<std::int64_t>(cluster.nodes.size()) == kMostNodes) {
      return At(worker, fmt::format("too many workers; expected at most {}", kMostNodes));
    }
    cluster.nodes.push_back(
        {.name = name, .gpus = gpus, .capacity = {.milli_cpus = std::int64_t{1000} * cpus}});
    return {};
  }

  // From 1 to `most`; `fallback` where the element is not there or empty.
  Result<int> Number(pugi::xml_node part, const char* name, int most, int fallback) {
    const pugi::xml_node key = part.child(name);
    const std::string_view text = base::Trim(key.child_value());
    if (text.empty()) {
      return fallback;
    }
    int value = 0;
    const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || stop != text.data() + text.size() || value < 1 || value > most) {
      return At(key,
                fmt::format("<{}> is '{}'; expected an integer from 1 to {}", name, text, most));
    }
    return value;
  }

  [[nodiscard]] Error At(pugi::xml_node node, const std::string& what) const {
    return At(node.offset_debug(), what);
  }
  [[nodiscard]] Error At(std::ptrdiff_t offset, const std::string& what) const {
    const std::size_t end =
        std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)), text_.size());
    const auto lines =
        std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    return BadInput(fmt::format("{}:{}: {}", path_, lines + 1, what));
  }

  const std::string& path_;
  std::string_view text_;
  pugi::xml_document document_;
};

}  // namespace

Result<Cluster> ParseClusterXml(const std::string& path, std::string_view text,
                                const NodeSizes& sizes) {
  return XmlReader(path, text).Read(sizes);
}

}  // namespace trainyard::trace
