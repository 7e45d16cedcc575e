// SPDX-License-Identifier: Apache-2.0
// What a job to be submitted is made of: the keys of a job file (TOML or JSON) and, with the same
// names and meanings, options of `trainyard submit`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::requests {

struct JobOption {
  std::string_view key;   // batch_size in files, --batch-size on the command line
  std::string_view type;  // empty: a flag
  std::string_view help;
};

// All keys but "command", which is no option.
[[nodiscard]] std::span<const JobOption> JobOptions();

// "--batch-size" for "batch_size".
[[nodiscard]] std::string OptionName(std::string_view key);

// REQUIRES: `key` is one of JobOptions(). "true" sets a flag; env takes NAME=VALUE and adds to what
// is there.
[[nodiscard]] Status SetJobOption(std::string_view key, const std::string& text,
                                  v1::JobRequest& job);

// Sets what the file says. Errors as "file:line: ...": no TOML or JSON (by the file's name), an
// unknown key, a value of the wrong kind.
[[nodiscard]] Status ReadJobFile(const std::string& path, v1::JobRequest& job);

}  // namespace trainyard::requests
