// SPDX-License-Identifier: Apache-2.0
#include "scenario/packed_profiles.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "base/try.h"
#include "io/file.h"
#include "trainyard/state.h"

namespace trainyard::scenario {
namespace {

namespace fs = std::filesystem;

struct PackedFile {
  std::string name;  // below the folder, or of the file itself
  std::string bytes;

  void Serialize(StateStream& state) { state(name, bytes); }
};

struct Packed {
  bool is_folder = false;
  std::vector<PackedFile> files;  // by name

  void Serialize(StateStream& state) { state(is_folder, files); }
};

// Below the folder, whatever a damaged state says.
bool StaysBelow(const fs::path& name) {
  return name.is_relative() && !name.empty() &&
         std::none_of(name.begin(), name.end(), [](const fs::path& part) { return part == ".."; });
}

Result<std::vector<fs::path>> FilesBelow(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_regular_file(error)) {
      paths.push_back(at->path());
    }
  }
  if (error) {
    return Failed(folder.string() + ": " + error.message());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Status Write(const fs::path& path, std::string_view bytes) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? Status() : Failed(path.string() + ": cannot be written; expected room in TMPDIR");
}

}  // namespace

Result<std::string> PackProfiles(const std::string& path) {
  Packed packed{.is_folder = fs::is_directory(path), .files = {}};
  std::vector<fs::path> paths{path};
  if (packed.is_folder) {
    ASSIGN_OR_RETURN(paths, FilesBelow(path));
  }
  std::size_t size = 0;
  for (const fs::path& file : paths) {
    ASSIGN_OR_RETURN(std::string bytes, io::ReadBytes(file.string()));
    size += bytes.size();
    if (size > kMostPackedBytes) {
      return BadInput(path + ": more than 256 MiB of profiles; expected less");
    }
    packed.files.push_back(
        {.name = (packed.is_folder ? file.lexically_relative(path) : file.filename()).string(),
         .bytes = std::move(bytes)});
  }
  StateStream state;
  packed.Serialize(state);
  return state.TakeBytes();
}

Result<std::unique_ptr<UnpackedProfiles>> UnpackedProfiles::Make(std::string_view packed_text) {
  Packed packed;
  StateStream state{packed_text};
  packed.Serialize(state);
  if (!state.complete() || (!packed.is_folder && packed.files.size() != 1) ||
      !std::all_of(packed.files.begin(), packed.files.end(),
                   [](const PackedFile& file) { return StaysBelow(file.name); })) {
    return BadInput("profiles that are kept with the state cannot be understood");
  }
  std::unique_ptr<UnpackedProfiles> unpacked(new UnpackedProfiles);
  if (unpacked->folder_.path().empty()) {
    return Failed("no folder for profiles can be made; expected one in TMPDIR");
  }
  const fs::path folder = unpacked->folder_.path();
  for (const PackedFile& file : packed.files) {
    RETURN_IF_ERROR(Write(folder / file.name, file.bytes));
  }
  unpacked->path_ = packed.is_folder ? folder.string() : (folder / packed.files[0].name).string();
  return unpacked;
}

}  // namespace trainyard::scenario
