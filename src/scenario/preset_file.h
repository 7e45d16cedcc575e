// SPDX-License-Identifier: Apache-2.0
// Presets as files: those built into the program, and users' own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "io/toml.h"
#include "trainyard/options.h"
#include "trainyard/status.h"

namespace trainyard::scenario {

struct Preset {
  std::string name;    // of a user's file: its path as given
  std::string base;    // the preset that it changes, as the file names it; empty: none
  std::string text;    // of the file itself
  std::string sha256;  // of the text and the digest of a base that is a file; empty: built in
  io::TomlTable root;  // all keys: the file's own, and those of the base that it does not have
};

// Sorted by name; sound mode is one of them.
[[nodiscard]] std::span<const std::string_view> PresetNames();

// The path with which "FILE.toml" or "FILE.toml:key=value" begins; empty for the name of a built-in
// preset. A path ends in ".toml" or has a '/'.
[[nodiscard]] std::string_view PresetPath(std::string_view preset);

// The path or the name, and the options behind it. Empty: sound mode.
[[nodiscard]] Result<NamedOptions> ParsePresetName(std::string_view preset);

// By its name or path. A file is read, checked and kept once in the life of the program, so that
// all parts of a run see the same. Errors: an unknown name (kInvalidArgument); a file that is not
// there, has a mistake or is its own base (kBadInput).
[[nodiscard]] Result<const Preset*> FindPreset(const std::string& name);

}  // namespace trainyard::scenario
