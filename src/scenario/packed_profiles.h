// SPDX-License-Identifier: Apache-2.0
// What --profiles names, as one text: a controller keeps it with its state, and goes on with it
// whatever becomes of the files.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/temporary_folder.h"
#include "trainyard/status.h"

namespace trainyard::scenario {

// The file, or all files of the folder and its sub-folders. Two texts are the same if the files are
// and are called the same. Errors: no such file; one that cannot be read; more than
// kMostPackedBytes in all.
inline constexpr std::size_t kMostPackedBytes = std::size_t{256} << 20;
[[nodiscard]] Result<std::string> PackProfiles(const std::string& path);

// The files again, as long as it lives.
class UnpackedProfiles {
 public:
  // Errors: the text is not one of PackProfiles; there is no room below TMPDIR.
  [[nodiscard]] static Result<std::unique_ptr<UnpackedProfiles>> Make(std::string_view packed);

  // In place of the path of --profiles.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  UnpackedProfiles() : folder_("trainyard-profiles") {}

  io::TemporaryFolder folder_;
  std::string path_;
};

}  // namespace trainyard::scenario
