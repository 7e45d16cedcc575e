// SPDX-License-Identifier: Apache-2.0
// One run of rsync, which brings a folder here or goes on with what has come of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

struct RsyncRun {
  std::string program;         // its file
  std::string from;            // a folder, or HOST:FOLDER
  std::string to;              // a folder, which exists
  std::int64_t rate_kbps = 0;  // kB/s at most; 0: any
};

struct RsyncEnd {
  bool stopped = false;  // because `stop` said so; what has come stays
  std::string error{};   // empty: all is there
  v1::AttemptReport::Cause cause = v1::AttemptReport::CAUSE_UNSPECIFIED;  // of the error
};

// Returns when rsync has ended, which it does at the latest soon after `stop` has become true, or
// when the calling thread or its process ends. `on_progress`: part of all, 0 to 1. Thread-safe.
[[nodiscard]] RsyncEnd RunRsync(const RsyncRun& run, const std::function<void(double)>& on_progress,
                                const std::function<bool()>& stop);

// What rsync has written, besides its progress: why it has failed, in one line, and whose fault
// that is. `status`: its exit status, 128 and more for a signal.
[[nodiscard]] RsyncEnd EndOfRsync(int status, std::string_view lines);

// "  1,234,567  40%  1.17MB/s  0:00:01": 0.4. Negative: it is no line of progress.
[[nodiscard]] double ProgressIn(std::string_view line);

}  // namespace trainyard::supervisor
