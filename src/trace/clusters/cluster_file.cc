// SPDX-License-Identifier: Apache-2.0
#include "trace/clusters/cluster_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "io/csv_reader.h"
#include "io/text_check.h"
#include "trace/clusters/cluster_formats.h"
#include "trainyard/options.h"

namespace trainyard::trace {
namespace {

// Nodes of one kind in the short form.
struct Shape {
  std::int64_t nodes = 0;
  std::int64_t gpus = 0;  // of each
  std::string_view gpu_type;
};

bool IsTypeName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  });
}

// "16x8" or "16x8:V100"; nothing where the text is something else, such as a path.
std::optional<Shape> ParseShape(std::string_view spec) {
  Shape shape;
  const char* const end = spec.data() + spec.size();
  const auto [middle, nodes_code] = std::from_chars(spec.data(), end, shape.nodes);
  if (nodes_code != std::errc{} || middle == end || *middle != 'x') {
    return std::nullopt;
  }
  const auto [stop, gpus_code] = std::from_chars(middle + 1, end, shape.gpus);
  if (gpus_code != std::errc{}) {
    return std::nullopt;
  }
  if (stop != end) {
    shape.gpu_type = std::string_view(stop + 1, static_cast<std::size_t>(end - stop - 1));
    if (*stop != ':' || !IsTypeName(shape.gpu_type)) {
      return std::nullopt;
    }
  }
  return shape;
}

// "16x8,4x4:V100": shapes in their order; empty where the text is something else.
std::vector<Shape> ParseShapes(std::string_view spec) {
  std::vector<Shape> shapes;
  for (const std::string_view part : base::Split(spec, ",")) {
    const std::optional<Shape> shape = ParseShape(part);
    if (!shape) {
      return {};
    }
    shapes.push_back(*shape);
  }
  return shapes;
}

Result<Cluster> MakeShapes(const std::string& spec, const std::vector<Shape>& shapes) {
  Cluster cluster{.name = spec};
  std::int64_t most = kMostNodes;
  for (const Shape& shape : shapes) {
    if (shape.nodes < 1 || shape.nodes > most || shape.gpus < 1 || shape.gpus > kMaxGpusPerNode) {
      return InvalidArgument(fmt::format("cluster '{}'; expected 1 to {} nodes of 1 to {} GPUs",
                                         spec, kMostNodes, kMaxGpusPerNode));
    }
    most -= shape.nodes;
    for (std::int64_t i = 0; i < shape.nodes; ++i) {
      cluster.nodes.push_back({.name = fmt::format("n{}", cluster.nodes.size()),
                               .gpus = static_cast<int>(shape.gpus),
                               .gpu_type = std::string(shape.gpu_type)});
    }
  }
  return cluster;
}

std::string FileNameOf(const std::string& path) {
  std::filesystem::path file(path);
  for (const char* const packed : {".gz", ".zst", ".tar"}) {
    file = file.extension() == packed ? file.parent_path() / file.stem() : file;
  }
  return file.stem().string();
}

// The nodes of the one row of the published simulators' cluster files.
Status AddNodes(const io::CsvTable& table, const io::CsvRow& row, Cluster& cluster) {
  constexpr double kMostAmount = 1e9;
  const auto count = [&](std::string_view name, std::int64_t most) {
    return row.Integer(table.Column({name}), 1, most);
  };
  const auto amount = [&](std::string_view name) {
    return row.Number(table.Column({name}), 0, kMostAmount);
  };
  ASSIGN_OR_RETURN(const std::int64_t switches, count("num_switch", kMostNodes));
  ASSIGN_OR_RETURN(const std::int64_t per_switch, count("num_node_p_switch", kMostNodes));
  ASSIGN_OR_RETURN(const std::int64_t gpus, count("num_gpu_p_node", kMaxGpusPerNode));
  ASSIGN_OR_RETURN(const double cpus, amount("num_cpu_p_node"));
  ASSIGN_OR_RETURN(const double memory_gb, amount("mem_p_node"));
  const std::int64_t nodes = switches * per_switch;
  if (nodes > kMostNodes) {
    return row.BadRow(fmt::format("{} nodes; expected at most {}", nodes, kMostNodes));
  }
  for (std::int64_t i = 0; i < nodes; ++i) {
    cluster.nodes.push_back({.name = fmt::format("n{}", i),
                             .gpus = static_cast<int>(gpus),
                             .capacity = {.milli_cpus = std::llround(cpus * 1000),
                                          .memory_mib = std::llround(memory_gb * 1024)},
                             .switch_index = static_cast<int>(i / per_switch)});
  }
  return {};
}

