// SPDX-License-Identifier: Apache-2.0
// Copies of data sets in a folder, fetched by rsync:
//
//   FOLDER/whole/NAME/files/      the data set
//                     copy        v1::DataCopy as text
//   FOLDER/begun/NAME/            the same, not whole yet: a fetch is under way, or goes on later
//   FOLDER/gone/N/                being removed
//
// A copy becomes whole by one rename, when all of it is on the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "supervisor/data/data_store.h"

namespace trainyard::supervisor {

struct LocalDataOptions {
  std::string folder;          // one agent's alone; made if need be
  std::string rsync;           // its file
  std::int64_t rate_kbps = 0;  // of each fetch, kB/s at most; 0: any
};

// The name of a data set as a folder of it is called: what is no letter, digit, '-', '_' or '.' in
// hexadecimal.
[[nodiscard]] std::string FolderNameOf(const std::string& data_set);

// `on_reports` is called, by any thread, when there are reports. Fetches end with the store and are
// gone on with by the next one.
[[nodiscard]] std::unique_ptr<DataStore> MakeLocalDataStore(LocalDataOptions options,
                                                            std::function<void()> on_reports);

}  // namespace trainyard::supervisor
