// SPDX-License-Identifier: Apache-2.0
// Keeps the logs of a job from filling the disk of its node: the oldest goes first, be it the log
// of an earlier attempt or the beginning of one that grows.
#pragma once

#include <cstdint>
#include <string>

namespace trainyard::supervisor {

// Frees the oldest bytes of a log that takes more than `limit` of the disk, until it takes half of
// that. Offsets of what is left stay as they are (a hole takes the place of what goes) where the
// file system can do that; elsewhere all of it goes. Processes that append to it go on appending.
void TrimLog(const std::string& path, std::uint64_t limit);

// Removes logs of earlier attempts of the job, the oldest first, until those that are left take no
// more than `most` bytes of the disk.
void RemoveOldLogs(const std::string& state_folder, std::uint64_t job, std::uint64_t most);

// Where the first byte from `offset` on lies that is still there; the end of the file, if none is.
[[nodiscard]] std::uint64_t FirstKept(int log, std::uint64_t offset);

}  // namespace trainyard::supervisor