Result<Cluster> ReadPublished(const io::CsvTable& table) {
  for (const char* const name :
       {"num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node"}) {
    RETURN_IF_ERROR(table.Require({name}));
  }
  Cluster cluster;
  RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) -> Status {
    return cluster.nodes.empty() ? AddNodes(table, row, cluster)
                                 : row.BadRow("a second row; expected one row only");
  }));
  if (cluster.nodes.empty()) {
    return table.BadHeader("no row after the header; expected one");
  }
  return cluster;
}

// One row for all nodes, or one for each.
Result<Cluster> ReadCsv(const std::string& path) {
  ASSIGN_OR_RETURN(io::TextFile file, io::TextFile::Read(path));
  ASSIGN_OR_RETURN(const io::CsvTable table, OpenClusterTable(std::move(file)));
  return IsNodeList(table) ? ReadNodeList(table) : ReadPublished(table);
}

bool IsTableName(std::string_view path) {
  constexpr std::array<std::string_view, 4> kEndings{".csv", ".csv.gz", ".csv.zst", ".tar.gz"};
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [path](std::string_view ending) { return path.ends_with(ending); });
}

Result<Cluster> ReadIni(const std::string& path) {
  ASSIGN_OR_RETURN(const io::TextFile file, io::TextFile::Read(path));
  return ParseClusterIni(path, file.text);
}

Result<std::string> ReadText(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    return BadInput(fmt::format(
        "{}: no such file; expected a cluster file or a short form such as 16x8", path));
  }
  ASSIGN_OR_RETURN(std::string text, io::ReadFile(path));
  RETURN_IF_ERROR(io::CheckText(path, text));
  return text;
}

// "FILE.xml" or "FILE.xml:gpus=4,cpus=24".
Result<Cluster> ReadXml(const std::string& path, std::string_view behind) {
  static constexpr std::array<OptionSpec, 2> kSizes{{
      {"gpus", OptionSpec::Kind::kNumber, "0", "GPUs of each node"},
      {"cpus", OptionSpec::Kind::kNumber, "0", "cores of each node"},
  }};
  ASSIGN_OR_RETURN(const NamedOptions given, ParseNamedOptions("cluster" + std::string(behind)));
  ASSIGN_OR_RETURN(const Options sizes,
                   Options::Make(kSizes, given, fmt::format("cluster file '{}'", path)));
  const double gpus = sizes.Number("gpus");
  const double cpus = sizes.Number("cpus");
  constexpr double kMostCpus = 1'000'000;
  if (gpus > kMaxGpusPerNode || cpus > kMostCpus) {
    return InvalidArgument(fmt::format("cluster '{}{}'; expected at most {} GPUs and {} cores",
                                       path, behind, kMaxGpusPerNode, kMostCpus));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseClusterXml(path, text,
                         {.gpus = static_cast<int>(gpus), .cpus = static_cast<int>(cpus)});
}

Result<Cluster> ReadToml(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseClusterToml(path, text);
}

}  // namespace

bool IsShortForm(std::string_view spec) { return !ParseShapes(spec).empty(); }

Result<Cluster> ReadCluster(const std::string& spec) {
  if (const std::vector<Shape> shapes = ParseShapes(spec); !shapes.empty()) {
    return MakeShapes(spec, shapes);
  }
  constexpr std::string_view kXml = ".xml";
  std::string path = spec;
  Result<Cluster> cluster = [&] {
    if (const std::size_t at = spec.find(kXml);
        at != std::string::npos && (spec.ends_with(kXml) || spec[at + kXml.size()] == ':')) {
      path = spec.substr(0, at + kXml.size());
      return ReadXml(path, std::string_view(spec).substr(path.size()));
    }
    return spec.ends_with(".ini") ? ReadIni(spec)
           : IsTableName(spec)    ? ReadCsv(spec)
                                  : ReadToml(spec);
  }();
  if (cluster.ok() && cluster.value().name.empty()) {
    cluster.value().name = FileNameOf(path);
  }
  return cluster;
}

}  // namespace trainyard::trace
