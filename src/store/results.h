// SPDX-License-Identifier: Apache-2.0
// The results of an experiment on disk: runs by the digest of what was run, and which cells of the
// present matrix they belong to. docs/formats/experiment.md describes the tables.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::store {

struct StoredRun {
  std::string digest;   // of everything that decides the result
  std::string status;   // "ok" or "failed"
  std::string reason;   // why it failed
  std::string metrics;  // a JSON object
  std::string extra;    // what the caller of the run wanted to keep
  std::string program;  // of the build that ran it
};

struct StoredCell {
  std::string id;
  std::string digest;  // empty: it is not run
  std::string status;  // of one that is not run, and why
  std::string reason;
  std::string axes;  // a JSON object
};

// Holds its file until it is destroyed. For one thread; a process made by fork must not use it.
// Every error names the file.
class ResultStore {
 public:
  virtual ~ResultStore() = default;
  // By digest.
  [[nodiscard]] virtual Result<std::vector<StoredRun>> Runs() const = 0;
  // Adds or replaces all or none; on return they survive a crash of the machine. One fsync.
  [[nodiscard]] virtual Status Put(std::span<const StoredRun> runs) = 0;
  // Forgets all runs.
  [[nodiscard]] virtual Status Clear() = 0;
  // The matrix that the view `results` shows, with these axes and metrics as its columns.
  [[nodiscard]] virtual Status SetCells(std::span<const StoredCell> cells,
                                        std::span<const std::string> axes,
                                        std::span<const std::string> metrics) = 0;
};

// Opens or creates the file; its folder must exist. Never waits. Errors: another program has it
// open (kFailed); it is damaged, no file of results or of another version (kBadInput).
[[nodiscard]] Result<std::unique_ptr<ResultStore>> OpenResults(const std::string& path);

}  // namespace trainyard::store
