// SPDX-License-Identifier: Apache-2.0
#include "trace/cluster_nodes.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "model/gpu_types.h"
#include "trace/cluster_toml.h"
#include "trace/timestamp.h"

namespace trainyard {
namespace {

// Which column means what; an empty name: there is none.
struct NodeList {
  std::string_view name;
  std::string_view gpus;
  std::string_view type;
  std::string_view cpus;
  double milli_cpus = 1000;  // in a unit of `cpus`
  std::string_view memory{};
  double mib = 1024;  // in a unit of `memory`
};

constexpr std::array kLists{
    NodeList{.name = "sn",
             .gpus = "gpu",
             .type = "model",
             .cpus = "cpu_milli",
             .milli_cpus = 1,
             .memory = "memory_mib",
             .mib = 1},
    NodeList{
        .name = "node_name", .gpus = "gpu_capacity_num", .type = "gpu_model", .cpus = "cpu_num"},
    NodeList{.name = "machine",
             .gpus = "cap_gpu",
             .type = "gpu_type",
             .cpus = "cap_cpu",
             .memory = "cap_mem"},
};
// PAI's table comes without a header.
constexpr std::array<std::string_view, 5> kPaiColumns{"machine", "gpu_type", "cap_cpu", "cap_mem",
                                                      "cap_gpu"};

const NodeList* ListOf(const CsvHeader& table) {
  const auto* const found = std::find_if(kLists.begin(), kLists.end(), [&](const NodeList& list) {
    const auto has = [&](std::string_view name) {
      return name.empty() || table.Column({name}) >= 0;
    };
    return has(list.name) && has(list.gpus) && has(list.type) && has(list.cpus) && has(list.memory);
  });
  return found == kLists.end() ? nullptr : found;
}

bool IsPaiRow(std::string_view line) {
  const std::vector<std::string_view> fields = Split(Trim(line), ",");
  return fields.size() == kPaiColumns.size() &&
         std::all_of(fields.begin() + 2, fields.end(),
                     [](std::string_view field) { return ToNumber(field).has_value(); });
}

class NodeReader {
 public:
  NodeReader(const CsvTable& table, const NodeList& list)
      : list_(list),
        name_(table.Column({list.name})),
        gpus_(table.Column({list.gpus})),
        type_(table.Column({list.type})),
        cpus_(table.Column({list.cpus})),
        memory_(list.memory.empty() ? -1 : table.Column({list.memory})) {}

  Status Read(const CsvRow& row) {
    const Result<double> gpus = row.Number(gpus_, 0);
    if (!gpus.ok() || gpus.value() > kMaxGpusPerNode || gpus.value() != std::floor(gpus.value())) {
      return row.Bad(gpus_, fmt::format("an integer from 0 to {}", kMaxGpusPerNode));
    }
    if (gpus.value() == 0) {
      return {};
    }
    NodeSpec node{.name = std::string(row.Text(name_)), .gpus = static_cast<int>(gpus.value())};
    node.gpu_type = IsMissing(row.Text(type_)) ? "" : row.Text(type_);
    RETURN_IF_ERROR(CheckName(row, node.name));
    types_.insert(node.gpu_type);
    if (types_.size() > kMaxGpuTypes) {
      return row.Bad(type_, fmt::format("at most {} different types", kMaxGpuTypes));
    }
    constexpr double kMostAmount = 1e9;
    const Result<double> cpus = row.Number(cpus_, 0);
    const Result<double> memory = memory_ < 0 ? Result<double>(0.0) : row.Number(memory_, 0);
    if (!cpus.ok() || cpus.value() > kMostAmount) {
      return row.Bad(cpus_, "a number from 0 to 1000000000");
    }
    if (!memory.ok() || memory.value() > kMostAmount) {
      return row.Bad(memory_, "a number from 0 to 1000000000");
    }
    node.capacity.milli_cpus = std::llround(cpus.value() * list_.milli_cpus);
    node.capacity.memory_mib = std::llround(memory.value() * list_.mib);
    cluster_.nodes.push_back(std::move(node));
    return {};
  }

  [[nodiscard]] Result<Cluster> Take(const std::string& path) {
    if (cluster_.nodes.empty()) {
      return BadInput(fmt::format("{}: no node with GPUs; expected one at least", path));
    }
    return std::move(cluster_);
  }

 private:
  Status CheckName(const CsvRow& row, const std::string& name) {
    if (name.empty()) {
      return row.Bad(name_, "the name of the node");
    }
    const auto [known, added] = lines_.try_emplace(name, row.line());
    if (!added) {
      return row.BadRow(
          fmt::format("node '{}' is already in line {}; expected a new one", name, known->second));
    }
    return static_cast<std::int64_t>(lines_.size()) > kMostNodes
               ? Status(row.BadRow(fmt::format("more than {} nodes", kMostNodes)))
               : Status();
  }

  const NodeList& list_;
  int name_;
  int gpus_;
  int type_;
  int cpus_;
  int memory_;
  Cluster cluster_;
  std::map<std::string, std::int64_t> lines_;  // of each node
  std::set<std::string> types_;
};

}  // namespace

Result<CsvTable> OpenClusterTable(TextFile file) {
  const std::string_view text = file.text;
  return IsPaiRow(text.substr(0, text.find('\n')))
             ? CsvTable::Headerless(std::move(file), kPaiColumns)
             : CsvTable::Of(std::move(file));
}

bool IsNodeList(const CsvTable& table) { return ListOf(table) != nullptr; }

Result<Cluster> ReadNodeList(const CsvTable& table) {
  const NodeList* const list = ListOf(table);
  CHECK(list != nullptr);
  NodeReader reader(table, *list);
  const Status read = table.ForEach([&](const CsvRow& row) { return reader.Read(row); });
  return read.ok() ? reader.Take(table.path()) : read.error();
}

}  // namespace trainyard
