// SPDX-License-Identifier: Apache-2.0
// Workload files of torchloader: docs/formats/torchloader.md.
#pragma once

#include <string_view>
#include <vector>

#include "io/csv_reader.h"
#include "trace/csv_format.h"
#include "trace/device_list.h"
#include "trace/trace.h"
#include "trainyard/status.h"

namespace trainyard {

// Whether the header is that of such a file.
[[nodiscard]] bool LooksLikeTorchloader(std::string_view text);

// The file as a proper table: blanks after commas are gone, and the quotes within the brackets of a
// device list are single ones. Lines and all else stay.
[[nodiscard]] TextFile WithoutStrayQuotes(TextFile file);

class TorchloaderRows {
 public:
  // Errors: a required column is missing, a column is unknown.
  [[nodiscard]] static Result<TorchloaderRows> Of(const CsvTable& table);

  // Errors: a column that is not as it should be; a GPU that is named twice.
  [[nodiscard]] Result<JobRow> Read(const CsvRow& row);
  // Those that the rows have named so far; JobTraits::devices count them (Trace::device_nodes).
  [[nodiscard]] const std::vector<DeviceNode>& nodes() const { return device_lists_.nodes(); }

 private:
  int arch_ = -1;
  int depth_ = -1;
  int batch_ = -1;
  int workers_ = -1;
  int arrival_ = -1;
  int devices_ = -1;
  int iterations_ = -1;  // of an epoch
  int epochs_ = -1;
  int world_size_ = -1;  // all devices together; -1: no such column
  DeviceLists device_lists_;
};

}  // namespace trainyard
