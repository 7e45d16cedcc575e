// SPDX-License-Identifier: Apache-2.0
// Trace formats that are more than a table with one meaning for each column. Each reads its files
// itself, in a file of its own.
#pragma once

#include <string_view>

#include "io/text_stream.h"
#include "trace/trace.h"
#include "trainyard/status.h"

namespace trainyard {

struct OwnFormat {
  TraceFormat shown;
  // Whether a text that begins like this can only be of this format.
  bool (*looks_like)(std::string_view head) = nullptr;
  // Takes a stream that is at its first block.
  Result<Trace> (*read)(TextStream text, const TraceOptions& options) = nullptr;
};

[[nodiscard]] const OwnFormat& BatsimFormat();
[[nodiscard]] const OwnFormat& GavelFormat();
[[nodiscard]] const OwnFormat& JsonlFormat();
[[nodiscard]] const OwnFormat& PhillyFormat();
[[nodiscard]] const OwnFormat& SacctFormat();
[[nodiscard]] const OwnFormat& SiaPhillyFormat();
[[nodiscard]] const OwnFormat& SwfFormat();
[[nodiscard]] const OwnFormat& TorchloaderFormat();

}  // namespace trainyard
