// SPDX-License-Identifier: Apache-2.0
// Folders that programs keep their state in: each held by one process at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/descriptor.h"
#include "trainyard/status.h"

namespace trainyard::store {

// Whether the folder that an option names is there and may be written to, or can be made.
// Errors: kInvalidArgument with the option, and the part of the path that stands in the way.
[[nodiscard]] Status CheckFolder(std::string_view option, const std::string& path);

// The same before the first start, when another than this process may make the folder (systemd, by
// StateDirectory=): what is to be said of a folder that this process cannot make; empty: nothing.
[[nodiscard]] Result<std::string> CheckFolderToBe(std::string_view option, const std::string& path);

// Makes the folder with its parents, durably and for its owner alone, and locks FOLDER/HOLDER.lock
// until the result is closed, or the process exits. `holder`: "controller". Never waits. Errors: it
// cannot be made or written, or is held.
[[nodiscard]] Result<io::Descriptor> HoldFolder(const std::string& folder, std::string_view holder);

// Makes FOLDER/NAME, empty, unless it is there. Durable. Error: it cannot be written.
[[nodiscard]] Status MakeFile(const std::string& folder, const std::string& name);

// Keeps so many bytes of the disk in FOLDER/NAME, if they are to be had; otherwise there is no such
// file afterwards.
void SetAside(const std::string& folder, const std::string& name, std::int64_t bytes);

}  // namespace trainyard::store
