// SPDX-License-Identifier: Apache-2.0
// Clusters from the node lists of published logs, one row for each node: docs/formats/openb.md,
// pai.md, spot-gpu.md.
#pragma once

#include <string>

#include "io/csv_reader.h"
#include "trainyard/cluster.h"
#include "trainyard/status.h"

namespace trainyard {

// The table in the file, with the columns of PAI's list where it is that one: it has no header.
[[nodiscard]] Result<CsvTable> OpenClusterTable(TextFile file);

// Whether the columns are those of such a list.
[[nodiscard]] bool IsNodeList(const CsvTable& table);

// Nodes without GPUs are left out. The cluster has no name. REQUIRES: IsNodeList(table). Errors:
// those of CsvTable; a bad row; two nodes of one name; no node with GPUs.
[[nodiscard]] Result<Cluster> ReadNodeList(const CsvTable& table);

}  // namespace trainyard
