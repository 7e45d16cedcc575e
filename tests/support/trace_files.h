// SPDX-License-Identifier: Apache-2.0
// For tests: traces and clusters read from files of a given text.
#pragma once

#include <string>
#include <string_view>

#include "support/scratch_folder.h"
#include "trace/clusters/cluster_file.h"
#include "trace/trace.h"

namespace trainyard {

// Reads a trace from a file with this text, always named t.csv: readers go by the content.
[[nodiscard]] inline Result<trace::Trace> ReadText(std::string_view text,
                                                   const trace::TraceOptions& options = {}) {
  const ScratchFolder folder;
  return trace::ReadTrace(folder.Write("t.csv", text), options);
}

// What ReadText complains of, from "t.csv" on.
[[nodiscard]] inline std::string ErrorOf(std::string_view text,
                                         const trace::TraceOptions& options = {}) {
  return ErrorFrom("t.csv", ReadText(text, options));
}

// Why the one row that is left out of a trace with this text is; else the error, or "not left out".
[[nodiscard]] inline std::string WhyLeftOut(std::string_view text) {
  const Result<trace::Trace> trace = ReadText(text);
  if (!trace.ok()) {
    return trace.error().message;
  }
  return trace.value().skipped.size() == 1 ? trace.value().skipped[0].why : "not left out";
}

// Whether the text contains the other one.
[[nodiscard]] inline bool Says(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

// Reads a cluster from a file with this text and this name, whose ending says what it is.
[[nodiscard]] inline Result<Cluster> ReadClusterText(const std::string& name,
                                                     std::string_view text) {
  const ScratchFolder folder;
  return trace::ReadCluster(folder.Write(name, text));
}

// What ReadClusterText complains of, from the name of the file on.
[[nodiscard]] inline std::string ClusterErrorOf(const std::string& name, std::string_view text) {
  return ErrorFrom(name, ReadClusterText(name, text));
}

}  // namespace trainyard
