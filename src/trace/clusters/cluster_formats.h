// SPDX-License-Identifier: Apache-2.0
// The files that describe clusters (docs/formats/cluster.md), each read by a source file of its own
// from text that has been checked (io/text_check.h); ReadCluster in trace/cluster_file.h chooses.
// `path` is for messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/csv_reader.h"
#include "io/toml.h"
#include "trainyard/cluster.h"
#include "trainyard/status.h"

namespace trainyard::trace {

// Nodes that a cluster may have; more is taken for a slip.
inline constexpr std::int64_t kMostNodes = 100'000;

// Of times in the native file.
inline constexpr double kMostSeconds = 9e9;  // as in traces

// Puts Cluster::changes into the order of their times, then nodes.
void SortChanges(Cluster& cluster);

// The native file. The name is empty where the file gives none.
[[nodiscard]] Result<Cluster> ParseClusterToml(const std::string& path, std::string_view text);
// The same of a file that has been parsed.
[[nodiscard]] Result<Cluster> ParseClusterToml(const std::string& path, const io::TomlTable& root);

// The tables under `partitions` of a table, in place of the partitions that the cluster has.
// `name`: of each, as it stands in the file. Errors: as of a cluster file; those of
// CheckPartitions.
[[nodiscard]] Status ParsePartitions(const std::string& path, const io::TomlTable& table,
                                     const std::string& name, Cluster& cluster);

// That of the Synergy simulator, by a reader of our own: the INI libraries at hand do not tell a
// handler the number of the line, and take anything for a number. The cluster has no name.
[[nodiscard]] Result<Cluster> ParseClusterIni(const std::string& path, std::string_view text);

// What torchloader's file does not say: the published workers ask their own host. 0: not stated.
struct NodeSizes {
  int gpus = 0;
  int cpus = 0;
};
// A node for each <worker_config>, whose own <gpus> and <cpus> count before `sizes`. Errors: no
// XML; another root; no worker; unknown elements; a node without GPUs; addresses or ports that are
// none; two workers at one address. The only code that knows pugixml.
[[nodiscard]] Result<Cluster> ParseClusterXml(const std::string& path, std::string_view text,
                                              const NodeSizes& sizes);

// Node lists of published logs, one row for each node (docs/formats/openb.md, pai.md, spot-gpu.md).
// The table in the file, with the columns of PAI's list where it is that one: it has no header.
[[nodiscard]] Result<io::CsvTable> OpenClusterTable(io::TextFile file);
[[nodiscard]] bool IsNodeList(const io::CsvTable& table);
// Nodes without GPUs are left out. The cluster has no name. REQUIRES: IsNodeList(table). Errors:
// those of CsvTable; a bad row; two nodes of one name; no node with GPUs.
[[nodiscard]] Result<Cluster> ReadNodeList(const io::CsvTable& table);

}  // namespace trainyard::trace
