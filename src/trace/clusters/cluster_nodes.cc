// SPDX-License-Identifier: Apache-2.0
#include "trace/clusters/cluster_formats.h"

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
#include "io/bad_rows.h"
#include "model/node_classes.h"
#include "trace/timestamp.h"

namespace trainyard::trace {
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

const NodeList* ListOf(const io::CsvHeader& table) {
  const auto* const found = std::find_if(kLists.begin(), kLists.end(), [&](const NodeList& list) {
    const auto has = [&](std::string_view name) {
      return name.empty() || table.Column({name}) >= 0;
    };
    return has(list.name) && has(list.gpus) && has(list.type) && has(list.cpus) && has(list.memory);
  });
  return found == kLists.end() ? nullptr : found;
}

bool IsPaiRow(std::string_view line) {
  const std::vector<std::string_view> fields = base::Split(base::Trim(line), ",");
  return fields.size() == kPaiColumns.size() &&
         std::all_of(fields.begin() + 2, fields.end(),
                     [](std::string_view field) { return base::ToNumber(field).has_value(); });
}

class NodeReader {
 public:
  NodeReader(const io::CsvTable& table, const NodeList& list)
      : list_(list),
        name_(table.Column({list.name})),
        gpus_(table.Column({list.gpus})),
        type_(table.Column({list.type})),
        cpus_(table.Column({list.cpus})),
        memory_(list.memory.empty() ? -1 : table.Column({list.memory})) {}

  Status Read(const io::CsvRow& row) {
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
    if (types_.size() > model::kMaxGpuTypes) {
      return row.Bad(type_, fmt::format("at most {} different types", model::kMaxGpuTypes));
    }
    constexpr double kMostAmount = 1e9;
    ASSIGN_OR_RETURN(const double cpus, row.Number(cpus_, 0, kMostAmount));
    ASSIGN_OR_RETURN(const double memory,
                     memory_ < 0 ? Result<double>(0.0) : row.Number(memory_, 0, kMostAmount));
    node.capacity.milli_cpus = std::llround(cpus * list_.milli_cpus);
    node.capacity.memory_mib = std::llround(memory * list_.mib);
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
  Status CheckName(const io::CsvRow& row, const std::string& name) {
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

Result<io::CsvTable> OpenClusterTable(io::TextFile file) {
  const std::string_view text = file.text;
  return IsPaiRow(text.substr(0, text.find('\n')))
             ? io::CsvTable::Headerless(std::move(file), kPaiColumns)
             : io::CsvTable::Of(std::move(file));
}

bool IsNodeList(const io::CsvTable& table) { return ListOf(table) != nullptr; }

Result<Cluster> ReadNodeList(const io::CsvTable& table) {
  const NodeList* const list = ListOf(table);
  CHECK(list != nullptr);
  NodeReader reader(table, *list);
  RETURN_IF_ERROR(io::ForEachTold(table, [&](const io::CsvRow& row) { return reader.Read(row); }));
  return reader.Take(table.path());
}

}  // namespace trainyard::trace
