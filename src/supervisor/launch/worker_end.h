// SPDX-License-Identifier: Apache-2.0
// How a worker has ended, for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainyard::supervisor {

// Notices from its construction on whether the kernel kills processes for lack of memory.
class MemoryWatch {
 public:
  MemoryWatch();
  // "memory has run out in its control group", "... on this machine", "memory has not run out";
  // empty: this machine does not tell.
  [[nodiscard]] std::string Verdict() const;

 private:
  std::int64_t in_group_;
  std::optional<std::int64_t> on_machine_;
};

struct WorkerEnd {
  std::uint64_t job = 0;
  std::int64_t rank = 0;
  int status = 0;      // as of waitpid
  std::string log;     // its path
  std::string folder;  // the worker's, for relative names of files
};

// The exit code, 128 + the number of the signal that has ended it.
[[nodiscard]] int ExitCodeOf(int status);

// "worker 0 ended with exit code 1: ValueError: bad lr (trainyard logs 7 --rank 0)". A script's
// output may have been sent to a file, of which its log says so (its first line, "trainyard: output
// and errors go to FILE"): the last line is that of the file, which is named in place of the log.
[[nodiscard]] std::string TextOf(const WorkerEnd& end, const MemoryWatch& memory);

}  // namespace trainyard::supervisor
